/*-------------------------------------------------------------------------
 *
 * classic_time.c
 *	  The worker's job for due times: delays, retry delays and leases end, messages
 *	  expire, processed messages are deleted.
 *
 * A row's next_at is the time of its next action; rows that have one are in
 * the index "time".  The queue remembers the earliest time at which a row can
 * be due, so that dead rows are not scanned again; a session that writes a row
 * with a time announces it.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "classic/classic_private.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "utils/fmgroids.h"

/* maximum number of rows changed in one transaction */
#define TIME_BATCH 1000

/* pause if a transaction has a row or a lock, in microseconds */
#define BUSY_AGAIN ((int64) 200000)
#define CHECK_AGAIN ((int64) 1000000)

typedef struct Due
{
	QueueScans	scans;
	AqQueueShm *shm;
	TimestampTz now;
	TimestampTz from;			/* rows may be due from here on */
	uint32		done;
	uint32		leases;			/* of them, whose time was over */
	uint32		failed_leases;	/* of these, messages that have failed */
	bool		more;			/* the batch is full */
} Due;

/* The slot with the message's row of table t; NULL: it no longer exists. */
static TupleTableSlot *
message_slot(Due *due, RowScan *rows, const Key *key)
{
	if (!due->scans.queue->multi)
		return rows->slot;
	return aq_row_scan_find(&due->scans.messages, due->scans.queue->id, 0, key) ? due->scans.messages.slot : NULL;
}

/* The row has expired or failed. */
static bool
expire(Due *due, RowScan *rows)
{
	AqDeath		death = aq_failure_death(rows->slot);
	int			state = DatumGetInt16(rows->slot->tts_values[COL_STATE]);
	bool		done;

	if (state != STATE_FAILED)
	{
		death.kind = state == STATE_LEASED ? AQ_DEATH_LEASE : AQ_DEATH_RETRIES;
		death.died = due->now;
	}
	done = aq_failure_row(&due->scans, rows, &death);
	/* one over the limit could not be moved when it failed */
	aq_stat_add(AQ_STAT_EXPIRATIONS, done && death.kind != AQ_DEATH_REJECTED &&
				!aq_failure_over_limit(due->scans.queue, aq_failure_attempts(due->scans.queue, rows->slot)));
	return done;
}

/* A delay or a retry delay has ended. */
static bool
make_ready(Due *due, RowScan *rows, int position)
{
	const int	columns[] = {COL_STATE, COL_NEXT_AT};
	Key			key = aq_table_row_key(rows->slot);
	TupleTableSlot *message = message_slot(due, rows, &key);
	TimestampTz expires = 0;
	int			state = message == NULL ? STATE_READY : aq_leased_row_ready(due->scans.queue, message, &expires);
	Datum		values[] = {Int16GetDatum(state), TimestampTzGetDatum(expires)};
	bool		nulls[] = {false, expires == 0};

	if (expires != 0 && expires <= due->now)
		return expire(due, rows);
	aq_ranges_worker(due->shm);
	if (aq_table_row_update(rows->rel, rows->slot, columns, values, nulls, lengthof(columns)) != TM_Ok)
		return false;
	aq_ranges_announce(due->shm, position, &key, &key);
	if (expires != 0)
		aq_due_time_announce(due->shm, expires);
	aq_classic_notes_add(due->shm, position, NOTE_READY, &key, 1);
	return true;
}

/* The time of a lease is over: the lease was the delay, and no other applies. */
static bool
end_lease(Due *due, RowScan *rows, int position)
{
	AqQueue    *queue = due->scans.queue;
	Key			key = aq_table_row_key(rows->slot);
	TupleTableSlot *message = message_slot(due, rows, &key);
	int			attempts = DatumGetInt32(rows->slot->tts_values[COL_ATTEMPTS]);
	TimestampTz expires;
	bool		ready;

	if (message == NULL)
		return true;
	slot_getsomeattrs(rows->slot, COL_LAST_ERROR + 1);
	(void) aq_leased_row_ready(queue, message, &expires);
	if (aq_leased_row_over_limit(queue, rows->slot) || (expires != 0 && expires <= due->now))
	{
		bool		failed = expire(due, rows);

		due->leases += failed;
		due->failed_leases += failed;
		return failed;
	}
	aq_ranges_worker(due->shm);
	if (aq_leased_row_give_back(queue, rows, message, attempts, 0, NULL, &ready) != TM_Ok)
		return false;
	due->leases++;
	if (ready)
	{
		aq_ranges_announce(due->shm, position, &key, &key);
		aq_classic_notes_add(due->shm, position, NOTE_READY, &key, 1);
	}
	return true;
}

/*
 * A consumer has requested a check whether all have finished with the message.
 */
static bool
check_topic(Due *due, RowScan *rows)
{
	const int	columns[] = {COL_NEXT_AT};
	Key			key = aq_table_row_key(rows->slot);
	Datum		again = TimestampTzGetDatum(due->now + CHECK_AGAIN);

	if (aq_failure_check_topic(&due->scans, &key))
		return aq_table_row_delete(rows->rel, rows->slot) == TM_Ok;
	aq_due_time_announce(due->shm, due->now + CHECK_AGAIN);
	return aq_table_row_update(rows->rel, rows->slot, columns, &again, NULL, lengthof(columns)) == TM_Ok;
}

/*
 * Processes the row in the slot, which is due.  Returns false if a transaction
 * has it.
 */
static bool
act(Due *due, RowScan *rows)
{
	int			position;
	int			state;
	bool		messages = rows == &due->scans.messages;

	if (TransactionIdIsValid(rows->dirty.xmin) || TransactionIdIsValid(rows->dirty.xmax))
		return false;
	position = DatumGetInt16(rows->slot->tts_values[COL_POSITION]);
	state = DatumGetInt16(rows->slot->tts_values[COL_STATE]);
	/* a topic's messages, and rows that only ask for a check, have no consumer */
	if ((position < 0 || position >= AQ_MAX_CONSUMERS) && state != STATE_CHECK && (!messages || !due->scans.queue->multi))
		aq_catalog_refuse_row(due->scans.queue->name, RelationGetRelid(rows->rel), "position", position);
	switch (state)
	{
		case STATE_WAITING:
			return make_ready(due, rows, position);
		case STATE_READY:
		case STATE_FAILED:
			return expire(due, rows);
		case STATE_LEASED:
			return end_lease(due, rows, position);
		case STATE_PROCESSED:
			return aq_table_row_delete(rows->rel, rows->slot) == TM_Ok;
		case STATE_CHECK:
			return messages || check_topic(due, rows);
	}
	return true;
}

/* Walks over the index from due->from on. */
static void
walk_times(Due *due, RowScan *rows)
{
	Relation	index = aq_table_index_open_time(rows->rel);
	IndexScanDesc scan = aq_index_beginscan(rows->rel, index, &rows->dirty, 2);
	ScanKeyData keys[2];

	ScanKeyInit(&keys[0], 1, BTEqualStrategyNumber, F_INT4EQ, Int32GetDatum(due->scans.queue->id));
	ScanKeyInit(&keys[1], 2, BTGreaterEqualStrategyNumber, F_TIMESTAMPTZ_GE, TimestampTzGetDatum(due->from));
	index_rescan(scan, keys, 2, NULL, 0);
	while (index_getnext_slot(scan, ForwardScanDirection, rows->slot))
	{
		TimestampTz at;

		CHECK_FOR_INTERRUPTS();
		slot_getsomeattrs(rows->slot, COL_NEXT_AT + 1);
		at = DatumGetTimestampTz(rows->slot->tts_values[COL_NEXT_AT]);
		if (at > due->now)
		{
			/*
			 * whether it is committed or not; an earlier time would be
			 * announced separately
			 */
			aq_due_time_announce(due->shm, at);
			break;
		}
		if (due->done == TIME_BATCH)
		{
			due->more = true;
			aq_due_time_announce(due->shm, at);
			break;
		}
		if (act(due, rows))
			due->done++;
		else
		{
			aq_due_time_lower(due->shm, at);
			aq_work_announce_time(due->shm, due->now + BUSY_AGAIN);
		}
	}
	index_endscan(scan);
	index_close(index, NoLock);
}

/*
 * Release of a claim: restores the queue's earliest time, which the worker has
 * taken.
 */
static void
nothing_done(void *shm, int64 from)
{
	aq_due_time_lower(shm, (TimestampTz) from);
}

/* Processes one batch in a transaction; returns true if there is more. */
static bool
work_on(int32 id, AqQueueShm *shm)
{
	ClassicQueue *cq = classic_queue(shm);
	AqQueue    *queue;
	Due			due = {.shm = shm, .now = GetCurrentTimestamp()};

	aq_job_begin();
	queue = aq_catalog_get_by_id(id, true);
	if (queue == NULL || !aq_row_scan_try_lock(queue))
	{
		/* a queue that is not visible yet may be committing */
		aq_job_commit(false);
		aq_due_time_announce(shm, due.now + BUSY_AGAIN);
		return false;
	}
	aq_pins_pin(queue);
	aq_claim_reserve(1);
	due.from = (TimestampTz) pg_atomic_exchange_u64(&cq->time_from, TIME_NONE);
	aq_claim_enter(nothing_done, shm, due.from);
	aq_row_scan_open_all(&due.scans, queue);
	walk_times(&due, &due.scans.messages);
	if (queue->multi)
		walk_times(&due, &due.scans.consumers);
	aq_row_scan_close_all(&due.scans);
	if (due.done > 0)
		aq_point("timers-fired");
	if (due.leases > 0)
		aq_point("leases-over");
	aq_job_commit(false);
	aq_stat_add(AQ_STAT_LEASES_ENDED, due.leases);
	aq_stat_add(AQ_STAT_LEASES_FAILED, due.failed_leases);
	aq_claim_end(nothing_done, shm);
	aq_due_time_lower(shm, due.now);
	return due.more;
}

void
aq_classic_time_job(int32 id, AqQueueShm *shm)
{
	/* if there is more, its time is announced */
	while (work_on(id, shm) && !aq_worker_turn_is_over())
		;
}
