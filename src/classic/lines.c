/*-------------------------------------------------------------------------
 *
 * lines.c
 *	  The tables of a queue table: walking their indexes, writing their rows.
 *
 * Consumers read with a "dirty" snapshot: it shows what is there for anybody,
 * with the transaction that is about to change it.  Rows are deleted and
 * updated without waiting: what another transaction has in hand is left alone.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "classic/classic_private.h"

#include "access/heapam.h"
#include "access/multixact.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "storage/procarray.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/uuid.h"

/* the columns of the index "order" */
#define ORDER_QUEUE 1
#define ORDER_POSITION 2
#define ORDER_KEY 3				/* three of them */

/* entries that are walked over before the index is searched again */
#define NEAR 4

/* --- indexes ------------------------------------------------------------------ */

/* Of the indexes that we make, which is this?  By its first column and its predicate. */
typedef enum IndexKind
{
	INDEX_ORDER, INDEX_ID, INDEX_TIME, INDEX_OTHER
} IndexKind;

static IndexKind
index_kind(Relation index)
{
	const int2vector *columns = &index->rd_index->indkey;

	if (columns->values[0] == COL_ID + 1 && columns->dim1 == 1)
		return INDEX_ID;
	if (columns->values[0] == COL_QUEUE + 1 && columns->dim1 == 5)
		return INDEX_ORDER;
	if (columns->values[0] == COL_QUEUE + 1 && columns->dim1 == 2)
		return INDEX_TIME;
	return INDEX_OTHER;
}

/* The index of the table that begins with these columns. */
static Relation
open_index(Relation rel, IndexKind kind, LOCKMODE mode)
{
	ListCell   *lc;

	foreach(lc, RelationGetIndexList(rel))
	{
		Relation	index = index_open(lfirst_oid(lc), mode);

		if (index_kind(index) == kind)
			return index;
		index_close(index, mode);
	}
	elog(ERROR, "an index of table \"%s\" is missing", RelationGetRelationName(rel));
}

Relation
aq_time_index_open(Relation rel)
{
	return open_index(rel, INDEX_TIME, AccessShareLock);
}

/* --- walking --------------------------------------------------------------------- */

/*
 * Who drops the queue holds a lock that conflicts with ours: when we have
 * waited for it, the queue is gone.
 */
Relation
aq_table_open(AqQueue *queue, Oid table, LOCKMODE mode)
{
	Relation	rel = try_table_open(table, mode);

	if (rel == NULL || queue->shm->object->state == AQ_OBJECT_DROPPED)
		ereport(ERROR,
				aq_error(AQ_ERR_QUEUE_UNDEFINED, "queue \"%s\" does not exist", queue->name),
				errdetail("It was dropped just now."));
	return rel;
}

void
aq_line_open(Line *line, AqQueue *queue, Oid table, LOCKMODE mode)
{
	memset(line, 0, offsetof(Line, keys));
	line->lock = mode;
	line->rel = aq_table_open(queue, table, mode);
	line->order = open_index(line->rel, INDEX_ORDER, AccessShareLock);
	line->slot = table_slot_create(line->rel, NULL);
	InitDirtySnapshot(line->dirty);
	line->scan = aq_index_beginscan(line->rel, line->order, &line->dirty, lengthof(line->keys));
	line->scan->xs_want_itup = true;
}

/* unused: nothing was locked or changed, so who drops the queue need not wait for us. */
void
aq_line_close(Line *line, bool unused)
{
	ExecDropSingleTupleTableSlot(line->slot);
	index_endscan(line->scan);
	index_close(line->order, unused ? AccessShareLock : NoLock);
	table_close(line->rel, unused ? line->lock : NoLock);
}

/*
 * Walk from this key on, included, forward or backward.
 *
 * There is no scan key for the other end: of a row comparison the index stops
 * by the first column only, and would walk on over what is behind it.  The
 * end is where aq_line_next() says.
 */
void
aq_line_seek(Line *line, int32 queue, int position, const Key *from, ScanDirection direction)
{
	const int64 values[3] = {from->key1, from->key2, from->step};
	StrategyNumber strategy = ScanDirectionIsForward(direction) ? BTGreaterEqualStrategyNumber
		: BTLessEqualStrategyNumber;

	line->direction = direction;
	line->found = false;
	ScanKeyInit(&line->keys[0], ORDER_QUEUE, BTEqualStrategyNumber, F_INT4EQ, Int32GetDatum(queue));
	ScanKeyInit(&line->keys[1], ORDER_POSITION, BTEqualStrategyNumber, F_INT2EQ, Int16GetDatum(position));
	for (int i = 0; i < 3; i++)
		ScanKeyEntryInitialize(&line->from[i], SK_ROW_MEMBER | (i == 2 ? SK_ROW_END : 0),
							   ORDER_KEY + i, strategy, INT8OID, InvalidOid, F_BTINT8CMP,
							   Int64GetDatum(values[i]));
	memset(&line->keys[2], 0, sizeof(ScanKeyData));
	line->keys[2].sk_flags = SK_ROW_HEADER;
	line->keys[2].sk_attno = ORDER_KEY;
	line->keys[2].sk_strategy = strategy;
	line->keys[2].sk_argument = PointerGetDatum(line->from);
	index_rescan(line->scan, line->keys, lengthof(line->keys), NULL, 0);
}

static int64
index_value(IndexScanDesc scan, int column)
{
	bool		isnull;

	return DatumGetInt64(index_getattr(scan->xs_itup, column, scan->xs_itupdesc, &isnull));
}

/* The next index entry up to end, included; false when there is none. */
bool
aq_line_next(Line *line, const Key *end, Key *key)
{
	IndexScanDesc scan = line->scan;
	int			order;

	if (index_getnext_tid(scan, line->direction) == NULL)
		return false;
	key->key1 = index_value(scan, ORDER_KEY);
	key->key2 = index_value(scan, ORDER_KEY + 1);
	key->step = index_value(scan, ORDER_KEY + 2);
	order = key_compare(key, end);
	return ScanDirectionIsForward(line->direction) ? order <= 0 : order >= 0;
}

/* The entry's row, as the dirty snapshot shows it, in the slot. */
bool
aq_line_fetch(Line *line)
{
	return index_fetch_heap(line->scan, line->slot);
}

/* The next row up to end. */
bool
aq_line_next_row(Line *line, const Key *end, Key *key)
{
	while (aq_line_next(line, end, key))
		if (aq_line_fetch(line))
			return true;
	return false;
}

/* The row with exactly this key, as the dirty snapshot sees it, in the slot. */
bool
aq_line_find(Line *line, int32 queue, int position, const Key *key)
{
	const Key	last = KEY_LAST;
	Key			found;

	/* messages are looked up in their order: often it is one of the next entries */
	if (line->found && line->found_queue == queue && line->found_position == position &&
		key_compare(&line->found_key, key) < 0)
		for (int i = 0; i < NEAR; i++)
		{
			int			order;

			if (!aq_line_next(line, &last, &found))
				break;
			order = key_compare(&found, key);
			if (order < 0 || (order == 0 && !aq_line_fetch(line)))
				continue;
			line->found = order == 0;
			line->found_key = *key;
			if (line->found)
				return true;
			break;
		}
	aq_line_seek(line, queue, position, key, ForwardScanDirection);
	if (!aq_line_next_row(line, key, &found))
		return false;
	line->found = true;
	line->found_queue = queue;
	line->found_position = position;
	line->found_key = *key;
	return true;
}

Key
aq_slot_key(TupleTableSlot *slot)
{
	Key			key;

	slot_getsomeattrs(slot, COL_STEP + 1);
	key.key1 = DatumGetInt64(slot->tts_values[COL_KEY1]);
	key.key2 = DatumGetInt64(slot->tts_values[COL_KEY2]);
	key.step = DatumGetInt64(slot->tts_values[COL_STEP]);
	return key;
}

HeapTupleHeader
aq_slot_header(TupleTableSlot *slot)
{
	Assert(TTS_IS_BUFFERTUPLE(slot));
	return ((HeapTupleTableSlot *) slot)->tuple->t_data;
}

/* Has the queue a row that the worker has something to do with by time? */
bool
aq_row_with_time(Line *line, int32 queue)
{
	Relation	index = aq_time_index_open(line->rel);
	IndexScanDesc scan = aq_index_beginscan(line->rel, index, &line->dirty, 1);
	ScanKeyData key;
	bool		found;

	ScanKeyInit(&key, 1, BTEqualStrategyNumber, F_INT4EQ, Int32GetDatum(queue));
	index_rescan(scan, &key, 1, NULL, 0);
	found = index_getnext_slot(scan, ForwardScanDirection, line->slot);
	index_endscan(scan);
	index_close(index, NoLock);
	return found;
}

/* --- by message id ------------------------------------------------------------------ */

/*
 * The message's row in t, in the line's slot.  The id of a message whose place
 * is in the order of the enqueue calls says its place; others are found by the
 * index on ids.
 */
bool
aq_row_find_by_id(Line *line, AqQueue *queue, const pg_uuid_t *id)
{
	Key			key = {0, 0, 0};
	Relation	index;
	IndexScanDesc scan;
	ScanKeyData scankey;
	bool		found;

	if (aq_classic_id_parse(id, queue->key, &key.step) &&
		aq_line_find(line, queue->id, 0, &key))
	{
		slot_getsomeattrs(line->slot, COL_ID + 1);
		if (memcmp(DatumGetUUIDP(line->slot->tts_values[COL_ID]), id, UUID_LEN) == 0)
			return true;
	}

	index = open_index(line->rel, INDEX_ID, AccessShareLock);
	scan = aq_index_beginscan(line->rel, index, &line->dirty, 1);
	ScanKeyInit(&scankey, 1, BTEqualStrategyNumber, F_UUID_EQ, UUIDPGetDatum(id));
	index_rescan(scan, &scankey, 1, NULL, 0);
	found = index_getnext_slot(scan, ForwardScanDirection, line->slot);
	index_endscan(scan);
	index_close(index, NoLock);
	if (!found)
		return false;
	slot_getsomeattrs(line->slot, COL_STATE + 1);
	return DatumGetInt32(line->slot->tts_values[COL_QUEUE]) == queue->id &&
		DatumGetInt16(line->slot->tts_values[COL_STATE]) != STATE_PROCESSED;
}

/* --- writing -------------------------------------------------------------------------- */

/* Is the row in the index?  The predicates of our indexes, as make_tables has them. */
static bool
belongs(IndexKind kind, TupleTableSlot *slot)
{
	switch (kind)
	{
		case INDEX_ORDER:
			return DatumGetInt16(slot->tts_values[COL_STATE]) != STATE_PROCESSED;
		case INDEX_ID:
			return DatumGetBool(slot->tts_values[COL_ODD]);
		case INDEX_TIME:
			return !slot->tts_isnull[COL_NEXT_AT];
		case INDEX_OTHER:
			break;
	}
	return false;
}

/* An index that somebody has added: the executor knows how. */
static void
insert_into_other(Relation rel, Relation index, TupleTableSlot *slot)
{
	IndexInfo  *info = BuildIndexInfo(index);
	EState	   *estate = CreateExecutorState();
	ExprContext *context = GetPerTupleExprContext(estate);
	Datum		values[INDEX_MAX_KEYS];
	bool		nulls[INDEX_MAX_KEYS];

	context->ecxt_scantuple = slot;
	if (info->ii_Predicate == NIL || ExecQual(ExecPrepareQual(info->ii_Predicate, estate), context))
	{
		FormIndexDatum(info, slot, estate, values, nulls);
		index_insert(index, values, nulls, &slot->tts_tid, rel,
					 info->ii_Unique ? UNIQUE_CHECK_YES : UNIQUE_CHECK_NO, false, info);
	}
	FreeExecutorState(estate);
}

static void
insert_into_index(Relation rel, Relation index, TupleTableSlot *slot, IndexInfo *info)
{
	IndexKind	kind = index_kind(index);
	const int2vector *columns = &index->rd_index->indkey;
	Datum		values[5];
	bool		nulls[5];

	if (kind == INDEX_OTHER)
	{
		insert_into_other(rel, index, slot);
		return;
	}
	if (!belongs(kind, slot))
		return;
	for (int i = 0; i < columns->dim1; i++)
	{
		values[i] = slot->tts_values[columns->values[i] - 1];
		nulls[i] = slot->tts_isnull[columns->values[i] - 1];
	}
	index_insert(index, values, nulls, &slot->tts_tid, rel,
				 kind == INDEX_ID ? UNIQUE_CHECK_YES : UNIQUE_CHECK_NO, false, info);
}

static void
insert_into_indexes(Relation rel, TupleTableSlot **slots, int n)
{
	IndexInfo  *info = makeNode(IndexInfo);
	ListCell   *lc;

	foreach(lc, RelationGetIndexList(rel))
	{
		Relation	index = index_open(lfirst_oid(lc), RowExclusiveLock);

		for (int i = 0; i < n; i++)
		{
			slot_getsomeattrs(slots[i], Min(RelationGetDescr(rel)->natts, COL_ID + 1));
			insert_into_index(rel, index, slots[i], info);
		}
		index_close(index, NoLock);
	}
	pfree(info);
}

/* Insert rows; their slots are heap slots with a tuple each. */
void
aq_rows_insert(Relation rel, TupleTableSlot **slots, int n)
{
	CommandId	command = GetCurrentCommandId(true);

	if (n == 1)
		table_tuple_insert(rel, slots[0], command, 0, NULL);
	else
		table_multi_insert(rel, slots, n, command, 0, NULL);
	insert_into_indexes(rel, slots, n);
}

/*
 * Has this transaction the row locked?  Perhaps it has also taken it since, and
 * rolled back to a savepoint: then it has several entries in the row.
 */
bool
aq_locked_here(HeapTupleHeader header)
{
	TransactionId xmax = HeapTupleHeaderGetRawXmax(header);
	MultiXactMember *members;
	bool		locked = false;
	int			n;

	if (header->t_infomask & HEAP_XMAX_INVALID)
		return false;
	if (!(header->t_infomask & HEAP_XMAX_IS_MULTI))
		return HEAP_XMAX_IS_LOCKED_ONLY(header->t_infomask) && TransactionIdIsCurrentTransactionId(xmax);
	n = GetMultiXactIdMembers(xmax, &members, false, HEAP_XMAX_IS_LOCKED_ONLY(header->t_infomask));
	for (int i = 0; i < n && !locked; i++)
		locked = TransactionIdIsCurrentTransactionId(members[i].xid);
	if (n > 0)
		pfree(members);
	return locked;
}

/* The transaction that has the row locked, and has not changed it; invalid: none, or several. */
TransactionId
aq_row_locker(HeapTupleHeader header)
{
	TransactionId xmax = HeapTupleHeaderGetRawXmax(header);

	if ((header->t_infomask & (HEAP_XMAX_INVALID | HEAP_XMAX_IS_MULTI)) ||
		!HEAP_XMAX_IS_LOCKED_ONLY(header->t_infomask) || !TransactionIdIsInProgress(xmax))
		return InvalidTransactionId;
	return xmax;
}

/* Has another transaction, or several, the row locked? */
bool
aq_locked_elsewhere(HeapTupleHeader header)
{
	if ((header->t_infomask & HEAP_XMAX_INVALID) || aq_locked_here(header))
		return false;
	if (header->t_infomask & HEAP_XMAX_IS_MULTI)
		return MultiXactIdIsRunning(HeapTupleHeaderGetRawXmax(header), HEAP_XMAX_IS_LOCKED_ONLY(header->t_infomask));
	return TransactionIdIsValid(aq_row_locker(header));
}

/* Lock the row, if no other transaction has it. */
bool
aq_row_lock(Relation rel, TupleTableSlot *slot)
{
	TM_FailureData failure;
	TupleTableSlot *locked = table_slot_create(rel, NULL);
	TM_Result	result;

	result = table_tuple_lock(rel, &slot->tts_tid, SnapshotAny, locked, GetCurrentCommandId(true),
							  LockTupleExclusive, LockWaitSkip, 0, &failure);
	ExecDropSingleTupleTableSlot(locked);
	return result == TM_Ok;
}

/* Is it this transaction's already: locked, or inserted? */
static bool
is_own(TupleTableSlot *slot)
{
	return aq_locked_here(aq_slot_header(slot)) || TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(aq_slot_header(slot)));
}

/* TM_Ok, or another session has it. */
TM_Result
aq_row_delete(Relation rel, TupleTableSlot *slot)
{
	TM_FailureData failure;

	return table_tuple_delete(rel, &slot->tts_tid, GetCurrentCommandId(true), InvalidSnapshot,
							  InvalidSnapshot, aq_locked_here(aq_slot_header(slot)), &failure, false);
}

/*
 * The same for an update of some columns.  The table's methods cannot update
 * without waiting, so the row is locked first.
 */
TM_Result
aq_row_update(Relation rel, TupleTableSlot *slot, const int *columns, const Datum *values,
			  const bool *nulls, int n)
{
	TupleDesc	desc = RelationGetDescr(rel);
	Datum	   *all = palloc0(desc->natts * sizeof(Datum));
	bool	   *all_nulls = palloc0(desc->natts * sizeof(bool));
	bool	   *replace = palloc0(desc->natts * sizeof(bool));
	TupleTableSlot *changed;
	HeapTuple	tuple;
	TM_Result	result;
	bool		indexes;
	bool		should_free;

	if (!is_own(slot) && !aq_row_lock(rel, slot))
		return TM_BeingModified;
	changed = MakeSingleTupleTableSlot(desc, &TTSOpsHeapTuple);
	for (int i = 0; i < n; i++)
	{
		all[columns[i]] = values[i];
		all_nulls[columns[i]] = nulls != NULL && nulls[i];
		replace[columns[i]] = true;
	}
	tuple = ExecFetchSlotHeapTuple(slot, false, &should_free);
	ExecForceStoreHeapTuple(heap_modify_tuple(tuple, desc, all, all_nulls, replace), changed, true);
	result = aq_table_update(rel, &slot->tts_tid, changed, GetCurrentCommandId(true), true, &indexes);
	if (result == TM_Ok && indexes)
		insert_into_indexes(rel, &changed, 1);
	ExecDropSingleTupleTableSlot(changed);
	return result;
}
