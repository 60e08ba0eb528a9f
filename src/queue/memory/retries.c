/*-------------------------------------------------------------------------
 *
 * retries.c
 *	  Waiting for the worker, which writes retry counts.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/memory/memory_private.h"

/* how long a session waits for the worker before it asks again, microseconds */
#define ASK_AGAIN ((int64) 1000000)

/* how long a worker that cannot write retry counts is waited for, microseconds */
#define RETRY_PATIENCE ((int64) 5000000)

/* Retry counts cannot be written now: the worker tries again, and sessions need not wait for it. */
void
aq_retries_later(AqQueueShm *shm, int64 microseconds)
{
	pg_atomic_fetch_add_u32(&shm->uncounted, 1);
	aq_work_later(shm, AQ_WORK_RETRY, microseconds);
	aq_cond_broadcast(&shm->changed);
}

/*
 * Retry counts are written: dequeues that wait for that go on, and sessions that have
 * checked meanwhile check again.  Not only what was rolled back can be had now,
 * but also what stood behind it.
 */
void
aq_retries_counted(AqQueueShm *shm)
{
	aq_cond_broadcast(&shm->changed);
	if (pg_atomic_exchange_u32(&shm->uncounted_seen, 0) != 0)
		aq_waiters_wake_all(shm);
}

/* Until when a call that begins now has patience with the worker, for aq_retries_await(). */
int64
aq_retries_patience(void)
{
	return aq_clock_us() + RETRY_PATIENCE;
}

/*
 * Have the worker write retry counts, and wait until pending() says that it
 * has.  False: it cannot, because a session has locked a table, or waits for
 * that, or because there is no room.  This may last until the caller's
 * transaction ends, which may be the one that the other session waits for.
 *
 * A dequeue has patience until this time (aq_clock_us) with a worker that says
 * that it cannot, and waits for one that does not say so as long as it takes.
 * only_checks: the caller takes nothing.  It waits until this time at most, and
 * not for a worker that says that it cannot.
 */
bool
aq_retries_await(AqQueueShm *shm, bool only_checks, int64 until, bool (*pending) (void *arg), void *arg)
{
	uint32		uncounted = pg_atomic_read_u32(&shm->uncounted);
	int64		asked = 0;
	bool		left;

	if (aq_job_in_worker())
		return false;			/* it cannot wait for itself */
	/* before it asks whether the counts are written: see aq_retries_counted */
	if (only_checks)
		(void) pg_atomic_exchange_u32(&shm->uncounted_seen, 1);
	aq_cond_prepare(&shm->changed);
	while ((left = pending(arg)))
	{
		int64		now = aq_clock_us();
		int64		patience = until - now;
		bool		over = patience <= 0;
		uint32		before = uncounted;

		/* not at once when it says that it cannot */
		if (now - asked >= ASK_AGAIN)
		{
			aq_jobs_ensure_worker();
			aq_work_post(shm, AQ_WORK_RETRY);
			aq_jobs_post();
			asked = now;
		}
		uncounted = pg_atomic_read_u32(&shm->uncounted);
		if (only_checks ? over || uncounted != before : over && uncounted != before)
			break;
		aq_cond_sleep(&shm->changed, aq_jobs_wait_event(AQ_EVENT_RETRY_COUNT), abs(shm->queue_id), aq_jobs_worker_pid(), 0,
					  over ? ASK_AGAIN : Min(patience, ASK_AGAIN));
	}
	aq_cond_cancel();
	return !left;
}
