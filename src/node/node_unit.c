/*-------------------------------------------------------------------------
 *
 * node_unit.c
 *	  Units of this node's queues that other nodes hold: their rows, and what a
 *	  holder says of them.
 *
 * A row of aq_internal.node_unit is a unit that another node holds; without a
 * row, this node itself does.  Epochs come from a sequence, so none is used
 * twice, although rows are deleted.  The messages that the holder has are leased.
 *
 * A unit that has come back first gets a row with this node as its holder.  The
 * messages become ready partition by partition after the commit, and a session that
 * found some of them, and later ones, would not keep the order.  The transaction
 * has the lock until all are; then the worker deletes the row.
 *
 * What changes the rows of a queue has its lock, until the end of the
 * transaction.  An administrator can have it for long, so neither the link worker nor
 * aq.node_return waits for it.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "node/node_private.h"

#include "access/xlog.h"
#include "catalog/pg_type.h"
#include "commands/sequence.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/lock.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/uuid.h"

/* --- rows ------------------------------------------------------------------------------ */

#define UNITS \
	"SELECT u.queue_id, u.shard, u.consumer_number, u.epoch, u.recalled IS NOT NULL, " \
	"extract(epoch FROM clock_timestamp() - coalesce(u.recalled, u.granted))::integer, u.role::oid::bigint, " \
	"EXISTS (SELECT FROM aq_internal.node_identity i WHERE i.node_id = u.holder), " \
	"coalesce((SELECT min(n.node_number) FROM aq_internal.node n WHERE n.node_id = u.holder), 0) FROM aq_internal.node_unit u "

/* The units that the query, which has run, returns, in that memory context; ends the query. */
static List *
read_units(MemoryContext context)
{
	List	   *units = NIL;

	for (uint64 i = 0; i < SPI_processed; i++)
	{
		MemoryContext old = MemoryContextSwitchTo(context);
		AqNodeUnit *unit = palloc(sizeof(AqNodeUnit));

		*unit = (AqNodeUnit) {
			.queue_id = (int32) aq_node_rows_int(i, 1),
			.shard = (int) aq_node_rows_int(i, 2),
			.consumer = aq_node_rows_int(i, 3),
			.epoch = aq_node_rows_int(i, 4),
			.recalled = aq_node_rows_bool(i, 5),
			.age = (int) aq_node_rows_int(i, 6),
			.role = (Oid) aq_node_rows_int(i, 7),
			.is_back = aq_node_rows_bool(i, 8),
			.holder = (int32) aq_node_rows_int(i, 9)
		};
		units = lappend(units, unit);
		MemoryContextSwitchTo(old);
	}
	SPI_finish();
	return units;
}

/* Those of a holder, or of a queue; 0: of any. */
List *
aq_node_unit_list(int32 holder, int32 queue_id)
{
	static AqStatement list = {.command = UNITS "WHERE ($1 = 0 OR u.queue_id = $1) AND "
		"($2 = 0 OR u.holder = (SELECT n.node_id FROM aq_internal.node n WHERE n.node_number = $2)) "
		"ORDER BY u.queue_id, u.consumer_number, u.shard", .nargs = 2, .types = {INT4OID, INT4OID}};
	Datum		values[] = {Int32GetDatum(queue_id), Int32GetDatum(holder)};
	MemoryContext context = CurrentMemoryContext;

	(void) aq_sql_run_kept(&list, values);
	return read_units(context);
}

/* The unit that this node holds with this epoch; NULL: none. */
static AqNodeUnit *
unit_of(const char *holder, int64 epoch)
{
	static AqStatement find = {.command = UNITS "WHERE u.holder = $1::uuid AND u.epoch = $2", .nargs = 2, .types = {TEXTOID, INT8OID}};
	Datum		values[] = {CStringGetTextDatum(holder), Int64GetDatum(epoch)};
	MemoryContext context = CurrentMemoryContext;
	List	   *units;

	(void) aq_sql_run_kept(&find, values);
	units = read_units(context);
	return units != NIL ? linitial(units) : NULL;
}

/* The distributed queues; their numbers. */
List *
aq_node_unit_queues(void)
{
	static AqStatement list = {.command = "SELECT queue_id FROM aq_internal.queue WHERE distributed ORDER BY 1"};
	MemoryContext context = CurrentMemoryContext;
	List	   *ids = NIL;

	(void) aq_sql_run_kept(&list, NULL);
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		MemoryContext old = MemoryContextSwitchTo(context);

		ids = lappend_int(ids, (int) aq_node_rows_int(i, 1));
		MemoryContextSwitchTo(old);
	}
	SPI_finish();
	return ids;
}

/* Locks the units of a queue against other changes. */
bool
aq_node_unit_lock(int32 queue_id, bool wait)
{
	LOCKTAG		tag;

	SET_LOCKTAG_OBJECT(tag, MyDatabaseId, aq_schema_relation("node_unit"), (uint32) queue_id, 0);
	return LockAcquire(&tag, ExclusiveLock, false, !wait) != LOCKACQUIRE_NOT_AVAIL;
}

static void
require_lock(int32 queue_id)
{
	if (!aq_node_unit_lock(queue_id, false))
		ereport(ERROR,
				(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
				 errmsg("another transaction is changing which nodes hold messages of the queue")));
}

/*
 * An epoch, or a token, is used once, whatever happens to this server: a number of
 * a sequence, and above it the timeline.  A failover can lose the latest numbers of
 * the sequence, but other nodes remember them.
 */
int64
aq_node_unit_number(void)
{
	return (int64) GetWALInsertionTimeLine() << 44 | nextval_internal(aq_schema_relation("node_epoch_seq"), false);
}

/* Gives the unit to another node; false: one holds it.  The caller has the lock. */
bool
aq_node_unit_grant(int32 queue_id, int shard, int64 consumer, const char *holder, Oid role)
{
	if (aq_sql_change(psprintf("INSERT INTO aq_internal.node_unit (queue_id, shard, consumer_number, holder, epoch, role) "
							   "VALUES (%d, %d, " INT64_FORMAT ", '%s', " INT64_FORMAT ", %u::oid) ON CONFLICT DO NOTHING",
							   queue_id, shard, consumer, holder, aq_node_unit_number(), role), 0, NULL, NULL, NULL) == 0)
		return false;
	aq_catalog_units_changed(queue_id);
	aq_process_commit_safely(); /* the holder is durable before it has a message */
	return true;
}

/* Units of consumers that were removed here; their holders hear of it.  The caller has the lock. */
void
aq_node_unit_forget_removed(int32 queue_id)
{
	(void) aq_sql_change(psprintf("DELETE FROM aq_internal.node_unit u WHERE queue_id = %d AND consumer_number <> 0 AND NOT EXISTS "
								  "(SELECT FROM aq_internal.subscriber s WHERE s.queue_id = u.queue_id AND s.number = u.consumer_number AND s.consumer IS NOT NULL)",
								  queue_id), 0, NULL, NULL, NULL);
}

/* Asks the unit back.  The caller has the lock. */
void
aq_node_unit_recall(const AqNodeUnit *unit)
{
	(void) aq_sql_change(psprintf("UPDATE aq_internal.node_unit SET recalled = clock_timestamp() WHERE epoch = " INT64_FORMAT
								  " AND recalled IS NULL", unit->epoch), 0, NULL, NULL, NULL);
	aq_process_commit_safely(); /* nothing more is sent, also after a crash */
}

/* --- messages ----------------------------------------------------------------------------- */

/* The position of the consumer with this number; -1: it was removed. */
int
aq_node_unit_position(const AqQueue *queue, int64 number)
{
	const AqConsumer *consumer;

	if (!queue->multi)
		return number == 0 ? 0 : -1;
	consumer = aq_description_consumer(queue, number);
	return consumer != NULL ? consumer->position : -1;
}

/*
 * What becomes of messages that the holder had, or has consumed.  Those that are
 * no longer lent do not matter; but none is left to a transaction that may be
 * rolled back.
 */
static void
settle(AqQueue *queue, int position, AqMode mode, const pg_uuid_t *ids, uint32 n)
{
	AqLeaseOptions options = {.position = position, .mode = mode, .any_receipt = true};
	AqLeaseResult *results = palloc(Max(n, 1) * sizeof(AqLeaseResult));

	if (n > 0)
		queue->store->units->settle_lent(queue, &options, ids, n, results);
	for (uint32 i = 0; i < n; i++)
		if (results[i] == AQ_LEASE_BUSY)
			ereport(ERROR,
					(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
					 errmsg("another transaction is about to decide on messages of queue \"%s\"", queue->name),
					 errhint("Try again.")));
}

/* The messages are ready again, at their place; it was no attempt. */
void
aq_node_unit_give_back(AqQueue *queue, int position, const pg_uuid_t *ids, uint32 n)
{
	settle(queue, position, AQ_MODE_UNSEEN, ids, n);
}

/*
 * The unit is this node's again, with all messages that the holder has not
 * reported.  The caller has the lock.  False: it was no longer held.
 */
bool
aq_node_unit_end(const AqNodeUnit *unit)
{
	AqQueue    *queue;
	pg_uuid_t  *ids;
	uint32		n;
	int			position;

	if (aq_sql_change(psprintf("UPDATE aq_internal.node_unit SET holder = i.node_id, epoch = nextval('aq_internal.node_epoch_seq'), recalled = NULL "
							   "FROM aq_internal.node_identity i WHERE epoch = " INT64_FORMAT, unit->epoch), 0, NULL, NULL, NULL) == 0)
		return false;
	queue = aq_catalog_get_by_id(unit->queue_id, true);
	if (queue == NULL)
		return true;
	aq_pins_pin(queue);
	position = aq_node_unit_position(queue, unit->consumer);
	if (position >= 0)
	{
		n = queue->store->units->lent(queue, unit->shard, position, &ids);
		aq_node_unit_give_back(queue, position, ids, n);
	}
	aq_process_commit_safely();
	return true;
}

/* --- what a holder says -------------------------------------------------------------------- */

static void
note_reported(int32 number, uint32 n, uint32 units)
{
	AqNodeState *state = aq_node_area_get(number);

	if (state != NULL)
	{
		state->reported += n;
		state->returned += units;
	}
	aq_node_area_free();
}

/* Messages of one unit are consumed; false: the caller does not hold it. */
static bool
finish_unit(const char *caller, int64 epoch, const pg_uuid_t *ids, uint32 n)
{
	AqNodeUnit *unit = unit_of(caller, epoch);
	AqQueue    *queue;
	int			position;

	if (unit == NULL)
		return false;
	queue = aq_catalog_get_by_id(unit->queue_id, true);
	if (queue == NULL)
		return false;
	aq_pins_pin(queue);
	position = aq_node_unit_position(queue, unit->consumer);
	if (position >= 0)
		settle(queue, position, AQ_MODE_ACKNOWLEDGE, ids, n);
	return true;
}

/*
 * aq.node_finish(caller, epochs, ids): what was consumed is never ready here again.
 * A transaction that ends the unit at the same time finds its messages taken, and
 * fails.
 */
PG_FUNCTION_INFO_V1(aq_node_unit_finish);
Datum
aq_node_unit_finish(PG_FUNCTION_ARGS)
{
	int32		number;
	const char *caller = aq_node_identity_caller(fcinfo, "aq.node_finish()", &number);
	Datum	   *epochs;
	Datum	   *values;
	bool	   *nulls;
	Datum	   *strange;
	pg_uuid_t  *ids;
	int			n,
				nids,
				nstrange = 0;
	uint32		reported = 0;

	aq_args_require(fcinfo, 1, "epochs");
	aq_args_require(fcinfo, 2, "ids");
	deconstruct_array(PG_GETARG_ARRAYTYPE_P(1), INT8OID, sizeof(int64), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE, &epochs, NULL, &n);
	deconstruct_array(PG_GETARG_ARRAYTYPE_P(2), UUIDOID, UUID_LEN, false, TYPALIGN_CHAR, &values, &nulls, &nids);
	if (n != nids)
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "the arrays must have the same number of elements"));
	strange = palloc(Max(n, 1) * sizeof(Datum));
	ids = palloc(Max(n, 1) * sizeof(pg_uuid_t));
	for (int i = 0, next; i < n; i = next)
	{
		uint32		count = 0;

		for (next = i; next < n && DatumGetInt64(epochs[next]) == DatumGetInt64(epochs[i]); next++)
			if (!nulls[next])
				ids[count++] = *DatumGetUUIDP(values[next]);
		if (finish_unit(caller, DatumGetInt64(epochs[i]), ids, count))
			reported += count;
		else
			strange[nstrange++] = epochs[i];
	}
	aq_process_commit_safely(); /* the answer is the proof on which the holder forgets them */
	note_reported(number, reported, 0);
	if (reported > 0)
		aq_node_change_note_room();
	aq_point("node-finished");
	PG_RETURN_POINTER(construct_array(strange, nstrange, INT8OID, sizeof(int64), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
}

/* aq.node_return(caller, epoch) */
PG_FUNCTION_INFO_V1(aq_node_unit_return);
Datum
aq_node_unit_return(PG_FUNCTION_ARGS)
{
	int32		number;
	const char *caller = aq_node_identity_caller(fcinfo, "aq.node_return()", &number);
	AqNodeUnit *unit;

	aq_args_require(fcinfo, 1, "epoch");
	unit = unit_of(caller, PG_GETARG_INT64(1));
	if (unit == NULL)
		PG_RETURN_BOOL(false);
	require_lock(unit->queue_id);
	if (!aq_node_unit_end(unit))
		PG_RETURN_BOOL(false);
	note_reported(number, 0, 1);
	aq_point("node-returned");
	PG_RETURN_BOOL(true);
}

/* --- an administrator ----------------------------------------------------------------------- */

static bool
is_reachable(int32 number)
{
	AqNodeState state;

	return number != 0 && aq_node_area_copy(number, &state) && state.answered != 0 &&
		!TimestampDifferenceExceeds(state.answered, GetCurrentTimestamp(), aq_node_settings_timeout);
}

/* aq.reclaim_unit(queue_name, shard, consumer, force) */
PG_FUNCTION_INFO_V1(aq_node_unit_break);
Datum
aq_node_unit_break(PG_FUNCTION_ARGS)
{
	AqQueue    *queue;
	AqNodeUnit *unit = NULL;
	int32		id;
	int64		consumer = 0;
	int			shard;
	ListCell   *lc;

	aq_session_require_write("aq.reclaim_unit()");
	queue = aq_catalog_get(aq_args_name(fcinfo, 0, "queue_name"), AQ_RIGHT_OWNER);
	aq_args_require(fcinfo, 1, "shard");
	aq_args_require(fcinfo, 3, "force");
	shard = PG_GETARG_INT32(1);
	if (queue->multi)
	{
		const char *name = aq_args_name(fcinfo, 2, "consumer");
		AqConsumer *found = aq_catalog_consumer(queue, name);

		if (found == NULL)
			ereport(ERROR, aq_error(AQ_ERR_SUBSCRIBER_UNDEFINED, "\"%s\" is not a consumer of the queue", name));
		consumer = found->number;
	}
	id = queue->id;
	(void) aq_node_unit_lock(id, true);
	foreach(lc, aq_node_unit_list(0, id))
	{
		AqNodeUnit *one = lfirst(lc);

		if (one->shard == shard && one->consumer == consumer && !one->is_back)
			unit = one;
	}
	if (unit == NULL)
		ereport(ERROR,
				aq_error(AQ_ERR_UNIT_NOT_HELD, "no other node holds these messages"),
				errhint("aq.node_units shows what other nodes hold."));
	if (!PG_GETARG_BOOL(3) && is_reachable(unit->holder))
		ereport(ERROR,
				aq_error(AQ_ERR_NODE_REACHABLE, "the node that holds these messages is reachable"),
				errdetail("It would continue to deliver messages that are also dequeued here."),
				errhint("Stop its consumers and dequeue here, and the messages come back. Use force => true if you accept that some are consumed twice."));
	(void) aq_node_unit_end(unit);
	PG_RETURN_VOID();
}
