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
			values[i] = Int64GetDatum(pg_atomic_read_u64(&queue->shm->traffic[i]));	/* timestamps are int64, too */
		nulls[i] = !known || (aq_traffic_is_time(i) && DatumGetInt64(values[i]) == 0);
	}
	if (known)
		aq_pins_peek_end(&peek);
	return aq_rows_one(fcinfo, values, nulls);
}

/* --- the time of transformations, which dbms_aq applies ---------------------- */

PG_FUNCTION_INFO_V1(aq_counters_transform_begin);
Datum
aq_counters_transform_begin(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(aq_time_now());
}

/*
 * Returns the third argument.  The second one, which was evaluated before it,
 * is the time at which the transformation began.
 */
PG_FUNCTION_INFO_V1(aq_counters_transform_end);
Datum
aq_counters_transform_end(PG_FUNCTION_ARGS)
{
	int64		began = PG_ARGISNULL(0) || PG_ARGISNULL(1) ? 0 : PG_GETARG_INT64(1);
	int64		ended = aq_time_now();

	if (began > 0 && ended > began)
	{
		AqQueue    *queue = aq_catalog_get(text_to_cstring(PG_GETARG_TEXT_PP(0)), AQ_RIGHT_ANY);

		aq_pins_pin(queue);
		aq_traffic_add(queue->shm, AQ_TRAFFIC_TRANSFORMATIONS_ELAPSED, ended - began);
	}
	if (PG_ARGISNULL(2))
		PG_RETURN_NULL();
	PG_RETURN_DATUM(PG_GETARG_DATUM(2));
}
