/*-------------------------------------------------------------------------
 *
 * pins.c
 *	  What a session holds of queues: pins on their shared memory, and the
 *	  queues its transaction has created, altered or dropped.
 *
 * A pin is taken at the session's first use of a queue and kept, because a pin
 * per transaction made the object's mutex the busiest place of all.  It is
 * what makes the queue's shared memory safe to touch even when the queue is
 * dropped meanwhile; it is given back when the session ends, or at the end of
 * its next transaction after the drop.
 *
 * A queue's id is never used twice, so an object that this transaction makes
 * for a queue it has just created cannot be found by others; when the
 * creation is rolled back, also to a savepoint, the object is dropped.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/queue_private.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "utils/memutils.h"

typedef struct Pin
{
	int32		id;
	AqObject   *object;
	bool		stale;			/* give it back at the transaction's end */
} Pin;

typedef struct Change
{
	int32		id;
	enum
	{
		CREATED, ALTERED, DROPPED, UNSUBSCRIBED
	}			kind;
	int			position;		/* UNSUBSCRIBED: of the consumer */
	SubTransactionId subid;
} Change;

/* in TopMemoryContext, grown as needed; changes are emptied at the transaction's end */
static Pin *pins;
static int	npins,
			pins_size;
static Change *changes;
static int	nchanges,
			changes_size;
static bool ddl;				/* a definition was changed */



/* Every consumer of the description has its place in shared memory. */
static void
make_consumers(AqQueue *queue)
{
	if (queue->consumers_made)
		return;
	for (int i = 0; i < queue->nconsumers; i++)
	{
		AqConsumerShm *consumer = aq_consumer_shm_make(queue->shm,
													   queue->consumers[i].position);

		if (queue->consumers[i].name == NULL)
		{
			consumer->removed = true;
			aq_queue_post_work(queue->shm, AQ_WORK_POSITIONS);
		}
	}
	queue->consumers_made = true;
}

static Pin *
find_pin(int32 id)
{
	for (int i = 0; i < npins; i++)
		if (pins[i].id == id && !pins[i].stale)
			return &pins[i];
	return NULL;
}

/* Pin the queue's object, and load it if it is new. */
static AqQueueShm *
new_pin(AqQueue *queue)
{
	AqObject   *object;
	AqQueueShm *shm;
	bool		must_load;

	/* from now on this session's posts reach the worker */
	(void) aq_jobs_ensure_worker();
	if (npins == pins_size)
	{
		int			size = Max(8, 2 * pins_size);

		pins = pins ? repalloc(pins, size * sizeof(Pin))
			: MemoryContextAlloc(TopMemoryContext, size * sizeof(Pin));
		pins_size = size;
	}

	for (;;)
	{
		object = aq_object_pin(MyDatabaseId, queue->id, &must_load);
		if (must_load || aq_queue_shm_by_index(object->index)->key == queue->key)
			break;
		/* left over from another extension or database of the same number */
		aq_object_drop(MyDatabaseId, queue->id);
		aq_object_unpin(object);
	}
	pins[npins].id = queue->id;
	pins[npins].object = object;
	pins[npins].stale = false;
	npins++;
	shm = aq_queue_shm_by_index(object->index);

	if (must_load)
	{
		PG_TRY();
		{
			/*
			 * The description may be older than a drop that has just
			 * committed: its invalidation is sent after the callback that
			 * took the object away.
			 */
			if (!aq_catalog_has_queue(queue->id))
				ereport(ERROR,
						aq_error(AQ_ERR_QUEUE_UNDEFINED, "queue \"%s\" does not exist", queue->name),
						errdetail("It was dropped just now."));
			shm->object = object;
			shm->database = MyDatabaseId;
			shm->queue_id = queue->id;
			shm->key = queue->key;
			shm->store = queue->store->kind;
			shm->single = !queue->multi;
			queue->shm = shm;
			make_consumers(queue);
			queue->store->load(queue, shm);
		}
		PG_CATCH();
		{
			queue->shm = NULL;
			queue->consumers_made = false;
			pins[npins - 1].stale = true;
			aq_object_loaded(object, false);
			/* nobody else is to find a queue that does not exist */
			aq_object_drop(MyDatabaseId, pins[npins - 1].id);
			PG_RE_THROW();
		}
		PG_END_TRY();
		aq_object_loaded(object, true);
		/* what the store has asked for while loading: the worker skipped the queue */
		aq_jobs_post();
	}
	return shm;
}

/*
 * See to it that the session has the queue pinned, and the description knows
 * where.
 */
void
aq_queue_pin(AqQueue *queue)
{
	Pin		   *pin = find_pin(queue->id);

	if (pin != NULL)
	{
		AqQueueShm *shm = aq_queue_shm_by_index(pin->object->index);

		/* read without the mutex: a drop is ordered by the locks on the tables */
		if (pin->object->state == AQ_OBJECT_VALID && shm->key == queue->key)
		{
			queue->shm = shm;
			make_consumers(queue);
			return;
		}
		pin->stale = true;		/* its memory stays until the transaction ends */
	}
	queue->consumers_made = false;
	queue->shm = new_pin(queue);
	make_consumers(queue);
}

static void
remember_change(int32 id, int kind)
{
	if (nchanges == changes_size)
	{
		int			size = Max(8, 2 * changes_size);

		changes = changes ? repalloc(changes, size * sizeof(Change))
			: MemoryContextAlloc(TopMemoryContext, size * sizeof(Change));
		changes_size = size;
	}
	changes[nchanges].id = id;
	changes[nchanges].kind = kind;
	changes[nchanges].subid = GetCurrentSubTransactionId();
	nchanges++;
}

void
aq_queue_created_here(int32 id)
{
	remember_change(id, CREATED);
}

void
aq_queue_dropped_here(int32 id)
{
	remember_change(id, DROPPED);
}

void
aq_queue_altered_here(int32 id)
{
	remember_change(id, ALTERED);
}

void
aq_consumer_removed_here(int32 id, int position)
{
	remember_change(id, UNSUBSCRIBED);
	changes[nchanges - 1].position = position;
}

bool
aq_xact_dropped(int32 id)
{
	for (int i = 0; i < nchanges; i++)
		if (changes[i].id == id && changes[i].kind == DROPPED)
			return true;
	return false;
}

bool
aq_xact_created(int32 id)
{
	for (int i = 0; i < nchanges; i++)
		if (changes[i].id == id && changes[i].kind == CREATED)
			return true;
	return false;
}

void
aq_xact_ddl(void)
{
	ddl = true;
}

bool
aq_xact_has_ddl(void)
{
	return ddl;
}

static void
unpin(int i)
{
	AqObject   *object = pins[i].object;

	pins[i] = pins[--npins];
	aq_object_unpin(object);
}

/* A subtransaction has ended. Does not raise. */
void
aq_queue_subxact_end(bool commit, SubTransactionId subid, SubTransactionId parent)
{
	int			kept = 0;

	for (int i = 0; i < nchanges; i++)
	{
		if (changes[i].subid == subid)
		{
			if (commit)
				changes[i].subid = parent;
			else
			{
				if (changes[i].kind == CREATED)
					aq_object_drop(MyDatabaseId, changes[i].id);
				continue;
			}
		}
		changes[kept++] = changes[i];
	}
	nchanges = kept;
}

/* Nothing counts for the consumer any more; the worker cleans up behind it. */
static void
end_consumer(int32 id, int position)
{
	AqObject   *object = aq_object_find(MyDatabaseId, id);
	AqQueueShm *shm;

	if (object == NULL)
		return;
	shm = aq_queue_shm_by_index(object->index);
	aq_consumer_shm(shm, position)->removed = true;
	aq_queue_post_work(shm, AQ_WORK_REMOVED | AQ_WORK_POSITIONS);
}

/* Needs no pin of ours: an entry that was freed meanwhile has no waiters. */
static void
wake_waiters(int32 id)
{
	AqObject   *object = aq_object_find(MyDatabaseId, id);

	if (object != NULL)
		aq_wake_everybody(aq_queue_shm_by_index(object->index));
}

/* Give back the pins on what was dropped.  Between transactions; does not raise. */
void
aq_pins_sweep(void)
{
	for (int i = npins - 1; i >= 0; i--)
		if (pins[i].stale || pins[i].object->state == AQ_OBJECT_DROPPED)
			unpin(i);
}

/* The transaction has ended, its messages are settled. Does not raise. */
void
aq_queue_xact_end(bool commit)
{
	for (int i = 0; i < nchanges; i++)
	{
		if (changes[i].kind == UNSUBSCRIBED && commit)
			end_consumer(changes[i].id, changes[i].position);
		/* waiters look at the definition again, and find the queue gone */
		if (changes[i].kind != CREATED && commit)
			wake_waiters(changes[i].id);
		/* created and rolled back, or dropped and committed */
		if (changes[i].kind == (commit ? DROPPED : CREATED))
		{
			aq_object_drop(MyDatabaseId, changes[i].id);
			aq_jobs_post();		/* the worker gives its pin back */
		}
	}
	nchanges = 0;
	if (ddl)
		aq_catalog_stale();		/* what was the transaction's own is everybody's */
	ddl = false;

	aq_pins_sweep();
}

/* The session ends, no transaction is open. */
void
aq_pins_session_exit(void)
{
	while (npins > 0)
		unpin(npins - 1);
}
