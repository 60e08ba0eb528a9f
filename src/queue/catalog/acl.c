/*-------------------------------------------------------------------------
 *
 * acl.c
 *	  Granting and revoking privileges on relations in schema aq_data.
 *
 * GRANT takes the names of roles, which may mean others by the time that it
 * runs, and only a role with USAGE on the schema can run it.  So the ACL is
 * changed here, as GRANT and REVOKE ... CASCADE would change it.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/catalog/catalog_private.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/pg_class.h"
#include "utils/acl.h"
#include "utils/rel.h"
#include "utils/syscache.h"

/*
 * Grants or revokes the privileges.  role: InvalidOid, for the relation's owner,
 * or a role that has only the grant option.
 */
void
aq_acl_change(Oid relation, Oid role, Oid grantee, AclMode mode, bool grant, bool option)
{
	Relation	rel = table_open(RelationRelationId, RowExclusiveLock);
	HeapTuple	stored = aq_catalog_row_lock(RELOID, ObjectIdGetDatum(relation));
	HeapTuple	tuple;
	Datum		values[Natts_pg_class] = {0};
	bool		nulls[Natts_pg_class] = {0};
	bool		replace[Natts_pg_class] = {0};
	AclItem		item = {.ai_grantee = grantee};
	Acl		   *acl;
	Oid			owner;
	Oid		   *old_members,
			   *new_members;
	int			nold,
				nnew;
	bool		isnull;
	Datum		old;

	if (!HeapTupleIsValid(stored))
		elog(ERROR, "cache lookup failed for relation %u", relation);
	owner = ((Form_pg_class) GETSTRUCT(stored))->relowner;
	old = SysCacheGetAttr(RELOID, stored, Anum_pg_class_relacl, &isnull);
	acl = isnull ? acldefault(OBJECT_TABLE, owner) : DatumGetAclPCopy(old);
	nold = isnull ? 0 : aclmembers(acl, &old_members);
	item.ai_grantor = aq_compat_best_grantor(OidIsValid(role) ? role : owner, mode, acl, owner);
	ACLITEM_SET_PRIVS_GOPTIONS(item, mode, grant && !option ? ACL_NO_RIGHTS : mode);
	acl = aclupdate(acl, &item, grant ? ACL_MODECHG_ADD : ACL_MODECHG_DEL, owner, DROP_CASCADE);
	nnew = aclmembers(acl, &new_members);

	replace[Anum_pg_class_relacl - 1] = true;
	values[Anum_pg_class_relacl - 1] = PointerGetDatum(acl);
	tuple = heap_modify_tuple(stored, RelationGetDescr(rel), values, nulls, replace);
	CatalogTupleUpdate(rel, &tuple->t_self, tuple);
	aq_catalog_row_unlock(rel, stored);
	updateAclDependencies(RelationRelationId, relation, 0, owner,
						  nold, nold ? old_members : NULL, nnew, new_members);
	table_close(rel, NoLock);
	CommandCounterIncrement();
}
