/*-------------------------------------------------------------------------
 *
 * record.c
 *	  Records of Oracle's packages: composite values, read and made by the names
 *	  of their fields.
 *
 * The types belong to the extension pgaq_oracle, which may be dropped and
 * created again, or come from a dump: none is looked up by its name.  A value
 * carries its type, a result column has one.  Where a field is in the type is
 * found once, and again when the server has another description of the type
 * (its identifier is never used twice in a session).
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "oracle/oracle_private.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

/* The type's description, good until catalogs are read again; record->attributes belong to it. */
static TupleDesc
describe(AqRecord *record, Oid type)
{
	TypeCacheEntry *entry = lookup_type_cache(type, TYPECACHE_TUPDESC);
	TupleDesc	desc = entry->tupDesc;

	if (desc == NULL)
		elog(ERROR, "%s is not a record type", format_type_be(type));
	if (entry->tupDesc_identifier == record->identifier)
		return desc;
	record->identifier = 0;
	for (int f = 0; f < record->nfields; f++)
	{
		const AqField *field = &record->fields[f];
		int			a = 0;

		while (a < desc->natts && (TupleDescAttr(desc, a)->attisdropped ||
								   strcmp(NameStr(TupleDescAttr(desc, a)->attname), field->name) != 0))
			a++;
		if (a == desc->natts || (OidIsValid(field->type) && TupleDescAttr(desc, a)->atttypid != field->type))
			elog(ERROR, "type %s has no field \"%s\" of the expected type", format_type_be(type), field->name);
		record->attributes[f] = a;
	}
	record->identifier = entry->tupDesc_identifier;
	return desc;
}

/* The fields of a value, in the order of record->fields; of a null all are null. */
void
aq_record_read(AqRecord *record, Datum value, bool isnull, NullableDatum *fields)
{
	HeapTupleHeader header;
	HeapTupleData tuple;
	TupleDesc	desc;
	Datum	   *values;
	bool	   *nulls;

	for (int f = 0; f < record->nfields; f++)
	{
		fields[f].value = (Datum) 0;
		fields[f].isnull = true;
	}
	if (isnull)
		return;
	header = DatumGetHeapTupleHeader(value);
	desc = describe(record, HeapTupleHeaderGetTypeId(header));
	tuple.t_len = HeapTupleHeaderGetDatumLength(header);
	ItemPointerSetInvalid(&tuple.t_self);
	tuple.t_tableOid = InvalidOid;
	tuple.t_data = header;
	values = palloc(desc->natts * sizeof(Datum));
	nulls = palloc(desc->natts * sizeof(bool));
	heap_deform_tuple(&tuple, desc, values, nulls);
	for (int f = 0; f < record->nfields; f++)
	{
		fields[f].value = values[record->attributes[f]];
		fields[f].isnull = nulls[record->attributes[f]];
	}
}

/* A value of the type, with these fields; all others are null. */
Datum
aq_record_make(AqRecord *record, Oid type, const NullableDatum *fields)
{
	TupleDesc	desc = describe(record, type);
	Datum	   *values = palloc0(desc->natts * sizeof(Datum));
	bool	   *nulls = palloc(desc->natts * sizeof(bool));

	memset(nulls, true, desc->natts * sizeof(bool));
	for (int f = 0; f < record->nfields; f++)
	{
		values[record->attributes[f]] = fields[f].value;
		nulls[record->attributes[f]] = fields[f].isnull;
	}
	return HeapTupleGetDatum(heap_form_tuple(desc, values, nulls));
}

/* The type of a field. */
Oid
aq_record_field_type(AqRecord *record, Oid type, int field)
{
	TupleDesc	desc = describe(record, type);

	return TupleDescAttr(desc, record->attributes[field])->atttypid;
}

/* Of an array type, or a domain over one: the type of its elements. */
Oid
aq_record_element_type(Oid array)
{
	Oid			type = get_element_type(getBaseType(array));

	if (!OidIsValid(type))
		elog(ERROR, "%s is not an array type", format_type_be(array));
	return type;
}

/* --- of the arguments of a function ----------------------------------------------------- */

/* The argument as a value of the column's type. */
static Datum
to_column(FunctionCallInfo fcinfo, int arg, Oid wanted)
{
	Oid			given = get_fn_expr_argtype(fcinfo->flinfo, arg);

	if (given == NUMERICOID && wanted == INT4OID)
		return DirectFunctionCall1(numeric_int4, PG_GETARG_DATUM(arg));
	if (given != wanted)
		elog(ERROR, "argument %d does not have the type of its column", arg + 1);
	return PG_GETARG_DATUM(arg);
}

/*
 * A function that makes a record of its arguments, one for each column in their
 * order; columns that were added behind them are null.  A numeric argument may
 * be for an integer column.  In C, because a CALL plans
 * its arguments each time: a body in SQL took more time than the enqueue.
 */
PG_FUNCTION_INFO_V1(aq_record_of_arguments);
Datum
aq_record_of_arguments(PG_FUNCTION_ARGS)
{
	TupleDesc	desc;
	Datum		values[FUNC_MAX_ARGS];
	bool		nulls[FUNC_MAX_ARGS];

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE || desc->natts < PG_NARGS() ||
		desc->natts > FUNC_MAX_ARGS)
		elog(ERROR, "the result does not have a column for each argument");
	for (int i = 0; i < desc->natts; i++)
	{
		nulls[i] = i >= PG_NARGS() || PG_ARGISNULL(i) || TupleDescAttr(desc, i)->attisdropped;
		values[i] = nulls[i] ? (Datum) 0 : to_column(fcinfo, i, TupleDescAttr(desc, i)->atttypid);
	}
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(desc, values, nulls)));
}
