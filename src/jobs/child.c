/*-------------------------------------------------------------------------
 *
 * child.c
 *	  Processes that a worker starts for one of its jobs, each in the worker's
 *	  database, and that end by themselves.
 *
 * The postmaster wakes the worker when such a process has ended.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "jobs/jobs_private.h"

#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "storage/ipc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/* tries in a row without a free slot, after which a message is logged */
#define COMPLAIN_AFTER 40

/* It must not outlive the worker: another command may want the database for itself. */
static void
end_child(int code, Datum child)
{
	AqChild    *this = (AqChild *) DatumGetPointer(child);

	if (this->handle != NULL)
		TerminateBackgroundWorker(this->handle);
}

static void
complain(const AqChild *child)
{
	ereport(LOG,
			aq_error(AQ_ERR_WORKER_MISSING, "could not start a background worker for %s", child->purpose),
			errdetail("The %s wait until a worker slot is free.", child->purpose),
			errhint("%s", aq_room_hint()));
}

/* Returns false if no background worker slot is free.  Call it again after a moment, so that another worker leaves. */
bool
aq_child_start(AqChild *child)
{
	BackgroundWorker worker;
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);
	bool		started;

	if (!child->registered)
		before_shmem_exit(end_child, PointerGetDatum(child));
	child->registered = true;
	aq_process_init(&worker, child->function, child->type);
	worker.bgw_main_arg = ObjectIdGetDatum(MyDatabaseId);
	worker.bgw_notify_pid = MyProcPid;
	started = RegisterDynamicBackgroundWorker(&worker, &child->handle);
	MemoryContextSwitchTo(old);
	if (started)
	{
		child->started_at = GetCurrentTimestamp();
		child->refusals = 0;
		aq_room_got();
	}
	else
	{
		child->handle = NULL;
		if (++child->refusals == COMPLAIN_AFTER)
			complain(child);
		aq_room_ask();
	}
	return started;
}

/* Is there one that is not stuck?  *ended: it has ended since the last call. */
bool
aq_child_runs(AqChild *child, bool *ended)
{
	pid_t		pid;
	BgwHandleStatus status;

	*ended = false;
	if (child->handle == NULL)
		return false;
	status = GetBackgroundWorkerPid(child->handle, &pid);
	if (status == BGWH_NOT_YET_STARTED || (status == BGWH_STARTED && !aq_stuck_is_given_up(pid)))
		return true;
	pfree(child->handle);
	child->handle = NULL;
	*ended = status != BGWH_STARTED;
	return false;
}

/* Must a worker that was asked to leave wait for it?  It would end with the worker. */
bool
aq_child_keeps(const AqChild *child)
{
	return child->handle != NULL && GetCurrentTimestamp() < child->started_at + child->least_time;
}
