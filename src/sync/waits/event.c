/*-------------------------------------------------------------------------
 *
 * event.c
 *	  Named waits: the session's current wait, counters, histograms.
 *
 * Before a session sleeps, it writes the event and P1 to P3 into its slot, and
 * sets the server's wait event, so that pg_stat_activity shows the wait.  From
 * PostgreSQL 17 on the server's event has pgaq's name for it; before that it
 * is "Extension".
 *
 * Each session counts in its own slot without a lock; event_sums.c adds up the
 * slots, and keeps the totals of ended sessions.
 *
 * Waits may be nested two or three deep (a latch inside a named wait): the
 * inner one is shown while it lasts, and its time is part of the outer one's
 * time.
 *
 * No function here raises errors, except that aq_event_sleep() serves
 * interrupts after the wait has ended.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "pgstat.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "sync/common/held.h"
#include "sync/traces/trace.h"
#include "sync/waits/event_int.h"

#define MAX_NESTED	4

/* sockets that are found ready at once; the others at the next wait */
#define AQ_SOCKETS_READY 64

/*
 * The wait set with which a session waits for its client.  It is declared in
 * libpq/libpq.h, which is not included because it needs the headers of GSSAPI
 * if the server was built with it.  The declarations are the same in all
 * versions.
 */
extern PGDLLIMPORT WaitEventSet *FeBeWaitSet;
#define CLIENT_SOCKET	0		/* FeBeWaitSetSocketPos */

typedef struct OpenWait
{
	AqEvent		event;
	uint64		p1;
	uint64		p2;
	uint64		p3;
	int64		start;
	int64		until;
} OpenWait;

AqWaitSlot *aq_event_slots = NULL;
uint64		aq_event_idle = 0;

static AqWaitSlot *own_slot = NULL;
static OpenWait open_waits[MAX_NESTED];
static int	nopen = 0;
static uint32 server_events[AQ_EVENT_COUNT];

Size
aq_event_shmem_size(void)
{
	return mul_size(sizeof(AqWaitSlot), aq_session_slots());
}

void
aq_event_shmem_init(void *area, bool found)
{
	aq_event_slots = area;
	if (found)
		return;
	memset(area, 0, aq_event_shmem_size());
	for (int i = 0; i < aq_session_slots(); i++)
	{
		pg_atomic_init_u32(&aq_event_slots[i].change, 0);
		pg_atomic_init_u64(&aq_event_slots[i].watched, 0);
		pg_atomic_init_u64(&aq_event_slots[i].watched_time, 0);
		aq_event_slots[i].now.event = -1;
	}
}

uint32
aq_event_info(AqEvent event)
{
	aq_session_attach();
	return server_events[event];
}

static void
write_now(const AqWaitNow *now)
{
	uint32		change = pg_atomic_read_u32(&own_slot->change);

	pg_atomic_write_u32(&own_slot->change, change + 1);
	pg_write_barrier();
	own_slot->now = *now;
	pg_write_barrier();
	pg_atomic_write_u32(&own_slot->change, change + 2);
}

/* A session's current wait, as of one moment. */
void
aq_event_read(int session, AqWaitNow *now)
{
	AqWaitSlot *slot = &aq_event_slots[session];

	for (;;)
	{
		uint32		before = pg_atomic_read_u32(&slot->change);

		pg_read_barrier();
		*now = slot->now;
		pg_read_barrier();
		if ((before & 1) == 0 && before == pg_atomic_read_u32(&slot->change))
			return;
		CHECK_FOR_INTERRUPTS();
	}
}

int64
aq_event_left(const AqWaitNow *now, int64 clock)
{
	return now->until == 0 ? -1 : Max(now->until - clock, 0);
}

void
aq_event_watch(int session, uint64 sequence)
{
	AqWaitSlot *slot = &aq_event_slots[session];

	pg_atomic_write_u64(&slot->watched_time, 0);
	pg_atomic_write_u64(&slot->watched, sequence);
}

int64
aq_event_watched(int session, uint64 sequence)
{
	AqWaitSlot *slot = &aq_event_slots[session];
	int64		time = (int64) pg_atomic_read_u64(&slot->watched_time);

	return pg_atomic_read_u64(&slot->watched) == sequence ? time - 1 : -1;
}

void
aq_event_session_start(void)
{
	AqWaitNow	now = {.event = -1, .end = aq_clock_us()};

	own_slot = &aq_event_slots[aq_session_own_number];
	own_slot->background = (MyBackendType != B_BACKEND);
	nopen = 0;
	for (int event = 0; event < AQ_EVENT_COUNT; event++)
		server_events[event] = aq_server_wait_event(aq_event_names[event].name);
	write_now(&now);
}

/* Called after the session's counters were added to the totals. */
void
aq_event_session_exit(void)
{
	AqWaitNow	now = {.event = -1};

	write_now(&now);
}

void
aq_event_begin_timed(AqEvent event, uint64 p1, uint64 p2, uint64 p3, int64 timeout_us)
{
	OpenWait   *wait;
	AqWaitNow	now;

	aq_session_attach();
	if (!AQ_ACCOUNTING)
	{
		pgstat_report_wait_start(server_events[event]);
		return;
	}
	Assert(nopen < MAX_NESTED);
	if (nopen >= MAX_NESTED)
		return;
	wait = &open_waits[nopen++];
	wait->event = event;
	wait->p1 = p1;
	wait->p2 = p2;
	wait->p3 = p3;
	wait->start = aq_clock_us();
	wait->until = timeout_us < 0 ? 0 : wait->start + timeout_us;

	now.event = event;
	now.waiting = true;
	now.p1 = p1;
	now.p2 = p2;
	now.p3 = p3;
	now.sequence = own_slot->now.sequence + 1;
	now.start = wait->start;
	now.end = 0;
	now.until = wait->until;
	write_now(&now);
	pgstat_report_wait_start(server_events[event]);
	aq_trace_wait_begin(event, p1, p2, p3);
}

void
aq_event_begin(AqEvent event, uint64 p1, uint64 p2, uint64 p3)
{
	aq_event_begin_timed(event, p1, p2, p3, -1);
}

static void
end_wait(bool timed_out)
{
	OpenWait   *wait;
	AqEventCounters *counters;
	AqWaitNow	now;
	int64		end;
	int64		time;

	if (!AQ_ACCOUNTING)
	{
		pgstat_report_wait_end();
		return;
	}
	end = aq_clock_us();
	Assert(nopen > 0);
	if (nopen == 0)
		return;
	wait = &open_waits[--nopen];
	time = Max(end - wait->start, 0);

	counters = &own_slot->events[wait->event];
	counters->waits++;
	if (timed_out)
		counters->timeouts++;
	counters->time += time;
	if ((uint64) time > counters->max)
		counters->max = time;
	counters->histogram[aq_hist_bucket(time)]++;
	aq_trace_wait_end(wait->event, timed_out, time);
	if (pg_atomic_read_u64(&own_slot->watched) == own_slot->now.sequence)
		pg_atomic_write_u64(&own_slot->watched_time, time + 1);
	if (aq_event_names[wait->event].class == AQ_CLASS_IDLE && nopen == 0)
		aq_event_idle += time * 1000;

	now = own_slot->now;
	if (nopen > 0)
	{
		/* back to the outer wait */
		wait = &open_waits[nopen - 1];
		now.event = wait->event;
		now.p1 = wait->p1;
		now.p2 = wait->p2;
		now.p3 = wait->p3;
		now.start = wait->start;
		now.until = wait->until;
		write_now(&now);
		pgstat_report_wait_start(server_events[wait->event]);
	}
	else
	{
		now.waiting = false;
		now.end = end;
		write_now(&now);
		pgstat_report_wait_end();
	}
}

void
aq_event_end(void)
{
	end_wait(false);
}

void
aq_event_end_timeout(void)
{
	end_wait(true);
}

/* Ends the waits that an error has interrupted. */
void
aq_event_end_all(void)
{
	while (nopen > 0)
		end_wait(false);
}

/*
 * An idle wait also ends when the client has closed its connection, because
 * otherwise the session might wait forever and receive wake-ups that other
 * sessions need.  While interrupts are held off the client is not watched,
 * because the session could not end then.
 */
static bool
watches_client(AqEvent event)
{
	return aq_event_names[event].class == AQ_CLASS_IDLE && MyProcPort != NULL && FeBeWaitSet != NULL &&
		WaitEventSetCanReportClosed() && INTERRUPTS_CAN_BE_PROCESSED();
}

/* Like WaitLatch(), but also watches the client's connection. */
static int
wait_beside_client(long timeout_ms, uint32 server_event)
{
	WaitEvent	events[3];
	int			n;
	int			rc = 0;

	/*
	 * no need to restore this: the server sets the socket's events before its
	 * own waits
	 */
	ModifyWaitEvent(FeBeWaitSet, CLIENT_SOCKET, WL_SOCKET_CLOSED, NULL);
	n = WaitEventSetWait(FeBeWaitSet, timeout_ms, events, lengthof(events), server_event);
	for (int i = 0; i < n; i++)
		rc |= events[i].events;
	if (rc & WL_POSTMASTER_DEATH)
		proc_exit(1);
	if (rc & WL_SOCKET_CLOSED)
	{
		ClientConnectionLost = true;
		InterruptPending = true;
	}
	return n == 0 ? WL_TIMEOUT : rc;
}

bool
aq_event_sleep(AqEvent event, uint64 p1, uint64 p2, uint64 p3, int64 timeout_us)
{
	int			wake_events = WL_LATCH_SET | WL_EXIT_ON_PM_DEATH;
	long		timeout_ms = -1;
	int			rc;

	aq_held_assert_none();

	if (timeout_us >= 0)
	{
		wake_events |= WL_TIMEOUT;
		timeout_ms = (long) Min((timeout_us + 999) / 1000, (int64) INT_MAX);
	}

	aq_event_begin_timed(event, p1, p2, p3, timeout_us);
	rc = watches_client(event) ? wait_beside_client(timeout_ms, server_events[event])
		: WaitLatch(MyLatch, wake_events, timeout_ms, server_events[event]);
	end_wait((rc & WL_LATCH_SET) == 0);
	ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
	return (rc & WL_LATCH_SET) != 0;
}

/*
 * The set is made for each wait, because connections change their sockets
 * while they are being made.
 */
void
aq_event_wait_sockets(AqEvent event, uint64 p1, uint64 p2, uint64 p3, AqSocket *sockets, int n, int64 timeout_us)
{
	WaitEventSet *set = aq_wait_set_create(n + 2);
	long		timeout_ms = timeout_us < 0 ? -1 : (long) Min((timeout_us + 999) / 1000, (int64) INT_MAX);
	WaitEvent	events[AQ_SOCKETS_READY];
	int			ready;

	aq_held_assert_none();
	AddWaitEventToSet(set, WL_LATCH_SET, PGINVALID_SOCKET, MyLatch, NULL);
	AddWaitEventToSet(set, WL_EXIT_ON_PM_DEATH, PGINVALID_SOCKET, NULL, NULL);
	for (int i = 0; i < n; i++)
	{
		sockets[i].ready = false;
		AddWaitEventToSet(set, (sockets[i].read ? WL_SOCKET_READABLE : 0) | (sockets[i].write ? WL_SOCKET_WRITEABLE : 0),
						  sockets[i].socket, NULL, &sockets[i]);
	}
	aq_event_begin_timed(event, p1, p2, p3, timeout_us);
	ready = WaitEventSetWait(set, timeout_ms, events, lengthof(events), server_events[event]);
	end_wait(ready == 0);
	for (int i = 0; i < ready; i++)
		if (events[i].user_data != NULL)
			((AqSocket *) events[i].user_data)->ready = true;
	FreeWaitEventSet(set);
	ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
}
