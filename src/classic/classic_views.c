/*-------------------------------------------------------------------------
 *
 * classic_views.c
 *	  The functions under the view aq.messages for queue tables.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "classic/classic_private.h"

#include "access/table.h"
#include "access/xlog.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/guc.h"
#include "utils/uuid.h"

/*
 * The payload as text by its type's output function, as for sharded queues:
 * the query runs as the owner of the extension, and a cast to text may be a
 * function of any role.
 */
#define PAYLOAD_TEXT "CASE WHEN m.payload IS DISTINCT FROM NULL THEN format('%s', m.payload) END"

#define RUNNING "(SELECT transactionid FROM pg_locks WHERE locktype = 'transactionid' AND mode = 'ExclusiveLock'"

/*
 * A row whose xmax is running is taken.  A transaction that locks a row before
 * it updates it is the xmin and the xmax of the new row.  If that is visible,
 * and not this session's own, the transaction has committed, even if it has not
 * released its locks yet: it has woken waiters before.
 */
#define IN_USE \
	"((CASE WHEN l.state = " CppAsString2(STATE_PROCESSED) " THEN l.xmin ELSE l.xmax END) IN " RUNNING ") AND " \
	"(l.xmin <> l.xmax OR l.xmax IN " RUNNING " AND pid = pg_backend_pid())))"

/*
 * The worker consumes nothing: until it commits, a row that it changes keeps its
 * state.  So a failed message that it moves is EXPIRED, as in a sharded queue.
 * Only a lease that it ends is LOCKED: the holder has lost it.  %d: the worker.
 */
#define IS_TAKEN \
	IN_USE " AND (l.state = " CppAsString2(STATE_LEASED) " OR l.xmax NOT IN " RUNNING " AND pid = %d))"

/* The columns in aq.messages of a lease and of a dead letter. */
#define WHILE_LEASED(column) \
	"CASE WHEN l.state = " CppAsString2(STATE_LEASED) " AND NOT " IN_USE " THEN " column " END"
#define FAILURE_COLUMNS \
	", " WHILE_LEASED("l.leased_at") ", " WHILE_LEASED("l.next_at") ", " WHILE_LEASED("l.holder") ", l.last_error, m.dead_letter"

/* of the functions of a catalog of 0.1.0 */
#define MESSAGES_COLUMNS 22
#define BUFFERED_COLUMNS 18

/* The last column, which functions of a catalog of 0.1.0 do not have, nor tables made by it. */
static const char *
key_column(const AqQueue *queue, const AqRow *row, int columns)
{
	if (row->result->setDesc->natts <= columns)
		return "";
	return aq_schema_has_column(queue->table.messages, COL_MESSAGE_KEY) ? ", m.key" : ", NULL::text";
}

/* By name: the query's snapshot may be older than the description. */
static void
append_own_consumers(StringInfo s, AqQueue *queue)
{
	appendStringInfoString(s, " AND s.consumer IN (NULL");
	for (int i = 0; i < queue->nconsumers; i++)
		if (queue->consumers[i].name != NULL && aq_privilege_consumes(queue, queue->consumers[i].name))
			appendStringInfo(s, ", %s", quote_literal_cstr(queue->consumers[i].name));
	appendStringInfoChar(s, ')');
}

/* The messages that are asked for. */
typedef struct WantedMessages
{
	const pg_uuid_t *id;		/* NULL: any */
	char	   *state;			/* as in aq.messages; NULL: any */
	int64		first;			/* only rows of these blocks */
	int64		end;			/* 0: of all further ones */
} WantedMessages;

/*
 * A condition that the rows of this state meet, and that an index may serve;
 * others may meet it, too.
 */
static void
append_state(StringInfo s, const char *state)
{
	if (strcmp(state, "READY") == 0)
		appendStringInfo(s, " AND l.state = %d", STATE_READY);
	else if (strcmp(state, "WAITING") == 0)
		appendStringInfo(s, " AND l.state = %d AND l.next_at IS NOT NULL", STATE_WAITING);
	else if (strcmp(state, "LEASED") == 0)
		appendStringInfo(s, " AND l.state = %d AND l.next_at IS NOT NULL", STATE_LEASED);
	else if (strcmp(state, "EXPIRED") == 0)
		appendStringInfo(s, " AND l.state <> %d AND (l.state = %d OR l.next_at <= clock_timestamp())", STATE_PROCESSED,
						 STATE_EXPIRED);
	else if (strcmp(state, "PROCESSED") == 0)
		appendStringInfo(s, " AND l.state = %d", STATE_PROCESSED);
	else if (*state == '\0')
		appendStringInfoString(s, " AND false");
}

/* 0: none, or not known: in recovery no transaction is running. */
static int
worker_pid(void)
{
	return RecoveryInProgress() ? 0 : aq_jobs_worker_pid();
}

/*
 * The query over one queue's rows, with the caller's snapshot; l is the
 * consumer's row, m the message's.
 * more: expressions for additional columns, or "".
 */
static char *
messages_query(AqQueue *queue, const char *more, WantedMessages wanted)
{
	StringInfoData s;

	initStringInfo(&s);
	appendStringInfo(&s,
					 "SELECT m.msgid, %s, CASE WHEN " IS_TAKEN " THEN 'LOCKED' WHEN l.state = %d THEN 'PROCESSED' "
					 "WHEN l.state = %d THEN 'WAITING' WHEN l.state = %d THEN 'LEASED' "
					 "WHEN l.state > %d OR l.next_at <= clock_timestamp() THEN 'EXPIRED' ELSE 'READY' END, "
					 "m.priority, m.correlation, m.enqueue_time, CASE WHEN l.state = %d THEN l.next_at ELSE m.ready_at END, "
					 "m.expires_at, l.dequeue_time, "
					 "l.attempts, m.sender, m.exception_queue, m.original_msgid, m.properties, NULL::integer, "
					 "m.session_id, %s%s FROM ",
					 queue->multi ? "s.consumer" : "NULL::text", worker_pid(), STATE_PROCESSED,
					 STATE_WAITING, STATE_LEASED, STATE_PROCESSED, STATE_WAITING, PAYLOAD_TEXT, more);
	if (queue->multi)
		appendStringInfo(&s,
						 "aq_data.%s l JOIN aq_data.%s m USING (queue_id, key1, key2, step) "
						 "JOIN aq_internal.subscriber s ON s.queue_id = abs(l.queue_id) AND s.\"position\" = l.\"position\" "
						 "AND s.consumer IS NOT NULL AND s.created <= m.enqueue_time",
						 aq_schema_consumer_table(queue->table.id), aq_schema_message_table(queue->table.id));
	else
		appendStringInfo(&s, "aq_data.%s m, LATERAL (SELECT m.*, m.xmin, m.xmax) l",
						 aq_schema_message_table(queue->table.id));
	appendStringInfo(&s, " WHERE %s = %d", queue->multi ? "l.queue_id" : "m.queue_id", queue->id);
	if (!aq_privilege_allows(queue, AQ_RIGHT_DEQUEUE))
		append_own_consumers(&s, queue);
	if (wanted.id != NULL)
		appendStringInfo(&s, " AND m.msgid = '%s'",
						 DatumGetCString(DirectFunctionCall1(uuid_out, UUIDPGetDatum(wanted.id))));
	if (wanted.state != NULL)
		append_state(&s, wanted.state);
	if (wanted.first > 0)
		appendStringInfo(&s, " AND %c.ctid >= '(" INT64_FORMAT ",0)'", queue->multi ? 'l' : 'm', wanted.first);
	if (wanted.end > 0)
		appendStringInfo(&s, " AND %c.ctid < '(" INT64_FORMAT ",0)'", queue->multi ? 'l' : 'm', wanted.end);
	return s.data;
}

/* Returns the query's rows as rows of the function. */
static void
put_rows_of(AqRow *row, const char *query, int nargs, Oid *types, Datum *values)
{
	aq_sql_run(query, nargs, types, values, NULL, true);
	for (uint64 i = 0; i < SPI_processed; i++)
		tuplestore_puttuple(row->result->setResult, SPI_tuptable->vals[i]);
	SPI_finish();
}

/* The right that shows messages; in a topic, those of the consumers that the role may dequeue for. */
static AqRight
right_to_messages(const AqQueue *queue)
{
	return queue->multi ? AQ_RIGHT_CONSUMER : AQ_RIGHT_DEQUEUE;
}

static WantedMessages
wanted_messages(FunctionCallInfo fcinfo)
{
	return (WantedMessages) {
		.id = PG_ARGISNULL(1) ? NULL : PG_GETARG_UUID_P(1),
		.state = PG_ARGISNULL(2) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(2)),
	};
}

/*
 * Key columns belong together, which the planner cannot know: it may expect one
 * row of a topic's tables, also after ANALYZE, and read one table for each row of
 * the other.  So there are no nested loops, unless few messages are wanted.  Returns
 * the level of settings for AtEOXact_GUC().
 */
static int
avoid_nested_loops(WantedMessages wanted)
{
	int			level = NewGUCNestLevel();

	if (wanted.id == NULL && wanted.end == 0)
		aq_process_pin_parameter("enable_nestloop", "off");
	return level;
}

AQ_ROWS(aq_classic_views_messages)
{
	AqQueue    *queue = aq_catalog_get_numbered(PG_GETARG_INT32(0));
	WantedMessages wanted = wanted_messages(fcinfo);
	int			level;

	wanted.first = PG_ARGISNULL(3) ? 0 : PG_GETARG_INT64(3);
	wanted.end = PG_ARGISNULL(4) ? 0 : PG_GETARG_INT64(4);
	level = avoid_nested_loops(wanted);
	if (queue != NULL && queue->table.id != 0 && aq_privilege_allows(queue, right_to_messages(queue)) &&
		!aq_pins_check_lost_table(queue, WARNING))
		put_rows_of(row, messages_query(queue, psprintf("%s%s", FAILURE_COLUMNS, key_column(queue, row, MESSAGES_COLUMNS)), wanted),
					0, NULL, NULL);
	AtEOXact_GUC(true, level);
}

AQ_ROWS(aq_classic_views_parts)
{
	AqQueue    *queue = aq_catalog_get_numbered(PG_GETARG_INT32(0));
	Relation	rel;
	BlockNumber blocks;

	if (queue == NULL || queue->table.id == 0 || !aq_privilege_allows(queue, right_to_messages(queue)))
		return;
	rel = try_table_open(queue->multi ? queue->table.consumers : queue->table.messages, AccessShareLock);
	if (rel == NULL)
		return;
	blocks = RelationGetNumberOfBlocks(rel);
	table_close(rel, AccessShareLock);
	(void) aq_message_qual_parts(row, 0, blocks, true);
}

/* --- buffered messages ----------------------------------------------------------- */

/*
 * The buffered side of a queue, if the caller has the privilege.  NULL on a
 * standby, which cannot read unlogged tables.
 */
static AqQueue *
buffered_side(int32 id, AqRight right)
{
	AqQueue    *queue;

	if (RecoveryInProgress())
		return NULL;
	queue = aq_catalog_get_numbered(id);
	if (queue == NULL || queue->buffered == NULL || !aq_privilege_allows(queue, right))
		return NULL;
	return aq_pins_check_lost_table(queue->buffered, WARNING) ? NULL : queue->buffered;
}

/*
 * Is the row m in shared buffers? $1 is the bitmap of blocks that were in
 * shared buffers before the query.
 */
#define IN_MEMORY \
	"CASE WHEN (m.ctid::text::point)[0] < octet_length($1) * 8 " \
	"THEN get_bit($1, ((m.ctid::text::point)[0])::bigint) = 1 ELSE true END"

static void
put_rows_of_side(AqRow *row, AqQueue *side, const char *query)
{
	Oid			types[] = {BYTEAOID};
	Datum		values[] = {PointerGetDatum(aq_unlogged_blocks_in_memory(side->table.messages))};

	put_rows_of(row, query, lengthof(types), types, values);
}

AQ_ROWS(aq_classic_views_buffered_messages)
{
	AqQueue    *side = buffered_side(PG_GETARG_INT32(0), AQ_RIGHT_CONSUMER);
	WantedMessages wanted = wanted_messages(fcinfo);
	int			level = avoid_nested_loops(wanted);

	if (side != NULL && aq_privilege_allows(side, right_to_messages(side)))
		put_rows_of_side(row, side, messages_query(side, psprintf(", %s%s", IN_MEMORY, key_column(side, row, BUFFERED_COLUMNS)),
												   wanted));
	AtEOXact_GUC(true, level);
}

/* Columns: the counters of the buffered side; nulls if it is not in memory. */
static char *
buffered_counters(AqQueue *side)
{
	AqPeek		peek;
	char	   *columns;

	if (!aq_pins_peek(side, &peek))
		return ", NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint";
	columns = psprintf(", " UINT64_FORMAT "::bigint, " UINT64_FORMAT "::bigint, " UINT64_FORMAT "::bigint, "
					   UINT64_FORMAT "::bigint, " UINT64_FORMAT "::bigint",
					   pg_atomic_read_u64(&side->shm->enqueued), pg_atomic_read_u64(&side->shm->dequeued),
					   pg_atomic_read_u64(&side->shm->traffic[AQ_TRAFFIC_FAILED]),
					   pg_atomic_read_u64(&side->shm->traffic[AQ_TRAFFIC_ENQUEUE_ELAPSED]),
					   pg_atomic_read_u64(&side->shm->traffic[AQ_TRAFFIC_DEQUEUE_ELAPSED]));
	aq_pins_peek_end(&peek);
	return columns;
}

AQ_ROWS(aq_classic_views_buffered_queue)
{
	AqQueue    *side = buffered_side(PG_GETARG_INT32(0), AQ_RIGHT_SEE);
	const char *table;

	if (side == NULL)
		return;
	table = aq_schema_message_table(side->table.id);
	put_rows_of_side(row, side,
					 psprintf("SELECT count(*), count(*) FILTER (WHERE NOT " IN_MEMORY "), "
							  "(array_agg(m.msgid ORDER BY m.enqueue_time, m.step))[1], min(m.enqueue_time), "
							  "avg(clock_timestamp() - m.enqueue_time), pg_total_relation_size('aq_data.%s')%s%s "
							  "FROM aq_data.%s m WHERE m.queue_id = %d", table,
							  side->multi ? psprintf(" + pg_total_relation_size('aq_data.%s')",
													 aq_schema_consumer_table(side->table.id)) : "",
							  buffered_counters(side), table, side->id));
}

/*
 * Is the buffered side in flow control?  If it is not in memory, no enqueue
 * waits for room.
 */
static bool
in_flow_control(AqQueue *side)
{
	AqPeek		peek;
	bool		full;

	if (!aq_pins_peek(side, &peek))
		return false;
	full = aq_flow_is_full(side);
	aq_pins_peek_end(&peek);
	return full;
}

AQ_ROWS(aq_classic_views_buffered_publishers)
{
	AqQueue    *side = buffered_side(PG_GETARG_INT32(0), AQ_RIGHT_ANY);

	if (side == NULL)
		return;
	put_rows_of_side(row, side,
					 psprintf("SELECT m.sender, count(*), count(*) FILTER (WHERE NOT " IN_MEMORY "), "
							  "(array_agg(m.msgid ORDER BY m.enqueue_time DESC, m.step DESC))[1], max(m.enqueue_time), "
							  "100.0 * bit_count($1) / %d, %s FROM aq_data.%s m WHERE m.queue_id = %d GROUP BY m.sender",
							  NBuffers, in_flow_control(side) ? "true" : "false",
							  aq_schema_message_table(side->table.id), side->id));
}

static void
put_consumer(AqRow *row, AqQueue *side, int position)
{
	AqConsumerShm *consumer = aq_shm_consumer(side->shm, position);

	if (consumer == NULL)
		return;
	aq_rows_int(row, position);
	aq_rows_number(row, pg_atomic_read_u64(&consumer->enqueued));
	aq_rows_number(row, pg_atomic_read_u64(&consumer->dequeued));
	aq_rows_int(row, consumer->waiters.waiting + consumer->selective.waiting);
	aq_rows_end(row);
}

AQ_ROWS(aq_classic_views_buffered_consumers)
{
	AqQueue    *side = buffered_side(PG_GETARG_INT32(0), AQ_RIGHT_SEE);
	AqPeek		peek;

	if (side == NULL || !aq_pins_peek(side, &peek))
		return;
	if (!side->multi && aq_privilege_shows(side, NULL))
		put_consumer(row, side, 0);
	for (int i = 0; i < side->nconsumers; i++)
		if (side->consumers[i].name != NULL && aq_privilege_shows(side, side->consumers[i].name))
			put_consumer(row, side, side->consumers[i].position);
	aq_pins_peek_end(&peek);
}

/*
 * The number of messages that a consumer could dequeue now; null without a
 * privilege on the queue, or if the queue is not in memory.
 */
PG_FUNCTION_INFO_V1(aq_classic_views_ready);
Datum
aq_classic_views_ready(PG_FUNCTION_ARGS)
{
	const Key	first = KEY_FIRST,
				last = KEY_LAST;
	AqQueue    *queue;
	TimestampTz now = GetCurrentTimestamp();
	RowScan		rows;
	Key			key;
	int64		ready = 0;
	AqPeek		peek;

	aq_session_require_preload();
	queue = aq_catalog_get_numbered(PG_GETARG_INT32(0));
	if (queue == NULL || queue->table.id == 0 || !aq_privilege_allows(queue, AQ_RIGHT_SEE) ||
		!aq_privilege_shows_position(queue, PG_GETARG_INT32(1)) || aq_pins_check_lost_table(queue, WARNING) ||
		!aq_pins_peek(queue, &peek))
		PG_RETURN_NULL();
	aq_row_scan_open(&rows, queue, queue->multi ? queue->table.consumers : queue->table.messages, AccessShareLock);
	aq_row_scan_seek(&rows, queue->id, PG_GETARG_INT32(1), &first, ForwardScanDirection);
	while (aq_row_scan_next(&rows, &last, &key))
	{
		TupleTableSlot *slot = rows.slot;
		int			state;

		CHECK_FOR_INTERRUPTS();
		if (TransactionIdIsValid(rows.dirty.xmin) || TransactionIdIsValid(rows.dirty.xmax))
			continue;			/* a transaction has the row */
		slot_getsomeattrs(slot, COL_NEXT_AT + 1);
		state = DatumGetInt16(slot->tts_values[COL_STATE]);
		if (state == STATE_READY
			? slot->tts_isnull[COL_NEXT_AT] || DatumGetTimestampTz(slot->tts_values[COL_NEXT_AT]) > now
			: state == STATE_EXPIRED && !queue->multi)
			ready++;
	}
	aq_row_scan_close(&rows, true);
	aq_pins_peek_end(&peek);
	PG_RETURN_INT64(ready);
}
