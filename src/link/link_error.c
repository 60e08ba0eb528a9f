/*-------------------------------------------------------------------------
 *
 * link_error.c
 *	  Errors of links: taken from a connection, an answer or this server; with
 *	  hints that say what to do.
 *
 * libpq has no SQLSTATE for a connection that was refused, except within its
 * message when that is verbose.  Texts of the other side come from outside: they
 * are clipped and made valid in this database's encoding.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "link/link_private.h"

#include <ctype.h>

#include "mb/pg_wchar.h"
#include "utils/timestamp.h"

/* Copies a text: one line, valid in this database's encoding. */
static void
copy_text(char *to, Size size, const char *from)
{
	Size		length = 0;

	while (from != NULL && *from != '\0' && length < size - 1)
	{
		int			n = pg_encoding_mblen(GetDatabaseEncoding(), from);

		if (GetDatabaseEncoding() == PG_SQL_ASCII && aq_clip_length(from, strnlen(from, size), size - 1 - length) == 0)
			break;
		if (strnlen(from, n) < n || !pg_verifymbstr(from, n, true))
		{
			to[length++] = '?';
			from++;
			continue;
		}
		if (length + n > size - 1)
			break;
		if (iscntrl((unsigned char) *from))
		{
			/* a line break and the indentation of the next line */
			if (length > 0 && to[length - 1] != ' ')
				to[length++] = ' ';
		}
		else
		{
			memcpy(to + length, from, n);
			length += n;
		}
		from += n;
	}
	while (length > 0 && to[length - 1] == ' ')
		length--;
	to[length] = '\0';
}

/* The hint for an error, if the other side gives none. */
static const char *
usual_hint(int sqlstate)
{
	switch (sqlstate)
	{
		case ERRCODE_INVALID_PASSWORD:
			return _("Correct the user and the password of the user mapping with ALTER USER MAPPING.");
		case ERRCODE_INVALID_AUTHORIZATION_SPECIFICATION:
			return _("The role must exist on the other server, and its pg_hba.conf must allow the connection.");
		case ERRCODE_UNDEFINED_DATABASE:
			return _("Correct the option \"dbname\" with ALTER SERVER, or create the database on the other server.");
		case ERRCODE_INSUFFICIENT_PRIVILEGE:
			return _("Grant the missing privilege to the role of the user mapping on the other server.");
		case ERRCODE_TOO_MANY_CONNECTIONS:
			return _("Raise max_connections of the other server, or reduce the option \"connections\" of this one's links.");
		case ERRCODE_CANNOT_CONNECT_NOW:
			return _("The other server is starting up or shutting down; the link tries again.");
		case ERRCODE_SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION:
			return _("Check that the other server runs, and that the options \"host\" and \"port\" are right.");
		default:
			return NULL;
	}
}

void
aq_link_error_set(AqLinkError *error, int sqlstate, const char *message, const char *detail, const char *hint)
{
	memset(error, 0, sizeof(*error));
	error->at = GetCurrentTimestamp();
	error->sqlstate = sqlstate;
	error->encoding = GetDatabaseEncoding();
	copy_text(error->message, sizeof(error->message), message);
	if (error->message[0] == '\0')
		strlcpy(error->message, _("an error without a message"), sizeof(error->message));
	copy_text(error->detail, sizeof(error->detail), detail);
	copy_text(error->hint, sizeof(error->hint), hint != NULL ? hint : usual_hint(sqlstate));
}

/*
 * Finds "FATAL:  28P01: ..." in a message of libpq; returns the SQLSTATE's
 * place, or NULL.
 */
static const char *
find_sqlstate(const char *message)
{
	for (const char *at = strstr(message, ":  "); at != NULL; at = strstr(at + 1, ":  "))
	{
		int			n = 0;

		while (n < 5 && (isdigit((unsigned char) at[3 + n]) || (at[3 + n] >= 'A' && at[3 + n] <= 'Z')))
			n++;
		if (n == 5 && at[8] == ':' && at[9] == ' ')
			return at + 3;
	}
	return NULL;
}

/* The connection could not be made, or was lost. */
void
aq_link_error_of_connection(AqLinkError *error, const PGconn *conn)
{
	const char *message = conn != NULL ? PQerrorMessage(conn) : _("out of memory");
	const char *code = find_sqlstate(message);
	const char *address = conn != NULL ? PQhostaddr(conn) : NULL;
	const char *host = conn != NULL ? PQhost(conn) : NULL;
	StringInfoData text;

	if (code != NULL)
	{
		initStringInfo(&text);
		appendBinaryStringInfo(&text, message, code - message);
		appendBinaryStringInfo(&text, code + 7, strcspn(code + 7, "\n"));
		aq_link_error_set(error, MAKE_SQLSTATE(code[0], code[1], code[2], code[3], code[4]), text.data, NULL, NULL);
		pfree(text.data);
	}
	else if (strstr(message, "certificate") != NULL || strstr(message, "SSL") != NULL)
		aq_link_error_set(error, ERRCODE_SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION, message, NULL,
						  _("A link to another machine needs TLS with a certificate that names the host, unless the option \"sslmode\" says otherwise. Set \"sslrootcert\" to the file with the authority's certificate."));
	else if (strncmp(message, "invalid ", 8) == 0)
		aq_link_error_set(error, ERRCODE_SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION, message, NULL,
						  _("Correct the option with ALTER SERVER or ALTER USER MAPPING."));
	else if (conn != NULL && PQstatus(conn) == CONNECTION_BAD && PQsocket(conn) < 0 && (address == NULL || address[0] == '\0') &&
			 host != NULL && host[0] != '\0' && host[0] != '/' && host[0] != '@')
		aq_link_error_set(error, ERRCODE_SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION, message, NULL,
						  _("The host name cannot be resolved: correct the option \"host\" with ALTER SERVER, or the name service."));
	else
		aq_link_error_set(error, ERRCODE_SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION, message, NULL, NULL);
}

/* Five digits and capital letters. */
static bool
is_sqlstate(const char *code)
{
	return code != NULL && strlen(code) == 5 && strspn(code, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == 5 && strncmp(code, "00", 2) != 0;
}

/* The other side has answered with an error.  Returns whether it has a SQLSTATE: it comes from the other server, not from libpq. */
bool
aq_link_error_of_result(AqLinkError *error, const PGresult *result)
{
	const char *code = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);

	aq_link_error_set(error,
					  is_sqlstate(code) ? MAKE_SQLSTATE(code[0], code[1], code[2], code[3], code[4])
					  : ERRCODE_CONNECTION_FAILURE,
					  message != NULL ? message : PQresultErrorMessage(result),
					  PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL), PQresultErrorField(result, PG_DIAG_MESSAGE_HINT));
	return code != NULL;
}

/*
 * In PG_CATCH: takes the error of this server.  The caller aborts the
 * transaction.
 */
void
aq_link_error_of_server(AqLinkError *error)
{
	ErrorData  *data = CopyErrorData();

	FlushErrorState();
	aq_link_error_set(error, data->sqlerrcode, data->message, data->detail, data->hint != NULL ? data->hint : "");
	FreeErrorData(data);
}

/*
 * May the error go away by itself?  Otherwise an administrator must change
 * something.
 */
bool
aq_link_error_is_transient(int sqlstate)
{
	switch (ERRCODE_TO_CATEGORY(sqlstate))
	{
		case MAKE_SQLSTATE('0', '8', '0', '0', '0'):	/* connection */
		case MAKE_SQLSTATE('4', '0', '0', '0', '0'):	/* rollback */
		case MAKE_SQLSTATE('5', '3', '0', '0', '0'):	/* resources */
		case MAKE_SQLSTATE('5', '7', '0', '0', '0'):	/* shutdown, cancellation */
			return true;
		default:
			return sqlstate == ERRCODE_READ_ONLY_SQL_TRANSACTION;
	}
}

/* The SQLSTATE when the other database is not one that this one can talk to. */
int
aq_link_error_remote(void)
{
	const char *code = aq_error_sqlstate(AQ_ERR_LINK_REMOTE);

	return MAKE_SQLSTATE(code[0], code[1], code[2], code[3], code[4]);
}
