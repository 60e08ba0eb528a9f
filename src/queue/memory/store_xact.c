/*-------------------------------------------------------------------------
 *
 * store_xact.c
 *	  The end of a transaction that has used queues: the stores, then
 *	  definitions and pins.
 *
 * base/xact.c calls this file in each phase, in all sessions.  After a commit,
 * other sessions first have to read changed definitions again.  Each store
 * settles the messages that it has noted; then waiters for a changed queue are
 * woken, and pins are released.  Pins are last because the stores' notes point to
 * the shared memory that they protect.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/memory/memory_private.h"

/*
 * The order of the stores.  While a queue has both, a transaction may have
 * enqueued into both: its messages in the queue table must be counted before
 * those in the sharded store can be dequeued, see definitions/convert.c.
 */
static const char order[] = {AQ_STORE_CLASSIC, AQ_STORE_SHARDED};

static const AqStoreXact *stores[lengthof(order)];	/* in this order */

/* The timed operation "commit", from pre-commit on, if a store has notes. */
static AqTimed committing;

/* NULL if the store is not registered. */
static const AqStoreXact *
store_xact(int i)
{
	const AqStore *store;

	if (stores[i] == NULL && (store = aq_store_find(order[i])) != NULL)
		stores[i] = store->xact;
	return stores[i];
}

#define FOR_EACH_STORE(i) \
	for (int i = 0; i < lengthof(order); i++) \
		if (store_xact(i) != NULL)

static bool
any_notes(void)
{
	FOR_EACH_STORE(i)
		if (stores[i]->has_notes())
		return true;
	return false;
}

static void
pre_commit(void)
{
	bool		notes = any_notes();

	if (notes)
	{
		aq_citus_two_phase();
		committing = aq_time_enter(AQ_TIME_COMMIT);
	}
	FOR_EACH_STORE(i)
		stores[i]->pre_commit();
	/*
	 * waits for users of the definitions: afterwards nothing may wait for
	 * other transactions
	 */
	aq_announce_pre_commit();
}

static void
commit(void)
{
	aq_announce_commit();
	FOR_EACH_STORE(i)
		stores[i]->commit();
	aq_announce_xact_end(true);
	aq_cursor_forget();
	aq_time_leave(&committing);
}

static void
pre_prepare(void)
{
	if (aq_pending_has_ddl())
		ereport(ERROR,
				aq_error(AQ_ERR_PREPARE_WITH_DDL,
						 "cannot PREPARE a transaction that has changed queue definitions"),
				errhint("Commit the changes of queues and subscribers first."));
	FOR_EACH_STORE(i)
		stores[i]->pre_prepare();
	aq_point("before-prepare");
}

static void
prepare(void)
{
	FOR_EACH_STORE(i)
		stores[i]->prepare();
	aq_announce_xact_end(true);
	aq_cursor_forget();
}

static void
abort_transaction(void)
{
	committing.open = false;	/* the statistics have closed it */
	FOR_EACH_STORE(i)
		stores[i]->abort();
	aq_announce_xact_end(false);
	aq_cursor_forget();
	/*
	 * chunks that an error, or an undone creation of a queue, has left in the
	 * reserve
	 */
	aq_chunks_trim();
}

static void
subcommit(SubTransactionId subid, SubTransactionId parent)
{
	FOR_EACH_STORE(i)
		stores[i]->subcommit(subid, parent);
	aq_announce_subxact_end(true, subid, parent);
	aq_cursor_subcommit(subid, parent);
}

static void
subabort(SubTransactionId subid, SubTransactionId parent)
{
	FOR_EACH_STORE(i)
		stores[i]->subabort(subid);
	aq_users_forget_taken();
	aq_announce_subxact_end(false, subid, parent);
	aq_cursor_subabort(subid);
}

static void
released(bool commit)
{
	aq_announce_released();
}

static const AqXactOps queue_ends = {
	.pre_commit = pre_commit,
	.commit = commit,
	.pre_prepare = pre_prepare,
	.prepare = prepare,
	.abort = abort_transaction,
	.subcommit = subcommit,
	.subabort = subabort,
	.released = released,
};

void
aq_store_xact_init(void)
{
	aq_xact_register(AQ_XACT_QUEUES, &queue_ends);
}
