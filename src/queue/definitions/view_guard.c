/*-------------------------------------------------------------------------
 *
 * view_guard.c
 *	  The views of pgaq are read-only: INSERT, UPDATE, DELETE, MERGE, FOR UPDATE
 *	  and FOR SHARE are refused.
 *
 * A message's state is not in its row, so that locking the row would not lock
 * the message.  Depending on the view, PostgreSQL locks nothing and says
 * nothing, or names something inside the view.  A change through a simple view
 * would reach the catalog without the checks of the functions.
 *
 * The hook sees each statement after its analysis.  A statement that neither
 * changes a view nor locks its rows costs a few comparisons; catalogs are only
 * read for one that does.  The views are those of the two extensions, and those
 * on messages that dbms_aqadm makes in users' schemas, which are in no extension:
 * they read tables in aq_data, or call internal functions of pgaq_oracle.  A
 * user's view on a single view stands for that one, as in PostgreSQL's updatable
 * views.  INSTEAD OF triggers and INSTEAD rules of users are respected.
 *
 * Definitions are not refused, that is the bodies of views, rules and functions,
 * so that a dump can always be restored: pg_dump creates triggers last.
 * PostgreSQL does not call the hook for rules and for bodies that are parsed at
 * creation, so that what they do is not checked.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/definitions/definitions_private.h"

#include "access/relation.h"
#include "catalog/dependency.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_proc.h"
#include "commands/extension.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "parser/analyze.h"
#include "parser/parsetree.h"
#include "rewrite/prs2lock.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

static post_parse_analyze_hook_type previous_hook;

static bool
is_schema(Oid schema, const char *name)
{
	char	   *found = get_namespace_name(schema);

	return found != NULL && strcmp(found, name) == 0;
}

static bool
is_member(Oid class, Oid object)
{
	Oid			extension = getExtensionOfObject(class, object);
	char	   *name = OidIsValid(extension) ? get_extension_name(extension) : NULL;

	return name != NULL && (strcmp(name, "pgaq") == 0 || strcmp(name, "pgaq_oracle") == 0);
}

static bool
calls_internal(List *functions)
{
	ListCell   *lc;

	foreach(lc, functions)
	{
		FuncExpr   *call = (FuncExpr *) ((RangeTblFunction *) lfirst(lc))->funcexpr;
		char	   *name;

		if (call == NULL || !IsA(call, FuncExpr))
			continue;
		name = get_func_name(call->funcid);
		if (name != NULL && name[0] == '_' && is_schema(get_func_namespace(call->funcid), "sys") &&
			is_member(ProcedureRelationId, call->funcid))
			return true;
	}
	return false;
}

static bool
reads_messages(Query *body)
{
	ListCell   *lc;

	foreach(lc, body->rtable)
	{
		RangeTblEntry *rte = lfirst(lc);

		if ((rte->rtekind == RTE_RELATION && rte->relkind != RELKIND_VIEW &&
			 is_schema(get_rel_namespace(rte->relid), "aq_data")) ||
			(rte->rtekind == RTE_FUNCTION && calls_internal(rte->functions)) ||
			(rte->rtekind == RTE_SUBQUERY && reads_messages(rte->subquery)))
			return true;
	}
	return false;
}

/* The query of a view, in the relation cache; NULL if it reads nothing. */
static Query *
body_of(Relation view)
{
	for (int i = 0; view->rd_rules != NULL && i < view->rd_rules->numLocks; i++)
	{
		RewriteRule *rule = view->rd_rules->rules[i];
		Query	   *body = rule->event == CMD_SELECT && rule->actions != NIL ? linitial(rule->actions) : NULL;

		if (body != NULL && (body->jointree->fromlist != NIL || body->setOperations != NULL))
			return body;
	}
	return NULL;
}

static bool
is_own(Relation view, Query *body)
{
	Oid			schema = RelationGetNamespace(view);

	return ((is_schema(schema, "aq") || is_schema(schema, "aq_internal") || is_schema(schema, "sys")) &&
			is_member(RelationRelationId, RelationGetRelid(view))) ||
		reads_messages(body);
}

/* The view that is all that this one reads, or InvalidOid. */
static Oid
only_view(Query *body)
{
	List	   *from = body->jointree->fromlist;
	RangeTblEntry *rte;

	if (list_length(from) != 1 || !IsA(linitial(from), RangeTblRef))
		return InvalidOid;
	rte = rt_fetch(((RangeTblRef *) linitial(from))->rtindex, body->rtable);
	return rte->rtekind == RTE_RELATION && rte->relkind == RELKIND_VIEW ? rte->relid : InvalidOid;
}

/* Does a trigger or rule of a user replace changes of this kind? */
static bool
has_instead(Relation view, CmdType change)
{
	TriggerDesc *triggers = view->trigdesc;

	if (triggers != NULL &&
		((change == CMD_INSERT && triggers->trig_insert_instead_row) ||
		 (change == CMD_UPDATE && triggers->trig_update_instead_row) ||
		 (change == CMD_DELETE && triggers->trig_delete_instead_row)))
		return true;
	for (int i = 0; view->rd_rules != NULL && i < view->rd_rules->numLocks; i++)
	{
		RewriteRule *rule = view->rd_rules->rules[i];

		if (rule->event == change && change != CMD_SELECT && rule->isInstead && rule->qual == NULL)
			return true;
	}
	return false;
}

/*
 * The view of pgaq that the statement changes, or whose rows it locks
 * (CMD_SELECT), by naming this view; InvalidOid: none.  The statement has locked
 * the view itself, so that its rule stays as it is; those below are locked here.
 */
static Oid
own_view(Oid view, CmdType change)
{
	List	   *seen = NIL;

	if (!OidIsValid(get_namespace_oid("aq_internal", true)))
		return InvalidOid;
	while (OidIsValid(view) && !list_member_oid(seen, view))
	{
		Relation	relation = relation_open(view, seen == NIL ? NoLock : AccessShareLock);
		Query	   *body = has_instead(relation, change) ? NULL : body_of(relation);
		bool		own = body != NULL && is_own(relation, body);
		Oid			next = body != NULL ? only_view(body) : InvalidOid;

		relation_close(relation, NoLock);
		if (own)
			return view;
		seen = lappend_oid(seen, view);
		view = next;
	}
	return InvalidOid;
}

/* Is the statement a part of a definition, of an extension's script or of pg_upgrade? */
static bool
is_exempt(void)
{
	Node	   *command = aq_utility_command();

	return IsBinaryUpgrade || creating_extension ||
		(command != NULL && (IsA(command, ViewStmt) || IsA(command, CreateFunctionStmt)));
}

static void
check_row_locks(Query *query)
{
	ListCell   *lc;

	foreach(lc, query->rowMarks)
	{
		RangeTblEntry *rte = rt_fetch(((RowMarkClause *) lfirst(lc))->rti, query->rtable);

		if (rte->rtekind == RTE_RELATION && rte->relkind == RELKIND_VIEW && !is_exempt() &&
			OidIsValid(own_view(rte->relid, CMD_SELECT)))
			ereport(ERROR,
					(errcode(ERRCODE_WRONG_OBJECT_TYPE),
					 errmsg("cannot lock rows in view \"%s\"", get_rel_name(rte->relid)),
					 errdetail("FOR UPDATE and FOR SHARE do not lock messages."),
					 errhint("To lock a message, dequeue it in mode \"locked\".")));
	}
}

static void
check_change(Oid view, CmdType change)
{
	Oid			own = own_view(view, change);

	if (!OidIsValid(own))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_WRONG_OBJECT_TYPE),
			 change == CMD_INSERT ? errmsg("cannot insert into view \"%s\"", get_rel_name(view)) :
			 change == CMD_UPDATE ? errmsg("cannot update view \"%s\"", get_rel_name(view)) :
			 errmsg("cannot delete from view \"%s\"", get_rel_name(view)),
			 errdetail("Rows of view \"%s\" can be changed only by functions.", get_rel_name(own)),
			 errhint("Change queues with functions like aq.alter_queue, and messages with aq.enqueue and aq.dequeue.")));
}

static void
check_changes(Query *query)
{
	RangeTblEntry *rte;
	ListCell   *lc;

	if (query->commandType == CMD_SELECT || query->resultRelation == 0)
		return;
	rte = rt_fetch(query->resultRelation, query->rtable);
	if (rte->relkind != RELKIND_VIEW || is_exempt())
		return;
	if (query->commandType != CMD_MERGE)
		check_change(rte->relid, query->commandType);
	foreach(lc, query->mergeActionList)
		if (((MergeAction *) lfirst(lc))->commandType != CMD_NOTHING)
			check_change(rte->relid, ((MergeAction *) lfirst(lc))->commandType);
}

static bool check_nested(Node *node, void *context);

static void
check_query(Query *query)
{
	ListCell   *lc;

	check_stack_depth();
	check_row_locks(query);
	check_changes(query);
	foreach(lc, query->rtable)
		if (((RangeTblEntry *) lfirst(lc))->rtekind == RTE_SUBQUERY)
			check_query(((RangeTblEntry *) lfirst(lc))->subquery);
	foreach(lc, query->cteList)
		check_query((Query *) ((CommonTableExpr *) lfirst(lc))->ctequery);
	if (query->hasSubLinks)
		(void) query_tree_walker(query, check_nested, NULL, QTW_IGNORE_RC_SUBQUERIES);
}

static bool
check_nested(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (!IsA(node, Query))
		return expression_tree_walker(node, check_nested, context);
	check_query((Query *) node);
	return false;
}

/* The query that a command runs at once, also a command inside of EXPLAIN; or NULL. */
static Query *
query_of_command(Query *query)
{
	while (query != NULL && query->commandType == CMD_UTILITY)
	{
		Node	   *command = query->utilityStmt;
		Node	   *inner = NULL;

		if (IsA(command, DeclareCursorStmt))
			inner = ((DeclareCursorStmt *) command)->query;
		else if (IsA(command, CreateTableAsStmt) && ((CreateTableAsStmt *) command)->objtype != OBJECT_MATVIEW)
			inner = ((CreateTableAsStmt *) command)->query;
		else if (IsA(command, ExplainStmt))
			inner = ((ExplainStmt *) command)->query;
		query = inner != NULL && IsA(inner, Query) ? (Query *) inner : NULL;
	}
	return query;
}

/*
 * Is it the query of the CREATE MATERIALIZED VIEW that runs now, or is
 * explained?  PostgreSQL 18 and later call the hook for it once more.
 */
static bool
is_being_defined(Query *query)
{
	Node	   *command = aq_utility_command();
	CreateTableAsStmt *create;

	if (command != NULL && IsA(command, ExplainStmt))
		command = castNode(Query, castNode(ExplainStmt, command)->query)->utilityStmt;
	if (command == NULL || !IsA(command, CreateTableAsStmt))
		return false;
	create = castNode(CreateTableAsStmt, command);
	return create->objtype == OBJECT_MATVIEW && equal(query, create->query);
}

static void
analyzed_hook(ParseState *pstate, Query *query, AqJumbleState *jumble)
{
	Query	   *checked = query_of_command(query);

	if (previous_hook)
		previous_hook(pstate, query, jumble);
	if (checked != NULL && !is_being_defined(checked))
		check_query(checked);
}

void
aq_view_guard_init(void)
{
	previous_hook = post_parse_analyze_hook;
	post_parse_analyze_hook = analyzed_hook;
}
