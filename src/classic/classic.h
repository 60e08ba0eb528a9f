/*-------------------------------------------------------------------------
 *
 * classic.h
 *	  The public header of part "classic": the store of queue tables.
 *
 * Other parts use it only through its AqStore; see queue/store.h.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_CLASSIC_H
#define AQ_CLASSIC_H

#include "queue/queue.h"

extern const AqPart aq_classic_part;

#endif							/* AQ_CLASSIC_H */
