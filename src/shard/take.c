/*-------------------------------------------------------------------------
 *
 * take.c
 *	  Dequeue: find messages in their order, take them, read their rows.
 *
 * Without a condition a message is found by bitmap and taken in one hold of
 * the stream's latch; its row is read afterwards, by TID.  That is safe: a
 * partition with a taken message is not truncated.  With a condition rows
 * are read before the message is taken, so the table is locked first, and
 * what is read may be gone when it is to be taken: then the next one is tried.
 *
 * What a transaction has enqueued itself it can dequeue at once; see
 * own_candidate().
 *
 * In REPEATABLE READ and above a message is only seen when the transaction
 * that stored it is visible to the snapshot: a message and the rows stored
 * with it come together or not at all.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/shard_private.h"

#include "access/heapam.h"
#include "access/table.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

/* messages taken, or looked at, in one hold of the latch */
#define TAKE_BATCH 1024
#define LOOK_BATCH 64

/* takes from one stream of a priority before another gets the first look */
#define TURN 16

/* how long a dequeue waits for the worker to write retry counts, microseconds */
#define RETRY_PATIENCE ((int64) 5000000)

typedef struct Candidate
{
	uint16		slot;
	bool		own;			/* enqueued by this transaction */
	uint8		attempts;
	ItemPointerData tid;
} Candidate;

typedef struct Take
{
	AqQueue    *queue;
	AqQueueShm *shm;
	const AqTakeOptions *options;
	uint32		taken;
	bool		loaded;			/* a partition came into memory for it */
	TimestampTz now;
	Snapshot	snapshot;		/* in REPEATABLE READ and above, else NULL */
	bool		ignore_retries; /* the worker has not answered */
	bool		own_puts;		/* the transaction has enqueued into this queue */
	Candidate	   *items;
	/* the partition that items are in */
	Partition  *partition;
	int64		number;
	uint32		file;			/* that the items' TIDs belong to */
	uint32		nitems;
} Take;

typedef enum Finding
{
	FOUND_NOTHING,				/* in this stream */
	FOUND_ITEMS,
	FOUND_UNLOADED,				/* take->partition has to be loaded */
	FOUND_RETRY					/* the next one waits for its retry count */
} Finding;

/* --- rows ------------------------------------------------------------------------- */

static struct varlena *
varlena_or_null(Datum *values, bool *nulls, int column)
{
	return nulls[column] ? NULL : (struct varlena *) DatumGetPointer(values[column]);
}

/* Values point into the tuple and must outlive the message. */
void
aq_message_read(AqQueue *queue, const Stream *stream, HeapTuple tuple, TupleDesc desc,
				AqMessage *m, Datum *values, bool *nulls)
{
	heap_deform_tuple(tuple, desc, values, nulls);
	m->ordinal = DatumGetInt64(values[MSG_ORDINAL]);
	m->id = aq_message_id(queue->shard_key, stream->number, m->ordinal);
	m->priority = stream->priority;
	m->shard = stream->shard;
	m->session_id = DatumGetInt64(values[MSG_SESSION]);
	m->enqueue_time = DatumGetTimestampTz(values[MSG_ENQUEUE_TIME]);
	m->payload = values[MSG_PAYLOAD];
	m->payload_null = nulls[MSG_PAYLOAD];
	m->correlation = varlena_or_null(values, nulls, MSG_CORRELATION);
	m->properties = varlena_or_null(values, nulls, MSG_PROPERTIES);
	m->sender = varlena_or_null(values, nulls, MSG_SENDER);
	m->exception_queue = varlena_or_null(values, nulls, MSG_EXCEPTION_QUEUE);
	m->ready_at = nulls[MSG_READY_AT] ? 0 : DatumGetTimestampTz(values[MSG_READY_AT]);
	m->expires_at = nulls[MSG_EXPIRES_AT] ? 0 : DatumGetTimestampTz(values[MSG_EXPIRES_AT]);
	m->original_id = nulls[MSG_ORIGINAL_ID] ? NULL : DatumGetUUIDP(values[MSG_ORIGINAL_ID]);
	m->attempts += nulls[MSG_ATTEMPTS] ? 0 : DatumGetInt16(values[MSG_ATTEMPTS]);
}

/* Fetch a message's row; the caller releases the buffer in the end. */
static void
fetch(Take *take, Relation rel, const Candidate *item, AqMessage *m, Datum *values, bool *nulls,
	  Buffer *buffer)
{
	HeapTupleData tuple;
	int64		ordinal = take->number * PARTITION_SLOTS + item->slot;

	tuple.t_self = item->tid;
	memset(m, 0, sizeof(AqMessage));
	m->attempts = item->attempts;
	m->position = take->options->position;
	if (aq_row_read(rel, &tuple, buffer))
		aq_message_read(take->queue, stream_at(take->partition->stream), &tuple, RelationGetDescr(rel), m, values, nulls);
	if (m->ordinal != ordinal)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("message %lld of queue \"%s\" is not in its table", (long long) ordinal,
						take->queue->name)));
	if (take->options->mode == AQ_MODE_REMOVE_NODATA)
	{
		m->payload = (Datum) 0;
		m->payload_null = true;
	}
}

static void
set_place(const Partition *partition, Candidate *item)
{
	Slot	   *slot = slot_at(frame_of(partition), item->slot);

	ItemPointerSet(&item->tid, slot->block, slot->offset);
}

/*
 * Hand the taken items out.  Their table was not locked when they were taken,
 * and may have been rewritten.
 */
static void
emit_items(Take *take)
{
	Relation	rel;
	Buffer		buffer = InvalidBuffer;

	take->taken += take->nitems;
	if (take->options->emit == NULL || take->nitems == 0)
		return;
	rel = aq_messages_open(take->partition, AccessShareLock);
	if (take->file != take->partition->file)
		for (uint32 i = 0; i < take->nitems; i++)
			set_place(take->partition, &take->items[i]);
	for (uint32 i = 0; i < take->nitems; i++)
	{
		AqMessage	m;
		Datum		values[MSG_COLUMNS];
		bool		nulls[MSG_COLUMNS];

		fetch(take, rel, &take->items[i], &m, values, nulls, &buffer);
		take->options->emit(take->options->emit_arg, &m);
	}
	ReleaseBuffer(buffer);
	table_close(rel, NoLock);
}

/* --- finding without a condition ------------------------------------------------------ */

/* May this transaction have it now? */
static bool
is_due(const Take *take, const Slot *slot)
{
	if ((slot->flags & SLOT_EXPIRES) && slot->expires_at <= take->now)
		return false;
	return take->snapshot == NULL || !XidInMVCCSnapshot(slot->xid, take->snapshot);
}

static void
set_item(Take *take, Partition *partition, Candidate *item, uint32 number, bool own)
{
	item->slot = number;
	item->own = own;
	item->attempts = aq_attempts_get(frame_of(partition), take->options->position, number);
	set_place(partition, item);
}

/*
 * Take up to max ready messages of the partition, in order.  *blocked is set
 * when the next one waits for its retry count.  Latch held.
 */
static uint32
take_ready(Take *take, Stream *stream, Partition *partition, FrameSub *sub, uint32 max,
		   bool peek, bool *blocked)
{
	Frame	   *frame = frame_of(partition);
	int			position = take->options->position;
	uint64_t   *ready = bitmap_of(sub->ready);
	int			retry = PARTITION_SLOTS;
	int			number = (int) sub->first - 1;
	bool		skipped = false;
	uint32		n = 0;

	if (sub->nretry > 0 && !take->ignore_retries)
		retry = aq_bitmap_next(bitmap_of(sub->retry), PARTITION_SLOTS, 0);
	while (n < max && sub->nready > 0 &&
		   (number = aq_bitmap_next(ready, PARTITION_SLOTS, number + 1)) >= 0)
	{
		if (number > retry)
			break;
		if (!is_due(take, slot_at(frame, number)))
		{
			skipped = true;
			continue;
		}
		if (!peek)
		{
			set_item(take, partition, &take->items[n], number, false);
			(void) aq_clear_ready(stream, partition, position, number);
			aq_note_take(partition, take->shm, position, take->options->mode, false, number);
			partition->inflight++;
			if (!skipped)
				sub->first = number + 1;
		}
		n++;
	}
	*blocked = n == 0 && retry < PARTITION_SLOTS;
	return n;
}

/*
 * Look for the next messages of a stream, and take them unless this is only a
 * peek.
 */
static Finding
find_in_stream(Take *take, Stream *stream, uint32 max, bool peek)
{
	int			position = take->options->position;
	Finding		finding = FOUND_NOTHING;
	bool		passed = true;	/* nothing before this partition */
	Partition  *partition;
	StreamSub  *ssub;

	/* a stream's and a frame's consumer, a bitmap of retries */
	aq_chunks_reserve(2);
	aq_note_take_reserve(take->shm, Min(max, TAKE_BATCH));
	aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_DEQUEUE_TAKE);
	ssub = aq_stream_sub_make(stream, position);
	partition = partition_at(ssub->hint ? ssub->hint : stream->head);
	while (partition != NULL)
	{
		FrameSub   *sub;
		bool		blocked = false;

		take->partition = partition;
		take->number = partition->number;
		if (partition->frame == 0)
		{
			finding = FOUND_UNLOADED;
			break;
		}
		sub = frame_sub(frame_of(partition), position);
		if (sub != NULL && (sub->nready > 0 || sub->nretry > 0))
		{
			if (sub->retry == 0)
				sub->retry = aq_chunk_take();
			partition->referenced = true;
			take->file = partition->file;
			take->nitems = take_ready(take, stream, partition, sub, Min(max, TAKE_BATCH),
									  peek, &blocked);
			if (take->nitems > 0 || blocked)
			{
				finding = blocked ? FOUND_RETRY : FOUND_ITEMS;
				break;
			}
			passed = false;		/* expired or invisible ones stay behind */
		}
		if (passed)
			ssub->hint = partition->next ? partition->next : partition->index;
		partition = partition_at(partition->next);
	}
	aq_latch_free(&stream->latch);
	return finding;
}

/* The worker is writing retry counts: wait until it has. */
static void
wait_for_retries(Take *take, Partition *partition)
{
	int64		deadline = aq_clock_us() + RETRY_PATIENCE;

	aq_jobs_require_worker();
	aq_queue_post_work(take->shm, AQ_WORK_RETRY);
	aq_jobs_post();
	aq_cond_prepare(&take->shm->changed);
	while (partition->nretry > 0 && partition->number == take->number)
	{
		if (aq_clock_us() > deadline)
		{
			take->ignore_retries = true;
			break;
		}
		aq_cond_sleep(&take->shm->changed, AQ_EVENT_RETRY_COUNT, take->queue->id, 0, 0,
					  RETRY_PATIENCE / 10);
	}
	aq_cond_cancel();
}

/* Take from a stream until it has no more, or max is reached. */
static void
take_from_stream(Take *take, Stream *stream)
{
	while (take->taken < take->options->max)
	{
		switch (find_in_stream(take, stream, take->options->max - take->taken, false))
		{
			case FOUND_NOTHING:
				return;
			case FOUND_ITEMS:
				aq_stat_add(AQ_STAT_CACHE_HITS, 1);
				aq_point("messages-taken");
				emit_items(take);
				break;
			case FOUND_UNLOADED:
				aq_stat_add(AQ_STAT_CACHE_MISSES, 1);
				aq_load_partition(take->shm, take->partition);
				take->loaded = true;
				break;
			case FOUND_RETRY:
				wait_for_retries(take, take->partition);
				break;
		}
	}
}

/* --- finding with a condition, and browsing ------------------------------------------------- */

/* May the transaction take this slot, which it has enqueued itself? */
static bool
own_candidate(Take *take, const PutNote *note, uint32 number)
{
	Bitmapset  *targets = note->targets ? note->targets[number - note->first] : note->shared_targets;

	if (targets != NULL && !bms_is_member(take->options->position, targets))
		return false;
	for (uint32 i = 0; i < note->nown_takes; i++)
		if (note->own_takes[i] == (number << 16 | (uint32) take->options->position))
			return false;
	return true;
}

/* The first own slot at or after from, and its note. */
static int
next_own(Take *take, Partition *partition, uint32 from, PutNote **which)
{
	PutNote   **notes;
	int			n = aq_notes_puts(&notes);
	int			best = AQ_BITMAP_NONE;

	for (int i = 0; i < n; i++)
	{
		PutNote    *note = notes[i];

		if (note->partition != partition || !note->inserted || note->ready_at != 0)
			continue;
		for (uint32 s = Max(from, note->first); s < note->first + note->count; s++)
			if (own_candidate(take, note, s))
			{
				if (best < 0 || (int) s < best)
				{
					best = s;
					*which = note;
				}
				break;
			}
	}
	return best;
}

/*
 * The first slot at or after from that is ready; for a purge and by message
 * id, also one that waits.
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
 * The partition is not what it was.  Was only its frame evicted?  Then it is
 * loaded again, and true returned.  The caller has locked its table, so that it
 * cannot be used for something else.
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
		aq_load_partition(take->shm, partition);
	return evicted;
}

/*
 * Collect slots from *cursor on that could be taken; false when the partition
 * is not what it was.
 */
static bool
collect_resident(Take *take, Stream *stream, uint32 *cursor)
{
	Partition  *partition = take->partition;
	int			position = take->options->position;
	FrameSub   *sub;

	take->nitems = 0;
	aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_DEQUEUE_BROWSE);
	if (partition->stream != stream->index || partition->number != take->number ||
		partition->frame == 0)
	{
		aq_latch_free(&stream->latch);
		return false;
	}
	partition->referenced = true;
	sub = frame_sub(frame_of(partition), position);
	while (take->nitems < LOOK_BATCH)
	{
		PutNote    *note;
		int			ready = next_of_others(take, sub, *cursor);
		int			own = take->own_puts ? next_own(take, partition, *cursor, &note)
			: AQ_BITMAP_NONE;
		bool		is_own = own >= 0 && (ready < 0 || own < ready);
		int			number = is_own ? own : ready;

		if (number < 0)
		{
			*cursor = PARTITION_SLOTS;
			break;
		}
		*cursor = number + 1;
		if (is_own || is_due(take, slot_at(frame_of(partition), number)))
			set_item(take, partition, &take->items[take->nitems++], number, is_own);
	}
	aq_latch_free(&stream->latch);
	return true;
}

/* The same; false only when the partition is gone. */
static bool
collect(Take *take, Stream *stream, uint32 *cursor)
{
	while (!collect_resident(take, stream, cursor))
		if (!load_again(take, stream))
			return false;
	return true;
}

/* The transaction takes a message that it has enqueued itself. */
static bool
take_own(Take *take, uint32 number)
{
	PutNote    *note;
	int			position = take->options->position;

	if (next_own(take, take->partition, number, &note) != (int) number)
		return false;
	if (note->nown_takes == note->own_takes_size)
	{
		uint32		size = Max(16, 2 * note->own_takes_size);

		note->own_takes = note->own_takes ? repalloc(note->own_takes, size * sizeof(uint32))
			: MemoryContextAlloc(aq_notes_context(), size * sizeof(uint32));
		note->own_takes_size = size;
	}
	aq_note_take_reserve(take->shm, 1);
	note->own_takes[note->nown_takes++] = number << 16 | (uint32) position;
	aq_note_take(take->partition, take->shm, position, take->options->mode, true, number);
	return true;
}

/* Take one particular ready slot of a resident partition. */
static bool
take_resident(Take *take, Stream *stream, uint32 number)
{
	Partition  *partition = take->partition;
	bool		taken = false;

	aq_chunks_reserve(1);
	aq_note_take_reserve(take->shm, 1);
	aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_DEQUEUE_TAKE);
	if (partition->stream == stream->index && partition->number == take->number &&
		partition->frame != 0)
		taken = aq_clear_ready(stream, partition, take->options->position, number) ||
			((take->options->id != NULL || take->options->mode == AQ_MODE_PURGE) &&
			 aq_clear_waiting(partition, take->options->position, number));
	if (taken)
	{
		FrameSub   *sub = frame_sub(frame_of(partition), take->options->position);

		if (sub->retry == 0)
			sub->retry = aq_chunk_take();
		aq_note_take(partition, take->shm, take->options->position, take->options->mode,
					 false, number);
		partition->inflight++;
	}
	aq_latch_free(&stream->latch);
	return taken;
}

/* The same; false when somebody was faster. */
static bool
take_slot(Take *take, Stream *stream, uint32 number)
{
	while (!take_resident(take, stream, number))
		if (!load_again(take, stream))
			return false;
	return true;
}

/* Look at one candidate: does it match, and can it be had? */
static void
try_item(Take *take, Stream *stream, Relation rel, const Candidate *item)
{
	const AqTakeOptions *options = take->options;
	AqMessage	m;
	Datum		values[MSG_COLUMNS];
	bool		nulls[MSG_COLUMNS];
	Buffer		buffer = InvalidBuffer;

	fetch(take, rel, item, &m, values, nulls, &buffer);
	if ((options->filter == NULL || options->filter(options->filter_arg, &m)) &&
		(options->mode == AQ_MODE_BROWSE ||
		 (item->own ? take_own(take, item->slot) : take_slot(take, stream, item->slot))))
	{
		if (options->emit)
			options->emit(options->emit_arg, &m);
		if (options->mode == AQ_MODE_BROWSE)
			pg_atomic_fetch_add_u64(&take->partition->browsed, 1);
		take->taken++;
	}
	ReleaseBuffer(buffer);
}

/* What was rolled back just now is at its place again before we look. */
static void
await_retries(Take *take, Stream *stream)
{
	Partition  *partition = take->partition;
	FrameSub   *sub = NULL;
	bool		wait;

	if (take->ignore_retries || partition->nretry == 0)
		return;
	aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_DEQUEUE_BROWSE);
	if (partition->stream == stream->index && partition->number == take->number &&
		partition->frame != 0)
		sub = frame_sub(frame_of(partition), take->options->position);
	wait = sub != NULL && sub->nretry > 0;
	aq_latch_free(&stream->latch);
	if (wait)
		wait_for_retries(take, partition);
}

/* All candidates of one partition, from a slot on. */
static void
look_through(Take *take, Stream *stream, uint32 cursor)
{
	Relation	rel;

	await_retries(take, stream);
	rel = aq_messages_open(take->partition, AccessShareLock);

	/* the lock keeps the table from being truncated; collect() looks again */
	while (cursor < PARTITION_SLOTS && take->taken < take->options->max)
	{
		if (!collect(take, stream, &cursor))
			break;
		aq_point("candidates-found");
		for (uint32 i = 0; i < take->nitems && take->taken < take->options->max; i++)
		{
			CHECK_FOR_INTERRUPTS();
			try_item(take, stream, rel, &take->items[i]);
		}
	}
	table_close(rel, NoLock);
}

/* The partition with the lowest number from this one on, as take->partition. */
static bool
partition_from(Take *take, Stream *stream, int64 number)
{
	Partition  *partition;
	bool		unloaded = false;

	for (;;)
	{
		aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_DEQUEUE_BROWSE);
		partition = partition_at(stream->head);
		while (partition != NULL && partition->number < number)
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
		aq_load_partition(take->shm, partition);
	}
}

static int64
first_number(Take *take, Stream *stream)
{
	StreamSub  *ssub;
	int64		number = 0;

	aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_DEQUEUE_BROWSE);
	ssub = stream_sub(stream, take->options->position);
	if (ssub != NULL && ssub->hint != 0 && !take->own_puts && take->options->mode != AQ_MODE_PURGE)
		number = partition_at(ssub->hint)->number;
	aq_latch_free(&stream->latch);
	return number;
}

static void
look_through_stream(Take *take, Stream *stream, int64 after)
{
	int64		number = after >= 0 ? (after + 1) / PARTITION_SLOTS : first_number(take, stream);
	uint32		cursor = after >= 0 ? (after + 1) % PARTITION_SLOTS : 0;

	while (take->taken < take->options->max && partition_from(take, stream, number))
	{
		if (take->number != number)
			cursor = after >= 0 && take->number == (after + 1) / PARTITION_SLOTS ? cursor : 0;
		number = take->number;
		look_through(take, stream, cursor);
		cursor = 0;
		number++;
	}
}

/* --- by message id ------------------------------------------------------------------------------ */

/* A message that this transaction keeps locked: consume it, or show it again. */
static bool
take_locked(Take *take, uint32 number)
{
	uint32		at;
	TakeNote   *note = aq_note_find_locked(take->partition, take->options->position, number, &at);

	if (note == NULL)
		return false;
	if (take->options->mode == AQ_MODE_REMOVE || take->options->mode == AQ_MODE_REMOVE_NODATA)
	{
		bool		own = note->own;

		aq_note_take_reserve(take->shm, 1);
		note->slots[at] = note->slots[--note->count];
		aq_note_take(take->partition, take->shm, take->options->position, take->options->mode,
					 own, number);
	}
	return true;
}

static void
take_by_id(Take *take)
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
	await_retries(take, stream);
	rel = aq_messages_open(take->partition, AccessShareLock);
	if (take_locked(take, number))
	{
		/* it is this transaction's, so the partition stays as it is */
		set_item(take, take->partition, &take->items[0], number, false);
		take->nitems = 1;
		emit_items(take);
	}
	else
	{
		cursor = number;
		if (collect(take, stream, &cursor) && take->nitems > 0 && take->items[0].slot == number)
			try_item(take, stream, rel, &take->items[0]);
	}
	table_close(rel, NoLock);
}

/* --- the queue ------------------------------------------------------------------------------------- */

static bool
has_own_puts(AqQueueShm *shm)
{
	PutNote   **notes;
	int			n = aq_notes_puts(&notes);

	for (int i = 0; i < n; i++)
		if (notes[i]->shm == shm)
			return true;
	return false;
}

/*
 * Streams of equal priority take turns in being looked at first, so that no
 * shard starves; sessions begin with different ones.  Who had to load a
 * partition stays with its stream for as many messages as it may hold: with a
 * backlog beyond the cache each change of stream is likely to load one.
 */
static void
take_from_group(Take *take, Stream *first, int n)
{
	static uint32 calls,
				stay;			/* messages until the next turn */
	uint32		before = take->taken;
	int			start = (aq_session_number() + calls / TURN) % n;
	Stream	   *stream = first;

	take->loaded = false;
	if (n > 1 && stay == 0)
		calls++;
	for (int i = 0; i < start; i++)
		stream = stream_at(stream->next);
	for (int i = 0; i < n && take->taken < take->options->max; i++)
	{
		if (take->options->filter != NULL || take->own_puts)
			look_through_stream(take, stream, -1);
		else
		{
			take_from_stream(take, stream);
			if (take->options->mode == AQ_MODE_PURGE)
				look_through_stream(take, stream, -1);	/* what waits */
		}
		stream = start + i + 1 == n ? first : stream_at(stream->next);
	}
	stay = take->loaded ? PARTITION_SLOTS : stay - Min(stay, Max(take->taken - before, 1));
}

static void
browse(Take *take)
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
	for (; stream != NULL && take->taken < take->options->max; stream = stream_at(stream->next))
	{
		look_through_stream(take, stream, after);
		after = -1;
	}
}

static void
init_take(Take *take, AqQueue *queue, const AqTakeOptions *options)
{
	memset(take, 0, sizeof(Take));
	take->queue = queue;
	take->shm = queue->shm;
	take->options = options;
	take->now = GetCurrentTimestamp();
	if (aq_take_uses_snapshot())
		take->snapshot = GetTransactionSnapshot();
	take->own_puts = has_own_puts(queue->shm);
	take->ignore_retries = aq_jobs_in_worker();	/* it cannot wait for itself */
}

uint32
aq_take(AqQueue *queue, const AqTakeOptions *options)
{
	Take		take;
	Stream	   *stream;

	init_take(&take, queue, options);
	take.items = palloc(Max(LOOK_BATCH, Min(options->max, TAKE_BATCH)) * sizeof(Candidate));
	if (options->id != NULL)
		take_by_id(&take);
	else if (options->mode == AQ_MODE_BROWSE)
		browse(&take);
	else
	{
		stream = stream_at(shard_queue(queue->shm)->streams);
		while (stream != NULL && take.taken < options->max)
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
	return take.taken;
}

/* Is there one that the transaction has enqueued itself? */
static bool
own_ready(Take *take)
{
	PutNote   **notes;
	PutNote    *which;
	int			n = aq_notes_puts(&notes);

	for (int i = 0; i < n; i++)
		if (notes[i]->shm == take->shm &&
			next_own(take, notes[i]->partition, notes[i]->first, &which) >= 0)
			return true;
	return false;
}

/*
 * Is there something that take() could have now?  For a statement outside of a
 * transaction block it is the next one that will take it, with a snapshot of
 * its own.
 */
bool
aq_ready(AqQueue *queue, int position)
{
	AqTakeOptions options = {.position = position,.max = 1,.mode = AQ_MODE_REMOVE};
	Take		take;

	init_take(&take, queue, &options);
	if (!IsTransactionBlock())
		take.snapshot = NULL;
	if (take.own_puts && own_ready(&take))
		return true;
	for (Stream *stream = stream_at(shard_queue(queue->shm)->streams); stream != NULL;
		 stream = stream_at(stream->next))
	{
		Finding		finding;

		while ((finding = find_in_stream(&take, stream, 1, true)) == FOUND_UNLOADED)
			aq_load_partition(take.shm, take.partition);
		if (finding == FOUND_ITEMS)
			return true;
		if (finding == FOUND_RETRY)
		{
			wait_for_retries(&take, take.partition);
			stream = stream_at(shard_queue(queue->shm)->streams);
			if (find_in_stream(&take, stream, 1, true) == FOUND_ITEMS)
				return true;
		}
	}
	return false;
}
