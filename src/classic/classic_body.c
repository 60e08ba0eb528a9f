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
#include "utils/uuid.h"

/* Has this transaction enqueued the message? */
static bool
is_own(AqQueue *queue, const pg_uuid_t *id)
{
	RowScan		rows;
	bool		own;

	aq_row_scan_open(&rows, queue, queue->table.messages, RowExclusiveLock);
	own = aq_row_scan_find_id(&rows, queue, id) &&
		TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(aq_table_row_header(rows.slot)));
	aq_row_scan_close(&rows, false);
	return own;
}

bool
aq_classic_body_write(AqQueue *queue, const pg_uuid_t *id, int32 number, bytea *data)
{
	Oid			table = aq_body_row_table(queue->table.id);
	Relation	rel;

	if (!OidIsValid(table) || !is_own(queue, id))
		return false;
	rel = aq_row_scan_open_table(queue, table, RowExclusiveLock);
	aq_body_row_insert(rel, id, number, data);
	table_close(rel, NoLock);
	return true;
}

/* Is the message for the consumer?  A message that this transaction has dequeued may have no row any more. */
static bool
is_for(AqQueue *queue, const pg_uuid_t *id, int position)
{
	RowScan		rows;
	bool		is = true;

	aq_row_scan_open(&rows, queue, queue->table.messages, AccessShareLock);
	if (aq_row_scan_find_id(&rows, queue, id))
	{
		slot_getsomeattrs(rows.slot, COL_TARGETS + 1);
		is = position >= 0 && !rows.slot->tts_isnull[COL_TARGETS] &&
			bms_is_member(position, aq_table_row_targets(rows.slot->tts_values[COL_TARGETS]));
	}
	aq_row_scan_close(&rows, true);
	return is;
}

bytea *
aq_classic_body_read(AqQueue *queue, const pg_uuid_t *id, int32 number, int position)
{
	Oid			table = aq_body_row_table(queue->table.id);
	Relation	rel;
	bytea	   *data;

	if (!OidIsValid(table) || (queue->multi && position != AQ_ANY_POSITION && !is_for(queue, id, position)))
		return NULL;
	rel = aq_row_scan_open_table(queue, table, AccessShareLock);
	data = aq_body_row_read(rel, id, number);
	table_close(rel, AccessShareLock);
	return data;
}
