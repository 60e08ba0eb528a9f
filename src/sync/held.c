/*-------------------------------------------------------------------------
 *
 * held.c
 *	  What this session holds, so that an error or its end can free it.
 *
 * A small array, because sections are short and rarely nested by more than two
 * or three.  Process-local: nobody else can see or need it.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "sync/sync_int.h"

AQ_LOCAL AqSyncSelf aq_sync_self;

/* Nothing can be raised here: a latch was just got. */
void
aq_held_overflow(void)
{
	elog(PANIC, "a session holds more than %d latches and mutexes", AQ_MAX_HELD);
	pg_unreachable();
}

/* Searches from the latest; NULL when not held. */
AqHeld *
aq_held_find(const void *lock)
{
	for (int i = aq_sync_self.nheld - 1; i >= 0; i--)
	{
		if (aq_sync_self.held[i].lock == lock)
			return &aq_sync_self.held[i];
	}
	return NULL;
}

/*
 * Called at the end of a transaction that failed, and when the process ends.
 * Raising the error has forgotten that interrupts were held off, hence each
 * free is given its own hold to resume.
 */
void
aq_sync_release_all(void)
{
	while (aq_sync_self.nheld > 0)
	{
		AqHeld	   *held = &aq_sync_self.held[aq_sync_self.nheld - 1];

		HOLD_INTERRUPTS();
		if (held->is_mutex)
		{
			held->depth = 1;
			aq_mutex_free(held->lock);
		}
		else
			aq_latch_free(held->lock);
	}
#ifndef AQ_UNIT
	aq_event_end_all();
#endif
}

void
aq_sync_assert_none_held(void)
{
	Assert(aq_sync_self.nheld == 0);
}
