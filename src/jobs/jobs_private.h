/*-------------------------------------------------------------------------
 *
 * jobs_private.h
 *	  Declarations shared by the files of part "jobs".
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_JOBS_PRIVATE_H
#define AQ_JOBS_PRIVATE_H

#include "jobs/jobs.h"

#include "nodes/pg_list.h"

/*
 * times here are from aq_clock_us(), which is monotonic, except those of type
 * TimestampTz
 */

/* how long a registered worker may take to start, in microseconds */
#define START_PATIENCE ((int64) 10000000)

/* most callbacks of other parts for one event */
#define MAX_CALLBACKS 4

/* bytes of a worker's last error that are kept */
#define ERROR_LENGTH 256

/* What roles have used of the time of a process, see fair.c; written by the process. */
typedef struct AqFairShare
{
	Oid			role;			/* InvalidOid: free, or a role that was dropped */
	int64		used;			/* microseconds */
	int64		at;				/* when that was */
} AqFairShare;

typedef struct AqFairShares
{
	AqFairShare of[16];			/* the roles that have used most */
} AqFairShares;

typedef struct AqDatabase
{
	/* protected by the latch "database directory" */
	Oid			oid;			/* InvalidOid: the entry is free */
	bool		used;			/* the database uses pgaq, so it has a worker */
	bool		ask;			/* a worker must find out whether it has queues */
	bool		left;			/* its worker has left, without work to do or after its turn */
	int64		asked_at;		/* when a worker was registered that has not started yet; 0: none */
	int			stops;			/* commands that require the database to have no worker */
	TimestampTz since;			/* start of its state, for aq.workers */
	int			worker_pid;		/* 0: none; set before it connects */
	TimestampTz error_time;
	int			error_encoding;
	char		error[ERROR_LENGTH];	/* its worker's latest error; empty: none */

	/* written by the launcher; reset by the worker when it starts */
	int64		wanted_since;	/* since when it waits for a free worker slot; 0: does not wait */
	volatile bool leave;		/* the worker must make room for another one */
	int64		leave_at;		/* when it was asked to leave */

	/* written by the worker */
	int64		came_at;
	int64		ended_at;
	int			failures;		/* in a row, before its first round */
	int64		backoff_until;	/* the launcher does not start another worker before */
	struct PGPROC *volatile worker_proc;	/* NULL when it cannot be posted */

	pg_atomic_uint32 work;		/* work was posted */
	pg_atomic_uint32 check;		/* the extension may have been dropped */
	pg_atomic_uint32 restored;	/* rows of queues came from a dump */
	pg_atomic_uint64 next_at;	/* earliest time that a job requested, a TimestampTz; 0: none */
	AqFairShares shares[AQ_FAIR_KINDS];
	AqCond		ended;			/* the worker has ended */
} AqDatabase;

/* How a worker has ended. */
typedef enum AqWorkerEnd
{
	AQ_WORKER_FAILED,			/* by an error or termination, before its first round */
	AQ_WORKER_BROKEN,			/* the same, later */
	AQ_WORKER_ANSWERED,			/* the database has no queues, or the extension was dropped */
	AQ_WORKER_LEFT				/* it has made room for another worker */
} AqWorkerEnd;

/* limits of the lines in the server log: see trouble.c */
#define LOG_BUCKETS 256

typedef struct JobsArea
{
	AqLatch		latch;
	struct PGPROC *volatile launcher_proc;
	volatile int64 launcher_ended_at;	/* when the launcher ended, or the server started */
	volatile int64 since;		/* when the first launcher started, after recovery; 0: not yet */
	pg_atomic_uint64 guest_since;	/* since when a helper waits for a slot, see room.c; 0: none waits */
	pg_atomic_uint64 guest_asked;	/* its latest request */
	pg_atomic_uint32 changes;	/* number of changes of databases: the launcher lists them again */
	pg_atomic_uint32 forget;	/* the launcher has all databases checked again */
	pg_atomic_uint64 logged[LOG_BUCKETS];	/* see trouble.c */
	AqDatabase	databases[FLEXIBLE_ARRAY_MEMBER];
} JobsArea;

extern JobsArea *aq_jobs_area;

/* jobs.c */
extern void aq_jobs_define_parameters(void);
extern Size aq_jobs_shmem_size(void);
extern void aq_jobs_shmem_init(void *area, bool found);
extern void aq_jobs_wake_launcher(void);
extern AqDatabase *aq_jobs_own_database(void);
extern void aq_jobs_post_to(AqDatabase *db);
extern bool aq_jobs_ask(Oid database, bool *asked);
extern void aq_jobs_forget_database(Oid database, bool unused_only);
extern AqDatabase *aq_jobs_stop(Oid database);
extern void aq_jobs_stop_over(AqDatabase *db, Oid database);
extern bool aq_jobs_is_coming(const AqDatabase *db, int64 now);
extern bool aq_jobs_start_worker(AqDatabase *db);
extern bool aq_jobs_is_due(AqDatabase *db);
extern AqDatabase *aq_jobs_claim(Oid database);
extern bool aq_jobs_begin_answer(AqDatabase *db);
extern void aq_jobs_used(AqDatabase *db);
extern void aq_jobs_unused(AqDatabase *db);
extern void aq_jobs_worker_ended(AqDatabase *db, AqWorkerEnd end);
extern void aq_jobs_note_error(const char *message);
extern void aq_jobs_post_check(void);
extern void aq_jobs_post_databases(void);
extern void aq_jobs_database_wanted(Oid database);
extern void aq_jobs_database_gone(Oid database);
extern bool aq_jobs_lower_time(AqDatabase *db, TimestampTz when);

/* job.c */
extern void aq_job_enter_worker(void);
extern void aq_job_lose_patience(void);

/* stuck.c */
extern Size aq_stuck_shmem_size(void);
extern void aq_stuck_shmem_init(void *area, bool found);
extern void aq_stuck_register(void);
extern void aq_stuck_committed(void);
extern int64 aq_stuck_take_ended(AqStuckKind kind, Oid *role);

/* fair.c */
extern void aq_fair_define_parameters(void);

/* room.c, for the launcher only */
extern void aq_room_want(AqDatabase *db);
extern int	aq_room_compare(const ListCell *a, const ListCell *b);
extern bool aq_room_has_guest(void);
extern bool aq_room_guest_is_first(const AqDatabase *db);
extern void aq_room_make(int wanted, int64 *next);

/* workers.c */
extern const char *aq_workers_state(AqDatabase *db);

/* launcher.c */
extern void aq_launcher_register(void);

/* utility.c */
extern void aq_utility_install(void);

/* --- owner.c */
extern void aq_owner_enter(void);
extern void aq_owner_leave(void);
extern void aq_owner_guard(Node *command);

#endif							/* AQ_JOBS_PRIVATE_H */
