/*-------------------------------------------------------------------------
 *
 * sync_shared.c
 *	  The shared memory of latches and mutexes: sleepers, registry, tables.
 *
 * Also compiles without the server, for the unit tests.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "sync/common/sync_shared.h"

AqSyncShared *aq_sync_shared = NULL;

static Size
sleepers_end(int nsleepers)
{
	Size		end = offsetof(AqSyncShared, sleepers) + (Size) nsleepers * sizeof(AqSleeper);

	return (end + PG_CACHE_LINE_SIZE - 1) / PG_CACHE_LINE_SIZE * PG_CACHE_LINE_SIZE;
}

Size
aq_sync_shared_size(int nsleepers)
{
	return sleepers_end(nsleepers) + (Size) nsleepers * sizeof(AqSyncSelf);
}

void
aq_sync_shared_init(AqSyncShared *shared, int nsleepers)
{
	aq_sync_shared = shared;
	shared->selves = (AqSyncSelf *) ((char *) shared + sleepers_end(nsleepers));

	for (int id = 0; id < AQ_LATCH_COUNT; id++)
	{
		pg_atomic_init_u64(&shared->latches[id], 0);
		for (int where = 0; where < AQ_LOC_COUNT; where++)
		{
			AqLatchMisses *misses = &shared->latch_misses[id][where];

			pg_atomic_init_u64(&misses->nowait_failures, 0);
			pg_atomic_init_u64(&misses->sleeps, 0);
			pg_atomic_init_u64(&misses->waiter_sleeps, 0);
			pg_atomic_init_u64(&misses->long_holds, 0);
		}
	}
	pg_atomic_init_u64(&shared->history_next, 0);
	memset(shared->history, 0, sizeof(shared->history));
	for (int i = 0; i < AQ_MUTEX_HISTORY; i++)
		pg_atomic_init_u32(&shared->history[i].change, 0);

	shared->nsleepers = nsleepers;
	for (int i = 0; i < nsleepers; i++)
	{
		AqSleeper  *sleeper = &shared->sleepers[i];

		aq_os_sem_init(&sleeper->sem);
		pg_atomic_init_u32(&sleeper->state, AQ_SLEEP_NONE);
		sleeper->next = sleeper->prev = -1;
		sleeper->exclusive = false;
		aq_sync_self_init(&shared->selves[i]);
	}
}
