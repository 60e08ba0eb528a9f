/*-------------------------------------------------------------------------
 *
 * exception.c
 *	  Functions for the worker to put a failed message into an exception queue.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/memory/memory_private.h"

/* Pins the queue.  Returns false if a user has locked its tables. */
bool
aq_exception_pin(AqQueue *target)
{
	if (!aq_queue_lock_tables(target, AccessShareLock))
		return false;
	aq_pins_pin(target);
	return true;
}

/*
 * Puts the message.  The queue is pinned.  Returns false if its store would
 * have to wait.
 */
bool
aq_exception_put(AqQueue *target, AqPutOptions *options, Datum payload, bool isnull)
{
	pg_uuid_t	id;

	if (target->store->worker_may_put != NULL && !target->store->worker_may_put(target))
		return false;
	/* a queue table can have priorities that a sharded queue cannot */
	if (aq_queue_is_sharded(target))
		options->priority = Min(Max(options->priority, 0), AQ_PRIORITIES - 1);
	target->store->put(target, options, 1, &payload, &isnull, NULL, &id);
	return true;
}
