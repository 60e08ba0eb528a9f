/*-------------------------------------------------------------------------
 *
 * node_want.c
 *	  Consumers of distributed queues here, told to the other nodes.
 *
 * A stream for each other node says for which consumers sessions have dequeued
 * here lately, each about once a second.  It is soft: the other node forgets it
 * after a few seconds, and nothing depends on it but which node gets which unit.
 *
 * The same stream looks, once a second, whether this node's own units are well
 * distributed: its own consumers may want them back.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "node/node_private.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#define WANT "SELECT aq.node_want($1, $2, $3, $4)"

/* a wish is told again after this time, and looked for after the next one; microseconds */
#define TELL_AGAIN ((int64) 1000000)
#define LOOK_AGAIN ((int64) 50000)

/* A consumer of this node's queue that is wanted here. */
typedef struct Wanted
{
	int32		queue_id;
	int64		consumer;		/* its number here */
	TimestampTz told;			/* 0: not yet */
} Wanted;

typedef struct Wanting
{
	List	   *wanted;			/* of Wanted, in the stream's context */
	Wanted	   *asking;			/* in flight */
	uint32		news;			/* of AQ_PEERS_WISH, when the stream was woken */
	TimestampTz looked;
	TimestampTz distributed;	/* this node's own units */
} Wanting;

/* --- the other node ---------------------------------------------------------------- */

/* aq.node_want(caller, queue_name, consumer, payload_type) */
PG_FUNCTION_INFO_V1(aq_node_want);
Datum
aq_node_want(PG_FUNCTION_ARGS)
{
	int32		number;
	const char *caller = aq_node_identity_caller(fcinfo, "aq.node_want()", &number);
	const char *name = aq_args_name(fcinfo, 1, "queue_name");
	const char *consumer = aq_args_name_or_null(fcinfo, 2, "consumer");
	const char *type = aq_args_name(fcinfo, 3, "payload_type");
	AqQueue    *queue = aq_catalog_get_for(name, consumer, 0);
	const char *own = format_type_extended(queue->payload_type, -1, FORMAT_TYPE_FORCE_QUALIFY);
	AqConsumer *found;

	if (!queue->distributed)
		ereport(ERROR,
				aq_error(AQ_ERR_NOT_DISTRIBUTED, "queue \"%s\" is not distributed", name),
				errhint("Create it with distributed => true on all nodes."));
	if (strcmp(type, own) != 0)
		ereport(ERROR,
				aq_error(AQ_ERR_PAYLOAD_TYPE, "queue \"%s\" holds %s on this node, but %s on node %s", name, own, type, caller),
				errhint("Create it with the same payload type on all nodes."));
	(void) aq_args_consumer_position(queue, consumer);
	found = consumer != NULL ? aq_catalog_consumer(queue, consumer) : NULL;
	if (queue->multi && found == NULL)
		ereport(ERROR,
				aq_error(AQ_ERR_SUBSCRIBER_UNDEFINED, "\"%s\" is not a consumer of queue \"%s\" on this node", consumer, name),
				errhint("Subscribe it on all nodes."));
	aq_node_area_wish(number, queue->id, found != NULL ? found->number : 0, GetUserId());
	aq_pins_pin(queue);
	aq_node_policy_run(queue);
	PG_RETURN_VOID();
}

/* --- this node ---------------------------------------------------------------------- */

/* Remembers that the consumer is wanted. */
static void
note_wanted(AqLinkStream *stream, int32 queue_id, int64 consumer)
{
	Wanting    *wanting = stream->data;
	MemoryContext old;
	Wanted	   *wanted;
	ListCell   *lc;

	foreach(lc, wanting->wanted)
	{
		wanted = lfirst(lc);
		if (wanted->queue_id == queue_id && wanted->consumer == consumer)
			return;
	}
	old = MemoryContextSwitchTo(stream->context);
	wanted = palloc0(sizeof(Wanted));
	wanted->queue_id = queue_id;
	wanted->consumer = consumer;
	wanting->wanted = lappend(wanting->wanted, wanted);
	MemoryContextSwitchTo(old);
}

/* Which consumers are wanted now, and, from time to time, who gets this node's units. */
static void
look(AqLinkStream *stream)
{
	Wanting    *wanting = stream->data;
	bool		distribute = wanting->distributed + TELL_AGAIN <= wanting->looked;
	ListCell   *lc;

	foreach(lc, aq_node_unit_queues())
	{
		AqQueue    *queue = aq_catalog_get_by_id(lfirst_int(lc), true);

		if (queue == NULL)
			continue;
		aq_pins_pin(queue);
		if (!queue->multi && aq_node_policy_wished(queue, 0))
			note_wanted(stream, queue->id, 0);
		for (int i = 0; i < queue->nconsumers; i++)
			if (queue->consumers[i].name != NULL && aq_node_policy_wished(queue, queue->consumers[i].position))
				note_wanted(stream, queue->id, queue->consumers[i].number);
		if (distribute && queue->nclosed > 0)
			aq_node_policy_run(queue);
	}
	if (distribute)
		wanting->distributed = wanting->looked;
}

/* Fills in the request; false: the consumer is no longer wanted. */
static bool
ask(Wanted *wanted, AqLinkRequest *request)
{
	AqQueue    *queue = aq_catalog_get_by_id(wanted->queue_id, true);
	AqNodeIdentity own;
	const AqConsumer *consumer;
	int			position;

	if (queue == NULL || !queue->distributed || aq_node_identity_own(&own) != AQ_NODE_OWN)
		return false;
	position = aq_node_unit_position(queue, wanted->consumer);
	if (position < 0)
		return false;
	aq_pins_pin(queue);
	if (!aq_node_policy_wished(queue, position))
		return false;
	consumer = aq_description_consumer(queue, wanted->consumer);
	request->sql = WANT;
	request->shape = (AqLinkShape) {.least_rows = 1, .most_rows = 1, .ncolumns = 1, .columns = {{AQ_ANSWER_VOID}}};
	request->timeout_ms = aq_node_settings_timeout;
	aq_node_identity_send(request, &own);
	aq_link_text(request, TEXTOID, pstrdup(queue->name));
	aq_link_text(request, TEXTOID, consumer != NULL ? pstrdup(consumer->name) : NULL);
	aq_link_text(request, TEXTOID, format_type_extended(queue->payload_type, -1, FORMAT_TYPE_FORCE_QUALIFY));
	return true;
}

static bool
want_woken(AqLinkStream *stream)
{
	Wanting    *wanting = stream->data;
	uint32		news = aq_node_area_news(AQ_PEERS_WISH);
	bool		is_new = wanting->news != news;

	wanting->news = news;
	return is_new;
}

static bool
want_next(AqLinkStream *stream, AqLinkRequest *request, TimestampTz *again)
{
	Wanting    *wanting = stream->data;
	TimestampTz now = GetCurrentTimestamp();
	ListCell   *lc;

	if (wanting->looked + LOOK_AGAIN > now)
	{
		*again = wanting->looked + LOOK_AGAIN;
		return false;
	}
	(void) aq_chunks_set_impatient(true);
	wanting->looked = now;
	look(stream);
	*again = now + TELL_AGAIN;
	foreach(lc, wanting->wanted)
	{
		Wanted	   *wanted = lfirst(lc);

		if (wanted->told + TELL_AGAIN > now)
			continue;
		if (ask(wanted, request))
		{
			wanting->asking = wanted;
			/* the next one at once */
			wanting->looked = 0;
			return true;
		}
		wanting->wanted = foreach_delete_current(wanting->wanted, lc);
		pfree(wanted);
	}
	return false;
}

static void
want_done(AqLinkStream *stream, const AqLinkAnswer *answer)
{
	Wanting    *wanting = stream->data;

	wanting->asking->told = GetCurrentTimestamp();
	aq_node_area_queue_works((int32) stream->key, true);
}

static TimestampTz
want_failed(AqLinkStream *stream, const AqLinkFailure *failure)
{
	Wanting    *wanting = stream->data;

	if (failure->phase == AQ_LINK_REFUSED)
	{
		if (wanting->asking != NULL)
			wanting->asking->told = GetCurrentTimestamp();
		aq_node_area_queue_failed((int32) stream->key, true, failure->message, failure->hint);
	}
	return GetCurrentTimestamp() + TELL_AGAIN;
}

static const AqLinkKind wishes = {
	.name = "node want",
	.size = sizeof(Wanting),
	.exist = aq_node_stream_exist,
	.list = aq_node_stream_list,
	.woken = want_woken,
	.next = want_next,
	.done = want_done,
	.failed = want_failed,
};

void
aq_node_want_register(void)
{
	aq_link_register(&wishes);
}
