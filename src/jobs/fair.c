/*-------------------------------------------------------------------------
 *
 * fair.c
 *	  The time of a process that runs code of several roles: the scheduler and
 *	  the propagation process of a database.
 *
 * A turn is one transaction for one role.  It is cancelled after
 * pgaq.turn_timeout; if the role's code ignores that, the process ends GRACE
 * later, and the next one learns whose turn that was.  A round serves the roles that have
 * used the least time of late first, and ends when AQ_FAIR_ROUND is over.  So a
 * role waits for the turn that is running, and for those of roles that have used
 * less time than itself, however many turns others want.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "jobs/jobs_private.h"

#include <signal.h>

#include "miscadmin.h"
#include "utils/guc.h"
#include "utils/timeout.h"

/* after the cancellation of a turn, in milliseconds */
#define GRACE 1000

/* time that a role has used counts half after this time, in microseconds */
#define HALF_LIFE ((int64) 60000000)

int			aq_fair_turn_ms;

static AqFairShares *shares;		/* in the database's entry */
static TimeoutId ending;
static int64 turn_key;
static Oid	turn_role;
static int64 turn_began;
static int64 spent;				/* by all roles, in this process */
static volatile sig_atomic_t is_ending;
static emit_log_hook_type previous_log_hook;

void
aq_fair_define_parameters(void)
{
	DefineCustomIntVariable("pgaq.turn_timeout",
							"How long a schedule, or a batch of propagation, may keep others waiting.",
							"Then it is rolled back, with what its rules and transformations do, and tried again after a pause "
							"that grows with each failure: see aq.schedules and aq.propagations.",
							&aq_fair_turn_ms,
							2000, 100, 3600000,
							PGC_SIGHUP, GUC_UNIT_MS,
							NULL, NULL, NULL);
}

static int64
used(const AqFairShare *share)
{
	int64		halves = (aq_clock_us() - share->at) / HALF_LIFE;

	return halves > 40 ? 0 : share->used >> halves;
}

/* The role's entry, or the one of which least is lost; NULL: no role, and it has none. */
static AqFairShare *
find(Oid role, bool make)
{
	AqFairShare    *least = &shares->of[0];

	for (int i = 0; i < lengthof(shares->of); i++)
	{
		if (shares->of[i].role == role)
			return &shares->of[i];
		if (used(&shares->of[i]) < used(least))
			least = &shares->of[i];
	}
	return make ? least : NULL;
}

/* Two processes of a kind may run for a moment: what they do to each other's entries changes only the order of turns. */
static void
charge(int64 time)
{
	AqFairShare    *share = find(turn_role, true);

	share->used = time + (share->role == turn_role ? used(share) : 0);
	share->at = aq_clock_us();
	share->role = turn_role;
	spent += time;
}

/* The turn has ignored its cancellation.  Called by a signal handler. */
static void
end_process(void)
{
	charge(aq_clock_us() - turn_began);
	pg_atomic_write_u64(&shares->ended_in, (uint64) turn_key);
	is_ending = true;
	kill(MyProcPid, SIGTERM);
}

/* The line about its end is a short one: where the role's code was at that time is the role's text, and may be long. */
static void
shorten_log(ErrorData *error)
{
	if (is_ending)
		error->hide_ctx = true;
	if (previous_log_hook != NULL)
		previous_log_hook(error);
}

/* Called by a process before its first turn; returns the key of the turn that ended the last one, 0: none has. */
int64
aq_fair_enter(AqFairKind kind)
{
	shares = &aq_jobs_own_database()->shares[kind];
	ending = RegisterTimeout(USER_TIMEOUT, end_process);
	previous_log_hook = emit_log_hook;
	emit_log_hook = shorten_log;
	return (int64) pg_atomic_exchange_u64(&shares->ended_in, 0);
}

/* A turn of the role begins; the key is not 0. */
void
aq_fair_begin(Oid role, int64 key)
{
	turn_role = role;
	turn_key = key;
	turn_began = aq_clock_us();
	enable_timeout_after(STATEMENT_TIMEOUT, aq_fair_turn_ms);
	enable_timeout_after(ending, aq_fair_turn_ms + GRACE);
}

/* The turn is over, or its transaction has failed.  counts: there was something to do. */
void
aq_fair_end(bool counts)
{
	disable_timeout(STATEMENT_TIMEOUT, false);
	disable_timeout(ending, false);
	QueryCancelPending = false;
	if (counts)
		charge(aq_clock_us() - turn_began);
}

/* Microseconds that the role has used of late. */
int64
aq_fair_used(Oid role)
{
	AqFairShare    *share = find(role, false);

	return share != NULL ? used(share) : 0;
}

/* Microseconds that all roles have used. */
int64
aq_fair_spent(void)
{
	return spent;
}

/* The message of the error that has ended the last turn. */
const char *
aq_fair_message(const ErrorData *error)
{
	if (error->sqlerrcode == ERRCODE_QUERY_CANCELED && aq_clock_us() - turn_began >= (int64) aq_fair_turn_ms * 1000)
		return aq_fair_too_long();
	return error->message != NULL ? error->message : "";
}

const char *
aq_fair_too_long(void)
{
	return psprintf("took longer than pgaq.turn_timeout (%d ms)", aq_fair_turn_ms);
}
