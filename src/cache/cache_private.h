/*-------------------------------------------------------------------------
 *
 * cache_private.h
 *	  What the files of part "cache" share: their shares of its one area.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_CACHE_PRIVATE_H
#define AQ_CACHE_PRIVATE_H

#include "cache/cache.h"

extern Size aq_object_shmem_size(void);
extern void aq_object_shmem_init(void *area, bool found);

extern Size aq_memory_shmem_size(void);
extern void aq_memory_shmem_init(void *area, bool found);
extern void aq_memory_session_exit(void);

#endif							/* AQ_CACHE_PRIVATE_H */
