/*-------------------------------------------------------------------------
 *
 * jobs.h
 *	  The door of part "jobs": one background worker per database that uses
 *	  pgaq, running the jobs that other parts register, and the launcher that
 *	  sees to it that there is one.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_JOBS_H
#define AQ_JOBS_H

#include "sync/sync.h"

#include "datatype/timestamp.h"

/*
 * A job does what is due, in transactions of its own (it starts and commits
 * them), and returns when it next wants to run: a time, or 0 for "when
 * posted".  It must not block on what users hold: conditional locks only.
 * An error ends its turn; the job is run again after a pause, see AqTrouble.
 */
typedef struct AqJob
{
	const char *name;
	bool		(*needed) (void);	/* is there anything in this database?  May be NULL */
	TimestampTz (*run) (void);
} AqJob;

extern const AqPart aq_jobs_part;

extern void aq_worker_register(const AqJob *job);

/*
 * Called by sessions before they rely on the worker of their database: from now
 * on what they post reaches it.  It need not run meanwhile: a worker with nothing
 * to do leaves when another database's has no place.
 */
extern void aq_jobs_ensure_worker(void);

/* For a wait until the worker has done something: this event, or that there is no worker. */
extern AqEvent aq_jobs_wait_event(AqEvent event);

extern bool aq_job_in_worker(void);
extern int	aq_jobs_worker_pid(void);	/* 0: there is none */

/*
 * The worker is to end: a job stops where it can go on in another worker.
 * Also, from then on CHECK_FOR_INTERRUPTS() in a job raises an error.
 */
extern bool aq_worker_is_ending(void);

/*
 * The worker would like to make room for another database's: it comes back at
 * the time that the job returns.  So a job returns 0 that has nothing to do then
 * which others could not ask for.
 */
extern bool aq_worker_is_leaving(void);

/*
 * What the worker remembers of a job that fails.  The pause before it runs
 * again grows; its error is logged once, and then rarely while the cause is
 * the same.
 */
typedef struct AqTrouble
{
	uint32		failures;		/* in a row */
	TimestampTz not_before;		/* when it runs again */
	uint32		cause;
	TimestampTz logged;
} AqTrouble;

/*
 * In PG_CATCH: ends the transaction, and the error is dealt with; the memory
 * context is then this one.
 */
extern void aq_trouble_failed(AqTrouble *trouble, MemoryContext context);

/* It has worked. */
extern void aq_trouble_succeeded(AqTrouble *trouble, const char *name);

/* There is work for this database's worker, now or at a time.  Never raises. */
extern void aq_jobs_post(void);
extern void aq_jobs_post_at(TimestampTz when);

/* The same for another database's worker, and only if it has left. */
extern void aq_jobs_post_away(Oid database, TimestampTz when);

/* The worker begins and ends a transaction; sync_commit: flush the commit. */
extern void aq_job_begin(void);
extern bool aq_job_lock_extension(void);	/* before reading several tables */
extern void aq_job_commit(bool sync_commit);

typedef enum AqExtensionState
{
	AQ_EXTENSION_THERE,
	AQ_EXTENSION_GONE,			/* and not made again until the transaction ends */
	AQ_EXTENSION_UNKNOWN		/* a session makes it: look again later */
} AqExtensionState;

extern AqExtensionState aq_job_extension(void);

/* Have rows of queues been restored from a dump?  Said until aq_jobs_take_restored() was called. */
extern void aq_jobs_post_restored(void);
extern bool aq_jobs_are_restored(void);
extern bool aq_jobs_take_restored(void);

/* Called after DROP DATABASE, and by the worker after DROP EXTENSION in its database. */
typedef void (*AqDatabaseDropped) (Oid database);
extern void aq_jobs_on_database_dropped(AqDatabaseDropped callback);

/*
 * Called before a command that wants the database for itself, and by the worker
 * after DROP EXTENSION: other background workers of ours leave it.
 */
typedef void (*AqDatabaseWanted) (Oid database);
extern void aq_jobs_on_database_wanted(AqDatabaseWanted callback);

/* Called when there is no place for a worker: another background worker of ours makes room.  Must not raise. */
typedef void (*AqPlaceWanted) (void);
extern void aq_jobs_on_place_wanted(AqPlaceWanted callback);

/* Called by the utility hook after each command that has worked, by several parts; may raise. */
typedef void (*AqCommandDone) (struct Node *command);
extern void aq_utility_on_command(AqCommandDone callback);

/* Called by the utility hook after COMMIT PREPARED and ROLLBACK PREPARED have worked; must not raise. */
typedef void (*AqPreparedEnded) (void);
extern void aq_utility_on_prepared_end(AqPreparedEnded callback);

/* This transaction has restored rows of queues: when it commits, the worker is told. */
extern void aq_utility_note_restored(void);

/* The utility command that this session executes, the innermost; NULL: none. */
extern struct Node *aq_utility_command(void);

/* For aq.check(): workers that are not there, databases stopped by no session. */
extern void aq_jobs_check(AqFindings *findings);

#endif							/* AQ_JOBS_H */
