/*-------------------------------------------------------------------------
 *
 * launcher.c
 *	  The background worker that starts the others, so that every database with
 *	  queues has its worker from server start on.
 *
 * Delays, expirations and transactions in doubt must be handled even if no
 * session uses the queues, so workers are not started on first use.  Only a
 * process in a database can see whether it has queues, so the launcher starts
 * a worker in each database that allows connections, a few at a time; a worker
 * that finds no queues ends again.  Afterwards the launcher sleeps until a
 * worker has ended or is requested, and starts one if necessary.  If there are
 * fewer free worker slots than databases that need a worker, workers without
 * work leave, and the others take turns: see room.c.
 *
 * It is not connected to a database, so it does not block commands.  It starts
 * when recovery has finished, so on a standby after the promotion.
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
#include "commands/dbcommands.h"
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

/* how many databases are checked for queues at the same time */
#define MAX_PROBES 2

/*
 * pause before the next try if a worker cannot be started, in microseconds: no
 * free worker slot; connections not allowed
 */
#define SHORT_PAUSE ((int64) 1000000)
#define LONG_PAUSE ((int64) 10000000)

/* how long a database waits for a worker slot before this is logged */
#define PATIENCE ((int64) 5000000)

PGDLLEXPORT void aq_launcher_main(Datum arg);

/*
 * A database as it was listed.  A change of its row's xmin shows that it was
 * altered.
 */
typedef struct Known
{
	Oid			oid;
	TransactionId xmin;
} Known;

static List *databases = NIL;	/* list of Known */
static List *unseen = NIL;		/* list of OIDs of databases to check for queues */
static uint32 changes_seen;
static bool complained;			/* logged since the last time that all databases had a worker slot */
static bool directory_full;		/* the same for a full directory */

void
aq_launcher_register(void)
{
	aq_process_register("pgaq launcher", "aq_launcher_main", false);
}

static void
launcher_exit(int code, Datum arg)
{
	aq_jobs_area->launcher_ended_at = aq_clock_us();
	pg_write_barrier();			/* see await.c */
	aq_jobs_area->launcher_proc = NULL;
}

/* --- databases ---------------------------------------------------------------------- */

static bool
is_connectable(Form_pg_database database)
{
	return database->datallowconn && !aq_database_half_dropped(database);
}

/* Is the database listed with this xmin? */
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

	/* queues in a template serve only its copies */
	if (!is_connectable(database) || database->datistemplate)
		return;
	known = palloc(sizeof(Known));
	*known = (Known) {.oid = database->oid, .xmin = xmin};
	databases = lappend(databases, known);
	if (!is_known(before, database->oid, xmin))
		unseen = list_append_unique_oid(unseen, database->oid);
}

/* Lists the databases.  New and altered ones will be checked for queues. */
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

/* Converts a time of the jobs to a time of aq_clock_us(). */
static int64
clock_at(TimestampTz time)
{
	return aq_clock_us() + Max(time - GetCurrentTimestamp(), 0);
}

/* For the log: the name in quotes, or the OID where the database is gone. */
static char *
database_label(Oid database)
{
	MemoryContext context = CurrentMemoryContext;
	char	   *name;
	char	   *label;

	StartTransactionCommand();
	name = get_database_name(database);
	label = MemoryContextStrdup(context, name != NULL ? psprintf("\"%s\"", name) : psprintf("with OID %u", database));
	CommitTransactionCommand();
	MemoryContextSwitchTo(context);
	return label;
}

static void
complain_of_worker(Oid database)
{
	char	   *label = database_label(database);
	char	   *hint = aq_room_hint();

	ereport(WARNING,
			aq_error(AQ_ERR_WORKER_MISSING, "could not start the background worker of pgaq for database %s", label),
			errdetail("%s Until the worker starts, delays, expirations and prepared transactions in the database are not processed, and enqueuers may have to wait.",
					  aq_room_no_slot()),
			errhint("%s", hint));
	pfree(hint);
	pfree(label);
}

static void
complain_of_directory(void)
{
	if (directory_full)
		return;
	directory_full = true;
	ereport(WARNING,
			aq_error_limit("too many databases use pgaq", "pgaq.max_databases"),
			errdetail("The background worker of a database with queues may be missing."));
}

/* Starts the check of the next databases for queues, a few at a time. */
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
				aq_clock_sooner(next, aq_clock_us() + LONG_PAUSE);
				return;
			}
			probes += asked;
		}
		unseen = foreach_delete_current(unseen, lc);
	}
	directory_full = false;
}

/* The number of databases that are being checked for queues. */
static int
count_probes(void)
{
	int64		now = aq_clock_us();
	int			probes = 0;

	for (int i = 0; i < aq_jobs_max_databases; i++)
	{
		AqDatabase *db = &aq_jobs_area->databases[i];

		if (OidIsValid(db->oid) && !db->used && db->stops == 0 && db->backoff_until <= now &&
			(db->ask || db->worker_pid != 0 || db->asked_at != 0))
			probes++;
	}
	return probes;
}

/*
 * Does the entry's database need a worker to be started now?  If only later,
 * *next is set to that time.
 */
static bool
wants_worker(AqDatabase *db, int64 *next)
{
	int64		now = aq_clock_us();
	int64		backoff_until = db->backoff_until;
	Oid			oid = db->oid;

	if (!OidIsValid(oid) || db->stops > 0)
		return false;			/* the command that has stopped it will wake us */
	if (db->worker_pid != 0 || aq_jobs_is_coming(db, now))
	{
		if (db->worker_pid == 0)
			aq_clock_sooner(next, now + START_PATIENCE);
		return false;
	}
	if (!db->used && !db->ask)
	{
		aq_jobs_forget_database(oid, true); /* it has no queues */
		return false;
	}
	if (now < backoff_until)
	{
		aq_clock_sooner(next, backoff_until);
		return false;
	}
	if (db->left && !db->ask && !aq_jobs_is_due(db))
	{
		uint64		at = pg_atomic_read_u64(&db->next_at);

		if (at != 0)
			aq_clock_sooner(next, Min(clock_at((TimestampTz) at), now + AQ_EVENT_CLOCK));
		return false;
	}
	return true;
}

/*
 * Lists the databases that need a worker and allow connections; removes the
 * entries of dropped databases.
 */
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
				/*
				 * it will be checked again when it is altered to allow
				 * connections
				 */
				if (aq_jobs_begin_answer(db))
					aq_jobs_forget_database(oid, true);
				else
					aq_clock_sooner(next, aq_clock_us() + LONG_PAUSE);
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
 * Called when no worker slot is free.  Asks workers of other databases to
 * leave.  Slots used by other extensions may stay occupied, so a long wait of
 * the first database, which has waited longest, is logged.
 */
static void
await_place(List *wanting, int64 *next)
{
	AqDatabase *first = wanting != NIL ? linitial(wanting) : NULL;

	aq_room_make(list_length(wanting), next);
	aq_clock_sooner(next, aq_clock_us() + SHORT_PAUSE);
	if (first == NULL || complained || aq_clock_us() < first->wanted_since + PATIENCE)
		return;
	complained = true;
	complain_of_worker(first->oid);
}

/* Starts missing workers; returns when to check again, or 0: when woken. */
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
	while (wanting != NIL && !aq_room_guest_is_first(linitial(wanting)) && aq_jobs_start_worker(linitial(wanting)))
	{
		wanting = list_delete_first(wanting);
		aq_clock_sooner(&next, aq_clock_us() + START_PATIENCE);
	}
	if (wanting == NIL)
		complained = false;
	if (wanting != NIL || aq_room_has_guest())
		await_place(wanting, &next);
	else
		aq_room_make(0, &next);
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
	aq_session_attach();
	before_shmem_exit(launcher_exit, (Datum) 0);
	aq_jobs_area->launcher_proc = MyProc;
	if (aq_jobs_area->since == 0)
		aq_jobs_area->since = aq_clock_us();

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
	/* the postmaster restarts us, unless the server shuts down */
	proc_exit(1);
}
