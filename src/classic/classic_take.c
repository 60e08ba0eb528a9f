/*-------------------------------------------------------------------------
 *
 * classic_take.c
 *	  Dequeue from a queue table: walk the consumer's line in its order, take
 *	  what can be had, leave alone what others have in hand.
 *
 * A row is taken by deleting it, or by marking it as processed when the queue
 * retains its messages, without waiting: a row that another transaction has
 * locked or changed is passed by.  PostgreSQL decides who has it; a rollback
 * gives it back at its place.
 *
 * A row whose taker has rolled back shows that: its xmax is an aborted
 * transaction.  It is left alone until the taker's abort callback has run
 * (his lock on his own transaction id tells) and, if he has handed it to the
 * worker, until its retry count is written.
 *
 * A walk sees messages whose transaction had committed when it began, so that
 * it does not get the end of what one transaction has enqueued without the
 * beginning; when it meets what was committed since, it begins anew, some
 * times.  In REPEATABLE READ and above the transaction's snapshot decides;
 * a wait ends for any message.
 *
 * A session's later messages do not overtake one that is in doubt, enqueued or
 * taken by a prepared transaction: whoever meets that one leaves alone what the
 * session has put behind it, at the same priority if the queue table sorts by
 * that.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "classic/classic_private.h"

#include "access/detoast.h"
#include "access/heapam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "storage/procarray.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/uuid.h"

/* rows passed by before it is worth to remember the range */
#define WORTH_REMEMBERING 24

/* walks that are begun anew because of what was committed meanwhile */
#define OVERTAKEN_MAX 5

typedef struct Take
{
	AqQueue    *queue;
	const AqTakeOptions *options;
	uint32		taken;
	TimestampTz now;
	Snapshot	snapshot;		/* who stored a message is to be visible to it; NULL: anybody */
	bool		peek;			/* only look whether there is something */
	bool		ignore_retries; /* nothing is taken out of its order by that */
	bool		stopped;		/* at what waits for its count, and will not get it soon */
	int64		counts_until;	/* see aq_retries_await(); 0: has not waited yet */
	uint32		overtaken;		/* walks that have met what was committed meanwhile */
	uint64		counts;			/* ClassicQueue.counts when the walk began */
	bool		again;			/* this one begins anew: it has met that, or attempts were counted */
	bool		retry_met;		/* a row that waits for its retry count: */
	Key			retry_key;
	TransactionId retry_xid;
	int64		group;			/* the one we are in */
	int64		locked_group;	/* met last, in others' hands */
	NoteKind	kind;
	/* sessions whose messages behind the walk's place are held back */
	struct
	{
		int64		session;
		int32		priority;
	}		   *held;
	int			nheld,
				held_size;
	bool		only_checks;		/* for them */
	Line		line;
	Line		messages;		/* of a topic: t, while line is c */
	Line		probe;			/* of a topic: c, to look for the message's other consumers */
	bool		topic;
	bool		removes;
	bool		by_priority;	/* is it a part of the order? */
	/* the walk */
	Key			last;			/* what was taken or shown last */
	RangeCopy	ranges;
	Key			gap_after;		/* nothing to dequeue since this key */
	uint32		passed;			/* rows since then */
	TransactionId announcer;	/* aq_xid_announces() has said yes */
} Take;

/* --- rows ------------------------------------------------------------------------- */

static Datum
value_of(TupleTableSlot *slot, int column)
{
	return slot->tts_values[column];
}

/*
 * A value that outlives the row: what is stored out of line goes with it.  Who
 * only looks needs no value, and has no snapshot to fetch it with.
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

/* slot: the message's row.  Good while the slot is. */
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
	m->properties = varlena_of(take, slot, COL_PROPERTIES);
	m->sender = varlena_of(take, slot, COL_SENDER);
	m->exception_queue = varlena_of(take, slot, COL_EXCEPTION_QUEUE);
	m->original_queue = varlena_of(take, slot, COL_ORIGINAL_QUEUE);
	m->state = DatumGetInt16(value_of(take->line.slot, COL_STATE));
	m->group = slot->tts_isnull[COL_GROUP] ? 0 : DatumGetInt64(value_of(slot, COL_GROUP));
	for (int i = 0; i < 3; i++)
		m->place.key[i] = DatumGetInt64(value_of(slot, COL_KEY1 + i));
	m->original_id = slot->tts_isnull[COL_ORIGINAL_ID] ? NULL : DatumGetUUIDP(value_of(slot, COL_ORIGINAL_ID));
}

/* The slot of the message that the line's row stands for; NULL if it is gone. */
static TupleTableSlot *
message_slot(Take *take, const Key *key)
{
	if (!take->topic)
		return take->line.slot;
	if (!aq_line_find(&take->messages, take->queue->id, 0, key))
		return NULL;
	return take->messages.slot;
}

/* --- may it be had? ------------------------------------------------------------------ */

/* Has the worker still to count that xid (invalid: anybody) took the row?  Then that is to be waited for. */
static bool
is_to_be_counted(Take *take, const Key *key, TransactionId xid)
{
	if (!aq_retry_pending(take->queue->shm, take->options->position, key, xid))
		return false;
	take->retry_met = !take->ignore_retries;
	take->retry_key = *key;
	take->retry_xid = xid;
	return true;
}

/*
 * The row was taken before, and that was rolled back: is it ready again?
 */
static bool
is_given_back(Take *take, HeapTupleHeader header, const Key *key)
{
	TransactionId xid = HeapTupleHeaderGetRawXmax(header);

	if (!TransactionIdIsNormal(xid) || (header->t_infomask & HEAP_XMAX_IS_MULTI) || take->ignore_retries)
		return true;
	/* it has aborted: what is waited for is its callback, until it lets go of its locks */
	if (!HEAP_XMAX_IS_LOCKED_ONLY(header->t_infomask))
		XactLockTableWait(xid, NULL, NULL, XLTW_None);
	return !is_to_be_counted(take, key, xid);
}

/* Can this row be dequeued by this transaction now? */
static bool
can_be_had(Take *take, int state, const Key *key)
{
	TupleTableSlot *slot = take->line.slot;
	HeapTupleHeader header = aq_slot_header(slot);
	TimestampTz next_at = time_of(slot, COL_NEXT_AT);

	if (state == STATE_READY && next_at != 0 && next_at <= take->now)
		return false;			/* expired */
	if (aq_locked_here(header) && (take->options->id == NULL || take->options->mode == AQ_MODE_PURGE))
		return false;
	/* a take finds that out by itself; an update, the worker's too, may begin as a lock */
	if ((take->peek || take->options->mode == AQ_MODE_BROWSE) && aq_locked_elsewhere(header))
	{
		(void) is_given_back(take, header, key);
		return false;
	}
	return is_given_back(take, header, key);
}

/*
 * Was the row stored, or given back, after the walk began?  What stands before
 * it may have been, too, and was not there yet when the walk came by.
 */
static bool
is_too_new(Take *take)
{
	TransactionId xmin = HeapTupleHeaderGetXmin(aq_slot_header(take->line.slot));

	if (take->snapshot == NULL || TransactionIdIsCurrentTransactionId(xmin) ||
		!XidInMVCCSnapshot(xmin, take->snapshot))
		return false;
	if (take->taken == 0 && !aq_packages_take_uses_snapshot())
		take->again = take->overtaken++ < OVERTAKEN_MAX;
	return true;
}

/*
 * Has the worker counted attempts since the walk began?  The walk may have met a
 * row's old version when it was no more, and no new one, because the index did
 * not have it when its page was read.  So nothing that stands behind is taken.
 */
static bool
was_counted(Take *take)
{
	take->again = pg_atomic_read_u64(&classic_queue(take->queue->shm)->counts) != take->counts;
	return take->again;
}

/* --- behind what is in doubt --------------------------------------------------------------- */

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

/* The line's row is in the transaction's hands: hold back who enqueued it if that is in doubt. */
static void
look_for_doubt(Take *take, const Key *key, TransactionId xid)
{
	TupleTableSlot *slot;

	if (!aq_xid_in_doubt(xid))
		return;
	slot = message_slot(take, key);
	if (slot == NULL)
		return;
	slot_getsomeattrs(slot, COL_SESSION + 1);
	hold_back(take, DatumGetInt64(value_of(slot, COL_SESSION)), DatumGetInt32(value_of(slot, COL_PRIORITY)));
}

/* The transaction that enqueues the line's row, removes it, or has it locked; invalid: none. */
static TransactionId
holder_of(const Take *take)
{
	const Line *line = &take->line;

	if (TransactionIdIsValid(line->dirty.xmin))
		return line->dirty.xmin;
	if (TransactionIdIsValid(line->dirty.xmax))
		return line->dirty.xmax;
	return aq_classic->ndoubts > 0 ? aq_row_locker(aq_slot_header(line->slot)) : InvalidTransactionId;
}

/* May this transaction have it although something before it is in doubt? */
static bool
doubts_allow(Take *take, const AqMessage *m)
{
	return take->nheld == 0 || take->options->id != NULL || take->options->mode == AQ_MODE_PURGE ||
		TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(aq_slot_header(take->line.slot))) ||
		!is_held_back(take, m->session_id, m->priority);
}

/* --- taking ---------------------------------------------------------------------------- */

/* Change the row so that it says processed, for its retention. */
static TM_Result
mark_processed(Take *take, Line *line)
{
	const int	columns[] = {COL_STATE, COL_NEXT_AT, COL_DEQUEUE_TIME, COL_DEQUEUE_USER, COL_DEQUEUE_XID};
	TimestampTz now = GetCurrentTimestamp();
	Datum		values[] = {Int16GetDatum(STATE_PROCESSED),
		TimestampTzGetDatum(now + take->queue->retention), TimestampTzGetDatum(now),
		ObjectIdGetDatum(GetUserId()),
	Int64GetDatum(U64FromFullTransactionId(GetTopFullTransactionId()))};
	TM_Result	result = aq_row_update(line->rel, line->slot, columns, values, NULL, lengthof(columns));

	if (result == TM_Ok)
		aq_classic_announce_time(take->queue->shm, now + take->queue->retention);
	return result;
}

/*
 * Is the message's group for us?  It is the transaction's that has locked it,
 * until that ends.
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

/* True when this transaction has it now. */
static bool
take_row(Take *take, const Key *key, TimestampTz enqueued)
{
	AqMode		mode = take->options->mode;
	bool		taken;

	aq_classic_note_reserve(take->queue->shm, take->options->position, take->kind);
	if (mode == AQ_MODE_LOCKED)
		taken = aq_row_lock(take->line.rel, take->line.slot);
	else if (take->queue->retention > 0 && mode != AQ_MODE_PURGE)
		taken = mark_processed(take, &take->line) == TM_Ok;
	else
		taken = aq_row_delete(take->line.rel, take->line.slot) == TM_Ok;
	if (taken)
		aq_classic_note_taken(take->queue->shm, take->options->position, take->kind, key, enqueued);
	return taken;
}

/* The line's row can be had: does it match, and is nobody faster? */
static void
try_row(Take *take, const Key *key)
{
	const AqTakeOptions *options = take->options;
	TupleTableSlot *slot;
	AqMessage	m;

	slot = message_slot(take, key);
	if (slot == NULL)
		return;
	read_message(take, slot, DatumGetInt32(value_of(take->line.slot, COL_ATTEMPTS)), &m);
	if (options->filter != NULL && !options->filter(options->filter_arg, &m))
		return;
	if (is_too_new(take))
	{
		hold_back(take, m.session_id, m.priority);
		return;
	}
	if (!doubts_allow(take, &m) || was_counted(take))
		return;
	if (!group_allows(take, m.group))
		return;
	if (take->peek || options->mode == AQ_MODE_BROWSE || take_row(take, key, m.enqueue_time))
	{
		take->taken++;
		take->last = *key;
		if (options->one_group)
			take->group = m.group;
		if (options->emit != NULL && !take->peek)
			options->emit(options->emit_arg, &m);
		if (take->topic && take->removes && !take->peek)
			aq_message_check(take->queue, &take->probe, &take->messages, key, options->position);
	}
}

/* --- walking ----------------------------------------------------------------------------- */

/* The row at this key stops the range of what cannot be dequeued. */
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
 * Is the row of a transaction that says when it gives it back?  Then it may be
 * passed.  An answer is good for the rest of the walk: whatever is announced
 * from now on is news to it.
 */
static bool
is_announced(Take *take, TransactionId xid)
{
	if (xid != take->announcer && aq_xid_announces(xid))
		take->announcer = xid;
	return xid == take->announcer;
}

/* Is this the worker's transaction, which is changing rows of the queue? */
static bool
is_workers(Take *take, TransactionId xid)
{
	return xid == pg_atomic_read_u32(&classic_queue(take->queue->shm)->worker);
}

/*
 * A row of the line, as the dirty snapshot shows it.
 */
static void
look_at_row(Take *take)
{
	Line	   *line = &take->line;
	Key			key = aq_slot_key(line->slot);
	int			state = DatumGetInt16(value_of(line->slot, COL_STATE));
	bool		may_wait = take->options->mode == AQ_MODE_PURGE;
	TransactionId holder = holder_of(take);

	if (TransactionIdIsValid(holder))
		look_for_doubt(take, &key, holder);
	if (TransactionIdIsValid(line->dirty.xmin))
	{
		end_gap(take, &key);	/* being enqueued, or the worker counts an attempt */
		/* the old version, if the index has it behind this one, may be gone when the walk comes to it */
		if (is_workers(take, line->dirty.xmin) && !is_to_be_counted(take, &key, InvalidTransactionId))
			take->again = !TransactionIdIsInProgress(line->dirty.xmin);
		aq_point("uncommitted-met");
		return;
	}
	if (TransactionIdIsValid(line->dirty.xmax))
	{
		/* in use by another transaction: the worker's, perhaps, if it waits for its count */
		if (!is_to_be_counted(take, &key, InvalidTransactionId) && is_announced(take, line->dirty.xmax))
			take->passed++;
		else
			end_gap(take, &key);
		return;
	}
	(void) slot_getsomeattrs(line->slot, COL_NEXT_AT + 1);
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
	return take->taken < take->options->max && !take->retry_met && !take->again;
}

/* From low to high, both included, until there is enough. */
static void
walk(Take *take, const Key *low, const Key *high)
{
	Line	   *line = &take->line;
	Key			key;

	aq_line_seek(line, take->queue->id, take->options->position, low, ForwardScanDirection);
	while (goes_on(take) && aq_line_next(line, high, &key))
	{
		CHECK_FOR_INTERRUPTS();
		if (!aq_line_fetch(line))
			take->passed++;
		else if (!take->only_checks)
			look_at_row(take);
		else if (TransactionIdIsValid(holder_of(take)))
			look_for_doubt(take, &key, holder_of(take));
	}
}

/* The same, leaving out the ranges that are known. */
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

/* The whole line behind after. */
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
		if (aq_classic->ndoubts > 0)
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
	/* to the end without finding enough: behind the last there is nothing */
	if (goes_on(take) && !was_counted(take))
		end_gap(take, &last);
}

/* --- by message id ------------------------------------------------------------------------- */

/* The line's row of the message with this id, as the dirty snapshot shows it. */
static bool
find_by_id(Take *take, const pg_uuid_t *id)
{
	Key			key;

	if (!take->topic)
		return aq_row_find_by_id(&take->line, take->queue, id);
	if (!aq_row_find_by_id(&take->messages, take->queue, id))
		return false;
	key = aq_slot_key(take->messages.slot);
	return aq_line_find(&take->line, take->queue->id, take->options->position, &key);
}

static void
take_by_id(Take *take)
{
	Line	   *line = &take->line;
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
		key = aq_slot_key(line->slot);
		busy = TransactionIdIsValid(line->dirty.xmin) ? line->dirty.xmin : line->dirty.xmax;
		if (!TransactionIdIsValid(busy))
			break;
		if (is_to_be_counted(take, &key, InvalidTransactionId))
			return;
		/* the worker does not have it for long */
		if (is_workers(take, busy))
			XactLockTableWait(busy, NULL, NULL, XLTW_None);
		else if (TransactionIdIsInProgress(busy))
			return;
	}
	slot_getsomeattrs(line->slot, COL_NEXT_AT + 1);
	state = DatumGetInt16(value_of(line->slot, COL_STATE));
	if (take->topic ? state <= STATE_WAITING : state != STATE_PROCESSED)
		if (can_be_had(take, state, &key))
			try_row(take, &key);
}

/* Where to go on behind this message, which may be gone. */
static Key
key_behind(Take *take)
{
	const pg_uuid_t *id = take->options->after;
	const AqPlace *place = take->options->place;
	Key			key = {0, 0, 0};
	Line	   *messages = take->topic ? &take->messages : &take->line;

	if (place != NULL)
		return (Key) {place->key[0], place->key[1], place->key[2]};

	if (aq_row_find_by_id(messages, take->queue, id))
		return aq_slot_key(messages->slot);
	if (!aq_by_calls(take->queue) ||
		!aq_classic_id_parse(id, take->queue->key, &key.step))
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

	return aq_retry_pending(take->queue->shm, take->options->position, &take->retry_key, take->retry_xid);
}

/*
 * The worker is writing retry counts: wait until it has.  If it cannot, nothing
 * behind the message is dequeued.
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
note_kind(AqMode mode)
{
	return mode == AQ_MODE_LOCKED ? NOTE_LOCK : mode == AQ_MODE_PURGE ? NOTE_PURGE : NOTE_REMOVE;
}

static void
begin_take(Take *take, AqQueue *queue, const AqTakeOptions *options, bool peek)
{
	LOCKMODE	lock;

	memset(take, 0, offsetof(Take, line));
	take->queue = queue;
	take->options = options;
	take->peek = peek;
	take->now = GetCurrentTimestamp();
	take->kind = note_kind(options->mode);
	take->topic = queue->multi;
	take->by_priority = strchr(queue->table.sort, AQ_SORT_PRIORITY) != NULL;
	take->removes = options->mode != AQ_MODE_LOCKED && options->mode != AQ_MODE_BROWSE;
	lock = peek || options->mode == AQ_MODE_BROWSE ? AccessShareLock : RowExclusiveLock;
	if (take->topic)
	{
		aq_line_open(&take->messages, queue, queue->table.messages, lock);
		aq_line_open(&take->line, queue, queue->table.consumers, lock);
		aq_line_open(&take->probe, queue, queue->table.consumers, lock);
	}
	else
		aq_line_open(&take->line, queue, queue->table.messages, lock);
}

static void
end_take(Take *take)
{
	bool		unused = take->peek || take->taken == 0;

	aq_line_close(&take->line, unused);
	if (take->topic)
	{
		aq_line_close(&take->messages, unused);
		aq_line_close(&take->probe, unused);
	}
	aq_chunks_trim();
}

static void
begin_walk(Take *take)
{
	take->now = GetCurrentTimestamp();
	take->again = false;
	take->counts = pg_atomic_read_u64(&classic_queue(take->queue->shm)->counts);
	pg_memory_barrier();
}

/* One walk, or look. */
static void
take_once(Take *take, const Key *after)
{
	const AqTakeOptions *options = take->options;
	AqQueueShm *shm = take->queue->shm;

	begin_walk(take);
	if (options->id != NULL)
	{
		if (aq_packages_take_uses_snapshot())
			take->snapshot = GetTransactionSnapshot();
		take_by_id(take);
		return;
	}
	aq_ranges_read(shm, options->position, &take->ranges);
	if (options->mode == AQ_MODE_PURGE)
		take->ranges.n = 0;		/* what waits is in them */
	take->snapshot = RegisterSnapshot(aq_packages_take_uses_snapshot() ? GetTransactionSnapshot() : GetLatestSnapshot());
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
	for (;;)
	{
		take_once(&take, after);
		if (take.retry_met)
			wait_for_retries(&take);
		else if (!take.again)
			break;
		if (take.stopped)
			break;
		/* what was shown is still there: go on behind it */
		if (options->mode == AQ_MODE_BROWSE && take.taken > 0)
			after = &take.last;
	}
	if (take.taken > 0)
		aq_point("messages-taken");
	end_take(&take);
	return take.taken;
}

/* Is there something that take() could have now? */
bool
aq_classic_ready(AqQueue *queue, int position, int64 until)
{
	AqTakeOptions options = {.position = position,.max = 1,.mode = AQ_MODE_REMOVE};
	Take		take;

	begin_take(&take, queue, &options, true);
	take.counts_until = until;
	for (;;)
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
