/*-------------------------------------------------------------------------
 *
 * wait.c
 *	  Waiting for messages: aq.dequeue with a wait, aq.wait, aq.listen;
 *	  functions shared by all procedures that wait.
 *
 * A wait in a procedure called by CALL releases its snapshot first, so that it
 * does not hold back the xmin horizon.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/calls/calls_private.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "tcop/pquery.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/snapmgr.h"

/* --- aq.dequeue(wait => ...) ------------------------------------------------------------ */

typedef struct DequeueWait
{
	int			n;
	AqWaitTarget *targets;
	const int  *position;		/* position of the consumer at the last attempt; -1: it is not known */
	const AqEvent *event;		/* what it waits for since then */
	bool		(*attempt) (void *arg);
	void	   *arg;
} DequeueWait;

/*
 * Moves the targets to the consumer's current position; returns false if they
 * are there already.  A session whose consumer is paused waits where only changes of
 * the queue wake it, and not each message.
 */
static bool
move_targets(DequeueWait *wait)
{
	int			position = *wait->position < 0 || *wait->event == AQ_EVENT_PAUSED ? AQ_NO_CONSUMER : *wait->position;
	bool		moved = wait->targets[0].position != position;

	for (int i = 0; i < wait->n && moved; i++)
	{
		(void) aq_shm_consumer_make(wait->targets[i].shm, position);
		wait->targets[i].position = position;
	}
	return moved;
}

static int
check_by_attempt(void *arg)
{
	DequeueWait *wait = arg;

	if (wait->attempt(wait->arg))
		return 0;
	return move_targets(wait) ? AQ_WAITERS_AGAIN : -1;
}

/*
 * queues: a queue, its buffered queue, or both.  channel: also messages that no consumer
 * gets now, because of max_running or its rate, wake it.
 */
bool
aq_wait_until(AqQueue *const *queues, int n, const int *position, const AqEvent *event,
			  bool selective, uint32 key, bool channel, int64 timeout_us,
			  bool (*attempt) (void *arg), void *arg)
{
	AqWaitTarget *targets = palloc0(n * sizeof(AqWaitTarget));
	DequeueWait wait = {.n = n, .targets = targets, .position = position, .event = event, .attempt = attempt, .arg = arg};
	int64		deadline = timeout_us < 0 ? -1 : aq_clock_us() + timeout_us;

	for (int i = 0; i < n; i++)
	{
		targets[i].shm = queues[i]->shm;
		targets[i].position = -1;
		targets[i].selective = selective;
		targets[i].key = key;
	}
	(void) move_targets(&wait);
	return aq_waiters_sleep(targets, n, false, channel, event, deadline, check_by_attempt, &wait) >= 0;
}

/* --- the procedures --------------------------------------------------------------------- */

/* a running attempt may take messages newer than its snapshot */
static bool looks_ahead;

bool
aq_wait_take_uses_snapshot(void)
{
	return IsolationUsesXactSnapshot() && !looks_ahead;
}

/*
 * Calls an attempt to take messages: in a CALL that waits, it may take
 * messages that are newer than the snapshot.
 */
void
aq_wait_call_ahead(void (*call) (void *arg), void *arg)
{
	looks_ahead = !IsTransactionBlock();
	PG_TRY();
	{
		call(arg);
	}
	PG_FINALLY();
	{
		looks_ahead = false;
	}
	PG_END_TRY();
}

/*
 * Releases the statement's snapshot, if it is the only one: then this session
 * does not hold back the xmin horizon while it waits.  The portal takes a new
 * one when it needs it.
 */
void
aq_wait_release_snapshot(void)
{
	if (IsolationUsesXactSnapshot())
		return;
	if (ActivePortal != NULL && ActiveSnapshotSet() &&
		ActivePortal->portalSnapshot == GetActiveSnapshot())
	{
		ForgetPortalSnapshots();

		/*
		 * A CALL that returns a row has registered its snapshot for detoasting
		 * the row.  Our row needs no detoasting; a COMMIT inside a procedure
		 * releases the snapshot in the same way.
		 */
		if (ActivePortal->holdSnapshot != NULL && ActivePortal->resowner != NULL)
		{
			UnregisterSnapshotFromOwner(ActivePortal->holdSnapshot, ActivePortal->resowner);
			ActivePortal->holdSnapshot = NULL;
		}
	}
	InvalidateCatalogSnapshot();
}

typedef struct Listening
{
	int			n;				/* number of entries */
	char	  **queues;
	char	  **consumers;		/* elements may be NULL */
	int		   *deliveries;		/* AQ_PERSISTENT or AQ_BUFFERED */
	int32	   *known;			/* ids of the queues at the last check; 0: none yet */
	bool	   *selective;		/* the attempt takes only some of the messages ... */
	uint32		key;			/* ... with this key; AQ_ANY_KEY: with any */
	AqWaitTarget *targets;
	bool		single;			/* one queue and consumer */
	bool		channel;		/* wait on the broadcast channel */
	int64		counts_until;	/* until when a check waits for retry counts; 0: it does not */
	bool		(*attempt) (void *arg); /* the check; NULL: ask the store */
	void	   *arg;
	bool		attempts;		/* it is to be called now */
	int		   *most;			/* messages that an attempt takes; 0: not known */
	const AqWaitTaken *taken;	/* what the attempt has taken */
	int		   *entry_of;		/* by number of the pair */
	AqEvent		event;
} Listening;

static AqQueue *
queue_of(const Listening *listening, int i)
{
	AqQueue    *queue = aq_catalog_get_to_notify(listening->queues[i], listening->consumers[i], listening->known[i]);

	aq_non_persistent_refuse_listen(queue);
	return queue;
}

/*
 * Looks each queue up again, because it may have been stopped or dropped, or
 * the right to it revoked, meanwhile.
 */
static int
check_queues(void *arg)
{
	Listening  *listening = arg;
	bool		changed = false,
				all_paused = true,
				all_closed = true;	/* paused, or no more messages now, because of max_running or the rate */
	AqEvent		closed = AQ_EVENT_LIMIT;

	/* first, because it looks queues up itself and takes a snapshot */
	if (listening->attempt && listening->attempts)
	{
		/* an attempt does not know that the role had the right before */
		for (int i = 0; i < listening->n && listening->known[i] != 0; i++)
			(void) queue_of(listening, i);
		if (listening->attempt(listening->arg))
		{
			int			entry = listening->entry_of[listening->taken->pair];

			if (listening->targets != NULL)
				listening->targets[entry].taken = listening->taken->messages;
			return entry;
		}
		aq_wait_release_snapshot();
	}
	for (int i = 0; i < listening->n; i++)
	{
		AqQueue    *queue = queue_of(listening, i);
		int			position;
		bool		paused;

		CHECK_FOR_INTERRUPTS();
		queue = aq_pins_pin_current(queue, false);
		listening->known[i] = queue->id;
		aq_use_check_started(queue, false);
		queue = aq_catalog_for_delivery(queue, listening->deliveries[i]);
		if (queue == NULL && listening->targets == NULL)
			continue;			/* there was never a buffered message */
		if (queue == NULL)
			queue = aq_buffered_ensure(queue_of(listening, i), AQ_BUFFERED);
		aq_pins_pin(queue);
		position = aq_args_consumer_position(queue, listening->consumers[i]);
		if (position < 0)
			aq_notice_unknown_consumer(queue, listening->consumers[i]);
		paused = position >= 0 && aq_queue_is_paused(queue, position);
		all_paused &= paused;
		if (listening->attempt == NULL && position >= 0 && !paused && queue->store->ready(queue, position, listening->counts_until))
			return i;
		if (position >= 0 && !paused && aq_queue_is_early(queue, position))
			closed = AQ_EVENT_RATE;
		else
			all_closed &= paused || (position >= 0 && aq_queue_is_full(queue, position));
		if (listening->targets != NULL)
		{
			AqWaitTarget *target = &listening->targets[i];

			/*
			 * the queue was dropped and created again, or the consumer was
			 * subscribed meanwhile
			 */
			if (position < 0 || paused)
				position = AQ_NO_CONSUMER;
			if (target->shm != queue->shm || target->position != position)
			{
				target->shm = queue->shm;
				target->position = position;
				target->selective = listening->selective[i];
				target->key = listening->key;
				target->most = listening->most[i];
				(void) aq_shm_consumer_make(queue->shm, position);
				changed = true;
			}
		}
	}
	listening->event = all_paused ? AQ_EVENT_PAUSED : all_closed ? closed
		: (listening->single || listening->attempt != NULL) && !listening->channel ? AQ_EVENT_DEQUEUE_WAIT : AQ_EVENT_LISTEN_WAIT;
	return changed ? AQ_WAITERS_AGAIN : -1;
}

/*
 * Waits for any of the pairs; returns its number, or -1 on timeout.  tried: the
 * caller has just made an attempt.
 */
static int
listen_to(Listening *listening, bool tried, int64 timeout_us)
{
	int64		deadline = timeout_us < 0 ? -1 : aq_clock_us() + timeout_us;
	int			found = -1;

	PreventCommandDuringRecovery("aq.wait()");
	if (listening->attempt == NULL)
		aq_stat_add(AQ_STAT_LISTEN_CALLS, 1);
	/* a session that will sleep is woken when they are written */
	if (timeout_us == 0)
		listening->counts_until = aq_retries_patience();
	if (!tried)
		found = check_queues(listening);
	if (found >= 0 || timeout_us == 0)
		return found;

	/* this check fills in the targets; the next one, in the lists, attempts again */
	listening->attempts = false;
	listening->targets = palloc0(listening->n * sizeof(AqWaitTarget));
	found = check_queues(listening);
	if (found >= 0)
		return found;
	listening->attempts = true;
	aq_wait_release_snapshot();
	found = aq_waiters_sleep(listening->targets, listening->n, listening->attempt == NULL, listening->channel,
							 &listening->event, deadline, check_queues, listening);
	EnsurePortalSnapshotExists();
	if (found >= 0 && pg_atomic_read_u32(&listening->targets[found].shm->waiting) > 0)
		aq_waiters_check_later(listening->targets[found].shm);
	return found;
}

/* The entry of the same queue and consumer; -1: none. */
static int
find_entry(const Listening *listening, const char *queue, const char *consumer)
{
	for (int i = 0; i < listening->n; i++)
		if (strcmp(listening->queues[i], queue) == 0 &&
			(consumer == NULL ? listening->consumers[i] == NULL :
			 listening->consumers[i] != NULL && strcmp(listening->consumers[i], consumer) == 0))
			return i;
	return -1;
}

static void
refuse_entries(int n, int delivery)
{
	ereport(ERROR,
			aq_error(AQ_ERR_LISTEN_ARGUMENT, "listen accepts at most %d queues, not %d",
					 AQ_WAITERS_PER_SESSION / (delivery == AQ_PERSISTENT_OR_BUFFERED ? 2 : 1), n));
}

/*
 * Makes an entry for each of the n pairs, or two, for persistent and buffered
 * messages.  selective: NULL, or for each pair whether it takes only some of the
 * messages; then a pair can occur several times, and has one entry.  most: NULL, or
 * how many messages an attempt takes from each.
 */
static void
make_entries(Listening *listening, int n, char **queues, char **consumers, const bool *selective, const int *most,
			 int delivery)
{
	static const int kinds[] = {AQ_PERSISTENT, AQ_BUFFERED};

	listening->n = 0;
	listening->single = n == 1;
	listening->queues = palloc(2 * n * sizeof(char *));
	listening->consumers = palloc(2 * n * sizeof(char *));
	listening->deliveries = palloc(2 * n * sizeof(int));
	listening->known = palloc0(2 * n * sizeof(int32));
	listening->selective = palloc0(2 * n * sizeof(bool));
	listening->most = palloc0(2 * n * sizeof(int));
	listening->entry_of = palloc(n * sizeof(int));
	for (int i = 0; i < n; i++)
	{
		int			entry = selective != NULL ? find_entry(listening, queues[i], consumers[i]) : -1;

		CHECK_FOR_INTERRUPTS();
		/* as soon as there are too many, so that each is compared with few others; the limit is even, for both kinds */
		if (entry < 0 && listening->n >= AQ_WAITERS_PER_SESSION)
			refuse_entries(n, delivery);
		listening->entry_of[i] = entry >= 0 ? entry : listening->n;
		/* one that takes all messages makes the others superfluous */
		if (entry >= 0)
			listening->selective[entry] &= selective[i];
		if (entry >= 0 && most != NULL)
			listening->most[entry] = Max(listening->most[entry], most[i]);
		for (int k = 0; k < lengthof(kinds) && entry < 0; k++)
			if (delivery & kinds[k])
			{
				listening->queues[listening->n] = queues[i];
				listening->consumers[listening->n] = consumers[i];
				listening->selective[listening->n] = selective != NULL && selective[i];
				listening->most[listening->n] = most != NULL ? Max(most[i], 1) : 0;
				listening->deliveries[listening->n++] = kinds[k];
			}
	}
}

bool
aq_wait_released(char *queue, char *consumer, int delivery, bool selective, uint32 key, int64 timeout_us,
				 bool (*attempt) (void *arg), void *arg)
{
	AqWaitTaken taken = {0};
	Listening	listening = {.key = key, .attempt = attempt, .arg = arg, .attempts = true, .taken = &taken};

	make_entries(&listening, 1, &queue, &consumer, &selective, NULL, delivery);
	return listen_to(&listening, false, timeout_us) >= 0;
}

/*
 * The same for persistent messages of several pairs, after an attempt that has
 * taken nothing.  most: how many messages it takes from each at most; *taken: what
 * it has taken.
 */
bool
aq_wait_released_any(int n, char **queues, char **consumers, const bool *selective, const int *most,
					 int64 timeout_us, bool (*attempt) (void *arg), void *arg, const AqWaitTaken *taken)
{
	Listening	listening = {.attempt = attempt, .arg = arg, .attempts = true, .taken = taken};

	make_entries(&listening, n, queues, consumers, selective, most, AQ_PERSISTENT);
	return listen_to(&listening, true, timeout_us) >= 0;
}

static int64
timeout_arg(FunctionCallInfo fcinfo, int arg)
{
	return PG_ARGISNULL(arg) ? -1 : aq_args_timeout(fcinfo, arg, "timeout");
}

/* aq.wait(queue_name, timeout, ready) or aq.wait(queue_name, consumer, timeout [, delivery_mode], ready), see wait.sql */
PG_FUNCTION_INFO_V1(aq_wait);
Datum
aq_wait(PG_FUNCTION_ARGS)
{
	AQ_TIMED(AQ_TIME_LISTEN);
	char	   *name = aq_args_name(fcinfo, 0, "queue_name");
	bool		single = PG_NARGS() == 3;
	char	   *consumer = single ? NULL : aq_args_name_or_null(fcinfo, 1, "consumer");
	int			delivery = PG_NARGS() > 4 ? aq_args_delivery(fcinfo, 3) : AQ_PERSISTENT;
	Datum		value = BoolGetDatum(aq_wait_released(name, consumer, delivery, false, AQ_ANY_KEY,
													  timeout_arg(fcinfo, single ? 1 : 2), NULL, NULL));
	bool		isnull = false;

	PG_RETURN_DATUM(aq_rows_one(fcinfo, &value, &isnull));
}

static char **
names_of(ArrayType *array, int *n)
{
	Datum	   *elements;
	bool	   *nulls;
	char	  **names;

	deconstruct_array(array, TEXTOID, -1, false, TYPALIGN_INT, &elements, &nulls, n);
	names = palloc0(*n * sizeof(char *) + 1);
	for (int i = 0; i < *n; i++)
		if (!nulls[i])
			names[i] = TextDatumGetCString(elements[i]);
	return names;
}

/* delivery: the requested mode, and the mode of the message found. */
int
aq_wait_listen_released(int n, char **queues, char **consumers, int *delivery, int64 timeout_us)
{
	Listening	listening = {.channel = aq_parameters_listen_wakeup == AQ_LISTEN_BROADCAST};
	int			found;

	make_entries(&listening, n, queues, consumers, NULL, NULL, *delivery);
	found = listen_to(&listening, false, timeout_us);
	if (found < 0)
		return found;
	/* a message does not hide that a later queue of the list does not exist */
	for (int i = found + 1; i < listening.n; i++)
		if (listening.known[i] == 0)
			(void) queue_of(&listening, i);
	*delivery = listening.deliveries[found];
	return found / (listening.n / n);
}

/* Checks that each pair has a queue and occurs only once. */
static void
check_pairs(int n, char **queues, char **consumers)
{
	for (int i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (queues[i] == NULL)
			ereport(ERROR,
					aq_error(AQ_ERR_LISTEN_ARGUMENT, "queue name %d of the list is null", i + 1));
		for (int j = 0; j < i; j++)
			if (strcmp(queues[i], queues[j]) == 0 &&
				(consumers[i] == NULL || consumers[j] == NULL || strcmp(consumers[i], consumers[j]) == 0))
				ereport(ERROR,
						aq_error(AQ_ERR_LISTEN_ARGUMENT,
								 "queue \"%s\" is in the list twice for the same consumer", queues[i]));
	}
}

/*
 * aq.listen(queue_names, consumers, timeout, queue_name, consumer), or with
 * delivery_mode behind timeout and message_delivery_mode at the end.
 */

PG_FUNCTION_INFO_V1(aq_wait_listen);
Datum
aq_wait_listen(PG_FUNCTION_ARGS)
{
	AQ_TIMED(AQ_TIME_LISTEN);
	Datum		values[3] = {0};
	bool		nulls[3] = {true, true, true};
	char	  **queues,
			  **consumers;
	int			n,
				nconsumers,
				found;
	int			delivery = PG_NARGS() > 5 ? aq_args_delivery(fcinfo, 3) : AQ_PERSISTENT;

	if (PG_ARGISNULL(0))
		ereport(ERROR, aq_error(AQ_ERR_ARGUMENT_NULL, "\"queue_names\" must not be null"));
	queues = names_of(PG_GETARG_ARRAYTYPE_P(0), &n);
	nconsumers = n;
	if (PG_ARGISNULL(1))
		consumers = palloc0((n + 1) * sizeof(char *));
	else
		consumers = names_of(PG_GETARG_ARRAYTYPE_P(1), &nconsumers);
	if (n != nconsumers || n == 0)
		ereport(ERROR,
				aq_error(AQ_ERR_LISTEN_ARGUMENT,
						 "listen needs as many consumers as queues, and at least one: got %d and %d",
						 nconsumers, n),
				errhint("Pass one consumer per queue, null for a queue with a single consumer."));
	check_pairs(n, queues, consumers);

	found = aq_wait_listen_released(n, queues, consumers, &delivery, timeout_arg(fcinfo, 2));
	if (found >= 0)
	{
		values[0] = CStringGetTextDatum(queues[found]);
		nulls[0] = false;
		if (consumers[found] != NULL)
		{
			values[1] = CStringGetTextDatum(consumers[found]);
			nulls[1] = false;
		}
		values[2] = CStringGetTextDatum(delivery == AQ_BUFFERED ? "buffered" : "persistent");
		nulls[2] = false;
	}
	PG_RETURN_DATUM(aq_rows_one(fcinfo, values, nulls));
}
