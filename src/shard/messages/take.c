/*-------------------------------------------------------------------------
 *
 * take.c
 *	  Dequeue: find messages in order, take them, read their rows.
 *
 * Without a condition, messages are found by bitmap and taken under one hold
 * of the stream's latch; their rows are read afterwards, by TID.  This is
 * safe, because a partition with a taken message is not truncated.  Dequeues
 * that must read rows first are in search.c.
 *
 * In REPEATABLE READ and above, a message can be dequeued only if the
 * transaction that stored it is visible to the snapshot, so that a message and
 * rows stored in the same transaction are visible together.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/messages/take.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

/* calls after which another stream of a priority is checked first */
#define TURN 16

typedef enum Finding
{
	FOUND_NOTHING,				/* no message in this stream */
	FOUND_ITEMS,
	FOUND_UNLOADED,				/* take->partition has to be loaded */
	FOUND_RETRY,				/* the next message waits for its retry count */
	FOUND_NO_CHUNK,				/* a chunk is needed, but none is reserved */
	FOUND_NOT_ADMITTED			/* take->partition has to be admitted: see keep.c */
} Finding;

/* --- finding without a condition ------------------------------------------------------ */

/*
 * Takes up to max ready messages of the partition, in order.  Sets *blocked if
 * the next one waits for its retry count, *short_of_chunks if the first one needs
 * more chunks than are reserved.  The caller holds the latch.  sub->first moves
 * past messages that are held back from all sessions, but not past messages that
 * only this transaction cannot take.  Ends the call, by take->limit, at a message
 * that has failed too often to be in its batch, and if no place is free.
 */
static uint32
take_ready(Take *take, Stream *stream, Partition *partition, FrameSub *sub, uint32 max,
		   bool peek, bool *blocked, bool *short_of_chunks)
{
	Frame	   *frame = frame_of(partition);
	int			position = take->options->position;
	uint64_t   *ready = bitmap_of(sub->ready);
	int			retry = PARTITION_SLOTS;
	int			number = (int) sub->first - 1;
	bool		places = take->gated && !peek;
	bool		skipped = false;
	uint32		n = 0;
	int			attempts;

	if (sub->nretry > 0 && !take->ignore_retries)
		retry = aq_bitmap_next(bitmap_of(sub->retry), PARTITION_SLOTS, 0);
	while (n < max && take->taken + n < take->limit && sub->nready > 0 &&
		   (number = aq_bitmap_next(ready, PARTITION_SLOTS, number + 1)) >= 0)
	{
		if (number > retry)
			break;
		if (aq_held_back_is(take, partition, number))
			continue;
		if (!is_due(take, slot_at(frame, number)))
		{
			skipped = true;
			continue;
		}
		attempts = sub->more == 0 ? 0 : aq_frame_attempts(frame, position, number);
		if (!take_allows(take, attempts, take->taken + n))
			break;
		if (!peek)
		{
			if (take_needs(take, sub, number, attempts) > aq_chunks_reserved())
			{
				*short_of_chunks = n == 0;
				break;
			}
			/* not before a message can be taken: a place that is given back wakes others, or this session itself */
			if (places && n == 0)
			{
				Assert(partition->limited || take->max_running == 0);
				max = aq_places_begin(take->queue, position, take->max_running, take->rate,
									  Min(Min(max, sub->nready), take->limit - take->taken));
				if (max == 0)
				{
					take->limit = take->taken;
					return 0;	/* which says nothing about the messages */
				}
			}
			take_prepare(take, sub, number, attempts);
			candidate_set(take, partition, &take->items[n], number, false);
			(void) aq_slot_take(stream, partition, position, number);
			take_note(take, partition, number, attempts);
			if (!skipped)
				aq_slot_pass(sub, number + 1);
		}
		n++;
	}
	if (places)
		aq_places_end(take->queue, position, take->rate, n);
	if (number < 0 && !skipped)
		aq_slot_pass(sub, PARTITION_SLOTS);
	*blocked = n == 0 && retry < PARTITION_SLOTS && take->taken < take->limit;
	return n;
}

/* See find_in_stream. */
static Finding
search_stream(Take *take, Stream *stream, uint32 max, bool peek)
{
	int			position = take->options->position;
	Finding		finding = FOUND_NOTHING;
	bool		passed = true;	/* no messages before this partition */
	bool		empty = true;	/* no messages that another transaction might take or wait for */
	Partition  *partition;
	StreamSub  *ssub;

	aq_notes_reserve_take(take->shm, Min(max, TAKE_BATCH));
	aq_held_back_latch(take, stream, AQ_LOC_DEQUEUE_TAKE);
	if (take_is_closed(take, stream))
	{
		aq_latch_free(&stream->latch);
		return FOUND_NOTHING;
	}
	if (stream_sub(stream, position) == NULL && aq_chunks_reserved() == 0)
	{
		aq_latch_free(&stream->latch);
		return FOUND_NO_CHUNK;
	}
	ssub = aq_frame_stream_sub_make(stream, position);
	partition = partition_at(ssub->hint ? ssub->hint : stream->head);
	while (partition != NULL)
	{
		FrameSub   *sub;
		bool		blocked = false,
					short_of_chunks = false;

		take->partition = partition;
		take->number = partition->number;
		if (partition->frame == 0 && !aq_held_back_are(take, partition))
		{
			finding = FOUND_UNLOADED;
			break;
		}
		sub = partition->frame == 0 ? NULL : frame_sub(frame_of(partition), position);
		empty &= partition->frame != 0;
		if (sub != NULL && (sub->nready > 0 || sub->nretry > 0))
		{
			empty = false;
			if (!peek && partition != take->admitted && aq_keep_is_new(partition))
			{
				finding = FOUND_NOT_ADMITTED;
				break;
			}
			partition->referenced = true;
			take->file = partition->file;
			take->nitems = take_ready(take, stream, partition, sub, Min(max, TAKE_BATCH),
									  peek, &blocked, &short_of_chunks);
			if (short_of_chunks)
			{
				finding = FOUND_NO_CHUNK;
				break;
			}
			if (take->nitems > 0 || blocked)
			{
				finding = blocked ? FOUND_RETRY : FOUND_ITEMS;
				break;
			}
			if (take->taken >= take->limit)
				break;
			/* there may be expired or invisible messages */
			passed &= sub->nretry == 0 && sub->first == PARTITION_SLOTS;
		}
		if (passed)
			aq_slot_pass_partition(ssub, partition);
		partition = partition_at(partition->next);
	}
	if (finding == FOUND_NOTHING && empty && ssub->ready == 0 && ssub->ndoubt == 0)
		aq_slot_stream_set_empty(stream, position);
	aq_latch_free(&stream->latch);
	return finding;
}

/*
 * Searches the next messages of a stream, and takes them unless this is only a
 * peek.  Chunks are reserved only if one is needed, because with a full cache
 * this evicts a frame.
 */
static Finding
find_in_stream(Take *take, Stream *stream, uint32 max, bool peek)
{
	Finding		finding;

	if (aq_slot_stream_is_empty(stream, take->options->position))
		return FOUND_NOTHING;
	for (;;)
	{
		finding = search_stream(take, stream, max, peek);
		if (finding == FOUND_NO_CHUNK)
			aq_chunks_reserve(take_chunks(take));
		else if (finding == FOUND_NOT_ADMITTED)
			take_admit(take);
		else
			return finding;
	}
}

/* Takes messages from a stream until it has no more, or max is reached. */
static void
take_from_stream(Take *take, Stream *stream)
{
	bool		stopped = false;

	while (!stopped && take->taken < take->limit)
	{
		CHECK_FOR_INTERRUPTS();
		switch (find_in_stream(take, stream, take->limit - take->taken, false))
		{
			case FOUND_NOTHING:
			case FOUND_NO_CHUNK:	/* never returned by find_in_stream */
			case FOUND_NOT_ADMITTED:
				return;
			case FOUND_ITEMS:
				aq_stat_add(AQ_STAT_CACHE_HITS, 1);
				aq_point("messages-taken");
				aq_candidate_emit(take);
				take_ends_with_partition(take);
				break;
			case FOUND_UNLOADED:
				aq_stat_add(AQ_STAT_CACHE_MISSES, 1);
				aq_load_for_take(take->shm, take->partition, take_chunks(take));
				take->loaded = true;
				break;
			case FOUND_RETRY:
				stopped = !aq_candidate_await_retries(take, false);
				break;
		}
	}
}

/* --- the queue ------------------------------------------------------------------------------------- */

/*
 * Streams of the same priority are checked first in turn, so that no shard
 * starves; sessions begin with different ones.  A session that had to load a
 * partition stays with its stream for as many messages as a partition can
 * have: if the backlog exceeds the cache, each change of stream is likely to
 * load one.
 */
static void
take_from_group(Take *take, Stream *first, int n)
{
	static uint32 calls,
				remaining;		/* messages until the next change of stream */
	uint32		before = take->taken;
	int			start = (aq_session_number() + calls / TURN) % n;
	Stream	   *stream = first;

	take->loaded = false;
	if (n > 1 && remaining == 0)
		calls++;
	for (int i = 0; i < start; i++)
		stream = stream_at(stream->next);
	for (int i = 0; i < n && take->taken < take->limit; i++)
	{
		if (take->options->filter != NULL || take->own_puts)
			aq_search_stream(take, stream, -1);
		else
		{
			take_from_stream(take, stream);
			if (take->options->mode == AQ_MODE_PURGE)
				aq_search_stream(take, stream, -1); /* waiting messages */
		}
		stream = start + i + 1 == n ? first : stream_at(stream->next);
	}
	remaining = take->loaded ? PARTITION_SLOTS : remaining - Min(remaining, Max(take->taken - before, 1));
}

static const AqRate no_rate;

static void
init_take(Take *take, AqQueue *queue, const AqTakeOptions *options)
{
	memset(take, 0, sizeof(Take));
	take->queue = queue;
	take->shm = queue->shm;
	take->options = options;
	take->limit = options->max;
	take->max_running = options->limited ? aq_queue_limit(queue, options->position) : 0;
	take->rate = options->limited ? aq_queue_rate(queue, options->position) : &no_rate;
	take->gated = take->max_running > 0 || take->rate->period > 0;
	take->careful = options->id == NULL && options->unit == 0 &&
		(options->mode == AQ_MODE_REMOVE || options->mode == AQ_MODE_REMOVE_NODATA);
	take->now = GetCurrentTimestamp();
	if (options->immediate != NULL)
	{
		options->immediate->number = aq_frozen_number();
		take->limit = Min(options->max, AQ_LOG_ORDINALS);
	}
	else if (aq_wait_take_uses_snapshot())
	{
		uint64		next;

		take->snapshot = GetTransactionSnapshot();
		next = U64FromFullTransactionId(ReadNextFullTransactionId());
		take->oldest = next - (uint32) ((TransactionId) next - take->snapshot->xmin);
	}
	if (options->lease > 0)
	{
		take->terms = (LeaseTerms) {.receipt = options->ends ? aq_lease_session_receipt(queue) : aq_lease_receipt(queue),
			.span = options->lease, .detail = aq_lease_holder()};
		if (options->unit != 0)
			take->terms.receipt |= AQ_RECEIPT_NODE;
		else if (options->max == 1)
			take->terms.receipt |= AQ_RECEIPT_ALONE;
	}
	else if (options->immediate == NULL && !take->gated)	/* what is leased is committed; for a limit, it has no
															 * view that counts */
		take->own_puts = aq_notes_have_puts(queue->shm);
	if (queue->distributed && options->unit == 0 && options->mode != AQ_MODE_BROWSE)
		aq_peers_note_wish(queue->shm, options->position, take->now);
	pg_memory_barrier();		/* a waiter enters the list before it searches; see aq_slot_stream_is_empty */
}

/*
 * Does the transaction have a message of the queue whose next failure is its
 * last one?  Then the call gets nothing; others may.
 */
static bool
is_withheld(const Take *take)
{
	if (!take->careful || take->options->lease > 0 || take->options->patient || take->options->immediate != NULL ||
		!aq_notes_have_last(take->shm))
		return false;
	aq_waiters_check_later(take->shm);
	return true;
}

/* Without a token, the worker checks the waiters, one of which the caller may be, at the time of the next one. */
static bool
has_token(const Take *take)
{
	bool		early = aq_queue_is_early(take->queue, take->options->position);

	if (early)
		aq_waiters_check_at_token(take->shm, aq_shm_consumer(take->shm, take->options->position), take->rate);
	return !early;
}

/*
 * Has a limited consumer a free place, and a token of its rate?  If the description is
 * too old, it may have them: the call has to begin again.
 */
static bool
has_place(const Take *take)
{
	const AqTakeOptions *options = take->options;
	ShardQueue *sq = shard_queue(take->shm);

	if (!options->limited || (!take->gated && !sq->limited && !aq_rate_is_left(take->shm, options->position)))
		return true;
	if (take->max_running > 0 && !sq->limited_known)
		aq_first_use_limit(take->shm);
	(void) aq_shm_consumer_make(take->shm, options->position);
	aq_waiters_limit(take->queue, options->position, take->max_running);
	pg_memory_barrier();		/* a waiter enters the list before it looks for a place; see places.c */
	if (!aq_queue_is_full(take->queue, options->position) && has_token(take))
		return true;
	if (options->outdated != NULL && aq_stream_is_unknown(take->queue))
		*options->outdated = true;
	else if (options->waits && take->max_running > 0 &&
			 aq_notes_count_takes(take->shm, options->position) >= take->max_running)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot wait for messages of queue \"%s\"", take->queue->name),
				 errdetail("This transaction has dequeued as many messages as the consumer may have in work: %u.", take->max_running),
				 errhint("Commit or roll back first.")));
	/* one that the transaction has locked may be taken */
	return options->id != NULL;
}

/* The messages of one shard, in the order of dequeue. */
static void
take_unit(Take *take)
{
	int			shard = take->options->unit - 1;

	for (Stream *stream = stream_at(shard_queue(take->shm)->streams); stream != NULL && take->taken < take->limit;
		 stream = stream_at(stream->next))
		if (stream->shard == shard)
			take_from_stream(take, stream);
}

uint32
aq_take(AqQueue *queue, const AqTakeOptions *options)
{
	Take		take;
	Stream	   *stream;

	init_take(&take, queue, options);
	if (is_withheld(&take) || !has_place(&take))
		return 0;
	take.items = palloc(Max(SEARCH_BATCH, Min(options->max, TAKE_BATCH)) * sizeof(Candidate));
	if (options->id != NULL)
		aq_search_id(&take);
	else if (options->mode == AQ_MODE_BROWSE)
		aq_search_browse(&take);
	else if (options->unit != 0)
		take_unit(&take);
	else
	{
		stream = stream_at(shard_queue(queue->shm)->streams);
		while (stream != NULL && take.taken < take.limit)
		{
			Stream	   *first = stream;
			int			n = 0;

			if (options->below > 0 && first->priority >= options->below)
				break;
			for (; stream != NULL && stream->priority == first->priority;
				 stream = stream_at(stream->next))
				n++;
			take_from_group(&take, first, n);
		}
	}
	pfree(take.items);
	aq_chunks_trim();
	/* other sessions may take what this one leaves; if no place is free, the end of work wakes them */
	if (take.limit == 0 && !aq_queue_is_full(queue, options->position) && !aq_queue_is_early(queue, options->position))
		aq_waiters_check_later(queue->shm);
	return take.taken;
}

static bool
is_ready(AqQueue *queue, int position, int64 until)
{
	AqTakeOptions options = {.position = position, .max = 1, .mode = AQ_MODE_REMOVE, .limited = true};
	Take		take;
	Stream	   *first,
			   *stream;

	init_take(&take, queue, &options);
	take.counts_until = until;
	if (!IsTransactionBlock())
		take.snapshot = NULL;
	if (is_withheld(&take) || !has_place(&take))
		return false;
	if (take.own_puts && aq_search_own(&take))
		return true;
	stream = first = stream_at(shard_queue(queue->shm)->streams);
	while (stream != NULL && take.limit > 0)
	{
		CHECK_FOR_INTERRUPTS();
		switch (find_in_stream(&take, stream, 1, true))
		{
			case FOUND_ITEMS:
				return true;
			case FOUND_NOTHING:
			case FOUND_NO_CHUNK:
			case FOUND_NOT_ADMITTED:	/* never returned by find_in_stream */
				stream = stream_at(stream->next);
				break;
			case FOUND_UNLOADED:
				aq_load_for_take(take.shm, take.partition, take_chunks(&take));
				break;
			case FOUND_RETRY:
				stream = aq_candidate_await_retries(&take, true) ? first : stream_at(stream->next);
				break;
		}
	}
	return false;
}

/*
 * Is there a message that could be taken now?  Does not use a snapshot:
 * outside a transaction block, the next statement takes the message with its
 * own snapshot.
 */
bool
aq_take_is_ready(AqQueue *queue, int position, int64 until)
{
	bool		ready = is_ready(queue, position, until);

	if (!ready)
		aq_point("nothing-ready");
	aq_chunks_trim();
	return ready;
}
