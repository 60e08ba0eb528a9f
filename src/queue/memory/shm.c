/*-------------------------------------------------------------------------
 *
 * shm.c
 *	  Queues in shared memory: the values of the object cache's handles.
 *
 * An entry is filled in by its first user, while it loads the object, and
 * freed by the last unpin after a drop, or when the object cache needs the
 * handle.  Latches and conditions are initialized once, at server start, and
 * are kept when the entry is reused.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/memory/memory_private.h"


/* padded to whole cache lines, to avoid false sharing between consumers */
typedef union ConsumerPlace
{
	AqConsumerShm consumer;
	char		lines[320];
} ConsumerPlace;

StaticAssertDecl(sizeof(ConsumerPlace) == 320, "a consumer has five lines");
StaticAssertDecl(sizeof(ConsumerPlace) * AQ_CONSUMERS_PER_CHUNK <= AQ_CHUNK_SIZE, "consumers fit into a chunk");
StaticAssertDecl(offsetof(AqConsumerShm, traffic) + sizeof(uint64) == 64, "what dequeues count has a line of its own");

static AqQueueShm *entries;		/* 1 .. aq_handle_limit */

Size
aq_shm_size(void)
{
	return CACHELINEALIGN(mul_size(aq_handle_limit + 1, sizeof(AqQueueShm)));
}

static void
init_consumer(AqConsumerShm *consumer)
{
	aq_wakeup_list_init(&consumer->waiters);
	aq_wakeup_list_init(&consumer->selective);
	pg_atomic_init_u64(&consumer->number, 0);
	pg_atomic_init_u64(&consumer->removed, 0);
	pg_atomic_init_u64(&consumer->enqueued, 0);
	pg_atomic_init_u64(&consumer->dequeued, 0);
	pg_atomic_init_u64(&consumer->before, 0);
	pg_atomic_init_u64(&consumer->found, 0);
	pg_atomic_init_u64(&consumer->counted_ready, 0);
	pg_atomic_init_u64(&consumer->counted_delayed, 0);
	pg_atomic_init_u32(&consumer->counted_in_flight, 0);
	pg_atomic_init_u32(&consumer->counted_leased, 0);
	pg_atomic_init_u64(&consumer->counted_oldest, 0);
	pg_atomic_init_u64(&consumer->counted_at, 0);
	pg_atomic_init_u32(&consumer->rule_logged, 0);
	pg_atomic_init_u64(&consumer->closing, 0);
	pg_atomic_init_u32(&consumer->in_work, 0);
	pg_atomic_init_u32(&consumer->limit, 0);
	pg_atomic_init_u64(&consumer->next_token, 0);
	pg_atomic_init_u64(&consumer->bucket_full, 0);
	pg_atomic_init_u32(&consumer->holds, 0);
	consumer->idle_enqueued = 0;
	consumer->idle_since = 0;
	for (int i = 0; i < AQ_NCONSUMER_TRAFFIC; i++)
		pg_atomic_init_u64(&consumer->traffic[i], 0);
}

static void
reset_entry(AqQueueShm *shm)
{
	shm->object = NULL;
	shm->database = shm->owner = InvalidOid;
	shm->queue_id = 0;
	shm->single = false;
	shm->store = '\0';
	shm->key = 0;
	shm->recipient[0] = shm->refused[0] = '\0';
	pg_atomic_write_u32(&shm->waiting, 0);
	pg_atomic_write_u32(&shm->watched, 1);
	pg_atomic_write_u32(&shm->dropping, 1);
	pg_atomic_write_u32(&shm->forwarded, 0);
	pg_atomic_write_u32(&shm->work, 0);
	pg_atomic_write_u64(&shm->check_at, 0);
	pg_atomic_write_u32(&shm->has_unique, 0);
	pg_atomic_write_u64(&shm->room_below, 0);
	pg_atomic_write_u64(&shm->enqueues_waited, 0);
	pg_atomic_write_u64(&shm->enqueues_refused, 0);
	pg_atomic_write_u64(&shm->next_time, 0);
	shm->later_work = 0;
	shm->later_at = 0;
	pg_atomic_write_u64(&shm->definition, 0);
	pg_atomic_write_u64(&shm->last_change, 0);
	pg_atomic_write_u32(&shm->users[0], 0);
	pg_atomic_write_u32(&shm->users[1], 0);
	pg_atomic_write_u32(&shm->generation, 0);
	pg_atomic_write_u32(&shm->outlived, 0);
	pg_atomic_write_u32(&shm->room_asked, 0);
	pg_atomic_write_u32(&shm->room_answered, 0);
	pg_atomic_write_u32(&shm->uncounted, 0);
	pg_atomic_write_u32(&shm->uncounted_seen, 0);
	pg_atomic_write_u32(&shm->stops_enqueue, 0);
	pg_atomic_write_u32(&shm->stops_dequeue, 0);
	shm->converted = shm->settled = shm->table_done = false;
	shm->horizon = InvalidTransactionId;
	pg_atomic_write_u64(&shm->table_puts, 0);
	pg_atomic_write_u64(&shm->enqueued, 0);
	pg_atomic_write_u64(&shm->dequeued, 0);
	for (int i = 0; i < AQ_NTRAFFIC; i++)
		pg_atomic_write_u64(&shm->traffic[i], 0);
	pg_atomic_write_u64(&shm->waited, 0);
	for (int i = 0; i < AQ_HIST_BUCKETS; i++)
		pg_atomic_write_u64(&shm->latencies[i], 0);
	pg_atomic_write_u32(&shm->sampled, 0);
	memset(&shm->seen, 0, sizeof(shm->seen));
	init_consumer(&shm->first);
	memset(shm->more, 0, sizeof(shm->more));
}

/* Called by the object cache when no session can reach the queue. */
static void
free_entry(AqObject *object)
{
	AqQueueShm *shm = &entries[object->index];

	if (shm->object != NULL)	/* NULL if it was never loaded */
		aq_store_of(shm->store)->unload(shm);
	aq_chunks_free(shm->more, lengthof(shm->more));
	reset_entry(shm);
}

/* For latches that have a child for each queue, with the entry's index. */
uint32
aq_shm_queue_of_latch(int child, uint32 *database)
{
	*database = entries[child].database;
	return entries[child].queue_id;
}

/*
 * work that the worker finds again when the queue is loaded, or is asked for again by
 * the next enqueue, and that can wait until then
 */
#define FOUND_AGAIN (AQ_WORK_TABLES | AQ_WORK_RECLAIM | AQ_WORK_POSITIONS | AQ_WORK_COUNT | AQ_WORK_IDLE | AQ_WORK_AGE | \
					 AQ_WORK_UNIQUE)

/* Does one of the queue's consumers have a bucket that is not full?  See rate.c. */
static bool
has_used_bucket(AqQueueShm *shm)
{
	int64		now = aq_clock_us() * 1000;

	for (int position = 0; position < AQ_MAX_CONSUMERS; position++)
	{
		AqConsumerShm *consumer = aq_shm_consumer(shm, position);

		if (consumer == NULL)
			position += AQ_CONSUMERS_PER_CHUNK - position % AQ_CONSUMERS_PER_CHUNK - 1;
		else if ((int64) pg_atomic_read_u64(&consumer->bucket_full) > now)
			return true;
	}
	return false;
}

/*
 * Can the entry be freed, because the tables have all its information, and the
 * worker has no work for it that sessions may wait for?  Called by the object
 * cache, which ensures that no session uses the queue or begins to.
 */
static bool
is_idle(AqObject *object)
{
	AqQueueShm *shm = &entries[object->index];

	return shm->object != NULL && (pg_atomic_read_u32(&shm->work) & ~FOUND_AGAIN) == 0 &&
		pg_atomic_read_u32(&shm->waiting) == 0 &&
		pg_atomic_read_u64(&shm->check_at) == 0 && pg_atomic_read_u64(&shm->next_time) == 0 &&
		(shm->later_work & ~FOUND_AGAIN) == 0 && shm->recipient[0] == '\0' &&
		!has_used_bucket(shm) && aq_store_of(shm->store)->idle(shm);
}

void
aq_shm_init(void *area, bool found)
{
	entries = area;
	aq_handle_on_free(free_entry, is_idle, sizeof(AqQueueShm));
	aq_trace_on_name(AQ_LATCH_WAITERS, aq_shm_queue_of_latch);
	if (found)
		return;
	memset(area, 0, aq_shm_size());
	for (int i = 0; i <= aq_handle_limit; i++)
	{
		AqQueueShm *shm = &entries[i];

		aq_latch_init(&shm->waiters_latch, AQ_LATCH_WAITERS, i);
		aq_cond_init(&shm->changed);
		aq_cond_init(&shm->room);
		pg_atomic_init_u32(&shm->waiting, 0);
		pg_atomic_init_u32(&shm->watched, 1);
		pg_atomic_init_u32(&shm->dropping, 1);
		pg_atomic_init_u32(&shm->forwarded, 0);
		pg_atomic_init_u32(&shm->work, 0);
		pg_atomic_init_u64(&shm->check_at, 0);
		pg_atomic_init_u32(&shm->has_unique, 0);
		pg_atomic_init_u64(&shm->room_below, 0);
		pg_atomic_init_u64(&shm->enqueues_waited, 0);
		pg_atomic_init_u64(&shm->enqueues_refused, 0);
		pg_atomic_init_u64(&shm->next_time, 0);
		pg_atomic_init_u64(&shm->definition, 0);
		pg_atomic_init_u64(&shm->last_change, 0);
		pg_atomic_init_u32(&shm->users[0], 0);
		pg_atomic_init_u32(&shm->users[1], 0);
		pg_atomic_init_u32(&shm->generation, 0);
		pg_atomic_init_u32(&shm->outlived, 0);
		pg_atomic_init_u32(&shm->room_asked, 0);
		pg_atomic_init_u32(&shm->room_answered, 0);
		pg_atomic_init_u32(&shm->uncounted, 0);
		pg_atomic_init_u32(&shm->uncounted_seen, 0);
		pg_atomic_init_u32(&shm->stops_enqueue, 0);
		pg_atomic_init_u32(&shm->stops_dequeue, 0);
		pg_atomic_init_u64(&shm->table_puts, 0);
		pg_atomic_init_u64(&shm->enqueued, 0);
		pg_atomic_init_u64(&shm->dequeued, 0);
		for (int j = 0; j < AQ_NTRAFFIC; j++)
			pg_atomic_init_u64(&shm->traffic[j], 0);
		pg_atomic_init_u64(&shm->waited, 0);
		for (int j = 0; j < AQ_HIST_BUCKETS; j++)
			pg_atomic_init_u64(&shm->latencies[j], 0);
		pg_atomic_init_u32(&shm->sampled, 0);
		reset_entry(shm);
	}
}

AqQueueShm *
aq_shm_by_index(uint32 index)
{
	return &entries[index];
}

/*
 * The consumer's entry, or NULL if it does not exist yet.  Never raises an
 * error.
 */
AqConsumerShm *
aq_shm_consumer(AqQueueShm *shm, int position)
{
	AqChunk		chunk;

	if (position == 0)
		return &shm->first;
	chunk = shm->more[position / AQ_CONSUMERS_PER_CHUNK];
	if (chunk == 0)
		return NULL;
	return &((ConsumerPlace *) aq_chunk_ptr(chunk))[position % AQ_CONSUMERS_PER_CHUNK].consumer;
}

/*
 * The same, but makes the entry if necessary.  May raise an error; the caller
 * holds no latch.
 */
AqConsumerShm *
aq_shm_consumer_make(AqQueueShm *shm, int position)
{
	AqConsumerShm *consumer = aq_shm_consumer(shm, position);

	if (consumer != NULL)
		return consumer;
	aq_chunks_reserve(1);
	aq_latch_get(&shm->waiters_latch, AQ_EXCLUSIVE, AQ_LOC_WAIT_REGISTER);
	if (shm->more[position / AQ_CONSUMERS_PER_CHUNK] == 0)
	{
		AqChunk		chunk = aq_chunks_take();
		ConsumerPlace *list = aq_chunk_ptr(chunk);

		for (int i = 0; i < AQ_CONSUMERS_PER_CHUNK; i++)
			init_consumer(&list[i].consumer);
		pg_write_barrier();		/* readers take no latch */
		shm->more[position / AQ_CONSUMERS_PER_CHUNK] = chunk;
	}
	aq_latch_free(&shm->waiters_latch);
	return aq_shm_consumer(shm, position);
}
