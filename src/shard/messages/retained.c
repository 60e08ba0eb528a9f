/*-------------------------------------------------------------------------
 *
 * retained.c
 *	  Purging messages that are consumed and still in their tables: a row of
 *	  the log says so, which only the views read.
 *
 * The message is done already, so nothing changes in memory, and the tables are
 * truncated when they would have been without the row.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/messages/messages_private.h"

#include "access/heapam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "miscadmin.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/* What the log of a table says of its partition's messages, with the caller's snapshot. */
typedef struct Consumed
{
	int64		number;			/* of the partition */
	int			stream;
	Bitmapset  *taken[AQ_MAX_CONSUMERS];	/* by consumer: slots */
	Bitmapset  *cleared[AQ_MAX_CONSUMERS];
} Consumed;

static void
read_log_row(Consumed *p, const LogRow *row)
{
	Bitmapset **slots = row->kind == LOG_TAKEN ? p->taken : p->cleared;

	if ((row->kind != LOG_TAKEN && row->kind != LOG_CLEARED) || row->position < 0 || row->position >= AQ_MAX_CONSUMERS)
		return;
	for (int i = 0; i < row->n; i++)
		/* a crash between truncations leaves rows of an earlier partition: see reclaim.c */
		if (row->ordinals[i] / PARTITION_SLOTS == p->number)
		{
			slots[row->position] = bms_add_member(slots[row->position], row->ordinals[i] % PARTITION_SLOTS);
			p->stream = row->stream;
		}
}

static void
read_log(Consumed *p, Relation log)
{
	TableScanDesc scan = aq_table_beginscan(log, GetActiveSnapshot());
	HeapTuple	tuple;

	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		LogRow		row = aq_heap_read_log(tuple, RelationGetDescr(log));

		CHECK_FOR_INTERRUPTS();
		read_log_row(p, &row);
	}
	table_endscan(scan);
}

/* Those of the ids that are in the partition; ids NULL: NULL. */
static Bitmapset *
slots_of_ids(AqQueue *queue, const Consumed *p, const pg_uuid_t *ids, uint32 n)
{
	Bitmapset  *slots = NULL;

	for (uint32 i = 0; i < n && ids != NULL; i++)
	{
		int			stream;
		int64		ordinal;

		if (aq_message_id_parse(&ids[i], queue->shard_key, &stream, &ordinal) && ordinal / PARTITION_SLOTS == p->number)
			slots = bms_add_member(slots, ordinal % PARTITION_SLOTS);
	}
	return slots;
}

/* Returns the number of messages that the row says are purged. */
static uint32
clear(const Consumed *p, Relation log, int position, const Bitmapset *wanted)
{
	Bitmapset  *chosen = bms_difference(p->taken[position], p->cleared[position]);
	uint16	   *slots;
	uint32		n = 0;
	int			slot = -1;

	if (wanted != NULL)
		chosen = bms_int_members(chosen, wanted);
	slots = palloc((bms_num_members(chosen) + 1) * sizeof(uint16));
	while ((slot = bms_next_member(chosen, slot)) >= 0)
		slots[n++] = slot;
	aq_heap_write_cleared(log, p->stream, p->number, position, slots, n);
	return n;
}

/* The log is locked before it is read, so that it is not truncated for another partition before the row is in it. */
static uint32
clear_table(AqQueue *queue, int table_no, int position, const pg_uuid_t *ids, uint32 n)
{
	Relation	rel = aq_heap_open_numbered(queue, 'q', table_no, AccessShareLock);
	Relation	log = aq_heap_open_numbered(queue, 'l', table_no, RowExclusiveLock);
	uint32		cleared = 0;

	if (rel != NULL && log != NULL)
	{
		Consumed   *p = palloc0(sizeof(Consumed));
		Bitmapset  *wanted = NULL;

		p->number = aq_heap_partition_number(rel);
		if (p->number >= 0)
			read_log(p, log);
		if (p->number >= 0 && ids != NULL)
			wanted = slots_of_ids(queue, p, ids, n);
		for (int i = 0; i < AQ_MAX_CONSUMERS && p->number >= 0; i++)
			if (p->taken[i] != NULL && (position < 0 || position == i) && (ids == NULL || wanted != NULL))
				cleared += clear(p, log, i, wanted);
	}
	if (rel != NULL)
		table_close(rel, AccessShareLock);
	if (log != NULL)
		table_close(log, cleared > 0 ? NoLock : RowExclusiveLock);	/* a queue can have very many */
	return cleared;
}

/*
 * position -1: of all consumers.  ids NULL: all.  What other transactions take
 * meanwhile stays.
 */
uint64
aq_retained_purge(AqQueue *queue, int position, const pg_uuid_t *ids, uint32 n)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "pgaq retained messages", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	List	   *tables = aq_tables_numbers(queue->id);
	uint64		purged = 0;
	ListCell   *lc;

	foreach(lc, tables)
	{
		MemoryContext one = AllocSetContextCreate(context, "pgaq retained messages of a table", ALLOCSET_DEFAULT_SIZES);

		(void) MemoryContextSwitchTo(one);
		purged += clear_table(queue, lfirst_int(lc), position, ids, n);
		(void) MemoryContextSwitchTo(context);
		MemoryContextDelete(one);
	}
	(void) MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return purged;
}
