/*-------------------------------------------------------------------------
 *
 * event_sums.c
 *	  The counters of named waits of all sessions, including ended ones.
 *
 *	  A session that ends adds its counters to the totals under the latch "wait
 *	  statistics"; a reader takes that latch shared and adds the totals and all
 *	  slots, so nothing is counted twice or missed.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sync/latches/latch.h"
#include "sync/statistics/stat_int.h"

typedef struct EventSums
{
	AqLatch		latch;			/* STATISTICS; protects totals */

	/* of ended sessions: foreground, background */
	AqEventCounters totals[2][AQ_EVENT_COUNT];
} EventSums;

static EventSums *shared;

Size
aq_event_sums_shmem_size(void)
{
	return sizeof(EventSums);
}

void
aq_event_sums_shmem_init(void *area, bool found)
{
	shared = area;
	if (found)
		return;
	memset(area, 0, sizeof(EventSums));
	aq_latch_init(&shared->latch, AQ_LATCH_STATISTICS, 0);
}

/* The latch that protects all totals of ended sessions. */
AqLatch *
aq_event_sums_latch(void)
{
	return &shared->latch;
}

static void
add_counters(AqEventCounters *sum, const AqEventCounters *one)
{
	sum->waits += one->waits;
	sum->timeouts += one->timeouts;
	sum->time += one->time;
	sum->max = Max(sum->max, one->max);
	for (int i = 0; i < AQ_HIST_BUCKETS; i++)
		sum->histogram[i] += one->histogram[i];
}

/*
 * All waits since server start, of foreground sessions and of background
 * workers.
 */
void
aq_event_sums_read(AqEventCounters sums[2][AQ_EVENT_COUNT])
{
	int			n = aq_session_slots();

	aq_latch_get(&shared->latch, AQ_SHARED, AQ_LOC_STATISTICS);
	memcpy(sums, shared->totals, sizeof(shared->totals));
	for (int i = 0; i < n; i++)
	{
		AqWaitSlot *slot = &aq_event_slots[i];

		for (int event = 0; event < AQ_EVENT_COUNT; event++)
		{
			if (slot->events[event].waits > 0)
				add_counters(&sums[slot->background][event], &slot->events[event]);
		}
	}
	aq_latch_free(&shared->latch);
}

/* Called after open waits were ended. */
void
aq_event_sums_session_exit(void)
{
	AqWaitSlot *own = &aq_event_slots[aq_session_own_number];

	aq_event_end_all();
	aq_latch_get(&shared->latch, AQ_EXCLUSIVE, AQ_LOC_STATISTICS);
	for (int event = 0; event < AQ_EVENT_COUNT; event++)
	{
		if (own->events[event].waits > 0)
			add_counters(&shared->totals[own->background][event], &own->events[event]);
	}
	memset(own->events, 0, sizeof(own->events));
	aq_latch_free(&shared->latch);
}
