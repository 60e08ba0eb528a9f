/*-------------------------------------------------------------------------
 *
 * event.h
 *	  Named waits: begun and ended, their names, what a session waits for.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_EVENT_H
#define AQ_EVENT_H

#include "sync/common/atomics.h"
#include "sync/common/lists.h"

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

extern const AqClassName aq_event_names_classes[AQ_CLASS_COUNT];
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
extern int64 aq_event_left(const AqWaitNow *now, int64 clock);

/* A session's current wait, as of one moment; event is -1 when it is not attached. */
extern void aq_event_read(int session, AqWaitNow *now);

/*
 * The sampler wants to know how long this wait of the session will have taken;
 * later, whether it is known: microseconds, or -1.
 */
extern void aq_event_watch(int session, uint64 sequence);
extern int64 aq_event_watched(int session, uint64 sequence);

/* --- named waits -------------------------------------------------------------
 * AqEvent comes from event_list.h (name, class, P1-P3 texts).
 * aq_event_begin/end bracket a wait made by other means; aq_event_sleep sleeps on
 * the process latch until it is set, the time is over (timeout_us < 0: for
 * ever) or the postmaster dies; it handles interrupts, and returns false on
 * time-out.  It resets the process latch: check your condition after it.
 */
extern void aq_event_begin(AqEvent event, uint64 p1, uint64 p2, uint64 p3);
extern void aq_event_begin_timed(AqEvent event, uint64 p1, uint64 p2, uint64 p3, int64 timeout_us);
extern void aq_event_end(void);
extern void aq_event_end_timeout(void);	/* the same, counted as timed out */
extern bool aq_event_sleep(AqEvent event, uint64 p1, uint64 p2, uint64 p3, int64 timeout_us);

/* the server's wait_event_info under which it shows the event */
extern uint32 aq_event_info(AqEvent event);

#endif							/* AQ_EVENT_H */
