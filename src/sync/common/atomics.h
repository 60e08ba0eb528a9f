/*-------------------------------------------------------------------------
 *
 * atomics.h
 *	  The server's atomics, or the simulator's.
 *
 * The protocols (latch.c, mutex.c, mutex_wait.c, wakeup.c, and protocols of
 * other parts that use shared words) use PostgreSQL's names: pg_atomic_*,
 * uint32, Assert, likely.  In the server these are PostgreSQL's.  With AQ_UNIT
 * they come from tests/unit/shim.h, where the seeded scheduler can switch to
 * another session at each access, and no header of the server is included.
 *
 * AQ_LOCAL marks variables of one session, which is a process in the server
 * and a thread in the unit tests.
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

/* Pauses between two polls of a spin, without a system call. */
static inline void
aq_cpu_pause(void)
{
	SPIN_DELAY();
}

#endif							/* AQ_UNIT */

/*
 * With NO_ACCOUNTING=1 nothing is counted, timed or traced, and the views of
 * contention are empty.  Such a build serves only to measure the cost of the
 * accounting.
 */
#ifdef AQ_NO_ACCOUNTING
#define AQ_ACCOUNTING	false
#else
#define AQ_ACCOUNTING	true
#endif

#endif							/* AQ_ATOMICS_H */
