/*-------------------------------------------------------------------------
 *
 * rate.c
 *	  How many messages of a consumer may be taken now, by its rate.
 *
 * A token bucket, kept as one number for each consumer: the time from which on the
 * next token can be had, AqConsumerShm.next_token (this is called the generic cell
 * rate algorithm).  In any time t, at most span / period + t / period messages are
 * taken.  A token that was used is used, also if the dequeue rolls back.  Times are
 * monotonic, in nanoseconds, so a change of the clock does not matter.
 *
 * The number is lost with shared memory.  After a start or a promotion the bucket of
 * an older queue therefore fills from empty; that of a queue created since is full.  A
 * queue does not leave the object cache before its buckets are full.
 *
 * No session sleeps while there are a token and a message for it.  A dequeue that uses
 * the last token has the worker check the waiters at the time of the next one, if there
 * are any (aq_waiters_check_at_token); one that finds no token, before it searches, does so as
 * well, and a waiter is in the list by then.  So while there is no token, and a session
 * sleeps, the worker has a time; publishers wake no session then.  The worker wakes as
 * many as there are tokens.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/memory/memory_private.h"

#include "utils/timestamp.h"

/* the worker is not asked more often for a rate with a burst */
#define BETWEEN_CHECKS (AQ_SECOND_NS / 100)

static int64
now_ns(void)
{
	return aq_clock_us() * 1000;
}

/* "next" of a consumer that has none yet. */
static int64
first(const AqQueue *queue, const AqRate *rate, int64 now)
{
	int64		since = aq_jobs_since() * 1000;
	int64		age = (GetCurrentTimestamp() - queue->created) * 1000;

	if (since == 0)
		return now + rate->period;
	return age < now - since ? now - rate->span : since + rate->period;
}

/* When the next token can be had, with "next" as stored: not later than after a period, nor before the bucket is full. */
static int64
next_token(const AqQueue *queue, const AqRate *rate, int64 stored, int64 now)
{
	int64		next = stored == 0 ? first(queue, rate, now) : stored;

	return Min(Max(next, now - (rate->span - rate->period)), now + rate->period);
}

static uint64
stored_form(int64 next)
{
	return next == 0 ? 1 : (uint64) next;	/* 0 would mean that nothing is stored */
}

/*
 * Uses up to n tokens, and returns their number.  Does not raise an error, and may be
 * called under a latch.
 */
uint32
aq_rate_take(const AqQueue *queue, AqConsumerShm *consumer, const AqRate *rate, uint32 n)
{
	uint64		stored = pg_atomic_read_u64(&consumer->next_token);

	for (;;)
	{
		int64		now = now_ns();
		int64		next = next_token(queue, rate, (int64) stored, now);
		int64		got = next > now ? 0 : Min((now - next) / rate->period + 1, n);

		if (pg_atomic_compare_exchange_u64(&consumer->next_token, &stored, stored_form(next + got * rate->period)))
		{
			if (got > 0)
				aq_raise_to(&consumer->bucket_full, (uint64) (next + (got - 1) * rate->period + rate->span));
			return got;
		}
	}
}

/* Those that were taken from the same consumer, and not used. */
void
aq_rate_give_back(AqConsumerShm *consumer, const AqRate *rate, uint32 n)
{
	if (n > 0)
		pg_atomic_fetch_sub_u64(&consumer->next_token, (uint64) n * rate->period);
}

/*
 * How many tokens there are.  Stores when the next one can be had, for callers without
 * a description, if nothing is stored or it was another rate.
 */
uint32
aq_rate_tokens(const AqQueue *queue, AqConsumerShm *consumer, const AqRate *rate)
{
	uint64		stored = pg_atomic_read_u64(&consumer->next_token);
	int64		now,
				next;

	do
	{
		now = now_ns();
		next = next_token(queue, rate, (int64) stored, now);
	} while ((stored == 0 || (int64) stored > next) &&
			 !pg_atomic_compare_exchange_u64(&consumer->next_token, &stored, stored_form(next)));
	return next > now ? 0 : Min((now - next) / rate->period + 1, PG_INT32_MAX - 1);
}

/* Has the consumer a token, or no rate?  Called without a description of the queue. */
bool
aq_rate_has_token(AqConsumerShm *consumer)
{
	int64		next = (int64) pg_atomic_read_u64(&consumer->next_token);

	return next == 0 || next <= now_ns();
}

/*
 * When the worker should check the waiters: at the time of the next token, or a little
 * later, with several tokens.  0: there is one now.
 */
TimestampTz
aq_rate_next(AqConsumerShm *consumer, const AqRate *rate)
{
	int64		next = (int64) pg_atomic_read_u64(&consumer->next_token);
	int64		now = now_ns();

	if (next <= now)
		return 0;
	next = Max(next, now + Min(rate->span - rate->period, BETWEEN_CHECKS));
	return GetCurrentTimestamp() + (next - now + 999) / 1000;
}
