/*-------------------------------------------------------------------------
 *
 * message_body.c
 *	  Bodies of large messages that are moved to another queue.
 *
 * A body belongs to its message; a copy of the message gets a copy of it, chunk by
 * chunk, in the same transaction.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/memory/memory_private.h"

#include "access/htup_details.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/jsonb.h"
#include "utils/memutils.h"

/* column "headers" of aq.jms_message, and its key with the length of a body in chunks */
#define HEADERS 2
#define LENGTH_KEY "content_length"

/* Does the payload say that the message has its body in chunks? */
bool
aq_message_body_is_apart(Oid type, Datum payload, bool isnull)
{
	Datum		headers;
	Jsonb	   *json;

	if (isnull || !aq_payload_is_jms(type))
		return false;
	headers = GetAttributeByNum(DatumGetHeapTupleHeader(payload), HEADERS, &isnull);
	if (isnull)
		return false;
	json = DatumGetJsonbP(headers);
	return JB_ROOT_IS_OBJECT(json) &&
		getKeyJsonValueFromContainer(&json->root, LENGTH_KEY, strlen(LENGTH_KEY), NULL) != NULL;
}

/*
 * Copies the body of a message of queue "from" to one that this transaction has
 * enqueued into queue "to".  position: of a consumer of the first one.
 */
void
aq_message_body_copy(AqQueue *from, const pg_uuid_t *id, int position, AqQueue *to, const pg_uuid_t *copy)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "pgaq body chunk", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);

	aq_pins_pin(from);
	aq_pins_pin(to);
	for (int32 number = 0;; number++)
	{
		bytea	   *data = from->store->bodies->read(from, id, number, position);

		CHECK_FOR_INTERRUPTS();
		if (data == NULL || to->store->bodies->write(to, copy, number, data) != AQ_BODY_WRITTEN)
			break;
		MemoryContextReset(context);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}
