/*-------------------------------------------------------------------------
 *
 * control.h
 *	  Latches and mutexes together: released, checked, measured.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_CONTROL_H
#define AQ_CONTROL_H

#include "sync/common/latch_types.h"
#include "sync/common/lists.h"

/* Frees all that the session holds, and ends its waits. */
extern void aq_locks_release_all(void);

/* For views: the session that has the latch or mutex that this one waits for; -1: none. */
extern int	aq_locks_blocker(int session);

#ifndef AQ_UNIT

/* For aq.check(): latches and mutexes of sessions that have ended. */
extern void aq_sync_check(AqFindings *findings);

/* The cost of a get and a free; no other session may use the two meanwhile. */
extern void aq_experiment_cost(AqRow *row, AqLatch *free_latch, AqMutex *free_mutex, int n);

/* Only experiments sleep while they hold something. */
extern void aq_experiment_sleep_holding(int64 us);

#endif

#endif							/* AQ_CONTROL_H */
