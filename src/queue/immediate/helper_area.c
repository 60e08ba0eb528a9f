/*-------------------------------------------------------------------------
 *
 * helper_area.c
 *	  The pool of helpers for immediate visibility, and the line of sessions
 *	  that wait for one.
 *
 * A helper is a background worker that executes calls of other sessions, one
 * at a time, each in a separate transaction.  It works in one database and for
 * one combination of users, its key.  There are at most pgaq.immediate_helpers
 * in the server.
 *
 * A session that needs a helper enters a waiting line.  From the front of the
 * line to its end, a session gets
 *
 *	- an idle helper with its key,
 *	- or one with its key that is about to become idle, for which it waits,
 *	- or a new one, if the limit allows it: the session starts the process,
 *	- or the slot of an idle helper with another key, which ends.  A helper
 *	  works at least for TURN, so that sessions with many keys do not spend
 *	  their time starting processes.
 *
 * A process that makes a helper or slot available assigns it to sessions in
 * line (dispatch), under the latch.  A session in line only sleeps; the first
 * one also checks again when a turn ends or a process can be started again.
 *
 * States of a helper:
 *
 *	| state | caller | next |
 *	| STARTING | the session that starts it, or none | the process connects: BUSY or IDLE |
 *	| IDLE | none | BUSY, or ENDING after pgaq.immediate_idle_timeout or when its slot is needed |
 *	| BUSY | a session, or none | after an answer to a request: RESETTING; the caller leaves before the helper begins: IDLE; its call cannot be interrupted: STUCK |
 *	| RESETTING | none | the state left by the call is removed: IDLE |
 *	| ENDING | none | the process ends: FREE |
 *	| STUCK | none | the process ends: FREE |
 *
 * A session enters the line with its request, so that a helper that becomes idle
 * begins the next one at once.
 *
 * A caller's place in line, or its helper, is a claim, so that the helper is
 * released or the call cancelled whenever the caller ends.  If a helper ends,
 * aq_helper_pool_exit() notifies the caller.  The session that starts a
 * process notices if the process does not start; if that session has ended,
 * the entry is freed after START_PATIENCE.
 *
 * A call can execute code that cannot be interrupted.  While sessions are in line, a
 * helper that is BUSY when GRACE has passed since its call was cancelled is
 * terminated, and one more GRACE later it is STUCK: it no longer counts, and
 * its login role gets no helper until it has ended: its sessions in line are woken,
 * and refused.  As each keeps one of max_worker_processes, a quarter of these can be
 * STUCK.
 *
 * A helper's call may need another helper.  Such callers enter at the front of
 * the line; if all helpers would wait for another one, the last one gets an
 * error.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/immediate/helper_area.h"

#include <signal.h>

#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "utils/memutils.h"

/* a helper is not replaced by one with another key before this time */
#define TURN ((int64) 50000)

/* how long a helper may go on after its call was cancelled, and after SIGTERM */
#define GRACE ((int64) 1000000)

/* how long a registered process may take to start */
#define START_PATIENCE ((int64) 10000000)

/* shared memory for requests and answers; if it is full, it gets dynamic segments */
#define MEMORY_BYTES ((Size) 256 * 1024)

AqHelperPool *aq_helper_area;
Call	   *aq_helper_area_calls;

/* --- shared memory --------------------------------------------------------------------- */

static Size
area_size(void)
{
	return MAXALIGN(add_size(offsetof(AqHelperPool, helpers), mul_size(max_worker_processes, sizeof(Helper))));
}

static Size
calls_size(void)
{
	return MAXALIGN(mul_size(aq_session_slots(), sizeof(Call)));
}

static void *
memory_place(void)
{
	return (char *) aq_helper_area + area_size() + calls_size();
}

Size
aq_helper_area_size(void)
{
	return add_size(add_size(area_size(), calls_size()), MEMORY_BYTES);
}

/* As the statistics of the server do it. */
static void
init_memory(void)
{
	dsa_area   *area = dsa_create_in_place(memory_place(), MEMORY_BYTES, LWTRANCHE_FIRST_USER_DEFINED - 1, NULL);

	dsa_pin(area);
	dsa_detach(area);
}

void
aq_helper_area_init(void *place, bool found)
{
	aq_helper_area = place;
	aq_helper_area_calls = (Call *) ((char *) place + area_size());
	if (found)
		return;
	memset(place, 0, aq_helper_area_size());
	aq_latch_init(&aq_helper_area->latch, AQ_LATCH_HELPERS, 0);
	dlist_init(&aq_helper_area->line);
	aq_helper_area->timekeeper = -1;
	init_memory();
}

/* The memory for requests and answers. */
dsa_area *
aq_helper_area_memory(void)
{
	static dsa_area *memory;
	MemoryContext old;

	if (memory != NULL)
		return memory;
	old = MemoryContextSwitchTo(TopMemoryContext);
	memory = dsa_attach_in_place(memory_place(), NULL);
	dsa_pin_mapping(memory);
	on_shmem_exit(dsa_on_shmem_exit_release_in_place, PointerGetDatum(memory_place()));
	MemoryContextSwitchTo(old);
	return memory;
}

/* Frees a request, and its answer. */
void
aq_helper_area_discard(dsa_pointer request)
{
	dsa_area   *memory;
	AqRequest  *it;

	if (!DsaPointerIsValid(request))
		return;
	memory = aq_helper_area_memory();
	it = dsa_get_address(memory, request);
	if (DsaPointerIsValid(it->answer))
		dsa_free(memory, it->answer);
	dsa_free(memory, request);
}

Call *
aq_helper_area_own_call(void)
{
	return &aq_helper_area_calls[aq_session_number()];
}

int
aq_helper_area_caller(const Call *call)
{
	return (int) (call - aq_helper_area_calls);
}

void
aq_helper_area_wake(const Call *call)
{
	PGPROC	   *proc = aq_session_proc(aq_helper_area_caller(call));

	if (proc != NULL)
		SetLatch(&proc->procLatch);
}

void
aq_helper_area_set(Call *call, AqCallState state)
{
	pg_write_barrier();
	*(volatile AqCallState *) &call->state = state;
}

static bool
same_key(const AqHelperKey *a, const AqHelperKey *b)
{
	return a->database == b->database && a->login == b->login && a->session == b->session && a->current == b->current;
}

static int
limit(void)
{
	return Min(aq_parameters_immediate_helpers, max_worker_processes - aq_helper_area->stuck);
}

/*
 * --- assigning helpers to sessions; the caller holds the latch
 * -----------------------------------------
 */

void
aq_helper_area_free(Helper *helper)
{
	Assert(helper->state != HELPER_FREE);
	if (helper->state == HELPER_STUCK)
		aq_helper_area->stuck--;
	else
		aq_helper_area->used--;
	helper->state = HELPER_FREE;
	helper->serial++;
	helper->pid = 0;
	helper->proc = NULL;
	helper->caller = NO_CALLER;
	helper->begun = false;
}

void
aq_helper_area_end(Helper *helper)
{
	helper->state = HELPER_ENDING;
	SetLatch(&helper->proc->procLatch);
}

void
aq_helper_area_make_idle(Helper *helper)
{
	helper->caller = NO_CALLER;
	helper->begun = false;
	helper->idle_since = aq_clock_us();
	helper->state = HELPER_IDLE;
	if (helper->ends || aq_helper_area->yield || aq_helper_area->used > limit())
	{
		aq_helper_area->yield = false;
		aq_helper_area_end(helper);
	}
}

static void
grant(Call *call, Helper *helper, HelperState state)
{
	dlist_delete(&call->node);
	aq_helper_area->waiting--;
	helper->state = state;
	helper->caller = aq_helper_area_caller(call);
	helper->request = call->request;
	helper->begun = helper->cancelled = helper->terminated = helper->blocked = false;
	if (aq_helper_area->timekeeper == aq_helper_area_caller(call))
		aq_helper_area->timekeeper = -1;
	call->helper = (int) (helper - aq_helper_area->helpers);
	call->starts = state == HELPER_STARTING;
	call->pid = helper->pid;
	aq_helper_area_set(call, AQ_CALL_GRANTED);
	if (state == HELPER_BUSY)
		SetLatch(&helper->proc->procLatch);
	aq_helper_area_wake(call);
}

static Helper *
find_with_key(const AqHelperKey *key, HelperState state)
{
	for (int i = 0; i < aq_helper_area->high; i++)
	{
		Helper	   *helper = &aq_helper_area->helpers[i];

		if (helper->state == state && !helper->wanted && same_key(&helper->key, key) &&
			(state != HELPER_STARTING || helper->caller == NO_CALLER))
			return helper;
	}
	return NULL;
}

/* A busy or starting helper for which the session can wait. */
static Helper *
find_coming(const AqHelperKey *key)
{
	Helper	   *helper = find_with_key(key, HELPER_RESETTING);

	return helper != NULL ? helper : find_with_key(key, HELPER_STARTING);
}

/* An entry for a new helper; NULL: no more are possible now. */
static Helper *
new_entry(int64 now)
{
	Helper	   *helper = aq_helper_area->helpers;

	if (aq_helper_area->used >= limit() || now < aq_helper_area->retry_at)
		return NULL;
	while (helper->state != HELPER_FREE)
		helper++;
	Assert(helper < aq_helper_area->helpers + max_worker_processes);
	aq_helper_area->high = Max(aq_helper_area->high, (int) (helper - aq_helper_area->helpers) + 1);
	aq_helper_area->used++;
	helper->serial++;
	helper->started = now;
	helper->registered = helper->connected = helper->ends = false;
	return helper;
}

/* A helper that is ending, whose slot will soon be free. */
static Helper *
find_ending(void)
{
	for (int i = 0; i < aq_helper_area->high; i++)
		if (aq_helper_area->helpers[i].state == HELPER_ENDING && !aq_helper_area->helpers[i].wanted)
			return &aq_helper_area->helpers[i];
	return NULL;
}

/*
 * The helper that has been idle for the longest time, among those that have
 * had their turn; otherwise sets the time of the next check.
 */
static Helper *
find_replaceable(int64 now, int64 *again)
{
	Helper	   *found = NULL;

	for (int i = 0; i < aq_helper_area->high; i++)
	{
		Helper	   *helper = &aq_helper_area->helpers[i];

		if (helper->state != HELPER_IDLE)
			continue;
		if (now - helper->started < TURN)
			aq_clock_sooner(again, helper->started + TURN);
		else if (found == NULL || helper->idle_since < found->idle_since)
			found = helper;
	}
	return found;
}

/*
 * Frees entries of processes that were registered for a session that has
 * ended, and have not started.
 */
static void
forget_missing(int64 now, int64 *again)
{
	for (int i = 0; i < aq_helper_area->high; i++)
	{
		Helper	   *helper = &aq_helper_area->helpers[i];

		helper->wanted = false;
		if (helper->state != HELPER_STARTING || helper->caller != NO_CALLER || helper->pid != 0)
			continue;
		if (now - helper->started < START_PATIENCE)
			aq_clock_sooner(again, helper->started + START_PATIENCE);
		else
			aq_helper_area_free(helper);
	}
}

/* Finds a helper for a session in line, now or later. */
static void
serve_call(Call *call, int64 now, int64 *again)
{
	Helper	   *helper;

	if (aq_helper_area_stuck(call->key.login) != 0)
		return;
	if ((helper = find_with_key(&call->key, HELPER_IDLE)) != NULL)
		grant(call, helper, HELPER_BUSY);
	else if ((helper = find_coming(&call->key)) != NULL)
		helper->wanted = true;
	else if ((helper = new_entry(now)) != NULL)
	{
		helper->key = call->key;
		grant(call, helper, HELPER_STARTING);
	}
	else if (aq_helper_area->used < limit())
		aq_clock_sooner(again, aq_helper_area->retry_at);
	else if ((helper = find_ending()) != NULL)
		helper->wanted = true;
	else if ((helper = find_replaceable(now, again)) != NULL)
	{
		aq_helper_area_end(helper);
		helper->wanted = true;
	}
}

/* They find that they are refused: see aq_helper_pool_wait. */
static void
wake_all_of(Oid login)
{
	dlist_iter	iter;

	dlist_foreach(iter, &aq_helper_area->line)
	{
		Call	   *call = dlist_container(Call, node, iter.cur);

		if (call->key.login == login)
			aq_helper_area_wake(call);
	}
}

/* A helper continues although its call was cancelled long ago. */
static void
press(Helper *helper)
{
	if (!helper->terminated)
	{
		helper->terminated = true;
		kill(helper->pid, SIGTERM);
	}
	else if (aq_helper_area->stuck < Max(max_worker_processes / 4, 1))
	{
		helper->state = HELPER_STUCK;
		aq_helper_area->used--;
		aq_helper_area->stuck++;
		wake_all_of(helper->key.login);
	}
}

static void
press_cancelled(int64 now, int64 *again)
{
	for (int i = 0; i < aq_helper_area->high; i++)
	{
		Helper	   *helper = &aq_helper_area->helpers[i];

		if (helper->state != HELPER_BUSY || !helper->cancelled)
			continue;
		if (now >= helper->told + GRACE)
		{
			press(helper);
			helper->told = now;
		}
		if (helper->state == HELPER_BUSY)
			aq_clock_sooner(again, helper->told + GRACE);
	}
}

/* Can any session in line be served?  Not while all helpers are busy. */
static bool
has_something(void)
{
	if (aq_helper_area->used < limit())
		return true;
	for (int i = 0; i < aq_helper_area->high; i++)
	{
		Helper	   *helper = &aq_helper_area->helpers[i];

		if (helper->state == HELPER_IDLE || (helper->state == HELPER_STARTING && helper->caller == NO_CALLER))
			return true;
	}
	return false;
}

/* Makes the first session in line check again at this time. */
static void
tell_first(int64 again)
{
	Call	   *first;
	bool		knows;

	if (again == 0 || dlist_is_empty(&aq_helper_area->line))
		return;
	first = dlist_head_element(Call, node, &aq_helper_area->line);
	knows = aq_helper_area->timekeeper == aq_helper_area_caller(first) && aq_helper_area->look_at != 0 && aq_helper_area->look_at <= again;
	aq_helper_area->timekeeper = aq_helper_area_caller(first);
	aq_helper_area->look_at = again;
	if (!knows && first != aq_helper_area_own_call())
		aq_helper_area_wake(first);
}

/* Assigns available helpers and slots to the sessions in line. */
void
aq_helper_area_dispatch(void)
{
	dlist_mutable_iter iter;
	int64		now;
	int64		again = 0;

	if (aq_helper_area->waiting == 0)
		return;
	now = aq_clock_us();
	press_cancelled(now, &again);
	if (has_something())
	{
		forget_missing(now, &again);
		dlist_foreach_modify(iter, &aq_helper_area->line)
			serve_call(dlist_container(Call, node, iter.cur), now, &again);
	}
	tell_first(again);
}

/*
 * Ends the helper that has been idle longest, to free its slot for another
 * background worker; returns false if none is idle.
 */
bool
aq_helper_area_give_place(void)
{
	int64		unused = 0;
	Helper	   *helper = find_replaceable(PG_INT64_MAX, &unused);

	if (helper != NULL)
		aq_helper_area_end(helper);
	return helper != NULL;
}

void
aq_helper_area_stand_in_line(Call *call, bool at_front)
{
	call->state = AQ_CALL_IN_LINE;
	aq_helper_area->waiting++;
	if (at_front)
		dlist_push_head(&aq_helper_area->line, &call->node);
	else
		dlist_push_tail(&aq_helper_area->line, &call->node);
}

/* Is every helper waiting for another one? */
bool
aq_helper_area_all_blocked(void)
{
	for (int i = 0; i < aq_helper_area->high; i++)
	{
		Helper	   *helper = &aq_helper_area->helpers[i];

		if (helper->state != HELPER_FREE && helper->state != HELPER_STUCK && (helper->state != HELPER_BUSY || !helper->blocked))
			return false;
	}
	return aq_helper_area->used >= limit();
}

/* The process of a stuck helper with this login role; 0: there is none. */
int
aq_helper_area_stuck(Oid login)
{
	for (int i = 0; i < aq_helper_area->high && aq_helper_area->stuck > 0; i++)
		if (aq_helper_area->helpers[i].state == HELPER_STUCK && aq_helper_area->helpers[i].key.login == login)
			return aq_helper_area->helpers[i].pid;
	return 0;
}
