/*-------------------------------------------------------------------------
 *
 * test_wakeup.c
 *	  Lists of waiters, alone and as queues use them; histograms.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "sim.h"
#include "sync/common/hist.h"
#include "tests.h"

#define POOL 12
#define LISTS 3

static AqWaitEntry entries[POOL];
static AqWaitPool pool;
static AqWaitList lists[LISTS];

static void
prepare(uint32 n)
{
	aq_wakeup_pool_init(&pool, entries, n);
	for (int i = 0; i < LISTS; i++)
		aq_wakeup_list_init(&lists[i]);
}

/* Random operations against plain arrays that say what must come out. */
void
test_wakeup_model(void)
{
	uint32		model[LISTS][POOL];
	int			n[LISTS] = {0};
	uint32		woken[POOL];
	uint32		woken_list[POOL];
	int			nwoken = 0;
	int			used = 0;

	sim_start(1);
	prepare(POOL);
	for (int step = 0; step < 100; step++)
	{
		uint32		l = sim_random(LISTS);
		int32		out[POOL];

		switch (sim_random(4))
		{
			case 0:
			case 1:
				{
					uint32		e = aq_wakeup_add(&pool, &lists[l], l, 100 + step, 1 + sim_random(3));

					CHECK_EQ(e == AQ_WAKEUP_NONE, used == POOL);
					if (e == AQ_WAKEUP_NONE)
						break;
					model[l][n[l]++] = e;
					used++;
				}
				break;
			case 2:
				{
					int			wanted = (int) sim_random(4);
					uint32		items = sim_random(2) == 0 ? UINT32_MAX : sim_random(6);
					uint32		left = items;
					uint32		room[POOL];
					int			got;

					for (int i = 0; i < n[l]; i++)
						room[i] = entries[model[l][i]].items;
					got = aq_wakeup_pop(&pool, &lists[l], wanted, items == UINT32_MAX ? NULL : &left, out);
					CHECK(got == Min(wanted, n[l]) || (got < Min(wanted, n[l]) && left == 0));
					for (int i = 0; i < got; i++)
					{
						/* each is woken for as many as it takes, the last one for what is left */
						CHECK(items > 0);
						CHECK_EQ(entries[model[l][i]].items, items == UINT32_MAX ? 1 : Min(room[i], items));
						items -= items == UINT32_MAX ? 0 : entries[model[l][i]].items;
						/* first come, first served */
						CHECK_EQ(out[i], entries[model[l][i]].session);
						CHECK_EQ(entries[model[l][i]].state, AQ_WAKEUP_WOKEN);
						woken[nwoken] = model[l][i];
						woken_list[nwoken++] = l;
					}
					CHECK(items == UINT32_MAX || items == left);
					n[l] -= got;
					memmove(model[l], model[l] + got, n[l] * sizeof(uint32));
				}
				break;
			case 3:
				if (nwoken > 0 && sim_random(2) == 0)
				{
					uint32		i = sim_random((uint32) nwoken);

					CHECK(aq_wakeup_remove(&pool, &lists[woken_list[i]], woken[i]));
					woken[i] = woken[--nwoken];
					woken_list[i] = woken_list[nwoken];
					used--;
				}
				else if (n[l] > 0)
				{
					uint32		i = sim_random((uint32) n[l]);

					CHECK(!aq_wakeup_remove(&pool, &lists[l], model[l][i]));
					n[l]--;
					memmove(&model[l][i], &model[l][i + 1], (n[l] - i) * sizeof(uint32));
					used--;
				}
				break;
		}
		for (int i = 0; i < LISTS; i++)
			CHECK_EQ(lists[i].waiting, n[i]);
	}
}

/* --- as a queue does it ------------------------------------------------------------- */

#define CONSUMERS 4
#define PRODUCERS 2
#define PER_PRODUCER 5
#define MOST 3

static AqLatch latch;
static int	messages;			/* protected by the latch */
static int	taken;
static int	produced;

static void
pass_on(int n)
{
	int32		sessions[POOL];
	uint32		items = n;
	int			popped = aq_wakeup_pop(&pool, &lists[0], POOL, &items, sessions);

	for (int i = 0; i < popped; i++)
		sim_set_latch(sessions[i]);
}

static void
producer(void *arg)
{
	(void) arg;
	for (int i = 0, n; i < PER_PRODUCER; i += n)
	{
		n = 1 + (int) sim_random(MOST);
		n = Min(n, PER_PRODUCER - i);
		aq_latch_get(&latch, AQ_EXCLUSIVE, AQ_LOC_WAIT_POST);
		messages += n;
		produced += n;
		pass_on(n);
		aq_latch_free(&latch);
		for (uint32 k = sim_random(10); k > 0; k--)
			sim_switch();
	}
}

static uint32
take(uint32 most)
{
	uint32		n = Min(most, (uint32) messages);

	messages -= n;
	taken += n;
	return n;
}

/*
 * Looks, registers, looks again, sleeps; sometimes goes away after a wake-up
 * without taking anything, as a session that is cancelled does, or takes fewer
 * than it was woken for.
 */
static void
consumer(void *arg)
{
	bool		never_gives_up = (*(int *) arg == 0);
	uint32		most = 1 + sim_random(MOST);

	while (taken < PRODUCERS * PER_PRODUCER)
	{
		uint32		entry;
		bool		got;
		uint32		woken;

		aq_latch_get(&latch, AQ_EXCLUSIVE, AQ_LOC_WAIT_REGISTER);
		got = take(most) > 0;
		entry = got ? AQ_WAKEUP_NONE :
			aq_wakeup_add(&pool, &lists[0], 0, aq_session_own_number, most);
		aq_latch_free(&latch);
		if (got)
			continue;
		if (taken == PRODUCERS * PER_PRODUCER)
			got = true;			/* the last one: nobody will come */

		if (!got)
			(void) sim_wait_latch(never_gives_up ? -1 : (int64) sim_random(40));

		aq_latch_get(&latch, AQ_EXCLUSIVE, AQ_LOC_WAIT_LEAVE);
		woken = aq_wakeup_remove(&pool, &lists[0], entry);
		if (never_gives_up || sim_random(3) > 0)
		{
			uint32		n = take(1 + sim_random(most));

			woken -= Min(woken, n);
		}
		if (woken > 0 && messages > 0)
			pass_on((int) woken);
		if (taken == PRODUCERS * PER_PRODUCER)
			pass_on(CONSUMERS);
		aq_latch_free(&latch);
	}
}

/*
 * Every message is taken, though consumers time out and give up, and one of them
 * relies on being woken alone.
 */
void
test_wakeup_queue(void)
{
	static int	numbers[CONSUMERS];

	sim_start(CONSUMERS + PRODUCERS);
	prepare(POOL);
	memset(&latch, 0, sizeof(latch));
	aq_latch_init(&latch, AQ_LATCH_WAITERS, 0);
	aq_latch_spin_count = (int) sim_random(3);
	messages = taken = produced = 0;
	for (int i = 0; i < CONSUMERS; i++)
	{
		numbers[i] = i;
		sim_spawn(i, consumer, &numbers[i]);
	}
	for (int i = 0; i < PRODUCERS; i++)
		sim_spawn(CONSUMERS + i, producer, NULL);
	sim_run();
	CHECK_EQ(produced, PRODUCERS * PER_PRODUCER);
	CHECK_EQ(taken, produced);
	CHECK_EQ(messages, 0);
	CHECK_EQ(lists[0].waiting, 0);
}

void
test_hist(void)
{
	CHECK_EQ(aq_hist_bucket(-5), 0);
	CHECK_EQ(aq_hist_bucket(0), 0);
	CHECK_EQ(aq_hist_bucket(1), 1);
	CHECK_EQ(aq_hist_bucket(2), 2);
	CHECK_EQ(aq_hist_bucket(3), 2);
	CHECK_EQ(aq_hist_bucket(4), 3);
	for (int b = 0; b < AQ_HIST_BUCKETS; b++)
	{
		CHECK_EQ(aq_hist_bucket(aq_hist_bound(b) - 1), b);
		CHECK_EQ(aq_hist_bucket(aq_hist_bound(b)), Min(b + 1, AQ_HIST_BUCKETS - 1));
	}
	CHECK_EQ(aq_hist_bucket(INT64_MAX), AQ_HIST_BUCKETS - 1);
}
