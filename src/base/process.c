/*-------------------------------------------------------------------------
 *
 * process.c
 *	  Background workers: what all of ours have in common.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "base/base.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "storage/dsm.h"
#include "storage/ipc.h"
#include "tcop/tcopprot.h"
#include "utils/resowner.h"

/*
 * A worker that may connect to a database, is started when the server is no
 * standby, and only once.  The caller changes what is different, and registers it.
 */
void
aq_process_init(struct BackgroundWorker *worker, const char *function, const char *type)
{
	memset(worker, 0, sizeof(*worker));
	worker->bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker->bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker->bgw_restart_time = BGW_NEVER_RESTART;
	snprintf(worker->bgw_library_name, BGW_MAXLEN, "pgaq");
	snprintf(worker->bgw_function_name, BGW_MAXLEN, "%s", function);
	snprintf(worker->bgw_name, BGW_MAXLEN, "%s", type);
	snprintf(worker->bgw_type, BGW_MAXLEN, "%s", type);
}

/*
 * First in a worker whose argument is the handle of a piece of dynamic shared
 * memory: it stays mapped until the process ends.  Ends the process when whoever
 * has made the memory is gone already.
 */
struct dsm_segment *
aq_process_attach(Datum handle, const char *name)
{
	dsm_segment *segment;

	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	CurrentResourceOwner = ResourceOwnerCreate(NULL, name); /* until the mapping is pinned */
	segment = dsm_attach(DatumGetUInt32(handle));
	if (segment == NULL)
		proc_exit(0);
	dsm_pin_mapping(segment);
	return segment;
}

/*
 * One process of the server, for all databases, from its start on; the
 * postmaster starts it again a second after its end.  Called when parameters are
 * defined; function is the name of an exported one.
 */
void
aq_process_register(const char *name, const char *function, bool on_standby)
{
	BackgroundWorker worker;

	/* pg_upgrade wants no other process in its databases */
	if (IsBinaryUpgrade)
		return;
	aq_process_init(&worker, function, name);
	if (on_standby)
		worker.bgw_start_time = BgWorkerStart_ConsistentState;
	worker.bgw_restart_time = 1;
	RegisterBackgroundWorker(&worker);
}
