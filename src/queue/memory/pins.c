/*-------------------------------------------------------------------------
 *
 * pins.c
 *	  A session's pins on the shared memory of queues, and the queues that its
 *	  transaction uses.
 *
 * While a queue is pinned, its shared memory is not freed, even if the queue
 * is dropped meanwhile.  A pin is taken at the session's first use of a queue
 * and kept, because with a pin per transaction the object's mutex was the most
 * contended one.  It is released when the session ends, at the end of its next
 * transaction after a drop, and when handles are scarce.
 *
 * With pgaq.session_pins off, and in the worker, each use locks the object,
 * pins it and unlocks it, and the pin lasts until the end of the transaction,
 * because the transaction's notes point to the queue.  Between transactions
 * the session only has the null lock on the handle, and checks the handle at
 * the next use.
 *
 * Queue ids are never reused, so no other session can find the object of a
 * queue that this transaction has created; if the creation is rolled back,
 * even to a savepoint, the object is dropped.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/memory/memory_private.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "utils/memutils.h"

typedef struct Pin
{
	int32		id;
	AqObject   *object;			/* the session's copy, if it is hot */
	uint32		serial;			/* serial of the object, while it is not pinned */
	uint32		pins;			/* 0: the session only has the null lock */
	uint64		used_in;		/* number of the session's transaction */
	bool		stale;			/* release it at the end of the transaction */
	bool		held;			/* one of the pins outlasts transactions: see aq_pins_keep */
	bool		used;			/* the transaction has enqueued or dequeued: see users.c */
	bool		again;			/* and has since begun another call */
	int			counter;		/* which counts it */
	bool		put;			/* it has enqueued persistent messages */
	bool		taken;			/* it has dequeued messages, */
	int			taker;			/* for this consumer */
	Bitmapset  *takers;			/* and for these, if there are others; in TopMemoryContext */
	int			dequeuer;		/* consumer of the running dequeue; -1: none */
	int			next;			/* in its chain: see first_of_id */
} Pin;

/* in TopMemoryContext, grown as needed */
static Pin *pins;
static int	npins,
			pins_size;
static int	nused;				/* number of pins that the transaction uses */
static int	first_used;			/* index of the first one */

/*
 * index where a pin was last found, by the queue's id and by its entry in
 * shared memory
 */
#define HINTS 4096
static int	by_id[HINTS];
static int	by_place[HINTS];

/*
 * The pins in chains by the queue's id, for a session that has looked at more
 * queues than there are hints.  They are made again when a pin was moved.
 */
static int *chains;
static int	nchains;
static bool chained;

static bool untidy;				/* some are stale */

static uint64 transactions;		/* number of the current transaction */
static uint32 pressure_seen;
static uint32 drops_seen;

/* Are pins kept between transactions? */
static inline bool
pins_last(void)
{
	return aq_parameters_session_pins && !aq_job_in_worker();
}

/* Makes the entries in shared memory of the description's consumers. */
static void
make_consumers(AqQueue *queue)
{
	if (queue->consumers_made)
		return;
	for (int i = 0; i < queue->nconsumers; i++)
	{
		const AqConsumer *consumer = &queue->consumers[i];
		AqConsumerShm *place = aq_shm_consumer_make(queue->shm, consumer->position);

		if (pg_atomic_read_u64(&place->number) < (uint64) consumer->number)
			aq_traffic_begin(queue->shm, place, consumer->number);
		if (consumer->name == NULL)
		{
			aq_raise_to(&place->removed, consumer->number);
			if (queue->id > 0)	/* the persistent queue does this for its buffered queue */
				aq_work_post(queue->shm, AQ_WORK_POSITIONS);
		}
	}
	queue->consumers_made = true;
}

static inline bool
is_of_id(int i, int32 id)
{
	return i < npins && pins[i].id == id && !pins[i].stale;
}

static void
enter_chain(int i)
{
	int		   *first = &chains[(uint32) pins[i].id % nchains];

	pins[i].next = *first;
	*first = i;
}

/* The first pin of the chain in which those of this queue are; -1: there is none. */
static int
first_of_id(int32 id)
{
	if (npins == 0)
		return -1;
	if (!chained)
	{
		memset(chains, -1, nchains * sizeof(int));
		for (int i = 0; i < npins; i++)
			enter_chain(i);
		chained = true;
	}
	return chains[(uint32) id % nchains];
}

static Pin *
find_pin(int32 id)
{
	int		   *hint = &by_id[(uint32) id % HINTS];

	if (!is_of_id(*hint, id))
		for (int i = first_of_id(id); i >= 0; i = pins[i].next)
			if (is_of_id(i, id))
				*hint = i;
	return is_of_id(*hint, id) ? &pins[*hint] : NULL;
}

static AqQueueShm *
shm_of(const Pin *pin)
{
	return aq_shm_by_index(pin->object->master);
}

/* NULL if the session has neither a pin nor the null lock on the queue. */
AqQueueShm *
aq_pins_shm_of(int32 id)
{
	Pin		   *pin = find_pin(id);

	return pin != NULL ? shm_of(pin) : NULL;
}

/* --- users: see users.c ------------------------------------------------------- */

static inline bool
is_of_place(int i, const AqQueueShm *shm)
{
	return i < npins && pins[i].pins > 0 && shm_of(&pins[i]) == shm;
}

/* The session's pin of this entry; it may have become stale. */
static Pin *
pin_of(const AqQueueShm *shm)
{
	int		   *hint = &by_place[shm->object->index % HINTS];

	if (!is_of_place(*hint, shm))
		for (int i = first_of_id(shm->queue_id); i >= 0; i = pins[i].next)
			if (is_of_place(i, shm))
				*hint = i;
	if (!is_of_place(*hint, shm))
		elog(ERROR, "queue %d is not pinned", shm->queue_id);
	return &pins[*hint];
}

/*
 * Makes the transaction a user of the queue; returns true if it was none before.
 */
bool
aq_pins_use(AqQueueShm *shm)
{
	Pin		   *pin = pin_of(shm);

	if (pin->used)
	{
		pin->again = true;
		return false;
	}
	pin->used = true;
	pin->again = false;
	pin->counter = aq_users_add(shm);
	pin->put = pin->taken = false;
	if (nused == 0 || pin - pins < first_used)
		first_used = pin - pins;
	nused++;
	return true;
}

/* Records that the transaction, which uses the queue, has enqueued. */
void
aq_pins_note_put(const AqQueueShm *shm)
{
	pin_of(shm)->put = true;
}

/* Records that it has dequeued for the consumer. */
void
aq_pins_note_taken(const AqQueueShm *shm, int position)
{
	Pin		   *pin = pin_of(shm);

	if (!pin->taken)
	{
		pin->taken = true;
		pin->taker = position;
	}
	else if (pin->taker != position)
	{
		MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);

		pin->takers = bms_add_member(pin->takers, position);
		MemoryContextSwitchTo(old);
	}
}

/*
 * Called when a dequeue for the consumer begins; its time is counted for the
 * consumer.
 */
void
aq_pins_begin_dequeue(const AqQueueShm *shm, int position)
{
	Pin		   *pin = pin_of(shm);

	pin->dequeuer = position;
	aq_traffic_add_for(shm_of(pin), position, AQ_TRAFFIC_EXECUTIONS, 1);
}

/*
 * The call that made the transaction a user of the queue leaves nothing for its
 * end.  So the transaction is no longer a user, unless functions of users, for
 * example in a condition, have used the queue during the call.
 */
void
aq_pins_unuse(AqQueueShm *shm)
{
	Pin		   *pin = pin_of(shm);

	if (pin->again)
		return;
	pin->used = false;
	nused--;
	aq_users_remove(shm, pin->counter);
}

bool
aq_pins_is_used(const AqQueueShm *shm)
{
	return pin_of(shm)->used;
}

/*
 * Counts the transaction for each consumer for which it has dequeued, and once
 * for the queue.
 */
static void
count_takers(Pin *pin, bool commit)
{
	AqQueueShm *shm = shm_of(pin);
	int			position = -1;

	if (commit && pin->taken)
		aq_traffic_add_for(shm, pin->taker, AQ_TRAFFIC_DEQUEUE_TRANSACTIONS, 1);
	if (pin->takers == NULL)
		return;
	while (commit && (position = bms_next_member(pin->takers, position)) >= 0)
	{
		AqConsumerShm *consumer = aq_shm_consumer(shm, position);

		if (consumer != NULL)
			pg_atomic_fetch_add_u64(&consumer->traffic[AQ_TRAFFIC_DEQUEUE_TRANSACTIONS], 1);
	}
	bms_free(pin->takers);
	pin->takers = NULL;
}

/* Called at the end of a transaction. */
void
aq_pins_end_use(bool commit)
{
	aq_users_forget_taken();
	for (int i = first_used; i < npins && nused > 0; i++)
	{
		AqQueueShm *shm;

		if (!pins[i].used)
			continue;
		shm = shm_of(&pins[i]);
		if (commit && pins[i].put)
			aq_traffic_add(shm, AQ_TRAFFIC_ENQUEUE_TRANSACTIONS, 1);
		count_takers(&pins[i], commit);
		pins[i].used = false;
		nused--;
		aq_users_remove(shm, pins[i].counter);
	}
}

/* --- pins -------------------------------------------------------------------- */

/* Makes room for one more pin, at pins[npins]. */
static void
make_room(void)
{
	int			had = nchains;

	pins = aq_array_room(pins, &pins_size, npins + 1, sizeof(Pin));
	chains = aq_array_room(chains, &nchains, pins_size, sizeof(int));
	chained &= nchains == had;
}

/*
 * Has the persistent queue recipients?  The worker handles their positions for
 * the buffered queue, too.
 */
static bool
has_recipients(const AqQueue *queue)
{
	bool		found = false;

	for (int i = 0; i < queue->nconsumers && queue->id > 0 && !found; i++)
		found = queue->consumers[i].name != NULL && !queue->consumers[i].subscriber;
	return found;
}

/* May the owner have one more queue in use?  The session first releases pins that it does not need. */
static void
check_share(const AqQueueShm *shm)
{
	if (!aq_share_allows(AQ_SHARE_QUEUES, shm, 1) && aq_pins_give_back())
		return;
	aq_share_check(AQ_SHARE_QUEUES, shm, 1);	/* while it loads, its pin is not counted */
}

/*
 * The name of a table that a user has dropped directly; NULL: none.  A list of
 * tables may be older than a drop of the queue, the second one is not.
 */
char *
aq_pins_lost_table(const AqQueue *queue)
{
	bool		lost = queue->store->lost_table != NULL && queue->store->lost_table(queue) != NULL;

	return lost ? queue->store->lost_table(queue) : NULL;
}

/*
 * Has a table of the queue been dropped by hand?  Then raises an error, or a
 * WARNING for a view, which shows what is known of such a queue, and all others.
 */
bool
aq_pins_check_lost_table(const AqQueue *queue, int level)
{
	char	   *table = aq_pins_lost_table(queue);

	if (table != NULL)
		ereport(level,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("queue \"%s\" cannot be used: table \"aq_data.%s\" is missing", queue->name, table),
				 errhint("Restore it from a backup, or drop the queue with force => true.")));
	return table != NULL;
}

/* Raises the error for a table that is not there: the queue was dropped, or one of its tables by hand. */
pg_noreturn void
aq_pins_refuse_missing(AqQueue *queue)
{
	if (aq_catalog_read(queue->id) != NULL)
		(void) aq_pins_check_lost_table(queue, ERROR);
	ereport(ERROR,
			aq_error(AQ_ERR_QUEUE_UNDEFINED, "queue \"%s\" does not exist", queue->name),
			errdetail("It has just been dropped."));
}

/*
 * Called by the first session that pins the object: fills in the entry in
 * shared memory, from the latest committed state of the queue.  If that fails,
 * the object is freed, because the load is a claim of the cache.  The
 * session's own description may be older than a drop or change that has just
 * been committed, because its invalidation is sent after the callback that
 * removes the object.  missing_ok: return false, with nothing loaded, if the queue
 * was dropped, or one of its tables.
 */
static bool
load(AqQueue *queue, AqObject *object, bool missing_ok)
{
	AqQueueShm *shm = aq_shm_by_index(object->index);
	AqQueue    *latest;
	AqQueue    *current;

	queue->shm = NULL;
	aq_point("object-loading");
	latest = aq_catalog_read(queue->id);
	current = latest != NULL && queue->id < 0 ? latest->buffered : latest;
	if (current == NULL && missing_ok)
	{
		if (latest != NULL)
			MemoryContextDelete(latest->context);
		return false;
	}
	if (current == NULL)
		ereport(ERROR,
				aq_error(AQ_ERR_QUEUE_UNDEFINED, "queue \"%s\" does not exist", queue->name),
				errdetail("It has just been dropped."));
	if (missing_ok && aq_pins_check_lost_table(current, WARNING))
	{
		MemoryContextDelete(latest->context);
		return false;
	}
	MemoryContextSetParent(latest->context, CurrentMemoryContext);
	shm->owner = current->owner;
	if (!missing_ok && !aq_job_in_worker())
		check_share(shm);
	shm->object = object;
	shm->database = MyDatabaseId;
	shm->queue_id = current->id;
	shm->key = current->key;
	shm->store = current->store->kind;
	shm->single = !current->multi;
	shm->converted = current->converted;
	shm->table_done = current->converted && current->store->kind == AQ_STORE_SHARDED;
	aq_raise_to(&shm->definition, current->definition);
	if (current->store->kind == AQ_STORE_BOTH)
		aq_work_post(shm, AQ_WORK_CONVERT);
	current->shm = shm;
	make_consumers(current);
	if (current->distributed)
		(void) aq_shm_consumer_make(shm, AQ_ORIGIN_POSITION);
	pg_atomic_write_u32(&shm->forwarded, current->nclosed > 0);
	current->store->load(current, shm);
	if (has_recipients(current))
		aq_work_post(shm, AQ_WORK_IDLE);
	aq_traffic_time(shm, AQ_TRAFFIC_SINCE, GetCurrentTimestamp());
	MemoryContextDelete(latest->context);
	make_room();				/* for the pin */
	aq_object_loaded(object);
	/* a commit that does not find the object before is noted in the clock only */
	aq_raise_to(&shm->last_change, aq_definition_clock_now());
	/*
	 * post the work that the store has requested while loading, when the
	 * worker skipped the queue
	 */
	aq_jobs_post();
	return true;
}

/* Enters a pinned object, for which there is room. */
static Pin *
enter_pin(int32 id, AqObject *object)
{
	Pin		   *pin = &pins[npins++];

	*pin = (Pin) {.id = id, .object = object, .serial = object->serial, .pins = 1,
	.used_in = transactions, .dequeuer = -1};
	if (chained)
		enter_chain(npins - 1);
	return pin;
}

/*
 * Pins the queue's object, and loads it if it is new. modest: returns NULL if
 * it is not in memory and few handles are free, or if it was dropped just now.
 */
static Pin *
new_pin(AqQueue *queue, bool modest)
{
	AqObject   *object;
	bool		must_load;

	aq_point("object-wanted");
	/* from now on, posts of this session reach the worker */
	aq_jobs_ensure_worker();
	make_room();
	for (;;)
	{
		object = modest ? aq_object_pin_modestly(MyDatabaseId, queue->id, &must_load)
			: aq_object_pin(MyDatabaseId, queue->id, &must_load);
		if (object == NULL)
			return NULL;
		if (must_load || aq_shm_by_index(object->master)->key == queue->key)
			break;
		/*
		 * the object is left from a dropped extension, or from a dropped
		 * database with the same OID
		 */
		aq_object_drop(MyDatabaseId, queue->id);
		aq_object_unpin(object);
	}
	if (must_load && !load(queue, object, modest))
	{
		aq_object_not_loaded(object);
		return NULL;
	}
	return enter_pin(queue->id, object);
}

/*
 * Uses the session's pin or handle; returns false if the object has to be
 * found again.
 */
static bool
use_pin(Pin *pin, const AqQueue *queue)
{
	if (pin->pins == 0 || !pins_last())
	{
		if (!aq_object_check(pin->object, pin->serial))
			return false;
		pin->pins++;
	}
	pin->used_in = transactions;

	/* read without the mutex: locks on the tables order this with a drop */
	return pin->object->state == AQ_OBJECT_VALID && pin->object->copies == 0 &&
		shm_of(pin)->key == queue->key;
}

/*
 * Adds the time of an operation to the queue's counters; it is lost if an
 * error has released the pin.
 */
void
aq_pins_book_time(int32 id, AqTimeKind kind, uint64 elapsed, uint64 cpu)
{
	Pin		   *pin = find_pin(id);
	bool		enqueue = kind == AQ_TIME_ENQUEUE;
	AqTraffic	elapsed_of = enqueue ? AQ_TRAFFIC_ENQUEUE_ELAPSED : AQ_TRAFFIC_DEQUEUE_ELAPSED;
	AqTraffic	cpu_of = enqueue ? AQ_TRAFFIC_ENQUEUE_CPU : AQ_TRAFFIC_DEQUEUE_CPU;
	int			position;

	if (pin == NULL)
		return;
	position = pin->dequeuer;
	pin->dequeuer = -1;
	if (pin->pins == 0 || !(enqueue || kind == AQ_TIME_DEQUEUE))
		return;
	if (enqueue || position < 0)
	{
		aq_traffic_add(shm_of(pin), elapsed_of, elapsed);
		if (cpu > 0)
			aq_traffic_add(shm_of(pin), cpu_of, cpu);
	}
	else
	{
		aq_traffic_add_for(shm_of(pin), position, elapsed_of, elapsed);
		if (cpu > 0)
			aq_traffic_add_for(shm_of(pin), position, cpu_of, cpu);
	}
}

static void
unpin(Pin *pin)
{
	for (; pin->pins > (pin->held ? 1 : 0); pin->pins--)
		aq_object_unpin(pin->object);
}

/*
 * Is the queue, just pinned, within its owner's share?  One that is in memory is
 * one more in use when a session is the first to pin it.  While few are pinned, no
 * role is above its share.  A superuser may have to drop it.
 */
static bool
is_within_share(const Pin *pin)
{
	if (aq_job_in_worker() || pin->object->pins > 1 || !aq_share_is_scarce(AQ_SHARE_QUEUES, aq_handle_pinned()) || superuser() ||
		aq_share_allows(AQ_SHARE_QUEUES, shm_of(pin), 0))
		return true;
	return aq_pins_give_back() && aq_share_allows(AQ_SHARE_QUEUES, shm_of(pin), 0);
}

/* The common part of aq_pins_pin and aq_pins_peek (modest). */
static Pin *
pin_queue(AqQueue *queue, bool modest)
{
	Pin		   *pin = find_pin(queue->id);
	bool		fresh = pin == NULL || pin->pins == 0;

	aq_time_queue(queue->id);
	if (pin == NULL || !use_pin(pin, queue))
	{
		if (pin != NULL)
			pin->stale = untidy = true; /* its memory is kept until the end of the transaction */
		queue->consumers_made = false;
		pin = new_pin(queue, modest);
		if (pin == NULL)
			return NULL;
	}
	if (fresh && !modest && !is_within_share(pin))
	{
		AqQueueShm *shm = shm_of(pin);

		unpin(pin);				/* the error does not leave it in use */
		aq_share_check(AQ_SHARE_QUEUES, shm, 1);
		return pin_queue(queue, modest);
	}
	queue->shm = shm_of(pin);
	if (queue->object != pin->object || queue->serial != pin->serial)
	{
		queue->object = pin->object;
		queue->serial = pin->serial;
		queue->version = pin->object->version;
		queue->consumers_made = false;
	}
	if (queue->shm->owner != queue->owner)
		queue->shm->owner = queue->owner;
	make_consumers(queue);
	return pin;
}

/*
 * Pins the queue, if it is not pinned yet, and sets the description's pointers
 * to shared memory.
 */
void
aq_pins_pin(AqQueue *queue)
{
	if (queue->distributed)
		aq_peers_prepare();
	(void) pin_queue(queue, false);
}

/* Pins a queue that is to be dropped; one with missing tables cannot be loaded. */
void
aq_pins_pin_to_drop(AqQueue *queue, bool force)
{
	if (!force || aq_pins_lost_table(queue) == NULL)
		aq_pins_pin(queue);
}

/*
 * The same for a view, which reads one queue after the other: only until
 * aq_pins_peek_end(), and only if the queue is in memory or there is enough
 * room for it.  Returns false if it is not pinned, also if another session has
 * dropped it since the view began.
 */
bool
aq_pins_peek(AqQueue *queue, AqPeek *peek)
{
	Pin		   *pin = find_pin(queue->id);

	*peek = (AqPeek) {.id = queue->id};
	if (pin != NULL)
	{
		peek->object = pin->object;
		peek->pins = pin->pins;
		peek->used_in = pin->used_in;
	}
	pin = pin_queue(queue, true);
	if (pin == NULL)
		return false;
	if (pin->object != peek->object)
	{
		peek->object = pin->object;
		peek->pins = 0;
	}
	return true;
}

/* Restores the state of the pin before aq_pins_peek(). */
void
aq_pins_peek_end(const AqPeek *peek)
{
	Pin		   *pin = find_pin(peek->id);

	if (pin == NULL || pin->object != peek->object)
		return;
	for (; pin->pins > peek->pins; pin->pins--)
		aq_object_unpin(pin->object);
	if (pin->pins > 0)
		pin->used_in = peek->used_in;
}

/*
 * Pins the queue, and returns its description according to the latest commit.
 * A session that has changed the queue announces this in shared memory when it
 * commits, slightly before PostgreSQL sends its invalidations. put: the caller
 * is about to enqueue.
 */
AqQueue *
aq_pins_pin_current(AqQueue *queue, bool put)
{
	uint64		definition;
	char	   *name;

	aq_pins_pin(queue);
	if (put && !aq_queue_is_sharded(queue))
	{
		/*
		 * the transaction gets its id before it reads the flags: see convert.c
		 */
		(void) GetTopTransactionId();
		pg_memory_barrier();
	}
	definition = pg_atomic_read_u64(&queue->shm->definition);
	if (queue->definition >= definition && aq_catalog_is_current(queue))
		return queue;

	name = pstrdup(queue->name);
	queue->generation = 0;		/* read it again */
	queue = aq_catalog_get_by_id(queue->id, true);
	if (queue == NULL)
		ereport(ERROR,
				aq_error(AQ_ERR_QUEUE_UNDEFINED, "queue \"%s\" does not exist", name),
				errdetail("It has just been dropped."));
	Assert(queue->definition >= definition);
	aq_pins_pin(queue);
	return queue;
}

/*
 * For the worker: keeps the object pinned over the transactions of its jobs;
 * returns false if it was dropped, or belongs to another database.
 */
bool
aq_pins_keep(AqObject *object)
{
	Pin		   *pin = NULL;

	make_room();
	if (!aq_object_pin_handle(object))
		return false;
	if (object->database != MyDatabaseId)
	{
		aq_object_unpin(object);
		return false;
	}
	for (int i = 0; i < npins && pin == NULL; i++)
		if (pins[i].object == object && pins[i].serial == object->serial && !pins[i].stale)
			pin = &pins[i];
	if (pin != NULL)
		pin->pins++;
	else
		pin = enter_pin((int32) object->id, object);
	pin->held = true;
	return true;
}

/* Ends this; called between transactions. */
void
aq_pins_release(void)
{
	for (int i = 0; i < npins; i++)
		pins[i].held = false;
	aq_pins_sweep();
}

/* Releases the pin and the null lock. */
static void
forget(int i)
{
	pins[i].held = false;
	unpin(&pins[i]);
	aq_object_forget(pins[i].object, pins[i].serial);
	pins[i] = pins[--npins];
	chained = false;
}

/*
 * Called when the cache is full: releases the pins that this transaction does
 * not use.
 */
bool
aq_pins_give_back(void)
{
	bool		any = false;

	for (int i = 0; i < npins; i++)
		if (pins[i].pins > 0 && pins[i].used_in != transactions)
		{
			unpin(&pins[i]);
			any = true;
		}
	return any;
}

/*
 * Releases pins that are no longer needed, and what the session knows of
 * dropped queues.
 * Called between transactions; does not raise an error.
 */
void
aq_pins_sweep(void)
{
	bool		last = pins_last() && !(npins > 0 && aq_handle_pins_are_scarce());
	uint32		pressure = aq_handle_pressure();
	uint32		drops = aq_handle_drops();

	aq_catalog_tidy();
	if (last && !untidy && pressure == pressure_seen && drops == drops_seen)
	{
		transactions++;
		return;
	}
	for (int i = npins - 1; i >= 0; i--)
	{
		Pin		   *pin = &pins[i];

		if (pin->held)
			unpin(pin);			/* leaves the one of aq_pins_keep */
		else if (pin->stale || (pin->pins == 0 ? pin->object->serial != pin->serial
								: pin->object->state == AQ_OBJECT_DROPPED))
		{
			if (!pin->stale)
				aq_catalog_forget(pin->id);
			forget(i);
		}
		else if (!last || (pressure != pressure_seen && pin->used_in != transactions))
			unpin(pin);
	}
	pressure_seen = pressure;
	drops_seen = drops;
	untidy = false;
	transactions++;
}

/* Called at the end of the session, outside a transaction. */
void
aq_pins_session_exit(void)
{
	while (npins > 0)
		forget(npins - 1);
}
