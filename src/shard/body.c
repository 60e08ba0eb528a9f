/*-------------------------------------------------------------------------
 *
 * body.c
 *	  The bodies of large messages, apart from their payloads, in chunks.
 *
 * A chunk is a row of its message's table, so it goes with its message: rolled
 * back with it, truncated with its partition.  Its ordinal is the complement of the
 * message's; see MSG_ORDINAL.  Nothing points to it: the table is scanned for the
 * chunks of a message, once per message and session.  The scan reads no data of
 * chunks, because these are in the TOAST table.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/shard_private.h"

#include "access/heapam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

int			aq_body_partition_kb = 256 * 1024;

/* --- when a partition is full ----------------------------------------------------------- */

/*
 * Counts bytes that were written to the partition's table, and closes the partition
 * when they are enough, so that a consumed body does not wait for 16384 messages
 * before it is truncated.  The caller has a put in the partition.
 */
void
aq_body_count(Partition *partition, uint64 bytes)
{
	const uint64 most = (uint64) aq_body_partition_kb * 1024;
	Stream	   *stream;

	if (pg_atomic_add_fetch_u64(&partition->bytes, bytes) < most || partition->state != PARTITION_OPEN)
		return;
	stream = stream_at(partition->stream);
	aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_ENQUEUE_RESERVE);
	aq_stream_close(stream, partition);
	aq_latch_free(&stream->latch);
}

/* --- writing ---------------------------------------------------------------------------- */

/* The partition of a message that this transaction has enqueued; NULL: it has not. */
static Partition *
own_partition(AqQueueShm *shm, int stream_no, int64 ordinal)
{
	PutNote   **notes;
	int			n = aq_notes_puts(&notes);

	for (int i = n - 1; i >= 0; i--)
	{
		Partition  *partition = notes[i]->partition;
		uint32		slot = ordinal % PARTITION_SLOTS;

		if (notes[i]->shm == shm && partition->number == ordinal / PARTITION_SLOTS &&
			stream_at(partition->stream)->number == stream_no &&
			slot >= notes[i]->first && slot < notes[i]->first + notes[i]->count)
			return partition;
	}
	return NULL;
}

static HeapTuple
chunk_row(TupleDesc desc, int stream_no, int64 ordinal, int32 number, bytea *data)
{
	Datum		values[MSG_COLUMNS] = {0};
	bool		nulls[MSG_COLUMNS];

	memset(nulls, true, sizeof(nulls));
	values[MSG_ORDINAL] = Int64GetDatum(~ordinal);
	values[MSG_SESSION] = Int64GetDatum(number);
	values[MSG_ENQUEUE_TIME] = TimestampTzGetDatum(GetCurrentTimestamp());
	values[MSG_STREAM] = Int16GetDatum(stream_no);
	values[MSG_TARGETS] = PointerGetDatum(data);
	nulls[MSG_ORDINAL] = nulls[MSG_SESSION] = nulls[MSG_ENQUEUE_TIME] = nulls[MSG_STREAM] = nulls[MSG_TARGETS] = false;
	return heap_form_tuple(desc, values, nulls);
}

/* --- each chunk once -------------------------------------------------------------------- */

typedef struct Place
{
	int32		number;
	ItemPointerData tid;
} Place;

typedef struct MessageKey
{
	int64		ordinal;
	uint64		table;			/* without padding */
} MessageKey;

/*
 * The chunks of a message that this transaction has written, in the order of their
 * numbers.  Those of a subtransaction that was rolled back are among them.
 */
typedef struct Written
{
	MessageKey	key;
	int			n;
	int			size;
	Place	   *places;
} Written;

static HTAB *written;			/* NULL: the transaction has written none */
static MemoryContext written_context;	/* ends with the transaction, also when it is prepared */

static void
forget_written(void *arg)
{
	written = NULL;
	written_context = NULL;
}

static void
begin_written(void)
{
	HASHCTL		control = {.keysize = sizeof(MessageKey),.entrysize = sizeof(Written)};
	MemoryContext context = AllocSetContextCreate(TopTransactionContext, "pgaq chunks", ALLOCSET_SMALL_SIZES);
	MemoryContextCallback *callback = MemoryContextAlloc(context, sizeof(MemoryContextCallback));

	control.hcxt = context;
	*callback = (MemoryContextCallback) {.func = forget_written};
	written = hash_create("pgaq chunks", 16, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	written_context = context;
	MemoryContextRegisterResetCallback(context, callback);
}

static Written *
find_written(Oid table, int64 ordinal)
{
	MessageKey	key = {.ordinal = ordinal,.table = table};
	Written    *message;
	bool		found;

	if (written == NULL)
		begin_written();
	message = hash_search(written, &key, HASH_ENTER, &found);
	if (!found)
	{
		message->n = message->size = 0;
		message->places = NULL;
	}
	return message;
}

/* The index of the first place with the number or a higher one.  Numbers mostly come in their order. */
static int
place_index(const Written *message, int32 number)
{
	int			low = 0;
	int			high = message->n;

	if (high > 0 && message->places[high - 1].number < number)
		return high;
	while (low < high)
	{
		int			middle = (low + high) / 2;

		if (message->places[middle].number < number)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void
note_written(Written *message, int at, int32 number, const ItemPointerData *tid)
{
	bool		replaces = at < message->n && message->places[at].number == number;

	if (!replaces && message->n == message->size)
	{
		int			size = Max(message->size * 2, 16);

		message->places = message->places == NULL ? MemoryContextAlloc(written_context, size * sizeof(Place))
			: repalloc(message->places, size * sizeof(Place));
		message->size = size;
	}
	if (!replaces)
		memmove(&message->places[at + 1], &message->places[at], (message->n++ - at) * sizeof(Place));
	message->places[at] = (Place) {.number = number,.tid = *tid};
}

/* Is the row there, which this transaction has inserted?  Not after a rollback to a savepoint. */
static bool
is_there(Relation rel, const ItemPointerData *tid)
{
	HeapTupleData tuple = {.t_self = *tid};
	Buffer		buffer;

	if (!heap_fetch(rel, SnapshotSelf, &tuple, &buffer, false))
		return false;
	ReleaseBuffer(buffer);
	return true;
}

AqBodyWrite
aq_body_write(AqQueue *queue, const pg_uuid_t *id, int32 number, bytea *data)
{
	int			stream_no,
				at;
	int64		ordinal;
	Partition  *partition;
	Relation	rel;
	HeapTuple	tuple;
	Written    *message;
	AqBodyWrite result = AQ_BODY_IS_THERE;

	if (!aq_message_id_parse(id, queue->shard_key, &stream_no, &ordinal))
		return AQ_BODY_NOT_OWN;
	partition = own_partition(queue->shm, stream_no, ordinal);
	if (partition == NULL)
		return AQ_BODY_NOT_OWN;
	rel = table_open(partition->messages, RowExclusiveLock);
	message = find_written(partition->messages, ordinal);
	at = place_index(message, number);
	if (at == message->n || message->places[at].number != number || !is_there(rel, &message->places[at].tid))
	{
		tuple = chunk_row(RelationGetDescr(rel), stream_no, ordinal, number, data);
		heap_insert(rel, tuple, GetCurrentCommandId(true), 0, NULL);
		note_written(message, at, number, &tuple->t_self);
		aq_body_count(partition, VARSIZE_ANY(data));
		heap_freetuple(tuple);
		result = AQ_BODY_WRITTEN;
	}
	table_close(rel, NoLock);
	return result;
}

/* --- reading ---------------------------------------------------------------------------- */

/* Where the chunks of the message are that was read last. */
static struct
{
	Oid			table;
	uint32		file;
	int64		ordinal;
	bytea	   *targets;		/* of the message; NULL: none */
	int			n;
	int			size;
	Place	   *places;			/* in the order of the rows, which mostly is that of their numbers */
}			found;
static MemoryContext found_context;

/* The table of the message's partition; InvalidOid: it is not there any more. */
static Oid
table_of(AqQueue *queue, int stream_no, int64 ordinal)
{
	Stream	   *stream = aq_stream_find(queue->shm, stream_no);
	Partition  *partition;
	Oid			table = InvalidOid;

	if (stream == NULL)
		return InvalidOid;
	aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_DEQUEUE_BROWSE);
	partition = partition_at(stream->head);
	while (partition != NULL && partition->number < ordinal / PARTITION_SLOTS)
		partition = partition_at(partition->next);
	if (partition != NULL && partition->number == ordinal / PARTITION_SLOTS)
		table = partition->messages;
	aq_latch_free(&stream->latch);
	return table;
}

static void
add_place(int32 number, const ItemPointerData *tid)
{
	if (found.n == found.size)
	{
		found.size = Max(found.size * 2, 64);
		found.places = found.places == NULL ? MemoryContextAlloc(found_context, found.size * sizeof(Place))
			: repalloc(found.places, found.size * sizeof(Place));
	}
	found.places[found.n++] = (Place) {.number = number,.tid = *tid};
}

/*
 * The rows are read as they are now: a message that was dequeued is often not in the
 * transaction's snapshot.
 */
static void
find_chunks(Relation rel, int64 ordinal)
{
	TableScanDesc scan;
	HeapTuple	tuple;
	TupleDesc	desc = RelationGetDescr(rel);

	if (found_context == NULL)
		found_context = AllocSetContextCreate(TopMemoryContext, "pgaq bodies", ALLOCSET_SMALL_SIZES);
	MemoryContextReset(found_context);
	memset(&found, 0, sizeof(found));
	scan = table_beginscan(rel, SnapshotSelf, 0, NULL);
	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		bool		isnull;
		int64		row = DatumGetInt64(heap_getattr(tuple, MSG_ORDINAL + 1, desc, &isnull));

		CHECK_FOR_INTERRUPTS();
		if (row == ~ordinal)
			add_place(DatumGetInt64(heap_getattr(tuple, MSG_SESSION + 1, desc, &isnull)), &tuple->t_self);
		else if (row == ordinal)
		{
			Datum		targets = heap_getattr(tuple, MSG_TARGETS + 1, desc, &isnull);
			MemoryContext old = MemoryContextSwitchTo(found_context);

			found.targets = isnull ? NULL : DatumGetByteaPCopy(targets);
			MemoryContextSwitchTo(old);
		}
	}
	table_endscan(scan);
	found.file = aq_relation_file(rel);
	found.ordinal = ordinal;
	found.table = RelationGetRelid(rel);
}

/* NULL: the row at the place is not that chunk (any more). */
static bytea *
fetch(Relation rel, const Place *place)
{
	HeapTupleData tuple;
	Buffer		buffer;
	bytea	   *data = NULL;
	bool		isnull;
	TupleDesc	desc = RelationGetDescr(rel);

	/* the table may have been truncated */
	if (ItemPointerGetBlockNumber(&place->tid) >= RelationGetNumberOfBlocks(rel))
		return NULL;
	tuple.t_self = place->tid;
	if (!heap_fetch(rel, SnapshotSelf, &tuple, &buffer, false))
		return NULL;
	if (DatumGetInt64(heap_getattr(&tuple, MSG_ORDINAL + 1, desc, &isnull)) == ~found.ordinal &&
		DatumGetInt64(heap_getattr(&tuple, MSG_SESSION + 1, desc, &isnull)) == place->number)
		data = DatumGetByteaPCopy(heap_getattr(&tuple, MSG_TARGETS + 1, desc, &isnull));
	ReleaseBuffer(buffer);
	return data;
}

static bytea *
find_chunk(Relation rel, int32 number)
{
	if (number < found.n && found.places[number].number == number)
		return fetch(rel, &found.places[number]);
	for (int i = 0; i < found.n; i++)
		if (found.places[i].number == number)
			return fetch(rel, &found.places[i]);
	return NULL;
}

static bool
is_for(int position)
{
	int			target = -1;

	if (found.targets == NULL)
		return false;
	while ((target = targets_next(found.targets, target)) >= 0)
		if (target == position)
			return true;
	return false;
}

bytea *
aq_body_read(AqQueue *queue, const pg_uuid_t *id, int32 number, int position)
{
	int			stream_no;
	int64		ordinal;
	Oid			table;
	Relation	rel;
	bytea	   *data = NULL;

	if (!aq_message_id_parse(id, queue->shard_key, &stream_no, &ordinal))
		return NULL;
	table = table_of(queue, stream_no, ordinal);
	if (!OidIsValid(table))
		return NULL;
	aq_heap_lock_against_drop(queue->shm->object->index, NULL, table, AccessShareLock);
	rel = try_table_open(table, NoLock);
	if (rel == NULL)
		aq_heap_queue_is_gone();
	if (found.table == table && found.ordinal == ordinal && found.file == aq_relation_file(rel))
		data = find_chunk(rel, number);
	if (data == NULL)
	{
		find_chunks(rel, ordinal);
		data = find_chunk(rel, number);
	}
	table_close(rel, AccessShareLock);
	return queue->multi && position != AQ_ANY_POSITION && !is_for(position) ? NULL : data;
}
