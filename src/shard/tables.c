/*-------------------------------------------------------------------------
 *
 * tables.c
 *	  The tables behind partitions: making, handing out, dropping.
 *
 * Empty pairs of tables stand in the queue's list "empty".  The worker makes
 * new ones ahead of need, in transactions of its own, so that a user's
 * transaction neither waits for catalog changes nor holds them.  The one
 * exception is a queue that the running transaction has created itself: the
 * worker cannot see it, so the tables are made here, and forgotten when the
 * (sub)transaction is rolled back.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/shard_private.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/table.h"
#include "access/xact.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/* empty pairs of tables that the worker keeps ready for a queue with traffic */
#define EMPTY_WANTED 3

/* a waiter for a table asks the worker again after this, microseconds */
#define ASK_WORKER_AGAIN ((int64) 1000000)

/*
 * When no partition can be described any more, one may be consumed and come
 * back: how long to wait for that, microseconds.
 */
#define PARTITION_PATIENCE ((int64) 10000000)

/* How long a session waits for a table that the worker fails to make, microseconds. */
#define TROUBLE_PATIENCE ((int64) 5000000)

/* when surplus tables are in use, microseconds */
#define SURPLUS_AGAIN ((int64) 1000000)

/* --- making ------------------------------------------------------------------------ */

static void
run_ddl(const char *command)
{
	(void) aq_sql_run(command, 0, NULL, NULL, NULL, false);
}

static void
create_tables(AqQueue *queue, int table_no)
{
	char	   *type = format_type_extended(queue->payload_type, -1, FORMAT_TYPE_FORCE_QUALIFY);

	run_ddl(psprintf("CREATE TABLE aq_data.q%d_%d (ordinal bigint NOT NULL, "
					 "session_id bigint NOT NULL, enqueue_time timestamptz NOT NULL, "
					 "stream smallint NOT NULL, payload %s, targets bytea, "
					 "correlation text, properties jsonb, ready_at timestamptz, "
					 "expires_at timestamptz, sender text, exception_queue text, "
					 "original_msgid uuid, attempts smallint, exception_queue_id integer) "
					 "WITH (autovacuum_enabled = false, toast.autovacuum_enabled = false)",
					 queue->id, table_no, type));
	run_ddl(psprintf("CREATE TABLE aq_data.l%d_%d (LIKE aq_data.log_template INCLUDING STORAGE) "
					 "WITH (autovacuum_enabled = false)",
					 queue->id, table_no));
	run_ddl(psprintf("INSERT INTO aq_internal.message_table (queue_id, table_no) VALUES (%d, %d)",
					 queue->id, table_no));
}

/* The message table (letter q) or the log (l) of this number; InvalidOid: no such table. */
Oid
aq_tables_find(char letter, int32 id, int table_no)
{
	char		name[NAMEDATALEN];

	snprintf(name, sizeof(name), "%c%d_%d", letter, id, table_no);
	return aq_schema_data_relation(name);
}

static void
find_tables(int32 id, Partition *partition)
{
	partition->messages = aq_tables_find('q', id, partition->table_no);
	partition->log = aq_tables_find('l', id, partition->table_no);
	if (!OidIsValid(partition->messages) || !OidIsValid(partition->log))
		elog(ERROR, "tables number %d of queue %d are missing", partition->table_no, id);
}

/*
 * Tables of the number may exist, if the catalog was not restored with them.
 * Only one process makes tables of a queue: the worker, or the transaction that
 * has created it.
 */
static int
next_table_no(AqQueueShm *shm)
{
	int			table_no = shard_queue(shm)->last_table_no;

	do
		table_no++;
	while (OidIsValid(aq_tables_find('q', shm->queue_id, table_no)) ||
		   OidIsValid(aq_tables_find('l', shm->queue_id, table_no)));
	return table_no;
}

static Partition *
new_partition(AqQueue *queue, AqQueueShm *shm)
{
	Partition  *partition = aq_pool_take(shm);

	partition->table_no = next_table_no(shm);
	create_tables(queue, partition->table_no);
	CommandCounterIncrement();
	find_tables(queue->id, partition);
	shard_queue(shm)->last_table_no = partition->table_no;
	aq_point("tables-made");
	return partition;
}

/* Into the list of empty tables.  Does not raise. */
void
aq_tables_give_back(AqQueueShm *shm, Partition *partition)
{
	ShardQueue *sq = shard_queue(shm);

	aq_latch_get(&sq->latch, AQ_EXCLUSIVE, AQ_LOC_PARTITION_OPEN);
	partition->state = PARTITION_EMPTY;
	aq_slot_reset(partition, 0);
	partition->expired = partition->made_ready = partition->evicted = 0;
	pg_atomic_write_u64(&partition->browsed, 0);
	partition->stream = 0;
	partition->prev = 0;
	partition->next = 0;
	if (sq->empty == 0)
		sq->empty = partition->index;
	else
		partition_at(sq->empty_last)->next = partition->index;
	sq->empty_last = partition->index;
	sq->nempty++;
	aq_latch_free(&sq->latch);
	aq_cond_broadcast(&shm->changed);
}

/*
 * A queue whose streams have not filled a partition yet gets tables when
 * a session waits for them, so that thousands of quiet queues do not fill the
 * catalog; a busier one has a few in reserve.
 */
static bool
wants_tables(AqQueueShm *shm)
{
	ShardQueue *sq = shard_queue(shm);

	if (sq->nempty == 0 && (sq->worker_wants || pg_atomic_read_u32(&sq->wanting) > 0))
		return true;
	return sq->opened > sq->nstreams && sq->nempty < EMPTY_WANTED;
}

/*
 * The worker cannot wait for itself: before it enqueues, it asks whether there
 * are tables, and if not, tries again when its next round has made some.  Nor
 * does it wait for a user: whoever locks the tables, by aq_tables_lock, locks
 * the sequence first.
 */
bool
aq_tables_ready_for_worker(AqQueue *queue)
{
	AqQueueShm *shm = queue->shm;
	ShardQueue *sq = shard_queue(shm);

	sq->worker_wants = sq->nempty == 0;
	if (sq->worker_wants)
		aq_work_post(shm, AQ_WORK_TABLES);
	return !sq->worker_wants && ConditionalLockRelationOid(queue->sequence, RowExclusiveLock);
}

static void ask_for_surplus(void);

/* Sessions that wait for tables read it under the same latch. */
static void
set_trouble(AqQueueShm *shm, int sqlstate, const char *message)
{
	ShardQueue *sq = shard_queue(shm);
	int			length = pg_mbcliplen(message, strlen(message), sizeof(sq->trouble_message) - 1);

	aq_latch_get(&sq->latch, AQ_EXCLUSIVE, AQ_LOC_PARTITION_OPEN);
	sq->trouble = sqlstate;
	strlcpy(sq->trouble_message, message, length + 1);
	aq_latch_free(&sq->latch);
}

/* Tell sessions that wait for a table why there is none. */
static void
note_trouble(AqQueueShm *shm, MemoryContext context)
{
	MemoryContext old = MemoryContextSwitchTo(context);
	ErrorData  *error = CopyErrorData();

	set_trouble(shm, error->sqlerrcode, error->message);
	FreeErrorData(error);
	MemoryContextSwitchTo(old);
}

/* The worker's transaction has committed. */
static void
tables_made(void *arg)
{
	Partition  *partition = arg;
	AqQueueShm *shm = aq_shm_by_index(partition->queue);

	pg_atomic_fetch_add_u64(&shard_queue(shm)->added_by_worker, 1);
	aq_pool_placed(partition);
	aq_tables_give_back(shm, partition);
}

/*
 * The worker's share: make tables, as long as partitions can be described.
 * Who waits in vain tells its user, see aq_tables_provide.
 */
void
aq_tables_job(int32 id, AqQueueShm *shm)
{
	MemoryContext context = CurrentMemoryContext;

	/* sessions that wait now are not told of an earlier error */
	if (shard_queue(shm)->trouble != 0)
		set_trouble(shm, 0, "");
	if (wants_tables(shm) && aq_pool_is_scarce())
		ask_for_surplus();
	while (wants_tables(shm) && !aq_pool_is_empty())
	{
		AqQueue    *queue;
		Partition  *volatile partition = NULL;

		aq_job_begin();
		queue = aq_catalog_get_by_id(id, true);
		if (queue == NULL || !aq_queue_lock(id, AccessShareLock, false) ||
			!aq_payload_type_lock(queue->payload_type, false))
		{
			/* dropped, being dropped, or created by a transaction that runs; or a user has locked the type */
			aq_job_commit(false);
			if (queue != NULL)
				aq_work_later(shm, AQ_WORK_TABLES, 100000);
			return;
		}
		PG_TRY();
		{
			partition = new_partition(queue, shm);
		}
		PG_CATCH();
		{
			if (!aq_worker_is_ending())
				note_trouble(shm, context);
			PG_RE_THROW();
		}
		PG_END_TRY();
		aq_notes_at_commit(tables_made, partition);
		aq_job_commit(false);
	}
}

/* --- handing out --------------------------------------------------------------------- */

/* partitions whose tables the running transaction has made */
static Partition **own;
static int	nown,
			own_size;

static Partition *
make_own(AqQueue *queue)
{
	Partition  *partition;

	own = aq_array_room(own, &own_size, nown + 1, sizeof(Partition *));
	partition = new_partition(queue, queue->shm);
	partition->own_subid = GetCurrentSubTransactionId();
	partition->state = PARTITION_TAKEN;
	own[nown++] = partition;
	aq_pool_placed(partition);
	pg_atomic_fetch_add_u64(&shard_queue(queue->shm)->added_by_sessions, 1);
	return partition;
}

void
aq_tables_subcommit(SubTransactionId subid, SubTransactionId parent)
{
	for (int i = 0; i < nown; i++)
		if (own[i]->own_subid == subid)
			own[i]->own_subid = parent;
}

/*
 * The tables made since the subtransaction began are gone, and with them all
 * messages in them, whose notes were settled before.  InvalidSubTransactionId
 * means the whole transaction.  Does not raise.
 */
void
aq_tables_subabort(SubTransactionId subid)
{
	while (nown > 0 && own[nown - 1]->own_subid >= subid)
	{
		Partition  *partition = own[--nown];
		Stream	   *stream = stream_at(partition->stream);

		if (subid == InvalidSubTransactionId && stream != NULL)
			continue;			/* the whole queue goes */
		if (stream != NULL)
		{
			aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_QUEUE_DROP);
			aq_stream_unlink(stream, partition);
			aq_frame_free(partition);
			aq_latch_free(&stream->latch);
		}
		pg_atomic_fetch_sub_u64(&aq_area_queues[partition->queue].added_by_sessions, 1);
		aq_pool_release(partition);
	}
}

void
aq_tables_xact_end(void)
{
	for (int i = 0; i < nown; i++)
		own[i]->own_subid = InvalidSubTransactionId;
	nown = 0;
}

/*
 * A drop that has not ended yet keeps the worker from making tables: wait for
 * its end, where lock_timeout and the deadlock detector see it.  A session that holds a
 * table must not wait, see aq_heap_lock_against_drop().
 */
static void
await_drop(AqQueue *queue)
{
	bool		wait = !aq_heap_holds_others(queue->shm->object->index, NULL);

	if (!aq_queue_lock_pass(queue->id, AccessShareLock, wait))
		aq_heap_queue_is_gone();
}

/* The worker fails to make tables, and the caller has waited for long: report the worker's error. */
static void
refuse_if_troubled(AqQueue *queue)
{
	ShardQueue *sq = shard_queue(queue->shm);
	char		message[sizeof(sq->trouble_message)];
	int			sqlstate;

	aq_latch_get(&sq->latch, AQ_SHARED, AQ_LOC_PARTITION_OPEN);
	sqlstate = sq->trouble;
	memcpy(message, sq->trouble_message, sizeof(message));
	aq_latch_free(&sq->latch);
	if (sqlstate != 0)
		ereport(ERROR,
				(errcode(sqlstate),
				 errmsg("could not create a table for the messages of queue \"%s\"", queue->name),
				 errdetail("The background worker reported an error: %s", message)));
}

/* A claim: the session has a partition with empty tables, in no list. */
static void
give_back_unused(void *ptr, int64 unused)
{
	Partition  *partition = ptr;

	aq_tables_give_back(aq_shm_by_index(partition->queue), partition);
}

/* What aq_tables_provide() has given is in a stream now.  Does not raise. */
void
aq_tables_used(Partition *partition)
{
	if (partition->own_subid == InvalidSubTransactionId)
		aq_claim_end(give_back_unused, partition);
}

/* It is not needed.  Does not raise. */
void
aq_tables_unused(Partition *partition)
{
	Assert(partition->own_subid == InvalidSubTransactionId);
	aq_claim_end(give_back_unused, partition);
	give_back_unused(partition, 0);
}

/* The pair that has been empty for longest, as a claim.  Latch held, a claim reserved; there is one. */
static Partition *
claim_empty(ShardQueue *sq)
{
	Partition  *partition = partition_at(sq->empty);

	sq->empty = partition->next;
	sq->nempty--;
	partition->next = 0;
	partition->state = PARTITION_TAKEN;
	partition->claimant = aq_session_own_number;
	aq_claim_enter(give_back_unused, partition, 0);
	return partition;
}

/* *counted: the caller counts as waiting; not any more when it gets one. */
static Partition *
pop_empty(AqQueueShm *shm, bool *counted)
{
	ShardQueue *sq = shard_queue(shm);
	Partition  *partition = NULL;
	bool		low;

	aq_claim_reserve(1);
	aq_latch_get(&sq->latch, AQ_EXCLUSIVE, AQ_LOC_PARTITION_OPEN);
	if (sq->empty != 0)
	{
		partition = claim_empty(sq);
		if (*counted)
			aq_claim_uncount(&sq->wanting);
		*counted = false;
	}
	low = wants_tables(shm);
	aq_latch_free(&sq->latch);
	if (low)
		aq_work_post(shm, AQ_WORK_TABLES);
	/* the worker hands its tables out before PostgreSQL tells of their creation */
	InvalidateCatalogSnapshot();
	return partition;
}

/*
 * A partition with empty tables for the caller, which calls aq_tables_used() or
 * aq_tables_unused() in the end; until then it is a claim.  Waits for the worker if there
 * is no such partition; not for ever when it cannot make any.
 */
Partition *
aq_tables_provide(AqQueue *queue)
{
	AqQueueShm *shm = queue->shm;
	Partition  *partition;
	bool		counted = false;
	int64		deadline = aq_clock_us() + PARTITION_PATIENCE;
	int64		trouble_deadline = aq_clock_us() + TROUBLE_PATIENCE;

	if (queue->own)
		return make_own(queue);

	aq_jobs_ensure_worker();
	partition = pop_empty(shm, &counted);
	if (partition != NULL)
		return partition;

	/* see aq_tables_ready_for_worker; a user may have taken the last one since */
	if (aq_job_in_worker())
		elog(ERROR, "queue \"%s\" has no empty table now", queue->name);

	aq_claim_count(&shard_queue(shm)->wanting);
	counted = true;
	aq_cond_prepare(&shm->changed);
	while ((partition = pop_empty(shm, &counted)) == NULL)
	{
		if (shm->object->state == AQ_OBJECT_DROPPED)
			ereport(ERROR,
					aq_error(AQ_ERR_QUEUE_UNDEFINED, "queue \"%s\" does not exist", queue->name),
					errdetail("It was dropped while the session waited for a table."));
		if (aq_pool_is_empty() && aq_clock_us() > deadline)
			aq_pool_refuse();
		if (aq_clock_us() > trouble_deadline)
			refuse_if_troubled(queue);
		aq_jobs_ensure_worker();
		await_drop(queue);
		(void) aq_payload_type_lock(queue->payload_type, true);
		aq_work_post(shm, AQ_WORK_TABLES);
		aq_jobs_post();
		aq_cond_sleep(&shm->changed, aq_jobs_wait_event(AQ_EVENT_PARTITION_PROVIDE), queue->id, 0, AQ_WAITS_FOR_TABLES, ASK_WORKER_AGAIN);
	}
	aq_cond_cancel();
	return partition;
}

/* --- dropping ------------------------------------------------------------------------------ */

static void
append_tables(StringInfo command, char letter, int32 id, List *numbers)
{
	ListCell   *lc;

	foreach(lc, numbers)
		appendStringInfo(command, "%s aq_data.%c%d_%d", command->len > 10 ? "," : "",
						 letter, id, lfirst_int(lc));
}

/*
 * Wait for the users of the queue's tables, and keep others out.  Message
 * tables first, because a holder of one of them may still need its log.
 */
void
aq_tables_lock(AqQueue *queue)
{
	List	   *numbers = aq_tables_numbers(queue->id);
	static const char letters[] = "ql";

	LockRelationOid(queue->sequence, AccessExclusiveLock);
	for (int i = 0; letters[i] != '\0'; i++)
	{
		ListCell   *lc;

		foreach(lc, numbers)
		{
			Oid			relid = aq_tables_find(letters[i], queue->id, lfirst_int(lc));

			if (OidIsValid(relid))
				LockRelationOid(relid, AccessExclusiveLock);
		}
	}
}

/*
 * Pairs of tables that the queue has no use for: what is left behind by
 * crashes, each of which makes the streams begin with new partitions.  As many
 * as the queue has opened since it was loaded it may need again, as long as
 * there are enough for others.  Read without the latch: a hint.
 */
static int
surplus(const ShardQueue *sq)
{
	uint32		reserve = 2 * EMPTY_WANTED;

	if (!aq_pool_is_scarce())
		reserve += sq->opened;
	return (int) sq->nempty - (int) reserve;
}

void
aq_tables_check_surplus(AqQueueShm *shm)
{
	if (surplus(shard_queue(shm)) > 0)
		aq_work_post(shm, AQ_WORK_SURPLUS);
}

static Partition *
claim_surplus(AqQueueShm *shm)
{
	ShardQueue *sq = shard_queue(shm);
	Partition  *partition = NULL;

	aq_claim_reserve(1);
	aq_latch_get(&sq->latch, AQ_EXCLUSIVE, AQ_LOC_PARTITION_RECLAIM);
	if (surplus(sq) > 0)
		partition = claim_empty(sq);
	aq_latch_free(&sq->latch);
	return partition;
}

/* In a transaction of its own; false: no surplus, or it is in use. */
static bool
drop_surplus(int32 id, AqQueueShm *shm)
{
	Partition  *partition = NULL;
	bool		dropped = false;

	aq_job_begin();
	if (aq_job_lock_extension() && aq_catalog_get_by_id(id, true) != NULL &&
		aq_queue_lock(id, AccessShareLock, false))
		partition = claim_surplus(shm);
	if (partition != NULL && aq_heap_lock_for_worker(partition, AccessExclusiveLock))
	{
		run_ddl(psprintf("DROP TABLE aq_data.q%d_%d, aq_data.l%d_%d",
						 id, partition->table_no, id, partition->table_no));
		run_ddl(psprintf("DELETE FROM aq_internal.message_table WHERE queue_id = %d AND table_no = %d",
						 id, partition->table_no));
		dropped = true;
	}
	aq_job_commit(false);
	if (partition == NULL)
		return false;
	aq_claim_end(give_back_unused, partition);
	if (dropped)
		aq_pool_release(partition);
	else
	{
		/* a reader is at it, as pg_dump */
		aq_tables_give_back(shm, partition);
		aq_work_later(shm, AQ_WORK_SURPLUS, SURPLUS_AGAIN);
	}
	return dropped;
}

void
aq_tables_surplus_job(int32 id, AqQueueShm *shm)
{
	while (drop_surplus(id, shm))
		CHECK_FOR_INTERRUPTS();
}

/* A queue finds no place for more tables: those of others may be too many now. */
static void
ask_for_surplus(void)
{
	for (int i = 1; i <= aq_handle_limit; i++)
	{
		AqObject   *object = aq_handle_by_index(i);

		/* the queue may be another one by then, which does this for itself */
		if (object->state == AQ_OBJECT_VALID && object->database == MyDatabaseId &&
			surplus(&aq_area_queues[i]) > 0)
			aq_work_post(aq_shm_by_index(i), AQ_WORK_SURPLUS);
	}
}

/* Drop all tables of the queue, which are locked. */
void
aq_tables_drop(AqQueue *queue)
{
	List	   *numbers = aq_tables_numbers(queue->id);
	StringInfoData command;

	if (numbers == NIL)
		return;
	initStringInfo(&command);
	appendStringInfoString(&command, "DROP TABLE");
	append_tables(&command, 'q', queue->id, numbers);
	append_tables(&command, 'l', queue->id, numbers);
	run_ddl(command.data);
}

/* Numbers of the queue's tables, as the catalog's latest state has them. */
List *
aq_tables_numbers(int32 id)
{
	Relation	rel = table_open(aq_schema_relation("message_table"), AccessShareLock);
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	List	   *tables = NIL;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, 1, BTEqualStrategyNumber, F_INT4EQ, Int32GetDatum(id));
	scan = systable_beginscan(rel, aq_primary_key(rel), true, snapshot, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		bool		isnull;

		tables = lappend_int(tables, DatumGetInt32(heap_getattr(tuple, 2, RelationGetDescr(rel), &isnull)));
	}
	systable_endscan(scan);
	UnregisterSnapshot(snapshot);
	table_close(rel, AccessShareLock);
	return tables;
}
