/*-------------------------------------------------------------------------
 *
 * sql.c
 *	  Commands run as the owner of the extension.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/catalog/catalog_private.h"

#include "access/htup_details.h"
#include "catalog/pg_class.h"
#include "commands/tablespace.h"
#include "catalog/pg_tablespace.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/guc.h"
#include "utils/syscache.h"

static Oid
extension_owner(void)
{
	HeapTuple	tuple;
	Oid			owner;

	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(aq_schema_relation("queue")));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for relation aq_internal.queue");
	owner = ((Form_pg_class) GETSTRUCT(tuple))->relowner;
	ReleaseSysCache(tuple);
	return owner;
}

static bool
may_use_default_tablespace(void)
{
	Oid			tablespace = GetDefaultTablespace(RELPERSISTENCE_PERMANENT, false);

	return !OidIsValid(tablespace) || aq_object_allows(TableSpaceRelationId, tablespace, ACL_CREATE);
}

/*
 * Runs one command through SPI as the owner of the extension, with names
 * looked up only in pg_catalog.  Returns SPI's result code.  If read_only is
 * true, SPI stays connected, so that the caller can read SPI_tuptable, and
 * must call SPI_finish().
 */
int
aq_sql_run(const char *command, int nargs, Oid *types, Datum *values,
		   const char *nulls, bool read_only)
{
	Oid			save_user;
	int			save_context;
	int			nest = NewGUCNestLevel();
	int			result;

	/* the caller's default_tablespace counts only if the caller may use it */
	if (!may_use_default_tablespace())
		(void) set_config_option("default_tablespace", "", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	GetUserIdAndSecContext(&save_user, &save_context);
	SetUserIdAndSecContext(extension_owner(),
						   save_context | SECURITY_LOCAL_USERID_CHANGE);
	(void) set_config_option("search_path", "pg_catalog, pg_temp",
							 PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	(void) set_config_option("default_table_access_method", "heap",
							 PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);

	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	result = SPI_execute_with_args(command, nargs, types, values, nulls, false, 0);
	if (result < 0)
		elog(ERROR, "could not execute \"%s\": %s", command, SPI_result_code_string(result));
	if (!read_only)
		SPI_finish();

	AtEOXact_GUC(true, nest);
	SetUserIdAndSecContext(save_user, save_context);
	return result;
}

/* Runs a command that changes data. */
void
aq_sql_change(const char *command, int nargs, Oid *types, Datum *values, const char *nulls)
{
	(void) aq_sql_run(command, nargs, types, values, nulls, false);
}

/* Does the query return a row? */
bool
aq_sql_finds(const char *query)
{
	bool		found;

	aq_sql_run(query, 0, NULL, NULL, NULL, true);
	found = SPI_processed > 0;
	SPI_finish();
	return found;
}
