/*-------------------------------------------------------------------------
 *
 * exception.c
 *	  How the worker puts a failed message into its exception queue.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/memory/memory_private.h"

/* Pin the queue.  False: users keep others out of it. */
bool
aq_exception_pin(AqQueue *target)
{
	if (!aq_queue_lock_tables(target, AccessShareLock))
		return false;
	aq_pins_pin(target);
	return true;
}

/* It is pinned.  False: its store would have to wait. */
bool
aq_exception_put(AqQueue *target, AqPutOptions *options, Datum payload, bool isnull)
{
	pg_uuid_t	id;

	if (target->store->worker_may_put != NULL && !target->store->worker_may_put(target))
		return false;
	/* a queue table has priorities that a sharded queue has not */
	if (aq_queue_is_sharded(target))
		options->priority = Min(Max(options->priority, 0), AQ_PRIORITIES - 1);
	target->store->put(target, options, 1, &payload, &isnull, NULL, &id);
	return true;
}
