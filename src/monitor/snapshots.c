/*-------------------------------------------------------------------------
 *
 * snapshots.c
 *	  The worker's job that takes snapshots.  The SQL function
 *	  aq_internal.snapshot_turn() takes and purges them.
 *
 * The worker remembers when the next snapshot is due, so that a turn without
 * one costs only a comparison.  A session that changes the settings increments
 * `changes` when it commits and posts the worker, which then computes the time
 * again.  (COMMIT PREPARED does not: such a change takes effect when the next
 * snapshot is due.)
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "monitor/monitor_private.h"

#include "catalog/namespace.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

/* pause before the next try after an error, in microseconds */
#define TRY_AGAIN ((int64) 60000000)

typedef struct SnapshotsShared
{
	pg_atomic_uint32 changes;	/* number of changes of settings, in all databases */
} SnapshotsShared;

static SnapshotsShared *shared;
static bool settings_changed;	/* by this transaction */

Size
aq_snapshots_shmem_size(void)
{
	return sizeof(SnapshotsShared);
}

void
aq_snapshots_shmem_init(void *area, bool found)
{
	shared = area;
	if (!found)
		pg_atomic_init_u32(&shared->changes, 0);
}

/* Does the database's version of the extension have snapshots? */
static bool
have_snapshots(void)
{
	Oid			schema = get_namespace_oid("aq_internal", true);

	return OidIsValid(schema) && OidIsValid(get_relname_relid("snapshot", schema));
}

/*
 * Takes a snapshot if one is due; returns when the next one is due, or 0 for
 * never.
 */
static TimestampTz
take_turn(void)
{
	bool		isnull;
	Datum		due;

	SPI_connect();
	if (SPI_execute("SELECT aq_internal.snapshot_turn()", false, 1) != SPI_OK_SELECT || SPI_processed != 1)
		elog(ERROR, "could not take a snapshot");
	due = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull);
	SPI_finish();
	return isnull ? 0 : DatumGetTimestampTz(due);
}

static TimestampTz
snapshots(void)
{
	static bool known = false;
	static uint32 changes_seen;
	static TimestampTz next;
	TimestampTz due = 0;
	uint32		changes = pg_atomic_read_u32(&shared->changes);

	if (known && changes == changes_seen && (next == 0 || next > GetCurrentTimestamp()))
		return next;
	changes_seen = changes;

	/* the next time if an error ends this turn */
	next = GetCurrentTimestamp() + TRY_AGAIN;
	known = true;

	aq_job_begin();
	if (!have_snapshots())
		known = false;			/* compute the time again at the next post */
	else if (aq_job_lock_extension())
		due = take_turn();
	else
		due = next;
	aq_job_commit(false);
	next = due;
	return next;
}

static const AqJob snapshots_job = {.name = "snapshots",.run = snapshots};

static void
tell_worker(void)
{
	if (settings_changed)
	{
		pg_atomic_fetch_add_u32(&shared->changes, 1);
		aq_jobs_post();
	}
	settings_changed = false;
}

static void
forget_change(void)
{
	settings_changed = false;
}

static const AqXactOps settings_ends = {
	.commit = tell_worker,
	.prepare = forget_change,
	.abort = forget_change,
};

void
aq_snapshots_init(void)
{
	aq_worker_register(&snapshots_job);
	aq_xact_register(AQ_XACT_SNAPSHOTS, &settings_ends);
}

PG_FUNCTION_INFO_V1(aq_snapshots_settings_changed);
Datum
aq_snapshots_settings_changed(PG_FUNCTION_ARGS)
{
	aq_session_require_preload();
	/*
	 * snapshots need a worker; if none can start now, they begin when it
	 * starts
	 */
	aq_jobs_ensure_worker();
	settings_changed = true;
	PG_RETURN_VOID();
}
