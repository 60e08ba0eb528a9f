/*-------------------------------------------------------------------------
 *
 * link_answer.c
 *	  The only reader of what another server answers.
 *
 * The other server may be hostile, or no server with pgaq at all.  So each row is
 * checked against the shape that the request expects, as soon as it arrives: the
 * number of rows and columns, formats, nulls, lengths, the encoding, the ranges
 * of numbers.  Callbacks see only values that fit.  An answer that does not fit
 * ends the connection before the rest of it has arrived, and counts as lost:
 * it is unknown what the other server has done.
 *
 * tools/check.py (answers) makes sure that no other file reads values of libpq.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "link/link_private.h"

#include <ctype.h>

#include "mb/pg_wchar.h"
#include "utils/memutils.h"

/* Forgets the last answer; the next one must have this shape. */
void
aq_link_answer_begin(AqLinkAnswer *answer, const AqLinkShape *shape)
{
	MemoryContext context = answer->context;

	if (context == NULL)
		context = AllocSetContextCreate(TopMemoryContext, "pgaq answer of a link", ALLOCSET_SMALL_SIZES);
	else
		MemoryContextReset(context);
	*answer = (AqLinkAnswer) {.context = context, .shape = *shape};
}

void
aq_link_answer_end(AqLinkAnswer *answer)
{
	if (answer->context != NULL)
		MemoryContextDelete(answer->context);
	answer->context = NULL;
}

/* --- values ---------------------------------------------------------------------------- */

/* As an integer's output function writes it, and nothing else. */
static bool
read_number(const char *text, int64 *number)
{
	char	   *end;

	if (!isdigit((unsigned char) text[text[0] == '-']))
		return false;
	errno = 0;
	*number = strtoi64(text, &end, 10);
	return errno == 0 && *end == '\0';
}

static bool
is_uuid(const char *text, int length)
{
	if (length != 36)
		return false;
	for (int i = 0; i < length; i++)
		if (i == 8 || i == 13 || i == 18 || i == 23 ? text[i] != '-' : strchr("0123456789abcdef", text[i]) == NULL)
			return false;
	return true;
}

/* NULL: the value fits.  The text has no zero byte, and is ended by one. */
static const char *
read_value(const AqLinkColumn *column, const char *text, int length, AqLinkValue *value)
{
	switch (column->type)
	{
		case AQ_ANSWER_TEXT:
			if (length > column->most)
				return psprintf(_("is longer than " INT64_FORMAT " bytes"), column->most);
			if (!pg_verifymbstr(text, length, true))
				return psprintf(_("is not valid in encoding %s"), GetDatabaseEncodingName());
			break;
		case AQ_ANSWER_NUMBER:
			if (!read_number(text, &value->number) || value->number < column->least || value->number > column->most)
				return psprintf(_("is not a number from " INT64_FORMAT " to " INT64_FORMAT), column->least, column->most);
			break;
		case AQ_ANSWER_BOOL:
			if (length != 1 || (text[0] != 't' && text[0] != 'f'))
				return _("is not a boolean");
			value->number = text[0] == 't';
			break;
		case AQ_ANSWER_UUID:
			if (!is_uuid(text, length))
				return _("is not a uuid");
			break;
		case AQ_ANSWER_VOID:
			if (length != 0)
				return _("is not empty");
			break;
	}
	value->text = pstrdup(text);
	return NULL;
}

static const char *
read_column(AqLinkAnswer *answer, const PGresult *result, int row, int i, AqLinkValue *value)
{
	const AqLinkColumn *column = &answer->shape.columns[i];
	const char *text;
	const char *misfit;

	*value = (AqLinkValue) {.isnull = PQgetisnull(result, row, i)};
	if (value->isnull)
		misfit = column->nullable ? NULL : _("is null");
	else if (PQfformat(result, i) != 0)
		misfit = _("is binary");
	else
	{
		text = PQgetvalue(result, row, i);
		misfit = strlen(text) != PQgetlength(result, row, i) ? _("contains a zero byte")
			: read_value(column, text, PQgetlength(result, row, i), value);
	}
	return misfit == NULL ? NULL : psprintf(_("Column %d of a row %s."), i + 1, misfit);
}

static const char *
read_row(AqLinkAnswer *answer, const PGresult *result, int row)
{
	int			ncolumns = answer->shape.ncolumns;
	const char *misfit = NULL;

	if (answer->nrows >= answer->shape.most_rows)
		return psprintf(_("It has too many rows; the most is " INT64_FORMAT "."), answer->shape.most_rows);
	if (answer->nrows >= answer->room)
	{
		answer->room = Min(Max(2 * answer->room, 1), answer->shape.most_rows);
		answer->values = answer->values == NULL ? palloc(answer->room * ncolumns * sizeof(AqLinkValue))
			: repalloc(answer->values, answer->room * ncolumns * sizeof(AqLinkValue));
	}
	for (int i = 0; i < ncolumns && misfit == NULL; i++)
		misfit = read_column(answer, result, row, i, &answer->values[answer->nrows * ncolumns + i]);
	answer->nrows++;
	return misfit;
}

/*
 * Adds the rows of a part of the answer, which ends it unless it is one of several.
 * Returns what does not fit as a sentence; NULL: all does.
 */
const char *
aq_link_answer_add(AqLinkAnswer *answer, const PGresult *result)
{
	MemoryContext old = MemoryContextSwitchTo(answer->context);
	const char *misfit = NULL;

	answer->bytes += PQresultMemorySize(result);
	if (PQnfields(result) != answer->shape.ncolumns)
		misfit = psprintf(_("It has the wrong number of columns: %d instead of %d."), PQnfields(result), answer->shape.ncolumns);
	for (int row = 0; row < PQntuples(result) && misfit == NULL; row++)
		misfit = read_row(answer, result, row);
	if (misfit == NULL && PQresultStatus(result) != PGRES_SINGLE_TUPLE && answer->nrows < answer->shape.least_rows)
		misfit = psprintf(_("It has too few rows; the least is " INT64_FORMAT "."), answer->shape.least_rows);
	MemoryContextSwitchTo(old);
	return misfit;
}

/* --- for callbacks ------------------------------------------------------------------------ */

int64
aq_link_answer_rows(const AqLinkAnswer *answer)
{
	return answer->nrows;
}

const AqLinkValue *
aq_link_answer_value(const AqLinkAnswer *answer, int64 row, int column)
{
	if (row < 0 || row >= answer->nrows || column < 0 || column >= answer->shape.ncolumns)
		elog(ERROR, "an answer of a link has no row " INT64_FORMAT ", column %d", row, column);
	return &answer->values[row * answer->shape.ncolumns + column];
}
