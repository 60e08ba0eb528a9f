/*-------------------------------------------------------------------------
 *
 * mutex.h
 *	  Mutexes.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_MUTEX_H
#define AQ_MUTEX_H

#include "sync/common/latch_types.h"
#include "sync/common/lists.h"

/* --- mutexes: small, embedded in what they protect -------------------------
 * idn is the identifier shown as P1 (hash of the protected object).
 */
extern void aq_mutex_init(AqMutex *mutex, AqMutexType type, uint32 idn);
extern void aq_mutex_get(AqMutex *mutex, AqMutexMode mode, AqLocation where);
extern bool aq_mutex_get_nowait(AqMutex *mutex, AqMutexMode mode, AqLocation where);
extern void aq_mutex_free(AqMutex *mutex);
extern bool aq_mutex_held(const AqMutex *mutex);
extern uint64 aq_mutex_gets(AqMutex *mutex);	/* since it was initialised */
extern int	aq_mutex_holder(AqMutex *mutex);	/* exclusive or examine mode: session number, or -1 */

/* The mutex's reference count, which may be changed in mode AQ_EXAMINE. */
extern uint32 aq_mutex_count(AqMutex *mutex);
extern void aq_mutex_add_count(AqMutex *mutex, int32 n);

/*
 * Changes P1 of waits, and P3, which is object << 32 | namespace << 16 |
 * location.  The caller holds the mutex, or no other session uses it yet.
 */
extern void aq_mutex_set_object(AqMutex *mutex, uint32 idn, uint32 object, uint16 namespace);
extern void aq_mutex_counters(AqMutex *mutex, uint64 *gets, uint64 *sleeps);

#endif							/* AQ_MUTEX_H */
