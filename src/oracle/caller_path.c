/*-------------------------------------------------------------------------
 *
 * caller_path.c
 *	  The search_path of the callers of Oracle's packages.
 *
 * The functions of the packages resolve operators and functions in pg_catalog
 * only: each has the option SET search_path.  Names passed by the caller must
 * be looked up in the caller's search_path, which is the value that the option
 * has saved.  The option's value identifies the packages:
 * on_call() changes it for all other functions that set it.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "oracle/oracle_private.h"

#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

/* search_path of the functions in sql/oracle/packages */
#define PATH_OF_PACKAGES "pg_catalog, pg_catalog, pg_temp"

const char *
aq_caller_path(void)
{
	return aq_compat_search_path_behind(PATH_OF_PACKAGES);
}

/* Does the function have SET options, and is it not one of the packages'? */
static bool
has_own_settings(Oid function)
{
	static const char *const packages[] = {
		"sys", "dbms_aq", "dbms_aqadm", "dbms_aqelm", "dbms_aqmigtool", "dbms_jms_plsql", "dbms_shared_pool", "dbms_transform"
	};
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	bool		has_settings;
	char	   *schema;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u", function);
	has_settings = !heap_attisnull(tuple, Anum_pg_proc_proconfig, NULL);
	schema = get_namespace_name(((Form_pg_proc) GETSTRUCT(tuple))->pronamespace);
	ReleaseSysCache(tuple);
	for (int i = 0; i < lengthof(packages); i++)
		if (schema != NULL && strcmp(schema, packages[i]) == 0)
			return false;
	return has_settings;
}

/*
 * Called when a function begins, after its SET options were applied.  If it
 * has the packages' path but is not one of their functions, it gets the same
 * path in another spelling until it ends.  So the packages look up names that
 * it passes in its own path, not in its caller's.
 */
static void
on_call(Oid function)
{
	if (strcmp(namespace_search_path, PATH_OF_PACKAGES) == 0 && has_own_settings(function))
		aq_process_pin_parameter("search_path", "pg_catalog, pg_temp");
}

void
aq_caller_path_init(void)
{
	static const AqCallerPath caller = {.get = aq_caller_path, .on_call = on_call};

	aq_run_as_on_caller(&caller);
}

/* Sets the caller's search_path, until aq_caller_path_leave() or an error. */
int
aq_caller_path_use(void)
{
	const char *path = aq_caller_path();
	int			nest = NewGUCNestLevel();

	if (path != namespace_search_path)
		aq_process_pin_parameter("search_path", path);
	return nest;
}

/* The path of the packages' own functions, for what they execute; until aq_caller_path_leave(), or an error. */
int
aq_caller_path_pin(void)
{
	int			nest = NewGUCNestLevel();

	aq_process_pin_parameter("search_path", PATH_OF_PACKAGES);
	return nest;
}

void
aq_caller_path_leave(int nest)
{
	AtEOXact_GUC(true, nest);
}

/* The OIDs of its schemas. */
List *
aq_caller_path_schemas(bool implicit)
{
	int			nest = aq_caller_path_use();
	List	   *schemas = fetch_search_path(implicit);

	aq_caller_path_leave(nest);
	return schemas;
}

PG_FUNCTION_INFO_V1(aq_caller_path_view);
Datum
aq_caller_path_view(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(cstring_to_text(aq_caller_path()));
}

/* Like current_schemas(implicit), for the caller's search_path. */
PG_FUNCTION_INFO_V1(aq_caller_path_schema_names);
Datum
aq_caller_path_schema_names(PG_FUNCTION_ARGS)
{
	List	   *schemas = aq_caller_path_schemas(PG_GETARG_BOOL(0));
	Datum	   *names = palloc((list_length(schemas) + 1) * sizeof(Datum));
	int			n = 0;
	ListCell   *cell;

	foreach(cell, schemas)
	{
		char	   *name = get_namespace_name(lfirst_oid(cell));

		if (name != NULL)
			names[n++] = CStringGetTextDatum(name);
	}
	PG_RETURN_ARRAYTYPE_P(construct_array(names, n, TEXTOID, -1, false, TYPALIGN_INT));
}

/* Like to_regtype(), with the caller's search_path. */
PG_FUNCTION_INFO_V1(aq_caller_path_type);
Datum
aq_caller_path_type(PG_FUNCTION_ARGS)
{
	int			nest = aq_caller_path_use();

	LOCAL_FCINFO(call, 1);
	Datum		type;

	InitFunctionCallInfoData(*call, NULL, 1, InvalidOid, NULL, NULL);
	call->args[0].value = PG_GETARG_DATUM(0);
	call->args[0].isnull = false;
	type = to_regtype(call);
	aq_caller_path_leave(nest);
	fcinfo->isnull = call->isnull;
	return type;
}
