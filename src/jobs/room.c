/*-------------------------------------------------------------------------
 *
 * room.c
 *	  Selects the workers that must leave when there are fewer worker slots
 *	  than databases that need a worker.
 *
 * The launcher asks workers to leave; a worker leaves after its round, when no
 * work is due.  The time of its next work remains in its database's entry: the
 * launcher starts it again when it is posted or due.  The workers whose next
 * work is latest leave first.  A worker that always has work leaves after some
 * time and waits for its next turn.  Free slots go to the database that has
 * waited longest.
 *
 * A helper for immediate visibility is a guest: its session registers the process,
 * and makes a request here when no slot is free.  The launcher then also asks a
 * worker to leave, and keeps the slot for the guest if it has waited longer than
 * all databases.  But one worker stays: a helper's call may need a worker, and those
 * of all databases can take turns in one slot.  The session may end without a
 * notice, so a request that is not repeated expires.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "jobs/jobs_private.h"

#include "miscadmin.h"
#include "storage/proc.h"
#include "utils/timestamp.h"

/*
 * minimum run time of a worker in microseconds, without and with work; its
 * start takes a few thousand
 */
#define SHORTEST_TURN ((int64) 100000)
#define BUSY_TURN ((int64) 1000000)

/* how long the slot of a worker that has ended may still be occupied */
#define SLOT_DELAY ((int64) 100000)

/* how long the launcher waits for a worker that was asked to leave: its round may take long */
#define LEAVE_PATIENCE ((int64) 1000000)

/* how long a guest's request is valid */
#define GUEST_PATIENCE ((int64) 1500000)

const char *
aq_room_no_slot(void)
{
	return _("No background worker slot is free.");
}

char *
aq_room_hint(void)
{
	return psprintf(_("Raise max_worker_processes (now %d)."), max_worker_processes);
}

/* Notes that the database waits for a worker slot, if it does not already. */
void
aq_room_want(AqDatabase *db)
{
	if (db->wanted_since == 0)
	{
		db->wanted_since = aq_clock_us();
		db->since = GetCurrentTimestamp();
	}
}

/* Sorts the databases that have waited longest first. */
int
aq_room_compare(const ListCell *a, const ListCell *b)
{
	int64		first = ((AqDatabase *) lfirst(a))->wanted_since;
	int64		second = ((AqDatabase *) lfirst(b))->wanted_since;

	return first < second ? -1 : first > second;
}

static bool
is_fresh(int64 asked)
{
	return aq_clock_us() - asked < GUEST_PATIENCE;
}

void
aq_room_ask(void)
{
	int64		now = aq_clock_us();
	uint64		none = 0;

	if (!is_fresh(pg_atomic_read_u64(&aq_jobs_area->guest_asked)))
		pg_atomic_write_u64(&aq_jobs_area->guest_since, 0);
	pg_atomic_write_u64(&aq_jobs_area->guest_asked, now);
	(void) pg_atomic_compare_exchange_u64(&aq_jobs_area->guest_since, &none, now);
	aq_jobs_wake_launcher();
}

void
aq_room_got(void)
{
	if (pg_atomic_exchange_u64(&aq_jobs_area->guest_since, 0) != 0)
		aq_jobs_wake_launcher();
}

bool
aq_room_has_guest(void)
{
	return pg_atomic_read_u64(&aq_jobs_area->guest_since) != 0 &&
		is_fresh(pg_atomic_read_u64(&aq_jobs_area->guest_asked));
}

/* Workers that run, or come, and were not asked to leave. */
static int
count_remaining(void)
{
	int64		now = aq_clock_us();
	int			remaining = 0;

	for (int i = 0; i < aq_jobs_max_databases; i++)
	{
		AqDatabase *db = &aq_jobs_area->databases[i];

		if (OidIsValid(db->oid) && !db->leave && (db->worker_pid != 0 || aq_jobs_is_coming(db, now)))
			remaining++;
	}
	return remaining;
}

/* Does a guest wait longer than the database, which wants a worker? */
bool
aq_room_guest_is_first(const AqDatabase *db)
{
	return aq_room_has_guest() && (int64) pg_atomic_read_u64(&aq_jobs_area->guest_since) < db->wanted_since &&
		count_remaining() > 0;
}

/* When the worker has work to do: 0 for now, or a time. */
static int64
next_use(AqDatabase *db)
{
	uint64		next = pg_atomic_read_u64(&db->next_at);

	if (aq_jobs_is_due(db))
		return 0;
	return next == 0 ? PG_INT64_MAX : (int64) next;
}

/*
 * Does the entry have a worker that may be asked to leave now?  If only later,
 * sets *next to that time.
 */
static bool
can_leave(AqDatabase *db, int64 *next)
{
	int64		at;

	if (!OidIsValid(db->oid) || db->worker_proc == NULL || db->leave || db->stops > 0)
		return false;
	at = db->came_at + (aq_jobs_is_due(db) ? BUSY_TURN : SHORTEST_TURN);
	if (at <= aq_clock_us())
		return true;
	aq_clock_sooner(next, at);
	return false;
}

/*
 * Should the first of two workers leave rather than the second?  The one with
 * later work should, or the one that has run longer.
 */
static bool
is_better(AqDatabase *db, AqDatabase *than)
{
	int64		a = next_use(db);
	int64		b = next_use(than);

	return a != b ? a > b : db->came_at < than->came_at;
}

static bool
ask_one_to_leave(int64 *next)
{
	AqDatabase *chosen = NULL;
	PGPROC	   *proc;

	for (int i = 0; i < aq_jobs_max_databases; i++)
	{
		AqDatabase *db = &aq_jobs_area->databases[i];

		if (can_leave(db, next) && (chosen == NULL || is_better(db, chosen)))
			chosen = db;
	}
	if (chosen == NULL)
		return false;
	chosen->leave_at = aq_clock_us();
	chosen->leave = true;
	/*
	 * if the worker has ended meanwhile, another process may be woken
	 * needlessly
	 */
	proc = chosen->worker_proc;
	if (proc != NULL)
		SetLatch(&proc->procLatch);
	return true;
}

/*
 * Has the worker been asked to leave, and will its place be free soon?  Not if it
 * is in the middle of a long round: it leaves after that, but another one leaves
 * before it.
 */
static bool
is_leaving(const AqDatabase *db)
{
	int64		now = aq_clock_us();

	return OidIsValid(db->oid) && db->leave &&
		(db->worker_pid != 0 ? now - db->leave_at < LEAVE_PATIENCE : now - db->ended_at < SLOT_DELAY);
}

/*
 * Asks as many workers to leave as there are databases that wait for one, and
 * one more for a guest, including workers that were asked before.  If none
 * waits, all may stay.  Sets *next to the time of the next call, if that is sooner.
 */
void
aq_room_make(int wanted, int64 *next)
{
	bool		guest = aq_room_has_guest();
	int			leaving = 0;

	for (int i = 0; i < aq_jobs_max_databases; i++)
	{
		AqDatabase *db = &aq_jobs_area->databases[i];

		if (wanted == 0 && !guest)
			db->leave = false;
		else
			leaving += is_leaving(db);
	}
	while (leaving < wanted && ask_one_to_leave(next))
		leaving++;
	if (guest && leaving == wanted && count_remaining() > 1)
		(void) ask_one_to_leave(next);
}
