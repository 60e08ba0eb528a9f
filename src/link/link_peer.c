/*-------------------------------------------------------------------------
 *
 * link_peer.c
 *	  One connection to another server: connecting, the handshake, a request at
 *	  a time.  Nothing here waits for the network.
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
 * which the other side answers a request.  So does an answer that does not have the
 * shape of the request, see link_answer.c.  The other session has a statement
 * timeout that ends a request somewhat before we give it up, so that it is known
 * to have been rolled back.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "link/link_private.h"

#include "mb/pg_wchar.h"
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
	aq_point("link-connect");
	peer->login = aq_link_login_begin(target, peer->deadline, &peer->error);
	if (peer->login == NULL)
		peer->state = AQ_PEER_BROKEN;
	return peer;
}

/* Sends a statement; when that succeeds, the state is the given one. */
static void
ask(AqPeer *peer, AqPeerState state, const AqLinkRequest *request)
{
	peer->state = state;
	peer->answered = peer->refused = false;
	aq_link_answer_begin(&peer->answer, &request->shape);
	/* row by row, so that an answer that does not fit ends with its first row that does not */
	if (!PQsendQueryParams(peer->conn, request->sql, request->nparameters, request->types, request->values, request->lengths,
						   request->formats, 0) || !PQsetSingleRowMode(peer->conn))
	{
		break_off_lost(peer);
		return;
	}
	peer->flushing = true;
}

static void
greet(AqPeer *peer)
{
	AqLinkRequest request = {.sql = GREETING, .nparameters = 1, .shape = {.least_rows = 1, .most_rows = 1, .ncolumns = 6, .columns = {
				{AQ_ANSWER_TEXT, .most = NAMEDATALEN},
				{AQ_ANSWER_NUMBER, .least = 1, .most = PG_INT32_MAX},
				{AQ_ANSWER_BOOL},
				{AQ_ANSWER_TEXT, .nullable = true, .most = sizeof(peer->remote.version) - 1},
				{AQ_ANSWER_TEXT, .most = NAMEDATALEN},
				{AQ_ANSWER_TEXT, .most = AQ_LINK_MESSAGE}
	}}};
	char		timeout[16];

	snprintf(timeout, sizeof(timeout), "%ds", peer->target->request_timeout);
	request.values[0] = timeout;
	ask(peer, AQ_PEER_GREETING, &request);
}

static void
agree(AqPeer *peer)
{
	AqLinkRequest request = {.sql = AGREEMENT, .nparameters = 2, .shape = {.least_rows = 1, .most_rows = 1, .ncolumns = 4, .columns = {
				{AQ_ANSWER_NUMBER, .least = AQ_LINK_PROTOCOL_OLDEST, .most = AQ_LINK_PROTOCOL},
				{AQ_ANSWER_NUMBER, .least = PG_INT64_MIN, .most = PG_INT64_MAX},
				{AQ_ANSWER_NUMBER, .least = 0, .most = PG_UINT32_MAX},
				{AQ_ANSWER_NUMBER, .least = 1, .most = PG_UINT32_MAX}
	}}};
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

static AqLinkSecurity
security_of(const AqPeer *peer)
{
	const char *sslmode = "";

	if (!PQsslInUse(peer->conn))
		return peer->target->local ? AQ_LINK_LOCAL : AQ_LINK_NO_TLS;
	/* the last one counts */
	for (int i = 0; i < peer->target->n; i++)
		if (strcmp(peer->target->keywords[i], "sslmode") == 0)
			sslmode = peer->target->values[i];
	return strcmp(sslmode, "verify-full") == 0 ? AQ_LINK_TLS_VERIFIED : AQ_LINK_TLS_ANY;
}

/* libpq has connected, or could not. */
static void
logged_in(AqPeer *peer)
{
	const char *address;
	const char *host;

	peer->login = NULL;
	peer->counted = true;
	if (PQstatus(peer->conn) == CONNECTION_BAD)
	{
		break_off_lost(peer);
		return;
	}
	if (PQstatus(peer->conn) != CONNECTION_OK)
	{
		expire(peer);
		return;
	}
	address = PQhostaddr(peer->conn);
	host = address != NULL && address[0] != '\0' ? address : PQhost(peer->conn);
	peer->security = security_of(peer);
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
greeted(AqPeer *peer)
{
	const char *encoding = aq_link_answer_value(&peer->answer, 0, 0)->text;
	const char *database = aq_link_answer_value(&peer->answer, 0, 4)->text;
	const AqLinkValue *version = aq_link_answer_value(&peer->answer, 0, 3);

	peer->remote.server_version = (int) aq_link_answer_value(&peer->answer, 0, 1)->number;
	if (aq_link_answer_value(&peer->answer, 0, 2)->number != 0)
		break_off(peer, ERRCODE_READ_ONLY_SQL_TRANSACTION, _("the other server is a standby"), NULL,
				  _("Name its primary, or all of them with the option target_session_attrs set to 'read-write'."));
	else if (version->isnull)
		break_off(peer, aq_link_error_remote(),
				  psprintf(_("database \"%s\" of the other server does not have the extension pgaq"), database), NULL,
				  _("CREATE EXTENSION pgaq there, or correct the option \"dbname\" with ALTER SERVER."));
	else if (pg_char_to_encoding(encoding) != GetDatabaseEncoding())
		break_off(peer, aq_link_error_remote(),
				  psprintf(_("database \"%s\" of the other server has encoding %s, and this one has %s"),
						   database, encoding, GetDatabaseEncodingName()), NULL,
				  _("Both databases of a link must have the same encoding."));
	else
	{
		strlcpy(peer->remote.version, version->text, sizeof(peer->remote.version));
		agree(peer);
	}
}

/* The answer of aq.link_hello(). */
static void
agreed(AqPeer *peer)
{
	peer->remote.protocol = (int) aq_link_answer_value(&peer->answer, 0, 0)->number;
	peer->remote.system_identifier = (uint64) aq_link_answer_value(&peer->answer, 0, 1)->number;
	peer->remote.timeline = (uint32) aq_link_answer_value(&peer->answer, 0, 2)->number;
	peer->remote.database = (Oid) aq_link_answer_value(&peer->answer, 0, 3)->number;
	peer->state = AQ_PEER_READY;
	peer->deadline = 0;
	peer->ready_since = aq_clock_us();
}

/* A step of the handshake was refused. */
static void
refused(AqPeer *peer)
{
	if (peer->state == AQ_PEER_AGREEING && (peer->error.sqlstate == ERRCODE_UNDEFINED_FUNCTION || peer->error.sqlstate == ERRCODE_UNDEFINED_COLUMN))
		aq_link_error_set(&peer->error, aq_link_error_remote(),
						  psprintf(_("the other database has version %s of the extension pgaq, which has no links"), peer->remote.version), NULL,
						  _("ALTER EXTENSION pgaq UPDATE there, after its new version was installed."));
	peer->state = AQ_PEER_BROKEN;
}

/* misfit: a sentence, or NULL. */
static void
break_off_unexpected(AqPeer *peer, const char *misfit)
{
	break_off(peer, ERRCODE_PROTOCOL_VIOLATION, _("unexpected answer of the other server"), misfit,
			  _("Check that the link leads to a database with pgaq whose administrator you trust."));
}

/* All of an answer has arrived. */
static void
complete(AqPeer *peer)
{
	if (!peer->answered || PQtransactionStatus(peer->conn) != PQTRANS_IDLE)
		break_off_unexpected(peer, NULL);
	else if (peer->state == AQ_PEER_BUSY)
		peer->state = AQ_PEER_ANSWERED;
	else if (peer->refused)
		refused(peer);
	else if (peer->state == AQ_PEER_GREETING)
		greeted(peer);
	else
		agreed(peer);
}

/* A part of an answer: a row, the end, or an error. */
static void
take_part(AqPeer *peer, const PGresult *result)
{
	ExecStatusType status = PQresultStatus(result);
	const char *misfit = NULL;

	/* the other session was terminated: its last words say why */
	if (PQstatus(peer->conn) == CONNECTION_BAD && !aq_link_error_of_result(&peer->error, result))
		break_off_lost(peer);
	else if (PQstatus(peer->conn) == CONNECTION_BAD)
		peer->state = AQ_PEER_BROKEN;
	else if (peer->answered || (status != PGRES_SINGLE_TUPLE && status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK && status != PGRES_FATAL_ERROR))
		break_off_unexpected(peer, NULL);
	else if (status == PGRES_FATAL_ERROR)
	{
		(void) aq_link_error_of_result(&peer->error, result);
		peer->answered = peer->refused = true;
	}
	else if ((misfit = aq_link_answer_add(&peer->answer, result)) != NULL)
		break_off_unexpected(peer, misfit);
	else
		peer->answered = status != PGRES_SINGLE_TUPLE;
}

/* Reads what has arrived of an answer. */
static void
read_answer(AqPeer *peer)
{
	AqPeerState state = peer->state;

	while (peer->state == state && !PQisBusy(peer->conn))
	{
		PGresult   *result = PQgetResult(peer->conn);

		if (result == NULL)
		{
			complete(peer);
			return;
		}
		take_part(peer, result);
		PQclear(result);
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
	if (peer->login != NULL)
	{
		if (aq_link_login_ended(peer->login, &peer->conn))
			logged_in(peer);
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

/* What the peer waits for; false: not for a socket, its login sets the latch. */
bool
aq_link_peer_wants(AqPeer *peer, AqSocket *wanted)
{
	if (peer->login != NULL)
		return false;
	wanted->data = peer;
	wanted->socket = PQsocket(peer->conn);
	wanted->read = true;
	wanted->write = peer->flushing;
	return true;
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
	peer->state = AQ_PEER_READY;
	peer->deadline = 0;
	peer->ready_since = aq_clock_us();
}

/* Closes the connection; a request in flight is abandoned. */
void
aq_link_peer_close(AqPeer *peer)
{
	aq_link_answer_end(&peer->answer);
	if (peer->login != NULL)
		aq_link_login_give_up(peer->login);
	if (peer->conn != NULL)
		PQfinish(peer->conn);
	if (peer->counted)
		aq_link_login_free_descriptor(peer->target->role);
	pfree(peer);
}
