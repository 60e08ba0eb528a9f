/*-------------------------------------------------------------------------
 *
 * area.c
 *	  The store's shared memory.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/shard_private.h"

#include "access/twophase.h"

ShardArea  *aq_shard;
Partition  *aq_partitions;
Stream	   *aq_streams;
ShardQueue *aq_shard_queues;
Doubt	   *aq_doubts;

int			aq_max_partitions = 16384;
int			aq_max_streams = 8192;

static uint32
doubt_count(void)
{
	/* a transaction in doubt needs one per partition it has touched */
	return max_prepared_xacts * 64 + 16;
}

static Size
lay_out(void *area)
{
	Size		size = 0;

	aq_shard = aq_carve(area, &size, sizeof(ShardArea));
	aq_partitions = aq_carve(area, &size, mul_size(aq_max_partitions + 1, sizeof(Partition)));
	aq_streams = aq_carve(area, &size, mul_size(aq_max_streams + 1, sizeof(Stream)));
	aq_shard_queues = aq_carve(area, &size, mul_size(aq_object_limit + 1, sizeof(ShardQueue)));
	aq_doubts = aq_carve(area, &size, mul_size(doubt_count(), sizeof(Doubt)));
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
	return aq_queue_of_latch(aq_streams[child].queue, database);
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

	aq_trace_on_name(AQ_LATCH_QUEUE, aq_queue_of_latch);
	aq_trace_on_name(AQ_LATCH_STREAM, queue_of_stream);
	if (found)
		return;

	memset(area, 0, size);
	aq_latch_init(&aq_shard->partitions_latch, AQ_LATCH_PARTITIONS, 0);
	aq_latch_init(&aq_shard->doubt_latch, AQ_LATCH_DOUBT, 0);
	pg_atomic_init_u32(&aq_shard->clock_hand, 0);
	pg_atomic_init_u32(&aq_shard->ndoubts, 0);
	pg_atomic_init_u64(&aq_shard->doubt_changes, 0);
	aq_shard->max_doubts = doubt_count();
	for (uint32 i = aq_max_partitions; i >= 1; i--)
	{
		aq_partitions[i].index = i;
		aq_partitions[i].next = aq_shard->unused_partition;
		aq_shard->unused_partition = i;
	}
	aq_shard->nunused_partitions = aq_max_partitions;
	for (uint32 i = aq_max_streams; i >= 1; i--)
	{
		aq_latch_init(&aq_streams[i].latch, AQ_LATCH_STREAM, i);
		aq_streams[i].index = i;
		aq_streams[i].next = aq_shard->unused_stream;
		aq_shard->unused_stream = i;
	}
	for (int i = 0; i <= aq_object_limit; i++)
	{
		aq_latch_init(&aq_shard_queues[i].latch, AQ_LATCH_QUEUE, i);
		pg_atomic_init_u32(&aq_shard_queues[i].wanting, 0);
		aq_area_reset_counters(&aq_shard_queues[i]);
	}
	init_history(&aq_shard->history);
}
