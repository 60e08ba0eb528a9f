/*-------------------------------------------------------------------------
 *
 * citus.c
 *	  What pgaq calls and sets in Citus, if that is loaded.
 *
 * Citus must stand before pgaq in shared_preload_libraries, because it refuses
 * to start after a library that has a utility hook.  So it is loaded when this
 * library starts, and its callback for the end of a transaction runs after
 * that of base/xact.c: PostgreSQL calls the one registered last first.
 *
 * docs/citus.md describes what users see.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "base/base_int.h"
#include "fmgr.h"
#include "utils/guc.h"

/* a parameter that Citus defines itself, and no configuration file contains by default */
#define SIGN_OF_CITUS "citus.node_conninfo"

#define PROPAGATION "citus.enable_ddl_propagation"
#define TWO_PHASE "Use2PCForCoordinatedTransaction"

/* NULL: Citus is not loaded, or has no such function */
static void (*use_two_phase) (void) = NULL;

/* A placeholder, which a configuration file can make, does not count. */
static bool
is_loaded(void)
{
	return GetConfigOption(SIGN_OF_CITUS, true, false) != NULL &&
		(GetConfigOptionFlags(SIGN_OF_CITUS, true) & GUC_CUSTOM_PLACEHOLDER) == 0;
}

/* In _PG_init. */
void
aq_citus_find(void)
{
	if (!is_loaded())
		return;
	use_two_phase = (void (*) (void)) load_external_function("citus", TWO_PHASE, false, NULL);
	if (use_two_phase == NULL)
		ereport(WARNING,
				errmsg("messages and distributed rows of a transaction are not committed atomically"),
				errdetail("The library \"citus\" has no function %s.", TWO_PHASE),
				errhint("Use a version of Citus that pgaq is tested with, see docs/citus.md."));
}

/*
 * Citus leaves commands alone until the end of the GUC nest level that the
 * caller has opened.  The objects of a queue belong to this node.  On a worker
 * Citus would refuse to create them; on the coordinator it would also create
 * them on the workers.
 *
 * A placeholder counts: tests use one.
 */
void
aq_citus_keep_local(void)
{
	if (GetConfigOption(PROPAGATION, true, false) != NULL)
		aq_process_pin_parameter(PROPAGATION, "off");
}

/*
 * In a transaction that changes messages or tables of pgaq, before its commit:
 * if it also changes rows on other nodes, these are prepared before the local
 * commit.  Otherwise Citus commits a single other node first, and this one
 * afterwards: a crash between them would separate messages and rows.  Does not
 * raise an error.
 */
void
aq_citus_two_phase(void)
{
	if (use_two_phase != NULL)
		use_two_phase();
}
