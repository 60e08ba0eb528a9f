/*-------------------------------------------------------------------------
 *
 * ring.c
 *	  The ring of samples: one process writes, any process may read.
 *
 * Rows are numbered consecutively; a row is stored at its number modulo the
 * size of the ring.  The writer makes a row's change number odd, writes, and
 * makes it even; a reader copies a row and uses the copy if the change number
 * was even before and the same after, and the row has the expected number.  So
 * readers and the writer never wait for each other; a row that is overwritten
 * while it is read is not seen, as if it had been overwritten before.
 *
 * The writer may end at any point: the row that it was writing is odd and not
 * counted yet; the next writer writes it again.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "monitor/ash.h"

#include "fmgr.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "utils/timestamp.h"

/* capacity of the profile: kinds of waits of the server */
#define PROFILE_SIZE 512

/*
 * sample ids also grow over restarts, because they begin with the time of the
 * start
 */
#define ID_UNIT 10000

typedef struct RingRow
{
	pg_atomic_uint32 change;	/* odd while the row is written */
	AqSample	sample;
} RingRow;

typedef struct ProfileEntry
{
	pg_atomic_uint64 key;		/* wait_info << 1 | background, + 1; 0: free */
	pg_atomic_uint64 samples;
	pg_atomic_uint64 time;		/* microseconds that the samples represent */
	pg_atomic_uint64 db_samples;	/* of these: of sessions whose statements are DB time */
	pg_atomic_uint64 db_time;
} ProfileEntry;

typedef struct RingShared
{
	uint64		nrows;
	pg_atomic_uint64 last;		/* number of the last complete row */
	pg_atomic_uint64 sample_id; /* of the current or last sample */
	pg_atomic_uint64 whole_id;	/* of the last complete sample */
	pg_atomic_uint64 samples;	/* number taken since server start */
	pg_atomic_uint64 spent;		/* microseconds spent on them */
	pg_atomic_uint64 rounds;	/* number of samples, and of those in between for the profile only */
	pg_atomic_uint64 lost;		/* profile entries lost, because the profile was full */
	pg_atomic_uint64 closely_until; /* aq_clock_us; until then the profile is sampled closely */
	pg_atomic_uint32 sampler;	/* number of its session, + 1; 0: none yet */
	TimestampTz started;
	ProfileEntry profile[PROFILE_SIZE];
	RingRow		rows[FLEXIBLE_ARRAY_MEMBER];
} RingShared;

int			aq_ring_size_kb = 16384;

static RingShared *ring;

static uint64
rows_that_fit(void)
{
	return (uint64) aq_ring_size_kb * 1024 / sizeof(RingRow);
}

Size
aq_ring_shmem_size(void)
{
	return add_size(offsetof(RingShared, rows), mul_size(rows_that_fit(), sizeof(RingRow)));
}

void
aq_ring_shmem_init(void *area, bool found)
{
	ring = area;
	if (found)
		return;
	memset(ring, 0, aq_ring_shmem_size());
	ring->nrows = rows_that_fit();
	ring->started = GetCurrentTimestamp();
	pg_atomic_init_u64(&ring->last, 0);
	pg_atomic_init_u64(&ring->sample_id, (uint64) (ring->started / ID_UNIT));
	pg_atomic_init_u64(&ring->whole_id, 0);
	pg_atomic_init_u64(&ring->samples, 0);
	pg_atomic_init_u64(&ring->spent, 0);
	pg_atomic_init_u64(&ring->rounds, 0);
	pg_atomic_init_u64(&ring->lost, 0);
	pg_atomic_init_u64(&ring->closely_until, 0);
	pg_atomic_init_u32(&ring->sampler, 0);
	for (int i = 0; i < PROFILE_SIZE; i++)
	{
		pg_atomic_init_u64(&ring->profile[i].key, 0);
		pg_atomic_init_u64(&ring->profile[i].samples, 0);
		pg_atomic_init_u64(&ring->profile[i].time, 0);
		pg_atomic_init_u64(&ring->profile[i].db_samples, 0);
		pg_atomic_init_u64(&ring->profile[i].db_time, 0);
	}
	for (uint64 i = 0; i < ring->nrows; i++)
		pg_atomic_init_u32(&ring->rows[i].change, 0);
}

static RingRow *
row_at(uint64 number)
{
	return &ring->rows[number % ring->nrows];
}

uint64
aq_ring_rows(void)
{
	return ring->nrows;
}

uint64
aq_ring_last(void)
{
	return pg_atomic_read_u64(&ring->last);
}

/* One sample in ten is saved in a table of its database. */
bool
aq_ring_is_kept(int64 sample_id)
{
	return sample_id % 10 == 0;
}

/* Returns false if the row was overwritten. */
bool
aq_ring_read(uint64 number, AqSample *copy)
{
	RingRow    *row = row_at(number);
	uint32		before = pg_atomic_read_u32(&row->change);

	pg_read_barrier();
	*copy = row->sample;
	pg_read_barrier();
	return (before & 1) == 0 && before == pg_atomic_read_u32(&row->change) && copy->number == number;
}

/* --- the writer -------------------------------------------------------------------------- */

static void
write_row(RingRow *row, const AqSample *sample)
{
	uint32		change = pg_atomic_read_u32(&row->change) | 1;

	pg_atomic_write_u32(&row->change, change);
	pg_write_barrier();
	row->sample = *sample;
	pg_write_barrier();
	pg_atomic_write_u32(&row->change, change + 1);
}

int64
aq_ring_begin_sample(void)
{
	return (int64) pg_atomic_add_fetch_u64(&ring->sample_id, 1);
}

void
aq_ring_add(AqSample *sample)
{
	sample->number = pg_atomic_read_u64(&ring->last) + 1;
	write_row(row_at(sample->number), sample);
	pg_write_barrier();
	pg_atomic_write_u64(&ring->last, sample->number);
}

void
aq_ring_end_sample(int64 spent_us)
{
	pg_atomic_write_u64(&ring->whole_id, pg_atomic_read_u64(&ring->sample_id));
	pg_atomic_fetch_add_u64(&ring->samples, 1);
	aq_ring_end_round(spent_us);
}

void
aq_ring_end_round(int64 spent_us)
{
	pg_atomic_fetch_add_u64(&ring->rounds, 1);
	pg_atomic_fetch_add_u64(&ring->spent, spent_us);
}

/* Called by the sampler when it starts. */
void
aq_ring_attach(void)
{
	pg_atomic_write_u32(&ring->sampler, aq_session_number() + 1);
}

int64
aq_ring_closely_until(void)
{
	return (int64) pg_atomic_read_u64(&ring->closely_until);
}

/* Sets the total duration of the row's wait, which has ended. */
void
aq_ring_set_time_waited(uint64 number, int64 time_waited)
{
	RingRow    *row = row_at(number);
	AqSample	sample = row->sample;

	if (sample.number != number)
		return;					/* overwritten */
	sample.time_waited = time_waited;
	write_row(row, &sample);
}

void
aq_ring_profile_add(uint32 wait_info, bool background, bool in_db_time, int64 interval_us)
{
	uint64		key = ((uint64) wait_info << 1 | background) + 1;

	for (int i = 0; i < PROFILE_SIZE; i++)
	{
		ProfileEntry *entry = &ring->profile[(key * 31 + i) % PROFILE_SIZE];
		uint64		found = pg_atomic_read_u64(&entry->key);

		if (found != 0 && found != key)
			continue;
		pg_atomic_fetch_add_u64(&entry->samples, 1);
		pg_atomic_fetch_add_u64(&entry->time, interval_us);
		pg_atomic_fetch_add_u64(&entry->db_samples, in_db_time ? 1 : 0);
		pg_atomic_fetch_add_u64(&entry->db_time, in_db_time ? interval_us : 0);
		if (found == 0)
			pg_atomic_write_u64(&entry->key, key);
		return;
	}
	pg_atomic_fetch_add_u64(&ring->lost, 1);
}

/*
 * An interval of a report begins: the sampler adds to the profile more often,
 * see sampler.c.  If the sampler's slot has a new owner, that process is woken
 * once without need.
 */
PG_FUNCTION_INFO_V1(aq_ring_sample_closely);
Datum
aq_ring_sample_closely(PG_FUNCTION_ARGS)
{
	PGPROC	   *proc = NULL;
	uint32		sampler;

	aq_session_require_preload();
	if (aq_ring_size_kb == 0)
		PG_RETURN_VOID();
	pg_atomic_write_u64(&ring->closely_until, (uint64) (aq_clock_us() + AQ_CLOSELY_FOR));
	sampler = pg_atomic_read_u32(&ring->sampler);
	if (sampler > 0)
		proc = aq_session_proc(sampler - 1);
	if (proc != NULL)
		SetLatch(&proc->procLatch);
	PG_RETURN_VOID();
}

/* --- views ------------------------------------------------------------------------------- */

static void
put_sample(AqRow *row, const AqSample *sample)
{
	aq_rows_number(row, sample->sample_id);
	aq_rows_put(row, TimestampTzGetDatum(sample->time));
	aq_rows_session(row, sample->session);
	aq_rows_int(row, sample->pid);
	aq_rows_bool(row, sample->background);
	aq_rows_put_if(row, OidIsValid(sample->database), ObjectIdGetDatum(sample->database));
	aq_rows_put_if(row, OidIsValid(sample->user), ObjectIdGetDatum(sample->user));
	aq_rows_number_if(row, sample->query_id != 0, (int64) sample->query_id);
	aq_session_views_event(row, sample->event, sample->wait_info, sample->background, true);
	aq_rows_number_if(row, sample->event >= 0, (int64) sample->sequence);
	aq_session_views_parameters(row, sample->event, sample->p);
	aq_rows_number_if(row, sample->wait_us >= 0, sample->wait_us);
	aq_rows_number_if(row, sample->time_waited >= 0, sample->time_waited);
	aq_rows_session(row, sample->blocker);
	aq_rows_int_if(row, sample->blocker >= 0, sample->blocker_pid);
	aq_rows_text(row, sample->operation < 0 ? NULL : aq_time_kind_names[sample->operation]);
	aq_rows_int_if(row, sample->queue != 0, sample->queue);
	aq_rows_text(row, sample->program[0] ? sample->program : NULL);
	aq_rows_text(row, sample->module[0] ? sample->module : NULL);
	aq_rows_text(row, sample->action[0] ? sample->action : NULL);
	aq_rows_end(row);
}

/*
 * Rows of the ring, of samples later than the given one: sample, time, session,
 * pid, background, database, user, query; event, class; sequence; P1 to P3;
 * microseconds waited so far, in all; blocker, its pid; operation, queue; program,
 * module, action.
 */
PG_FUNCTION_INFO_V1(aq_ring_samples);
Datum
aq_ring_samples(PG_FUNCTION_ARGS)
{
	int64		after = PG_GETARG_INT64(0);
	uint64		last;
	uint64		first;
	AqRow		row;

	aq_rows_begin(&row, fcinfo);
	last = aq_ring_last();
	first = last > ring->nrows ? last - ring->nrows + 1 : 1;
	for (uint64 number = last; number >= first; number--)
	{
		AqSample	sample;

		if ((number & 0x3FF) == 0)
			CHECK_FOR_INTERRUPTS();
		if (!aq_ring_read(number, &sample))
			continue;
		if (sample.sample_id <= after)
			break;
		put_sample(&row, &sample);
	}
	return (Datum) 0;
}

/*
 * The server's wait events and time on CPU: event, class, samples,
 * microseconds; of these, those of sessions whose statements are DB time.
 */
PG_FUNCTION_INFO_V1(aq_ring_profile);
Datum
aq_ring_profile(PG_FUNCTION_ARGS)
{
	AqRow		row;

	aq_rows_begin(&row, fcinfo);
	for (int i = 0; i < PROFILE_SIZE; i++)
	{
		ProfileEntry *entry = &ring->profile[i];
		uint64		key = pg_atomic_read_u64(&entry->key);

		if (key == 0)
			continue;
		aq_rows_bool(&row, (key - 1) & 1);
		aq_session_views_event(&row, -1, (uint32) ((key - 1) >> 1), (key - 1) & 1, true);
		aq_rows_number(&row, (int64) pg_atomic_read_u64(&entry->samples));
		aq_rows_number(&row, (int64) pg_atomic_read_u64(&entry->time));
		aq_rows_number(&row, (int64) pg_atomic_read_u64(&entry->db_samples));
		aq_rows_number(&row, (int64) pg_atomic_read_u64(&entry->db_time));
		aq_rows_end(&row);
	}
	return (Datum) 0;
}

/*
 * The ring itself: capacity in rows, rows written, last complete sample,
 * samples taken, rounds, microseconds spent on them, start.
 */
PG_FUNCTION_INFO_V1(aq_ring_info);
Datum
aq_ring_info(PG_FUNCTION_ARGS)
{
	AqRow		row;

	aq_rows_begin(&row, fcinfo);
	aq_rows_number(&row, (int64) ring->nrows);
	aq_rows_number(&row, (int64) aq_ring_last());
	aq_rows_number(&row, (int64) pg_atomic_read_u64(&ring->whole_id));
	aq_rows_number(&row, (int64) pg_atomic_read_u64(&ring->samples));
	aq_rows_number(&row, (int64) pg_atomic_read_u64(&ring->rounds));
	aq_rows_number(&row, (int64) pg_atomic_read_u64(&ring->spent));
	aq_rows_put(&row, TimestampTzGetDatum(ring->started));
	aq_rows_end(&row);
	return (Datum) 0;
}
