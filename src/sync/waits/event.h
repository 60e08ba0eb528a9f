/*-------------------------------------------------------------------------
 *
 * event.h
 *	  Named waits: functions to begin and end them, their names, and the
 *	  current wait of a session.
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

/* A session's current wait, or its last one. */
typedef struct AqWaitNow
{
	int32		event;			/* AqEvent, -1: has not waited yet */
	bool		waiting;
	uint64		p1;
	uint64		p2;
	uint64		p3;
	uint64		sequence;		/* number of the wait in this session */
	int64		start;			/* aq_clock_us */
	int64		end;			/* of the last wait; when not waiting */
	int64		until;			/* when it times out; 0: no timeout */
} AqWaitNow;

/*
 * Microseconds from the given time until the wait's timeout; -1: no timeout.
 */
extern int64 aq_event_left(const AqWaitNow *now, int64 clock);

/*
 * A consistent copy of a session's current wait; event is -1 if the session is
 * not attached.
 */
extern void aq_event_read(int session, AqWaitNow *now);

/*
 * For the sampler: requests the duration of this wait of the session; later,
 * reads it: microseconds, or -1 while it is not known.
 */
extern void aq_event_watch(int session, uint64 sequence);
extern int64 aq_event_watched(int session, uint64 sequence);

/* --- named waits -------------------------------------------------------------
 * AqEvent comes from event_list.h (name, class, P1-P3 texts).
 * aq_event_begin/end bracket a wait made by other means; aq_event_sleep sleeps
 * on the process latch until it is set, the timeout expires (timeout_us < 0:
 * none) or the postmaster dies; it handles interrupts, and returns false on
 * timeout.  It resets the process latch, so check your condition after it.
 */
extern void aq_event_begin(AqEvent event, uint64 p1, uint64 p2, uint64 p3);
extern void aq_event_begin_timed(AqEvent event, uint64 p1, uint64 p2, uint64 p3, int64 timeout_us);
extern void aq_event_end(void);
extern void aq_event_end_timeout(void); /* the same, counted as timed out */
extern bool aq_event_sleep(AqEvent event, uint64 p1, uint64 p2, uint64 p3, int64 timeout_us);

/*
 * The longest sleep until a time of day, in microseconds: a sleep does not end
 * when the clock is set forward, so the process checks it after this time.
 */
#define AQ_EVENT_CLOCK ((int64) 1000000)

/*
 * Waits like aq_event_sleep(), and also for sockets; each says what it waits for
 * and gets to know whether it is ready.
 */
typedef struct AqSocket
{
	int			socket;
	bool		read;
	bool		write;
	bool		ready;
	void	   *data;			/* the caller's own */
} AqSocket;

extern void aq_event_wait_sockets(AqEvent event, uint64 p1, uint64 p2, uint64 p3, AqSocket *sockets, int n, int64 timeout_us);

/* the wait_event_info of the server for the event */
extern uint32 aq_event_info(AqEvent event);

#endif							/* AQ_EVENT_H */
