/*-------------------------------------------------------------------------
 *
 * sync.c
 *	  The part's AqPart: parameters, shared memory, sessions.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "storage/ipc.h"
#include "storage/shmem.h"
#include "sync/common/sync_shared.h"
#include "sync/control/control_int.h"
#include "sync/latches/latch_int.h"
#include "sync/mutexes/mutex_int.h"
#include "sync/statistics/stat_int.h"
#include "sync/sync.h"
#include "utils/guc.h"

static const struct config_enum_entry yield_modes[] = {
	{"yield", AQ_YIELD_MODE_YIELD, false},
	{"sleep", AQ_YIELD_MODE_SLEEP, false},
	{NULL, 0, false}
};

/* --- the end of a transaction ----------------------------------------------------- */

/* Releases the latches and mutexes that an error left held. */
static void
release_latches(void)
{
	if (aq_session_is_attached)
		aq_locks_release_all();
}

static void
release_latches_sub(SubTransactionId subid, SubTransactionId parent)
{
	release_latches();
}

static const AqXactOps latch_ends = {
	.abort = release_latches,
	.parallel_abort = release_latches,
	.subabort = release_latches_sub,
};

static void
count_end(XactEvent event)
{
	aq_server_stat_xact_end(event);
	if (!aq_session_is_attached)
		return;
	aq_stat_xact_end(event);
	aq_time_xact_end(event == XACT_EVENT_ABORT);
}

static void
count_commit(void)
{
	count_end(XACT_EVENT_COMMIT);
}

static void
count_prepare(void)
{
	count_end(XACT_EVENT_PREPARE);
}

static void
count_abort(void)
{
	count_end(XACT_EVENT_ABORT);
}

static void
count_parallel_abort(void)
{
	count_end(XACT_EVENT_PARALLEL_ABORT);
}

static void
count_subabort(SubTransactionId subid, SubTransactionId parent)
{
	if (aq_session_is_attached)
		aq_time_subxact_abort();
}

static const AqXactOps statistics_ends = {
	.commit = count_commit,
	.prepare = count_prepare,
	.abort = count_abort,
	.parallel_abort = count_parallel_abort,
	.subabort = count_subabort,
};

/* --- parameters, shared memory ------------------------------------------------------ */

static void
sync_define_parameters(void)
{
	DefineCustomIntVariable("pgaq.spin_count",
							"Number of polls of a latch before the session sleeps.",
							"A request for shared mode polls twice as often.",
							&aq_latch_spin_count, aq_latch_spin_count, 0, AQ_MAX_SPIN,
							PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("pgaq.mutex_spin_count",
							"Number of polls of a mutex in each step of its wait loop.",
							NULL,
							&aq_mutex_wait_spin_count, aq_mutex_wait_spin_count, 1, AQ_MAX_SPIN,
							PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("pgaq.mutex_wait_scheme",
							"How a session waits for a mutex.",
							"0 yields, 1 sleeps a fixed time, 2 sleeps with a growing time, any other number spins.",
							&aq_mutex_wait_scheme, aq_mutex_wait_scheme, 0, AQ_MAX_SCHEME,
							PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("pgaq.mutex_wait_time",
							"Time that a session sleeps for a mutex in one step.",
							"Milliseconds in scheme 1 (0 means scheme 0), the limit in units of ten milliseconds in scheme 2 (0 means two seconds).",
							&aq_mutex_wait_time, aq_mutex_wait_time, 0, AQ_MAX_WAIT_TIME,
							PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomEnumVariable("pgaq.wait_yield_mode",
							 "Action of mutex wait scheme 0 in most of its steps.",
							 "yield: yields the processor, and sleeps as often as pgaq.wait_yield_sleep_freq says. sleep: sleeps, and yields as often as pgaq.wait_yield_yield_freq says.",
							 &aq_mutex_wait_yield_mode, aq_mutex_wait_yield_mode, yield_modes,
							 PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("pgaq.high_priority",
							 "Mutex wait scheme 0 uses pgaq.wait_yield_hp_mode in this session instead of pgaq.wait_yield_mode.",
							 "The operating system's priority of the process does not change.",
							 &aq_mutex_wait_high_priority, aq_mutex_wait_high_priority,
							 PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomEnumVariable("pgaq.wait_yield_hp_mode",
							 "Action of mutex wait scheme 0 in most of its steps, in sessions with pgaq.high_priority.",
							 "yield and sleep: as pgaq.wait_yield_mode.",
							 &aq_mutex_wait_yield_hp_mode, aq_mutex_wait_yield_hp_mode, yield_modes,
							 PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("pgaq.wait_yield_sleep_time",
							"Time that mutex wait scheme 0 sleeps when it does not yield.",
							NULL,
							&aq_mutex_wait_yield_sleep_time, aq_mutex_wait_yield_sleep_time, 0, 10000,
							PGC_SUSET, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomIntVariable("pgaq.wait_yield_sleep_freq",
							"Number of steps of mutex wait scheme 0 for each sleep, in mode yield.",
							"0 never sleeps.",
							&aq_mutex_wait_yield_sleep_freq, aq_mutex_wait_yield_sleep_freq, 0, 1000000,
							PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("pgaq.wait_yield_yield_freq",
							"Number of steps of mutex wait scheme 0 for each yield, in mode sleep.",
							"0 never yields.",
							&aq_mutex_wait_yield_yield_freq, aq_mutex_wait_yield_yield_freq, 0, 1000000,
							PGC_SUSET, 0, NULL, NULL, NULL);
	aq_claim_before_release(aq_locks_release_all);
	aq_xact_register(AQ_XACT_LATCHES, &latch_ends);
	aq_xact_register(AQ_XACT_STATISTICS, &statistics_ends);
	aq_lock_lists_define_parameters();
	aq_trace_define_parameters();
	aq_time_define_parameters();
}

/*
 * Lays out the part's shared memory; with area NULL, only computes its size.
 */
static Size
lay_out(void *area, bool found)
{
	Size		size = 0;
	void	   *locks = aq_part_carve(area, &size, aq_sync_shared_size(aq_session_slots()));
	void	   *events = aq_part_carve(area, &size, aq_event_shmem_size());
	void	   *sums = aq_part_carve(area, &size, aq_event_sums_shmem_size());
	void	   *traces = aq_part_carve(area, &size, aq_trace_control_shmem_size());
	void	   *stats = aq_part_carve(area, &size, aq_stat_shmem_size());
	void	   *server_stats = aq_part_carve(area, &size, aq_server_stat_shmem_size());

	if (area == NULL)
		return size;
	aq_sync_shared = locks;
	if (!found)
		aq_sync_shared_init(locks, aq_session_slots());
	aq_event_shmem_init(events, found);
	aq_event_sums_shmem_init(sums, found);
	aq_trace_control_shmem_init(traces, found);
	aq_stat_shmem_init(stats, found);
	aq_server_stat_shmem_init(server_stats, found);
	return size;
}

static Size
sync_shmem_size(void)
{
	return lay_out(NULL, false);
}

static void
sync_shmem_init(void *area, bool found)
{
	(void) lay_out(area, found);
}

/*
 * Runs before the server aborts the transaction of an exiting process, because
 * the abort needs latches that an error may have left held.
 */
static void
release_before_exit(int code, Datum arg)
{
	aq_locks_release_all();
}

static void
session_start(void)
{
	aq_sync_self_set(&aq_sync_shared->selves[aq_session_own_number]);
	aq_trace_session_start();
	aq_event_session_start();
	aq_time_session_start();
	aq_stat_session_start();
	before_shmem_exit(release_before_exit, (Datum) 0);
}

static void
sync_session_exit(void)
{
	aq_locks_release_all();
	aq_time_session_exit();
	aq_stat_session_exit();
	aq_event_sums_session_exit();
	aq_event_session_exit();
	aq_trace_control_session_exit();
	aq_sync_self_set(NULL);
}

const AqPart aq_sync_part = {
	.name = "sync",
	.define_parameters = sync_define_parameters,
	.shmem_size = sync_shmem_size,
	.shmem_init = sync_shmem_init,
	.session_start = session_start,
	.session_exit = sync_session_exit,
};
