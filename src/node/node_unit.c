/*-------------------------------------------------------------------------
 *
 * node_unit.c
 *	  Units of this node's queues that other nodes hold: the origin's rules for
 *	  ACQUIRE, ASK, RELEASE and break of the protocol in link/NODES.md.
 *
 * A row of aq_internal.node_unit is a unit that another node holds; without a
 * row, this node itself does.  Epochs come from a sequence, so none is used
 * twice, although rows are deleted.
 *
 * A unit has a heavyweight lock, held until the end of the transaction that
 * changes the row.  No request waits for it: an administrator may have it for
 * long.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "node/node_private.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "queue/store.h"
#include "storage/lock.h"
#include "utils/builtins.h"
#include "utils/uuid.h"

/* the arguments of all functions below, the last one of some */
enum
{
	ARG_QUEUE, ARG_SHARD, ARG_CONSUMER, ARG_CALLER, ARG_MORE
};

#define NOT_A_CONSUMER (-1)

typedef struct Unit
{
	int32		queue_id;
	int			shard;
	int64		consumer;		/* its number, never reused; 0: the only one, without a name; or NOT_A_CONSUMER */
} Unit;

/* The holder of a unit. */
typedef struct Lease
{
	bool		held;			/* by another node; else the rest is not set */
	bool		by_caller;
	int64		epoch;
} Lease;

/* --- arguments --------------------------------------------------------------------- */

static int64
consumer_number(AqQueue *queue, const char *name)
{
	int			position = aq_args_consumer_position(queue, name);

	if (!queue->multi)
		return 0;
	for (int i = 0; i < queue->nconsumers; i++)
		if (queue->consumers[i].position == position)
			return queue->consumers[i].number;
	return NOT_A_CONSUMER;
}

static Unit
unit_of(AqQueue *queue, FunctionCallInfo fcinfo)
{
	int			shard;

	aq_args_require(fcinfo, ARG_SHARD, "shard");
	shard = PG_GETARG_INT32(ARG_SHARD);
	if (queue->store->kind != AQ_STORE_SHARDED)
		ereport(ERROR,
				aq_error(AQ_ERR_FEATURE_UNSUPPORTED, "messages of queue \"%s\" cannot be held by other nodes", queue->name),
				errdetail("It is not a sharded queue."));
	if (shard < 0 || shard >= AQ_MAX_SHARDS)
		ereport(ERROR, aq_error(AQ_ERR_OPTION_INVALID, "\"shard\" must be between 0 and %d", AQ_MAX_SHARDS - 1));
	return (Unit) {
		queue->id, shard, consumer_number(queue, aq_args_name_or_null(fcinfo, ARG_CONSUMER, "consumer"))
	};
}

/* The unit that another node asks for, as which this role may dequeue. */
static Unit
requested_unit(FunctionCallInfo fcinfo)
{
	AqNodeIdentity own;

	aq_session_require_write("a request of another node");
	aq_node_identity_require(&own);
	aq_args_require(fcinfo, ARG_CALLER, "caller");
	return unit_of(aq_catalog_get_for(aq_args_name(fcinfo, ARG_QUEUE, "queue_name"),
									  aq_args_name_or_null(fcinfo, ARG_CONSUMER, "consumer"), 0), fcinfo);
}

static const char *
caller_of(FunctionCallInfo fcinfo)
{
	return DatumGetCString(DirectFunctionCall1(uuid_out, PG_GETARG_DATUM(ARG_CALLER)));
}

/* --- the row and its lock -------------------------------------------------------------- */

static char *
condition(const Unit *unit)
{
	return psprintf("queue_id = %d AND shard = %d AND consumer_number = " INT64_FORMAT, unit->queue_id, unit->shard, unit->consumer);
}

/* Two units can have the same lock: a request for one of them then fails, and is repeated. */
static bool
lock_unit(const Unit *unit, bool wait)
{
	LOCKTAG		tag;

	SET_LOCKTAG_OBJECT(tag, MyDatabaseId, aq_schema_relation("node_unit"),
					   hash_combine(hash_bytes_uint32((uint32) unit->queue_id), (uint32) unit->consumer), unit->shard);
	return LockAcquire(&tag, ExclusiveLock, false, !wait) != LOCKACQUIRE_NOT_AVAIL;
}

static Lease
read_lease(const Unit *unit, const char *caller)
{
	char	   *text = aq_sql_text(psprintf("SELECT CASE WHEN holder = '%s'::uuid THEN epoch ELSE -epoch END FROM aq_internal.node_unit WHERE %s",
											caller, condition(unit)));
	int64		epoch = text == NULL ? 0 : strtoi64(text, NULL, 10);

	return (Lease) {
		epoch != 0, epoch > 0, epoch
	};
}

/* --- requests ------------------------------------------------------------------------------ */

/* Errors, unless the unit can be granted to the caller. */
static void
check_grant(const Unit *unit, const char *caller, const char *consumer)
{
	if (unit->consumer == NOT_A_CONSUMER)
		ereport(ERROR, aq_error(AQ_ERR_SUBSCRIBER_UNDEFINED, "\"%s\" is not a consumer of the queue", consumer));
	if (aq_node_calls_number(caller) == 0)
		ereport(ERROR,
				aq_error(AQ_ERR_NODE_UNDEFINED, "node %s has not been added here", caller),
				errhint("Call aq.node_add for it."));
}

/* Gives the unit to the caller, unless another node holds it, or is about to. */
static bool
grant(const Unit *unit, const char *caller)
{
	if (!lock_unit(unit, false))
		return false;
	/* what removed consumers have left */
	aq_sql_change(psprintf("DELETE FROM aq_internal.node_unit u WHERE queue_id = %d AND consumer_number <> 0 AND NOT EXISTS "
						   "(SELECT FROM aq_internal.subscriber s WHERE s.queue_id = u.queue_id AND s.number = u.consumer_number AND s.consumer IS NOT NULL)",
						   unit->queue_id), 0, NULL, NULL, NULL);
	return aq_sql_change(psprintf("INSERT INTO aq_internal.node_unit (queue_id, shard, consumer_number, holder) VALUES (%d, %d, " INT64_FORMAT ", '%s') "
								  "ON CONFLICT DO NOTHING", unit->queue_id, unit->shard, unit->consumer, caller), 0, NULL, NULL, NULL) > 0;
}

/*
 * aq_internal.unit_acquire(queue_name, shard, consumer, caller, wishes): ACQUIRE,
 * or ASK if the caller does not wish for the unit.
 *
 * The row is read first: whatever else happens to the unit, its holder is never
 * told that it does not hold it, because it would forget what it has consumed.
 */
PG_FUNCTION_INFO_V1(aq_node_unit_acquire);
Datum
aq_node_unit_acquire(PG_FUNCTION_ARGS)
{
	Unit		unit = requested_unit(fcinfo);
	const char *caller = caller_of(fcinfo);
	Lease		lease = read_lease(&unit, caller);
	Datum		values[2];
	bool		nulls[2] = {false};
	bool		granted = false;

	aq_args_require(fcinfo, ARG_MORE, "wishes");
	if (!lease.held && PG_GETARG_BOOL(ARG_MORE))
	{
		check_grant(&unit, caller, aq_args_name_or_null(fcinfo, ARG_CONSUMER, "consumer"));
		granted = grant(&unit, caller);
		lease = read_lease(&unit, caller);
		ForceSyncCommit();		/* the holder is durable before it knows */
	}
	nulls[0] = !lease.by_caller;
	values[0] = Int64GetDatum(lease.epoch);
	values[1] = BoolGetDatum(granted);
	return aq_rows_one(fcinfo, values, nulls);
}

/*
 * aq_internal.unit_release(queue_name, shard, consumer, caller, epoch): RELEASE.
 * False: the caller does not hold the unit with this epoch.
 */
PG_FUNCTION_INFO_V1(aq_node_unit_release);
Datum
aq_node_unit_release(PG_FUNCTION_ARGS)
{
	Unit		unit = requested_unit(fcinfo);
	const char *caller = caller_of(fcinfo);
	Lease		lease = read_lease(&unit, caller);

	aq_args_require(fcinfo, ARG_MORE, "epoch");
	if (!lease.by_caller || lease.epoch != PG_GETARG_INT64(ARG_MORE))
		PG_RETURN_BOOL(false);
	if (!lock_unit(&unit, false))
		ereport(ERROR,
				(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
				 errmsg("another transaction is changing the holder of the unit")));
	PG_RETURN_BOOL(aq_sql_change(psprintf("DELETE FROM aq_internal.node_unit WHERE %s AND holder = '%s' AND epoch = " INT64_FORMAT,
										  condition(&unit), caller, lease.epoch), 0, NULL, NULL, NULL) > 0);
}

/* aq_internal.unit_break(queue_name, shard, consumer): takes the unit from the node that holds it. */
PG_FUNCTION_INFO_V1(aq_node_unit_break);
Datum
aq_node_unit_break(PG_FUNCTION_ARGS)
{
	AqQueue    *queue;
	Unit		unit;

	aq_session_require_write("aq_internal.unit_break()");
	queue = aq_catalog_get(aq_args_name(fcinfo, ARG_QUEUE, "queue_name"), AQ_RIGHT_OWNER);
	unit = unit_of(queue, fcinfo);
	(void) lock_unit(&unit, true);
	if (aq_sql_change(psprintf("DELETE FROM aq_internal.node_unit WHERE %s", condition(&unit)), 0, NULL, NULL, NULL) == 0)
		ereport(ERROR, aq_error(AQ_ERR_UNIT_NOT_HELD, "no other node holds the unit"));
	PG_RETURN_VOID();
}
