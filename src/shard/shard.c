/*-------------------------------------------------------------------------
 *
 * shard.c
 *	  The part record of "shard": its area, its parameters, the pools of
 *	  streams and partitions, and the store's record.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/shard_private.h"

#include "access/twophase.h"
#include "miscadmin.h"
#include "utils/guc.h"

ShardArea  *aq_shard;
Partition  *aq_partitions;
Stream	   *aq_streams;
ShardQueue *aq_shard_queues;
Doubt	   *aq_doubts;

int			aq_max_partitions = 16384;
int			aq_max_streams = 8192;
int			aq_reuse_grace_ms = 30000;

/* --- shared memory -------------------------------------------------------------- */

static uint32
doubt_count(void)
{
	/* a transaction in doubt needs one per partition it has touched */
	return max_prepared_xacts * 64 + 16;
}

static Size
lay_out(void *area)
{
	Size		size = 0;

	aq_shard = aq_carve(area, &size, sizeof(ShardArea));
	aq_partitions = aq_carve(area, &size, mul_size(aq_max_partitions + 1, sizeof(Partition)));
	aq_streams = aq_carve(area, &size, mul_size(aq_max_streams + 1, sizeof(Stream)));
	aq_shard_queues = aq_carve(area, &size, mul_size(aq_object_limit + 1, sizeof(ShardQueue)));
	aq_doubts = aq_carve(area, &size, mul_size(doubt_count(), sizeof(Doubt)));
	return size;
}

static Size
shmem_size(void)
{
	return lay_out(NULL);
}

static uint32
queue_of_stream(int child, uint32 *database)
{
	return aq_queue_of_latch(aq_streams[child].queue, database);
}

static void
reset_counters(ShardQueue *queue)
{
	pg_atomic_init_u64(&queue->added_by_sessions, 0);
	pg_atomic_init_u64(&queue->added_by_worker, 0);
	pg_atomic_init_u64(&queue->truncated_messages, 0);
	pg_atomic_init_u64(&queue->truncated_logs, 0);
}

static void
init_history(CacheHistory *history)
{
	history->since = GetCurrentTimestamp();
	pg_atomic_init_u64(&history->evictions, 0);
	for (int i = 0; i < RETURN_CLASSES; i++)
	{
		pg_atomic_init_u64(&history->returned[false][i], 0);
		pg_atomic_init_u64(&history->returned[true][i], 0);
	}
	pg_atomic_init_u64(&history->closed, 0);
	pg_atomic_init_u64(&history->closed_slots, 0);
	pg_atomic_init_u64(&history->most_slots, 0);
	pg_atomic_init_u64(&history->most_unused, 0);
}

static void
shmem_init(void *area, bool found)
{
	Size		size = lay_out(area);

	aq_trace_on_name(AQ_LATCH_QUEUE, aq_queue_of_latch);
	aq_trace_on_name(AQ_LATCH_STREAM, queue_of_stream);
	if (found)
		return;

	memset(area, 0, size);
	aq_latch_init(&aq_shard->partitions_latch, AQ_LATCH_PARTITIONS, 0);
	aq_latch_init(&aq_shard->doubt_latch, AQ_LATCH_DOUBT, 0);
	pg_atomic_init_u32(&aq_shard->clock_hand, 0);
	pg_atomic_init_u32(&aq_shard->ndoubts, 0);
	pg_atomic_init_u64(&aq_shard->doubt_changes, 0);
	aq_shard->max_doubts = doubt_count();
	for (uint32 i = aq_max_partitions; i >= 1; i--)
	{
		aq_partitions[i].index = i;
		aq_partitions[i].next = aq_shard->unused_partition;
		aq_shard->unused_partition = i;
	}
	aq_shard->nunused_partitions = aq_max_partitions;
	for (uint32 i = aq_max_streams; i >= 1; i--)
	{
		aq_latch_init(&aq_streams[i].latch, AQ_LATCH_STREAM, i);
		aq_streams[i].index = i;
		aq_streams[i].next = aq_shard->unused_stream;
		aq_shard->unused_stream = i;
	}
	for (int i = 0; i <= aq_object_limit; i++)
	{
		aq_latch_init(&aq_shard_queues[i].latch, AQ_LATCH_QUEUE, i);
		pg_atomic_init_u32(&aq_shard_queues[i].wanting, 0);
		reset_counters(&aq_shard_queues[i]);
	}
	init_history(&aq_shard->history);
}

static const AqStore shard_store;

static void
define_parameters(void)
{
	DefineCustomIntVariable("pgaq.max_partitions",
							"Number of partitions, of all queues, that can exist at a time.",
							"A partition holds up to 16384 messages in a table of its own.",
							&aq_max_partitions,
							16384, 64, 10000000,
							PGC_POSTMASTER, 0,
							NULL, NULL, NULL);
	DefineCustomIntVariable("pgaq.max_streams",
							"Number of streams, of all queues in use, that can exist at a time.",
							"A queue has a stream per shard and priority used, and another for delayed messages.",
							&aq_max_streams,
							8192, 64, 1000000,
							PGC_POSTMASTER, 0,
							NULL, NULL, NULL);
	DefineCustomIntVariable("pgaq.reuse_grace",
							"How long a consumed partition waits for snapshots older than its last dequeue.",
							"A partition is truncated and reused when no snapshot can see its messages "
							"as not consumed, or after this time.",
							&aq_reuse_grace_ms,
							30000, 0, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_MS,
							NULL, NULL, NULL);
	aq_chunks_on_pressure(aq_evict_one);
	aq_jobs_on_prepared_end(aq_doubt_ended);
	aq_store_register(&shard_store);
	aq_xact_init();
}

const AqPart aq_shard_part = {
	.name = "shard",
	.define_parameters = define_parameters,
	.shmem_size = shmem_size,
	.shmem_init = shmem_init,
};

/* --- partitions ------------------------------------------------------------------------- */

/* Does every partition belong to a queue?  Read without the latch. */
bool
aq_partitions_used_up(void)
{
	return aq_shard->nunused_partitions == 0;
}

/* Do so many belong to queues that those should give up what they do not need? */
bool
aq_partitions_scarce(void)
{
	return aq_shard->nunused_partitions < (uint32) aq_max_partitions / 4;
}

void
aq_partitions_refuse(void)
{
	ereport(ERROR,
			aq_error(AQ_ERR_CACHE_FULL, "too many partitions exist"),
			errhint("Raise pgaq.max_partitions (now %d) and restart the server.",
					aq_max_partitions));
}

/* A claim: in no list yet. */
static void
release_unplaced(void *partition, int64 unused)
{
	aq_partition_release(partition);
}

Partition *
aq_partition_alloc(AqQueueShm *shm)
{
	Partition  *partition = NULL;
	uint32		index;

	aq_claims_reserve(1);
	aq_latch_get(&aq_shard->partitions_latch, AQ_EXCLUSIVE, AQ_LOC_PARTITION_OPEN);
	index = aq_shard->unused_partition;
	if (index != 0)
	{
		partition = partition_at(index);
		aq_shard->unused_partition = partition->next;
		aq_shard->nunused_partitions--;
		aq_shard->most_partitions = Max(aq_shard->most_partitions, index);
		memset(partition, 0, sizeof(Partition));
		partition->index = index;
		partition->queue = shm->object->index;
		partition->claimant = aq_session_own_number;
		pg_atomic_init_u64(&partition->browsed, 0);
		aq_claim_enter(release_unplaced, partition, 0);
	}
	aq_latch_free(&aq_shard->partitions_latch);
	if (partition == NULL)
		aq_partitions_refuse();
	return partition;
}

/* It has its place in a list, or goes with the transaction's own tables.  Does not raise. */
void
aq_partition_placed(Partition *partition)
{
	aq_claim_end(release_unplaced, partition);
}

/* It is in no list any more.  Does not raise. */
void
aq_partition_release(Partition *partition)
{
	aq_doubt_forget(partition);
	aq_latch_get(&aq_shard->partitions_latch, AQ_EXCLUSIVE, AQ_LOC_PARTITION_OPEN);
	partition->state = PARTITION_UNUSED;
	partition->stream = 0;
	partition->queue = 0;
	partition->next = aq_shard->unused_partition;
	aq_shard->unused_partition = partition->index;
	aq_shard->nunused_partitions++;
	aq_latch_free(&aq_shard->partitions_latch);
}

/* Put it into its place in the stream: by number.  Latch held. */
void
aq_partition_append(Stream *stream, Partition *partition)
{
	Partition  *before = partition_at(stream->tail);

	while (before != NULL && before->number > partition->number)
		before = partition_at(before->prev);

	partition->stream = stream->index;
	partition->prev = before ? before->index : 0;
	partition->next = before ? before->next : stream->head;
	if (partition->next)
		partition_at(partition->next)->prev = partition->index;
	else
		stream->tail = partition->index;
	if (before)
		before->next = partition->index;
	else
		stream->head = partition->index;
}

/* Take it out of the stream, and out of the consumers' hints.  Latch held. */
void
aq_partition_unlink(Stream *stream, Partition *partition)
{
	for (int position = 0; position < AQ_MAX_CONSUMERS; position++)
	{
		StreamSub  *ssub = stream_sub(stream, position);

		if (ssub == NULL)
			position |= SUBS_PER_CHUNK - 1;
		else if (ssub->hint == partition->index)
			ssub->hint = partition->next;
	}
	if (partition->prev)
		partition_at(partition->prev)->next = partition->next;
	else
		stream->head = partition->next;
	if (partition->next)
		partition_at(partition->next)->prev = partition->prev;
	else
		stream->tail = partition->prev;
	if (stream->open == partition->index)
		stream->open = 0;
	partition->next = partition->prev = 0;
}

/* If it is the stream's open one: a next message opens another.  Latch held. */
void
aq_stream_close(Stream *stream, Partition *partition)
{
	CacheHistory *history = &aq_shard->history;

	if (partition->state != PARTITION_OPEN)
		return;
	partition->state = PARTITION_CLOSED;
	stream->open = 0;
	if (partition->reserved == 0)
		return;
	pg_atomic_fetch_add_u64(&history->closed, 1);
	pg_atomic_fetch_add_u64(&history->closed_slots, partition->reserved);
	aq_raise_to(&history->most_slots, partition->reserved);
	aq_raise_to(&history->most_unused, PARTITION_SLOTS - partition->reserved);
}

/* The stream's first partition from a number on that matches. */
Partition *
aq_partition_from(Stream *stream, int64 from, bool (*matches) (const Partition *))
{
	Partition  *partition;

	aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_PARTITION_RECLAIM);
	partition = partition_at(stream->head);
	while (partition != NULL && (partition->number < from || !matches(partition)))
		partition = partition_at(partition->next);
	aq_latch_free(&stream->latch);
	return partition;
}

/* --- streams -------------------------------------------------------------------------------- */

/*
 * A queue's streams form a list in the order in which dequeue looks at them:
 * by priority, delayed ones after the others, by shard.  It and the array by
 * number only grow while the queue is in use, so readers take no latch.
 */
static int
dequeue_rank(int number)
{
	int			shard = number / (2 * AQ_PRIORITIES);

	return (number % (2 * AQ_PRIORITIES)) * AQ_MAX_SHARDS + shard;
}

Stream *
aq_stream_find(AqQueueShm *shm, int number)
{
	/* the number may come from a message id that does not exist */
	return number < STREAM_NUMBERS ? stream_at(shard_queue(shm)->numbered[number]) : NULL;
}

Stream *
aq_stream_make(AqQueueShm *shm, int number)
{
	ShardQueue *queue = shard_queue(shm);
	Stream	   *stream = aq_stream_find(shm, number);
	volatile uint32 *link;

	if (stream != NULL)
		return stream;

	aq_latch_get(&queue->latch, AQ_EXCLUSIVE, AQ_LOC_PARTITION_OPEN);
	stream = aq_stream_find(shm, number);
	if (stream == NULL)
	{
		aq_latch_get(&aq_shard->partitions_latch, AQ_EXCLUSIVE, AQ_LOC_PARTITION_OPEN);
		stream = stream_at(aq_shard->unused_stream);
		if (stream != NULL)
			aq_shard->unused_stream = stream->next;
		aq_latch_free(&aq_shard->partitions_latch);
	}
	else
	{
		aq_latch_free(&queue->latch);
		return stream;
	}
	if (stream != NULL)
	{
		stream->queue = shm->object->index;
		stream->number = number;
		stream->shard = number / (2 * AQ_PRIORITIES);
		stream->priority = number / 2 % AQ_PRIORITIES;
		stream->delayed = number % 2;
		stream->head = stream->tail = stream->open = 0;
		stream->enqueued = 0;
		memset(&stream->sub0, 0, sizeof(StreamSub));
		memset(stream->subs, 0, sizeof(stream->subs));

		link = &queue->streams;
		while (*link != 0 && dequeue_rank(stream_at(*link)->number) < dequeue_rank(number))
			link = &stream_at(*link)->next;
		stream->next = *link;
		pg_write_barrier();		/* complete before it can be seen */
		*link = stream->index;
		queue->numbered[number] = stream->index;
		queue->nstreams++;
	}
	aq_latch_free(&queue->latch);
	if (stream == NULL)
		ereport(ERROR,
				aq_error(AQ_ERR_CACHE_FULL, "too many streams exist"),
				errhint("Raise pgaq.max_streams (now %d) and restart the server.", aq_max_streams));
	return stream;
}

/* --- the store ---------------------------------------------------------------------------------- */

static void
load(AqQueue *queue, AqQueueShm *shm)
{
	aq_load_queue(queue, shm);
}

static void
release_list(uint32 list)
{
	while (list != 0)
	{
		Partition  *partition = partition_at(list);

		list = partition->next;
		aq_frame_free(partition);
		aq_partition_release(partition);
	}
}

/*
 * Can the partition be learnt from its tables again?  What a rollback or a
 * timer needs is in memory only, or has to be done in time.
 */
static bool
partition_is_idle(const Partition *partition)
{
	return (partition->state == PARTITION_CLOSED || partition->state == PARTITION_OPEN) &&
		partition->pending == 0 && partition->inflight == 0 && partition->nretry == 0 &&
		partition->nfailed == 0 && partition->ndoubt == 0 && partition->next_timer == 0 &&
		!partition->loading && partition->own_subid == InvalidSubTransactionId &&
		(partition->frame == 0 || frame_of(partition)->timers_reserved == 0);
}

static bool
idle(AqQueueShm *shm)
{
	ShardQueue *queue = shard_queue(shm);
	bool		idle = !queue->worker_wants && pg_atomic_read_u32(&queue->wanting) == 0;

	for (Stream *stream = stream_at(queue->streams); stream != NULL && idle;
		 stream = stream_at(stream->next))
	{
		aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_QUEUE_UNLOAD);
		for (uint32 i = stream->head; i != 0 && idle; i = partition_at(i)->next)
			idle = partition_is_idle(partition_at(i));
		aq_latch_free(&stream->latch);
	}
	return idle;
}

/*
 * No session can reach the queue any more, but one that looks for a frame to
 * evict goes through all partitions: hence the latch.
 */
void
aq_unload_queue(AqQueueShm *shm)
{
	ShardQueue *queue = shard_queue(shm);
	uint32		list = queue->streams;

	release_list(queue->empty);
	release_list(queue->done);
	queue->empty = queue->done = 0;
	queue->nempty = queue->nstreams = queue->opened = 0;
	queue->last_table_no = 0;
	queue->trouble = 0;
	reset_counters(queue);
	queue->recovered = false;
	queue->worker_wants = false;
	queue->streams = 0;
	memset((void *) queue->numbered, 0, sizeof(queue->numbered));
	while (list != 0)
	{
		Stream	   *stream = stream_at(list);

		list = stream->next;
		aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_QUEUE_UNLOAD);
		release_list(stream->head);
		aq_chunks_free(stream->subs, SUB_DIRECTORY);
		memset(stream->subs, 0, sizeof(stream->subs));
		stream->head = stream->tail = stream->open = 0;
		stream->queue = 0;
		aq_latch_free(&stream->latch);
		aq_latch_get(&aq_shard->partitions_latch, AQ_EXCLUSIVE, AQ_LOC_QUEUE_DROP);
		stream->next = aq_shard->unused_stream;
		aq_shard->unused_stream = stream->index;
		aq_latch_free(&aq_shard->partitions_latch);
	}
}

static bool
is_uncounted(const Partition *partition)
{
	return !partition->counted && partition->state == PARTITION_CLOSED;
}

/* After a restart: learn what is in the partitions that nobody has read yet. */
static void
count_messages(AqQueue *queue)
{
	for (Stream *stream = stream_at(shard_queue(queue->shm)->streams); stream != NULL;
		 stream = stream_at(stream->next))
	{
		Partition  *partition;
		int64		from = 0;

		while ((partition = aq_partition_from(stream, from, is_uncounted)) != NULL)
		{
			from = partition->number + 1;
			aq_count_partition(queue->shm, partition);
		}
	}
}

static bool
holds_messages(AqQueue *queue)
{
	for (Stream *stream = stream_at(shard_queue(queue->shm)->streams); stream != NULL;
		 stream = stream_at(stream->next))
	{
		bool		found = false;
		uint32		index;

		aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_QUEUE_DROP);
		for (index = stream->head; index != 0 && !found; index = partition_at(index)->next)
			found = partition_at(index)->open > 0;
		aq_latch_free(&stream->latch);
		if (found)
			return true;
	}
	return false;
}

/* The worker may not have got to those who were removed. */
static void
forget_removed(AqQueue *queue)
{
	for (int i = 0; i < queue->nconsumers; i++)
	{
		if (queue->consumers[i].name == NULL)
		{
			aq_removed_job(queue->id, queue->shm);
			return;
		}
	}
}

static void
drop(AqQueue *queue, bool force)
{
	if (!force)
	{
		forget_removed(queue);
		count_messages(queue);
	}
	aq_tables_lock(queue);
	if (!force)
	{
		/* the last prepared transaction may have ended just now */
		(void) aq_doubts_resolve(queue->shm, true);
		if (holds_messages(queue))
			ereport(ERROR,
					aq_error(AQ_ERR_QUEUE_NOT_EMPTY, "queue \"%s\" holds messages", queue->name),
					errhint("Dequeue or purge them, or call aq.drop_queue with force => true."));
	}
	aq_tables_drop(queue);
}

static bool
has_doubts(const Partition *partition)
{
	return partition->ndoubt > 0;
}

static bool
in_doubt(AqQueueShm *shm)
{
	for (Stream *stream = stream_at(shard_queue(shm)->streams); stream != NULL;
		 stream = stream_at(stream->next))
		if (aq_partition_from(stream, 0, has_doubts) != NULL)
			return true;
	return false;
}

static const AqStoreJob shard_jobs[] = {
	{AQ_WORK_RETRY, aq_retry_job},
	{AQ_WORK_TABLES, aq_tables_job},
	{AQ_WORK_DOUBT, aq_doubt_job},
	{AQ_WORK_REMOVED, aq_removed_job},
	{AQ_WORK_RECOUNT, aq_recount_job},
	{AQ_WORK_FAILED, aq_failed_job},
	{AQ_WORK_RECLAIM, aq_reclaim_job},
	{AQ_WORK_SURPLUS, aq_surplus_job},
};

static const AqStore shard_store = {
	.kind = AQ_STORE_SHARDED,
	.load = load,
	.unload = aq_unload_queue,
	.idle = idle,
	.drop = drop,
	.lock = aq_tables_lock,
	.put = aq_put,
	.take = aq_take,
	.owns = aq_shard_owns,
	.ready = aq_ready,
	.in_doubt = in_doubt,
	.free_position = aq_position_free,
	.jobs = shard_jobs,
	.njobs = lengthof(shard_jobs),
	.time_job = {0, aq_timer_job},
	.worker_may_put = aq_tables_ready_for_worker,
	.check = aq_shard_check,
	.check_pool = aq_shard_check_pool,
	.chunks = aq_shard_chunks,
};
