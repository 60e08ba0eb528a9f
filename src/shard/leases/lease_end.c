/*-------------------------------------------------------------------------
 *
 * lease_end.c
 *	  Leases whose time is over: the worker's part.
 *
 * A message is taken from its lease, a row of the log says that the lease is
 * over, and when that is on disk the message is ready at its position, or has failed.
 * A message that was given back and whose retry delay ends becomes ready without a row.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/leases/leases_private.h"

#include "access/xact.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/* leases ended in one transaction */
#define END_BATCH 1024

/*
 * Ends that come within this time are looked for as well, microseconds: those of
 * leases that were acknowledged meanwhile do not wake the worker one by one.
 */
#define LOOK_AHEAD ((int64) 1000000)

typedef struct Ending
{
	int16		position;
	uint16		slot;
	bool		fails;
	int64		receipt;
} Ending;

typedef struct Round
{
	AqQueueShm *shm;
	AqQueue    *queue;
	Stream	   *stream;
	Partition  *partition;
	TimestampTz now;
	int64		block;			/* of receipts whose session has ended; 0: leases whose time is over */
	uint32		woken[AQ_MAX_CONSUMERS];
	uint32		n;
	Ending		endings[END_BATCH];
} Round;

/* --- what is due --------------------------------------------------------------------------- */

static bool
is_due(const Round *round, const Lease *lease)
{
	if (round->block != 0)
		return lease->receipt > 0 && aq_lease_block(lease->receipt) == round->block;
	return lease->receipt != 0 && lease->until <= round->now;
}

/* The message's lease or retry delay is over.  Latch held. */
static void
end_one(Round *round, int position, uint32 number)
{
	Partition  *partition = round->partition;
	Lease	   *lease = lease_at(frame_sub(frame_of(partition), position), number);
	Ending	   *ending = &round->endings[round->n];
	bool		delayed = lease->receipt == LEASE_RETRY_DELAY;

	if (!is_due(round, lease))
		return;
	*ending = (Ending) {.position = position, .slot = number, .receipt = delayed ? 0 : lease->receipt,
		.fails = aq_lease_fails(round->queue, partition, position, number,
								!delayed && (lease->receipt & AQ_RECEIPT_ALONE) != 0, round->now)};
	if (!delayed)
		round->n += aq_slot_hold_lease(partition, position, number);
	else if (ending->fails)
		round->n += aq_slot_take_waiting(partition, position, number);
	else if (slot_at(frame_of(partition), number)->state == SLOT_READY)
		round->woken[position] += aq_slot_wake(round->stream, partition, position, number);
}

/* Ends leases of a consumer, as many as the round has room for.  Latch held. */
static void
end_consumer(Round *round, int position)
{
	const SubMore *more = sub_more(frame_sub(frame_of(round->partition), position));

	for (uint32 page = 0; more != NULL && page < LEASE_PAGES; page++)
	{
		if (more->ends[page] == 0 || (round->block == 0 && more->ends[page] > round->now))
			continue;
		if (round->n + LEASES_PER_CHUNK > END_BATCH)
			return;
		for (uint32 i = 0; i < LEASES_PER_CHUNK; i++)
			end_one(round, position, page * LEASES_PER_CHUNK + i);
	}
}

static void undo_round(void *round, int64 unused);

static void
collect(Round *round)
{
	Partition  *partition = round->partition;
	Frame	   *frame;
	int			position = -1;

	aq_claim_reserve(1);
	aq_latch_get(&round->stream->latch, AQ_EXCLUSIVE, AQ_LOC_LEASE_END);
	if (partition->frame != 0 && partition->stream == round->stream->index)
	{
		frame = frame_of(partition);
		if (frame->lease_end != 0 && (round->block != 0 || frame->lease_end <= round->now))
		{
			while ((position = aq_frame_next_sub(frame, position)) >= 0)
				end_consumer(round, position);
			aq_slot_find_ends(partition, round->now + LOOK_AHEAD);
			aq_frame_set_next_timer(partition);
		}
	}
	aq_claim_enter(undo_round, round, 0);
	aq_latch_free(&round->stream->latch);
	for (position = 0; position < AQ_MAX_CONSUMERS; position++)
		if (round->woken[position] > 0)
			aq_waiters_wake(round->shm, position, round->woken[position]);
	memset(round->woken, 0, sizeof(round->woken));
}

/* --- how they end -------------------------------------------------------------------------- */

static int
compare_endings(const void *a, const void *b)
{
	const Ending *x = a;
	const Ending *y = b;

	if (x->position != y->position)
		return x->position < y->position ? -1 : 1;
	if (x->fails != y->fails)
		return x->fails ? 1 : -1;
	if (x->receipt != y->receipt)
		return x->receipt < y->receipt ? -1 : 1;
	return (int) x->slot - (int) y->slot;
}

/* One row for those that have the consumer, the receipt and the outcome in common. */
static void
write_endings(Round *round)
{
	uint16	   *slots = palloc(END_BATCH * sizeof(uint16));
	static const char lease_over[] = {AQ_DEATH_LEASE, '\0'};

	qsort(round->endings, round->n, sizeof(Ending), compare_endings);
	for (uint32 i = 0; i < round->n;)
	{
		const Ending *first = &round->endings[i];
		uint32		n = 0;

		for (; i < round->n && round->endings[i].position == first->position &&
			 round->endings[i].fails == first->fails && round->endings[i].receipt == first->receipt; i++)
			slots[n++] = round->endings[i].slot;
		aq_heap_write_lease(round->partition, first->fails ? LOG_FAILED : LOG_OVER, 0, first->position, slots, n,
							first->receipt, first->fails && first->receipt != 0 ? lease_over : NULL);
	}
}

/* The rows are on disk, or (over is false) the leases go on.  Does not raise. */
static void
settle(Round *round, bool over)
{
	Partition  *partition = round->partition;
	uint32		ended = 0,
				failed = 0;

	aq_latch_get(&round->stream->latch, AQ_EXCLUSIVE, AQ_LOC_LEASE_END);
	for (uint32 i = 0; i < round->n; i++)
	{
		const Ending *ending = &round->endings[i];

		if (over && ending->receipt != 0)
			ended++;
		if (over && ending->receipt != 0 && ending->fails)
			failed++;
		if (over && ending->fails)
			aq_settle_failed(round->shm, partition, ending->position, ending->slot);
		else if (aq_consumer_removed(aq_shm_consumer(round->shm, ending->position)))
			aq_settle_removed(round->shm, partition, ending->position, ending->slot, InvalidTransactionId);
		else if (!over && ending->receipt == 0)
			aq_slot_delay_until(partition, ending->position, ending->slot, round->now);
		else if (over || !aq_settle_lease_goes_on(partition, ending->position, ending->slot))
		{
			aq_slot_give_back(round->stream, partition, ending->position, ending->slot);
			round->woken[ending->position]++;
		}
	}
	if (partition->next_timer != 0)
		aq_work_announce_time(round->shm, partition->next_timer);
	aq_settle_check_done(round->stream, partition);
	aq_latch_free(&round->stream->latch);
	aq_stat_add(AQ_STAT_LEASES_ENDED, ended);
	aq_stat_add(AQ_STAT_LEASES_FAILED, failed);
	for (int position = 0; position < AQ_MAX_CONSUMERS; position++)
		if (round->woken[position] > 0)
			aq_waiters_wake(round->shm, position, round->woken[position]);
	round->n = 0;
}

/* A claim: the leases that are being ended. */
static void
undo_round(void *round, int64 unused)
{
	settle(round, false);
}

static void
round_committed(void *round)
{
	aq_claim_end(undo_round, round);
	settle(round, true);
}

/* End a batch of leases, in the transaction that the caller has begun, and commit it; false when none was due. */
static bool
run_round(Round *round)
{
	collect(round);
	if (round->n == 0)
	{
		aq_claim_end(undo_round, round);
		aq_job_commit(false);
		return false;
	}
	aq_point("leases-found");
	write_endings(round);
	aq_point("leases-over");
	aq_notes_at_commit(round_committed, round);
	aq_job_commit(true);
	return true;
}

/* owner_view: of the queue; InvalidOid: any */
static void
end_leases(int32 id, Oid owner_view, AqQueueShm *shm, Stream *stream, Partition *partition, int64 block)
{
	static Round *round;		/* survives an error: the claim needs it */
	bool		more = true;

	if (round == NULL)
		round = MemoryContextAlloc(TopMemoryContext, sizeof(Round));
	while (more)
	{
		memset(round, 0, offsetof(Round, endings));
		aq_job_begin();
		round->queue = aq_catalog_get_by_id(id, true);
		if (round->queue == NULL || (OidIsValid(owner_view) && round->queue->owner_view != owner_view) ||
			!aq_heap_lock_for_worker(partition, RowExclusiveLock))
		{
			aq_job_commit(false);
			return;
		}
		round->shm = shm;
		round->stream = stream;
		round->partition = partition;
		round->now = GetCurrentTimestamp();
		round->block = block;
		more = run_round(round);
	}
}

/* Leases of the partition whose time is over.  It is resident, unless it was evicted just now. */
void
aq_lease_end_due(int32 id, AqQueueShm *shm, Stream *stream, Partition *partition)
{
	end_leases(id, InvalidOid, shm, stream, partition, 0);
}

/* Leases with receipts of this block: their session has ended. */
void
aq_lease_end_block(int32 id, Oid owner_view, AqQueueShm *shm, Stream *stream, Partition *partition, int64 block)
{
	end_leases(id, owner_view, shm, stream, partition, block);
}
