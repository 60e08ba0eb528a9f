/*-------------------------------------------------------------------------
 *
 * stream.c
 *	  A queue's streams, and their partitions.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/partitions/partitions_private.h"

/*
 * Inserts a partition into the stream, ordered by number.  The caller holds
 * the latch.
 */
void
aq_stream_append(Stream *stream, Partition *partition)
{
	Partition  *before = partition_at(stream->tail);

	while (before != NULL && before->number > partition->number)
		before = partition_at(before->prev);

	aq_slot_stream_not_empty_for_all(stream);
	partition->stream = stream->index;
	partition->limited = aq_area_queues[partition->queue].limited;
	partition->prev = before ? before->index : 0;
	partition->next = before ? before->next : stream->head;
	if (partition->next)
		partition_at(partition->next)->prev = partition->index;
	else
		stream->tail = partition->index;
	if (before)
		before->next = partition->index;
	else
		stream->head = partition->index;
}

/*
 * Removes a partition from the stream and from the consumers' hints.  The
 * caller holds the latch.
 */
void
aq_stream_unlink(Stream *stream, Partition *partition)
{
	aq_slot_unlink(stream, partition);
	if (partition->prev)
		partition_at(partition->prev)->next = partition->next;
	else
		stream->head = partition->next;
	if (partition->next)
		partition_at(partition->next)->prev = partition->prev;
	else
		stream->tail = partition->prev;
	if (stream->open == partition->index)
		stream->open = 0;
	partition->next = partition->prev = 0;
}

/*
 * Closes the partition if it is the stream's open one; the next message opens
 * another one.  The caller holds the latch.
 */
void
aq_stream_close(Stream *stream, Partition *partition)
{
	CacheHistory *history = &aq_area->history;

	if (partition->state != PARTITION_OPEN)
		return;
	partition->state = PARTITION_CLOSED;
	partition->watched = false;
	stream->open = 0;
	if (partition->reserved == 0)
		return;
	pg_atomic_fetch_add_u64(&history->closed, 1);
	pg_atomic_fetch_add_u64(&history->closed_slots, partition->reserved);
	aq_raise_to(&history->most_slots, partition->reserved);
	aq_raise_to(&history->most_unused, PARTITION_SLOTS - partition->reserved);
}

/* The stream's first partition from a number on.  Latch held. */
Partition *
aq_stream_first_from(const Stream *stream, int64 number)
{
	Partition  *partition = partition_at(stream->head);

	while (partition != NULL && partition->number < number)
		partition = partition_at(partition->next);
	return partition;
}

/* The stream's first matching partition from a number on. */
Partition *
aq_stream_partition_from(Stream *stream, int64 from, bool (*matches) (const Partition *))
{
	Partition  *partition;

	aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_PARTITION_RECLAIM);
	partition = aq_stream_first_from(stream, from);
	while (partition != NULL && !matches(partition))
		partition = partition_at(partition->next);
	aq_latch_free(&stream->latch);
	return partition;
}

/*
 * A queue's streams form a list in the order of dequeue: by priority, delayed
 * ones after the others, by shard.  The list and the array by number only grow
 * while the queue is in use, so readers take no latch.
 */
static int
dequeue_rank(int number)
{
	int			shard = number / (2 * AQ_PRIORITIES);

	return (number % (2 * AQ_PRIORITIES)) * AQ_ALL_SHARDS + shard;
}

/* Those of shards with messages of other nodes are few, and not in the array by number. */
static Stream *
find_held(ShardQueue *queue, int number)
{
	Stream	   *stream = stream_at(queue->streams);

	while (stream != NULL && stream->number != number)
		stream = stream_at(stream->next);
	return stream;
}

Stream *
aq_stream_find(AqQueueShm *shm, int number)
{
	/* the number may come from an invalid message id */
	return number < STREAM_NUMBERS ? stream_at(shard_queue(shm)->numbered[number]) : find_held(shard_queue(shm), number);
}

Stream *
aq_stream_make(AqQueueShm *shm, int number)
{
	ShardQueue *queue = shard_queue(shm);
	Stream	   *stream = aq_stream_find(shm, number);
	volatile uint32 *link;

	if (stream != NULL)
		return stream;

	aq_latch_get(&queue->latch, AQ_EXCLUSIVE, AQ_LOC_PARTITION_OPEN);
	stream = aq_stream_find(shm, number);
	if (stream == NULL)
	{
		aq_latch_get(&aq_area->partitions_latch, AQ_EXCLUSIVE, AQ_LOC_PARTITION_OPEN);
		stream = stream_at(aq_area->unused_stream);
		if (stream != NULL)
			aq_area->unused_stream = stream->next;
		aq_latch_free(&aq_area->partitions_latch);
	}
	else
	{
		aq_latch_free(&queue->latch);
		return stream;
	}
	if (stream != NULL)
	{
		stream->queue = shm->object->index;
		stream->number = number;
		stream->shard = number / (2 * AQ_PRIORITIES);
		stream->priority = number / 2 % AQ_PRIORITIES;
		stream->delayed = number % 2;
		stream->head = stream->tail = stream->open = 0;
		stream->enqueued = 0;
		stream->seen = 0;
		stream->returns++;		/* what was seen of a queue that had it before */
		memset(&stream->sub0, 0, sizeof(StreamSub));
		memset(stream->subs, 0, sizeof(stream->subs));
		aq_slot_stream_not_empty_for_all(stream);

		link = &queue->streams;
		while (*link != 0 && dequeue_rank(stream_at(*link)->number) < dequeue_rank(number))
			link = &stream_at(*link)->next;
		stream->next = *link;
		pg_write_barrier();		/* complete before it becomes visible */
		*link = stream->index;
		if (number < STREAM_NUMBERS)
			queue->numbered[number] = stream->index;
		queue->nstreams++;
	}
	aq_latch_free(&queue->latch);
	if (stream == NULL)
		ereport(ERROR,
				aq_error_limit("too many streams exist", "pgaq.max_streams"));
	return stream;
}

/* --- streams of distributed queues ------------------------------------------------------- */

/* Was a change committed after the description was read, so that it does not say what is dequeued here? */
bool
aq_stream_is_unknown(const AqQueue *queue)
{
	return queue->definition < pg_atomic_read_u64(&queue->shm->definition);
}

/*
 * Are the stream's messages for the consumer with another node, or about to go
 * back to it?  Also if the description is too old to tell.  queue NULL: not
 * distributed, or dropped.  Latch held: what another node gets is taken under it,
 * after the change was committed, so no message is taken here that comes after it.
 */
bool
aq_stream_is_closed(const AqQueue *queue, const Stream *stream, int position)
{
	if (queue == NULL || !queue->distributed)
		return false;
	if (aq_stream_is_unknown(queue))
		return true;
	if (stream_is_held(stream))
		return !bms_is_member(stream->shard, queue->held);
	for (int i = 0; i < queue->nclosed; i++)
		if (queue->closed[i].shard == stream->shard && queue->closed[i].position == position)
			return true;
	return false;
}

/*
 * Searches begin with the partition again: what they have skipped in it and behind
 * it may be dequeued now.  Returns the maximum number of these messages.  The caller
 * holds the latch.
 */
uint32
aq_stream_search_from(Stream *stream, Partition *partition, int position)
{
	StreamSub  *ssub = stream_sub(stream, position);
	uint32		n = Min(ssub->ready, PG_INT32_MAX);

	aq_slot_search_from(stream, partition, position);
	for (; partition != NULL; partition = partition_at(partition->next))
		if (partition->frame == 0)
			n = PG_INT32_MAX;
	return n;
}
