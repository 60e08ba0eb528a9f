/*-------------------------------------------------------------------------
 *
 * privilege.c
 *	  Privileges of the current role on a queue.
 *
 * They are those on the owner view aq_data.q<id>: its owner owns the queue,
 * INSERT is the privilege to enqueue, DELETE to dequeue, UPDATE to subscribe.
 * (pg_read_all_data includes none of them.)  REFERENCES is the right on at least
 * one consumer: see grants.c.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/catalog/catalog_private.h"

#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

/* offset of the ACL in a row of dc_users, after the owner */
#define RIGHTS_ACL 8

/*
 * The privileges on all queues are those on the view aq_internal.system_privilege, which pgaq_oracle makes and grants to
 * its roles.  Not those of roles with certain names: without pgaq_oracle, any role with CREATEROLE could make these.
 */
#define ENQUEUE_ANY ACL_INSERT
#define DEQUEUE_ANY ACL_DELETE
#define MANAGE_ANY	ACL_TRIGGER /* UPDATE would include pg_write_all_data */

/* Has the role one of these privileges on all queues? */
static bool
has_system_privilege(Oid role, AclMode mode)
{
	Oid			view = get_relname_relid("system_privilege", get_namespace_oid("aq_internal", true));

	return OidIsValid(view) && pg_class_aclmask(view, role, mode, ACLMASK_ANY) != 0;
}

/*
 * Loads a row of dc_users: the owner of the owner view, and its ACL from
 * pg_class.
 */
static int
load_rights(const AqRowKey *key, char *value, void *arg)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(key->relation));
	Oid			owner;
	Datum		datum;
	bool		isnull;
	Acl		   *acl;
	Size		length;

	if (!HeapTupleIsValid(tuple))
		return -1;
	owner = ((Form_pg_class) GETSTRUCT(tuple))->relowner;
	datum = SysCacheGetAttr(RELOID, tuple, Anum_pg_class_relacl, &isnull);
	acl = isnull ? acldefault(OBJECT_TABLE, owner) : DatumGetAclPCopy(datum);
	length = RIGHTS_ACL + VARSIZE(acl);
	if (length < AQ_ROW_VALUE)
	{
		memcpy(value, &owner, sizeof(owner));
		memcpy(value + RIGHTS_ACL, acl, VARSIZE(acl));
	}
	ReleaseSysCache(tuple);
	return (int) Min(length, AQ_ROW_VALUE);
}

/*
 * Has the role one of these privileges on the queue's owner view?  Uses PostgreSQL's
 * session-local cache, without contention; with pgaq.session_pins off, the
 * shared dictionary cache is used, as in Oracle.
 */
static bool
view_allows(AqQueue *queue, Oid role, AclMode mode)
{
	AqRowKey	key = {.database = MyDatabaseId,.relation = queue->owner_view};
	union
	{
		char		bytes[AQ_ROW_VALUE];
		int64		align;
	}			value;
	int			length;
	Oid			owner;

	if (aq_parameters_session_pins)
		return pg_class_aclmask(queue->owner_view, role, mode, ACLMASK_ANY) != 0;
	length = aq_row_get(AQ_ROW_USERS, &key, value.bytes, load_rights, NULL);
	if (length == AQ_ROW_VALUE)	/* the ACL is too long for a cached row */
		return pg_class_aclmask(queue->owner_view, role, mode, ACLMASK_ANY) != 0;
	if (length < 0)
		return false;
	memcpy(&owner, value.bytes, sizeof(owner));
	return aclmask((Acl *) (value.bytes + RIGHTS_ACL), role, owner, mode, ACLMASK_ANY) != 0;
}

/* May the current role act as the owner of every queue and queue table? */
bool
aq_privilege_manages_any(void)
{
	return has_system_privilege(GetUserId(), MANAGE_ANY);
}

/* Has the current role the privilege? */
bool
aq_privilege_allows(AqQueue *queue, AqRight right)
{
	Oid			role = GetUserId();

	/*
	 * a queue without its owner view, and so without an owner, can only be
	 * dropped
	 */
	if (!OidIsValid(queue->owner_view))
		return right == AQ_RIGHT_OWNER && superuser_arg(role);
	if (role == queue->owner || has_privs_of_role(role, queue->owner))
		return true;
	switch (right)
	{
		case AQ_RIGHT_ENQUEUE:
			return view_allows(queue, role, ACL_INSERT) ||
				has_system_privilege(role, ENQUEUE_ANY);
		case AQ_RIGHT_DEQUEUE:
			return view_allows(queue, role, ACL_DELETE) ||
				has_system_privilege(role, DEQUEUE_ANY);
		case AQ_RIGHT_CONSUMER:
			return view_allows(queue, role, ACL_DELETE | ACL_REFERENCES) ||
				has_system_privilege(role, DEQUEUE_ANY);
		case AQ_RIGHT_SUBSCRIBE:
			return view_allows(queue, role, ACL_UPDATE) || aq_privilege_manages_any();
		case AQ_RIGHT_ANY:
			return view_allows(queue, role, ACL_INSERT | ACL_DELETE | ACL_UPDATE | ACL_REFERENCES) ||
				has_system_privilege(role, ENQUEUE_ANY | DEQUEUE_ANY | MANAGE_ANY);
		case AQ_RIGHT_SEE:
			return has_privs_of_role(role, ROLE_PG_MONITOR) || aq_privilege_allows(queue, AQ_RIGHT_ANY);
		case AQ_RIGHT_OWNER:
			return aq_privilege_manages_any();
	}
	return false;
}

/* May the current role dequeue for this consumer? */
bool
aq_privilege_consumes(AqQueue *queue, const char *consumer)
{
	return aq_privilege_allows(queue, AQ_RIGHT_DEQUEUE) || aq_grants_allow(queue, consumer);
}

/*
 * May the current role see the counters of this consumer?  It can see those of all
 * consumers, unless all that it has is the right on some.
 */
bool
aq_privilege_shows(AqQueue *queue, const char *consumer)
{
	Oid			role = GetUserId();

	return aq_privilege_allows(queue, AQ_RIGHT_DEQUEUE) || aq_privilege_allows(queue, AQ_RIGHT_ENQUEUE) ||
		aq_privilege_allows(queue, AQ_RIGHT_SUBSCRIBE) || has_privs_of_role(role, ROLE_PG_MONITOR) ||
		aq_grants_allow(queue, consumer);
}

/* The same of the consumer at a position; one that is not known any more has no name. */
bool
aq_privilege_shows_position(AqQueue *queue, int position)
{
	for (int i = 0; i < queue->nconsumers; i++)
		if (queue->consumers[i].position == position)
			return aq_privilege_shows(queue, queue->consumers[i].name);
	return aq_privilege_shows(queue, NULL);
}
