/*-------------------------------------------------------------------------
 *
 * turn.c
 *	  What the scheduler does for a schedule that is due.
 *
 * One transaction locks the schedule's row, enqueues the messages as the role
 * that made the schedule, and writes the next time into the row.  So no time
 * gives two messages, and none is lost, wherever the process or the server
 * ends.
 *
 * The messages are enqueued as the role, in an operation restricted like
 * PostgreSQL's maintenance commands.  Users' code, that is rules of subscribers and
 * constraints of payload types, runs with its author's privileges, as in any
 * session that enqueues.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "schedule/schedule_private.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

/* catch_up = skip: a time counts as missed when it is over for longer than this */
#define ON_TIME (60 * USECS_PER_SEC)

/* catch_up = all: messages in a transaction, and the number of missed times that are made up for */
#define BATCH 100
#define MAX_CAUGHT_UP 1000

/* the pause after a failure, which doubles with each further one */
#define FIRST_PAUSE (1 * USECS_PER_SEC)
#define LONGEST_PAUSE (300 * USECS_PER_SEC)

typedef struct Turn
{
	TimestampTz times[BATCH];	/* that get a message now */
	int			n;
	TimestampTz next;			/* the next time of the schedule */
} Turn;

/* --- which times are due ---------------------------------------------------------------- */

/* The oldest of the last count times that are over. */
static TimestampTz
oldest_to_catch_up(const AqSchedule *s, TimestampTz now, int most)
{
	TimestampTz *ring = palloc(most * sizeof(TimestampTz));
	TimestampTz time = s->next_run;
	int64		n = 0;

	for (; time <= now; time = aq_timing_next(&s->timing, time))
	{
		ring[n++ % most] = time;
		CHECK_FOR_INTERRUPTS();
	}
	time = n == 0 ? s->next_run : ring[n > most ? n % most : 0];
	pfree(ring);
	return time;
}

static void
choose_all(const AqSchedule *s, TimestampTz now, Turn *turn)
{
	turn->n = 0;
	turn->next = oldest_to_catch_up(s, now, MAX_CAUGHT_UP);
	while (turn->next <= now && turn->n < BATCH)
	{
		turn->times[turn->n++] = turn->next;
		turn->next = aq_timing_next(&s->timing, turn->next);
	}
}

/* Only the last time that is over can get a message. */
static void
choose_last(const AqSchedule *s, TimestampTz now, Turn *turn)
{
	turn->times[0] = oldest_to_catch_up(s, now, 1);
	turn->next = aq_timing_next(&s->timing, turn->times[0]);
	turn->n = strcmp(s->catch_up, "one") == 0 || now - turn->times[0] <= ON_TIME;
}

static void
choose(const AqSchedule *s, Turn *turn)
{
	TimestampTz now = GetCurrentTimestamp();

	if (strcmp(s->catch_up, "all") == 0)
		choose_all(s, now, turn);
	else
		choose_last(s, now, turn);
}

/* --- enqueueing ------------------------------------------------------------------------------ */

static Datum
times_array(int n, const TimestampTz *times)
{
	Datum	   *values = palloc(n * sizeof(Datum));

	for (int i = 0; i < n; i++)
		values[i] = TimestampTzGetDatum(times[i]);
	return PointerGetDatum(construct_array(values, n, TIMESTAMPTZOID, sizeof(TimestampTz), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
}

/* The messages were enqueued by the queue's name: another queue may have got it since the row was read. */
static void
check_queue(const AqSchedule *s)
{
	if (strcmp(aq_catalog_get_by_id(s->queue_id, false)->name, s->queue) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("queue \"%s\" was renamed by a concurrent transaction", s->queue)));
}

/*
 * Enqueues a message for each of the times, as the current role; returns their
 * ids.  They have one producer, which keeps their order.
 */
ArrayType *
aq_turn_message(const AqSchedule *s, int n, const TimestampTz *times)
{
	Oid			types[] = {JSONBOID, TEXTOID, TIMESTAMPTZARRAYOID};
	Datum		values[] = {JsonbPGetDatum(s->options), CStringGetTextDatum(s->name), times_array(n, times)};
	MemoryContext context = CurrentMemoryContext;
	struct varlena *options;
	ArrayType  *ids;
	bool		isnull;

	aq_sql_run("SELECT jsonb_agg($1 || jsonb_build_object('properties', COALESCE($1 -> 'properties', '{}') || "
			   "jsonb_build_object('schedule', $2, 'scheduled_at', t)) ORDER BY t) FROM unnest($3) t",
			   lengthof(types), types, values, NULL, true);
	MemoryContextSwitchTo(context);
	options = PG_DETOAST_DATUM_COPY(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull));
	SPI_finish();
	MemoryContextSwitchTo(context);
	ids = aq_enqueue_repeated("aq.run_schedule()", s->queue, s->payload, options, n,
							  aq_producer_own(AQ_PRODUCER_SCHEDULE, (uint64) s->id));
	check_queue(s);
	return ids;
}

static void
enqueue_as_owner(const AqSchedule *s, const Turn *turn)
{
	Oid			user;
	int			context;

	if (!SearchSysCacheExists1(AUTHOID, ObjectIdGetDatum(s->owner)))
		ereport(ERROR,
				aq_error(AQ_ERR_SCHEDULE_OWNER, "the role that made schedule \"%s\" does not exist", s->name),
				errhint("Create the schedule again as another role."));
	GetUserIdAndSecContext(&user, &context);
	SetUserIdAndSecContext(s->owner, context | SECURITY_LOCAL_USERID_CHANGE | SECURITY_RESTRICTED_OPERATION);
	(void) aq_turn_message(s, turn->n, turn->times);
	SetUserIdAndSecContext(user, context);
}

/* --- failures ---------------------------------------------------------------------------------- */

static int64
pause_after(int failures)
{
	return Min(FIRST_PAUSE << Min(failures, 16), LONGEST_PAUSE);
}

/*
 * The transaction was rolled back: records why.  Only errors of what the schedule
 * is to do disable it, not those of the server.
 */
static void
record_failure(const AqSchedule *s, int sqlstate, const char *message)
{
	bool		disable = s->failures + 1 >= AQ_SCHEDULE_MAX_FAILURES && aq_error_is_of_timed_user(sqlstate);
	char	   *description = psprintf("%s: %s", unpack_sql_state(sqlstate), message);
	bool		recorded;

	aq_job_begin();
	recorded = aq_job_lock_extension() && aq_schedule_row_failed(s, description, pause_after(s->failures), disable);
	aq_job_commit(false);
	if (!recorded || (s->failures > 0 && !disable) || !aq_trouble_may_log(s->owner))
		return;
	ereport(LOG,
			(errmsg(disable ? "schedule \"%s\" is disabled after %d failures in a row" : "schedule \"%s\" failed", s->name,
					s->failures + 1),
			 errdetail_internal("%s", aq_error_clip(description))));
}

/* --- the turn ----------------------------------------------------------------------------------- */

/* In a transaction of its own.  Sets *schedule in the given context; NULL: not due, or locked. */
static void
take(const char *name, AqSchedule **schedule, MemoryContext context)
{
	Turn		turn;

	aq_job_begin();
	MemoryContextSwitchTo(context);
	if (aq_job_lock_extension())
		*schedule = aq_schedule_row_read(name, AQ_SCHEDULE_IF_DUE);
	if (*schedule != NULL)
	{
		aq_point("schedule-locked");
		aq_timing_prepare(&(*schedule)->timing);
		choose(*schedule, &turn);
		if (turn.n > 0)
			enqueue_as_owner(*schedule, &turn);
		aq_point("schedule-enqueued");
		aq_schedule_row_ran(*schedule, turn.n, turn.next);
		aq_point("schedule-written");
	}
	aq_job_commit(false);
	aq_point("schedule-committed");
}

/*
 * Takes the schedule's turn, if it is due and no other session has locked it;
 * otherwise returns false.  The context is reset by the caller.
 */
bool
aq_turn_take(const AqScheduleDue *due, MemoryContext context)
{
	AqSchedule *volatile schedule = NULL;

	aq_fair_begin(due->owner, due->id);
	PG_TRY();
	{
		take(due->name, (AqSchedule **) &schedule, context);
		aq_fair_end(schedule != NULL);
	}
	PG_CATCH();
	{
		ErrorData  *error;

		aq_fair_end(schedule != NULL);
		MemoryContextSwitchTo(context);
		if (schedule == NULL)
			PG_RE_THROW();
		error = CopyErrorData();
		FlushErrorState();
		AbortCurrentTransaction();
		MemoryContextSwitchTo(context);
		record_failure(schedule, error->sqlerrcode, aq_fair_message(error));
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	return schedule != NULL;
}

/* A scheduler was ended in the turn of this schedule. */
void
aq_turn_has_ended(int64 id)
{
	MemoryContext context = CurrentMemoryContext;
	AqSchedule *schedule = NULL;

	aq_job_begin();
	MemoryContextSwitchTo(context);
	if (aq_job_lock_extension())
		schedule = aq_schedule_row_find(id);
	aq_job_commit(false);
	MemoryContextSwitchTo(context);
	if (schedule != NULL)
		record_failure(schedule, ERRCODE_QUERY_CANCELED, aq_fair_too_long());
	MemoryContextSwitchTo(context);
}
