/*-------------------------------------------------------------------------
 *
 * immediate.c
 *	  Calls with immediate visibility: by which process they are executed.
 *
 * aq.enqueue, aq.enqueue_array, aq.dequeue and the procedures of dbms_aq ask
 * here.  The session itself executes
 *
 * - a CALL that is all that its transaction does: the procedure commits before
 *	 it returns.  No other work is committed with it, and what its client gets is
 *	 committed;
 * - a call that enqueues a message or dequeues, if the store can commit that
 *	 whatever happens to the transaction (AqStore.settle_taken).  Rules, conditions
 *	 and input functions are evaluated in the session's transaction then.
 *
 * A helper, which has a transaction of its own, executes the others
 * (autonomous.c), as a statement with the call's own arguments:
 *
 * - on queue tables, and so on buffered queues;
 * - arrays to enqueue, which are several rows;
 * - for recipients that are not known yet, which changes the catalog;
 * - on a queue whose definition the transaction has changed, or perhaps the
 *	 exception queue of the message: only what is committed counts;
 * - with a transformation: what the function changes belongs to the call.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/immediate/immediate_private.h"

#include "access/xact.h"
#include "executor/spi.h"
#include "lib/stringinfo.h"
#include "nodes/parsenodes.h"

/* Argument "visibility" of a function of schema aq: is it immediate? */
bool
aq_immediate_argument(FunctionCallInfo fcinfo, int arg)
{
	char	   *visibility = aq_args_name_or_null(fcinfo, arg, "visibility");

	if (visibility == NULL || strcmp(visibility, "on_commit") == 0)
		return false;
	if (strcmp(visibility, "immediate") == 0)
		return true;
	ereport(ERROR,
			aq_error(AQ_ERR_OPTION_INVALID, "visibility \"%s\" does not exist", visibility),
			errhint("The visibilities are on_commit and immediate."));
}

/* --- in the session ------------------------------------------------------------------ */

/* Only a transaction that has written can have changed it. */
static bool
has_uncommitted_type(const AqQueue *queue)
{
	return TransactionIdIsValid(GetTopTransactionIdIfAny()) && aq_payload_type_is_uncommitted(queue->payload_type);
}

/* A helper cannot enqueue the message either, because it gets the payload as the session sees its type. */
pg_noreturn static void
refuse_uncommitted_type(const AqQueue *queue)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("cannot enqueue into queue \"%s\" with immediate visibility", queue->name),
			 errdetail("This transaction has changed the payload type of the queue."),
			 errhint("Commit the change first.")));
}

/* Is the definition that the session sees the committed one, and can the store do it? */
static bool
is_possible_here(const AqQueue *queue)
{
	return queue->store->settle_taken != NULL && !queue->non_persistent && !aq_pending_has(queue->id) &&
		!has_uncommitted_type(queue);
}

/* Are they subscribers?  For others, a row of the catalog may be needed. */
static bool
are_subscribers(AqQueue *queue, const List *names)
{
	ListCell   *lc;

	foreach(lc, names)
	{
		AqConsumer *consumer = lfirst(lc) != NULL ? aq_catalog_consumer(queue, lfirst(lc)) : NULL;

		if (consumer == NULL || !consumer->subscriber)
			return false;
	}
	return true;
}

/* Can the session enqueue the message?  call->immediate is set if it can. */
bool
aq_immediate_put_here(AqEnqueue *call)
{
	AqQueue    *queue;

	aq_autonomous_check();
	if (call->queue == NULL || call->producer != 0 ||
		(call->delivery_mode != NULL && strcmp(call->delivery_mode, "persistent") != 0))
		return false;
	queue = aq_catalog_get(call->queue, AQ_RIGHT_ENQUEUE);
	if (has_uncommitted_type(queue))
		refuse_uncommitted_type(queue);
	call->immediate = is_possible_here(queue) && !(call->exception_queue != NULL && aq_pending_has_ddl()) &&
		(!queue->multi || are_subscribers(queue, call->recipients));
	if (call->immediate)
		aq_stat_add(AQ_STAT_IMMEDIATE, 1);
	return call->immediate;
}

/* The same for a dequeue. */
bool
aq_immediate_take_here(const AqQueue *queue, int delivery)
{
	aq_autonomous_check();
	if (delivery != AQ_PERSISTENT || !is_possible_here(queue))
		return false;
	aq_stat_add(AQ_STAT_IMMEDIATE, 1);
	return true;
}

pg_noreturn static void
refuse_changed(const AqQueue *queue)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("queue \"%s\" was changed during the call", queue->name),
			 errhint("Try again.")));
}

/*
 * Called before the message is stored.  Users' code may have changed the queue,
 * in the transaction of the call: then its consumers may be uncommitted.
 */
void
aq_immediate_check_put(const AqQueue *queue)
{
	if (!is_possible_here(queue))
		refuse_changed(queue);
}

/* The session has dequeued; begins: it became a user of the queue by it. */
void
aq_immediate_taken(AqImmediate *immediate, const AqQueue *queue, int position, bool begins)
{
	if (!is_possible_here(queue))
		refuse_changed(queue);
	immediate->store = queue->store;
	immediate->shm = queue->shm;
	immediate->position = position;
	immediate->begins = begins;
}

/* What the session has dequeued, if anything, is final when this returns. */
void
aq_immediate_settle(AqImmediate *immediate)
{
	if (immediate->shm == NULL)
		return;
	immediate->store->settle_taken(immediate);
	aq_traffic_add_for(immediate->shm, immediate->position, AQ_TRAFFIC_DEQUEUE_TRANSACTIONS, 1);
	if (immediate->begins)
		aq_pins_unuse(immediate->shm);
	immediate->shm = NULL;
}

/* --- in a helper ----------------------------------------------------------------------- */

/*
 * Executes a statement in a helper.  Its parameters are the first nargs
 * arguments of the call.  emit gets ncolumns columns of each row.
 */
void
aq_immediate_rows(FunctionCallInfo fcinfo, const char *sql, int nargs, int ncolumns, AqEmitColumns emit, void *arg)
{
	Oid			types[AQ_CALL_ARGUMENTS];
	Datum		values[AQ_CALL_ARGUMENTS];
	char		nulls[AQ_CALL_ARGUMENTS];

	Assert(nargs <= AQ_CALL_ARGUMENTS);
	for (int i = 0; i < nargs; i++)
	{
		types[i] = get_fn_expr_argtype(fcinfo->flinfo, i);
		values[i] = PG_GETARG_DATUM(i);
		nulls[i] = PG_ARGISNULL(i) ? 'n' : ' ';
	}
	aq_autonomous_rows(sql, nargs, types, values, nulls, ncolumns, emit, arg);
}

/*
 * Is the CALL all that its transaction does, so that the procedure may commit it?
 *
 * A procedure's context is atomic inside a transaction block, which the
 * statements of one query string are, too; in a function, a DO block of which or
 * a procedure with SET or SECURITY DEFINER; and in whatever a server process
 * executes together.  IsInTransactionBlock() also finds an earlier statement of
 * a pipeline.  A CALL of a procedural language, which may have done something
 * before, is inside a non-atomic connection of SPI.  What remains before the
 * procedure is the evaluation of its arguments: if that has written, it must not
 * be committed here.
 */
bool
aq_immediate_is_alone(FunctionCallInfo fcinfo)
{
	return fcinfo->context != NULL && IsA(fcinfo->context, CallContext) &&
		!castNode(CallContext, fcinfo->context)->atomic &&
		!SPI_inside_nonatomic_context() &&
		!IsInTransactionBlock(true) &&
		!TransactionIdIsValid(GetTopTransactionIdIfAny());
}

/*
 * Commits the call, which is alone; what it returns must not need a snapshot.
 * Not for the client's sake, whose statement ends with a commit anyway: it may
 * fetch the row first, and continue its pipeline.
 */
void
aq_immediate_commit(void)
{
	aq_stat_add(AQ_STAT_IMMEDIATE, 1);
	SPI_connect_ext(SPI_OPT_NONATOMIC);
	SPI_commit();
	SPI_finish();
}

typedef struct Row
{
	int			ncolumns;
	Datum	   *values;
	bool	   *nulls;
	int			n;
} Row;

static void
keep_row(void *arg, Datum *values, bool *nulls)
{
	Row		   *row = arg;

	memcpy(row->values, values, row->ncolumns * sizeof(Datum));
	memcpy(row->nulls, nulls, row->ncolumns * sizeof(bool));
	row->n++;
}

/* The same for a statement that returns one row. */
void
aq_immediate_row(FunctionCallInfo fcinfo, const char *sql, int nargs, int ncolumns, Datum *values, bool *nulls)
{
	Row			row = {.ncolumns = ncolumns, .values = values, .nulls = nulls};

	aq_immediate_rows(fcinfo, sql, nargs, ncolumns, keep_row, &row);
	if (row.n != 1)
		elog(ERROR, "a statement with immediate visibility returned %d rows", row.n);
}

/*
 * The result of an enqueue function of the call's first nargs arguments, and of its
 * key, which comes behind the visibility.
 */
Datum
aq_immediate_value(FunctionCallInfo fcinfo, const char *function, int nargs)
{
	StringInfoData sql;
	Datum		value;

	initStringInfo(&sql);
	appendStringInfo(&sql, "SELECT %s(", function);
	for (int i = 1; i <= nargs; i++)
		appendStringInfo(&sql, "%s$%d", i == 1 ? "" : ", ", i);
	if (PG_NARGS() > nargs + 1)
		appendStringInfo(&sql, ", key => $%d", PG_NARGS());
	appendStringInfoChar(&sql, ')');
	aq_immediate_row(fcinfo, sql.data, PG_NARGS(), 1, &value, &fcinfo->isnull);
	return value;
}
