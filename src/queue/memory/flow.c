/*-------------------------------------------------------------------------
 *
 * flow.c
 *	  Flow control: who enqueues buffered messages waits for the consumers.
 *
 * Buffered messages that nobody takes would fill the disk.  So no more of
 * them than pgaq.buffered_message_limit may lie before a consumer: who
 * enqueues for one that has as many waits until it has fewer, at most
 * pgaq.flow_control_timeout, then gets an error.
 *
 * What is measured are the consumer's counters, which grow at commits, and
 * what the transaction itself has enqueued.  So the limit is passed by what
 * others are enqueuing now and by the rest of an array; in return the measure
 * costs two reads and no latch.
 *
 * A waiter says in shm->room_below what it waits for, looks once more, then
 * sleeps.  Whoever brings a consumer below that takes the wish away and wakes
 * all who wait; those who still have to wait say so again.  Both sides write,
 * then read what the other writes, with a barrier in between; and a waiter is
 * in the list before it says anything.  A wish that was left behind by a
 * session that has gone costs one broadcast.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/queue_private.h"

/* The most that lie before one of the messages' consumers, and which one that is. */
static int64
most_of(AqQueue *side, Bitmapset *const *targets, uint32 n, int *fullest)
{
	int64		most = 0;

	*fullest = 0;
	if (targets == NULL)
		return aq_lag_of(side->shm, 0);
	for (uint32 i = 0; i < n; i++)
	{
		int			position = -1;

		if (i > 0 && targets[i] == targets[i - 1])
			continue;
		while ((position = bms_next_member(targets[i], position)) >= 0)
		{
			int64		lag = aq_lag_of(side->shm, position);

			if (lag > most)
			{
				most = lag;
				*fullest = position;
			}
		}
	}
	return most;
}

static void
refuse(AqQueue *side, int64 lag, int position)
{
	const char *whose = "";

	for (int i = 0; side->multi && i < side->nconsumers; i++)
		if (side->consumers[i].position == position && side->consumers[i].name != NULL)
			whose = psprintf(" for consumer \"%s\"", side->consumers[i].name);
	ereport(ERROR,
			aq_error(AQ_ERR_FLOW_CONTROL,
					 "enqueue rate too high: queue \"%s\" holds " INT64_FORMAT " buffered messages%s",
					 side->name, lag, whose),
			errhint("Dequeue or purge them, remove subscribers that nobody serves, or raise \"pgaq.buffered_message_limit\"."));
}

static void
refuse_own(AqQueue *side)
{
	ereport(ERROR,
			aq_error(AQ_ERR_FLOW_CONTROL,
					 "enqueue rate too high: the transaction has enqueued " UINT64_FORMAT " buffered messages into queue \"%s\"",
					 side->store->enqueued_here(side->shm), side->name),
			errhint("Commit, so that they can be dequeued, or raise \"pgaq.buffered_message_limit\"."));
}

/* Until somebody makes room or changes the queue, or it is too late. */
static void
wait_for_room(AqQueue *side, Bitmapset *const *targets, uint32 n, int64 limit, int64 deadline)
{
	AqQueueShm *shm = side->shm;
	AqQueue    *whole = side->whole;
	int			fullest;
	int64		lag;

	aq_pins_pin(whole);
	aq_cond_prepare(&shm->room);
	aq_raise_to(&shm->room_below, limit);
	pg_memory_barrier();
	lag = most_of(side, targets, n, &fullest);
	if (lag >= limit && whole->definition >= pg_atomic_read_u64(&whole->shm->definition))
	{
		int64		left = deadline - aq_clock_us();

		if (left <= 0)
			refuse(side, lag, fullest);
		(void) aq_cond_sleep(&shm->room, AQ_EVENT_FLOW_CONTROL, abs(shm->queue_id), lag, limit, left);
	}
	aq_cond_cancel();
	/* raises when it was dropped */
	(void) aq_pins_pin_current(whole, false);
}

/*
 * May these messages be put?  False: it has waited, for consumers of the
 * messages, and what the caller knows of the queue may be old; it is to look
 * everything up and ask again with the same deadline, which is 0 at first.
 */
bool
aq_flow_admits(AqQueue *side, Bitmapset *const *targets, uint32 n, int64 *deadline)
{
	int64		room;
	int			fullest;

	if (side->delivery != AQ_BUFFERED || aq_parameters_buffered_message_limit == 0)
		return true;
	aq_pins_pin(side);
	room = aq_parameters_buffered_message_limit - (int64) side->store->enqueued_here(side->shm);
	if (room <= 0)
		refuse_own(side);		/* nobody can dequeue these now */
	if (most_of(side, targets, n, &fullest) < room)
		return true;
	if (*deadline == 0)
		*deadline = aq_clock_us() + (int64) aq_parameters_flow_control_timeout_ms * 1000;
	wait_for_room(side, targets, n, room, *deadline);
	return false;
}

/* Would an enqueue for one of its consumers wait? */
bool
aq_flow_is_full(AqQueue *side)
{
	bool		full = !side->multi && aq_lag_of(side->shm, 0) >= aq_parameters_buffered_message_limit;

	for (int i = 0; side->multi && i < side->nconsumers; i++)
		full |= aq_lag_of(side->shm, side->consumers[i].position) >= aq_parameters_buffered_message_limit;
	return full && aq_parameters_buffered_message_limit > 0;
}
