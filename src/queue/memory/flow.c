/*-------------------------------------------------------------------------
 *
 * flow.c
 *	  Flow control: enqueuers of buffered messages wait for consumers.
 *
 * Unconsumed buffered messages could fill the disk.  So a consumer may have a
 * backlog of at most pgaq.buffered_message_limit of them: if a consumer has
 * reached it, enqueuers wait until the backlog is shorter, at most
 * pgaq.flow_control_timeout, and then get an error.
 *
 * The backlog is computed from the consumer's counters, which grow at commits,
 * plus the transaction's own messages.  So uncommitted messages of others and
 * the rest of an array can exceed the limit; in return, the check costs two
 * reads and no latch.
 *
 * A waiter sets shm->room_below, checks once more, then sleeps.  A session
 * that brings a consumer's backlog below this value clears it and wakes all
 * waiters; those that still have to wait set it again.  Both sides write their
 * variable, then read the other's, with a barrier in between; and a waiter
 * enters the list before it sets the value.  A value left by a session that
 * has ended costs one needless broadcast.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/memory/memory_private.h"

/*
 * The longest backlog among the messages' consumers, and the consumer that has
 * it.
 */
static int64
most_of(AqQueue *buffered, Bitmapset *const *targets, uint32 n, int *fullest)
{
	int64		most = 0;

	*fullest = 0;
	if (targets == NULL)
		return aq_lag_of(buffered->shm, 0);
	for (uint32 i = 0; i < n; i++)
	{
		int			position = -1;

		if (i > 0 && targets[i] == targets[i - 1])
			continue;
		while ((position = bms_next_member(targets[i], position)) >= 0)
		{
			int64		lag = aq_lag_of(buffered->shm, position);

			if (lag > most)
			{
				most = lag;
				*fullest = position;
			}
		}
	}
	return most;
}

/* the consumer for which this process last refused an enqueue */
static int32 refused_queue;
static int	refused_position;

static void
refuse(AqQueue *buffered, int64 lag, int position)
{
	const char *whose = "";

	refused_queue = abs(buffered->id);
	refused_position = position;
	for (int i = 0; buffered->multi && i < buffered->nconsumers; i++)
		if (buffered->consumers[i].position == position && buffered->consumers[i].name != NULL)
			whose = psprintf(" for consumer \"%s\"", buffered->consumers[i].name);
	ereport(ERROR,
			aq_error(AQ_ERR_FLOW_CONTROL,
					 "enqueue rate too high: queue \"%s\" holds " INT64_FORMAT " buffered messages%s",
					 buffered->name, lag, whose),
			errhint("Dequeue or purge them, remove subscribers that are not served, or raise \"pgaq.buffered_message_limit\"."));
}

static void
refuse_own(AqQueue *buffered)
{
	ereport(ERROR,
			aq_error(AQ_ERR_FLOW_CONTROL,
					 "enqueue rate too high: the transaction has enqueued " UINT64_FORMAT " buffered messages into queue \"%s\"",
					 buffered->store->enqueued_here(buffered->shm), buffered->name),
			errhint("Commit, so that they can be dequeued, or raise \"pgaq.buffered_message_limit\"."));
}

static void
begin_wait(AqFlowWait *wait)
{
	if (wait->deadline == 0)
		wait->deadline = aq_clock_us() + (int64) aq_parameters_flow_control_timeout_ms * 1000;
}

/*
 * Waits until there is room, the queue has changed, or the deadline has
 * passed.
 */
static void
wait_for_room(AqQueue *buffered, Bitmapset *const *targets, uint32 n, int64 limit, AqFlowWait *wait)
{
	AqQueueShm *shm = buffered->shm;
	AqQueue    *queue = buffered->persistent;
	int			fullest;
	int64		lag;

	aq_pins_pin(queue);
	aq_cond_prepare(&shm->room);
	aq_raise_to(&shm->room_below, limit);
	pg_memory_barrier();
	lag = most_of(buffered, targets, n, &fullest);
	if (lag >= limit && queue->definition >= pg_atomic_read_u64(&queue->shm->definition))
	{
		int64		left = wait->deadline - aq_clock_us();

		if (left <= 0)
			refuse(buffered, lag, fullest);
		aq_users_want_room(shm, fullest, (uint32) limit);
		aq_deadlock_check(&wait->watch, AQ_EVENT_FLOW_CONTROL, abs(shm->queue_id));
		(void) aq_cond_sleep(&shm->room, AQ_EVENT_FLOW_CONTROL, abs(shm->queue_id), lag, limit, Min(left, aq_deadlock_pause()));
	}
	aq_cond_cancel();
	/* raises an error if it was dropped */
	(void) aq_pins_pin_current(queue, false);
}

/*
 * May these messages be put?  Returns false after a wait, because the caller's
 * data of the queue may be outdated: it must look everything up again, and
 * call again with the same wait, which is initially 0.
 */
bool
aq_flow_admits(AqQueue *buffered, Bitmapset *const *targets, uint32 n, AqFlowWait *wait)
{
	int64		room;
	int			fullest;

	if (buffered->delivery != AQ_BUFFERED || aq_parameters_buffered_message_limit == 0)
		return true;
	aq_pins_pin(buffered);
	room = aq_parameters_buffered_message_limit - (int64) buffered->store->enqueued_here(buffered->shm);
	if (room <= 0)
		refuse_own(buffered);	/* these cannot be dequeued before the commit */
	if (most_of(buffered, targets, n, &fullest) < room)
		return true;
	begin_wait(wait);
	wait_for_room(buffered, targets, n, room, wait);
	return false;
}

/*
 * For a helper, which does not wait: returns the refused consumer once;
 * queue_id 0: none.
 */
void
aq_flow_refused(int32 *queue_id, int *position)
{
	*queue_id = refused_queue;
	*position = refused_position;
	refused_queue = 0;
}

/*
 * For a session whose helper was refused: waits until this consumer may have
 * room.  Raises the error at the end of the wait, which is initially 0.  Returns
 * false if the session does not wait or the queue was dropped.
 */
bool
aq_flow_wait(int32 queue_id, int position, AqFlowWait *wait)
{
	AqQueue    *queue = aq_catalog_get_by_id(queue_id, true);
	Bitmapset  *target;

	if (aq_parameters_flow_control_timeout_ms == 0 || queue == NULL || queue->buffered == NULL)
		return false;
	aq_pins_pin(queue->buffered);
	begin_wait(wait);
	target = bms_make_singleton(position);
	wait_for_room(queue->buffered, queue->buffered->multi ? &target : NULL, 1,
				  aq_parameters_buffered_message_limit, wait);
	return true;
}

/* Would an enqueue for one of its consumers have to wait? */
bool
aq_flow_is_full(AqQueue *buffered)
{
	bool		full = !buffered->multi && aq_lag_of(buffered->shm, 0) >= aq_parameters_buffered_message_limit;

	for (int i = 0; buffered->multi && i < buffered->nconsumers; i++)
		full |= aq_lag_of(buffered->shm, buffered->consumers[i].position) >= aq_parameters_buffered_message_limit;
	return full && aq_parameters_buffered_message_limit > 0;
}
