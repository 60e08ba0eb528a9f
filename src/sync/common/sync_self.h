/*-------------------------------------------------------------------------
 *
 * sync_self.h
 *	  What a session says of itself: what it holds and wants, and its counters of
 *	  mutexes.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_SYNC_SELF_H
#define AQ_SYNC_SELF_H

#include "sync/common/latch_types.h"
#include "sync/common/lists.h"

/*
 * Requests for mutexes of one type at one place in the code.  Each session
 * counts its own, so no count is lost and none costs an atomic operation.  They
 * belong to the session's slot: the next process in it goes on, so the sum of
 * all slots is what all sessions have done that ever were.
 */
typedef struct AqMutexCounts
{
	pg_atomic_uint64 gets;
	pg_atomic_uint64 misses;	/* the first try failed */
	pg_atomic_uint64 waits;		/* requests that slept; the other misses spun */
	pg_atomic_uint64 sleeps;	/* steps of the wait loop */
	pg_atomic_uint64 wait_time; /* microseconds in the wait loop */
	pg_atomic_uint64 spin_time; /* nanoseconds spent spinning */
} AqMutexCounts;

#define AQ_MAX_HELD 32

/*
 * A latch or mutex and a mode in one word, so that a reader, while it
 * changes, never takes the one for the other.  Both are aligned to 8 bytes.
 */
#define AQ_LOCK_MODE	UINT64CONST(3)
#define AQ_LOCK_MUTEX	UINT64CONST(4)
#define AQ_LOCK_ADDRESS	(~UINT64CONST(7))

static inline uint64
aq_lock_word(const void *lock, bool is_mutex, AqLatchMode mode)
{
	return (uint64) (uintptr_t) lock | (is_mutex ? AQ_LOCK_MUTEX : 0) | (uint64) mode;
}

static inline void *
aq_lock_address(uint64 word)
{
	return (void *) (uintptr_t) (word & AQ_LOCK_ADDRESS);
}

static inline AqLatchMode
aq_lock_mode(uint64 word)
{
	return (AqLatchMode) (word & AQ_LOCK_MODE);
}

typedef struct AqHeld
{
	pg_atomic_uint64 lock;		/* aq_lock_word */
	pg_atomic_uint32 where;		/* AqLocation */
	uint32		again;			/* how often its holder has got a mutex again */
} AqHeld;

/*
 * One per session, in shared memory: written by its session, read by views.
 * A get writes here, and gets are frequent: it writes no more than is needed.
 */
typedef struct AqSyncSelf
{
	pg_atomic_uint32 nheld;
	uint32		random;			/* of mutex_wait.c */
	pg_atomic_uint64 wants;		/* aq_lock_word it waits for, 0: none */
	AqHeld		held[AQ_MAX_HELD];
	AqMutexCounts mutexes[AQ_MUTEX_TYPE_COUNT][AQ_LOC_COUNT];
} AqSyncSelf;

extern AQ_LOCAL AqSyncSelf *aq_sync_self;	/* without a session: one that holds nothing */

extern void aq_sync_self_init(AqSyncSelf *self);
extern void aq_sync_self_set(AqSyncSelf *self); /* NULL: none */

/* Adds to a counter that only the caller writes. */
static inline void
aq_own_add(pg_atomic_uint64 *counter, int64 n)
{
	pg_atomic_write_u64(counter, pg_atomic_read_u64(counter) + n);
}

#endif							/* AQ_SYNC_SELF_H */
