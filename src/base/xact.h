/*-------------------------------------------------------------------------
 *
 * xact.h
 *	  What the parts do at the end of a transaction, and in which order.
 *
 * Included through base.h.  A part fills an AqXactOps, and hands it in under
 * its rank when its parameters are defined.  In each phase the ranks are called
 * in the order in which they stand below, whatever the order in which the
 * parts have handed in.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_XACT_H
#define AQ_XACT_H

/* The order within a phase.  A rank may use what the ranks before it have finished. */
typedef enum AqXactRank
{
	AQ_XACT_LATCHES,			/* an error may have left some held, which the others take */
	AQ_XACT_CLAIMS,				/* the session's part in work on a queue ends before its messages are settled */
	AQ_XACT_STATISTICS,			/* an open operation is the commit itself, which the queues close */
	AQ_XACT_SNAPSHOTS,			/* settings of snapshots: the worker is told */
	AQ_XACT_QUEUES,				/* messages, definitions, pins: see queue/memory/store_xact.c */
	AQ_XACT_JOBS,				/* the extension is gone: the worker is told, after the queues */
	AQ_XACT_ROWS,				/* the dictionary cache, which depends on none of them */
	AQ_XACT_RANKS
} AqXactRank;

/*
 * The phases.  NULL: nothing to do.  Unless said otherwise, a function must
 * neither raise an error, nor allocate memory, nor wait for a transaction.
 * They are called in every session, also in one that has not attached.
 */
typedef struct AqXactOps
{
	void		(*pre_commit) (void);	/* may raise and wait; the transaction may still roll back */
	void		(*commit) (void);	/* committed, visible, locks still held */
	void		(*pre_prepare) (void);	/* may raise and wait */
	void		(*prepare) (void);	/* prepared; it ends later, in any session, without a phase */
	void		(*abort) (void);
	void		(*parallel_abort) (void);	/* in a parallel worker, whose transaction is another process's */
	void		(*subcommit) (SubTransactionId subid, SubTransactionId parent);
	void		(*subabort) (SubTransactionId subid, SubTransactionId parent);
	/*
	 * The locks are released, and PostgreSQL's own caches know of the changes.
	 * Prepared counts as committed.
	 */
	void		(*released) (bool commit);
} AqXactOps;

/* Once per rank, before the first transaction.  The struct must live as long as the process. */
extern void aq_xact_register(AqXactRank rank, const AqXactOps *ops);

#endif							/* AQ_XACT_H */
