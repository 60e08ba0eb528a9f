/*-------------------------------------------------------------------------
 *
 * loading_private.h
 *	  Declarations shared by the files of folder "loading" and of those that may use it.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_LOADING_PRIVATE_H
#define AQ_LOADING_PRIVATE_H

#include "shard/commit/commit_private.h"

/* --- limit.c: latch held ----------------------------------------------------------------- */
extern void aq_limit_enter(Partition *partition);
extern void aq_limit_enter_away(Partition *partition, const uint16 *leased);
extern AqChunk aq_limit_evict(Partition *partition);
extern void aq_limit_forget(Partition *partition, AqChunk work);

/* --- evict.c: latch held unless said otherwise ------------------------------------------- */
extern bool aq_evict_allowed(const Partition *partition);
extern void aq_evict_frame(Stream *stream, Partition *partition);
extern void aq_evict_returned(Partition *partition);
extern int	aq_evict_return_class(uint64 evictions);
extern bool aq_evict_one(void); /* no latch held */

/* --- load.c ------------------------------------------------------------------------------ */
extern void aq_load_partition(AqQueueShm *shm, Partition *partition);	/* may wait; call it without a latch */
extern void aq_load_for_take(AqQueueShm *shm, Partition *partition, uint32 spare);
extern bool aq_load_reopen(AqQueueShm *shm, Stream *stream);	/* may wait; call it without a latch */
extern void aq_load_count(AqQueueShm *shm, Partition *partition);

/* --- first_use.c ------------------------------------------------------------------------- */
extern char *aq_first_use_lost_table(const AqQueue *queue);
extern void aq_first_use_load(AqQueue *queue, AqQueueShm *shm);
extern void aq_first_use_unload(AqQueueShm *shm);
extern void aq_first_use_limit(AqQueueShm *shm);

#endif							/* AQ_LOADING_PRIVATE_H */
