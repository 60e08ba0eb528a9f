/*-------------------------------------------------------------------------
 *
 * compare.c
 *	  For aq.check(): does shared memory agree with the tables of a partition?
 *
 * The tables are read by transaction status, as when a partition is loaded.  A
 * partition is copied before and after; if it has changed meanwhile, it is not
 * compared, nor if a running transaction has inserted rows with immediate
 * visibility.  A message that a running transaction has taken is not done
 * according to the tables, and open in memory, so neither side depends on
 * running transactions:
 *
 * - both have the same number of consumers that have not finished with a slot,
 *	 except for removed consumers;
 * - messages that memory offers to a consumer are not done according to the
 *   tables.
 *
 * shard_check.c checks that each open message is offered to its consumer or
 * counted as in flight.  Together this means that no message is lost.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "shard/checks/checks_private.h"
#include "shard/checks/copy.h"
#include "shard/partitions/tag.h"

#include "miscadmin.h"
#include "utils/memutils.h"

/* State of one reading of a queue. */
typedef struct Reading
{
	AqFindings *findings;
	AqQueue    *queue;
	bool		steady;			/* the queue has not changed so far */
	int64		todo[AQ_MAX_CONSUMERS]; /* messages that each consumer has to take */
	int64		away[AQ_MAX_CONSUMERS]; /* those in partitions of the stream that are not resident */
} Reading;

/* Is everything unchanged that is compared with the tables? */
static bool
is_unchanged(const PartitionCopy *a, const PartitionCopy *b)
{
	const Partition *p = &a->partition;
	const Partition *q = &b->partition;

	if (p->index != q->index || p->number != q->number || p->state != q->state ||
		p->frame != q->frame || p->open != q->open || p->pending != q->pending ||
		p->inflight != q->inflight || p->nretry != q->nretry || p->counted != q->counted ||
		p->loading != q->loading || a->nsubs != b->nsubs)
		return false;
	if (p->frame == 0)
		return true;
	for (uint32 i = 0; i < a->nsubs; i++)
		if (memcmp(&a->subs[i], &b->subs[i], sizeof(SubCopy)) != 0)
			return false;
	return memcmp(a->slots, b->slots, sizeof(a->slots)) == 0;
}

static uint32
tables_open(const Contents *p)
{
	uint32		open = p->pending + p->nfailed;

	for (uint32 i = 0; i < p->nslots; i++)
		open += p->slots[i].open;
	return open;
}

/* The next timer of the partition, according to the tables; 0: none. */
static TimestampTz
tables_next_timer(const Contents *p)
{
	TimestampTz next = p->next_timer;

	for (uint32 i = 0; i < p->nslots; i++)
	{
		const Slot *slot = &p->slots[i];

		aq_clock_sooner(&next, slot->state == SLOT_WAITING ? p->ready_at[i]
						: slot->state == SLOT_READY && (slot->flags & SLOT_EXPIRES) ? slot->expires_at : 0);
	}
	return next;
}

static void
count_todo(Reading *reading, const Contents *p)
{
	for (int position = 0; position < AQ_MAX_CONSUMERS; position++)
		if (p->todo[position] != NULL)
		{
			uint32		n = aq_contents_todo(p, position);

			reading->todo[position] += n;
			reading->away[position] += p->partition->frame == 0 ? n : 0;
		}
}

/* --- not resident ------------------------------------------------------------------ */

/* Finds messages that a consumer could take in a partition before its hint. */
static void
compare_hints(AqFindings *findings, const char *place, Stream *stream, const PartitionCopy *copy, const Contents *p)
{
	for (int position = 0; position < AQ_MAX_CONSUMERS; position++)
	{
		StreamSub  *ssub;
		bool		passed;
		uint32		n = 0;

		if (p->todo[position] == NULL)
			continue;
		aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_VIEW);
		ssub = stream_sub(stream, position);
		passed = ssub != NULL && ssub->ndoubt == 0 && ssub->hint != 0 &&
			partition_at(ssub->hint)->number > copy->partition.number;
		aq_latch_free(&stream->latch);
		for (uint32 i = 0; i < p->nslots && passed; i++)
			if (aq_bitmap_test(p->todo[position], i) && p->slots[i].state == SLOT_READY &&
				(p->leases[position] == NULL || p->leases[position][i].receipt == 0) &&
				!((p->slots[i].flags & SLOT_EXPIRES) && p->slots[i].expires_at <= p->now))
				n++;
		/* for messages with a retry delay, a timer will move the hint back */
		if (n > list_length(p->retry_delays))
			aq_finding_add(findings, psprintf("%s, consumer %d", place, position), "ready messages before the hint", 0, n, NULL);
	}
}

/* Running leases of a partition that is not resident: memory counts those of removed consumers until it is loaded. */
static void
compare_away_leases(AqFindings *findings, const char *place, const PartitionCopy *copy, const Contents *p)
{
	uint32		counted = copy->partition.away_leased;
	uint32		running = 0,
				removed = 0;

	for (int position = 0; position < AQ_MAX_CONSUMERS; position++)
	{
		uint32		leased;
		int			head;

		(void) aq_contents_waiting(p, position, &head, &leased);
		running += leased;
	}
	for (uint32 i = 0; i < p->nslots; i++)
		removed += p->removed[i];
	if (counted < running || counted > running + removed)
		aq_finding_add(findings, place, "leased messages, according to the tables", counted, running, NULL);
}

static void
compare_summary(AqFindings *findings, const char *place, Stream *stream, const PartitionCopy *copy, const Contents *p)
{
	TimestampTz next = tables_next_timer(p);

	aq_finding_compare(findings, place, "open, according to the tables", copy->partition.open, tables_open(p));
	aq_finding_compare(findings, place, "failed messages, according to the tables", copy->partition.nfailed, p->nfailed);
	if (next != 0 && (copy->partition.next_timer == 0 || copy->partition.next_timer > next))
		aq_finding_add(findings, place, "next timer, according to the tables", copy->partition.next_timer, next, NULL);
	compare_hints(findings, place, stream, copy, p);
	compare_away_leases(findings, place, copy, p);
}

/* --- resident -------------------------------------------------------------------------- */

/* The number of differences, and the slot of the first one. */
typedef struct Differences
{
	uint32		n;
	uint32		first;
} Differences;

static void
differ(Differences *differences, uint32 slot)
{
	if (differences->n++ == 0)
		differences->first = slot;
}

static void
report(AqFindings *findings, const char *place, const char *what, const Partition *p, const Differences *differences)
{
	if (differences->n > 0)
		aq_finding_add(findings, place, what, differences->n, 0,
					   psprintf("the first one is ordinal %lld", (long long) ordinal_of(p, differences->first)));
}

/*
 * False for slots of a running enqueue, or of one that was rolled back without
 * leaving a row.
 */
static bool
is_settled(const Slot *memory, const Slot *table)
{
	return memory->state != SLOT_PENDING && !(memory->state == SLOT_EMPTY && table->state == SLOT_EMPTY);
}

static bool
same_tag(uint16 memory, uint16 table)
{
	return tag_may_be(memory, table) || table == TAG_UNKNOWN;
}

static void
compare_slots(AqFindings *findings, const char *place, const PartitionCopy *copy, const Contents *p)
{
	Differences open = {0},
				doubt = {0},
				failed = {0},
				tid = {0},
				expires = {0};

	for (uint32 i = 0; i < PARTITION_SLOTS; i++)
	{
		const Slot *memory = &copy->slots[i];
		const Slot *table = &p->slots[i];
		bool		takeable = memory->state == SLOT_READY || memory->state == SLOT_WAITING;
		uint32		in_memory;

		if (!is_settled(memory, table))
			continue;
		in_memory = takeable ? memory->open : 0;
		/*
		 * a message taken for a consumer that is now removed is open until
		 * that transaction ends
		 */
		if (in_memory < table->open || in_memory > table->open + p->removed[i])
			differ(&open, i);
		if ((memory->state == SLOT_DOUBT) != (table->state == SLOT_DOUBT))
			differ(&doubt, i);
		if ((memory->flags & SLOT_FAILED) != (table->flags & SLOT_FAILED))
			differ(&failed, i);
		if (!takeable)
			continue;
		if (copy->partition.file == p->file &&
			(memory->block != table->block || memory->offset != table->offset))
			differ(&tid, i);
		if ((memory->flags & SLOT_EXPIRES) != (table->flags & SLOT_EXPIRES) || memory->expires_at != table->expires_at ||
			memory->session != table->session || !same_tag(copy->tags[i], p->tags[i]))
			differ(&expires, i);
	}
	report(findings, place, "messages whose consumers differ from the tables", &copy->partition, &open);
	report(findings, place, "messages in doubt that differ from the tables", &copy->partition, &doubt);
	report(findings, place, "messages whose failure differs from the tables", &copy->partition, &failed);
	report(findings, place, "messages that are not where their rows are", &copy->partition, &tid);
	report(findings, place, "messages whose expiration, session or correlation differs from the tables", &copy->partition, &expires);
}

/*
 * Finds messages offered to a consumer that has finished with them, and wrong
 * attempts.
 */
static void
compare_sub(AqFindings *findings, const char *place, const PartitionCopy *copy, const SubCopy *sub, const Contents *p)
{
	const uint64_t *todo = p->todo[sub->position];
	Differences offered = {0};

	for (uint32 i = aq_copy_next(sub, 0); i < PARTITION_SLOTS; i = aq_copy_next(sub, i + 1))
		if ((aq_bitmap_test(sub->ready, i) || aq_bitmap_test(sub->waiting, i) || aq_bitmap_test(sub->retry, i) ||
			 aq_bitmap_test(sub->leased, i)) &&
			(todo == NULL || !aq_bitmap_test(todo, i)))
			differ(&offered, i);
	report(findings, psprintf("%s, consumer %d", place, sub->position),
		   "messages offered again that the tables say are done", &copy->partition, &offered);
}

/* Is the message leased in memory as it is in the tables?  A transaction may be about to end it. */
static bool
is_leased_as(const PartitionCopy *copy, const SubCopy *sub, const Contents *p, const FrameSub *memory, uint32 slot)
{
	const Lease *lease = memory != NULL ? lease_at(memory, slot) : NULL;
	const Lease *table = p->leases[sub->position] != NULL ? &p->leases[sub->position][slot] : NULL;
	bool		runs = table != NULL && table->receipt > 0;

	if (aq_bitmap_test(sub->leased, slot))
		return runs && lease != NULL && lease->receipt == table->receipt && lease->until == table->until;
	return !runs || !(aq_bitmap_test(sub->ready, slot) || aq_bitmap_test(sub->waiting, slot));
}

/* Are the same messages leased as when it was copied? */
static bool
are_leased_still(const SubCopy *copy, const FrameSub *sub)
{
	const SubMore *more = sub_more(sub);

	if (more == NULL || more->leased == 0)
		return aq_bitmap_next(copy->leased, PARTITION_SLOTS, 0) < 0;
	return memcmp(copy->leased, bitmap_of(more->leased), sizeof(copy->leased)) == 0;
}

static void
compare_leases(AqFindings *findings, const char *place, Stream *stream, const PartitionCopy *copy, const Contents *p)
{
	Partition  *partition = partition_at(copy->partition.index);
	Differences leases = {0};

	aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_VIEW);
	if (partition->frame == copy->partition.frame && partition->number == copy->partition.number)
		for (uint32 s = 0; s < copy->nsubs; s++)
		{
			const FrameSub *sub = frame_sub(frame_of(partition), copy->subs[s].position);

			if (!are_leased_still(&copy->subs[s], sub))
				continue;
			for (uint32 i = 0; i < p->nslots; i++)
				if (!is_leased_as(copy, &copy->subs[s], p, sub, i))
					differ(&leases, i);
		}
	aq_latch_free(&stream->latch);
	report(findings, place, "messages whose lease differs from the tables", &copy->partition, &leases);
}

static void
compare_attempts(AqFindings *findings, const char *place, Stream *stream, const PartitionCopy *copy, const Contents *p)
{
	Partition  *partition = partition_at(copy->partition.index);
	Differences attempts = {0};

	aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_VIEW);
	if (partition->frame == copy->partition.frame && partition->number == copy->partition.number)
		for (uint32 s = 0; s < copy->nsubs; s++)
			for (uint32 i = 0; i < p->nslots; i++)
			{
				int			position = copy->subs[s].position;
				int			table = p->attempts[position] != NULL ? p->attempts[position][i] : 0;

				if (p->todo[position] != NULL && aq_bitmap_test(p->todo[position], i) &&
					aq_frame_attempts(frame_of(partition), position, i) != table)
					differ(&attempts, i);
			}
	aq_latch_free(&stream->latch);
	report(findings, place, "messages whose attempts differ from the tables", &copy->partition, &attempts);
}

/* Chunks of bodies are written by the transaction of their message, so none is without it. */
static void
compare_bodies(AqFindings *findings, const char *place, const PartitionCopy *copy, const Contents *p)
{
	Differences orphans = {0};
	int			slot = -1;

	while (p->bodies != NULL && (slot = aq_bitmap_next(p->bodies, PARTITION_SLOTS, slot + 1)) >= 0)
		if (p->slots[slot].state == SLOT_EMPTY)
			differ(&orphans, slot);
	report(findings, place, "bodies without their message", &copy->partition, &orphans);
}

/* --- a partition, a queue ------------------------------------------------------------------- */

static void
compare_partition(Reading *reading, Stream *stream, const PartitionCopy *copy)
{
	const Partition *p = &copy->partition;
	const char *place = psprintf("stream %d, partition %lld", stream->number, (long long) p->number);
	Contents   *contents;
	PartitionCopy *again;

	if (p->own_subid != InvalidSubTransactionId || p->loading || !p->counted || !aq_heap_try_tables(p))
	{
		reading->steady = false;
		return;
	}
	again = aq_shard_check_copy(stream, p->number);
	if (again != NULL && is_unchanged(copy, again))
	{
		contents = aq_contents_read(reading->queue->shm, partition_at(p->index));
		again = aq_shard_check_copy(stream, p->number);
		if (again != NULL && is_unchanged(copy, again) && !contents->young)
		{
			count_todo(reading, contents);
			compare_bodies(reading->findings, place, copy, contents);
			if (p->frame == 0)
				compare_summary(reading->findings, place, stream, copy, contents);
			else
			{
				compare_slots(reading->findings, place, copy, contents);
				for (uint32 i = 0; i < copy->nsubs; i++)
					compare_sub(reading->findings, place, copy, &copy->subs[i], contents);
				compare_attempts(reading->findings, place, stream, copy, contents);
				compare_leases(reading->findings, place, stream, copy, contents);
			}
			aq_heap_leave_tables(p);
			return;
		}
	}
	reading->steady = false;
	aq_heap_leave_tables(p);
}

static void
compare_stream(Reading *reading, Stream *stream)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "pgaq check", ALLOCSET_DEFAULT_SIZES);
	MemoryContext outer = CurrentMemoryContext;
	AqFindings *findings = reading->findings;
	int64		from = 0;

	for (;;)
	{
		AqFindings	local = {.queue_id = findings->queue_id, .store = findings->store};
		PartitionCopy *copy;
		ListCell   *lc;

		CHECK_FOR_INTERRUPTS();
		MemoryContextReset(context);
		MemoryContextSwitchTo(context);
		copy = aq_shard_check_copy(stream, from);
		if (copy == NULL)
			break;
		from = copy->partition.number + 1;
		reading->findings = &local;
		aq_shard_check_partition(&local, stream, copy);
		compare_partition(reading, stream, copy);
		MemoryContextSwitchTo(outer);
		foreach(lc, local.list)
		{
			AqFinding  *finding = lfirst(lc);

			aq_finding_add(findings, pstrdup(finding->place), finding->what, finding->in_memory, finding->expected,
						   finding->detail != NULL ? pstrdup(finding->detail) : NULL);
		}
	}
	reading->findings = findings;
	MemoryContextSwitchTo(outer);
	MemoryContextDelete(context);
}

/* Compares the stream's counts of partitions that are not resident. */
static void
compare_away(Reading *reading, Stream *stream)
{
	for (int position = 0; position < AQ_MAX_CONSUMERS; position++)
	{
		StreamSub  *ssub;
		int64		away;

		aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_VIEW);
		ssub = stream_sub(stream, position);
		away = ssub != NULL ? ssub->away : 0;
		aq_latch_free(&stream->latch);
		if (away != reading->away[position])
			aq_finding_compare(reading->findings, psprintf("stream %d, consumer %d", stream->number, position),
							   "messages that are not resident", away, reading->away[position]);
	}
	memset(reading->away, 0, sizeof(reading->away));
}

static int64
lag_of(AqQueueShm *shm, int position)
{
	AqConsumerShm *consumer = aq_shm_consumer(shm, position);

	return consumer == NULL || aq_consumer_removed(consumer) ? 0 :
		(int64) (pg_atomic_read_u64(&consumer->enqueued) - pg_atomic_read_u64(&consumer->dequeued));
}

void
aq_compare_queue(AqQueue *queue, AqFindings *findings)
{
	AqQueueShm *shm = queue->shm;
	Reading    *reading = palloc0(sizeof(Reading));
	int64	   *lag = palloc(AQ_MAX_CONSUMERS * sizeof(int64));

	reading->findings = findings;
	reading->queue = queue;
	reading->steady = !shm->converted;	/* after a conversion, the counters are those of both stores */
	for (int position = 0; position < AQ_MAX_CONSUMERS; position++)
		lag[position] = lag_of(shm, position);
	aq_shard_check_tables(findings, queue);
	aq_shard_check_work(findings, queue);
	for (Stream *stream = stream_at(shard_queue(shm)->streams); stream != NULL; stream = stream_at(stream->next))
	{
		aq_shard_check_stream(findings, queue, stream);
		compare_stream(reading, stream);
		if (reading->steady)
			compare_away(reading, stream);
	}
	for (int position = 0; position < AQ_MAX_CONSUMERS && reading->steady; position++)
		if (lag_of(shm, position) == lag[position])
			aq_finding_compare(findings, psprintf("consumer %d", position), "enqueued - dequeued", lag[position],
							   reading->todo[position]);
	pfree(reading);
	pfree(lag);
}
