/*-------------------------------------------------------------------------
 *
 * trace_context.c
 *	  The trace context that a session gives to its messages: the parameters
 *	  pgaq.traceparent and pgaq.tracestate, of the format of W3C Trace Context.
 *
 * It becomes two properties of each message that a function for users enqueues.
 * A message of aq.jms_message with a payload has it among the properties of the
 * payload, which are those of Jakarta Messaging.  A message that has a trace
 * context keeps it, and one that was enqueued before, such as a dead letter that
 * is redriven, gets none.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/calls/calls_private.h"

#include "access/htup_details.h"
#include "funcapi.h"
#include "utils/fmgrprotos.h"
#include "utils/guc.h"
#include "utils/jsonb.h"
#include "utils/typcache.h"

#define PARENT "traceparent"
#define STATE "tracestate"

/* version-trace id-parent id-flags; later versions may add to it */
#define PARENT_LENGTH 55

/* of one value of a parameter, in all versions */
#define PARENT_LONGEST 256

#define STATE_MEMBERS 32
#define STATE_KEY_LENGTH 256
#define STATE_VALUE_LENGTH 256

/* the field of aq.jms_message */
#define FIELD_PROPERTIES 2

static char *traceparent;
static char *tracestate;

/* --- the format ----------------------------------------------------------------- */

/* Lower case hexadecimal digits only; *zero: all of them are 0. */
static bool
is_hex(const char *string, int n, bool *zero)
{
	*zero = true;
	for (int i = 0; i < n; i++)
	{
		if (!(string[i] >= '0' && string[i] <= '9') && !(string[i] >= 'a' && string[i] <= 'f'))
			return false;
		*zero = *zero && string[i] == '0';
	}
	return true;
}

static bool
is_visible(const char *string)
{
	for (; *string != '\0'; string++)
		if (*string < '!' || *string > '~')
			return false;
	return true;
}

static bool
is_parent(const char *string)
{
	Size		length = strlen(string);
	bool		zero;

	if (length < PARENT_LENGTH || length > PARENT_LONGEST || string[2] != '-' || string[35] != '-' || string[52] != '-')
		return false;
	if (!is_hex(string, 2, &zero) || strncmp(string, "ff", 2) == 0)
		return false;
	if (length > PARENT_LENGTH && (zero || string[PARENT_LENGTH] != '-' || !is_visible(string)))
		return false;
	return is_hex(string + 3, 32, &zero) && !zero && is_hex(string + 36, 16, &zero) && !zero &&
		is_hex(string + 53, 2, &zero);
}

static bool
is_key_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || strchr("_-*/@", c) != NULL;
}

/* key=value, without the spaces around it */
static bool
is_member(const char *string, int length)
{
	int			key = 0;
	int			value;

	while (key < length && is_key_letter(string[key]))
		key++;
	value = length - key - 1;
	if (key == 0 || key > STATE_KEY_LENGTH || value < 1 || value > STATE_VALUE_LENGTH || string[key] != '=' ||
		strchr("_-*/@", string[0]) != NULL)
		return false;
	for (int i = key + 1; i < length; i++)
		if (string[i] < ' ' || string[i] > '~' || string[i] == '=')
			return false;
	return true;
}

static bool
is_space(char c)
{
	return c == ' ' || c == '\t';
}

static bool
is_state(const char *string)
{
	int			members = 0;

	for (;;)
	{
		int			length = (int) strcspn(string, ",");
		const char *next = string + length;

		while (length > 0 && is_space(string[0]))
			string++, length--;
		while (length > 0 && is_space(string[length - 1]))
			length--;
		/* an empty member is allowed */
		if (length > 0 && (++members > STATE_MEMBERS || !is_member(string, length)))
			return false;
		if (*next == '\0')
			return true;
		string = next + 1;
	}
}

/* --- the parameters --------------------------------------------------------------- */

static bool
check_parent(char **value, void **extra, GucSource source)
{
	if ((*value)[0] == '\0' || is_parent(*value))
		return true;
	GUC_check_errdetail("It must have the form 00-TRACE-PARENT-FLAGS of W3C Trace Context, with 32, 16 and 2 hexadecimal "
						"digits in lower case; trace and parent must not be all 0.");
	return false;
}

static bool
check_state(char **value, void **extra, GucSource source)
{
	if ((*value)[0] == '\0' || is_state(*value))
		return true;
	GUC_check_errdetail("It must have the form KEY=VALUE,... of W3C Trace Context, with at most %d members.", STATE_MEMBERS);
	return false;
}

void
aq_trace_context_define(void)
{
	DefineCustomStringVariable("pgaq.traceparent",
							   "Trace context of the messages that the session enqueues.",
							   "The property traceparent of each message that has none: "
							   "00-TRACE-PARENT-FLAGS, as in W3C Trace Context. "
							   "SET LOCAL sets it for a transaction.",
							   &traceparent, "",
							   PGC_USERSET, 0,
							   check_parent, NULL, NULL);
	DefineCustomStringVariable("pgaq.tracestate",
							   "Further trace context of the messages that the session enqueues.",
							   "The property tracestate of the messages that get pgaq.traceparent: "
							   "KEY=VALUE,..., as in W3C Trace Context.",
							   &tracestate, "",
							   PGC_USERSET, 0,
							   check_state, NULL, NULL);
}

/* --- messages ----------------------------------------------------------------------- */

static void
push_string(AqJsonbState *state, const char *key, const char *string)
{
	JsonbValue	name = {.type = jbvString, .val.string.val = unconstify(char *, key), .val.string.len = (int) strlen(key)};
	JsonbValue	value = {.type = jbvString, .val.string.val = unconstify(char *, string), .val.string.len = (int) strlen(string)};

	aq_jsonb_push(state, WJB_KEY, &name);
	aq_jsonb_push(state, WJB_VALUE, &value);
}

static Jsonb *
context(void)
{
	AqJsonbState state = {0};

	aq_jsonb_push(&state, WJB_BEGIN_OBJECT, NULL);
	push_string(&state, PARENT, traceparent);
	if (tracestate[0] != '\0')
		push_string(&state, STATE, tracestate);
	aq_jsonb_push(&state, WJB_END_OBJECT, NULL);
	return JsonbValueToJsonb(state.result);
}

static bool
has_key(Jsonb *object, const char *key)
{
	JsonbValue	found;

	return getKeyJsonValueFromContainer(&object->root, key, (int) strlen(key), &found) != NULL;
}

/* The properties with the session's trace context, unless they are no object or have one. */
static struct varlena *
add_to_properties(struct varlena *properties)
{
	Jsonb	   *object;

	if (properties == NULL)
		return (struct varlena *) context();
	object = DatumGetJsonbP(PointerGetDatum(properties));
	if (!JB_ROOT_IS_OBJECT(object) || has_key(object, PARENT) || has_key(object, STATE))
		return properties;
	return (struct varlena *) DatumGetPointer(DirectFunctionCall2(jsonb_concat, JsonbPGetDatum(object),
																  JsonbPGetDatum(context())));
}

/* The same for the properties of a value of aq.jms_message. */
static Datum
add_to_payload(Datum payload)
{
	HeapTupleHeader header = DatumGetHeapTupleHeader(payload);
	TupleDesc	desc = lookup_rowtype_tupdesc_copy(HeapTupleHeaderGetTypeId(header), HeapTupleHeaderGetTypMod(header));
	HeapTupleData tuple = {.t_len = HeapTupleHeaderGetDatumLength(header), .t_data = header};
	Datum	   *values = palloc(desc->natts * sizeof(Datum));
	bool	   *nulls = palloc(desc->natts * sizeof(bool));
	struct varlena *given;
	struct varlena *properties;

	heap_deform_tuple(&tuple, desc, values, nulls);
	given = nulls[FIELD_PROPERTIES] ? NULL : (struct varlena *) DatumGetPointer(values[FIELD_PROPERTIES]);
	properties = add_to_properties(given);
	if (properties == given)
		return payload;
	values[FIELD_PROPERTIES] = PointerGetDatum(properties);
	nulls[FIELD_PROPERTIES] = false;
	return HeapTupleGetDatum(heap_form_tuple(desc, values, nulls));
}

/*
 * Gives n messages the session's trace context, if there is one.  options: of
 * all messages, or, if noptions is n, of each.
 */
void
aq_trace_context_add(const AqEnqueue *call, const AqQueue *queue, AqPutOptions *options, int noptions,
					 int n, Datum *values, const bool *nulls)
{
	bool		in_payload;

	if (traceparent[0] == '\0' || call->enqueued_before)
		return;
	in_payload = queue->payload_type == aq_payload_jms_type();
	for (int i = 0; i < n; i++)
		if (in_payload && !nulls[i])
			values[i] = add_to_payload(values[i]);
		else
		{
			AqPutOptions *its = &options[Min(i, noptions - 1)];

			its->properties = add_to_properties(its->properties);
		}
}
