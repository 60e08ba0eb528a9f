/*-------------------------------------------------------------------------
 *
 * names.c
 *	  Names in Oracle's packages: [schema.]name, folded unless quoted.
 *
 * The native name of a queue created by dbms_aqadm is "schema.name".  A name
 * without a schema is looked up in the schemas of the caller's search_path,
 * then as the name of a queue created by aq.create_queue.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "oracle/oracle_private.h"

#include "catalog/namespace.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "parser/scansup.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/formatting.h"
#include "utils/lsyscache.h"

static const char *
skip_blanks(const char *s)
{
	while (scanner_isspace(*s))
		s++;
	return s;
}

static bool
may_begin(unsigned char c)
{
	return isalpha(c) || c == '_' || IS_HIGHBIT_SET(c);
}

/* Reads an identifier at *s, folded unless quoted; NULL: not an identifier. */
static char *
read_identifier(const char **s)
{
	StringInfoData name;
	const char *p = *s;

	initStringInfo(&name);
	if (*p == '"')
	{
		for (p++;; p++)
		{
			if (*p == '\0')
				return NULL;
			if (*p == '"' && *++p != '"')
				break;
			appendStringInfoChar(&name, *p);
		}
		*s = p;
		return name.len > 0 ? name.data : NULL;
	}
	if (!may_begin(*p))
		return NULL;
	while (may_begin(*p) || isdigit((unsigned char) *p) || *p == '$' || *p == '#')
		p++;
	/* not truncated, because names of queues can be longer than identifiers */
	appendStringInfoString(&name, downcase_identifier(*s, p - *s, false, false));
	*s = p;
	return name.data;
}

/*
 * Sets *schema to NULL if there is none; returns false if the name is
 * malformed.
 */
bool
aq_names_parse(const char *string, char **schema, char **name)
{
	const char *s = skip_blanks(string);

	*schema = NULL;
	*name = read_identifier(&s);
	if (*name == NULL)
		return false;
	s = skip_blanks(s);
	if (*s == '.')
	{
		*schema = *name;
		s = skip_blanks(s + 1);
		*name = read_identifier(&s);
		s = skip_blanks(s);
	}
	return *name != NULL && *s == '\0';
}

PG_FUNCTION_INFO_V1(aq_names_split);
Datum
aq_names_split(PG_FUNCTION_ARGS)
{
	char	   *parts[2];
	Datum		values[2];
	bool		nulls[2] = {false, false};
	int			size = 2;
	int			first = 1;

	if (!aq_names_parse(text_to_cstring(PG_GETARG_TEXT_PP(0)), &parts[0], &parts[1]))
		PG_RETURN_NULL();
	nulls[0] = parts[0] == NULL;
	values[0] = parts[0] ? CStringGetTextDatum(parts[0]) : 0;
	values[1] = CStringGetTextDatum(parts[1]);
	PG_RETURN_ARRAYTYPE_P(construct_md_array(values, nulls, 1, &size, &first,
											 TEXTOID, -1, false, TYPALIGN_INT));
}

/* The name in [schema.]name; a text that is not a name stays as it is. */
char *
aq_names_bare(char *string)
{
	char	   *schema;
	char	   *name;

	return aq_names_parse(string, &schema, &name) ? name : string;
}

/* --- names for Oracle's programs --------------------------------------------------------- */

static char *
in_upper_case(const char *name, Oid collation)
{
	return str_toupper(name, strlen(name), OidIsValid(collation) ? collation : DEFAULT_COLLATION_OID);
}

/* As Oracle's views spell a name: in upper case, unless it had to be quoted. */
char *
aq_names_oracle_case(char *name, Oid collation)
{
	char	   *lower = str_tolower(name, strlen(name), OidIsValid(collation) ? collation : DEFAULT_COLLATION_OID);

	return strcmp(name, lower) == 0 ? in_upper_case(name, collation) : name;
}

PG_FUNCTION_INFO_V1(aq_names_oracle_case_view);
Datum
aq_names_oracle_case_view(PG_FUNCTION_ARGS)
{
	char	   *name = text_to_cstring(PG_GETARG_TEXT_PP(0));

	PG_RETURN_TEXT_P(cstring_to_text(aq_names_oracle_case(name, PG_GET_COLLATION())));
}

static void
append_oracle_part(StringInfo name, const char *part, Oid collation)
{
	char	   *spelt = in_upper_case(part, collation);
	char	   *schema;
	char	   *folded;

	if (aq_names_parse(spelt, &schema, &folded) && strcmp(folded, part) == 0)
	{
		appendStringInfoString(name, spelt);
		return;
	}
	appendStringInfoChar(name, '"');
	for (const char *c = part; *c != '\0'; c++)
	{
		if (*c == '"')
			appendStringInfoChar(name, '"');
		appendStringInfoChar(name, *c);
	}
	appendStringInfoChar(name, '"');
}

/* A native name as a program can give it back: in upper case, or in quotes where it needs them. */
char *
aq_names_oracle(const char *native, Oid collation)
{
	StringInfoData name;
	const char *dot = strchr(native, '.');

	initStringInfo(&name);
	if (dot != NULL)
	{
		append_oracle_part(&name, pnstrdup(native, dot - native), collation);
		appendStringInfoChar(&name, '.');
		native = dot + 1;
	}
	append_oracle_part(&name, native, collation);
	return name.data;
}

PG_FUNCTION_INFO_V1(aq_names_oracle_view);
Datum
aq_names_oracle_view(PG_FUNCTION_ARGS)
{
	char	   *native = text_to_cstring(PG_GETARG_TEXT_PP(0));

	PG_RETURN_TEXT_P(cstring_to_text(aq_names_oracle(native, PG_GET_COLLATION())));
}

/* --- queues ------------------------------------------------------------------------------ */

/* Is it a queue on which the current role has this privilege? */
static bool
is_queue(const char *name, AqRight right)
{
	AqQueue    *queue = aq_catalog_get_by_name(name);

	return queue != NULL && aq_privilege_allows(queue, right);
}

static char *
find_queue(const char *schema, char *name, AqRight right)
{
	char	   *native;
	ListCell   *cell;

	if (schema != NULL)
	{
		native = psprintf("%s.%s", schema, name);
		return is_queue(native, right) ? native : NULL;
	}
	foreach(cell, aq_caller_path_schemas(false))
	{
		char	   *candidate = get_namespace_name(lfirst_oid(cell));

		if (candidate == NULL)
			continue;
		native = psprintf("%s.%s", candidate, name);
		if (is_queue(native, right))
			return native;
	}
	return is_queue(name, right) ? name : NULL;
}

/* The name that Oracle spells like this: in lower case, if it has no lower case. */
static char *
native_case(char *name)
{
	return strcmp(name, in_upper_case(name, DEFAULT_COLLATION_OID)) == 0
		? str_tolower(name, strlen(name), DEFAULT_COLLATION_OID) : name;
}

/*
 * The native name of a queue that the current role has this right to; NULL: no
 * such queue.  "SHOP"."ORDERS" is SHOP.ORDERS, as in Oracle, unless there is a
 * queue of this name.
 */
char *
aq_names_native(const char *string, AqRight right)
{
	char	   *schema;
	char	   *name;
	char	   *native;

	if (!aq_names_parse(string, &schema, &name))
		return NULL;
	native = find_queue(schema, name, right);
	if (native == NULL && strchr(string, '"') != NULL)
		native = find_queue(schema != NULL ? native_case(schema) : NULL, native_case(name), right);
	return native;
}

PG_FUNCTION_INFO_V1(aq_names_resolve);
Datum
aq_names_resolve(PG_FUNCTION_ARGS)
{
	char	   *privilege = text_to_cstring(PG_GETARG_TEXT_PP(1));
	AqRight		right = AQ_RIGHT_ANY;
	char	   *native;

	aq_session_require_preload();
	if (strcmp(privilege, "enqueue") == 0)
		right = AQ_RIGHT_ENQUEUE;
	else if (strcmp(privilege, "dequeue") == 0)
		right = AQ_RIGHT_CONSUMER;
	native = aq_names_native(text_to_cstring(PG_GETARG_TEXT_PP(0)), right);
	if (native == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(native));
}

/* Describes a queue for the packages, by its native name. */
PG_FUNCTION_INFO_V1(aq_names_describe_queue);
Datum
aq_names_describe_queue(PG_FUNCTION_ARGS)
{
	AqQueue    *queue = aq_catalog_get(text_to_cstring(PG_GETARG_TEXT_PP(0)), AQ_RIGHT_ANY);
	Datum		values[7];
	bool		nulls[7] = {0};

	values[0] = ObjectIdGetDatum(queue->payload_type);
	values[1] = BoolGetDatum(queue->multi);
	values[2] = BoolGetDatum(queue->enqueue_enabled);
	values[3] = BoolGetDatum(queue->dequeue_enabled);
	values[4] = BoolGetDatum(queue->exception);
	values[5] = Int32GetDatum(queue->table.id);
	nulls[5] = aq_queue_is_sharded(queue);
	values[6] = BoolGetDatum(queue->non_persistent);
	return aq_rows_one(fcinfo, values, nulls);
}

PG_FUNCTION_INFO_V1(aq_names_payload_type);
Datum
aq_names_payload_type(PG_FUNCTION_ARGS)
{
	PG_RETURN_OID(aq_catalog_get(text_to_cstring(PG_GETARG_TEXT_PP(0)), AQ_RIGHT_ANY)->payload_type);
}

/* The consumers of a queue, by its native name. */
AQ_ROWS(aq_names_consumers)
{
	AqQueue    *queue = aq_catalog_get(text_to_cstring(PG_GETARG_TEXT_PP(0)), AQ_RIGHT_SEE);

	for (int i = 0; i < queue->nconsumers; i++)
	{
		AqConsumer *consumer = &queue->consumers[i];

		if (consumer->name == NULL || !aq_privilege_shows(queue, consumer->name))
			continue;
		aq_rows_int(row, consumer->position);
		aq_rows_text(row, consumer->name);
		aq_rows_bool(row, consumer->subscriber);
		aq_rows_text(row, consumer->rule_text);
		aq_rows_text(row, consumer->transformation);
		aq_rows_int(row, consumer->delivery);
		aq_rows_time(row, consumer->created);
		aq_rows_end(row);
	}
}
