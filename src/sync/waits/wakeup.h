/*-------------------------------------------------------------------------
 *
 * wakeup.h
 *	  Lists of waiting sessions, first come first served.  When n items become
 *	  available, as many sessions are woken from the head of a list as take n
 *	  items together.
 *
 * The entries of a pool and the lists are arrays, linked by 32-bit indexes, so
 * they can be anywhere in shared memory.  There are no locks here: the caller
 * holds the latch that protects the pool ("queue waiters").
 *
 * States of an entry, and the functions that change them:
 *
 *	FREE -> WAITING		aq_wakeup_add: before the waiter checks for the last time
 *	WAITING -> WOKEN	aq_wakeup_pop: the session's latch will be set
 *	WAITING -> FREE		aq_wakeup_remove returns 0: it was not woken
 *	WOKEN -> FREE		aq_wakeup_remove returns its items: it has consumed a wake-up
 *
 * Rules
 *	1	A waiter adds itself, checks once more, and only then sleeps.
 *	2	A waiter always removes itself, even after an error.
 *	3	A waiter that was WOKEN but takes nothing (timed out, cancelled, wanted
 *		something else), or fewer items than it was woken for, has consumed a
 *		wake-up that another waiter needs: it must pass on what is left of it.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_WAKEUP_H
#define AQ_WAKEUP_H

#include "sync/common/atomics.h"

#define AQ_WAKEUP_NONE	((uint32) 0xFFFFFFFF)
#define AQ_WAKEUP_ANY_KEY ((uint32) 0)

typedef enum AqWakeupState
{
	AQ_WAKEUP_FREE,
	AQ_WAKEUP_WAITING,
	AQ_WAKEUP_WOKEN
} AqWakeupState;

typedef struct AqWaitEntry
{
	uint32		next;			/* of the same list, or of the free entries */
	uint32		prev;
	int32		session;
	uint32		list;
	uint32		items;			/* WAITING: most that it takes; WOKEN: the number for which it was woken */
	uint32		key;			/* of the items that it takes; AQ_WAKEUP_ANY_KEY: any may be one */
	uint8		state;			/* AqWakeupState */
} AqWaitEntry;

typedef struct AqWaitList
{
	uint32		head;
	uint32		tail;
	uint32		waiting;		/* entries in it */
} AqWaitList;

typedef struct AqWaitPool
{
	AqWaitEntry *entries;
	uint32		nentries;
	uint32		free;			/* head of the free entries */
} AqWaitPool;

extern void aq_wakeup_pool_init(AqWaitPool *pool, AqWaitEntry *entries, uint32 nentries);
extern void aq_wakeup_list_init(AqWaitList *list);

/*
 * Returns the entry's index, or AQ_WAKEUP_NONE if the pool is exhausted.  items: the
 * most that the session takes, at least one.
 */
extern uint32 aq_wakeup_add(AqWaitPool *pool, AqWaitList *list, uint32 list_number, int32 session, uint32 items);

/* Frees the entry; returns for how many items its session had been woken; 0: it was not. */
extern uint32 aq_wakeup_remove(AqWaitPool *pool, AqWaitList *list, uint32 entry);

/*
 * Removes waiters from the head of the list, up to n and until they take *items
 * together, which it reduces (NULL: each is woken for one item); returns their
 * number, and their sessions in sessions[].  The owners still have to remove the
 * entries.
 */
extern int	aq_wakeup_pop(AqWaitPool *pool, AqWaitList *list, int n, uint32 *items, int32 *sessions);

/*
 * The same for waiters of an item with this key, wherever they are in the list,
 * each for one item; with AQ_WAKEUP_ANY_KEY, all.  An entry has a key only while it
 * is in the list.
 */
extern int	aq_wakeup_pop_key(AqWaitPool *pool, AqWaitList *list, int n, uint32 key, int32 *sessions);

#endif							/* AQ_WAKEUP_H */
