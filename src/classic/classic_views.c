/*-------------------------------------------------------------------------
 *
 * classic_views.c
 *	  What the view aq.messages shows of queue tables.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "classic/classic_private.h"

#include "executor/spi.h"
#include "funcapi.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

/*
 * The query over one queue's rows, as the caller's snapshot sees them; l is
 * the line's row, m the message's.  Whose xmax runs is in somebody's hand.
 */
static char *
messages_query(AqQueue *queue)
{
	StringInfoData s;

	initStringInfo(&s);
	appendStringInfo(&s,
					 "SELECT m.msgid, %s, CASE WHEN (CASE WHEN l.state = %d THEN l.xmin ELSE l.xmax END) "
					 "IN (SELECT transactionid FROM pg_locks WHERE locktype = 'transactionid' "
					 "AND mode = 'ExclusiveLock') THEN 'LOCKED' WHEN l.state = %d THEN 'PROCESSED' "
					 "WHEN l.state = %d THEN 'WAITING' "
					 "WHEN l.state = %d OR l.next_at <= clock_timestamp() THEN 'EXPIRED' ELSE 'READY' END, "
					 "m.priority, m.correlation, m.enqueue_time, m.ready_at, m.expires_at, l.dequeue_time, "
					 "l.attempts, m.sender, m.exception_queue, m.original_msgid, m.properties, NULL::integer, "
					 "m.session_id, m.payload::text FROM ",
					 queue->multi ? "s.consumer" : "NULL::text", STATE_PROCESSED, STATE_PROCESSED,
					 STATE_WAITING, STATE_EXPIRED);
	if (queue->multi)
		appendStringInfo(&s,
						 "aq_data.c%d l JOIN aq_data.t%d m USING (queue_id, key1, key2, step) "
						 "JOIN aq.subscriber s ON s.queue_id = l.queue_id AND s.\"position\" = l.\"position\" "
						 "AND s.consumer IS NOT NULL",
						 queue->table.id, queue->table.id);
	else
		appendStringInfo(&s, "aq_data.t%d m, LATERAL (SELECT m.*, m.xmin, m.xmax) l", queue->table.id);
	appendStringInfo(&s, " WHERE %s = %d", queue->multi ? "l.queue_id" : "m.queue_id", queue->id);
	return s.data;
}

PG_FUNCTION_INFO_V1(aq_view_classic_messages);
Datum
aq_view_classic_messages(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result;
	AqQueue    *queue;

	aq_require_preload();
	InitMaterializedSRF(fcinfo, 0);
	result = (ReturnSetInfo *) fcinfo->resultinfo;
	queue = aq_queue_get_by_id(PG_GETARG_INT32(0), true);
	if (queue == NULL || queue->table.id == 0 || !aq_queue_allows(queue, AQ_RIGHT_DEQUEUE))
		return (Datum) 0;
	aq_run_sql(messages_query(queue), 0, NULL, NULL, NULL, true);
	for (uint64 i = 0; i < SPI_processed; i++)
		tuplestore_puttuple(result->setResult, SPI_tuptable->vals[i]);
	SPI_finish();
	return (Datum) 0;
}
