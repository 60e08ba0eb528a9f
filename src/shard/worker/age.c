/*-------------------------------------------------------------------------
 *
 * age.c
 *	  The worker advances relfrozenxid of tables that are not used.
 *
 * Truncation advances a table's relfrozenxid.  Tables in reserve, or of a queue without
 * traffic, are not truncated.  Without this file, autovacuum would freeze all of them
 * at the same time, when they reach autovacuum_freeze_max_age.  So at a quarter of
 * that age, the worker truncates those that are empty, or whose messages are all
 * consumed: a few queues at a time, so that other work does not wait.
 *
 * Tables with messages are left to autovacuum.  Each has a limit of its own, so that
 * autovacuum does not process all of them at the same time: see tables.c.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/worker/worker_private.h"

#include "access/transam.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "postmaster/autovacuum.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

/* queues whose old tables are truncated in a round of the worker, and the pause after it, in microseconds */
#define QUEUES_AT_A_TIME 4
#define PAUSE ((int64) 100000)

/*
 * How often a worker with nothing else to do compares transaction ids, in
 * microseconds.  Rarely: if a worker must leave for that of another database, it is
 * the one whose next work is furthest away.
 */
#define LOOK_AGAIN ((int64) 3600 * 1000000)

/* A table with this age is old. */
static int32
old_age(void)
{
	return autovacuum_freeze_max_age / 4;
}

/* Truncation advances relfrozenxid when it is this many transactions old: rarely, see aq_compat_after_truncate(). */
int32
aq_age_to_advance(void)
{
	return Min(1000000, old_age() / 2);
}

/* --- one queue ------------------------------------------------------------------------------- */

static bool
table_is_old(Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	bool		old;

	if (!HeapTupleIsValid(tuple))
		return false;
	old = (int32) (ReadNextTransactionId() - ((Form_pg_class) GETSTRUCT(tuple))->relfrozenxid) > old_age();
	ReleaseSysCache(tuple);
	return old;
}

static bool
is_old(const Partition *partition)
{
	return table_is_old(partition->messages) || table_is_old(partition->log);
}

/* Those in reserve, each once. */
static void
truncate_empty(AqQueueShm *shm)
{
	ShardQueue *sq = shard_queue(shm);

	for (uint32 left = sq->nempty; left > 0; left--)
	{
		Partition  *partition = aq_tables_take_empty(shm);

		if (partition == NULL)
			break;
		if (!is_old(partition))
		{
			aq_tables_unused(partition);
			continue;
		}
		aq_tables_used(partition);
		partition->last_take = 0;	/* none since it was truncated */
		aq_settle_list_done(sq, partition);
		aq_work_post(shm, AQ_WORK_RECLAIM);
	}
}

static bool
is_consumed(const Partition *partition)
{
	return partition != NULL && aq_slot_all_done(partition) && partition->own_subid == InvalidSubTransactionId;
}

/* Open ones whose messages are consumed. */
static void
truncate_open(AqQueueShm *shm)
{
	for (Stream *stream = stream_at(shard_queue(shm)->streams); stream != NULL;
		 stream = stream_at(stream->next))
	{
		Partition  *partition;
		bool		consumed;

		aq_latch_get(&stream->latch, AQ_SHARED, AQ_LOC_PARTITION_RECLAIM);
		partition = partition_at(stream->open);
		consumed = is_consumed(partition);
		aq_latch_free(&stream->latch);
		if (!consumed || !is_old(partition))
			continue;
		aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_PARTITION_RECLAIM);
		partition = partition_at(stream->open);
		if (is_consumed(partition))
		{
			aq_stream_close(stream, partition);
			aq_settle_check_done(stream, partition);
		}
		aq_latch_free(&stream->latch);
	}
}

void
aq_age_queue_job(int32 id, AqQueueShm *shm)
{
	aq_job_begin();
	truncate_empty(shm);
	truncate_open(shm);
	aq_job_commit(false);
}

/* --- all queues ------------------------------------------------------------------------------ */

static MemoryContext context;	/* of the list */
static List *old_queues;		/* ids of queues with old tables that are still to be asked */
static TransactionId look_at;	/* the next transaction id at which to look; invalid: now */
static int64 pause_end;			/* aq_clock_us() */

static void
find_old(void)
{
	if (context == NULL)
		context = AllocSetContextCreate(TopMemoryContext, "pgaq old tables", ALLOCSET_SMALL_SIZES);
	MemoryContextReset(context);
	old_queues = NIL;
	aq_job_begin();
	if (aq_job_extension() == AQ_EXTENSION_THERE)
	{
		MemoryContext old = MemoryContextSwitchTo(context);

		old_queues = aq_sql_numbers(psprintf("SELECT DISTINCT substr(split_part(relname, '_', 1), 2)::int FROM pg_class "
											 "WHERE relnamespace = 'aq_data'::regnamespace AND relkind = 'r' "
											 "AND relname ~ '^[ql][0-9]+_[0-9]+$' AND age(relfrozenxid) > %d", old_age()));
		MemoryContextSwitchTo(old);
	}
	aq_job_commit(false);
	look_at = ReadNextTransactionId() + old_age() / 8;
	if (!TransactionIdIsNormal(look_at))
		look_at = FirstNormalTransactionId;
}

/* Asks some of the queues; those that are not in memory are left to autovacuum. */
static void
ask_queues(void)
{
	for (int n = 0; n < QUEUES_AT_A_TIME && old_queues != NIL; n++)
	{
		AqObject   *object = aq_object_find(MyDatabaseId, llast_int(old_queues));

		/* read without a lock: if the handle is reused, the post is harmless */
		if (object != NULL)
			aq_work_post(aq_shm_by_index(object->index), AQ_WORK_AGE);
		old_queues = list_delete_last(old_queues);
	}
	pause_end = aq_clock_us() + PAUSE;
}

static TimestampTz
age_job_run(void)
{
	if (old_queues == NIL &&
		(!TransactionIdIsValid(look_at) || TransactionIdFollowsOrEquals(ReadNextTransactionId(), look_at)))
		find_old();
	if (aq_clock_us() >= pause_end)
		ask_queues();
	if (old_queues != NIL)
		return GetCurrentTimestamp() + PAUSE;
	return aq_worker_is_leaving() ? 0 : GetCurrentTimestamp() + LOOK_AGAIN;
}

static const AqJob age_job = {.name = "old tables", .run = age_job_run};

void
aq_age_register(void)
{
	aq_worker_register(&age_job);
}
