/*-------------------------------------------------------------------------
 *
 * node_calls.c
 *	  The functions for users, and the one that other nodes call.
 *
 * None of them is for PUBLIC.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "node/node_private.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

static const char *
server_argument(FunctionCallInfo fcinfo)
{
	if (PG_ARGISNULL(0))
		ereport(ERROR, aq_error(AQ_ERR_ARGUMENT_NULL, "server is null"));
	return NameStr(*PG_GETARG_NAME(0));
}

/* The identity of this database; made if there is none. */
static void
become_node(AqNodeIdentity *own)
{
	Oid			types[] = {INT8OID, OIDOID};
	Datum		values[] = {Int64GetDatum((int64) GetSystemIdentifier()), ObjectIdGetDatum(MyDatabaseId)};

	if (aq_node_identity_own(own) == AQ_NODE_NONE)
		aq_sql_run("INSERT INTO aq_internal.node_identity (system_identifier, database_id) VALUES ($1, $2) ON CONFLICT DO NOTHING",
				   lengthof(types), types, values, NULL, false);
	else
		aq_node_identity_require(own);
}

/* aq.add_node(server) */
PG_FUNCTION_INFO_V1(aq_node_calls_add);
Datum
aq_node_calls_add(PG_FUNCTION_ARGS)
{
	Oid			types[] = {TEXTOID, OIDOID};
	Datum		values[2];
	const char *server;
	AqNodeIdentity own;

	aq_session_require_write("aq.add_node()");
	server = server_argument(fcinfo);
	(void) aq_link_server(server, GetUserId());
	become_node(&own);
	values[0] = CStringGetTextDatum(server);
	values[1] = ObjectIdGetDatum(GetUserId());
	if (aq_sql_change("INSERT INTO aq_internal.node (server_name, role) VALUES ($1, $2) ON CONFLICT DO NOTHING", lengthof(types), types, values, NULL) == 0)
		ereport(ERROR, aq_error(AQ_ERR_NODE_EXISTS, "server \"%s\" is already a node", server));
	PG_RETURN_VOID();
}

/* Units that are lent to the node would not return, and consumed messages of its units would not be reported. */
static void
refuse_with_units(const char *server, int n)
{
	ereport(ERROR,
			aq_error(AQ_ERR_NODE_HAS_UNITS, "units of distributed queues are lent to, or borrowed from, node \"%s\"", server),
			errdetail_plural("aq.node_units shows %d unit.", "aq.node_units shows %d units.", n, n),
			errhint("Stop the consumers on one of the two nodes and dequeue on the other one, until they have gone back, or drop the queues there. If the node is gone for good, use force => true."));
}

/* Until the end of the transaction, no request of the node is executed, and no unit is granted to it. */
static void
lock_units(int32 number)
{
	ListCell   *lc;

	(void) aq_node_held_lock(number);
	foreach(lc, aq_node_unit_queues())
		(void) aq_node_unit_lock(lfirst_int(lc), true);
}

/* The node is gone for good: what it has of this one is ready here again, what this one has of it stays. */
static void
end_units(List *lent, List *held, const char *id)
{
	ListCell   *lc;

	foreach(lc, lent)
	{
		AqNodeUnit *unit = lfirst(lc);

		(void) aq_node_unit_lock(unit->queue_id, true);
		(void) aq_node_unit_end(unit);
	}
	foreach(lc, held)
		aq_node_held_adopt(lfirst(lc), id);
}

/* aq.remove_node(server, force) */
PG_FUNCTION_INFO_V1(aq_node_calls_remove);
Datum
aq_node_calls_remove(PG_FUNCTION_ARGS)
{
	Oid			type = TEXTOID;
	Datum		value;
	const char *server;
	char	   *id;
	char	   *number;
	List	   *lent;
	List	   *held;

	aq_session_require_write("aq.remove_node()");
	server = server_argument(fcinfo);
	aq_args_require(fcinfo, 1, "force");
	value = CStringGetTextDatum(server);
	number = aq_sql_text(psprintf("SELECT node_number FROM aq_internal.node WHERE server_name = %s", quote_literal_cstr(server)));
	if (number == NULL)
		ereport(ERROR, aq_error(AQ_ERR_NODE_UNDEFINED, "server \"%s\" is not a node", server));
	lock_units(atoi(number));
	id = aq_sql_text(psprintf("SELECT node_id FROM aq_internal.node WHERE server_name = %s", quote_literal_cstr(server)));
	lent = id != NULL ? aq_node_unit_list(atoi(number), 0) : NIL;
	held = id != NULL ? aq_node_held_list(id) : NIL;
	if ((lent != NIL || held != NIL) && !PG_GETARG_BOOL(1))
		refuse_with_units(server, list_length(lent) + list_length(held));
	end_units(lent, held, id);
	(void) aq_sql_change("DELETE FROM aq_internal.node WHERE server_name = $1", 1, &type, &value, NULL);
	PG_RETURN_VOID();
}

/* Other nodes know nothing of units of this one. */
static void
end_all_units(void)
{
	static AqStatement list = {.command = "SELECT DISTINCT origin::text FROM aq_internal.node_held"};
	MemoryContext context = CurrentMemoryContext;
	List	   *origins = NIL;
	ListCell   *lc;

	(void) aq_sql_run_kept(&list, NULL);
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		char	   *origin = SPI_getvalue(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1);
		MemoryContext old = MemoryContextSwitchTo(context);

		origins = lappend(origins, pstrdup(origin));
		MemoryContextSwitchTo(old);
	}
	SPI_finish();
	end_units(aq_node_unit_list(0, 0), NIL, NULL);
	foreach(lc, origins)
		end_units(NIL, aq_node_held_list(lfirst(lc)), lfirst(lc));
}

/* aq.reset_node(keep) */
PG_FUNCTION_INFO_V1(aq_node_calls_reset);
Datum
aq_node_calls_reset(PG_FUNCTION_ARGS)
{
	Oid			types[] = {INT8OID, OIDOID, BOOLOID};
	Datum		values[] = {Int64GetDatum((int64) GetSystemIdentifier()), ObjectIdGetDatum(MyDatabaseId), BoolGetDatum(false)};
	AqNodeIdentity own;

	aq_session_require_write("aq.reset_node()");
	if (PG_ARGISNULL(0))
		ereport(ERROR, aq_error(AQ_ERR_ARGUMENT_NULL, "keep is null"));
	values[2] = PG_GETARG_DATUM(0);
	if (aq_sql_change("UPDATE aq_internal.node_identity SET node_id = CASE WHEN $3 THEN node_id ELSE gen_random_uuid() END, system_identifier = $1, "
					  "database_id = $2, created = CASE WHEN $3 THEN created ELSE now() END", lengthof(types), types, values, NULL) == 0)
		aq_node_identity_require(&own);
	if (!PG_GETARG_BOOL(0))
		end_all_units();
	(void) aq_node_identity_own(&own);
	return DirectFunctionCall1(uuid_in, CStringGetDatum(own.id));
}

/*
 * aq.node_beat(caller_id, caller_timeline, caller_started): a heartbeat of
 * another node.
 */
PG_FUNCTION_INFO_V1(aq_node_calls_beat);
Datum
aq_node_calls_beat(PG_FUNCTION_ARGS)
{
	AqNodeIdentity own;
	AqNodeIdentity other;
	AqNodeMeeting meeting = AQ_NODE_SAME;
	int32		number;
	Datum		values[4];
	bool		nulls[4] = {false};

	aq_session_require_write("aq.node_beat()");
	for (int i = 0; i < 3; i++)
		if (PG_ARGISNULL(i))
			ereport(ERROR, aq_error(AQ_ERR_ARGUMENT_NULL, "an argument of aq.node_beat is null"));
	aq_node_identity_require(&own);
	strlcpy(other.id, DatumGetCString(DirectFunctionCall1(uuid_out, PG_GETARG_DATUM(0))), sizeof(other.id));
	other.timeline = PG_GETARG_INT64(1);
	other.started = PG_GETARG_TIMESTAMPTZ(2);
	if (other.timeline < 0 || other.timeline > PG_UINT32_MAX || TIMESTAMP_NOT_FINITE(other.started))
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "\"caller_timeline\" or \"caller_started\" is out of range"));
	number = aq_node_identity_number(other.id);
	if (number != 0)
		meeting = aq_node_identity_meet(number, &other);
	if (meeting == AQ_NODE_CONTESTED || meeting == AQ_NODE_OLD)
		ereport(ERROR,
				aq_error(AQ_ERR_NODE_IDENTITY, "another server has the identity of node %s", other.id),
				errhint("%s", aq_node_identity_hint(meeting)));
	values[0] = DirectFunctionCall1(uuid_in, CStringGetDatum(own.id));
	values[1] = Int64GetDatum(own.timeline);
	values[2] = TimestampTzGetDatum(own.started);
	values[3] = BoolGetDatum(number != 0);
	return aq_rows_one(fcinfo, values, nulls);
}
