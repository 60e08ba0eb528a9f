/*-------------------------------------------------------------------------
 *
 * sync_self.c
 *	  A session's own data in shared memory, which only the session writes.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "sync/common/sync_self.h"

static AqSyncSelf no_session;	/* never written */

AQ_LOCAL AqSyncSelf *aq_sync_self = &no_session;

void
aq_sync_self_init(AqSyncSelf *self)
{
	pg_atomic_init_u32(&self->nheld, 0);
	self->random = 0;
	pg_atomic_init_u64(&self->wants, 0);
	for (int i = 0; i < AQ_MAX_HELD; i++)
	{
		pg_atomic_init_u64(&self->held[i].lock, 0);
		pg_atomic_init_u32(&self->held[i].where, AQ_LOC_NONE);
		self->held[i].again = 0;
	}
	for (int type = 0; type < AQ_MUTEX_TYPE_COUNT; type++)
	{
		for (int where = 0; where < AQ_LOC_COUNT; where++)
		{
			AqMutexCounts *counts = &self->mutexes[type][where];

			pg_atomic_init_u64(&counts->gets, 0);
			pg_atomic_init_u64(&counts->misses, 0);
			pg_atomic_init_u64(&counts->waits, 0);
			pg_atomic_init_u64(&counts->sleeps, 0);
			pg_atomic_init_u64(&counts->wait_time, 0);
			pg_atomic_init_u64(&counts->spin_time, 0);
		}
	}
}

void
aq_sync_self_set(AqSyncSelf *self)
{
	aq_sync_self = self != NULL ? self : &no_session;
}
