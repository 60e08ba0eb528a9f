/*-------------------------------------------------------------------------
 *
 * cond.c
 *	  Named waits on condition variables; see cond.h.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sync/common/held.h"
#include "sync/waits/cond.h"

void
aq_cond_init(AqCond *cond)
{
	ConditionVariableInit(&cond->cv);
}

void
aq_cond_prepare(AqCond *cond)
{
	ConditionVariablePrepareToSleep(&cond->cv);
}

/*
 * Sleeps until the next broadcast; returns false on timeout (negative: none).
 * May return true spuriously.
 */
bool
aq_cond_sleep(AqCond *cond, AqEvent event,
			  uint64 p1, uint64 p2, uint64 p3, int64 timeout_us)
{
	bool		timed_out = false;
	uint32		info = aq_event_info(event);

	aq_held_assert_none();
	/* after an error, aq_locks_release_all() ends the wait */
	aq_event_begin_timed(event, p1, p2, p3, timeout_us);
	if (timeout_us < 0)
		ConditionVariableSleep(&cond->cv, info);
	else
		timed_out = ConditionVariableTimedSleep(&cond->cv, Max(timeout_us / 1000, 1), info);
	if (timed_out)
		aq_event_end_timeout();
	else
		aq_event_end();
	return !timed_out;
}

void
aq_cond_cancel(void)
{
	ConditionVariableCancelSleep();
}

void
aq_cond_broadcast(AqCond *cond)
{
	ConditionVariableBroadcast(&cond->cv);
}
