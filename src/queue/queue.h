/*-------------------------------------------------------------------------
 *
 * queue.h
 *	  The door of part "queue": queues, consumers, messages, waiting.
 *
 * A queue has three faces:
 *	AqQueue		 a session's own description of it, read from the catalog and
 *				 read again when the catalog has changed (relcache
 *				 invalidation, so it is transactional);
 *	AqQueueShm	 its place in shared memory, the value of its object in the
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
#include "port/atomics.h"
#include "storage/lockdefs.h"
#include "utils/uuid.h"

#define AQ_MAX_CONSUMERS 1024

/* The last position is not a consumer's: sessions that wait for an unknown name wait there. */
#define AQ_NO_CONSUMER (AQ_MAX_CONSUMERS - 1)
#define AQ_POSITIONS (AQ_MAX_CONSUMERS - 1)

/* So many of them are kept for subscribers. */
#define AQ_SUBSCRIBER_POSITIONS 100
#define AQ_RECIPIENT_POSITIONS (AQ_POSITIONS - AQ_SUBSCRIBER_POSITIONS)
#define AQ_MAX_SHARDS 32

/* A sharded queue counts a message's attempts up to this, a byte each. */
#define AQ_MAX_ATTEMPTS 255
#define AQ_PRIORITIES 10
#define AQ_DEFAULT_PRIORITY 1
#define AQ_MAX_NAME 128			/* bytes of a queue's or consumer's name */

extern const AqPart aq_queue_part;

typedef struct AqQueueShm AqQueueShm;

/* === room catalog ============================================================= */

typedef struct AqRule AqRule;
typedef struct AqInput AqInput;

/* How a message is kept, as bits; Oracle's numbers. */
#define AQ_PERSISTENT 1
#define AQ_BUFFERED 2
#define AQ_PERSISTENT_OR_BUFFERED 3

typedef struct AqConsumer
{
	int			position;
	int64		number;
	char	   *name;			/* NULL: removed */
	bool		subscriber;		/* else named in recipient lists only */
	TimestampTz created;
	int			delivery;		/* AQ_PERSISTENT, AQ_BUFFERED: what a subscriber gets */
	char	   *rule_text;		/* NULL: every message */
	Oid			rule_role;		/* wrote the rule; InvalidOid: not known */
	char	   *transformation; /* of dbms_aq; NULL: none */
	Oid			transformation_role;	/* chose it; InvalidOid: not known */
	AqRule	   *rule;			/* compiled when first needed */
} AqConsumer;

/* A queue table of the classic store: the properties that all its queues share. */
typedef struct AqQueueTable
{
	int32		id;				/* 0: the queue is sharded; negative: of a buffered queue */
	bool		multi;			/* consumers have rows of their own */
	bool		grouping;		/* a transaction's messages stay together */
	char		sort[4];		/* of AQ_SORT_*, in order; "" is the order of the calls */
	Oid			messages;		/* aq_data.t<id> */
	Oid			consumers;		/* aq_data.c<id>, when multi */
} AqQueueTable;

#define AQ_SORT_PRIORITY 'p'
#define AQ_SORT_ENQUEUE_TIME 'e'
#define AQ_SORT_COMMIT_TIME 'c'

typedef struct AqQueue
{
	int32		id;				/* negative: the buffered queue of a queue */
	char	   *name;
	int			delivery;		/* AQ_PERSISTENT, or AQ_BUFFERED of a buffered queue */
	struct AqQueue *buffered;	/* its buffered queue; NULL: not made yet */
	struct AqQueue *persistent;	/* of a buffered queue: the queue it belongs to; else NULL */
	const struct AqStore *store;
	AqQueueTable table;
	bool		exception;		/* an exception queue of its queue table */
	Oid			payload_type;
	bool		multi;
	int			shards;
	int			max_retries;	/* -1: no limit */
	int64		retry_delay;	/* microseconds */
	int64		retention;		/* microseconds */
	int32		exception_queue_id; /* 0: none */
	bool		enqueue_enabled;
	bool		dequeue_enabled;
	uint64		key;			/* 60 bits, part of every message id ... */
	uint64		shard_key;		/* ... and of those of the sharded store */
	bool		converted;
	Oid			owner_view;		/* the view that carries owner and rights */
	Oid			sequence;		/* of partition numbers */
	Oid			owner;
	bool		own;			/* created by the current transaction */
	int			nconsumers;
	AqConsumer *consumers;		/* by position, ascending */
	Bitmapset  *without_rule;	/* positions of subscribers without a rule */
	bool		has_rules;
	/* payload input, for text given by the user */
	FmgrInfo	input;
	AqInput    *users_input;	/* of a type that is not built in; NULL: none is ready */
	Oid			input_param;
	bool		input_is_text;	/* text: the bytes as they are */
	/* where the session has pinned it */
	AqQueueShm *shm;			/* NULL: not pinned yet */
	AqObject   *object;			/* whose definition this is ... */
	uint32		serial;			/* ... while it has this serial, */
	uint32		version;		/* and this version */
	uint64		definition;		/* the clock of definitions, before this was read */
	bool		consumers_made; /* every consumer has its place there */
	MemoryContext context;		/* of this description */
	uint64		generation;
	struct AqQueue *next_retired;	/* see aq_catalog_retain */
} AqQueue;

typedef enum AqRight
{
	AQ_RIGHT_ENQUEUE,
	AQ_RIGHT_DEQUEUE,
	AQ_RIGHT_ANY,				/* one of the two, or the owner */
	AQ_RIGHT_SEE,				/* its definition and its counters: also a member of pg_monitor */
	AQ_RIGHT_OWNER
} AqRight;

/*
 * --- catalog.c
 *
 * The pointers returned are good until the next lookup.  All raise
 * AQ_ERR_QUEUE_UNDEFINED when the queue does not exist or the right is missing.
 */
extern AqQueue *aq_catalog_get(const char *name, AqRight right);
extern AqQueue *aq_catalog_get_by_id(int32 id, bool missing_ok);
extern AqQueue *aq_catalog_get_numbered(int32 id);
extern AqQueue *aq_catalog_exception_queue(AqQueue *queue, int32 named); /* where failed messages go, or NULL */
extern List *aq_catalog_queue_ids(void);	/* all of the database */

/* --- privilege.c */
extern bool aq_privilege_allows(AqQueue *queue, AqRight right);

/*
 * --- schema.c
 *
 * Names of a queue table's tables: t<id> and c<id>.  The tables of the buffered
 * messages of queue n are those of queue table -n: b<n> and d<n>.
 */
extern Oid	aq_schema_relation(const char *name);	/* in schema aq */
extern Oid	aq_schema_data_relation(const char *name); /* in schema aq_data; may be InvalidOid */
extern char *aq_schema_message_table(int32 queue_table_id);
extern char *aq_schema_consumer_table(int32 queue_table_id);

/* of the session whose messages this one enqueues, a helper for another session; the identity is that in rows, never used twice */
extern int64 aq_schema_session_identity(void);
extern int	aq_schema_session_number(void);

/* --- sql.c: run a command as the extension's owner, with a pinned search_path */
extern int	aq_sql_run(const char *command, int nargs, Oid *types, Datum *values,
					   const char *nulls, bool read_only);
extern bool aq_sql_finds(const char *query);	/* does it return a row? */

/* --- pending.c: what the transaction has changed of definitions */
extern bool aq_pending_is_dropped(int32 id);

/*
 * --- queue_lock.c
 *
 * The heavyweight lock of a queue: AccessExclusiveLock to drop it,
 * ShareUpdateExclusiveLock for other definitions, AccessShareLock for the
 * worker that makes tables; enqueue and dequeue take none, unless they have to
 * wait for a table while they hold another.  That of a producer is another one.
 */
extern bool aq_queue_lock(int32 id, LOCKMODE mode, bool wait);
extern bool aq_queue_lock_pass(int32 id, LOCKMODE mode, bool wait);
extern bool aq_queue_lock_tables(AqQueue *queue, LOCKMODE mode);
extern bool aq_queue_lock_producer(int32 id, int64 producer, bool wait);	/* until the transaction ends */

/* --- payload.c: what a table with a column of the type needs; wait: false for the worker */
extern bool aq_payload_type_lock(Oid type, bool wait);

/* === room memory ============================================================== */

/* Counters, and times, of a queue; the first ones of its consumers, too: see traffic.c. */
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

/* What sessions wait for and what is counted, per (queue, consumer). */
typedef struct AqConsumerShm
{
	AqWaitList	waiters;		/* woken one per message; queue's waiters latch */
	AqWaitList	selective;		/* with a condition: woken by every message */

	/*
	 * Positions are used again, numbers are not.  Both only grow, so a session that
	 * comes late with what it knows of an earlier consumer changes nothing.
	 */
	pg_atomic_uint64 number;	/* of the latest consumer at this position */
	pg_atomic_uint64 removed;	/* of the latest that was removed; 0: none */
	pg_atomic_uint64 enqueued;	/* messages made ready or waiting for it */
	pg_atomic_uint64 dequeued;	/* consumed and committed, expired, purged */
	/* not of a single consumer, whose traffic is the queue's */
	pg_atomic_uint64 traffic[AQ_NCONSUMER_TRAFFIC];
	pg_atomic_uint64 before;	/* of enqueued and dequeued: earlier consumers' at this position */
	pg_atomic_uint64 found;		/* of enqueued: there when the queue came into use */
	/* of a store that counts now and then, by the worker; counted_at is written last, 0: not yet */
	pg_atomic_uint64 counted_ready;
	pg_atomic_uint64 counted_delayed;
	pg_atomic_uint64 counted_in_flight;
	pg_atomic_uint64 counted_oldest;
	pg_atomic_uint64 counted_at;
	pg_atomic_uint64 rule_logged;	/* hash of the rule whose failure was logged; 0: none */
	/* of a recipient: see holds.c */
	pg_atomic_uint64 closing;	/* number of the one whose position the worker gives back; 0: none */
	pg_atomic_uint32 holds;		/* by transactions that enqueue for it, and dequeues */
	/* the worker's own: nothing has happened to it since then, see recipient.c */
	uint32		idle_enqueued;	/* the lowest bits */
	TimestampTz idle_since;		/* 0: not idle when it was looked at last */
} AqConsumerShm;

#define AQ_CONSUMERS_PER_CHUNK 8

/* Unsubscribed: nothing counts for it any more. */
static inline bool
aq_consumer_removed(AqConsumerShm *consumer)
{
	uint64		removed = pg_atomic_read_u64(&consumer->removed);

	return removed != 0 && removed >= pg_atomic_read_u64(&consumer->number);
}

struct AqQueueShm
{
	AqObject   *object;			/* of the object cache; has our index */
	Oid			database;
	int32		queue_id;
	uint64		key;			/* tells a queue from another one of the same id */
	char		store;			/* AqStore.kind */
	bool		single;			/* one consumer, nameless, at position 0 */
	AqLatch		waiters_latch;	/* protects the wait lists */
	pg_atomic_uint32 waiting;	/* wait entries for any consumer of it */
	pg_atomic_uint32 work;		/* what the worker has to do: AQ_WORK_* */
	pg_atomic_uint64 check_at;	/* when it has to check waiters; 0: not */
	pg_atomic_uint32 uncounted; /* how often it could not write retry counts */
	pg_atomic_uint32 uncounted_seen; /* 1: a check has met a retry count that was to be written */
	pg_atomic_uint64 next_time; /* when the store has something to do by time; 0: never */
	uint32		later_work;		/* the worker's own: what it wants to do ... */
	TimestampTz later_at;		/* ... at this time */
	pg_atomic_uint64 definition;	/* descriptions read before this time of the clock are old: see definition_clock.c */
	/* transactions that have enqueued or dequeued, those that wait to stop it: see users.c */
	pg_atomic_uint32 users;
	pg_atomic_uint32 stops_enqueue;
	pg_atomic_uint32 stops_dequeue;
	/* of a queue converted from a queue table: see convert.c */
	bool		converted;		/* nothing new goes into the queue table */
	bool		settled;		/* and no transaction enqueues there any more */
	bool		table_done;		/* nothing is left there */
	TransactionId horizon;		/* the worker's own: transactions before it may be */
	pg_atomic_uint64 table_puts;	/* messages committed into the queue table */
	AqCond		changed;		/* a table, a load, a retry, a recipient is there */
	AqCond		room;			/* enqueuers of buffered messages may go on: see flow.c */
	pg_atomic_uint64 room_below;	/* they wait for a lag below this; 0: none waits */
	char		recipient[AQ_MAX_NAME]; /* to be given a position; waiters latch */
	char		refused[AQ_MAX_NAME];	/* there was none for this one; the same latch */
	/* counters since the queue was loaded */
	pg_atomic_uint64 enqueued;
	pg_atomic_uint64 dequeued;
	pg_atomic_uint64 traffic[AQ_NTRAFFIC];
	AqConsumerShm first;		/* position 0, all a single-consumer queue needs */
	AqChunk		more[AQ_MAX_CONSUMERS / AQ_CONSUMERS_PER_CHUNK + 1];	/* 0: none yet */
};

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

/* The first, for a consumer as well.  Never raises. */
extern void aq_traffic_add_for(AqQueueShm *shm, int position, AqTraffic item, uint64 n);
extern void aq_traffic_row(AqRow *row, AqQueueShm *shm, int position);

/* Messages that a transaction has consumed: when they were enqueued. */
typedef struct AqConsumed
{
	uint64		n;
	uint64		times;			/* sum, modulo 2^64 */
	TimestampTz last;			/* of the one taken last */
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

/* The consumer has dequeued and committed them now.  Never raises. */
extern void aq_traffic_dequeued(AqQueueShm *shm, int position, const AqConsumed *consumed);

/*
 * A store counts by these when transactions commit.  None of them raises: messages
 * of the queue, of which so many have a delay or an expiration; their shares of
 * a consumer; those a consumer is done with, has failed to process, or can
 * dequeue now after a delay.
 */
extern void aq_traffic_put(AqQueueShm *shm, uint64 n, uint64 delayed, uint64 expiring, TimestampTz when);
extern void aq_traffic_enqueued(AqQueueShm *shm, int position, uint64 n, TimestampTz when);
extern void aq_traffic_done(AqQueueShm *shm, int position, uint64 n);
extern void aq_traffic_found(AqQueueShm *shm, int position, uint64 n);	/* not enqueued, but found when it came into use */
extern void aq_traffic_failed(AqQueueShm *shm, int position, uint64 n, TimestampTz when);
extern void aq_traffic_ready(AqQueueShm *shm, uint64 n, TimestampTz when);

/* Of a number that only grows. */
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
#define AQ_WORK_REMOVED		0x0020	/* clean up behind unsubscribed consumers */
#define AQ_WORK_RECIPIENTS	0x0040	/* give positions to new recipients */
#define AQ_WORK_RECOUNT		0x0080	/* count what a restart has left */
#define AQ_WORK_POSITIONS	0x0100	/* free positions of removed consumers */
#define AQ_WORK_WAITERS		0x0200	/* wake for what was not fetched */
#define AQ_WORK_CONVERT		0x0400	/* end the conversion from a queue table */
#define AQ_WORK_BUFFERED	0x0800	/* make the tables of buffered messages */
#define AQ_WORK_SURPLUS		0x1000	/* drop empty tables that are too many */
#define AQ_WORK_COUNT		0x2000	/* count what aq.metrics() shows of a queue table's queue */
#define AQ_WORK_IDLE		0x4000	/* give back positions of recipients without messages */

/* --- shm.c */
extern AqConsumerShm *aq_shm_consumer(AqQueueShm *shm, int position);
extern AqQueueShm *aq_shm_by_index(uint32 index);
extern uint32 aq_shm_queue_of_latch(int child, uint32 *database);	/* for aq_trace_on_name */

/* --- work.c: what the worker is to do */
extern void aq_work_post(AqQueueShm *shm, uint32 work);	/* never raises */
extern void aq_work_announce_time(AqQueueShm *shm, TimestampTz when);	/* never raises */
extern void aq_work_later(AqQueueShm *shm, uint32 work, int64 microseconds);	/* the worker only */

/* --- lag.c: flow control of buffered messages; never raises */
extern void aq_lag_shrank(AqQueueShm *shm, int position);

/* --- waiters.c: wake-ups; never raise */
extern bool aq_waiters_exist(AqQueueShm *shm);	/* after a memory barrier */
extern void aq_waiters_wake(AqQueueShm *shm, int position, uint32 messages);
extern void aq_waiters_wake_all(AqQueueShm *shm); /* the definition has changed */

/* --- retries.c: retry counts, which the worker writes */
extern void aq_retries_later(AqQueueShm *shm, int64 microseconds);
extern void aq_retries_counted(AqQueueShm *shm);
extern int64 aq_retries_patience(void);
extern bool aq_retries_await(AqQueueShm *shm, bool only_checks, int64 until, bool (*pending) (void *arg), void *arg);

/*
 * --- pins.c
 *
 * aq_pins_pin pins the queue for the session, or for the transaction.
 */
extern void aq_pins_pin(AqQueue *queue);
extern bool aq_pins_is_used(const AqQueueShm *shm);	/* by this transaction; it is pinned */

/* For views: pinned in between, unless it is not in memory and there is little room. */
typedef struct AqPeek
{
	AqObject   *object;
	uint32		pins;			/* what the session had of it before */
	uint64		used_in;
} AqPeek;

extern bool aq_pins_peek(AqQueue *queue, AqPeek *peek);
extern void aq_pins_peek_end(const AqPeek *peek);

/* --- flow.c */
extern bool aq_flow_is_full(AqQueue *buffered);

/* === room calls ===============================================================
 *
 * --- wait.c
 *
 * Must a take pass by what the transaction's snapshot does not
 * show?  In REPEATABLE READ and above, but not for a CALL that waits outside of
 * a transaction block: what it waits for comes after its snapshot.
 */
extern bool aq_wait_take_uses_snapshot(void);

#include "queue/store.h"

/* Do new messages go into the sharded store? */
static inline bool
aq_queue_is_sharded(const AqQueue *queue)
{
	return queue->store->kind != AQ_STORE_CLASSIC;
}

#endif							/* AQ_QUEUE_H */
