/*-------------------------------------------------------------------------
 *
 * registration.c
 *	  aq.register and aq.unregister.
 *
 * A registration is a row of aq_internal.registration.  Everything else is
 * derived from it: see delivery.c.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "notify/notify_private.h"

#include "access/htup_details.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

/* most registrations of a role in a database */
#define MAX_REGISTRATIONS 1024

/* columns of aq_internal.registration that aq.register sets, in this order */
enum
{
	ROLE, NAMESPACE, QUEUE_ID, NAME, CONSUMER, CALLBACK, SCHEMA, PROCEDURE, OWNER, CONTEXT, RELIABLE, ONCE, WITH_PAYLOAD,
	TIMEOUT, GROUP_TIME, GROUP_TYPE, GROUP_START, GROUP_REPEAT, NCOLUMNS
};

static Oid	types[NCOLUMNS] = {
	OIDOID, TEXTOID, INT4OID, TEXTOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID, OIDOID, BYTEAOID, BOOLOID, BOOLOID, BOOLOID,
	INTERVALOID, INTERVALOID, TEXTOID, TIMESTAMPTZOID, INT4OID
};

static const char insert[] =
	"INSERT INTO aq_internal.registration AS r (role, namespace, queue_id, name, consumer, callback, procedure_schema, procedure_name, "
	"procedure_owner, context, reliable, once, with_payload, expires_at, group_time, group_type, group_start, groups_left) "
	"VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, clock_timestamp() + $14, $15, $16, $17, $18) "
	"ON CONFLICT ((role::oid), queue_id, name, consumer, callback) WHERE role::oid <> 0::oid DO UPDATE SET "
	"namespace = excluded.namespace, procedure_schema = excluded.procedure_schema, procedure_name = excluded.procedure_name, "
	"procedure_owner = excluded.procedure_owner, context = excluded.context, reliable = excluded.reliable, once = excluded.once, "
	"with_payload = excluded.with_payload, created = excluded.created, expires_at = excluded.expires_at, "
	"group_time = excluded.group_time, group_type = excluded.group_type, group_start = excluded.group_start, "
	"groups_left = excluded.groups_left, group_end = NULL, status = 'enabled', failures = 0, next_at = excluded.next_at "
	"RETURNING registration_id";

/* --- aq.register -------------------------------------------------------------------------- */

void
aq_registration_begin(const char *command)
{
	aq_session_require_write(command);
	if (InSecurityRestrictedOperation())
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("cannot execute %s within security-restricted operation", command)));
}

/* Procedures run in a process that has logged in as the role. */
static void
check_login(void)
{
	HeapTuple	tuple = SearchSysCache1(AUTHOID, ObjectIdGetDatum(GetUserId()));
	bool		may = HeapTupleIsValid(tuple) && ((Form_pg_authid) GETSTRUCT(tuple))->rolcanlogin;

	if (HeapTupleIsValid(tuple))
		ReleaseSysCache(tuple);
	if (!may)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("role \"%s\" is not permitted to log in", GetUserNameFromId(GetUserId(), false)),
				 errdetail("A registered procedure runs in a process that logs in as the role that registered it."),
				 errhint("Register as a role that can log in.")));
}

static void
check_limit(void)
{
	if (aq_sql_finds(psprintf("SELECT FROM aq_internal.registration WHERE role::oid = %u HAVING count(*) >= %d",
							  GetUserId(), MAX_REGISTRATIONS)))
		ereport(ERROR,
				aq_error(AQ_ERR_REGISTRATION_LIMIT, "role \"%s\" has too many registrations", GetUserNameFromId(GetUserId(), false)),
				errdetail("A role can have %d registrations in a database.", MAX_REGISTRATIONS));
}

static void
refuse_groups(const char *what)
{
	ereport(ERROR, aq_error(AQ_ERR_OPTION_INVALID, "notifications of %s cannot be grouped", what));
}

/* The caller must have the right to dequeue for the consumer, which need not exist. */
static int32
check_queue(const char *name, const char *consumer, bool grouped)
{
	AqQueue    *queue = aq_catalog_get_to_notify(name, consumer, 0);

	if (queue->multi && consumer == NULL)
		ereport(ERROR,
				aq_error(AQ_ERR_REGISTRATION_NO_CONSUMER, "queue \"%s\" has multiple consumers: name one", queue->name),
				aq_error_hint("Name a subscriber or recipient as the consumer.", "The name of the registration is queue:consumer."));
	if (!queue->multi && consumer != NULL)
		ereport(ERROR,
				aq_error(AQ_ERR_REGISTRATION_CONSUMER, "queue \"%s\" has a single consumer, which has no name", queue->name),
				aq_error_hint("Leave the consumer null.", "The name of the registration is that of the queue."));
	if (queue->non_persistent && grouped)
		refuse_groups("a non-persistent queue");
	return queue->id;
}

static void
check_name(const char *name, const char *what)
{
	if (name[0] == '\0' || strlen(name) >= AQ_MAX_NAME)
		ereport(ERROR,
				aq_error(AQ_ERR_REGISTRATION_NAME, "%s name \"%s\" is empty or too long", what, name),
				errhint("Names have at most %d bytes.", AQ_MAX_NAME - 1));
}

/* Sets queue_id or name; returns whether it is a queue. */
static bool
set_subject(FunctionCallInfo fcinfo, Datum *values, char *nulls)
{
	char	   *name = aq_args_name(fcinfo, 0, "queue_name");
	char	   *consumer = aq_args_name_or_null(fcinfo, 2, "consumer");
	char	   *namespace = aq_args_name(fcinfo, 12, "namespace");
	bool		is_queue = strcmp(namespace, "queue") == 0;

	if (!is_queue && strcmp(namespace, "anonymous") != 0)
		ereport(ERROR,
				aq_error(AQ_ERR_REGISTRATION_NAMESPACE, "namespace \"%s\" does not exist", namespace),
				errhint("The namespaces are queue and anonymous."));
	values[NAMESPACE] = PG_GETARG_DATUM(12);
	nulls[is_queue ? NAME : QUEUE_ID] = 'n';
	if (is_queue)
	{
		if (consumer != NULL)
			check_name(consumer, "consumer");
		values[QUEUE_ID] = Int32GetDatum(check_queue(name, consumer, !PG_ARGISNULL(8)));
		return true;
	}
	check_name(name, "registration");
	if (consumer != NULL)
		ereport(ERROR, aq_error(AQ_ERR_REGISTRATION_CONSUMER, "a registration of namespace anonymous has no consumer"));
	values[NAME] = PG_GETARG_DATUM(0);
	return false;
}

static void
refuse_interval(const char *what)
{
	ereport(ERROR, aq_error(AQ_ERR_OPTION_INVALID, "\"%s\" must be at least one second", what));
}

static bool
is_short(Datum interval)
{
	Interval	second = {.time = USECS_PER_SEC};

	return DatumGetBool(DirectFunctionCall2(interval_lt, interval, IntervalPGetDatum(&second)));
}

static void
set_times(FunctionCallInfo fcinfo, bool is_queue, Datum *values, char *nulls)
{
	char	   *type = aq_args_name(fcinfo, 9, "group_type");

	if (!PG_ARGISNULL(7) && is_short(PG_GETARG_DATUM(7)))
		refuse_interval("timeout");
	if (strcmp(type, "summary") != 0 && strcmp(type, "last") != 0)
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "group type \"%s\" does not exist", type),
				errhint("The group types are summary and last."));
	if (PG_ARGISNULL(8))
	{
		/* no groups: the other options have no effect */
		memset(nulls + GROUP_TIME, 'n', NCOLUMNS - GROUP_TIME);
		return;
	}
	if (!is_queue)
		refuse_groups("namespace anonymous");
	if (is_short(PG_GETARG_DATUM(8)))
		refuse_interval("group_time");
	if (!PG_ARGISNULL(11) && PG_GETARG_INT32(11) < 1)
		ereport(ERROR, aq_error(AQ_ERR_OPTION_INVALID, "\"group_repeat\" must be positive, not %d", PG_GETARG_INT32(11)));
	if (PG_ARGISNULL(10))
	{
		values[GROUP_START] = TimestampTzGetDatum(GetCurrentTimestamp());
		nulls[GROUP_START] = ' ';
	}
}

static void
set_callback(FunctionCallInfo fcinfo, bool missing_ok, Datum *values, char *nulls)
{
	char	   *callback = PG_ARGISNULL(1) ? "client://" : aq_args_name(fcinfo, 1, "callback");
	char	   *schema,
			   *procedure;

	values[CALLBACK] = CStringGetTextDatum(callback);
	nulls[SCHEMA] = nulls[PROCEDURE] = nulls[OWNER] = 'n';
	if (!aq_callback_parse(callback, &schema, &procedure))
		return;
	check_login();
	if (aq_callback_is_address(callback))
		aq_outgoing_check();
	values[OWNER] = ObjectIdGetDatum(aq_callback_check(schema, procedure, missing_ok));
	values[SCHEMA] = CStringGetTextDatum(schema);
	values[PROCEDURE] = CStringGetTextDatum(procedure);
	nulls[SCHEMA] = nulls[PROCEDURE] = nulls[OWNER] = ' ';
}

/* missing_ok: the procedure may be made later. */
static int64
add(FunctionCallInfo fcinfo, bool missing_ok)
{
	static const int arguments[][2] = {
		{2, CONSUMER}, {3, CONTEXT}, {4, RELIABLE}, {5, ONCE}, {6, WITH_PAYLOAD}, {7, TIMEOUT}, {8, GROUP_TIME},
		{9, GROUP_TYPE}, {10, GROUP_START}, {11, GROUP_REPEAT}
	};
	Datum		values[NCOLUMNS] = {0};
	char		nulls[NCOLUMNS];
	bool		isnull;
	int64		id;

	aq_registration_begin("aq.register()");
	aq_args_require(fcinfo, 4, "reliable");
	aq_args_require(fcinfo, 5, "once");
	aq_args_require(fcinfo, 6, "with_payload");
	memset(nulls, ' ', sizeof(nulls));
	for (int i = 0; i < lengthof(arguments); i++)
	{
		values[arguments[i][1]] = PG_GETARG_DATUM(arguments[i][0]);
		nulls[arguments[i][1]] = PG_ARGISNULL(arguments[i][0]) ? 'n' : ' ';
	}
	set_times(fcinfo, set_subject(fcinfo, values, nulls), values, nulls);
	set_callback(fcinfo, missing_ok, values, nulls);
	values[ROLE] = ObjectIdGetDatum(GetUserId());
	aq_jobs_ensure_worker();
	check_limit();
	aq_sql_run(insert, NCOLUMNS, types, values, nulls, true);
	if (SPI_processed != 1)
		elog(ERROR, "a registration was not inserted");
	id = DatumGetInt64(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull));
	SPI_finish();
	return id;
}

PG_FUNCTION_INFO_V1(aq_registration_add);
Datum
aq_registration_add(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(add(fcinfo, false));
}

PG_FUNCTION_INFO_V1(aq_registration_add_early);
Datum
aq_registration_add_early(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(add(fcinfo, true));
}

/* --- aq.unregister -------------------------------------------------------------------------- */

/* May the current role end the registration? */
static bool
may_remove(int64 id)
{
	char	   *role = aq_sql_text(psprintf("SELECT role::oid::text FROM aq_internal.registration WHERE registration_id = " INT64_FORMAT, id));
	char	   *queue_id = aq_sql_text(psprintf("SELECT queue_id::text FROM aq_internal.registration WHERE registration_id = " INT64_FORMAT, id));
	AqQueue    *queue;

	if (role == NULL)
		return false;
	if (has_privs_of_role(GetUserId(), (Oid) strtoul(role, NULL, 10)))
		return true;
	queue = queue_id != NULL ? aq_catalog_get_by_id(atoi(queue_id), true) : NULL;
	return queue != NULL && aq_privilege_allows(queue, AQ_RIGHT_OWNER);
}

PG_FUNCTION_INFO_V1(aq_registration_remove);
Datum
aq_registration_remove(PG_FUNCTION_ARGS)
{
	int64		id;

	aq_registration_begin("aq.unregister()");
	aq_args_require(fcinfo, 0, "registration_id");
	id = PG_GETARG_INT64(0);
	if (!may_remove(id) ||
		aq_sql_change(psprintf("DELETE FROM aq_internal.registration WHERE registration_id = " INT64_FORMAT, id),
					  0, NULL, NULL, NULL) == 0)
		ereport(ERROR, aq_error(AQ_ERR_REGISTRATION_UNDEFINED, "registration " INT64_FORMAT " does not exist", id));
	PG_RETURN_VOID();
}

PG_FUNCTION_INFO_V1(aq_registration_changed);
Datum
aq_registration_changed(PG_FUNCTION_ARGS)
{
	if (!CALLED_AS_TRIGGER(fcinfo))
		elog(ERROR, "aq_registration_changed was not called as a trigger");
	aq_announcement_make(strcmp(RelationGetRelationName(((TriggerData *) fcinfo->context)->tg_relation), "registration") == 0);
	PG_RETURN_POINTER(NULL);
}

/* --- of queues that are dropped ------------------------------------------------------- */

void
aq_registration_init(void)
{
	static const AqQueueRows rows = {.table = "registration"};

	aq_definition_add_rows(&rows);
}
