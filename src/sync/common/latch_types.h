/*-------------------------------------------------------------------------
 *
 * latch_types.h
 *	  AqLatch and AqMutex, to be embedded in shared memory.
 *
 * Their members belong to latch.c and mutex.c; no other file touches them.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_LATCH_TYPES_H
#define AQ_LATCH_TYPES_H

#include "sync/common/atomics.h"

typedef enum AqLatchMode
{
	AQ_SHARED,
	AQ_EXCLUSIVE,
	AQ_EXAMINE					/* mutexes only */
} AqLatchMode;

typedef AqLatchMode AqMutexMode;

/*
 * Two cache lines; an uncontended get and free use only the first.  A struct
 * that embeds a latch should begin on a cache line, with the latch first.
 * AQ_LATCH_SIZE is fixed, because shared memory is laid out with it.
 */
#define AQ_LATCH_SIZE	128

typedef union AqLatch
{
	struct
	{
		/* The state of the latch: see the table in latch.c. */
		pg_atomic_uint64 word;

		/* Set once by aq_latch_init. */
		uint32		magic;
		uint16		id;			/* AqLatchId */
		bool		waking_exclusive;	/* LIST bit: the posted sleeper wants exclusive mode */
		int32		child;

		/*
		 * Location of the latest successful get; for statistics, so races are
		 * harmless.
		 */
		pg_atomic_uint32 where;

		/* The list of sleepers; protected by the LIST bit of the word. */
		int32		head;		/* session number, -1: none */
		int32		tail;
		int32		exclusives; /* number of sleepers that want exclusive mode */

		/* Written while the latch is held, atomically when it is shared. */
		pg_atomic_uint64 halves;	/* half turns of the word's number of gets: see aq_latch_gets */
		pg_atomic_uint64 immediate_gets;	/* successful gets by aq_latch_get_nowait */
		pg_atomic_uint64 misses;
		pg_atomic_uint64 sleeps;
		pg_atomic_uint64 spin_gets;
		pg_atomic_uint64 wait_time; /* microseconds asleep */
		pg_atomic_uint64 spin_time; /* CPU time of spinning, nanoseconds */
		pg_atomic_uint64 holding_sleeps;	/* sleeps of sessions that held another latch */

		/* Incremented atomically by sessions that fail to get the latch. */
		pg_atomic_uint64 immediate_misses;

		/* Written under the LIST bit. */
		pg_atomic_uint64 woken; /* sleepers posted */

		/* Next latch of this id in the registry's list; set once. */
		union AqLatch *next;
	};
	char		padding[AQ_LATCH_SIZE];
} AqLatch;

/*
 * 40 bytes; lies in the object that it protects.
 */
typedef struct AqMutex
{
	pg_atomic_uint64 word;		/* session, reference count, gets: see mutex.c */

	/* Set once; shown in P1 and P3 of a wait. */
	uint32		idn;
	uint32		object;
	uint16		namespace;
	uint16		type;			/* AqMutexType */

	/* Written atomically, or by an exclusive holder. */
	pg_atomic_uint64 halves;	/* half turns of the word's number of gets: see aq_latch_gets */
	pg_atomic_uint64 sleeps;
} AqMutex;

#endif							/* AQ_LATCH_TYPES_H */
