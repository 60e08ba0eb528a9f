/*-------------------------------------------------------------------------
 *
 * message_options.c
 *	  Argument "options" of aq.enqueue_array: a jsonb array with one object for
 *	  each message.
 *
 * An object's keys are names of arguments; what an object does not have, or has
 * as null, is the argument of the call.  The values are only read here: they are
 * checked like the arguments, by enqueue.c.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/calls/calls_private.h"

#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/jsonb.h"
#include "utils/timestamp.h"

typedef struct Reading
{
	int			number;			/* of the object, from 1 on */
	const char *key;
	AqEnqueue  *call;
} Reading;

typedef struct Option
{
	const char *key;
	enum jbvType type;
	const char *what;			/* it must be */
	void		(*read) (Reading *r, const JsonbValue *value);
} Option;

pg_noreturn static void
refuse(const Reading *r, const char *what)
{
	ereport(ERROR,
			aq_error(AQ_ERR_OPTION_INVALID, "\"%s\" in element %d of \"options\" must be %s", r->key, r->number, what));
}

/* --- the keys ------------------------------------------------------------------- */

static char *
string_of(const JsonbValue *value)
{
	return pnstrdup(value->val.string.val, value->val.string.len);
}

static struct varlena *
text_of(const JsonbValue *value)
{
	return (struct varlena *) cstring_to_text_with_len(value->val.string.val, value->val.string.len);
}

static Interval *
interval_of(const JsonbValue *value)
{
	return DatumGetIntervalP(DirectFunctionCall3(interval_in, CStringGetDatum(string_of(value)),
												 ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1)));
}

static void
read_priority(Reading *r, const JsonbValue *value)
{
	Datum		number = NumericGetDatum(value->val.numeric);
	int			priority = DatumGetInt32(DirectFunctionCall1(numeric_int4, number));

	if (!DatumGetBool(DirectFunctionCall2(numeric_eq, number,
										  DirectFunctionCall1(int4_numeric, Int32GetDatum(priority)))))
		refuse(r, "an integer");
	r->call->priority = priority;
	r->call->default_priority = false;
}

static void
read_delay(Reading *r, const JsonbValue *value)
{
	r->call->delay = interval_of(value);
}

static void
read_run_at(Reading *r, const JsonbValue *value)
{
	TimestampTz *run_at = palloc(sizeof(TimestampTz));

	*run_at = DatumGetTimestampTz(DirectFunctionCall3(timestamptz_in, CStringGetDatum(string_of(value)),
													  ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1)));
	r->call->run_at = run_at;
}

static void
read_expiration(Reading *r, const JsonbValue *value)
{
	r->call->expiration = interval_of(value);
}

static void
read_correlation(Reading *r, const JsonbValue *value)
{
	r->call->correlation = text_of(value);
}

static void
read_key(Reading *r, const JsonbValue *value)
{
	r->call->key = text_of(value);
}

static void
read_exception_queue(Reading *r, const JsonbValue *value)
{
	r->call->exception_queue = text_of(value);
}

static void
read_properties(Reading *r, const JsonbValue *value)
{
	r->call->properties = (struct varlena *) JsonbValueToJsonb(unconstify(JsonbValue *, value));
}

static void
read_recipients(Reading *r, const JsonbValue *value)
{
	const char *what = "an array of strings";
	JsonbIterator *it;
	JsonbIteratorToken token;
	JsonbValue	element;

	if (!JsonContainerIsArray(value->val.binary.data))
		refuse(r, what);
	r->call->recipients = NIL;
	it = JsonbIteratorInit(value->val.binary.data);
	while ((token = JsonbIteratorNext(&it, &element, true)) != WJB_DONE)
	{
		if (token != WJB_ELEM)
			continue;
		if (element.type != jbvString && element.type != jbvNull)
			refuse(r, what);
		r->call->recipients = lappend(r->call->recipients, element.type == jbvNull ? NULL : string_of(&element));
	}
}

static const Option known_options[] = {
	{"priority", jbvNumeric, "an integer", read_priority},
	{"delay", jbvString, "a string that is an interval", read_delay},
	{"run_at", jbvString, "a string that is a time", read_run_at},
	{"expiration", jbvString, "a string that is an interval", read_expiration},
	{"correlation", jbvString, "a string", read_correlation},
	{"recipients", jbvBinary, "an array of strings", read_recipients},
	{"properties", jbvNull, NULL, read_properties}, /* of any type */
	{"exception_queue", jbvString, "a string", read_exception_queue},
	{"key", jbvString, "a string", read_key}
};

static void
read_option(Reading *r, const JsonbValue *key, const JsonbValue *value)
{
	r->key = string_of(key);
	for (int i = 0; i < lengthof(known_options); i++)
	{
		const Option *option = &known_options[i];

		if (strcmp(option->key, r->key) != 0)
			continue;
		if (value->type == jbvNull)
			return;
		if (option->what != NULL && value->type != option->type)
			refuse(r, option->what);
		option->read(r, value);
		return;
	}
	ereport(ERROR,
			aq_error(AQ_ERR_OPTION_INVALID, "element %d of \"options\" has the unknown key \"%s\"", r->number, r->key),
			errhint("The keys are priority, delay, run_at, expiration, correlation, recipients, properties, "
					"exception_queue and key."));
}

/* --- the objects ------------------------------------------------------------------ */

/* For errors of input functions. */
static void
add_context(void *arg)
{
	Reading    *r = arg;

	errcontext("\"%s\" in element %d of \"options\"", r->key, r->number);
}

static void
read_object(Reading *r, JsonbContainer *object)
{
	const Interval *delay = r->call->delay;
	const TimestampTz *run_at = r->call->run_at;
	JsonbIterator *it = JsonbIteratorInit(object);
	JsonbIteratorToken token;
	JsonbValue	key,
				value;
	ErrorContextCallback context = {.previous = error_context_stack, .callback = add_context, .arg = r};

	/* either of the two replaces both arguments of the call */
	r->call->delay = NULL;
	r->call->run_at = NULL;
	while ((token = JsonbIteratorNext(&it, &key, true)) != WJB_DONE)
	{
		if (token != WJB_KEY)
			continue;
		(void) JsonbIteratorNext(&it, &value, true);
		r->key = "";
		error_context_stack = &context;
		read_option(r, &key, &value);
		error_context_stack = context.previous;
	}
	if (r->call->delay == NULL && r->call->run_at == NULL)
	{
		r->call->delay = delay;
		r->call->run_at = run_at;
	}
}

/* The arguments of the call for each of its n messages, with the options of each. */
AqEnqueue *
aq_message_options_read(const AqEnqueue *call, const struct varlena *value_of_argument, int n)
{
	const Jsonb *options = (const Jsonb *) value_of_argument;
	AqEnqueue  *each = palloc(n * sizeof(AqEnqueue) + 1);
	JsonbIterator *it = JsonbIteratorInit(unconstify(JsonbContainer *, &options->root));
	JsonbIteratorToken token;
	JsonbValue	value;
	Reading		r = {0};

	if (!JB_ROOT_IS_ARRAY(options) || JB_ROOT_IS_SCALAR(options))
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "\"options\" must be an array with an object for each payload"),
				errhint("To set an option of all messages, use the argument of that name."));
	if (JB_ROOT_COUNT(options) != n)
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "\"options\" has %d elements, but \"payloads\" has %d",
						 (int) JB_ROOT_COUNT(options), n));
	while ((token = JsonbIteratorNext(&it, &value, true)) != WJB_DONE)
	{
		if (token != WJB_ELEM)
			continue;
		r.call = &each[r.number++];
		*r.call = *call;
		if (value.type == jbvBinary && JsonContainerIsObject(value.val.binary.data))
			read_object(&r, value.val.binary.data);
		else if (value.type != jbvNull)
			ereport(ERROR,
					aq_error(AQ_ERR_OPTION_INVALID, "element %d of \"options\" must be an object", r.number));
	}
	return each;
}
