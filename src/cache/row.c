/*-------------------------------------------------------------------------
 *
 * row.c
 *	  The dictionary cache (row cache): rows of the catalog, shared by
 *	  sessions.
 *
 * A row is found by hash and copied in three steps, each of which is
 * protected:
 *
 *	find		the chain of its bucket
 *	pin			the row, if it is still the one that was found
 *	release		the row
 *
 * They are protected by the bucket's mutex, the row's mutex, and the row's
 * mutex.  With pgaq.row_cache_serialization = latch, the cache's single latch
 * is also held around each step, so a get takes the latch three times.  The
 * mutexes are always taken, so the parameter can be changed at any time,
 * although sessions notice the change at different moments.
 *
 * A cached row does not change: a change of the catalog removes it.  A session
 * that does not find a row reads the catalog and enters the row, unless rows
 * were removed meanwhile (generation), because then it may have read the old
 * row.  README.md explains why no session sees an old row after a change.
 *
 * Counters are in the row, under its mutex, so they are exact in both modes;
 * when the row is removed, they are added to the cache's counters.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "cache/cache_private.h"

#include "access/xlog.h"
#include "common/hashfn.h"
#include "utils/inval.h"

/* size of the bitmaps of relations, which are indexed by hash */
#define RELATION_BITS 32768

typedef struct Row
{
	AqMutex		mutex;
	uint32		next;			/* in its bucket or the free list; 0: end; protected by the bucket's mutex */
	/* do not change while the row is in the hash */
	uint32		hash;
	AqRowCacheId cache;
	uint32		clone;			/* number of the clone, from 1; 0: the row itself */
	AqRowKey	key;
	int			length;			/* -1: the catalog has no such row */
	char		value[AQ_ROW_VALUE];
	/* protected by the row's mutex */
	bool		live;			/* in the hash */
	int			pins;
	uint32		serial;			/* changes when the slot is used for another row */
	bool		used;			/* since the clock hand passed */
	uint64		gets;
	uint64		sleeps_before;	/* of the mutex, for earlier rows */
} Row;

typedef struct Bucket
{
	AqMutex		mutex;
	uint32		first;
} Bucket;

typedef struct Cache
{
	AqLatch		latch;
	pg_atomic_uint32 generation;	/* incremented when rows are removed */
	pg_atomic_uint64 gets;		/* misses, and gets of removed rows */
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
	pg_atomic_uint32 highest;	/* highest row ever used */
	pg_atomic_uint32 hand;
	pg_atomic_uint32 flushing;	/* number of sessions that are removing rows */
	pg_atomic_uint32 read[RELATION_BITS / 32];	/* bitmap of relations that were read, by hash */
	uint32		nbuckets;		/* for each cache; a power of two */
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

/*
 * bitmap of relations that this transaction has changed: it bypasses the cache
 * for them
 */
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

/*
 * Returns whether the latch was taken, for end_step: the parameter may change
 * in between.
 */
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

/* The caller holds the bucket's mutex. */
static Row *
row_in_bucket(Bucket *bucket, uint32 hash, AqRowCacheId cache, const AqRowKey *key, uint32 clone)
{
	for (uint32 i = bucket->first; i != 0; i = rows[i].next)
		if (rows[i].hash == hash && rows[i].cache == cache && rows[i].clone == clone &&
			memcmp(&rows[i].key, key, sizeof(AqRowKey)) == 0)
			return &rows[i];
	return NULL;
}

/* Step 1: returns the row's index, 0 if there is none, and its serial. */
static uint32
find(AqRowCacheId id, const AqRowKey *key, uint32 clone, uint32 hash, uint32 *serial)
{
	Cache	   *cache = &area->caches[id];
	Bucket	   *bucket = bucket_of(id, hash);
	bool		latched = begin_step(cache, &bucket->mutex, AQ_LOC_ROW_FIND);
	Row		   *row = row_in_bucket(bucket, hash, id, key, clone);

	/* the serial of a row changes only after it was removed from the hash */
	*serial = row != NULL ? row->serial : 0;
	end_step(cache, &bucket->mutex, latched);
	return row != NULL ? (uint32) (row - rows) : 0;
}

/* Step 2: returns false if the row was removed from the hash since step 1. */
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
 * Removes a row from the hash, if its serial is unchanged and, with
 * unpinned_only, it is not pinned.  The row is free then, or when its last pin
 * is released.
 */
static bool
take_out(Row *row, uint32 serial, bool unpinned_only, bool *is_free)
{
	Bucket	   *bucket;
	bool		taken = false;

	/*
	 * cache and hash do not change while the serial does not, which is checked
	 * below
	 */
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

/* Returns a row for a new entry, or NULL if all are in use. */
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
			/*
			 * either flush() reads this value, or enter() sees its new
			 * generation
			 */
			pg_atomic_write_u32(&area->highest, area->free);
			pg_memory_barrier();
		}
		area->free = row->next;
	}
	aq_mutex_free(&area->free_mutex);

	/* clock sweep, two rounds: the first round only clears the marks */
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

/*
 * Enters a row that was read, unless rows were removed since, or another
 * session has entered it.
 */
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
	/*
	 * flush() checks each row under its mutex: either it sees this row, or we
	 * see the new generation
	 */
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

/*
 * Have there been enough waits for the row that sessions should use clones?
 */
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

/* Copies the cached row; returns -2 if there is none. */
static int
get_cached(AqRowCacheId id, const AqRowKey *key, uint32 clone, char *value, uint32 generation)
{
	Cache	   *cache = &area->caches[id];
	uint32		hash = hash_of(id, key, clone);

	/*
	 * Do not clone during a flush: it may have passed the slot of the clone,
	 * but not this row yet. enter() notices a flush that begins later.
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

/* From now on, sessions that change the relation have to flush. */
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
	AcceptInvalidationMessages();	/* load() may use PostgreSQL's caches */

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
 * Removes the rows of a database, or those of the relations that this
 * transaction has changed.  Does not raise an error.
 */
static void
flush(Oid database)
{
	uint32		highest;

	pg_atomic_fetch_add_u32(&area->flushing, 1);
	for (int i = 0; i < AQ_ROW_CACHES; i++)
		pg_atomic_fetch_add_u32(&area->caches[i].generation, 1);	/* also a barrier */
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

	/* other sessions have removed the rows that they changed */
	if (!TransactionIdIsValid(GetTopTransactionIdIfAny()))
		return;
	own[bit / 32] |= (uint32) 1 << (bit % 32);
	any_own = true;
}

void
aq_row_count_modification(AqRowCacheId id)
{
	if (area == NULL)
		return;					/* not preloaded, as in a restore */
	pg_atomic_fetch_add_u64(&area->caches[id].modifications, 1);
}

void
aq_row_flush_database(Oid database)
{
	aq_session_attach();
	flush(database);
}

/* Has any session read a relation that this transaction has changed? */
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
 * Called after the commit: sessions that read the catalog from now on see the
 * new rows.  Rows that were read before are removed or not entered.
 */
static void
flush_own(void)
{
	if (any_own && aq_session_is_attached && own_was_read())
		flush(InvalidOid);
}

/*
 * Flushes again after PostgreSQL's caches were invalidated, because sessions
 * may have read old rows from these caches since the first flush.  Does not
 * raise an error.
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

/* Attaches the session, which the flush after the commit needs. */
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

		/* a removed row adds its gets to the cache's under its mutex */
		aq_mutex_get(&row->mutex, AQ_EXCLUSIVE, AQ_LOC_VIEW);
		if (row->live && row->cache == id)
		{
			counts->usage++;
			if (row->clone != 0)
				counts->clones++;
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
