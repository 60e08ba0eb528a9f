/*-------------------------------------------------------------------------
 *
 * held.c
 *	  For each session, the list of latches and mutexes that it holds.  They
 *	  are freed after an error and at the end of the session (see locks.c), and
 *	  shown in views.
 *
 * The list is a small array, because latches are held briefly and rarely more
 * than two or three at once.  It is in shared memory, but only its session
 * writes it; views read it without a lock, so what they show may be outdated.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "sync/common/held.h"

/* PANIC, because the session holds a latch, and so cannot raise an error. */
void
aq_held_overflow(void)
{
	elog(PANIC, "a session holds more than %d latches and mutexes", AQ_MAX_HELD);
	pg_unreachable();
}

/* Searches backwards from the latest entry. */
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

/* The session's entry for this latch or mutex; NULL if it does not hold it. */
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
