/*-------------------------------------------------------------------------
 *
 * classic_area.c
 *	  Shared memory of part "classic".
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "classic/classic_private.h"

ClassicArea *aq_classic_area;
ClassicQueue *aq_classic_area_queues;
Retry	   *aq_classic_area_retries;
pg_atomic_uint32 *aq_classic_area_takers;

/*
 * capacity for rolled back dequeues that are not counted yet, and for running
 * dequeues
 */
uint32
aq_classic_area_max_retries(void)
{
	return aq_session_slots() * 8 + 64;
}

static Size
lay_out(void *area)
{
	Size		size = 0;

	aq_classic_area = aq_part_carve(area, &size, sizeof(ClassicArea));
	aq_classic_area_queues = aq_part_carve(area, &size, mul_size(aq_handle_limit + 1, sizeof(ClassicQueue)));
	aq_classic_area_retries = aq_part_carve(area, &size, mul_size(aq_classic_area_max_retries() + 1, sizeof(Retry)));
	aq_classic_area_takers = aq_part_carve(area, &size, mul_size(aq_session_slots(), sizeof(pg_atomic_uint32)));
	return size;
}

Size
aq_classic_area_size(void)
{
	return lay_out(NULL);
}

void
aq_classic_area_init(void *area, bool found)
{
	Size		size = lay_out(area);

	aq_trace_on_name(AQ_LATCH_LINES, aq_shm_queue_of_latch);
	if (found)
		return;

	memset(area, 0, size);
	aq_latch_init(&aq_classic_area->latch, AQ_LATCH_CLASSIC, 0);
	for (uint32 i = aq_classic_area_max_retries(); i >= 1; i--)
	{
		aq_classic_area_retries[i].next = aq_classic_area->free_retry;
		aq_classic_area->free_retry = i;
		aq_classic_area->nfree_retries++;
	}
	for (int i = 0; i < aq_session_slots(); i++)
		pg_atomic_init_u32(&aq_classic_area_takers[i], InvalidTransactionId);
	for (int i = 0; i <= aq_handle_limit; i++)
	{
		ClassicQueue *cq = &aq_classic_area_queues[i];

		aq_latch_init(&cq->latch, AQ_LATCH_LINES, i);
		pg_atomic_init_u64(&cq->nannounced, 0);
		pg_atomic_init_u32(&cq->nretries, 0);
		pg_atomic_init_u64(&cq->step, 0);
		pg_atomic_init_u32(&cq->worker, InvalidTransactionId);
		pg_atomic_init_u64(&cq->counts, 0);
		pg_atomic_init_u64(&cq->receipt, 0);
		pg_atomic_init_u64(&cq->extensions, 0);
		pg_atomic_init_u64(&cq->time_from, 0);
		pg_atomic_init_u64(&cq->count_took, 0);
		pg_atomic_init_u64(&cq->count_from, 0);
	}
}
