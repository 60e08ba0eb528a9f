/*-------------------------------------------------------------------------
 *
 * errors.c
 *	  SQL functions to raise an error of the list, and to show all.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/catalog/catalog_private.h"

#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"

static AqErrorId
error_of_code(const char *code)
{
	for (int i = 0; i < AQ_ERR_COUNT; i++)
		if (strcmp(aq_error_code(i), code) == 0)
			return i;
	ereport(ERROR,
			aq_error(AQ_ERR_OPTION_INVALID, "there is no error \"%s\"", code),
			errhint("The view aq.errors lists them."));
}

PG_FUNCTION_INFO_V1(aq_errors_raise);
Datum
aq_errors_raise(PG_FUNCTION_ARGS)
{
	AqErrorId	id = error_of_code(aq_args_name(fcinfo, 0, "code"));
	char	   *message = aq_args_name(fcinfo, 1, "message");
	char	   *hint = aq_args_name_or_null(fcinfo, 2, "hint");

	ereport(ERROR,
			aq_error(id, "%s", message),
			hint ? errhint("%s", aq_error_clip(hint)) : 0);
	PG_RETURN_VOID();
}

/* left(text, n), also where the server does not know the characters. */
PG_FUNCTION_INFO_V1(aq_errors_clip);
Datum
aq_errors_clip(PG_FUNCTION_ARGS)
{
	text	   *value = PG_GETARG_TEXT_PP(0);
	int			limit = PG_GETARG_INT32(1);

	if (GetDatabaseEncoding() != PG_SQL_ASCII || limit < 0)
		PG_RETURN_DATUM(DirectFunctionCall2(text_left, PG_GETARG_DATUM(0), PG_GETARG_DATUM(1)));
	PG_RETURN_TEXT_P(cstring_to_text_with_len(VARDATA_ANY(value),
											  aq_clip_length(VARDATA_ANY(value), VARSIZE_ANY_EXHDR(value), limit)));
}

PG_FUNCTION_INFO_V1(aq_errors_view);
Datum
aq_errors_view(PG_FUNCTION_ARGS)
{
	AqRow		row;

	aq_rows_begin_plain(&row, fcinfo);
	for (int i = 0; i < AQ_ERR_COUNT; i++)
	{
		aq_rows_text(&row, aq_error_code(i));
		aq_rows_text(&row, aq_error_sqlstate(i));
		aq_rows_int_if(&row, aq_error_ora(i) != 0, aq_error_ora(i));
		aq_rows_text(&row, aq_error_meaning(i));
		aq_rows_end(&row);
	}
	return (Datum) 0;
}
