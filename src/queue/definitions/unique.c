/*-------------------------------------------------------------------------
 *
 * unique.c
 *	  Rows of aq_internal.unique_key: which message has a unique key.
 *
 * An enqueue with a unique key locks the key until the end of its transaction, so
 * those with the same key follow each other: the second waits for the first one's
 * commit or rollback, as at a unique index, and a deadlock is found as there.  The
 * newest row in the latest snapshot therefore is the last one, whatever the
 * transaction's own snapshot.  Its message may be done: whether the key is in force
 * is asked by calls/enqueue_unique.c.
 *
 * A row is never updated.  The next one of the key has a higher generation, and its
 * transaction deletes the row before.  A search begins at the highest generation, so
 * deleted rows that a held snapshot keeps cost it nothing.  Rows of keys that are not
 * used again are deleted by the worker, when they are an hour old, and no snapshot can
 * see a row before them.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/definitions/definitions_private.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/indexing.h"
#include "common/hashfn.h"
#include "access/transam.h"
#include "storage/lmgr.h"
#include "storage/procarray.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

enum
{
	UNIQUE_QUEUE, UNIQUE_KEY, UNIQUE_GENERATION, UNIQUE_MSGID, UNIQUE_UNTIL, UNIQUE_CREATED, UNIQUE_COLUMNS
};

/* the age that a row has before the worker deletes it */
#define KEPT USECS_PER_HOUR

/* how often the worker looks for rows to be deleted */
#define BETWEEN_PRUNINGS (10 * USECS_PER_MINUTE)

/* rows that the worker looks at, and deletes, in a transaction */
#define LOOKED_AT 2000
#define DELETED 200

/* The lock of a producer, with a number that no producer has: theirs are negative. */
static bool
lock_key(int32 id, const char *key, bool wait)
{
	uint64		hash = hash_bytes_extended((const unsigned char *) key, strlen(key), 0);

	return aq_queue_lock_producer(id, (int64) (hash >> 1), wait);
}

/* No other transaction enqueues with this key, until this one has ended. */
void
aq_unique_lock(int32 id, const char *key)
{
	(void) lock_key(id, key, true);
}

static void
read_row(HeapTuple tuple, TupleDesc desc, AqUniqueRow *row)
{
	Datum		values[UNIQUE_COLUMNS];
	bool		nulls[UNIQUE_COLUMNS];

	aq_rows_read(tuple, desc, UNIQUE_COLUMNS, values, nulls);
	row->generation = DatumGetInt64(values[UNIQUE_GENERATION]);
	row->msgid = *DatumGetUUIDP(values[UNIQUE_MSGID]);
	row->until = DatumGetTimestampTz(values[UNIQUE_UNTIL]);
	row->created = DatumGetTimestampTz(values[UNIQUE_CREATED]);
	row->tid = tuple->t_self;
	row->xid = HeapTupleHeaderGetXmin(tuple->t_data);
}

/* In REPEATABLE READ, a row that the transaction does not see means that it has come too late. */
static void
check_serializable(const AqQueue *queue, HeapTuple tuple)
{
	TransactionId xid = HeapTupleHeaderGetXmin(tuple->t_data);

	if (IsolationUsesXactSnapshot() && !TransactionIdIsCurrentTransactionId(xid) &&
		XidInMVCCSnapshot(xid, GetTransactionSnapshot()))
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("could not serialize access to the unique keys of queue \"%s\"", queue->name),
				 errdetail("Another transaction has enqueued a message with this unique key meanwhile."),
				 errhint("Run the transaction again.")));
}

/* Finds the newest row of the key, which the caller has locked.  Returns false if the key has no row. */
bool
aq_unique_find(const AqQueue *queue, const char *key, AqUniqueRow *row)
{
	Relation	rel = aq_schema_open("unique_key", AccessShareLock);
	Relation	index = index_open(aq_primary_key(rel), AccessShareLock);
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	ScanKeyData keys[2];
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&keys[0], UNIQUE_QUEUE + 1, BTEqualStrategyNumber, F_INT4EQ, Int32GetDatum(queue->id));
	ScanKeyInit(&keys[1], UNIQUE_KEY + 1, BTEqualStrategyNumber, F_TEXTEQ, CStringGetTextDatum(key));
	scan = systable_beginscan_ordered(rel, index, snapshot, 2, keys);
	tuple = systable_getnext_ordered(scan, BackwardScanDirection);
	if (tuple != NULL)
	{
		check_serializable(queue, tuple);
		read_row(tuple, RelationGetDescr(rel), row);
	}
	systable_endscan_ordered(scan);
	UnregisterSnapshot(snapshot);
	index_close(index, AccessShareLock);
	table_close(rel, AccessShareLock);
	return tuple != NULL;
}

/* The message has the key now, until then.  before: the newest row of the key, or NULL. */
void
aq_unique_put(int32 id, const char *key, const AqUniqueRow *before, const pg_uuid_t *msgid, TimestampTz until)
{
	Relation	rel = aq_schema_open("unique_key", RowExclusiveLock);
	Datum		values[UNIQUE_COLUMNS] = {Int32GetDatum(id), CStringGetTextDatum(key),
		Int64GetDatum(before != NULL ? before->generation + 1 : 1), UUIDPGetDatum(msgid), TimestampTzGetDatum(until),
		TimestampTzGetDatum(GetCurrentTimestamp())};
	bool		nulls[UNIQUE_COLUMNS] = {0};
	HeapTuple	tuple = heap_form_tuple(RelationGetDescr(rel), values, nulls);

	if (before != NULL)
	{
		ItemPointerData tid = before->tid;

		CatalogTupleDelete(rel, &tid);
	}
	CatalogTupleInsert(rel, tuple);
	heap_freetuple(tuple);
	table_close(rel, RowExclusiveLock);
	CommandCounterIncrement();
}

/* Has the worker delete rows of the queue that are no longer needed, some time later. */
void
aq_unique_note(AqQueueShm *shm)
{
	if (pg_atomic_read_u32(&shm->has_unique) == 0 && pg_atomic_exchange_u32(&shm->has_unique, 1) == 0)
		aq_work_post(shm, AQ_WORK_UNIQUE);
}

/* --- the worker --------------------------------------------------------------------------------- */

/* where the pruning of a queue, which takes several transactions, continues */
static int32 cursor_queue;
static char *cursor_key;
static int64 cursor_generation;

static void
move_cursor(int32 id, const char *key, int64 generation)
{
	if (cursor_key != NULL)
		pfree(cursor_key);
	cursor_queue = id;
	cursor_key = key != NULL ? MemoryContextStrdup(TopMemoryContext, key) : NULL;
	cursor_generation = generation;
}

/*
 * Can the row be deleted, because the key is no longer in force?  Does not load
 * partitions.  The rows before it were deleted by the transaction that inserted it: as
 * long as a snapshot can see them, it stays, for searches would pass all of them.
 */
static bool
is_over(AqQueue *queue, const AqUniqueRow *row, TimestampTz now, TransactionId horizon)
{
	if (!TransactionIdPrecedes(row->xid, horizon))
		return false;
	if (row->created > now - KEPT)
		return false;
	if (row->until != DT_NOEND)
		return row->until <= now;
	return queue->store->unfinished == NULL || queue->store->unfinished(queue, &row->msgid, false) == 0;
}

/*
 * Looks at some rows behind the cursor.  A key that a transaction has locked is left.
 * Sets *kept if a row remains; returns false if there are no more.
 */
static bool
prune(AqQueue *queue, bool *kept)
{
	Relation	rel = table_open(aq_schema_relation("unique_key"), NoLock);
	Relation	index = index_open(aq_primary_key(rel), AccessShareLock);
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	TransactionId horizon = GetOldestNonRemovableTransactionId(rel);
	TimestampTz now = GetCurrentTimestamp();
	ScanKeyData keys[2];
	int			nkeys = 1,
				looked_at = 0,
				deleted = 0;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&keys[0], UNIQUE_QUEUE + 1, BTEqualStrategyNumber, F_INT4EQ, Int32GetDatum(queue->id));
	if (cursor_key != NULL)
		ScanKeyInit(&keys[nkeys++], UNIQUE_KEY + 1, BTGreaterEqualStrategyNumber, F_TEXT_GE, CStringGetTextDatum(cursor_key));
	scan = systable_beginscan_ordered(rel, index, snapshot, nkeys, keys);
	while (looked_at < LOOKED_AT && deleted < DELETED &&
		   (tuple = systable_getnext_ordered(scan, ForwardScanDirection)) != NULL)
	{
		bool		isnull;
		char	   *key = TextDatumGetCString(heap_getattr(tuple, UNIQUE_KEY + 1, RelationGetDescr(rel), &isnull));
		AqUniqueRow row,
					newest;

		CHECK_FOR_INTERRUPTS();
		read_row(tuple, RelationGetDescr(rel), &row);
		aq_point("unique-read");
		if (cursor_key != NULL && strcmp(key, cursor_key) == 0 && row.generation <= cursor_generation)
			continue;
		looked_at++;
		/* it may have been used again before it was locked */
		if (is_over(queue, &row, now, horizon) && lock_key(queue->id, key, false) && aq_unique_find(queue, key, &newest) &&
			newest.generation == row.generation)
		{
			CatalogTupleDelete(rel, &row.tid);
			deleted++;
		}
		else
			*kept = true;
		move_cursor(queue->id, key, row.generation);
	}
	systable_endscan_ordered(scan);
	UnregisterSnapshot(snapshot);
	index_close(index, AccessShareLock);
	table_close(rel, NoLock);
	return looked_at >= LOOKED_AT || deleted >= DELETED;
}

void
aq_unique_job(int32 id, AqQueueShm *shm)
{
	static bool kept;
	bool		more = true;

	if (cursor_queue != id)
	{
		move_cursor(id, NULL, 0);
		kept = false;
	}
	/* from here on, an enqueue posts it again */
	pg_atomic_write_u32(&shm->has_unique, 0);
	while (more && !aq_worker_turn_is_over())
	{
		AqQueue    *queue;

		aq_job_begin();
		queue = aq_catalog_get_by_id(id, true);
		more = queue != NULL;
		/* the worker does not wait for a user that has locked the table */
		if (queue != NULL && !ConditionalLockRelationOid(aq_schema_relation("unique_key"), RowExclusiveLock))
		{
			more = false;
			kept = true;
		}
		else if (queue != NULL)
		{
			aq_pins_pin(queue);
			more = prune(queue, &kept);
		}
		aq_job_commit(false);
	}
	if (!more)
		move_cursor(0, NULL, 0);
	pg_atomic_write_u32(&shm->has_unique, more || kept);
	if (more)
		aq_work_post(shm, AQ_WORK_UNIQUE);
	else if (kept)
		aq_work_later(shm, AQ_WORK_UNIQUE, BETWEEN_PRUNINGS);
}
