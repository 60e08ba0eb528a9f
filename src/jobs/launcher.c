/*-------------------------------------------------------------------------
 *
 * launcher.c
 *	  The background worker that sees to the others: every database with
 *	  queues has its worker from the server's start on.
 *
 * Delays, expirations and transactions in doubt go on while no session uses
 * the queues, so a start cannot wait for one.  Which databases have queues
 * cannot be seen from outside, so the launcher starts a worker in each of them
 * that can be connected to, a few at a time; a worker that finds nothing ends
 * again.  Afterwards the launcher sleeps until a worker has ended, or is wanted,
 * and starts it.  Where there are fewer places than databases that want one,
 * workers without anything to do leave, and the others take turns: see room.c.
 *
 * It is connected to no database, so it hinders no command.  It starts when
 * recovery has finished, hence on a standby after the promotion.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "jobs/jobs_private.h"

#include "access/heapam.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_database.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

/* how many databases are asked at a time whether they have queues */
#define MAX_PROBES 2

/* until the next try where a worker cannot be started, microseconds: without a place; in a closed database */
#define SHORT_REST ((int64) 1000000)
#define LONG_REST ((int64) 10000000)

/* how long a database waits for a place before the log says so */
#define PATIENCE ((int64) 5000000)

PGDLLEXPORT void aq_launcher_main(Datum arg);

/* A database as it was listed; the xmin of its row tells it from what it was before. */
typedef struct Known
{
	Oid			oid;
	TransactionId xmin;
} Known;

static List *databases = NIL;	/* of Known */
static List *unseen = NIL;		/* their OIDs, to be asked */
static uint32 changes_seen;
static bool complained;			/* in the log, since there was a place for all that wanted one */
static bool directory_full;		/* the same, of the directory */

void
aq_launcher_register(void)
{
	aq_process_register("pgaq launcher", "aq_launcher_main", false);
}

static void
launcher_exit(int code, Datum arg)
{
	aq_jobs_area->launcher_proc = NULL;
}

/* --- databases ---------------------------------------------------------------------- */

static bool
is_connectable(Form_pg_database database)
{
	return database->datallowconn && !aq_database_half_dropped(database);
}

/* Was the database asked, or will it be, as it is now? */
static bool
is_known(List *databases, Oid oid, TransactionId xmin)
{
	ListCell   *lc;

	foreach(lc, databases)
	{
		Known	   *known = lfirst(lc);

		if (known->oid == oid && known->xmin == xmin)
			return true;
	}
	return false;
}

static void
list_database(HeapTuple tuple, List *before)
{
	Form_pg_database database = (Form_pg_database) GETSTRUCT(tuple);
	TransactionId xmin = HeapTupleHeaderGetRawXmin(tuple->t_data);
	Known	   *known;

	/* a template's queues are for its copies */
	if (!is_connectable(database) || database->datistemplate)
		return;
	known = palloc(sizeof(Known));
	*known = (Known) {.oid = database->oid,.xmin = xmin};
	databases = lappend(databases, known);
	if (!is_known(before, database->oid, xmin))
		unseen = list_append_unique_oid(unseen, database->oid);
}

/* Those that are new, or were altered, since the last time are to be asked: they may have queues in use. */
static void
list_databases(void)
{
	MemoryContext context = CurrentMemoryContext;
	List	   *before = databases;
	Relation	rel;
	TableScanDesc scan;
	HeapTuple	tuple;

	if (pg_atomic_exchange_u32(&aq_jobs_area->forget, 0) != 0)
	{
		list_free_deep(before);
		before = NIL;
	}
	databases = NIL;
	StartTransactionCommand();
	rel = table_open(DatabaseRelationId, AccessShareLock);
	scan = table_beginscan_catalog(rel, 0, NULL);
	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(context);

		list_database(tuple, before);
		MemoryContextSwitchTo(old);
	}
	table_endscan(scan);
	table_close(rel, AccessShareLock);
	CommitTransactionCommand();
	MemoryContextSwitchTo(context);
	list_free_deep(before);
}

typedef enum DatabaseState
{
	DATABASE_GONE,
	DATABASE_CLOSED,			/* ALLOW_CONNECTIONS false */
	DATABASE_OPEN
} DatabaseState;

static DatabaseState
database_state(Oid database)
{
	MemoryContext context = CurrentMemoryContext;
	DatabaseState state = DATABASE_GONE;
	HeapTuple	tuple;

	StartTransactionCommand();
	tuple = SearchSysCache1(DATABASEOID, ObjectIdGetDatum(database));
	if (HeapTupleIsValid(tuple))
	{
		state = is_connectable((Form_pg_database) GETSTRUCT(tuple)) ? DATABASE_OPEN : DATABASE_CLOSED;
		ReleaseSysCache(tuple);
	}
	CommitTransactionCommand();
	MemoryContextSwitchTo(context);
	return state;
}

/* --- workers ------------------------------------------------------------------------ */

static void
sooner(int64 *next, int64 at)
{
	if (*next == 0 || at < *next)
		*next = at;
}

/* When, by our clock, a time of the jobs will have come. */
static int64
clock_at(TimestampTz time)
{
	return aq_clock_us() + Max(time - GetCurrentTimestamp(), 0);
}

static void
complain_of_worker(Oid database)
{
	ereport(WARNING,
			aq_error(AQ_ERR_WORKER_MISSING, "could not start the background worker of pgaq for database %u", database),
			errdetail("No background worker slot is free. Until it runs, delays, expirations and prepared transactions have to wait there, and perhaps enqueuers."),
			errhint("Raise max_worker_processes (now %d).", max_worker_processes));
}

static void
complain_of_directory(void)
{
	if (directory_full)
		return;
	directory_full = true;
	ereport(WARNING,
			aq_error(AQ_ERR_CACHE_FULL, "too many databases use pgaq"),
			errdetail("The background worker of a database with queues may be missing."),
			errhint("Raise pgaq.max_databases (now %d) and restart the server.",
					aq_jobs_max_databases));
}

/* Have the next databases asked, a few at a time. */
static void
ask_databases(int probes, int64 *next)
{
	ListCell   *lc;

	foreach(lc, unseen)
	{
		Oid			oid = lfirst_oid(lc);

		if (probes >= MAX_PROBES)
			return;
		if (database_state(oid) == DATABASE_OPEN)
		{
			bool		asked;

			if (!aq_jobs_ask(oid, &asked))
			{
				complain_of_directory();
				sooner(next, aq_clock_us() + LONG_REST);
				return;
			}
			probes += asked;
		}
		unseen = foreach_delete_current(unseen, lc);
	}
	directory_full = false;
}

/* Databases that are being asked, or will be at once. */
static int
count_probes(void)
{
	int64		now = aq_clock_us();
	int			probes = 0;

	for (int i = 0; i < aq_jobs_max_databases; i++)
	{
		AqDatabase *db = &aq_jobs_area->databases[i];

		probes += OidIsValid(db->oid) && !db->used && db->stops == 0 && db->rest_until <= now &&
			(db->ask || db->worker_pid != 0 || db->asked_at != 0);
	}
	return probes;
}

/* Does the entry's database want a worker that it has not?  If not yet, *next becomes the time to look again. */
static bool
wants_worker(AqDatabase *db, int64 *next)
{
	int64		now = aq_clock_us();
	int64		rest_until = db->rest_until;
	Oid			oid = db->oid;

	if (!OidIsValid(oid) || db->stops > 0)
		return false;			/* the command that stops it wakes us */
	if (db->worker_pid != 0 || aq_jobs_is_coming(db, now))
	{
		if (db->worker_pid == 0)
			sooner(next, now + START_PATIENCE);
		return false;
	}
	if (!db->used && !db->ask)
	{
		aq_jobs_forget_database(oid, true); /* it has answered */
		return false;
	}
	if (now < rest_until)
	{
		sooner(next, rest_until);
		return false;
	}
	if (db->left && !db->ask && !aq_jobs_is_due(db))
	{
		uint64		at = pg_atomic_read_u64(&db->next_at);

		if (at != 0)
			sooner(next, clock_at((TimestampTz) at));
		return false;
	}
	return true;
}

/* Those that want one, and can have it; what a dropped database has left is forgotten. */
static List *
list_wanting(int64 *next)
{
	List	   *wanting = NIL;

	for (int i = 0; i < aq_jobs_max_databases; i++)
	{
		AqDatabase *db = &aq_jobs_area->databases[i];
		Oid			oid = db->oid;

		if (!wants_worker(db, next))
			continue;
		switch (database_state(oid))
		{
			case DATABASE_GONE:
				aq_jobs_forget_database(oid, false);
				break;
			case DATABASE_CLOSED:
				/* the command that opens it has it asked again */
				if (aq_jobs_begin_answer(db))
					aq_jobs_forget_database(oid, true);
				else
					sooner(next, aq_clock_us() + LONG_REST);
				break;
			case DATABASE_OPEN:
				aq_room_want(db);
				wanting = lappend(wanting, db);
		}
	}
	list_sort(wanting, aq_room_compare);
	return wanting;
}

/*
 * The first of them has waited longest.  A place that is taken by another
 * database's worker may become free soon; that of a worker of others may not.
 */
static void
await_place(List *wanting, int64 *next)
{
	AqDatabase *first = linitial(wanting);
	int64		patience = first->wanted_since + PATIENCE - aq_clock_us();

	aq_room_make(list_length(wanting), next);
	sooner(next, aq_clock_us() + SHORT_REST);
	if (patience > 0 || complained)
		return;
	complained = true;
	complain_of_worker(first->oid);
}

/* When to look again; 0: when woken. */
static int64
start_missing(void)
{
	int64		next = 0;
	List	   *wanting;
	uint32		changes = pg_atomic_read_u32(&aq_jobs_area->changes);

	if (changes != changes_seen)
	{
		changes_seen = changes;
		list_databases();
	}
	ask_databases(count_probes(), &next);
	wanting = list_wanting(&next);
	while (wanting != NIL && aq_jobs_start_worker(linitial(wanting)))
	{
		wanting = list_delete_first(wanting);
		sooner(&next, aq_clock_us() + START_PATIENCE);
	}
	if (wanting != NIL)
		await_place(wanting, &next);
	else
	{
		aq_room_make(0, &next);
		complained = false;
	}
	list_free(wanting);
	return next;
}

void
aq_launcher_main(Datum arg)
{
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);
	before_shmem_exit(launcher_exit, (Datum) 0);
	aq_session_attach();
	aq_jobs_area->launcher_proc = MyProc;

	MemoryContextSwitchTo(TopMemoryContext);
	changes_seen = pg_atomic_read_u32(&aq_jobs_area->changes);
	list_databases();
	while (!ShutdownRequestPending)
	{
		int64		next = start_missing();
		int64		sleep_us = -1;

		if (next != 0)
			sleep_us = Max(next - aq_clock_us(), 0);
		aq_event_sleep(AQ_EVENT_LAUNCHER_IDLE, list_length(unseen), 0, 0, sleep_us);
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}
	}
	/* the postmaster starts us again, unless it ends itself */
	proc_exit(1);
}
