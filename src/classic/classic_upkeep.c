/*-------------------------------------------------------------------------
 *
 * classic_upkeep.c
 *	  The worker's round over the queues of queue tables.
 *
 * As for sharded queues: sessions set bits in AqQueueShm.work and post the
 * worker; a job works in transactions of its own and never waits for users.
 * What has a time is found by an index on the time of the next action, so the
 * work does not grow with what is not due.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "classic/classic_private.h"

#include "access/xact.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/procarray.h"
#include "utils/memutils.h"

#define AFTER_ERROR ((int64) 1000000)

/* how long between looks at prepared transactions, at removed consumers; microseconds */
#define DOUBT_AGAIN ((int64) 200000)
#define REMOVED_AGAIN ((int64) 1000000)

/* Ask for a job again after some time. */
void
aq_classic_later(AqQueueShm *shm, uint32 work, int64 microseconds)
{
	ClassicQueue *cq = classic_queue(shm);
	TimestampTz at = GetCurrentTimestamp() + microseconds;

	cq->later_work |= work;
	if (cq->later_at == 0 || at < cq->later_at)
		cq->later_at = at;
}

/* --- prepared transactions ------------------------------------------------------ */

/* Drop the entries of those that have ended; true when some are left for the queue. */
static bool
sweep_doubts(uint32 queue, bool *ended)
{
	bool		left = false;
	uint32		kept = 0;

	*ended = false;
	aq_latch_get(&aq_classic->latch, AQ_EXCLUSIVE, AQ_LOC_CLASSIC_DOUBT);
	for (uint32 i = 0; i < aq_classic->ndoubts; i++)
	{
		if (aq_classic->doubts[i].queue == queue)
		{
			if (!TransactionIdIsInProgress(aq_classic->doubts[i].xid))
			{
				*ended = true;
				continue;
			}
			left = true;
		}
		aq_classic->doubts[kept++] = aq_classic->doubts[i];
	}
	aq_classic->ndoubts = kept;
	aq_latch_free(&aq_classic->latch);
	return left;
}

static bool
any_prepared(void)
{
	bool		any;

	aq_run_sql("SELECT 1 FROM pg_catalog.pg_prepared_xacts LIMIT 1", 0, NULL, NULL, NULL, true);
	any = SPI_processed > 0;
	SPI_finish();
	return any;
}

static void
doubt_job(int32 id, AqQueueShm *shm)
{
	bool		ended;
	bool		left = sweep_doubts(shm->object->index, &ended);

	if (aq_classic->too_many)
	{
		aq_job_begin();
		if (any_prepared())
			left = true;
		else
			aq_classic->too_many = false;
		aq_job_commit(false);
		ended = true;
	}
	if (ended)
	{
		aq_queue_post_work(shm, AQ_WORK_RETRY);
		aq_wake_everybody(shm);
	}
	if (left)
		aq_classic_later(shm, AQ_WORK_DOUBT, DOUBT_AGAIN);
}

/* --- removed consumers ---------------------------------------------------------------- */

/*
 * Transactions that run may still enqueue for a consumer that is removed; when
 * they have ended, what is in its line is deleted and its position is free.
 */
typedef struct Removed
{
	int32		id;
	int			position;
	TransactionId horizon;
} Removed;

static List *removed;			/* in TopMemoryContext */

static Removed *
find_or_note(int32 id, int position)
{
	ListCell   *lc;
	MemoryContext old;
	Removed    *r;

	foreach(lc, removed)
	{
		r = lfirst(lc);
		if (r->id == id && r->position == position)
			return r;
	}
	old = MemoryContextSwitchTo(TopMemoryContext);
	r = palloc0(sizeof(Removed));
	r->id = id;
	r->position = position;
	r->horizon = ReadNextTransactionId();
	removed = lappend(removed, r);
	MemoryContextSwitchTo(old);
	return r;
}

/* Empty the line; false when somebody has a row of it in hand. */
static bool
empty_line(AqQueue *queue, int position)
{
	const Key	first = KEY_FIRST,
				last = KEY_LAST;
	Line		line,
				probe,
				messages;
	Key			key;
	bool		busy = false;

	aq_line_open(&line, queue, queue->table.consumers, RowExclusiveLock);
	aq_line_open(&probe, queue, queue->table.consumers, RowExclusiveLock);
	aq_line_open(&messages, queue, queue->table.messages, RowExclusiveLock);
	aq_line_seek(&line, queue->id, position, &first, ForwardScanDirection);
	while (aq_line_next_row(&line, &last, &key))
	{
		CHECK_FOR_INTERRUPTS();
		if (TransactionIdIsValid(line.dirty.xmin) || TransactionIdIsValid(line.dirty.xmax) ||
			aq_row_delete(line.rel, line.slot) != TM_Ok)
		{
			busy = true;
			continue;
		}
		if (aq_line_find(&messages, queue->id, 0, &key))
			aq_message_check(queue, &probe, &messages, &key, position);
	}
	aq_line_close(&line, false);
	aq_line_close(&probe, false);
	aq_line_close(&messages, false);
	return !busy;
}

static void
removed_job(int32 id, AqQueueShm *shm)
{
	AqQueue    *queue;
	bool		left = false;
	List	   *freed = NIL;
	ListCell   *lc;

	aq_job_begin();
	queue = aq_queue_get_by_id(id, true);
	if (queue != NULL && !aq_classic_lock(queue))
		left = true;
	else if (queue != NULL)
		aq_queue_pin(queue);
	if (queue != NULL && !left)
		for (int i = 0; i < queue->nconsumers; i++)
		{
			int			position = queue->consumers[i].position;
			Removed    *r;

			if (queue->consumers[i].name != NULL)
				continue;
			r = find_or_note(id, position);
			if (!TransactionIdPrecedes(GetOldestActiveTransactionId(), r->horizon) &&
				aq_queue_lock(id, ShareUpdateExclusiveLock, false) && empty_line(queue, position))
			{
				(void) aq_run_sql(psprintf("DELETE FROM aq.subscriber WHERE queue_id = %d "
										   "AND \"position\" = %d AND kind = 'removed'", id, position),
								  0, NULL, NULL, NULL, false);
				freed = lappend_int(freed, position);
			}
			else
				left = true;
		}
	foreach(lc, freed)
	{
		Removed    *r = find_or_note(id, lfirst_int(lc));

		aq_consumer_shm(shm, r->position)->removed = false;
		removed = list_delete_ptr(removed, r);
		pfree(r);
	}
	if (freed != NIL)
		aq_catalog_changed();
	aq_job_commit(false);
	if (left)
		aq_classic_later(shm, AQ_WORK_REMOVED, REMOVED_AGAIN);
}

/* --- the round ------------------------------------------------------------------------------ */

typedef struct Job
{
	uint32		work;
	void		(*run) (int32 id, AqQueueShm *shm);
} Job;

static const Job jobs[] = {
	{AQ_WORK_RETRY, aq_classic_retry_job},
	{AQ_WORK_RECIPIENTS, aq_recipients_job},
	{AQ_WORK_WAITERS, aq_waiters_job},
	{AQ_WORK_DOUBT, doubt_job},
	{AQ_WORK_REMOVED | AQ_WORK_POSITIONS, removed_job},
};

/* asked for by time, not by a bit */
static const Job time_job = {0, aq_classic_time_job};

static void
run_job(const Job *job, int32 id, AqQueueShm *shm)
{
	MemoryContext context = CurrentMemoryContext;

	PG_TRY();
	{
		job->run(id, shm);
		Assert(!IsTransactionState());
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		EmitErrorReport();
		FlushErrorState();
		AbortCurrentTransaction();
		aq_sync_release_all();
		if (job->work != 0)
			aq_classic_later(shm, job->work, AFTER_ERROR);
		else
			aq_classic_announce_time(shm, GetCurrentTimestamp() + AFTER_ERROR);
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
}

static bool
time_has_come(AqQueueShm *shm)
{
	TimestampTz next = (TimestampTz) pg_atomic_read_u64(&classic_queue(shm)->next_time);

	return next != 0 && next <= GetCurrentTimestamp();
}

static void
serve_queue(AqObject *object)
{
	AqQueueShm *shm = aq_queue_shm_by_index(object->index);
	ClassicQueue *cq = &aq_classic_queues[object->index];
	uint32		work;
	TimestampTz check_at;
	bool		must_load;
	AqObject   *pinned;

	if (cq->later_at != 0 && cq->later_at <= GetCurrentTimestamp())
	{
		pg_atomic_fetch_or_u32(&shm->work, cq->later_work);
		cq->later_work = 0;
		cq->later_at = 0;
	}
	check_at = (TimestampTz) pg_atomic_read_u64(&shm->check_at);
	if (check_at != 0 && check_at <= GetCurrentTimestamp())
	{
		pg_atomic_write_u64(&shm->check_at, 0);
		pg_atomic_fetch_or_u32(&shm->work, AQ_WORK_WAITERS);
	}
	if (pg_atomic_read_u32(&shm->work) == 0 && !time_has_come(shm))
		return;

	/* the pin lasts over the jobs' transactions */
	pinned = aq_object_pin(object->database, object->id, &must_load);
	if (must_load)
		aq_object_loaded(pinned, false);	/* it was dropped this moment */
	else if (pinned == object)
	{
		work = pg_atomic_exchange_u32(&shm->work, 0);
		for (int i = 0; i < lengthof(jobs); i++)
			if (work & jobs[i].work)
				run_job(&jobs[i], object->id, shm);
		if (time_has_come(shm))
			run_job(&time_job, object->id, shm);
	}
	aq_object_unpin(pinned);
}

static TimestampTz
upkeep(void)
{
	TimestampTz next = 0;

	for (int i = 1; i <= aq_object_limit; i++)
	{
		AqObject   *object = aq_object_by_index(i);
		TimestampTz times[3];

		CHECK_FOR_INTERRUPTS();
		if (object->state != AQ_OBJECT_VALID || object->database != MyDatabaseId ||
			aq_queue_shm_by_index(i)->store != AQ_STORE_CLASSIC)
			continue;
		serve_queue(object);
		times[0] = (TimestampTz) pg_atomic_read_u64(&aq_classic_queues[i].next_time);
		times[1] = aq_classic_queues[i].later_at;
		times[2] = (TimestampTz) pg_atomic_read_u64(&aq_queue_shm_by_index(i)->check_at);
		for (int t = 0; t < lengthof(times); t++)
			if (times[t] != 0 && (next == 0 || times[t] < next))
				next = times[t];
	}
	return next;
}

static const AqJob upkeep_job = {.name = "queue tables",.run = upkeep};

void
aq_classic_upkeep_init(void)
{
	aq_jobs_register(&upkeep_job);
}
