/*-------------------------------------------------------------------------
 *
 * event_int.h
 *	  What event.c keeps, and others add up and show.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_EVENT_INT_H
#define AQ_EVENT_INT_H

#include "sync/common/hist.h"
#include "sync/waits/event.h"

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

extern AqWaitSlot *aq_event_slots;	/* by session */

/* Nanoseconds of waits of class Idle, of this session. */
extern uint64 aq_event_idle;

extern Size aq_event_shmem_size(void);
extern void aq_event_shmem_init(void *area, bool found);
extern void aq_event_session_start(void);
extern void aq_event_session_exit(void);
extern void aq_event_end_all(void);

#endif							/* AQ_EVENT_INT_H */
