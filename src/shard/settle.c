/*-------------------------------------------------------------------------
 *
 * settle.c
 *	  The end of a transaction, slot by slot: enqueued messages become ready
 *	  or die, taken ones are done or go back.
 *
 * These functions run in commit and abort callbacks: they do not allocate,
 * raise or handle interrupts.  A partition with pending slots or taken
 * messages keeps its frame, so everything they touch is resident.
 *
 * Accounting of Partition.open: one for each pending slot; when it becomes
 * ready, one for each of its consumers instead; minus one when a consumer is
 * done with it; plus one while a failed message waits to be moved.  When a
 * closed partition's open is 0, nothing in it is needed any more.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/shard_private.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "utils/timestamp.h"

static bool
counts(AqQueueShm *shm, int position)
{
	AqConsumerShm *consumer = aq_shm_consumer(shm, position);

	return consumer != NULL && !aq_consumer_removed(consumer);
}

static void
count_enqueued(AqQueueShm *shm, int position, uint32 n, TimestampTz now)
{
	AqConsumerShm *consumer = aq_shm_consumer(shm, position);

	pg_atomic_fetch_add_u64(&consumer->enqueued, n);
	if (!shm->single)
		pg_atomic_write_u64(&consumer->traffic[AQ_TRAFFIC_LAST_ENQUEUE], (uint64) now);
}

static void
count_dequeued(AqQueueShm *shm, int position, uint32 n)
{
	pg_atomic_fetch_add_u64(&aq_shm_consumer(shm, position)->dequeued, n);
	pg_atomic_fetch_add_u64(&shm->dequeued, n);
}

/* Is everything in a closed partition done? Then it can be reused. Latch held. */
void
aq_partition_check_done(Stream *stream, Partition *partition)
{
	ShardQueue *queue;
	AqQueueShm *shm;

	if (partition->state != PARTITION_CLOSED || !partition->counted ||
		partition->open > 0 || partition->pending > 0 || partition->inflight > 0 ||
		partition->ndoubt > 0 || partition->nretry > 0 || partition->loading)
		return;

	shm = aq_shm_by_index(partition->queue);
	queue = shard_queue(shm);
	aq_frame_free(partition);
	aq_stream_unlink(stream, partition);
	partition->state = PARTITION_DONE;
	partition->next_timer = 0;

	/*
	 * The done list belongs to the queue's latch, which comes before the
	 * stream's; this push is the only thing done to it the other way round,
	 * and so it is an atomic one.
	 */
	do
		partition->next = queue->done;
	while (!__sync_bool_compare_and_swap(&queue->done, partition->next, partition->index));
	aq_work_post(shm, AQ_WORK_RECLAIM);
}

/* --- enqueued messages --------------------------------------------------------------- */

/* n slots, ready at once, for one consumer. */
static void
make_ready(AqQueueShm *shm, Stream *stream, Partition *partition, int position,
		   uint32 first, uint32 n, TimestampTz now)
{
	aq_set_ready(stream, partition, position, first, n);
	partition->open += n;
	count_enqueued(shm, position, n, now);
}

static void
set_slot_state(PutNote *note, Frame *frame, SlotState state, uint16 open)
{
	for (uint32 i = 0; i < note->count; i++)
	{
		Slot	   *slot = slot_at(frame, note->first + i);

		slot->state = state;
		slot->open = open;
	}
}

/* All slots of the note go to the same consumers, none taken already. */
static void
publish_together(PutNote *note, Stream *stream, Partition *partition, TimestampTz now)
{
	Frame	   *frame = frame_of(partition);
	int			position = -1;
	uint16		open = 0;

	if (note->shared_targets == NULL)
	{
		make_ready(note->shm, stream, partition, 0, note->first, note->count, now);
		open = 1;
	}
	else
		while ((position = bms_next_member(note->shared_targets, position)) >= 0)
		{
			if (!counts(note->shm, position))
				continue;
			make_ready(note->shm, stream, partition, position, note->first, note->count, now);
			open++;
		}
	set_slot_state(note, frame, open > 0 ? SLOT_READY : SLOT_DONE, open);
}

/*
 * One committed slot becomes ready, or waiting when ready_at is given, for
 * its targets (NULL: the single consumer).
 */
void
aq_publish_slot(AqQueueShm *shm, Stream *stream, Partition *partition, uint32 number,
				Bitmapset *targets, TimestampTz ready_at, TimestampTz now)
{
	Slot	   *slot = slot_at(frame_of(partition), number);
	int			position = -1;

	slot->open = 0;
	slot->flags &= ~SLOT_FOLLOWER;
	do
	{
		if (targets != NULL)
			position = bms_next_member(targets, position);
		else
			position = 0;
		if (position < 0)
			break;
		if (!counts(shm, position))
			continue;
		slot->open++;
		partition->open++;
		count_enqueued(shm, position, 1, now);
		if (ready_at == 0)
			aq_set_ready(stream, partition, position, number, 1);
		else
			aq_set_waiting(partition, position, number);
	} while (targets != NULL);
	slot->state = slot->open == 0 ? SLOT_DONE : ready_at != 0 ? SLOT_WAITING : SLOT_READY;
}

/*
 * The transaction has enqueued this message, and has taken it for some
 * consumers.  It is in flight for them until aq_settle_take(), so that the frame
 * stays.  When it is not published, or the consumer was removed meanwhile, there
 * is nothing to settle.
 */
static void
count_own_takes(Stream *stream, Partition *partition, uint32 number, bool published)
{
	int			cursor = 0;
	int			position;

	while ((position = aq_own_taker(partition, number, &cursor)) >= 0)
		if (published && (aq_clear_ready(stream, partition, position, number) ||
						  aq_clear_waiting(partition, position, number)))
			partition->inflight++;
		else
			aq_own_leave(partition, position, number);
}

/* Slots of the note one by one: own takes, delays, or different consumers. */
static void
publish_each(PutNote *note, Stream *stream, Partition *partition, TimestampTz now)
{
	for (uint32 i = 0; i < note->count; i++)
	{
		uint32		number = note->first + i;
		Bitmapset  *targets = note->targets ? note->targets[i] : note->shared_targets;

		aq_publish_slot(note->shm, stream, partition, number, targets, note->ready_at, now);
		count_own_takes(stream, partition, number, true);
	}
}

static void
push_timers(PutNote *note, Partition *partition)
{
	for (uint32 i = 0; i < note->count; i++)
	{
		if (note->ready_at)
			aq_frame_push_timer(partition, note->ready_at, note->first + i, 0, TIMER_READY);
		if (note->expires_at)
			aq_frame_push_timer(partition, note->expires_at, note->first + i, 0, TIMER_EXPIRE);
	}
	if (note->count > 0 && (note->ready_at || note->expires_at))
		aq_work_announce_time(note->shm, partition->next_timer);
}

/*
 * Its session has a prepared transaction in the stream: stand behind it.
 * False when there is no room to note that; then order is given up, not the
 * message.
 */
static bool
follow(PutNote *note, Stream *stream, Partition *partition, TransactionId doubt)
{
	Frame	   *frame = frame_of(partition);
	int64		session = slot_at(frame, note->first)->session;

	if (!aq_doubt_table_has(partition, doubt))
	{
		if (!aq_doubt_table_add(partition, doubt, session, false))
			return false;
		partition->ndoubt++;
	}
	for (uint32 i = 0; i < note->count; i++)
	{
		Slot	   *slot = slot_at(frame, note->first + i);

		slot->state = SLOT_DOUBT;
		slot->flags |= SLOT_FOLLOWER;
		set_slot_xid(slot, doubt, slot_full_xid(slot));
		/* the log will say which consumers have it */
		count_own_takes(stream, partition, note->first + i, false);
	}
	partition->open += note->count; /* the pending ones' share, kept */
	partition->pending += note->count;
	aq_work_post(note->shm, AQ_WORK_DOUBT);
	return true;
}

static void
wake_targets(PutNote *note)
{
	pg_memory_barrier();		/* ready before the list of waiters is read */
	if (note->ready_at != 0 || !aq_waiters_exist(note->shm))
		return;
	if (note->shared_targets == NULL && note->targets == NULL)
	{
		aq_waiters_wake(note->shm, 0, note->count);
		return;
	}
	for (uint32 i = 0; i < (note->targets ? note->count : 1); i++)
	{
		Bitmapset  *targets = note->targets ? note->targets[i] : note->shared_targets;
		int			position = -1;

		while ((position = bms_next_member(targets, position)) >= 0)
			aq_waiters_wake(note->shm, position, note->targets ? 1 : note->count);
	}
}

/* Committed.  Latch held. */
void
aq_settle_count_put(AqQueueShm *shm, Stream *stream, uint32 n, bool delayed, bool expires, TimestampTz now)
{
	stream->enqueued += n;
	aq_stat_add(AQ_STAT_ENQUEUE_COMMITTED, n);
	pg_atomic_fetch_add_u64(&shm->enqueued, n);
	if (delayed)
		aq_traffic_add(shm, AQ_TRAFFIC_ENQUEUED_DELAY, n);
	if (expires)
		aq_traffic_add(shm, AQ_TRAFFIC_ENQUEUED_EXPIRY, n);
	aq_traffic_time(shm, AQ_TRAFFIC_LAST_ENQUEUE, now);
}

void
aq_settle_put(PutNote *note, bool commit, TransactionId xid)
{
	Partition  *partition = note->partition;
	Stream	   *stream = stream_at(partition->stream);
	TransactionId doubt = InvalidTransactionId;
	TimestampTz now = commit ? GetCurrentTimestamp() : 0;
	bool		published = false;

	aq_latch_get(&stream->latch, AQ_EXCLUSIVE,
				 commit ? AQ_LOC_ENQUEUE_PUBLISH : AQ_LOC_ENQUEUE_ABORT);
	partition->pending -= note->count;
	partition->open -= note->count;
	frame_of(partition)->timers_reserved -= note->timers;
	if (!commit)
		set_slot_state(note, frame_of(partition), SLOT_DONE, 0);
	else
	{
		if (pg_atomic_read_u32(&aq_area->ndoubts) > 0)
			doubt = aq_doubt_table_of_session(partition->stream,
										slot_at(frame_of(partition), note->first)->session,
										PG_INT64_MAX);
		if (!TransactionIdIsValid(doubt) || !follow(note, stream, partition, doubt))
		{
			if (note->targets == NULL && !aq_own_has_taken(partition) && note->ready_at == 0)
				publish_together(note, stream, partition, now);
			else
				publish_each(note, stream, partition, now);
			if (note->timers > 0)
			{
				frame_of(partition)->timers_reserved += note->timers;
				push_timers(note, partition);
			}
			published = true;
		}
		aq_settle_count_put(note->shm, stream, note->count, note->ready_at != 0, note->expires_at != 0, now);
	}
	aq_partition_check_done(stream, partition);
	aq_latch_free(&stream->latch);

	if (published)
	{
		aq_trace_publish(note->shm->database, note->shm->queue_id, note->count);
		wake_targets(note);
	}
}

/* --- taken messages --------------------------------------------------------------------- */

static void
slot_done(AqQueueShm *shm, Partition *partition, uint32 number)
{
	Slot	   *slot = slot_at(frame_of(partition), number);

	Assert(slot->open > 0 && partition->open > 0);
	slot->open--;
	partition->open--;
	if (slot->open == 0)
	{
		slot->state = SLOT_DONE;
		if (slot->flags & SLOT_FAILED)
			aq_work_post(shm, AQ_WORK_FAILED);
	}
}

/* The books of n slots that a consumer was done with together. */
static void
book_done(AqQueueShm *shm, Stream *stream, Partition *partition, int position,
		  uint32 n, TransactionId xid)
{
	stream_sub(stream, position)->delivered += n;
	count_dequeued(shm, position, n);
	if (TransactionIdPrecedes(partition->last_taker, xid))
		partition->last_taker = xid;
	partition->last_take = GetCurrentTimestamp();
	/* whoever calls has just committed the log row that says so */
	partition->last_lsn = Max(partition->last_lsn, XactLastCommitEnd);
}

/*
 * The consumer is done with the message: it has it for good, or it failed.
 * Latch held.  The caller checks the partition afterwards.
 */
void
aq_consumer_done(AqQueueShm *shm, Stream *stream, Partition *partition, int position,
				 uint32 number, TransactionId xid)
{
	slot_done(shm, partition, number);
	book_done(shm, stream, partition, position, 1, xid);
}

/*
 * Rolled back: the worker writes the count before it is ready again.  Latch
 * held; the consumer has a bitmap of retries.
 */
void
aq_hand_to_worker(Stream *stream, Partition *partition, int position, uint32 number)
{
	FrameSub   *sub = frame_sub(frame_of(partition), position);
	StreamSub  *ssub = stream_sub(stream, position);

	if (aq_bitmap_set(bitmap_of(sub->retry), number))
	{
		sub->nretry++;
		partition->nretry++;
	}
	if (ssub->hint != 0 && partition->number < partition_at(ssub->hint)->number)
		ssub->hint = partition->index;	/* so that dequeue waits for it */
}

/* Does it count when the message is given back? */
static bool
was_attempt(const TakeNote *note, uint32 number)
{
	return note->mode == AQ_MODE_REMOVE || note->mode == AQ_MODE_REMOVE_NODATA ||
		(note->tried != NULL && !note->own && aq_bitmap_test(note->tried, number));
}

void
aq_settle_take(TakeNote *note, bool commit, bool count_retry, TransactionId xid)
{
	Partition  *partition = note->partition;
	Stream	   *stream = stream_at(partition->stream);
	bool		final = commit && note->mode != AQ_MODE_LOCKED;
	uint32		all = note->count,
				done = 0,
				back = 0,
				retries = 0;

	if (note->own && !commit)
	{
		/* when the whole transaction aborts, the messages are gone as well */
		aq_own_give_back(partition, note->position, note->slots, note->count);
		return;
	}
	if (note->own)
		note->count = aq_own_keep(partition, note->position, note->slots, note->count);
	if (note->count == 0)
		return;

	aq_latch_get(&stream->latch, AQ_EXCLUSIVE,
				 final ? AQ_LOC_DEQUEUE_COMMIT : AQ_LOC_DEQUEUE_ABORT);
	partition->inflight -= note->count;
	for (uint32 i = 0; i < note->count; i++)
	{
		uint32		number = note->slots[i];
		FrameSub   *sub = frame_sub(frame_of(partition), note->position);

		if (final || !counts(note->shm, note->position))
		{
			slot_done(note->shm, partition, number);
			done++;
		}
		else if (count_retry && sub->retry != 0 && was_attempt(note, number))
		{
			aq_hand_to_worker(stream, partition, note->position, number);
			retries++;
		}
		else
		{
			aq_give_back(stream, partition, note->position, number);
			back++;
		}
	}
	if (done > 0)
		book_done(note->shm, stream, partition, note->position, done,
				  final ? xid : InvalidTransactionId);
	if (partition->nretry > 0)
		aq_work_post(note->shm, AQ_WORK_RETRY);
	aq_partition_check_done(stream, partition);
	aq_latch_free(&stream->latch);

	if (final && note->mode != AQ_MODE_PURGE)
	{
		aq_stat_add(AQ_STAT_DEQUEUE_COMMITTED, done);
		/* of what stands behind a doubt it is counted when that is resolved */
		if (done == all)
			aq_traffic_dequeued(note->shm, note->position, &note->consumed);
	}
	aq_stat_add(AQ_STAT_RETRIES, retries);
	if (back > 0)
		aq_waiters_wake(note->shm, note->position, back);
}
