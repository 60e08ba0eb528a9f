/*-------------------------------------------------------------------------
 *
 * packages.c
 *	  The procedures of package dbms_aq.
 *
 * They read the options (oracle_options.c), and call what is behind aq.enqueue,
 * aq.dequeue and aq.listen.  Only a procedure in C can release the snapshot of
 * its CALL even inside a transaction block: while a dequeue finds nothing, the
 * session sleeps without a snapshot, and each attempt has one of its own.
 *
 * A call with immediate visibility is committed by its procedure, or whatever
 * becomes of the transaction, or executed by a helper (immediate.c), which calls
 * the function sys._put_... or sys._take_... of the same arguments.  The options
 * are read in both processes.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "oracle/oracle_private.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

/* arguments of enqueue and enqueue_array, and of the functions for the helper */
enum
{
	PUT_QUEUE, PUT_OPTIONS, PUT_PROPERTIES, PUT_PAYLOAD
};

enum
{
	PUTS_QUEUE, PUTS_OPTIONS, PUTS_SIZE, PUTS_PROPERTIES, PUTS_PAYLOADS
};

/* and of dequeue and dequeue_array */
enum
{
	TAKE_QUEUE, TAKE_OPTIONS, TAKE_AS_TYPE
};

enum
{
	TAKES_QUEUE, TAKES_OPTIONS, TAKES_SIZE, TAKES_AS_TYPE
};

/* results of dequeue and dequeue_array; the array has more behind them */
enum
{
	TAKEN_PROPERTIES, TAKEN_PAYLOAD, TAKEN_ID, TAKEN_COLUMNS
};

#define MAX_RESULTS 5

/*
 * Does the same as the SET clauses of the packages' functions in SQL: resolves
 * names in pg_catalog, and gives errors Oracle's form.  A procedure that waits
 * cannot have such a clause.
 */
static int
begin_call(void)
{
	int			nest;

	aq_session_require_preload();
	nest = aq_caller_path_pin();
	(void) aq_error_begin_oracle();
	return nest;
}

/* Not called after an error, which ends both with the (sub)transaction. */
static void
end_call(int nest)
{
	aq_caller_path_leave(nest);
}

/* A statement has its own snapshot, even in a procedure that has begun with an older one. */
static void
begin_statement(void)
{
	CommandCounterIncrement();
	PushActiveSnapshot(GetTransactionSnapshot());
}

static void
end_statement(void)
{
	PopActiveSnapshot();
}

static NullableDatum
argument(FunctionCallInfo fcinfo, int arg)
{
	return fcinfo->args[arg];
}

static const char *
string_argument(FunctionCallInfo fcinfo, int arg)
{
	return PG_ARGISNULL(arg) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(arg));
}

/* --- enqueue -------------------------------------------------------------------------------- */

/* In schema aq the id of a message that no subscriber wants is null; in Oracle that is an error. */
pg_noreturn static void
raise_no_recipients(const char *queue)
{
	ereport(ERROR,
			aq_error(AQ_ERR_NO_RECIPIENTS, "no subscriber of queue \"%s\" matches the message", queue),
			errhint("Name recipients, or add a subscriber with dbms_aqadm.add_subscriber."));
}

/* The payload as the queue is to get it; *isnull: it is null. */
static Datum
transform_payload(AqOraclePut *put, Datum payload, bool *isnull)
{
	Oid			given = put->call.payload_type;
	Oid			wanted = aq_catalog_get(put->call.queue, AQ_RIGHT_ENQUEUE)->payload_type;
	AqTransformation *transformation = aq_transformation_find(put->transformation, put->call.queue, given, wanted,
															  true, false);

	put->call.payload_type = wanted;
	return aq_transformation_apply(transformation, payload, isnull);
}

/* Enqueue a message of the type; put->call.payload_type is set. */
static pg_uuid_t *
put_one(AqOraclePut *put, Oid payload_type, Datum payload, bool isnull)
{
	pg_uuid_t  *id;

	put->call.payload_type = payload_type;
	if (put->transformation != NULL)
		payload = transform_payload(put, payload, &isnull);
	id = aq_enqueue_message(&put->call, payload, isnull);
	if (id == NULL)
		raise_no_recipients(put->call.queue);
	return id;
}

/* enqueue, in this transaction or in that of a helper; *immediate: it is */
static Datum
enqueue_one(FunctionCallInfo fcinfo, bool here, bool *immediate)
{
	AQ_TIMED(AQ_TIME_ENQUEUE);
	AqOraclePut put;
	Datum		id;
	bool		isnull;
	int			nest = begin_call();

	begin_statement();
	aq_oracle_options_put(string_argument(fcinfo, PUT_QUEUE), argument(fcinfo, PUT_OPTIONS),
						  argument(fcinfo, PUT_PROPERTIES), &put);
	*immediate = put.immediate;
	if (put.immediate && !here && (put.transformation != NULL || !aq_immediate_put_here(&put.call)))
		aq_immediate_row(fcinfo, "SELECT sys._put_message($1, $2, $3, $4)", PG_NARGS(), 1, &id, &isnull);
	else
		id = UUIDPGetDatum(put_one(&put, get_fn_expr_argtype(fcinfo->flinfo, PUT_PAYLOAD),
								   fcinfo->args[PUT_PAYLOAD].value, fcinfo->args[PUT_PAYLOAD].isnull));
	end_statement();
	end_call(nest);
	return id;
}

PG_FUNCTION_INFO_V1(aq_packages_enqueue);
Datum
aq_packages_enqueue(PG_FUNCTION_ARGS)
{
	bool		alone = aq_immediate_is_alone(fcinfo);
	bool		immediate;
	Datum		id = enqueue_one(fcinfo, alone, &immediate);
	bool		isnull = false;

	if (alone && immediate)
		aq_immediate_commit();
	return aq_rows_one(fcinfo, &id, &isnull);
}

PG_FUNCTION_INFO_V1(aq_packages_put_message);
Datum
aq_packages_put_message(PG_FUNCTION_ARGS)
{
	bool		immediate;

	return enqueue_one(fcinfo, true, &immediate);
}

/* --- enqueue_array ------------------------------------------------------------------------- */

typedef struct Messages
{
	int			n;
	Datum	   *properties;
	bool	   *no_properties;
	Oid			payload_type;
	Datum	   *payloads;
	bool	   *nulls;
} Messages;

/* An array, as far as the call uses it: its first n elements. */
static ArrayType *
read_array(FunctionCallInfo fcinfo, int arg, int n, const char *name, const char *hint, Datum **values, bool **nulls)
{
	ArrayType  *array = PG_ARGISNULL(arg) ? NULL : PG_GETARG_ARRAYTYPE_P(arg);
	int			size = array == NULL ? 0 : ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));

	if (size < n)
		ereport(ERROR,
				aq_error(AQ_ERR_ARGUMENT_MISSING, "%s has %d elements, not %d", name, size, n),
				hint != NULL ? errhint("%s", hint) : 0);
	aq_args_elements(array, values, nulls, &size);
	return array;
}

static void
read_messages(FunctionCallInfo fcinfo, Messages *messages)
{
	ArrayType  *payloads;
	int			size = 0;

	if (!PG_ARGISNULL(PUTS_SIZE))
		size = DatumGetInt32(DirectFunctionCall1(numeric_int4, PG_GETARG_DATUM(PUTS_SIZE)));
	if (size < 1)
		ereport(ERROR,
				aq_error(AQ_ERR_ARGUMENT_MISSING, "array_size must be positive, not %s",
						 PG_ARGISNULL(PUTS_SIZE) ? "null" : psprintf("%d", size)));
	messages->n = size;
	payloads = read_array(fcinfo, PUTS_PAYLOADS, size, "payload_array", NULL, &messages->payloads, &messages->nulls);
	messages->payload_type = ARR_ELEMTYPE(payloads);
	(void) read_array(fcinfo, PUTS_PROPERTIES, size, "message_properties_array",
					  "Pass the properties of each message, null for the defaults.",
					  &messages->properties, &messages->no_properties);
}

/* Do the two have the same properties? */
static bool
are_alike(const Messages *messages, int one, int other, FmgrInfo *equal)
{
	if (messages->no_properties[one] || messages->no_properties[other])
		return messages->no_properties[one] && messages->no_properties[other];
	return datumIsEqual(messages->properties[one], messages->properties[other], false, -1) ||
		DatumGetBool(FunctionCall2Coll(equal, DEFAULT_COLLATION_OID, messages->properties[one],
									   messages->properties[other]));
}

/* Messages from first to last, which have the same properties. */
static char *
put_alike(FunctionCallInfo fcinfo, const Messages *messages, int first, int last, pg_uuid_t **ids)
{
	AqOraclePut put;
	pg_uuid_t **made;

	aq_oracle_options_put(string_argument(fcinfo, PUTS_QUEUE), argument(fcinfo, PUTS_OPTIONS),
						  (NullableDatum) {messages->properties[first], messages->no_properties[first]}, &put);
	if (put.transformation != NULL)
		for (int i = first; i <= last; i++)
			ids[i] = put_one(&put, messages->payload_type, messages->payloads[i], messages->nulls[i]);
	else
	{
		put.call.command = "aq.enqueue_array()";
		put.call.payload_type = messages->payload_type;
		made = aq_enqueue_messages(&put.call, last - first + 1, &messages->payloads[first], &messages->nulls[first]);
		memcpy(&ids[first], made, (last - first + 1) * sizeof(pg_uuid_t *));
	}
	return put.call.queue;
}

/* In this transaction.  Messages with the same properties, byte by byte, go in one call. */
static ArrayType *
put_messages(FunctionCallInfo fcinfo)
{
	Messages	messages;
	FmgrInfo	equal;
	pg_uuid_t **ids;
	char	   *queue = NULL;
	int			last;

	read_messages(fcinfo, &messages);
	fmgr_info(F_RECORD_IMAGE_EQ, &equal);	/* 1 and 1.0 are equal in a jsonb, and not the same */
	ids = palloc(messages.n * sizeof(pg_uuid_t *));
	for (int first = 0; first < messages.n; first = last + 1)
	{
		for (last = first; last + 1 < messages.n && are_alike(&messages, first, last + 1, &equal); last++)
			;
		queue = put_alike(fcinfo, &messages, first, last, ids);
	}
	for (int i = 0; i < messages.n; i++)
		if (ids[i] == NULL)
			raise_no_recipients(queue);
	return aq_enqueue_ids_to_array(ids, messages.n);
}

/* enqueue_array, in this transaction or in that of a helper */
static ArrayType *
enqueue_several(FunctionCallInfo fcinfo, bool here)
{
	AQ_TIMED(AQ_TIME_ENQUEUE);
	ArrayType  *ids;
	int			nest = begin_call();

	begin_statement();
	if (here)
		ids = put_messages(fcinfo);
	else
	{
		Datum		value;
		bool		isnull;

		aq_immediate_row(fcinfo, "SELECT sys._put_messages($1, $2, $3, $4, $5)", PG_NARGS(), 1, &value, &isnull);
		ids = DatumGetArrayTypeP(value);
	}
	end_statement();
	end_call(nest);
	return ids;
}

/* enqueue_array(...): ids, perhaps errors, which are never there, and their number */
PG_FUNCTION_INFO_V1(aq_packages_enqueue_array);
Datum
aq_packages_enqueue_array(PG_FUNCTION_ARGS)
{
	bool		immediate = aq_oracle_options_put_is_immediate(argument(fcinfo, PUTS_OPTIONS));
	bool		alone = aq_immediate_is_alone(fcinfo);
	TupleDesc	desc;
	Datum		results[3] = {0};
	bool		nulls[3] = {false, true, true};
	ArrayType  *ids;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	ids = enqueue_several(fcinfo, alone || !immediate);
	if (alone && immediate)
		aq_immediate_commit();
	results[0] = PointerGetDatum(ids);
	results[desc->natts - 1] = Int32GetDatum(ArrayGetNItems(ARR_NDIM(ids), ARR_DIMS(ids)));
	nulls[desc->natts - 1] = false;
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), results, nulls));
}

PG_FUNCTION_INFO_V1(aq_packages_put_messages);
Datum
aq_packages_put_messages(PG_FUNCTION_ARGS)
{
	PG_RETURN_ARRAYTYPE_P(enqueue_several(fcinfo, true));
}

/* --- dequeue -------------------------------------------------------------------------------- */

typedef struct Taken
{
	Datum		properties;
	Datum		payload;
	bool		payload_null;
	pg_uuid_t	id;
} Taken;

/* Attempts of a call until one has found something. */
typedef struct Attempt
{
	FunctionCallInfo fcinfo;
	bool		several;		/* dequeue_array */
	bool		here;			/* the transaction's end commits it, whatever its visibility */
	Oid			properties_type;
	Oid			result_type;	/* of payloads; a domain over a payload type counts as that */
	Oid			domain;			/* whose constraints the payloads must meet; InvalidOid: none */
	bool		as_text;		/* they are wanted as text, whatever their type */
	void	   *domain_info;	/* of domain_check */
	MemoryContext call_context;
	MemoryContext context;		/* of an attempt */
	AqSeen		seen;			/* by all attempts */
	AqImmediate immediate;		/* with immediate visibility, in this transaction */
	/* the attempt's: */
	AqOracleTake take;
	bool		in_helper;
	int			max;
	int16		length;			/* of payloads in the queue */
	bool		byval;
	int			n;
	int			room;
	Taken	   *taken;
	bool		success;
	Datum		results[TAKEN_COLUMNS];
	bool		isnull[TAKEN_COLUMNS];
} Attempt;

/* How many messages are wanted; checks what else dequeue_array demands. */
static int
read_max(const Attempt *attempt)
{
	NullableDatum size = attempt->fcinfo->args[TAKES_SIZE];

	if (!attempt->several)
		return 1;
	if (size.isnull || DatumGetFloat8(DirectFunctionCall1(numeric_float8_no_overflow, size.value)) < 1)
		ereport(ERROR,
				aq_error(AQ_ERR_ARGUMENT_MISSING, "array_size must be positive, not %s", size.isnull ? "null" :
						 DatumGetCString(DirectFunctionCall1(numeric_out, size.value))));
	if (attempt->take.id != NULL)
		ereport(ERROR,
				aq_error(AQ_ERR_FEATURE_UNSUPPORTED, "an array dequeue by message id is not supported"),
				errhint("Use dbms_aq.dequeue."));
	return DatumGetInt32(DirectFunctionCall1(numeric_int4, size.value));
}

/* A message was taken: it is good during this call only. */
static void
keep_message(void *arg, const AqMessage *message, int delivery)
{
	Attempt    *attempt = arg;
	MemoryContext old = MemoryContextSwitchTo(attempt->context);
	Taken	   *taken;

	if (attempt->n == attempt->room)
	{
		attempt->room = attempt->room == 0 ? 1 : attempt->room * 2;
		attempt->taken = attempt->taken == NULL ? palloc(sizeof(Taken))
			: repalloc_huge(attempt->taken, attempt->room * sizeof(Taken));
	}
	taken = &attempt->taken[attempt->n++];
	taken->properties = aq_oracle_options_properties(attempt->properties_type, message, delivery);
	taken->payload_null = message->payload_null;
	if (message->payload_null)
		taken->payload = (Datum) 0;
	else if (attempt->length == -1)
		taken->payload = PointerGetDatum(PG_DETOAST_DATUM_COPY(message->payload));
	else
		taken->payload = datumCopy(message->payload, attempt->byval, attempt->length);
	taken->id = message->id;
	MemoryContextSwitchTo(old);
}

/* The payload must meet the constraints of the caller's domain, such as the kind of a JMS message. */
static void
check_domain(Attempt *attempt, const Taken *taken)
{
	MemoryContext old = CurrentMemoryContext;
	ErrorData  *error;

	PG_TRY();
	{
		domain_check(taken->payload, taken->payload_null, attempt->domain, &attempt->domain_info, attempt->call_context);
	}
	PG_CATCH();
	{
		if (geterrcode() != ERRCODE_CHECK_VIOLATION)
			PG_RE_THROW();
		MemoryContextSwitchTo(old);
		error = CopyErrorData();
		FlushErrorState();
		ereport(ERROR,
				aq_error(AQ_ERR_PAYLOAD_TYPE, "the payload cannot be a %s", format_type_be(attempt->domain)),
				errdetail_internal("%s", error->message),
				errhint("Request another type: payload => null::%s.", format_type_be(attempt->result_type)));
	}
	PG_END_TRY();
}

/* Makes the caller's result of a payload.  reader: the role that casts it to text. */
static void
finish_payload(Attempt *attempt, Oid type, const AqTransformation *transformation, Oid reader, Taken *taken)
{
	if (transformation != NULL)
		taken->payload = aq_transformation_apply(transformation, taken->payload, &taken->payload_null);
	if (attempt->take.mode == AQ_MODE_REMOVE_NODATA && type == BYTEAOID && !attempt->several)
	{
		taken->payload = PointerGetDatum(cstring_to_text(""));
		taken->payload_null = false;
	}
	if (OidIsValid(attempt->domain))
		check_domain(attempt, taken);
	if (attempt->as_text && !taken->payload_null)
		taken->payload = aq_transformation_to_text(type, reader, taken->payload, &taken->payload_null);
}

/* Takes messages and transforms their payloads. */
static void
take_messages(Attempt *attempt)
{
	const AqOracleTake *take = &attempt->take;
	AqQueue    *queue = aq_catalog_get_for(take->queue, take->consumer, 0);
	Oid			stored = queue->payload_type;
	Oid			wanted = attempt->as_text ? stored : attempt->result_type;
	Oid			reader = attempt->as_text ? aq_enqueue_reading_role(queue) : InvalidOid;
	AqTransformation *transformation = NULL;
	AqDequeue	call = {
		.queue = take->queue,
		/* without data, the variable's type does not matter */
		.payload_type = take->mode == AQ_MODE_REMOVE_NODATA ? stored : wanted,
		.consumer = take->consumer,
		.max = attempt->max,
		.mode = take->mode,
		.correlation = take->correlation,
		.condition = take->condition,
		.id = take->id,
		.navigation = take->navigation,
		.delivery = take->delivery,
		.seen = &attempt->seen,
		.immediate = take->immediate && !attempt->here ? &attempt->immediate : NULL,
		.emit = keep_message,
		.arg = attempt
	};

	if (take->transformation != NULL)
	{
		transformation = aq_transformation_find(take->transformation, take->queue, stored, wanted, false, take->restricted);
		call.payload_type = stored;
	}
	get_typlenbyval(stored, &attempt->length, &attempt->byval);
	(void) aq_dequeue_now(&call);
	for (int i = 0; i < attempt->n; i++)
		finish_payload(attempt, wanted, transformation, reader, &attempt->taken[i]);
	/* what is named by its id is not waited for */
	if (attempt->n == 0 && take->id != NULL)
		ereport(ERROR,
				aq_error(AQ_ERR_MESSAGE_UNDEFINED, "there is no message %s for this consumer in queue \"%s\"",
						 DatumGetCString(DirectFunctionCall1(uuid_out, UUIDPGetDatum(take->id))), take->queue),
				errhint("It may have been consumed, or locked by another transaction."));
}

static Datum
array_of(Oid type, int n, Datum *values, bool *nulls)
{
	int			lower = 1;
	int16		length;
	bool		byval;
	char		align;

	get_typlenbyvalalign(type, &length, &byval, &align);
	return PointerGetDatum(construct_md_array(values, nulls, 1, &n, &lower, type, length, byval, align));
}

/* The results of an attempt that has found something. */
static void
form_results(Attempt *attempt)
{
	int			n = attempt->n;
	Datum	   *values[TAKEN_COLUMNS];
	bool	   *nulls[TAKEN_COLUMNS];

	for (int c = 0; c < TAKEN_COLUMNS; c++)
	{
		values[c] = palloc(n * sizeof(Datum));
		nulls[c] = palloc0(n * sizeof(bool));
	}
	for (int i = 0; i < n; i++)
	{
		values[TAKEN_PROPERTIES][i] = attempt->taken[i].properties;
		values[TAKEN_PAYLOAD][i] = attempt->taken[i].payload;
		nulls[TAKEN_PAYLOAD][i] = attempt->taken[i].payload_null;
		values[TAKEN_ID][i] = UUIDPGetDatum(&attempt->taken[i].id);
	}
	for (int c = 0; c < TAKEN_COLUMNS; c++)
	{
		attempt->results[c] = values[c][0];
		attempt->isnull[c] = nulls[c][0];
	}
	if (!attempt->several)
		return;
	attempt->results[TAKEN_PROPERTIES] = array_of(attempt->properties_type, n, values[TAKEN_PROPERTIES], nulls[TAKEN_PROPERTIES]);
	attempt->results[TAKEN_PAYLOAD] = array_of(OidIsValid(attempt->domain) ? attempt->domain : attempt->result_type, n, values[TAKEN_PAYLOAD], nulls[TAKEN_PAYLOAD]);
	attempt->results[TAKEN_ID] = array_of(UUIDOID, n, values[TAKEN_ID], nulls[TAKEN_ID]);
	attempt->isnull[TAKEN_PAYLOAD] = false;
}

/* Can the session itself dequeue with immediate visibility? */
static bool
is_possible_here(const AqOracleTake *take)
{
	return take->transformation == NULL && take->queue != NULL &&
		aq_immediate_take_here(aq_catalog_get_for(take->queue, take->consumer, 0), take->delivery);
}

/* Here, with a snapshot of its own.  The options are read each time: a wait is long. */
static void
attempt_here(void *arg)
{
	Attempt    *attempt = arg;
	FunctionCallInfo fcinfo = attempt->fcinfo;

	begin_statement();
	aq_oracle_options_take(string_argument(fcinfo, TAKE_QUEUE), argument(fcinfo, TAKE_OPTIONS), &attempt->take);
	attempt->max = read_max(attempt);
	attempt->in_helper = attempt->take.immediate && !attempt->here && !is_possible_here(&attempt->take);
	if (!attempt->in_helper)
		take_messages(attempt);
	if (attempt->n > 0)
		form_results(attempt);
	aq_immediate_settle(&attempt->immediate);
	end_statement();
}

static void
attempt_in_helper(Attempt *attempt)
{
	FunctionCallInfo fcinfo = attempt->fcinfo;

	aq_immediate_row(fcinfo,
					 attempt->several
					 ? "SELECT message_properties, payload, msgid FROM sys._take_messages($1, $2, $3, $4)"
					 : "SELECT message_properties, payload, msgid FROM sys._take_message($1, $2, $3)",
					 PG_NARGS(), TAKEN_COLUMNS, attempt->results, attempt->isnull);
}

/* Has it found something? */
static bool
try_once(void *arg)
{
	Attempt    *attempt = arg;
	MemoryContext old;

	MemoryContextReset(attempt->context);
	old = MemoryContextSwitchTo(attempt->context);
	attempt->n = attempt->room = 0;
	attempt->taken = NULL;
	memset(attempt->results, 0, sizeof(attempt->results));
	memset(attempt->isnull, true, sizeof(attempt->isnull));
	aq_wait_call_ahead(attempt_here, attempt);
	if (attempt->in_helper)
		attempt_in_helper(attempt);
	MemoryContextSwitchTo(old);
	attempt->success = !attempt->isnull[TAKEN_ID];
	return attempt->success;
}

static TupleDesc
begin_attempts(Attempt *attempt, FunctionCallInfo fcinfo, bool several, bool here)
{
	int			as_type = several ? TAKES_AS_TYPE : TAKE_AS_TYPE;
	TupleDesc	desc;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	memset(attempt, 0, sizeof(Attempt));
	attempt->fcinfo = fcinfo;
	attempt->several = several;
	attempt->here = here;
	attempt->properties_type = TupleDescAttr(desc, TAKEN_PROPERTIES)->atttypid;
	attempt->result_type = get_fn_expr_argtype(fcinfo->flinfo, as_type);
	attempt->context = AllocSetContextCreate(CurrentMemoryContext, "pgaq attempt", ALLOCSET_SMALL_SIZES);
	if (several)
	{
		attempt->properties_type = aq_record_element_type(attempt->properties_type);
		attempt->result_type = aq_record_element_type(attempt->result_type);
	}
	else
		attempt->as_text = attempt->result_type == TEXTOID || attempt->result_type == VARCHAROID;
	attempt->call_context = CurrentMemoryContext;
	/* such as sys.aq$_jms_text_message over aq.jms_message */
	if (get_typtype(attempt->result_type) == TYPTYPE_DOMAIN)
	{
		attempt->domain = attempt->result_type;
		attempt->result_type = getBaseType(attempt->domain);
	}
	/* while it waits there is no snapshot to fetch their parts with */
	for (int i = 0; i < PG_NARGS(); i++)
		if (!PG_ARGISNULL(i) && get_typlen(get_fn_expr_argtype(fcinfo->flinfo, i)) == -1)
			fcinfo->args[i].value = PointerGetDatum(PG_DETOAST_DATUM(fcinfo->args[i].value));
	return desc;
}

/*
 * Attempts until one has found something or the time is over.  must_find:
 * nothing found is an error, else nulls.  *commit: the call is alone and immediate.
 */
static Datum
dequeue_by(FunctionCallInfo fcinfo, bool several, bool must_find, bool *commit)
{
	AQ_TIMED(AQ_TIME_DEQUEUE);
	Attempt		attempt;
	AqOracleTake *take = &attempt.take;
	TupleDesc	desc;
	Datum		results[MAX_RESULTS] = {0};
	bool		nulls[MAX_RESULTS] = {true, true, true, true, true};
	int			nest = begin_call();

	desc = begin_attempts(&attempt, fcinfo, several, aq_immediate_is_alone(fcinfo));
	(void) try_once(&attempt);
	/* once, however many attempts it makes while it waits */
	aq_stat_add(AQ_STAT_DEQUEUE_CALLS, 1);
	if (!attempt.success && take->timeout_us != 0)
		(void) aq_wait_released(pstrdup(take->queue), take->consumer ? pstrdup(take->consumer) : NULL,
								take->delivery, take->correlation != NULL || take->condition != NULL,
								take->correlation != NULL ? aq_waiters_pattern_key(take->correlation) : AQ_ANY_KEY,
								take->timeout_us, try_once, &attempt);
	if (!attempt.success && must_find)
		ereport(ERROR,
				aq_error(AQ_ERR_NO_MESSAGE, "there is no message for this consumer in queue \"%s\"",
						 take->queue));
	end_call(nest);
	*commit = attempt.here && take->immediate && attempt.success;
	memcpy(results, attempt.results, sizeof(attempt.results));
	memcpy(nulls, attempt.isnull, sizeof(attempt.isnull));
	if (several)
	{
		/* the last result is their number; errors, before it, are never there */
		ArrayType  *ids = attempt.success ? DatumGetArrayTypeP(results[TAKEN_ID]) : NULL;

		results[desc->natts - 1] = Int32GetDatum(ids == NULL ? 0 : ArrayGetNItems(ARR_NDIM(ids), ARR_DIMS(ids)));
		nulls[desc->natts - 1] = false;
	}
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), results, nulls));
}

static Datum
dequeue_and_commit(FunctionCallInfo fcinfo, bool several, bool must_find)
{
	bool		commit;
	Datum		result = dequeue_by(fcinfo, several, must_find, &commit);

	if (commit)
		aq_immediate_commit();
	return result;
}

PG_FUNCTION_INFO_V1(aq_packages_dequeue);
Datum
aq_packages_dequeue(PG_FUNCTION_ARGS)
{
	return dequeue_and_commit(fcinfo, false, true);
}

PG_FUNCTION_INFO_V1(aq_packages_try_dequeue);
Datum
aq_packages_try_dequeue(PG_FUNCTION_ARGS)
{
	return dequeue_and_commit(fcinfo, false, false);
}

PG_FUNCTION_INFO_V1(aq_packages_dequeue_array);
Datum
aq_packages_dequeue_array(PG_FUNCTION_ARGS)
{
	return dequeue_and_commit(fcinfo, true, true);
}

PG_FUNCTION_INFO_V1(aq_packages_try_dequeue_array);
Datum
aq_packages_try_dequeue_array(PG_FUNCTION_ARGS)
{
	return dequeue_and_commit(fcinfo, true, false);
}

/* One attempt, in this transaction. */
static Datum
take_here(FunctionCallInfo fcinfo, bool several)
{
	AQ_TIMED(AQ_TIME_DEQUEUE);
	Attempt		attempt;
	int			nest = begin_call();
	TupleDesc	desc = begin_attempts(&attempt, fcinfo, several, true);

	(void) try_once(&attempt);
	end_call(nest);
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), attempt.results, attempt.isnull));
}

PG_FUNCTION_INFO_V1(aq_packages_take_message);
Datum
aq_packages_take_message(PG_FUNCTION_ARGS)
{
	return take_here(fcinfo, false);
}

PG_FUNCTION_INFO_V1(aq_packages_take_messages);
Datum
aq_packages_take_messages(PG_FUNCTION_ARGS)
{
	return take_here(fcinfo, true);
}

/* --- listen ------------------------------------------------------------------------------- */

/* listen(agent_list [, wait [, listen_delivery_mode]], OUT agent [, OUT message_delivery_mode]) */
static Datum
listen_by(FunctionCallInfo fcinfo, bool must_find)
{
	AQ_TIMED(AQ_TIME_LISTEN);
	NullableDatum null = {.isnull = true};
	AqOracleListen listen;
	TupleDesc	desc;
	Datum		results[2] = {0};
	bool		nulls[2] = {true, true};
	int			found;
	int			nest = begin_call();

	aq_oracle_options_listen(argument(fcinfo, 0), PG_NARGS() > 1 ? argument(fcinfo, 1) : null,
							 PG_NARGS() > 2 ? argument(fcinfo, 2) : null, &listen);
	found = aq_wait_listen_released(listen.n, listen.queues, listen.consumers, &listen.delivery, listen.timeout_us);
	if (found < 0 && must_find)
		ereport(ERROR,
				aq_error(AQ_ERR_LISTEN_TIMEOUT, "there is no message for any agent of the list"));
	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	if (found >= 0)
	{
		results[0] = aq_oracle_options_found_agent(&listen, found, TupleDescAttr(desc, 0)->atttypid);
		results[1] = Int32GetDatum(listen.delivery);
		nulls[0] = nulls[1] = false;
	}
	end_call(nest);
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), results, nulls));
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
