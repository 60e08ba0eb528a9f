/*-------------------------------------------------------------------------
 *
 * traffic.c
 *	  Counters of queues and their consumers, listed in traffic_list.h.
 *
 * All are atomic variables, changed during operations or after the end of a
 * transaction, so no function here raises errors or waits.  The counters of a
 * queue with a single consumer are also those of its consumer.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/memory/memory_private.h"

/* The consumer's own counters; NULL: they are those of the queue. */
static pg_atomic_uint64 *
consumer_traffic(AqQueueShm *shm, int position)
{
	AqConsumerShm *consumer = shm->single ? NULL : aq_shm_consumer(shm, position);

	return consumer != NULL ? consumer->traffic : NULL;
}

void
aq_traffic_add_for(AqQueueShm *shm, int position, AqTraffic item, uint64 n)
{
	pg_atomic_uint64 *own = consumer_traffic(shm, position);

	aq_traffic_add(shm, item, n);
	if (own != NULL)
		pg_atomic_fetch_add_u64(&own[item], n);
}

static void
add_consumed(pg_atomic_uint64 *traffic, TimestampTz now, const AqConsumed *consumed)
{
	int64		latency = (int64) (consumed->n * (uint64) now - consumed->times);

	pg_atomic_write_u64(&traffic[AQ_TRAFFIC_LAST_DEQUEUE], (uint64) now);
	if (consumed->n == 0)
		return;
	pg_atomic_fetch_add_u64(&traffic[AQ_TRAFFIC_CONSUMED], consumed->n);
	/* the clock may have been set back */
	pg_atomic_fetch_add_u64(&traffic[AQ_TRAFFIC_LATENCY], Max(latency, 0));
	pg_atomic_write_u64(&traffic[AQ_TRAFFIC_LAST_LATENCY], Max(now - consumed->last, 0));
}

static void
add_latencies(AqQueueShm *shm, const AqHistNote *latencies)
{
	if (latencies->used == 0)
		return;
	pg_atomic_fetch_add_u64(&shm->waited, latencies->total);
	for (uint64 used = latencies->used; used != 0; used &= used - 1)
		pg_atomic_fetch_add_u64(&shm->latencies[aq_hist_first(used)], latencies->counts[aq_hist_first(used)]);
}

/* The mean of the messages, for all of them. */
static void
add_mean_latency(AqQueueShm *shm, const AqConsumed *consumed, TimestampTz now)
{
	AqHistNote	mean = {0};

	if (consumed->n == 0)
		return;
	aq_hist_note(&mean, Max((int64) (consumed->n * (uint64) now - consumed->times), 0) / (int64) consumed->n,
				 AQ_LATENCY_SHIFT, consumed->n);
	add_latencies(shm, &mean);
}

void
aq_traffic_dequeued(AqQueueShm *shm, int position, const AqConsumed *consumed, const AqHistNote *latencies)
{
	pg_atomic_uint64 *own = consumer_traffic(shm, position);
	TimestampTz now = GetCurrentTimestamp();

	add_consumed(shm->traffic, now, consumed);
	if (own != NULL)
		add_consumed(own, now, consumed);
	if (latencies != NULL)
		add_latencies(shm, latencies);
	else
		add_mean_latency(shm, consumed, now);
	aq_history_changed(shm);
}

/* Of n messages, AQ_MODE_LEASE or what became of their leases is committed. */
void
aq_traffic_lease(AqMode mode, uint64 n)
{
	switch (mode)
	{
		case AQ_MODE_LEASE:
			aq_stat_add(AQ_STAT_LEASES, n);
			break;
		case AQ_MODE_ACKNOWLEDGE:
			aq_stat_add(AQ_STAT_LEASES_ACKNOWLEDGED, n);
			break;
		case AQ_MODE_EXTEND:
			aq_stat_add(AQ_STAT_LEASES_EXTENDED, n);
			break;
		case AQ_MODE_RELEASE:
		case AQ_MODE_UNSEEN:
			aq_stat_add(AQ_STAT_LEASES_RELEASED, n);
			break;
		case AQ_MODE_REJECT:
			aq_stat_add(AQ_STAT_LEASES_FAILED, n);
			break;
		default:
			break;
	}
}

/*
 * --- counts of a store when transactions commit
 * ---------------------------------
 */

void
aq_traffic_put(AqQueueShm *shm, uint64 n, uint64 delayed, uint64 expiring, TimestampTz when)
{
	aq_stat_add(AQ_STAT_ENQUEUE_COMMITTED, n);
	pg_atomic_fetch_add_u64(&shm->enqueued, n);
	if (delayed > 0)
		aq_traffic_add(shm, AQ_TRAFFIC_ENQUEUED_DELAY, delayed);
	if (expiring > 0)
		aq_traffic_add(shm, AQ_TRAFFIC_ENQUEUED_EXPIRY, expiring);
	aq_traffic_time(shm, AQ_TRAFFIC_LAST_ENQUEUE, when);
	aq_history_changed(shm);
}

void
aq_traffic_enqueued(AqQueueShm *shm, int position, uint64 n, TimestampTz when)
{
	AqConsumerShm *consumer = aq_shm_consumer(shm, position);

	if (consumer == NULL)
		return;
	pg_atomic_fetch_add_u64(&consumer->enqueued, n);
	if (!shm->single)
		pg_atomic_write_u64(&consumer->traffic[AQ_TRAFFIC_LAST_ENQUEUE], (uint64) when);
}

void
aq_traffic_done(AqQueueShm *shm, int position, uint64 n)
{
	AqConsumerShm *consumer = aq_shm_consumer(shm, position);

	if (consumer == NULL)
		return;
	pg_atomic_fetch_add_u64(&consumer->dequeued, n);
	/* a message of another node was dequeued before it is reported there */
	if (position != AQ_ORIGIN_POSITION)
		pg_atomic_fetch_add_u64(&shm->dequeued, n);
	aq_history_changed(shm);
	aq_lag_shrank(shm, position);
}

void
aq_traffic_failed(AqQueueShm *shm, int position, uint64 n, TimestampTz when)
{
	aq_traffic_add_for(shm, position, AQ_TRAFFIC_FAILED, n);
	aq_traffic_time(shm, AQ_TRAFFIC_LAST_FAILURE, when);
	aq_history_changed(shm);
}

static void
set_rule_error(pg_atomic_uint64 *traffic, TimestampTz when, int error)
{
	pg_atomic_write_u64(&traffic[AQ_TRAFFIC_LAST_RULE_FAILURE], (uint64) when);
	pg_atomic_write_u64(&traffic[AQ_TRAFFIC_RULE_ERROR], (uint64) error);
}

/*
 * The rule of the consumer with this number has failed for n messages.
 * Returns true for the first failure of this rule (a hash of its text) since
 * the queue was loaded.
 */
bool
aq_traffic_rule_failed(AqQueueShm *shm, int position, int64 number, uint32 n, int error, uint64 rule)
{
	AqConsumerShm *consumer = aq_shm_consumer(shm, position);
	TimestampTz now = GetCurrentTimestamp();

	/* was it removed, and is another consumer at its position? */
	if (consumer == NULL || pg_atomic_read_u64(&consumer->number) != (uint64) number)
		return false;
	aq_traffic_add_for(shm, position, AQ_TRAFFIC_RULE_FAILURES, n);
	set_rule_error(shm->traffic, now, error);
	set_rule_error(consumer->traffic, now, error);
	return pg_atomic_exchange_u32(&consumer->rule_logged, (uint32) rule) != (uint32) rule;
}

void
aq_traffic_ready(AqQueueShm *shm, uint64 n, TimestampTz when)
{
	aq_traffic_add(shm, AQ_TRAFFIC_MADE_READY, n);
	aq_traffic_time(shm, AQ_TRAFFIC_LAST_READY, when);
	aq_history_changed(shm);
}

void
aq_traffic_found(AqQueueShm *shm, int position, uint64 n)
{
	AqConsumerShm *consumer = aq_shm_consumer(shm, position);

	if (consumer == NULL)
		return;
	pg_atomic_fetch_add_u64(&consumer->found, n);
	pg_atomic_fetch_add_u64(&consumer->enqueued, n);
}

static uint64
traffic_of(AqQueueShm *shm, int position, AqTraffic item)
{
	pg_atomic_uint64 *own = consumer_traffic(shm, position);

	return pg_atomic_read_u64(&(own != NULL ? own : shm->traffic)[item]);
}

/*
 * Begins the counters of a new consumer at the position.  No session counts
 * for it before it knows the consumer's number, and all counts of the previous
 * one are complete.
 */
void
aq_traffic_begin(AqQueueShm *shm, AqConsumerShm *place, uint64 number)
{
	aq_latch_get(&shm->waiters_latch, AQ_EXCLUSIVE, AQ_LOC_WAIT_REGISTER);
	if (pg_atomic_read_u64(&place->number) < number)
	{
		/*
		 * unfinished messages of an earlier consumer do not count in the new
		 * one's lag
		 */
		pg_atomic_write_u64(&place->before, pg_atomic_read_u64(&place->dequeued));
		pg_atomic_write_u64(&place->next_token, 0);
		pg_atomic_write_u64(&place->bucket_full, 0);
		pg_atomic_write_u64(&place->enqueued, pg_atomic_read_u64(&place->dequeued));
		pg_atomic_write_u64(&place->found, 0);
		pg_atomic_write_u64(&place->counted_at, 0);
		for (int i = 0; i < AQ_NCONSUMER_TRAFFIC; i++)
			pg_atomic_write_u64(&place->traffic[i], 0);
		pg_atomic_write_u32(&place->rule_logged, 0);
		place->idle_since = 0;
		aq_raise_to(&place->number, number);
	}
	aq_latch_free(&shm->waiters_latch);
}

static const bool is_time[] = {
#define X(id, is_time, of_consumer) is_time,
#include "queue/memory/traffic_list.h"
#undef X
};

/* Is the item a time, and not a count? */
bool
aq_traffic_is_time(AqTraffic item)
{
	return is_time[item];
}

/* Puts the columns of aq_internal.consumers. */
void
aq_traffic_row(AqRow *row, AqQueueShm *shm, int position)
{
	for (int i = 0; i < AQ_NCONSUMER_TRAFFIC; i++)
	{
		int64		value = (int64) traffic_of(shm, position, i);

		if (is_time[i])
			aq_rows_time(row, value);
		else
			aq_rows_number(row, value);
	}
}
