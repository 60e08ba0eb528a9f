/*-------------------------------------------------------------------------
 *
 * scheduler.c
 *	  The scheduler: a background worker of a database that is started when
 *	  schedules are due, and ends when none is.
 *
 * It is not the database's worker, because enqueueing can wait for that, and
 * runs users' code.  If two schedulers run, because the worker was ended and
 * has started another one, or cannot interrupt the first, each passes over the
 * rows that the other has locked.
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
	aq_job_run_as_owner();
	aq_process_set_parameter("search_path", "pg_catalog, pg_temp");
	aq_process_set_parameter("lock_timeout", "500ms");
}

static List *
due_schedules(List *passed_over)
{
	MemoryContext context = CurrentMemoryContext;
	List	   *due = NIL;

	aq_job_begin();
	MemoryContextSwitchTo(context);
	if (aq_job_lock_extension())
		due = aq_schedule_row_due(passed_over);
	aq_job_commit(false);
	MemoryContextSwitchTo(context);
	return due;
}

/* The roles that have used least time come first, the schedules of each in the order of their times. */
static int
compare(const ListCell *a, const ListCell *b)
{
	const AqScheduleDue *x = lfirst(a);
	const AqScheduleDue *y = lfirst(b);

	if (x->used != y->used)
		return x->used < y->used ? -1 : 1;
	return x->number - y->number;
}

/*
 * Serves some of the schedules, until it is time to see what else is due; returns
 * their number.  Adds the names of those that are locked, or whose role is stuck, to
 * *passed_over, in the current memory context.
 */
static int
make_round(List *due, List **passed_over, MemoryContext turn)
{
	MemoryContext context = CurrentMemoryContext;
	int64		began = aq_clock_us();
	ListCell   *lc;
	int			served = 0;

	foreach(lc, due)
	{
		AqScheduleDue *schedule = lfirst(lc);

		schedule->used = aq_fair_used(schedule->owner);
	}
	list_sort(due, compare);
	foreach(lc, due)
	{
		AqScheduleDue *schedule = lfirst(lc);

		CHECK_FOR_INTERRUPTS();
		MemoryContextReset(turn);
		MemoryContextSwitchTo(turn);
		pgstat_report_activity(STATE_RUNNING, schedule->name);
		if (!aq_stuck_bars(AQ_STUCK_SCHEDULER, schedule->owner) && aq_turn_take(schedule, turn))
			served++;
		else
		{
			MemoryContextSwitchTo(context);
			*passed_over = lappend(*passed_over, pstrdup(schedule->name));
		}
		MemoryContextSwitchTo(context);
		if (aq_clock_us() - began > AQ_FAIR_ROUND)
			break;
	}
	pgstat_report_stat(false);
	return served;
}

/*
 * Serves what is due; returns false if there was nothing to do.  However many are
 * locked, it gets to the others.
 */
static bool
serve(MemoryContext context, MemoryContext turn)
{
	MemoryContext round;
	List	   *passed_over = NIL;
	List	   *due;
	int			served = 0;
	int64		key;

	MemoryContextSwitchTo(context);
	MemoryContextReset(context);
	while ((key = aq_fair_ended()) != 0)
		aq_turn_has_ended(key);
	round = AllocSetContextCreate(context, "pgaq scheduler round", ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(round);
	while (aq_schedule_job_enabled && (due = due_schedules(passed_over)) != NIL)
	{
		MemoryContextSwitchTo(context);
		served += make_round(due, &passed_over, turn);
		MemoryContextReset(round);
		MemoryContextSwitchTo(round);
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}
	}
	return served > 0;
}

void
aq_scheduler_main(Datum arg)
{
	MemoryContext context,
				turn;

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	aq_session_attach();
	aq_stuck_enter(AQ_STUCK_SCHEDULER);
	BackgroundWorkerInitializeConnectionByOid(DatumGetObjectId(arg), InvalidOid, 0);
	aq_schedule_job_in_scheduler();
	set_parameters();
	aq_point("scheduler-connected");
	context = AllocSetContextCreate(TopMemoryContext, "pgaq scheduler", ALLOCSET_DEFAULT_SIZES);
	turn = AllocSetContextCreate(TopMemoryContext, "pgaq schedule", ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(context);
	aq_fair_enter(AQ_STUCK_SCHEDULER);
	while (aq_schedule_job_enabled && serve(context, turn))
		;
	proc_exit(0);
}
