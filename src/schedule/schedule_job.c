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
 * The scheduler passes over schedules whose rows other transactions have locked,
 * which may be prepared ones.  If nothing else is due, it is started again for
 * them after a pause.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "schedule/schedule_private.h"

#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "utils/timestamp.h"

/* while the extension is locked, and for what cannot be done before the worker leaves */
#define TRY_AGAIN USECS_PER_SEC

/* how long a worker that was asked to leave waits for the scheduler that it has started */
#define LEAST_TIME (5 * USECS_PER_SEC)

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

static AqChild scheduler = {.function = "aq_scheduler_main", .type = "pgaq scheduler", .purpose = "schedules", .least_time = LEAST_TIME};
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

static Due
read_table(void)
{
	Due			due;
	bool		isnull;
	Oid			types[] = {TIMESTAMPTZOID, OIDARRAYOID};
	Datum		values[] = {TimestampTzGetDatum(scheduler.started_at), aq_stuck_roles(AQ_STUCK_SCHEDULER)};
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
	if (OidIsValid(aq_owner_table("schedule")))
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
	return aq_child_start(&scheduler) ? DT_NOEND : now + AQ_CHILD_AGAIN;
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
	if (aq_child_runs(&scheduler, &ended))
		return aq_worker_is_leaving() ? Max(scheduler.started_at + LEAST_TIME, GetCurrentTimestamp() + TRY_AGAIN) : 0;
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
	return aq_child_keeps(&scheduler);
}

static const AqJob schedules_job = {.name = "schedules", .run = schedules, .busy = busy};

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
