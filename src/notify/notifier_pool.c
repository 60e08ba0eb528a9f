/*-------------------------------------------------------------------------
 *
 * notifier_pool.c
 *	  The notifiers, in shared memory.
 *
 * There is one notifier at most for a database and a role, and pgaq.notifiers
 * in the server.  A database's worker wants them (aq_notifier_pool_want): it wakes
 * the one that runs, or starts one, or has one that is idle end, and tries
 * again.
 *
 *	| state | next |
 *	| FREE | STARTING |
 *	| STARTING | the process enters: BUSY; none comes: FREE |
 *	| BUSY | nothing to do: IDLE; its place is needed, after a call: BACKING_OFF, without a pause; the process dies: BACKING_OFF |
 *	| IDLE | wanted, or it is time: BUSY; idle for long, or its place is needed: FREE |
 *	| BACKING_OFF | the pause is over, and its database's worker wants it again: STARTING |
 *
 * A notifier that is BUSY with a call that cannot be interrupted (jobs/stuck.c) does not
 * count; it keeps its entry, so its role gets no other one in this database.
 *
 * A notifier takes wanted before a round, and its entry becomes free under the
 * latch and only while wanted is not set: so no request is lost.  A process that
 * dies, or ends with something to do, leaves its entry BACKING_OFF, and posts the
 * worker.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "notify/notify_private.h"

#include <signal.h>

#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "utils/timestamp.h"

/* how long a registered process may take to start, in microseconds */
#define START_PATIENCE ((int64) 10000000)

/* how long a notifier may be busy while another one waits for its place */
#define TURN ((int64) 1000000)

/* pause before a place in the pool is looked for again */
#define PLACE_AGAIN ((int64) 500000)

/* first and longest pause of a notifier that has ended with an error */
#define FIRST_BACKOFF ((int64) 1000000)
#define LONGEST_BACKOFF ((int64) 300000000)

typedef enum NotifierState
{
	NOTIFIER_FREE,
	NOTIFIER_STARTING,
	NOTIFIER_BUSY,
	NOTIFIER_IDLE,
	NOTIFIER_BACKING_OFF
} NotifierState;

/* Protected by the latch. */
typedef struct Notifier
{
	NotifierState state;
	Oid			database;
	Oid			role;
	uint32		serial;			/* distinguishes the processes of an entry */
	int			pid;			/* 0: not started yet */
	PGPROC	   *proc;
	bool		connected;
	bool		wanted;			/* since its round began */
	bool		ends;			/* its place is needed */
	int			failures;		/* processes in a row that have ended with an error */
	int64		since;			/* of the state; this and the next one: aq_clock_us */
	int64		backoff_until;
} Notifier;

typedef struct Pool
{
	AqLatch		latch;
	Notifier	notifiers[FLEXIBLE_ARRAY_MEMBER];	/* max_worker_processes */
} Pool;

static Pool *pool;
static Notifier *own;			/* in a notifier */

Size
aq_notifier_pool_size(void)
{
	return MAXALIGN(add_size(offsetof(Pool, notifiers), mul_size(max_worker_processes, sizeof(Notifier))));
}

void
aq_notifier_pool_init(void *area, bool found)
{
	pool = area;
	if (found)
		return;
	memset(area, 0, aq_notifier_pool_size());
	aq_latch_init(&pool->latch, AQ_LATCH_NOTIFIERS, 0);
}

static void
lock(void)
{
	aq_latch_get(&pool->latch, AQ_EXCLUSIVE, AQ_LOC_NOTIFIER);
}

static void
unlock(void)
{
	aq_latch_free(&pool->latch);
}

/* The time of day of a time of the monotonic clock; 0 remains. */
static TimestampTz
time_of(int64 clock)
{
	return clock == 0 ? 0 : GetCurrentTimestamp() + (clock - aq_clock_us());
}

/* --- under the latch ---------------------------------------------------------------------- */

static void
set_state(Notifier *notifier, NotifierState state)
{
	notifier->state = state;
	notifier->since = aq_clock_us();
}

static void
free_entry(Notifier *notifier)
{
	set_state(notifier, NOTIFIER_FREE);
	notifier->serial++;
	notifier->pid = 0;
	notifier->proc = NULL;
	notifier->connected = notifier->wanted = notifier->ends = false;
	notifier->failures = 0;
}

/* Its call cannot be interrupted. */
static bool
is_stuck(const Notifier *notifier)
{
	return notifier->state == NOTIFIER_BUSY && aq_stuck_is_given_up(notifier->pid);
}

static bool
has_process(const Notifier *notifier)
{
	return notifier->state == NOTIFIER_STARTING || notifier->state == NOTIFIER_BUSY || notifier->state == NOTIFIER_IDLE;
}

static Notifier *
find(Oid database, Oid role)
{
	for (int i = 0; i < max_worker_processes; i++)
	{
		Notifier   *notifier = &pool->notifiers[i];

		if (notifier->state != NOTIFIER_FREE && notifier->database == database && notifier->role == role)
			return notifier;
	}
	return NULL;
}

/* An entry without a process: a free one, or the one that has rested longest. */
static Notifier *
find_entry(void)
{
	Notifier   *found = NULL;

	for (int i = 0; i < max_worker_processes; i++)
	{
		Notifier   *notifier = &pool->notifiers[i];

		if (notifier->state == NOTIFIER_FREE)
			return notifier;
		if (notifier->state == NOTIFIER_BACKING_OFF && (found == NULL || notifier->since < found->since))
			found = notifier;
	}
	return found;
}

static int
limit(void)
{
	return Min(aq_notify_settings_notifiers, max_worker_processes);
}

static int
count_processes(void)
{
	int			n = 0;

	for (int i = 0; i < max_worker_processes; i++)
		if (has_process(&pool->notifiers[i]) && !is_stuck(&pool->notifiers[i]))
			n++;
	return n;
}

static void
tell_to_end(Notifier *notifier)
{
	notifier->ends = true;
	if (notifier->proc != NULL)
		SetLatch(&notifier->proc->procLatch);
}

/* The notifier that has been in this state longest, and not shorter than this. */
static Notifier *
find_longest(NotifierState state, int64 time)
{
	Notifier   *found = NULL;
	int64		before = aq_clock_us() - time;

	for (int i = 0; i < max_worker_processes; i++)
	{
		Notifier   *notifier = &pool->notifiers[i];

		if (notifier->state == state && notifier->since <= before && !is_stuck(notifier) && (found == NULL || notifier->since < found->since))
			found = notifier;
	}
	return found;
}

/* Has a notifier end: one that is idle, or one that has had its turn, after its call. */
static void
make_place(void)
{
	Notifier   *found = find_longest(NOTIFIER_IDLE, 0);

	if (found == NULL)
		found = find_longest(NOTIFIER_BUSY, TURN);
	if (found != NULL)
		tell_to_end(found);
}

/* --- the worker --------------------------------------------------------------------------- */

static bool
start_process(Notifier *notifier, uint32 serial)
{
	BackgroundWorker worker;

	aq_process_init(&worker, "aq_notifier_main", "pgaq notifier");
	worker.bgw_main_arg = Int32GetDatum((int32) (notifier - pool->notifiers));
	memcpy(worker.bgw_extra, &serial, sizeof(serial));
	return RegisterDynamicBackgroundWorker(&worker, NULL);
}

/* Takes an entry for a new process; NULL: there is no place now. */
static Notifier *
take_entry(Notifier *notifier, Oid role)
{
	int			failures = notifier != NULL ? notifier->failures : 0;

	if (count_processes() >= limit())
	{
		make_place();
		return NULL;
	}
	if (notifier == NULL)
		notifier = find_entry();
	if (notifier == NULL)
		return NULL;
	free_entry(notifier);
	set_state(notifier, NOTIFIER_STARTING);
	notifier->database = MyDatabaseId;
	notifier->role = role;
	notifier->failures = failures;
	return notifier;
}

/*
 * Has the role's notifier run a round.  Returns 0, or when to try again, because
 * there is no place for it, or it is backing off.
 */
TimestampTz
aq_notifier_pool_want(Oid role)
{
	int64		now = aq_clock_us();
	int64		again = 0;
	Notifier   *notifier,
			   *new = NULL;
	uint32		serial = 0;

	lock();
	notifier = find(MyDatabaseId, role);
	if (notifier != NULL && notifier->state == NOTIFIER_STARTING && notifier->pid == 0 &&
		now - notifier->since > START_PATIENCE)
	{
		free_entry(notifier);
		notifier = NULL;
	}
	if (notifier != NULL && has_process(notifier))
	{
		notifier->wanted = true;
		if (notifier->proc != NULL)
			SetLatch(&notifier->proc->procLatch);
		/* one that never starts is replaced */
		again = notifier->pid == 0 ? notifier->since + START_PATIENCE : 0;
	}
	else if (notifier != NULL && notifier->backoff_until > now)
		again = notifier->backoff_until;
	else if ((new = take_entry(notifier, role)) != NULL)
		serial = new->serial;
	else
		again = now + PLACE_AGAIN;
	unlock();
	if (new == NULL)
		return time_of(again);
	if (start_process(new, serial))
	{
		aq_room_got();
		return time_of(now + START_PATIENCE);
	}
	lock();
	if (new->serial == serial && new->pid == 0)
		free_entry(new);
	unlock();
	aq_room_ask();
	return time_of(now + PLACE_AGAIN);
}

/*
 * A role of this database whose notifier has rested, or InvalidOid; *next: when
 * the next one has, *connected: had the last process connected?
 */
Oid
aq_notifier_pool_rested(TimestampTz *next, bool *connected)
{
	int64		now = aq_clock_us();
	int64		first = 0;
	Oid			role = InvalidOid;

	lock();
	for (int i = 0; i < max_worker_processes && !OidIsValid(role); i++)
	{
		Notifier   *notifier = &pool->notifiers[i];

		if (notifier->state != NOTIFIER_BACKING_OFF || notifier->database != MyDatabaseId)
			continue;
		if (notifier->backoff_until <= now)
		{
			role = notifier->role;
			*connected = notifier->connected;
		}
		else if (first == 0 || notifier->backoff_until < first)
			first = notifier->backoff_until;
	}
	unlock();
	*next = time_of(first);
	return role;
}

/* --- the notifier ---------------------------------------------------------------------------- */

/* The process enters the pool; returns false if it is no longer needed. */
bool
aq_notifier_pool_enter(int number, uint32 serial, Oid *database, Oid *role)
{
	Notifier   *notifier = &pool->notifiers[number];

	lock();
	if (notifier->state == NOTIFIER_STARTING && notifier->serial == serial)
	{
		notifier->pid = MyProcPid;
		notifier->proc = MyProc;
		*database = notifier->database;
		*role = notifier->role;
		own = notifier;
	}
	unlock();
	return own != NULL;
}

void
aq_notifier_pool_connected(void)
{
	lock();
	own->connected = true;
	unlock();
}

void
aq_notifier_pool_begin_round(void)
{
	lock();
	own->wanted = false;
	set_state(own, NOTIFIER_BUSY);
	unlock();
}

/* Must it end its round after the call, because its place is needed? */
bool
aq_notifier_pool_yields(void)
{
	return *(volatile bool *) &own->ends;
}

/* The process ends with something to do: the worker wants another one at once. */
static void
leave_work(void)
{
	own->pid = 0;
	own->proc = NULL;
	own->ends = false;
	own->backoff_until = 0;
	set_state(own, NOTIFIER_BACKING_OFF);
	own = NULL;
}

/*
 * What now?  After a round, and after a sleep.  *left: for how many microseconds
 * to sleep at most.  may_end: nothing would be lost with the process.
 */
AqNotifierNext
aq_notifier_pool_next(bool may_end, int64 *left)
{
	AqNotifierNext next = AQ_NOTIFIER_SLEEP;

	lock();
	if (own->ends && (own->wanted || own->state == NOTIFIER_BUSY))
	{
		leave_work();
		next = AQ_NOTIFIER_END;
	}
	else if (own->wanted)
		next = AQ_NOTIFIER_ROUND;
	else
	{
		if (own->state != NOTIFIER_IDLE)
			set_state(own, NOTIFIER_IDLE);
		own->failures = 0;
		if (count_processes() > limit())
			own->ends = true;	/* the limit was lowered */
		*left = own->since + (int64) aq_notify_settings_idle_timeout_ms * 1000 - aq_clock_us();
		if (own->ends || (*left <= 0 && may_end))
		{
			free_entry(own);
			own = NULL;
			next = AQ_NOTIFIER_END;
		}
	}
	unlock();
	return next;
}

/* Called at process exit. */
void
aq_notifier_pool_exit(void)
{
	int64		backoff;

	if (own == NULL)
		return;
	lock();
	backoff = Min(FIRST_BACKOFF << Min(own->failures, 16), LONGEST_BACKOFF);
	own->failures++;
	own->backoff_until = aq_clock_us() + backoff;
	own->pid = 0;
	own->proc = NULL;
	own->ends = false;
	set_state(own, NOTIFIER_BACKING_OFF);
	unlock();
	own = NULL;
	aq_announcement_make_now();
}

/* --- other users of the pool -------------------------------------------------------------- */

/* No process may use the database: ends its notifiers, also in a call. */
static void
end_all_in(Oid database)
{
	aq_session_attach();
	lock();
	for (int i = 0; i < max_worker_processes; i++)
	{
		Notifier   *notifier = &pool->notifiers[i];

		if (notifier->state == NOTIFIER_FREE || notifier->database != database)
			continue;
		if (notifier->state == NOTIFIER_BACKING_OFF || (notifier->state == NOTIFIER_STARTING && notifier->pid == 0))
			free_entry(notifier);
		else if (notifier->state == NOTIFIER_IDLE)
			tell_to_end(notifier);
		else
			kill(notifier->pid, SIGTERM);
	}
	unlock();
}

/* Another background worker finds no slot. */
static void
make_room(void)
{
	lock();
	make_place();
	unlock();
}

void
aq_notifier_pool_register(void)
{
	aq_jobs_on_database_wanted(end_all_in);
	aq_jobs_on_place_wanted(make_room);
}

AQ_ROWS(aq_notifier_pool_view)
{
	static const char *const states[] = {"free", "starting", "busy", "idle", "backing off"};

	for (int i = 0; i < max_worker_processes; i++)
	{
		Notifier	notifier;

		aq_latch_get(&pool->latch, AQ_SHARED, AQ_LOC_VIEW);
		notifier = pool->notifiers[i];
		aq_latch_free(&pool->latch);
		if (notifier.state == NOTIFIER_FREE)
			continue;
		aq_rows_put(row, ObjectIdGetDatum(notifier.database));
		aq_rows_put(row, ObjectIdGetDatum(notifier.role));
		aq_rows_int_if(row, notifier.pid != 0, notifier.pid);
		aq_rows_text(row, is_stuck(&notifier) ? "stuck" : states[notifier.state]);
		aq_rows_time(row, time_of(notifier.since));
		aq_rows_int(row, notifier.failures);
		aq_rows_end(row);
	}
}
