/*-------------------------------------------------------------------------
 *
 * xact.c
 *	  The end of a transaction: pgaq's only transaction callbacks.
 *
 * PostgreSQL calls transaction callbacks in the reverse order of their
 * registration, so the order would depend on when each part was loaded.
 * Therefore there is one callback of each kind, here, and the list of ranks in
 * xact.h defines the order.
 *
 * An error in a phase that may raise errors (pre-commit, pre-prepare) aborts
 * the transaction: the remaining ranks are not called for that phase, and all
 * ranks are called for the abort.  A process that is terminated (FATAL) also
 * aborts its transaction, which calls these functions; so a part needs no
 * PG_CATCH for what an abort does.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "base/base_int.h"
#include "miscadmin.h"
#include "replication/syncrep.h"
#include "utils/resowner.h"

/* indexed by rank */
static const AqXactOps *parts[AQ_XACT_RANKS];

void
aq_xact_register(AqXactRank rank, const AqXactOps *ops)
{
	Assert(parts[rank] == NULL);
	parts[rank] = ops;
}

/* Calls the function of each rank that has one, in the order of ranks. */
#define CALL_PHASE(phase, ...) \
	do { \
		for (int rank_ = 0; rank_ < AQ_XACT_RANKS; rank_++) \
			if (parts[rank_] != NULL && parts[rank_]->phase != NULL) \
				parts[rank_]->phase(__VA_ARGS__); \
	} while (0)

static void
transaction_ends(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
			CALL_PHASE(pre_commit);
			break;
		case XACT_EVENT_COMMIT:
			CALL_PHASE(commit);
			break;
		case XACT_EVENT_PRE_PREPARE:
			CALL_PHASE(pre_prepare);
			break;
		case XACT_EVENT_PREPARE:
			CALL_PHASE(prepare);
			break;
		case XACT_EVENT_ABORT:
			CALL_PHASE(abort);
			break;
		case XACT_EVENT_PARALLEL_ABORT:
			CALL_PHASE(parallel_abort);
			break;
		case XACT_EVENT_PARALLEL_PRE_COMMIT:
		case XACT_EVENT_PARALLEL_COMMIT:
			/* no part has work to do in a parallel worker that succeeds */
			break;
	}
}

static void
subtransaction_ends(SubXactEvent event, SubTransactionId subid, SubTransactionId parent, void *arg)
{
	if (event == SUBXACT_EVENT_COMMIT_SUB)
		CALL_PHASE(subcommit, subid, parent);
	else if (event == SUBXACT_EVENT_ABORT_SUB)
		CALL_PHASE(subabort, subid, parent);
}

static void
resources_released(ResourceReleasePhase phase, bool commit, bool top, void *arg)
{
	if (phase == RESOURCE_RELEASE_AFTER_LOCKS && top)
		CALL_PHASE(released, commit);
}

void
aq_xact_make_durable(XLogRecPtr end)
{
	if (synchronous_commit == SYNCHRONOUS_COMMIT_OFF)
	{
		XLogSetAsyncXactLSN(end);
		return;
	}
	START_CRIT_SECTION();
	XLogFlush(end);
	END_CRIT_SECTION();
	SyncRepWaitForLSN(end, true);
}

/* Called once, when the library is loaded at server start. */
void
aq_xact_init(void)
{
	RegisterXactCallback(transaction_ends, NULL);
	RegisterSubXactCallback(subtransaction_ends, NULL);
	RegisterResourceReleaseCallback(resources_released, NULL);
}
