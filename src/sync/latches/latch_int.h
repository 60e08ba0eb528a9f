/*-------------------------------------------------------------------------
 *
 * latch_int.h
 *	  How latches wait, by class; their counters.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_LATCH_INT_H
#define AQ_LATCH_INT_H

#include "sync/latches/latch.h"

#define AQ_LATCH_CLASSES 8
#define AQ_CLASS_SLEEPS 8

/* Class 0 always has the defaults. */
typedef struct AqLatchClass
{
	int			spin;			/* polls; -1: aq_latch_spin_count */
	int			yields;			/* how many times to yield and spin again before sleeping */
	bool		timed;			/* sleeps have a timeout; false: they end only by a post */
	int			sleep_us[AQ_CLASS_SLEEPS];	/* the last one also for all following sleeps */
} AqLatchClass;

extern AQ_LOCAL int aq_latch_spin_count;
extern AQ_LOCAL uint8 aq_latch_class[AQ_LATCH_COUNT];
extern AQ_LOCAL AqLatchClass aq_latch_classes[AQ_LATCH_CLASSES];

extern uint64 aq_latch_gets(const AqLatch *latch);	/* including those by aq_latch_get_nowait */

/* Gets by aq_latch_get. */
static inline uint64
aq_latch_willing_gets(AqLatch *latch)
{
	uint64		immediate = pg_atomic_read_u64(&latch->immediate_gets);

	return aq_latch_gets(latch) - immediate;
}

#endif							/* AQ_LATCH_INT_H */
