/*-------------------------------------------------------------------------
 *
 * propagator.c
 *	  The process "pgaq propagation" of a database: moves messages to other
 *	  queues.
 *
 * A round takes a batch of each route, each in a transaction of its own, in which
 * messages leave one queue and enter the other: so each arrives exactly once,
 * whenever the process or the server ends.  Without messages it waits for them,
 * or for the time of a schedule, in a transaction without a snapshot.
 *
 * Messages for another database are taken into a table, and a stream of part
 * "link" sends them: see propagation_batch.c and propagation_stream.c.
 *
 * A batch is moved with the privileges of the role that has made the schedule,
 * with SET ROLE and SET SESSION AUTHORIZATION disallowed.  Rules and
 * transformations run as those who wrote them, as in any session that enqueues.
 * This process is not the worker of the database: what such code takes in time
 * only delays propagation, and the batches of each role in turn: see jobs/fair.c.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "propagate/propagate_private.h"

#include "access/xact.h"
#include "common/pg_prng.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "tcop/tcopprot.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "utils/timeout.h"
#include "utils/timestamp.h"

/* less than pgaq.turn_timeout: a lock that is not available is not the fault of the schedule */
#define LOCK_TIMEOUT "1s"

/* the shortest time after which counts of schedules are written again, microseconds */
#define SAVE_EVERY ((int64) 2000000)

/* with more routes than can be waited for, or a stuck process, how often the others are looked at, microseconds */
#define LOOK_EVERY ((int64) 1000000)

PGDLLEXPORT void aq_propagator_main(Datum arg);

static MemoryContext round_context;
static TimestampTz saved_at;

/* --- transactions ------------------------------------------------------------------------------ */

/*
 * DROP EXTENSION waits for the transaction, as for those of the worker's jobs:
 * both lock several tables.  While it runs, the process ends; the worker starts
 * another one if the extension stays.
 */
static void
begin(void)
{
	aq_job_begin();
	if (aq_job_lock_extension())
		return;
	aq_job_commit(false);
	proc_exit(0);
}

static void
commit(void)
{
	aq_job_commit(false);
}

/* --- a batch -------------------------------------------------------------------------------------- */

static void
become(Oid role)
{
	if (!SearchSysCacheExists1(AUTHOID, ObjectIdGetDatum(role)))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("the role that has scheduled the propagation does not exist")));
	SetUserIdAndSecContext(role, SECURITY_LOCAL_USERID_CHANGE);
}

/* The number of messages moved. */
static uint32
move_batch(const AqRoute *route)
{
	AqPropagation *schedule = route->schedule;
	AqMove		move = {.source = schedule->queue_id, .consumer = route->consumer, .destination = route->destination,
		.recipient = route->recipient, .producer = aq_producer_own(AQ_PRODUCER_PROPAGATION, (uint64) schedule->id), .max = schedule->most};
	TimestampTz started = GetCurrentTimestamp();
	uint32		n;

	begin();
	become(schedule->role);
	n = aq_move_messages(&move);
	commit();
	schedule->most = Min(schedule->most * 2, AQ_PROPAGATION_BATCH);
	aq_point("propagated");
	if (n == 0)
		return 0;
	schedule->unsaved.messages += n;
	schedule->unsaved.bytes += move.bytes;
	schedule->unsaved.batches++;
	schedule->unsaved.elapsed += GetCurrentTimestamp() - started;
	schedule->unsaved.most_messages = Max(schedule->unsaved.most_messages, n);
	schedule->unsaved.most_bytes = Max(schedule->unsaved.most_bytes, move.bytes);
	return n;
}

/* The number of messages taken, to be sent to another database by its stream. */
static uint32
take_batch(const AqRoute *route)
{
	uint32		n;

	begin();
	n = aq_propagation_batch_take(route, become);
	commit();
	aq_point("propagation-taken");
	return n;
}

/* The schedule pauses, or is disabled. */
static void
record_failure(AqPropagation *schedule, const char *destination, const char *message, const char *detail, bool may_disable)
{
	bool		disabled;
	int			failures = ++schedule->failures;

	schedule->not_before = GetCurrentTimestamp() + aq_propagation_pause(failures);
	begin();
	disabled = aq_propagation_failed(schedule, message, may_disable);
	if (disabled && aq_propagation_is_unsaved(schedule))
		aq_propagation_save(schedule);
	commit();
	if ((failures == 1 || disabled) && aq_trouble_may_log(schedule->role))
		ereport(LOG,
				errmsg("propagation to \"%s\" failed: %s", destination, aq_error_clip(message)),
				detail ? errdetail_internal("%s", aq_error_clip(detail)) : 0,
				disabled ? errhint("It has failed %d times in a row and is disabled.", failures) : 0);
}

/* In PG_CATCH: the batch is rolled back. */
static void
note_failure(const AqRoute *route, MemoryContext context)
{
	AqPropagation *schedule = route->schedule;
	ErrorData  *error;

	MemoryContextSwitchTo(context);
	error = CopyErrorData();
	FlushErrorState();
	AbortCurrentTransaction();
	SetUserIdAndSecContext(GetSessionUserId(), 0);
	MemoryContextSwitchTo(context);
	/* perhaps they were too large */
	schedule->most = Max(schedule->most / 4, 1);
	record_failure(schedule, route->destination, aq_fair_message(error), error->detail, aq_error_is_of_timed_user(error->sqlerrcode));
}

/* A process was ended in the turn of this schedule. */
static void
note_ended(int64 id)
{
	ListCell   *lc;

	foreach(lc, aq_propagation_all())
	{
		AqPropagation *schedule = lfirst(lc);

		if (schedule->id != id)
			continue;
		record_failure(schedule, schedule->destination != NULL ? schedule->destination : "consumers", aq_fair_too_long(), NULL, true);
		break;
	}
}

/* Returns false if there was nothing to move, or it failed. */
static bool
run_route(const AqRoute *route)
{
	MemoryContext context = CurrentMemoryContext;
	volatile uint32 n = 0;

	aq_fair_begin(route->schedule->role, route->schedule->id);
	PG_TRY();
	{
		n = route->schedule->remote ? take_batch(route) : move_batch(route);
		aq_fair_end(n > 0);
	}
	PG_CATCH();
	{
		aq_fair_end(true);
		note_failure(route, context);
		n = 0;
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	/* what a stream has counted ends with an arrival */
	if (n > 0 && route->schedule->remote)
		route->schedule->failures = 0;
	if (n > 0 && route->schedule->failures > 0)
	{
		begin();
		aq_propagation_recovered(route->schedule);
		commit();
		MemoryContextSwitchTo(context);
	}
	CHECK_FOR_INTERRUPTS();
	return n > 0;
}

/* --- a round ----------------------------------------------------------------------------------------- */

/* May the schedule move messages now?  Else *next becomes the time of its next try, if that is sooner. */
static bool
is_due(const AqPropagation *schedule, TimestampTz now, TimestampTz *next)
{
	TimestampTz change;
	bool		open = aq_propagation_is_open(schedule, now, &change);

	aq_clock_sooner(next, change);
	if (!open || (schedule->busy && schedule->arrivals == aq_propagator_area_arrivals()))
		return false;
	if (aq_stuck_bars(AQ_STUCK_PROPAGATION, schedule->role))
		aq_clock_sooner(next, now + LOOK_EVERY);
	else if (schedule->not_before <= now)
		return true;
	else
		aq_clock_sooner(next, schedule->not_before);
	return false;
}

static void
save_all(void)
{
	ListCell   *lc;

	begin();
	foreach(lc, aq_propagation_all())
		if (aq_propagation_is_unsaved(lfirst(lc)))
			aq_propagation_save(lfirst(lc));
	commit();
	saved_at = GetCurrentTimestamp();
}

static bool
any_unsaved(void)
{
	ListCell   *lc;

	foreach(lc, aq_propagation_all())
		if (aq_propagation_is_unsaved(lfirst(lc)))
			return true;
	return false;
}

/* A route without messages: its schedule looks again when a message comes, or after its latency. */
static void
note_latency(List *routes, const List *moved)
{
	TimestampTz now = GetCurrentTimestamp();
	ListCell   *lc;

	foreach(lc, routes)
	{
		AqPropagation *schedule = ((AqRoute *) lfirst(lc))->schedule;

		if (schedule->latency > 0 && schedule->not_before <= now && !schedule->busy && !list_member_ptr(moved, schedule))
			schedule->not_before = now + schedule->latency;
	}
}

static int
compare_routes(const ListCell *a, const ListCell *b)
{
	const AqRoute *x = lfirst(a);
	const AqRoute *y = lfirst(b);

	if (x->used != y->used)
		return x->used < y->used ? -1 : 1;
	return x->random < y->random ? -1 : x->random > y->random;
}

/*
 * The routes of the roles that have used least time come first.  Returns false, and
 * leaves them as they are, if they are of one role.
 */
static bool
sort_routes(List *routes)
{
	bool		several = false;
	ListCell   *lc;

	foreach(lc, routes)
		several |= ((AqRoute *) lfirst(lc))->schedule->role != ((AqRoute *) linitial(routes))->schedule->role;
	if (!several)
		return false;
	foreach(lc, routes)
	{
		AqRoute    *route = lfirst(lc);

		route->used = aq_fair_used(route->schedule->role);
		route->random = pg_prng_uint32(&pg_global_prng_state);
	}
	list_sort(routes, compare_routes);
	return true;
}

/*
 * A batch of each route that is due; with routes of several roles, until it is time
 * to sort them again.  Returns false if there were no messages in any.
 */
static bool
run_routes(List *routes)
{
	List	   *moved = NIL;	/* schedules */
	List	   *tried = NIL;	/* routes */
	TimestampTz next = 0;
	ListCell   *lc;
	bool		several = sort_routes(routes);
	int64		spent = aq_fair_spent();

	foreach(lc, routes)
	{
		AqRoute    *route = lfirst(lc);

		if (!is_due(route->schedule, GetCurrentTimestamp(), &next))
			continue;
		tried = lappend(tried, route);
		if (run_route(route))
			moved = list_append_unique_ptr(moved, route->schedule);
		if (several && aq_fair_spent() - spent > AQ_FAIR_ROUND)
			break;
	}
	note_latency(tried, moved);
	return moved != NIL || lc != NULL;
}

/* The queue itself, for its only consumer or for consumers to come, and the consumers of its routes. */
static int
add_sources(AqMoveSource *sources, int n, const AqPropagation *schedule, List *routes)
{
	ListCell   *lc;

	sources[n++] = (AqMoveSource) {.queue_id = schedule->queue_id};
	foreach(lc, routes)
	{
		const AqRoute *route = lfirst(lc);

		if (route->schedule == schedule && route->consumer != NULL)
			sources[n++] = (AqMoveSource) {.queue_id = schedule->queue_id, .consumer = route->consumer};
	}
	return n;
}

/* Waits for messages of the routes, or until something else is to be done. */
static void
wait_for_routes(List *routes)
{
	AqMoveSource *sources = palloc((list_length(routes) + list_length(aq_propagation_all())) * sizeof(AqMoveSource));
	TimestampTz now = GetCurrentTimestamp();
	TimestampTz next = 0;
	int64		deadline = -1;
	int			n = 0;
	ListCell   *lc;

	foreach(lc, aq_propagation_all())
	{
		AqPropagation *schedule = lfirst(lc);

		if (is_due(schedule, now, &next))
			n = add_sources(sources, n, schedule, routes);
	}
	if (n > AQ_MOVE_SOURCES)
		aq_clock_sooner(&next, now + LOOK_EVERY);
	if (any_unsaved())
		aq_clock_sooner(&next, Max(saved_at + SAVE_EVERY, now + 1));
	pgstat_report_activity(STATE_IDLE, NULL);
	do
	{
		if (next != 0)
			deadline = aq_clock_us() + Max(Min(next - GetCurrentTimestamp(), AQ_EVENT_CLOCK), 0);
		SetCurrentStatementStartTimestamp();
		StartTransactionCommand();
		aq_move_wait(Min(n, AQ_MOVE_SOURCES), sources, deadline, aq_propagator_area_disturbed);
		CommitTransactionCommand();
	} while (next != 0 && aq_clock_us() >= deadline && GetCurrentTimestamp() < next && !aq_clock_was_set_back());
	pgstat_report_activity(STATE_RUNNING, "propagation");
}

/* The routes, in the context of the round; of schedules that were read again after a change. */
static List *
look(void)
{
	List	   *routes;

	MemoryContextSwitchTo(TopMemoryContext);
	MemoryContextReset(round_context);
	begin();
	if (aq_propagator_area_heed())
		aq_propagation_reload();
	MemoryContextSwitchTo(round_context);
	routes = aq_propagation_routes();
	if (aq_propagation_is_orphan())
	{
		aq_propagation_reload();
		routes = aq_propagation_routes();
	}
	commit();
	MemoryContextSwitchTo(round_context);
	return routes;
}

/* Returns when no schedule is left. */
static void
propagate(void)
{
	for (;;)
	{
		List	   *routes = look();
		int64		ended;

		while ((ended = aq_fair_ended()) != 0)
			note_ended(ended);
		MemoryContextSwitchTo(round_context);
		/* pauses that end at times of day would last too long; another process has none */
		if (aq_propagation_all() == NIL || aq_clock_was_set_back())
			return;
		if (!run_routes(routes))
		{
			if (any_unsaved() && GetCurrentTimestamp() >= saved_at + SAVE_EVERY)
				save_all();
			wait_for_routes(routes);
		}
		else if (GetCurrentTimestamp() >= saved_at + SAVE_EVERY)
			save_all();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}
		pgstat_report_stat(false);
	}
}

/* --- the process --------------------------------------------------------------------------------------- */

/*
 * Overrides settings of the database.  Commits need no flush: what is lost in a
 * crash is lost in both queues.
 */
static void
set_parameters(void)
{
	aq_process_set_parameters("pgaq propagation");
	aq_job_run_as_owner();
	aq_process_set_parameter("search_path", "pg_catalog, pg_temp");
	aq_process_set_parameter("synchronous_commit", "off");
	aq_process_set_parameter("lock_timeout", LOCK_TIMEOUT);
	aq_process_set_parameter("pgaq.oracle_errors", "off");
}

void
aq_propagator_main(Datum arg)
{
	Oid			database = DatumGetObjectId(arg);

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	aq_session_attach();
	aq_point("propagator-starts");
	/* a command that wants the database for itself stops it, then ends those that have entered */
	if (!aq_propagator_area_enter(database) || aq_jobs_is_stopped(database))
		proc_exit(0);
	aq_stuck_enter(AQ_STUCK_PROPAGATION);
	BackgroundWorkerInitializeConnectionByOid(database, InvalidOid, 0);
	set_parameters();
	round_context = AllocSetContextCreate(TopMemoryContext, "pgaq propagation", ALLOCSET_DEFAULT_SIZES);
	aq_fair_enter(AQ_STUCK_PROPAGATION);
	propagate();
	proc_exit(0);
}

/* --- the job of the worker that starts the process --------------------------------------------------------- */

static bool
schedules_exist(bool *locked)
{
	bool		exist;

	aq_job_begin();
	*locked = aq_job_lock_extension();
	exist = *locked && aq_sql_finds("SELECT FROM aq_internal.propagation WHERE enabled LIMIT 1");
	aq_job_commit(false);
	return exist;
}

/* Runs at each post of the worker: it looks at the table only when that can have changed. */
static TimestampTz
start_process(void)
{
	static uint32 seen;			/* 0: not yet */
	static TimestampTz again;
	uint32		changes = aq_propagator_area_changes() + aq_stuck_changes();
	bool		locked;

	if (changes == seen && (again == 0 || GetCurrentTimestamp() < again))
		return again;
	again = 0;
	if (schedules_exist(&locked))
		again = aq_propagator_area_start();
	else if (!locked)
	{
		again = GetCurrentTimestamp() + LOOK_EVERY;
		return again;
	}
	seen = changes;
	return again;
}

static const AqJob job = {.name = "propagation", .run = start_process};

void
aq_propagator_register(void)
{
	aq_worker_register(&job);
	aq_jobs_on_database_wanted(aq_propagator_area_stop);
}
