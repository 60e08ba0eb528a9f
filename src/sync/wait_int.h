/*-------------------------------------------------------------------------
 *
 * wait_int.h
 *	  What wait.c keeps and sync_views.c shows.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_WAIT_INT_H
#define AQ_WAIT_INT_H

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

	/*
	 * Read by views while the owner adds: each number by itself is right, the
	 * numbers may not fit together by one wait.
	 */
	AqEventCounters events[AQ_EVENT_COUNT];
} AqWaitSlot;

typedef struct AqWaitShared
{
	AqLatch		latch;			/* STATISTICS; protects totals */
	AqEventCounters totals[AQ_EVENT_COUNT]; /* of sessions that have ended */
	AqWaitSlot	slots[FLEXIBLE_ARRAY_MEMBER];
} AqWaitShared;

extern AqWaitShared *aq_wait_shared;

extern void aq_wait_read(int session, AqWaitNow *now);
extern void aq_wait_sum(AqEventCounters *sums); /* [AQ_EVENT_COUNT] */

#endif							/* AQ_WAIT_INT_H */
