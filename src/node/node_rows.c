/*-------------------------------------------------------------------------
 *
 * node_rows.c
 *	  Values in the rows of a query that was run by aq_sql_run(), and in requests.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "node/node_private.h"

#include "executor/spi.h"
#include "utils/array.h"
#include "utils/lsyscache.h"

/* An integer, smallint or bigint; null: 0. */
int64
aq_node_rows_int(uint64 row, int column)
{
	bool		isnull;
	Datum		value = SPI_getbinval(SPI_tuptable->vals[row], SPI_tuptable->tupdesc, column, &isnull);

	if (isnull)
		return 0;
	switch (TupleDescAttr(SPI_tuptable->tupdesc, column - 1)->attlen)
	{
		case sizeof(int16):
			return DatumGetInt16(value);
		case sizeof(int32):
			return DatumGetInt32(value);
		default:
			return DatumGetInt64(value);
	}
}

bool
aq_node_rows_bool(uint64 row, int column)
{
	bool		isnull;
	Datum		value = SPI_getbinval(SPI_tuptable->vals[row], SPI_tuptable->tupdesc, column, &isnull);

	return !isnull && DatumGetBool(value);
}

/* An array of such values; nulls NULL: none is. */
Datum
aq_node_rows_array(Oid type, Datum *values, bool *nulls, int n)
{
	int16		length;
	bool		by_value;
	char		align;
	int			lower = 1;

	get_typlenbyvalalign(type, &length, &by_value, &align);
	return PointerGetDatum(construct_md_array(values, nulls, 1, &n, &lower, type, length, by_value, align));
}
