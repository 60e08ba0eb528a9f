/*-------------------------------------------------------------------------
 *
 * retry.c
 *	  The worker's jobs for retry counts of rolled back dequeues, and for
 *	  messages that have failed.
 *
 * A rolled back dequeue leaves a bit in the consumer's "retry" bitmap.  The
 * worker first writes and flushes log rows, and then makes the messages ready
 * again (rule 9 of README.md), so that the count survives a crash.
 *
 * A message that is over its retry limit or has expired fails for the
 * consumer.  When all its consumers have finished, and at least one has
 * failed, it is moved to the exception queue, or deleted if there is none.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/worker/worker_private.h"

#include "access/heapam.h"
#include "access/table.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

/*
 * pause before the next try if a table is locked, or the exception queue has
 * no table, in microseconds; while an exception queue cannot be used, it grows to
 * the maximum
 */
#define BATCH_AGAIN ((int64) 100000)
#define MOVE_AGAIN_MAX ((int64) 2000000)

/*
 * Messages of a batch with the same number of attempts get one of this many
 * retry delays: each of them has its own row in the log.
 */
#define BATCH_RANDOMS 16

/* maximum number of failed messages moved in one transaction */
#define MOVE_BATCH 500

/* rolled back dequeues of one partition and consumer */
typedef struct Batch
{
	Stream	   *stream;
	Partition  *partition;
	int			position;
	uint32		n;
	uint16	   *slots;
	bool	   *failed;
	uint8	   *attempts;		/* with this one */
	bool		has_delay;		/* those that have not failed become ready again later, ... */
	TimestampTz *retry_at;		/* ... at these times; 0: failed */
} Batch;

/* --- retry counts ------------------------------------------------------------------ */

static Batch *
make_batch(AqQueue *queue, Stream *stream, Partition *partition, int position, uint32 size)
{
	Batch	   *batch = palloc0(sizeof(Batch));

	batch->stream = stream;
	batch->partition = partition;
	batch->position = position;
	batch->slots = palloc(size * sizeof(uint16));
	batch->failed = palloc0(size * sizeof(bool));
	batch->attempts = palloc(size * sizeof(uint8));
	batch->retry_at = palloc0(size * sizeof(TimestampTz));
	batch->has_delay = queue->retry_delay > 0;
	return batch;
}

/* Fills in the slots, and which of them fail. */
static void
fill_batch(Batch *batch, Frame *frame, uint32 size, AqQueue *queue, TimestampTz now)
{
	FrameSub   *sub = frame_sub(frame, batch->position);
	int			slot = -1;

	while (batch->n < size &&
		   (slot = aq_bitmap_next(bitmap_of(sub->retry), PARTITION_SLOTS, slot + 1)) >= 0)
	{
		Slot	   *s = slot_at(frame, slot);
		int			attempts = aq_frame_attempts(frame, batch->position, slot) + 1;

		batch->failed[batch->n] =
			(aq_queue_over_limit(queue, attempts) && aq_slot_was_alone(sub, slot)) ||
			((s->flags & SLOT_EXPIRES) && s->expires_at <= now);
		batch->attempts[batch->n] = Min(attempts, AQ_MAX_ATTEMPTS);
		batch->slots[batch->n++] = slot;
	}
}

/* Sets the ends of the retry delays. */
static void
set_delays(Batch *batch, const AqQueue *queue, TimestampTz now)
{
	double		randoms[BATCH_RANDOMS];

	if (!batch->has_delay)
		return;
	for (int i = 0; i < BATCH_RANDOMS; i++)
		randoms[i] = aq_retry_delay_random();
	for (uint32 i = 0; i < batch->n; i++)
		if (!batch->failed[i])
			batch->retry_at[i] = now + aq_retry_delay_after(queue, batch->attempts[i], randoms[i % BATCH_RANDOMS]);
}

/*
 * The consumer's view in the batch's frame; NULL if it has lost its bitmap of
 * retries: a session that drops the queue clears the retries of removed
 * consumers before it locks the tables, and then the frame may be evicted.  The
 * caller holds the latch.
 */
static FrameSub *
sub_of_batch(const Batch *batch)
{
	FrameSub   *sub = batch->partition->frame == 0 ? NULL
		: frame_sub(frame_of(batch->partition), batch->position);

	return sub != NULL && sub->retry != 0 ? sub : NULL;
}

/* Collects the rolled back dequeues of the queue, or of one partition. */
static List *
collect_batches(AqQueueShm *shm, AqQueue *queue, Partition *only)
{
	List	   *batches = NIL;
	TimestampTz now = GetCurrentTimestamp();
	ListCell   *lc;

	for (Stream *stream = stream_at(shard_queue(shm)->streams); stream != NULL;
		 stream = stream_at(stream->next))
	{
		/*
		 * the batches are allocated later, because memory must not be
		 * allocated under the latch
		 */
		struct
		{
			Partition  *partition;
			int			position;
			uint32		n;
		}			found[64];
		int			n = 0;

		aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_RETRY);
		for (uint32 i = stream->head; i != 0 && n < lengthof(found); i = partition_at(i)->next)
		{
			Partition  *partition = partition_at(i);
			int			position = -1;

			if (partition->nretry == 0 || partition->frame == 0 ||
				(only != NULL && partition != only))
				continue;
			while (n < lengthof(found) &&
				   (position = aq_frame_next_sub(frame_of(partition), position)) >= 0)
			{
				FrameSub   *sub = frame_sub(frame_of(partition), position);

				if (sub->nretry == 0)
					continue;
				found[n].partition = partition;
				found[n].position = position;
				found[n++].n = sub->nretry;
			}
		}
		aq_latch_free(&stream->latch);
		if (n == lengthof(found))
			aq_work_post(shm, AQ_WORK_RETRY);	/* there may be more */
		for (int i = 0; i < n; i++)
		{
			Batch	   *batch = make_batch(queue, stream, found[i].partition,
										   found[i].position, found[i].n);

			aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_RETRY);
			if (sub_of_batch(batch) != NULL)
				fill_batch(batch, frame_of(batch->partition), found[i].n, queue, now);
			aq_latch_free(&stream->latch);
			set_delays(batch, queue, now);
			if (batch->n > 0)
				batches = lappend(batches, batch);
		}
	}

	foreach(lc, batches)
		if (!aq_heap_lock_for_worker(((Batch *) lfirst(lc))->partition, RowExclusiveLock))
			return NIL;			/* the queue is being dropped */
	return batches;
}

/* A row for each end of a retry delay, and one for what has failed. */
static void
write_batch(Batch *batch)
{
	uint16	   *slots = palloc(batch->n * sizeof(uint16));
	bool	   *written = palloc0(batch->n * sizeof(bool));
	uint32		n = 0;

	for (uint32 i = 0; i < batch->n; i++)
	{
		if (written[i])
			continue;
		n = 0;
		for (uint32 j = i; j < batch->n; j++)
			if (batch->retry_at[j] == batch->retry_at[i])
			{
				slots[n++] = batch->slots[j];
				written[j] = true;
			}
		aq_heap_write_log(batch->partition, LOG_RETRY, batch->retry_at[i], batch->position, slots, n);
	}
	n = 0;
	for (uint32 i = 0; i < batch->n; i++)
		if (batch->failed[i])
			slots[n++] = batch->slots[i];
	if (n > 0)
		aq_heap_write_log(batch->partition, LOG_FAILED, 0, batch->position, slots, n);
}

/*
 * Called after a count was flushed.  Returns true if the consumer can have the
 * message again; false if it has failed, or the consumer was removed
 * meanwhile.  The caller holds the latch.
 */
static bool
end_retry(AqQueueShm *shm, Batch *batch, uint32 i)
{
	Partition  *partition = batch->partition;
	uint32		slot = batch->slots[i];

	if (!aq_slot_counted(partition, batch->position, slot))
		return false;
	if (!batch->failed[i] && !aq_consumer_removed(aq_shm_consumer(shm, batch->position)))
		return true;
	if (batch->failed[i])
	{
		aq_slot_fail(partition, slot);
		partition->expired++;
		aq_traffic_failed(shm, batch->position, 1, GetCurrentTimestamp());
		aq_settle_done(shm, partition, batch->position, slot, InvalidTransactionId);
	}
	else
		aq_settle_removed(shm, partition, batch->position, slot, InvalidTransactionId);
	return false;
}

/* The number of chunks that apply_batch may need. */
static uint32
batch_needs(const Batch *batch)
{
	uint32		needs = 2 + PARTITION_SLOTS / ATTEMPTS_PER_CHUNK;	/* bitmap; directory, counts */

	if (batch->has_delay)		/* directory, timers */
		needs += 2 + batch->n / TIMERS_PER_CHUNK;
	return needs;
}

/*
 * The number of retry timers that the frame can have; two timers remain for
 * each further message.
 */
static uint32
retry_timers(const Partition *partition)
{
	return partition->state == PARTITION_OPEN ? MAX_TIMERS - 2 * (PARTITION_SLOTS - partition->reserved)
		: MAX_TIMERS;
}

/*
 * Called after the counts were flushed: messages become ready again, at once
 * or after the retry delay, or fail.
 */
static void
apply_batch(AqQueueShm *shm, Batch *batch)
{
	Stream	   *stream = batch->stream;
	Partition  *partition = batch->partition;
	uint32		ready = 0;
	uint32		reserved;
	FrameSub   *sub;
	Frame	   *frame;

	aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_RETRY);
	sub = sub_of_batch(batch);
	if (sub == NULL)
	{
		aq_latch_free(&stream->latch);
		return;
	}
	frame = frame_of(partition);
	reserved = frame->timers_reserved;
	if (batch->has_delay && frame->ntimers + frame->timers_reserved + batch->n <= retry_timers(partition))
		aq_frame_prepare(stream, frame, 0, 1, NULL, false, batch->n);
	else
		batch->has_delay = false;
	for (uint32 i = 0; i < batch->n; i++)
	{
		uint32		slot = batch->slots[i];

		if (!aq_bitmap_test(bitmap_of(sub->retry), slot))
			continue;			/* the consumer was removed */
		aq_frame_set_attempts(frame, batch->position, slot,
							  aq_frame_attempts(frame, batch->position, slot) + 1);
		if (!end_retry(shm, batch, i))
			continue;
		if (batch->has_delay && slot_at(frame, slot)->state == SLOT_READY)
		{
			aq_slot_delay(partition, batch->position, slot);
			aq_frame_push_timer(partition, batch->retry_at[i], slot, batch->position, TIMER_RETRY);
		}
		else
		{
			aq_slot_give_back(stream, partition, batch->position, slot);
			ready++;
		}
	}
	aq_frame_drop_timers(frame, frame->timers_reserved - reserved);
	if (partition->next_timer != 0) /* 0 if no message has a delay */
		aq_work_announce_time(shm, partition->next_timer);
	aq_settle_check_done(stream, partition);
	aq_latch_free(&stream->latch);
	if (ready > 0)
		aq_waiters_wake(shm, batch->position, ready);
}

typedef struct Retries
{
	AqQueueShm *shm;
	List	   *batches;
	/* for write_out: the detached frame */
	Stream	   *stream;
	Partition  *partition;
	AqChunk		frame;
} Retries;

static void
apply_batches(void *arg)
{
	Retries    *retries = arg;
	ListCell   *lc;

	foreach(lc, retries->batches)
		apply_batch(retries->shm, lfirst(lc));
}

/*
 * Begins a transaction.  Memory allocated from now on is kept until the next
 * call.
 */
static void
begin(void)
{
	static MemoryContext context;

	if (context == NULL)
		context = AllocSetContextCreate(TopMemoryContext, "pgaq retry", ALLOCSET_DEFAULT_SIZES);
	MemoryContextReset(context);
	aq_job_begin();
	MemoryContextSwitchTo(context);
}

typedef enum Outcome
{
	RETRIES_WRITTEN,
	RETRIES_LOCKED,				/* a session holds a table: try again later */
	RETRIES_NO_MEMORY
} Outcome;

/*
 * Writes the counts of the queue's rolled back dequeues, or of those in one
 * partition, and makes the messages ready again, in one transaction.
 */
static Outcome
write_counts(int32 id, AqQueueShm *shm, Partition *only)
{
	AqQueue    *queue;
	ListCell   *lc;
	Retries		retries = {.shm = shm};
	uint32		needs = 0;
	Outcome		outcome = RETRIES_LOCKED;

	begin();
	queue = aq_catalog_get_by_id(id, true);
	if (queue != NULL)
		retries.batches = collect_batches(shm, queue, only);
	foreach(lc, retries.batches)
		needs += batch_needs(lfirst(lc));
	if (!aq_chunks_try(needs))
		outcome = RETRIES_NO_MEMORY;
	else if (retries.batches != NIL)
	{
		foreach(lc, retries.batches)
			write_batch(lfirst(lc));
		aq_notes_at_commit(apply_batches, &retries);
		outcome = RETRIES_WRITTEN;
	}
	aq_point("retries-written");
	aq_job_commit(outcome == RETRIES_WRITTEN);
	aq_chunks_trim();
	if (outcome == RETRIES_WRITTEN)
		aq_retries_counted(shm);
	return outcome;
}

/* --- retry counts when memory is short ---------------------------------------------------
 *
 * A frame with unwritten counts cannot be evicted, and recording the counts in
 * the frame takes memory.  If no memory is free, the counts are written only
 * to the log, and the frame is evicted: loading the partition reads them
 * again.  Meanwhile other sessions regard the partition as being loaded.
 */

/* Attaches the frame again.  The caller holds the latch. */
static void
attach_frame(Retries *retries)
{
	retries->partition->frame = retries->frame;
	retries->partition->loading = false;
}

/* Release of a claim: attaches the frame again, unchanged. */
static void
reattach_frame(void *ptr, int64 unused)
{
	Retries    *retries = ptr;

	aq_latch_get(&retries->stream->latch, AQ_EXCLUSIVE, AQ_LOC_RETRY);
	attach_frame(retries);
	retries->partition->file = 0;	/* relocate() in heap.c may have skipped this partition */
	aq_latch_free(&retries->stream->latch);
	aq_cond_broadcast(&retries->shm->changed);
}

/* Detaches the frame, if no transaction uses the partition. */
static bool
detach_frame(Retries *retries)
{
	Stream	   *stream = retries->stream;
	Partition  *partition = retries->partition;

	aq_claim_reserve(1);
	aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_RETRY);
	if (partition->stream == stream->index && partition->nretry > 0 &&
		aq_evict_allowed(partition))
	{
		aq_stream_close(stream, partition);
		retries->frame = partition->frame;
		partition->frame = 0;
		partition->loading = true;
		partition->claimant = aq_session_own_number;
		aq_claim_enter(reattach_frame, retries, 0);
	}
	aq_latch_free(&stream->latch);
	return retries->frame != 0;
}

/* Called after the counts were flushed: evicts the frame. */
static void
let_frame_go(void *arg)
{
	Retries    *retries = arg;
	Partition  *partition = retries->partition;
	ListCell   *lc;
	uint32		waiting = 0;

	aq_latch_get(&retries->stream->latch, AQ_EXCLUSIVE, AQ_LOC_RETRY);
	attach_frame(retries);
	aq_claim_end(reattach_frame, retries);
	foreach(lc, retries->batches)
	{
		Batch	   *batch = lfirst(lc);

		for (uint32 i = 0; i < batch->n; i++)
			if (end_retry(retries->shm, batch, i))
			{
				if (batch->has_delay && slot_at(frame_of(partition), batch->slots[i])->state == SLOT_READY)
					waiting++;
				aq_slot_give_back(retries->stream, partition, batch->position, batch->slots[i]);
				if (batch->has_delay && (partition->next_timer == 0 || batch->retry_at[i] < partition->next_timer))
					partition->next_timer = batch->retry_at[i];
			}
	}
	aq_settle_check_done(retries->stream, partition);
	if (partition->frame != 0)
	{
		aq_evict_frame(retries->stream, partition);
		aq_slot_leave_waiting(partition, waiting);
	}
	if (partition->next_timer != 0)
		aq_work_announce_time(retries->shm, partition->next_timer);
	aq_latch_free(&retries->stream->latch);
	foreach(lc, retries->batches)
	{
		Batch	   *batch = lfirst(lc);

		if (!batch->has_delay)
			aq_waiters_wake(retries->shm, batch->position, batch->n);
	}
}

/* Writes the counts of a detached frame, and commits. */
static void
write_detached(Retries *retries, AqQueue *queue)
{
	Frame	   *frame = aq_chunk_ptr(retries->frame);
	TimestampTz now = GetCurrentTimestamp();
	int			position = -1;

	while ((position = aq_frame_next_sub(frame, position)) >= 0)
	{
		uint32		n = frame_sub(frame, position)->nretry;
		Batch	   *batch;

		if (n == 0)
			continue;
		batch = make_batch(queue, retries->stream, retries->partition, position, n);
		fill_batch(batch, frame, n, queue, now);
		set_delays(batch, queue, now);
		write_batch(batch);
		retries->batches = lappend(retries->batches, batch);
	}
	aq_notes_at_commit(let_frame_go, retries);
	aq_point("counts-written-out");
	aq_job_commit(true);
}

/*
 * Writes the partition's counts and evicts its frame; returns false if it is
 * in use.
 */
static bool
write_out(int32 id, AqQueueShm *shm, Stream *stream, Partition *partition)
{
	static Retries retries;		/* static, because the claim needs it after an error */
	AqQueue    *queue;

	retries = (Retries) {.shm = shm, .stream = stream, .partition = partition};
	begin();
	queue = aq_catalog_get_by_id(id, true);
	if (queue == NULL || !aq_heap_lock_for_worker(partition, RowExclusiveLock) || !detach_frame(&retries))
	{
		aq_job_commit(false);
		return false;
	}
	write_detached(&retries, queue);
	aq_retries_counted(shm);
	return true;
}

static bool
has_retries(const Partition *partition)
{
	return partition->nretry > 0;
}

void
aq_retry_job(int32 id, AqQueueShm *shm)
{
	Outcome		outcome = write_counts(id, shm, NULL);
	Partition  *partition;

	if (outcome == RETRIES_WRITTEN)
		return;
	for (Stream *stream = stream_at(shard_queue(shm)->streams); stream != NULL;
		 stream = stream_at(stream->next))
	{
		int64		from = 0;

		while ((partition = aq_stream_partition_from(stream, from, has_retries)) != NULL)
		{
			from = partition->number + 1;
			if (outcome == RETRIES_LOCKED ||
				(!write_out(id, shm, stream, partition) &&
				 write_counts(id, shm, partition) != RETRIES_WRITTEN))
				aq_retries_later(shm, BATCH_AGAIN);
		}
	}
}

/* --- failed messages -------------------------------------------------------------------- */

/*
 * Failed messages of a partition that are being moved to the exception queue.
 */
typedef struct Move
{
	Stream	   *stream;
	Partition  *partition;
	Relation	rel;			/* its message table */
	uint32		n;
	uint32		nmoved;
	bool		soon;			/* the remaining ones can be moved soon: tables are being made */
	AqStories  *stories;		/* what the log says of them; NULL: not read yet */
	uint16		slots[MOVE_BATCH];
	ItemPointerData tids[MOVE_BATCH];
} Move;

/* What the log says of the batch, read when the first of them can be moved to an exception queue. */
static AqStories *
stories_of(Move *move)
{
	if (move->stories == NULL)
		move->stories = aq_dead_letter_read(move->partition, move->slots, move->n);
	return move->stories;
}

/* The descriptions of both queues are retained.  Returns false if the exception queue cannot be used now. */
static bool
put_dead_letters(Move *move, AqQueue *queue, AqQueue *target, const AqMessage *m)
{
	AqPutOptions options = {.priority = m->priority, .sender = m->sender};
	AqPutOptions *each;
	bool		moved = aq_exception_pin(target);
	uint32		n;

	if (!moved)
		return false;
	moved = aq_exception_may_put(target, m->key != NULL);
	if (moved)
	{
		n = aq_dead_letter_make(stories_of(move), move->nmoved, queue, m, &each);
		for (uint32 i = 0; i < n; i++)
			each[i].original_id = m->original_id ? m->original_id : &m->id;
		options.each = each;
		moved = aq_exception_put(queue, &m->id, target, &options, n, m->payload, m->payload_null);
	}
	move->soon = aq_queue_is_sharded(target) && shard_queue(target->shm)->worker_wants;
	return moved;
}

/*
 * Moves the next message of the batch.  Returns false if the exception queue has
 * no table for it yet, or a user has locked the table.
 */
static bool
move_message(Move *move, AqQueue *queue)
{
	HeapTupleData tuple;
	Buffer		buffer;
	AqMessage	m = {0};
	Datum		values[MSG_COLUMNS];
	bool		nulls[MSG_COLUMNS];
	AqQueue    *target;
	bool		moved = true;

	tuple.t_self = move->tids[move->nmoved];
	if (!ItemPointerIsValid(&tuple.t_self) || !heap_fetch(move->rel, SnapshotAny, &tuple, &buffer, false))
		elog(ERROR, "failed message %u is not in its table", move->slots[move->nmoved]);
	aq_heap_read_message(queue, move->stream, &tuple, RelationGetDescr(move->rel), &m, values, nulls);
	target = aq_catalog_exception_queue(queue, m.exception_queue_id);
	if (target != NULL)
		moved = put_dead_letters(move, queue, target, &m);
	ReleaseBuffer(buffer);
	return moved;
}

static void undo_move(void *move, int64 unused);

/*
 * Collects failed slots with which all consumers have finished, at most as many
 * as one transaction moves.
 */
static void
collect_failed(Move *move)
{
	Partition  *partition = move->partition;
	uint32		most = 0;

	aq_claim_reserve(1);
	aq_latch_get(&move->stream->latch, AQ_EXCLUSIVE, AQ_LOC_RETRY);
	if (partition->frame != 0)
		most = Min(MOVE_BATCH, aq_frame_most_messages(frame_of(partition)));
	for (uint32 s = 0; s < PARTITION_SLOTS && move->n < most; s++)
	{
		Slot	   *slot;

		if (frame_of(partition)->segments[s / SEGMENT_SLOTS] == 0)
		{
			s |= SEGMENT_SLOTS - 1;
			continue;
		}
		slot = slot_at(frame_of(partition), s);
		if (slot->state != SLOT_DONE || !(slot->flags & SLOT_FAILED))
			continue;
		move->slots[move->n] = s;
		ItemPointerSet(&move->tids[move->n], slot->block, slot->offset);
		move->n++;
	}
	aq_slot_hold(partition, move->n);	/* until they are moved */
	aq_claim_enter(undo_move, move, 0);
	aq_latch_free(&move->stream->latch);
}

/*
 * Settles the batch: the first nmoved messages were moved, the others were
 * not.
 */
static void
settle_move(Move *move)
{
	Partition  *partition = move->partition;
	TransactionId newest = aq_horizon_newest(); /* the transaction that moved them, or a later one */

	aq_latch_get(&move->stream->latch, AQ_EXCLUSIVE, AQ_LOC_RETRY);
	aq_slot_let_go(partition, move->n);
	for (uint32 i = 0; i < move->nmoved; i++)
		aq_slot_move(partition, move->slots[i]);
	partition->last_taker = newest;
	partition->last_take = GetCurrentTimestamp();
	partition->last_lsn = Max(partition->last_lsn, XactLastCommitEnd);
	aq_settle_check_done(move->stream, partition);
	aq_latch_free(&move->stream->latch);
	aq_stat_add(AQ_STAT_EXCEPTIONS, move->nmoved);
}

static void
undo_move(void *ptr, int64 unused)
{
	Move	   *move = ptr;

	move->nmoved = 0;
	settle_move(move);
}

/* Called after the transaction has committed. */
static void
end_move(void *move)
{
	aq_claim_end(undo_move, move);
	settle_move(move);
}

/*
 * Moves a batch of the partition's failed messages, in the transaction that
 * the caller has begun, and commits it.
 */
static void
move_batch(int32 id, Move *move)
{
	/* a lookup of one queue must not end the description of another one that is in use */
	aq_catalog_retain();
	PG_TRY();
	{
		while (move->nmoved < move->n && move_message(move, aq_catalog_get_by_id(id, false)))
			move->nmoved++;
	}
	PG_FINALLY();
	{
		aq_catalog_release();
	}
	PG_END_TRY();
	table_close(move->rel, NoLock);
	aq_heap_write_log(move->partition, LOG_MOVED, 0, 0, move->slots, move->nmoved);
	aq_point("failed-moved");
	aq_notes_at_commit(end_move, move);
	aq_job_commit(false);
}

/* A user can keep an exception queue locked for hours.  progress: something was moved. */
static int64
next_pause(AqQueueShm *shm, bool progress)
{
	int64	   *pause = &shard_queue(shm)->move_pause;

	*pause = progress || *pause == 0 ? BATCH_AGAIN : Min(*pause * 2, MOVE_AGAIN_MAX);
	return *pause;
}

/* Moves the failed messages of one partition. */
static void
move_failed(int32 id, AqQueueShm *shm, Stream *stream, Partition *partition)
{
	static Move move;			/* static, because the claim needs it after an error */

	do
	{
		aq_job_begin();
		if (aq_catalog_get_by_id(id, true) == NULL ||
			!aq_heap_lock_for_worker(partition, RowExclusiveLock))
		{
			aq_job_commit(false);
			aq_work_later(shm, AQ_WORK_FAILED, BATCH_AGAIN);
			return;
		}
		if (partition->frame == 0)
			aq_load_partition(shm, partition);
		memset(&move, 0, sizeof(move));
		move.stream = stream;
		move.partition = partition;
		move.rel = aq_heap_open_messages(partition, RowExclusiveLock);
		collect_failed(&move);
		if (move.n == 0)
		{
			aq_claim_end(undo_move, &move);
			table_close(move.rel, NoLock);
			aq_job_commit(false);
			return;
		}
		move_batch(id, &move);
		if (move.nmoved == move.n)
			shard_queue(shm)->move_pause = 0;
	} while (move.nmoved == move.n && !aq_worker_turn_is_over());
	if (move.nmoved == move.n)
	{
		aq_work_post(shm, AQ_WORK_FAILED);
		return;
	}

	/* the exception queue had no table, or could not be used */
	aq_work_later(shm, AQ_WORK_FAILED, move.soon && !aq_pool_is_empty() ? 1000 : next_pause(shm, move.nmoved > 0));
}

static bool
has_failed(const Partition *partition)
{
	return partition->nfailed > 0;
}

void
aq_retry_failed_job(int32 id, AqQueueShm *shm)
{
	for (Stream *stream = stream_at(shard_queue(shm)->streams); stream != NULL;
		 stream = stream_at(stream->next))
	{
		Partition  *partition;
		int64		from = 0;

		while ((partition = aq_stream_partition_from(stream, from, has_failed)) != NULL)
		{
			if (aq_worker_turn_is_over())
			{
				aq_work_post(shm, AQ_WORK_FAILED);
				return;
			}
			from = partition->number + 1;
			move_failed(id, shm, stream, partition);
		}
	}
}
