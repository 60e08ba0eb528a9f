/*-------------------------------------------------------------------------
 *
 * classic_notes.c
 *	  What the transaction has done with queue tables, and how that ends.
 *
 * The rows are PostgreSQL's own, so a commit or rollback needs nothing of us
 * to be right.  A note is for what goes with it: waking who waits, counting,
 * announcing what can be dequeued again, and having the worker write the
 * retry counts of what was rolled back.
 *
 * A note sums up what a subtransaction did in one line.  Committing the
 * subtransaction hands it to the parent, aborting settles it.  The callbacks
 * neither allocate nor raise: what a rollback hands to the worker is reserved
 * when the note is made.
 *
 * A prepared transaction commits and rolls back without a callback: what it
 * has taken is announced when it is prepared, walks do not count it as gone
 * (aq_xid_in_doubt), and the worker watches it, to wake waiters when it ends,
 * and to count what was rolled back.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "classic/classic_private.h"

#include "access/subtrans.h"
#include "access/transam.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/procarray.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

typedef struct Note
{
	AqQueueShm *shm;
	Effect		effect;
	SubTransactionId subid;
	uint32		retry;			/* reserved; 0 none */
	TransactionId first,
				last;
	Key			lowest,
				highest;
} Note;

/* in TopMemoryContext, grown as needed, emptied at the transaction's end */
static Note *notes;
static int	nnotes,
			notes_size;
static int	cursor;				/* where the latest note was found */

/* prepared transactions that aq_retry_pending() tells from what has ended; of more it says: wait */
#define RETRY_DOUBTS 32

/* The transaction in which xid is, while that is known. */
static TransactionId
top_of(TransactionId xid)
{
	if (TransactionIdPrecedes(xid, TransactionXmin))
		return xid;
	return SubTransGetTopmostTransaction(xid);
}

/* --- retries to be written ------------------------------------------------------------ */

static uint32
retry_reserve(void)
{
	uint32		index;

	aq_latch_get(&aq_classic->latch, AQ_EXCLUSIVE, AQ_LOC_CLASSIC_RETRY);
	index = aq_classic->free_retry;
	if (index != 0)
		aq_classic->free_retry = aq_retries[index].next;
	aq_latch_free(&aq_classic->latch);
	return index;
}

void
aq_retry_free(uint32 index)
{
	if (index == 0)
		return;
	aq_latch_get(&aq_classic->latch, AQ_EXCLUSIVE, AQ_LOC_CLASSIC_RETRY);
	aq_retries[index].next = aq_classic->free_retry;
	aq_classic->free_retry = index;
	aq_latch_free(&aq_classic->latch);
}

static void
retry_link(AqQueueShm *shm, uint32 index)
{
	ClassicQueue *cq = classic_queue(shm);

	aq_latch_get(&cq->latch, AQ_EXCLUSIVE, AQ_LOC_CLASSIC_RETRY);
	aq_retries[index].next = cq->retries;
	cq->retries = index;
	pg_atomic_fetch_add_u32(&cq->nretries, 1);
	aq_latch_free(&cq->latch);
}

static bool
is_put(const Note *note)
{
	return note->effect.kind == NOTE_PUT || note->effect.kind == NOTE_PUT_LATER;
}

/* From now on nobody dequeues them before the worker has counted. */
static void
retry_hand_over(Note *note, TransactionId doubt)
{
	Retry	   *retry = &aq_retries[note->retry];

	retry->effect = note->effect;
	retry->doubt = doubt;
	retry->first = note->first;
	retry->last = note->last;
	retry->tried_first = retry->tried_last = InvalidTransactionId;
	retry->lowest = note->lowest;
	retry->highest = note->highest;
	retry_link(note->shm, note->retry);
	note->retry = 0;
	if (!TransactionIdIsValid(doubt))
		aq_work_post(note->shm, AQ_WORK_RETRY);
}

/* Nothing but its number matters, when the transaction commits. */
static void
count_hand_over(Note *note, TransactionId doubt)
{
	note->lowest = KEY_LAST;
	note->highest = KEY_FIRST;
	retry_hand_over(note, doubt);
}

/* A restart has left this.  The queue is being loaded. */
void
aq_retry_doubt(AqQueueShm *shm, const InHand *hand)
{
	Note		note = {.shm = shm,.first = hand->xid,.last = hand->xid,
		.lowest = hand->lowest,.highest = hand->highest,
	.effect = {.kind = hand->put ? NOTE_PUT : NOTE_REMOVE,.position = hand->position,.n = hand->n,.consumed = hand->consumed}};

	note.retry = retry_reserve();
	if (note.retry == 0)
		return;
	if (hand->put)
		count_hand_over(&note, top_of(hand->xid));
	else
		retry_hand_over(&note, top_of(hand->xid));
}

/*
 * Does a row that xid has changed last wait for this count?  The worker may
 * have been at it, and have failed.
 */
bool
aq_retry_is_of(const Retry *retry, TransactionId xid)
{
	return (!TransactionIdPrecedes(xid, retry->first) && !TransactionIdPrecedes(retry->last, xid)) ||
		(TransactionIdIsValid(retry->tried_first) &&
		 !TransactionIdPrecedes(xid, retry->tried_first) && !TransactionIdPrecedes(retry->tried_last, xid));
}

static bool
covers(const Retry *retry, int position, const Key *key, TransactionId xid)
{
	return retry->effect.position == position &&
		key_compare(&retry->lowest, key) <= 0 && key_compare(key, &retry->highest) <= 0 &&
		(TransactionIdIsValid(xid) ? aq_retry_is_of(retry, xid) : !TransactionIdIsValid(retry->doubt));
}

/*
 * Is a row that xid (invalid: anybody) took, and rolled back, still to be
 * counted?  Not by those that are still prepared: who took it was another.
 */
bool
aq_retry_pending(AqQueueShm *shm, int position, const Key *key, TransactionId xid)
{
	ClassicQueue *cq = classic_queue(shm);
	TransactionId doubts[RETRY_DOUBTS];
	int			ndoubts = 0;
	bool		pending = false;

	if (pg_atomic_read_u32(&cq->nretries) == 0)
		return false;
	aq_latch_get(&cq->latch, AQ_SHARED, AQ_LOC_CLASSIC_RETRY);
	for (uint32 i = cq->retries; i != 0 && !pending; i = aq_retries[i].next)
	{
		const Retry *retry = &aq_retries[i];

		if (!covers(retry, position, key, xid))
			continue;
		if (TransactionIdIsValid(retry->doubt) && ndoubts < RETRY_DOUBTS)
			doubts[ndoubts++] = retry->doubt;
		else
			pending = true;
	}
	aq_latch_free(&cq->latch);
	/* may read from disk, which nobody does under a latch */
	for (int i = 0; i < ndoubts && !pending; i++)
		pending = !TransactionIdIsInProgress(doubts[i]);
	return pending;
}

/* --- prepared transactions ---------------------------------------------------------------- */

/* Is xid, which is in progress, of a prepared transaction? */
bool
aq_xid_in_doubt(TransactionId xid)
{
	bool		found = false;
	TransactionId top;

	if (aq_classic->ndoubts == 0)
		return false;
	top = top_of(xid);
	aq_latch_get(&aq_classic->latch, AQ_SHARED, AQ_LOC_CLASSIC_DOUBT);
	found = aq_classic->too_many;
	for (uint32 i = 0; i < aq_classic->ndoubts && !found; i++)
		found = aq_classic->doubts[i].xid == top;
	aq_latch_free(&aq_classic->latch);
	return found;
}

void
aq_classic_doubt_add(TransactionId xid, uint32 queue)
{
	aq_latch_get(&aq_classic->latch, AQ_EXCLUSIVE, AQ_LOC_CLASSIC_DOUBT);
	if (aq_classic->ndoubts < DOUBTS_MAX)
	{
		aq_classic->doubts[aq_classic->ndoubts].xid = xid;
		aq_classic->doubts[aq_classic->ndoubts].queue = queue;
		aq_classic->ndoubts++;
	}
	else
		aq_classic->too_many = true;
	aq_latch_free(&aq_classic->latch);
}

/* --- who announces what is given back -------------------------------------------------------- */

static bool announces;			/* this session's entry is set */

/* From now on a rollback announces the rows that the transaction has taken: see ranges.c. */
static void
promise(void)
{
	if (announces || aq_job_in_worker())
		return;
	pg_atomic_write_u32(&aq_classic_takers[aq_session_number()], GetTopTransactionId());
	announces = true;
}

static void
end_promise(void)
{
	if (announces)
		pg_atomic_write_u32(&aq_classic_takers[aq_session_number()], InvalidTransactionId);
	announces = false;
}

/* Is xid, which is in progress, of a session that announces what it gives back? */
bool
aq_xid_announces(TransactionId xid)
{
	TransactionId top = top_of(xid);

	for (int i = 0; i < aq_session_slots(); i++)
		if (pg_atomic_read_u32(&aq_classic_takers[i]) == top)
			return true;
	return false;
}

/* --- noting ------------------------------------------------------------------------------------ */

static Note *
find_note(AqQueueShm *shm, int position, NoteKind kind, SubTransactionId subid)
{
	/* notes are made, and looked for, in the same order again and again */
	for (int i = 0; i < nnotes; i++)
	{
		int			at = (cursor + 1 + i) % nnotes;
		Note	   *note = &notes[at];

		if (note->shm == shm && note->effect.position == position && note->effect.kind == kind &&
			note->subid == subid)
		{
			cursor = at;
			return note;
		}
	}
	return NULL;
}

static Note *
new_note(AqQueueShm *shm, int position, NoteKind kind, SubTransactionId subid)
{
	Note	   *note;

	if (kind == NOTE_REMOVE || kind == NOTE_PURGE)
		promise();
	notes = aq_array_room(notes, &notes_size, nnotes + 1, sizeof(Note));
	note = &notes[nnotes];
	memset(note, 0, sizeof(Note));
	note->shm = shm;
	note->effect.position = position;
	note->effect.kind = kind;
	note->subid = subid;
	if (kind == NOTE_REMOVE)
	{
		note->retry = retry_reserve();
		if (note->retry == 0)
			ereport(ERROR,
					aq_error(AQ_ERR_CACHE_FULL, "too many queues in the hands of running transactions"),
					errhint("Let transactions dequeue from fewer queues and consumers, or raise \"max_connections\"."));
	}
	cursor = nnotes++;
	return note;
}

static void
widen(Note *note, const Key *lowest, const Key *highest)
{
	if (note->effect.n == 0 || key_compare(lowest, &note->lowest) < 0)
		note->lowest = *lowest;
	if (note->effect.n == 0 || key_compare(highest, &note->highest) > 0)
		note->highest = *highest;
}

static void
widen_xids(Note *note, TransactionId first, TransactionId last)
{
	if (!TransactionIdIsValid(note->first) || TransactionIdPrecedes(first, note->first))
		note->first = first;
	if (!TransactionIdIsValid(note->last) || TransactionIdPrecedes(note->last, last))
		note->last = last;
}

/*
 * See to it that the next aq_classic_note() of this kind needs no memory: a
 * row that was taken must not go without its note.
 */
void
aq_classic_note_reserve(AqQueueShm *shm, int position, NoteKind kind)
{
	SubTransactionId subid = GetCurrentSubTransactionId();

	if (find_note(shm, position, kind, subid) == NULL)
		(void) new_note(shm, position, kind, subid);
}

static Effect *
note_more(AqQueueShm *shm, int position, NoteKind kind, const Key *key, uint32 n)
{
	SubTransactionId subid = GetCurrentSubTransactionId();
	Note	   *note = find_note(shm, position, kind, subid);

	if (note == NULL)
		note = new_note(shm, position, kind, subid);
	if (key != NULL)
	{
		TransactionId xid = GetCurrentTransactionId();

		widen(note, key, key);
		widen_xids(note, xid, xid);
	}
	note->effect.n += n;
	return &note->effect;
}

/* key: of the one row; NULL for what is enqueued. */
void
aq_classic_note(AqQueueShm *shm, int position, NoteKind kind, const Key *key, uint32 n)
{
	(void) note_more(shm, position, kind, key, n);
}

void
aq_classic_note_messages(AqQueueShm *shm, const AqPutOptions *options, uint32 n)
{
	Effect	   *effect = note_more(shm, 0, NOTE_MESSAGES, NULL, n);

	if (options->ready_at != 0)
		effect->delayed += n;
	if (options->expires_at != 0)
		effect->expiring += n;
}

/* One row that was taken; enqueued: when. */
void
aq_classic_note_taken(AqQueueShm *shm, int position, NoteKind kind, const Key *key, TimestampTz enqueued)
{
	Effect	   *effect = note_more(shm, position, kind, key, 1);

	if (kind == NOTE_REMOVE)
		aq_consumed_add(&effect->consumed, enqueued);
}

/* How many messages has the transaction enqueued, and not rolled back? */
uint64
aq_classic_enqueued_here(AqQueueShm *shm)
{
	uint64		n = 0;

	for (int i = 0; i < nnotes; i++)
		if (notes[i].shm == shm && notes[i].effect.kind == NOTE_MESSAGES)
			n += notes[i].effect.n;
	return n;
}

/* --- the end of a transaction ---------------------------------------------------------------------- */

static bool
is_taken(const Note *note)
{
	return note->effect.kind == NOTE_REMOVE || note->effect.kind == NOTE_PURGE;
}

static void
count_done(AqQueueShm *shm, const Effect *effect)
{
	if (effect->n == 0 || aq_shm_consumer(shm, effect->position) == NULL)
		return;
	aq_traffic_done(shm, effect->position, effect->n);
	aq_lag_shrank(shm, effect->position);
}

/* It is committed.  Never raises. */
void
aq_classic_count_commit(AqQueueShm *shm, const Effect *effect)
{
	TimestampTz now = GetCurrentTimestamp();

	switch (effect->kind)
	{
		case NOTE_MESSAGES:
			aq_traffic_put(shm, effect->n, effect->delayed, effect->expiring, now);
			break;
		case NOTE_PUT:
		case NOTE_PUT_LATER:
			if (effect->n > 0)
				aq_traffic_enqueued(shm, effect->position, effect->n, now);
			break;
		case NOTE_FAIL:
			aq_traffic_failed(shm, effect->position, effect->n, now);
			count_done(shm, effect);
			break;
		case NOTE_REMOVE:
			aq_stat_add(AQ_STAT_DEQUEUE_COMMITTED, effect->n);
			aq_traffic_dequeued(shm, effect->position, &effect->consumed);
			/* FALLTHROUGH */
		case NOTE_PURGE:
			count_done(shm, effect);
			break;
		case NOTE_READY:
			aq_traffic_ready(shm, effect->n, now);
			break;
		case NOTE_LOCK:
			break;
	}
}

static void
wake_for_commit(const Note *note)
{
	if (note->effect.kind == NOTE_PUT)
		aq_trace_publish(note->shm->database, note->shm->queue_id, note->effect.n);
	if (note->effect.kind == NOTE_PUT || note->effect.kind == NOTE_LOCK || note->effect.kind == NOTE_READY)
		aq_waiters_wake(note->shm, note->effect.position, note->effect.n);
}

/* Who is woken finds the counters as they are after the commit. */
static void
settle_commits(void)
{
	for (int i = 0; i < nnotes; i++)
	{
		/* before the sharded store's commit: see queue/memory/store_xact.c */
		if (notes[i].effect.kind == NOTE_MESSAGES)
			pg_atomic_fetch_add_u64(&notes[i].shm->table_puts, notes[i].effect.n);
		aq_classic_count_commit(notes[i].shm, &notes[i].effect);
	}
	for (int i = 0; i < nnotes; i++)
	{
		wake_for_commit(&notes[i]);
		aq_retry_free(notes[i].retry);
	}
	nnotes = 0;
}

static void
settle_abort(Note *note)
{
	if (note->effect.n > 0 && is_taken(note))
	{
		/* a session that ends does not count, see aq.dequeue */
		if (note->effect.kind == NOTE_REMOVE && !proc_exit_inprogress)
		{
			retry_hand_over(note, InvalidTransactionId);
			aq_stat_add(AQ_STAT_RETRIES, note->effect.n);
		}
		aq_ranges_announce(note->shm, note->effect.position, &note->lowest, &note->highest);
	}
	if (note->effect.n > 0 && (is_taken(note) || note->effect.kind == NOTE_LOCK))
		aq_waiters_wake(note->shm, note->effect.position, note->effect.n);
	aq_retry_free(note->retry);
	note->retry = 0;
}

/* Does nothing of it matter after a rollback? */
static bool
counts_at_end(const Note *note)
{
	return is_put(note) || note->effect.kind == NOTE_PURGE || note->effect.kind == NOTE_MESSAGES;
}

static void
settle_prepare(Note *note, TransactionId xid)
{
	if (note->effect.n > 0 && (is_taken(note) || note->effect.kind == NOTE_LOCK || is_put(note)))
	{
		if (is_taken(note))
			aq_ranges_announce(note->shm, note->effect.position, &note->lowest, &note->highest);
		if (note->effect.kind == NOTE_REMOVE)
			retry_hand_over(note, xid);
		aq_work_post(note->shm, AQ_WORK_DOUBT);
	}
	if (note->retry != 0 && note->effect.n > 0 && counts_at_end(note))
		count_hand_over(note, xid);
	aq_retry_free(note->retry);
	note->retry = 0;
}

/* Before it is prepared: from now on its rows count as not taken. */
static void
add_doubts(void)
{
	TransactionId xid = GetTopTransactionIdIfAny();
	AqQueueShm *last = NULL;

	for (int i = 0; i < nnotes; i++)
	{
		/* without one the consumer's lag, or the queue's count, is off */
		if (notes[i].effect.n > 0 && counts_at_end(&notes[i]) && notes[i].retry == 0)
			notes[i].retry = retry_reserve();
		if (notes[i].shm == last)
			continue;
		last = notes[i].shm;
		aq_classic_doubt_add(xid, last->object->index);
	}
}

static bool
has_notes(void)
{
	return nnotes > 0;
}

static void
pre_commit(void)
{
	if (nnotes > 0)
		aq_commit_order_number();
}

static void
commit(void)
{
	aq_commit_order_forget();
	end_promise();
	settle_commits();
}

static void
pre_prepare(void)
{
	if (nnotes == 0)
		return;
	aq_commit_order_number();
	add_doubts();
	end_promise();				/* nothing is announced when it rolls back */
}

static void
prepare(void)
{
	TransactionId xid = GetTopTransactionIdIfAny();

	aq_commit_order_forget();
	end_promise();
	for (int i = 0; i < nnotes; i++)
		settle_prepare(&notes[i], xid);
	nnotes = 0;
}

static void
abort_transaction(void)
{
	aq_commit_order_forget();
	end_promise();
	for (int i = 0; i < nnotes; i++)
		settle_abort(&notes[i]);
	nnotes = 0;
}

/* Hand the note to the parent, which may have one of the same line. */
static void
hand_up(int i, SubTransactionId parent)
{
	Note	   *note = &notes[i];
	Note	   *other = find_note(note->shm, note->effect.position, note->effect.kind, parent);

	if (other == NULL)
	{
		note->subid = parent;
		return;
	}
	if (note->effect.n > 0)
		widen(other, &note->lowest, &note->highest);
	if (TransactionIdIsValid(note->first))
		widen_xids(other, note->first, note->last);
	other->effect.n += note->effect.n;
	other->effect.delayed += note->effect.delayed;
	other->effect.expiring += note->effect.expiring;
	aq_consumed_join(&other->effect.consumed, &note->effect.consumed);
	aq_retry_free(note->retry);
	memmove(note, note + 1, (nnotes - i - 1) * sizeof(Note));
	nnotes--;
}

static void
subcommit(SubTransactionId subid, SubTransactionId parent)
{
	for (int i = nnotes - 1; i >= 0; i--)
		if (notes[i].subid == subid)
			hand_up(i, parent);
}

static void
subabort(SubTransactionId subid)
{
	for (int i = nnotes - 1; i >= 0; i--)
		if (notes[i].subid == subid)
		{
			settle_abort(&notes[i]);
			memmove(&notes[i], &notes[i + 1], (nnotes - i - 1) * sizeof(Note));
			nnotes--;
		}
}

const AqStoreXact aq_classic_notes_xact = {
	.has_notes = has_notes,
	.pre_commit = pre_commit,
	.commit = commit,
	.pre_prepare = pre_prepare,
	.prepare = prepare,
	.abort = abort_transaction,
	.subcommit = subcommit,
	.subabort = subabort,
};
