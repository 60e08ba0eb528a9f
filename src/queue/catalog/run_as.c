/*-------------------------------------------------------------------------
 *
 * run_as.c
 *	  Running users' code in other roles' sessions, with its writer's
 *	  privileges.
 *
 * Rules, the constraints of payload types and subscribers' transformations are
 * written by one role and run in the sessions of other roles.  The session's
 * user must not influence their meaning, and no third role must gain
 * privileges:
 *
 *	- The operation is restricted: no SET ROLE, no temporary objects, nothing
 *	  deferred; settings end with it.
 *	- Names are looked up in pg_catalog, then in pg_temp.
 *	- The settings of setting_list.h have fixed values, not the session's or
 *	  the server's: so the meaning of an expression, the text form of values
 *	  and the time zone are the same in every session.  TimeZone is UTC because
 *	  a session cannot tell whether its own value is the server's or comes from
 *	  its client or role.  Only a payload that the session passes as text is
 *	  read with the session's settings, as in a cast; the constraints in its
 *	  type are evaluated with these.
 *	- PostgreSQL always looks up relations in pg_temp, whatever search_path is,
 *	  and that schema belongs to the session: so its relations cannot be used.
 *	- Functions run as the role only if their owner has the role's privileges
 *	  anyway.  Casts, operators, constraints and triggers call functions that
 *	  the code does not name.  The same applies to constraints of domains,
 *	  which can do harm even with built-in functions.
 *	- Functions are checked when they are prepared for a call.  PL/pgSQL keeps
 *	  prepared expressions until the end of the transaction, so those of other
 *	  roles are discarded first; so are the server's copies of the constraints
 *	  of domains, in which SQL functions may be inlined.  The extension's own
 *	  prepared functions are prepared again when functions, roles or their
 *	  types have changed: see aq_run_as_code_changes.
 *	- Queries do not use parallel workers, in which these checks are not made.
 *	- The session's open cursors cannot be read, and large objects not by descriptor.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/catalog/catalog_private.h"

#include "access/gin.h"
#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/namespace.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_class.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "parser/parse_expr.h"
#include "parser/parser.h"
#include "pgtime.h"
#include "tsearch/ts_cache.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/bytea.h"
#include "utils/float.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/plancache.h"
#include "utils/portal.h"
#include "utils/rls.h"
#include "utils/syscache.h"
#include "utils/typcache.h"
#include "utils/xml.h"

/* utils/pg_locale.h declares these, but needs the header files of ICU */
extern PGDLLIMPORT char *locale_monetary;
extern PGDLLIMPORT char *locale_numeric;
extern PGDLLIMPORT char *locale_time;

#define PINNED_PATH "pg_catalog, pg_temp"

/* the role whose code runs */
static Oid	acting_role;
static int	acting_depth;		/* nesting depth of aq_run_as */

/*
 * owners of the functions that were prepared since plans were last discarded
 */
#define MAX_OWNERS 16
static Oid	ready_owners[MAX_OWNERS];
static int	nready_owners;		/* above MAX_OWNERS: any role may be included */

/* see aq_run_as_code_changes */
static uint64 changes = 1;
static HTAB *types_used;

static const AqCallerPath *caller_path;

static needs_fmgr_hook_type previous_needs_hook;
static fmgr_hook_type previous_fmgr_hook;
static ExecutorCheckPerms_hook_type previous_perms_hook;
static object_access_hook_type previous_access_hook;

/* --- changes ------------------------------------------------------------------------ */

/*
 * A type in use: a row of pg_type, by its hash value, or the relation of a
 * composite type.
 */
typedef struct TypeUsed
{
	bool		is_relation;
	uint32		value;
} TypeUsed;

/*
 * A number that changes when prepared functions have to be prepared again,
 * because functions, operators, casts, schemas or roles have changed, or a
 * type of which code here makes values.  Read it before preparing a function.
 */
uint64
aq_run_as_code_changes(void)
{
	return changes;
}

static void
note_used(bool is_relation, uint32 value)
{
	TypeUsed	key;

	memset(&key, 0, sizeof(key));
	key.is_relation = is_relation;
	key.value = value;
	if (types_used == NULL)
	{
		HASHCTL		info = {.keysize = sizeof(TypeUsed), .entrysize = sizeof(TypeUsed)};

		types_used = hash_create("pgaq types used", 16, &info, HASH_ELEM | HASH_BLOBS);
	}
	(void) hash_search(types_used, &key, HASH_ENTER, NULL);
}

static bool
is_used(bool is_relation, uint32 value)
{
	TypeUsed	key;

	memset(&key, 0, sizeof(key));
	key.is_relation = is_relation;
	key.value = value;
	return types_used != NULL && hash_search(types_used, &key, HASH_FIND, NULL) != NULL;
}

static void
on_code_change(Datum arg, int cache, uint32 value)
{
	changes++;
}

/* Every table has a type, so most changed types are not used here. */
static void
on_type_change(Datum arg, int cache, uint32 value)
{
	if (value == 0 || is_used(false, value))
		changes++;
}

/*
 * Called for every relation whose definition changes; InvalidOid: all
 * relations.
 */
static void
on_relation_change(Datum arg, Oid relation)
{
	if (!OidIsValid(relation) || is_used(true, relation))
		changes++;
}

static void
watch_changes(void)
{
	static const int caches[] = {PROCOID, OPEROID, CASTSOURCETARGET, NAMESPACEOID, AUTHOID, AUTHMEMROLEMEM};

	for (int i = 0; i < lengthof(caches); i++)
		CacheRegisterSyscacheCallback(caches[i], on_code_change, (Datum) 0);
	CacheRegisterSyscacheCallback(TYPEOID, on_type_change, (Datum) 0);
	CacheRegisterRelcacheCallback(on_relation_change, (Datum) 0);
}

/* --- checks ------------------------------------------------------------------------- */

/* Does this role have the privileges of the acting role? */
static bool
is_trusted(Oid owner)
{
	return has_privs_of_role(owner, acting_role);
}

/*
 * Is the acting role's own code running, and not a function of another role
 * that it calls?
 */
static bool
acts(void)
{
	return acting_depth > 0 && GetUserId() == acting_role;
}

static void
note_ready(Oid owner)
{
	for (int i = 0; i < Min(nready_owners, MAX_OWNERS); i++)
		if (ready_owners[i] == owner)
			return;
	if (nready_owners < MAX_OWNERS)
		ready_owners[nready_owners] = owner;
	if (nready_owners <= MAX_OWNERS)
		nready_owners++;
}

/* Makes the server read and plan the constraints of domains again. */
static void
discard_domain_constraints(void)
{
	CallSyscacheCallbacks(CONSTROID, 0);
}

/*
 * Does this if SQL functions that are inlined in the constraints may have
 * changed.
 */
static void
discard_old_domain_constraints(void)
{
	static uint64 latest;

	if (latest == changes)
		return;
	latest = changes;
	discard_domain_constraints();
}

/*
 * Discards plans and expressions if they may contain functions that the acting
 * role may not call, so that these are checked when they are planned again.
 */
static void
discard_others_plans(void)
{
	bool		discard = nready_owners > MAX_OWNERS;

	for (int i = 0; i < nready_owners && !discard; i++)
		discard = !is_trusted(ready_owners[i]);
	if (!discard)
		return;
	ResetPlanCache();
	discard_domain_constraints();
	nready_owners = 0;
}

static void
check_function(Oid function)
{
	HeapTuple	tuple;
	bool		allowed = true;

	if (function < FirstNormalObjectId)
		return;
	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	if (HeapTupleIsValid(tuple))
	{
		Form_pg_proc proc = (Form_pg_proc) GETSTRUCT(tuple);

		note_ready(proc->proowner);
		allowed = !acts() || proc->prosecdef || is_trusted(proc->proowner);
		ReleaseSysCache(tuple);
	}
	if (!allowed)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for function %s", get_func_name(function)),
				 errdetail("Code written by role \"%s\" can only call functions of that role, of its members and of superusers.",
						   GetUserNameFromId(acting_role, true)),
				 errhint("Make the function SECURITY DEFINER, or change its owner to that role.")));
}

/*
 * Called before a function is prepared for a call or inlined, except those for
 * which fmgr_hook is called.
 */
static bool
needs_hook(Oid function)
{
	check_function(function);
	return previous_needs_hook != NULL && previous_needs_hook(function);
}

/* Called for functions that are SECURITY DEFINER or have SET options. */
static void
before_call(FmgrHookEventType event, FmgrInfo *call, Datum *arg)
{
	if (event == FHET_START)
	{
		caller_path->on_call(call->fn_oid);
		check_function(call->fn_oid);
	}
	if (previous_fmgr_hook)
		previous_fmgr_hook(event, call, arg);
}

/*
 * The descriptors of large objects belong to the session; their use needs no
 * privilege on the object.
 */
static void
check_descriptor(Oid function)
{
	switch (function)
	{
		case F_LOREAD:
		case F_LOWRITE:
		case F_LO_CLOSE:
		case F_LO_LSEEK:
		case F_LO_LSEEK64:
		case F_LO_TELL:
		case F_LO_TELL64:
		case F_LO_TRUNCATE:
		case F_LO_TRUNCATE64:
			ereport(ERROR,
					(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
					 errmsg("permission denied for function %s", get_func_name(function)),
					 errdetail("Rules, constraints of payload types and transformations cannot use large objects that the session has opened."),
					 errhint("Use lo_get and lo_put.")));
		default:
			break;
	}
}

/*
 * Called before an expression that calls the function, even a built-in one, is
 * prepared.
 */
static void
access_hook(ObjectAccessType access, Oid class, Oid object, int column, void *arg)
{
	if (previous_access_hook)
		previous_access_hook(access, class, object, column, arg);
	if (access == OAT_FUNCTION_EXECUTE && acting_depth > 0)
		check_descriptor(object);
}

static void
check_relation(Oid relation)
{
	if (get_rel_persistence(relation) == RELPERSISTENCE_TEMP)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for temporary relation %s", get_rel_name(relation)),
				 errdetail("Rules, constraints of payload types and transformations cannot use temporary relations of the session."),
				 errhint("Name tables with their schema.")));
}

static void
check_domain(Oid domain, Oid owner)
{
	if (aq_domain_has_constraints(domain) && !is_trusted(owner))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for type %s", format_type_be(domain)),
				 errdetail("Code written by role \"%s\" can only evaluate constraints of that role, of its members and of superusers.",
						   GetUserNameFromId(acting_role, true)),
				 errhint("Change the owner of the domain to that role.")));
}

/*
 * Raises an error unless the acting role may make values of the type and
 * evaluate the constraints of domains in it.
 */
void
aq_run_as_check_type(Oid type)
{
	HeapTuple	tuple;
	FormData_pg_type form;

	if (type < FirstNormalObjectId || !acts())
		return;
	note_used(false, GetSysCacheHashValue1(TYPEOID, ObjectIdGetDatum(type)));
	tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(type));
	if (!HeapTupleIsValid(tuple))
		return;
	form = *(Form_pg_type) GETSTRUCT(tuple);
	ReleaseSysCache(tuple);
	check_stack_depth();
	if (form.typtype == TYPTYPE_DOMAIN)
	{
		check_domain(type, form.typowner);
		aq_run_as_check_type(form.typbasetype);
	}
	else if (form.typtype == TYPTYPE_RANGE)
	{
		/*
		 * the server prepares it only once, for the first role that uses the
		 * type
		 */
		check_function(lookup_type_cache(type, TYPECACHE_RANGE_INFO)->rng_canonical_finfo.fn_oid);
		aq_run_as_check_type(get_range_subtype(type));
	}
	else if (form.typtype == TYPTYPE_MULTIRANGE)
		aq_run_as_check_type(get_multirange_range(type));
	else if (OidIsValid(get_element_type(type)))
		aq_run_as_check_type(get_element_type(type));
	else if (form.typtype == TYPTYPE_COMPOSITE)
	{
		TupleDesc	desc;

		note_used(true, form.typrelid);
		desc = lookup_rowtype_tupdesc(type, -1);
		for (int i = 0; i < desc->natts; i++)
			if (!TupleDescAttr(desc, i)->attisdropped && TupleDescAttr(desc, i)->atttypid >= FirstNormalObjectId)
				aq_run_as_check_type(TupleDescAttr(desc, i)->atttypid);
		ReleaseTupleDesc(desc);
	}
}

/* Called when a query begins. */
static bool
check_relations(AQ_CHECK_PERMS_ARGS)
{
	ListCell   *lc;

	/*
	 * even if code has set it, because that may have been a function of
	 * another role
	 */
	if (acting_depth > 0 && max_parallel_workers > 0)
		aq_process_pin_parameter("max_parallel_workers", "0");
	if (acting_depth > 0)
		foreach(lc, range_table)
		{
			RangeTblEntry *entry = lfirst(lc);

			/* from PostgreSQL 16 on, a view is a subquery that keeps the view's OID */
			if (OidIsValid(entry->relid) && (entry->rtekind == RTE_RELATION || entry->rtekind == RTE_SUBQUERY))
				check_relation(entry->relid);
		}
	return previous_perms_hook == NULL || previous_perms_hook(AQ_CHECK_PERMS_PASS);
}

/* --- the session's cursors ----------------------------------------------------------- */

static List *
add_portal(List *portals, const char *name)
{
	Portal		portal = GetPortalByName(name);

	return PortalIsValid(portal) && portal->status == PORTAL_READY ? lappend(portals, portal) : portals;
}

/*
 * The server has no list of portals except their memory contexts, which have
 * their names.
 */
static List *
open_portals(void)
{
	MemoryContext all = TopMemoryContext->firstchild;
	List	   *portals = NIL;

	while (all != NULL && strcmp(all->name, "TopPortalContext") != 0)
		all = all->nextchild;
	for (MemoryContext one = all ? all->firstchild : NULL; one != NULL; one = one->nextchild)
		if (strcmp(one->name, "PortalContext") == 0 && one->ident != NULL)
			portals = add_portal(portals, one->ident);
	return add_portal(portals, "");
}

/* Marks portals as active, so that they can be neither read nor closed. */
static void
set_portals(List *portals, PortalStatus status)
{
	ListCell   *lc;

	foreach(lc, portals)
		((Portal) lfirst(lc))->status = status;
}

/* --- running ------------------------------------------------------------------------ */

/*
 * Sets the fixed settings; those that already have their values cost nothing.
 * reads: the code reads a text of the session with the session's settings.
 */
static void
pin_settings(bool reads)
{
	if (strcmp(namespace_search_path, PINNED_PATH) != 0)
		aq_process_pin_parameter("search_path", PINNED_PATH);
#define X(id, name, value, has_it, of_text) \
	if (!(has_it) && !((of_text) && reads)) \
		aq_process_pin_parameter(name, value);
#include "queue/catalog/setting_list.h"
#undef X
}

/*
 * Sets the settings once for several calls of aq_run_as.  After an error they
 * end with the (sub)transaction.
 */
int
aq_run_as_begin(void)
{
	int			nest = NewGUCNestLevel();

	pin_settings(false);
	return nest;
}

void
aq_run_as_end(int nest)
{
	AtEOXact_GUC(false, nest);
}

void
aq_run_as_pin_process(void)
{
#define X(id, name, value, has_it, of_text) \
	SetConfigOption(name, value, PGC_SUSET, PGC_S_OVERRIDE);
#include "queue/catalog/setting_list.h"
#undef X
}

/* Runs the code.  Descriptions of queues are not freed meanwhile. */
static void
run_call(Oid role, bool reads, void (*call) (void *arg), void *arg)
{
	Oid			outer_role = acting_role;
	Oid			user;
	int			context;
	int			nest = NewGUCNestLevel();
	List	   *hidden = open_portals();	/* allocates memory; from here to PG_TRY nothing may fail */

	GetUserIdAndSecContext(&user, &context);
	acting_role = role;
	acting_depth++;
	aq_catalog_retain();
	set_portals(hidden, PORTAL_ACTIVE);
	PG_TRY();
	{
		SetUserIdAndSecContext(role, context | SECURITY_LOCAL_USERID_CHANGE | SECURITY_RESTRICTED_OPERATION);
		pin_settings(reads);
		discard_others_plans();
		discard_old_domain_constraints();
		call(arg);
	}
	PG_FINALLY();
	{
		/*
		 * an error reverts the user id and settings with the (sub)transaction
		 */
		aq_catalog_release();
		acting_depth--;
		acting_role = outer_role;
		set_portals(hidden, PORTAL_READY);
	}
	PG_END_TRY();
	AtEOXact_GUC(false, nest);
	SetUserIdAndSecContext(user, context);
}

/* Calls a function as the role that wrote the code that it runs. */
void
aq_run_as(Oid role, void (*call) (void *arg), void *arg)
{
	run_call(role, false, call, arg);
}

/* The same for a function that reads a text passed by the session. */
void
aq_run_as_reading(Oid role, void (*call) (void *arg), void *arg)
{
	run_call(role, true, call, arg);
}

void
aq_run_as_on_caller(const AqCallerPath *callbacks)
{
	caller_path = callbacks;
}

const char *
aq_run_as_caller_path(void)
{
	return caller_path->get();
}

/* Calls a function for the caller's own code, with the caller's search_path, even if it was passed to a package. */
void
aq_run_as_caller(void (*call) (void *arg), void *arg)
{
	const char *path = aq_run_as_caller_path();
	int			nest = NewGUCNestLevel();

	if (path != namespace_search_path)
		aq_process_pin_parameter("search_path", path);
	call(arg);
	AtEOXact_GUC(true, nest);
}

/* Is the caller within aq_run_as? */
bool
aq_run_as_is_active(void)
{
	return acting_depth > 0;
}

void
aq_run_as_init(void)
{
	previous_needs_hook = needs_fmgr_hook;
	needs_fmgr_hook = needs_hook;
	previous_fmgr_hook = fmgr_hook;
	fmgr_hook = before_call;
	previous_perms_hook = ExecutorCheckPerms_hook;
	ExecutorCheckPerms_hook = check_relations;
	previous_access_hook = object_access_hook;
	object_access_hook = access_hook;
	watch_changes();
}
