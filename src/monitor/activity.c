/*-------------------------------------------------------------------------
 *
 * activity.c
 *	  The current state of the server's processes: activity, waits, and
 *	  blockers.
 *
 * It reads the server's data for pg_stat_activity, each process's PGPROC, and
 * pgaq's slots of attached sessions.  They are read without locks, so the
 * processes are not seen at exactly the same moment.  Only for a process that
 * waits for a heavyweight lock, the lock manager is asked for the holder, as
 * by pg_blocking_pids().
 *
 * PostgreSQL does not record its waits, so they are seen only at such moments;
 * here they get a class, so that they can be shown together with pgaq's.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "monitor/monitor_private.h"

#include "pgstat.h"
#include "storage/proc.h"
#include "utils/backend_status.h"
#include "utils/hsearch.h"
#include "utils/wait_event.h"

#define TYPE_OF(info) ((info) & 0xFF000000U)

/* PostgreSQL 15 names it PG_WAIT_BUFFER_PIN */
#define WAIT_BUFFER_PIN 0x04000000U

/* --- the server's waits -------------------------------------------------------------- */

static AqWaitClass
class_of_io(const char *name, bool background)
{
	/* WALSync is WalSync from PostgreSQL 17 on */
	if (pg_strncasecmp(name, "WAL", 3) == 0)
		return background ? AQ_CLASS_SYSTEM_IO : AQ_CLASS_COMMIT;
	return background ? AQ_CLASS_SYSTEM_IO : AQ_CLASS_USER_IO;
}

/*
 * The class of a wait of the server.  executing: a statement is running, so the
 * session does not wait for the next one, but for data that belongs to it.
 */
AqWaitClass
aq_activity_wait_class(uint32 info, bool background, bool executing)
{
	const char *name = pgstat_get_wait_event(info);

	if (name == NULL)
		return AQ_CLASS_OTHER;
	switch (TYPE_OF(info))
	{
		case PG_WAIT_LWLOCK:
			return strcmp(name, "WALWrite") == 0 ? AQ_CLASS_COMMIT : AQ_CLASS_CONCURRENCY;
		case PG_WAIT_LOCK:
			return strcmp(name, "extend") == 0 ? AQ_CLASS_CONFIGURATION : AQ_CLASS_APPLICATION;
		case WAIT_BUFFER_PIN:
			return AQ_CLASS_CONCURRENCY;
		case PG_WAIT_ACTIVITY:
			return AQ_CLASS_IDLE;
		case PG_WAIT_CLIENT:
			return strcmp(name, "ClientRead") == 0 && !executing ? AQ_CLASS_IDLE : AQ_CLASS_NETWORK;
		case PG_WAIT_IPC:
			return strcmp(name, "SyncRep") == 0 ? AQ_CLASS_COMMIT : AQ_CLASS_OTHER;
		case PG_WAIT_TIMEOUT:
			/* a checkpointer ahead of its schedule is idle, too */
			return strcmp(name, "PgSleep") == 0 || strcmp(name, "CheckpointWriteDelay") == 0 ? AQ_CLASS_IDLE :
				strcmp(name, "SpinDelay") == 0 ? AQ_CLASS_CONCURRENCY : AQ_CLASS_OTHER;
		case PG_WAIT_IO:
			return class_of_io(name, background);
		default:
			return AQ_CLASS_OTHER;
	}
}

/* The name of a wait of the server, with its type, such as "IO: WALSync". */
const char *
aq_activity_wait_name(uint32 info)
{
	const char *type = pgstat_get_wait_event_type(info);
	const char *name = pgstat_get_wait_event(info);

	return psprintf("%s: %s", type ? type : "unknown", name ? name : "unknown");
}

/*
 * --- processes
 * ---------------------------------------------------------------------
 */

typedef struct Place
{
	int			pid;
	int			number;			/* of the PGPROC */
} Place;

static int
compare_places(const void *a, const void *b)
{
	return ((const Place *) a)->pid - ((const Place *) b)->pid;
}

/* Lists the PGPROCs in use, sorted by process id. */
static Place *
list_places(int *n)
{
	Place	   *places = palloc(aq_session_slots() * sizeof(Place));

	*n = 0;
	for (int i = 0; i < aq_session_slots(); i++)
	{
		int			pid = ProcGlobal->allProcs[i].pid;

		if (pid != 0)
		{
			places[*n].pid = pid;
			places[(*n)++].number = i;
		}
	}
	qsort(places, *n, sizeof(Place), compare_places);
	return places;
}

static int
number_of(const Place *places, int n, int pid)
{
	Place		key = {.pid = pid};
	Place	   *found = bsearch(&key, places, n, sizeof(Place), compare_places);

	return found ? found->number : -1;
}

static bool
is_background(const PgBackendStatus *status, const PGPROC *proc)
{
	if (status->st_backendType == B_BACKEND)
		return false;
	/* a parallel worker works for a user's session */
	return proc->lockGroupLeader == NULL || proc->lockGroupLeader == proc;
}

static void
read_process(AqProcess *process, const PgBackendStatus *status, int number)
{
	const PGPROC *proc = &ProcGlobal->allProcs[number];
	bool		running = status->st_state == STATE_RUNNING || status->st_state == STATE_FASTPATH;

	process->number = number;
	process->pid = status->st_procpid;
	process->background = is_background(status, proc);
	process->executing = running;
	process->database = status->st_databaseid;
	process->user = status->st_userid;
	process->program = status->st_appname;
	process->type = status->st_backendType;
	process->query_id = running ? status->st_query_id : 0;
	process->attached = aq_session_pid(number) == process->pid;
	process->now.event = -1;
	process->operation = -1;
	process->blocker = -1;
	if (process->attached)
	{
		aq_event_read(number, &process->now);
		process->operation = aq_stat_operation(number, &process->queue);
		aq_application_read(number, &process->said);
	}
	process->wait_info = process->now.waiting ? 0 : proc->wait_event_info;
	if (process->now.waiting)
		process->class = aq_event_names[process->now.event].class;
	else if (process->wait_info != 0)
		process->class = aq_activity_wait_class(process->wait_info, process->background, running);
	else
		process->class = AQ_CLASS_OTHER;

	/* processes without statements are active unless their wait is idle */
	process->active = (running || status->st_state == STATE_UNDEFINED) &&
		((process->wait_info == 0 && !process->now.waiting) || process->class != AQ_CLASS_IDLE);
}

/*
 * The first of the processes that block this one at a heavyweight lock; -1:
 * not known.
 */
static int
first_blocker(int pid, const Place *places, int n)
{
	int			npids;
	const int32 *pids = aq_session_blockers(pid, &npids);

	for (int i = 0; i < npids; i++)
	{
		int			number = number_of(places, n, pids[i]);

		if (number >= 0)
			return number;
	}
	return -1;
}

/* Processes that wait for the same lock in the same mode. */
typedef struct Queued
{
	const void *lock;			/* only compared; the hash key, together with mode */
	int64		mode;
	int			blocker;		/* of the waiting process that was looked up last */
} Queued;

/*
 * The holder of the heavyweight lock for which the process waits.  A lookup
 * takes all partition locks of the lock table, and its time grows with the
 * number of waiters; so there is one lookup for all processes that wait for
 * the same lock.
 */
static int
lock_blocker(HTAB **asked, const AqProcess *process, const Place *places, int n)
{
	const PGPROC *proc = &ProcGlobal->allProcs[process->number];
	Queued		key = {.lock = proc->waitLock, .mode = proc->waitLockMode};
	Queued	   *queued;
	bool		found;

	if (*asked == NULL)
	{
		HASHCTL		info = {.keysize = offsetof(Queued, blocker), .entrysize = sizeof(Queued), .hcxt = CurrentMemoryContext};

		*asked = hash_create("pgaq locks waited for", 64, &info, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	}
	if (key.lock == NULL)
		return -1;				/* it has got the lock meanwhile */
	queued = hash_search(*asked, &key, HASH_ENTER, &found);
	/*
	 * the process that was looked up first may have got the lock, or wait
	 * behind this one
	 */
	if (!found || queued->blocker < 0 || queued->blocker == process->number)
		queued->blocker = first_blocker(process->pid, places, n);
	return queued->blocker;
}

/*
 * Sets the session at the end of each chain of blockers; -1 if it is a cycle.
 */
static void
find_final_blockers(AqProcess *processes, int n)
{
	int		   *blocked_by = palloc(aq_session_slots() * sizeof(int));

	for (int i = 0; i < aq_session_slots(); i++)
		blocked_by[i] = -1;
	for (int i = 0; i < n; i++)
		blocked_by[processes[i].number] = processes[i].blocker;
	for (int i = 0; i < n; i++)
	{
		int			last = processes[i].blocker;
		int			steps = 0;

		while (last >= 0 && blocked_by[last] >= 0 && steps++ < n)
			last = blocked_by[last];
		processes[i].final_blocker = steps > n ? -1 : last;
	}
	pfree(blocked_by);
}

/*
 * Reads all processes and returns their number.  Their pointers are valid
 * until this process's copy of the server's status is cleared.
 */
int
aq_activity_read(AqProcess **result)
{
	int			nplaces;
	Place	   *places = list_places(&nplaces);
	int			nbackends = pgstat_fetch_stat_numbackends();
	AqProcess  *processes = palloc0((nbackends + 1) * sizeof(AqProcess));
	HTAB	   *asked = NULL;
	int			n = 0;

	for (int i = 1; i <= nbackends; i++)
	{
		PgBackendStatus *status = &aq_compat_backend_status(i)->backendStatus;
		int			number = number_of(places, nplaces, status->st_procpid);

		if (number < 0)
			continue;			/* the process is just starting or has ended */
		read_process(&processes[n], status, number);
		if (processes[n].now.waiting)
			processes[n].blocker = aq_deadlock_blocker(number, &processes[n].now);
		else if (TYPE_OF(processes[n].wait_info) == PG_WAIT_LOCK)
			processes[n].blocker = lock_blocker(&asked, &processes[n], places, nplaces);
		n++;
	}
	find_final_blockers(processes, n);
	if (asked != NULL)
		hash_destroy(asked);
	pfree(places);
	*result = processes;
	return n;
}
