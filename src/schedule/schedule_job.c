/*-------------------------------------------------------------------------
 *
 * schedule_job.c
 *	  The worker's job that starts the scheduler, a process of its own, when a
 *	  schedule is due.
 *
 * The worker remembers when that is, so that a turn without a due schedule
 * costs only a comparison.  A session that has changed schedules increments
 * `changes` when it commits, and posts the worker, which then reads the table
 * again.  A trigger on the table notes changes, so a restore is noticed, too.
 *
 * The postmaster signals the worker when the scheduler has ended.  The
 * scheduler passes over schedules whose rows other transactions have locked,
 * which may be prepared ones.  If nothing else is due, it is started again for
 * them after a pause.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "schedule/schedule_private.h"

#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "postmaster/bgworker.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/* while the extension is locked, and for what cannot be done before the worker leaves */
#define TRY_AGAIN USECS_PER_SEC

/*
 * while no background worker slot is free: sooner than the next work of most
 * workers, so that another one leaves; log a message after so many tries
 */
#define PLACE_AGAIN (USECS_PER_SEC / 4)
#define COMPLAIN_AFTER 40

/* a worker that was asked to leave stays so long for the scheduler that it has started, which would end with it */
#define STAY (5 * USECS_PER_SEC)

/* pauses while due schedules are locked */
#define FIRST_PAUSE USECS_PER_SEC
#define LONGEST_PAUSE (10 * USECS_PER_SEC)

typedef struct ScheduleShared
{
	pg_atomic_uint32 changes;	/* number of transactions that have changed schedules, in all databases */
} ScheduleShared;

bool		aq_schedule_job_enabled;

static ScheduleShared *shared;
static bool schedules_changed;	/* by this transaction */
static bool in_scheduler;

/* --- in the worker ------------------------------------------------------------------- */

/* What is due, as the table says. */
typedef struct Due
{
	int			count;			/* of schedules that are due */
	int			old;			/* those of them that were due when the last scheduler was started */
	TimestampTz next;			/* when the next other one is due; DT_NOEND: never */
} Due;

static BackgroundWorkerHandle *scheduler;	/* NULL: none was started, or it has ended */
static int	refusals;			/* tries in a row that have found no free slot */
static TimestampTz started_at;	/* when the last one was started */
static int	left_over;			/* schedules that it has left, because they are locked */
static int64 pause_length;
static TimestampTz pause_until;

Size
aq_schedule_job_shmem_size(void)
{
	return sizeof(ScheduleShared);
}

void
aq_schedule_job_shmem_init(void *area, bool found)
{
	shared = area;
	if (!found)
		pg_atomic_init_u32(&shared->changes, 0);
}

/* The scheduler must not outlive the worker: another command may want the database for itself. */
static void
end_scheduler(int code, Datum arg)
{
	if (scheduler != NULL)
		TerminateBackgroundWorker(scheduler);
}

static void
complain(void)
{
	ereport(LOG,
			aq_error(AQ_ERR_WORKER_MISSING, "could not start a background worker for schedules"),
			errdetail("Schedules wait until a worker slot is free."),
			errhint("%s", aq_room_hint()));
}

/* Returns false if no background worker slot is free. */
static bool
start_scheduler(void)
{
	static bool registered;
	BackgroundWorker worker;
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);
	bool		started;

	if (!registered)
		before_shmem_exit(end_scheduler, (Datum) 0);
	registered = true;
	aq_process_init(&worker, "aq_scheduler_main", "pgaq scheduler");
	worker.bgw_main_arg = ObjectIdGetDatum(MyDatabaseId);
	worker.bgw_notify_pid = MyProcPid;
	started = RegisterDynamicBackgroundWorker(&worker, &scheduler);
	MemoryContextSwitchTo(old);
	if (started)
	{
		started_at = GetCurrentTimestamp();
		refusals = 0;
		aq_room_got();
	}
	else
	{
		scheduler = NULL;
		if (++refusals == COMPLAIN_AFTER)
			complain();
		aq_room_ask();
	}
	return started;
}

/* Is there a scheduler that is not stuck?  *ended: it has ended since the last call. */
static bool
scheduler_runs(bool *ended)
{
	pid_t		pid;
	BgwHandleStatus status;

	*ended = false;
	if (scheduler == NULL)
		return false;
	status = GetBackgroundWorkerPid(scheduler, &pid);
	if (status == BGWH_NOT_YET_STARTED || (status == BGWH_STARTED && !aq_stuck_is_given_up(pid)))
		return true;
	pfree(scheduler);
	scheduler = NULL;
	*ended = status != BGWH_STARTED;
	return false;
}

/* Does the database's version of the extension have schedules? */
static bool
have_schedules(void)
{
	Oid			schema = get_namespace_oid("aq_internal", true);

	return OidIsValid(schema) && OidIsValid(get_relname_relid("schedule", schema));
}

static Due
read_table(void)
{
	Due			due;
	bool		isnull;
	Oid			types[] = {TIMESTAMPTZOID, OIDARRAYOID};
	Datum		values[] = {TimestampTzGetDatum(started_at), aq_stuck_roles(AQ_STUCK_SCHEDULER)};
	Datum		next;

	aq_sql_run("SELECT count(*) FILTER (WHERE t <= now())::int, min(t) FILTER (WHERE t > now()), "
			   "count(*) FILTER (WHERE t <= $1)::int "
			   "FROM (SELECT GREATEST(next_run, retry_at) FROM aq_internal.schedule "
			   "WHERE NOT paused AND NOT disabled AND next_run IS NOT NULL AND owner::oid <> ALL ($2)) s(t)",
			   lengthof(types), types, values, NULL, true);
	due.count = DatumGetInt32(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull));
	next = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 2, &isnull);
	due.next = isnull ? DT_NOEND : DatumGetTimestampTz(next);
	due.old = DatumGetInt32(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 3, &isnull));
	SPI_finish();
	return due;
}

/* Returns false if it cannot be known now. */
static bool
find_due(Due *due)
{
	bool		known = true;

	aq_job_begin();
	*due = (Due) {.next = DT_NOEND};
	if (have_schedules())
	{
		known = aq_job_lock_extension();
		if (known)
			*due = read_table();
	}
	aq_job_commit(false);
	return known;
}

/* Starts the scheduler, if something is due that it can do; returns when to look again. */
static TimestampTz
serve(const Due *due, bool ended, bool changed)
{
	TimestampTz now = GetCurrentTimestamp();

	if (due->count == 0)
		left_over = 0;
	else if (ended)
	{
		/* a scheduler leaves only what is locked */
		pause_length = left_over == 0 ? FIRST_PAUSE : Min(pause_length * 2, LONGEST_PAUSE);
		pause_until = now + pause_length;
		left_over = due->old;
	}
	if (due->count == 0)
		return due->next;
	if (due->count <= left_over && !changed && now < pause_until)
		return Min(due->next, pause_until);
	if (aq_worker_is_leaving())
		return now + TRY_AGAIN;
	return start_scheduler() ? DT_NOEND : now + PLACE_AGAIN;
}

static TimestampTz
schedules(void)
{
	static bool known = false;
	static uint32 changes_seen;
	static TimestampTz next;
	uint32		changes = pg_atomic_read_u32(&shared->changes) + aq_stuck_changes();
	bool		ended;
	Due			due;

	if (!aq_schedule_job_enabled)
		return 0;
	/* its end wakes this worker */
	if (scheduler_runs(&ended))
		return aq_worker_is_leaving() ? Max(started_at + STAY, GetCurrentTimestamp() + TRY_AGAIN) : 0;
	if (known && changes == changes_seen && !ended && next > GetCurrentTimestamp())
		return next == DT_NOEND ? 0 : next;

	/* a queue that is being restored is not complete */
	if (aq_restored_is_running() || aq_jobs_are_restored())
	{
		known = false;
		return GetCurrentTimestamp() + TRY_AGAIN;
	}
	next = GetCurrentTimestamp() + TRY_AGAIN;	/* if an error ends this turn */
	if (find_due(&due))
	{
		bool		changed = known && changes != changes_seen;

		changes_seen = changes;
		known = true;
		next = serve(&due, ended, changed);
	}
	return next == DT_NOEND ? 0 : next;
}

static bool
busy(void)
{
	return scheduler != NULL && GetCurrentTimestamp() < started_at + STAY;
}

static const AqJob schedules_job = {.name = "schedules",.run = schedules,.busy = busy};

/* --- in sessions ------------------------------------------------------------------------- */

static void
tell_worker(void)
{
	if (schedules_changed)
	{
		pg_atomic_fetch_add_u32(&shared->changes, 1);
		aq_jobs_post();
	}
	schedules_changed = false;
}

static void
forget_change(void)
{
	schedules_changed = false;
}

/* A prepared transaction may have changed schedules; the worker is posted anyway. */
static void
prepared_ended(void)
{
	pg_atomic_fetch_add_u32(&shared->changes, 1);
}

static const AqXactOps changes_end = {
	.commit = tell_worker,
	.prepare = forget_change,
	.abort = forget_change,
};

/* This process is a scheduler: its worker learns of its changes at its end. */
void
aq_schedule_job_in_scheduler(void)
{
	in_scheduler = true;
}

void
aq_schedule_job_init(void)
{
	aq_worker_register(&schedules_job);
	aq_xact_register(AQ_XACT_SCHEDULES, &changes_end);
	aq_utility_on_prepared_end(prepared_ended);
}

/* Trigger after changes of aq_internal.schedule. */
PG_FUNCTION_INFO_V1(aq_schedule_job_changed);
Datum
aq_schedule_job_changed(PG_FUNCTION_ARGS)
{
	if (!CALLED_AS_TRIGGER(fcinfo))
		elog(ERROR, "aq_internal.schedules_changed is a trigger function");
	if (!in_scheduler)
	{
		aq_session_require_preload();
		aq_jobs_ensure_worker();
		schedules_changed = true;
	}
	PG_RETURN_POINTER(NULL);
}
