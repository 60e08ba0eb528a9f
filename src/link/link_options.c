/*-------------------------------------------------------------------------
 *
 * link_options.c
 *	  The options of servers and user mappings of the foreign data wrapper
 *	  pgaq_link: their validator, and what they mean for a connection.
 *
 * Options of libpq are passed on; libpq itself says which it has.  Those that
 * name a user or hide a secret belong to user mappings, the others to servers.
 *
 * A role must not gain what the server's own account can do elsewhere: its
 * files with passwords and keys, its trust in the operating system's user.  So a
 * link of a role that is not a superuser has a password in its user mapping, and
 * link_peer.c closes the connection unless the other side has asked for it.
 * Only superusers make exceptions (password_required), and only they name files
 * from which libpq reads secrets.
 *
 * Passwords and messages do not cross a network unless the other side has proved
 * who it is, or the server's options say what is enough: sslmode is verify-full by
 * default, unless all hosts are this machine.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "link/link_private.h"

#include "access/reloptions.h"
#include "access/xact.h"
#include "catalog/pg_foreign_server.h"
#include "catalog/pg_user_mapping.h"
#include "commands/defrem.h"
#include "foreign/foreign.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/syscache.h"

#define WRAPPER "pgaq_link"

/* options of ours that are integers */
typedef struct IntegerOption
{
	const char *name;
	int			least;
	int			most;
	int			usual;
	size_t		offset;			/* in AqLinkTarget */
} IntegerOption;

static const IntegerOption integer_options[] = {
	{"connections", 1, 16, 2, offsetof(AqLinkTarget, connections)},
	{"connect_timeout", 1, 3600, 10, offsetof(AqLinkTarget, connect_timeout)},
	{"request_timeout", 1, 86400, 60, offsetof(AqLinkTarget, request_timeout)},
	{"idle_timeout", 1, 86400, 60, offsetof(AqLinkTarget, idle_timeout)},
};

/* options of libpq that the link sets itself */
static const char *const own_settings[] = {"client_encoding", "fallback_application_name", "replication", "load_balance_hosts"};

/* options that name files with secrets, or make exceptions: for superusers */
static const char *const for_superusers[] = {"passfile", "sslcert", "sslkey", "sslpassword", "service", "servicefile", "gssencmode", "gssdelegation"};

/* what a connection has unless the options say otherwise */
static const char *const defaults[][2] = {
	{"fallback_application_name", "pgaq link"},
	{"gssencmode", "disable"},
	{"keepalives", "1"},
	{"keepalives_idle", "30"},
	{"keepalives_interval", "10"},
	{"keepalives_count", "3"},
	{"tcp_user_timeout", "60000"},
};

PG_FUNCTION_INFO_V1(aq_link_options_validator);

static bool
is_among(const char *name, const char *const *list, int n)
{
	for (int i = 0; i < n; i++)
		if (strcmp(name, list[i]) == 0)
			return true;
	return false;
}

/* libpq's option with this name, if links may have it; NULL: none. */
static const PQconninfoOption *
libpq_option(const char *name)
{
	static PQconninfoOption *options;

	if (options == NULL)
		options = PQconndefaults();
	if (options == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_OUT_OF_MEMORY),
				 errmsg("could not get the options of libpq")));
	for (const PQconninfoOption *option = options; option->keyword != NULL; option++)
		if (strcmp(option->keyword, name) == 0)
			return strchr(option->dispchar, 'D') == NULL && !is_among(name, own_settings, lengthof(own_settings)) ? option : NULL;
	return NULL;
}

static const IntegerOption *
integer_option(const char *name)
{
	for (int i = 0; i < lengthof(integer_options); i++)
		if (strcmp(integer_options[i].name, name) == 0)
			return &integer_options[i];
	return NULL;
}

/* Does the option belong to servers or to user mappings? */
static bool
is_of(const char *name, Oid catalog)
{
	const PQconninfoOption *option = libpq_option(name);
	bool		of_user = strcmp(name, "user") == 0 || (option != NULL && strchr(option->dispchar, '*') != NULL);

	if (catalog == UserMappingRelationId)
		return of_user || is_among(name, (const char *const[]) {"password_required", "sslcert", "sslkey"}, 3);
	if (catalog == ForeignServerRelationId)
		return (option != NULL && !of_user) || integer_option(name) != NULL || strcmp(name, "enabled") == 0;
	return false;
}

/* --- the validator ---------------------------------------------------------------- */

static void
refuse_name(const DefElem *def, Oid catalog)
{
	bool		elsewhere = (catalog == ForeignServerRelationId && is_of(def->defname, UserMappingRelationId)) ||
		(catalog == UserMappingRelationId && is_of(def->defname, ForeignServerRelationId));

	ereport(ERROR,
			(errcode(ERRCODE_FDW_INVALID_OPTION_NAME),
			 errmsg("invalid option \"%s\"", def->defname),
			 elsewhere && catalog == ForeignServerRelationId ? errhint("It is an option of user mappings: CREATE USER MAPPING.") :
			 elsewhere ? errhint("It is an option of servers: CREATE SERVER.") :
			 catalog == ForeignServerRelationId
			 ? errhint("Servers have the options of libpq, such as host, port, dbname, service and sslmode, and enabled, connections, connect_timeout, request_timeout, idle_timeout.")
			 : catalog == UserMappingRelationId ? errhint("User mappings have the options user, password, password_required, sslcert, sslkey and sslpassword.")
			 : errhint("There are no valid options in this context.")));
}

static void
check_integer(const IntegerOption *option, const char *value)
{
	int			number;

	if (!parse_int(value, &number, 0, NULL) || number < option->least || number > option->most)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
				 errmsg("invalid value for option \"%s\": \"%s\"", option->name, value),
				 errhint("It is an integer from %d to %d.", option->least, option->most)));
}

static void
check_privilege(const char *name, const char *value)
{
	bool		required = true;

	if (superuser())
		return;
	if (strcmp(name, "password_required") == 0)
	{
		if (parse_bool(value, &required) && !required)
			ereport(ERROR,
					(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
					 errmsg("only superusers can set \"password_required\" to false"),
					 errhint("User mappings with the option \"password_required\" set to false may only be created or modified by superusers.")));
	}
	else if (is_among(name, for_superusers, lengthof(for_superusers)))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("only superusers can set the option \"%s\"", name),
				 errdetail("It can make a link use credentials of the server's account.")));
}

Datum
aq_link_options_validator(PG_FUNCTION_ARGS)
{
	List	   *options = untransformRelOptions(PG_GETARG_DATUM(0));
	Oid			catalog = PG_GETARG_OID(1);
	ListCell   *lc;

	foreach(lc, options)
	{
		DefElem    *def = lfirst(lc);
		const IntegerOption *integer = integer_option(def->defname);

		if (!is_of(def->defname, catalog))
			refuse_name(def, catalog);
		if (integer != NULL)
			check_integer(integer, defGetString(def));
		if (strcmp(def->defname, "enabled") == 0 || strcmp(def->defname, "password_required") == 0)
			(void) defGetBoolean(def);
		if (strcmp(def->defname, "password") == 0 && defGetString(def)[0] == '\0')
			ereport(ERROR,
					(errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
					 errmsg("the option \"password\" is empty")));
		check_privilege(def->defname, defGetString(def));
	}
	PG_RETURN_VOID();
}

/* --- a link ------------------------------------------------------------------------- */

static const char *
option_value(List *options, const char *name)
{
	ListCell   *lc;

	foreach(lc, options)
	{
		DefElem    *def = lfirst(lc);

		if (strcmp(def->defname, name) == 0)
			return defGetString(def);
	}
	return NULL;
}

static bool
is_true(List *options, const char *name)
{
	const char *value = option_value(options, name);
	bool		is;

	return value == NULL || !parse_bool(value, &is) || is;
}

static void
add(AqLinkTarget *target, const char *keyword, const char *value)
{
	target->keywords[target->n] = keyword;
	target->values[target->n++] = value;
}

static void
add_options(AqLinkTarget *target, List *options)
{
	ListCell   *lc;

	foreach(lc, options)
	{
		DefElem    *def = lfirst(lc);

		if (libpq_option(def->defname) != NULL)
			add(target, def->defname, defGetString(def));
	}
}

/* Is each of the hosts or addresses, which commas separate, a socket of this machine or its loopback? */
static bool
are_local(const char *hosts)
{
	static const char *const loopback[] = {"/", "@", "localhost", "127.", "::1"};

	for (const char *host = hosts; host != NULL; host = strchr(host, ',') != NULL ? strchr(host, ',') + 1 : NULL)
	{
		size_t		length = strcspn(host, ",");
		bool		local = length == 0;

		for (int i = 0; i < lengthof(loopback); i++)
		{
			bool		is_prefix = strchr("/@.", loopback[i][strlen(loopback[i]) - 1]) != NULL;

			local |= strncmp(host, loopback[i], strlen(loopback[i])) == 0 && (is_prefix || length == strlen(loopback[i])) &&
				(loopback[i][0] != '1' || strspn(host, "0123456789.") == length);
		}
		if (!local)
			return false;
	}
	return true;
}

/* libpq connects to hostaddr if there is one.  A service file, which only superusers name, may say what it likes. */
static bool
is_local(List *options)
{
	const char *address = option_value(options, "hostaddr");

	return are_local(address != NULL && address[0] != '\0' ? address : option_value(options, "host"));
}

/*
 * Has the user mapping what the role needs?  As in postgres_fdw: a role that is
 * not a superuser has a password, unless a superuser has allowed it to have none.
 */
static bool
needs_password(const UserMapping *mapping, Oid role)
{
	if (superuser_arg(role) || !is_true(mapping->options, "password_required"))
		return false;
	if (option_value(mapping->options, "password") == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_S_R_E_PROHIBITED_SQL_STATEMENT_ATTEMPTED),
				 errmsg("password is required"),
				 errdetail("Roles that are not superusers must have a password in the user mapping."),
				 errhint("ALTER USER MAPPING ... OPTIONS (ADD password '...').")));
	return true;
}

bool
aq_link_options_may_use(Oid server, Oid role)
{
	return superuser_arg(role) || aq_foreign_server_allows(server, role);
}

/* Raises an error unless the server is a link that the role may use. */
static void
check_server(const ForeignServer *server, Oid role)
{
	ForeignDataWrapper *wrapper = GetForeignDataWrapper(server->fdwid);
	char	   *role_name = GetUserNameFromId(role, true);

	if (strcmp(wrapper->fdwname, WRAPPER) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("server \"%s\" is not a link", server->servername),
				 errdetail("Its foreign data wrapper is \"%s\".", wrapper->fdwname),
				 errhint("CREATE SERVER ... FOREIGN DATA WRAPPER %s OPTIONS (...).", WRAPPER)));
	if (role_name == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("role with OID %u does not exist", role)));
	if (!aq_link_options_may_use(server->serverid, role))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for foreign server %s", server->servername),
				 errhint("GRANT USAGE ON FOREIGN SERVER %s TO %s.", quote_identifier(server->servername), quote_identifier(role_name))));
}

/* The server with this name, if the role may use it and has a user mapping. */
Oid
aq_link_options_server(const char *name, Oid role)
{
	ForeignServer *server = GetForeignServerByName(name, true);

	if (server == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("server \"%s\" does not exist", name),
				 errhint("The view aq.links lists links. To create one: CREATE SERVER %s FOREIGN DATA WRAPPER %s OPTIONS (...).", quote_identifier(name), WRAPPER)));
	check_server(server, role);
	if (!SearchSysCacheExists2(USERMAPPINGUSERSERVER, ObjectIdGetDatum(role), ObjectIdGetDatum(server->serverid)) &&
		!SearchSysCacheExists2(USERMAPPINGUSERSERVER, ObjectIdGetDatum(InvalidOid), ObjectIdGetDatum(server->serverid)))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("user mapping not found for \"%s\"", GetUserNameFromId(role, false)),
				 errhint("Create one with CREATE USER MAPPING for server \"%s\", or use the role that has one.", server->servername)));
	return server->serverid;
}

/*
 * Reads the definition of a link in a transaction; allocated in the current
 * memory context.  Raises an error if the role cannot use the server.
 */
AqLinkTarget *
aq_link_options_read(Oid server_oid, Oid role)
{
	ForeignServer *server = GetForeignServerExtended(server_oid, FSV_MISSING_OK);
	AqLinkTarget *target = palloc0(sizeof(AqLinkTarget));
	UserMapping *mapping;
	int			most;

	if (server == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("the foreign server of the link no longer exists")));
	check_server(server, role);
	mapping = GetUserMapping(role, server_oid);

	target->server = server_oid;
	target->role = role;
	target->name = server->servername;
	target->enabled = is_true(server->options, "enabled");
	for (int i = 0; i < lengthof(integer_options); i++)
	{
		const char *value = option_value(server->options, integer_options[i].name);
		int			number;

		*(int *) ((char *) target + integer_options[i].offset) =
			value != NULL && parse_int(value, &number, 0, NULL) ? number : integer_options[i].usual;
	}
	target->needs_password = needs_password(mapping, role);

	target->local = is_local(server->options);

	most = lengthof(defaults) + list_length(server->options) + list_length(mapping->options) + 4;
	target->keywords = palloc0(most * sizeof(char *));
	target->values = palloc0(most * sizeof(char *));
	/* of two values for one keyword, libpq takes the later one */
	for (int i = 0; i < lengthof(defaults); i++)
		add(target, defaults[i][0], defaults[i][1]);
	add(target, "user", GetUserNameFromId(role, false));
	if (!target->local && option_value(server->options, "service") == NULL)
		add(target, "sslmode", "verify-full");
	add_options(target, server->options);
	add_options(target, mapping->options);
	add(target, "client_encoding", GetDatabaseEncodingName());
	return target;
}

/*
 * The same in a transaction of its own, for the link worker.  NULL if the link
 * cannot be used: *error says why.
 */
AqLinkTarget *
aq_link_options_try(Oid server, Oid role, AqLinkError *error)
{
	MemoryContext context = CurrentMemoryContext;
	AqLinkTarget *volatile target = NULL;

	PG_TRY();
	{
		aq_job_cancellable(true);
		aq_job_begin();
		MemoryContextSwitchTo(context);
		aq_point("link-definition");
		target = aq_link_options_read(server, role);
		aq_job_commit(false);
		aq_job_cancellable(false);
	}
	PG_CATCH();
	{
		aq_job_cancellable(false);
		MemoryContextSwitchTo(context);
		aq_link_error_of_server(error);
		AbortCurrentTransaction();
		aq_locks_release_all();
		target = NULL;
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	return target;
}

/* Would both make the same connection? */
bool
aq_link_options_same(const AqLinkTarget *a, const AqLinkTarget *b)
{
	if (a->n != b->n || a->needs_password != b->needs_password)
		return false;
	for (int i = 0; i < a->n; i++)
		if (strcmp(a->keywords[i], b->keywords[i]) != 0 || strcmp(a->values[i], b->values[i]) != 0)
			return false;
	return true;
}
