/*-------------------------------------------------------------------------
 *
 * classic_body.c
 *	  The bodies of large messages, apart from their payloads, in chunks.
 *
 * See body_row.c for their rows.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "classic/classic_private.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "executor/tuptable.h"
#include "utils/uuid.h"

/* Has this transaction enqueued the message?  Not if it has only changed its row, such as for a lease. */
static bool
is_own(AqQueue *queue, const pg_uuid_t *id)
{
	RowScan		rows;
	bool		own = false;

	aq_row_scan_open(&rows, queue, queue->table.messages, RowExclusiveLock);
	if (aq_row_scan_find_id(&rows, queue, id))
	{
		HeapTupleHeader header = aq_table_row_header(rows.slot);

		own = (header->t_infomask & HEAP_UPDATED) == 0 &&
			TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(header));
	}
	aq_row_scan_close(&rows, false);
	return own;
}

AqBodyWrite
aq_classic_body_write(AqQueue *queue, const pg_uuid_t *id, int32 number, bytea *data)
{
	Oid			table = aq_body_row_table(queue->table.id);
	Relation	rel;
	bool		is_there;

	if (!OidIsValid(table) || !is_own(queue, id))
		return AQ_BODY_NOT_OWN;
	rel = aq_row_scan_open_table(queue, table, RowExclusiveLock);
	/* not left to the primary key, whose error would not name the message's queue */
	is_there = aq_body_row_read(rel, id, number, false) != NULL;
	if (!is_there)
		aq_body_row_insert(rel, id, number, data);
	table_close(rel, NoLock);
	return is_there ? AQ_BODY_IS_THERE : AQ_BODY_WRITTEN;
}

/* Finds a row of the message in this queue, also one that is kept after it was dequeued. */
static bool
find(RowScan *rows, AqQueue *queue, const pg_uuid_t *id)
{
	ExecClearTuple(rows->slot);
	if (aq_row_scan_find_id(rows, queue, id))
		return true;
	if (TTS_EMPTY(rows->slot))
		return false;
	slot_getsomeattrs(rows->slot, Max(COL_QUEUE, COL_ID) + 1);
	return DatumGetInt32(rows->slot->tts_values[COL_QUEUE]) == queue->id &&
		memcmp(DatumGetUUIDP(rows->slot->tts_values[COL_ID]), id, UUID_LEN) == 0;
}

/*
 * May the consumer read the body?  The queue table can have other queues, for whose
 * messages the caller has no right.  deleted: only a body that this transaction has
 * deleted with its message, of which no row was found.
 */
static bool
is_for(AqQueue *queue, const pg_uuid_t *id, int position, bool *deleted)
{
	RowScan		rows;
	bool		is = true;

	aq_row_scan_open(&rows, queue, queue->table.messages, AccessShareLock);
	*deleted = !find(&rows, queue, id);
	if (*deleted && TTS_EMPTY(rows.slot))
	{
		/* dequeued: its old row, if it is still there, says whose it was */
		rows.dirty.snapshot_type = SNAPSHOT_ANY;
		*deleted = !find(&rows, queue, id);
	}
	if (!*deleted && queue->multi)
	{
		slot_getsomeattrs(rows.slot, COL_TARGETS + 1);
		is = position >= 0 && !rows.slot->tts_isnull[COL_TARGETS] &&
			bms_is_member(position, aq_table_row_targets(rows.slot->tts_values[COL_TARGETS]));
	}
	aq_row_scan_close(&rows, true);
	return is;
}

/* AQ_ANY_POSITION: for a copy of a message that the caller has found. */
bytea *
aq_classic_body_read(AqQueue *queue, const pg_uuid_t *id, int32 number, int position)
{
	Oid			table = aq_body_row_table(queue->table.id);
	Relation	rel;
	bytea	   *data;
	bool		deleted = false;

	if (!OidIsValid(table) || (position != AQ_ANY_POSITION && !is_for(queue, id, position, &deleted)))
		return NULL;
	rel = aq_row_scan_open_table(queue, table, AccessShareLock);
	data = aq_body_row_read(rel, id, number, deleted);
	table_close(rel, AccessShareLock);
	return data;
}
