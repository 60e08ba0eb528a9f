/*-------------------------------------------------------------------------
 *
 * classic_count.c
 *	  For aq.metrics(): numbers of ready, delayed and in-flight messages of a
 *	  queue in a queue table.
 *
 * Only the rows have this information, so the worker walks over each
 * consumer's order index from time to time, when aq.metrics() has requested
 * it, and records the time.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "classic/classic_private.h"

#include "miscadmin.h"
#include "utils/timestamp.h"

/*
 * counts are valid for this time in microseconds, and for this multiple of the
 * time that counting took
 */
#define COUNT_AGAIN ((int64) 10000000)
#define COUNT_SHARE 50

/* a count that takes longer, in microseconds, is made for aq.metrics() only */
#define COUNT_QUICK 100000

typedef struct Count
{
	int64		ready;
	int64		delayed;
	int64		in_flight;
	int64		leased;
	TimestampTz oldest;
} Count;

/* The time at which the message became ready. */
static TimestampTz
ready_since(TupleTableSlot *message)
{
	TimestampTz enqueued,
				ready_at;

	slot_getsomeattrs(message, COL_READY_AT + 1);
	enqueued = DatumGetTimestampTz(message->tts_values[COL_ENQUEUE_TIME]);
	ready_at = message->tts_isnull[COL_READY_AT] ? enqueued
		: DatumGetTimestampTz(message->tts_values[COL_READY_AT]);
	return Max(enqueued, ready_at);
}

/*
 * Counts a ready message; in a topic, the time of the first one is looked up
 * in the table of messages.
 */
static void
count_ready(Count *count, QueueScans *scans, RowScan *rows, const Key *key)
{
	TimestampTz since = 0;

	count->ready++;
	if (!scans->queue->multi)
		since = ready_since(rows->slot);
	else if (count->oldest == 0 && aq_row_scan_find(&scans->messages, scans->queue->id, 0, key))
		since = ready_since(scans->messages.slot);
	if (since != 0 && (count->oldest == 0 || since < count->oldest))
		count->oldest = since;
}

static void
count_row(Count *count, QueueScans *scans, RowScan *rows, const Key *key, TimestampTz now)
{
	TupleTableSlot *slot = rows->slot;
	int			state;

	if (TransactionIdIsValid(rows->dirty.xmin))
		return;					/* not committed */
	slot_getsomeattrs(slot, COL_NEXT_AT + 1);
	state = DatumGetInt16(slot->tts_values[COL_STATE]);
	if (state == STATE_EXPIRED && scans->queue->multi)
		return;					/* failed, so the consumer has finished with it */
	if (TransactionIdIsValid(rows->dirty.xmax))
		count->in_flight++;
	else if (state == STATE_LEASED)
	{
		count->in_flight++;
		count->leased++;
	}
	else if (state == STATE_WAITING)
		count->delayed++;
	else if (state == STATE_EXPIRED || slot->tts_isnull[COL_NEXT_AT] ||
			 DatumGetTimestampTz(slot->tts_values[COL_NEXT_AT]) > now)
		count_ready(count, scans, rows, key);
}

static void
count_consumer(QueueScans *scans, int position)
{
	const Key	first = KEY_FIRST,
				last = KEY_LAST;
	RowScan    *rows = scans->queue->multi ? &scans->consumers : &scans->messages;
	AqConsumerShm *consumer = aq_shm_consumer(scans->queue->shm, position);
	TimestampTz now = GetCurrentTimestamp();
	Count		count = {0};
	Key			key;

	if (consumer == NULL)
		return;
	aq_row_scan_seek(rows, scans->queue->id, position, &first, ForwardScanDirection);
	while (aq_row_scan_next(rows, &last, &key))
	{
		CHECK_FOR_INTERRUPTS();
		count_row(&count, scans, rows, &key, now);
	}
	pg_atomic_write_u64(&consumer->counted_ready, count.ready);
	pg_atomic_write_u64(&consumer->counted_delayed, count.delayed);
	pg_atomic_write_u32(&consumer->counted_in_flight, Min(count.in_flight, PG_UINT32_MAX));
	pg_atomic_write_u32(&consumer->counted_leased, Min(count.leased, PG_UINT32_MAX));
	pg_atomic_write_u64(&consumer->counted_oldest, count.oldest);
	pg_write_barrier();
	pg_atomic_write_u64(&consumer->counted_at, now);
}

/* Skips a table that a user has locked: aq.metrics() will request it again. */
void
aq_classic_count_job(int32 id, AqQueueShm *shm)
{
	TimestampTz begin = GetCurrentTimestamp();
	TimestampTz end;
	AqQueue    *queue;

	aq_job_begin();
	queue = aq_catalog_get_by_id(id, true);
	if (queue != NULL && queue->table.id != 0 && aq_row_scan_try_lock(queue))
	{
		QueueScans	scans;

		aq_pins_pin(queue);
		aq_row_scan_open_all(&scans, queue);
		if (!queue->multi)
			count_consumer(&scans, 0);
		for (int i = 0; i < queue->nconsumers; i++)
			if (queue->consumers[i].name != NULL)
				count_consumer(&scans, queue->consumers[i].position);
		aq_row_scan_close_all(&scans);
	}
	aq_job_commit(false);
	end = GetCurrentTimestamp();
	pg_atomic_write_u64(&classic_queue(shm)->count_took, end - begin);
	pg_atomic_write_u64(&classic_queue(shm)->count_from, end + Max(COUNT_AGAIN, COUNT_SHARE * (end - begin)));
}

/* Returns the last counts; requests new ones if they are too old. */
void
aq_classic_count_measure(AqQueue *queue, AqMeasure *measures, int n, bool quick)
{
	AqQueueShm *shm = queue->shm;
	bool		slow = quick && pg_atomic_read_u64(&classic_queue(shm)->count_took) > COUNT_QUICK;

	for (int i = 0; i < n; i++)
	{
		AqMeasure  *measure = &measures[i];
		AqConsumerShm *consumer = aq_shm_consumer(shm, measure->position);
		TimestampTz at = consumer == NULL ? 0 : (TimestampTz) pg_atomic_read_u64(&consumer->counted_at);
		TimestampTz oldest;

		if (at == 0 || slow)
		{
			measure->counted = false;
			continue;
		}
		pg_read_barrier();
		measure->counted_at = at;
		measure->ready += pg_atomic_read_u64(&consumer->counted_ready);
		measure->delayed += pg_atomic_read_u64(&consumer->counted_delayed);
		measure->in_flight += pg_atomic_read_u32(&consumer->counted_in_flight);
		measure->leased += pg_atomic_read_u32(&consumer->counted_leased);
		oldest = (TimestampTz) pg_atomic_read_u64(&consumer->counted_oldest);
		if (oldest != 0 && (measure->oldest == 0 || oldest < measure->oldest))
			measure->oldest = oldest;
	}
	if (!slow && (TimestampTz) pg_atomic_read_u64(&classic_queue(shm)->count_from) <= GetCurrentTimestamp())
		aq_work_post(shm, AQ_WORK_COUNT);
}
