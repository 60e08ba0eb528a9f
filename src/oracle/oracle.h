/*-------------------------------------------------------------------------
 *
 * oracle.h
 *	  The public header of part "oracle": what Oracle's packages need in C.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_ORACLE_H
#define AQ_ORACLE_H

#include "base/base.h"

extern const AqPart aq_oracle_part;

#endif							/* AQ_ORACLE_H */
