/*-------------------------------------------------------------------------
 *
 * evict.c
 *	  Frames that go when memory is short, and what their return tells.
 *
 * Runs under the latch of the partition's stream, unless the function says
 * otherwise.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/shard_private.h"

/* rounds of the clock that one eviction makes at most */
#define EVICTION_ROUNDS 3

/*
 * Does no transaction, and no job of the worker, use anything in the
 * partition?  Then what the frame knows is in the tables, too, except for the
 * retry counts that are still to be written.
 */
bool
aq_evict_allowed(const Partition *partition)
{
	return partition->frame != 0 &&
		(partition->state == PARTITION_CLOSED || partition->state == PARTITION_OPEN) &&
		partition->pending == 0 && partition->inflight == 0 &&
		partition->ndoubt == 0 && !partition->loading &&
		partition->own_subid == InvalidSubTransactionId &&
		frame_of(partition)->timers_reserved == 0;
}

/* The frame of a partition goes; it is loaded again when its turn comes. */
void
aq_evict_frame(Stream *stream, Partition *partition)
{
	Frame	   *frame = frame_of(partition);
	int			position = -1;

	aq_slot_stream_not_empty_for_all(stream);	/* what is not resident has to be looked at */
	aq_slot_leave(partition, 0);
	while ((position = aq_frame_next_sub(frame, position)) >= 0)
		aq_slot_unload(stream, partition, position);
	if (partition->state == PARTITION_OPEN)
		partition->was_open = true;
	aq_stream_close(stream, partition);
	aq_frame_free(partition);
	partition->evicted = pg_atomic_add_fetch_u64(&aq_area->history.evictions, 1);
	aq_stat_add(AQ_STAT_PARTITION_EVICTIONS, 1);
}

/* The smallest power of two that is more than so many evictions. */
int
aq_evict_return_class(uint64 evictions)
{
	int			b = 0;

	while (b < RETURN_CLASSES - 1 && evictions >> b != 0)
		b++;
	return b;
}

/*
 * The partition has a frame again.  As many other frames were evicted in
 * between as the cache lacked, and one more: so the cache's advice says what a
 * larger one would have kept.  It takes the clock for one that evicts what was
 * not used for longest, and frames for equally large.
 */
void
aq_evict_returned(Partition *partition)
{
	CacheHistory *history = &aq_area->history;

	if (partition->evicted != 0)
	{
		uint64		others = pg_atomic_read_u64(&history->evictions) - partition->evicted;

		pg_atomic_fetch_add_u64(&history->returned[aq_job_in_worker()][aq_evict_return_class(others)], 1);
	}
	partition->evicted = 0;
}

/* Take the frame from a partition; false if it is needed. */
static bool
evict(Partition *partition)
{
	Stream	   *stream = stream_at(partition->stream);
	bool		evicted = false;

	if (stream == NULL || aq_latch_held(&stream->latch) ||
		!aq_latch_get_nowait(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_PARTITION_EVICT))
		return false;
	if (partition->stream == stream->index && partition->nretry == 0 &&
		aq_evict_allowed(partition))
	{
		aq_evict_frame(stream, partition);
		aq_settle_check_done(stream, partition); /* it may have been open until now */
		evicted = true;
	}
	aq_latch_free(&stream->latch);
	return evicted;
}

/*
 * Evict the frame of a partition that was not used lately: a clock over all
 * partitions, tails last.  No latch is held.
 */
bool
aq_evict_one(void)
{
	uint32		partitions = aq_area->most_partitions;

	for (int round = 0; round < EVICTION_ROUNDS; round++)
	{
		for (uint32 i = 0; i < partitions; i++)
		{
			uint32		hand = pg_atomic_fetch_add_u32(&aq_area->clock_hand, 1);
			Partition  *partition = &aq_area_partitions[1 + hand % partitions];

			/* read without the latch: evict() checks again */
			aq_stat_add(AQ_STAT_EVICTION_LOOKS, 1);
			if (partition->frame == 0 || partition->stream == 0)
				continue;
			if (partition->state == PARTITION_OPEN && round + 1 < EVICTION_ROUNDS)
				continue;
			if (partition->referenced && round + 1 < EVICTION_ROUNDS)
			{
				partition->referenced = false;
				continue;
			}
			if (evict(partition))
				return true;
		}
	}
	return false;
}
