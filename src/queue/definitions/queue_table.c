/*-------------------------------------------------------------------------
 *
 * queue_table.c
 *	  Queue tables: creating and dropping them, and finding them by name.
 *
 * A queue table is a definition that several queues of the classic store
 * share: payload type, order, single or multiple consumers.  It belongs to the
 * role that has created it.  Its name is "schema.table"; without a schema it
 * is looked up in search_path, and created in the current schema.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/definitions/definitions_private.h"

#include "catalog/namespace.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "commands/sequence.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"

/* --- names ------------------------------------------------------------------- */

typedef struct TableName
{
	const char *schema;			/* NULL: use search_path */
	const char *table;
} TableName;

static TableName
split_name(const char *name)
{
	TableName	split = {NULL, name};
	const char *dot = strchr(name, '.');

	if (dot != NULL)
	{
		split.schema = pnstrdup(name, dot - name);
		split.table = dot + 1;
	}
	aq_args_check_name(split.table, "queue table");
	return split;
}

/*
 * A name qualified with an existing schema may be used only by roles that have
 * the CREATE privilege on it, because dbms_aq looks it up in that schema.
 */
void
aq_queue_table_check_schema(const char *name)
{
	const char *dot = strchr(name, '.');
	char	   *schema = dot != NULL ? pnstrdup(name, dot - name) : NULL;
	Oid			oid = schema != NULL ? get_namespace_oid(schema, true) : InvalidOid;

	if (OidIsValid(oid) && !aq_object_allows(NamespaceRelationId, oid, ACL_CREATE))
		aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_SCHEMA, schema);
}

/* Finds a row; returns false if there is none. */
static bool
find_row(const char *schema, const char *table, AqQueueTableRow *row, Oid *owner)
{
	static AqStatement find = {
		.command = "SELECT q.queue_table_id, q.payload_type::oid, q.multiple_consumers, q.owner, "
		"(SELECT min(e.queue_id) FROM aq_internal.queue e "
		"WHERE e.queue_table_id = q.queue_table_id AND e.queue_type = 'exception') "
		"FROM aq_internal.queue_table q WHERE q.schema_name = $1 AND q.table_name = $2",
		.nargs = 2, .types = {TEXTOID, TEXTOID}
	};
	Datum		values[2] = {CStringGetTextDatum(schema), CStringGetTextDatum(table)};
	bool		found = aq_sql_run_kept(&find, values) > 0;

	if (found)
	{
		HeapTuple	tuple = SPI_tuptable->vals[0];
		TupleDesc	desc = SPI_tuptable->tupdesc;
		bool		isnull;

		row->id = DatumGetInt32(SPI_getbinval(tuple, desc, 1, &isnull));
		row->payload_type = DatumGetObjectId(SPI_getbinval(tuple, desc, 2, &isnull));
		row->multi = DatumGetBool(SPI_getbinval(tuple, desc, 3, &isnull));
		*owner = DatumGetObjectId(SPI_getbinval(tuple, desc, 4, &isnull));
		row->exception_queue_id = DatumGetInt32(SPI_getbinval(tuple, desc, 5, &isnull));
		if (isnull)
			row->exception_queue_id = 0;
	}
	SPI_finish();
	return found;
}

/*
 * REASSIGN OWNED changes the owner of its queues; the owner of its exception
 * queue counts as the owner of the queue table.
 */
static bool
may_administer(const AqQueueTableRow *row, Oid owner)
{
	AqQueue    *queue;

	if (has_privs_of_role(GetUserId(), owner) || aq_privilege_manages_any())
		return true;
	queue = row->exception_queue_id != 0 ? aq_catalog_get_by_id(row->exception_queue_id, true) : NULL;
	return queue != NULL && aq_privilege_allows(queue, AQ_RIGHT_OWNER);
}

pg_noreturn static void
no_queue_table(const char *name)
{
	ereport(ERROR,
			aq_error(AQ_ERR_QUEUE_TABLE_UNDEFINED, "queue table \"%s\" does not exist", name),
			aq_error_hint("Create it with aq.create_queue_table; only its owner can use it in definitions.",
						  "Create it with dbms_aqadm.create_queue_table; only its owner can use it in definitions."));
}

/*
 * The queue table with this name; must_own: the caller must own it, or have
 * MANAGE_ANY.
 */
AqQueueTableRow
aq_queue_table_get(const char *name, bool must_own)
{
	TableName	split = split_name(name);
	AqQueueTableRow row = {0};
	Oid			owner = InvalidOid;
	bool		found = false;
	ListCell   *lc;

	if (split.schema != NULL)
		found = find_row(split.schema, split.table, &row, &owner);
	else
		foreach(lc, fetch_search_path(false))
		{
			char	   *schema = get_namespace_name(lfirst_oid(lc));

			if (schema != NULL && (found = find_row(schema, split.table, &row, &owner)))
				break;
		}
	if (!found || (must_own && !may_administer(&row, owner)))
		no_queue_table(name);
	return row;
}

/* --- creating --------------------------------------------------------------------- */

/* 'priority, enq_time' as a text[]. */
static Datum
sort_list_of(const char *text)
{
	static const char *const allowed[] = {
		"", "enq_time", "priority", "priority,enq_time", "enq_time,priority",
		"commit_time", "priority,commit_time"
	};
	StringInfoData bare;

	initStringInfo(&bare);
	for (const char *c = text; *c != '\0'; c++)
		if (*c != ' ')
			appendStringInfoChar(&bare, pg_tolower(*c));
	for (int i = 0; i < lengthof(allowed); i++)
		if (strcmp(bare.data, allowed[i]) == 0)
			return DirectFunctionCall2Coll(text_to_array, C_COLLATION_OID,
										   CStringGetTextDatum(bare.data), CStringGetTextDatum(","));
	ereport(ERROR,
			aq_error(AQ_ERR_SORT_LIST, "messages cannot be sorted by \"%s\"", text),
			errhint("The sort lists are enq_time, priority, commit_time; priority, enq_time; enq_time, priority; "
					"and priority, commit_time."));
}

/* Is the name free?  Then it stays so for other sessions until the transaction ends. */
static bool
reserve_name(const TableName *name, const char *full_name)
{
	AqQueueTableRow row;
	Oid			owner;

	if (find_row(name->schema, name->table, &row, &owner))
		return false;
	aq_queue_lock_name("queue_table", full_name);
	return !find_row(name->schema, name->table, &row, &owner);
}

static void
insert_row(int32 id, const TableName *name, FunctionCallInfo fcinfo, Datum sort_list)
{
	Oid			types[9] = {INT4OID, TEXTOID, TEXTOID, REGTYPEOID, TEXTARRAYOID, BOOLOID, BOOLOID,
		OIDOID, TEXTOID};
	Datum		values[9] = {Int32GetDatum(id), CStringGetTextDatum(name->schema),
		CStringGetTextDatum(name->table), PG_GETARG_DATUM(1), sort_list, PG_GETARG_DATUM(3),
		PG_GETARG_DATUM(4), ObjectIdGetDatum(GetUserId()), PG_GETARG_DATUM(5)};
	char		nulls[10] = "         ";

	nulls[8] = PG_ARGISNULL(5) ? 'n' : ' ';
	aq_sql_change("INSERT INTO aq_internal.queue_table (queue_table_id, schema_name, table_name, payload_type, "
				  "sort_list, multiple_consumers, message_grouping, owner, comment) "
				  "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)", 9, types, values, nulls);
}

static void
create_exception_queue(int32 id, const TableName *name, Oid payload_type)
{
	AqQueueDefinition d = {.owner = GetUserId(), .shards = 1, .exception = true};

	d.name = psprintf("%s.aq$_%s_e", name->schema, name->table);
	if (strlen(d.name) >= AQ_MAX_NAME)
		ereport(ERROR,
				aq_error(AQ_ERR_NAME_INVALID, "queue table name \"%s.%s\" is too long",
						 name->schema, name->table),
				errhint("The name of its exception queue, \"%s\", has at most %d bytes.",
						d.name, AQ_MAX_NAME - 1));
	d.payload_type = payload_type;
	d.queue_table_id = id;
	aq_definition_create(&d);
}

PG_FUNCTION_INFO_V1(aq_queue_table_create);
Datum
aq_queue_table_create(PG_FUNCTION_ARGS)
{
	AQ_TIMED(AQ_TIME_ADMIN);
	const char *given;
	const char *full_name;
	TableName	name;
	Datum		sort_list;
	int32		id;

	aq_session_require_write("aq.create_queue_table()");
	given = aq_args_name(fcinfo, 0, "queue_table");
	name = split_name(given);
	aq_args_require(fcinfo, 1, "payload_type");
	aq_args_require(fcinfo, 3, "multiple_consumers");
	aq_args_require(fcinfo, 4, "message_grouping");
	aq_payload_check_type(PG_GETARG_OID(1));
	sort_list = sort_list_of(PG_ARGISNULL(2) ? "" : text_to_cstring(PG_GETARG_TEXT_PP(2)));
	if (name.schema == NULL)
	{
		List	   *path = fetch_search_path(false);

		name.schema = path == NIL ? NULL : get_namespace_name(linitial_oid(path));
		if (name.schema == NULL)
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_SCHEMA),
					 errmsg("no schema has been selected to create in")));
	}
	(void) get_namespace_oid(name.schema, false);
	full_name = psprintf("%s.%s", name.schema, name.table);
	aq_queue_table_check_schema(full_name);
	if (!reserve_name(&name, full_name))
	{
		if (aq_args_if_not_exists(fcinfo, 6, "queue table", full_name))
			PG_RETURN_TEXT_P(cstring_to_text(full_name));
		ereport(ERROR,
				aq_error(AQ_ERR_QUEUE_TABLE_EXISTS, "queue table \"%s\" already exists", full_name));
	}

	id = (int32) nextval_internal(aq_schema_relation("queue_table_id_seq"), false);
	insert_row(id, &name, fcinfo, sort_list);
	aq_store_of(AQ_STORE_CLASSIC)->tables->make(id, PG_GETARG_OID(1), PG_GETARG_BOOL(3), GetUserId());
	CommandCounterIncrement();
	create_exception_queue(id, &name, PG_GETARG_OID(1));
	PG_RETURN_TEXT_P(cstring_to_text(full_name));
}

/* --- dropping -------------------------------------------------------------------------- */

/* The names of the queue table's queues, exception queues last. */
static List *
queues_of(int32 id)
{
	return aq_sql_texts(psprintf("SELECT queue_name FROM aq_internal.queue WHERE queue_table_id = %d "
								 "ORDER BY queue_type = 'exception', queue_id", id), 0, NULL, NULL, NULL);
}

/*
 * Raises an error if a queue outside the queue table uses one of its queues as
 * exception queue.
 */
static void
check_not_in_use(int32 id, const char *name)
{
	char	   *user = aq_sql_text(psprintf(
											"SELECT q.queue_name FROM aq_internal.queue q JOIN aq_internal.queue e ON e.queue_id = q.exception_queue_id "
											"WHERE e.queue_table_id = %d AND q.queue_table_id IS DISTINCT FROM %d LIMIT 1", id, id));

	if (user != NULL)
		ereport(ERROR,
				aq_error(AQ_ERR_EXCEPTION_QUEUE_NAMED, "queue table \"%s\" holds the exception queue of \"%s\"",
						 name, user),
				aq_error_hint(psprintf("Give queue \"%s\" another exception queue, or none, with aq.alter_queue, or drop that queue first.",
									   user),
							  psprintf("Drop queue \"%s\" first, with dbms_aqadm.drop_queue.", user)));
}

PG_FUNCTION_INFO_V1(aq_queue_table_drop);
Datum
aq_queue_table_drop(PG_FUNCTION_ARGS)
{
	AQ_TIMED(AQ_TIME_ADMIN);
	const char *name;
	AqQueueTableRow row;
	List	   *names;
	bool		force = !PG_ARGISNULL(1) && PG_GETARG_BOOL(1);

	aq_session_require_write("aq.drop_queue_table()");
	name = aq_args_name(fcinfo, 0, "queue_table");
	row = aq_queue_table_get(name, true);
	names = queues_of(row.id);
	if (!force && list_length(names) > (row.exception_queue_id != 0 ? 1 : 0))
		ereport(ERROR,
				aq_error(AQ_ERR_QUEUE_TABLE_NOT_EMPTY, "queue table \"%s\" holds queue \"%s\"",
						 name, (char *) linitial(names)),
				aq_error_hint("Drop its queues first, or call aq.drop_queue_table with force => true.",
							  "Drop its queues first, or call dbms_aqadm.drop_queue_table with force => true."));
	check_not_in_use(row.id, name);
	aq_definition_drop(names, force);
	aq_store_of(AQ_STORE_CLASSIC)->tables->drop(row.id);
	aq_sql_change(psprintf("DELETE FROM aq_internal.queue_table WHERE queue_table_id = %d", row.id),
				  0, NULL, NULL, NULL);
	PG_RETURN_VOID();
}

/* The views of a queue table; only their names and texts come from SQL. */
static List *
read_views(Datum name, Oid owner, Oid payload_type, const char *schema)
{
	Oid			type = TEXTOID;
	MemoryContext context = CurrentMemoryContext;
	List	   *views = NIL;

	aq_sql_run("SELECT view_name, definition, comment FROM sys._table_view_definitions($1)", 1, &type, &name, NULL, true);
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		HeapTuple	row = SPI_tuptable->vals[i];
		MemoryContext spi = MemoryContextSwitchTo(context);
		AqView	   *view = palloc(sizeof(AqView));

		*view = (AqView) {.schema = schema, .name = SPI_getvalue(row, SPI_tuptable->tupdesc, 1),
			.query = SPI_getvalue(row, SPI_tuptable->tupdesc, 2), .comment = SPI_getvalue(row, SPI_tuptable->tupdesc, 3),
			.owner = owner, .payload_type = payload_type};
		views = lappend(views, view);
		MemoryContextSwitchTo(spi);
	}
	SPI_finish();
	return views;
}

/*
 * Creates the views on a queue table, whose owner has no access to the tables
 * that they use.
 */
PG_FUNCTION_INFO_V1(aq_queue_table_make_views);
Datum
aq_queue_table_make_views(PG_FUNCTION_ARGS)
{
	const char *name = aq_args_name(fcinfo, 0, "name");
	TableName	split = split_name(name);
	AqQueueTableRow row;
	Oid			owner;
	ListCell   *lc;

	if (split.schema == NULL || !find_row(split.schema, split.table, &row, &owner) ||
		!has_privs_of_role(GetUserId(), owner))
		no_queue_table(name);
	foreach(lc, read_views(PG_GETARG_DATUM(0), owner, row.payload_type, split.schema))
		aq_sql_make_view(lfirst(lc));
	PG_RETURN_VOID();
}

/*
 * Drops the views in the user's schema.  They belong to the role that created
 * the queue or queue table; the role that drops it, for example with
 * MANAGE_ANY, may not be allowed to drop them.
 */
PG_FUNCTION_INFO_V1(aq_queue_table_drop_views);
Datum
aq_queue_table_drop_views(PG_FUNCTION_ARGS)
{
	const char *name = aq_args_name(fcinfo, 0, "name");
	bool		of_table = PG_GETARG_BOOL(1);

	if (of_table)
		(void) aq_queue_table_get(name, true);
	else
		(void) aq_catalog_get(name, AQ_RIGHT_OWNER);
	aq_sql_drop_views(aq_sql_oids(psprintf("SELECT * FROM sys.%s(%s)", of_table ? "_table_views" : "_queue_views",
										   quote_literal_cstr(name))));
	PG_RETURN_VOID();
}

PG_FUNCTION_INFO_V1(aq_queue_table_alter);
Datum
aq_queue_table_alter(PG_FUNCTION_ARGS)
{
	AQ_TIMED(AQ_TIME_ADMIN);
	Oid			types[2] = {INT4OID, TEXTOID};
	Datum		values[2];
	char		nulls[3] = {' ', PG_ARGISNULL(1) ? 'n' : ' ', '\0'};

	aq_session_require_write("aq.alter_queue_table()");
	values[0] = Int32GetDatum(aq_queue_table_get(aq_args_name(fcinfo, 0, "queue_table"), true).id);
	values[1] = PG_ARGISNULL(1) ? 0 : PG_GETARG_DATUM(1);
	aq_sql_change("UPDATE aq_internal.queue_table SET comment = $2 WHERE queue_table_id = $1", 2, types, values, nulls);
	PG_RETURN_VOID();
}
