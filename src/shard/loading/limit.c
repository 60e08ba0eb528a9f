/*-------------------------------------------------------------------------
 *
 * limit.c
 *	  Counting the messages in work of a partition, for limits of consumers: when
 *	  it is counted for the first time, loaded or evicted.
 *
 * The caller holds the latch of the partition's stream.
 *
 * Leased messages are in work also in a partition that is not resident.  What is
 * counted of it is in a chunk of its own, because only that tells later what has
 * ended meanwhile: a lease may end between the eviction and the next load.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/loading/loading_private.h"

/* A partition is counted from now on, and is resident. */
void
aq_limit_enter(Partition *partition)
{
	int			position = -1;

	while ((position = aq_frame_next_sub(frame_of(partition), position)) >= 0)
		aq_places_count(partition, position, aq_slot_in_work(frame_sub(frame_of(partition), position)));
	partition->limited = true;
}

/*
 * The same for one that is not resident; leased: the number of leased messages of
 * each consumer.  A chunk is reserved.
 */
void
aq_limit_enter_away(Partition *partition, const uint16 *leased)
{
	partition->limited = true;
	if (partition->away_leased == 0)
		return;
	partition->work_away = aq_chunks_take();
	memcpy(aq_chunk_ptr(partition->work_away), leased, AQ_CHUNK_SIZE);
	for (int position = 0; position < AQ_MAX_CONSUMERS; position++)
		if (leased[position] > 0)
			aq_places_count(partition, position, leased[position]);
}

/*
 * The frame is being evicted, and some of its messages are leased: these stay
 * counted.  Returns a chunk of the frame with their numbers.
 */
AqChunk
aq_limit_evict(Partition *partition)
{
	Frame	   *frame = frame_of(partition);
	AqChunk		chunk = 0;
	uint16	   *leased;
	int			position = -1;

	for (uint32 s = 0; chunk == 0; s++)
	{
		chunk = frame->segments[s];
		frame->segments[s] = 0;
	}
	leased = aq_chunk_ptr(chunk);
	memset(leased, 0, AQ_CHUNK_SIZE);
	while ((position = aq_frame_next_sub(frame, position)) >= 0)
		leased[position] = aq_slot_in_work(frame_sub(frame, position));
	return chunk;
}

/*
 * The partition was counted again, after it was not resident: what was counted then
 * no longer counts.
 */
void
aq_limit_forget(Partition *partition, AqChunk work)
{
	const uint16 *leased = work != 0 ? aq_chunk_ptr(work) : NULL;

	for (int position = 0; leased != NULL && position < AQ_MAX_CONSUMERS; position++)
		if (leased[position] > 0)
			aq_places_count(partition, position, -(int) leased[position]);
	aq_chunks_free(&work, 1);
}
