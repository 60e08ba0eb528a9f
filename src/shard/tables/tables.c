/*-------------------------------------------------------------------------
 *
 * tables.c
 *	  The tables of partitions: functions to create, use and drop them.
 *
 * Empty pairs of tables are in the queue's list "empty".  The worker creates
 * new ones in advance, in separate transactions, so that a user's transaction
 * neither waits for catalog changes nor makes them.  The only exception is a
 * queue that the running transaction has created itself: the worker cannot see
 * it, so this transaction creates the tables, which are removed when the
 * (sub)transaction is rolled back.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/tables/tables_private.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/xact.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "postmaster/autovacuum.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/*
 * number of empty pairs of tables that the worker keeps ready for a busy queue
 */
#define EMPTY_WANTED 3

/*
 * interval at which a session that waits for a table posts the worker again,
 * in microseconds
 */
#define ASK_WORKER_AGAIN ((int64) 1000000)

/*
 * If the pool has no partition left, how long to wait until one is consumed
 * and released, in microseconds.
 */
#define PARTITION_PATIENCE ((int64) 10000000)

/*
 * How long a session waits for a table while the worker fails to create one,
 * in microseconds.
 */
#define TROUBLE_PATIENCE ((int64) 5000000)

/* pause before the next try if surplus tables are in use, in microseconds */
#define SURPLUS_AGAIN ((int64) 1000000)

/* the least value of the storage parameter autovacuum_freeze_max_age */
#define LEAST_FREEZE_AGE 100000

/* --- making ------------------------------------------------------------------------ */

static void
run_ddl(const char *command)
{
	(void) aq_sql_run(command, 0, NULL, NULL, NULL, false);
}

/*
 * Storage parameters.  There is nothing to vacuum, but autovacuum freezes tables that
 * keep messages for very long: it begins with each at an age of its own, between half
 * of the server's limit and the whole, so not with all at the same time.
 */
static char *
storage(int32 id, int table_no, const char *prefix)
{
	uint32		hash = hash_combine(hash_uint32((uint32) id), hash_uint32((uint32) table_no));
	int64		half = autovacuum_freeze_max_age / 2;

	return psprintf("%sautovacuum_enabled = false, %sautovacuum_freeze_max_age = %d", prefix, prefix,
					(int) Max(LEAST_FREEZE_AGE, half + half * (hash % 1000) / 1000));
}

static void
create_tables(AqQueue *queue, int table_no)
{
	aq_sql_define(psprintf("CREATE TABLE aq_data.q%d_%d (ordinal bigint NOT NULL, "
						   "session_id bigint NOT NULL, enqueue_time timestamptz NOT NULL, "
						   "stream smallint NOT NULL, payload payload_type, targets bytea, "
						   "correlation text, properties jsonb, ready_at timestamptz, "
						   "expires_at timestamptz, sender text, exception_queue text, "
						   "original_msgid uuid, attempts smallint, exception_queue_id integer, dead_letter jsonb%s) "
						   "WITH (%s, %s)",
						   queue->id, table_no, aq_version_has_keys() ? ", key text" : "", storage(queue->id, table_no, ""), storage(queue->id, table_no, "toast.")), queue->payload_type);
	run_ddl(psprintf("CREATE TABLE aq_data.l%d_%d (LIKE aq_data.log_template INCLUDING STORAGE) "
					 "WITH (%s)",
					 queue->id, table_no, storage(queue->id, table_no, "")));
	run_ddl(psprintf("INSERT INTO aq_internal.message_table (queue_id, table_no) VALUES (%d, %d)",
					 queue->id, table_no));
}

/*
 * The message table (letter q) or the log (l) with this number; InvalidOid: no
 * such table.
 */
Oid
aq_tables_find(char letter, int32 id, int table_no)
{
	char		name[NAMEDATALEN];

	snprintf(name, sizeof(name), "%c%d_%d", letter, id, table_no);
	return aq_schema_data_table(name);
}

static void
find_tables(int32 id, Partition *partition)
{
	partition->messages = aq_tables_find('q', id, partition->table_no);
	partition->log = aq_tables_find('l', id, partition->table_no);
	if (!OidIsValid(partition->messages) || !OidIsValid(partition->log))
		elog(ERROR, "tables number %d of queue %d are missing", partition->table_no, id);
	partition->keyed = aq_schema_has_column(partition->messages, MSG_KEY);
}

/*
 * The next unused number of a pair of tables.  Tables of a number may exist
 * without catalog rows after a restore.  Only one process creates tables of a
 * queue: the worker, or the transaction that has created the queue.
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

/* Adds the partition to the list of empty ones.  Does not raise an error. */
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
	sq->nunkeyed += !partition->keyed;
	aq_latch_free(&sq->latch);
	aq_cond_broadcast(&shm->changed);
}

/*
 * A queue whose streams have not yet filled a partition gets tables only when
 * a session waits for them, so that thousands of quiet queues do not fill the
 * catalog; a busier queue has a few in reserve.
 */
static bool
wants_tables(AqQueueShm *shm)
{
	ShardQueue *sq = shard_queue(shm);

	if (sq->nempty == 0 && (sq->worker_wants || pg_atomic_read_u32(&sq->wanting) > 0))
		return true;
	if (sq->nempty == sq->nunkeyed && (sq->worker_wants_keyed || pg_atomic_read_u32(&sq->wanting_keyed) > 0))
		return true;
	return sq->opened > sq->nstreams && sq->nempty < EMPTY_WANTED;
}

/*
 * The worker cannot wait for itself: before it enqueues, it checks whether
 * there are empty tables; if not, it tries again after its next round has
 * created some.  It does not wait for users either, so it locks the
 * numbers, which aq_tables_lock locks first, conditionally.  For messages without keys,
 * too, it wants a table with a column for them, so that it makes no others.
 */
bool
aq_tables_ready_for_worker(AqQueue *queue, bool keyed)
{
	AqQueueShm *shm = queue->shm;
	ShardQueue *sq = shard_queue(shm);

	sq->worker_wants_keyed = sq->nempty == sq->nunkeyed && aq_version_has_keys();
	sq->worker_wants = sq->nempty == 0 || sq->worker_wants_keyed;
	if (sq->worker_wants)
		aq_work_post(shm, AQ_WORK_TABLES);
	return !sq->worker_wants && aq_queue_lock_numbers(queue, RowExclusiveLock, false);
}

static void ask_for_surplus(void);

/*
 * Sets the worker's last error; sessions that wait for tables read it under
 * the same latch.
 */
static void
set_trouble(AqQueueShm *shm, int sqlstate, const char *message)
{
	ShardQueue *sq = shard_queue(shm);

	aq_latch_get(&sq->latch, AQ_EXCLUSIVE, AQ_LOC_PARTITION_OPEN);
	sq->trouble = sqlstate;
	aq_clip_copy(sq->trouble_message, message, sizeof(sq->trouble_message));
	aq_latch_free(&sq->latch);
}

/* Records the error, for sessions that wait for a table. */
static void
note_trouble(AqQueueShm *shm, MemoryContext context)
{
	MemoryContext old = MemoryContextSwitchTo(context);
	ErrorData  *error = CopyErrorData();

	set_trouble(shm, error->sqlerrcode, error->hint != NULL ? psprintf("%s. %s", error->message, error->hint) : error->message);
	FreeErrorData(error);
	MemoryContextSwitchTo(old);
}

/* Called after the worker's transaction has committed. */
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
 * A session that waits has checked the share of the queue's owner.  In advance, for the
 * next session, the worker makes tables only within it: or no session would check.
 */
static bool
may_make(AqQueueShm *shm)
{
	ShardQueue *sq = shard_queue(shm);

	return sq->worker_wants || pg_atomic_read_u32(&sq->wanting) > 0 || pg_atomic_read_u32(&sq->wanting_keyed) > 0 ||
		aq_share_allows(AQ_SHARE_PARTITIONS, shm, 1);
}

/*
 * The worker's job: creates tables, as long as the pool has partitions.
 * Sessions that wait too long raise an error, see aq_tables_provide.
 */
void
aq_tables_job(int32 id, AqQueueShm *shm)
{
	MemoryContext context = CurrentMemoryContext;

	/* so that sessions that wait now do not report an earlier error */
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
			/*
			 * the queue is dropped, being dropped, or not committed; or a user
			 * has locked the type
			 */
			aq_job_commit(false);
			if (queue != NULL)
				aq_work_later(shm, AQ_WORK_TABLES, 100000);
			return;
		}
		if (!may_make(shm))
		{
			aq_job_commit(false);
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

/*
 * --- using tables
 * ---------------------------------------------------------------------
 */

/* partitions whose tables the running transaction has created */
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
 * Called when a subtransaction is rolled back (InvalidSubTransactionId: the
 * whole transaction): removes the partitions whose tables it has created.  The
 * notes of their messages were settled before.  Does not raise an error.
 */
void
aq_tables_subabort(SubTransactionId subid)
{
	while (nown > 0 && own[nown - 1]->own_subid >= subid)
	{
		Partition  *partition = own[--nown];
		Stream	   *stream = stream_at(partition->stream);

		if (subid == InvalidSubTransactionId && stream != NULL)
			continue;			/* the whole queue is removed */
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
 * A running drop of the queue prevents the worker from creating tables: waits
 * for it with a heavyweight lock, so that lock_timeout and the deadlock
 * detector work.  A session that holds a table must not wait, see
 * aq_heap_lock_against_drop().
 */
static void
await_drop(AqQueue *queue)
{
	bool		wait = !aq_heap_holds_others(queue->shm->object->index, NULL);

	if (!aq_queue_lock_pass(queue->id, AccessShareLock, wait))
		aq_heap_queue_is_gone();
}

/*
 * Called after a long wait: raises an error with the worker's error, if it
 * fails to create tables.
 */
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

/*
 * Release of a claim: the session has a partition with empty tables that is in
 * no list.
 */
static void
give_back_unused(void *ptr, int64 unused)
{
	Partition  *partition = ptr;

	aq_tables_give_back(aq_shm_by_index(partition->queue), partition);
}

/*
 * The partition from aq_tables_provide() is now in a stream.  Does not raise
 * an error.
 */
void
aq_tables_used(Partition *partition)
{
	if (partition->own_subid == InvalidSubTransactionId)
		aq_claim_end(give_back_unused, partition);
}

/* The partition is not needed.  Does not raise an error. */
void
aq_tables_unused(Partition *partition)
{
	Assert(partition->own_subid == InvalidSubTransactionId);
	aq_claim_end(give_back_unused, partition);
	give_back_unused(partition, 0);
}

/* Which pairs does a session want, with regard to the column for keys? */
typedef enum Keyed
{
	KEYED_ONLY,					/* those that have it */
	KEYED_FIRST,				/* rather those that have it, so that a message with a key can follow */
	KEYED_LAST,					/* rather the others, to drop them */
	KEYED_ANY
} Keyed;

/*
 * Claims the pair that has been empty for the longest time; NULL: none.  The caller
 * holds the latch and has reserved a claim.
 */
static Partition *
claim_empty(ShardQueue *sq, Keyed keyed)
{
	Partition  *before = NULL;
	Partition  *partition = partition_at(sq->empty);
	bool		mixed = sq->nunkeyed > 0 && sq->nunkeyed < sq->nempty;

	if (partition == NULL || (keyed == KEYED_ONLY && sq->nunkeyed == sq->nempty))
		return NULL;
	while (mixed && keyed != KEYED_ANY && partition->keyed == (keyed == KEYED_LAST))
	{
		before = partition;
		partition = partition_at(partition->next);
	}
	if (before == NULL)
		sq->empty = partition->next;
	else
		before->next = partition->next;
	if (sq->empty_last == partition->index)
		sq->empty_last = before == NULL ? 0 : before->index;
	sq->nempty--;
	sq->nunkeyed -= !partition->keyed;
	partition->next = 0;
	partition->state = PARTITION_TAKEN;
	partition->claimant = aq_session_own_number;
	aq_claim_enter(give_back_unused, partition, 0);
	return partition;
}

/* The same for the worker, as a claim that it ends with aq_tables_used() or aq_tables_unused(); NULL: none. */
Partition *
aq_tables_take_empty(AqQueueShm *shm)
{
	ShardQueue *sq = shard_queue(shm);
	Partition  *partition = NULL;

	aq_claim_reserve(1);
	aq_latch_get(&sq->latch, AQ_EXCLUSIVE, AQ_LOC_PARTITION_RECLAIM);
	partition = claim_empty(sq, KEYED_ANY);
	aq_latch_free(&sq->latch);
	return partition;
}

/*
 * *counted: the caller is counted as waiting, which ends when it gets a pair.
 */
static Partition *
pop_empty(AqQueueShm *shm, bool keyed, bool *counted)
{
	ShardQueue *sq = shard_queue(shm);
	Partition  *partition = NULL;
	bool		low;

	aq_claim_reserve(1);
	aq_latch_get(&sq->latch, AQ_EXCLUSIVE, AQ_LOC_PARTITION_OPEN);
	partition = claim_empty(sq, keyed ? KEYED_ONLY : KEYED_FIRST);
	if (partition != NULL)
	{
		if (*counted)
			aq_claim_uncount(keyed ? &sq->wanting_keyed : &sq->wanting);
		*counted = false;
	}
	low = wants_tables(shm);
	aq_latch_free(&sq->latch);
	if (low)
		aq_work_post(shm, AQ_WORK_TABLES);
	/*
	 * the worker makes its tables available before their invalidation messages
	 * are sent
	 */
	InvalidateCatalogSnapshot();
	return partition;
}

/*
 * Returns a partition with empty tables, as a claim that the caller ends with
 * aq_tables_used() or aq_tables_unused().  If there is none, waits for the
 * worker, but only for a limited time if the worker cannot create any.  keyed: they
 * must have a column for keys.
 */
Partition *
aq_tables_provide(AqQueue *queue, bool keyed)
{
	AqQueueShm *shm = queue->shm;
	Partition  *partition;
	bool		counted = false;
	int64		deadline = aq_clock_us() + PARTITION_PATIENCE;
	int64		trouble_deadline = aq_clock_us() + TROUBLE_PATIENCE;
	AqWorkerWait wait = {0};

	if (queue->own)
	{
		aq_share_check(AQ_SHARE_PARTITIONS, shm, 1);
		return make_own(queue);
	}

	aq_jobs_ensure_worker();
	partition = pop_empty(shm, keyed, &counted);
	if (partition != NULL)
		return partition;

	/*
	 * a session may have taken the last one after aq_tables_ready_for_worker
	 */
	if (aq_job_in_worker())
		elog(ERROR, "queue \"%s\" has no empty table now", queue->name);

	if (keyed && aq_version_is_own())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("queue \"%s\" has no table with a column for keys yet", queue->name),
				 errdetail("The worker makes it, which does not see the update of the extension \"pgaq\" before it is committed."),
				 errhint("Commit the update first.")));

	aq_share_check(AQ_SHARE_PARTITIONS, shm, 1);
	aq_claim_count(keyed ? &shard_queue(shm)->wanting_keyed : &shard_queue(shm)->wanting);
	counted = true;
	for (;;)
	{
		aq_jobs_ensure_worker();
		await_drop(queue);
		(void) aq_payload_type_lock(queue->payload_type, true);
		aq_cond_prepare(&shm->changed); /* after the locks, because a wait for one would consume the signal */
		partition = pop_empty(shm, keyed, &counted);
		if (partition != NULL)
			break;
		if (shm->object->state == AQ_OBJECT_DROPPED)
			ereport(ERROR,
					aq_error(AQ_ERR_QUEUE_UNDEFINED, "queue \"%s\" does not exist", queue->name),
					errdetail("It was dropped while the session waited for a table."));
		if (aq_pool_is_empty() && aq_clock_us() > deadline)
			aq_pool_refuse();
		if (aq_clock_us() > trouble_deadline)
			refuse_if_troubled(queue);
		aq_work_post(shm, AQ_WORK_TABLES);
		aq_jobs_post();
		aq_cond_sleep(&shm->changed, aq_await_event(&wait, AQ_EVENT_PARTITION_PROVIDE), queue->id, 0, AQ_WAITS_FOR_TABLES, ASK_WORKER_AGAIN);
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
 * Locks the queue's tables exclusively, which waits for their users.  Message
 * tables come first, because a holder of one of them may still need its log.
 */
void
aq_tables_lock(AqQueue *queue)
{
	List	   *numbers = aq_tables_numbers(queue->id);
	static const char letters[] = "ql";

	(void) aq_queue_lock_numbers(queue, AccessExclusiveLock, true);
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
 * The number of pairs of tables that the queue does not need.  They accumulate
 * by crashes, because after each of them the streams begin with new
 * partitions.  The queue may need as many again as it has opened since it was
 * loaded, if there are enough for other queues.  Read without the latch, so
 * only a hint.
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
		partition = claim_empty(sq, KEYED_LAST);
	aq_latch_free(&sq->latch);
	return partition;
}

/*
 * Drops one pair in a separate transaction; returns false if there is no
 * surplus, or it is in use.
 */
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
		/* a reader such as pg_dump has locked it */
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

/*
 * The pool is scarce: makes the worker check other queues for surplus tables.
 */
static void
ask_for_surplus(void)
{
	for (int i = 1; i <= aq_handle_limit; i++)
	{
		AqObject   *object = aq_handle_by_index(i);

		/*
		 * read without a lock: if the handle is reused, the post is harmless
		 */
		if (object->state == AQ_OBJECT_VALID && object->database == MyDatabaseId &&
			surplus(&aq_area_queues[i]) > 0)
			aq_work_post(aq_shm_by_index(i), AQ_WORK_SURPLUS);
	}
}

/* Drops all tables of the queue, which are locked. */
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

/*
 * The numbers of the queue's tables, according to the latest state of the
 * catalog.
 */
List *
aq_tables_numbers(int32 id)
{
	return aq_catalog_numbers("message_table", 2, &id);
}
