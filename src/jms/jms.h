/*-------------------------------------------------------------------------
 *
 * jms.h
 *	  The public header of part "jms": the functions for the Jakarta Messaging
 *	  provider, and for Oracle's JMS types.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_JMS_H
#define AQ_JMS_H

#include "base/base.h"

extern const AqPart aq_jms_part;

#endif							/* AQ_JMS_H */
