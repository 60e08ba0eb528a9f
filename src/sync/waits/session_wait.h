/*-------------------------------------------------------------------------
 *
 * session_wait.h
 *	  What other parts may know of sessions' waits: names, the current wait.
 *
 * Included through sync.h.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_SESSION_WAIT_H
#define AQ_SESSION_WAIT_H

#include "sync/common/atomics.h"
#include "sync/common/lists.h"
#include "sync/statistics/stat.h"

typedef struct AqClassName
{
	const char *name;
	int			number;			/* Oracle's */
	int64		identifier;		/* Oracle's */
} AqClassName;

typedef struct AqEventName
{
	const char *name;
	AqWaitClass class;
	const char *parameters[3];
	const char *text;
} AqEventName;

extern const AqClassName aq_class_names[AQ_CLASS_COUNT];
extern const AqEventName aq_event_names[AQ_EVENT_COUNT];

/* What a session waits for, or waited for last. */
typedef struct AqWaitNow
{
	int32		event;			/* AqEvent, -1: has not waited yet */
	bool		waiting;
	uint64		p1;
	uint64		p2;
	uint64		p3;
	uint64		sequence;		/* of waits of this session */
	int64		start;			/* aq_clock_us */
	int64		end;			/* of the last wait; when not waiting */
	int64		until;			/* when its time is over; 0: it has no limit */
} AqWaitNow;

/* Microseconds that a wait may still take at this time of the clock; -1: it has no limit. */
extern int64 aq_wait_left(const AqWaitNow *now, int64 clock);

/* A session's current wait, as of one moment; event is -1 when it is not attached. */
extern void aq_event_read(int session, AqWaitNow *now);

/*
 * The sampler wants to know how long this wait of the session will have taken;
 * later, whether it is known: microseconds, or -1.
 */
extern void aq_event_watch(int session, uint64 sequence);
extern int64 aq_event_watched(int session, uint64 sequence);

/* The queue operation that a session is in: its kind, or -1, and its queue, or 0. */
extern int	aq_session_operation(int session, int32 *queue_id);
extern const char *const aq_time_kind_names[AQ_TIME_COUNT];

#endif							/* AQ_SESSION_WAIT_H */
