/*-------------------------------------------------------------------------
 *
 * use.c
 *	  The beginning of a transaction's use of a queue.
 *
 * Each transaction that enqueues or dequeues counts as a user of the queue
 * until it ends; the store knows prepared ones.  While the queue is being
 * stopped no session becomes a user: it gets the same error as when the queue
 * is stopped.  See users.c for the order of writes and reads on both sides.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/calls/calls_private.h"

/* An exception queue can be started for dequeue only. */
static int
start_hint(const AqQueue *queue)
{
	if (queue->exception)
		return aq_error_hint("Start it with aq.start_queue and enqueue => false.",
							 "Start it with dbms_aqadm.start_queue and enqueue => false.");
	return aq_error_hint("Start it with aq.start_queue.", "Start it with dbms_aqadm.start_queue.");
}

void
aq_use_check_started(AqQueue *queue, bool enqueue)
{
	if (enqueue && !queue->enqueue_enabled)
		ereport(ERROR,
				aq_error(AQ_ERR_ENQUEUE_DISABLED, "queue \"%s\" is stopped for enqueue", queue->name),
				start_hint(queue));
	if (!enqueue && !queue->dequeue_enabled)
		ereport(ERROR,
				aq_error(AQ_ERR_DEQUEUE_DISABLED, "queue \"%s\" is stopped for dequeue", queue->name),
				start_hint(queue));
}

/* The transaction has found no messages, so it does not count as a user. */
void
aq_use_undo(AqQueue *queue)
{
	aq_pins_unuse(queue->shm);
}

/*
 * Raises the error for a queue that is being stopped, if the transaction is
 * not a user yet.
 */
static void
refuse(AqQueue *queue, bool enqueue)
{
	ereport(ERROR,
			enqueue ? aq_error(AQ_ERR_ENQUEUE_DISABLED, "queue \"%s\" is being stopped for enqueue", queue->name)
			: aq_error(AQ_ERR_DEQUEUE_DISABLED, "queue \"%s\" is being stopped for dequeue", queue->name),
			aq_error_hint("Start it with aq.start_queue when it is stopped.",
						  "Start it with dbms_aqadm.start_queue when it is stopped."));
}

/* Returns true if this makes the transaction a user. */
static bool
use(AqQueue *queue, bool enqueue)
{
	AqQueueShm *shm = queue->shm;

	if (!aq_pins_use(shm))
		return false;
	if (aq_users_are_stopped(shm, enqueue))
	{
		aq_use_undo(queue);
		refuse(queue, enqueue);
	}
	return true;
}

/*
 * Called before leased messages are acknowledged or given back, which a stopped
 * queue does not refuse.  Returns the current description; *begins as below.  A
 * session that stops the queue waits for the transaction.  One that is waiting
 * already does not: it would wait as long as consumers go on acknowledging.
 */
AqQueue *
aq_use_settle(AqQueue *queue, bool *begins)
{
	queue = aq_pins_pin_current(queue, false);
	*begins = aq_pins_use(queue->shm);
	if (!*begins)
		return queue;
	if (aq_users_are_stopped(queue->shm, false))
	{
		aq_use_undo(queue);
		*begins = false;
	}
	return queue;
}

/*
 * Called before an enqueue or dequeue.  Returns the current description of the
 * queue, or of its buffered queue if that was passed; *begins: the transaction
 * did not use it before.
 */
AqQueue *
aq_use_begin(AqQueue *queue, bool enqueue, bool *begins)
{
	int			delivery = queue->delivery;

	if (queue->persistent != NULL)
		queue = queue->persistent;
	for (;;)
	{
		queue = aq_pins_pin_current(queue, enqueue);
		aq_use_check_started(queue, enqueue);
		*begins = use(queue, enqueue);
		/* was it changed again, and is no longer being stopped? */
		if (queue->definition >= pg_atomic_read_u64(&queue->shm->definition))
			break;
		if (*begins)
			aq_use_undo(queue);
	}
	queue = aq_buffered_ensure(queue, delivery);	/* the name may now belong to another queue */
	aq_pins_pin(queue);
	return queue;
}
