/*-------------------------------------------------------------------------
 *
 * temporary_end.c
 *	  The worker's job that removes temporary queues and subscribers of sessions
 *	  that have ended.
 *
 * It looks for them when it starts, when a session that had some has ended, and
 * after a restore, which restores them as well.  Each is removed in a transaction
 * of its own, as aq.drop_queue with force and aq.unsubscribe do it.  The job waits
 * for no session: what a transaction uses, or has locked a row of, stays.  It is
 * tried again after a pause that grows, so that however much is held takes
 * little of the worker's time.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/definitions/definitions_private.h"

#include "executor/spi.h"
#include "storage/lmgr.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/* pauses before what is in use is tried again, and before the extension is looked for again, in microseconds */
#define FIRST_PAUSE ((int64) 1000000)
#define LONGEST_PAUSE ((int64) 60000000)

/* A row of aq_internal.temporary. */
typedef struct Temporary
{
	int32		queue_id;
	int64		consumer;		/* 0: the queue */
	int64		session;		/* has ended */
} Temporary;

/* What is in use, in the worker's memory. */
typedef struct Held
{
	Temporary	temporary;		/* the key */
	int64		pause;
	TimestampTz not_before;		/* time of the next try */
	uint32		round;			/* the last one that has found it */
} Held;

static AqTrouble trouble;
static HTAB *all_held;
static uint32 this_round;

static bool
lock_relation(const char *name)
{
	Oid			relation = aq_schema_data_relation(name);

	return !OidIsValid(relation) || ConditionalLockRelationOid(relation, AccessExclusiveLock);
}

/* Locks what the drop would wait for. */
static bool
lock_all(AqQueue *queue)
{
	int32		id = queue->id;
	ListCell   *lc;

	if (!aq_queue_lock(id, AccessExclusiveLock, false) || !lock_relation(psprintf("q%d", id)) ||
		!aq_queue_lock_numbers(queue, AccessExclusiveLock, false) || !lock_relation(aq_schema_message_table(-id)) ||
		!lock_relation(aq_schema_consumer_table(-id)))
		return false;
	foreach(lc, aq_catalog_numbers("message_table", 2, &id))
		if (!lock_relation(psprintf("q%d_%d", id, lfirst_int(lc))) || !lock_relation(psprintf("l%d_%d", id, lfirst_int(lc))))
			return false;
	return true;
}

/*
 * Returns false if it is in use.  Until it is locked, another session can drop it,
 * and create another queue of this name, which stays.
 */
static bool
remove_queue(const Temporary *temporary)
{
	AqQueue    *queue = aq_catalog_get_by_id(temporary->queue_id, true);

	aq_point("temporary-found");
	if (queue != NULL && !lock_all(queue))
		return false;
	queue = aq_catalog_get_by_id(temporary->queue_id, true);
	if (queue == NULL)
		aq_temporary_forget_queue(temporary->queue_id);
	else
		aq_definition_drop(list_make1(pstrdup(queue->name)), true);
	return true;
}

static bool
remove_consumer(const Temporary *temporary)
{
	AqQueue    *queue;

	if (!aq_queue_lock(temporary->queue_id, ShareUpdateExclusiveLock, false))
		return false;
	/* while the row was read, another session may have subscribed it, too, or made it lasting */
	if (!aq_temporary_forget_session(temporary->queue_id, temporary->consumer, temporary->session) ||
		aq_temporary_is_consumer(temporary->queue_id, temporary->consumer))
		return true;
	queue = aq_catalog_get_by_id(temporary->queue_id, true);
	for (int i = 0; queue != NULL && i < queue->nconsumers; i++)
		if (queue->consumers[i].name != NULL && queue->consumers[i].number == temporary->consumer)
		{
			aq_subscriber_take_away(queue, queue->consumers[i]);
			return true;
		}
	return true;
}

/* Returns false if it has to be tried again. */
static bool
remove_one(const Temporary *temporary)
{
	MemoryContext context = CurrentMemoryContext;
	volatile bool done = false;

	if (aq_worker_is_ending())
		return false;
	PG_TRY();
	{
		aq_job_begin();
		aq_job_wait_for_none();
		aq_point("temporary-ends");
		if (aq_job_lock_extension())
			done = temporary->consumer == 0 ? remove_queue(temporary) : remove_consumer(temporary);
		aq_job_commit(false);
		aq_trouble_succeeded(&trouble, "temporary objects");
	}
	PG_CATCH();
	{
		/* what a session has locked is in use */
		aq_trouble_failed(geterrcode() != ERRCODE_LOCK_NOT_AVAILABLE ? &trouble : NULL, context);
		done = false;
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	return done;
}

static Held *
find_held(const Temporary *temporary, HASHACTION action)
{
	if (all_held == NULL)
	{
		HASHCTL		ctl = {.keysize = sizeof(Temporary), .entrysize = sizeof(Held)};

		all_held = hash_create("pgaq temporary objects in use", 16, &ctl, HASH_ELEM | HASH_BLOBS);
	}
	return hash_search(all_held, temporary, action, NULL);
}

/* Removes it, or notes when to try again. */
static void
try_one(const Temporary *temporary)
{
	Held	   *held = find_held(temporary, HASH_FIND);

	if (held != NULL && held->not_before > GetCurrentTimestamp())
	{
		held->round = this_round;
		return;
	}
	if (remove_one(temporary))
		return;
	if (held == NULL)
	{
		held = find_held(temporary, HASH_ENTER);
		held->pause = FIRST_PAUSE / 2;
	}
	held->round = this_round;
	held->pause = Min(held->pause * 2, LONGEST_PAUSE);
	held->not_before = GetCurrentTimestamp() + held->pause;
}

/* Forgets what this round has not found, or has removed; returns the time of the next try, 0: nothing is in use. */
static TimestampTz
next_try(void)
{
	HASH_SEQ_STATUS scan;
	Held	   *held;
	TimestampTz next = 0;

	if (all_held == NULL)
		return 0;
	hash_seq_init(&scan, all_held);
	while ((held = hash_seq_search(&scan)) != NULL)
		if (held->round != this_round)
			(void) find_held(&held->temporary, HASH_REMOVE);
		else if (next == 0 || held->not_before < next)
			next = held->not_before;
	return next;
}

/*
 * Those of sessions that have ended; consumers first, because their queue may end,
 * too.  Called in a transaction.
 */
static List *
find_ended(MemoryContext context)
{
	List	   *list = NIL;

	/* rows above the last number are being restored, as their queues are */
	aq_sql_run("SELECT t.queue_id, t.consumer_number, t.session_id FROM aq_internal.temporary t, aq_internal.queue_id_seq s "
			   "WHERE t.queue_id <= s.last_value ORDER BY t.consumer_number = 0, t.queue_id", 0, NULL, NULL, NULL, true);
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		HeapTuple	tuple = SPI_tuptable->vals[i];
		TupleDesc	desc = SPI_tuptable->tupdesc;
		bool		isnull;
		Temporary  *temporary;
		MemoryContext spi;

		if (aq_temporary_owner_lives(DatumGetInt64(SPI_getbinval(tuple, desc, 3, &isnull))))
			continue;
		spi = MemoryContextSwitchTo(context);
		temporary = palloc0(sizeof(Temporary));
		temporary->queue_id = DatumGetInt32(SPI_getbinval(tuple, desc, 1, &isnull));
		temporary->consumer = DatumGetInt64(SPI_getbinval(tuple, desc, 2, &isnull));
		temporary->session = DatumGetInt64(SPI_getbinval(tuple, desc, 3, &isnull));
		list = lappend(list, temporary);
		MemoryContextSwitchTo(spi);
	}
	SPI_finish();
	return list;
}

/* Returns the time of the next try of what is left; 0: nothing is left. */
static TimestampTz
remove_ended(void)
{
	MemoryContext context = AllocSetContextCreate(TopMemoryContext, "pgaq temporary objects", ALLOCSET_SMALL_SIZES);
	List	   *list = NIL;
	ListCell   *lc;
	bool		locked;
	bool		there = true;

	aq_job_begin();
	locked = aq_job_lock_extension();
	if (locked)
		list = find_ended(context);
	else
		there = aq_job_extension() == AQ_EXTENSION_THERE;
	aq_job_commit(false);
	if (!locked)
		return there ? GetCurrentTimestamp() + FIRST_PAUSE : 0;
	this_round++;
	aq_worker_begin_turn();
	foreach(lc, list)
	{
		if (aq_worker_turn_is_over())
			break;
		try_one(lfirst(lc));
	}
	MemoryContextDelete(context);
	return lc != NULL ? GetCurrentTimestamp() : next_try();
}

static TimestampTz
temporary_job_run(void)
{
	static bool looked;			/* since the worker's start, and since then ... */
	static uint64 seen_ended;
	static uint32 seen_restored;
	static TimestampTz again;	/* 0: nothing was left */
	uint64		ended = aq_temporary_owner_ended();

	/* a restore would miss a table that is dropped */
	if (aq_restored_is_running() || aq_jobs_are_restored())
		return 0;
	if (looked && ended == seen_ended && aq_restored_count() == seen_restored &&
		(again == 0 || again > GetCurrentTimestamp()))
		return again;
	looked = true;
	again = GetCurrentTimestamp() + FIRST_PAUSE;	/* if an error ends this turn */
	seen_ended = ended;
	seen_restored = aq_restored_count();
	again = remove_ended();
	return again;
}

static const AqJob temporary_job = {.name = "temporary objects", .run = temporary_job_run};

/* After the upkeep, which learns of restored queues. */
void
aq_temporary_end_init(void)
{
	aq_worker_register(&temporary_job);
}
