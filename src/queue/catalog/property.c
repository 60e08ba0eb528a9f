/*-------------------------------------------------------------------------
 *
 * property.c
 *	  Properties of the database, read through the dictionary cache.
 *
 * Table aq_internal.property has the values that were set; other values are
 * those in property_list.h, or computed from the database.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/catalog/catalog_private.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "commands/dbcommands.h"
#include "commands/tablespace.h"
#include "commands/trigger.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "pgtime.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

typedef struct Property
{
	const char *name;
	const char *value;
	const char *text;
} Property;

static const Property properties[] = {
#define X(name, text, value) {#name, value, text},
#include "queue/catalog/property_list.h"
#undef X
};

/* Oracle's name of the database's encoding, if it has one. */
static const char *
character_set(void)
{
	switch (GetDatabaseEncoding())
	{
		case PG_UTF8:
			return "AL32UTF8";
		case PG_SQL_ASCII:
			return "US7ASCII";
		case PG_LATIN1:
			return "WE8ISO8859P1";
		case PG_LATIN9:
			return "WE8ISO8859P15";
		case PG_WIN1252:
			return "WE8MSWIN1252";
		default:
			return GetDatabaseEncodingName();
	}
}

static const char *
derived_value(const char *name)
{
	if (strstr(name, "CHARACTERSET") != NULL)
		return character_set();
	if (strcmp(name, "DBTIMEZONE") == 0)
		return pg_get_timezone_name(log_timezone);
	if (strcmp(name, "GLOBAL_DB_NAME") == 0)
		return get_database_name(MyDatabaseId);
	if (strcmp(name, "NLS_RDBMS_VERSION") == 0)
		return PG_VERSION;
	return get_tablespace_name(MyDatabaseTableSpace);
}

/* Loads a row of dc_props: the value in the table or the default. */
static int
load_property(const AqRowKey *key, char *value, void *arg)
{
	const Property *property = arg;
	Relation	rel = table_open(key->relation, AccessShareLock);
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	const char *found = property->value ? property->value : derived_value(property->name);
	ScanKeyData scankey;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&scankey, 1, BTEqualStrategyNumber, F_TEXTEQ, CStringGetTextDatum(key->name));
	scan = systable_beginscan(rel, aq_primary_key(rel), true, snapshot, 1, &scankey);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
	{
		bool		isnull;

		found = TextDatumGetCString(heap_getattr(tuple, 2, RelationGetDescr(rel), &isnull));
	}
	strlcpy(value, found ? found : "", AQ_ROW_VALUE - 1);
	systable_endscan(scan);
	UnregisterSnapshot(snapshot);
	table_close(rel, AccessShareLock);
	return (int) strlen(value) + 1;
}

/* All properties, with one get of the dictionary cache for each. */
AQ_ROWS(aq_property_view)
{
	AqRowKey	key = {.database = MyDatabaseId, .relation = aq_schema_relation("property")};

	for (int i = 0; i < lengthof(properties); i++)
	{
		char		value[AQ_ROW_VALUE];

		memset(key.name, 0, sizeof(key.name));
		strlcpy(key.name, properties[i].name, sizeof(key.name));
		(void) aq_row_get(AQ_ROW_PROPS, &key, value, load_property, unconstify(Property *, &properties[i]));
		aq_rows_text(row, properties[i].name);
		aq_rows_text(row, value);
		aq_rows_text(row, properties[i].text);
		aq_rows_end(row);
	}
}

/* Trigger on aq_internal.property, after each statement that changes it. */
PG_FUNCTION_INFO_V1(aq_property_changed);
Datum
aq_property_changed(PG_FUNCTION_ARGS)
{
	if (!CALLED_AS_TRIGGER(fcinfo))
		elog(ERROR, "not called as a trigger");
	(void) GetTopTransactionId();
	aq_row_relation_changed(RelationGetRelid(((TriggerData *) fcinfo->context)->tg_relation));
	aq_row_count_modification(AQ_ROW_PROPS);
	PG_RETURN_POINTER(NULL);
}

/*
 * A command may have changed privileges or owners that are in the dictionary
 * cache.  CommandCounterIncrement makes PostgreSQL send the relations'
 * invalidations to this session, as it will to the others.
 */
static void
command_done(NodeTag tag, bool commits_prepared)
{
	switch (tag)
	{
		case T_GrantStmt:
		case T_AlterOwnerStmt:
		case T_AlterTableStmt:
		case T_DropOwnedStmt:
		case T_ReassignOwnedStmt:
			if (IsTransactionState())
				CommandCounterIncrement();
			break;
		case T_TransactionStmt:
			/* the changes of the prepared transaction are not known */
			if (commits_prepared)
				aq_row_flush_database(MyDatabaseId);
			break;
		default:
			break;
	}
}

void
aq_property_init(void)
{
	aq_utility_on_command(command_done);
}
