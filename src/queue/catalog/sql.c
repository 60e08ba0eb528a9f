/*-------------------------------------------------------------------------
 *
 * sql.c
 *	  Commands run as the owner of the extension's tables, a role without
 *	  attributes; and the few C functions of the server that need more power.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/catalog/catalog_private.h"

#include "access/heapam.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_class.h"
#include "catalog/pg_tablespace.h"
#include "catalog/pg_type.h"
#include "catalog/toasting.h"
#include "commands/comment.h"
#include "commands/defrem.h"
#include "commands/tablecmds.h"
#include "commands/tablespace.h"
#include "commands/view.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "parser/analyze.h"
#include "parser/parse_utilcmd.h"
#include "parser/parser.h"
#include "storage/lmgr.h"
#include "tcop/pquery.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/evtcache.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"

static Oid
owner(void)
{
	Oid			role = aq_owner_role();

	if (!OidIsValid(role))
		(void) aq_schema_relation("queue"); /* raises */
	return role;
}

static bool
may_use_default_tablespace(void)
{
	Oid			tablespace = GetDefaultTablespace(RELPERSISTENCE_PERMANENT, false);

	return !OidIsValid(tablespace) || (tablespace != GLOBALTABLESPACE_OID &&
									   aq_object_allows(TableSpaceRelationId, tablespace, ACL_CREATE));
}

/* A command to run. */
typedef struct Command
{
	const char *text;
	int			nargs;
	Oid		   *types;
	Datum	   *values;
	const char *nulls;
	bool		latest;			/* with a new snapshot, also in a transaction that keeps its first one */
	AqStatement *kept;			/* NULL: its plan is not kept */
	Oid			payload_type;	/* of a definition that names the type "payload_type" */
	const AqView *view;			/* NULL, or what text defines */
} Command;

static SPIPlanPtr
plan_of(const Command *command)
{
	SPIPlanPtr	plan = command->kept != NULL ? command->kept->plan : NULL;

	if (plan != NULL)
		return plan;
	plan = SPI_prepare(command->text, command->nargs, command->types);
	if (plan == NULL)
		elog(ERROR, "could not prepare \"%s\": %s", command->text, SPI_result_code_string(SPI_result));
	if (command->kept != NULL)
	{
		(void) SPI_keepplan(plan);
		command->kept->plan = plan;
	}
	return plan;
}

/* Puts the type itself into the place of each type name: a name could mean another type when it is looked up. */
static bool
set_payload_type(Node *node, void *type)
{
	if (node == NULL)
		return false;
	if (!IsA(node, TypeName))
		return raw_expression_tree_walker(node, set_payload_type, type);
	if (strcmp(strVal(llast(((TypeName *) node)->names)), "payload_type") == 0)
		*(TypeName *) node = *makeTypeNameFromOid(*(Oid *) type, -1);
	return false;
}

/* The current role, while a C function of the server does what only superusers may. */
typedef struct Power
{
	Oid			user;
	int			context;
} Power;

/*
 * Called right before a C function of the server that runs neither SQL nor code
 * of users, and lower_power() right after it.  An error restores the role, too.
 */
static Power
raise_power(void)
{
	Power		power;

	GetUserIdAndSecContext(&power.user, &power.context);
	SetUserIdAndSecContext(BOOTSTRAP_SUPERUSERID, power.context | SECURITY_LOCAL_USERID_CHANGE);
	return power;
}

static void
lower_power(Power power)
{
	SetUserIdAndSecContext(power.user, power.context);
}

/* As pg_class stores the options of the TOAST table. */
static Datum
toast_options(List *options)
{
	Datum	   *values = palloc(list_length(options) * sizeof(Datum));
	int			n = 0;
	ListCell   *lc;

	foreach(lc, options)
	{
		DefElem    *option = lfirst(lc);

		if (option->defnamespace != NULL && strcmp(option->defnamespace, "toast") == 0)
			values[n++] = CStringGetTextDatum(psprintf("%s=%s", option->defname, defGetString(option)));
	}
	return n == 0 ? (Datum) 0 : PointerGetDatum(construct_array(values, n, TEXTOID, -1, false, TYPALIGN_INT));
}

static void
define_table(CreateStmt *table, Oid role, const char *text)
{
	ObjectAddress address;

	table = linitial_node(CreateStmt, transformCreateStmt(table, text));
	address = DefineRelation(table, RELKIND_RELATION, role, NULL, text);
	CommandCounterIncrement();
	NewRelationCreateToastTable(address.objectId, toast_options(table->options));
}

/*
 * Makes a table or view with a column of the payload type, on which the owner of the extension may have no USAGE.
 * Event triggers do not run.
 */
static int
define(const Command *command)
{
	Oid			type = command->payload_type;
	Node	   *definition = linitial_node(RawStmt, raw_parser(command->text, RAW_PARSE_DEFAULT))->stmt;
	Power		power;

	(void) set_payload_type(IsA(definition, ViewStmt) ? ((ViewStmt *) definition)->query
							: (Node *) castNode(CreateStmt, definition)->tableElts, &type);
	PushActiveSnapshot(GetTransactionSnapshot());
	power = raise_power();
	if (IsA(definition, ViewStmt))
		(void) DefineView((ViewStmt *) definition, command->text, 0, 0);
	else
		define_table((CreateStmt *) definition, power.user, command->text);
	lower_power(power);
	PopActiveSnapshot();
	CommandCounterIncrement();
	return SPI_OK_UTILITY;
}

/*
 * Makes a view as its owner.  The query is read as the owner of the extension,
 * who may use what it names; it has the type itself, and names nothing else of
 * users.  Event triggers do not run.
 */
static int
define_view(const Command *command)
{
	const AqView *view = command->view;
	RawStmt    *raw = linitial_node(RawStmt, raw_parser(command->text, RAW_PARSE_DEFAULT));
	Oid			type = view->payload_type;
	CreateStmt *table = makeNode(CreateStmt);
	Query	   *query;
	ObjectAddress address;
	Oid			user;
	int			context;
	ListCell   *lc;

	(void) set_payload_type(raw->stmt, &type);
	PushActiveSnapshot(GetTransactionSnapshot());
	query = parse_analyze_fixedparams(raw, command->text, NULL, 0, NULL);
	table->relation = makeRangeVar(pstrdup(view->schema), pstrdup(view->name), -1);
	table->oncommit = ONCOMMIT_NOOP;
	foreach(lc, query->targetList)
	{
		TargetEntry *entry = lfirst_node(TargetEntry, lc);
		Node	   *value = (Node *) entry->expr;

		table->tableElts = lappend(table->tableElts, makeColumnDef(entry->resname, exprType(value), exprTypmod(value), exprCollation(value)));
	}
	GetUserIdAndSecContext(&user, &context);
	SetUserIdAndSecContext(view->owner, context | SECURITY_LOCAL_USERID_CHANGE);
	address = DefineRelation(table, RELKIND_VIEW, view->owner, NULL, NULL);
	CommandCounterIncrement();
	StoreViewQuery(address.objectId, query, false);
	CreateComments(address.objectId, RelationRelationId, 0, view->comment);
	SetUserIdAndSecContext(user, context);
	PopActiveSnapshot();
	CommandCounterIncrement();
	return SPI_OK_UTILITY;
}

/* Runs it in SPI. */
static int
execute(const Command *command)
{
	SPIPlanPtr	plan;
	Snapshot	snapshot;
	int			result;

	if (command->view != NULL)
		return define_view(command);
	if (OidIsValid(command->payload_type))
		return define(command);
	if (!command->latest || !IsolationUsesXactSnapshot())
		return command->kept != NULL ? SPI_execute_plan(plan_of(command), command->values, command->nulls, false, 0)
			: SPI_execute_with_args(command->text, command->nargs, command->types, command->values, command->nulls, false, 0);
	plan = plan_of(command);
	snapshot = RegisterSnapshot(GetLatestSnapshot());
	result = SPI_execute_snapshot(plan, command->values, command->nulls, snapshot, InvalidSnapshot, false, true, 0);
	UnregisterSnapshot(snapshot);
	return result;
}

/* Functions of event triggers run with the search_path of the command that they are called for. */
static void
explain_path(void *arg)
{
	int			code = geterrcode();

	if (code == ERRCODE_UNDEFINED_TABLE || code == ERRCODE_UNDEFINED_FUNCTION)
		errhint("Commands of pgaq run with search_path = pg_catalog, pg_temp. A function of an event trigger must qualify names with schemas, "
				"or be created with SET search_path.");
	else if (code == ERRCODE_INSUFFICIENT_PRIVILEGE)
		errhint("Commands of pgaq run as the role \"pgaq\". A function of an event trigger must need no privileges that this role does not have, "
				"or be SECURITY DEFINER.");
}

static bool
has_event_triggers(void)
{
	return EventCacheLookup(EVT_DDLCommandStart) != NIL || EventCacheLookup(EVT_DDLCommandEnd) != NIL ||
		EventCacheLookup(EVT_SQLDrop) != NIL;
}

/* Returns the number of rows. */
static uint64
run_command(const Command *command, bool connected)
{
	ErrorContextCallback explain = {.previous = error_context_stack, .callback = explain_path};
	Oid			save_user;
	int			save_context;
	int			nest = NewGUCNestLevel();
	int			result;
	uint64		rows;

	/* the caller's default_tablespace counts only if the caller may use it */
	if (!may_use_default_tablespace())
		aq_process_pin_parameter("default_tablespace", "");
	GetUserIdAndSecContext(&save_user, &save_context);
	SetUserIdAndSecContext(owner(), save_context | SECURITY_LOCAL_USERID_CHANGE);
	if (!OidIsValid(command->payload_type) && !may_use_default_tablespace())
		aq_process_pin_parameter("default_tablespace", "");
	aq_process_pin_parameter("search_path", "pg_catalog, pg_temp");
	aq_process_pin_parameter("default_table_access_method", "heap");
	aq_citus_keep_local();

	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	if (has_event_triggers())
		error_context_stack = &explain;
	result = execute(command);
	error_context_stack = explain.previous;
	if (result < 0)
		elog(ERROR, "could not execute \"%s\": %s", command->text, SPI_result_code_string(result));
	rows = SPI_processed;
	if (!connected)
		SPI_finish();
	if (!connected || result != SPI_OK_SELECT)
		aq_citus_two_phase();

	AtEOXact_GUC(true, nest);
	SetUserIdAndSecContext(save_user, save_context);
	return rows;
}

/*
 * Runs one command through SPI as the owner of the extension, with names
 * looked up only in pg_catalog.  Returns the number of rows.  If connected is
 * true, SPI stays connected, so that the caller can read SPI_tuptable, and
 * must call SPI_finish().
 */
uint64
aq_sql_run(const char *command, int nargs, Oid *types, Datum *values,
		   const char *nulls, bool connected)
{
	Command		all = {.text = command, .nargs = nargs, .types = types, .values = values, .nulls = nulls};

	return run_command(&all, connected);
}

/*
 * The same, with the latest snapshot, for a command that is run so often that
 * its plan is worth keeping; the number of rows.  The caller calls SPI_finish().
 */
uint64
aq_sql_run_kept(AqStatement *statement, Datum *values)
{
	Command		all = {.text = statement->command, .nargs = statement->nargs, .types = statement->types, .values = values, .latest = true, .kept = statement};

	return run_command(&all, true);
}

/*
 * The first column of the query's first row as text, read with the latest
 * snapshot, as descriptions of queues are; NULL: no row, or null.
 */
char *
aq_sql_text(const char *query)
{
	MemoryContext context = CurrentMemoryContext;
	Command		all = {.text = query, .latest = true};
	char	   *text = NULL;

	if (run_command(&all, true) > 0)
		text = SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1);
	if (text != NULL)
		text = MemoryContextStrdup(context, text);
	SPI_finish();
	return text;
}

/*
 * Runs a command that changes data, and returns the number of rows.  The latest
 * snapshot: the caller decided by descriptions of queues, which are read with it,
 * and holds the locks that keep them true.
 */
uint64
aq_sql_change(const char *command, int nargs, Oid *types, Datum *values, const char *nulls)
{
	Command		all = {.text = command, .nargs = nargs, .types = types, .values = values, .nulls = nulls, .latest = true};

	return run_command(&all, false);
}

/* Makes a view in a schema of users, as its owner, who needs the privilege to create it there. */
void
aq_sql_make_view(const AqView *view)
{
	Command		all = {.text = view->query, .view = view};

	(void) run_command(&all, false);
}

/*
 * Drops views, of which the caller needs not be the owner; an error if something
 * depends on them.  No SQL runs.
 */
void
aq_sql_drop_views(List *views)
{
	ListCell   *lc;

	foreach(lc, views)
	{
		ObjectAddress address = {RelationRelationId, lfirst_oid(lc), 0};

		LockRelationOid(address.objectId, AccessExclusiveLock);
		if (get_rel_relkind(address.objectId) == RELKIND_VIEW)
			performDeletion(&address, DROP_RESTRICT, 0);
	}
	CommandCounterIncrement();
}

/*
 * CREATE TABLE or CREATE VIEW, of which columns have the type "payload_type": that with this OID, whatever its name is
 * by now.
 */
void
aq_sql_define(const char *command, Oid payload_type)
{
	Command		all = {.text = command, .payload_type = payload_type};

	(void) run_command(&all, false);
}

/*
 * Deletes rows of a table of aq_data: those of SELECT ... FROM aq_data.<table> r
 * <which>; returns their number.  Two callers at once: the caller has locked the
 * table, or which ends with FOR UPDATE.
 *
 * For tables of messages, which have no replica identity: DELETE is refused there
 * as soon as a publication has all tables.  An identity would be the whole row,
 * which each dequeue would write to the WAL, if wal_level is logical.
 */
uint64
aq_sql_delete(const char *table, const char *which, int nargs, Oid *types, Datum *values)
{
	MemoryContext context = CurrentMemoryContext;
	Command		all = {.nargs = nargs, .types = types, .values = values, .latest = true};
	Datum		found;
	bool		none;
	Datum	   *tids;
	bool	   *nulls;
	int			n = 0;

	all.text = psprintf("SELECT array_agg(s.t) FROM (SELECT r.ctid AS t FROM aq_data.%s r %s) s", table, which);
	(void) run_command(&all, true);
	found = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &none);
	if (!none)
	{
		Relation	rel = table_open(aq_schema_data_relation(table), RowExclusiveLock);
		MemoryContext spi = MemoryContextSwitchTo(context);

		deconstruct_array(DatumGetArrayTypeP(found), TIDOID, sizeof(ItemPointerData), false, TYPALIGN_SHORT, &tids, &nulls, &n);
		for (int i = 0; i < n; i++)
			simple_heap_delete(rel, (ItemPointer) DatumGetPointer(tids[i]));
		MemoryContextSwitchTo(spi);
		table_close(rel, NoLock);
	}
	SPI_finish();
	CommandCounterIncrement();
	return n;
}

/*
 * Gives an owner view to the role, of which the extension's owner is no member, by OID: ALTER VIEW would take the role's
 * name.
 */
void
aq_sql_give(Oid relation, Oid role)
{
	Power		power = raise_power();

	ATExecChangeOwner(relation, role, false, AccessExclusiveLock);
	lower_power(power);
	CommandCounterIncrement();
}

/* Revokes by GrantStmts for which the rights of the extension's owner do not suffice. */
void
aq_sql_revoke(const char *commands)
{
	int			nest = NewGUCNestLevel();
	ListCell   *lc;

	aq_process_pin_parameter("search_path", "pg_catalog, pg_temp");
	foreach(lc, raw_parser(commands, RAW_PARSE_DEFAULT))
	{
		Power		power = raise_power();

		ExecuteGrantStmt(castNode(GrantStmt, lfirst_node(RawStmt, lc)->stmt));
		lower_power(power);
		CommandCounterIncrement();
	}
	AtEOXact_GUC(true, nest);
}

/* The first column of the command's rows, in the current memory context: a list of OIDs, of int4 numbers, or of texts. */
static List *
first_column(const Command *command, NodeTag kind)
{
	MemoryContext context = CurrentMemoryContext;
	List	   *list = NIL;
	uint64		rows = run_command(command, true);

	for (uint64 i = 0; i < rows; i++)
	{
		bool		isnull;
		Datum		value = SPI_getbinval(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1, &isnull);
		MemoryContext spi = MemoryContextSwitchTo(context);

		if (kind == T_OidList)
			list = lappend_oid(list, DatumGetObjectId(value));
		else if (kind == T_IntList)
			list = lappend_int(list, DatumGetInt32(value));
		else
			list = lappend(list, SPI_getvalue(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1));
		MemoryContextSwitchTo(spi);
	}
	SPI_finish();
	return list;
}

List *
aq_sql_oids(const char *query)
{
	return first_column(&(Command) {.text = query}, T_OidList);
}

List *
aq_sql_numbers(const char *query)
{
	return first_column(&(Command) {.text = query}, T_IntList);
}

List *
aq_sql_texts(const char *query, int nargs, Oid *types, Datum *values, const char *nulls)
{
	return first_column(&(Command) {.text = query, .nargs = nargs, .types = types, .values = values, .nulls = nulls}, T_List);
}

/* Does the query return a row? */
bool
aq_sql_finds(const char *query)
{
	bool		found = aq_sql_run(query, 0, NULL, NULL, NULL, true) > 0;

	SPI_finish();
	return found;
}

/* May the procedure commit?  Not in a transaction block, nor within a function. */
bool
aq_sql_may_commit(FunctionCallInfo fcinfo)
{
	return fcinfo->context != NULL && IsA(fcinfo->context, CallContext) && !((CallContext *) fcinfo->context)->atomic &&
		!IsSubTransaction();
}

/* Commits in a procedure that may, and begins the next transaction. */
void
aq_sql_commit(void)
{
	if (SPI_connect_ext(SPI_OPT_NONATOMIC) != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	SPI_commit();
	SPI_finish();
	EnsurePortalSnapshotExists();
}

PG_FUNCTION_INFO_V1(aq_sql_run_ddl);
/*
 * sys._run_ddl(command): runs a command with the rights and names of the
 * caller, as EXECUTE does, and leaves the objects to this node.
 */
Datum
aq_sql_run_ddl(PG_FUNCTION_ARGS)
{
	int			nest = NewGUCNestLevel();

	aq_citus_keep_local();
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	if (SPI_execute(text_to_cstring(PG_GETARG_TEXT_PP(0)), false, 0) < 0)
		elog(ERROR, "could not execute a command: %s", SPI_result_code_string(SPI_result));
	SPI_finish();
	AtEOXact_GUC(true, nest);
	PG_RETURN_VOID();
}
