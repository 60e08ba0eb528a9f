/*-------------------------------------------------------------------------
 *
 * message_qual.c
 *	  A condition on the message id reaches the functions under aq.messages.
 *
 * A function in FROM computes all its rows before the executor applies the
 * conditions, so that a query for one message would read a whole queue.  When
 * the planner has found the conditions that belong to the function alone, a
 * condition "msgid = value" is also passed as its second argument, which the
 * view leaves null.  The condition itself stays in the plan.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/definitions/definitions_private.h"

#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

#define COLUMN_MSGID 1

static set_rel_pathlist_hook_type previous_hook;

/* The argument to set, if this is a function on messages that was called without a message id. */
static ListCell *
free_argument(RangeTblEntry *rte)
{
	FuncExpr   *call;
	Const	   *argument;

	if (rte->rtekind != RTE_FUNCTION || list_length(rte->functions) != 1)
		return NULL;
	call = (FuncExpr *) ((RangeTblFunction *) linitial(rte->functions))->funcexpr;
	if (call == NULL || !IsA(call, FuncExpr) || list_length(call->args) != 2)
		return NULL;
	argument = lsecond(call->args);
	if (!IsA(argument, Const) || !argument->constisnull || argument->consttype != UUIDOID ||
		get_func_namespace(call->funcid) != get_namespace_oid("aq_internal", true))
		return NULL;
	return list_second_cell(call->args);
}

static bool
is_msgid(const Node *node, Index rti)
{
	const Var  *var = (const Var *) node;

	return IsA(node, Var) && var->varno == rti && var->varattno == COLUMN_MSGID && var->varlevelsup == 0;
}

/* The value to which the condition compares the message id, or NULL. */
static Node *
compared_value(const Node *clause, Index rti)
{
	const OpExpr *condition = (const OpExpr *) clause;
	Node	   *left,
			   *right,
			   *value;

	if (!IsA(clause, OpExpr) || list_length(condition->args) != 2 || get_opcode(condition->opno) != F_UUID_EQ)
		return NULL;
	left = linitial(condition->args);
	right = lsecond(condition->args);
	value = is_msgid(left, rti) ? right : is_msgid(right, rti) ? left : NULL;
	if (value == NULL || contain_var_clause(value) || contain_volatile_functions(value) || contain_subplans(value))
		return NULL;
	return value;
}

static void
add_paths(PlannerInfo *root, RelOptInfo *rel, Index rti, RangeTblEntry *rte)
{
	ListCell   *argument;
	ListCell   *lc;

	if (previous_hook)
		previous_hook(root, rel, rti, rte);
	argument = free_argument(rte);
	if (argument == NULL)
		return;
	foreach(lc, rel->baserestrictinfo)
	{
		Node	   *value = compared_value((Node *) lfirst_node(RestrictInfo, lc)->clause, rti);

		if (value != NULL)
		{
			lfirst(argument) = copyObject(value);
			return;
		}
	}
}

void
aq_message_qual_init(void)
{
	previous_hook = set_rel_pathlist_hook;
	set_rel_pathlist_hook = add_paths;
}
