/*-------------------------------------------------------------------------
 *
 * retries.c
 *	  Waits for the worker to write retry counts.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/memory/memory_private.h"

/*
 * interval at which a waiting session posts the worker again, in microseconds
 */
#define ASK_AGAIN ((int64) 1000000)

/*
 * how long a session waits for a worker that cannot write retry counts, in
 * microseconds
 */
#define RETRY_PATIENCE ((int64) 5000000)

/*
 * Called by the worker when it cannot write retry counts now: it will try
 * again, and sessions need not wait.
 */
void
aq_retries_later(AqQueueShm *shm, int64 microseconds)
{
	pg_atomic_fetch_add_u32(&shm->uncounted, 1);
	aq_work_later(shm, AQ_WORK_RETRY, microseconds);
	aq_cond_broadcast(&shm->changed);
}

/*
 * Called when retry counts were written: wakes dequeues that wait for this,
 * and makes sessions that have checked meanwhile check again.  Now the rolled
 * back messages can be dequeued, and also those after them.
 */
void
aq_retries_counted(AqQueueShm *shm)
{
	aq_cond_broadcast(&shm->changed);
	if (pg_atomic_exchange_u32(&shm->uncounted_seen, 0) != 0)
		aq_waiters_wake_all(shm);
}

/*
 * The time until which a call that begins now waits for a worker that cannot
 * write counts, for aq_retries_await().
 */
int64
aq_retries_patience(void)
{
	return aq_clock_us() + RETRY_PATIENCE;
}

/*
 * Raises an error if the queue was dropped: the worker will not write its
 * retry counts.
 */
static void
refuse_dropped(AqQueueShm *shm)
{
	if (shm->object->state == AQ_OBJECT_DROPPED)
		ereport(ERROR,
				aq_error(AQ_ERR_QUEUE_UNDEFINED, "the queue does not exist"),
				errdetail("It was dropped while the session waited for retry counts of its messages."));
}

/*
 * Posts the worker to write retry counts, and waits until pending() is false.
 * Returns false if the worker cannot write them, because a session has locked
 * a table or waits for such a lock, or because no memory is free.  That may
 * last until the caller's transaction ends, for which the other session may
 * wait.
 *
 * until (aq_clock_us): a dequeue waits until this time for a worker that
 * cannot write them, and without limit for one that can. only_checks: the
 * caller does not take messages; it waits at most until this time, and not for
 * a worker that cannot write them.
 */
bool
aq_retries_await(AqQueueShm *shm, bool only_checks, int64 until, bool (*pending) (void *arg), void *arg)
{
	uint32		uncounted = pg_atomic_read_u32(&shm->uncounted);
	int64		asked = 0;
	AqWorkerWait wait = {0};
	bool		left;

	if (aq_job_in_worker())
		return false;			/* the worker cannot wait for itself */
	/*
	 * set this before checking whether the counts are written: see
	 * aq_retries_counted
	 */
	if (only_checks)
		(void) pg_atomic_exchange_u32(&shm->uncounted_seen, 1);
	aq_cond_prepare(&shm->changed);
	while ((left = pending(arg)))
	{
		int64		now = aq_clock_us();
		int64		patience = until - now;
		bool		over = patience <= 0;
		uint32		before = uncounted;

		refuse_dropped(shm);
		aq_waiters_refuse_dropping(shm);
		/* do not post again at once if the worker cannot write them */
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
		aq_cond_sleep(&shm->changed, aq_await_event(&wait, AQ_EVENT_RETRY_COUNT), abs(shm->queue_id), aq_jobs_worker_pid(), 0,
					  over ? ASK_AGAIN : Min(patience, ASK_AGAIN));
	}
	aq_cond_cancel();
	return !left;
}
