/*-------------------------------------------------------------------------
 *
 * cache.c
 *	  The part record of "cache" and its parameters.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "cache/cache_private.h"

#include "utils/guc.h"

static Size
shmem_size(void)
{
	return add_size(aq_object_shmem_size(), aq_memory_shmem_size());
}

static void
shmem_init(void *area, bool found)
{
	aq_object_shmem_init(area, found);
	aq_memory_shmem_init((char *) area + aq_object_shmem_size(), found);
}

static void
define_parameters(void)
{
	DefineCustomIntVariable("pgaq.max_queues",
							"Number of queues, of all databases, that can be in use at a time.",
							NULL,
							&aq_object_limit,
							1200, 16, 1000000,
							PGC_POSTMASTER, 0,
							NULL, NULL, NULL);
	DefineCustomIntVariable("pgaq.message_cache_size",
							"Shared memory for the state of resident messages and for queues in use.",
							"32 bytes per resident message, and two bits per message and consumer. "
							"Messages that do not fit are loaded from their tables when their turn comes.",
							&aq_message_cache_kb,
							128 * 1024, 4 * 1024, MAX_KILOBYTES,
							PGC_POSTMASTER, GUC_UNIT_KB,
							NULL, NULL, NULL);
}

const AqPart aq_cache_part = {
	.name = "cache",
	.define_parameters = define_parameters,
	.shmem_size = shmem_size,
	.shmem_init = shmem_init,
	.session_exit = aq_memory_session_exit,
};
