/*-------------------------------------------------------------------------
 *
 * monitor.h
 *	  The public header of part "monitor", which reads the other parts through
 *	  their views.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_MONITOR_H
#define AQ_MONITOR_H

#include "jobs/jobs.h"

extern const AqPart aq_monitor_part;

#endif							/* AQ_MONITOR_H */
