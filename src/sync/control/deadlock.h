/*-------------------------------------------------------------------------
 *
 * deadlock.h
 *	  Deadlocks that pass through named waits.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_DEADLOCK_H
#define AQ_DEADLOCK_H

#include "nodes/bitmapset.h"
#include "sync/waits/event.h"

/*
 * The numbers of the sessions for which the given one waits, without itself.
 * Called for any session that waits for the event, without a lock.
 */
typedef Bitmapset *(*AqWaitHolders) (int session, const AqWaitNow *now);

/* any: one of the holders can end the wait.  Otherwise all must end first. */
extern void aq_deadlock_define(AqEvent event, bool any, AqWaitHolders holders);

/* What a wait remembers between checks; initially 0. */
typedef struct AqDeadlockWatch
{
	int64		check_at;
	bool		found;			/* the last check has found a deadlock */
} AqDeadlockWatch;

/*
 * Called between two sleeps of the wait, without latches: raises an error if
 * the session waits for itself.  Looks after deadlock_timeout, and then again
 * after each.
 */
extern void aq_deadlock_check(AqDeadlockWatch *watch, AqEvent event, uint64 p1);

/* The longest sleep between two calls, in microseconds. */
extern int64 aq_deadlock_pause(void);

/* For views: a session for which this one waits, at a latch, a mutex or a wait as above; -1: none. */
extern int	aq_deadlock_blocker(int session, const AqWaitNow *now);

#endif							/* AQ_DEADLOCK_H */
