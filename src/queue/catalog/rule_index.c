/*-------------------------------------------------------------------------
 *
 * rule_index.c
 *	  Subscribers whose rule compares a value of the message with a constant.
 *
 * A topic can have a thousand rules like payload->>'region' = 'north'.  The rules
 * of this form are grouped by what they compare: for a message it is evaluated
 * once for all of a group, and the constant is looked up.  All other rules are
 * compiled and evaluated one by one (rule.c, calls/match.c).
 *
 * The form is so narrow that what a rule means is known without its compilation:
 * an unquoted name of a value of type text or jsonb, any number of -> and one ->>
 * with literals, the operator =, a literal.  The names of functions and operators
 * in rules are found in pg_catalog only, so that these are PostgreSQL's own, which
 * change nothing, are the same for every role, and raise no error that is the
 * rule's.  Text is equal byte by byte, because the default collation of a database
 * is deterministic.  A rule with a backslash is not of this form: how a literal is
 * read then depends on a setting.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/catalog/catalog_private.h"

#include "catalog/pg_type.h"
#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/memutils.h"

#define MAX_STEPS 8

typedef struct Step
{
	text	   *key;
	bool		as_text;		/* ->>, not -> */
} Step;

/* what is compared */
typedef struct Value
{
	AqRuleVariable variable;
	Oid			type;			/* of the result */
	int			nsteps;
	Step		steps[MAX_STEPS];
	char	   *identity;		/* the same for two values only if they are the same */
} Value;

typedef struct Entry
{
	Value	   *value;
	char	   *constant;
	int			position;
} Entry;

/* entries with the same value */
typedef struct Group
{
	const Value *value;
	const Entry *entries;
	int			n;
} Group;

struct AqRuleIndex
{
	int			nothers;
	AqConsumer **others;		/* consumers with other rules */
	int			nentries;
	Entry	   *entries;		/* by value, then by constant */
	int			ngroups;
	Group	   *groups;
	MemoryContext scratch;
};

/* --- reading a rule ------------------------------------------------------------- */

static void
skip_space(const char **p)
{
	*p += strspn(*p, " \t\n\r\f");
}

/* Returns whether this is the next token, and skips it and the space after it. */
static bool
take_operator(const char **p, const char *operator)
{
	size_t		length = strspn(*p, "~!@#^&|`?+-*/%<>=");

	if (length != strlen(operator) || strncmp(*p, operator, length) != 0)
		return false;
	*p += length;
	skip_space(p);
	return true;
}

/* A literal in quotes; NULL: there is none. */
static char *
take_literal(const char **p)
{
	StringInfoData s;

	if (**p != '\'')
		return NULL;
	initStringInfo(&s);
	for ((*p)++; **p != '\0'; (*p)++)
	{
		if (**p == '\'' && *++(*p) != '\'')
		{
			skip_space(p);
			return s.data;
		}
		appendStringInfoChar(&s, **p);
	}
	return NULL;
}

/* A name without quotes, in lower case; NULL: there is none. */
static char *
take_name(const char **p)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
	size_t		length = strspn(*p, letters);
	char	   *name;

	if (length == 0 || (**p >= '0' && **p <= '9') || IS_HIGHBIT_SET((*p)[length]) || (*p)[length] == '$')
		return NULL;
	name = pnstrdup(*p, length);
	for (char *c = name; *c != '\0'; c++)
		*c = pg_ascii_tolower((unsigned char) *c);
	*p += length;
	skip_space(p);
	return name;
}

static bool
take_steps(const char **p, Value *value, StringInfo identity)
{
	while (value->type == JSONBOID)
	{
		bool		as_text = take_operator(p, "->>");
		char	   *key;

		if (value->nsteps == MAX_STEPS || (!as_text && !take_operator(p, "->")) || (key = take_literal(p)) == NULL)
			return false;
		value->steps[value->nsteps++] = (Step) {cstring_to_text(key), as_text};
		appendStringInfo(identity, "%s%zu:%s", as_text ? ">>" : ">", strlen(key), key);
		value->type = as_text ? TEXTOID : JSONBOID;
	}
	return value->type == TEXTOID;
}

/* [tab.]name [-> 'key' ...] [->> 'key'], perhaps in parentheses; NULL: something else. */
static Value *
take_value(const char **p, Oid payload_type)
{
	bool		parentheses = **p == '(';
	Value	   *value = palloc0(sizeof(Value));
	StringInfoData identity;
	char	   *name;

	if (parentheses)
	{
		(*p)++;
		skip_space(p);
	}
	name = take_name(p);
	if (name != NULL && strcmp(name, "tab") == 0 && **p == '.')
	{
		(*p)++;
		skip_space(p);
		name = take_name(p);
	}
	if (name == NULL || (value->variable = aq_rule_variable(payload_type, name, &value->type)) == 0)
		return NULL;
	initStringInfo(&identity);
	appendStringInfo(&identity, "%d", value->variable);
	if (!take_steps(p, value, &identity))
		return NULL;
	if (parentheses && *(*p)++ != ')')
		return NULL;
	skip_space(p);
	value->identity = identity.data;
	return value;
}

/* Can the value be read from a message?  Others are never compared with a text. */
static bool
is_readable(const Value *value)
{
	return value->variable == AQ_RULE_CORRELATION || value->variable == AQ_RULE_SENDER || value->variable == AQ_RULE_KEY ||
		value->variable == AQ_RULE_PROPERTIES || value->variable == AQ_RULE_PAYLOAD;
}

/* Is the rule of the form value = constant, or constant = value? */
static bool
read_rule(const char *text, Oid payload_type, Entry *entry)
{
	const char *p = text;

	if (strchr(text, '\\') != NULL)
		return false;
	skip_space(&p);
	entry->constant = take_literal(&p);
	if (entry->constant != NULL && !take_operator(&p, "="))
		return false;
	entry->value = take_value(&p, payload_type);
	if (entry->value == NULL || !is_readable(entry->value))
		return false;
	if (entry->constant == NULL)
		entry->constant = take_operator(&p, "=") ? take_literal(&p) : NULL;
	return entry->constant != NULL && *p == '\0';
}

/* --- making the index ------------------------------------------------------------ */

static int
compare_entries(const void *a, const void *b)
{
	const Entry *left = a;
	const Entry *right = b;
	int			order = strcmp(left->value->identity, right->value->identity);

	return order != 0 ? order : strcmp(left->constant, right->constant);
}

static void
make_groups(AqRuleIndex *index)
{
	qsort(index->entries, index->nentries, sizeof(Entry), compare_entries);
	index->groups = palloc((index->nentries + 1) * sizeof(Group));
	for (int i = 0; i < index->nentries; i++)
	{
		const Entry *entry = &index->entries[i];

		if (i == 0 || strcmp(entry->value->identity, entry[-1].value->identity) != 0)
			index->groups[index->ngroups++] = (Group) {.value = entry->value, .entries = entry};
		index->groups[index->ngroups - 1].n++;
	}
}

/* A rule that no role can run fails for each message, so it is one of the others. */
static void
add_consumer(AqRuleIndex *index, AqConsumer *consumer, Oid payload_type)
{
	Entry	   *entry = &index->entries[index->nentries];

	if (read_rule(consumer->rule_text, payload_type, entry) && OidIsValid(aq_rule_role_if_any(consumer->rule_role)))
	{
		entry->position = consumer->position;
		index->nentries++;
	}
	else
		index->others[index->nothers++] = consumer;
}

/* Does nothing if the description has its index already. */
void
aq_rule_index_make(AqQueue *queue)
{
	MemoryContext memory;
	MemoryContext old;
	AqRuleIndex *index;

	if (queue->rule_index != NULL)
		return;
	memory = AllocSetContextCreate(CurrentMemoryContext, "pgaq rule index", ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(memory);
	index = palloc0(sizeof(AqRuleIndex));
	index->others = palloc((queue->nconsumers + 1) * sizeof(AqConsumer *));
	index->entries = palloc((queue->nconsumers + 1) * sizeof(Entry));
	for (int i = 0; i < queue->nconsumers; i++)
	{
		AqConsumer *consumer = &queue->consumers[i];

		if (consumer->subscriber && consumer->rule_text != NULL && (consumer->delivery & queue->delivery))
			add_consumer(index, consumer, queue->payload_type);
	}
	make_groups(index);
	index->scratch = AllocSetContextCreate(memory, "pgaq rule values", ALLOCSET_SMALL_SIZES);
	MemoryContextSwitchTo(old);
	MemoryContextSetParent(memory, queue->context);
	queue->rule_index = index;
}

/* The consumers whose rules are to be evaluated. */
int
aq_rule_index_others(const AqQueue *queue, AqConsumer *const **others)
{
	*others = queue->rule_index->others;
	return queue->rule_index->nothers;
}

/* --- finding ---------------------------------------------------------------------- */

static NullableDatum
read_variable(AqRuleVariable variable, const AqMessage *message)
{
	switch (variable)
	{
		case AQ_RULE_CORRELATION:
			return (NullableDatum) {PointerGetDatum(message->correlation), message->correlation == NULL};
		case AQ_RULE_KEY:
			return (NullableDatum) {PointerGetDatum(message->key), message->key == NULL};
		case AQ_RULE_SENDER:
			return (NullableDatum) {PointerGetDatum(message->sender), message->sender == NULL};
		case AQ_RULE_PROPERTIES:
			return (NullableDatum) {PointerGetDatum(message->properties), message->properties == NULL};
		default:
			Assert(variable == AQ_RULE_PAYLOAD);
			return (NullableDatum) {message->payload, message->payload_null};
	}
}

/* A function of PostgreSQL that is strict. */
static NullableDatum
take_step(const Step *step, NullableDatum from)
{
	NullableDatum result;

	LOCAL_FCINFO(fcinfo, 2);

	InitFunctionCallInfoData(*fcinfo, NULL, 2, InvalidOid, NULL, NULL);
	fcinfo->args[0] = from;
	fcinfo->args[1] = (NullableDatum) {PointerGetDatum(step->key), false};
	result.value = step->as_text ? jsonb_object_field_text(fcinfo) : jsonb_object_field(fcinfo);
	result.isnull = fcinfo->isnull;
	return result;
}

static NullableDatum
evaluate(const Value *value, const AqMessage *message)
{
	NullableDatum result = read_variable(value->variable, message);

	for (int i = 0; i < value->nsteps && !result.isnull; i++)
		result = take_step(&value->steps[i], result);
	return result;
}

/* Adds the positions of the entries with this constant. */
static Bitmapset *
find_constant(const Group *group, const char *constant, Bitmapset *positions)
{
	int			low = 0;
	int			high = group->n;

	while (low < high)
	{
		int			middle = (low + high) / 2;

		if (strcmp(group->entries[middle].constant, constant) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < group->n && strcmp(group->entries[low].constant, constant) == 0; low++)
		positions = bms_add_member(positions, group->entries[low].position);
	return positions;
}

/* Adds the positions of the subscribers whose rules of this form are true. */
Bitmapset *
aq_rule_index_find(const AqQueue *queue, const AqMessage *message, Bitmapset *positions)
{
	AqRuleIndex *index = queue->rule_index;
	MemoryContext caller = CurrentMemoryContext;

	for (int i = 0; i < index->ngroups; i++)
	{
		NullableDatum value;
		char	   *constant;

		MemoryContextSwitchTo(index->scratch);
		value = evaluate(index->groups[i].value, message);
		constant = value.isnull ? NULL : TextDatumGetCString(value.value);
		MemoryContextSwitchTo(caller);
		if (constant != NULL)
			positions = find_constant(&index->groups[i], constant, positions);
		MemoryContextReset(index->scratch);
	}
	return positions;
}
