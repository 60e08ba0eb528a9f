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

/* in microseconds */
#define BRIEFLY 1000

void
aq_cond_init(AqCond *cond)
{
	ConditionVariableInit(&cond->cv);
	pg_atomic_init_u32(&cond->broadcasts, 0);
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

/* The number of broadcasts until now, read before the check of what they announce. */
uint32
aq_cond_seen(AqCond *cond)
{
	uint32		seen = pg_atomic_read_u32(&cond->broadcasts);

	pg_memory_barrier();
	return seen;
}

/*
 * As aq_cond_sleep; if there was a broadcast since, sleeps only briefly: where
 * broadcasts come faster than the caller can check, it must not keep a processor
 * busy, and interrupts are still processed.
 */
bool
aq_cond_sleep_unseen(AqCond *cond, uint32 seen, AqEvent event,
					 uint64 p1, uint64 p2, uint64 p3, int64 timeout_us)
{
	bool		unseen;
	bool		told;

	aq_cond_prepare(cond);
	pg_memory_barrier();		/* a broadcast is counted, or finds this session in the list */
	unseen = pg_atomic_read_u32(&cond->broadcasts) != seen;
	told = aq_cond_sleep(cond, event, p1, p2, p3, unseen ? BRIEFLY : timeout_us);
	aq_cond_cancel();
	return unseen || told;
}

void
aq_cond_broadcast(AqCond *cond)
{
	pg_atomic_fetch_add_u32(&cond->broadcasts, 1);
	ConditionVariableBroadcast(&cond->cv);
}
