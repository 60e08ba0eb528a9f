/*-------------------------------------------------------------------------
 *
 * shard.h
 *	  The public header of part "shard": the sharded store.  Other parts use it
 *	  only through its AqStore; see queue/store.h.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_SHARD_H
#define AQ_SHARD_H

#include "queue/queue.h"

extern const AqPart aq_shard_part;

#endif							/* AQ_SHARD_H */
