/*-------------------------------------------------------------------------
 *
 * classic_lease.c
 *	  Acknowledge, extend, release and reject leased messages of a queue table.
 *
 * The row decides: a call changes it if it is leased with this receipt, and no
 * other transaction is changing it.  Nothing here waits for another transaction.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "classic/classic_private.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "utils/fmgroids.h"
#include "utils/snapmgr.h"
#include "utils/uuid.h"

typedef struct Settling
{
	AqQueue    *queue;
	const AqLeaseOptions *options;
	TimestampTz now;
	double		random;			/* for retry delays */
	RowScan		messages;
	RowScan		consumers;		/* of a topic */
	RowScan		probe;			/* of a topic: to find the message's other consumers */
} Settling;

static RowScan *
rows_of(Settling *settling)
{
	return settling->queue->multi ? &settling->consumers : &settling->messages;
}

/* --- the row ----------------------------------------------------------------------------- */

static bool
is_leased(const Settling *settling, TupleTableSlot *slot)
{
	int64		receipt = aq_leased_row_latest_receipt(slot);

	return (settling->options->any_receipt || receipt == settling->options->receipt) &&
		DatumGetInt16(slot->tts_values[COL_STATE]) == STATE_LEASED;
}

/*
 * Has this transaction acknowledged, extended or given back the lease?  Then its
 * old version is no more visible to the transaction.
 */
static bool
has_changed(Settling *settling, const Key *key)
{
	RowScan    *rows = rows_of(settling);
	IndexScanDesc scan = aq_index_beginscan(rows->rel, rows->order, SnapshotAny, lengthof(rows->keys));
	bool		found = false;

	aq_row_scan_seek(rows, settling->queue->id, settling->options->position, key, ForwardScanDirection);
	scan->xs_want_itup = true;
	index_rescan(scan, rows->keys, lengthof(rows->keys), NULL, 0);
	while (!found && index_getnext_slot(scan, ForwardScanDirection, rows->slot))
	{
		HeapTupleHeader header = aq_table_row_header(rows->slot);
		Key			other = aq_table_row_key(rows->slot);

		if (key_compare(&other, key) != 0)
			break;
		found = is_leased(settling, rows->slot) && !(header->t_infomask & HEAP_XMAX_INVALID) &&
			!HEAP_XMAX_IS_LOCKED_ONLY(header->t_infomask) &&
			TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetUpdateXid(header));
	}
	index_endscan(scan);
	return found;
}

/*
 * The leased row is fetched into the slot of rows_of(): DONE, although nothing is
 * done yet.
 */
static AqLeaseResult
find_lease(Settling *settling, const Key *key)
{
	RowScan    *rows = rows_of(settling);
	Key			found;

	aq_row_scan_seek(rows, settling->queue->id, settling->options->position, key, ForwardScanDirection);
	while (aq_row_scan_next(rows, key, &found))
	{
		/*
		 * if it is new, a transaction has leased it, whose receipts are not
		 * valid yet, or extended the lease, and the old version is there, too
		 */
		if (!is_leased(settling, rows->slot) || TransactionIdIsValid(rows->dirty.xmin) ||
			TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(aq_table_row_header(rows->slot))))
			continue;
		return TransactionIdIsValid(rows->dirty.xmax) ? AQ_LEASE_BUSY : AQ_LEASE_DONE;
	}
	return has_changed(settling, key) ? AQ_LEASE_BUSY : AQ_LEASE_STALE;
}

/* The slot with the message's row of table t; NULL: it no longer exists. */
static TupleTableSlot *
message_slot(Settling *settling, const Key *key)
{
	if (settling->queue->multi && !aq_row_scan_find(&settling->messages, settling->queue->id, 0, key))
		return NULL;
	return settling->messages.slot;
}

/* --- what happens to leased messages ------------------------------------------------------------------ */

static TM_Result
acknowledge(Settling *settling, const Key *key)
{
	AqQueue    *queue = settling->queue;
	RowScan    *rows = rows_of(settling);
	TM_Result	result = queue->retention > 0 ? aq_table_row_process(queue, rows->rel, rows->slot)
		: aq_table_row_delete(rows->rel, rows->slot);

	if (result == TM_Ok && queue->multi)
		aq_topic_check(queue, &settling->probe, &settling->messages, key, settling->options->position);
	return result;
}

static int
attempts_of(const RowScan *rows)
{
	return DatumGetInt32(rows->slot->tts_values[COL_ATTEMPTS]);
}

static TM_Result
release(Settling *settling, const Key *key, TupleTableSlot *message, NoteKind *kind)
{
	const AqLeaseOptions *options = settling->options;
	AqQueue    *queue = settling->queue;
	RowScan    *rows = rows_of(settling);
	bool		counts = options->mode == AQ_MODE_RELEASE;
	int			attempts = attempts_of(rows);
	int64		delay = options->time;
	TimestampTz expires;
	TM_Result	result;
	bool		ready;

	(void) aq_leased_row_ready(queue, message, &expires);
	if (options->retry_delay && queue->retry_delay > 0)
		delay = aq_retry_delay_after(queue, aq_failure_attempts(queue, rows->slot), settling->random);
	*kind = NOTE_REJECT;
	if ((counts && aq_leased_row_over_limit(queue, rows->slot)) || (expires != 0 && expires <= settling->now))
		return aq_leased_row_fail(queue, rows, AQ_DEATH_RETRIES, attempts - !counts, settling->now, options->error);
	result = aq_leased_row_give_back(queue, rows, message, attempts - !counts,
									 delay > 0 ? settling->now + delay : 0, options->error, &ready);
	*kind = ready ? NOTE_RELEASE : NOTE_RELEASE_LATER;
	if (result == TM_Ok && ready)
		aq_ranges_announce(queue->shm, options->position, key, key);
	return result;
}

/* The notes that a call in this mode may need. */
static bool
can_become(AqMode mode, NoteKind kind)
{
	switch (mode)
	{
		case AQ_MODE_ACKNOWLEDGE:
			return kind == NOTE_ACKNOWLEDGE;
		case AQ_MODE_EXTEND:
			return kind == NOTE_EXTEND;
		case AQ_MODE_REJECT:
			return kind == NOTE_REJECT;
		default:
			return kind == NOTE_RELEASE || kind == NOTE_RELEASE_LATER || kind == NOTE_REJECT;
	}
}

/* Changes the row as the call wants it.  A note is made first, because a row that was changed must have one. */
static TM_Result
change(Settling *settling, const Key *key)
{
	const AqLeaseOptions *options = settling->options;
	AqQueue    *queue = settling->queue;
	RowScan    *rows = rows_of(settling);
	TupleTableSlot *message = message_slot(settling, key);
	NoteKind	kind;
	TM_Result	result;

	if (message == NULL)
		return TM_Deleted;
	slot_getsomeattrs(rows->slot, COL_RECEIPT + 1);
	for (kind = NOTE_ACKNOWLEDGE; kind <= NOTE_REJECT; kind++)
		if (can_become(options->mode, kind))
			aq_classic_notes_reserve(queue->shm, options->position, kind);
	switch (options->mode)
	{
		case AQ_MODE_ACKNOWLEDGE:
			kind = NOTE_ACKNOWLEDGE;
			result = acknowledge(settling, key);
			break;
		case AQ_MODE_EXTEND:
			kind = NOTE_EXTEND;
			result = aq_leased_row_extend(queue, rows, settling->now + options->time);
			break;
		case AQ_MODE_REJECT:
			kind = NOTE_REJECT;
			result = aq_leased_row_fail(queue, rows, AQ_DEATH_REJECTED, attempts_of(rows), settling->now, options->error);
			break;
		default:
			result = release(settling, key, message, &kind);
			break;
	}
	if (result == TM_Ok)
		aq_classic_notes_add(queue->shm, options->position, kind, key, 1);
	return result;
}

/*
 * No row of the message is visible: has this transaction finished it?  The key of
 * an id is known, or some version of the row tells it.
 */
static bool
has_finished(Settling *settling, const pg_uuid_t *id)
{
	Relation	rel = settling->messages.rel;
	Relation	index;
	IndexScanDesc scan;
	ScanKeyData scankey;
	Key			key = {0, 0, 0};
	bool		found;

	if (!aq_step_of_id(id, settling->queue->key, &key.step))
		return false;
	if (has_changed(settling, &key))
		return true;
	index = aq_table_index_open(rel, INDEX_ID, AccessShareLock);
	scan = aq_index_beginscan(rel, index, SnapshotAny, 1);
	ScanKeyInit(&scankey, 1, BTEqualStrategyNumber, F_UUID_EQ, UUIDPGetDatum(id));
	index_rescan(scan, &scankey, 1, NULL, 0);
	found = index_getnext_slot(scan, ForwardScanDirection, settling->messages.slot);
	if (found)
		key = aq_table_row_key(settling->messages.slot);
	index_endscan(scan);
	index_close(index, NoLock);
	return found && has_changed(settling, &key);
}

/* --- a call ------------------------------------------------------------------------------ */

static AqLeaseResult
settle_once(Settling *settling, const pg_uuid_t *id)
{
	Key			key;
	AqLeaseResult result;

	if (!aq_row_scan_find_id(&settling->messages, settling->queue, id))
		return has_finished(settling, id) ? AQ_LEASE_BUSY : AQ_LEASE_STALE;
	key = aq_table_row_key(settling->messages.slot);
	result = find_lease(settling, &key);
	if (result != AQ_LEASE_DONE)
		return result;
	switch (change(settling, &key))
	{
		case TM_Ok:
			return AQ_LEASE_DONE;
		case TM_BeingModified:
		case TM_WouldBlock:
			return AQ_LEASE_BUSY;
		default:
			return AQ_LEASE_STALE;
	}
}

/*
 * The index may have been read before an extension of the lease by another
 * session was in it, and the row after that has committed, when its old version
 * was dead.  So a lease is not stale while leases are being extended.
 */
static AqLeaseResult
settle_one(Settling *settling, const pg_uuid_t *id)
{
	pg_atomic_uint64 *extensions = &classic_queue(settling->queue->shm)->extensions;
	AqLeaseResult result;
	uint64		before;

	do
	{
		CHECK_FOR_INTERRUPTS();
		before = pg_atomic_read_u64(extensions);
		pg_memory_barrier();
		result = settle_once(settling, id);
		pg_memory_barrier();
	} while (result == AQ_LEASE_STALE && pg_atomic_read_u64(extensions) != before);
	return result;
}

void
aq_classic_lease_settle(AqQueue *queue, const AqLeaseOptions *options, const pg_uuid_t *ids, uint32 n,
						AqLeaseResult *results)
{
	Settling	settling = {.queue = queue, .options = options, .now = GetCurrentTimestamp(),
		.random = aq_retry_delay_random()};
	bool		unused = true;

	aq_row_scan_open(&settling.messages, queue, queue->table.messages, RowExclusiveLock);
	if (queue->multi)
	{
		aq_row_scan_open(&settling.consumers, queue, queue->table.consumers, RowExclusiveLock);
		aq_row_scan_open(&settling.probe, queue, queue->table.consumers, RowExclusiveLock);
	}
	for (uint32 i = 0; i < n; i++)
	{
		results[i] = settle_one(&settling, &ids[i]);
		unused = unused && results[i] != AQ_LEASE_DONE;
	}
	/* so that the same command can dequeue what was given back */
	if (!unused)
		CommandCounterIncrement();
	aq_row_scan_close(&settling.messages, unused);
	if (queue->multi)
	{
		aq_row_scan_close(&settling.consumers, unused);
		aq_row_scan_close(&settling.probe, unused);
	}
	aq_point("leases-held");
}
