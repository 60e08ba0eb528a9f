/*-------------------------------------------------------------------------
 *
 * cond.h
 *	  Waits for rare events that another session broadcasts: a partition was
 *	  loaded or provided, an object became valid.
 *
 * A named wait around PostgreSQL's condition variable:
 *
 *		aq_cond_prepare(cond);
 *		while (!what I wait for)
 *			if (!aq_cond_sleep(cond, event, p1, p2, p3, timeout_us))
 *				break;			(timed out)
 *		aq_cond_cancel();
 *
 * If checking what I wait for may itself wait or broadcast, it would end the
 * prepared sleep.  Then the broadcasts are counted:
 *
 *		seen = aq_cond_seen(cond);
 *		if (!what I wait for)
 *			aq_cond_sleep_unseen(cond, seen, event, p1, p2, p3, timeout_us);
 *
 * No latch or mutex may be held in aq_cond_sleep, which handles interrupts.
 * aq_cond_broadcast neither allocates memory nor raises errors.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_COND_H
#define AQ_COND_H

#include "storage/condition_variable.h"
#include "sync/waits/event.h"

typedef struct AqCond
{
	ConditionVariable cv;
	pg_atomic_uint32 broadcasts;
} AqCond;

extern void aq_cond_init(AqCond *cond);
extern void aq_cond_prepare(AqCond *cond);
extern bool aq_cond_sleep(AqCond *cond, AqEvent event,
						  uint64 p1, uint64 p2, uint64 p3, int64 timeout_us);
extern void aq_cond_cancel(void);
extern uint32 aq_cond_seen(AqCond *cond);
extern bool aq_cond_sleep_unseen(AqCond *cond, uint32 seen, AqEvent event,
								 uint64 p1, uint64 p2, uint64 p3, int64 timeout_us);
extern void aq_cond_broadcast(AqCond *cond);

#endif							/* AQ_COND_H */
