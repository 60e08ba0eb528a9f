/*-------------------------------------------------------------------------
 *
 * recipient.c
 *	  Recipients: consumers that are named only in recipient lists.  They get a
 *	  position with their first message, and lose it some time after the last.
 *
 * The worker gives a new recipient its position, in a separate transaction, so
 * that the enqueuer's transaction does not hold locks on the catalog; only for
 * a queue that the running transaction has created, that transaction does it
 * itself.
 *
 * The worker frees the positions of recipients without messages: of those that
 * were idle for pgaq.recipient_grace; and of all at once if no position is
 * free for a new recipient.  Unlike a subscriber that is removed with its
 * messages (see subscriber.c), such a recipient has finished every message
 * with its bit, according to the tables.  So the next consumer can have the
 * position although partitions contain old messages: these are done at this
 * position, and stay so.
 *
 * Possible concurrent uses of a position, and what protects them:
 *
 *	a transaction that has enqueued for it, or is about to; a dequeue
 *							holds.c: they hold the recipient, or are refused and
 *							look it up again
 *	a prepared transaction	the store reports that not all is counted
 *	a session that waits	is in the position's list, or is woken by the commit
 *							and looks the name up again
 *	a restart, a standby	the row is deleted after the commits that have emptied
 *							the position, and WAL is replayed in this order
 *	a dump, a snapshot		sees these commits if it sees the deletion of the row
 *	the worker fails		the position stays closed until it checks again;
 *							sessions that find it closed request that
 *
 * A prepared transaction keeps all recipients of its queues, not only those that
 * it has used, and a conversion all of the queue that it converts.  The holds of a
 * transaction end when it is prepared.  To keep them would take a table in shared
 * memory, with an entry for each transaction and recipient, that whatever finishes the
 * transaction releases; and after a restart the recipients would have to be read from
 * rows that no snapshot sees.  During a conversion, both stores have counters,
 * and each would have to be asked.  Both cases matter only to a queue that uses up
 * its positions meanwhile, and then the error says what to do.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/definitions/definitions_private.h"

#include "lib/stringinfo.h"
#include "utils/timestamp.h"

/*
 * pause before the next try if another session is changing the queue, in
 * microseconds
 */
#define LOCKED_AGAIN ((int64) 1000000)

/*
 * longest interval between checks, because the grace can be made shorter, in
 * microseconds
 */
#define LOOK_AGAIN ((int64) 60000000)

/* --- sessions -------------------------------------------------------------------------- */

/*
 * Has this session posted its request since it began to wait?  An earlier
 * answer is not for it.
 */
static bool asked;

/* Puts the name into the queue's request, if there is none yet. */
static void
ask_worker(AqQueueShm *shm, const char *name)
{
	aq_latch_get(&shm->waiters_latch, AQ_EXCLUSIVE, AQ_LOC_WAIT_REGISTER);
	if (shm->recipient[0] == '\0')
		strlcpy(shm->recipient, name, AQ_MAX_NAME);
	if (strcmp(shm->refused, name) == 0)
		shm->refused[0] = '\0';
	aq_latch_free(&shm->waiters_latch);
	aq_work_post(shm, AQ_WORK_RECIPIENTS);
	asked = true;
}

/* Has the worker found no position for the name? */
static bool
is_refused(AqQueueShm *shm, const char *name)
{
	bool		refused;

	aq_latch_get(&shm->waiters_latch, AQ_EXCLUSIVE, AQ_LOC_WAIT_REGISTER);
	refused = strcmp(shm->refused, name) == 0;
	if (refused)
		shm->refused[0] = '\0';
	aq_latch_free(&shm->waiters_latch);
	return refused;
}

pg_noreturn static void
refuse(AqQueue *queue)
{
	ereport(ERROR,
			aq_error(AQ_ERR_SUBSCRIBER_LIMIT, "queue \"%s\" cannot have another recipient", queue->name),
			errdetail("It can have %d consumers at a time, of which %d can be recipients that are not subscribers.",
					  AQ_POSITIONS, AQ_RECIPIENT_POSITIONS),
			errhint("A recipient's position becomes free when its messages have been dequeued or have expired and no transaction, "
					"including prepared ones, uses it."));
}

static bool
is_added(AqQueue *queue, const char *name)
{
	AqConsumer *consumer = aq_catalog_consumer(queue, name);

	if (consumer != NULL && (consumer->subscriber || aq_holds_are_allowed(queue, consumer)))
		return true;
	aq_pins_pin(queue);
	if (asked && is_refused(queue->shm, name))
		refuse(queue);
	return false;
}

/* Gives a new recipient a position; the queue's description becomes stale. */
void
aq_recipient_add(AqQueue *queue, const char *name)
{
	int32		id = queue->id;
	char	   *queue_name;

	asked = false;
	if (!aq_ddl_possible_here(queue))
	{
		aq_ddl_by_worker(queue, AQ_RIGHT_ENQUEUE, is_added, ask_worker, name);
		return;
	}
	queue_name = pstrdup(queue->name);
	queue = aq_catalog_get_again(id, queue_name, AQ_RIGHT_ENQUEUE);
	aq_holds_reopen(queue);
	if (aq_catalog_consumer(queue, name) == NULL)
	{
		if (!aq_subscriber_insert_recipient(queue, name))
			refuse(queue);
		aq_pending_recipient(id);
		aq_catalog_changed();
	}
}

/*
 * Posts an empty request: the worker reopens positions that it has left
 * closed.
 */
static void
ask_to_reopen(AqQueueShm *shm, const char *name)
{
	aq_work_post(shm, AQ_WORK_RECIPIENTS);
}

static bool
is_settled(AqQueue *queue, const char *name)
{
	AqConsumer *consumer = aq_catalog_consumer(queue, name);

	return consumer == NULL || consumer->subscriber || aq_holds_are_allowed(queue, consumer);
}

/*
 * Waits until a recipient that cannot be held has lost its position, or keeps
 * it.  Returns the queue, looked up again.
 */
AqQueue *
aq_recipient_settle(AqQueue *queue, const char *name, AqRight right)
{
	int32		id = queue->id;
	char	   *queue_name = pstrdup(queue->name);

	if (aq_ddl_possible_here(queue))
		aq_holds_reopen(aq_catalog_get_again(id, queue_name, right));
	else
		aq_ddl_by_worker(queue, right, is_settled, ask_to_reopen, name);
	return aq_catalog_get_again(id, queue_name, right);
}

/* --- the worker: idle recipients --------------------------------------------------------- */

static bool
sessions_wait(AqQueueShm *shm, int position)
{
	AqConsumerShm *place = aq_shm_consumer(shm, position);

	return place != NULL && (place->waiters.waiting > 0 || place->selective.waiting > 0);
}

/*
 * Has the recipient no messages, according to the counters, and no waiting
 * sessions?
 */
static bool
is_empty(AqQueue *queue, int position)
{
	return aq_lag_of(queue->shm, position) == 0 && !sessions_wait(queue->shm, position) &&
		(queue->buffered == NULL ||
		 (aq_lag_of(queue->buffered->shm, position) == 0 && !sessions_wait(queue->buffered->shm, position)));
}

/*
 * Until this time, views show the consumer's retained messages, so it keeps
 * its position.
 */
static TimestampTz
retained_until(AqQueue *queue, AqConsumerShm *place)
{
	TimestampTz last = (TimestampTz) pg_atomic_read_u64(&place->traffic[AQ_TRAFFIC_LAST_DEQUEUE]);

	return queue->retention > 0 && last != 0 ? last + queue->retention : 0;
}

/* The time until it may lose its position, if it stays idle; 0: now. */
static int64
time_left(AqQueue *queue, AqConsumerShm *place)
{
	TimestampTz now = GetCurrentTimestamp();
	uint32		now_ms = (uint32) (now / 1000) | 1;
	int32		idle_ms = (int32) (now_ms - place->idle_since);
	uint32		enqueued = (uint32) pg_atomic_read_u64(&place->enqueued);

	if (place->idle_since == 0 || idle_ms < 0 || place->idle_enqueued != enqueued)
	{
		place->idle_since = now_ms;
		place->idle_enqueued = enqueued;
		idle_ms = 0;
	}
	return Max(Max((int64) (aq_parameters_recipient_grace_ms - idle_ms) * 1000, retained_until(queue, place) - now), 0);
}

/*
 * Closes the positions of idle recipients, which then cannot be held, and
 * returns them. all: ignore the grace. *next: time until others may become
 * idle.
 */
static Bitmapset *
close_idle(AqQueue *queue, bool all, int64 *next)
{
	Bitmapset  *closing = NULL;

	*next = 0;
	for (int i = 0; i < queue->nconsumers; i++)
	{
		AqConsumer *consumer = &queue->consumers[i];
		AqConsumerShm *place = aq_shm_consumer(queue->shm, consumer->position);
		int64		grace = (int64) aq_parameters_recipient_grace_ms * 1000;
		int64		left = grace;

		if (consumer->name == NULL || consumer->subscriber)
			continue;
		if (pg_atomic_read_u32(&place->holds) > 0 || !is_empty(queue, consumer->position))
			place->idle_since = 0;
		else
			left = all ? 0 : time_left(queue, place);
		if (left == 0)
		{
			closing = bms_add_member(closing, consumer->position);
			pg_atomic_write_u64(&place->closing, (uint64) consumer->number);
		}
		else					/* the retention can be made shorter */
			*next = Min(*next == 0 ? grace : *next, left);
	}
	return closing;
}

static bool
counts_all(AqQueue *queue)
{
	return queue == NULL || queue->store->counts_all(queue->shm);
}

/*
 * Returns those closing recipients that have no messages.  The order matters:
 * first the holds, because before a hold ends, its messages are counted or in
 * doubt, which the store reports; then the counters; then the tables, if the
 * store requires it.
 */
static Bitmapset *
confirm_idle(AqQueue *queue, Bitmapset *closing)
{
	Bitmapset  *unheld = NULL;
	Bitmapset  *idle = NULL;
	int			position = -1;

	pg_memory_barrier();
	while ((position = bms_next_member(closing, position)) >= 0)
		if (pg_atomic_read_u32(&aq_shm_consumer(queue->shm, position)->holds) == 0)
			unheld = bms_add_member(unheld, position);
	pg_memory_barrier();
	if (!counts_all(queue) || !counts_all(queue->buffered))
		return NULL;
	position = -1;
	while ((position = bms_next_member(unheld, position)) >= 0)
		if (is_empty(queue, position))
			idle = bms_add_member(idle, position);
	if (idle != NULL && queue->store->without_messages != NULL)
		idle = queue->store->without_messages(queue, idle);
	if (idle != NULL && queue->buffered != NULL)
		idle = queue->buffered->store->without_messages(queue->buffered, idle);
	return idle;
}

/* Reopens the closing recipients that are not idle. */
static void
reopen_others(AqQueueShm *shm, Bitmapset *closing, Bitmapset *idle)
{
	int			position = -1;

	while ((position = bms_next_member(closing, position)) >= 0)
		if (!bms_is_member(position, idle))
			pg_atomic_write_u64(&aq_shm_consumer(shm, position)->closing, 0);
}

static void
delete_rows(int32 id, Bitmapset *positions)
{
	StringInfoData command;
	int			position = -1;

	initStringInfo(&command);
	appendStringInfo(&command, "DELETE FROM aq_internal.subscriber WHERE queue_id = %d AND kind = 'recipient' AND \"position\" IN (-1", id);
	while ((position = bms_next_member(positions, position)) >= 0)
		appendStringInfo(&command, ", %d", position);
	appendStringInfoChar(&command, ')');
	aq_sql_change(command.data, 0, NULL, NULL, NULL);
}

/*
 * Frees positions in this transaction, and returns their number.  The caller
 * has the queue's lock.
 */
static int
give_back_here(AqQueue *queue, bool all, int64 *next)
{
	int32		id = queue->id;
	Bitmapset  *closing,
			   *idle;

	aq_holds_reopen(queue);
	if (queue->buffered != NULL)
		aq_pins_pin(queue->buffered);
	closing = close_idle(queue, all, next);
	if (closing == NULL)
		return 0;
	aq_point("recipients-closing");
	idle = confirm_idle(queue, closing);
	reopen_others(queue->shm, closing, idle);
	if (!bms_equal(closing, idle) && *next == 0)
		*next = (int64) aq_parameters_recipient_grace_ms * 1000;
	if (idle == NULL)
		return 0;
	delete_rows(id, idle);
	aq_pending_released(id);
	aq_catalog_changed();
	return bms_num_members(idle);
}

/*
 * Frees positions. *next: time until more may be idle; 0: there are no other
 * recipients.  Returns false if another session is changing the queue.
 */
static bool
give_back(int32 id, AqQueueShm *shm, bool all, int64 *next)
{
	AqQueue    *queue;
	bool		locked = true;
	int			given = 0;

	*next = 0;
	aq_job_begin();
	queue = aq_catalog_get_by_id(id, true);
	if (queue != NULL && queue->multi)
	{
		locked = aq_queue_lock(id, ShareUpdateExclusiveLock, false);
		queue = locked ? aq_catalog_get_by_id(id, true) : NULL;
		if (queue != NULL)
			given = give_back_here(queue, all, next);
	}
	aq_job_commit(false);
	if (given > 0)
		aq_point("recipients-gone");
	aq_cond_broadcast(&shm->changed);
	return locked;
}

void
aq_recipient_idle_job(int32 id, AqQueueShm *shm)
{
	int64		next;

	if (!give_back(id, shm, false, &next))
		next = LOCKED_AGAIN;
	if (next > 0)
		aq_work_later(shm, AQ_WORK_IDLE, Min(next, LOOK_AGAIN));
}

/* --- the worker: new recipients ------------------------------------------------------------ */

/*
 * Adds a recipient; returns false if no position is free.  With an empty name,
 * only reopens positions that were left closed.
 */
static bool
add(int32 id, const char *name)
{
	AqQueue    *queue;
	bool		there = true;

	aq_job_begin();
	queue = aq_catalog_get_by_id(id, true);
	/*
	 * if another session is changing the queue, the enqueuer will post again
	 */
	if (queue != NULL && aq_queue_lock(id, ShareUpdateExclusiveLock, false))
	{
		queue = aq_catalog_get_by_id(id, true);
		if (queue != NULL)
			aq_holds_reopen(queue);
		if (queue != NULL && name[0] != '\0' && aq_catalog_consumer(queue, name) == NULL)
		{
			there = aq_subscriber_insert_recipient(queue, name);
			if (there)
			{
				aq_pending_recipient(id);
				aq_catalog_changed();
			}
		}
	}
	aq_job_commit(false);
	return there;
}

/*
 * Frees all positions that nothing needs, if sessions wait for that to subscribe.
 * If another session is changing the queue, they ask again.
 */
static void
make_room(int32 id, AqQueueShm *shm)
{
	uint32		asked = pg_atomic_read_u32(&shm->room_asked);
	int64		next;

	if (asked == pg_atomic_read_u32(&shm->room_answered))
		return;
	if (give_back(id, shm, true, &next) && aq_subscriber_positions_free(id, shm))
		pg_atomic_write_u32(&shm->room_answered, asked);
	aq_cond_broadcast(&shm->changed);
}

/*
 * Gives the requested name a position, if necessary that of an idle recipient.
 */
void
aq_recipient_job(int32 id, AqQueueShm *shm)
{
	char		name[AQ_MAX_NAME];
	int64		next;

	make_room(id, shm);

	aq_latch_get(&shm->waiters_latch, AQ_EXCLUSIVE, AQ_LOC_WAIT_REGISTER);
	strlcpy(name, shm->recipient, AQ_MAX_NAME);
	shm->recipient[0] = '\0';
	aq_latch_free(&shm->waiters_latch);

	if (!add(id, name) && give_back(id, shm, true, &next) && aq_subscriber_positions_free(id, shm) && !add(id, name))
	{
		aq_latch_get(&shm->waiters_latch, AQ_EXCLUSIVE, AQ_LOC_WAIT_REGISTER);
		strlcpy(shm->refused, name, AQ_MAX_NAME);
		aq_latch_free(&shm->waiters_latch);
	}
	if (name[0] != '\0')
		aq_work_later(shm, AQ_WORK_IDLE, Min((int64) aq_parameters_recipient_grace_ms * 1000, LOOK_AGAIN));
	aq_cond_broadcast(&shm->changed);
}
