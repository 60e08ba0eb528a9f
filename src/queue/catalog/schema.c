/*-------------------------------------------------------------------------
 *
 * schema.c
 *	  The relations of the schemas aq_internal and aq_data.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/catalog/catalog_private.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "commands/sequence.h"
#include "miscadmin.h"
#include "utils/fmgroids.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

Oid
aq_schema_relation(const char *name)
{
	Oid			schema = get_namespace_oid("aq_internal", true);
	Oid			oid = OidIsValid(schema) ? get_relname_relid(name, schema) : InvalidOid;

	if (!OidIsValid(oid))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation \"aq_internal.%s\" does not exist", name),
				 errhint("CREATE EXTENSION pgaq creates it.")));
	return oid;
}

/* A relation that the session's caches do not know of, because its maker has not told of it yet. */
static Oid
find_relation(const char *name, Oid schema)
{
	Relation	rel = table_open(RelationRelationId, AccessShareLock);
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	NameData	wanted;
	ScanKeyData keys[2];
	SysScanDesc scan;
	HeapTuple	tuple;
	Oid			oid = InvalidOid;

	namestrcpy(&wanted, name);
	ScanKeyInit(&keys[0], Anum_pg_class_relname, BTEqualStrategyNumber, F_NAMEEQ, NameGetDatum(&wanted));
	ScanKeyInit(&keys[1], Anum_pg_class_relnamespace, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(schema));
	scan = systable_beginscan(rel, ClassNameNspIndexId, true, snapshot, lengthof(keys), keys);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
		oid = ((Form_pg_class) GETSTRUCT(tuple))->oid;
	systable_endscan(scan);
	UnregisterSnapshot(snapshot);
	table_close(rel, AccessShareLock);
	InvalidateCatalogSnapshot();	/* it is opened with one that is as new */
	return oid;
}

/*
 * A commit is visible before the other sessions hear that their caches are
 * old: what is said not to exist is looked for in pg_class.
 */
Oid
aq_schema_data_relation(const char *name)
{
	Oid			schema = get_namespace_oid("aq_data", true);
	Oid			oid = OidIsValid(schema) ? get_relname_relid(name, schema) : InvalidOid;

	return OidIsValid(schema) && !OidIsValid(oid) ? find_relation(name, schema) : oid;
}

char *
aq_schema_message_table(int32 id)
{
	return id > 0 ? psprintf("t%d", id) : psprintf("b%d", -id);
}

char *
aq_schema_consumer_table(int32 id)
{
	return id > 0 ? psprintf("c%d", id) : psprintf("d%d", -id);
}

/* whose messages a helper enqueues: another session's; 0: its own */
static int64 other_identity;
static int	other_number;

/*
 * For a helper: what it enqueues is another session's, and in order with what
 * that one has had enqueued before.  0: no longer.
 */
void
aq_schema_act_for(int64 identity, int number)
{
	other_identity = identity;
	other_number = number;
}

/* Of the session whose messages this one enqueues. */
int
aq_schema_session_number(void)
{
	return other_identity != 0 ? other_number : aq_session_number();
}

/* Its identity in rows: unique in the database for ever. */
int64
aq_schema_session_identity(void)
{
	static int64 identity;
	static Oid	database;

	if (other_identity != 0)
		return other_identity;
	if (identity == 0 || database != MyDatabaseId)
	{
		identity = nextval_internal(aq_schema_relation("session_id_seq"), false);
		database = MyDatabaseId;
	}
	return identity;
}
