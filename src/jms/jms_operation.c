/*-------------------------------------------------------------------------
 *
 * jms_operation.c
 *	  Bodies of bytes, map and stream messages while a program in SQL writes or
 *	  reads them: what Oracle keeps in its Java session memory.
 *
 * Methods of Oracle's JMS types name an operation by its number: prepare() and
 * clear_body() begin one, the read and write methods use it, flush() writes its
 * body into the message, clean() ends it.  Operations belong to the session and
 * to no transaction, as in Oracle: a rollback does not change them.  A role does
 * not see those of other roles in the same session, such as of the owner of a
 * function that it calls.
 *
 * A body is a string of bytes in Java's form (DataOutputStream), or a list of
 * items in the form of aq_jms.item, with names in a map.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "jms/jms_private.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/fmgrprotos.h"
#include "utils/jsonb.h"
#include "utils/memutils.h"

/* as many as in Oracle, for each kind there; here together */
#define MAX_OPERATIONS 20
#define LONGEST_UTF PG_UINT16_MAX

typedef struct JmsItem
{
	char	   *name;			/* NULL in a stream */
	Datum		value;			/* a jsonb */
} JmsItem;

typedef struct JmsOperation
{
	MemoryContext memory;		/* NULL: the number is free */
	Oid			role;			/* that has begun it */
	char	   *kind;			/* bytes, map or stream */
	bool		writing;
	StringInfoData bytes;
	JmsItem    *items;
	int			nitems;
	int			room;
	int			position;		/* of the next byte or item to read */
} JmsOperation;

static JmsOperation operations[MAX_OPERATIONS];

/* --- operations --------------------------------------------------------------------------- */

static JmsOperation *
find(FunctionCallInfo fcinfo)
{
	int			id = PG_ARGISNULL(0) ? -1 : PG_GETARG_INT32(0);

	if (id < 0 || id >= MAX_OPERATIONS || operations[id].memory == NULL || operations[id].role != GetUserId())
		ereport(ERROR,
				aq_error(AQ_ERR_JMS_OPERATION, "JMS operation %s does not exist", PG_ARGISNULL(0) ? "null" : psprintf("%d", id)),
				errhint("Begin one with prepare or clear_body, which return its number."));
	return &operations[id];
}

/* It must be in this mode. */
static JmsOperation *
find_in_mode(FunctionCallInfo fcinfo, bool writing)
{
	JmsOperation *operation = find(fcinfo);

	if (operation->writing != writing && strcmp(operation->kind, "map") != 0)
		ereport(ERROR,
				aq_error(AQ_ERR_JMS_MODE, "JMS operation %d is in %s mode", PG_GETARG_INT32(0),
						 writing ? "read-only" : "write-only"),
				writing ? errhint("Call clear_body to write a new body.") :
				errhint("Call reset, or prepare after flush, to read the body."));
	return operation;
}

static JmsOperation *
find_of_kind(FunctionCallInfo fcinfo, bool writing, const char *kind)
{
	JmsOperation *operation = find_in_mode(fcinfo, writing);

	if (strcmp(operation->kind, kind) != 0)
		ereport(ERROR,
				aq_error(AQ_ERR_JMS_OPERATION, "JMS operation %d is of a %s message", PG_GETARG_INT32(0), operation->kind),
				errhint("Use the methods of that kind of message."));
	return operation;
}

static void
end(JmsOperation *operation)
{
	if (operation->memory != NULL)
		MemoryContextDelete(operation->memory);
	memset(operation, 0, sizeof(JmsOperation));
}

static int
free_number(void)
{
	for (int id = 0; id < MAX_OPERATIONS; id++)
		if (operations[id].memory == NULL)
			return id;
	ereport(ERROR,
			aq_error(AQ_ERR_JMS_OPERATIONS, "the session already has %d JMS operations", MAX_OPERATIONS),
			errhint("End each one with clean, or all with clean_all."));
}

static void
add_item(JmsOperation *operation, const char *name, Datum value)
{
	MemoryContext old = MemoryContextSwitchTo(operation->memory);
	JmsItem		item = {.name = name ? pstrdup(name) : NULL};

	item.value = PointerGetDatum(PG_DETOAST_DATUM_COPY(value));
	if (operation->nitems == operation->room)
	{
		int			room = operation->room == 0 ? 16 : operation->room * 2;

		operation->items = operation->items == NULL ? palloc(room * sizeof(JmsItem))
			: repalloc_huge(operation->items, (Size) room * sizeof(JmsItem));
		operation->room = room;
	}
	operation->items[operation->nitems++] = item;
	MemoryContextSwitchTo(old);
}

/* The elements of a list without nulls; a null list has none. */
static int
elements_of(FunctionCallInfo fcinfo, int arg, Oid type, Datum **values)
{
	bool	   *nulls;
	int			n;

	*values = NULL;
	if (PG_ARGISNULL(arg))
		return 0;
	deconstruct_array(PG_GETARG_ARRAYTYPE_P(arg), type, -1, false, TYPALIGN_INT, values, &nulls, &n);
	for (int i = 0; i < n; i++)
		if (nulls[i])
			ereport(ERROR, aq_error(AQ_ERR_ARGUMENT_NULL, "names and values of a JMS message must not be null"));
	return n;
}

static void
add_items(JmsOperation *operation, FunctionCallInfo fcinfo)
{
	Datum	   *names;
	Datum	   *values;
	int			nnames = elements_of(fcinfo, 2, TEXTOID, &names);
	int			n = elements_of(fcinfo, 3, JSONBOID, &values);

	if (nnames != (strcmp(operation->kind, "map") == 0 ? n : 0))
		ereport(ERROR, aq_error(AQ_ERR_OPTION_INVALID, "each value of a map message has a name, others have none"));
	for (int i = 0; i < n; i++)
		add_item(operation, nnames == 0 ? NULL : TextDatumGetCString(names[i]), values[i]);
}

/* _jms_begin(id, kind, names, items, bytes, writing): the number; id null or negative: a new one */
PG_FUNCTION_INFO_V1(aq_jms_operation_begin);
Datum
aq_jms_operation_begin(PG_FUNCTION_ARGS)
{
	bool		is_new = PG_ARGISNULL(0) || PG_GETARG_INT32(0) < 0;
	int			id = is_new ? free_number() : find(fcinfo) - operations;
	JmsOperation made = {.role = GetUserId(), .writing = !PG_ARGISNULL(5) && PG_GETARG_BOOL(5)};
	MemoryContext old;

	aq_args_require(fcinfo, 1, "kind");
	made.memory = AllocSetContextCreate(CurrentMemoryContext, "pgaq JMS operation", ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(made.memory);
	made.kind = text_to_cstring(PG_GETARG_TEXT_PP(1));
	initStringInfo(&made.bytes);
	if (!PG_ARGISNULL(4))
		appendBinaryStringInfo(&made.bytes, VARDATA_ANY(PG_GETARG_BYTEA_PP(4)), VARSIZE_ANY_EXHDR(PG_GETARG_BYTEA_PP(4)));
	add_items(&made, fcinfo);
	MemoryContextSwitchTo(old);
	MemoryContextSetParent(made.memory, TopMemoryContext);
	end(&operations[id]);
	operations[id] = made;
	PG_RETURN_INT32(id);
}

/* _jms_is_writing(id) */
PG_FUNCTION_INFO_V1(aq_jms_operation_is_writing);
Datum
aq_jms_operation_is_writing(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(find(fcinfo)->writing);
}

/* _jms_kind(id) */
PG_FUNCTION_INFO_V1(aq_jms_operation_kind);
Datum
aq_jms_operation_kind(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(cstring_to_text(find(fcinfo)->kind));
}

/* _jms_reset(id): read from the start */
PG_FUNCTION_INFO_V1(aq_jms_operation_reset);
Datum
aq_jms_operation_reset(PG_FUNCTION_ARGS)
{
	JmsOperation *operation = find(fcinfo);

	operation->writing = false;
	operation->position = 0;
	PG_RETURN_VOID();
}

/* _jms_clean(id): null: all of the role */
PG_FUNCTION_INFO_V1(aq_jms_operation_clean);
Datum
aq_jms_operation_clean(PG_FUNCTION_ARGS)
{
	if (!PG_ARGISNULL(0))
		end(find(fcinfo));
	else
		for (int id = 0; id < MAX_OPERATIONS; id++)
			if (operations[id].role == GetUserId())
				end(&operations[id]);
	PG_RETURN_VOID();
}

/* _jms_contents(id, OUT kind, OUT names, OUT items, OUT bytes) */
PG_FUNCTION_INFO_V1(aq_jms_operation_contents);
Datum
aq_jms_operation_contents(PG_FUNCTION_ARGS)
{
	JmsOperation *operation = find(fcinfo);
	Datum	   *names = palloc(operation->nitems * sizeof(Datum));
	Datum	   *items = palloc(operation->nitems * sizeof(Datum));
	Datum		values[4];
	bool		nulls[4] = {false, strcmp(operation->kind, "map") != 0, false, false};

	for (int i = 0; i < operation->nitems; i++)
	{
		names[i] = operation->items[i].name == NULL ? (Datum) 0 : CStringGetTextDatum(operation->items[i].name);
		items[i] = operation->items[i].value;
	}
	values[0] = CStringGetTextDatum(operation->kind);
	values[1] = nulls[1] ? (Datum) 0 : PointerGetDatum(construct_array(names, operation->nitems, TEXTOID, -1, false, TYPALIGN_INT));
	values[2] = PointerGetDatum(construct_array(items, operation->nitems, JSONBOID, -1, false, TYPALIGN_INT));
	values[3] = PointerGetDatum(cstring_to_text_with_len(operation->bytes.data, operation->bytes.len));
	return aq_rows_one(fcinfo, values, nulls);
}

/* --- items of maps and streams ------------------------------------------------------------ */

/* _jms_put(id, name, item): in a map in place of an item of that name; in a stream, name null, behind the last */
PG_FUNCTION_INFO_V1(aq_jms_operation_put);
Datum
aq_jms_operation_put(PG_FUNCTION_ARGS)
{
	JmsOperation *operation = find_of_kind(fcinfo, true, PG_ARGISNULL(1) ? "stream" : "map");
	char	   *name = PG_ARGISNULL(1) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(1));

	aq_args_require(fcinfo, 2, "item");
	for (int i = 0; name != NULL && i < operation->nitems; i++)
		if (strcmp(operation->items[i].name, name) == 0)
		{
			MemoryContext old = MemoryContextSwitchTo(operation->memory);
			Datum		value = PointerGetDatum(PG_DETOAST_DATUM_COPY(PG_GETARG_DATUM(2)));

			MemoryContextSwitchTo(old);
			pfree(DatumGetPointer(operation->items[i].value));
			operation->items[i].value = value;
			PG_RETURN_VOID();
		}
	add_item(operation, name, PG_GETARG_DATUM(2));
	PG_RETURN_VOID();
}

/* _jms_get(id, name): an item of a map; null: there is none */
PG_FUNCTION_INFO_V1(aq_jms_operation_get);
Datum
aq_jms_operation_get(PG_FUNCTION_ARGS)
{
	JmsOperation *operation = find_of_kind(fcinfo, false, "map");
	char	   *name = PG_ARGISNULL(1) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(1));

	for (int i = 0; name != NULL && i < operation->nitems; i++)
		if (strcmp(operation->items[i].name, name) == 0)
			PG_RETURN_DATUM(datumCopy(operation->items[i].value, false, -1));
	PG_RETURN_NULL();
}

/* _jms_next(id): the next item of a stream, which _jms_skip passes; null: the end */
PG_FUNCTION_INFO_V1(aq_jms_operation_next);
Datum
aq_jms_operation_next(PG_FUNCTION_ARGS)
{
	JmsOperation *operation = find_of_kind(fcinfo, false, "stream");

	if (operation->position >= operation->nitems)
		PG_RETURN_NULL();
	PG_RETURN_DATUM(datumCopy(operation->items[operation->position].value, false, -1));
}

PG_FUNCTION_INFO_V1(aq_jms_operation_skip);
Datum
aq_jms_operation_skip(PG_FUNCTION_ARGS)
{
	find_of_kind(fcinfo, false, "stream")->position++;
	PG_RETURN_VOID();
}

/* --- bytes ----------------------------------------------------------------------------------- */

/*
 * Java's modified UTF-8: U+0000 has two bytes, and characters above U+FFFF are
 * their two surrogates with three bytes each.
 */
static void
append_utf(StringInfo out, const unsigned char *utf8, int length)
{
	const unsigned char *stop = utf8 + length;

	while (utf8 < stop)
	{
		int			size = pg_utf_mblen(utf8);

		if (size == 4)
		{
			uint32		rest = utf8_to_unicode(utf8) - 0x10000;
			uint32		halves[2] = {0xD800 + (rest >> 10), 0xDC00 + (rest & 0x3FF)};

			for (int i = 0; i < 2; i++)
			{
				appendStringInfoChar(out, (char) (0xE0 | halves[i] >> 12));
				appendStringInfoChar(out, (char) (0x80 | (halves[i] >> 6 & 0x3F)));
				appendStringInfoChar(out, (char) (0x80 | (halves[i] & 0x3F)));
			}
		}
		else
			appendBinaryStringInfo(out, (const char *) utf8, size);
		utf8 += size;
	}
}

static bool
is_half(const unsigned char *bytes, int left, unsigned char least)
{
	return left >= 3 && bytes[0] == 0xED && bytes[1] >= least && bytes[1] < least + 0x10 && (bytes[2] & 0xC0) == 0x80;
}

/* The text of modified UTF-8; what is not valid is an error. */
static text *
read_utf(const unsigned char *bytes, int length)
{
	StringInfoData out;
	char	   *converted;

	initStringInfo(&out);
	for (int i = 0; i < length;)
		if (is_half(bytes + i, length - i, 0xA0) && is_half(bytes + i + 3, length - i - 3, 0xB0))
		{
			uint32		high = (bytes[i + 1] & 0x0F) << 6 | (bytes[i + 2] & 0x3F);
			uint32		low = (bytes[i + 4] & 0x0F) << 6 | (bytes[i + 5] & 0x3F);
			unsigned char utf8[4];

			unicode_to_utf8(0x10000 + (high << 10 | low), utf8);
			appendBinaryStringInfo(&out, (char *) utf8, 4);
			i += 6;
		}
		else
			appendStringInfoChar(&out, (char) bytes[i++]);
	converted = pg_any_to_server(out.data, out.len, PG_UTF8);
	return converted == out.data ? cstring_to_text_with_len(out.data, out.len) : cstring_to_text(converted);
}

/* The bytes of a value; what is left of the body, if there are fewer, is not touched. */
static const unsigned char *
next_bytes(JmsOperation *operation, int n)
{
	const unsigned char *bytes = (unsigned char *) operation->bytes.data + operation->position;

	if (operation->bytes.len - operation->position < n)
		return NULL;
	operation->position += n;
	return bytes;
}

static int64
big_endian(const unsigned char *bytes, int n, bool is_signed)
{
	uint64		value = is_signed && (bytes[0] & 0x80) ? ~UINT64CONST(0) : 0;

	for (int i = 0; i < n; i++)
		value = value << 8 | bytes[i];
	return (int64) value;
}

/* Java's types that are numbers of a fixed size */
static int
size_of(const char *type)
{
	static const struct
	{
		const char *type;
		int			size;
	}			sizes[] = {
		{"boolean", 1}, {"byte", 1}, {"unsigned_byte", 1}, {"short", 2}, {"unsigned_short", 2}, {"char", 2},
		{"int", 4}, {"float", 4}, {"long", 8}, {"double", 8}
	};

	for (int i = 0; i < lengthof(sizes); i++)
		if (strcmp(sizes[i].type, type) == 0)
			return sizes[i].size;
	elog(ERROR, "unknown type of a value: %s", type);
}

static text *
text_of_number(const char *type, const unsigned char *bytes, int size)
{
	int64		number = big_endian(bytes, size, strncmp(type, "unsigned", 8) != 0 && strcmp(type, "char") != 0);

	if (strcmp(type, "boolean") == 0)
		return cstring_to_text(number != 0 ? "true" : "false");
	if (strcmp(type, "char") == 0)
	{
		unsigned char utf16[3] = {0xE0 | number >> 12, 0x80 | (number >> 6 & 0x3F), 0x80 | (number & 0x3F)};
		unsigned char utf8[5] = {0};

		if (number >= 0xD800 && number < 0xE000)
			return read_utf(utf16, sizeof(utf16));	/* half of a pair: an error */
		unicode_to_utf8((pg_wchar) number, utf8);
		return read_utf(utf8, pg_utf_mblen(utf8));
	}
	if (strcmp(type, "float") == 0)
	{
		union
		{
			uint32		bits;
			float4		value;
		}			swap = {.bits = (uint32) number};

		return cstring_to_text(DatumGetCString(DirectFunctionCall1(float4out, Float4GetDatum(swap.value))));
	}
	if (strcmp(type, "double") == 0)
	{
		union
		{
			uint64		bits;
			float8		value;
		}			swap = {.bits = (uint64) number};

		return cstring_to_text(DatumGetCString(DirectFunctionCall1(float8out, Float8GetDatum(swap.value))));
	}
	return cstring_to_text(psprintf(INT64_FORMAT, number));
}

/* _jms_read(id, type): the next value of a bytes message as text; null: there are fewer bytes than it has */
PG_FUNCTION_INFO_V1(aq_jms_operation_read);
Datum
aq_jms_operation_read(PG_FUNCTION_ARGS)
{
	JmsOperation *operation = find_of_kind(fcinfo, false, "bytes");
	int			start = operation->position;
	char	   *type;
	const unsigned char *bytes;
	text	   *value;

	aq_args_require(fcinfo, 1, "java_type");
	type = text_to_cstring(PG_GETARG_TEXT_PP(1));
	if (strcmp(type, "utf") == 0)
	{
		int			length = (bytes = next_bytes(operation, 2)) == NULL ? 0 : (int) big_endian(bytes, 2, false);

		if (bytes == NULL || (bytes = next_bytes(operation, length)) == NULL)
		{
			operation->position = start;
			PG_RETURN_NULL();
		}
		value = read_utf(bytes, length);
	}
	else
	{
		if ((bytes = next_bytes(operation, size_of(type))) == NULL)
			PG_RETURN_NULL();
		value = text_of_number(type, bytes, size_of(type));
	}
	PG_RETURN_TEXT_P(value);
}

/* _jms_read_bytes(id, length): up to this number; null: there are none left */
PG_FUNCTION_INFO_V1(aq_jms_operation_read_bytes);
Datum
aq_jms_operation_read_bytes(PG_FUNCTION_ARGS)
{
	JmsOperation *operation = find_of_kind(fcinfo, false, "bytes");
	int			left = operation->bytes.len - operation->position;
	int			n = PG_ARGISNULL(1) ? left : Min(PG_GETARG_INT32(1), left);

	if (left == 0)
		PG_RETURN_NULL();
	n = Max(n, 0);
	PG_RETURN_BYTEA_P((bytea *) cstring_to_text_with_len((const char *) next_bytes(operation, n), n));
}

static void
append_big_endian(StringInfo out, uint64 value, int n)
{
	for (int i = n - 1; i >= 0; i--)
		appendStringInfoChar(out, (char) (value >> (8 * i)));
}

static void
append_char(StringInfo out, const char *value)
{
	char	   *utf8 = pg_server_to_any(value, strlen(value), PG_UTF8);
	pg_wchar	code = *utf8 == '\0' ? ' ' : utf8_to_unicode((unsigned char *) utf8);

	if (code > 0xFFFF || (*utf8 != '\0' && utf8[pg_utf_mblen((unsigned char *) utf8)] != '\0'))
		ereport(ERROR, aq_error(AQ_ERR_JMS_RANGE, "\"%s\" is not one character of Java", aq_error_clip(value)));
	append_big_endian(out, code, 2);
}

static void
append_text(StringInfo out, const char *value)
{
	StringInfoData bytes;
	char	   *utf8 = pg_server_to_any(value, strlen(value), PG_UTF8);

	initStringInfo(&bytes);
	append_utf(&bytes, (unsigned char *) utf8, strlen(utf8));
	if (bytes.len > LONGEST_UTF)
		ereport(ERROR,
				aq_error(AQ_ERR_JMS_LENGTH, "a text of %d bytes is too long for write_utf", bytes.len),
				errhint("Java's form has at most %d bytes. Write the bytes of the text with write_bytes.", LONGEST_UTF));
	enlargeStringInfo(out, bytes.len + 2);
	append_big_endian(out, bytes.len, 2);
	appendBinaryStringInfo(out, bytes.data, bytes.len);
}

/* _jms_write(id, type, value): behind the last one of a bytes message */
PG_FUNCTION_INFO_V1(aq_jms_operation_write);
Datum
aq_jms_operation_write(PG_FUNCTION_ARGS)
{
	StringInfo	out = &find_of_kind(fcinfo, true, "bytes")->bytes;
	char	   *type;
	char	   *value;

	aq_args_require(fcinfo, 1, "java_type");
	aq_args_require(fcinfo, 2, "value");
	type = text_to_cstring(PG_GETARG_TEXT_PP(1));
	value = text_to_cstring(PG_GETARG_TEXT_PP(2));
	if (strcmp(type, "utf") == 0)
		append_text(out, value);
	else if (strcmp(type, "char") == 0)
		append_char(out, value);
	else if (strcmp(type, "boolean") == 0)
		append_big_endian(out, DatumGetBool(DirectFunctionCall1(boolin, CStringGetDatum(value))), 1);
	else if (strcmp(type, "float") == 0)
	{
		union
		{
			float4		value;
			uint32		bits;
		}			swap = {.value = DatumGetFloat4(DirectFunctionCall1(float4in, CStringGetDatum(value)))};

		append_big_endian(out, swap.bits, 4);
	}
	else if (strcmp(type, "double") == 0)
	{
		union
		{
			float8		value;
			uint64		bits;
		}			swap = {.value = DatumGetFloat8(DirectFunctionCall1(float8in, CStringGetDatum(value)))};

		append_big_endian(out, swap.bits, 8);
	}
	else
		append_big_endian(out, DatumGetInt64(DirectFunctionCall1(int8in, CStringGetDatum(value))), size_of(type));
	PG_RETURN_VOID();
}

/* _jms_write_bytes(id, value) */
PG_FUNCTION_INFO_V1(aq_jms_operation_write_bytes);
Datum
aq_jms_operation_write_bytes(PG_FUNCTION_ARGS)
{
	JmsOperation *operation = find_of_kind(fcinfo, true, "bytes");
	bytea	   *value;

	aq_args_require(fcinfo, 1, "value");
	value = PG_GETARG_BYTEA_PP(1);
	appendBinaryStringInfo(&operation->bytes, VARDATA_ANY(value), VARSIZE_ANY_EXHDR(value));
	PG_RETURN_VOID();
}
