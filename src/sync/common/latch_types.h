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
 * Two cache lines: what an uncontended get and free touches is in the first.
 * A struct that embeds a latch should begin on a cache line, with the latch
 * first.  Size is a promise to those who lay out shared memory.
 */
#define AQ_LATCH_SIZE	128

typedef union AqLatch
{
	struct
	{
		/* The protocol's only shared truth: see the table in latch.c. */
		pg_atomic_uint64 word;

		/* Set once by aq_latch_init. */
		uint32		magic;
		uint16		id;			/* AqLatchId */
		bool		waking_exclusive;	/* LIST bit: who was posted wants it so */
		int32		child;

		/* Location of the latest successful get; a hint for others. */
		pg_atomic_uint32 where;

		/* Protected by the LIST bit of the word: who sleeps here. */
		int32		head;		/* session number, -1: none */
		int32		tail;
		int32		exclusives; /* how many of them want it exclusively */

		/* Written while the latch is held, atomically when it is shared. */
		pg_atomic_uint64 halves;	/* of the number of gets in the word: see aq_latch_gets */
		pg_atomic_uint64 immediate_gets;	/* successful ones without waiting */
		pg_atomic_uint64 misses;
		pg_atomic_uint64 sleeps;
		pg_atomic_uint64 spin_gets;
		pg_atomic_uint64 wait_time; /* microseconds asleep */
		pg_atomic_uint64 spin_time; /* nanoseconds spent spinning */
		pg_atomic_uint64 holding_sleeps;	/* of those who held another latch */

		/* Added to atomically by those who do not get it. */
		pg_atomic_uint64 immediate_misses;

		/* Written under the LIST bit. */
		pg_atomic_uint64 woken; /* sleepers posted */

		/* The registry's list of latches of this id; set once. */
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

	/* Set once: what P1 and P3 of a wait say. */
	uint32		idn;
	uint32		object;
	uint16		namespace;
	uint16		type;			/* AqMutexType */

	/* Written atomically, or by the only holder. */
	pg_atomic_uint64 halves;	/* of the number of gets in the word */
	pg_atomic_uint64 sleeps;
} AqMutex;

#endif							/* AQ_LATCH_TYPES_H */
