/*-------------------------------------------------------------------------
 *
 * job.c
 *	  What jobs need of the worker that runs them: its transactions, and
 *	  whether this process is one.
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

/* From now on, the process is its database's worker. */
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
 * Keep the extension until the transaction ends: DROP EXTENSION waits, and does
 * not meet us with one of its tables locked while we want the next.  False when
 * the extension is not there, or is about to be dropped.
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
 * Is the extension there?  When it is gone, no session can make it until the
 * transaction ends: what it leaves in memory can be dropped.  Unknown while a
 * session makes it.
 */
AqExtensionState
aq_job_extension(void)
{
	if (OidIsValid(get_extension_oid("pgaq", true)))
		return AQ_EXTENSION_THERE;
	/* conflicts with what note_extension() takes */
	if (!ConditionalLockRelationOid(ExtensionRelationId, ShareLock))
		return AQ_EXTENSION_UNKNOWN;
	return OidIsValid(get_extension_oid("pgaq", true)) ? AQ_EXTENSION_THERE : AQ_EXTENSION_GONE;
}

/*
 * The worker's synchronous_commit is off, so that it never waits for a
 * standby; what must survive a crash is flushed here, locally.
 */
void
aq_job_commit(bool sync_commit)
{
	PopActiveSnapshot();
	if (sync_commit)
		ForceSyncCommit();
	CommitTransactionCommand();
}
