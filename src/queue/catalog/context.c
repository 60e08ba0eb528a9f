/*-------------------------------------------------------------------------
 *
 * context.c
 *	  What users see of errors: CONTEXT without internal calls of the extension,
 *	  and hints for errors of the server.
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

#include "storage/lock.h"

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

static void
context_hook(ErrorData *error)
{
	if (error->sqlerrcode == ERRCODE_OUT_OF_MEMORY)
		explain_locks(error);
	if (error->context != NULL && (strstr(error->context, FUNCTION_PREFIX "aq.") != NULL ||
								   strstr(error->context, FUNCTION_PREFIX "aq_internal.") != NULL ||
								   strstr(error->context, FUNCTION_PREFIX "sys.") != NULL ||
								   strstr(error->context, FUNCTION_PREFIX "dbms_") != NULL ||
								   strstr(error->context, PACKAGES_PREFIX) != NULL ||
								   strstr(error->context, RECEIVE_PREFIX) != NULL))
		strip(error);
	if (previous_hook != NULL)
		previous_hook(error);
}

void
aq_context_init(void)
{
	previous_hook = emit_log_hook;
	emit_log_hook = context_hook;
}
