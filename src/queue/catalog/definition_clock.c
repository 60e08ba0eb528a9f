/*-------------------------------------------------------------------------
 *
 * definition_clock.c
 *	  The clock of definitions, one for all queues: it counts committed changes.
 *
 * A description has the time at which its reading began, a queue in shared
 * memory has the time of its last change or load: a session whose description
 * is older than the queue in shared memory reads it again.  This works even if
 * the queue was not in memory when it was changed, or was unloaded since.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/catalog/catalog_private.h"

static pg_atomic_uint64 *definitions;

Size
aq_definition_clock_size(void)
{
	return PG_CACHE_LINE_SIZE;
}

void
aq_definition_clock_init(void *area, bool found)
{
	definitions = area;
	if (!found)
		pg_atomic_init_u64(definitions, 1);
}

/*
 * A description whose reading begins now includes all changes until this time.
 */
uint64
aq_definition_clock_now(void)
{
	uint64		now = pg_atomic_read_u64(definitions);

	pg_memory_barrier();
	return now;
}

/* Called when a change was committed. */
uint64
aq_definition_clock_tick(void)
{
	return pg_atomic_fetch_add_u64(definitions, 1) + 1;
}
