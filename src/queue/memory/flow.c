/*-------------------------------------------------------------------------
 *
 * flow.c
 *	  Flow control: enqueuers wait for consumers.
 *
 * A queue can have a limit: a consumer has at most max_depth unfinished messages
 * of it, or, of buffered messages, which could otherwise fill the disk,
 * pgaq.buffered_message_limit.  If a consumer has reached it, enqueuers wait until
 * it has fewer, at most pgaq.flow_control_timeout, and then get an error; with
 * on_full => error they get it at once.
 *
 * The number is computed from the consumer's counters, which grow at commits,
 * plus what the transaction has enqueued itself.  So uncommitted messages of
 * others and the rest of an array can exceed the limit; in return, the check
 * costs two reads and no latch.  What the transaction itself finishes with its
 * commit makes room for what it enqueues: otherwise workers that dequeue a
 * message and enqueue the next one would stop each other in a full queue.  A
 * message with immediate visibility is committed before, so for it this does not
 * count.
 *
 * A waiter sets shm->room_below, checks once more, then sleeps.  A session
 * that brings a consumer's number below this value clears it and wakes all
 * waiters; those that still have to wait set it again.  Both sides write their
 * variable, then read the other's, with a barrier in between; and a waiter
 * enters the list before it sets the value.  A value left by a session that
 * has ended costs one needless broadcast.
 *
 * After a restart the counters are complete when the worker has counted the
 * messages: until then enqueuers wait, too.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/memory/memory_private.h"

/* An enqueue into a queue with a limit. */
typedef struct Enqueue
{
	AqQueue    *queue;
	Bitmapset  *const *targets; /* NULL: a single consumer */
	uint32		n;
	int64		limit;
	int64		room;			/* there is room if every consumer has fewer unfinished messages */
	bool		apart;			/* committed before what the transaction dequeues */
	int			fullest;		/* the consumer that has the most */
	int64		most;			/* its number */
	int64		finished;		/* the most that the transaction finishes for one of the consumers */
} Enqueue;

/* a helper does not wait: the session for which it enqueues does */
static bool helps;

/* the consumer for which this process last refused an enqueue */
static int32 refused_queue;
static int	refused_position;

/* -1: none */
static int64
limit_of(const AqQueue *queue)
{
	if (queue->delivery == AQ_PERSISTENT)
		return queue->max_depth;
	return aq_parameters_buffered_message_limit > 0 ? aq_parameters_buffered_message_limit : -1;
}

static bool
is_counted(const AqQueue *queue)
{
	const AqStore *sharded = aq_store_of(AQ_STORE_SHARDED);

	return queue->shm->store == AQ_STORE_CLASSIC || sharded->is_counted(queue->shm);
}

/* The number of messages of the queue that the transaction has enqueued: a converted queue has two stores. */
uint64
aq_flow_enqueued_here(const AqQueueShm *shm)
{
	return aq_store_of(AQ_STORE_SHARDED)->enqueued_here(shm) + aq_store_of(AQ_STORE_CLASSIC)->enqueued_here(shm);
}

static int64
finished_here(const AqQueueShm *shm, int position)
{
	return aq_store_of(AQ_STORE_SHARDED)->finished_here(shm, position) +
		aq_store_of(AQ_STORE_CLASSIC)->finished_here(shm, position);
}

static void
compare(Enqueue *e, int position)
{
	int64		number = aq_lag_of(e->queue->shm, position);

	/* only if it matters, because it looks through the transaction's notes */
	if (number >= e->room && !e->apart)
	{
		int64		finished = finished_here(e->queue->shm, position);

		number -= finished;
		e->finished = Max(e->finished, finished);
	}
	if (number > e->most)
	{
		e->most = number;
		e->fullest = position;
	}
}

/* Finds the consumer of the messages that has the most; is there room for it? */
static bool
has_room(Enqueue *e)
{
	e->most = PG_INT64_MIN;
	e->fullest = e->finished = 0;
	if (e->targets == NULL)
		compare(e, 0);
	for (uint32 i = 0; e->targets != NULL && i < e->n; i++)
	{
		int			position = -1;

		if (i > 0 && e->targets[i] == e->targets[i - 1])
			continue;
		while ((position = bms_next_member(e->targets[i], position)) >= 0)
			compare(e, position);
	}
	return e->most < e->room && is_counted(e->queue);
}

/* --- errors -------------------------------------------------------------------------- */

static bool
is_error(const Enqueue *e)
{
	return e->queue->delivery == AQ_PERSISTENT && strcmp(e->queue->on_full, "error") == 0;
}

/* If the helper's session waits instead, nothing was refused. */
static void
count_refusal(const Enqueue *e)
{
	if (!helps || refused_queue == 0)
		pg_atomic_fetch_add_u64(&e->queue->shm->enqueues_refused, 1);
}

static const char *
name_of(const AqQueue *queue, int position)
{
	for (int i = 0; queue->multi && i < queue->nconsumers; i++)
		if (queue->consumers[i].position == position)
			return queue->consumers[i].name;
	return NULL;
}

static void
refuse_buffered(const Enqueue *e, const char *consumer)
{
	ereport(ERROR,
			aq_error(AQ_ERR_FLOW_CONTROL,
					 "enqueue rate too high: queue \"%s\" holds " INT64_FORMAT " buffered messages%s",
					 e->queue->name, e->most, consumer == NULL ? "" : psprintf(" for consumer \"%s\"", consumer)),
			errhint("Dequeue or purge them, remove subscribers that are not served, or raise \"pgaq.buffered_message_limit\"."));
}

pg_noreturn static void
refuse(const Enqueue *e)
{
	const char *consumer = name_of(e->queue, e->fullest);
	int64		number = e->most + e->limit - e->room;	/* with its own */

	/* a wait outside of the transaction makes no room for the messages that it has enqueued */
	refused_queue = (e->most >= e->room && is_error(e)) || e->room < e->limit ? 0 : e->queue->id;
	refused_position = e->fullest;
	count_refusal(e);
	if (e->queue->delivery == AQ_BUFFERED)
		refuse_buffered(e, consumer);
	if (e->most < e->room)
		ereport(ERROR,
				aq_error(AQ_ERR_QUEUE_FULL, "the messages of queue \"%s\" are not counted yet", e->queue->name),
				errdetail("It has a max_depth, and the worker counts its messages after a start of the server."),
				errhint("Try again."));
	ereport(ERROR,
			aq_error(AQ_ERR_QUEUE_FULL, "queue \"%s\" is full", e->queue->name),
			consumer == NULL ? errdetail_plural("It has " INT64_FORMAT " unfinished message; max_depth is " INT64_FORMAT ".",
												"It has " INT64_FORMAT " unfinished messages; max_depth is " INT64_FORMAT ".",
												number, number, e->limit)
			: errdetail_plural("Consumer \"%s\" has " INT64_FORMAT " unfinished message; max_depth is " INT64_FORMAT ".",
							   "Consumer \"%s\" has " INT64_FORMAT " unfinished messages; max_depth is " INT64_FORMAT ".",
							   number, consumer, number, e->limit),
			errhint("Dequeue or purge messages, %sor raise max_depth with aq.alter_queue.",
					e->queue->multi ? "remove subscribers that are not served, " : ""));
}

/* n: the messages of the transaction that take all the room until it ends, so that a wait would not end. */
pg_noreturn static void
refuse_own(const Enqueue *e, int64 n)
{
	refused_queue = 0;
	count_refusal(e);
	if (e->queue->delivery == AQ_BUFFERED)
		ereport(ERROR,
				aq_error(AQ_ERR_FLOW_CONTROL,
						 "enqueue rate too high: the transaction has enqueued " INT64_FORMAT " buffered messages into queue \"%s\"",
						 n, e->queue->name),
				errhint("Commit, so that they can be dequeued, or raise \"pgaq.buffered_message_limit\"."));
	ereport(ERROR,
			aq_error(AQ_ERR_QUEUE_FULL, "queue \"%s\" is full", e->queue->name),
			errdetail_plural("The transaction itself has enqueued or dequeued " INT64_FORMAT
							 " message, which counts until it ends; max_depth is " INT64_FORMAT ".",
							 "The transaction itself has enqueued or dequeued " INT64_FORMAT
							 " messages, which count until it ends; max_depth is " INT64_FORMAT ".", n, n, e->limit),
			errhint("Commit before the call, or raise max_depth with aq.alter_queue."));
}

/* --- waiting ------------------------------------------------------------------------- */

static void
sleep_for_room(const Enqueue *e, AqFlowWait *wait, int64 left)
{
	AqQueueShm *shm = e->queue->shm;
	AqEvent		event = e->queue->delivery == AQ_BUFFERED ? AQ_EVENT_FLOW_CONTROL : AQ_EVENT_QUEUE_FULL;
	int64		own = e->apart ? 0 : aq_users_taken(shm, e->fullest);

	if (!wait->slept)
		pg_atomic_fetch_add_u64(&shm->enqueues_waited, 1);
	wait->slept = true;
	aq_users_want_room(shm, e->fullest, (uint32) Min(e->room + own, PG_UINT32_MAX));
	aq_deadlock_check(&wait->watch, event, abs(shm->queue_id));
	(void) aq_cond_sleep(&shm->room, event, abs(shm->queue_id), Max(e->most, 0), e->limit, Min(left, aq_deadlock_pause()));
}

static int64
time_left(AqFlowWait *wait)
{
	if (wait->deadline == 0)
		wait->deadline = aq_clock_us() + (helps ? 0 : (int64) aq_parameters_flow_control_timeout_ms * 1000);
	return wait->deadline - aq_clock_us();
}

/*
 * Waits until there is room, the queue has changed, or the deadline has
 * passed.
 */
static void
wait_for_room(Enqueue *e, AqFlowWait *wait)
{
	AqQueueShm *shm = e->queue->shm;
	AqQueue    *queue = e->queue->persistent != NULL ? e->queue->persistent : e->queue;
	int64		left = time_left(wait);

	aq_pins_pin(queue);
	aq_cond_prepare(&shm->room);
	aq_raise_to(&shm->room_below, e->room + e->finished);
	aq_waiters_refuse_dropping(shm);	/* also a barrier */
	if (!has_room(e) && queue->definition >= pg_atomic_read_u64(&queue->shm->definition))
	{
		if (left <= 0 || (e->most >= e->room && is_error(e)))
			refuse(e);
		sleep_for_room(e, wait, left);
	}
	aq_cond_cancel();
	/* before anything is read that the drop has locked */
	aq_waiters_refuse_dropping(shm);
	/* raises an error if it was dropped */
	(void) aq_pins_pin_current(queue, false);
}

/*
 * May these messages be put?  Returns false after a wait, because the caller's
 * data of the queue may be outdated: it must look everything up again, and
 * call again with the same wait, which is initially 0.  immediate: they are
 * committed apart from what the transaction does.
 */
bool
aq_flow_admits(AqQueue *queue, Bitmapset *const *targets, uint32 n, bool immediate, AqFlowWait *wait)
{
	Enqueue		e = {.queue = queue, .targets = targets, .n = n, .limit = limit_of(queue),
		.apart = immediate || queue->delivery == AQ_BUFFERED};
	int64		own;

	if (e.limit < 0)
		return true;
	aq_pins_pin(queue);
	own = (int64) aq_flow_enqueued_here(queue->shm);
	e.room = e.limit - own;
	if (has_room(&e))
		return true;
	if (e.room <= 0)
		refuse_own(&e, own);	/* other sessions cannot dequeue these before the commit */
	if (immediate && finished_here(queue->shm, e.fullest) >= e.room)
		refuse_own(&e, own + finished_here(queue->shm, e.fullest));
	wait_for_room(&e, wait);
	return false;
}

/* Called at the start of a helper for immediate visibility. */
void
aq_flow_help(void)
{
	helps = true;
}

/*
 * For a helper: returns the refused consumer once; queue_id is negative for
 * buffered messages, 0: none.
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
 * false if the helper's error stands: the queue was dropped, the helper does not
 * see the session's own change of it, or the time is up although there is room.
 */
bool
aq_flow_wait(int32 queue_id, int position, AqFlowWait *wait)
{
	AqQueue    *queue = aq_catalog_get_by_id(abs(queue_id), true);
	Bitmapset  *target = bms_make_singleton(position);
	Enqueue		e = {.n = 1, .apart = true};

	if (queue != NULL && queue_id < 0)
		queue = queue->buffered;
	if (queue == NULL)
		return false;
	aq_pins_pin(queue);
	e.queue = queue;
	e.targets = queue->multi ? &target : NULL;
	e.limit = e.room = limit_of(queue);
	if (e.limit < 0 || has_room(&e))
		return !aq_pending_has(abs(queue_id)) && time_left(wait) > 0;
	if (queue->delivery == AQ_PERSISTENT && finished_here(queue->shm, e.fullest) >= e.room)
		refuse_own(&e, finished_here(queue->shm, e.fullest));
	wait_for_room(&e, wait);
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
