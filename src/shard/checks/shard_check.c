/*-------------------------------------------------------------------------
 *
 * shard_check.c
 *	  For aq.check(): do slots, bitmaps, counters, timers and lists of the
 *	  sharded store agree with each other?  compare.c compares with the tables.
 *
 * A partition is copied under its stream's latch, so that the copy is
 * consistent, and the copy is checked without the latch.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/checks/checks_private.h"
#include "shard/checks/copy.h"
#include "shard/partitions/tag.h"

#include "port/pg_bitutils.h"
#include "storage/procarray.h"

/* --- copies --------------------------------------------------------------------- */

static uint32
count_subs(const Partition *partition)
{
	uint32		n = 0;
	int			position = -1;

	while (partition->frame != 0 && (position = aq_frame_next_sub(frame_of(partition), position)) >= 0)
		n++;
	return n;
}

static void
copy_bitmap(uint64_t *copy, AqChunk chunk)
{
	if (chunk == 0)
		memset(copy, 0, PARTITION_SLOTS / 8);
	else
		memcpy(copy, bitmap_of(chunk), PARTITION_SLOTS / 8);
}

/* Leases and retry delays of a page; returns when the first one ends, 0 if there is none.  Latch held. */
static TimestampTz
copy_lease_page(SubCopy *to, const FrameSub *sub, uint32 page)
{
	TimestampTz first = 0;

	for (uint32 i = page * LEASES_PER_CHUNK; i < (page + 1) * LEASES_PER_CHUNK; i++)
	{
		const Lease *lease = lease_at(sub, i);
		bool		leased = aq_bitmap_test(to->leased, i);
		bool		delayed = lease->receipt == LEASE_RETRY_DELAY && aq_bitmap_test(to->waiting, i);

		if (leased && (lease->receipt <= 0 || lease->until <= 0))
			to->nameless++;
		if (delayed)
			(void) aq_bitmap_set(to->in_retry_delay, i);
		if ((delayed || leased) && (first == 0 || lease->until < first))
			first = lease->until;
	}
	return first;
}

/* A consumer's leases and retry delays; returns when the first one ends.  Latch held. */
static void
copy_leases(PartitionCopy *copy, SubCopy *to, const FrameSub *sub)
{
	const SubMore *more = sub_more(sub);

	copy_bitmap(to->leased, more != NULL ? more->leased : 0);
	to->nleased = sub_leased(sub);
	to->nameless = to->late_pages = 0;
	memset(to->in_retry_delay, 0, sizeof(to->in_retry_delay));
	for (uint32 page = 0; more != NULL && page < LEASE_PAGES; page++)
	{
		TimestampTz first;

		if (more->leases[page] == 0)
		{
			to->nameless += pg_popcount((const char *) to->leased + page * LEASES_PER_CHUNK / 8, LEASES_PER_CHUNK / 8);
			continue;
		}
		first = copy_lease_page(to, sub, page);
		if (first == 0)
			continue;
		if (more->ends[page] == 0 || more->ends[page] > first)
			to->late_pages++;
		if (copy->first_end == 0 || first < copy->first_end)
			copy->first_end = first;
	}
}

/* Copies a frame; the copy has room for it.  The caller holds the latch. */
static void
copy_frame(PartitionCopy *copy, Stream *stream)
{
	Frame	   *frame = frame_of(&copy->partition);
	int			position = -1;

	copy->timers_reserved = frame->timers_reserved;
	copy->lease_end = frame->lease_end;
	copy->first_end = 0;
	for (uint32 s = 0; s < PARTITION_SEGMENTS; s++)
		if (frame->segments[s] != 0)
			memcpy(&copy->slots[s * SEGMENT_SLOTS], aq_chunk_ptr(frame->segments[s]), AQ_CHUNK_SIZE);
	for (uint32 i = 0; i < PARTITION_SLOTS; i++)
		copy->tags[i] = tag_at(frame, i);
	while ((position = aq_frame_next_sub(frame, position)) >= 0)
	{
		FrameSub   *sub = frame_sub(frame, position);
		SubCopy    *to = &copy->subs[copy->nsubs++];

		to->position = position;
		to->sub = *sub;
		to->holds = stream_sub(stream, position)->ndoubt;
		copy_bitmap(to->ready, sub->ready);
		copy_bitmap(to->waiting, sub->waiting);
		copy_bitmap(to->retry, sub->retry);
		copy_bitmap(to->doubt, sub->doubt);
		copy_leases(copy, to, sub);
	}
	for (uint32 i = 0; i < frame->ntimers; i++)
	{
		AqChunk    *pages = aq_chunk_ptr(frame->timers);

		copy->timers[copy->ntimers++] = ((Timer *) aq_chunk_ptr(pages[i / TIMERS_PER_CHUNK]))[i % TIMERS_PER_CHUNK];
	}
}

/*
 * Copies the stream's first partition from a number on; NULL if there is none.
 * Repeated if the partition grew while memory was allocated without the latch.
 */
PartitionCopy *
aq_shard_check_copy(Stream *stream, int64 from)
{
	PartitionCopy *copy = palloc0(sizeof(PartitionCopy));
	uint32		subs_size = 0,
				timers_size = 0;

	for (;;)
	{
		Partition  *partition;
		uint32		nsubs,
					ntimers;

		aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_VIEW);
		partition = aq_stream_first_from(stream, from);
		if (partition == NULL)
		{
			aq_latch_free(&stream->latch);
			return NULL;
		}
		nsubs = count_subs(partition);
		ntimers = partition->frame != 0 ? frame_of(partition)->ntimers : 0;
		if (nsubs <= subs_size && ntimers <= timers_size)
		{
			copy->partition = *partition;
			copy->nsubs = copy->ntimers = 0;
			if (partition->frame != 0)
				copy_frame(copy, stream);
			aq_latch_free(&stream->latch);
			return copy;
		}
		aq_latch_free(&stream->latch);
		subs_size = nsubs + 4;
		timers_size = ntimers + TIMERS_PER_CHUNK;
		/* zeros, because copies are compared byte by byte, with their padding */
		copy->subs = palloc_extended(subs_size * sizeof(SubCopy), MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
		copy->timers = palloc(timers_size * sizeof(Timer));
	}
}

static char *
place_of(const Stream *stream, const Partition *partition)
{
	return psprintf("stream %d, partition %lld", stream->number, (long long) partition->number);
}

/* --- slots and bits ------------------------------------------------------------- */

/* Sums over a copy's slots and bits. */
typedef struct Sums
{
	uint32		pending;
	uint32		failed;
	uint32		open;			/* of ready and waiting slots */
	uint32		bits;			/* ready, waiting, to be counted, leased */
	uint32		retry;
	uint32		taken;			/* by running or prepared transactions, according to the consumers */
	uint32		doubt;			/* taken by prepared transactions */
	uint32		slots;			/* highest used slot, plus one */
} Sums;

static void
sum_slots(AqFindings *findings, const char *place, const PartitionCopy *copy, Sums *sums)
{
	uint32		dead = 0,
				wrong = 0,
				unknown = 0;
	TransactionId last = InvalidTransactionId;
	bool		last_runs = false;

	for (uint32 i = 0; i < PARTITION_SLOTS; i++)
	{
		const Slot *slot = &copy->slots[i];
		bool		takeable = slot->state == SLOT_READY || slot->state == SLOT_WAITING;

		if (slot->state != SLOT_EMPTY)
			sums->slots = i + 1;
		if (slot->state == SLOT_PENDING || slot->state == SLOT_DOUBT)
			sums->pending++;
		if ((slot->flags & SLOT_FAILED) != 0)
			sums->failed++;
		sums->open += takeable ? slot->open : 0;
		wrong += takeable ? slot->open == 0 : slot->state == SLOT_DONE && slot->open > 0;
		if (slot->state != SLOT_PENDING && slot->state != SLOT_DOUBT)
			continue;
		if (slot->xid != last)
		{
			last = slot->xid;
			last_runs = slot->state == SLOT_PENDING ? TransactionIdIsInProgress(last)
				: aq_doubt_table_has(partition_at(copy->partition.index), last);
		}
		if (slot->state == SLOT_PENDING && !last_runs)
			dead++;
		if (slot->state == SLOT_DOUBT && !last_runs)
			unknown++;
	}
	if (dead > 0)
		aq_finding_add(findings, place, "pending slots of transactions that have ended", dead, 0, NULL);
	if (unknown > 0)
		aq_finding_add(findings, place, "slots in doubt without an entry", unknown, 0, NULL);
	if (wrong > 0)
		aq_finding_add(findings, place, "slots whose state does not fit their consumers", wrong, 0, NULL);
}

static void
check_sub(AqFindings *findings, const char *place, const PartitionCopy *copy, const SubCopy *sub, Sums *sums)
{
	const char *at = psprintf("%s, consumer %d", place, sub->position);
	uint32		ready = pg_popcount((const char *) sub->ready, PARTITION_SLOTS / 8);
	uint32		waiting = pg_popcount((const char *) sub->waiting, PARTITION_SLOTS / 8);
	uint32		retry = pg_popcount((const char *) sub->retry, PARTITION_SLOTS / 8);
	uint32		doubt = pg_popcount((const char *) sub->doubt, PARTITION_SLOTS / 8);
	uint32		leased = pg_popcount((const char *) sub->leased, PARTITION_SLOTS / 8);
	int			first = aq_bitmap_next(sub->ready, PARTITION_SLOTS, 0);
	uint32		wrong = 0,
				twice = 0;

	aq_finding_compare(findings, at, "ready messages", sub->sub.nready, ready);
	aq_finding_compare(findings, at, "waiting messages", sub->sub.nwaiting, waiting);
	aq_finding_compare(findings, at, "messages with a retry count to be written", sub->sub.nretry, retry);
	aq_finding_compare(findings, at, "messages taken by prepared transactions", sub->sub.ndoubt, doubt);
	aq_finding_compare(findings, at, "leased messages", sub->nleased, leased);
	aq_finding_compare(findings, at, "leases without a receipt or an end", sub->nameless, 0);
	aq_finding_compare(findings, at, "pages with a lease that ends before they are searched", sub->late_pages, 0);
	if (first >= 0 && first < sub->sub.first && sub->holds == 0)
		aq_finding_add(findings, at, "first ready message", sub->sub.first, first, NULL);
	for (uint32 i = aq_copy_next(sub, 0); i < PARTITION_SLOTS; i = aq_copy_next(sub, i + 1))
	{
		bool		is_ready = aq_bitmap_test(sub->ready, i);
		bool		is_waiting = aq_bitmap_test(sub->waiting, i);
		bool		is_retry = aq_bitmap_test(sub->retry, i);
		bool		is_doubt = aq_bitmap_test(sub->doubt, i);
		bool		is_leased = aq_bitmap_test(sub->leased, i);
		SlotState	state = copy->slots[i].state;

		if ((is_ready && state != SLOT_READY) ||
			((is_waiting || is_retry || is_doubt || is_leased) && state != SLOT_READY && state != SLOT_WAITING))
			wrong++;
		if (is_ready + is_waiting + is_retry + is_doubt + is_leased > 1)
			twice++;
	}
	if (wrong > 0)
		aq_finding_add(findings, at, "messages for consumers whose slot is not ready", wrong, 0, NULL);
	if (twice > 0)
		aq_finding_add(findings, at, "messages that are in two states", twice, 0, NULL);
	sums->bits += ready + waiting + retry + leased;
	sums->retry += retry;
	sums->taken += sub->sub.ntaken;
	if (sub->sub.ntaken < doubt)
		aq_finding_add(findings, at, "messages taken", sub->sub.ntaken, doubt, NULL);
	sums->doubt += doubt;
}

/* --- timers --------------------------------------------------------------------- */

/*
 * Does a slot need each of its timers, and does it have all that it needs?  Bits
 * for the timers found:
 */
#define HAS_READY_TIMER 1
#define HAS_EXPIRE_TIMER 2

static bool
waits_by_retry(const PartitionCopy *copy, uint32 slot)
{
	for (uint32 i = 0; i < copy->nsubs; i++)
		if (aq_bitmap_test(copy->subs[i].waiting, slot) && !aq_bitmap_test(copy->subs[i].in_retry_delay, slot))
			return true;
	return false;
}

/* Then the timer of an expiration may be gone, because the end of a lease checks the expiration. */
static bool
had_leases(const PartitionCopy *copy)
{
	for (uint32 i = 0; i < copy->nsubs; i++)
		if (copy->subs[i].sub.more != 0)
			return true;
	return false;
}

static void
check_timers(AqFindings *findings, const char *place, const PartitionCopy *copy)
{
	const Timer *timers = copy->timers;
	uint8	   *has = palloc0(PARTITION_SLOTS);
	uint8	   *delayed = palloc0(PARTITION_SLOTS);
	uint32		missing = 0;
	TimestampTz next;

	for (uint32 i = 0; i < copy->ntimers; i++)
	{
		if (i > 0 && timers[i].when < timers[(i - 1) / 2].when)
			aq_finding_add(findings, place, "timers that are not in order", i, AQ_NO_NUMBER, NULL);
		if (timers[i].slot >= PARTITION_SLOTS)
			continue;
		if (timers[i].kind == TIMER_RETRY)
			delayed[timers[i].slot] = 1;
		else
			has[timers[i].slot] |= timers[i].kind == TIMER_READY ? HAS_READY_TIMER : HAS_EXPIRE_TIMER;
	}
	for (uint32 i = 0; i < PARTITION_SLOTS; i++)
	{
		const Slot *slot = &copy->slots[i];

		if (slot->state == SLOT_WAITING && !(has[i] & HAS_READY_TIMER))
			missing++;
		if ((slot->state == SLOT_READY || slot->state == SLOT_WAITING) &&
			(slot->flags & SLOT_EXPIRES) && !(has[i] & HAS_EXPIRE_TIMER) && !had_leases(copy))
			missing++;
		if (slot->state == SLOT_READY && !delayed[i] && waits_by_retry(copy, i))
			missing++;
	}
	if (missing > 0)
		aq_finding_add(findings, place, "messages without a timer", missing, 0, NULL);
	next = copy->ntimers > 0 ? timers[0].when : 0;
	aq_clock_sooner(&next, copy->lease_end);
	aq_finding_compare(findings, place, "next timer", copy->partition.next_timer, next);
	if (copy->first_end != 0 && (copy->lease_end == 0 || copy->lease_end > copy->first_end))
		aq_finding_add(findings, place, "leases that end before they are looked for", copy->lease_end, copy->first_end, NULL);
	if (copy->partition.pending == 0 && copy->partition.inflight == 0)
		aq_finding_compare(findings, place, "timers reserved for transactions", copy->timers_reserved, 0);
	pfree(has);
	pfree(delayed);
}

/* --- a partition ------------------------------------------------------------------ */

/* The number of transactions in doubt in the partition, by their entries. */
static uint32
count_doubts(uint32 partition)
{
	uint32		n = 0;

	aq_latch_get(&aq_area->doubt_latch, AQ_SHARED, AQ_LOC_VIEW);
	for (uint32 i = 0; i < aq_area->max_doubts; i++)
		if (aq_area_doubts[i].partition == partition)
			n++;
	aq_latch_free(&aq_area->doubt_latch);
	return n;
}

static void
check_claims(AqFindings *findings, const char *place, const Partition *p)
{
	if (p->loading && !aq_session_in_transaction(p->claimant))
		aq_finding_add(findings, place, "loaded by no session", p->claimant + 1, AQ_NO_NUMBER, NULL);
	aq_finding_compare(findings, place, "transactions in doubt", p->ndoubt, count_doubts(p->index));
	aq_finding_compare(findings, place, "chunks kept by transactions", p->kept, aq_slot_is_kept(p) ? FRAME_CHUNKS(p->reserved) : 0);
}

static void
check_frame(AqFindings *findings, const char *place, const PartitionCopy *copy)
{
	const Partition *p = &copy->partition;
	Sums		sums = {0};

	sum_slots(findings, place, copy, &sums);
	for (uint32 i = 0; i < copy->nsubs; i++)
		check_sub(findings, place, copy, &copy->subs[i], &sums);
	aq_finding_compare(findings, place, "pending slots", p->pending, sums.pending);
	aq_finding_compare(findings, place, "messages to be moved to the exception queue", p->nfailed, sums.failed);
	aq_finding_compare(findings, place, "messages with a retry count to be written", p->nretry, sums.retry);
	aq_finding_compare(findings, place, "messages in flight", p->inflight, (int64) sums.open - sums.bits);
	aq_finding_compare(findings, place, "messages taken", sums.taken, (int64) sums.open - sums.bits);
	if (sums.doubt > 0 && p->ndoubt == 0)
		aq_finding_add(findings, place, "messages taken by prepared transactions that have ended", sums.doubt, 0, NULL);
	aq_finding_compare(findings, place, "open", p->open, (int64) sums.pending + sums.failed + sums.open);
	if (sums.slots > p->reserved)
		aq_finding_add(findings, place, "used slots", p->reserved, sums.slots, NULL);
	check_timers(findings, place, copy);
}

void
aq_shard_check_partition(AqFindings *findings, const Stream *stream, const PartitionCopy *copy)
{
	const Partition *p = &copy->partition;
	const char *place = place_of(stream, p);

	check_claims(findings, place, p);
	if (p->frame != 0)
		check_frame(findings, place, copy);
	else if (!p->loading)		/* while its frame is detached, the counts are only written to the log */
	{
		if (p->state == PARTITION_OPEN)
			aq_finding_add(findings, place, "takes messages, but has no slots in the message cache", AQ_NO_NUMBER, AQ_NO_NUMBER, NULL);
		aq_finding_compare(findings, place, "pending slots", p->pending, 0);
		aq_finding_compare(findings, place, "messages in flight", p->inflight, 0);
		aq_finding_compare(findings, place, "messages with a retry count to be written", p->nretry, 0);
	}
	if (p->state == PARTITION_CLOSED && p->counted && p->open == 0 && p->inflight == 0 && p->ndoubt == 0 &&
		p->nretry == 0 && !p->loading)
		aq_finding_add(findings, place, "consumed, but not in the list of consumed partitions", AQ_NO_NUMBER, AQ_NO_NUMBER, NULL);
}

/* --- streams ------------------------------------------------------------------------ */

/*
 * Sums up a consumer's ready messages in the whole stream, those before its
 * hint, and those taken by prepared transactions.
 */
static void
sum_ready(const Stream *stream, int position, int64 hint, int64 *ready, uint32 *before, uint32 *doubt)
{
	*ready = 0;
	*before = *doubt = 0;
	for (uint32 i = stream->head; i != 0; i = partition_at(i)->next)
	{
		const Partition *partition = partition_at(i);
		const FrameSub *sub = partition->frame != 0 ? frame_sub(frame_of(partition), position) : NULL;

		if (sub == NULL)
			continue;
		*ready += sub->nready;
		*doubt += sub->ndoubt;
		if (partition->number < hint)
			*before += sub->nready + sub->nretry;
	}
}

static void
check_consumer(AqFindings *findings, Stream *stream, int position)
{
	const char *place = psprintf("stream %d, consumer %d", stream->number, position);
	int64		counted = 0,
				ready = 0;
	uint32		before = 0,
				doubt = 0,
				ndoubt = 0;
	bool		empty;
	StreamSub  *ssub;

	aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_VIEW);
	empty = aq_slot_stream_is_empty(stream, position);
	ssub = stream_sub(stream, position);
	if (ssub != NULL)
	{
		sum_ready(stream, position, ssub->hint != 0 ? partition_at(ssub->hint)->number : 0, &ready, &before, &doubt);
		counted = ssub->ready;
		ndoubt = ssub->ndoubt;
	}
	aq_latch_free(&stream->latch);
	aq_finding_compare(findings, place, "ready messages", counted, ready);
	aq_finding_compare(findings, place, "messages taken by prepared transactions", ndoubt, doubt);
	if (empty && (ready > 0 || ndoubt > 0))
		aq_finding_add(findings, place, "ready messages in a stream that has none", ready + ndoubt, 0, NULL);
	if (before > 0 && ndoubt == 0)	/* otherwise they may be held back */
		aq_finding_add(findings, place, "ready messages before the hint", before, 0, NULL);
}

static void
check_list(AqFindings *findings, Stream *stream)
{
	uint32		wrong = 0,
				last = 0,
				open;
	const Partition *tail;

	aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_VIEW);
	for (uint32 i = stream->head; i != 0; i = partition_at(i)->next)
	{
		const Partition *partition = partition_at(i);

		if (partition->stream != stream->index || partition->prev != last ||
			(last != 0 && partition->number <= partition_at(last)->number) ||
			(partition->state != PARTITION_OPEN && partition->state != PARTITION_CLOSED) ||
			(partition->state == PARTITION_OPEN) != (stream->open == i))
			wrong++;
		last = i;
	}
	if (stream->tail != last)
		wrong++;
	open = stream->open;
	tail = partition_at(open);
	if (tail != NULL && tail->stream != stream->index)
		wrong++;
	aq_latch_free(&stream->latch);
	if (wrong > 0)
		aq_finding_add(findings, psprintf("stream %d", stream->number),
					   "partitions in a wrong state or position", wrong, 0, NULL);
}

void
aq_shard_check_stream(AqFindings *findings, AqQueue *queue, Stream *stream)
{
	check_list(findings, stream);
	if (!queue->multi)
		check_consumer(findings, stream, 0);
	for (int i = 0; i < queue->nconsumers; i++)
		check_consumer(findings, stream, queue->consumers[i].position);
}

/* --- messages in work, for limits -------------------------------------------------------- */

/* Adds the consumers' messages in work in the partition.  Latch held. */
static void
sum_work(const Partition *partition, uint32 *sums)
{
	const uint16 *away = partition->work_away != 0 ? aq_chunk_ptr(partition->work_away) : NULL;
	int			position = -1;

	while (partition->frame != 0 && (position = aq_frame_next_sub(frame_of(partition), position)) >= 0)
		sums[position] += aq_slot_in_work(frame_sub(frame_of(partition), position));
	for (position = 0; away != NULL && position < AQ_MAX_CONSUMERS; position++)
		sums[position] += away[position];
}

void
aq_shard_check_work(AqFindings *findings, AqQueue *queue)
{
	uint32		sums[AQ_MAX_CONSUMERS] = {0};
	uint32		uncounted = 0;

	if (!shard_queue(queue->shm)->limited_known)
		return;
	for (Stream *stream = stream_at(shard_queue(queue->shm)->streams); stream != NULL; stream = stream_at(stream->next))
	{
		aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_VIEW);
		for (uint32 i = stream->head; i != 0; i = partition_at(i)->next)
		{
			uncounted += !partition_at(i)->limited;
			sum_work(partition_at(i), sums);
		}
		aq_latch_free(&stream->latch);
	}
	aq_finding_compare(findings, "limits", "partitions whose messages in work are not counted", uncounted, 0);
	for (int position = 0; position < AQ_MAX_CONSUMERS; position++)
	{
		AqConsumerShm *consumer = aq_shm_consumer(queue->shm, position);

		if (consumer != NULL)
			aq_finding_compare(findings, psprintf("consumer %d", position), "messages in work", pg_atomic_read_u32(&consumer->in_work),
							   sums[position]);
	}
}

/* --- a queue's tables ------------------------------------------------------------------ */

typedef struct Tally
{
	uint32		total;
	uint32		states[PARTITION_TRUNCATING + 1];
	uint32		unclaimed;		/* claimed by no session */
} Tally;

static void
tally_partitions(uint32 queue, Tally *tally)
{
	memset(tally, 0, sizeof(Tally));
	for (uint32 i = 1; i <= (uint32) aq_area_max_partitions; i++)
	{
		const Partition *p = &aq_area_partitions[i];

		if (p->queue != queue)
			continue;
		tally->total++;
		tally->states[p->state]++;
		if ((p->state == PARTITION_TAKEN || p->state == PARTITION_UNUSED) &&
			!aq_session_in_transaction(p->claimant))
			tally->unclaimed++;
	}
}

static uint32
list_length_of(uint32 list)
{
	uint32		n = 0;

	for (; list != 0 && n <= (uint32) aq_area_max_partitions; list = partition_at(list)->next)
		n++;
	return n;
}

/*
 * The number of sessions that wait for tables of the queue, or may be about
 * to.
 */
static uint32
sessions_that_want(int32 queue_id)
{
	uint32		n = 0;

	for (int i = 0; i < aq_session_slots(); i++)
	{
		AqWaitNow	now;

		aq_event_read(i, &now);
		if (aq_session_in_transaction(i) && now.p1 == (uint64) queue_id &&
			(now.event == AQ_EVENT_PARTITION_PROVIDE ||
			 (now.event == AQ_EVENT_WORKER_MISSING && now.p3 == AQ_WAITS_FOR_TABLES)))
			n++;
	}
	return n;
}

void
aq_shard_check_tables(AqFindings *findings, AqQueue *queue)
{
	ShardQueue *sq = shard_queue(queue->shm);
	uint32		tables = list_length(aq_tables_numbers(queue->id));
	uint32		listed = 0,
				empty,
				streams = 0,
				numbered = 0,
				wanting;
	Tally		tally;

	for (Stream *stream = stream_at(sq->streams); stream != NULL; stream = stream_at(stream->next))
	{
		aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_VIEW);
		listed += list_length_of(stream->head);
		aq_latch_free(&stream->latch);
		streams++;
		if (aq_stream_find(queue->shm, stream->number) == stream)
			numbered++;
	}
	aq_latch_get(&sq->latch, AQ_EXCLUSIVE, AQ_LOC_VIEW);
	tally_partitions(queue->shm->object->index, &tally);
	empty = list_length_of(sq->empty);
	aq_latch_free(&sq->latch);
	aq_finding_compare(findings, "tables", "pairs of tables", tally.total, tables);
	aq_finding_compare(findings, "tables", "empty pairs, according to the queue", sq->nempty, empty);
	aq_finding_compare(findings, "tables", "empty pairs", tally.states[PARTITION_EMPTY], empty);
	aq_finding_compare(findings, "tables", "partitions in streams",
					   tally.states[PARTITION_OPEN] + tally.states[PARTITION_CLOSED], listed);
	/*
	 * the worker briefly removes the list, and the partitions that it truncates,
	 * from shared memory: then the numbers differ
	 */
	aq_finding_compare(findings, "tables", "consumed partitions",
					   tally.states[PARTITION_DONE] + tally.states[PARTITION_TRUNCATING], list_length_of(aq_settle_first_done(sq)));
	aq_finding_compare(findings, "tables", "streams", sq->nstreams, streams);
	aq_finding_compare(findings, "tables", "streams found by their number", numbered, streams);
	if (tally.unclaimed > 0)
		aq_finding_add(findings, "tables", "empty pairs claimed by no session", tally.unclaimed, 0, NULL);
	wanting = pg_atomic_read_u32(&sq->wanting) + pg_atomic_read_u32(&sq->wanting_keyed);
	if (wanting > 0 && wanting > sessions_that_want(queue->id))
		aq_finding_add(findings, "tables", "sessions that wait for tables", wanting, sessions_that_want(queue->id), NULL);
}

/* --- all queues ------------------------------------------------------------------------- */

static void
check_doubts(AqFindings *findings)
{
	uint32		n = 0;

	for (uint32 i = 0; i < aq_area->max_doubts; i++)
	{
		Doubt		doubt = aq_area_doubts[i];

		if (doubt.partition == 0)
			continue;
		n++;
		/* an entry whose takes are settled stays while its own messages wait for another transaction */
		if (!doubt.takes_settled && !TransactionIdIsInProgress(doubt.xid))
			aq_finding_add(findings, psprintf("partition entry %u", doubt.partition),
						   "in doubt because of a transaction that has ended", doubt.xid, AQ_NO_NUMBER, NULL);
	}
	aq_finding_compare(findings, "transactions in doubt", "entries", pg_atomic_read_u32(&aq_area->ndoubts), n);
}

void
aq_shard_check_pool(AqFindings *findings)
{
	uint32		unused = 0,
				lost = 0,
				listed,
				streams = 0,
				used = 0;

	aq_latch_get(&aq_area->partitions_latch, AQ_EXCLUSIVE, AQ_LOC_VIEW);
	for (uint32 i = 1; i <= (uint32) aq_area_max_partitions; i++)
	{
		const Partition *p = &aq_area_partitions[i];

		if (p->queue == 0)
			unused++;
		if (p->queue != 0 && aq_shm_by_index(p->queue)->object == NULL)
			lost++;
	}
	listed = list_length_of(aq_area->unused_partition);
	for (uint32 i = aq_area->unused_stream; i != 0 && streams <= (uint32) aq_area_max_streams; i = stream_at(i)->next)
		streams++;
	for (uint32 i = 1; i <= (uint32) aq_area_max_streams; i++)
		if (aq_area_streams[i].queue != 0)
			used++;
	aq_latch_free(&aq_area->partitions_latch);
	aq_finding_compare(findings, "partitions", "unused entries, according to the count", aq_area->nunused_partitions, listed);
	aq_finding_compare(findings, "partitions", "unused entries", unused, listed);
	aq_finding_compare(findings, "partitions", "entries of queues that are not in memory", lost, 0);
	aq_finding_compare(findings, "streams", "entries, unused or used", (int64) streams + used, aq_area_max_streams);
	check_doubts(findings);
}

uint32
aq_shard_check_chunks(AqQueueShm *shm)
{
	uint32		n = 0;

	for (Stream *stream = stream_at(shard_queue(shm)->streams); stream != NULL; stream = stream_at(stream->next))
	{
		aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_VIEW);
		for (int i = 0; i < SUB_DIRECTORY; i++)
			if (stream->subs[i] != 0)
				n++;
		for (uint32 i = stream->head; i != 0; i = partition_at(i)->next)
			n += aq_frame_chunks(partition_at(i));
		aq_latch_free(&stream->latch);
	}
	return n;
}
