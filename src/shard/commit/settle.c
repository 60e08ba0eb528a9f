/*-------------------------------------------------------------------------
 *
 * settle.c
 *	  The end of a transaction, slot by slot: enqueued messages become ready or
 *	  are lost, taken messages are done or become ready again.
 *
 * These functions run in commit and abort callbacks: they do not allocate
 * memory, raise errors or handle interrupts.  A partition with pending slots
 * or taken messages keeps its frame, so all data that they need is resident.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/commit/commit_private.h"

#include "access/transam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "utils/timestamp.h"

/* an open partition with fewer bytes is left as it is, even if it is no longer used */
#define IDLE_BYTES (256 * 1024)

static bool
counts(AqQueueShm *shm, int position)
{
	AqConsumerShm *consumer = aq_shm_consumer(shm, position);

	if (consumer == NULL)
		return false;
	if (aq_consumer_removed(consumer))
		aq_consumer_leaves(consumer);
	return !aq_consumer_removed(consumer);
}

/*
 * Adds the consumed partition to the list that the worker truncates.  Sessions
 * that hold a stream's latch call it, so the queue's latch, which comes before
 * that one, cannot protect the list.  Only the worker removes partitions: all at
 * once, by an exchange with 0.  So the partition at the head of the list is
 * always followed by its next.  Push and exchange are full barriers: a process
 * that finds a partition in the list sees its state and its next, also on
 * processors that reorder writes.
 */
void
aq_settle_list_done(ShardQueue *queue, Partition *partition)
{
	uint32		head = pg_atomic_read_u32(&queue->done);

	partition->state = PARTITION_DONE;
	do
		partition->next = head;
	while (!pg_atomic_compare_exchange_u32(&queue->done, &head, partition->index));
}

/*
 * The first of these partitions; the caller is the worker, or bounds its steps
 * and makes do with a list that changes.
 */
uint32
aq_settle_first_done(ShardQueue *queue)
{
	uint32		first = pg_atomic_read_u32(&queue->done);

	pg_read_barrier();			/* before its next is read */
	return first;
}

/*
 * All messages of an open partition may be done.  If the partition is large, the
 * worker is asked to watch whether more messages arrive, see aq_reclaim_job().  It
 * is asked once, until it has closed the partition or stopped watching it.
 */
static void
watch(Partition *partition)
{
	if (partition->watched || pg_atomic_read_u64(&partition->bytes) < IDLE_BYTES || !aq_slot_all_done(partition))
		return;
	partition->watched = true;
	partition->watched_at = 0;
	aq_work_post(aq_shm_by_index(partition->queue), AQ_WORK_RECLAIM);
}

/*
 * If all messages of a closed partition are done, moves it to the list of
 * consumed partitions.  The caller holds the latch.
 */
void
aq_settle_check_done(Stream *stream, Partition *partition)
{
	AqQueueShm *shm;

	if (partition->state == PARTITION_OPEN)
		watch(partition);
	if (partition->state != PARTITION_CLOSED || !partition->counted || partition->loading ||
		!aq_slot_all_done(partition))
		return;

	shm = aq_shm_by_index(partition->queue);
	aq_frame_free(partition);
	aq_stream_unlink(stream, partition);
	partition->next_timer = 0;
	aq_settle_list_done(shard_queue(shm), partition);
	aq_work_post(shm, AQ_WORK_RECLAIM);
}

/* --- enqueued messages --------------------------------------------------------------- */

/*
 * Finds the consumers of committed messages (NULL: the single one), without
 * those that were removed meanwhile, and returns their number.  Adds n
 * enqueued messages to the counters of each.
 */
static int
count_targets(AqQueueShm *shm, const Bitmapset *targets, uint32 n, TimestampTz now, int16 *positions)
{
	int			position = -1;
	int			npositions = 0;

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
		aq_traffic_enqueued(shm, position, n, now);
		positions[npositions++] = position;
	} while (targets != NULL);
	return npositions;
}

/*
 * Publishes n committed slots with the same targets (NULL: the single
 * consumer): they become ready, or waiting if ready_at is set.
 */
void
aq_settle_publish(AqQueueShm *shm, Stream *stream, Partition *partition, uint32 first, uint32 n,
				  const Bitmapset *targets, TimestampTz ready_at, TimestampTz now)
{
	int16		positions[AQ_MAX_CONSUMERS];
	int			npositions = count_targets(shm, targets, n, now, positions);

	aq_slot_publish(stream, partition, first, n, positions, npositions, ready_at != 0);
}

/*
 * The transaction has enqueued the message and also taken it for some consumers.
 * Marks it as in flight for them until aq_settle_take(), so that the frame is
 * kept.  If the message is not published, or the consumer was removed meanwhile,
 * there is nothing to settle.
 */
static void
count_own_takes(Stream *stream, Partition *partition, uint32 number, bool published)
{
	int			cursor = 0;
	int			position;

	while ((position = aq_own_taker(partition, number, &cursor)) >= 0)
		if (!published || !(aq_slot_take(stream, partition, position, number) ||
							aq_slot_take_waiting(partition, position, number)))
			aq_own_leave(partition, position, number);
}

/*
 * Publishes the slots of the note one by one, because of own takes, delays, or
 * different consumers.
 */
static void
publish_each(PutNote *note, Stream *stream, Partition *partition, TimestampTz now)
{
	for (uint32 i = 0; i < note->count; i++)
	{
		uint32		number = note->first + i;
		Bitmapset  *targets = note->targets ? note->targets[i] : note->shared_targets;

		aq_settle_publish(note->shm, stream, partition, number, 1, targets, note->ready_at, now);
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
 * Makes the messages wait for the session's prepared transaction in the stream.
 * Returns false if no entry is free; then the messages are published without
 * keeping the order.
 */
static bool
follow(PutNote *note, Stream *stream, Partition *partition, TransactionId doubt)
{
	int64		session = slot_at(frame_of(partition), note->first)->session;

	if (!aq_doubt_table_has(partition, doubt))
	{
		if (!aq_doubt_table_add(partition, doubt, session, false))
			return false;
		aq_slot_add_doubts(partition, 1);
	}
	aq_slot_follow(partition, note->first, note->count, doubt);
	/* the log tells which of them the transaction has taken */
	for (uint32 i = 0; i < note->count; i++)
		count_own_takes(stream, partition, note->first + i, false);
	aq_work_post(note->shm, AQ_WORK_DOUBT);
	return true;
}

/*
 * count: the number of messages for the note's consumers, of this note and of
 * similar ones; key: the correlation key of all of them.
 */
static void
wake_targets(const PutNote *note, uint32 count, uint32 key)
{
	if (note->shared_targets == NULL && note->targets == NULL)
	{
		aq_waiters_wake_for(note->shm, 0, count, key);
		return;
	}
	for (uint32 i = 0; i < (note->targets ? note->count : 1); i++)
	{
		Bitmapset  *targets = note->targets ? note->targets[i] : note->shared_targets;
		int			position = -1;

		while ((position = bms_next_member(targets, position)) >= 0)
			aq_waiters_wake_for(note->shm, position, note->targets ? 1 : count, key);
	}
}

static bool
have_same_targets(const PutNote *a, const PutNote *b)
{
	return a->shm == b->shm && a->targets == NULL && b->targets == NULL &&
		bms_equal(a->shared_targets, b->shared_targets);
}

/*
 * Wakes waiters for the published messages, when all are published.  So the
 * messages of several producers wake a session that takes many of them only once.
 */
void
aq_settle_wake(PutNote *const *notes, int n)
{
	pg_memory_barrier();		/* make the slots ready before the list of waiters is read */
	for (int i = 0; i < n; i++)
	{
		const PutNote *note = notes[i];
		uint32		count = note->count;
		uint32		key = note->key;

		if (!note->published || note->ready_at != 0 || !aq_waiters_exist(note->shm))
			continue;
		while (i + 1 < n && notes[i + 1]->published && notes[i + 1]->ready_at == 0 &&
			   have_same_targets(note, notes[i + 1]))
		{
			count += notes[++i]->count;
			if (notes[i]->key != key)
				key = AQ_ANY_KEY;
		}
		wake_targets(note, count, key);
	}
}

/* Counts committed messages.  The caller holds the latch. */
void
aq_settle_count_put(AqQueueShm *shm, Stream *stream, uint32 n, bool delayed, bool expires, TimestampTz now)
{
	stream->enqueued += n;
	aq_traffic_put(shm, n, delayed ? n : 0, expires ? n : 0, now);
}

/* The rows are frozen, though their transaction runs: they are visible to every snapshot. */
static void
freeze(const PutNote *note, Frame *frame)
{
	for (uint32 i = 0; i < note->count; i++)
	{
		Slot	   *slot = slot_at(frame, note->first + i);

		aq_slot_set_xid(slot, FrozenTransactionId, slot_full_xid(slot));
	}
}

void
aq_settle_put(PutNote *note, bool commit, TransactionId xid)
{
	Partition  *partition = note->partition;
	Stream	   *stream = stream_at(partition->stream);
	TransactionId doubt = InvalidTransactionId;
	TimestampTz now = commit ? GetCurrentTimestamp() : 0;

	aq_latch_get(&stream->latch, AQ_EXCLUSIVE,
				 commit ? AQ_LOC_ENQUEUE_PUBLISH : AQ_LOC_ENQUEUE_ABORT);
	aq_frame_drop_timers(frame_of(partition), note->timers);
	if (!commit)
		aq_slot_lose(partition, note->first, note->count);
	else
	{
		if (note->frozen)
			freeze(note, frame_of(partition));
		if (pg_atomic_read_u32(&aq_area->ndoubts) > 0)
			doubt = aq_doubt_table_of_session(partition->stream,
											  slot_at(frame_of(partition), note->first)->session,
											  PG_INT64_MAX);
		if (!TransactionIdIsValid(doubt) || !follow(note, stream, partition, doubt))
		{
			if (note->targets == NULL && !aq_own_has_taken(partition) && note->ready_at == 0)
				aq_settle_publish(note->shm, stream, partition, note->first, note->count,
								  note->shared_targets, 0, now);
			else
				publish_each(note, stream, partition, now);
			if (note->timers > 0)
			{
				aq_frame_promise_timers(frame_of(partition), note->timers);
				push_timers(note, partition);
			}
			note->published = true;
		}
		aq_settle_count_put(note->shm, stream, note->count, note->ready_at != 0, note->expires_at != 0, now);
	}
	aq_settle_check_done(stream, partition);
	aq_latch_free(&stream->latch);

	if (note->published)
		aq_trace_publish(note->shm->database, note->shm->queue_id, note->count);
}

/* --- taken messages --------------------------------------------------------------------- */

/*
 * The consumer has finished with taken messages, because their dequeue was
 * committed or they have failed.  The caller holds the latch, and checks the
 * partition afterwards. xid: the transaction that finished them, or a later
 * one; invalid: not known, so that the partition waits for pgaq.reuse_grace.
 */
static void
finish(AqQueueShm *shm, Partition *partition, int position,
	   const uint16 *numbers, uint32 n, TransactionId xid)
{
	if (aq_slot_finish(partition, position, numbers, n))
		aq_work_post(shm, AQ_WORK_FAILED);
	aq_traffic_done(shm, position, n);
	if (position != AQ_ORIGIN_POSITION && stream_is_held(stream_at(partition->stream)))
		aq_peers_news(AQ_PEERS_FINISHED);	/* their origin is told of them */
	if (!TransactionIdIsValid(xid) || TransactionIdPrecedes(partition->last_taker, xid))
		partition->last_taker = xid;
	partition->last_take = GetCurrentTimestamp();
	/* the caller has just committed the log row */
	partition->last_lsn = Max(partition->last_lsn, XactLastCommitEnd);
}

/* The same for one message. */
void
aq_settle_done(AqQueueShm *shm, Partition *partition, int position,
			   uint32 number, TransactionId xid)
{
	uint16		slot = number;

	finish(shm, partition, position, &slot, 1, xid);
}

/* The same, because the consumer was removed; there is no log row for it. */
void
aq_settle_removed(AqQueueShm *shm, Partition *partition, int position, uint32 number, TransactionId xid)
{
	aq_consumer_leaves(aq_shm_consumer(shm, position));
	aq_settle_done(shm, partition, position, number, xid);
}

static void
count_failed(AqQueueShm *shm, Partition *partition, int position, uint32 number)
{
	aq_slot_fail(partition, number);
	partition->expired++;
	aq_traffic_failed(shm, position, 1, GetCurrentTimestamp());
}

/* It has failed for the consumer, which is done with it. */
void
aq_settle_failed(AqQueueShm *shm, Partition *partition, int position, uint32 number)
{
	count_failed(shm, partition, position, number);
	aq_settle_done(shm, partition, position, number, InvalidTransactionId);
}

/* --- leases ----------------------------------------------------------------------------- */

/* The kind of log row of a removal. */
char
aq_settle_kind(AqMode mode)
{
	switch (mode)
	{
		case AQ_MODE_LEASE:
			return LOG_LEASED;
		case AQ_MODE_EXTEND:
			return LOG_EXTENDED;
		case AQ_MODE_RELEASE:
			return LOG_RELEASED;
		case AQ_MODE_UNSEEN:
			return LOG_UNSEEN;
		case AQ_MODE_REJECT:
			return LOG_FAILED;
		default:
			return LOG_TAKEN;
	}
}

static void
count_attempt(Partition *partition, int position, uint32 number, int by)
{
	Frame	   *frame = frame_of(partition);
	int			attempts = aq_frame_attempts(frame, position, number) + by;

	if (attempts >= 0)
		aq_frame_set_attempts(frame, position, number, attempts);
}

/*
 * Applies a committed row of the log to a taken message: it is leased until a
 * time, or given back.  The caller holds the latch and has reserved memory for the
 * lease, or for a bitmap of waiting messages.  Returns true if the message is ready.
 */
bool
aq_settle_lease(Stream *stream, Partition *partition, int position, uint32 number, char kind,
				TimestampTz until, int64 receipt)
{
	if (kind == LOG_LEASED || kind == LOG_EXTENDED)
	{
		if (kind == LOG_LEASED)
			count_attempt(partition, position, number, 1);
		else
			until = Max(until, lease_at(frame_sub(frame_of(partition), position), number)->until);
		aq_slot_note_lease(partition, position, number, until, receipt);
		aq_slot_lease(partition, position, number);
		return false;
	}
	Assert(kind == LOG_RELEASED || kind == LOG_UNSEEN);
	if (kind == LOG_UNSEEN)
		count_attempt(partition, position, number, -1);
	if (until > GetCurrentTimestamp() && slot_at(frame_of(partition), number)->state == SLOT_READY)
	{
		aq_slot_delay_until(partition, position, number, until);
		return false;
	}
	aq_slot_give_back(stream, partition, position, number);
	return true;
}

/* The transaction that ends or extends the message's lease is rolled back.  Returns false if it has no lease.  Latch held. */
bool
aq_settle_lease_goes_on(Partition *partition, int position, uint32 number)
{
	const Lease *lease = lease_at(frame_sub(frame_of(partition), position), number);

	if (lease == NULL || lease->receipt <= 0)
		return false;
	aq_slot_lease(partition, position, number);
	return true;
}

/* --- the end of a dequeue ---------------------------------------------------------------- */

/* Is the consumer done with the messages when this is committed? */
static bool
ends_messages(AqMode mode)
{
	return mode == AQ_MODE_REMOVE || mode == AQ_MODE_REMOVE_NODATA || mode == AQ_MODE_MOVE || mode == AQ_MODE_PURGE ||
		mode == AQ_MODE_ACKNOWLEDGE || mode == AQ_MODE_REJECT;
}

/* The number of messages that the consumer has finished with when this transaction commits. */
uint64
aq_settle_finished_here(const AqQueueShm *shm, int position)
{
	TakeNote  **notes;
	int			n = aq_notes_takes(&notes);
	uint64		finished = 0;

	for (int i = 0; i < n; i++)
		if (notes[i]->shm == shm && notes[i]->position == position && ends_messages(notes[i]->mode))
			finished += notes[i]->count;
	return finished;
}

/* Leased messages count as dequeued when they are taken: then their rows are read. */
static bool
is_dequeue(AqMode mode)
{
	return mode == AQ_MODE_REMOVE || mode == AQ_MODE_REMOVE_NODATA || mode == AQ_MODE_MOVE || mode == AQ_MODE_LEASE;
}

/* Does a rollback of this dequeue count as an attempt?  Sending messages to another node does not. */
static bool
was_attempt(const TakeNote *note, uint32 number)
{
	if (note->terms.receipt & AQ_RECEIPT_NODE)
		return false;
	return (is_dequeue(note->mode) && note->mode != AQ_MODE_MOVE) ||
		(note->tried != NULL && !note->own && aq_bitmap_test(note->tried, number));
}

void
aq_settle_take(TakeNote *note, bool commit, bool count_retry, TransactionId xid)
{
	Partition  *partition = note->partition;
	Stream	   *stream = stream_at(partition->stream);
	bool		final = commit && ends_messages(note->mode);
	bool		counting = counts(note->shm, note->position);
	uint32		all = note->count,
				back = 0,
				retries = 0;

	if (note->own && !commit)
	{
		/* if the whole transaction aborts, the messages are lost, too */
		aq_own_give_back(partition, note->position, note->slots, note->count);
		return;
	}
	if (note->own)
		note->count = aq_own_keep(partition, note->position, note->slots, note->count);
	if (note->count == 0)
		return;

	aq_latch_get(&stream->latch, AQ_EXCLUSIVE,
				 final ? AQ_LOC_DEQUEUE_COMMIT : AQ_LOC_DEQUEUE_ABORT);
	for (uint32 i = 0; i < note->count && final && counting && note->mode == AQ_MODE_REJECT; i++)
		count_failed(note->shm, partition, note->position, note->slots[i]);
	if (final || !counting)
		finish(note->shm, partition, note->position, note->slots, note->count,
			   final ? xid : InvalidTransactionId);
	else
	{
		FrameSub   *sub = frame_sub(frame_of(partition), note->position);

		for (uint32 i = 0; i < note->count; i++)
			if (commit && note->mode != AQ_MODE_LOCKED)
				back += aq_settle_lease(stream, partition, note->position, note->slots[i], aq_settle_kind(note->mode),
										note->terms.until, note->terms.receipt);
			else if (aq_settle_lease_goes_on(partition, note->position, note->slots[i]))
				continue;
			else if (count_retry && sub->retry != 0 && was_attempt(note, note->slots[i]))
			{
				aq_slot_retry(stream, partition, note->position, note->slots[i]);
				aq_slot_note_alone(partition, note->position, note->slots[i], note->alone);
				retries++;
			}
			else
			{
				aq_slot_give_back(stream, partition, note->position, note->slots[i]);
				back++;
			}
	}
	if (partition->nretry > 0)
		aq_work_post(note->shm, AQ_WORK_RETRY);
	if (partition->next_timer != 0 && note->terms.receipt != 0)
		aq_work_announce_time(note->shm, partition->next_timer);
	aq_settle_check_done(stream, partition);
	aq_latch_free(&stream->latch);

	if (commit && is_dequeue(note->mode))
	{
		aq_stat_add(AQ_STAT_DEQUEUE_COMMITTED, note->count);
		/* dequeues of followers are counted when these are resolved */
		if (note->count == all)
			aq_traffic_dequeued(note->shm, note->position, &note->consumed, &note->latencies);
	}
	if (commit)
		aq_traffic_lease(note->mode, note->count);
	aq_stat_add(AQ_STAT_RETRIES, retries);
	if (back > 0)
		aq_waiters_wake(note->shm, note->position, back);
}
