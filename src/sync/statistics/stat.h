/*-------------------------------------------------------------------------
 *
 * stat.h
 *	  Statistics and the time model.
 *
 * Included through sync.h.  Each session counts in a slot of its own, without a
 * lock; a session that ends adds its slot to the totals.
 *
 * The time model adds the time of a session's statements to DB time, and the
 * outermost queue operation's time to the time of its kind, both without idle
 * waits.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_STAT_H
#define AQ_STAT_H

#include "sync/common/atomics.h"

typedef enum AqStat
{
#define X(id, name, class, text) AQ_STAT_##id,
#include "sync/statistics/stat_list.h"
#undef X
	AQ_STAT_COUNT
} AqStat;

typedef enum AqTimeKind
{
#define X(id, name, text) AQ_TIME_##id,
#include "sync/statistics/time_list.h"
#undef X
	AQ_TIME_COUNT
} AqTimeKind;

/* of this session; a dummy before it attaches and after it has left */
extern uint64 *aq_stat_own;

/* Needs no latch and does not raise errors.  The session must be attached. */
static inline void
aq_stat_add(AqStat stat, int64 n)
{
	if (AQ_ACCOUNTING)
		aq_stat_own[stat] += n;
}

/* Set when the transaction enqueues or dequeues: then its end is counted. */
extern bool aq_stat_touched;

/* --- time model -----------------------------------------------------------
 *
 * At the top of a queue operation:
 *		AQ_TIMED(AQ_TIME_ENQUEUE);
 * The operation ends with the block; after an error, when the (sub)transaction
 * is rolled back.  An operation inside another one counts as part of the outer
 * one.
 */
typedef struct AqTimed
{
	bool		open;
} AqTimed;

extern AqTimed aq_time_enter(AqTimeKind kind);
extern void aq_time_leave(AqTimed *timed);

/* In an operation: it is not part of another one. */
extern bool aq_time_outermost(void);

#define AQ_TIMED(kind) \
	AqTimed		aq_timed __attribute__((cleanup(aq_time_leave), unused)) = aq_time_enter(kind)

/*
 * Sets the operation's queue, unless it is already set; shown in the session
 * history.
 */
extern void aq_time_queue(int32 queue_id);

/* Sets the operation's queue even if it is already set. */
extern void aq_time_queue_is(int32 queue_id);

/*
 * Callback at the end of each operation on a queue.  Times are in nanoseconds,
 * without idle waits; CPU time is an estimate, as in the time model.  It must
 * not raise an error.
 */
typedef void (*AqTimeOnQueue) (int32 queue_id, AqTimeKind kind, uint64 elapsed, uint64 cpu);
extern void aq_time_on_queue(AqTimeOnQueue told);

/*
 * The clock in nanoseconds, for time measured by other parts; 0 while
 * pgaq.timed_statistics is off.
 */
extern int64 aq_time_now(void);

/*
 * A session's current queue operation: its kind, or -1, and its queue, or 0.
 */
extern int	aq_stat_operation(int session, int32 *queue_id);
extern const char *const aq_time_kind_names[AQ_TIME_COUNT];

#endif							/* AQ_STAT_H */
