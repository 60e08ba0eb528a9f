/*-------------------------------------------------------------------------
 *
 * stop.c
 *	  Stopping a queue when nobody is using it any more.
 *
 * Every transaction that enqueues or dequeues counts as a user of the queue
 * until it ends; one that is prepared is known to the store.  Who stops the
 * queue and wants to wait says so in shared memory, then waits until there is
 * no user; meanwhile nobody becomes one: he gets the same error as when the
 * queue is stopped.  Both sides write, then read what the other writes, with
 * a barrier in between, so one of the two sees the other.
 *
 * The wait comes before the queue's lock is taken and its definition changed:
 * a user must not wait for us while we wait for him.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/queue_private.h"

/* how long between looks at prepared transactions, whose end nobody tells, microseconds */
#define LOOK_AGAIN ((int64) 100000)

void
aq_queue_check_started(AqQueue *queue, bool enqueue)
{
	if (enqueue && !queue->enqueue_enabled)
		ereport(ERROR,
				aq_error(AQ_ERR_ENQUEUE_DISABLED, "queue \"%s\" is stopped for enqueue", queue->name),
				errhint("Start it with aq.start_queue or dbms_aqadm.start_queue."));
	if (!enqueue && !queue->dequeue_enabled)
		ereport(ERROR,
				aq_error(AQ_ERR_DEQUEUE_DISABLED, "queue \"%s\" is stopped for dequeue", queue->name),
				errhint("Start it with aq.start_queue or dbms_aqadm.start_queue."));
}

/* Who is not a user yet comes while the queue is being stopped. */
static void
refuse(AqQueue *queue, bool enqueue)
{
	ereport(ERROR,
			enqueue ? aq_error(AQ_ERR_ENQUEUE_DISABLED, "queue \"%s\" is being stopped for enqueue", queue->name)
			: aq_error(AQ_ERR_DEQUEUE_DISABLED, "queue \"%s\" is being stopped for dequeue", queue->name),
			errhint("Start it with aq.start_queue when it is stopped."));
}

/* True when the transaction becomes a user by it. */
static bool
use(AqQueue *queue, bool enqueue)
{
	AqQueueShm *shm = queue->shm;

	if (!aq_pin_use(shm))
		return false;
	pg_atomic_fetch_add_u32(&shm->users, 1);	/* a barrier, too */
	if (pg_atomic_read_u32(enqueue ? &shm->stops_enqueue : &shm->stops_dequeue) > 0)
	{
		aq_queue_unuse(queue);
		refuse(queue, enqueue);
	}
	return true;
}

/*
 * The transaction is about to enqueue or dequeue.  Returns the queue, or its
 * buffered side if that is given, as it is now; begins: the transaction did not use it before.
 */
AqQueue *
aq_queue_use(AqQueue *queue, bool enqueue, bool *begins)
{
	int			delivery = queue->delivery;

	if (queue->whole != NULL)
		queue = queue->whole;
	for (;;)
	{
		queue = aq_queue_pin_current(queue, enqueue);
		aq_queue_check_started(queue, enqueue);
		*begins = use(queue, enqueue);
		/* changed again, and nobody stops it any more? */
		if (queue->definition >= pg_atomic_read_u64(&queue->shm->definition))
			break;
		if (*begins)
			aq_queue_unuse(queue);
	}
	queue = aq_queue_side_made(queue, delivery);	/* it may be another queue by now */
	aq_queue_pin(queue);
	return queue;
}

/* It has found nothing, and is no user. */
void
aq_queue_unuse(AqQueue *queue)
{
	aq_pin_unuse(queue->shm);
	aq_queue_used(queue->shm);
}

/* One user less.  Never raises. */
void
aq_queue_used(AqQueueShm *shm)
{
	if (pg_atomic_fetch_sub_u32(&shm->users, 1) > 0 &&
		(pg_atomic_read_u32(&shm->stops_enqueue) > 0 || pg_atomic_read_u32(&shm->stops_dequeue) > 0))
		aq_cond_broadcast(&shm->changed);
}

static void
pin_both(AqQueue *queue)
{
	aq_queue_pin(queue);
	if (queue->buffered != NULL)
		aq_queue_pin(queue->buffered);
}

/* Do transactions, prepared ones too, use the queue?  own: how many of them are this one. */
static bool
in_use(AqQueue *queue, uint32 own)
{
	return pg_atomic_read_u32(&queue->shm->users) > own || queue->store->in_doubt(queue->shm) ||
		(queue->buffered != NULL && queue->buffered->store->in_doubt(queue->buffered->shm));
}

/* Keep others out and wait until nobody is in. */
void
aq_queue_quiesce(AqQueue *queue, bool enqueue, bool dequeue)
{
	pin_both(queue);
	aq_queue_stopping_here(queue, enqueue, dequeue);
	pg_memory_barrier();
	aq_cond_prepare(&queue->shm->changed);
	while (in_use(queue, aq_pin_used_here(queue->shm) ? 1 : 0))
	{
		(void) aq_cond_sleep(&queue->shm->changed, AQ_EVENT_STOP_QUEUE, queue->id,
							 pg_atomic_read_u32(&queue->shm->users), 0, LOOK_AGAIN);
	}
	aq_cond_cancel();
}

PG_FUNCTION_INFO_V1(aq_queue_in_use);
Datum
aq_queue_in_use(PG_FUNCTION_ARGS)
{
	AqQueue    *queue = aq_queue_get(aq_arg_name(fcinfo, 0, "queue_name"), AQ_RIGHT_OWNER);

	pin_both(queue);
	PG_RETURN_BOOL(in_use(queue, 0));
}
