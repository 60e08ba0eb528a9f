/*-------------------------------------------------------------------------
 *
 * stop.c
 *	  Stopping a queue when no transaction uses it.
 *
 * A session that stops the queue and must wait for its users announces this in
 * shared memory, which prevents new users (users.c), then waits until all have
 * ended.
 *
 * The wait comes before the queue's lock is taken and its definition changed:
 * a user must not wait for this session while this session waits for the user.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/definitions/definitions_private.h"

/*
 * interval between checks of prepared transactions, whose end is not
 * announced, in microseconds
 */
#define CHECK_AGAIN ((int64) 100000)

static void
pin_both(AqQueue *queue)
{
	aq_pins_pin(queue);
	if (queue->buffered != NULL)
		aq_pins_pin(queue->buffered);
}

/*
 * Do transactions, including prepared ones, use the queue? own: the number of
 * users that are this transaction.
 */
static bool
in_use(AqQueue *queue, uint32 own)
{
	return aq_users_number(queue->shm) > own || queue->store->in_doubt(queue->shm) ||
		(queue->buffered != NULL && queue->buffered->store->in_doubt(queue->buffered->shm));
}

/* Prevents new users and waits until all have ended. */
void
aq_stop_wait_for_users(AqQueue *queue, bool enqueue, bool dequeue)
{
	int			bits = (enqueue ? 1 : 0) | (dequeue ? 2 : 0);
	AqDeadlockWatch watch = {0};

	pin_both(queue);
	aq_pending_stopping(queue->id, bits);
	aq_users_count_stops(queue->shm, bits, 1);
	pg_memory_barrier();
	aq_users_want_end(queue->shm);
	aq_cond_prepare(&queue->shm->changed);
	while (in_use(queue, aq_pins_is_used(queue->shm) ? 1 : 0))
	{
		aq_deadlock_check(&watch, AQ_EVENT_STOP_QUEUE, queue->id);
		(void) aq_cond_sleep(&queue->shm->changed, AQ_EVENT_STOP_QUEUE, queue->id,
							 aq_users_number(queue->shm), 0, CHECK_AGAIN);
	}
	aq_cond_cancel();
}

PG_FUNCTION_INFO_V1(aq_stop_in_use);
Datum
aq_stop_in_use(PG_FUNCTION_ARGS)
{
	AqQueue    *queue = aq_catalog_get(aq_args_name(fcinfo, 0, "queue_name"), AQ_RIGHT_OWNER);

	pin_both(queue);
	PG_RETURN_BOOL(in_use(queue, 0));
}
