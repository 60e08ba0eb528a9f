/*-------------------------------------------------------------------------
 *
 * partitions_private.h
 *	  Declarations shared by the files of folder "partitions" and of those that may use it.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_PARTITIONS_PRIVATE_H
#define AQ_PARTITIONS_PRIVATE_H

#include "queue/queue.h"
#include "shard/partitions/slot.h"

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
	uint32		nunkeyed;		/* of these: without a column for keys of messages */
	pg_atomic_uint32 done;		/* list of DONE partitions: see aq_settle_list_done */
	uint32		nstreams;
	uint32		partitions;		/* list of all its partitions, by next_of_queue, and their number; protected by the
								 * pool's latch */
	uint32		npartitions;
	uint32		opened;			/* partitions opened since the queue was loaded */
	int64		receipt;		/* of the latest lease; 0: none since the queue was loaded */
	pg_atomic_uint32 wanting;	/* sessions that wait for empty tables */
	pg_atomic_uint32 wanting_keyed; /* ... with a column for keys */
	bool		worker_wants;	/* the worker itself needs empty tables */
	bool		worker_wants_keyed; /* ... with a column for keys */
	int64		move_pause;		/* before the worker tries to move failed messages again, microseconds; only it uses
								 * this */
	int			last_table_no;
	int			trouble;		/* SQLSTATE of the worker's last failure to make tables; 0: none */
	char		trouble_message[160];
	bool		recovered;		/* the worker has counted the partitions after a restart */
	bool		limited;		/* partitions are counted for limits of consumers: see places.c ... */
	bool		limited_known;	/* ... and all that there were before have been */
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

/* --- message_id.c ------------------------------------------------------------------------ */
extern pg_uuid_t aq_message_id(uint64 key, int stream, int64 ordinal);
extern bool aq_message_id_parse(const pg_uuid_t *id, uint64 key, int *stream, int64 *ordinal);
extern bool aq_message_id_owned(AqQueue *queue, const pg_uuid_t *id);

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

/* --- places.c: latch held ---------------------------------------------------------------- */
extern uint32 aq_places_begin(const AqQueue *queue, int position, uint32 limit, const AqRate *rate, uint32 n);
extern void aq_places_end(const AqQueue *queue, int position, const AqRate *rate, uint32 taken);

/* --- stream.c ---------------------------------------------------------------------------- */
extern Stream *aq_stream_find(AqQueueShm *shm, int number);
extern Stream *aq_stream_make(AqQueueShm *shm, int number);
extern void aq_stream_append(Stream *stream, Partition *partition); /* latch held */
extern void aq_stream_unlink(Stream *stream, Partition *partition); /* latch held */
extern void aq_stream_close(Stream *stream, Partition *partition);	/* latch held */
extern Partition *aq_stream_first_from(const Stream *stream, int64 number); /* latch held */
extern Partition *aq_stream_partition_from(Stream *stream, int64 from,
										   bool (*matches) (const Partition *));

extern uint32 aq_stream_search_from(Stream *stream, Partition *partition, int position);	/* latch held */
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

#endif							/* AQ_PARTITIONS_PRIVATE_H */
