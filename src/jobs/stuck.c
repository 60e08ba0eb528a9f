/*-------------------------------------------------------------------------
 *
 * stuck.c
 *	  Background workers that run code of roles, and what happens if that code
 *	  cannot be interrupted.
 *
 * A turn, or a call, is cancelled when its time is over.  If it continues, the process
 * ends itself after a grace period.  A function that never checks for interrupts, such
 * as xpath(), ignores both.  After one more grace period the process is given up:
 *
 *	- it no longer counts towards the limit of its kind;
 *	- the worker of the database starts another process;
 *	- the role gets no turn there until the function has returned and the first
 *	  process has ended.
 *
 *	| state | next |
 *	| FREE | the process starts: ENTERED |
 *	| ENTERED | the cancellation was ignored: ENDING; the process ends: FREE |
 *	| ENDING | so was SIGTERM: GIVEN_UP; the process ends: ENDED |
 *	| GIVEN_UP | the process ends: ENDED |
 *	| ENDED | another process has recorded the end of the turn, or needs the entry: FREE |
 *
 * Until it ends, only the process changes its entry; ENDED becomes FREE by an atomic
 * exchange.  There is no latch, because signal handlers change entries.  A process
 * that dies without its exit callback restarts the server.
 *
 * A process that is given up still occupies one of max_worker_processes.  So at most a
 * quarter of these are given up at a time; others wait until one of them has ended.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "jobs/jobs_private.h"

#include <signal.h>

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/timeout.h"
#include "utils/timestamp.h"

/* how often a process that could not be given up tries again, in milliseconds */
#define AGAIN 1000

typedef enum State
{
	FREE,
	ENTERED,
	ENDING,
	GIVEN_UP,
	ENDED
} State;

typedef struct Process
{
	pg_atomic_uint32 state;
	AqStuckKind kind;
	int			pid;
	Oid			database;
	Oid			role;			/* of its turn */
	int64		key;			/* of its turn; 0: another process need not know it, or it has committed */
	int			limit;			/* of its turn, in milliseconds */
	bool		logged;			/* by the worker: it was given up */
} Process;

typedef struct Area
{
	pg_atomic_uint32 changes;	/* how often a process was given up, or has ended in a turn */
	pg_atomic_uint32 given_up;	/* number of processes */
	pg_atomic_uint32 ended;		/* number of entries */
	Process		processes[FLEXIBLE_ARRAY_MEMBER];
} Area;

static const struct
{
	const char *process;
	const char *limit;
}			kinds[] = {
	[AQ_STUCK_SCHEDULER] = {"pgaq scheduler", "pgaq.turn_timeout"},
	[AQ_STUCK_PROPAGATION] = {"pgaq propagation", "pgaq.turn_timeout"},
	[AQ_STUCK_NOTIFIER] = {"pgaq notifier", "pgaq.notification_timeout"},
};

static Area *area;
static Process *own;
static AqDatabase *database;
static TimeoutId ending,
			giving_up;
static emit_log_hook_type previous_log_hook;

/* --- shared memory --------------------------------------------------------------------- */

/* More than there can be processes: an entry outlives its process until another one has recorded its end. */
static int
entries(void)
{
	return 2 * max_worker_processes;
}

Size
aq_stuck_shmem_size(void)
{
	return MAXALIGN(add_size(offsetof(Area, processes), mul_size(entries(), sizeof(Process))));
}

void
aq_stuck_shmem_init(void *place, bool found)
{
	area = place;
	if (found)
		return;
	memset(place, 0, aq_stuck_shmem_size());
	pg_atomic_init_u32(&area->changes, 1);
	pg_atomic_init_u32(&area->given_up, 0);
	pg_atomic_init_u32(&area->ended, 0);
	for (int i = 0; i < entries(); i++)
		pg_atomic_init_u32(&area->processes[i].state, FREE);
}

static bool
is_in(Process *process, State state, AqStuckKind kind)
{
	return pg_atomic_read_u32(&process->state) == state && process->kind == kind && process->database == MyDatabaseId;
}

/* A process of this database that is given up, or has ended, in a turn of the role; InvalidOid: of any role. */
static Process *
find(State state, AqStuckKind kind, Oid role)
{
	pg_atomic_uint32 *number = state == GIVEN_UP ? &area->given_up : &area->ended;

	for (int i = 0; i < entries() && pg_atomic_read_u32(number) > 0; i++)
	{
		Process    *process = &area->processes[i];

		if (is_in(process, state, kind) && (!OidIsValid(role) || process->role == role))
			return process;
	}
	return NULL;
}

/* --- in the process ---------------------------------------------------------------------- */

/* The worker, and the process that replaces this one, look again. */
static void
announce(void)
{
	pg_atomic_fetch_add_u32(&area->changes, 1);
	aq_jobs_post_to(database);
}

/* The turn has ignored its cancellation.  Called by a signal handler. */
static void
end_process(void)
{
	pg_atomic_write_u32(&own->state, ENDING);
	kill(MyProcPid, SIGTERM);
}

/* The turn has also ignored SIGTERM: the process is given up.  Called by a signal handler. */
static void
give_up(void)
{
	uint32		n = pg_atomic_read_u32(&area->given_up);

	if (pg_atomic_read_u32(&own->state) != ENDING)
		return;
	do
	{
		if (n >= Max(max_worker_processes / 4, 1))
			return;
	} while (!pg_atomic_compare_exchange_u32(&area->given_up, &n, n + 1));
	pg_atomic_write_u32(&own->state, GIVEN_UP);
	announce();
}

static void
leave(int code, Datum arg)
{
	State		state;

	disable_timeout(ending, false);
	disable_timeout(giving_up, false);
	state = pg_atomic_read_u32(&own->state);
	if (state == ENTERED || own->key == 0)
		pg_atomic_write_u32(&own->state, FREE);
	else
	{
		pg_atomic_fetch_add_u32(&area->ended, 1);
		pg_atomic_write_u32(&own->state, ENDED);
	}
	if (state == GIVEN_UP)
		pg_atomic_fetch_sub_u32(&area->given_up, 1);
	if (state != ENTERED)
		announce();
}

/* The log line about its end has no context: that would be text of the role's code, and may be long. */
static void
shorten_log(ErrorData *error)
{
	if (pg_atomic_read_u32(&own->state) != ENTERED)
		error->hide_ctx = true;
	if (previous_log_hook != NULL)
		previous_log_hook(error);
}

static bool
take_entry(Process *process, State state)
{
	uint32		expected = state;

	if (!pg_atomic_compare_exchange_u32(&process->state, &expected, ENTERED))
		return false;
	if (state == ENDED)
		pg_atomic_fetch_sub_u32(&area->ended, 1);
	own = process;
	return true;
}

/*
 * Called by the process before it connects: so its entry changes after its
 * transaction has ended, when its locks are released.
 */
void
aq_stuck_enter(AqStuckKind kind)
{
	for (int i = 0; i < entries() && own == NULL; i++)
		(void) take_entry(&area->processes[i], FREE);
	for (int i = 0; i < entries() && own == NULL; i++)
		(void) take_entry(&area->processes[i], ENDED);
	if (own == NULL)
		proc_exit(1);
	own->kind = kind;
	own->pid = MyProcPid;
	own->database = InvalidOid;
	own->key = 0;
	own->logged = false;
	ending = RegisterTimeout(USER_TIMEOUT, end_process);
	giving_up = RegisterTimeout(USER_TIMEOUT, give_up);
	previous_log_hook = emit_log_hook;
	emit_log_hook = shorten_log;
	before_shmem_exit(leave, (Datum) 0);
}

/*
 * Code of the role runs from now on.  It is cancelled after limit milliseconds.  If it
 * ignores that, the next step follows after grace milliseconds, see above.
 */
void
aq_stuck_watch(Oid role, int64 key, int limit, int grace)
{
	EnableTimeoutParams timeouts[] = {
		{.id = STATEMENT_TIMEOUT, .type = TMPARAM_AFTER, .delay_ms = limit},
		{.id = ending, .type = TMPARAM_AFTER, .delay_ms = Min(limit, INT_MAX - grace) + grace}
	};

	/* the last turn may have ended after all, with the process */
	CHECK_FOR_INTERRUPTS();
	if (database == NULL)
		database = aq_jobs_own_database();
	own->database = MyDatabaseId;
	own->role = role;
	own->key = key;
	own->limit = limit;
	enable_timeouts(timeouts, lengthof(timeouts));
	enable_timeout_every(giving_up, TimestampTzPlusMilliseconds(GetCurrentTimestamp(), (int64) limit + 2 * grace), AGAIN);
}

/* The turn is over, or its transaction has failed. */
void
aq_stuck_over(void)
{
	DisableTimeoutParams timeouts[] = {{.id = STATEMENT_TIMEOUT}, {.id = ending}, {.id = giving_up}};

	if (own == NULL)
		return;
	disable_timeouts(timeouts, lengthof(timeouts));
	QueryCancelPending = false;
}

/*
 * The transaction has committed, and with it a turn: it has not failed, whatever
 * happens to the process from now on.  It may have been told to end just before, and
 * serves no interrupt until after this.
 */
void
aq_stuck_committed(void)
{
	if (own == NULL || own->key == 0)
		return;
	own->key = 0;
	aq_stuck_over();
}

/* --- in others ------------------------------------------------------------------------------ */

/* The number changes when a process is given up, or ends. */
uint32
aq_stuck_changes(void)
{
	return pg_atomic_read_u32(&area->changes);
}

bool
aq_stuck_is_given_up(int pid)
{
	for (int i = 0; i < entries() && pg_atomic_read_u32(&area->given_up) > 0; i++)
		if (pg_atomic_read_u32(&area->processes[i].state) == GIVEN_UP && area->processes[i].pid == pid)
			return true;
	return false;
}

/* Must the role have no turn in processes of this kind in this database? */
bool
aq_stuck_bars(AqStuckKind kind, Oid role)
{
	return find(GIVEN_UP, kind, role) != NULL || find(ENDED, kind, role) != NULL;
}

/* The roles, an array of OIDs, for which a process of this kind is given up in this database. */
Datum
aq_stuck_roles(AqStuckKind kind)
{
	Datum	   *roles = palloc(entries() * sizeof(Datum));
	int			n = 0;

	for (int i = 0; i < entries(); i++)
		if (is_in(&area->processes[i], GIVEN_UP, kind))
			roles[n++] = ObjectIdGetDatum(area->processes[i].role);
	return PointerGetDatum(construct_array(roles, n, OIDOID, sizeof(Oid), true, TYPALIGN_INT));
}

/* The key and role of a turn of this database that has ended its process, which the caller records; 0: none. */
int64
aq_stuck_take_ended(AqStuckKind kind, Oid *role)
{
	Process    *process;

	while ((process = find(ENDED, kind, InvalidOid)) != NULL)
	{
		int64		key = process->key;
		uint32		expected = ENDED;

		*role = process->role;
		if (!pg_atomic_compare_exchange_u32(&process->state, &expected, FREE))
			continue;
		pg_atomic_fetch_sub_u32(&area->ended, 1);
		return key;
	}
	return 0;
}

/* SQL: why the role has no turn in processes of this kind (a number); null: it has. */
PG_FUNCTION_INFO_V1(aq_stuck_error);
Datum
aq_stuck_error(PG_FUNCTION_ARGS)
{
	AqStuckKind kind = (AqStuckKind) PG_GETARG_INT32(0);
	Process    *process;

	aq_session_require_preload();
	process = find(GIVEN_UP, kind, PG_GETARG_OID(1));
	if (process == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(psprintf("took longer than %s (%d ms), and cannot be interrupted; process %d still runs",
											  kinds[kind].limit, process->limit, process->pid)));
}

/* --- the worker's job: it logs which processes are given up ------------------------------------ */

static void
log_given_up(Process *process)
{
	char	   *role;

	aq_job_begin();
	role = GetUserNameFromId(process->role, true);
	ereport(LOG,
			errmsg("background worker \"%s\" (PID %d) cannot be interrupted, and is replaced", kinds[process->kind].process, process->pid),
			errdetail("It took longer than %s (%d ms) for role \"%s\".", kinds[process->kind].limit, process->limit, role ? role : ""),
			errhint("It ends when the function that it executes returns, or at an immediate shutdown."));
	aq_job_commit(false);
	process->logged = true;
}

static TimestampTz
log_all(void)
{
	static uint32 seen;
	uint32		changes = aq_stuck_changes();

	for (int i = 0; i < entries() && changes != seen; i++)
	{
		Process    *process = &area->processes[i];

		if (pg_atomic_read_u32(&process->state) == GIVEN_UP && process->database == MyDatabaseId && !process->logged)
			log_given_up(process);
	}
	seen = changes;
	return 0;
}

static const AqJob job = {.name = "stuck processes", .run = log_all};

void
aq_stuck_register(void)
{
	aq_worker_register(&job);
}
