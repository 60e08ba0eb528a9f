/*-------------------------------------------------------------------------
 *
 * error.c
 *	  Errors of pgaq, in PostgreSQL's form or in Oracle's, from errors_list.h.
 *
 * An error has PostgreSQL's form: a standard SQLSTATE where one fits.  Within
 * the functions of Oracle's packages, and where a session has set
 * pgaq.oracle_errors, it has Oracle's: a SQLSTATE of its own and Oracle's number
 * at the end of the message.  The functions set the parameter in their SET
 * clause, procedures in C by aq_error_begin_oracle().  So it ends with the
 * function, also by an error.  Code of other roles gets PostgreSQL's form
 * (queue/catalog/run_as.c).
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "base/base_int.h"
#include "lib/stringinfo.h"
#include "utils/guc.h"

#define ORACLE_ERRORS "pgaq.oracle_errors"

/* of a text with more bytes, errors have only the beginning and the end */
#define LONGEST 600
#define BEGINNING 400
#define END 150

bool		aq_error_oracle = false;

typedef struct ErrorRow
{
	const char *code;
	const char *sqlstate;		/* empty: only Oracle's packages raise it */
	int			ora;
	const char *meaning;
} ErrorRow;

static const ErrorRow error_rows[] = {
#define X(id, code, sqlstate, ora, text) {code, sqlstate, ora, text},
#include "base/errors_list.h"
#undef X
};

StaticAssertDecl(lengthof(error_rows) == AQ_ERR_COUNT, "errors_list.h changed while it was read");

void
aq_error_define_parameters(void)
{
	DefineCustomBoolVariable(ORACLE_ERRORS,
							 "Gives errors of schema aq Oracle's numbers, and SQLSTATEs of their own.",
							 "Errors of Oracle's packages always have them.",
							 &aq_error_oracle,
							 false,
							 PGC_USERSET, 0,
							 NULL, NULL, NULL);
}

/* --- the list ------------------------------------------------------------------- */

int
aq_error_ora(AqErrorId id)
{
	return error_rows[id].ora;
}

const char *
aq_error_meaning(AqErrorId id)
{
	return error_rows[id].meaning;
}

const char *
aq_error_code(AqErrorId id)
{
	return error_rows[id].code;
}

/* PostgreSQL's form; NULL: only Oracle's packages raise the error. */
const char *
aq_error_sqlstate(AqErrorId id)
{
	return error_rows[id].sqlstate[0] != '\0' ? error_rows[id].sqlstate : NULL;
}

/* --- raising ----------------------------------------------------------------------- */

static int
packed(const char *s)
{
	return MAKE_SQLSTATE(s[0], s[1], s[2], s[3], s[4]);
}

static bool
has_oracle_form(AqErrorId id)
{
	return aq_error_oracle || aq_error_sqlstate(id) == NULL;
}

/* Is this the SQLSTATE of the error, in either form?  Others can have the same standard one. */
bool
aq_error_is(int sqlstate, AqErrorId id)
{
	const ErrorRow *row = &error_rows[id];

	return sqlstate == packed(row->code) || (row->sqlstate[0] != '\0' && sqlstate == packed(row->sqlstate));
}

/*
 * Errors have Oracle's form until aq_error_end_oracle(), or until the
 * (sub)transaction is rolled back.
 */
int
aq_error_begin_oracle(void)
{
	int			nest = NewGUCNestLevel();

	if (!aq_error_oracle)
		aq_process_pin_parameter(ORACLE_ERRORS, "on");
	return nest;
}

void
aq_error_end_oracle(int nest)
{
	AtEOXact_GUC(true, nest);
}

/*
 * A text for an error: an argument of a function, which can have any length, or
 * a text that contains one.
 */
const char *
aq_error_clip(const char *text)
{
	int			length = strlen(text);
	int			end;

	if (length <= LONGEST)
		return text;
	end = aq_clip_length(text, length, length - END);
	return psprintf("%.*s...%s", aq_clip_length(text, length, BEGINNING), text, text + end);
}

/* A hint that names functions or options: in the words of schema aq, or of the packages if the error has Oracle's form. */
int
aq_error_hint(const char *native, const char *oracle)
{
	return errhint("%s", aq_error_oracle ? _(oracle) : _(native));
}

/*
 * Call it only as an argument of ereport().  The format must not contain %m,
 * because errno may have changed.
 */
int
aq_error(AqErrorId id, const char *fmt, ...)
{
	bool		oracle = has_oracle_form(id);
	StringInfoData text;
	const char *message;

	initStringInfo(&text);
	for (;;)
	{
		va_list		args;
		int			needed;

		va_start(args, fmt);
		needed = appendStringInfoVA(&text, _(fmt), args);
		va_end(args);
		if (needed == 0)
			break;
		enlargeStringInfo(&text, needed);
	}
	message = aq_error_clip(text.data);

	errcode(packed(oracle ? error_rows[id].code : error_rows[id].sqlstate));
	if (oracle && error_rows[id].ora != 0)
		errmsg_internal("%s (ORA-%05d)", message, error_rows[id].ora);
	else
		errmsg_internal("%s", message);
	pfree(text.data);
	return 0;
}

/*
 * There are as many of something in shared memory as a parameter allows.  Like
 * aq_error(), with the hint.
 */
int
aq_error_limit(const char *message, const char *parameter)
{
	aq_error(AQ_ERR_LIMIT_REACHED, "%s", message);
	return errhint("Raise %s (now %s) and restart the server.", parameter, GetConfigOption(parameter, false, false));
}

/* --- whose error it is ---------------------------------------------------------- */

/*
 * An error may become a value ("the rule is false", "the last error") only if it
 * is of the user's own text or data: then the same text with the same data fails
 * again, whoever runs it and whenever.  Every other error says something about
 * this moment, this session or this server, and a value made of it would be
 * wrong a moment later: a message would be lost without a trace.  So such an
 * error ends the transaction, and the caller can try again.
 *
 * The SQLSTATE decides.  These are the classes of errors that are not the
 * user's.  All other classes are: those of PostgreSQL are about a text (0A, 26,
 * 2B, 2D, 2F, 34, 3B, 3D, 3F, 42), a value (0F, 20, 21, 22, 23, 24, 27, 44, 54)
 * or are raised by functions (09, 38, 39, P0), and classes that PostgreSQL does
 * not use are those of RAISE in users' functions.
 */
static const char *const not_users_classes[] = {
	"08",						/* another server cannot be reached */
	"0B", "25",					/* what the transaction is: read only, aborted, over its time */
	"28",						/* another server does not let the role in */
	"40",						/* deadlock, serialization failure */
	"53",						/* no memory, disk space, connections, shared memory */
	"55",						/* a lock is not available, an object is in use or stopped now */
	"57",						/* cancelled, timed out, shut down */
	"58",						/* I/O */
	"72",						/* the snapshot is too old */
	"F0",						/* a configuration file */
	"HV",						/* what a foreign data wrapper has met */
	"XX",						/* damaged data, damaged indexes, internal errors */
};

/* Errors of other classes that are not the user's. */
static bool
is_of_the_moment(int sqlstate)
{
	/* how deep the stack is depends on the caller; a queue is full until consumers dequeue */
	return sqlstate == ERRCODE_STATEMENT_TOO_COMPLEX || aq_error_is(sqlstate, AQ_ERR_FLOW_CONTROL) ||
		aq_error_is(sqlstate, AQ_ERR_QUEUE_FULL);
}

/* The standard SQLSTATE of an error in Oracle's form, if it has one. */
static int
standard_sqlstate(int sqlstate)
{
	const char *code = unpack_sql_state(sqlstate);

	if (strncmp(code, "AQ", 2) == 0)
		for (int i = 0; i < AQ_ERR_COUNT; i++)
			if (strcmp(code, error_rows[i].code) == 0 && error_rows[i].sqlstate[0] != '\0')
				return packed(error_rows[i].sqlstate);
	return sqlstate;
}

bool
aq_error_is_of_user(int sqlstate)
{
	const char *class = unpack_sql_state(standard_sqlstate(sqlstate));

	if (is_of_the_moment(sqlstate))
		return false;
	for (int i = 0; i < lengthof(not_users_classes); i++)
		if (strncmp(class, not_users_classes[i], 2) == 0)
			return false;
	return true;
}

/*
 * The same for a worker that runs users' code under a time limit of its own:
 * exceeding it is the code's fault.  Nothing else cancels it, except an
 * administrator who is bothered by that code.
 */
bool
aq_error_is_of_timed_user(int sqlstate)
{
	return sqlstate == ERRCODE_QUERY_CANCELED || aq_error_is_of_user(sqlstate);
}
