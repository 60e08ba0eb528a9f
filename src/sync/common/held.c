/*-------------------------------------------------------------------------
 *
 * held.c
 *	  The list of what each session holds: so that an error or its end can free
 *	  it, and others can see it; see locks.c.
 *
 * A small array, because sections are short and rarely nested by more than two
 * or three.  It lies in shared memory, but only its session writes it; views
 * read it without stopping a session, so what they see may be over already.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "sync/common/held.h"

/* Nothing can be raised here: a latch was just got. */
void
aq_held_overflow(void)
{
	elog(PANIC, "a session holds more than %d latches and mutexes", AQ_MAX_HELD);
	pg_unreachable();
}

/* Searches from the latest. */
AqHeld *
aq_held_find(const void *lock)
{
	AqSyncSelf *self = aq_sync_self;

	for (int i = (int) aq_held_count() - 1; i >= 0; i--)
	{
		if (aq_lock_address(pg_atomic_read_u64(&self->held[i].lock)) == lock)
			return &self->held[i];
	}
	return NULL;
}

void
aq_held_assert_none(void)
{
	Assert(aq_held_count() == 0);
}

/* Does the session hold it?  In which entry, or NULL. */
AqHeld *
aq_held_by(int session, const void *lock)
{
	AqSyncSelf *self = &aq_sync_shared->selves[session];

	for (uint32 i = 0; i < pg_atomic_read_u32(&self->nheld); i++)
	{
		if (aq_lock_address(pg_atomic_read_u64(&self->held[i].lock)) == lock)
			return &self->held[i];
	}
	return NULL;
}
