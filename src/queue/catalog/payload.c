/*-------------------------------------------------------------------------
 *
 * payload.c
 *	  Payload types: checks and locks.
 *
 * A queue prevents its payload type from being dropped and, once it has
 * tables, from being changed.  So the type cannot be temporary, and a type of
 * another role needs a grant to the queue's owner by name: USAGE for PUBLIC,
 * which every type has by default, does not suffice.
 *
 * The row type of a table or a view must belong to a role that has the
 * privileges of the queue's owner anyway.  Another role could make its table
 * or view depend on a temporary object, whose removal would drop the queue.
 *
 * To create a table, PostgreSQL locks the relations of the composite types of
 * its columns.  Their owners can lock these for any length of time.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/catalog/catalog_private.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "access/xact.h"
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

/*
 * --- checks
 * ------------------------------------------------------------------
 */

/*
 * Is USAGE granted by name to the role, or to a role of which it is a member?
 */
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

/*
 * Is it a type of the extension, such as aq.jms_message?  A queue cannot keep it
 * from being dropped, because the extension drops both, so that it needs no grant.
 * Not the row type of a view, which a later version of the extension may have to
 * drop alone.
 */
static bool
is_of_extension(Oid type)
{
	Oid			relation = get_typ_typrelid(type);

	return get_rel_namespace(relation) == get_namespace_oid("aq", true) &&
		get_rel_relkind(relation) == RELKIND_COMPOSITE_TYPE;
}

/* aq.jms_message, if it exists */
static Oid
jms_type(Oid schema)
{
	return GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid, CStringGetDatum("jms_message"), ObjectIdGetDatum(schema));
}

bool
aq_payload_is_jms(Oid type)
{
	Oid			schema = get_rel_namespace(get_typ_typrelid(type));

	return OidIsValid(schema) && schema == get_namespace_oid("aq", true) && type == jms_type(schema);
}

Oid
aq_payload_jms_type(void)
{
	Oid			type = jms_type(get_namespace_oid("aq", false));

	if (!OidIsValid(type))
		elog(ERROR, "type aq.jms_message does not exist");
	return type;
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

/*
 * The type of a typed table (CREATE TABLE OF), whose drop would cascade to the
 * table; InvalidOid: none.
 */
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

/* Is it a composite type that is dropped at the end of a session? */
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
	if (!is_of_extension(type) && !may_keep(type))
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
	/* it is not dropped before the queue depends on it */
	LockDatabaseObject(TypeRelationId, type, 0, AccessShareLock);
	if (!SearchSysCacheExists1(TYPEOID, ObjectIdGetDatum(type)))
		ereport(ERROR, aq_error(AQ_ERR_PAYLOAD_TYPE, "type with OID %u does not exist", type));
}

void
aq_payload_refuse_column(const AqQueue *queue, Oid type)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("a table of queue \"%s\" does not have the payload type of the queue", queue->name),
			 errdetail("Its column \"payload\" has type %s instead of %s.", format_type_be(type),
					   format_type_be(queue->payload_type)),
			 errhint("Restore the table from a backup, or drop the queue with force => true.")));
}

/*
 * --- locks
 * --------------------------------------------------------------------------
 */

/*
 * Raises an error if the session would wait for the worker, which would wait
 * for this transaction.
 */
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
 * Takes the locks that PostgreSQL needs to create a table with a column of
 * this type. wait: for sessions, before they wait for the worker, so that
 * lock_timeout and the deadlock detector work; the worker never waits, but
 * gets false.
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

/* --- changes ------------------------------------------------------------------------------- */

static bool
has_uncommitted_row(Oid relation)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relation));
	bool		uncommitted;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for relation %u", relation);
	uncommitted = TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(tuple->t_data));
	ReleaseSysCache(tuple);
	return uncommitted;
}

/*
 * Has the transaction created the type, or a part of it, or added an attribute?
 * After its rollback, a value would not be one of the type.
 */
bool
aq_payload_type_is_uncommitted(Oid type)
{
	Oid			relation;
	Oid			part;
	TupleDesc	desc;
	bool		uncommitted = false;

	check_stack_depth();
	type = getBaseType(type);
	if (OidIsValid(part = get_element_type(type)) || OidIsValid(part = get_range_subtype(type)) ||
		OidIsValid(part = get_multirange_range(type)))
		return aq_payload_type_is_uncommitted(part);
	relation = get_typ_typrelid(type);
	if (!OidIsValid(relation))
		return false;
	if (has_uncommitted_row(relation))
		return true;
	desc = lookup_rowtype_tupdesc(type, -1);
	for (int i = 0; i < desc->natts && !uncommitted; i++)
		if (!TupleDescAttr(desc, i)->attisdropped)
			uncommitted = aq_payload_type_is_uncommitted(TupleDescAttr(desc, i)->atttypid);
	ReleaseTupleDesc(desc);
	return uncommitted;
}
