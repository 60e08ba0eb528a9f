/*-------------------------------------------------------------------------
 *
 * sync_self.h
 *	  A session's own data: the latches and mutexes that it holds and waits
 *	  for, and its counters of mutexes.
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
 * Requests for mutexes of one type at one place in the code.  Each session has
 * its own counters, so that counting is exact without atomic operations.  They
 * belong to the session's slot and are not reset for the next process that
 * uses it, so the sum of all slots includes the sessions that have ended.
 */
typedef struct AqMutexCounts
{
	pg_atomic_uint64 gets;
	pg_atomic_uint64 misses;	/* requests whose first try failed */
	pg_atomic_uint64 waits;		/* requests that slept; the other misses spun */
	pg_atomic_uint64 sleeps;	/* steps of the wait loop */
	pg_atomic_uint64 wait_time; /* microseconds in the wait loop */
	pg_atomic_uint64 spin_time; /* CPU time of spinning, nanoseconds */
} AqMutexCounts;

#define AQ_MAX_HELD 32

/*
 * A latch or mutex and a mode in one word, so that a concurrent reader never
 * sees the address of one with the mode of another.  Latches and mutexes are
 * aligned to 8 bytes, so the low bits are free.
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
	uint32		again;			/* how many times its holder has got the mutex again */
} AqHeld;

/*
 * One per session, in shared memory: written by its session, read by views.
 * Each get writes here, so it writes as little as possible.
 */
typedef struct AqSyncSelf
{
	pg_atomic_uint32 nheld;
	uint32		random;			/* random state of mutex_wait.c */
	pg_atomic_uint64 wants;		/* aq_lock_word of the lock that it waits for, 0: none */
	AqHeld		held[AQ_MAX_HELD];
	AqMutexCounts mutexes[AQ_MUTEX_TYPE_COUNT][AQ_LOC_COUNT];
} AqSyncSelf;

extern AQ_LOCAL AqSyncSelf *aq_sync_self;	/* before attaching: a dummy that holds nothing */

extern void aq_sync_self_init(AqSyncSelf *self);
extern void aq_sync_self_set(AqSyncSelf *self); /* NULL: use the dummy */

/* Adds to a counter that only this session writes. */
static inline void
aq_own_add(pg_atomic_uint64 *counter, int64 n)
{
	pg_atomic_write_u64(counter, pg_atomic_read_u64(counter) + n);
}

#endif							/* AQ_SYNC_SELF_H */
