/*-------------------------------------------------------------------------
 *
 * jobs_private.h
 *	  What the files of part "jobs" share.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_JOBS_PRIVATE_H
#define AQ_JOBS_PRIVATE_H

#include "jobs/jobs.h"

#include "port/atomics.h"

/* times here are of aq_clock_us(), which is never set back */

/* how long a worker that was registered may take to come, microseconds */
#define START_PATIENCE ((int64) 10000000)

typedef struct AqDatabase
{
	/* under the latch "database directory" */
	Oid			oid;			/* InvalidOid: the entry is free */
	bool		used;			/* pgaq is used here: there shall be a worker */
	int64		asked_at;		/* a worker was registered then, and has not come; 0: none */
	int			stops;			/* commands that want the database without a worker */

	int			worker_pid;		/* 0: none; from before it connects */
	int64		rest_until;		/* the launcher starts no other one before */
	struct PGPROC *volatile worker_proc;
	pg_atomic_uint32 work;		/* something was posted */
	pg_atomic_uint32 check;		/* the extension may be gone */
	pg_atomic_uint64 next_at;	/* earliest time a job asked for; 0: none */
	AqCond		ended;			/* the worker has ended */
} AqDatabase;

typedef struct JobsArea
{
	AqLatch		latch;
	struct PGPROC *volatile launcher_proc;
	AqDatabase	databases[FLEXIBLE_ARRAY_MEMBER];
} JobsArea;

extern JobsArea *aq_jobs_area;
extern int	aq_jobs_max_databases;

/* jobs.c */
extern void aq_jobs_define_parameters(void);
extern Size aq_jobs_shmem_size(void);
extern void aq_jobs_shmem_init(void *area, bool found);
extern void aq_jobs_wake_launcher(void);
extern AqDatabase *aq_jobs_database(Oid database);
extern void aq_jobs_forget_database(Oid database, bool unused_only);
extern AqDatabase *aq_jobs_stop(Oid database);
extern void aq_jobs_stop_over(AqDatabase *db, Oid database);
extern bool aq_jobs_is_coming(const AqDatabase *db, int64 now);
extern bool aq_jobs_start_worker(AqDatabase *db);
extern AqDatabase *aq_jobs_claim(Oid database);
extern void aq_jobs_used(AqDatabase *db);
extern void aq_jobs_unused(AqDatabase *db);
extern void aq_jobs_post_check(void);
extern void aq_jobs_database_gone(Oid database);
extern bool aq_jobs_lower_time(AqDatabase *db, TimestampTz when);

/* job.c */
extern void aq_job_enter_worker(void);

/* launcher.c */
extern void aq_launcher_register(void);

/* utility.c */
extern void aq_utility_install(void);

#endif							/* AQ_JOBS_PRIVATE_H */
