/*-------------------------------------------------------------------------
 *
 * callback.c
 *	  The callback of a registration: plsql://schema.procedure; an address, for
 *	  which procedure aq.send_notification is called; or client://name, for which
 *	  nothing is called: a program waits for it, see client.c.
 *
 * A procedure has one of two forms: a single argument of type aq.notification,
 * or Oracle's five, which the functions of pgaq_oracle make of a notification.
 * It is looked up by its schema and name, when it is registered and before each
 * call, and must have the owner that it had then, or one that has the
 * privileges of the role anyway: so a role that drops it, or that may create
 * procedures in its schema, cannot put another one in its place that would run
 * with the privileges of the role.  dbms_aq.register also takes a procedure that
 * does not exist yet: the role counts as its owner.
 *
 * The server checks EXECUTE at each call.  Names in the procedure are looked up
 * in pg_catalog unless it sets search_path; SET ROLE is not allowed.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "notify/notify_private.h"

#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "commands/extension.h"
#include "catalog/dependency.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "tcop/tcopprot.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/varlena.h"

#define SCHEME "plsql://"
#define CLIENT "client://"
#define MAIL "mailto:"
#define MAX_CALLBACK 1000		/* bytes */

/* how long after its cancellation a call may run, in milliseconds */
#define CANCEL_GRACE 5000

typedef struct Procedure
{
	Oid			id;
	Oid			owner;
	int			nargs;			/* 1 or 5 */
	Oid			types[5];
} Procedure;

/* --- the text ---------------------------------------------------------------------------- */

static void
refuse_text(const char *callback)
{
	ereport(ERROR,
			aq_error(AQ_ERR_CALLBACK_INVALID, "callback \"%s\" is not valid", aq_error_clip(callback)),
			errhint("Specify plsql://schema.procedure, https://host/path, mailto:address, or client:// for a program that waits."));
}

static bool
begins_with(const char *callback, const char *scheme)
{
	return pg_strncasecmp(callback, scheme, strlen(scheme)) == 0;
}

/* Cuts off Oracle's option for the form of a notification. */
static void
cut_presentation(const char *callback, char *name)
{
	char	   *options = strrchr(name, '?');

	if (options == NULL)
		return;
	if (pg_strcasecmp(options, "?PR=1") == 0)
		ereport(ERROR,
				aq_error(AQ_ERR_FEATURE_UNSUPPORTED, "notifications in XML are not supported"),
				errhint("Leave \"?PR=1\" out."));
	if (pg_strcasecmp(options, "?PR=0") != 0)
		refuse_text(callback);
	*options = '\0';
}

/* Is it an address outside of the database, to which pgaq notify delivers? */
bool
aq_callback_is_address(const char *callback)
{
	return begins_with(callback, "https://") || begins_with(callback, "http://") || begins_with(callback, MAIL);
}

/*
 * The address as pgaq notify takes it; refuses what can be none.  Which addresses
 * are allowed is up to pgaq notify.
 */
char *
aq_callback_address(const char *callback)
{
	char	   *address = pstrdup(callback);
	char	   *rest = strchr(address, ':') + 1;
	bool		mail = begins_with(callback, MAIL);

	for (const char *c = callback; *c != '\0'; c++)
		if (*c <= ' ' || *c > '~')
			refuse_text(callback);
	if (mail)
		cut_presentation(callback, rest);
	rest += strspn(rest, "/");	/* Oracle writes mailto://address too */
	if (*rest == '\0' || (mail && strchr(rest, '@') == NULL))
		refuse_text(callback);
	return mail ? psprintf(MAIL "%s", rest) : address;
}

/* The schema and the name of the procedure; false: a program waits for the registration. */
bool
aq_callback_parse(const char *callback, char **schema, char **procedure)
{
	char	   *name;
	List	   *parts;

	if (strlen(callback) > MAX_CALLBACK)
		refuse_text(callback);
	if (begins_with(callback, CLIENT))
		return false;
	if (aq_callback_is_address(callback))
	{
		(void) aq_callback_address(callback);
		*schema = "aq";
		*procedure = "send_notification";
		return true;
	}
	if (!begins_with(callback, SCHEME))
		refuse_text(callback);
	name = pstrdup(callback + strlen(SCHEME));
	cut_presentation(callback, name);
	parts = textToQualifiedNameList(cstring_to_text(name));
	if (list_length(parts) != 2)
		refuse_text(callback);
	*schema = strVal(linitial(parts));
	*procedure = strVal(lsecond(parts));
	return true;
}

/* --- the procedure ------------------------------------------------------------------------ */

static Oid
type_in(const char *schema, const char *name)
{
	Oid			namespace = get_namespace_oid(schema, true);

	if (!OidIsValid(namespace))
		return InvalidOid;
	return GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid, CStringGetDatum(name), ObjectIdGetDatum(namespace));
}

/* Oracle's types; not those of a schema "sys" that another extension or role has made. */
static Oid
oracle_type(const char *name)
{
	Oid			type = type_in("sys", name);
	Oid			oracle = get_extension_oid("pgaq_oracle", true);

	return OidIsValid(type) && OidIsValid(oracle) && getExtensionOfObject(TypeRelationId, type) == oracle ? type : InvalidOid;
}

Oid
aq_callback_notification_type(void)
{
	Oid			type = type_in("aq", "notification");

	if (!OidIsValid(type))
		elog(ERROR, "type aq.notification does not exist");
	return type;
}

static bool
is_number(Oid type)
{
	return type == INT4OID || type == INT8OID || type == NUMERICOID;
}

static bool
is_text(Oid type)
{
	return type == TEXTOID || type == VARCHAROID;
}

/* Has the procedure one of the two forms? */
static bool
has_form(Form_pg_proc form)
{
	const Oid  *types = form->proargtypes.values;

	if (form->prokind != PROKIND_PROCEDURE)
		return false;
	if (form->pronargs == 1)
		return types[0] == aq_callback_notification_type();
	return form->pronargs == 5 && types[0] == BYTEAOID &&
		OidIsValid(types[1]) && types[1] == oracle_type("aq$_reg_info") && types[2] == oracle_type("aq$_descriptor") &&
		(types[3] == BYTEAOID || is_text(types[3])) && is_number(types[4]);
}

/* Returns how many procedures of this name have one of the forms. */
static int
find_procedures(const char *schema, const char *name, Procedure *found)
{
	Oid			namespace = LookupExplicitNamespace(schema, false); /* checks USAGE */
	CatCList   *list = SearchSysCacheList1(PROCNAMEARGSNSP, CStringGetDatum(name));
	int			n = 0;

	for (int i = 0; i < list->n_members; i++)
	{
		Form_pg_proc form = (Form_pg_proc) GETSTRUCT(&list->members[i]->tuple);

		if (form->pronamespace != namespace || !has_form(form))
			continue;
		n++;
		found->id = form->oid;
		found->owner = form->proowner;
		found->nargs = form->pronargs;
		memcpy(found->types, form->proargtypes.values, form->pronargs * sizeof(Oid));
	}
	ReleaseSysCacheList(list);
	return n;
}

/* Returns false if there is no such procedure and missing_ok is set. */
static bool
find_procedure(const char *schema, const char *name, bool missing_ok, Procedure *found)
{
	int			n = missing_ok && !OidIsValid(get_namespace_oid(schema, true)) ? 0 : find_procedures(schema, name, found);

	if (n == 0 && missing_ok)
		return false;
	if (n != 1)
		ereport(ERROR,
				(errcode(n == 0 ? ERRCODE_UNDEFINED_FUNCTION : ERRCODE_AMBIGUOUS_FUNCTION),
				 n == 0 ? errmsg("procedure %s to be called by notification does not exist", quote_qualified_identifier(schema, name))
				 : errmsg("procedure %s to be called by notification is not unique", quote_qualified_identifier(schema, name)),
				 aq_error_hint("It must be a procedure with one argument of type aq.notification.",
							   "It must be a procedure with the arguments context bytea, reginfo sys.aq$_reg_info, descr sys.aq$_descriptor, payload bytea or text, payloadl numeric.")));
	if (!aq_object_allows(ProcedureRelationId, found->id, ACL_EXECUTE))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for procedure %s", quote_qualified_identifier(schema, name))));
	return true;
}

/*
 * Can the current role have this procedure called?  missing_ok: one that does not
 * exist may become the role's.
 */
Oid
aq_callback_check(const char *schema, const char *name, bool missing_ok)
{
	Procedure	procedure;

	if (find_procedure(schema, name, missing_ok, &procedure))
		return procedure.owner;
	ereport(NOTICE,
			(errmsg("procedure %s to be called by notification does not exist yet", quote_qualified_identifier(schema, name))));
	return GetUserId();
}

/* --- the call ---------------------------------------------------------------------------- */

/* The statement that calls the procedure with a notification. */
static char *
statement_of(const char *name, const Procedure *procedure)
{
	if (procedure->nargs == 1)
		return psprintf("CALL %s($1)", name);
	return psprintf("CALL %s(($1).context, sys._notification_reg_info($1), sys._notification_descriptor($1), "
					"%s, coalesce(length(($1).payload), 0)::%s)", name,
					is_text(procedure->types[3]) ? "convert_from(($1).payload, getdatabaseencoding())" : "($1).payload",
					format_type_be(procedure->types[4]));
}

/*
 * Calls the procedure, in a transaction of a notifier.  Errors are raised.  The
 * timers run until aq_stuck_over(), also while the transaction commits.
 */
void
aq_callback_call(const AqRegistration *registration, Datum notification)
{
	Procedure	procedure;
	const char *name = quote_qualified_identifier(registration->schema, registration->procedure);
	Oid			type = aq_callback_notification_type();

	(void) set_config_option("search_path", "pg_catalog, pg_temp", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_LOCAL, true, 0, false);
	(void) find_procedure(registration->schema, registration->procedure, false, &procedure);
	if (procedure.owner != registration->owner && !has_privs_of_role(procedure.owner, GetUserId()))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("owner of procedure %s has changed since it was registered", name),
				 errhint("If it is the right one, register again.")));
	aq_stuck_watch(GetUserId(), 0, aq_notify_settings_call_timeout_ms, CANCEL_GRACE);
	SPI_connect();
	if (SPI_execute_with_args(statement_of(name, &procedure), 1, &type, &notification, NULL, false, 0) < 0)
		elog(ERROR, "could not call procedure %s", name);
	SPI_finish();
}
