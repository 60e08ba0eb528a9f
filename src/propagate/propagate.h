/*-------------------------------------------------------------------------
 *
 * propagate.h
 *	  The public header of part "propagate": messages of a queue go on to other
 *	  queues, as schedules say.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_PROPAGATE_H
#define AQ_PROPAGATE_H

#include "queue/queue.h"

extern const AqPart aq_propagate_part;

#endif							/* AQ_PROPAGATE_H */
