/*-------------------------------------------------------------------------
 *
 * measure.c
 *	  For aq.metrics(): the numbers of a consumer's ready and delayed messages,
 *	  and the age of the first ready one.
 *
 * Resident partitions have counts in their frames.  For the others, the stream
 * has a count for each consumer, and the partition has the number of waiting
 * messages and the TID of its first ready one at the time of the eviction.
 * That number is for all consumers together: if delayed messages of a topic
 * were evicted, the partition's tables are read.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "shard/checks/checks_private.h"
#include "shard/tables/contents.h"

#include "access/heapam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/*
 * --- uncounted partitions after a restart
 * -------------------------------------------------------
 */

static bool
is_uncounted(const Partition *partition)
{
	return !partition->counted && partition->state == PARTITION_CLOSED;
}

static bool
has_any(AqQueueShm *shm, bool (*wanted) (const Partition *partition))
{
	for (Stream *stream = stream_at(shard_queue(shm)->streams); stream != NULL; stream = stream_at(stream->next))
		if (aq_stream_partition_from(stream, 0, wanted) != NULL)
			return true;
	return false;
}

/*
 * Counts the partitions, like the worker; returns false if a user holds
 * tables.
 */
static bool
count_all(AqQueueShm *shm)
{
	bool		complete = true;

	for (Stream *stream = stream_at(shard_queue(shm)->streams); stream != NULL; stream = stream_at(stream->next))
	{
		Partition  *partition;
		int64		from = 0;

		while ((partition = aq_stream_partition_from(stream, from, is_uncounted)) != NULL)
		{
			Partition	copy = *partition;

			CHECK_FOR_INTERRUPTS();
			from = copy.number + 1;
			if (aq_heap_try_tables(&copy))
			{
				aq_load_count(shm, partition);
				aq_heap_leave_tables(&copy);
			}
			else
				complete = false;
		}
	}
	return complete;
}

/* --- topics' messages that wait, or are leased, and are not resident -------------------------------- */

/* Counts of one partition, by consumer. */
typedef struct Evicted
{
	struct Evicted *next;
	uint32		index;
	int64		number;
	uint32		waiting[AQ_MAX_CONSUMERS];
	uint32		leased[AQ_MAX_CONSUMERS];
} Evicted;

static bool
has_waiting_away(const Partition *partition)
{
	return partition->frame == 0 && partition->counted && partition->away_waiting + partition->away_leased > 0;
}

static Evicted *
read_evicted(AqQueueShm *shm, const Partition *partition)
{
	MemoryContext outer = CurrentMemoryContext;
	MemoryContext context;
	Evicted    *evicted;
	Contents   *contents;
	int			head;

	if (!aq_heap_try_tables(partition))
		return NULL;
	evicted = palloc0(sizeof(Evicted));
	context = AllocSetContextCreate(outer, "pgaq measure", ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(context);
	evicted->index = partition->index;
	evicted->number = partition->number;
	contents = aq_contents_read(shm, partition_at(partition->index));
	for (int position = 0; position < AQ_MAX_CONSUMERS; position++)
		evicted->waiting[position] = aq_contents_waiting(contents, position, &head, &evicted->leased[position]);
	MemoryContextSwitchTo(outer);
	MemoryContextDelete(context);
	aq_heap_leave_tables(partition);
	return evicted;
}

/* Reads the stream's partitions that were evicted with waiting messages. */
static Evicted *
read_all_evicted(AqQueueShm *shm, Stream *stream)
{
	Evicted    *list = NULL;
	Partition  *partition;
	int64		from = 0;

	while ((partition = aq_stream_partition_from(stream, from, has_waiting_away)) != NULL)
	{
		Partition	copy = *partition;
		Evicted    *evicted = read_evicted(shm, &copy);

		CHECK_FOR_INTERRUPTS();
		from = copy.number + 1;
		if (evicted == NULL)
			continue;
		evicted->next = list;
		list = evicted;
	}
	return list;
}

/* Can the messages be counted without reading tables? */
static bool
is_in_memory(AqQueueShm *shm)
{
	return !has_any(shm, is_uncounted) && (shm->single || !has_any(shm, has_waiting_away));
}

/*
 * The consumer's number of waiting messages in a partition that is not
 * resident; *leased: the number of leased ones.
 */
static uint32
waiting_away(const AqQueueShm *shm, const Partition *partition, const Evicted *list, int position, uint32 *leased)
{
	*leased = partition->away_leased;
	if (shm->single)
		return partition->away_waiting;
	for (; list != NULL; list = list->next)
		if (list->index == partition->index && list->number == partition->number)
		{
			*leased = Min(list->leased[position], partition->away_leased);
			return Min(list->waiting[position], partition->away_waiting);
		}
	*leased = 0;
	return 0;
}

/* --- counting ------------------------------------------------------------------------- */

/* The location of the row of a consumer's first ready message. */
typedef struct Head
{
	Oid			messages;		/* 0: no message is ready */
	uint32		file;
	BlockNumber block;
	OffsetNumber offset;
	int64		ordinal;
} Head;

static void
set_head(Head *head, const Partition *partition, uint32 number, BlockNumber block, OffsetNumber offset)
{
	head->messages = partition->messages;
	head->file = partition->file;
	head->block = block;
	head->offset = offset;
	head->ordinal = ordinal_of(partition, number);
}

/*
 * Finds the consumer's first ready message in a partition.  The caller holds
 * the latch.
 */
static void
find_head(Head *head, const Partition *partition, const FrameSub *sub, bool away)
{
	if (sub != NULL && sub->nready > 0)
	{
		int			number = aq_bitmap_next(bitmap_of(sub->ready), PARTITION_SLOTS, 0);
		const Slot *slot = slot_at(frame_of(partition), number);

		set_head(head, partition, number, slot->block, slot->offset);
	}
	else if (away && partition->away_head != NO_SLOT)
		set_head(head, partition, partition->away_head, partition->away_block, partition->away_offset);
}

/*
 * Counts the consumer's messages in the stream, and finds its first ready one.
 */
static void
count_stream(AqQueueShm *shm, Stream *stream, const Evicted *evicted, AqMeasure *measure, Head *head)
{
	int			position = measure->position;
	StreamSub  *ssub;

	*head = (Head) {.messages = InvalidOid};
	aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_VIEW);
	ssub = stream_sub(stream, position);
	if (ssub != NULL)
	{
		int64		away = ssub->away;

		for (uint32 i = stream->head; i != 0; i = partition_at(i)->next)
		{
			const Partition *partition = partition_at(i);
			const FrameSub *sub = partition->frame != 0 ? frame_sub(frame_of(partition), position) : NULL;

			if (sub != NULL)
			{
				measure->delayed += sub->nwaiting;
				measure->leased += sub_leased(sub);
			}
			else if (partition->frame == 0 && ssub->away > 0)
			{
				uint32		leased;
				int64		waiting = Min(away, waiting_away(shm, partition, evicted, position, &leased));

				measure->delayed += waiting;
				away -= waiting;
				leased = Min(away, leased);
				measure->leased += leased;
				away -= leased;
			}
			if (head->messages == InvalidOid)
				find_head(head, partition, sub, partition->frame == 0 && ssub->away > 0);
		}
		measure->ready += ssub->ready + away;
	}
	aq_latch_free(&stream->latch);
}

/*
 * --- age of the first ready message
 * ------------------------------------------------------------------------
 */

/*
 * Searches the table for the row with this ordinal, after the table was
 * rewritten.  Returns a copy, or NULL.
 */
static HeapTuple
find_row(Relation rel, int64 ordinal)
{
	TableScanDesc scan = aq_table_beginscan(rel, SnapshotAny);
	HeapTuple	tuple,
				found = NULL;
	bool		isnull;

	while (found == NULL && (tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		if (DatumGetInt64(heap_getattr(tuple, MSG_ORDINAL + 1, RelationGetDescr(rel), &isnull)) == ordinal)
			found = heap_copytuple(tuple);
	}
	table_endscan(scan);
	return found;
}

/*
 * The time at which the row's message became ready; 0: it is another message's
 * row.
 */
static TimestampTz
row_time(HeapTuple tuple, TupleDesc desc, int64 ordinal)
{
	Datum		values[MSG_COLUMNS];
	bool		nulls[MSG_COLUMNS];
	TimestampTz time;

	aq_rows_read(tuple, desc, MSG_COLUMNS, values, nulls);
	if (DatumGetInt64(values[MSG_ORDINAL]) != ordinal)
		return 0;
	time = DatumGetTimestampTz(values[MSG_ENQUEUE_TIME]);
	return nulls[MSG_READY_AT] ? time : Max(time, DatumGetTimestampTz(values[MSG_READY_AT]));
}

static TimestampTz
read_head(Relation rel, const Head *head, bool quick)
{
	HeapTupleData tuple;
	HeapTuple	found;
	Buffer		buffer = InvalidBuffer;
	TimestampTz time = 0;

	if (aq_relation_file(rel) != head->file)
	{
		found = quick ? NULL : find_row(rel, head->ordinal);
		return found != NULL ? row_time(found, RelationGetDescr(rel), head->ordinal) : 0;
	}
	if (head->block >= RelationGetNumberOfBlocks(rel))
		return 0;				/* truncated meanwhile */
	ItemPointerSet(&tuple.t_self, head->block, head->offset);
	if (aq_heap_read_row(rel, &tuple, &buffer))
		time = row_time(&tuple, RelationGetDescr(rel), head->ordinal);
	if (BufferIsValid(buffer))
		ReleaseBuffer(buffer);
	return time;
}

/*
 * Returns 0 if the message was dequeued meanwhile, or a user has locked the
 * table.
 */
static TimestampTz
head_time(const Head *head, bool quick)
{
	TimestampTz time = 0;
	Relation	rel;

	if (!ConditionalLockRelationOid(head->messages, AccessShareLock))
		return 0;
	rel = try_table_open(head->messages, NoLock);
	if (rel == NULL)
	{
		UnlockRelationOid(head->messages, AccessShareLock);
		return 0;
	}
	time = read_head(rel, head, quick);
	table_close(rel, AccessShareLock);
	return time;
}

/* --- a queue --------------------------------------------------------------------------- */

void
aq_measure(AqQueue *queue, AqMeasure *measures, int n, bool quick)
{
	AqQueueShm *shm = queue->shm;
	bool		complete = quick ? is_in_memory(shm) : count_all(shm);

	for (int i = 0; i < n; i++)
		measures[i].known &= complete;
	for (Stream *stream = stream_at(shard_queue(shm)->streams); stream != NULL; stream = stream_at(stream->next))
	{
		Evicted    *evicted = shm->single || quick ? NULL : read_all_evicted(shm, stream);

		for (int i = 0; i < n; i++)
		{
			Head		head;
			TimestampTz time;

			CHECK_FOR_INTERRUPTS();
			count_stream(shm, stream, evicted, &measures[i], &head);
			if (head.messages == InvalidOid)
				continue;
			time = head_time(&head, quick);
			if (time != 0 && (measures[i].oldest == 0 || time < measures[i].oldest))
				measures[i].oldest = time;
		}
	}
}
