/*-------------------------------------------------------------------------
 *
 * classic_private.h
 *	  What the files of part "classic" share.
 *
 * A queue table is two heap tables: aq_data.t<id>, one row per message, and,
 * when its queues are topics, aq_data.c<id>, one row per message and consumer.
 * The rows that a consumer dequeues, those of t in a queue and those of c in a
 * topic, are its *line*.  Both tables begin with the same columns and have the
 * same index "order", so that one code walks both kinds of lines.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_CLASSIC_PRIVATE_H
#define AQ_CLASSIC_PRIVATE_H

#include "classic/classic.h"

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
	/* of both */
	COL_QUEUE, COL_POSITION, COL_STATE, COL_ATTEMPTS, COL_KEY1, COL_KEY2, COL_STEP, COL_NEXT_AT,
	COL_DEQUEUE_TIME, COL_DEQUEUE_USER, COL_DEQUEUE_XID, COL_CONSUMER_COLUMNS,
	/* of messages */
	COL_ODD = COL_CONSUMER_COLUMNS, COL_ID, COL_PRIORITY, COL_ENQUEUE_TIME, COL_ENQUEUE_USER,
	COL_ENQUEUE_XID, COL_SESSION, COL_READY_AT, COL_EXPIRES_AT, COL_CORRELATION, COL_PROPERTIES,
	COL_SENDER, COL_EXCEPTION_QUEUE, COL_ORIGINAL_ID, COL_ORIGINAL_QUEUE, COL_REASON, COL_GROUP,
	COL_TARGETS, COL_EXCEPTION_QUEUE_ID, COL_PAYLOAD, COL_MESSAGE_COLUMNS
};

/* COL_STATE; Oracle's numbers */
#define STATE_READY		0
#define STATE_WAITING	1
#define STATE_PROCESSED	2		/* kept for its retention; in no order index */
#define STATE_EXPIRED	3		/* of a consumer: given up; of a message: in an exception queue */
#define STATE_CHECK		4		/* of a consumer row at POSITION_CHECK */

/* The position of rows that ask the worker whether a message's consumers are all done. */
#define POSITION_CHECK	(-1)

/*
 * A message's place in its queue: two columns from the sort list, then a
 * number that grows with the enqueue calls.
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

/* --- shared memory ------------------------------------------------------------------ */

/* Keys between two others, both excluded, where nothing can be dequeued: see ranges.c. */
typedef struct Range
{
	Key			after;
	Key			before;
} Range;

#define RANGES_MAX ((AQ_CHUNK_SIZE - 8) / sizeof(Range))

typedef struct RangeList
{
	uint32		n;
	Range		ranges[RANGES_MAX]; /* ascending, disjoint */
} RangeList;

StaticAssertDecl(sizeof(RangeList) <= AQ_CHUNK_SIZE, "a consumer's ranges fit into a chunk");

/* The latest announcements: keys from lowest to highest may be dequeued. */
#define NEWS_MAX ((AQ_CHUNK_SIZE - 8) / sizeof(Range))

typedef struct News
{
	Range		news[NEWS_MAX]; /* here both ends are included */
} News;

#define LISTS_PER_CHUNK (AQ_CHUNK_SIZE / sizeof(AqChunk))
#define LIST_CHUNKS (AQ_MAX_CONSUMERS / LISTS_PER_CHUNK)

typedef enum NoteKind
{
	NOTE_MESSAGES,				/* enqueued; at position 0 */
	NOTE_PUT,					/* of these, for the consumer, ready */
	NOTE_PUT_LATER,				/* with a delay */
	NOTE_REMOVE,				/* taken; rolled back, it counts */
	NOTE_PURGE,					/* taken; rolled back, it does not */
	NOTE_LOCK,					/* not consumed */
	NOTE_READY,					/* by the worker: can be dequeued when it commits */
	NOTE_FAIL					/* by the worker: given up when it commits */
} NoteKind;

/* What counts when a transaction commits. */
typedef struct Effect
{
	NoteKind	kind;
	int			position;
	uint32		n;
	uint32		delayed;		/* of NOTE_MESSAGES, with a delay, */
	uint32		expiring;		/* with an expiration */
	AqConsumed	consumed;		/* of NOTE_REMOVE */
} Effect;

/* A rolled back dequeue whose count the worker has to write. */
typedef struct Retry
{
	uint32		next;			/* of the queue's, or of the free ones; 0 ends */
	TransactionId doubt;		/* prepared, and perhaps not rolled back; else invalid */
	TransactionId first,		/* what took them */
				last;
	TransactionId tried_first,	/* the worker's, which could not count them */
				tried_last;
	Key			lowest,			/* what was taken lies between, ends included */
				highest;
	Effect		effect;			/* of a doubt: when it commits */
} Retry;

typedef struct ClassicQueue
{
	AqLatch		latch;			/* protects what follows, up to the atomics */
	uint64		nnews;			/* announcements ever made */
	AqChunk		news;			/* News, a ring */
	AqChunk		lists[LIST_CHUNKS]; /* of AqChunks, each a consumer's RangeList; 0: none */
	uint32		retries;		/* to be written */
	pg_atomic_uint32 nretries;
	pg_atomic_uint64 step;		/* the latest number given */
	pg_atomic_uint32 worker;	/* transaction in which the worker has last changed rows */
	pg_atomic_uint64 counts;	/* transactions in which the worker has counted attempts, each a moment before it commits */
	pg_atomic_uint64 time_from; /* no row has an earlier next_at, but those the worker has in hand */
} ClassicQueue;

#define TIME_NONE PG_UINT64_MAX

/* prepared transactions that have touched queues of this store */
#define DOUBTS_MAX 64

typedef struct ClassicArea
{
	AqLatch		latch;			/* of the free retries and the doubts */
	uint32		free_retry;
	uint32		ndoubts;
	bool		too_many;		/* DOUBTS_MAX was not enough: any xid may be one */
	struct
	{
		TransactionId xid;
		uint32		queue;
	}			doubts[DOUBTS_MAX];
} ClassicArea;

extern ClassicArea *aq_classic;
extern ClassicQueue *aq_classic_queues;
extern Retry *aq_retries;
extern pg_atomic_uint32 *aq_classic_takers; /* of each session: see ranges.c */

static inline ClassicQueue *
classic_queue(const AqQueueShm *shm)
{
	return &aq_classic_queues[shm->object->index];
}

/* --- ranges.c ---------------------------------------------------------------------------- */

/* A consumer's ranges as a walk found them. */
typedef struct RangeCopy
{
	uint64		nnews;
	uint32		n;
	Range		ranges[RANGES_MAX];
} RangeCopy;

extern void aq_ranges_read(AqQueueShm *shm, int position, RangeCopy *copy);
extern void aq_ranges_add(AqQueueShm *shm, int position, const RangeCopy *since, const Range *range);
extern void aq_ranges_worker(AqQueueShm *shm);
extern void aq_ranges_announce(AqQueueShm *shm, int position, const Key *lowest, const Key *highest);
extern void aq_ranges_announce_set(AqQueueShm *shm, const Bitmapset *positions,
								   const Key *lowest, const Key *highest);

/* --- lines.c: the tables and their indexes --------------------------------------------------- */

typedef struct Line
{
	Relation	rel;
	Relation	order;			/* its index */
	LOCKMODE	lock;
	TupleTableSlot *slot;
	IndexScanDesc scan;
	SnapshotData dirty;
	ScanDirection direction;
	/* where aq_line_find() was last, if nothing has moved since */
	bool		found;
	int32		found_queue;
	int			found_position;
	Key			found_key;
	ScanKeyData keys[3];
	ScanKeyData from[3];
} Line;

extern Relation aq_table_open(AqQueue *queue, Oid table, LOCKMODE mode);
extern void aq_line_open(Line *line, AqQueue *queue, Oid table, LOCKMODE mode);
extern void aq_line_close(Line *line, bool unused);
extern void aq_line_seek(Line *line, int32 queue, int position, const Key *from, ScanDirection direction);
extern bool aq_line_next(Line *line, const Key *end, Key *key);
extern bool aq_line_fetch(Line *line);
extern bool aq_line_next_row(Line *line, const Key *end, Key *key);
extern bool aq_line_find(Line *line, int32 queue, int position, const Key *key);
extern Key	aq_slot_key(TupleTableSlot *slot);
extern HeapTupleHeader aq_slot_header(TupleTableSlot *slot);

extern Relation aq_time_index_open(Relation rel);
extern void aq_rows_insert(Relation rel, TupleTableSlot **slots, int n);
extern bool aq_locked_here(HeapTupleHeader header);
extern bool aq_locked_elsewhere(HeapTupleHeader header);
extern TransactionId aq_row_locker(HeapTupleHeader header);
extern bool aq_row_lock(Relation rel, TupleTableSlot *slot);
extern TM_Result aq_row_delete(Relation rel, TupleTableSlot *slot);
extern TM_Result aq_row_update(Relation rel, TupleTableSlot *slot, const int *columns,
							   const Datum *values, const bool *nulls, int n);
extern bool aq_row_with_time(Line *line, int32 queue);
extern bool aq_row_find_by_id(Line *line, AqQueue *queue, const pg_uuid_t *id);

/* --- unlogged.c: the tables of buffered messages ------------------------------------------------ */
extern void aq_unlogged_mark(const char *table);
extern AqAnswer aq_classic_was_emptied(AqQueue *queue);
extern bytea *aq_blocks_in_memory(Oid table);

/* --- classic_put.c ------------------------------------------------------------------------------ */
extern void aq_classic_put(AqQueue *queue, const AqPutOptions *options, uint32 n,
						   const Datum *payloads, const bool *nulls,
						   Bitmapset *const *targets, pg_uuid_t *ids);
extern int64 aq_classic_step(AqQueueShm *shm);
extern bool aq_classic_id_parse(const pg_uuid_t *id, uint64 key, int64 *step);
extern Bitmapset *aq_targets_read(Datum bytes);

/* --- commit_order.c: queue tables sorted by commit_time ---------------------------------------- */

/* the second key of a message whose transaction has not committed */
#define KEY_PENDING (PG_INT64_MAX - 1)

extern bool aq_by_commit(const AqQueue *queue);
extern bool aq_by_calls(const AqQueue *queue);
extern bool aq_classic_may_put(AqQueue *queue);
extern void aq_commit_order_note(const AqQueue *queue, const Key *key);
extern void aq_commit_order_number(void);
extern void aq_commit_order_forget(void);

/* --- consumers.c: the consumers of a topic's message -------------------------------------------- */
typedef enum AqOthers
{
	OTHERS_DONE,				/* with the message, all of them */
	OTHERS_FAILED,				/* done, or given up */
	OTHERS_WAIT,				/* one has it before him */
	OTHERS_UNKNOWN				/* one has it in hand */
} AqOthers;

extern AqOthers aq_message_others(AqQueue *queue, Line *consumers, const Bitmapset *targets,
								  const Key *key, int position);
extern void aq_message_ask(AqQueue *queue, Relation rel, const Key *key, TimestampTz when);
extern void aq_message_done(AqQueue *queue, Line *messages);
extern void aq_message_check(AqQueue *queue, Line *consumers, Line *messages, const Key *key, int position);

/* --- classic_take.c ------------------------------------------------------------------------------- */
extern uint32 aq_classic_take(AqQueue *queue, const AqTakeOptions *options);
extern bool aq_classic_ready(AqQueue *queue, int position, int64 until);

/* --- classic_notes.c: what the transaction has in hand --------------------------------------------- */

extern void aq_classic_note_reserve(AqQueueShm *shm, int position, NoteKind kind);
extern void aq_classic_doubt_add(TransactionId xid, uint32 queue);
extern void aq_retry_free(uint32 index);
extern void aq_classic_doubts_forget(uint32 queue);

/* What a restart has left in the hands of a prepared transaction. */
typedef struct InHand
{
	int			position;
	TransactionId xid;
	bool		put;			/* enqueued, else taken */
	uint32		n;
	AqConsumed	consumed;
	Key			lowest,
				highest;
} InHand;

extern void aq_retry_doubt(AqQueueShm *shm, const InHand *hand);
extern void aq_classic_count_commit(AqQueueShm *shm, const Effect *effect);
extern void aq_classic_note(AqQueueShm *shm, int position, NoteKind kind, const Key *key, uint32 n);
extern void aq_classic_note_messages(AqQueueShm *shm, const AqPutOptions *options, uint32 n);
extern void aq_classic_note_taken(AqQueueShm *shm, int position, NoteKind kind, const Key *key, TimestampTz enqueued);
extern uint64 aq_classic_enqueued_here(AqQueueShm *shm);
extern const AqStoreXact aq_classic_notes_xact;
extern bool aq_xid_in_doubt(TransactionId xid);
extern bool aq_xid_announces(TransactionId xid);
extern bool aq_retry_is_of(const Retry *retry, TransactionId xid);
extern bool aq_retry_pending(AqQueueShm *shm, int position, const Key *key, TransactionId xid);

/* --- jobs of the worker --------------------------------------------------------------------------- */
extern void aq_classic_doubt_job(int32 id, AqQueueShm *shm);
extern bool aq_classic_in_doubt(AqQueueShm *shm);
extern bool aq_line_free(AqQueue *queue, AqRemoved *removed);
extern void aq_classic_announce_time(AqQueueShm *shm, TimestampTz when);
extern bool aq_classic_lock(AqQueue *queue);

/* What the worker has open while it works on a queue. */
typedef struct Hands
{
	AqQueue    *queue;
	Line		messages;
	Line		consumers;		/* of a topic */
	Line		probe;			/* the same, for looking up */
} Hands;

extern void aq_hands_open(Hands *hands, AqQueue *queue);
extern void aq_hands_close(Hands *hands);
extern bool aq_topic_message_look(Hands *hands, const Key *key, const char *reason);
extern bool aq_is_over_limit(const AqQueue *queue, int attempts);
extern bool aq_give_up(Hands *hands, Line *line, int position, int attempts, const char *reason);
extern void aq_classic_retry_job(int32 id, AqQueueShm *shm);
extern void aq_classic_time_job(int32 id, AqQueueShm *shm);

/* --- classic.c */
extern uint32 aq_retry_total(void);

/* --- classic_check.c: aq.check() ---------------------------------------------------------------------- */
extern void aq_classic_check(AqQueue *queue, AqFindings *findings);
extern void aq_classic_check_pool(AqFindings *findings);
extern uint32 aq_classic_chunks(AqQueueShm *shm);

#endif							/* AQ_CLASSIC_PRIVATE_H */
