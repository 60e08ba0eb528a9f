/*-------------------------------------------------------------------------
 *
 * propagation.c
 *	  The schedules of a database in its process: rows of
 *	  aq_internal.propagation, their windows of time, and the consumers whose
 *	  messages they move.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "propagate/propagate_private.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/* the pause after a failure grows from the first to the last one, microseconds */
#define FIRST_PAUSE ((int64) 1000000)
#define LAST_PAUSE ((int64) 300000000)

static MemoryContext context;
static List *schedules = NIL;	/* of AqPropagation, in context */
static bool queue_missing;		/* one of them was dropped, and its schedules with it */

List *
aq_propagation_all(void)
{
	return schedules;
}

/* The foreign server in an address of another database; NULL: it is in this one. */
const char *
aq_propagation_server(const char *address)
{
	const char *at = strchr(address, '@');

	return at != NULL ? at + 1 : NULL;
}

/* --- rows -------------------------------------------------------------------------------------- */

enum
{
	ROW_ID, ROW_QUEUE, ROW_DESTINATION, ROW_ROLE, ROW_START, ROW_DURATION, ROW_EVERY, ROW_LATENCY, ROW_FAILURES, ROW_FAILED
};

#define MICROSECONDS(column) "(extract(epoch FROM coalesce(" column ", '0')) * 1000000)::bigint"

static Datum
column(int row, int number, bool *isnull)
{
	return SPI_getbinval(SPI_tuptable->vals[row], SPI_tuptable->tupdesc, number + 1, isnull);
}

static AqPropagation *
known(List *list, int64 id)
{
	ListCell   *lc;

	foreach(lc, list)
		if (((AqPropagation *) lfirst(lc))->id == id)
			return lfirst(lc);
	return NULL;
}

static AqPropagation *
read_row(int row, List *before)
{
	AqPropagation *schedule = palloc0(sizeof(AqPropagation));
	const AqPropagation *old;
	Datum		destination;
	Datum		failed;
	bool		isnull;

	schedule->id = DatumGetInt64(column(row, ROW_ID, &isnull));
	schedule->queue_id = DatumGetInt32(column(row, ROW_QUEUE, &isnull));
	destination = column(row, ROW_DESTINATION, &isnull);
	schedule->destination = isnull ? NULL : TextDatumGetCString(destination);
	schedule->remote = !isnull && aq_propagation_server(schedule->destination) != NULL;
	schedule->most = schedule->remote ? AQ_PROPAGATION_FIRST : AQ_PROPAGATION_BATCH;
	schedule->role = DatumGetObjectId(column(row, ROW_ROLE, &isnull));
	schedule->start = DatumGetTimestampTz(column(row, ROW_START, &isnull));
	schedule->duration = DatumGetInt64(column(row, ROW_DURATION, &isnull));
	schedule->every = DatumGetInt64(column(row, ROW_EVERY, &isnull));
	schedule->latency = DatumGetInt64(column(row, ROW_LATENCY, &isnull));
	schedule->failures = DatumGetInt32(column(row, ROW_FAILURES, &isnull));
	old = known(before, schedule->id);
	if (old != NULL)
	{
		schedule->unsaved = old->unsaved;
		schedule->most = old->most;
	}
	/* a schedule that was altered is tried at once, but not because this process is new */
	failed = column(row, ROW_FAILED, &isnull);
	if (old == NULL && schedule->failures > 0 && !isnull)
		schedule->not_before = Min(DatumGetTimestampTz(failed), GetCurrentTimestamp()) + aq_propagation_pause(schedule->failures);
	if (old != NULL && schedule->failures > 0 && schedule->failures == old->failures)
		schedule->not_before = old->not_before;
	return schedule;
}

/* Reads the enabled schedules. */
void
aq_propagation_reload(void)
{
	MemoryContext new = AllocSetContextCreate(TopMemoryContext, "pgaq schedules", ALLOCSET_SMALL_SIZES);
	List	   *read = NIL;

	(void) aq_sql_run("SELECT schedule_id, queue_id, destination, role::oid, start_time, " MICROSECONDS("duration") ", "
					  MICROSECONDS("every") ", " MICROSECONDS("latency") ", failures, last_error_time "
					  "FROM aq_internal.propagation WHERE enabled ORDER BY queue_id, schedule_id",
					  0, NULL, NULL, NULL, true);
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		MemoryContext old = MemoryContextSwitchTo(new);

		read = lappend(read, read_row(i, schedules));
		MemoryContextSwitchTo(old);
	}
	SPI_finish();
	if (context != NULL)
		MemoryContextDelete(context);
	context = new;
	schedules = read;
}

static void
change(const char *command, int64 id)
{
	Oid			type = INT8OID;
	Datum		value = Int64GetDatum(id);

	(void) aq_sql_run(command, 1, &type, &value, NULL, false);
}

/* the pause after this number of failures, microseconds */
int64
aq_propagation_pause(int failures)
{
	return failures > 9 ? LAST_PAUSE : Min(FIRST_PAUSE << (failures - 1), LAST_PAUSE);
}

/* what a session has locked is not written */
#define UNLOCKED "(SELECT schedule_id FROM aq_internal.propagation WHERE schedule_id = $1 FOR UPDATE SKIP LOCKED)"

/* Records a failure; returns whether the schedule is disabled now. */
bool
aq_propagation_failed(AqPropagation *schedule, const char *error, bool may_disable)
{
	Oid			types[] = {INT8OID, TEXTOID, BOOLOID};
	Datum		values[] = {Int64GetDatum(schedule->id), CStringGetTextDatum(error), BoolGetDatum(may_disable)};
	bool		isnull,
				written;

	(void) aq_sql_run(psprintf("UPDATE aq_internal.propagation SET failures = failures + 1, last_error = $2, "
							   "last_error_time = clock_timestamp(), enabled = enabled AND NOT ($3 AND failures + 1 >= %d) "
							   "WHERE schedule_id = " UNLOCKED " RETURNING failures", AQ_PROPAGATION_FAILURES),
					  lengthof(types), types, values, NULL, true);
	written = SPI_processed == 1;
	if (written)
		schedule->failures = DatumGetInt32(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull));
	SPI_finish();
	if (!written || !may_disable || schedule->failures < AQ_PROPAGATION_FAILURES)
		return false;
	schedules = list_delete_ptr(schedules, schedule);
	return true;
}

void
aq_propagation_recovered(AqPropagation *schedule)
{
	schedule->failures = 0;
	change("UPDATE aq_internal.propagation SET failures = 0 WHERE schedule_id = " UNLOCKED, schedule->id);
}

bool
aq_propagation_is_unsaved(const AqPropagation *schedule)
{
	return schedule->unsaved.batches > 0;
}

/* A row that a session is changing is written the next time. */
void
aq_propagation_save(AqPropagation *schedule)
{
	const AqPropagated *done = &schedule->unsaved;

	change(psprintf("UPDATE aq_internal.propagation SET messages = messages + " INT64_FORMAT ", bytes = bytes + " INT64_FORMAT
					", batches = batches + " INT64_FORMAT ", elapsed = elapsed + " INT64_FORMAT
					", most_messages = greatest(most_messages, " INT64_FORMAT "), most_bytes = greatest(most_bytes, " INT64_FORMAT
					"), last_run = clock_timestamp() WHERE schedule_id = " UNLOCKED,
					done->messages, done->bytes, done->batches, done->elapsed, done->most_messages, done->most_bytes),
		   schedule->id);
	schedule->unsaved = (AqPropagated) {0};
}

/* --- windows ------------------------------------------------------------------------------------ */

/*
 * Is a window of the schedule open?  *change: when that changes, 0: never.  A
 * schedule without a duration has windows without end, one without "every" has
 * one window.
 */
bool
aq_propagation_is_open(const AqPropagation *schedule, TimestampTz now, TimestampTz *change)
{
	TimestampTz begin = schedule->start;

	*change = 0;
	if (now < begin)
	{
		*change = begin;
		return false;
	}
	if (schedule->duration == 0)
		return true;
	if (schedule->every > 0)
		begin += (now - begin) / schedule->every * schedule->every;
	if (now < begin + schedule->duration)
	{
		*change = begin + schedule->duration;
		return true;
	}
	if (schedule->every > 0)
		*change = begin + schedule->every;
	return false;
}

/* --- routes ---------------------------------------------------------------------------------------- */

static bool
has_own_schedule(int32 queue_id, const char *address)
{
	ListCell   *lc;

	foreach(lc, schedules)
	{
		const AqPropagation *schedule = lfirst(lc);

		if (schedule->queue_id == queue_id && schedule->destination != NULL && strcmp(schedule->destination, address) == 0)
			return true;
	}
	return false;
}

static bool
serves(const AqPropagation *schedule, const char *address)
{
	const char *server = aq_propagation_server(address);

	if (schedule->destination != NULL && schedule->destination[0] != '@')
		return strcmp(schedule->destination, address) == 0;
	if (schedule->destination != NULL ? server == NULL || strcmp(schedule->destination + 1, server) != 0 : server != NULL)
		return false;
	return !has_own_schedule(schedule->queue_id, address);
}

static AqRoute *
make_route(AqPropagation *schedule, const char *consumer, const char *destination, char *recipient)
{
	AqRoute    *route = palloc(sizeof(AqRoute));

	*route = (AqRoute) {.schedule = schedule, .consumer = consumer != NULL ? pstrdup(consumer) : NULL,
		.destination = pstrdup(destination), .recipient = recipient};
	return route;
}

static List *
add_routes(List *routes, AqPropagation *schedule)
{
	AqQueue    *queue = aq_catalog_get_by_id(schedule->queue_id, true);

	queue_missing |= queue == NULL;
	if (queue == NULL)
		return routes;
	if (!queue->multi)
		return schedule->destination == NULL ? routes : lappend(routes, make_route(schedule, NULL, schedule->destination, NULL));
	for (int i = 0; i < queue->nconsumers; i++)
	{
		const char *name = queue->consumers[i].name;
		char	   *agent;
		const char *address = name != NULL ? aq_address_of(name, &agent) : NULL;

		if (address != NULL && serves(schedule, address))
			routes = lappend(routes, make_route(schedule, name, address, agent));
	}
	return routes;
}

/* Are there schedules that went with their queues? */
bool
aq_propagation_is_orphan(void)
{
	return queue_missing;
}

/* The sources and destinations of all schedules. */
List *
aq_propagation_routes(void)
{
	List	   *routes = NIL;
	ListCell   *lc;

	queue_missing = false;
	foreach(lc, schedules)
		routes = add_routes(routes, lfirst(lc));
	return routes;
}
