/*-------------------------------------------------------------------------
 *
 * move_wait.c
 *	  The wait of part "propagate" for messages of many queues and consumers.
 *
 * It waits in the lists of waiters like any consumer.  Privileges are checked
 * when messages are taken, not here: the process waits for several roles.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "move/move_private.h"

#include "miscadmin.h"
#include "utils/inval.h"

typedef struct Waiting
{
	int			n;
	const AqMoveSource **sources;	/* of each target; NULL: a target for new recipients */
	int32	   *ids;
	uint64	   *generations;	/* of the descriptions, when the targets were made */
	AqWaitTarget *targets;
	bool		(*disturbed) (void);
} Waiting;

static int
position_of(AqQueue *queue, const char *consumer)
{
	AqConsumer *found;

	if (!queue->multi)
		return 0;
	found = consumer != NULL ? aq_catalog_consumer(queue, consumer) : NULL;
	return found != NULL ? found->position : -1;
}

static void
add_target(Waiting *waiting, AqQueue *queue, const AqMoveSource *source, int position)
{
	AqWaitTarget *target = &waiting->targets[waiting->n];

	if (waiting->n >= AQ_WAITERS_PER_SESSION)
		return;
	target->shm = queue->shm;
	target->position = position;
	waiting->sources[waiting->n] = source;
	waiting->ids[waiting->n] = queue->id;
	waiting->generations[waiting->n++] = queue->generation;
	(void) aq_shm_consumer_make(queue->shm, position);
}

/* The consumer of each source, and, of each topic, what a new recipient wakes. */
static void
make_targets(Waiting *waiting, int n, const AqMoveSource *sources)
{
	for (int i = 0; i < n; i++)
	{
		AqQueue    *queue = aq_catalog_get_by_id(sources[i].queue_id, true);
		int			position;

		if (queue == NULL)
			continue;
		aq_pins_pin(queue);
		position = position_of(queue, sources[i].consumer);
		if (position >= 0)
			add_target(waiting, queue, &sources[i], position);
		if (queue->multi && (i == 0 || sources[i - 1].queue_id != queue->id))
			add_target(waiting, queue, NULL, AQ_NO_CONSUMER);
	}
}

/* The targets are in the lists: is there a message, or must the caller look at the sources again? */
static int
check(void *arg)
{
	Waiting    *waiting = arg;

	CHECK_FOR_INTERRUPTS();
	AcceptInvalidationMessages();
	if (waiting->disturbed())
		return 0;
	for (int i = 0; i < waiting->n; i++)
	{
		AqWaitTarget *target = &waiting->targets[i];
		AqQueue    *queue = aq_catalog_get_by_id(waiting->ids[i], true);

		if (queue == NULL || queue->generation != waiting->generations[i])
			return i;
		aq_pins_pin(queue);
		if (queue->shm != target->shm)
			return i;
		if (waiting->sources[i] != NULL && queue->dequeue_enabled && !aq_queue_is_paused(queue, target->position) &&
			queue->store->ready(queue, target->position, 0))
			return i;
	}
	return -1;
}

/* No target: only the time, or a disturbance, ends the wait. */
static void
sleep_without(int64 deadline, bool (*disturbed) (void))
{
	while (!disturbed())
	{
		int64		left = deadline < 0 ? -1 : deadline - aq_clock_us();

		if (deadline >= 0 && left <= 0)
			break;
		(void) aq_event_sleep(AQ_EVENT_PROPAGATION_IDLE, 0, MyProcPid, Max(left, 0), left);
		CHECK_FOR_INTERRUPTS();
	}
}

/*
 * Waits, in a transaction without a snapshot, until one of the sources has a
 * message, a topic among them has other consumers, the deadline (aq_clock_us;
 * negative: none), or until disturbed() is true, which is called after each
 * set of the process's latch.  Sources of a queue follow each other.  At most
 * AQ_MOVE_SOURCES are waited for.
 */
void
aq_move_wait(int n, const AqMoveSource *sources, int64 deadline, bool (*disturbed) (void))
{
	Waiting		waiting = {
		.sources = palloc(AQ_WAITERS_PER_SESSION * sizeof(AqMoveSource *)),
		.ids = palloc(AQ_WAITERS_PER_SESSION * sizeof(int32)),
		.generations = palloc(AQ_WAITERS_PER_SESSION * sizeof(uint64)),
		.targets = palloc0(AQ_WAITERS_PER_SESSION * sizeof(AqWaitTarget)),
		.disturbed = disturbed,
	};
	AqEvent		event = AQ_EVENT_PROPAGATION_IDLE;

	make_targets(&waiting, n, sources);
	if (waiting.n == 0)
	{
		sleep_without(deadline, disturbed);
		return;
	}
	aq_waiters_disturbed = disturbed;
	PG_TRY();
	{
		(void) aq_waiters_sleep(waiting.targets, waiting.n, false, false, &event, deadline, check,
								&waiting);
	}
	PG_FINALLY();
	{
		aq_waiters_disturbed = NULL;
	}
	PG_END_TRY();
	/* the process may not take the messages for which it was woken: others get their turn */
	for (int i = 0; i < waiting.n && disturbed(); i++)
		aq_waiters_check_later(waiting.targets[i].shm);
}
