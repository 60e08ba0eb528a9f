/*-------------------------------------------------------------------------
 *
 * jms_body.c
 *	  aq_jms.write_chunk, aq_jms.read_chunk: bodies of large messages of the
 *	  Jakarta Messaging provider.
 *
 * A body is written after its message was enqueued, by the same transaction, so
 * both become visible together.  The store keeps it with the message.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "jms/jms_private.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/uuid.h"

static int32
chunk_number(FunctionCallInfo fcinfo, int arg)
{
	aq_args_require(fcinfo, arg, "number");
	if (PG_GETARG_INT32(arg) < 0)
		ereport(ERROR, aq_error(AQ_ERR_OPTION_INVALID, "\"number\" must not be negative"));
	return PG_GETARG_INT32(arg);
}

/* The chunk was not written. */
static void
refuse(AqBodyWrite result, const AqQueue *queue, Datum id, int32 number)
{
	char	   *message = DatumGetCString(DirectFunctionCall1(uuid_out, id));

	if (result == AQ_BODY_NOT_OWN)
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "this transaction has not enqueued message %s into queue \"%s\"",
						 message, queue->name),
				errhint("Enqueue the message, then write its chunks in the same transaction."));
	ereport(ERROR,
			aq_error(AQ_ERR_OPTION_INVALID, "chunk %d of message %s in queue \"%s\" already exists",
					 number, message, queue->name),
			errhint("Write each chunk once. To write a body again, enqueue a new message."));
}

PG_FUNCTION_INFO_V1(aq_jms_body_write);
Datum
aq_jms_body_write(PG_FUNCTION_ARGS)
{
	AqQueue    *queue;
	int32		number = chunk_number(fcinfo, 2);
	AqBodyWrite result;

	aq_args_require(fcinfo, 1, "msgid");
	aq_args_require(fcinfo, 3, "data");
	aq_session_require_write("aq_jms.write_chunk()");
	queue = aq_catalog_get(aq_args_name(fcinfo, 0, "queue_name"), AQ_RIGHT_ENQUEUE);
	if (!aq_payload_is_jms(queue->payload_type))
		ereport(ERROR,
				aq_error(AQ_ERR_PAYLOAD_TYPE, "queue \"%s\" holds %s, not aq.jms_message", queue->name,
						 format_type_be(queue->payload_type)));
	queue = aq_pins_pin_current(queue, true);
	if (queue->distributed)
		ereport(ERROR,
				aq_error(AQ_ERR_FEATURE_UNSUPPORTED, "queue \"%s\" cannot hold large messages", queue->name),
				errdetail("It is distributed, and their bodies cannot be sent to other nodes."),
				errhint("Create the queue without distributed => true."));
	result = queue->store->bodies->write(queue, PG_GETARG_UUID_P(1), number, PG_GETARG_BYTEA_PP(3));
	if (result != AQ_BODY_WRITTEN)
		refuse(result, queue, PG_GETARG_DATUM(1), number);
	PG_RETURN_VOID();
}

PG_FUNCTION_INFO_V1(aq_jms_body_read);
Datum
aq_jms_body_read(PG_FUNCTION_ARGS)
{
	char	   *name = aq_args_name(fcinfo, 0, "queue_name");
	char	   *consumer = aq_args_name_or_null(fcinfo, 1, "consumer");
	int32		number = chunk_number(fcinfo, 3);
	AqQueue    *queue;
	bytea	   *data;

	aq_args_require(fcinfo, 2, "msgid");
	PreventCommandIfParallelMode("aq_jms.read_chunk()");
	PreventCommandDuringRecovery("aq_jms.read_chunk()");
	queue = aq_pins_pin_current(aq_catalog_get_for(name, consumer, 0), false);
	data = queue->store->bodies->read(queue, PG_GETARG_UUID_P(2), number, aq_args_consumer_position(queue, consumer));
	if (data == NULL)
		PG_RETURN_NULL();
	PG_RETURN_BYTEA_P(data);
}
