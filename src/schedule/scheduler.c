/*-------------------------------------------------------------------------
 *
 * scheduler.c
 *	  The scheduler: a background worker of a database that is started when
 *	  schedules are due, and ends when none is.
 *
 * It is not the database's worker, because enqueueing can wait for that, and
 * runs users' code.  If two schedulers run, because the worker was ended and
 * has started another one, each passes over the rows that the other has
 * locked.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "schedule/schedule_private.h"

#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

PGDLLEXPORT void aq_scheduler_main(Datum arg);

/*
 * Overrides settings that ALTER DATABASE has made for sessions.  The texts of
 * payloads were written with the settings of setting_list.h.  While it waits
 * for a lock, a session that drops the queue may wait for the schedule's row:
 * the scheduler gives way before the server detects a deadlock.
 */
static void
set_parameters(void)
{
	aq_run_as_pin_process();
	aq_process_set_parameters("pgaq scheduler");
	aq_process_set_parameter("search_path", "pg_catalog, pg_temp");
	aq_process_set_parameter("lock_timeout", "500ms");
}

/* Some schedules that are due at this time, after this one. */
static List *
due_schedules(const AqScheduleDue *after, TimestampTz until)
{
	MemoryContext context = CurrentMemoryContext;
	List	   *due = NIL;

	aq_job_begin();
	MemoryContextSwitchTo(context);
	if (aq_job_lock_extension())
		due = aq_schedule_row_due(after, until);
	aq_job_commit(false);
	MemoryContextSwitchTo(context);
	return due;
}

/* Serves these schedules; returns the number of those that were not locked. */
static int
serve(List *due, MemoryContext turn)
{
	MemoryContext context = CurrentMemoryContext;
	ListCell   *lc;
	int			served = 0;

	foreach(lc, due)
	{
		AqScheduleDue *schedule = lfirst(lc);

		CHECK_FOR_INTERRUPTS();
		MemoryContextReset(turn);
		MemoryContextSwitchTo(turn);
		pgstat_report_activity(STATE_RUNNING, schedule->name);
		served += aq_turn_take(schedule->name, turn);
		MemoryContextSwitchTo(context);
	}
	return served;
}

/*
 * Serves each schedule that is due once; returns false if there was nothing to
 * do.  However many are locked, it gets to the others.
 */
static bool
make_round(MemoryContext round, MemoryContext turn)
{
	TimestampTz start = GetCurrentTimestamp();
	AqScheduleDue last = {.time = DT_NOBEGIN,.name = ""};
	List	   *due;
	int			served = 0;

	MemoryContextReset(round);
	MemoryContextSwitchTo(round);
	while ((due = due_schedules(&last, start)) != NIL)
	{
		last = *(AqScheduleDue *) llast(due);
		served += serve(due, turn);
	}
	pgstat_report_stat(false);
	return served > 0;
}

void
aq_scheduler_main(Datum arg)
{
	MemoryContext round,
				turn;

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	aq_session_attach();
	BackgroundWorkerInitializeConnectionByOid(DatumGetObjectId(arg), InvalidOid, 0);
	aq_schedule_job_in_scheduler();
	set_parameters();
	aq_point("scheduler-connected");
	round = AllocSetContextCreate(TopMemoryContext, "pgaq scheduler", ALLOCSET_DEFAULT_SIZES);
	turn = AllocSetContextCreate(TopMemoryContext, "pgaq schedule", ALLOCSET_DEFAULT_SIZES);
	while (aq_schedule_job_enabled && make_round(round, turn))
	{
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}
	}
	proc_exit(0);
}
