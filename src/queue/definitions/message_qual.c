/*-------------------------------------------------------------------------
 *
 * message_qual.c
 *	  Conditions on the message id and the state reach the functions under
 *	  aq.messages; and the parts in which these functions read a queue.
 *
 * A function in FROM computes all its rows before the executor applies the
 * conditions, so that a query for one message would read a whole queue.  When
 * the planner has found the conditions that belong to the function alone,
 * "msgid = value" is also passed as its second argument, and "state = value" as
 * its third; the view leaves both null.  The conditions themselves stay in the
 * plan, so the function may return more rows than are wanted.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/definitions/definitions_private.h"

#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

/* a column whose value the function can look for */
typedef struct Wanted
{
	AttrNumber	column;
	Oid			type;
	RegProcedure equal;
	const char *absent;			/* passed for null, to which no message is equal */
} Wanted;

/* in the order of the arguments, which follow the queue's number */
static const Wanted wanted_values[] = {
	{1, UUIDOID, F_UUID_EQ, "00000000-0000-0000-0000-000000000000"},
	{3, TEXTOID, F_TEXTEQ, ""},
};

#define ARGUMENTS (1 + lengthof(wanted_values))

/* blocks of the first part of a table, if it is divided */
#define PART_BLOCKS 16

static set_rel_pathlist_hook_type previous_hook;

/* The call, if this is a function on messages. */
static FuncExpr *
call_for_messages(const RangeTblEntry *rte)
{
	FuncExpr   *call;

	if (rte->rtekind != RTE_FUNCTION || list_length(rte->functions) != 1)
		return NULL;
	call = (FuncExpr *) ((RangeTblFunction *) linitial(rte->functions))->funcexpr;
	if (call == NULL || !IsA(call, FuncExpr) || list_length(call->args) < ARGUMENTS ||
		get_func_namespace(call->funcid) != get_namespace_oid("aq_internal", true))
		return NULL;
	return call;
}

static bool
is_free(const Node *argument, const Wanted *wanted)
{
	const Const *value = (const Const *) argument;

	return IsA(argument, Const) && value->constisnull && value->consttype == wanted->type;
}

static bool
is_column(const Node *node, Index rti, AttrNumber column)
{
	const Var  *var = (const Var *) node;

	return IsA(node, Var) && var->varno == rti && var->varattno == column && var->varlevelsup == 0;
}

/* The value to which the condition compares the column, or NULL. */
static Node *
compared_value(const Node *clause, Index rti, const Wanted *wanted)
{
	const OpExpr *condition = (const OpExpr *) clause;
	Node	   *left,
			   *right,
			   *value;

	if (!IsA(clause, OpExpr) || list_length(condition->args) != 2 || get_opcode(condition->opno) != wanted->equal)
		return NULL;
	left = linitial(condition->args);
	right = lsecond(condition->args);
	value = is_column(left, rti, wanted->column) ? right : is_column(right, rti, wanted->column) ? left : NULL;
	if (value == NULL || contain_var_clause(value) || contain_volatile_functions(value) || contain_subplans(value))
		return NULL;
	return value;
}

/* The value, or if it turns out to be null, one that no message has. */
static Node *
not_null(Node *value, const Wanted *wanted)
{
	CoalesceExpr *result;
	Oid			input,
				argument;

	if (IsA(value, Const))
		return copyObject(value);	/* not null: the condition would have been false */
	getTypeInputInfo(wanted->type, &input, &argument);
	result = makeNode(CoalesceExpr);
	result->coalescetype = wanted->type;
	result->coalescecollid = get_typcollation(wanted->type);
	result->args = list_make2(copyObject(value),
							  makeConst(wanted->type, -1, result->coalescecollid, get_typlen(wanted->type),
										OidInputFunctionCall(input, pstrdup(wanted->absent), argument, -1),
										false, get_typbyval(wanted->type)));
	result->location = -1;
	return (Node *) result;
}

static void
pass_value(ListCell *argument, const Wanted *wanted, const RelOptInfo *rel, Index rti)
{
	ListCell   *lc;

	if (!is_free(lfirst(argument), wanted))
		return;
	foreach(lc, rel->baserestrictinfo)
	{
		Node	   *value = compared_value((Node *) lfirst_node(RestrictInfo, lc)->clause, rti, wanted);

		if (value != NULL)
		{
			lfirst(argument) = not_null(value, wanted);
			return;
		}
	}
}

static void
add_paths(PlannerInfo *root, RelOptInfo *rel, Index rti, RangeTblEntry *rte)
{
	FuncExpr   *call;

	if (previous_hook)
		previous_hook(root, rel, rti, rte);
	call = call_for_messages(rte);
	for (int i = 0; call != NULL && i < lengthof(wanted_values); i++)
		pass_value(list_nth_cell(call->args, i + 1), &wanted_values[i], rel, rti);
}

void
aq_message_qual_init(void)
{
	previous_hook = set_rel_pathlist_hook;
	set_rel_pathlist_hook = add_paths;
}

/*
 * A row for each part in which a table of this number of blocks is read: its number, its
 * first block and the end of its blocks.  For the same reason, a query with LIMIT reads
 * all of a part.  So the first one can be small; returns whether it is.
 */
bool
aq_message_qual_parts(AqRow *row, int table_no, BlockNumber blocks, bool divide)
{
	BlockNumber first = divide && blocks > PART_BLOCKS ? PART_BLOCKS : 0;

	if (first > 0)
	{
		aq_rows_int(row, table_no);
		aq_rows_number(row, 0);
		aq_rows_number(row, first);
		aq_rows_end(row);
	}
	if (blocks > 0)
	{
		aq_rows_int(row, table_no);
		aq_rows_number(row, first);
		aq_rows_end_nulls(row);
	}
	return first > 0;
}
