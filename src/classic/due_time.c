/*-------------------------------------------------------------------------
 *
 * due_time.c
 *	  The earliest time at which a row of a queue can be due.
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

/* Announces that a row is due at this time.  Never raises an error. */
void
aq_due_time_announce(AqQueueShm *shm, TimestampTz when)
{
	aq_due_time_lower(shm, when);
	aq_work_announce_time(shm, when);
}
