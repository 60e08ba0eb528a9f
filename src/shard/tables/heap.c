/*-------------------------------------------------------------------------
 *
 * heap.c
 *	  Locking and opening a partition's tables, reading and writing their rows.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/tables/tables_private.h"

#include "access/heapam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "commands/sequence.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

/* --- locking ------------------------------------------------------------------------------ */

void
aq_heap_queue_is_gone(void)
{
	ereport(ERROR,
			aq_error(AQ_ERR_QUEUE_UNDEFINED, "the queue does not exist"),
			errdetail("It was dropped, or is being dropped, by another session."),
			errhint("If aq.queues lists it, one of its tables is missing: see \"Tables of a queue are missing\" in docs/operations.md."));
}

/*
 * Does the transaction hold locks on tables of the queue, except this
 * partition's (NULL: on any)?
 */
bool
aq_heap_holds_others(uint32 queue, const Partition *partition)
{
	PutNote   **puts;
	TakeNote  **takes;
	int			nputs = aq_notes_puts(&puts);
	int			ntakes = aq_notes_takes(&takes);

	for (int i = 0; i < nputs; i++)
		if (puts[i]->partition != partition && puts[i]->partition->queue == queue)
			return true;
	for (int i = 0; i < ntakes; i++)
		if (takes[i]->partition != partition && takes[i]->partition->queue == queue)
			return true;
	return false;
}

/*
 * Locks a relation.  The worker does not wait for users' locks, but raises an
 * error and retries later.
 */
void
aq_heap_lock_relation(Oid relid, LOCKMODE mode)
{
	if (!aq_chunks_impatient)
		LockRelationOid(relid, mode);
	else if (!ConditionalLockRelationOid(relid, mode))
		ereport(ERROR,
				(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
				 errmsg("could not obtain lock on relation \"%s\"", get_rel_name(relid))));
}

/*
 * Called before a wait for a lock of the queue, so that no deadlock with a drop
 * of the queue is possible.  A drop locks the queue, its numbers, the message
 * tables, then the logs, and waits for all sessions that hold one.  So a session
 * that holds another table than this partition's must not wait for a drop.  It
 * may wait for the worker or VACUUM FULL, which hold a table briefly; while the
 * queue is locked, no drop can begin.
 */
static void
refuse_drop(uint32 queue, const Partition *partition)
{
	if (aq_heap_holds_others(queue, partition) &&
		!aq_queue_lock(aq_shm_by_index(queue)->queue_id, AccessShareLock, false))
		aq_heap_queue_is_gone();
}

/* Locks a relation of the queue without the risk of a deadlock with a drop of the queue. */
void
aq_heap_lock_against_drop(uint32 queue, const Partition *partition, Oid relid, LOCKMODE mode)
{
	if (ConditionalLockRelationOid(relid, mode))
		return;
	refuse_drop(queue, partition);
	aq_heap_lock_relation(relid, mode);
}

/*
 * Locks a partition's tables without waiting, so that a session that drops the
 * queue does not block the worker.
 */
bool
aq_heap_lock_for_worker(Partition *partition, LOCKMODE mode)
{
	return ConditionalLockRelationOid(partition->messages, mode) &&
		ConditionalLockRelationOid(partition->log, mode);
}

/*
 * The same for a view, until aq_heap_leave_tables.  Returns false if the
 * tables do not exist or a session holds a conflicting lock.
 */
bool
aq_heap_try_tables(const Partition *partition)
{
	if (!ConditionalLockRelationOid(partition->messages, AccessShareLock))
		return false;
	if (ConditionalLockRelationOid(partition->log, AccessShareLock))
	{
		if (SearchSysCacheExists1(RELOID, ObjectIdGetDatum(partition->messages)) &&
			SearchSysCacheExists1(RELOID, ObjectIdGetDatum(partition->log)))
			return true;
		UnlockRelationOid(partition->log, AccessShareLock);
	}
	UnlockRelationOid(partition->messages, AccessShareLock);
	return false;
}

void
aq_heap_leave_tables(const Partition *partition)
{
	UnlockRelationOid(partition->log, AccessShareLock);
	UnlockRelationOid(partition->messages, AccessShareLock);
}

/* --- reading ------------------------------------------------------------------------------ */

/*
 * Updates the TIDs of the slots after the message table was rewritten, for
 * example by VACUUM FULL.  The caller holds a lock on the table.  The scan
 * misses no row whose slot has a TID of the old file, because a rewrite waits
 * for all lock holders, and slots get their TIDs under a lock.  A slot whose row is
 * gone, because it was rolled back or a user has truncated the table, gets no
 * valid TID.  When another session has done it meanwhile, nothing is left to do:
 * that session may have inserted rows that this scan has not seen.
 */
static void
relocate(Partition *partition, Relation rel)
{
	ItemPointerData *places = palloc0(PARTITION_SLOTS * sizeof(ItemPointerData));
	int64		number = partition->number;
	Stream	   *stream = stream_at(partition->stream);
	TableScanDesc scan = aq_table_beginscan(rel, SnapshotAny);
	HeapTuple	tuple;

	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		bool		isnull;
		int64		ordinal = DatumGetInt64(heap_getattr(tuple, MSG_ORDINAL + 1, RelationGetDescr(rel), &isnull));

		CHECK_FOR_INTERRUPTS();
		if (ordinal >= 0 && ordinal / PARTITION_SLOTS == number)
			places[ordinal % PARTITION_SLOTS] = tuple->t_self;
	}
	table_endscan(scan);
	aq_point("rows-found");

	if (stream != NULL)
	{
		aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_PARTITION_LOAD);
		if (partition->stream == stream->index && partition->number == number && partition->file != aq_relation_file(rel))
		{
			Frame	   *frame = partition->frame != 0 ? frame_of(partition) : NULL;

			for (uint32 s = 0; frame != NULL && s < PARTITION_SLOTS; s++)
			{
				if (frame->segments[s / SEGMENT_SLOTS] == 0)
					continue;
				aq_slot_locate(slot_at(frame, s), ItemPointerGetBlockNumberNoCheck(&places[s]),
							   ItemPointerGetOffsetNumberNoCheck(&places[s]));
			}
			partition->file = aq_relation_file(rel);
		}
		aq_latch_free(&stream->latch);
	}
	pfree(places);
}

/*
 * Opens the partition's message table and keeps the lock.  Meanwhile the queue
 * may have been dropped, or the table rewritten: TIDs that were read from
 * slots earlier may be wrong if partition->file has changed.
 */
Relation
aq_heap_open_messages(Partition *partition, LOCKMODE mode)
{
	Relation	rel;

	aq_heap_lock_against_drop(partition->queue, partition, partition->messages, mode);
	rel = try_table_open(partition->messages, NoLock);
	if (rel == NULL)
		aq_heap_queue_is_gone();
	if (partition->file != aq_relation_file(rel))
		relocate(partition, rel);
	return rel;
}

/*
 * Reads the row with the TID t_self. *buffer may have the pinned buffer of the
 * previous row, because the next message is mostly on the same page.  A
 * committed row neither moves nor changes, so the pin suffices without the
 * buffer lock.
 */
bool
aq_heap_read_row(Relation rel, HeapTuple tuple, Buffer *buffer)
{
	OffsetNumber offset = ItemPointerGetOffsetNumberNoCheck(&tuple->t_self);
	bool		found = false;
	Page		page;

	if (offset == InvalidOffsetNumber)
		return false;
	*buffer = ReleaseAndReadBuffer(*buffer, rel, ItemPointerGetBlockNumber(&tuple->t_self));
	LockBuffer(*buffer, BUFFER_LOCK_SHARE);
	page = BufferGetPage(*buffer);
	if (offset <= PageGetMaxOffsetNumber(page))
	{
		ItemId		item = PageGetItemId(page, offset);

		found = ItemIdIsNormal(item);
		if (found)
		{
			tuple->t_data = (HeapTupleHeader) PageGetItem(page, item);
			tuple->t_len = ItemIdGetLength(item);
			tuple->t_tableOid = RelationGetRelid(rel);
		}
	}
	LockBuffer(*buffer, BUFFER_LOCK_UNLOCK);
	return found;
}

static struct varlena *
varlena_or_null(Datum *values, bool *nulls, int column)
{
	return nulls[column] ? NULL : (struct varlena *) DatumGetPointer(values[column]);
}

/* The message points into values and tuple, which must outlive it. */
void
aq_heap_read_message(AqQueue *queue, const Stream *stream, HeapTuple tuple, TupleDesc desc,
					 AqMessage *m, Datum *values, bool *nulls)
{
	aq_payload_check_column(queue, desc, MSG_PAYLOAD);
	aq_rows_read(tuple, desc, MSG_COLUMNS, values, nulls);
	m->ordinal = DatumGetInt64(values[MSG_ORDINAL]);
	m->id = aq_message_id(queue->shard_key, stream->number, m->ordinal);
	m->priority = stream->priority;
	m->shard = stream->shard;
	m->session_id = DatumGetInt64(values[MSG_SESSION]);
	m->enqueue_time = DatumGetTimestampTz(values[MSG_ENQUEUE_TIME]);
	m->payload = values[MSG_PAYLOAD];
	m->payload_null = nulls[MSG_PAYLOAD];
	m->correlation = varlena_or_null(values, nulls, MSG_CORRELATION);
	m->key = varlena_or_null(values, nulls, MSG_KEY);
	m->properties = varlena_or_null(values, nulls, MSG_PROPERTIES);
	m->sender = varlena_or_null(values, nulls, MSG_SENDER);
	m->exception_queue = varlena_or_null(values, nulls, MSG_EXCEPTION_QUEUE);
	m->exception_queue_id = nulls[MSG_EXCEPTION_QUEUE_ID] ? 0 : DatumGetInt32(values[MSG_EXCEPTION_QUEUE_ID]);
	m->ready_at = nulls[MSG_READY_AT] ? 0 : DatumGetTimestampTz(values[MSG_READY_AT]);
	m->expires_at = nulls[MSG_EXPIRES_AT] ? 0 : DatumGetTimestampTz(values[MSG_EXPIRES_AT]);
	m->dead_letter = varlena_or_null(values, nulls, MSG_DEAD_LETTER);
	m->original_id = nulls[MSG_ORIGINAL_ID] ? NULL : DatumGetUUIDP(values[MSG_ORIGINAL_ID]);
	m->attempts += nulls[MSG_ATTEMPTS] ? 0 : DatumGetInt16(values[MSG_ATTEMPTS]);
}

/* NULL: it does not exist, or was dropped after the catalog was read. */
Relation
aq_heap_open_numbered(const AqQueue *queue, char letter, int table_no, LOCKMODE mode)
{
	char		name[NAMEDATALEN];
	Oid			oid;

	snprintf(name, sizeof(name), "%c%d_%d", letter, queue->id, table_no);
	oid = aq_schema_data_relation(name);
	return OidIsValid(oid) ? try_table_open(oid, mode) : NULL;
}

/* The number of the partition to which all rows of the table belong; -1: it has none. */
int64
aq_heap_partition_number(Relation rel)
{
	TableScanDesc scan = aq_table_beginscan(rel, SnapshotAny);
	HeapTuple	tuple = heap_getnext(scan, ForwardScanDirection);
	int64		number = -1;
	bool		isnull;

	if (tuple != NULL)
		number = message_ordinal(DatumGetInt64(heap_getattr(tuple, MSG_ORDINAL + 1, RelationGetDescr(rel), &isnull)))
			/ PARTITION_SLOTS;
	table_endscan(scan);
	return number;
}

LogRow
aq_heap_read_log(HeapTuple tuple, TupleDesc desc)
{
	Datum		values[LOG_COLUMNS];
	bool		nulls[LOG_COLUMNS];
	ArrayType  *array;
	int64		receipt;

	aq_rows_read(tuple, desc, LOG_COLUMNS, values, nulls);
	if (DatumGetInt16(values[LOG_CONSUMER]) < 0 || DatumGetInt16(values[LOG_CONSUMER]) >= AQ_MAX_CONSUMERS)
		aq_catalog_refuse_row(NULL, tuple->t_tableOid, "consumer", DatumGetInt16(values[LOG_CONSUMER]));
	array = DatumGetArrayTypeP(values[LOG_ORDINALS]);
	receipt = nulls[LOG_RECEIPT] ? 0 : DatumGetInt64(values[LOG_RECEIPT]);
	return (LogRow) {.kind = DatumGetChar(values[LOG_KIND]), .stream = DatumGetInt16(values[LOG_STREAM]),
		.position = DatumGetInt16(values[LOG_CONSUMER]), .at = DatumGetTimestampTz(values[LOG_TIME]),
		.n = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array)), .ordinals = (const int64 *) ARR_DATA_PTR(array),
		.receipt = receipt == AQ_RECEIPT_ALONE ? 0 : receipt, .alone = receipt == AQ_RECEIPT_ALONE,
		.detail = nulls[LOG_DETAIL] ? NULL : DatumGetTextPP(values[LOG_DETAIL]),
		.written = nulls[LOG_WRITTEN] ? 0 : DatumGetTimestampTz(values[LOG_WRITTEN])};
}

/* --- writing ------------------------------------------------------------------------------ */

/*
 * A number that no partition of any queue and no block of receipts ever had.
 * Until the transaction ends, the queue is not dropped.
 */
int64
aq_heap_next_number(AqQueue *queue)
{
	AqObject   *object = queue->shm->object;
	Oid			sequence = aq_schema_relation("partition_number_seq");

	if (!aq_queue_lock_numbers(queue, RowExclusiveLock, false))
	{
		refuse_drop(object->index, NULL);
		if (aq_chunks_impatient)
			ereport(ERROR,
					(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
					 errmsg("could not obtain lock on queue \"%s\"", queue->name)));
		(void) aq_queue_lock_numbers(queue, RowExclusiveLock, true);
	}
	aq_heap_lock_relation(sequence, RowExclusiveLock);
	if (object->state == AQ_OBJECT_DROPPED || !SearchSysCacheExists1(RELOID, ObjectIdGetDatum(sequence)))
		aq_heap_queue_is_gone();
	return nextval_internal(sequence, false);
}

/* Returns the size of the rows.  receipt 0, detail NULL: none; options: of heap_insert. */
static uint64
insert_log(Relation rel, char kind, int stream, int64 number, TimestampTz at, int position,
		   const uint16 *slots, uint32 n, int64 receipt, const char *detail, int options)
{
	bool		snapshot = OidIsValid(rel->rd_rel->reltoastrelid) && !ActiveSnapshotSet();
	Datum		values[LOG_COLUMNS];
	bool		nulls[LOG_COLUMNS] = {0};
	Datum	   *ordinals = palloc(Min(n, AQ_LOG_ORDINALS) * sizeof(Datum));
	uint64		bytes = 0;

	if (snapshot)
		PushActiveSnapshot(GetTransactionSnapshot());
	values[LOG_KIND] = CharGetDatum(kind);
	values[LOG_STREAM] = Int16GetDatum(stream);
	values[LOG_CONSUMER] = Int16GetDatum(position);
	values[LOG_TIME] = TimestampTzGetDatum(at != 0 ? at : GetCurrentTimestamp());
	values[LOG_RECEIPT] = Int64GetDatum(receipt);
	nulls[LOG_RECEIPT] = receipt == 0;
	values[LOG_DETAIL] = detail != NULL ? CStringGetTextDatum(detail) : (Datum) 0;
	nulls[LOG_DETAIL] = detail == NULL;
	values[LOG_WRITTEN] = TimestampTzGetDatum(receipt != 0 || kind == LOG_RETRY ? GetCurrentTimestamp() : 0);
	nulls[LOG_WRITTEN] = receipt == 0 && kind != LOG_RETRY;
	for (uint32 i = 0; i < n; i += AQ_LOG_ORDINALS)
	{
		uint32		count = Min(n - i, AQ_LOG_ORDINALS);
		HeapTuple	tuple;

		for (uint32 j = 0; j < count; j++)
			ordinals[j] = Int64GetDatum(number * PARTITION_SLOTS + slots[i + j]);
		values[LOG_ORDINALS] = PointerGetDatum(construct_array(ordinals, count, INT8OID, 8,
															   FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
		tuple = heap_form_tuple(RelationGetDescr(rel), values, nulls);
		heap_insert(rel, tuple, GetCurrentCommandId(true), options, NULL);
		bytes += tuple->t_len;
		heap_freetuple(tuple);
	}
	if (snapshot)
		PopActiveSnapshot();
	pfree(ordinals);
	return bytes;
}

/* Opens the log to write to it, and keeps the lock. */
Relation
aq_heap_open_log(Partition *partition)
{
	Relation	rel = try_table_open(partition->log, RowExclusiveLock);

	if (rel == NULL)
		aq_heap_queue_is_gone();
	return rel;
}

/* One row for at most AQ_LOG_ORDINALS slots, frozen: see frozen.c. */
void
aq_heap_write_frozen(Relation log, Partition *partition, char kind, int position, const uint16 *slots, uint32 n)
{
	pg_atomic_fetch_add_u64(&partition->bytes,
							insert_log(log, kind, stream_at(partition->stream)->number, partition->number, 0, position,
									   slots, n, 0, NULL, HEAP_INSERT_FROZEN));
}

/* Of messages that are consumed, in the log of the partition with this number. */
void
aq_heap_write_cleared(Relation log, int stream, int64 number, int position, const uint16 *slots, uint32 n)
{
	(void) insert_log(log, LOG_CLEARED, stream, number, 0, position, slots, n, 0, NULL, 0);
}

/*
 * Writes log rows for these slots, in the current transaction, which may be at
 * its end and without a snapshot.  A log restored by pg_dump has a TOAST
 * table, which stays empty, but because of it the server requires a snapshot.
 */
void
aq_heap_write_log(Partition *partition, char kind, TimestampTz at, int position,
				  const uint16 *slots, uint32 n)
{
	aq_heap_write_lease(partition, kind, at, position, slots, n, 0, NULL);
}

/* The same, of leased messages.  receipt 0, detail NULL: none. */
void
aq_heap_write_lease(Partition *partition, char kind, TimestampTz at, int position,
					const uint16 *slots, uint32 n, int64 receipt, const char *detail)
{
	Relation	rel = aq_heap_open_log(partition);
	uint64		bytes = insert_log(rel, kind, stream_at(partition->stream)->number, partition->number, at, position, slots, n,
								   receipt, detail, 0);

	pg_atomic_fetch_add_u64(&partition->bytes, bytes);
	table_close(rel, NoLock);
}
