/*-------------------------------------------------------------------------
 *
 * enqueue_unique.c
 *	  aq.enqueue_unique: one message with a unique key at a time.
 *
 * A key is in force for the time that the call has given, or until the message that
 * has it is done for all its consumers.  See definitions/unique.c.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/calls/calls_private.h"

#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

static void
check_options(const AqUniqueOptions *options)
{
	if (options->key == NULL)
		ereport(ERROR, aq_error(AQ_ERR_ARGUMENT_NULL, "\"unique_key\" must not be null"));
	if (strlen(options->key) > AQ_KEY_MAX_BYTES)
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "\"unique_key\" is too long"),
				errdetail("It has %d bytes; the maximum is %d.", (int) strlen(options->key), AQ_KEY_MAX_BYTES),
				errhint("Use a hash of it."));
	if (strcmp(options->on_conflict, "ignore") != 0 && strcmp(options->on_conflict, "error") != 0 &&
		strcmp(options->on_conflict, "replace") != 0)
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "\"on_conflict\" must be ignore, error or replace, not \"%s\"", options->on_conflict));
	if (options->span == 0)
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "\"unique_for\" must be positive"),
				errhint("Null means until the message is done."));
}

/* The queue, as the caller may enqueue into it. */
static AqQueue *
queue_for(const AqEnqueue *call)
{
	AqQueue    *queue;

	if (call->queue == NULL)
		ereport(ERROR, aq_error(AQ_ERR_ARGUMENT_NULL, "\"queue_name\" must not be null"));
	queue = aq_catalog_get(call->queue, AQ_RIGHT_ENQUEUE);
	if (queue->store->unfinished == NULL || queue->distributed || queue->non_persistent)
		ereport(ERROR,
				aq_error(AQ_ERR_FEATURE_UNSUPPORTED, "unique keys are not supported for %s",
						 queue->distributed ? "distributed queues" : queue->non_persistent ? "queues of type non_persistent"
						 : "queues of queue tables"),
				errhint("Use a sharded queue that is not distributed."));
	if (call->delivery_mode != NULL && strcmp(call->delivery_mode, "persistent") != 0)
		ereport(ERROR,
				aq_error(AQ_ERR_FEATURE_UNSUPPORTED, "buffered messages have no unique keys"),
				errhint("Leave \"delivery_mode\" null."));
	return queue;
}

/*
 * Does the message keep others with its key away?  replaces: removes it, if no
 * transaction or lease holds it; then it does not.
 */
static bool
is_in_force(AqQueue *queue, const AqUniqueRow *row, bool replaces)
{
	uint32		unfinished = 0;

	aq_pins_pin(queue);
	if (row->until != DT_NOEND && row->until <= GetCurrentTimestamp())
		return false;
	if (row->until == DT_NOEND || replaces)
		unfinished = queue->store->unfinished(queue, &row->msgid, true);
	if (row->until == DT_NOEND && unfinished == 0)
		return false;
	return !(replaces && unfinished > 0 && aq_cancel_message(queue, &row->msgid, unfinished));
}

/*
 * Enqueues the message, unless another one has its unique key.  Returns the id of the
 * one that has it now, or NULL if no subscriber of the topic wants the message.
 */
pg_uuid_t *
aq_enqueue_unique(const AqEnqueue *call, Datum payload, bool isnull, const AqUniqueOptions *options, bool *is_new)
{
	AqUniqueRow row;
	AqQueue    *queue;
	int32		id;
	bool		found;
	pg_uuid_t  *msgid;

	aq_session_require_write(call->command);
	check_options(options);
	queue = queue_for(call);
	/* the name may mean another queue after the wait */
	do
	{
		id = queue->id;
		aq_unique_lock(id, options->key);
		AcceptInvalidationMessages();
		queue = queue_for(call);
	} while (queue->id != id);
	found = aq_unique_find(queue, options->key, &row);
	if (found && is_in_force(queue, &row, strcmp(options->on_conflict, "replace") == 0))
	{
		if (strcmp(options->on_conflict, "error") == 0)
			ereport(ERROR,
					(errcode(ERRCODE_UNIQUE_VIOLATION),
					 errmsg("queue \"%s\" already has a message with the unique key \"%s\"", call->queue, options->key),
					 errdetail("It is message %s.", DatumGetCString(DirectFunctionCall1(uuid_out, UUIDPGetDatum(&row.msgid)))),
					 errhint("With on_conflict => 'ignore' aq.enqueue_unique() returns its id.")));
		msgid = palloc(sizeof(pg_uuid_t));
		*msgid = row.msgid;
		*is_new = false;
		return msgid;
	}
	msgid = aq_enqueue_message(call, payload, isnull);
	*is_new = msgid != NULL;
	if (msgid == NULL)
		return NULL;
	/* and after a wait of the enqueue */
	queue = aq_catalog_get_by_id(id, true);
	if (queue == NULL || !queue->store->owns(queue, msgid))
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("could not serialize access to queue \"%s\"", call->queue),
				 errdetail("It was dropped, and created again, meanwhile."),
				 errhint("Run the transaction again.")));
	aq_pins_pin(queue);
	aq_unique_put(id, options->key, found ? &row : NULL, msgid,
				  options->span < 0 ? DT_NOEND : GetCurrentTimestamp() + options->span);
	aq_unique_note(queue->shm);
	return msgid;
}
