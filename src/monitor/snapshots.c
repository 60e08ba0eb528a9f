/*-------------------------------------------------------------------------
 *
 * snapshots.c
 *	  The process that takes and purges snapshots, by the SQL function
 *	  aq_internal.snapshot_turn(), and the worker's job that starts it.
 *
 * A snapshot is one transaction, which takes long with many consumers: the worker
 * does other work meanwhile.
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

#include "executor/spi.h"
#include "fmgr.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "storage/ipc.h"
#include "tcop/tcopprot.h"
#include "utils/timestamp.h"

/* pause before the next try, in microseconds; and how long a worker that was asked to leave stays for the process */
#define SNAPSHOT_PAUSE ((int64) 60000000)

typedef struct SnapshotsShared
{
	pg_atomic_uint32 changes;	/* number of changes of settings, in all databases */
} SnapshotsShared;

PGDLLEXPORT void aq_snapshots_main(Datum arg);

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

/* The column of the query's only row, as a time; 0: null. */
static TimestampTz
call(const char *query)
{
	bool		isnull;
	Datum		value;

	SPI_connect();
	if (SPI_execute(query, false, 1) != SPI_OK_SELECT || SPI_processed != 1)
		elog(ERROR, "could not execute \"%s\"", query);
	value = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull);
	SPI_finish();
	return isnull ? 0 : DatumGetTimestampTz(value);
}

/* --- the process that takes one ------------------------------------------------------------- */

void
aq_snapshots_main(Datum arg)
{
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	aq_session_attach();
	BackgroundWorkerInitializeConnectionByOid(DatumGetObjectId(arg), InvalidOid, 0);
	aq_job_set_parameters("pgaq snapshot");
	aq_job_run_as_owner();
	aq_job_begin();
	if (OidIsValid(aq_owner_table("snapshot")) && aq_job_lock_extension())
	{
		pgstat_report_activity(STATE_RUNNING, "snapshot");
		(void) call("SELECT NULL::timestamptz FROM aq_internal.snapshot_turn()");
		aq_point("snapshot-taken");
	}
	aq_job_commit(false);
	proc_exit(0);
}

/* --- the worker's job --------------------------------------------------------------------------- */

static AqChild process = {.function = "aq_snapshots_main", .type = "pgaq snapshot", .purpose = "snapshots", .least_time = SNAPSHOT_PAUSE};

/* When the next one is due; 0: never, or not before the settings change.  *known: can it be known now? */
static TimestampTz
find_due(bool *known)
{
	TimestampTz due = GetCurrentTimestamp() + SNAPSHOT_PAUSE;

	aq_job_begin();
	*known = OidIsValid(aq_owner_table("snapshot"));
	if (!*known)
		due = 0;				/* look again at the next post */
	else if (aq_job_lock_extension())
		due = call("SELECT aq_internal.snapshot_due()");
	aq_job_commit(false);
	return due;
}

static TimestampTz
snapshots(void)
{
	static bool known = false;
	static uint32 changes_seen;
	static TimestampTz next;
	uint32		changes = pg_atomic_read_u32(&shared->changes);
	TimestampTz now = GetCurrentTimestamp();
	bool		ended;
	bool		failed;

	/* its end wakes this worker */
	if (aq_child_runs(&process, &ended))
		return aq_worker_is_leaving() ? now + SNAPSHOT_PAUSE : 0;
	if (known && changes == changes_seen && !ended && (next == 0 || next > now))
		return next;
	failed = ended && changes == changes_seen;	/* if one is still due */
	changes_seen = changes;

	/* the next time if an error ends this turn */
	next = now + SNAPSHOT_PAUSE;
	known = true;
	next = find_due(&known);
	if (next == 0 || next > now)
		return next;
	if (failed || aq_worker_is_leaving())
		next = now + SNAPSHOT_PAUSE;
	else
		next = aq_child_start(&process) ? 0 : now + AQ_CHILD_AGAIN;
	return next;
}

static bool
busy(void)
{
	return aq_child_keeps(&process);
}

static const AqJob snapshots_job = {.name = "snapshots", .run = snapshots, .busy = busy};

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
