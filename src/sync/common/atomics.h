/*-------------------------------------------------------------------------
 *
 * atomics.h
 *	  The server's atomics, or the simulator's.
 *
 * The protocols (latch.c, mutex.c, mutex_wait.c, wakeup.c, and whatever another
 * part builds of shared words) use PostgreSQL's names: pg_atomic_*, uint32,
 * Assert, likely.  In the server these are PostgreSQL's.  With AQ_UNIT they come
 * from tests/unit/shim.h, where each access can be a place at which the seeded
 * scheduler switches to another session, and no header of the server is read.
 *
 * AQ_LOCAL marks what belongs to one session: in the server a process has one,
 * in the unit tests a thread.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_ATOMICS_H
#define AQ_ATOMICS_H

#ifdef AQ_UNIT

#include "shim.h"

#else

#include "base/base.h"
#include "port/atomics.h"
#include "storage/s_lock.h"

#define AQ_LOCAL

/* One poll of a spin: tell the processor, not the operating system. */
static inline void
aq_cpu_pause(void)
{
	SPIN_DELAY();
}

#endif							/* AQ_UNIT */

/*
 * Built with NO_ACCOUNTING=1 nothing is counted, timed or traced, and the views
 * of contention are empty: only to measure what the accounting costs.
 */
#ifdef AQ_NO_ACCOUNTING
#define AQ_ACCOUNTING	false
#else
#define AQ_ACCOUNTING	true
#endif

#endif							/* AQ_ATOMICS_H */
