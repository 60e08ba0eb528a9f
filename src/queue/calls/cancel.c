/*-------------------------------------------------------------------------
 *
 * cancel.c
 *	  aq.cancel: removes one message that no transaction holds.
 *
 * It is a purge of one message, for all its consumers: a rollback is not an
 * attempt, and nothing is returned of the message.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/calls/calls_private.h"

#include "access/xact.h"
#include "utils/builtins.h"
#include "utils/resowner.h"
#include "utils/uuid.h"

/* The number of consumers for which the message was removed. */
static uint32
remove_for_consumers(AqQueue *queue, const pg_uuid_t *id)
{
	AqTakeOptions options = {.max = 1, .mode = AQ_MODE_PURGE, .id = id};
	uint32		removed = 0;

	if (!queue->multi)
		return queue->store->take(queue, &options);
	for (int i = 0; i < queue->nconsumers; i++)
	{
		options.position = queue->consumers[i].position;
		removed += queue->store->take(queue, &options);
	}
	return removed;
}

/*
 * As above, but 0 if a transaction or a lease keeps the message of a topic for
 * one of its unfinished consumers: then it stays for all.
 */
static uint32
remove_message(AqQueue *queue, const pg_uuid_t *id, int64 unfinished)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	uint32		removed;

	if (!queue->multi)
		return remove_for_consumers(queue, id);
	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		removed = remove_for_consumers(queue, id);
	}
	PG_CATCH();
	{
		ErrorData  *error;

		/* a handler of the error knows only its own subtransactions */
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(context);
		CurrentResourceOwner = owner;
		ReThrowError(error);
	}
	PG_END_TRY();
	if (removed < unfinished)
	{
		RollbackAndReleaseCurrentSubTransaction();
		removed = 0;
	}
	else
		ReleaseCurrentSubTransaction();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	return removed;
}

/* Removes a message of the sharded store, whatever the rights of the caller; false: a transaction or a lease holds it. */
bool
aq_cancel_message(AqQueue *queue, const pg_uuid_t *id, uint32 unfinished)
{
	bool		begins;
	bool		removed;

	queue = aq_use_begin(queue, false, &begins);
	removed = remove_message(queue, id, unfinished) > 0;
	if (removed)
		aq_stat_touched = true;
	else if (begins)
		aq_use_undo(queue);
	return removed;
}

/* unfinished: the number of consumers that had not finished the message before the call. */
static const char *
result_of(uint32 removed, int64 unfinished)
{
	if (removed > 0)
		return "done";
	return unfinished > 0 ? "busy" : "gone";
}

PG_FUNCTION_INFO_V1(aq_cancel);
Datum
aq_cancel(PG_FUNCTION_ARGS)
{
	AQ_TIMED(AQ_TIME_DEQUEUE);
	AqQueue    *queue;
	const pg_uuid_t *id;
	int64		unfinished;
	bool		begins;
	uint32		removed;

	aq_session_require_write("aq.cancel()");
	aq_args_require(fcinfo, 1, "msgid");
	id = PG_GETARG_UUID_P(1);
	unfinished = PG_GETARG_INT64(2);
	queue = aq_catalog_get(aq_args_name(fcinfo, 0, "queue_name"), AQ_RIGHT_DEQUEUE);
	aq_non_persistent_refuse_dequeue(queue);
	queue = aq_use_begin(queue, false, &begins);
	removed = 0;
	if (queue->store->owns(queue, id))
		removed = remove_message(queue, id, unfinished);
	else if (queue->buffered != NULL && queue->buffered->store->owns(queue->buffered, id))
	{
		aq_pins_pin(queue->buffered);
		removed = remove_message(queue->buffered, id, unfinished);
	}
	if (removed > 0)
		aq_stat_touched = true;
	else if (begins)
		aq_use_undo(queue);
	PG_RETURN_TEXT_P(cstring_to_text(result_of(removed, unfinished)));
}
