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

#include "queue/calls/calls_private.h"

#include "lib/ilist.h"

/* times are of aq_clock_us() */

#define NO_CALLER (-1)

typedef enum HelperState
{
	HELPER_FREE,				/* the entry is not in use */
	HELPER_STARTING,
	HELPER_IDLE,
	HELPER_BUSY,
	HELPER_RESETTING,
	HELPER_ENDING
} HelperState;

/* All under the latch. */
typedef struct Helper
{
	HelperState state;
	AqHelperKey key;
	uint32		serial;			/* tells the processes of an entry apart */
	int			pid;			/* 0: has not come yet */
	PGPROC	   *proc;
	int64		started;		/* asked for */
	int64		idle_since;
	int			caller;			/* number of a session, or NO_CALLER */
	bool		registered;		/* with the postmaster */
	bool		connected;
	bool		given;			/* the caller has handed over its request */
	bool		cancelled;		/* the caller wants no answer any more */
	bool		blocked;		/* its call waits for another helper */
	bool		ends;			/* instead of being idle */
	bool		wanted;			/* in dispatch(): a session in line waits for this one */
	dsm_handle	request;
} Helper;

typedef enum CallState
{
	CALL_NONE,
	CALL_IN_LINE,
	CALL_GRANTED,				/* has a helper */
	CALL_LOST					/* its helper has ended */
} CallState;

/* One for each session; all under the latch. */
typedef struct Call
{
	dlist_node	node;			/* in line */
	CallState	state;
	AqHelperKey key;
	int			helper;
	bool		connected;		/* CALL_LOST: the helper had been connected */
} Call;

typedef struct AqHelperPool
{
	AqLatch		latch;
	dlist_head	line;
	int			waiting;		/* in line */
	int			used;			/* entries that are not free */
	int			high;			/* entries from here on were never used */
	int			failures;		/* no place for a process, in a row */
	int64		retry_at;		/* no process is registered before */
	bool		yield;			/* the next idle helper ends: another background worker wants its place */
	int			timekeeper;		/* the session that looks again at look_at */
	int64		look_at;		/* 0: at no time */
	Helper		helpers[FLEXIBLE_ARRAY_MEMBER];
} AqHelperPool;

extern AqHelperPool *aq_helper_area;
extern Call *aq_helper_area_calls;	/* by session number */

extern Call *aq_helper_area_own_call(void);
extern int	aq_helper_area_caller(const Call *call);
extern void aq_helper_area_wake(const Call *call);

/* the latch is held */
extern void aq_helper_area_dispatch(void);
extern void aq_helper_area_stand_in_line(Call *call, bool at_front);
extern void aq_helper_area_free(Helper *helper);
extern void aq_helper_area_end(Helper *helper);
extern void aq_helper_area_make_idle(Helper *helper);
extern bool aq_helper_area_give_place(void);
extern bool aq_helper_area_all_blocked(void);

#endif							/* AQ_HELPER_AREA_H */
