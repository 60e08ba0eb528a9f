/*-------------------------------------------------------------------------
 *
 * worker.c
 *	  The background worker of a database: runs the registered jobs when they
 *	  are posted or due, and sleeps in between.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "jobs/jobs_private.h"

#include "commands/dbcommands.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#define MAX_JOBS 16

/*
 * how long a worker that always has work may run while another database needs
 * its slot, in microseconds
 */
#define TURN ((int64) 1000000)

/*
 * pause before the next check for an extension that a session is creating, in
 * microseconds
 */
#define LOOK_AGAIN ((int64) 1000000)

/* time of a queue's job in a round, in microseconds; it does not stop within a transaction */
#define QUEUE_TURN ((int64) 50000)

static const AqJob *jobs[MAX_JOBS];
static AqTrouble troubles[MAX_JOBS];
static int	njobs;
static int64 turn_ends;			/* of the queue that is being served; 0: none yet */
static bool leaving;			/* leaves after this round */
static AqWorkerEnd ending = AQ_WORKER_FAILED;	/* the reason if the worker ends now */
static emit_log_hook_type previous_log_hook;
static AqDatabase *database;
static char *database_name;		/* does not change: renaming the database ends the worker */

PGDLLEXPORT void aq_worker_main(Datum arg);

void
aq_worker_register(const AqJob *job)
{
	Assert(njobs < MAX_JOBS);
	jobs[njobs++] = job;
}

bool
aq_worker_is_ending(void)
{
	return ShutdownRequestPending;
}

void
aq_worker_begin_turn(void)
{
	turn_ends = aq_clock_us() + QUEUE_TURN;
}

/* False in a session, which runs jobs for its own queue. */
bool
aq_worker_turn_is_over(void)
{
	return turn_ends != 0 && aq_clock_us() >= turn_ends;
}

bool
aq_worker_is_leaving(void)
{
	return leaving;
}

static void
worker_exit(int code, Datum arg)
{
	aq_jobs_worker_ended(database, ending);
	aq_cond_broadcast(&database->ended);
	aq_jobs_wake_launcher();
}

/* Records the error that ends the worker, for aq.workers. */
static void
note_fatal(ErrorData *error)
{
	if ((error->elevel == ERROR || error->elevel == FATAL) && error->message != NULL)
		aq_jobs_note_error(error->message);
	if (previous_log_hook != NULL)
		previous_log_hook(error);
}

static bool
is_needed(void)
{
	for (int i = 0; i < njobs; i++)
		if (jobs[i]->needed != NULL && jobs[i]->needed())
			return true;
	return false;
}

/*
 * Error context with the database's name, which log lines of a background
 * worker lack.
 */
static void
job_context(void *job)
{
	errcontext("job \"%s\" of the pgaq worker for database \"%s\"", ((const AqJob *) job)->name, database_name);
}

/* Runs one job; returns when it wants to run again. */
static TimestampTz
run_job(int number)
{
	const AqJob *job = jobs[number];
	AqTrouble  *trouble = &troubles[number];
	ErrorContextCallback callback = {.callback = job_context, .arg = unconstify(AqJob *, job), .previous = error_context_stack};
	AqTimed		timed;
	TimestampTz next = 0;
	MemoryContext context = CurrentMemoryContext;

	if (trouble->not_before > GetCurrentTimestamp())
		return trouble->not_before;
	timed = aq_time_enter(AQ_TIME_JOB);
	error_context_stack = &callback;
	PG_TRY();
	{
		pgstat_report_activity(STATE_RUNNING, job->name);
		aq_job_cancellable(true);
		next = job->run();
		aq_job_cancellable(false);
		aq_trouble_succeeded(trouble, job->name);
	}
	PG_CATCH();
	{
		aq_job_cancellable(false);
		aq_trouble_failed(trouble, context);
		next = trouble->not_before;
	}
	PG_END_TRY();
	error_context_stack = callback.previous;
	aq_time_leave(&timed);
	return next;
}

static void
run_jobs(void)
{
	TimestampTz next = 0;

	pg_atomic_exchange_u32(&database->work, 0);
	pg_atomic_write_u64(&database->next_at, 0);
	if (leaving)
		aq_point("worker-last-round");
	for (int i = 0; i < njobs && !ShutdownRequestPending; i++)
		aq_clock_sooner(&next, run_job(i));
	if (next != 0)
		(void) aq_jobs_lower_time(database, next);
	pgstat_report_activity(STATE_IDLE, NULL);
	pgstat_report_stat(false);
}

static void
note_database_name(void)
{
	aq_job_begin();
	database_name = MemoryContextStrdup(TopMemoryContext, get_database_name(MyDatabaseId));
	aq_job_commit(false);
}

/*
 * Has the extension been dropped?  Then the queues in memory are dropped, and
 * the worker ends.  This is done in one transaction, before a session can
 * create the extension again.
 */
static bool
is_over(void)
{
	AqExtensionState extension;

	if (pg_atomic_exchange_u32(&database->check, 0) == 0)
		return false;
	aq_job_begin();
	extension = aq_job_extension();
	if (extension == AQ_EXTENSION_GONE)
	{
		aq_jobs_unused(database);
		aq_jobs_database_gone(MyDatabaseId);
	}
	aq_job_commit(false);
	if (extension == AQ_EXTENSION_UNKNOWN)
	{
		pg_atomic_write_u32(&database->check, 1);
		(void) aq_jobs_lower_time(database, GetCurrentTimestamp() + LOOK_AGAIN);
	}
	return extension == AQ_EXTENSION_GONE;
}

static bool
is_busy(void)
{
	for (int i = 0; i < njobs; i++)
		if (jobs[i]->busy != NULL && jobs[i]->busy())
			return true;
	return false;
}

/*
 * May the worker leave after this round?  Another database needs its slot, and
 * it has no work now.  A worker that always has work leaves at the end of its
 * turn.
 */
static bool
may_leave(void)
{
	/* an interrupted round has not run all jobs that were due */
	return leaving && !ShutdownRequestPending && !is_busy() &&
		(!aq_jobs_is_due(database) || aq_clock_us() - database->came_at >= TURN);
}

/*
 * Sleeps until a post, the time of the next work, or a request to leave or end.
 * A post sets the flag, then the latch.  It can set the latch just when a slice of
 * the sleep ends, so the flags are checked before each.
 */
static void
wait_for_work(void)
{
	bool		woken = false;

	while (!woken && !ShutdownRequestPending && !aq_jobs_is_due(database) && !(database->leave && !leaving) &&
		   !aq_clock_was_set_back())
	{
		uint64		next = pg_atomic_read_u64(&database->next_at);
		int64		left = next == 0 ? -1 : Max((TimestampTz) next - GetCurrentTimestamp(), 0);

		woken = aq_event_sleep(AQ_EVENT_JOB_IDLE, 0, 0, 0, Min(left, AQ_EVENT_CLOCK)) || left <= AQ_EVENT_CLOCK;
	}
}

/*
 * Was the worker started to find out whether there are queues, and are there
 * none?
 */
static bool
answers_no(void)
{
	if (!aq_jobs_begin_answer(database) || is_needed())
		return false;
	ending = AQ_WORKER_ANSWERED;
	return true;
}

void
aq_worker_main(Datum arg)
{
	Oid			oid = DatumGetObjectId(arg);

	/* connecting may wait for a lock, so SIGTERM ends the process at once */
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	aq_session_attach();

	database = aq_jobs_claim(oid);
	if (database == NULL)
		proc_exit(0);
	aq_job_enter_worker();
	before_shmem_exit(worker_exit, (Datum) 0);
	previous_log_hook = emit_log_hook;
	emit_log_hook = note_fatal;
	BackgroundWorkerInitializeConnectionByOid(oid, InvalidOid, 0);
	aq_point("worker-connected");
	pqsignal(SIGTERM, aq_job_on_sigterm);

	aq_job_set_parameters("pgaq worker");
	aq_job_run_as_owner();

	/*
	 * the launcher starts a worker in each database to find out whether it
	 * uses pgaq
	 */
	if (answers_no())
		proc_exit(0);
	ending = AQ_WORKER_BROKEN;
	aq_jobs_used(database);
	database->worker_proc = MyProc;
	aq_jobs_wake_launcher();
	note_database_name();

	while (!ShutdownRequestPending)
	{
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}

		/*
		 * pauses that end at times of day would last too long; another worker has
		 * none
		 */
		if (aq_clock_was_set_back())
		{
			pg_atomic_write_u32(&database->work, 1);
			ending = AQ_WORKER_LEFT;
			break;
		}
		leaving = database->leave;
		run_jobs();
		if (is_over())
		{
			ending = AQ_WORKER_ANSWERED;
			break;
		}
		if (may_leave())
		{
			aq_point("worker-leaves");
			ending = AQ_WORKER_LEFT;
			break;
		}
		wait_for_work();
	}

	proc_exit(0);
}
