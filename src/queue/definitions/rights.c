/*-------------------------------------------------------------------------
 *
 * rights.c
 *	  Granting and revoking privileges on queues.
 *
 * A queue's privileges are those on its owner view, a view in schema aq_data:
 * INSERT is enqueue, DELETE is dequeue, UPDATE is subscribe.  Rights on single
 * consumers are rows of aq_internal.consumer_grant: see grants.c.
 *
 * A role that acts for the queue's owner grants as the owner, one that only has a
 * grant option as itself.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/definitions/definitions_private.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/inval.h"

static const struct
{
	const char *name;
	AclMode		mode;
}			privileges[] = {
	{"enqueue", ACL_INSERT},
	{"dequeue", ACL_DELETE},
	{"subscribe", ACL_UPDATE},
};

static AclMode
privilege_named(const char *name)
{
	if (pg_strcasecmp(name, "all") == 0)
		return ACL_INSERT | ACL_DELETE | ACL_UPDATE;
	for (int i = 0; i < lengthof(privileges); i++)
		if (pg_strcasecmp(name, privileges[i].name) == 0)
			return privileges[i].mode;
	ereport(ERROR,
			aq_error(AQ_ERR_PRIVILEGE_INVALID, "privilege \"%s\" does not exist", name),
			errhint("The privileges are enqueue, dequeue, subscribe and all."));
}

/* One, or several with commas between them. */
static AclMode
privileges_named(const char *list)
{
	char	   *next = pstrdup(list);
	AclMode		mode = 0;

	while (next != NULL)
	{
		char	   *name = strsep(&next, ",");
		int			length;

		name += strspn(name, " ");
		for (length = strlen(name); length > 0 && name[length - 1] == ' '; length--)
			name[length - 1] = '\0';
		mode |= privilege_named(name);
	}
	return mode;
}

/*
 * The grantee as text, because regrole has no PUBLIC: the role's name as it is,
 * neither folded nor quoted.  No role can have the name "public".
 */
static Oid
grantee_arg(FunctionCallInfo fcinfo, int arg)
{
	char	   *name = aq_args_name_or_null(fcinfo, arg, "grantee");

	return name == NULL || pg_strcasecmp(name, "public") == 0 ? ACL_ID_PUBLIC : get_role_oid(name, false);
}

/*
 * Has the caller the grant option for these privileges, although it does not
 * act for the owner?
 */
static bool
has_grant_option(const AqQueue *queue, AclMode mode)
{
	return pg_class_aclmask(queue->owner_view, GetUserId(), ACL_GRANT_OPTION_FOR(mode), ACLMASK_ALL) ==
		ACL_GRANT_OPTION_FOR(mode);
}

/*
 * Locks and returns the queue for a caller that has only the grant option;
 * otherwise returns NULL.
 */
static AqQueue *
queue_of_grantor(AqQueue *queue, const char *name, AclMode mode)
{
	int32		id = queue->id;

	if (aq_privilege_allows(queue, AQ_RIGHT_OWNER) || !has_grant_option(queue, mode))
		return NULL;
	(void) aq_queue_lock(id, ShareUpdateExclusiveLock, true);
	/*
	 * while we waited, the grant option may have been revoked, or the queue
	 * dropped
	 */
	AcceptInvalidationMessages();
	queue = aq_catalog_get(name, AQ_RIGHT_ANY);
	return queue->id == id && has_grant_option(queue, mode) ? queue : NULL;
}

/* Invalidates the old privileges in the dictionary cache. */
static void
note_change(Oid owner_view)
{
	aq_row_relation_changed(owner_view);
	aq_row_count_modification(AQ_ROW_USERS);
}

/* Sessions that wait by a privilege check it again: on the queue, and on its default exception queue. */
static void
note_revoked(int32 id)
{
	char	   *exceptions = aq_definition_default_exceptions(id);

	aq_pending_revoked(id);
	if (exceptions != NULL)
		aq_pending_revoked(aq_catalog_get_by_name(exceptions)->id);
}

static void
change_rights(FunctionCallInfo fcinfo, bool grant, bool option)
{
	const char *name = aq_args_name(fcinfo, 0, "queue_name");
	AqQueue    *queue = aq_catalog_get(name, AQ_RIGHT_ANY);
	AclMode		mode = privileges_named(aq_args_name(fcinfo, 2, "privilege"));
	Oid			grantee = grantee_arg(fcinfo, 1);
	Oid			role = GetUserId();
	AqQueue    *own;
	int32		id;
	Oid			view;

	if (option && grantee == ACL_ID_PUBLIC)
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "a grant option cannot be granted to PUBLIC"),
				errhint("Name a role."));
	aq_definition_refuse_rights(queue);
	own = queue_of_grantor(queue, name, mode);
	queue = own != NULL ? own : aq_ddl_queue(name, ShareUpdateExclusiveLock);
	id = queue->id;
	view = queue->owner_view;
	aq_acl_change(view, own != NULL ? role : InvalidOid, grantee, mode, grant, option);
	note_change(view);
	if (!grant)
		note_revoked(id);
}

PG_FUNCTION_INFO_V1(aq_rights_grant);
Datum
aq_rights_grant(PG_FUNCTION_ARGS)
{
	AQ_TIMED(AQ_TIME_ADMIN);

	aq_session_require_write("aq.grant_queue()");
	change_rights(fcinfo, true, !PG_ARGISNULL(3) && PG_GETARG_BOOL(3));
	PG_RETURN_VOID();
}

PG_FUNCTION_INFO_V1(aq_rights_revoke);
Datum
aq_rights_revoke(PG_FUNCTION_ARGS)
{
	AQ_TIMED(AQ_TIME_ADMIN);

	aq_session_require_write("aq.revoke_queue()");
	change_rights(fcinfo, false, false);
	PG_RETURN_VOID();
}

/* --- rights on single consumers ------------------------------------------------------- */

/* The fields of the queue that a change needs; the change invalidates the queue's description. */
typedef struct Target
{
	int32		id;
	Oid			view;
	Oid			owner;
	const char *consumer;
	Oid			grantee;		/* or ACL_ID_PUBLIC */
} Target;

static Target
target_of(const AqQueue *queue, const char *consumer, Oid grantee)
{
	return (Target) {queue->id, queue->owner_view, queue->owner, consumer, grantee};
}

/* $1 the queue, $2 the consumer, $3 the role, null: PUBLIC; $4 the queue's owner view. */
static void
run_on_target(const Target *target, const char *command)
{
	Oid			types[4] = {INT4OID, TEXTOID, OIDOID, OIDOID};
	Datum		values[4] = {Int32GetDatum(target->id), CStringGetTextDatum(target->consumer),
		ObjectIdGetDatum(target->grantee), ObjectIdGetDatum(target->view)};
	char		nulls[5] = "    ";

	nulls[2] = target->grantee == ACL_ID_PUBLIC ? 'n' : ' ';
	aq_sql_change(command, 4, types, values, nulls);
}

/* Of row g, as an ACL has it; null: it was dropped before a restore. */
#define GRANTEE "(CASE WHEN g.role IS NULL THEN 0::oid ELSE nullif(g.role::oid, 0::oid) END)"

/* A right that DROP OWNED has revoked does not come back with another one. */
static void
delete_lost(const Target *target)
{
	run_on_target(target, "DELETE FROM aq_internal.consumer_grant g WHERE g.queue_id = $1 AND NOT EXISTS ("
				  "SELECT FROM pg_class c, aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) a "
				  "WHERE c.oid = $4 AND a.privilege_type = 'REFERENCES' "
				  "AND a.grantee = " GRANTEE ")");
}

/* subscribed: aq.unsubscribe() is to revoke it, unless it was granted before. */
static void
grant_consumer(const Target *target, bool subscribed)
{
	delete_lost(target);
	run_on_target(target, psprintf("INSERT INTO aq_internal.consumer_grant AS g VALUES ($1, $2, $3, %s) "
								   "ON CONFLICT (queue_id, consumer, (role::oid)) WHERE role::oid IS DISTINCT FROM 0::oid "
								   "DO UPDATE SET subscribed = g.subscribed AND excluded.subscribed", subscribed ? "true" : "false"));
	if (target->grantee != target->owner)
		aq_acl_change(target->view, InvalidOid, target->grantee, ACL_REFERENCES, true, false);
}

/* Roles whose last right on a consumer of the queue is gone lose the sign of it. */
static void
revoke_signs(const Target *target)
{
	ListCell   *lc;
	List	   *roles = aq_sql_oids(psprintf(
											 "SELECT DISTINCT a.grantee "
											 "FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = %u AND a.privilege_type = 'REFERENCES' "
											 "AND a.grantee <> c.relowner AND NOT EXISTS (SELECT FROM aq_internal.consumer_grant g "
											 "WHERE g.queue_id = %d AND " GRANTEE " = a.grantee)", target->view, target->id));

	foreach(lc, roles)
		aq_acl_change(target->view, InvalidOid, lfirst_oid(lc), ACL_REFERENCES, false, false);
}

/* The caller has subscribed the consumer by the subscribe privilege.  It announces the change. */
void
aq_rights_subscribed(AqQueue *queue, const char *consumer)
{
	Target		target = target_of(queue, consumer, GetUserId());

	grant_consumer(&target, true);
	note_change(target.view);
}

/* ... and the consumer has been removed. */
void
aq_rights_unsubscribed(AqQueue *queue, const char *consumer)
{
	Target		target = target_of(queue, consumer, ACL_ID_PUBLIC);

	run_on_target(&target, "DELETE FROM aq_internal.consumer_grant WHERE queue_id = $1 AND consumer = $2 AND subscribed");
	revoke_signs(&target);
	note_change(target.view);
}

static void
change_consumer_rights(FunctionCallInfo fcinfo, bool grant)
{
	AqQueue    *queue = aq_ddl_queue(aq_args_name(fcinfo, 0, "queue_name"), ShareUpdateExclusiveLock);
	char	   *consumer = aq_args_name(fcinfo, 1, "consumer");
	Target		target = target_of(queue, consumer, grantee_arg(fcinfo, 2));

	if (!queue->multi)
		ereport(ERROR,
				aq_error(AQ_ERR_CONSUMER_FORBIDDEN, "queue \"%s\" has a single consumer", queue->name),
				errhint("Grant the dequeue privilege with aq.grant_queue."));
	if (grant)
	{
		aq_args_check_name(consumer, "consumer");
		grant_consumer(&target, false);
		aq_pending_changed(target.id);
	}
	else
	{
		run_on_target(&target, "DELETE FROM aq_internal.consumer_grant "
					  "WHERE queue_id = $1 AND consumer = $2 AND role::oid IS NOT DISTINCT FROM $3");
		revoke_signs(&target);
		aq_pending_altered(target.id);	/* sessions that wait for it check again */
	}
	note_change(target.view);
	aq_catalog_changed();
}

PG_FUNCTION_INFO_V1(aq_rights_grant_consumer);
Datum
aq_rights_grant_consumer(PG_FUNCTION_ARGS)
{
	AQ_TIMED(AQ_TIME_ADMIN);

	aq_session_require_write("aq.grant_consumer()");
	change_consumer_rights(fcinfo, true);
	PG_RETURN_VOID();
}

PG_FUNCTION_INFO_V1(aq_rights_revoke_consumer);
Datum
aq_rights_revoke_consumer(PG_FUNCTION_ARGS)
{
	AQ_TIMED(AQ_TIME_ADMIN);

	aq_session_require_write("aq.revoke_consumer()");
	change_consumer_rights(fcinfo, false);
	PG_RETURN_VOID();
}
