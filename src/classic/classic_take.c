/*-------------------------------------------------------------------------
 *
 * classic_take.c
 *	  Dequeue from a queue table: walk over the consumer's rows in order, take
 *	  rows that can be dequeued, skip rows that other transactions have taken.
 *
 * A row is taken by deleting it, or by marking it as processed when the queue
 * retains its messages, without waiting: a row that another transaction has
 * locked or changed is skipped.  PostgreSQL decides which transaction gets a
 * row; after a rollback the row is again at its old position.
 *
 * A row whose dequeue was rolled back has an aborted xmax.  It is not dequeued
 * until the abort callback of that transaction has run (the transaction holds
 * the lock on its transaction id until then) and, if the callback has passed
 * the row to the worker, until its retry count is written.
 *
 * A walk takes only messages that were committed before it began, so that it
 * does not get the later messages of a transaction without the earlier ones;
 * if it finds a message that was committed since, it starts again, a limited
 * number of times.  In REPEATABLE READ and above, the transaction's snapshot
 * decides; a wait ends for any message.
 *
 * If a message is in doubt, because a prepared transaction has enqueued or
 * taken it, later messages of the same producer session must not overtake it:
 * a walk that finds it skips the session's later messages, only those of the
 * same priority if the queue table sorts by priority.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "classic/classic_private.h"

#include "access/detoast.h"
#include "access/heapam.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "storage/procarray.h"
#include "utils/snapmgr.h"
#include "utils/uuid.h"

/* number of skipped rows from which a range is remembered */
#define WORTH_REMEMBERING 24

/* maximum number of restarts of a walk because of new commits */
#define OVERTAKEN_MAX 5

typedef struct Take
{
	AqQueue    *queue;
	const AqTakeOptions *options;
	uint32		taken;
	uint32		limit;			/* most messages of this call; smaller than options->max once it has one that has
								 * failed */
	TimestampTz now;
	Snapshot	snapshot;		/* a message's transaction must be visible to it; NULL: no condition */
	bool		peek;			/* only find out whether there is a message */
	bool		ignore_retries; /* for modes where the order does not matter */
	bool		stopped;		/* at a row whose count will not be written soon */
	int64		counts_until;	/* see aq_retries_await(); 0: has not waited yet */
	uint32		overtaken;		/* number of walks that have found new commits */
	uint64		counts;			/* ClassicQueue.counts when the walk began */
	TransactionId worker;		/* ClassicQueue.worker when the walk began */
	bool		again;			/* restart the walk: it has found new commits, or attempts were counted */
	bool		retry_met;		/* found a row that waits for its retry count: */
	Key			retry_key;
	TransactionId retry_xid;
	int64		receipt;		/* of the lease; 0: none has been needed yet */
	bool		full;			/* the receipt cannot be used for more */
	int64		group;			/* the group being dequeued */
	int64		locked_group;	/* the last group found to be locked by others */
	NoteKind	kind;
	/* producer sessions whose messages after the current one are held back */
	struct
	{
		int64		session;
		int32		priority;
	}		   *held;
	int			nheld,
				held_size;
	bool		only_checks;	/* this walk only fills "held" */
	RowScan		rows;
	RowScan		messages;		/* for a topic: scans table t, while "rows" scans table c */
	RowScan		probe;			/* for a topic: scans c for the message's other consumers */
	bool		topic;
	bool		removes;		/* removes messages; in a topic that may delete the message's row */
	bool		by_priority;	/* is the priority part of the order? */
	/* the walk */
	Key			last;			/* the row taken or shown last */
	RangeCopy	ranges;
	Key			gap_after;		/* nothing to dequeue after this key */
	uint32		passed;			/* number of rows since gap_after */
	TransactionId announcer;	/* aq_takers_announce() was true for it */
} Take;

/* --- rows ------------------------------------------------------------------------- */

static Datum
value_of(TupleTableSlot *slot, int column)
{
	return slot->tts_values[column];
}

/*
 * Copies a value, detoasted, because its TOAST rows are deleted with the row.
 * A peek needs no value, and has no snapshot for detoasting.
 */
static struct varlena *
varlena_of(const Take *take, TupleTableSlot *slot, int column)
{
	struct varlena *value;

	if (slot->tts_isnull[column])
		return NULL;
	value = (struct varlena *) DatumGetPointer(slot->tts_values[column]);
	return VARATT_IS_EXTERNAL(value) && !take->peek ? detoast_external_attr(value) : value;
}

static TimestampTz
time_of(TupleTableSlot *slot, int column)
{
	return slot->tts_isnull[column] ? 0 : DatumGetTimestampTz(slot->tts_values[column]);
}

/* slot: the message's row.  The result is valid as long as the slot. */
static void
read_message(Take *take, TupleTableSlot *slot, int attempts, AqMessage *m)
{
	slot_getallattrs(slot);
	memset(m, 0, sizeof(AqMessage));
	m->id = *DatumGetUUIDP(value_of(slot, COL_ID));
	m->priority = DatumGetInt32(value_of(slot, COL_PRIORITY));
	m->ordinal = DatumGetInt64(value_of(slot, COL_STEP));
	m->session_id = DatumGetInt64(value_of(slot, COL_SESSION));
	m->enqueue_time = DatumGetTimestampTz(value_of(slot, COL_ENQUEUE_TIME));
	m->ready_at = time_of(slot, COL_READY_AT);
	m->expires_at = time_of(slot, COL_EXPIRES_AT);
	m->attempts = attempts;
	m->payload_null = slot->tts_isnull[COL_PAYLOAD] || take->options->mode == AQ_MODE_REMOVE_NODATA;
	if (!m->payload_null)
		m->payload = PointerGetDatum(varlena_of(take, slot, COL_PAYLOAD));
	m->correlation = varlena_of(take, slot, COL_CORRELATION);
	if (slot->tts_tupleDescriptor->natts > COL_MESSAGE_KEY)
		m->key = varlena_of(take, slot, COL_MESSAGE_KEY);
	m->properties = varlena_of(take, slot, COL_PROPERTIES);
	m->sender = varlena_of(take, slot, COL_SENDER);
	m->exception_queue = varlena_of(take, slot, COL_EXCEPTION_QUEUE);
	m->dead_letter = varlena_of(take, slot, COL_DEAD_LETTER);
	m->state = DatumGetInt16(value_of(take->rows.slot, COL_STATE));
	m->group = slot->tts_isnull[COL_GROUP] ? 0 : DatumGetInt64(value_of(slot, COL_GROUP));
	for (int i = 0; i < 3; i++)
		m->place.key[i] = DatumGetInt64(value_of(slot, COL_KEY1 + i));
	m->original_id = slot->tts_isnull[COL_ORIGINAL_ID] ? NULL : DatumGetUUIDP(value_of(slot, COL_ORIGINAL_ID));
}

/* The slot of the row's message; NULL if it no longer exists. */
static TupleTableSlot *
message_slot(Take *take, const Key *key)
{
	if (!take->topic)
		return take->rows.slot;
	if (!aq_row_scan_find(&take->messages, take->queue->id, 0, key))
		return NULL;
	return take->messages.slot;
}

/*
 * --- can a row be dequeued?
 * ------------------------------------------------------------------
 */

/*
 * Must the worker still count the dequeue of the row by xid (invalid: by any
 * transaction)?  Then notes that this take has to wait for it.
 */
static bool
is_to_be_counted(Take *take, const Key *key, TransactionId xid)
{
	if (!aq_retry_list_pending(take->queue->shm, take->options->position, key, xid))
		return false;
	take->retry_met = !take->ignore_retries;
	take->retry_key = *key;
	take->retry_xid = xid;
	return true;
}

/* If an earlier dequeue of the row was rolled back, is the row ready again? */
static bool
is_given_back(Take *take, HeapTupleHeader header, const Key *key)
{
	TransactionId xid = HeapTupleHeaderGetRawXmax(header);

	if (!TransactionIdIsNormal(xid) || (header->t_infomask & HEAP_XMAX_IS_MULTI) || take->ignore_retries)
		return true;
	/*
	 * it has aborted: wait for the end of its abort callback, when its locks
	 * are released
	 */
	if (!HEAP_XMAX_IS_LOCKED_ONLY(header->t_infomask))
		XactLockTableWait(xid, NULL, NULL, XLTW_None);
	return !is_to_be_counted(take, key, xid);
}

/* Can this row be dequeued by this transaction now? */
static bool
can_be_had(Take *take, int state, const Key *key)
{
	TupleTableSlot *slot = take->rows.slot;
	HeapTupleHeader header = aq_table_row_header(slot);
	TimestampTz next_at = time_of(slot, COL_NEXT_AT);

	if (state == STATE_READY && next_at != 0 && next_at <= take->now)
		return false;			/* expired */
	/* a row that this transaction has enqueued, given back or locked can be leased only after its end */
	if (take->options->lease > 0 &&
		(TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(header)) || aq_table_row_locked_here(header)))
		return false;
	if (aq_table_row_locked_here(header) && (take->options->id == NULL || take->options->mode == AQ_MODE_PURGE))
		return false;
	/*
	 * a take finds this out when it locks the row; an update may begin as a
	 * lock
	 */
	if ((take->peek || take->options->mode == AQ_MODE_BROWSE) && aq_table_row_locked_elsewhere(header))
	{
		(void) is_given_back(take, header, key);
		return false;
	}
	return is_given_back(take, header, key);
}

/*
 * Is this a transaction of the worker that changes rows of the queue?  The
 * worker may have begun another one since the row was read.
 */
static bool
is_workers(Take *take, TransactionId xid)
{
	return xid == take->worker || xid == pg_atomic_read_u32(&classic_queue(take->queue->shm)->worker);
}

/*
 * Was the row written after the walk began?  Then earlier rows may have been
 * written, too, after the walk had passed their positions.  A row that the
 * worker has written, with its retry count, was there before: the walk begins
 * again also if the call already has messages.
 */
static bool
is_too_new(Take *take)
{
	TransactionId xmin = HeapTupleHeaderGetXmin(aq_table_row_header(take->rows.slot));

	if (take->snapshot == NULL || TransactionIdIsCurrentTransactionId(xmin) ||
		!XidInMVCCSnapshot(xmin, take->snapshot))
		return false;
	if ((take->taken == 0 || is_workers(take, xmin)) && !aq_wait_take_uses_snapshot())
		take->again = take->overtaken++ < OVERTAKEN_MAX;
	return true;
}

/*
 * Has the worker counted attempts since the walk began?  Then the walk may
 * have missed a row: the old version was already dead, and the new one was not
 * yet in the index page when it was read.  So no row after it may be taken.
 */
static bool
was_counted(Take *take)
{
	take->again = pg_atomic_read_u64(&classic_queue(take->queue->shm)->counts) != take->counts;
	return take->again;
}

/*
 * --- messages in doubt
 * ---------------------------------------------------------------
 */

static bool
is_held_back(Take *take, int64 session, int32 priority)
{
	for (int i = 0; i < take->nheld; i++)
		if (take->held[i].session == session && (!take->by_priority || take->held[i].priority == priority))
			return true;
	return false;
}

static void
hold_back(Take *take, int64 session, int32 priority)
{
	if (is_held_back(take, session, priority))
		return;
	if (take->nheld == take->held_size)
	{
		take->held_size = Max(8, 2 * take->held_size);
		take->held = take->held == NULL ? palloc(take->held_size * sizeof(*take->held))
			: repalloc(take->held, take->held_size * sizeof(*take->held));
	}
	take->held[take->nheld].session = session;
	take->held[take->nheld++].priority = priority;
}

/*
 * If the transaction that has the row is in doubt, holds back later messages
 * of the session that enqueued the message.
 */
static void
find_doubt(Take *take, const Key *key, TransactionId xid)
{
	TupleTableSlot *slot;

	if (!aq_classic_doubts_has(xid))
		return;
	slot = message_slot(take, key);
	if (slot == NULL)
		return;
	slot_getsomeattrs(slot, COL_SESSION + 1);
	hold_back(take, DatumGetInt64(value_of(slot, COL_SESSION)), DatumGetInt32(value_of(slot, COL_PRIORITY)));
}

/*
 * The transaction that has enqueued, removed or locked the row; invalid: none.
 */
static TransactionId
holder_of(const Take *take)
{
	const RowScan *rows = &take->rows;

	if (TransactionIdIsValid(rows->dirty.xmin))
		return rows->dirty.xmin;
	if (TransactionIdIsValid(rows->dirty.xmax))
		return rows->dirty.xmax;
	return aq_classic_area->ndoubts > 0 ? aq_table_row_locker(aq_table_row_header(rows->slot)) : InvalidTransactionId;
}

/* May the message be dequeued although a message before it is in doubt? */
static bool
doubts_allow(Take *take, const AqMessage *m)
{
	return take->nheld == 0 || take->options->id != NULL || take->options->mode == AQ_MODE_PURGE ||
		TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(aq_table_row_header(take->rows.slot))) ||
		!is_held_back(take, m->session_id, m->priority);
}

/* --- taking ---------------------------------------------------------------------------- */

/*
 * May this transaction dequeue the message's group?  A group is locked until
 * the end of the transaction that dequeues it.
 */
static bool
group_allows(Take *take, int64 group)
{
	const AqTakeOptions *options = take->options;
	int64		wanted = take->group != 0 ? take->group : options->group;
	LOCKTAG		tag;

	if (!take->queue->table.grouping || options->mode == AQ_MODE_BROWSE || options->mode == AQ_MODE_PURGE)
		return true;
	if ((wanted != 0 && group != wanted) || group == options->not_group || group == take->locked_group)
		return false;
	SET_LOCKTAG_OBJECT(tag, MyDatabaseId, take->queue->owner_view, (uint32) group, options->position);
	if (!take->peek && LockAcquire(&tag, ExclusiveLock, false, true) == LOCKACQUIRE_NOT_AVAIL)
	{
		take->locked_group = group;
		return false;
	}
	return true;
}

/*
 * Takes the row for a time.  A receipt is greater than the earlier ones of its
 * messages: if the clock was set back, a message ends the call, or needs a new
 * receipt.  alone: the call returns no other message.
 */
static bool
lease_row(Take *take, bool alone)
{
	int64		latest = aq_leased_row_latest_receipt(take->rows.slot);

	if (take->receipt == 0 || (take->receipt <= latest && take->taken == 0))
		take->receipt = aq_leased_row_receipt(take->queue->shm, latest);
	if (take->taken == 0)
		take->receipt = alone ? take->receipt | AQ_RECEIPT_ALONE : take->receipt & ~AQ_RECEIPT_ALONE;
	take->full = take->receipt <= latest;
	/* its worker must not begin before the attempt is on disk */
	ForceSyncCommit();
	return !take->full &&
		aq_leased_row_take(take->queue, &take->rows, take->options->lease, take->receipt) == TM_Ok;
}

/* Returns true if this transaction has got the row.  alone: the call returns no other message. */
static bool
take_row(Take *take, const Key *key, const AqMessage *message, bool alone)
{
	AqMode		mode = take->options->mode;
	bool		taken;

	aq_classic_notes_reserve(take->queue->shm, take->options->position, take->kind);
	if (mode == AQ_MODE_LOCKED)
		taken = aq_table_row_lock(take->rows.rel, take->rows.slot);
	else if (take->options->lease > 0)
		taken = lease_row(take, alone);
	else if (take->queue->retention > 0 && mode != AQ_MODE_PURGE)
		taken = aq_table_row_process(take->queue, take->rows.rel, take->rows.slot) == TM_Ok;
	else
		taken = aq_table_row_delete(take->rows.rel, take->rows.slot) == TM_Ok;
	if (taken)
		aq_classic_notes_add_taken(take->queue->shm, take->options->position, take->kind, key, take->now, message);
	return taken;
}

/*
 * Takes a row that can be dequeued, if it matches and no other session gets it
 * first.
 */
static void
try_row(Take *take, const Key *key)
{
	const AqTakeOptions *options = take->options;
	TupleTableSlot *slot;
	AqMessage	m;
	uint32		limit;
	int			attempts;
	bool		last;

	slot = message_slot(take, key);
	if (slot == NULL)
		return;
	read_message(take, slot, DatumGetInt32(value_of(take->rows.slot, COL_ATTEMPTS)), &m);
	if (options->filter != NULL && !options->filter(options->filter_arg, &m))
		return;
	/* its own delay is over, so it waits for its retry delay, and cannot be leased */
	if (options->lease > 0 && m.state == STATE_WAITING && m.ready_at <= take->now)
		return;
	if (is_too_new(take))
	{
		hold_back(take, m.session_id, m.priority);
		return;
	}
	if (!doubts_allow(take, &m) || was_counted(take))
		return;
	attempts = aq_failure_attempts(take->queue, take->rows.slot);
	limit = aq_poison_limit(take->queue, options, attempts, take->taken, take->limit);
	if (limit <= take->taken)
	{
		/* it ends the call only if it could be taken */
		if (!aq_table_row_locked_elsewhere(aq_table_row_header(take->rows.slot)))
			take->limit = limit;
		return;
	}
	last = !take->peek && aq_poison_is_last(take->queue, options, attempts);
	if (!group_allows(take, m.group))
		return;
	if (take->peek || options->mode == AQ_MODE_BROWSE || take_row(take, key, &m, limit == 1))
	{
		take->taken++;
		take->limit = limit;
		if (last)
			aq_classic_notes_mark_last(take->queue->shm, options->position);
		take->last = *key;
		m.receipt = take->receipt;
		if (options->one_group)
			take->group = m.group;
		if (options->emit != NULL && !take->peek)
			options->emit(options->emit_arg, &m);
		if (take->topic && take->removes && !take->peek)
			aq_topic_check(take->queue, &take->probe, &take->messages, key, options->position);
	}
}

/* --- walking ----------------------------------------------------------------------------- */

/*
 * Ends the current range of rows that cannot be dequeued, because of the row
 * at this key.
 */
static void
end_gap(Take *take, const Key *key)
{
	if (take->passed >= WORTH_REMEMBERING)
	{
		Range		range = {take->gap_after, *key};

		aq_ranges_add(take->queue->shm, take->options->position, &take->ranges, &range);
	}
	take->gap_after = *key;
	take->passed = 0;
}

/*
 * Does the row belong to a transaction that announces its rows if it rolls
 * back?  Then a range may include it.  The answer is valid for the rest of the
 * walk, because aq_ranges_add() finds later announcements.
 */
static bool
is_announced(Take *take, TransactionId xid)
{
	if (xid != take->announcer && aq_takers_announce(xid))
		take->announcer = xid;
	return xid == take->announcer;
}

/*
 * The row was met while xid was writing its new version.  If xid is the
 * worker's and has committed since, the walk must begin again: in a HOT chain
 * it sees only the version that it met first, and if the index has the old
 * version after the new one, the old one is dead when the walk reaches it.
 */
static void
check_version(Take *take, const Key *key, TransactionId xid)
{
	if (is_workers(take, xid) && !is_to_be_counted(take, key, InvalidTransactionId))
		take->again = !TransactionIdIsInProgress(xid);
}

/* Examines a row, as the dirty snapshot shows it. */
static void
examine_row(Take *take)
{
	RowScan    *rows = &take->rows;
	Key			key = aq_table_row_key(rows->slot);
	int			state = DatumGetInt16(value_of(rows->slot, COL_STATE));
	bool		may_wait = take->options->mode == AQ_MODE_PURGE;
	TransactionId holder = holder_of(take);

	if (TransactionIdIsValid(holder))
		find_doubt(take, &key, holder);
	if (state == STATE_LEASED)
	{
		/*
		 * whatever happens to the transaction that has it: this row can be
		 * dequeued only as a new version, which is announced
		 */
		if (TransactionIdIsValid(holder) && aq_classic_doubts_has(holder))
			end_gap(take, &key);
		else
			take->passed++;
		return;
	}
	if (TransactionIdIsValid(rows->dirty.xmin))
	{
		end_gap(take, &key);	/* being enqueued, or the worker is counting an attempt */
		check_version(take, &key, rows->dirty.xmin);
		aq_point("uncommitted-met");
		return;
	}
	if (TransactionIdIsValid(rows->dirty.xmax))
	{
		/*
		 * in use by another transaction, perhaps the worker's, if the row
		 * waits for its count
		 */
		aq_point("change-met");
		if (!is_to_be_counted(take, &key, InvalidTransactionId) && is_announced(take, rows->dirty.xmax))
			take->passed++;
		else
			end_gap(take, &key);
		check_version(take, &key, rows->dirty.xmax);
		return;
	}
	(void) slot_getsomeattrs(rows->slot, COL_NEXT_AT + 1);
	if (state != STATE_READY && !(state == STATE_EXPIRED && !take->topic) &&
		!(state == STATE_WAITING && may_wait))
	{
		take->passed++;
		return;
	}
	end_gap(take, &key);
	if (can_be_had(take, state, &key))
		try_row(take, &key);
}

static bool
goes_on(const Take *take)
{
	return take->taken < take->limit && !take->retry_met && !take->again && !take->full;
}

/* Walks from low to high, both included, until enough messages are taken. */
static void
walk(Take *take, const Key *low, const Key *high)
{
	RowScan    *rows = &take->rows;
	Key			key;

	aq_row_scan_seek(rows, take->queue->id, take->options->position, low, ForwardScanDirection);
	while (goes_on(take) && aq_row_scan_next_entry(rows, high, &key))
	{
		CHECK_FOR_INTERRUPTS();
		if (!aq_row_scan_fetch(rows))
			take->passed++;
		else if (!take->only_checks)
			examine_row(take);
		else if (TransactionIdIsValid(holder_of(take)))
			find_doubt(take, &key, holder_of(take));
	}
}

/* The same, but skips the known ranges. */
static void
walk_between(Take *take, Key low, const Key *high)
{
	const Key	first = KEY_FIRST;

	for (uint32 i = 0; i < take->ranges.n && goes_on(take); i++)
	{
		const Range *range = &take->ranges.ranges[i];

		if (key_compare(&range->before, &low) <= 0)
			continue;
		if (key_compare(&range->after, high) >= 0)
			break;
		if (key_compare(&range->after, &first) > 0 && key_compare(&range->after, &low) >= 0)
			walk(take, &low, &range->after);
		low = range->before;
	}
	if (goes_on(take))
		walk(take, &low, high);
}

/* Walks over all rows after the given key. */
static void
walk_line(Take *take, const Key *after)
{
	Key			low = KEY_FIRST;
	Key			last = KEY_LAST;

	take->gap_after = low;
	take->passed = 0;
	take->announcer = InvalidTransactionId;
	take->nheld = 0;
	if (after != NULL)
	{
		if (aq_classic_area->ndoubts > 0)
		{
			take->only_checks = true;
			walk_between(take, low, after);
			take->only_checks = false;
			take->passed = 0;
		}
		low = take->gap_after = *after;
		if (low.step < PG_INT64_MAX)
			low.step++;
	}
	walk_between(take, low, &last);
	/* the end was reached, so there is nothing after the last row */
	if (goes_on(take) && !was_counted(take))
		end_gap(take, &last);
}

/* --- by message id ------------------------------------------------------------------------- */

/* The consumer's row of the message with this id, as the dirty snapshot shows it. */
static bool
find_by_id(Take *take, const pg_uuid_t *id)
{
	Key			key;

	if (!take->topic)
		return aq_row_scan_find_id(&take->rows, take->queue, id);
	if (!aq_row_scan_find_id(&take->messages, take->queue, id))
		return false;
	key = aq_table_row_key(take->messages.slot);
	return aq_row_scan_find(&take->rows, take->queue->id, take->options->position, &key);
}

static void
take_by_id(Take *take)
{
	RowScan    *rows = &take->rows;
	Key			key;
	int			state;

	for (;;)
	{
		TransactionId busy;

		if (!find_by_id(take, take->options->id))
		{
			(void) was_counted(take);
			return;
		}
		key = aq_table_row_key(rows->slot);
		busy = TransactionIdIsValid(rows->dirty.xmin) ? rows->dirty.xmin : rows->dirty.xmax;
		if (!TransactionIdIsValid(busy))
			break;
		if (is_to_be_counted(take, &key, InvalidTransactionId))
			return;
		/* the worker holds it only briefly */
		if (is_workers(take, busy))
			XactLockTableWait(busy, NULL, NULL, XLTW_None);
		else if (TransactionIdIsInProgress(busy))
			return;
	}
	slot_getsomeattrs(rows->slot, COL_NEXT_AT + 1);
	state = DatumGetInt16(value_of(rows->slot, COL_STATE));
	if (state == STATE_READY || state == STATE_WAITING || (state == STATE_EXPIRED && !take->topic))
		if (can_be_had(take, state, &key))
			try_row(take, &key);
}

/*
 * The key of the message after which to continue, which may not exist any
 * more.
 */
static Key
key_behind(Take *take)
{
	const pg_uuid_t *id = take->options->after;
	const AqPlace *place = take->options->place;
	Key			key = {0, 0, 0};
	RowScan    *messages = take->topic ? &take->messages : &take->rows;

	if (place != NULL)
		return (Key) {place->key[0], place->key[1], place->key[2]};

	if (aq_row_scan_find_id(messages, take->queue, id))
		return aq_table_row_key(messages->slot);
	if (!sorts_by_calls(take->queue) ||
		!aq_step_of_id(id, take->queue->key, &key.step))
		ereport(ERROR,
				aq_error(AQ_ERR_MESSAGE_UNDEFINED, "\"after\" is not a message of queue \"%s\"",
						 take->queue->name));
	return key;
}

/* --- the queue ------------------------------------------------------------------------------- */

static bool
is_pending(void *arg)
{
	Take	   *take = arg;

	return aq_retry_list_pending(take->queue->shm, take->options->position, &take->retry_key, take->retry_xid);
}

/*
 * Waits until the worker has written the retry counts.  If it cannot, no
 * message after this one is dequeued.
 */
static void
wait_for_retries(Take *take)
{
	AqMode		mode = take->options->mode;

	take->retry_met = false;
	if (take->counts_until == 0 && !take->peek)
		take->counts_until = aq_retries_patience();
	if (aq_retries_await(take->queue->shm, take->peek, take->counts_until, is_pending, take))
		return;
	take->ignore_retries = mode == AQ_MODE_BROWSE || mode == AQ_MODE_PURGE;
	take->stopped = !take->ignore_retries;
}

static NoteKind
note_kind(const AqTakeOptions *options)
{
	AqMode		mode = options->mode;

	if (options->lease > 0)
		return NOTE_LEASE;
	return mode == AQ_MODE_LOCKED ? NOTE_LOCK : mode == AQ_MODE_PURGE ? NOTE_PURGE : mode == AQ_MODE_MOVE ? NOTE_MOVE : NOTE_REMOVE;
}

static void
begin_take(Take *take, AqQueue *queue, const AqTakeOptions *options, bool peek)
{
	LOCKMODE	lock;

	memset(take, 0, offsetof(Take, rows));
	take->queue = queue;
	take->options = options;
	take->peek = peek;
	take->limit = options->max;
	take->now = GetCurrentTimestamp();
	take->kind = note_kind(options);
	take->topic = queue->multi;
	take->by_priority = strchr(queue->table.sort, AQ_SORT_PRIORITY) != NULL;
	take->removes = options->mode != AQ_MODE_LOCKED && options->mode != AQ_MODE_BROWSE && options->lease == 0;
	lock = peek || options->mode == AQ_MODE_BROWSE ? AccessShareLock : RowExclusiveLock;
	if (take->topic)
	{
		aq_row_scan_open(&take->messages, queue, queue->table.messages, lock);
		aq_row_scan_open(&take->rows, queue, queue->table.consumers, lock);
		aq_row_scan_open(&take->probe, queue, queue->table.consumers, lock);
	}
	else
		aq_row_scan_open(&take->rows, queue, queue->table.messages, lock);
}

static void
end_take(Take *take)
{
	bool		unused = take->peek || take->taken == 0;

	aq_row_scan_close(&take->rows, unused);
	if (take->topic)
	{
		aq_row_scan_close(&take->messages, unused);
		aq_row_scan_close(&take->probe, unused);
	}
	aq_chunks_trim();
}

static void
begin_walk(Take *take)
{
	take->now = GetCurrentTimestamp();
	take->again = false;
	/* a transaction that has raised "counts" before this is "worker", or has ended */
	take->counts = pg_atomic_read_u64(&classic_queue(take->queue->shm)->counts);
	pg_read_barrier();
	take->worker = pg_atomic_read_u32(&classic_queue(take->queue->shm)->worker);
	pg_memory_barrier();
}

/* Makes one walk, or takes one row by its id. */
static void
take_once(Take *take, const Key *after)
{
	const AqTakeOptions *options = take->options;
	AqQueueShm *shm = take->queue->shm;

	begin_walk(take);
	if (options->id != NULL)
	{
		if (aq_wait_take_uses_snapshot())
			take->snapshot = GetTransactionSnapshot();
		take_by_id(take);
		return;
	}
	aq_ranges_read(shm, options->position, &take->ranges);
	if (options->mode == AQ_MODE_PURGE)
		take->ranges.n = 0;		/* rows that wait for their time are in the ranges */
	take->snapshot = RegisterSnapshot(aq_wait_take_uses_snapshot() ? GetTransactionSnapshot() : GetLatestSnapshot());
	walk_line(take, after);
	UnregisterSnapshot(take->snapshot);
}

uint32
aq_classic_take(AqQueue *queue, const AqTakeOptions *options)
{
	Take		take;
	Key			place;
	const Key  *after = NULL;

	begin_take(&take, queue, options, false);
	if (options->after != NULL)
	{
		place = key_behind(&take);
		after = &place;
	}
	while (!aq_poison_withholds(queue, take.options))
	{
		take_once(&take, after);
		if (take.retry_met)
			wait_for_retries(&take);
		else if (!take.again)
			break;
		if (take.stopped)
			break;
		/* messages that were shown still exist: continue after them */
		if (options->mode == AQ_MODE_BROWSE && take.taken > 0)
			after = &take.last;
	}
	if (take.limit == 0)
		aq_waiters_check_later(queue->shm); /* other sessions may take what this one leaves */
	if (take.taken > 0)
		aq_point("messages-taken");
	end_take(&take);
	return take.taken;
}

/* Is there a message that could be taken now? */
bool
aq_classic_take_ready(AqQueue *queue, int position, int64 until)
{
	AqTakeOptions options = {.position = position, .max = 1, .mode = AQ_MODE_REMOVE};
	Take		take;

	begin_take(&take, queue, &options, true);
	take.counts_until = until;
	while (!aq_poison_withholds(queue, take.options))
	{
		begin_walk(&take);
		aq_ranges_read(queue->shm, position, &take.ranges);
		walk_line(&take, NULL);
		if (take.retry_met)
			wait_for_retries(&take);
		else if (!take.again)
			break;
		if (take.stopped)
			break;
	}
	end_take(&take);
	return take.taken > 0;
}
