/*-------------------------------------------------------------------------
 *
 * cache.h
 *	  The public header of part "cache": the object cache (library cache), the
 *	  dictionary cache (row cache), and the memory of all caches.
 *
 * An object is a definition that sessions share, here a queue of a database.
 * It has a handle in shared memory, found by hash, which is protected by two
 * kinds of locks:
 *
 *	lock	protects the definition.  Null: the session knows the handle and will
 *			notice changes; conflicts with no mode.  Share: the session checks the
 *			definition, briefly.  Exclusive: a transaction that has changed the
 *			definition commits.
 *	pin		protects the memory.  Share: the session uses it, so it is not freed.
 *			Exclusive: it is being loaded or freed.
 *
 *	wanted		lock held by others:	pin held by others:
 *	null		does not wait			-
 *	share		waits for exclusive		waits for exclusive
 *	exclusive	waits for share and		load: the first session gets it, others
 *				exclusive				wait; free: fails if any is held
 *
 * Waits here are short; operations that last as long as a transaction use
 * heavyweight locks, which detect deadlocks: see README.md.
 *
 * The value is loaded once: the first session that pins an unloaded object
 * loads it, others wait.  The handle's mutex protects all fields except the
 * hash chain, which the bucket's mutex protects.
 *
 * A hot object has copies: additional handles, each with its own hash and
 * mutex, which share the master's value.  The session's number selects the
 * copy that it uses.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_CACHE_H
#define AQ_CACHE_H

#include "sync/sync.h"

#include "datatype/timestamp.h"

/* The only kind of object; Oracle's number of its namespace. */
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
	AQ_OBJECT_AGING,			/* a session tries to free it, others wait */
	AQ_OBJECT_DROPPED			/* removed from the hash; freed by the last unpin */
} AqObjectState;

typedef struct AqObject
{
	AqMutex		mutex;
	/* do not change while the object is in the hash */
	Oid			database;
	uint32		id;				/* queue id */
	uint32		hash;
	uint32		index;			/* of this handle */
	uint32		master;			/* index of the handle with the value; differs from index in a copy */
	uint32		copy;			/* number of the copy, from 1; 0: the master */
	/* protected by the bucket's mutex */
	uint32		next;			/* in the bucket or the free list; 0: end */
	/* written under the mutex, read by any session */
	volatile AqObjectState state;
	volatile uint32 serial;		/* number of objects that have used the handle */
	volatile uint32 version;	/* of the definition: older descriptions are stale */
	volatile uint32 copies;		/* number of copies; 0: the object is not hot */
	int			lock_holder;	/* session that holds the exclusive lock; -1: none */
	int			locks;			/* sessions that hold the share lock */
	int			lock_waiters;	/* requests for the exclusive lock, which precede new share locks */
	int			pin_holder;		/* session that loads or frees it; -1: none */
	int			pins;			/* share */
	uint64		loads;
	uint64		locked_total;
	uint64		pinned_total;
	uint64		invalidations;
	uint64		mutex_gets;		/* of the mutex, before this object used the handle */
	uint64		mutex_sleeps;
	int64		used;			/* when its last pin was released; aq_clock_us */
	TimestampTz loaded_at;
	TimestampTz loaded_before;
	AqCond		changed;		/* a load, lock or pin has ended */
} AqObject;

/*
 * Frees the value of an object that no session can reach; must not raise an
 * error.
 */
typedef void (*AqObjectFree) (AqObject *object);

/*
 * May the value be freed although the object exists?  Must not raise an error.
 */
typedef bool (*AqObjectIdle) (AqObject *object);

/*
 * Called when handles are scarce: releases pins that are not needed now;
 * returns true if there were any.
 */
typedef bool (*AqObjectPressure) (void);

extern const AqPart aq_cache_part;
extern int	aq_handle_limit;	/* pgaq.max_queues */
extern int	aq_hot_copies;		/* pgaq.hot_object_copies */

extern void aq_handle_on_free(AqObjectFree free_callback, AqObjectIdle idle_callback, Size value_size);
extern void aq_handle_on_pressure(AqObjectPressure callback);

/*
 * incremented when a session finds no handle: sessions then release pins that
 * they do not need
 */
extern uint32 aq_handle_pressure(void);

/* incremented when an object is dropped: sessions then forget it */
extern uint32 aq_handle_drops(void);

/*
 * are most objects pinned, so that sessions should not keep pins between
 * transactions?
 */
extern bool aq_handle_pins_are_scarce(void);
extern uint32 aq_handle_pinned(void);

/*
 * Finds or creates the object, takes the null lock and pins it. *must_load is
 * set if the caller has to load it and call aq_object_loaded(); until then the
 * pin is exclusive and a claim, so that the value is freed if the load fails.
 * Returns the session's copy if the object is hot.  Waits while another
 * session loads it.  If no handle is free, the least recently pinned object is
 * freed; if all are in use, raises AQ_ERR_CACHE_FULL.
 */
extern AqObject *aq_object_pin(Oid database, uint32 id, bool *must_load);

/*
 * The same for views, which must not evict other objects: returns NULL if the
 * object is not in the cache and few handles are free.
 */
extern AqObject *aq_object_pin_modestly(Oid database, uint32 id, bool *must_load);
extern void aq_object_loaded(AqObject *object);

/* Gives the load up, without an error: the session keeps no pin. */
extern void aq_object_not_loaded(AqObject *object);
extern void aq_object_unpin(AqObject *object);

/*
 * Locks, pins and unlocks an object whose handle and serial the session knows.
 * Returns false, with nothing pinned, if the object has to be found again.
 */
extern bool aq_object_check(AqObject *object, uint32 serial);

/*
 * Pins the valid object that the handle has now, the master if it is hot;
 * returns false if it has none.  For the worker, which visits all handles.
 */
extern bool aq_object_pin_handle(AqObject *object);

/* Releases the null lock. */
extern void aq_object_forget(AqObject *object, uint32 serial);

/*
 * Takes the exclusive lock of the object and of all its copies, if it is in
 * the cache; may wait and raise an error.  Called before the transaction
 * commits; aq_object_unlock_all() releases all of them.
 */
extern void aq_object_lock(Oid database, uint32 id);
extern void aq_object_unlock_all(void);

/*
 * Makes all descriptions of the object that were read until now stale.  Does
 * not raise an error.
 */
extern void aq_object_invalidate(Oid database, uint32 id);

/*
 * Removes the object from the hash; the last unpin frees it.  Does not raise
 * an error.
 */
extern void aq_object_drop(Oid database, uint32 id);

/*
 * Returns the valid object, unpinned, or NULL; it may be freed at any time.
 * Never returns a copy.
 */
extern AqObject *aq_object_find(Oid database, uint32 id);

/*
 * All handles that can have a value, for views and workers: index 1 ..
 * aq_handle_limit.
 */
extern AqObject *aq_handle_by_index(uint32 index);

/* --- hot.c: copies of hot objects */
extern void aq_hot_mark(AqObject *object);	/* the object is pinned; may raise an error */
extern void aq_hot_unmark(AqObject *object);

/* size of Oracle's FULL_HASH_VALUE: 32 hexadecimal digits and a null byte */
#define AQ_FULL_HASH 33
extern void aq_cache_views_full_hash(const AqObject *object, char *buffer);

/* --- row.c: the dictionary cache (row cache) ----------------------------------
 *
 * Rows of the catalog, by key, shared by sessions.  A row belongs to a
 * relation: when that changes (relcache invalidation), its rows are removed; a
 * transaction that has changed it bypasses the cache for its rows.
 */
typedef enum AqRowCacheId
{
#define X(id, name, number, text) AQ_ROW_##id,
#include "cache/row_cache_list.h"
#undef X
	AQ_ROW_CACHES
} AqRowCacheId;

#define AQ_ROW_VALUE 256		/* bytes of a row; longer rows are not cached */

/* Zero it before filling it in. */
typedef struct AqRowKey
{
	Oid			database;
	Oid			relation;
	char		name[128];
} AqRowKey;

/*
 * Reads the row from the catalog, with the latest snapshot, into value;
 * returns its length, or -1 if there is none.  May raise an error.
 */
typedef int (*AqRowLoad) (const AqRowKey *key, char *value, void *arg);

/*
 * The same, but from the cache if possible.  Must be called in a transaction.
 */
extern int	aq_row_get(AqRowCacheId cache, const AqRowKey *key, char *value, AqRowLoad load, void *arg);

/*
 * Called for each relcache invalidation; InvalidOid: all relations.  Does not
 * raise an error.
 */
extern void aq_row_relation_changed(Oid relation);
extern void aq_row_count_modification(AqRowCacheId cache);

/*
 * Called after COMMIT PREPARED, because the changed relations are not known,
 * and after DROP DATABASE.
 */
extern void aq_row_flush_database(Oid database);

/* --- chunks.c: chunks of shared memory, for all caches ----------------------
 *
 * One pool of chunks of equal size; pgaq.message_cache_size sets its size.  A
 * session first reserves the chunks that it needs, which may wait and raise an
 * error; taking from the reserve and freeing never raise errors, so they are
 * allowed under latches and in callbacks after commit.
 */
#define AQ_CHUNK_SIZE 2048

typedef uint32 AqChunk;			/* 0: none */

extern char *aq_chunks_base;
extern int	aq_chunks_cache_kb; /* pgaq.message_cache_size */

static inline void *
aq_chunk_ptr(AqChunk chunk)
{
	Assert(chunk != 0);
	return aq_chunks_base + (Size) chunk * AQ_CHUNK_SIZE;
}

/*
 * Frees chunks by evicting a frame; returns false if no frame can be evicted.
 */
typedef bool (*AqChunkPressure) (void);

extern void aq_chunks_on_pressure(AqChunkPressure callback);
extern uint32 aq_chunks_total(void);
extern uint32 aq_chunks_free_count(void);
extern uint32 aq_chunks_most_used(void);

/*
 * Fill the session's reserve up to count chunks.  The caller holds no latch.
 * The first function waits for other sessions and finally raises
 * AQ_ERR_CACHE_FULL; the second only evicts, and returns false if that is not
 * enough.
 */
extern void aq_chunks_reserve(uint32 count);
extern bool aq_chunks_try(uint32 count);

/* A wait for other transactions to end; initially 0. */
typedef struct AqChunkWait
{
	int64		deadline;
	uint32		seen;			/* broadcasts before the caller's latest try */
	AqDeadlockWatch watch;
} AqChunkWait;

/*
 * Between two tries of the caller: returns false if the session has waited long
 * enough.  After the last try, unless it raises an error, the wait is ended.
 */
extern bool aq_chunks_wait(AqChunkWait *wait, uint32 count);
extern void aq_chunks_end_wait(AqChunkWait *wait);

/*
 * Frames can be evicted that could not be before: sessions that wait try again.
 * The caller holds no latch; raises no error.
 */
extern void aq_chunks_tell(void);
extern bool aq_chunks_impatient;	/* others wait for this session, so it raises an error instead of waiting */
extern bool aq_chunks_set_impatient(bool on);	/* returns the previous value */
extern uint32 aq_chunks_reserved(void);
extern AqChunk aq_chunks_take(void);	/* zeroed; from the reserve */
extern void aq_chunks_free(const AqChunk *chunks, uint32 count);	/* 0s are skipped */
extern void aq_chunks_trim(void);	/* returns most of the reserve to the pool */

/*
 * --- for aq.check(): reports differences. used: chunks used by other parts.
 */
extern void aq_chunks_check(AqFindings *findings, uint32 used);
extern void aq_cache_check(AqFindings *findings);

#endif							/* AQ_CACHE_H */
