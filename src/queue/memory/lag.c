/*-------------------------------------------------------------------------
 *
 * lag.c
 *	  The lag of consumers, and wake-ups of enqueuers that wait for a shorter
 *	  one.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/memory/memory_private.h"

/* The number of messages that the consumer has not finished. */
int64
aq_lag_of(AqQueueShm *shm, int position)
{
	AqConsumerShm *consumer = aq_shm_consumer(shm, position);

	if (consumer == NULL || aq_consumer_removed(consumer))
		return 0;
	return (int64) (pg_atomic_read_u64(&consumer->enqueued) - pg_atomic_read_u64(&consumer->dequeued));
}

/*
 * Makes all enqueuers that wait for room check again.  Never raises an error.
 */
void
aq_lag_recheck(AqQueueShm *shm)
{
	if (pg_atomic_exchange_u64(&shm->room_below, 0) != 0)
		aq_cond_broadcast(&shm->room);
}

/*
 * Called when the consumer's counter of finished messages has grown.  Never
 * raises an error.
 */
void
aq_lag_shrank(AqQueueShm *shm, int position)
{
	uint64		below = pg_atomic_read_u64(&shm->room_below);

	if (below != 0 && aq_lag_of(shm, position) < (int64) below)
		aq_lag_recheck(shm);
}
