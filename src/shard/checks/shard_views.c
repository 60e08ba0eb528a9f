/*-------------------------------------------------------------------------
 *
 * shard_views.c
 *	  The functions under the views aq.subscribers, aq.shards, aq.partitions and
 *	  aq.message_cache.
 *
 * Every function shows only queues on which the current role has a privilege.
 * The figures of one row are read under one hold of a latch; rows are not read
 * at the same moment.  On a standby, shared memory is empty.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/checks/checks_private.h"

#include "access/xlog.h"

/*
 * Puts rows for every queue that the role may use, or only for that which the
 * function's argument names; queues are pinned one after the other.  A queue
 * that is not in memory does not evict others: "absent" puts its rows; NULL:
 * none.
 */
static void
each_queue(AqRow *row, FunctionCallInfo fcinfo, void (*put) (AqRow *row, AqQueue *queue),
		   void (*absent) (AqRow *row, AqQueue *queue))
{
	ListCell   *lc;

	if (RecoveryInProgress())
		return;
	foreach(lc, PG_ARGISNULL(0) ? aq_catalog_queue_ids() : list_make1_int(PG_GETARG_INT32(0)))
	{
		AqQueue    *queue = aq_catalog_get_by_id(lfirst_int(lc), true);
		AqPeek		look;

		CHECK_FOR_INTERRUPTS();
		if (queue == NULL || !aq_privilege_allows(queue, AQ_RIGHT_SEE))
			continue;
		if (aq_pins_peek(queue, &look))
		{
			put(row, queue);
			aq_pins_peek_end(&look);
		}
		else if (absent != NULL)
			absent(row, queue);
	}
}

/* --- consumers ---------------------------------------------------------------------- */

static void
consumer_row(AqRow *row, AqQueue *queue, int position)
{
	AqConsumerShm *consumer = aq_shm_consumer(queue->shm, position);
	uint64		before;
	int64		ready = 0;

	if (consumer == NULL)
		return;
	for (Stream *stream = stream_at(shard_queue(queue->shm)->streams); stream != NULL;
		 stream = stream_at(stream->next))
	{
		StreamSub  *ssub;

		aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_VIEW);
		ssub = stream_sub(stream, position);
		if (ssub != NULL)
			ready += ssub->ready;
		aq_latch_free(&stream->latch);
	}
	aq_rows_int(row, queue->id);
	aq_rows_int(row, position);
	before = pg_atomic_read_u64(&consumer->before);
	aq_rows_number(row, pg_atomic_read_u64(&consumer->enqueued) - before);
	aq_rows_number(row, pg_atomic_read_u64(&consumer->dequeued) - before);
	aq_rows_number(row, ready);
	aq_rows_int(row, consumer->waiters.waiting + consumer->selective.waiting);
	aq_traffic_row(row, queue->shm, position);
	aq_rows_end(row);
}

static void
each_consumer(AqRow *row, AqQueue *queue, void (*put) (AqRow *row, AqQueue *queue, int position))
{
	if (!queue->multi && aq_privilege_shows(queue, NULL))
		put(row, queue, 0);
	for (int i = 0; i < queue->nconsumers; i++)
		if (queue->consumers[i].name != NULL && aq_privilege_shows(queue, queue->consumers[i].name))
			put(row, queue, queue->consumers[i].position);
}

static void
consumer_rows(AqRow *row, AqQueue *queue)
{
	each_consumer(row, queue, consumer_row);
}

static void
absent_consumer(AqRow *row, AqQueue *queue, int position)
{
	aq_rows_int(row, queue->id);
	aq_rows_int(row, position);
	aq_rows_end_nulls(row);
}

static void
absent_consumers(AqRow *row, AqQueue *queue)
{
	each_consumer(row, queue, absent_consumer);
}

AQ_ROWS(aq_shard_views_consumers)
{
	each_queue(row, fcinfo, consumer_rows, absent_consumers);
}

PG_FUNCTION_INFO_V1(aq_shard_views_running);
Datum
aq_shard_views_running(PG_FUNCTION_ARGS)
{
	int			position = PG_GETARG_INT32(1);
	AqQueue    *queue;
	AqConsumerShm *consumer;
	AqPeek		peek;
	uint32		n = 0;
	bool		known = false;

	aq_session_require_preload();
	queue = aq_catalog_get_numbered(PG_GETARG_INT32(0));
	if (queue == NULL || position < 0 || position >= AQ_MAX_CONSUMERS || !aq_privilege_allows(queue, AQ_RIGHT_SEE) ||
		!aq_privilege_shows_position(queue, position) || aq_queue_limit(queue, position) == 0 || !aq_pins_peek(queue, &peek))
		PG_RETURN_NULL();
	consumer = aq_shm_consumer(queue->shm, position);
	if (consumer != NULL && shard_queue(queue->shm)->limited_known)
	{
		known = true;
		n = pg_atomic_read_u32(&consumer->in_work);
	}
	aq_pins_peek_end(&peek);
	if (!known)
		PG_RETURN_NULL();
	PG_RETURN_INT32((int32) n);
}

/* --- shards ------------------------------------------------------------------------------ */

static void
stream_rows(AqRow *row, AqQueue *queue)
{
	for (Stream *stream = stream_at(shard_queue(queue->shm)->streams); stream != NULL;
		 stream = stream_at(stream->next))
	{
		int			partitions = 0,
					resident = 0;
		int64		pending = 0,
					inflight = 0;

		aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_VIEW);
		for (uint32 i = stream->head; i != 0; i = partition_at(i)->next)
		{
			partitions++;
			if (partition_at(i)->frame != 0)
				resident++;
			pending += partition_at(i)->pending;
			inflight += partition_at(i)->inflight;
		}
		aq_latch_free(&stream->latch);
		aq_rows_int(row, queue->id);
		aq_rows_int(row, stream->shard);
		aq_rows_int(row, stream->priority);
		aq_rows_bool(row, stream->delayed);
		aq_rows_number(row, stream->enqueued);
		aq_rows_int(row, partitions);
		aq_rows_int(row, resident);
		aq_rows_number(row, pending);
		aq_rows_number(row, inflight);
		aq_rows_end(row);
	}
}

AQ_ROWS(aq_shard_views_streams)
{
	each_queue(row, fcinfo, stream_rows, NULL);
}

/* --- partitions ----------------------------------------------------------------------------- */

static const char *
state_name(PartitionState state)
{
	switch (state)
	{
		case PARTITION_UNUSED:
			return "unused";
		case PARTITION_EMPTY:
			return "empty";
		case PARTITION_TAKEN:
			return "taken";
		case PARTITION_OPEN:
			return "open";
		case PARTITION_CLOSED:
			return "closed";
		case PARTITION_DONE:
			return "done";
		case PARTITION_TRUNCATING:
			return "truncating";
	}
	return NULL;
}

static void
partition_row(AqRow *row, AqQueue *queue, Partition *p, const Stream *stream, uint32 chunks)
{
	aq_rows_int(row, queue->id);
	aq_rows_int(row, p->table_no);
	aq_rows_put(row, ObjectIdGetDatum(p->messages));
	aq_rows_put(row, ObjectIdGetDatum(p->log));
	aq_rows_text(row, state_name(p->state));
	aq_rows_int_if(row, stream != NULL, stream != NULL ? stream->shard : 0);
	aq_rows_int_if(row, stream != NULL, stream != NULL ? stream->priority : 0);
	aq_rows_put_if(row, stream != NULL, BoolGetDatum(stream != NULL && stream->delayed));
	aq_rows_number_if(row, stream != NULL, p->number * PARTITION_SLOTS);
	aq_rows_int(row, p->reserved);
	aq_rows_int(row, p->pending);
	aq_rows_int(row, p->inflight);
	aq_rows_int_if(row, p->counted || stream == NULL, p->open);
	aq_rows_bool(row, p->frame != 0);
	aq_rows_time(row, p->next_timer);
	aq_rows_time(row, p->last_take);
	aq_rows_number(row, chunks);
	aq_rows_number(row, pg_atomic_read_u64(&p->browsed));
	aq_rows_number(row, p->expired);
	aq_rows_number(row, p->made_ready);
	aq_rows_end(row);
}

/* A row is a copy of an entry, and an entry that is reused meanwhile is left out. */
static void
partition_rows(AqRow *row, AqQueue *queue)
{
	uint32	   *list = aq_pool_list(queue->shm);

	for (int i = 0; list[i] != 0; i++)
	{
		const Partition *partition = partition_at(list[i]);
		Stream	   *stream = stream_at(partition->stream);
		Partition	copy;
		uint32		chunks = 0;

		if (stream != NULL)
			aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_VIEW);
		copy = *partition;
		if (stream != NULL)
		{
			if (copy.stream == stream->index)
				chunks = aq_frame_chunks(&copy);
			aq_latch_free(&stream->latch);
		}
		if (copy.queue == queue->shm->object->index && copy.state != PARTITION_UNUSED)
			partition_row(row, queue, &copy,
						  copy.state == PARTITION_EMPTY ? NULL : stream_at(copy.stream), chunks);
	}
	pfree(list);
}

/*
 * For a queue that is not in memory.  Tables that are dropped meanwhile are
 * left out.
 */
static void
absent_partitions(AqRow *row, AqQueue *queue)
{
	ListCell   *lc;

	foreach(lc, aq_tables_numbers(queue->id))
	{
		Oid			messages = aq_schema_data_relation(psprintf("q%d_%d", queue->id, lfirst_int(lc)));
		Oid			log = aq_schema_data_relation(psprintf("l%d_%d", queue->id, lfirst_int(lc)));

		if (!OidIsValid(messages) || !OidIsValid(log))
			continue;
		aq_rows_int(row, queue->id);
		aq_rows_int(row, lfirst_int(lc));
		aq_rows_put(row, ObjectIdGetDatum(messages));
		aq_rows_put(row, ObjectIdGetDatum(log));
		aq_rows_end_nulls(row);
	}
}

AQ_ROWS(aq_shard_views_partitions)
{
	each_queue(row, fcinfo, partition_rows, absent_partitions);
}

static void
table_counters(AqRow *row, AqQueue *queue)
{
	ShardQueue *sq = shard_queue(queue->shm);

	if (queue->shm->store == AQ_STORE_CLASSIC)
		return;
	aq_rows_int(row, queue->id);
	aq_rows_number(row, pg_atomic_read_u64(&sq->added_by_sessions));
	aq_rows_number(row, pg_atomic_read_u64(&sq->added_by_worker));
	aq_rows_number(row, pg_atomic_read_u64(&sq->truncated_messages));
	aq_rows_number(row, pg_atomic_read_u64(&sq->truncated_logs));
	aq_rows_end(row);
}

static void
absent_counters(AqRow *row, AqQueue *queue)
{
	if (aq_tables_numbers(queue->id) == NIL)
		return;
	aq_rows_int(row, queue->id);
	aq_rows_end_nulls(row);
}

AQ_ROWS(aq_shard_views_table_counters)
{
	each_queue(row, fcinfo, table_counters, absent_counters);
}

/* --- the message cache ------------------------------------------------------------------------- */

AQ_ROWS(aq_shard_views_cache)
{
	int64		resident = 0,
				known = 0;

	for (uint32 i = 1; i <= aq_area->most_partitions; i++)
	{
		if (aq_area_partitions[i].state != PARTITION_UNUSED)
			known++;
		if (aq_area_partitions[i].frame != 0)
			resident++;
	}
	aq_rows_number(row, (int64) aq_chunks_total() * AQ_CHUNK_SIZE);
	aq_rows_number(row, (int64) aq_chunks_free_count() * AQ_CHUNK_SIZE);
	aq_rows_int(row, AQ_CHUNK_SIZE);
	aq_rows_number(row, resident);
	aq_rows_number(row, known);
	aq_rows_number(row, aq_area_max_partitions);
	aq_rows_end(row);
}

/* The memory that partitions with messages use, and would use if resident. */
typedef struct CacheUse
{
	int64		partitions;
	int64		slots;			/* slots used in them */
	int64		frames;
	int64		chunks;			/* of their frames */
	/* of the open partitions */
	int64		open;
	int64		open_slots;
	uint32		most_slots;
	uint32		most_unused;
	int64		returning[RETURN_CLASSES];	/* evicted and not loaded again */
} CacheUse;

static void
add_use(CacheUse *use, const Partition *partition)
{
	use->partitions++;
	use->slots += partition->reserved;
	if (partition->frame != 0)
		use->frames++;
	use->chunks += aq_frame_chunks(partition);
	if (partition->frame == 0 && partition->evicted != 0)
	{
		uint64		others = pg_atomic_read_u64(&aq_area->history.evictions) - partition->evicted;

		use->returning[aq_evict_return_class(others)]++;
	}
	if (partition->state == PARTITION_OPEN && partition->reserved > 0)
	{
		use->open++;
		use->open_slots += partition->reserved;
		use->most_slots = Max(use->most_slots, partition->reserved);
		use->most_unused = Max(use->most_unused, PARTITION_SLOTS - partition->reserved);
	}
}

static void
find_use(CacheUse *use)
{
	memset(use, 0, sizeof(CacheUse));
	for (uint32 i = 1; i <= aq_area->most_partitions; i++)
	{
		Partition  *partition = &aq_area_partitions[i];
		Stream	   *stream = stream_at(partition->stream);

		if (stream == NULL)
			continue;
		CHECK_FOR_INTERRUPTS();
		aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_VIEW);
		if (partition->stream == stream->index &&
			(partition->state == PARTITION_OPEN || partition->state == PARTITION_CLOSED))
			add_use(use, partition);
		aq_latch_free(&stream->latch);
	}
}

AQ_ROWS(aq_shard_views_cache_use)
{
	CacheHistory *history = &aq_area->history;
	CacheUse	use;
	uint64		seen;

	find_use(&use);
	seen = use.open + pg_atomic_read_u64(&history->closed);
	aq_rows_number(row, use.partitions);
	aq_rows_number(row, use.slots);
	aq_rows_number(row, use.frames);
	aq_rows_number(row, use.chunks * AQ_CHUNK_SIZE);
	aq_rows_number(row, seen);
	aq_rows_number(row, use.open_slots + pg_atomic_read_u64(&history->closed_slots));
	aq_rows_number_if(row, seen > 0, Max(use.most_slots, pg_atomic_read_u64(&history->most_slots)));
	aq_rows_number_if(row, seen > 0, PARTITION_SLOTS -
					  Max(use.most_unused, pg_atomic_read_u64(&history->most_unused)));
	aq_rows_number(row, pg_atomic_read_u64(&history->evictions));
	aq_rows_time(row, history->since);
	aq_rows_number(row, (int64) aq_chunks_most_used() * AQ_CHUNK_SIZE);
	aq_rows_end(row);
}

AQ_ROWS(aq_shard_views_cache_returns)
{
	CacheHistory *history = &aq_area->history;
	CacheUse	use;

	find_use(&use);
	for (int i = 0; i < RETURN_CLASSES; i++)
	{
		uint64		sessions = pg_atomic_read_u64(&history->returned[false][i]);
		uint64		worker = pg_atomic_read_u64(&history->returned[true][i]);

		if (sessions + worker + use.returning[i] == 0)
			continue;
		aq_rows_number(row, INT64CONST(1) << i);
		aq_rows_number(row, sessions);
		aq_rows_number(row, worker);
		aq_rows_number(row, use.returning[i]);
		aq_rows_end(row);
	}
}
