/*-------------------------------------------------------------------------
 *
 * store.h
 *	  The second door of part "queue": what a store of messages must do.
 *
 * The queue part checks names, rights and options; a store keeps messages.
 * Included through queue.h.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_STORE_H
#define AQ_STORE_H

/* What the messages of one put have in common.  Nulls: NULL pointers, 0 times. */
typedef struct AqPutOptions
{
	int			priority;
	int64		producer;		/* in place of the session's identity; 0: none */
	TimestampTz ready_at;		/* 0: at once */
	int64		delay;			/* microseconds that ready_at was computed with */
	TimestampTz expires_at;		/* 0: never */
	struct varlena *correlation;	/* text */
	struct varlena *properties; /* jsonb */
	struct varlena *sender;		/* text */
	struct varlena *exception_queue;	/* text */
	int32		exception_queue_id;	/* the queue of this name; 0: none */
	const pg_uuid_t *original_id;
	/* of a message moved to an exception queue */
	int			attempts;
	struct varlena *original_queue; /* text */
	struct varlena *reason;		/* text */
	/* against the order */
	bool		top;			/* before all others */
	const pg_uuid_t *before;	/* this one */
} AqPutOptions;

/* A message's place in its store, for going on behind it. */
typedef struct AqPlace
{
	int64		key[3];
} AqPlace;

typedef enum AqMode
{
	AQ_MODE_BROWSE,
	AQ_MODE_LOCKED,
	AQ_MODE_REMOVE,
	AQ_MODE_REMOVE_NODATA,
	AQ_MODE_PURGE				/* remove, for the log a purge; no data */
} AqMode;

/* One message handed out; good during the callback only. */
typedef struct AqMessage
{
	pg_uuid_t	id;
	int			priority;
	int			shard;
	int64		ordinal;
	int64		session_id;
	TimestampTz enqueue_time;
	TimestampTz ready_at;		/* 0: none */
	TimestampTz expires_at;		/* 0: none */
	int			attempts;
	Datum		payload;
	bool		payload_null;
	struct varlena *correlation;
	struct varlena *properties;
	struct varlena *sender;
	struct varlena *exception_queue;
	int32		exception_queue_id; /* 0: none */
	pg_uuid_t  *original_id;
	struct varlena *original_queue;
	int			state;			/* Oracle's number: 0 ready, 1 waiting, 3 expired */
	int64		group;			/* of messages that belong together; 0: none */
	AqPlace		place;
} AqMessage;

typedef struct AqTakeOptions
{
	int			position;		/* of the consumer; 0 in single-consumer queues */
	uint32		max;
	AqMode		mode;
	const pg_uuid_t *id;		/* exactly this one; NULL: any */
	const pg_uuid_t *after;		/* behind this one; NULL: from the head; sharded: browse only */
	const AqPlace *place;		/* of after, where it is known */
	int			below;			/* more urgent than this only; 0: any; sharded */
	int64		group;			/* this one only; 0: any */
	int64		not_group;
	bool		one_group;		/* not more than one */
	bool		(*filter) (void *arg, const AqMessage *message);	/* NULL: all */
	void	   *filter_arg;
	void		(*emit) (void *arg, const AqMessage *message);	/* NULL: only count */
	void	   *emit_arg;
} AqTakeOptions;

typedef enum AqAnswer
{
	AQ_NO, AQ_YES, AQ_CANNOT_SAY
} AqAnswer;

/* What the worker does for a queue when this bit of AqQueueShm.work is set. */
typedef struct AqStoreJob
{
	uint32		work;			/* AQ_WORK_*; 0: asked for by time */
	void		(*run) (int32 id, AqQueueShm *shm);
} AqStoreJob;

/*
 * A store's share in the end of a transaction.  store_xact.c calls them, in the
 * phases of AqXactOps; also when the transaction has not used the store.  The
 * pins of the session's queues outlast them.
 */
typedef struct AqStoreXact
{
	bool		(*has_notes) (void);	/* then the time of the commit is booked */
	void		(*pre_commit) (void);	/* may raise and wait */
	void		(*commit) (void);
	void		(*pre_prepare) (void);	/* may raise and wait; no definition has changed */
	void		(*prepare) (void);
	void		(*abort) (void);
	void		(*subcommit) (SubTransactionId subid, SubTransactionId parent);
	void		(*subabort) (SubTransactionId subid);
} AqStoreXact;

/*
 * For aq.metrics(): what a consumer has before it, added to by each store of the
 * queue.  Only what the consumer is not done with, of committed enqueues.
 */
typedef struct AqMeasure
{
	int			position;
	int64		ready;
	int64		delayed;		/* also resting after a rollback */
	int64		in_flight;		/* of a store that counts now and then; else it is the rest of the lag */
	TimestampTz oldest;			/* since when the first ready message could be dequeued; 0: none, or not known */
	TimestampTz counted_at;		/* when the store has counted; 0: now */
	bool		known;			/* false: not counted yet */
} AqMeasure;

/*
 * A removed consumer, whose position is to be used again; kept by the worker
 * from the time it has first seen it.
 */
typedef struct AqRemoved
{
	int32		id;				/* of the queue */
	int			position;
	TransactionId horizon;		/* transactions before it may still enqueue for it */
	bool		settled;		/* they have ended */
	int64		mark;			/* the store's own */
} AqRemoved;

/*
 * Each queue has one of the stores: aq_internal.queue.store says which.
 */
typedef struct AqStore
{
	char		kind;			/* AQ_STORE_SHARDED, ... */
	const AqStoreXact *xact;	/* NULL: it notes nothing */
	/* Make the queue's place in shared memory ready; called once, pinned. */
	void		(*load) (AqQueue *queue, AqQueueShm *shm);
	/* Free it; no session can reach it any more.  Must not raise. */
	void		(*unload) (AqQueueShm *shm);
	/*
	 * May it be freed, and loaded again at its next use?  Asked while no
	 * session uses the queue: is all that memory knows in the tables, too?
	 * Must not raise.
	 */
	bool		(*idle) (AqQueueShm *shm);
	/*
	 * Drop all tables of the queue, waiting for their users; raise
	 * AQ_ERR_QUEUE_NOT_EMPTY if there are messages and force is not given.
	 */
	void		(*drop) (AqQueue *queue, bool force);
	/* Wait for those who use its tables, and keep others out until the transaction ends. */
	void		(*lock) (AqQueue *queue);

	/*
	 * Store n messages; targets[i] is the set of consumers' positions, or NULL
	 * in single-consumer queues.
	 */
	void		(*put) (AqQueue *queue, const AqPutOptions *options, uint32 n,
						const Datum *payloads, const bool *nulls,
						Bitmapset *const *targets, pg_uuid_t *ids);
	uint32		(*take) (AqQueue *queue, const AqTakeOptions *options);
	/* Is it the id of a message of this queue, there or not? */
	bool		(*owns) (AqQueue *queue, const pg_uuid_t *id);
	/* Could take() find something now?  Waits for retry counts until then: see aq_retries_await(). */
	bool		(*ready) (AqQueue *queue, int position, int64 until);
	/* Has a prepared transaction messages of it in flight? */
	bool		(*in_doubt) (AqQueueShm *shm);
	/*
	 * Is nothing of the removed consumer left?  Asked by the worker, again
	 * and again, in a transaction; transactions that may enqueue for it have
	 * ended when removed->settled.
	 */
	bool		(*free_position) (AqQueue *queue, AqRemoved *removed);
	/*
	 * Do the counters of its consumers say all that the tables hold for them?
	 * Not yet after a restart, and not while prepared transactions have messages.
	 */
	bool		(*counts_all) (AqQueueShm *shm);
	/*
	 * Those of the positions for which the tables hold nothing that a consumer is
	 * not done with.  NULL: the counters are exact.
	 */
	Bitmapset  *(*without_messages) (AqQueue *queue, Bitmapset *positions);
	/* The worker's jobs, in their order; time_job when aq_work_announce_time() has said so. */
	const AqStoreJob *jobs;
	int			njobs;
	AqStoreJob	time_job;
	/*
	 * The tables of a queue table, whose owner may read them; only of a store
	 * whose queues share one.
	 */
	void		(*make_tables) (int32 queue_table_id, Oid payload_type, bool multi, Oid owner);
	void		(*drop_tables) (int32 queue_table_id);
	/* Has the queue anything left in them?  And give up what it shares of them. */
	bool		(*table_holds) (AqQueue *queue);
	void		(*leave_tables) (AqQueue *queue);
	/*
	 * Of a buffered queue, by the worker: has it lost its messages since this was
	 * asked last?
	 */
	AqAnswer	(*was_emptied) (AqQueue *queue);
	/* Of a buffered queue: how many messages has this transaction enqueued? */
	uint64		(*enqueued_here) (AqQueueShm *shm);
	/*
	 * Asked by the worker before it puts: is put(), or the commit, sure not to
	 * wait, for the worker itself or for a user?  NULL: always.
	 */
	bool		(*worker_may_put) (AqQueue *queue);
	/*
	 * For aq.metrics().  The queue is pinned.  Does not wait for what users
	 * hold; may read tables.
	 */
	void		(*measure) (AqQueue *queue, AqMeasure *measures, int n);
	/*
	 * For aq.check(), each NULL when there is nothing to say.  check: what of
	 * the queue, which is pinned, does not agree with its tables; check_pool:
	 * what of all queues does not agree with itself; chunks: of the message
	 * cache, that the queue has, pinned or not.
	 */
	void		(*check) (AqQueue *queue, AqFindings *findings);
	void		(*check_pool) (AqFindings *findings);
	uint32		(*chunks) (AqQueueShm *shm);
} AqStore;

#define AQ_STORE_SHARDED 's'
#define AQ_STORE_CLASSIC 'c'
#define AQ_STORE_BOTH 'b'		/* converted from the second to the first: see convert.c */

/* The part that implements a store registers it when its parameters are defined. */
extern void aq_store_register(const AqStore *store);
extern const AqStore *aq_store_of(char kind);

/* A message's consumers as a column of its row. */
extern bytea *aq_store_targets_to_bytes(const Bitmapset *targets);

/* memory/exception.c: the worker puts a failed message into its exception queue */
extern bool aq_exception_pin(AqQueue *target);
extern bool aq_exception_put(AqQueue *target, AqPutOptions *options, Datum payload, bool isnull);

#endif							/* AQ_STORE_H */
