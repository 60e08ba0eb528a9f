/*-------------------------------------------------------------------------
 *
 * timers.c
 *	  The worker's job for due delays, expirations and retry delays.
 *
 * Every frame has a heap of timers; a partition that is not resident keeps the
 * earliest time, and is loaded when it is due.  So the cost depends on the
 * number of due messages, not of waiting ones.
 *
 * When a timer is removed from its heap, its place stays reserved until it was
 * processed, so that it can be put back after an error.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/worker/worker_private.h"

#include "access/xact.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/* maximum number of timers processed under one hold of the latch */
#define TIMER_BATCH 256

/*
 * interval at which an expired message that a session has taken is checked
 * again, in microseconds
 */
#define EXPIRE_AGAIN ((int64) 1000000)
/*
 * pause before the next try if a due timer could not be processed, in
 * microseconds
 */
#define TIMERS_AGAIN ((int64) 100000)

typedef struct Expired
{
	uint16		slot;
	int16		position;
} Expired;

typedef struct Round
{
	AqQueue    *queue;
	AqQueueShm *shm;
	Stream	   *stream;
	Partition  *partition;
	TimestampTz now;
	uint32		ntimers;
	Timer		timers[TIMER_BATCH];
	bool		again[TIMER_BATCH]; /* put the timer back, for later */
	uint32		woken[AQ_MAX_CONSUMERS];	/* by consumer: messages made ready */
	uint32		nexpired;
	uint32		expired_size;
	Expired    *expired;
} Round;

/* Is a timer of the partition due? */
static bool
is_due(const Partition *partition)
{
	return partition->next_timer != 0 && partition->next_timer <= GetCurrentTimestamp();
}

static void undo_round(void *round, int64 unused);

/*
 * Removes the due timers, keeping their places reserved, and enters the claim.
 * The caller holds the latch.
 */
static void
pop_timers(Round *round)
{
	uint32		most = Min(TIMER_BATCH, aq_frame_most_messages(frame_of(round->partition)));

	while (round->ntimers < most &&
		   aq_frame_pop_timer(round->partition, round->now, &round->timers[round->ntimers]))
	{
		round->ntimers++;
		aq_frame_promise_timers(frame_of(round->partition), 1);
	}
	aq_slot_hold(round->partition, 1);
	aq_claim_enter(undo_round, round, 0);
}

/* Ends the processing of the timers, or puts them back after an error. */
static void
finish_timers(Round *round, bool all_again)
{
	aq_latch_get(&round->stream->latch, AQ_EXCLUSIVE, AQ_LOC_TIMER);
	aq_slot_let_go(round->partition, 1);
	for (uint32 i = 0; i < round->ntimers; i++)
	{
		Timer	   *timer = &round->timers[i];

		if (all_again || round->again[i])
			aq_frame_push_timer(round->partition, all_again ? timer->when : round->now + EXPIRE_AGAIN,
								timer->slot, timer->position, timer->kind);
		else
			aq_frame_drop_timers(frame_of(round->partition), 1);
	}
	aq_settle_check_done(round->stream, round->partition);
	aq_latch_free(&round->stream->latch);
}

/* --- expiration ------------------------------------------------------------------------ */

static void
add_expired(Round *round, uint32 slot, int position)
{
	Expired    *e = &round->expired[round->nexpired++];

	e->slot = slot;
	e->position = position;
}

/*
 * Takes an expired message for all consumers that have not taken it.  The
 * caller holds the latch; the list has room.
 */
static void
take_expired(Round *round, uint32 i)
{
	uint32		number = round->timers[i].slot;
	Slot	   *slot = slot_at(frame_of(round->partition), number);
	uint32		before = round->nexpired;
	uint32		leased = 0;
	int			position = -1;

	if (slot->open == 0)
		return;
	while ((position = aq_frame_next_sub(frame_of(round->partition), position)) >= 0)
		if (position == AQ_ORIGIN_POSITION)
			leased++;			/* it is told of it */
		else if (aq_stream_is_closed(round->queue, round->stream, position))
			continue;			/* it goes back, and expires at its origin */
		else if (aq_slot_take(round->stream, round->partition, position, number) ||
				 aq_slot_take_waiting(round->partition, position, number))
			add_expired(round, number, position);
		else if (aq_slot_is_leased(frame_sub(frame_of(round->partition), position), number))
			leased++;			/* the end of the lease checks it */
	/* a session has taken it, and may roll back */
	if (round->nexpired - before + leased < slot->open)
		round->again[i] = true;
}

static int
compare_expired(const void *a, const void *b)
{
	const Expired *x = a;
	const Expired *y = b;

	return x->position != y->position ? x->position - y->position : (int) x->slot - (int) y->slot;
}

/* Writes the rows of one consumer after the other. */
static void
log_expired(Round *round)
{
	uint16	   *slots = palloc(round->nexpired * sizeof(uint16));
	uint32		n = 0;

	qsort(round->expired, round->nexpired, sizeof(Expired), compare_expired);
	for (uint32 i = 0; i < round->nexpired; i++)
	{
		int			position = round->expired[i].position;

		slots[n++] = round->expired[i].slot;
		if (i + 1 < round->nexpired && round->expired[i + 1].position == position)
			continue;
		aq_heap_write_log(round->partition, LOG_FAILED, 0, position, slots, n);
		n = 0;
	}
}

/* Makes the expired messages fail, or returns them after an error. */
static void
settle_expired(Round *round, bool failed)
{
	aq_latch_get(&round->stream->latch, AQ_EXCLUSIVE, AQ_LOC_TIMER);
	for (uint32 i = 0; i < round->nexpired; i++)
	{
		Expired    *e = &round->expired[i];

		if (!failed)
		{
			aq_slot_give_back(round->stream, round->partition, e->position, e->slot);
			continue;
		}
		aq_slot_fail(round->partition, e->slot);
		round->partition->expired++;
		aq_settle_done(round->shm, round->partition, e->position, e->slot,
					   InvalidTransactionId);
	}
	aq_latch_free(&round->stream->latch);
	if (failed)
	{
		aq_stat_add(AQ_STAT_EXPIRATIONS, round->nexpired);
		for (uint32 i = 0; i < round->nexpired; i++)
			aq_traffic_failed(round->shm, round->expired[i].position, 1, GetCurrentTimestamp());
	}
	round->nexpired = 0;
}

/* --- delays ---------------------------------------------------------------------------------- */

/*
 * Makes a waiting message ready for the consumer.  The caller holds the latch.
 */
static void
make_ready(Round *round, int position, uint32 number)
{
	if (!aq_slot_wake(round->stream, round->partition, position, number))
		return;
	round->partition->made_ready++;
	aq_traffic_ready(round->shm, 1, round->now);
	round->woken[position]++;
}

/*
 * Ends due delays and retry delays: messages become ready for the consumers.
 * The caller holds the latch.
 */
static void
end_delays(Round *round)
{
	Frame	   *frame = frame_of(round->partition);

	for (uint32 i = 0; i < round->ntimers; i++)
	{
		Timer	   *timer = &round->timers[i];
		Slot	   *slot = slot_at(frame, timer->slot);
		int			position = -1;

		if (timer->kind == TIMER_RETRY)
			make_ready(round, timer->position, timer->slot);
		if (timer->kind != TIMER_READY || slot->state != SLOT_WAITING)
			continue;
		aq_slot_undelay(slot);
		while ((position = aq_frame_next_sub(frame, position)) >= 0)
			make_ready(round, position, timer->slot);
	}
}

/* --- a round --------------------------------------------------------------------------------- */

/* Release of a claim: returns the messages and timers of the round. */
static void
undo_round(void *round, int64 unused)
{
	settle_expired(round, false);
	finish_timers(round, true);
}

static void
round_committed(void *arg)
{
	aq_claim_end(undo_round, arg);
	settle_expired(arg, true);
	finish_timers(arg, false);
}

/*
 * Messages that were due when the partition was loaded are ready without a
 * timer; their consumers must be woken, too.
 */
static void
wake_for_loaded(Round *round)
{
	int			position = -1;

	while ((position = aq_frame_next_sub(frame_of(round->partition), position)) >= 0)
		round->woken[position] += frame_sub(frame_of(round->partition), position)->nready;
}

/*
 * Processes a batch of due timers, in the transaction that the caller has
 * begun, and commits it; returns false if there was none.
 */
static bool
run_batch(Round *round, bool loaded)
{
	aq_claim_reserve(1);
	aq_latch_get(&round->stream->latch, AQ_EXCLUSIVE, AQ_LOC_TIMER);
	if (round->partition->frame == 0 || round->partition->stream != round->stream->index)
	{
		aq_latch_free(&round->stream->latch);
		return false;
	}
	pop_timers(round);
	round->expired_size = round->ntimers * aq_frame_count_subs(frame_of(round->partition));
	end_delays(round);
	if (loaded)
		wake_for_loaded(round);
	aq_latch_free(&round->stream->latch);
	for (int position = 0; position < AQ_MAX_CONSUMERS; position++)
		if (round->woken[position] > 0)
			aq_waiters_wake(round->shm, position, round->woken[position]);
	if (round->ntimers == 0)
	{
		aq_claim_end(undo_round, round);
		finish_timers(round, false);
		return false;
	}

	round->expired = palloc((round->expired_size + 1) * sizeof(Expired));
	aq_latch_get(&round->stream->latch, AQ_EXCLUSIVE, AQ_LOC_TIMER);
	for (uint32 i = 0; i < round->ntimers; i++)
		if (round->timers[i].kind == TIMER_EXPIRE)
			take_expired(round, i);
	aq_latch_free(&round->stream->latch);
	if (round->nexpired > 0)
		log_expired(round);
	aq_point("timers-fired");
	aq_notes_at_commit(round_committed, round);
	aq_job_commit(false);
	return true;
}

static void
run_partition(int32 id, AqQueueShm *shm, Stream *stream, Partition *partition)
{
	/*
	 * kept after the transaction and after an error, because the claim needs
	 * it
	 */
	static MemoryContext context;
	bool		more = true;

	if (context == NULL)
		context = AllocSetContextCreate(TopMemoryContext, "pgaq timers", ALLOCSET_DEFAULT_SIZES);
	while (more)
	{
		Round	   *round;
		bool		loaded = false;

		AqQueue    *queue = NULL;

		aq_job_begin();
		if (stream_is_held(stream))
		{
			queue = aq_catalog_get_by_id(id, true);
			if (queue != NULL)
				queue = aq_pins_pin_current(queue, false);
		}
		if (!aq_heap_lock_for_worker(partition, RowExclusiveLock))
		{
			aq_job_commit(false);
			break;
		}
		if (partition->frame == 0)
		{
			aq_load_partition(shm, partition);
			loaded = true;
		}
		MemoryContextReset(context);
		MemoryContextSwitchTo(context);
		round = palloc0(sizeof(Round));
		round->queue = queue;
		round->shm = shm;
		round->stream = stream;
		round->partition = partition;
		round->now = GetCurrentTimestamp();
		more = run_batch(round, loaded);
		if (!more)
			aq_job_commit(false);
		if (aq_worker_turn_is_over())
			break;
	}
	MemoryContextSwitchTo(TopMemoryContext);
	MemoryContextReset(context);
}

void
aq_timers_job(int32 id, AqQueueShm *shm)
{
	ShardQueue *sq = shard_queue(shm);
	TimestampTz next = 0;

	for (Stream *stream = stream_at(sq->streams); stream != NULL; stream = stream_at(stream->next))
	{
		Partition  *partition;
		int64		from = 0;

		while (!aq_worker_turn_is_over() && (partition = aq_stream_partition_from(stream, from, is_due)) != NULL)
		{
			from = partition->number + 1;
			run_partition(id, shm, stream, partition);
			aq_lease_end_due(id, shm, stream, partition);
		}
		aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_TIMER);
		for (uint32 i = stream->head; i != 0; i = partition_at(i)->next)
			aq_clock_sooner(&next, partition_at(i)->next_timer);
		aq_latch_free(&stream->latch);
	}
	if (next != 0)
	{
		TimestampTz now = GetCurrentTimestamp();

		aq_work_announce_time(shm, next > now ? next : aq_worker_turn_is_over() ? now : now + TIMERS_AGAIN);
	}
}
