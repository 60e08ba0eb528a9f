/*-------------------------------------------------------------------------
 *
 * privilege.c
 *	  Privileges of the current role on a queue.
 *
 * They are those on the owner view aq_data.q<id>: its owner owns the queue,
 * INSERT is the privilege to enqueue, DELETE to dequeue, UPDATE to subscribe.
 * (pg_read_all_data includes none of them.)  REFERENCES is the right on at least
 * one consumer: see grants.c.  TRUNCATE, which a view does not use otherwise, is
 * granted to PUBLIC for a temporary queue: roles that take part can enqueue.
 *
 * A role takes part if it has a privilege on a queue that is not temporary, or may
 * create queues.  A role that can only connect neither creates temporary queues nor
 * enqueues into them.
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
#include "catalog/pg_type.h"
#include "executor/spi.h"
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

/* Has the role one of these privileges on all queues?  The workers' role has them. */
static bool
has_system_privilege(Oid role, AclMode mode)
{
	Oid			view;

	if (role == aq_owner_role())
		return true;
	view = get_relname_relid("system_privilege", get_namespace_oid("aq_internal", true));
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
	AqRowKey	key = {.database = MyDatabaseId, .relation = queue->owner_view};
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
	if (length == AQ_ROW_VALUE) /* the ACL is too long for a cached row */
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

/* --- who takes part ------------------------------------------------------------------------ */

/* the role for which this was last found out, and the owner view on which it has a privilege */
static Oid	part_role;
static Oid	part_view;

/*
 * Looks for a privilege that lets the role take part; returns the owner view of the queue, or
 * invalid: *found without it, because the role may call a function that lets it in.
 */
static Oid
find_part(Oid role, bool *found)
{
	Oid			types[1] = {OIDOID};
	Datum		values[1] = {ObjectIdGetDatum(role)};
	Oid			view = InvalidOid;
	bool		isnull;

	aq_sql_run("SELECT 0::pg_catalog.oid FROM pg_catalog.pg_proc p "
			   "WHERE p.pronamespace = 'aq'::pg_catalog.regnamespace AND (p.proname = 'create_queue' AND pg_catalog.has_function_privilege($1, p.oid, 'EXECUTE') "
			   "OR p.proname = 'create_temporary_queue' AND EXISTS (SELECT FROM pg_catalog.aclexplode(p.proacl) a "
			   "WHERE a.grantee <> 0 AND pg_catalog.pg_has_role($1, a.grantee, 'USAGE'))) "
			   "UNION ALL "
			   "SELECT c.oid FROM pg_catalog.pg_class c WHERE c.relnamespace = 'aq_data'::pg_catalog.regnamespace AND c.relkind = 'v' "
			   "AND c.relname NOT IN (SELECT 'q' || t.queue_id FROM aq_internal.temporary t WHERE t.consumer_number = 0) "
			   "AND pg_catalog.has_table_privilege($1, c.oid, 'INSERT, DELETE, UPDATE, REFERENCES') LIMIT 1",
			   1, types, values, NULL, true);
	*found = SPI_processed > 0;
	if (*found)
		view = DatumGetObjectId(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull));
	SPI_finish();
	return view;
}

/*
 * Does the current role take part?  The session remembers on which queue the
 * role has a privilege, and checks it: with many queues, looking for one takes
 * long.
 */
bool
aq_privilege_takes_part(void)
{
	Oid			role = GetUserId();
	bool		found;

	if (superuser_arg(role) || has_system_privilege(role, ENQUEUE_ANY | DEQUEUE_ANY | MANAGE_ANY))
		return true;
	if (role == part_role && OidIsValid(part_view) && SearchSysCacheExists1(RELOID, ObjectIdGetDatum(part_view)) &&
		pg_class_aclmask(part_view, role, ACL_INSERT | ACL_DELETE | ACL_UPDATE | ACL_REFERENCES, ACLMASK_ANY) != 0)
		return true;
	part_view = find_part(role, &found);
	part_role = role;
	return found;
}

PG_FUNCTION_INFO_V1(aq_privilege_takes_part_now);
/* aq_internal.takes_part() */
Datum
aq_privilege_takes_part_now(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(aq_privilege_takes_part());
}

/* The part of a privilege to enqueue that everybody who takes part has. */
static bool
allows_all(AqQueue *queue, Oid role)
{
	return view_allows(queue, role, ACL_TRUNCATE) && aq_privilege_takes_part();
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
			return view_allows(queue, role, ACL_INSERT) || allows_all(queue, role) ||
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
				allows_all(queue, role) || has_system_privilege(role, ENQUEUE_ANY | DEQUEUE_ANY | MANAGE_ANY);
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

/* The same of the consumer at a position; one that is no longer known has no name. */
bool
aq_privilege_shows_position(AqQueue *queue, int position)
{
	for (int i = 0; i < queue->nconsumers; i++)
		if (queue->consumers[i].position == position)
			return aq_privilege_shows(queue, queue->consumers[i].name);
	return aq_privilege_shows(queue, NULL);
}
