/*-------------------------------------------------------------------------
 *
 * shard_views.c
 *	  The functions under the views aq.subscribers, aq.shards, aq.partitions,
 *	  aq.messages and aq.message_cache.
 *
 * Every function shows only queues on which the current role has a privilege.
 * The figures of one row are read under one hold of a latch; rows are not read
 * at the same moment.  On a standby, shared memory is empty.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/shard_private.h"

#include "access/heapam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xlog.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

/*
 * Puts rows for every queue that the role may use; queues are pinned one after
 * the other.  A queue that is not in memory does not evict others: "absent"
 * puts its rows; NULL: none.
 */
static void
each_queue(AqRow *row, AqRight right, void (*put) (AqRow *row, AqQueue *queue),
		   void (*absent) (AqRow *row, AqQueue *queue))
{
	ListCell   *lc;

	if (RecoveryInProgress())
		return;
	foreach(lc, aq_catalog_queue_ids())
	{
		AqQueue    *queue = aq_catalog_get_by_id(lfirst_int(lc), true);
		AqPeek		look;

		CHECK_FOR_INTERRUPTS();
		if (queue == NULL || !aq_privilege_allows(queue, right))
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
	each_queue(row, AQ_RIGHT_SEE, consumer_rows, absent_consumers);
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
			resident += partition_at(i)->frame != 0;
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
	each_queue(row, AQ_RIGHT_SEE, stream_rows, NULL);
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

/*
 * Reads the pool, not the lists: a row is a copy of an entry, and an entry
 * that is reused meanwhile is left out.
 */
static void
partition_rows(AqRow *row, AqQueue *queue)
{
	for (uint32 i = 1; i <= aq_area->most_partitions; i++)
	{
		Partition	copy;
		Stream	   *stream;
		uint32		chunks = 0;

		if (aq_area_partitions[i].queue != queue->shm->object->index ||
			aq_area_partitions[i].state == PARTITION_UNUSED)
			continue;
		stream = stream_at(aq_area_partitions[i].stream);
		if (stream != NULL)
			aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_VIEW);
		copy = aq_area_partitions[i];
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
	each_queue(row, AQ_RIGHT_SEE, partition_rows, absent_partitions);
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
	each_queue(row, AQ_RIGHT_SEE, table_counters, absent_counters);
}

/* --- the message cache ------------------------------------------------------------------------- */

AQ_ROWS(aq_shard_views_cache)
{
	int64		resident = 0,
				known = 0;

	for (uint32 i = 1; i <= aq_area->most_partitions; i++)
	{
		known += aq_area_partitions[i].state != PARTITION_UNUSED;
		resident += aq_area_partitions[i].frame != 0;
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
	use->frames += partition->frame != 0;
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

/* --- messages -------------------------------------------------------------------------------------- */

/* What the log says of a message's leases. */
typedef struct LeaseStory
{
	int64		receipt;		/* of the lease that runs: see contents.c; 0: none */
	TimestampTz since;			/* of that lease */
	TimestampTz until;
	const char *holder;
	TimestampTz error_at;
	const char *error;			/* the latest one */
} LeaseStory;

/* A row of the log that says more of a lease than its receipt. */
typedef struct LeaseRow
{
	LogRow		row;			/* without its ordinals */
	char	   *detail;
	uint16		slots[FLEXIBLE_ARRAY_MEMBER];
} LeaseRow;

/* The log's information about messages, with the caller's snapshot. */
typedef struct LogPicture
{
	char	   *kind[AQ_MAX_CONSUMERS]; /* by consumer: a char per slot, '\0': none */
	TimestampTz *when[AQ_MAX_CONSUMERS];	/* if kind is none: end of the retry delay */
	int16	   *attempts[AQ_MAX_CONSUMERS];
	LeaseStory *leases[AQ_MAX_CONSUMERS];	/* by consumer, NULL: none has been leased */
	List	   *lease_rows;
	bool		resident;
	uint64_t   *ready[AQ_MAX_CONSUMERS];	/* copies of the bitmaps; NULL: none */
	uint64_t   *waiting[AQ_MAX_CONSUMERS];
	uint64_t   *leased[AQ_MAX_CONSUMERS];
} LogPicture;

/* Of a row about a lease: which one runs, attempts, until when the message rests.  False: it says more. */
static bool
read_lease(LogPicture *p, const LogRow *row, int slot)
{
	bool		rests = row->kind == LOG_RELEASED || row->kind == LOG_UNSEEN;

	if (row->kind == LOG_EXTENDED)
		return true;
	if (row->kind != LOG_LEASED && row->kind != LOG_OVER && !rests)
		return false;
	p->leases[row->position][slot].receipt ^= row->receipt;
	p->attempts[row->position][slot] += (row->kind == LOG_LEASED) - (row->kind == LOG_UNSEEN);
	if (rests && p->kind[row->position][slot] == '\0')
		p->when[row->position][slot] = Max(p->when[row->position][slot], row->at);
	return true;
}

/* What it says besides can be understood when all rows have been read. */
static void
keep_lease_row(LogPicture *p, const LogRow *row)
{
	LeaseRow   *kept = palloc(offsetof(LeaseRow, slots) + row->n * sizeof(uint16));

	if (p->leases[row->position] == NULL)
		p->leases[row->position] = palloc0(PARTITION_SLOTS * sizeof(LeaseStory));
	kept->row = *row;
	kept->detail = row->detail != NULL ? text_to_cstring(row->detail) : NULL;
	for (int i = 0; i < row->n; i++)
		kept->slots[i] = row->ordinals[i] % PARTITION_SLOTS;
	p->lease_rows = lappend(p->lease_rows, kept);
}

static void
read_log_row(LogPicture *p, HeapTuple tuple, TupleDesc desc)
{
	LogRow		row = aq_heap_read_log(tuple, desc);
	int			position = row.position;

	if (row.kind == LOG_MOVED || row.kind == LOG_LOCKED || position < 0 || position >= AQ_MAX_CONSUMERS)
		return;
	if (p->kind[position] == NULL)
	{
		p->kind[position] = palloc0(PARTITION_SLOTS);
		p->when[position] = palloc0(PARTITION_SLOTS * sizeof(TimestampTz));
		p->attempts[position] = palloc0(PARTITION_SLOTS * sizeof(int16));
	}
	if (row.receipt != 0)
		keep_lease_row(p, &row);
	for (int i = 0; i < row.n; i++)
	{
		int			slot = row.ordinals[i] % PARTITION_SLOTS;

		if (row.receipt != 0 && read_lease(p, &row, slot))
			continue;
		if (row.kind != LOG_RETRY)
			p->kind[position][slot] = row.kind;
		else
			p->attempts[position][slot]++;
		/* rows of different sessions have no order */
		if (row.kind != LOG_RETRY || p->kind[position][slot] == '\0')
			p->when[position][slot] = row.at;
	}
}

static void
tell_lease(LeaseStory *story, const LeaseRow *kept)
{
	const LogRow *row = &kept->row;

	if (row->kind == LOG_LEASED || row->kind == LOG_EXTENDED)
	{
		if (row->receipt != story->receipt)
			return;
		story->until = Max(story->until, row->at);
		if (row->kind == LOG_EXTENDED)
			return;
		story->since = row->written;
		story->holder = kept->detail;
	}
	else if (kept->detail != NULL && row->written >= story->error_at)
	{
		story->error_at = row->written;
		story->error = kept->detail;
	}
}

/* All rows have been read. */
static void
tell_leases(LogPicture *p)
{
	ListCell   *lc;

	foreach(lc, p->lease_rows)
	{
		const LeaseRow *kept = lfirst(lc);

		for (int i = 0; i < kept->row.n; i++)
			tell_lease(&p->leases[kept->row.position][kept->slots[i]], kept);
	}
	list_free_deep(p->lease_rows);
	p->lease_rows = NIL;
}

/* Copies the ready bitmaps of a resident partition. */
static void
read_ready(LogPicture *p, AqQueue *queue, Oid messages)
{
	for (uint32 i = 1; i <= aq_area->most_partitions; i++)
	{
		Partition  *partition = &aq_area_partitions[i];
		Stream	   *stream = stream_at(partition->stream);

		if (partition->messages != messages || stream == NULL)
			continue;
		for (int position = 0; position < AQ_MAX_CONSUMERS; position++)
		{
			uint64_t   *copy;
			uint64_t   *waiting;
			uint64_t   *leased;
			FrameSub   *sub;

			if (position > 0 && aq_shm_consumer(queue->shm, position) == NULL)
				continue;
			copy = palloc(AQ_CHUNK_SIZE);
			waiting = palloc0(AQ_CHUNK_SIZE);
			leased = palloc0(AQ_CHUNK_SIZE);
			aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_VIEW);
			p->resident = partition->messages == messages && partition->frame != 0;
			sub = p->resident ? frame_sub(frame_of(partition), position) : NULL;
			if (sub != NULL)
			{
				memcpy(copy, bitmap_of(sub->ready), AQ_CHUNK_SIZE);
				p->ready[position] = copy;
				if (sub->nwaiting > 0)
					memcpy(waiting, bitmap_of(sub->waiting), AQ_CHUNK_SIZE);
				p->waiting[position] = waiting;
				if (sub_more(sub) != NULL && sub_more(sub)->nleased > 0)
					memcpy(leased, bitmap_of(sub_more(sub)->leased), AQ_CHUNK_SIZE);
				p->leased[position] = leased;
			}
			aq_latch_free(&stream->latch);
		}
		return;
	}
}

static const char *
message_state(LogPicture *p, int position, int slot, const AqMessage *m, TimestampTz now)
{
	char		kind = p->kind[position] ? p->kind[position][slot] : '\0';
	TimestampTz when = p->when[position] ? p->when[position][slot] : 0;

	if (kind == LOG_TAKEN)
		return "PROCESSED";
	if (kind == LOG_PURGED)
		return "PURGED";
	if (kind == LOG_FAILED)
		return "EXPIRED";
	if (p->resident ? p->leased[position] != NULL && aq_bitmap_test(p->leased[position], slot)
		: p->leases[position] != NULL && p->leases[position][slot].receipt != 0)
		return "LEASED";
	if (m->ready_at > now)
		return "WAITING";
	if (m->expires_at != 0 && m->expires_at <= now)
		return "EXPIRED";
	if (!p->resident)
		return when > now ? "WAITING" : "READY";
	if (p->waiting[position] != NULL && aq_bitmap_test(p->waiting[position], slot))
		return "WAITING";
	if (p->ready[position] != NULL && aq_bitmap_test(p->ready[position], slot))
		return "READY";
	return "LOCKED";
}

typedef struct MessageRows
{
	AqRow	   *row;
	AqQueue    *queue;
	bool		pinned;
	LogPicture *log;
	TimestampTz now;
	FmgrInfo	output;
	Bitmapset  *consumers;		/* whose messages are shown: their numbers in the description */
	const pg_uuid_t *wanted;	/* only this message; NULL: all */
	int64		ordinal;		/* of the wanted message */
} MessageRows;

static void
message_row(MessageRows *rows, const AqMessage *m, int position, const char *consumer)
{
	AqRow	   *row = rows->row;
	int			slot = m->ordinal % PARTITION_SLOTS;
	LogPicture *log = rows->log;
	bool		done = log->kind[position] && log->kind[position][slot];
	const char *state = message_state(log, position, slot, m, rows->now);
	LeaseStory	story = {0};

	if (log->leases[position] != NULL)
		story = log->leases[position][slot];
	if (strcmp(state, "LEASED") != 0)
		story.since = story.until = 0;
	aq_rows_put(row, UUIDPGetDatum(&m->id));
	aq_rows_text(row, consumer);
	aq_rows_text(row, state);
	aq_rows_int(row, m->priority);
	aq_rows_pointer(row, m->correlation);
	aq_rows_time(row, m->enqueue_time);
	aq_rows_time(row, m->ready_at);
	aq_rows_time(row, m->expires_at);
	aq_rows_time(row, done ? log->when[position][slot] : 0);
	aq_rows_int(row, m->attempts + (log->attempts[position] ? Min(log->attempts[position][slot], AQ_MAX_ATTEMPTS) : 0));
	aq_rows_pointer(row, m->sender);
	aq_rows_pointer(row, m->exception_queue);
	aq_rows_pointer(row, m->original_id);
	aq_rows_pointer(row, m->properties);
	aq_rows_int(row, m->shard);
	aq_rows_number(row, m->session_id);
	aq_rows_text(row, m->payload_null ? NULL : OutputFunctionCall(&rows->output, m->payload));
	aq_rows_time(row, story.since);
	aq_rows_time(row, story.until);
	aq_rows_text(row, story.since != 0 ? story.holder : NULL);
	aq_rows_text(row, story.error);
	aq_rows_end(row);
}

/*
 * The name of the consumer at this position for a message of this time; NULL:
 * the consumer was removed, even if the position has a newer consumer, or is
 * not shown to the current role.
 */
static const char *
consumer_name(MessageRows *rows, int position, TimestampTz enqueued)
{
	AqQueue    *queue = rows->queue;
	int			i = -1;

	while ((i = bms_next_member(rows->consumers, i)) >= 0)
		if (queue->consumers[i].position == position && queue->consumers[i].created <= enqueued)
			return queue->consumers[i].name;
	return NULL;
}

/* Puts a row for each consumer of a message. */
static void
message_rows(MessageRows *rows, HeapTuple tuple, TupleDesc desc)
{
	AqQueue    *queue = rows->queue;
	Datum		values[MSG_COLUMNS];
	bool		nulls[MSG_COLUMNS];
	AqMessage	m = {0};
	Stream		stream = {0};
	bytea	   *targets;
	int			position = -1;

	/* the row may belong to a partition that is not in memory any more */
	heap_deform_tuple(tuple, desc, values, nulls);
	stream.number = DatumGetInt16(values[MSG_STREAM]);
	stream.shard = stream.number / (2 * AQ_PRIORITIES);
	stream.priority = stream.number / 2 % AQ_PRIORITIES;
	aq_heap_read_message(queue, &stream, tuple, desc, &m, values, nulls);
	if (!queue->multi)
	{
		message_row(rows, &m, 0, NULL);
		return;
	}
	if (nulls[MSG_TARGETS])
		return;
	targets = DatumGetByteaPP(values[MSG_TARGETS]);
	while ((position = targets_next(targets, position)) >= 0)
	{
		const char *consumer = consumer_name(rows, position, m.enqueue_time);

		if (consumer != NULL)
			message_row(rows, &m, position, consumer);
	}
}

/* Has this table the message that is wanted?  All its rows are of one partition. */
static bool
may_have_wanted(const MessageRows *rows, Relation rel)
{
	TableScanDesc scan;
	HeapTuple	tuple;
	bool		found = false;
	bool		isnull;

	if (rows->wanted == NULL)
		return true;
	scan = table_beginscan(rel, SnapshotAny, 0, NULL);
	tuple = heap_getnext(scan, ForwardScanDirection);
	if (tuple != NULL)
		found = DatumGetInt64(heap_getattr(tuple, MSG_ORDINAL + 1, RelationGetDescr(rel), &isnull)) / PARTITION_SLOTS ==
			rows->ordinal / PARTITION_SLOTS;
	table_endscan(scan);
	return found;
}

static void
read_table(MessageRows *rows, Relation rel, Relation log)
{
	TableScanDesc scan;
	HeapTuple	tuple;
	bool		isnull;

	rows->log = palloc0(sizeof(LogPicture));
	scan = table_beginscan(log, GetActiveSnapshot(), 0, NULL);
	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
		read_log_row(rows->log, tuple, RelationGetDescr(log));
	table_endscan(scan);
	tell_leases(rows->log);
	if (rows->pinned)
		read_ready(rows->log, rows->queue, RelationGetRelid(rel));

	scan = table_beginscan(rel, GetActiveSnapshot(), 0, NULL);
	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		if (rows->wanted != NULL &&
			DatumGetInt64(heap_getattr(tuple, MSG_ORDINAL + 1, RelationGetDescr(rel), &isnull)) != rows->ordinal)
			continue;
		message_rows(rows, tuple, RelationGetDescr(rel));
		if (rows->wanted != NULL)
			break;
	}
	table_endscan(scan);
}

static void
table_rows(MessageRows *rows, int table_no)
{
	char		name[NAMEDATALEN];
	Oid			oid;
	Relation	rel,
				log;

	snprintf(name, sizeof(name), "l%d_%d", rows->queue->id, table_no);
	oid = aq_schema_data_relation(name);
	log = OidIsValid(oid) ? try_table_open(oid, AccessShareLock) : NULL;
	snprintf(name, sizeof(name), "q%d_%d", rows->queue->id, table_no);
	oid = aq_schema_data_relation(name);
	rel = OidIsValid(oid) ? try_table_open(oid, AccessShareLock) : NULL;
	/* either may have been dropped after the catalog was read */
	if (rel != NULL && log != NULL && may_have_wanted(rows, rel))
		read_table(rows, rel, log);
	if (rel != NULL)
		table_close(rel, AccessShareLock);
	if (log != NULL)
		table_close(log, AccessShareLock);
}

AQ_ROWS(aq_shard_views_messages)
{
	AqQueue    *queue = aq_catalog_get_numbered(PG_GETARG_INT32(0));
	MessageRows rows = {.row = row,.queue = queue,.now = GetCurrentTimestamp()};
	AqPeek		look;
	Oid			output;
	bool		is_varlena;
	ListCell   *lc;
	int			stream;

	if (queue == NULL || !aq_privilege_allows(queue, queue->multi ? AQ_RIGHT_CONSUMER : AQ_RIGHT_DEQUEUE))
		return;
	rows.wanted = PG_ARGISNULL(1) ? NULL : PG_GETARG_UUID_P(1);
	if (rows.wanted != NULL && !aq_message_id_parse(rows.wanted, queue->shard_key, &stream, &rows.ordinal))
		return;
	for (int i = 0; i < queue->nconsumers; i++)
		if (queue->consumers[i].name != NULL && aq_privilege_consumes(queue, queue->consumers[i].name))
			rows.consumers = bms_add_member(rows.consumers, i);
	/* if the queue is not in memory, no partition is resident */
	rows.pinned = !RecoveryInProgress() && aq_pins_peek(queue, &look);
	getTypeOutputInfo(queue->payload_type, &output, &is_varlena);
	fmgr_info(output, &rows.output);
	foreach(lc, aq_tables_numbers(queue->id))
	{
		MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "pgaq messages",
													  ALLOCSET_DEFAULT_SIZES);
		MemoryContext old = MemoryContextSwitchTo(context);

		table_rows(&rows, lfirst_int(lc));
		MemoryContextSwitchTo(old);
		MemoryContextDelete(context);
	}
	if (rows.pinned)
		aq_pins_peek_end(&look);
}
