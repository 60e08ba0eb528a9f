/*-------------------------------------------------------------------------
 *
 * object.c
 *	  The object cache: handles, lock and pin, load once.  See cache.h.
 *
 * Order: bucket mutex, then object mutex.  Neither is held while anything
 * else is taken.  A session that dies with a pin takes the server with it
 * (SIGKILL), or gives the pin back in its transaction's end callback.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "cache/cache_private.h"

#include "common/hashfn.h"

typedef struct AqBucket
{
	AqMutex		mutex;
	uint32		first;			/* object index; 0 none */
} AqBucket;

typedef struct ObjectArea
{
	AqMutex		free_mutex;
	uint32		free;			/* first unused handle */
	uint32		nbuckets;		/* power of two */
	AqBucket	buckets[FLEXIBLE_ARRAY_MEMBER];
	/* the handles follow */
} ObjectArea;

int			aq_object_limit = 1200;

static ObjectArea *area;
static AqObject *objects;		/* 1 .. aq_object_limit; 0 is unused */
static AqObjectFree free_value;

static uint32
bucket_count(void)
{
	uint32		n = 64;

	while (n < (uint32) aq_object_limit)
		n *= 2;
	return n;
}

static Size
buckets_size(void)
{
	return CACHELINEALIGN(offsetof(ObjectArea, buckets) +
						  mul_size(bucket_count(), sizeof(AqBucket)));
}

Size
aq_object_shmem_size(void)
{
	return CACHELINEALIGN(add_size(buckets_size(),
								   mul_size(aq_object_limit + 1, sizeof(AqObject))));
}

void
aq_object_shmem_init(void *ptr, bool found)
{
	area = ptr;
	objects = (AqObject *) ((char *) ptr + buckets_size());
	if (found)
		return;

	memset(ptr, 0, aq_object_shmem_size());
	area->nbuckets = bucket_count();
	aq_mutex_init(&area->free_mutex, AQ_MUTEX_TYPE_BUCKET, 0);
	for (uint32 i = 0; i < area->nbuckets; i++)
		aq_mutex_init(&area->buckets[i].mutex, AQ_MUTEX_TYPE_BUCKET, i);
	for (uint32 i = aq_object_limit; i >= 1; i--)
	{
		AqObject   *object = &objects[i];

		aq_mutex_init(&object->mutex, AQ_MUTEX_TYPE_OBJECT, i);
		aq_cond_init(&object->changed);
		object->index = i;
		object->next = area->free;
		area->free = i;
	}
}

void
aq_object_on_free(AqObjectFree callback)
{
	free_value = callback;
}

AqObject *
aq_object_by_index(uint32 index)
{
	Assert(index >= 1 && index <= (uint32) aq_object_limit);
	return &objects[index];
}

static uint32
object_hash(Oid database, uint32 id)
{
	/* above the bucket numbers, as Oracle's hash values are above its buckets */
	return hash_combine(murmurhash32(database), murmurhash32(id)) | 0x80000000;
}

static inline AqBucket *
bucket_of(uint32 hash)
{
	return &area->buckets[hash & (area->nbuckets - 1)];
}

static AqObject *
find_in_bucket(AqBucket *bucket, Oid database, uint32 id)
{
	for (uint32 i = bucket->first; i != 0; i = objects[i].next)
		if (objects[i].database == database && objects[i].id == id)
			return &objects[i];
	return NULL;
}

static AqObject *
new_handle(void)
{
	AqObject   *object = NULL;

	aq_mutex_get(&area->free_mutex, AQ_EXCLUSIVE, AQ_LOC_BUCKET_FIND);
	if (area->free != 0)
	{
		object = &objects[area->free];
		area->free = object->next;
	}
	aq_mutex_free(&area->free_mutex);
	return object;
}

static void
free_handle(AqObject *object)
{
	object->state = AQ_OBJECT_FREE;
	aq_mutex_get(&area->free_mutex, AQ_EXCLUSIVE, AQ_LOC_BUCKET_FIND);
	object->next = area->free;
	area->free = object->index;
	aq_mutex_free(&area->free_mutex);
}

/*
 * Find the object and pin it; make it if it is not there.
 */
static AqObject *
find_and_pin(Oid database, uint32 id)
{
	uint32		hash = object_hash(database, id);
	AqBucket   *bucket = bucket_of(hash);
	AqObject   *object;
	AqObject   *fresh = NULL;

	for (;;)
	{
		aq_mutex_get(&bucket->mutex, AQ_EXCLUSIVE, AQ_LOC_BUCKET_FIND);
		object = find_in_bucket(bucket, database, id);
		if (object == NULL && fresh != NULL)
		{
			object = fresh;
			fresh = NULL;
			object->database = database;
			object->id = id;
			object->hash = hash;
			object->locks = object->pins = 0;
			object->loads = object->invalidations = 0;
			object->locked_total = object->pinned_total = 0;
			object->state = AQ_OBJECT_NEW;
			object->next = bucket->first;
			bucket->first = object->index;
		}
		if (object != NULL)
		{
			aq_mutex_get(&object->mutex, AQ_EXCLUSIVE, AQ_LOC_OBJECT_PIN);
			object->pins++;
			object->pinned_total++;
			object->locks++;
			object->locked_total++;
			aq_mutex_free(&object->mutex);
		}
		aq_mutex_free(&bucket->mutex);

		if (object != NULL)
		{
			if (fresh != NULL)
				free_handle(fresh);
			return object;
		}
		fresh = new_handle();
		if (fresh == NULL)
			ereport(ERROR,
					aq_error(AQ_ERR_CACHE_FULL, "too many queues are in use"),
					errhint("Raise pgaq.max_queues (now %d) and restart the server.",
							aq_object_limit));
	}
}

AqObject *
aq_object_pin(Oid database, uint32 id, bool *must_load)
{
	AqObject   *object = find_and_pin(database, id);

	*must_load = false;
	for (;;)
	{
		AqObjectState state;

		aq_mutex_get(&object->mutex, AQ_EXCLUSIVE, AQ_LOC_OBJECT_LOAD);
		state = object->state;
		if (state == AQ_OBJECT_NEW)
			object->state = AQ_OBJECT_LOADING;
		aq_mutex_free(&object->mutex);

		if (state == AQ_OBJECT_NEW)
		{
			*must_load = true;
			return object;
		}
		if (state != AQ_OBJECT_LOADING)
			return object;

		/* Another session loads: wait, and give the pin back if cancelled. */
		PG_TRY();
		{
			aq_cond_prepare(&object->changed);
			while (object->state == AQ_OBJECT_LOADING)
				aq_cond_sleep(&object->changed, AQ_EVENT_LIBCACHE_PIN,
							  object->hash, (uint64) object->index, 0, -1);
			aq_cond_cancel();
		}
		PG_CATCH();
		{
			aq_cond_cancel();
			aq_object_unpin(object);
			PG_RE_THROW();
		}
		PG_END_TRY();
	}
}

void
aq_object_loaded(AqObject *object, bool success)
{
	aq_mutex_get(&object->mutex, AQ_EXCLUSIVE, AQ_LOC_OBJECT_LOAD);
	if (object->state == AQ_OBJECT_LOADING)
		object->state = success ? AQ_OBJECT_VALID : AQ_OBJECT_NEW;
	object->loads++;
	aq_mutex_free(&object->mutex);
	aq_cond_broadcast(&object->changed);
}

void
aq_object_unpin(AqObject *object)
{
	bool		last;

	aq_mutex_get(&object->mutex, AQ_EXCLUSIVE, AQ_LOC_OBJECT_UNPIN);
	Assert(object->pins > 0);
	object->pins--;
	object->locks--;
	last = object->pins == 0 && object->state == AQ_OBJECT_DROPPED;
	aq_mutex_free(&object->mutex);

	if (last)
	{
		/* out of the hash and unpinned: nobody else can reach it any more */
		if (free_value)
			free_value(object);
		free_handle(object);
	}
}

void
aq_object_drop(Oid database, uint32 id)
{
	AqBucket   *bucket = bucket_of(object_hash(database, id));
	AqObject   *object;
	bool		last = false;

	aq_mutex_get(&bucket->mutex, AQ_EXCLUSIVE, AQ_LOC_BUCKET_FIND);
	object = find_in_bucket(bucket, database, id);
	if (object != NULL)
	{
		uint32	   *link = &bucket->first;

		while (*link != object->index)
			link = &objects[*link].next;
		*link = object->next;

		aq_mutex_get(&object->mutex, AQ_EXCLUSIVE, AQ_LOC_OBJECT_LOCK);
		object->state = AQ_OBJECT_DROPPED;
		object->invalidations++;
		last = object->pins == 0;
		aq_mutex_free(&object->mutex);
	}
	aq_mutex_free(&bucket->mutex);

	if (last)
	{
		if (free_value)
			free_value(object);
		free_handle(object);
	}
}

AqObject *
aq_object_find(Oid database, uint32 id)
{
	AqBucket   *bucket = bucket_of(object_hash(database, id));
	AqObject   *object;

	aq_mutex_get(&bucket->mutex, AQ_SHARED, AQ_LOC_BUCKET_FIND);
	object = find_in_bucket(bucket, database, id);
	aq_mutex_free(&bucket->mutex);
	return object != NULL && object->state == AQ_OBJECT_VALID ? object : NULL;
}
