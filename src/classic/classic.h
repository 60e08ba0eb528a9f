/*-------------------------------------------------------------------------
 *
 * classic.h
 *	  The door of part "classic": the store of queue tables.
 *
 * It is reached through its AqStore record only; see queue/store.h.
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
