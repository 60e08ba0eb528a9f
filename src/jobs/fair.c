/*-------------------------------------------------------------------------
 *
 * fair.c
 *	  How a process that runs code of several roles divides its time between
 *	  them: the scheduler and the propagation process of a database.
 *
 * A turn is one transaction for one role.  It is cancelled after pgaq.turn_timeout.
 * If the role's code ignores that, the process ends GRACE later, or is replaced, and
 * the next process learns whose turn that was: see stuck.c.
 *
 * A round lasts AQ_FAIR_ROUND.  It begins with the roles that have recently used the
 * least time.  So a role waits only for the turn that is running, and for roles that
 * have used less time than itself, however many turns others want.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "jobs/jobs_private.h"

#include "utils/guc.h"

/* after the cancellation of a turn, in milliseconds */
#define GRACE 1000

/* after this time, in microseconds, the time that a role has used counts half */
#define HALF_LIFE ((int64) 60000000)

int			aq_fair_turn_ms;

static AqFairShares *shares;	/* in the database's entry */
static AqStuckKind own_kind;
static Oid	turn_role;
static int64 turn_began;
static int64 spent;				/* by all roles, in this process */

void
aq_fair_define_parameters(void)
{
	DefineCustomIntVariable("pgaq.turn_timeout",
							"Longest time that a schedule or a batch of propagation may run.",
							"It is then rolled back, and retried after a pause that grows with each failure: see "
							"aq.schedules and aq.propagations.",
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

/* The role's entry.  If it has none: with make, the entry with the least time, which it may take; else NULL. */
static AqFairShare *
find(Oid role, bool make)
{
	AqFairShare *least = &shares->of[0];

	for (int i = 0; i < lengthof(shares->of); i++)
	{
		if (shares->of[i].role == role)
			return &shares->of[i];
		if (used(&shares->of[i]) < used(least))
			least = &shares->of[i];
	}
	return make ? least : NULL;
}

/* Two processes of a kind can run for a moment.  If they overwrite each other's entries, only the order of turns changes. */
static void
charge(Oid role, int64 time)
{
	AqFairShare *share = find(role, true);

	share->used = time + (share->role == role ? used(share) : 0);
	share->at = aq_clock_us();
	share->role = role;
	spent += time;
}

/* Called by a process that has entered stuck.c, before its first turn. */
void
aq_fair_enter(AqStuckKind kind)
{
	shares = &aq_jobs_own_database()->shares[kind];
	own_kind = kind;
}

/* The key of a turn that has ended its process, which the caller records; 0: none. */
int64
aq_fair_ended(void)
{
	Oid			role;
	int64		key = aq_stuck_take_ended(own_kind, &role);

	if (key != 0)
		charge(role, (int64) (aq_fair_turn_ms + GRACE) * 1000);
	return key;
}

/* A turn of the role begins; the key is not 0. */
void
aq_fair_begin(Oid role, int64 key)
{
	turn_role = role;
	aq_stuck_watch(role, key, aq_fair_turn_ms, GRACE);
	turn_began = aq_clock_us();
}

/* The turn is over, or its transaction has failed.  counts: there was something to do. */
void
aq_fair_end(bool counts)
{
	aq_stuck_over();
	if (counts)
		charge(turn_role, aq_clock_us() - turn_began);
}

/* Microseconds that the role has used recently. */
int64
aq_fair_used(Oid role)
{
	AqFairShare *share = find(role, false);

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
