/*-------------------------------------------------------------------------
 *
 * reclaim.c
 *	  The worker's slow jobs: truncating consumed partitions, counting
 *	  partitions after a restart, and cleaning up after removed consumers.
 *
 * A partition is truncated in place: no catalog row is written.  First WAL is
 * flushed up to the last dequeue, which may have been committed
 * asynchronously.  Then the messages are truncated, then the log; a crash in
 * between leaves log rows of ordinals that no longer exist, which is harmless,
 * because ordinals are never reused.
 *
 * Truncation is not MVCC-safe, so a partition waits until its last dequeue is
 * older than every snapshot that can read it, see horizon.c, or for
 * pgaq.reuse_grace.
 *
 * An open partition might never become full.  If it is large, all its messages
 * are done, and it is not used for pgaq.idle_grace, it is closed, and then truncated
 * like others.  A truncation so is paid for by the bytes that were written, and a
 * busy queue has none of these.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/worker/worker_private.h"

#include "access/multixact.h"
#include "access/table.h"
#include "access/transam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/heap.h"
#include "storage/lmgr.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

/*
 * pause before the next try if a partition cannot be truncated now, in
 * microseconds
 */
#define RECLAIM_AGAIN ((int64) 200000)

/*
 * partitions processed under one hold of the stream's latch, after a consumer
 * was removed
 */
#define PARTITIONS_AT_A_TIME 16

int			aq_reclaim_grace_ms = 30000;
int			aq_reclaim_idle_ms = 10000;

/* --- truncation ------------------------------------------------------------------------ */

/*
 * The time at which the partition may be truncated; 0: now.  A snapshot from
 * before the removal of a consumer must still see its messages, so a removal
 * counts as a dequeue.
 */
static TimestampTz
not_before(Partition *partition, int64 retention, TransactionId horizon)
{
	TimestampTz now = GetCurrentTimestamp();
	TimestampTz grace = partition->last_take + (int64) aq_reclaim_grace_ms * 1000;

	if (partition->last_take == 0)
		return 0;				/* no message was ever taken from it */
	if (retention > 0 && partition->last_take + retention > now)
		return partition->last_take + retention;
	if (now >= grace)
		return 0;
	if (TransactionIdIsValid(partition->last_taker) &&
		TransactionIdPrecedes(partition->last_taker, horizon))
		return 0;
	return Min(grace, now + RECLAIM_AGAIN);
}

static void
truncate_table(Oid relid)
{
	Relation	rel = table_open(relid, NoLock);

	heap_truncate_one_rel(rel);
	aq_compat_after_truncate(rel, aq_age_to_advance());
	table_close(rel, NoLock);
}

/*
 * Truncates one partition; returns false if a session has locked its tables.
 */
static bool
reclaim(ShardQueue *sq, Partition *partition)
{
	if (!aq_heap_lock_for_worker(partition, AccessExclusiveLock))
		return false;
	if (!XLogRecPtrIsInvalid(partition->last_lsn))
		XLogFlush(partition->last_lsn);
	aq_point("before-truncation");
	truncate_table(partition->messages);
	pg_atomic_fetch_add_u64(&sq->truncated_messages, 1);
	aq_point("between-truncations");
	truncate_table(partition->log);
	pg_atomic_fetch_add_u64(&sq->truncated_logs, 1);
	aq_point("after-truncation");
	return true;
}

/*
 * Partitions that the worker has taken from the queue's list of consumed ones.
 */
static struct
{
	AqQueueShm *shm;
	uint32		current;		/* being truncated */
	uint32		list;			/* list of further ones */
}			taken;

/* Release of a claim: returns the partitions to the list. */
static void
put_back_taken(void *ptr, int64 unused)
{
	ShardQueue *sq = shard_queue(taken.shm);

	if (taken.current != 0)
		aq_settle_list_done(sq, partition_at(taken.current));
	taken.current = 0;
	while (taken.list != 0)
	{
		Partition  *partition = partition_at(taken.list);

		taken.list = partition->next;
		aq_settle_list_done(sq, partition);
	}
}

/* Called when the truncation is committed. */
static void
truncated(void *partition)
{
	taken.current = 0;
	aq_tables_give_back(taken.shm, partition);
	aq_stat_add(AQ_STAT_PARTITION_REUSES, 1);
}

/* Truncates the current partition in a separate transaction. */
static void
reclaim_current(AqQueueShm *shm)
{
	Partition  *partition = partition_at(taken.current);

	partition->state = PARTITION_TRUNCATING;
	aq_job_begin();
	if (reclaim(shard_queue(shm), partition))
		aq_notes_at_commit(truncated, partition);
	aq_job_commit(false);
	if (taken.current == 0)
		aq_tables_check_surplus(shm);
	else						/* a session has locked its tables */
	{
		taken.current = 0;
		aq_settle_list_done(shard_queue(shm), partition);
		aq_work_later(shm, AQ_WORK_RECLAIM, RECLAIM_AGAIN);
	}
}

/*
 * Returns those taken partitions to the queue's list that cannot be truncated
 * yet; returns when the first of them can be, or 0.
 */
static TimestampTz
put_back_not_due(ShardQueue *sq, int64 retention, TransactionId horizon)
{
	uint32		list = taken.list;
	TimestampTz next = 0;

	taken.list = 0;
	while (list != 0)
	{
		Partition  *partition = partition_at(list);
		TimestampTz when = not_before(partition, retention, horizon);

		list = partition->next;
		if (when != 0)
		{
			aq_settle_list_done(sq, partition);
			aq_clock_sooner(&next, when);
			continue;
		}
		partition->next = taken.list;
		taken.list = partition->index;
	}
	return next;
}

/* --- open partitions that are not used ----------------------------------------------------- */

/*
 * Follows an open partition that is watched; closes it if all its messages are done,
 * it was not used for pgaq.idle_grace, and it can be truncated now: otherwise the next
 * message might need another pair of tables.  The horizon only says whether that
 * pays, as the partition is not in the list yet.  Returns when to look again; 0: not.
 * Each enqueue and dequeue writes bytes.  Latch held.
 */
static TimestampTz
follow(Stream *stream, Partition *partition, int64 retention, TransactionId horizon)
{
	const int64 patience = (int64) aq_reclaim_idle_ms * 1000;
	uint64		bytes = pg_atomic_read_u64(&partition->bytes);
	int64		now = aq_clock_us();
	TimestampTz when;

	if (partition->watched_at == 0 || bytes != partition->watched_bytes)
	{
		partition->watched_bytes = bytes;
		partition->watched_at = now;
	}
	if (now - partition->watched_at < patience)
		return GetCurrentTimestamp() + partition->watched_at + patience - now;
	if (partition->own_subid != InvalidSubTransactionId)
		return GetCurrentTimestamp() + RECLAIM_AGAIN;
	if (!aq_slot_all_done(partition))
	{
		partition->watched = false; /* the end of its last message is noticed */
		return 0;
	}
	when = not_before(partition, retention, horizon);
	if (when != 0)
		return when;
	aq_stream_close(stream, partition);
	aq_settle_check_done(stream, partition);
	return 0;
}

static TimestampTz
follow_open(AqQueueShm *shm, int64 retention, TransactionId horizon)
{
	TimestampTz next = 0;

	for (Stream *stream = stream_at(shard_queue(shm)->streams); stream != NULL;
		 stream = stream_at(stream->next))
	{
		Partition  *partition;

		aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_PARTITION_RECLAIM);
		partition = partition_at(stream->open);
		if (partition != NULL && partition->watched)
			aq_clock_sooner(&next, follow(stream, partition, retention, horizon));
		aq_latch_free(&stream->latch);
	}
	return next;
}

void
aq_reclaim_job(int32 id, AqQueueShm *shm)
{
	ShardQueue *sq = shard_queue(shm);
	AqQueue    *queue;
	int64		retention = 0;
	TransactionId horizon;
	TimestampTz next;

	aq_job_begin();
	queue = aq_catalog_get_by_id(id, true);
	if (queue != NULL)
		retention = queue->retention;
	aq_job_commit(false);
	if (queue == NULL)
	{
		/* the transaction that creates it has not ended */
		aq_work_later(shm, AQ_WORK_RECLAIM, RECLAIM_AGAIN);
		return;
	}

	/*
	 * Take the list before the horizon is computed: the horizon is valid only
	 * for transactions that ended earlier, and all takers of the listed
	 * partitions have.
	 */
	aq_claim_reserve(1);
	taken.shm = shm;
	taken.list = pg_atomic_exchange_u32(&sq->done, 0);
	aq_claim_enter(put_back_taken, &taken, 0);
	aq_point("consumed-listed");
	horizon = aq_horizon_oldest();
	next = put_back_not_due(sq, retention, horizon);
	aq_clock_sooner(&next, follow_open(shm, retention, horizon));
	if (next != 0)
		aq_work_later(shm, AQ_WORK_RECLAIM, Max(next - GetCurrentTimestamp(), 10000));
	while (taken.list != 0)
	{
		taken.current = taken.list;
		taken.list = partition_at(taken.current)->next;
		reclaim_current(shm);
	}
	aq_claim_end(put_back_taken, &taken);
}

/* --- after a restart ----------------------------------------------------------------------- */

static bool
is_uncounted(const Partition *partition)
{
	return !partition->counted && partition->state == PARTITION_CLOSED;
}

/* Count what is in the partitions that have not been read yet; false: not in all of them. */
static bool
count_each(AqQueueShm *shm, bool (*count) (AqQueueShm *shm, Partition *partition))
{
	bool		complete = true;

	for (Stream *stream = stream_at(shard_queue(shm)->streams); stream != NULL;
		 stream = stream_at(stream->next))
	{
		Partition  *partition;
		int64		from = 0;

		while ((partition = aq_stream_partition_from(stream, from, is_uncounted)) != NULL)
		{
			from = partition->number + 1;
			complete &= count(shm, partition);
		}
	}
	return complete;
}

static bool
count_here(AqQueueShm *shm, Partition *partition)
{
	aq_load_count(shm, partition);
	return true;
}

void
aq_reclaim_count(AqQueueShm *shm)
{
	(void) count_each(shm, count_here);
}

/* In a transaction of its own; false: a session has locked the tables. */
static bool
count_in_worker(AqQueueShm *shm, Partition *partition)
{
	bool		locked;

	aq_job_begin();
	locked = aq_heap_lock_for_worker(partition, AccessShareLock);
	if (locked)
		aq_load_count(shm, partition);
	aq_job_commit(false);
	return locked;
}

void
aq_reclaim_recount_job(int32 id, AqQueueShm *shm)
{
	if (count_each(shm, count_in_worker))
	{
		shard_queue(shm)->recovered = true;
		aq_lag_recheck(shm);
		aq_tables_check_surplus(shm);
		aq_work_post(shm, AQ_WORK_POSITIONS);
	}
	else
		aq_work_later(shm, AQ_WORK_RECOUNT, RECLAIM_AGAIN);
}

/*
 * --- after the removal of consumers
 * ------------------------------------------------------------------
 */

static void
finish_bits(AqQueueShm *shm, Stream *stream, Partition *partition, int position, TransactionId removal)
{
	FrameSub   *sub = frame_sub(frame_of(partition), position);
	int			slot = -1;

	if (sub == NULL)
		return;
	while (sub->nready > 0 &&
		   (slot = aq_bitmap_next(bitmap_of(sub->ready), PARTITION_SLOTS, slot + 1)) >= 0)
	{
		(void) aq_slot_take(stream, partition, position, slot);
		aq_settle_removed(shm, partition, position, slot, removal);
	}
	slot = -1;
	while (sub->nwaiting > 0 &&
		   (slot = aq_bitmap_next(bitmap_of(sub->waiting), PARTITION_SLOTS, slot + 1)) >= 0)
	{
		(void) aq_slot_take_waiting(partition, position, slot);
		aq_settle_removed(shm, partition, position, slot, removal);
	}
	slot = -1;
	while (sub->nretry > 0 &&
		   (slot = aq_bitmap_next(bitmap_of(sub->retry), PARTITION_SLOTS, slot + 1)) >= 0)
	{
		(void) aq_slot_counted(partition, position, slot);
		aq_settle_removed(shm, partition, position, slot, removal);
	}
	for (slot = 0; slot < PARTITION_SLOTS && sub_leased(sub) > 0; slot++)
		if (aq_slot_hold_lease(partition, position, slot))
			aq_settle_removed(shm, partition, position, slot, removal);
}

/* Lists the positions of removed consumers; returns their number. */
static int
list_removed(AqQueueShm *shm, int *positions)
{
	int			n = 0;

	for (int position = 0; position < AQ_MAX_CONSUMERS; position++)
	{
		AqConsumerShm *consumer = aq_shm_consumer(shm, position);

		if (consumer != NULL && aq_consumer_removed(consumer))
			positions[n++] = position;
	}
	return n;
}

/* Has the consumer unfinished messages in partitions that are not resident?  Then it leaves them. */
static bool
is_away(Stream *stream, int position)
{
	StreamSub  *sub = stream_sub(stream, position);

	return sub != NULL && sub->away > 0;
}

/*
 * Processes some partitions of the stream, from number *from on, so few that
 * the latch is held only briefly.  Returns false if these were the last ones.
 * *complete: none is being loaded, perhaps with messages of the consumers.
 */
static bool
finish_partitions(AqQueueShm *shm, Stream *stream, int64 *from, const int *positions, int n,
				  TransactionId removal, bool *recount, bool *complete)
{
	int			left = PARTITIONS_AT_A_TIME;
	uint32		index;
	bool		away = false;

	aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_PARTITION_RECLAIM);
	for (int i = 0; i < n; i++)
		away |= aq_consumer_removed(aq_shm_consumer(shm, positions[i])) && is_away(stream, positions[i]);
	for (index = stream->head; index != 0 && left > 0;)
	{
		Partition  *partition = partition_at(index);

		index = partition->next;
		if (partition->number < *from)
			continue;
		*from = partition->number + 1;
		left--;
		*complete &= !partition->loading;
		if (partition->frame == 0)
		{
			/* one that was counted, and has no messages of them, need not be read */
			partition->counted &= !away;
			*recount |= !partition->counted;
			continue;
		}
		/* the position may already have a new consumer */
		for (int i = 0; i < n; i++)
			if (aq_consumer_removed(aq_shm_consumer(shm, positions[i])))
				finish_bits(shm, stream, partition, positions[i], removal);
		aq_settle_check_done(stream, partition);
	}
	for (int i = 0; i < n; i++)
		if (index == 0 && aq_consumer_removed(aq_shm_consumer(shm, positions[i])))
			aq_slot_forget_away(stream, positions[i]);
	aq_latch_free(&stream->latch);
	return index != 0;
}

/*
 * Marks messages for removed consumers as done.  Partitions that are not
 * resident are counted again, without these consumers.  Returns false if there
 * may be others: it must be called again.
 */
bool
aq_reclaim_finish_removed(AqQueueShm *shm, const int *positions, int n)
{
	TransactionId removal = aq_horizon_newest();	/* the last removal, or a later transaction */
	bool		recount = false,
				complete = true;

	for (Stream *stream = stream_at(shard_queue(shm)->streams); stream != NULL;
		 stream = stream_at(stream->next))
	{
		int64		from = 0;

		/* messages of another node go back: the consumer is not removed there */
		while (!stream_is_held(stream) && finish_partitions(shm, stream, &from, positions, n, removal, &recount, &complete))
			;
	}
	aq_cond_broadcast(&shm->changed);
	if (recount)
		aq_work_post(shm, AQ_WORK_RECOUNT);
	return complete;
}

void
aq_reclaim_removed_job(int32 id, AqQueueShm *shm)
{
	int			positions[AQ_MAX_CONSUMERS];
	int			n = list_removed(shm, positions);

	(void) aq_reclaim_finish_removed(shm, positions, n);
	aq_work_post(shm, AQ_WORK_POSITIONS);
}
