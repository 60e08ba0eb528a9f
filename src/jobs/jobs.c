/*-------------------------------------------------------------------------
 *
 * jobs.c
 *	  The directory of databases and their workers; starting and posting them.
 *
 * Shared memory: one entry per database, protected by the latch "database
 * directory".  An entry exists until its database or its extension is dropped;
 * a session keeps a pointer to its database's entry, and checks whether it
 * still has that database.  The flags that a post sets are atomic variables:
 * posting takes the latch only if the entry was removed, and never raises an
 * error.
 *
 * Only the launcher registers workers; a session that needs one wakes the
 * launcher.  A worker claims its database's entry before it connects, so there
 * is at most one, and commands that require that no process uses the database
 * see it in time.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "jobs/jobs_private.h"

#include <signal.h>

#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "storage/proc.h"
#include "utils/guc.h"
#include "utils/timestamp.h"

int			aq_jobs_max_databases = 64;
JobsArea   *aq_jobs_area;

static AqDatabase *my_database;

Size
aq_jobs_shmem_size(void)
{
	return add_size(offsetof(JobsArea, databases),
					mul_size(aq_jobs_max_databases, sizeof(AqDatabase)));
}

void
aq_jobs_shmem_init(void *ptr, bool found)
{
	aq_jobs_area = ptr;
	if (found)
		return;
	memset(ptr, 0, aq_jobs_shmem_size());
	aq_latch_init(&aq_jobs_area->latch, AQ_LATCH_DATABASES, 0);
	aq_jobs_area->launcher_ended_at = aq_clock_us();
	pg_atomic_init_u64(&aq_jobs_area->guest_since, 0);
	pg_atomic_init_u64(&aq_jobs_area->guest_asked, 0);
	pg_atomic_init_u32(&aq_jobs_area->changes, 0);
	pg_atomic_init_u32(&aq_jobs_area->forget, 0);
	for (int i = 0; i < LOG_BUCKETS; i++)
		pg_atomic_init_u64(&aq_jobs_area->logged[i], 0);
	for (int i = 0; i < aq_jobs_max_databases; i++)
	{
		AqDatabase *db = &aq_jobs_area->databases[i];

		aq_cond_init(&db->ended);
		pg_atomic_init_u32(&db->restored, 0);
		pg_atomic_init_u32(&db->work, 0);
		pg_atomic_init_u32(&db->check, 0);
		pg_atomic_init_u64(&db->next_at, 0);
	}
}

void
aq_jobs_define_parameters(void)
{
	DefineCustomIntVariable("pgaq.max_databases",
							"Number of databases of the server that can use pgaq.",
							"Their background workers take turns where max_worker_processes is too small for all: see aq.workers.",
							&aq_jobs_max_databases,
							64, 1, 10000,
							PGC_POSTMASTER, 0,
							NULL, NULL, NULL);
}

/*
 * Wakes the launcher, so that it checks the workers.  Never raises an error.
 */
void
aq_jobs_wake_launcher(void)
{
	PGPROC	   *proc = aq_jobs_area->launcher_proc;

	if (proc != NULL)
		SetLatch(&proc->procLatch);
}

/* The database's entry, or NULL.  The caller holds the latch. */
static AqDatabase *
find_database(Oid database)
{
	for (int i = 0; i < aq_jobs_max_databases; i++)
		if (aq_jobs_area->databases[i].oid == database)
			return &aq_jobs_area->databases[i];
	return NULL;
}

/*
 * The same, but creates an entry if necessary; NULL if the directory is full.
 */
static AqDatabase *
make_database(Oid database)
{
	AqDatabase *db = find_database(database);

	if (db != NULL)
		return db;
	db = find_database(InvalidOid);
	if (db != NULL)
	{
		db->oid = database;
		db->used = db->ask = db->left = db->leave = false;
		db->asked_at = db->wanted_since = db->came_at = db->ended_at = db->backoff_until = 0;
		db->stops = db->worker_pid = db->failures = 0;
		db->since = GetCurrentTimestamp();
		db->error[0] = '\0';
		pg_atomic_write_u32(&db->work, 1);
		pg_atomic_write_u32(&db->check, 0);
		pg_atomic_write_u32(&db->restored, 0);
		pg_atomic_write_u64(&db->next_at, 0);
		memset(db->shares, 0, sizeof(db->shares));
	}
	return db;
}

/*
 * Requests a worker that finds out whether the database has queues, unless
 * that is known: then sets *asked to false.  Returns false if the directory is
 * full.
 */
bool
aq_jobs_ask(Oid database, bool *asked)
{
	AqDatabase *db;

	aq_latch_get(&aq_jobs_area->latch, AQ_EXCLUSIVE, AQ_LOC_JOB_POST);
	db = make_database(database);
	*asked = db != NULL && !db->used;
	if (*asked)
		db->ask = true;
	aq_latch_free(&aq_jobs_area->latch);
	return db != NULL;
}

/*
 * For a worker that has connected: must it find out whether there are queues?
 * A later aq_jobs_ask() is a new request.
 */
bool
aq_jobs_begin_answer(AqDatabase *db)
{
	bool		ask;

	aq_latch_get(&aq_jobs_area->latch, AQ_EXCLUSIVE, AQ_LOC_JOB_POST);
	ask = !db->used;
	db->ask = false;
	aq_latch_free(&aq_jobs_area->latch);
	return ask;
}

/* The database uses pgaq, so from now on it has a worker. */
void
aq_jobs_used(AqDatabase *db)
{
	aq_latch_get(&aq_jobs_area->latch, AQ_EXCLUSIVE, AQ_LOC_JOB_POST);
	db->used = true;
	db->failures = 0;
	db->since = GetCurrentTimestamp();
	aq_latch_free(&aq_jobs_area->latch);
}

/*
 * The extension was dropped: the launcher frees the entry, unless a session
 * uses pgaq in the database again.
 */
void
aq_jobs_unused(AqDatabase *db)
{
	aq_latch_get(&aq_jobs_area->latch, AQ_EXCLUSIVE, AQ_LOC_JOB_POST);
	db->used = false;
	aq_latch_free(&aq_jobs_area->latch);
}

/* The entry of this session's database, which is in use from now on. */
AqDatabase *
aq_jobs_own_database(void)
{
	AqDatabase *db;

	if (my_database != NULL && my_database->oid == MyDatabaseId && my_database->used)
		return my_database;

	aq_latch_get(&aq_jobs_area->latch, AQ_EXCLUSIVE, AQ_LOC_JOB_POST);
	db = make_database(MyDatabaseId);
	if (db != NULL)
		db->used = true;		/* so that the launcher does not free it */
	aq_latch_free(&aq_jobs_area->latch);
	if (db == NULL)
		ereport(ERROR,
				aq_error_limit("too many databases use pgaq", "pgaq.max_databases"));
	my_database = db;
	return db;
}

/* Is the entry no longer needed?  The caller holds the latch. */
static bool
is_unused(const AqDatabase *db)
{
	return !db->used && !db->ask && db->stops == 0 && db->worker_pid == 0;
}

void
aq_jobs_forget_database(Oid database, bool unused_only)
{
	AqDatabase *db;

	aq_latch_get(&aq_jobs_area->latch, AQ_EXCLUSIVE, AQ_LOC_JOB_POST);
	db = find_database(database);
	if (db != NULL && (!unused_only || is_unused(db)))
		db->oid = InvalidOid;
	aq_latch_free(&aq_jobs_area->latch);
}

static void stop_over(void *db, int64 database);

/*
 * Prevents workers from starting in the database; the caller ends a running
 * one.  The stop is a claim until aq_jobs_stop_over().  Returns NULL if the
 * directory is full.
 */
AqDatabase *
aq_jobs_stop(Oid database)
{
	AqDatabase *db;

	aq_claim_reserve(1);
	aq_latch_get(&aq_jobs_area->latch, AQ_EXCLUSIVE, AQ_LOC_JOB_POST);
	db = make_database(database);
	if (db != NULL)
	{
		if (db->stops++ == 0)
			db->since = GetCurrentTimestamp();
		aq_claim_enter(stop_over, db, database);
	}
	aq_latch_free(&aq_jobs_area->latch);
	return db;
}

void
aq_jobs_stop_over(AqDatabase *db, Oid database)
{
	aq_claim_end(stop_over, db);
	stop_over(db, database);
}

/*
 * Release of a claim: workers may start in the database again, unless its
 * entry was removed meanwhile.
 */
static void
stop_over(void *unused, int64 database)
{
	AqDatabase *db;

	aq_latch_get(&aq_jobs_area->latch, AQ_EXCLUSIVE, AQ_LOC_JOB_POST);
	db = find_database((Oid) database);
	if (db != NULL)
	{
		if (--db->stops == 0)
			db->since = GetCurrentTimestamp();
		if (is_unused(db))
			db->oid = InvalidOid;
	}
	aq_latch_free(&aq_jobs_area->latch);
	aq_jobs_wake_launcher();
}

/*
 * For a worker that starts: makes it the worker of the entry, which it
 * returns, or NULL if the worker is no longer needed.
 */
AqDatabase *
aq_jobs_claim(Oid database)
{
	AqDatabase *db;

	aq_latch_get(&aq_jobs_area->latch, AQ_EXCLUSIVE, AQ_LOC_JOB_POST);
	db = find_database(database);
	if (db != NULL && (db->worker_pid != 0 || db->stops > 0))
	{
		db->asked_at = 0;		/* so that another worker is registered as soon as the command has ended */
		db = NULL;
	}
	if (db != NULL)
	{
		db->worker_pid = MyProcPid;
		db->came_at = aq_clock_us();
		db->since = GetCurrentTimestamp();
		db->left = db->leave = false;
		db->wanted_since = 0;
	}
	aq_latch_free(&aq_jobs_area->latch);
	if (db == NULL)
		aq_jobs_wake_launcher();
	my_database = db;
	return db;
}

/*
 * pause before a new worker after one has failed: first and longest, in
 * microseconds
 */
#define FIRST_BACKOFF ((int64) 1000000)
#define LONGEST_BACKOFF ((int64) 64000000)

/*
 * Records the end of a worker; the launcher decides whether to start another
 * one.
 */
void
aq_jobs_worker_ended(AqDatabase *db, AqWorkerEnd end)
{
	aq_latch_get(&aq_jobs_area->latch, AQ_EXCLUSIVE, AQ_LOC_JOB_POST);
	db->worker_proc = NULL;
	db->left = end == AQ_WORKER_LEFT;
	if (end == AQ_WORKER_FAILED && !db->used)
		db->ask = true;			/* it is still not known whether there are queues */
	if ((end == AQ_WORKER_FAILED || end == AQ_WORKER_BROKEN) && db->stops == 0)
	{
		if (end == AQ_WORKER_BROKEN)
			db->failures = 0;
		db->backoff_until = aq_clock_us() + Min(FIRST_BACKOFF << Min(db->failures, 10), LONGEST_BACKOFF);
		db->failures++;
	}
	db->asked_at = 0;
	db->worker_pid = 0;
	db->ended_at = aq_clock_us();
	db->since = GetCurrentTimestamp();
	aq_latch_free(&aq_jobs_area->latch);
}

/* Records an error of this worker, for aq.workers. */
void
aq_jobs_note_error(const char *message)
{
	AqDatabase *db = my_database;

	if (!aq_job_in_worker())
		return;
	aq_latch_get(&aq_jobs_area->latch, AQ_EXCLUSIVE, AQ_LOC_JOB_POST);
	aq_clip_copy(db->error, message, ERROR_LENGTH);
	db->error_encoding = GetDatabaseEncoding();
	db->error_time = GetCurrentTimestamp();
	aq_latch_free(&aq_jobs_area->latch);
}

static AqPlaceWanted place_wanted[MAX_CALLBACKS];
static int	nplace_wanted;

void
aq_jobs_on_place_wanted(AqPlaceWanted callback)
{
	Assert(nplace_wanted < MAX_CALLBACKS);
	place_wanted[nplace_wanted++] = callback;
}

static bool
register_worker(Oid database)
{
	BackgroundWorker worker;

	/* not restarted by the postmaster, but by the launcher */
	aq_process_init(&worker, "aq_worker_main", "pgaq worker");
	snprintf(worker.bgw_name, BGW_MAXLEN, "pgaq worker of database %u", database);
	worker.bgw_main_arg = ObjectIdGetDatum(database);
	worker.bgw_notify_pid = MyProcPid;	/* the postmaster notifies us when its worker slot is free again */
	return RegisterDynamicBackgroundWorker(&worker, NULL);
}

/*
 * Was a worker registered that may still start?  The postmaster may fail to
 * start it, so this is true only for a limited time.
 */
bool
aq_jobs_is_coming(const AqDatabase *db, int64 now)
{
	return db->asked_at != 0 && now - db->asked_at <= START_PATIENCE;
}

/* Is there work to do for a worker now? */
bool
aq_jobs_is_due(AqDatabase *db)
{
	uint64		next = pg_atomic_read_u64(&db->next_at);

	return pg_atomic_read_u32(&db->work) != 0 || (next != 0 && (TimestampTz) next <= GetCurrentTimestamp());
}

/*
 * For the launcher: registers a worker.  Returns false if no worker slot is
 * free.
 */
bool
aq_jobs_start_worker(AqDatabase *db)
{
	int64		now = aq_clock_us();
	Oid			database;
	bool		start;

	aq_latch_get(&aq_jobs_area->latch, AQ_EXCLUSIVE, AQ_LOC_JOB_POST);
	database = db->oid;
	start = OidIsValid(database) && db->worker_pid == 0 && db->stops == 0 &&
		!aq_jobs_is_coming(db, now);
	if (start)
		db->asked_at = now;
	aq_latch_free(&aq_jobs_area->latch);

	if (start && !register_worker(database))
	{
		db->asked_at = 0;
		for (int i = 0; i < nplace_wanted; i++)
			place_wanted[i]();
		return false;
	}
	return true;
}

void
aq_jobs_ensure_worker(void)
{
	AqDatabase *db = aq_jobs_own_database();

	/* a worker that has left is started again when work is posted */
	if (db->worker_pid == 0 && !db->left)
		aq_jobs_wake_launcher();
}

int
aq_jobs_worker_pid(void)
{
	return aq_jobs_own_database()->worker_pid;
}

/*
 * The entry to post; NULL: the session has used no queue, or the directory is
 * full.  If the extension was dropped, the worker has ended and its entry was
 * freed.  As the session may have created the extension again, this makes a
 * new entry, and the next worker checks whether the extension exists.
 */
static AqDatabase *
entry_to_post(void)
{
	AqDatabase *db = my_database;

	if (db == NULL || aq_job_in_worker() || (db->oid == MyDatabaseId && db->used))
		return db;
	aq_latch_get(&aq_jobs_area->latch, AQ_EXCLUSIVE, AQ_LOC_JOB_POST);
	db = make_database(MyDatabaseId);
	if (db != NULL && !db->used)
	{
		db->used = true;
		pg_atomic_write_u32(&db->check, 1);
	}
	aq_latch_free(&aq_jobs_area->latch);
	if (db != NULL)
	{
		my_database = db;
		aq_jobs_wake_launcher();
	}
	return db;
}

/* Wakes the worker, or the launcher to start one. */
static void
wake_worker(AqDatabase *db)
{
	PGPROC	   *proc = db->worker_proc;

	if (proc == NULL)
		aq_jobs_wake_launcher();
	else if (proc != MyProc)
		SetLatch(&proc->procLatch);
}

/* A signal handler can call it. */
void
aq_jobs_post_to(AqDatabase *db)
{
	/*
	 * the exchange is a full barrier: the worker clears the flag before it
	 * looks for work
	 */
	if (db != NULL && pg_atomic_exchange_u32(&db->work, 1) == 0)
		wake_worker(db);
}

void
aq_jobs_post(void)
{
	aq_jobs_post_to(entry_to_post());
}

/*
 * Makes the time at which the worker runs next earlier; returns false if it
 * was not later.
 */
bool
aq_jobs_lower_time(AqDatabase *db, TimestampTz when)
{
	uint64		old = pg_atomic_read_u64(&db->next_at);

	while (old == 0 || when < (TimestampTz) old)
		if (pg_atomic_compare_exchange_u64(&db->next_at, &old, (uint64) when))
			return true;
	return false;
}

void
aq_jobs_post_at(TimestampTz when)
{
	AqDatabase *db = entry_to_post();

	if (db == NULL)
		return;
	/*
	 * no need to wake ourselves: the worker checks the time before it sleeps
	 */
	if (aq_jobs_lower_time(db, when))
		wake_worker(db);
}

void
aq_jobs_post_away(Oid database, TimestampTz when)
{
	AqDatabase *db;

	aq_latch_get(&aq_jobs_area->latch, AQ_SHARED, AQ_LOC_JOB_POST);
	db = find_database(database);
	if (db != NULL && db->left && aq_jobs_lower_time(db, when))
		aq_jobs_wake_launcher();
	aq_latch_free(&aq_jobs_area->latch);
}

/*
 * Called after the extension was dropped, perhaps by a session that never used
 * it.  Never raises an error in a session that has attached.
 */
void
aq_jobs_post_check(void)
{
	AqDatabase *db;

	aq_latch_get(&aq_jobs_area->latch, AQ_EXCLUSIVE, AQ_LOC_JOB_POST);
	db = find_database(MyDatabaseId);
	if (db != NULL)
	{
		pg_atomic_write_u32(&db->check, 1);
		pg_atomic_exchange_u32(&db->work, 1);
		wake_worker(db);
	}
	aq_latch_free(&aq_jobs_area->latch);
}

/*
 * Called after databases were created or altered: the launcher has new ones
 * checked for queues.  Never raises an error.
 */
void
aq_jobs_post_databases(void)
{
	pg_atomic_fetch_add_u32(&aq_jobs_area->changes, 1);
	aq_jobs_wake_launcher();
}

/*
 * Called after rows of queues were restored from a dump.  Never raises an
 * error in a session that has attached.
 */
void
aq_jobs_post_restored(void)
{
	AqDatabase *db;

	aq_latch_get(&aq_jobs_area->latch, AQ_EXCLUSIVE, AQ_LOC_JOB_POST);
	db = make_database(MyDatabaseId);
	if (db != NULL)
	{
		db->ask = !db->used;
		pg_atomic_write_u32(&db->restored, 1);
		pg_atomic_exchange_u32(&db->work, 1);
		wake_worker(db);
	}
	aq_latch_free(&aq_jobs_area->latch);
	if (db == NULL)
	{
		/*
		 * the directory is full: the launcher will check all databases again
		 */
		pg_atomic_write_u32(&aq_jobs_area->forget, 1);
		aq_jobs_post_databases();
	}
}

bool
aq_jobs_are_restored(void)
{
	return my_database != NULL && pg_atomic_read_u32(&my_database->restored) != 0;
}

bool
aq_jobs_take_restored(void)
{
	return my_database != NULL && pg_atomic_exchange_u32(&my_database->restored, 0) != 0;
}

static AqDatabaseWanted database_wanted[MAX_CALLBACKS];
static int	ndatabase_wanted;

void
aq_jobs_on_database_wanted(AqDatabaseWanted callback)
{
	Assert(ndatabase_wanted < MAX_CALLBACKS);
	database_wanted[ndatabase_wanted++] = callback;
}

void
aq_jobs_database_wanted(Oid database)
{
	for (int i = 0; i < ndatabase_wanted; i++)
		database_wanted[i](database);
}

bool
aq_jobs_is_stopped(Oid database)
{
	AqDatabase *db;
	bool		stopped;

	aq_latch_get(&aq_jobs_area->latch, AQ_SHARED, AQ_LOC_JOB_POST);
	db = find_database(database);
	stopped = db != NULL && db->stops > 0;
	aq_latch_free(&aq_jobs_area->latch);
	return stopped;
}

static AqDatabaseDropped dropped[MAX_CALLBACKS];
static int	ndropped;

void
aq_jobs_on_database_dropped(AqDatabaseDropped callback)
{
	Assert(ndropped < MAX_CALLBACKS);
	dropped[ndropped++] = callback;
}

/*
 * Called after DROP DATABASE or DROP EXTENSION has dropped a database's
 * queues.
 */
void
aq_jobs_database_gone(Oid database)
{
	aq_jobs_database_wanted(database);
	for (int i = 0; i < ndropped; i++)
		dropped[i](database);
}

/* --- aq.check() --------------------------------------------------------------------------- */

void
aq_jobs_check(AqFindings *findings)
{
	int			sessions = aq_session_count_in_transactions() - 1;

	for (int i = 0; i < aq_jobs_max_databases; i++)
	{
		AqDatabase *db = &aq_jobs_area->databases[i];
		const char *place = psprintf("database %u", db->oid);
		int			pid = db->worker_pid;

		if (!OidIsValid(db->oid))
			continue;
		/*
		 * each stop belongs to a command, so there cannot be more than
		 * sessions
		 */
		if (db->stops < 0 || db->stops > sessions)
			aq_finding_add(findings, place, "commands that stop its worker", db->stops, sessions, NULL);
		if (pid != 0 && kill(pid, 0) != 0 && errno == ESRCH)
			aq_finding_add(findings, place, "its worker does not exist", pid, AQ_NO_NUMBER, NULL);
	}
}

#ifdef AQ_TEST_POINTS
/*
 * For tests of aq.check(): changes the number of stops by the number of
 * sessions; by is 1 to add it, -1 to subtract it again.
 */
PG_FUNCTION_INFO_V1(aq_jobs_damage_stops);
Datum
aq_jobs_damage_stops(PG_FUNCTION_ARGS)
{
	aq_jobs_own_database()->stops += PG_GETARG_INT32(0) * aq_session_slots();
	PG_RETURN_VOID();
}
#endif

int64
aq_jobs_since(void)
{
	return aq_jobs_area->since;
}
