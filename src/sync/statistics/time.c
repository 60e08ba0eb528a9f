/*-------------------------------------------------------------------------
 *
 * time.c
 *	  The time model: DB time, and the time of queue operations by kind.
 *
 * DB time is the time of a session's statements.  It is booked at the end of a
 * queue operation, of a query that the client sent, and of the transaction;
 * each booking adds the time since the statement began or since the last
 * booking, whichever is later.  So no time is counted twice, and the time
 * between statements, when the session waits for the client, is not counted.
 * Idle waits are subtracted.
 *
 * The time of the outermost queue operation is booked under its kind when it
 * ends.  Reading the CPU time is a system call, ten times as expensive as
 * reading the clock: it is measured for each of the first operations of a
 * kind, then for one in CPU_SAMPLE, which counts for that many.  The CPU time
 * of the whole process is exact and costs nothing, see aq_stat_read().
 *
 * An error leaves an operation open.  Each operation has the nesting level of
 * its transaction, so the end of that (sub)transaction closes it.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "executor/executor.h"
#include "sync/statistics/stat_int.h"
#include "tcop/dest.h"
#include "utils/guc.h"
#include "utils/timestamp.h"

const char *const aq_time_kind_names[AQ_TIME_COUNT] = {
#define X(id, name, text) name,
#include "sync/statistics/time_list.h"
#undef X
};

#define CPU_EXACT 16
#define CPU_SAMPLE 64

static bool timed_statistics = AQ_ACCOUNTING;	/* pgaq.timed_statistics */

static AqStatSlot *own;			/* NULL: the session is not attached */

/* --- DB time --- */
static TimestampTz statement;	/* start of the statement that is being booked */
static int64 booked_until;		/* aq_clock_ns of the last booking */
static uint64 booked_idle;		/* aq_event_idle at the last booking */
static uint64 booked_io[AQ_IO_COUNT];	/* aq_compat_io_times at the last booking */

/* --- the outermost operation --- */
static int	depth;				/* open operations */
static int	levels[8];			/* their transactions' nesting levels; deeper ones count as the last */
static AqTimeKind kind;
static int64 started;
static uint64 started_idle;
static int64 started_cpu;
static bool timing;				/* the operation is measured */
static int	weight;				/* of its CPU time; 0: CPU time is not measured */
static uint32 calls[AQ_TIME_COUNT];

static AqTimeOnQueue on_queue;

static ExecutorRun_hook_type previous_hook;

void
aq_time_session_start(void)
{
	own = aq_stat_slot(aq_session_own_number);
	own->op = -1;
	own->queue = 0;
	own->cpu_before = aq_clock_cpu_ns();
	booked_until = aq_clock_ns();
	statement = GetCurrentStatementStartTimestamp();
	booked_idle = aq_event_idle;
	aq_compat_io_times(booked_io);
	depth = 0;
	memset(calls, 0, sizeof(calls));
}

/*
 * The start of the statement by the monotonic clock.  The two clocks are
 * compared only once a second, to save a clock reading in each statement.
 */
static int64
statement_start(int64 now)
{
	static int64 offset;
	static int64 compared;

	if (compared == 0 || now - compared > INT64CONST(1000000000))
	{
		offset = GetCurrentTimestamp() * 1000 - now;
		compared = now;
	}
	return statement * 1000 - offset;
}

/*
 * The time of the last booking, or the start of the statement if that is
 * later.
 */
static int64
begin_of_share(int64 now)
{
	if (statement != GetCurrentStatementStartTimestamp())
	{
		statement = GetCurrentStatementStartTimestamp();
		booked_until = Max(booked_until, Min(statement_start(now), now));
	}
	return booked_until;
}

/*
 * Adds the I/O that PostgreSQL has timed since the last booking.  A time that
 * has become smaller began again at 0.  Called also when a query begins, so
 * that such a new beginning is noticed before the time has grown.
 */
static void
book_io(void)
{
	uint64		times[AQ_IO_COUNT];

	if (own->background || !timed_statistics)
		return;
	aq_compat_io_times(times);
	for (int io = 0; io < AQ_IO_COUNT; io++)
		own->times.io[io] += times[io] - (times[io] < booked_io[io] ? 0 : booked_io[io]);
	memcpy(booked_io, times, sizeof(booked_io));
}

/* Adds the time since the last booking to DB time. */
static void
book(int64 now)
{
	if (own->background || !timed_statistics)
		return;
	if (now > begin_of_share(now))
	{
		uint64		passed = now - booked_until;

		own->times.db_time += passed - Min(passed, aq_event_idle - booked_idle);
		booked_until = now;
	}
	booked_idle = aq_event_idle;
	book_io();
}

/* --- operations ---------------------------------------------------------------------- */

AqTimed
aq_time_enter(AqTimeKind which)
{
	AqTimed		timed = {AQ_ACCOUNTING};
	uint32		call;

	if (!AQ_ACCOUNTING)
		return timed;
	aq_session_attach();
	levels[Min(depth, lengthof(levels) - 1)] = GetCurrentTransactionNestLevel();
	if (depth++ > 0)
		return timed;

	kind = which;
	own->queue = 0;
	own->op = kind;
	timing = timed_statistics;
	if (timing)
	{
		call = calls[kind]++;
		weight = call < CPU_EXACT ? 1 : call % CPU_SAMPLE == 0 ? CPU_SAMPLE : 0;
		started_cpu = weight > 0 ? aq_clock_cpu_ns() : 0;
		started_idle = aq_event_idle;
		/* the time of a commit begins at the last booking, set later */
		started = kind == AQ_TIME_COMMIT ? 0 : aq_clock_ns();
	}
	return timed;
}

int64
aq_time_now(void)
{
	return timed_statistics ? aq_clock_ns() : 0;
}

void
aq_time_on_queue(AqTimeOnQueue told)
{
	on_queue = told;
}

static void
end_operation(void)
{
	int32		queue = own->queue;

	own->op = -1;
	own->queue = 0;
	if (timing)
	{
		int64		now = aq_clock_ns();
		uint64		passed = Max(now - (started != 0 ? started : begin_of_share(now)), 0);
		uint64		elapsed = passed - Min(passed, aq_event_idle - started_idle);
		uint64		cpu = weight > 0 ? weight * (uint64) Max(aq_clock_cpu_ns() - started_cpu, 0) : 0;

		own->times.op_elapsed[kind] += elapsed;
		own->times.op_cpu[kind] += cpu;
		if (queue != 0 && on_queue != NULL)
			on_queue(queue, kind, elapsed, cpu);
		book(now);
	}
}

void
aq_time_leave(AqTimed *timed)
{
	if (!timed->open || depth == 0)
		return;
	timed->open = false;
	if (--depth == 0)
		end_operation();
}

bool
aq_time_outermost(void)
{
	return depth <= 1;
}

void
aq_time_queue(int32 queue_id)
{
	if (depth > 0 && own->queue == 0)
		own->queue = queue_id;
}

void
aq_time_queue_is(int32 queue_id)
{
	if (depth == 1)
		own->queue = queue_id;
}

/*
 * Closes operations that an error has left open at this nesting level or
 * deeper.
 */
static void
close_level(int level)
{
	while (depth > 0 && levels[Min(depth, lengthof(levels)) - 1] >= level)
		if (--depth == 0)
			end_operation();
}

void
aq_time_subxact_abort(void)
{
	close_level(GetCurrentTransactionNestLevel());
}

void
aq_time_xact_end(bool abort)
{
	if (abort)
		close_level(1);
	/*
	 * an open operation is the commit itself, whose callback ends and books it
	 */
	if (timed_statistics && depth == 0)
		book(aq_clock_ns());
}

/* At process exit: saves the final CPU time. */
void
aq_time_session_exit(void)
{
	depth = 0;
	own->times.cpu = Max(aq_clock_cpu_ns() - (int64) own->cpu_before, 0);
	own = NULL;
}

/* --- statements ------------------------------------------------------------------------- */

/*
 * Must the query's time be booked when it ends?  A nested query is booked by
 * the outer one.  If the transaction ends with the query, the transaction's
 * end books it, unless the commit is timed itself: then the query must be
 * booked first.
 */
static bool
is_to_be_booked(const QueryDesc *query)
{
	return query->dest->mydest != DestSPI && query->dest->mydest != DestSQLFunction &&
		(aq_stat_touched || IsTransactionBlock());
}

static void
executor_run(AQ_EXECUTOR_RUN_ARGS)
{
	CommandDest dest = query->dest->mydest;
	int			outer = aq_server_stat_enter(dest != DestSPI && dest != DestSQLFunction, !query->already_executed);

	if (own != NULL)
		book_io();
	if (previous_hook)
		previous_hook(AQ_EXECUTOR_RUN_PASS);
	else
		standard_ExecutorRun(AQ_EXECUTOR_RUN_PASS);
	aq_server_stat_leave(outer);
	if (own != NULL && timed_statistics && is_to_be_booked(query))
		book(aq_clock_ns());
}

void
aq_time_define_parameters(void)
{
	DefineCustomBoolVariable("pgaq.timed_statistics",
							 "Records the time of statements and queue operations in the time model.",
							 "It reads the clock twice in each queue operation and once in each statement and transaction "
							 "of a session that uses queues. Waits are always timed.",
							 &timed_statistics, timed_statistics,
							 PGC_SUSET, 0, NULL, NULL, NULL);
	previous_hook = ExecutorRun_hook;
	ExecutorRun_hook = executor_run;
}
