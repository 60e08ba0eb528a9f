/*-------------------------------------------------------------------------
 *
 * transformation.c
 *	  Transformations of dbms_aq: users' functions from one payload type to
 *	  another.
 *
 * A function that the call itself names runs with the caller's rights, like any
 * function that it calls.  What the manager of a queue has chosen for a
 * subscriber runs in a restricted operation, as its owner.  Names in both are
 * found in pg_catalog only: the packages' functions have set search_path.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "oracle/oracle_private.h"

#include "access/htup_details.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "parser/parse_coerce.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
#include "utils/syscache.h"

struct AqTransformation
{
	char	   *name;
	char	   *queue;			/* native name */
	Oid			given;			/* type of the payload */
	Oid			wanted;			/* type of the result */
	char	   *statement;		/* of the queue and the payload */
};

/* --- finding ------------------------------------------------------------------------------ */

/* Execute a query that returns one text; NULL: null. */
static char *
query_text(const char *query, int nargs, Oid *types, Datum *values)
{
	MemoryContext caller = CurrentMemoryContext;
	char	   *text;
	char	   *copy;

	SPI_connect();
	if (SPI_execute_with_args(query, nargs, types, values, NULL, false, 1) != SPI_OK_SELECT || SPI_processed != 1)
		elog(ERROR, "unexpected result from \"%s\"", query);
	text = SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1);
	copy = text == NULL ? NULL : MemoryContextStrdup(caller, text);
	SPI_finish();
	return copy;
}

/* The full name of a subscriber's transformation, chosen by this role; raises an error if it must not be used. */
char *
aq_transformation_of_subscriber(const char *queue, const char *name, Oid role)
{
	Oid			types[] = {TEXTOID, TEXTOID, OIDOID};
	Datum		values[] = {CStringGetTextDatum(queue), CStringGetTextDatum(name), ObjectIdGetDatum(role)};

	return query_text("SELECT sys._check_subscriber_transformation($1, $2, $3)", lengthof(types), types, values);
}

/*
 * The transformation with this name from one type to another; raises an error if
 * it does not exist.  literal: a text is accepted as a literal of the
 * transformation's source type.
 */
AqTransformation *
aq_transformation_find(const char *name, const char *queue, Oid given, Oid wanted, bool literal, bool restricted)
{
	Oid			types[] = {TEXTOID, REGTYPEOID, REGTYPEOID, BOOLOID, BOOLOID};
	Datum		values[] = {
		CStringGetTextDatum(name), ObjectIdGetDatum(given), ObjectIdGetDatum(wanted),
		BoolGetDatum(literal), BoolGetDatum(restricted)
	};
	AqTransformation *transformation = palloc(sizeof(AqTransformation));

	transformation->name = pstrdup(name);
	transformation->queue = pstrdup(queue);
	transformation->given = given;
	transformation->wanted = wanted;
	transformation->statement = psprintf("SELECT %s",
										 query_text("SELECT sys._transformation_expression($1, $2, $3, $4, $5)",
													lengthof(types), types, values));
	return transformation;
}

/* --- applying ----------------------------------------------------------------------------- */

/*
 * Its errors get Oracle's number, except those of the transaction, for which a
 * program looks to try again.  An error of ours has a code and a number
 * already, because errors have Oracle's form here, unless it was raised in a
 * restricted operation: there it is an error of the user's code like others.
 */
pg_noreturn static void
raise_failed(const AqTransformation *transformation, MemoryContext context)
{
	ErrorData  *error;
	const char *sqlstate;

	MemoryContextSwitchTo(context);
	error = CopyErrorData();
	sqlstate = pstrdup(unpack_sql_state(error->sqlerrcode));
	if (!aq_error_is_of_user(error->sqlerrcode) || error->sqlerrcode == ERRCODE_ASSERT_FAILURE ||
		strncmp(sqlstate, "AQ", 2) == 0)
		PG_RE_THROW();
	FlushErrorState();
	ereport(ERROR,
			aq_error(AQ_ERR_TRANSFORMATION_FAILED, "transformation \"%s\" failed: %s", transformation->name, error->message),
			errhint("Its SQLSTATE was %s.", sqlstate));
}

static Datum
execute(const AqTransformation *transformation, Datum payload, bool *isnull)
{
	Oid			types[] = {TEXTOID, transformation->given};
	Datum		values[] = {CStringGetTextDatum(transformation->queue), payload};
	char		nulls[] = {' ', *isnull ? 'n' : ' '};
	MemoryContext caller = CurrentMemoryContext;
	MemoryContext spi;
	int16		length;
	bool		byval;
	Datum		result;

	SPI_connect();
	if (SPI_execute_with_args(transformation->statement, 2, types, values, nulls, false, 1) != SPI_OK_SELECT ||
		SPI_processed != 1 || SPI_gettypeid(SPI_tuptable->tupdesc, 1) != transformation->wanted)
		elog(ERROR, "unexpected result from \"%s\"", transformation->statement);
	result = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, isnull);
	if (!*isnull)
	{
		get_typlenbyval(transformation->wanted, &length, &byval);
		spi = MemoryContextSwitchTo(caller);
		result = length == -1 ? PointerGetDatum(PG_DETOAST_DATUM_COPY(result)) : datumCopy(result, byval, length);
		MemoryContextSwitchTo(spi);
	}
	SPI_finish();
	return result;
}

/* Transforms a payload; the result is in the current memory context. */
Datum
aq_transformation_apply(const AqTransformation *transformation, Datum payload, bool *isnull)
{
	MemoryContext context = CurrentMemoryContext;
	volatile Datum result = (Datum) 0;

	PG_TRY();
	{
		result = execute(transformation, payload, isnull);
	}
	PG_CATCH();
	{
		raise_failed(transformation, context);
	}
	PG_END_TRY();
	return result;
}

/* --- of messages that go to another queue ---------------------------------------------------- */

static void
apply_to_all(const char *name, const char *queue, Oid given, Oid wanted, int n, Datum *payloads, bool *nulls)
{
	AqTransformation *transformation = aq_transformation_find(name, queue, given, wanted, false, true);

	for (int i = 0; i < n; i++)
		payloads[i] = aq_transformation_apply(transformation, payloads[i], &nulls[i]);
}

const AqMoveTransformer aq_transformation_mover = {
	.check = aq_transformation_of_subscriber,
	.apply = apply_to_all,
};

/* --- payloads as text ----------------------------------------------------------------------- */

typedef struct Cast
{
	AqTransformation to_text;
	NullableDatum payload;
} Cast;

static void
cast_arg(void *arg)
{
	Cast	   *cast = arg;

	cast->payload.value = execute(&cast->to_text, cast->payload.value, &cast->payload.isnull);
}

/*
 * A payload as text, as a cast makes it.  The owner of the type can have made a
 * cast with a function: that runs as this role, like the constraints of the type.
 */
Datum
aq_transformation_to_text(Oid type, Oid role, Datum payload, bool *isnull)
{
	Oid			function;
	bool		is_varlena;
	Cast		cast = {
		.to_text = {.queue = "", .given = type, .wanted = TEXTOID, .statement = "SELECT $2::pg_catalog.text"},
		.payload = {.value = payload, .isnull = *isnull}
	};

	switch (type == TEXTOID ? COERCION_PATH_RELABELTYPE
			: find_coercion_pathway(TEXTOID, type, COERCION_EXPLICIT, &function))
	{
		case COERCION_PATH_RELABELTYPE:
			return payload;
		case COERCION_PATH_FUNC:
			aq_run_as(role, cast_arg, &cast);
			*isnull = cast.payload.isnull;
			return cast.payload.value;
		default:
			getTypeOutputInfo(type, &function, &is_varlena);
			return CStringGetTextDatum(OidOutputFunctionCall(function, payload));
	}
}

/* --- a subscriber's ----------------------------------------------------------------------- */

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

/* The function, ready to be called; kept while its statement or expression is. */
typedef struct ReadyFunction
{
	FmgrInfo	function;
	uint64		changes;		/* aq_run_as_code_changes() before */
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
 * _transform(function, payload, NULL of the result's type): apply what a
 * manager of the queue has chosen.  The function is SECURITY DEFINER, but its
 * owner may change that before it begins, and it could leave something behind
 * for the consumer to run: so it does not run with the consumer's rights, and
 * in a restricted operation.
 */
PG_FUNCTION_INFO_V1(aq_transformation_restricted);
Datum
aq_transformation_restricted(PG_FUNCTION_ARGS)
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

/* --- their time ------------------------------------------------------------------------------ */

PG_FUNCTION_INFO_V1(aq_transformation_begin);
Datum
aq_transformation_begin(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(aq_time_now());
}

/*
 * Returns the third argument.  The second one, which was evaluated before it,
 * is the time at which the transformation began.
 */
PG_FUNCTION_INFO_V1(aq_transformation_end);
Datum
aq_transformation_end(PG_FUNCTION_ARGS)
{
	int64		began = PG_ARGISNULL(0) || PG_ARGISNULL(1) ? 0 : PG_GETARG_INT64(1);
	int64		ended = aq_time_now();

	if (began > 0 && ended > began)
	{
		AqQueue    *queue = aq_catalog_get(text_to_cstring(PG_GETARG_TEXT_PP(0)), AQ_RIGHT_ANY);

		aq_pins_pin(queue);
		aq_traffic_add(queue->shm, AQ_TRAFFIC_TRANSFORMATIONS_ELAPSED, ended - began);
	}
	if (PG_ARGISNULL(2))
		PG_RETURN_NULL();
	PG_RETURN_DATUM(PG_GETARG_DATUM(2));
}
