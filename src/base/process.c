/*-------------------------------------------------------------------------
 *
 * process.c
 *	  Functions common to all background workers of pgaq.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "base/base.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "storage/dsm.h"
#include "storage/ipc.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/resowner.h"

/*
 * Fills in a worker that can connect to a database, starts when recovery has
 * finished, and is not restarted.  The caller changes members as needed and
 * registers it.
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
 * Called first in a worker whose argument is the handle of a dynamic shared
 * memory segment.  Maps the segment until the process ends.  Ends the process
 * if the segment no longer exists, because its creator has ended.
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
 * Overrides a setting that ALTER DATABASE or ALTER ROLE has made for sessions.
 * One that this version of the server does not have is passed over.
 */
void
aq_process_set_parameter(const char *name, const char *value)
{
	if (GetConfigOption(name, true, false) != NULL)
		SetConfigOption(name, value, PGC_SUSET, PGC_S_OVERRIDE);
}

/* Sets a parameter until the GUC nest level ends. */
void
aq_process_pin_parameter(const char *name, const char *value)
{
	(void) set_config_option(name, value, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
}

/* Called after the process has connected.  application: its application_name. */
void
aq_process_set_parameters(const char *application)
{
	aq_process_set_parameter("application_name", application);
	aq_process_set_parameter("default_transaction_isolation", "read committed");
	aq_process_set_parameter("default_transaction_read_only", "off");
	aq_process_set_parameter("default_transaction_deferrable", "off");
	aq_process_set_parameter("idle_in_transaction_session_timeout", "0");
	aq_process_set_parameter("transaction_timeout", "0");	/* from PostgreSQL 17 on */
}

/*
 * Registers a process that runs from server start on, one for all databases.
 * The postmaster restarts it one second after it ends.  Called when parameters
 * are defined; function is the name of an exported function.
 */
void
aq_process_register(const char *name, const char *function, bool on_standby)
{
	BackgroundWorker worker;

	/* pg_upgrade requires that no other process uses its databases */
	if (IsBinaryUpgrade)
		return;
	aq_process_init(&worker, function, name);
	if (on_standby)
		worker.bgw_start_time = BgWorkerStart_ConsistentState;
	worker.bgw_restart_time = 1;
	RegisterBackgroundWorker(&worker);
}

/*
 * For what another database is told of: the commit of this transaction is not lost
 * in a crash, nor in a failover to a synchronous standby, whatever the session's
 * synchronous_commit is.
 */
void
aq_process_commit_safely(void)
{
	if (synchronous_commit < SYNCHRONOUS_COMMIT_REMOTE_FLUSH)
		(void) set_config_option("synchronous_commit", "on", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_LOCAL, true, 0, false);
}
