/*-------------------------------------------------------------------------
 *
 * os.c
 *	  The system calls by which a session waits.
 *
 * The unit tests have their own version of this file: the simulator counts
 * these calls and decides when they return.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <time.h>

#include "sync/common/os.h"

/*
 * Where the function exists, a clock that is set back does not make a wait
 * longer.
 */
#if defined(__GLIBC__) && defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 30)
#define sem_timedwait_us(sem, until) sem_clockwait(sem, CLOCK_MONOTONIC, until)
#define SEM_CLOCK	CLOCK_MONOTONIC
#endif
#endif
#ifndef SEM_CLOCK
#define sem_timedwait_us(sem, until) sem_timedwait(sem, until)
#define SEM_CLOCK	CLOCK_REALTIME
#endif

void
aq_os_sem_init(AqSem *sem)
{
	if (sem_init(sem, 1, 0) < 0)
		elog(FATAL, "could not create a semaphore: %m");
}

void
aq_os_sem_post(AqSem *sem)
{
	if (sem_post(sem) < 0)
		elog(PANIC, "could not post a semaphore: %m");
}

/* A signal may end the wait early, so the caller checks its state. */
void
aq_os_sem_wait(AqSem *sem)
{
	if (sem_wait(sem) < 0 && errno != EINTR)
		elog(PANIC, "could not wait for a semaphore: %m");
}

void
aq_os_sem_wait_us(AqSem *sem, int64 us)
{
	struct timespec until;

	clock_gettime(SEM_CLOCK, &until);
	until.tv_sec += us / 1000000;
	until.tv_nsec += (us % 1000000) * 1000;
	if (until.tv_nsec >= 1000000000)
	{
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	if (sem_timedwait_us(sem, &until) < 0 && errno != EINTR && errno != ETIMEDOUT)
		elog(PANIC, "could not wait for a semaphore: %m");
}

void
aq_os_yield(void)
{
	sched_yield();
}

void
aq_os_poll_ms(int ms)
{
	(void) poll(NULL, 0, ms);
}
