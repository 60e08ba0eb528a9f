/*-------------------------------------------------------------------------
 *
 * registration_rows.c
 *	  Reads rows of aq_internal.registration.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "notify/notify_private.h"

#include "access/htup_details.h"
#include "executor/spi.h"
#include "utils/builtins.h"

/* columns of the query */
enum
{
	ID, QUEUE_ID, NAME, CONSUMER, SCHEMA, PROCEDURE, OWNER, CONTEXT, RELIABLE, ONCE, WITH_PAYLOAD, GROUPED, LAST,
	GROUP_END, NEXT_GROUP_END, NEXT_AT, EXPIRES_AT, FAILURES, GROUP_BEGIN, LAST_NOTIFICATION, POSTED, NCOLUMNS
};

static const char columns[] =
	"registration_id, queue_id, name, consumer, procedure_schema, procedure_name, procedure_owner::oid, context, reliable, once, "
	"with_payload, group_time IS NOT NULL AND coalesce(groups_left, 1) > 0, coalesce(group_type = 'last', false), group_end, "
	"group_start + groups::float8 * group_time, next_at, expires_at, failures, group_start + (groups - 1)::float8 * group_time, last_notification, "
	"queue_id IS NULL OR EXISTS (SELECT FROM aq_internal.queue q WHERE q.queue_id = registration.queue_id AND q.queue_type = 'non_persistent')";

static const char tables[] =
	"aq_internal.registration CROSS JOIN LATERAL (SELECT greatest(ceil(extract(epoch FROM clock_timestamp() - group_start) / "
	"extract(epoch FROM group_time)), 1) AS groups) g";

static TimestampTz
time_of(const Datum *values, const bool *nulls, int column)
{
	return nulls[column] ? 0 : DatumGetTimestampTz(values[column]);
}

static char *
text_of(const Datum *values, const bool *nulls, int column)
{
	return nulls[column] ? NULL : TextDatumGetCString(values[column]);
}

static AqRegistration *
read_row(HeapTuple tuple, TupleDesc desc)
{
	AqRegistration *r = palloc0(sizeof(AqRegistration));
	Datum		values[NCOLUMNS];
	bool		nulls[NCOLUMNS];

	heap_deform_tuple(tuple, desc, values, nulls);
	r->id = DatumGetInt64(values[ID]);
	r->queue_id = nulls[QUEUE_ID] ? 0 : DatumGetInt32(values[QUEUE_ID]);
	r->name = text_of(values, nulls, NAME);
	r->consumer = text_of(values, nulls, CONSUMER);
	r->schema = text_of(values, nulls, SCHEMA);
	r->procedure = text_of(values, nulls, PROCEDURE);
	r->owner = nulls[OWNER] ? InvalidOid : DatumGetObjectId(values[OWNER]);
	r->context = nulls[CONTEXT] ? NULL : DatumGetByteaPCopy(values[CONTEXT]);
	r->reliable = DatumGetBool(values[RELIABLE]);
	r->once = DatumGetBool(values[ONCE]);
	r->with_payload = DatumGetBool(values[WITH_PAYLOAD]);
	r->grouped = DatumGetBool(values[GROUPED]);
	r->last = DatumGetBool(values[LAST]);
	r->group_end = time_of(values, nulls, GROUP_END);
	r->next_group_end = time_of(values, nulls, NEXT_GROUP_END);
	r->next_at = time_of(values, nulls, NEXT_AT);
	r->expires_at = time_of(values, nulls, EXPIRES_AT);
	r->failures = DatumGetInt32(values[FAILURES]);
	r->group_begin = time_of(values, nulls, GROUP_BEGIN);
	r->last_notification = time_of(values, nulls, LAST_NOTIFICATION);
	r->posted = DatumGetBool(values[POSTED]);
	return r;
}

/*
 * The registrations that are neither disabled nor over, for a condition in SQL with
 * one argument (type InvalidOid: none); by their number, in the current memory
 * context.
 */
List *
aq_registration_rows_read(const char *condition, Oid type, Datum value)
{
	MemoryContext context = CurrentMemoryContext;
	List	   *list = NIL;

	aq_sql_run(psprintf("SELECT %s FROM %s WHERE status <> 'disabled' AND (expires_at IS NULL OR expires_at > clock_timestamp()) "
						"AND %s ORDER BY registration_id", columns, tables, condition),
			   OidIsValid(type) ? 1 : 0, &type, &value, NULL, true);
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		MemoryContext spi = MemoryContextSwitchTo(context);

		list = lappend(list, read_row(SPI_tuptable->vals[i], SPI_tuptable->tupdesc));
		MemoryContextSwitchTo(spi);
	}
	SPI_finish();
	return list;
}
