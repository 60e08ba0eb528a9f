/*-------------------------------------------------------------------------
 *
 * properties.c
 *	  Strings among the properties of a message, which are jsonb.  Those of Jakarta
 *	  Messaging are in a field of the payload.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/calls/calls_private.h"

#include "access/htup_details.h"
#include "executor/executor.h"
#include "funcapi.h"
#include "utils/fmgrprotos.h"
#include "utils/jsonb.h"
#include "utils/typcache.h"

/* column "properties" of aq.jms_message */
#define FIELD_PROPERTIES 3

/* The properties with this one; NULL, or no object: an object that has only this one. */
Jsonb *
aq_properties_set(Jsonb *properties, const char *name, const char *string, int length)
{
	JsonbValue	key = {.type = jbvString, .val.string.val = unconstify(char *, name), .val.string.len = (int) strlen(name)};
	JsonbValue	value = {.type = jbvString, .val.string.val = unconstify(char *, string), .val.string.len = length};
	AqJsonbState state = {0};
	Jsonb	   *added;

	aq_jsonb_push(&state, WJB_BEGIN_OBJECT, NULL);
	aq_jsonb_push(&state, WJB_KEY, &key);
	aq_jsonb_push(&state, WJB_VALUE, &value);
	aq_jsonb_push(&state, WJB_END_OBJECT, NULL);
	added = JsonbValueToJsonb(state.result);
	if (properties == NULL || !JB_ROOT_IS_OBJECT(properties))
		return added;
	return DatumGetJsonbP(DirectFunctionCall2(jsonb_concat, JsonbPGetDatum(properties), JsonbPGetDatum(added)));
}

/* Those of a value of aq.jms_message; NULL: none. */
Jsonb *
aq_properties_of_payload(Datum payload)
{
	bool		isnull;
	Datum		properties = GetAttributeByNum(DatumGetHeapTupleHeader(payload), FIELD_PROPERTIES, &isnull);

	return isnull ? NULL : DatumGetJsonbP(properties);
}

/* The value of aq.jms_message with these properties instead of its own. */
Datum
aq_properties_into_payload(Datum payload, const Jsonb *properties)
{
	HeapTupleHeader header = DatumGetHeapTupleHeader(payload);
	HeapTupleData tuple = {.t_len = HeapTupleHeaderGetDatumLength(header), .t_data = header};
	TupleDesc	desc = lookup_rowtype_tupdesc_copy(HeapTupleHeaderGetTypeId(header), HeapTupleHeaderGetTypMod(header));
	int			column = FIELD_PROPERTIES;
	Datum		value = JsonbPGetDatum(properties);
	bool		isnull = false;

	return HeapTupleGetDatum(heap_modify_tuple_by_cols(&tuple, desc, 1, &column, &value, &isnull));
}

/* The arguments of each of n messages, which can then have properties and keys of their own. */
AqEnqueue *
aq_properties_each(const AqEnqueue *call, int n)
{
	AqEnqueue  *each = palloc(n * sizeof(AqEnqueue));

	for (int i = 0; i < n; i++)
		each[i] = call->each != NULL ? call->each[i] : *call;
	return each;
}
