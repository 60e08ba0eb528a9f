/*-------------------------------------------------------------------------
 *
 * await.c
 *	  A session's wait for the worker of its database while that does not run:
 *	  what the session's client is told, and when the wait ends.
 *
 * A worker that does not run is usually back within milliseconds, when the
 * launcher has started it.  If all background worker slots are in use, the wait
 * lasts until one is free; the client gets one NOTICE that says so.  Without
 * the launcher no worker can come.  The postmaster starts the launcher again a
 * second after it has ended, but not if it had no slot for it at the server's
 * start: a wait that is longer than such a restart ends with an error.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "jobs/jobs_private.h"

#include "commands/dbcommands.h"
#include "miscadmin.h"
#include "storage/latch.h"

/* how long a session waits before its client is told, microseconds */
#define TELL_AFTER ((int64) 3000000)

/* how long a launcher that has ended may take to return, microseconds: ten times the postmaster's pause */
#define LAUNCHER_PATIENCE ((int64) 10000000)

/* Has a session waited long enough, since then, to tell its client? */
bool
aq_await_is_long(int64 since)
{
	return aq_clock_us() - since >= TELL_AFTER;
}

static const char *
why_absent(const char *state)
{
	if (strcmp(state, "waiting") == 0)
		return aq_room_no_slot();
	if (strcmp(state, "failed") == 0)
		return _("The worker has ended with an error, and is started again after a pause.");
	if (strcmp(state, "stopped") == 0)
		return _("A command that needs the database without the worker is running.");
	if (aq_jobs_area->launcher_proc == NULL)
		return _("The launcher, which starts workers, does not run.");
	return _("The worker is being started.");
}

/* The server can send nothing to the client of a background worker. */
static void
tell(AqDatabase *db)
{
	const char *state = aq_workers_state(db);
	bool		no_slot = strcmp(state, "waiting") == 0;
	const char *where = _("The view aq.workers shows the state of all databases.");

	ereport(NOTICE,
			(errmsg("waiting for the background worker of pgaq for database \"%s\"", get_database_name(MyDatabaseId)),
			 errdetail_internal("%s", why_absent(state)),
			 no_slot ? errhint("%s %s", aq_room_hint(), where) : errhint("%s", where)));
	/* sending may have cleared a wake-up that the caller's sleep is to see */
	SetLatch(MyLatch);
}

static void
refuse_without_launcher(const AqWorkerWait *wait, int64 now)
{
	int64		since;

	if (aq_jobs_area->launcher_proc != NULL)
		return;
	pg_read_barrier();			/* it writes the time first: this is of its end, or of a later one */
	since = Max(aq_jobs_area->launcher_ended_at, wait->absent_since);
	if (now - since < LAUNCHER_PATIENCE)
		return;
	ereport(ERROR,
			aq_error(AQ_ERR_WORKER_MISSING, "the background worker of pgaq for database \"%s\" cannot start", get_database_name(MyDatabaseId)),
			errdetail("The launcher, which starts workers, has not run for %d seconds.", (int) ((now - since) / 1000000)),
			errhint("The server log says why. If it has no background worker slot, raise max_worker_processes (now %d) and restart the server.",
					max_worker_processes));
}

/*
 * Called before each sleep of a wait for the worker.  Returns the event of the
 * sleep: this one, or that there is no worker.  No latch is held.
 */
AqEvent
aq_await_event(AqWorkerWait *wait, AqEvent event)
{
	AqDatabase *db;
	int64		now;

	if (!IsUnderPostmaster)
		ereport(ERROR,
				aq_error(AQ_ERR_WORKER_MISSING, "there is no background worker of pgaq in single-user mode"));
	db = aq_jobs_own_database();
	if (db->worker_pid != 0)
	{
		wait->absent_since = 0;
		return event;
	}
	now = aq_clock_us();
	if (wait->absent_since == 0)
		wait->absent_since = now;
	refuse_without_launcher(wait, now);
	if (!wait->told && aq_await_is_long(wait->absent_since))
	{
		wait->told = true;
		tell(db);
	}
	return AQ_EVENT_WORKER_MISSING;
}
