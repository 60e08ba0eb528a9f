/*-------------------------------------------------------------------------
 *
 * foreign.c
 *	  Messages that another node has of this one, and messages that this node
 *	  holds of another one: for part "node", whose NODES.md has the protocol.
 *
 * A message that another node has is leased, with a receipt that says so
 * (AQ_RECEIPT_NODE), and without an end.
 *
 * A message of another node is an ordinary one, in a shard of its own kind, with
 * one consumer more: its origin.  When the consumer has finished with it,
 * whatever the reason, the origin is the last one.  Then it is reported there, and
 * the origin has finished with it, too.  So what is to be reported is in the
 * tables, and a partition is not truncated before.
 *
 * The functions run in the link worker, or in sessions of other nodes.  They do not
 * wait for locks that users have.  Only the commit waits for the lock of the log, in
 * the link worker for a second at most.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/messages/messages_private.h"

#include "access/table.h"
#include "access/xlog.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

/* messages whose rows are read together */
#define READ_BATCH 512

/* Calls visit for each partition of the shard, resident or not, until it returns false.  Not under the latch. */
static bool
each_partition(AqQueue *queue, int shard, bool (*visit) (AqQueue *queue, Stream *stream, Partition *partition, void *arg), void *arg)
{
	for (Stream *stream = stream_at(shard_queue(queue->shm)->streams); stream != NULL; stream = stream_at(stream->next))
	{
		int64		from = 0;

		while (stream->shard == shard)
		{
			Partition  *partition;
			int64		number = 0;

			CHECK_FOR_INTERRUPTS();
			aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_PARTITION_RECLAIM);
			partition = aq_stream_first_from(stream, from);
			if (partition != NULL)
				number = partition->number;
			aq_latch_free(&stream->latch);
			if (partition == NULL)
				break;
			if (!visit(queue, stream, partition, arg))
				return false;
			from = number + 1;
		}
	}
	return true;
}

/* Takes the latch, with the partition resident.  False: it is no longer in the stream; the latch is free. */
static bool
latch_resident(AqQueue *queue, Stream *stream, Partition *partition, int64 number)
{
	for (;;)
	{
		aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_LEASE_SETTLE);
		if (partition->stream != stream->index || partition->number != number || partition->state == PARTITION_DONE)
			break;
		if (partition->frame != 0)
			return true;
		/* nothing in it is open, so there is nothing to find */
		if (partition->counted && partition->open == 0)
			break;
		aq_latch_free(&stream->latch);
		aq_load_partition(queue->shm, partition);
	}
	aq_latch_free(&stream->latch);
	return false;
}

/* --- the origin: what another node has ---------------------------------------------------- */

typedef struct Lent
{
	int			position;
	pg_uuid_t  *ids;			/* NULL: only count */
	uint32		n;
	uint32		size;
} Lent;

/* Does another node have the message?  Also true while a running transaction ends that lease. */
static bool
has_lease_of_node(const FrameSub *sub, uint32 number)
{
	const Lease *lease = lease_at(sub, number);

	return lease != NULL && lease->receipt > 0 && (lease->receipt & AQ_RECEIPT_NODE) != 0;
}

static bool
add_lent(AqQueue *queue, Stream *stream, Partition *partition, void *arg)
{
	Lent	   *lent = arg;
	int64		number = partition->number;
	const FrameSub *sub;

	/* room first: nothing is allocated under the latch */
	if (lent->n + PARTITION_SLOTS > lent->size)
	{
		lent->size = lent->n + 2 * PARTITION_SLOTS;
		lent->ids = lent->ids == NULL ? palloc(lent->size * sizeof(pg_uuid_t)) : repalloc(lent->ids, lent->size * sizeof(pg_uuid_t));
	}
	if (!latch_resident(queue, stream, partition, number))
		return true;
	sub = frame_sub(frame_of(partition), lent->position);
	for (uint32 slot = 0; slot < partition->reserved && sub_more(sub) != NULL; slot++)
		if (has_lease_of_node(sub, slot))
			lent->ids[lent->n++] = aq_message_id(queue->shard_key, stream->number, ordinal_of(partition, slot));
	aq_latch_free(&stream->latch);
	return true;
}

static uint32
lent_ids(AqQueue *queue, int shard, int position, pg_uuid_t **ids)
{
	Lent		lent = {.position = position};

	(void) each_partition(queue, shard, add_lent, &lent);
	aq_chunks_trim();
	*ids = lent.ids;
	return lent.n;
}

/* Counts the leases of other nodes, together with those of sessions, which are few in comparison. */
static bool
count_leased(AqQueue *queue, Stream *stream, Partition *partition, void *arg)
{
	Lent	   *lent = arg;
	int64		number = partition->number;

	aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_LEASE_SETTLE);
	if (partition->stream == stream->index && partition->number == number)
		lent->n += partition->frame == 0 ? partition->away_leased : sub_leased(frame_sub(frame_of(partition), lent->position));
	aq_latch_free(&stream->latch);
	return true;
}

static uint32
count_lent(AqQueue *queue, int shard, int position)
{
	Lent		lent = {.position = position};

	(void) each_partition(queue, shard, count_leased, &lent);
	return lent.n;
}

/* Without the latch: a message that comes at the same time is news. */
static uint32
count_ready(AqQueue *queue, int shard, int position)
{
	int64		n = 0;

	for (Stream *stream = stream_at(shard_queue(queue->shm)->streams); stream != NULL; stream = stream_at(stream->next))
	{
		const StreamSub *ssub;

		if (stream->shard != shard || aq_slot_stream_is_empty(stream, position))
			continue;
		ssub = stream_sub(stream, position);
		n += ssub != NULL ? ssub->ready + ssub->away : 0;
		/* not read since the server's start */
		for (const Partition *partition = partition_at(stream->head); partition != NULL; partition = partition_at(partition->next))
			if (!partition->counted)
				n++;
	}
	return (uint32) Min(n, PG_INT32_MAX);
}

/* --- the holder: messages of another node --------------------------------------------------- */

/* Slots of a partition, whose rows are then read. */
typedef struct Slots
{
	int64		number;
	uint32		file;
	uint32		n;
	uint16		slots[READ_BATCH];
	ItemPointerData tids[READ_BATCH];
} Slots;

/* Has only the origin the message now?  Latch held. */
static bool
is_finished(const Partition *partition, const FrameSub *origin, uint32 slot)
{
	return aq_bitmap_test(bitmap_of(origin->ready), slot) && slot_at(frame_of(partition), slot)->open == 1;
}

/*
 * Collects slots from *cursor on: those that were finished with, or all that the
 * origin still has.  Returns whether the partition is there.
 */
static bool
collect(AqQueue *queue, Stream *stream, Partition *partition, bool only_finished, uint32 *cursor, Slots *slots)
{
	const FrameSub *origin;
	int			slot;

	slots->n = 0;
	if (!latch_resident(queue, stream, partition, slots->number))
		return false;
	slots->file = partition->file;
	origin = frame_sub(frame_of(partition), AQ_ORIGIN_POSITION);
	while (origin != NULL && origin->nready > 0 && slots->n < READ_BATCH &&
		   (slot = aq_bitmap_next(bitmap_of(origin->ready), PARTITION_SLOTS, *cursor)) >= 0)
	{
		const Slot *s = slot_at(frame_of(partition), slot);

		*cursor = slot + 1;
		if (only_finished && !is_finished(partition, origin, slot))
			continue;
		slots->slots[slots->n] = slot;
		ItemPointerSet(&slots->tids[slots->n], s->block, s->offset);
		slots->n++;
	}
	aq_latch_free(&stream->latch);
	return true;
}

/* The ids of the messages at their origin, in their rows.  False: a user has locked the table, or the slots are outdated. */
static bool
read_origin_ids(Partition *partition, const Slots *slots, pg_uuid_t *ids)
{
	Relation	rel;
	Buffer		buffer = InvalidBuffer;
	bool		complete = true;

	if (!aq_heap_lock_for_worker(partition, AccessShareLock))
		return false;
	rel = aq_heap_open_messages(partition, AccessShareLock);
	complete = partition->file == slots->file && partition->number == slots->number;
	for (uint32 i = 0; i < slots->n && complete; i++)
	{
		HeapTupleData tuple;
		bool		isnull = true;
		Datum		id = 0;

		tuple.t_self = slots->tids[i];
		if (aq_heap_read_row(rel, &tuple, &buffer))
			id = heap_getattr(&tuple, MSG_ORIGINAL_ID + 1, RelationGetDescr(rel), &isnull);
		if (isnull)
			elog(ERROR, "a message of another node has no id there");
		ids[i] = *DatumGetUUIDP(id);
	}
	if (BufferIsValid(buffer))
		ReleaseBuffer(buffer);
	table_close(rel, NoLock);
	return complete;
}

typedef struct Finishing
{
	AqFinished *list;
	uint32		n;
	uint32		max;
	XLogRecPtr	flush;			/* the dequeues were committed before */
} Finishing;

static bool
add_finished(AqQueue *queue, Stream *stream, Partition *partition, void *arg)
{
	Finishing  *finishing = arg;
	Slots	   *slots = palloc(sizeof(Slots));
	pg_uuid_t  *ids = palloc(READ_BATCH * sizeof(pg_uuid_t));
	uint32		cursor = 0;

	slots->number = partition->number;
	while (finishing->n < finishing->max && collect(queue, stream, partition, true, &cursor, slots) && slots->n > 0)
	{
		finishing->flush = Max(finishing->flush, partition->last_lsn);
		if (!read_origin_ids(partition, slots, ids))
			break;
		for (uint32 i = 0; i < slots->n && finishing->n < finishing->max; i++)
			finishing->list[finishing->n++] = (AqFinished) {ids[i], slots->number, partition->index, slots->slots[i]};
	}
	pfree(slots);
	pfree(ids);
	return finishing->n < finishing->max;
}

/* A dequeue may have been committed asynchronously: what is reported must not be undone by a crash. */
static uint32
finished(AqQueue *queue, int shard, AqFinished *list, uint32 max)
{
	Finishing	finishing = {.list = list, .max = max};

	(void) each_partition(queue, shard, add_finished, &finishing);
	aq_chunks_trim();
	if (finishing.n > 0 && !XLogRecPtrIsInvalid(finishing.flush))
		XLogFlush(finishing.flush);
	return finishing.n;
}

/* Takes for the origin those of the slots that it has.  Note and lock first: the commit writes to the log. */
static bool
take_for_origin(AqQueue *queue, Partition *partition, int64 number, const uint16 *slots, uint32 n)
{
	Stream	   *stream = stream_at(partition->stream);

	if (stream == NULL || stream->queue != queue->shm->object->index)
		return true;
	if (!aq_heap_lock_for_worker(partition, RowExclusiveLock))
		return false;
	aq_notes_reserve_take(queue->shm, n);
	aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_DEQUEUE_TAKE);
	for (uint32 i = 0; i < n; i++)
	{
		FrameSub   *sub = partition->frame != 0 && partition->stream == stream->index && partition->number == number
			? frame_sub(frame_of(partition), AQ_ORIGIN_POSITION) : NULL;

		if (sub != NULL && aq_slot_take(stream, partition, AQ_ORIGIN_POSITION, slots[i]))
			aq_notes_add_take(partition, queue->shm, AQ_ORIGIN_POSITION, AQ_MODE_PURGE, false, 0, slots[i]);
	}
	aq_latch_free(&stream->latch);
	return true;
}

static bool
reported(AqQueue *queue, int shard, const AqFinished *list, uint32 n)
{
	uint16	   *slots = palloc(n * sizeof(uint16));
	bool		complete = true;

	for (uint32 i = 0, count; i < n && complete; i += count)
	{
		for (count = 0; i + count < n && list[i + count].partition == list[i].partition; count++)
			slots[count] = list[i + count].slot;
		complete = take_for_origin(queue, partition_at(list[i].partition), list[i].number, slots, count);
	}
	pfree(slots);
	aq_chunks_trim();
	return complete;
}

/* Is the message neither taken, in any way, nor waiting for a retry count?  Latch held. */
static bool
is_untouched(Frame *frame, uint32 slot)
{
	int			position = -1;

	while ((position = aq_frame_next_sub(frame, position)) >= 0)
	{
		const FrameSub *sub = frame_sub(frame, position);

		if (position == AQ_ORIGIN_POSITION)
			continue;
		if (aq_bitmap_test(bitmap_of(sub->ready), slot) ||
			(sub->nwaiting > 0 && aq_bitmap_test(bitmap_of(sub->waiting), slot)))
			return true;
	}
	return false;
}

static bool
partition_is_quiet(AqQueue *queue, Stream *stream, Partition *partition, void *arg)
{
	int64		number = partition->number;
	bool		quiet;
	const FrameSub *origin;
	int			slot = -1;

	if (!latch_resident(queue, stream, partition, number))
		return true;
	quiet = partition->pending == 0 && partition->ndoubt == 0 && partition->nretry == 0 && partition->nfailed == 0;
	origin = frame_sub(frame_of(partition), AQ_ORIGIN_POSITION);
	while (quiet && origin != NULL && origin->nready > 0 &&
		   (slot = aq_bitmap_next(bitmap_of(origin->ready), PARTITION_SLOTS, slot + 1)) >= 0)
		quiet = is_untouched(frame_of(partition), slot);
	aq_latch_free(&stream->latch);
	return quiet;
}

static bool
is_quiet(AqQueue *queue, int shard)
{
	bool		quiet = each_partition(queue, shard, partition_is_quiet, NULL);

	aq_chunks_trim();
	return quiet;
}

typedef struct Search
{
	const pg_uuid_t *ids;		/* sorted */
	uint32		n;
	bool	   *known;
	bool		complete;
} Search;

static int
compare_ids(const void *a, const void *b)
{
	return memcmp(a, b, UUID_LEN);
}

static bool
find_in_partition(AqQueue *queue, Stream *stream, Partition *partition, void *arg)
{
	Search	   *search = arg;
	Slots	   *slots = palloc(sizeof(Slots));
	pg_uuid_t  *ids = palloc(READ_BATCH * sizeof(pg_uuid_t));
	uint32		cursor = 0;

	slots->number = partition->number;
	while (search->complete && collect(queue, stream, partition, false, &cursor, slots) && slots->n > 0)
	{
		search->complete = read_origin_ids(partition, slots, ids);
		for (uint32 i = 0; i < slots->n && search->complete; i++)
		{
			const pg_uuid_t *found = bsearch(&ids[i], search->ids, search->n, sizeof(pg_uuid_t), compare_ids);

			if (found != NULL)
				search->known[found - search->ids] = true;
		}
	}
	pfree(slots);
	pfree(ids);
	return search->complete;
}

/* The ids must be sorted by their bytes. */
static void
find(AqQueue *queue, int shard, const pg_uuid_t *ids, uint32 n, bool *known)
{
	Search		search = {.ids = ids, .n = n, .known = known, .complete = true};

	(void) each_partition(queue, shard, find_in_partition, &search);
	aq_chunks_trim();
	if (!search.complete)
		ereport(ERROR,
				(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
				 errmsg("a table of queue \"%s\" is locked", queue->name)));
}

/* --- the end of a unit that was held --------------------------------------------------------- */

/*
 * Takes what is ready or waits for the next consumer from this position on, and
 * returns its position; -1: there is none.
 */
static int
take_all(AqQueue *queue, Stream *stream, Partition *partition, int64 number, int from)
{
	int			position;
	FrameSub   *sub;

	aq_notes_reserve_take(queue->shm, PARTITION_SLOTS);
	if (!latch_resident(queue, stream, partition, number))
		return -1;
	position = aq_frame_next_sub(frame_of(partition), from - 1);
	sub = position >= 0 ? frame_sub(frame_of(partition), position) : NULL;
	for (uint32 slot = 0; sub != NULL && slot < partition->reserved && sub->nready + sub->nwaiting > 0; slot++)
		if (aq_slot_take(stream, partition, position, slot) || aq_slot_take_waiting(partition, position, slot))
			aq_notes_add_take(partition, queue->shm, position, AQ_MODE_PURGE, false, 0, slot);
	aq_latch_free(&stream->latch);
	return position;
}

/* first: a position.  What a transaction has taken is left to it. */
static bool
take_partition(AqQueue *queue, Stream *stream, Partition *partition, void *first)
{
	int64		number = partition->number;
	int			position = *(int *) first;

	if (!aq_heap_lock_for_worker(partition, RowExclusiveLock))
		return false;
	while ((position = take_all(queue, stream, partition, number, position)) >= 0)
		position++;
	return true;
}

static bool
forget(AqQueue *queue, int shard)
{
	int			first = 0;
	bool		complete = each_partition(queue, shard, take_partition, &first);

	aq_chunks_trim();
	return complete;
}

/* Only the origin has finished with them: then they are messages like others. */
static bool
adopt(AqQueue *queue, int shard)
{
	int			first = AQ_ORIGIN_POSITION;
	bool		complete = each_partition(queue, shard, take_partition, &first);

	aq_chunks_trim();
	return complete;
}

/* May a new unit have the shard?  Its partitions are truncated later. */
static bool
is_empty(AqQueue *queue, int shard)
{
	for (Stream *stream = stream_at(shard_queue(queue->shm)->streams); stream != NULL; stream = stream_at(stream->next))
	{
		bool		open = false;

		if (stream->shard != shard)
			continue;
		aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_PARTITION_RECLAIM);
		for (const Partition *partition = partition_at(stream->head); partition != NULL && !open; partition = partition_at(partition->next))
			open = !partition->counted || partition->open > 0;
		aq_latch_free(&stream->latch);
		if (open)
			return false;
	}
	return true;
}

const AqStoreUnits aq_foreign_units = {
	.lent = lent_ids,
	.settle_lent = aq_lease_settle_lent,
	.count_lent = count_lent,
	.count_ready = count_ready,
	.finished = finished,
	.reported = reported,
	.is_quiet = is_quiet,
	.find = find,
	.forget = forget,
	.adopt = adopt,
	.is_empty = is_empty,
};
