/*-------------------------------------------------------------------------
 *
 * failure.c
 *	  Messages that have failed or expired are moved to the exception queue or
 *	  deleted.
 *
 * A message that is over its retry limit or has expired is moved to the
 * exception queue; a topic's message, when all its consumers have finished
 * with it or failed.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "classic/classic_private.h"

#include "access/xact.h"
#include "utils/builtins.h"
#include "utils/uuid.h"

/*
 * pause before the next try if a transaction has locked the message, in
 * microseconds
 */
#define TRY_AGAIN ((int64) 100000)

/* Have there been too many attempts to dequeue a message? */
bool
aq_failure_over_limit(const AqQueue *queue, int attempts)
{
	return queue->max_retries >= 0 && attempts > queue->max_retries && !queue->exception;
}

static struct varlena *
varlena_of(TupleTableSlot *slot, int column)
{
	return slot->tts_isnull[column] ? NULL : (struct varlena *) DatumGetPointer(slot->tts_values[column]);
}

/*
 * Moves the message to a queue of the same queue table, by updating its row.
 */
static bool
move_within(QueueScans *scans, AqQueue *target, int attempts, const char *reason)
{
	const int	columns[] = {COL_QUEUE, COL_STATE, COL_ATTEMPTS, COL_STEP, COL_ODD, COL_NEXT_AT,
	COL_ORIGINAL_QUEUE, COL_REASON, COL_TARGETS};
	Key			key = aq_table_row_key(scans->messages.slot);
	Datum		values[] = {Int32GetDatum(target->id), Int16GetDatum(STATE_EXPIRED), Int32GetDatum(attempts),
		0, BoolGetDatum(true), 0, CStringGetTextDatum(scans->queue->name), CStringGetTextDatum(reason), 0};
	bool		nulls[] = {false, false, false, false, false, true, false, false, true};

	key.step = aq_step_next(target->shm);
	values[3] = Int64GetDatum(key.step);
	if (aq_table_row_update(scans->messages.rel, scans->messages.slot, columns, values, nulls,
					  lengthof(columns)) != TM_Ok)
		return false;
	aq_ranges_announce(target->shm, 0, &key, &key);
	aq_classic_notes_add(target->shm, 0, NOTE_MESSAGES, NULL, 1);
	aq_classic_notes_add(target->shm, 0, NOTE_PUT, NULL, 1);
	return true;
}

/* Moves the message to a queue elsewhere, as a new message. */
static bool
move_outside(QueueScans *scans, AqQueue *target, int attempts, const char *reason)
{
	TupleTableSlot *slot = scans->messages.slot;
	AqPutOptions options = {.attempts = attempts};

	slot_getallattrs(slot);
	options.priority = DatumGetInt32(slot->tts_values[COL_PRIORITY]);
	options.correlation = varlena_of(slot, COL_CORRELATION);
	options.properties = varlena_of(slot, COL_PROPERTIES);
	options.sender = varlena_of(slot, COL_SENDER);
	options.original_id = slot->tts_isnull[COL_ORIGINAL_ID] ? DatumGetUUIDP(slot->tts_values[COL_ID])
		: DatumGetUUIDP(slot->tts_values[COL_ORIGINAL_ID]);
	options.original_queue = (struct varlena *) cstring_to_text(scans->queue->name);
	options.reason = (struct varlena *) cstring_to_text(reason);
	return aq_exception_put(target, &options, 1, slot->tts_values[COL_PAYLOAD], slot->tts_isnull[COL_PAYLOAD]) &&
		aq_table_row_delete(scans->messages.rel, slot) == TM_Ok;
}

/*
 * Moves the message in the slot of scans->messages to the exception queue, or
 * deletes it if the queue has none.  Returns false if it must be tried again.
 */
static bool
fail_message(QueueScans *scans, int attempts, const char *reason)
{
	TupleTableSlot *slot = scans->messages.slot;
	AqQueue    *target;
	bool		moved;

	/*
	 * a consumer may be taking it or have it locked: it must not get into both
	 * queues
	 */
	if (!aq_table_row_lock(scans->messages.rel, slot))
		return false;
	slot_getsomeattrs(slot, COL_EXCEPTION_QUEUE_ID + 1);
	target = aq_catalog_exception_queue(scans->queue, slot->tts_isnull[COL_EXCEPTION_QUEUE_ID] ? 0
								   : DatumGetInt32(slot->tts_values[COL_EXCEPTION_QUEUE_ID]));
	if (target == NULL || target->id == scans->queue->id)
		return aq_table_row_delete(scans->messages.rel, slot) == TM_Ok;
	if (!aq_exception_pin(target))
		return false;
	if (!aq_queue_is_sharded(target) && target->table.id == scans->queue->table.id)
		moved = move_within(scans, target, attempts, reason);
	else
		moved = move_outside(scans, target, attempts, reason);
	aq_stat_add(AQ_STAT_EXCEPTIONS, moved);
	return moved;
}

/*
 * The highest number of attempts among consumers that have failed; clear:
 * deletes their rows.
 */
static int
failed_consumers(QueueScans *scans, const Bitmapset *targets, const Key *key, bool clear)
{
	int			position = -1;
	int			attempts = 0;

	while ((position = bms_next_member(targets, position)) >= 0)
	{
		RowScan	   *probe = &scans->probe;

		if (!aq_row_scan_find(probe, scans->queue->id, position, key))
			continue;
		slot_getsomeattrs(probe->slot, COL_ATTEMPTS + 1);
		attempts = Max(attempts, DatumGetInt32(probe->slot->tts_values[COL_ATTEMPTS]));
		if (clear)
			(void) aq_table_row_delete(probe->rel, probe->slot);
	}
	return attempts;
}

/*
 * Checks a topic's message, which is deleted when all its consumers have
 * finished with it.  Returns false if it must be checked again.
 */
bool
aq_failure_check_topic(QueueScans *scans, const Key *key, const char *reason)
{
	Bitmapset  *targets;

	if (!aq_row_scan_find(&scans->messages, scans->queue->id, 0, key))
		return true;
	if (TransactionIdIsValid(scans->messages.dirty.xmax))
		return false;
	slot_getsomeattrs(scans->messages.slot, COL_TARGETS + 1);
	targets = aq_table_row_targets(scans->messages.slot->tts_values[COL_TARGETS]);
	switch (aq_topic_others(scans->queue, &scans->probe, targets, key, POSITION_CHECK))
	{
		case OTHERS_WAIT:
			return true;
		case OTHERS_UNKNOWN:
			return false;
		case OTHERS_DONE:
			aq_topic_done(scans->queue, &scans->messages);
			return true;
		case OTHERS_FAILED:
			/*
			 * the consumers' rows remain until this succeeds, so that it is
			 * tried again
			 */
			if (!fail_message(scans, failed_consumers(scans, targets, key, false), reason))
				return false;
			(void) failed_consumers(scans, targets, key, true);
			return true;
	}
	return true;
}

/*
 * The row in the slot has failed for its consumer.  Returns false if this must
 * be tried again.
 */
bool
aq_failure_row(QueueScans *scans, RowScan *rows, int position, int attempts, const char *reason)
{
	const int	columns[] = {COL_STATE, COL_ATTEMPTS, COL_NEXT_AT};
	Datum		values[] = {Int16GetDatum(STATE_EXPIRED), Int32GetDatum(attempts), 0};
	bool		nulls[] = {false, false, true};
	Key			key = aq_table_row_key(rows->slot);
	bool		done;

	aq_ranges_worker(scans->queue->shm);
	if (!scans->queue->multi)
		done = fail_message(scans, attempts, reason);
	else
	{
		done = aq_table_row_update(rows->rel, rows->slot, columns, values, nulls, lengthof(columns)) == TM_Ok;
		if (done)
		{
			CommandCounterIncrement();
			if (!aq_failure_check_topic(scans, &key, reason))
				aq_topic_ask(scans->queue, scans->consumers.rel, &key, GetCurrentTimestamp() + TRY_AGAIN);
		}
	}
	if (done)
	{
		aq_classic_notes_add(scans->queue->shm, position, NOTE_FAIL, NULL, 1);
		aq_point("failed-moved");
	}
	return done;
}
