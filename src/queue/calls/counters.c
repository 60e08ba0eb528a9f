/*-------------------------------------------------------------------------
 *
 * counters.c
 *	  SQL functions for counters and times of a queue.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/calls/calls_private.h"

#include "utils/builtins.h"

PG_FUNCTION_INFO_V1(aq_counters_queue);
Datum
aq_counters_queue(PG_FUNCTION_ARGS)
{
	AqQueue    *queue = aq_catalog_get(text_to_cstring(PG_GETARG_TEXT_PP(0)), AQ_RIGHT_SEE);
	Datum		values[2] = {0};
	bool		nulls[2] = {true, true};
	AqPeek		peek;

	if (aq_pins_peek(queue, &peek))
	{
		values[0] = Int64GetDatum(pg_atomic_read_u64(&queue->shm->enqueued));
		values[1] = Int64GetDatum(pg_atomic_read_u64(&queue->shm->dequeued));
		nulls[0] = nulls[1] = false;
		aq_pins_peek_end(&peek);
	}
	return aq_rows_one(fcinfo, values, nulls);
}

PG_FUNCTION_INFO_V1(aq_counters_traffic);
Datum
aq_counters_traffic(PG_FUNCTION_ARGS)
{
	AqQueue    *queue = aq_catalog_get(text_to_cstring(PG_GETARG_TEXT_PP(0)), AQ_RIGHT_SEE);
	Datum		values[AQ_NTRAFFIC] = {0};
	bool		nulls[AQ_NTRAFFIC];
	AqPeek		peek;
	bool		known = aq_pins_peek(queue, &peek);

	for (int i = 0; i < AQ_NTRAFFIC; i++)
	{
		if (known)
			values[i] = Int64GetDatum(pg_atomic_read_u64(&queue->shm->traffic[i])); /* timestamps are int64, too */
		nulls[i] = !known || (aq_traffic_is_time(i) && DatumGetInt64(values[i]) == 0);
	}
	if (known)
		aq_pins_peek_end(&peek);
	return aq_rows_one(fcinfo, values, nulls);
}

/* Does the current role see the consumer at this position, and its counters? */
PG_FUNCTION_INFO_V1(aq_counters_shows_consumer);
Datum
aq_counters_shows_consumer(PG_FUNCTION_ARGS)
{
	AqQueue    *queue;

	aq_session_require_preload();
	queue = aq_catalog_get_numbered(PG_GETARG_INT32(0));
	PG_RETURN_BOOL(queue != NULL && aq_privilege_shows_position(queue, PG_GETARG_INT32(1)));
}
