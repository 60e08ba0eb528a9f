/*-------------------------------------------------------------------------
 *
 * redrive.c
 *	  aq.redrive: puts dead letters back into the queue that they came from.
 *
 * It dequeues from the exception queue and enqueues into the queue, in the
 * caller's transaction and with the caller's privileges, in batches.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "move/move_private.h"

#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/numeric.h"
#include "utils/timestamp.h"

/* dead letters that are put back together */
#define BATCH 1000

/* The dead letters of one batch, and what decides which ones are taken. */
typedef struct Redrive
{
	int32		id;				/* of the queue that they came from */
	const char *name;
	char	   *source;			/* name of the exception queue */
	bool		multi;
	List	   *consumers;		/* names; of a topic */
	int16		length;			/* of the payload type */
	bool		by_value;
	MemoryContext context;		/* of the batch */
	int			n;
	AqEnqueue	calls[BATCH];
	Datum		payloads[BATCH];
	bool		nulls[BATCH];
	pg_uuid_t	ids[BATCH];		/* in the exception queue */
} Redrive;

static Jsonb *
letter_of(const AqMessage *m)
{
	return m->dead_letter != NULL ? (Jsonb *) PG_DETOAST_DATUM(PointerGetDatum(m->dead_letter)) : NULL;
}

static JsonbValue *
value_of(Jsonb *letter, const char *key, int type)
{
	JsonbValue *value = letter != NULL ? getKeyJsonValueFromContainer(&letter->root, key, strlen(key), NULL) : NULL;

	return value != NULL && (int) value->type == type ? value : NULL;
}

/* NULL: the dead letter has no such key. */
static char *
string_of(Jsonb *letter, const char *key)
{
	JsonbValue *value = value_of(letter, key, jbvString);

	return value != NULL ? pnstrdup(value->val.string.val, value->val.string.len) : NULL;
}

static TimestampTz
time_of(Jsonb *letter, const char *key)
{
	char	   *text = string_of(letter, key);

	return text == NULL ? 0 : DatumGetTimestampTz(DirectFunctionCall3(timestamptz_in, CStringGetDatum(text),
																	  ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1)));
}

static bool
is_consumer(const Redrive *redrive, const char *name)
{
	ListCell   *lc;

	foreach(lc, redrive->consumers)
		if (strcmp(lfirst(lc), name) == 0)
			return true;
	return false;
}

/* Did it come from the queue, and of a topic for a consumer that still exists? */
static bool
came_from(void *arg, const AqMessage *m)
{
	const Redrive *redrive = arg;
	Jsonb	   *letter = letter_of(m);
	JsonbValue *id = value_of(letter, "queue_id", jbvNumeric);
	char	   *consumer;

	if (id == NULL || DatumGetInt32(DirectFunctionCall1(numeric_int4, NumericGetDatum(id->val.numeric))) != redrive->id)
		return false;
	consumer = string_of(letter, "consumer");
	return redrive->multi ? consumer != NULL && is_consumer(redrive, consumer) : true;
}

/* The time that it had from its first delivery on; NULL: no expiration. */
static Interval *
expiration_of(Jsonb *letter)
{
	TimestampTz expires = time_of(letter, "expires_at");
	TimestampTz ready = time_of(letter, "ready_at");
	Interval   *expiration;

	if (expires == 0)
		return NULL;
	expiration = palloc0(sizeof(Interval));
	expiration->time = Max(expires - (ready != 0 ? ready : time_of(letter, "enqueue_time")), 1);
	return expiration;
}

static struct varlena *
before_of(Jsonb *letter)
{
	JsonbValue *before = value_of(letter, "before", jbvBinary);

	return before != NULL ? (struct varlena *) JsonbValueToJsonb(before) : NULL;
}

/* The names of the exception queues are looked up later: that could end the description that a dequeue uses. */
static void
keep(void *arg, const AqMessage *m, int delivery)
{
	Redrive    *redrive = arg;
	AqEnqueue  *call = &redrive->calls[redrive->n];
	const AqEnqueue *last = redrive->n > 0 ? call - 1 : NULL;
	MemoryContext old = MemoryContextSwitchTo(redrive->context);
	Jsonb	   *letter = letter_of(m);
	char	   *consumer = redrive->multi ? string_of(letter, "consumer") : NULL;

	memset(call, 0, sizeof(AqEnqueue));
	call->priority = m->priority;
	call->expiration = expiration_of(letter);
	call->correlation = aq_move_copy(m->correlation);
	call->key = aq_move_copy(m->key);
	call->properties = aq_move_copy(m->properties);
	call->sender = aq_move_sender(last != NULL ? last->sender : NULL, m->sender);
	call->recipients = consumer != NULL ? list_make1(consumer) : NIL;
	call->dead_letter = aq_move_copy((struct varlena *) letter);
	redrive->ids[redrive->n] = m->id;
	redrive->nulls[redrive->n] = m->payload_null;
	redrive->payloads[redrive->n] = m->payload_null ? (Datum) 0
		: datumCopy(m->payload, redrive->by_value, redrive->length);
	redrive->n++;
	MemoryContextSwitchTo(old);
}

/* Puts the batch into the queue. */
static void
put_back(Redrive *redrive, Oid payload_type)
{
	AqEnqueue	call = {.command = "aq.redrive()", .queue = pstrdup(redrive->name), .payload_type = payload_type,
		.priority = AQ_DEFAULT_PRIORITY, .each = redrive->n > 0 ? redrive->calls : NULL,
		.enqueued_before = true};
	pg_uuid_t **ids;

	for (int i = 0; i < redrive->n; i++)
	{
		AqEnqueue  *one = &redrive->calls[i];
		Jsonb	   *letter = (Jsonb *) one->dead_letter;

		one->exception_queue = aq_move_exception_queue(string_of(letter, "exception_queue"), redrive->id, payload_type);
		one->dead_letter = before_of(letter);
	}
	ids = aq_enqueue_messages(&call, redrive->n, redrive->payloads, redrive->nulls);
	aq_move_bodies(redrive->source, redrive->id, payload_type, redrive->n, redrive->payloads, redrive->nulls, redrive->ids,
				   ids);
}

/* Reads what it needs of the queue, and the name of the exception queue. */
static char *
open_queue(FunctionCallInfo fcinfo, Redrive *redrive, Oid *payload_type)
{
	char	   *exceptions = aq_args_name_or_null(fcinfo, 3, "exception_queue");
	AqQueue    *queue = aq_catalog_get(aq_args_name(fcinfo, 0, "queue_name"), AQ_RIGHT_ENQUEUE);
	bool		is_exception = queue->exception;

	redrive->id = queue->id;
	redrive->name = pstrdup(queue->name);
	redrive->multi = queue->multi;
	*payload_type = queue->payload_type;
	for (int i = 0; i < queue->nconsumers; i++)
		if (queue->consumers[i].name != NULL)
			redrive->consumers = lappend(redrive->consumers, pstrdup(queue->consumers[i].name));
	get_typlenbyval(queue->payload_type, &redrive->length, &redrive->by_value);
	if (exceptions != NULL)
		return exceptions;
	queue = queue->exception_queue_id != 0 ? aq_catalog_get_by_id(queue->exception_queue_id, true) : NULL;
	if (queue == NULL)
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "queue \"%s\" has no exception queue", redrive->name),
				is_exception ? errhint("Name the queue that its dead letters come from: aq.redrive puts them back there.") :
				errhint("If another queue holds dead letters of it, name that: exception_queue => '...'."));
	return pstrdup(queue->name);
}

PG_FUNCTION_INFO_V1(aq_redrive);
Datum
aq_redrive(PG_FUNCTION_ARGS)
{
	Redrive    *redrive = palloc0(sizeof(Redrive));

	/* patient: it also gets those whose next failure is their last one, together with others */
	AqDequeue	call = {.mode = AQ_MODE_REMOVE, .delivery = AQ_PERSISTENT, .patient = true, .ungated = true, .emit = keep,
		.arg = redrive, .filter = came_from, .filter_arg = redrive};
	int64		left = PG_ARGISNULL(1) ? PG_INT64_MAX : PG_GETARG_INT32(1);
	int64		done = 0;

	aq_session_require_write("aq.redrive()");
	if (left < 1)
		ereport(ERROR, aq_error(AQ_ERR_OPTION_INVALID, "max_messages must be positive, not %d", PG_GETARG_INT32(1)));
	call.queue = redrive->source = open_queue(fcinfo, redrive, &call.payload_type);
	/* refuses what an enqueue refuses, also when there is nothing to put back */
	put_back(redrive, call.payload_type);
	call.condition = PG_ARGISNULL(2) ? NULL : PG_GETARG_TEXT_PP(2);
	redrive->context = AllocSetContextCreate(CurrentMemoryContext, "pgaq redrive", ALLOCSET_DEFAULT_SIZES);
	do
	{
		MemoryContext old;

		MemoryContextReset(redrive->context);
		old = MemoryContextSwitchTo(redrive->context);
		redrive->n = 0;
		call.max = (int) Min(left, BATCH);
		(void) aq_dequeue_now(&call);
		if (redrive->n > 0)
			put_back(redrive, call.payload_type);
		MemoryContextSwitchTo(old);
		done += redrive->n;
		left -= redrive->n;
		aq_point("redriven");
		/* a batch can be smaller because of messages that have failed in the exception queue */
	} while (redrive->n > 0 && left > 0);
	MemoryContextDelete(redrive->context);
	PG_RETURN_INT64(done);
}
