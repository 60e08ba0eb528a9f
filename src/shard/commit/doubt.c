/*-------------------------------------------------------------------------
 *
 * doubt.c
 *	  Transactions in doubt: prepared transactions, which any session can
 *	  finish at any time.
 *
 * COMMIT PREPARED calls no callback of the transaction.  So a prepared
 * transaction has one entry here for each partition that it has used.  Its
 * slots stay in state DOUBT, messages that it took stay taken, and the
 * partitions keep their frames.  When the transaction has ended, its status
 * decides, and its log rows tell which messages it took.  After a restart,
 * loading finds the same in the tables.
 *
 * The session that finishes the transaction settles it, from the utility hook,
 * before its command returns.  The worker's sweep settles what that session
 * could not, because it ended between the commit and the hook, found a table
 * locked or no memory free, or because its commands do not pass the hook.
 *
 * A rolled back dequeue of a prepared transaction counts as an attempt, too.
 *
 * If a session has a prepared transaction in a stream, its later committed
 * messages in the stream wait for it (SLOT_FOLLOWER), so that they keep their
 * order.  Messages with a delay have no order.  If a prepared transaction has
 * taken a message, later messages of the same producer session are held back:
 * see held_back.c.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/commit/commit_private.h"

#include "access/heapam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/transam.h"
#include "access/xact.h"
#include "storage/bufmgr.h"
#include "storage/lock.h"
#include "storage/procarray.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

/*
 * the xid for which this session has made entries, which are removed if it
 * aborts
 */
static TransactionId preparing;

/* --- preparing ------------------------------------------------------------------------ */

static void
enter(Partition *partition, TransactionId xid, int64 session)
{
	Stream	   *stream = stream_at(partition->stream);

	if (aq_doubt_table_has(partition, xid))
		return;
	if (!aq_doubt_table_add(partition, xid, session, true))
		aq_doubt_table_refuse();
	aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_DOUBT_ADD);
	aq_slot_add_doubts(partition, 1);
	aq_latch_free(&stream->latch);
}

/* Allocates the bitmap in which the note's messages will be marked. */
static void
prepare_marks(const TakeNote *note)
{
	Stream	   *stream = stream_at(note->partition->stream);

	if (note->own || note->count == 0)
		return;
	aq_chunks_reserve(1);
	aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_DOUBT_ADD);
	aq_slot_make_bitmap(&frame_sub(frame_of(note->partition), note->position)->doubt);
	aq_latch_free(&stream->latch);
}

/* Before PREPARE: makes an entry for every partition.  May raise an error. */
void
aq_doubt_prepare(TransactionId xid)
{
	PutNote   **puts;
	TakeNote  **takes;
	int			nputs = aq_notes_puts(&puts);
	int			ntakes = aq_notes_takes(&takes);

	preparing = xid;
	for (int i = 0; i < nputs; i++)
		enter(puts[i]->partition, xid, aq_schema_session_identity());
	for (int i = 0; i < ntakes; i++)
	{
		enter(takes[i]->partition, xid, 0);
		prepare_marks(takes[i]);
	}
	aq_chunks_trim();
}

/* Called after PREPARE: the transaction's slots are now in doubt. */
void
aq_doubt_prepared(void)
{
	PutNote   **puts;
	TakeNote  **takes;
	int			nputs = aq_notes_puts(&puts);
	int			ntakes = aq_notes_takes(&takes);

	for (int i = 0; i < nputs; i++)
	{
		PutNote    *note = puts[i];
		Stream	   *stream = stream_at(note->partition->stream);

		aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_DOUBT_ADD);
		aq_frame_drop_timers(frame_of(note->partition), note->timers);
		aq_slot_prepare_puts(note->partition, note->first, note->count, preparing);
		aq_latch_free(&stream->latch);
	}
	for (int i = 0; i < ntakes; i++)
	{
		TakeNote   *note = takes[i];
		Stream	   *stream = stream_at(note->partition->stream);

		aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_DOUBT_ADD);
		for (uint32 j = 0; j < note->count && !note->own; j++)
			aq_slot_prepare(stream, note->partition, note->position, note->slots[j]);
		aq_latch_free(&stream->latch);
	}
	for (uint32 i = 0; i < aq_area->max_doubts; i++)
		if (aq_area_doubts[i].partition != 0 && aq_area_doubts[i].xid == preparing)
			aq_area_doubts[i].preparing = false;
	for (int i = 0; i < nputs; i++)
		aq_work_post(puts[i]->shm, AQ_WORK_DOUBT);
	for (int i = 0; i < ntakes; i++)
		aq_work_post(takes[i]->shm, AQ_WORK_DOUBT);
	preparing = InvalidTransactionId;
}

void
aq_doubt_cancel(void)
{
	TransactionId xid = preparing;

	if (!TransactionIdIsValid(xid))
		return;
	preparing = InvalidTransactionId;
	for (uint32 i = 0; i < aq_area->max_doubts; i++)
	{
		Partition  *partition = partition_at(aq_area_doubts[i].partition);
		Stream	   *stream;

		/* only this session changes entries of this xid */
		if (partition == NULL || aq_area_doubts[i].xid != xid)
			continue;
		stream = stream_at(partition->stream);
		aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_DOUBT_SWEEP);
		aq_doubt_table_remove(partition->index, xid);
		aq_slot_remove_doubt(partition);
		aq_settle_check_done(stream, partition);
		aq_latch_free(&stream->latch);
	}
}

/* --- resolving -------------------------------------------------------------------------- */

/* A slot in doubt, with data from its row. */
typedef struct DoubtSlot
{
	uint16		slot;
	ItemPointerData tid;
	Bitmapset  *targets;		/* NULL: single consumer */
	TimestampTz ready_at;
	TimestampTz expires_at;
} DoubtSlot;

typedef struct DoubtTake
{
	TransactionId xid;			/* the transaction that took it */
	char		kind;
	int			position;
	uint16		slot;
	ItemPointerData tid;		/* of the message */
	TimestampTz enqueued;		/* its enqueue time; 0: not known */
	TimestampTz until;			/* end of the lease or retry delay */
	int64		receipt;
	bool		alone;			/* see LogRow */
} DoubtTake;

static Bitmapset *
targets_set(bytea *targets)
{
	Bitmapset  *set = NULL;
	int			position = -1;

	while ((position = targets_next(targets, position)) >= 0)
		set = bms_add_member(set, position);
	return set;
}

static List *
slots_in_doubt(Stream *stream, Partition *partition, TransactionId xid)
{
	DoubtSlot  *found = palloc(PARTITION_SLOTS * sizeof(DoubtSlot));
	List	   *list = NIL;
	uint32		n = 0;

	aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_DOUBT_SWEEP);
	for (uint32 s = 0; s < PARTITION_SLOTS; s++)
	{
		Slot	   *slot;

		if (frame_of(partition)->segments[s / SEGMENT_SLOTS] == 0)
		{
			s |= SEGMENT_SLOTS - 1;
			continue;
		}
		slot = slot_at(frame_of(partition), s);
		if (slot->state != SLOT_DOUBT || slot->xid != xid)
			continue;
		found[n].slot = s;
		ItemPointerSet(&found[n].tid, slot->block, slot->offset);
		n++;
	}
	aq_latch_free(&stream->latch);
	for (uint32 i = 0; i < n; i++)
		list = lappend(list, &found[i]);
	return list;
}

/* Reads the consumers and times of a slot from its row. */
static void
read_slot(Relation rel, DoubtSlot *doubt)
{
	HeapTupleData tuple;
	Buffer		buffer;
	Datum		values[MSG_COLUMNS];
	bool		nulls[MSG_COLUMNS];

	tuple.t_self = doubt->tid;
	if (!ItemPointerIsValid(&tuple.t_self) || !heap_fetch(rel, SnapshotAny, &tuple, &buffer, false))
		return;					/* rolled back and already pruned */
	aq_rows_read(&tuple, RelationGetDescr(rel), MSG_COLUMNS, values, nulls);
	doubt->targets = nulls[MSG_TARGETS] ? NULL : targets_set(DatumGetByteaPP(values[MSG_TARGETS]));
	doubt->ready_at = nulls[MSG_READY_AT] ? 0 : DatumGetTimestampTz(values[MSG_READY_AT]);
	doubt->expires_at = nulls[MSG_EXPIRES_AT] ? 0 : DatumGetTimestampTz(values[MSG_EXPIRES_AT]);
	ReleaseBuffer(buffer);
}

static DoubtTake *
new_doubt_take(TransactionId xid, char kind, int position, uint32 slot)
{
	DoubtTake  *take = palloc0(sizeof(DoubtTake));

	take->xid = xid;
	take->kind = kind;
	take->position = position;
	take->slot = slot;
	return take;
}

static int
mark_of(int position, uint32 slot)
{
	return position * PARTITION_SLOTS + slot;
}

/*
 * Reads from the log which messages the transaction took (others), and which
 * consumers have taken the slots in doubt (own).  The latter can have been
 * taken only by the transactions that enqueued them: this one, or those that
 * wait for it.
 */
static List *
read_takes(Partition *partition, TransactionId xid, const Bitmapset *slots, bool others, bool own)
{
	Relation	rel = table_open(partition->log, AccessShareLock);
	TableScanDesc scan = aq_table_beginscan(rel, SnapshotAny);
	HeapTuple	tuple;
	List	   *takes = NIL;

	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		LogRow		row;
		TransactionId xmin = HeapTupleHeaderGetRawXmin(tuple->t_data);

		if (xmin != xid && !HeapTupleHeaderXminFrozen(tuple->t_data) && !TransactionIdDidCommit(xmin))
			continue;
		row = aq_heap_read_log(tuple, RelationGetDescr(rel));
		for (int i = 0; i < row.n && row.kind != LOG_CLEARED; i++)
			if (row.ordinals[i] / PARTITION_SLOTS == partition->number &&
				(bms_is_member(row.ordinals[i] % PARTITION_SLOTS, slots) ? own : others && xmin == xid))
			{
				DoubtTake  *take = new_doubt_take(xmin, row.kind, row.position, row.ordinals[i] % PARTITION_SLOTS);

				take->until = row.at;
				take->receipt = row.receipt;
				take->alone = row.alone;
				takes = lappend(takes, take);
			}
	}
	table_endscan(scan);
	table_close(rel, AccessShareLock);
	return takes;
}

/*
 * The messages of the partition that prepared transactions have taken; members
 * are computed by mark_of.
 */
static Bitmapset *
read_marks(Stream *stream, Partition *partition)
{
	uint64_t   *doubt = palloc(PARTITION_SLOTS / 8);
	Bitmapset  *marks = NULL;
	int			position = -1;

	do
	{
		FrameSub   *sub = NULL;
		int			slot = -1;

		aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_DOUBT_SWEEP);
		while (sub == NULL && (position = aq_frame_next_sub(frame_of(partition), position)) >= 0)
		{
			sub = frame_sub(frame_of(partition), position);
			if (sub->ndoubt > 0)
				memcpy(doubt, bitmap_of(sub->doubt), PARTITION_SLOTS / 8);
			else
				sub = NULL;
		}
		aq_latch_free(&stream->latch);
		while (position >= 0 && (slot = aq_bitmap_next(doubt, PARTITION_SLOTS, slot + 1)) >= 0)
			marks = bms_add_member(marks, mark_of(position, slot));
	} while (position >= 0);
	return marks;
}

/*
 * Removes the marks that other transactions in doubt have made, according to
 * their log rows.  The marks were read before the log.
 */
static Bitmapset *
without_marks_of_others(Partition *partition, TransactionId xid, Bitmapset *marks)
{
	TransactionId *xids = palloc(aq_area->max_doubts * sizeof(TransactionId));
	uint32		nxids = aq_doubt_table_xids(partition, xids);
	Relation	rel = table_open(partition->log, AccessShareLock);
	TableScanDesc scan = aq_table_beginscan(rel, SnapshotAny);
	HeapTuple	tuple;

	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		TransactionId xmin = HeapTupleHeaderGetRawXmin(tuple->t_data);
		bool		other = false;
		LogRow		row;

		for (uint32 i = 0; i < nxids && !other && xmin != xid; i++)
			other = xids[i] == xmin;
		if (!other)
			continue;
		row = aq_heap_read_log(tuple, RelationGetDescr(rel));
		for (int i = 0; i < row.n && row.kind != LOG_CLEARED; i++)
			if (row.ordinals[i] / PARTITION_SLOTS == partition->number)
				marks = bms_del_member(marks, mark_of(row.position, row.ordinals[i] % PARTITION_SLOTS));
	}
	table_endscan(scan);
	table_close(rel, AccessShareLock);
	return marks;
}

/*
 * The transaction was rolled back, and VACUUM may have removed its log rows:
 * marked messages without a log row were taken by it.  As it is not known how
 * it took them, the attempt does not count.
 */
static List *
add_takes_without_rows(Partition *partition, TransactionId xid, Bitmapset *marks, List *takes)
{
	ListCell   *lc;
	int			mark = -1;

	foreach(lc, takes)
	{
		DoubtTake  *take = lfirst(lc);

		marks = bms_del_member(marks, mark_of(take->position, take->slot));
	}
	if (!bms_is_empty(marks))
		marks = without_marks_of_others(partition, xid, marks);
	while ((mark = bms_next_member(marks, mark)) >= 0)
		takes = lappend(takes, new_doubt_take(xid, LOG_LOCKED, mark / PARTITION_SLOTS, mark % PARTITION_SLOTS));
	return takes;
}

/* A dequeue, and not the acknowledgement of an earlier one? */
static bool
is_dequeue(const DoubtTake *take)
{
	return take->kind == LOG_LEASED || (take->kind == LOG_TAKEN && take->receipt == 0);
}

/* Reads the enqueue times of the messages from their rows. */
static void
read_enqueue_times(Stream *stream, Partition *partition, Relation rel, List *takes)
{
	ListCell   *lc;

	/* taken messages keep the frame */
	aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_DOUBT_SWEEP);
	foreach(lc, takes)
	{
		DoubtTake  *take = lfirst(lc);

		if (is_dequeue(take))
		{
			Slot	   *slot = slot_at(frame_of(partition), take->slot);

			ItemPointerSet(&take->tid, slot->block, slot->offset);
		}
	}
	aq_latch_free(&stream->latch);
	foreach(lc, takes)
	{
		DoubtTake  *take = lfirst(lc);
		HeapTupleData tuple;
		Buffer		buffer;
		bool		isnull;

		tuple.t_self = take->tid;
		if (!is_dequeue(take) || !ItemPointerIsValid(&tuple.t_self) || !heap_fetch(rel, SnapshotAny, &tuple, &buffer, false))
			continue;
		take->enqueued = DatumGetTimestampTz(heap_getattr(&tuple, MSG_ENQUEUE_TIME + 1, RelationGetDescr(rel), &isnull));
		ReleaseBuffer(buffer);
	}
}

static void
settle_slot(AqQueueShm *shm, Stream *stream, Partition *partition, DoubtSlot *doubt,
			bool commit, TimestampTz now)
{
	Slot	   *slot = slot_at(frame_of(partition), doubt->slot);

	if (!commit && !(slot->flags & SLOT_FOLLOWER))
	{
		aq_slot_lose(partition, doubt->slot, 1);
		return;
	}
	if (!(slot->flags & SLOT_FOLLOWER)) /* followers were counted when they were committed */
		aq_settle_count_put(shm, stream, 1, doubt->ready_at != 0, doubt->expires_at != 0, now);
	if (doubt->ready_at <= now)
		doubt->ready_at = 0;
	aq_settle_publish(shm, stream, partition, doubt->slot, 1, doubt->targets, doubt->ready_at, now);
	if (doubt->ready_at)
		aq_frame_push_timer(partition, doubt->ready_at, doubt->slot, 0, TIMER_READY);
	if (doubt->expires_at)
	{
		aq_slot_set_expiry(slot, doubt->expires_at);
		aq_frame_push_timer(partition, doubt->expires_at, doubt->slot, 0, TIMER_EXPIRE);
	}
}

/* A message that was dequeued counts, with a lease or without one. */
static void
count_dequeue(AqQueueShm *shm, const DoubtTake *take)
{
	AqConsumed	consumed = {0};

	aq_stat_add(AQ_STAT_DEQUEUE_COMMITTED, 1);
	if (take->enqueued != 0)
		aq_consumed_add(&consumed, take->enqueued);
	aq_traffic_dequeued(shm, take->position, &consumed, NULL);
}

/* Counts a prepared action on a lease that is now committed. */
static void
count_lease(const DoubtTake *take)
{
	if (take->receipt == 0)
		return;
	aq_traffic_lease(take->kind == LOG_LEASED ? AQ_MODE_LEASE
					 : take->kind == LOG_TAKEN ? AQ_MODE_ACKNOWLEDGE
					 : take->kind == LOG_EXTENDED ? AQ_MODE_EXTEND
					 : take->kind == LOG_FAILED ? AQ_MODE_REJECT : AQ_MODE_RELEASE, 1);
}

static void
done_after_doubt(AqQueueShm *shm, Stream *stream, Partition *partition, const DoubtTake *take)
{
	if (take->kind == LOG_FAILED)
		aq_settle_failed(shm, partition, take->position, take->slot);
	else
		aq_settle_done(shm, partition, take->position, take->slot, take->xid);
	count_lease(take);
	if (is_dequeue(take))
		count_dequeue(shm, take);
}

/*
 * Settles the dequeue of a message by the transaction that enqueued it, after
 * the message was published.
 */
static void
settle_own_take(AqQueueShm *shm, Stream *stream, Partition *partition, DoubtTake *take, bool commit)
{
	if (commit && (take->kind == LOG_TAKEN || take->kind == LOG_PURGED) &&
		aq_slot_take(stream, partition, take->position, take->slot))
		done_after_doubt(shm, stream, partition, take);
}

/*
 * Settles the dequeue of a message that has a mark.  A message without a mark
 * needs no action: its consumer was removed before the partition was loaded,
 * or the transaction had ended before the partition was loaded.
 */
static void
settle_take(AqQueueShm *shm, Stream *stream, Partition *partition, DoubtTake *take, bool commit)
{
	bool		ends = take->kind == LOG_TAKEN || take->kind == LOG_PURGED || take->kind == LOG_FAILED;

	if (take->kind == LOG_RETRY || take->kind == LOG_MOVED || take->kind == LOG_OVER ||
		!aq_slot_resolve(stream, partition, take->position, take->slot))
		return;
	if (commit && ends)
		done_after_doubt(shm, stream, partition, take);
	else if (aq_consumer_removed(aq_shm_consumer(shm, take->position)))
		aq_settle_removed(shm, partition, take->position, take->slot, InvalidTransactionId);
	else if (commit && take->kind != LOG_LOCKED)
	{
		(void) aq_settle_lease(stream, partition, take->position, take->slot, take->kind, take->until, take->receipt);
		count_lease(take);
		if (is_dequeue(take))
			count_dequeue(shm, take);
	}
	else if (aq_settle_lease_goes_on(partition, take->position, take->slot))
		return;
	else if (!commit && (take->kind == LOG_TAKEN || take->kind == LOG_LEASED))
	{
		aq_slot_retry(stream, partition, take->position, take->slot);
		aq_slot_note_alone(partition, take->position, take->slot, take->alone);
	}
	else
		aq_slot_give_back(stream, partition, take->position, take->slot);
}

/* The consumers whose bitmaps change when the transaction is settled. */
static Bitmapset *
consumers_of(AqQueueShm *shm, List *slots, List *takes)
{
	Bitmapset  *positions = shm->single ? bms_make_singleton(0) : NULL;
	ListCell   *lc;

	foreach(lc, slots)
		positions = bms_add_members(positions, ((DoubtSlot *) lfirst(lc))->targets);
	foreach(lc, takes)
		positions = bms_add_member(positions, ((DoubtTake *) lfirst(lc))->position);
	return positions;
}

static bool
has_slots_in_doubt(Partition *partition, TransactionId xid)
{
	Frame	   *frame = frame_of(partition);

	for (uint32 s = 0; s < PARTITION_SLOTS; s++)
	{
		if (frame->segments[s / SEGMENT_SLOTS] == 0)
			s |= SEGMENT_SLOTS - 1;
		else if (slot_at(frame, s)->state == SLOT_DOUBT && slot_at(frame, s)->xid == xid)
			return true;
	}
	return false;
}

/*
 * Chunks for the leases that the transaction has begun; make: make them.  They
 * are there, unless the server was restarted since.
 */
static uint32
lease_places(Frame *frame, List *takes, const Bitmapset *positions, bool make)
{
	uint32		missing = 0;
	ListCell   *lc;

	foreach(lc, takes)
	{
		DoubtTake  *take = lfirst(lc);
		FrameSub   *sub = frame_sub(frame, take->position);

		if (take->kind != LOG_LEASED)
			continue;
		/* a removed consumer has no view until aq_frame_prepare makes it */
		missing += sub == NULL ? AQ_LEASE_CHUNKS : aq_slot_lease_needs(sub, take->slot);
		if (make && sub != NULL)
			aq_slot_make_lease(sub, take->slot);
	}
	/* many of them share a page */
	return Min(missing, bms_num_members(positions) * (2 + ATTEMPT_PAGES + LEASE_PAGES));
}

/*
 * Chunks for the bitmaps "alone", one for each consumer, of messages whose dequeue
 * was rolled back alone; make: make them.  See lease_places.
 */
static uint32
alone_bitmaps(Frame *frame, List *takes, const Bitmapset *positions, bool commit, bool make)
{
	uint32		missing = 0;
	ListCell   *lc;

	foreach(lc, takes)
	{
		DoubtTake  *take = lfirst(lc);
		FrameSub   *sub = frame_sub(frame, take->position);

		if (commit || !take->alone || !is_dequeue(take))
			continue;
		missing += sub == NULL ? 2 : aq_slot_alone_needs(sub);
		if (make && sub != NULL)
			aq_slot_make_alone(sub);
	}
	return Min(missing, bms_num_members(positions) * 2);
}

/*
 * The number of these consumers without a bitmap of retries; make: allocates
 * the bitmaps.
 */
static uint32
retry_bitmaps(Frame *frame, Bitmapset *positions, bool make)
{
	uint32		missing = 0;
	int			position = -1;

	while ((position = bms_next_member(positions, position)) >= 0)
	{
		FrameSub   *sub = frame_sub(frame, position);

		if (sub != NULL && sub->retry != 0)
			continue;
		missing++;
		if (make)
			aq_slot_make_bitmap(&sub->retry);
	}
	return missing;
}

/*
 * Takes the latch, after allocating all memory that the frame needs for
 * settling the transaction. back: the consumers whose dequeues are rolled
 * back.  Raises an error if there is no memory.  Returns the number of timers
 * that were reserved before.
 */
static uint32
latch_prepared(Stream *stream, Partition *partition, List *slots, List *takes, Bitmapset *positions,
			   Bitmapset *back, TimestampTz now)
{
	Frame	   *frame = frame_of(partition);
	bool		waiting = stream->delayed;	/* dequeued by its id */
	uint32		timers = 0;
	uint32		needs,
				reserved;
	ListCell   *lc;

	foreach(lc, slots)
	{
		DoubtSlot  *slot = lfirst(lc);

		waiting |= slot->ready_at > now;
		timers += (slot->ready_at > now ? 1 : 0) + (slot->expires_at != 0 ? 1 : 0);
	}
	foreach(lc, takes)
		waiting |= ((DoubtTake *) lfirst(lc))->kind == LOG_RELEASED || ((DoubtTake *) lfirst(lc))->kind == LOG_UNSEEN;
	aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_DOUBT_SWEEP);
	while ((needs = aq_frame_needs(stream, frame, 0, 1, positions, waiting, timers) +
			retry_bitmaps(frame, back, false) + lease_places(frame, takes, positions, false) +
			alone_bitmaps(frame, takes, positions, back == NULL, false)) > aq_chunks_reserved())
	{
		aq_latch_free(&stream->latch);
		aq_chunks_reserve(needs);
		aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_DOUBT_SWEEP);
	}
	reserved = frame->timers_reserved;
	aq_frame_prepare(stream, frame, 0, 1, positions, waiting, timers);
	(void) retry_bitmaps(frame, back, true);
	(void) lease_places(frame, takes, positions, true);
	(void) alone_bitmaps(frame, takes, positions, back == NULL, true);
	return reserved;
}

/*
 * Settles these slots and takes; set has the numbers of all slots in doubt
 * because of the transaction.  Also removes the entry, under the same hold of
 * the latch, unless more slots have become followers of the transaction since
 * the list was made: then returns true, and the caller continues.
 */
static bool
settle(AqQueueShm *shm, Partition *partition, TransactionId xid, List *slots,
	   const Bitmapset *set, List *takes)
{
	Stream	   *stream = stream_at(partition->stream);
	bool		commit = TransactionIdDidCommit(xid);
	Bitmapset  *positions = consumers_of(shm, slots, takes);
	Bitmapset  *back = NULL;
	TimestampTz now = GetCurrentTimestamp();
	uint32		reserved;
	uint32		wake = list_length(slots) + list_length(takes);
	int			position = -1;
	bool		more;
	ListCell   *lc;

	foreach(lc, takes)
		if (!commit && ((DoubtTake *) lfirst(lc))->xid == xid)
			back = bms_add_member(back, ((DoubtTake *) lfirst(lc))->position);

	reserved = latch_prepared(stream, partition, slots, takes, positions, back, now);
	foreach(lc, slots)
		settle_slot(shm, stream, partition, lfirst(lc), commit, now);
	foreach(lc, takes)
	{
		DoubtTake  *take = lfirst(lc);

		if (bms_is_member(take->slot, set))
			settle_own_take(shm, stream, partition, take, take->xid != xid || commit);
		else
			settle_take(shm, stream, partition, take, commit);
	}
	while (takes != NIL && (position = bms_next_member(positions, position)) >= 0)
		wake = Max(wake, aq_stream_search_from(stream, partition, position));
	aq_frame_drop_timers(frame_of(partition), frame_of(partition)->timers_reserved - reserved);
	if (partition->nretry > 0)
		aq_work_post(shm, AQ_WORK_RETRY);
	if (partition->next_timer)
		aq_work_announce_time(shm, partition->next_timer);
	more = has_slots_in_doubt(partition, xid);
	if (!more)
	{
		aq_doubt_table_remove(partition->index, xid);
		aq_slot_remove_doubt(partition);
		aq_settle_check_done(stream, partition);
	}
	aq_latch_free(&stream->latch);
	aq_chunks_trim();

	position = -1;
	while ((position = bms_next_member(positions, position)) >= 0)
		aq_waiters_wake(shm, position, wake);
	return more;
}

/*
 * Settles an entry whose transaction has ended. blocked: its messages, and
 * their followers, have to wait for another transaction; only its takes are
 * settled.
 */
static void
resolve(AqQueueShm *shm, const Doubt *entry, bool blocked)
{
	Partition  *partition = partition_at(entry->partition);
	Relation	rel = aq_heap_open_messages(partition, AccessShareLock);
	Stream	   *stream = stream_at(partition->stream);
	bool		others = !entry->takes_settled;
	bool		rolled_back = others && !TransactionIdDidCommit(entry->xid);
	Bitmapset  *marks = rolled_back ? read_marks(stream, partition) : NULL;
	bool		again;

	do
	{
		List	   *slots = slots_in_doubt(stream, partition, entry->xid);
		List	   *takes;
		Bitmapset  *set = NULL;
		ListCell   *lc;

		foreach(lc, slots)
		{
			if (!blocked)
				read_slot(rel, lfirst(lc));
			set = bms_add_member(set, ((DoubtSlot *) lfirst(lc))->slot);
		}
		takes = read_takes(partition, entry->xid, set, others, !blocked);
		takes = add_takes_without_rows(partition, entry->xid, marks, takes);
		marks = NULL;
		read_enqueue_times(stream, partition, rel, takes);
		again = settle(shm, partition, entry->xid, blocked ? NIL : slots, set, takes);
		others = false;
	} while (again && !blocked);
	if (blocked)
		aq_doubt_table_takes_settled(partition->index, entry->xid);
	table_close(rel, NoLock);
}

static int
compare_entries(const void *a, const void *b)
{
	uint64		p = ((const Doubt *) a)->sequence;
	uint64		q = ((const Doubt *) b)->sequence;

	return p < q ? -1 : p > q;
}

/*
 * Is there an older unresolved entry of the same session and stream?  Its
 * messages come first.
 */
static bool
is_blocked(const Doubt *entries, uint32 i, const bool *left)
{
	uint32		stream = partition_at(entries[i].partition)->stream;

	for (uint32 j = 0; entries[i].session != 0 && !stream_at(stream)->delayed && j < i; j++)
		if (left[j] && entries[j].session == entries[i].session &&
			partition_at(entries[j].partition)->stream == stream)
			return true;
	return false;
}

/*
 * The lock makes sure that only one session at a time resolves the queue's
 * entries.  The session does not wait for others while it holds the lock.
 */
static bool
lock_entries(AqQueueShm *shm, LOCKTAG *tag, bool wait)
{
	SET_LOCKTAG_OBJECT(*tag, MyDatabaseId, aq_schema_relation("queue"), (uint32) shm->queue_id, 1);
	return LockAcquire(tag, ExclusiveLock, false, !wait) != LOCKACQUIRE_NOT_AVAIL;
}

/*
 * Resolves the entries of transactions that have ended, in the order in which
 * they were prepared.  Returns false if some are left. wait: wait for another
 * session that is doing the same.
 */
bool
aq_doubt_resolve(AqQueueShm *shm, bool wait)
{
	Doubt	   *entries;
	bool	   *left;
	bool		all = true;
	uint32		n = 0;
	LOCKTAG		tag;

	if (!lock_entries(shm, &tag, wait))
		return false;
	entries = palloc(aq_area->max_doubts * sizeof(Doubt));
	left = palloc0(aq_area->max_doubts * sizeof(bool));
	aq_latch_get(&aq_area->doubt_latch, AQ_SHARED, AQ_LOC_DOUBT_SWEEP);
	for (uint32 i = 0; i < aq_area->max_doubts; i++)
		if (aq_area_doubts[i].partition != 0 &&
			partition_at(aq_area_doubts[i].partition)->queue == shm->object->index)
			entries[n++] = aq_area_doubts[i];
	aq_latch_free(&aq_area->doubt_latch);
	qsort(entries, n, sizeof(Doubt), compare_entries);
	for (uint32 i = 0; i < n; i++)
	{
		Partition  *partition = partition_at(entries[i].partition);

		left[i] = entries[i].preparing || TransactionIdIsInProgress(entries[i].xid) ||
			!aq_heap_lock_for_worker(partition, AccessShareLock);
		if (!left[i] && aq_doubt_table_has(partition, entries[i].xid))
		{
			left[i] = is_blocked(entries, i, left);
			if (!left[i] || !entries[i].takes_settled)
				resolve(shm, &entries[i], left[i]);
		}
		all &= !left[i];
	}
	/*
	 * an abort does not undo this, and a transaction that drops the queue may
	 * last long
	 */
	LockRelease(&tag, ExclusiveLock, false);
	return all;
}

static bool
has_entries(const AqQueueShm *shm)
{
	bool		found = false;

	aq_latch_get(&aq_area->doubt_latch, AQ_SHARED, AQ_LOC_DOUBT_SWEEP);
	for (uint32 i = 0; i < aq_area->max_doubts && !found; i++)
		found = aq_area_doubts[i].partition != 0 &&
			partition_at(aq_area_doubts[i].partition)->queue == shm->object->index;
	aq_latch_free(&aq_area->doubt_latch);
	return found;
}

/*
 * Called before a producer's next messages.  A session that finishes a
 * prepared transaction of the producer releases the producer's lock before it
 * settles the transaction's messages.
 */
void
aq_doubt_pass(AqQueueShm *shm)
{
	if (pg_atomic_read_u32(&aq_area->ndoubts) > 0 && has_entries(shm))
		(void) aq_doubt_resolve(shm, true);
}
