/*-------------------------------------------------------------------------
 *
 * job.c
 *	  Functions of the worker for its jobs: transactions, and the state of the
 *	  extension.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "jobs/jobs_private.h"

#include "access/xact.h"
#include "catalog/pg_extension.h"
#include "commands/extension.h"
#include "storage/lmgr.h"
#include "utils/snapmgr.h"

static bool in_worker;

/* Marks this process as its database's worker. */
void
aq_job_enter_worker(void)
{
	in_worker = true;
}

bool
aq_job_in_worker(void)
{
	return in_worker;
}

void
aq_job_begin(void)
{
	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
}

/*
 * Locks the extension until the end of the transaction, so that DROP EXTENSION
 * waits; otherwise a deadlock would be possible, because both lock several of
 * its tables.  Returns false if the extension does not exist or is being
 * dropped.
 */
bool
aq_job_lock_extension(void)
{
	Oid			extension = get_extension_oid("pgaq", true);

	return OidIsValid(extension) &&
		ConditionalLockDatabaseObject(ExtensionRelationId, extension, 0, AccessShareLock) &&
		get_extension_oid("pgaq", true) == extension;
}

/*
 * Does the extension exist?  If not, no session can create it until this
 * transaction ends, so its state in memory can be dropped.  Unknown while a
 * session is creating it.
 */
AqExtensionState
aq_job_extension(void)
{
	if (OidIsValid(get_extension_oid("pgaq", true)))
		return AQ_EXTENSION_THERE;
	/* conflicts with the lock that note_extension() takes */
	if (!ConditionalLockRelationOid(ExtensionRelationId, ShareLock))
		return AQ_EXTENSION_UNKNOWN;
	return OidIsValid(get_extension_oid("pgaq", true)) ? AQ_EXTENSION_THERE : AQ_EXTENSION_GONE;
}

/*
 * The worker's synchronous_commit is off, so that it never waits for a
 * standby. sync_commit flushes the commit locally, if it must survive a crash.
 */
void
aq_job_commit(bool sync_commit)
{
	PopActiveSnapshot();
	if (sync_commit)
		ForceSyncCommit();
	CommitTransactionCommand();
}
