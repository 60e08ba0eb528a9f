/*-------------------------------------------------------------------------
 *
 * classic_time.c
 *	  What the worker does when a message's time has come: delays and rests
 *	  end, messages expire, processed ones are deleted.
 *
 * A row's next_at is the time of its next action, and the index "time" has the
 * rows that have one.  The queue remembers from which time on there can be
 * something to do, so that rows that are gone are not walked over again; who
 * writes a row with a time announces it.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "classic/classic_private.h"

#include "access/table.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "utils/fmgroids.h"

/* rows changed in one transaction */
#define TIME_BATCH 1000

/* when a row is in somebody's hand, or a lock is, microseconds */
#define BUSY_AGAIN ((int64) 200000)
#define CHECK_AGAIN ((int64) 1000000)

static void
lower_from(AqQueueShm *shm, TimestampTz when)
{
	pg_atomic_uint64 *from = &classic_queue(shm)->time_from;
	uint64		old = pg_atomic_read_u64(from);

	while ((old == TIME_NONE || when < (TimestampTz) old) &&
		   !pg_atomic_compare_exchange_u64(from, &old, (uint64) when))
		;
}

/* There is something to do at this time. Never raises. */
void
aq_classic_announce_time(AqQueueShm *shm, TimestampTz when)
{
	lower_from(shm, when);
	aq_work_announce_time(shm, when);
}

typedef struct Due
{
	Hands		hands;
	AqQueueShm *shm;
	TimestampTz now;
	TimestampTz from;			/* there may be more from here on */
	uint32		done;
	bool		more;			/* the batch was full */
} Due;

static TimestampTz
expires_at(Due *due, Line *line, const Key *key)
{
	TupleTableSlot *slot = line->slot;

	if (due->hands.queue->multi)
	{
		if (!aq_line_find(&due->hands.messages, due->hands.queue->id, 0, key))
			return 0;
		slot = due->hands.messages.slot;
	}
	slot_getsomeattrs(slot, COL_EXPIRES_AT + 1);
	return slot->tts_isnull[COL_EXPIRES_AT] ? 0 : DatumGetTimestampTz(slot->tts_values[COL_EXPIRES_AT]);
}

static bool
expire(Due *due, Line *line, int position)
{
	int			attempts = DatumGetInt32(line->slot->tts_values[COL_ATTEMPTS]);
	bool		failed = aq_is_over_limit(due->hands.queue, attempts);	/* and could not be moved then */
	bool		done = aq_give_up(&due->hands, line, position, attempts,
								  failed ? "MAX_RETRY_EXCEEDED" : "TIME_EXPIRATION");

	aq_stat_add(AQ_STAT_EXPIRATIONS, done && !failed);
	return done;
}

/* A delay or a rest is over. */
static bool
make_ready(Due *due, Line *line, int position)
{
	const int	columns[] = {COL_STATE, COL_NEXT_AT};
	Key			key = aq_slot_key(line->slot);
	TimestampTz expires = expires_at(due, line, &key);
	Datum		values[] = {Int16GetDatum(STATE_READY), TimestampTzGetDatum(expires)};
	bool		nulls[] = {false, expires == 0};

	if (expires != 0 && expires <= due->now)
		return expire(due, line, position);
	aq_ranges_worker(due->shm);
	if (aq_row_update(line->rel, line->slot, columns, values, nulls, lengthof(columns)) != TM_Ok)
		return false;
	aq_ranges_announce(due->shm, position, &key, &key);
	if (expires != 0)
		aq_classic_announce_time(due->shm, expires);
	aq_classic_note(due->shm, position, NOTE_READY, &key, 1);
	return true;
}

/* A consumer has asked to look whether all are done with the message. */
static bool
look_at_message(Due *due, Line *line)
{
	const int	columns[] = {COL_NEXT_AT};
	Key			key = aq_slot_key(line->slot);
	Datum		again = TimestampTzGetDatum(due->now + CHECK_AGAIN);

	if (aq_topic_message_look(&due->hands, &key, "MAX_RETRY_EXCEEDED"))
		return aq_row_delete(line->rel, line->slot) == TM_Ok;
	aq_classic_announce_time(due->shm, due->now + CHECK_AGAIN);
	return aq_row_update(line->rel, line->slot, columns, &again, NULL, lengthof(columns)) == TM_Ok;
}

/* The time of the row in the line's slot has come. False: it is in somebody's hand. */
static bool
act(Due *due, Line *line)
{
	int			position;
	bool		messages = line == &due->hands.messages;

	if (TransactionIdIsValid(line->dirty.xmin) || TransactionIdIsValid(line->dirty.xmax))
		return false;
	position = DatumGetInt16(line->slot->tts_values[COL_POSITION]);
	switch (DatumGetInt16(line->slot->tts_values[COL_STATE]))
	{
		case STATE_WAITING:
			return make_ready(due, line, position);
		case STATE_READY:
			return expire(due, line, position);
		case STATE_PROCESSED:
			return aq_row_delete(line->rel, line->slot) == TM_Ok;
		case STATE_CHECK:
			return messages || look_at_message(due, line);
	}
	return true;
}

/* Walk the index from due->from on. */
static void
walk_times(Due *due, Line *line)
{
	Relation	index = aq_time_index_open(line->rel);
	IndexScanDesc scan = aq_index_beginscan(line->rel, index, &line->dirty, 2);
	ScanKeyData keys[2];

	ScanKeyInit(&keys[0], 1, BTEqualStrategyNumber, F_INT4EQ, Int32GetDatum(due->hands.queue->id));
	ScanKeyInit(&keys[1], 2, BTGreaterEqualStrategyNumber, F_TIMESTAMPTZ_GE, TimestampTzGetDatum(due->from));
	index_rescan(scan, keys, 2, NULL, 0);
	while (index_getnext_slot(scan, ForwardScanDirection, line->slot))
	{
		TimestampTz at;

		CHECK_FOR_INTERRUPTS();
		slot_getsomeattrs(line->slot, COL_NEXT_AT + 1);
		at = DatumGetTimestampTz(line->slot->tts_values[COL_NEXT_AT]);
		if (at > due->now)
		{
			/* being enqueued or not: it is announced again if it is not the first */
			aq_classic_announce_time(due->shm, at);
			break;
		}
		if (due->done == TIME_BATCH)
		{
			due->more = true;
			aq_classic_announce_time(due->shm, at);
			break;
		}
		if (act(due, line))
			due->done++;
		else
		{
			lower_from(due->shm, at);
			aq_work_announce_time(due->shm, due->now + BUSY_AGAIN);
		}
	}
	index_endscan(scan);
	index_close(index, NoLock);
}

/* A claim: the worker has taken the time from which it is to look. */
static void
nothing_done(void *shm, int64 from)
{
	lower_from(shm, (TimestampTz) from);
}

/* One transaction's share; true when there is more. */
static bool
work_on(int32 id, AqQueueShm *shm)
{
	ClassicQueue *cq = classic_queue(shm);
	AqQueue    *queue;
	Due			due = {.shm = shm,.now = GetCurrentTimestamp()};

	aq_job_begin();
	queue = aq_catalog_get_by_id(id, true);
	if (queue == NULL || !aq_classic_lock(queue))
	{
		/* a queue that is not there yet may come: its creation may be committing */
		aq_job_commit(false);
		aq_classic_announce_time(shm, due.now + BUSY_AGAIN);
		return false;
	}
	aq_pins_pin(queue);
	aq_claim_reserve(1);
	due.from = (TimestampTz) pg_atomic_exchange_u64(&cq->time_from, TIME_NONE);
	aq_claim_enter(nothing_done, shm, due.from);
	aq_hands_open(&due.hands, queue);
	walk_times(&due, &due.hands.messages);
	if (queue->multi)
		walk_times(&due, &due.hands.consumers);
	aq_hands_close(&due.hands);
	if (due.done > 0)
		aq_point("timers-fired");
	aq_job_commit(false);
	aq_claim_end(nothing_done, shm);
	lower_from(shm, due.now);
	return due.more;
}

void
aq_classic_time_job(int32 id, AqQueueShm *shm)
{
	while (work_on(id, shm))
		;
}
