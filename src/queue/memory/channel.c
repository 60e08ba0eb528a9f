/*-------------------------------------------------------------------------
 *
 * channel.c
 *	  The broadcast channels: one list of listeners, with one latch, for all
 *	  queues of a database (pgaq.listen_wakeup = broadcast).
 *
 * A session that makes a message ready, for any consumer of any queue, wakes
 * all sessions that listen on its database's channel; each checks its own
 * queues.  Databases share CHANNELS channels, so that load in one database
 * does not wake the listeners of another one, except where two share a channel.
 * Each channel's latch is a child of "channel operations parent latch"; the hot
 * one is that of the database whose sessions listen.
 * Oracle's listen was observed to work in this way; pgaq has it so that the
 * thundering herd and its latch can be studied.  With targeted wake-ups,
 * listeners enter the lists of their consumers instead, see waiters.c.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/memory/memory_private.h"

#include "storage/latch.h"
#include "storage/proc.h"

#define CHANNELS 16

typedef struct Channel
{
	AqLatch		latch;			/* protects the list */
	AqWaitList	listeners;
	pg_atomic_uint32 waiting;	/* entries in the list; read without the latch */
} Channel;

typedef struct ChannelArea
{
	Channel		channels[CHANNELS];
	AqWaitEntry entries[FLEXIBLE_ARRAY_MEMBER]; /* one for each session, of its database's channel */
} ChannelArea;

static ChannelArea *area;
static bool joined;

/*
 * The channel of this session's database.  No session makes messages of another
 * database ready; queues of a dropped database have no listeners.
 */
static Channel *
own_channel(void)
{
	return &area->channels[MyDatabaseId % CHANNELS];
}

/* Wakes these sessions; does not raise an error. */
void
aq_channel_set_latches(const int32 *sessions, int n)
{
	for (int i = 0; i < n; i++)
	{
		PGPROC	   *proc = aq_session_proc(sessions[i]);

		if (proc != NULL)
		{
			aq_trace_wakeup(proc->pid);
			SetLatch(&proc->procLatch);
		}
	}
}

Size
aq_channel_shmem_size(void)
{
	return CACHELINEALIGN(add_size(offsetof(ChannelArea, entries),
								   mul_size(aq_session_slots(), sizeof(AqWaitEntry))));
}

void
aq_channel_shmem_init(void *memory, bool found)
{
	AqWaitPool	pool;			/* no list of free entries: each belongs to a session */

	area = memory;
	if (found)
		return;
	memset(area, 0, aq_channel_shmem_size());
	for (int i = 0; i < CHANNELS; i++)
	{
		Channel    *channel = &area->channels[i];

		aq_latch_init(&channel->latch, AQ_LATCH_CHANNEL, i + 1);
		aq_wakeup_list_init(&channel->listeners);
		pg_atomic_init_u32(&channel->waiting, 0);
	}
	aq_wakeup_pool_init(&pool, area->entries, aq_session_slots());
}

/* A pool in which only the caller's entry is free. */
static AqWaitPool
pool_with(uint32 entry)
{
	AqWaitPool	pool = {.entries = area->entries, .nentries = aq_session_slots(), .free = entry};

	return pool;
}

void
aq_channel_join(void)
{
	AqWaitPool	pool = pool_with(aq_session_number());
	Channel    *channel = own_channel();

	aq_latch_get(&channel->latch, AQ_EXCLUSIVE, AQ_LOC_WAIT_REGISTER);
	(void) aq_wakeup_add(&pool, &channel->listeners, 0, aq_session_number(), 1);
	pg_atomic_fetch_add_u32(&channel->waiting, 1);
	aq_latch_free(&channel->latch);
	joined = true;
}

/* Has this session been woken since it joined? */
bool
aq_channel_woken(void)
{
	return joined && area->entries[aq_session_number()].state == AQ_WAKEUP_WOKEN;
}

/*
 * No wake-up is passed on, because all sessions were woken.  Returns how many
 * times this session was.
 */
int
aq_channel_leave(void)
{
	AqWaitPool	pool = pool_with(AQ_WAKEUP_NONE);
	Channel    *channel = own_channel();
	uint32		woken;

	if (!joined)
		return 0;
	joined = false;
	aq_latch_get(&channel->latch, AQ_EXCLUSIVE, AQ_LOC_WAIT_LEAVE);
	woken = aq_wakeup_remove(&pool, &channel->listeners, aq_session_number());
	if (woken == 0)
		pg_atomic_fetch_sub_u32(&channel->waiting, 1);
	area->entries[aq_session_number()].next = AQ_WAKEUP_NONE;
	aq_latch_free(&channel->latch);
	return woken > 0 ? 1 : 0;
}

/* For aq.check(): is the session in the list? */
bool
aq_channel_has(int session)
{
	return ((volatile AqWaitEntry *) area->entries)[session].state != AQ_WAKEUP_FREE;
}

bool
aq_channel_has_listeners(void)
{
	return pg_atomic_read_u32(&own_channel()->waiting) > 0;
}

/*
 * Wakes all listeners of this database; does not raise an error.  The caller has executed a
 * memory barrier.  Only as many entries are woken as there are now: sessions
 * that checked, found nothing and joined again are behind them, and are not
 * woken a second time by the same message.
 */
void
aq_channel_wake(void)
{
	Channel    *channel = own_channel();
	uint32		left = pg_atomic_read_u32(&channel->waiting);

	while (left > 0)
	{
		AqWaitPool	pool = pool_with(AQ_WAKEUP_NONE);
		int32		sessions[64];
		int			n;

		aq_latch_get(&channel->latch, AQ_EXCLUSIVE, AQ_LOC_WAIT_POST);
		n = aq_wakeup_pop(&pool, &channel->listeners, Min(left, lengthof(sessions)), NULL, sessions);
		pg_atomic_fetch_sub_u32(&channel->waiting, n);
		aq_latch_free(&channel->latch);
		aq_channel_set_latches(sessions, n);
		aq_stat_add(AQ_STAT_WAKEUPS_SENT, n);
		if (n == 0)
			break;
		left -= n;
	}
}
