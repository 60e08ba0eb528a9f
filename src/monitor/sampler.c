/*-------------------------------------------------------------------------
 *
 * sampler.c
 *	  The background worker that samples all sessions every pgaq.ash_interval
 *	  and records the active ones in the ring.
 *
 * It is not connected to a database, takes only the locks that reading the
 * activity takes, and records only numbers; names are looked up when the ring
 * is read.  After an error it exits, and the postmaster restarts it one second
 * later; the ring is not lost.
 *
 * The profile of the server's own waits, from which reports estimate them,
 * needs more samples where an interval is short.  The length of an interval is
 * not known at its begin, so for a minute after each snapshot and each mark of a
 * report the profile is also sampled between two samples of the ring: ten times
 * as often, but not more often than every 20 ms.  Each sample counts in the
 * profile for the time since the one before.
 *
 * If a sample finds a session in a wait of pgaq, the wait is watched: the
 * session writes its duration into its slot when it ends, and a later sample
 * adds the duration to the row.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "monitor/ash.h"

#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "tcop/tcopprot.h"
#include "utils/backend_status.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

PGDLLEXPORT void aq_sampler_main(Datum arg);

#define KEEP_SOONEST ((int64) 100000)
#define CLOSELY_TIMES 10
#define CLOSEST ((int64) 20000)

int			aq_sampler_interval_ms = 1000;

/* the row that shows a session's wait, until the wait's duration is known */
typedef struct Watch
{
	uint64		row;			/* 0: none */
	uint64		sequence;
	int			pid;
} Watch;

static Watch *watches;			/* by session */

void
aq_sampler_define(void)
{
	DefineCustomIntVariable("pgaq.ash_size",
							"Shared memory for the history of active sessions.",
							"An active session takes some 350 bytes in each sample. 0 turns off the history and the sampler.",
							&aq_ring_size_kb,
							16384, 0, INT_MAX / 2,
							PGC_POSTMASTER, GUC_UNIT_KB,
							NULL, NULL, NULL);
	DefineCustomIntVariable("pgaq.ash_interval",
							"Interval at which the sampler examines all sessions.",
							"0 turns sampling off.",
							&aq_sampler_interval_ms,
							1000, 0, 3600000,
							PGC_SIGHUP, GUC_UNIT_MS,
							NULL, NULL, NULL);
	if (aq_ring_size_kb > 0)
		aq_process_register("pgaq sampler", "aq_sampler_main", true);
}

/*
 * The time within which at most half of the ring is overwritten, even if all
 * sessions are active.
 */
int64
aq_sampler_keep_within(void)
{
	int64		rounds = aq_ring_rows() / 2 / aq_session_slots();

	if (aq_sampler_interval_ms == 0)
		return AQ_KEEP_EVERY;
	return Max(KEEP_SOONEST, Min(AQ_KEEP_EVERY, rounds * aq_sampler_interval_ms * 1000));
}

/* --- a sample -------------------------------------------------------------------------- */

/*
 * Records the duration of the wait that an earlier sample found, if it has
 * ended.
 */
static void
settle_watch(int session)
{
	Watch	   *watch = &watches[session];
	int64		time;

	if (watch->row == 0)
		return;
	if (aq_session_pid(session) == watch->pid)
	{
		AqWaitNow	now;

		time = aq_event_watched(session, watch->sequence);
		if (time < 0)
		{
			aq_event_read(session, &now);
			if (now.sequence == watch->sequence && now.waiting)
				return;			/* it has not ended yet */
			if (now.sequence == watch->sequence)
				time = now.end - now.start; /* it ended before it was watched */
		}
		if (time >= 0)
			aq_ring_set_time_waited(watch->row, time);
	}
	watch->row = 0;
}

static void
note_session(const AqProcess *process, int64 sample_id, TimestampTz time)
{
	AqSample	row;
	bool		waits = process->now.waiting;

	memset(&row, 0, sizeof(row));
	row.sample_id = sample_id;
	row.time = time;
	row.session = process->number;
	row.pid = process->pid;
	row.database = process->database;
	row.user = process->user;
	row.query_id = process->query_id;
	row.wait_info = process->wait_info;
	row.event = waits ? process->now.event : -1;
	row.operation = process->operation;
	row.queue = process->queue;
	row.background = process->background;
	row.blocker = process->blocker;
	row.blocker_pid = process->blocker < 0 ? 0 : ProcGlobal->allProcs[process->blocker].pid;
	row.wait_us = row.time_waited = -1;
	if (waits)
	{
		row.sequence = process->now.sequence;
		row.p[0] = process->now.p1;
		row.p[1] = process->now.p2;
		row.p[2] = process->now.p3;
		row.wait_us = Max(aq_clock_us() - process->now.start, 0);
	}
	strlcpy(row.program, process->program && process->program[0] ? process->program : GetBackendTypeDesc(process->type), AQ_WORD);
	strlcpy(row.module, process->said.module, AQ_WORD);
	strlcpy(row.action, process->said.action, AQ_WORD);
	aq_ring_add(&row);
	/* restarts a worker that has left, to save the rows */
	if (aq_ring_is_kept(sample_id) && OidIsValid(row.database))
		aq_jobs_post_away(row.database, time + aq_sampler_keep_within());

	if (waits)
	{
		Watch	   *watch = &watches[process->number];

		if (watch->sequence != row.sequence || watch->pid != row.pid)
			aq_event_watch(process->number, row.sequence);
		watch->row = row.number;
		watch->sequence = row.sequence;
		watch->pid = row.pid;
	}
}

/* stands_for: microseconds since the sample before.  ring: not only the profile. */
static void
take_sample(bool ring, int64 stands_for)
{
	int64		began = aq_clock_us();
	TimestampTz time = GetCurrentTimestamp();
	int64		sample_id = ring ? aq_ring_begin_sample() : 0;
	AqProcess  *processes;
	int			n;

	pgstat_clear_backend_activity_snapshot();
	for (int i = 0; ring && i < aq_session_slots(); i++)
		settle_watch(i);
	n = aq_activity_read(&processes);
	for (int i = 0; i < n; i++)
	{
		const AqProcess *process = &processes[i];

		if (process->pid == MyProcPid)
			continue;
		if (ring && process->active)
			note_session(process, sample_id, time);
		/* a statement in pg_sleep() is idle, but its time is part of DB time */
		if (!process->now.waiting && (process->active || (process->executing && !process->background)))
			aq_ring_profile_add(process->wait_info, process->background, process->attached && !process->background,
								stands_for);
	}
	if (ring)
	{
		aq_point("sampled");
		aq_ring_end_sample(aq_clock_us() - began);
	}
	else
		aq_ring_end_round(aq_clock_us() - began);
}

/* The time between two samples of the profile, in microseconds. */
static int64
step(int64 interval, int64 now)
{
	if (now >= aq_ring_closely_until())
		return interval;
	return Min(interval, Max(interval / CLOSELY_TIMES, CLOSEST));
}

void
aq_sampler_main(Datum arg)
{
	MemoryContext context;
	int64		next;			/* sample of the ring */
	int64		last;			/* when the last sample, of the ring or not, was due */

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);
	aq_session_attach();
	aq_ring_attach();
	watches = MemoryContextAllocZero(TopMemoryContext, aq_session_slots() * sizeof(Watch));
	context = AllocSetContextCreate(TopMemoryContext, "pgaq sampler", ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(context);

	next = aq_clock_us();
	last = next - (int64) aq_sampler_interval_ms * 1000;
	while (!ShutdownRequestPending)
	{
		int64		interval = (int64) aq_sampler_interval_ms * 1000;
		int64		now = aq_clock_us();
		int64		due = Min(next, last + step(interval, now));

		if (interval == 0)
			aq_event_sleep(AQ_EVENT_SAMPLER_IDLE, 0, 0, 0, -1);
		else if (now < due)
			aq_event_sleep(AQ_EVENT_SAMPLER_IDLE, interval / 1000, 0, 0, Min(due - now, interval));
		else
		{
			take_sample(now >= next, due - last);
			MemoryContextReset(context);
			/* missed samples are not made up for */
			if (now >= next)
				next = Max(next + interval, now);
			last = Max(due, now - step(interval, now));
		}
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
			last = aq_clock_us();
			next = last + (int64) aq_sampler_interval_ms * 1000;
		}
	}
	/* the postmaster restarts us, unless the server shuts down */
	proc_exit(1);
}
