/*-------------------------------------------------------------------------
 *
 * threads.c
 *	  The same protocols with real threads, for ThreadSanitizer.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "unit.h"

#define THREADS 6
#define TURNS 4000

/* --- sync/common/os.c ------------------------------------------------------------------ */

int64
aq_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64) now.tv_sec * 1000000000 + now.tv_nsec;
}

int64
aq_clock_cpu_ns(void)
{
	return aq_clock_ns();
}

int64
aq_clock_us(void)
{
	return aq_clock_ns() / 1000;
}

void
aq_os_sem_init(AqSem *sem)
{
	sem_init(sem, 0, 0);
}

void
aq_os_sem_post(AqSem *sem)
{
	sem_post(sem);
}

void
aq_os_sem_wait(AqSem *sem)
{
	(void) sem_wait(sem);
}

void
aq_os_sem_wait_us(AqSem *sem, int64 us)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += (us % 1000000) * 1000;
	until.tv_sec += us / 1000000 + until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	(void) sem_timedwait(sem, &until);
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

/* --- running threads --------------------------------------------------------------- */

typedef void (*Body) (int number);

typedef struct Start
{
	int			number;
	Body		body;
} Start;

static void *
thread_main(void *arg)
{
	Start	   *start = arg;

	unit_be(start->number);
	start->body(start->number);
	CHECK_EQ(aq_held_count(), 0);
	CHECK_EQ(shim_interrupt_holdoff, 0);
	return NULL;
}

static void
run_threads(Body body)
{
	pthread_t	threads[THREADS];
	Start		starts[THREADS];

	for (int i = 0; i < THREADS; i++)
	{
		starts[i].number = i;
		starts[i].body = body;
		CHECK_EQ(pthread_create(&threads[i], NULL, thread_main, &starts[i]), 0);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

/* A cheap generator of each thread's own. */
static uint32
rnd(uint32 *x, uint32 n)
{
	*x = *x * 1664525u + 1013904223u;
	return (*x >> 8) % n;
}

/* --- latches ------------------------------------------------------------------------ */

static AqLatch latch;
static int64 number;			/* plain: the latch must order its accesses */
static int64 increments[THREADS];
static int64 gets[THREADS];

static void
use_latch(int me)
{
	uint32		x = (uint32) me * 77 + 1;

	aq_latch_spin_count = (int) rnd(&x, 3) * 20;
	for (int i = 0; i < TURNS; i++)
	{
		uint32		what = rnd(&x, 10);

		if (what < 5)
		{
			aq_latch_get(&latch, AQ_EXCLUSIVE, AQ_LOC_DEQUEUE_TAKE);
			number++;
			increments[me]++;
			gets[me]++;
		}
		else if (what < 9)
		{
			int64		n;

			aq_latch_get(&latch, AQ_SHARED, AQ_LOC_VIEW);
			n = number;
			gets[me]++;
			if (rnd(&x, 50) == 0)
				sched_yield();
			CHECK_EQ(number, n);
		}
		else
		{
			if (!aq_latch_get_nowait(&latch, AQ_EXCLUSIVE, AQ_LOC_VIEW))
				continue;
			number++;
			increments[me]++;
		}
		if (rnd(&x, 100) == 0)
			sched_yield();		/* lose the processor inside */
		aq_latch_free(&latch);
	}
}

static void
test_threads_latch(void)
{
	int64		sum = 0;
	int64		all_gets = 0;

	unit_shared(THREADS);
	memset(&latch, 0, sizeof(latch));
	aq_latch_init(&latch, AQ_LATCH_STREAM, 1);
	number = 0;
	memset(increments, 0, sizeof(increments));
	memset(gets, 0, sizeof(gets));
	run_threads(use_latch);
	for (int i = 0; i < THREADS; i++)
	{
		sum += increments[i];
		all_gets += gets[i];
	}
	CHECK_EQ(number, sum);
	CHECK_EQ(aq_latch_willing_gets(&latch), all_gets);
	CHECK_EQ((uint32) pg_atomic_read_u64(&latch.word), 0);
	CHECK(pg_atomic_read_u64(&latch.sleeps) + pg_atomic_read_u64(&latch.spin_gets) >=
		  pg_atomic_read_u64(&latch.misses));
}

/* --- mutexes -------------------------------------------------------------------------- */

static AqMutex mutex;
static int	scheme;

static void
use_mutex(int me)
{
	uint32		x = (uint32) me * 99 + 5;

	aq_mutex_wait_scheme = scheme;
	aq_mutex_wait_spin_count = 10;
	aq_mutex_wait_yield_sleep_freq = 10;
	for (int i = 0; i < TURNS / 4; i++)
	{
		uint32		what = rnd(&x, 3);

		aq_mutex_get(&mutex, (AqMutexMode) what, AQ_LOC_OBJECT_PIN);
		gets[me]++;
		if (what == AQ_EXCLUSIVE)
		{
			number++;
			increments[me]++;
		}
		else
		{
			int64		n = number;

			if (rnd(&x, 50) == 0)
				sched_yield();
			CHECK_EQ(number, n);
		}
		aq_mutex_free(&mutex);
	}
}

static void
test_threads_mutex(void)
{
	for (scheme = 0; scheme <= 3; scheme++)
	{
		int64		sum = 0;
		int64		all_gets = 0;

		unit_shared(THREADS);
		aq_mutex_init(&mutex, AQ_MUTEX_TYPE_OBJECT, 1);
		number = 0;
		memset(increments, 0, sizeof(increments));
		memset(gets, 0, sizeof(gets));
		run_threads(use_mutex);
		for (int i = 0; i < THREADS; i++)
		{
			sum += increments[i];
			all_gets += gets[i];
		}
		CHECK_EQ(number, sum);
		CHECK_EQ(aq_mutex_gets(&mutex), all_gets);
		CHECK_EQ(aq_mutex_holder(&mutex), -1);
		CHECK_EQ(aq_mutex_count(&mutex), 0);
	}
}

/* --- registry ---------------------------------------------------------------------------- */

static AqLatch many[THREADS][100];

static void
register_latches(int me)
{
	for (int i = 0; i < 100; i++)
		aq_latch_init(&many[me][i], AQ_LATCH_WAITERS, me * 100 + i);
}

static void
test_threads_registry(void)
{
	int			n = 0;

	unit_shared(THREADS);
	memset(many, 0, sizeof(many));
	run_threads(register_latches);
	for (AqLatch *l = (AqLatch *) (uintptr_t) pg_atomic_read_u64(&aq_sync_shared->latches[AQ_LATCH_WAITERS]);
		 l != NULL; l = l->next)
		n++;
	CHECK_EQ(n, THREADS * 100);
}

const UnitTest unit_tests[] = {
	{"threads_latch", test_threads_latch, true},
	{"threads_mutex", test_threads_mutex, true},
	{"threads_registry", test_threads_registry, true},
	{NULL, NULL, false}
};
