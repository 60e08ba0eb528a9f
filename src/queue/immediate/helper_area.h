/*-------------------------------------------------------------------------
 *
 * helper_area.h
 *	  The pool of helpers in shared memory; see helper_area.c.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_HELPER_AREA_H
#define AQ_HELPER_AREA_H

#include "queue/immediate/immediate_private.h"

#include "lib/ilist.h"
#include "utils/dsa.h"

/* times are from aq_clock_us() */

#define NO_CALLER (-1)

typedef enum HelperState
{
	HELPER_FREE,				/* the entry is not in use */
	HELPER_STARTING,
	HELPER_IDLE,
	HELPER_BUSY,
	HELPER_RESETTING,
	HELPER_ENDING,
	HELPER_STUCK
} HelperState;

/* Protected by the latch. */
typedef struct Helper
{
	HelperState state;
	AqHelperKey key;
	uint32		serial;			/* distinguishes the processes of an entry */
	int			pid;			/* 0: not started yet */
	PGPROC	   *proc;
	int64		started;		/* when it was requested */
	int64		idle_since;
	int			caller;			/* number of a session, or NO_CALLER */
	bool		registered;		/* with the postmaster */
	bool		connected;
	bool		begun;			/* it has taken the request, and owns it: see leave() */
	bool		cancelled;		/* the caller has cancelled the call */
	bool		terminated;		/* it has ignored that */
	int64		told;			/* when it was cancelled, or terminated */
	bool		blocked;		/* its call waits for another helper */
	bool		ends;			/* ends instead of becoming idle */
	bool		wanted;			/* in dispatch(): a session in line waits for this one */
	dsa_pointer request;
} Helper;

/*
 * One for each session; protected by the latch.  The session reads its own one
 * without the latch when it has been woken: whoever changes the state does so
 * last, then sets the session's process latch.
 */
typedef struct Call
{
	dlist_node	node;			/* in line */
	AqCallState state;
	AqHelperKey key;
	int			helper;
	bool		starts;			/* AQ_CALL_GRANTED: the session starts its process */
	int			pid;			/* of the helper, 0: it has not started yet */
	bool		connected;		/* AQ_CALL_LOST: the helper was connected */
	dsa_pointer request;
} Call;

typedef struct AqHelperPool
{
	AqLatch		latch;
	dlist_head	line;
	int			waiting;		/* in line */
	int			used;			/* number of used entries, without those that are stuck */
	int			stuck;			/* number of those */
	int			high;			/* this and the following entries were never used */
	int			failures;		/* failures in a row to register a process */
	int64		retry_at;		/* no process is registered before */
	bool		yield;			/* the next idle helper ends, because another background worker needs its slot */
	int			timekeeper;		/* the session that checks again at look_at */
	int64		look_at;		/* 0: never */
	Helper		helpers[FLEXIBLE_ARRAY_MEMBER];
} AqHelperPool;

extern AqHelperPool *aq_helper_area;
extern Call *aq_helper_area_calls;	/* by session number */

extern Call *aq_helper_area_own_call(void);
extern int	aq_helper_area_caller(const Call *call);
extern void aq_helper_area_wake(const Call *call);
extern void aq_helper_area_discard(dsa_pointer request);

/* the caller holds the latch */
extern void aq_helper_area_dispatch(void);
extern void aq_helper_area_set(Call *call, AqCallState state);
extern void aq_helper_area_stand_in_line(Call *call, bool at_front);
extern void aq_helper_area_free(Helper *helper);
extern void aq_helper_area_end(Helper *helper);
extern void aq_helper_area_make_idle(Helper *helper);
extern bool aq_helper_area_give_place(void);
extern bool aq_helper_area_all_blocked(void);
extern int	aq_helper_area_stuck(Oid login);

#endif							/* AQ_HELPER_AREA_H */
