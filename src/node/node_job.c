/*-------------------------------------------------------------------------
 *
 * node_job.c
 *	  The job of the database's worker for units: those that have come back are
 *	  dequeued here again, and what belongs to no unit is dropped.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "node/node_private.h"

#include "jobs/jobs.h"
#include "utils/timestamp.h"

/* pause while another transaction has a lock, microseconds */
#define LOCKED_PAUSE ((int64) 20000)

/* pause while the database is being restored, microseconds */
#define RESTORED_PAUSE ((int64) 1000000)

/* Deletes the rows of units that have come back; false: not all. */
static bool
open_units(void)
{
	bool		complete = true;
	ListCell   *lc;

	foreach(lc, aq_node_unit_list(0, 0))
	{
		AqNodeUnit *unit = lfirst(lc);

		if (!unit->is_back)
			continue;
		/* the transaction that has brought it back has the lock until its messages are ready */
		if (!aq_node_unit_lock(unit->queue_id, false))
		{
			complete = false;
			continue;
		}
		if (aq_sql_change(psprintf("DELETE FROM aq_internal.node_unit WHERE epoch = " INT64_FORMAT, unit->epoch), 0, NULL, NULL, NULL) > 0)
			aq_catalog_units_changed(unit->queue_id);
	}
	return complete;
}

/* False: not all of it. */
static bool
clean_queues(void)
{
	bool		complete = true;
	ListCell   *lc;

	foreach(lc, aq_node_unit_queues())
		complete &= aq_node_unit_lock(lfirst_int(lc), false) && aq_node_held_clean(lfirst_int(lc));
	return complete;
}

/* Runs at each post of the worker: it looks at the tables only when they have changed. */
static TimestampTz
node_job_run(void)
{
	static uint32 seen;			/* since the worker's start */
	static uint32 seen_restored;
	static TimestampTz again;
	uint32		changes = aq_node_area_units();
	uint32		restored = aq_restored_count();
	bool		restoring = aq_restored_is_running() || aq_jobs_are_restored();
	bool		complete;

	if (changes == seen && restored == seen_restored && (again == 0 || GetCurrentTimestamp() < again))
		return again;
	aq_job_begin();
	complete = aq_job_extension() == AQ_EXTENSION_THERE && aq_job_lock_extension();
	if (complete)
	{
		complete = open_units();
		/* restored messages of other nodes are dropped when the restore has ended */
		if (!restoring)
			complete &= clean_queues();
	}
	aq_job_commit(false);
	seen = changes;
	seen_restored = restored;
	again = !complete ? GetCurrentTimestamp() + LOCKED_PAUSE : restoring ? GetCurrentTimestamp() + RESTORED_PAUSE : 0;
	return again;
}

static const AqJob job = {.name = "units of nodes", .run = node_job_run};

void
aq_node_job_register(void)
{
	aq_worker_register(&job);
}
