/*-------------------------------------------------------------------------
 *
 * row.c
 *	  The dictionary cache (row cache): rows of the catalog that sessions share.
 *
 * A row is found by hash and copied out in three steps, each protected:
 *
 *	find		the chain of its bucket
 *	pin			the row: is it still the one that was found?
 *	release		the row
 *
 * Mutexes protect them, of the bucket, of the row, of the row.  With
 * pgaq.row_cache_serialization = latch, the one latch of the cache is held around
 * each step, so that a get takes the latch three times.  The mutexes are taken all
 * the same: that is what makes it safe to switch while sessions are inside,
 * each of which learns of the parameter's change in its own time.
 *
 * What is in a row does not change while it is in the cache: a change of the
 * catalog takes the row out.  Who does not find a row reads the catalog and
 * enters it, unless something was taken out meanwhile (the generation): then
 * what he has read may be what it was before.  Why no session sees an old row
 * after a change is said in README.md.
 *
 * Counters are kept where what they count is protected (in the row; when it goes
 * they are added to the cache's), so they are exact in both modes.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "cache/cache_private.h"

#include "access/xlog.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "utils/inval.h"

/* relations are told apart by so many bits of a hash */
#define RELATION_BITS 32768

typedef struct Row
{
	AqMutex		mutex;
	uint32		next;			/* in its bucket or the free list; 0 ends; bucket's mutex */
	/* fixed while it is in the hash */
	uint32		hash;
	AqRowCacheId cache;
	uint32		clone;			/* 1 ..; 0: the row itself */
	AqRowKey	key;
	int			length;			/* -1: the catalog has no such row */
	char		value[AQ_ROW_VALUE];
	/* protected by its mutex */
	bool		live;			/* in the hash */
	int			pins;
	uint32		serial;			/* how often it was used for a row */
	bool		used;			/* since the clock's hand came by */
	uint64		gets;
	uint64		sleeps_before;	/* of the mutex, for former rows */
} Row;

typedef struct Bucket
{
	AqMutex		mutex;
	uint32		first;
} Bucket;

typedef struct Cache
{
	AqLatch		latch;
	pg_atomic_uint32 generation;	/* grows when rows are taken out */
	pg_atomic_uint64 gets;		/* misses, and those of rows that have gone */
	pg_atomic_uint64 misses;
	pg_atomic_uint64 modifications;
	pg_atomic_uint64 flushes;
	pg_atomic_uint64 clones_made;
	pg_atomic_uint64 cloned;	/* bits of hashes of rows that have clones */
} Cache;

typedef struct RowArea
{
	Cache		caches[AQ_ROW_CACHES];
	AqMutex		free_mutex;
	uint32		free;
	pg_atomic_uint32 highest;	/* row that was ever in use */
	pg_atomic_uint32 hand;
	pg_atomic_uint32 flushing;	/* sessions that are taking rows out */
	pg_atomic_uint32 read[RELATION_BITS / 32];	/* relations that somebody has read, by hash */
	uint32		nbuckets;		/* of each cache; a power of two */
	Bucket		buckets[FLEXIBLE_ARRAY_MEMBER];
} RowArea;

typedef enum Serialization
{
	BY_MUTEX, BY_LATCH
} Serialization;

typedef struct CacheName
{
	const char *name;
	int			number;
} CacheName;

static const CacheName cache_names[] = {
#define X(id, name, number, text) {name, number},
#include "cache/row_cache_list.h"
#undef X
};

int			aq_row_limit = 1024;
int			aq_row_serialization = BY_MUTEX;
int			aq_row_clone_sleeps = 0;

const struct config_enum_entry aq_row_serializations[] = {
	{"mutex", BY_MUTEX, false},
	{"latch", BY_LATCH, false},
	{NULL, 0, false}
};

static RowArea *area;
static Row *rows;				/* 1 .. aq_row_limit */

/* relations that this transaction has changed, by hash: it reads their rows itself */
static uint32 own[RELATION_BITS / 32];
static bool any_own;

/* --- shared memory ------------------------------------------------------------------ */

static uint32
bucket_count(void)
{
	uint32		n = 64;

	while (n < (uint32) aq_row_limit / 2)
		n *= 2;
	return n;
}

static Size
head_size(void)
{
	return CACHELINEALIGN(offsetof(RowArea, buckets) +
						  mul_size(bucket_count() * AQ_ROW_CACHES, sizeof(Bucket)));
}

Size
aq_row_shmem_size(void)
{
	return add_size(head_size(), CACHELINEALIGN(mul_size(aq_row_limit + 1, sizeof(Row))));
}

void
aq_row_shmem_init(void *ptr, bool found)
{
	area = ptr;
	rows = (Row *) ((char *) ptr + head_size());
	if (found)
		return;
	memset(ptr, 0, aq_row_shmem_size());
	for (int i = 0; i < AQ_ROW_CACHES; i++)
	{
		Cache	   *cache = &area->caches[i];

		aq_latch_init(&cache->latch, AQ_LATCH_ROW_CACHE, i + 1);
		pg_atomic_init_u32(&cache->generation, 0);
		pg_atomic_init_u64(&cache->gets, 0);
		pg_atomic_init_u64(&cache->misses, 0);
		pg_atomic_init_u64(&cache->modifications, 0);
		pg_atomic_init_u64(&cache->flushes, 0);
		pg_atomic_init_u64(&cache->clones_made, 0);
		pg_atomic_init_u64(&cache->cloned, 0);
	}
	aq_mutex_init(&area->free_mutex, AQ_MUTEX_TYPE_ROW, 0);
	pg_atomic_init_u32(&area->highest, 0);
	pg_atomic_init_u32(&area->hand, 0);
	pg_atomic_init_u32(&area->flushing, 0);
	area->nbuckets = bucket_count();
	for (uint32 i = 0; i < area->nbuckets * AQ_ROW_CACHES; i++)
	{
		AqMutex    *mutex = &area->buckets[i].mutex;

		aq_mutex_init(mutex, AQ_MUTEX_TYPE_ROW, i);
		aq_mutex_set_object(mutex, i, cache_names[i / area->nbuckets].number, 0);
	}
	for (int i = 0; i < RELATION_BITS / 32; i++)
		pg_atomic_init_u32(&area->read[i], 0);
	for (uint32 i = aq_row_limit; i >= 1; i--)
	{
		aq_mutex_init(&rows[i].mutex, AQ_MUTEX_TYPE_ROW, i);
		rows[i].next = area->free;
		area->free = i;
	}
}

/* --- protection ------------------------------------------------------------------------- */

/* Returns what end_step needs: the parameter may change in between. */
static inline bool
begin_step(Cache *cache, AqMutex *mutex, AqLocation where)
{
	bool		latched = aq_row_serialization == BY_LATCH;

	if (latched)
		aq_latch_get(&cache->latch, AQ_EXCLUSIVE, where);
	aq_mutex_get(mutex, AQ_EXCLUSIVE, where);
	return latched;
}

static inline void
end_step(Cache *cache, AqMutex *mutex, bool latched)
{
	aq_mutex_free(mutex);
	if (latched)
		aq_latch_free(&cache->latch);
}

/* --- the hash -------------------------------------------------------------------------------- */

static uint32
hash_of(AqRowCacheId cache, const AqRowKey *key, uint32 clone)
{
	uint32		hash = hash_bytes((const unsigned char *) key, sizeof(AqRowKey));

	return hash_combine(hash_combine(hash, (uint32) cache), clone) | 0x80000000;
}

static inline Bucket *
bucket_of(AqRowCacheId cache, uint32 hash)
{
	return &area->buckets[(uint32) cache * area->nbuckets + (hash & (area->nbuckets - 1))];
}

/* The bucket's mutex is held. */
static Row *
row_in_bucket(Bucket *bucket, uint32 hash, AqRowCacheId cache, const AqRowKey *key, uint32 clone)
{
	for (uint32 i = bucket->first; i != 0; i = rows[i].next)
		if (rows[i].hash == hash && rows[i].cache == cache && rows[i].clone == clone &&
			memcmp(&rows[i].key, key, sizeof(AqRowKey)) == 0)
			return &rows[i];
	return NULL;
}

/* Step 1: the row, and which it is; 0: there is none. */
static uint32
find(AqRowCacheId id, const AqRowKey *key, uint32 clone, uint32 hash, uint32 *serial)
{
	Cache	   *cache = &area->caches[id];
	Bucket	   *bucket = bucket_of(id, hash);
	bool		latched = begin_step(cache, &bucket->mutex, AQ_LOC_ROW_FIND);
	Row		   *row = row_in_bucket(bucket, hash, id, key, clone);

	/* the serial of a row in the hash changes only when it has left it */
	*serial = row != NULL ? row->serial : 0;
	end_step(cache, &bucket->mutex, latched);
	return row != NULL ? (uint32) (row - rows) : 0;
}

/* Step 2: false when it has left the hash since. */
static bool
pin(Cache *cache, Row *row, uint32 serial)
{
	bool		latched = begin_step(cache, &row->mutex, AQ_LOC_ROW_PIN);
	bool		same = row->live && row->serial == serial;

	if (same)
	{
		row->pins++;
		row->gets++;
		row->used = true;
	}
	end_step(cache, &row->mutex, latched);
	return same;
}

static void
give_row(Row *row)
{
	aq_mutex_get(&area->free_mutex, AQ_EXCLUSIVE, AQ_LOC_ROW_FLUSH);
	row->next = area->free;
	area->free = (uint32) (row - rows);
	aq_mutex_free(&area->free_mutex);
}

/* Step 3. */
static void
release(Cache *cache, Row *row)
{
	bool		latched = begin_step(cache, &row->mutex, AQ_LOC_ROW_RELEASE);
	bool		last = --row->pins == 0 && !row->live;

	end_step(cache, &row->mutex, latched);
	if (last)
		give_row(row);
}

/*
 * Take a row out of the hash, if it is still this one and, for making room,
 * unpinned; it is free then, or when its last pin is given back.
 */
static bool
take_out(Row *row, uint32 serial, bool unpinned_only, bool *is_free)
{
	Bucket	   *bucket;
	bool		taken = false;

	/* these two do not change while the serial does not, and that is looked at below */
	pg_read_barrier();
	bucket = bucket_of(row->cache, row->hash);
	*is_free = false;
	aq_mutex_get(&bucket->mutex, AQ_EXCLUSIVE, AQ_LOC_ROW_FLUSH);
	aq_mutex_get(&row->mutex, AQ_EXCLUSIVE, AQ_LOC_ROW_FLUSH);
	if (row->live && row->serial == serial && !(unpinned_only && row->pins > 0))
	{
		Cache	   *cache = &area->caches[row->cache];
		uint32	   *link = &bucket->first;

		while (*link != (uint32) (row - rows))
			link = &rows[*link].next;
		*link = row->next;
		row->live = false;
		row->serial++;
		pg_atomic_fetch_add_u64(&cache->gets, row->gets);
		row->gets = 0;
		*is_free = row->pins == 0;
		taken = true;
	}
	aq_mutex_free(&row->mutex);
	aq_mutex_free(&bucket->mutex);
	return taken;
}

/* A row for a new entry, or NULL: all are in use this moment. */
static Row *
new_row(void)
{
	Row		   *row = NULL;

	aq_mutex_get(&area->free_mutex, AQ_EXCLUSIVE, AQ_LOC_ROW_FIND);
	if (area->free != 0)
	{
		row = &rows[area->free];
		if (area->free > pg_atomic_read_u32(&area->highest))
		{
			/* flush() looks as far as this, or its new generation is seen in enter() */
			pg_atomic_write_u32(&area->highest, area->free);
			pg_memory_barrier();
		}
		area->free = row->next;
	}
	aq_mutex_free(&area->free_mutex);

	/* the clock: twice around, the first time it only takes the marks away */
	for (int i = 0; i < 2 * aq_row_limit && row == NULL; i++)
	{
		Row		   *next = &rows[1 + pg_atomic_fetch_add_u32(&area->hand, 1) % aq_row_limit];
		uint32		serial = next->serial;
		bool		is_free;

		if (!next->live)
			continue;
		if (next->used)
			next->used = false;
		else if (take_out(next, serial, true, &is_free))
			row = next;
	}
	return row;
}

/* Enter what was read, unless something was taken out since, or somebody else has entered it. */
static void
enter(AqRowCacheId id, const AqRowKey *key, uint32 clone, const char *value, int length, uint32 generation)
{
	uint32		hash = hash_of(id, key, clone);
	Cache	   *cache = &area->caches[id];
	Bucket	   *bucket = bucket_of(id, hash);
	Row		   *row = new_row();
	uint64		gets;
	bool		entered;

	if (row == NULL)
		return;
	aq_mutex_get(&bucket->mutex, AQ_EXCLUSIVE, AQ_LOC_ROW_ENTER);
	/* flush() looks at each row under its mutex: it sees this one, or this sees the new generation */
	aq_mutex_get(&row->mutex, AQ_EXCLUSIVE, AQ_LOC_ROW_ENTER);
	entered = pg_atomic_read_u32(&cache->generation) == generation &&
		row_in_bucket(bucket, hash, id, key, clone) == NULL;
	if (entered)
	{
		row->hash = hash;
		row->cache = id;
		row->clone = clone;
		row->key = *key;
		row->length = length;
		memcpy(row->value, value, Max(length, 0));
		row->serial++;
		row->used = row->live = true;
		row->gets = 0;
		aq_mutex_set_object(&row->mutex, hash, cache_names[id].number, 0);
		aq_mutex_counters(&row->mutex, &gets, &row->sleeps_before);
		row->next = bucket->first;
		bucket->first = (uint32) (row - rows);
	}
	aq_mutex_free(&row->mutex);
	aq_mutex_free(&bucket->mutex);
	if (!entered)
		give_row(row);
}

/* --- clones ------------------------------------------------------------------------------------ */

static inline uint64
clone_bit(const AqRowKey *key)
{
	return UINT64CONST(1) << (hash_bytes((const unsigned char *) key, sizeof(AqRowKey)) % 64);
}

/* Has the row been waited for so often that sessions should have copies of it? */
static bool
is_hot(Row *row)
{
	uint64		gets,
				sleeps;

	aq_mutex_counters(&row->mutex, &gets, &sleeps);
	return sleeps - row->sleeps_before >= (uint64) aq_row_clone_sleeps;
}

static inline uint32
own_clone(void)
{
	return 1 + aq_session_own_number % aq_hot_copies_wanted();
}

/* --- getting ------------------------------------------------------------------------------------- */

/* Copy the row out; -2: it is not there. */
static int
get_cached(AqRowCacheId id, const AqRowKey *key, uint32 clone, char *value, uint32 generation)
{
	Cache	   *cache = &area->caches[id];
	uint32		hash = hash_of(id, key, clone);

	/*
	 * A flush under way may still have to come to this row, and be past the one
	 * that the clone would get.  One that begins later is seen in enter().
	 */
	bool		may_clone = clone == 0 && aq_row_clone_sleeps > 0 &&
		pg_atomic_read_u32(&area->flushing) == 0;

	for (;;)
	{
		uint32		serial;
		uint32		index = find(id, key, clone, hash, &serial);
		Row		   *row = &rows[index];
		int			length;
		bool		hot;

		if (index == 0)
			return -2;
		if (!pin(cache, row, serial))
			continue;
		length = row->length;
		memcpy(value, row->value, Max(length, 0));
		hot = may_clone && is_hot(row);
		release(cache, row);
		if (hot)
		{
			pg_atomic_fetch_or_u64(&cache->cloned, clone_bit(key));
			pg_atomic_fetch_add_u64(&cache->clones_made, 1);
			enter(id, key, own_clone(), value, length, generation);
		}
		return length;
	}
}

static inline uint32
relation_bit(Oid relation)
{
	return murmurhash32(relation) % RELATION_BITS;
}

static bool
is_own(Oid relation)
{
	uint32		bit = relation_bit(relation);

	return any_own && (own[bit / 32] & ((uint32) 1 << (bit % 32))) != 0;
}

/* Whoever changes the relation from now on has to flush. */
static void
mark_read(Oid relation)
{
	uint32		bit = relation_bit(relation);
	pg_atomic_uint32 *word = &area->read[bit / 32];

	if ((pg_atomic_read_u32(word) & ((uint32) 1 << (bit % 32))) == 0)
		pg_atomic_fetch_or_u32(word, (uint32) 1 << (bit % 32));
}

int
aq_row_get(AqRowCacheId id, const AqRowKey *key, char *value, AqRowLoad load, void *arg)
{
	Cache	   *cache = &area->caches[id];
	uint32		generation;
	int			length;

	aq_session_attach();
	mark_read(key->relation);
	generation = pg_atomic_read_u32(&cache->generation);
	pg_memory_barrier();
	AcceptInvalidationMessages();	/* load() may rely on PostgreSQL's own caches */

	if (is_own(key->relation) || RecoveryInProgress())
	{
		pg_atomic_fetch_add_u64(&cache->gets, 1);
		pg_atomic_fetch_add_u64(&cache->misses, 1);
		return load(key, value, arg);
	}
	if (aq_row_clone_sleeps > 0 && (pg_atomic_read_u64(&cache->cloned) & clone_bit(key)) != 0)
	{
		length = get_cached(id, key, own_clone(), value, generation);
		if (length != -2)
			return length;
	}
	length = get_cached(id, key, 0, value, generation);
	if (length != -2)
		return length;

	pg_atomic_fetch_add_u64(&cache->gets, 1);
	pg_atomic_fetch_add_u64(&cache->misses, 1);
	length = load(key, value, arg);
	aq_point("row-loaded");
	if (length < AQ_ROW_VALUE)
		enter(id, key, 0, value, length, generation);
	return length;
}

/* --- changes ------------------------------------------------------------------------------------------ */

/*
 * Take out the rows of a database, or those of the relations that this
 * transaction has changed.  Does not raise.
 */
static void
flush(Oid database)
{
	uint32		highest;

	pg_atomic_fetch_add_u32(&area->flushing, 1);
	for (int i = 0; i < AQ_ROW_CACHES; i++)
		pg_atomic_fetch_add_u32(&area->caches[i].generation, 1);	/* a barrier, too */
	highest = pg_atomic_read_u32(&area->highest);
	for (uint32 i = 1; i <= highest; i++)
	{
		Row		   *row = &rows[i];
		uint32		serial;
		bool		matches;
		bool		is_free;

		aq_mutex_get(&row->mutex, AQ_EXCLUSIVE, AQ_LOC_ROW_FLUSH);
		serial = row->serial;
		matches = row->live && (OidIsValid(database) ? row->key.database == database
								: is_own(row->key.relation));
		aq_mutex_free(&row->mutex);
		if (!matches || !take_out(row, serial, false, &is_free))
			continue;
		pg_atomic_fetch_add_u64(&area->caches[row->cache].flushes, 1);
		if (is_free)
			give_row(row);
	}
	pg_atomic_fetch_sub_u32(&area->flushing, 1);
}

void
aq_row_relation_changed(Oid relation)
{
	uint32		bit = relation_bit(relation);

	/* what others have changed was taken out by them */
	if (!TransactionIdIsValid(GetTopTransactionIdIfAny()))
		return;
	own[bit / 32] |= (uint32) 1 << (bit % 32);
	any_own = true;
}

void
aq_row_count_modification(AqRowCacheId id)
{
	if (area == NULL)
		return;					/* not preloaded: a table is restored */
	pg_atomic_fetch_add_u64(&area->caches[id].modifications, 1);
}

void
aq_row_flush_database(Oid database)
{
	aq_session_attach();
	flush(database);
}

/* Has anybody read what this transaction has changed? */
static bool
own_was_read(void)
{
	pg_memory_barrier();
	for (int i = 0; i < RELATION_BITS / 32; i++)
		if (own[i] != 0 && (own[i] & pg_atomic_read_u32(&area->read[i])) != 0)
			return true;
	return false;
}

/*
 * The transaction is committed: who reads the catalog from now on reads the
 * new rows.  What was read before is taken out, or does not come in.
 */
static void
flush_own(void)
{
	if (any_own && aq_session_is_attached && own_was_read())
		flush(InvalidOid);
}

/*
 * Once more when PostgreSQL's own caches have been told, because what others
 * have read in between may come from those.  Does not raise.
 */
static void
flush_again(bool commit)
{
	if (!any_own)
		return;
	if (commit)
		flush_own();
	any_own = false;
	memset(own, 0, sizeof(own));
}

/* To flush, the session needs its place in shared memory. */
static void
attach_to_flush(void)
{
	if (any_own && area != NULL)
		aq_session_attach();
}

static const AqXactOps row_ends = {
	.pre_commit = attach_to_flush,
	.commit = flush_own,
	.released = flush_again,
};

void
aq_row_init(void)
{
	aq_xact_register(AQ_XACT_ROWS, &row_ends);
}

/* --- for the view ----------------------------------------------------------------------------------------- */

void
aq_row_count(AqRowCacheId id, AqRowCounts *counts)
{
	Cache	   *cache = &area->caches[id];

	memset(counts, 0, sizeof(AqRowCounts));
	counts->name = cache_names[id].name;
	counts->number = cache_names[id].number;
	for (int i = 1; i <= aq_row_limit; i++)
	{
		Row		   *row = &rows[i];
		uint64		gets,
					sleeps;

		/* a row that leaves hands its gets over under its mutex */
		aq_mutex_get(&row->mutex, AQ_EXCLUSIVE, AQ_LOC_VIEW);
		if (row->live && row->cache == id)
		{
			counts->usage++;
			counts->clones += row->clone != 0;
			counts->gets += row->gets;
			aq_mutex_counters(&row->mutex, &gets, &sleeps);
			counts->sleeps += sleeps - row->sleeps_before;
		}
		aq_mutex_free(&row->mutex);
	}
	counts->gets += pg_atomic_read_u64(&cache->gets);
	counts->misses = pg_atomic_read_u64(&cache->misses);
	counts->modifications = pg_atomic_read_u64(&cache->modifications);
	counts->flushes = pg_atomic_read_u64(&cache->flushes);
}
