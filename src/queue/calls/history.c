/*-------------------------------------------------------------------------
 *
 * history.c
 *	  The history of queues: the worker's job that samples the queues in which
 *	  something happens, every minute.
 *
 * A sample is what the counters of a queue in shared memory have grown by since
 * the sample before, and how many messages it has now.  The SQL function
 * aq_internal.history_turn() writes the samples into a ring of tables, and once
 * an hour makes the rows of the hour.  What was seen is remembered after the
 * commit: a turn that fails is made up for by the next one.
 *
 * A queue in which nothing has changed gets no row and is not sampled again
 * before something changes (history_wish.c).
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/calls/calls_private.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/* AqHistorySeen.since: what was counted while the history was off is not to be shown */
#define NOT_SEEN DT_NOEND

/* of one queue; the counters are those since the sample before */
typedef struct Sample
{
	AqQueueShm *shm;
	int32		queue_id;
	AqHistorySeen seen;			/* to be remembered; has the numbers of messages */
	int64		enqueued;
	int64		dequeued;
	int64		failed;
	int64		latencies[AQ_HIST_BUCKETS];
	TimestampTz oldest;			/* 0: none is ready */
} Sample;

static int	most_queues;		/* pgaq.history_queues */

static Sample *samples;
static int	nsamples,
			samples_size;

/* --- samples ------------------------------------------------------------------------- */

static void
read_counters(AqQueueShm *shm, AqHistorySeen *seen)
{
	seen->since = (TimestampTz) pg_atomic_read_u64(&shm->traffic[AQ_TRAFFIC_SINCE]);
	seen->enqueued = pg_atomic_read_u64(&shm->enqueued);
	seen->dequeued = pg_atomic_read_u64(&shm->dequeued);
	seen->failed = pg_atomic_read_u64(&shm->traffic[AQ_TRAFFIC_FAILED]);
	for (int i = 0; i < AQ_HIST_BUCKETS; i++)
		seen->latencies[i] = (uint32) pg_atomic_read_u64(&shm->latencies[i]);
}

static void
read_numbers(AqQueue *queue, Sample *sample)
{
	AqQueueShm *shm = queue->shm;
	AqHistorySeen *seen = &sample->seen;
	int			n;
	AqMeasure  *measures = aq_metrics_measures(queue, true, &n);

	aq_metrics_ask_stores(queue, measures, n, true);
	for (int i = 0; i < n; i++)
	{
		AqMeasure  *measure = &measures[i];
		AqConsumerShm *consumer = aq_shm_consumer(shm, measure->position);

		if (consumer == NULL)
			continue;
		if (!measure->known || !measure->counted)
		{
			seen->ready = seen->delayed = seen->in_flight = -1;
			return;
		}
		seen->ready += measure->ready;
		seen->delayed += measure->delayed;
		seen->in_flight += aq_metrics_in_flight(shm, consumer, measure);
		aq_clock_sooner(&sample->oldest, measure->oldest);
	}
}

/* Has something changed since the queue was seen?  before: what was seen. */
static bool
compare(Sample *sample, const AqHistorySeen *before)
{
	AqHistorySeen *now = &sample->seen;
	AqHistorySeen none = {.ready = -1, .delayed = -1, .in_flight = -1};
	bool		changed;

	if (before->since != now->since)
		before = &none;
	sample->enqueued = (int64) (now->enqueued - before->enqueued);
	sample->dequeued = (int64) (now->dequeued - before->dequeued);
	sample->failed = (int64) (now->failed - before->failed);
	changed = sample->enqueued != 0 || sample->dequeued != 0 || sample->failed != 0 || before->ready != now->ready ||
		before->delayed != now->delayed || before->in_flight != now->in_flight;
	for (int i = 0; i < AQ_HIST_BUCKETS; i++)
	{
		sample->latencies[i] = (uint32) (now->latencies[i] - before->latencies[i]);
		changed |= sample->latencies[i] != 0;
	}
	return changed;
}

/* Returns false if nothing has changed. */
static bool
read_sample(AqQueue *queue, TimestampTz minute, Sample *sample)
{
	AqQueueShm *shm = queue->shm;

	*sample = (Sample) {.shm = shm, .queue_id = queue->id, .seen.minute = minute};
	read_counters(shm, &sample->seen);
	read_numbers(queue, sample);
	return compare(sample, &shm->seen);
}

static void
sample_queue(AqQueue *queue, TimestampTz minute)
{
	AqQueueShm *shm = queue->shm;
	Sample		sample;

	if (shm->seen.minute == minute && shm->seen.since != NOT_SEEN)
		return;					/* by the worker before this one */
	if (!read_sample(queue, minute, &sample))
	{
		/* a session that counts more from now on posts the worker; one that has counted before is seen */
		pg_atomic_write_u32(&shm->sampled, 0);
		pg_memory_barrier();
		if (!read_sample(queue, minute, &sample) || pg_atomic_exchange_u32(&shm->sampled, 1) != 0)
			return;
	}
	if (shm->seen.since == NOT_SEEN)
	{
		shm->seen = sample.seen;
		return;
	}
	samples = aq_array_room(samples, &samples_size, nsamples + 1, sizeof(Sample));
	samples[nsamples++] = sample;
}

/* Returns the next queue of this database in shared memory, after index *i, or NULL. */
static AqQueueShm *
next_queue(int *i)
{
	while (++*i <= aq_handle_limit)
	{
		AqObject   *object = aq_handle_by_index(*i);

		if (object->state == AQ_OBJECT_VALID && object->database == MyDatabaseId && object->copy == 0)
			return aq_shm_by_index(*i);
	}
	return NULL;
}

static void
take_samples(TimestampTz minute)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "pgaq history", ALLOCSET_SMALL_SIZES);
	MemoryContext outer = MemoryContextSwitchTo(context);
	AqQueueShm *shm;

	for (int i = 0; (shm = next_queue(&i)) != NULL;)
	{
		AqQueue    *queue;
		AqPeek		peek;

		CHECK_FOR_INTERRUPTS();
		if (pg_atomic_read_u32(&shm->sampled) == 0)
			continue;
		MemoryContextReset(context);
		queue = aq_catalog_get_by_id(shm->queue_id, true);
		if (queue == NULL || !aq_pins_peek(queue, &peek))
			continue;
		sample_queue(queue, minute);
		aq_pins_peek_end(&peek);
	}
	MemoryContextSwitchTo(outer);
	MemoryContextDelete(context);
}

static bool
is_one_sampled(void)
{
	AqQueueShm *shm;

	for (int i = 0; (shm = next_queue(&i)) != NULL;)
		if (pg_atomic_read_u32(&shm->sampled) != 0)
			return true;
	return false;
}

/* --- rows ----------------------------------------------------------------------------- */

/* Those with the most messages first. */
static int
by_traffic(const void *a, const void *b)
{
	const Sample *left = a,
			   *right = b;
	int64		difference = right->enqueued + right->dequeued - left->enqueued - left->dequeued;

	return difference > 0 ? 1 : difference < 0 ? -1 : 0;
}

static void
add_to(Sample *sum, const Sample *sample)
{
	sum->enqueued += sample->enqueued;
	sum->dequeued += sample->dequeued;
	sum->failed += sample->failed;
	for (int i = 0; i < AQ_HIST_BUCKETS; i++)
		sum->latencies[i] += sample->latencies[i];
	sum->seen.ready += Max(sample->seen.ready, 0);
	sum->seen.delayed += Max(sample->seen.delayed, 0);
	sum->seen.in_flight += Max(sample->seen.in_flight, 0);
	aq_clock_sooner(&sum->oldest, sample->oldest);
}

static void
put_sample(AqRow *row, const Sample *sample)
{
	Datum		buckets[AQ_HIST_BUCKETS];
	int			used = 0;

	for (int i = 0; i < AQ_HIST_BUCKETS; i++)
	{
		buckets[i] = Int32GetDatum((int32) Min(sample->latencies[i], PG_INT32_MAX));
		if (sample->latencies[i] > 0)
			used = i + 1;
	}
	aq_rows_int(row, sample->queue_id);
	aq_rows_put_if(row, sample->oldest != 0, Float4GetDatum(Max(GetCurrentTimestamp() - sample->oldest, 0) / 1000000.0));
	aq_rows_number_if(row, sample->seen.ready >= 0, sample->seen.ready);
	aq_rows_number_if(row, sample->seen.in_flight >= 0, sample->seen.in_flight);
	aq_rows_number_if(row, sample->seen.delayed >= 0, sample->seen.delayed);
	aq_rows_number(row, sample->enqueued);
	aq_rows_number(row, sample->dequeued);
	aq_rows_number(row, sample->failed);
	aq_rows_put_if(row, used > 0, used == 0 ? (Datum) 0
				   : PointerGetDatum(construct_array(buckets, used, INT4OID, sizeof(int32), true, TYPALIGN_INT)));
	aq_rows_end(row);
}

/* Other processes than the worker have none. */
AQ_ROWS(aq_history_samples)
{
	Sample		others = {.queue_id = 0};

	for (int i = 0; i < nsamples; i++)
	{
		if (i < most_queues)
			put_sample(row, &samples[i]);
		else
			add_to(&others, &samples[i]);
	}
	if (nsamples > most_queues)
		put_sample(row, &others);
}

/* --- the worker's job --------------------------------------------------------------- */

/* Returns false if a reader keeps the table of the turn from being emptied. */
static bool
write_samples(TimestampTz minute, bool hours)
{
	Oid			types[] = {TIMESTAMPTZOID, BOOLOID};
	Datum		values[] = {TimestampTzGetDatum(minute), BoolGetDatum(hours)};
	bool		isnull;
	bool		written;

	qsort(samples, nsamples, sizeof(Sample), by_traffic);
	SPI_connect();
	if (SPI_execute_with_args("SELECT aq_internal.history_turn($1, $2)", 2, types, values, NULL, false, 1) != SPI_OK_SELECT || SPI_processed != 1)
		elog(ERROR, "could not write the history of queues");
	written = DatumGetBool(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull));
	SPI_finish();
	return written;
}

typedef enum Turn
{
	TURN_DONE,
	TURN_AGAIN,					/* it must be tried again */
	TURN_NO_TABLES				/* the extension is of an older version */
} Turn;

/* hours: the rows of an hour are due. */
static Turn
sample_minute(TimestampTz minute, bool hours)
{
	Turn		turn = TURN_AGAIN;

	nsamples = 0;
	aq_job_begin();
	if (!OidIsValid(aq_owner_table("history_minute")))
		turn = TURN_NO_TABLES;
	else if (aq_job_lock_extension())
	{
		take_samples(minute);
		if ((nsamples == 0 && !hours) || write_samples(minute, hours))
			turn = TURN_DONE;
		aq_point("history-written");
	}
	aq_job_commit(false);
	for (int i = 0; i < nsamples && turn == TURN_DONE; i++)
		samples[i].shm->seen = samples[i].seen;
	return turn;
}

/* The first sample afterwards does not include what was counted while the history was off. */
static void
forget_all(void)
{
	AqQueueShm *shm;

	for (int i = 0; (shm = next_queue(&i)) != NULL;)
	{
		shm->seen.since = NOT_SEEN;
		pg_atomic_write_u32(&shm->sampled, 0);
	}
}

/*
 * The first turn of a worker comes at once: the one before it has perhaps left
 * because another database needed its slot.
 */
static TimestampTz
record_history(void)
{
	static TimestampTz next = DT_NOBEGIN;
	static uint32 wishes_seen;
	static TimestampTz hour;	/* for which the rows were made last */
	static bool hour_has_rows = true;	/* that are in no row of an hour yet */
	TimestampTz now = GetCurrentTimestamp();
	TimestampTz minute = aq_history_wish_minute(now);
	TimestampTz this_hour = now - now % USECS_PER_HOUR;
	TimestampTz due;
	uint32		wishes = aq_history_wish_count(&due);

	if (!aq_history_wish_on)
	{
		/* a session that has not read the configuration yet has still posted */
		if (next != DT_NOEND || wishes != wishes_seen)
			forget_all();
		next = DT_NOEND;
		wishes_seen = wishes;
		return 0;
	}
	if (next == DT_NOEND)
		next = minute + USECS_PER_MINUTE;
	if (wishes != wishes_seen)
		aq_clock_sooner(&next, due);
	wishes_seen = wishes;
	if (next == 0 || now < next)
		return next;

	/* the next time if an error ends this turn */
	next = minute + USECS_PER_MINUTE;
	switch (sample_minute(minute, hour != this_hour))
	{
		case TURN_AGAIN:
			return next;
		case TURN_NO_TABLES:
			forget_all();
			return next = 0;
		case TURN_DONE:
			break;
	}
	hour_has_rows = nsamples > 0 ? minute != this_hour || hour == this_hour : hour_has_rows && (hour == this_hour || hour == 0);
	hour = this_hour;
	if (!is_one_sampled())
		next = hour_has_rows ? hour + USECS_PER_HOUR : 0;
	return next;
}

static const AqJob history_job = {.name = "history", .run = record_history};

void
aq_history_init(void)
{
	DefineCustomBoolVariable("pgaq.history",
							 "Records the history of queues.",
							 "The worker adds a row for each minute, and for each hour, in which something happens in a "
							 "queue: see the views aq.history_minutes and aq.history_hours.",
							 &aq_history_wish_on,
							 true,
							 PGC_SIGHUP, 0,
							 NULL, NULL, NULL);
	DefineCustomIntVariable("pgaq.history_queues",
							"Maximum number of queues with a row of their own in a minute of the history.",
							"Those with the most messages enqueued and dequeued have one, and the others the sum of theirs. "
							"A row takes about 200 bytes: 500 queues that are never idle take up to 400 MB of minutes and "
							"300 MB of hours.",
							&most_queues,
							500, 1, 100000,
							PGC_SIGHUP, 0,
							NULL, NULL, NULL);
	aq_worker_register(&history_job);
}
