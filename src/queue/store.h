/*-------------------------------------------------------------------------
 *
 * store.h
 *	  The second public header of part "queue": the interface of a store of
 *	  messages.
 *
 * The queue part checks names, privileges and options; a store keeps messages.
 * Included through queue.h.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_STORE_H
#define AQ_STORE_H

/*
 * Properties common to the messages of one put.  Nulls are NULL pointers and
 * times of 0.
 */
typedef struct AqPutOptions
{
	int			priority;
	int64		producer;		/* used instead of the session's identity; 0: none */
	uint64		affinity;		/* chooses the shard instead of the session's number; 0: none */
	TimestampTz ready_at;		/* 0: at once */
	int64		delay;			/* the delay in ready_at, in microseconds */
	TimestampTz expires_at;		/* 0: never */
	struct varlena *correlation;	/* text */
	struct varlena *key;		/* text, not compressed or out of line: see calls/message_key.c */
	bool		key_is_group;	/* it is only JMSXGroupID: a table of 0.1.0 takes the message without it */
	struct varlena *properties; /* jsonb */
	struct varlena *sender;		/* text */
	struct varlena *exception_queue;	/* text */
	int32		exception_queue_id; /* id of the queue with this name; 0: none */
	const pg_uuid_t *original_id;
	/* for a message moved to an exception queue */
	int			attempts;
	struct varlena *dead_letter;	/* jsonb: see memory/exception.c */
	bool		immediate;		/* one message, committed when put() returns: only if settle_taken is there */
	/* sequence deviation, in queue tables only */
	bool		top;			/* put it before all others */
	const pg_uuid_t *before;	/* this one */
	int			held;			/* with units: the shard for messages of another node; 0: none */
	/*
	 * NULL, or the options of each message: their correlations, keys, properties,
	 * exception queues, original ids, attempts and dead letters are used
	 * instead of these
	 */
	const struct AqPutOptions *each;
} AqPutOptions;

/* A message's position in its store, for continuing after it. */
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
	AQ_MODE_MOVE,				/* remove, to put it into another queue: a rollback is not an attempt */
	AQ_MODE_PURGE,				/* remove, for the log a purge; no data */
	AQ_MODE_LEASE,				/* remove, but only for a time: notes of a store, not an option */
	/* acknowledge, extend, release or reject leased messages: AqLeaseOptions */
	AQ_MODE_ACKNOWLEDGE,
	AQ_MODE_EXTEND,
	AQ_MODE_RELEASE,
	AQ_MODE_UNSEEN,				/* release, without counting the attempt */
	AQ_MODE_REJECT
} AqMode;

/* --- memory/traffic.c: what stores count when transactions commit */
extern void aq_traffic_lease(AqMode mode, uint64 n);

/*
 * The number and the enqueue times of messages that a transaction has
 * consumed.
 */
typedef struct AqConsumed
{
	uint64		n;
	uint64		times;			/* sum, modulo 2^64 */
	TimestampTz last;			/* of the message taken last */
} AqConsumed;

static inline void
aq_consumed_add(AqConsumed *consumed, TimestampTz enqueued)
{
	consumed->n++;
	consumed->times += (uint64) enqueued;
	consumed->last = enqueued;
}

static inline void
aq_consumed_join(AqConsumed *consumed, const AqConsumed *more)
{
	consumed->n += more->n;
	consumed->times += more->times;
	if (more->n > 0)
		consumed->last = more->last;
}

/*
 * How long messages have waited: since they were enqueued, or since the end of their
 * delay, until they were taken.  The commit that made them visible is not in their
 * rows.  They are counted in units of 128 microseconds.
 */
#define AQ_LATENCY_SHIFT 7
#define AQ_LATENCY_UNIT (INT64CONST(1) << AQ_LATENCY_SHIFT)

static inline void
aq_latency_add(AqHistNote *latencies, TimestampTz now, TimestampTz enqueued, TimestampTz ready_at)
{
	int64		waited = now - Max(enqueued, ready_at);

	/* it can have been enqueued since the search began */
	aq_hist_note(latencies, Max(waited, 0), AQ_LATENCY_SHIFT, 1);
}

/*
 * Counts messages whose dequeue was committed now.  latencies is NULL for a prepared
 * transaction, of which they are not kept: the messages count with their mean until
 * now.  Never raises an error.
 */
extern void aq_traffic_dequeued(AqQueueShm *shm, int position, const AqConsumed *consumed, const AqHistNote *latencies);

/*
 * Called by stores when transactions commit; they never raise errors.  They
 * count messages of the queue, with the numbers of those that have a delay or
 * an expiration; messages for a consumer; messages that a consumer has
 * finished, that have failed, or that became ready after a delay.
 */
extern void aq_traffic_put(AqQueueShm *shm, uint64 n, uint64 delayed, uint64 expiring, TimestampTz when);
extern void aq_traffic_enqueued(AqQueueShm *shm, int position, uint64 n, TimestampTz when);
extern void aq_traffic_done(AqQueueShm *shm, int position, uint64 n);
extern void aq_traffic_found(AqQueueShm *shm, int position, uint64 n);	/* found when the queue was loaded */
extern void aq_traffic_failed(AqQueueShm *shm, int position, uint64 n, TimestampTz when);
extern void aq_traffic_ready(AqQueueShm *shm, uint64 n, TimestampTz when);

/* One returned message; valid only during the callback. */
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
	struct varlena *key;
	struct varlena *properties;
	struct varlena *sender;
	struct varlena *exception_queue;
	int32		exception_queue_id; /* 0: none */
	pg_uuid_t  *original_id;
	struct varlena *dead_letter;	/* jsonb */
	int			state;			/* Oracle's number: 0 ready, 1 waiting, 3 expired */
	int64		group;			/* message group; 0: none */
	AqPlace		place;
	int64		receipt;		/* of the lease it is taken with; 0: none */
} AqMessage;

#define AQ_ANY_POSITION (-2)

/*
 * Up to where a call that waits has found nothing: no message before is one that it
 * wants, as long as none becomes ready there again.  Zeros before its first search.
 */
#define AQ_SEEN_STREAMS 32

typedef struct AqSeen
{
	int			n;
	struct AqSeenStream
	{
		uint32		stream;
		int			position;
		uint64		returns;	/* the stream's, when the latest search began */
		int64		before;		/* an ordinal */
	}			streams[AQ_SEEN_STREAMS];
} AqSeen;

/*
 * A dequeue with immediate visibility: take() begins it, and settle_taken()
 * ends it.
 */
typedef struct AqImmediate
{
	const struct AqStore *store;
	AqQueueShm *shm;			/* NULL: nothing was taken */
	int			position;
	uint32		number;			/* of the call in this session; for use by the store */
	bool		begins;			/* the transaction became a user of the queue by it */
} AqImmediate;

typedef struct AqTakeOptions
{
	int			position;		/* of the consumer; 0 in single-consumer queues */
	uint32		max;
	AqMode		mode;
	int64		lease;			/* microseconds; 0: none.  Mode remove or remove_nodata */
	const pg_uuid_t *id;		/* only this message; NULL: any */
	const pg_uuid_t *after;		/* after this message; NULL: from the head; sharded: browse only */
	bool		patient;		/* the call waits without limit, or redrives: see queue/README.md, "Poison messages" */
	bool	   *outdated;		/* set when the queue's description is too old to find messages; NULL: it is not
								 * asked.  A store may ignore it */
	bool		limited;		/* at most max_running of the consumer's messages are in work.  A store may ignore it */
	bool		waits;			/* the call waits for messages, in its transaction */
	AqImmediate *immediate;		/* what is taken is committed by settle_taken(); NULL: by the transaction */
	bool		(*filter) (void *arg, const AqMessage *message);	/* NULL: all */
	void	   *filter_arg;
	uint32		key;			/* with a filter: only messages with this key, or AQ_ANY_KEY; a store may ignore it */
	AqSeen	   *seen;			/* with a filter that never changes its mind; NULL: look at all; a store may ignore it */
	void		(*emit) (void *arg, const AqMessage *message);	/* NULL: only count */
	void	   *emit_arg;
	/* sharded store only */
	bool		ends;			/* the lease ends with the session, if that comes first */
	int			below;			/* only messages more urgent than this; 0: any */
	int			unit;			/* for another node: only of this shard, plus 1; 0: any */
	/* queue tables only */
	const AqPlace *place;		/* position of "after", if known */
	int64		group;			/* only this group; 0: any */
	int64		not_group;
	bool		one_group;		/* not more than one group */
} AqTakeOptions;

/*
 * Bit 0 of a receipt: the message was leased alone, by a call that could not
 * return another one.
 */
#define AQ_RECEIPT_ALONE INT64CONST(1)

/* What a call does with leased messages. */
typedef struct AqLeaseOptions
{
	int			position;		/* of the consumer */
	AqMode		mode;			/* AQ_MODE_ACKNOWLEDGE and those behind it */
	int64		receipt;
	bool		any_receipt;	/* whatever the receipt is; receipt is 0 */
	int64		time;			/* microseconds: of an extension, or until it can be dequeued again ... */
	bool		retry_delay;	/* ... instead: after the queue's retry delay */
	const char *error;			/* NULL: none */
} AqLeaseOptions;

typedef enum AqLeaseResult
{
	AQ_LEASE_STALE,				/* no such lease runs */
	AQ_LEASE_BUSY,				/* a transaction is about to end or extend it */
	AQ_LEASE_DONE
} AqLeaseResult;

typedef enum AqAnswer
{
	AQ_NO, AQ_YES, AQ_CANNOT_SAY
} AqAnswer;

/*
 * A job of the worker for a queue, run when this bit of AqQueueShm.work is
 * set.
 */
typedef struct AqStoreJob
{
	uint32		work;			/* AQ_WORK_*; 0: timed work */
	void		(*run) (int32 id, AqQueueShm *shm);
} AqStoreJob;

/*
 * A store's functions at the end of a transaction. store_xact.c calls them in
 * the phases of AqXactOps, even if the transaction has not used the store.
 * The session's pins on queues are released after them.
 */
typedef struct AqStoreXact
{
	bool		(*has_notes) (void);	/* if true, the commit is timed as an operation */
	void		(*pre_commit) (void);	/* may raise errors and wait */
	void		(*commit) (void);
	void		(*pre_prepare) (void);	/* may raise errors and wait; no definition has changed */
	void		(*prepare) (void);
	void		(*abort) (void);
	void		(*subcommit) (SubTransactionId subid, SubTransactionId parent);
	void		(*subabort) (SubTransactionId subid);
} AqStoreXact;

/*
 * For aq.metrics(): a consumer's unfinished messages, from committed enqueues.
 * Each store of the queue adds its numbers.
 */
typedef struct AqMeasure
{
	int			position;
	int64		ready;
	int64		delayed;		/* including those that wait for a retry delay */
	int64		in_flight;		/* set by a store that counts periodically; otherwise the remainder of the lag */
	int64		leased;			/* part of those in flight */
	TimestampTz oldest;			/* when the first ready message became ready; 0: none, or not known */
	TimestampTz counted_at;		/* when the store counted; 0: now */
	bool		known;			/* false: the messages found at the first use are not all counted yet */
	bool		counted;		/* false: a store that counts periodically has not counted yet */
} AqMeasure;

/*
 * A removed consumer, whose position will be reused.  The worker keeps it from
 * its first check on.
 */
typedef struct AqRemoved
{
	int32		id;				/* of the queue */
	int			position;
	int64		number;			/* of the consumer */
	uint32		generation;		/* of the queue's users; it and earlier ones may still enqueue for the consumer */
	TransactionId horizon;		/* of a distributed queue: the same of earlier transactions */
	bool		settled;		/* these have ended */
	bool		finished;		/* for use by the sharded store */
	int64		mark;
} AqRemoved;

/* The result of writing a chunk of a body. */
typedef enum AqBodyWrite
{
	AQ_BODY_WRITTEN,
	AQ_BODY_NOT_OWN,			/* this transaction has not enqueued the message */
	AQ_BODY_IS_THERE			/* it has written a chunk with this number */
} AqBodyWrite;

/* A message that this node holds of another one, and that its consumer has finished with. */
typedef struct AqFinished
{
	pg_uuid_t	origin_id;		/* its id there */
	int64		number;			/* of the partition */
	uint32		partition;
	uint16		slot;
} AqFinished;

/*
 * For part "node": see its README.  A unit is a shard and a consumer's position;
 * a shard with messages of another node has one consumer.  The queue is pinned.
 */
typedef struct AqStoreUnits
{
	/* Ids of the unit's messages that another node has, in an array; their number. */
	uint32		(*lent) (AqQueue *queue, int shard, int position, pg_uuid_t **ids);
	/* Like settle_leases, for messages that another node has. */
	void		(*settle_lent) (AqQueue *queue, const AqLeaseOptions *options, const pg_uuid_t *ids, uint32 n,
								AqLeaseResult *results);
	/* The number of leased messages of the shard, as far as memory knows it. */
	uint32		(*count_lent) (AqQueue *queue, int shard, int position);

	/*
	 * The number of ready messages of the unit, as far as memory knows it; not 0 if it is not known whether there is
	 * one.
	 */
	uint32		(*count_ready) (AqQueue *queue, int shard, int position);
	/* Messages of another node that were finished with, durably, and are not reported yet; at most max. */
	uint32		(*finished) (AqQueue *queue, int shard, AqFinished *list, uint32 max);
	/* They were reported, in the current transaction; false: try again, a user has locked a table. */
	bool		(*reported) (AqQueue *queue, int shard, const AqFinished *list, uint32 n);
	/* Does no transaction, prepared or not, and no lease have one of its messages, and no attempt wait to be counted? */
	bool		(*is_quiet) (AqQueue *queue, int shard);
	/* Which of the ids at the origin, sorted by their bytes, are those of messages in the shard? */
	void		(*find) (AqQueue *queue, int shard, const pg_uuid_t *ids, uint32 n, bool *known);
	/* Drops what is left in the shard, in the current transaction; false: try again, as above. */
	bool		(*forget) (AqQueue *queue, int shard);
	/* What is left in the shard is reported no more, but stays; the same. */
	bool		(*adopt) (AqQueue *queue, int shard);
	/* Is there nothing in the shard? */
	bool		(*is_empty) (AqQueue *queue, int shard);
} AqStoreUnits;

/* Chunks of a body that a message has apart from its payload, each number once. */
typedef struct AqStoreBodies
{
	/* Also says why it has not written. */
	AqBodyWrite (*write) (AqQueue *queue, const pg_uuid_t *id, int32 number, bytea *data);
	/*
	 * A chunk as it is now, also of a message that this transaction has
	 * dequeued; NULL: there is none, or the message is not for the consumer at
	 * the position, which can be AQ_ANY_POSITION.
	 */
	bytea	   *(*read) (AqQueue *queue, const pg_uuid_t *id, int32 number, int position);
} AqStoreBodies;

/* Tables that several queues share, or that are not logged: queue tables, and the tables of buffered queues. */
typedef struct AqStoreTables
{
	/* Creates the tables of a queue table, whose owner may read them. */
	void		(*make) (int32 queue_table_id, Oid payload_type, bool multi, Oid owner);
	void		(*drop) (int32 queue_table_id);
	/* Has the queue any rows left in them? */
	bool		(*hold) (AqQueue *queue);
	/* Before the queue leaves its queue table: deletes the rows of removed consumers. */
	void		(*leave) (AqQueue *queue);
	/* For a buffered queue, called by the worker: has it lost its messages since the last call? */
	AqAnswer	(*were_emptied) (AqQueue *queue);
} AqStoreTables;

/* For aq.check(). */
typedef struct AqStoreChecks
{
	/* Finds differences between the queue, which is pinned, and its tables; NULL: there is nothing to compare. */
	void		(*queue) (AqQueue *queue, AqFindings *findings);
	/* Finds inconsistencies of all queues; NULL: there is nothing that they share. */
	void		(*pool) (AqFindings *findings);
	/* The number of chunks of the message cache that the queue has, pinned or not. */
	uint32		(*chunks) (AqQueueShm *shm);
} AqStoreChecks;

/*
 * Each queue has one of the stores, given by aq_internal.queue.store.  A function or a
 * group that a comment does not call optional is always there; an optional one is NULL
 * in a store that cannot do it.  A queue that is being converted has a store without
 * jobs and measure: callers use those of its two stores.
 */
typedef struct AqStore
{
	char		kind;			/* AQ_STORE_SHARDED, ... */
	const AqStoreXact *xact;	/* optional: notes of a transaction */
	/*
	 * Fills in the queue's entry in shared memory; called once, with the queue
	 * pinned.
	 */
	void		(*load) (AqQueue *queue, AqQueueShm *shm);
	/*
	 * The name of a table that is missing, without which load raises an error;
	 * NULL: none.  Optional.
	 */
	char	   *(*lost_table) (const AqQueue *queue);
	/*
	 * Frees the entry; no session can reach it.  Must not raise an
	 * error.
	 */
	void		(*unload) (AqQueueShm *shm);
	/*
	 * May the entry be freed, and loaded again at the next use, because the
	 * tables have all its information?  Called while no session uses the
	 * queue.  Must not raise an error.
	 */
	bool		(*idle) (AqQueueShm *shm);
	/*
	 * Drops all tables of the queue, waiting for their users; raises
	 * AQ_ERR_QUEUE_NOT_EMPTY if there are messages and force is false.
	 */
	void		(*drop) (AqQueue *queue, bool force);
	/*
	 * Locks the queue's tables exclusively until the end of the transaction,
	 * waiting for their users.
	 */
	void		(*lock) (AqQueue *queue);

	/*
	 * Stores n messages; targets[i] is the set of consumers' positions, or
	 * NULL in single-consumer queues.
	 */
	void		(*put) (AqQueue *queue, const AqPutOptions *options, uint32 n,
						const Datum *payloads, const bool *nulls,
						Bitmapset *const *targets, pg_uuid_t *ids);
	uint32		(*take) (AqQueue *queue, const AqTakeOptions *options);
	/*
	 * Commits what a take with immediate visibility has taken: durable, and
	 * final whatever happens to the transaction.  Optional: immediate
	 * visibility without another transaction.
	 */
	void		(*settle_taken) (AqImmediate *immediate);
	/*
	 * Purges consumed messages that are still in the tables.  position -1: of
	 * all consumers; ids NULL: all.  Optional: rows of queue tables are deleted
	 * by aq_admin_purge_processed().
	 */
	uint64		(*purge_retained) (AqQueue *queue, int position, const pg_uuid_t *ids, uint32 n);
	/* Acknowledge, extend or end leases. */
	void		(*settle_leases) (AqQueue *queue, const AqLeaseOptions *options, const pg_uuid_t *ids, uint32 n,
								  AqLeaseResult *results);
	/*
	 * Is it the id of a message of this queue, whether the message still
	 * exists or not?
	 */
	bool		(*owns) (AqQueue *queue, const pg_uuid_t *id);
	/*
	 * How many consumers have not finished the message; 0: it is done, or does
	 * not exist.  loads: false: not 0 if it is not in memory.  Optional: without
	 * it, messages have no unique keys.
	 */
	uint32		(*unfinished) (AqQueue *queue, const pg_uuid_t *id, bool loads);
	/*
	 * Could take() find a message now?  Waits for retry counts until this
	 * time: see aq_retries_await().
	 */
	bool		(*ready) (AqQueue *queue, int position, int64 until);
	/* Has a prepared transaction messages of the queue in flight? */
	bool		(*in_doubt) (AqQueueShm *shm);
	/*
	 * Is nothing of the removed consumer left?  Called by the worker
	 * periodically, in a transaction; when removed->settled is true,
	 * transactions that may enqueue for the consumer have ended.
	 */
	bool		(*free_position) (AqQueue *queue, AqRemoved *removed);
	/*
	 * Do the consumers' counters include all messages in the tables?  Not
	 * before they were counted after a restart, and not while prepared
	 * transactions have messages.
	 */
	bool		(*counts_all) (AqQueueShm *shm);
	/*
	 * Those of the positions that have no unfinished messages in the tables.
	 * Optional: without it the counters are exact.
	 */
	Bitmapset  *(*without_messages) (AqQueue *queue, Bitmapset *positions);
	/*
	 * The worker's jobs, in order; time_job runs at the time given by
	 * aq_work_announce_time().
	 */
	const AqStoreJob *jobs;
	int			njobs;
	AqStoreJob	time_job;
	/*
	 * The number of messages of the queue that this transaction has enqueued, and
	 * of those that its commit finishes for the consumer.
	 */
	uint64		(*enqueued_here) (const AqQueueShm *shm);
	uint64		(*finished_here) (const AqQueueShm *shm, int position);
	/*
	 * Do the counters include the messages that were there before a restart?
	 * Optional: without it, always.
	 */
	bool		(*is_counted) (AqQueueShm *shm);
	/*
	 * Called by the worker before put(): is it certain that neither put() nor
	 * the commit waits for the worker itself or for a user, and, if the message
	 * has a key (keyed), that there is a column for it?  Optional: without it,
	 * always.
	 */
	bool		(*worker_may_put) (AqQueue *queue, bool keyed);
	/*
	 * For aq.metrics().  The queue is pinned.  Does not wait for locks of
	 * users; may read tables.  quick: for the worker, whose other jobs wait; what
	 * takes more than a look at one row is not known, or not counted.
	 */
	void		(*measure) (AqQueue *queue, AqMeasure *measures, int n, bool quick);
	const AqStoreBodies *bodies;	/* large messages */
	const AqStoreTables *tables;	/* optional: queue tables, buffered queues */
	const AqStoreUnits *units;	/* optional: other nodes can consume its messages */
	const AqStoreChecks *checks;	/* optional */
} AqStore;

#define AQ_STORE_SHARDED 's'
#define AQ_STORE_CLASSIC 'c'
#define AQ_STORE_BOTH 'b'		/* converted from the second to the first: see convert.c */

/*
 * Called by the part that implements a store, when its parameters are defined.
 */
extern void aq_store_register(const AqStore *store);
extern const AqStore *aq_store_of(char kind);

/* A message's consumers as a column of its row. */
extern bytea *aq_store_targets_to_bytes(const Bitmapset *targets);

/*
 * memory/exception.c: for the worker, to put a failed message into an
 * exception queue
 */
extern bool aq_exception_pin(AqQueue *target);
extern bool aq_exception_may_put(AqQueue *target, bool keyed);
extern bool aq_exception_put(AqQueue *source, const pg_uuid_t *id, AqQueue *target, AqPutOptions *options, uint32 n,
							 Datum payload, bool isnull);

/* memory/users.c: sessions whose transactions keep memory of the message cache; never raises */
extern void aq_users_show_keeping(bool keeps);
extern bool aq_users_are_keeping(int session);

/* memory/message_body.c: bodies of large messages, apart from their payloads */
extern bool aq_message_body_is_apart(Oid type, Datum payload, bool isnull);
extern void aq_message_body_copy(AqQueue *from, const pg_uuid_t *id, int position, AqQueue *to, const pg_uuid_t *copy);

/* AqDeath.kind, in the log of a sharded queue and in the rows of a queue table */
#define AQ_DEATH_REJECTED	'j'
#define AQ_DEATH_RETRIES	'r' /* it was rolled back or released, and had too many attempts, or has expired */
#define AQ_DEATH_LEASE		'l' /* its lease was over, and the same */

/* Why and when a message has failed for a consumer. */
typedef struct AqDeath
{
	int			position;		/* of the consumer */
	char		kind;			/* AQ_DEATH_* */
	const char *error;			/* the latest one; NULL: not known */
	TimestampTz first;			/* attempt that failed; 0: none */
	TimestampTz last;			/* the latest one */
	TimestampTz died;
	int			attempts;
} AqDeath;

extern int	aq_message_key_shard(const struct varlena *key, int shards);
extern void aq_exception_letter(AqQueue *source, const AqMessage *m, const AqDeath *death, AqPutOptions *options);

extern Oid	aq_schema_data_table(const char *name); /* like aq_schema_data_relation(), if it is a table */
extern bool aq_schema_has_column(Oid table, int column);
pg_noreturn extern void aq_catalog_refuse_row(const char *queue, Oid table, const char *column, int64 value);

/* Does the consumer at the position get no messages, because of aq.pause? */
static inline bool
aq_queue_is_paused(const AqQueue *queue, int position)
{
	return queue->has_paused && aq_description_pauses(queue, position);
}

/* max_running of the consumer at the position; 0: it has no limit. */
static inline uint32
aq_queue_limit(const AqQueue *queue, int position)
{
	return queue->has_limit ? aq_description_limit(queue, position) : 0;
}

/* Does it get no messages, because max_running are in work? */
static inline bool
aq_queue_is_full(const AqQueue *queue, int position)
{
	uint32		limit = aq_queue_limit(queue, position);

	return limit > 0 && pg_atomic_read_u32(&aq_shm_consumer(queue->shm, position)->in_work) >= limit;
}

/* Has the consumer a bucket, perhaps of a rate that it no longer has? */
static inline bool
aq_rate_is_left(AqQueueShm *shm, int position)
{
	AqConsumerShm *consumer = aq_shm_consumer(shm, position);

	return consumer != NULL && pg_atomic_read_u64(&consumer->next_token) != 0;
}

/* The rate of the consumer at the position; its period is 0 if it has none. */
static inline const AqRate *
aq_queue_rate(const AqQueue *queue, int position)
{
	return queue->has_limit ? aq_description_rate(queue, position) : &queue->each_rate;
}

/* Does it get no messages before the time that its rate determines? */
static inline bool
aq_queue_is_early(const AqQueue *queue, int position)
{
	const AqRate *rate = aq_queue_rate(queue, position);
	AqConsumerShm *consumer = rate->period > 0 ? aq_shm_consumer(queue->shm, position) : NULL;

	return consumer != NULL && aq_rate_tokens(queue, consumer, rate) == 0;
}

/*
 * Has a message with this number of attempts failed?  Not in an exception queue
 * without an exception queue of its own, where it would be dropped.
 */
static inline bool
aq_queue_over_limit(const AqQueue *queue, int attempts)
{
	return queue->max_retries >= 0 && attempts > queue->max_retries &&
		!(queue->exception && queue->exception_queue_id == 0);
}

/* --- messages that have failed: see "Poison messages" in queue/README.md ----------------- */

/* Is the next failure of a message with this number of attempts its last one? */
static inline bool
aq_queue_next_is_last(const AqQueue *queue, int attempts)
{
	return aq_queue_over_limit(queue, attempts + 1);
}

/*
 * The number of messages that a call for max of them returns at most when one
 * of them has this number of attempts.
 */
static inline uint32
aq_queue_batch_limit(const AqQueue *queue, int attempts, uint32 max)
{
	if (attempts == 0)
		return max;
	if (attempts > 15 || aq_queue_next_is_last(queue, attempts))
		return 1;
	if (queue->exception)
		return max;				/* its messages have failed elsewhere */
	return Max(max >> (2 * attempts), 1);
}

#endif							/* AQ_STORE_H */
