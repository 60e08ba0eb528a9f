/*-------------------------------------------------------------------------
 *
 * clock.c
 *	  All clock readings of pgaq that measure durations.
 *
 * The clock is monotonic, because a duration must not become negative when the
 * time of day is set back.  Points in time (enqueue time, expiration) are the
 * server's TimestampTz and are not read here.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <time.h>

#include "base/base.h"
#include "utils/timestamp.h"

/* a larger step back of the time of day counts as set back, in microseconds */
#define SMALL_STEP ((int64) 1000000)

static inline int64
in_ns(struct timespec time)
{
	return (int64) time.tv_sec * INT64CONST(1000000000) + time.tv_nsec;
}

int64
aq_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return in_ns(now);
}

int64
aq_clock_us(void)
{
	return aq_clock_ns() / 1000;
}

/*
 * Was the time of day set back since the first call in this process?  A process
 * must call this repeatedly while it has pauses that end at times of day.
 */
bool
aq_clock_was_set_back(void)
{
	static int64 offset;		/* of the time of day; 0: not known yet */
	static bool set_back;
	int64		before = aq_clock_us();
	int64		now = GetCurrentTimestamp() - before;

	/* the process was not running between the two readings: leave it to the next call */
	if (aq_clock_us() - before > SMALL_STEP / 10)
		return set_back;
	set_back |= offset != 0 && now < offset - SMALL_STEP;
	offset = now;
	return set_back;
}

/* CPU time of this process; a system call. */
int64
aq_clock_cpu_ns(void)
{
	struct timespec used;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return in_ns(used);
}

/*
 * CPU time of another process; -1 if it has ended or the system does not show it.
 */
int64
aq_clock_cpu_ns_of(int pid)
{
	clockid_t	clock;
	struct timespec used;

	if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &used) != 0)
		return -1;
	return in_ns(used);
}
