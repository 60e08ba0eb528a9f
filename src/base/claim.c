/*-------------------------------------------------------------------------
 *
 * claim.c
 *	  The session's claims on shared memory, and their release when the session
 *	  cannot release them itself.
 *
 * A claim is a state of shared memory that belongs to a session and that
 * others wait for or count: "loads this partition", "waits for this queue",
 * "uses this empty table".  An error would leave it behind, and so would FATAL
 * (pg_terminate_backend, a lost client, a shutdown), which runs no PG_CATCH.
 * So shared memory is repaired from this list and not in PG_CATCH.
 *
 * To make a claim, first reserve room, which may raise an error; then change
 * the shared state and enter the claim, with nothing in between that can fail
 * or serve an interrupt.  To end the state, change it back and end the claim
 * in the same way.  Until then, the claim is released
 *
 * - when the (sub)transaction in which it was entered is rolled back,
 * - when any transaction of the session is rolled back, if the claim was
 *	 entered outside a transaction,
 * - when the session ends.
 *
 * A commit does not release claims: a claim may outlast a transaction.  For
 * example, ALTER DATABASE ...  SET TABLESPACE, which commits in the middle,
 * claims that the database's work is stopped.
 *
 * The latest claim is released first.  A release function must not allocate
 * memory or raise an error, and runs with interrupts held off; it may take
 * latches, because the session's latches have been freed before.  A claim must
 * point to memory that lives as long as the claim: shared memory, or session
 * memory that survives the error, but not the stack.
 *
 * The list is in the session's own memory, because only the session uses it:
 * if a process is killed, the server reinitializes all shared memory.  The
 * number of claims is in the session's slot, for aq.check().
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "base/base_int.h"
#include "miscadmin.h"

typedef struct Claim
{
	AqClaimRelease release;
	void	   *object;
	int64		argument;
	int			level;			/* nesting level of the transaction; 0: outside a transaction */
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

/* Reserves room for n more claims.  May raise an error. */
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

/* Does not raise an error: the caller has reserved room. */
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
 * Ends the latest claim of this kind on the object, because the session has
 * ended the state itself or passed it on.  Does not raise an error.
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

/*
 * Releases all claims: the session ends, or an error has reached a worker's
 * main loop.
 */
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
