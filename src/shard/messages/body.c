/*-------------------------------------------------------------------------
 *
 * body.c
 *	  The bodies of large messages, apart from their payloads, in chunks.
 *
 * A chunk is a row of its message's table, so it goes with its message: rolled
 * back with it, truncated with its partition.  Its ordinal is the complement of the
 * message's; see MSG_ORDINAL.  Nothing points to it: the table is scanned for it,
 * see body_places.c.  The scan reads no data of chunks, because these are in the
 * TOAST table.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/messages/messages_private.h"

#include "access/heapam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
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

/* The partition of a message that this transaction has enqueued; NULL: it has not enqueued it. */
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
			stream_at(partition->stream)->number == stream_no && put_note_has(notes[i], slot))
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
	HASHCTL		control = {.keysize = sizeof(MessageKey), .entrysize = sizeof(Written)};
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
	MessageKey	key = {.ordinal = ordinal, .table = table};
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
	message->places[at] = (Place) {.number = number, .tid = *tid};
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
		aq_body_places_written(partition->messages, ordinal);
		aq_body_count(partition, VARSIZE_ANY(data));
		heap_freetuple(tuple);
		result = AQ_BODY_WRITTEN;
	}
	table_close(rel, NoLock);
	return result;
}

/* --- reading ---------------------------------------------------------------------------- */

/* The table of the message's partition; InvalidOid: it is no longer there. */
static Oid
table_of(AqQueue *queue, int stream_no, int64 ordinal)
{
	Stream	   *stream = aq_stream_find(queue->shm, stream_no);
	Partition  *partition;
	Oid			table = InvalidOid;

	if (stream == NULL)
		return InvalidOid;
	aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_DEQUEUE_BROWSE);
	partition = aq_stream_first_from(stream, ordinal / PARTITION_SLOTS);
	if (partition != NULL && partition->number == ordinal / PARTITION_SLOTS)
		table = partition->messages;
	aq_latch_free(&stream->latch);
	return table;
}

static bool
is_for(bytea *targets, int position)
{
	int			target = -1;

	if (targets == NULL)
		return false;
	while ((target = targets_next(targets, target)) >= 0)
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
	bytea	   *data;

	if (!aq_message_id_parse(id, queue->shard_key, &stream_no, &ordinal))
		return NULL;
	table = table_of(queue, stream_no, ordinal);
	if (!OidIsValid(table))
		return NULL;
	aq_heap_lock_against_drop(queue->shm->object->index, NULL, table, AccessShareLock);
	rel = try_table_open(table, NoLock);
	if (rel == NULL)
		aq_heap_queue_is_gone();
	data = aq_body_places_read(rel, ordinal, number);
	if (data != NULL && queue->multi && position != AQ_ANY_POSITION &&
		!is_for(aq_body_places_targets(rel, ordinal), position))
		data = NULL;
	table_close(rel, AccessShareLock);
	return data;
}
