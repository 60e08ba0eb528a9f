/*-------------------------------------------------------------------------
 *
 * claim.c
 *	  What this session has claimed in shared memory, and how each claim is
 *	  released when the session does not come to do so itself.
 *
 * A claim is a state of shared memory that belongs to a session and that
 * others wait for or count: "loads this partition", "is a waiter of this
 * queue", "has this empty table".  An error leaves it behind, and so does
 * FATAL (pg_terminate_backend, a lost client, a shutdown), which runs no
 * PG_CATCH.  So PG_CATCH does not repair shared memory; this list does.
 *
 * The order is: make room, which may raise an error; then, with nothing in
 * between that can fail or serve an interrupt, change the shared state and
 * enter the claim.  When the session gives up the state, it ends the claim in
 * the same way.  In between, a claim is released
 *
 * - when the (sub)transaction in which it was entered is rolled back,
 * - when any transaction of the session is rolled back, if it was entered
 *	 outside of one,
 * - when the session ends.
 *
 * A commit leaves claims alone: a claim may last longer than a transaction,
 * such as the stop of a database during ALTER DATABASE ... SET TABLESPACE,
 * which commits half way.
 *
 * The latest claim is released first.  Releasing neither allocates memory nor
 * raises an error, and interrupts are held off; it may take latches, because
 * the session's latches are freed before.  What a claim points to must live
 * as long as the claim: shared memory, or memory of the session that survives
 * the error, but not the stack.
 *
 * The list lies in the session's own memory, because only the session uses
 * it: a session that is killed takes all shared memory with it.  The number
 * of claims stands in the session's slot, for aq.check().
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "base/base_int.h"
#include "miscadmin.h"
#include "utils/memutils.h"

typedef struct Claim
{
	AqClaimRelease release;
	void	   *object;
	int64		argument;
	int			level;			/* nesting level of the transaction; 0: outside of one */
} Claim;

/* in TopMemoryContext, grown as needed */
static Claim *claims;
static int	nclaims,
			claims_size;

static void (*before_release) (void);

void
aq_claim_before_release(void (*callback) (void))
{
	before_release = callback;
}

/* Room for n more claims.  May raise an error. */
void
aq_claim_reserve(int n)
{
	if (likely(nclaims + n <= claims_size))
		return;
	aq_session_attach();
	claims = aq_array_grow(claims, &claims_size, nclaims + n, sizeof(Claim));
}

static void
count_changed(void)
{
	if (aq_session_is_attached)
		aq_session_set_claims(nclaims);
}

/* Does not raise: the caller has made room. */
void
aq_claim_enter(AqClaimRelease release, void *object, int64 argument)
{
	Claim	   *claim;

	Assert(nclaims < claims_size);
	claim = &claims[nclaims++];
	claim->release = release;
	claim->object = object;
	claim->argument = argument;
	claim->level = GetCurrentTransactionNestLevel();
	count_changed();
}

/*
 * The session has given up the state itself, or passes it on: the latest claim
 * of this kind on the object ends.  Does not raise.
 */
void
aq_claim_end(AqClaimRelease release, const void *object)
{
	int			i = nclaims - 1;

	while (i >= 0 && (claims[i].release != release || claims[i].object != object))
		i--;
	Assert(i >= 0);
	if (i < 0)
		return;
	nclaims--;
	for (; i < nclaims; i++)
		claims[i] = claims[i + 1];
	count_changed();
}

/* --- counters ------------------------------------------------------------------ */

static void
count_one_less(void *counter, int64 unused)
{
	pg_atomic_fetch_sub_u32(counter, 1);
}

void
aq_claim_count(pg_atomic_uint32 *counter)
{
	aq_claim_reserve(1);
	pg_atomic_fetch_add_u32(counter, 1);
	aq_claim_enter(count_one_less, counter, 0);
}

void
aq_claim_uncount(pg_atomic_uint32 *counter)
{
	pg_atomic_fetch_sub_u32(counter, 1);
	aq_claim_end(count_one_less, counter);
}

/* --- release --------------------------------------------------------------------- */

/* Release the claims of this level and above.  The session holds no latches. */
static void
release_from(int level)
{
	for (int i = nclaims - 1; i >= 0; i--)
	{
		Claim		claim = claims[i];

		if (claim.level < level)
			continue;
		aq_claim_end(claim.release, claim.object);
		claim.release(claim.object, claim.argument);
	}
}

/* All of them: the session ends, or an error has reached the loop of a worker. */
void
aq_claim_release(void)
{
	HOLD_INTERRUPTS();
	if (nclaims > 0 && before_release != NULL)
		before_release();
	release_from(0);
	RESUME_INTERRUPTS();
}

static void
transaction_aborted(void)
{
	release_from(0);
}

static void
subtransaction_committed(SubTransactionId subid, SubTransactionId parent)
{
	int			level = GetCurrentTransactionNestLevel();

	for (int i = 0; i < nclaims; i++)
		if (claims[i].level >= level)
			claims[i].level = level - 1;
}

static void
subtransaction_aborted(SubTransactionId subid, SubTransactionId parent)
{
	release_from(GetCurrentTransactionNestLevel());
}

static const AqXactOps claim_ends = {
	.abort = transaction_aborted,
	.parallel_abort = transaction_aborted,
	.subcommit = subtransaction_committed,
	.subabort = subtransaction_aborted,
};

void
aq_claim_init(void)
{
	aq_xact_register(AQ_XACT_CLAIMS, &claim_ends);
}
