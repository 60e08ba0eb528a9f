/*-------------------------------------------------------------------------
 *
 * link_ddl.c
 *	  Tells the link worker of the database when a transaction has changed
 *	  servers, user mappings, roles or privileges.
 *
 * The link worker sleeps without a transaction, so PostgreSQL's invalidations
 * alone do not wake it.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "link/link_private.h"

#include "miscadmin.h"
#include "nodes/nodes.h"

static bool changed;			/* by this transaction */

static bool
can_change_links(NodeTag tag)
{
	switch (tag)
	{
		case T_CreateForeignServerStmt:
		case T_AlterForeignServerStmt:
		case T_CreateUserMappingStmt:
		case T_AlterUserMappingStmt:
		case T_DropUserMappingStmt:
		case T_AlterOwnerStmt:
		case T_RenameStmt:
		case T_DropStmt:
		case T_DropOwnedStmt:
		case T_ReassignOwnedStmt:
		case T_GrantStmt:
		case T_GrantRoleStmt:
		case T_AlterRoleStmt:
		case T_DropRoleStmt:
			return true;
		default:
			return false;
	}
}

/* Never raises an error in a session that has attached. */
static void
tell_worker(void)
{
	AqLinkDatabase *db;
	bool		runs;

	aq_link_area_get(AQ_SHARED);
	db = aq_link_area_known(MyDatabaseId);
	runs = db != NULL && db->pid != 0;
	aq_link_area_free();
	if (runs)
		aq_link_area_post(db, AQ_LINK_DEFINITIONS);
	else if (db != NULL)
	{
		/* a stream may have got its server */
		pg_atomic_fetch_add_u32(&db->changes, 1);
		aq_jobs_post();
	}
}

static bool
has_used_links(void)
{
	bool		known;

	aq_link_area_get(AQ_SHARED);
	known = aq_link_area_known(MyDatabaseId) != NULL;
	aq_link_area_free();
	return known;
}

static void
command_done(NodeTag tag, bool commits_prepared)
{
	if (!can_change_links(tag) && !commits_prepared)
		return;
	/* now, because it may raise an error */
	aq_session_attach();
	if (has_used_links())
		aq_jobs_ensure_worker();
	changed = true;
}

static void
transaction_over(bool commit)
{
	if (changed && commit)
		tell_worker();
	changed = false;
}

static const AqXactOps transaction_ends = {.released = transaction_over};

void
aq_link_ddl_register(void)
{
	aq_utility_on_command(command_done);
	aq_xact_register(AQ_XACT_LINKS, &transaction_ends);
}
