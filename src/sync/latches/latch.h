/*-------------------------------------------------------------------------
 *
 * latch.h
 *	  Latches.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_LATCH_H
#define AQ_LATCH_H

#include "sync/common/latch_types.h"
#include "sync/common/lists.h"

/* --- latches: post/wait, FIFO, exclusive or shared ------------------------
 * AqLatchId and AqLocation come from latch_list.h and location_list.h.  A
 * latch is never destroyed.  It is in shared memory that was zeroed, or that
 * contained a latch of the same id. child is the number shown in
 * v$latch_children: unique for the id, or 0 if the id has only one latch.
 */
extern void aq_latch_init(AqLatch *latch, AqLatchId id, int child);
extern void aq_latch_get(AqLatch *latch, AqLatchMode mode, AqLocation where);
extern bool aq_latch_get_nowait(AqLatch *latch, AqLatchMode mode, AqLocation where);
extern void aq_latch_free(AqLatch *latch);
extern bool aq_latch_held(const AqLatch *latch);	/* by this session; for assertions */
extern int	aq_latch_holder(const AqLatch *latch);	/* session number, or -1 */
extern uint32 aq_latch_sharers(const AqLatch *latch);
extern AqLatch *aq_latch_find(const char *name, int child); /* or NULL */

#endif							/* AQ_LATCH_H */
