/*-------------------------------------------------------------------------
 *
 * oracle_gone.c
 *	  DROP EXTENSION pgaq_oracle takes its grants on functions of pgaq along.
 *
 * pgaq_oracle lets its role aq_administrator_role execute functions of schema aq.
 * Those grants are entries of objects of pgaq, so PostgreSQL keeps them when
 * pgaq_oracle alone is dropped: the role could still create queues, could not be
 * dropped, and dumps would name it.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "oracle/oracle_private.h"

#include "commands/extension.h"
#include "miscadmin.h"
#include "utils/acl.h"

#define COMPANION_ROLE "aq_administrator_role"

/* The commands that revoke what the role has, and what it passed on; NULL: it has nothing. */
static char *
revocations(void)
{
	return aq_sql_text("SELECT string_agg(format('REVOKE ALL ON ROUTINE %s FROM " COMPANION_ROLE " CASCADE', p.oid::regprocedure), '; ') "
					   "FROM pg_proc p, aclexplode(p.proacl) a "
					   "WHERE p.pronamespace = 'aq'::regnamespace AND a.grantee = '" COMPANION_ROLE "'::regrole");
}

/* As part of an extension's script, so that the privileges that pg_dump takes as initial follow. */
static void
run_in_script(const char *commands, Oid extension)
{
	bool		was_creating = creating_extension;
	Oid			was_current = CurrentExtensionObject;

	creating_extension = true;
	CurrentExtensionObject = extension;
	PG_TRY();
	{
		aq_sql_revoke(commands);
	}
	PG_FINALLY();
	{
		creating_extension = was_creating;
		CurrentExtensionObject = was_current;
	}
	PG_END_TRY();
}

static void
oracle_gone(Oid pgaq)
{
	char	   *commands;

	/* pg_upgrade drops extensions before it restores what they consist of */
	if (IsBinaryUpgrade || !OidIsValid(get_role_oid(COMPANION_ROLE, true)))
		return;
	commands = revocations();
	if (commands != NULL)
		run_in_script(commands, pgaq);
}

void
aq_oracle_gone_init(void)
{
	aq_utility_on_oracle_gone(oracle_gone);
}
