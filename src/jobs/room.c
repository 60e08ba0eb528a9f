/*-------------------------------------------------------------------------
 *
 * room.c
 *	  Making room: which workers leave when more databases want one than there
 *	  are places.
 *
 * The launcher asks workers to leave; a worker does so after its round, when
 * nothing is due, and what it will have to do stays in its database's entry: the
 * launcher starts it again when it is posted or due.  First those leave that
 * have nothing to do for the longest time.  One that always has something to do
 * leaves when it has been there for a while, and waits for its next turn.  The
 * database that has waited longest comes first.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "jobs/jobs_private.h"

#include "storage/proc.h"
#include "utils/timestamp.h"

/* how long a worker stays at least, microseconds: it starts in a few thousand */
#define STAY ((int64) 100000)
#define BUSY_STAY ((int64) 1000000)

/* how long the place of a worker that has ended may not be free yet */
#define SLOT_DELAY ((int64) 100000)

/* The database wants a worker from now on, if it did not yet. */
void
aq_room_want(AqDatabase *db)
{
	if (db->wanted_since == 0)
	{
		db->wanted_since = aq_clock_us();
		db->since = GetCurrentTimestamp();
	}
}

/* Those that have waited longest first. */
int
aq_room_compare(const ListCell *a, const ListCell *b)
{
	int64		first = ((AqDatabase *) lfirst(a))->wanted_since;
	int64		second = ((AqDatabase *) lfirst(b))->wanted_since;

	return first < second ? -1 : first > second;
}

/* When the worker has something to do: 0 for now, or later. */
static int64
next_use(AqDatabase *db)
{
	uint64		next = pg_atomic_read_u64(&db->next_at);

	if (aq_jobs_is_due(db))
		return 0;
	return next == 0 ? PG_INT64_MAX : (int64) next;
}

/* Does the entry have a worker that may be asked to leave now?  If only later, *next is when. */
static bool
can_leave(AqDatabase *db, int64 *next)
{
	int64		at;

	if (!OidIsValid(db->oid) || db->worker_proc == NULL || db->leave || db->stops > 0)
		return false;
	at = db->came_at + (aq_jobs_is_due(db) ? BUSY_STAY : STAY);
	if (at <= aq_clock_us())
		return true;
	if (*next == 0 || at < *next)
		*next = at;
	return false;
}

/* Of two workers that may leave: the one that is used later, or has been there longer. */
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
	chosen->leave = true;
	/* it may have ended meanwhile: then another process wakes in vain */
	proc = chosen->worker_proc;
	if (proc != NULL)
		SetLatch(&proc->procLatch);
	return true;
}

/* Has the worker been asked to leave, and its place not been free yet? */
static bool
is_leaving(const AqDatabase *db)
{
	return OidIsValid(db->oid) && db->leave &&
		(db->worker_pid != 0 || aq_clock_us() - db->ended_at < SLOT_DELAY);
}

/*
 * As many workers are to leave as databases want one and have none.  Those that
 * have been asked before count; when none wants one any more, all may stay.
 * *next: when to call it again, if that is sooner.
 */
void
aq_room_make(int wanted, int64 *next)
{
	int			leaving = 0;

	for (int i = 0; i < aq_jobs_max_databases; i++)
	{
		AqDatabase *db = &aq_jobs_area->databases[i];

		if (wanted == 0)
			db->leave = false;
		else
			leaving += is_leaving(db);
	}
	while (leaving < wanted && ask_one_to_leave(next))
		leaving++;
}
