/*-------------------------------------------------------------------------
 *
 * pause.c
 *	  aq.pause and aq.resume: a consumer, or all consumers of a queue, get no
 *	  messages.
 *
 * Unlike a stopped queue, a paused one raises no errors: a dequeue finds
 * nothing, and sessions that wait go on waiting, under a wait event of their
 * own.  A pause of the queue and the pauses of its consumers are independent of
 * each other.
 *
 * A pause is a property of the description.  Sessions that wait are woken by
 * each change of it.  From a sharded queue, messages are taken by a description
 * that is as new as the latest commit: see AqTakeOptions.outdated.  From a queue
 * table, a dequeue that has begun before the pause was committed can still take some.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/definitions/definitions_private.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "utils/builtins.h"

/* by: NULL: it is resumed. */
static void
pause_queue(FunctionCallInfo fcinfo, const char *by, Datum reason, bool no_reason)
{
	AqQueue    *queue = aq_ddl_queue(aq_args_name(fcinfo, 0, "queue_name"), ShareUpdateExclusiveLock);
	int32		id = queue->id;
	AqQueueRow	row = {0};

	aq_non_persistent_refuse(queue, by != NULL ? "pause" : "resume");
	aq_queue_row_set(&row, AQ_QUEUE_PAUSED, TimestampTzGetDatum(GetCurrentTransactionStartTimestamp()), by == NULL);
	aq_queue_row_set(&row, AQ_QUEUE_PAUSED_BY, by != NULL ? CStringGetTextDatum(by) : (Datum) 0, by == NULL);
	aq_queue_row_set(&row, AQ_QUEUE_PAUSE_REASON, reason, no_reason);
	aq_queue_row_update(&row, id);
	aq_pending_altered(id);
	aq_catalog_changed();
}

static void
change(FunctionCallInfo fcinfo, const char *command, const char *by, Datum reason, bool no_reason)
{
	aq_session_require_write(command);
	if (PG_ARGISNULL(1))
		pause_queue(fcinfo, by, reason, no_reason);
	else
		aq_subscriber_pause(fcinfo, command, by, reason, no_reason);
}

PG_FUNCTION_INFO_V1(aq_pause);
Datum
aq_pause(PG_FUNCTION_ARGS)
{
	AQ_TIMED(AQ_TIME_ADMIN);
	change(fcinfo, "aq.pause()", GetUserNameFromId(GetUserId(), false), PG_ARGISNULL(2) ? (Datum) 0 : PG_GETARG_DATUM(2),
		   PG_ARGISNULL(2));
	PG_RETURN_VOID();
}

PG_FUNCTION_INFO_V1(aq_pause_end);
Datum
aq_pause_end(PG_FUNCTION_ARGS)
{
	AQ_TIMED(AQ_TIME_ADMIN);
	change(fcinfo, "aq.resume()", NULL, 0, true);
	PG_RETURN_VOID();
}
