/*-------------------------------------------------------------------------
 *
 * upkeep.c
 *	  The worker's round: runs, for each queue with work, the jobs that its
 *	  work bits request: those of its store, and a few common ones.
 *
 * Sessions set bits in AqQueueShm.work and post the worker.  A job does all
 * work that it finds, in separate transactions; work that it cannot do now,
 * because a user holds a lock, it requests again with aq_work_later().  A job
 * that raises an error is run again later, and does not delay other queues.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/definitions/definitions_private.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/*
 * interval at which a round checks that the extension still exists, in
 * microseconds
 */
#define CHECK_EXTENSION ((int64) 10000000)

/*
 * pause before a queue that could not be loaded is tried again, in
 * microseconds
 */
#define LOAD_AGAIN ((int64) 60000000)

/* ... if a user has locked its tables */
#define LOCKED_AGAIN ((int64) 2000000)

/* time of an owner's queues in a round, in microseconds */
#define OWNER_TURN ((int64) 200000)

static void (*on_watched) (int32 id, AqQueueShm *shm);

static void
run_watched(int32 id, AqQueueShm *shm)
{
	if (on_watched != NULL)
		on_watched(id, shm);
}

/* jobs common to all stores */
static const AqStoreJob common_jobs[] = {
	{AQ_WORK_RECIPIENTS, aq_recipient_job},
	{AQ_WORK_IDLE, aq_recipient_idle_job},
	{AQ_WORK_WAITERS, aq_waiters_job},
	{AQ_WORK_POSITIONS, aq_subscriber_positions_job},
	{AQ_WORK_CONVERT, aq_convert_job},
	{AQ_WORK_BUFFERED, aq_buffered_job},
	{AQ_WORK_WATCHED, run_watched},
	{AQ_WORK_UNIQUE, aq_unique_job},
};

/* Failing jobs of queues, in the worker's memory. */
typedef struct FailingKey
{
	int32		id;
	uint32		work;			/* the job's bit; 0: timed work; LOADING */
	char		store;			/* store of the job; 0: common job */
} FailingKey;

#define LOADING PG_UINT32_MAX

typedef struct Failing
{
	FailingKey	key;
	AqTrouble	trouble;
} Failing;

static HTAB *failing;

static Failing *
find_failing(int32 id, uint32 work, char store, HASHACTION action)
{
	FailingKey	key;
	Failing    *entry;
	bool		found;

	if (failing == NULL)
	{
		HASHCTL		ctl = {.keysize = sizeof(FailingKey), .entrysize = sizeof(Failing)};

		failing = hash_create("pgaq failing jobs", 16, &ctl, HASH_ELEM | HASH_BLOBS);
	}
	memset(&key, 0, sizeof(key));
	key.id = id;
	key.work = work;
	key.store = store;
	entry = hash_search(failing, &key, action, &found);
	if (action == HASH_ENTER && !found)
		memset(&entry->trouble, 0, sizeof(AqTrouble));
	return entry;
}

/* Requests the job again at this time. */
static void
run_again(const AqStoreJob *job, AqQueueShm *shm, TimestampTz when)
{
	if (job->work == AQ_WORK_RETRY)
		aq_retries_later(shm, when - GetCurrentTimestamp());
	else if (job->work != 0)
		aq_work_later(shm, job->work, when - GetCurrentTimestamp());
	else
		aq_work_announce_time(shm, when);
}

/* Runs a job.  If the worker ends, the job is left to the next worker. */
static void
run_job(const AqStoreJob *job, char store, int32 id, AqQueueShm *shm)
{
	MemoryContext context = CurrentMemoryContext;
	Failing    *known = failing != NULL ? find_failing(id, job->work, store, HASH_FIND) : NULL;

	if (aq_worker_is_ending())
	{
		run_again(job, shm, GetCurrentTimestamp());
		return;
	}
	if (known != NULL && known->trouble.not_before > GetCurrentTimestamp())
	{
		run_again(job, shm, known->trouble.not_before);
		return;
	}
	PG_TRY();
	{
		aq_worker_begin_turn();
		job->run(id, shm);
		Assert(!IsTransactionState());
		if (known != NULL)
		{
			char		name[40];

			snprintf(name, sizeof(name), "upkeep of queue %d", id);
			aq_trouble_succeeded(&known->trouble, name);
		}
	}
	PG_CATCH();
	{
		AqTrouble  *trouble = &find_failing(id, job->work, store, HASH_ENTER)->trouble;

		aq_trouble_failed(trouble, context);
		run_again(job, shm, Max(trouble->not_before, GetCurrentTimestamp()));
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
}

static bool
time_has_come(AqQueueShm *shm)
{
	TimestampTz next = (TimestampTz) pg_atomic_read_u64(&shm->next_time);

	return next != 0 && next <= GetCurrentTimestamp();
}

static void
run_jobs(const AqStoreJob *jobs, int n, uint32 work, char store, int32 id, AqQueueShm *shm)
{
	for (int i = 0; i < n; i++)
		if (work & jobs[i].work)
			run_job(&jobs[i], store, id, shm);
}

/* Runs the jobs of the queue's store, or stores. */
static void
run_stores(uint32 work, int32 id, AqQueueShm *shm)
{
	static const char kinds[] = {AQ_STORE_CLASSIC, AQ_STORE_SHARDED};
	bool		time = time_has_come(shm);

	/* from here on, sessions announce times again */
	if (time)
		pg_atomic_write_u64(&shm->next_time, 0);
	for (int i = 0; i < lengthof(kinds); i++)
	{
		const AqStore *store = aq_store_of(kinds[i]);

		if (shm->store != kinds[i] && shm->store != AQ_STORE_BOTH)
			continue;
		if (kinds[i] == AQ_STORE_CLASSIC && shm->table_done)
			continue;
		run_jobs(store->jobs, store->njobs, work, store->kind, id, shm);
		if (time)
			run_job(&store->time_job, store->kind, id, shm);
	}
}

/* Has the queue work?  It need not be pinned. */
static bool
has_work(AqQueueShm *shm)
{
	TimestampTz check_at = (TimestampTz) pg_atomic_read_u64(&shm->check_at);
	TimestampTz now = GetCurrentTimestamp();

	return pg_atomic_read_u32(&shm->work) != 0 || time_has_come(shm) ||
		(shm->later_at != 0 && shm->later_at <= now) || (check_at != 0 && check_at <= now);
}

/* Sets the work bits of work that has become due. */
static void
collect_work(AqQueueShm *shm)
{
	TimestampTz check_at = (TimestampTz) pg_atomic_read_u64(&shm->check_at);

	if (shm->later_at != 0 && shm->later_at <= GetCurrentTimestamp())
	{
		pg_atomic_fetch_or_u32(&shm->work, shm->later_work);
		shm->later_work = 0;
		shm->later_at = 0;
	}
	if (check_at != 0 && check_at <= GetCurrentTimestamp())
	{
		pg_atomic_write_u64(&shm->check_at, 0);
		pg_atomic_fetch_or_u32(&shm->work, AQ_WORK_WAITERS);
	}
}

/* The time that the queues of an owner have used in the current round. */
typedef struct OwnerTime
{
	Oid			owner;
	int64		used;
} OwnerTime;

static OwnerTime *owners;
static int	nowners;
static int	owners_room;

static OwnerTime *
time_of(Oid owner)
{
	for (int i = 0; i < nowners; i++)
		if (owners[i].owner == owner)
			return &owners[i];
	owners = aq_array_room(owners, &owners_room, nowners + 1, sizeof(OwnerTime));
	owners[nowners] = (OwnerTime) {.owner = owner};
	return &owners[nowners++];
}

/* Returns false if the owner's queues have had their time; the work stays. */
static bool
serve_queue(AqObject *object)
{
	AqQueueShm *shm = aq_shm_by_index(object->index);
	Oid			owner = shm->owner;
	int64		began = aq_clock_us();
	uint32		work;

	if (!has_work(shm))
		return true;
	if (time_of(owner)->used >= OWNER_TURN)
		return false;
	/* until it is pinned, the handle may be reused for another queue */
	if (!aq_pins_keep(object))
		return true;
	collect_work(shm);
	work = pg_atomic_exchange_u32(&shm->work, 0);
	run_stores(work, object->id, shm);
	run_jobs(common_jobs, lengthof(common_jobs), work, 0, object->id, shm);
	aq_pins_release();
	time_of(owner)->used += aq_clock_us() - began;
	return true;
}

/* A round.  The next one begins with the first queue whose turn did not come; returns whether there is one. */
static bool
serve_all_queues(void)
{
	static int	first = 1;
	int			begin = first;
	bool		left = false;

	nowners = 0;
	for (int i = 0; i < aq_handle_limit; i++)
	{
		int			index = (begin - 1 + i) % aq_handle_limit + 1;
		AqObject   *object = aq_handle_by_index(index);

		CHECK_FOR_INTERRUPTS();
		if (object->state != AQ_OBJECT_VALID || object->database != MyDatabaseId || serve_queue(object))
			continue;
		if (!left)
			first = index;
		left = true;
	}
	return left;
}

/* A default exception queue without tables takes no memory before its first message. */
static bool
is_unused_default(const AqQueue *queue)
{
	return queue->rights_id != queue->id && aq_catalog_numbers("message_table", 2, &queue->id) == NIL;
}

/* Returns the SQLSTATE of the error that was logged, ERRCODE_LOCK_NOT_AVAILABLE, or 0. */
static int
load_queue(int32 id)
{
	MemoryContext context = CurrentMemoryContext;
	volatile int error = 0;

	PG_TRY();
	{
		AqQueue    *queue;

		aq_job_begin();
		queue = aq_catalog_get_by_id(id, true);
		if (queue != NULL && is_unused_default(queue))
			queue = NULL;
		if (queue != NULL && OidIsValid(queue->owner_view) && !aq_queue_lock_tables(queue, AccessShareLock))
			error = ERRCODE_LOCK_NOT_AVAILABLE;
		else if (queue != NULL && OidIsValid(queue->owner_view))
		{
			aq_pins_pin(queue);
			if (queue->multi)	/* an earlier worker may have been freeing positions */
				aq_work_post(queue->shm, AQ_WORK_IDLE);
			if (queue->buffered != NULL)
			{
				aq_pins_pin(queue->buffered);
				aq_work_post(queue->buffered->shm, AQ_WORK_BUFFERED);
			}
		}
		aq_job_commit(false);
	}
	PG_CATCH();
	{
		error = geterrcode();
		aq_trouble_failed(&find_failing(id, LOADING, 0, HASH_ENTER)->trouble, context);
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	return error;
}

/*
 * After a start, and after a restore, loads every queue once, because delayed
 * messages and prepared transactions need the worker even if no session uses
 * the queue.  A failure does not affect other queues.  Returns the time until
 * the next try, 0 if all are loaded.
 */
static int64
load_all_queues(void)
{
	List	   *ids;
	ListCell   *lc;
	bool		all;
	int64		again = 0;
	MemoryContext context = AllocSetContextCreate(TopMemoryContext, "pgaq queue ids",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext old = CurrentMemoryContext;

	aq_job_begin();
	MemoryContextSwitchTo(context);
	ids = aq_restored_complete(aq_catalog_queue_ids(), &all);
	aq_job_commit(false);
	MemoryContextSwitchTo(old);
	foreach(lc, ids)
	{
		int			error;

		if (aq_worker_is_ending())
		{
			again = LOAD_AGAIN;
			break;
		}
		error = load_queue(lfirst_int(lc));
		if (aq_error_is(error, AQ_ERR_CACHE_FULL))
		{
			/* queues that have no more work make room */
			serve_all_queues();
			error = load_queue(lfirst_int(lc));
		}
		if (error == ERRCODE_LOCK_NOT_AVAILABLE)
			again = LOCKED_AGAIN;
		else if (error != 0 && again == 0)
			again = LOAD_AGAIN;
		if (aq_error_is(error, AQ_ERR_CACHE_FULL))
			break;				/* the next ones would find no room either */
	}
	MemoryContextDelete(context);
	return all ? again : aq_restored_pause();
}

static TimestampTz
next_time(TimestampTz load_at)
{
	TimestampTz next = load_at == DT_NOEND ? 0 : load_at;

	for (int i = 1; i <= aq_handle_limit; i++)
	{
		AqObject   *object = aq_handle_by_index(i);

		if (object->state != AQ_OBJECT_VALID || object->database != MyDatabaseId)
			continue;
		aq_clock_sooner(&next, (TimestampTz) pg_atomic_read_u64(&aq_shm_by_index(i)->next_time));
		aq_clock_sooner(&next, aq_shm_by_index(i)->later_at);
		aq_clock_sooner(&next, (TimestampTz) pg_atomic_read_u64(&aq_shm_by_index(i)->check_at));
	}
	return next;
}

static void
forget_queues(Oid database)
{
	for (int i = 1; i <= aq_handle_limit; i++)
	{
		AqObject   *object = aq_handle_by_index(i);

		bool		loaded = object->state == AQ_OBJECT_VALID && object->copy == 0;

		if (object->state == AQ_OBJECT_FREE || object->database != database)
			continue;
		aq_object_drop(database, object->id);
		/* sessions that wait have it pinned, and find now that the queue does not exist */
		if (loaded)
			aq_waiters_wake_all(aq_shm_by_index(i));
	}
}

/*
 * If the extension was dropped, removes the database's queues from memory,
 * before a session can create new ones.
 */
static AqExtensionState
forget_without_extension(void)
{
	AqExtensionState extension;

	aq_job_begin();
	extension = aq_job_extension();
	if (extension == AQ_EXTENSION_GONE)
		forget_queues(MyDatabaseId);
	aq_job_commit(false);
	return extension;
}

/* Another worker has requested work for later, perhaps before the clock was set back: it is done now. */
static void
take_over(TimestampTz now)
{
	for (int i = 1; i <= aq_handle_limit; i++)
	{
		AqObject   *object = aq_handle_by_index(i);
		AqQueueShm *shm = aq_shm_by_index(i);

		if (object->state != AQ_OBJECT_VALID || object->database != MyDatabaseId)
			continue;
		shm->later_at = Min(shm->later_at, now);
		if (pg_atomic_read_u64(&shm->check_at) != 0)
			pg_atomic_write_u64(&shm->check_at, (uint64) now);
	}
}

static TimestampTz
upkeep(void)
{
	static TimestampTz load_at = DT_NOBEGIN;
	static TimestampTz checked = 0;
	TimestampTz now = GetCurrentTimestamp();

	if (checked == 0)
		take_over(now);
	(void) aq_chunks_set_impatient(true);
	aq_pins_sweep();
	if (aq_jobs_are_restored())
		load_at = DT_NOBEGIN;
	if (now >= load_at || now - checked > CHECK_EXTENSION)
	{
		AqExtensionState extension = forget_without_extension();

		checked = now;
		if (extension != AQ_EXTENSION_THERE)
		{
			load_at = DT_NOBEGIN;
			return extension == AQ_EXTENSION_GONE ? 0 : now + LOCKED_AGAIN;
		}
		if (now >= load_at)
		{
			int64		again = load_all_queues();

			load_at = again == 0 ? DT_NOEND : now + again;
		}
	}
	return serve_all_queues() ? now : next_time(load_at);
}

/* Does the database have a queue? */
static bool
upkeep_needed(void)
{
	bool		needed;

	aq_job_begin();
	needed = aq_job_extension() == AQ_EXTENSION_THERE && aq_catalog_queue_ids() != NIL;
	aq_job_commit(false);
	return needed;
}

static const AqJob upkeep_job = {.name = "upkeep", .needed = upkeep_needed, .run = upkeep};

/* Removes the queues of a dropped database from memory. */
static void
forget_database(Oid database)
{
	forget_queues(database);
	aq_row_flush_database(database);
}

void
aq_upkeep_on_watched(void (*run) (int32 id, AqQueueShm *shm))
{
	on_watched = run;
}

void
aq_upkeep_init(void)
{
	aq_worker_register(&upkeep_job);
	aq_jobs_on_database_dropped(forget_database);
}
