/*-------------------------------------------------------------------------
 *
 * rule.c
 *	  Conditions over messages: subscribers' rules, conditions of dequeue.
 *
 * A condition is an SQL expression over the message's properties, the payload
 * and, if the payload is composite, its fields by their unqualified names.  It
 * is compiled once to an expression of PostgreSQL's executor, with one
 * parameter per property.  Subqueries and aggregates are not allowed.
 *
 * A method of the payload, in Oracle's spelling, is a function of it:
 * user_data.weight(2) calls weight(payload, 2) of the schema of the payload's
 * type.  The methods of aq.jms_message are those of Oracle's JMS types in the
 * schema sys of pgaq_oracle, where attributes are functions, too.
 *
 * A rule runs in the enqueuer's session with the privileges of the role that
 * wrote it, see run_as.c, unless it calls only immutable built-in functions,
 * for which the role does not matter.  The condition of a dequeue or a purge
 * runs as the caller, with the caller's search_path.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/catalog/catalog_private.h"

#include "access/transam.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parse_coerce.h"
#include "parser/parse_collate.h"
#include "parser/parse_expr.h"
#include "parser/parse_func.h"
#include "parser/parse_node.h"
#include "parser/parser.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

/* The names that a condition can use, in the order of AqRuleVariable. */
static const struct
{
	const char *name;
	Oid			type;
}			variables[] = {
	{"priority", INT4OID},
	{"correlation", TEXTOID},
	{"properties", JSONBOID},
	{"payload", InvalidOid},	/* the queue's payload type */
	{"enqueue_time", TIMESTAMPTZOID},
	{"attempts", INT4OID},
	{"sender", TEXTOID},
	{"msgid", UUIDOID},
	/* columns of Oracle's queue tables */
	{"state", INT4OID},
	{"delay", TIMESTAMPTZOID},	/* time at which it becomes ready */
	{"expiration", INT4OID},	/* seconds after that */
	{"exception_queue", TEXTOID},
	{"original_msgid", UUIDOID},
	{"dead_letter", JSONBOID},
	{"key", TEXTOID},
};

/* Oracle's names in rules and conditions. */
static const struct
{
	const char *name;
	AqRuleVariable variable;
}			synonyms[] = {
	{"corrid", AQ_RULE_CORRELATION},
	{"user_data", AQ_RULE_PAYLOAD},
	{"user_prop", AQ_RULE_PROPERTIES},
	{"enq_time", AQ_RULE_ENQUEUE_TIME},
	{"retry_count", AQ_RULE_ATTEMPTS},
	{"sender_name", AQ_RULE_SENDER},
};

struct AqRule
{
	MemoryContext memory;		/* context of the rule */
	const char *text;
	Oid			payload_type;
	Oid			role;			/* role that runs it; InvalidOid: the caller, for a condition of its own */
	bool		busy;			/* it is being evaluated */
	/* the compiled form */
	MemoryContext code;
	uint64		changes;		/* aq_run_as_code_changes() before */
	bool		user_code;		/* not only built-in functions with the same effect for every role */
	bool		may_raise;		/* may raise an error for some message */
	ExprState  *state;
	ExprContext *context;
	ParamListInfo params;
};

typedef struct Compilation
{
	const char *text;
	Oid			payload_type;
} Compilation;

static void
condition_context(void *arg)
{
	errcontext("condition \"%s\"", (const char *) arg);
}

/* --- compiling -------------------------------------------------------------- */

static bool
has_field(Oid type, const char *name)
{
	Oid			relation = get_typ_typrelid(type);

	return OidIsValid(relation) && get_attnum(relation, name) != InvalidAttrNumber;
}

/* A field of the payload may hide a synonym, but not a property. */
static const char *
without_synonym(Oid payload_type, const char *name)
{
	for (int i = 0; i < lengthof(synonyms); i++)
		if (strcmp(synonyms[i].name, name) == 0 && !has_field(payload_type, name))
			return variables[synonyms[i].variable - 1].name;
	return name;
}

/* The variable that a name means, and its type; 0: none. */
AqRuleVariable
aq_rule_variable(Oid payload_type, const char *name, Oid *type)
{
	name = without_synonym(payload_type, name);
	for (int i = 0; i < lengthof(variables); i++)
	{
		if (strcmp(variables[i].name, name) != 0 || (i >= AQ_RULE_PROPERTY_LAST && has_field(payload_type, name)))
			continue;
		*type = OidIsValid(variables[i].type) ? variables[i].type : payload_type;
		return i + 1;
	}
	return 0;
}

static Node *
variable_param(Compilation *c, const char *name, int location)
{
	Param	   *param;
	Oid			type;
	int			variable = aq_rule_variable(c->payload_type, name, &type);

	if (variable == 0)
		return NULL;
	param = makeNode(Param);
	param->paramkind = PARAM_EXTERN;
	param->paramid = variable;
	param->paramtype = type;
	param->paramtypmod = -1;
	param->paramcollid = get_typcollation(type);
	param->location = location;
	return (Node *) param;
}

/* The schema of the methods of a composite type. */
static char *
schema_of_methods(Oid type)
{
	return aq_payload_is_jms(type) ? "sys" : get_namespace_name(get_rel_namespace(get_typ_typrelid(type)));
}

static Node *
field_of(ParseState *pstate, Node *value, Node *field, int location)
{
	List	   *name = list_make1(field);

	if (value == NULL || !type_is_rowtype(exprType(value)))
		return NULL;
	if (aq_payload_is_jms(exprType(value)) && !has_field(exprType(value), strVal(field)))
		name = lcons(makeString(schema_of_methods(exprType(value))), name);
	return ParseFuncOrColumn(pstate, name, list_make1(value), pstate->p_last_srf, NULL, false, location);
}

/*
 * The header of a JMS message is made of the message's properties; its methods
 * are those of the message, and its fields have such a method, too, which is
 * faster than to make it.
 */
static bool
is_header(Oid type, Node *name)
{
	return aq_payload_is_jms(type) && strcmp(strVal(name), "header") == 0;
}

/* A field of a field, or of a header. */
static Node *
field_at(ParseState *pstate, Node *value, List *fields, int *at, int location)
{
	Node	   *field = list_nth(fields, *at);
	Node	   *next = *at + 1 < list_length(fields) ? list_nth(fields, *at + 1) : NULL;

	if (value == NULL || next == NULL || !is_header(exprType(value), field) || strcmp(strVal(next), "properties") == 0)
		return field_of(pstate, value, field, location);
	(*at)++;
	return field_of(pstate, value, (Node *) makeString(psprintf("get_%s", strVal(next))), location);
}

/*
 * Replaces PostgreSQL's error for a qualified name, which mentions a FROM
 * clause.
 */
static void
no_such_column(List *fields)
{
	ereport(ERROR,
			(errcode(ERRCODE_UNDEFINED_COLUMN),
			 errmsg("column \"%s\" does not exist", NameListToString(fields))));
}

/*
 * [tab.] property or field [.field ...].  A property wins over a field of the
 * payload with the same name.
 */
static Node *
resolve_column(ParseState *pstate, ColumnRef *cref, Node *var)
{
	Compilation *c = pstate->p_ref_hook_state;
	List	   *fields = cref->fields;
	Node	   *result;

	if (var != NULL)
		return NULL;
	if (!IsA(llast(fields), String))
		return NULL;			/* tab.* */
	if (list_length(fields) > 1 && strcmp(strVal(linitial(fields)), "tab") == 0)
		fields = list_copy_tail(fields, 1);
	result = variable_param(c, strVal(linitial(fields)), cref->location);
	if (result == NULL)
		result = field_of(pstate, variable_param(c, "payload", cref->location), linitial(fields),
						  cref->location);
	for (int at = 1; at < list_length(fields); at++)
		result = field_at(pstate, result, fields, &at, cref->location);
	if (result == NULL && list_length(cref->fields) > 1)
		no_such_column(cref->fields);
	return result;
}

/* [tab.]user_data[.field ...].method(...) becomes schema.method([tab.]user_data[.field ...], ...) */
static bool
methods_to_functions(Node *node, void *payload_type)
{
	Oid			type = *(Oid *) payload_type;
	FuncCall   *call = (FuncCall *) node;
	int			object;
	int			n;
	ColumnRef  *self;

	if (node == NULL)
		return false;
	if (!IsA(node, FuncCall))
		return raw_expression_tree_walker(node, methods_to_functions, payload_type);
	object = list_length(call->funcname) > 2 && strcmp(strVal(linitial(call->funcname)), "tab") == 0 ? 1 : 0;
	if (list_length(call->funcname) > object + 1 && OidIsValid(get_typ_typrelid(type)) &&
		strcmp(strVal(list_nth(call->funcname, object)), "user_data") == 0)
	{
		self = makeNode(ColumnRef);
		n = list_length(call->funcname) - object - 1;
		if (n == 2 && is_header(type, list_nth(call->funcname, object + 1)))
			n = 1;
		self->fields = list_truncate(list_copy_tail(call->funcname, object), n);
		self->location = call->location;
		call->args = lcons(self, call->args);
		call->funcname = list_make2(makeString(schema_of_methods(type)), llast(call->funcname));
	}
	return raw_expression_tree_walker(node, methods_to_functions, payload_type);
}

/* Parses the text, which must be a single expression. */
static Node *
parse_expression(const char *text, Oid payload_type)
{
	List	   *raw = raw_parser(text, RAW_PARSE_PLPGSQL_EXPR);
	SelectStmt *select;

	select = castNode(SelectStmt, linitial_node(RawStmt, raw)->stmt);
	if (list_length(select->targetList) != 1 || select->fromClause || select->whereClause ||
		select->groupClause || select->havingClause || select->sortClause ||
		select->limitCount || select->limitOffset || select->distinctClause ||
		select->lockingClause || select->windowClause || select->op != SETOP_NONE)
		ereport(ERROR,
				aq_error(AQ_ERR_RULE_INVALID, "a condition must be a single SQL expression"),
				errhint("For example: priority < 3 AND correlation LIKE 'order%%'."));
	(void) methods_to_functions((Node *) select->targetList, &payload_type);
	return linitial_node(ResTarget, select->targetList)->val;
}

/* Does a function that is not built-in count as built-in? */
static bool (*counts_as_built_in) (Oid function);

void
aq_rule_on_function(bool (*is_built_in) (Oid function))
{
	counts_as_built_in = is_built_in;
}

static bool
not_built_in(Oid function, void *context)
{
	return function >= FirstNormalObjectId && !counts_as_built_in(function);
}

/* Does a node of this kind run only its functions? */
static bool
only_calls_functions(const Node *node)
{
	switch (nodeTag(node))
	{
		case T_List:
		case T_Const:
		case T_Param:
		case T_FieldSelect:
		case T_RelabelType:
		case T_FuncExpr:
		case T_OpExpr:
		case T_DistinctExpr:
		case T_ScalarArrayOpExpr:
		case T_BoolExpr:
		case T_NullTest:
		case T_BooleanTest:
		case T_CaseExpr:
		case T_CaseWhen:
		case T_CaseTestExpr:
		case T_CoalesceExpr:
			return true;
		default:
			return false;
	}
}

/*
 * Could the node run users' code?  Constraints of domains are not functions of
 * a node, so only listed kinds of nodes are accepted.
 */
static bool
may_call_user_code(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (!only_calls_functions(node) && !IsA(node, NullIfExpr) && !IsA(node, CoerceViaIO) && !IsA(node, ArrayExpr))
		return true;
	if (check_functions_in_node(node, not_built_in, context))
		return true;
	return expression_tree_walker(node, may_call_user_code, context);
}

/* A backslash at the end that escapes nothing is the only error of LIKE. */
static bool
is_complete_pattern(const char *pattern)
{
	for (; *pattern != '\0'; pattern++)
		if (*pattern == '\\' && *++pattern == '\0')
			return false;
	return true;
}

/* LIKE with a constant pattern that is valid. */
static bool
is_plain_like(Node *node)
{
	OpExpr	   *like = (OpExpr *) node;
	Const	   *pattern;

	if (!IsA(node, OpExpr) || (like->opfuncid != F_TEXTLIKE && like->opfuncid != F_TEXTNLIKE))
		return false;
	pattern = lsecond(like->args);
	return IsA(pattern, Const) && !pattern->constisnull &&
		is_complete_pattern(TextDatumGetCString(pattern->constvalue));
}

/*
 * Returns false for functions that never raise an error, for all values of
 * their arguments.
 */
static bool
function_may_raise(Oid function, void *context)
{
	switch (function)
	{
		case F_JSONB_OBJECT_FIELD:
		case F_JSONB_OBJECT_FIELD_TEXT:
		case F_JSONB_ARRAY_ELEMENT:
		case F_JSONB_ARRAY_ELEMENT_TEXT:
		case F_JSONB_EXISTS:
		case F_JSONB_EXISTS_ANY:
		case F_JSONB_EXISTS_ALL:
		case F_JSONB_CONTAINS:
		case F_JSONB_CONTAINED:
		case F_JSONB_EQ:
		case F_JSONB_NE:
		case F_JSONB_TYPEOF:
		case F_NUMERIC_EQ:
		case F_NUMERIC_NE:
		case F_NUMERIC_LT:
		case F_NUMERIC_LE:
		case F_NUMERIC_GT:
		case F_NUMERIC_GE:
			return false;
		default:
			/*
			 * leakproof functions raise none, because an error would reveal
			 * their arguments
			 */
			return !get_func_leakproof(function) && !counts_as_built_in(function);
	}
}

/* Could the node raise an error?  Yes, unless all nodes are known not to. */
static bool
node_may_raise(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (!only_calls_functions(node))
		return true;
	if (!is_plain_like(node) && check_functions_in_node(node, function_may_raise, context))
		return true;
	return expression_tree_walker(node, node_may_raise, context);
}

/*
 * For a rule: the values that it makes must be of types that the role can
 * trust.  Nodes that only pass values on make none.
 */
static bool
check_types(Node *node, void *context)
{
	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_List:
		case T_Param:
		case T_FieldSelect:
		case T_RelabelType:
		case T_SubscriptingRef:
		case T_CaseExpr:
		case T_CaseWhen:
		case T_CaseTestExpr:
		case T_CoalesceExpr:
			break;
		default:
			aq_run_as_check_type(exprType(node));
	}
	return expression_tree_walker(node, check_types, context);
}

/*
 * Replaces the literals of a condition by null parameters: see null_literal.
 */
static bool
without_literals(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, TypeName))
		return false;
	if (IsA(node, A_Const))
	{
		int			location = ((A_Const *) node)->location;

		StaticAssertStmt(sizeof(ParamRef) <= sizeof(A_Const), "one is written over the other");
		if (!((A_Const *) node)->isnull && IsA(&((A_Const *) node)->val, String))
		{
			((ParamRef *) node)->type = T_ParamRef;
			((ParamRef *) node)->number = 0;
			((ParamRef *) node)->location = location;
		}
		return false;
	}
	return raw_expression_tree_walker(node, without_literals, context);
}

/* A null for a literal, whose type is not known yet. */
static Node *
null_literal(ParseState *pstate, ParamRef *param)
{
	return (Node *) makeConst(UNKNOWNOID, -1, InvalidOid, -2, (Datum) 0, true, false);
}

static ParamListInfo
make_params(Oid payload_type)
{
	ParamListInfo params = makeParamList(AQ_RULE_LAST);

	for (int i = 0; i < AQ_RULE_LAST; i++)
	{
		params->params[i].isnull = true;
		params->params[i].pflags = 0;
		params->params[i].ptype = OidIsValid(variables[i].type) ? variables[i].type : payload_type;
	}
	return params;
}

static Node *
analyze(AqRule *rule, Node *expression, bool no_literals)
{
	Compilation c = {.text = rule->text, .payload_type = rule->payload_type};
	ParseState *pstate = make_parsestate(NULL);
	Node	   *node;

	pstate->p_sourcetext = rule->text;
	pstate->p_post_columnref_hook = resolve_column;
	pstate->p_ref_hook_state = &c;
	if (no_literals)
		pstate->p_paramref_hook = null_literal;
	node = transformExpr(pstate, expression, EXPR_KIND_CHECK_CONSTRAINT);
	node = coerce_to_boolean(pstate, node, "condition");
	assign_expr_collations(pstate, node);
	free_parsestate(pstate);
	return node;
}

/*
 * The parser reads literals by the input functions of their types, and so
 * evaluates constraints of domains.  Therefore the types are checked before,
 * with nulls in place of the literals.
 */
static void
check_types_of(AqRule *rule)
{
	Node	   *expression = parse_expression(rule->text, rule->payload_type);

	(void) without_literals(expression, NULL);
	(void) check_types(analyze(rule, expression, true), NULL);
}

static void
compile(AqRule *rule)
{
	Node	   *node;
	Expr	   *planned;

	aq_point("rule-compiles");
	if (aq_run_as_is_active())
		check_types_of(rule);
	node = analyze(rule, parse_expression(rule->text, rule->payload_type), false);
	rule->user_code = may_call_user_code(node, NULL) || contain_mutable_functions(node);
	planned = expression_planner((Expr *) node);
	rule->may_raise = rule->user_code || node_may_raise((Node *) planned, NULL);
	rule->params = make_params(rule->payload_type);
	rule->state = ExecInitExprWithParams(planned, rule->params);
	rule->context = CreateStandaloneExprContext();
	rule->context->ecxt_param_list_info = rule->params;
}

/*
 * The parser takes the condition for a check constraint, and some of its
 * messages say so, in the language of lc_messages.
 */
static const char *
in_our_words(const char *message)
{
	static const char *const forms[][2] = {
		{"cannot use subquery in check constraint", "cannot use subquery in condition"},
		{"aggregate functions are not allowed in check constraints", "aggregate functions are not allowed in conditions"},
		{"grouping operations are not allowed in check constraints", "grouping operations are not allowed in conditions"},
		{"window functions are not allowed in check constraints", "window functions are not allowed in conditions"},
		{"set-returning functions are not allowed in check constraints", "set-returning functions are not allowed in conditions"},
	};

	for (int i = 0; i < lengthof(forms); i++)
		if (strcmp(message, _(forms[i][0])) == 0)
			return forms[i][1];
	return message;
}

static void
compile_arg(void *arg)
{
	compile(arg);
}

/*
 * Compiles as the rule's role, because immutable functions and constraints of
 * domains are evaluated.
 */
static void
compile_as_role(AqRule *rule)
{
	if (OidIsValid(rule->role))
		aq_run_as(rule->role, compile_arg, rule);
	else
		aq_run_as_caller(compile_arg, rule);
}

/*
 * The role that runs a rule.  If the writer was dropped, the rule has no
 * privileges: it runs as a role of pgaq_oracle that has none, or (InvalidOid) not
 * at all.
 */
Oid
aq_rule_role_if_any(Oid writer)
{
	return SearchSysCacheExists1(AUTHOID, ObjectIdGetDatum(writer)) ? writer : get_role_oid("aq_user_role", true);
}

Oid
aq_rule_role(Oid writer)
{
	Oid			role = aq_rule_role_if_any(writer);

	if (!OidIsValid(role))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("the role that wrote the rule does not exist"),
				 aq_error_hint("Set the rule again with aq.alter_subscriber, as a role that exists.",
							   "Set the rule again with dbms_aqadm.alter_subscriber, as a role that exists.")));
	return role;
}

/* What helps against this error, which is not the same for each: what exists, what is allowed, or what the server says. */
static int
hint_for(const AqRule *rule, const ErrorData *error)
{
	switch (error->sqlerrcode)
	{
		case ERRCODE_UNDEFINED_COLUMN:
			return errhint("%sA condition is one SQL expression over priority, correlation (corrid), properties (user_prop), "
						   "payload (user_data), enqueue_time (enq_time), attempts (retry_count), sender (sender_name), "
						   "msgid, original_msgid, dead_letter (dead_letter ->> 'queue', 'consumer', 'reason', 'error', 'attempts', 'died'), "
						   "key, state, delay, expiration, exception_queue and the fields of a composite payload.",
						   rule->payload_type == JSONBOID ? "A key of the payload is read with payload ->> 'key'. " : "");
		case ERRCODE_UNDEFINED_FUNCTION:
		case ERRCODE_UNDEFINED_OBJECT:
			if (OidIsValid(rule->role))
				return errhint("Functions, operators and types are looked up in pg_catalog: qualify "
							   "others with their schema, and cast arguments that do not match.");
			break;
		case ERRCODE_SYNTAX_ERROR:
			return errhint("A condition is one SQL expression, for example: priority < 3 AND correlation LIKE 'order%%'.");
		case ERRCODE_DATATYPE_MISMATCH:
			return errhint("A condition is true or false: compare values, for example: priority < 3.");
		case ERRCODE_FEATURE_NOT_SUPPORTED:
		case ERRCODE_GROUPING_ERROR:
		case ERRCODE_WINDOWING_ERROR:
			return errhint("A condition is about one message, without subqueries, aggregates and sets. A function that it calls can read tables.");
		default:
			break;
	}
	return error->hint != NULL ? errhint("%s", error->hint) : 0;
}

/*
 * Raises the error again for the condition: its position is within the
 * condition, not within the command.
 */
static void
raise_invalid(const AqRule *rule, const ErrorData *error)
{
	ereport(ERROR,
			aq_error(AQ_ERR_RULE_INVALID, "condition \"%s\" is not valid: %s", rule->text, in_our_words(error->message)),
			hint_for(rule, error));
}

static void
compile_in_our_words(AqRule *rule)
{
	MemoryContext old = CurrentMemoryContext;
	bool		oracle = aq_error_oracle;

	aq_catalog_retain();
	PG_TRY();
	{
		compile_as_role(rule);
	}
	PG_CATCH();
	{
		ErrorData  *error;

		aq_catalog_release();
		MemoryContextSwitchTo(old);
		error = CopyErrorData();
		if (!aq_error_is_of_user(error->sqlerrcode) || error->sqlerrcode == ERRCODE_INSUFFICIENT_PRIVILEGE ||
			aq_error_is(error->sqlerrcode, AQ_ERR_RULE_INVALID))
			PG_RE_THROW();
		FlushErrorState();
		/* the settings of the rule's role still apply; the error has the caller's form */
		if (oracle)
			(void) aq_error_begin_oracle();
		raise_invalid(rule, error);
	}
	PG_END_TRY();
	aq_catalog_release();
}

/* Compiles or recompiles a rule; after an error the rule is unchanged. */
static void
make_code(AqRule *rule)
{
	AqRule		made = *rule;
	MemoryContext old;

	made.code = AllocSetContextCreate(CurrentMemoryContext, "pgaq rule code", ALLOCSET_SMALL_SIZES);
	made.changes = aq_run_as_code_changes();
	old = MemoryContextSwitchTo(made.code);
	compile_in_our_words(&made);
	MemoryContextSwitchTo(old);
	if (rule->code != NULL)
		MemoryContextDelete(rule->code);
	*rule = made;
	MemoryContextSetParent(rule->code, rule->memory);
}

/* Makes a rule in its own memory context, a child of the current one. */
static AqRule *
make_rule(const char *text, Oid payload_type, Oid role)
{
	MemoryContext memory = AllocSetContextCreate(CurrentMemoryContext, "pgaq rule", ALLOCSET_SMALL_SIZES);
	AqRule	   *rule = MemoryContextAllocZero(memory, sizeof(AqRule));

	rule->memory = memory;
	rule->text = MemoryContextStrdup(memory, text);
	rule->payload_type = payload_type;
	rule->role = role;
	make_code(rule);
	return rule;
}

AqRule *
aq_rule_compile(AqQueue *queue, const char *text, Oid role, MemoryContext context)
{
	AqRule	   *rule = make_rule(text, queue->payload_type, role);

	MemoryContextSetParent(rule->memory, context);
	return rule;
}

/* Recompiles a rule if functions, roles or types may have changed. */
static void
renew(AqRule *rule)
{
	if (rule->changes == aq_run_as_code_changes())
		return;
	if (OidIsValid(rule->role))
		rule->role = aq_rule_role(rule->role);
	make_code(rule);
}

/* --- evaluating ------------------------------------------------------------------ */

static void
set_param(AqRule *rule, AqRuleVariable variable, Datum value, bool isnull)
{
	rule->params->params[variable - 1].value = value;
	rule->params->params[variable - 1].isnull = isnull;
}

static void
set_message(AqRule *rule, const AqMessage *m)
{
	int64		lifetime = m->expires_at - (m->ready_at ? m->ready_at : m->enqueue_time);
	int			expiration = Min((lifetime + USECS_PER_SEC / 2) / USECS_PER_SEC, PG_INT32_MAX);

	set_param(rule, AQ_RULE_PRIORITY, Int32GetDatum(m->priority), false);
	set_param(rule, AQ_RULE_CORRELATION, PointerGetDatum(m->correlation), m->correlation == NULL);
	set_param(rule, AQ_RULE_PROPERTIES, PointerGetDatum(m->properties), m->properties == NULL);
	set_param(rule, AQ_RULE_PAYLOAD, m->payload, m->payload_null);
	set_param(rule, AQ_RULE_ENQUEUE_TIME, TimestampTzGetDatum(m->enqueue_time), false);
	set_param(rule, AQ_RULE_ATTEMPTS, Int32GetDatum(m->attempts), false);
	set_param(rule, AQ_RULE_SENDER, PointerGetDatum(m->sender), m->sender == NULL);
	set_param(rule, AQ_RULE_MSGID, UUIDPGetDatum(&m->id), false);
	set_param(rule, AQ_RULE_STATE, Int32GetDatum(m->state != 0 ? m->state : m->original_id && m->dead_letter ? 3 : 0), false);
	set_param(rule, AQ_RULE_DELAY, TimestampTzGetDatum(m->ready_at), m->ready_at == 0);
	set_param(rule, AQ_RULE_EXPIRATION, Int32GetDatum(expiration), m->expires_at == 0);
	set_param(rule, AQ_RULE_EXCEPTION_QUEUE, PointerGetDatum(m->exception_queue), m->exception_queue == NULL);
	set_param(rule, AQ_RULE_ORIGINAL_MSGID, UUIDPGetDatum(m->original_id), m->original_id == NULL);
	set_param(rule, AQ_RULE_DEAD_LETTER, PointerGetDatum(m->dead_letter), m->dead_letter == NULL);
	set_param(rule, AQ_RULE_KEY, PointerGetDatum(m->key), m->key == NULL);
}

static bool
evaluate(AqRule *rule, const AqMessage *message)
{
	Datum		value;
	bool		isnull;

	set_message(rule, message);
	ResetExprContext(rule->context);
	value = ExecEvalExprSwitchContext(rule->state, rule->context, &isnull);
	return !isnull && DatumGetBool(value);
}

typedef struct Evaluation
{
	AqRule	   *rule;
	const AqMessage *message;
	bool		result;
} Evaluation;

static void
evaluate_arg(void *arg)
{
	Evaluation *e = arg;

	e->result = evaluate(e->rule, e->message);
}

/*
 * Users' functions can do anything with the message's queue, even enqueue into
 * it, which evaluates rules recursively.
 */
static bool
evaluate_user_code(AqRule *rule, const AqMessage *message)
{
	Evaluation	e = {.rule = rule, .message = message};

	aq_catalog_retain();
	rule->busy = true;
	PG_TRY();
	{
		if (OidIsValid(rule->role))
			aq_run_as(rule->role, evaluate_arg, &e);
		else
			aq_run_as_caller(evaluate_arg, &e);
	}
	PG_FINALLY();
	{
		rule->busy = false;
		aq_catalog_release();
	}
	PG_END_TRY();
	return e.result;
}

/*
 * For a rule that is already being evaluated by an outer call: evaluates a
 * copy with its own parameters and memory.
 */
static bool
evaluate_copy(const AqRule *rule, const AqMessage *message)
{
	AqRule	   *copy = make_rule(rule->text, rule->payload_type, rule->role);
	bool		result = evaluate_user_code(copy, message);

	MemoryContextDelete(copy->memory);
	return result;
}

bool
aq_rule_runs_user_code(const AqRule *rule)
{
	return rule->user_code;
}

/*
 * Can the rule itself raise an error, apart from a lack of memory and similar
 * errors?
 */
bool
aq_rule_may_raise(const AqRule *rule)
{
	return rule->may_raise;
}

/* Null counts as false. */
bool
aq_rule_matches(AqRule *rule, const AqMessage *message)
{
	ErrorContextCallback callback;
	bool		result;

	callback.callback = condition_context;
	callback.arg = (void *) rule->text;
	callback.previous = error_context_stack;
	error_context_stack = &callback;

	if (rule->user_code && !rule->busy)
		renew(rule);
	if (!rule->user_code)
		result = evaluate(rule, message);
	else
		result = rule->busy ? evaluate_copy(rule, message) : evaluate_user_code(rule, message);

	error_context_stack = callback.previous;
	return result;
}
