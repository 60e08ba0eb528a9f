/*-------------------------------------------------------------------------
 *
 * workers.c
 *	  The function under aq.workers: the databases in the directory and the
 *	  states of their workers.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "jobs/jobs_private.h"

#include "mb/pg_wchar.h"
#include "miscadmin.h"

static const char *
state_of(const AqDatabase *db, bool due)
{
	int64		now = aq_clock_us();

	if (db->stops > 0)
		return "stopped";
	if (db->worker_proc != NULL)
		return "running";
	if (db->worker_pid != 0 || aq_jobs_is_coming(db, now))
		return "starting";
	if (db->backoff_until > now)
		return "failed";
	if (db->left && !db->ask && !due)
		return "away";
	return db->wanted_since != 0 ? "waiting" : "starting";
}

/* The same of the entry in shared memory. */
const char *
aq_workers_state(AqDatabase *db)
{
	return state_of(db, aq_jobs_is_due(db));
}

/* What the worker waits for, if that is unusual; NULL: nothing. */
static const char *
problem_of(const char *state)
{
	if (strcmp(state, "starting") == 0 && aq_jobs_area->launcher_proc == NULL)
		return "the launcher, which starts workers, is not running";
	if (strcmp(state, "waiting") == 0)
		return "no background worker slot is free";
	return NULL;
}

static char *
hint_of(const char *state)
{
	if (strcmp(state, "starting") == 0 && aq_jobs_area->launcher_proc == NULL)
		return psprintf("If this lasts, raise max_worker_processes (now %d) and restart the server.", max_worker_processes);
	if (strcmp(state, "waiting") == 0)
		return aq_room_hint();
	if (strcmp(state, "failed") == 0)
		return pstrdup("Consult recent messages in the server log for details. Another worker is started after a pause.");
	return NULL;
}

/*
 * The worker's last error; if its encoding differs, non-ASCII bytes are
 * replaced.
 */
static const char *
error_of(AqDatabase *db)
{
	if (db->error[0] == '\0')
		return NULL;
	if (db->error_encoding != GetDatabaseEncoding())
		for (char *c = db->error; *c != '\0'; c++)
			if (IS_HIGHBIT_SET(*c))
				*c = '?';
	return db->error;
}

/*
 * Database, state, start of the state, process, next due time, problem, last
 * error, its time, hint.
 */
AQ_ROWS(aq_workers_view)
{
	for (int i = 0; i < aq_jobs_max_databases; i++)
	{
		AqDatabase	db;
		bool		due;
		uint64		next;
		const char *state;

		aq_latch_get(&aq_jobs_area->latch, AQ_SHARED, AQ_LOC_JOB_POST);
		db = aq_jobs_area->databases[i];
		due = OidIsValid(db.oid) && aq_jobs_is_due(&aq_jobs_area->databases[i]);
		aq_latch_free(&aq_jobs_area->latch);
		if (!OidIsValid(db.oid))
			continue;
		state = state_of(&db, due);
		next = pg_atomic_read_u64(&db.next_at);
		aq_rows_put(row, ObjectIdGetDatum(db.oid));
		aq_rows_text(row, state);
		aq_rows_time(row, db.since);
		aq_rows_int_if(row, db.worker_pid != 0, db.worker_pid);
		aq_rows_time(row, (int64) next);
		aq_rows_text(row, problem_of(state));
		aq_rows_text(row, error_of(&db));
		aq_rows_time(row, db.error[0] != '\0' ? db.error_time : 0);
		aq_rows_text(row, hint_of(state));
		aq_rows_end(row);
	}
}
