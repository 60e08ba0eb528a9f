/*-------------------------------------------------------------------------
 *
 * stat.h
 *	  Statistics and the time model: what a session has done, and for how long.
 *
 * Included through sync.h.  Each session counts in a slot of its own, without a
 * lock; a session that ends adds its slot to the totals.
 *
 * The time model books the time of a session's statements as DB time, and the
 * outermost queue operation's time under its kind, all without idle waits.
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

/* of this session; of none before it is attached and after its end */
extern uint64 *aq_stat_own;

/* Needs no latch and does not raise.  The session is attached. */
static inline void
aq_stat_add(AqStat stat, int64 n)
{
	if (AQ_ACCOUNTING)
		aq_stat_own[stat] += n;
}

/* The transaction has enqueued or dequeued: count its end. */
extern bool aq_stat_touched;

/* --- time model -----------------------------------------------------------
 *
 * At the top of a queue operation:
 *		AQ_TIMED(AQ_TIME_ENQUEUE);
 * It ends with the block; after an error, when the (sub)transaction is rolled
 * back.  An operation inside another one belongs to the outer one.
 */
typedef struct AqTimed
{
	bool		open;
} AqTimed;

extern AqTimed aq_time_enter(AqTimeKind kind);
extern void aq_time_leave(AqTimed *timed);

#define AQ_TIMED(kind) \
	AqTimed		aq_timed __attribute__((cleanup(aq_time_leave), unused)) = aq_time_enter(kind)

/* The queue that the operation is about; shown in the session history. */
extern void aq_time_queue(int32 queue_id);

/* It is this one, whichever it was taken for. */
extern void aq_time_queue_is(int32 queue_id);

/* Who is told at the end of each: nanoseconds, without idle waits; of the CPU an estimate as in the time model.  Must not raise. */
typedef void (*AqTimeOnQueue) (int32 queue_id, AqTimeKind kind, uint64 elapsed, uint64 cpu);
extern void aq_time_on_queue(AqTimeOnQueue told);

/* For times that are booked elsewhere: the clock, nanoseconds; 0 while pgaq.timed_statistics is off. */
extern int64 aq_time_now(void);

/* The queue operation that a session is in: its kind, or -1, and its queue, or 0. */
extern int	aq_stat_operation(int session, int32 *queue_id);
extern const char *const aq_time_kind_names[AQ_TIME_COUNT];

#endif							/* AQ_STAT_H */
