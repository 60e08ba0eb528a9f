/*-------------------------------------------------------------------------
 *
 * view_lock.c
 *	  FOR UPDATE and FOR SHARE on the views of messages are refused.
 *
 * A message's state is not in its row, so that locking the row would not lock
 * the message.  Depending on the view, PostgreSQL locks nothing and says
 * nothing, or names something inside the view.
 *
 * The hook sees each statement after its analysis.  One without row locks and
 * without subqueries costs it a few comparisons.  A view is one of pgaq's if its
 * query itself reads schema aq_internal or aq_data, or calls a function of schema
 * sys, as the views aq$... do.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/definitions/definitions_private.h"

#include "access/relation.h"
#include "catalog/pg_class.h"
#include "commands/extension.h"
#include "nodes/nodeFuncs.h"
#include "parser/analyze.h"
#include "parser/parsetree.h"
#include "rewrite/prs2lock.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

static post_parse_analyze_hook_type previous_hook;

static bool
is_schema(Oid schema, const char *one, const char *other)
{
	char	   *name = get_namespace_name(schema);

	return name != NULL && (strcmp(name, one) == 0 || strcmp(name, other) == 0);
}

static bool
calls_internal(List *functions)
{
	ListCell   *lc;

	foreach(lc, functions)
	{
		Node	   *call = ((RangeTblFunction *) lfirst(lc))->funcexpr;

		if (call != NULL && IsA(call, FuncExpr) &&
			is_schema(get_func_namespace(((FuncExpr *) call)->funcid), "aq_internal", "sys"))
			return true;
	}
	return false;
}

static bool
reads_internal(Query *query)
{
	ListCell   *lc;

	foreach(lc, query->rtable)
	{
		RangeTblEntry *rte = lfirst(lc);

		if ((rte->rtekind == RTE_RELATION && is_schema(get_rel_namespace(rte->relid), "aq_internal", "aq_data")) ||
			(rte->rtekind == RTE_FUNCTION && calls_internal(rte->functions)) ||
			(rte->rtekind == RTE_SUBQUERY && reads_internal(rte->subquery)))
			return true;
	}
	return false;
}

/* The statement holds a lock on the view. */
static bool
is_own_view(Oid oid)
{
	Relation	view;
	bool		own = false;

	if (!OidIsValid(get_extension_oid("pgaq", true)))
		return false;
	view = relation_open(oid, NoLock);
	if (view->rd_rules != NULL)
		for (int i = 0; i < view->rd_rules->numLocks && !own; i++)
		{
			RewriteRule *rule = view->rd_rules->rules[i];

			own = rule->event == CMD_SELECT && rule->actions != NIL && reads_internal(linitial(rule->actions));
		}
	relation_close(view, NoLock);
	return own;
}

static void
check_row_locks(Query *query)
{
	ListCell   *lc;

	foreach(lc, query->rowMarks)
	{
		RangeTblEntry *rte = rt_fetch(((RowMarkClause *) lfirst(lc))->rti, query->rtable);

		if (rte->rtekind == RTE_RELATION && rte->relkind == RELKIND_VIEW && is_own_view(rte->relid))
			ereport(ERROR,
					(errcode(ERRCODE_WRONG_OBJECT_TYPE),
					 errmsg("cannot lock rows in view \"%s\"", get_rel_name(rte->relid)),
					 errdetail("FOR UPDATE and FOR SHARE do not lock messages."),
					 errhint("To lock a message, dequeue it in mode \"locked\".")));
	}
}

static bool
check_nested(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (!IsA(node, Query))
		return expression_tree_walker(node, check_nested, context);
	check_row_locks((Query *) node);
	return query_tree_walker((Query *) node, check_nested, context, 0);
}

static bool
has_subqueries(Query *query)
{
	ListCell   *lc;

	if (query->hasSubLinks || query->cteList != NIL)
		return true;
	foreach(lc, query->rtable)
		if (((RangeTblEntry *) lfirst(lc))->rtekind == RTE_SUBQUERY)
			return true;
	return false;
}

/* The query that a command contains, or NULL. */
static Node *
query_of_command(Node *command)
{
	if (IsA(command, DeclareCursorStmt))
		return ((DeclareCursorStmt *) command)->query;
	if (IsA(command, CreateTableAsStmt))
		return ((CreateTableAsStmt *) command)->query;
	if (IsA(command, ExplainStmt))
		return ((ExplainStmt *) command)->query;
	return NULL;
}

static void
analyzed_hook(ParseState *pstate, Query *query, JumbleState *jumble)
{
	Node	   *checked = (Node *) query;

	if (previous_hook)
		previous_hook(pstate, query, jumble);
	if (query->commandType == CMD_UTILITY)
		checked = query_of_command(query->utilityStmt);
	if (checked == NULL || !IsA(checked, Query))
		return;
	check_row_locks((Query *) checked);
	if (has_subqueries((Query *) checked))
		(void) query_tree_walker((Query *) checked, check_nested, NULL, 0);
}

void
aq_view_lock_init(void)
{
	previous_hook = post_parse_analyze_hook;
	post_parse_analyze_hook = analyzed_hook;
}
