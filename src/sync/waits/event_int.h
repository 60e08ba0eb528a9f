/*-------------------------------------------------------------------------
 *
 * event_int.h
 *	  What event.c keeps and sync_views.c shows.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_EVENT_INT_H
#define AQ_EVENT_INT_H

#include "sync/common/hist.h"
#include "sync/sync_int.h"

typedef struct AqEventCounters
{
	uint64		waits;
	uint64		timeouts;
	uint64		time;			/* microseconds */
	uint64		max;			/* microseconds */
	uint64		histogram[AQ_HIST_BUCKETS];
} AqEventCounters;

/* One per session; written by its owner only. */
typedef struct AqWaitSlot
{
	pg_atomic_uint32 change;	/* odd while now is written */
	AqWaitNow	now;
	bool		background;		/* a background worker */

	/* the sampler writes the first, the owner the second when that wait ends */
	pg_atomic_uint64 watched;	/* sequence; 0: none */
	pg_atomic_uint64 watched_time;	/* microseconds + 1; 0: not over */

	/*
	 * Read by views while the owner adds: each number by itself is right, the
	 * numbers may not fit together by one wait.
	 */
	AqEventCounters events[AQ_EVENT_COUNT];
} AqWaitSlot;

typedef struct AqEventShared
{
	AqLatch		latch;			/* STATISTICS; protects totals */

	/* of sessions that have ended: foreground, background */
	AqEventCounters totals[2][AQ_EVENT_COUNT];
	AqWaitSlot	slots[FLEXIBLE_ARRAY_MEMBER];
} AqEventShared;

extern AqEventShared *aq_event_shared;

extern void aq_event_sum(AqEventCounters sums[2][AQ_EVENT_COUNT]);

#endif							/* AQ_EVENT_INT_H */
