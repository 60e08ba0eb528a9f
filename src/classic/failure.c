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

/*
 * The attempts to dequeue a message that count for retry limits and delays: not
 * those before it came into this queue as a dead letter.
 */
int
aq_failure_attempts(const AqQueue *queue, TupleTableSlot *slot)
{
	int			attempts;

	slot_getsomeattrs(slot, COL_ATTEMPTS + 1);
	attempts = DatumGetInt32(slot->tts_values[COL_ATTEMPTS]);
	if (attempts == 0 || queue->multi)
		return attempts;
	slot_getsomeattrs(slot, COL_EARLIER + 1);
	return slot->tts_isnull[COL_EARLIER] ? attempts : attempts - DatumGetInt32(slot->tts_values[COL_EARLIER]);
}

/* Have there been too many attempts to dequeue a message? */
bool
aq_failure_over_limit(const AqQueue *queue, int attempts)
{
	return queue->max_retries >= 0 && attempts > queue->max_retries && !queue->exception;
}

/* --- dead letters ------------------------------------------------------------------------ */

static struct varlena *
varlena_of(TupleTableSlot *slot, int column)
{
	return slot->tts_isnull[column] ? NULL : (struct varlena *) DatumGetPointer(slot->tts_values[column]);
}

static TimestampTz
time_of(TupleTableSlot *slot, int column)
{
	return slot->tts_isnull[column] ? 0 : DatumGetTimestampTz(slot->tts_values[column]);
}

/* What a row, of either table, says of its attempts and its failure. */
AqDeath
aq_failure_death(TupleTableSlot *slot)
{
	AqDeath		death = {0};

	slot_getsomeattrs(slot, COL_CONSUMER_COLUMNS);
	death.position = DatumGetInt16(slot->tts_values[COL_POSITION]);
	death.attempts = DatumGetInt32(slot->tts_values[COL_ATTEMPTS]);
	if (!slot->tts_isnull[COL_LAST_ERROR])
		death.error = TextDatumGetCString(slot->tts_values[COL_LAST_ERROR]);
	/* there may have been leases that were all given back unseen */
	if (death.attempts > 0)
	{
		death.first = time_of(slot, COL_FIRST_ATTEMPT);
		death.last = time_of(slot, COL_LAST_ATTEMPT);
	}
	death.died = time_of(slot, COL_DIED);
	death.kind = slot->tts_isnull[COL_DEATH] ? AQ_DEATH_RETRIES : DatumGetChar(slot->tts_values[COL_DEATH]);
	return death;
}

/* A message that has failed for n consumers. */
typedef struct Failed
{
	TupleTableSlot *slot;		/* its row of table t */
	int			n;
	AqPutOptions *letters;
} Failed;

static Failed
failed_message(QueueScans *scans, const AqDeath *deaths, int n)
{
	TupleTableSlot *slot = scans->messages.slot;
	Failed		failed = {.slot = slot, .n = n, .letters = palloc0(n * sizeof(AqPutOptions))};
	pg_uuid_t  *original = palloc(sizeof(pg_uuid_t));
	AqMessage	m = {0};

	slot_getallattrs(slot);
	*original = *DatumGetUUIDP(slot->tts_values[slot->tts_isnull[COL_ORIGINAL_ID] ? COL_ID : COL_ORIGINAL_ID]);
	m.enqueue_time = DatumGetTimestampTz(slot->tts_values[COL_ENQUEUE_TIME]);
	m.ready_at = time_of(slot, COL_READY_AT);
	m.expires_at = time_of(slot, COL_EXPIRES_AT);
	m.correlation = varlena_of(slot, COL_CORRELATION);
	if (slot->tts_tupleDescriptor->natts > COL_MESSAGE_KEY)
		m.key = varlena_of(slot, COL_MESSAGE_KEY);
	m.properties = varlena_of(slot, COL_PROPERTIES);
	m.exception_queue = varlena_of(slot, COL_EXCEPTION_QUEUE);
	m.dead_letter = varlena_of(slot, COL_DEAD_LETTER);
	for (int i = 0; i < n; i++)
	{
		aq_exception_letter(scans->queue, &m, &deaths[i], &failed.letters[i]);
		failed.letters[i].original_id = original;
	}
	return failed;
}

/*
 * Moves the message to a queue of the same queue table, by updating its row.  What
 * it says of the queue that it came from is in the dead letter now.
 */
static bool
move_within(QueueScans *scans, AqQueue *target, const AqPutOptions *letter)
{
	const int	columns[] = {COL_QUEUE, COL_STATE, COL_ATTEMPTS, COL_STEP, COL_ODD, COL_DEAD_LETTER, COL_EARLIER,
		COL_NEXT_AT, COL_LEASED_AT, COL_HOLDER, COL_LAST_ERROR, COL_FIRST_ATTEMPT, COL_LAST_ATTEMPT, COL_DIED, COL_DEATH,
		COL_READY_AT, COL_EXPIRES_AT, COL_EXCEPTION_QUEUE, COL_EXCEPTION_QUEUE_ID, COL_TARGETS};
	Key			key = aq_table_row_key(scans->messages.slot);
	Datum		values[lengthof(columns)] = {Int32GetDatum(target->id),
		Int16GetDatum(target->exception ? STATE_EXPIRED : STATE_READY), Int32GetDatum(letter->attempts),
		0, BoolGetDatum(true), PointerGetDatum(letter->dead_letter), Int32GetDatum(letter->attempts)};
	bool		nulls[lengthof(columns)];

	for (int i = 0; i < lengthof(columns); i++)
		nulls[i] = i > 6;
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

/* Puts dead letters into the queue, as new messages. */
static bool
put_letters(AqQueue *source, AqQueue *target, const Failed *failed, int from)
{
	TupleTableSlot *slot = failed->slot;
	AqPutOptions options = {.each = &failed->letters[from]};

	if (from == failed->n)
		return true;
	options.priority = DatumGetInt32(slot->tts_values[COL_PRIORITY]);
	options.sender = varlena_of(slot, COL_SENDER);
	return aq_exception_put(source, DatumGetUUIDP(slot->tts_values[COL_ID]), target, &options, failed->n - from,
							slot->tts_values[COL_PAYLOAD], slot->tts_isnull[COL_PAYLOAD]);
}

/*
 * Moves the message in the slot of scans->messages to the exception queue, once
 * for each of its n deaths, or deletes it if the queue has none.  Within the queue
 * table the first dead letter is the message itself.  Returns false if it must be
 * tried again.
 */
static bool
fail_message(QueueScans *scans, const AqDeath *deaths, int n)
{
	TupleTableSlot *slot = scans->messages.slot;
	Failed		failed;
	AqQueue    *target;
	bool		within;
	bool		moved;

	/*
	 * a consumer may be taking it or have it locked: it must not get into both
	 * queues
	 */
	if (!aq_table_row_lock(scans->messages.rel, slot))
		return false;
	failed = failed_message(scans, deaths, n);
	target = aq_catalog_exception_queue(scans->queue, slot->tts_isnull[COL_EXCEPTION_QUEUE_ID] ? 0
										: DatumGetInt32(slot->tts_values[COL_EXCEPTION_QUEUE_ID]));
	if (target == NULL || target->id == scans->queue->id)
		return aq_table_row_delete(scans->messages.rel, slot) == TM_Ok;
	if (!aq_exception_pin(target))
		return false;
	within = !aq_queue_is_sharded(target) && target->table.id == scans->queue->table.id;
	moved = put_letters(scans->queue, target, &failed, within ? 1 : 0) &&
		(within ? move_within(scans, target, failed.letters) : aq_table_row_delete(scans->messages.rel, slot) == TM_Ok);
	aq_stat_add(AQ_STAT_EXCEPTIONS, moved);
	return moved;
}

/* The failures of the consumers that have failed, into deaths; returns their number. */
static int
failed_consumers(QueueScans *scans, const Bitmapset *targets, const Key *key, AqDeath *deaths)
{
	int			position = -1;
	int			n = 0;

	while ((position = bms_next_member(targets, position)) >= 0)
		if (aq_row_scan_find(&scans->probe, scans->queue->id, position, key))
			deaths[n++] = aq_failure_death(scans->probe.slot);
	return n;
}

static void
delete_consumers(QueueScans *scans, const Bitmapset *targets, const Key *key)
{
	RowScan    *probe = &scans->probe;
	int			position = -1;

	while ((position = bms_next_member(targets, position)) >= 0)
		if (aq_row_scan_find(probe, scans->queue->id, position, key))
			(void) aq_table_row_delete(probe->rel, probe->slot);
}

/*
 * Checks a topic's message, which is deleted when all its consumers have
 * finished with it.  Returns false if it must be checked again.
 */
bool
aq_failure_check_topic(QueueScans *scans, const Key *key)
{
	Bitmapset  *targets;
	AqDeath    *deaths;

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
			deaths = palloc(bms_num_members(targets) * sizeof(AqDeath));
			if (!fail_message(scans, deaths, failed_consumers(scans, targets, key, deaths)))
				return false;
			delete_consumers(scans, targets, key);
			return true;
	}
	return true;
}

/*
 * The row in the slot of rows has failed for its consumer.  Returns false if this
 * must be tried again.
 */
bool
aq_failure_row(QueueScans *scans, RowScan *rows, const AqDeath *death)
{
	const int	columns[] = {COL_STATE, COL_ATTEMPTS, COL_DIED, COL_DEATH, COL_NEXT_AT, COL_FIRST_ATTEMPT, COL_LAST_ATTEMPT};
	Datum		values[] = {Int16GetDatum(STATE_EXPIRED), Int32GetDatum(death->attempts), TimestampTzGetDatum(death->died),
		CharGetDatum(death->kind), 0, TimestampTzGetDatum(death->first), TimestampTzGetDatum(death->last)};
	bool		nulls[] = {false, false, false, false, true, death->first == 0, death->last == 0};
	Key			key = aq_table_row_key(rows->slot);
	bool		done;

	aq_ranges_worker(scans->queue->shm);
	if (!scans->queue->multi)
		done = fail_message(scans, death, 1);
	else
	{
		done = aq_table_row_update(rows->rel, rows->slot, columns, values, nulls, lengthof(columns)) == TM_Ok;
		if (done)
		{
			CommandCounterIncrement();
			if (!aq_failure_check_topic(scans, &key))
				aq_topic_ask(scans->queue, scans->consumers.rel, &key, GetCurrentTimestamp() + TRY_AGAIN);
		}
	}
	if (done)
	{
		aq_classic_notes_add(scans->queue->shm, death->position, NOTE_FAIL, NULL, 1);
		aq_point("failed-moved");
	}
	return done;
}
