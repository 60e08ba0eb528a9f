/*-------------------------------------------------------------------------
 *
 * positions.c
 *	  Positions of removed consumers are freed for others when no message can
 *	  carry their bit any more.
 *
 * Who enqueues reads the consumers first, and stores their bits later.  So
 * after a removal the worker waits, in this order, for
 *
 *	1	every transaction that ran when it first looked to end: later ones have
 *		read the catalog without the consumer;
 *	2	every partition that existed then to be consumed and truncated.
 *
 * Then the catalog row goes, and the position can be given away.  The notes
 * are the worker's own: after a restart it begins anew.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/shard_private.h"

#include "access/xact.h"
#include "executor/spi.h"
#include "storage/procarray.h"
#include "utils/memutils.h"

/* how long between looks, microseconds */
#define LOOK_AGAIN ((int64) 5000000)

typedef struct Retired
{
	int32		id;				/* of the queue */
	int			position;
	bool		settled;		/* step 1 is over */
	TransactionId horizon;		/* of step 1 */
	int64		last_number;	/* of step 2 */
} Retired;

static List *retired;			/* in TopMemoryContext */

static Retired *
find_or_note(int32 id, int position)
{
	ListCell   *lc;
	MemoryContext old;
	Retired    *r;

	foreach(lc, retired)
	{
		r = lfirst(lc);
		if (r->id == id && r->position == position)
			return r;
	}
	old = MemoryContextSwitchTo(TopMemoryContext);
	r = palloc0(sizeof(Retired));
	r->id = id;
	r->position = position;
	r->horizon = ReadNextTransactionId();
	retired = lappend(retired, r);
	MemoryContextSwitchTo(old);
	return r;
}

static void
forget(Retired *r)
{
	retired = list_delete_ptr(retired, r);
	pfree(r);
}

/* The lowest and highest numbers of the queue's partitions that hold messages. */
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

/* A quiet stream's open partition would never be full: end it. */
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
			aq_partition_check_done(stream, partition);
		}
		aq_latch_free(&stream->latch);
	}
}

/* Is it free?  Moves the note on. */
static bool
is_free(Retired *r, AqQueueShm *shm)
{
	int64		lowest,
				highest;

	partition_numbers(shm, &lowest, &highest);
	if (!r->settled)
	{
		TransactionId oldest = GetOldestActiveTransactionId();

		if (TransactionIdPrecedes(oldest, r->horizon))
			return false;
		r->settled = true;
		r->last_number = highest;
		close_old_tails(shm, highest);
		partition_numbers(shm, &lowest, &highest);
	}
	return lowest > r->last_number;
}

static void
delete_row(int32 id, int position)
{
	(void) aq_run_sql(psprintf("DELETE FROM aq.subscriber WHERE queue_id = %d "
							   "AND \"position\" = %d AND kind = 'removed'", id, position),
					  0, NULL, NULL, NULL, false);
}

void
aq_positions_job(int32 id, AqQueueShm *shm)
{
	AqQueue    *queue;
	bool		left = false;
	List	   *freed = NIL;
	ListCell   *lc;
	MemoryContext old;

	aq_job_begin();
	queue = aq_queue_get_by_id(id, true);
	for (int i = 0; queue != NULL && i < queue->nconsumers; i++)
	{
		Retired    *r;

		if (queue->consumers[i].name != NULL)
			continue;
		r = find_or_note(id, queue->consumers[i].position);
		if (is_free(r, shm) && aq_queue_lock(id, ShareUpdateExclusiveLock, false))
		{
			delete_row(id, r->position);
			old = MemoryContextSwitchTo(TopMemoryContext);
			freed = lappend(freed, r);
			MemoryContextSwitchTo(old);
		}
		else
			left = true;
	}
	if (freed != NIL)
		aq_catalog_changed();
	aq_job_commit(false);

	foreach(lc, freed)
	{
		Retired    *r = lfirst(lc);

		aq_consumer_shm(shm, r->position)->removed = false;
		forget(r);
	}
	list_free(freed);
	if (left)
		aq_work_later(shm, AQ_WORK_POSITIONS, LOOK_AGAIN);
}
