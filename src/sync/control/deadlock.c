/*-------------------------------------------------------------------------
 *
 * deadlock.c
 *	  Deadlocks that pass through named waits.
 *
 * The server's deadlock detector knows heavyweight locks only.  A named wait
 * for the end of other sessions' transactions says whose they are.  While it
 * lasts, the session follows who waits for whom, by heavyweight locks and by
 * such waits, and raises an error if it could never go on, because of itself.
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
#include "utils/memutils.h"

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
	const int32 *pids;
	Bitmapset  *holders = NULL;

	if (ProcGlobal->allProcs[session].waitLock == NULL)
		return NULL;			/* read without a lock: one that begins to wait is seen at the next check */
	pids = aq_session_blockers(pid_of(session), &npids);
	for (int i = 0; i < npids; i++)
	{
		Oid			role;
		int			holder = aq_session_of_pid(pids[i], &role);

		if (holder >= 0)		/* a prepared transaction waits for nothing */
			holders = bms_add_member(holders, holder);
	}
	return holders;
}

/* What is known of a session, by number. */
typedef struct Waiter
{
	bool		seen;			/* the own session waits for it, perhaps through others */
	bool		any;			/* one of the holders can end its wait */
	bool		goes_on;
	int			next;			/* on the way to the own session; -1: none */
	Bitmapset  *holders;		/* NULL: it does not wait, or not for sessions */
} Waiter;

static void
read_waits(Waiter *list, int session, const AqWaitNow *now)
{
	Waiter	   *waiter = &list[session];
	int			holder = -1;

	check_stack_depth();
	waiter->seen = true;
	waiter->any = is_watched(now) && waits[now->event].any;
	waiter->holders = is_watched(now) ? waits[now->event].holders(session, now) : lock_holders(session);
	waiter->next = -1;
	while ((holder = bms_next_member(waiter->holders, holder)) >= 0)
	{
		AqWaitNow	its;

		if (list[holder].seen)
			continue;
		aq_event_read(holder, &its);
		read_waits(list, holder, &its);
	}
}

static bool
can_go_on(const Waiter *list, const Waiter *waiter)
{
	int			holder = -1;

	if (bms_is_empty(waiter->holders))
		return true;
	while ((holder = bms_next_member(waiter->holders, holder)) >= 0)
		if (list[holder].goes_on == waiter->any)
			return waiter->any;
	return !waiter->any;
}

/* Marks the sessions whose waits end when those go on that are marked already. */
static void
let_go_on(Waiter *list)
{
	bool		changed;

	do
	{
		changed = false;
		for (int i = 0; i < aq_session_slots(); i++)
			if (list[i].seen && !list[i].goes_on && can_go_on(list, &list[i]))
				list[i].goes_on = changed = true;
	} while (changed);
}

/* Sets the successors on a way from the own session to itself, through sessions that do not go on. */
static void
find_way(Waiter *list)
{
	bool		changed;

	do
	{
		changed = false;
		for (int i = 0; i < aq_session_slots(); i++)
		{
			int			holder = -1;

			if (!list[i].seen || list[i].goes_on || list[i].next >= 0)
				continue;
			while (list[i].next < 0 && (holder = bms_next_member(list[i].holders, holder)) >= 0)
				if (holder == aq_session_own_number || list[holder].next >= 0)
					list[i].next = holder;
			changed |= list[i].next >= 0;
		}
	} while (changed && list[aq_session_own_number].next < 0);
}

/*
 * Returns NULL if the own session can go on.  Sessions that cannot, even if the own
 * one could, are in a deadlock without it, which others end: so they count as going
 * on.
 */
static Waiter *
find(const AqWaitNow *now)
{
	Waiter	   *list = palloc0(aq_session_slots() * sizeof(Waiter));
	Waiter	   *own = &list[aq_session_own_number];

	read_waits(list, aq_session_own_number, now);
	own->goes_on = true;
	let_go_on(list);
	for (int i = 0; i < aq_session_slots(); i++)
		list[i].goes_on = !list[i].goes_on;
	let_go_on(list);
	if (!own->goes_on)
		find_way(list);
	return own->next >= 0 ? list : NULL;
}

/* Is there a session in the circle that gives up first? */
static bool
is_others_turn(const Waiter *list)
{
	bool		others = false;

	for (int i = list[aq_session_own_number].next; i != aq_session_own_number; i = list[i].next)
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
report(const AqWaitNow *own, const Waiter *list)
{
	int			session = aq_session_own_number;
	AqWaitNow	now = *own;
	StringInfoData client,
				statements;

	initStringInfo(&client);
	initStringInfo(&statements);
	do
	{
		append_wait(&client, session, &now, list[session].next);
		appendStringInfo(&statements, "\nProcess %d: %s", pid_of(session),
						 pgstat_get_backend_current_activity(pid_of(session), false));
		session = list[session].next;
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
	AqWaitNow	own = {.event = event, .waiting = true, .p1 = p1};
	MemoryContext old;
	MemoryContext context;
	Waiter	   *list;

	if (watch->check_at > aq_clock_us())
		return;
	context = AllocSetContextCreate(CurrentMemoryContext, "pgaq deadlock", ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(context);
	list = watch->check_at != 0 && find(&own) != NULL ? find(&own) : NULL;
	if (list != NULL && (watch->found || !is_others_turn(list)))
		report(&own, list);
	watch->found = list != NULL;
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	watch->check_at = aq_clock_us() + aq_deadlock_pause();
}

int
aq_deadlock_blocker(int session, const AqWaitNow *now)
{
	if (!is_watched(now))
		return now->waiting ? aq_locks_blocker(session) : -1;
	return bms_next_member(waits[now->event].holders(session, now), -1);
}
