/*-------------------------------------------------------------------------
 *
 * peers.c
 *	  What part "node" needs to know of distributed queues: which consumers dequeue here, and
 *	  when there is something to send.
 *
 * Part "node" is above this one, so it leaves the functions that are called then.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/memory/memory_private.h"

#include "utils/timestamp.h"

/* a dequeue is noted again after this time, microseconds */
#define NOTE_AGAIN ((int64) 100000)

/* a dequeue after this time without one is news */
#define IS_NEWS ((int64) 1000000)

static void (*prepare_news) (void);
static void (*on_news) (AqPeerNews news);
static bool prepared;			/* in this session */

/* Called once, when the part's parameters are defined.  prepare: before news, may raise an error. */
void
aq_peers_on_news(void (*prepare) (void), void (*news) (AqPeerNews))
{
	prepare_news = prepare;
	on_news = news;
}

/* The session uses a distributed queue.  May raise an error. */
void
aq_peers_prepare(void)
{
	if (prepared || prepare_news == NULL)
		return;
	prepare_news();
	prepared = true;
}

/* Never raises. */
void
aq_peers_news(AqPeerNews news)
{
	if (prepared)
		on_news(news);
}

/* A session dequeues for the consumer. */
void
aq_peers_note_wish(AqQueueShm *shm, int position, TimestampTz now)
{
	AqConsumerShm *consumer = aq_shm_consumer(shm, position);
	TimestampTz before;

	if (consumer == NULL)
		return;
	before = (TimestampTz) pg_atomic_read_u64(&consumer->wanted);
	if (now - before < NOTE_AGAIN && before <= now)
		return;
	pg_atomic_write_u64(&consumer->wanted, (uint64) now);
	if (now - before > IS_NEWS)
		aq_peers_news(AQ_PEERS_WISH);
}

/* When a session has dequeued for the consumer, or waited; 0: never. */
TimestampTz
aq_peers_wish(AqQueueShm *shm, int position)
{
	AqConsumerShm *consumer = aq_shm_consumer(shm, position);

	if (consumer == NULL)
		return 0;
	if (consumer->waiters.waiting > 0 || consumer->selective.waiting > 0)
		return GetCurrentTimestamp();
	return (TimestampTz) pg_atomic_read_u64(&consumer->wanted);
}
