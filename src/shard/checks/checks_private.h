/*-------------------------------------------------------------------------
 *
 * checks_private.h
 *	  Declarations shared by the files of folder "checks", and shard.c.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_CHECKS_PRIVATE_H
#define AQ_CHECKS_PRIVATE_H

#include "shard/loading/loading_private.h"

/* --- measure.c: aq.metrics() ------------------------------------------------------------- */
extern void aq_measure(AqQueue *queue, AqMeasure *measures, int n, bool quick);

/* --- shard_check.c, compare.c: aq.check() ------------------------------------------------ */
extern void aq_shard_check_pool(AqFindings *findings);
extern uint32 aq_shard_check_chunks(AqQueueShm *shm);
extern void aq_compare_queue(AqQueue *queue, AqFindings *findings);

#endif							/* AQ_CHECKS_PRIVATE_H */
