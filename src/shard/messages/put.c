/*-------------------------------------------------------------------------
 *
 * put.c
 *	  Enqueue: choose the stream, reserve slots, insert the rows, make a note.
 *
 * A session stays with one shard of a queue, so that its messages keep their
 * order, and so do all sessions that enqueue for the same producer.  Slots are
 * reserved under the stream's latch, in the order of the calls; the rows are
 * inserted without it; the slots become ready when the transaction commits.
 *
 * If the session fails in between, the abort callback marks the slots as done,
 * because the note exists as soon as the slots are reserved.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/messages/messages_private.h"
#include "shard/partitions/tag.h"

#include "access/heapam.h"
#include "access/table.h"
#include "access/xact.h"
#include "executor/tuptable.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

/* rows that are formed and inserted together */
#define INSERT_BATCH 1000

/* --- opening a partition ---------------------------------------------------------------- */

/* Gives the stream an open partition, unless another session does it first. */
static void
open_partition(AqQueue *queue, Stream *stream, bool keyed)
{
	AqQueueShm *shm = queue->shm;
	Partition  *partition = aq_tables_provide(queue, keyed);
	int64		number;
	bool		used = false;

	aq_point("tables-provided");
	number = aq_heap_next_number(queue);
	aq_chunks_reserve(2);
	aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_PARTITION_OPEN);
	if (stream->open == 0)
	{
		partition->number = number;
		partition->state = PARTITION_OPEN;
		partition->frame = aq_chunks_take();
		partition->referenced = true;
		partition->counted = partition->in_lag = true;
		partition->loading = partition->was_open = false;
		aq_slot_reset(partition, 0);
		partition->expired = partition->made_ready = partition->evicted = 0;
		pg_atomic_write_u64(&partition->browsed, 0);
		pg_atomic_write_u64(&partition->bytes, 0);
		partition->watched = false;
		partition->next_timer = partition->last_take = 0;
		partition->file = 0;
		partition->last_taker = InvalidTransactionId;
		partition->last_lsn = InvalidXLogRecPtr;
		aq_stream_append(stream, partition);
		stream->open = partition->index;
		shard_queue(shm)->opened++; /* only a hint, not exact */
		aq_tables_used(partition);
		used = true;
	}
	aq_latch_free(&stream->latch);
	if (!used)
		aq_tables_unused(partition);
}

/* --- reserving slots ---------------------------------------------------------------------- */

/*
 * Reserves up to count slots in the stream's open partition for messages to
 * these consumers (all: the union of their sets).  Returns the slots in the
 * note.  keyed: the rows need a column for keys, which partitions of an older
 * version do not have.
 */
static void
reserve(AqQueue *queue, Stream *stream, int64 session, uint32 count, Bitmapset *all,
		uint32 timers_each, bool keyed, PutNote *note)
{
	uint64		xid = U64FromFullTransactionId(GetCurrentFullTransactionId());
	bool		tagged = note->key != AQ_NO_CORRELATION_KEY;
	bool		admitted = false;

	for (;;)
	{
		Partition  *partition;
		Frame	   *frame;
		uint32		needs,
					n;

		aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_ENQUEUE_RESERVE);
		partition = partition_at(stream->open);
		if (partition != NULL && keyed && !partition->keyed)
		{
			aq_stream_close(stream, partition);
			aq_settle_check_done(stream, partition);
			partition = NULL;
		}
		if (partition == NULL)
		{
			aq_latch_free(&stream->latch);
			if (!aq_load_reopen(queue->shm, stream))
				open_partition(queue, stream, keyed);
			continue;
		}
		if (!admitted && aq_keep_is_new(partition))
		{
			aq_latch_free(&stream->latch);
			aq_keep_admit(queue->shm);
			admitted = true;
			continue;
		}
		frame = frame_of(partition);
		n = Min(count, PARTITION_SLOTS - partition->reserved);
		needs = aq_frame_needs(stream, frame, partition->reserved, n, all,
							   note->ready_at != 0, n * timers_each);
		if (tagged)
			needs += aq_frame_tags_need(frame, partition->reserved, n);
		if (needs > aq_chunks_reserved())
		{
			aq_latch_free(&stream->latch);
			aq_chunks_reserve(needs);
			continue;
		}

		aq_frame_prepare(stream, frame, partition->reserved, n, all,
						 note->ready_at != 0, n * timers_each);
		if (tagged)
			aq_frame_make_tags(frame, partition->reserved, n);
		note->partition = partition;
		note->first = aq_slot_reserve(partition, n, xid, session, note->expires_at);
		note->count = n;
		note->timers = n * timers_each;
		partition->referenced = true;
		if (partition->reserved == PARTITION_SLOTS)
			aq_stream_close(stream, partition);
		aq_notes_add_put(note);
		aq_latch_free(&stream->latch);
		return;
	}
}

/* --- rows ------------------------------------------------------------------------------------- */

static void
set_varlena(Datum *values, bool *nulls, int column, struct varlena *value)
{
	values[column] = PointerGetDatum(value);
	nulls[column] = value == NULL;
}

/* The columns that each row of a put can have for itself. */
static void
own_columns(const AqPutOptions *options, Datum *values, bool *nulls)
{
	set_varlena(values, nulls, MSG_CORRELATION, options->correlation);
	set_varlena(values, nulls, MSG_PROPERTIES, options->properties);
	set_varlena(values, nulls, MSG_EXCEPTION_QUEUE, options->exception_queue);
	values[MSG_EXCEPTION_QUEUE_ID] = Int32GetDatum(options->exception_queue_id);
	nulls[MSG_EXCEPTION_QUEUE_ID] = options->exception_queue_id == 0;
	values[MSG_ATTEMPTS] = Int16GetDatum(Min(options->attempts, AQ_MAX_ATTEMPTS));
	nulls[MSG_ATTEMPTS] = options->attempts == 0;
	values[MSG_ORIGINAL_ID] = options->original_id ? UUIDPGetDatum(options->original_id) : 0;
	nulls[MSG_ORIGINAL_ID] = options->original_id == NULL;
	set_varlena(values, nulls, MSG_DEAD_LETTER, options->dead_letter);
	set_varlena(values, nulls, MSG_KEY, options->key);
}

/* All columns but the ordinal, the payload and the consumers. */
static void
common_columns(const AqPutOptions *options, int stream, int64 session, Datum *values, bool *nulls)
{
	values[MSG_SESSION] = Int64GetDatum(session);
	values[MSG_ENQUEUE_TIME] = TimestampTzGetDatum(GetCurrentTimestamp());
	values[MSG_STREAM] = Int16GetDatum(stream);
	values[MSG_TARGETS] = 0;
	nulls[MSG_TARGETS] = true;
	values[MSG_READY_AT] = TimestampTzGetDatum(options->ready_at);
	nulls[MSG_READY_AT] = options->ready_at == 0;
	values[MSG_EXPIRES_AT] = TimestampTzGetDatum(options->expires_at);
	nulls[MSG_EXPIRES_AT] = options->expires_at == 0;
	set_varlena(values, nulls, MSG_SENDER, options->sender);
	own_columns(options, values, nulls);
}

/* Message tables differ only in the type of the payload. */
static inline bool
fits(const TupleTableSlot *slot, TupleDesc desc)
{
	TupleDesc	own = slot->tts_tupleDescriptor;

	return own->natts == desc->natts &&
		TupleDescAttr(own, MSG_PAYLOAD)->atttypid == TupleDescAttr(desc, MSG_PAYLOAD)->atttypid;
}

/*
 * Tuple slots for heap_multi_insert(), kept for the session: with many
 * messages in a call, creating and dropping them cost as much as forming the
 * rows.  After an error they may contain freed tuples; the first slot shows
 * that, because it is filled first and cleared last.
 */
static TupleTableSlot **
row_slots(TupleDesc desc, uint32 n)
{
	static MemoryContext context;
	static TupleTableSlot **slots;
	static uint32 nslots;
	MemoryContext old;

	if (n <= nslots && TTS_EMPTY(slots[0]) && fits(slots[0], desc))
		return slots;
	if (context == NULL)
		context = AllocSetContextCreate(TopMemoryContext, "pgaq rows to insert", ALLOCSET_DEFAULT_SIZES);
	MemoryContextReset(context);
	nslots = 0;
	old = MemoryContextSwitchTo(context);
	desc = CreateTupleDescCopy(desc);
	slots = palloc(n * sizeof(TupleTableSlot *));
	for (uint32 i = 0; i < n; i++)
		slots[i] = MakeSingleTupleTableSlot(desc, &TTSOpsHeapTuple);
	nslots = n;
	MemoryContextSwitchTo(old);
	return slots;
}

static void
insert_rows(Relation rel, PutNote *note, Datum *values, bool *nulls, const AqPutOptions *each,
			const Datum *payloads, const bool *payload_nulls, Bitmapset *const *row_targets, bool immediate)
{
	Frame	   *frame = frame_of(note->partition);
	TupleDesc	desc = RelationGetDescr(rel);
	uint32		batch = Min(note->count, INSERT_BATCH);
	TupleTableSlot **rows = row_slots(desc, batch);
	uint16		tag = tag_of(note->key);
	Bitmapset  *last_targets = NULL;
	uint64		bytes = 0;

	for (uint32 done = 0; done < note->count; done += batch)
	{
		batch = Min(note->count - done, INSERT_BATCH);
		for (uint32 i = 0; i < batch; i++)
		{
			uint32		m = done + i;
			HeapTuple	tuple;

			values[MSG_ORDINAL] = Int64GetDatum(ordinal_of(note->partition, note->first + m));
			values[MSG_PAYLOAD] = payloads[m];
			nulls[MSG_PAYLOAD] = payload_nulls[m];
			if (each != NULL)
				own_columns(&each[m], values, nulls);
			tag_set(frame, note->first + m, each != NULL ? tag_of(aq_waiters_key(each[m].correlation)) : tag);
			if (row_targets != NULL && row_targets[m] != last_targets)
			{
				last_targets = row_targets[m];
				values[MSG_TARGETS] = PointerGetDatum(aq_store_targets_to_bytes(last_targets));
				nulls[MSG_TARGETS] = false;
			}
			tuple = heap_form_tuple(desc, values, nulls);
			bytes += tuple->t_len;
			ExecForceStoreHeapTuple(tuple, rows[i], true);
		}
		aq_point("rows-formed");
		if (batch == 1)
		{
			HeapTuple	tuple = ExecFetchSlotHeapTuple(rows[0], false, NULL);

			if (immediate)
				aq_frozen_begin(rel);
			heap_insert(rel, tuple, GetCurrentCommandId(true), immediate ? HEAP_INSERT_FROZEN : 0, NULL);
			rows[0]->tts_tid = tuple->t_self;
		}
		else
			heap_multi_insert(rel, rows, batch, GetCurrentCommandId(true), 0, NULL);
		for (uint32 i = 0; i < batch; i++)
			aq_slot_locate(slot_at(frame, note->first + done + i), ItemPointerGetBlockNumber(&rows[i]->tts_tid),
						   ItemPointerGetOffsetNumber(&rows[i]->tts_tid));
		for (uint32 i = batch; i-- > 0;)
			ExecClearTuple(rows[i]);
	}
	note->inserted = true;
	aq_body_count(note->partition, bytes);
}

/* --- put ------------------------------------------------------------------------------------------ */

/* A message of another node has its origin as a consumer; its row does not say so. */
static Bitmapset *
with_origin(Bitmapset *const *targets)
{
	return bms_add_member(targets != NULL ? bms_copy(targets[0]) : bms_make_singleton(0), AQ_ORIGIN_POSITION);
}

/* Copies the consumers into the note, for the commit callback. */
static void
note_targets(PutNote *note, uint32 n, Bitmapset *const *targets, bool held)
{
	MemoryContext old;

	if (targets == NULL && !held)
		return;
	old = MemoryContextSwitchTo(aq_notes_context());
	if (held)
	{
		/* all are for the unit's consumer */
		note->shared_targets = with_origin(targets);
		MemoryContextSwitchTo(old);
		return;
	}
	note->shared_targets = bms_copy(targets[0]);
	for (uint32 i = 1; i < n; i++)
	{
		if (targets[i] == targets[0] || bms_equal(targets[i], targets[0]))
			continue;
		note->targets = palloc(n * sizeof(Bitmapset *));
		for (uint32 j = 0; j < n; j++)
			note->targets[j] = bms_copy(targets[j]);
		break;
	}
	MemoryContextSwitchTo(old);
}

static Bitmapset *
union_of(uint32 n, Bitmapset *const *targets)
{
	Bitmapset  *all;

	if (targets == NULL)
		return bms_make_singleton(0);
	all = bms_copy(targets[0]);
	for (uint32 i = 1; i < n; i++)
		if (targets[i] != targets[i - 1])
			all = bms_add_members(all, targets[i]);
	return all;
}

/* Makes the stream if the owner's share allows it. */
static Stream *
stream_for(AqQueueShm *shm, int number)
{
	Stream	   *stream = aq_stream_find(shm, number);

	if (stream != NULL)
		return stream;
	aq_share_check(AQ_SHARE_STREAMS, shm, 1);
	return aq_stream_make(shm, number);
}

/* Has one of the messages a key? */
static bool
have_keys(const AqPutOptions *options, uint32 n)
{
	if (options->each == NULL)
		return options->key != NULL;
	for (uint32 i = 0; i < n; i++)
		if (options->each[i].key != NULL)
			return true;
	return false;
}

/* All messages go into one shard. */
static void
put_into(AqQueue *queue, int shard, const AqPutOptions *options, uint32 n, const Datum *payloads, const bool *nulls,
		 Bitmapset *const *targets, pg_uuid_t *ids)
{
	int64		session = options->producer ? options->producer : aq_schema_session_identity();
	bool		held = options->held != 0;
	bool		keyed = have_keys(options, n);
	Stream	   *stream = stream_for(queue->shm, stream_number(shard, options->priority, options->ready_at != 0));
	uint32		timers_each = (options->ready_at != 0 ? 1 : 0) + (options->expires_at != 0 ? 1 : 0);
	Datum		values[MSG_COLUMNS];
	bool		row_nulls[MSG_COLUMNS] = {0};
	uint32		done = 0;

	common_columns(options, stream->number, session, values, row_nulls);
	while (done < n)
	{
		PutNote    *note = aq_notes_new_put(queue->shm);
		Relation	rel;

		note->ready_at = options->ready_at;
		note->expires_at = options->expires_at;
		note->key = options->each == NULL ? aq_waiters_key(options->correlation) : AQ_ANY_KEY;
		note_targets(note, n - done, targets ? targets + done : NULL, held);
		reserve(queue, stream, session, n - done,
				held ? note->shared_targets : union_of(n - done, targets ? targets + done : NULL),
				timers_each, keyed, note);
		aq_point("slots-reserved");

		rel = aq_heap_open_messages(note->partition, RowExclusiveLock);
		aq_payload_check_column(queue, RelationGetDescr(rel), MSG_PAYLOAD);
		insert_rows(rel, note, values, row_nulls, options->each ? options->each + done : NULL, payloads + done, nulls + done,
					targets ? targets + done : NULL, options->immediate);
		table_close(rel, NoLock);
		for (uint32 i = 0; i < note->count; i++)
			ids[done + i] = aq_message_id(queue->shard_key, stream->number,
										  ordinal_of(note->partition, note->first + i));
		done += note->count;
		if (options->immediate)
			aq_frozen_publish(note);
		else
			aq_point("rows-inserted");
	}
}

/*
 * Messages with keys of their own: shard by shard, the messages of each in their
 * order.  shards: of each message.
 */
static void
put_by_shards(AqQueue *queue, const uint8 *shards, const AqPutOptions *options, uint32 n, const Datum *payloads,
			  const bool *nulls, Bitmapset *const *targets, pg_uuid_t *ids)
{
	AqPutOptions common = *options;
	AqPutOptions *each = palloc(n * sizeof(AqPutOptions));
	Datum	   *values = palloc(n * sizeof(Datum));
	bool	   *value_nulls = palloc(n * sizeof(bool));
	Bitmapset **sets = palloc(n * sizeof(Bitmapset *));
	pg_uuid_t  *made = palloc(n * sizeof(pg_uuid_t));

	common.each = each;
	for (int shard = 0; shard < queue->shards; shard++)
	{
		uint32		count = 0;

		for (uint32 i = 0; i < n; i++)
		{
			if (shards[i] != shard)
				continue;
			each[count] = options->each[i];
			values[count] = payloads[i];
			value_nulls[count] = nulls[i];
			if (targets != NULL)
				sets[count] = targets[i];
			count++;
		}
		if (count == 0)
			continue;
		put_into(queue, shard, &common, count, values, value_nulls, targets != NULL ? sets : NULL, made);
		for (uint32 i = 0, j = 0; i < n; i++)
			if (shards[i] == shard)
				ids[i] = made[j++];
	}
	pfree(made);
	pfree(sets);
	pfree(value_nulls);
	pfree(values);
	pfree(each);
}

/* The shard of a message with this key, unless an affinity is given; NULL: the one of the session or producer. */
static int
shard_of(const AqQueue *queue, const AqPutOptions *options, const struct varlena *key)
{
	if (options->held != 0)
		return options->held;
	if (options->affinity != 0)
		return options->affinity % queue->shards;
	if (key != NULL)
		return aq_message_key_shard(key, queue->shards);
	return (options->producer ? (uint64) options->producer : aq_schema_session_number()) % queue->shards;
}

void
aq_put(AqQueue *queue, const AqPutOptions *options, uint32 n,
	   const Datum *payloads, const bool *nulls,
	   Bitmapset *const *targets, pg_uuid_t *ids)
{
	int			shard = shard_of(queue, options, options->each != NULL ? options->each[0].key : options->key);
	uint8	   *shards = NULL;

	if (options->producer)
		aq_doubt_pass(queue->shm);
	for (uint32 i = 1; options->each != NULL && i < n; i++)
	{
		int			own = shard_of(queue, options, options->each[i].key);

		if (shards == NULL && own == shard)
			continue;
		if (shards == NULL)
		{
			shards = palloc(n);
			memset(shards, shard, n);
		}
		shards[i] = own;
	}
	if (shards != NULL)
		put_by_shards(queue, shards, options, n, payloads, nulls, targets, ids);
	else
		put_into(queue, shard, options, n, payloads, nulls, targets, ids);
	aq_chunks_trim();
}
