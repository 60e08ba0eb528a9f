/*-------------------------------------------------------------------------
 *
 * pins.c
 *	  What a transaction holds of queues: pins on their shared memory, and the
 *	  queues it has created or dropped.
 *
 * A pin is taken at the transaction's first use of a queue and given back at
 * its end, after the store has settled the transaction's messages.  It is
 * what makes the queue's shared memory safe to touch even when the queue is
 * dropped meanwhile.
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

/* in TopMemoryContext, grown as needed, emptied at the transaction's end */
static Pin *pins;
static int	npins,
			pins_size;
static Change *changes;
static int	nchanges,
			changes_size;
static bool ddl;				/* a definition was changed */



AqQueueShm *
aq_xact_pinned(int32 id)
{
	for (int i = 0; i < npins; i++)
		if (pins[i].id == id)
			return aq_queue_shm_by_index(pins[i].object->index);
	return NULL;
}

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

void
aq_queue_pin(AqQueue *queue)
{
	AqObject   *object;
	AqQueueShm *shm;
	bool		must_load;

	if (queue->shm != NULL)
	{
		/* of this transaction? the pin may be an earlier one's */
		if (npins > 0 && aq_xact_pinned(queue->id) == queue->shm)
		{
			make_consumers(queue);
			return;
		}
		queue->shm = NULL;
		queue->consumers_made = false;
	}
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
	npins++;
	shm = aq_queue_shm_by_index(object->index);

	if (must_load)
	{
		PG_TRY();
		{
			shm->object = object;
			shm->database = MyDatabaseId;
			shm->queue_id = queue->id;
			shm->key = queue->key;
			shm->single = !queue->multi;
			queue->shm = shm;
			make_consumers(queue);
			aq_store->load(queue, shm);
		}
		PG_CATCH();
		{
			queue->shm = NULL;
			aq_object_loaded(object, false);
			PG_RE_THROW();
		}
		PG_END_TRY();
		aq_object_loaded(object, true);
	}
	queue->shm = shm;
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
	aq_queue_post_work(shm, AQ_WORK_REMOVED);
}

/* Needs no pin of ours: an entry that was freed meanwhile has no waiters. */
static void
wake_waiters(int32 id)
{
	AqObject   *object = aq_object_find(MyDatabaseId, id);

	if (object != NULL)
		aq_wake_everybody(aq_queue_shm_by_index(object->index));
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
			aq_object_drop(MyDatabaseId, changes[i].id);
	}
	nchanges = 0;
	if (ddl)
		aq_catalog_stale();		/* what was the transaction's own is everybody's */
	ddl = false;

	for (int i = npins - 1; i >= 0; i--)
		aq_object_unpin(pins[i].object);
	npins = 0;
}
