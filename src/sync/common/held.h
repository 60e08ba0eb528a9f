/*-------------------------------------------------------------------------
 *
 * held.h
 *	  The list of what a session holds: a get adds to it, a free takes from it.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_HELD_H
#define AQ_HELD_H

#include "sync/common/sync_shared.h"

pg_noreturn extern void aq_held_overflow(void);
extern AqHeld *aq_held_by(int session, const void *lock);	/* NULL when it does not hold it */
extern AqHeld *aq_held_find(const void *lock);	/* NULL when not held */
extern void aq_held_assert_none(void);

static inline uint32
aq_held_count(void)
{
	return pg_atomic_read_u32(&aq_sync_self->nheld);
}

/*
 * The end of the list, as it is before a get or a free.  A get or a free
 * looks it up first: what is read after an atomic operation has to wait for it.
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

/* NULL unless it is what was got last, as it nearly always is. */
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
