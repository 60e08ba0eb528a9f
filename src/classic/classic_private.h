/*-------------------------------------------------------------------------
 *
 * classic_private.h
 *	  Declarations shared by the files of part "classic".
 *
 * A queue table is two heap tables: aq_data.t<id>, one row per message, and,
 * when its queues are topics, aq_data.c<id>, one row per message and consumer.
 * A consumer dequeues rows of t in a queue, and its rows of c in a topic.  Both
 * tables begin with the same columns and have the same index "order", so that
 * the same code walks over both.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_CLASSIC_PRIVATE_H
#define AQ_CLASSIC_PRIVATE_H

#include "classic/classic.h"
#include "classic/xids.h"

#include "access/genam.h"
#include "access/relscan.h"
#include "access/skey.h"
#include "executor/tuptable.h"
#include "nodes/execnodes.h"
#include "utils/rel.h"
#include "utils/snapshot.h"
#include "utils/timestamp.h"

/* --- columns of the tables ----------------------------------------------------- */

enum
{
	/* of both tables */
	COL_QUEUE, COL_POSITION, COL_STATE, COL_ATTEMPTS, COL_KEY1, COL_KEY2, COL_STEP, COL_NEXT_AT,
	COL_DEQUEUE_TIME, COL_DEQUEUE_USER, COL_DEQUEUE_XID, COL_RECEIPT, COL_LEASED_AT, COL_HOLDER,
	COL_LAST_ERROR, COL_FIRST_ATTEMPT, COL_LAST_ATTEMPT, COL_DIED, COL_DEATH, COL_CONSUMER_COLUMNS,
	/* of the table of messages */
	COL_ODD = COL_CONSUMER_COLUMNS, COL_ID, COL_PRIORITY, COL_ENQUEUE_TIME, COL_ENQUEUE_USER,
	COL_ENQUEUE_XID, COL_SESSION, COL_READY_AT, COL_EXPIRES_AT, COL_CORRELATION, COL_PROPERTIES,
	COL_SENDER, COL_EXCEPTION_QUEUE, COL_ORIGINAL_ID, COL_DEAD_LETTER, COL_EARLIER,
	COL_GROUP,
	COL_TARGETS, COL_EXCEPTION_QUEUE_ID, COL_PAYLOAD,
	COL_MESSAGE_KEY,			/* tables made by 0.1.0 do not have it */
	COL_MESSAGE_COLUMNS
};

/* values of COL_STATE; Oracle's numbers */
#define STATE_READY		0
#define STATE_WAITING	1
#define STATE_PROCESSED	2		/* kept for the retention time; not in the index "order" */
#define STATE_EXPIRED	3		/* consumer row: failed; message row: in an exception queue */
#define STATE_CHECK		4		/* a consumer row at POSITION_CHECK */
/* of leases: see README.md */
#define STATE_LEASED	5		/* until its next_at */
#define STATE_FAILED	6		/* rejected; released over the limit of attempts, or expired: the worker moves it */

/*
 * The position of rows that request the worker to check whether all consumers
 * have finished with a message.
 */
#define POSITION_CHECK	(-1)

/*
 * A message's position in the order of its queue: two columns from the sort
 * list, then a number that grows with the enqueue calls.
 */
typedef struct Key
{
	int64		key1;
	int64		key2;
	int64		step;
} Key;

#define KEY_FIRST ((Key) {PG_INT64_MIN, PG_INT64_MIN, PG_INT64_MIN})
#define KEY_LAST ((Key) {PG_INT64_MAX, PG_INT64_MAX, PG_INT64_MAX})

static inline int
key_compare(const Key *a, const Key *b)
{
	if (a->key1 != b->key1)
		return a->key1 < b->key1 ? -1 : 1;
	if (a->key2 != b->key2)
		return a->key2 < b->key2 ? -1 : 1;
	if (a->step != b->step)
		return a->step < b->step ? -1 : 1;
	return 0;
}

/*
 * The number of an enqueue call follows the clock: it is a time in units of
 * 2^-STEP_SHIFT microseconds.
 */
#define STEP_SHIFT 10
/* the gap between two steps leaves room to put messages between them */
#define STEP_GAP (INT64CONST(1) << STEP_SHIFT)

/* Is the queue sorted by commit_time? */
static inline bool
sorts_by_commit(const AqQueue *queue)
{
	return strchr(queue->table.sort, AQ_SORT_COMMIT_TIME) != NULL;
}

/*
 * Is it sorted by the order of the enqueue calls?  Then a message's key can be
 * computed from its id.
 */
static inline bool
sorts_by_calls(const AqQueue *queue)
{
	return queue->table.sort[0] == '\0' ||
		(queue->table.sort[0] == AQ_SORT_ENQUEUE_TIME && queue->table.sort[1] == '\0');
}

/* --- shared memory ------------------------------------------------------------------ */

/*
 * Keys between two others, both excluded, where no row can be dequeued: see
 * ranges.c.
 */
typedef struct Range
{
	Key			after;
	Key			before;
} Range;

#define RANGES_MAX ((AQ_CHUNK_SIZE - 8) / sizeof(Range))

typedef struct RangeList
{
	pg_atomic_uint32 change;	/* odd while the other members change: readers get no latch */
	uint32		n;
	Range		ranges[RANGES_MAX]; /* ascending, disjoint */
} RangeList;

StaticAssertDecl(sizeof(RangeList) <= AQ_CHUNK_SIZE, "a consumer's ranges fit into a chunk");

/* A latest announcement: the consumer's rows with these keys may be ready. */
typedef struct Announcement
{
	Range		keys;			/* both ends included */
	int			position;		/* of the consumer; below 0: of several consumers */
} Announcement;

#define ANNOUNCED_MAX (AQ_CHUNK_SIZE / sizeof(Announcement))

typedef struct Announced
{
	Announcement latest[ANNOUNCED_MAX];
} Announced;

StaticAssertDecl(sizeof(Announced) <= AQ_CHUNK_SIZE, "a queue's announcements fit into a chunk");

#define LISTS_PER_CHUNK (AQ_CHUNK_SIZE / sizeof(AqChunk))
#define LIST_CHUNKS (AQ_MAX_CONSUMERS / LISTS_PER_CHUNK)

typedef enum NoteKind
{
	NOTE_MESSAGES,				/* enqueued; at position 0 */
	NOTE_PUT,					/* enqueued for the consumer, ready */
	NOTE_PUT_LATER,				/* enqueued for the consumer, with a delay */
	NOTE_REMOVE,				/* taken; a rollback counts as an attempt */
	NOTE_MOVE,					/* taken, to be put into another queue; a rollback does not count */
	NOTE_PURGE,					/* taken; a rollback does not count, nor is it a dequeue */
	NOTE_LOCK,					/* locked, not consumed */
	NOTE_LEASE,					/* taken with a lease; a rollback counts as an attempt */
	NOTE_ACKNOWLEDGE,			/* of leased messages: consumed */
	NOTE_RELEASE,				/* ready */
	NOTE_RELEASE_LATER,			/* ready later */
	NOTE_EXTEND,
	NOTE_REJECT,				/* rejected, or over the limit when released */
	NOTE_READY,					/* by the worker: becomes ready when it commits */
	NOTE_FAIL					/* by the worker: fails when it commits */
} NoteKind;

/* Numbers to count when a transaction commits. */
typedef struct Effect
{
	NoteKind	kind;
	int			position;
	uint32		n;
	uint32		delayed;		/* NOTE_MESSAGES: with a delay */
	uint32		expiring;		/* NOTE_MESSAGES: with an expiration */
	AqConsumed	consumed;		/* NOTE_REMOVE */
} Effect;

/*
 * A rolled back dequeue whose retry counts the worker must write; or what a
 * prepared transaction has done, to be counted when it commits.  If only numbers
 * of messages matter, it is for many consumers: see prepared_counts.c.
 *
 * An entry counts for the share of the role whose transaction has reserved it,
 * until it is free again: see share.c.  So no role can use up those of the others.
 */
typedef struct Retry
{
	uint32		next;			/* in the queue's or the free list; 0: end */
	Oid			role;			/* invalid: free, or reserved by a worker */
	TransactionId doubt;		/* prepared transaction, which may not have ended; else invalid */
	Effect		effect;			/* if in doubt: effect of the commit */
	union
	{
		struct
		{
			Xids		taken;	/* transactions and subtransactions that took the rows */
			Xids		tried;	/* transactions of the worker that failed to count them */
			Key			lowest, /* the rows taken are between these keys, ends included */
						highest;
			bool		alone;	/* the only message of the queue that was rolled back */
		};
		/* if only_numbers(effect.kind): a bitmap of those with effect.n messages each */
		uint64		consumers[AQ_MAX_CONSUMERS / 64];
	};
} Retry;

/* Does the effect consist of numbers of messages, by consumer? */
static inline bool
only_numbers(NoteKind kind)
{
	return kind == NOTE_PUT || kind == NOTE_PUT_LATER || kind == NOTE_PURGE ||
		(kind >= NOTE_ACKNOWLEDGE && kind <= NOTE_REJECT);
}

typedef struct ClassicQueue
{
	AqLatch		latch;			/* held by sessions that change the following members, up to the other atomics */
	pg_atomic_uint64 nannounced;	/* number of announcements made */
	AqChunk		announced;		/* Announced, a ring buffer */
	AqChunk		lists[LIST_CHUNKS]; /* arrays of AqChunks, one for each consumer's RangeList; 0: none.  Once set, an
									 * entry keeps its value until the queue is unloaded. */
	uint32		retries;		/* to be written */
	pg_atomic_uint32 nretries;
	pg_atomic_uint64 step;		/* the latest step */
	pg_atomic_uint32 worker;	/* latest transaction of the worker that has changed rows */
	pg_atomic_uint64 counts;	/* worker transactions that counted attempts, just before their commits */
	pg_atomic_uint64 receipt;	/* number of the latest receipt: see leased_row.c */
	pg_atomic_uint64 extensions;	/* leases extended, counted before the commit */
	pg_atomic_uint64 time_from; /* no row has an earlier next_at, except rows that the worker is processing */
	pg_atomic_uint64 count_took;	/* how long the last count took, in microseconds */
	pg_atomic_uint64 count_from;	/* the worker may count again for aq.metrics() after this time */
} ClassicQueue;

#define TIME_NONE PG_UINT64_MAX

/* capacity for prepared transactions that have used queues of this store */
#define DOUBTS_MAX 64

typedef struct ClassicArea
{
	AqLatch		latch;			/* protects the free retries and the doubts */
	uint32		free_retry;
	uint32		nfree_retries;
	uint32		ndoubts;
	bool		too_many;		/* more than DOUBTS_MAX: any xid may be in doubt */
	struct
	{
		TransactionId xid;
		uint32		queue;
	}			doubts[DOUBTS_MAX];
} ClassicArea;

extern ClassicArea *aq_classic_area;
extern ClassicQueue *aq_classic_area_queues;
extern Retry *aq_classic_area_retries;
extern pg_atomic_uint32 *aq_classic_area_takers;	/* by session: see takers.c */

static inline ClassicQueue *
classic_queue(const AqQueueShm *shm)
{
	return &aq_classic_area_queues[shm->object->index];
}

/* --- classic_area.c */
extern uint32 aq_classic_area_max_retries(void);
extern Size aq_classic_area_size(void);
extern void aq_classic_area_init(void *area, bool found);

/* --- step.c: steps, and the message ids made of them */
extern int64 aq_step_next(AqQueueShm *shm);
extern pg_uuid_t aq_step_message_id(uint64 key, int64 step);
extern bool aq_step_of_id(const pg_uuid_t *id, uint64 key, int64 *step);

/* --- due_time.c: when a queue has something to do */
extern void aq_due_time_lower(AqQueueShm *shm, TimestampTz when);
extern void aq_due_time_announce(AqQueueShm *shm, TimestampTz when);

/* --- ranges.c ---------------------------------------------------------------------------- */

/* A copy of a consumer's ranges, made at the beginning of a walk. */
typedef struct RangeCopy
{
	uint64		nannounced;
	uint32		n;
	Range		ranges[RANGES_MAX];
} RangeCopy;

extern void aq_ranges_read(AqQueueShm *shm, int position, RangeCopy *copy);
extern void aq_ranges_add(AqQueueShm *shm, int position, const RangeCopy *since, const Range *range);
extern void aq_ranges_worker(AqQueueShm *shm);
extern void aq_ranges_announce(AqQueueShm *shm, int position, const Key *lowest, const Key *highest);
extern void aq_ranges_announce_set(AqQueueShm *shm, const Bitmapset *positions,
								   const Key *lowest, const Key *highest);

/* --- classic_doubts.c: prepared transactions */
extern TransactionId aq_classic_doubts_top(TransactionId xid);
extern bool aq_classic_doubts_has(TransactionId xid);
extern void aq_classic_doubts_add(TransactionId xid, uint32 queue);
extern bool aq_classic_doubts_any(AqQueueShm *shm);
extern void aq_classic_doubts_forget(uint32 queue);
extern void aq_classic_doubts_job(int32 id, AqQueueShm *shm);

/* --- takers.c: sessions that announce their rows after a rollback */
extern void aq_takers_promise(void);
extern void aq_takers_end(void);
extern bool aq_takers_announce(TransactionId xid);

/* --- retry_list.c: rolled back dequeues to be counted */

/* maximum number of entries of one round */
#define RETRIES_MAX 256

extern void aq_retry_list_init(void);
extern void aq_retry_list_check_share(Oid role);
extern uint32 aq_retry_list_reserve(Oid role);
extern bool aq_retry_list_has_plenty(void);
extern void aq_retry_list_free(uint32 index);
extern void aq_retry_list_add(AqQueueShm *shm, uint32 index);
extern void aq_retry_list_remove(AqQueueShm *shm, uint32 index);
extern int	aq_retry_list_read(AqQueueShm *shm, uint32 *indexes);
extern void aq_retry_list_try(AqQueueShm *shm, Retry *retry);
extern bool aq_retry_list_is_of(const Retry *retry, TransactionId xid);
extern bool aq_retry_list_pending(AqQueueShm *shm, int position, const Key *key, TransactionId xid);

/* --- prepared_counts.c: numbers of messages of a transaction that is being prepared */
extern void aq_prepared_counts_add(AqQueueShm *shm, NoteKind kind, int position, uint32 n, Oid role,
								   uint32 (*reserve) (Oid role));
extern void aq_prepared_counts_pass(TransactionId doubt);
extern void aq_prepared_counts_forget(void);

/* --- table_index.c: the indexes of the tables */
typedef enum TableIndexKind
{
	INDEX_ORDER, INDEX_ID, INDEX_TIME, INDEX_OTHER
} TableIndexKind;

extern TableIndexKind aq_table_index_kind(Relation index);
extern Relation aq_table_index_open(Relation rel, TableIndexKind kind, LOCKMODE mode);
extern Relation aq_table_index_open_time(Relation rel);
extern void aq_table_index_insert(Relation rel, TupleTableSlot **slots, int n);

/* --- body_row.c: the rows of bodies of large messages */
extern Oid	aq_body_row_table(int32 id);
extern bool aq_body_row_try_lock(const AqQueue *queue);
extern void aq_body_row_insert(Relation rel, const pg_uuid_t *id, int32 number, bytea *data);
extern void aq_body_row_delete(Relation messages, TupleTableSlot *slot);
extern bytea *aq_body_row_read(Relation rel, const pg_uuid_t *id, int32 number, bool deleted);

/* --- table_row.c: the rows of the tables */
extern Key	aq_table_row_key(TupleTableSlot *slot);
extern HeapTupleHeader aq_table_row_header(TupleTableSlot *slot);
extern Bitmapset *aq_table_row_targets(Datum bytes);
extern bool aq_table_row_locked_here(HeapTupleHeader header);
extern bool aq_table_row_locked_elsewhere(HeapTupleHeader header);
extern TransactionId aq_table_row_locker(HeapTupleHeader header);
extern bool aq_table_row_lock(Relation rel, TupleTableSlot *slot);
extern void aq_table_row_insert(Relation rel, TupleTableSlot **slots, int n);
extern TM_Result aq_table_row_delete(Relation rel, TupleTableSlot *slot);
extern TM_Result aq_table_row_update(Relation rel, TupleTableSlot *slot, const int *columns,
									 const Datum *values, const bool *nulls, int n);
extern TM_Result aq_table_row_process(const AqQueue *queue, Relation rel, TupleTableSlot *slot);

/* --- row_scan.c: walking over the rows of a queue or consumer -------------------------------------- */

/* An open table with a scan of its index "order". */
typedef struct RowScan
{
	Relation	rel;
	Relation	order;			/* the index "order" */
	LOCKMODE	lock;
	TupleTableSlot *slot;
	IndexScanDesc scan;
	SnapshotData dirty;
	ScanDirection direction;
	/* last result of aq_row_scan_find(), if the scan has not moved since */
	bool		found;
	int32		found_queue;
	int			found_position;
	Key			found_key;
	ScanKeyData keys[3];
	ScanKeyData from[3];
} RowScan;

/* The worker's open scans of a queue. */
typedef struct QueueScans
{
	AqQueue    *queue;
	RowScan		messages;
	RowScan		consumers;		/* of a topic */
	RowScan		probe;			/* the same table, for lookups */
} QueueScans;

extern bool aq_row_scan_try_lock(AqQueue *queue);
extern Relation aq_row_scan_open_table(AqQueue *queue, Oid table, LOCKMODE mode);
extern void aq_row_scan_open(RowScan *rows, AqQueue *queue, Oid table, LOCKMODE mode);
extern void aq_row_scan_close(RowScan *rows, bool unused);
extern void aq_row_scan_open_all(QueueScans *scans, AqQueue *queue);
extern void aq_row_scan_close_all(QueueScans *scans);
extern void aq_row_scan_seek(RowScan *rows, int32 queue, int position, const Key *from, ScanDirection direction);
extern bool aq_row_scan_next_entry(RowScan *rows, const Key *end, Key *key);
extern bool aq_row_scan_fetch(RowScan *rows);
extern bool aq_row_scan_next(RowScan *rows, const Key *end, Key *key);
extern bool aq_row_scan_find(RowScan *rows, int32 queue, int position, const Key *key);
extern bool aq_row_scan_find_id(RowScan *rows, AqQueue *queue, const pg_uuid_t *id);
extern bool aq_row_scan_any_time(RowScan *rows, int32 queue);

/* --- unlogged.c: the tables of buffered messages */
extern void aq_unlogged_mark(const char *table);
extern AqAnswer aq_unlogged_was_emptied(AqQueue *queue);
extern bytea *aq_unlogged_blocks_in_memory(Oid table);

/* --- topic.c: the consumers of a topic's message */
typedef enum TopicOthers
{
	OTHERS_DONE,				/* all have finished with the message */
	OTHERS_FAILED,				/* all have finished or failed */
	OTHERS_WAIT,				/* at least one still has to dequeue it */
	OTHERS_UNKNOWN				/* a running transaction has taken a consumer's row */
} TopicOthers;

extern TopicOthers aq_topic_others(AqQueue *queue, RowScan *consumers, const Bitmapset *targets,
								   const Key *key, int position);
extern void aq_topic_ask(AqQueue *queue, Relation rel, const Key *key, TimestampTz when);
extern void aq_topic_done(AqQueue *queue, RowScan *messages);
extern void aq_topic_check(AqQueue *queue, RowScan *consumers, RowScan *messages, const Key *key, int position);

/* --- commit_order.c: queue tables sorted by commit_time */

/* the second key of a message whose transaction has not committed */
#define KEY_PENDING (PG_INT64_MAX - 1)

extern bool aq_commit_order_may_put(AqQueue *queue);
extern void aq_commit_order_note(const AqQueue *queue, const Key *key);
extern void aq_commit_order_number(void);
extern void aq_commit_order_forget(void);

/* --- classic_notes.c: what the transaction has enqueued and taken */

/*
 * What a prepared transaction and its subtransactions have done for a consumer,
 * found after a restart.
 */
typedef struct InDoubt
{
	int			position;
	TransactionId top;
	Oid			role;			/* which has prepared the transaction */
	Xids		xids;
	bool		put;			/* enqueued; false: taken, or finished with its lease */
	int32		n;
	AqConsumed	consumed;
	Key			lowest,
				highest;
} InDoubt;

extern const AqStoreXact aq_classic_notes_xact;
extern void aq_classic_notes_reserve(AqQueueShm *shm, int position, NoteKind kind);
extern void aq_classic_notes_add(AqQueueShm *shm, int position, NoteKind kind, const Key *key, uint32 n);
extern void aq_classic_notes_add_messages(AqQueueShm *shm, const AqPutOptions *options, uint32 n);
extern void aq_classic_notes_add_taken(AqQueueShm *shm, int position, NoteKind kind, const Key *key, TimestampTz now,
									   const AqMessage *message);
extern bool aq_classic_notes_have_takes(const AqQueueShm *shm);
extern void aq_classic_notes_mark_last(AqQueueShm *shm, int position);
extern bool aq_classic_notes_have_last(const AqQueueShm *shm);
extern void aq_classic_notes_restore(AqQueueShm *shm, const InDoubt *doubt, bool alone);
extern void aq_classic_notes_count(AqQueueShm *shm, const Retry *retry);
extern uint64 aq_classic_notes_enqueued(const AqQueueShm *shm);
extern uint64 aq_classic_notes_finished(const AqQueueShm *shm, int position);

/* --- leased_row.c: rows that are leased */
extern int64 aq_leased_row_receipt(AqQueueShm *shm, int64 after);
extern int64 aq_leased_row_latest_receipt(TupleTableSlot *slot);
extern bool aq_leased_row_over_limit(const AqQueue *queue, TupleTableSlot *slot);
extern TM_Result aq_leased_row_take(const AqQueue *queue, RowScan *rows, int64 lease, int64 receipt);
extern TM_Result aq_leased_row_extend(const AqQueue *queue, RowScan *rows, TimestampTz until);
extern TM_Result aq_leased_row_fail(const AqQueue *queue, RowScan *rows, char kind, int attempts, TimestampTz now,
									const char *error);
extern int	aq_leased_row_ready(const AqQueue *queue, TupleTableSlot *message, TimestampTz *expires);
extern TM_Result aq_leased_row_give_back(const AqQueue *queue, RowScan *rows, TupleTableSlot *message, int attempts,
										 TimestampTz until, const char *error, bool *ready);

/* --- classic_body.c: bodies of large messages */
extern AqBodyWrite aq_classic_body_write(AqQueue *queue, const pg_uuid_t *id, int32 number, bytea *data);
extern bytea *aq_classic_body_read(AqQueue *queue, const pg_uuid_t *id, int32 number, int position);

/* --- classic_lease.c: acknowledge, extend, release, reject */
extern void aq_classic_lease_settle(AqQueue *queue, const AqLeaseOptions *options, const pg_uuid_t *ids, uint32 n,
									AqLeaseResult *results);

/* --- classic_put.c, classic_take.c */
extern void aq_classic_put(AqQueue *queue, const AqPutOptions *options, uint32 n,
						   const Datum *payloads, const bool *nulls,
						   Bitmapset *const *targets, pg_uuid_t *ids);
extern uint32 aq_classic_take(AqQueue *queue, const AqTakeOptions *options);
extern bool aq_classic_take_ready(AqQueue *queue, int position, int64 until);

/* --- poison.c: messages that have failed before */
extern uint32 aq_poison_limit(const AqQueue *queue, const AqTakeOptions *options, int attempts, uint32 taken, uint32 limit);
extern bool aq_poison_is_last(const AqQueue *queue, const AqTakeOptions *options, int attempts);
extern bool aq_poison_withholds(const AqQueue *queue, const AqTakeOptions *options);

/* --- failure.c: messages that have failed or expired */
extern int	aq_failure_attempts(const AqQueue *queue, TupleTableSlot *slot);
extern bool aq_failure_over_limit(const AqQueue *queue, int attempts);
extern AqDeath aq_failure_death(TupleTableSlot *slot);
extern bool aq_failure_check_topic(QueueScans *scans, const Key *key);
extern bool aq_failure_row(QueueScans *scans, RowScan *rows, const AqDeath *death);

/* --- jobs of the worker */
extern void aq_classic_retry_job(int32 id, AqQueueShm *shm);
extern void aq_classic_time_job(int32 id, AqQueueShm *shm);
extern void aq_classic_count_job(int32 id, AqQueueShm *shm);
extern bool aq_removed_consumer_free(AqQueue *queue, AqRemoved *removed);

/* --- classic_tables.c */
extern void aq_classic_tables_make(int32 id, Oid payload_type, bool multi, Oid owner);
extern void aq_classic_tables_drop(int32 id);
extern char *aq_classic_tables_lost(const AqQueue *queue);
extern void aq_classic_tables_lock(AqQueue *queue);
extern void aq_classic_tables_drop_queue(AqQueue *queue, bool force);
extern bool aq_classic_tables_hold(AqQueue *queue);
extern void aq_classic_tables_ask_for_keys(AqQueue *queue, bool only_group);
extern bool aq_classic_tables_take_keys(AqQueue *queue);
extern void aq_classic_tables_keys_job(int32 id, AqQueueShm *shm);
extern void aq_classic_tables_leave(AqQueue *queue);

/* --- classic_count.c: aq.metrics() */
extern void aq_classic_count_measure(AqQueue *queue, AqMeasure *measures, int n, bool quick);

/* --- classic_queue.c */
extern void aq_classic_queue_load(AqQueue *queue, AqQueueShm *shm);
extern bool aq_classic_queue_idle(AqQueueShm *shm);
extern bool aq_classic_queue_counts_all(AqQueueShm *shm);
extern Bitmapset *aq_classic_queue_without_messages(AqQueue *queue, Bitmapset *positions);
extern void aq_classic_queue_unload(AqQueueShm *shm);

/* --- classic_check.c: aq.check() */
extern void aq_classic_check(AqQueue *queue, AqFindings *findings);
extern void aq_classic_check_pool(AqFindings *findings);
extern uint32 aq_classic_check_chunks(AqQueueShm *shm);

#endif							/* AQ_CLASSIC_PRIVATE_H */
