/*-------------------------------------------------------------------------
 *
 * node_identity.c
 *	  The identity of this node, and whether another node has the identity that it claims.
 *
 * A node is a database.  Its identity is a uuid, with the system identifier of
 * the server and the OID of the database for which it was made: if they differ,
 * the database is a copy (CREATE DATABASE with a template, pg_upgrade), and does
 * not act as the node.  A copy of the whole server has the same ones.  The other
 * nodes notice it: the server that answers under an identity, known by its
 * timeline and start time, keeps it until it was not seen for
 * pgaq.node_timeout.  A timeline older than the last one never gets it.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "node/node_private.h"

#include "access/xlog.h"
#include "catalog/pg_type.h"
#include "commands/dbcommands.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

AqNodeOwn
aq_node_identity_own(AqNodeIdentity *own)
{
	static struct
	{
		uint32		nodes;		/* of aq_node_area_nodes() when it was read; 0: it was not */
		Oid			relation;	/* from which: another one if the extension was created again */
		AqNodeOwn	result;
		char		id[AQ_NODE_ID];
	}			known;
	uint32		nodes = aq_node_area_nodes();
	Oid			relation = aq_schema_relation("node_identity");
	bool		is_open = aq_node_change_is_open();

	/* each request and each call of another node asks for it */
	if (known.nodes != nodes || known.relation != relation || is_open || RecoveryInProgress())
	{
		const char *row = aq_sql_text(psprintf("SELECT CASE WHEN system_identifier = " INT64_FORMAT " AND database_id = %u THEN 'o' ELSE 'c' END || node_id "
											   "FROM aq_internal.node_identity", (int64) GetSystemIdentifier(), MyDatabaseId));

		known.result = row == NULL ? AQ_NODE_NONE : row[0] == 'o' ? AQ_NODE_OWN : AQ_NODE_COPY;
		strlcpy(known.id, row != NULL ? row + 1 : "", sizeof(known.id));
		known.relation = relation;
		known.nodes = is_open ? 0 : nodes;
	}
	if (known.result != AQ_NODE_NONE)
		strlcpy(own->id, known.id, sizeof(own->id));
	own->timeline = RecoveryInProgress() ? 0 : (int64) GetWALInsertionTimeLine();
	own->started = PgStartTime;
	return known.result;
}

/* Adds this node's identity as the next parameter of a request. */
void
aq_node_identity_send(AqLinkRequest *request, const AqNodeIdentity *own)
{
	aq_link_text(request, UUIDOID, pstrdup(own->id));
}

/* Raises an error unless the database is a node. */
void
aq_node_identity_require(AqNodeIdentity *own)
{
	AqNodeOwn	found = aq_node_identity_own(own);

	if (found == AQ_NODE_NONE)
		ereport(ERROR,
				aq_error(AQ_ERR_NODE_NONE, "database \"%s\" is not a node", get_database_name(MyDatabaseId)),
				errhint("aq.add_node makes it one."));
	if (found == AQ_NODE_COPY)
		ereport(ERROR,
				aq_error(AQ_ERR_NODE_IDENTITY, "the database is a copy of node %s", own->id),
				errhint("aq.reset_node() makes it a node of its own; aq.reset_node(keep => true) lets it replace the node, which must never run again."));
}

typedef struct Known
{
	bool		exists;			/* the row; it is locked */
	bool		contacted;
	int64		timeline;
	TimestampTz started;
} Known;

static Known
read_known(int32 number, bool lock)
{
	Oid			type = INT4OID;
	Datum		value = Int32GetDatum(number);
	Known		known = {.exists = false};
	bool		isnull;

	/* waits for no transaction of users: the link worker calls it, too */
	aq_sql_run(lock ? "SELECT timeline, started FROM aq_internal.node WHERE node_number = $1 FOR UPDATE SKIP LOCKED"
			   : "SELECT timeline, started FROM aq_internal.node WHERE node_number = $1", 1, &type, &value, NULL, true);
	if (SPI_processed > 0)
	{
		known.exists = true;
		known.timeline = DatumGetInt64(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull));
		known.contacted = !isnull;
		known.started = DatumGetTimestampTz(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 2, &isnull));
	}
	SPI_finish();
	return known;
}

/* Was the server that the row describes seen a short time ago? */
static bool
is_alive(int32 number)
{
	AqNodeState state;

	return aq_node_area_copy(number, &state) && state.seen != 0 &&
		!TimestampDifferenceExceeds(state.seen, GetCurrentTimestamp(), aq_node_settings_timeout);
}

static void
write_known(int32 number, const AqNodeIdentity *other)
{
	Oid			types[] = {INT4OID, TEXTOID, INT8OID, TIMESTAMPTZOID};
	Datum		values[] = {Int32GetDatum(number), CStringGetTextDatum(other->id), Int64GetDatum(other->timeline), TimestampTzGetDatum(other->started)};

	aq_sql_run("UPDATE aq_internal.node SET node_id = $2::uuid, timeline = $3, started = $4 WHERE node_number = $1",
			   lengthof(types), types, values, NULL, false);
}

static AqNodeMeeting
compare(int32 number, const AqNodeIdentity *other)
{
	Known		known = read_known(number, false);

	if (known.exists && known.contacted && other->timeline < known.timeline)
		return AQ_NODE_OLD;
	if (known.exists && known.contacted && other->timeline == known.timeline && other->started == known.started)
		return AQ_NODE_SAME;
	known = read_known(number, true);
	if (!known.exists)
		return AQ_NODE_BUSY;
	if (known.contacted && other->timeline < known.timeline)
		return AQ_NODE_OLD;
	if (known.contacted && is_alive(number))
		return AQ_NODE_CONTESTED;
	aq_point("node-changed");
	write_known(number, other);
	if (known.contacted)
		ereport(LOG,
				(errmsg("node %s is another server now: started at %s, with timeline " INT64_FORMAT,
						other->id, timestamptz_to_str(other->started), other->timeline)));
	return AQ_NODE_SAME;
}

/*
 * A node has shown up with an identity: is it the one that the row describes,
 * or may it take its place?
 */
AqNodeMeeting
aq_node_identity_meet(int32 number, const AqNodeIdentity *other)
{
	AqNodeMeeting meeting = compare(number, other);
	AqNodeState *state = aq_node_area_get(number);

	if (state != NULL && meeting == AQ_NODE_SAME)
		state->seen = GetCurrentTimestamp();
	else if (state != NULL && meeting != AQ_NODE_BUSY)
		state->contested = GetCurrentTimestamp();
	aq_node_area_free();
	return meeting;
}

const char *
aq_node_identity_hint(AqNodeMeeting meeting)
{
	if (meeting == AQ_NODE_CONTESTED)
		return _("After a restart or a failover this ends when pgaq.node_timeout is over. Otherwise stop one of the two servers, or call aq.reset_node() in the copy.");
	return _("A standby was promoted, or a backup was restored, and the old server still runs: stop it, or call aq.reset_node() there.");
}

/* --- nodes that call ------------------------------------------------------------------ */

/* The row of the node that calls, 0: it was not added here; and the role as which it does, InvalidOid: it has not yet. */
static int32
find_caller(const char *id, Oid *role)
{
	static AqStatement find = {
		.command = "SELECT node_number, coalesce(caller::oid, 0)::bigint FROM aq_internal.node WHERE node_id = $1::uuid ORDER BY 1 LIMIT 1",
		.nargs = 1,
		.types = {TEXTOID}
	};
	Datum		value = CStringGetTextDatum(id);
	int32		number = 0;

	if (aq_sql_run_kept(&find, &value) > 0)
	{
		number = (int32) aq_node_rows_int(0, 1);
		*role = (Oid) aq_node_rows_int(0, 2);
	}
	SPI_finish();
	return number;
}

/*
 * The number of the node that calls; 0: it was not added here.  A node calls as the
 * role of its first call: a role that may call these functions for one node may not
 * for others.
 */
int32
aq_node_identity_number(const char *id)
{
	Oid			role;
	int32		number = find_caller(id, &role);

	if (number != 0 && !OidIsValid(role))
	{
		aq_sql_run(psprintf("UPDATE aq_internal.node SET caller = %u::oid WHERE node_number = %d AND caller IS NULL", GetUserId(), number),
				   0, NULL, NULL, NULL, false);
		number = find_caller(id, &role);
	}
	if (number != 0 && role != GetUserId())
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("node %s must connect as the role of its first call, not as \"%s\"", id, GetUserNameFromId(GetUserId(), false)),
				 errhint("If its user mapping has changed, call aq.remove_node and aq.add_node for it here.")));
	return number;
}

/*
 * The identity of the node that calls a function, in the first argument, as text;
 * *number: of its row.  Raises an error unless this database is a node, has added that one, and the role
 * is the one as which it calls.
 */
const char *
aq_node_identity_caller(FunctionCallInfo fcinfo, const char *command, int32 *number)
{
	AqNodeIdentity own;
	const char *caller;

	aq_session_require_write(command);
	aq_session_attach();
	aq_node_identity_require(&own);
	aq_args_require(fcinfo, 0, "caller");
	aq_node_change_note_call();
	caller = DatumGetCString(DirectFunctionCall1(uuid_out, PG_GETARG_DATUM(0)));
	*number = aq_node_identity_number(caller);
	if (*number == 0)
		ereport(ERROR,
				aq_error(AQ_ERR_NODE_UNDEFINED, "node %s has not been added here", caller),
				errhint("Call aq.add_node for it."));
	return caller;
}
