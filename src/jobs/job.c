/*-------------------------------------------------------------------------
 *
 * job.c
 *	  Functions of background workers for their jobs: settings, transactions,
 *	  cancellation, and the state of the extension.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "jobs/jobs_private.h"

#include "access/xact.h"
#include "catalog/pg_extension.h"
#include "commands/extension.h"
#include "miscadmin.h"
#include "postmaster/interrupt.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "utils/guc.h"
#include "utils/inval.h"
#include "utils/snapmgr.h"

/*
 * How long a job waits for a lock that the server takes by itself, such as that of a
 * row that it deletes, in milliseconds.  After a timeout, the process waits only
 * NO_PATIENCE for each lock, for a time of IMPATIENT_FOR.  So locks of sessions cost it
 * a small part of its time, however many there are.
 */
#define PATIENCE "50"
#define NO_PATIENCE "1"
#define IMPATIENT_FOR ((int64) 1000000)

static bool in_worker;
static bool as_owner;
static int64 impatient_until;
static volatile sig_atomic_t cancellable;

/*
 * Overrides settings that ALTER DATABASE or ALTER ROLE have made for sessions.
 */
void
aq_job_set_parameters(const char *application)
{
	aq_process_set_parameters(application);
	aq_process_set_parameter("role", "none");
	aq_process_set_parameter("synchronous_commit", "off");
	aq_process_set_parameter("search_path", "pg_catalog, pg_temp");
	aq_process_set_parameter("lock_timeout", PATIENCE);
	aq_process_set_parameter("statement_timeout", "0");
	aq_process_set_parameter("jit", "off");
}

/* Lets the jobs of this process, which has connected as a superuser, run as the owner of the extension's tables. */
void
aq_job_run_as_owner(void)
{
	as_owner = true;
}

/*
 * Handles SIGTERM.  Cancels the running job, like a statement, so that it
 * leaves shared memory in order and the remaining work to the next worker.
 */
void
aq_job_on_sigterm(SIGNAL_ARGS)
{
	int			save_errno = errno;

	ShutdownRequestPending = true;
	if (cancellable)
	{
		QueryCancelPending = true;
		InterruptPending = true;
	}
	SetLatch(MyLatch);
	errno = save_errno;
}

/* Sets whether SIGTERM cancels, which it does only in a job. */
void
aq_job_cancellable(bool in_job)
{
	cancellable = in_job;
	if (!in_job)
		QueryCancelPending = false;
	else if (ShutdownRequestPending)
	{
		/* the signal came before the job began */
		QueryCancelPending = true;
		InterruptPending = true;
	}
}

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
	if (as_owner)
		aq_owner_enter();
	PushActiveSnapshot(GetTransactionSnapshot());
	if (impatient_until != 0 && aq_clock_us() < impatient_until)
		aq_job_wait_for_none();
}

/* Whatever is locked ends the transaction with an error. */
void
aq_job_wait_for_none(void)
{
	(void) set_config_option("lock_timeout", NO_PATIENCE, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_LOCAL, true, 0, false);
}

/* A job did not get a lock within its time. */
void
aq_job_lose_patience(void)
{
	impatient_until = aq_clock_us() + IMPATIENT_FOR;
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
	LOCKTAG		tag;

	if (!OidIsValid(extension))
		return false;
	/* ConditionalLockDatabaseObject() is missing in minor releases before August 2025 */
	SET_LOCKTAG_OBJECT(tag, MyDatabaseId, ExtensionRelationId, extension, 0);
	if (LockAcquire(&tag, AccessShareLock, false, true) == LOCKACQUIRE_NOT_AVAIL)
		return false;
	AcceptInvalidationMessages();
	return get_extension_oid("pgaq", true) == extension;
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
	if (as_owner)
		aq_owner_leave();
}
