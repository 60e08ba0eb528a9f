/*-------------------------------------------------------------------------
 *
 * notify.h
 *	  The public header of part "notify": registrations, and the background
 *	  workers that call registered procedures.
 *
 * Other parts use it only through its SQL functions and views.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_NOTIFY_H
#define AQ_NOTIFY_H

#include "queue/queue.h"

extern const AqPart aq_notify_part;

#endif							/* AQ_NOTIFY_H */
