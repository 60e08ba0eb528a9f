/*-------------------------------------------------------------------------
 *
 * slot.h
 *	  The states of a message in memory, and the transitions between them.
 *
 * Only the functions below change Slot, the bitmaps and counts of FrameSub and
 * StreamSub, and the counts of a Partition.  The caller holds the stream's
 * latch; no function here waits, raises errors, or depends on transactions,
 * queues or tables.
 *
 * A message has a state as a whole (SlotState), and in states READY and
 * WAITING a view for each of its consumers (SlotView).  The two tables below
 * list all transitions; assertions compare each change with them.  To add a
 * state, see "Adding a slot state" in README.md.
 *
 * The counts, where "bits" are those of all consumers:
 *
 *	Partition.pending	slots that are PENDING or in DOUBT
 *	Partition.nfailed	slots with SLOT_FAILED
 *	Partition.open		pending + nfailed + Slot.open of all other slots
 *	Partition.inflight	views TAKEN and DOUBT, plus what aq_slot_hold has added
 *	Partition.kept		0 if pending, inflight and ndoubt are 0, otherwise the frame's chunks
 *	Partition.nretry	bits of RETRY
 *	Slot.open			views that are not DONE
 *	FrameSub.n...		bits set in its bitmap
 *	FrameSub.ntaken		views TAKEN and DOUBT
 *	AqConsumerShm.in_work	views TAKEN, DOUBT and LEASED in partitions that are "limited": see places.c
 *	SubMore.nleased		bits of LEASED
 *	SubMore.ends		no lease of the page ends before
 *	Frame.lease_end		no lease of the frame ends before; Partition.next_timer is not later
 *	StreamSub.ready		bits of READY in resident partitions
 *	StreamSub.away		views that are not DONE in partitions that are counted and not resident
 *	Partition.away_...	contents of a partition that is counted and not resident
 *	StreamSub.ndoubt	bits of DOUBT
 *	FrameSub.first		no READY bit before it, except of messages that are held back
 *	StreamSub.hint		no such bit in partitions before this one
 *
 * When "open" of a closed partition is 0, the partition is not needed any
 * more.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_SLOT_H
#define AQ_SLOT_H

#include "shard/partitions/layout.h"
#include "shard/partitions/bitmap.h"

/* --- states ------------------------------------------------------------------------ */

typedef enum SlotState
{
	SLOT_EMPTY = 0,				/* not used yet */
	SLOT_PENDING,				/* its transaction is running */
	SLOT_DOUBT,					/* its transaction is prepared, or it is a follower of a prepared one */
	SLOT_WAITING,				/* delayed */
	SLOT_READY,
	SLOT_DONE					/* no consumer needs it, or its transaction was rolled back */
} SlotState;

#define SLOT_FOLLOWER	0x01	/* DOUBT: committed, but waits for a prepared transaction */
#define SLOT_FAILED		0x02	/* expired or failed for a consumer: must be moved */
#define SLOT_EXPIRES	0x04	/* expires_at is set */

/* A consumer's view of a message.  NONE, TAKEN and DONE have no bit; LEASED has it in SubMore. */
typedef enum SlotView
{
	VIEW_NONE = 0,				/* not for this consumer, or not published */
	VIEW_READY,
	VIEW_WAITING,				/* waits for a delay or a retry delay */
	VIEW_TAKEN,					/* taken by a running transaction, or between two steps under the latch */
	VIEW_DOUBT,					/* taken by a prepared transaction */
	VIEW_RETRY,					/* rolled back, retry count not written yet */
	VIEW_LEASED,				/* taken for a time, by a transaction that has committed */
	VIEW_DONE
} SlotView;

/* --- transitions -------------------------------------------------------------------- */

#define SLOT_IN(state) (1 << SLOT_##state)

/*
 * Transitions of a slot: name, states before, states after.
 *
 *				changes besides the state
 *	RESERVE		pending, open + 1
 *	PREPARE		xid
 *	FOLLOW		xid is the prepared transaction's; SLOT_FOLLOWER
 *	PUBLISH		pending, open - 1; for each consumer open + 1, Slot.open + 1, and a view
 *	LOSE		pending, open - 1
 *	FAIL		SLOT_FAILED, nfailed, open + 1; only the first time
 *	UNDELAY		(WAKE then changes its views)
 *	FINISH		when the last consumer is DONE
 *	MOVE		SLOT_FAILED is cleared, nfailed, open - 1
 *	LOAD		the slot is read from the tables; counts are set as a whole
 */
#define AQ_SLOT_STEPS(X) \
	X(RESERVE,   SLOT_IN(EMPTY),                       SLOT_IN(PENDING)) \
	X(PREPARE,   SLOT_IN(PENDING),                     SLOT_IN(DOUBT)) \
	X(FOLLOW,    SLOT_IN(PENDING),                     SLOT_IN(DOUBT)) \
	X(PUBLISH,   SLOT_IN(PENDING) | SLOT_IN(DOUBT),    SLOT_IN(READY) | SLOT_IN(WAITING) | SLOT_IN(DONE)) \
	X(LOSE,      SLOT_IN(PENDING) | SLOT_IN(DOUBT),    SLOT_IN(DONE)) \
	X(FAIL,      SLOT_IN(READY) | SLOT_IN(WAITING),    SLOT_IN(READY) | SLOT_IN(WAITING)) \
	X(UNDELAY,   SLOT_IN(WAITING),                     SLOT_IN(READY)) \
	X(FINISH,    SLOT_IN(READY) | SLOT_IN(WAITING),    SLOT_IN(DONE)) \
	X(MOVE,      SLOT_IN(DONE),                        SLOT_IN(DONE)) \
	X(LOAD,      ~SLOT_IN(PENDING),                    ~(SLOT_IN(EMPTY) | SLOT_IN(PENDING)))

#define VIEW_IN(view) (1 << VIEW_##view)

/*
 * Transitions of a consumer's view: name, views before, views after.
 *
 *				counts, besides the bit and the count of its bitmap
 *	APPEAR		(PUBLISH of the slot)
 *	TAKE		inflight + 1
 *	FINISH		inflight, open, Slot.open - 1
 *	GIVE_BACK	inflight - 1; READY or WAITING, like the slot
 *	DELAY		inflight - 1
 *	RETRY		inflight - 1, Partition.nretry + 1
 *	COUNTED		inflight + 1, Partition.nretry - 1
 *	PREPARE		StreamSub.ndoubt + 1
 *	RESOLVE		StreamSub.ndoubt - 1
 *	WAKE		-
 *	LEASE		inflight - 1
 *	HOLD		inflight + 1
 *	LOAD		StreamSub.ndoubt + 1 for DOUBT; others are set as a whole
 *
 * All decisions on a message go through TAKEN: for example, a removed
 * consumer's READY message is first taken and then done, and a lease does not
 * end while a transaction that acknowledges it is open.
 */
#define AQ_VIEW_STEPS(X) \
	X(APPEAR,    VIEW_IN(NONE),                        VIEW_IN(READY) | VIEW_IN(WAITING)) \
	X(TAKE,      VIEW_IN(READY) | VIEW_IN(WAITING),    VIEW_IN(TAKEN)) \
	X(FINISH,    VIEW_IN(TAKEN),                       VIEW_IN(DONE)) \
	X(GIVE_BACK, VIEW_IN(TAKEN),                       VIEW_IN(READY) | VIEW_IN(WAITING)) \
	X(DELAY,     VIEW_IN(TAKEN),                       VIEW_IN(WAITING)) \
	X(RETRY,     VIEW_IN(TAKEN),                       VIEW_IN(RETRY)) \
	X(COUNTED,   VIEW_IN(RETRY),                       VIEW_IN(TAKEN)) \
	X(PREPARE,   VIEW_IN(TAKEN),                       VIEW_IN(DOUBT)) \
	X(RESOLVE,   VIEW_IN(DOUBT),                       VIEW_IN(TAKEN)) \
	X(WAKE,      VIEW_IN(WAITING),                     VIEW_IN(READY)) \
	X(LEASE,     VIEW_IN(TAKEN),                       VIEW_IN(LEASED)) \
	X(HOLD,      VIEW_IN(LEASED),                      VIEW_IN(TAKEN)) \
	X(LOAD,      VIEW_IN(NONE),                        VIEW_IN(READY) | VIEW_IN(WAITING) | VIEW_IN(DOUBT))

typedef enum SlotStep
{
#define X(name, from, to) SLOT_STEP_##name,
	AQ_SLOT_STEPS(X)
#undef X
	SLOT_STEPS
} SlotStep;

typedef enum ViewStep
{
#define X(name, from, to) VIEW_STEP_##name,
	AQ_VIEW_STEPS(X)
#undef X
	VIEW_STEPS
} ViewStep;

/* The sets of states of a transition. */
typedef struct SlotTransition
{
	const char *name;
	uint16		from;
	uint16		to;
} SlotTransition;

extern const SlotTransition aq_slot_steps[SLOT_STEPS];
extern const SlotTransition aq_slot_view_steps[VIEW_STEPS];

/* --- enqueued messages: slots first .. first + n - 1 of a partition ----------------------- */
extern uint32 aq_slot_reserve(Partition *partition, uint32 n, uint64 full_xid, int64 session,
							  TimestampTz expires_at);
extern void aq_slot_prepare_puts(Partition *partition, uint32 first, uint32 n, TransactionId xid);
extern void aq_slot_follow(Partition *partition, uint32 first, uint32 n, TransactionId xid);
extern void aq_slot_publish(Stream *stream, Partition *partition, uint32 first, uint32 n,
							const int16 *positions, int npositions, bool waits);
extern void aq_slot_lose(Partition *partition, uint32 first, uint32 n);
extern void aq_slot_undelay(Slot *slot);
extern void aq_slot_fail(Partition *partition, uint32 number);
extern void aq_slot_move(Partition *partition, uint32 number);

/* --- a consumer's view of a message ------------------------------------------------------- */
extern bool aq_slot_take(Stream *stream, Partition *partition, int position, uint32 number);
extern bool aq_slot_take_waiting(Partition *partition, int position, uint32 number);
extern void aq_slot_give_back(Stream *stream, Partition *partition, int position, uint32 number);
extern void aq_slot_delay(Partition *partition, int position, uint32 number);
extern void aq_slot_retry(Stream *stream, Partition *partition, int position, uint32 number);
extern uint32 aq_slot_alone_needs(const FrameSub *sub);
extern void aq_slot_make_alone(FrameSub *sub);
extern void aq_slot_note_alone(Partition *partition, int position, uint32 number, bool alone);
extern bool aq_slot_counted(Partition *partition, int position, uint32 number);
extern void aq_slot_prepare(Stream *stream, Partition *partition, int position, uint32 number);
extern bool aq_slot_resolve(Stream *stream, Partition *partition, int position, uint32 number);
extern bool aq_slot_wake(Stream *stream, Partition *partition, int position, uint32 number);
extern bool aq_slot_finish(Partition *partition, int position,
						   const uint16 *numbers, uint32 n);

/* --- leases --------------------------------------------------------------------------------- */
extern uint32 aq_slot_lease_needs(const FrameSub *sub, uint32 number);
extern void aq_slot_make_lease(FrameSub *sub, uint32 number);
extern void aq_slot_note_lease(Partition *partition, int position, uint32 number, TimestampTz until, int64 receipt);
extern void aq_slot_lease(Partition *partition, int position, uint32 number);
extern bool aq_slot_hold_lease(Partition *partition, int position, uint32 number);
extern void aq_slot_delay_until(Partition *partition, int position, uint32 number, TimestampTz until);
extern void aq_slot_find_ends(Partition *partition, TimestampTz before);

/*
 * Was the message, whose view is RETRY, rolled back alone?  Also false if this was
 * not its last attempt.
 */
static inline bool
aq_slot_was_alone(const FrameSub *sub, uint32 number)
{
	const SubMore *more = sub_more(sub);

	return more != NULL && more->alone != 0 && aq_bitmap_test(bitmap_of(more->alone), number);
}

/* How many of the consumer's messages in the frame are in work: see places.c. */
static inline uint32
aq_slot_in_work(const FrameSub *sub)
{
	return sub->ntaken + sub_leased(sub);
}

/* Does a lease of the message run? */
static inline bool
aq_slot_is_leased(const FrameSub *sub, uint32 number)
{
	const SubMore *more = sub_more(sub);

	return more != NULL && more->nleased > 0 && aq_bitmap_test(bitmap_of(more->leased), number);
}

/*
 * --- messages in work, for limits of consumers: places.c
 *
 * aq_places_got is the number of places that the session has got for messages that
 * it takes under the same hold of the latch.
 */
extern uint32 aq_places_got;
extern void aq_places_count(const Partition *partition, int position, int n);

/* --- where dequeues begin ------------------------------------------------------------------ */
extern void aq_slot_search_from(Stream *stream, const Partition *partition, int position);
extern void aq_slot_unlink(Stream *stream, const Partition *partition);

/* --- streams without anything for a consumer ----------------------------------------------------- */

/*
 * Is the stream empty for the consumer?  Called without the latch.  True is
 * exact; false means that the caller must check.
 *
 * Invariant while the latch is not held: if the bit is set, the consumer has
 * in the stream no ready message, no unwritten retry count and no message
 * taken by a prepared transaction, and no partition from its hint on was
 * evicted since it was checked.  A dequeue that has found nothing sets the bit
 * under the latch.  Every change that may end this clears it under the same
 * hold of the latch: a ready bit (enqueue, rollback, timer, loading, end of a
 * prepared transaction), a count for the worker to write, an evicted frame, a
 * new partition, a hint that is moved back.
 *
 * No wake-up is lost: a waker clears the bit, executes a memory barrier, and
 * then reads the list of waiters; a waiter enters the list, executes a memory
 * barrier, and then reads the bit.
 */
static inline bool
aq_slot_stream_is_empty(const Stream *stream, int position)
{
	return (stream->empty[position / 32] >> (position % 32) & 1) != 0;
}

/* The caller holds the latch; also for the functions below. */
static inline void
aq_slot_stream_set_empty(Stream *stream, int position)
{
	stream->empty[position / 32] |= (uint32) 1 << (position % 32);
}

static inline void
aq_slot_stream_not_empty(Stream *stream, int position)
{
	stream->empty[position / 32] &= ~((uint32) 1 << (position % 32));
}

static inline void
aq_slot_stream_not_empty_for_all(Stream *stream)
{
	for (int i = 0; i < AQ_MAX_CONSUMERS / 32; i++)
		stream->empty[i] = 0;
}

/* --- loading and unloading a frame ----------------------------------------------------------- */
extern void aq_slot_load_segment(Frame *frame, uint32 segment, const Slot *slots);
extern void aq_slot_load(Stream *stream, Partition *partition, int position, uint32 number, bool doubt);
extern void aq_slot_unload(Stream *stream, Partition *partition, int position);
extern void aq_slot_leave(Partition *partition, uint32 waiting, uint32 leased);
extern void aq_slot_leave_waiting(Partition *partition, uint32 waiting);
extern void aq_slot_leave_head(Partition *partition, uint32 number, const Slot *slot);
extern void aq_slot_count_away(Stream *stream, int position, int64 n);
extern void aq_slot_forget_away(Stream *stream, int position);
extern void aq_slot_reset(Partition *partition, uint32 reserved);
extern void aq_slot_note_session(Partition *partition, int64 session);

/*
 * Sets the TID of the slot's row.  A slot of the session's own transaction may
 * be changed without the latch.
 */
static inline void
aq_slot_locate(Slot *slot, BlockNumber block, OffsetNumber offset)
{
	slot->block = block;
	slot->offset = offset;
}

static inline void
aq_slot_set_expiry(Slot *slot, TimestampTz expires_at)
{
	slot->expires_at = expires_at;
	slot->flags |= SLOT_EXPIRES;
}

/*
 * Sets the transaction of a slot. near: any full transaction id less than 2^31
 * transactions away from it.
 */
static inline void
aq_slot_set_xid(Slot *slot, TransactionId xid, uint64 near)
{
	slot->xid = xid;
	slot->epoch = (near + (int32) (xid - (TransactionId) near)) >> 32;
}

/*
 * Makes a bitmap of retries or of doubt, from the session's reserved chunks.
 * They are made in advance, while an error can still be raised.
 */
static inline void
aq_slot_make_bitmap(AqChunk *bitmap)
{
	if (*bitmap == 0)
		*bitmap = aq_chunks_take();
}

/* Does a transaction keep the frame?  Exact if the stream's latch is held. */
static inline bool
aq_slot_is_kept(const Partition *partition)
{
	return partition->pending > 0 || partition->inflight > 0 || partition->ndoubt > 0;
}

/* Frames are no longer kept: told at the end of the (sub)transaction, without latches. */
extern bool aq_slot_frames_let_go;

/* Called after each change of what keeps the frame, and when it has grown meanwhile. */
static inline void
aq_slot_count_kept(Partition *partition)
{
	uint32		kept = aq_slot_is_kept(partition) ? FRAME_CHUNKS(partition->reserved) : 0;

	if (kept == partition->kept)
		return;
	(void) pg_atomic_fetch_add_u32(&aq_area->kept, (int32) (kept - partition->kept));
	partition->kept = kept;
	aq_slot_frames_let_go |= kept == 0;
}

/*
 * n (slot, consumer)s or jobs keep the frame of the partition, until
 * aq_slot_let_go.
 */
static inline void
aq_slot_hold(Partition *partition, uint32 n)
{
	partition->inflight += n;
	aq_slot_count_kept(partition);
}

static inline void
aq_slot_let_go(Partition *partition, uint32 n)
{
	Assert(partition->inflight >= n);
	partition->inflight -= n;
	aq_slot_count_kept(partition);
}

/* Counts transactions in doubt that have used the partition. */
static inline void
aq_slot_add_doubts(Partition *partition, uint32 n)
{
	partition->ndoubt += n;
	aq_slot_count_kept(partition);
}

static inline void
aq_slot_remove_doubt(Partition *partition)
{
	Assert(partition->ndoubt > 0);
	partition->ndoubt--;
	aq_slot_count_kept(partition);
}

/* Are all messages of the partition done? */
static inline bool
aq_slot_all_done(const Partition *partition)
{
	return partition->open == 0 && partition->pending == 0 && partition->inflight == 0 &&
		partition->ndoubt == 0 && partition->nretry == 0;
}

/* A dequeue has found that no message before this slot can be taken. */
static inline void
aq_slot_pass(FrameSub *sub, uint32 first)
{
	sub->first = first;
}

/* The same for all slots of the partition. */
static inline void
aq_slot_pass_partition(StreamSub *ssub, const Partition *partition)
{
	ssub->hint = partition->next ? partition->next : partition->index;
}

/* Sets the counts from the tables, for a partition that was not resident. */
static inline void
aq_slot_load_counts(Partition *partition, uint32 reserved, uint32 open, uint32 nfailed)
{
	partition->reserved = reserved;
	partition->open = open;
	partition->nfailed = nfailed;
}

/* Sets inflight, when it becomes resident. */
static inline void
aq_slot_load_inflight(Partition *partition, uint32 pending, uint32 inflight)
{
	partition->pending = pending;
	partition->inflight = inflight;
	aq_slot_count_kept(partition);
}

/*
 * --- slots read from the tables, in the session's own memory
 * -----------------------
 */
extern void aq_slot_read(Slot *slot, SlotState state);
extern void aq_slot_read_follower(Slot *slot, TransactionId xid, uint64 near);

/*
 * A row was found, whose transaction has ended or is in doubt; aq_slot_read
 * then sets the state.
 */
static inline void
aq_slot_read_row(Slot *slot, BlockNumber block, OffsetNumber offset, int64 session)
{
	aq_slot_locate(slot, block, offset);
	slot->session = session;
	aq_slot_read(slot, SLOT_DONE);
}

/* The message is for one more consumer. */
static inline void
aq_slot_read_target(Slot *slot)
{
	slot->open++;
}

/* One of its consumers has finished with it. */
static inline void
aq_slot_read_done(Slot *slot)
{
	Assert(slot->open > 0);
	slot->open--;
}

static inline void
aq_slot_read_failed(Slot *slot, bool failed)
{
	if (failed)
		slot->flags |= SLOT_FAILED;
	else
		slot->flags &= ~SLOT_FAILED;
}

#endif							/* AQ_SLOT_H */
