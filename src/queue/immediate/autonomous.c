/*-------------------------------------------------------------------------
 *
 * autonomous.c
 *	  Immediate visibility: executing one statement in a separate transaction.
 *
 * A helper (helper.c) from the server's pool (helper_pool.c) executes the
 * statement.  A request is a statement of pgaq with its arguments, and the
 * session state that the helper needs.  It is in shared memory, where the helper
 * adds the answer, rows or an error.
 *
 * The result of the call is always known: the helper records its commit in the
 * request before it serves an interrupt.  If the session is cancelled, it
 * cancels its helper, and waits briefly for the result.
 *
 * A helper commits asynchronously, and the session itself waits until the WAL
 * of the commit is flushed, and replicated if it wants that.  So helpers do not
 * wait for the disk: the flushes of sessions that wait are joined, as those of
 * other commits, while each call remains a transaction of its own, with its own
 * error, locks, triggers and settings.  Until then others can see what a crash
 * would undo, as with synchronous_commit = off; what they commit comes after it
 * in the WAL, and is undone too.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/immediate/immediate_private.h"

#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "storage/proc.h"
#include "utils/guc.h"

/*
 * how long a cancelled session waits for its helper to end the call, in
 * microseconds
 */
#define END_PATIENCE ((int64) 5000000)

/*
 * maximum number of helpers tried for a call, if helpers end before they begin
 */
#define ATTEMPTS 5

/*
 * log a message after this many failures in a row to start a helper, while
 * there is none
 */
#define COMPLAIN_AFTER 10

/*
 * settings that the helper takes over from the session: search_path, other
 * settings on which expressions depend, limits, and the trace context
 */
const char *const aq_autonomous_settings[] = {
	"search_path",
#define X(id, name, value, has_it, of_text) name,
#include "queue/catalog/setting_list.h"
#undef X
	"pgaq.buffered_message_limit",
	"pgaq.traceparent",
	"pgaq.tracestate"
};
const int	aq_autonomous_nsettings = lengthof(aq_autonomous_settings);

const AqCarried *aq_autonomous_carried;

typedef struct Call
{
	AqRequest  *request;		/* until the session leaves the pool */
	BackgroundWorkerHandle *worker; /* process of a helper that the session has started; else NULL */
} Call;

typedef enum Outcome
{
	ANSWERED,
	HELPER_NOT_STARTED,
	HELPER_ENDED,
	NO_ANSWER					/* not yet */
} Outcome;

typedef struct Answer
{
	bool		failed;
	/* for rows */
	int			ncolumns;
	AqEmitColumns emit;
	void	   *emit_arg;
	/* for an error */
	int			sqlstate;
	char	   *message;
	char	   *detail;
	char	   *hint;
	int32		full_queue;		/* queue whose consumer has no room for buffered messages; 0: another reason */
	int			full_position;
} Answer;

/* --- the request ------------------------------------------------------------------------- */

static void
write_request(StringInfo request, const char *sql, int nargs, const Oid *types, const Datum *values, const char *nulls)
{
	int64		identity = aq_schema_session_identity();

	aq_wire_put_oid(request, GetUserId());
	aq_wire_put(request, &identity, sizeof(identity));
	aq_wire_put_int(request, aq_schema_session_number());
	for (int i = 0; i < aq_autonomous_nsettings; i++)
		aq_wire_put_string(request, i == 0 ? aq_run_as_caller_path() : GetConfigOption(aq_autonomous_settings[i], false, false));
	aq_autonomous_carried->write(request);
	aq_wire_put_string(request, sql);
	aq_wire_put_int(request, nargs);
	for (int i = 0; i < nargs; i++)
	{
		aq_wire_put_oid(request, types[i]);
		aq_wire_put_datum(request, values[i], nulls[i] == 'n', types[i]);
	}
}

/* A copy of the request in shared memory.  An error must not follow before it is the pool's. */
static dsa_pointer
share_request(Call *call, const StringInfoData *request)
{
	dsa_area   *memory = aq_helper_area_memory();
	dsa_pointer place = dsa_allocate(memory, offsetof(AqRequest, data) + request->len);

	call->request = dsa_get_address(memory, place);
	pg_atomic_init_u32(&call->request->phase, AQ_CALL_ASKED);
	call->request->commit_end = InvalidXLogRecPtr;
	call->request->answer = InvalidDsaPointer;
	memcpy(call->request->data, request->data, request->len);
	return place;
}

/* --- getting a helper ---------------------------------------------------------------------- */

/*
 * Starts the process of a new helper; returns false if no worker slot is free.
 */
static bool
start_process(Call *call, int number, uint32 serial)
{
	BackgroundWorker worker;

	aq_process_init(&worker, "aq_helper_main", "pgaq helper");
	worker.bgw_main_arg = Int32GetDatum(number);
	memcpy(worker.bgw_extra, &serial, sizeof(serial));
	worker.bgw_notify_pid = MyProcPid;
	return RegisterDynamicBackgroundWorker(&worker, &call->worker);
}

static void
complain(void)
{
	ereport(LOG,
			aq_error(AQ_ERR_WORKER_MISSING, "could not start a background worker for immediate visibility"),
			errdetail("Sessions wait until a worker slot is free."),
			errhint("%s", aq_room_hint()));
}

static void
tell(void)
{
	ereport(NOTICE,
			(errmsg("waiting for a background worker for immediate visibility"),
			 errdetail_internal("%s", aq_room_no_slot()),
			 errhint("%s", aq_room_hint())));
}

/* Waits until the session has a helper, which may still be starting. */
static void
get_helper(Call *call, const StringInfoData *request)
{
	AqHelperKey key = {
		.database = MyDatabaseId,
		.login = GetAuthenticatedUserId(),
		.session = GetSessionUserId(),
		.current = GetUserId(),
	};
	int			number;
	uint32		serial;
	int64		since = aq_clock_us();
	bool		told = false;

	call->worker = NULL;
	aq_claim_reserve(1);
	aq_helper_pool_join(&key, share_request(call, request));
	while (aq_helper_pool_wait(&number, &serial))
	{
		if (start_process(call, number, serial))
		{
			aq_helper_pool_registered();
			return;
		}
		if (aq_helper_pool_not_registered() == COMPLAIN_AFTER)
			complain();
		if (!told && aq_await_is_long(since))
		{
			told = true;
			tell();
		}
	}
}

/* --- the answer ---------------------------------------------------------------------------------- */

static void
read_rows(const char **data, const Answer *answer)
{
	int			nrows = aq_wire_get_int(data);
	int			ncolumns = aq_wire_get_int(data);
	Datum	   *values = palloc(ncolumns * sizeof(Datum));
	bool	   *nulls = palloc(ncolumns * sizeof(bool));

	if (ncolumns < answer->ncolumns)
		elog(ERROR, "a statement with immediate visibility returned %d columns", ncolumns);
	for (int i = 0; i < nrows; i++)
	{
		for (int j = 0; j < ncolumns; j++)
			values[j] = aq_wire_get_datum(data, &nulls[j]);
		answer->emit(answer->emit_arg, values, nulls);
	}
}

static void
read_answer(const char *data, Answer *answer)
{
	answer->failed = *data++ == AQ_ANSWER_ERROR;
	if (answer->failed)
	{
		answer->sqlstate = aq_wire_get_int(&data);
		answer->message = pstrdup(aq_wire_get_string(&data));
		answer->detail = pstrdup(aq_wire_get_string(&data));
		answer->hint = pstrdup(aq_wire_get_string(&data));
		answer->full_queue = aq_wire_get_int(&data);
		answer->full_position = aq_wire_get_int(&data);
	}
	else
		read_rows(&data, answer);
	aq_autonomous_carried->read(&data);
}

static bool
is_committed(const Call *call)
{
	bool		committed = pg_atomic_read_u32(&call->request->phase) == AQ_CALL_COMMITTED;

	pg_read_barrier();			/* before commit_end is read */
	return committed;
}

/* Waits for the commit as the session waits for its own. */
static void
wait_for_flush(const Call *call)
{
	if (!is_committed(call))
		return;
	HOLD_INTERRUPTS();
	aq_xact_make_durable(call->request->commit_end);
	RESUME_INTERRUPTS();
}

/* Has the process that the session has started ended without connecting? */
static bool
never_came(const Call *call)
{
	pid_t		pid;

	return call->worker != NULL && GetBackgroundWorkerPid(call->worker, &pid) == BGWH_STOPPED;
}

/*
 * Does the helper wait for a lock of this transaction?  The deadlock detector
 * does not see that the transaction waits for the helper.
 */
static bool
blocks(int pid)
{
	const int32 *pids;
	int			n;

	if (pid == 0)
		return false;
	pids = aq_session_blockers(pid, &n);
	for (int i = 0; i < n; i++)
		if (pids[i] == MyProcPid)
			return true;
	return false;
}

static void
check_own_lock(int helper)
{
	if (blocks(helper))
		ereport(ERROR,
				(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
				 errmsg("immediate visibility needs a lock that the transaction itself holds"),
				 errhint("Commit before the call, or make it with visibility on_commit.")));
}

static Bitmapset *
helper_of(int session, const AqWaitNow *now)
{
	Oid			role;
	int			helper = aq_session_of_pid((int) now->p1, &role);

	return helper >= 0 && helper != session ? bms_make_singleton(helper) : NULL;
}

void
aq_autonomous_init(void)
{
	aq_deadlock_define(AQ_EVENT_HELPER_CALL, false, helper_of);
}

/* Waits for the answer; patience: timeout in microseconds, negative: none. */
static Outcome
wait_for_answer(Call *call, int64 patience)
{
	int64		deadline = patience < 0 ? -1 : aq_clock_us() + patience;
	bool		connected;
	int			pid;
	AqCallState state;
	AqDeadlockWatch watch = {0};

	while ((state = aq_helper_pool_state(&connected, &pid)) == AQ_CALL_GRANTED)
	{
		int64		left = deadline < 0 ? DeadlockTimeout * INT64CONST(1000) : deadline - aq_clock_us();

		if (left <= 0 || (deadline >= 0 && (ProcDiePending || is_committed(call))))
			return NO_ANSWER;
		if (never_came(call))
			aq_helper_pool_never_came();
		else if (!aq_event_sleep(AQ_EVENT_HELPER_CALL, pid, 0, 0, left) && deadline < 0)
		{
			check_own_lock(pid);
			aq_deadlock_check(&watch, AQ_EVENT_HELPER_CALL, pid);
		}
	}
	if (state == AQ_CALL_ANSWERED)
		return ANSWERED;
	return connected ? HELPER_ENDED : HELPER_NOT_STARTED;
}

/* --- a call --------------------------------------------------------------------------------------- */

static const char *
fate_of(const Call *call, Outcome outcome)
{
	if (is_committed(call))
		return "The call with immediate visibility was committed.";
	if (outcome != NO_ANSWER)
		return "The call with immediate visibility was rolled back.";
	return "It is not known whether the call with immediate visibility was committed.";
}

/* Raises the error for a helper that has ended during the call. */
pg_noreturn static void
raise_lost(Outcome outcome, const char *fate)
{
	if (outcome == HELPER_NOT_STARTED)
		ereport(ERROR,
				aq_error(AQ_ERR_WORKER_MISSING, "a background worker for immediate visibility could not start"),
				errhint("Consult recent messages in the server log for details."));
	ereport(ERROR,
			aq_error(AQ_ERR_WORKER_MISSING, "the background worker for immediate visibility has ended"),
			errdetail_internal("%s", fate),
			errhint("Consult recent messages in the server log for details."));
}

/*
 * Called if the session is cancelled during the call: cancels the helper, too.
 * The error says how the call ended.
 */
pg_noreturn static void
call_off(Call *call, MemoryContext context)
{
	ErrorData  *error;
	Outcome		outcome;

	MemoryContextSwitchTo(context);
	error = CopyErrorData();
	FlushErrorState();
	HOLD_INTERRUPTS();
	aq_helper_pool_cancel();
	outcome = wait_for_answer(call, END_PATIENCE);
	wait_for_flush(call);
	if (error->detail == NULL)
		error->detail = pstrdup(fate_of(call, outcome));
	aq_helper_pool_leave();
	RESUME_INTERRUPTS();
	ReThrowError(error);
}

/* Waits for the result of a request; cancels the call after an error. */
static Outcome
wait_or_call_off(Call *call)
{
	MemoryContext context = CurrentMemoryContext;
	volatile Outcome outcome = NO_ANSWER;

	PG_TRY();
	{
		outcome = wait_for_answer(call, -1);
	}
	PG_CATCH();
	{
		call_off(call, context);
	}
	PG_END_TRY();
	return outcome;
}

/* Makes one attempt; returns false if the helper ended before it began. */
static bool
try_call(const StringInfoData *request, bool last, Answer *answer)
{
	Call		call;
	Outcome		outcome;
	const char *fate;

	get_helper(&call, request);
	outcome = wait_or_call_off(&call);
	wait_for_flush(&call);
	if (outcome == ANSWERED)
		read_answer(dsa_get_address(aq_helper_area_memory(), call.request->answer), answer);
	last |= outcome == HELPER_NOT_STARTED || pg_atomic_read_u32(&call.request->phase) != AQ_CALL_ASKED;
	fate = fate_of(&call, outcome);
	aq_helper_pool_leave();
	if (outcome != ANSWERED && last)
		raise_lost(outcome, fate);
	return outcome == ANSWERED;
}

static void
ask_helper(const StringInfoData *request, Answer *answer)
{
	aq_stat_add(AQ_STAT_IMMEDIATE, 1);
	for (int i = 1; !try_call(request, i == ATTEMPTS, answer); i++)
		CHECK_FOR_INTERRUPTS();
}

/* Can the session make calls with immediate visibility? */
void
aq_autonomous_check(void)
{
	aq_session_require_write("a call with immediate visibility");
	if (InSecurityRestrictedOperation())
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("cannot use immediate visibility within a security-restricted operation")));
}

/*
 * Executes a statement in a separate transaction.  emit gets its rows, of at
 * least ncolumns columns.
 */
void
aq_autonomous_rows(const char *sql, int nargs, const Oid *types, const Datum *values, const char *nulls,
				   int ncolumns, AqEmitColumns emit, void *arg)
{
	Answer		answer = {.ncolumns = ncolumns, .emit = emit, .emit_arg = arg};
	StringInfoData request;
	AqFlowWait	wait = {0};

	aq_autonomous_check();
	aq_session_attach();
	initStringInfo(&request);
	write_request(&request, sql, nargs, types, values, nulls);
	ask_helper(&request, &answer);
	/* wait without a helper, so that consumers can use it */
	while (answer.failed && answer.full_queue != 0 && aq_flow_wait(answer.full_queue, answer.full_position, &wait))
		ask_helper(&request, &answer);
	pfree(request.data);
	if (answer.failed)
		ereport(ERROR,
				(errcode(answer.sqlstate),
				 errmsg_internal("%s", answer.message),
				 answer.detail[0] ? errdetail_internal("%s", answer.detail) : 0,
				 answer.hint[0] ? errhint("%s", answer.hint) : 0,
				 errcontext("statement with immediate visibility")));
}
