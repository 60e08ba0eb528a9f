/*-------------------------------------------------------------------------
 *
 * queue.h
 *	  The public header of part "queue": queues, consumers, messages, waiting.
 *
 * A queue is represented by:
 *	AqQueue		 a session's own description of it, read from the catalog and
 *				 read again when the catalog has changed (relcache
 *				 invalidation, so it is transactional);
 *	AqQueueShm	 its entry in shared memory, the value of its object in the
 *				 object cache, pinned by a session from its first use of the queue
 *				 on, see pins.c;
 *	a store		 which keeps the messages: see store.h.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_QUEUE_H
#define AQ_QUEUE_H

#include "cache/cache.h"
#include "jobs/jobs.h"

#include "access/tupdesc.h"
#include "access/xact.h"
#include "fmgr.h"
#include "nodes/bitmapset.h"
#include "nodes/parsenodes.h"
#include "storage/lockdefs.h"
#include "utils/uuid.h"

#define AQ_MAX_CONSUMERS 1024

/*
 * The last position is not used by a consumer: sessions wait there for an
 * unknown name.
 */
#define AQ_NO_CONSUMER (AQ_MAX_CONSUMERS - 1)
#define AQ_POSITIONS (AQ_MAX_CONSUMERS - 1)

/* Number of positions reserved for subscribers. */
#define AQ_SUBSCRIBER_POSITIONS 100
#define AQ_RECIPIENT_POSITIONS (AQ_POSITIONS - AQ_SUBSCRIBER_POSITIONS)
#define AQ_MAX_SHARDS 32

/*
 * A distributed queue also has shards with the messages that it holds of other
 * nodes: numbers from AQ_MAX_SHARDS on.  Such a message has one more consumer, at
 * the position that otherwise has none: what is left there alone was finished
 * with, and its origin is told of it.
 */
#define AQ_ALL_SHARDS 128
#define AQ_ORIGIN_POSITION AQ_NO_CONSUMER

/* Maximum number of attempts that a sharded queue counts, in one byte. */
#define AQ_MAX_ATTEMPTS 255
#define AQ_PRIORITIES 10
#define AQ_DEFAULT_PRIORITY 1
#define AQ_MAX_NAME 128			/* bytes of a queue's or consumer's name */

#define AQ_SECOND_NS INT64CONST(1000000000)

extern const AqPart aq_queue_part;

typedef struct AqQueueShm AqQueueShm;

/* === folder catalog ============================================================= */

typedef struct AqRule AqRule;
typedef struct AqRuleIndex AqRuleIndex;
typedef struct AqInput AqInput;

/* Delivery modes, as bits; Oracle's numbers. */
#define AQ_PERSISTENT 1
#define AQ_BUFFERED 2
#define AQ_PERSISTENT_OR_BUFFERED 3

/* How many messages may be taken: one each "period", and span / period at once.  In nanoseconds; 0: no rate. */
typedef struct AqRate
{
	int64		period;
	int64		span;
} AqRate;

typedef struct AqConsumer
{
	int			position;
	int64		number;
	char	   *name;			/* NULL: removed */
	bool		subscriber;		/* false: named only in recipient lists */
	Oid			owner;			/* the role that subscribed it; InvalidOid: not a subscriber, or dropped */
	TimestampTz created;
	int			delivery;		/* AQ_PERSISTENT, AQ_BUFFERED: what a subscriber gets */
	char	   *rule_text;		/* NULL: every message */
	Oid			rule_role;		/* role that wrote the rule; InvalidOid: not known */
	char	   *transformation; /* transformation of dbms_aq; NULL: none */
	Oid			transformation_role;	/* role that chose it; InvalidOid: not known */
	AqRule	   *rule;			/* compiled when first needed */
	bool		paused;			/* by aq.pause; the queue can be paused, too */
	int			max_running;	/* instead of the queue's; 0: none */
	AqRate		own_rate;		/* instead of the queue's */
} AqConsumer;

/* A queue table of the classic store: the properties that all its queues share. */
typedef struct AqQueueTable
{
	int32		id;				/* 0: the queue is sharded; negative: belongs to a buffered queue */
	bool		multi;			/* each consumer of a message has its own row */
	bool		grouping;		/* a transaction's messages stay together */
	char		sort[4];		/* AQ_SORT_* letters, in order; "": order of the calls */
	Oid			messages;		/* aq_data.t<id> */
	Oid			consumers;		/* aq_data.c<id>, if multi */
} AqQueueTable;

#define AQ_SORT_PRIORITY 'p'
#define AQ_SORT_ENQUEUE_TIME 'e'
#define AQ_SORT_COMMIT_TIME 'c'

/* A shard of which a consumer's messages are, for now, not dequeued on this node. */
typedef struct AqClosedShard
{
	int16		shard;
	int16		position;
} AqClosedShard;

typedef struct AqQueue
{
	int32		id;				/* negative: a buffered queue */
	char	   *name;
	int			delivery;		/* AQ_BUFFERED for a buffered queue, else AQ_PERSISTENT */
	struct AqQueue *buffered;	/* its buffered queue; NULL: does not exist yet */
	struct AqQueue *persistent; /* for a buffered queue: the queue to which it belongs; else NULL */
	const struct AqStore *store;
	AqQueueTable table;
	bool		exception;		/* is it an exception queue: only the worker enqueues */
	bool		non_persistent; /* its messages are only notified: see catalog/non_persistent.c */
	int			nclosed;
	AqClosedShard *closed;		/* units that other nodes hold */
	Bitmapset  *held;			/* shards with messages of other nodes that are dequeued here */
	int32		rights_id;		/* the queue whose owner view it uses; not its own id: a default exception queue */
	Oid			payload_type;
	bool		multi;
	int			shards;
	int32		exception_queue_id; /* 0: none */
	bool		enqueue_enabled;
	bool		dequeue_enabled;
	bool		paused;			/* for all consumers */
	bool		has_paused;		/* it is, or one of its consumers */
	bool		has_limit;		/* max_running or a rate of it or of one of its consumers */
	AqRate		each_rate;		/* of each consumer, by "rate" */
	TimestampTz created;
	uint64		key;			/* 60 bits, part of every message id ... */
	uint64		shard_key;		/* ... and of the ids of the sharded store */
	bool		converted;
	Oid			owner_view;		/* the view that has the queue's owner and privileges */
	Oid			owner;
	bool		own;			/* created by the current transaction */
	int			nconsumers;
	AqConsumer *consumers;		/* by position, ascending */
	Bitmapset  *without_rule;	/* positions of subscribers without a rule */
	bool		has_rules;
	AqRuleIndex *rule_index;	/* NULL: not made yet; see rule_index.c */
	bool		grants_read;	/* rights on consumers were read: see grants.c */
	List	   *grants;
	/* payload input, for text given by the user */
	FmgrInfo	input;
	AqInput    *users_input;	/* for a type that is not built-in; NULL: not set up */
	Oid			input_param;
	bool		input_is_text;	/* text: the bytes are stored unchanged */
	bool		jms;			/* the payloads are aq.jms_message */
	/* set when the session has pinned it */
	AqQueueShm *shm;			/* NULL: not pinned yet */
	AqObject   *object;			/* whose definition this is ... */
	uint32		serial;			/* ... while it has this serial, */
	uint32		version;		/* and this version */
	uint64		definition;		/* the definition clock before this was read */
	Oid			catalog;		/* the aq_internal.queue that it was read from */
	bool		uncommitted;	/* read by a transaction that had changed definitions */
	bool		consumers_made; /* every consumer has its entry in shared memory */
	MemoryContext context;		/* of this description */
	uint64		generation;
	struct AqQueue *next_retired;	/* see aq_catalog_retain */
	/* max_retries, retry_delay and the other properties of the list */
#define PROPERTY(id, name, type, nullable, check) AQ_PROPERTY_##type name;
#include "queue/catalog/queue_column_list.h"
} AqQueue;

typedef enum AqRight
{
	AQ_RIGHT_ENQUEUE,
	AQ_RIGHT_DEQUEUE,
	AQ_RIGHT_CONSUMER,			/* dequeue, or the right on at least one consumer */
	AQ_RIGHT_SUBSCRIBE,
	AQ_RIGHT_ANY,				/* any of these, or the owner */
	AQ_RIGHT_SEE,				/* its definition and counters: also members of pg_monitor */
	AQ_RIGHT_OWNER
} AqRight;

/*
 * --- catalog.c
 *
 * The returned pointers are valid until the next lookup.  All functions raise
 * AQ_ERR_QUEUE_UNDEFINED if the queue does not exist or the privilege is
 * missing.
 */
extern AqQueue *aq_catalog_get(const char *name, AqRight right);
extern AqQueue *aq_catalog_get_for(const char *name, const char *consumer, int32 known);	/* to dequeue for the
																							 * consumer */
extern AqQueue *aq_catalog_get_to_notify(const char *name, const char *consumer, int32 known);	/* also non-persistent */
extern AqQueue *aq_catalog_get_by_id(int32 id, bool missing_ok);
extern AqQueue *aq_catalog_get_numbered(int32 id);
extern AqQueue *aq_catalog_get_by_name(const char *name);	/* NULL: none; without privilege checks */
extern AqQueue *aq_catalog_exception_queue(AqQueue *queue, int32 named);	/* for failed messages, or NULL */

/*
 * Call them before and after code that may run users' code or looks up several
 * queues, if the caller or an outer caller uses a description afterwards: lookups
 * in between do not free it.
 */
extern void aq_catalog_retain(void);
extern void aq_catalog_release(void);
extern List *aq_catalog_numbers(const char *table, AttrNumber column, const int32 *first);
extern List *aq_catalog_queue_ids(void);	/* of all queues of the database */
extern AqConsumer *aq_catalog_consumer(AqQueue *queue, const char *name);
extern int	aq_catalog_hint_dequeue(const char *name);	/* for errors */
extern const AqConsumer *aq_description_consumer(const AqQueue *queue, int64 number);
extern bool aq_description_pauses(const AqQueue *queue, int position);
extern uint32 aq_description_limit(const AqQueue *queue, int position);
extern const AqRate *aq_description_rate(const AqQueue *queue, int position);
extern void aq_description_on_units(void (*read) (AqQueue *queue, struct SnapshotData *snapshot));	/* of a distributed
																									 * queue */
extern void aq_catalog_units_changed(int32 id);

/* --- role.c */
extern void aq_role_check_rows(Oid role, const char *table, const char *column, const char *what, const char *advice);

/* --- privilege.c */
extern bool aq_privilege_allows(AqQueue *queue, AqRight right);
extern bool aq_privilege_consumes(AqQueue *queue, const char *consumer);	/* dequeue for this consumer; NULL: that
																			 * has no name */
extern bool aq_privilege_shows(AqQueue *queue, const char *consumer);	/* see the consumer's counters */
extern bool aq_privilege_shows_position(AqQueue *queue, int position);

/*
 * --- schema.c
 *
 * Names of a queue table's tables: t<id> and c<id>.  The tables of the buffered
 * messages of queue n are those of queue table -n: b<n> and d<n>.
 */
extern Oid	aq_schema_relation(const char *name);	/* in schema aq */
extern struct RelationData *aq_schema_open(const char *name, LOCKMODE mode);
extern Oid	aq_schema_data_relation(const char *name);	/* in schema aq_data; may be InvalidOid */
extern char *aq_schema_message_table(int32 queue_table_id);
extern char *aq_schema_consumer_table(int32 queue_table_id);

/*
 * of the session whose messages this one enqueues, which is another one in a
 * helper; the identity is stored in rows and never reused
 */
extern int64 aq_schema_session_identity(void);
extern int64 aq_schema_own_identity(void);
extern int	aq_schema_session_number(void);

/* --- address.c: names of consumers that are at another queue */
extern char *aq_address_consumer(const char *agent, const char *address);
extern const char *aq_address_of(const char *consumer, char **agent);

/* --- sql.c: run a command as the extension's owner, with a pinned search_path */
#define AQ_STATEMENT_ARGS 2

/* A command whose plan the process keeps; a static variable. */
typedef struct AqStatement
{
	const char *command;
	int			nargs;
	Oid			types[AQ_STATEMENT_ARGS];
	struct _SPI_plan *plan;		/* NULL: not made yet */
} AqStatement;

extern uint64 aq_sql_run_kept(AqStatement *statement, Datum *values);
extern uint64 aq_sql_run(const char *command, int nargs, Oid *types, Datum *values,
						 const char *nulls, bool connected);
extern bool aq_sql_may_commit(FunctionCallInfo fcinfo);
extern void aq_sql_commit(void);
extern bool aq_sql_finds(const char *query);	/* does it return a row? */
extern char *aq_sql_text(const char *query);
extern List *aq_sql_oids(const char *query);	/* of the first column */
extern List *aq_sql_numbers(const char *query); /* the same of int4 */
extern uint64 aq_sql_change(const char *command, int nargs, Oid *types, Datum *values,
							const char *nulls);
extern void aq_sql_define(const char *command, Oid payload_type);
extern uint64 aq_sql_delete(const char *table, const char *which, int nargs, Oid *types, Datum *values);
extern void aq_sql_give(Oid relation, Oid role);

/* A view in a user's schema. */
typedef struct AqView
{
	const char *schema;
	const char *name;
	const char *query;			/* can name the type "payload_type" */
	const char *comment;
	Oid			owner;
	Oid			payload_type;
} AqView;

extern void aq_sql_make_view(const AqView *view);
extern void aq_sql_drop_views(List *views); /* of OIDs */
extern void aq_sql_revoke(const char *commands);

/* --- acl.c */
extern void aq_acl_change(Oid relation, Oid role, Oid grantee, AclMode mode, bool grant, bool option);

/* --- pending.c: changes of definitions by the transaction */
extern bool aq_pending_is_dropped(int32 id);

/*
 * --- queue_lock.c
 *
 * The heavyweight lock of a queue: AccessExclusiveLock to drop it,
 * ShareUpdateExclusiveLock for other changes of its definition,
 * AccessShareLock for the worker to create tables; enqueue and dequeue take
 * none, unless they have to wait for a table while they hold another.
 * Producers have a separate lock.
 */
extern bool aq_queue_lock(int32 id, LOCKMODE mode, bool wait);
extern bool aq_queue_lock_numbers(const AqQueue *queue, LOCKMODE mode, bool wait);
extern bool aq_queue_lock_pass(int32 id, LOCKMODE mode, bool wait);
extern void aq_queue_lock_dropping(int32 id);
extern bool aq_queue_lock_is_dropping(int32 id, pg_atomic_uint32 *mark);
extern void aq_queue_lock_name(const char *table, const char *name);
extern bool aq_queue_lock_insert(const char *table, const char *name, const char *command,
								 int nargs, Oid *types, Datum *values, const char *nulls);
extern bool aq_queue_lock_tables(AqQueue *queue, LOCKMODE mode);
extern bool aq_queue_lock_producer(int32 id, int64 producer, bool wait);	/* until the transaction ends */

/*
 * --- payload.c: locks for a table with a column of the type; wait: false for
 * the worker
 */
extern bool aq_payload_type_lock(Oid type, bool wait);
pg_noreturn extern void aq_payload_refuse_column(const AqQueue *queue, Oid type);
extern bool aq_payload_is_jms(Oid type);	/* aq.jms_message */
extern Oid	aq_payload_jms_type(void);	/* raises if it does not exist */

/*
 * A column that is read or written as a payload of the queue: one of another
 * type, made by ALTER TABLE or restored so, would be read as what it is not.
 */
static inline void
aq_payload_check_column(const AqQueue *queue, TupleDesc desc, int column)
{
	if (TupleDescAttr(desc, column)->atttypid != queue->payload_type)
		aq_payload_refuse_column(queue, TupleDescAttr(desc, column)->atttypid);
}

/*
 * --- rule.c: functions outside pg_catalog that conditions call as built-in ones: they
 * have no side effects and raise no errors
 */
extern void aq_rule_on_function(bool (*is_built_in) (Oid function));

/* --- run_as.c: the fixed settings of setting_list.h for texts that others read */
extern int	aq_run_as_begin(void);
extern void aq_run_as_end(int nest);
extern void aq_run_as_pin_process(void);	/* for as long as the process lives */

/* users' code in other roles' sessions */
extern void aq_run_as(Oid role, void (*call) (void *arg), void *arg);
extern uint64 aq_run_as_code_changes(void);
extern void aq_run_as_check_type(Oid type);

/* The search_path of the callers of functions that have one of their own.  Set by part "oracle". */
typedef struct AqCallerPath
{
	const char *(*get) (void);
	void		(*on_call) (Oid function);	/* a function with SET options begins */
} AqCallerPath;

extern void aq_run_as_on_caller(const AqCallerPath *callbacks);

/* --- retry_delay.c: how long a message waits after a failed attempt, in microseconds */
extern int64 aq_retry_delay_after(const AqQueue *queue, int attempts, double random);
extern double aq_retry_delay_random(void);

/* --- args.c: checks of users' arguments */
extern int	aq_args_find(FunctionCallInfo fcinfo, const char *name);
extern void aq_args_require(FunctionCallInfo fcinfo, int arg, const char *what);
extern char *aq_args_name(FunctionCallInfo fcinfo, int arg, const char *what);
extern char *aq_args_name_or_null(FunctionCallInfo fcinfo, int arg, const char *what);
extern void aq_args_check_name(const char *name, const char *what);
extern bool aq_args_if_not_exists(FunctionCallInfo fcinfo, int arg, const char *what, const char *name);
extern int	aq_args_consumer_position(AqQueue *queue, const char *consumer);
extern int64 aq_args_timeout(FunctionCallInfo fcinfo, int arg, const char *what);	/* microseconds */
extern void aq_args_elements(ArrayType *array, Datum **values, bool **nulls, int *n);

/* --- interval.c: the length of an interval, in microseconds */
extern int64 aq_interval_to_us(Datum interval);
extern int64 aq_interval_option(Datum interval, AqErrorId error, const char *what); /* checks its range */

/* === folder memory ============================================================== */

/*
 * Counters and times of a queue; the first ones also exist for its consumers:
 * see traffic.c.
 */
typedef enum AqTraffic
{
#define X(id, is_time, of_consumer) AQ_TRAFFIC_##id,
#include "queue/memory/traffic_list.h"
#undef X
	AQ_NTRAFFIC
} AqTraffic;

enum
{
	AQ_NCONSUMER_TRAFFIC = 0
#define X(id, is_time, of_consumer) + of_consumer
#include "queue/memory/traffic_list.h"
#undef X
};

/* Wait lists and counters of a (queue, consumer). */
typedef struct AqConsumerShm
{
	AqWaitList	waiters;		/* woken one per message; queue's waiters latch */
	AqWaitList	selective;		/* with a condition: woken by every message */

	/*
	 * Positions are reused, consumers' numbers are not. "number" and "removed"
	 * only grow, so a session with outdated data of an earlier consumer
	 * changes nothing.
	 */
	pg_atomic_uint64 number;	/* of the latest consumer at this position */
	pg_atomic_uint64 removed;	/* of the latest removed consumer; 0: none */
	pg_atomic_uint64 enqueued;	/* messages made ready or waiting for it */
	pg_atomic_uint64 dequeued;	/* consumed and committed, expired, purged */
	/*
	 * not used in a single-consumer queue, where the queue's counters are the
	 * consumer's
	 */
	pg_atomic_uint64 traffic[AQ_NCONSUMER_TRAFFIC];
	pg_atomic_uint64 before;	/* part of enqueued and dequeued that belongs to earlier consumers at this position */
	pg_atomic_uint64 found;		/* part of enqueued that was found when the queue was loaded */
	/*
	 * for a store in which the worker counts periodically; counted_at is
	 * written last, 0: not yet
	 */
	pg_atomic_uint64 counted_ready;
	pg_atomic_uint64 counted_delayed;
	pg_atomic_uint32 counted_in_flight; /* at most PG_UINT32_MAX */
	pg_atomic_uint32 counted_leased;	/* part of them */
	union
	{
		pg_atomic_uint64 counted_oldest;
		pg_atomic_uint64 wanted;	/* of a distributed queue, which is not counted so: the latest dequeue; see
									 * peers.c */
	};
	pg_atomic_uint64 counted_at;
	union
	{
		pg_atomic_uint64 closing;	/* of a recipient: number of the consumer whose position the worker is freeing; 0:
									 * none; see holds.c */
		pg_atomic_uint64 left;	/* of a removed one: its number, if tables have messages that it has not finished; see
								 * subscriber.c */
	};
	pg_atomic_uint32 rule_logged;	/* hash of the rule whose failure was logged; 0: none */
	/* max_running: see shard/partitions/places.c */
	pg_atomic_uint32 in_work;	/* its messages in work, if they are counted */
	pg_atomic_uint32 limit;		/* the maximum; 0: none.  For wake-ups: see aq_waiters_limit */
	/* in nanoseconds of aq_clock_us(); 0: none yet.  See rate.c */
	pg_atomic_uint64 next_token;
	pg_atomic_uint64 bucket_full;
	/* for a recipient: see holds.c */
	pg_atomic_uint32 holds;		/* holds of transactions that enqueue for it, and of dequeues */
	/* used by the worker only: state at its last check, see recipient.c */
	uint32		idle_enqueued;	/* lowest bits of "enqueued" */
	uint32		idle_since;		/* since when it has been idle, ms modulo 2^32; 0: it was not idle at the last check */
} AqConsumerShm;

#define AQ_CONSUMERS_PER_CHUNK 6

/* Was the consumer removed, so that nothing more is counted for it? */
static inline bool
aq_consumer_removed(AqConsumerShm *consumer)
{
	uint64		removed = pg_atomic_read_u64(&consumer->removed);

	return removed != 0 && removed >= pg_atomic_read_u64(&consumer->number);
}

/*
 * Called where a message is not finished by its consumer, because that was
 * removed: the tables do not tell that it is finished.  Never raises an error.
 */
static inline void
aq_consumer_leaves(AqConsumerShm *consumer)
{
	pg_atomic_write_u64(&consumer->left, pg_atomic_read_u64(&consumer->removed));
}

/* Has the removed consumer left messages in the tables that it has not finished? */
static inline bool
aq_consumer_has_left(AqConsumerShm *consumer)
{
	return pg_atomic_read_u64(&consumer->left) == pg_atomic_read_u64(&consumer->removed);
}

/* The counters and numbers in the latest sample of a queue for its history; used by the worker only. */
typedef struct AqHistorySeen
{
	TimestampTz since;			/* AQ_TRAFFIC_SINCE of these counters; another one: none of the queue's has been seen */
	TimestampTz minute;
	uint64		enqueued;
	uint64		dequeued;
	uint64		failed;
	uint32		latencies[AQ_HIST_BUCKETS]; /* the lowest bits */
	/* messages; -1: not counted yet */
	int64		ready;
	int64		delayed;
	int64		in_flight;
} AqHistorySeen;

struct AqQueueShm
{
	AqObject   *object;			/* object of the object cache, with the same index */
	Oid			database;
	Oid			owner;			/* according to the description read last; see share.c */
	int32		queue_id;
	uint64		key;			/* distinguishes queues with the same id */
	char		store;			/* AqStore.kind */
	bool		single;			/* one consumer without a name, at position 0 */
	AqLatch		waiters_latch;	/* protects the wait lists */
	pg_atomic_uint32 waiting;	/* number of wait entries for all its consumers */
	pg_atomic_uint32 dropping;	/* 1: a drop may want its waiters to leave: see aq_waiters_end; set when it is loaded */
	pg_atomic_uint32 watched;	/* 1: the next wake-up also posts AQ_WORK_WATCHED; set when the queue is loaded */
	pg_atomic_uint32 forwarded; /* 1: other nodes hold units of it: wake-ups are news for part "node" */
	pg_atomic_uint32 work;		/* work for the worker: AQ_WORK_* */
	pg_atomic_uint64 check_at;	/* when the worker must check waiters; 0: never */
	pg_atomic_uint32 has_unique;	/* 1: the worker looks for rows of unique keys to be deleted */
	pg_atomic_uint32 uncounted; /* how many times it could not write retry counts */
	pg_atomic_uint32 uncounted_seen;	/* 1: a check has found an unwritten retry count */
	pg_atomic_uint64 next_time; /* when the store has timed work; 0: never */
	uint32		later_work;		/* used by the worker only: work to be done ... */
	TimestampTz later_at;		/* ... at this time */
	pg_atomic_uint64 definition;	/* descriptions read earlier are outdated: see definition_clock.c */
	pg_atomic_uint64 last_change;	/* descriptions read later are current, see catalog.c; 0: not known yet */
	/*
	 * numbers of transactions that have enqueued or dequeued, in two
	 * generations, and of those that wait to stop it: see users.c
	 */
	pg_atomic_uint32 users[2];
	pg_atomic_uint32 generation;	/* number of the newest one */
	pg_atomic_uint32 outlived;	/* 1: the worker waits for the end of one */
	pg_atomic_uint32 stops_enqueue;
	pg_atomic_uint32 stops_dequeue;
	/* for a queue converted from a queue table: see convert.c */
	bool		converted;		/* no new messages go into the queue table */
	bool		settled;		/* no transaction can still enqueue there */
	bool		table_done;		/* no messages are left there */
	TransactionId horizon;		/* used by the worker only: transactions before it may still enqueue there */
	pg_atomic_uint64 table_puts;	/* messages committed into the queue table */
	AqCond		changed;		/* a table, load, retry count or recipient is ready */
	AqCond		room;			/* enqueuers into the full queue may continue: see flow.c */
	pg_atomic_uint64 room_below;	/* they wait for a lag below this; 0: no waiters */
	pg_atomic_uint64 enqueues_waited;	/* since the queue was loaded: for room ... */
	pg_atomic_uint64 enqueues_refused;	/* ... and for want of it */
	char		recipient[AQ_MAX_NAME]; /* name that needs a position; protected by waiters_latch */
	char		refused[AQ_MAX_NAME];	/* name for which there was none; same latch */
	/* how many requests to free positions there were, and how many of them the worker has answered */
	pg_atomic_uint32 room_asked;
	pg_atomic_uint32 room_answered;
	/* counters since the queue was loaded */
	pg_atomic_uint64 enqueued;
	pg_atomic_uint64 dequeued;
	pg_atomic_uint64 traffic[AQ_NTRAFFIC];
	pg_atomic_uint64 waited;	/* total microseconds of the messages in the histogram */
	pg_atomic_uint64 latencies[AQ_HIST_BUCKETS];	/* see aq_latency_add */
	pg_atomic_uint32 sampled;	/* 1: every minute, for the history; 0: the next change posts the worker */
	AqHistorySeen seen;
	AqConsumerShm first;		/* position 0; a single-consumer queue needs no others */
	AqChunk		more[AQ_MAX_CONSUMERS / AQ_CONSUMERS_PER_CHUNK + 1];	/* 0: none yet */
};

/* --- share.c: the share of a role in what all queues have in common */
typedef enum AqShare
{
#define X(id, name, parameter, users, too_much, advice) AQ_SHARE_##id,
#include "queue/memory/share_list.h"
#undef X
	AQ_SHARES
} AqShare;

typedef struct AqShareUse AqShareUse;

/* Calls aq_share_add for each queue, or aq_share_add_role for each role, that has some of it, or several times. */
typedef void (*AqShareCount) (AqShareUse *use);

extern void aq_share_register(AqShare share, const int *total, AqShareCount count);
extern void aq_share_add(AqShareUse *use, uint32 queue, int64 n);
extern void aq_share_add_role(AqShareUse *use, Oid role, int64 n);
extern bool aq_share_is_scarce(AqShare share, int64 used);
extern bool aq_share_allows(AqShare share, const AqQueueShm *shm, int64 n);
extern void aq_share_check(AqShare share, const AqQueueShm *shm, int64 n);
extern void aq_share_check_role(AqShare share, Oid role, int64 n);

static inline void
aq_traffic_add(AqQueueShm *shm, AqTraffic item, uint64 n)
{
	pg_atomic_fetch_add_u64(&shm->traffic[item], n);
}

static inline void
aq_traffic_time(AqQueueShm *shm, AqTraffic item, TimestampTz when)
{
	pg_atomic_write_u64(&shm->traffic[item], (uint64) when);
}

/*
 * Adds to a counter of the queue and of the consumer.  Never raises an error.
 */
extern void aq_traffic_add_for(AqQueueShm *shm, int position, AqTraffic item, uint64 n);
extern void aq_traffic_row(AqRow *row, AqQueueShm *shm, int position);

/* --- rate.c: never raise errors */
extern uint32 aq_rate_take(const AqQueue *queue, AqConsumerShm *consumer, const AqRate *rate, uint32 n);
extern void aq_rate_give_back(AqConsumerShm *consumer, const AqRate *rate, uint32 n);
extern uint32 aq_rate_tokens(const AqQueue *queue, AqConsumerShm *consumer, const AqRate *rate);

/* Raises a number that only grows. */
static inline void
aq_raise_to(pg_atomic_uint64 *highest, uint64 number)
{
	uint64		before = pg_atomic_read_u64(highest);

	while (before < number && !pg_atomic_compare_exchange_u64(highest, &before, number))
		;
}

/* bits of AqQueueShm.work */
#define AQ_WORK_TABLES		0x0001	/* provide empty tables */
#define AQ_WORK_RETRY		0x0002	/* write retry counts */
#define AQ_WORK_RECLAIM		0x0004	/* truncate consumed partitions */
#define AQ_WORK_DOUBT		0x0008	/* resolve transactions in doubt */
#define AQ_WORK_FAILED		0x0010	/* move messages to the exception queue */
#define AQ_WORK_REMOVED		0x0020	/* clean up after unsubscribed consumers */
#define AQ_WORK_RECIPIENTS	0x0040	/* give positions to new recipients */
#define AQ_WORK_RECOUNT		0x0080	/* count messages after a restart */
#define AQ_WORK_POSITIONS	0x0100	/* free positions of removed consumers, also when users or their messages are gone */
#define AQ_WORK_WAITERS		0x0200	/* wake waiters for messages that were not fetched */
#define AQ_WORK_CONVERT		0x0400	/* end the conversion from a queue table */
#define AQ_WORK_BUFFERED	0x0800	/* make the tables of buffered messages */
#define AQ_WORK_SURPLUS		0x1000	/* drop surplus empty tables */
#define AQ_WORK_COUNT		0x2000	/* count messages of a queue in a queue table, for aq.metrics() */
#define AQ_WORK_IDLE		0x4000	/* free the positions of recipients without messages */
#define AQ_WORK_SESSION_LEASES 0x8000	/* end leases of sessions that have ended */
#define AQ_WORK_WATCHED		0x10000 /* a watched queue has had a wake-up: see aq_waiters_watch */
#define AQ_WORK_AGE			0x20000 /* truncate old tables without messages */
#define AQ_WORK_UNIQUE		0x40000 /* delete rows of unique keys that are no longer in force */

/* --- shm.c */
extern AqConsumerShm *aq_shm_consumer(AqQueueShm *shm, int position);
extern AqConsumerShm *aq_shm_consumer_make(AqQueueShm *shm, int position);
extern AqQueueShm *aq_shm_by_index(uint32 index);
extern uint32 aq_shm_queue_of_latch(int child, uint32 *database);	/* for aq_trace_on_name */

/* --- work.c: work for the worker */
extern void aq_work_post(AqQueueShm *shm, uint32 work); /* never raises */
extern void aq_work_announce_time(AqQueueShm *shm, TimestampTz when);	/* never raises */
extern void aq_work_check_waiters(AqQueueShm *shm, TimestampTz when);	/* never raises */
extern void aq_work_later(AqQueueShm *shm, uint32 work, int64 microseconds);	/* for the worker only */

/* --- lag.c: enqueuers that wait for room check again; never raises */
extern void aq_lag_recheck(AqQueueShm *shm);

/* --- waiters.c: wake-ups; never raise */
extern bool aq_waiters_exist(AqQueueShm *shm);	/* call it after a memory barrier */
extern void aq_waiters_wake(AqQueueShm *shm, int position, uint32 messages);

/*
 * Correlations are compared by keys, the same for equal ones.  AQ_ANY_KEY: a message
 * that can have any correlation, a session that can want any message.
 */
#define AQ_ANY_KEY AQ_WAKEUP_ANY_KEY
#define AQ_NO_CORRELATION_KEY 1
extern uint32 aq_waiters_key(const struct varlena *correlation);
extern uint32 aq_waiters_pattern_key(const struct varlena *pattern);
extern void aq_waiters_wake_for(AqQueueShm *shm, int position, uint32 messages, uint32 key);
extern void aq_waiters_check_later(AqQueueShm *shm);
extern void aq_waiters_check_at_token(AqQueueShm *shm, AqConsumerShm *consumer, const AqRate *rate);
extern void aq_waiters_limit(const AqQueue *queue, int position, uint32 limit);
extern void aq_waiters_watch(AqQueueShm *shm);
extern void aq_waiters_wake_all(AqQueueShm *shm);	/* the definition has changed */
extern void aq_waiters_end(AqQueueShm *shm);
extern void aq_waiters_end_all(void);
extern void aq_waiters_refuse_dropping(AqQueueShm *shm);

/*
 * maximum number of (queue, consumer) pairs for which a session can wait at a
 * time
 */
#define AQ_WAITERS_PER_SESSION 256

/* result of a check: the targets have changed, enter the lists again */
#define AQ_WAITERS_AGAIN (-2)

typedef struct AqWaitTarget
{
	AqQueueShm *shm;
	int			position;
	bool		selective;
	uint32		key;			/* if selective: of the messages that it takes, or AQ_ANY_KEY */
	uint32		most;			/* most messages that the session takes; 0: one */
	uint32		taken;			/* those that it has taken, if most > 0 */
	uint32		entry;
} AqWaitTarget;

extern int	aq_waiters_sleep(AqWaitTarget *targets, int n, bool listens, bool channel, const AqEvent *event,
							 int64 deadline, int (*check) (void *arg), void *arg);
extern bool (*aq_waiters_disturbed) (void);

/*
 * --- peers.c: what part "node" needs to know of distributed queues.  Only the
 * second one raises errors.
 */
typedef enum AqPeerNews
{
	AQ_PEERS_WISH,				/* a session dequeues for a consumer for which none did a short time ago */
	AQ_PEERS_READY,				/* messages that another node may hold are ready */
	AQ_PEERS_FINISHED,			/* messages of another node were finished with */
	AQ_PEERS_KINDS
} AqPeerNews;

extern void aq_peers_on_news(void (*prepare) (void), void (*news) (AqPeerNews));
extern void aq_peers_prepare(void);
extern void aq_peers_news(AqPeerNews news);
extern void aq_peers_note_wish(AqQueueShm *shm, int position, TimestampTz now);
extern TimestampTz aq_peers_wish(AqQueueShm *shm, int position);

/* --- retries.c: retry counts, which the worker writes */
extern void aq_retries_later(AqQueueShm *shm, int64 microseconds);
extern void aq_retries_counted(AqQueueShm *shm);
extern int64 aq_retries_patience(void);
extern bool aq_retries_await(AqQueueShm *shm, bool only_checks, int64 until, bool (*pending) (void *arg), void *arg);

/*
 * --- pins.c
 *
 * aq_pins_pin pins the queue for the session, or for the transaction;
 * aq_pins_pin_current also returns the latest description.
 */
extern void aq_pins_pin(AqQueue *queue);
extern void aq_pins_pin_to_drop(AqQueue *queue, bool force);
extern AqQueue *aq_pins_pin_current(AqQueue *queue, bool put);
extern bool aq_pins_is_used(const AqQueueShm *shm); /* by this transaction; the queue is pinned */

/*
 * For views: pins the queue in between, unless it is not in memory and few
 * handles are free.
 */
typedef struct AqPeek
{
	int32		id;
	AqObject   *object;
	uint32		pins;			/* the session's pins before */
	uint64		used_in;
} AqPeek;

extern bool aq_pins_peek(AqQueue *queue, AqPeek *peek);
extern void aq_pins_peek_end(const AqPeek *peek);
extern char *aq_pins_lost_table(const AqQueue *queue);
pg_noreturn extern void aq_pins_refuse_missing(AqQueue *queue);
extern bool aq_pins_check_lost_table(const AqQueue *queue, int level);

/* --- flow.c */
extern bool aq_flow_is_full(AqQueue *buffered);

/* === folder definitions =========================================================
 *
 * --- definition.c
 *
 * What other parts keep of queues in a table of aq_internal with a column
 * queue_id.  What does not apply is NULL.
 */
typedef struct AqQueueRows
{
	const char *table;			/* its rows are deleted with the queue */
	const char *role;			/* a column of it: REASSIGN OWNED changes the role */
	void		(*check_drop) (const AqQueue *queue);	/* raises an error if a drop without force would lose
														 * something */
	void		(*drop) (int32 id); /* what else happens then */
} AqQueueRows;

extern void aq_definition_add_rows(const AqQueueRows *rows);

/* --- temporary.c */
extern bool aq_temporary_is_own(int32 queue_id);

/*
 * --- upkeep.c
 *
 * What the worker does for a watched queue that has had a wake-up.
 */
extern void aq_upkeep_on_watched(void (*run) (int32 id, AqQueueShm *shm));

/* --- restored.c: in the worker */
extern bool aq_restored_is_running(void);
extern uint32 aq_restored_count(void);

/* === folder immediate ===========================================================
 *
 * --- helper.c: removes what users' code has left in a background worker; between transactions
 */
extern void aq_helper_forget_call(void);

/* === folder calls ===============================================================
 *
 * --- wait.c
 *
 * Must a take skip messages that the transaction's snapshot does not show?  In
 * REPEATABLE READ and above, but not for a CALL that waits outside a transaction
 * block, because the messages for which it waits come after its snapshot.
 */
extern bool aq_wait_take_uses_snapshot(void);

/*
 * For procedures that wait: calls a look at messages, which may be newer than the
 * snapshot; releases the statement's snapshot before a sleep.
 */
extern void aq_wait_call_ahead(void (*call) (void *arg), void *arg);
extern void aq_wait_release_snapshot(void);

/*
 * --- enqueue.c
 *
 * Checks a message that is to be enqueued later, with the errors of an enqueue
 * now; options: an array with one element, as of aq.enqueue_array.  Returns the
 * payload as text, for the settings of setting_list.h; NULL: null.
 */
extern text *aq_enqueue_check_later(const char *command, const char *queue_name, Oid payload_type, Datum payload,
									bool isnull, const struct varlena *options);
extern ArrayType *aq_enqueue_repeated(const char *command, const char *queue_name, const text *payload,
									  const struct varlena *options, int n, int64 producer);

/* --- producer.c */
typedef enum AqProducerKind
{
	AQ_PRODUCER_SCHEDULE,		/* its number */
	AQ_PRODUCER_PROPAGATION,	/* number of the schedule */
	AQ_PRODUCER_SOURCE,			/* a propagation schedule of another database: a hash of its uuid */
	AQ_PRODUCER_NODE			/* a unit that another node delivers: a hash of the node and the epoch */
} AqProducerKind;

extern int64 aq_producer_named(const text *name);
extern uint64 aq_producer_affinity(const text *name);
extern int64 aq_producer_own(AqProducerKind kind, uint64 number);

#include "queue/store.h"

/*
 * --- non_persistent.c
 *
 * Like AqStore.put(), for non-persistent queues: the messages are not stored but
 * passed to registrations after the commit.  Set by part "notify".
 */
typedef void (*AqNonPersistentPut) (AqQueue *queue, const AqPutOptions *options, uint32 n, const Datum *payloads,
									const bool *nulls, Bitmapset *const *targets, pg_uuid_t *ids);

extern void aq_non_persistent_on_put(AqNonPersistentPut put);
extern void aq_non_persistent_refuse(const AqQueue *queue, const char *what);

/* --- message_qual.c: of a table, the parts that the functions under aq.messages read */
extern bool aq_message_qual_parts(AqRow *row, int table_no, uint32 blocks, bool divide);

/* Do new messages go into the sharded store? */
static inline bool
aq_queue_is_sharded(const AqQueue *queue)
{
	return queue->store->kind != AQ_STORE_CLASSIC;
}

#endif							/* AQ_QUEUE_H */
