/*-------------------------------------------------------------------------
 *
 * jobs.h
 *	  The public header of part "jobs": one background worker for each database
 *	  that uses pgaq, which runs the jobs that other parts register, and the
 *	  launcher that starts these workers.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_JOBS_H
#define AQ_JOBS_H

#include "sync/sync.h"

#include "datatype/timestamp.h"
#include "nodes/nodes.h"

/*
 * A job does what is due, in transactions that it starts and commits itself,
 * and returns the time at which it wants to run next, or 0 for "when posted".
 * It must not wait for locks of users, so it takes only conditional locks; those
 * that the server takes by itself end it with an error after a moment.  An
 * error ends its turn; the job runs again after a pause, see AqTrouble.
 */
typedef struct AqJob
{
	const char *name;
	bool		(*needed) (void);	/* has this database work for the job?  May be NULL */
	TimestampTz (*run) (void);
	bool		(*busy) (void); /* must the worker not leave now?  For a bounded time only.  May be NULL */
} AqJob;

extern const AqPart aq_jobs_part;

extern int	aq_jobs_max_databases;	/* pgaq.max_databases */

extern void aq_worker_register(const AqJob *job);

/*
 * Called by sessions before they rely on the worker of their database;
 * afterwards their posts reach it.  The worker need not be running: it leaves
 * when it has no work and another database needs its worker slot.
 */
extern void aq_jobs_ensure_worker(void);

/* One wait of a session until the worker has done something; all zero when it begins. */
typedef struct AqWorkerWait
{
	int64		absent_since;	/* the wait has met no worker since; 0: it has, or has not looked */
	bool		told;			/* the client */
} AqWorkerWait;

extern AqEvent aq_await_event(AqWorkerWait *wait, AqEvent event);

/* Any wait for a background worker: is it time to tell the session's client? */
extern bool aq_await_is_long(int64 since);

/*
 * Another background worker of ours finds no slot, or has got one: a database's
 * worker with nothing to do leaves, and the slots go to whichever has waited
 * longest.  To be called again each second at least.  Never raise.
 */
extern void aq_room_ask(void);
extern void aq_room_got(void);

/* DETAIL and HINT of errors and notices while no background worker slot is free. */
extern const char *aq_room_no_slot(void);
extern char *aq_room_hint(void);

extern bool aq_job_in_worker(void);
extern int	aq_jobs_worker_pid(void);	/* 0: none is running */

/*
 * The worker was asked to end: a job stops at a point where another worker can
 * continue.  From then on, CHECK_FOR_INTERRUPTS() in a job raises an error.
 */
extern bool aq_worker_is_ending(void);

/*
 * The worker serves the queues in turn.  A job that has used up its time returns
 * between two transactions, when it has seen to it that it runs again.
 */
extern void aq_worker_begin_turn(void);
extern bool aq_worker_turn_is_over(void);

/*
 * The worker is about to leave, to make room for another database's worker; it
 * is started again at the time that the job returns.  So a job returns 0 if
 * posts are enough to start it.
 */
extern bool aq_worker_is_leaving(void);

/*
 * State of a job that fails.  The pause before it runs again grows; its error
 * is logged once, and then rarely while the cause is the same.
 */
typedef struct AqTrouble
{
	uint32		failures;		/* in a row */
	TimestampTz not_before;		/* time of the next try */
	uint32		cause;
	TimestampTz logged;
} AqTrouble;

/*
 * Call it in PG_CATCH: it logs the error, aborts the transaction, and switches
 * to the given memory context.  trouble is NULL: it was to be expected.
 */
extern void aq_trouble_failed(AqTrouble *trouble, MemoryContext context);

/* May one more line be logged about failures that this role (its OID) causes?  If so, it is counted. */
extern bool aq_trouble_may_log(uint32 who);

/* Call it after a run without an error. */
extern void aq_trouble_succeeded(AqTrouble *trouble, const char *name);

/*
 * A process that a job of the worker starts when it is needed, of which there is
 * one at a time.  The exported function gets the database's OID.
 */
typedef struct AqChild
{
	const char *function;
	const char *type;
	const char *purpose;		/* a plural, for the log */
	int64		least_time;		/* a worker that was asked to leave waits until it has run this long, microseconds */
	/* zero at first */
	bool		registered;		/* it ends with the worker */
	struct BackgroundWorkerHandle *handle;	/* NULL: none was started, or it has ended */
	int			refusals;		/* tries in a row that have found no free slot */
	TimestampTz started_at;		/* when the last one was started */
} AqChild;

#define AQ_CHILD_AGAIN (USECS_PER_SEC / 4)	/* the pause while no slot is free: sooner than the next work of most
											 * workers */

extern bool aq_child_start(AqChild *child);
extern bool aq_child_runs(AqChild *child, bool *ended);
extern bool aq_child_keeps(const AqChild *child);

/* Processes that run code of roles, which may ignore cancellations: see stuck.c. */
typedef enum AqStuckKind
{
	AQ_STUCK_SCHEDULER,
	AQ_STUCK_PROPAGATION,
	AQ_FAIR_KINDS,				/* number of those above, for fair.c */
	AQ_STUCK_NOTIFIER = AQ_FAIR_KINDS
} AqStuckKind;

extern void aq_stuck_enter(AqStuckKind kind);
extern void aq_stuck_watch(Oid role, int64 key, int limit, int grace);
extern void aq_stuck_over(void);
extern uint32 aq_stuck_changes(void);
extern bool aq_stuck_is_given_up(int pid);
extern bool aq_stuck_bars(AqStuckKind kind, Oid role);
extern Datum aq_stuck_roles(AqStuckKind kind);

/*
 * Processes that run code of several roles: the time of each turn is limited, and the
 * role that has recently used the least time has the next turn, see fair.c.
 */
#define AQ_FAIR_ROUND ((int64) 100000)	/* microseconds, after which the roles are sorted again */

extern int	aq_fair_turn_ms;	/* pgaq.turn_timeout */

extern void aq_fair_enter(AqStuckKind kind);
extern int64 aq_fair_ended(void);
extern void aq_fair_begin(Oid role, int64 key);
extern void aq_fair_end(bool counts);
extern int64 aq_fair_used(Oid role);
extern int64 aq_fair_spent(void);
extern const char *aq_fair_message(const ErrorData *error);
extern const char *aq_fair_too_long(void);

/* When the server began to accept changes, as aq_clock_us(); 0: no launcher has started yet. */
extern int64 aq_jobs_since(void);

/*
 * Post work for this database's worker, now or at a time.  Never raise errors.
 */
extern void aq_jobs_post(void);
extern void aq_jobs_post_at(TimestampTz when);

/* The same for another database's worker, but only if it has left. */
extern void aq_jobs_post_away(Oid database, TimestampTz when);

/*
 * For background workers that run jobs.  SIGTERM cancels a job, as it does a
 * statement, and only there; otherwise it sets the process latch.
 */
extern void aq_job_set_parameters(const char *application);
extern void aq_job_run_as_owner(void);
extern void aq_job_on_sigterm(SIGNAL_ARGS);
extern void aq_job_cancellable(bool in_job);

/* Begin and end a transaction in the worker; sync_commit: flush the commit. */
extern void aq_job_begin(void);
extern void aq_job_wait_for_none(void); /* until its end: a lock that is not free is an error */
extern bool aq_job_lock_extension(void);	/* needed before reading several tables */
extern void aq_job_commit(bool sync_commit);

typedef enum AqExtensionState
{
	AQ_EXTENSION_THERE,
	AQ_EXTENSION_GONE,			/* dropped, and cannot be created until the transaction ends */
	AQ_EXTENSION_UNKNOWN		/* a session is creating it: check again later */
} AqExtensionState;

extern AqExtensionState aq_job_extension(void);

/*
 * Have rows of queues been restored from a dump?  True until
 * aq_jobs_take_restored() is called.
 */
extern void aq_jobs_post_restored(void);
extern bool aq_jobs_are_restored(void);
extern bool aq_jobs_take_restored(void);

/* Called after DROP DATABASE, and by the worker after DROP EXTENSION in its database. */
typedef void (*AqDatabaseDropped) (Oid database);
extern void aq_jobs_on_database_dropped(AqDatabaseDropped callback);

/*
 * Called before a command that requires that no process uses the database, and
 * by the worker after DROP EXTENSION: pgaq's other background workers must
 * leave the database.  Several parts can register a callback.
 */
typedef void (*AqDatabaseWanted) (Oid database);
extern void aq_jobs_on_database_wanted(AqDatabaseWanted callback);

/* Is such a command running?  Another background worker asks after it has made itself known to its callback. */
extern bool aq_jobs_is_stopped(Oid database);

/*
 * Called when no worker slot is free: pgaq's other background workers must
 * make room.  Must not raise an error.
 */
typedef void (*AqPlaceWanted) (void);
extern void aq_jobs_on_place_wanted(AqPlaceWanted callback);

/*
 * Called by the utility hook after each successful command; several parts can
 * register one.  The parse tree may be freed by then.  May raise an error.
 */
typedef void (*AqCommandDone) (NodeTag tag, bool commits_prepared);
extern void aq_utility_on_command(AqCommandDone callback);

/*
 * Called after a command that has dropped extension pgaq_oracle and not pgaq.
 * May raise an error.
 */
/* Called after REASSIGN OWNED in a database with pgaq, for each of the old roles. */
typedef void (*AqReassigned) (Oid from, Oid to);
extern void aq_utility_on_reassigned(AqReassigned callback);

typedef void (*AqOracleGone) (Oid pgaq);
extern void aq_utility_on_oracle_gone(AqOracleGone callback);

/*
 * Called when a transaction commits, or is prepared, that has changed roles or
 * the settings of roles or databases; must not raise an error.
 */
typedef void (*AqRolesChanged) (void);
extern void aq_utility_on_roles_changed(AqRolesChanged callback);

/*
 * Called by the utility hook after a successful COMMIT PREPARED or ROLLBACK
 * PREPARED; must not raise an error.
 */
typedef void (*AqPreparedEnded) (void);
extern void aq_utility_on_prepared_end(AqPreparedEnded callback);

/*
 * This transaction has restored rows of queues: the worker is notified after
 * its commit.
 */
extern void aq_utility_note_restored(void);

/*
 * Called before DROP EXTENSION pgaq CASCADE by the extension's owner, and before
 * it locks anything.  May raise an error.
 */
typedef void (*AqDropsPgaq) (void);
extern void aq_utility_on_drops_pgaq(AqDropsPgaq callback);

/* Does DROP EXTENSION pgaq run, or has it failed in this transaction? */
extern bool aq_utility_drops_pgaq(void);

/* The innermost utility command that this session executes; NULL: none, or CALL or DO. */
extern struct Node *aq_utility_command(void);

/*
 * For aq.check(): finds workers that do not exist and stops that no session
 * has made.
 */
extern void aq_jobs_check(AqFindings *findings);

/*
 * --- owner.c
 *
 * aq_owner_table() returns a table of aq_internal; InvalidOid: the database has
 * no extension, or an older version of it.
 */
extern Oid	aq_owner_role(void);
extern Oid	aq_owner_table(const char *name);

#endif							/* AQ_JOBS_H */
