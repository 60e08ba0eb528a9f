/*
 * rows.h
 *	  Result rows of SQL functions: sets (begin, put column by column, end) or
 *	  one row.  Reading the rows of the extension's tables.
 *
 * Included through base.h.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 */
#ifndef AQ_ROWS_H
#define AQ_ROWS_H

#include "access/htup.h"
#include "access/tupdesc.h"
#include "fmgr.h"

#define AQ_MAX_COLUMNS 48

typedef struct AqRow
{
	struct ReturnSetInfo *result;
	int			n;
	Datum		values[AQ_MAX_COLUMNS];
	bool		nulls[AQ_MAX_COLUMNS];
} AqRow;

/* Begins a set, which is returned in a tuplestore.  Attaches the session. */
extern void aq_rows_begin(AqRow *row, FunctionCallInfo fcinfo);

/*
 * The same for functions that need no shared memory and work without the
 * library being preloaded.
 */
extern void aq_rows_begin_plain(AqRow *row, FunctionCallInfo fcinfo);

/* Each call sets the next column of the row. */
extern void aq_rows_put(AqRow *row, Datum value);
extern void aq_rows_null(AqRow *row);
extern void aq_rows_int(AqRow *row, int32 value);
extern void aq_rows_number(AqRow *row, int64 value);
extern void aq_rows_bool(AqRow *row, bool value);
extern void aq_rows_text(AqRow *row, const char *value);	/* NULL: null */
extern void aq_rows_raw(AqRow *row, uint64 value);	/* hexadecimal, as in Oracle's RAW columns */
extern void aq_rows_time(AqRow *row, int64 time);	/* a TimestampTz; 0: null */
extern void aq_rows_pointer(AqRow *row, const void *value); /* a value passed by reference; NULL: null */
extern void aq_rows_session(AqRow *row, int number);	/* sessions count from 1 in views; below 0: null */

/* Null if the value is not known. */
extern void aq_rows_put_if(AqRow *row, bool known, Datum value);
extern void aq_rows_int_if(AqRow *row, bool known, int32 value);
extern void aq_rows_number_if(AqRow *row, bool known, int64 value);

/* Ends the row; all columns must have been set. */
extern void aq_rows_end(AqRow *row);
extern void aq_rows_end_nulls(AqRow *row);	/* sets the remaining columns to null */

/*
 * Defines an SQL function that returns rows; the body that follows puts them
 * into *row.
 */
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

/* The return value of a function whose result is one row. */
extern Datum aq_rows_one(FunctionCallInfo fcinfo, Datum *values, bool *nulls);

/*
 * Reads the first n columns of a row.  Use it for tables, in place of
 * heap_deform_tuple, which writes as many values as the table has columns: a
 * newer version of the extension, or a superuser, may have added some.
 * Columns that the table lacks are null.
 */
extern void aq_rows_read(HeapTuple tuple, TupleDesc desc, int n, Datum *values, bool *nulls);

/* The identifier that views show for a name: a hash of it. */
extern int64 aq_rows_name_hash(const char *name);

#endif							/* AQ_ROWS_H */
