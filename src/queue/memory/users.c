/*-------------------------------------------------------------------------
 *
 * users.c
 *	  Counts of the transactions that use a queue, and of those that wait to
 *	  stop it.
 *
 * A transaction that enqueues or dequeues counts as a user until it ends.  A
 * session that stops the queue counts itself, then reads the number of users;
 * a session that becomes a user counts itself, then reads whether the queue is
 * being stopped.  Both execute a barrier in between, so at least one of the
 * two sees the other.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/memory/memory_private.h"

/* Adds a user.  Also a barrier. */
void
aq_users_add(AqQueueShm *shm)
{
	pg_atomic_fetch_add_u32(&shm->users, 1);
}

/* Is the queue being stopped for enqueue, or for dequeue? */
bool
aq_users_are_stopped(AqQueueShm *shm, bool enqueue)
{
	return pg_atomic_read_u32(enqueue ? &shm->stops_enqueue : &shm->stops_dequeue) > 0;
}

/* Removes a user.  Never raises an error. */
void
aq_users_remove(AqQueueShm *shm)
{
	if (pg_atomic_fetch_sub_u32(&shm->users, 1) > 0 &&
		(pg_atomic_read_u32(&shm->stops_enqueue) > 0 || pg_atomic_read_u32(&shm->stops_dequeue) > 0))
		aq_cond_broadcast(&shm->changed);
}

/*
 * Adds or removes a session that stops the queue; bits: 1 enqueue, 2 dequeue.
 * Never raises an error.
 */
void
aq_users_count_stops(AqQueueShm *shm, int bits, int32 by)
{
	if (bits & 1)
		pg_atomic_fetch_add_u32(&shm->stops_enqueue, by);
	if (bits & 2)
		pg_atomic_fetch_add_u32(&shm->stops_dequeue, by);
}
