/*-------------------------------------------------------------------------
 *
 * pool.c
 *	  The pools of unused partitions and streams.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/partitions/partitions_private.h"

/* Are all partitions in use by queues?  Read without the latch. */
bool
aq_pool_is_empty(void)
{
	return aq_area->nunused_partitions == 0;
}

/*
 * Are enough in use that queues should release those that they do not need?
 */
bool
aq_pool_is_scarce(void)
{
	return aq_area->nunused_partitions < (uint32) aq_area_max_partitions / 4;
}

void
aq_pool_refuse(void)
{
	ereport(ERROR,
			aq_error_limit("too many partitions exist", "pgaq.max_partitions"));
}

/* Release of a claim: the partition is not in a list yet. */
static void
release_unplaced(void *partition, int64 unused)
{
	aq_pool_release(partition);
}

static ShardQueue *
queue_of(const Partition *partition)
{
	return &aq_area_queues[partition->queue];
}

/* Latch held, as in leave_queue. */
static void
join_queue(Partition *partition)
{
	ShardQueue *queue = queue_of(partition);

	partition->next_of_queue = queue->partitions;
	if (queue->partitions != 0)
		partition_at(queue->partitions)->prev_of_queue = partition->index;
	queue->partitions = partition->index;
	queue->npartitions++;
}

static void
leave_queue(Partition *partition)
{
	ShardQueue *queue = queue_of(partition);

	if (partition->prev_of_queue != 0)
		partition_at(partition->prev_of_queue)->next_of_queue = partition->next_of_queue;
	else
		queue->partitions = partition->next_of_queue;
	if (partition->next_of_queue != 0)
		partition_at(partition->next_of_queue)->prev_of_queue = partition->prev_of_queue;
	queue->npartitions--;
}

/*
 * The queue's partitions, in any order and of any state; 0 ends the list.  Those
 * that are opened or released meanwhile may be missing, or belong to another queue
 * as soon as the list is returned.
 */
uint32 *
aq_pool_list(AqQueueShm *shm)
{
	ShardQueue *queue = shard_queue(shm);
	uint32		most = queue->npartitions + 8;
	uint32	   *list = palloc((most + 1) * sizeof(uint32));
	uint32		n = 0;

	aq_latch_get(&aq_area->partitions_latch, AQ_EXCLUSIVE, AQ_LOC_VIEW);
	for (uint32 i = queue->partitions; i != 0 && n < most; i = partition_at(i)->next_of_queue)
		list[n++] = i;
	aq_latch_free(&aq_area->partitions_latch);
	list[n] = 0;
	return list;
}

Partition *
aq_pool_take(AqQueueShm *shm)
{
	Partition  *partition = NULL;
	uint32		index;

	aq_claim_reserve(1);
	aq_latch_get(&aq_area->partitions_latch, AQ_EXCLUSIVE, AQ_LOC_PARTITION_OPEN);
	index = aq_area->unused_partition;
	if (index != 0)
	{
		partition = partition_at(index);
		aq_area->unused_partition = partition->next;
		aq_area->nunused_partitions--;
		aq_area->most_partitions = Max(aq_area->most_partitions, index);
		memset(partition, 0, sizeof(Partition));
		partition->index = index;
		partition->queue = shm->object->index;
		partition->claimant = aq_session_own_number;
		pg_atomic_init_u64(&partition->browsed, 0);
		pg_atomic_init_u64(&partition->bytes, 0);
		join_queue(partition);
		aq_claim_enter(release_unplaced, partition, 0);
	}
	aq_latch_free(&aq_area->partitions_latch);
	if (partition == NULL)
		aq_pool_refuse();
	return partition;
}

/*
 * Ends the claim: the partition is now in a list, or belongs to tables made by
 * this transaction.  Does not raise an error.
 */
void
aq_pool_placed(Partition *partition)
{
	aq_claim_end(release_unplaced, partition);
}

/*
 * Returns a partition that is in no list to the pool.  Does not raise an
 * error.
 */
void
aq_pool_release(Partition *partition)
{
	aq_doubt_table_forget(partition);
	aq_slot_reset(partition, 0);	/* it keeps nothing now */
	aq_latch_get(&aq_area->partitions_latch, AQ_EXCLUSIVE, AQ_LOC_PARTITION_OPEN);
	leave_queue(partition);
	partition->state = PARTITION_UNUSED;
	partition->stream = 0;
	partition->queue = 0;
	partition->next = aq_area->unused_partition;
	aq_area->unused_partition = partition->index;
	aq_area->nunused_partitions++;
	aq_latch_free(&aq_area->partitions_latch);
}
