/*-------------------------------------------------------------------------
 *
 * sync_views.c
 *	  The functions under the views of latches, mutexes and waits.
 *
 * Each function returns plain rows; sql/pgaq/views/waits.sql adds the names,
 * units and joins of Oracle's views.  Counters are read without locks: each
 * number is exact, but two numbers of a row are not read at the same moment.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sync/common/lock_names.h"
#include "sync/common/sync_shared.h"
#include "sync/control/control.h"
#include "sync/control/deadlock.h"
#include "sync/latches/latch_int.h"
#include "sync/mutexes/mutex_int.h"
#include "sync/statistics/stat_int.h"
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
#include "sync/common/latch_list.h"
#undef X
};

static const char *const location_names[] = {
	"",
#define X(id, name) name,
#include "sync/common/location_list.h"
#undef X
};

/* AqLatchMode */
static const char *const mode_names[] = {"SHARED", "EXCLUSIVE", "EXAMINE", ""};

static void
put_counter(AqRow *row, pg_atomic_uint64 *counter)
{
	aq_rows_number(row, (int64) pg_atomic_read_u64(counter));
}

static void
put_pid(AqRow *row, int number)
{
	int			pid = (number < 0 || number >= aq_session_slots()) ? 0 : aq_session_pid(number);

	aq_rows_int_if(row, pid != 0, pid);
}

/* Counters of a latch, or their sums over several latches. */
typedef struct LatchSum
{
	uint64		address;		/* the lowest, 0: none */
	int64		gets;
	int64		misses;
	int64		sleeps;
	int64		immediate_gets;
	int64		immediate_misses;
	int64		woken;
	int64		holding_sleeps;
	int64		spin_gets;
	int64		wait_time;
	int64		spin_time;		/* nanoseconds */
} LatchSum;

static void
add_latch(LatchSum *sum, AqLatch *latch)
{
	uint64		address = (uint64) (uintptr_t) latch;
	int64		immediate_misses = pg_atomic_read_u64(&latch->immediate_misses);

	if (sum->address == 0 || address < sum->address)
		sum->address = address;
	sum->gets += aq_latch_willing_gets(latch);
	sum->misses += pg_atomic_read_u64(&latch->misses);
	sum->sleeps += pg_atomic_read_u64(&latch->sleeps);
	sum->immediate_gets += pg_atomic_read_u64(&latch->immediate_gets) + immediate_misses;
	sum->immediate_misses += immediate_misses;
	sum->woken += pg_atomic_read_u64(&latch->woken);
	sum->holding_sleeps += pg_atomic_read_u64(&latch->holding_sleeps);
	sum->spin_gets += pg_atomic_read_u64(&latch->spin_gets);
	sum->wait_time += pg_atomic_read_u64(&latch->wait_time);
	sum->spin_time += pg_atomic_read_u64(&latch->spin_time);
}

static void
put_latch_sum(AqRow *row, const LatchSum *sum)
{
	if (sum->address == 0)
		aq_rows_null(row);
	else
		aq_rows_raw(row, sum->address);
	aq_rows_number(row, sum->gets);
	aq_rows_number(row, sum->misses);
	aq_rows_number(row, sum->sleeps);
	aq_rows_number(row, sum->immediate_gets);
	aq_rows_number(row, sum->immediate_misses);
	aq_rows_number(row, sum->woken);
	aq_rows_number(row, sum->holding_sleeps);
	aq_rows_number(row, sum->spin_gets);
	aq_rows_number(row, sum->wait_time);
	aq_rows_number(row, sum->spin_time / 1000);
}

static AqLatch *
first_latch(int id)
{
	return (AqLatch *) (uintptr_t) pg_atomic_read_u64(&aq_sync_shared->latches[id]);
}

/* Every latch: number, name, hash, level, has children, child, address, counters. */
AQ_ROWS(aq_sync_views_latches)
{
	for (int id = 0; id < AQ_LATCH_COUNT; id++)
	{
		for (AqLatch *latch = first_latch(id); latch != NULL; latch = latch->next)
		{
			LatchSum	sum = {0};

			add_latch(&sum, latch);
			aq_rows_int(row, id);
			aq_rows_text(row, latch_names[id].name);
			aq_rows_number(row, aq_rows_name_hash(latch_names[id].name));
			aq_rows_int(row, latch_names[id].level);
			aq_rows_bool(row, latch_names[id].children);
			aq_rows_int(row, latch->child);
			put_latch_sum(row, &sum);
			aq_rows_end(row);
		}
	}
}

/*
 * The kinds of latch, with the sums over all latches of the kind: number,
 * lowest address, counters.
 */
AQ_ROWS(aq_sync_views_latch_sums)
{
	for (int id = 0; id < AQ_LATCH_COUNT; id++)
	{
		LatchSum	sum = {0};

		for (AqLatch *latch = first_latch(id); latch != NULL; latch = latch->next)
			add_latch(&sum, latch);
		aq_rows_int(row, id);
		put_latch_sum(row, &sum);
		aq_rows_end(row);
	}
}

/*
 * The latches and mutexes that sessions hold now: session, pid, is it a mutex,
 * address, name, child or identifier, mode, location, gets.  A lock that is
 * freed meanwhile may still be shown.
 */
AQ_ROWS(aq_sync_views_held)
{
	for (int i = 0; i < aq_session_slots(); i++)
	{
		AqSyncSelf *self = &aq_sync_shared->selves[i];

		for (uint32 k = 0; k < pg_atomic_read_u32(&self->nheld); k++)
		{
			AqHeld	   *held = &self->held[k];
			uint64		lock = pg_atomic_read_u64(&held->lock);
			AqLatch    *latch = aq_lock_address(lock);
			AqMutex    *mutex = aq_lock_address(lock);
			bool		is_mutex = (lock & AQ_LOCK_MUTEX) != 0;

			/*
			 * the entry is being written, its session has ended, or the mutex
			 * was freed
			 */
			if (lock == 0 || aq_session_pid(i) == 0 || (is_mutex && mutex->type >= AQ_MUTEX_TYPE_COUNT))
				continue;
			aq_rows_session(row, i);
			put_pid(row, i);
			aq_rows_bool(row, is_mutex);
			aq_rows_raw(row, (uint64) (uintptr_t) aq_lock_address(lock));
			aq_rows_text(row, is_mutex ? aq_lock_names_mutexes[mutex->type] : latch_names[latch->id].name);
			aq_rows_number(row, is_mutex ? (int64) mutex->idn : (int64) latch->child);
			aq_rows_text(row, mode_names[aq_lock_mode(lock)]);
			aq_rows_text(row, location_names[pg_atomic_read_u32(&held->where)]);
			aq_rows_number(row, (int64) (is_mutex ? aq_mutex_gets(mutex) : aq_latch_willing_gets(latch)));
			aq_rows_end(row);
		}
	}
}

/*
 * The kinds of latch: number, name, hash, level, has children, what it
 * protects, its class.
 */
AQ_ROWS(aq_sync_views_latch_names)
{
	for (int id = 0; id < AQ_LATCH_COUNT; id++)
	{
		aq_rows_int(row, id);
		aq_rows_text(row, latch_names[id].name);
		aq_rows_number(row, aq_rows_name_hash(latch_names[id].name));
		aq_rows_int(row, latch_names[id].level);
		aq_rows_bool(row, latch_names[id].children);
		aq_rows_text(row, latch_names[id].text);
		aq_rows_int(row, aq_latch_class[id]);
		aq_rows_end(row);
	}
}

/*
 * The classes of latches: number, polls, yields, whether sleeps have a time
 * limit, and these limits in microseconds.
 */
AQ_ROWS(aq_sync_views_latch_classes)
{
	for (int i = 0; i < AQ_LATCH_CLASSES; i++)
	{
		const AqLatchClass *class = &aq_latch_classes[i];

		aq_rows_int(row, i);
		aq_rows_int(row, class->spin >= 0 ? class->spin : aq_latch_spin_count);
		aq_rows_int(row, class->yields);
		aq_rows_bool(row, class->timed);
		for (int sleep = 0; sleep < AQ_CLASS_SLEEPS; sleep++)
			aq_rows_int_if(row, class->timed, class->sleep_us[sleep]);
		aq_rows_end(row);
	}
}

/* Latch misses by location: name, location, four counters. */
AQ_ROWS(aq_sync_views_latch_misses)
{
	for (int id = 0; id < AQ_LATCH_COUNT; id++)
	{
		for (int where = 0; where < AQ_LOC_COUNT; where++)
		{
			AqLatchMisses *misses = &aq_sync_shared->latch_misses[id][where];

			if (pg_atomic_read_u64(&misses->nowait_failures) == 0 &&
				pg_atomic_read_u64(&misses->sleeps) == 0 &&
				pg_atomic_read_u64(&misses->waiter_sleeps) == 0)
				continue;
			aq_rows_text(row, latch_names[id].name);
			aq_rows_text(row, location_names[where]);
			put_counter(row, &misses->nowait_failures);
			put_counter(row, &misses->sleeps);
			put_counter(row, &misses->waiter_sleeps);
			put_counter(row, &misses->long_holds);
			aq_rows_end(row);
		}
	}
}

/*
 * Requests for mutexes: type, location number, location, gets, misses, waits,
 * sleeps, microseconds waited, microseconds spent spinning.
 */
AQ_ROWS(aq_sync_views_mutexes)
{
	for (int type = 0; type < AQ_MUTEX_TYPE_COUNT; type++)
	{
		for (int where = 0; where < AQ_LOC_COUNT; where++)
		{
			AqMutexSum	sum = aq_mutex_sum(type, where);

			if (sum.gets == 0)
				continue;
			aq_rows_text(row, aq_lock_names_mutexes[type]);
			aq_rows_int(row, where);
			aq_rows_text(row, location_names[where]);
			aq_rows_number(row, (int64) sum.gets);
			aq_rows_number(row, (int64) sum.misses);
			aq_rows_number(row, (int64) sum.waits);
			aq_rows_number(row, (int64) sum.sleeps);
			aq_rows_number(row, (int64) sum.wait_time);
			aq_rows_number(row, (int64) (sum.spin_time / 1000));
			aq_rows_end(row);
		}
	}
}

/*
 * The latest requests for a mutex that waited: identifier, when, type, gets,
 * sleeps, requester, its blocker, location, value, P3 of the wait, mode,
 * microseconds.
 */
AQ_ROWS(aq_sync_views_mutex_history)
{
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
		aq_rows_number(row, copy.idn);
		aq_rows_put(row, TimestampTzGetDatum(now - (clock - copy.time)));
		aq_rows_text(row, aq_lock_names_mutexes[copy.type]);
		aq_rows_number(row, (int64) copy.gets);
		aq_rows_number(row, (int64) copy.sleeps);
		aq_rows_session(row, copy.session);
		aq_rows_session(row, copy.blocker);
		aq_rows_text(row, location_names[copy.location]);
		aq_rows_raw(row, copy.value);
		aq_rows_number(row, (int64) copy.where);
		aq_rows_raw(row, copy.where);
		aq_rows_text(row, mode_names[copy.mode]);
		aq_rows_number(row, copy.wait_time);
		aq_rows_end(row);
	}
}

/* Events: number, identifier, name, three parameters, class id, number, name, text. */
AQ_ROWS(aq_sync_views_event_names)
{
	for (int event = 0; event < AQ_EVENT_COUNT; event++)
	{
		const AqEventName *name = &aq_event_names[event];
		const AqClassName *class = &aq_event_names_classes[name->class];

		aq_rows_int(row, event);
		aq_rows_number(row, aq_rows_name_hash(name->name));
		aq_rows_text(row, name->name);
		for (int i = 0; i < 3; i++)
			aq_rows_text(row, name->parameters[i]);
		aq_rows_number(row, class->identifier);
		aq_rows_int(row, class->number);
		aq_rows_text(row, class->name);
		aq_rows_text(row, name->text);
		aq_rows_end(row);
	}
}

static void
put_event_counters(AqRow *row, const AqEventCounters *counters)
{
	aq_rows_number(row, (int64) counters->waits);
	aq_rows_number(row, (int64) counters->timeouts);
	aq_rows_number(row, (int64) counters->time);
}

/* The counters of all sessions, foreground and background; palloc'd. */
static AqEventCounters (*read_sums(void))[AQ_EVENT_COUNT]
{
	AqEventCounters (*sums)[AQ_EVENT_COUNT];

	sums = palloc(2 * sizeof(*sums));
	aq_event_sums_read(sums);
	return sums;
}

/*
 * Waits by event: number, all sessions' waits, time-outs, microseconds, longest;
 * then waits, time-outs, microseconds of the foreground.
 */
AQ_ROWS(aq_sync_views_events)
{
	AqEventCounters (*sums)[AQ_EVENT_COUNT] = read_sums();

	for (int event = 0; event < AQ_EVENT_COUNT; event++)
	{
		AqEventCounters *foreground = &sums[0][event];
		AqEventCounters *background = &sums[1][event];

		aq_rows_int(row, event);
		aq_rows_number(row, (int64) (foreground->waits + background->waits));
		aq_rows_number(row, (int64) (foreground->timeouts + background->timeouts));
		aq_rows_number(row, (int64) (foreground->time + background->time));
		aq_rows_number(row, (int64) Max(foreground->max, background->max));
		put_event_counters(row, foreground);
		aq_rows_end(row);
	}
}

/* Histogram: event number, upper bound in microseconds, waits. */
AQ_ROWS(aq_sync_views_histogram)
{
	AqEventCounters (*sums)[AQ_EVENT_COUNT] = read_sums();

	for (int event = 0; event < AQ_EVENT_COUNT; event++)
	{
		for (int bucket = 0; bucket < AQ_HIST_BUCKETS; bucket++)
		{
			uint64		waits = sums[0][event].histogram[bucket] + sums[1][event].histogram[bucket];

			if (waits == 0)
				continue;
			aq_rows_int(row, event);
			aq_rows_number(row, aq_hist_bound(bucket));
			aq_rows_number(row, (int64) waits);
			aq_rows_end(row);
		}
	}
}

/* Waits by session: session, pid, event number, waits, time-outs, time, longest. */
AQ_ROWS(aq_sync_views_session_events)
{
	for (int i = 0; i < aq_session_slots(); i++)
	{
		if (aq_session_pid(i) == 0)
			continue;
		for (int event = 0; event < AQ_EVENT_COUNT; event++)
		{
			AqEventCounters *counters = &aq_event_slots[i].events[event];

			if (counters->waits == 0)
				continue;
			aq_rows_session(row, i);
			put_pid(row, i);
			aq_rows_int(row, event);
			put_event_counters(row, counters);
			aq_rows_number(row, (int64) counters->max);
			aq_rows_end(row);
		}
	}
}

/*
 * What sessions wait for, or waited for last: session, serial number, pid,
 * sequence, event number, waiting, P1 to P3 as numbers and as raw,
 * microseconds of the wait so far or in all, microseconds since it ended,
 * microseconds until its timeout, blocking session.
 */
AQ_ROWS(aq_sync_views_session_waits)
{
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
		aq_rows_session(row, i);
		aq_rows_number(row, aq_session_serial(i));
		put_pid(row, i);
		aq_rows_number(row, (int64) now.sequence);
		aq_rows_int(row, now.event);
		aq_rows_bool(row, now.waiting);
		for (int k = 0; k < 3; k++)
			aq_rows_number(row, (int64) p[k]);
		for (int k = 0; k < 3; k++)
			aq_rows_raw(row, p[k]);
		aq_rows_number(row, Max((now.waiting ? clock : now.end) - now.start, 0));
		if (now.waiting)
			aq_rows_number(row, 0);
		else
			aq_rows_number(row, Max(clock - now.end, 0));
		aq_rows_number_if(row, now.waiting, aq_event_left(&now, clock));
		aq_rows_session(row, aq_deadlock_blocker(i, &now));
		aq_rows_end(row);
	}
}

/* The places in the code that request a latch or mutex: number, name. */
AQ_ROWS(aq_sync_views_locations)
{
	for (int where = 1; where < AQ_LOC_COUNT; where++)
	{
		aq_rows_int(row, where);
		aq_rows_text(row, location_names[where]);
		aq_rows_end(row);
	}
}
