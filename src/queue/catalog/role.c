/*-------------------------------------------------------------------------
 *
 * role.c
 *	  The data type of roles in the catalog's tables.
 *
 * The value is the role's OID.  Its text, also in COPY BINARY, is the current
 * name of the role: a dump contains the name, and a restore looks it up.  The
 * text of a dropped role is empty, which is never a role's name, so a restore
 * does not confuse it with another role.  The name of a role that does not
 * exist is read as InvalidOid, so a restore does not fail.  Names are neither
 * quoted nor folded, and a number is read as a name.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/catalog/catalog_private.h"

#include "libpq/pqformat.h"
#include "miscadmin.h"
#include "utils/acl.h"

static char *
name_of(Oid role)
{
	char	   *name = GetUserNameFromId(role, true);

	return name != NULL ? name : pstrdup("");
}

PG_FUNCTION_INFO_V1(aq_role_in);
Datum
aq_role_in(PG_FUNCTION_ARGS)
{
	PG_RETURN_OID(get_role_oid(PG_GETARG_CSTRING(0), true));
}

PG_FUNCTION_INFO_V1(aq_role_out);
Datum
aq_role_out(PG_FUNCTION_ARGS)
{
	PG_RETURN_CSTRING(name_of(PG_GETARG_OID(0)));
}

PG_FUNCTION_INFO_V1(aq_role_recv);
Datum
aq_role_recv(PG_FUNCTION_ARGS)
{
	StringInfo	buf = (StringInfo) PG_GETARG_POINTER(0);
	int			length;

	PG_RETURN_OID(get_role_oid(pq_getmsgtext(buf, buf->len - buf->cursor, &length), true));
}

PG_FUNCTION_INFO_V1(aq_role_send);
Datum
aq_role_send(PG_FUNCTION_ARGS)
{
	const char *name = name_of(PG_GETARG_OID(0));
	StringInfoData buf;

	pq_begintypsend(&buf);
	pq_sendtext(&buf, name, strlen(name));
	PG_RETURN_BYTEA_P(pq_endtypsend(&buf));
}

/*
 * A role has inserted a row into a table of the schema aq_internal: raises an error if
 * it has too many now.  Each row costs time of processes that all roles share, or
 * remains forever.  Rows that other sessions insert at the same time do not count.
 */
void
aq_role_check_rows(Oid role, const char *table, const char *column, const char *what, const char *advice)
{
	char	   *count;

	if (superuser_arg(role))
		return;
	count = aq_sql_text(psprintf("SELECT count(*) FROM aq_internal.%s r WHERE r.%s::oid = %u", table, column, role));
	if (atoll(count) > aq_parameters_role_schedules)
		ereport(ERROR,
				aq_error(AQ_ERR_ROLE_LIMIT, "role \"%s\" has too many %s", name_of(role), what),
				errdetail("It can have %d in a database.", aq_parameters_role_schedules),
				errhint("%s, or raise pgaq.role_schedules.", advice));
}
