/*-------------------------------------------------------------------------
 *
 * sync.h
 *	  The public header of part "sync": latches, mutexes, named waits.
 *
 * Sessions wait and spin only in this part.  All gets and waits are counted;
 * the uncontended path costs one atomic operation and a counter.
 *
 * While a latch or mutex is held, no memory may be allocated and no error
 * raised, and interrupts are held off; hold it briefly.  At the end of a
 * transaction and at process exit, aq_locks_release_all() frees the locks that
 * an error left held.
 *
 * PostgreSQL has its own Latch and latch.h; pgaq's names begin with Aq or aq_,
 * and its headers are always included with their folder.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_SYNC_H
#define AQ_SYNC_H

#include "sync/common/atomics.h"	/* base/base.h, or the unit tests' stand-in */
#include "sync/common/hist.h"	/* histograms of microseconds */
#include "sync/common/latch_types.h"	/* AqLatch, AqMutex: structs to embed in shared memory */
#include "sync/common/lists.h"	/* enums from the list headers */
#include "sync/control/control.h"
#include "sync/latches/latch.h"
#include "sync/mutexes/mutex.h"
#include "sync/traces/trace.h"	/* hooks of session traces */
#include "sync/waits/event.h"	/* named waits */
#include "sync/waits/wakeup.h"	/* lists of waiting sessions */
#ifndef AQ_UNIT
#include "sync/control/deadlock.h"
#include "sync/statistics/server_stat.h"	/* statistics of all sessions */
#include "sync/statistics/stat.h"	/* statistics, time model */
#include "sync/waits/cond.h"	/* waits on condition variables */

extern const AqPart aq_sync_part;
#endif

#endif							/* AQ_SYNC_H */
