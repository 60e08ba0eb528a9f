/*-------------------------------------------------------------------------
 *
 * layout.h
 *	  The sharded store's structures in shared memory.
 *
 * Queue -> streams -> partitions -> frames.
 *
 *	stream		one sequence of messages: a shard's messages of one priority,
 *				delayed ones separately.  Its latch protects everything below it:
 *				its list of partitions, and those partitions' frames.
 *	partition	PARTITION_SLOTS consecutive ordinals of a stream, in one pair of
 *				tables (messages and log).  ordinal = number * PARTITION_SLOTS +
 *				slot; numbers come from one sequence for all queues and are never reused.
 *	frame		the data of a resident partition: slots, bitmaps, timers, in
 *				chunks of the message cache.  The frame of a partition that no
 *				transaction uses can be evicted, and loaded again from its tables.
 *
 * Only slot.c changes the states of slots, the consumers' bits, and their
 * counts: see slot.h.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_LAYOUT_H
#define AQ_LAYOUT_H

#ifndef AQ_UNIT
#include "queue/queue.h"		/* limits of a queue */
#endif
#include "cache/cache.h"

#include "access/xlogdefs.h"
#include "storage/block.h"
#include "storage/off.h"

#define SEGMENT_SLOTS 64
#define PARTITION_SEGMENTS 256
#define PARTITION_SLOTS (SEGMENT_SLOTS * PARTITION_SEGMENTS)

/* a value that is not the number of a slot */
#define NO_SLOT PARTITION_SLOTS

/* of a frame with this number of slots, without its bitmaps for consumers */
#define FRAME_CHUNKS(slots) (2 + (slots) / SEGMENT_SLOTS)

#define SUBS_PER_CHUNK 64
#define SUB_DIRECTORY (AQ_MAX_CONSUMERS / SUBS_PER_CHUNK)

#define TIMERS_PER_CHUNK 128
#define TIMER_PAGES (AQ_CHUNK_SIZE / (int) sizeof(AqChunk))
#define MAX_TIMERS (TIMER_PAGES * TIMERS_PER_CHUNK)

/*
 * a dequeue may need a chunk for a stream's consumers and one for a bitmap of
 * retries; for a message whose next failure is its last one, a SubMore and its
 * bitmap "alone"
 */
#define AQ_TAKE_CHUNKS 4

/* with a lease, it also may need a SubMore, and a page of attempts, a bitmap and a page of leases */
#define AQ_LEASE_CHUNKS 4

#define ATTEMPTS_PER_CHUNK AQ_CHUNK_SIZE	/* one byte for each slot */
#define ATTEMPT_PAGES (PARTITION_SLOTS / ATTEMPTS_PER_CHUNK)

#define LEASES_PER_CHUNK 128
#define LEASE_PAGES (PARTITION_SLOTS / LEASES_PER_CHUNK)

#define TAGS_PER_CHUNK (AQ_CHUNK_SIZE / (int) sizeof(uint16))
#define TAG_PAGES (PARTITION_SLOTS / TAGS_PER_CHUNK)

/* --- slots --------------------------------------------------------------------- */

typedef struct Slot
{
	BlockNumber block;			/* TID of the row */
	OffsetNumber offset;
	uint8		state;			/* SlotState: see slot.h */
	uint8		flags;			/* SLOT_FOLLOWER, ... */
	TransactionId xid;			/* transaction that enqueued it; top-level if DOUBT */
	uint16		open;			/* number of consumers that have not finished with it */
	uint16		epoch;			/* epoch of xid, modulo 2^16, because a slot may be older than 2^31 transactions */
	TimestampTz expires_at;
	int64		session;		/* identity of the enqueuing session */
} Slot;

StaticAssertDecl(sizeof(Slot) * SEGMENT_SLOTS == AQ_CHUNK_SIZE, "a segment is a chunk");
StaticAssertDecl(PARTITION_SLOTS / 8 <= AQ_CHUNK_SIZE, "a bitmap fits into a chunk");

/* --- frames ---------------------------------------------------------------------- */

/* A consumer's view of a frame. */
typedef struct FrameSub
{
	AqChunk		ready;			/* bitmap: ready and not taken */
	AqChunk		retry;			/* bitmap: rolled back, count not written yet */
	AqChunk		waiting;		/* bitmap: waits for a delay or retry delay */
	AqChunk		doubt;			/* bitmap: taken by prepared transactions */
	AqChunk		more;			/* a SubMore; 0: it has neither attempts nor leases */
	uint16		nready;
	uint16		nretry;
	uint16		ndoubt;
	uint16		first;			/* messages before this slot are not ready, or held back */
	uint16		nwaiting;
	uint16		ntaken;			/* taken by running or prepared transactions */
} FrameSub;

/* A lease of a message: running, or just being ended. */
typedef struct Lease
{
	TimestampTz until;
	int64		receipt;		/* 0: none; LEASE_RETRY_DELAY: given back, and WAITING until then */
} Lease;

StaticAssertDecl(sizeof(Lease) * LEASES_PER_CHUNK == AQ_CHUNK_SIZE, "128 leases a chunk");

#define LEASE_RETRY_DELAY ((int64) -1)

/* The part of a consumer's view of a frame that exists only when messages have failed or are leased. */
typedef struct SubMore
{
	AqChunk		attempts[ATTEMPT_PAGES];	/* a byte per slot */
	AqChunk		leased;			/* bitmap */
	AqChunk		alone;			/* bitmap: rolled back, and no other message of the queue with it */
	uint32		nleased;
	AqChunk		leases[LEASE_PAGES];
	TimestampTz ends[LEASE_PAGES];	/* no lease of the page ends before; 0: it has none */
} SubMore;

StaticAssertDecl(sizeof(SubMore) <= AQ_CHUNK_SIZE, "a SubMore is a chunk");

typedef struct Frame
{
	FrameSub	sub0;			/* view of position 0 */
	AqChunk		segments[PARTITION_SEGMENTS];
	AqChunk		subs[SUB_DIRECTORY];	/* SUBS_PER_CHUNK FrameSubs each */
	AqChunk		tags[TAG_PAGES];	/* by slot: a uint16, see tag.h; 0: no message of the page has a correlation */
	AqChunk		timers;			/* directory of chunks that hold the heap */
	uint32		ntimers;
	uint32		timers_reserved;	/* reserved for running transactions */
	TimestampTz lease_end;		/* no lease of the frame ends before; 0: it has none */
} Frame;

StaticAssertDecl(sizeof(FrameSub) * SUBS_PER_CHUNK <= AQ_CHUNK_SIZE, "64 FrameSubs a chunk");
StaticAssertDecl(AQ_MAX_CONSUMERS * sizeof(uint16) <= AQ_CHUNK_SIZE, "a number for each consumer fits into a chunk");
StaticAssertDecl(sizeof(Frame) <= AQ_CHUNK_SIZE, "a frame is a chunk");

typedef enum TimerKind
{
	TIMER_READY,				/* end of a delay */
	TIMER_EXPIRE,
	TIMER_RETRY					/* end of a retry delay, for one consumer */
} TimerKind;

typedef struct Timer
{
	TimestampTz when;
	uint16		slot;
	int16		position;
	uint32		kind;
} Timer;

StaticAssertDecl(sizeof(Timer) * TIMERS_PER_CHUNK == AQ_CHUNK_SIZE, "128 timers a chunk");

/* --- partitions, streams, queues -------------------------------------------------- */

typedef enum PartitionState
{
	PARTITION_UNUSED = 0,		/* in the pool */
	PARTITION_EMPTY,			/* tables ready for use; in the queue's free list */
	PARTITION_TAKEN,			/* claimed from the free list, not yet in a stream */
	PARTITION_OPEN,				/* its stream's tail: takes messages */
	PARTITION_CLOSED,			/* full, or closed by a restart */
	PARTITION_DONE,				/* all messages consumed; waits for truncation */
	PARTITION_TRUNCATING
} PartitionState;

/* number of producer sessions whose identities a partition keeps */
#define PARTITION_SESSIONS 4

typedef struct Partition
{
	uint32		index;			/* of this entry; 0 always means none */
	uint32		queue;			/* index of the queue's AqQueueShm */
	uint32		stream;			/* index; 0 in EMPTY ones */
	uint32		next;			/* in the list of its stream, the free list or the done list */
	uint32		prev;
	uint32		next_of_queue;	/* all partitions of the queue; protected by the pool's latch */
	uint32		prev_of_queue;
	int			table_no;
	Oid			messages;		/* the tables */
	Oid			log;
	bool		keyed;			/* the table has a column for keys of messages */
	uint32		file;			/* file of table messages to which the slots' TIDs refer; 0: no TIDs yet */
	/* protected by the stream's latch while in a stream */
	PartitionState state;
	int64		number;
	AqChunk		frame;			/* 0: not resident */
	bool		loading;
	int			claimant;		/* session that loads, creates or has claimed it */
	bool		counted;		/* "open" is known */
	bool		in_lag;			/* its messages are included in their consumers' lag */
	bool		limited;		/* its messages in work are counted: see places.c */
	bool		referenced;		/* used since the clock hand passed */
	bool		was_open;		/* CLOSED only because of eviction, so it can be opened again */
	uint32		reserved;		/* slots used; known even without a frame */
	uint32		pending;		/* slots of running or prepared enqueues */
	uint32		inflight;		/* (slot, consumer)s taken by running or prepared dequeues */
	uint32		nretry;			/* (slot, consumer)s whose retry count must be written */
	uint32		ndoubt;			/* transactions in doubt that have used it */
	uint32		kept;			/* chunks, while one of these keeps the frame; included in ShardArea.kept */
	uint32		nfailed;		/* slots to be moved to the exception queue */
	uint32		open;			/* (slot, consumer)s not done, plus pending, plus failed */
	TimestampTz next_timer;		/* 0: none; kept when the frame is evicted */
	TransactionId last_taker;	/* latest transaction that has finished with a message; 0: not known */
	TimestampTz last_take;
	XLogRecPtr	last_lsn;		/* WAL position after that commit */
	/* counters since it was opened or the server started */
	uint64		expired;		/* (slot, consumer)s that have expired or failed */
	uint64		made_ready;		/* (slot, consumer)s whose delay or retry delay has ended */
	pg_atomic_uint64 browsed;	/* changed without the latch */
	pg_atomic_uint64 bytes;		/* written to its tables since it was opened; changed without the latch */
	/* while it is open, and the worker follows whether it is used: see aq_settle_check_done() */
	bool		watched;
	uint64		watched_bytes;	/* "bytes" when the worker last found it changed ... */
	int64		watched_at;		/* ... at this time, aq_clock_us() */
	uint64		evicted;		/* number of the eviction of its frame; 0: not evicted */
	/* while it is counted and not resident; for views */
	uint32		away_waiting;	/* (slot, consumer)s that wait for a delay or retry delay */
	uint32		away_leased;	/* (slot, consumer)s whose lease runs */
	uint32		away_head;		/* first slot with a ready message; NO_SLOT: none */
	AqChunk		work_away;		/* if limited: a uint16 for each consumer, the messages in work; 0: none is */
	BlockNumber away_block;		/* TID of its row, in "file" */
	OffsetNumber away_offset;
	SubTransactionId own_subid; /* set if a running transaction has made the tables, else 0 */
	/*
	 * the sessions that have enqueued into it; 0: end.  Known even without a
	 * frame
	 */
	int64		sessions[PARTITION_SESSIONS];
	bool		more_sessions;
} Partition;

/* A consumer's view of a stream. */
typedef struct StreamSub
{
	uint32		hint;			/* no message can be dequeued before this partition; 0: head */
	uint32		ndoubt;			/* messages taken by prepared transactions */
	int64		ready;			/* ready bits in resident partitions */
	int64		away;			/* unfinished messages in partitions that are counted and not resident */
	uint64		doubt_change;	/* changes with ndoubt, to a value never used before */
} StreamSub;

typedef struct Stream
{
	AqLatch		latch;
	uint32		index;
	uint32		queue;			/* index of the queue; 0: not used */
	int16		number;			/* see stream_number */
	int16		shard;
	int16		priority;
	bool		delayed;
	/*
	 * next stream in the order of dequeue; written under the queue's latch, read
	 * without it
	 */
	volatile uint32 next;
	/* protected by the latch */
	uint32		head;			/* partitions, ascending */
	uint32		tail;
	uint32		open;			/* the OPEN partition, or 0 */
	uint64		enqueued;
	int64		seen;			/* searches of waiting calls begin at ordinals up to this: see seen.c */
	uint64		returns;		/* times a message before it became ready */
	StreamSub	sub0;
	AqChunk		subs[SUB_DIRECTORY];
	/*
	 * bits of consumers for which it is empty; written under the latch, read
	 * without it: see slot.h
	 */
	volatile uint32 empty[AQ_MAX_CONSUMERS / 32];
} Stream;

StaticAssertDecl(sizeof(StreamSub) * SUBS_PER_CHUNK <= AQ_CHUNK_SIZE, "64 StreamSubs a chunk");
/*
 * Counters of the cache, for its advice: see evict.c.  A frame that is loaded
 * again after n others were evicted would have stayed in a cache larger by n +
 * 1 frames; returned[][b] counts frames for which 2 ^ b is the smallest power
 * of two that is not less than n + 1.
 */
#define RETURN_CLASSES 32

typedef struct CacheHistory
{
	TimestampTz since;
	pg_atomic_uint64 evictions;
	pg_atomic_uint64 returned[2][RETURN_CLASSES];	/* [1]: loaded by the worker */
	/* partitions that were closed, and the slots used in them */
	pg_atomic_uint64 closed;
	pg_atomic_uint64 closed_slots;
	pg_atomic_uint64 most_slots;
	pg_atomic_uint64 most_unused;	/* unused slots of the smallest partition */
} CacheHistory;

typedef struct ShardArea
{
	AqLatch		partitions_latch;	/* protects the pools of partitions and streams */
	AqLatch		doubt_latch;
	pg_atomic_uint32 kept;		/* sum of Partition.kept; all sessions change it, so it has a cache line of its own */
	char		padding[PG_CACHE_LINE_SIZE - sizeof(pg_atomic_uint32)];
	uint32		unused_partition;	/* list */
	uint32		unused_stream;
	volatile uint32 nunused_partitions;
	volatile uint32 most_partitions;	/* the highest index ever used; read without the latch */
	pg_atomic_uint32 clock_hand;
	pg_atomic_uint32 ndoubts;
	uint32		max_doubts;
	uint64		doubt_sequence; /* sequence of the last entry; protected by doubt_latch */
	pg_atomic_uint64 doubt_changes; /* number of changes of StreamSub.ndoubt */
	pg_atomic_uint64 ended_sessions;	/* grows when a session with blocks of receipts has ended */
	CacheHistory history;
} ShardArea;

StaticAssertDecl(offsetof(ShardArea, kept) % PG_CACHE_LINE_SIZE == 0, "kept begins a cache line");

extern ShardArea *aq_area;
extern Partition *aq_area_partitions;
extern Stream *aq_area_streams;

static inline Partition *
partition_at(uint32 index)
{
	return index == 0 ? NULL : &aq_area_partitions[index];
}

static inline Stream *
stream_at(uint32 index)
{
	return index == 0 ? NULL : &aq_area_streams[index];
}

static inline Frame *
frame_of(const Partition *partition)
{
	return (Frame *) aq_chunk_ptr(partition->frame);
}

static inline Slot *
slot_at(const Frame *frame, uint32 slot)
{
	return (Slot *) aq_chunk_ptr(frame->segments[slot / SEGMENT_SLOTS]) + slot % SEGMENT_SLOTS;
}

static inline int64
ordinal_of(const Partition *partition, uint32 slot)
{
	return partition->number * PARTITION_SLOTS + slot;
}

/* The consumer's view of the frame; NULL if it has none. */
static inline FrameSub *
frame_sub(Frame *frame, int position)
{
	AqChunk		chunk;

	if (position == 0)
		return frame->sub0.ready ? &frame->sub0 : NULL;
	chunk = frame->subs[position / SUBS_PER_CHUNK];
	if (chunk == 0)
		return NULL;
	{
		FrameSub   *sub = (FrameSub *) aq_chunk_ptr(chunk) + position % SUBS_PER_CHUNK;

		return sub->ready ? sub : NULL;
	}
}

static inline StreamSub *
stream_sub(Stream *stream, int position)
{
	AqChunk		chunk;

	if (position == 0)
		return &stream->sub0;
	chunk = stream->subs[position / SUBS_PER_CHUNK];
	return chunk == 0 ? NULL
		: (StreamSub *) aq_chunk_ptr(chunk) + position % SUBS_PER_CHUNK;
}

static inline uint64_t *
bitmap_of(AqChunk chunk)
{
	return (uint64_t *) aq_chunk_ptr(chunk);
}

static inline SubMore *
sub_more(const FrameSub *sub)
{
	return sub == NULL || sub->more == 0 ? NULL : (SubMore *) aq_chunk_ptr(sub->more);
}

/* How many of the consumer's messages in the frame are leased. */
static inline uint32
sub_leased(const FrameSub *sub)
{
	const SubMore *more = sub_more(sub);

	return more != NULL ? more->nleased : 0;
}

/* The place of the message's lease; NULL: there is no page for it. */
static inline Lease *
lease_at(const FrameSub *sub, uint32 slot)
{
	const SubMore *more = sub_more(sub);

	return more == NULL || more->leases[slot / LEASES_PER_CHUNK] == 0 ? NULL
		: (Lease *) aq_chunk_ptr(more->leases[slot / LEASES_PER_CHUNK]) + slot % LEASES_PER_CHUNK;
}

static inline uint64
slot_full_xid(const Slot *slot)
{
	return (uint64) slot->epoch << 32 | slot->xid;
}

/* Is the slot's transaction older than this one? */
static inline bool
slot_precedes(const Slot *slot, uint64 full_xid)
{
	return (int64) ((slot_full_xid(slot) - full_xid) << 16) < 0;
}

#endif							/* AQ_LAYOUT_H */
