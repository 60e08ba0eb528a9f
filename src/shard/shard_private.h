/*-------------------------------------------------------------------------
 *
 * shard_private.h
 *	  Declarations shared by the files of part "shard"; layout.h has its shared
 *	  memory.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_SHARD_PRIVATE_H
#define AQ_SHARD_PRIVATE_H

#include "queue/queue.h"
#include "shard/shard.h"
#include "shard/slot.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "storage/buf.h"
#include "storage/itemptr.h"
#include "utils/relcache.h"

/*
 * P3 of a wait for tables, to distinguish it from other waits for the worker
 */
#define AQ_WAITS_FOR_TABLES 1

/* of the streams with this node's own messages */
#define STREAM_NUMBERS (AQ_MAX_SHARDS * AQ_PRIORITIES * 2)

/* The store's part of an AqQueueShm, with the same index. */
typedef struct ShardQueue
{
	AqLatch		latch;			/* protects the lists below; taken before any stream's latch */
	volatile uint32 streams;	/* list, in the order of dequeue */
	volatile uint32 numbered[STREAM_NUMBERS];	/* the same streams by number; 0: none */
	uint32		empty;			/* list of EMPTY partitions, used in turn, so that relfrozenxid stays young */
	uint32		empty_last;
	uint32		nempty;
	pg_atomic_uint32 done;		/* list of DONE partitions: see aq_settle_list_done */
	uint32		nstreams;
	uint32		partitions;		/* list of all its partitions, by next_of_queue, and their number; protected by the
								 * pool's latch */
	uint32		npartitions;
	uint32		opened;			/* partitions opened since the queue was loaded */
	int64		receipt;		/* of the latest lease; 0: none since the queue was loaded */
	pg_atomic_uint32 wanting;	/* sessions that wait for empty tables */
	bool		worker_wants;	/* the worker itself needs empty tables */
	int64		move_pause;		/* before the worker tries to move failed messages again, microseconds; only it uses
								 * this */
	int			last_table_no;
	int			trouble;		/* SQLSTATE of the worker's last failure to make tables; 0: none */
	char		trouble_message[160];
	bool		recovered;		/* the worker has counted the partitions after a restart */
	/*
	 * numbers since the queue was loaded: pairs of tables created, tables
	 * truncated
	 */
	pg_atomic_uint64 added_by_sessions;
	pg_atomic_uint64 added_by_worker;
	pg_atomic_uint64 truncated_messages;
	pg_atomic_uint64 truncated_logs;
} ShardQueue;

/* An entry for a prepared transaction in a partition. */
typedef struct Doubt
{
	uint32		partition;		/* 0: unused */
	TransactionId xid;
	int64		session;		/* producer session of its messages; 0: it has only taken messages */
	uint64		sequence;		/* order of entries */
	bool		preparing;		/* not prepared yet: its session handles an abort */
	bool		takes_settled;	/* finished, but its messages wait for another transaction */
} Doubt;

/* queues from which a session takes leases that end with it; those from more queues end by their time */
#define SESSION_BLOCKS 8

/* A block of receipts whose leases end with a session: see lease_session.c. */
typedef struct SessionBlock
{
	pg_atomic_uint64 value;		/* the block and its state; 0: unused.  Written after the others */
	uint32		database;
	int32		queue_id;
	Oid			owner_view;		/* the queue's: after DROP EXTENSION its id can be used again */
} SessionBlock;

extern ShardQueue *aq_area_queues;
extern SessionBlock *aq_area_session_blocks;	/* SESSION_BLOCKS for each session number */
extern Doubt *aq_area_doubts;

extern int	aq_area_max_partitions;
extern int	aq_area_max_streams;

extern Size aq_area_size(void);
extern void aq_area_init(void *area, bool found);
extern void aq_area_reset_counters(ShardQueue *queue);

static inline ShardQueue *
shard_queue(const AqQueueShm *shm)
{
	return &aq_area_queues[shm->object->index];
}

/* by shard, delay and priority: 20 streams for each shard */
static inline int
stream_number(int shard, int priority, bool delayed)
{
	return (shard * AQ_PRIORITIES + priority) * 2 + delayed;
}

/* Are its messages another node's? */
static inline bool
stream_is_held(const Stream *stream)
{
	return stream->shard >= AQ_MAX_SHARDS;
}

/* --- columns of the tables ------------------------------------------------------------ */

/*
 * A row whose ordinal is negative is a chunk of a message's body: the ordinal is the
 * complement of the message's, MSG_SESSION the chunk's number, MSG_TARGETS its bytes.
 */
enum
{
	MSG_ORDINAL, MSG_SESSION, MSG_ENQUEUE_TIME, MSG_STREAM, MSG_PAYLOAD, MSG_TARGETS,
	MSG_CORRELATION, MSG_PROPERTIES, MSG_READY_AT, MSG_EXPIRES_AT, MSG_SENDER,
	MSG_EXCEPTION_QUEUE, MSG_ORIGINAL_ID, MSG_ATTEMPTS, MSG_EXCEPTION_QUEUE_ID, MSG_DEAD_LETTER,
	MSG_COLUMNS
};

enum
{
	LOG_KIND, LOG_STREAM, LOG_CONSUMER, LOG_TIME, LOG_ORDINALS, LOG_RECEIPT, LOG_DETAIL, LOG_WRITTEN, LOG_COLUMNS
};

/* The ordinal of the message to which a row belongs. */
static inline int64
message_ordinal(int64 ordinal)
{
	return ordinal < 0 ? ~ordinal : ordinal;
}

/* The consumers of a row's "targets", like bms_next_member(). */
static inline int
targets_next(bytea *targets, int position)
{
	const uint8 *bits = (const uint8 *) VARDATA_ANY(targets);
	int			n = VARSIZE_ANY_EXHDR(targets) * 8;

	while (++position < n)
		if (bits[position / 8] >> (position % 8) & 1)
			return position;
	return -1;
}

/* kinds of log rows */
#define LOG_TAKEN	't'			/* consumed */
#define LOG_PURGED	'p'
#define LOG_CLEARED	'c'			/* purged after it was consumed: only the views read it */
#define LOG_RETRY	'r'			/* a dequeue was rolled back; time: end of its retry delay */
#define LOG_FAILED	'x'			/* expired or failed for this consumer; with a receipt, detail begins with an
								 * AQ_DEATH_* */
#define LOG_MOVED	'm'			/* moved to the exception queue, or deleted */
#define LOG_LOCKED	'l'			/* locked by a prepared transaction, not consumed */
#define LOG_LEASED	's'			/* taken for a time; time: when the lease ends, here and in the next one */
#define LOG_EXTENDED 'e'
#define LOG_OVER	'o'			/* the lease has ended by time */
#define LOG_RELEASED 'b'		/* given back; time: when it is ready again, here and in the next one */
#define LOG_UNSEEN	'u'			/* given back, and the attempt does not count */
#define LOG_REMOVED 'd'			/* the consumer was removed: it is done with all messages up to this one */

/* in the log instead of an AQ_DEATH_*: it was given back unseen, and had expired; the lease is no attempt */
#define DEATH_UNSEEN	'u'

/* bytes of LOG_DETAIL at most: see AQ_LOG_ORDINALS */
#define LOG_DETAIL_SIZE 600

/* ordinals of a log row at most: it must fit on a page without TOAST, together with LOG_DETAIL_SIZE bytes */
#define AQ_LOG_ORDINALS 900

/* A row of the log; valid as long as its tuple. */
typedef struct LogRow
{
	char		kind;
	int			stream;
	int			position;
	TimestampTz at;
	int			n;
	const int64 *ordinals;
	int64		receipt;		/* 0: none */
	bool		alone;			/* a dequeue without a lease; if it is rolled back after PREPARE: the only message of
								 * its queue */
	const text *detail;			/* NULL: none */
	TimestampTz written;		/* 0: not about a lease */
} LogRow;

/* Why a leased message failed: AQ_DEATH_* or DEATH_UNSEEN; '\0': the row does not say. */
static inline char
log_death(const LogRow *row)
{
	return row->kind == LOG_FAILED && row->receipt != 0 && row->detail != NULL && VARSIZE_ANY_EXHDR(row->detail) > 0
		? *VARDATA_ANY(row->detail) : '\0';
}

/* --- dead_letter.c */
typedef struct AqStories AqStories;

extern AqStories *aq_dead_letter_read(Partition *partition, const uint16 *slots, uint32 n);
extern uint32 aq_dead_letter_make(AqStories *stories, uint32 i, AqQueue *queue, const AqMessage *m, AqPutOptions **each);

/* --- message_id.c ------------------------------------------------------------------------ */
extern pg_uuid_t aq_message_id(uint64 key, int stream, int64 ordinal);
extern bool aq_message_id_parse(const pg_uuid_t *id, uint64 key, int *stream, int64 *ordinal);
extern bool aq_message_id_owned(AqQueue *queue, const pg_uuid_t *id);

/* --- notes.c: what the running transaction has enqueued and taken ------------------------ */

typedef struct PutNote
{
	Partition  *partition;
	AqQueueShm *shm;
	SubTransactionId subid;
	uint32		first;
	uint32		count;
	Bitmapset  *shared_targets; /* the same for all messages, or NULL */
	Bitmapset **targets;		/* one for each message, or NULL; both NULL: single consumer */
	TimestampTz ready_at;
	TimestampTz expires_at;
	uint32		timers;			/* number reserved in the frame */
	uint32		key;			/* of the correlation of all messages, or AQ_ANY_KEY */
	bool		inserted;		/* the slots have their TIDs */
	bool		published;		/* committed, and waiters are to be woken */
	bool		frozen;			/* with immediate visibility: everybody sees the row */
} PutNote;

/* What the log row of a take with a lease, or of the end of one, contains besides its messages. */
typedef struct LeaseTerms
{
	int64		receipt;
	int64		span;			/* microseconds, counted from the end of the transaction; else 0 */
	TimestampTz until;			/* end of the lease or retry delay; 0: no delay */
	const char *detail;			/* for the log; NULL: none */
} LeaseTerms;

typedef struct TakeNote
{
	Partition  *partition;
	AqQueueShm *shm;
	SubTransactionId subid;
	int			position;
	AqMode		mode;
	LeaseTerms	terms;
	bool		own;			/* the messages are this transaction's own */
	bool		last;			/* the next failure of its message is the last one: aq_notes_have_last */
	bool		alone;			/* see aq_notes_find_alone */
	uint32		immediate;		/* number of the dequeue with immediate visibility: see frozen.c; 0: none */
	struct TakeNote *locked;	/* the note by which they were locked before, or NULL */
	uint32		count;
	uint32		size;
	uint16	   *slots;
	uint64_t   *tried;			/* LOCKED: bitmap of messages whose removal was rolled back; NULL: none */
	AqConsumed	consumed;		/* of messages whose rows were read */
} TakeNote;

extern MemoryContext aq_notes_context(void);
extern PutNote *aq_notes_new_put(AqQueueShm *shm);	/* fill it in before aq_notes_add_put */
extern void aq_notes_add_put(PutNote *note);
extern void aq_notes_reserve_take(AqQueueShm *shm, uint32 n);
extern void aq_notes_add_take(Partition *partition, AqQueueShm *shm, int position, AqMode mode,
							  bool own, uint32 immediate, uint32 slot);
extern void aq_notes_add_lease(Partition *partition, AqQueueShm *shm, int position, AqMode mode,
							   const LeaseTerms *terms, uint32 slot);
extern void aq_notes_consumed(AqMode mode, TimestampTz enqueued);
extern int	aq_notes_puts(PutNote ***notes);
extern uint32 aq_notes_frames(void);
extern bool aq_notes_have_puts(const AqQueueShm *shm);
extern int	aq_notes_takes(TakeNote ***notes);
extern bool aq_notes_have_takes(const AqQueueShm *shm);
extern void aq_notes_mark_last(void);
extern bool aq_notes_have_last(const AqQueueShm *shm);
extern void aq_notes_find_alone(SubTransactionId subid, bool commit);
extern TakeNote *aq_notes_find_locked(Partition *partition, int position, uint32 slot, uint32 *at);
extern void aq_notes_take_locked(TakeNote *locked, uint32 at, AqMode mode);
extern void aq_notes_at_commit(void (*callback) (void *arg), void *arg);
extern void aq_notes_run_at_commit(void);
extern void aq_notes_subcommit(SubTransactionId subid, SubTransactionId parent);
extern TakeNote *aq_notes_find_immediate(uint32 number);
extern void aq_notes_remove_take(TakeNote *note);
extern void aq_notes_remove_put(PutNote *note);
extern TakeNote *aq_notes_pop_take(SubTransactionId subid);
extern PutNote *aq_notes_pop_put(SubTransactionId subid, int *number);
extern void aq_notes_forget(void);

/* --- own.c: its own messages that it has dequeued; only aq_own_view raises --------------- */

typedef struct OwnView OwnView;

extern OwnView *aq_own_view(Partition *partition, int position, PutNote *const *notes, int n);
extern int	aq_own_next(const OwnView *view, uint32 from);
extern bool aq_own_take(OwnView *view, uint32 number);
extern void aq_own_give_back(Partition *partition, int position, const uint16 *slots, uint32 n);
extern void aq_own_remove(const PutNote *note, int number);
extern void aq_own_leave(const Partition *partition, int position, uint32 number);
extern uint32 aq_own_keep(const Partition *partition, int position, uint16 *slots, uint32 n);
extern bool aq_own_has_taken(const Partition *partition);
extern int	aq_own_taker(const Partition *partition, uint32 number, int *cursor);
extern void aq_own_forget(void);

/* --- doubt_table.c ----------------------------------------------------------------------- */
extern bool aq_doubt_table_add(Partition *partition, TransactionId xid, int64 session, bool preparing);
extern bool aq_doubt_table_add_all(Partition *partition, const List *xids, const List *sessions);
pg_noreturn extern void aq_doubt_table_refuse(void);
extern void aq_doubt_table_remove(uint32 partition, TransactionId xid);
extern void aq_doubt_table_takes_settled(uint32 partition, TransactionId xid);
extern bool aq_doubt_table_has(Partition *partition, TransactionId xid);
extern uint32 aq_doubt_table_xids(const Partition *partition, TransactionId *xids); /* room for max_doubts */
extern void aq_doubt_table_forget(Partition *partition);
extern TransactionId aq_doubt_table_of_session(uint32 stream, int64 session, int64 before);

/* --- pool.c ------------------------------------------------------------------------------ */
extern Partition *aq_pool_take(AqQueueShm *shm);	/* a claim; raises an error if the pool is empty */
extern void aq_pool_placed(Partition *partition);	/* the claim ends */
extern bool aq_pool_is_empty(void);
extern bool aq_pool_is_scarce(void);
pg_noreturn extern void aq_pool_refuse(void);
extern void aq_pool_release(Partition *partition);
extern uint32 *aq_pool_list(AqQueueShm *shm);

/* --- keep.c ------------------------------------------------------------------------------ */
extern bool aq_keep_is_new(const Partition *partition);
extern void aq_keep_admit(AqQueueShm *shm); /* may wait and raise an error; call it without a latch */
extern void aq_keep_register(void);

/* --- stream.c ---------------------------------------------------------------------------- */
extern Stream *aq_stream_find(AqQueueShm *shm, int number);
extern Stream *aq_stream_make(AqQueueShm *shm, int number);
extern void aq_stream_append(Stream *stream, Partition *partition); /* latch held */
extern void aq_stream_unlink(Stream *stream, Partition *partition); /* latch held */
extern void aq_stream_close(Stream *stream, Partition *partition);	/* latch held */
extern Partition *aq_stream_partition_from(Stream *stream, int64 from,
										   bool (*matches) (const Partition *));

extern bool aq_stream_is_unknown(const AqQueue *queue);
extern bool aq_stream_is_closed(const AqQueue *queue, const Stream *stream, int position);	/* latch held */

/* --- frame.c: latch held unless said otherwise ------------------------------------------- */
extern uint32 aq_frame_needs(Stream *stream, Frame *frame, uint32 first, uint32 count,
							 Bitmapset *positions, bool waiting, uint32 timers);
extern uint32 aq_frame_tags_need(const Frame *frame, uint32 first, uint32 count);
extern void aq_frame_make_tags(Frame *frame, uint32 first, uint32 count);
extern void aq_frame_prepare(Stream *stream, Frame *frame, uint32 first, uint32 count,
							 Bitmapset *positions, bool waiting, uint32 timers);
extern FrameSub *aq_frame_sub_make(Frame *frame, int position);
extern StreamSub *aq_frame_stream_sub_make(Stream *stream, int position);
extern int	aq_frame_next_sub(const Frame *frame, int position);
extern uint32 aq_frame_count_subs(const Frame *frame);
extern uint32 aq_frame_most_messages(const Frame *frame);
extern void aq_frame_free(Partition *partition);
extern int	aq_frame_attempts(Frame *frame, int position, uint32 slot);
extern void aq_frame_set_attempts(Frame *frame, int position, uint32 slot, int attempts);
extern void aq_frame_promise_timers(Frame *frame, uint32 n);
extern void aq_frame_drop_timers(Frame *frame, uint32 n);
extern void aq_frame_push_timer(Partition *partition, TimestampTz when, uint32 slot, int position, TimerKind kind);
extern bool aq_frame_pop_timer(Partition *partition, TimestampTz now, Timer *timer);
extern void aq_frame_set_next_timer(Partition *partition);
extern uint32 aq_frame_chunks(const Partition *partition);

/* --- heap.c ------------------------------------------------------------------------------ */
pg_noreturn extern void aq_heap_queue_is_gone(void);
extern bool aq_heap_holds_others(uint32 queue, const Partition *partition);
extern void aq_heap_lock_relation(Oid relid, LOCKMODE mode);
extern void aq_heap_lock_against_drop(uint32 queue, const Partition *partition, Oid relid, LOCKMODE mode);
extern bool aq_heap_lock_for_worker(Partition *partition, LOCKMODE mode);
extern bool aq_heap_try_tables(const Partition *partition);
extern void aq_heap_leave_tables(const Partition *partition);
extern Relation aq_heap_open_messages(Partition *partition, LOCKMODE mode);
extern bool aq_heap_read_row(Relation rel, HeapTuple tuple, Buffer *buffer);
extern void aq_heap_read_message(AqQueue *queue, const Stream *stream, HeapTuple tuple, TupleDesc desc,
								 AqMessage *message, Datum *values, bool *nulls);
extern LogRow aq_heap_read_log(HeapTuple tuple, TupleDesc desc);
extern Relation aq_heap_open_numbered(const AqQueue *queue, char letter, int table_no, LOCKMODE mode);
extern int64 aq_heap_partition_number(Relation rel);
extern int64 aq_heap_next_number(AqQueue *queue);
extern void aq_heap_write_cleared(Relation log, int stream, int64 number, int position, const uint16 *slots, uint32 n);
extern void aq_heap_write_log(Partition *partition, char kind, TimestampTz at, int position,
							  const uint16 *slots, uint32 n);
extern void aq_heap_write_lease(Partition *partition, char kind, TimestampTz at, int position,
								const uint16 *slots, uint32 n, int64 receipt, const char *detail);
extern Relation aq_heap_open_log(Partition *partition);
extern void aq_heap_write_frozen(Relation log, Partition *partition, char kind, int position, const uint16 *slots, uint32 n);

/* --- tables.c ---------------------------------------------------------------------------- */
extern Oid	aq_tables_find(char letter, int32 id, int table_no);
extern List *aq_tables_numbers(int32 id);
extern void aq_tables_lock(AqQueue *queue);
extern void aq_tables_drop(AqQueue *queue);
extern Partition *aq_tables_provide(AqQueue *queue);	/* an EMPTY one, TAKEN: a claim */
extern void aq_tables_used(Partition *partition);	/* the claim ends */
extern void aq_tables_unused(Partition *partition); /* likewise; to the list again */
extern void aq_tables_give_back(AqQueueShm *shm, Partition *partition);
extern void aq_tables_subabort(SubTransactionId subid);
extern void aq_tables_subcommit(SubTransactionId subid, SubTransactionId parent);
extern void aq_tables_xact_end(void);
extern bool aq_tables_ready_for_worker(AqQueue *queue);
extern Partition *aq_tables_take_empty(AqQueueShm *shm);
extern void aq_tables_job(int32 id, AqQueueShm *shm);
extern void aq_tables_check_surplus(AqQueueShm *shm);
extern void aq_tables_surplus_job(int32 id, AqQueueShm *shm);

/* --- settle.c: the end of a transaction, slot by slot; none raises ----------------------- */
extern void aq_settle_put(PutNote *note, bool commit, TransactionId xid);
extern void aq_settle_wake(PutNote *const *notes, int n);
extern void aq_settle_count_put(AqQueueShm *shm, Stream *stream, uint32 n, bool delayed, bool expires, TimestampTz now);
extern void aq_settle_take(TakeNote *note, bool commit, bool count_retry, TransactionId xid);
extern void aq_settle_publish(AqQueueShm *shm, Stream *stream, Partition *partition, uint32 first, uint32 n,
							  const Bitmapset *targets, TimestampTz ready_at, TimestampTz now);
extern void aq_settle_removed(AqQueueShm *shm, Partition *partition, int position, uint32 number, TransactionId xid);
extern void aq_settle_done(AqQueueShm *shm, Partition *partition, int position,
						   uint32 slot, TransactionId xid);
extern void aq_settle_list_done(ShardQueue *queue, Partition *partition);
extern uint32 aq_settle_first_done(ShardQueue *queue);
extern bool aq_settle_lease(Stream *stream, Partition *partition, int position, uint32 number, char kind,
							TimestampTz until, int64 receipt);
extern bool aq_settle_lease_goes_on(Partition *partition, int position, uint32 number);
extern char aq_settle_kind(AqMode mode);
extern void aq_settle_failed(AqQueueShm *shm, Partition *partition, int position, uint32 number);
extern void aq_settle_check_done(Stream *stream, Partition *partition);

/* --- foreign.c: messages between nodes */
extern const AqStoreUnits aq_foreign_units;

/* --- evict.c: latch held unless said otherwise ------------------------------------------- */
extern bool aq_evict_allowed(const Partition *partition);
extern void aq_evict_frame(Stream *stream, Partition *partition);
extern void aq_evict_returned(Partition *partition);
extern int	aq_evict_return_class(uint64 evictions);
extern bool aq_evict_one(void); /* no latch held */

/* --- held_back.c: latch held; the other functions are in take.h -------------------------- */
extern uint32 aq_held_back_end(Stream *stream, Partition *partition, int position);

/* --- doubt.c ----------------------------------------------------------------------------- */
extern void aq_doubt_prepare(TransactionId xid);	/* pre-prepare: reserves entries; may raise an error */
extern void aq_doubt_prepared(void);	/* passes the notes on; does not raise an error */
extern void aq_doubt_cancel(void);	/* the transaction has not been prepared, but aborted */
extern bool aq_doubt_resolve(AqQueueShm *shm, bool wait);
extern void aq_doubt_pass(AqQueueShm *shm); /* settles prepared transactions that have ended */
extern void aq_doubt_sweep_ended(void); /* a prepared transaction was finished; does not raise an error */
extern void aq_doubt_sweep_job(int32 id, AqQueueShm *shm);

/* --- frozen.c: immediate visibility --------------------------------------------------------- */
extern void aq_frozen_begin(Relation rel);
extern void aq_frozen_publish(PutNote *note);
extern uint32 aq_frozen_number(void);
extern void aq_frozen_settle_taken(AqImmediate *immediate);

/* --- shard_xact.c ------------------------------------------------------------------------ */
extern const AqStoreXact aq_shard_xact;

/* --- load.c ------------------------------------------------------------------------------ */
extern void aq_load_partition(AqQueueShm *shm, Partition *partition);	/* may wait; call it without a latch */
extern void aq_load_for_take(AqQueueShm *shm, Partition *partition, uint32 spare);
extern bool aq_load_reopen(AqQueueShm *shm, Stream *stream);	/* may wait; call it without a latch */
extern void aq_load_count(AqQueueShm *shm, Partition *partition);

/* --- first_use.c ------------------------------------------------------------------------- */
extern char *aq_first_use_lost_table(const AqQueue *queue);
extern void aq_first_use_load(AqQueue *queue, AqQueueShm *shm);
extern void aq_first_use_unload(AqQueueShm *shm);

/* --- body_places.c ----------------------------------------------------------------------- */
extern bytea *aq_body_places_read(Relation rel, int64 ordinal, int32 number);
extern bytea *aq_body_places_targets(Relation rel, int64 ordinal);
extern void aq_body_places_written(Oid table, int64 ordinal);

/* --- body.c ------------------------------------------------------------------------------ */
extern int	aq_body_partition_kb;
extern void aq_body_count(Partition *partition, uint64 bytes);
extern AqBodyWrite aq_body_write(AqQueue *queue, const pg_uuid_t *id, int32 number, bytea *data);
extern bytea *aq_body_read(AqQueue *queue, const pg_uuid_t *id, int32 number, int position);

/* --- put.c ------------------------------------------------------------------------------- */
extern void aq_put(AqQueue *queue, const AqPutOptions *options, uint32 n,
				   const Datum *payloads, const bool *nulls,
				   Bitmapset *const *targets, pg_uuid_t *ids);

/* --- lease.c ----------------------------------------------------------------------------- */
extern int64 aq_lease_block(int64 receipt);
extern int64 aq_lease_new_block(AqQueue *queue);
extern int64 aq_lease_receipt(AqQueue *queue);
extern const char *aq_lease_holder(void);
extern bool aq_lease_fails(const AqQueue *queue, const Partition *partition, int position, uint32 number,
						   bool counts, TimestampTz now);
extern void aq_lease_settle(AqQueue *queue, const AqLeaseOptions *options, const pg_uuid_t *ids, uint32 n,
							AqLeaseResult *results);

/* --- lease_session.c --------------------------------------------------------------------- */
extern int64 aq_lease_session_receipt(AqQueue *queue);
extern void aq_lease_session_exit(void);
extern void aq_lease_session_job(int32 id, AqQueueShm *shm);
extern void aq_lease_session_register(void);

/* --- take.c ------------------------------------------------------------------------------ */
extern uint32 aq_take(AqQueue *queue, const AqTakeOptions *options);

/* --- retained.c -------------------------------------------------------------------------- */
extern uint64 aq_retained_purge(AqQueue *queue, int position, const pg_uuid_t *ids, uint32 n);
extern bool aq_take_is_ready(AqQueue *queue, int position, int64 until);

/* --- positions.c, horizon.c -------------------------------------------------------------- */
extern bool aq_positions_free(AqQueue *queue, AqRemoved *removed);
extern TransactionId aq_horizon_newest(void);
extern TransactionId aq_horizon_oldest(void);

/* --- jobs of the worker: age.c, reclaim.c, retry.c, lease_end.c, timers.c ------------------------- */
extern void aq_lease_end_due(int32 id, AqQueueShm *shm, Stream *stream, Partition *partition);
extern void aq_lease_end_block(int32 id, Oid owner_view, AqQueueShm *shm, Stream *stream, Partition *partition,
							   int64 block);
extern int32 aq_age_to_advance(void);
extern void aq_age_queue_job(int32 id, AqQueueShm *shm);
extern void aq_age_register(void);

extern int	aq_reclaim_grace_ms;
extern int	aq_reclaim_idle_ms;
extern void aq_reclaim_job(int32 id, AqQueueShm *shm);
extern void aq_reclaim_removed_job(int32 id, AqQueueShm *shm);
extern bool aq_reclaim_finish_removed(AqQueueShm *shm, const int *positions, int n);
extern void aq_reclaim_count(AqQueueShm *shm);
extern void aq_reclaim_recount_job(int32 id, AqQueueShm *shm);
extern void aq_retry_job(int32 id, AqQueueShm *shm);
extern void aq_retry_failed_job(int32 id, AqQueueShm *shm);
extern void aq_timers_job(int32 id, AqQueueShm *shm);

/* --- measure.c: aq.metrics() ------------------------------------------------------------- */
extern void aq_measure(AqQueue *queue, AqMeasure *measures, int n);

/* --- shard_check.c, compare.c: aq.check() ------------------------------------------------ */
extern void aq_shard_check_pool(AqFindings *findings);
extern uint32 aq_shard_check_chunks(AqQueueShm *shm);
extern void aq_compare_queue(AqQueue *queue, AqFindings *findings);

#endif							/* AQ_SHARD_PRIVATE_H */
