/*-------------------------------------------------------------------------
 *
 * outgoing.c
 *	  The queue of notifications that go to addresses outside of the database.
 *
 * For a registration with an address, procedure aq.send_notification is called,
 * which enqueues the notification; pgaq notify delivers it.  A role that may enqueue
 * into the queue may register an address.  The queue's name is known, and a role
 * that may create queues could be the first to use it.  So the queue must belong to
 * a superuser; superusers can read all notifications anyway.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "notify/notify_private.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/builtins.h"

#define OUTGOING "pgaq_outgoing"

static AqQueue *
find_queue(void)
{
	if (!aq_sql_finds("SELECT FROM aq_internal.queue WHERE queue_name = '" OUTGOING "'"))
		ereport(ERROR,
				aq_error(AQ_ERR_QUEUE_UNDEFINED, "queue \"" OUTGOING "\" for notifications to addresses does not exist"),
				errhint("An administrator creates it with aq.create_queue('" OUTGOING "'), grants the enqueue privilege, and runs pgaq notify."));
	return aq_catalog_get(OUTGOING, AQ_RIGHT_ENQUEUE);
}

/* Raises an error unless the current role can send notifications to addresses. */
void
aq_outgoing_check(void)
{
	AqQueue    *queue = find_queue();

	if (queue->multi || queue->payload_type != JSONBOID)
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "queue \"%s\" is not a queue of jsonb with a single consumer", queue->name),
				errhint("Notifications to addresses go through this queue."));
	if (!superuser_arg(queue->owner))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("queue \"%s\" belongs to role \"%s\", which is not a superuser", queue->name,
						GetUserNameFromId(queue->owner, true)),
				 errdetail("The notifications of all roles to addresses go through this queue.")));
}

PG_FUNCTION_INFO_V1(aq_outgoing_queue);
Datum
aq_outgoing_queue(PG_FUNCTION_ARGS)
{
	aq_outgoing_check();
	PG_RETURN_TEXT_P(cstring_to_text(OUTGOING));
}

/* The address of a registration as pgaq notify takes it. */
PG_FUNCTION_INFO_V1(aq_outgoing_address);
Datum
aq_outgoing_address(PG_FUNCTION_ARGS)
{
	char	   *callback = PG_ARGISNULL(0) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(0));

	if (callback == NULL || !aq_callback_is_address(callback))
		ereport(ERROR, aq_error(AQ_ERR_CALLBACK_INVALID, "the notification is not of a registration with an address"));
	PG_RETURN_TEXT_P(cstring_to_text(aq_callback_address(callback)));
}
