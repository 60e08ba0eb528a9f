/*-------------------------------------------------------------------------
 *
 * schedule.h
 *	  The public header of part "schedule": messages that are enqueued at
 *	  times, by cron expressions or intervals.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_SCHEDULE_H
#define AQ_SCHEDULE_H

#include "queue/queue.h"

extern const AqPart aq_schedule_part;

#endif							/* AQ_SCHEDULE_H */
