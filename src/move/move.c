/*-------------------------------------------------------------------------
 *
 * move.c
 *	  Messages that go from one queue to another in one transaction: for part
 *	  "propagate", and what aq.redrive has in common with it.
 *
 * The messages are dequeued and enqueued with the privileges of the current
 * role.  If the transaction rolls back, they are where they were, and no attempt
 * is counted: what failed is the way, not a consumer.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "move/move_private.h"

#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/fmgrprotos.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

/* A message is propagated at most this many times.  The property counts them from the second time on. */
#define HOPS 32
#define HOPS_PROPERTY "aq$hops"

/* --- for all that moves messages ----------------------------------------------------------- */

struct varlena *
aq_move_copy(const struct varlena *value)
{
	return value != NULL ? (struct varlena *) DatumGetPointer(datumCopy(PointerGetDatum(value), false, -1)) : NULL;
}

/* What the property says; 1: there is none, or it is not a number. */
static int
hops_of(Jsonb *properties)
{
	JsonbValue	found;

	if (properties == NULL || !JB_ROOT_IS_OBJECT(properties) ||
		getKeyJsonValueFromContainer(&properties->root, HOPS_PROPERTY, strlen(HOPS_PROPERTY), &found) == NULL || found.type != jbvNumeric)
		return 1;
	return (int) Max(Min(strtod(DatumGetCString(DirectFunctionCall1(numeric_out, NumericGetDatum(found.val.numeric))), NULL), HOPS), 1);
}

/*
 * The properties of a message that is propagated.  From the second time on they
 * count how often it was, in this database and in others, so that a message stops
 * even if schedules form a circle.  A message with an original id has been in
 * another queue before; in any other message, the property was written by an
 * application and is reset.  A dead letter always has an original id; its count
 * starts again, because otherwise a role that may only enqueue could stop the
 * propagation of an exception queue.
 */
struct varlena *
aq_move_properties(const AqMessage *m)
{
	struct varlena *properties = aq_move_copy(m->properties);
	Jsonb	   *json = properties != NULL ? DatumGetJsonbP(PointerGetDatum(properties)) : NULL;
	bool		first = m->original_id == NULL || m->dead_letter != NULL;
	int			hops = first ? 1 : hops_of(json) + 1;
	Datum		count;

	if (hops > HOPS)
		ereport(ERROR,
				aq_error(AQ_ERR_PROPAGATION_ROUND, "a message has been propagated %d times", HOPS),
				errdetail("Its original id is %s.", DatumGetCString(DirectFunctionCall1(uuid_out, UUIDPGetDatum(m->original_id)))),
				errhint("If propagation schedules form a circle, end one of them or give it a rule. Then dequeue the message."));
	if (first && hops_of(json) == 1)
		return properties;
	count = DirectFunctionCall1(jsonb_in, CStringGetDatum(psprintf("{\"%s\": %d}", HOPS_PROPERTY, hops)));
	if (json == NULL)
		return (struct varlena *) DatumGetPointer(count);
	return (struct varlena *) DatumGetPointer(DirectFunctionCall2(jsonb_concat, JsonbPGetDatum(json), count));
}

/*
 * The sender of a message; messages that follow each other with the same pointer
 * are stored together.
 */
struct varlena *
aq_move_sender(struct varlena *last, const struct varlena *sender)
{
	if (last != NULL && sender != NULL && datumIsEqual(PointerGetDatum(last), PointerGetDatum(sender), false, -1))
		return last;
	return aq_move_copy(sender);
}

/*
 * The exception queue that a message names, for an enqueue into queue number
 * target.  NULL: it names none, or one that the enqueue would refuse, because it
 * does not exist, another queue has its name, or the role has no privilege.  One
 * message must not keep the others from being moved.
 */
struct varlena *
aq_move_exception_queue(const char *name, int32 target, Oid payload_type)
{
	AqQueue    *queue = name != NULL ? aq_catalog_get_by_name(name) : NULL;

	if (queue == NULL || queue->id == target || queue->multi || queue->payload_type != payload_type || queue->non_persistent ||
		!aq_privilege_allows(queue, AQ_RIGHT_ENQUEUE))
		return NULL;
	return (struct varlena *) cstring_to_text(name);
}

/* The bodies of large messages; from: their ids in queue source; to: in queue number target, NULL: not stored. */
void
aq_move_bodies(const char *source, int32 target, Oid payload_type, int n, const Datum *payloads, const bool *nulls,
			   const pg_uuid_t *from, pg_uuid_t *const *to)
{
	for (int i = 0; i < n; i++)
	{
		AqQueue    *source_queue,
				   *target_queue;

		if (to[i] == NULL || !aq_message_body_is_apart(payload_type, payloads[i], nulls[i]))
			continue;
		aq_catalog_retain();
		PG_TRY();
		{
			source_queue = aq_catalog_get_by_name(source);
			target_queue = aq_catalog_get_by_id(target, true);
			if (source_queue != NULL && target_queue != NULL)
				aq_message_body_copy(source_queue, &from[i], AQ_ANY_POSITION, target_queue, to[i]);
		}
		PG_FINALLY();
		{
			aq_catalog_release();
		}
		PG_END_TRY();
	}
}

/* --- propagation ---------------------------------------------------------------------------- */

/* A batch, and what is known of the two queues. */
typedef struct Moving
{
	const AqMove *move;
	MemoryContext context;		/* of the batch */
	char	   *source;			/* name */
	Oid			source_type;
	int16		length;			/* of that type */
	bool		by_value;
	char	   *transformation; /* full name; NULL: none */
	int32		target;
	Oid			target_type;
	bool		target_multi;
	bool		target_sharded;
	TimestampTz now;
	int			n;
	int64		bytes;
	AqEnqueue  *calls;
	Datum	   *payloads;
	bool	   *nulls;
	pg_uuid_t  *ids;			/* in the source */
	pg_uuid_t  *originals;
	char	  **exception_queues;
} Moving;

/* The time that is left: counted from now on, it ends when it would have ended. */
static Interval *
expiration_left(const Moving *moving, TimestampTz expires)
{
	Interval   *left;

	if (expires == 0)
		return NULL;
	left = palloc0(sizeof(Interval));
	left->time = Max(expires - moving->now, 1);
	return left;
}

/* Priorities of a queue table have no limits; those of a sharded queue go from 0 to 9. */
static int
priority_at(const Moving *moving, int priority)
{
	return moving->target_sharded ? Min(Max(priority, 0), AQ_PRIORITIES - 1) : priority;
}

static void
keep(void *arg, const AqMessage *m, int delivery)
{
	Moving	   *moving = arg;
	int			i = moving->n++;
	AqEnqueue  *call = &moving->calls[i];
	MemoryContext old = MemoryContextSwitchTo(moving->context);

	moving->ids[i] = m->id;
	moving->originals[i] = m->original_id != NULL ? *m->original_id : m->id;
	moving->exception_queues[i] = m->exception_queue != NULL ? text_to_cstring((text *) m->exception_queue) : NULL;
	*call = (AqEnqueue) {
		.priority = priority_at(moving, m->priority),
		.expiration = expiration_left(moving, m->expires_at),
		.correlation = aq_move_copy(m->correlation),
		.key = aq_move_copy(m->key),
		.properties = aq_move_properties(m),
		.sender = aq_move_sender(i > 0 ? call[-1].sender : NULL, m->sender),
		.recipients = moving->target_multi && moving->move->recipient != NULL
		? list_make1((char *) moving->move->recipient) : NIL,
		.producer = moving->move->producer,
		.original_id = &moving->originals[i],
	};
	moving->nulls[i] = m->payload_null;
	moving->payloads[i] = m->payload_null ? (Datum) 0 : datumCopy(m->payload, moving->by_value, moving->length);
	if (!m->payload_null)
		moving->bytes += datumGetSize(m->payload, moving->by_value, moving->length);
	MemoryContextSwitchTo(old);
}

static const AqMoveTransformer *transformer;

void
aq_move_on_transform(const AqMoveTransformer *callbacks)
{
	transformer = callbacks;
}

/* The consumer's transformation: its function runs as its owner. */
static void
read_transformation(Moving *moving, AqQueue *source)
{
	AqConsumer *consumer = moving->move->consumer != NULL ? aq_catalog_consumer(source, moving->move->consumer) : NULL;
	char	   *name;
	Oid			role;

	if (consumer == NULL || consumer->transformation == NULL)
		return;
	name = pstrdup(consumer->transformation);
	role = consumer->transformation_role;
	moving->transformation = transformer->check(moving->source, name, role);
}

static void
read_source(Moving *moving)
{
	AqQueue    *source = aq_catalog_get_by_id(moving->move->source, true);

	if (source == NULL)
		ereport(ERROR, aq_error(AQ_ERR_QUEUE_UNDEFINED, "queue number %d does not exist", moving->move->source));
	if (!aq_queue_is_sharded(source) && source->table.grouping)
		ereport(ERROR,
				aq_error(AQ_ERR_FEATURE_UNSUPPORTED, "messages of queue \"%s\" cannot be propagated", source->name),
				errdetail("Its queue table groups messages by transaction."));
	moving->source = pstrdup(source->name);
	moving->source_type = source->payload_type;
	get_typlenbyval(source->payload_type, &moving->length, &moving->by_value);
	read_transformation(moving, source);
}

static void
read_target(Moving *moving)
{
	AqQueue    *target = aq_catalog_get(moving->move->destination, AQ_RIGHT_ENQUEUE);

	moving->target = target->id;
	moving->target_type = target->payload_type;
	moving->target_multi = target->multi;
	moving->target_sharded = aq_queue_is_sharded(target);
	if (target->payload_type != moving->source_type && moving->transformation == NULL)
		ereport(ERROR,
				aq_error(AQ_ERR_PAYLOAD_TYPE, "queue \"%s\" holds %s, but queue \"%s\" holds %s", moving->source,
						 format_type_be(moving->source_type), target->name, format_type_be(target->payload_type)),
				errhint("Propagation needs queues with the same payload type, or a subscriber with a transformation."));
}

static void
put(Moving *moving)
{
	AqEnqueue	call = {.command = "propagation", .queue = pstrdup(moving->move->destination),
		.payload_type = moving->target_type, .priority = AQ_DEFAULT_PRIORITY, .each = moving->calls,
		.producer = moving->move->producer, .enqueued_before = true};
	pg_uuid_t **ids;

	if (moving->transformation != NULL)
		transformer->apply(moving->transformation, moving->source, moving->source_type, moving->target_type, moving->n,
						   moving->payloads, moving->nulls);
	/* a lookup may end the description that the dequeue used, so not before */
	for (int i = 0; i < moving->n; i++)
		if (moving->exception_queues[i] != NULL)
			moving->calls[i].exception_queue = aq_move_exception_queue(moving->exception_queues[i], moving->target,
																	   moving->target_type);
	ids = aq_enqueue_messages(&call, moving->n, moving->payloads, moving->nulls);
	if (moving->transformation == NULL)
		aq_move_bodies(moving->source, moving->target, moving->target_type, moving->n, moving->payloads,
					   moving->nulls, moving->ids, ids);
}

/*
 * Moves messages to another queue, in the current transaction and with the
 * privileges of the current role.  Returns their number; at most move->max.
 */
uint32
aq_move_messages(AqMove *move)
{
	Moving		moving = {
		.move = move,
		.context = CurrentMemoryContext,
		.now = GetCurrentTimestamp(),
		.calls = palloc(move->max * sizeof(AqEnqueue)),
		.payloads = palloc(move->max * sizeof(Datum)),
		.nulls = palloc(move->max * sizeof(bool)),
		.ids = palloc(move->max * sizeof(pg_uuid_t)),
		.originals = palloc(move->max * sizeof(pg_uuid_t)),
		.exception_queues = palloc(move->max * sizeof(char *)),
	};
	AqDequeue	call = {.consumer = move->consumer, .max = move->max, .mode = AQ_MODE_MOVE, .delivery = AQ_PERSISTENT,
		.emit = keep, .arg = &moving};

	read_source(&moving);
	read_target(&moving);
	call.queue = moving.source;
	call.payload_type = moving.source_type;
	(void) aq_dequeue_now(&call);
	aq_point("move-taken");
	if (moving.n > 0)
		put(&moving);
	aq_point("move-put");
	move->bytes = moving.bytes;
	return moving.n;
}
