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
#include "shard/shard_private.h"

#include "access/table.h"
#include "access/xlog.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

/* receipts for each number of the queue's sequence */
#define RECEIPT_BITS 20

/* --- receipts ---------------------------------------------------------------------------- */

/*
 * See to it that the sequence does not give out its latest number again after a
 * crash, even if no transaction that has used it commits.
 */
static void
flush_sequence(Oid relid)
{
	Relation	rel = table_open(relid, NoLock);
	Buffer		buffer = ReadBuffer(rel, 0);
	XLogRecPtr	lsn;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	lsn = PageGetLSN(BufferGetPage(buffer));
	UnlockReleaseBuffer(buffer);
	table_close(rel, NoLock);
	XLogFlush(lsn);
}

/* A receipt that the queue has never given out.  May raise and wait. */
int64
aq_lease_receipt(AqQueue *queue)
{
	ShardQueue *sq = shard_queue(queue->shm);
	int64		number = 0;

	for (;;)
	{
		int64		receipt = 0;

		aq_latch_get(&sq->latch, AQ_EXCLUSIVE, AQ_LOC_LEASE_RECEIPT);
		/* another session may have fetched a later number meanwhile */
		if (number > sq->receipt >> RECEIPT_BITS)
			sq->receipt = number << RECEIPT_BITS;
		if (sq->receipt != 0 && (sq->receipt + 1) >> RECEIPT_BITS == sq->receipt >> RECEIPT_BITS)
			receipt = ++sq->receipt;
		aq_latch_free(&sq->latch);
		if (receipt != 0)
			return receipt;
		number = aq_heap_next_number(queue);
		flush_sequence(queue->sequence);
	}
}

/* What the log says of the holder: its application_name; NULL: none.  Lives as long as the transaction. */
const char *
aq_lease_holder(void)
{
	int			size;

	if (application_name == NULL || *application_name == '\0')
		return NULL;
	size = pg_mbcliplen(application_name, strlen(application_name), LOG_DETAIL_SIZE);
	return MemoryContextStrdup(aq_notes_context(), pnstrdup(application_name, size));
}

/* --- one message ------------------------------------------------------------------------- */

/*
 * Does the message, whose lease ends without an acknowledgement, fail?  counts:
 * the attempt counts.  Nothing else sees to its expiration.  Latch held.
 */
bool
aq_lease_fails(const AqQueue *queue, const Partition *partition, int position, uint32 number,
			   bool counts, TimestampTz now)
{
	Frame	   *frame = frame_of(partition);
	const Slot *slot = slot_at(frame, number);

	return (counts && queue->max_retries >= 0 && aq_frame_attempts(frame, position, number) > queue->max_retries) ||
		((slot->flags & SLOT_EXPIRES) && slot->expires_at <= now);
}

typedef struct Settling
{
	AqQueue    *queue;
	const AqLeaseOptions *options;
	LeaseTerms	terms;
	TimestampTz now;
	Stream	   *stream;
	Partition  *partition;		/* of the message, or NULL */
	bool		unloaded;		/* it must be loaded first */
	const Partition *locked;	/* the latest one whose table is locked */
} Settling;

static Partition *
find_partition(const Stream *stream, int64 number)
{
	Partition  *partition = partition_at(stream->head);

	while (partition != NULL && partition->number < number)
		partition = partition_at(partition->next);
	return partition != NULL && partition->number == number ? partition : NULL;
}

/* What the transaction is going to do with the message. */
static AqMode
mode_for(const Settling *settling, const Partition *partition, uint32 number)
{
	AqMode		mode = settling->options->mode;

	if ((mode == AQ_MODE_RELEASE || mode == AQ_MODE_UNSEEN) &&
		aq_lease_fails(settling->queue, partition, settling->options->position, number, mode == AQ_MODE_RELEASE,
					   settling->now))
		return AQ_MODE_REJECT;
	return mode;
}

/* Latch held; memory for a note and a chunk are reserved. */
static AqLeaseResult
settle_resident(Settling *settling, Partition *partition, uint32 number)
{
	int			position = settling->options->position;
	FrameSub   *sub = frame_sub(frame_of(partition), position);
	const Lease *lease = lease_at(sub, number);
	LeaseTerms	terms = settling->terms;
	AqMode		mode;

	if (lease == NULL || lease->receipt != settling->options->receipt)
		return AQ_LEASE_STALE;
	mode = mode_for(settling, partition, number);
	if (!aq_slot_hold_lease(partition, position, number))
		return AQ_LEASE_BUSY;
	if (terms.until != 0)
		aq_slot_make_bitmap(&sub->waiting);
	if (mode == AQ_MODE_REJECT)
		terms.until = 0;
	aq_notes_add_lease(partition, settling->queue->shm, position, mode, &terms, number);
	return AQ_LEASE_DONE;
}

/* Of up to n messages, this one; settling->unloaded says that its partition has to be loaded first. */
static AqLeaseResult
settle_one(Settling *settling, int64 ordinal, uint32 n)
{
	Stream	   *stream = settling->stream;
	Partition  *partition;
	AqLeaseResult result = AQ_LEASE_STALE;

	aq_notes_reserve_take(settling->queue->shm, n);
	if (settling->terms.until != 0)
		aq_chunks_reserve(1);
	aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_LEASE_SETTLE);
	settling->partition = partition = find_partition(stream, ordinal / PARTITION_SLOTS);
	settling->unloaded = partition != NULL && partition->frame == 0;
	if (partition != NULL && partition->frame != 0)
		result = settle_resident(settling, partition, ordinal % PARTITION_SLOTS);
	aq_latch_free(&stream->latch);
	return result;
}

/*
 * As after a dequeue, the lock makes a drop of the queue wait for the
 * transaction, which is going to write to the log.  The message keeps the
 * partition, as its view is TAKEN.
 */
static void
lock_tables(Settling *settling)
{
	if (settling->partition == settling->locked)
		return;
	table_close(aq_heap_open_messages(settling->partition, AccessShareLock), NoLock);
	settling->locked = settling->partition;
}

/* --- a call ------------------------------------------------------------------------------ */

static LeaseTerms
make_terms(const AqLeaseOptions *options, TimestampTz now)
{
	LeaseTerms	terms = {.receipt = options->receipt};

	if (options->mode == AQ_MODE_EXTEND)
		terms.span = options->time;
	else if (options->time > 0)
		terms.until = now + options->time;
	if (options->error != NULL)
		terms.detail = MemoryContextStrdup(aq_notes_context(),
										   pnstrdup(options->error, pg_mbcliplen(options->error, strlen(options->error),
																				 LOG_DETAIL_SIZE)));
	return terms;
}

void
aq_lease_settle(AqQueue *queue, const AqLeaseOptions *options, const pg_uuid_t *ids, uint32 n,
				AqLeaseResult *results)
{
	Settling	settling = {.queue = queue,.options = options,.now = GetCurrentTimestamp()};

	settling.terms = make_terms(options, settling.now);
	for (uint32 i = 0; i < n; i++)
	{
		int			stream_no;
		int64		ordinal;

		CHECK_FOR_INTERRUPTS();
		results[i] = AQ_LEASE_STALE;
		if (!aq_message_id_parse(&ids[i], queue->shard_key, &stream_no, &ordinal))
			continue;
		settling.stream = stream_no < STREAM_NUMBERS ? aq_stream_find(queue->shm, stream_no) : NULL;
		if (settling.stream == NULL)
			continue;
		for (;;)
		{
			results[i] = settle_one(&settling, ordinal, Min(n - i, PARTITION_SLOTS));
			if (!settling.unloaded)
				break;
			aq_load_partition(queue->shm, settling.partition);
		}
		if (results[i] == AQ_LEASE_DONE)
			lock_tables(&settling);
	}
	aq_chunks_trim();
	aq_point("leases-held");
}
