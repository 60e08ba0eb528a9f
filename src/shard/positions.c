/*-------------------------------------------------------------------------
 *
 * positions.c
 *	  Frees the positions of removed consumers when no message can have their
 *	  bit any more.
 *
 * An enqueue reads the consumers first, and stores their bits later.  So
 * after a removal the worker waits, in this order, for
 *
 *	1	every transaction running at its first check to end: later ones have
 *		read the catalog without the consumer;
 *	2	every partition that existed then to be consumed and truncated.
 *
 * Then the catalog row is deleted, and the position can be used again.  The
 * worker keeps this state only in memory: after a restart it begins again.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/shard_private.h"

/*
 * The lowest and highest numbers of the queue's partitions that contain
 * messages.
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

/*
 * Are all partitions truncated that can contain messages for the removed
 * consumer?
 */
bool
aq_positions_free(AqQueue *queue, AqRemoved *removed)
{
	int64		lowest,
				highest;

	partition_numbers(queue->shm, &lowest, &highest);
	if (removed->mark == 0)
	{
		removed->mark = highest + 1;
		close_old_tails(queue->shm, highest);
		partition_numbers(queue->shm, &lowest, &highest);
	}
	return lowest >= removed->mark;
}
