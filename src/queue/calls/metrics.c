/*-------------------------------------------------------------------------
 *
 * metrics.c
 *	  aq.metrics(): metrics of each queue and consumer for monitoring systems, or
 *	  of one queue; how long the messages of each queue waited.
 *
 * A row consists of the counters that transactions update (traffic.c) and of
 * the store's numbers of current messages.  A role sees the queues on which it
 * has a privilege, members of pg_monitor see all; a role with only rights on
 * consumers sees these consumers.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/calls/calls_private.h"

#include "access/xlog.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

/* The name of the exception queue; NULL: failed messages are deleted. */
static char *
name_of(int32 exception_queue_id)
{
	AqQueue    *queue = exception_queue_id != 0 ? aq_catalog_get_by_id(exception_queue_id, true) : NULL;

	return queue != NULL ? pstrdup(queue->name) : NULL;
}

/* The *n consumers to be measured by the store: all, or those that the current role sees. */
AqMeasure *
aq_metrics_measures(AqQueue *queue, bool all, int *n)
{
	AqMeasure  *measures = palloc0((queue->nconsumers + 1) * sizeof(AqMeasure));

	*n = 0;
	if (!queue->multi && (all || aq_privilege_shows(queue, NULL)))
		measures[(*n)++].position = 0;
	for (int i = 0; i < queue->nconsumers; i++)
		if (queue->consumers[i].name != NULL && (all || aq_privilege_shows(queue, queue->consumers[i].name)))
			measures[(*n)++].position = queue->consumers[i].position;
	for (int i = 0; i < *n; i++)
		measures[i].known = measures[i].counted = true;
	return measures;
}

void
aq_metrics_ask_stores(AqQueue *queue, AqMeasure *measures, int n, bool quick)
{
	static const char kinds[] = {AQ_STORE_CLASSIC, AQ_STORE_SHARDED};

	for (int i = 0; i < lengthof(kinds); i++)
		if (queue->shm->store == kinds[i] || queue->shm->store == AQ_STORE_BOTH)
			aq_store_of(kinds[i])->measure(queue, measures, n, quick);
}

static const char *
consumer_name(AqQueue *queue, int position)
{
	for (int i = 0; i < queue->nconsumers; i++)
		if (queue->consumers[i].position == position)
			return queue->consumers[i].name;
	return NULL;
}

/* Puts an age in seconds; null if the time is not known or in the future. */
static void
put_age(AqRow *row, TimestampTz since, TimestampTz now)
{
	if (since == 0)
		aq_rows_null(row);
	else
		aq_rows_put(row, Float8GetDatum(Max(now - since, 0) / 1000000.0));
}

static void
put_rate(AqRow *row, uint64 n, TimestampTz since, TimestampTz now)
{
	if (now - since < 1000000)
		aq_rows_null(row);
	else
		aq_rows_put(row, Float8GetDatum(n * 1000000.0 / (now - since)));
}

static void
put_time_of(AqRow *row, AqConsumerShm *consumer, AqQueueShm *shm, AqTraffic item)
{
	aq_rows_time(row, pg_atomic_read_u64(&(shm->single ? shm->traffic : consumer->traffic)[item]));
}

/* Messages that the consumer has not finished. */
static int64
lag_of(AqConsumerShm *consumer)
{
	return Max((int64) (pg_atomic_read_u64(&consumer->enqueued) - pg_atomic_read_u64(&consumer->dequeued)), 0);
}

/* Of a consumer that the store has counted. */
int64
aq_metrics_in_flight(AqQueueShm *shm, AqConsumerShm *consumer, const AqMeasure *measure)
{
	if (shm->store == AQ_STORE_CLASSIC)
		return measure->in_flight;
	return Max(lag_of(consumer) - measure->ready - measure->delayed, 0);
}

static void
put_metrics(AqRow *row, AqQueue *queue, AqConsumerShm *consumer, const AqMeasure *measure)
{
	AqQueueShm *shm = queue->shm;
	TimestampTz now = GetCurrentTimestamp();
	TimestampTz since = (TimestampTz) pg_atomic_read_u64(&shm->traffic[AQ_TRAFFIC_SINCE]);
	uint64		before = pg_atomic_read_u64(&consumer->before);
	uint64		dequeued = pg_atomic_read_u64(&consumer->dequeued) - before;
	uint64		enqueued = pg_atomic_read_u64(&consumer->enqueued) - before - pg_atomic_read_u64(&consumer->found);
	bool		counted = measure->known && measure->counted;
	pg_atomic_uint64 *traffic = shm->single ? shm->traffic : consumer->traffic;

	aq_rows_number_if(row, measure->known, lag_of(consumer));
	aq_rows_number_if(row, counted, measure->ready);
	aq_rows_number_if(row, counted, measure->delayed);
	aq_rows_number_if(row, counted, aq_metrics_in_flight(shm, consumer, measure));
	aq_rows_number_if(row, counted, measure->leased);
	put_age(row, counted ? measure->oldest : 0, now);
	aq_rows_number(row, pg_atomic_read_u64(&traffic[AQ_TRAFFIC_FAILED]));
	aq_rows_number(row, enqueued);
	aq_rows_number(row, dequeued);
	put_rate(row, enqueued, since, now);
	put_rate(row, dequeued, since, now);
	aq_rows_int(row, consumer->waiters.waiting + consumer->selective.waiting);
	put_time_of(row, consumer, shm, AQ_TRAFFIC_LAST_ENQUEUE);
	put_time_of(row, consumer, shm, AQ_TRAFFIC_LAST_DEQUEUE);
	aq_rows_time(row, since);
	if (counted)
		aq_rows_time(row, measure->counted_at != 0 ? measure->counted_at : now);
	else
		aq_rows_null(row);
	/* a catalog of 0.1.0 has no such columns */
	if (row->n < row->result->setDesc->natts)
	{
		aq_rows_number_if(row, queue->delivery == AQ_PERSISTENT && queue->max_depth >= 0, queue->max_depth);
		aq_rows_number(row, pg_atomic_read_u64(&shm->enqueues_waited));
		aq_rows_number(row, pg_atomic_read_u64(&shm->enqueues_refused));
	}
}

/* Puts the columns that are known even if the queue is not in memory. */
static void
begin_row(AqRow *row, AqQueue *queue, int position, const char *exception_queue)
{
	AqQueue    *named = queue->persistent != NULL ? queue->persistent : queue;

	aq_rows_int(row, named->id);
	aq_rows_text(row, named->name);
	aq_rows_text(row, consumer_name(named, position));
	aq_rows_text(row, queue->persistent != NULL ? "buffered" : "persistent");
	aq_rows_text(row, exception_queue);
}

/* Puts a row for each consumer of the queue, or of its buffered queue. */
static void
queue_rows(AqRow *row, AqQueue *queue, const char *exception_queue)
{
	int			n;
	AqMeasure  *measures = aq_metrics_measures(queue, false, &n);
	AqPeek		peek;
	bool		known = aq_pins_peek(queue, &peek);

	if (known)
		aq_metrics_ask_stores(queue, measures, n, false);
	for (int i = 0; i < n; i++)
	{
		AqConsumerShm *consumer = known ? aq_shm_consumer(queue->shm, measures[i].position) : NULL;

		begin_row(row, queue, measures[i].position, exception_queue);
		if (consumer == NULL)
			aq_rows_end_nulls(row);
		else
		{
			put_metrics(row, queue, consumer, &measures[i]);
			aq_rows_end(row);
		}
	}
	if (known)
		aq_pins_peek_end(&peek);
}

/* The current description of the queue, if the role may see it. */
static AqQueue *
visible_queue(int32 id)
{
	AqQueue    *queue = aq_catalog_get_by_id(id, true);

	return queue != NULL && aq_privilege_allows(queue, AQ_RIGHT_SEE) ? queue : NULL;
}

static void
rows_of(AqRow *row, int32 id)
{
	AqQueue    *queue = visible_queue(id);
	char	   *exception_queue = queue != NULL ? name_of(queue->exception_queue_id) : NULL;

	/* each lookup may free the previous description */
	queue = visible_queue(id);
	if (queue != NULL)
		queue_rows(row, queue, exception_queue);
	queue = visible_queue(id);
	if (queue != NULL && queue->buffered != NULL)
		queue_rows(row, queue->buffered, exception_queue);
}

/* On a standby, shared memory has no queues. */
AQ_ROWS(aq_metrics)
{
	List	   *ids = RecoveryInProgress() ? NIL : aq_catalog_queue_ids();
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "pgaq metrics", ALLOCSET_SMALL_SIZES);
	MemoryContext outer = MemoryContextSwitchTo(context);
	ListCell   *lc;

	foreach(lc, ids)
	{
		CHECK_FOR_INTERRUPTS();
		MemoryContextReset(context);
		rows_of(row, lfirst_int(lc));
	}
	MemoryContextSwitchTo(outer);
	MemoryContextDelete(context);
}

AQ_ROWS(aq_metrics_of_queue)
{
	AqQueue    *queue = aq_catalog_get(text_to_cstring(PG_GETARG_TEXT_PP(0)), AQ_RIGHT_SEE);

	if (!RecoveryInProgress())
		rows_of(row, queue->id);
}

/* --- how long messages waited: aq_latency_add -------------------------------------------------- */

/* The buckets up to the last one that is not empty, as an array; *n: the sum. */
static Datum
read_buckets(AqQueueShm *shm, int64 *n)
{
	Datum		buckets[AQ_HIST_BUCKETS];
	int			used = 0;

	*n = 0;
	for (int i = 0; i < AQ_HIST_BUCKETS; i++)
	{
		int64		count = (int64) pg_atomic_read_u64(&shm->latencies[i]);

		buckets[i] = Int64GetDatum(count);
		*n += count;
		if (count > 0)
			used = i + 1;
	}
	return PointerGetDatum(construct_array(buckets, used, INT8OID, sizeof(int64), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
}

static void
put_latencies(AqRow *row, AqQueue *queue)
{
	AqPeek		peek;
	int64		n;
	Datum		buckets;

	aq_rows_text(row, queue->persistent != NULL ? "buffered" : "persistent");
	if (!aq_pins_peek(queue, &peek))
	{
		aq_rows_end_nulls(row);
		return;
	}
	buckets = read_buckets(queue->shm, &n);
	aq_rows_number(row, n);
	aq_rows_put(row, Float8GetDatum(pg_atomic_read_u64(&queue->shm->waited) / 1000000.0));
	aq_rows_put(row, buckets);
	aq_rows_time(row, pg_atomic_read_u64(&queue->shm->traffic[AQ_TRAFFIC_SINCE]));
	aq_pins_peek_end(&peek);
	aq_rows_end(row);
}

/* Of one queue, and of its buffered messages. */
AQ_ROWS(aq_metrics_latencies)
{
	int32		id = PG_GETARG_INT32(0);
	AqQueue    *queue = RecoveryInProgress() ? NULL : visible_queue(id);

	if (queue == NULL)
		return;
	put_latencies(row, queue);
	/* the lookup may free the previous description */
	queue = visible_queue(id);
	if (queue != NULL && queue->buffered != NULL)
		put_latencies(row, queue->buffered);
}

/* The exclusive upper bound of a bucket, in seconds; 0 and below: 0. */
static double
bound_of(int bucket)
{
	return bucket < 0 ? 0 : (double) (AQ_LATENCY_UNIT * aq_hist_bound(bucket)) / 1000000.0;
}

PG_FUNCTION_INFO_V1(aq_metrics_latency_bound);
Datum
aq_metrics_latency_bound(PG_FUNCTION_ARGS)
{
	int32		number = PG_GETARG_INT32(0);

	if (number < 1 || number >= AQ_HIST_BUCKETS)
		PG_RETURN_NULL();
	PG_RETURN_FLOAT8(bound_of(number - 1));
}

/*
 * The bucket in which the cumulative count reaches the fraction of all, and in it the
 * part that is still missing, as if its messages lay evenly between its bounds.  The
 * last bucket has no upper bound: its lower one is returned.
 */
static double
find_percentile(const int64 *buckets, int n, double wanted)
{
	double		before = 0;
	int			i = 0;

	while (i < n - 1 && (buckets[i] == 0 || before + buckets[i] < wanted))
		before += buckets[i++];
	if (i >= AQ_HIST_BUCKETS - 1)
		return bound_of(AQ_HIST_BUCKETS - 2);
	return bound_of(i - 1) + (bound_of(i) - bound_of(i - 1)) * Max(wanted - before, 0) / buckets[i];
}

PG_FUNCTION_INFO_V1(aq_metrics_latency_percentile);
Datum
aq_metrics_latency_percentile(PG_FUNCTION_ARGS)
{
	ArrayType  *array = PG_GETARG_ARRAYTYPE_P(0);
	double		fraction = PG_GETARG_FLOAT8(1);
	int64		buckets[AQ_HIST_BUCKETS];
	Datum	   *values;
	bool	   *nulls;
	double		sum = 0;
	int			n;

	aq_args_elements(array, &values, &nulls, &n);
	if (n > AQ_HIST_BUCKETS || !(fraction >= 0 && fraction <= 1))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 n > AQ_HIST_BUCKETS ? errmsg("too many buckets") : errmsg("fraction must be between 0 and 1"),
				 n > AQ_HIST_BUCKETS ? errdetail("A histogram has %d buckets at most.", AQ_HIST_BUCKETS) : 0));
	for (int i = 0; i < n; i++)
	{
		buckets[i] = nulls[i] ? 0 : DatumGetInt64(values[i]);
		if (buckets[i] < 0)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("a bucket cannot have a negative number of messages")));
		sum += buckets[i];
	}
	while (n > 0 && buckets[n - 1] == 0)
		n--;
	if (n == 0)
		PG_RETURN_NULL();
	PG_RETURN_FLOAT8(find_percentile(buckets, n, fraction * sum));
}
