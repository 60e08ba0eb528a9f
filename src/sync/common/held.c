/*-------------------------------------------------------------------------
 *
 * held.c
 *	  What each session holds and wants: so that an error or its end can free it,
 *	  and others can see who blocks whom.
 *
 * A small array, because sections are short and rarely nested by more than two
 * or three.  It lies in shared memory, but only its session writes it; views
 * read it without stopping anybody, so what they see may be over already.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "sync/sync_int.h"

static AqSyncSelf nobody;		/* never written */

AQ_LOCAL AqSyncSelf *aq_sync_self = &nobody;

void
aq_sync_self_init(AqSyncSelf *self)
{
	pg_atomic_init_u32(&self->nheld, 0);
	self->random = 0;
	pg_atomic_init_u64(&self->wants, 0);
	for (int i = 0; i < AQ_MAX_HELD; i++)
	{
		pg_atomic_init_u64(&self->held[i].lock, 0);
		pg_atomic_init_u32(&self->held[i].where, AQ_LOC_NONE);
		self->held[i].again = 0;
	}
	for (int type = 0; type < AQ_MUTEX_TYPE_COUNT; type++)
	{
		for (int where = 0; where < AQ_LOC_COUNT; where++)
		{
			AqMutexCounts *counts = &self->mutexes[type][where];

			pg_atomic_init_u64(&counts->gets, 0);
			pg_atomic_init_u64(&counts->misses, 0);
			pg_atomic_init_u64(&counts->waits, 0);
			pg_atomic_init_u64(&counts->sleeps, 0);
			pg_atomic_init_u64(&counts->wait_time, 0);
			pg_atomic_init_u64(&counts->spin_time, 0);
		}
	}
}

void
aq_sync_self_set(int session)
{
	aq_sync_self = session < 0 ? &nobody : &aq_sync_shared->selves[session];
}

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

/*
 * Called at the end of a transaction that failed, and when the process ends.
 * Raising the error has forgotten that interrupts were held off, hence each
 * free is given its own hold to resume.
 */
void
aq_sync_release_all(void)
{
	while (aq_held_count() > 0)
	{
		AqHeld	   *held = &aq_sync_self->held[aq_held_count() - 1];
		uint64		lock = pg_atomic_read_u64(&held->lock);

		HOLD_INTERRUPTS();
		if (lock & AQ_LOCK_MUTEX)
		{
			held->again = 0;
			aq_mutex_free(aq_lock_address(lock));
		}
		else
			aq_latch_free(aq_lock_address(lock));
	}
#ifndef AQ_UNIT
	aq_event_end_all();
#endif
}

void
aq_sync_assert_none_held(void)
{
	Assert(aq_held_count() == 0);
}

/* --- who blocks whom ------------------------------------------------------------ */

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

/*
 * The session that holds what the given session waits for: its only holder, or
 * one of those who share it; -1 when it waits for no latch or mutex, or when
 * nobody has it at this moment.
 */
int
aq_sync_blocker(int session)
{
	uint64		wants = pg_atomic_read_u64(&aq_sync_shared->selves[session].wants);
	void	   *lock = aq_lock_address(wants);
	int			holder;

	if (wants == 0)
		return -1;
	holder = (wants & AQ_LOCK_MUTEX) ? aq_mutex_holder(lock) : aq_latch_holder(lock);
	if (holder >= 0)
		return holder;
	for (int i = 0; i < aq_sync_shared->nsleepers; i++)
	{
		if (i != session && aq_held_by(i, lock) != NULL)
			return i;
	}
	return -1;
}
