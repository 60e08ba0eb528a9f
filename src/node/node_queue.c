/*-------------------------------------------------------------------------
 *
 * node_queue.c
 *	  What the definition of a queue has of units: which shards its description
 *	  closes, and the rows of a queue that is dropped.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "node/node_private.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"
#include "utils/snapshot.h"

/* The columns of aq_internal.node_unit and aq_internal.node_held that matter here. */
enum
{
	UNIT_QUEUE, UNIT_SHARD, UNIT_CONSUMER, UNIT_RETURNS
};

static void
close_shard(AqQueue *queue, int shard, int64 number)
{
	const AqConsumer *consumer = aq_description_consumer(queue, number);

	if (queue->multi && consumer == NULL)
		return;
	if (queue->nclosed % 16 == 0)
		queue->closed = queue->closed == NULL ? palloc(16 * sizeof(AqClosedShard))
			: repalloc(queue->closed, (queue->nclosed + 16) * sizeof(AqClosedShard));
	queue->closed[queue->nclosed++] = (AqClosedShard) {shard, queue->multi ? consumer->position : 0};
}

/* Rows of units that other nodes hold, or, of node_held, of units of other nodes. */
static void
read_table(AqQueue *queue, const char *table, bool held, Snapshot snapshot)
{
	Relation	rel = aq_schema_open(table, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, 1, BTEqualStrategyNumber, F_INT4EQ, Int32GetDatum(queue->id));
	scan = systable_beginscan(rel, aq_primary_key(rel), true, snapshot, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		bool		isnull;
		int			shard = DatumGetInt16(heap_getattr(tuple, UNIT_SHARD + 1, RelationGetDescr(rel), &isnull));

		if (!held)
			close_shard(queue, shard, DatumGetInt64(heap_getattr(tuple, UNIT_CONSUMER + 1, RelationGetDescr(rel), &isnull)));
		else if (!DatumGetBool(heap_getattr(tuple, UNIT_RETURNS + 1, RelationGetDescr(rel), &isnull)))
			queue->held = bms_add_member(queue->held, shard);
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
}

/* Into the description, in its memory context. */
static void
read_units(AqQueue *queue, Snapshot snapshot)
{
	read_table(queue, "node_unit", false, snapshot);
	read_table(queue, "node_held", true, snapshot);
}

/* Units of other nodes go back to their origins; adopted messages have no other origin. */
static void
drop_rows(int32 id)
{
	aq_sql_change(psprintf("DELETE FROM aq_internal.node_unit WHERE queue_id = %d", id), 0, NULL, NULL, NULL);
	aq_sql_change(psprintf("DELETE FROM aq_internal.node_held WHERE queue_id = %d AND origin IN (SELECT node_id FROM aq_internal.node_identity)", id), 0, NULL, NULL, NULL);
	aq_sql_change(psprintf("UPDATE aq_internal.node_held SET returns = true WHERE queue_id = %d", id), 0, NULL, NULL, NULL);
}

void
aq_node_queue_register(void)
{
	static const AqQueueRows rows = {.drop = drop_rows};

	aq_description_on_units(read_units);
	aq_definition_add_rows(&rows);
}
