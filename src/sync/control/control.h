/*-------------------------------------------------------------------------
 *
 * control.h
 *	  Functions for both latches and mutexes: release, check, measure.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_CONTROL_H
#define AQ_CONTROL_H

#include "sync/common/latch_types.h"
#include "sync/common/lists.h"

/* Frees all latches and mutexes of the session, and ends its waits. */
extern void aq_locks_release_all(void);

/*
 * For views: the session that holds the latch or mutex that this one waits
 * for; -1: none.
 */
extern int	aq_locks_blocker(int session);

#ifndef AQ_UNIT

/*
 * For aq.check(): finds latches and mutexes held by sessions that have ended.
 */
extern void aq_sync_check(AqFindings *findings);

/*
 * Measures a get and a free; no other session may use the latch and the mutex
 * meanwhile.
 */
extern void aq_experiment_cost(AqRow *row, AqLatch *free_latch, AqMutex *free_mutex, int n);

/* Sleeps while holding a latch or mutex, which only experiments may do. */
extern void aq_experiment_sleep_holding(int64 us);

#endif

#endif							/* AQ_CONTROL_H */
