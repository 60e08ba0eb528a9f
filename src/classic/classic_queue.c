/*-------------------------------------------------------------------------
 *
 * classic_queue.c
 *	  Loading and unloading of the shared memory of a queue in a queue table.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "classic/classic_private.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "executor/spi.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "storage/procarray.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"

/* A value of the query's result, which must not be null. */
static Datum
result_value(uint64 row, int column)
{
	bool		isnull;

	return SPI_getbinval(SPI_tuptable->vals[row], SPI_tuptable->tupdesc, column, &isnull);
}

/* The table whose rows consumers dequeue. */
static char *
consumed_table(AqQueue *queue)
{
	return queue->multi ? aq_schema_consumer_table(queue->table.id) : aq_schema_message_table(queue->table.id);
}

/*
 * Counts the messages of each consumer, so that the lag is correct from the
 * start.  Returns the latest step of a message, so that steps grow even if the
 * clock was set back, or is another server's.  No other session uses the queue while
 * it is being loaded.
 */
static int64
count_messages(AqQueue *queue, AqQueueShm *shm)
{
	int64		latest = 0;

	aq_sql_run(psprintf("SELECT \"position\", count(*), max(step) FROM aq_data.%s WHERE queue_id = %d AND state <> %d%s "
						"AND \"position\" >= 0 GROUP BY 1", consumed_table(queue),
						queue->id, STATE_PROCESSED,
						queue->multi ? psprintf(" AND state <> %d", STATE_EXPIRED) : ""),
			   0, NULL, NULL, NULL, true);
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		if (DatumGetInt16(result_value(i, 1)) >= AQ_MAX_CONSUMERS)
			aq_catalog_refuse_row(queue->name, queue->multi ? queue->table.consumers : queue->table.messages, "position",
								  DatumGetInt16(result_value(i, 1)));
		aq_traffic_found(shm, DatumGetInt16(result_value(i, 1)), DatumGetInt64(result_value(i, 2)));
		latest = Max(latest, DatumGetInt64(result_value(i, 3)));
	}
	SPI_finish();
	return latest;
}

/* --- prepared transactions --------------------------------------------- */

typedef struct Prepared
{
	TransactionId xid;
	Oid			role;
} Prepared;

/* The one to which xid belongs; NULL: none. */
static const Prepared *
prepared_of(const List *prepared, TransactionId xid)
{
	TransactionId top = aq_classic_doubts_top(xid);
	ListCell   *lc;

	foreach(lc, prepared)
		if (((const Prepared *) lfirst(lc))->xid == top)
			return lfirst(lc);
	return NULL;
}

/* Does a prepared transaction hold a lock on the table? */
static bool
any_locks(Oid table)
{
	return aq_sql_finds(psprintf("SELECT 1 FROM pg_catalog.pg_locks WHERE pid IS NULL AND relation = %u "
								 "AND mode = 'RowExclusiveLock' LIMIT 1", table));
}

/* Finds or adds the entry for this row. */
static InDoubt *
doubt_of(List **found, int position, const Prepared *prepared, TransactionId xid, bool put)
{
	ListCell   *lc;
	InDoubt    *doubt;

	foreach(lc, *found)
	{
		doubt = lfirst(lc);
		if (doubt->position == position && doubt->top == prepared->xid && doubt->put == put)
		{
			aq_xids_add(&doubt->xids, xid, xid);
			return doubt;
		}
	}
	doubt = palloc0(sizeof(InDoubt));
	doubt->position = position;
	doubt->top = prepared->xid;
	doubt->role = prepared->role;
	doubt->put = put;
	aq_xids_add(&doubt->xids, xid, xid);
	doubt->lowest = KEY_LAST;
	doubt->highest = KEY_FIRST;
	*found = lappend(*found, doubt);
	return doubt;
}

/* The enqueue time of the row's message; 0: not known. */
static TimestampTz
enqueue_time_of(AqQueue *queue, RowScan *messages, TupleTableSlot *slot, const Key *key)
{
	bool		isnull;

	if (queue->multi)
	{
		if (!aq_row_scan_find(messages, queue->id, 0, key))
			return 0;
		slot = messages->slot;
	}
	return DatumGetTimestampTz(slot_getattr(slot, COL_ENQUEUE_TIME + 1, &isnull));
}

/* Has the prepared transaction taken the row that it has enqueued? */
static bool
is_own_take(const List *prepared, const Prepared *transaction, TupleTableSlot *slot)
{
	HeapTupleHeader header = aq_table_row_header(slot);

	return (header->t_infomask & HEAP_XMAX_INVALID) == 0 && !HEAP_XMAX_IS_LOCKED_ONLY(header->t_infomask) &&
		prepared_of(prepared, HeapTupleHeaderGetUpdateXid(header)) == transaction;
}

/* Has the prepared transaction taken messages for no other consumer? */
static bool
is_only_take(const List *found, const InDoubt *doubt)
{
	ListCell   *lc;

	foreach(lc, found)
	{
		const InDoubt *other = lfirst(lc);

		if (other != doubt && !other->put && other->top == doubt->top)
			return false;
	}
	return true;
}

/* Of all consumers: what it has enqueued for them has common entries. */
static void
restore(AqQueueShm *shm, const List *found, TransactionId top)
{
	ListCell   *lc;

	foreach(lc, found)
	{
		const InDoubt *doubt = lfirst(lc);

		if (doubt->top == top)
			aq_classic_notes_restore(shm, doubt, is_only_take(found, doubt));
	}
	aq_prepared_counts_pass(top);
}

/*
 * Finds the messages that prepared transactions have enqueued or taken before
 * a restart.
 */
static void
find_uses(AqQueue *queue, AqQueueShm *shm, const List *prepared)
{
	Oid			table = queue->multi ? queue->table.consumers : queue->table.messages;
	Relation	rel;
	TupleTableSlot *slot;
	TableScanDesc scan;
	SnapshotData dirty;
	RowScan		messages;
	List	   *found = NIL;
	ListCell   *lc;

	if (!any_locks(table))
		return;
	aq_row_scan_open(&messages, queue, queue->table.messages, AccessShareLock);
	rel = table_open(table, AccessShareLock);
	slot = table_slot_create(rel, NULL);
	InitDirtySnapshot(dirty);
	scan = aq_table_beginscan(rel, &dirty);
	while (table_scan_getnextslot(scan, ForwardScanDirection, slot))
	{
		bool		put = TransactionIdIsValid(dirty.xmin);
		TransactionId xid = put ? dirty.xmin : dirty.xmax;
		int			position;
		TimestampTz enqueued;
		const Prepared *transaction;
		InDoubt    *doubt;
		Key			key;

		if (!TransactionIdIsValid(xid) || (transaction = prepared_of(prepared, xid)) == NULL)
			continue;
		key = aq_table_row_key(slot);
		position = DatumGetInt16(slot->tts_values[COL_POSITION]);
		slot_getsomeattrs(slot, COL_RECEIPT + 1);
		if (DatumGetInt32(slot->tts_values[COL_QUEUE]) != queue->id || position < 0 ||
			DatumGetInt16(slot->tts_values[COL_STATE]) == STATE_PROCESSED)
			continue;
		if (position >= AQ_MAX_CONSUMERS)
			aq_catalog_refuse_row(queue->name, table, "position", position);
		if (put && !slot->tts_isnull[COL_RECEIPT])
		{
			/* leased, extended or given back: it is not new, and its old version is not gone */
			doubt_of(&found, position, transaction, xid, false)->n--;
			continue;
		}
		if (put && is_own_take(prepared, transaction, slot))
			doubt_of(&found, position, transaction, xid, false)->n++;
		doubt = doubt_of(&found, position, transaction, xid, put);
		doubt->n++;
		enqueued = put ? 0 : enqueue_time_of(queue, &messages, slot, &key);
		if (enqueued != 0)
			aq_consumed_add(&doubt->consumed, enqueued);
		if (key_compare(&key, &doubt->lowest) < 0)
			doubt->lowest = key;
		if (key_compare(&key, &doubt->highest) > 0)
			doubt->highest = key;
	}
	table_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
	table_close(rel, AccessShareLock);
	aq_row_scan_close(&messages, true);
	foreach(lc, prepared)
		restore(shm, found, ((const Prepared *) lfirst(lc))->xid);
}

/*
 * Finds prepared transactions after a restart: each may have taken or enqueued
 * messages.
 */
static void
find_doubts(AqQueue *queue, AqQueueShm *shm)
{
	MemoryContext context = CurrentMemoryContext;
	List	   *prepared = NIL;

	aq_sql_run(psprintf("SELECT transaction, ownerid FROM pg_catalog.pg_prepared_xact() WHERE dbid = %u", MyDatabaseId),
			   0, NULL, NULL, NULL, true);
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		MemoryContext spi = MemoryContextSwitchTo(context);
		Prepared   *one = palloc(sizeof(Prepared));

		one->xid = DatumGetTransactionId(result_value(i, 1));
		one->role = DatumGetObjectId(result_value(i, 2));
		prepared = lappend(prepared, one);
		MemoryContextSwitchTo(spi);
		aq_classic_doubts_add(one->xid, shm->object->index);
	}
	SPI_finish();
	if (prepared == NIL)
		return;
	find_uses(queue, shm, prepared);
	aq_work_post(shm, AQ_WORK_DOUBT);
}

/* --- loading -------------------------------------------------------------------------- */

/*
 * Reads the tables.  The locks are released at once, because the transaction
 * that happens to use the queue first may wait for messages for a long time.
 */
static void
read_tables(AqQueue *queue, AqQueueShm *shm)
{
	ResourceOwner mine = CurrentResourceOwner;
	ResourceOwner reader = ResourceOwnerCreate(mine, "pgaq load");

	CurrentResourceOwner = reader;
	pg_atomic_write_u64(&classic_queue(shm)->step, (uint64) count_messages(queue, shm));
	find_doubts(queue, shm);
	CurrentResourceOwner = mine;
	ResourceOwnerRelease(reader, RESOURCE_RELEASE_BEFORE_LOCKS, true, false);
	ResourceOwnerRelease(reader, RESOURCE_RELEASE_LOCKS, false, false);
	ResourceOwnerRelease(reader, RESOURCE_RELEASE_AFTER_LOCKS, true, false);
	ResourceOwnerDelete(reader);
}

void
aq_classic_queue_load(AqQueue *queue, AqQueueShm *shm)
{
	ClassicQueue *cq = classic_queue(shm);

	(void) aq_pins_check_lost_table(queue, ERROR);
	read_tables(queue, shm);
	pg_atomic_write_u64(&cq->time_from, 0);
	pg_atomic_write_u64(&cq->count_took, 0);
	pg_atomic_write_u64(&cq->count_from, 0);
	pg_atomic_write_u64(&shm->next_time, 1);	/* let the worker check all times */
	aq_jobs_post();
	aq_chunks_reserve(1);
	cq->announced = aq_chunks_take();
}

/*
 * Are there no rolled back dequeues to be counted for the queue, and no
 * prepared transactions in the whole store?
 */
bool
aq_classic_queue_idle(AqQueueShm *shm)
{
	ClassicQueue *cq = classic_queue(shm);

	return cq->retries == 0 && pg_atomic_read_u32(&cq->nretries) == 0 &&
		aq_classic_area->ndoubts == 0 && !aq_classic_area->too_many;
}

/* The effects of a prepared transaction that has ended are in the tables. */
bool
aq_classic_queue_counts_all(AqQueueShm *shm)
{
	return !aq_classic_area->too_many && !aq_classic_doubts_any(shm);
}

/*
 * Reads the tables, because the counters include messages of a prepared
 * transaction only some time after its end.
 */
Bitmapset *
aq_classic_queue_without_messages(AqQueue *queue, Bitmapset *positions)
{
	MemoryContext context = CurrentMemoryContext;
	Bitmapset  *found = NULL;
	StringInfoData query;
	int			position = -1;

	if (!aq_row_scan_try_lock(queue))
		return NULL;
	initStringInfo(&query);
	appendStringInfoString(&query, "SELECT p FROM unnest(ARRAY[-1");
	while ((position = bms_next_member(positions, position)) >= 0)
		appendStringInfo(&query, ", %d", position);
	appendStringInfo(&query, "]::smallint[]) p WHERE p >= 0 AND NOT EXISTS (SELECT FROM aq_data.%s r WHERE r.queue_id = %d "
					 "AND r.\"position\" = p AND r.state <> %d AND r.state <> %d)",
					 consumed_table(queue), queue->id, STATE_PROCESSED, STATE_EXPIRED);
	aq_sql_run(query.data, 0, NULL, NULL, NULL, true);
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		MemoryContext spi = MemoryContextSwitchTo(context);

		found = bms_add_member(found, DatumGetInt16(result_value(i, 1)));
		MemoryContextSwitchTo(spi);
	}
	SPI_finish();
	return found;
}

/* No session can reach the queue, so its latches are not needed. */
void
aq_classic_queue_unload(AqQueueShm *shm)
{
	ClassicQueue *cq = classic_queue(shm);

	for (int i = 0; i < LIST_CHUNKS; i++)
		if (cq->lists[i] != 0)
			aq_chunks_free(aq_chunk_ptr(cq->lists[i]), LISTS_PER_CHUNK);
	aq_chunks_free(cq->lists, LIST_CHUNKS);
	memset(cq->lists, 0, sizeof(cq->lists));
	aq_chunks_free(&cq->announced, 1);
	cq->announced = 0;
	pg_atomic_write_u64(&cq->nannounced, 0);
	while (cq->retries != 0)
	{
		uint32		index = cq->retries;

		cq->retries = aq_classic_area_retries[index].next;
		aq_retry_list_free(index);
	}
	pg_atomic_write_u32(&cq->nretries, 0);
	aq_classic_doubts_forget(shm->object->index);
}
