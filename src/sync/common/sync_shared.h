/*-------------------------------------------------------------------------
 *
 * sync_shared.h
 *	  The shared memory of latches and mutexes: sleepers, registry, tables.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_SYNC_SHARED_H
#define AQ_SYNC_SHARED_H

#include "sync/common/os.h"
#include "sync/common/sync_self.h"

/* --- sleepers: one per session, in shared memory ---------------------------- */

typedef enum AqSleepState
{
	AQ_SLEEP_NONE,				/* in no list */
	AQ_SLEEP_QUEUED,			/* in the wait list of a latch */
	AQ_SLEEP_POSTED				/* removed from the list, a post will follow */
} AqSleepState;

typedef struct AqSleeper
{
	AqSem		sem;			/* posted by latches only */
	pg_atomic_uint32 state;		/* AqSleepState; changed under the LIST bit */
	int32		next;			/* this and the following members are protected by the LIST bit */
	int32		prev;
	bool		exclusive;
} AqSleeper;

/*
 * Contended gets by location; updated atomically, by failed and sleeping gets
 * only.
 */
typedef struct AqLatchMisses
{
	pg_atomic_uint64 nowait_failures;	/* gets without waiting that failed, by their location */
	pg_atomic_uint64 sleeps;	/* sleeps, by the location of the holder's get */
	pg_atomic_uint64 waiter_sleeps; /* sleeps, by the location of the waiter's request */
	pg_atomic_uint64 long_holds;	/* sleeps during which the holder did not change */
} AqLatchMisses;

typedef struct AqMutexSleepRow
{
	pg_atomic_uint32 change;	/* odd while the row is written */
	uint32		idn;
	int64		time;			/* aq_clock_us */
	uint64		gets;
	uint64		sleeps;
	uint64		value;
	uint64		where;			/* P3 of the wait */
	int64		wait_time;		/* microseconds */
	int32		session;
	int32		blocker;		/* session, or -1 */
	uint16		type;
	uint16		location;
	uint16		mode;
} AqMutexSleepRow;

#define AQ_MUTEX_HISTORY	256

typedef struct AqSyncShared
{
	/* Registered latches by id: the head of a list through AqLatch.next. */
	pg_atomic_uint64 latches[AQ_LATCH_COUNT];

	AqLatchMisses latch_misses[AQ_LATCH_COUNT][AQ_LOC_COUNT];
	pg_atomic_uint64 history_next;
	AqMutexSleepRow history[AQ_MUTEX_HISTORY];

	int32		nsleepers;
	AqSyncSelf *selves;			/* one for each session, after the sleepers */
	AqSleeper	sleepers[FLEXIBLE_ARRAY_MEMBER];
} AqSyncShared;

extern AqSyncShared *aq_sync_shared;

extern Size aq_sync_shared_size(int nsleepers);
extern void aq_sync_shared_init(AqSyncShared *shared, int nsleepers);

#endif							/* AQ_SYNC_SHARED_H */
