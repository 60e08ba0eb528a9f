/*-------------------------------------------------------------------------
 *
 * spin_clock.h
 *	  The CPU time of a spin.
 *
 * By the clock alone a spin also lasts while the session has no processor,
 * and with more sessions than processors that is most of the time.  The CPU
 * clock is exact, but a system call, which costs as much as a short spin.  So
 * a short spin is measured by the clock, and counts at most what its polls can
 * take; a long one is measured by the CPU clock.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_SPIN_CLOCK_H
#define AQ_SPIN_CLOCK_H

#include "sync/common/atomics.h"

#define AQ_SPIN_SHORT	1000	/* polls; the default settings are below it */
#define AQ_SPIN_POLL_NS	200		/* more than a poll takes */

typedef struct AqSpinClock
{
	int64		start;
	int64		limit;			/* nanoseconds; 0: by the CPU clock */
} AqSpinClock;

/* the largest number of polls; AQ_SPIN_SHORT or more if it can do more than poll */
static inline AqSpinClock
aq_spin_clock_start(int polls)
{
	AqSpinClock clock = {0};

	if (AQ_ACCOUNTING)
	{
		clock.limit = polls < AQ_SPIN_SHORT ? (int64) (polls + 1) * AQ_SPIN_POLL_NS : 0;
		clock.start = clock.limit > 0 ? aq_clock_ns() : aq_clock_cpu_ns();
	}
	return clock;
}

/* In nanoseconds. */
static inline int64
aq_spin_clock_spent(const AqSpinClock *clock)
{
	if (!AQ_ACCOUNTING)
		return 0;
	return clock->limit > 0 ? Min(aq_clock_ns() - clock->start, clock->limit) : aq_clock_cpu_ns() - clock->start;
}

#endif							/* AQ_SPIN_CLOCK_H */
