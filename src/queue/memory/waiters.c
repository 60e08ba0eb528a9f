/*-------------------------------------------------------------------------
 *
 * waiters.c
 *	  Lists of the sessions that wait for messages: entering, waking, leaving.
 *
 * A waiter puts one entry into the list of each (queue, consumer) for which it
 * waits, checks once more, and only then sleeps.  A session that makes n
 * messages ready for a consumer wakes up to n of its waiters, first come first
 * served, and all waiters with a condition; of those that wait for a correlation,
 * only those that wait for that of the messages, if they have the same one.  A
 * message that becomes ready again, or by its time, wakes all waiters with a
 * condition.  No latch is shared by queues: each queue has its own latch for its
 * lists, and an entry belongs to its session.  A waiter that takes n messages at a
 * time counts as n waiters; if it takes fewer than it was woken for, it wakes others
 * for the remaining ones.
 *
 * A waiter that was woken but leaves without checking (cancelled, timed out)
 * passes the wake-up on; so does one that is woken while its last check takes
 * another message.  One that was woken for several messages but may not take them
 * (its snapshot is older, or its transaction holds a message that may fail for
 * good) has used up one wake-up, and wakes others for the remaining ones.
 *
 * A session that was told of a message but does not fetch it, because its client
 * is busy, frozen or disconnected, cannot pass it on: so the worker checks a
 * little later whether there are messages while other sessions sleep, and wakes
 * these.
 *
 * There is another kind of waiter, the watcher of a queue: a flag, which the
 * next wake-up for any of its consumers clears and passes to the worker.  It
 * takes no session and no wake-up of a waiter.  Part "notify" watches the queues
 * that have registrations.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/memory/memory_private.h"

#include "common/hashfn.h"
#include "miscadmin.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

/* maximum number of sessions woken under one hold of the latch */
#define WAKE_BATCH 64

static AqWaitEntry *entries;	/* AQ_WAITERS_PER_SESSION for each session */

/*
 * By session: the number of entries with which it listens, whether they are in
 * lists or not; for the view.
 */
static volatile uint16 *nlistened;

/*
 * targets whose lists this session has entered; cleared by leave_all, also
 * after errors
 */
static AqWaitTarget joined[AQ_WAITERS_PER_SESSION];
static int	njoined;

/* wake-ups that this session has got without checking since */
static int	unchecked;

/* by number of the target: messages for which it was woken, since it has found nothing there */
static uint32 woken_for[AQ_WAITERS_PER_SESSION];

Size
aq_waiters_shmem_size(void)
{
	return CACHELINEALIGN(mul_size(aq_session_slots(),
								   AQ_WAITERS_PER_SESSION * sizeof(AqWaitEntry) + sizeof(uint16)));
}

void
aq_waiters_shmem_init(void *area, bool found)
{
	AqWaitPool	pool;

	entries = area;
	nlistened = (uint16 *) (entries + (Size) aq_session_slots() * AQ_WAITERS_PER_SESSION);
	if (found)
		return;
	memset(area, 0, aq_waiters_shmem_size());
	/* its list of free entries is not used: every entry belongs to a session */
	aq_wakeup_pool_init(&pool, entries, (uint32) aq_session_slots() * AQ_WAITERS_PER_SESSION);
}

/* A pool for wakeup.c with all entries, in which only the caller's is free. */
static AqWaitPool
pool_with(uint32 entry)
{
	AqWaitPool	pool;

	pool.entries = entries;
	pool.nentries = (uint32) aq_session_slots() * AQ_WAITERS_PER_SESSION;
	pool.free = entry;
	return pool;
}

static AqWaitList *
list_of(const AqWaitTarget *target)
{
	AqConsumerShm *consumer = aq_shm_consumer(target->shm, target->position);

	return target->selective ? &consumer->selective : &consumer->waiters;
}

/* --- keys of correlations -------------------------------------------------------- */

/* NULL: no correlation. */
uint32
aq_waiters_key(const struct varlena *correlation)
{
	if (correlation == NULL)
		return AQ_NO_CORRELATION_KEY;
	if (VARATT_IS_EXTERNAL(correlation) || VARATT_IS_COMPRESSED(correlation))
		return AQ_ANY_KEY;
	return hash_bytes((const unsigned char *) VARDATA_ANY(correlation), VARSIZE_ANY_EXHDR(correlation)) | 2;
}

/* The key of the correlations that match the LIKE pattern: without wildcards it is a single one. */
uint32
aq_waiters_pattern_key(const struct varlena *pattern)
{
	uint32		key = aq_waiters_key(pattern);

	if (key != AQ_ANY_KEY)
		for (int i = 0; i < VARSIZE_ANY_EXHDR(pattern); i++)
			if (strchr("%_\\", VARDATA_ANY(pattern)[i]) != NULL)
				return AQ_ANY_KEY;
	return key;
}

/* --- waking ------------------------------------------------------------------ */

static int
pop(AqQueueShm *shm, AqWaitList *list, int n, uint32 *messages, int32 *sessions)
{
	AqWaitPool	pool = pool_with(AQ_WAKEUP_NONE);
	int			got = aq_wakeup_pop(&pool, list, n, messages, sessions);

	pg_atomic_fetch_sub_u32(&shm->waiting, got);
	return got;
}

static int
pop_selective(AqQueueShm *shm, AqWaitList *list, int n, uint32 key, int32 *sessions)
{
	AqWaitPool	pool = pool_with(AQ_WAKEUP_NONE);
	int			got = aq_wakeup_pop_key(&pool, list, n, key, sessions);

	pg_atomic_fetch_sub_u32(&shm->waiting, got);
	return got;
}

bool
aq_waiters_exist(AqQueueShm *shm)
{
	return pg_atomic_read_u32(&shm->waiting) > 0 || pg_atomic_read_u32(&shm->watched) != 0 ||
		pg_atomic_read_u32(&shm->forwarded) != 0 || aq_channel_has_listeners();
}

/*
 * Has the worker run AQ_WORK_WATCHED at the next wake-up for any consumer of the
 * queue, once.  Like a waiter, the caller checks once more afterwards.
 */
void
aq_waiters_watch(AqQueueShm *shm)
{
	pg_atomic_write_u32(&shm->watched, 1);
	pg_memory_barrier();
}

static void
wake_watcher(AqQueueShm *shm)
{
	if (pg_atomic_read_u32(&shm->forwarded) != 0)
		aq_peers_news(AQ_PEERS_READY);
	if (pg_atomic_read_u32(&shm->watched) != 0 && pg_atomic_exchange_u32(&shm->watched, 0) != 0)
		aq_work_post(shm, AQ_WORK_WATCHED);
}

/*
 * The consumer has this limit of messages in work; 0: none.  Then no more sessions are
 * woken than there are places.  The limit of a description that is too old is
 * not used: the latest change wins.  Also forgets the bucket of a consumer that has no
 * rate any longer.
 */
void
aq_waiters_limit(const AqQueue *queue, int position, uint32 limit)
{
	AqQueueShm *shm = queue->shm;
	AqConsumerShm *consumer = aq_shm_consumer(shm, position);
	uint32		before;
	bool		rate_ended = aq_queue_rate(queue, position)->period == 0 && pg_atomic_read_u64(&consumer->next_token) != 0;
	bool		raised = false;

	if ((pg_atomic_read_u32(&consumer->limit) == limit && !rate_ended) || queue->uncommitted)
		return;
	aq_latch_get(&shm->waiters_latch, AQ_EXCLUSIVE, AQ_LOC_WAIT_POST);
	if (queue->definition >= pg_atomic_read_u64(&shm->definition))
	{
		before = pg_atomic_exchange_u32(&consumer->limit, limit);
		raised = rate_ended || (before != 0 && (limit == 0 || before < limit));
		if (rate_ended)
			pg_atomic_write_u64(&consumer->next_token, 0);
	}
	aq_latch_free(&shm->waiters_latch);
	if (raised)
		aq_waiters_wake(shm, position, PG_INT32_MAX);
}

/* As many of its messages may be taken now. */
static uint32
places_of(AqConsumerShm *consumer)
{
	uint32		limit = pg_atomic_read_u32(&consumer->limit);
	uint32		used = pg_atomic_read_u32(&consumer->in_work);

	return limit == 0 ? PG_UINT32_MAX : limit - Min(limit, used);
}

/*
 * Wakes plain waiters until together they take *messages, which it reduces; NULL:
 * each is woken for one.  Wakes at most "most" waiters, and none that enters later.
 * Of the selective ones, it wakes those that may want a message with this key.
 */
static void
wake(AqQueueShm *shm, int position, uint32 most, uint32 *messages, uint32 key)
{
	AqConsumerShm *consumer;
	uint32		selective,
				plain;

	/*
	 * pairs with the barrier in aq_waiters_refuse_dropping: a waiter has entered before, or
	 * will see the message
	 */
	pg_memory_barrier();
	if (!aq_waiters_exist(shm))
		return;
	wake_watcher(shm);
	aq_channel_wake();
	consumer = aq_shm_consumer(shm, position);
	if (consumer == NULL)
		return;
	if (messages != NULL || most < PG_UINT32_MAX)
	{
		most = Min(most, places_of(consumer));
		if (most == 0 || !aq_rate_has_token(consumer))
			return;				/* woken when a place is free, or the worker finds a token */
	}
	/*
	 * a session that finds nothing and enters again comes after the current
	 * ones
	 */
	selective = consumer->selective.waiting;
	plain = Min(most, consumer->waiters.waiting);
	while (selective > 0 || (plain > 0 && (messages == NULL || *messages > 0)))
	{
		int32		sessions[WAKE_BATCH];
		int			n,
					nplain;

		aq_latch_get(&shm->waiters_latch, AQ_EXCLUSIVE, AQ_LOC_WAIT_POST);
		n = pop_selective(shm, &consumer->selective, Min(selective, WAKE_BATCH / 2), key, sessions);
		nplain = pop(shm, &consumer->waiters, Min(plain, WAKE_BATCH / 2), messages, sessions + n);
		aq_latch_free(&shm->waiters_latch);
		aq_channel_set_latches(sessions, n + nplain);
		aq_stat_add(AQ_STAT_WAKEUPS_SENT, n + nplain);
		selective = n < WAKE_BATCH / 2 ? 0 : selective - n;
		plain -= nplain;
		if (n + nplain == 0)
			break;
	}
}

void
aq_waiters_wake(AqQueueShm *shm, int position, uint32 messages)
{
	aq_waiters_wake_for(shm, position, messages, AQ_ANY_KEY);
}

/* The same for messages that all have the correlation with this key. */
void
aq_waiters_wake_for(AqQueueShm *shm, int position, uint32 messages, uint32 key)
{
	wake(shm, position, PG_UINT32_MAX, messages < PG_INT32_MAX ? &messages : NULL, key);
}

void
aq_waiters_wake_all(AqQueueShm *shm)
{
	aq_lag_recheck(shm);
	/* sessions that listen on the channel are in no list of the queue */
	pg_memory_barrier();
	wake_watcher(shm);
	aq_channel_wake();
	for (int position = 0; position < AQ_MAX_CONSUMERS; position++)
	{
		if (pg_atomic_read_u32(&shm->waiting) == 0)
			break;
		aq_waiters_wake(shm, position, PG_INT32_MAX);
	}
}

static void
tell_to_leave(AqQueueShm *shm)
{
	pg_atomic_write_u32(&shm->dropping, 1);
	aq_waiters_wake_all(shm);
	aq_cond_broadcast(&shm->changed);	/* those that wait for retry counts */
}

/*
 * Makes all sessions that wait for the queue's messages, or for room in it, leave,
 * with an error: they hold locks of its tables for as long as they wait.  The caller
 * drops the queue.
 *
 * A lock says that the queue is being dropped; it ends with the transaction, also if
 * the session dies.  A session that enters a list too late to be woken here sees the
 * lock.  The mark in shared memory tells waiters to check the lock; if the drop fails,
 * the next waiter clears it.
 */
void
aq_waiters_end(AqQueueShm *shm)
{
	aq_queue_lock_dropping(abs(shm->queue_id));
	tell_to_leave(shm);
}

/*
 * The same for all queues of the database: the extension is dropped.  The mark is
 * also set when a queue is loaded, so none is left out.
 */
void
aq_waiters_end_all(void)
{
	aq_queue_lock_dropping(0);
	for (int i = 1; i <= aq_handle_limit; i++)
		if (aq_shm_by_index(i)->database == MyDatabaseId)
			tell_to_leave(aq_shm_by_index(i));
}

/*
 * Raises an error if another session drops the queue, or the extension.  The caller has
 * entered a list that aq_waiters_end wakes.
 */
void
aq_waiters_refuse_dropping(AqQueueShm *shm)
{
	int32		id = abs(shm->queue_id);
	AqQueue    *queue;

	pg_memory_barrier();
	if (pg_atomic_read_u32(&shm->dropping) == 0 || !aq_queue_lock_is_dropping(id, &shm->dropping))
		return;
	queue = aq_catalog_get_by_id(id, true);
	ereport(ERROR,
			aq_error(AQ_ERR_QUEUE_DROPPED, "cannot wait for queue \"%s\"", queue != NULL ? queue->name : "?"),
			errdetail("Another session drops the queue, or the extension."),
			errhint("Try again later if the drop may be rolled back, or the queue be created again."));
}

/* Makes the worker check the queue's waiters a little later. */
void
aq_waiters_check_later(AqQueueShm *shm)
{
	if (aq_parameters_fetch_patience_ms >= 0)
		aq_work_check_waiters(shm, GetCurrentTimestamp() + (int64) aq_parameters_fetch_patience_ms * 1000);
}

/*
 * The same at the time of the consumer's next token, unless there is one, or nothing
 * waits.  Never raises an error.
 */
void
aq_waiters_check_at_token(AqQueueShm *shm, AqConsumerShm *consumer, const AqRate *rate)
{
	TimestampTz next = aq_waiters_exist(shm) ? aq_rate_next(consumer, rate) : 0;

	if (next != 0)
		aq_work_check_waiters(shm, next);
}

/* May a wake-up for the consumer be useful to a session, or to part "notify"? */
static bool
has_waiters(AqQueueShm *shm, const AqConsumerShm *consumer)
{
	return consumer->waiters.waiting > 0 || consumer->selective.waiting > 0 || aq_channel_has_listeners() ||
		pg_atomic_read_u32(&shm->watched) != 0;
}

/* The worker's check of a consumer with a rate: wakes as many sessions as there are tokens. */
static void
check_rate(AqQueue *queue, int position, const AqRate *rate)
{
	AqConsumerShm *consumer = aq_shm_consumer(queue->shm, position);
	uint32		tokens = aq_rate_tokens(queue, consumer, rate);

	if (!has_waiters(queue->shm, consumer))
		return;
	if (tokens == 0)
		aq_work_check_waiters(queue->shm, Max(aq_rate_next(consumer, rate), 1));
	else if (queue->store->ready(queue, position, 0))
	{
		aq_waiters_wake(queue->shm, position, tokens);
		if (consumer->waiters.waiting > 0)
			aq_waiters_check_later(queue->shm);
	}
}

/*
 * The worker's job: wakes the waiters of every consumer that has messages, all at
 * once.  However many clients do not fetch what they were told of, the others
 * learn of it now.
 */
void
aq_waiters_job(int32 id, AqQueueShm *shm)
{
	AqQueue    *queue;

	aq_job_begin();
	queue = aq_catalog_get_by_id(id, true);
	if (queue != NULL)
		aq_pins_pin(queue);
	for (int i = 0; queue != NULL && i < Max(queue->nconsumers, 1); i++)
	{
		int			position = queue->multi ? queue->consumers[i].position : 0;
		AqConsumerShm *consumer = aq_shm_consumer(shm, position);
		const AqRate *rate = aq_queue_rate(queue, position);

		if (consumer == NULL || aq_queue_is_paused(queue, position))
			continue;
		if (rate->period > 0)
			check_rate(queue, position, rate);
		else if (consumer->waiters.waiting > 0 && queue->store->ready(queue, position, 0))
		{
			aq_waiters_wake(shm, position, PG_INT32_MAX);
			aq_waiters_check_later(shm);
		}
	}
	aq_job_commit(false);
}

/* --- listeners --------------------------------------------------------------- */

/* The number of the list for entries of the target. */
static uint32
list_number(const AqWaitTarget *target)
{
	return target->shm->object->index * AQ_MAX_CONSUMERS + target->position;
}

/*
 * Publishes that the session listens; its entries have the numbers of the
 * targets.
 */
static void
begin_listening(int n)
{
	pg_write_barrier();
	nlistened[aq_session_number()] = n;
}

/*
 * The sessions that listen, and their targets.  Entries are read while their
 * sessions write them, so a row may be outdated.
 */
AQ_ROWS(aq_waiters_view_listeners)
{
	for (int session = 0; session < aq_session_slots(); session++)
		for (int i = 0; i < nlistened[session]; i++)
		{
			uint32		number = ((volatile AqWaitEntry *) entries)[session * AQ_WAITERS_PER_SESSION + i].list;
			AqQueueShm *shm;
			AqQueue    *queue;

			CHECK_FOR_INTERRUPTS();
			if (number == AQ_WAKEUP_NONE)
				continue;		/* it is just leaving */
			shm = aq_shm_by_index(number / AQ_MAX_CONSUMERS);
			if (shm->database != MyDatabaseId)
				continue;
			queue = aq_catalog_get_by_id(abs(shm->queue_id), true);
			if (queue == NULL || !aq_privilege_allows(queue, AQ_RIGHT_SEE) ||
				!aq_privilege_shows_position(queue, number % AQ_MAX_CONSUMERS))
				continue;
			aq_rows_int(row, queue->id);
			aq_rows_int(row, number % AQ_MAX_CONSUMERS);
			aq_rows_end(row);
		}
}

/* --- entering and leaving ---------------------------------------------------- */

static void
join(AqWaitTarget *target)
{
	AqWaitPool	pool = pool_with(target->entry);
	uint32		entry PG_USED_FOR_ASSERTS_ONLY;

	aq_latch_get(&target->shm->waiters_latch, AQ_EXCLUSIVE, AQ_LOC_WAIT_REGISTER);
	entry = aq_wakeup_add(&pool, list_of(target), list_number(target), aq_session_number(), Max(target->most, 1));
	Assert(entry == target->entry);
	entries[target->entry].key = target->selective ? target->key : AQ_ANY_KEY;
	pg_atomic_fetch_add_u32(&target->shm->waiting, 1);
	aq_latch_free(&target->shm->waiters_latch);
	joined[njoined++] = *target;
}

/*
 * Leaves all lists. pass_on: the session does not check again, so others get the
 * wake-ups for what it has not taken: those after which it has not checked, and
 * those that came during its last check, which may have missed their messages.
 * Returns the number of wake-ups since it entered.  Does not raise an error.
 */
static int
leave_all(bool pass_on)
{
	int			wakeups = aq_channel_leave();

	nlistened[aq_session_number()] = 0;
	while (njoined > 0)
	{
		AqWaitTarget *target = &joined[--njoined];
		AqWaitPool	pool = pool_with(AQ_WAKEUP_NONE);
		uint32	   *messages = &woken_for[target->entry - (uint32) aq_session_number() * AQ_WAITERS_PER_SESSION];
		uint32		woken;

		aq_latch_get(&target->shm->waiters_latch, AQ_EXCLUSIVE, AQ_LOC_WAIT_LEAVE);
		woken = aq_wakeup_remove(&pool, list_of(target), target->entry);
		if (woken == 0)
			pg_atomic_fetch_sub_u32(&target->shm->waiting, 1);
		entries[target->entry].next = AQ_WAKEUP_NONE;
		aq_latch_free(&target->shm->waiters_latch);
		if (woken > 0)
			wakeups++;
		*messages += woken;
		if (pass_on && *messages > 0 && !target->selective)
			aq_waiters_wake(target->shm, target->position, *messages);
	}
	return wakeups;
}

/* For a process that waits for something else, too: NULL, or whether it is there. */
bool		(*aq_waiters_disturbed) (void);

/* Has this session been woken since it entered? */
static bool
woken_meanwhile(void)
{
	for (int i = 0; i < njoined; i++)
		if (entries[joined[i].entry].state == AQ_WAKEUP_WOKEN)
			return true;
	return aq_channel_woken() || (aq_waiters_disturbed != NULL && aq_waiters_disturbed());
}

/*
 * Sleeps until a wake-up or the deadline, which is "left" microseconds away
 * (both negative: none).  The session's latch is also set for other reasons,
 * for example by the server's timer for statistics; if the lists have not
 * changed, it continues to sleep.
 */
static void
sleep_until_woken(AqEvent event, int32 queue, int64 left, int64 deadline)
{
	do
	{
		(void) aq_event_sleep(event, queue, MyProcPid, Max(left, 0), left);
		if (deadline >= 0)
			left = deadline - aq_clock_us();
	} while (!woken_meanwhile() && (deadline < 0 || left > 0));
}

/* Release of a claim: the session leaves the lists, after an error. */
static void
leave_early(void *ptr, int64 unused)
{
	int			wakeups = unchecked;

	aq_stat_add(AQ_STAT_WAKEUPS_LEFT, wakeups + leave_all(true));
	unchecked = 0;
}

/*
 * Counts wake-ups after which the session has checked; one suffices to find a
 * message.
 */
static void
count_wakeups(int wakeups, bool found)
{
	if (wakeups == 0)
		return;
	aq_stat_add(AQ_STAT_WAKEUPS_USEFUL, found ? 1 : 0);
	aq_stat_add(AQ_STAT_WAKEUPS_FALSE, found ? wakeups - 1 : wakeups);
}

/* The session has taken messages of the target; others can take the remaining ones. */
static void
count_taken(const AqWaitTarget *target, int found)
{
	woken_for[found] -= Min(woken_for[found], target->most > 0 ? target->taken : 1);
}

/*
 * The session has found nothing.  It was woken for several messages, and has used up
 * one of these wake-ups.  The next sessions get one each, whatever number they take,
 * so that no more sessions are woken than there were messages.
 */
static void
pass_on_remaining(const AqWaitTarget *targets, int n)
{
	for (int i = 0; i < n; i++)
		if (woken_for[i] > 1 && !targets[i].selective)
			wake(targets[i].shm, targets[i].position, woken_for[i] - 1, NULL, AQ_ANY_KEY);
	memset(woken_for, 0, sizeof(woken_for));
}

/*
 * Sleeps until one of the targets has a message, according to check(), which
 * returns the number of the target, or -1.  Returns the result of check(), or
 * -1 after the deadline (aq_clock_us; negative: none).  The targets' queues
 * are pinned. listens: the session will not take the message. channel: wake it
 * for every message of any queue.  event: the one to sleep under, which check()
 * can change.
 */
int
aq_waiters_sleep(AqWaitTarget *targets, int n, bool listens, bool channel, const AqEvent *event, int64 deadline,
				 int (*check) (void *arg), void *arg)
{
	uint32		base = (uint32) aq_session_number() * AQ_WAITERS_PER_SESSION;
	int			found = -1;

	Assert(njoined == 0);
	memset(woken_for, 0, sizeof(woken_for));
	aq_claim_reserve(1);
	aq_claim_enter(leave_early, NULL, 0);
	for (;;)
	{
		int64		left = -1;

		if (channel)
			aq_channel_join();
		for (int i = 0; i < n; i++)
		{
			targets[i].entry = base + i;
			if (channel)
				entries[base + i].list = list_number(&targets[i]);
			else
				join(&targets[i]);
		}
		if (listens)
			begin_listening(n);
		/* before the check, which may need a lock that the drop has */
		for (int i = 0; i < n; i++)
			aq_waiters_refuse_dropping(targets[i].shm);
		found = check(arg);
		count_wakeups(unchecked, found >= 0);
		unchecked = 0;
		if (found >= 0)
			break;
		if (found == AQ_WAITERS_AGAIN)
		{
			unchecked = leave_all(false);
			continue;
		}
		pass_on_remaining(targets, n);
		if (deadline >= 0)
		{
			left = deadline - aq_clock_us();
			if (left <= 0)
				break;
		}
		/*
		 * a wait within the check may have consumed the signal of the wake-up
		 */
		if (woken_meanwhile())
		{
			unchecked = leave_all(false);
			continue;
		}
		InvalidateCatalogSnapshot();
		sleep_until_woken(*event, abs(targets[0].shm->queue_id), left, deadline);
		unchecked = leave_all(false);	/* enter again, then check */
	}
	aq_claim_end(leave_early, NULL);
	if (found >= 0)
		count_taken(&targets[found], found);
	aq_stat_add(AQ_STAT_WAKEUPS_LEFT, leave_all(true));
	return found;
}

/* --- aq.check() -------------------------------------------------------------- */

/*
 * Finds entries of sessions that do not wait, and sessions that sleep without
 * an entry.
 */
void
aq_waiters_check(AqFindings *findings)
{
	for (int session = 0; session < aq_session_slots(); session++)
	{
		int			n = aq_channel_has(session) ? 1 : 0;
		AqWaitNow	now;

		for (int i = 0; i < AQ_WAITERS_PER_SESSION; i++)
			if (((volatile AqWaitEntry *) entries)[session * AQ_WAITERS_PER_SESSION + i].state != AQ_WAKEUP_FREE)
				n++;
		if (n > 0 && !aq_session_in_transaction(session))
			aq_finding_add(findings, psprintf("session %d", session + 1), "waits for messages without a transaction", n, 0,
						   psprintf("process %d", aq_session_pid(session)));
		aq_event_read(session, &now);
		if (n == 0 && now.waiting && (now.event == AQ_EVENT_DEQUEUE_WAIT || now.event == AQ_EVENT_LISTEN_WAIT ||
									  now.event == AQ_EVENT_PAUSED || now.event == AQ_EVENT_LIMIT || now.event == AQ_EVENT_RATE))
			aq_finding_add(findings, psprintf("session %d", session + 1), "sleeps, and stands in no list", 0, 1,
						   psprintf("process %d", aq_session_pid(session)));
	}
}

#ifdef AQ_TEST_POINTS
/*
 * For tests of aq.check(): makes (by = 1) or frees (by = -1) an entry of a
 * session that does not exist.
 */
PG_FUNCTION_INFO_V1(aq_waiters_damage);
Datum
aq_waiters_damage(PG_FUNCTION_ARGS)
{
	entries[(Size) (aq_session_slots() - 1) * AQ_WAITERS_PER_SESSION].state =
		PG_GETARG_INT32(0) > 0 ? AQ_WAKEUP_WAITING : AQ_WAKEUP_FREE;
	PG_RETURN_VOID();
}
#endif

/*
 * Counts the entries of the list, each of which must belong to a session in a
 * transaction.  The caller holds the latch.
 */
static uint32
count_list(const AqWaitList *list, uint32 *strange)
{
	uint32		n = 0;

	for (uint32 i = list->head; i != AQ_WAKEUP_NONE && n <= list->waiting; i = entries[i].next)
	{
		n++;
		if (entries[i].state != AQ_WAKEUP_WAITING || !aq_session_in_transaction(entries[i].session))
			(*strange)++;
	}
	return n;
}

void
aq_waiters_check_queue(AqQueueShm *shm, AqFindings *findings)
{
	uint32		listed = 0,
				counted = 0,
				strange = 0,
				waiting;

	aq_latch_get(&shm->waiters_latch, AQ_EXCLUSIVE, AQ_LOC_VIEW);
	for (int position = 0; position < AQ_MAX_CONSUMERS; position++)
	{
		AqConsumerShm *consumer = aq_shm_consumer(shm, position);

		if (consumer == NULL)
			continue;
		counted += consumer->waiters.waiting + consumer->selective.waiting;
		listed += count_list(&consumer->waiters, &strange) + count_list(&consumer->selective, &strange);
	}
	waiting = pg_atomic_read_u32(&shm->waiting);
	aq_latch_free(&shm->waiters_latch);
	aq_finding_compare(findings, "waiters", "entries in lists, according to the lists", counted, listed);
	aq_finding_compare(findings, "waiters", "entries in lists, according to the queue", waiting, listed);
	if (strange > 0)
		aq_finding_add(findings, "waiters", "entries of sessions that do not wait", strange, 0, NULL);
}
