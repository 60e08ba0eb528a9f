/*-------------------------------------------------------------------------
 *
 * node_stream.c
 *	  Heartbeats: a stream of part "link" for each other node.
 *
 * A heartbeat says who this node is, and its answer who the other one is.  It
 * changes nothing unless one of them has changed, so it does not matter whether
 * one is lost, late or repeated.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "node/node_private.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

/* the time as microseconds since 1970 */
#define BEAT "SELECT node_id, timeline, (extract(epoch FROM started) * 1000000)::bigint, mutual FROM aq.node_beat($1, $2, $3)"
#define EPOCH ((int64) (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY)

typedef struct Beat
{
	TimestampTz next;			/* when it is due */
	int64		sent;			/* aq_clock_us() of the last one */
} Beat;

/* The nodes to which there are streams; their number. */
static int
read_nodes(AqNodeLink **nodes)
{
	MemoryContext context = CurrentMemoryContext;
	AqNodeIdentity own;
	bool		isnull;
	int			n;

	*nodes = NULL;
	if (!OidIsValid(aq_owner_table("node")))
		return 0;
	/* a copy of a node does not act as the node */
	aq_sql_run(aq_node_identity_own(&own) != AQ_NODE_OWN ? "SELECT 1, 0::oid, 0::oid WHERE false" :
			   "SELECT n.node_number, s.oid, n.role::oid FROM aq_internal.node n JOIN pg_foreign_server s ON s.srvname = n.server_name "
			   "JOIN pg_foreign_data_wrapper w ON w.oid = s.srvfdw AND w.fdwname = 'pgaq_link' "
			   "JOIN pg_roles a ON a.oid = n.role", 0, NULL, NULL, NULL, true);
	n = (int) SPI_processed;
	*nodes = MemoryContextAlloc(context, sizeof(AqNodeLink) * Max(n, 1));
	for (int i = 0; i < n; i++)
	{
		HeapTuple	tuple = SPI_tuptable->vals[i];

		(*nodes)[i].number = DatumGetInt32(SPI_getbinval(tuple, SPI_tuptable->tupdesc, 1, &isnull));
		(*nodes)[i].server = DatumGetObjectId(SPI_getbinval(tuple, SPI_tuptable->tupdesc, 2, &isnull));
		(*nodes)[i].role = DatumGetObjectId(SPI_getbinval(tuple, SPI_tuptable->tupdesc, 3, &isnull));
	}
	SPI_finish();
	return n;
}

bool
aq_node_stream_exist(void)
{
	AqNodeLink *nodes;

	return read_nodes(&nodes) > 0;
}

/* A stream for each node; for every kind of streams of this part. */
void
aq_node_stream_list(void)
{
	AqNodeLink *nodes;
	int			n = read_nodes(&nodes);

	for (int i = 0; i < n; i++)
		(void) aq_link_add(nodes[i].number, nodes[i].server, nodes[i].role);
}

/* Adds the links to all nodes, and makes the nodes' entries in shared memory. */
static void
list(void)
{
	AqNodeLink *nodes;
	int			n = read_nodes(&nodes);
	int32	   *numbers = palloc(sizeof(int32) * Max(n, 1));

	for (int i = 0; i < n; i++)
		numbers[i] = nodes[i].number;
	aq_node_area_keep(numbers, n);
	for (int i = 0; i < n; i++)
	{
		bool		has_room = aq_node_area_get(numbers[i]) != NULL;

		aq_node_area_free();
		(void) aq_link_add(nodes[i].number, nodes[i].server, nodes[i].role);
		if (!has_room)
			ereport(WARNING,
					aq_error_limit("too many nodes to show the state of all of them", "pgaq.max_nodes"));
	}
}

/* News are about units: a heartbeat comes at its time. */
static bool
heartbeat_woken(AqLinkStream *stream)
{
	return false;
}

static bool
heartbeat_next(AqLinkStream *stream, AqLinkRequest *request, TimestampTz *again)
{
	Beat	   *beat = stream->data;
	AqNodeIdentity own;

	if (GetCurrentTimestamp() < beat->next)
	{
		*again = beat->next;
		return false;
	}
	if (aq_node_identity_own(&own) != AQ_NODE_OWN)
		return false;
	request->sql = BEAT;
	request->shape = (AqLinkShape) {.least_rows = 1, .most_rows = 1, .ncolumns = 4, .columns = {
		{AQ_ANSWER_UUID},
		{AQ_ANSWER_NUMBER, .least = 0, .most = PG_UINT32_MAX},
		{AQ_ANSWER_NUMBER, .least = EPOCH + MIN_TIMESTAMP, .most = END_TIMESTAMP - 1},
		{AQ_ANSWER_BOOL}
	}};
	request->timeout_ms = aq_node_settings_timeout;
	aq_node_identity_send(request, &own);
	aq_link_text(request, INT8OID, psprintf(INT64_FORMAT, own.timeline));
	aq_link_text(request, TIMESTAMPTZOID, pstrdup(timestamptz_to_str(own.started)));
	beat->sent = aq_clock_us();
	/* two within the time limit, whatever the parameters are */
	beat->next = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), Min(aq_node_settings_heartbeat, aq_node_settings_timeout / 2));
	return true;
}

static void
note_error(int32 number, bool refused, int sqlstate, const char *message, const char *hint)
{
	AqNodeState *state = aq_node_area_get(number);

	if (state != NULL)
	{
		state->failures++;
		state->refused = refused;
		state->error_time = GetCurrentTimestamp();
		state->sqlstate = sqlstate;
		aq_clip_copy(state->message, message, sizeof(state->message));
		aq_clip_copy(state->hint, hint != NULL ? hint : "", sizeof(state->hint));
	}
	aq_node_area_free();
}

/* The node that has answered is not the one of the row. */
static void
note_stranger(int32 number, const char *message, const char *hint)
{
	const char *state = aq_error_sqlstate(AQ_ERR_NODE_IDENTITY);

	note_error(number, true, MAKE_SQLSTATE(state[0], state[1], state[2], state[3], state[4]), message, hint);
}

static void
note_answer(AqLinkStream *stream, bool mutual)
{
	const AqLinkRemote *remote = aq_link_remote(stream);
	const Beat *beat = stream->data;
	AqNodeState *state = aq_node_area_get((int32) stream->key);

	if (state != NULL)
	{
		state->failures = 0;
		state->refused = false;
		state->answered = GetCurrentTimestamp();
		state->latency_us = aq_clock_us() - beat->sent;
		state->mutual = mutual;
		state->protocol = remote->protocol;
		strlcpy(state->version, remote->version, sizeof(state->version));
	}
	aq_node_area_free();
}

/* Why the node that has answered cannot be the one of the row; NULL: it can. */
static const char *
misfit(int32 number, const AqNodeIdentity *other)
{
	Oid			types[] = {INT4OID, TEXTOID};
	Datum		values[] = {Int32GetDatum(number), CStringGetTextDatum(other->id)};
	MemoryContext context = CurrentMemoryContext;
	const char *why = NULL;

	aq_sql_run("SELECT CASE WHEN EXISTS (SELECT FROM aq_internal.node_identity WHERE node_id = $2::uuid) THEN 'the server leads to this node itself' "
			   "WHEN n.node_id <> $2::uuid THEN format('node %s answers instead of node %s', $2, n.node_id) "
			   "ELSE (SELECT format('it is the same node as server \"%s\"', o.server_name) FROM aq_internal.node o "
			   "WHERE o.node_id = $2::uuid AND o.node_number <> $1 ORDER BY o.node_number LIMIT 1) END "
			   "FROM aq_internal.node n WHERE n.node_number = $1",
			   lengthof(types), types, values, NULL, true);
	if (SPI_processed > 0)
		why = SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1);
	if (why != NULL)
		why = MemoryContextStrdup(context, why);
	SPI_finish();
	return why;
}

static void
heartbeat_done(AqLinkStream *stream, const AqLinkAnswer *answer)
{
	int32		number = (int32) stream->key;
	AqNodeIdentity other;
	AqNodeMeeting meeting;
	const char *why;

	strlcpy(other.id, aq_link_answer_value(answer, 0, 0)->text, sizeof(other.id));
	other.timeline = aq_link_answer_value(answer, 0, 1)->number;
	other.started = aq_link_answer_value(answer, 0, 2)->number - EPOCH;
	aq_point("node-answered");
	why = misfit(number, &other);
	if (why != NULL)
	{
		note_stranger(number, why, _("Correct the foreign server; or call aq.remove_node and aq.add_node, if it is meant."));
		return;
	}
	meeting = aq_node_identity_meet(number, &other);
	if (meeting == AQ_NODE_SAME)
		note_answer(stream, aq_link_answer_value(answer, 0, 3)->number != 0);
	else if (meeting != AQ_NODE_BUSY)
		note_stranger(number, psprintf(_("another server has the identity of node %s"), other.id), aq_node_identity_hint(meeting));
	aq_point("node-noted");
}

static TimestampTz
heartbeat_failed(AqLinkStream *stream, const AqLinkFailure *failure)
{
	note_error((int32) stream->key, failure->phase == AQ_LINK_REFUSED, failure->sqlstate, failure->message, failure->hint);
	return ((Beat *) stream->data)->next;
}

/* A node that is back is noticed within the time after which it was unreachable. */
static int64
longest_pause(void)
{
	return aq_node_settings_timeout * INT64CONST(1000);
}

static const AqLinkKind heartbeats = {
	.name = "heartbeat",
	.size = sizeof(Beat),
	.exist = aq_node_stream_exist,
	.list = list,
	.woken = heartbeat_woken,
	.next = heartbeat_next,
	.done = heartbeat_done,
	.failed = heartbeat_failed,
	.longest_pause = longest_pause,
};

void
aq_node_stream_register(void)
{
	aq_link_register(&heartbeats);
}
