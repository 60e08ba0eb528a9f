/*-------------------------------------------------------------------------
 *
 * body_row.c
 *	  The rows of the bodies of large messages: functions to read, write and
 *	  delete them.
 *
 * A queue table of aq.jms_message has a table aq_data.k<id> for them.  The chunks are
 * deleted where the message's row is deleted, by the same transaction.
 *
 * The rows are read as they are now, not in a snapshot: a message that was dequeued
 * is often not in the transaction's snapshot.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "classic/classic_private.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/table.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/indexing.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "storage/procarray.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/uuid.h"

enum
{
	CHUNK_ID, CHUNK_NUMBER, CHUNK_DATA, CHUNK_COLUMNS
};

/* The table for the bodies of a queue table; InvalidOid: it has none. */
Oid
aq_body_row_table(int32 id)
{
	char		name[NAMEDATALEN];

	snprintf(name, sizeof(name), "k%d", id);
	return id > 0 ? aq_schema_data_relation(name) : InvalidOid;
}

/* The index of its primary key. */
static Oid
key_index(Relation rel)
{
	char		name[NAMEDATALEN];
	Oid			index;

	snprintf(name, sizeof(name), "%s_pkey", RelationGetRelationName(rel));
	index = aq_schema_data_relation(name);
	if (!OidIsValid(index))
		elog(ERROR, "index \"%s\" is missing", name);
	return index;
}

/* Locks the table without waiting, for the worker; false: a user has locked it. */
bool
aq_body_row_try_lock(const AqQueue *queue)
{
	Oid			table = aq_payload_is_jms(queue->payload_type) ? aq_body_row_table(queue->table.id) : InvalidOid;

	return !OidIsValid(table) || ConditionalLockRelationOid(table, RowExclusiveLock);
}

/* --- writing ------------------------------------------------------------------------------ */

void
aq_body_row_insert(Relation rel, const pg_uuid_t *id, int32 number, bytea *data)
{
	Datum		values[CHUNK_COLUMNS] = {UUIDPGetDatum(id), Int32GetDatum(number), PointerGetDatum(data)};
	bool		nulls[CHUNK_COLUMNS] = {0};
	HeapTuple	tuple = heap_form_tuple(RelationGetDescr(rel), values, nulls);

	CatalogTupleInsert(rel, tuple);
	heap_freetuple(tuple);
}

/*
 * The row in the slot, of either table, is being deleted: deletes the chunks, if it is a
 * message with some.
 */
void
aq_body_row_delete(Relation messages, TupleTableSlot *slot)
{
	TupleDesc	desc = RelationGetDescr(messages);
	ScanKeyData key;
	SysScanDesc scan;
	Relation	rel;
	HeapTuple	tuple;
	char		name[NAMEDATALEN];
	Oid			table;

	if (desc->natts <= COL_CONSUMER_COLUMNS || !aq_payload_is_jms(TupleDescAttr(desc, COL_PAYLOAD)->atttypid))
		return;
	/* buffered messages, in tables b<id>, have none */
	snprintf(name, sizeof(name), "k%s", RelationGetRelationName(messages) + 1);
	table = RelationGetRelationName(messages)[0] == 't' ? aq_schema_data_relation(name) : InvalidOid;
	rel = OidIsValid(table) ? try_table_open(table, RowExclusiveLock) : NULL;
	if (rel == NULL)
		return;
	if (RelationGetNumberOfBlocks(rel) > 0)
	{
		slot_getsomeattrs(slot, COL_ID + 1);
		ScanKeyInit(&key, CHUNK_ID + 1, BTEqualStrategyNumber, F_UUID_EQ, slot->tts_values[COL_ID]);
		scan = systable_beginscan(rel, key_index(rel), true, SnapshotSelf, 1, &key);
		while ((tuple = systable_getnext(scan)) != NULL)
			simple_heap_delete(rel, &tuple->t_self);
		systable_endscan(scan);
	}
	table_close(rel, NoLock);
}

/* --- reading ------------------------------------------------------------------------------ */

/* Is the row inserted, and not deleted by another transaction?  deleted: and deleted by this one? */
static bool
is_there(HeapTupleHeader header, bool deleted)
{
	TransactionId xmin = HeapTupleHeaderGetXmin(header);
	TransactionId xmax;

	if (!HeapTupleHeaderXminFrozen(header) && !TransactionIdIsCurrentTransactionId(xmin) &&
		(TransactionIdIsInProgress(xmin) || !TransactionIdDidCommit(xmin)))
		return false;
	if ((header->t_infomask & HEAP_XMAX_INVALID) || HEAP_XMAX_IS_LOCKED_ONLY(header->t_infomask))
		return !deleted;
	xmax = HeapTupleHeaderGetUpdateXid(header);
	if (TransactionIdIsCurrentTransactionId(xmax))
		return true;
	return !deleted && (TransactionIdIsInProgress(xmax) || !TransactionIdDidCommit(xmax));
}

/*
 * Returns a chunk, or NULL if there is none.  deleted: read only chunks that this
 * transaction has deleted.
 */
bytea *
aq_body_row_read(Relation rel, const pg_uuid_t *id, int32 number, bool deleted)
{
	ScanKeyData keys[2];
	SysScanDesc scan;
	HeapTuple	tuple;
	bytea	   *data = NULL;

	ScanKeyInit(&keys[0], CHUNK_ID + 1, BTEqualStrategyNumber, F_UUID_EQ, UUIDPGetDatum(id));
	ScanKeyInit(&keys[1], CHUNK_NUMBER + 1, BTEqualStrategyNumber, F_INT4EQ, Int32GetDatum(number));
	scan = systable_beginscan(rel, key_index(rel), true, SnapshotAny, 2, keys);
	while (data == NULL && (tuple = systable_getnext(scan)) != NULL)
	{
		bool		isnull;

		if (is_there(tuple->t_data, deleted))
			data = DatumGetByteaPCopy(heap_getattr(tuple, CHUNK_DATA + 1, RelationGetDescr(rel), &isnull));
	}
	systable_endscan(scan);
	return data;
}
