/*-------------------------------------------------------------------------
 *
 * places.c
 *	  max_running: how many of a consumer's messages may be in work.
 *
 * A message is in work for a consumer while its view is TAKEN, DOUBT or LEASED.
 * slot.c, which alone changes views, counts them in AqConsumerShm.in_work: so no
 * end of a transaction or lease can forget one, and aq.check() can count them
 * again.  Only partitions that are "limited" are counted.  They are from the first
 * dequeue of a limited consumer of the queue on, which counts what is in work
 * first (loading/first_use.c); a queue that never had a limit has none.
 *
 * A dequeue gets its places and takes the messages under one hold of the stream's
 * latch.  In between nothing raises an error or serves an interrupt, so no place is
 * lost with a session.  What is taken without a place, by the worker, a purge or a
 * cancellation, counts as well.
 *
 * No wake-up is lost: the end of work counts, executes a barrier, then looks whether
 * a stream may have a message for the consumer, and wakes its waiters.  A publisher
 * makes the message ready, executes a barrier, then looks for places, and wakes.  So
 * at least one of them finds both.  A waiter enters the list before it looks for a
 * place and for a message.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/partitions/partitions_private.h"

uint32		aq_places_got = 0;

/* the same of tokens of the consumer's rate: see queue/memory/rate.c */
static uint32 tokens_got = 0;

/* Places have become free: wakes as many waiters, if there may be messages for them. */
static void
wake(AqQueueShm *shm, int position, uint32 n)
{
	if (!aq_waiters_exist(shm))
		return;
	for (Stream *stream = stream_at(shard_queue(shm)->streams); stream != NULL; stream = stream_at(stream->next))
		if (!aq_slot_stream_is_empty(stream, position))
		{
			aq_waiters_wake(shm, position, n);
			return;
		}
}

/*
 * n more of the consumer's messages are in work; n < 0: as many fewer.  The caller
 * holds the latch of the partition's stream.  Does not raise an error.
 */
void
aq_places_count(const Partition *partition, int position, int n)
{
	AqQueueShm *shm = aq_shm_by_index(partition->queue);
	AqConsumerShm *consumer = aq_shm_consumer(shm, position);

	if (consumer == NULL)
		return;					/* a removed one, for which nothing is taken */
	pg_atomic_fetch_add_u32(&consumer->in_work, (uint32) n);
	if (n < 0)
		wake(shm, position, -n);
}

/*
 * Gets up to n places, and tokens of the rate, for messages that the caller takes under
 * the same hold of the latch; then it calls aq_places_end.  limit and rate are 0 if the
 * consumer has none.  Returns how many messages may be taken.
 */
uint32
aq_places_begin(const AqQueue *queue, int position, uint32 limit, const AqRate *rate, uint32 n)
{
	AqConsumerShm *consumer = aq_shm_consumer(queue->shm, position);
	uint32		used = pg_atomic_read_u32(&consumer->in_work);

	Assert(aq_places_got == 0);
	if (limit > 0)
	{
		do
			aq_places_got = used < limit ? Min(limit - used, n) : 0;
		while (aq_places_got > 0 && !pg_atomic_compare_exchange_u32(&consumer->in_work, &used, used + aq_places_got));
		n = aq_places_got;
	}
	if (rate->period > 0)
		n = tokens_got = aq_rate_take(queue, consumer, rate, n);
	return n;
}

/*
 * Gives back the places and tokens that none of the "taken" messages has used.  If the
 * last token is used, has the worker wake sessions at the time of the next one.
 */
void
aq_places_end(const AqQueue *queue, int position, const AqRate *rate, uint32 taken)
{
	AqConsumerShm *consumer = aq_shm_consumer(queue->shm, position);
	uint32		places = aq_places_got,
				tokens = tokens_got - Min(tokens_got, taken);

	aq_places_got = tokens_got = 0;
	if (places > 0)
		pg_atomic_fetch_sub_u32(&consumer->in_work, places);
	if (rate->period > 0)
	{
		aq_rate_give_back(consumer, rate, tokens);
		aq_waiters_check_at_token(queue->shm, consumer, rate);
	}
	if (places > 0 || tokens > 0)
		wake(queue->shm, position, Max(places, tokens));
}
