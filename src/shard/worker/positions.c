/*-------------------------------------------------------------------------
 *
 * positions.c
 *	  Frees the positions of removed consumers when no message can have their
 *	  bit.
 *
 * An enqueue reads the consumers first, and stores their bits later.  So
 * after a removal subscriber.c waits until all transactions have ended that may
 * know the consumer; then no more messages get its bit.  What it still has in
 * memory is finished now, in reclaim.c.
 *
 * If every message with the bit is done according to the log, the position is free
 * at once: the next consumer is not affected by these messages.  That is so if the
 * consumer never had a message, or has finished all.  A session that finishes a
 * message for the consumer because it was removed, or finds one in the tables, notes
 * that the consumer leaves messages (aq_consumer_leaves()): for a message in memory
 * when it is settled, published or finished, for others when the partition is counted.
 *
 * If it has left messages, the worker writes a row into the log of each partition
 * (LOG_REMOVED), in the transaction that frees the position.  If there are more than
 * MOST_TOLD partitions, it waits instead until each of them has been consumed and
 * truncated.  Messages of another node return to that node, and this is not known
 * here; so a position of a distributed queue always waits for that.
 *
 * The worker keeps this state only in memory: after a restart it begins again, and
 * the partitions are counted again.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/worker/worker_private.h"

#include "storage/lockdefs.h"

/* partitions whose logs are written in one transaction; it locks two tables of each */
#define MOST_TOLD 256

/*
 * The lowest and highest numbers of the queue's partitions that contain
 * messages, or are consumed and not truncated yet: after a crash, or a restart,
 * their messages would have the bit again, and the log would not tell that they are
 * done.  Only the worker takes partitions from the list of consumed ones, so it
 * can follow the list without a latch; it looks at the streams, from which they
 * come, before.
 */
static void
partition_numbers(AqQueueShm *shm, int64 *lowest, int64 *highest)
{
	*lowest = PG_INT64_MAX;
	*highest = 0;
	for (Stream *stream = stream_at(shard_queue(shm)->streams); stream != NULL;
		 stream = stream_at(stream->next))
	{
		aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_PARTITION_RECLAIM);
		if (stream->head != 0)
		{
			*lowest = Min(*lowest, partition_at(stream->head)->number);
			*highest = Max(*highest, partition_at(stream->tail)->number);
		}
		aq_latch_free(&stream->latch);
	}
	for (uint32 index = aq_settle_first_done(shard_queue(shm)); index != 0; index = partition_at(index)->next)
	{
		*lowest = Min(*lowest, partition_at(index)->number);
		*highest = Max(*highest, partition_at(index)->number);
	}
}

/*
 * Closes open partitions up to this number, because in a quiet stream they
 * might never become full.
 */
static void
close_old_tails(AqQueueShm *shm, int64 last_number)
{
	for (Stream *stream = stream_at(shard_queue(shm)->streams); stream != NULL;
		 stream = stream_at(stream->next))
	{
		Partition  *partition;

		aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_PARTITION_RECLAIM);
		partition = partition_at(stream->open);
		if (partition != NULL && partition->number <= last_number && partition->pending == 0 &&
			partition->own_subid == InvalidSubTransactionId)
		{
			aq_stream_close(stream, partition);
			aq_settle_check_done(stream, partition);
		}
		aq_latch_free(&stream->latch);
	}
}

/* Is the partition not counted, so that it is not known who has left messages in it? */
static bool
is_not_known(const Partition *partition)
{
	return (partition->state == PARTITION_CLOSED && !partition->counted) || partition->loading;
}

static bool
any_not_known(AqQueueShm *shm)
{
	for (Stream *stream = stream_at(shard_queue(shm)->streams); stream != NULL;
		 stream = stream_at(stream->next))
		if (aq_stream_partition_from(stream, 0, is_not_known) != NULL)
			return true;
	return false;
}

/* --- rows in the logs ---------------------------------------------------------------- */

/* A partition that may contain messages of the removed consumer: the last slot used. */
typedef struct Told
{
	Partition  *partition;
	uint16		last;
} Told;

static int
add_told(Told *told, int n, Partition *partition)
{
	/* also of one that is not open: it may be opened again */
	uint32		used = partition->reserved;

	if (used == 0)
		return n;
	if (n < MOST_TOLD)
		told[n] = (Told) {.partition = partition, .last = used - 1};
	return n + 1;
}

/*
 * Lists the queue's partitions as partition_numbers() does: one that is consumed
 * meanwhile may be listed twice.  Slots that are used later have no message for the
 * position, which is not free yet.
 */
static int
list_told(AqQueueShm *shm, Told *told)
{
	int			n = 0;

	for (Stream *stream = stream_at(shard_queue(shm)->streams); stream != NULL;
		 stream = stream_at(stream->next))
	{
		aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_PARTITION_RECLAIM);
		for (uint32 index = stream->head; index != 0; index = partition_at(index)->next)
			n = add_told(told, n, partition_at(index));
		aq_latch_free(&stream->latch);
	}
	for (uint32 index = aq_settle_first_done(shard_queue(shm)); index != 0; index = partition_at(index)->next)
		n = add_told(told, n, partition_at(index));
	return n;
}

/*
 * Writes into the logs that the messages at this position are done; false: these
 * are too many, or a session has locked one.
 */
static bool
tell(AqQueueShm *shm, int position)
{
	Told		told[MOST_TOLD];
	int			n = list_told(shm, told);

	if (n > MOST_TOLD)
		return false;
	for (int i = 0; i < n; i++)
		if (!aq_heap_lock_for_worker(told[i].partition, RowExclusiveLock))
			return false;
	for (int i = 0; i < n; i++)
		aq_heap_write_log(told[i].partition, LOG_REMOVED, 0, position, &told[i].last, 1);
	aq_point("positions-told");
	return true;
}

/*
 * Are all messages of the removed consumer done, or all partitions truncated that
 * can contain others?
 */
bool
aq_positions_free(AqQueue *queue, AqRemoved *removed)
{
	int64		lowest,
				highest;

	if (!removed->finished)
		removed->finished = aq_reclaim_finish_removed(queue->shm, &removed->position, 1);
	if (!removed->finished || any_not_known(queue->shm))
		return false;
	if (!queue->distributed && (!aq_consumer_has_left(aq_shm_consumer(queue->shm, removed->position)) ||
								tell(queue->shm, removed->position)))
		return true;

	partition_numbers(queue->shm, &lowest, &highest);
	if (removed->mark == 0)
	{
		removed->mark = highest + 1;
		close_old_tails(queue->shm, highest);
		partition_numbers(queue->shm, &lowest, &highest);
	}
	return lowest >= removed->mark;
}
