/*-------------------------------------------------------------------------
 *
 * event_int.h
 *	  Data of event.c, for the files that sum and show it.
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

/* One per session; only its owner writes it. */
typedef struct AqWaitSlot
{
	pg_atomic_uint32 change;	/* odd while "now" is being written */
	AqWaitNow	now;
	bool		background;		/* a background worker */

	/*
	 * the sampler writes the first, the owner writes the second when that wait
	 * ends
	 */
	pg_atomic_uint64 watched;	/* sequence; 0: none */
	pg_atomic_uint64 watched_time;	/* microseconds + 1; 0: not over */

	/*
	 * Views read them while the owner writes: each number is exact, but they
	 * may differ by one wait.
	 */
	AqEventCounters events[AQ_EVENT_COUNT];
} AqWaitSlot;

extern AqWaitSlot *aq_event_slots;	/* by session */

/* This session's waits of class Idle, in nanoseconds. */
extern uint64 aq_event_idle;

extern Size aq_event_shmem_size(void);
extern void aq_event_shmem_init(void *area, bool found);
extern void aq_event_session_start(void);
extern void aq_event_session_exit(void);
extern void aq_event_end_all(void);

#endif							/* AQ_EVENT_INT_H */
