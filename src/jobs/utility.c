/*-------------------------------------------------------------------------
 *
 * utility.c
 *	  The utility hook.  Before commands that require a database without
 *	  sessions, the worker is ended; the launcher starts it again afterwards.
 *	  After COMMIT PREPARED and ROLLBACK PREPARED, callbacks settle the
 *	  transaction.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "jobs/jobs_private.h"

#include <signal.h>

#include "access/xact.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_database.h"
#include "catalog/pg_extension.h"
#include "commands/dbcommands.h"
#include "commands/defrem.h"
#include "commands/extension.h"
#include "commands/user.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "storage/lmgr.h"
#include "tcop/utility.h"
#include "utils/acl.h"
#include "utils/syscache.h"

/* how long to wait for the end of a worker, in microseconds */
#define STOP_TIMEOUT ((int64) 10000000)

static ProcessUtility_hook_type previous_hook;
static AqCommandDone command_done[MAX_CALLBACKS];
static int	ncommand_done;
static AqPreparedEnded prepared_ended[MAX_CALLBACKS];
static int	nprepared_ended;
static AqOracleGone on_oracle_gone;
static AqReassigned on_reassigned;
static AqRolesChanged on_roles_changed;
static AqDropsPgaq on_drops_pgaq;
static Node *running;			/* the innermost command; NULL for CALL and DO */
static bool drops_pgaq;			/* DROP EXTENSION pgaq is running, or has failed in this transaction */

/* actions if the transaction commits */
static bool extension_gone;
static bool databases_changed;	/* a database was created or altered */
static bool queues_restored;
static bool roles_changed;

void
aq_utility_on_command(AqCommandDone callback)
{
	Assert(ncommand_done < MAX_CALLBACKS);
	command_done[ncommand_done++] = callback;
}

void
aq_utility_on_prepared_end(AqPreparedEnded callback)
{
	Assert(nprepared_ended < MAX_CALLBACKS);
	prepared_ended[nprepared_ended++] = callback;
}

void
aq_utility_on_oracle_gone(AqOracleGone callback)
{
	on_oracle_gone = callback;
}

void
aq_utility_on_reassigned(AqReassigned callback)
{
	on_reassigned = callback;
}

void
aq_utility_on_roles_changed(AqRolesChanged callback)
{
	on_roles_changed = callback;
}

void
aq_utility_on_drops_pgaq(AqDropsPgaq callback)
{
	on_drops_pgaq = callback;
}

Node *
aq_utility_command(void)
{
	return running;
}

/*
 * The database that the command requires to have no sessions, or InvalidOid.
 */
static Oid
wanted_database(Node *command)
{
	const char *name = NULL;

	switch (nodeTag(command))
	{
		case T_DropdbStmt:
			name = ((DropdbStmt *) command)->dbname;
			break;
		case T_RenameStmt:
			if (((RenameStmt *) command)->renameType == OBJECT_DATABASE)
				name = ((RenameStmt *) command)->subname;
			break;
		case T_AlterDatabaseStmt:
			{
				AlterDatabaseStmt *stmt = (AlterDatabaseStmt *) command;
				ListCell   *lc;

				foreach(lc, stmt->options)
					if (strcmp(((DefElem *) lfirst(lc))->defname, "tablespace") == 0)
						name = stmt->dbname;
				break;
			}
		case T_CreatedbStmt:
			{
				ListCell   *lc;

				name = "template1";
				foreach(lc, ((CreatedbStmt *) command)->options)
				{
					DefElem    *option = lfirst(lc);

					if (strcmp(option->defname, "template") == 0 && option->arg)
						name = defGetString(option);
				}
				break;
			}
		default:
			break;
	}
	return name ? get_database_oid(name, true) : InvalidOid;
}

static bool
is_template(Oid database)
{
	HeapTuple	tuple = SearchSysCache1(DATABASEOID, ObjectIdGetDatum(database));
	bool		template = false;

	if (HeapTupleIsValid(tuple))
	{
		template = ((Form_pg_database) GETSTRUCT(tuple))->datistemplate;
		ReleaseSysCache(tuple);
	}
	return template;
}

static bool
may_create_databases(void)
{
	HeapTuple	tuple;
	bool		may = superuser();

	if (!may)
	{
		tuple = SearchSysCache1(AUTHOID, ObjectIdGetDatum(GetUserId()));
		if (HeapTupleIsValid(tuple))
		{
			may = ((Form_pg_authid) GETSTRUCT(tuple))->rolcreatedb;
			ReleaseSysCache(tuple);
		}
	}
	return may;
}

/*
 * May the role run this command on the database?  A template may be copied by
 * roles that do not own it.
 */
static bool
may_have_database(Node *command, Oid database)
{
	return aq_object_owned(DatabaseRelationId, database) ||
		(IsA(command, CreatedbStmt) && is_template(database) && may_create_databases());
}

/*
 * Can the command create or drop an extension, directly or by dropping an
 * object that it depends on?  Then sets *pgaq and *oracle to the current ones,
 * or InvalidOid.
 */
static bool
concerns_extension(Node *command, Oid *pgaq, Oid *oracle)
{
	bool		concerns = IsA(command, CreateExtensionStmt) || IsA(command, DropOwnedStmt);

	if (IsA(command, DropStmt))
	{
		ObjectType	type = ((DropStmt *) command)->removeType;

		concerns = type == OBJECT_EXTENSION || type == OBJECT_SCHEMA;
	}
	if (concerns)
	{
		*pgaq = get_extension_oid("pgaq", true);
		*oracle = get_extension_oid("pgaq_oracle", true);
	}
	return concerns;
}

static bool
names_pgaq(Node *command)
{
	ListCell   *lc;

	if (!IsA(command, DropStmt) || ((DropStmt *) command)->removeType != OBJECT_EXTENSION)
		return false;
	foreach(lc, ((DropStmt *) command)->objects)
		if (strcmp(strVal(lfirst(lc)), "pgaq") == 0)
			return true;
	return false;
}

/* Called before the command; extension: the current one, or InvalidOid. */
static void
begin_drop(DropStmt *command, Oid extension)
{
	drops_pgaq = true;
	/* without CASCADE it fails if there are queues */
	if (OidIsValid(extension) && command->behavior == DROP_CASCADE && aq_object_owned(ExtensionRelationId, extension) && on_drops_pgaq)
	{
		aq_session_attach();
		on_drops_pgaq();
	}
}

/* For an error that has ended DROP EXTENSION pgaq. */
bool
aq_utility_drops_pgaq(void)
{
	return drops_pgaq;
}

/*
 * Called after such a command.  If the extension was dropped, the session
 * attaches now, because that may fail, which is not allowed after the commit.
 * If it was created, the session holds a lock until its transaction ends, so
 * that the worker, which cannot see the extension yet, does not regard it as
 * dropped: see aq_job_extension().
 */
static void
note_extension(Oid before)
{
	Oid			extension = get_extension_oid("pgaq", true);

	if (extension == before)
		return;
	aq_session_attach();
	if (OidIsValid(extension))
		LockRelationOid(ExtensionRelationId, RowExclusiveLock);
	else
		extension_gone = true;
}

/* The same for pgaq_oracle; if it was not installed before, nothing is left of it. */
static void
note_oracle(Oid before)
{
	Oid			pgaq = get_extension_oid("pgaq", true);

	if (OidIsValid(before) && OidIsValid(pgaq) && on_oracle_gone && !OidIsValid(get_extension_oid("pgaq_oracle", true)))
		on_oracle_gone(pgaq);
}

/* The command has succeeded: the caller has the privileges of all these roles. */
static void
note_reassigned(ReassignOwnedStmt *command)
{
	Oid			to = get_rolespec_oid(command->newrole, false);
	ListCell   *lc;

	if (on_reassigned != NULL && OidIsValid(get_extension_oid("pgaq", true)))
		foreach(lc, roleSpecsToIds(command->roles))
			on_reassigned(lfirst_oid(lc), to);
}

static bool
is_prepared_end(Node *command)
{
	TransactionStmtKind kind;

	if (!IsA(command, TransactionStmt))
		return false;
	kind = ((TransactionStmt *) command)->kind;
	return kind == TRANS_STMT_COMMIT_PREPARED || kind == TRANS_STMT_ROLLBACK_PREPARED;
}

/*
 * Attaches now, because that may fail, which is not allowed after the commit.
 */
void
aq_utility_note_restored(void)
{
	if (aq_jobs_area == NULL)
		return;					/* the library was not preloaded */
	aq_session_attach();
	queues_restored = true;
}

static bool
changes_roles(NodeTag tag)
{
	return tag == T_DropRoleStmt || tag == T_AlterRoleStmt || tag == T_AlterRoleSetStmt || tag == T_AlterDatabaseSetStmt;
}

/* Attaches for the same reason. */
static void
note_roles(void)
{
	aq_session_attach();
	roles_changed = true;
}

/*
 * The effect of COMMIT PREPARED is not noted: a process that has started since
 * PREPARE TRANSACTION keeps the old settings of its role until it ends.
 */
static void
transaction_over(bool commit)
{
	if (extension_gone && commit)
		aq_jobs_post_check();
	if (queues_restored && commit)
		aq_jobs_post_restored();
	if (databases_changed && commit)
		aq_jobs_post_databases();
	if (roles_changed && commit && on_roles_changed)
		on_roles_changed();
	extension_gone = queues_restored = databases_changed = roles_changed = drops_pgaq = false;
}

static void
stop_worker(AqDatabase *db)
{
	int64		deadline = aq_clock_us() + STOP_TIMEOUT;

	aq_cond_prepare(&db->ended);
	while (db->worker_pid != 0 && aq_clock_us() < deadline)
	{
		kill(db->worker_pid, SIGTERM);
		aq_cond_sleep(&db->ended, AQ_EVENT_QUEUE_DDL, db->oid, db->worker_pid, 0, 1000000);
	}
	aq_cond_cancel();
}

static const AqXactOps transaction_ends = {.commit = aq_stuck_committed, .released = transaction_over};

static void
utility_hook(PlannedStmt *pstmt, const char *query, bool read_only_tree,
			 ProcessUtilityContext context, ParamListInfo params,
			 QueryEnvironment *env, DestReceiver *dest, QueryCompletion *qc)
{
	Node	   *command = pstmt->utilityStmt;
	Node	   *outer = running;
	Oid			oid = wanted_database(command);
	AqDatabase *db = NULL;
	Oid			extension = InvalidOid;
	Oid			oracle = InvalidOid;

	/* the parse tree may be freed when the command has run */
	NodeTag		tag = nodeTag(command);
	bool		concerned = concerns_extension(command, &extension, &oracle);
	bool		ends_prepared = is_prepared_end(command);
	bool		commits_prepared = ends_prepared && ((TransactionStmt *) command)->kind == TRANS_STMT_COMMIT_PREPARED;
	Node	   *reassigned = IsA(command, ReassignOwnedStmt) ? copyObject(command) : NULL;
	int			statement = aq_server_stat_enter(context == PROCESS_UTILITY_TOPLEVEL, context != PROCESS_UTILITY_SUBCOMMAND);

	aq_owner_guard(command);
	if (ends_prepared)
		aq_session_attach();	/* before the command, because it may fail */
	if (OidIsValid(oid) && may_have_database(command, oid))
		db = aq_jobs_stop(oid);

	if (names_pgaq(command))
		begin_drop((DropStmt *) command, extension);
	/* a ROLLBACK in a procedure may free the CALL that runs it */
	running = tag == T_CallStmt || tag == T_DoStmt ? NULL : command;
	PG_TRY();
	{
		if (db != NULL)
		{
			/* first: it starts the other processes */
			stop_worker(db);
			aq_jobs_database_wanted(oid);
			aq_point("database-wanted");
		}
		if (previous_hook)
			previous_hook(pstmt, query, read_only_tree, context, params, env, dest, qc);
		else
			standard_ProcessUtility(pstmt, query, read_only_tree, context, params, env, dest, qc);

		if (tag == T_DropdbStmt && OidIsValid(oid))
		{
			aq_jobs_database_gone(oid);
			aq_jobs_forget_database(oid, false);
		}
	}
	PG_FINALLY();
	{
		running = outer;
	}
	PG_END_TRY();
	drops_pgaq = false;
	if (db != NULL)
		aq_jobs_stop_over(db, oid);

	databases_changed |= tag == T_CreatedbStmt || tag == T_AlterDatabaseStmt;
	for (int i = 0; i < ncommand_done; i++)
		command_done[i](tag, commits_prepared);
	if (concerned)
	{
		note_oracle(oracle);
		note_extension(extension);
	}
	if (changes_roles(tag))
		note_roles();
	if (reassigned != NULL)
		note_reassigned((ReassignOwnedStmt *) reassigned);
	if (ends_prepared)
	{
		for (int i = 0; i < nprepared_ended; i++)
			prepared_ended[i]();
		aq_jobs_post_check();	/* the prepared transaction may have dropped the extension */
	}
	aq_server_stat_leave(statement);
}

void
aq_utility_install(void)
{
	previous_hook = ProcessUtility_hook;
	ProcessUtility_hook = utility_hook;
	aq_xact_register(AQ_XACT_JOBS, &transaction_ends);
}
