/*-------------------------------------------------------------------------
 *
 * version.c
 *	  The version of the library, and that of the extension in the database.
 *
 * A library serves the catalog of its own version and that of the version
 * before, so that a new library is installed first and ALTER EXTENSION UPDATE
 * follows while programs run.  The other order is refused: the scripts of a
 * version compare pgaq.library_version with their own version before they
 * change anything, and a session whose library is older than the extension in
 * its database raises an error.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "base/base_int.h"
#include "catalog/pg_extension.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"

#define NUMBERS 3

static char *library_version;

void
aq_version_define_parameters(void)
{
	DefineCustomStringVariable("pgaq.library_version",
							   "Version of the library that the server has loaded.",
							   "It serves the extension of this version and of the version before: see ALTER EXTENSION pgaq UPDATE.",
							   &library_version, AQ_VERSION, PGC_INTERNAL, GUC_NOT_IN_SAMPLE | GUC_DISALLOW_IN_FILE,
							   NULL, NULL, NULL);
}

/* The version of the extension in this database; NULL: it is not there.  *is_own: this transaction has set it. */
static char *
version_in_database(bool *is_own)
{
	Relation	rel = table_open(ExtensionRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	char	   *version = NULL;

	ScanKeyInit(&key, Anum_pg_extension_extname, BTEqualStrategyNumber, F_NAMEEQ, CStringGetDatum("pgaq"));
	scan = systable_beginscan(rel, ExtensionNameIndexId, true, NULL, 1, &key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
	{
		bool		isnull;
		Datum		value = heap_getattr(tuple, Anum_pg_extension_extversion, RelationGetDescr(rel), &isnull);

		version = TextDatumGetCString(value);
		*is_own = TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(tuple->t_data));
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return version;
}

/* A version that does not consist of numbers has none of them. */
static void
read_numbers(const char *version, int numbers[NUMBERS])
{
	numbers[0] = numbers[1] = numbers[2] = 0;
	(void) sscanf(version, "%d.%d.%d", &numbers[0], &numbers[1], &numbers[2]);
}

static bool
is_newer(const char *version, const char *than)
{
	int			one[NUMBERS];
	int			other[NUMBERS];

	read_numbers(version, one);
	read_numbers(than, other);
	for (int i = 0; i < NUMBERS; i++)
		if (one[i] != other[i])
			return one[i] > other[i];
	return false;
}

/*
 * Has the catalog of this database keys of messages?  Before, tables get no column
 * for them: the library of 0.1.0, to which one may return, could not write to them.
 */
bool
aq_version_has_keys(void)
{
	static bool known;			/* for the session: there is no way back, but from an update that may be rolled back */
	char	   *version;
	bool		is_own;
	bool		has_keys;

	if (known)
		return true;
	version = version_in_database(&is_own);
	has_keys = version != NULL && aq_version_knows_keys(version);
	known = has_keys && !is_own;
	return has_keys;
}

/* The same of a catalog of this version. */
bool
aq_version_knows_keys(const char *version)
{
	return !is_newer("0.2.0", version);
}

/* Has this transaction itself set the version?  Then the worker does not know it yet. */
bool
aq_version_is_own(void)
{
	bool		is_own = false;

	(void) version_in_database(&is_own);
	return is_own;
}

/* Is this version older than that of the library? */
bool
aq_version_is_older(const char *version)
{
	return is_newer(AQ_VERSION, version);
}

/*
 * Raises an error if the extension in the database is newer than the library,
 * which may know neither its tables nor its functions.  Once in a session: the
 * scripts of a newer version do not run while this library is loaded.
 */
void
aq_version_check(void)
{
	static bool checked;
	char	   *version;
	bool		is_own;

	if (checked)
		return;
	version = version_in_database(&is_own);
	if (version == NULL)
		return;
	if (is_newer(version, AQ_VERSION))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("version %s of the extension \"pgaq\" needs a newer library than version %s", version, AQ_VERSION),
				 errhint("Install version %s of pgaq, or a later one, and restart the server.", version)));
	pfree(version);
	checked = true;
}
