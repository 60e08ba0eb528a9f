/*-------------------------------------------------------------------------
 *
 * ranges.c
 *	  Ranges of a consumer's rows without a row that can be dequeued.
 *
 * Consumed rows stay in the index until VACUUM can remove them, which it
 * cannot while an old snapshot is held.  A consumer that scanned the index
 * from its beginning would read all of them again at each dequeue.  So a
 * session that has walked over many rows that cannot be dequeued remembers the
 * range, and the next walk begins after it.
 *
 * Invariant: no row in a range can be dequeued, now or later, unless its key is
 * announced after the range was added.  Announcing keys removes them from all
 * ranges and adds them to the queue's ring of announcements: a walk that began
 * before the announcement, and may have seen the row in its old state, finds
 * the keys there when it wants to add a range, and does not add it.  So a range
 * may include a row if the row is announced *after* the last moment at which a
 * walk can have seen it in its old state:
 *	- a row that is gone for good (consumed and committed, or enqueued and rolled
 *	  back) needs no announcement;
 *	- rows that a session has taken are announced when the transaction rolls
 *	  back, completely or to a savepoint, after its end is visible in the row,
 *	  and when it is prepared.  aq_takers_announce() knows these transactions;
 *	- rows that wait for their time, or whose lease ends, are announced by the
 *	  worker when the index has the new version, which is ready, and before the
 *	  worker commits; by a session in the same way when it gives a leased row back.
 *	  A version that is leased or waits is never dequeued itself, whatever becomes
 *	  of the transaction that has written or changed it.
 * All other rows end a range:
 *	- rows that can be dequeued, are locked, or have expired;
 *	- rows that a running transaction has enqueued: it announces the key when the
 *	  index has the row, not when it commits;
 *	- rows that the worker is changing, which are announced in the same way;
 *	- rows taken by a prepared transaction, which ends without a callback, or
 *	  changed by a transaction that does not announce.
 *
 * Sessions that change ranges or announce hold the queue's latch.  Walks copy the
 * ranges without it: with hundreds of sessions, shared requests for the latch
 * queued up behind an exclusive one that was waiting for a processor.  A list is
 * marked while it changes, and a reader that may have seen it change gets the
 * latch.  A walk reads the number of announcements before it reads the ranges,
 * and an announcement is counted after it has changed them: so a walk has either
 * the changed ranges, or a number that tells aq_ranges_add() of the announcement.
 *
 * Ranges only make walks shorter, so they can be lost: they are empty after a
 * restart, and a consumer without memory for ranges walks from the beginning.
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

/* The caller holds the latch, or only reads. */
static RangeList *
list_of(ClassicQueue *cq, int position)
{
	AqChunk		chunk = cq->lists[position / LISTS_PER_CHUNK];

	if (chunk == 0)
		return NULL;
	chunk = ((AqChunk *) aq_chunk_ptr(chunk))[position % LISTS_PER_CHUNK];
	return chunk == 0 ? NULL : aq_chunk_ptr(chunk);
}

/* The chunk is empty before a reader without the latch can see it. */
static AqChunk
take_chunk(void)
{
	AqChunk		chunk = aq_chunks_take();

	pg_write_barrier();
	return chunk;
}

/*
 * The same, but creates the list if two chunks are reserved.  The caller holds
 * the latch.
 */
static RangeList *
list_make(ClassicQueue *cq, int position)
{
	AqChunk    *directory = &cq->lists[position / LISTS_PER_CHUNK];
	AqChunk    *entry;

	if (*directory == 0)
		*directory = take_chunk();
	entry = (AqChunk *) aq_chunk_ptr(*directory) + position % LISTS_PER_CHUNK;
	if (*entry == 0)
		*entry = take_chunk();
	return aq_chunk_ptr(*entry);
}

/* Does the range include a key between the two, ends included? */
static bool
touches(const Range *range, const Key *lowest, const Key *highest)
{
	return key_compare(&range->after, highest) < 0 && key_compare(&range->before, lowest) > 0;
}

/* The caller holds the latch. */
static void
begin_change(RangeList *list)
{
	pg_atomic_write_u32(&list->change, pg_atomic_read_u32(&list->change) + 1);
	pg_write_barrier();
}

static void
end_change(RangeList *list)
{
	pg_write_barrier();
	pg_atomic_write_u32(&list->change, pg_atomic_read_u32(&list->change) + 1);
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

/* Removes the keys from the ranges. */
static void
cut(RangeList *list, const Key *lowest, const Key *highest)
{
	bool		changed = false;

	for (uint32 i = list->n; i-- > 0;)
	{
		Range	   *range = &list->ranges[i];
		Range		right = {*highest, range->before};

		if (!touches(range, lowest, highest))
			continue;
		if (!changed)
			begin_change(list);
		changed = true;
		range->before = *lowest;
		/* a range after the last row need not be remembered */
		if (!is_last(&right.before) && key_compare(&right.after, &right.before) < 0 &&
			list->n < RANGES_MAX)
			insert_range(list, i + 1, &right);
		if (key_compare(&list->ranges[i].after, &list->ranges[i].before) >= 0)
			remove_range(list, i);
	}
	if (changed)
		end_change(list);
}

/*
 * Copies the ranges; returns false if the list may have changed meanwhile.
 */
static bool
copy_list(const RangeList *list, RangeCopy *copy)
{
	pg_atomic_uint32 *change = (pg_atomic_uint32 *) &list->change;
	uint32		before = pg_atomic_read_u32(change);

	pg_read_barrier();
	copy->n = Min(list->n, RANGES_MAX);
	memcpy(copy->ranges, list->ranges, copy->n * sizeof(Range));
	aq_point("ranges-copied");
	pg_read_barrier();
	return (before & 1) == 0 && before == pg_atomic_read_u32(change);
}

/*
 * Copies the ranges and the number of announcements at the beginning of a
 * walk.
 */
void
aq_ranges_read(AqQueueShm *shm, int position, RangeCopy *copy)
{
	ClassicQueue *cq = classic_queue(shm);
	RangeList  *list;

	copy->nannounced = pg_atomic_read_u64(&cq->nannounced);
	pg_read_barrier();
	list = list_of(cq, position);
	if (list == NULL)
		copy->n = 0;
	else if (!copy_list(list, copy))
	{
		aq_latch_get(&cq->latch, AQ_SHARED, AQ_LOC_LINE_READ);
		copy->n = list->n;
		memcpy(copy->ranges, list->ranges, copy->n * sizeof(Range));
		aq_latch_free(&cq->latch);
	}
	pg_memory_barrier();		/* before the rows are read */
}

/*
 * Was a key in the consumer's range announced since the walk began?  Without
 * the latch, the answer may be wrong.
 */
static bool
was_announced(ClassicQueue *cq, int position, const RangeCopy *since, const Range *range)
{
	const Announced *ring = aq_chunk_ptr(cq->announced);
	uint64		nannounced = pg_atomic_read_u64(&cq->nannounced);

	if (nannounced - since->nannounced > ANNOUNCED_MAX)
		return true;			/* more than the ring can hold, so assume it */
	for (uint64 i = since->nannounced; i < nannounced; i++)
	{
		const Announcement *announced = &ring->latest[i % ANNOUNCED_MAX];

		if ((announced->position < 0 || announced->position == position) &&
			touches(range, &announced->keys.after, &announced->keys.before))
			return true;
	}
	return false;
}

/*
 * Adds a range in which the walk that began with "since" has found nothing to
 * dequeue.
 */
void
aq_ranges_add(AqQueueShm *shm, int position, const RangeCopy *since, const Range *range)
{
	ClassicQueue *cq = classic_queue(shm);
	Range		all = *range;
	RangeList  *list;
	uint32		i = 0;

	aq_point("range-found");
	/* often it was: then the latch is not needed to find this out */
	if (was_announced(cq, position, since, range))
		return;
	if (aq_chunks_reserved() < 2)
		aq_chunks_reserve(2);
	aq_latch_get(&cq->latch, AQ_EXCLUSIVE, AQ_LOC_LINE_ADD);
	if (was_announced(cq, position, since, range))
	{
		aq_latch_free(&cq->latch);
		return;
	}
	list = list_make(cq, position);
	begin_change(list);
	while (i < list->n)
	{
		Range	   *old = &list->ranges[i];

		if (key_compare(&old->before, &all.after) <= 0)
			i++;				/* entirely before it */
		else if (key_compare(&all.before, &old->after) <= 0)
			break;				/* entirely after it */
		else
		{
			if (key_compare(&old->after, &all.after) < 0)
				all.after = old->after;
			if (key_compare(&old->before, &all.before) > 0)
				all.before = old->before;
			remove_range(list, i);
		}
	}
	/*
	 * the list is full: drop the last range, because those near the head
	 * matter most
	 */
	if (list->n == RANGES_MAX && i < RANGES_MAX)
		list->n--;
	if (list->n < RANGES_MAX)
		insert_range(list, i, &all);
	end_change(list);
	aq_latch_free(&cq->latch);
}

/* Called before the worker's transaction changes rows of the queue. */
void
aq_ranges_worker(AqQueueShm *shm)
{
	pg_atomic_write_u32(&classic_queue(shm)->worker, GetCurrentTransactionId());
	pg_memory_barrier();		/* visible to every session that sees a row changed by it */
}

/* Called when the keys were removed from the ranges. */
static void
add_announced(ClassicQueue *cq, int position, const Key *lowest, const Key *highest)
{
	Announced  *ring = aq_chunk_ptr(cq->announced);
	uint64		nannounced = pg_atomic_read_u64(&cq->nannounced);

	ring->latest[nannounced % ANNOUNCED_MAX] = (Announcement) {{*lowest, *highest}, position};
	pg_write_barrier();
	pg_atomic_write_u64(&cq->nannounced, nannounced + 1);
}

/*
 * Announces that rows between these keys may be ready.  Never raises an error.
 */
void
aq_ranges_announce(AqQueueShm *shm, int position, const Key *lowest, const Key *highest)
{
	ClassicQueue *cq = classic_queue(shm);
	RangeList  *list;

	aq_latch_get(&cq->latch, AQ_EXCLUSIVE, AQ_LOC_LINE_ANNOUNCE);
	list = list_of(cq, position);
	if (list != NULL)
		cut(list, lowest, highest);
	add_announced(cq, position, lowest, highest);
	aq_latch_free(&cq->latch);
}

/* The same for several consumers. */
void
aq_ranges_announce_set(AqQueueShm *shm, const Bitmapset *positions, const Key *lowest, const Key *highest)
{
	ClassicQueue *cq = classic_queue(shm);
	int			only = bms_membership(positions) == BMS_SINGLETON ? bms_singleton_member(positions) : -1;
	int			position = -1;

	aq_latch_get(&cq->latch, AQ_EXCLUSIVE, AQ_LOC_LINE_ANNOUNCE);
	while ((position = bms_next_member(positions, position)) >= 0)
	{
		RangeList  *list = list_of(cq, position);

		if (list != NULL)
			cut(list, lowest, highest);
	}
	add_announced(cq, only, lowest, highest);
	aq_latch_free(&cq->latch);
}
