/*-------------------------------------------------------------------------
 *
 * ranges.c
 *	  Where among a consumer's rows there is nothing to dequeue.
 *
 * Consumed rows stay in the index until VACUUM may remove them, and while an
 * old snapshot is held it may not.  A consumer that walked the index from its
 * beginning would meet all of them again at each dequeue.  So a session that
 * has walked over many rows that cannot be dequeued remembers the range: the
 * next walk begins behind it.
 *
 * Invariant: no row between the ends of a range can be dequeued, now or later,
 * unless its key is announced after the range was added.  To announce keys is
 * to cut them out of all ranges, and to put them into the queue's ring of announcements:
 * a walk that has begun before the announcement, and may have seen the row as
 * it was, finds the keys there when it wants to add a range, and adds nothing.
 * So a row may be passed if whatever makes it ready announces it *after* a walk
 * can have seen it as it is:
 *	- what is gone for good (consumed and committed, enqueued and rolled back)
 *	  needs no announcement;
 *	- what a session has taken is announced when the transaction rolls back, in
 *	  whole or to a savepoint, after its end shows in the row, and when it is
 *	  prepared.  aq_takers_announce() knows the transactions that will do so;
 *	- what waits for its time is announced by the worker when the row that is
 *	  ready is in the index, and before it commits.
 * All other rows end the range:
 *	- what can be dequeued, or is locked, or has expired;
 *	- what a running transaction has enqueued: it announces the key when the row
 *	  is in the index, and says nothing when it commits;
 *	- what the worker is changing: the same;
 *	- what a prepared transaction has taken, which ends without a callback, and
 *	  what any transaction has changed that has not promised to announce.
 *
 * So nothing is lost but the short way: the ranges are empty after a restart,
 * and a consumer without memory for its own walks from the beginning.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "classic/classic_private.h"

#include "access/xact.h"

static bool
is_last(const Key *key)
{
	return key->key1 == PG_INT64_MAX && key->key2 == PG_INT64_MAX && key->step == PG_INT64_MAX;
}

/* Latch held. */
static RangeList *
list_of(ClassicQueue *cq, int position)
{
	AqChunk		chunk = cq->lists[position / LISTS_PER_CHUNK];

	if (chunk == 0)
		return NULL;
	chunk = ((AqChunk *) aq_chunk_ptr(chunk))[position % LISTS_PER_CHUNK];
	return chunk == 0 ? NULL : aq_chunk_ptr(chunk);
}

/* The same, made when there is a reserve of two chunks. Latch held. */
static RangeList *
list_make(ClassicQueue *cq, int position)
{
	AqChunk    *directory = &cq->lists[position / LISTS_PER_CHUNK];
	AqChunk    *entry;

	if (*directory == 0)
		*directory = aq_chunks_take();
	entry = (AqChunk *) aq_chunk_ptr(*directory) + position % LISTS_PER_CHUNK;
	if (*entry == 0)
		*entry = aq_chunks_take();
	return aq_chunk_ptr(*entry);
}

/* Does the range hold a key between the two, ends included? */
static bool
touches(const Range *range, const Key *lowest, const Key *highest)
{
	return key_compare(&range->after, highest) < 0 && key_compare(&range->before, lowest) > 0;
}

static void
remove_range(RangeList *list, uint32 i)
{
	memmove(&list->ranges[i], &list->ranges[i + 1], (list->n - i - 1) * sizeof(Range));
	list->n--;
}

static void
insert_range(RangeList *list, uint32 i, const Range *range)
{
	memmove(&list->ranges[i + 1], &list->ranges[i], (list->n - i) * sizeof(Range));
	list->ranges[i] = *range;
	list->n++;
}

/* Cut the keys out of the ranges. */
static void
cut(RangeList *list, const Key *lowest, const Key *highest)
{
	for (uint32 i = list->n; i-- > 0;)
	{
		Range	   *range = &list->ranges[i];
		Range		right = {*highest, range->before};

		if (!touches(range, lowest, highest))
			continue;
		range->before = *lowest;
		/* behind the last row is nothing worth remembering */
		if (!is_last(&right.before) && key_compare(&right.after, &right.before) < 0 &&
			list->n < RANGES_MAX)
			insert_range(list, i + 1, &right);
		if (key_compare(&list->ranges[i].after, &list->ranges[i].before) >= 0)
			remove_range(list, i);
	}
}

/* A walk begins: what is known, and which announcement is the latest. */
void
aq_ranges_read(AqQueueShm *shm, int position, RangeCopy *copy)
{
	ClassicQueue *cq = classic_queue(shm);
	RangeList  *list;

	aq_latch_get(&cq->latch, AQ_SHARED, AQ_LOC_LINE_READ);
	copy->nannounced = cq->nannounced;
	list = list_of(cq, position);
	copy->n = list != NULL ? list->n : 0;
	if (copy->n > 0)
		memcpy(copy->ranges, list->ranges, copy->n * sizeof(Range));
	aq_latch_free(&cq->latch);
}

/* Has something in the range been announced since the walk began? Latch held. */
static bool
was_announced(const ClassicQueue *cq, const RangeCopy *since, const Range *range)
{
	const Announced *ring = aq_chunk_ptr(cq->announced);

	if (cq->nannounced - since->nannounced > ANNOUNCED_MAX)
		return true;			/* too much to know */
	for (uint64 i = since->nannounced; i < cq->nannounced; i++)
	{
		const Range *announced = &ring->keys[i % ANNOUNCED_MAX];

		if (touches(range, &announced->after, &announced->before))
			return true;
	}
	return false;
}

/* The walk that began with since has found nothing to dequeue in the range. */
void
aq_ranges_add(AqQueueShm *shm, int position, const RangeCopy *since, const Range *range)
{
	ClassicQueue *cq = classic_queue(shm);
	Range		all = *range;
	RangeList  *list;
	uint32		i = 0;

	aq_point("range-found");
	if (aq_chunks_reserved() < 2)
		aq_chunks_reserve(2);
	aq_latch_get(&cq->latch, AQ_EXCLUSIVE, AQ_LOC_LINE_ADD);
	if (was_announced(cq, since, range))
	{
		aq_latch_free(&cq->latch);
		return;
	}
	list = list_make(cq, position);
	while (i < list->n)
	{
		Range	   *old = &list->ranges[i];

		if (key_compare(&old->before, &all.after) <= 0)
			i++;				/* wholly before it */
		else if (key_compare(&all.before, &old->after) <= 0)
			break;				/* wholly behind it */
		else
		{
			if (key_compare(&old->after, &all.after) < 0)
				all.after = old->after;
			if (key_compare(&old->before, &all.before) > 0)
				all.before = old->before;
			remove_range(list, i);
		}
	}
	/* full: the places near the head matter most */
	if (list->n == RANGES_MAX && i < RANGES_MAX)
		list->n--;
	if (list->n < RANGES_MAX)
		insert_range(list, i, &all);
	aq_latch_free(&cq->latch);
}

/* The worker's transaction is about to change rows of the queue. */
void
aq_ranges_worker(AqQueueShm *shm)
{
	pg_atomic_write_u32(&classic_queue(shm)->worker, GetCurrentTransactionId());
	pg_memory_barrier();		/* seen by whoever sees a row that it has changed */
}

static void
add_announced(ClassicQueue *cq, const Key *lowest, const Key *highest)
{
	Announced  *ring = aq_chunk_ptr(cq->announced);

	ring->keys[cq->nannounced % ANNOUNCED_MAX] = (Range) {*lowest, *highest};
	cq->nannounced++;
}

/* There may be something to dequeue between these keys. Never raises. */
void
aq_ranges_announce(AqQueueShm *shm, int position, const Key *lowest, const Key *highest)
{
	ClassicQueue *cq = classic_queue(shm);
	RangeList  *list;

	aq_latch_get(&cq->latch, AQ_EXCLUSIVE, AQ_LOC_LINE_ANNOUNCE);
	add_announced(cq, lowest, highest);
	list = list_of(cq, position);
	if (list != NULL)
		cut(list, lowest, highest);
	aq_latch_free(&cq->latch);
}

/* The same for several consumers. */
void
aq_ranges_announce_set(AqQueueShm *shm, const Bitmapset *positions, const Key *lowest, const Key *highest)
{
	ClassicQueue *cq = classic_queue(shm);
	int			position = -1;

	aq_latch_get(&cq->latch, AQ_EXCLUSIVE, AQ_LOC_LINE_ANNOUNCE);
	add_announced(cq, lowest, highest);
	while ((position = bms_next_member(positions, position)) >= 0)
	{
		RangeList  *list = list_of(cq, position);

		if (list != NULL)
			cut(list, lowest, highest);
	}
	aq_latch_free(&cq->latch);
}
