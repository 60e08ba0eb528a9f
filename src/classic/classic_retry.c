/*-------------------------------------------------------------------------
 *
 * classic_retry.c
 *	  What the worker does with messages whose dequeue was rolled back, and
 *	  with those that nobody can have any more.
 *
 * A rollback hands over where its messages lie and which transactions took
 * them.  The worker finds their rows by their aborted xmax, and writes the
 * counts; until he has committed that, nobody takes them (invariant I9).
 *
 * A message that is over its limit, or expired, goes to the exception queue;
 * a topic's message when all its consumers are done with it or have given up.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "classic/classic_private.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "storage/procarray.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/uuid.h"

#define TRY_AGAIN ((int64) 100000)

/* entries of one round */
#define RETRIES_MAX 256

/*
 * Lock the queue's tables as a consumer does, if nobody is in the way: a user
 * who drops the queue must not stop the worker.
 */
bool
aq_classic_lock(AqQueue *queue)
{
	return ConditionalLockRelationOid(queue->table.messages, RowExclusiveLock) &&
		(!queue->table.multi || ConditionalLockRelationOid(queue->table.consumers, RowExclusiveLock));
}

void
aq_hands_open(Hands *hands, AqQueue *queue)
{
	hands->queue = queue;
	aq_line_open(&hands->messages, queue, queue->table.messages, RowExclusiveLock);
	if (queue->multi)
	{
		aq_line_open(&hands->consumers, queue, queue->table.consumers, RowExclusiveLock);
		aq_line_open(&hands->probe, queue, queue->table.consumers, RowExclusiveLock);
	}
}

void
aq_hands_close(Hands *hands)
{
	aq_line_close(&hands->messages, false);
	if (hands->queue->multi)
	{
		aq_line_close(&hands->consumers, false);
		aq_line_close(&hands->probe, false);
	}
}

/* --- giving up -------------------------------------------------------------------- */

static struct varlena *
varlena_of(TupleTableSlot *slot, int column)
{
	return slot->tts_isnull[column] ? NULL : (struct varlena *) DatumGetPointer(slot->tts_values[column]);
}

/* Into a queue of the same queue table: the row changes its queue. */
static bool
move_within(Hands *hands, AqQueue *target, int attempts, const char *reason)
{
	const int	columns[] = {COL_QUEUE, COL_STATE, COL_ATTEMPTS, COL_STEP, COL_ODD, COL_NEXT_AT,
	COL_ORIGINAL_QUEUE, COL_REASON, COL_TARGETS};
	Key			key = aq_slot_key(hands->messages.slot);
	Datum		values[] = {Int32GetDatum(target->id), Int16GetDatum(STATE_EXPIRED), Int32GetDatum(attempts),
		0, BoolGetDatum(true), 0, CStringGetTextDatum(hands->queue->name), CStringGetTextDatum(reason), 0};
	bool		nulls[] = {false, false, false, false, false, true, false, false, true};

	key.step = aq_classic_step(target->shm);
	values[3] = Int64GetDatum(key.step);
	if (aq_row_update(hands->messages.rel, hands->messages.slot, columns, values, nulls,
					  lengthof(columns)) != TM_Ok)
		return false;
	aq_ranges_announce(target->shm, 0, &key, &key);
	aq_classic_note(target->shm, 0, NOTE_MESSAGES, NULL, 1);
	aq_classic_note(target->shm, 0, NOTE_PUT, NULL, 1);
	return true;
}

/* Into any other queue: a new message there. */
static bool
move_outside(Hands *hands, AqQueue *target, int attempts, const char *reason)
{
	TupleTableSlot *slot = hands->messages.slot;
	AqPutOptions options = {.attempts = attempts};

	slot_getallattrs(slot);
	options.priority = DatumGetInt32(slot->tts_values[COL_PRIORITY]);
	options.correlation = varlena_of(slot, COL_CORRELATION);
	options.properties = varlena_of(slot, COL_PROPERTIES);
	options.sender = varlena_of(slot, COL_SENDER);
	options.original_id = slot->tts_isnull[COL_ORIGINAL_ID] ? DatumGetUUIDP(slot->tts_values[COL_ID])
		: DatumGetUUIDP(slot->tts_values[COL_ORIGINAL_ID]);
	options.original_queue = (struct varlena *) cstring_to_text(hands->queue->name);
	options.reason = (struct varlena *) cstring_to_text(reason);
	return aq_exception_put(target, &options, slot->tts_values[COL_PAYLOAD], slot->tts_isnull[COL_PAYLOAD]) &&
		aq_row_delete(hands->messages.rel, slot) == TM_Ok;
}

/*
 * The message in the slot of hands->messages goes to the exception queue, or
 * away if there is none.  False when it has to be tried again.
 */
static bool
give_up_message(Hands *hands, int attempts, const char *reason)
{
	TupleTableSlot *slot = hands->messages.slot;
	AqQueue    *target;
	bool		moved;

	/* a consumer may just take it, or keep it locked: it is not to be in both queues */
	if (!aq_row_lock(hands->messages.rel, slot))
		return false;
	slot_getsomeattrs(slot, COL_EXCEPTION_QUEUE_ID + 1);
	target = aq_catalog_exception_queue(hands->queue, slot->tts_isnull[COL_EXCEPTION_QUEUE_ID] ? 0
								   : DatumGetInt32(slot->tts_values[COL_EXCEPTION_QUEUE_ID]));
	if (target == NULL || target->id == hands->queue->id)
		return aq_row_delete(hands->messages.rel, slot) == TM_Ok;
	if (!aq_exception_pin(target))
		return false;
	if (!aq_queue_is_sharded(target) && target->table.id == hands->queue->table.id)
		moved = move_within(hands, target, attempts, reason);
	else
		moved = move_outside(hands, target, attempts, reason);
	aq_stat_add(AQ_STAT_EXCEPTIONS, moved);
	return moved;
}

/* The most attempts of consumers that have given up; clear: delete their rows. */
static int
failed_consumers(Hands *hands, const Bitmapset *targets, const Key *key, bool clear)
{
	int			position = -1;
	int			attempts = 0;

	while ((position = bms_next_member(targets, position)) >= 0)
	{
		Line	   *probe = &hands->probe;

		if (!aq_line_find(probe, hands->queue->id, position, key))
			continue;
		slot_getsomeattrs(probe->slot, COL_ATTEMPTS + 1);
		attempts = Max(attempts, DatumGetInt32(probe->slot->tts_values[COL_ATTEMPTS]));
		if (clear)
			(void) aq_row_delete(probe->rel, probe->slot);
	}
	return attempts;
}

/*
 * Look at a topic's message: it goes when all its consumers are through with
 * it.  False when it has to be looked at again.
 */
bool
aq_topic_message_look(Hands *hands, const Key *key, const char *reason)
{
	Bitmapset  *targets;

	if (!aq_line_find(&hands->messages, hands->queue->id, 0, key))
		return true;
	if (TransactionIdIsValid(hands->messages.dirty.xmax))
		return false;
	slot_getsomeattrs(hands->messages.slot, COL_TARGETS + 1);
	targets = aq_targets_read(hands->messages.slot->tts_values[COL_TARGETS]);
	switch (aq_message_others(hands->queue, &hands->probe, targets, key, POSITION_CHECK))
	{
		case OTHERS_WAIT:
			return true;
		case OTHERS_UNKNOWN:
			return false;
		case OTHERS_DONE:
			aq_message_done(hands->queue, &hands->messages);
			return true;
		case OTHERS_FAILED:
			/* as long as their rows are there, it is tried again */
			if (!give_up_message(hands, failed_consumers(hands, targets, key, false), reason))
				return false;
			(void) failed_consumers(hands, targets, key, true);
			return true;
	}
	return true;
}

/*
 * The row in the line's slot is given up, for its consumer.  False when it has
 * to be tried again.
 */
bool
aq_give_up(Hands *hands, Line *line, int position, int attempts, const char *reason)
{
	const int	columns[] = {COL_STATE, COL_ATTEMPTS, COL_NEXT_AT};
	Datum		values[] = {Int16GetDatum(STATE_EXPIRED), Int32GetDatum(attempts), 0};
	bool		nulls[] = {false, false, true};
	Key			key = aq_slot_key(line->slot);
	bool		done;

	aq_ranges_worker(hands->queue->shm);
	if (!hands->queue->multi)
		done = give_up_message(hands, attempts, reason);
	else
	{
		done = aq_row_update(line->rel, line->slot, columns, values, nulls, lengthof(columns)) == TM_Ok;
		if (done)
		{
			CommandCounterIncrement();
			if (!aq_topic_message_look(hands, &key, reason))
				aq_message_ask(hands->queue, hands->consumers.rel, &key, GetCurrentTimestamp() + TRY_AGAIN);
		}
	}
	if (done)
	{
		aq_classic_note(hands->queue->shm, position, NOTE_FAIL, NULL, 1);
		aq_point("failed-moved");
	}
	return done;
}

/* Has a message been tried too often? */
bool
aq_is_over_limit(const AqQueue *queue, int attempts)
{
	return queue->max_retries >= 0 && attempts > queue->max_retries && !queue->exception;
}

/* --- retry counts ------------------------------------------------------------------------ */

/* Was the row in the slot taken by one of these transactions, and given back? */
static bool
was_taken_by(const Retry *retry, const Line *line)
{
	HeapTupleHeader header = aq_slot_header(line->slot);
	TransactionId xid = HeapTupleHeaderGetRawXmax(header);

	/*
	 * A lock is the worker's, which has failed, or not what is to be counted.
	 * A row that this transaction has locked, or one of the worker's that has
	 * committed, is one that it has counted.
	 */
	return TransactionIdIsNormal(xid) && !(header->t_infomask & HEAP_XMAX_IS_MULTI) && !TransactionIdIsCurrentTransactionId(xid) &&
		(!HEAP_XMAX_IS_LOCKED_ONLY(header->t_infomask) || (TransactionIdFollows(xid, retry->last) && !TransactionIdDidCommit(xid))) &&
		aq_retry_is_of(retry, xid) && !TransactionIdIsValid(line->dirty.xmin) && !TransactionIdIsValid(line->dirty.xmax);
}

/*
 * Count the attempt of the row in the slot: ready again, resting, or given up.
 * What cannot be given up now stands there as expired until it can.  False
 * when it has to be tried again.
 */
static bool
count_attempt(Hands *hands, Line *line, int position)
{
	AqQueue    *queue = hands->queue;
	const int	columns[] = {COL_ATTEMPTS, COL_STATE, COL_NEXT_AT};
	Datum		values[3];
	bool		nulls[3] = {false};
	int			attempts;
	bool		expired = false;
	TimestampTz next_at;
	TimestampTz now = GetCurrentTimestamp();
	Key			key = aq_slot_key(line->slot);

	slot_getsomeattrs(line->slot, COL_NEXT_AT + 1);
	attempts = DatumGetInt32(line->slot->tts_values[COL_ATTEMPTS]) + 1;
	next_at = line->slot->tts_isnull[COL_NEXT_AT] ? 0
		: DatumGetTimestampTz(line->slot->tts_values[COL_NEXT_AT]);
	if (queue->exception)
		;						/* nowhere to go from there */
	else if (aq_is_over_limit(queue, attempts))
	{
		if (aq_give_up(hands, line, position, attempts, "MAX_RETRY_EXCEEDED"))
			return true;
		if (queue->multi)
			return false;
		expired = true;
		next_at = now;
	}
	values[0] = Int32GetDatum(attempts);
	if (queue->retry_delay > 0 && !queue->exception && !expired)
	{
		values[1] = Int16GetDatum(STATE_WAITING);
		next_at = now + queue->retry_delay;
	}
	else
		values[1] = line->slot->tts_values[COL_STATE];
	values[2] = TimestampTzGetDatum(next_at);
	nulls[2] = next_at == 0;
	aq_ranges_worker(queue->shm);
	if (aq_row_update(line->rel, line->slot, columns, values, nulls, lengthof(columns)) != TM_Ok)
		return true;
	aq_ranges_announce(queue->shm, position, &key, &key);
	if (DatumGetInt16(values[1]) == STATE_WAITING || expired)
		aq_classic_announce_time(queue->shm, next_at);
	else
		aq_classic_note(queue->shm, position, NOTE_READY, &key, 1);
	return true;
}

/* False when some are left: what is counted shows another xmax the next time. */
static bool
count_retry(Hands *hands, Retry *retry)
{
	Line	   *line = hands->queue->multi ? &hands->consumers : &hands->messages;
	Key			key;
	bool		all = true;

	retry->tried_last = GetCurrentTransactionId();
	pg_write_barrier();
	if (!TransactionIdIsValid(retry->tried_first))
		retry->tried_first = retry->tried_last;

	aq_line_seek(line, hands->queue->id, retry->effect.position, &retry->lowest, ForwardScanDirection);
	while (aq_line_next_row(line, &retry->highest, &key))
	{
		CHECK_FOR_INTERRUPTS();
		if (was_taken_by(retry, line) && !count_attempt(hands, line, retry->effect.position))
			all = false;
	}
	return all;
}

static int
read_retries(AqQueueShm *shm, uint32 *indexes)
{
	ClassicQueue *cq = classic_queue(shm);
	int			n = 0;
	int			kept = 0;

	aq_latch_get(&cq->latch, AQ_SHARED, AQ_LOC_CLASSIC_RETRY);
	for (uint32 i = cq->retries; i != 0 && n < RETRIES_MAX; i = aq_retries[i].next)
		indexes[n++] = i;
	aq_latch_free(&cq->latch);
	/* without those that are still prepared */
	for (int i = 0; i < n; i++)
		if (!TransactionIdIsValid(aq_retries[indexes[i]].doubt) ||
			!TransactionIdIsInProgress(aq_retries[indexes[i]].doubt))
			indexes[kept++] = indexes[i];
	return kept;
}

static void
unlink_retry(AqQueueShm *shm, uint32 index)
{
	ClassicQueue *cq = classic_queue(shm);
	uint32	   *link;

	aq_latch_get(&cq->latch, AQ_EXCLUSIVE, AQ_LOC_CLASSIC_RETRY);
	for (link = &cq->retries; *link != index; link = &aq_retries[*link].next)
		;
	*link = aq_retries[index].next;
	pg_atomic_fetch_sub_u32(&cq->nretries, 1);
	aq_latch_free(&cq->latch);
	aq_retry_free(index);
}

void
aq_classic_retry_job(int32 id, AqQueueShm *shm)
{
	uint32		indexes[RETRIES_MAX];
	bool		done[RETRIES_MAX];
	bool		committed[RETRIES_MAX];
	int			n = read_retries(shm, indexes);
	AqQueue    *queue;
	Hands		hands;

	if (n == 0)
		return;
	aq_job_begin();
	queue = aq_catalog_get_by_id(id, true);
	if (queue == NULL || !aq_classic_lock(queue))
	{
		aq_job_commit(false);
		if (queue != NULL)
			aq_retries_later(shm, TRY_AGAIN);
		return;
	}
	aq_pins_pin(queue);
	aq_hands_open(&hands, queue);
	for (int i = 0; i < n; i++)
	{
		Retry	   *retry = &aq_retries[indexes[i]];

		committed[i] = TransactionIdIsValid(retry->doubt) && TransactionIdDidCommit(retry->doubt);
		done[i] = committed[i] || count_retry(&hands, retry);
		/* the next one is not to meet what this one has written as old */
		CommandCounterIncrement();
	}
	aq_hands_close(&hands);
	aq_point("retries-written");
	pg_atomic_fetch_add_u64(&classic_queue(shm)->counts, 1);
	aq_job_commit(true);
	for (int i = 0; i < n; i++)
		if (done[i])
		{
			if (committed[i])
				aq_classic_count_commit(shm, &aq_retries[indexes[i]].effect);
			unlink_retry(shm, indexes[i]);
		}
		else
			aq_retries_later(shm, TRY_AGAIN);
	aq_retries_counted(shm);
	if (n == RETRIES_MAX)
		aq_work_post(shm, AQ_WORK_RETRY);
}
