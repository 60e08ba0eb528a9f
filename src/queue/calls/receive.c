/*-------------------------------------------------------------------------
 *
 * receive.c
 *	  CALL aq.receive: waits for messages without a snapshot, and dequeues
 *	  them.
 *
 * An attempt is one execution of aq.dequeue with its own snapshot.  While it
 * finds no messages, the session sleeps without a snapshot, as in aq.wait; if
 * another session takes the message before the woken one, that one sleeps
 * again for the remaining time.
 *
 * A procedure returns one row, so the messages are one value.  It is jsonb,
 * because every driver can read that without knowing pgaq's types, and because
 * one procedure then suffices for all payload types: most drivers get an array
 * of composites as text.
 *
 * A type can have a cast to json, which to_jsonb calls: code of the type's
 * owner.  So it runs as the role that reads payloads.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/calls/calls_private.h"

#include "access/transam.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "nodes/makefuncs.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/hsearch.h"
#include "utils/snapmgr.h"

/* the arguments of aq.receive; the last one is the result */
enum
{
	ARG_QUEUE, ARG_CONSUMER, ARG_MAX_MESSAGES, ARG_TIMEOUT, ARG_CORRELATION, ARG_CONDITION, ARG_DELIVERY, ARG_LEASE,
	ARG_ACKNOWLEDGE, ARG_RECEIPT, ARG_MESSAGES
};

/*
 * the parameters of the statement: as_type replaces the timeout, which is not
 * passed; neither are the arguments after the lease
 */
#define PARAM_AS_TYPE ARG_TIMEOUT
#define NPARAMS ARG_ACKNOWLEDGE

/* context.c recognizes its beginning */
#define STATEMENT \
	"SELECT pg_catalog.array_agg(m) FROM aq.dequeue($1, as_type => $4, consumer => $2, " \
	"max_messages => $3, correlation => $5, condition => $6, delivery_mode => $7, lease => $8) m"

/* The statement is planned once for each payload type. */
typedef struct TypePlan
{
	Oid			payload_type;
	SPIPlanPtr	plan;			/* NULL: not planned yet */
} TypePlan;

static HTAB *plans;

typedef struct Receiving
{
	FunctionCallInfo fcinfo;
	char	   *queue;
	Datum		values[NPARAMS];
	char		nulls[NPARAMS];
	MemoryContext context;
	Datum		messages;		/* 0: none yet */
	bool		counted;		/* as a call; it can make several attempts */
	bool		asked;			/* the messages to be acknowledged have been acknowledged, as far as possible ... */
	bool		acknowledged;	/* ... and at least one was */
} Receiving;

/* SPI is connected. */
static SPIPlanPtr
plan_for(Oid payload_type)
{
	Oid			types[NPARAMS] = {TEXTOID, TEXTOID, INT4OID, payload_type, TEXTOID, TEXTOID, TEXTOID, INTERVALOID};
	TypePlan   *entry;
	SPIPlanPtr	plan;
	bool		found;

	if (plans == NULL)
	{
		HASHCTL		info = {.keysize = sizeof(Oid), .entrysize = sizeof(TypePlan)};

		plans = hash_create("pgaq receive plans", 16, &info, HASH_ELEM | HASH_BLOBS);
	}
	entry = hash_search(plans, &payload_type, HASH_ENTER, &found);
	if (found && entry->plan != NULL)
		return entry->plan;
	entry->plan = NULL;
	plan = SPI_prepare(STATEMENT, NPARAMS, types);
	if (plan == NULL || SPI_keepplan(plan) != 0)
		elog(ERROR, "could not plan \"%s\": %s", STATEMENT, SPI_result_code_string(SPI_result));
	entry->plan = plan;
	return plan;
}

/* Converts an array of rows to an array of JSON objects. */
static void
rows_to_jsonb(void *value)
{
	Datum	   *rows = value;
	Const	   *argument = makeConst(RECORDARRAYOID, -1, InvalidOid, -1, *rows, false, false);
	FmgrInfo	function;

	fmgr_info(F_TO_JSONB, &function);
	fmgr_info_set_expr((Node *) makeFuncExpr(F_TO_JSONB, JSONBOID, list_make1(argument), InvalidOid, InvalidOid,
											 COERCE_EXPLICIT_CALL), &function);
	*rows = FunctionCall1(&function, *rows);
}

/* SPI is connected. */
static Datum
to_jsonb_as(Oid role, Datum rows)
{
	PushActiveSnapshot(GetTransactionSnapshot());
	if (OidIsValid(role))
		aq_run_as_reading(role, rows_to_jsonb, &rows);
	else
		rows_to_jsonb(&rows);
	PopActiveSnapshot();
	return rows;
}

/* Once, before the first dequeue, in the same transaction.  Returns the current description. */
static AqQueue *
acknowledge(Receiving *receiving, AqQueue *queue)
{
	FunctionCallInfo fcinfo = receiving->fcinfo;

	if (receiving->asked || (PG_ARGISNULL(ARG_ACKNOWLEDGE) && PG_ARGISNULL(ARG_RECEIPT)))
		return queue;
	PushActiveSnapshot(GetTransactionSnapshot());
	queue = aq_lease_calls_with_dequeue(fcinfo, ARG_ACKNOWLEDGE, queue,
										aq_args_name_or_null(fcinfo, ARG_CONSUMER, "consumer"),
										&receiving->acknowledged);
	PopActiveSnapshot();
	receiving->asked = true;
	return queue;
}

static void
take(void *arg)
{
	Receiving  *receiving = arg;
	AqQueue    *queue = acknowledge(receiving, aq_catalog_get(receiving->queue, AQ_RIGHT_CONSUMER));
	Oid			payload_type = queue->payload_type;
	Oid			role = payload_type >= FirstNormalObjectId ? aq_enqueue_reading_role(queue) : InvalidOid;
	Datum		value;
	bool		isnull;

	SPI_connect();
	if (SPI_execute_plan(plan_for(payload_type), receiving->values, receiving->nulls, false, 1) != SPI_OK_SELECT ||
		SPI_processed != 1)
		elog(ERROR, "unexpected result from aq.dequeue");
	value = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull);
	if (!isnull)
	{
		MemoryContext old;

		value = to_jsonb_as(role, value);
		old = MemoryContextSwitchTo(receiving->context);
		receiving->messages = PointerGetDatum(PG_DETOAST_DATUM_COPY(value));
		MemoryContextSwitchTo(old);
	}
	SPI_finish();
}

static bool
attempt(void *arg)
{
	Receiving  *receiving = arg;

	aq_wait_call_ahead(take, receiving);
	if (!receiving->counted)
		aq_stat_add(AQ_STAT_DEQUEUE_CALLS, 1);
	receiving->counted = true;
	/* a call that has acknowledged messages does not wait, so that this is committed */
	return receiving->messages != 0 || receiving->acknowledged;
}

/*
 * Copies the arguments, detoasted, because there is no snapshot for detoasting
 * during the wait.
 */
static void
read_arguments(FunctionCallInfo fcinfo, Receiving *receiving)
{
	for (int i = 0; i < NPARAMS; i++)
	{
		receiving->nulls[i] = PG_ARGISNULL(i) || i == PARAM_AS_TYPE ? 'n' : ' ';
		if (receiving->nulls[i] == 'n')
			continue;
		receiving->values[i] = i == ARG_MAX_MESSAGES || i == ARG_LEASE ? PG_GETARG_DATUM(i) : PointerGetDatum(PG_GETARG_TEXT_P(i));
	}
}

PG_FUNCTION_INFO_V1(aq_receive);
Datum
aq_receive(PG_FUNCTION_ARGS)
{
	AQ_TIMED(AQ_TIME_DEQUEUE);
	Receiving	receiving = {.context = CurrentMemoryContext};
	int			delivery = aq_args_delivery(fcinfo, ARG_DELIVERY);
	bool		isnull = false;

	receiving.fcinfo = fcinfo;
	aq_session_require_write("aq.receive()");
	receiving.queue = aq_args_name(fcinfo, ARG_QUEUE, "queue_name");
	read_arguments(fcinfo, &receiving);
	(void) aq_wait_released(receiving.queue, aq_args_name_or_null(fcinfo, ARG_CONSUMER, "consumer"), delivery,
							!PG_ARGISNULL(ARG_CORRELATION) || !PG_ARGISNULL(ARG_CONDITION),
							PG_ARGISNULL(ARG_CORRELATION) ? AQ_ANY_KEY : aq_waiters_pattern_key(PG_GETARG_TEXT_PP(ARG_CORRELATION)),
							PG_ARGISNULL(ARG_TIMEOUT) ? -1 : aq_args_timeout(fcinfo, ARG_TIMEOUT, "timeout"),
							attempt, &receiving);
	if (receiving.messages == 0)
		receiving.messages = DirectFunctionCall1(jsonb_in, CStringGetDatum("[]"));
	PG_RETURN_DATUM(aq_rows_one(fcinfo, &receiving.messages, &isnull));
}
