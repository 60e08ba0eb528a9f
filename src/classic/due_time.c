/*-------------------------------------------------------------------------
 *
 * due_time.c
 *	  From which time on a queue can have something to do.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "classic/classic_private.h"

void
aq_due_time_lower(AqQueueShm *shm, TimestampTz when)
{
	pg_atomic_uint64 *from = &classic_queue(shm)->time_from;
	uint64		old = pg_atomic_read_u64(from);

	while ((old == TIME_NONE || when < (TimestampTz) old) &&
		   !pg_atomic_compare_exchange_u64(from, &old, (uint64) when))
		;
}

/* There is something to do at this time. Never raises. */
void
aq_due_time_announce(AqQueueShm *shm, TimestampTz when)
{
	aq_due_time_lower(shm, when);
	aq_work_announce_time(shm, when);
}
