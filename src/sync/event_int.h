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

#include "sync/hist.h"
#include "sync/sync_int.h"

typedef struct AqEventCounters
{
	uint64		waits;
	uint64		timeouts;
	uint64		time;			/* microseconds */
	uint64		max;			/* microseconds */
	uint64		histogram[AQ_HIST_BUCKETS];
} AqEventCounters;

/* What a session waits for, or waited for last. */
typedef struct AqWaitNow
{
	int32		event;			/* AqEvent, -1: has not waited yet */
	bool		waiting;
	uint64		p1;
	uint64		p2;
	uint64		p3;
	uint64		sequence;		/* of waits of this session */
	int64		start;			/* aq_clock_us */
	int64		end;			/* of the last wait; when not waiting */
} AqWaitNow;

/* One per session; written by its owner only. */
typedef struct AqWaitSlot
{
	pg_atomic_uint32 change;	/* odd while now is written */
	AqWaitNow	now;
	bool		background;		/* a background worker */

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

extern void aq_event_read(int session, AqWaitNow *now);
extern void aq_event_sum(AqEventCounters sums[2][AQ_EVENT_COUNT]);

#endif							/* AQ_EVENT_INT_H */
