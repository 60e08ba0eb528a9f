/*
 * rows.h
 *	  Rows of functions: of a set (begin, put column by column, end), or the only one.
 *
 * Included through base.h.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 */
#ifndef AQ_ROWS_H
#define AQ_ROWS_H

#include "fmgr.h"

#define AQ_MAX_COLUMNS 48

typedef struct AqRow
{
	struct ReturnSetInfo *result;
	int			n;
	Datum		values[AQ_MAX_COLUMNS];
	bool		nulls[AQ_MAX_COLUMNS];
} AqRow;

/* The function is to return its rows in a tuplestore; attaches the session. */
extern void aq_rows_begin(AqRow *row, FunctionCallInfo fcinfo);

/* The same for what needs no shared memory, and works where the library is not preloaded. */
extern void aq_rows_begin_plain(AqRow *row, FunctionCallInfo fcinfo);

/* The next column of the row. */
extern void aq_rows_put(AqRow *row, Datum value);
extern void aq_rows_null(AqRow *row);
extern void aq_rows_int(AqRow *row, int32 value);
extern void aq_rows_number(AqRow *row, int64 value);
extern void aq_rows_bool(AqRow *row, bool value);
extern void aq_rows_text(AqRow *row, const char *value); /* NULL: null */
extern void aq_rows_raw(AqRow *row, uint64 value);	/* as Oracle's RAW columns: hexadecimal */
extern void aq_rows_time(AqRow *row, int64 time); /* a TimestampTz; 0: null */
extern void aq_rows_pointer(AqRow *row, const void *value); /* a value passed by reference; NULL: null */
extern void aq_rows_session(AqRow *row, int number); /* as views number sessions, from 1; below 0: null */

/* Null when it is not known. */
extern void aq_rows_put_if(AqRow *row, bool known, Datum value);
extern void aq_rows_int_if(AqRow *row, bool known, int32 value);
extern void aq_rows_number_if(AqRow *row, bool known, int64 value);

/* All columns are there. */
extern void aq_rows_end(AqRow *row);
extern void aq_rows_end_nulls(AqRow *row);	/* the other columns are null */

/* An SQL function that returns rows: its body, which follows, puts them into *row. */
#define AQ_ROWS(name) \
	static void name##_rows(AqRow *row, FunctionCallInfo fcinfo); \
	PG_FUNCTION_INFO_V1(name); \
	Datum \
	name(PG_FUNCTION_ARGS) \
	{ \
		AqRow		row; \
		aq_rows_begin(&row, fcinfo); \
		name##_rows(&row, fcinfo); \
		return (Datum) 0; \
	} \
	static void \
	name##_rows(AqRow *row, FunctionCallInfo fcinfo)

/* What a function returns whose result is one row. */
extern Datum aq_rows_one(FunctionCallInfo fcinfo, Datum *values, bool *nulls);

/* The identifier that views give a name: a hash of it. */
extern int64 aq_rows_name_hash(const char *name);

#endif							/* AQ_ROWS_H */
