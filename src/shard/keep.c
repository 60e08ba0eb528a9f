/*-------------------------------------------------------------------------
 *
 * keep.c
 *	  Shares of the sharded store's memory: see queue/memory/share.c.
 *
 * A partition that a transaction uses keeps its frame: it cannot be evicted
 * until the transaction ends.  The first frames of a transaction are not
 * checked, so that usual transactions are as fast as before; a role whose
 * sessions keep so few cannot use the cache up.  After them, a transaction
 * that is about to use a partition that no other one uses waits until the
 * queue's owner is within its share, and finally fails.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/shard_private.h"

/* frames of a transaction that are not checked: it can dequeue from a queue and enqueue into another one */
#define FREE_FRAMES 2

#define CHUNK_KB (AQ_CHUNK_SIZE / 1024)

/* Does a transaction keep its frame?  Exact if the stream's latch is held. */
static inline bool
is_kept(const Partition *partition)
{
	return partition->pending > 0 || partition->inflight > 0 || partition->ndoubt > 0;
}

/* Must aq_keep_admit be called before the transaction uses the partition? */
bool
aq_keep_is_new(const Partition *partition)
{
	return aq_notes_frames() >= FREE_FRAMES && !is_kept(partition);
}

/*
 * Waits until the queue may keep one more frame.  Called without latches.  If
 * half of the cache is free, all transactions keep no more than the other half.
 * A transaction that keeps a quarter of it does not wait: it would have to wait
 * for itself.
 */
void
aq_keep_admit(AqQueueShm *shm)
{
	int64		kb = PARTITION_SEGMENTS * CHUNK_KB;
	int64		deadline = 0;

	if (aq_chunks_free_count() >= aq_chunks_total() / 2)
		return;
	while (!aq_share_allows(AQ_SHARE_MESSAGE_CACHE, shm, kb))
		if (aq_notes_frames() * kb >= aq_chunks_cache_kb / 4 || !aq_chunks_wait(PARTITION_SEGMENTS, &deadline))
			aq_share_check(AQ_SHARE_MESSAGE_CACHE, shm, kb);
}

/* The same, if the transaction is about to use another partition, but does not know it yet. */
void
aq_keep_admit_next(AqQueueShm *shm)
{
	if (aq_notes_frames() >= FREE_FRAMES)
		aq_keep_admit(shm);
}

static void
count_frames(AqShareUse *use)
{
	for (uint32 i = 1; i <= aq_area->most_partitions; i++)
	{
		const Partition *partition = &aq_area_partitions[i];

		if (partition->frame != 0 && is_kept(partition))
			aq_share_add(use, partition->queue, (2 + partition->reserved / SEGMENT_SLOTS) * CHUNK_KB);
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
	aq_share_register(AQ_SHARE_MESSAGE_CACHE, &aq_chunks_cache_kb, count_frames);
	aq_share_register(AQ_SHARE_PARTITIONS, &aq_area_max_partitions, count_partitions);
	aq_share_register(AQ_SHARE_STREAMS, &aq_area_max_streams, count_streams);
}
