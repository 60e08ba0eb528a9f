/*-------------------------------------------------------------------------
 *
 * lab_private.h
 *	  The latch or mutex of an experiment.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_LAB_PRIVATE_H
#define AQ_LAB_PRIVATE_H

#include "lab/lab.h"

/* A latch or a mutex, never both, in shared memory that is never freed. */
typedef struct AqLabTarget
{
	AqLatch    *latch;
	AqMutex    *mutex;
	AqLatchMode mode;
} AqLabTarget;

extern AqLabTarget aq_lab_latch(const char *name, int child, const char *mode);
extern AqLabTarget aq_lab_mutex(const char *name, const char *mode);

static inline void
aq_lab_get(const AqLabTarget *target, AqLocation where)
{
	if (target->latch != NULL)
		aq_latch_get(target->latch, target->mode, where);
	else
		aq_mutex_get(target->mutex, target->mode, where);
}

static inline void
aq_lab_free(const AqLabTarget *target)
{
	if (target->latch != NULL)
		aq_latch_free(target->latch);
	else
		aq_mutex_free(target->mutex);
}

#endif							/* AQ_LAB_PRIVATE_H */
