/*-------------------------------------------------------------------------
 *
 * worker_private.h
 *	  Declarations shared by the files of folder "worker", and shard.c.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_WORKER_PRIVATE_H
#define AQ_WORKER_PRIVATE_H

#include "shard/leases/leases_private.h"

/* --- positions.c, horizon.c -------------------------------------------------------------- */
extern bool aq_positions_free(AqQueue *queue, AqRemoved *removed);
extern TransactionId aq_horizon_newest(void);
extern TransactionId aq_horizon_oldest(void);

/* --- jobs of the worker: age.c, reclaim.c, retry.c, timers.c ------------------------- */
extern int32 aq_age_to_advance(void);
extern void aq_age_queue_job(int32 id, AqQueueShm *shm);
extern void aq_age_register(void);

extern int	aq_reclaim_grace_ms;
extern int	aq_reclaim_idle_ms;
extern void aq_reclaim_job(int32 id, AqQueueShm *shm);
extern void aq_reclaim_removed_job(int32 id, AqQueueShm *shm);
extern bool aq_reclaim_finish_removed(AqQueueShm *shm, const int *positions, int n);
extern void aq_reclaim_count(AqQueueShm *shm);
extern void aq_reclaim_recount_job(int32 id, AqQueueShm *shm);
extern void aq_retry_job(int32 id, AqQueueShm *shm);
extern void aq_retry_failed_job(int32 id, AqQueueShm *shm);
extern void aq_timers_job(int32 id, AqQueueShm *shm);

/* --- dead_letter.c */
typedef struct AqStories AqStories;

extern AqStories *aq_dead_letter_read(Partition *partition, const uint16 *slots, uint32 n);
extern uint32 aq_dead_letter_make(AqStories *stories, uint32 i, AqQueue *queue, const AqMessage *m, AqPutOptions **each);

#endif							/* AQ_WORKER_PRIVATE_H */
