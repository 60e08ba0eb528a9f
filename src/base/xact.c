/*-------------------------------------------------------------------------
 *
 * xact.c
 *	  The end of a transaction: the only file that PostgreSQL calls then.
 *
 * PostgreSQL calls transaction callbacks in the opposite order of their
 * registration, which makes the order a matter of which part was loaded when.
 * So there is one callback of each kind here, and the order is the list of
 * ranks in xact.h.
 *
 * An error in a phase that may raise (pre-commit, pre-prepare) turns the end
 * into an abort: the later ranks are not called for that phase, and all ranks
 * are called for the abort.  A process that is terminated (FATAL) aborts its
 * transaction on its way out and comes here, too; so a part needs no PG_CATCH
 * for what an abort settles.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "base/base_int.h"
#include "utils/resowner.h"

/* by rank */
static const AqXactOps *parts[AQ_XACT_RANKS];

void
aq_xact_register(AqXactRank rank, const AqXactOps *ops)
{
	Assert(parts[rank] == NULL);
	parts[rank] = ops;
}

/* Call the function of each rank that has it, in their order. */
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
			/* no part settles anything in a parallel worker that succeeds */
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

/* Once, when the library is loaded at the server's start. */
void
aq_xact_init(void)
{
	RegisterXactCallback(transaction_ends, NULL);
	RegisterSubXactCallback(subtransaction_ends, NULL);
	RegisterResourceReleaseCallback(resources_released, NULL);
}
