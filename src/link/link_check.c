/*-------------------------------------------------------------------------
 *
 * link_check.c
 *	  aq.check_link(): a session has the link worker connect at once, and waits
 *	  for the result.
 *
 * The session's request is an entry in shared memory, and a claim: however the
 * session ends, the entry is freed, by the session or, if the worker is just
 * connecting for it, by the worker.  A check uses a connection of its own, so it
 * tells nothing of the back-off of the link; if it succeeds, the link tries again
 * at once.
 *
 * | state | next |
 * | FREE | a session: ASKED |
 * | ASKED | the link worker: RUNNING; the session leaves: FREE |
 * | RUNNING | the link worker has the answer: DONE; the session leaves: ABANDONED; the worker ends: ASKED |
 * | ABANDONED | the link worker closes the connection, or ends: FREE |
 * | DONE | the session: FREE |
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "link/link_private.h"

#include "access/xlog.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/proc.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/* how long a session sleeps before it looks whether there is a worker at all */
#define ASK_AGAIN ((int64) 1000000)

/* A check in the worker's memory, with the number of its entry. */
typedef struct Probe
{
	AqPeer	   *peer;			/* NULL: none */
	MemoryContext context;		/* of its target */
	int64		began;
} Probe;

static Probe probes[AQ_LINK_CHECKS];

/* --- the link worker --------------------------------------------------------------------- */

/* Closes the connection of a check. */
static void
end_probe(Probe *probe)
{
	if (probe->peer != NULL)
		aq_link_peer_close(probe->peer);
	if (probe->context != NULL)
		MemoryContextDelete(probe->context);
	memset(probe, 0, sizeof(*probe));
}

static void
answer(AqLinkCheck *check, Probe *probe, const AqLinkError *error)
{
	PGPROC	   *proc = NULL;

	aq_link_area_get(AQ_EXCLUSIVE);
	if (check->state == AQ_CHECK_ABANDONED)
		check->state = AQ_CHECK_FREE;
	else
	{
		memset(&check->error, 0, sizeof(check->error));
		check->connected = error == NULL;
		check->latency_us = aq_clock_us() - probe->began;
		if (error != NULL)
			check->error = *error;
		if (probe->peer != NULL)
		{
			check->remote = probe->peer->remote;
			check->security = probe->peer->security;
			strlcpy(check->host, probe->peer->host, sizeof(check->host));
		}
		check->state = AQ_CHECK_DONE;
		proc = aq_session_proc(check->session);
	}
	aq_link_area_free();
	if (proc != NULL)
		SetLatch(&proc->procLatch);
}

static void
begin_probe(AqLinkCheck *check, Probe *probe)
{
	AqLinkError error;
	AqLinkTarget *target;
	MemoryContext old;

	probe->began = aq_clock_us();
	probe->context = AllocSetContextCreate(TopMemoryContext, "pgaq check of a link", ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(probe->context);
	target = aq_link_options_try(check->server, check->role, &error);
	MemoryContextSwitchTo(old);
	if (target != NULL)
		probe->peer = aq_link_peer_start(target);
	else
	{
		answer(check, probe, &error);
		end_probe(probe);
	}
}

/* The state of a check of this database, which is RUNNING if it was ASKED. */
static AqLinkCheckState
take(AqLinkCheck *check, bool *fresh)
{
	AqLinkCheckState state = AQ_CHECK_FREE;

	aq_link_area_get(AQ_EXCLUSIVE);
	if (check->database == MyDatabaseId)
	{
		*fresh = check->state == AQ_CHECK_ASKED;
		if (*fresh)
			check->state = AQ_CHECK_RUNNING;
		state = check->state;
	}
	aq_link_area_free();
	return state;
}

/* The problem of the link; NULL: none.  A disabled link has one, although it can connect. */
static const AqLinkError *
fault(AqPeer *peer)
{
	if (peer->state == AQ_PEER_READY && peer->target->enabled)
		return NULL;
	if (peer->state == AQ_PEER_READY)
		aq_link_error_set(&peer->error, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, psprintf(_("link \"%s\" is disabled"), peer->target->name),
						  _("A connection to the other server works."),
						  psprintf("ALTER SERVER %s OPTIONS (SET enabled 'true').", quote_identifier(peer->target->name)));
	return &peer->error;
}

/* Does for each check what can be done now. */
void
aq_link_check_work(int64 now)
{
	for (int i = 0; i < AQ_LINK_CHECKS; i++)
	{
		AqLinkCheck *check = &aq_link_area->checks[i];
		Probe	   *probe = &probes[i];
		bool		fresh = false;
		AqLinkCheckState state = take(check, &fresh);

		if (fresh)
			begin_probe(check, probe);
		if (probe->peer == NULL)
			continue;
		aq_link_peer_advance(probe->peer, now, false);
		if (state != AQ_CHECK_ABANDONED && probe->peer->state != AQ_PEER_READY && probe->peer->state != AQ_PEER_BROKEN)
			continue;
		if (probe->peer->state == AQ_PEER_READY)
			aq_link_route_retry(check->server, check->role);
		answer(check, probe, fault(probe->peer));
		end_probe(probe);
	}
}

int
aq_link_check_sockets(AqSocket *sockets, int room, int *connecting, int64 *next)
{
	AqSocket	wanted;
	int			n = 0;

	for (int i = 0; i < AQ_LINK_CHECKS; i++)
	{
		AqPeer	   *peer = probes[i].peer;

		if (peer == NULL)
			continue;
		(*connecting)++;
		aq_clock_sooner(next, peer->deadline);
		if (!aq_link_peer_wants(peer, &wanted))
			continue;
		if (n < room)
			sockets[n] = wanted;
		n++;
	}
	return n;
}

/* --- the session ------------------------------------------------------------------------------ */

/* Release of a claim. */
static void
leave(void *check, int64 unused)
{
	aq_link_area_release_check(check);
}

static AqLinkCheck *
ask(Oid server)
{
	AqLinkCheck *found = NULL;
	int			own = 0;

	aq_claim_reserve(1);
	aq_link_area_get(AQ_EXCLUSIVE);
	for (int i = 0; i < AQ_LINK_CHECKS; i++)
		if (aq_link_area->checks[i].state == AQ_CHECK_FREE)
			found = &aq_link_area->checks[i];
		else if (aq_link_area->checks[i].role == GetUserId())
			own++;
	/* half of them are for other roles */
	if (own >= AQ_LINK_CHECKS / 2)
		found = NULL;
	if (found != NULL)
	{
		memset(found, 0, sizeof(*found));
		found->state = AQ_CHECK_ASKED;
		found->database = MyDatabaseId;
		found->server = server;
		found->role = GetUserId();
		found->session = aq_session_number();
		aq_claim_enter(leave, found, 0);
	}
	aq_link_area_free();
	if (found == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("too many links are being checked"),
				 errhint("At most %d calls of aq.check_link run at the same time, %d of one role; call it again.", AQ_LINK_CHECKS, AQ_LINK_CHECKS / 2)));
	return found;
}

/* Waits for the answer; false: it has not come in time. */
static bool
await(AqLinkCheck *check, int64 timeout_us, AqLinkCheck *answered)
{
	AqWorkerWait wait = {0};
	int64		deadline = aq_clock_us() + timeout_us;

	for (;;)
	{
		int64		left = deadline - aq_clock_us();

		aq_link_area_get(AQ_SHARED);
		*answered = *check;
		aq_link_area_free();
		if (answered->state == AQ_CHECK_DONE)
			return true;
		if (left <= 0)
			return false;
		(void) aq_event_sleep(aq_await_event(&wait, AQ_EVENT_LINK_CHECK), answered->server, 0, 0, Min(left, ASK_AGAIN));
	}
}

static void
no_answer(AqLinkCheck *check)
{
	check->connected = false;
	aq_link_error_set(&check->error, ERRCODE_QUERY_CANCELED,
					  check->state == AQ_CHECK_ASKED ? _("the link worker has not begun with the check in time") : _("there was no answer in time"),
					  NULL,
					  check->state == AQ_CHECK_ASKED ? _("If aq.links has a problem, it says why; otherwise try a longer timeout.")
					  : _("Try a timeout that is longer than the server's option connect_timeout."));
}

static void
put_text(Datum *values, bool *nulls, int column, const char *text)
{
	nulls[column] = text[0] == '\0';

	if (!nulls[column])
		values[column] = CStringGetTextDatum(text);
}

/* Server, timeout; returns one row, see sql/pgaq/code/link.sql. */
PG_FUNCTION_INFO_V1(aq_link_check);
Datum
aq_link_check(PG_FUNCTION_ARGS)
{
	AqLinkCheck *check;
	AqLinkCheck result;
	Interval   *timeout;
	int64		timeout_us;
	Datum		values[9] = {0};
	bool		nulls[9];

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		ereport(ERROR,
				aq_error(AQ_ERR_ARGUMENT_NULL, "%s is null", PG_ARGISNULL(0) ? "server" : "timeout"));
	aq_session_require_preload();
	PreventCommandDuringRecovery("aq.check_link()");
	timeout = PG_GETARG_INTERVAL_P(1);
	timeout_us = (timeout->month * INT64CONST(30) + timeout->day) * USECS_PER_DAY + timeout->time;
	if (timeout->month < 0 || timeout->day < 0 || timeout_us <= 0 || timeout_us > USECS_PER_DAY)
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "timeout is not between 0 and 1 day"));

	aq_session_attach();
	check = ask(aq_link_options_server(NameStr(*PG_GETARG_NAME(0)), GetUserId()));
	aq_jobs_ensure_worker();
	aq_link_area_post(aq_link_area_own(), AQ_LINK_CHECK);
	if (!await(check, timeout_us, &result))
		no_answer(&result);
	aq_claim_end(leave, check);
	aq_link_area_release_check(check);

	values[0] = BoolGetDatum(result.connected);
	nulls[0] = false;
	put_text(values, nulls, 1, result.error.at != 0 ? unpack_sql_state(result.error.sqlstate) : "");
	put_text(values, nulls, 2, result.error.message);
	put_text(values, nulls, 3, result.error.detail);
	put_text(values, nulls, 4, result.error.hint);
	put_text(values, nulls, 5, result.remote.version);
	put_text(values, nulls, 6, result.host);
	put_text(values, nulls, 7, result.connected ? aq_link_views_security(result.security) : "");
	nulls[8] = result.latency_us == 0;
	values[8] = Float8GetDatum(result.latency_us / 1000.0);
	return aq_rows_one(fcinfo, values, nulls);
}
