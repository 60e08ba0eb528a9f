/*-------------------------------------------------------------------------
 *
 * holds.c
 *	  Holds on recipients, which must keep their positions while a session uses
 *	  them.
 *
 * The worker frees the position of a recipient that has no messages: see
 * recipient.c.  Before it commits, there may be an uncommitted message that is
 * not counted yet, or a session may know the position from an outdated
 * description.  So a transaction that enqueues for a recipient holds it from
 * before the first message until it has ended, and a dequeue holds it while it
 * takes messages.
 *
 * A session counts its hold, then reads whether the position is closing; the
 * worker closes it, then reads the holds.  Both execute a barrier in between,
 * so at least one of the two sees the other.  A transaction's messages are
 * counted before its holds end: as the recipient's, or, if it is prepared, as
 * in doubt.
 *
 * Subscribers need no holds: they are removed only by aq.unsubscribe().
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/memory/memory_private.h"

#include "utils/memutils.h"

/*
 * The positions that the transaction holds in a queue, which stays pinned
 * until its end.
 */
typedef struct Held
{
	AqQueueShm *shm;
	Bitmapset  *positions;		/* in TopMemoryContext */
	Bitmapset  *kept;			/* those for which it has enqueued; also in TopMemoryContext */
} Held;

static Held *held;
static int	nheld,
			held_size;

/* A buffered queue uses the consumers' entries of its persistent queue. */
static AqQueue *
queue_of(AqQueue *queue)
{
	return queue->persistent != NULL ? queue->persistent : queue;
}

static Held *
find_held(const AqQueueShm *shm)
{
	for (int i = 0; i < nheld; i++)
		if (held[i].shm == shm)
			return &held[i];
	return NULL;
}

/* Is the description's recipient still at its position, and not closing? */
static bool
is_allowed(AqConsumerShm *place, const AqConsumer *recipient)
{
	uint64		number = (uint64) recipient->number;

	return pg_atomic_read_u64(&place->number) == number && pg_atomic_read_u64(&place->closing) != number;
}

bool
aq_holds_are_allowed(AqQueue *queue, const AqConsumer *recipient)
{
	aq_pins_pin(queue_of(queue));
	return is_allowed(aq_shm_consumer(queue_of(queue)->shm, recipient->position), recipient);
}

static Held *
make_held(AqQueueShm *shm)
{
	Held	   *entry = find_held(shm);

	if (entry == NULL)
	{
		held = aq_array_room(held, &held_size, nheld + 1, sizeof(Held));
		entry = &held[nheld++];
		*entry = (Held) {.shm = shm};
	}
	return entry;
}

/*
 * Holds the recipient until the transaction has ended.  Returns false if its
 * position is being freed, or was freed: then the caller must look it up
 * again. *new: the recipient was not held before; then aq_holds_drop() ends
 * the hold, unless the transaction has enqueued for the recipient meanwhile.
 * An enqueuer passes NULL.
 */
bool
aq_holds_take(AqQueue *queue, const AqConsumer *recipient, bool *new)
{
	int			position = recipient->position;
	AqConsumerShm *place;
	MemoryContext old;
	Held	   *entry;
	bool		first;

	aq_pins_pin(queue_of(queue));
	queue = queue_of(queue);
	place = aq_shm_consumer(queue->shm, position);
	old = MemoryContextSwitchTo(TopMemoryContext);
	entry = make_held(queue->shm);
	first = !bms_is_member(position, entry->positions);
	if (new != NULL)
		*new = false;
	else
		entry->kept = bms_add_member(entry->kept, position);
	if (first)
		entry->positions = bms_add_member(entry->positions, position);
	MemoryContextSwitchTo(old);
	/* no error can be raised until the hold is recorded in both places */
	if (first)
		pg_atomic_fetch_add_u32(&place->holds, 1);
	if (is_allowed(place, recipient))
	{
		if (new != NULL)
			*new = first;
		return true;
	}
	/* if it was held before, the position now has another consumer */
	if (first)
	{
		entry->kept = bms_del_member(entry->kept, position);
		aq_holds_drop(queue, position);
	}
	return false;
}

/* Ends the hold of a dequeue before the end of the transaction. */
void
aq_holds_drop(AqQueue *queue, int position)
{
	Held	   *entry = find_held(queue_of(queue)->shm);

	if (entry == NULL || !bms_is_member(position, entry->positions) || bms_is_member(position, entry->kept))
		return;
	pg_atomic_fetch_sub_u32(&aq_shm_consumer(entry->shm, position)->holds, 1);
	entry->positions = bms_del_member(entry->positions, position);
}

/*
 * Called at the end of the transaction, after its messages were counted.  Does
 * not raise an error.
 */
void
aq_holds_end(void)
{
	for (int i = 0; i < nheld; i++)
	{
		int			position = -1;

		while ((position = bms_next_member(held[i].positions, position)) >= 0)
			pg_atomic_fetch_sub_u32(&aq_shm_consumer(held[i].shm, position)->holds, 1);
		bms_free(held[i].positions);
		bms_free(held[i].kept);
	}
	nheld = 0;
}

/* Is the position of its latest recipient closing, or was it freed? */
bool
aq_holds_are_closing(AqQueueShm *shm, int position)
{
	AqConsumerShm *place = aq_shm_consumer(shm, position);
	uint64		closing = place != NULL ? pg_atomic_read_u64(&place->closing) : 0;

	return closing != 0 && closing == pg_atomic_read_u64(&place->number);
}

/*
 * Reopens positions that an error has left closing.  The caller has the
 * queue's lock, so no session is freeing positions now.
 */
void
aq_holds_reopen(AqQueue *queue)
{
	aq_pins_pin(queue);
	for (int i = 0; i < queue->nconsumers; i++)
	{
		AqConsumerShm *place = aq_shm_consumer(queue->shm, queue->consumers[i].position);

		if (queue->consumers[i].name != NULL && aq_holds_are_closing(queue->shm, queue->consumers[i].position))
			pg_atomic_write_u64(&place->closing, 0);
	}
}

/* --- aq.check() -------------------------------------------------------------- */

static bool
has_consumer(const AqQueue *queue, int position)
{
	for (int i = 0; i < queue->nconsumers; i++)
		if (queue->consumers[i].position == position)
			return true;
	return false;
}

static void
check_place(AqQueue *queue, int position, AqFindings *findings)
{
	char	   *place = psprintf("consumer %d", position);
	uint32		holds = pg_atomic_read_u32(&aq_shm_consumer(queue->shm, position)->holds);
	uint32		most = aq_session_count_in_transactions();
	bool		there = has_consumer(queue, position);

	if (holds > most)
		aq_finding_add(findings, place, "transactions that hold the recipient", holds, most, NULL);
	if (there && !aq_consumer_removed(aq_shm_consumer(queue->shm, position)) && aq_holds_are_closing(queue->shm, position))
		aq_finding_add(findings, place, "exists, but its position is being freed", 1, 0, NULL);
	if (!there)
		aq_finding_compare(findings, place, "messages of a position without a consumer",
						   aq_lag_of(queue->shm, position), 0);
}

/* The caller has pinned the queue. */
void
aq_holds_check(AqQueue *queue, AqFindings *findings)
{
	for (int position = 0; queue->multi && position < AQ_POSITIONS; position++)
		if (aq_shm_consumer(queue->shm, position) != NULL)
			check_place(queue, position, findings);
}
