/*-------------------------------------------------------------------------
 *
 * classic.c
 *	  The part record of "classic": its area, making and dropping tables,
 *	  loading queues, and the store's record.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "classic/classic_private.h"

#include "access/table.h"
#include "access/tableam.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "storage/procarray.h"
#include "utils/builtins.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"

ClassicArea *aq_classic;
ClassicQueue *aq_classic_queues;
Retry	   *aq_retries;
pg_atomic_uint32 *aq_classic_takers;

/* --- shared memory --------------------------------------------------------------- */

/* rolled back dequeues that are not counted yet, and what may become one */
uint32
aq_retry_total(void)
{
	return aq_session_slots() * 8 + 64;
}

static Size
lay_out(void *area)
{
	Size		size = 0;

	aq_classic = aq_part_carve(area, &size, sizeof(ClassicArea));
	aq_classic_queues = aq_part_carve(area, &size, mul_size(aq_handle_limit + 1, sizeof(ClassicQueue)));
	aq_retries = aq_part_carve(area, &size, mul_size(aq_retry_total() + 1, sizeof(Retry)));
	aq_classic_takers = aq_part_carve(area, &size, mul_size(aq_session_slots(), sizeof(pg_atomic_uint32)));
	return size;
}

static Size
shmem_size(void)
{
	return lay_out(NULL);
}

static void
shmem_init(void *area, bool found)
{
	Size		size = lay_out(area);

	aq_trace_on_name(AQ_LATCH_LINES, aq_shm_queue_of_latch);
	if (found)
		return;

	memset(area, 0, size);
	aq_latch_init(&aq_classic->latch, AQ_LATCH_CLASSIC, 0);
	for (uint32 i = aq_retry_total(); i >= 1; i--)
	{
		aq_retries[i].next = aq_classic->free_retry;
		aq_classic->free_retry = i;
	}
	for (int i = 0; i < aq_session_slots(); i++)
		pg_atomic_init_u32(&aq_classic_takers[i], InvalidTransactionId);
	for (int i = 0; i <= aq_handle_limit; i++)
	{
		ClassicQueue *cq = &aq_classic_queues[i];

		aq_latch_init(&cq->latch, AQ_LATCH_LINES, i);
		pg_atomic_init_u32(&cq->nretries, 0);
		pg_atomic_init_u64(&cq->step, 0);
		pg_atomic_init_u32(&cq->worker, InvalidTransactionId);
		pg_atomic_init_u64(&cq->counts, 0);
		pg_atomic_init_u64(&cq->time_from, 0);
	}
}

/* --- tables ------------------------------------------------------------------------- */

/* Columns of both tables, in the order of the COL_ constants. */
#define LINE_COLUMNS \
	"queue_id integer NOT NULL, \"position\" smallint NOT NULL, state smallint NOT NULL, " \
	"attempts integer NOT NULL, key1 bigint NOT NULL, key2 bigint NOT NULL, step bigint NOT NULL, " \
	"next_at timestamptz, dequeue_time timestamptz, dequeue_user oid, dequeue_xid bigint"

#define MESSAGE_COLUMNS \
	"odd boolean NOT NULL, msgid uuid NOT NULL, priority integer NOT NULL, " \
	"enqueue_time timestamptz NOT NULL, enqueue_user oid, enqueue_xid bigint, session_id bigint, " \
	"ready_at timestamptz, expires_at timestamptz, correlation text, properties jsonb, sender text, " \
	"exception_queue text, original_msgid uuid, original_queue text, expiration_reason text, " \
	"transaction_group bigint, targets bytea, exception_queue_id integer"

static void
run_ddl(const char *command)
{
	(void) aq_sql_run(command, 0, NULL, NULL, NULL, false);
}

/* The indexes that rows of both tables have; lines.c knows them by their columns. */
static void
make_indexes(const char *table)
{
	run_ddl(psprintf("CREATE INDEX %s_order ON aq_data.%s (queue_id, \"position\", key1, key2, step) "
					 "WHERE state <> %d", table, table, STATE_PROCESSED));
	run_ddl(psprintf("CREATE INDEX %s_time ON aq_data.%s (queue_id, next_at) WHERE next_at IS NOT NULL",
					 table, table));
}

static void
grant_select(const char *table, Oid role)
{
	run_ddl(psprintf("GRANT SELECT ON aq_data.%s TO %s", table,
					 quote_identifier(GetUserNameFromId(role, false))));
}

/*
 * Buffered messages are not logged: their tables are in memory as far as there
 * is room, and empty after a crash.
 */
static void
make_tables(int32 id, Oid payload_type, bool multi, Oid owner)
{
	const char *type = format_type_extended(payload_type, -1, FORMAT_TYPE_FORCE_QUALIFY);
	const char *kind = id > 0 ? "" : "UNLOGGED";
	const char *messages = aq_schema_message_table(id);
	const char *consumers = aq_schema_consumer_table(id);

	run_ddl(psprintf("CREATE %s TABLE aq_data.%s (" LINE_COLUMNS ", " MESSAGE_COLUMNS ", payload %s) "
					 "WITH (autovacuum_vacuum_scale_factor = 0.05)", kind, messages, type));
	make_indexes(messages);
	run_ddl(psprintf("CREATE UNIQUE INDEX %s_id ON aq_data.%s (msgid) WHERE odd", messages, messages));
	if (id < 0)
		aq_unlogged_mark(messages);
	if (OidIsValid(owner))
		grant_select(messages, owner);
	if (!multi)
		return;
	run_ddl(psprintf("CREATE %s TABLE aq_data.%s (" LINE_COLUMNS ") "
					 "WITH (autovacuum_vacuum_scale_factor = 0.05)", kind, consumers));
	make_indexes(consumers);
	if (OidIsValid(owner))
		grant_select(consumers, owner);
}

/* The views over them are part of the queue table. */
static void
drop_tables(int32 id)
{
	run_ddl(psprintf("DROP TABLE aq_data.%s CASCADE", aq_schema_message_table(id)));
	if (OidIsValid(aq_schema_data_relation(aq_schema_consumer_table(id))))
		run_ddl(psprintf("DROP TABLE aq_data.%s CASCADE", aq_schema_consumer_table(id)));
}

/* --- queues ------------------------------------------------------------------------------ */

static bool
finds_something(const char *query)
{
	bool		found;

	aq_sql_run(query, 0, NULL, NULL, NULL, true);
	found = SPI_processed > 0;
	SPI_finish();
	return found;
}

/*
 * Has a consumer something before him?  A topic's message that all are done
 * with may still be there: the worker has not looked yet.
 */
static bool
holds_messages(AqQueue *queue)
{
	if (queue->multi)
		return finds_something(psprintf("SELECT 1 FROM aq_data.%s c JOIN aq.subscriber s "
										"ON s.queue_id = abs(c.queue_id) AND s.\"position\" = c.\"position\" "
										"WHERE c.queue_id = %d AND s.kind <> 'removed' AND c.state <> %d LIMIT 1",
										aq_schema_consumer_table(queue->table.id), queue->id, STATE_PROCESSED));
	return finds_something(psprintf("SELECT 1 FROM aq_data.%s WHERE queue_id = %d AND state <> %d LIMIT 1",
									aq_schema_message_table(queue->table.id), queue->id, STATE_PROCESSED));
}

/* Waits for those who have messages of it in hand, or are enqueuing. */
static void
lock(AqQueue *queue)
{
	LockRelationOid(queue->table.messages, ShareRowExclusiveLock);
	if (OidIsValid(queue->table.consumers))
		LockRelationOid(queue->table.consumers, ShareRowExclusiveLock);
}

static void
drop(AqQueue *queue, bool force)
{
	AqQueueTable table = queue->table;
	int32		id = queue->id;
	char	   *name = pstrdup(queue->name);

	lock(queue);
	if (!force && holds_messages(queue))
		ereport(ERROR,
				aq_error(AQ_ERR_QUEUE_NOT_EMPTY, "queue \"%s\" holds messages", name),
				errhint("Dequeue or purge them, or call aq.drop_queue with force => true."));
	run_ddl(psprintf("DELETE FROM aq_data.%s WHERE queue_id = %d", aq_schema_message_table(table.id), id));
	if (OidIsValid(table.consumers))
		run_ddl(psprintf("DELETE FROM aq_data.%s WHERE queue_id = %d", aq_schema_consumer_table(table.id), id));
}

/* Is there a row of the queue's, delivered ones included? */
static bool
table_holds(AqQueue *queue)
{
	const Key	first = KEY_FIRST,
				last = KEY_LAST;
	Line		line;
	Key			key;
	bool		holds;

	aq_line_open(&line, queue, queue->table.messages, AccessShareLock);
	aq_line_seek(&line, queue->id, 0, &first, ForwardScanDirection);
	holds = aq_line_next_row(&line, &last, &key) || aq_row_with_time(&line, queue->id);
	aq_line_close(&line, true);
	return holds;
}

/* What is left of consumers that were removed. */
static void
leave_tables(AqQueue *queue)
{
	if (queue->multi)
		run_ddl(psprintf("DELETE FROM aq_data.%s WHERE queue_id = %d", aq_schema_consumer_table(queue->table.id), queue->id));
}

static bool
owns(AqQueue *queue, const pg_uuid_t *id)
{
	int64		step;

	return aq_classic_id_parse(id, queue->key, &step);
}

/* A value of the query's result, which is not null. */
static Datum
result_value(uint64 row, int column)
{
	bool		isnull;

	return SPI_getbinval(SPI_tuptable->vals[row], SPI_tuptable->tupdesc, column, &isnull);
}

/* The table whose rows are what consumers dequeue. */
static char *
line_table(AqQueue *queue)
{
	return queue->multi ? aq_schema_consumer_table(queue->table.id) : aq_schema_message_table(queue->table.id);
}

/* The latest step given, where the order index says it; a clock set back is no harm then. */
static int64
latest_step(AqQueue *queue)
{
	int64		step = 0;

	if (!aq_by_calls(queue))
		return 0;
	aq_sql_run(psprintf("SELECT step FROM aq_data.%s WHERE queue_id = %d AND \"position\" = 0 AND key1 = 0 "
						"AND key2 = 0 AND state <> %d ORDER BY queue_id DESC, \"position\" DESC, key1 DESC, key2 DESC, step DESC LIMIT 1",
						aq_schema_message_table(queue->table.id), queue->id, STATE_PROCESSED), 0, NULL, NULL, NULL, true);
	if (SPI_processed > 0)
		step = DatumGetInt64(result_value(0, 1));
	SPI_finish();
	return step;
}

/*
 * What is there for each consumer: the lag is right from the start.  Nobody
 * else uses the queue while it is loaded.
 */
static void
count_messages(AqQueue *queue, AqQueueShm *shm)
{
	aq_sql_run(psprintf("SELECT \"position\", count(*) FROM aq_data.%s WHERE queue_id = %d AND state <> %d%s "
						"AND \"position\" >= 0 GROUP BY 1", line_table(queue),
						queue->id, STATE_PROCESSED,
						queue->multi ? psprintf(" AND state <> %d", STATE_EXPIRED) : ""),
			   0, NULL, NULL, NULL, true);
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		AqConsumerShm *consumer = aq_shm_consumer(shm, DatumGetInt16(result_value(i, 1)));

		if (consumer != NULL)
			pg_atomic_write_u64(&consumer->enqueued, DatumGetInt64(result_value(i, 2)));
	}
	SPI_finish();
}

/* Has a prepared transaction a lock on the queue's lines? */
static bool
any_in_hand(Oid table)
{
	return finds_something(psprintf("SELECT 1 FROM pg_catalog.pg_locks WHERE pid IS NULL AND relation = %u "
									"AND mode = 'RowExclusiveLock' LIMIT 1", table));
}

/* The entry for this row of the list, made if it is not there. */
static InHand *
hand_of(List **hands, int position, TransactionId xid, bool put)
{
	ListCell   *lc;
	InHand	   *hand;

	foreach(lc, *hands)
	{
		hand = lfirst(lc);
		if (hand->position == position && hand->xid == xid && hand->put == put)
			return hand;
	}
	hand = palloc0(sizeof(InHand));
	hand->position = position;
	hand->xid = xid;
	hand->put = put;
	hand->lowest = KEY_LAST;
	hand->highest = KEY_FIRST;
	*hands = lappend(*hands, hand);
	return hand;
}

/* When the message of the line's row was enqueued; 0: not known. */
static TimestampTz
enqueue_time_of(AqQueue *queue, Line *messages, TupleTableSlot *slot, const Key *key)
{
	bool		isnull;

	if (queue->multi)
	{
		if (!aq_line_find(messages, queue->id, 0, key))
			return 0;
		slot = messages->slot;
	}
	return DatumGetTimestampTz(slot_getattr(slot, COL_ENQUEUE_TIME + 1, &isnull));
}

/* What prepared transactions that a restart has left have enqueued, and what they have taken. */
static void
find_in_hand(AqQueue *queue, AqQueueShm *shm)
{
	Oid			table = queue->multi ? queue->table.consumers : queue->table.messages;
	Relation	rel;
	TupleTableSlot *slot;
	TableScanDesc scan;
	SnapshotData dirty;
	Line		messages;
	List	   *hands = NIL;
	ListCell   *lc;

	if (!any_in_hand(table))
		return;
	aq_line_open(&messages, queue, queue->table.messages, AccessShareLock);
	rel = table_open(table, AccessShareLock);
	slot = table_slot_create(rel, NULL);
	InitDirtySnapshot(dirty);
	scan = table_beginscan(rel, &dirty, 0, NULL);
	while (table_scan_getnextslot(scan, ForwardScanDirection, slot))
	{
		bool		put = TransactionIdIsValid(dirty.xmin);
		TransactionId xid = put ? dirty.xmin : dirty.xmax;
		int			position;
		TimestampTz enqueued;
		InHand	   *hand;
		Key			key;

		if (!TransactionIdIsValid(xid) || !aq_xid_in_doubt(xid))
			continue;
		key = aq_slot_key(slot);
		position = DatumGetInt16(slot->tts_values[COL_POSITION]);
		if (DatumGetInt32(slot->tts_values[COL_QUEUE]) != queue->id || position < 0 ||
			DatumGetInt16(slot->tts_values[COL_STATE]) == STATE_PROCESSED)
			continue;
		hand = hand_of(&hands, position, xid, put);
		hand->n++;
		enqueued = put ? 0 : enqueue_time_of(queue, &messages, slot, &key);
		if (enqueued != 0)
			aq_consumed_add(&hand->consumed, enqueued);
		if (key_compare(&key, &hand->lowest) < 0)
			hand->lowest = key;
		if (key_compare(&key, &hand->highest) > 0)
			hand->highest = key;
	}
	table_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
	table_close(rel, AccessShareLock);
	aq_line_close(&messages, true);
	foreach(lc, hands)
		aq_retry_doubt(shm, lfirst(lc));
}

/* Prepared transactions that a restart has left: any may have messages in hand. */
static void
find_doubts(AqQueue *queue, AqQueueShm *shm)
{
	bool		any;

	aq_sql_run("SELECT transaction FROM pg_catalog.pg_prepared_xacts WHERE database = current_database()",
			   0, NULL, NULL, NULL, true);
	any = SPI_processed > 0;
	for (uint64 i = 0; i < SPI_processed; i++)
		aq_classic_doubt_add(DatumGetTransactionId(result_value(i, 1)), shm->object->index);
	SPI_finish();
	if (!any)
		return;
	find_in_hand(queue, shm);
	aq_work_post(shm, AQ_WORK_DOUBT);
}

/*
 * Read what is there.  The transaction that happens to be the first to use the
 * queue does not keep the locks: it may wait for messages for a long time.
 */
static void
read_tables(AqQueue *queue, AqQueueShm *shm)
{
	ResourceOwner mine = CurrentResourceOwner;
	ResourceOwner reader = ResourceOwnerCreate(mine, "pgaq load");

	CurrentResourceOwner = reader;
	pg_atomic_write_u64(&classic_queue(shm)->step, (uint64) latest_step(queue));
	count_messages(queue, shm);
	find_doubts(queue, shm);
	CurrentResourceOwner = mine;
	ResourceOwnerRelease(reader, RESOURCE_RELEASE_BEFORE_LOCKS, true, false);
	ResourceOwnerRelease(reader, RESOURCE_RELEASE_LOCKS, false, false);
	ResourceOwnerRelease(reader, RESOURCE_RELEASE_AFTER_LOCKS, true, false);
	ResourceOwnerDelete(reader);
}

static void
load(AqQueue *queue, AqQueueShm *shm)
{
	ClassicQueue *cq = classic_queue(shm);

	read_tables(queue, shm);
	pg_atomic_write_u64(&cq->time_from, 0);
	pg_atomic_write_u64(&shm->next_time, 1);	/* whatever there is */
	aq_jobs_post();
	aq_chunks_reserve(1);
	cq->news = aq_chunks_take();
}

/* Are there no rolled back dequeues to be counted, and no prepared transactions at all? */
static bool
idle(AqQueueShm *shm)
{
	ClassicQueue *cq = classic_queue(shm);

	return cq->retries == 0 && pg_atomic_read_u32(&cq->nretries) == 0 &&
		aq_classic->ndoubts == 0 && !aq_classic->too_many;
}

/* Nobody can reach the queue any more: no latch of its is needed. */
static void
unload(AqQueueShm *shm)
{
	ClassicQueue *cq = classic_queue(shm);

	for (int i = 0; i < LIST_CHUNKS; i++)
		if (cq->lists[i] != 0)
			aq_chunks_free(aq_chunk_ptr(cq->lists[i]), LISTS_PER_CHUNK);
	aq_chunks_free(cq->lists, LIST_CHUNKS);
	memset(cq->lists, 0, sizeof(cq->lists));
	aq_chunks_free(&cq->news, 1);
	cq->news = 0;
	cq->nnews = 0;
	while (cq->retries != 0)
	{
		uint32		index = cq->retries;

		cq->retries = aq_retries[index].next;
		aq_retry_free(index);
	}
	pg_atomic_write_u32(&cq->nretries, 0);
	aq_classic_doubts_forget(shm->object->index);
}

static const AqStoreJob classic_jobs[] = {
	{AQ_WORK_RETRY, aq_classic_retry_job},
	{AQ_WORK_DOUBT, aq_classic_doubt_job},
};

static const AqStore classic_store = {
	.kind = AQ_STORE_CLASSIC,
	.xact = &aq_classic_notes_xact,
	.load = load,
	.unload = unload,
	.idle = idle,
	.drop = drop,
	.lock = lock,
	.put = aq_classic_put,
	.take = aq_classic_take,
	.worker_may_put = aq_classic_may_put,
	.owns = owns,
	.ready = aq_classic_ready,
	.in_doubt = aq_classic_in_doubt,
	.free_position = aq_line_free,
	.jobs = classic_jobs,
	.njobs = lengthof(classic_jobs),
	.time_job = {0, aq_classic_time_job},
	.make_tables = make_tables,
	.drop_tables = drop_tables,
	.table_holds = table_holds,
	.leave_tables = leave_tables,
	.was_emptied = aq_classic_was_emptied,
	.enqueued_here = aq_classic_enqueued_here,
	.check = aq_classic_check,
	.check_pool = aq_classic_check_pool,
	.chunks = aq_classic_chunks,
};

/* --- the part -------------------------------------------------------------------------------- */

static void
define_parameters(void)
{
	aq_store_register(&classic_store);
}

const AqPart aq_classic_part = {
	.name = "classic",
	.define_parameters = define_parameters,
	.shmem_size = shmem_size,
	.shmem_init = shmem_init,
};
