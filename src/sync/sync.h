/*-------------------------------------------------------------------------
 *
 * sync.h
 *	  The door of part "sync": latches, mutexes, named waits.
 *
 * This is the only part in which a session waits or spins.  Everything is
 * counted; the uncontended path costs one atomic operation and a counter.
 *
 * Nothing may be allocated or raised while a latch or mutex is held; sections
 * are short.  Holding one holds off interrupts.  At the end of a transaction
 * and at exit aq_locks_release_all() frees what an error left behind.
 *
 * PostgreSQL owns the words Latch and latch.h; ours are always included as
 * "sync/sync.h" and begin with Aq / aq_.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_SYNC_H
#define AQ_SYNC_H

#include "sync/common/atomics.h"	/* base/base.h, or the unit tests' stand-in */
#include "sync/common/latch_types.h"	/* AqLatch, AqMutex: structs, embeddable in shared memory */
#include "sync/common/lists.h"	/* enums from the list headers, see there */
#include "sync/control/control.h"
#include "sync/latches/latch.h"
#include "sync/mutexes/mutex.h"
#include "sync/traces/trace.h"	/* hooks of session traces */
#include "sync/waits/event.h"	/* named waits */
#include "sync/waits/wakeup.h"	/* lists of waiters, for the sessions that wake them */
#ifndef AQ_UNIT
#include "sync/statistics/stat.h"	/* statistics, time model */
#include "sync/waits/cond.h"	/* waits for rare events that another session announces */

extern const AqPart aq_sync_part;
#endif

#endif							/* AQ_SYNC_H */
