/*-------------------------------------------------------------------------
 *
 * compat.c
 *	  Functions that depend on the version of the server.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "base/base.h"

#include "access/multixact.h"
#include "access/table.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "commands/vacuum.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "replication/slot.h"
#include "storage/lock.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "storage/spin.h"
#include "utils/backend_status.h"
#include "utils/guc_tables.h"
#include "utils/rel.h"
#include "utils/timeout.h"

static void
forget_rows(Relation rel, TransactionId frozen, MultiXactId min_multi)
{
#if PG_VERSION_NUM >= 180000
	vac_update_relstats(rel, 0, 0, 0, 0, false, frozen, min_multi, NULL, NULL, true);
#elif PG_VERSION_NUM >= 150000
	vac_update_relstats(rel, 0, 0, 0, false, frozen, min_multi, NULL, NULL, true);
#endif
}

/*
 * Called after a table was truncated in place under AccessExclusiveLock.  The
 * table has no transaction ids, so its relfrozenxid and that of its TOAST
 * table can be advanced; otherwise a busy server would reach the freeze limit.
 * This is done only when relfrozenxid is freeze_age transactions old, because
 * each change makes all sessions reload the table's relcache entry.  The
 * table's row statistics are reset.
 *
 * No transaction that can still store a row is older than the oldest running
 * one; snapshots do not matter for an empty table.
 */
void
aq_compat_after_truncate(Relation rel, int32 freeze_age)
{
	TransactionId frozen = aq_oldest_running_xid();

	if ((int32) (frozen - rel->rd_rel->relfrozenxid) > freeze_age)
	{
		MultiXactId min_multi = GetOldestMultiXactId();

		forget_rows(rel, frozen, min_multi);
		if (OidIsValid(rel->rd_rel->reltoastrelid))
		{
			Relation	toast = table_open(rel->rd_rel->reltoastrelid, AccessExclusiveLock);

			forget_rows(toast, frozen, min_multi);
			table_close(toast, NoLock);
		}
	}
#if PG_VERSION_NUM >= 190000
	pgstat_report_vacuum(rel, 0, 0, GetCurrentTimestamp());
#elif PG_VERSION_NUM >= 180000
	pgstat_report_vacuum(RelationGetRelid(rel), false, 0, 0, GetCurrentTimestamp());
#else
	pgstat_report_vacuum(RelationGetRelid(rel), false, 0, 0);
#endif
}

/*
 * The oldest xmin of the snapshots that can read tables of this database,
 * except this process's own: those of sessions, and those of standbys without
 * a slot, which walsenders publish.  VACUUM is ignored, because it does not
 * read consumed rows.  A session publishes its xmin while it holds
 * ProcArrayLock, so every snapshot that does not see an ended transaction is
 * found.
 */
TransactionId
aq_compat_oldest_xmin(void)
{
	TransactionId oldest = ReadNextTransactionId();

	LWLockAcquire(ProcArrayLock, LW_SHARED);
	for (uint32 i = 0; i < ProcGlobal->allProcCount; i++)
	{
		const volatile PGPROC *proc = &ProcGlobal->allProcs[i];
		TransactionId xmin = proc->xmin;
		uint8		flags = proc->statusFlags;

		if (proc == MyProc || !TransactionIdIsValid(xmin) || (flags & PROC_IN_VACUUM) != 0)
			continue;
		/*
		 * a process that has ended, such as a walsender, may leave its xmin
		 * behind
		 */
		if ((proc->databaseId == MyDatabaseId || (flags & PROC_AFFECTS_ALL_HORIZONS) != 0) &&
			TransactionIdPrecedes(xmin, oldest) && BackendPidGetProcWithLock(proc->pid) == proc)
			oldest = xmin;
	}
	LWLockRelease(ProcArrayLock);
	return oldest;
}

bool
aq_compat_slot_look(int i, AqSlotLook *look)
{
	ReplicationSlot *slot = &ReplicationSlotCtl->replication_slots[i];
	bool		in_use;

	LWLockAcquire(ReplicationSlotControlLock, LW_SHARED);
	in_use = slot->in_use;
	if (in_use)
	{
		SpinLockAcquire(&slot->mutex);
		look->xmin = slot->effective_xmin;
		look->database = slot->data.database;
#if PG_VERSION_NUM >= 190000
		look->active = slot->active_proc != INVALID_PROC_NUMBER;
#else
		look->active = slot->active_pid != 0;
#endif
		SpinLockRelease(&slot->mutex);
	}
	LWLockRelease(ReplicationSlotControlLock);
	return in_use && TransactionIdIsValid(look->xmin);
}

LocalPgBackendStatus *
aq_compat_backend_status(int i)
{
#if PG_VERSION_NUM >= 160000
	return pgstat_get_local_beentry_by_index(i);
#else
	return pgstat_fetch_stat_local_beentry(i);
#endif
}

static struct config_generic *
parameter(const char *name)
{
#if PG_VERSION_NUM >= 160000
	return find_option(name, false, false, ERROR);
#else
	struct config_generic **all = get_guc_variables();

	for (int i = 0; i < GetNumConfigOptions(); i++)
		if (strcmp(all[i]->name, name) == 0)
			return all[i];
	elog(ERROR, "parameter \"%s\" does not exist", name);
#endif
}

/*
 * The search_path with which a function that has the option SET search_path =
 * pinned was called.  If that value is pinned too, the next outer one is used,
 * and so on.  The result is valid until search_path changes.
 */
const char *
aq_compat_search_path_behind(const char *pinned)
{
	static struct config_generic *search_path;
	const char *value = namespace_search_path;
	GucStack   *saved;

	if (search_path == NULL)
		search_path = parameter("search_path");
	for (saved = search_path->stack; saved != NULL && saved->state == GUC_SAVE && strcmp(value, pinned) == 0; saved = saved->prev)
		value = saved->prior.val.stringval;
	return value;
}

/*
 * The times of data files only grow.  The times of WAL become 0 when they are
 * added to the server's statistics, which does not happen inside transactions.
 * PostgreSQL 18 does not show a process its own times of WAL.
 */
void
aq_compat_io_times(uint64 *times)
{
	memset(times, 0, AQ_IO_COUNT * sizeof(uint64));
#if PG_VERSION_NUM >= 170000
	times[AQ_IO_READ] = INSTR_TIME_GET_MICROSEC(pgBufferUsage.shared_blk_read_time) + INSTR_TIME_GET_MICROSEC(pgBufferUsage.local_blk_read_time);
	times[AQ_IO_WRITE] = INSTR_TIME_GET_MICROSEC(pgBufferUsage.shared_blk_write_time) + INSTR_TIME_GET_MICROSEC(pgBufferUsage.local_blk_write_time);
#else
	times[AQ_IO_READ] = INSTR_TIME_GET_MICROSEC(pgBufferUsage.blk_read_time);
	times[AQ_IO_WRITE] = INSTR_TIME_GET_MICROSEC(pgBufferUsage.blk_write_time);
#endif
#if PG_VERSION_NUM < 160000
	times[AQ_IO_WAL_WRITE] = PendingWalStats.wal_write_time;
	times[AQ_IO_WAL_SYNC] = PendingWalStats.wal_sync_time;
#elif PG_VERSION_NUM < 180000
	times[AQ_IO_WAL_WRITE] = INSTR_TIME_GET_MICROSEC(PendingWalStats.wal_write_time);
	times[AQ_IO_WAL_SYNC] = INSTR_TIME_GET_MICROSEC(PendingWalStats.wal_sync_time);
#endif
	for (int io = 0; io < AQ_IO_COUNT; io++)
		times[io] *= 1000;
}

/* Returns what is left, in milliseconds; 0: the timeout is not active. */
static int
suspend(TimeoutId timeout)
{
	long		left;

	if (!get_timeout_active(timeout))
		return 0;
	left = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), get_timeout_finish_time(timeout));
	disable_timeout(timeout, true);
	return Max(left, 1);
}

static void
resume(TimeoutId timeout, int *left)
{
	if (*left > 0)
		enable_timeout_after(timeout, *left);
	*left = 0;
}

/*
 * Suspends the limits of a client's statement and, outside a transaction block,
 * of its transaction.  In background workers the timeout of the statement is not
 * the role's: see jobs/stuck.c.
 */
void
aq_compat_suspend_limits(AqTimeLimits *limits)
{
	if (MyBackendType != B_BACKEND)
		return;
	limits->statement = suspend(STATEMENT_TIMEOUT);
#if PG_VERSION_NUM >= 170000
	if (!IsTransactionBlock())
		limits->transaction = suspend(TRANSACTION_TIMEOUT);
#endif
}

/* Begins the limits again that were suspended, with what is left of them. */
void
aq_compat_resume_limits(AqTimeLimits *limits)
{
	resume(STATEMENT_TIMEOUT, &limits->statement);
#if PG_VERSION_NUM >= 170000
	resume(TRANSACTION_TIMEOUT, &limits->transaction);
#endif
}

/*
 * The role that grants, if the given role calls GRANT: the one of its roles that
 * has most of the privileges' grant options.  From PostgreSQL 19 on the server
 * finds it for the current role only.  An error there ends the transaction or
 * subtransaction, which restores the role, too.
 */
Oid
aq_compat_best_grantor(Oid role, AclMode privileges, const Acl *acl, Oid owner)
{
	Oid			grantor;
	AclMode		options;
#if PG_VERSION_NUM >= 190000
	Oid			user;
	int			context;

	GetUserIdAndSecContext(&user, &context);
	SetUserIdAndSecContext(role, context | SECURITY_LOCAL_USERID_CHANGE);
	select_best_grantor(NULL, privileges, acl, owner, &grantor, &options);
	SetUserIdAndSecContext(user, context);
#else

	select_best_grantor(role, privileges, acl, owner, &grantor, &options);
#endif
	return grantor;
}

bool
aq_compat_holds_lock(const LOCKTAG *tag, int mode)
{
#if PG_VERSION_NUM >= 170000
	return LockHeldByMe(tag, mode, false);
#else
	return LockHeldByMe(tag, mode);
#endif
}
