/*-------------------------------------------------------------------------
 *
 * classic_put.c
 *	  Enqueue into a queue table: keys, rows, announcement.
 *
 * A message's key consists of the columns of the sort list and a step (see
 * step.c), which is also part of the message's id.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "classic/classic_private.h"

#include "access/heapam.h"
#include "access/table.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/uuid.h"

/* rows that are formed and inserted together */
#define INSERT_BATCH 1000

/*
 * the largest distance at which a message is put before another one, even if
 * there is more room
 */
#define BEFORE_ROOM (STEP_GAP << 32)

/*
 * --- keys
 * ---------------------------------------------------------------------------
 */

static Key
ordinary_key(AqQueue *queue, const AqPutOptions *options, int64 step)
{
	const char *sort = queue->table.sort;
	Key			key = {0, 0, step};

	if (sort[0] == AQ_SORT_PRIORITY)
		key.key1 = options->priority;
	else if (sort[0] == AQ_SORT_ENQUEUE_TIME && sort[1] == AQ_SORT_PRIORITY)
	{
		key.key1 = step >> STEP_SHIFT;
		key.key2 = options->priority;
	}
	if (sorts_by_commit(queue))
		key.key2 = KEY_PENDING;
	return key;
}

/*
 * The step that the message in the slot got when it was enqueued; its key may
 * contain another step.
 */
static int64
enqueue_step(AqQueue *queue, TupleTableSlot *slot)
{
	int64		step;

	slot_getsomeattrs(slot, COL_ID + 1);
	return aq_step_of_id(DatumGetUUIDP(slot->tts_values[COL_ID]), queue->key, &step) ? step : 0;
}

/*
 * The distance at which a message is put before the relative message.  room: the
 * distance between the relative message and the message in front of it.  Messages
 * are often put one after the other at nearly the same position, so as much room
 * as possible is left where the next one is expected:
 *
 *	front_is_newer: the message in front was put before the same relative message;
 *	the next one is expected there, too.
 *	odd: the relative message was itself put out of order, so each message is put
 *	before the latest one.
 *	Otherwise, nothing is known about the next one.
 */
static int64
distance(int64 room, bool front_is_newer, bool odd)
{
	if (front_is_newer)
		return room - Max(room / 512, 1);
	return odd ? Max(room / 16, 1) : room - Max(room / 16, 1);
}

/*
 * The delay, in microseconds, with which the message in the slot was enqueued.
 */
static int64
delay_of(TupleTableSlot *slot)
{
	if (slot->tts_isnull[COL_READY_AT])
		return 0;
	return DatumGetTimestampTz(slot->tts_values[COL_READY_AT]) - DatumGetTimestampTz(slot->tts_values[COL_ENQUEUE_TIME]);
}

/* A key between the relative message and the message in front of it. */
static Key
key_before(AqQueue *queue, const AqPutOptions *options, RowScan *rows)
{
	const Key	first = KEY_FIRST;
	Key			key,
				last,
				previous;
	int64		room = BEFORE_ROOM,
				enqueued;
	bool		odd,
				front_is_newer = false;

	if (!aq_row_scan_find_id(rows, queue, options->before) || TransactionIdIsValid(rows->dirty.xmin) ||
		TransactionIdIsValid(rows->dirty.xmax))
		ereport(ERROR,
				aq_error(AQ_ERR_RELATIVE_UNDEFINED, "the relative message is not in queue \"%s\"",
						 queue->name),
				errhint("It may already have been dequeued."));
	slot_getsomeattrs(rows->slot, COL_READY_AT + 1);
	if (options->delay > delay_of(rows->slot))
		ereport(ERROR,
				aq_error(AQ_ERR_DEVIATION_DELAY, "the delay is longer than that of the relative message"));
	if (strchr(queue->table.sort, AQ_SORT_PRIORITY) != NULL &&
		options->priority > DatumGetInt32(rows->slot->tts_values[COL_PRIORITY]))
		ereport(ERROR,
				aq_error(AQ_ERR_DEVIATION_PRIORITY, "the relative message is more urgent"),
				errhint("Use a priority of %d or less.", DatumGetInt32(rows->slot->tts_values[COL_PRIORITY])));
	key = last = aq_table_row_key(rows->slot);
	odd = DatumGetBool(rows->slot->tts_values[COL_ODD]);
	enqueued = enqueue_step(queue, rows->slot);
	last.step--;
	aq_row_scan_seek(rows, queue->id, 0, &last, BackwardScanDirection);
	if (aq_row_scan_next(rows, &first, &previous) && previous.key1 == key.key1 && previous.key2 == key.key2)
	{
		room = Min(room, key.step - previous.step);
		front_is_newer = enqueue_step(queue, rows->slot) > enqueued;
	}
	if (room < 2)
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "there is no room before the message"),
				errhint("Too many messages were put before it. Put this one before another message, or at the top."));
	key.step -= distance(room, front_is_newer, odd);
	return key;
}

/* A key before all existing messages. */
static bool
key_top(AqQueue *queue, RowScan *rows, Key *key)
{
	const Key	first = KEY_FIRST,
				last = KEY_LAST;

	aq_row_scan_seek(rows, queue->id, 0, &first, ForwardScanDirection);
	if (!aq_row_scan_next(rows, &last, key))
		return false;
	key->step -= STEP_GAP;
	return true;
}

/* The key of a new message; the options may deviate from the order. */
static Key
key_of(AqQueue *queue, const AqPutOptions *options, int64 step)
{
	Key			key = ordinary_key(queue, options, step);
	RowScan		rows;

	if (!options->top && options->before == NULL)
		return key;
	aq_row_scan_open(&rows, queue, queue->table.messages, RowExclusiveLock);
	if (options->before != NULL)
		key = key_before(queue, options, &rows);
	else
		(void) key_top(queue, &rows, &key);
	aq_row_scan_close(&rows, false);
	return key;
}

/* --- rows ------------------------------------------------------------------------------ */

static void
set_varlena(Datum *values, bool *nulls, int column, struct varlena *value)
{
	values[column] = PointerGetDatum(value);
	nulls[column] = value == NULL;
}

static void
set_time(Datum *values, bool *nulls, int column, TimestampTz when)
{
	values[column] = TimestampTzGetDatum(when);
	nulls[column] = when == 0;
}

/*
 * The columns that both tables have and that are the same for all messages of one
 * call.
 */
static void
line_columns(AqQueue *queue, const AqPutOptions *options, bool rows, Datum *values, bool *nulls)
{
	values[COL_QUEUE] = Int32GetDatum(queue->id);
	values[COL_POSITION] = Int16GetDatum(0);
	values[COL_STATE] = Int16GetDatum(queue->exception ? STATE_EXPIRED
									  : options->ready_at ? STATE_WAITING : STATE_READY);
	values[COL_ATTEMPTS] = Int32GetDatum(options->attempts);
	set_time(values, nulls, COL_NEXT_AT,
			 !rows ? 0 : options->ready_at ? options->ready_at : options->expires_at);
	for (int i = COL_DEQUEUE_TIME; i < COL_CONSUMER_COLUMNS; i++)
		nulls[i] = true;
}

/* The columns that can differ between the messages of one call. */
static void
own_columns(const AqPutOptions *options, Datum *values, bool *nulls)
{
	set_varlena(values, nulls, COL_CORRELATION, options->correlation);
	set_varlena(values, nulls, COL_PROPERTIES, options->properties);
	set_varlena(values, nulls, COL_EXCEPTION_QUEUE, options->exception_queue);
	values[COL_EXCEPTION_QUEUE_ID] = Int32GetDatum(options->exception_queue_id);
	nulls[COL_EXCEPTION_QUEUE_ID] = options->exception_queue_id == 0;
	values[COL_ATTEMPTS] = values[COL_EARLIER] = Int32GetDatum(options->attempts);
	nulls[COL_EARLIER] = options->attempts == 0;
	values[COL_ORIGINAL_ID] = options->original_id ? UUIDPGetDatum(options->original_id) : 0;
	nulls[COL_ORIGINAL_ID] = options->original_id == NULL;
	set_varlena(values, nulls, COL_DEAD_LETTER, options->dead_letter);
	set_varlena(values, nulls, COL_MESSAGE_KEY, options->key);
}

static void
message_columns(AqQueue *queue, const AqPutOptions *options, Datum *values, bool *nulls)
{
	line_columns(queue, options, !queue->multi, values, nulls);
	values[COL_PRIORITY] = Int32GetDatum(options->priority);
	/*
	 * the time from which ready_at was computed: the difference is the delay,
	 * which key_before compares
	 */
	values[COL_ENQUEUE_TIME] = TimestampTzGetDatum(options->ready_at ? options->ready_at - options->delay
												   : GetCurrentTimestamp());
	values[COL_ENQUEUE_USER] = ObjectIdGetDatum(GetUserId());
	values[COL_ENQUEUE_XID] = Int64GetDatum(U64FromFullTransactionId(GetTopFullTransactionId()));
	values[COL_SESSION] = Int64GetDatum(options->producer ? options->producer : aq_schema_session_identity());
	set_time(values, nulls, COL_READY_AT, options->ready_at);
	set_time(values, nulls, COL_EXPIRES_AT, options->expires_at);
	set_varlena(values, nulls, COL_SENDER, options->sender);
	values[COL_GROUP] = values[COL_ENQUEUE_XID];
	nulls[COL_GROUP] = !queue->table.grouping;
	nulls[COL_TARGETS] = true;
	own_columns(options, values, nulls);
}

static void
set_key(Datum *values, const Key *key)
{
	values[COL_KEY1] = Int64GetDatum(key->key1);
	values[COL_KEY2] = Int64GetDatum(key->key2);
	values[COL_STEP] = Int64GetDatum(key->step);
}

/* Rows to be inserted together. */
typedef struct Batch
{
	Relation	rel;
	TupleTableSlot *slots[INSERT_BATCH];
	int			nslots;			/* slots created */
	int			n;				/* rows filled in */
} Batch;

static Batch *
batch_begin(AqQueue *queue, Oid table)
{
	Batch	   *batch = palloc(sizeof(Batch));

	batch->rel = aq_row_scan_open_table(queue, table, RowExclusiveLock);
	batch->nslots = batch->n = 0;
	return batch;
}

static void
batch_flush(Batch *batch)
{
	if (batch->n > 0)
		aq_table_row_insert(batch->rel, batch->slots, batch->n);
	for (int i = 0; i < batch->n; i++)
		ExecClearTuple(batch->slots[i]);
	batch->n = 0;
}

static void
batch_add(Batch *batch, Datum *values, bool *nulls)
{
	TupleDesc	desc = RelationGetDescr(batch->rel);

	if (batch->n == INSERT_BATCH)
		batch_flush(batch);
	if (batch->n == batch->nslots)
		batch->slots[batch->nslots++] = MakeSingleTupleTableSlot(desc, &TTSOpsHeapTuple);
	ExecForceStoreHeapTuple(heap_form_tuple(desc, values, nulls), batch->slots[batch->n++], true);
}

static void
batch_end(Batch *batch)
{
	batch_flush(batch);
	for (int i = 0; i < batch->nslots; i++)
		ExecDropSingleTupleTableSlot(batch->slots[i]);
	table_close(batch->rel, NoLock);
	pfree(batch);
}

/* --- put ---------------------------------------------------------------------------------- */

typedef struct Put
{
	AqQueue    *queue;
	const AqPutOptions *options;
	Batch	   *messages;
	Batch	   *consumers;		/* NULL unless the queue is a topic */
	Key			lowest,
				highest;
	Bitmapset  *all_consumers;
} Put;

/* Adds the rows of the message's consumers. */
static void
put_consumers(Put *put, const Key *key, const Bitmapset *targets)
{
	Datum		values[COL_CONSUMER_COLUMNS];
	bool		nulls[COL_CONSUMER_COLUMNS] = {0};
	int			position = -1;

	line_columns(put->queue, put->options, true, values, nulls);
	set_key(values, key);
	while ((position = bms_next_member(targets, position)) >= 0)
	{
		values[COL_POSITION] = Int16GetDatum(position);
		batch_add(put->consumers, values, nulls);
	}
}

/* Announces the messages, and notes them for the commit. */
static void
finish(Put *put, uint32 n, Bitmapset *const *targets)
{
	AqQueueShm *shm = put->queue->shm;
	TimestampTz when = put->options->ready_at ? put->options->ready_at : put->options->expires_at;
	NoteKind	kind = put->options->ready_at ? NOTE_PUT_LATER : NOTE_PUT;

	if (when != 0)
		aq_due_time_announce(shm, when);
	if (targets == NULL)
	{
		aq_ranges_announce(shm, 0, &put->lowest, &put->highest);
		aq_classic_notes_add(shm, 0, kind, NULL, n);
	}
	else
	{
		aq_ranges_announce_set(shm, put->all_consumers, &put->lowest, &put->highest);
		for (uint32 i = 0; i < n;)
		{
			uint32		same = i + 1;
			int			position = -1;

			while (same < n && targets[same] == targets[i])
				same++;
			while ((position = bms_next_member(targets[i], position)) >= 0)
				aq_classic_notes_add(shm, position, kind, NULL, same - i);
			i = same;
		}
	}
	aq_classic_notes_add_messages(shm, put->options, n);
}

/* Asks for the column for keys if one of the messages has a key. */
static void
need_key_column(AqQueue *queue, const AqPutOptions *options, uint32 n)
{
	for (uint32 i = 0; i < n; i++)
	{
		const AqPutOptions *own = options->each != NULL ? &options->each[i] : options;

		if (own->key != NULL)
			aq_classic_tables_ask_for_keys(queue, own->key_is_group);
	}
}

void
aq_classic_put(AqQueue *queue, const AqPutOptions *options, uint32 n,
			   const Datum *payloads, const bool *nulls,
			   Bitmapset *const *targets, pg_uuid_t *ids)
{
	Put			put = {.queue = queue, .options = options};
	Datum		values[COL_MESSAGE_COLUMNS];
	bool		row_nulls[COL_MESSAGE_COLUMNS] = {0};
	Bitmapset  *last_targets = NULL;

	message_columns(queue, options, values, row_nulls);
	put.messages = batch_begin(queue, queue->table.messages);
	if (RelationGetDescr(put.messages->rel)->natts <= COL_MESSAGE_KEY)
		need_key_column(queue, options, n);
	put.consumers = targets != NULL ? batch_begin(queue, queue->table.consumers) : NULL;
	for (uint32 i = 0; i < n; i++)
	{
		int64		step = aq_step_next(queue->shm);
		Key			key;

		/* the key of each message depends on those before it */
		if (i > 0 && (options->top || options->before != NULL))
		{
			batch_flush(put.messages);
			CommandCounterIncrement();
		}
		key = key_of(queue, options, step);
		if (key.key2 == KEY_PENDING)
			aq_commit_order_note(queue, &key);
		if (i == 0 || key_compare(&key, &put.lowest) < 0)
			put.lowest = key;
		if (i == 0 || key_compare(&key, &put.highest) > 0)
			put.highest = key;
		ids[i] = aq_step_message_id(queue->key, step);
		set_key(values, &key);
		values[COL_ID] = UUIDPGetDatum(&ids[i]);
		values[COL_ODD] = BoolGetDatum(key.key1 != 0 || key.key2 != 0 || key.step != step);
		values[COL_PAYLOAD] = payloads[i];
		row_nulls[COL_PAYLOAD] = nulls[i];
		if (options->each != NULL)
			own_columns(&options->each[i], values, row_nulls);
		if (targets != NULL)
		{
			if (targets[i] != last_targets)
			{
				last_targets = targets[i];
				put.all_consumers = bms_add_members(put.all_consumers, last_targets);
				values[COL_TARGETS] = PointerGetDatum(aq_store_targets_to_bytes(last_targets));
				row_nulls[COL_TARGETS] = false;
			}
			put_consumers(&put, &key, targets[i]);
		}
		batch_add(put.messages, values, row_nulls);
	}
	batch_end(put.messages);
	if (put.consumers != NULL)
		batch_end(put.consumers);
	aq_point("rows-inserted");

	/* so that the same command can dequeue them */
	CommandCounterIncrement();
	finish(&put, n, targets);
}
