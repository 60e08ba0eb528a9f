/*-------------------------------------------------------------------------
 *
 * table_row.c
 *	  The rows of a queue table: functions to read, write and lock them.
 *
 * Rows are deleted and updated without waiting: rows that another transaction
 * has locked or changed are skipped.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "classic/classic_private.h"

#include "access/heapam.h"
#include "access/multixact.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "storage/procarray.h"
#include "utils/snapmgr.h"

Key
aq_table_row_key(TupleTableSlot *slot)
{
	Key			key;

	slot_getsomeattrs(slot, COL_STEP + 1);
	key.key1 = DatumGetInt64(slot->tts_values[COL_KEY1]);
	key.key2 = DatumGetInt64(slot->tts_values[COL_KEY2]);
	key.step = DatumGetInt64(slot->tts_values[COL_STEP]);
	return key;
}

HeapTupleHeader
aq_table_row_header(TupleTableSlot *slot)
{
	Assert(TTS_IS_BUFFERTUPLE(slot));
	return ((HeapTupleTableSlot *) slot)->tuple->t_data;
}

Bitmapset *
aq_table_row_targets(Datum datum)
{
	bytea	   *bytes = DatumGetByteaPP(datum);
	const uint8 *bits = (const uint8 *) VARDATA_ANY(bytes);
	Bitmapset  *targets = NULL;

	for (int position = 0; position < (int) VARSIZE_ANY_EXHDR(bytes) * 8; position++)
		if (bits[position / 8] & (1 << (position % 8)))
			targets = bms_add_member(targets, position);
	return targets;
}

/* --- locks --------------------------------------------------------------------------- */

/*
 * Has this transaction locked the row?  If it has also taken the row and
 * rolled back to a savepoint, its xids are members of a multixact.
 */
bool
aq_table_row_locked_here(HeapTupleHeader header)
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

/* The transaction that has only locked the row; invalid: none, or several. */
TransactionId
aq_table_row_locker(HeapTupleHeader header)
{
	TransactionId xmax = HeapTupleHeaderGetRawXmax(header);

	if ((header->t_infomask & (HEAP_XMAX_INVALID | HEAP_XMAX_IS_MULTI)) ||
		!HEAP_XMAX_IS_LOCKED_ONLY(header->t_infomask) || !TransactionIdIsInProgress(xmax))
		return InvalidTransactionId;
	return xmax;
}

/* Have other transactions locked the row? */
bool
aq_table_row_locked_elsewhere(HeapTupleHeader header)
{
	if ((header->t_infomask & HEAP_XMAX_INVALID) || aq_table_row_locked_here(header))
		return false;
	if (header->t_infomask & HEAP_XMAX_IS_MULTI)
		return MultiXactIdIsRunning(HeapTupleHeaderGetRawXmax(header), HEAP_XMAX_IS_LOCKED_ONLY(header->t_infomask));
	return TransactionIdIsValid(aq_table_row_locker(header));
}

/* Locks the row, if no other transaction has it. */
bool
aq_table_row_lock(Relation rel, TupleTableSlot *slot)
{
	TM_FailureData failure;
	TupleTableSlot *locked = table_slot_create(rel, NULL);
	TM_Result	result;

	result = table_tuple_lock(rel, &slot->tts_tid, SnapshotAny, locked, GetCurrentCommandId(true),
							  LockTupleExclusive, LockWaitSkip, 0, &failure);
	ExecDropSingleTupleTableSlot(locked);
	return result == TM_Ok;
}

/* --- writing -------------------------------------------------------------------------- */

/* Inserts rows; their slots are heap slots, each with a tuple. */
void
aq_table_row_insert(Relation rel, TupleTableSlot **slots, int n)
{
	CommandId	command = GetCurrentCommandId(true);

	if (n == 1)
		table_tuple_insert(rel, slots[0], command, 0, NULL);
	else
		table_multi_insert(rel, slots, n, command, 0, NULL);
	aq_table_index_insert(rel, slots, n);
}

/* Has this transaction already locked or inserted the row? */
static bool
is_own(TupleTableSlot *slot)
{
	return aq_table_row_locked_here(aq_table_row_header(slot)) || TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(aq_table_row_header(slot)));
}

/* Returns TM_Ok unless another session has the row. */
TM_Result
aq_table_row_delete(Relation rel, TupleTableSlot *slot)
{
	TM_Result	result;

	result = aq_table_delete(rel, &slot->tts_tid, GetCurrentCommandId(true), aq_table_row_locked_here(aq_table_row_header(slot)));
	if (result == TM_Ok)
		aq_body_row_delete(rel, slot);
	return result;
}

/*
 * The same for an update of some columns.  The table access method cannot
 * update without waiting, so the row is locked first.
 */
TM_Result
aq_table_row_update(Relation rel, TupleTableSlot *slot, const int *columns, const Datum *values,
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

	if (!is_own(slot) && !aq_table_row_lock(rel, slot))
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
		aq_table_index_insert(rel, &changed, 1);
	ExecDropSingleTupleTableSlot(changed);
	if (should_free)
		pfree(tuple);
	pfree(all);
	pfree(all_nulls);
	pfree(replace);
	return result;
}

/* Marks the row as processed, for its retention. */
TM_Result
aq_table_row_process(const AqQueue *queue, Relation rel, TupleTableSlot *slot)
{
	const int	columns[] = {COL_STATE, COL_NEXT_AT, COL_DEQUEUE_TIME, COL_DEQUEUE_USER, COL_DEQUEUE_XID};
	TimestampTz now = GetCurrentTimestamp();
	Datum		values[] = {Int16GetDatum(STATE_PROCESSED),
		TimestampTzGetDatum(now + queue->retention), TimestampTzGetDatum(now),
		ObjectIdGetDatum(GetUserId()),
		Int64GetDatum(U64FromFullTransactionId(GetTopFullTransactionId()))};
	TM_Result	result = aq_table_row_update(rel, slot, columns, values, NULL, lengthof(columns));

	if (result == TM_Ok)
		aq_due_time_announce(queue->shm, now + queue->retention);
	return result;
}
