/*-------------------------------------------------------------------------
 *
 * cache.h
 *	  The door of part "cache": the object cache (library cache).
 *
 * An object is a definition that sessions share, here a queue of a database.
 * It has a handle in shared memory, found by hash, with two protections:
 *
 *	lock  the object stays defined for the holder (share by users); only
 *		  counted here, because heavyweight locks on the queue's tables do the
 *		  blocking, with deadlock detection;
 *	pin   its memory stays.  A dropped object is freed by its last unpin.
 *
 * The value is loaded once: the first pin of an unloaded object loads, others
 * wait.  The handle's mutex protects every field but the hash chain, which
 * its bucket's mutex protects.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_CACHE_H
#define AQ_CACHE_H

#include "sync/sync.h"

typedef enum AqObjectState
{
	AQ_OBJECT_FREE = 0,
	AQ_OBJECT_NEW,				/* in the hash, not loaded */
	AQ_OBJECT_LOADING,			/* one session loads, the others wait */
	AQ_OBJECT_VALID,
	AQ_OBJECT_DROPPED			/* out of the hash; freed by the last unpin */
} AqObjectState;

typedef struct AqObject
{
	AqMutex		mutex;
	/* fixed while the object is in the hash */
	Oid			database;
	uint32		id;				/* queue id */
	uint32		hash;
	uint32		index;			/* of this handle: the value's place, too */
	/* protected by the bucket's mutex */
	uint32		next;			/* in the bucket or the free list; 0 ends */
	/* protected by mutex */
	AqObjectState state;
	int			locks;			/* sessions that hold the share lock */
	int			pins;
	uint64		loads;
	uint64		locked_total;
	uint64		pinned_total;
	uint64		invalidations;
	AqCond		changed;		/* loading has ended */
} AqObject;

/* Frees the value of a dropped object; must not raise. */
typedef void (*AqObjectFree) (AqObject *object);

extern const AqPart aq_cache_part;
extern int	aq_object_limit;	/* pgaq.max_queues */

extern void aq_object_on_free(AqObjectFree callback);

/*
 * Find or make the object and pin and lock it.  *must_load is set when the
 * caller has to load it and call aq_object_loaded(), whether loading worked or
 * not.  Waits while another session loads.  Raises AQ_ERR_CACHE_FULL.
 */
extern AqObject *aq_object_pin(Oid database, uint32 id, bool *must_load);
extern void aq_object_loaded(AqObject *object, bool success);
extern void aq_object_unpin(AqObject *object);

/* Take it out of the hash; the last unpin frees it.  Does not raise. */
extern void aq_object_drop(Oid database, uint32 id);

/* The valid object, unpinned, or NULL: it may go at any time. */
extern AqObject *aq_object_find(Oid database, uint32 id);

/* All handles, for views and workers: index 1 .. aq_object_limit. */
extern AqObject *aq_object_by_index(uint32 index);

/* --- memory.c: chunks of shared memory, for all caches ----------------------
 *
 * One pool of equal chunks, sized by pgaq.message_cache_size.  A session first
 * reserves what it will need, where it may wait and raise; taking from the
 * reserve and freeing never raise, so both are fit for latched sections and
 * for callbacks after commit.
 */
#define AQ_CHUNK_SIZE 2048

typedef uint32 AqChunk;			/* 0: none */

extern char *aq_chunk_base;
extern int	aq_message_cache_kb;	/* pgaq.message_cache_size */

static inline void *
aq_chunk_ptr(AqChunk chunk)
{
	Assert(chunk != 0);
	return aq_chunk_base + (Size) chunk * AQ_CHUNK_SIZE;
}

/* Frees chunks by evicting something; false when nothing can be evicted. */
typedef bool (*AqChunkPressure) (void);

extern void aq_chunks_on_pressure(AqChunkPressure callback);
extern uint32 aq_chunks_total(void);
extern uint32 aq_chunks_free_count(void);

/*
 * See to it that the session's reserve holds count chunks.  No latch held.
 * The first waits for others and raises AQ_ERR_CACHE_FULL in the end; the
 * second evicts what can be evicted, and returns false when that is too little.
 */
extern void aq_chunks_reserve(uint32 count);
extern bool aq_chunks_try(uint32 count);
extern void aq_chunks_be_impatient(void);	/* from now on, raise at once */
extern uint32 aq_chunks_reserved(void);
extern AqChunk aq_chunk_take(void); /* zeroed, out of the reserve */
extern void aq_chunks_free(const AqChunk *chunks, uint32 count);	/* 0s are skipped */
extern void aq_chunks_trim(void);	/* give most of the reserve back */

#endif							/* AQ_CACHE_H */
