/*-------------------------------------------------------------------------
 *
 * history_wish.c
 *	  Which queues the worker samples for the history, and when it has to begin.
 *
 * The worker samples a queue every minute while something of it changes, and
 * forgets it then.  The next session that changes something posts the worker for
 * the end of the minute.  So an idle database needs no worker, and a message
 * costs a comparison.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/memory/memory_private.h"

#include "utils/timestamp.h"

typedef struct HistoryShared
{
	pg_atomic_uint32 wishes;	/* in all databases */
	pg_atomic_uint64 due;		/* the end of the minute of the latest one */
} HistoryShared;

bool		aq_history_wish_on = true;

static HistoryShared *shared;

Size
aq_history_wish_size(void)
{
	return CACHELINEALIGN(sizeof(HistoryShared));
}

void
aq_history_wish_init(void *area, bool found)
{
	shared = area;
	if (found)
		return;
	pg_atomic_init_u32(&shared->wishes, 0);
	pg_atomic_init_u64(&shared->due, 0);
}

/* The begin of its minute. */
TimestampTz
aq_history_wish_minute(TimestampTz time)
{
	return time - time % USECS_PER_MINUTE;
}

/* How many there were; a worker that has seen fewer has to begin at this time. */
uint32
aq_history_wish_count(TimestampTz *due)
{
	uint32		wishes = pg_atomic_read_u32(&shared->wishes);

	pg_read_barrier();
	*due = (TimestampTz) pg_atomic_read_u64(&shared->due);
	return wishes;
}

/* See aq_history_changed. */
void
aq_history_wish(AqQueueShm *shm)
{
	TimestampTz due;

	if (!aq_history_wish_on || pg_atomic_exchange_u32(&shm->sampled, 1) != 0)
		return;
	due = aq_history_wish_minute(GetCurrentTimestamp()) + USECS_PER_MINUTE;
	pg_atomic_write_u64(&shared->due, (uint64) due);
	pg_atomic_fetch_add_u32(&shared->wishes, 1);
	aq_jobs_post_at(due);
}
