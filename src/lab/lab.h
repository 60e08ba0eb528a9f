/*-------------------------------------------------------------------------
 *
 * lab.h
 *	  The public header of part "lab": deliberate contention, for experiments.
 *
 * Its SQL functions belong to the extension pgaq_lab, not to pgaq.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_LAB_H
#define AQ_LAB_H

#include "sync/sync.h"

extern const AqPart aq_lab_part;

#endif							/* AQ_LAB_H */
