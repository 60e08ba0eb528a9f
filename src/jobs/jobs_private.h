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

typedef struct AqDatabase
{
	Oid			oid;			/* InvalidOid: unused; latch "database directory" */
	bool		starting;		/* registered, not running yet; same latch */
	bool		stop;			/* the worker is asked to end */
	int			worker_pid;		/* 0: none; set by the worker */
	struct PGPROC *volatile worker_proc;
	pg_atomic_uint32 work;		/* something was posted */
	pg_atomic_uint64 next_at;	/* earliest time a job asked for; 0: none */
	AqCond		ended;			/* the worker has ended */
} AqDatabase;

typedef struct JobsArea
{
	AqLatch		latch;
	AqDatabase	databases[FLEXIBLE_ARRAY_MEMBER];
} JobsArea;

/* jobs.c */
extern AqDatabase *aq_jobs_database(Oid database);
extern AqDatabase *aq_jobs_own_database(void);
extern bool aq_jobs_lower_time(AqDatabase *db, TimestampTz when);
extern void aq_jobs_forget_database(Oid database);

/* utility.c */
extern void aq_jobs_install_utility_hook(void);

#endif							/* AQ_JOBS_PRIVATE_H */
