/*-------------------------------------------------------------------------
 *
 * lock_names.h
 *	  Names of the kinds of latch and of the types of mutex.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_LOCK_NAMES_H
#define AQ_LOCK_NAMES_H

#include "sync/common/lists.h"

extern const char *const aq_lock_names_latches[AQ_LATCH_COUNT];
extern const char *const aq_lock_names_mutexes[AQ_MUTEX_TYPE_COUNT];

/* The index of a name, whatever its letter case; -1: not found. */
extern int	aq_lock_names_find(const char *const *names, int n, const char *name, int length);

#endif							/* AQ_LOCK_NAMES_H */
