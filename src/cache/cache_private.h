/*-------------------------------------------------------------------------
 *
 * cache_private.h
 *	  Declarations shared by the files of part "cache".
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_CACHE_PRIVATE_H
#define AQ_CACHE_PRIVATE_H

#include "cache/cache.h"

/* --- handle.c ---------------------------------------------------------------- */

/*
 * handles of copies of hot objects; they follow the handles that have values
 */
#define AQ_COPY_HANDLES 1024

typedef enum AqHold
{
	AQ_HOLD_NULL,				/* the null lock */
	AQ_HOLD_LOCK,				/* the share or exclusive lock */
	AQ_HOLD_PIN,				/* a pin */
	AQ_HOLD_KINDS
} AqHold;

typedef struct AqBucket
{
	AqMutex		mutex;
	uint32		first;			/* object index; 0 none */
	/* protected by the mutex, like the chain */
	uint32		ghost;			/* hash of the last object freed to make room; 0: none */
	uint64		gets;			/* searches for an object */
	uint64		hits;
	uint64		reloads;		/* searches for an object that had been freed to make room */
} AqBucket;

/* A session's wait for an object; only the session writes it. */
typedef struct AqObjectRequest
{
	uint32		object;			/* 0: nothing */
	bool		pin;			/* false: the lock */
	AqObjectMode mode;
} AqObjectRequest;

typedef struct AqObjectArea
{
	AqMutex		free_mutex;		/* protects the free lists and the totals */
	uint32		free;			/* first unused handle */
	uint32		free_copy;
	volatile uint32 nfree;		/* handles of the first list */
	uint32		nbuckets;		/* power of two */
	AqMutex		hot_mutex;		/* only one session at a time makes or drops copies */
	pg_atomic_uint32 pressure;
	pg_atomic_uint32 drops;
	pg_atomic_uint32 npinned;	/* pinned objects, without copies */
	AqCond		unused;			/* see aq_handle_tell_unused */
	pg_atomic_uint32 waiting;	/* sessions that wait for "unused" */
	/* totals of handles that were freed */
	uint64		pinned_total;
	uint64		loads;
	uint64		invalidations;
	uint64		aged_out;		/* handles freed to make room */
	AqBucket	buckets[FLEXIBLE_ARRAY_MEMBER];
	/* followed by the handles, their holders, and the sessions' requests */
} AqObjectArea;

extern AqObjectArea *aq_handle_area;
extern Size aq_handle_value_size;
extern AqObject *aq_handle_objects; /* 1 .. aq_handle_limit, then copies */

extern Size aq_handle_shmem_size(void);
extern void aq_handle_shmem_init(void *area, bool found);
extern uint32 aq_handle_count(void);
extern bool aq_handle_is_scarce(void);
extern bool aq_handle_holds(uint32 index, AqHold kind, int session);
extern uint32 *aq_handle_hold_words(uint32 index, AqHold kind); /* a bit for each session */
extern AqObjectRequest *aq_handle_request(int session);

/*
 * the hash and its handles; the caller holds the bucket's mutex, for leave
 * also the object's
 */
extern uint32 aq_handle_hash(Oid database, uint32 id, uint32 copy);
extern AqBucket *aq_handle_bucket(uint32 hash);
extern AqObject *aq_handle_in_bucket(AqBucket *bucket, Oid database, uint32 id, uint32 copy);
extern void aq_handle_enter(AqBucket *bucket, AqObject *object, Oid database, uint32 id, uint32 copy);
extern void aq_handle_leave(AqBucket *bucket, AqObject *object);
extern AqObject *aq_handle_take(bool copy);
extern void aq_handle_give(AqObject *object);
extern AqObject *aq_handle_new(int npinned);	/* may raise an error */
extern void aq_handle_free(AqObject *object);
extern void aq_handle_now_used(const AqObject *object);
extern void aq_handle_now_unused(const AqObject *object);
extern void aq_handle_tell_unused(void);

/* --- object.c --------------------------------------------------------------------- */

extern void aq_object_session_exit(void);
extern uint32 aq_object_own_pins(uint32 index);
extern void aq_object_drop_copies(Oid database, uint32 id, uint32 copies);

/* --- hot.c ------------------------------------------------------------------------ */

extern uint32 aq_hot_copies_wanted(void);

/* --- row.c ------------------------------------------------------------------------ */

typedef struct AqRowCounts
{
	const char *name;
	int			number;
	int			usage;
	int			clones;
	uint64		gets;
	uint64		misses;
	uint64		modifications;
	uint64		flushes;
	uint64		sleeps;
} AqRowCounts;

struct config_enum_entry;

extern int	aq_row_limit;		/* pgaq.row_cache_rows */
extern int	aq_row_serialization;	/* pgaq.row_cache_serialization */
extern int	aq_row_clone_sleeps;	/* pgaq.row_cache_clone_sleeps */
extern const struct config_enum_entry aq_row_serializations[];

extern Size aq_row_shmem_size(void);
extern void aq_row_shmem_init(void *area, bool found);
extern void aq_row_init(void);
extern void aq_row_count(AqRowCacheId id, AqRowCounts *counts);

/* --- chunks.c ------------------------------------------------------------------- */

extern Size aq_chunks_shmem_size(void);
extern void aq_chunks_shmem_init(void *area, bool found);
extern void aq_chunks_session_exit(void);

#endif							/* AQ_CACHE_PRIVATE_H */
