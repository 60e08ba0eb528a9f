/*-------------------------------------------------------------------------
 *
 * propagation_calls.c
 *	  aq.create_propagation, aq.alter_propagation and aq.drop_propagation: rows of
 *	  aq_internal.propagation.
 *
 * The role that schedules must be able to dequeue for the consumer and to enqueue
 * at the destination; the process checks the same with each batch.  The queue's
 * owner can change and end all of its schedules, any other role its own.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "propagate/propagate_private.h"

#include "catalog/pg_type.h"
#include "commands/sequence.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

/* the arguments of aq.create_propagation and aq.alter_propagation */
enum
{
	ARG_QUEUE, ARG_DESTINATION, ARG_LATENCY, ARG_START, ARG_DURATION, ARG_EVERY,
	ARG_RULE, ARG_SUBSCRIBE,	/* of aq.create_propagation */
	ARG_ENABLED = ARG_RULE		/* of aq.alter_propagation */
};

/* what the end of this transaction announces */
static struct
{
	bool		schedules;		/* changes of them */
	bool		streams;		/* changes of schedules with streams */
	bool		batches;		/* for streams */
	bool		arrivals;		/* of such batches */
}			changed;

/* --- the end of the transaction ------------------------------------------------------------------- */

static void
forget(void)
{
	memset(&changed, 0, sizeof(changed));
}

static void
tell_process(void)
{
	if (changed.schedules)
		aq_propagator_area_notify();
	if (changed.streams)
		aq_link_changed();
	if (changed.batches)
		aq_link_wake();
	if (changed.arrivals)
		aq_propagator_area_arrived();
	forget();
}

static void
refuse_prepare(void)
{
	if (changed.schedules)
		ereport(ERROR,
				aq_error(AQ_ERR_PREPARE_WITH_DDL, "cannot PREPARE a transaction that has changed propagation schedules"));
}

static const AqXactOps changes_end = {
	.commit = tell_process,
	.pre_prepare = refuse_prepare,
	.abort = forget,
};

void
aq_propagation_calls_init(void)
{
	aq_xact_register(AQ_XACT_PROPAGATION, &changes_end);
}

/* Schedules were changed; remote: some with another database as destination. */
void
aq_propagation_calls_note_change(bool remote)
{
	aq_jobs_ensure_worker();
	if (remote)
		aq_link_prepare();
	changed.schedules = true;
	changed.streams |= remote;
}

/* A batch was taken for another database. */
void
aq_propagation_calls_note_batch(void)
{
	aq_link_prepare();
	changed.batches = true;
}

/* Batches have arrived in another database. */
void
aq_propagation_calls_note_arrival(void)
{
	changed.arrivals = true;
}

/* --- arguments --------------------------------------------------------------------------------------- */

static char *
name_arg(FunctionCallInfo fcinfo, int arg)
{
	return PG_ARGISNULL(arg) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(arg));
}

static char *
queue_arg(FunctionCallInfo fcinfo)
{
	char	   *name = name_arg(fcinfo, ARG_QUEUE);

	if (name == NULL)
		ereport(ERROR, aq_error(AQ_ERR_ARGUMENT_NULL, "\"queue_name\" must not be null"));
	return name;
}

/* A destination in an error. */
static const char *
spell(const char *destination)
{
	return destination != NULL ? psprintf("\"%s\"", destination) : "all addresses";
}

/* The sign of an interval: 0 also for null. */
static int
sign_of(FunctionCallInfo fcinfo, int arg)
{
	Interval	zero = {0};

	return PG_ARGISNULL(arg) ? 0 : DatumGetInt32(DirectFunctionCall2(interval_cmp, PG_GETARG_DATUM(arg),
																	 IntervalPGetDatum(&zero)));
}

static void
check_times(FunctionCallInfo fcinfo)
{
	static const struct
	{
		int			arg;
		const char *name;
	}			times[] = {{ARG_LATENCY, "latency"}, {ARG_DURATION, "duration"}, {ARG_EVERY, "every"}};

	for (int i = 0; i < lengthof(times); i++)
		if (sign_of(fcinfo, times[i].arg) < 0)
			ereport(ERROR, aq_error(AQ_ERR_OPTION_INVALID, "\"%s\" must not be negative", times[i].name));
	if (!PG_ARGISNULL(ARG_START) && TIMESTAMP_NOT_FINITE(PG_GETARG_TIMESTAMPTZ(ARG_START)))
		ereport(ERROR, aq_error(AQ_ERR_OPTION_INVALID, "\"start_time\" must be finite"));
}

static void
begin_change(const char *command)
{
	aq_session_require_write(command);
	aq_session_attach();
}

/* Is it in another database? */
static bool
is_remote(const char *destination)
{
	return destination != NULL && aq_propagation_server(destination) != NULL;
}

/* Runs a function of schema aq with the rights of the caller. */
static void
call(const char *command, int nargs, const char *const *args)
{
	Oid			types[3] = {TEXTOID, TEXTOID, TEXTOID};
	Datum		values[3];
	char		nulls[3];

	for (int i = 0; i < nargs; i++)
	{
		values[i] = args[i] != NULL ? CStringGetTextDatum(args[i]) : (Datum) 0;
		nulls[i] = args[i] != NULL ? ' ' : 'n';
	}
	SPI_connect();
	if (SPI_execute_with_args(command, nargs, types, values, nulls, false, 0) != SPI_OK_SELECT)
		elog(ERROR, "could not execute \"%s\"", command);
	SPI_finish();
}

/* --- aq.create_propagation ---------------------------------------------------------------------------------------- */

static void
check_destination(int32 source, const char *source_name, Oid payload_type, const char *destination, bool same_type)
{
	AqQueue    *target;

	if (is_remote(destination))
	{
		/* whether the queue exists there is known later: no session waits for a server */
		(void) aq_link_server(aq_propagation_server(destination), GetUserId());
		return;
	}
	target = aq_catalog_get(destination, AQ_RIGHT_ENQUEUE);
	if (target->id == source)
		ereport(ERROR, aq_error(AQ_ERR_OPTION_INVALID, "queue \"%s\" cannot be its own destination", source_name));
	if (target->exception)
		ereport(ERROR, aq_error(AQ_ERR_EXCEPTION_ENQUEUE, "queue \"%s\" is an exception queue", destination));
	if (same_type && target->payload_type != payload_type)
		ereport(ERROR,
				aq_error(AQ_ERR_PAYLOAD_TYPE, "queue \"%s\" holds %s, but queue \"%s\" holds %s", source_name,
						 format_type_be(payload_type), destination, format_type_be(target->payload_type)));
}

/* Does it stand for all addresses, in this database or at a server? */
static bool
is_general(const char *destination)
{
	return destination == NULL || destination[0] == '@';
}

/* The source, which the role may read for the consumer, if there is one, else for any. */
static AqQueue *
check_source(const char *name, const char *destination)
{
	AqQueue    *queue = aq_catalog_get(name, AQ_RIGHT_ANY);
	const char *consumer = queue->multi && !is_general(destination) ? aq_address_consumer(NULL, destination) : NULL;

	if (!queue->multi && is_general(destination))
		ereport(ERROR,
				aq_error(AQ_ERR_CONSUMER_FORBIDDEN, "queue \"%s\" has a single consumer", queue->name),
				errhint("Only a topic has subscribers with addresses: name the destination queue."));
	if (!aq_queue_is_sharded(queue) && queue->table.grouping)
		ereport(ERROR,
				aq_error(AQ_ERR_FEATURE_UNSUPPORTED, "messages of queue \"%s\" cannot be propagated", queue->name),
				errdetail("Its queue table groups messages by transaction."));
	if (!aq_privilege_allows(queue, AQ_RIGHT_DEQUEUE) && (consumer == NULL || !aq_privilege_consumes(queue, consumer)))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for queue \"%s\"", queue->name),
				 errdetail("Propagation dequeues with the privileges of the role that schedules it.")));
	return queue;
}

/*
 * Schedules that form a circle and pass on all messages would move each message
 * forever.  A rule of a subscriber may end that, so circles with rules are allowed.
 * In those, in circles over other databases, and in a circle of which two sessions
 * add one half each at the same time, aq_move_properties() stops a message.
 */
static void
refuse_circle(const AqQueue *queue, const char *destination)
{
	const AqConsumer *consumer = queue->multi ? aq_catalog_consumer((AqQueue *) queue, aq_address_consumer(NULL, destination)) : NULL;
	Oid			types[] = {INT4OID, TEXTOID};
	Datum		values[] = {Int32GetDatum(queue->id), CStringGetTextDatum(destination)};
	bool		found;

	if (queue->multi && (consumer == NULL || !consumer->subscriber || consumer->rule_text != NULL))
		return;
	(void) aq_sql_run("WITH RECURSIVE reached (queue_id) AS ("
					  "SELECT queue_id FROM aq_internal.queue WHERE queue_name = $2 "
					  "UNION SELECT t.queue_id FROM reached r JOIN aq_internal.queue q ON q.queue_id = r.queue_id "
					  "JOIN aq_internal.propagation p ON p.queue_id = q.queue_id JOIN aq_internal.queue t ON t.queue_name = p.destination "
					  "WHERE NOT q.multiple_consumers OR EXISTS (SELECT FROM aq_internal.subscriber s WHERE s.queue_id = q.queue_id "
					  "AND s.consumer = '-> ' || p.destination AND s.kind = 'subscriber' AND s.rule IS NULL)) "
					  "SELECT FROM reached WHERE queue_id = $1", lengthof(types), types, values, NULL, true);
	found = SPI_processed > 0;
	SPI_finish();
	if (found)
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "propagation from queue \"%s\" to \"%s\" would form a circle", queue->name, destination),
				errdetail("Other propagation schedules lead from the destination to queue \"%s\".", queue->name),
				errhint("Propagate from a topic, with a rule that is false for messages that come from the destination."));
}

/* Returns the number of the new schedule; 0: there is one already. */
static int64
insert_row(FunctionCallInfo fcinfo, int32 queue_id, const char *destination)
{
	int64		id = nextval_internal(aq_schema_relation("propagation_id_seq"), false);
	Oid			types[8] = {INT4OID, TEXTOID, OIDOID, INTERVALOID, TIMESTAMPTZOID, INTERVALOID, INTERVALOID, INT8OID};
	Datum		values[8] = {Int32GetDatum(queue_id), 0, ObjectIdGetDatum(GetUserId()), 0, 0, 0, 0, Int64GetDatum(id)};
	char		nulls[9] = "        ";
	static const int args[8] = {-1, ARG_DESTINATION, -1, ARG_LATENCY, ARG_START, ARG_DURATION, ARG_EVERY, -1};

	for (int i = 0; i < lengthof(args); i++)
		if (args[i] >= 0)
		{
			nulls[i] = PG_ARGISNULL(args[i]) ? 'n' : ' ';
			values[i] = PG_GETARG_DATUM(args[i]);
		}
	return aq_queue_lock_insert("propagation", psprintf("%d %s", queue_id, spell(destination)),
								"INSERT INTO aq_internal.propagation (schedule_id, queue_id, destination, role, latency, start_time, duration, every) "
								"VALUES ($8, $1, $2, $3, coalesce($4, '0'), coalesce($5, clock_timestamp()), nullif($6, '0'), nullif($7, '0')) "
								"ON CONFLICT DO NOTHING", lengthof(args), types, values, nulls) ? id : 0;
}

static void
insert_link(int64 schedule)
{
	(void) aq_sql_run(psprintf("INSERT INTO aq_internal.propagation_link (schedule_id) VALUES (" INT64_FORMAT ")", schedule),
					  0, NULL, NULL, NULL, false);
}

PG_FUNCTION_INFO_V1(aq_propagation_calls_add);
Datum
aq_propagation_calls_add(PG_FUNCTION_ARGS)
{
	char	   *name = queue_arg(fcinfo);
	char	   *destination = name_arg(fcinfo, ARG_DESTINATION);
	bool		subscribe = !is_general(destination) && (PG_ARGISNULL(ARG_SUBSCRIBE) || PG_GETARG_BOOL(ARG_SUBSCRIBE));
	AqQueue    *queue;
	bool		multi;
	int32		id;
	int64		schedule;

	begin_change("aq.create_propagation()");
	check_times(fcinfo);
	queue = aq_catalog_get(name, AQ_RIGHT_ANY);
	aq_non_persistent_refuse(queue, "propagate messages of");
	multi = queue->multi;
	id = queue->id;
	/* the queue is not dropped before this transaction ends */
	(void) aq_queue_lock(id, AccessShareLock, true);
	if (multi && subscribe)
		call("SELECT aq.subscribe($1, $2, $3, if_not_exists => true)", 3,
			 (const char *[]) {name, aq_address_consumer(NULL, destination), name_arg(fcinfo, ARG_RULE)});
	else if (!PG_ARGISNULL(ARG_RULE))
		ereport(ERROR,
				aq_error(AQ_ERR_CONSUMER_FORBIDDEN, "a rule needs a topic and a subscription"),
				errhint("All messages of a queue with a single consumer are propagated."));
	queue = check_source(name, destination);
	if (destination != NULL)
		check_destination(id, name, queue->payload_type, destination, subscribe || !multi);
	if (destination != NULL && !is_remote(destination))
		refuse_circle(aq_catalog_get(name, AQ_RIGHT_ANY), destination);
	schedule = insert_row(fcinfo, id, destination);
	if (is_remote(destination) && schedule != 0)
		insert_link(schedule);
	if (schedule == 0)
		ereport(ERROR,
				aq_error(AQ_ERR_PROPAGATION_EXISTS, "queue \"%s\" already has a propagation schedule for %s", name,
						 spell(destination)),
				aq_error_hint("Change it with aq.alter_propagation.",
							  "Change it with dbms_aqadm.alter_propagation_schedule."));
	aq_role_check_rows(GetUserId(), "propagation", "role", "propagation schedules", "End some of them");
	aq_propagation_calls_note_change(is_remote(destination));
	PG_RETURN_INT64(schedule);
}

/* --- changes of a schedule --------------------------------------------------------------------------------- */

/* The number of the schedule, which the role may change. */
static int64
find_schedule(const char *name, const char *destination, bool *multi)
{
	AqQueue    *queue = aq_catalog_get(name, AQ_RIGHT_ANY);
	bool		owner = aq_privilege_allows(queue, AQ_RIGHT_OWNER);
	Oid			types[2] = {INT4OID, TEXTOID};
	Datum		values[2] = {Int32GetDatum(queue->id), destination != NULL ? CStringGetTextDatum(destination) : 0};
	char		nulls[3] = {' ', destination != NULL ? ' ' : 'n', '\0'};
	int64		id = 0;
	Oid			role = InvalidOid;
	bool		isnull;

	*multi = queue->multi;
	(void) aq_sql_run("SELECT schedule_id, role::oid FROM aq_internal.propagation WHERE queue_id = $1 AND "
					  "destination IS NOT DISTINCT FROM $2 FOR UPDATE", lengthof(types), types, values, nulls, true);
	if (SPI_processed == 1)
	{
		id = DatumGetInt64(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull));
		role = DatumGetObjectId(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 2, &isnull));
	}
	SPI_finish();
	if (id == 0)
		ereport(ERROR,
				aq_error(AQ_ERR_PROPAGATION_UNDEFINED, "queue \"%s\" has no propagation schedule for %s", name,
						 spell(destination)),
				aq_error_hint("The view aq.propagations lists them.", "The view sys.dba_queue_schedules lists them."));
	if (!owner && (!OidIsValid(role) || !has_privs_of_role(GetUserId(), role)))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("must be owner of queue \"%s\", or have scheduled the propagation", name)));
	return id;
}

/* A schedule that is enabled begins without failures. */
PG_FUNCTION_INFO_V1(aq_propagation_calls_alter);
Datum
aq_propagation_calls_alter(PG_FUNCTION_ARGS)
{
	char	   *name = queue_arg(fcinfo);
	char	   *destination = name_arg(fcinfo, ARG_DESTINATION);
	bool		multi;
	Oid			types[6] = {INT8OID, INTERVALOID, TIMESTAMPTZOID, INTERVALOID, INTERVALOID, BOOLOID};
	Datum		values[6];
	char		nulls[7] = "      ";

	begin_change("aq.alter_propagation()");
	check_times(fcinfo);
	values[0] = Int64GetDatum(find_schedule(name, destination, &multi));
	for (int i = 1; i < lengthof(types); i++)
	{
		values[i] = PG_GETARG_DATUM(ARG_LATENCY + i - 1);
		nulls[i] = PG_ARGISNULL(ARG_LATENCY + i - 1) ? 'n' : ' ';
	}
	(void) aq_sql_run("UPDATE aq_internal.propagation SET latency = coalesce($2, latency), start_time = coalesce($3, start_time), "
					  "duration = nullif(coalesce($4, duration), '0'), every = nullif(coalesce($5, every), '0'), "
					  "enabled = coalesce($6, enabled), failures = CASE WHEN $6 THEN 0 ELSE failures END WHERE schedule_id = $1",
					  lengthof(types), types, values, nulls, false);
	if (is_remote(destination))
		(void) aq_sql_run("UPDATE aq_internal.propagation_link SET diverged = false WHERE schedule_id = $1 AND $2", 2,
						  (Oid[]) {INT8OID, BOOLOID}, (Datum[]) {values[0], values[5]}, (char[]) {' ', nulls[5], '\0'}, false);
	aq_propagation_calls_note_change(is_remote(destination));
	PG_RETURN_VOID();
}

/* Messages that have left the queue must not be forgotten with their schedule. */
static void
refuse_on_way(const char *name, const char *destination, int64 id)
{
	char	   *messages = aq_sql_text(psprintf("SELECT sum(messages) FROM aq_internal.propagation_batch WHERE schedule_id = " INT64_FORMAT, id));

	if (messages != NULL)
		ereport(ERROR,
				aq_error(AQ_ERR_PROPAGATION_ON_WAY, "messages of queue \"%s\" are on their way to %s", name, spell(destination)),
				errdetail("Their number is %s.", messages),
				errhint("Wait until they have arrived. If they cannot, see \"End a schedule\" in docs/propagation.md: forget them, or send them elsewhere."));
}

PG_FUNCTION_INFO_V1(aq_propagation_calls_remove);
Datum
aq_propagation_calls_remove(PG_FUNCTION_ARGS)
{
	char	   *name = queue_arg(fcinfo);
	char	   *destination = name_arg(fcinfo, ARG_DESTINATION);
	bool		unsubscribe = PG_ARGISNULL(2) || PG_GETARG_BOOL(2);
	bool		multi;
	int64		id;

	begin_change("aq.drop_propagation()");
	id = find_schedule(name, destination, &multi);
	unsubscribe &= multi && !is_general(destination);
	if (!unsubscribe)
		refuse_on_way(name, destination, id);
	(void) aq_sql_run(psprintf("DELETE FROM aq_internal.propagation WHERE schedule_id = " INT64_FORMAT, id), 0, NULL, NULL,
					  NULL, false);
	if (unsubscribe)
		call("SELECT aq.unsubscribe(s.queue_name, s.consumer) FROM aq.subscribers s WHERE s.queue_name = $1 AND "
			 "s.consumer = $2 AND s.kind = 'subscriber'", 2,
			 (const char *[]) {name, aq_address_consumer(NULL, destination)});
	aq_propagation_calls_note_change(is_remote(destination));
	PG_RETURN_VOID();
}

/* --- aq.settle_propagation --------------------------------------------------------------------------------- */

/* The other database knows nothing of the new source: the batches that are left, if any, are its first ones. */
PG_FUNCTION_INFO_V1(aq_propagation_calls_settle);
Datum
aq_propagation_calls_settle(PG_FUNCTION_ARGS)
{
	char	   *name = queue_arg(fcinfo);
	char	   *destination = name_arg(fcinfo, ARG_DESTINATION);
	bool		multi;
	char	   *id;
	char	   *messages;

	if (PG_ARGISNULL(2))
		ereport(ERROR, aq_error(AQ_ERR_ARGUMENT_NULL, "\"arrived\" must not be null"));
	begin_change("aq.settle_propagation()");
	id = psprintf(INT64_FORMAT, find_schedule(name, destination, &multi));
	if (aq_sql_finds(psprintf("SELECT FROM aq_internal.propagation WHERE schedule_id = %s AND enabled", id)))
		ereport(ERROR,
				aq_error(AQ_ERR_PROPAGATION_ON_WAY, "the propagation schedule of queue \"%s\" for %s is enabled", name, spell(destination)),
				errhint("Disable it with aq.alter_propagation: enabled => false."));
	messages = aq_sql_text(psprintf("SELECT coalesce(sum(messages), 0) FROM aq_internal.propagation_batch WHERE schedule_id = %s", id));
	if (PG_GETARG_BOOL(2))
		(void) aq_sql_change(psprintf("DELETE FROM aq_internal.propagation_batch WHERE schedule_id = %s", id), 0, NULL, NULL, NULL);
	/* by way of negative numbers, because they are unique at each time */
	(void) aq_sql_change(psprintf("UPDATE aq_internal.propagation_batch SET number = -number WHERE schedule_id = %s", id), 0, NULL, NULL, NULL);
	(void) aq_sql_change(psprintf("UPDATE aq_internal.propagation_batch SET number = 1 - number + (SELECT max(number) FROM aq_internal.propagation_batch "
								  "WHERE schedule_id = %s) WHERE schedule_id = %s", id, id), 0, NULL, NULL, NULL);
	(void) aq_sql_change(psprintf("UPDATE aq_internal.propagation_link SET source = gen_random_uuid(), epoch = 0, arrived = NULL, diverged = false, "
								  "number = (SELECT count(*) FROM aq_internal.propagation_batch WHERE schedule_id = %s) WHERE schedule_id = %s",
								  id, id), 0, NULL, NULL, NULL);
	aq_propagation_calls_note_change(true);
	PG_RETURN_INT64(strtoi64(messages, NULL, 10));
}
