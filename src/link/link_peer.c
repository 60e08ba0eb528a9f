/*-------------------------------------------------------------------------
 *
 * link_peer.c
 *	  One connection to another server: connecting, the handshake, a request at
 *	  a time.  Nothing here waits for the network, except libpq's resolution of
 *	  host names.
 *
 * | state | next |
 * | CONNECTING | libpq has connected, and a password was used where it must be: GREETING |
 * | GREETING | the other session has our settings; there is pgaq, and the encoding is ours: AGREEING |
 * | AGREEING | both sides know a version of the protocol: READY |
 * | READY | a request is sent: BUSY |
 * | BUSY | its answer is complete: ANSWERED |
 * | ANSWERED | the caller has read it: READY |
 * | BROKEN | the caller closes it |
 *
 * Whatever goes wrong, and each time limit, makes it BROKEN, except an error with
 * which the other side answers a request.  The other session has a statement
 * timeout that ends a request somewhat before we give it up, so that it is known
 * to have been rolled back.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "link/link_private.h"

#include "mb/pg_wchar.h"
#include "storage/fd.h"
#include "utils/builtins.h"

/* how much later than the other side we give up a request */
#define GRACE ((int64) 2000000)
#define SECOND ((int64) 1000000)

/*
 * The first statement in the other session.  Its search_path is not ours yet, so
 * all names and operators are qualified.
 */
#define GREETING \
	"SELECT pg_catalog.getdatabaseencoding(), pg_catalog.current_setting('server_version_num')," \
	" pg_catalog.pg_is_in_recovery()," \
	" (SELECT e.extversion FROM pg_catalog.pg_extension e WHERE e.extname OPERATOR(pg_catalog.=) 'pgaq')," \
	" pg_catalog.current_database()," \
	" pg_catalog.concat(pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', false)," \
	" pg_catalog.set_config('statement_timeout', $1, false), pg_catalog.set_config('lock_timeout', '0', false)," \
	" pg_catalog.set_config('idle_session_timeout', '0', false)," \
	" pg_catalog.set_config('idle_in_transaction_session_timeout', '0', false)," \
	" pg_catalog.set_config('default_transaction_isolation', 'read committed', false)," \
	" pg_catalog.set_config('default_transaction_read_only', 'off', false)," \
	" pg_catalog.set_config('DateStyle', 'ISO', false), pg_catalog.set_config('IntervalStyle', 'postgres', false)," \
	" pg_catalog.set_config('TimeZone', 'UTC', false), pg_catalog.set_config('extra_float_digits', '3', false)," \
	" pg_catalog.set_config('bytea_output', 'hex', false))"

#define AGREEMENT "SELECT protocol, system_identifier, timeline, database_id FROM aq.link_hello($1, $2)"

static void
no_notice(void *unused, const PGresult *result)
{
}

static void
break_off(AqPeer *peer, int sqlstate, const char *message, const char *detail, const char *hint)
{
	aq_link_error_set(&peer->error, sqlstate, message, detail, hint);
	peer->state = AQ_PEER_BROKEN;
}

static void
break_off_lost(AqPeer *peer)
{
	aq_link_error_of_connection(&peer->error, peer->conn);
	peer->state = AQ_PEER_BROKEN;
}

/*
 * Begins to connect.  Never raises an error for what the other side does; the
 * target lives longer than the peer.
 */
AqPeer *
aq_link_peer_start(const AqLinkTarget *target)
{
	AqPeer	   *peer = MemoryContextAllocZero(TopMemoryContext, sizeof(AqPeer));

	peer->target = target;
	peer->began = aq_clock_us();
	peer->deadline = peer->began + target->connect_timeout * SECOND;
	peer->counted = AcquireExternalFD();
	if (!peer->counted)
	{
		break_off(peer, ERRCODE_INSUFFICIENT_RESOURCES, _("too many open files for another connection of a link"), NULL,
				  _("Raise max_files_per_process and restart the server."));
		return peer;
	}
	aq_point("link-connect");
	peer->conn = PQconnectStartParams(target->keywords, target->values, false);
	if (peer->conn == NULL || PQstatus(peer->conn) == CONNECTION_BAD)
	{
		break_off_lost(peer);
		return peer;
	}
	/* so that the message of a refused connection has its SQLSTATE */
	(void) PQsetErrorVerbosity(peer->conn, PQERRORS_VERBOSE);
	(void) PQsetNoticeReceiver(peer->conn, no_notice, NULL);
	peer->connects = true;
	peer->poll = PGRES_POLLING_WRITING;
	return peer;
}

/* Sends a statement; when that succeeds, the state is the given one. */
static void
ask(AqPeer *peer, AqPeerState state, const AqLinkRequest *request)
{
	peer->state = state;
	peer->reading = false;
	if (!PQsendQueryParams(peer->conn, request->sql, request->nparameters, request->types, request->values, request->lengths,
						   request->formats, 0))
	{
		break_off_lost(peer);
		return;
	}
	peer->flushing = true;
}

static void
greet(AqPeer *peer)
{
	AqLinkRequest request = {.sql = GREETING,.nparameters = 1};
	char		timeout[16];

	snprintf(timeout, sizeof(timeout), "%ds", peer->target->request_timeout);
	request.values[0] = timeout;
	ask(peer, AQ_PEER_GREETING, &request);
}

static void
agree(AqPeer *peer)
{
	AqLinkRequest request = {.sql = AGREEMENT,.nparameters = 2};
	char		oldest[16];
	char		newest[16];

	snprintf(oldest, sizeof(oldest), "%d", AQ_LINK_PROTOCOL_OLDEST);
	snprintf(newest, sizeof(newest), "%d", AQ_LINK_PROTOCOL);
	request.values[0] = oldest;
	request.values[1] = newest;
	request.types[0] = request.types[1] = 23;	/* integer */
	ask(peer, AQ_PEER_AGREEING, &request);
}

/* --- steps ------------------------------------------------------------------------------ */

/* libpq has connected. */
static void
connected(AqPeer *peer)
{
	const char *address = PQhostaddr(peer->conn);
	const char *host = address != NULL && address[0] != '\0' ? address : PQhost(peer->conn);

	peer->connects = false;
	snprintf(peer->host, sizeof(peer->host), "%s:%s", host != NULL ? host : "", PQport(peer->conn));
	if (peer->target->needs_password && !PQconnectionUsedPassword(peer->conn))
	{
		break_off(peer, ERRCODE_S_R_E_PROHIBITED_SQL_STATEMENT_ATTEMPTED, _("password is required"),
				  _("A role that is not a superuser cannot connect if the other server does not ask for a password."),
				  _("Change the authentication method of the other server, or have a superuser set password_required=false in the user mapping."));
		return;
	}
	if (PQsetnonblocking(peer->conn, 1) != 0)
	{
		break_off_lost(peer);
		return;
	}
	aq_point("link-connected");
	greet(peer);
}

/* The answer to the greeting. */
static void
greeted(AqPeer *peer, const PGresult *result)
{
	const char *encoding = PQgetvalue(result, 0, 0);

	peer->remote.server_version = atoi(PQgetvalue(result, 0, 1));
	if (strcmp(PQgetvalue(result, 0, 2), "t") == 0)
		break_off(peer, ERRCODE_READ_ONLY_SQL_TRANSACTION, _("the other server is a standby"), NULL,
				  _("Name its primary, or all of them with the option target_session_attrs set to 'read-write'."));
	else if (PQgetisnull(result, 0, 3))
		break_off(peer, aq_link_error_remote(),
				  psprintf(_("database \"%s\" of the other server does not have the extension pgaq"), PQgetvalue(result, 0, 4)), NULL,
				  _("CREATE EXTENSION pgaq there, or correct the option \"dbname\" with ALTER SERVER."));
	else if (pg_char_to_encoding(encoding) != GetDatabaseEncoding())
		break_off(peer, aq_link_error_remote(),
				  psprintf(_("database \"%s\" of the other server has encoding %s, and this one has %s"),
						   PQgetvalue(result, 0, 4), encoding, GetDatabaseEncodingName()), NULL,
				  _("Both databases of a link must have the same encoding."));
	else
	{
		strlcpy(peer->remote.version, PQgetvalue(result, 0, 3), sizeof(peer->remote.version));
		agree(peer);
	}
}

/* The answer of aq.link_hello(). */
static void
agreed(AqPeer *peer, const PGresult *result)
{
	peer->remote.protocol = atoi(PQgetvalue(result, 0, 0));
	peer->remote.system_identifier = strtou64(PQgetvalue(result, 0, 1), NULL, 10);
	peer->remote.timeline = (uint32) strtou64(PQgetvalue(result, 0, 2), NULL, 10);
	peer->remote.database = (Oid) strtou64(PQgetvalue(result, 0, 3), NULL, 10);
	if (peer->remote.protocol < AQ_LINK_PROTOCOL_OLDEST || peer->remote.protocol > AQ_LINK_PROTOCOL)
	{
		break_off(peer, ERRCODE_PROTOCOL_VIOLATION, _("unexpected answer in the handshake of a link"), NULL, "");
		return;
	}
	peer->state = AQ_PEER_READY;
	peer->deadline = 0;
	peer->ready_since = aq_clock_us();
}

/* A step of the handshake was refused. */
static void
refused(AqPeer *peer, const PGresult *result)
{
	aq_link_error_of_result(&peer->error, result);
	if (peer->state == AQ_PEER_AGREEING && (peer->error.sqlstate == ERRCODE_UNDEFINED_FUNCTION || peer->error.sqlstate == ERRCODE_UNDEFINED_COLUMN))
		aq_link_error_set(&peer->error, aq_link_error_remote(),
						  psprintf(_("the other database has version %s of the extension pgaq, which has no links"), peer->remote.version), NULL,
						  _("ALTER EXTENSION pgaq UPDATE there, after its new version was installed."));
	peer->state = AQ_PEER_BROKEN;
}

/* All of an answer has arrived. */
static void
complete(AqPeer *peer)
{
	PGresult   *result = peer->answer;
	ExecStatusType status = PQresultStatus(result);
	bool		fine = status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK;

	if (result == NULL || PQtransactionStatus(peer->conn) != PQTRANS_IDLE)
	{
		break_off(peer, ERRCODE_PROTOCOL_VIOLATION, _("unexpected answer of the other server"), NULL, "");
		return;
	}
	if (peer->state == AQ_PEER_BUSY)
	{
		peer->state = AQ_PEER_ANSWERED;
		return;
	}
	peer->answer = NULL;
	if (!fine)
		refused(peer, result);
	else if (PQntuples(result) != 1 || PQnfields(result) != (peer->state == AQ_PEER_GREETING ? 6 : 4))
		break_off(peer, ERRCODE_PROTOCOL_VIOLATION, _("unexpected answer in the handshake of a link"), NULL, "");
	else if (peer->state == AQ_PEER_GREETING)
		greeted(peer, result);
	else
		agreed(peer, result);
	PQclear(result);
}

/* Reads what has arrived of an answer. */
static void
read_answer(AqPeer *peer)
{
	while (!PQisBusy(peer->conn))
	{
		PGresult   *result = PQgetResult(peer->conn);
		ExecStatusType status;

		if (result == NULL)
		{
			complete(peer);
			return;
		}
		status = PQresultStatus(result);
		if (PQstatus(peer->conn) == CONNECTION_BAD || status == PGRES_COPY_IN || status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH)
		{
			/* the other session was terminated: its last words say why */
			if (PQresultErrorField(result, PG_DIAG_SQLSTATE) != NULL)
				aq_link_error_of_result(&peer->error, result);
			else if (PQstatus(peer->conn) == CONNECTION_BAD)
				aq_link_error_of_connection(&peer->error, peer->conn);
			else
				aq_link_error_set(&peer->error, ERRCODE_PROTOCOL_VIOLATION, _("unexpected answer of the other server"), NULL, "");
			peer->state = AQ_PEER_BROKEN;
			PQclear(result);
			return;
		}
		PQclear(peer->answer);
		peer->answer = result;
	}
}

/* Exchanges data in a state in which a statement is under way. */
static void
exchange(AqPeer *peer)
{
	if (peer->flushing)
	{
		int			rest = PQflush(peer->conn);

		if (rest < 0)
		{
			break_off_lost(peer);
			return;
		}
		peer->flushing = rest > 0;
	}
	if (!PQconsumeInput(peer->conn))
		break_off_lost(peer);
	else
		read_answer(peer);
}

static void
expire(AqPeer *peer)
{
	if (peer->state == AQ_PEER_BUSY)
		break_off(peer, ERRCODE_CONNECTION_FAILURE,
				  psprintf(_("the other server did not answer a request within %d s"), peer->target->request_timeout), NULL,
				  _("If the other server is only slow, raise the option request_timeout with ALTER SERVER."));
	else
		break_off(peer, ERRCODE_SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION,
				  psprintf(_("could not connect to the other server within %d s"), peer->target->connect_timeout), NULL,
				  _("Check the options \"host\" and \"port\", and firewalls; a slow server may need a higher connect_timeout."));
}

/* --- what the worker calls ----------------------------------------------------------------- */

/* Sends a request; the peer must be READY. */
void
aq_link_peer_send(AqPeer *peer, const AqLinkRequest *request)
{
	int			seconds = peer->target->request_timeout;

	Assert(peer->state == AQ_PEER_READY);
	peer->began = aq_clock_us();
	peer->deadline = peer->began + GRACE +
		(request->timeout_ms > 0 ? Min(request->timeout_ms * INT64CONST(1000), seconds * SECOND) : seconds * SECOND);
	peer->sent = strlen(request->sql);
	for (int i = 0; i < request->nparameters; i++)
		if (request->values[i] != NULL)
			peer->sent += request->formats[i] == 1 ? request->lengths[i] : strlen(request->values[i]);
	ask(peer, AQ_PEER_BUSY, request);
	/* most requests fit into the socket's buffer */
	if (peer->state == AQ_PEER_BUSY)
		exchange(peer);
}

/*
 * Does what can be done now.  ready: the socket is ready for what the peer has
 * waited for.
 */
void
aq_link_peer_advance(AqPeer *peer, int64 now, bool ready)
{
	if (peer->state == AQ_PEER_BROKEN || peer->state == AQ_PEER_ANSWERED)
		return;
	if (ready && peer->connects)
	{
		peer->poll = PQconnectPoll(peer->conn);
		if (peer->poll == PGRES_POLLING_FAILED)
			break_off_lost(peer);
		else if (peer->poll == PGRES_POLLING_OK)
			connected(peer);
	}
	else if (ready && peer->state == AQ_PEER_READY)
	{
		/* nothing is expected: the other side has closed it, or sends notices */
		if (!PQconsumeInput(peer->conn) || PQstatus(peer->conn) == CONNECTION_BAD)
			break_off_lost(peer);
	}
	else if (ready)
		exchange(peer);
	if (peer->deadline != 0 && now >= peer->deadline && peer->state != AQ_PEER_BROKEN && peer->state != AQ_PEER_ANSWERED &&
		peer->state != AQ_PEER_READY)
		expire(peer);
}

/* What the peer waits for. */
void
aq_link_peer_wants(AqPeer *peer, AqSocket *wanted)
{
	wanted->data = peer;
	wanted->socket = PQsocket(peer->conn);
	wanted->read = !peer->connects || peer->poll == PGRES_POLLING_READING;
	wanted->write = peer->connects ? peer->poll == PGRES_POLLING_WRITING : peer->flushing;
}

/* Does for each ready socket what can be done. */
void
aq_link_peer_ready(const AqSocket *sockets, int n, int64 now)
{
	for (int i = 0; i < n; i++)
		if (sockets[i].ready)
			aq_link_peer_advance(sockets[i].data, now, true);
}

/* The caller has read the answer. */
void
aq_link_peer_answered(AqPeer *peer)
{
	PQclear(peer->answer);
	peer->answer = NULL;
	peer->state = AQ_PEER_READY;
	peer->deadline = 0;
	peer->ready_since = aq_clock_us();
}

/* Closes the connection; a request in flight is abandoned. */
void
aq_link_peer_close(AqPeer *peer)
{
	PQclear(peer->answer);
	if (peer->conn != NULL)
		PQfinish(peer->conn);
	if (peer->counted)
		ReleaseExternalFD();
	pfree(peer);
}
