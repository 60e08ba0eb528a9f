/*-------------------------------------------------------------------------
 *
 * message_view.c
 *	  The functions under the view aq.messages: messages and log of a queue, read
 *	  with the caller's snapshot, and the states that memory knows.
 *
 * It shows only queues and consumers for which the current role may dequeue.
 * On a standby, shared memory is empty.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/checks/checks_private.h"

#include "access/heapam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xlog.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "nodes/execnodes.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

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
	int64		number;			/* of the partition */
	char	   *kind[AQ_MAX_CONSUMERS]; /* by consumer: a char per slot, '\0': none */
	TimestampTz *when[AQ_MAX_CONSUMERS];	/* if kind is '\0': end of the retry delay */
	int16	   *attempts[AQ_MAX_CONSUMERS];
	LeaseStory *leases[AQ_MAX_CONSUMERS];	/* by consumer, NULL: none has been leased */
	List	   *lease_rows;
	bool		resident;
	uint64_t   *ready[AQ_MAX_CONSUMERS];	/* copies of the bitmaps; NULL: none */
	uint64_t   *waiting[AQ_MAX_CONSUMERS];
	uint64_t   *leased[AQ_MAX_CONSUMERS];
} LogPicture;

/* Reads a row about a lease: which one runs, attempts, the end of the retry delay.  Returns false if the row says more. */
static bool
read_lease(LogPicture *p, const LogRow *row, int slot)
{
	bool		released = row->kind == LOG_RELEASED || row->kind == LOG_UNSEEN;

	if (row->kind == LOG_EXTENDED)
		return true;
	if (row->kind != LOG_LEASED && row->kind != LOG_OVER && !released)
		return false;
	p->leases[row->position][slot].receipt ^= row->receipt;
	if (row->kind == LOG_LEASED)
		p->attempts[row->position][slot]++;
	else if (row->kind == LOG_UNSEEN)
		p->attempts[row->position][slot]--;
	if (released && p->kind[row->position][slot] == '\0')
		p->when[row->position][slot] = Max(p->when[row->position][slot], row->at);
	return true;
}

/* Keeps a row that can be interpreted only when all rows have been read. */
static void
keep_lease_row(LogPicture *p, const LogRow *row)
{
	LeaseRow   *kept = palloc(offsetof(LeaseRow, slots) + row->n * sizeof(uint16));

	if (p->leases[row->position] == NULL)
		p->leases[row->position] = palloc0(PARTITION_SLOTS * sizeof(LeaseStory));
	kept->row = *row;
	kept->row.n = 0;
	kept->detail = row->detail != NULL ? text_to_cstring(row->detail) : NULL;
	if (row->kind == LOG_FAILED && kept->detail != NULL)
		kept->detail++;			/* see LOG_FAILED */
	for (int i = 0; i < row->n; i++)
		if (row->ordinals[i] / PARTITION_SLOTS == p->number)
			kept->slots[kept->row.n++] = row->ordinals[i] % PARTITION_SLOTS;
	p->lease_rows = lappend(p->lease_rows, kept);
}

static void
read_log_row(LogPicture *p, HeapTuple tuple, TupleDesc desc)
{
	LogRow		row = aq_heap_read_log(tuple, desc);
	int			position = row.position;

	if (row.kind == LOG_MOVED || row.kind == LOG_LOCKED || row.kind == LOG_REMOVED)
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

		/* a crash between truncations leaves rows of an earlier partition: see reclaim.c */
		if (row.ordinals[i] / PARTITION_SLOTS != p->number)
			continue;
		if (row.receipt != 0 && read_lease(p, &row, slot))
			continue;
		if (row.kind == LOG_CLEARED || p->kind[position][slot] == LOG_CLEARED)
		{
			/* the time is that of the other row */
			p->kind[position][slot] = LOG_CLEARED;
			p->when[position][slot] = row.kind == LOG_TAKEN ? row.at : p->when[position][slot];
			continue;
		}
		if (row.kind != LOG_RETRY)
			p->kind[position][slot] = row.kind;
		else
			p->attempts[position][slot]++;
		if (log_death(&row) == DEATH_UNSEEN)
			p->attempts[position][slot]--;
		/* rows have no order */
		if (row.kind != LOG_RETRY)
			p->when[position][slot] = row.at;
		else if (p->kind[position][slot] == '\0')
			p->when[position][slot] = Max(p->when[position][slot], row.at);
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
	else if (kept->detail != NULL && *kept->detail != '\0' && row->written >= story->error_at)
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

/* The queue's partition of this table, or NULL; another one may have the entry as soon as it is returned. */
static Partition *
find_partition(AqQueueShm *shm, Oid messages)
{
	uint32	   *list = aq_pool_list(shm);
	Partition  *found = NULL;

	for (int i = 0; list[i] != 0 && found == NULL; i++)
		if (partition_at(list[i])->messages == messages && partition_at(list[i])->stream != 0)
			found = partition_at(list[i]);
	pfree(list);
	return found;
}

/* Copies the ready bitmaps of a resident partition. */
static void
read_ready(LogPicture *p, AqQueue *queue, Oid messages)
{
	Partition  *partition = find_partition(queue->shm, messages);
	Stream	   *stream = partition != NULL ? stream_at(partition->stream) : NULL;

	if (stream == NULL)
		return;
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
			if (sub_leased(sub) > 0)
				memcpy(leased, bitmap_of(sub_more(sub)->leased), AQ_CHUNK_SIZE);
			p->leased[position] = leased;
		}
		aq_latch_free(&stream->latch);
	}
}

static const char *
message_state(LogPicture *p, int position, int slot, const AqMessage *m, TimestampTz now)
{
	char		kind = p->kind[position] ? p->kind[position][slot] : '\0';
	TimestampTz when = p->when[position] ? p->when[position][slot] : 0;

	if (kind == LOG_TAKEN)
		return "PROCESSED";
	if (kind == LOG_PURGED || kind == LOG_CLEARED)
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
	const char *state;			/* only messages of this state; NULL: of all */
	BlockNumber first;			/* only rows of these blocks of the table */
	BlockNumber end;			/* InvalidBlockNumber: of all further ones */
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
	aq_rows_time(row, strcmp(state, "WAITING") == 0 && log->when[position] != NULL
				 ? Max(m->ready_at, log->when[position][slot]) : m->ready_at);
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
	aq_rows_pointer(row, m->dead_letter);
	if (row->n < row->result->setDesc->natts)	/* not in a catalog of 0.1.0 */
		aq_rows_pointer(row, m->key);
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

	/* the row may belong to a partition that is no longer in memory */
	aq_rows_read(tuple, desc, MSG_COLUMNS, values, nulls);
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

/* Does the consumer have unfinished messages of this state in the frame?  The caller holds the latch. */
static bool
sub_has_state(FrameSub *sub, bool delayed, const char *state)
{
	if (strcmp(state, "READY") == 0)
		return aq_bitmap_next(bitmap_of(sub->ready), PARTITION_SLOTS, 0) >= 0;
	if (strcmp(state, "WAITING") == 0)
		return delayed || sub->nwaiting > 0;
	return sub_leased(sub) > 0;
}

/* The same for a partition; true if it is not resident, because that is unknown.  The caller holds the latch. */
static bool
partition_may_have(const Partition *partition, bool delayed, const char *state)
{
	if (partition->state == PARTITION_DONE)
		return false;
	if (partition->frame == 0)
		return true;
	for (int position = 0; position < AQ_MAX_CONSUMERS; position++)
	{
		FrameSub   *sub = frame_sub(frame_of(partition), position);

		if (sub != NULL && sub_has_state(sub, delayed, state))
			return true;
	}
	return false;
}

/* May this table have messages of the state that is wanted? */
static bool
may_have_state(const MessageRows *rows, Oid messages)
{
	Partition  *partition;
	Stream	   *stream;
	bool		found = true;

	if (rows->state != NULL && *rows->state == '\0')
		return false;
	if (!rows->pinned || rows->state == NULL ||
		(strcmp(rows->state, "READY") != 0 && strcmp(rows->state, "WAITING") != 0 && strcmp(rows->state, "LEASED") != 0))
		return true;
	partition = find_partition(rows->queue->shm, messages);
	stream = partition != NULL ? stream_at(partition->stream) : NULL;
	if (stream == NULL)
		return true;
	aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_VIEW);
	if (partition->messages == messages && partition->stream == stream->index)
		found = partition_may_have(partition, stream->delayed, rows->state);
	aq_latch_free(&stream->latch);
	return found;
}

static void
read_table(MessageRows *rows, Relation rel, Relation log, int64 number)
{
	BlockNumber blocks = Min(RelationGetNumberOfBlocks(rel), rows->end);
	TableScanDesc scan;
	HeapTuple	tuple;
	bool		isnull;

	if (blocks <= rows->first)
		return;
	rows->log = palloc0(sizeof(LogPicture));
	rows->log->number = number;
	scan = aq_table_beginscan(log, GetActiveSnapshot());
	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
		read_log_row(rows->log, tuple, RelationGetDescr(log));
	table_endscan(scan);
	tell_leases(rows->log);
	if (rows->pinned)
		read_ready(rows->log, rows->queue, RelationGetRelid(rel));

	/* not a synchronized scan, which could begin in the middle of the table */
	scan = table_beginscan_strat(rel, GetActiveSnapshot(), 0, NULL, true, false);
	heap_setscanlimits(scan, rows->first, blocks - rows->first);
	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		int64		ordinal = DatumGetInt64(heap_getattr(tuple, MSG_ORDINAL + 1, RelationGetDescr(rel), &isnull));

		CHECK_FOR_INTERRUPTS();
		if (ordinal < 0 || (rows->wanted != NULL && ordinal != rows->ordinal))
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
	Relation	log = aq_heap_open_numbered(rows->queue, 'l', table_no, AccessShareLock);
	Relation	rel = aq_heap_open_numbered(rows->queue, 'q', table_no, AccessShareLock);

	if (rel != NULL && log != NULL && may_have_state(rows, RelationGetRelid(rel)))
	{
		int64		number = aq_heap_partition_number(rel);

		if (number >= 0 && (rows->wanted == NULL || number == rows->ordinal / PARTITION_SLOTS))
			read_table(rows, rel, log, number);
	}
	if (rel != NULL)
		table_close(rel, AccessShareLock);
	if (log != NULL)
		table_close(log, AccessShareLock);
}

static AqQueue *
readable_queue(int32 id)
{
	AqQueue    *queue = aq_catalog_get_numbered(id);

	return queue != NULL && aq_privilege_allows(queue, queue->multi ? AQ_RIGHT_CONSUMER : AQ_RIGHT_DEQUEUE) ? queue : NULL;
}

AQ_ROWS(aq_message_view_rows)
{
	AqQueue    *queue = readable_queue(PG_GETARG_INT32(0));
	MessageRows rows = {.row = row, .queue = queue, .now = GetCurrentTimestamp()};
	AqPeek		look;
	Oid			output;
	bool		is_varlena;
	int			stream;

	if (queue == NULL || PG_ARGISNULL(3) || PG_ARGISNULL(4))
		return;
	rows.wanted = PG_ARGISNULL(1) ? NULL : PG_GETARG_UUID_P(1);
	rows.state = PG_ARGISNULL(2) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(2));
	rows.first = PG_GETARG_INT64(4);
	rows.end = PG_ARGISNULL(5) ? InvalidBlockNumber : PG_GETARG_INT64(5);
	if (rows.wanted != NULL && !aq_message_id_parse(rows.wanted, queue->shard_key, &stream, &rows.ordinal))
		return;
	for (int i = 0; i < queue->nconsumers; i++)
		if (queue->consumers[i].name != NULL && aq_privilege_consumes(queue, queue->consumers[i].name))
			rows.consumers = bms_add_member(rows.consumers, i);
	/* if the queue is not in memory, no partition is resident */
	rows.pinned = !RecoveryInProgress() && aq_pins_peek(queue, &look);
	getTypeOutputInfo(queue->payload_type, &output, &is_varlena);
	fmgr_info(output, &rows.output);
	table_rows(&rows, PG_GETARG_INT32(3));
	if (rows.pinned)
		aq_pins_peek_end(&look);
}

/*
 * The tables that have rows.  A function in FROM is computed to its end, so the view
 * calls aq_message_view_rows for one part after the other, and a query that wants a few
 * rows reads only the first one.
 */
AQ_ROWS(aq_message_view_parts)
{
	AqQueue    *queue = readable_queue(PG_GETARG_INT32(0));
	bool		divided = false;	/* only one table is divided, because its log is read again for each part */
	ListCell   *lc;

	if (queue == NULL)
		return;
	foreach(lc, aq_tables_numbers(queue->id))
	{
		Relation	rel = aq_heap_open_numbered(queue, 'q', lfirst_int(lc), AccessShareLock);
		BlockNumber blocks = rel != NULL ? RelationGetNumberOfBlocks(rel) : 0;

		if (rel != NULL)
			table_close(rel, AccessShareLock);
		divided |= aq_message_qual_parts(row, lfirst_int(lc), blocks, !divided);
	}
}
