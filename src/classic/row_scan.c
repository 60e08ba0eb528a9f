/*-------------------------------------------------------------------------
 *
 * row_scan.c
 *	  Scans of the rows of a queue or consumer, in their order.
 *
 * Consumers read with a "dirty" snapshot, which also shows uncommitted rows,
 * with the transactions that are changing them.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "classic/classic_private.h"

#include "access/heapam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "catalog/pg_type.h"
#include "storage/lmgr.h"
#include "utils/fmgroids.h"
#include "utils/snapmgr.h"
#include "utils/uuid.h"

/* the columns of the index "order" */
#define ORDER_QUEUE 1
#define ORDER_POSITION 2
#define ORDER_KEY 3				/* three columns */

/* number of entries to step over before the index is searched again */
#define NEAR 4

/*
 * Opens a table of the queue.  A session that drops the queue holds a
 * conflicting lock: after waiting for that, the queue no longer exists.
 */
Relation
aq_row_scan_open_table(AqQueue *queue, Oid table, LOCKMODE mode)
{
	Relation	rel = OidIsValid(table) ? try_table_open(table, mode) : NULL;

	if (rel == NULL || queue->shm->object->state == AQ_OBJECT_DROPPED)
		aq_pins_refuse_missing(queue);
	if (table == queue->table.messages)
		aq_payload_check_column(queue, RelationGetDescr(rel), COL_PAYLOAD);
	return rel;
}

/*
 * Locks the queue's tables like a consumer, but without waiting: a user that
 * drops the queue must not block the worker.
 */
bool
aq_row_scan_try_lock(AqQueue *queue)
{
	return ConditionalLockRelationOid(queue->table.messages, RowExclusiveLock) &&
		(!queue->table.multi || ConditionalLockRelationOid(queue->table.consumers, RowExclusiveLock)) &&
		aq_body_row_try_lock(queue);
}

/*
 * --- scans
 * ---------------------------------------------------------------------
 */

void
aq_row_scan_open(RowScan *rows, AqQueue *queue, Oid table, LOCKMODE mode)
{
	memset(rows, 0, offsetof(RowScan, keys));
	rows->lock = mode;
	rows->rel = aq_row_scan_open_table(queue, table, mode);
	rows->order = aq_table_index_open(rows->rel, INDEX_ORDER, AccessShareLock);
	rows->slot = table_slot_create(rows->rel, NULL);
	InitDirtySnapshot(rows->dirty);
	rows->scan = aq_index_beginscan(rows->rel, rows->order, &rows->dirty, lengthof(rows->keys));
	rows->scan->xs_want_itup = true;
}

/*
 * unused: no row was locked or changed.  Then the table locks are released, so
 * that a session that drops the queue need not wait for us.
 */
void
aq_row_scan_close(RowScan *rows, bool unused)
{
	ExecDropSingleTupleTableSlot(rows->slot);
	index_endscan(rows->scan);
	index_close(rows->order, unused ? AccessShareLock : NoLock);
	table_close(rows->rel, unused ? rows->lock : NoLock);
}

void
aq_row_scan_open_all(QueueScans *scans, AqQueue *queue)
{
	scans->queue = queue;
	aq_row_scan_open(&scans->messages, queue, queue->table.messages, RowExclusiveLock);
	if (queue->multi)
	{
		aq_row_scan_open(&scans->consumers, queue, queue->table.consumers, RowExclusiveLock);
		aq_row_scan_open(&scans->probe, queue, queue->table.consumers, RowExclusiveLock);
	}
}

void
aq_row_scan_close_all(QueueScans *scans)
{
	aq_row_scan_close(&scans->messages, false);
	if (scans->queue->multi)
	{
		aq_row_scan_close(&scans->consumers, false);
		aq_row_scan_close(&scans->probe, false);
	}
}

/*
 * Positions the scan at this key, included, forward or backward.
 *
 * There is no scan key for the other end: with a row comparison the index scan
 * stops by the first column only, and would continue beyond the end.  So
 * aq_row_scan_next_entry() checks the end.
 */
void
aq_row_scan_seek(RowScan *rows, int32 queue, int position, const Key *from, ScanDirection direction)
{
	const int64 values[3] = {from->key1, from->key2, from->step};
	StrategyNumber strategy = ScanDirectionIsForward(direction) ? BTGreaterEqualStrategyNumber
		: BTLessEqualStrategyNumber;

	rows->direction = direction;
	rows->found = false;
	ScanKeyInit(&rows->keys[0], ORDER_QUEUE, BTEqualStrategyNumber, F_INT4EQ, Int32GetDatum(queue));
	ScanKeyInit(&rows->keys[1], ORDER_POSITION, BTEqualStrategyNumber, F_INT2EQ, Int16GetDatum(position));
	for (int i = 0; i < 3; i++)
		ScanKeyEntryInitialize(&rows->from[i], SK_ROW_MEMBER | (i == 2 ? SK_ROW_END : 0),
							   ORDER_KEY + i, strategy, INT8OID, InvalidOid, F_BTINT8CMP,
							   Int64GetDatum(values[i]));
	memset(&rows->keys[2], 0, sizeof(ScanKeyData));
	rows->keys[2].sk_flags = SK_ROW_HEADER;
	rows->keys[2].sk_attno = ORDER_KEY;
	rows->keys[2].sk_strategy = strategy;
	rows->keys[2].sk_argument = PointerGetDatum(rows->from);
	index_rescan(rows->scan, rows->keys, lengthof(rows->keys), NULL, 0);
}

static int64
index_value(IndexScanDesc scan, int column)
{
	bool		isnull;

	return DatumGetInt64(index_getattr(scan->xs_itup, column, scan->xs_itupdesc, &isnull));
}

/* The next index entry up to end, included; false at the end. */
bool
aq_row_scan_next_entry(RowScan *rows, const Key *end, Key *key)
{
	IndexScanDesc scan = rows->scan;
	int			order;

	if (index_getnext_tid(scan, rows->direction) == NULL)
		return false;
	key->key1 = index_value(scan, ORDER_KEY);
	key->key2 = index_value(scan, ORDER_KEY + 1);
	key->step = index_value(scan, ORDER_KEY + 2);
	order = key_compare(key, end);
	return ScanDirectionIsForward(rows->direction) ? order <= 0 : order >= 0;
}

/* Fetches the entry's row into the slot, with the dirty snapshot. */
bool
aq_row_scan_fetch(RowScan *rows)
{
	return index_fetch_heap(rows->scan, rows->slot);
}

/* The next row up to end. */
bool
aq_row_scan_next(RowScan *rows, const Key *end, Key *key)
{
	while (aq_row_scan_next_entry(rows, end, key))
		if (aq_row_scan_fetch(rows))
			return true;
	return false;
}

/*
 * --- lookups
 * ------------------------------------------------------------------
 */

/*
 * Fetches the row with exactly this key into the slot, with the dirty
 * snapshot.
 */
bool
aq_row_scan_find(RowScan *rows, int32 queue, int position, const Key *key)
{
	const Key	last = KEY_LAST;
	Key			found;

	/*
	 * messages are looked up in their order, so it is often one of the next
	 * entries
	 */
	if (rows->found && rows->found_queue == queue && rows->found_position == position &&
		key_compare(&rows->found_key, key) < 0)
		for (int i = 0; i < NEAR; i++)
		{
			int			order;

			if (!aq_row_scan_next_entry(rows, &last, &found))
				break;
			order = key_compare(&found, key);
			if (order < 0 || (order == 0 && !aq_row_scan_fetch(rows)))
				continue;
			rows->found = order == 0;
			rows->found_key = *key;
			if (rows->found)
				return true;
			break;
		}
	aq_row_scan_seek(rows, queue, position, key, ForwardScanDirection);
	if (!aq_row_scan_next(rows, key, &found))
		return false;
	rows->found = true;
	rows->found_queue = queue;
	rows->found_position = position;
	rows->found_key = *key;
	return true;
}

/*
 * Fetches the message's row of table t into the slot.  If messages are in the
 * order of the enqueue calls, the key is computed from the id; otherwise the
 * index on ids is used.
 */
bool
aq_row_scan_find_id(RowScan *rows, AqQueue *queue, const pg_uuid_t *id)
{
	Key			key = {0, 0, 0};
	Relation	index;
	IndexScanDesc scan;
	ScanKeyData scankey;
	bool		found;

	if (aq_step_of_id(id, queue->key, &key.step) &&
		aq_row_scan_find(rows, queue->id, 0, &key))
	{
		slot_getsomeattrs(rows->slot, COL_ID + 1);
		if (memcmp(DatumGetUUIDP(rows->slot->tts_values[COL_ID]), id, UUID_LEN) == 0)
			return true;
	}

	index = aq_table_index_open(rows->rel, INDEX_ID, AccessShareLock);
	scan = aq_index_beginscan(rows->rel, index, &rows->dirty, 1);
	ScanKeyInit(&scankey, 1, BTEqualStrategyNumber, F_UUID_EQ, UUIDPGetDatum(id));
	index_rescan(scan, &scankey, 1, NULL, 0);
	found = index_getnext_slot(scan, ForwardScanDirection, rows->slot);
	index_endscan(scan);
	index_close(index, NoLock);
	if (!found)
		return false;
	slot_getsomeattrs(rows->slot, COL_STATE + 1);
	return DatumGetInt32(rows->slot->tts_values[COL_QUEUE]) == queue->id &&
		DatumGetInt16(rows->slot->tts_values[COL_STATE]) != STATE_PROCESSED;
}

/* Does the queue have a row that the worker must process at some time? */
bool
aq_row_scan_any_time(RowScan *rows, int32 queue)
{
	Relation	index = aq_table_index_open_time(rows->rel);
	IndexScanDesc scan = aq_index_beginscan(rows->rel, index, &rows->dirty, 1);
	ScanKeyData key;
	bool		found;

	ScanKeyInit(&key, 1, BTEqualStrategyNumber, F_INT4EQ, Int32GetDatum(queue));
	index_rescan(scan, &key, 1, NULL, 0);
	found = index_getnext_slot(scan, ForwardScanDirection, rows->slot);
	index_endscan(scan);
	index_close(index, NoLock);
	return found;
}
