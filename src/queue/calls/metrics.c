/*-------------------------------------------------------------------------
 *
 * metrics.c
 *	  aq.metrics(): metrics of each queue and consumer for monitoring systems, or
 *	  of one queue.
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
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

/* The name of the exception queue; NULL: failed messages are deleted. */
static char *
name_of(int32 exception_queue_id)
{
	AqQueue    *queue = exception_queue_id != 0 ? aq_catalog_get_by_id(exception_queue_id, true) : NULL;

	return queue != NULL ? pstrdup(queue->name) : NULL;
}

/* The *n consumers to be measured by the store. */
static AqMeasure *
list_measures(AqQueue *queue, int *n)
{
	AqMeasure  *measures = palloc0((queue->nconsumers + 1) * sizeof(AqMeasure));

	*n = 0;
	if (!queue->multi && aq_privilege_shows(queue, NULL))
		measures[(*n)++].position = 0;
	for (int i = 0; i < queue->nconsumers; i++)
		if (queue->consumers[i].name != NULL && aq_privilege_shows(queue, queue->consumers[i].name))
			measures[(*n)++].position = queue->consumers[i].position;
	for (int i = 0; i < *n; i++)
		measures[i].known = measures[i].counted = true;
	return measures;
}

static void
ask_stores(AqQueue *queue, AqMeasure *measures, int n)
{
	static const char kinds[] = {AQ_STORE_CLASSIC, AQ_STORE_SHARDED};

	for (int i = 0; i < lengthof(kinds); i++)
		if (queue->shm->store == kinds[i] || queue->shm->store == AQ_STORE_BOTH)
			aq_store_of(kinds[i])->measure(queue, measures, n);
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

static void
put_metrics(AqRow *row, AqQueue *queue, AqConsumerShm *consumer, const AqMeasure *measure)
{
	AqQueueShm *shm = queue->shm;
	TimestampTz now = GetCurrentTimestamp();
	TimestampTz since = (TimestampTz) pg_atomic_read_u64(&shm->traffic[AQ_TRAFFIC_SINCE]);
	uint64		before = pg_atomic_read_u64(&consumer->before);
	uint64		dequeued = pg_atomic_read_u64(&consumer->dequeued) - before;
	uint64		all = pg_atomic_read_u64(&consumer->enqueued) - before;
	uint64		enqueued = all - pg_atomic_read_u64(&consumer->found);
	int64		lag = Max((int64) (all - dequeued), 0);
	int64		rest = Max(lag - measure->ready - measure->delayed, 0);
	bool		counted = measure->known && measure->counted;
	pg_atomic_uint64 *traffic = shm->single ? shm->traffic : consumer->traffic;

	aq_rows_number_if(row, measure->known, lag);
	aq_rows_number_if(row, counted, measure->ready);
	aq_rows_number_if(row, counted, measure->delayed);
	aq_rows_number_if(row, counted, shm->store == AQ_STORE_CLASSIC ? measure->in_flight : rest);
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
	AqMeasure  *measures = list_measures(queue, &n);
	AqPeek		peek;
	bool		known = aq_pins_peek(queue, &peek);

	if (known)
		ask_stores(queue, measures, n);
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
