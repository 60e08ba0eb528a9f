/*-------------------------------------------------------------------------
 *
 * context.c
 *	  What users see of errors: CONTEXT without internal calls of the extension,
 *	  but with the queues that tables of aq_data belong to, and hints for errors
 *	  of the server.
 *
 * Oracle's packages and some functions of schema aq are PL/pgSQL.  The CONTEXT
 * of an error in one of them has a line for each function and the text of each
 * statement, which do not help users.  Entries of users' functions are kept.
 *
 * The hook sees every error of the server just before it is sent, when the
 * transaction has not been aborted yet: it first searches for one word, and does
 * not raise errors, read the catalog or take locks.  What it allocates is small
 * and goes with the error.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/catalog/catalog_private.h"

#include <ctype.h>

#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "storage/lock.h"
#include "tcop/tcopprot.h"
#include "utils/builtins.h"
#include "utils/guc.h"

static emit_log_hook_type previous_hook;

#define FUNCTION_PREFIX "PL/pgSQL function "
#define STATEMENT_PREFIX "SQL statement \""
/* beginnings of the statements of transformation.c and receive.c */
#define PACKAGES_PREFIX STATEMENT_PREFIX "SELECT sys._"
#define RECEIVE_PREFIX STATEMENT_PREFIX "SELECT pg_catalog.array_agg(m) FROM aq.dequeue("

static bool
begins(const char *line, const char *prefix)
{
	return strncmp(line, prefix, strlen(prefix)) == 0;
}

/*
 * The next line at which an entry of the context begins, because statements
 * can have several lines.
 */
static char *
next_entry(char *entry)
{
	static const char *const prefixes[] = {
		FUNCTION_PREFIX, STATEMENT_PREFIX, "SQL function ", "SQL expression ", "PL/pgSQL expression ",
		"PL/pgSQL assignment "
	};

	for (char *line = strchr(entry, '\n'); line != NULL; line = strchr(line, '\n'))
	{
		line++;
		for (int i = 0; i < lengthof(prefixes); i++)
			if (begins(line, prefixes[i]))
				return line;
	}
	return NULL;
}

static bool
is_own_function(const char *entry)
{
	static const char *const schemas[] = {
		"aq.", "aq_internal.", "sys.", "dbms_aq.", "dbms_aqadm.", "dbms_aqelm.", "dbms_aqmigtool.", "dbms_transform.",
		"dbms_shared_pool.", "dbms_application_info.", "dbms_workload_repository."
	};

	if (!begins(entry, FUNCTION_PREFIX))
		return false;
	for (int i = 0; i < lengthof(schemas); i++)
		if (begins(entry + strlen(FUNCTION_PREFIX), schemas[i]))
			return true;
	return false;
}

/*
 * Does only the extension itself call the function?  Its name begins with an
 * underscore then.
 */
static bool
is_private_function(const char *entry)
{
	const char *name = is_own_function(entry) ? strchr(entry, '.') : NULL;

	return name != NULL && name[1] == '_';
}

static bool
is_function(const char *entry)
{
	return begins(entry, FUNCTION_PREFIX) || begins(entry, "SQL function ");
}

/*
 * Is the entry internal?  Entries are ordered from the innermost outwards, so
 * a statement is followed by the function that executes it.
 */
static bool
is_internal(const char *entry, const char *next)
{
	if (is_own_function(entry) || begins(entry, PACKAGES_PREFIX) || begins(entry, RECEIVE_PREFIX))
		return true;
	return next != NULL && !is_function(entry) && is_own_function(next);
}

static void
strip(ErrorData *error)
{
	char	   *to = error->context;
	char	   *next;
	bool		of_private = false; /* the entry calls a private function; SQL functions have no schema there */

	for (char *entry = error->context; entry != NULL; entry = next)
	{
		size_t		length;
		bool		internal = is_internal(entry, next_entry(entry)) || (of_private && begins(entry, "SQL function "));

		next = next_entry(entry);
		length = next != NULL ? (size_t) (next - entry) : strlen(entry);
		of_private = is_private_function(entry);
		if (internal)
			continue;
		memmove(to, entry, length);
		to += length;
	}
	if (to > error->context && to[-1] == '\n')
		to--;
	*to = '\0';
	if (to == error->context)
		error->context = NULL;
}

/*
 * The lock table is full.  Each created or dropped queue needs several locks
 * until its transaction ends, so there is another way than a larger table.
 */
static void
explain_locks(ErrorData *error)
{
	if (error->hint == NULL || strstr(error->hint, "max_locks_per_transaction") == NULL)
		return;
	if (aq_pending_has_ddl() || aq_utility_drops_pgaq())
		error->hint = psprintf("You might need to increase max_locks_per_transaction (now %d), or to create or drop fewer queues in one transaction. "
							   "CALL aq.drop_queues(...) drops many queues, and commits in between.", max_locks_per_xact);
}

/* The current role, if that can be told without the catalog. */
static const char *
role_name(void)
{
	const char *role = GetConfigOption("role", true, false);

	if (role == NULL || strcmp(role, "none") == 0)
		role = GetConfigOption("session_authorization", true, false);
	return role != NULL && !InLocalUserIdChange() ? quote_identifier(role) : "...";
}

/*
 * EXECUTE on two functions decides which roles create queues, so the server
 * itself refuses the others, and does not say what to do.  The message has the
 * function's name, in each language; the statement, or the context of one inside
 * a function, says that it is ours.
 */
static void
explain_permission(ErrorData *error)
{
	static const char *const names[] = {"create_queue_table", "create_queue"};

	for (int i = 0; i < lengthof(names) && error->hint == NULL; i++)
	{
		char	   *ours = psprintf("aq.%s", names[i]);

		if (strstr(error->message, names[i]) == NULL)
			continue;
		if (error->context != NULL && strstr(error->context, FUNCTION_PREFIX "dbms_aqadm.") != NULL)
			error->hint = psprintf("A superuser can grant it: GRANT aq_administrator_role TO %s.", role_name());
		else if ((debug_query_string != NULL && strstr(debug_query_string, ours) != NULL) ||
				 (error->context != NULL && strstr(error->context, ours) != NULL))
			error->hint = psprintf("A superuser can grant it: GRANT EXECUTE ON FUNCTION %s TO %s.", ours, role_name());
	}
}

/* A relation of aq_data in a text: its name's beginning and length, and the number in it. */
typedef struct Named
{
	const char *name;
	int			length;
	int32		number;
} Named;

/*
 * Is there a relation of aq_data at this place of the text?  Without the schema,
 * only the tables of a queue that the session knows: others can have such names.
 */
static bool
is_named(const char *text, const char *at, Named *named)
{
	bool		qualified = at - text >= 8 && strncmp(at - 8, "aq_data.", 8) == 0;
	size_t		digits = strspn(at + 1, "0123456789");
	const char *end = at + 1 + digits;
	size_t		pair = *end == '_' ? strspn(end + 1, "0123456789") : 0;

	if (strchr("qlbdtck", *at) == NULL || digits == 0 || digits > 9)
		return false;
	if (pair > 0)
		end += 1 + pair;
	if (isalnum((unsigned char) *end) || *end == '_')
		return false;
	*named = (Named) {.name = at, .length = end - at, .number = atoi(at + 1)};
	if (qualified)
		return true;
	return pair > 0 && (at == text || !(isalnum((unsigned char) at[-1]) || strchr("_.", at[-1]) != NULL)) &&
		aq_catalog_known_name(named->number) != NULL;
}

/* most of them that are explained */
#define MOST_NAMED 5

/* Finds relations of aq_data in the text that are not in the list yet; returns the new length of the list. */
static int
find_named(const char *text, Named *list, int n)
{
	for (const char *at = text; at != NULL && *at != '\0' && n < MOST_NAMED; at++)
	{
		bool		new = is_named(text, at, &list[n]);

		for (int i = 0; i < n && new; i++)
			new = list[i].number != list[n].number || *list[i].name != *list[n].name;
		n += new;
	}
	return n;
}

/*
 * Names of tables say nothing to users: which queues do they belong to?  By the
 * descriptions that the session has, because the catalog cannot be read here.
 */
static void
explain_tables(ErrorData *error)
{
	Named		list[MOST_NAMED];
	StringInfoData text;
	int			n = find_named(error->message, list, 0);

	n = find_named(error->detail, list, n);
	if (n == 0 && error->schema_name != NULL && error->table_name != NULL && strcmp(error->schema_name, "aq_data") == 0)
		n = find_named(psprintf("aq_data.%s", error->table_name), list, n);
	if (n == 0)
		return;
	initStringInfo(&text);
	for (int i = 0; i < n; i++)
	{
		bool		of_table = strchr("tck", *list[i].name) != NULL;
		const char *queue = of_table ? NULL : aq_catalog_known_name(list[i].number);

		appendStringInfo(&text, "%saq_data.%.*s belongs to ", i > 0 ? "\n" : "", list[i].length, list[i].name);
		if (queue != NULL)
			appendStringInfo(&text, "queue \"%s\"", queue);
		else
			appendStringInfo(&text, of_table ? "the queue table with queue_table_id %d in aq.queue_tables" : "the queue with queue_id %d in aq.queues",
							 list[i].number);
	}
	error->context = error->context != NULL ? psprintf("%s\n%s", error->context, text.data) : text.data;
}

static void
context_hook(ErrorData *error)
{
	if (error->sqlerrcode == ERRCODE_OUT_OF_MEMORY)
		explain_locks(error);
	if (error->sqlerrcode == ERRCODE_INSUFFICIENT_PRIVILEGE && error->message != NULL)
		explain_permission(error);
	if (error->context != NULL && (strstr(error->context, FUNCTION_PREFIX "aq.") != NULL ||
								   strstr(error->context, FUNCTION_PREFIX "aq_internal.") != NULL ||
								   strstr(error->context, FUNCTION_PREFIX "sys.") != NULL ||
								   strstr(error->context, FUNCTION_PREFIX "dbms_") != NULL ||
								   strstr(error->context, PACKAGES_PREFIX) != NULL ||
								   strstr(error->context, RECEIVE_PREFIX) != NULL))
		strip(error);
	if (error->elevel >= ERROR)
		explain_tables(error);
	if (previous_hook != NULL)
		previous_hook(error);
}

void
aq_context_init(void)
{
	previous_hook = emit_log_hook;
	emit_log_hook = context_hook;
}
