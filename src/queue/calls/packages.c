/*-------------------------------------------------------------------------
 *
 * packages.c
 *	  The procedures of package dbms_aq that wait: dequeue, dequeue_array, listen.
 *
 * The rest of the packages is SQL.  Only a procedure in C can release the
 * snapshot of its CALL even inside a transaction block, so these three are in
 * C: an attempt is one call of an SQL function of the package; while it finds
 * no message, the session sleeps without a snapshot.  For the same reason they
 * have no SET clause, and give errors Oracle's form by themselves.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/calls/calls_private.h"

#include "access/htup_details.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/hsearch.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/regproc.h"
#include "utils/syscache.h"

/*
 * columns that an attempt's function returns before the procedure's own
 * results
 */
enum
{
	TRY_SUCCESS, TRY_QUEUE, TRY_CONSUMER, TRY_TIMEOUT, TRY_SELECTIVE, TRY_DELIVERY, TRY_COLUMNS
};

#define MAX_ARGUMENTS 4
#define MAX_RESULTS 5

/* Oracle's values, see sql/oracle/packages/constants.sql */
#define VISIBILITY_IMMEDIATE 1
#define MODE_BROWSE 1

/* plans of attempts, one for each function and payload type */
typedef struct PlanKey
{
	Oid			procedure;
	Oid			payload_type;
} PlanKey;

typedef struct PlanEntry
{
	PlanKey		key;
	SPIPlanPtr	plan;			/* NULL: not planned yet */
	char	   *sql;
	Oid			types[MAX_ARGUMENTS];
} PlanEntry;

static HTAB *plans;

typedef struct Attempt
{
	PlanEntry  *call;
	int			nargs;
	bool		immediate;		/* each in a separate transaction */
	Datum	   *values;			/* arguments */
	char	   *nulls;
	MemoryContext context;		/* context of the results */
	int			nresults;
	Datum		results[MAX_RESULTS];
	bool		isnull[MAX_RESULTS];
	bool		success;
	char	   *queue;
	char	   *consumer;
	int64		timeout_us;		/* -1: no timeout */
	bool		selective;
	int			delivery;
} Attempt;

/* --- attempts ----------------------------------------------------------------- */

/*
 * Builds "SELECT ...  FROM function(arguments)", with the procedure's own
 * results by name.
 */
static PlanEntry *
call_of(FunctionCallInfo fcinfo, TupleDesc results, const char *function, int payload)
{
	PlanKey		key = {fcinfo->flinfo->fn_oid, get_fn_expr_argtype(fcinfo->flinfo, payload)};
	PlanEntry  *entry;
	bool		found;
	StringInfoData sql;

	if (plans == NULL)
	{
		HASHCTL		info;

		info.keysize = sizeof(PlanKey);
		info.entrysize = sizeof(PlanEntry);
		plans = hash_create("pgaq package plans", 16, &info, HASH_ELEM | HASH_BLOBS);
	}
	entry = hash_search(plans, &key, HASH_FIND, NULL);
	if (entry != NULL)
		return entry;

	initStringInfo(&sql);
	appendStringInfoString(&sql, "SELECT success, queue, consumer, timeout, selective, delivery");
	for (int i = 0; i < results->natts; i++)
		appendStringInfo(&sql, ", %s", quote_identifier(NameStr(TupleDescAttr(results, i)->attname)));
	appendStringInfo(&sql, " FROM dbms_aq.%s(", function);
	for (int i = 0; i < PG_NARGS(); i++)
		appendStringInfo(&sql, "%s$%d", i > 0 ? ", " : "", i + 1);
	appendStringInfoChar(&sql, ')');
	entry = hash_search(plans, &key, HASH_ENTER, &found);
	entry->plan = NULL;
	entry->sql = MemoryContextStrdup(TopMemoryContext, sql.data);
	for (int i = 0; i < PG_NARGS(); i++)
		entry->types[i] = get_fn_expr_argtype(fcinfo->flinfo, i);
	return entry;
}

/* SPI is connected. */
static void
plan_call(PlanEntry *call, int nargs)
{
	SPIPlanPtr	plan;

	if (call->plan != NULL)
		return;
	plan = SPI_prepare(call->sql, nargs, call->types);
	if (plan == NULL || SPI_keepplan(plan) != 0)
		elog(ERROR, "could not plan \"%s\": %s", call->sql, SPI_result_code_string(SPI_result));
	call->plan = plan;
}

/* Copies the value of a column, detoasted, to the caller's memory. */
static Datum
keep_column(Attempt *attempt, int column, bool *isnull)
{
	TupleDesc	desc = SPI_tuptable->tupdesc;
	Form_pg_attribute attribute = TupleDescAttr(desc, column);
	Datum		value = SPI_getbinval(SPI_tuptable->vals[0], desc, column + 1, isnull);
	MemoryContext old;

	if (*isnull)
		return 0;
	old = MemoryContextSwitchTo(attempt->context);
	if (attribute->attlen == -1)
		value = PointerGetDatum(PG_DETOAST_DATUM_COPY(value));
	else
		value = datumCopy(value, attribute->attbyval, attribute->attlen);
	MemoryContextSwitchTo(old);
	return value;
}

static int64
seconds_to_us(int seconds)
{
	return seconds < 0 ? -1 : seconds * INT64CONST(1000000);
}

/* all columns of an attempt's row */
typedef struct Row
{
	Attempt    *attempt;
	Datum		columns[TRY_COLUMNS + MAX_RESULTS];
	bool		nulls[TRY_COLUMNS + MAX_RESULTS];
} Row;

/* Executes the call in this session. */
static void
call_here(void *arg)
{
	Row		   *row = arg;
	Attempt    *attempt = row->attempt;

	SPI_connect();
	plan_call(attempt->call, attempt->nargs);
	if (SPI_execute_plan(attempt->call->plan, attempt->values, attempt->nulls, false, 1) != SPI_OK_SELECT ||
		SPI_processed != 1 || SPI_tuptable->tupdesc->natts != TRY_COLUMNS + attempt->nresults)
		elog(ERROR, "unexpected result from dbms_aq._dequeue");
	for (int i = 0; i < TRY_COLUMNS + attempt->nresults; i++)
		row->columns[i] = keep_column(attempt, i, &row->nulls[i]);
	SPI_finish();
}

static bool
try_once(void *arg)
{
	Attempt    *attempt = arg;
	Row			row = {.attempt = attempt};
	Datum	   *columns = row.columns;
	bool	   *nulls = row.nulls;
	MemoryContext old;

	MemoryContextReset(attempt->context);
	old = MemoryContextSwitchTo(attempt->context);
	if (attempt->immediate)
		aq_autonomous_call(attempt->call->sql, attempt->nargs, attempt->call->types, attempt->values, attempt->nulls,
						   TRY_COLUMNS + attempt->nresults, columns, nulls);
	else
		aq_wait_call_ahead(call_here, &row);
	attempt->success = DatumGetBool(columns[TRY_SUCCESS]);
	attempt->queue = TextDatumGetCString(columns[TRY_QUEUE]);
	attempt->consumer = nulls[TRY_CONSUMER] ? NULL : TextDatumGetCString(columns[TRY_CONSUMER]);
	attempt->timeout_us = seconds_to_us(DatumGetInt32(columns[TRY_TIMEOUT]));
	attempt->selective = DatumGetBool(columns[TRY_SELECTIVE]);
	attempt->delivery = DatumGetInt32(columns[TRY_DELIVERY]);
	for (int i = 0; i < attempt->nresults; i++)
	{
		attempt->results[i] = columns[TRY_COLUMNS + i];
		attempt->isnull[i] = nulls[TRY_COLUMNS + i];
	}
	MemoryContextSwitchTo(old);
	return attempt->success;
}

/*
 * Do these dbms_aq.dequeue_options_t request immediate visibility?  A browse
 * takes no messages, so it does not need it.
 */
static bool
wants_immediate(FunctionCallInfo fcinfo, int options)
{
	HeapTupleHeader record;
	bool		isnull;
	int			visibility;

	if (PG_ARGISNULL(options))
		return false;
	record = PG_GETARG_HEAPTUPLEHEADER(options);
	visibility = DatumGetInt32(GetAttributeByName(record, "visibility", &isnull));
	if (isnull || visibility != VISIBILITY_IMMEDIATE)
		return false;
	return DatumGetInt32(GetAttributeByName(record, "dequeue_mode", &isnull)) != MODE_BROWSE || isnull;
}

/*
 * Calls the function with the procedure's arguments until it finds a message
 * or the timeout that it returns expires. payload is the number of the
 * argument that determines the payload type. must_find: raise an error if no
 * message is found; otherwise return the results of the last call, which are
 * null.
 */
static Datum
dequeue_by(FunctionCallInfo fcinfo, const char *function, int payload, bool must_find)
{
	AQ_TIMED(AQ_TIME_DEQUEUE);
	Attempt		attempt = {0};
	Datum		values[MAX_ARGUMENTS];
	char		nulls[MAX_ARGUMENTS];
	TupleDesc	desc;
	int			nest;

	aq_session_require_preload();
	nest = aq_error_begin_oracle();
	attempt.context = AllocSetContextCreate(CurrentMemoryContext, "pgaq attempt", ALLOCSET_SMALL_SIZES);
	Assert(PG_NARGS() <= MAX_ARGUMENTS);
	for (int i = 0; i < PG_NARGS(); i++)
	{
		values[i] = PG_GETARG_DATUM(i);
		nulls[i] = PG_ARGISNULL(i) ? 'n' : ' ';
	}
	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	attempt.values = values;
	attempt.nulls = nulls;
	attempt.nresults = desc->natts;
	Assert(attempt.nresults <= MAX_RESULTS);

	attempt.call = call_of(fcinfo, desc, function, payload);
	attempt.nargs = PG_NARGS();
	attempt.immediate = wants_immediate(fcinfo, 1);
	/* without a snapshot during the wait, they could not be detoasted later */
	for (int i = 0; i < attempt.nargs; i++)
		if (nulls[i] != 'n' && get_typlen(attempt.call->types[i]) == -1)
			values[i] = PointerGetDatum(PG_DETOAST_DATUM(values[i]));

	if (!try_once(&attempt) && attempt.timeout_us != 0)
		(void) aq_wait_released(pstrdup(attempt.queue),
								attempt.consumer ? pstrdup(attempt.consumer) : NULL,
								attempt.delivery, attempt.selective, attempt.timeout_us, try_once, &attempt);
	if (!attempt.success && must_find)
		ereport(ERROR,
				aq_error(AQ_ERR_NO_MESSAGE, "there is no message for this consumer in queue \"%s\"",
						 attempt.queue));
	aq_error_end_oracle(nest);
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), attempt.results, attempt.isnull));
}

static Datum
dequeue_one(FunctionCallInfo fcinfo, bool must_find)
{
	Oid			type = get_fn_expr_argtype(fcinfo->flinfo, 2);
	bool		as_text = type == TEXTOID || type == VARCHAROID;

	return dequeue_by(fcinfo, as_text ? "_dequeue_text" : "_dequeue", 2, must_find);
}

PG_FUNCTION_INFO_V1(aq_packages_dequeue);
Datum
aq_packages_dequeue(PG_FUNCTION_ARGS)
{
	return dequeue_one(fcinfo, true);
}

PG_FUNCTION_INFO_V1(aq_packages_try_dequeue);
Datum
aq_packages_try_dequeue(PG_FUNCTION_ARGS)
{
	return dequeue_one(fcinfo, false);
}

PG_FUNCTION_INFO_V1(aq_packages_dequeue_array);
Datum
aq_packages_dequeue_array(PG_FUNCTION_ARGS)
{
	return dequeue_by(fcinfo, "_dequeue_array", 3, true);
}

PG_FUNCTION_INFO_V1(aq_packages_try_dequeue_array);
Datum
aq_packages_try_dequeue_array(PG_FUNCTION_ARGS)
{
	return dequeue_by(fcinfo, "_dequeue_array", 3, false);
}

/* --- transformations of subscribers ------------------------------------------------ */

static void
check_transformation(Oid function, Oid given, Oid wanted)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	Form_pg_proc proc;
	bool		fits;

	if (!HeapTupleIsValid(tuple))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_FUNCTION),
				 errmsg("function with OID %u does not exist", function)));
	proc = (Form_pg_proc) GETSTRUCT(tuple);
	fits = proc->prokind == PROKIND_FUNCTION && !proc->proretset && proc->prosecdef && proc->pronargs == 1 &&
		proc->proargtypes.values[0] == given && proc->prorettype == wanted;
	ReleaseSysCache(tuple);
	if (!fits)
		ereport(ERROR,
				aq_error(AQ_ERR_FEATURE_UNSUPPORTED, "\"%s\" cannot be the transformation of a subscriber",
						 format_procedure(function)),
				errhint("Create it with dbms_transform.create_transformation, or as SECURITY DEFINER."));
	if (!aq_object_allows(ProcedureRelationId, function, ACL_EXECUTE))
		aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_FUNCTION, get_func_name(function));
}

/* The prepared function; kept as long as its statement or expression. */
typedef struct ReadyFunction
{
	FmgrInfo	function;
	uint64		changes;		/* aq_run_as_code_changes() when it was prepared */
} ReadyFunction;

typedef struct Transformation
{
	FmgrInfo   *function;
	NullableDatum payload;
	NullableDatum result;
} Transformation;

static void
transform_arg(void *arg)
{
	Transformation *t = arg;

	LOCAL_FCINFO(inner, 1);

	InitFunctionCallInfoData(*inner, t->function, 1, InvalidOid, NULL, NULL);
	inner->args[0] = t->payload;
	t->result.value = FunctionCallInvoke(inner);
	t->result.isnull = inner->isnull;
}

static Oid
function_owner(Oid function)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	Oid			owner;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u", function);
	owner = ((Form_pg_proc) GETSTRUCT(tuple))->proowner;
	ReleaseSysCache(tuple);
	return owner;
}

/*
 * _transform(function, payload, NULL of the result's type): applies a
 * transformation that a manager of the queue has chosen.  The function is
 * SECURITY DEFINER, but its owner could change that before it is called, or
 * leave code behind that the consumer would run: so it is not called with the
 * consumer's privileges, and in a security-restricted operation.
 */
PG_FUNCTION_INFO_V1(aq_packages_transform);
Datum
aq_packages_transform(PG_FUNCTION_ARGS)
{
	Oid			function;
	ReadyFunction *ready = fcinfo->flinfo->fn_extra;
	Transformation t;

	if (PG_ARGISNULL(0))
		ereport(ERROR, aq_error(AQ_ERR_ARGUMENT_NULL, "\"function\" must not be null"));
	function = PG_GETARG_OID(0);
	if (ready == NULL || ready->function.fn_oid != function || ready->changes != aq_run_as_code_changes())
	{
		check_transformation(function, get_fn_expr_argtype(fcinfo->flinfo, 1), get_fn_expr_argtype(fcinfo->flinfo, 2));
		ready = MemoryContextAlloc(fcinfo->flinfo->fn_mcxt, sizeof(ReadyFunction));
		ready->changes = aq_run_as_code_changes();
		fmgr_info_cxt(function, &ready->function, fcinfo->flinfo->fn_mcxt);
		fcinfo->flinfo->fn_extra = ready;
	}
	if (ready->function.fn_strict && PG_ARGISNULL(1))
		PG_RETURN_NULL();
	t.function = &ready->function;
	t.payload = fcinfo->args[1];
	aq_run_as(function_owner(function), transform_arg, &t);
	fcinfo->isnull = t.result.isnull;
	return t.result.value;
}

/* --- listen ------------------------------------------------------------------------- */

static char **
strings_of(Datum array, int *n)
{
	Datum	   *elements;
	bool	   *nulls;
	char	  **strings;

	deconstruct_array(DatumGetArrayTypeP(array), TEXTOID, -1, false, TYPALIGN_INT, &elements, &nulls, n);
	strings = palloc0(*n * sizeof(char *) + 1);
	for (int i = 0; i < *n; i++)
		if (!nulls[i])
			strings[i] = TextDatumGetCString(elements[i]);
	return strings;
}

/*
 * listen(agent_list [, wait [, listen_delivery_mode]], OUT agent [, OUT
 * message_delivery_mode]): dbms_aq._listen_targets checks the arguments and
 * returns queues, consumers, seconds, the delivery mode, and the agents with
 * their names as Oracle spells them.
 */
static Datum
listen_by(FunctionCallInfo fcinfo, bool must_find)
{
	AQ_TIMED(AQ_TIME_LISTEN);
	Attempt		targets = {.context = CurrentMemoryContext};
	Oid			types[3] = {get_fn_expr_argtype(fcinfo->flinfo, 0), NUMERICOID, NUMERICOID};
	Datum		values[3] = {0};
	char		nulls[4] = "nnn";
	Datum		columns[5];
	bool		isnull;
	int			n,
				found,
				delivery;
	char	  **queues,
			  **consumers;
	Datum		results[2] = {0};
	bool		result_nulls[2] = {true, true};
	ArrayType  *agents;
	Datum	   *elements;
	bool	   *nulls_in_list;
	int16		length;
	bool		byval;
	char		align;
	int			nest;

	aq_session_require_preload();
	nest = aq_error_begin_oracle();
	for (int i = 0; i < PG_NARGS(); i++)
	{
		values[i] = PG_GETARG_DATUM(i);
		nulls[i] = PG_ARGISNULL(i) ? 'n' : ' ';
	}
	SPI_connect();
	if (SPI_execute_with_args("SELECT * FROM dbms_aq._listen_targets($1, $2, $3)", 3, types, values, nulls,
							  false, 1) != SPI_OK_SELECT || SPI_processed != 1)
		elog(ERROR, "unexpected result from dbms_aq._listen_targets");
	for (int i = 0; i < lengthof(columns); i++)
		columns[i] = keep_column(&targets, i, &isnull);
	SPI_finish();

	queues = strings_of(columns[0], &n);
	consumers = strings_of(columns[1], &n);
	delivery = DatumGetInt32(columns[3]);
	found = aq_wait_listen_released(n, queues, consumers, &delivery, seconds_to_us(DatumGetInt32(columns[2])));
	aq_error_end_oracle(nest);
	if (found < 0)
	{
		if (!must_find)
			return aq_rows_one(fcinfo, results, result_nulls);
		ereport(ERROR,
				aq_error(AQ_ERR_LISTEN_TIMEOUT, "there is no message for any agent of the list"));
	}
	agents = DatumGetArrayTypeP(columns[4]);
	get_typlenbyvalalign(ARR_ELEMTYPE(agents), &length, &byval, &align);
	deconstruct_array(agents, ARR_ELEMTYPE(agents), length, byval, align, &elements, &nulls_in_list, &n);
	results[0] = elements[found];
	results[1] = Int32GetDatum(delivery);
	result_nulls[0] = result_nulls[1] = false;
	return aq_rows_one(fcinfo, results, result_nulls);
}

PG_FUNCTION_INFO_V1(aq_packages_listen);
Datum
aq_packages_listen(PG_FUNCTION_ARGS)
{
	return listen_by(fcinfo, true);
}

PG_FUNCTION_INFO_V1(aq_packages_try_listen);
Datum
aq_packages_try_listen(PG_FUNCTION_ARGS)
{
	return listen_by(fcinfo, false);
}
