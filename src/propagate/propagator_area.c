/*-------------------------------------------------------------------------
 *
 * propagator_area.c
 *	  Which databases have a process that propagates, and how it is told of
 *	  changes.
 *
 * The worker of the database (part "jobs") starts the process when there is an
 * enabled schedule; the process ends when there is none.  A session that has
 * changed a schedule counts up "changes", then posts the worker and sets the
 * process's latch.  Each of the two looks at the schedules again when it sees
 * another number: whoever looks last decides, so that no change is missed when
 * the process ends just then.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "propagate/propagate_private.h"

#include <signal.h>

#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "utils/timestamp.h"

/* how long a registered process may take to start, and the pause after one that failed; microseconds */
#define START_PATIENCE ((int64) 10000000)
#define PAUSE ((int64) 1000000)

/* pause before the next try when no worker slot is free */
#define NO_SLOT ((int64) 1000000)

typedef struct Process
{
	Oid			database;		/* InvalidOid: free */
	int			pid;			/* 0: not running */
	int			session;		/* number of its session */
	TimestampTz asked_at;		/* when it was registered; 0: it has started since */
	TimestampTz failed_at;		/* when the last one ended with an error; 0: it did not */
} Process;

typedef struct Area
{
	pg_atomic_uint32 changes;	/* committed changes of schedules, and ends of processes */
	pg_atomic_uint32 arrivals;	/* committed, of batches in other databases */
	AqLatch		latch;			/* protects the processes */
	Process		processes[FLEXIBLE_ARRAY_MEMBER];	/* max_worker_processes */
} Area;

static Area *area;
static uint32 heeded;			/* in the process: the numbers when it last looked */
static uint32 heeded_arrivals;

Size
aq_propagator_area_size(void)
{
	return CACHELINEALIGN(add_size(offsetof(Area, processes), mul_size(max_worker_processes, sizeof(Process))));
}

void
aq_propagator_area_init(void *place, bool found)
{
	area = place;
	if (found)
		return;
	memset(place, 0, aq_propagator_area_size());
	pg_atomic_init_u32(&area->changes, 1);
	pg_atomic_init_u32(&area->arrivals, 0);
	aq_latch_init(&area->latch, AQ_LATCH_PROPAGATION, 0);
}

/* The database's entry, or NULL.  make: a free one if it has none.  Latch held. */
static Process *
find(Oid database, bool make)
{
	Process    *unused = NULL;

	for (int i = 0; i < max_worker_processes; i++)
	{
		Process    *process = &area->processes[i];

		if (process->database == database)
			return process;
		if (unused == NULL && process->pid == 0 && process->asked_at == 0)
			unused = process;
	}
	if (!make || unused == NULL)
		return NULL;
	*unused = (Process) {.database = database};
	return unused;
}

uint32
aq_propagator_area_changes(void)
{
	return pg_atomic_read_u32(&area->changes);
}

/* --- the process ----------------------------------------------------------------------------- */

static void
leave(int code, Datum arg)
{
	Process    *process;

	aq_latch_get(&area->latch, AQ_EXCLUSIVE, AQ_LOC_PROPAGATION);
	process = find(DatumGetObjectId(arg), false);
	if (process != NULL && process->pid == MyProcPid)
	{
		process->pid = 0;
		process->failed_at = code == 0 ? 0 : GetCurrentTimestamp();
	}
	aq_latch_free(&area->latch);
	/* the worker looks whether another one is needed */
	pg_atomic_fetch_add_u32(&area->changes, 1);
	aq_jobs_post();
}

/* Called first.  False: the database has a process. */
bool
aq_propagator_area_enter(Oid database)
{
	Process    *process;
	bool		mine;

	aq_latch_get(&area->latch, AQ_EXCLUSIVE, AQ_LOC_PROPAGATION);
	process = find(database, true);
	mine = process != NULL && process->pid == 0;
	if (mine)
	{
		process->pid = MyProcPid;
		process->session = aq_session_number();
		process->asked_at = 0;
	}
	aq_latch_free(&area->latch);
	if (mine)
		before_shmem_exit(leave, ObjectIdGetDatum(database));
	return mine;
}

uint32
aq_propagator_area_arrivals(void)
{
	return pg_atomic_read_u32(&area->arrivals);
}

/* Have schedules changed, or batches arrived, since aq_propagator_area_heed()? */
bool
aq_propagator_area_disturbed(void)
{
	return pg_atomic_read_u32(&area->changes) != heeded || aq_propagator_area_arrivals() != heeded_arrivals;
}

/* Called before the process looks at the schedules; returns whether they may have changed. */
bool
aq_propagator_area_heed(void)
{
	uint32		before = heeded;

	heeded = pg_atomic_read_u32(&area->changes);
	heeded_arrivals = aq_propagator_area_arrivals();
	pg_memory_barrier();
	return heeded != before;
}

/* --- the worker ------------------------------------------------------------------------------- */

static bool
register_process(void)
{
	BackgroundWorker worker;

	aq_process_init(&worker, "aq_propagator_main", "pgaq propagation");
	worker.bgw_main_arg = ObjectIdGetDatum(MyDatabaseId);
	return RegisterDynamicBackgroundWorker(&worker, NULL);
}

static void
set_asked(TimestampTz when)
{
	Process    *process;

	aq_latch_get(&area->latch, AQ_EXCLUSIVE, AQ_LOC_PROPAGATION);
	process = find(MyDatabaseId, false);
	if (process != NULL && process->pid == 0)
		process->asked_at = when;
	aq_latch_free(&area->latch);
}

/* Starts the database's process unless it runs; returns when to look again, 0: after the next change. */
TimestampTz
aq_propagator_area_start(void)
{
	TimestampTz now = GetCurrentTimestamp();
	TimestampTz later = 0;
	Process    *process;
	bool		start = false;

	aq_latch_get(&area->latch, AQ_EXCLUSIVE, AQ_LOC_PROPAGATION);
	process = find(MyDatabaseId, true);
	if (process != NULL && process->pid != 0 && aq_stuck_is_given_up(process->pid))
		process->pid = 0;
	if (process == NULL)
		later = now + NO_SLOT;
	else if (process->pid == 0 && process->asked_at != 0 && now < process->asked_at + START_PATIENCE)
		later = process->asked_at + START_PATIENCE;
	else if (process->pid == 0 && process->failed_at != 0 && now < process->failed_at + PAUSE)
		later = process->failed_at + PAUSE;
	else if (process->pid == 0)
	{
		process->asked_at = now;
		start = true;
	}
	aq_latch_free(&area->latch);
	if (!start)
		return later;
	if (register_process())
	{
		aq_room_got();
		return now + START_PATIENCE;
	}
	set_asked(0);
	aq_room_ask();
	return now + NO_SLOT;
}

/* --- sessions ------------------------------------------------------------------------------------ */

static void
wake_process(void)
{
	Process    *process;

	aq_latch_get(&area->latch, AQ_SHARED, AQ_LOC_PROPAGATION);
	process = find(MyDatabaseId, false);
	if (process != NULL && process->pid != 0)
	{
		PGPROC	   *proc = aq_session_proc(process->session);

		if (proc != NULL)
			SetLatch(&proc->procLatch);
	}
	aq_latch_free(&area->latch);
}

/* A change of schedules is committed.  Never raises. */
void
aq_propagator_area_notify(void)
{
	pg_atomic_fetch_add_u32(&area->changes, 1);
	wake_process();
	aq_jobs_post();
}

/* The link worker has committed that batches have arrived.  Never raises. */
void
aq_propagator_area_arrived(void)
{
	pg_atomic_fetch_add_u32(&area->arrivals, 1);
	wake_process();
}

/* Before a command that needs the database for itself: its process ends. */
void
aq_propagator_area_stop(Oid database)
{
	Process    *process;

	aq_session_attach();
	aq_latch_get(&area->latch, AQ_SHARED, AQ_LOC_PROPAGATION);
	process = find(database, false);
	if (process != NULL && process->pid != 0)
		kill(process->pid, SIGTERM);
	aq_latch_free(&area->latch);
}
