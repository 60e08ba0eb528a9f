/*-------------------------------------------------------------------------
 *
 * hammer.c
 *	  A number of sessions that get and free one latch or mutex for some time.
 *
 * The sessions are background workers.  Their job and their results are in a
 * dynamic shared memory segment; they all begin when the calling session sets
 * a flag.  When that session detaches from the segment, also after an error or
 * at its exit, the workers are told to stop.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "lab/lab_private.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "storage/dsm.h"
#include "storage/ipc.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "catalog/pg_type.h"

#define MAX_SESSIONS 256
#define SETTINGS_BYTES 4096
#define POLL_US 10000			/* interval at which a worker checks for the start */

typedef enum Phase
{
	PHASE_WAIT, PHASE_RUN, PHASE_STOP
} Phase;

typedef struct Worker
{
	int32		session;		/* number shown in the views */
	int32		pid;
	int64		gets;
	int64		elapsed_us;
	int64		cpu_us;
	bool		done;
} Worker;

typedef struct Job
{
	pg_atomic_uint32 phase;
	Oid			database;
	Oid			user;
	AqLabTarget target;			/* addresses in shared memory are the same in all processes */
	int64		us;				/* total duration */
	int64		hold_us;		/* duration of each hold */
	int64		pause_us;		/* between two gets */
	char		settings[SETTINGS_BYTES];	/* name, value, name, value, ..., empty */
	Worker		workers[FLEXIBLE_ARRAY_MEMBER];
} Job;

PGDLLEXPORT void aq_hammer_worker_main(Datum arg);

/* --- a worker -------------------------------------------------------------------- */

/* Keeps the processor busy, like a session that works under a latch. */
static void
spend(int64 us)
{
	int64		end;

	if (us <= 0)
		return;
	end = aq_clock_us() + us;
	while (aq_clock_us() < end)
		aq_cpu_pause();
}

static void
hammer(Job *job, Worker *me)
{
	int64		start = aq_clock_us();
	int64		cpu = aq_clock_cpu_ns();

	while (pg_atomic_read_u32(&job->phase) == PHASE_RUN && aq_clock_us() - start < job->us)
	{
		aq_lab_get(&job->target, AQ_LOC_LAB_HAMMER);
		spend(job->hold_us);
		aq_lab_free(&job->target);
		me->gets++;
		spend(job->pause_us);
		CHECK_FOR_INTERRUPTS();
	}
	me->elapsed_us = aq_clock_us() - start;
	me->cpu_us = (aq_clock_cpu_ns() - cpu) / 1000;
}

void
aq_hammer_worker_main(Datum arg)
{
	Job		   *job = dsm_segment_address(aq_process_attach(arg, "pgaq lab"));
	Worker	   *me;
	int			number;

	memcpy(&number, MyBgworkerEntry->bgw_extra, sizeof(number));
	me = &job->workers[number];
	BackgroundWorkerInitializeConnectionByOid(job->database, job->user, 0);
	for (char *name = job->settings; *name != '\0';)
	{
		char	   *value = name + strlen(name) + 1;

		SetConfigOption(name, value, PGC_SUSET, PGC_S_SESSION);
		name = value + strlen(value) + 1;
	}

	me->session = aq_session_number() + 1;
	me->pid = MyProcPid;
	while (pg_atomic_read_u32(&job->phase) == PHASE_WAIT)
		(void) aq_event_sleep(AQ_EVENT_LAB_IDLE, number, 0, 0, POLL_US);
	hammer(job, me);
	me->done = true;
	proc_exit(0);
}

/*
 * --- the calling session
 * ------------------------------------------------------------------------
 */

static void
stop(dsm_segment *segment, Datum job)
{
	pg_atomic_write_u32(&((Job *) DatumGetPointer(job))->phase, PHASE_STOP);
}

/*
 * Stores the array name, value, name, value, ...  Invalid settings are
 * reported here, because a worker could only write them to the server log.
 */
static void
take_settings(Job *job, ArrayType *array)
{
	Datum	   *words;
	int			n;
	char	   *place = job->settings;

	deconstruct_array(array, TEXTOID, -1, false, TYPALIGN_INT, &words, NULL, &n);
	if (n % 2 != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the parameter \"%s\" has no value", TextDatumGetCString(words[n - 1])),
				 errhint("Settings are an array of names and values, as in '{pgaq.spin_count, 1000}'.")));
	for (int i = 0; i < n; i += 2)
		(void) set_config_option(TextDatumGetCString(words[i]), TextDatumGetCString(words[i + 1]),
								 PGC_SUSET, PGC_S_SESSION, GUC_ACTION_SET, false, ERROR, false);
	for (int i = 0; i < n; i++)
	{
		char	   *word = TextDatumGetCString(words[i]);
		Size		size = strlen(word) + 1;

		if (place + size >= job->settings + SETTINGS_BYTES)
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					 errmsg("too many parameters were changed in the session")));
		memcpy(place, word, size);
		place += size;
	}
	*place = '\0';
}

static bool
start_worker(dsm_segment *segment, int number, BackgroundWorkerHandle **handle)
{
	BackgroundWorker worker;

	aq_process_init(&worker, "aq_hammer_worker_main", "pgaq lab");
	snprintf(worker.bgw_name, BGW_MAXLEN, "pgaq lab %d of process %d", number + 1, MyProcPid);
	worker.bgw_main_arg = UInt32GetDatum(dsm_segment_handle(segment));
	memcpy(worker.bgw_extra, &number, sizeof(number));
	worker.bgw_notify_pid = MyProcPid;
	return RegisterDynamicBackgroundWorker(&worker, handle);
}

/*
 * left: sessions whose end the call still waits for.  The wait is idle, as the
 * wait of a query's coordinator for its parallel sessions is in Oracle: the
 * work, and all other waits, are theirs.
 */
static void
wait_for_end(BackgroundWorkerHandle *handle, int left)
{
	pid_t		pid;

	while (GetBackgroundWorkerPid(handle, &pid) != BGWH_STOPPED)
		(void) aq_event_sleep(AQ_EVENT_LAB_SESSIONS, left, 0, 0, -1);
}

/*
 * Called before an error is raised, so that the worker slots are free if the
 * call is retried at once.
 */
static void
end_workers(Job *job, BackgroundWorkerHandle **handles, int n)
{
	pg_atomic_write_u32(&job->phase, PHASE_STOP);
	for (int i = 0; i < n; i++)
		wait_for_end(handles[i], n - i);
}

static void
check_range(const char *what, int64 value, int64 from, int64 to)
{
	if (value < from || value > to)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s must be from " INT64_FORMAT " to " INT64_FORMAT, what, from, to)));
}

/* Arguments of both SQL functions from "sessions" on. */
static void
hammer_for_seconds(FunctionCallInfo fcinfo, AqLabTarget target, int first)
{
	AqRow		row;
	int			sessions = PG_GETARG_INT32(first);
	double		seconds = PG_GETARG_FLOAT8(first + 1);
	dsm_segment *segment;
	Job		   *job;
	Size		size;
	BackgroundWorkerHandle **handles;
	pid_t		pid;

	check_range("sessions", sessions, 1, MAX_SESSIONS);
	check_range("hold_us", PG_GETARG_INT64(first + 2), 0, USECS_PER_SEC);
	check_range("pause_us", PG_GETARG_INT64(first + 3), 0, USECS_PER_SEC);
	if (!(seconds > 0 && seconds <= 86400))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("seconds must be above 0 and at most 86400")));
	aq_rows_begin(&row, fcinfo);

	size = offsetof(Job, workers) + sessions * sizeof(Worker);
	segment = dsm_create(size, 0);
	job = dsm_segment_address(segment);
	memset(job, 0, size);
	pg_atomic_init_u32(&job->phase, PHASE_WAIT);
	on_dsm_detach(segment, stop, PointerGetDatum(job));
	job->database = MyDatabaseId;
	job->user = GetUserId();
	job->target = target;
	job->us = (int64) (seconds * USECS_PER_SEC);
	job->hold_us = PG_GETARG_INT64(first + 2);
	job->pause_us = PG_GETARG_INT64(first + 3);
	take_settings(job, PG_GETARG_ARRAYTYPE_P(first + 4));

	handles = palloc(sessions * sizeof(BackgroundWorkerHandle *));
	for (int i = 0; i < sessions; i++)
		if (!start_worker(segment, i, &handles[i]))
		{
			end_workers(job, handles, i);
			ereport(ERROR,
					(errcode(ERRCODE_INSUFFICIENT_RESOURCES),
					 errmsg("could not start background worker %d of the lab", i + 1),
					 errhint("Each session of the lab needs one: raise max_worker_processes.")));
		}
	for (int i = 0; i < sessions; i++)
		if (WaitForBackgroundWorkerStartup(handles[i], &pid) == BGWH_POSTMASTER_DIED)
			proc_exit(1);
	pg_atomic_write_u32(&job->phase, PHASE_RUN);
	for (int i = 0; i < sessions; i++)
	{
		wait_for_end(handles[i], sessions - i);
		if (!job->workers[i].done)
		{
			end_workers(job, handles, sessions);
			ereport(ERROR,
					(errcode(ERRCODE_CONNECTION_FAILURE),
					 errmsg("background worker %d of the lab ended early", i + 1),
					 errhint("Consult recent messages in the server log for details.")));
		}
	}
	for (int i = 0; i < sessions; i++)
	{
		const Worker *worker = &job->workers[i];

		aq_rows_int(&row, worker->session);
		aq_rows_int(&row, worker->pid);
		aq_rows_number(&row, worker->gets);
		aq_rows_number(&row, worker->elapsed_us);
		aq_rows_number(&row, worker->cpu_us);
		aq_rows_end(&row);
	}
	dsm_detach(segment);
}

PG_FUNCTION_INFO_V1(aq_hammer_latch);
Datum
aq_hammer_latch(PG_FUNCTION_ARGS)
{
	AqLabTarget target = aq_lab_latch(text_to_cstring(PG_GETARG_TEXT_PP(0)), PG_GETARG_INT32(1),
									  text_to_cstring(PG_GETARG_TEXT_PP(2)));

	hammer_for_seconds(fcinfo, target, 3);
	return (Datum) 0;
}

PG_FUNCTION_INFO_V1(aq_hammer_mutex);
Datum
aq_hammer_mutex(PG_FUNCTION_ARGS)
{
	AqLabTarget target = aq_lab_mutex(text_to_cstring(PG_GETARG_TEXT_PP(0)),
									  text_to_cstring(PG_GETARG_TEXT_PP(1)));

	hammer_for_seconds(fcinfo, target, 2);
	return (Datum) 0;
}
