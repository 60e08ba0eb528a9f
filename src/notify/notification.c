/*-------------------------------------------------------------------------
 *
 * notification.c
 *	  Makes values of type aq.notification.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "notify/notify_private.h"
#include "queue/calls.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

enum
{
	N_REGISTRATION, N_NAMESPACE, N_NAME, N_CONSUMER, N_MSGIDS, N_COUNT, N_CONTEXT, N_PAYLOAD, N_PRIORITY, N_CORRELATION,
	N_ATTEMPTS, N_ENQUEUE_TIME, N_READY_AT, N_EXPIRES_AT, N_SENDER, N_EXCEPTION_QUEUE, N_ORIGINAL_MSGID
};

static void
set(AqNotification *b, int field, Datum value)
{
	b->values[field] = value;
	b->nulls[field] = false;
}

static void
set_varlena(AqNotification *b, int field, struct varlena *value)
{
	if (value != NULL)
		set(b, field, PointerGetDatum(PG_DETOAST_DATUM_COPY(PointerGetDatum(value))));
}

static void
set_time(AqNotification *b, int field, TimestampTz time)
{
	if (time != 0)
		set(b, field, TimestampTzGetDatum(time));
}

/* Begins a notification of the registration. */
void
aq_notification_begin(AqNotification *b, const AqRegistration *r, const char *name)
{
	memset(b, 0, sizeof(*b));
	memset(b->nulls, true, sizeof(b->nulls));
	b->registration = r;
	set(b, N_REGISTRATION, Int64GetDatum(r->id));
	set(b, N_NAMESPACE, CStringGetTextDatum(r->queue_id != 0 ? "queue" : "anonymous"));
	set(b, N_NAME, CStringGetTextDatum(name));
	if (r->consumer != NULL)
		set(b, N_CONSUMER, CStringGetTextDatum(r->consumer));
	if (r->context != NULL)
		set(b, N_CONTEXT, PointerGetDatum(r->context));
}

Datum
aq_notification_make(AqNotification *b)
{
	TupleDesc	desc = lookup_rowtype_tupdesc_copy(aq_callback_notification_type(), -1);

	if (desc->natts != lengthof(b->values))
		elog(ERROR, "type aq.notification has %d fields", desc->natts);
	return HeapTupleGetDatum(heap_form_tuple(desc, b->values, b->nulls));
}

/* The payload as bytes. */
Datum
aq_notification_bytes(Oid type, Datum payload)
{
	Oid			output;
	bool		is_varlena;

	if (type == BYTEAOID)
		return PointerGetDatum(PG_DETOAST_DATUM_COPY(payload));
	getTypeOutputInfo(type, &output, &is_varlena);
	return PointerGetDatum(cstring_to_text(OidOutputFunctionCall(output, payload)));
}

/* Callback of a dequeue in mode browse: the message that is notified. */
static void
set_message(void *arg, const AqMessage *m, int delivery)
{
	AqNotification *b = arg;

	if (m->state != 0)			/* it waits for its retry delay */
		return;
	b->found = true;
	if (b->registration->with_payload && !m->payload_null)
		set(b, N_PAYLOAD, aq_notification_bytes(b->payload_type, m->payload));
	set(b, N_PRIORITY, Int32GetDatum(m->priority));
	set(b, N_ATTEMPTS, Int32GetDatum(m->attempts));
	set_time(b, N_ENQUEUE_TIME, m->enqueue_time);
	set_time(b, N_READY_AT, m->ready_at);
	set_time(b, N_EXPIRES_AT, m->expires_at);
	set_varlena(b, N_CORRELATION, m->correlation);
	set_varlena(b, N_SENDER, m->sender);
	set_varlena(b, N_EXCEPTION_QUEUE, m->exception_queue);
	if (m->original_id != NULL)
	{
		pg_uuid_t  *id = palloc(sizeof(pg_uuid_t));

		*id = *m->original_id;
		set(b, N_ORIGINAL_MSGID, UUIDPGetDatum(id));
	}
}

/*
 * Can the consumer dequeue, because the queue is not stopped, and neither is paused?  If
 * not, messages are notified afterwards: aq.start_queue and aq.resume are wake-ups, too.
 */
bool
aq_notification_may(AqQueue *queue, const char *consumer)
{
	return queue->dequeue_enabled && !aq_queue_is_paused(queue, aq_args_consumer_position(queue, consumer));
}

/* The message, if the consumer could dequeue it; raises without the right to. */
bool
aq_notification_look_at(AqNotification *b, AqQueue *queue, const pg_uuid_t *id)
{
	AqDequeue	call = {.queue = pstrdup(queue->name), .payload_type = queue->payload_type,
		.consumer = b->registration->consumer, .max = 1, .mode = AQ_MODE_BROWSE, .id = id,
		.delivery = AQ_PERSISTENT, .emit = set_message, .arg = b};

	b->found = false;
	b->payload_type = queue->payload_type;
	(void) aq_dequeue_now(&call);
	return b->found;
}

void
aq_notification_set_ids(AqNotification *b, const AqNews *news, int n, bool last)
{
	int			first = last ? n - 1 : 0;
	Datum	   *ids = palloc(n * sizeof(Datum));

	for (int i = first; i < n; i++)
		ids[i - first] = UUIDPGetDatum(&news[i].id);
	set(b, N_MSGIDS, PointerGetDatum(construct_array(ids, n - first, UUIDOID, UUID_LEN, false, TYPALIGN_CHAR)));
	set(b, N_COUNT, Int32GetDatum(n));
}

/* Fills in a posted notification. */
void
aq_notification_set_posting(AqNotification *b, const AqPosting *posting)
{
	AqNews		news = {0};

	set(b, N_COUNT, Int32GetDatum(1));
	if (!posting->no_payload)
		set(b, N_PAYLOAD, posting->payload);
	if (posting->msgid == NULL)
		return;
	news.id = *posting->msgid;
	aq_notification_set_ids(b, &news, 1, false);
	set(b, N_PRIORITY, Int32GetDatum(posting->priority));
	set(b, N_ATTEMPTS, Int32GetDatum(0));
	set_time(b, N_ENQUEUE_TIME, posting->posted);
	set_time(b, N_EXPIRES_AT, posting->expires_at);
	set_varlena(b, N_CORRELATION, posting->correlation);
	set_varlena(b, N_SENDER, posting->sender);
	if (posting->original_id != NULL)
		set(b, N_ORIGINAL_MSGID, UUIDPGetDatum(posting->original_id));
}
