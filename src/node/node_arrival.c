/*-------------------------------------------------------------------------
 *
 * node_arrival.c
 *	  Messages of other nodes, for consumers of this one: the functions that their
 *	  streams call (node_forward.c).
 *
 * All requests of a node have its lock until they have committed, and come with a
 * token.  A request that was given up, and is executed late, has an old token.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "node/node_private.h"

#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "storage/lock.h"
#include "utils/array.h"
#include "utils/uuid.h"

/* of aq.node_deliver */
enum
{
	ARG_CALLER, ARG_TOKEN, ARG_EPOCH, ARG_QUEUE, ARG_SHARD, ARG_CONSUMER, ARG_MESSAGES
};

/* The requests of a node come one after the other; returns its number. */
static int32
begin_call(FunctionCallInfo fcinfo, const char *command, const char **caller)
{
	int32		number;

	*caller = aq_node_identity_caller(fcinfo, command, &number);
	/* it may have been removed in the meantime */
	if (aq_node_held_lock(number) && aq_node_identity_number(*caller) != number)
		ereport(ERROR,
				aq_error(AQ_ERR_NODE_UNDEFINED, "node %s has just been removed here", *caller));
	return number;
}

static int64
fence_of(int32 number)
{
	AqNodeState state;

	return aq_node_area_copy(number, &state) ? state.fence : 0;
}

/* Only requests with this token are taken from now on; an older one is refused. */
static void
set_fence(int32 number, int64 token)
{
	AqNodeState *state = aq_node_area_get(number);
	bool		has_room = state != NULL;
	bool		old = has_room && token <= state->fence;

	if (has_room && !old)
		state->fence = token;
	aq_node_area_free();
	if (!has_room)
		ereport(ERROR,
				aq_error_limit("too many nodes to take messages of all of them", "pgaq.max_nodes"));
	if (old)
		ereport(ERROR, aq_error(AQ_ERR_NODE_FENCE, "a request of another node has come late"));
}

/* --- what has arrived? ------------------------------------------------------------------ */

typedef struct Asked
{
	pg_uuid_t	id;				/* first: they are sorted by it */
	int32		number;
} Asked;

static int
compare_ids(const void *a, const void *b)
{
	return memcmp(a, b, UUID_LEN);
}

/* The numbers of the messages of one unit that are not here, from *n on. */
static void
find_missing(const char *caller, int64 epoch, Asked *asked, uint32 count, Datum *missing, int *n)
{
	AqNodeHeld	held;
	AqQueue    *queue = aq_node_held_find(caller, epoch, &held) ? aq_catalog_get_by_id(held.queue_id, true) : NULL;
	pg_uuid_t  *ids = palloc(count * sizeof(pg_uuid_t));
	bool	   *known = palloc0(count * sizeof(bool));

	qsort(asked, count, sizeof(Asked), compare_ids);
	for (uint32 i = 0; i < count; i++)
		ids[i] = asked[i].id;
	if (queue != NULL)
	{
		aq_pins_pin(queue);
		queue->store->units->find(queue, held.shard, ids, count, known);
	}
	for (uint32 i = 0; i < count; i++)
		if (!known[i])
			missing[(*n)++] = Int32GetDatum(asked[i].number);
}

/* aq.node_resume(caller, token, epochs, ids) */
PG_FUNCTION_INFO_V1(aq_node_arrival_resume);
Datum
aq_node_arrival_resume(PG_FUNCTION_ARGS)
{
	const char *caller;
	int32		number = begin_call(fcinfo, "aq.node_resume()", &caller);
	Datum	   *epochs;
	Datum	   *values;
	Datum	   *missing;
	Asked	   *asked;
	int			n,
				nids,
				nmissing = 0;

	aq_args_require(fcinfo, 1, "token");
	aq_args_require(fcinfo, 2, "epochs");
	aq_args_require(fcinfo, 3, "ids");
	deconstruct_array(PG_GETARG_ARRAYTYPE_P(2), INT8OID, sizeof(int64), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE, &epochs, NULL, &n);
	deconstruct_array(PG_GETARG_ARRAYTYPE_P(3), UUIDOID, UUID_LEN, false, TYPALIGN_CHAR, &values, NULL, &nids);
	if (n != nids)
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "the arrays must have the same number of elements"));
	set_fence(number, PG_GETARG_INT64(1));
	asked = palloc(Max(n, 1) * sizeof(Asked));
	missing = palloc(Max(n, 1) * sizeof(Datum));
	for (int i = 0; i < n; i++)
		asked[i] = (Asked) {*DatumGetUUIDP(values[i]), i + 1};
	for (int i = 0, count; i < n; i += count)
	{
		for (count = 1; i + count < n && DatumGetInt64(epochs[i + count]) == DatumGetInt64(epochs[i]); count++)
			;
		find_missing(caller, DatumGetInt64(epochs[i]), &asked[i], count, missing, &nmissing);
	}
	PG_RETURN_POINTER(construct_array(missing, nmissing, INT4OID, sizeof(int32), true, TYPALIGN_INT));
}

/* --- messages ----------------------------------------------------------------------------- */

/* aq.node_deliver(caller, token, epoch, queue_name, shard, consumer, payload_type, payloads, ...) */
PG_FUNCTION_INFO_V1(aq_node_arrival_deliver);
Datum
aq_node_arrival_deliver(PG_FUNCTION_ARGS)
{
	const char *caller;
	int32		number = begin_call(fcinfo, "aq.node_deliver()", &caller);
	AqMove		move = {0};
	AqMoved		moved;
	AqNodeHeld	held;
	AqQueue    *queue;

	aq_args_require(fcinfo, ARG_TOKEN, "token");
	aq_args_require(fcinfo, ARG_EPOCH, "epoch");
	aq_args_require(fcinfo, ARG_SHARD, "shard");
	if (PG_GETARG_INT32(ARG_SHARD) < 0 || PG_GETARG_INT32(ARG_SHARD) >= AQ_MAX_SHARDS)
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "shard must be between 0 and %d, not %d", AQ_MAX_SHARDS - 1, PG_GETARG_INT32(ARG_SHARD)));
	move.destination = aq_args_name(fcinfo, ARG_QUEUE, "queue_name");
	move.recipient = aq_args_name_or_null(fcinfo, ARG_CONSUMER, "consumer");
	moved = aq_move_away_arguments(fcinfo, ARG_MESSAGES);
	if (PG_GETARG_INT64(ARG_TOKEN) == 0 || fence_of(number) != PG_GETARG_INT64(ARG_TOKEN))
		ereport(ERROR,
				aq_error(AQ_ERR_NODE_FENCE, "messages of another node have come late, or after a restart of this server"));
	queue = aq_catalog_get(move.destination, AQ_RIGHT_ENQUEUE);
	if (!queue->distributed)
		ereport(ERROR,
				aq_error(AQ_ERR_NOT_DISTRIBUTED, "queue \"%s\" is not distributed", queue->name),
				errhint("Create it with distributed => true on all nodes."));
	(void) aq_args_consumer_position(queue, move.recipient);
	if (queue->multi && aq_catalog_consumer(queue, move.recipient) == NULL)
		ereport(ERROR,
				aq_error(AQ_ERR_SUBSCRIBER_UNDEFINED, "\"%s\" is not a consumer of queue \"%s\" on this node", move.recipient, queue->name),
				errhint("Subscribe it on all nodes."));
	aq_pins_pin(queue);
	if (!aq_node_held_find(caller, PG_GETARG_INT64(ARG_EPOCH), &held) &&
		!aq_node_held_begin(queue, move.recipient, caller, PG_GETARG_INT64(ARG_EPOCH), PG_GETARG_INT32(ARG_SHARD), &held))
		PG_RETURN_BOOL(false);
	if (held.queue_id != queue->id || held.returns)
		PG_RETURN_BOOL(false);
	move.unit = held.shard;
	/* one producer, so that they keep their order */
	move.producer = aq_producer_own(AQ_PRODUCER_NODE, hash_bytes_extended((const unsigned char *) caller, strlen(caller), held.epoch));
	aq_move_away_put(&move, &moved);
	aq_process_commit_safely(); /* the answer is the proof that they have arrived */
	aq_point("node-arrived");
	PG_RETURN_BOOL(true);
}

/* aq.node_recall(caller, epoch) */
PG_FUNCTION_INFO_V1(aq_node_arrival_recall);
Datum
aq_node_arrival_recall(PG_FUNCTION_ARGS)
{
	const char *caller;

	(void) begin_call(fcinfo, "aq.node_recall()", &caller);
	aq_args_require(fcinfo, 1, "epoch");
	PG_RETURN_BOOL(aq_node_held_return(caller, PG_GETARG_INT64(1), true));
}
