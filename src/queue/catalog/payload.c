/*-------------------------------------------------------------------------
 *
 * payload.c
 *	  Payload types: which ones a queue can have, and locking them.
 *
 * A queue keeps its payload type from being dropped and, once it has tables,
 * from being changed.  So the type cannot be temporary, and one of another role
 * needs a grant that names the role: USAGE of PUBLIC, which every type has by
 * default, is no consent to that.
 *
 * The type of a table or a view must belong to a role that has the rights of
 * the queue's owner anyway.  Another one could make its table or view depend on
 * a temporary object, which takes the queue along when it goes.
 *
 * To make a table, PostgreSQL locks the relations behind the composite types of
 * its columns.  Their owners can lock them for as long as they like.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/catalog/catalog_private.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

/* --- which types ------------------------------------------------------------------ */

/* Does a grant of USAGE name the role, or one that it is a member of? */
static bool
is_granted_by_name(Datum list, Oid role)
{
	Acl		   *acl = DatumGetAclP(list);
	AclItem    *items = ACL_DAT(acl);

	for (int i = 0; i < ACL_NUM(acl); i++)
		if (items[i].ai_grantee != ACL_ID_PUBLIC && (ACLITEM_GET_PRIVS(items[i]) & ACL_USAGE) &&
			has_privs_of_role(role, items[i].ai_grantee))
			return true;
	return false;
}

static bool
may_keep(Oid type)
{
	HeapTuple	tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(type));
	Datum		acl;
	bool		isnull;
	bool		allowed;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for type %u", type);
	acl = SysCacheGetAttr(TYPEOID, tuple, Anum_pg_type_typacl, &isnull);
	allowed = has_privs_of_role(GetUserId(), ((Form_pg_type) GETSTRUCT(tuple))->typowner) ||
		(!isnull && is_granted_by_name(acl, GetUserId()));
	ReleaseSysCache(tuple);
	return allowed;
}

static bool
is_standalone(Oid type)
{
	return get_rel_relkind(get_typ_typrelid(type)) == RELKIND_COMPOSITE_TYPE;
}

Oid
aq_payload_type_owner(Oid type)
{
	HeapTuple	tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(type));
	Oid			owner;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for type %u", type);
	owner = ((Form_pg_type) GETSTRUCT(tuple))->typowner;
	ReleaseSysCache(tuple);
	return owner;
}

/* The type that a table is OF, which takes the table along when it is dropped; InvalidOid: none. */
static Oid
type_of_table(Oid relation)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relation));
	Oid			type;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for relation %u", relation);
	type = ((Form_pg_class) GETSTRUCT(tuple))->reloftype;
	ReleaseSysCache(tuple);
	return type;
}

/* A composite type that goes away with a session, this one or another. */
static bool
is_temporary(Oid type)
{
	Oid			relation = get_typ_typrelid(type);
	Oid			of = type_of_table(relation);

	return isAnyTempNamespace(get_rel_namespace(relation)) || (OidIsValid(of) && is_temporary(of));
}

void
aq_payload_check_type(Oid type)
{
	if (!SearchSysCacheExists1(TYPEOID, ObjectIdGetDatum(type)))
		ereport(ERROR, aq_error(AQ_ERR_PAYLOAD_TYPE, "type with OID %u does not exist", type));
	if (type == JSONBOID || type == TEXTOID || type == BYTEAOID || type == XMLOID)
		return;
	if (get_typtype(type) != TYPTYPE_COMPOSITE)
		ereport(ERROR,
				aq_error(AQ_ERR_PAYLOAD_TYPE, "type %s cannot be a payload type", format_type_be(type)),
				errhint("Use jsonb, text, bytea, xml or a composite type."));
	if (!may_keep(type))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for type %s", format_type_be(type)),
				 errdetail("A queue keeps its payload type from being dropped, so the type of another role needs a grant by name; USAGE of PUBLIC does not count."),
				 errhint("Its owner can grant it: GRANT USAGE ON TYPE %s TO %s.", format_type_be(type),
						 quote_identifier(GetUserNameFromId(GetUserId(), false)))));
	if (!is_standalone(type) && !has_privs_of_role(aq_payload_type_owner(type), GetUserId()))
		ereport(ERROR,
				aq_error(AQ_ERR_PAYLOAD_TYPE, "type %s cannot be a payload type", format_type_be(type)),
				errdetail("It is the row type of a table or a view that belongs to another role."),
				errhint("Use a type created with CREATE TYPE, or the row type of your own table."));
	if (is_temporary(type))
		ereport(ERROR,
				aq_error(AQ_ERR_PAYLOAD_TYPE, "type %s cannot be a payload type", format_type_be(type)),
				errdetail("It is temporary."),
				errhint("Use a type that lasts as long as the queue."));
}

/* --- locking -------------------------------------------------------------------------- */

/* A wait for the worker, which would wait for this transaction. */
static void
refuse_own_lock(Oid relation)
{
	Relation	rel = relation_open(relation, NoLock);
	bool		locked = CheckRelationLockedByMe(rel, AccessExclusiveLock, false);

	relation_close(rel, NoLock);
	if (locked)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot create a table for the queue while this transaction has locked \"%s\"",
						get_rel_name(relation)),
				 errdetail("It is, or is part of, the payload type of the queue."),
				 errhint("Enqueue in a different transaction from the one that changes or locks it.")));
}

static bool
lock_relation(Oid relation, bool wait)
{
	if (!wait)
		return ConditionalLockRelationOid(relation, AccessShareLock);
	LockRelationOid(relation, AccessShareLock);
	refuse_own_lock(relation);
	return true;
}

/*
 * Lock what PostgreSQL will lock to make a table with a column of this type.
 * wait: a session does, where lock_timeout and the deadlock detector see it,
 * before it waits for the worker; the worker never waits, and gets false.
 */
bool
aq_payload_type_lock(Oid type, bool wait)
{
	Oid			relation;
	Oid			part;
	TupleDesc	desc;
	bool		locked = true;

	check_stack_depth();
	type = getBaseType(type);
	if (OidIsValid(part = get_element_type(type)) || OidIsValid(part = get_range_subtype(type)) ||
		OidIsValid(part = get_multirange_range(type)))
		return aq_payload_type_lock(part, wait);
	relation = get_typ_typrelid(type);
	if (!OidIsValid(relation))
		return true;
	if (!lock_relation(relation, wait))
		return false;
	desc = lookup_rowtype_tupdesc(type, -1);
	for (int i = 0; i < desc->natts && locked; i++)
		if (!TupleDescAttr(desc, i)->attisdropped)
			locked = aq_payload_type_lock(TupleDescAttr(desc, i)->atttypid, wait);
	ReleaseTupleDesc(desc);
	return locked;
}
