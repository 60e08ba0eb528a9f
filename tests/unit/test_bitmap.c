/*-------------------------------------------------------------------------
 *
 * test_bitmap.c
 *	  The bitmaps of ready messages: against a model, and as enqueuers and
 *	  dequeuers use them, under a latch.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "shard/partitions/bitmap.h"
#include "sim.h"
#include "tests.h"

#define BITS 192

/* Random operations against an array of bools. */
void
test_bitmap_model(void)
{
	uint64_t	words[BITS / 64] = {0};
	bool		model[BITS] = {0};

	sim_start(1);
	for (int step = 0; step < 300; step++)
	{
		uint32		bit = sim_random(BITS);

		if (sim_random(3) == 0)
		{
			CHECK_EQ(aq_bitmap_set(words, bit), !model[bit]);
			model[bit] = true;
		}
		else if (sim_random(2) == 0)
		{
			CHECK_EQ(aq_bitmap_clear(words, bit), model[bit]);
			model[bit] = false;
		}
		else
		{
			uint32		n = sim_random(BITS - bit + 1);

			aq_bitmap_set_range(words, bit, n);
			for (uint32 i = bit; i < bit + n; i++)
				model[i] = true;
		}
		bit = sim_random(BITS + 1);
		{
			int			expected = AQ_BITMAP_NONE;

			for (int i = BITS - 1; i >= (int) bit; i--)
				if (model[i])
					expected = i;
			CHECK_EQ(aq_bitmap_next(words, BITS, bit), expected);
		}
		for (uint32 i = 0; i < BITS; i++)
			CHECK_EQ(aq_bitmap_test(words, i), model[i]);
	}
}

/* --- enqueue and dequeue ------------------------------------------------------ */

#define PRODUCERS 3
#define CONSUMERS 2
#define PER_PRODUCER (BITS / PRODUCERS)

static AqLatch latch;
static uint64_t ready[BITS / 64];
static uint32 reserved;			/* slots given out */
static int	producer_of[BITS];
static int	sequence_of[BITS];
static int	taken_by[BITS];
static int	last_sequence[CONSUMERS][PRODUCERS];
static uint32 ntaken;
static uint32 nproduced;

/*
 * A session enqueues its messages a few at a time: reserve slots, let others
 * run, publish.
 */
static void
produce(void *arg)
{
	int			me = *(int *) arg;
	int			sent = 0;

	while (sent < PER_PRODUCER)
	{
		uint32		n = 1 + sim_random(4);
		uint32		first;

		n = n < (uint32) (PER_PRODUCER - sent) ? n : (uint32) (PER_PRODUCER - sent);
		aq_latch_get(&latch, AQ_EXCLUSIVE, AQ_LOC_ENQUEUE_RESERVE);
		first = reserved;
		reserved += n;
		for (uint32 i = 0; i < n; i++)
		{
			producer_of[first + i] = me;
			sequence_of[first + i] = sent + (int) i;
		}
		aq_latch_free(&latch);

		aq_latch_get(&latch, AQ_EXCLUSIVE, AQ_LOC_ENQUEUE_PUBLISH);
		aq_bitmap_set_range(ready, first, n);
		nproduced += n;
		aq_latch_free(&latch);
		sent += n;
	}
}

static bool
something_to_do(void *arg)
{
	(void) arg;
	return nproduced > ntaken || ntaken == BITS;
}

/* Takes the first ready slots; a session's messages come in its order. */
static void
consume(void *arg)
{
	int			me = *(int *) arg - PRODUCERS;

	while (ntaken < BITS)
	{
		int			slot = -1;

		sim_wait_for(something_to_do, NULL);
		aq_latch_get(&latch, AQ_EXCLUSIVE, AQ_LOC_DEQUEUE_TAKE);
		for (uint32 n = 1 + sim_random(5); n > 0; n--)
		{
			slot = aq_bitmap_next(ready, BITS, slot + 1);
			if (slot < 0)
				break;
			CHECK(aq_bitmap_clear(ready, slot));
			CHECK_EQ(taken_by[slot], -1);
			taken_by[slot] = me;
			CHECK(sequence_of[slot] > last_sequence[me][producer_of[slot]]);
			last_sequence[me][producer_of[slot]] = sequence_of[slot];
			ntaken++;
		}
		aq_latch_free(&latch);
	}
}

/* Everything is taken once, whoever runs when. */
void
test_bitmap_queue(void)
{
	static int	numbers[PRODUCERS + CONSUMERS];

	sim_start(PRODUCERS + CONSUMERS);
	aq_latch_init(&latch, AQ_LATCH_STREAM, 1);
	memset(ready, 0, sizeof(ready));
	memset(taken_by, -1, sizeof(taken_by));
	memset(last_sequence, -1, sizeof(last_sequence));
	reserved = ntaken = nproduced = 0;
	for (int i = 0; i < PRODUCERS + CONSUMERS; i++)
	{
		numbers[i] = i;
		sim_spawn(i, i < PRODUCERS ? produce : consume, &numbers[i]);
	}
	sim_run();
	CHECK_EQ(ntaken, BITS);
	CHECK_EQ(aq_bitmap_next(ready, BITS, 0), AQ_BITMAP_NONE);
	for (int i = 0; i < BITS; i++)
		CHECK(taken_by[i] >= 0);
}
