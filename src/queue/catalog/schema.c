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

Oid
aq_schema_relation(const char *name)
{
	Oid			oid = aq_owner_table(name);

	aq_version_check();
	if (!OidIsValid(oid))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation \"aq_internal.%s\" does not exist", name),
				 errhint("CREATE EXTENSION pgaq creates it.")));
	return oid;
}

/* Opens a table of aq_internal; DROP EXTENSION may be committed while the call waits for the lock. */
Relation
aq_schema_open(const char *name, LOCKMODE mode)
{
	Relation	rel = try_table_open(aq_schema_relation(name), mode);

	if (rel == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("extension \"pgaq\" does not exist"),
				 errdetail("Another session has dropped it."),
				 errhint("CREATE EXTENSION pgaq creates it.")));
	return rel;
}

/*
 * Finds a relation that is missing in the session's caches, because its
 * invalidations have not been sent yet.
 */
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
	InvalidateCatalogSnapshot();	/* so that it is opened with a snapshot that is as new */
	return oid;
}

/*
 * A commit is visible before its invalidations are sent to other sessions: so
 * a relation that the caches do not have is searched in pg_class.
 */
Oid
aq_schema_data_relation(const char *name)
{
	Oid			schema = get_namespace_oid("aq_data", true);
	Oid			oid = OidIsValid(schema) ? get_relname_relid(name, schema) : InvalidOid;

	return OidIsValid(schema) && !OidIsValid(oid) ? find_relation(name, schema) : oid;
}

/* A superuser may have replaced a table of pgaq by a view. */
Oid
aq_schema_data_table(const char *name)
{
	Oid			oid = aq_schema_data_relation(name);
	char		kind = OidIsValid(oid) ? get_rel_relkind(oid) : '\0';

	return kind == RELKIND_RELATION || kind == '\0' ? oid : InvalidOid; /* \0: not in the caches yet */
}

/* Has the table a column with this number, counted from 0?  Tables made by an earlier version lack the last ones. */
bool
aq_schema_has_column(Oid table, int column)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(table));
	bool		has = HeapTupleIsValid(tuple) && ((Form_pg_class) GETSTRUCT(tuple))->relnatts > column;

	if (HeapTupleIsValid(tuple))
		ReleaseSysCache(tuple);
	return has;
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

/* session whose messages a helper enqueues; 0: its own */
static int64 other_identity;
static int	other_number;

/*
 * For a helper: it enqueues for another session, in order with that session's
 * earlier messages. 0: ends this.
 */
void
aq_schema_act_for(int64 identity, int number)
{
	other_identity = identity;
	other_number = number;
}

/* The number of the session whose messages this one enqueues. */
int
aq_schema_session_number(void)
{
	return other_identity != 0 ? other_number : aq_session_number();
}

/*
 * The identity of that session in rows, which is never reused in the database.
 */
int64
aq_schema_session_identity(void)
{
	return other_identity != 0 ? other_identity : aq_schema_own_identity();
}

/* That of this session, even if it enqueues for another one. */
int64
aq_schema_own_identity(void)
{
	static int64 identity;
	static Oid	database;

	if (identity == 0 || database != MyDatabaseId)
	{
		identity = nextval_internal(aq_schema_relation("session_id_seq"), false);
		database = MyDatabaseId;
	}
	return identity;
}
