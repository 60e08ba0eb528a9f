/*-------------------------------------------------------------------------
 *
 * deadlock.c
 *	  Deadlocks that pass through named waits.
 *
 * The server's deadlock detector knows heavyweight locks only.  A named wait
 * for the end of other sessions' transactions says whose they are.  While it
 * lasts, the session follows who waits for whom, by heavyweight locks and by
 * such waits, and raises an error if it comes back to itself.
 *
 * The server checks once, when the last wait of the circle has begun.  Here that
 * may be a wait for a heavyweight lock, whose detector does not see the named
 * wait.  So the named wait checks again and again, every deadlock_timeout.
 *
 * Sessions are read one after another, without a lock over all.  One that waits
 * in a circle stays as it is; one that has gone on meanwhile is another one at
 * the second reading.  So a deadlock counts if it is found twice.
 *
 * If several sessions of the circle are in named waits, the one with the lowest
 * process number is the first to give up, and the others at their next check.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/lmgr.h"
#include "storage/proc.h"
#include "sync/control/control.h"
#include "sync/control/deadlock.h"
#include "utils/backend_status.h"

static struct
{
	AqWaitHolders holders;		/* NULL: cannot be part of a deadlock */
	bool		any;
}			waits[AQ_EVENT_COUNT];

void
aq_deadlock_define(AqEvent event, bool any, AqWaitHolders holders)
{
	waits[event].any = any;
	waits[event].holders = holders;
}

static bool
is_watched(const AqWaitNow *now)
{
	return now->waiting && waits[now->event].holders != NULL;
}

/* Its process, which need not have attached. */
static int
pid_of(int session)
{
	return ProcGlobal->allProcs[session].pid;
}

/* The sessions that keep this one from a heavyweight lock. */
static Bitmapset *
lock_holders(int session)
{
	int			npids;
	const int32 *pids = aq_session_blockers(pid_of(session), &npids);
	Bitmapset  *holders = NULL;

	for (int i = 0; i < npids; i++)
	{
		Oid			role;
		int			holder = aq_session_of_pid(pids[i], &role);

		if (holder >= 0)		/* a prepared transaction waits for nothing */
			holders = bms_add_member(holders, holder);
	}
	return holders;
}

/*
 * Does this session wait for the own one, perhaps through others?  If so, sets
 * the sessions' successors on the way.  next: -1: not seen yet; the session itself: no.
 */
static bool
waits_for_own(int session, const AqWaitNow *now, int *next)
{
	bool		any = is_watched(now) && waits[now->event].any;
	Bitmapset  *holders = is_watched(now) ? waits[now->event].holders(session, now) : lock_holders(session);
	int			holder = -1;
	bool		found = false;
	int			successor = session;

	check_stack_depth();
	next[session] = session;
	while ((holder = bms_next_member(holders, holder)) >= 0 && (any || !found))
	{
		AqWaitNow	its;

		aq_event_read(holder, &its);
		found = holder == aq_session_own_number ||
			(next[holder] < 0 ? waits_for_own(holder, &its, next) : next[holder] != holder);
		if (any && !found)
			return false;
		successor = holder;
	}
	if (found)
		next[session] = successor;
	return found;
}

static int *
find(const AqWaitNow *own)
{
	int		   *next = palloc(aq_session_slots() * sizeof(int));

	memset(next, -1, aq_session_slots() * sizeof(int));
	return waits_for_own(aq_session_own_number, own, next) ? next : NULL;
}

/* Is there a session in the circle that gives up first? */
static bool
is_others_turn(const int *next)
{
	bool		others = false;

	for (int i = next[aq_session_own_number]; i != aq_session_own_number; i = next[i])
	{
		AqWaitNow	now;

		aq_event_read(i, &now);
		others |= is_watched(&now) && pid_of(i) < MyProcPid;
	}
	return others;
}

/* Appends the heavyweight lock for which the process waits. */
static void
append_lock(StringInfo text, int pid)
{
	LockData   *data = GetLockStatusData();

	for (int i = 0; i < data->nelements; i++)
	{
		LockInstanceData *lock = &data->locks[i];

		if (lock->leaderPid != pid || lock->waitLockMode == NoLock)
			continue;
		appendStringInfo(text, "%s on ", GetLockmodeName(lock->locktag.locktag_lockmethodid, lock->waitLockMode));
		DescribeLockTag(text, &lock->locktag);
		return;
	}
	appendStringInfoString(text, "a lock");
}

static void
append_wait(StringInfo text, int session, const AqWaitNow *now, int holder)
{
	appendStringInfo(text, "%sProcess %d waits for ", text->len > 0 ? "\n" : "", pid_of(session));
	if (is_watched(now))
		appendStringInfo(text, "\"%s\", %s " UINT64_FORMAT, aq_event_names[now->event].name,
						 aq_event_names[now->event].parameters[0], now->p1);
	else
		append_lock(text, pid_of(session));
	appendStringInfo(text, "; blocked by process %d.", pid_of(holder));
}

/* As the server does. */
pg_noreturn static void
report(const AqWaitNow *own, const int *next)
{
	int			session = aq_session_own_number;
	AqWaitNow	now = *own;
	StringInfoData client,
				statements;

	initStringInfo(&client);
	initStringInfo(&statements);
	do
	{
		append_wait(&client, session, &now, next[session]);
		appendStringInfo(&statements, "\nProcess %d: %s", pid_of(session),
						 pgstat_get_backend_current_activity(pid_of(session), false));
		session = next[session];
		aq_event_read(session, &now);
	} while (session != aq_session_own_number);
	pgstat_report_deadlock();
	ereport(ERROR,
			(errcode(ERRCODE_T_R_DEADLOCK_DETECTED),
			 errmsg("deadlock detected"),
			 errdetail_internal("%s", client.data),
			 errdetail_log("%s%s", client.data, statements.data),
			 errhint("See server log for query details.")));
}

int64
aq_deadlock_pause(void)
{
	return DeadlockTimeout * INT64CONST(1000);
}

void
aq_deadlock_check(AqDeadlockWatch *watch, AqEvent event, uint64 p1)
{
	AqWaitNow	own = {.event = event,.waiting = true,.p1 = p1};
	int		   *next;

	if (watch->check_at > aq_clock_us())
		return;
	next = watch->check_at != 0 && find(&own) != NULL ? find(&own) : NULL;
	if (next != NULL && (watch->found || !is_others_turn(next)))
		report(&own, next);
	watch->found = next != NULL;
	watch->check_at = aq_clock_us() + aq_deadlock_pause();
}

int
aq_deadlock_blocker(int session, const AqWaitNow *now)
{
	if (!is_watched(now))
		return now->waiting ? aq_locks_blocker(session) : -1;
	return bms_next_member(waits[now->event].holders(session, now), -1);
}
