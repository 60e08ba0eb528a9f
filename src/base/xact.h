/*-------------------------------------------------------------------------
 *
 * xact.h
 *	  The actions of the parts at the end of a transaction, and their order.
 *
 * Included through base.h.  A part fills in an AqXactOps and registers it
 * under its rank when its parameters are defined.  In each phase the ranks are
 * called in the order in which they are listed below, independent of the order
 * of registration.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_XACT_H
#define AQ_XACT_H

#include "access/xlogdefs.h"

/* The order within a phase.  A rank may use what the ranks before it have finished. */
typedef enum AqXactRank
{
	AQ_XACT_LATCHES,			/* first, because other ranks take latches that an error may have left held */
	AQ_XACT_CLAIMS,				/* the session's claims on a queue end before its messages are settled */
	AQ_XACT_STATISTICS,			/* before the queues, which time the commit as an operation */
	AQ_XACT_SNAPSHOTS,			/* the worker is notified of changed snapshot settings */
	AQ_XACT_NOTIFY,				/* the worker is notified of new registrations and posted notifications */
	AQ_XACT_CLIENTS,			/* the session forgets what it has found before it took notifications */
	AQ_XACT_SCHEDULES,			/* the worker is notified of changed schedules */
	AQ_XACT_NODES,				/* the link worker is notified of changed nodes */
	AQ_XACT_ROWS,				/* the dictionary cache: before the queues, which wake sessions that read it */
	AQ_XACT_QUEUES,				/* messages, definitions, pins: see queue/memory/store_xact.c */
	AQ_XACT_PROPAGATION,		/* the process that propagates is notified of changed schedules */
	AQ_XACT_JOBS,				/* the worker is notified of a dropped extension, after the queues */
	AQ_XACT_LINKS,				/* the link worker is notified of changed servers and user mappings */
	AQ_XACT_RANKS
} AqXactRank;

/*
 * The phases.  NULL: no action.  Unless noted otherwise, a function must not
 * raise an error, allocate memory or wait for a transaction.  The functions
 * are called in every session, even if it has not attached.
 */
typedef struct AqXactOps
{
	void		(*pre_commit) (void);	/* may raise errors and wait; the transaction may still roll back */
	void		(*commit) (void);	/* committed and visible, locks still held */
	void		(*pre_prepare) (void);	/* may raise errors and wait */
	void		(*prepare) (void);	/* prepared; COMMIT PREPARED and ROLLBACK PREPARED call no phase */
	void		(*abort) (void);
	void		(*parallel_abort) (void);	/* abort in a parallel worker; the transaction is the leader's */
	void		(*subcommit) (SubTransactionId subid, SubTransactionId parent);
	void		(*subabort) (SubTransactionId subid, SubTransactionId parent);
	/*
	 * Locks have been released and PostgreSQL's caches invalidated.  A
	 * prepared transaction counts as committed.
	 */
	void		(*released) (bool commit);
} AqXactOps;

/*
 * Called once for each rank, before the first transaction.  The struct must
 * live as long as the process.
 */
extern void aq_xact_register(AqXactRank rank, const AqXactOps *ops);

/*
 * Waits until what was written up to this place is as durable as a commit of the
 * session, by its synchronous_commit.  The caller holds interrupts.
 */
extern void aq_xact_make_durable(XLogRecPtr end);

#endif							/* AQ_XACT_H */
