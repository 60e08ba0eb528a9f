/*-------------------------------------------------------------------------
 *
 * link_route.c
 *	  The links in the link worker's memory, called routes: their definitions,
 *	  their connections, the streams that want to send, back-off, and
 *	  what aq.links shows of them.
 *
 * A route has one connection as long as that is enough, and more, up to the
 * option "connections", while all are busy.  It connects when a stream has been
 * woken.  If that fails it tries again after a pause that doubles from 1 s to 5
 * min, or to what a kind of its streams allows, with a random part, so that many links to one server do not come at the
 * same time.  A change of its definition ends the pause, and closes the
 * connections if it concerns them.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "link/link_private.h"

#include "common/pg_prng.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/* pauses between two tries, in microseconds */
#define FIRST_PAUSE ((int64) 1000000)
#define LONGEST_PAUSE ((int64) 300000000)
#define JITTER 0.2

/* how long a connection to an older version is used, microseconds */
#define OLDER_AGAIN ((int64) 10000000)

/* A connection of a route, with the stream whose request is in flight. */
typedef struct Connection
{
	AqPeer	   *peer;
	int64		made;			/* when */
	AqLinkStreamState *stream;
	int64		rows;			/* of the request */
} Connection;

static List *routes;			/* of AqLinkRoute, in TopMemoryContext */
static bool worked;				/* a request was answered since the worker started */
static bool warned;				/* that not all links are shown */

/* --- what aq.links shows ------------------------------------------------------------- */

static AqLinkCondition
condition_of(const AqLinkRoute *route)
{
	bool		connecting = false;
	ListCell   *lc;

	foreach(lc, route->connections)
	{
		AqPeer	   *peer = ((Connection *) lfirst(lc))->peer;

		if (peer->state >= AQ_PEER_READY)
			return AQ_LINK_CONNECTED;
		connecting = true;
	}
	if (route->target != NULL && !route->target->enabled)
		return AQ_LINK_DISABLED;
	/* while it is tried again, what has failed is still to be seen */
	if (route->failures == 0)
		return connecting ? AQ_LINK_CONNECTING : AQ_LINK_IDLE;
	return aq_link_error_is_transient(route->state->error.sqlstate) ? AQ_LINK_BACKING_OFF : AQ_LINK_FAILED;
}

/* The time of a TimestampTz for a time of aq_clock_us(). */
static TimestampTz
timestamp_of(int64 clock)
{
	return GetCurrentTimestamp() + Max(clock - aq_clock_us(), 0);
}

static void
publish(AqLinkRoute *route)
{
	AqLinkState *state = route->state;
	AqLinkCondition condition = condition_of(route);
	TimestampTz next = route->failures > 0 && condition != AQ_LINK_DISABLED ? timestamp_of(route->next_attempt) : 0;

	aq_link_area_get(AQ_EXCLUSIVE);
	if (state->condition != condition || state->since == 0)
		state->since = GetCurrentTimestamp();
	state->condition = condition;
	state->connections = list_length(route->connections);
	state->failures = route->failures;
	state->next_attempt = next;
	aq_link_area_free();
}

static void
publish_error(AqLinkRoute *route, const AqLinkError *error)
{
	aq_link_area_get(AQ_EXCLUSIVE);
	route->state->error = *error;
	aq_link_area_free();
}

static int
bucket_of(int64 us)
{
	int			bucket = 0;

	while (bucket < AQ_LINK_BUCKETS - 1 && (INT64CONST(1) << bucket) <= us)
		bucket++;
	return bucket;
}

static void
count_answer(AqLinkRoute *route, const Connection *connection)
{
	AqLinkState *state = route->state;
	int64		latency = Max(aq_clock_us() - connection->peer->began, 0);

	aq_link_area_get(AQ_EXCLUSIVE);
	state->requests++;
	state->refused += connection->peer->refused;
	state->rows += connection->peer->refused ? 0 : connection->rows;
	state->bytes_sent += connection->peer->sent;
	state->bytes_received += connection->peer->answer.bytes;
	state->latency_us += latency;
	state->histogram[bucket_of(latency)]++;
	aq_link_area_free();
}

static void refresh(AqLinkRoute *route);

/* --- failures ------------------------------------------------------------------------- */

/* The longest one that all kinds of the route's streams allow. */
static int64
longest_pause(const AqLinkRoute *route)
{
	List	   *all = aq_link_stream_all();
	int64		longest = LONGEST_PAUSE;
	ListCell   *lc;

	foreach(lc, all)
	{
		AqLinkStreamState *stream = lfirst(lc);

		if (stream->route == route && stream->public.kind->longest_pause != NULL)
			longest = Min(longest, stream->public.kind->longest_pause());
	}
	list_free(all);
	return longest;
}

static int64
pause_after(const AqLinkRoute *route)
{
	int64		pause = Min(FIRST_PAUSE << Min(route->failures - 1, 20), longest_pause(route));

	return (int64) (pause * (1 - JITTER + 2 * JITTER * pg_prng_double(&pg_global_prng_state)));
}

static void
note_failure(AqLinkRoute *route, const AqLinkError *error)
{
	route->failures++;
	route->next_attempt = aq_clock_us() + pause_after(route);
	publish_error(route, error);
}

/* The route could not connect: the streams that wait for it get to know. */
static void
cannot_connect(AqLinkRoute *route, const AqLinkError *error)
{
	dlist_mutable_iter iter;
	AqLinkError copy = *error;

	note_failure(route, &copy);
	dlist_foreach_modify(iter, &route->woken)
	{
		AqLinkStreamState *stream = dlist_container(AqLinkStreamState, node, iter.cur);

		(void) aq_link_stream_failed(stream, AQ_LINK_NOT_SENT, &copy);
		stream->again = 0;		/* it stays in the list */
	}
}

/* --- connections ------------------------------------------------------------------------ */

/* The stream has no request in flight now. */
static void
land(AqLinkStreamState *stream)
{
	stream->in_flight = false;
	if (stream->woken)
		dlist_push_tail(&stream->route->woken, &stream->node);
}

/* Its request has failed, or its stream: closes the connection. */
static void
close_connection(AqLinkRoute *route, Connection *connection, const AqLinkError *error)
{
	AqLinkStreamState *stream = connection->stream;

	if (stream != NULL)
	{
		aq_link_area_get(AQ_EXCLUSIVE);
		route->state->lost++;
		aq_link_area_free();
		connection->stream = NULL;
		if (error != NULL)
		{
			(void) aq_link_stream_failed(stream, AQ_LINK_LOST, error);
			/* it is called again when the link is connected */
			stream->again = 0;
			stream->woken = true;
		}
		land(stream);
	}
	route->connections = list_delete_ptr(route->connections, connection);
	aq_link_peer_close(connection->peer);
	pfree(connection);
}

static void
close_all(AqLinkRoute *route, const AqLinkError *error)
{
	while (route->connections != NIL)
		close_connection(route, linitial(route->connections), error);
}

static void
open_connection(AqLinkRoute *route)
{
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);
	Connection *connection = palloc0(sizeof(Connection));

	connection->peer = aq_link_peer_start(route->target);
	connection->made = aq_clock_us();
	route->connections = lappend(route->connections, connection);
	MemoryContextSwitchTo(old);
}

/* The other side can be updated at any time, which a new connection notices. */
static bool
is_outdated(const Connection *connection, int64 now)
{
	return now - connection->made >= OLDER_AGAIN && aq_version_is_older(connection->peer->remote.version);
}

/* Is there something new to say of a connection that is ready? */
static bool
is_news(const AqLinkRoute *route, const AqPeer *peer)
{
	return (route->failures > 0 && !route->doubtful) || memcmp(&route->remote, &peer->remote, sizeof(AqLinkRemote)) != 0;
}

static void
note_connected(AqLinkRoute *route, const AqPeer *peer)
{
	if (!route->doubtful)
		route->failures = 0;
	memcpy(&route->remote, &peer->remote, sizeof(AqLinkRemote));
	aq_link_area_get(AQ_EXCLUSIVE);
	route->state->remote = peer->remote;
	route->state->security = peer->security;
	strlcpy(route->state->host, peer->host, sizeof(route->state->host));
	aq_link_area_free();
}

static bool
is_connecting(const AqLinkRoute *route)
{
	ListCell   *lc;

	foreach(lc, route->connections)
		if (((Connection *) lfirst(lc))->peer->state < AQ_PEER_READY)
			return true;
	return false;
}

static void
broken(AqLinkRoute *route, Connection *connection)
{
	AqLinkError error = connection->peer->error;
	bool		was_in_use = connection->peer->ready_since != 0;

	if (connection->stream != NULL)
	{
		route->doubtful = true;
		note_failure(route, &error);
		close_connection(route, connection, &error);
	}
	else
	{
		close_connection(route, connection, NULL);
		/* a connection that was idle is simply made again when it is needed */
		if (!was_in_use)
			cannot_connect(route, &error);
	}
}

static void
answered(AqLinkRoute *route, Connection *connection)
{
	AqLinkStreamState *stream = connection->stream;

	count_answer(route, connection);
	route->doubtful = false;
	route->failures = 0;
	worked = true;
	connection->stream = NULL;
	aq_point("link-answered");
	if (connection->peer->refused)
	{
		publish_error(route, &connection->peer->error);
		(void) aq_link_stream_failed(stream, AQ_LINK_REFUSED, &connection->peer->error);
	}
	else if (aq_link_stream_done(stream, &connection->peer->answer) == AQ_CALL_DONE)
		stream->woken = true;
	aq_link_peer_answered(connection->peer);
	land(stream);
	aq_point("link-settled");
}

/* Gives the connection to the first of the woken streams that has a request. */
static bool
give(AqLinkRoute *route, Connection *connection)
{
	while (!dlist_is_empty(&route->woken))
	{
		AqLinkStreamState *stream = dlist_container(AqLinkStreamState, node, dlist_pop_head_node(&route->woken));
		AqLinkRequest request;

		stream->woken = false;
		stream->again = 0;
		if (aq_link_stream_next(stream, &request) != AQ_CALL_DONE)
			continue;
		aq_point("link-send");
		stream->in_flight = true;
		connection->stream = stream;
		connection->rows = request.rows;
		aq_link_peer_send(connection->peer, &request);
		aq_point("link-sent");
		return true;
	}
	return false;
}

/* --- a route's turn ------------------------------------------------------------------------ */

/* Handles what has happened to a connection; false: it is closed. */
static bool
attend(AqLinkRoute *route, Connection *connection)
{
	AqPeer	   *peer = connection->peer;

	if (peer->state == AQ_PEER_ANSWERED)
		answered(route, connection);
	if (peer->state == AQ_PEER_BROKEN)
	{
		broken(route, connection);
		return false;
	}
	return true;
}

static void
serve(AqLinkRoute *route, int64 now)
{
	List	   *connections = list_copy(route->connections);
	ListCell   *lc;

	foreach(lc, connections)
	{
		Connection *connection = lfirst(lc);

		aq_link_peer_advance(connection->peer, now, false);
		if (!attend(route, connection))
			continue;
		if (connection->peer->state != AQ_PEER_READY)
			continue;
		if (is_outdated(connection, now))
		{
			close_connection(route, connection, NULL);
			continue;
		}
		if (is_news(route, connection->peer))
			note_connected(route, connection->peer);
		if (!give(route, connection) && now - connection->peer->ready_since >= route->target->idle_timeout * INT64CONST(1000000))
			close_connection(route, connection, NULL);
		else if (connection->peer->state == AQ_PEER_BROKEN)
			broken(route, connection);
	}
	list_free(connections);
}

/*
 * The definition could not be used when it was read.  That may have been an error
 * of that moment, such as a lack of memory or a cancellation, which no change of the
 * definition follows.  So it is read again with each try.
 */
static void
read_again(AqLinkRoute *route)
{
	int			failures = route->failures;

	refresh(route);
	if (route->target != NULL)
		return;
	route->failures = failures;
	cannot_connect(route, &route->error);
}

/* Connects if streams wait, and it is time. */
static void
connect_if_needed(AqLinkRoute *route, int64 now)
{
	if (dlist_is_empty(&route->woken) || (route->failures > 0 && now < route->next_attempt))
		return;
	if (route->target == NULL)
		read_again(route);
	if (route->target == NULL)
		return;
	if (route->target->enabled && !is_connecting(route) && list_length(route->connections) < route->target->connections)
	{
		open_connection(route);
		(void) attend(route, llast(route->connections));
	}
}

/* Wakes the streams whose time has come. */
static void
wake_due(void)
{
	List	   *all = aq_link_stream_all();
	TimestampTz now = GetCurrentTimestamp();
	ListCell   *lc;

	foreach(lc, all)
	{
		AqLinkStreamState *stream = lfirst(lc);

		if (stream->again != 0 && stream->again <= now)
			aq_link_stream_wake(stream);
	}
	list_free(all);
}

void
aq_link_route_work(int64 now)
{
	ListCell   *lc;

	wake_due();
	foreach(lc, routes)
	{
		AqLinkRoute *route = lfirst(lc);

		serve(route, now);
		connect_if_needed(route, now);
		publish(route);
	}
}

/* --- waiting --------------------------------------------------------------------------------- */

static void
look_at(AqLinkRoute *route, int *in_flight, int *connecting, int64 *next)
{
	ListCell   *lc;

	foreach(lc, route->connections)
	{
		AqPeer	   *peer = ((Connection *) lfirst(lc))->peer;

		if (peer->state == AQ_PEER_ANSWERED || peer->state == AQ_PEER_BROKEN)
			aq_clock_sooner(next, 1);	/* at once */
		aq_clock_sooner(next, peer->deadline);
		if (peer->state == AQ_PEER_READY)
			aq_clock_sooner(next, peer->ready_since + route->target->idle_timeout * INT64CONST(1000000));
		if (peer->state == AQ_PEER_BUSY)
			(*in_flight)++;
		if (peer->state < AQ_PEER_READY)
			(*connecting)++;
	}
	if (route->failures > 0 && !dlist_is_empty(&route->woken) && (route->target == NULL || route->target->enabled))
		aq_clock_sooner(next, Max(route->next_attempt, 1));
}

/*
 * Fills in the sockets to wait for, how many requests and connections they are,
 * and the time of the next work; returns their number, also if there is no room.
 */
int
aq_link_route_sockets(AqSocket *sockets, int room, int *in_flight, int *connecting, int64 *next)
{
	List	   *all = aq_link_stream_all();
	AqSocket	wanted;
	int			n = 0;
	ListCell   *lc;

	foreach(lc, routes)
	{
		AqLinkRoute *route = lfirst(lc);
		ListCell   *lc2;

		look_at(route, in_flight, connecting, next);
		foreach(lc2, route->connections)
		{
			AqPeer	   *peer = ((Connection *) lfirst(lc2))->peer;

			if (peer->state == AQ_PEER_BROKEN || !aq_link_peer_wants(peer, &wanted))
				continue;
			if (n < room)
				sockets[n] = wanted;
			n++;
		}
	}
	foreach(lc, all)
	{
		AqLinkStreamState *stream = lfirst(lc);

		if (stream->again != 0)
			aq_clock_sooner(next, aq_clock_us() + Max(stream->again - GetCurrentTimestamp(), 0));
	}
	list_free(all);
	return n;
}

/* --- definitions ------------------------------------------------------------------------------- */

static AqLinkRoute *
find_route(Oid server, Oid role)
{
	ListCell   *lc;

	foreach(lc, routes)
	{
		AqLinkRoute *route = lfirst(lc);

		if (route->server == server && route->role == role)
			return route;
	}
	return NULL;
}

static AqLinkRoute *
make_route(Oid server, Oid role)
{
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);
	AqLinkRoute *route = palloc0(sizeof(AqLinkRoute));

	route->server = server;
	route->role = role;
	dlist_init(&route->woken);
	route->state = aq_link_area_take_state(server, role);
	route->shown = route->state != NULL;
	if (!route->shown)
	{
		route->state = palloc0(sizeof(AqLinkState));
		if (!warned)
			ereport(WARNING,
					aq_error_limit("too many links to show all of them", "pgaq.max_links"));
		warned = true;
	}
	routes = lappend(routes, route);
	MemoryContextSwitchTo(old);
	return route;
}

static void
remove_route(AqLinkRoute *route)
{
	close_all(route, NULL);
	if (route->shown)
		aq_link_area_release_state(route->state);
	else
		pfree(route->state);
	if (route->target_context != NULL)
		MemoryContextDelete(route->target_context);
	routes = list_delete_ptr(routes, route);
	pfree(route);
}

/* Reads the route's definition again. */
static void
refresh(AqLinkRoute *route)
{
	MemoryContext fresh = AllocSetContextCreate(TopMemoryContext, "pgaq link", ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(fresh);
	AqLinkTarget *target = aq_link_options_try(route->server, route->role, &route->error);
	bool		same = target != NULL && route->target != NULL && target->enabled == route->target->enabled &&
		aq_link_options_same(target, route->target);
	AqLinkError changed;

	MemoryContextSwitchTo(old);
	if (!same)
	{
		aq_link_error_set(&changed, ERRCODE_CONNECTION_FAILURE, _("the definition of the link was changed"), NULL, "");
		route->failures = 0;
		close_all(route, target == NULL ? &route->error : &changed);
	}
	else
	{
		ListCell   *lc;

		foreach(lc, route->connections)
			((Connection *) lfirst(lc))->peer->target = target;
	}
	if (route->target_context != NULL)
		MemoryContextDelete(route->target_context);
	route->target = target;
	route->target_context = fresh;
}

/* Servers, user mappings, roles or privileges were changed. */
void
aq_link_route_refresh(void)
{
	ListCell   *lc;

	foreach(lc, routes)
		refresh(lfirst(lc));
}

/* The stream leaves its route; a request in flight is abandoned with its connection. */
static void
detach(AqLinkStreamState *stream)
{
	AqLinkRoute *route = stream->route;
	ListCell   *lc;

	if (route == NULL)
		return;
	if (stream->in_flight)
		foreach(lc, route->connections)
		{
			Connection *connection = lfirst(lc);

			if (connection->stream == stream)
			{
				stream->woken = false;
				close_connection(route, connection, NULL);
				break;
			}
		}
	else if (stream->woken)
		dlist_delete(&stream->node);
	route->nstreams--;
	stream->route = NULL;
}

/*
 * Adapts the routes to the streams that were listed: new ones are woken, those
 * that are no longer listed are closed.
 */
void
aq_link_route_attach(void)
{
	List	   *all = aq_link_stream_all();
	ListCell   *lc;

	foreach(lc, all)
	{
		AqLinkStreamState *stream = lfirst(lc);

		if (!stream->listed)
		{
			detach(stream);
			aq_link_stream_remove(stream);
			continue;
		}
		if (stream->route != NULL)
			continue;
		stream->route = find_route(stream->public.server, stream->public.role);
		if (stream->route == NULL)
		{
			stream->route = make_route(stream->public.server, stream->public.role);
			refresh(stream->route);
		}
		stream->route->nstreams++;
		stream->woken = false;
		aq_link_stream_wake(stream);
	}
	list_free(all);
	foreach(lc, routes)
	{
		AqLinkRoute *route = lfirst(lc);

		if (route->nstreams == 0)
		{
			routes = foreach_delete_current(routes, lc);
			remove_route(route);
		}
	}
}

int
aq_link_route_count(void)
{
	return list_length(routes);
}

bool
aq_link_route_has_worked(void)
{
	return worked;
}

/* A check has connected: the link need not wait for its next try. */
void
aq_link_route_retry(Oid server, Oid role)
{
	AqLinkRoute *route = find_route(server, role);

	if (route != NULL && route->failures > 0)
		route->next_attempt = aq_clock_us();
}

/* The worker ends. */
void
aq_link_route_close(void)
{
	while (routes != NIL)
	{
		AqLinkRoute *route = linitial(routes);
		ListCell   *lc;

		foreach(lc, route->connections)
		{
			Connection *connection = lfirst(lc);

			aq_link_peer_close(connection->peer);
		}
		route->connections = NIL;
		if (route->shown)
			aq_link_area_release_state(route->state);
		routes = list_delete_first(routes);
	}
}
