/*-------------------------------------------------------------------------
 *
 * area.c
 *	  Shared memory of the sharded store.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/partitions/partitions_private.h"

#include "access/twophase.h"

ShardArea  *aq_area;
Partition  *aq_area_partitions;
Stream	   *aq_area_streams;
ShardQueue *aq_area_queues;
Doubt	   *aq_area_doubts;
SessionBlock *aq_area_session_blocks;

int			aq_area_max_partitions = 16384;
int			aq_area_max_streams = 8192;

static uint32
doubt_count(void)
{
	/* a transaction in doubt needs one for each partition that it has used */
	return max_prepared_xacts * 64 + 16;
}

static Size
lay_out(void *area)
{
	Size		size = 0;

	aq_area = aq_part_carve(area, &size, sizeof(ShardArea));
	aq_area_partitions = aq_part_carve(area, &size, mul_size(aq_area_max_partitions + 1, sizeof(Partition)));
	aq_area_streams = aq_part_carve(area, &size, mul_size(aq_area_max_streams + 1, sizeof(Stream)));
	aq_area_queues = aq_part_carve(area, &size, mul_size(aq_handle_limit + 1, sizeof(ShardQueue)));
	aq_area_doubts = aq_part_carve(area, &size, mul_size(doubt_count(), sizeof(Doubt)));
	aq_area_session_blocks = aq_part_carve(area, &size, mul_size(mul_size(aq_session_slots(), SESSION_BLOCKS),
																 sizeof(SessionBlock)));
	return size;
}

Size
aq_area_size(void)
{
	return lay_out(NULL);
}

static uint32
queue_of_stream(int child, uint32 *database)
{
	return aq_shm_queue_of_latch(aq_area_streams[child].queue, database);
}

void
aq_area_reset_counters(ShardQueue *queue)
{
	pg_atomic_init_u64(&queue->added_by_sessions, 0);
	pg_atomic_init_u64(&queue->added_by_worker, 0);
	pg_atomic_init_u64(&queue->truncated_messages, 0);
	pg_atomic_init_u64(&queue->truncated_logs, 0);
}

static void
init_history(CacheHistory *history)
{
	history->since = GetCurrentTimestamp();
	pg_atomic_init_u64(&history->evictions, 0);
	for (int i = 0; i < RETURN_CLASSES; i++)
	{
		pg_atomic_init_u64(&history->returned[false][i], 0);
		pg_atomic_init_u64(&history->returned[true][i], 0);
	}
	pg_atomic_init_u64(&history->closed, 0);
	pg_atomic_init_u64(&history->closed_slots, 0);
	pg_atomic_init_u64(&history->most_slots, 0);
	pg_atomic_init_u64(&history->most_unused, 0);
}

void
aq_area_init(void *area, bool found)
{
	Size		size = lay_out(area);

	aq_trace_on_name(AQ_LATCH_QUEUE, aq_shm_queue_of_latch);
	aq_trace_on_name(AQ_LATCH_STREAM, queue_of_stream);
	if (found)
		return;

	memset(area, 0, size);
	aq_latch_init(&aq_area->partitions_latch, AQ_LATCH_PARTITIONS, 0);
	aq_latch_init(&aq_area->doubt_latch, AQ_LATCH_DOUBT, 0);
	pg_atomic_init_u32(&aq_area->clock_hand, 0);
	pg_atomic_init_u32(&aq_area->kept, 0);
	pg_atomic_init_u32(&aq_area->ndoubts, 0);
	pg_atomic_init_u64(&aq_area->doubt_changes, 0);
	pg_atomic_init_u64(&aq_area->ended_sessions, 0);
	for (int i = 0; i < aq_session_slots() * SESSION_BLOCKS; i++)
		pg_atomic_init_u64(&aq_area_session_blocks[i].value, 0);
	aq_area->max_doubts = doubt_count();
	for (uint32 i = aq_area_max_partitions; i >= 1; i--)
	{
		aq_area_partitions[i].index = i;
		aq_area_partitions[i].next = aq_area->unused_partition;
		aq_area->unused_partition = i;
	}
	aq_area->nunused_partitions = aq_area_max_partitions;
	for (uint32 i = aq_area_max_streams; i >= 1; i--)
	{
		aq_latch_init(&aq_area_streams[i].latch, AQ_LATCH_STREAM, i);
		aq_area_streams[i].index = i;
		aq_area_streams[i].next = aq_area->unused_stream;
		aq_area->unused_stream = i;
	}
	for (int i = 0; i <= aq_handle_limit; i++)
	{
		aq_latch_init(&aq_area_queues[i].latch, AQ_LATCH_QUEUE, i);
		pg_atomic_init_u32(&aq_area_queues[i].done, 0);
		pg_atomic_init_u32(&aq_area_queues[i].wanting, 0);
		pg_atomic_init_u32(&aq_area_queues[i].wanting_keyed, 0);
		aq_area_reset_counters(&aq_area_queues[i]);
	}
	init_history(&aq_area->history);
}
