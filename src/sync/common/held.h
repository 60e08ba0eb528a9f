/*-------------------------------------------------------------------------
 *
 * held.h
 *	  The list of latches and mutexes that a session holds: a get adds an
 *	  entry, a free removes it.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_HELD_H
#define AQ_HELD_H

#include "sync/common/sync_shared.h"

pg_noreturn extern void aq_held_overflow(void);
extern AqHeld *aq_held_by(int session, const void *lock);	/* NULL if the session does not hold it */
extern AqHeld *aq_held_find(const void *lock);	/* NULL when not held */
extern void aq_held_assert_none(void);

static inline uint32
aq_held_count(void)
{
	return pg_atomic_read_u32(&aq_sync_self->nheld);
}

/*
 * The end of the list, as read before a get or a free.  It is read first,
 * because reads after an atomic operation have to wait for that operation.
 */
typedef struct AqHeldEnd
{
	AqSyncSelf *self;
	uint32		n;
} AqHeldEnd;

static inline AqHeldEnd
aq_held_end(void)
{
	AqHeldEnd	end = {.self = aq_sync_self};

	end.n = pg_atomic_read_u32(&end.self->nheld);
	return end;
}

/*
 * The latest entry if it is for this lock, which is nearly always the case;
 * else NULL.
 */
static inline AqHeld *
aq_held_last(AqHeldEnd end, const void *lock)
{
	AqHeld	   *last = &end.self->held[end.n - 1];

	return likely(end.n > 0 && aq_lock_address(pg_atomic_read_u64(&last->lock)) == lock) ? last : NULL;
}

static inline void
aq_held_push(AqHeldEnd end, void *lock, bool is_mutex, AqLatchMode mode, AqLocation where)
{
	AqHeld	   *held = &end.self->held[end.n];

	if (unlikely(end.n == AQ_MAX_HELD))
		aq_held_overflow();
	pg_atomic_write_u64(&held->lock, aq_lock_word(lock, is_mutex, mode));
	pg_atomic_write_u32(&held->where, where);
	pg_atomic_write_u32(&end.self->nheld, end.n + 1);
}

static inline void
aq_held_drop(AqHeldEnd end, AqHeld *held)
{
	AqHeld	   *last = &end.self->held[end.n - 1];

	Assert(held->again == 0);
	/* nearly always the last one */
	for (; unlikely(held < last); held++)
	{
		held->again = held[1].again;
		pg_atomic_write_u32(&held->where, pg_atomic_read_u32(&held[1].where));
		pg_atomic_write_u64(&held->lock, pg_atomic_read_u64(&held[1].lock));
		held[1].again = 0;
	}
	pg_atomic_write_u32(&end.self->nheld, end.n - 1);
}

#endif							/* AQ_HELD_H */
