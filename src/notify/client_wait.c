/*-------------------------------------------------------------------------
 *
 * client_wait.c
 *	  aq.wait on registrations without a procedure.
 *
 * The session remembers, also between waits, which registrations had nothing, and
 * does not look at them again until their bits are woken:
 *	1.	it sets its interest, has the queue watched, and looks;
 *	2.	whatever makes a message ready has the worker look who is to be notified;
 *	3.	the worker sets "woken" and the session's latch.
 * The worker wakes all clients when it starts, because an earlier one may have died
 * between 2 and 3.
 *
 * What is new is derived from the queue, see client_news.c, so a session that ends
 * between two waits loses nothing.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "notify/notify_private.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "tcop/pquery.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

/* A registration that had nothing when this session looked. */
typedef struct Quiet
{
	int64		registration;
	TimestampTz due;			/* when the group that has messages ends; 0: none has */
} Quiet;

static HTAB *quiet;

static void
forget_all(void)
{
	if (quiet != NULL)
		hash_destroy(quiet);
	quiet = NULL;
}

static Quiet *
look_up(int64 registration, HASHACTION action)
{
	if (quiet == NULL)
	{
		HASHCTL		ctl = {.keysize = sizeof(int64), .entrysize = sizeof(Quiet)};

		quiet = hash_create("pgaq quiet registrations", 64, &ctl, HASH_ELEM | HASH_BLOBS);
	}
	return hash_search(quiet, &registration, action, NULL);
}

/* Forgets the registrations that have been woken; returns whether some were made or ended. */
static bool
forget_woken(void)
{
	bool		definitions,
				unknown;
	uint64		woken = aq_client_collect(&definitions, &unknown);
	HASH_SEQ_STATUS status;
	Quiet	   *entry;

	if (unknown)
		forget_all();
	if (quiet == NULL || woken == 0)
		return definitions;
	hash_seq_init(&status, quiet);
	while ((entry = hash_seq_search(&status)) != NULL)
		if ((woken & aq_client_bit(entry->registration)) != 0)
			(void) hash_search(quiet, &entry->registration, HASH_REMOVE, NULL);
	return definitions;
}

/* --- the wait ------------------------------------------------------------------------------------- */

typedef struct Waiting
{
	ArrayType  *wanted;			/* NULL: those of the role */
	int64	   *ids;
	int			n;
	MemoryContext context;		/* of a look */
	MemoryContext ids_context;
	Datum	   *ready;			/* the result: ids */
	int			nready;
	TimestampTz due;			/* when the first group of those that have nothing yet ends */
} Waiting;

static void
read_ids(Waiting *waiting)
{
	MemoryContext old;
	List	   *list;
	ListCell   *lc;
	uint64		bits = 0;

	MemoryContextReset(waiting->ids_context);
	old = MemoryContextSwitchTo(waiting->ids_context);
	list = aq_client_news_registrations(waiting->wanted);
	waiting->ids = palloc((list_length(list) + 1) * sizeof(int64));
	waiting->ready = palloc((list_length(list) + 1) * sizeof(Datum));
	waiting->n = 0;
	foreach(lc, list)
	{
		int64		id = ((AqRegistration *) lfirst(lc))->id;

		waiting->ids[waiting->n++] = id;
		bits |= aq_client_bit(id);
	}
	MemoryContextSwitchTo(old);
	aq_client_begin_interest(bits);
}

/* The registrations to look at: not those that are known to have nothing. */
static ArrayType *
to_look_at(Waiting *waiting)
{
	Datum	   *ids = palloc((waiting->n + 1) * sizeof(Datum));
	TimestampTz now = GetCurrentTimestamp();
	int			n = 0;

	waiting->due = 0;
	for (int i = 0; i < waiting->n; i++)
	{
		Quiet	   *entry = look_up(waiting->ids[i], HASH_FIND);

		if (entry == NULL || (entry->due != 0 && entry->due <= now))
			ids[n++] = Int64GetDatum(waiting->ids[i]);
		else if (entry->due != 0 && (waiting->due == 0 || entry->due < waiting->due))
			waiting->due = entry->due;
	}
	return n == 0 ? NULL : construct_array(ids, n, INT8OID, sizeof(int64), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE);
}

static void
look_at(Waiting *waiting, const AqRegistration *r)
{
	AqNotified	notified = {.context = CurrentMemoryContext};
	TimestampTz due = 0;

	if (aq_client_news_has(&notified, r, &due))
	{
		waiting->ready[waiting->nready++] = Int64GetDatum(r->id);
		(void) look_up(r->id, HASH_REMOVE);
		return;
	}
	look_up(r->id, HASH_ENTER)->due = due;
	if (due != 0 && (waiting->due == 0 || due < waiting->due))
		waiting->due = due;
}

/* Reads which registrations there are, or looks at those that may have something. */
static void
look_inside(Waiting *waiting)
{
	MemoryContext old = CurrentMemoryContext;
	ListCell   *lc;

	PushActiveSnapshot(GetLatestSnapshot());
	if (waiting->ids == NULL)
		read_ids(waiting);
	else
	{
		ArrayType  *ids;

		MemoryContextSwitchTo(waiting->context);
		ids = to_look_at(waiting);
		foreach(lc, ids == NULL ? NIL : aq_client_news_registrations(ids))
		{
			CHECK_FOR_INTERRUPTS();
			look_at(waiting, lfirst(lc));
		}
		MemoryContextSwitchTo(old);
		MemoryContextReset(waiting->context);
	}
	PopActiveSnapshot();
}

/*
 * The same in a subtransaction that is rolled back, so that a session that waits
 * holds no locks of tables.
 */
static void
look(void *arg)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		look_inside(arg);
		aq_client_roll_back_look();
		MemoryContextSwitchTo(context);
		CurrentResourceOwner = owner;
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		aq_client_roll_back_look();
		MemoryContextSwitchTo(context);
		CurrentResourceOwner = owner;
		ReThrowError(error);
	}
	PG_END_TRY();
}

/* Returns whether a registration has something. */
static bool
wait_for_some(Waiting *waiting, int64 timeout)
{
	int64		deadline = timeout < 0 ? -1 : aq_clock_us() + timeout;

	/* a wake-up may still be on its way */
	if (timeout == 0)
		forget_all();
	for (;;)
	{
		int64		left = deadline < 0 ? -1 : Max(deadline - aq_clock_us(), 0);

		if (forget_woken())
			waiting->ids = NULL;
		while (waiting->ids == NULL)
			aq_wait_call_ahead(look, waiting);
		aq_wait_call_ahead(look, waiting);
		if (waiting->nready > 0 || left == 0)
			return waiting->nready > 0;
		aq_wait_release_snapshot();
		aq_point("client-waits");
		if (waiting->due != 0)
		{
			int64		until = Max(waiting->due - GetCurrentTimestamp(), 0);

			left = left < 0 ? until : Min(left, until);
		}
		aq_client_sleep(waiting->n, left);
	}
}

/* aq.wait(registration_ids, timeout) */
PG_FUNCTION_INFO_V1(aq_client_wait);
Datum
aq_client_wait(PG_FUNCTION_ARGS)
{
	AQ_TIMED(AQ_TIME_LISTEN);
	Waiting		waiting = {.wanted = PG_ARGISNULL(0) ? NULL : PG_GETARG_ARRAYTYPE_P_COPY(0)};
	int64		timeout = PG_ARGISNULL(1) ? -1 : aq_args_timeout(fcinfo, 1, "timeout");
	Datum		value = 0;
	bool		isnull;

	aq_session_require_preload();
	PreventCommandDuringRecovery("aq.wait()");
	PreventCommandIfParallelMode("aq.wait()");
	aq_jobs_ensure_worker();
	waiting.context = AllocSetContextCreate(CurrentMemoryContext, "pgaq registrations", ALLOCSET_DEFAULT_SIZES);
	waiting.ids_context = AllocSetContextCreate(CurrentMemoryContext, "pgaq registration ids", ALLOCSET_DEFAULT_SIZES);
	isnull = !wait_for_some(&waiting, timeout);
	EnsurePortalSnapshotExists();
	if (!isnull)
		value = PointerGetDatum(construct_array(waiting.ready, waiting.nready, INT8OID, sizeof(int64), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
	PG_RETURN_DATUM(aq_rows_one(fcinfo, &value, &isnull));
}
