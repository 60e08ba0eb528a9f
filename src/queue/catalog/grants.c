/*-------------------------------------------------------------------------
 *
 * grants.c
 *	  Rights on single consumers of a topic.
 *
 * A role without the dequeue privilege can have the right to dequeue for one
 * consumer.  The right is a row of aq_internal.consumer_grant, by the consumer's
 * name, and it counts only while the owner view has REFERENCES for the same role.
 * So PostgreSQL knows that the role has something here: it refuses DROP ROLE,
 * DROP OWNED revokes the right, and the roles that have none are found out
 * without a look at the rows.  The rows are read when a description of the queue
 * needs them for the first time.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/catalog/catalog_private.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

typedef struct AqGrant
{
	char	   *consumer;
	Oid			role;			/* or ACL_ID_PUBLIC */
	bool		seen;			/* aq_grants_exist() has found it */
} AqGrant;

/* The columns of aq_internal.consumer_grant. */
enum
{
	GRANT_QUEUE, GRANT_CONSUMER, GRANT_ROLE, GRANT_SUBSCRIBED, GRANT_COLUMNS
};

/* Rows of dropped roles are left out: InvalidOid is not PUBLIC, null is. */
static List *
read_rows(AqQueue *queue)
{
	Relation	rel = aq_schema_open("consumer_grant", AccessShareLock);
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	List	   *grants = NIL;

	ScanKeyInit(&key, 1, BTEqualStrategyNumber, F_INT4EQ, Int32GetDatum(queue->id));
	scan = systable_beginscan(rel, aq_schema_relation("consumer_grant_queue_id"), true, snapshot, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Datum		values[GRANT_COLUMNS];
		bool		nulls[GRANT_COLUMNS];
		AqGrant    *grant;

		aq_rows_read(tuple, RelationGetDescr(rel), GRANT_COLUMNS, values, nulls);
		if (!nulls[GRANT_ROLE] && !OidIsValid(DatumGetObjectId(values[GRANT_ROLE])))
			continue;
		grant = palloc0(sizeof(AqGrant));
		grant->consumer = TextDatumGetCString(values[GRANT_CONSUMER]);
		grant->role = nulls[GRANT_ROLE] ? ACL_ID_PUBLIC : DatumGetObjectId(values[GRANT_ROLE]);
		grants = lappend(grants, grant);
	}
	systable_endscan(scan);
	UnregisterSnapshot(snapshot);
	table_close(rel, AccessShareLock);
	return grants;
}

/* A change of the rows makes the description stale, and them with it. */
static List *
grants_of(AqQueue *queue)
{
	if (!queue->grants_read)
	{
		MemoryContext old = MemoryContextSwitchTo(queue->context);

		queue->grants = read_rows(queue);
		queue->grants_read = true;
		MemoryContextSwitchTo(old);
	}
	return queue->grants;
}

/* The privileges on the owner view as they were granted, to be freed; NULL: none were. */
static Acl *
view_acl(const AqQueue *queue)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(queue->owner_view));
	Acl		   *acl = NULL;
	Datum		datum;
	bool		isnull;

	if (!HeapTupleIsValid(tuple))
		return NULL;
	datum = SysCacheGetAttr(RELOID, tuple, Anum_pg_class_relacl, &isnull);
	if (!isnull)
		acl = DatumGetAclPCopy(datum);
	ReleaseSysCache(tuple);
	return acl;
}

/* Was REFERENCES granted to this role itself, not to one it is a member of? */
static bool
is_granted(const Acl *acl, Oid role)
{
	for (int i = 0; i < ACL_NUM(acl); i++)
	{
		const AclItem *item = &ACL_DAT(acl)[i];

		if (item->ai_grantee == role && (ACLITEM_GET_PRIVS(*item) & ACL_REFERENCES))
			return true;
	}
	return false;
}

/* A right on the consumer that counts: of the role, directly or as a member, or, if it is InvalidOid, of any; or NULL. */
static AqGrant *
find(AqQueue *queue, const char *consumer, Oid role)
{
	Acl		   *acl = view_acl(queue);
	AqGrant    *found = NULL;
	ListCell   *lc;

	if (acl == NULL)
		return NULL;
	foreach(lc, grants_of(queue))
	{
		AqGrant    *grant = lfirst(lc);

		if (strcmp(grant->consumer, consumer) == 0 &&
			(!OidIsValid(role) || grant->role == ACL_ID_PUBLIC || has_privs_of_role(role, grant->role)) &&
			is_granted(acl, grant->role))
		{
			found = grant;
			break;
		}
	}
	pfree(acl);
	return found;
}

/* Has the current role the right on this consumer, by aq.grant_consumer()? */
bool
aq_grants_allow(AqQueue *queue, const char *consumer)
{
	Oid			role = GetUserId();

	if (queue->persistent != NULL)
		queue = queue->persistent;
	return consumer != NULL && pg_class_aclcheck(queue->owner_view, role, ACL_REFERENCES) == ACLCHECK_OK &&
		find(queue, consumer, role) != NULL;
}

static AqGrant *
find_seen(AqQueue *queue, const char *consumer)
{
	ListCell   *lc;

	foreach(lc, grants_of(queue))
	{
		AqGrant    *grant = lfirst(lc);

		if (grant->seen && strcmp(grant->consumer, consumer) == 0)
			return grant;
	}
	return NULL;
}

/*
 * Has any role?  A session can ask at each call, so the answer yes is kept with
 * the description; DROP OWNED, which does not change that, does not end it.
 */
bool
aq_grants_exist(AqQueue *queue, const char *consumer)
{
	AqGrant    *grant;

	if (queue->persistent != NULL)
		queue = queue->persistent;
	grant = find_seen(queue, consumer);
	if (grant == NULL)
		grant = find(queue, consumer, InvalidOid);
	if (grant != NULL)
		grant->seen = true;
	return grant != NULL;
}
