/*-------------------------------------------------------------------------
 *
 * locks.c
 *	  Functions for both latches and mutexes: release after an error, and the
 *	  session that blocks another one.
 *
 *	  Also compiles without the server, for the unit tests.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "sync/common/held.h"
#include "sync/control/control.h"
#include "sync/latches/latch.h"
#include "sync/mutexes/mutex.h"
#ifndef AQ_UNIT
#include "sync/waits/event_int.h"
#endif

/*
 * Called when a transaction aborts, and at process exit.  The error has reset
 * the count of interrupt holdoffs, so each free gets its own holdoff to
 * resume.
 */
void
aq_locks_release_all(void)
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

/*
 * The session that holds the latch or mutex for which the given session waits:
 * the exclusive holder, or one of the shared ones; -1 if it waits for no latch
 * or mutex, or if no session holds it now.
 */
int
aq_locks_blocker(int session)
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
