/*-------------------------------------------------------------------------
 *
 * contents.c
 *	  Reading a partition's tables: finds the messages that each consumer still
 *	  has to take.
 *
 * The committed rows of the tables are the truth (rule 1 of README.md).  While
 * a transaction of a running session uses a partition, the partition keeps its
 * frame and is not read; so every row is committed, aborted, or belongs to a
 * prepared transaction, which is in doubt (rule 8).
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "shard/tables/contents.h"
#include "shard/partitions/tag.h"

#include "access/heapam.h"
#include "access/subtrans.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/transam.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "storage/procarray.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

typedef enum RowStatus
{
	ROW_COMMITTED, ROW_DOUBT, ROW_ABORTED
} RowStatus;

/*
 * Uses only the transaction's status, no snapshot.  As in the server, checks
 * first whether the transaction is in progress, because that state ends last.
 */
static RowStatus
row_status(HeapTupleHeader header, TransactionId *xid)
{
	*xid = HeapTupleHeaderGetXmin(header);	/* a frozen row has no xid */
	if (HeapTupleHeaderXminFrozen(header) || HeapTupleHeaderXminCommitted(header))
		return ROW_COMMITTED;
	if (HeapTupleHeaderXminInvalid(header))
		return ROW_ABORTED;
	if (TransactionIdIsInProgress(*xid))
	{
		*xid = SubTransGetTopmostTransaction(*xid);
		return ROW_DOUBT;
	}
	return TransactionIdDidCommit(*xid) ? ROW_COMMITTED : ROW_ABORTED;
}

/*
 * Was the row inserted with immediate visibility by a transaction that still runs?
 * Then memory may not show yet what it says.
 */
static bool
is_young(HeapTupleHeader header)
{
	return HeapTupleHeaderXminFrozen(header) && TransactionIdIsNormal(HeapTupleHeaderGetRawXmin(header)) &&
		TransactionIdIsInProgress(HeapTupleHeaderGetRawXmin(header));
}

static bool
is_removed(AqQueueShm *shm, int position)
{
	AqConsumerShm *consumer = aq_shm_consumer(shm, position);

	return consumer == NULL || aq_consumer_removed(consumer);
}

static void
add_todo(Contents *p, int position, uint32 slot)
{
	/* messages of another node go back, also those of a consumer that is removed here */
	if (is_removed(p->shm, position) &&
		(aq_shm_consumer(p->shm, position) == NULL || !stream_is_held(stream_at(p->partition->stream))))
	{
		p->removed[slot]++;
		if (p->left[position] == NULL)
			p->left[position] = palloc0(AQ_CHUNK_SIZE);
		(void) aq_bitmap_set(p->left[position], slot);
		return;
	}
	if (p->todo[position] == NULL)
		p->todo[position] = palloc0(AQ_CHUNK_SIZE);
	(void) aq_bitmap_set(p->todo[position], slot);
	aq_slot_read_target(&p->slots[slot]);
}

/* Clears the bit of a slot that is done; returns whether it was set. */
static bool
clear_todo(Contents *p, int position, uint32 slot)
{
	if (p->left[position] != NULL)
		(void) aq_bitmap_clear(p->left[position], slot);
	if (p->todo[position] == NULL || !aq_bitmap_clear(p->todo[position], slot))
		return false;
	aq_slot_read_done(&p->slots[slot]);
	return true;
}

static void
add_doubt(Contents *p, TransactionId xid, int64 session)
{
	ListCell   *lc;

	foreach(lc, p->doubts)
		if ((TransactionId) lfirst_oid(lc) == xid)
			return;
	p->doubts = lappend_oid(p->doubts, (Oid) xid);
	p->doubt_sessions = lappend(p->doubt_sessions, (void *) (intptr_t) session);
}

static void
read_body(Contents *p, uint32 slot)
{
	if (p->bodies == NULL)
		p->bodies = palloc0(AQ_CHUNK_SIZE);
	(void) aq_bitmap_set(p->bodies, slot);
}

static void
read_message(Contents *p, HeapTuple tuple, TupleDesc desc)
{
	Datum		values[MSG_COLUMNS];
	bool		nulls[MSG_COLUMNS];
	bool		chunk;
	int64		ordinal;
	uint32		number;
	Slot	   *slot;
	TransactionId xid;
	RowStatus	status = row_status(tuple->t_data, &xid);

	p->young |= is_young(tuple->t_data);
	aq_rows_read(tuple, desc, MSG_COLUMNS, values, nulls);
	chunk = DatumGetInt64(values[MSG_ORDINAL]) < 0;
	ordinal = message_ordinal(DatumGetInt64(values[MSG_ORDINAL]));
	if (DatumGetInt16(values[MSG_STREAM]) != p->stream)
		aq_catalog_refuse_row(NULL, tuple->t_tableOid, "stream", DatumGetInt16(values[MSG_STREAM]));
	if (ordinal / PARTITION_SLOTS != p->partition->number)
		aq_catalog_refuse_row(NULL, tuple->t_tableOid, "ordinal", ordinal);
	number = ordinal % PARTITION_SLOTS;
	if (chunk)
	{
		if (status == ROW_COMMITTED)
			read_body(p, number);
		return;
	}
	p->nslots = Max(p->nslots, number + 1);
	slot = &p->slots[number];
	aq_slot_read_row(slot, ItemPointerGetBlockNumber(&tuple->t_self), ItemPointerGetOffsetNumber(&tuple->t_self),
					 DatumGetInt64(values[MSG_SESSION]));
	aq_slot_set_xid(slot, xid, p->next_xid);
	p->tags[number] = tag_of(aq_waiters_key(nulls[MSG_CORRELATION] ? NULL : (struct varlena *) DatumGetPointer(values[MSG_CORRELATION])));
	if (status == ROW_ABORTED)
		return;
	if (!nulls[MSG_EXPIRES_AT])
		aq_slot_set_expiry(slot, DatumGetTimestampTz(values[MSG_EXPIRES_AT]));

	if (status == ROW_DOUBT)
	{
		aq_slot_read(slot, SLOT_DOUBT);
		p->pending++;
		return;
	}

	aq_slot_read(slot, SLOT_READY);
	if (!nulls[MSG_READY_AT] && DatumGetTimestampTz(values[MSG_READY_AT]) > p->now)
	{
		aq_slot_read(slot, SLOT_WAITING);
		p->delayed = true;
		p->ready_at[number] = DatumGetTimestampTz(values[MSG_READY_AT]);
		p->ntimers++;
	}
	if (slot->flags & SLOT_EXPIRES)
		p->ntimers++;
	if (p->shm->single)
		add_todo(p, 0, number);
	else if (!nulls[MSG_TARGETS])
	{
		bytea	   *targets = DatumGetByteaPP(values[MSG_TARGETS]);
		int			position = -1;

		while ((position = targets_next(targets, position)) >= 0)
		{
			if (position >= AQ_MAX_CONSUMERS)
				aq_catalog_refuse_row(NULL, tuple->t_tableOid, "consumer", position);
			add_todo(p, position, number);
		}
	}
	if (stream_is_held(stream_at(p->partition->stream)))
		add_todo(p, AQ_ORIGIN_POSITION, number);
}

/* Adds a retry delay of a rolled back dequeue, with the time of its end. */
static void
add_retry_delay(Contents *p, int position, uint32 number, TimestampTz until)
{
	Timer	   *delay = palloc(sizeof(Timer));

	*delay = (Timer) {.when = until, .slot = number, .position = position, .kind = TIMER_RETRY};
	p->retry_delays = lappend(p->retry_delays, delay);
}

/*
 * Keeps the retry delays of messages that still have to be taken, up to the
 * maximum number of timers.
 */
static void
keep_retry_delays(Contents *p)
{
	List	   *kept = NIL;
	ListCell   *lc;

	foreach(lc, p->retry_delays)
	{
		Timer	   *delay = lfirst(lc);

		if (p->slots[delay->slot].state != SLOT_READY || p->todo[delay->position] == NULL ||
			!aq_bitmap_test(p->todo[delay->position], delay->slot) || p->ntimers == MAX_TIMERS ||
			(p->leases[delay->position] != NULL && p->leases[delay->position][delay->slot].receipt != 0))
			continue;
		kept = lappend(kept, delay);
		p->ntimers++;
		if (p->next_timer == 0 || delay->when < p->next_timer)
			p->next_timer = delay->when;
	}
	p->retry_delays = kept;
}

/* --- leases ------------------------------------------------------------------------- */

/* A row that says until when a lease, or a retry delay, lasts. */
typedef struct LeaseRow
{
	char		kind;
	int			position;
	int64		receipt;
	TimestampTz at;
	int			n;
	uint16		slots[FLEXIBLE_ARRAY_MEMBER];
} LeaseRow;

static bool
is_lease_kind(char kind)
{
	return kind == LOG_LEASED || kind == LOG_EXTENDED || kind == LOG_OVER || kind == LOG_RELEASED || kind == LOG_UNSEEN;
}

/* The row is committed.  What it means depends on others, which may come before it or after it. */
static void
keep_lease_row(Contents *p, const LogRow *row)
{
	LeaseRow   *kept = palloc(offsetof(LeaseRow, slots) + row->n * sizeof(uint16));

	kept->kind = row->kind;
	kept->position = row->position;
	kept->receipt = row->receipt;
	kept->at = row->at;
	kept->n = 0;
	for (int i = 0; i < row->n; i++)
		if (row->ordinals[i] / PARTITION_SLOTS == p->partition->number)
			kept->slots[kept->n++] = row->ordinals[i] % PARTITION_SLOTS;
	p->lease_rows = lappend(p->lease_rows, kept);
}

static uint8 *
make_counts(uint8 **counts)
{
	if (*counts == NULL)
		*counts = palloc0(PARTITION_SLOTS);
	return *counts;
}

static void
count_up(uint8 **counts, uint32 number)
{
	if (make_counts(counts)[number] < AQ_MAX_ATTEMPTS)
		(*counts)[number]++;
}

/*
 * A lease has one row that begins it, and one row that ends it when it has
 * ended.  At most one has no end, so the exclusive or of the receipts in all these
 * rows is that of the running one.
 */
static void
read_lease(Contents *p, char kind, int position, uint32 number, int64 receipt)
{
	if (is_removed(p->shm, position))
		return;
	if (p->leases[position] == NULL)
		p->leases[position] = palloc0(PARTITION_SLOTS * sizeof(Lease));
	if (kind != LOG_EXTENDED)
		p->leases[position][number].receipt ^= receipt;
	if (kind == LOG_LEASED)
		count_up(&p->attempts[position], number);
	if (kind == LOG_UNSEEN)
		count_up(&p->unseen[position], number);
}

/* Adds what the row says about the end of the message's lease or retry delay. */
static void
add_end(Contents *p, const LeaseRow *row, uint32 number)
{
	Lease	   *known = &p->leases[row->position][number];
	bool		begins = row->kind == LOG_LEASED || row->kind == LOG_EXTENDED;

	if (begins ? known->receipt == row->receipt
		: row->kind != LOG_OVER && row->at > p->now && (known->receipt == 0 || known->receipt == LEASE_RETRY_DELAY) &&
		p->slots[number].state == SLOT_READY)
	{
		known->until = Max(known->until, row->at);
		if (!begins)
			known->receipt = LEASE_RETRY_DELAY;
	}
}

/* All rows are read: which leases run, and until when; attempts. */
static void
find_leases(Contents *p)
{
	ListCell   *lc;

	foreach(lc, p->lease_rows)
	{
		const LeaseRow *row = lfirst(lc);

		for (int i = 0; i < row->n && p->leases[row->position] != NULL; i++)
			add_end(p, row, row->slots[i]);
	}
	for (int position = 0; position < AQ_MAX_CONSUMERS; position++)
	{
		for (uint32 i = 0; i < p->nslots && p->leases[position] != NULL; i++)
		{
			Lease	   *known = &p->leases[position][i];
			bool		todo = p->todo[position] != NULL && aq_bitmap_test(p->todo[position], i);

			/* of one in doubt it is decided later */
			if (known->until == 0 || (!todo && !(p->doubt[position] != NULL && aq_bitmap_test(p->doubt[position], i))))
				known->receipt = 0;
			if (known->receipt != 0 && todo && (p->next_timer == 0 || known->until < p->next_timer))
				p->next_timer = known->until;
		}
		for (uint32 i = 0; i < p->nslots && p->unseen[position] != NULL; i++)
			make_counts(&p->attempts[position])[i] -= Min(p->attempts[position][i], p->unseen[position][i]);
	}
}

/* --- the log ------------------------------------------------------------------------ */

static void
read_log_ordinal(Contents *p, char kind, RowStatus status, TransactionId xid,
				 int position, uint32 number, TimestampTz at, int64 receipt)
{
	Slot	   *slot = &p->slots[number];

	if (status == ROW_DOUBT)
	{
		/* taken or locked by a prepared transaction: neither done nor ready */
		if (kind != LOG_RETRY && p->todo[position] != NULL &&
			aq_bitmap_clear(p->todo[position], number))
		{
			p->inflight++;
			if (p->doubt[position] == NULL)
				p->doubt[position] = palloc0(AQ_CHUNK_SIZE);
			(void) aq_bitmap_set(p->doubt[position], number);
		}
		add_doubt(p, xid, 0);
		return;
	}
	switch (kind)
	{
		case LOG_TAKEN:
		case LOG_PURGED:
			(void) clear_todo(p, position, number);
			break;
		case LOG_FAILED:
			if (clear_todo(p, position, number))
				aq_slot_read_failed(slot, true);
			break;
		case LOG_MOVED:
			/*
			 * this row may come before that of the failure, because rows are
			 * stored where there is room
			 */
			(void) aq_bitmap_set(p->moved, number);
			break;
		case LOG_RETRY:
			if (is_removed(p->shm, position))
				break;
			count_up(&p->attempts[position], number);
			if (at > p->now)
				add_retry_delay(p, position, number, at);
			break;
		default:
			if (is_lease_kind(kind))
				read_lease(p, kind, position, number, receipt);
			break;
	}
}

/*
 * The position may have a new consumer only if the row is committed.  Until then, all
 * messages are read as those of a removed one.
 */
static void
read_removed(Contents *p, const LogRow *row, RowStatus status)
{
	if (status != ROW_COMMITTED || row->n != 1 || row->ordinals[0] / PARTITION_SLOTS != p->partition->number)
		return;
	for (uint32 i = 0; i <= row->ordinals[0] % PARTITION_SLOTS; i++)
		(void) clear_todo(p, row->position, i);
}

static void
read_log_row(Contents *p, HeapTuple tuple, TupleDesc desc)
{
	TransactionId xid;
	RowStatus	status = row_status(tuple->t_data, &xid);
	LogRow		row;

	p->young |= is_young(tuple->t_data);
	if (status == ROW_ABORTED)
		return;
	row = aq_heap_read_log(tuple, desc);
	if (row.kind == LOG_CLEARED)
		return;
	if (row.stream != p->stream)
		return;					/* from an earlier use of the tables */
	if (row.kind == LOG_REMOVED)
		read_removed(p, &row, status);
	if (is_lease_kind(row.kind) && status == ROW_COMMITTED)
		keep_lease_row(p, &row);
	if (row.kind != LOG_RETRY && !is_lease_kind(row.kind))
		p->last_take = Max(p->last_take, row.at);
	for (int i = 0; i < row.n && row.kind != LOG_REMOVED; i++)
		if (row.ordinals[i] / PARTITION_SLOTS == p->partition->number &&
			p->slots[row.ordinals[i] % PARTITION_SLOTS].state != SLOT_EMPTY)
			read_log_ordinal(p, row.kind, status, xid, row.position, row.ordinals[i] % PARTITION_SLOTS, row.at, row.receipt);
}

/* Returns the number of the table's file. */
static uint32
scan_table(Contents *p, Oid relid, void (*row) (Contents *, HeapTuple, TupleDesc))
{
	Relation	rel = try_table_open(relid, AccessShareLock);
	TableScanDesc scan;
	HeapTuple	tuple;
	uint32		file;

	if (rel == NULL)
		ereport(ERROR, aq_error(AQ_ERR_QUEUE_UNDEFINED, "the queue was dropped"));
	scan = aq_table_beginscan(rel, SnapshotAny);
	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		row(p, tuple, RelationGetDescr(rel));
	}
	table_endscan(scan);
	file = aq_relation_file(rel);
	table_close(rel, AccessShareLock);
	return file;
}

/* The latest transaction in doubt of the session, before this slot. */
static TransactionId
doubt_before(Contents *p, int64 session)
{
	TransactionId xid = InvalidTransactionId;
	ListCell   *x,
			   *s;

	forboth(x, p->doubts, s, p->doubt_sessions)
		if ((int64) (intptr_t) lfirst(s) == session)
			xid = (TransactionId) lfirst_oid(x);
	if (!TransactionIdIsValid(xid) && pg_atomic_read_u32(&aq_area->ndoubts) > 0)
		xid = aq_doubt_table_of_session(p->partition->stream, session, p->partition->number);
	return xid;
}

/*
 * Goes through the slots in order, which is the order of the calls: collects
 * the transactions in doubt, and makes later committed messages of their
 * sessions wait for them.  Messages with a delay have no order.
 */
static void
hold_followers(Contents *p)
{
	bool		delayed = stream_at(p->partition->stream)->delayed;

	if (p->pending == 0 && pg_atomic_read_u32(&aq_area->ndoubts) == 0)
		return;
	for (uint32 i = 0; i < p->nslots; i++)
	{
		Slot	   *slot = &p->slots[i];
		TransactionId doubt;

		if (slot->state == SLOT_DOUBT)
			add_doubt(p, slot->xid, slot->session);
		if (delayed || (slot->state != SLOT_READY && slot->state != SLOT_WAITING))
			continue;
		doubt = doubt_before(p, slot->session);
		if (!TransactionIdIsValid(doubt))
			continue;
		for (int position = 0; position < AQ_MAX_CONSUMERS; position++)
			(void) clear_todo(p, position, i);
		if (slot->state == SLOT_WAITING)
			p->ntimers--;
		if (slot->flags & SLOT_EXPIRES)
			p->ntimers--;
		aq_slot_read_follower(slot, doubt, p->next_xid);
		p->pending++;
		add_doubt(p, doubt, slot->session);
	}
}

/* Clears the attempts of messages that are done, where they are not needed. */
static void
drop_attempts_of_done(Contents *p)
{
	for (int position = 0; position < AQ_MAX_CONSUMERS; position++)
	{
		bool		needed = false;

		if (p->attempts[position] == NULL)
			continue;
		for (uint32 i = 0; i < p->nslots; i++)
			if (p->attempts[position][i] > 0 && p->slots[i].open == 0 && p->slots[i].state != SLOT_DOUBT)
				p->attempts[position][i] = 0;
			else
				needed |= p->attempts[position][i] > 0;
		if (!needed)
			p->attempts[position] = NULL;
	}
}

/*
 * The number of messages with which the consumer has not finished, including
 * those taken by prepared transactions.
 */
uint32
aq_contents_todo(const Contents *p, int position)
{
	uint32		n = 0;

	if (p->todo[position] != NULL)
		n += pg_popcount((const char *) p->todo[position], AQ_CHUNK_SIZE);
	if (p->doubt[position] != NULL)
		n += pg_popcount((const char *) p->doubt[position], AQ_CHUNK_SIZE);
	return n;
}

/*
 * The number of messages that wait for a delay or a retry delay; *head: the
 * first one that neither waits nor is leased, -1: none; *leased: the number of
 * leased ones.
 */
uint32
aq_contents_waiting(const Contents *p, int position, int *head, uint32 *leased)
{
	uint64_t   *ready;
	uint32		n = 0;
	int			slot = -1;
	ListCell   *lc;

	*head = -1;
	*leased = 0;
	if (p->todo[position] == NULL)
		return 0;
	ready = palloc(AQ_CHUNK_SIZE);
	memcpy(ready, p->todo[position], AQ_CHUNK_SIZE);
	for (uint32 i = 0; i < p->nslots && p->leases[position] != NULL; i++)
		if (p->leases[position][i].receipt == LEASE_RETRY_DELAY)
			n += aq_bitmap_clear(ready, i);
		else if (p->leases[position][i].receipt != 0)
			*leased += aq_bitmap_clear(ready, i);
	while (p->delayed && (slot = aq_bitmap_next(ready, PARTITION_SLOTS, slot + 1)) >= 0)
		if (p->slots[slot].state == SLOT_WAITING)
			n += aq_bitmap_clear(ready, slot);
	/* a message may have several, because each rollback writes one */
	foreach(lc, p->retry_delays)
		if (((Timer *) lfirst(lc))->position == position)
			n += aq_bitmap_clear(ready, ((Timer *) lfirst(lc))->slot);
	*head = aq_bitmap_next(ready, PARTITION_SLOTS, 0);
	pfree(ready);
	return n;
}

Contents *
aq_contents_read(AqQueueShm *shm, Partition *partition)
{
	Contents   *p = palloc0(sizeof(Contents));

	p->partition = partition;
	p->shm = shm;
	p->stream = stream_at(partition->stream)->number;
	p->now = GetCurrentTimestamp();
	p->next_xid = U64FromFullTransactionId(ReadNextFullTransactionId());
	p->slots = palloc0(PARTITION_SLOTS * sizeof(Slot));
	p->tags = palloc0(PARTITION_SLOTS * sizeof(uint16));
	p->ready_at = palloc0(PARTITION_SLOTS * sizeof(TimestampTz));
	p->removed = palloc0(PARTITION_SLOTS * sizeof(uint16));
	p->moved = palloc0(AQ_CHUNK_SIZE);
	p->file = scan_table(p, partition->messages, read_message);
	hold_followers(p);
	(void) scan_table(p, partition->log, read_log_row);
	for (uint32 i = 0; i < p->nslots; i++)
	{
		if (aq_bitmap_test(p->moved, i))
			aq_slot_read_failed(&p->slots[i], false);
		/*
		 * also messages that other consumers still have to take: they are
		 * moved after that
		 */
		if (p->slots[i].flags & SLOT_FAILED)
			p->nfailed++;
		if (p->slots[i].open == 0 && (p->slots[i].state == SLOT_READY || p->slots[i].state == SLOT_WAITING))
			aq_slot_read(&p->slots[i], SLOT_DONE);
	}
	find_leases(p);
	keep_retry_delays(p);
	drop_attempts_of_done(p);
	return p;
}
