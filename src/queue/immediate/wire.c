/*-------------------------------------------------------------------------
 *
 * wire.c
 *	  Serialization of values for another process.
 *
 * Both processes belong to the same server, so values are copied as in memory.
 * Reading moves a cursor; strings are not copied.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/immediate/immediate_private.h"

#include "utils/datum.h"
#include "utils/lsyscache.h"

void
aq_wire_put(StringInfo buffer, const void *data, Size size)
{
	appendBinaryStringInfo(buffer, data, (int) size);
}

void
aq_wire_get(const char **cursor, void *data, Size size)
{
	memcpy(data, *cursor, size);
	*cursor += size;
}

/* NULL is written as the empty string. */
void
aq_wire_put_string(StringInfo buffer, const char *string)
{
	if (string == NULL)
		string = "";
	aq_wire_put(buffer, string, strlen(string) + 1);
}

const char *
aq_wire_get_string(const char **cursor)
{
	const char *string = *cursor;

	*cursor += strlen(string) + 1;
	return string;
}

void
aq_wire_put_int(StringInfo buffer, int value)
{
	aq_wire_put(buffer, &value, sizeof(value));
}

int
aq_wire_get_int(const char **cursor)
{
	int			value;

	aq_wire_get(cursor, &value, sizeof(value));
	return value;
}

void
aq_wire_put_oid(StringInfo buffer, Oid oid)
{
	aq_wire_put(buffer, &oid, sizeof(oid));
}

Oid
aq_wire_get_oid(const char **cursor)
{
	Oid			oid;

	aq_wire_get(cursor, &oid, sizeof(oid));
	return oid;
}

/* Writes the value, detoasted. */
void
aq_wire_put_datum(StringInfo buffer, Datum value, bool isnull, Oid type)
{
	int16		length;
	bool		byval;
	Size		size;
	char	   *place;

	get_typlenbyval(type, &length, &byval);
	if (!isnull && length == -1)
		value = PointerGetDatum(PG_DETOAST_DATUM(value));
	size = datumEstimateSpace(value, isnull, byval, length);
	enlargeStringInfo(buffer, size);
	place = buffer->data + buffer->len;
	datumSerialize(value, isnull, byval, length, &place);
	buffer->len += size;
}

/* Reads a value, in the current memory context. */
Datum
aq_wire_get_datum(const char **cursor, bool *isnull)
{
	char	   *place = unconstify(char *, *cursor);
	Datum		value = datumRestore(&place, isnull);

	*cursor = place;
	return value;
}
