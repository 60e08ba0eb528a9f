/*-------------------------------------------------------------------------
 *
 * handle.c
 *	  The object cache: the hash, handles, freeing and aging out.
 *
 * States of a handle, and the functions that change them:
 *
 *	FREE -> NEW			aq_object_pin enters it into the hash
 *	NEW -> LOADING		the first pin, exclusive
 *	LOADING -> VALID	aq_object_loaded: the pin becomes a shared one
 *	LOADING -> FREE		the loading session has failed, or ended
 *	VALID -> AGING		age_out: no session has it pinned or locked
 *	AGING -> VALID		its value is needed, according to the value's owner
 *	AGING -> FREE		it was removed from the hash, its value is freed
 *	any in the hash -> DROPPED	aq_object_drop removes it from the hash
 *	DROPPED -> FREE		the last pin is released
 *
 * Handles are never unmapped, so a session may read a handle that it knows;
 * the serial tells whether it is still used for the same object.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "cache/cache_private.h"

#include "common/hashfn.h"

/* how long to wait for the worker to finish with a queue, in microseconds */
#define PATIENCE ((int64) 10000000)
/*
 * the same if all objects are pinned, or this session has pinned most of them:
 * transactions end, but some may wait for this session
 */
#define PATIENCE_ALL_PINNED ((int64) 1000000)

int			aq_handle_limit = 1200;

AqObjectArea *aq_handle_area;
AqObject   *aq_handle_objects;

static uint32 *holders;			/* bits: by handle, kind of hold, session */
static AqObjectRequest *requests;	/* by session */

Size		aq_handle_value_size;	/* size of the fixed part of a value */
static AqObjectFree free_value;
static AqObjectIdle value_is_idle;
static AqObjectPressure give_back;

/* --- shared memory ------------------------------------------------------------------ */

static uint32
bucket_count(void)
{
	uint32		n = 64;

	while (n < (uint32) aq_handle_limit)
		n *= 2;
	return n;
}

/* Handles are numbered from 1. */
uint32
aq_handle_count(void)
{
	return (uint32) aq_handle_limit + AQ_COPY_HANDLES;
}

static Size
buckets_size(void)
{
	return CACHELINEALIGN(offsetof(AqObjectArea, buckets) +
						  mul_size(bucket_count(), sizeof(AqBucket)));
}

static Size
handles_size(void)
{
	return CACHELINEALIGN(mul_size(aq_handle_count() + 1, sizeof(AqObject)));
}

static inline uint32
words_per_hold(void)
{
	return (aq_session_slots() + 31) / 32;
}

static Size
holders_size(void)
{
	return CACHELINEALIGN(mul_size(mul_size(aq_handle_count() + 1, AQ_HOLD_KINDS),
								   words_per_hold() * sizeof(uint32)));
}

Size
aq_handle_shmem_size(void)
{
	Size		size = add_size(buckets_size(), handles_size());

	size = add_size(size, holders_size());
	return add_size(size, CACHELINEALIGN(mul_size(aq_session_slots(), sizeof(AqObjectRequest))));
}

void
aq_handle_shmem_init(void *ptr, bool found)
{
	aq_handle_area = ptr;
	aq_handle_objects = (AqObject *) ((char *) ptr + buckets_size());
	holders = (uint32 *) ((char *) aq_handle_objects + handles_size());
	requests = (AqObjectRequest *) ((char *) holders + holders_size());
	if (found)
		return;

	memset(ptr, 0, aq_handle_shmem_size());
	aq_handle_area->nbuckets = bucket_count();
	aq_mutex_init(&aq_handle_area->free_mutex, AQ_MUTEX_TYPE_BUCKET, 0);
	aq_mutex_init(&aq_handle_area->hot_mutex, AQ_MUTEX_TYPE_BUCKET, 0);
	pg_atomic_init_u32(&aq_handle_area->pressure, 0);
	pg_atomic_init_u32(&aq_handle_area->drops, 0);
	pg_atomic_init_u32(&aq_handle_area->npinned, 0);
	pg_atomic_init_u32(&aq_handle_area->waiting, 0);
	aq_cond_init(&aq_handle_area->unused);
	for (uint32 i = 0; i < aq_handle_area->nbuckets; i++)
		aq_mutex_init(&aq_handle_area->buckets[i].mutex, AQ_MUTEX_TYPE_BUCKET, i);
	for (uint32 i = aq_handle_count(); i >= 1; i--)
	{
		AqObject   *object = &aq_handle_objects[i];
		uint32	   *list = i > (uint32) aq_handle_limit ? &aq_handle_area->free_copy : &aq_handle_area->free;

		aq_mutex_init(&object->mutex, AQ_MUTEX_TYPE_OBJECT, i);
		aq_cond_init(&object->changed);
		object->index = i;
		object->lock_holder = object->pin_holder = -1;
		object->next = *list;
		*list = i;
	}
	aq_handle_area->nfree = aq_handle_limit;
}

void
aq_handle_on_free(AqObjectFree free_callback, AqObjectIdle idle_callback, Size value_size)
{
	aq_handle_value_size = value_size;
	free_value = free_callback;
	value_is_idle = idle_callback;
}

void
aq_handle_on_pressure(AqObjectPressure callback)
{
	give_back = callback;
}

/*
 * While more than half of the objects are pinned, no session keeps
 * pins between transactions, so that idle sessions never have all objects
 * pinned.
 */
bool
aq_handle_pins_are_scarce(void)
{
	return pg_atomic_read_u32(&aq_handle_area->npinned) > (uint32) aq_handle_limit / 2;
}

/* The number of objects that are pinned. */
uint32
aq_handle_pinned(void)
{
	return pg_atomic_read_u32(&aq_handle_area->npinned);
}

/*
 * Are so few handles free that a view should not take one?  Read without the
 * mutex.
 */
bool
aq_handle_is_scarce(void)
{
	return aq_handle_area->nfree <= (uint32) aq_handle_limit / 4;
}

uint32
aq_handle_pressure(void)
{
	return pg_atomic_read_u32(&aq_handle_area->pressure);
}

uint32
aq_handle_drops(void)
{
	return pg_atomic_read_u32(&aq_handle_area->drops);
}

AqObject *
aq_handle_by_index(uint32 index)
{
	Assert(index >= 1 && index <= (uint32) aq_handle_limit);
	return &aq_handle_objects[index];
}

/*
 * --- holders
 * -----------------------------------------------------------------
 */

uint32 *
aq_handle_hold_words(uint32 index, AqHold kind)
{
	return holders + (Size) (index * AQ_HOLD_KINDS + kind) * words_per_hold();
}

bool
aq_handle_holds(uint32 index, AqHold kind, int session)
{
	return (aq_handle_hold_words(index, kind)[session / 32] & ((uint32) 1 << (session % 32))) != 0;
}

AqObjectRequest *
aq_handle_request(int session)
{
	return &requests[session];
}

/* --- the hash ------------------------------------------------------------------------- */

uint32
aq_handle_hash(Oid database, uint32 id, uint32 copy)
{
	uint32		hash = hash_combine(murmurhash32(database), murmurhash32(id));

	/* larger than bucket numbers, as in Oracle */
	return (copy == 0 ? hash : hash_combine(hash, murmurhash32(copy))) | 0x80000000;
}

AqBucket *
aq_handle_bucket(uint32 hash)
{
	return &aq_handle_area->buckets[hash & (aq_handle_area->nbuckets - 1)];
}

/* The caller holds the bucket's mutex. */
AqObject *
aq_handle_in_bucket(AqBucket *bucket, Oid database, uint32 id, uint32 copy)
{
	for (uint32 i = bucket->first; i != 0; i = aq_handle_objects[i].next)
		if (aq_handle_objects[i].id == id && aq_handle_objects[i].database == database && aq_handle_objects[i].copy == copy)
			return &aq_handle_objects[i];
	return NULL;
}

/*
 * Enters a handle from the free list into the hash.  The caller holds the
 * bucket's mutex; the object's mutex is taken because of sessions that know
 * the handle from an earlier object.
 */
void
aq_handle_enter(AqBucket *bucket, AqObject *object, Oid database, uint32 id, uint32 copy)
{
	uint32		hash = aq_handle_hash(database, id, copy);

	aq_mutex_get(&object->mutex, AQ_EXCLUSIVE, AQ_LOC_OBJECT_LOAD);
	object->database = database;
	object->id = id;
	object->copy = copy;
	object->hash = hash;
	object->master = object->index;
	aq_mutex_set_object(&object->mutex, hash, id, AQ_NAMESPACE_QUEUE);
	aq_mutex_counters(&object->mutex, &object->mutex_gets, &object->mutex_sleeps);
	object->locks = object->pins = object->lock_waiters = 0;
	object->lock_holder = object->pin_holder = -1;
	object->copies = 0;
	object->loads = object->invalidations = 0;
	object->locked_total = object->pinned_total = 0;
	object->loaded_at = object->loaded_before = 0;
	object->used = 0;
	object->state = AQ_OBJECT_NEW;
	aq_mutex_free(&object->mutex);
	object->next = bucket->first;
	bucket->first = object->index;
	if (bucket->ghost == hash)
	{
		bucket->reloads++;
		bucket->ghost = 0;
	}
}

/* Removes the object from the hash.  The caller holds both mutexes. */
void
aq_handle_leave(AqBucket *bucket, AqObject *object)
{
	uint32	   *link = &bucket->first;

	while (*link != object->index)
		link = &aq_handle_objects[*link].next;
	*link = object->next;
}

/* --- handles ---------------------------------------------------------------------------- */

AqObject *
aq_handle_take(bool copy)
{
	uint32	   *list = copy ? &aq_handle_area->free_copy : &aq_handle_area->free;
	AqObject   *object = NULL;

	aq_mutex_get(&aq_handle_area->free_mutex, AQ_EXCLUSIVE, AQ_LOC_BUCKET_FIND);
	if (*list != 0)
	{
		object = &aq_handle_objects[*list];
		*list = object->next;
		if (!copy)
			aq_handle_area->nfree--;
	}
	aq_mutex_free(&aq_handle_area->free_mutex);
	return object;
}

/*
 * Clears an object that no session can reach.  Sessions that know the
 * handle notice the changed serial.
 */
static void
end_object(AqObject *object)
{
	aq_mutex_get(&object->mutex, AQ_EXCLUSIVE, AQ_LOC_OBJECT_UNPIN);
	object->state = AQ_OBJECT_FREE;
	object->serial++;
	object->pin_holder = -1;
	object->locks = 0;			/* a drop does not wait for share locks, see unlock_share() */
	memset(aq_handle_hold_words(object->index, AQ_HOLD_NULL), 0, words_per_hold() * sizeof(uint32));
	aq_mutex_free(&object->mutex);
	aq_cond_broadcast(&object->changed);

	aq_mutex_get(&aq_handle_area->free_mutex, AQ_EXCLUSIVE, AQ_LOC_BUCKET_FIND);
	aq_handle_area->pinned_total += object->pinned_total;
	aq_handle_area->loads += object->loads;
	aq_handle_area->invalidations += object->invalidations;
	object->pinned_total = object->loads = object->invalidations = 0;
	aq_mutex_free(&aq_handle_area->free_mutex);
}

void
aq_handle_give(AqObject *object)
{
	bool		copy = object->index > (uint32) aq_handle_limit;
	uint32	   *list = copy ? &aq_handle_area->free_copy : &aq_handle_area->free;

	end_object(object);
	aq_mutex_get(&aq_handle_area->free_mutex, AQ_EXCLUSIVE, AQ_LOC_BUCKET_FIND);
	object->next = *list;
	*list = object->index;
	if (!copy)
		aq_handle_area->nfree++;
	aq_mutex_free(&aq_handle_area->free_mutex);
	aq_handle_tell_unused();
}

static void unhold(AqObject *object);

/*
 * Frees an object that is not in the hash and not pinned, so that no other
 * session can reach it.
 */
void
aq_handle_free(AqObject *object)
{
	if (object->copy != 0)
	{
		AqObject   *master = &aq_handle_objects[object->master];

		aq_handle_give(object);
		unhold(master);
		return;
	}
	if (free_value)
		free_value(object);
	aq_handle_give(object);
}

/*
 * Releases a pin that does not belong to a session: a copy's pin of its
 * master.
 */
static void
unhold(AqObject *object)
{
	bool		last;

	aq_mutex_get(&object->mutex, AQ_EXCLUSIVE, AQ_LOC_OBJECT_UNPIN);
	Assert(object->pins > 0);
	last = --object->pins == 0 && object->state == AQ_OBJECT_DROPPED && object->pin_holder < 0;
	if (object->pins == 0)
		aq_handle_now_unused(object);
	aq_mutex_free(&object->mutex);
	if (last)
		aq_handle_free(object);
	else
		aq_handle_tell_unused();
}

/* --- aging out ------------------------------------------------------------------------------- */

/*
 * Is the object neither used nor being changed?  The caller holds the mutex.
 */
static inline bool
is_unused(const AqObject *object)
{
	return object->state == AQ_OBJECT_VALID && object->pins == 0 && object->locks == 0 &&
		object->lock_holder < 0 && object->copies == 0;
}

/* Release of a claim: the object remains valid and keeps its value. */
static void
stop_aging(void *ptr, int64 unused)
{
	AqObject   *object = ptr;
	bool		dropped;

	aq_mutex_get(&object->mutex, AQ_EXCLUSIVE, AQ_LOC_OBJECT_AGE);
	dropped = object->state == AQ_OBJECT_DROPPED;
	object->pin_holder = -1;
	if (!dropped)
		object->state = AQ_OBJECT_VALID;
	aq_mutex_free(&object->mutex);
	aq_cond_broadcast(&object->changed);
	if (dropped)				/* dropped meanwhile by another session, which left the freeing to us */
		aq_handle_free(object);
	else
		aq_handle_tell_unused();
}

/* Takes an exclusive pin for freeing the object, without waiting. */
static bool
pin_for_aging(AqObject *object)
{
	bool		mine_now = false;

	aq_claim_reserve(1);
	aq_mutex_get(&object->mutex, AQ_EXCLUSIVE, AQ_LOC_OBJECT_AGE);
	if (is_unused(object))
	{
		object->state = AQ_OBJECT_AGING;
		object->pin_holder = aq_session_own_number;
		aq_claim_enter(stop_aging, object, 0);
		mine_now = true;
	}
	aq_mutex_free(&object->mutex);
	return mine_now;
}

/*
 * Removes the object from the hash if its value may be freed; returns true if
 * the handle is ours.
 */
static bool
age_out_object(AqObject *object)
{
	AqBucket   *bucket;
	bool		idle;
	bool		dropped;

	if (!pin_for_aging(object))
		return false;
	idle = value_is_idle == NULL || value_is_idle(object);
	aq_point("object-aging");

	/*
	 * nothing below can fail; hash and bucket do not change until the pin is
	 * released
	 */
	aq_claim_end(stop_aging, object);
	bucket = aq_handle_bucket(object->hash);
	aq_mutex_get(&bucket->mutex, AQ_EXCLUSIVE, AQ_LOC_OBJECT_AGE);
	aq_mutex_get(&object->mutex, AQ_EXCLUSIVE, AQ_LOC_OBJECT_AGE);
	dropped = object->state == AQ_OBJECT_DROPPED;
	if (idle && !dropped)
	{
		aq_handle_leave(bucket, object);
		bucket->ghost = object->hash;
		object->state = AQ_OBJECT_DROPPED;
	}
	else if (!dropped)
	{
		object->state = AQ_OBJECT_VALID;
		object->pin_holder = -1;
	}
	aq_mutex_free(&object->mutex);
	aq_mutex_free(&bucket->mutex);
	aq_cond_broadcast(&object->changed);
	if (!idle && !dropped)
		return false;

	if (free_value)
		free_value(object);
	end_object(object);
	return true;
}

typedef struct Candidate
{
	uint32		index;
	int64		used;
} Candidate;

static int
compare_candidates(const void *a, const void *b)
{
	int64		x = ((const Candidate *) a)->used;
	int64		y = ((const Candidate *) b)->used;

	return x < y ? -1 : x > y;
}

/*
 * Frees the least recently used object; returns its handle, or NULL if all are
 * in use.
 */
static AqObject *
age_out(void)
{
	Candidate  *candidates = palloc(aq_handle_limit * sizeof(Candidate));
	AqObject   *object = NULL;
	int			n = 0;

	for (int i = 1; i <= aq_handle_limit; i++)
		if (is_unused(&aq_handle_objects[i]))	/* checked again under the mutex */
		{
			candidates[n].index = i;
			candidates[n++].used = aq_handle_objects[i].used;
		}
	qsort(candidates, n, sizeof(Candidate), compare_candidates);
	for (int i = 0; i < n && object == NULL; i++)
		if (age_out_object(&aq_handle_objects[candidates[i].index]))
			object = &aq_handle_objects[candidates[i].index];
	pfree(candidates);
	if (object != NULL)
	{
		aq_mutex_get(&aq_handle_area->free_mutex, AQ_EXCLUSIVE, AQ_LOC_BUCKET_FIND);
		aq_handle_area->aged_out++;
		aq_mutex_free(&aq_handle_area->free_mutex);
	}
	return object;
}

/* Is there an object that no session uses, but that the worker has not finished with? */
static bool
any_unused(void)
{
	for (int i = 1; i <= aq_handle_limit; i++)
		if (is_unused(&aq_handle_objects[i]))
			return true;
	return false;
}

/* The first pin was taken, or the last one released. */
void
aq_handle_now_used(const AqObject *object)
{
	if (object->copy == 0)
		pg_atomic_fetch_add_u32(&aq_handle_area->npinned, 1);
}

void
aq_handle_now_unused(const AqObject *object)
{
	if (object->copy == 0)
		pg_atomic_fetch_sub_u32(&aq_handle_area->npinned, 1);
}

/*
 * Wakes sessions that wait for a handle: an object was unpinned, by a session or
 * by the worker, which has finished its work for it, or a handle became free.
 * The caller holds no mutex.
 */
void
aq_handle_tell_unused(void)
{
	pg_memory_barrier();		/* pairs with the counting: a session that waits tries again after it */
	if (pg_atomic_read_u32(&aq_handle_area->waiting) > 0)
		aq_cond_broadcast(&aq_handle_area->unused);
}

static AqObject *
try_new_handle(void)
{
	AqObject   *object = aq_handle_take(false);

	return object != NULL ? object : age_out();
}

/*
 * Waits until the worker has finished its work for an otherwise unused object,
 * or until a pin is released.  Returns NULL after some time.
 */
static AqObject *
await_new_handle(bool mostly_mine)
{
	int64		start = aq_clock_us();
	AqObject   *object;

	aq_claim_count(&aq_handle_area->waiting);
	for (;;)
	{
		uint32		seen = aq_cond_seen(&aq_handle_area->unused);
		int64		left;

		object = try_new_handle();
		left = start + (any_unused() && !mostly_mine ? PATIENCE : PATIENCE_ALL_PINNED) - aq_clock_us();
		if (object != NULL || left <= 0)
			break;
		(void) aq_cond_sleep_unseen(&aq_handle_area->unused, seen, AQ_EVENT_OBJECT_CACHE_FULL, 0, 0, 0, left);
	}
	aq_claim_uncount(&aq_handle_area->waiting);
	return object;
}

/* npinned: the number of objects that this session has pinned */
AqObject *
aq_handle_new(int npinned)
{
	AqObject   *object = try_new_handle();

	if (object != NULL)
		return object;

	/* other sessions release unneeded pins when their transactions end */
	pg_atomic_fetch_add_u32(&aq_handle_area->pressure, 1);
	if (give_back != NULL && give_back())
		object = try_new_handle();
	if (object == NULL && !aq_chunks_impatient)
		object = await_new_handle(npinned > aq_handle_limit / 2);
	if (object == NULL)
		ereport(ERROR,
				aq_error(AQ_ERR_CACHE_FULL, "too many queues are in use"),
				errdetail("All %d are pinned by sessions or have pending work.", aq_handle_limit),
				errhint("Create, drop or use fewer queues in one transaction (CALL aq.drop_queues(...) drops many, and commits in between), "
						"or raise pgaq.max_queues (now %d) and restart the server.", aq_handle_limit));
	return object;
}
