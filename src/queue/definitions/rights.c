/*-------------------------------------------------------------------------
 *
 * rights.c
 *	  Granting and revoking privileges on queues.
 *
 * A queue's privileges are those on its owner view, a view in schema aq_data:
 * INSERT is enqueue, DELETE is dequeue.  For a role that acts for the queue's
 * owner, GRANT and REVOKE are executed as the owner.  A role that only has a
 * grant option grants as itself: it has no USAGE on the schema, so its ACL is
 * changed here as GRANT would change it.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/definitions/definitions_private.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/rel.h"
#include "utils/syscache.h"

static AclMode
privileges_named(const char *privilege)
{
	if (pg_strcasecmp(privilege, "enqueue") == 0)
		return ACL_INSERT;
	if (pg_strcasecmp(privilege, "dequeue") == 0)
		return ACL_DELETE;
	if (pg_strcasecmp(privilege, "all") == 0)
		return ACL_INSERT | ACL_DELETE;
	ereport(ERROR,
			aq_error(AQ_ERR_PRIVILEGE_INVALID, "privilege \"%s\" does not exist", privilege),
			errhint("The privileges are enqueue, dequeue and all."));
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

/*
 * Does what GRANT and REVOKE ...  CASCADE would do, with the grantor that they
 * would select.
 */
static void
change_acl(const AqQueue *queue, Oid grantee, AclMode mode, bool grant, bool option)
{
	Relation	rel = table_open(RelationRelationId, RowExclusiveLock);
	HeapTuple	stored = aq_catalog_row_lock(RELOID, ObjectIdGetDatum(queue->owner_view));
	HeapTuple	tuple;
	Datum		values[Natts_pg_class] = {0};
	bool		nulls[Natts_pg_class] = {0};
	bool		replace[Natts_pg_class] = {0};
	AclItem		item = {.ai_grantee = grantee};
	AclMode		options;
	Acl		   *acl;
	Oid		   *old_members,
			   *new_members;
	int			nold,
				nnew;
	bool		isnull;
	Datum		old;

	if (!HeapTupleIsValid(stored))
		elog(ERROR, "cache lookup failed for relation %u", queue->owner_view);
	old = SysCacheGetAttr(RELOID, stored, Anum_pg_class_relacl, &isnull);
	acl = isnull ? acldefault(OBJECT_TABLE, queue->owner) : DatumGetAclPCopy(old);
	nold = isnull ? 0 : aclmembers(acl, &old_members);
	select_best_grantor(GetUserId(), mode, acl, queue->owner, &item.ai_grantor, &options);
	ACLITEM_SET_PRIVS_GOPTIONS(item, mode, grant && !option ? ACL_NO_RIGHTS : mode);
	acl = aclupdate(acl, &item, grant ? ACL_MODECHG_ADD : ACL_MODECHG_DEL, queue->owner, DROP_CASCADE);
	nnew = aclmembers(acl, &new_members);

	replace[Anum_pg_class_relacl - 1] = true;
	values[Anum_pg_class_relacl - 1] = PointerGetDatum(acl);
	tuple = heap_modify_tuple(stored, RelationGetDescr(rel), values, nulls, replace);
	CatalogTupleUpdate(rel, &tuple->t_self, tuple);
	aq_catalog_row_unlock(rel, stored);
	updateAclDependencies(RelationRelationId, queue->owner_view, 0, queue->owner,
						  nold, nold ? old_members : NULL, nnew, new_members);
	table_close(rel, NoLock);
}

/* Invalidates the old privileges in the dictionary cache. */
static void
note_change(const AqQueue *queue)
{
	aq_row_relation_changed(queue->owner_view);
	aq_row_count_modification(AQ_ROW_USERS);
}

static void
change_rights(FunctionCallInfo fcinfo, bool grant, bool option)
{
	const char *name = aq_args_name(fcinfo, 0, "queue_name");
	AqQueue    *queue = aq_catalog_get(name, AQ_RIGHT_ANY);
	AclMode		mode = privileges_named(aq_args_name(fcinfo, 2, "privilege"));
	const char *privileges = mode == ACL_INSERT ? "INSERT" : mode == ACL_DELETE ? "DELETE" : "INSERT, DELETE";
	Oid			grantee = PG_ARGISNULL(1) ? ACL_ID_PUBLIC : PG_GETARG_OID(1);
	const char *role = PG_ARGISNULL(1) ? "PUBLIC" : quote_identifier(GetUserNameFromId(grantee, false));

	if (option && grantee == ACL_ID_PUBLIC)
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "a grant option cannot be granted to PUBLIC"),
				errhint("Name a role."));
	queue = queue_of_grantor(queue, name, mode);
	if (queue != NULL)
	{
		change_acl(queue, grantee, mode, grant, option);
		note_change(queue);
		return;
	}
	queue = aq_ddl_queue(name, ShareUpdateExclusiveLock);
	if (grant)
		aq_sql_change(psprintf("GRANT %s ON aq_data.q%d TO %s%s", privileges, queue->id, role,
							   option ? " WITH GRANT OPTION" : ""), 0, NULL, NULL, NULL);
	else
		aq_sql_change(psprintf("REVOKE %s ON aq_data.q%d FROM %s CASCADE", privileges, queue->id, role),
					  0, NULL, NULL, NULL);
	note_change(queue);
}

PG_FUNCTION_INFO_V1(aq_rights_grant);
Datum
aq_rights_grant(PG_FUNCTION_ARGS)
{
	AQ_TIMED(AQ_TIME_ADMIN);

	aq_ddl_begin("aq.grant_queue()");
	change_rights(fcinfo, true, !PG_ARGISNULL(3) && PG_GETARG_BOOL(3));
	PG_RETURN_VOID();
}

PG_FUNCTION_INFO_V1(aq_rights_revoke);
Datum
aq_rights_revoke(PG_FUNCTION_ARGS)
{
	AQ_TIMED(AQ_TIME_ADMIN);

	aq_ddl_begin("aq.revoke_queue()");
	change_rights(fcinfo, false, false);
	PG_RETURN_VOID();
}
