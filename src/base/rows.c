/*-------------------------------------------------------------------------
 *
 * rows.c
 *	  Result rows of SQL functions that return a set or one row.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "base/base.h"
#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"

void
aq_rows_begin(AqRow *row, FunctionCallInfo fcinfo)
{
	aq_session_attach();
	aq_rows_begin_plain(row, fcinfo);
}

void
aq_rows_begin_plain(AqRow *row, FunctionCallInfo fcinfo)
{
	InitMaterializedSRF(fcinfo, 0);
	row->result = (ReturnSetInfo *) fcinfo->resultinfo;
	row->n = 0;
}

/*
 * The columns of a function are listed in SQL, and its values are put here in the same order.  Builds for tests compare
 * their number and types, so that a column that is in only one of the lists is found.
 */
static void
expect_type(AqRow *row, Oid type)
{
#if defined(AQ_TEST_POINTS) || defined(USE_ASSERT_CHECKING)
	TupleDesc	desc = row->result->setDesc;

	if (row->n >= desc->natts)
		elog(ERROR, "more than the %d columns that SQL declares", desc->natts);
	if (TupleDescAttr(desc, row->n)->atttypid != type)
		elog(ERROR, "column \"%s\" is declared as %s and gets a value of type %s", NameStr(TupleDescAttr(desc, row->n)->attname),
			 format_type_be(TupleDescAttr(desc, row->n)->atttypid), format_type_be(type));
#endif
}

void
aq_rows_put(AqRow *row, Datum value)
{
	Assert(row->n < AQ_MAX_COLUMNS);
	row->values[row->n] = value;
	row->nulls[row->n++] = false;
}

void
aq_rows_null(AqRow *row)
{
	Assert(row->n < AQ_MAX_COLUMNS);
	row->values[row->n] = (Datum) 0;
	row->nulls[row->n++] = true;
}

void
aq_rows_int(AqRow *row, int32 value)
{
	expect_type(row, INT4OID);
	aq_rows_put(row, Int32GetDatum(value));
}

void
aq_rows_number(AqRow *row, int64 value)
{
	expect_type(row, INT8OID);
	aq_rows_put(row, Int64GetDatum(value));
}

void
aq_rows_bool(AqRow *row, bool value)
{
	expect_type(row, BOOLOID);
	aq_rows_put(row, BoolGetDatum(value));
}

void
aq_rows_text(AqRow *row, const char *value)
{
	expect_type(row, TEXTOID);
	if (value == NULL)
		aq_rows_null(row);
	else
		aq_rows_put(row, CStringGetTextDatum(value));
}

void
aq_rows_raw(AqRow *row, uint64 value)
{
	aq_rows_text(row, psprintf("%016llX", (unsigned long long) value));
}

void
aq_rows_time(AqRow *row, int64 time)
{
	expect_type(row, TIMESTAMPTZOID);
	aq_rows_put_if(row, time != 0, Int64GetDatum(time));
}

void
aq_rows_pointer(AqRow *row, const void *value)
{
	aq_rows_put_if(row, value != NULL, PointerGetDatum(value));
}

void
aq_rows_put_if(AqRow *row, bool known, Datum value)
{
	if (known)
		aq_rows_put(row, value);
	else
		aq_rows_null(row);
}

void
aq_rows_int_if(AqRow *row, bool known, int32 value)
{
	expect_type(row, INT4OID);
	aq_rows_put_if(row, known, Int32GetDatum(value));
}

void
aq_rows_number_if(AqRow *row, bool known, int64 value)
{
	expect_type(row, INT8OID);
	aq_rows_put_if(row, known, Int64GetDatum(value));
}

void
aq_rows_session(AqRow *row, int number)
{
	aq_rows_int_if(row, number >= 0, number + 1);
}

void
aq_rows_end(AqRow *row)
{
#if defined(AQ_TEST_POINTS) || defined(USE_ASSERT_CHECKING)
	if (row->n != row->result->setDesc->natts)
		elog(ERROR, "%d values for %d columns", row->n, row->result->setDesc->natts);
#endif
	tuplestore_putvalues(row->result->setResult, row->result->setDesc, row->values, row->nulls);
	row->n = 0;
}

void
aq_rows_end_nulls(AqRow *row)
{
	while (row->n < row->result->setDesc->natts)
		aq_rows_null(row);
	aq_rows_end(row);
}

Datum
aq_rows_one(FunctionCallInfo fcinfo, Datum *values, bool *nulls)
{
	TupleDesc	desc;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls));
}

int64
aq_rows_name_hash(const char *name)
{
	return (int64) hash_bytes((const unsigned char *) name, (int) strlen(name));
}

void
aq_rows_read(HeapTuple tuple, TupleDesc desc, int n, Datum *values, bool *nulls)
{
	if (likely(desc->natts == n))
	{
		heap_deform_tuple(tuple, desc, values, nulls);
		return;
	}
	for (int i = 0; i < n; i++)
	{
		nulls[i] = true;
		values[i] = i < desc->natts ? heap_getattr(tuple, i + 1, desc, &nulls[i]) : (Datum) 0;
	}
}
