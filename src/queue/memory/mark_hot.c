/*-------------------------------------------------------------------------
 *
 * mark_hot.c
 *	  aq.mark_hot: copies of a queue's entry in the object cache.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/memory/memory_private.h"

#include "utils/builtins.h"

PG_FUNCTION_INFO_V1(aq_mark_hot);
Datum
aq_mark_hot(PG_FUNCTION_ARGS)
{
	AQ_TIMED(AQ_TIME_ADMIN);
	AqQueue    *queue = aq_catalog_get(text_to_cstring(PG_GETARG_TEXT_PP(0)), AQ_RIGHT_ANY);

	aq_pins_pin(queue);
	if (PG_GETARG_BOOL(1))
		aq_hot_mark(queue->object);
	else
		aq_hot_unmark(queue->object);
	PG_RETURN_VOID();
}
