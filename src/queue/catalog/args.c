/*-------------------------------------------------------------------------
 *
 * args.c
 *	  Arguments of SQL functions: names, consumers, delivery modes, timeouts.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/catalog/catalog_private.h"

#include "catalog/pg_type.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

/* The number of the argument with this name of the SQL function that is called; -1: it has none. */
int
aq_args_find(FunctionCallInfo fcinfo, const char *name)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(fcinfo->flinfo->fn_oid));
	Oid		   *types;
	char	  **names;
	char	   *modes;
	int			n;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u", fcinfo->flinfo->fn_oid);
	n = get_func_arg_info(tuple, &types, &names, &modes);
	ReleaseSysCache(tuple);
	for (int i = 0; names != NULL && i < n; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	return -1;
}

char *
aq_args_name_or_null(FunctionCallInfo fcinfo, int arg, const char *what)
{
	if (PG_ARGISNULL(arg))
		return NULL;
	return text_to_cstring(PG_GETARG_TEXT_PP(arg));
}

void
aq_args_require(FunctionCallInfo fcinfo, int arg, const char *what)
{
	if (PG_ARGISNULL(arg))
		ereport(ERROR, aq_error(AQ_ERR_ARGUMENT_NULL, "\"%s\" must not be null", what));
}

char *
aq_args_name(FunctionCallInfo fcinfo, int arg, const char *what)
{
	aq_args_require(fcinfo, arg, what);
	return text_to_cstring(PG_GETARG_TEXT_PP(arg));
}

/* Raises an error if the name is not valid for a new queue or consumer. */
void
aq_args_check_name(const char *name, const char *what)
{
	Size		length = strlen(name);

	if (length == 0)
		ereport(ERROR, aq_error(AQ_ERR_NAME_INVALID, "%s name must not be empty", what));
	if (length >= AQ_MAX_NAME)
		ereport(ERROR,
				aq_error(AQ_ERR_NAME_INVALID, "%s name \"%s\" is too long", what, name),
				errhint("Names have at most %d bytes.", AQ_MAX_NAME - 1));
	if (pg_strncasecmp(name, "aq$", 3) == 0)
		ereport(ERROR,
				aq_error(AQ_ERR_NAME_INVALID, "%s name \"%s\" is reserved", what, name),
				errhint("Names must not begin with \"aq$\"."));
}

/*
 * For an object that exists: if if_not_exists is true, issues a notice and
 * returns true.
 */
bool
aq_args_if_not_exists(FunctionCallInfo fcinfo, int arg, const char *what, const char *name)
{
	bool		fine = !PG_ARGISNULL(arg) && PG_GETARG_BOOL(arg);

	if (fine)
		ereport(NOTICE,
				(errcode(ERRCODE_DUPLICATE_OBJECT),
				 errmsg("%s \"%s\" already exists, skipping", what, name)));
	return fine;
}

/*
 * The position of the consumer that dequeues; -1 if it is unknown and so finds
 * no messages.
 */
int
aq_args_consumer_position(AqQueue *queue, const char *name)
{
	AqConsumer *consumer;

	if (!queue->multi)
	{
		if (name != NULL)
			ereport(ERROR,
					aq_error(AQ_ERR_CONSUMER_FORBIDDEN,
							 "queue \"%s\" has a single consumer, which has no name", queue->name),
					errhint("Leave the consumer null, or create the queue with multiple_consumers => true."));
		return 0;
	}
	if (name == NULL)
		ereport(ERROR,
				aq_error(AQ_ERR_CONSUMER_MISSING,
						 "queue \"%s\" has multiple consumers: name one", queue->name),
				errhint("Name a subscriber or recipient as the consumer."));
	consumer = aq_catalog_consumer(queue, name);
	return consumer ? consumer->position : -1;
}

/* NULL: persistent */
int
aq_args_delivery_named(const char *name)
{
	if (name == NULL || strcmp(name, "persistent") == 0)
		return AQ_PERSISTENT;
	if (strcmp(name, "buffered") == 0)
		return AQ_BUFFERED;
	if (strcmp(name, "persistent_or_buffered") == 0)
		return AQ_PERSISTENT_OR_BUFFERED;
	ereport(ERROR,
			aq_error(AQ_ERR_DELIVERY_INVALID, "delivery mode \"%s\" does not exist", name),
			errhint("The delivery modes are persistent, buffered and persistent_or_buffered."));
}

int
aq_args_delivery(FunctionCallInfo fcinfo, int arg)
{
	return aq_args_delivery_named(aq_args_name_or_null(fcinfo, arg, "delivery_mode"));
}

/* The elements of an array, of whatever type and however many dimensions. */
void
aq_args_elements(ArrayType *array, Datum **values, bool **nulls, int *n)
{
	int16		length;
	bool		byval;
	char		align;

	get_typlenbyvalalign(ARR_ELEMTYPE(array), &length, &byval, &align);
	deconstruct_array(array, ARR_ELEMTYPE(array), length, byval, align, values, nulls, n);
}

/* --- timeouts ----------------------------------------------------------------------- */

/* Is the text only a number above zero?  Zero, and less, means the same in each unit. */
static bool
is_plain_number(const char *text)
{
	return strspn(text, " +.0123456789eE") == strlen(text) && strtod(text, NULL) > 0;
}

/*
 * The argument, an interval, or a value whose text is one, in microseconds.  A
 * number without a unit is refused: an interval of PostgreSQL reads seconds, and
 * most programs count timeouts in milliseconds.
 */
int64
aq_args_timeout(FunctionCallInfo fcinfo, int arg, const char *what)
{
	Oid			type = getBaseType(get_fn_expr_argtype(fcinfo->flinfo, arg));
	Oid			output;
	bool		is_varlena;
	char	   *text;

	if (type == INTERVALOID)
		return aq_interval_to_us(PG_GETARG_DATUM(arg));
	getTypeOutputInfo(type, &output, &is_varlena);
	text = OidOutputFunctionCall(output, PG_GETARG_DATUM(arg));
	if (is_plain_number(text))
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "\"%s\" has no unit: %s", what, text),
				errhint("Specify an interval, for example '%s ms' or '%s s'.", aq_error_clip(text), aq_error_clip(text)));
	return aq_interval_to_us(DirectFunctionCall3(interval_in, CStringGetDatum(text), ObjectIdGetDatum(InvalidOid),
												 Int32GetDatum(-1)));
}
