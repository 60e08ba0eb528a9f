/*-------------------------------------------------------------------------
 *
 * enqueue_calls.c
 *	  aq.enqueue and aq.enqueue_array: their arguments.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/calls/calls_private.h"

#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

/* the arguments after queue_name and payload(s); functions of a catalog of 0.1.0 have no key */
enum
{
	ARG_QUEUE, ARG_PAYLOAD, ARG_PRIORITY, ARG_DELAY, ARG_EXPIRATION, ARG_CORRELATION,
	ARG_RECIPIENTS, ARG_SENDER, ARG_EXCEPTION_QUEUE, ARG_PROPERTIES, ARG_RELATIVE, ARG_DEVIATION,
	ARG_DELIVERY, ARG_PRODUCER, ARG_RUN_AT, ARG_VISIBILITY, ARG_KEY,
	/* of aq.enqueue_array */
	ARG_ARRAY_OPTIONS = ARG_VISIBILITY, ARG_ARRAY_VISIBILITY, ARG_ARRAY_KEY,
	/* of aq.enqueue_unique, which has the unique key between the payload and the options, and no visibility */
	ARG_UNIQUE_KEY = ARG_PRIORITY, ARG_UNIQUE_OPTIONS_KEY = ARG_VISIBILITY + 1, ARG_UNIQUE_FOR, ARG_ON_CONFLICT
};

static struct varlena *
varlena_arg(FunctionCallInfo fcinfo, int arg)
{
	return PG_ARGISNULL(arg) ? NULL : (struct varlena *) PG_GETARG_VARLENA_PP(arg);
}

static List *
names_arg(FunctionCallInfo fcinfo, int arg)
{
	List	   *names = NIL;
	Datum	   *elements;
	bool	   *nulls;
	int			n;

	if (PG_ARGISNULL(arg))
		return NIL;
	deconstruct_array(PG_GETARG_ARRAYTYPE_P(arg), TEXTOID, -1, false, TYPALIGN_INT, &elements, &nulls, &n);
	for (int i = 0; i < n; i++)
		names = lappend(names, nulls[i] ? NULL : TextDatumGetCString(elements[i]));
	return names;
}

static const TimestampTz *
time_arg(FunctionCallInfo fcinfo, int arg)
{
	TimestampTz *when;

	if (PG_ARGISNULL(arg))
		return NULL;
	when = palloc(sizeof(TimestampTz));
	*when = PG_GETARG_TIMESTAMPTZ(arg);
	return when;
}

/* between: arguments between the payload and the options; key: the number of the key's. */
static void
read_arguments(FunctionCallInfo fcinfo, const char *command, int between, int key, AqEnqueue *call)
{
#define ARG(which) (ARG_##which + between)
	call->command = command;
	call->queue = aq_args_name_or_null(fcinfo, ARG_QUEUE, "queue_name");
	call->priority = PG_ARGISNULL(ARG(PRIORITY)) ? AQ_DEFAULT_PRIORITY : PG_GETARG_INT32(ARG(PRIORITY));
	call->default_priority = PG_ARGISNULL(ARG(PRIORITY));
	call->default_delay = call->default_expiration = true;
	call->delay = PG_ARGISNULL(ARG(DELAY)) ? NULL : PG_GETARG_INTERVAL_P(ARG(DELAY));
	call->expiration = PG_ARGISNULL(ARG(EXPIRATION)) ? NULL : PG_GETARG_INTERVAL_P(ARG(EXPIRATION));
	call->correlation = varlena_arg(fcinfo, ARG(CORRELATION));
	call->recipients = names_arg(fcinfo, ARG(RECIPIENTS));
	call->sender = varlena_arg(fcinfo, ARG(SENDER));
	call->exception_queue = varlena_arg(fcinfo, ARG(EXCEPTION_QUEUE));
	call->properties = varlena_arg(fcinfo, ARG(PROPERTIES));
	call->relative_msgid = PG_ARGISNULL(ARG(RELATIVE)) ? NULL : PG_GETARG_UUID_P(ARG(RELATIVE));
	call->deviation = aq_args_name_or_null(fcinfo, ARG(DEVIATION), "deviation");
	call->delivery_mode = aq_args_name_or_null(fcinfo, ARG(DELIVERY), "delivery_mode");
	call->producer = aq_producer_named((text *) varlena_arg(fcinfo, ARG(PRODUCER)));
	call->run_at = time_arg(fcinfo, ARG(RUN_AT));
	call->key = PG_NARGS() > key ? varlena_arg(fcinfo, key) : NULL;
#undef ARG
}

static Datum
enqueue_one(FunctionCallInfo fcinfo, Oid payload_type)
{
	AqEnqueue	call = {.payload_type = payload_type};
	pg_uuid_t  *id;

	read_arguments(fcinfo, "aq.enqueue()", 0, ARG_KEY, &call);
	if (aq_immediate_argument(fcinfo, ARG_VISIBILITY) && !aq_immediate_put_here(&call))
		return aq_immediate_value(fcinfo, "aq.enqueue", ARG_VISIBILITY);
	id = aq_enqueue_message(&call, PG_ARGISNULL(ARG_PAYLOAD) ? 0 : PG_GETARG_DATUM(ARG_PAYLOAD),
							PG_ARGISNULL(ARG_PAYLOAD));
	if (id == NULL)
		PG_RETURN_NULL();
	PG_RETURN_UUID_P(id);
}

PG_FUNCTION_INFO_V1(aq_enqueue_calls_text);
Datum
aq_enqueue_calls_text(PG_FUNCTION_ARGS)
{
	return enqueue_one(fcinfo, TEXTOID);
}

PG_FUNCTION_INFO_V1(aq_enqueue_calls_typed);
Datum
aq_enqueue_calls_typed(PG_FUNCTION_ARGS)
{
	return enqueue_one(fcinfo, get_fn_expr_argtype(fcinfo->flinfo, ARG_PAYLOAD));
}

/* aq.enqueue_unique(queue_name, payload, unique_key, ..., msgid, is_new) */
static Datum
enqueue_unique(FunctionCallInfo fcinfo, Oid payload_type)
{
	AqEnqueue	call = {.payload_type = payload_type};
	AqUniqueOptions options = {.span = -1};
	bool		is_new;
	pg_uuid_t  *id;
	Datum		values[2];
	bool		nulls[2] = {0};

	read_arguments(fcinfo, "aq.enqueue_unique()", 1, ARG_UNIQUE_OPTIONS_KEY, &call);
	options.key = aq_args_name_or_null(fcinfo, ARG_UNIQUE_KEY, "unique_key");
	options.on_conflict = aq_args_name(fcinfo, ARG_ON_CONFLICT, "on_conflict");
	if (!PG_ARGISNULL(ARG_UNIQUE_FOR))
		options.span = Max(aq_interval_option(PG_GETARG_DATUM(ARG_UNIQUE_FOR), AQ_ERR_OPTION_INVALID, "unique_for"), 0);
	id = aq_enqueue_unique(&call, PG_ARGISNULL(ARG_PAYLOAD) ? 0 : PG_GETARG_DATUM(ARG_PAYLOAD), PG_ARGISNULL(ARG_PAYLOAD),
						   &options, &is_new);
	values[0] = UUIDPGetDatum(id);
	nulls[0] = id == NULL;
	values[1] = BoolGetDatum(is_new);
	return aq_rows_one(fcinfo, values, nulls);
}

PG_FUNCTION_INFO_V1(aq_enqueue_calls_unique_text);
Datum
aq_enqueue_calls_unique_text(PG_FUNCTION_ARGS)
{
	return enqueue_unique(fcinfo, TEXTOID);
}

PG_FUNCTION_INFO_V1(aq_enqueue_calls_unique_typed);
Datum
aq_enqueue_calls_unique_typed(PG_FUNCTION_ARGS)
{
	return enqueue_unique(fcinfo, get_fn_expr_argtype(fcinfo->flinfo, ARG_PAYLOAD));
}

PG_FUNCTION_INFO_V1(aq_enqueue_calls_array);
Datum
aq_enqueue_calls_array(PG_FUNCTION_ARGS)
{
	AqEnqueue	call = {0};
	Datum	   *payloads = NULL;
	bool	   *nulls = NULL;
	int			n = 0;

	if (aq_immediate_argument(fcinfo, ARG_ARRAY_VISIBILITY))
		return aq_immediate_value(fcinfo, "aq.enqueue_array", ARG_ARRAY_VISIBILITY);
	read_arguments(fcinfo, "aq.enqueue_array()", 0, ARG_ARRAY_KEY, &call);
	if (!PG_ARGISNULL(ARG_PAYLOAD))
	{
		ArrayType  *array = PG_GETARG_ARRAYTYPE_P(ARG_PAYLOAD);

		call.payload_type = ARR_ELEMTYPE(array);
		aq_args_elements(array, &payloads, &nulls, &n);
	}
	if (!PG_ARGISNULL(ARG_ARRAY_OPTIONS))
		call.each = aq_message_options_read(&call, PG_DETOAST_DATUM(PG_GETARG_DATUM(ARG_ARRAY_OPTIONS)), n);
	PG_RETURN_ARRAYTYPE_P(aq_enqueue_ids_to_array(aq_enqueue_messages(&call, n, payloads, nulls), n));
}
