/*-------------------------------------------------------------------------
 *
 * trace_control.c
 *	  Session traces: start, stop, and reading by other sessions.
 *
 * Shared memory has room for pgaq.max_traces traces.  A trace belongs to the
 * traced session, not to the one that started it: the latter may end, and any
 * session that may trace the former may stop the trace.  When the traced
 * session ends, its trace can still be read until its room is needed: stopped
 * traces are discarded, the one that was stopped first first; running ones
 * never.  So a role that is no member of pg_monitor can run at most half of
 * them, and the last one is for such members.  A restart of the server discards
 * all traces.
 *
 * A session can be traced, and its trace read, by itself, by roles that have
 * the privileges of its role, by members of pg_monitor, and by superusers.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_authid.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "storage/procarray.h"
#include "sync/common/os.h"
#include "sync/control/control_int.h"
#include "sync/latches/latch.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

static AqLatch *board;			/* protects the first part of each trace */


static const char *const operation_names[] = {
#define X(id, name, text) name,
#include "sync/traces/trace_list.h"
#undef X
};

Size
aq_trace_control_shmem_size(void)
{
	return add_size(CACHELINEALIGN(sizeof(AqLatch)), aq_trace_shmem_size());
}

void
aq_trace_control_shmem_init(void *area, bool found)
{
	board = area;
	aq_trace_shmem_init((char *) area + CACHELINEALIGN(sizeof(AqLatch)), found);
	if (found)
		return;
	memset(board, 0, sizeof(AqLatch));
	aq_latch_init(board, AQ_LATCH_TRACES, 0);
}

/* --- the traced session ------------------------------------------------------------ */

static void
stop(AqTrace *trace)
{
	uint32		word = aq_trace_number(trace) + 1;

	/* another process may use the session slot of one that has ended */
	(void) pg_atomic_compare_exchange_u32(&aq_trace_sessions[trace->session].word, &word, 0);
	trace->running = false;
	trace->stopped = GetCurrentTimestamp();
}

/*
 * Stops the session's trace, which can still be read.  Does not raise an
 * error.
 */
void
aq_trace_control_session_exit(void)
{
	uint32		word = pg_atomic_read_u32(aq_trace_word);

	if (word == 0)
		return;
	aq_latch_get(board, AQ_EXCLUSIVE, AQ_LOC_TRACE);
	if (aq_trace_at(word - 1)->pid == MyProcPid && aq_trace_at(word - 1)->running)
		stop(aq_trace_at(word - 1));
	pg_atomic_write_u32(aq_trace_word, 0);
	aq_latch_free(board);
}

/* --- start and stop -------------------------------------------------------------------- */

static bool
is_monitor(void)
{
	return superuser() || has_privs_of_role(GetUserId(), ROLE_PG_MONITOR);
}

/*
 * own: the session traces itself.  This does not count while it executes
 * another role's code, such as a rule.
 */
static bool
may_trace(bool own, Oid role)
{
	return (own && !InSecurityRestrictedOperation()) || is_monitor() || (OidIsValid(role) && has_privs_of_role(GetUserId(), role));
}

/*
 * Is it a trace of this process, and not of an earlier one with the same
 * process id?
 */
static bool
is_own(const AqTrace *trace)
{
	return trace->pid == MyProcPid && trace->started >= MyStartTimestamp;
}

bool
aq_trace_control_may_see(const AqTrace *trace)
{
	return may_trace(is_own(trace), trace->role);
}

static void
check_right(int pid, bool own, Oid role)
{
	if (!may_trace(own, role))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied to trace session %d", pid),
				 errhint("A session can be traced by itself, by roles that have the privileges of its role, and by members of pg_monitor.")));
}

/*
 * Finds the traces whose processes are running.  Called before the latch is
 * taken.
 */
static void
find_alive(bool *alive)
{
	for (int i = 0; i < aq_trace_max; i++)
		alive[i] = aq_trace_at(i)->pid != 0 && BackendPidGetProc(aq_trace_at(i)->pid) != NULL;
}

static bool
is_running(int number, const bool *alive)
{
	return aq_trace_at(number)->running && alive[number];
}

/*
 * Chooses where to put a new trace: in the session's previous trace, in an
 * unused one, or in the one that was stopped first; -1: all are running.  The
 * caller holds the board.
 */
static int
choose_place(int pid, const bool *alive)
{
	int			best = -1;

	for (int i = 0; i < aq_trace_max; i++)
	{
		AqTrace    *trace = aq_trace_at(i);

		if (is_running(i, alive))
			continue;
		/* its session is still writing a row, which takes a moment */
		if (trace->pid != 0 && pg_atomic_read_u32(&aq_trace_sessions[trace->session].busy) != 0 &&
			alive[i])
			continue;
		if (trace->pid == pid)
			return i;
		if (best < 0 || trace->pid == 0 ||
			(aq_trace_at(best)->pid != 0 && trace->stopped < aq_trace_at(best)->stopped))
			best = i;
	}
	return best;
}

static void
start(AqTrace *trace, int pid, int session, Oid role, uint32 operations)
{
	trace->pid = pid;
	trace->session = session;
	trace->role = role;
	trace->started_by = GetUserId();
	trace->operations = operations;
	trace->running = true;
	trace->started = GetCurrentTimestamp();
	trace->stopped = 0;
	trace->generation++;
	trace->base = aq_clock_ns();
	pg_atomic_write_u64(&trace->written, 0);
	memset(trace->counts, 0, sizeof(trace->counts));
	trace->unprofiled = 0;
	trace->nprofiles = 0;
	memset(trace->hash, 0, sizeof(trace->hash));
	for (int row = 0; row < aq_trace_rows; row++)
		pg_atomic_write_u64(&trace->rows[row].sequence, 0);
}

/* Bits of the named operations; all operations if there is no array. */
static uint32
operations_of(ArrayType *names)
{
	Datum	   *elements;
	bool	   *nulls;
	int			n;
	uint32		bits = 0;

	deconstruct_array(names, TEXTOID, -1, false, TYPALIGN_INT, &elements, &nulls, &n);
	for (int i = 0; i < n; i++)
	{
		char	   *name = nulls[i] ? "null" : TextDatumGetCString(elements[i]);
		int			operation = 0;

		while (operation < AQ_TRACE_OPERATIONS && strcmp(operation_names[operation], name) != 0)
			operation++;
		if (operation == AQ_TRACE_OPERATIONS)
			ereport(ERROR,
					aq_error(AQ_ERR_TRACE_OPERATION, "\"%s\" is not an operation that can be traced", name),
					errhint("Operations are lock, pin, latch, mutex, wait, publish and wake-up."));
		bits |= 1u << operation;
	}
	return bits;
}

/* aq.trace_start(pid, operations) */
PG_FUNCTION_INFO_V1(aq_trace_control_start);
Datum
aq_trace_control_start(PG_FUNCTION_ARGS)
{
	int			pid = PG_ARGISNULL(0) ? MyProcPid : PG_GETARG_INT32(0);
	uint32		operations = PG_ARGISNULL(1) ? PG_UINT32_MAX : operations_of(PG_GETARG_ARRAYTYPE_P(1));
	bool		alive[64];
	Oid			role;
	int			session;
	int			place = -1;
	int			places;
	int			taken = 0;
	int			own = 0;
	int			most;
	bool		running = false;

	aq_session_attach();
	session = aq_session_of_pid(pid, &role);
	if (session < 0)
		ereport(ERROR,
				aq_error(AQ_ERR_TRACE_SESSION, "there is no session with process id %d", pid),
				errhint("Use a process id from pg_stat_activity."));
	check_right(pid, pid == MyProcPid, role);

	/* the last place is reserved for pg_monitor */
	places = is_monitor() ? aq_trace_max : aq_trace_max - 1;
	most = is_monitor() ? aq_trace_max : Max(aq_trace_max / 2, 1);
	find_alive(alive);
	aq_latch_get(board, AQ_EXCLUSIVE, AQ_LOC_TRACE);
	for (int i = 0; i < aq_trace_max; i++)
		if (is_running(i, alive))
		{
			taken++;
			if (aq_trace_at(i)->started_by == GetUserId())
				own++;
			running = running || aq_trace_at(i)->pid == pid;
		}
	if (!running && taken < places && own < most)
		place = choose_place(pid, alive);
	if (place >= 0)
	{
		/* a process id has one trace, so discard an older one elsewhere */
		for (int i = 0; i < aq_trace_max; i++)
			if (i != place && aq_trace_at(i)->pid == pid)
				aq_trace_at(i)->pid = 0;
		start(aq_trace_at(place), pid, session, role, operations);
		pg_memory_barrier();	/* complete before the session sees it */
		pg_atomic_write_u32(&aq_trace_sessions[session].word, place + 1);
	}
	aq_latch_free(board);

	if (running)
		ereport(ERROR,
				aq_error(AQ_ERR_TRACE_RUNNING, "session %d is already being traced", pid),
				errhint("Stop that trace with aq.trace_stop, or read it."));
	if (place < 0 && own >= most && taken < places)
		ereport(ERROR,
				aq_error(AQ_ERR_TRACE_FULL, "role \"%s\" is already tracing %d sessions", GetUserNameFromId(GetUserId(), false), own),
				errdetail("A role that is not a member of pg_monitor can trace at most %d at a time.", most),
				errhint("Stop one of the traces that aq.traces lists, or raise pgaq.max_traces and restart the server."));
	if (place < 0)
		ereport(ERROR,
				aq_error(AQ_ERR_TRACE_FULL, "%d sessions are already being traced", taken),
				taken < aq_trace_max ? errdetail("The last trace is reserved for members of pg_monitor.") : 0,
				errhint("Stop a trace listed in aq.traces, or raise pgaq.max_traces and restart the server."));
	PG_RETURN_VOID();
}

/* The session's trace, running or stopped; NULL: none. */
static AqTrace *
find_trace(int pid)
{
	for (int i = 0; i < aq_trace_max; i++)
		if (aq_trace_at(i)->pid == pid && pid != 0)
			return aq_trace_at(i);
	return NULL;
}

pg_noreturn static void
no_trace_of(int pid)
{
	ereport(ERROR,
			aq_error(AQ_ERR_TRACE_UNDEFINED, "there is no trace of session %d", pid),
			errhint("Start one with aq.trace_start; aq.traces lists the existing ones."));
}

/*
 * Raises an error unless the session has a trace that the caller may see.
 * Called without the board, because privilege checks can raise errors; so the
 * caller compares the role again under the board.
 */
static Oid
check_trace(int pid)
{
	AqTrace    *trace = find_trace(pid);
	Oid			role;

	if (trace == NULL)
		no_trace_of(pid);
	role = trace->role;
	check_right(pid, is_own(trace), role);
	return role;
}

/*
 * Waits until the session has written its last row, which takes a few
 * instructions unless it was preempted.  After that the trace does not change.
 */
static void
await_last_row(int session)
{
	while (pg_atomic_read_u32(&aq_trace_sessions[session].busy) != 0)
	{
		CHECK_FOR_INTERRUPTS();
		aq_os_yield();
	}
}

/* aq.trace_stop(pid): the trace can still be read. */
PG_FUNCTION_INFO_V1(aq_trace_control_stop);
Datum
aq_trace_control_stop(PG_FUNCTION_ARGS)
{
	int			pid = PG_ARGISNULL(0) ? MyProcPid : PG_GETARG_INT32(0);
	AqTrace    *trace;
	Oid			role;
	int			session = -1;

	aq_session_attach();
	role = check_trace(pid);
	aq_latch_get(board, AQ_EXCLUSIVE, AQ_LOC_TRACE);
	trace = find_trace(pid);
	if (trace != NULL && trace->role != role)
		trace = NULL;
	if (trace != NULL && trace->running)
	{
		session = trace->session;
		stop(trace);
	}
	aq_latch_free(board);
	if (trace == NULL)
		no_trace_of(pid);
	if (session >= 0)
		await_last_row(session);
	PG_RETURN_VOID();
}

/* --- for the views --------------------------------------------------------------------- */

/* Copies the rows.  Rows that are overwritten meanwhile are left out later. */
static void
copy_rows(AqTrace *to, AqTrace *from)
{
	for (int i = 0; i < aq_trace_rows; i++)
	{
		uint64		before = pg_atomic_read_u64(&from->rows[i].sequence);

		pg_read_barrier();
		to->rows[i] = from->rows[i];
		pg_read_barrier();
		if (before != pg_atomic_read_u64(&from->rows[i].sequence))
			before = 0;
		pg_atomic_write_u64(&to->rows[i].sequence, before);
	}
}

/*
 * A copy of the session's trace; raises an error if there is none or the
 * caller may not see it.
 */
AqTrace *
aq_trace_control_copy(int pid, bool with_rows)
{
	AqTrace    *copy = MemoryContextAllocHuge(CurrentMemoryContext, aq_trace_size());
	Oid			role = check_trace(pid);
	AqTrace    *trace;

	aq_latch_get(board, AQ_SHARED, AQ_LOC_TRACE);
	trace = find_trace(pid);
	if (trace != NULL && trace->role != role)
		trace = NULL;
	if (trace != NULL)
	{
		/* read the number first, so that no incomplete profile is copied */
		int			nprofiles = trace->nprofiles;

		pg_read_barrier();
		memcpy(copy, trace, offsetof(AqTrace, rows));
		copy->nprofiles = nprofiles;
		if (with_rows)
			copy_rows(copy, trace);
	}
	aq_latch_free(board);
	if (trace == NULL)
		no_trace_of(pid);
	return copy;
}

/*
 * Copies the first parts of all traces, at most aq_trace_max; returns their
 * number.
 */
int
aq_trace_control_copy_heads(AqTrace *heads, bool *running)
{
	bool		alive[64];
	int			n = 0;

	find_alive(alive);
	aq_latch_get(board, AQ_SHARED, AQ_LOC_TRACE);
	for (int i = 0; i < aq_trace_max; i++)
	{
		AqTrace    *trace = aq_trace_at(i);

		if (trace->pid == 0)
			continue;
		running[n] = is_running(i, alive);
		memcpy(&heads[n++], trace, offsetof(AqTrace, hash));
	}
	aq_latch_free(board);
	return n;
}
