/*-------------------------------------------------------------------------
 *
 * test_latch.c
 *	  Latches under the seeded scheduler.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "sim.h"
#include "tests.h"

#define MAX_N 6

static AqLatch latch;
static AqLatch latches[3];
static int	exclusive_inside;
static int	shared_inside;
static int	most_shared;
static int64 protected_number;
static int64 expected_number;
static int64 want_gets;
static int64 want_immediate;
static int64 want_immediate_misses;
static int64 want_slept;
static int64 want_sleeps;

static int64
read_counter(pg_atomic_uint64 *counter)
{
	return (int64) pg_atomic_read_u64(counter);
}

/* What must hold whenever nobody is inside and nobody waits. */
static void
check_at_rest(AqLatch *l)
{
	CHECK_EQ((uint32) pg_atomic_read_u64(&l->word), 0);
	CHECK_EQ(l->head, -1);
	CHECK_EQ(l->tail, -1);
	CHECK_EQ(l->exclusives, 0);
	for (int i = 0; i < aq_sync_shared->nsleepers; i++)
		CHECK_EQ(pg_atomic_read_u32(&aq_sync_shared->sleepers[i].state), AQ_SLEEP_NONE);
}

static void
prepare(void)
{
	memset(&latch, 0, sizeof(latch));
	aq_latch_init(&latch, AQ_LATCH_STREAM, 1);
	exclusive_inside = shared_inside = most_shared = 0;
	protected_number = expected_number = 0;
	want_gets = want_immediate = want_immediate_misses = want_slept = want_sleeps = 0;
}

static void
inside(AqLatchMode mode)
{
	CHECK(aq_latch_held(&latch));
	CHECK(shim_interrupt_holdoff > 0);
	CHECK_EQ(exclusive_inside, 0);
	if (mode == AQ_EXCLUSIVE)
	{
		int64		n = protected_number;

		CHECK_EQ(shared_inside, 0);
		CHECK_EQ(aq_latch_holder(&latch), aq_session_own_number);
		exclusive_inside++;
		for (uint32 i = sim_random(6); i > 0; i--)
			sim_switch();
		protected_number = n + 1;
		expected_number++;
		exclusive_inside--;
	}
	else
	{
		int64		n = protected_number;

		shared_inside++;
		most_shared = Max(most_shared, shared_inside);
		for (uint32 i = sim_random(6); i > 0; i--)
			sim_switch();
		CHECK_EQ(protected_number, n);
		shared_inside--;
	}
}

static void
get_and_free(AqLatchMode mode, bool wait)
{
	int64		begun = unit_counts.waits_begun;

	if (wait)
	{
		aq_latch_get(&latch, mode, AQ_LOC_DEQUEUE_TAKE);
		want_gets++;
		want_sleeps += unit_counts.waits_begun - begun;
		want_slept += unit_counts.waits_begun > begun;
	}
	else if (!aq_latch_get_nowait(&latch, mode, AQ_LOC_VIEW))
	{
		want_immediate_misses++;
		return;
	}
	else
		want_immediate++;
	inside(mode);
	aq_latch_free(&latch);
	CHECK(!aq_latch_held(&latch));
}

static void
random_user(void *arg)
{
	int			percent_shared = *(int *) arg;

	for (uint32 i = 2 + sim_random(5); i > 0; i--)
	{
		AqLatchMode mode = (int) sim_random(100) < percent_shared ? AQ_SHARED : AQ_EXCLUSIVE;

		get_and_free(mode, sim_random(5) > 0);
		for (uint32 j = sim_random(4); j > 0; j--)
			sim_switch();
	}
}

static void
check_counters(void)
{
	int64		slept_or_spun = read_counter(&latch.misses);

	check_at_rest(&latch);
	CHECK_EQ(protected_number, expected_number);
	CHECK_EQ(aq_latch_willing_gets(&latch), want_gets);
	CHECK_EQ(read_counter(&latch.immediate_gets), want_immediate);
	CHECK_EQ(read_counter(&latch.immediate_misses), want_immediate_misses);
	CHECK_EQ(read_counter(&latch.sleeps), want_sleeps);
	CHECK_EQ(slept_or_spun, read_counter(&latch.spin_gets) + want_slept);
	CHECK(slept_or_spun <= want_gets);
	CHECK(read_counter(&latch.sleeps) + read_counter(&latch.spin_gets) - slept_or_spun >= 0);
	CHECK_EQ(read_counter(&aq_sync_shared->latch_misses[AQ_LATCH_STREAM][AQ_LOC_DEQUEUE_TAKE].waiter_sleeps),
			 want_sleeps);
	CHECK_EQ((read_counter(&latch.spin_time) > 0), (slept_or_spun > 0));
	CHECK_EQ((read_counter(&latch.wait_time) > 0), (want_sleeps > 0));
	CHECK_EQ(read_counter(&latch.holding_sleeps), 0);
	if (sim_nposted < (int) lengthof(sim_posted))
		CHECK_EQ(read_counter(&latch.woken), sim_nposted);
}

static int64
long_holds(void)
{
	return read_counter(&aq_sync_shared->latch_misses[AQ_LATCH_STREAM][AQ_LOC_VIEW].long_holds);
}

/*
 * Any mixture of modes, of waiting and not waiting, of spinning and not: never
 * two inside who exclude each other, never a session that sleeps for ever, and
 * counters that add up.
 */
void
test_latch_random(void)
{
	int			n;
	int			percent_shared;

	sim_start(MAX_N);
	n = 2 + (int) sim_random(MAX_N - 1);
	percent_shared = (int) (sim_random(3) * 50);
	aq_latch_spin_count = (int) (sim_random(3) * 3);
	sim_disturb(sim_random(2) == 0, sim_random(2) == 0);
	prepare();
	for (int i = 0; i < n; i++)
		sim_spawn(i, random_user, &percent_shared);
	sim_run();
	check_counters();
}

/* The number of gets goes on where 32 bits end, and where their highest bit changes. */
void
test_latch_many_gets(void)
{
	static const uint64 starts[] = {UINT64CONST(0x7FFFFFFE), UINT64CONST(0xFFFFFFFE)};

	sim_start(1);
	for (int mode = AQ_SHARED; mode <= AQ_EXCLUSIVE; mode++)
	{
		for (int i = 0; i < (int) lengthof(starts); i++)
		{
			prepare();
			pg_atomic_write_u64(&latch.word, starts[i] << 32);
			pg_atomic_write_u64(&latch.halves, i);
			for (uint64 n = 0; n < 4; n++)
			{
				CHECK_EQ(aq_latch_gets(&latch), starts[i] + n);
				aq_latch_get(&latch, mode, AQ_LOC_VIEW);
				CHECK_EQ(aq_latch_gets(&latch), starts[i] + n + 1);
				aq_latch_free(&latch);
			}
			CHECK_EQ(read_counter(&latch.halves), i + 1);
			/* between the get and its note */
			pg_atomic_write_u64(&latch.halves, i);
			CHECK_EQ(aq_latch_gets(&latch), starts[i] + 4);
		}
	}
}

/* --- first come, first served -------------------------------------------------- */

static int	order[MAX_N];
static int	norder;
static AqLatchMode order_mode;

static bool
is_asleep(void *arg)
{
	return sim_asleep(*(int *) arg);
}

static void
queue_up(void *arg)
{
	int			me = *(int *) arg;

	if (me == 0)
	{
		int			last = MAX_N - 1;

		aq_latch_get(&latch, AQ_EXCLUSIVE, AQ_LOC_VIEW);
		sim_wait_for(is_asleep, &last);
		CHECK_EQ(sim_nposted, 0);
		aq_latch_free(&latch);
		CHECK_EQ(unit_counts.posts, 1);
		return;
	}
	if (me == 1)
	{
		while (aq_latch_holder(&latch) != 0)
			sim_sleep_us(1);
	}
	else
	{
		int			before = me - 1;

		sim_wait_for(is_asleep, &before);
	}
	aq_latch_get(&latch, order_mode, AQ_LOC_VIEW);
	order[norder++] = me;
	if (order_mode == AQ_SHARED)
		inside(AQ_SHARED);
	aq_latch_free(&latch);
}

/*
 * Session 0 holds the latch; 1, 2, ... fall asleep one after the other.  They are
 * posted in this order, each free posts one, and each gets it after one sleep.
 */
void
test_latch_fifo(void)
{
	static int	numbers[MAX_N];

	for (int shared = 0; shared <= 1; shared++)
	{
		sim_start(MAX_N);
		prepare();
		aq_latch_spin_count = 1;
		order_mode = shared ? AQ_SHARED : AQ_EXCLUSIVE;
		norder = 0;
		for (int i = 0; i < MAX_N; i++)
		{
			numbers[i] = i;
			sim_spawn(i, queue_up, &numbers[i]);
		}
		sim_run();
		check_at_rest(&latch);
		CHECK_EQ(sim_nposted, MAX_N - 1);
		for (int i = 0; i < sim_nposted; i++)
			CHECK_EQ(sim_posted[i], i + 1);
		if (!shared)
		{
			for (int i = 0; i < norder; i++)
				CHECK_EQ(order[i], i + 1);
		}
		CHECK_EQ(read_counter(&latch.sleeps), MAX_N - 1);
		CHECK_EQ(read_counter(&latch.misses), MAX_N - 1);
		CHECK_EQ(read_counter(&latch.spin_gets), 0);
		CHECK_EQ(aq_latch_willing_gets(&latch), MAX_N);
		CHECK_EQ(read_counter(&latch.woken), MAX_N - 1);
		/* only the first slept while one and the same session had it */
		if (!shared)
			CHECK(long_holds() <= 1);
	}
}

/* --- shared and exclusive --------------------------------------------------------- */

/* One session after the other, without a scheduler. */
void
test_latch_modes(void)
{
	sim_start(MAX_N);
	prepare();
	unit_be(0);
	CHECK(aq_latch_get_nowait(&latch, AQ_SHARED, AQ_LOC_VIEW));
	CHECK_EQ(aq_latch_holder(&latch), -1);
	unit_be(1);
	CHECK(aq_latch_get_nowait(&latch, AQ_SHARED, AQ_LOC_VIEW));
	unit_be(2);
	CHECK(!aq_latch_get_nowait(&latch, AQ_EXCLUSIVE, AQ_LOC_VIEW));
	unit_be(0);
	aq_latch_free(&latch);
	unit_be(2);
	CHECK(!aq_latch_get_nowait(&latch, AQ_EXCLUSIVE, AQ_LOC_VIEW));
	unit_be(1);
	aq_latch_free(&latch);
	unit_be(2);
	CHECK(aq_latch_get_nowait(&latch, AQ_EXCLUSIVE, AQ_LOC_VIEW));
	CHECK_EQ(aq_latch_holder(&latch), 2);
	unit_be(0);
	CHECK(!aq_latch_get_nowait(&latch, AQ_SHARED, AQ_LOC_VIEW));
	unit_be(2);
	aq_latch_free(&latch);
	unit_be(0);
	check_at_rest(&latch);
	CHECK_EQ(read_counter(&latch.immediate_gets), 3);
	CHECK_EQ(read_counter(&latch.immediate_misses), 3);
	CHECK_EQ(aq_latch_willing_gets(&latch), 0);
	CHECK_EQ(shim_interrupt_holdoff, 0);
}

static void
starving_writer(void *arg)
{
	(void) arg;
	get_and_free(AQ_EXCLUSIVE, true);
	protected_number = -1;		/* tells the readers to stop */
}

static void
overlapping_reader(void *arg)
{
	(void) arg;
	while (protected_number >= 0)
	{
		aq_latch_get(&latch, AQ_SHARED, AQ_LOC_VIEW);
		/* never let go before another reader is in, so the count never falls to 0 by itself */
		for (int i = 0; i < 20; i++)
			sim_switch();
		aq_latch_free(&latch);
	}
}

/* Readers that follow each other without a gap do not keep a writer out. */
void
test_latch_starvation(void)
{
	sim_start(MAX_N);
	prepare();
	aq_latch_spin_count = 3;
	sim_spawn(0, starving_writer, NULL);
	for (int i = 1; i < MAX_N; i++)
		sim_spawn(i, overlapping_reader, NULL);
	sim_run();
	check_at_rest(&latch);
}

static void
share_and_wait(void *arg)
{
	int			me = *(int *) arg;

	if (me == 0)
	{
		int			last = 3;

		aq_latch_get(&latch, AQ_EXCLUSIVE, AQ_LOC_VIEW);
		sim_wait_for(is_asleep, &last);
		aq_latch_free(&latch);
		return;
	}
	if (me == 1)
	{
		while (aq_latch_holder(&latch) != 0)
			sim_sleep_us(1);
	}
	else
	{
		int			before = me - 1;

		sim_wait_for(is_asleep, &before);
	}
	aq_latch_get(&latch, AQ_SHARED, AQ_LOC_VIEW);
	shared_inside++;
	most_shared = Max(most_shared, shared_inside);
	/* only ends when all three are inside together */
	while (most_shared < 3)
		sim_sleep_us(5);
	shared_inside--;
	aq_latch_free(&latch);
}

/* Sleepers that all want to share are let in together: each posts the next. */
void
test_latch_cascade(void)
{
	static int	numbers[4] = {0, 1, 2, 3};

	sim_start(4);
	prepare();
	aq_latch_spin_count = 2;
	for (int i = 0; i < 4; i++)
		sim_spawn(i, share_and_wait, &numbers[i]);
	sim_run();
	CHECK_EQ(most_shared, 3);
	check_at_rest(&latch);
}

/* --- no post too many -------------------------------------------------------------- */

static int	posts_stage;

static bool
stage_reached(void *arg)
{
	return posts_stage >= *(int *) arg;
}

/* Sessions 1 (shared) and 2 (exclusive) fall asleep behind 0. */
static void
post_sleeper(void *arg)
{
	int			me = *(int *) arg;
	int			before = me - 1;

	if (me == 1)
	{
		int			one = 1;

		sim_wait_for(stage_reached, &one);
	}
	else
		sim_wait_for(is_asleep, &before);
	aq_latch_get(&latch, me == 1 ? AQ_SHARED : AQ_EXCLUSIVE, AQ_LOC_VIEW);
	if (me == 1)
	{
		/* the next one wants it alone: it sleeps on while this one shares it */
		CHECK_EQ(sim_nposted, 1);
		CHECK(sim_asleep(2));
		/* another sharer comes and goes: not the last, nobody is posted */
		posts_stage = 2;
		while (posts_stage < 3)
			sim_sleep_us(1);
		CHECK_EQ(sim_nposted, 1);
		CHECK(sim_asleep(2));
	}
	aq_latch_free(&latch);
}

static void
post_holder(void *arg)
{
	int			last = 2;
	int			two = 2;

	(void) arg;
	aq_latch_get(&latch, AQ_EXCLUSIVE, AQ_LOC_VIEW);
	posts_stage = 1;
	sim_wait_for(is_asleep, &last);
	sim_freeze(true);
	aq_latch_free(&latch);
	CHECK_EQ(sim_nposted, 1);
	/* who was posted has not run yet: a newcomer's free posts nobody else */
	CHECK(aq_latch_get_nowait(&latch, AQ_EXCLUSIVE, AQ_LOC_VIEW));
	aq_latch_free(&latch);
	CHECK_EQ(sim_nposted, 1);
	sim_freeze(false);

	/* session 1 shares it now; session 2 wants it alone, so no newcomer may share */
	sim_wait_for(stage_reached, &two);
	CHECK(!aq_latch_get_nowait(&latch, AQ_SHARED, AQ_LOC_VIEW));
	posts_stage = 3;
}

void
test_latch_posts(void)
{
	static int	numbers[3] = {0, 1, 2};

	sim_start(3);
	prepare();
	posts_stage = 0;
	aq_latch_spin_count = 2;
	sim_spawn(0, post_holder, NULL);
	sim_spawn(1, post_sleeper, &numbers[1]);
	sim_spawn(2, post_sleeper, &numbers[2]);
	sim_run();
	check_at_rest(&latch);
	CHECK_EQ(sim_nposted, 2);
	CHECK_EQ(read_counter(&latch.sleeps), 2);
}

/* Two share it, a third wants it alone: the first to leave posts nobody. */
static void
two_share(void *arg)
{
	int			me = *(int *) arg;
	int			last = 2;

	aq_latch_get(&latch, AQ_SHARED, AQ_LOC_VIEW);
	posts_stage++;
	sim_wait_for(is_asleep, &last);
	if (me == 1)
	{
		int			three = 3;

		sim_wait_for(stage_reached, &three);
		CHECK_EQ(sim_nposted, 0);
		aq_latch_free(&latch);
		CHECK_EQ(sim_nposted, 1);
	}
	else
	{
		aq_latch_free(&latch);
		CHECK_EQ(sim_nposted, 0);
		posts_stage++;
	}
}

static void
one_alone(void *arg)
{
	int			two = 2;

	(void) arg;
	sim_wait_for(stage_reached, &two);
	aq_latch_get(&latch, AQ_EXCLUSIVE, AQ_LOC_VIEW);
	aq_latch_free(&latch);
}

void
test_latch_last_sharer(void)
{
	static int	numbers[3] = {0, 1, 2};

	sim_start(3);
	prepare();
	posts_stage = 0;
	aq_latch_spin_count = 2;
	sim_spawn(0, two_share, &numbers[0]);
	sim_spawn(1, two_share, &numbers[1]);
	sim_spawn(2, one_alone, NULL);
	sim_run();
	check_at_rest(&latch);
	CHECK_EQ(read_counter(&latch.sleeps), 1);
}

/* --- classes: how a latch is waited for ---------------------------------------------- */

static AqLatchMode class_mode;
static int64 class_sleeps;
static UnitCounts class_counts;

static bool
slept_enough(void *arg)
{
	UnitCounts *counts = sim_counts(1);

	(void) arg;
	return counts->timed_waits >= class_sleeps || sim_asleep(1);
}

static void
class_holder(void *arg)
{
	(void) arg;
	aq_latch_get(&latch, AQ_EXCLUSIVE, AQ_LOC_VIEW);
	sim_wait_for(slept_enough, NULL);
	aq_latch_free(&latch);
}

static void
class_waiter(void *arg)
{
	(void) arg;
	while (aq_latch_holder(&latch) != 0)
		sim_sleep_us(1);
	aq_latch_get(&latch, class_mode, AQ_LOC_VIEW);
	class_counts = unit_counts;
	aq_latch_free(&latch);
}

/*
 * One session waits for a latch until it has slept that often, or for good;
 * what it did is in class_counts then, its timed sleeps are in sim_timed_us.
 */
static void
wait_in_class(AqLatchMode mode, int64 sleeps)
{
	sim_start(2);
	prepare();
	class_mode = mode;
	class_sleeps = sleeps;
	sim_spawn(0, class_holder, NULL);
	sim_spawn(1, class_waiter, NULL);
	sim_run();
	check_at_rest(&latch);
	CHECK_EQ(read_counter(&latch.misses), 1);
	CHECK_EQ(aq_latch_willing_gets(&latch), 2);
	CHECK_EQ(read_counter(&latch.sleeps), class_counts.sem_waits + class_counts.timed_waits);
	CHECK_EQ(class_counts.waits_begun, read_counter(&latch.sleeps));
	/* one holder all the time; its get may be counted while the first sleep begins */
	CHECK(long_holds() <= read_counter(&latch.sleeps));
	CHECK(long_holds() >= read_counter(&latch.sleeps) - 1);
}

static int64
polls_before_sleep(AqLatchMode mode)
{
	wait_in_class(mode, 1);
	CHECK_EQ(read_counter(&latch.sleeps), 1);
	return class_counts.pauses_at_wait;
}

/* The number of polls is the class's own, or that of all. */
void
test_latch_class(void)
{
	AqLatchClass *class = &aq_latch_classes[2];

	aq_latch_spin_count = 30;
	CHECK_EQ(polls_before_sleep(AQ_EXCLUSIVE), 31);
	CHECK_EQ(polls_before_sleep(AQ_SHARED), 61);
	aq_latch_class[AQ_LATCH_STREAM] = 2;
	*class = (AqLatchClass) {.spin = 5};
	CHECK_EQ(polls_before_sleep(AQ_EXCLUSIVE), 6);
	CHECK_EQ(polls_before_sleep(AQ_SHARED), 11);
	CHECK_EQ(class_counts.yields, 0);
	CHECK_EQ(class_counts.timed_waits, 0);
	class->spin = 0;
	CHECK_EQ(polls_before_sleep(AQ_EXCLUSIVE), 1);
	class->spin = -1;
	CHECK_EQ(polls_before_sleep(AQ_EXCLUSIVE), 31);

	/* a class that another kind of latch has changes nothing here */
	aq_latch_class[AQ_LATCH_STREAM] = 0;
	aq_latch_class[AQ_LATCH_QUEUE] = 2;
	class->spin = 3;
	CHECK_EQ(polls_before_sleep(AQ_EXCLUSIVE), 31);
	aq_latch_class[AQ_LATCH_QUEUE] = 0;
}

/* It yields so often and spins each time, then sleeps as long as the class says. */
void
test_latch_class_sleeps(void)
{
	static const int sleeps[] = {100, 200, 300, 400, 500, 600, 700, 800};
	AqLatchClass *class = &aq_latch_classes[3];

	aq_latch_class[AQ_LATCH_STREAM] = 3;
	*class = (AqLatchClass) {.spin = 4, .yields = 2, .timed = true};
	memcpy(class->sleep_us, sleeps, sizeof(sleeps));

	CHECK_EQ(polls_before_sleep(AQ_EXCLUSIVE), 3 * 5);
	CHECK_EQ(class_counts.sem_waits, 0);
	wait_in_class(AQ_EXCLUSIVE, 11);
	CHECK(class_counts.timed_waits >= 11);
	/* each sleep follows three rounds of spinning and two yields; so does none the get */
	CHECK(class_counts.yields >= 2 * class_counts.timed_waits);
	CHECK(class_counts.yields <= 2 * class_counts.timed_waits + 2);
	for (int i = 0; i < sim_ntimed; i++)
		CHECK_EQ(sim_timed_us[i], sleeps[Min(i, 7)]);
	aq_latch_class[AQ_LATCH_STREAM] = 0;
}

/* As latch_random, where sleeps end by themselves in some sessions or all. */
void
test_latch_timed(void)
{
	int			percent_shared;

	sim_start(MAX_N);
	percent_shared = (int) (sim_random(3) * 50);
	aq_latch_spin_count = (int) (sim_random(3) * 3);
	aq_latch_class[AQ_LATCH_STREAM] = 1;
	aq_latch_classes[1] = (AqLatchClass) {.spin = -1, .yields = (int) sim_random(2), .timed = true};
	for (int i = 0; i < AQ_CLASS_SLEEPS; i++)
		aq_latch_classes[1].sleep_us[i] = 1 + (int) sim_random(30);
	sim_disturb(sim_random(2) == 0, sim_random(2) == 0);
	prepare();
	for (int i = 0; i < MAX_N; i++)
		sim_spawn(i, random_user, &percent_shared);
	sim_run();
	aq_latch_class[AQ_LATCH_STREAM] = 0;
	check_counters();
}

/* --- order, registry, errors --------------------------------------------------------- */

void
test_latch_levels(void)
{
	sim_start(2);
	memset(latches, 0, sizeof(latches));
	aq_latch_init(&latches[0], AQ_LATCH_QUEUE, 1);
	aq_latch_init(&latches[1], AQ_LATCH_STREAM, 1);
	aq_latch_init(&latches[2], AQ_LATCH_STREAM, 2);
	unit_be(0);

	aq_latch_get(&latches[0], AQ_EXCLUSIVE, AQ_LOC_VIEW);
	aq_latch_get(&latches[1], AQ_SHARED, AQ_LOC_VIEW);
	/* a second one of the same level: never by waiting */
	CHECK(aq_latch_get_nowait(&latches[2], AQ_EXCLUSIVE, AQ_LOC_VIEW));
	aq_latch_free(&latches[2]);
	unit_expect_assert = true;
	aq_latch_get(&latches[2], AQ_EXCLUSIVE, AQ_LOC_VIEW);
	CHECK(unit_assert_seen);
	unit_expect_assert = unit_assert_seen = false;
	/* freed in any order */
	aq_latch_free(&latches[0]);
	CHECK(!aq_latch_held(&latches[0]));
	CHECK(aq_latch_held(&latches[1]) && aq_latch_held(&latches[2]));
	aq_latch_free(&latches[1]);
	unit_expect_assert = true;
	aq_latch_get(&latches[0], AQ_EXCLUSIVE, AQ_LOC_VIEW);	/* downwards */
	CHECK(unit_assert_seen);
	unit_expect_assert = false;
	aq_latch_free(&latches[0]);
	aq_latch_free(&latches[2]);
	CHECK_EQ(aq_held_count(), 0);
}

void
test_latch_registry(void)
{
	int			n = 0;
	int64		children = 0;

	sim_start(1);
	memset(latches, 0, sizeof(latches));
	for (int i = 0; i < 3; i++)
		aq_latch_init(&latches[i], AQ_LATCH_WAITERS, i + 1);
	unit_be(0);
	aq_latch_get(&latches[1], AQ_EXCLUSIVE, AQ_LOC_VIEW);
	aq_latch_free(&latches[1]);
	/* again, as when the struct around it is used anew: still there once, counters kept */
	aq_latch_init(&latches[1], AQ_LATCH_WAITERS, 7);
	for (AqLatch *l = (AqLatch *) (uintptr_t) pg_atomic_read_u64(&aq_sync_shared->latches[AQ_LATCH_WAITERS]);
		 l != NULL; l = l->next)
	{
		CHECK(++n <= 3);
		children += l->child;
	}
	CHECK_EQ(n, 3);
	CHECK_EQ(children, 1 + 7 + 3);
	CHECK_EQ(aq_latch_willing_gets(&latches[1]), 1);
}

/* After an error nothing is held, and interrupts are served again. */
void
test_latch_release_all(void)
{
	AqMutex		mutex;

	sim_start(1);
	unit_be(0);
	memset(latches, 0, sizeof(latches));
	aq_latch_init(&latches[0], AQ_LATCH_QUEUE, 1);
	aq_latch_init(&latches[1], AQ_LATCH_STREAM, 1);
	aq_mutex_init(&mutex, AQ_MUTEX_TYPE_OBJECT, 77);
	aq_latch_get(&latches[0], AQ_SHARED, AQ_LOC_VIEW);
	aq_latch_get(&latches[1], AQ_EXCLUSIVE, AQ_LOC_VIEW);
	aq_mutex_get(&mutex, AQ_EXCLUSIVE, AQ_LOC_OBJECT_PIN);
	aq_mutex_get(&mutex, AQ_EXCLUSIVE, AQ_LOC_OBJECT_LOAD);
	shim_interrupt_holdoff = 0; /* what raising an error does */
	aq_locks_release_all();
	aq_held_assert_none();
	CHECK_EQ(shim_interrupt_holdoff, 0);
	check_at_rest(&latches[0]);
	check_at_rest(&latches[1]);
	CHECK_EQ(aq_mutex_holder(&mutex), -1);
	CHECK_EQ(aq_mutex_count(&mutex), 0);
}

/* --- who blocks whom ------------------------------------------------------------------ */

static AqMutex blocked_mutex;
static AqLatchMode blocking_mode;

static bool
waits_for_me(void *arg)
{
	return aq_locks_blocker(1) == *(int *) arg;
}

static void
blocker(void *arg)
{
	int			me = 0;

	(void) arg;
	CHECK_EQ(aq_locks_blocker(1), -1);
	aq_latch_get(&latch, blocking_mode, AQ_LOC_VIEW);
	posts_stage = 1;
	sim_wait_for(waits_for_me, &me);
	aq_mutex_get(&blocked_mutex, blocking_mode, AQ_LOC_OBJECT_PIN);
	CHECK_EQ(aq_locks_blocker(0), -1);
	aq_latch_free(&latch);
	/* it has the latch now and waits for the mutex */
	me = 0;
	posts_stage = 2;
	sim_wait_for(waits_for_me, &me);
	CHECK_EQ(aq_mutex_holder(&blocked_mutex), blocking_mode == AQ_EXCLUSIVE ? 0 : -1);
	aq_mutex_free(&blocked_mutex);
}

static void
blocked(void *arg)
{
	int			stage = 1;

	(void) arg;
	sim_wait_for(stage_reached, &stage);
	aq_latch_get(&latch, AQ_EXCLUSIVE, AQ_LOC_VIEW);
	CHECK_EQ(aq_locks_blocker(1), -1);
	aq_latch_free(&latch);
	stage = 2;
	sim_wait_for(stage_reached, &stage);
	aq_mutex_get(&blocked_mutex, AQ_EXCLUSIVE, AQ_LOC_OBJECT_PIN);
	aq_mutex_free(&blocked_mutex);
}

/* While a session waits, the one that holds what it wants is known, alone or shared. */
void
test_blocker(void)
{
	for (blocking_mode = AQ_SHARED; blocking_mode <= AQ_EXCLUSIVE; blocking_mode++)
	{
		sim_start(3);
		prepare();
		aq_mutex_init(&blocked_mutex, AQ_MUTEX_TYPE_OBJECT, 1);
		posts_stage = 0;
		sim_spawn(0, blocker, NULL);
		sim_spawn(1, blocked, NULL);
		sim_run();
		check_at_rest(&latch);
	}
}

static int64 want_holding[3];

/* Three latches of rising levels, taken one inside the other: still no deadlock. */
static void
nested_user(void *arg)
{
	(void) arg;
	for (int i = 0; i < 3; i++)
	{
		uint32		from = sim_random(3);

		for (uint32 k = from; k < 3; k++)
		{
			int64		begun = unit_counts.waits_begun;

			aq_latch_get(&latches[k], sim_random(2) ? AQ_SHARED : AQ_EXCLUSIVE, AQ_LOC_VIEW);
			if (k > from)
				want_holding[k] += unit_counts.waits_begun - begun;
		}
		sim_switch();
		for (uint32 k = from; k < 3; k++)
			aq_latch_free(&latches[k]);
	}
}

void
test_latch_nested(void)
{
	static const AqLatchId ids[3] = {AQ_LATCH_QUEUE, AQ_LATCH_STREAM, AQ_LATCH_WAITERS};

	sim_start(4);
	aq_latch_spin_count = (int) sim_random(3);
	memset(latches, 0, sizeof(latches));
	memset(want_holding, 0, sizeof(want_holding));
	for (int i = 0; i < 3; i++)
		aq_latch_init(&latches[i], ids[i], 0);
	for (int i = 0; i < 4; i++)
		sim_spawn(i, nested_user, NULL);
	sim_run();
	for (int i = 0; i < 3; i++)
	{
		check_at_rest(&latches[i]);
		CHECK_EQ(read_counter(&latches[i].holding_sleeps), want_holding[i]);
	}
}
