/*-------------------------------------------------------------------------
 *
 * evict.c
 *	  Eviction of frames when memory is short, and statistics of frames that
 *	  were evicted and loaded again.
 *
 * Unless noted otherwise, the caller holds the latch of the partition's
 * stream.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/loading/loading_private.h"

/* maximum number of rounds of the clock hand for one eviction */
#define EVICTION_ROUNDS 3

/*
 * Is the partition unused by all transactions and by the worker's jobs?  Then
 * the tables have all information of the frame, except for retry counts that
 * must still be written.
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

/* Evicts the frame of a partition; it is loaded again when it is needed. */
void
aq_evict_frame(Stream *stream, Partition *partition)
{
	Frame	   *frame = frame_of(partition);
	AqChunk		work;
	int			position = -1;

	aq_slot_stream_not_empty_for_all(stream);	/* dequeues must check partitions that are not resident */
	aq_slot_leave(partition, 0, 0);
	while ((position = aq_frame_next_sub(frame, position)) >= 0)
		aq_slot_unload(stream, partition, position);
	if (partition->state == PARTITION_OPEN)
		partition->was_open = true;
	aq_stream_close(stream, partition);
	work = partition->limited && partition->away_leased > 0 ? aq_limit_evict(partition) : 0;
	aq_frame_free(partition);
	partition->work_away = work;
	partition->evicted = pg_atomic_add_fetch_u64(&aq_area->history.evictions, 1);
	aq_stat_add(AQ_STAT_PARTITION_EVICTIONS, 1);
}

/*
 * The exponent of the smallest power of two greater than the number of
 * evictions.
 */
int
aq_evict_return_class(uint64 evictions)
{
	int			b = 0;

	while (b < RETURN_CLASSES - 1 && evictions >> b != 0)
		b++;
	return b;
}

/*
 * Called when an evicted partition has a frame again.  If n other frames were
 * evicted in between, a cache larger by n + 1 frames would have kept it; the
 * cache's advice uses this.  It assumes that the clock evicts the least
 * recently used frame, and that all frames have the same size.
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

/* Evicts the frame of a partition; returns false if it is in use. */
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
		aq_settle_check_done(stream, partition);	/* it may have been open until now */
		evicted = true;
	}
	aq_latch_free(&stream->latch);
	return evicted;
}

/*
 * Evicts the frame of a partition that was not used recently: a clock sweep
 * over all partitions, tails of streams last.  The caller holds no latch.
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

			/* read without the latch, so evict() checks again */
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
