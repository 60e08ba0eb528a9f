/*-------------------------------------------------------------------------
 *
 * owner.c
 *	  The role "pgaq", which owns the tables of the extension, and as which
 *	  background workers run their jobs.
 *
 * It has no attributes and no members.  A role with CREATEROLE could change
 * that, before PostgreSQL 16 even make itself a member: so commands that would
 * are refused here, in every database, also in those without the extension.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "jobs/jobs_private.h"

#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#define OWNER_ROLE "pgaq"

Oid
aq_owner_table(const char *name)
{
	Oid			schema = get_namespace_oid("aq_internal", true);

	return OidIsValid(schema) ? get_relname_relid(name, schema) : InvalidOid;
}

/*
 * The owner of the catalog tables; InvalidOid: the extension does not exist.
 * Not the role of that name: a superuser may have reassigned them.
 */
Oid
aq_owner_role(void)
{
	Oid			table = aq_owner_table("queue");
	HeapTuple	tuple = OidIsValid(table) ? SearchSysCache1(RELOID, ObjectIdGetDatum(table)) : NULL;
	Oid			owner;

	if (!HeapTupleIsValid(tuple))
		return InvalidOid;
	owner = ((Form_pg_class) GETSTRUCT(tuple))->relowner;
	ReleaseSysCache(tuple);
	return owner;
}

/* --- workers -------------------------------------------------------------------------------- */

/*
 * The rest of the transaction is that of the owner; its end restores the role.
 * The context forbids SET ROLE and SET SESSION AUTHORIZATION, with which the
 * process could become what it has connected as.  Without the extension a
 * worker runs no SQL.
 */
void
aq_owner_enter(void)
{
	Oid			role = aq_owner_role();

	if (OidIsValid(role))
		SetUserIdAndSecContext(role, SECURITY_LOCAL_USERID_CHANGE);
}

/* After the commit; an abort does it itself. */
void
aq_owner_leave(void)
{
	SetUserIdAndSecContext(GetSessionUserId(), 0);
}

/* --- commands on roles ---------------------------------------------------------------------- */

static bool
is_owner(const RoleSpec *role)
{
	return role != NULL && role->roletype == ROLESPEC_CSTRING && strcmp(role->rolename, OWNER_ROLE) == 0;
}

static bool
has_owner(List *roles)
{
	ListCell   *lc;

	foreach(lc, roles)
		if (IsA(lfirst(lc), RoleSpec) && is_owner(lfirst(lc)))
			return true;
	return false;
}

/* GRANT pgaq TO, GRANT ... TO pgaq. */
static bool
grants_owner(const GrantRoleStmt *grant)
{
	ListCell   *lc;

	foreach(lc, grant->granted_roles)
		if (strcmp(((AccessPriv *) lfirst(lc))->priv_name, OWNER_ROLE) == 0)
			return true;
	return has_owner(grant->grantee_roles);
}

/* Is it in an option's list of roles? */
static bool
options_name_owner(List *options)
{
	ListCell   *lc;

	foreach(lc, options)
	{
		DefElem    *option = lfirst(lc);

		if (option->arg != NULL && IsA(option->arg, List) && has_owner((List *) option->arg))
			return true;
	}
	return false;
}

static bool
concerns_owner(Node *command)
{
	switch (nodeTag(command))
	{
		case T_GrantRoleStmt:
			return grants_owner((GrantRoleStmt *) command);
		case T_CreateRoleStmt:
			/* the role itself, which the extension makes; IN ROLE pgaq, ROLE pgaq, ADMIN pgaq */
			return strcmp(((CreateRoleStmt *) command)->role, OWNER_ROLE) == 0 ||
				options_name_owner(((CreateRoleStmt *) command)->options);
		case T_AlterRoleStmt:
			/* also ALTER GROUP x ADD USER pgaq */
			return is_owner(((AlterRoleStmt *) command)->role) || options_name_owner(((AlterRoleStmt *) command)->options);
		case T_AlterRoleSetStmt:
			return is_owner(((AlterRoleSetStmt *) command)->role);
		case T_DropRoleStmt:
			return has_owner(((DropRoleStmt *) command)->roles);
		case T_RenameStmt:
			{
				RenameStmt *rename = (RenameStmt *) command;

				return rename->renameType == OBJECT_ROLE &&
					(strcmp(rename->subname, OWNER_ROLE) == 0 || strcmp(rename->newname, OWNER_ROLE) == 0);
			}
		default:
			return false;
	}
}

/* Called before each utility command. */
void
aq_owner_guard(Node *command)
{
	if (concerns_owner(command) && !superuser())
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("must be superuser to create, grant, alter or drop role \"%s\"", OWNER_ROLE),
				 errdetail("It owns the tables of the extension pgaq and has no members.")));
}
