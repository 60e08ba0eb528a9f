/*-------------------------------------------------------------------------
 *
 * unlogged.c
 *	  The tables of buffered messages: are they complete, and which blocks are
 *	  in memory?
 *
 * A marker row tells whether the tables have been emptied: PostgreSQL empties
 * unlogged tables in crash recovery, and they are empty in a base backup and
 * on a promoted standby.  The row belongs to no queue, so it is never scanned
 * or changed.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "classic/classic_private.h"

#include "access/table.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/builtins.h"

/* not a queue's id */
#define MARK_QUEUE 0

/* table: its name without the schema */
void
aq_unlogged_mark(const char *table)
{
	(void) aq_sql_run(psprintf("INSERT INTO aq_data.%s (queue_id, \"position\", state, attempts, key1, key2, step, "
							   "odd, msgid, priority, enqueue_time) "
							   "VALUES (%d, -1, %d, 0, 0, 0, 0, false, gen_random_uuid(), 0, clock_timestamp())",
							   table, MARK_QUEUE, STATE_CHECK), 0, NULL, NULL, NULL, false);
}

AqAnswer
aq_unlogged_was_emptied(AqQueue *queue)
{
	const char *table = aq_schema_message_table(queue->table.id);
	bool		marked;

	if (!aq_row_scan_try_lock(queue))
		return AQ_CANNOT_SAY;
	marked = aq_sql_finds(psprintf("SELECT 1 FROM aq_data.%s WHERE queue_id = %d AND state <> %d", table, MARK_QUEUE,
								   STATE_PROCESSED));
	if (!marked)
		aq_unlogged_mark(table);
	return marked ? AQ_NO : AQ_YES;
}

/* A bitmap of the table's blocks that are in shared buffers. */
bytea *
aq_unlogged_blocks_in_memory(Oid table)
{
	Relation	rel = table_open(table, AccessShareLock);
	BlockNumber n = RelationGetNumberOfBlocks(rel);
	Size		length = (n + 7) / 8;
	bytea	   *bits = palloc(VARHDRSZ + length);

	SET_VARSIZE(bits, VARHDRSZ + length);
	memset(VARDATA(bits), 0xff, length);	/* blocks that are added meanwhile are in memory */
	/* this prefetches blocks that are not there, which is harmless */
	for (BlockNumber block = 0; block < n; block++)
	{
		CHECK_FOR_INTERRUPTS();
		if (!BufferIsValid(PrefetchBuffer(rel, MAIN_FORKNUM, block).recent_buffer))
			VARDATA(bits)[block / 8] &= ~(1 << (block % 8));
	}
	table_close(rel, AccessShareLock);
	return bits;
}
