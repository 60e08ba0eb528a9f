/*-------------------------------------------------------------------------
 *
 * lease.c
 *	  Receipts of leases, and what a session does with a lease before its time is
 *	  over: acknowledge, extend, give back, reject.  See LEASES.md.
 *
 * A message's lease is decided about only while its view is TAKEN, by the
 * transaction that has noted it.  Nothing here waits for another session.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/leases/leases_private.h"

#include "access/table.h"
#include "access/xlog.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

/*
 * A receipt is made of AQ_RECEIPT_ALONE, a counter, above it a number that no other block has, and
 * above that the timeline: 53 bits, which a JSON number keeps in every language.
 */
#define RECEIPT_BITS 16
#define NUMBER_BITS 32
#define TIMELINE_BITS 5

/* --- receipts ---------------------------------------------------------------------------- */

/*
 * See to it that the sequence does not give out its latest number again after a
 * crash, even if no transaction that has used it commits.
 */
static void
flush_sequence(void)
{
	Relation	rel = table_open(aq_schema_relation("partition_number_seq"), NoLock);
	Buffer		buffer = ReadBuffer(rel, 0);
	XLogRecPtr	lsn;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	lsn = PageGetLSN(BufferGetPage(buffer));
	UnlockReleaseBuffer(buffer);
	table_close(rel, NoLock);
	XLogFlush(lsn);
}

/*
 * Receipts with this number begin after it.  A standby may be promoted without
 * having replayed the sequence's latest numbers, and then gives them out again.
 */
static int64
before_first(int64 number)
{
	int64		timeline = GetWALInsertionTimeLine() & ((1 << TIMELINE_BITS) - 1);

	number &= (INT64CONST(1) << NUMBER_BITS) - 1;
	return (timeline << NUMBER_BITS | number) << RECEIPT_BITS;
}

/* Receipts with the same number are a block. */
int64
aq_lease_block(int64 receipt)
{
	return receipt >> RECEIPT_BITS;
}

/* The receipt before the first one of a block that the queue has never had.  May raise and wait. */
int64
aq_lease_new_block(AqQueue *queue)
{
	int64		number = aq_heap_next_number(queue);

	flush_sequence();
	return before_first(number);
}

/* A receipt that the queue has never given out, without AQ_RECEIPT_ALONE.  May raise and wait. */
int64
aq_lease_receipt(AqQueue *queue)
{
	ShardQueue *sq = shard_queue(queue->shm);
	int64		before = 0,
				full = 0;

	for (;;)
	{
		int64		receipt = 0;

		aq_latch_get(&sq->latch, AQ_EXCLUSIVE, AQ_LOC_LEASE_RECEIPT);
		/* another session may have begun a block meanwhile */
		if (before != 0 && sq->receipt == full)
			sq->receipt = before;
		if (sq->receipt != 0 && aq_lease_block(sq->receipt + 2) == aq_lease_block(sq->receipt))
			receipt = sq->receipt += 2;
		full = sq->receipt;
		aq_latch_free(&sq->latch);
		if (receipt != 0)
			return receipt;
		before = aq_lease_new_block(queue);
	}
}

/* What the log says of the holder: its application_name; NULL: none.  Lives as long as the transaction. */
const char *
aq_lease_holder(void)
{
	int			size;

	if (application_name == NULL || *application_name == '\0')
		return NULL;
	size = aq_clip_length(application_name, strlen(application_name), LOG_DETAIL_SIZE);
	return MemoryContextStrdup(aq_notes_context(), pnstrdup(application_name, size));
}

/* --- messages of one partition ----------------------------------------------------------- */

/*
 * Does the message, whose lease ends without an acknowledgement, fail?  counts:
 * the attempt counts, and the message was leased alone.  No timer ends it when it expires.  Latch held.
 */
bool
aq_lease_fails(const AqQueue *queue, const Partition *partition, int position, uint32 number,
			   bool counts, TimestampTz now)
{
	Frame	   *frame = frame_of(partition);
	const Slot *slot = slot_at(frame, number);
	int			attempts = aq_frame_attempts(frame, position, number);

	/* more are not counted, and the attempt is counted already: it may be one more */
	if (attempts == AQ_MAX_ATTEMPTS)
		attempts++;
	return (counts && aq_queue_over_limit(queue, attempts)) ||
		((slot->flags & SLOT_EXPIRES) && slot->expires_at <= now);
}

/* messages that are decided about under one hold of the latch, at most */
#define SETTLE_BATCH 1024

/* A message of the call. */
typedef struct Wanted
{
	Stream	   *stream;
	int64		ordinal;
	uint32		at;				/* in the call's arrays */
	bool		open;			/* not decided about yet */
} Wanted;

typedef struct Settling
{
	AqQueue    *queue;
	const AqLeaseOptions *options;
	bool		lent;			/* messages that another node has, else leases of sessions */
	LeaseTerms	terms;
	const char *death;			/* detail of the row of a message that fails */
	TimestampTz now;
	double		random;			/* for retry delays */
	AqLeaseResult *results;
	/* of the current batch */
	Partition  *partition;		/* NULL: it is gone */
	bool		unloaded;		/* it must be loaded first */
	bool		done;			/* one of its messages, at least */
	/* of the current step, whose messages have one note */
	int			attempts;		/* of its messages, if the queue's retry delay applies; 0: none yet */
	int64		receipt;		/* of its messages, if any receipt is fine; 0: none yet */
	bool		others;			/* there are messages with another number of attempts, or another receipt */
	const Partition *locked;	/* the latest one whose table is locked */
} Settling;

/* Messages that were leased lately are near the partition in which the consumer's dequeues begin.  Latch held. */
static Partition *
find_partition(Stream *stream, int position, int64 number)
{
	const StreamSub *ssub = stream_sub(stream, position);
	Partition  *partition = partition_at(ssub != NULL && ssub->hint != 0 ? ssub->hint : stream->head);

	while (partition != NULL && partition->number > number)
		partition = partition_at(partition->prev);
	while (partition != NULL && partition->number < number)
		partition = partition_at(partition->next);
	return partition != NULL && partition->number == number ? partition : NULL;
}

/* The end of the retry delay of a message that is given back.  False: another step handles it.  Latch held. */
static bool
set_retry_delay(Settling *settling, uint32 number, LeaseTerms *terms)
{
	int			attempts = aq_frame_attempts(frame_of(settling->partition), settling->options->position, number);

	settling->others |= settling->attempts != 0 && settling->attempts != attempts;
	if (settling->attempts == 0)
		settling->attempts = attempts;
	terms->until = settling->now + aq_retry_delay_after(settling->queue, attempts, settling->random);
	return settling->attempts == attempts;
}

/* The note's receipt is the message's.  False: it is for another step.  Latch held. */
static bool
set_receipt(Settling *settling, const Lease *lease, LeaseTerms *terms)
{
	terms->receipt = lease->receipt;
	settling->others |= settling->receipt != 0 && settling->receipt != lease->receipt;
	if (settling->receipt == 0)
		settling->receipt = lease->receipt;
	return settling->receipt == lease->receipt;
}

static bool
is_wanted(const Settling *settling, const Lease *lease)
{
	if (lease == NULL || lease->receipt <= 0 || ((lease->receipt & AQ_RECEIPT_NODE) != 0) != settling->lent)
		return false;
	return settling->options->any_receipt || lease->receipt == settling->options->receipt;
}

/*
 * Latch held; memory for a note and a chunk are reserved.  A message that fails
 * instead of being given back, or whose retry delay ends at another time than that
 * of those before it, is left for the next round, because it needs another note.
 */
static void
settle_resident(Settling *settling, Wanted *wanted, AqMode mode)
{
	Partition  *partition = settling->partition;
	uint32		number = wanted->ordinal % PARTITION_SLOTS;
	int			position = settling->options->position;
	FrameSub   *sub = frame_sub(frame_of(partition), position);
	const Lease *lease = lease_at(sub, number);
	AqLeaseResult *result = &settling->results[wanted->at];
	LeaseTerms	terms = settling->terms;

	wanted->open = false;
	*result = AQ_LEASE_STALE;
	if (!is_wanted(settling, lease))
		return;
	if ((mode == AQ_MODE_RELEASE || mode == AQ_MODE_UNSEEN) &&
		aq_lease_fails(settling->queue, partition, position, number,
					   mode == AQ_MODE_RELEASE && (lease->receipt & AQ_RECEIPT_ALONE) != 0, settling->now))
	{
		wanted->open = true;
		return;
	}
	if (mode == AQ_MODE_RELEASE && settling->options->retry_delay && settling->queue->retry_delay > 0 &&
		!set_retry_delay(settling, number, &terms))
	{
		wanted->open = true;
		return;
	}
	*result = AQ_LEASE_BUSY;
	if (!aq_slot_is_leased(sub, number))
		return;
	if (settling->options->any_receipt && !set_receipt(settling, lease, &terms))
	{
		wanted->open = true;
		return;
	}
	(void) aq_slot_hold_lease(partition, position, number);
	if (mode == AQ_MODE_REJECT)
	{
		terms.until = 0;
		terms.detail = settling->death;
	}
	if (terms.until != 0)
		aq_slot_make_bitmap(&sub->waiting);
	aq_notes_add_lease(partition, settling->queue->shm, position, mode, &terms, number);
	*result = AQ_LEASE_DONE;
	settling->done = true;
}

/*
 * Those of the batch that are open.  True when some are left: of an unloaded
 * partition all, otherwise those that need another note (settling->others) and
 * those that fail.
 */
static bool
settle_step(Settling *settling, Wanted *wanted, uint32 n, AqMode mode)
{
	Stream	   *stream = wanted->stream;
	bool		left = false;

	CHECK_FOR_INTERRUPTS();
	settling->attempts = 0;
	settling->receipt = 0;
	settling->others = false;
	aq_notes_reserve_take(settling->queue->shm, n);
	if (settling->terms.until != 0 || settling->options->retry_delay)
		aq_chunks_reserve(1);
	aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_LEASE_SETTLE);
	settling->partition = find_partition(stream, settling->options->position, wanted->ordinal / PARTITION_SLOTS);
	settling->unloaded = settling->partition != NULL && settling->partition->frame == 0;
	for (uint32 i = 0; i < n && settling->partition != NULL; i++)
	{
		if (wanted[i].open && !settling->unloaded)
			settle_resident(settling, &wanted[i], mode);
		left |= wanted[i].open;
	}
	aq_latch_free(&stream->latch);
	return left;
}

/*
 * As after a dequeue, the lock makes a drop of the queue wait for the
 * transaction, which is going to write to the log.  The messages keep the
 * partition, as their views are TAKEN.
 */
static void
lock_tables(Settling *settling)
{
	if (settling->partition == settling->locked)
		return;
	table_close(aq_heap_open_messages(settling->partition, AccessShareLock), NoLock);
	settling->locked = settling->partition;
}

/* At most SETTLE_BATCH messages, of one partition. */
static void
settle_batch(Settling *settling, Wanted *wanted, uint32 n)
{
	AqMode		mode = settling->options->mode;

	settling->done = false;
	if (settling->locked == NULL || settling->locked->stream != wanted->stream->index ||
		settling->locked->number != wanted->ordinal / PARTITION_SLOTS)
		aq_keep_admit(settling->queue->shm);
	while (settle_step(settling, wanted, n, mode))
	{
		if (settling->unloaded)
			aq_load_partition(settling->queue->shm, settling->partition);
		else if (!settling->others)
			mode = AQ_MODE_REJECT;
	}
	if (settling->done)
		lock_tables(settling);
}

/* --- a call ------------------------------------------------------------------------------ */

/* Kept until the transaction ends. */
static const char *
clipped(const char *before, const char *error)
{
	int			size = aq_clip_length(error, strlen(error), LOG_DETAIL_SIZE - (int) strlen(before));

	return MemoryContextStrdup(aq_notes_context(), psprintf("%s%.*s", before, size, error));
}

static const char *
make_death(const AqLeaseOptions *options)
{
	const char	reason[] = {options->mode == AQ_MODE_REJECT ? AQ_DEATH_REJECTED :
		options->mode == AQ_MODE_UNSEEN ? DEATH_UNSEEN : AQ_DEATH_RETRIES, '\0'};

	return clipped(reason, options->error != NULL ? options->error : "");
}

static LeaseTerms
make_terms(const AqLeaseOptions *options, TimestampTz now)
{
	LeaseTerms	terms = {.receipt = options->receipt};

	if (options->mode == AQ_MODE_EXTEND)
		terms.span = options->time;
	else if (options->time > 0)
		terms.until = now + options->time;
	if (options->error != NULL)
		terms.detail = clipped("", options->error);
	return terms;
}

/* By stream and partition; those of one partition in the order of the call. */
static int
compare_wanted(const void *a, const void *b)
{
	const Wanted *x = a,
			   *y = b;
	int64		p = x->ordinal / PARTITION_SLOTS,
				q = y->ordinal / PARTITION_SLOTS;

	if (x->stream != y->stream)
		return x->stream < y->stream ? -1 : 1;
	if (p != q)
		return p < q ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

/* The messages that may be leased, sorted; the others' results are final.  Returns their number. */
static uint32
find_wanted(AqQueue *queue, const pg_uuid_t *ids, uint32 n, Wanted *wanted)
{
	uint32		found = 0;
	bool		sorted = true;

	for (uint32 i = 0; i < n; i++)
	{
		Wanted	   *one = &wanted[found];
		int			stream_no;

		if (!aq_message_id_parse(&ids[i], queue->shard_key, &stream_no, &one->ordinal))
			continue;
		one->stream = aq_stream_find(queue->shm, stream_no);
		if (one->stream == NULL)
			continue;
		one->at = i;
		one->open = true;
		sorted &= found == 0 || compare_wanted(one - 1, one) < 0;
		found++;
	}
	if (!sorted)
		qsort(wanted, found, sizeof(Wanted), compare_wanted);
	return found;
}

static void
settle(AqQueue *queue, const AqLeaseOptions *options, bool lent, const pg_uuid_t *ids, uint32 n, AqLeaseResult *results)
{
	Settling	settling = {.queue = queue, .options = options, .lent = lent, .now = GetCurrentTimestamp(),
		.random = aq_retry_delay_random(), .results = results};
	Wanted	   *wanted = palloc(n * sizeof(Wanted));

	settling.terms = make_terms(options, settling.now);
	if (options->mode != AQ_MODE_ACKNOWLEDGE && options->mode != AQ_MODE_EXTEND)
		settling.death = make_death(options);
	for (uint32 i = 0; i < n; i++)
		results[i] = AQ_LEASE_STALE;
	n = find_wanted(queue, ids, n, wanted);
	for (uint32 i = 0, count; i < n; i += count)
	{
		count = 1;
		while (i + count < n && count < SETTLE_BATCH && wanted[i + count].stream == wanted[i].stream &&
			   wanted[i + count].ordinal / PARTITION_SLOTS == wanted[i].ordinal / PARTITION_SLOTS)
			count++;
		settle_batch(&settling, &wanted[i], count);
	}
	pfree(wanted);
	aq_chunks_trim();
	aq_point("leases-held");
}

void
aq_lease_settle(AqQueue *queue, const AqLeaseOptions *options, const pg_uuid_t *ids, uint32 n, AqLeaseResult *results)
{
	settle(queue, options, false, ids, n, results);
}

/* The same for messages that another node has. */
void
aq_lease_settle_lent(AqQueue *queue, const AqLeaseOptions *options, const pg_uuid_t *ids, uint32 n, AqLeaseResult *results)
{
	settle(queue, options, true, ids, n, results);
}
