/*-------------------------------------------------------------------------
 *
 * helper_pool.c
 *	  The functions of callers, helpers and other processes on the pool of
 *	  helpers; helper_area.c explains its rules.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/immediate/helper_area.h"

#include <signal.h>

#include "miscadmin.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "utils/guc.h"

/* first and longest pause before the next try to register a process */
#define FIRST_PAUSE ((int64) 10000)
#define LAST_PAUSE ((int64) 1000000)

static Helper *own_helper;		/* in a helper process */
static uint32 own_serial;

/* Cancels a call that a helper has begun. */
static void
cancel_call(Helper *helper)
{
	if (helper->cancelled)
		return;
	helper->cancelled = true;
	helper->told = aq_clock_us();
	if (helper->state == HELPER_BUSY)
		kill(helper->pid, SIGINT);
}

/*
 * Has the caller a helper?  False as soon as the helper has begun to answer.
 */
static bool
has_helper(const Call *call)
{
	return call->state == AQ_CALL_GRANTED && aq_helper_area->helpers[call->helper].caller == aq_helper_area_caller(call);
}

/* Releases the caller's helper, even in the middle of a call. */
static void
leave_helper(Helper *helper)
{
	helper->caller = NO_CALLER;
	if (helper->begun)
		cancel_call(helper);
	else if (helper->state != HELPER_STARTING)
		aq_helper_area_make_idle(helper);
	else if (!helper->registered)
		aq_helper_area_free(helper);
}

/* The state of the session's own call, read without the latch. */
static AqCallState
own_state(const Call *call)
{
	AqCallState state = *(const volatile AqCallState *) &call->state;

	pg_read_barrier();
	return state;
}

/* --- the caller ---------------------------------------------------------------------------- */

/*
 * Release of a claim: the session is in line, or has a helper.
 *
 * A request, with its answer, belongs to the session, except while a helper
 * executes it: a helper that has begun frees it if the session has left.
 */
static void
leave(void *ptr, int64 unused)
{
	Call	   *call = ptr;
	dsa_pointer request;

	/* no other process needs it now */
	if (own_state(call) == AQ_CALL_ANSWERED && own_helper == NULL)
	{
		call->state = AQ_CALL_NONE;
		aq_helper_area_discard(call->request);
		return;
	}
	aq_latch_get(&aq_helper_area->latch, AQ_EXCLUSIVE, AQ_LOC_HELPER);
	if (call->state == AQ_CALL_IN_LINE)
	{
		dlist_delete(&call->node);
		aq_helper_area->waiting--;
	}
	else if (has_helper(call))
	{
		if (aq_helper_area->helpers[call->helper].begun)
			call->request = InvalidDsaPointer;
		leave_helper(&aq_helper_area->helpers[call->helper]);
	}
	request = call->request;
	call->request = InvalidDsaPointer;
	call->state = AQ_CALL_NONE;
	if (own_helper != NULL)
		own_helper->blocked = false;
	if (aq_helper_area->timekeeper == aq_helper_area_caller(call))
		aq_helper_area->timekeeper = -1;
	aq_helper_area_dispatch();
	aq_latch_free(&aq_helper_area->latch);
	aq_helper_area_discard(request);
}

/* Called when the session's call has ended, or its answer is not needed. */
void
aq_helper_pool_leave(void)
{
	aq_claim_end(leave, aq_helper_area_own_call());
	leave(aq_helper_area_own_call(), 0);
}

static void
refuse_stuck(int pid)
{
	ereport(ERROR,
			aq_error(AQ_ERR_WORKER_MISSING, "a call with immediate visibility of this role cannot be interrupted"),
			errdetail("Process %d was to end because the call was cancelled, and still runs it.", pid),
			errhint("Wait until the function that it executes has returned."));
}

/*
 * Enters the line with a request; the session's place is a claim, for which it
 * has reserved room, until aq_helper_pool_leave(), which frees the request.
 */
void
aq_helper_pool_join(const AqHelperKey *key, dsa_pointer request)
{
	Call	   *call = aq_helper_area_own_call();
	int			stuck;

	aq_latch_get(&aq_helper_area->latch, AQ_EXCLUSIVE, AQ_LOC_HELPER);
	stuck = aq_helper_area_stuck(key->login);
	if (stuck != 0)
	{
		aq_latch_free(&aq_helper_area->latch);
		aq_helper_area_discard(request);
		refuse_stuck(stuck);
	}
	call->key = *key;
	call->request = request;
	aq_helper_area_stand_in_line(call, own_helper != NULL);
	if (own_helper != NULL)
		own_helper->blocked = true;
	aq_claim_enter(leave, call, 0);
	aq_latch_free(&aq_helper_area->latch);
}

/*
 * How long the session in line sleeps, in microseconds; -1: until it is woken.
 */
static int64
sleep_time(const Call *call)
{
	if (aq_helper_area->timekeeper != aq_helper_area_caller(call) || aq_helper_area->look_at == 0)
		return -1;
	return Max(aq_helper_area->look_at - aq_clock_us(), 0);
}

static void
refuse_blocked(void)
{
	aq_helper_pool_leave();
	ereport(ERROR,
			aq_error(AQ_ERR_WORKER_MISSING, "all helpers for immediate visibility wait for another one"),
			errdetail("A call with immediate visibility has made another one."),
			errhint("Raise \"pgaq.immediate_helpers\" (now %d).", aq_parameters_immediate_helpers));
}

/*
 * Serves the line; returns true if the session is no longer in line.  The
 * caller holds the latch.
 */
static bool
look_at_line(Call *call)
{
	if (aq_helper_area->timekeeper == aq_helper_area_caller(call))
		aq_helper_area->look_at = 0;
	aq_helper_area_dispatch();
	return call->state != AQ_CALL_IN_LINE;
}

/*
 * Waits in line.  Returns true if the session has got a new helper, whose
 * process it must start.
 */
bool
aq_helper_pool_wait(int *number, uint32 *serial)
{
	Call	   *call = aq_helper_area_own_call();

	for (;;)
	{
		bool		over,
					stuck;
		bool		start = false;
		int			used,
					waiting,
					barred;
		int64		time;

		if (own_state(call) != AQ_CALL_IN_LINE && !call->starts)
			return false;
		aq_latch_get(&aq_helper_area->latch, AQ_EXCLUSIVE, AQ_LOC_HELPER);
		over = look_at_line(call);
		if (call->state == AQ_CALL_GRANTED)
		{
			*number = call->helper;
			*serial = aq_helper_area->helpers[call->helper].serial;
			start = call->starts;
		}
		stuck = !over && own_helper != NULL && aq_helper_area_all_blocked();
		barred = over ? 0 : aq_helper_area_stuck(call->key.login);
		used = aq_helper_area->used;
		waiting = aq_helper_area->waiting;
		time = sleep_time(call);
		aq_latch_free(&aq_helper_area->latch);
		if (over)
			return start;
		if (barred != 0)
		{
			aq_helper_pool_leave();
			refuse_stuck(barred);
		}
		if (stuck)
			refuse_blocked();
		(void) aq_event_sleep(AQ_EVENT_HELPER_WANTED, used, waiting, 0, time);
	}
}

/* The process of the session's new helper was registered. */
void
aq_helper_pool_registered(void)
{
	aq_latch_get(&aq_helper_area->latch, AQ_EXCLUSIVE, AQ_LOC_HELPER);
	aq_helper_area->helpers[aq_helper_area_own_call()->helper].registered = true;
	aq_helper_area->failures = 0;
	aq_helper_area->retry_at = 0;
	aq_latch_free(&aq_helper_area->latch);
	aq_room_got();
}

/*
 * The process of the session's new helper could not be registered: frees the
 * entry, and makes the session the first in line again.  Returns the number of
 * such failures in a row while there was no helper at all.
 */
int
aq_helper_pool_not_registered(void)
{
	Call	   *call = aq_helper_area_own_call();
	int			failures;

	aq_latch_get(&aq_helper_area->latch, AQ_EXCLUSIVE, AQ_LOC_HELPER);
	failures = ++aq_helper_area->failures;
	aq_helper_area->retry_at = aq_clock_us() + Min(FIRST_PAUSE << Min(failures - 1, 16), LAST_PAUSE);
	aq_helper_area_free(&aq_helper_area->helpers[call->helper]);
	if (aq_helper_area->used > 0)
		failures = 0;
	(void) aq_helper_area_give_place();
	aq_helper_area_stand_in_line(call, true);
	aq_latch_free(&aq_helper_area->latch);
	aq_room_ask();
	return failures;
}

/*
 * What has become of the session's call.  *connected: of one that is lost, its
 * helper had connected; *pid: the helper's process, 0: it has not started yet.
 */
AqCallState
aq_helper_pool_state(bool *connected, int *pid)
{
	Call	   *call = aq_helper_area_own_call();
	AqCallState state = own_state(call);

	*connected = call->connected;
	*pid = call->pid;
	return state;
}

/* The process of the session's new helper has ended before it connected. */
void
aq_helper_pool_never_came(void)
{
	Call	   *call = aq_helper_area_own_call();

	aq_latch_get(&aq_helper_area->latch, AQ_EXCLUSIVE, AQ_LOC_HELPER);
	if (has_helper(call) && aq_helper_area->helpers[call->helper].pid == 0)
	{
		aq_helper_area_free(&aq_helper_area->helpers[call->helper]);
		call->state = AQ_CALL_LOST;
		call->connected = false;
	}
	aq_latch_free(&aq_helper_area->latch);
}

/* Cancels the session's call: a helper that has begun still answers, another one does not begin. */
void
aq_helper_pool_cancel(void)
{
	Call	   *call = aq_helper_area_own_call();

	aq_latch_get(&aq_helper_area->latch, AQ_EXCLUSIVE, AQ_LOC_HELPER);
	if (has_helper(call))
	{
		Helper	   *helper = &aq_helper_area->helpers[call->helper];

		if (helper->begun)
			cancel_call(helper);
		else
		{
			leave_helper(helper);
			call->state = AQ_CALL_LOST;
			call->connected = true;
			aq_helper_area_dispatch();
		}
	}
	aq_latch_free(&aq_helper_area->latch);
}

/* --- the helper --------------------------------------------------------------------------------- */

/* Is this process a helper? */
bool
aq_helper_pool_is_helper(void)
{
	return own_helper != NULL;
}

/* The process enters the pool; returns false if it is no longer needed. */
bool
aq_helper_pool_enter(int number, uint32 serial, AqHelperKey *key)
{
	Helper	   *helper = &aq_helper_area->helpers[number];
	bool		wanted;

	aq_latch_get(&aq_helper_area->latch, AQ_EXCLUSIVE, AQ_LOC_HELPER);
	wanted = helper->state == HELPER_STARTING && helper->serial == serial;
	if (wanted)
	{
		helper->pid = MyProcPid;
		helper->proc = MyProc;
		*key = helper->key;
		if (helper->caller != NO_CALLER)
			aq_helper_area_calls[helper->caller].pid = MyProcPid;
		own_helper = helper;
		own_serial = serial;
	}
	aq_latch_free(&aq_helper_area->latch);
	return wanted;
}

void
aq_helper_pool_connected(void)
{
	aq_latch_get(&aq_helper_area->latch, AQ_EXCLUSIVE, AQ_LOC_HELPER);
	own_helper->connected = true;
	if (own_helper->caller != NO_CALLER)
		own_helper->state = HELPER_BUSY;
	else
	{
		aq_helper_area_make_idle(own_helper);
		aq_helper_area_dispatch();
	}
	aq_latch_free(&aq_helper_area->latch);
}

/* The helper is ready.  Waits for the next request; returns false if the helper must end. */
bool
aq_helper_pool_next(dsa_pointer *request)
{
	for (;;)
	{
		int64		left = -1;
		HelperState state;
		bool		begins;

		aq_latch_get(&aq_helper_area->latch, AQ_EXCLUSIVE, AQ_LOC_HELPER);
		if (own_helper->state == HELPER_RESETTING)
		{
			aq_helper_area_make_idle(own_helper);
			aq_helper_area_dispatch();
		}
		if (own_helper->state == HELPER_IDLE)
		{
			left = own_helper->idle_since + aq_parameters_immediate_idle_timeout_ms * INT64CONST(1000) - aq_clock_us();
			if (left <= 0)
				own_helper->state = HELPER_ENDING;
		}
		state = own_helper->state;
		begins = state == HELPER_BUSY && own_helper->caller != NO_CALLER;
		if (begins)
		{
			*request = own_helper->request;
			own_helper->begun = true;
			/* a signal for an earlier call */
			QueryCancelPending = false;
		}
		aq_latch_free(&aq_helper_area->latch);
		if (begins)
			return true;
		if (state == HELPER_ENDING)
			return false;
		HOLD_CANCEL_INTERRUPTS();
		(void) aq_event_sleep(AQ_EVENT_HELPER_IDLE, 0, 0, 0, left);
		RESUME_CANCEL_INTERRUPTS();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}
	}
}

/* The answer is known: from now on, the caller cannot cancel the call.  A process that was given up ends. */
void
aq_helper_pool_answers(void)
{
	bool		stuck;
	dsa_pointer left = InvalidDsaPointer;

	aq_latch_get(&aq_helper_area->latch, AQ_EXCLUSIVE, AQ_LOC_HELPER);
	stuck = own_helper->state == HELPER_STUCK;
	if (!stuck)
	{
		if (own_helper->caller == NO_CALLER)
			left = own_helper->request;
		else
		{
			Call	   *call = &aq_helper_area_calls[own_helper->caller];

			aq_helper_area_set(call, AQ_CALL_ANSWERED);
			aq_helper_area_wake(call);
		}
		own_helper->state = HELPER_RESETTING;
		own_helper->caller = NO_CALLER;
		own_helper->begun = false;
	}
	aq_latch_free(&aq_helper_area->latch);
	if (stuck)
		proc_exit(1);
	aq_helper_area_discard(left);
}

/* Called at process exit. */
void
aq_helper_pool_exit(void)
{
	dsa_pointer left = InvalidDsaPointer;

	aq_latch_get(&aq_helper_area->latch, AQ_EXCLUSIVE, AQ_LOC_HELPER);
	if (own_helper->serial == own_serial && own_helper->pid == MyProcPid)
	{
		if (own_helper->caller != NO_CALLER)
		{
			Call	   *call = &aq_helper_area_calls[own_helper->caller];

			/* one that was told to end counts as connected */
			call->connected = own_helper->connected || ProcDiePending;
			aq_helper_area_set(call, AQ_CALL_LOST);
			aq_helper_area_wake(call);
		}
		else if (own_helper->begun)
			left = own_helper->request;
		aq_helper_area_free(own_helper);
		aq_helper_area_dispatch();
	}
	own_helper = NULL;
	aq_latch_free(&aq_helper_area->latch);
	aq_helper_area_discard(left);
}

/*
 * --- other users of the pool
 * -----------------------------------------------------------------
 */

/*
 * Ends the idle helpers in the database (InvalidOid: in any), and makes busy
 * ones end when they would become idle.
 */
static void
end_idle(Oid database)
{
	aq_session_attach();
	aq_latch_get(&aq_helper_area->latch, AQ_EXCLUSIVE, AQ_LOC_HELPER);
	for (int i = 0; i < aq_helper_area->high; i++)
	{
		Helper	   *helper = &aq_helper_area->helpers[i];

		if (helper->state == HELPER_FREE || (OidIsValid(database) && helper->key.database != database))
			continue;
		if (helper->state == HELPER_IDLE)
			aq_helper_area_end(helper);
		else
			helper->ends = true;
	}
	aq_latch_free(&aq_helper_area->latch);
}

/*
 * Called at the end of the transaction, because helpers have the privileges and
 * settings that roles had when they started.
 */
static void
roles_changed(void)
{
	end_idle(InvalidOid);
}

/*
 * Called when another background worker of pgaq finds no free slot: ends a
 * helper, now or when it becomes idle.
 */
static void
make_room(void)
{
	aq_latch_get(&aq_helper_area->latch, AQ_EXCLUSIVE, AQ_LOC_HELPER);
	if (aq_helper_area->used > 0)
	{
		aq_helper_area->yield = !aq_helper_area_give_place();
		aq_helper_area->retry_at = aq_clock_us() + LAST_PAUSE;
	}
	aq_latch_free(&aq_helper_area->latch);
}

void
aq_helper_pool_register(void)
{
	aq_jobs_on_database_wanted(end_idle);
	aq_jobs_on_place_wanted(make_room);
	aq_utility_on_roles_changed(roles_changed);
}

/*
 * For aq.check(): checks that callers and helpers refer to each other, and
 * that calls belong to transactions.
 */
void
aq_helper_pool_check(AqFindings *findings)
{
	int			in_line = 0,
				standing = 0;

	aq_latch_get(&aq_helper_area->latch, AQ_SHARED, AQ_LOC_VIEW);
	in_line = aq_helper_area->waiting;
	for (int i = 0; i < aq_session_slots(); i++)
		if (aq_helper_area_calls[i].state == AQ_CALL_IN_LINE)
			standing++;
	aq_latch_free(&aq_helper_area->latch);
	aq_finding_compare(findings, "helpers", "sessions in line", standing, in_line);
	for (int i = 0; i < max_worker_processes; i++)
	{
		const char *place = psprintf("helper %d", i + 1);
		Helper		helper;
		bool		known;

		aq_latch_get(&aq_helper_area->latch, AQ_SHARED, AQ_LOC_VIEW);
		helper = aq_helper_area->helpers[i];
		known = helper.caller == NO_CALLER || helper.state == HELPER_FREE ||
			(aq_helper_area_calls[helper.caller].state == AQ_CALL_GRANTED && aq_helper_area_calls[helper.caller].helper == i);
		aq_latch_free(&aq_helper_area->latch);
		if (helper.state == HELPER_FREE)
			continue;
		if (!known)
			aq_finding_add(findings, place, "a caller that has another helper", helper.caller + 1, 0, NULL);
		if (helper.caller != NO_CALLER && !aq_session_in_transaction(helper.caller))
			aq_finding_add(findings, place, "a caller without a transaction", helper.caller + 1, 0, NULL);
		if (helper.pid != 0 && kill(helper.pid, 0) != 0)
			aq_finding_add(findings, place, "a process that does not run", helper.pid, 0, NULL);
	}
}
