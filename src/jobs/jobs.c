/*-------------------------------------------------------------------------
 *
 * jobs.c
 *	  The directory of databases and their workers; starting and posting them.
 *
 * Shared memory: one entry per database, under the latch "database
 * directory".  An entry, once made, stays at its place until its database is
 * dropped, so a session may keep a pointer to its own database's entry.  The
 * flags a post sets are atomics: posting takes no latch and cannot raise.
 *
 * A worker that dies by SIGKILL takes the server with it; one that ends by
 * an error is restarted by the postmaster; one that was asked to end (its
 * database is being dropped, renamed or copied) is started again by the next
 * session that needs it.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "jobs/jobs_private.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "postmaster/bgworker.h"
#include "storage/proc.h"
#include "utils/guc.h"
#include "utils/memutils.h"

static int	max_databases = 64;

static JobsArea *area;
static AqDatabase *my_database;

static Size
shmem_size(void)
{
	return add_size(offsetof(JobsArea, databases),
					mul_size(max_databases, sizeof(AqDatabase)));
}

static void
shmem_init(void *ptr, bool found)
{
	area = ptr;
	if (found)
		return;
	memset(ptr, 0, shmem_size());
	aq_latch_init(&area->latch, AQ_LATCH_DATABASES, 0);
	for (int i = 0; i < max_databases; i++)
	{
		AqDatabase *db = &area->databases[i];

		aq_cond_init(&db->ended);
		pg_atomic_init_u32(&db->work, 0);
		pg_atomic_init_u64(&db->next_at, 0);
	}
}

static void
define_parameters(void)
{
	DefineCustomIntVariable("pgaq.max_databases",
							"Number of databases of the server that can use pgaq.",
							"Each has a background worker of its own: see max_worker_processes.",
							&max_databases,
							64, 1, 10000,
							PGC_POSTMASTER, 0,
							NULL, NULL, NULL);
	aq_jobs_install_utility_hook();
}

const AqPart aq_jobs_part = {
	.name = "jobs",
	.define_parameters = define_parameters,
	.shmem_size = shmem_size,
	.shmem_init = shmem_init,
};

/* The database's entry, or NULL. The latch is held. */
static AqDatabase *
find_database(Oid database)
{
	for (int i = 0; i < max_databases; i++)
		if (area->databases[i].oid == database)
			return &area->databases[i];
	return NULL;
}

AqDatabase *
aq_jobs_database(Oid database)
{
	AqDatabase *db;

	aq_latch_get(&area->latch, AQ_SHARED, AQ_LOC_JOB_POST);
	db = find_database(database);
	aq_latch_free(&area->latch);
	return db;
}

static AqDatabase *
own_database(void)
{
	AqDatabase *db;

	if (my_database != NULL && my_database->oid == MyDatabaseId)
		return my_database;

	aq_latch_get(&area->latch, AQ_EXCLUSIVE, AQ_LOC_JOB_POST);
	db = find_database(MyDatabaseId);
	if (db == NULL)
	{
		db = find_database(InvalidOid);
		if (db != NULL)
		{
			db->oid = MyDatabaseId;
			db->worker_pid = 0;
			db->starting = false;
			db->stop = false;
			pg_atomic_write_u32(&db->work, 1);
			pg_atomic_write_u64(&db->next_at, 0);
		}
	}
	aq_latch_free(&area->latch);
	if (db == NULL)
		ereport(ERROR,
				aq_error(AQ_ERR_CACHE_FULL, "too many databases use pgaq"),
				errhint("Raise pgaq.max_databases (now %d) and restart the server.",
						max_databases));
	my_database = db;
	return db;
}

void
aq_jobs_forget_database(Oid database)
{
	AqDatabase *db;

	aq_latch_get(&area->latch, AQ_EXCLUSIVE, AQ_LOC_JOB_POST);
	db = find_database(database);
	if (db != NULL)
		db->oid = InvalidOid;
	aq_latch_free(&area->latch);
}

static bool
start_worker(AqDatabase *db)
{
	BackgroundWorker worker;
	BackgroundWorkerHandle *handle;
	MemoryContext old;
	bool		started;

	memset(&worker, 0, sizeof(worker));
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = 1;
	snprintf(worker.bgw_library_name, BGW_MAXLEN, "pgaq");
	snprintf(worker.bgw_function_name, BGW_MAXLEN, "aq_worker_main");
	snprintf(worker.bgw_name, BGW_MAXLEN, "pgaq worker of database %u", db->oid);
	snprintf(worker.bgw_type, BGW_MAXLEN, "pgaq worker");
	worker.bgw_main_arg = ObjectIdGetDatum(db->oid);
	worker.bgw_notify_pid = 0;

	old = MemoryContextSwitchTo(TopMemoryContext);
	started = RegisterDynamicBackgroundWorker(&worker, &handle);
	MemoryContextSwitchTo(old);
	return started;
}

bool
aq_jobs_ensure_worker(void)
{
	AqDatabase *db = own_database();
	bool		start = false;

	if (db->worker_pid != 0 || db->starting)
		return true;

	aq_latch_get(&area->latch, AQ_EXCLUSIVE, AQ_LOC_JOB_POST);
	if (db->worker_pid == 0 && !db->starting)
		db->starting = start = true;
	aq_latch_free(&area->latch);

	if (start && !start_worker(db))
	{
		db->starting = false;
		return false;
	}
	return true;
}

void
aq_jobs_require_worker(void)
{
	if (!aq_jobs_ensure_worker())
		ereport(ERROR,
				aq_error(AQ_ERR_WORKER_MISSING, "could not start the background worker of pgaq"),
				errhint("Raise max_worker_processes: every database that uses pgaq needs one."));
}

void
aq_jobs_post(void)
{
	AqDatabase *db = my_database;
	PGPROC	   *proc;

	if (db == NULL || db->oid != MyDatabaseId)
		return;
	/* the exchange is a full barrier: the worker clears it before it looks */
	if (pg_atomic_exchange_u32(&db->work, 1) == 0)
	{
		proc = db->worker_proc;
		if (proc != NULL)
			SetLatch(&proc->procLatch);
	}
}

/*
 * Lower the time at which the worker wants to run; false when it was not
 * later than that.
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
	AqDatabase *db = my_database;

	if (db == NULL || db->oid != MyDatabaseId)
		return;
	if (aq_jobs_lower_time(db, when))
	{
		PGPROC	   *proc = db->worker_proc;

		/* the worker itself looks at the time before it sleeps */
		if (proc != NULL && proc != MyProc)
			SetLatch(&proc->procLatch);
	}
}

AqDatabase *
aq_jobs_own_database(void)
{
	return own_database();
}
