/*-------------------------------------------------------------------------
 *
 * keep.c
 *	  Shares of the sharded store's memory: see queue/memory/share.c.
 *
 * While a transaction uses a partition, its frame cannot be evicted.  Before a
 * transaction uses a partition that no other one uses, it waits until the queue's
 * owner is within its share; after a time it fails.  ShardArea.kept counts what all
 * transactions keep.  As long as that is less than the share of one role, the use of
 * the role is not computed, so the limit costs usual transactions nothing.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/notes/notes_private.h"

#include "storage/proc.h"

#define CHUNK_KB (AQ_CHUNK_SIZE / 1024)

/* of the largest frame */
#define FRAME_KB (FRAME_CHUNKS(PARTITION_SLOTS) * CHUNK_KB)

/*
 * Can a role exceed its share with one more frame?  The worker has no limit: it has
 * one transaction at a time, and others wait for what it does.
 */
static bool
may_exceed(void)
{
	return aq_share_is_scarce(AQ_SHARE_MESSAGE_CACHE, (int64) pg_atomic_read_u32(&aq_area->kept) * CHUNK_KB + FRAME_KB) &&
		!aq_job_in_worker();
}

/* Must aq_keep_admit be called before the transaction uses the partition? */
bool
aq_keep_is_new(const Partition *partition)
{
	return !aq_slot_is_kept(partition) && may_exceed();
}

/*
 * Waits until the queue may keep one more frame.  Called without latches.  A
 * transaction that keeps a quarter of the cache does not wait: it would have to
 * wait for itself.
 */
void
aq_keep_admit(AqQueueShm *shm)
{
	AqChunkWait wait = {0};

	while (may_exceed() && !aq_share_allows(AQ_SHARE_MESSAGE_CACHE, shm, FRAME_KB))
		if (aq_notes_frames() * FRAME_KB >= aq_chunks_cache_kb / 4 || !aq_chunks_wait(&wait, PARTITION_SEGMENTS))
			aq_share_check(AQ_SHARE_MESSAGE_CACHE, shm, FRAME_KB);
	aq_chunks_end_wait(&wait);
}

/*
 * The sessions that can end a wait for the message cache: those whose transactions
 * keep frames, and processes that are running jobs, which may.  None, if memory can
 * become free without these: when the worker has written retry counts, or a prepared
 * transaction ends.
 */
static Bitmapset *
keepers(int session, const AqWaitNow *now)
{
	Bitmapset  *found = NULL;

	for (uint32 i = 1; i <= aq_area->most_partitions; i++)
	{
		const Partition *partition = &aq_area_partitions[i];

		if (partition->frame != 0 && (partition->loading || partition->nretry > 0 || partition->ndoubt > 0))
			return NULL;
	}
	for (int i = 0; i < aq_session_slots(); i++)
	{
		PGPROC	   *proc = aq_session_proc(i);

		if (i != session && proc != NULL &&
			(aq_users_are_keeping(i) || (aq_proc_is_worker(proc) && aq_session_in_transaction(i))))
			found = bms_add_member(found, i);
	}
	return found;
}

static void
count_frames(AqShareUse *use)
{
	for (uint32 i = 1; i <= aq_area->most_partitions; i++)
	{
		const Partition *partition = &aq_area_partitions[i];

		if (partition->queue != 0 && partition->kept > 0)
			aq_share_add(use, partition->queue, (int64) partition->kept * CHUNK_KB);
	}
}

static void
count_partitions(AqShareUse *use)
{
	for (uint32 i = 1; i <= aq_area->most_partitions; i++)
		if (aq_area_partitions[i].queue != 0)
			aq_share_add(use, aq_area_partitions[i].queue, 1);
}

static void
count_streams(AqShareUse *use)
{
	for (int i = 1; i <= aq_area_max_streams; i++)
		if (aq_area_streams[i].queue != 0)
			aq_share_add(use, aq_area_streams[i].queue, 1);
}

void
aq_keep_register(void)
{
	aq_deadlock_define(AQ_EVENT_CACHE_FULL, true, keepers);
	aq_share_register(AQ_SHARE_MESSAGE_CACHE, &aq_chunks_cache_kb, count_frames);
	aq_share_register(AQ_SHARE_PARTITIONS, &aq_area_max_partitions, count_partitions);
	aq_share_register(AQ_SHARE_STREAMS, &aq_area_max_streams, count_streams);
}
