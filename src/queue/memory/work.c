/*-------------------------------------------------------------------------
 *
 * work.c
 *	  Posting work for a queue to the worker.
 *
 * Sessions set bits in AqQueueShm.work, or announce a time, and post the worker;
 * upkeep.c runs the jobs.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/memory/memory_private.h"

#include "utils/timestamp.h"

/* Never raises an error. */
void
aq_work_post(AqQueueShm *shm, uint32 work)
{
	if ((pg_atomic_fetch_or_u32(&shm->work, work) & work) != work)
		aq_jobs_post();
}

/*
 * Posts the worker at this time, unless the earliest time that is announced is not
 * later.  Needs no latch; does not raise an error.
 */
static void
announce(pg_atomic_uint64 *earliest, TimestampTz when)
{
	uint64		old = pg_atomic_read_u64(earliest);

	Assert(when != 0);			/* 0 would cancel all announced times */
	while (old == 0 || (TimestampTz) old > when)
	{
		if (pg_atomic_compare_exchange_u64(earliest, &old, (uint64) when))
		{
			aq_jobs_post_at(when);
			return;
		}
	}
}

/* Announces work for the queue's store.  Never raises an error. */
void
aq_work_announce_time(AqQueueShm *shm, TimestampTz when)
{
	announce(&shm->next_time, when);
}

/* The worker checks the queue's waiters at this time, or earlier.  Never raises an error. */
void
aq_work_check_waiters(AqQueueShm *shm, TimestampTz when)
{
	announce(&shm->check_at, when);
}

/* Requests a job again after some time.  For the worker only. */
void
aq_work_later(AqQueueShm *shm, uint32 work, int64 microseconds)
{
	TimestampTz at = GetCurrentTimestamp() + microseconds;

	shm->later_work |= work;
	if (shm->later_at == 0 || at < shm->later_at)
		shm->later_at = at;
}
