/*-------------------------------------------------------------------------
 *
 * first_use.c
 *	  A queue's first use after a start: finds the partitions in its tables;
 *	  unloading a queue.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "shard/loading/loading_private.h"

#include "access/heapam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/twophase.h"
#include "access/xlog.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/*
 * Reads the first row of the table, even an aborted one; returns false if
 * there is none.
 */
static bool
first_row(Relation rel, int64 *ordinal, int *stream)
{
	TableScanDesc scan = aq_table_beginscan(rel, SnapshotAny);
	HeapTuple	tuple = heap_getnext(scan, ForwardScanDirection);
	bool		found = HeapTupleIsValid(tuple);

	if (found)
	{
		bool		isnull;

		*ordinal = message_ordinal(DatumGetInt64(heap_getattr(tuple, MSG_ORDINAL + 1, RelationGetDescr(rel), &isnull)));
		*stream = DatumGetInt16(heap_getattr(tuple, MSG_STREAM + 1, RelationGetDescr(rel), &isnull));
	}
	table_endscan(scan);
	return found;
}

static BlockNumber
table_blocks(Oid relid)
{
	Relation	rel;
	BlockNumber blocks;

	aq_heap_lock_relation(relid, AccessShareLock);
	rel = table_open(relid, NoLock);
	blocks = RelationGetNumberOfBlocks(rel);

	table_close(rel, AccessShareLock);
	return blocks;
}

static void
add_table(AqQueueShm *shm, int32 id, int table_no)
{
	ShardQueue *sq = shard_queue(shm);
	Partition  *partition;
	Oid			messages = aq_tables_find('q', id, table_no);
	Oid			log = aq_tables_find('l', id, table_no);
	Relation	rel = NULL;
	int64		ordinal = 0;
	int			number = 0;

	sq->last_table_no = Max(sq->last_table_no, table_no);
	if (OidIsValid(messages) && OidIsValid(log))
	{
		aq_heap_lock_relation(messages, AccessShareLock);
		rel = try_table_open(messages, NoLock);
	}
	if (rel == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("table \"aq_data.%c%d_%d\" is missing", OidIsValid(messages) ? 'l' : 'q', id, table_no),
				 errhint("Restore it from a backup, or drop the queue with force => true. Its queue_id in aq.queues is %d.", id)));

	partition = aq_pool_take(shm);
	partition->table_no = table_no;
	partition->messages = messages;
	partition->log = log;
	partition->keyed = aq_schema_has_column(messages, MSG_KEY);
	if (first_row(rel, &ordinal, &number))
	{
		Stream	   *stream;

		if (number < 0 || number >= AQ_ALL_SHARDS * AQ_PRIORITIES * 2)
			aq_catalog_refuse_row(NULL, messages, "stream", number);
		stream = aq_stream_make(shm, number);
		partition->number = ordinal / PARTITION_SLOTS;
		partition->state = PARTITION_CLOSED;
		aq_slot_reset(partition, PARTITION_SLOTS);
		/*
		 * a transaction that dequeued from it before the queue was unloaded
		 * may have committed asynchronously
		 */
		partition->last_lsn = GetXLogInsertRecPtr();
		aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_QUEUE_LOAD);
		aq_stream_append(stream, partition);
		aq_pool_placed(partition);
		aq_latch_free(&stream->latch);
	}
	else if (RelationGetNumberOfBlocks(rel) > 0 || table_blocks(log) > 0)
	{
		/*
		 * it has only aborted rows, or there was a crash between the two
		 * truncations
		 */
		aq_settle_list_done(sq, partition);
		aq_pool_placed(partition);
		aq_work_post(shm, AQ_WORK_RECLAIM);
	}
	else
	{
		aq_pool_placed(partition);
		aq_tables_give_back(shm, partition);
	}
	table_close(rel, AccessShareLock);
}

/*
 * Loads at once the tables on which a prepared transaction holds a lock, so
 * that every transaction in doubt is known before the first dequeue: later
 * messages of its session have to wait for it.
 */
static void
load_doubtful(AqQueueShm *shm)
{
	List	   *locked;

	if (max_prepared_xacts == 0)
		return;
	locked = aq_sql_oids("SELECT DISTINCT l.relation FROM pg_catalog.pg_locks l "
						 "WHERE l.locktype = 'relation' AND l.pid IS NULL AND l.mode = 'RowExclusiveLock' "
						 "AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())");
	if (locked == NIL)
		return;

	for (Stream *stream = stream_at(shard_queue(shm)->streams); stream != NULL;
		 stream = stream_at(stream->next))
	{
		uint32		index = stream->head;

		while (index != 0)
		{
			Partition  *partition = partition_at(index);

			index = partition->next;
			if (list_member_oid(locked, partition->messages) ||
				list_member_oid(locked, partition->log))
				aq_load_partition(shm, partition);
		}
	}
}

static void
release_list(uint32 list)
{
	while (list != 0)
	{
		Partition  *partition = partition_at(list);

		list = partition->next;
		aq_frame_free(partition);
		aq_pool_release(partition);
	}
}

/*
 * No session can reach the queue, but eviction goes through all
 * partitions, so the latch is needed.
 */
void
aq_first_use_unload(AqQueueShm *shm)
{
	ShardQueue *queue = shard_queue(shm);
	uint32		list = queue->streams;

	release_list(queue->empty);
	release_list(pg_atomic_exchange_u32(&queue->done, 0));
	queue->empty = 0;
	queue->nempty = queue->nunkeyed = queue->nstreams = queue->opened = 0;
	queue->last_table_no = 0;
	queue->trouble = 0;
	aq_area_reset_counters(queue);
	queue->recovered = queue->limited = queue->limited_known = false;
	queue->worker_wants = queue->worker_wants_keyed = false;
	queue->move_pause = 0;
	queue->streams = 0;
	memset((void *) queue->numbered, 0, sizeof(queue->numbered));
	queue->receipt = 0;			/* the next queue here begins a block of its own */
	while (list != 0)
	{
		Stream	   *stream = stream_at(list);

		list = stream->next;
		aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_QUEUE_UNLOAD);
		release_list(stream->head);
		aq_chunks_free(stream->subs, SUB_DIRECTORY);
		memset(stream->subs, 0, sizeof(stream->subs));
		stream->head = stream->tail = stream->open = 0;
		stream->queue = 0;
		aq_latch_free(&stream->latch);
		aq_latch_get(&aq_area->partitions_latch, AQ_EXCLUSIVE, AQ_LOC_QUEUE_DROP);
		stream->next = aq_area->unused_stream;
		aq_area->unused_stream = stream->index;
		aq_latch_free(&aq_area->partitions_latch);
	}
}

/*
 * Release of a claim: the load of the queue has failed, so the next session
 * begins it again.
 */
static void
unload(void *shm, int64 unused)
{
	aq_first_use_unload(shm);
}

char *
aq_first_use_lost_table(const AqQueue *queue)
{
	static const char letters[] = "ql";
	ListCell   *lc;

	foreach(lc, aq_tables_numbers(queue->id))
		for (int i = 0; letters[i] != '\0'; i++)
			if (!OidIsValid(aq_tables_find(letters[i], queue->id, lfirst_int(lc))))
				return psprintf("%c%d_%d", letters[i], queue->id, lfirst_int(lc));
	return NULL;
}

void
aq_first_use_load(AqQueue *queue, AqQueueShm *shm)
{
	List	   *tables = aq_tables_numbers(queue->id);
	ListCell   *lc;

	aq_claim_reserve(1);
	aq_claim_enter(unload, shm, 0);
	foreach(lc, tables)
		add_table(shm, queue->id, lfirst_int(lc));
	load_doubtful(shm);
	aq_claim_end(unload, shm);
	if (tables == NIL)
		shard_queue(shm)->recovered = true;
	else if (!shard_queue(shm)->recovered)
		aq_work_post(shm, AQ_WORK_RECOUNT);
}

/* --- the first dequeue of a limited consumer --------------------------------------------- */

static bool
is_not_limited(const Partition *partition)
{
	return !partition->limited;
}

/* Has it a row in its log?  If not, no transaction and no lease has one of its messages. */
static bool
has_log(AqQueueShm *shm, Partition *partition)
{
	Oid			log = partition->log;
	Relation	rel;
	bool		has = true;

	aq_heap_lock_against_drop(shm->object->index, partition, log, AccessShareLock);
	rel = try_table_open(log, NoLock);
	if (rel != NULL)
	{
		has = RelationGetNumberOfBlocks(rel) > 0;
		table_close(rel, NoLock);
	}
	UnlockRelationOid(log, AccessShareLock);
	return has;
}

/*
 * Counts the partition's messages in work, if its tables need not be read.
 * without_log: there was no row in its log.
 */
static bool
enter_known(Stream *stream, Partition *partition, bool without_log)
{
	bool		done = true;

	aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_PARTITION_LOAD);
	if (partition->stream != stream->index || partition->limited)
		;
	else if (partition->frame != 0)
		aq_limit_enter(partition);
	else if (!partition->loading && (partition->counted ? partition->away_leased == 0 : without_log))
		partition->limited = true;
	else
		done = false;
	aq_latch_free(&stream->latch);
	return done;
}

/*
 * Counts the messages in work of all consumers; from now on they are counted as they
 * change.  Several sessions may do this at the same time: each partition is counted
 * once.
 */
void
aq_first_use_limit(AqQueueShm *shm)
{
	ShardQueue *sq = shard_queue(shm);
	Partition  *partition;

	sq->limited = true;
	pg_memory_barrier();		/* a partition that is not in its stream yet will be limited */
	for (Stream *stream = stream_at(sq->streams); stream != NULL; stream = stream_at(stream->next))
		while ((partition = aq_stream_partition_from(stream, 0, is_not_limited)) != NULL)
		{
			CHECK_FOR_INTERRUPTS();
			aq_point("work-counted");
			if (!enter_known(stream, partition, false) &&
				(has_log(shm, partition) || !enter_known(stream, partition, true)))
				aq_load_count(shm, partition);
		}
	pg_write_barrier();			/* the counts come first */
	sq->limited_known = true;
}
