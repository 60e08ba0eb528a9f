/*-------------------------------------------------------------------------
 *
 * sync_views.c
 *	  The functions under the views of latches, mutexes and waits.
 *
 * Each function returns plain rows; names, units and joins that Oracle's views
 * have are made in sql/views/sync.sql.  Counters are read without stopping
 * those who count: each number is right by itself, two numbers of a row may
 * differ by what happened between reading them.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "fmgr.h"
#include "funcapi.h"
#include "sync/event_int.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

typedef struct LatchName
{
	const char *name;
	int			level;
	bool		children;
	const char *text;
} LatchName;

static const LatchName latch_names[] = {
#define X(id, name, level, event, children, text) {name, level, children, text},
#include "sync/latch_list.h"
#undef X
};

static const char *const mutex_names[] = {
#define X(id, name, event_x, event_s, text) name,
#include "sync/mutex_list.h"
#undef X
};

static const char *const location_names[] = {
	"",
#define X(id, name) name,
#include "sync/location_list.h"
#undef X
};

typedef struct ClassName
{
	const char *name;
	int			number;
	int64		identifier;
} ClassName;

static const ClassName class_names[] = {
#define X(id, name, number, identifier) {name, number, INT64CONST(identifier)},
#include "sync/class_list.h"
#undef X
};

typedef struct EventName
{
	const char *name;
	AqWaitClass class;
	const char *parameters[3];
	const char *text;
} EventName;

static const EventName event_names[] = {
#define X(id, name, class, p1, p2, p3, text) {name, AQ_CLASS_##class, {p1, p2, p3}, text},
#include "sync/event_list.h"
#undef X
};

#define MAX_COLUMNS 20

/* One row in the making. */
typedef struct Row
{
	ReturnSetInfo *result;
	int			n;
	Datum		values[MAX_COLUMNS];
	bool		nulls[MAX_COLUMNS];
} Row;

static Row
begin_rows(FunctionCallInfo fcinfo)
{
	Row			row;

	aq_session_attach();
	InitMaterializedSRF(fcinfo, 0);
	row.result = (ReturnSetInfo *) fcinfo->resultinfo;
	row.n = 0;
	return row;
}

static void
put(Row *row, Datum value)
{
	Assert(row->n < MAX_COLUMNS);
	row->values[row->n] = value;
	row->nulls[row->n++] = false;
}

static void
put_null(Row *row)
{
	Assert(row->n < MAX_COLUMNS);
	row->values[row->n] = (Datum) 0;
	row->nulls[row->n++] = true;
}

static void
put_number(Row *row, int64 value)
{
	put(row, Int64GetDatum(value));
}

static void
put_int(Row *row, int32 value)
{
	put(row, Int32GetDatum(value));
}

static void
put_text(Row *row, const char *value)
{
	put(row, CStringGetTextDatum(value));
}

/* An address or a parameter as Oracle's RAW columns show it. */
static void
put_raw(Row *row, uint64 value)
{
	put_text(row, psprintf("%016llX", (unsigned long long) value));
}

static void
put_counter(Row *row, pg_atomic_uint64 *counter)
{
	put_number(row, (int64) pg_atomic_read_u64(counter));
}

static int64
name_hash(const char *name)
{
	return (int64) hash_bytes((const unsigned char *) name, (int) strlen(name));
}

/* The session that a number means, as the views name sessions: from 1. */
static void
put_session(Row *row, int number)
{
	if (number < 0)
		put_null(row);
	else
		put_int(row, number + 1);
}

static void
put_pid(Row *row, int number)
{
	int			pid = (number < 0 || number >= aq_session_slots()) ? 0 : aq_session_pid(number);

	if (pid == 0)
		put_null(row);
	else
		put_int(row, pid);
}

static void
end_row(Row *row)
{
	Assert(row->n == row->result->setDesc->natts);
	tuplestore_putvalues(row->result->setResult, row->result->setDesc, row->values, row->nulls);
	row->n = 0;
}

/*
 * Every latch: number, name, hash, level, has children, child, address, counters,
 * holder, holder's pid, location.
 */
PG_FUNCTION_INFO_V1(aq_sync_latches);
Datum
aq_sync_latches(PG_FUNCTION_ARGS)
{
	Row			row = begin_rows(fcinfo);

	for (int id = 0; id < AQ_LATCH_COUNT; id++)
	{
		AqLatch    *latch = (AqLatch *) (uintptr_t)
			pg_atomic_read_u64(&aq_sync_shared->latches[id]);

		for (; latch != NULL; latch = latch->next)
		{
			int			holder = aq_latch_holder(latch);

			put_int(&row, id);
			put_text(&row, latch_names[id].name);
			put_number(&row, name_hash(latch_names[id].name));
			put_int(&row, latch_names[id].level);
			put(&row, BoolGetDatum(latch_names[id].children));
			put_int(&row, latch->child);
			put_raw(&row, (uint64) (uintptr_t) latch);
			put_counter(&row, &latch->gets);
			put_counter(&row, &latch->misses);
			put_counter(&row, &latch->sleeps);
			put_number(&row, (int64) (pg_atomic_read_u64(&latch->immediate_gets) +
									  pg_atomic_read_u64(&latch->immediate_misses)));
			put_counter(&row, &latch->immediate_misses);
			put_counter(&row, &latch->spin_gets);
			put_counter(&row, &latch->wait_time);
			put_session(&row, holder);
			put_pid(&row, holder);
			put_text(&row, location_names[pg_atomic_read_u32(&latch->where)]);
			end_row(&row);
		}
	}
	return (Datum) 0;
}

/* The kinds of latch: number, name, hash, level, has children, what it protects. */
PG_FUNCTION_INFO_V1(aq_sync_latch_names);
Datum
aq_sync_latch_names(PG_FUNCTION_ARGS)
{
	Row			row = begin_rows(fcinfo);

	for (int id = 0; id < AQ_LATCH_COUNT; id++)
	{
		put_int(&row, id);
		put_text(&row, latch_names[id].name);
		put_number(&row, name_hash(latch_names[id].name));
		put_int(&row, latch_names[id].level);
		put(&row, BoolGetDatum(latch_names[id].children));
		put_text(&row, latch_names[id].text);
		end_row(&row);
	}
	return (Datum) 0;
}

/* Where latches were missed: name, location, three counters. */
PG_FUNCTION_INFO_V1(aq_sync_latch_misses);
Datum
aq_sync_latch_misses(PG_FUNCTION_ARGS)
{
	Row			row = begin_rows(fcinfo);

	for (int id = 0; id < AQ_LATCH_COUNT; id++)
	{
		for (int where = 0; where < AQ_LOC_COUNT; where++)
		{
			AqLatchMisses *misses = &aq_sync_shared->latch_misses[id][where];

			if (pg_atomic_read_u64(&misses->nowait_failures) == 0 &&
				pg_atomic_read_u64(&misses->sleeps) == 0 &&
				pg_atomic_read_u64(&misses->waiter_sleeps) == 0)
				continue;
			put_text(&row, latch_names[id].name);
			put_text(&row, location_names[where]);
			put_counter(&row, &misses->nowait_failures);
			put_counter(&row, &misses->sleeps);
			put_counter(&row, &misses->waiter_sleeps);
			end_row(&row);
		}
	}
	return (Datum) 0;
}

/* Mutexes that slept: type, location number, location, sleeps, waits, time. */
PG_FUNCTION_INFO_V1(aq_sync_mutex_sleeps);
Datum
aq_sync_mutex_sleeps(PG_FUNCTION_ARGS)
{
	Row			row = begin_rows(fcinfo);

	for (int type = 0; type < AQ_MUTEX_TYPE_COUNT; type++)
	{
		for (int where = 0; where < AQ_LOC_COUNT; where++)
		{
			AqMutexSleeps *sleeps = &aq_sync_shared->mutex_sleeps[type][where];

			if (pg_atomic_read_u64(&sleeps->sleeps) == 0)
				continue;
			put_text(&row, mutex_names[type]);
			put_int(&row, where);
			put_text(&row, location_names[where]);
			put_counter(&row, &sleeps->sleeps);
			put_counter(&row, &sleeps->waits);
			put_counter(&row, &sleeps->wait_time);
			end_row(&row);
		}
	}
	return (Datum) 0;
}

/*
 * The latest requests for a mutex that waited: identifier, when, type, gets,
 * sleeps, requester, its blocker, location, value.
 */
PG_FUNCTION_INFO_V1(aq_sync_mutex_history);
Datum
aq_sync_mutex_history(PG_FUNCTION_ARGS)
{
	Row			row = begin_rows(fcinfo);
	TimestampTz now = GetCurrentTimestamp();
	int64		clock = aq_clock_us();

	for (int i = 0; i < AQ_MUTEX_HISTORY; i++)
	{
		AqMutexSleepRow *one = &aq_sync_shared->history[i];
		AqMutexSleepRow copy;
		uint32		before = pg_atomic_read_u32(&one->change);

		pg_read_barrier();
		copy = *one;
		pg_read_barrier();
		/* never used, being written, or overwritten meanwhile */
		if (before == 0 || (before & 1) != 0 || before != pg_atomic_read_u32(&one->change))
			continue;
		put_number(&row, copy.idn);
		put(&row, TimestampTzGetDatum(now - (clock - copy.time)));
		put_text(&row, mutex_names[copy.type]);
		put_number(&row, (int64) copy.gets);
		put_number(&row, (int64) copy.sleeps);
		put_session(&row, copy.session);
		put_session(&row, copy.blocker);
		put_text(&row, location_names[copy.location]);
		put_raw(&row, copy.value);
		end_row(&row);
	}
	return (Datum) 0;
}

/* Events: number, identifier, name, three parameters, class id, number, name, text. */
PG_FUNCTION_INFO_V1(aq_sync_event_names);
Datum
aq_sync_event_names(PG_FUNCTION_ARGS)
{
	Row			row = begin_rows(fcinfo);

	for (int event = 0; event < AQ_EVENT_COUNT; event++)
	{
		const EventName *name = &event_names[event];
		const ClassName *class = &class_names[name->class];

		put_int(&row, event);
		put_number(&row, name_hash(name->name));
		put_text(&row, name->name);
		for (int i = 0; i < 3; i++)
			put_text(&row, name->parameters[i]);
		put_number(&row, class->identifier);
		put_int(&row, class->number);
		put_text(&row, class->name);
		put_text(&row, name->text);
		end_row(&row);
	}
	return (Datum) 0;
}

static void
put_event_counters(Row *row, const AqEventCounters *counters)
{
	put_number(row, (int64) counters->waits);
	put_number(row, (int64) counters->timeouts);
	put_number(row, (int64) counters->time);
}

/* Both halves of all sessions' counters; palloc'd. */
static AqEventCounters (*read_sums(void))[AQ_EVENT_COUNT]
{
	AqEventCounters (*sums)[AQ_EVENT_COUNT];

	sums = palloc(2 * sizeof(*sums));
	aq_event_sum(sums);
	return sums;
}

/*
 * Waits by event: number, all sessions' waits, time-outs, microseconds, longest;
 * then waits, time-outs, microseconds of the foreground.
 */
PG_FUNCTION_INFO_V1(aq_sync_events);
Datum
aq_sync_events(PG_FUNCTION_ARGS)
{
	Row			row = begin_rows(fcinfo);
	AqEventCounters (*sums)[AQ_EVENT_COUNT] = read_sums();

	for (int event = 0; event < AQ_EVENT_COUNT; event++)
	{
		AqEventCounters *foreground = &sums[0][event];
		AqEventCounters *background = &sums[1][event];

		put_int(&row, event);
		put_number(&row, (int64) (foreground->waits + background->waits));
		put_number(&row, (int64) (foreground->timeouts + background->timeouts));
		put_number(&row, (int64) (foreground->time + background->time));
		put_number(&row, (int64) Max(foreground->max, background->max));
		put_event_counters(&row, foreground);
		end_row(&row);
	}
	return (Datum) 0;
}

/* Histogram: event number, upper bound in microseconds, waits. */
PG_FUNCTION_INFO_V1(aq_sync_histogram);
Datum
aq_sync_histogram(PG_FUNCTION_ARGS)
{
	Row			row = begin_rows(fcinfo);
	AqEventCounters (*sums)[AQ_EVENT_COUNT] = read_sums();

	for (int event = 0; event < AQ_EVENT_COUNT; event++)
	{
		for (int bucket = 0; bucket < AQ_HIST_BUCKETS; bucket++)
		{
			uint64		waits = sums[0][event].histogram[bucket] + sums[1][event].histogram[bucket];

			if (waits == 0)
				continue;
			put_int(&row, event);
			put_number(&row, aq_hist_bound(bucket));
			put_number(&row, (int64) waits);
			end_row(&row);
		}
	}
	return (Datum) 0;
}

/* Waits by session: session, pid, event number, waits, time-outs, time, longest. */
PG_FUNCTION_INFO_V1(aq_sync_session_events);
Datum
aq_sync_session_events(PG_FUNCTION_ARGS)
{
	Row			row = begin_rows(fcinfo);

	for (int i = 0; i < aq_session_slots(); i++)
	{
		if (aq_session_pid(i) == 0)
			continue;
		for (int event = 0; event < AQ_EVENT_COUNT; event++)
		{
			AqEventCounters *counters = &aq_event_shared->slots[i].events[event];

			if (counters->waits == 0)
				continue;
			put_session(&row, i);
			put_pid(&row, i);
			put_int(&row, event);
			put_event_counters(&row, counters);
			put_number(&row, (int64) counters->max);
			end_row(&row);
		}
	}
	return (Datum) 0;
}

/*
 * What sessions wait for, or waited for last: session, serial number, pid,
 * sequence, event number, waiting, P1 to P3 as numbers and as raw, microseconds
 * of the wait so far or in all, microseconds since it ended.
 */
PG_FUNCTION_INFO_V1(aq_sync_session_waits);
Datum
aq_sync_session_waits(PG_FUNCTION_ARGS)
{
	Row			row = begin_rows(fcinfo);

	for (int i = 0; i < aq_session_slots(); i++)
	{
		AqWaitNow	now;
		uint64		p[3];
		int64		clock;

		if (aq_session_pid(i) == 0)
			continue;
		aq_event_read(i, &now);
		if (now.event < 0)
			continue;
		clock = aq_clock_us();
		p[0] = now.p1;
		p[1] = now.p2;
		p[2] = now.p3;
		put_session(&row, i);
		put_number(&row, aq_session_serial(i));
		put_pid(&row, i);
		put_number(&row, (int64) now.sequence);
		put_int(&row, now.event);
		put(&row, BoolGetDatum(now.waiting));
		for (int k = 0; k < 3; k++)
			put_number(&row, (int64) p[k]);
		for (int k = 0; k < 3; k++)
			put_raw(&row, p[k]);
		put_number(&row, Max((now.waiting ? clock : now.end) - now.start, 0));
		if (now.waiting)
			put_number(&row, 0);
		else
			put_number(&row, Max(clock - now.end, 0));
		end_row(&row);
	}
	return (Datum) 0;
}

/* Every place in the code that asks for a latch or mutex: number, name. */
PG_FUNCTION_INFO_V1(aq_sync_locations);
Datum
aq_sync_locations(PG_FUNCTION_ARGS)
{
	Row			row = begin_rows(fcinfo);

	for (int where = 1; where < AQ_LOC_COUNT; where++)
	{
		put_int(&row, where);
		put_text(&row, location_names[where]);
		end_row(&row);
	}
	return (Datum) 0;
}
