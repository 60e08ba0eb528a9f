/*-------------------------------------------------------------------------
 *
 * schedule_calls.c
 *	  The functions for users: aq.schedule and others.
 *
 * A schedule belongs to the role that made it, whose privileges its messages
 * need.  Members of the role can change it; the queue's owner can stop it and
 * drop it.  To all others it does not exist.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "schedule/schedule_private.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

/* arguments that aq.schedule and aq.alter_schedule have in common, from "cron" on */
enum
{
	ARG_CRON, ARG_EVERY, ARG_ZONE, ARG_CATCH_UP, ARG_START, ARG_UNTIL,
	ARG_PRIORITY, ARG_DELAY, ARG_EXPIRATION, ARG_CORRELATION, ARG_RECIPIENTS, ARG_EXCEPTION_QUEUE, ARG_PROPERTIES,
	ARG_COMMENT, ARG_IF_NOT_EXISTS
};

#define NOPTIONS (ARG_PROPERTIES - ARG_PRIORITY + 1)

typedef struct Arguments
{
	FunctionCallInfo fcinfo;
	int			first;			/* number of argument "cron" */
} Arguments;

static bool
is_given(const Arguments *args, int arg)
{
	return !args->fcinfo->args[args->first + arg].isnull;
}

static Datum
value_of(const Arguments *args, int arg)
{
	return args->fcinfo->args[args->first + arg].value;
}

/* --- rights ----------------------------------------------------------------------------- */

/* May the current role change the schedule, or, if it owns the queue, stop it? */
static bool
is_allowed(const AqSchedule *s, bool as_queue_owner)
{
	if (superuser() || has_privs_of_role(GetUserId(), s->owner))
		return true;
	return as_queue_owner && aq_privilege_allows(aq_catalog_get_by_id(s->queue_id, false), AQ_RIGHT_OWNER);
}

static AqSchedule *
read_allowed(const char *name, bool as_queue_owner, AqScheduleLock lock)
{
	AqSchedule *s = aq_schedule_row_read(name, lock);

	if (s == NULL || !is_allowed(s, as_queue_owner))
		ereport(ERROR,
				aq_error(AQ_ERR_SCHEDULE_UNDEFINED, "schedule \"%s\" does not exist", name),
				errhint("The view aq.schedules lists those that you can use."));
	return s;
}

/* The schedule that the first argument names, locked.  Other roles must not lock it, not even for a moment. */
static AqSchedule *
get(FunctionCallInfo fcinfo, const char *command, bool as_queue_owner)
{
	char	   *name;

	aq_session_require_write(command);
	name = aq_args_name(fcinfo, 0, "schedule_name");
	(void) read_allowed(name, as_queue_owner, AQ_SCHEDULE_NO_LOCK);
	return read_allowed(name, as_queue_owner, AQ_SCHEDULE_WAIT);
}

/* --- arguments ------------------------------------------------------------------------- */

static const char *
read_catch_up(const Arguments *args)
{
	char	   *catch_up = text_to_cstring(DatumGetTextPP(value_of(args, ARG_CATCH_UP)));

	if (strcmp(catch_up, "skip") != 0 && strcmp(catch_up, "one") != 0 && strcmp(catch_up, "all") != 0)
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "catch-up policy \"%s\" does not exist", catch_up),
				errhint("The policies are skip, one and all."));
	return catch_up;
}

/* Replaces what is given; returns false if nothing is. */
static bool
read_timing(const Arguments *args, AqTiming *timing)
{
	if (is_given(args, ARG_CRON) || is_given(args, ARG_EVERY))
	{
		timing->cron = is_given(args, ARG_CRON) ? text_to_cstring(DatumGetTextPP(value_of(args, ARG_CRON))) : NULL;
		timing->every = is_given(args, ARG_EVERY) ? DatumGetIntervalP(value_of(args, ARG_EVERY)) : NULL;
		/* an interval begins now, unless it is to begin later */
		if (timing->every != NULL)
			timing->start = Max(timing->start, GetCurrentTimestamp());
	}
	if (is_given(args, ARG_ZONE))
		timing->zone_name = text_to_cstring(DatumGetTextPP(value_of(args, ARG_ZONE)));
	if (is_given(args, ARG_START))
		timing->start = DatumGetTimestampTz(value_of(args, ARG_START));
	if (is_given(args, ARG_UNTIL))
		timing->until = DatumGetTimestampTz(value_of(args, ARG_UNTIL));
	for (int i = ARG_CRON; i <= ARG_UNTIL; i++)
		if (i != ARG_CATCH_UP && is_given(args, i))
			return true;
	return false;
}

static TimestampTz
first_time(AqTiming *timing)
{
	TimestampTz next;

	aq_timing_prepare(timing);
	next = aq_timing_next(timing, GetCurrentTimestamp());
	if (next == DT_NOEND)
		ereport(ERROR,
				aq_error(AQ_ERR_SCHEDULE_TIMES, "the schedule has no time in the future"),
				errhint("Choose a later \"until\"."));
	return next;
}

/*
 * The options of the message: those given, and others of "old".  *as_array:
 * the same as argument "options" of aq.enqueue_array.
 */
static Jsonb *
read_message_options(const Arguments *args, Jsonb *old, struct varlena **as_array)
{
	Oid			types[] = {INT4OID, INTERVALOID, INTERVALOID, TEXTOID, TEXTARRAYOID, TEXTOID, JSONBOID, JSONBOID};
	Datum		values[NOPTIONS + 1];
	char		nulls[NOPTIONS + 2] = {0};
	MemoryContext context = CurrentMemoryContext;
	int			nest = aq_run_as_begin();
	Jsonb	   *options;
	bool		isnull;

	for (int i = 0; i < NOPTIONS; i++)
	{
		values[i] = value_of(args, ARG_PRIORITY + i);
		nulls[i] = is_given(args, ARG_PRIORITY + i) ? ' ' : 'n';
	}
	values[NOPTIONS] = JsonbPGetDatum(old);
	nulls[NOPTIONS] = old == NULL ? 'n' : ' ';
	if (is_given(args, ARG_PROPERTIES) && !JB_ROOT_IS_OBJECT(DatumGetJsonbP(value_of(args, ARG_PROPERTIES))))
		ereport(ERROR, aq_error(AQ_ERR_OPTION_INVALID, "\"properties\" must be a JSON object"));
	aq_sql_run("SELECT o, jsonb_build_array(o) FROM (SELECT COALESCE($8, '{}') || COALESCE(jsonb_object_agg(k, v) "
			   "FILTER (WHERE v IS NOT NULL), '{}') FROM (VALUES ('priority', to_jsonb($1)), ('delay', to_jsonb($2)), "
			   "('expiration', to_jsonb($3)), ('correlation', to_jsonb($4)), ('recipients', to_jsonb($5)), "
			   "('exception_queue', to_jsonb($6)), ('properties', $7)) p(k, v)) a(o)",
			   NOPTIONS + 1, types, values, nulls, true);
	MemoryContextSwitchTo(context);
	options = (Jsonb *) PG_DETOAST_DATUM_COPY(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull));
	*as_array = (struct varlena *) PG_DETOAST_DATUM_COPY(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 2, &isnull));
	SPI_finish();
	MemoryContextSwitchTo(context);
	aq_run_as_end(nest);
	return options;
}

/* --- aq.schedule ---------------------------------------------------------------------------- */

/* The queue, which no session can drop before the transaction has ended. */
static AqQueue *
lock_queue(const char *name)
{
	AqQueue    *queue = aq_catalog_get(name, AQ_RIGHT_ENQUEUE);

	(void) aq_queue_lock(queue->id, AccessShareLock, true);
	return aq_catalog_get(name, AQ_RIGHT_ENQUEUE);
}

/* Returns false if there is a schedule of this name. */
static bool
insert(const AqSchedule *s, const Arguments *args)
{
	Oid			types[] = {TEXTOID, INT4OID, OIDOID, TEXTOID, JSONBOID, TEXTOID, INTERVALOID, TEXTOID, TEXTOID,
		TIMESTAMPTZOID, TIMESTAMPTZOID, TIMESTAMPTZOID, TEXTOID};
	Datum		values[] = {CStringGetTextDatum(s->name), Int32GetDatum(s->queue_id), ObjectIdGetDatum(s->owner),
		PointerGetDatum(s->payload), JsonbPGetDatum(s->options),
		s->timing.cron != NULL ? CStringGetTextDatum(s->timing.cron) : (Datum) 0, IntervalPGetDatum(s->timing.every),
		CStringGetTextDatum(s->timing.zone_name), CStringGetTextDatum(s->catch_up), TimestampTzGetDatum(s->timing.start),
		TimestampTzGetDatum(s->timing.until), TimestampTzGetDatum(s->next_run), value_of(args, ARG_COMMENT)};
	char		nulls[] = "             ";

	nulls[3] = s->payload == NULL ? 'n' : ' ';
	nulls[5] = s->timing.cron == NULL ? 'n' : ' ';
	nulls[6] = s->timing.every == NULL ? 'n' : ' ';
	nulls[10] = s->timing.until == DT_NOEND ? 'n' : ' ';
	nulls[12] = is_given(args, ARG_COMMENT) ? ' ' : 'n';
	return aq_queue_lock_insert("schedule", s->name,
								"INSERT INTO aq_internal.schedule (schedule_name, queue_id, owner, payload, options, cron, every, "
								"time_zone, catch_up, start_at, until, next_run, comment) "
								"VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, NULLIF($13, '')) ON CONFLICT DO NOTHING",
								lengthof(types), types, values, nulls);
}

static Datum
create(FunctionCallInfo fcinfo, Oid payload_type)
{
	Arguments	args = {fcinfo, 3};
	AqSchedule	s = {.timing = {.zone_name = pg_get_timezone_name(session_timezone), .until = DT_NOEND}};
	struct varlena *options;

	aq_session_require_write("aq.schedule()");
	s.name = aq_args_name(fcinfo, 0, "schedule_name");
	aq_args_check_name(s.name, "schedule");
	s.queue = aq_args_name(fcinfo, 1, "queue_name");
	s.owner = GetUserId();
	s.timing.start = GetCurrentTimestamp();
	(void) read_timing(&args, &s.timing);
	aq_args_require(fcinfo, args.first + ARG_CATCH_UP, "catch_up");
	s.catch_up = unconstify(char *, read_catch_up(&args));
	s.next_run = first_time(&s.timing);
	s.options = read_message_options(&args, NULL, &options);
	s.queue_id = lock_queue(s.queue)->id;
	s.payload = aq_enqueue_check_later("aq.schedule()", s.queue, payload_type, fcinfo->args[2].value, fcinfo->args[2].isnull,
									   options);
	if (insert(&s, &args))
	{
		aq_role_check_rows(s.owner, "schedule", "owner", "schedules", "End some of them");
		PG_RETURN_TIMESTAMPTZ(s.next_run);
	}
	if (!aq_args_if_not_exists(fcinfo, args.first + ARG_IF_NOT_EXISTS, "schedule", s.name))
		ereport(ERROR,
				aq_error(AQ_ERR_SCHEDULE_EXISTS, "schedule \"%s\" already exists", s.name),
				errhint("To change it, use aq.alter_schedule."));
	PG_RETURN_NULL();
}

PG_FUNCTION_INFO_V1(aq_schedule_calls_create_text);
Datum
aq_schedule_calls_create_text(PG_FUNCTION_ARGS)
{
	return create(fcinfo, TEXTOID);
}

PG_FUNCTION_INFO_V1(aq_schedule_calls_create_typed);
Datum
aq_schedule_calls_create_typed(PG_FUNCTION_ARGS)
{
	return create(fcinfo, get_fn_expr_argtype(fcinfo->flinfo, 2));
}

/* --- aq.alter_schedule ------------------------------------------------------------------------ */

static void
update(const AqSchedule *s, const Arguments *args)
{
	Oid			types[] = {TEXTOID, TEXTOID, JSONBOID, TEXTOID, INTERVALOID, TEXTOID, TEXTOID, TIMESTAMPTZOID, TIMESTAMPTZOID,
		TIMESTAMPTZOID, TEXTOID};
	Datum		values[] = {CStringGetTextDatum(s->name), PointerGetDatum(s->payload), JsonbPGetDatum(s->options),
		s->timing.cron != NULL ? CStringGetTextDatum(s->timing.cron) : (Datum) 0, IntervalPGetDatum(s->timing.every),
		CStringGetTextDatum(s->timing.zone_name), CStringGetTextDatum(s->catch_up), TimestampTzGetDatum(s->timing.start),
		TimestampTzGetDatum(s->timing.until), TimestampTzGetDatum(s->next_run), value_of(args, ARG_COMMENT)};
	char		nulls[] = "           ";

	nulls[1] = s->payload == NULL ? 'n' : ' ';
	nulls[3] = s->timing.cron == NULL ? 'n' : ' ';
	nulls[4] = s->timing.every == NULL ? 'n' : ' ';
	nulls[8] = s->timing.until == DT_NOEND ? 'n' : ' ';
	nulls[9] = s->next_run == DT_NOEND ? 'n' : ' ';
	nulls[10] = is_given(args, ARG_COMMENT) ? ' ' : 'n';
	aq_sql_change("UPDATE aq_internal.schedule SET payload = $2, options = $3, cron = $4, every = $5, time_zone = $6, "
				  "catch_up = $7, start_at = $8, until = $9, next_run = $10, comment = NULLIF(COALESCE($11, comment), ''), "
				  "failures = 0, retry_at = NULL, disabled = false WHERE schedule_name = $1",
				  lengthof(types), types, values, nulls);
}

static bool
is_message_given(const Arguments *args)
{
	for (int i = ARG_PRIORITY; i <= ARG_PROPERTIES; i++)
		if (is_given(args, i))
			return true;
	return args->fcinfo->args[1].isnull == false;
}

PG_FUNCTION_INFO_V1(aq_schedule_calls_alter);
Datum
aq_schedule_calls_alter(PG_FUNCTION_ARGS)
{
	Arguments	args = {fcinfo, 2};
	AqSchedule *s = get(fcinfo, "aq.alter_schedule()", false);

	if (read_timing(&args, &s->timing))
		s->next_run = first_time(&s->timing);
	if (is_given(&args, ARG_CATCH_UP))
		s->catch_up = unconstify(char *, read_catch_up(&args));
	if (is_message_given(&args))
	{
		struct varlena *options;
		text	   *payload = PG_ARGISNULL(1) ? s->payload : PG_GETARG_TEXT_PP(1);

		s->options = read_message_options(&args, s->options, &options);
		s->payload = aq_enqueue_check_later("aq.alter_schedule()", s->queue, TEXTOID, PointerGetDatum(payload),
											payload == NULL, options);
	}
	update(s, &args);
	if (s->next_run == DT_NOEND)
		PG_RETURN_NULL();
	PG_RETURN_TIMESTAMPTZ(s->next_run);
}

/* --- the others --------------------------------------------------------------------------------- */

static void
change(const AqSchedule *s, const char *command)
{
	Oid			type = TEXTOID;
	Datum		value = CStringGetTextDatum(s->name);

	aq_sql_change(command, 1, &type, &value, NULL);
}

PG_FUNCTION_INFO_V1(aq_schedule_calls_drop);
Datum
aq_schedule_calls_drop(PG_FUNCTION_ARGS)
{
	change(get(fcinfo, "aq.unschedule()", true), "DELETE FROM aq_internal.schedule WHERE schedule_name = $1");
	PG_RETURN_VOID();
}

PG_FUNCTION_INFO_V1(aq_schedule_calls_pause);
Datum
aq_schedule_calls_pause(PG_FUNCTION_ARGS)
{
	change(get(fcinfo, "aq.stop_schedule()", true), "UPDATE aq_internal.schedule SET paused = true WHERE schedule_name = $1");
	PG_RETURN_VOID();
}

PG_FUNCTION_INFO_V1(aq_schedule_calls_resume);
Datum
aq_schedule_calls_resume(PG_FUNCTION_ARGS)
{
	AqSchedule *s = get(fcinfo, "aq.start_schedule()", true);

	change(s, "UPDATE aq_internal.schedule SET paused = false, disabled = false, failures = 0, retry_at = NULL "
		   "WHERE schedule_name = $1");
	if (s->next_run == DT_NOEND)
		PG_RETURN_NULL();
	PG_RETURN_TIMESTAMPTZ(s->next_run);
}

/* Enqueues the message now, in the caller's transaction and with its privileges. */
PG_FUNCTION_INFO_V1(aq_schedule_calls_run);
Datum
aq_schedule_calls_run(PG_FUNCTION_ARGS)
{
	AqSchedule *s = get(fcinfo, "aq.run_schedule()", true);
	TimestampTz now = GetCurrentTimestamp();
	ArrayType  *ids = aq_turn_message(s, 1, &now);
	Datum	   *elements;
	bool	   *nulls;
	int			n;

	deconstruct_array(ids, UUIDOID, UUID_LEN, false, TYPALIGN_CHAR, &elements, &nulls, &n);
	if (n == 0 || nulls[0])
		PG_RETURN_NULL();
	PG_RETURN_DATUM(elements[0]);
}
