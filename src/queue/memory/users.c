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
 * The worker waits for the end of all transactions that can know a removed
 * consumer, without being kept by later ones.  So there are two counters: of
 * the newest generation of users, and of the one before.  A new generation begins
 * when the counter of the one before is 0, and uses that.  When two have begun since
 * the removal, every transaction that was a user then has ended.  One that counts
 * itself later in a counter that it has read before reads the definition only after
 * that, finds it changed, and begins again: see aq_use_begin().
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/memory/memory_private.h"

/* Adds a user, and returns the counter that counts it.  Also a barrier. */
int
aq_users_add(AqQueueShm *shm)
{
	int			counter = pg_atomic_read_u32(&shm->generation) % 2;

	pg_atomic_fetch_add_u32(&shm->users[counter], 1);
	return counter;
}

/* The number of users. */
uint32
aq_users_number(AqQueueShm *shm)
{
	return pg_atomic_read_u32(&shm->users[0]) + pg_atomic_read_u32(&shm->users[1]);
}

/* The generation with which aq_users_outlived() is called later. */
uint32
aq_users_generation(AqQueueShm *shm)
{
	return pg_atomic_read_u32(&shm->generation);
}

/*
 * Have all transactions ended that were users at the time of this generation?
 * If not, AQ_WORK_POSITIONS is posted when there may be an answer.  For the
 * worker only.
 */
bool
aq_users_outlived(AqQueueShm *shm, uint32 generation)
{
	uint32		now = pg_atomic_read_u32(&shm->generation);

	pg_atomic_write_u32(&shm->outlived, 1);
	pg_memory_barrier();
	while ((int32) (now - generation) < 2 && pg_atomic_read_u32(&shm->users[(now + 1) % 2]) == 0)
		pg_atomic_write_u32(&shm->generation, ++now);
	return (int32) (now - generation) >= 2;
}

/* Is the queue being stopped for enqueue, or for dequeue? */
bool
aq_users_are_stopped(AqQueueShm *shm, bool enqueue)
{
	return pg_atomic_read_u32(enqueue ? &shm->stops_enqueue : &shm->stops_dequeue) > 0;
}

/* Removes a user.  Never raises an error. */
void
aq_users_remove(AqQueueShm *shm, int counter)
{
	uint32		before = pg_atomic_fetch_sub_u32(&shm->users[counter], 1);

	if (pg_atomic_read_u32(&shm->stops_enqueue) > 0 || pg_atomic_read_u32(&shm->stops_dequeue) > 0)
		aq_cond_broadcast(&shm->changed);
	if (before == 1 && pg_atomic_read_u32(&shm->outlived) != 0 && pg_atomic_exchange_u32(&shm->outlived, 0) != 0)
		aq_work_post(shm, AQ_WORK_POSITIONS);
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
