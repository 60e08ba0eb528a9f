/*-------------------------------------------------------------------------
 *
 * link_worker.c
 *	  The background worker "pgaq link" of a database: its loop.
 *
 * It waits for its latch and for the sockets of all connections, and does what
 * can be done.  It ends by itself when for some time there was neither a stream
 * nor a check.  SIGTERM ends it at once; requests in flight are abandoned.  An
 * error outside of the callbacks ends it, too, and another one is started after a
 * pause.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "link/link_private.h"

#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"

/* how long a worker stays that has nothing to do */
#define IDLE_TIMEOUT ((int64) 10000000)

/* pause before the streams are listed again after an error */
#define LIST_AGAIN ((int64) 1000000)

static AqLinkDatabase *database;
static bool failed = true;		/* is it an error if the process ends now? */
static int64 idle_since;		/* 0: there is something to do */
static int64 list_at;			/* 0: the streams are listed */
static AqSocket *sockets;
static int	room;

PGDLLEXPORT void aq_link_worker_main(Datum arg);

static void
worker_exit(int code, Datum arg)
{
	aq_link_route_close();
	aq_link_area_ended(database, failed && !ShutdownRequestPending, aq_link_route_has_worked());
	/* it starts another one, if that is needed */
	pg_atomic_fetch_add_u32(&database->changes, 1);
	aq_jobs_post();
}

/* What this worker was told since it looked last. */
static void
take_orders(uint32 work)
{
	if (work & AQ_LINK_DEFINITIONS)
		aq_link_route_refresh();
	/* streams may name servers and roles */
	if ((work & (AQ_LINK_STREAMS | AQ_LINK_DEFINITIONS)) || (list_at != 0 && aq_clock_us() >= list_at))
	{
		list_at = 0;
		if (aq_link_stream_list())
			aq_link_route_attach();
		else
			list_at = aq_clock_us() + LIST_AGAIN;
	}
	if (work & AQ_LINK_WAKE)
		aq_link_stream_woken();
}

/* Fills in what to wait for. */
static int
list_sockets(int *in_flight, int *connecting, int64 *next)
{
	for (;;)
	{
		int			n;

		*in_flight = *connecting = 0;
		*next = list_at;
		n = aq_link_route_sockets(sockets, room, in_flight, connecting, next);
		n += aq_link_check_sockets(sockets + Min(n, room), room - Min(n, room), connecting, next);
		if (n <= room)
			return n;
		sockets = aq_array_grow(sockets, &room, n, sizeof(AqSocket));
	}
}

/* Is there nothing to do for long enough?  Sets when that will be. */
static bool
is_over(int nconnections, int64 now, int64 *next)
{
	if (aq_link_route_count() > 0 || nconnections > 0 || list_at != 0)
		idle_since = 0;
	else if (idle_since == 0)
		idle_since = now;
	if (idle_since == 0)
		return false;
	aq_clock_sooner(next, idle_since + IDLE_TIMEOUT);
	return now - idle_since >= IDLE_TIMEOUT && pg_atomic_read_u32(&database->work) == 0;
}

/* One round; false: the worker is no longer needed. */
static bool
work(void)
{
	int			in_flight,
				connecting,
				n;
	int64		next;
	int64		now;

	take_orders(pg_atomic_exchange_u32(&database->work, 0));
	now = aq_clock_us();
	aq_link_check_work(now);
	aq_link_route_work(now);
	if (ShutdownRequestPending)
		return false;
	n = list_sockets(&in_flight, &connecting, &next);
	now = aq_clock_us();
	if (is_over(n + connecting, now, &next))
		return false;
	aq_event_wait_sockets(in_flight > 0 ? AQ_EVENT_LINK_ANSWER : connecting > 0 ? AQ_EVENT_LINK_CONNECT : AQ_EVENT_LINK_IDLE,
						  aq_link_route_count(), in_flight, connecting, sockets, n, next == 0 ? -1 : Max(next - now, 0));
	aq_link_peer_ready(sockets, n, aq_clock_us());
	return true;
}

void
aq_link_worker_main(Datum arg)
{
	Oid			oid = DatumGetObjectId(arg);
	MemoryContext context;

	/* connecting may wait for a lock, so SIGTERM ends the process at once */
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	aq_link_login_prepare();
	BackgroundWorkerUnblockSignals();
	aq_session_attach();

	database = aq_link_area_claim(oid);
	if (database == NULL)
		proc_exit(0);
	before_shmem_exit(worker_exit, (Datum) 0);
	if (aq_jobs_is_stopped(oid))
	{
		failed = false;
		proc_exit(0);
	}
	BackgroundWorkerInitializeConnectionByOid(oid, InvalidOid, 0);
	aq_point("link-worker-connected");
	pqsignal(SIGTERM, aq_job_on_sigterm);
	aq_job_set_parameters("pgaq link");
	aq_job_run_as_owner();
	/* binary values are converted to it; the connections have the same */
	aq_process_set_parameter("client_encoding", GetDatabaseEncodingName());
	aq_jobs_ensure_worker();

	context = AllocSetContextCreate(TopMemoryContext, "pgaq link worker", ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(context);
	pg_atomic_fetch_or_u32(&database->work, AQ_LINK_STREAMS | AQ_LINK_CHECK);
	database->proc = MyProc;
	pgstat_report_activity(STATE_IDLE, NULL);
	/* after a step back of the clock, the next process has no pauses that would last longer */
	while (!ShutdownRequestPending && !aq_clock_was_set_back() && work())
	{
		MemoryContextReset(context);
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}
	}
	failed = false;
	proc_exit(0);
}
