/*-------------------------------------------------------------------------
 *
 * cache.c
 *	  The AqPart of "cache" and its parameters.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "cache/cache_private.h"

#include "utils/guc.h"

static Size
cache_shmem_size(void)
{
	return add_size(aq_handle_shmem_size(), add_size(aq_row_shmem_size(), aq_chunks_shmem_size()));
}

static void
cache_shmem_init(void *area, bool found)
{
	aq_handle_shmem_init(area, found);
	aq_row_shmem_init((char *) area + aq_handle_shmem_size(), found);
	aq_chunks_shmem_init((char *) area + aq_handle_shmem_size() + aq_row_shmem_size(), found);
}

static void
cache_define_parameters(void)
{
	DefineCustomIntVariable("pgaq.max_queues",
							"Number of queues, of all databases, that can be in use at a time.",
							"When there are more, the least recently used one leaves memory.",
							&aq_handle_limit,
							1200, 16, 1000000,
							PGC_POSTMASTER, 0,
							NULL, NULL, NULL);
	DefineCustomIntVariable("pgaq.hot_object_copies",
							"Number of copies of an object that dbms_shared_pool.markhot marks hot.",
							"0 means as many as there are processors, at least two.",
							&aq_hot_copies,
							0, 0, 255,
							PGC_SIGHUP, 0,
							NULL, NULL, NULL);
	DefineCustomIntVariable("pgaq.row_cache_rows",
							"Number of rows in the dictionary cache.",
							"When there are more, one that was not used recently is evicted.",
							&aq_row_limit,
							1024, 64, 1000000,
							PGC_POSTMASTER, 0,
							NULL, NULL, NULL);
	DefineCustomEnumVariable("pgaq.row_cache_serialization",
							 "What a session waits for in the dictionary cache.",
							 "mutex: one for each hash bucket and each row. latch: one for each cache, taken "
							 "three times for a row, for experiments.",
							 &aq_row_serialization,
							 aq_row_serialization, aq_row_serializations,
							 PGC_SIGHUP, 0,
							 NULL, NULL, NULL);
	DefineCustomIntVariable("pgaq.row_cache_clone_sleeps",
							"Number of sleeps for a row of the dictionary cache after which it gets clones.",
							"A row has as many clones as pgaq.hot_object_copies says. 0 turns clones off.",
							&aq_row_clone_sleeps,
							0, 0, INT_MAX,
							PGC_SIGHUP, 0,
							NULL, NULL, NULL);
	DefineCustomIntVariable("pgaq.message_cache_size",
							"Shared memory for the state of resident messages and for queues in use.",
							"32 bytes per resident message, and two bits per message and consumer. "
							"Messages that do not fit are loaded from their tables when they are needed.",
							&aq_chunks_cache_kb,
							128 * 1024, 4 * 1024, MAX_KILOBYTES,
							PGC_POSTMASTER, GUC_UNIT_KB,
							NULL, NULL, NULL);
	aq_row_init();
}

static void
cache_session_exit(void)
{
	aq_object_session_exit();
	aq_chunks_session_exit();
}

const AqPart aq_cache_part = {
	.name = "cache",
	.define_parameters = cache_define_parameters,
	.shmem_size = cache_shmem_size,
	.shmem_init = cache_shmem_init,
	.session_exit = cache_session_exit,
};
