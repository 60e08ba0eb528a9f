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

#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"

ClassicArea *aq_classic;
ClassicQueue *aq_classic_queues;
Retry	   *aq_retries;

/* --- shared memory --------------------------------------------------------------- */

/* rolled back dequeues that are not counted yet, and what may become one */
static uint32
retry_count(void)
{
	return aq_session_slots() * 8 + 64;
}

static Size
carve(char **at, Size size)
{
	if (at != NULL)
		*at += CACHELINEALIGN(size);
	return CACHELINEALIGN(size);
}

static Size
shmem_size(void)
{
	Size		size = carve(NULL, sizeof(ClassicArea));

	size = add_size(size, carve(NULL, mul_size(aq_object_limit + 1, sizeof(ClassicQueue))));
	size = add_size(size, carve(NULL, mul_size(retry_count() + 1, sizeof(Retry))));
	return size;
}

static void
shmem_init(void *area, bool found)
{
	char	   *at = area;

	aq_classic = (ClassicArea *) at;
	carve(&at, sizeof(ClassicArea));
	aq_classic_queues = (ClassicQueue *) at;
	carve(&at, mul_size(aq_object_limit + 1, sizeof(ClassicQueue)));
	aq_retries = (Retry *) at;
	if (found)
		return;

	memset(area, 0, shmem_size());
	aq_latch_init(&aq_classic->latch, AQ_LATCH_CLASSIC, 0);
	for (uint32 i = retry_count(); i >= 1; i--)
	{
		aq_retries[i].next = aq_classic->free_retry;
		aq_classic->free_retry = i;
	}
	for (int i = 0; i <= aq_object_limit; i++)
	{
		ClassicQueue *cq = &aq_classic_queues[i];

		aq_latch_init(&cq->latch, AQ_LATCH_LINES, i);
		pg_atomic_init_u32(&cq->nretries, 0);
		pg_atomic_init_u64(&cq->step, 0);
		pg_atomic_init_u32(&cq->worker, InvalidTransactionId);
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
	"transaction_group bigint, targets bytea"

static void
run_ddl(const char *command)
{
	(void) aq_run_sql(command, 0, NULL, NULL, NULL, false);
}

/* The indexes that rows of both tables have; lines.c knows them by their columns. */
static void
make_indexes(char letter, int32 id, const char *owner)
{
	run_ddl(psprintf("CREATE INDEX %c%d_order ON aq_data.%c%d (queue_id, \"position\", key1, key2, step) "
					 "WHERE state <> %d", letter, id, letter, id, STATE_PROCESSED));
	run_ddl(psprintf("CREATE INDEX %c%d_time ON aq_data.%c%d (queue_id, next_at) WHERE next_at IS NOT NULL",
					 letter, id, letter, id));
	run_ddl(psprintf("GRANT SELECT ON aq_data.%c%d TO %s", letter, id, owner));
}

static void
make_tables(int32 id, Oid payload_type, bool multi, Oid owner)
{
	const char *type = format_type_extended(payload_type, -1, FORMAT_TYPE_FORCE_QUALIFY);
	const char *role = quote_identifier(GetUserNameFromId(owner, false));

	run_ddl(psprintf("CREATE TABLE aq_data.t%d (" LINE_COLUMNS ", " MESSAGE_COLUMNS ", payload %s) "
					 "WITH (autovacuum_vacuum_scale_factor = 0.05)", id, type));
	make_indexes('t', id, role);
	run_ddl(psprintf("CREATE UNIQUE INDEX t%d_id ON aq_data.t%d (msgid) WHERE odd", id, id));
	if (!multi)
		return;
	run_ddl(psprintf("CREATE TABLE aq_data.c%d (" LINE_COLUMNS ") "
					 "WITH (autovacuum_vacuum_scale_factor = 0.05)", id));
	make_indexes('c', id, role);
}

/* The views over them are part of the queue table. */
static void
drop_tables(int32 id)
{
	run_ddl(psprintf("DROP TABLE aq_data.t%d CASCADE", id));
	if (OidIsValid(aq_data_relation(psprintf("c%d", id))))
		run_ddl(psprintf("DROP TABLE aq_data.c%d CASCADE", id));
}

/* --- queues ------------------------------------------------------------------------------ */

static bool
finds_something(const char *query)
{
	bool		found;

	aq_run_sql(query, 0, NULL, NULL, NULL, true);
	found = SPI_processed > 0;
	SPI_finish();
	return found;
}

static void
drop(AqQueue *queue, bool force)
{
	AqQueueTable table = queue->table;
	int32		id = queue->id;
	char	   *name = pstrdup(queue->name);

	/* waits for those who have messages of it in hand, or are enqueuing */
	LockRelationOid(table.messages, ShareRowExclusiveLock);
	if (OidIsValid(table.consumers))
		LockRelationOid(table.consumers, ShareRowExclusiveLock);
	if (!force && finds_something(psprintf("SELECT 1 FROM aq_data.t%d WHERE queue_id = %d AND state <> %d LIMIT 1",
										   table.id, id, STATE_PROCESSED)))
		ereport(ERROR,
				aq_error(AQ_ERR_QUEUE_NOT_EMPTY, "queue \"%s\" holds messages", name),
				errhint("Dequeue or purge them, or call aq.drop_queue with force => true."));
	run_ddl(psprintf("DELETE FROM aq_data.t%d WHERE queue_id = %d", table.id, id));
	if (OidIsValid(table.consumers))
		run_ddl(psprintf("DELETE FROM aq_data.c%d WHERE queue_id = %d", table.id, id));
}

/* The latest step given, where the order index says it; a clock set back is no harm then. */
static int64
latest_step(AqQueue *queue)
{
	int64		step = 0;

	if (!aq_by_calls(queue))
		return 0;
	aq_run_sql(psprintf("SELECT step FROM aq_data.t%d WHERE queue_id = %d AND \"position\" = 0 AND key1 = 0 "
						"AND key2 = 0 AND state <> %d ORDER BY queue_id DESC, \"position\" DESC, key1 DESC, key2 DESC, step DESC LIMIT 1",
						queue->table.id, queue->id, STATE_PROCESSED), 0, NULL, NULL, NULL, true);
	if (SPI_processed > 0)
	{
		bool		isnull;

		step = DatumGetInt64(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull));
	}
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
	aq_run_sql(psprintf("SELECT \"position\", count(*) FROM aq_data.%c%d WHERE queue_id = %d AND state <> %d%s "
						"AND \"position\" >= 0 GROUP BY 1", queue->multi ? 'c' : 't', queue->table.id,
						queue->id, STATE_PROCESSED,
						queue->multi ? psprintf(" AND state <> %d", STATE_EXPIRED) : ""),
			   0, NULL, NULL, NULL, true);
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		bool		isnull;
		HeapTuple	tuple = SPI_tuptable->vals[i];
		TupleDesc	desc = SPI_tuptable->tupdesc;
		AqConsumerShm *consumer = aq_consumer_shm(shm, DatumGetInt16(SPI_getbinval(tuple, desc, 1, &isnull)));

		if (consumer != NULL)
			pg_atomic_write_u64(&consumer->enqueued, DatumGetInt64(SPI_getbinval(tuple, desc, 2, &isnull)));
	}
	SPI_finish();
}

/* Prepared transactions that a restart has left: any may have messages in hand. */
static void
find_doubts(AqQueueShm *shm)
{
	aq_run_sql("SELECT transaction FROM pg_catalog.pg_prepared_xacts WHERE database = current_database()",
			   0, NULL, NULL, NULL, true);
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		bool		isnull;
		TransactionId xid = DatumGetTransactionId(SPI_getbinval(SPI_tuptable->vals[i],
																SPI_tuptable->tupdesc, 1, &isnull));

		aq_classic_doubt_add(xid, shm->object->index);
		aq_retry_doubt(shm, xid);
	}
	if (SPI_processed > 0)
		aq_queue_post_work(shm, AQ_WORK_DOUBT);
	SPI_finish();
}

static void
load(AqQueue *queue, AqQueueShm *shm)
{
	ClassicQueue *cq = classic_queue(shm);

	pg_atomic_write_u64(&cq->step, (uint64) latest_step(queue));
	count_messages(queue, shm);
	find_doubts(shm);
	pg_atomic_write_u64(&cq->time_from, 0);
	pg_atomic_write_u64(&shm->next_time, 1);	/* whatever there is */
	aq_jobs_post();
	aq_chunks_reserve(1);
	cq->news = aq_chunk_take();
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
}

static const AqStoreJob classic_jobs[] = {
	{AQ_WORK_RETRY, aq_classic_retry_job},
	{AQ_WORK_DOUBT, aq_classic_doubt_job},
};

static const AqStore classic_store = {
	.kind = AQ_STORE_CLASSIC,
	.load = load,
	.unload = unload,
	.drop = drop,
	.put = aq_classic_put,
	.take = aq_classic_take,
	.ready = aq_classic_ready,
	.free_position = aq_line_free,
	.jobs = classic_jobs,
	.njobs = lengthof(classic_jobs),
	.time_job = {0, aq_classic_time_job},
	.make_tables = make_tables,
	.drop_tables = drop_tables,
};

/* --- the part -------------------------------------------------------------------------------- */

static void
define_parameters(void)
{
	aq_store_register(&classic_store);
	aq_classic_xact_init();
}

const AqPart aq_classic_part = {
	.name = "classic",
	.define_parameters = define_parameters,
	.shmem_size = shmem_size,
	.shmem_init = shmem_init,
};
