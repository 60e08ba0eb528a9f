/*-------------------------------------------------------------------------
 *
 * search.c
 *	  Dequeue by condition or message id, and browse.
 *
 * Rows are read before the message is taken, so the table is locked first.  If
 * another session takes the message in between, the next one is tried.
 *
 * A search by correlation looks for its tag in the frames, and reads only the rows
 * of the messages that have it: see tag.h.
 *
 * A transaction can dequeue its own uncommitted messages: they are found by
 * the transaction's notes, because they are not ready for other sessions.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/messages/take.h"
#include "shard/partitions/tag.h"

#include "access/table.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"

/*
 * --- messages of the transaction itself
 * -----------------------------------------
 */

static OwnView *
own_view(const Take *take, Partition *partition)
{
	PutNote   **notes;
	int			n = aq_notes_puts(&notes);

	return aq_own_view(partition, take->options->position, notes, n);
}

/* Is there a message that the transaction has enqueued itself? */
bool
aq_search_own(Take *take)
{
	PutNote   **notes;
	int			n = aq_notes_puts(&notes);

	for (int i = 0; i < n; i++)
		if (notes[i]->shm == take->shm && (i == 0 || notes[i]->partition != notes[i - 1]->partition) &&
			aq_own_next(own_view(take, notes[i]->partition), 0) >= 0)
			return true;
	return false;
}

/* --- partition by partition -------------------------------------------------------- */

/*
 * The first slot at or after "from" that is ready; for a purge and by message
 * id, also slots that wait.
 */
static int
next_of_others(const Take *take, const FrameSub *sub, uint32 from)
{
	int			ready,
				waiting;

	if (sub == NULL)
		return AQ_BITMAP_NONE;
	ready = aq_bitmap_next(bitmap_of(sub->ready), PARTITION_SLOTS, from);
	if (sub->nwaiting == 0 || (take->options->id == NULL && take->options->mode != AQ_MODE_PURGE))
		return ready;
	waiting = aq_bitmap_next(bitmap_of(sub->waiting), PARTITION_SLOTS, from);
	return ready < 0 ? waiting : waiting < 0 ? ready : Min(ready, waiting);
}

/*
 * Called if the partition has changed.  If only its frame was evicted, loads
 * it again and returns true.  The caller has locked the table, so the
 * partition cannot have been reused.
 */
static bool
load_again(Take *take, Stream *stream)
{
	Partition  *partition = take->partition;
	bool		evicted;

	aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_DEQUEUE_BROWSE);
	evicted = partition->stream == stream->index && partition->number == take->number &&
		partition->frame == 0 && partition->state == PARTITION_CLOSED;
	aq_latch_free(&stream->latch);
	if (evicted)
		aq_load_for_take(take->shm, partition, take_chunks(take));
	return evicted;
}

/* May the slot's message be one that is searched?  *cursor moves to the next one that may. */
static bool
has_tag(const Take *take, const Frame *frame, uint32 *cursor)
{
	uint32		from = *cursor;

	if (take->options->key != AQ_ANY_KEY)
		*cursor = tag_next(frame, tag_of(take->options->key), from);
	return *cursor == from;
}

/*
 * Collects slots from *cursor on that could be taken, of SEARCH_SLOTS at most;
 * returns false if the partition has changed.
 */
static bool
collect_resident(Take *take, Stream *stream, uint32 *cursor)
{
	Partition  *partition = take->partition;
	int			position = take->options->position;
	OwnView    *view = take->own_puts ? own_view(take, partition) : NULL;
	FrameSub   *sub;

	take->nitems = 0;
	aq_held_back_latch(take, stream, AQ_LOC_DEQUEUE_BROWSE);
	if (partition->stream != stream->index || partition->number != take->number ||
		partition->frame == 0)
	{
		aq_latch_free(&stream->latch);
		return false;
	}
	if (take->options->mode != AQ_MODE_BROWSE && take_is_closed(take, stream))
	{
		aq_latch_free(&stream->latch);
		*cursor = PARTITION_SLOTS;
		return true;
	}
	partition->referenced = true;
	sub = frame_sub(frame_of(partition), position);
	(void) has_tag(take, frame_of(partition), cursor);
	for (int i = 0; i < SEARCH_SLOTS && take->nitems < SEARCH_BATCH; i++)
	{
		int			ready = next_of_others(take, sub, *cursor);
		int			own = view != NULL ? aq_own_next(view, *cursor) : AQ_BITMAP_NONE;
		bool		is_own = own >= 0 && (ready < 0 || own < ready);
		int			number = is_own ? own : ready;

		if (number < 0)
		{
			*cursor = PARTITION_SLOTS;
			break;
		}
		*cursor = number;
		if (!has_tag(take, frame_of(partition), cursor))
			continue;
		*cursor = number + 1;
		if (!is_own && aq_held_back_is(take, partition, number))
		{
			take->passed_over = true;
			continue;
		}
		if (is_own || is_due(take, slot_at(frame_of(partition), number)))
			candidate_set(take, partition, &take->items[take->nitems++], number, is_own);
	}
	aq_latch_free(&stream->latch);
	return true;
}

/*
 * The same, but loads the partition if necessary; returns false only if it
 * no longer exists.
 */
static bool
collect(Take *take, Stream *stream, uint32 *cursor)
{
	while (!collect_resident(take, stream, cursor))
		if (!load_again(take, stream))
			return false;
	return true;
}

/* Takes a message that the transaction has enqueued itself. */
static bool
take_own(Take *take, uint32 number)
{
	OwnView    *view = own_view(take, take->partition);

	aq_notes_reserve_take(take->shm, 1);
	if (!aq_own_take(view, number))
		return false;
	aq_notes_add_take(take->partition, take->shm, take->options->position, take->options->mode, true, 0, number);
	return true;
}

/*
 * Can the message be taken although it waits?  A message that waits for its retry
 * delay cannot be leased: when the lease ended, the delay would be in the log and
 * no longer in memory.  Latch held.
 */
static bool
may_take_waiting(const Take *take, uint32 number)
{
	if (take->options->mode == AQ_MODE_PURGE)
		return true;
	return take->options->id != NULL &&
		(take->terms.receipt == 0 || slot_at(frame_of(take->partition), number)->state == SLOT_WAITING);
}

/* Is the message ready, or can it be taken although it waits?  Latch held. */
static bool
may_take(const Take *take, uint32 number)
{
	FrameSub   *sub = frame_sub(frame_of(take->partition), take->options->position);

	return sub != NULL && (aq_bitmap_test(bitmap_of(sub->ready), number) ||
						   (sub->nwaiting > 0 && aq_bitmap_test(bitmap_of(sub->waiting), number) &&
							may_take_waiting(take, number)));
}

/*
 * Takes one specific slot of a resident partition, ready or waiting.  Ends the call,
 * by take->limit, if no place is free.
 */
static bool
take_resident(Take *take, Stream *stream, uint32 number)
{
	Partition  *partition = take->partition;
	int			position = take->options->position;
	bool		taken = false;
	int			attempts;

	if (partition != take->admitted && aq_keep_is_new(partition))
		take_admit(take);
	aq_chunks_reserve(take->terms.receipt != 0 || take->queue->max_retries >= 0 ? take_chunks(take) : 1);
	aq_notes_reserve_take(take->shm, 1);
	aq_held_back_latch(take, stream, AQ_LOC_DEQUEUE_TAKE);
	if (partition->stream == stream->index && partition->number == take->number &&
		partition->frame != 0 && !aq_held_back_is(take, partition, number) && !take_is_closed(take, stream) &&
		may_take(take, number))
	{
		/* only now: a place that is given back wakes others, or this session itself */
		if (take->gated && aq_places_begin(take->queue, position, take->max_running, take->rate, 1) == 0)
			take->limit = take->taken;
		else
			taken = aq_slot_take(stream, partition, position, number) ||
				aq_slot_take_waiting(partition, position, number);
		if (take->gated)
			aq_places_end(take->queue, position, take->rate, taken);
	}
	if (taken)
	{
		attempts = aq_frame_attempts(frame_of(partition), position, number);
		take_prepare(take, frame_sub(frame_of(partition), position), number, attempts);
		take_note(take, partition, number, attempts);
	}
	aq_latch_free(&stream->latch);
	return taken;
}

/*
 * The same, but loads the partition if necessary; returns false if another
 * session has taken the message.
 */
static bool
take_slot(Take *take, Stream *stream, uint32 number)
{
	while (!take_resident(take, stream, number))
		if (!load_again(take, stream))
			return false;
	return true;
}

/* Takes one candidate if it matches and still can be taken. */
static void
try_item(Take *take, Stream *stream, Relation rel, const Candidate *item)
{
	const AqTakeOptions *options = take->options;
	AqMessage	m;
	Datum		values[MSG_COLUMNS];
	bool		nulls[MSG_COLUMNS];
	Buffer		buffer = InvalidBuffer;

	aq_candidate_read(take, rel, item, &m, values, nulls, &buffer);
	if (options->filter != NULL && !options->filter(options->filter_arg, &m))
	{
		ReleaseBuffer(buffer);
		return;
	}
	if ((item->own || take_allows(take, item->attempts, take->taken)) &&
		(options->mode == AQ_MODE_BROWSE ||
		 (item->own ? take_own(take, item->slot) : take_slot(take, stream, item->slot))))
	{
		m.receipt = take->terms.receipt;	/* it may have been leased alone */
		aq_notes_consumed(options->mode, take->now, &m);
		if (options->emit)
			options->emit(options->emit_arg, &m);
		if (options->mode == AQ_MODE_BROWSE)
			pg_atomic_fetch_add_u64(&take->partition->browsed, 1);
		take->taken++;
	}
	else
		take->passed_over = true;
	ReleaseBuffer(buffer);
}

/*
 * Waits until rolled back messages are ready again, to keep the order; returns
 * false if that takes too long.
 */
static bool
await_retries(Take *take, Stream *stream)
{
	Partition  *partition = take->partition;
	FrameSub   *sub = NULL;
	bool		wait;

	if (take->ignore_retries || partition->nretry == 0)
		return true;
	aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_DEQUEUE_BROWSE);
	if (partition->stream == stream->index && partition->number == take->number &&
		partition->frame != 0)
		sub = frame_sub(frame_of(partition), take->options->position);
	wait = sub != NULL && sub->nretry > 0;
	aq_latch_free(&stream->latch);
	return !wait || aq_candidate_await_retries(take, false);
}

/*
 * Tries all candidates of one partition, from a slot on; returns false if
 * later messages must not be dequeued.
 */
static bool
look_through(Take *take, Stream *stream, uint32 cursor)
{
	Relation	rel;

	if (!await_retries(take, stream))
		return false;
	rel = aq_heap_open_messages(take->partition, AccessShareLock);

	/* the lock keeps the table from being truncated; collect() checks again */
	while (cursor < PARTITION_SLOTS && take->taken < take->limit)
	{
		CHECK_FOR_INTERRUPTS();
		if (!collect(take, stream, &cursor))
			break;
		aq_point("candidates-found");
		for (uint32 i = 0; i < take->nitems && take->taken < take->limit; i++)
		{
			CHECK_FOR_INTERRUPTS();
			try_item(take, stream, rel, &take->items[i]);
		}
	}
	table_close(rel, NoLock);
	return true;
}

/* Can the partition have no message that is searched?  Latch held. */
static bool
is_without_tag(const Take *take, Partition *partition)
{
	if (take->options->key == AQ_ANY_KEY || partition->frame == 0 ||
		tag_next(frame_of(partition), tag_of(take->options->key), 0) < PARTITION_SLOTS)
		return false;
	partition->referenced = true;
	return true;
}

/*
 * Sets take->partition to the partition with the lowest number from this one
 * on, of those that may have a message that is searched, or that must be loaded
 * to tell.
 */
static bool
partition_from(Take *take, Stream *stream, int64 number)
{
	Partition  *partition;
	bool		unloaded = false;

	for (;;)
	{
		aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_DEQUEUE_BROWSE);
		partition = aq_stream_first_from(stream, number);
		for (int i = 0; i < SEARCH_PARTITIONS && partition != NULL && is_without_tag(take, partition); i++)
			partition = partition_at(partition->next);
		take->partition = partition;
		if (partition != NULL)
		{
			take->number = partition->number;
			unloaded = partition->frame == 0;
		}
		aq_latch_free(&stream->latch);
		if (partition == NULL)
			return false;
		if (!unloaded)
		{
			aq_stat_add(AQ_STAT_CACHE_HITS, 1);
			return true;
		}
		aq_stat_add(AQ_STAT_CACHE_MISSES, 1);
		aq_load_for_take(take->shm, partition, take_chunks(take));
	}
}

/* The first ordinal of the stream that can be that of a message that is searched. */
static int64
first_ordinal(Take *take, Stream *stream)
{
	StreamSub  *ssub;
	int64		ordinal;

	aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_DEQUEUE_BROWSE);
	ordinal = aq_seen_begin(take, stream);
	ssub = stream_sub(stream, take->options->position);
	if (ssub != NULL && ssub->hint != 0 && !take->own_puts && take->options->mode != AQ_MODE_PURGE)
		ordinal = Max(ordinal, ordinal_of(partition_at(ssub->hint), 0));
	aq_latch_free(&stream->latch);
	return ordinal;
}

/*
 * Tries all candidates of a stream after an ordinal; -1: from the first one
 * on.
 */
void
aq_search_stream(Take *take, Stream *stream, int64 after)
{
	int64		first = after >= 0 ? after + 1 : first_ordinal(take, stream);
	int64		number = first / PARTITION_SLOTS;

	while (take->taken < take->limit)
	{
		if (!partition_from(take, stream, number))
		{
			if (after < 0)
				aq_seen_end(take);
			break;
		}
		number = take->number;
		if (!look_through(take, stream, number == first / PARTITION_SLOTS ? first % PARTITION_SLOTS : 0))
			break;
		take_ends_with_partition(take);
		number++;
	}
}

/* Browses in the order of streams, after the message given in the options. */
void
aq_search_browse(Take *take)
{
	Stream	   *stream = stream_at(shard_queue(take->shm)->streams);
	int			after_stream = -1;
	int64		after = -1;

	if (take->options->after != NULL)
	{
		if (!aq_message_id_parse(take->options->after, take->queue->shard_key, &after_stream, &after))
			ereport(ERROR,
					aq_error(AQ_ERR_MESSAGE_UNDEFINED, "\"after\" is not a message of queue \"%s\"",
							 take->queue->name));
		while (stream != NULL && stream->number != after_stream)
			stream = stream_at(stream->next);
	}
	for (; stream != NULL && take->taken < take->limit; stream = stream_at(stream->next))
	{
		aq_search_stream(take, stream, after);
		after = -1;
	}
}

/* --- by message id ------------------------------------------------------------------------------ */

/* Consumes a message that this transaction has locked, or shows it again. */
static bool
take_locked(Take *take, uint32 number)
{
	uint32		at;
	TakeNote   *note = aq_notes_find_locked(take->partition, take->options->position, number, &at);

	if (note == NULL)
		return false;
	if (take->options->mode == AQ_MODE_REMOVE || take->options->mode == AQ_MODE_REMOVE_NODATA)
		aq_notes_take_locked(note, at, take->options->mode);
	return true;
}

void
aq_search_id(Take *take)
{
	int			stream_no;
	int64		ordinal;
	uint32		number;
	Stream	   *stream;
	Relation	rel;
	uint32		cursor;

	if (!aq_message_id_parse(take->options->id, take->queue->shard_key, &stream_no, &ordinal))
		return;
	stream = aq_stream_find(take->shm, stream_no);
	if (stream == NULL || !partition_from(take, stream, ordinal / PARTITION_SLOTS) ||
		take->number != ordinal / PARTITION_SLOTS)
		return;
	number = ordinal % PARTITION_SLOTS;
	(void) await_retries(take, stream);
	rel = aq_heap_open_messages(take->partition, AccessShareLock);
	/* a purge leaves what the transaction has locked, as it leaves what others have */
	if (take->terms.receipt == 0 && take->options->mode != AQ_MODE_PURGE && take->options->immediate == NULL &&
		take_locked(take, number))
	{
		/*
		 * this transaction has the message, so the partition cannot be evicted
		 */
		candidate_set(take, take->partition, &take->items[0], number, false);
		take->nitems = 1;
		aq_candidate_emit(take);
	}
	else
	{
		cursor = number;
		if (collect(take, stream, &cursor) && take->nitems > 0 && take->items[0].slot == number)
			try_item(take, stream, rel, &take->items[0]);
	}
	table_close(rel, NoLock);
}
