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

#include "utils/guc.h"
#include "utils/jsonb.h"

#define PARENT "traceparent"
#define STATE "tracestate"

/* version-trace id-parent id-flags; later versions may add to it */
#define PARENT_LENGTH 55

/* of one value of a parameter, in all versions */
#define PARENT_LONGEST 256

#define STATE_MEMBERS 32
#define STATE_KEY_LENGTH 256
#define STATE_VALUE_LENGTH 256

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

static bool
has_key(Jsonb *object, const char *key)
{
	JsonbValue	found;

	return getKeyJsonValueFromContainer(&object->root, key, (int) strlen(key), &found) != NULL;
}

/* The properties with the session's trace context; themselves, if they are no object or have one. */
static Jsonb *
with_context(Jsonb *properties)
{
	if (properties != NULL && (!JB_ROOT_IS_OBJECT(properties) || has_key(properties, PARENT) || has_key(properties, STATE)))
		return properties;
	properties = aq_properties_set(properties, PARENT, traceparent, (int) strlen(traceparent));
	if (tracestate[0] != '\0')
		properties = aq_properties_set(properties, STATE, tracestate, (int) strlen(tracestate));
	return properties;
}

static Datum
add_to_payload(Datum payload)
{
	Jsonb	   *before = aq_properties_of_payload(payload);
	Jsonb	   *properties = with_context(before);

	return properties == before ? payload : aq_properties_into_payload(payload, properties);
}

/* Do the messages of a call get it in different places, so that each needs options of its own? */
bool
aq_trace_context_differs(const AqEnqueue *call, const AqQueue *queue, int n, const bool *nulls)
{
	if (traceparent[0] == '\0' || call->enqueued_before || !queue->jms)
		return false;
	for (int i = 1; i < n; i++)
		if (nulls[i] != nulls[0])
			return true;
	return false;
}

/*
 * Gives n messages the session's trace context, if there is one.  options: of
 * all messages, or, if noptions is n, of each.
 */
void
aq_trace_context_add(const AqEnqueue *call, const AqQueue *queue, AqPutOptions *options, int noptions,
					 int n, Datum *values, const bool *nulls)
{
	if (traceparent[0] == '\0' || call->enqueued_before)
		return;
	for (int i = 0; i < n; i++)
		if (queue->jms && !nulls[i])
			values[i] = add_to_payload(values[i]);
		else
		{
			AqPutOptions *its = &options[Min(i, noptions - 1)];

			its->properties = (struct varlena *) with_context(its->properties == NULL ? NULL :
															  DatumGetJsonbP(PointerGetDatum(its->properties)));
		}
}
