/*-------------------------------------------------------------------------
 *
 * error.c
 *	  Errors of pgaq: SQLSTATE and Oracle's number from errors_list.h.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "base/base.h"
#include "lib/stringinfo.h"

typedef struct ErrorRow
{
	const char *sqlstate;
	int			ora;
	const char *meaning;
} ErrorRow;

static const ErrorRow error_rows[] = {
#define X(id, sqlstate, ora, text) {sqlstate, ora, text},
#include "base/errors_list.h"
#undef X
};

StaticAssertDecl(lengthof(error_rows) == AQ_ERR_COUNT, "errors_list.h changed while it was read");

/* The SQLSTATE as the server's number. */
int
aq_error_sqlstate(AqErrorId id)
{
	const char *s = error_rows[id].sqlstate;

	return MAKE_SQLSTATE(s[0], s[1], s[2], s[3], s[4]);
}

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

/* The SQLSTATE as a string of five characters. */
const char *
aq_error_code(AqErrorId id)
{
	return error_rows[id].sqlstate;
}

/*
 * Call it only as an argument of ereport().  The format must not contain %m,
 * because errno may have changed.
 */
int
aq_error(AqErrorId id, const char *fmt,...)
{
	int			ora = error_rows[id].ora;
	StringInfoData text;

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
	if (ora != 0)
		appendStringInfo(&text, " (ORA-%05d)", ora);

	errcode(aq_error_sqlstate(id));
	errmsg_internal("%s", text.data);
	if (ora != 0)
		errdetail_internal("Oracle reports this condition as ORA-%05d.", ora);
	pfree(text.data);
	return 0;
}
