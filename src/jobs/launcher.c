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
 * again.  Afterwards the launcher sleeps until a worker has ended, and starts
 * another one where there shall be one.
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

/* how many databases are asked at a time whether they have queues */
#define MAX_PROBES 2

/* until the next try where a worker cannot be started, microseconds: at first, later */
#define SHORT_REST ((int64) 1000000)
#define LONG_REST ((int64) 10000000)

PGDLLEXPORT void aq_launcher_main(Datum arg);

static List *unseen = NIL;		/* databases to be asked */
static int64 failing_since;		/* 0: all went well */
static bool complained;			/* of that, in the log */

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

/* Those that may have queues in use.  A template's are for its copies. */
static List *
list_databases(void)
{
	MemoryContext context = CurrentMemoryContext;
	Relation	rel;
	TableScanDesc scan;
	HeapTuple	tuple;
	List	   *databases = NIL;

	StartTransactionCommand();
	rel = table_open(DatabaseRelationId, AccessShareLock);
	scan = table_beginscan_catalog(rel, 0, NULL);
	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		Form_pg_database database = (Form_pg_database) GETSTRUCT(tuple);
		MemoryContext old = MemoryContextSwitchTo(context);

		if (is_connectable(database) && !database->datistemplate)
			databases = lappend_oid(databases, database->oid);
		MemoryContextSwitchTo(old);
	}
	table_endscan(scan);
	table_close(rel, AccessShareLock);
	CommitTransactionCommand();
	MemoryContextSwitchTo(context);
	return databases;
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

/*
 * A failure that lasts is logged, once.  The place of a worker that has just
 * ended is free a moment later.
 */
static bool
may_complain(void)
{
	bool		may;

	if (failing_since == 0)
		failing_since = aq_clock_us();
	may = !complained && aq_clock_us() - failing_since >= SHORT_REST;
	complained |= may;
	return may;
}

static void
complain_of_worker(Oid database)
{
	if (may_complain())
		ereport(WARNING,
				aq_error(AQ_ERR_WORKER_MISSING, "could not start the background worker of pgaq for database %u", database),
				errdetail("Until it runs, delays, expirations and prepared transactions wait in this database."),
				errhint("Raise max_worker_processes (now %d): pgaq needs one for each database that uses it, plus two.",
						max_worker_processes));
}

static void
complain_of_directory(void)
{
	if (may_complain())
		ereport(WARNING,
				aq_error(AQ_ERR_CACHE_FULL, "too many databases use pgaq"),
				errdetail("The background worker of a database with queues may be missing."),
				errhint("Raise pgaq.max_databases (now %d) and restart the server.",
						aq_jobs_max_databases));
}

static void
sooner(int64 *next, int64 at)
{
	if (*next == 0 || at < *next)
		*next = at;
}

/*
 * See to the databases in the directory.  Counts those that are being asked;
 * *next becomes the time to look again.  False when there is no place for a
 * worker.
 */
static bool
look_after_workers(int *probes, int64 *next)
{
	int64		now = aq_clock_us();

	for (int i = 0; i < aq_jobs_max_databases; i++)
	{
		AqDatabase *db = &aq_jobs_area->databases[i];
		Oid			oid = db->oid;
		int64		rest_until = db->rest_until;

		if (!OidIsValid(oid) || db->stops > 0)
			continue;
		if (db->worker_pid != 0 || aq_jobs_is_coming(db, now))
		{
			*probes += !db->used;
			if (db->worker_pid == 0)
				sooner(next, now + START_PATIENCE);
		}
		else if (!db->used)
			aq_jobs_forget_database(oid, true);	/* it has been asked */
		else if (now < rest_until)
			sooner(next, rest_until);
		else
			switch (database_state(oid))
			{
				case DATABASE_GONE:
					aq_jobs_forget_database(oid, false);
					break;
				case DATABASE_CLOSED:
					sooner(next, now + LONG_REST);
					break;
				case DATABASE_OPEN:
					if (!aq_jobs_start_worker(db))
					{
						complain_of_worker(oid);
						return false;
					}
					sooner(next, now + START_PATIENCE);
			}
	}
	return true;
}

/* Ask the next databases; false when there is no place for a worker. */
static bool
ask_databases(int probes, int64 *next)
{
	ListCell   *lc;

	foreach(lc, unseen)
	{
		Oid			oid = lfirst_oid(lc);
		AqDatabase *db;

		if (probes >= MAX_PROBES)
			break;
		if (database_state(oid) == DATABASE_OPEN)
		{
			db = aq_jobs_database(oid);
			if (db == NULL)
			{
				complain_of_directory();
				return false;
			}
			if (db->stops > 0)
				continue;		/* the command that stops it wakes us */
			if (!aq_jobs_start_worker(db))
			{
				aq_jobs_forget_database(oid, true);
				if (probes > 0)
					break;		/* the one that is being asked makes room */
				complain_of_worker(oid);
				return false;
			}
			probes++;
			sooner(next, aq_clock_us() + START_PATIENCE);
		}
		unseen = foreach_delete_current(unseen, lc);
	}
	return true;
}

/* When to look again; 0: when woken. */
static int64
start_missing(void)
{
	int64		next = 0;
	int			probes = 0;

	if (look_after_workers(&probes, &next) && ask_databases(probes, &next))
	{
		failing_since = 0;
		complained = false;
	}
	else
		sooner(&next, aq_clock_us() + (complained ? LONG_REST : SHORT_REST));
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
	unseen = list_databases();
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
