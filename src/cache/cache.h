/*-------------------------------------------------------------------------
 *
 * cache.h
 *	  The door of part "cache": the object cache (library cache), the
 *	  dictionary cache (row cache), and the memory of all caches.
 *
 * An object is a definition that sessions share, here a queue of a database.
 * It has a handle in shared memory, found by hash, with two protections:
 *
 *	lock	of its definition.	Null: the session knows the handle and will
 *			hear of changes; it hinders nobody.	 Share: the session looks at the
 *			definition, for a moment.	Exclusive: a transaction that has changed
 *			it commits.
 *	pin		of its memory.	Share: the session uses it; what is pinned is never
 *			freed.	Exclusive: it is being loaded, or freed.
 *
 *	wanted		lock held by others:	pin held by others:
 *	null		whatever				-
 *	share		waits for exclusive		waits for exclusive
 *	exclusive	waits for share and		load: only the first gets it, the others
 *				exclusive				wait; free: gives up when anything is held
 *
 * Who waits here waits for moments only; what lasts as long as a transaction
 * is ordered by heavyweight locks, which find deadlocks: see README.md.
 *
 * The value is loaded once: the first pin of an unloaded object loads, others
 * wait.  The handle's mutex protects every field but the hash chain, which
 * its bucket's mutex protects.
 *
 * A hot object has copies: handles of their own, with a hash and a mutex of
 * their own, and the master's value.  A session uses the copy of its number.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_CACHE_H
#define AQ_CACHE_H

#include "sync/sync.h"

#include "datatype/timestamp.h"

/* The only kind of object there is; Oracle's number of its namespace. */
#define AQ_NAMESPACE_QUEUE 10

typedef enum AqObjectMode
{
	AQ_OBJECT_NONE = 0,
	AQ_OBJECT_NULL,
	AQ_OBJECT_SHARE,
	AQ_OBJECT_EXCLUSIVE
} AqObjectMode;

typedef enum AqObjectState
{
	AQ_OBJECT_FREE = 0,
	AQ_OBJECT_NEW,				/* in the hash, not loaded */
	AQ_OBJECT_LOADING,			/* one session loads, the others wait */
	AQ_OBJECT_VALID,
	AQ_OBJECT_AGING,			/* somebody tries to free it, the others wait */
	AQ_OBJECT_DROPPED			/* out of the hash; freed by the last unpin */
} AqObjectState;

typedef struct AqObject
{
	AqMutex		mutex;
	/* fixed while the object is in the hash */
	Oid			database;
	uint32		id;				/* queue id */
	uint32		hash;
	uint32		index;			/* of this handle */
	uint32		master;			/* the index of the value: index, but for a copy */
	uint32		copy;			/* 1 ..: the how many-th copy; 0: the master */
	/* protected by the bucket's mutex */
	uint32		next;			/* in the bucket or the free list; 0 ends */
	/* written under the mutex, read by anybody */
	volatile AqObjectState state;
	volatile uint32 serial;		/* how often the handle was used for an object */
	volatile uint32 version;	/* of the definition: descriptions read before are stale */
	volatile uint32 copies;		/* of a hot object; 0: it is not hot */
	int			lock_holder;	/* session that has the exclusive lock; -1: none */
	int			locks;			/* sessions that have the share lock */
	int			lock_waiters;	/* requests for the exclusive lock: before new shares */
	int			pin_holder;		/* session that loads or frees; -1: none */
	int			pins;			/* share */
	uint64		loads;
	uint64		locked_total;
	uint64		pinned_total;
	uint64		invalidations;
	uint64		mutex_gets;		/* of the mutex, before this object had it */
	uint64		mutex_sleeps;
	int64		used;			/* when its last pin was given back; aq_clock_us */
	TimestampTz loaded_at;
	TimestampTz loaded_before;
	AqCond		changed;		/* a load, a lock, a pin has ended */
} AqObject;

/* Frees the value of an object that nobody can reach; must not raise. */
typedef void (*AqObjectFree) (AqObject *object);

/* May the value be freed, although the object exists?  Must not raise. */
typedef bool (*AqObjectIdle) (AqObject *object);

/* Handles are scarce: give back pins that are not needed now; true if there were some. */
typedef bool (*AqObjectPressure) (void);

extern const AqPart aq_cache_part;
extern int	aq_handle_limit;	/* pgaq.max_queues */
extern int	aq_hot_copies;		/* pgaq.hot_object_copies */

extern void aq_handle_on_free(AqObjectFree free_callback, AqObjectIdle idle_callback, Size value_size);
extern void aq_handle_on_pressure(AqObjectPressure callback);

/* grows when a session finds no handle: sessions give back what they do not need */
extern uint32 aq_handle_pressure(void);

/* grows when an object is dropped: sessions forget it after that */
extern uint32 aq_handle_drops(void);

/* so many objects are pinned that nobody should keep a pin between transactions */
extern bool aq_handle_pins_are_scarce(void);

/*
 * Find or make the object, take the null lock and pin it.  *must_load is set
 * when the caller has to load it and call aq_object_loaded(); until then the
 * pin is exclusive, and a claim: when the load fails, the value is freed.  Of a
 * hot object, the session's copy.  Waits while another session loads.  When no handle is free,
 * the object that was not pinned for longest is freed; if there is none,
 * raises AQ_ERR_CACHE_FULL.
 */
extern AqObject *aq_object_pin(Oid database, uint32 id, bool *must_load);

/* The same for a view, which must not push others out: NULL when it is not there and few handles are free. */
extern AqObject *aq_object_pin_modestly(Oid database, uint32 id, bool *must_load);
extern void aq_object_loaded(AqObject *object);
extern void aq_object_unpin(AqObject *object);

/*
 * Lock, pin and unlock an object that the session knows, serial being its
 * serial then.  False, with nothing pinned, when it has to be found again.
 */
extern bool aq_object_check(AqObject *object, uint32 serial);

/*
 * Pin whatever valid object the handle has now, the master of a hot one, too;
 * false: it has none.  For the worker, which goes through all handles.
 */
extern bool aq_object_pin_handle(AqObject *object);

/* The null lock is not needed any more. */
extern void aq_object_forget(AqObject *object, uint32 serial);

/*
 * The exclusive lock of the object and of all its copies, if it is in the
 * cache: may wait and raise.  Before the transaction commits; all are given
 * back by aq_object_unlock_all().
 */
extern void aq_object_lock(Oid database, uint32 id);
extern void aq_object_unlock_all(void);

/* Descriptions of it that were read until now are stale.  Does not raise. */
extern void aq_object_invalidate(Oid database, uint32 id);

/* Take it out of the hash; the last unpin frees it.  Does not raise. */
extern void aq_object_drop(Oid database, uint32 id);

/* The valid object, unpinned, or NULL: it may go at any time.  Never a copy. */
extern AqObject *aq_object_find(Oid database, uint32 id);

/* All handles with a value, for views and workers: index 1 .. aq_handle_limit. */
extern AqObject *aq_handle_by_index(uint32 index);

/* --- hot.c: copies of hot objects */
extern void aq_hot_mark(AqObject *object);	/* pinned; may raise */
extern void aq_hot_unmark(AqObject *object);

/* 32 hexadecimal digits and an end: Oracle's FULL_HASH_VALUE */
#define AQ_FULL_HASH 33
extern void aq_cache_views_full_hash(const AqObject *object, char *buffer);

/* --- row.c: the dictionary cache (row cache) ----------------------------------
 *
 * Rows of the catalog that sessions share, by key.  A row belongs to a relation:
 * when that changes (relcache invalidation), its rows leave the cache; a
 * transaction that has changed it reads its rows past the cache.
 */
typedef enum AqRowCacheId
{
#define X(id, name, number, text) AQ_ROW_##id,
#include "cache/row_cache_list.h"
#undef X
	AQ_ROW_CACHES
} AqRowCacheId;

#define AQ_ROW_VALUE 256		/* bytes of a row; what is longer is not kept */

/* Zeroed before it is filled. */
typedef struct AqRowKey
{
	Oid			database;
	Oid			relation;
	char		name[128];
} AqRowKey;

/*
 * Reads the row from the catalog, with the latest snapshot, into value; returns
 * its length, -1 when there is none.  May raise.
 */
typedef int (*AqRowLoad) (const AqRowKey *key, char *value, void *arg);

/* The same, from the cache if it is there.  In a transaction. */
extern int	aq_row_get(AqRowCacheId cache, const AqRowKey *key, char *value, AqRowLoad load, void *arg);

/* Called for each relcache invalidation; InvalidOid: of everything.  Does not raise. */
extern void aq_row_relation_changed(Oid relation);
extern void aq_row_count_modification(AqRowCacheId cache);

/* After COMMIT PREPARED, whose changes nobody knows; after DROP DATABASE. */
extern void aq_row_flush_database(Oid database);

/* --- chunks.c: chunks of shared memory, for all caches ----------------------
 *
 * One pool of equal chunks, sized by pgaq.message_cache_size.  A session first
 * reserves what it will need, where it may wait and raise; taking from the
 * reserve and freeing never raise, so both are fit for latched sections and
 * for callbacks after commit.
 */
#define AQ_CHUNK_SIZE 2048

typedef uint32 AqChunk;			/* 0: none */

extern char *aq_chunks_base;
extern int	aq_chunks_cache_kb;	/* pgaq.message_cache_size */

static inline void *
aq_chunk_ptr(AqChunk chunk)
{
	Assert(chunk != 0);
	return aq_chunks_base + (Size) chunk * AQ_CHUNK_SIZE;
}

/* Frees chunks by evicting something; false when nothing can be evicted. */
typedef bool (*AqChunkPressure) (void);

extern void aq_chunks_on_pressure(AqChunkPressure callback);
extern uint32 aq_chunks_total(void);
extern uint32 aq_chunks_free_count(void);
extern uint32 aq_chunks_most_used(void);

/*
 * See to it that the session's reserve holds count chunks.  No latch held.
 * The first waits for others and raises AQ_ERR_CACHE_FULL in the end; the
 * second evicts what can be evicted, and returns false when that is too little.
 */
extern void aq_chunks_reserve(uint32 count);
extern bool aq_chunks_try(uint32 count);
extern bool aq_chunks_impatient; /* others wait for this session, so it raises rather than wait for them */
extern bool aq_chunks_set_impatient(bool on);	/* returns what it was */
extern uint32 aq_chunks_reserved(void);
extern AqChunk aq_chunks_take(void); /* zeroed, out of the reserve */
extern void aq_chunks_free(const AqChunk *chunks, uint32 count);	/* 0s are skipped */
extern void aq_chunks_trim(void);	/* give most of the reserve back */

/* --- for aq.check(): what does not agree.  used: chunks that other parts know of. */
extern void aq_chunks_check(AqFindings *findings, uint32 used);
extern void aq_cache_check(AqFindings *findings);

#endif							/* AQ_CACHE_H */
