/*-------------------------------------------------------------------------
 *
 * test_mutex.c
 *	  Mutexes and their wait schemes under the seeded scheduler.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "sim.h"
#include "tests.h"

#define MAX_N 5

static AqMutex mutex;
static int	exclusive_inside;
static int	shared_inside;
static int	examining;
static int64 protected_number;
static int64 expected_number;
static int64 want_gets;
static int64 want_waits;

static void
prepare(void)
{
	aq_mutex_init(&mutex, AQ_MUTEX_TYPE_OBJECT, 4711);
	exclusive_inside = shared_inside = examining = 0;
	protected_number = expected_number = 0;
	want_gets = want_waits = 0;
	aq_mutex_wait_time = 1;
	aq_mutex_wait_yield_sleep_time = 1;
	aq_mutex_wait_yield_sleep_freq = 100;
	aq_mutex_wait_yield_yield_freq = 20;
	aq_mutex_wait_yield_mode = AQ_YIELD_MODE_YIELD;
}

/* Nobody has it, nothing refers to it: only the number of gets is left in the word. */
static bool
at_rest(AqMutex *m)
{
	return aq_mutex_holder(m) == -1 && aq_mutex_count(m) == 0;
}

static void
loiter(void)
{
	for (uint32 i = sim_random(6); i > 0; i--)
		sim_switch();
}

static void
inside(AqMutexMode mode)
{
	int64		n = protected_number;

	CHECK_EQ(exclusive_inside, 0);
	switch (mode)
	{
		case AQ_EXCLUSIVE:
			CHECK_EQ(shared_inside, 0);
			CHECK_EQ(examining, 0);
			CHECK_EQ(aq_mutex_count(&mutex), 0);
			exclusive_inside++;
			loiter();
			protected_number = n + 1;
			expected_number++;
			exclusive_inside--;
			break;
		case AQ_SHARED:
			shared_inside++;
			loiter();
			CHECK_EQ(protected_number, n);
			shared_inside--;
			break;
		case AQ_EXAMINE:
			CHECK_EQ(examining, 0);
			examining++;
			loiter();
			CHECK_EQ(protected_number, n);
			examining--;
			break;
	}
}

static void
random_user(void *arg)
{
	(void) arg;
	for (uint32 i = 2 + sim_random(4); i > 0; i--)
	{
		AqMutexMode mode = (AqMutexMode) sim_random(3);
		bool		again = false;

		if (sim_random(5) == 0)
		{
			if (!aq_mutex_get_nowait(&mutex, mode, AQ_LOC_OBJECT_PIN))
				continue;
		}
		else
			aq_mutex_get(&mutex, mode, AQ_LOC_OBJECT_PIN);
		want_gets++;
		CHECK(aq_mutex_held(&mutex));
		if (mode == AQ_EXCLUSIVE && sim_random(3) == 0)
		{
			aq_mutex_get(&mutex, mode, AQ_LOC_OBJECT_LOAD);
			want_gets++;
			again = true;
		}
		inside(mode);
		if (again)
		{
			aq_mutex_free(&mutex);
			inside(mode);
		}
		aq_mutex_free(&mutex);
		CHECK(!aq_mutex_held(&mutex));
		loiter();
	}
	want_waits += unit_counts.waits_begun;
	CHECK_EQ(unit_counts.waits_begun, unit_counts.waits_ended);
}

/*
 * All modes, all schemes: exclusive is alone, an examiner is the only examiner,
 * every request is counted once, sleeps by place are sleeps by mutex.
 */
void
test_mutex_random(void)
{
	int			n;
	AqMutexSum	pin;
	AqMutexSum	load;

	sim_start(MAX_N);
	n = 2 + (int) sim_random(MAX_N - 1);
	prepare();
	aq_mutex_wait_spin_count = 1 + (int) sim_random(3);
	aq_mutex_wait_scheme = (int) sim_random(4);
	aq_mutex_wait_time = (int) sim_random(3);
	aq_mutex_wait_yield_sleep_freq = (int) sim_random(4);
	sim_disturb(sim_random(2) == 0, false);
	for (int i = 0; i < n; i++)
		sim_spawn(i, random_user, NULL);
	sim_run();

	pin = aq_mutex_sum(AQ_MUTEX_TYPE_OBJECT, AQ_LOC_OBJECT_PIN);
	load = aq_mutex_sum(AQ_MUTEX_TYPE_OBJECT, AQ_LOC_OBJECT_LOAD);
	CHECK(at_rest(&mutex));
	CHECK_EQ(protected_number, expected_number);
	CHECK_EQ(aq_mutex_gets(&mutex), want_gets);
	CHECK_EQ(pin.gets + load.gets, want_gets);
	CHECK_EQ(pin.waits, want_waits);
	CHECK_EQ(pin.sleeps, pg_atomic_read_u64(&mutex.sleeps));
	CHECK(pin.sleeps >= pin.waits);
	CHECK(pin.misses >= pin.waits && pin.misses <= pin.gets);
	CHECK((pin.spin_time > 0) == (pin.misses > 0));
	/* who got it again has neither waited nor missed */
	CHECK_EQ(load.misses, 0);
	CHECK_EQ(pg_atomic_read_u64(&aq_sync_shared->history_next), want_waits);
}

/* The number of gets goes on where its bits in the word end, and where their highest changes. */
void
test_mutex_many_gets(void)
{
	static const uint64 starts[] = {UINT64CONST(0x7FFFFE), UINT64CONST(0xFFFFFE)};

	sim_start(1);
	for (int mode = AQ_SHARED; mode <= AQ_EXAMINE; mode++)
	{
		for (int i = 0; i < (int) lengthof(starts); i++)
		{
			prepare();
			pg_atomic_write_u64(&mutex.word, starts[i] << 40);	/* they are the highest 24 bits */
			pg_atomic_write_u64(&mutex.halves, i);
			for (uint64 n = 0; n < 4; n++)
			{
				CHECK_EQ(aq_mutex_gets(&mutex), starts[i] + n);
				aq_mutex_get(&mutex, mode, AQ_LOC_OBJECT_PIN);
				CHECK_EQ(aq_mutex_gets(&mutex), starts[i] + n + 1);
				aq_mutex_free(&mutex);
				CHECK(at_rest(&mutex));
			}
			CHECK_EQ(pg_atomic_read_u64(&mutex.halves), i + 1);
			/* between the get and its note */
			pg_atomic_write_u64(&mutex.halves, i);
			CHECK_EQ(aq_mutex_gets(&mutex), starts[i] + 4);
		}
	}
}

/* --- pins: the reference count, changed by examiners ----------------------------- */

static int64 pins;

static void
pin_and_unpin(void *arg)
{
	(void) arg;
	for (int i = 0; i < 3; i++)
	{
		aq_mutex_get(&mutex, AQ_EXAMINE, AQ_LOC_OBJECT_PIN);
		aq_mutex_add_count(&mutex, 1);
		pins++;
		CHECK_EQ(aq_mutex_count(&mutex), pins);
		aq_mutex_free(&mutex);
		CHECK_EQ(exclusive_inside, 0);
		loiter();
		aq_mutex_get(&mutex, AQ_EXAMINE, AQ_LOC_OBJECT_UNPIN);
		aq_mutex_add_count(&mutex, -1);
		pins--;
		CHECK_EQ(aq_mutex_count(&mutex), pins);
		aq_mutex_free(&mutex);
	}
}

static void
alone(void *arg)
{
	(void) arg;
	for (int i = 0; i < 3; i++)
	{
		aq_mutex_get(&mutex, AQ_EXCLUSIVE, AQ_LOC_OBJECT_LOAD);
		CHECK_EQ(pins, 0);
		exclusive_inside++;
		loiter();
		CHECK_EQ(pins, 0);
		exclusive_inside--;
		aq_mutex_free(&mutex);
		loiter();
	}
}

void
test_mutex_pins(void)
{
	sim_start(4);
	prepare();
	pins = 0;
	aq_mutex_wait_spin_count = 2;
	aq_mutex_wait_scheme = 2;
	for (int i = 0; i < 3; i++)
		sim_spawn(i, pin_and_unpin, NULL);
	sim_spawn(3, alone, NULL);
	sim_run();
	CHECK(at_rest(&mutex));
}

/* --- schemes: the table, step by step --------------------------------------------- */

typedef enum Call
{
	NO_CALL,
	YIELD,
	POLL,
	TIMED
} Call;

static AqScheme table_scheme;

static Call
one_step(void)
{
	UnitCounts	before = unit_counts;
	int64		made;

	aq_mutex_wait_step(&table_scheme, &aq_sync_shared->sleepers[0].sem);
	made = unit_counts.yields - before.yields + unit_counts.polls - before.polls +
		unit_counts.timed_waits - before.timed_waits;
	CHECK(made <= 1);
	if (unit_counts.yields > before.yields)
		return YIELD;
	if (unit_counts.polls > before.polls)
		return POLL;
	return made > 0 ? TIMED : NO_CALL;
}

static void
steps(void *arg)
{
	(void) arg;

	aq_mutex_wait_scheme = 0;
	aq_mutex_wait_start(&table_scheme, AQ_MUTEX_TYPE_OBJECT);
	CHECK(table_scheme.timed);
	for (int k = 1; k <= 500; k++)
		CHECK_EQ(one_step(), k % 100 == 0 ? POLL : YIELD);

	aq_mutex_wait_yield_sleep_freq = 0; /* never sleeps */
	aq_mutex_wait_start(&table_scheme, AQ_MUTEX_TYPE_OBJECT);
	for (int k = 1; k <= 500; k++)
		CHECK_EQ(one_step(), YIELD);
	aq_mutex_wait_yield_sleep_freq = 100;

	aq_mutex_wait_yield_mode = AQ_YIELD_MODE_SLEEP;
	aq_mutex_wait_start(&table_scheme, AQ_MUTEX_TYPE_OBJECT);
	for (int k = 1; k <= 100; k++)
		CHECK_EQ(one_step(), k % 20 == 0 ? YIELD : POLL);
	aq_mutex_wait_yield_yield_freq = 0; /* never yields */
	aq_mutex_wait_start(&table_scheme, AQ_MUTEX_TYPE_OBJECT);
	for (int k = 1; k <= 100; k++)
		CHECK_EQ(one_step(), POLL);
	aq_mutex_wait_high_priority = true; /* a mode of its own */
	aq_mutex_wait_start(&table_scheme, AQ_MUTEX_TYPE_OBJECT);
	for (int k = 1; k <= 200; k++)
		CHECK_EQ(one_step(), k % 100 == 0 ? POLL : YIELD);
	aq_mutex_wait_high_priority = false;
	aq_mutex_wait_yield_mode = AQ_YIELD_MODE_YIELD;

	aq_mutex_wait_scheme = 1;
	aq_mutex_wait_time = 1;
	aq_mutex_wait_start(&table_scheme, AQ_MUTEX_TYPE_OBJECT);
	CHECK(table_scheme.timed);
	for (int k = 1; k <= 20; k++)
		CHECK_EQ(one_step(), k == 1 ? YIELD : POLL);

	aq_mutex_wait_time = 0;		/* as scheme 0 */
	aq_mutex_wait_start(&table_scheme, AQ_MUTEX_TYPE_OBJECT);
	for (int k = 1; k <= 500; k++)
		CHECK_EQ(one_step(), k % 100 == 0 ? POLL : YIELD);

	aq_mutex_wait_scheme = 2;
	aq_mutex_wait_time = 1;
	aq_mutex_wait_start(&table_scheme, AQ_MUTEX_TYPE_OBJECT);
	CHECK(table_scheme.timed);
	for (int k = 1; k <= 20; k++)
		CHECK_EQ(one_step(), k <= 2 ? YIELD : TIMED);

	aq_mutex_wait_scheme = 7;
	aq_mutex_wait_start(&table_scheme, AQ_MUTEX_TYPE_OBJECT);
	CHECK(!table_scheme.timed);
	for (int k = 1; k <= 3 * 65536; k++)
		CHECK_EQ(one_step(), k % 65536 == 0 ? YIELD : NO_CALL);
}

void
test_scheme_table(void)
{
	sim_start(1);
	prepare();
	sim_spawn(0, steps, NULL);
	sim_run();
}

/* A type of mutex may have what the others have not; what it leaves open is as theirs. */
static void
steps_of_types(void *arg)
{
	(void) arg;
	aq_mutex_wait_spin_count = 255;
	aq_mutex_wait_scheme = 2;
	aq_mutex_wait_ways[AQ_MUTEX_TYPE_OBJECT] = (AqMutexWay) {.spin = -1, .scheme = 1, .time = 7};
	aq_mutex_wait_start(&table_scheme, AQ_MUTEX_TYPE_OBJECT);
	CHECK_EQ(table_scheme.way.spin, 255);
	CHECK_EQ(one_step(), YIELD);
	CHECK_EQ(one_step(), POLL);
	CHECK_EQ(unit_counts.poll_ms, 7);
	aq_mutex_wait_start(&table_scheme, AQ_MUTEX_TYPE_BUCKET);
	for (int k = 1; k <= 4; k++)
		CHECK_EQ(one_step(), k <= 2 ? YIELD : TIMED);
	aq_mutex_wait_ways[AQ_MUTEX_TYPE_OBJECT] = (AqMutexWay) {.spin = 3, .scheme = -1, .time = -1};
	aq_mutex_wait_start(&table_scheme, AQ_MUTEX_TYPE_OBJECT);
	CHECK_EQ(table_scheme.way.spin, 3);
	CHECK_EQ(table_scheme.way.scheme, 2);
	CHECK_EQ(table_scheme.way.time, 1);
	aq_mutex_wait_ways[AQ_MUTEX_TYPE_OBJECT] = (AqMutexWay) {-1, -1, -1};
}

void
test_scheme_types(void)
{
	sim_start(1);
	prepare();
	sim_spawn(0, steps_of_types, NULL);
	sim_run();
}

/* --- schemes: exactly which system calls ------------------------------------------- */

static uint64 want_steps;
static bool holder_has_it;
static UnitCounts waiter_counts;

static int64
calls(void)
{
	UnitCounts *c = sim_counts(1);

	return c->yields + c->polls + c->timed_waits;
}

/*
 * The last call of the waiter is under way or done: let it have the mutex after
 * that.  In the spinning scheme there is a call every 65536 steps only.
 */
static bool
enough_calls(void *arg)
{
	(void) arg;
	return (uint64) calls() >= want_steps;
}

static void
holder(void *arg)
{
	(void) arg;
	aq_mutex_get(&mutex, AQ_EXCLUSIVE, AQ_LOC_OBJECT_LOAD);
	holder_has_it = true;
	sim_wait_for(enough_calls, NULL);
	aq_mutex_free(&mutex);
}

static void
waiter(void *arg)
{
	(void) arg;
	while (!holder_has_it)
		sim_sleep_us(1);
	aq_mutex_get(&mutex, AQ_SHARED, AQ_LOC_OBJECT_PIN);
	waiter_counts = unit_counts;
	aq_mutex_free(&mutex);
}

/* Lets a session wait through the given number of system calls. */
static void
wait_through(int scheme, int wait_time, uint64 n)
{
	sim_start(2);
	prepare();
	aq_mutex_wait_spin_count = 1;
	aq_mutex_wait_scheme = scheme;
	aq_mutex_wait_time = wait_time;
	want_steps = n;
	holder_has_it = false;
	sim_spawn(0, holder, NULL);
	sim_spawn(1, waiter, NULL);
	sim_run();
	CHECK_EQ(waiter_counts.waits_begun, 1);
	CHECK_EQ(waiter_counts.waits_ended, 1);
	CHECK_EQ(waiter_counts.sem_waits, 0);
}

/*
 * The holder frees the mutex while the n-th call is under way, or a little later
 * when the scheduler lets the waiter run on: so at least n calls, and of those
 * that were made each is the one that the table says.
 */
static void
check_calls(uint64 n, int64 want_yields, int64 want_polls, int64 want_timed)
{
	int64		made = waiter_counts.yields + waiter_counts.polls + waiter_counts.timed_waits;

	CHECK((uint64) made >= n);
	CHECK_EQ(waiter_counts.yields, want_yields);
	CHECK_EQ(waiter_counts.polls, want_polls);
	CHECK_EQ(waiter_counts.timed_waits, want_timed);
	CHECK_EQ(pg_atomic_read_u64(&mutex.sleeps), made);
}

void
test_scheme_yield(void)
{
	for (int as_scheme_1 = 0; as_scheme_1 <= 1; as_scheme_1++)
	{
		int64		made;

		wait_through(as_scheme_1, as_scheme_1 ? 0 : 1, 250);
		made = waiter_counts.yields + waiter_counts.polls;
		check_calls(250, made - made / 100, made / 100, 0);
		CHECK_EQ(waiter_counts.poll_ms, made / 100);
	}
}

void
test_scheme_sleep(void)
{
	int64		polls;

	wait_through(1, 1, 20);
	polls = waiter_counts.polls;
	check_calls(20, 1, polls, 0);
	CHECK_EQ(waiter_counts.poll_ms, polls);

	wait_through(1, 30, 5);
	polls = waiter_counts.polls;
	check_calls(5, 1, polls, 0);
	CHECK_EQ(waiter_counts.poll_ms, polls * 30);
}

void
test_scheme_backoff(void)
{
	/* default limit: 10 ms always */
	wait_through(2, 1, 12);
	check_calls(12, 2, 0, waiter_counts.timed_waits);
	for (int i = 0; i < sim_ntimed; i++)
		CHECK_EQ(sim_timed_us[i], 10000);

	/* limit 300 ms: 10, 10, 30, 30, about 75, 75, 155, 155, then 300 */
	wait_through(2, 30, 14);
	check_calls(14, 2, 0, waiter_counts.timed_waits);
	for (int i = 0; i < sim_ntimed; i++)
	{
		int64		ms = sim_timed_us[i] / 1000;

		if (i < 2)
			CHECK_EQ(ms, 10);
		else if (i < 4)
			CHECK(ms >= 28 && ms <= 32);
		else if (i < 6)
			CHECK(ms >= 70 && ms <= 80);
		else if (i < 8)
			CHECK(ms >= 145 && ms <= 165);
		else
			CHECK(ms >= 290 && ms <= 300);
	}

	/* no limit given: two seconds */
	wait_through(2, 0, 22);
	check_calls(22, 2, 0, waiter_counts.timed_waits);
	CHECK(sim_timed_us[18] > 1800000);
	for (int i = 0; i < sim_ntimed; i++)
		CHECK(sim_timed_us[i] <= 2000000);
}

void
test_scheme_spin(void)
{
	AqMutexSum	total;

	wait_through(9, 1, 1);
	CHECK_EQ(waiter_counts.polls, 0);
	CHECK_EQ(waiter_counts.timed_waits, 0);
	CHECK(waiter_counts.yields >= 1);
	CHECK_EQ(pg_atomic_read_u64(&mutex.sleeps) / 65536, waiter_counts.yields);
	total = aq_mutex_sum(AQ_MUTEX_TYPE_OBJECT, AQ_LOC_OBJECT_PIN);
	CHECK_EQ(total.wait_time, 0);
	CHECK_EQ(total.sleeps, pg_atomic_read_u64(&mutex.sleeps));
	CHECK(total.spin_time > 0);
}
