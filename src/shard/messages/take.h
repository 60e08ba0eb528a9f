/*-------------------------------------------------------------------------
 *
 * take.h
 *	  State of a dequeue, shared by the files that find and take messages.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_TAKE_H
#define AQ_TAKE_H

#include "shard/messages/messages_private.h"

#include "utils/snapmgr.h"

/*
 * maximum number of messages taken, or found by a search, under one hold of
 * the latch
 */
#define TAKE_BATCH 1024
#define SEARCH_BATCH 64

/* maximum number of slots that a search looks at under one hold of the latch */
#define SEARCH_SLOTS 1024

/* the same for partitions whose tags it reads */
#define SEARCH_PARTITIONS 16

typedef struct Candidate
{
	uint16		slot;
	bool		own;			/* enqueued by this transaction */
	uint8		attempts;
	ItemPointerData tid;
} Candidate;

/*
 * Sessions whose messages prepared transactions have taken: see held_back.c.
 */
typedef struct HeldMap HeldMap;

typedef struct Take
{
	AqQueue    *queue;
	AqQueueShm *shm;
	const AqTakeOptions *options;
	uint32		taken;
	uint32		limit;			/* most messages of this call; smaller than options->max once it has one that has
								 * failed */
	bool		gated;			/* the consumer has one of these two: */
	uint32		max_running;	/* of its messages may be in work; 0: no limit */
	const AqRate *rate;			/* its period is 0 if it has none */
	bool		careful;		/* limits apply: it consumes messages, not a certain one */
	bool		loaded;			/* a partition was loaded for it */
	TimestampTz now;
	Snapshot	snapshot;		/* in REPEATABLE READ and above, else NULL */
	uint64		oldest;			/* its xmin, as a full transaction id */
	bool		ignore_retries; /* for modes where the order does not matter */
	int64		counts_until;	/* see aq_retries_await(); 0: has not waited yet */
	bool		own_puts;		/* the transaction has enqueued into this queue */
	LeaseTerms	terms;			/* receipt 0: no lease */
	const HeldMap *held;		/* valid under the latch; NULL: no message is held back */
	Candidate  *items;
	const Partition *admitted;	/* the transaction may take messages of it: see keep.c */
	/* the partition of the items */
	Partition  *partition;
	int64		number;
	uint32		file;			/* file to which the items' TIDs refer */
	uint32		nitems;
	/* see seen.c */
	struct AqSeenStream *seen;	/* of the stream that is searched */
	int64		seen_before;
	bool		passed_over;
} Take;

static inline void
candidate_locate(const Partition *partition, Candidate *item)
{
	Slot	   *slot = slot_at(frame_of(partition), item->slot);

	ItemPointerSet(&item->tid, slot->block, slot->offset);
}

/* The caller holds the stream's latch. */
static inline void
candidate_set(const Take *take, Partition *partition, Candidate *item, uint32 number, bool own)
{
	item->slot = number;
	item->own = own;
	item->attempts = aq_frame_attempts(frame_of(partition), take->options->position, number);
	candidate_locate(partition, item);
}

/* Would a message of this call fail together with others that the transaction has dequeued? */
static inline bool
take_is_with_others(const Take *take)
{
	return take->options->immediate == NULL && aq_notes_have_takes(take->shm);
}

/* With immediate visibility the call ends with the first partition in which it finds messages: see frozen.c. */
static inline void
take_ends_with_partition(Take *take)
{
	if (take->options->immediate != NULL && take->taken > 0)
		take->limit = take->taken;
}

/*
 * May the call take this message, which has failed before, after n others?  If
 * not, the call ends before it: see "Poison messages" in queue/README.md.
 * Latch held.
 */
static inline bool
take_allows(Take *take, int attempts, uint32 n)
{
	uint32		limit;

	if (attempts == 0 || !take->careful)
		return true;
	limit = aq_queue_batch_limit(take->queue, attempts, take->options->max);
	if (n < limit && !(aq_queue_next_is_last(take->queue, attempts) && take->options->lease == 0 &&
					   !take->options->patient && take_is_with_others(take)))
	{
		take->limit = Min(take->limit, limit);
		if (take->limit == 1 && take->options->lease > 0)
			take->terms.receipt |= AQ_RECEIPT_ALONE;
		return true;
	}
	take->limit = n;
	return false;
}

/* Note a message that was taken.  Latch held; reserved before. */
static inline void
take_note(const Take *take, Partition *partition, uint32 number, int attempts)
{
	const AqTakeOptions *options = take->options;
	bool		last = attempts > 0 && (options->mode == AQ_MODE_REMOVE || options->mode == AQ_MODE_REMOVE_NODATA) &&
		options->lease == 0 && aq_queue_next_is_last(take->queue, attempts) && !take_is_with_others(take);

	if (take->terms.receipt != 0)
		aq_notes_add_lease(partition, take->shm, options->position, AQ_MODE_LEASE, &take->terms, number);
	else
		aq_notes_add_take(partition, take->shm, options->position, options->mode, false,
						  options->immediate != NULL ? options->immediate->number : 0, number);
	if (last)
		aq_notes_mark_last();
}

/* Chunks that a dequeue has in reserve before it takes its first message: with fewer, it may not get far. */
static inline uint32
take_chunks(const Take *take)
{
	return AQ_TAKE_CHUNKS + (take->terms.receipt != 0 ? AQ_LEASE_CHUNKS : 0);
}

/* Chunks that are needed to take the message, whose consumer has the view. */
static inline uint32
take_needs(const Take *take, const FrameSub *sub, uint32 number, int attempts)
{
	return (sub->retry == 0) + (take->terms.receipt != 0 ? aq_slot_lease_needs(sub, number) : 0) +
		(aq_queue_next_is_last(take->queue, attempts) ? aq_slot_alone_needs(sub) : 0);
}

/* They are reserved: use them. */
static inline void
take_prepare(const Take *take, FrameSub *sub, uint32 number, int attempts)
{
	aq_slot_make_bitmap(&sub->retry);
	if (aq_queue_next_is_last(take->queue, attempts))
		aq_slot_make_alone(sub);
	if (take->terms.receipt != 0)
		aq_slot_make_lease(sub, number);
}

/*
 * Are the stream's messages for the consumer with another node, or about to go
 * back to it?  If the description is too old to tell, or to tell whether the
 * consumer is paused, the call has to begin again.  Latch held: so nothing is taken
 * after aq.pause has been committed.
 */
static inline bool
take_is_closed(Take *take, const Stream *stream)
{
	if (take->options->unit != 0)
		return false;
	if (take->options->outdated != NULL && aq_stream_is_unknown(take->queue))
		return *take->options->outdated = true;
	return take->queue->distributed && aq_stream_is_closed(take->queue, stream, take->options->position);
}

/* The transaction is about to take messages of the partition; called without a latch. */
static inline void
take_admit(Take *take)
{
	take->admitted = take->partition;
	aq_keep_admit(take->shm);
}

/* Can this transaction take the message now? */
static inline bool
is_due(const Take *take, const Slot *slot)
{
	if ((slot->flags & SLOT_EXPIRES) && slot->expires_at <= take->now)
		return false;
	return take->snapshot == NULL || slot_precedes(slot, take->oldest) ||
		!XidInMVCCSnapshot(slot->xid, take->snapshot);
}

/* --- candidate.c ------------------------------------------------------------------- */
extern void aq_candidate_read(Take *take, Relation rel, const Candidate *item, AqMessage *m, Datum *values,
							  bool *nulls, Buffer *buffer);
extern void aq_candidate_emit(Take *take);
extern bool aq_candidate_await_retries(Take *take, bool only_checks);

/* --- held_back.c: latch held unless said otherwise ----------------------------------- */
extern void aq_held_back_latch(Take *take, Stream *stream, AqLocation location);	/* takes the latch */
extern bool aq_held_back_is(const Take *take, const Partition *partition, uint32 slot);
extern bool aq_held_back_are(const Take *take, const Partition *partition);

/* --- seen.c ------------------------------------------------------------------------ */
extern int64 aq_seen_begin(Take *take, Stream *stream);
extern void aq_seen_end(Take *take);

/* --- search.c ---------------------------------------------------------------------- */
extern void aq_search_stream(Take *take, Stream *stream, int64 after);
extern void aq_search_browse(Take *take);
extern void aq_search_id(Take *take);
extern bool aq_search_own(Take *take);

#endif							/* AQ_TAKE_H */
