/*-------------------------------------------------------------------------
 *
 * classic_notes.c
 *	  The transaction's actions on queue tables, and their effects at its end.
 *
 * The rows are ordinary rows of PostgreSQL, so a commit or rollback of them
 * needs no action.  Notes are for the effects beside the rows: waking waiters,
 * counting, announcing rows that can be dequeued again, and having the worker
 * write the retry counts of rolled back dequeues.
 *
 * A note sums up the actions of a subtransaction for one consumer.  If the
 * subtransaction commits, the note passes to the parent; if it aborts, the
 * note is settled.  The callbacks do not allocate memory or raise errors: the
 * entry that a rollback passes to the worker is reserved when the note is
 * made.
 *
 * COMMIT PREPARED and ROLLBACK PREPARED call no callback: the rows taken are
 * announced when the transaction is prepared, walks do not regard them as gone
 * (aq_classic_doubts_has), and the worker watches the transaction, to wake
 * waiters when it ends, and to count rolled back dequeues.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "classic/classic_private.h"

#include "access/transam.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "storage/ipc.h"

typedef struct Note
{
	AqQueueShm *shm;
	Effect		effect;
	AqHistNote	latencies;		/* of effect.consumed */
	SubTransactionId subid;
	bool		last_try;		/* the next failure of a message is its last one: aq_classic_notes_have_last */
	uint32		retry;			/* reserved entry; 0: none */
	Xids		xids;			/* if an entry is reserved: transactions that took the rows */
	Key			lowest,
				highest;
} Note;

/* in TopMemoryContext, grown as needed, emptied at the transaction's end */
static Note *notes;
static int	nnotes,
			notes_size;
static int	cursor;				/* index of the note found last */

/* --- retries to be written ------------------------------------------------------------ */

/* Does a rollback of the note end attempts? */
static bool
is_attempt(const Note *note)
{
	return (note->effect.kind == NOTE_REMOVE || note->effect.kind == NOTE_LEASE) && note->effect.n > 0;
}

/*
 * Is the note's message the only one of its queue that the subtransaction, or
 * the transaction, if that is what ends, has dequeued?  Notes of a
 * subtransaction's children are its own, or are settled.
 */
static bool
is_alone(const Note *note, bool whole)
{
	if (!is_attempt(note) || note->effect.n > 1)
		return false;
	for (int i = 0; i < nnotes; i++)
		if (&notes[i] != note && notes[i].shm == note->shm && is_attempt(&notes[i]) &&
			(whole || notes[i].subid == note->subid))
			return false;
	return true;
}

/*
 * Passes the note's retry to the worker: no session dequeues its rows before
 * the worker has written their counts.
 */
static void
pass_retry(Note *note, TransactionId doubt, bool alone)
{
	Retry	   *retry = &aq_classic_area_retries[note->retry];

	retry->effect = note->effect;
	retry->doubt = doubt;
	retry->alone = alone;
	retry->taken = note->xids;
	retry->tried.n = 0;
	retry->lowest = note->lowest;
	retry->highest = note->highest;
	aq_retry_list_add(note->shm, note->retry);
	note->retry = 0;
	if (!TransactionIdIsValid(doubt))
		aq_work_post(note->shm, AQ_WORK_RETRY);
}

/*
 * Passes a note of which only the number of messages matters, when the
 * prepared transaction commits.
 */
static void
pass_count(Note *note, TransactionId doubt)
{
	note->lowest = KEY_LAST;
	note->highest = KEY_FIRST;
	pass_retry(note, doubt, false);
}

/*
 * Restores the note of a prepared transaction after a restart, while the queue
 * is being loaded.  alone: it has dequeued no other message.  What it has
 * enqueued is passed by aq_prepared_counts_pass.
 */
void
aq_classic_notes_restore(AqQueueShm *shm, const InDoubt *doubt, bool alone)
{
	Note		note = {.shm = shm, .xids = doubt->xids, .lowest = doubt->lowest, .highest = doubt->highest,
		.effect = {.kind = NOTE_REMOVE, .position = doubt->position, .n = Max(doubt->n, 0), .consumed = doubt->consumed}};

	if (doubt->put)
	{
		aq_prepared_counts_add(shm, NOTE_PUT, doubt->position, note.effect.n, doubt->role, aq_retry_list_reserve);
		return;
	}
	note.retry = aq_retry_list_reserve(doubt->role);
	if (note.retry != 0)
		pass_retry(&note, doubt->top, alone && doubt->n == 1);
}

/* --- noting ------------------------------------------------------------------------------------ */

/*
 * The role whose transaction it is: also in functions that run as their owner.  In
 * that of a superuser, which has no limit, the role whose rights the code has: a
 * rule can be of anybody.
 */
static Oid
caller(void)
{
	Oid			role = GetOuterUserId();

	if (aq_job_in_worker())
		return InvalidOid;
	return superuser_arg(role) && !superuser() ? GetUserId() : role;
}

static uint32
reserve_retry(Oid role)
{
	uint32		index;

	aq_retry_list_check_share(role);
	index = aq_retry_list_reserve(role);
	if (index == 0)
		ereport(ERROR,
				aq_error(AQ_ERR_LIMIT_REACHED, "too many queues are in use by running transactions"),
				errhint("Let transactions dequeue from fewer queues and consumers, or raise \"max_connections\"."));
	return index;
}

/* With room for nxids ranges of ids. */
static Note *
find_note(AqQueueShm *shm, int position, NoteKind kind, SubTransactionId subid, uint32 nxids)
{
	/* notes are often made and searched in the same order repeatedly */
	for (int i = 0; i < nnotes; i++)
	{
		int			at = (cursor + 1 + i) % nnotes;
		Note	   *note = &notes[at];

		if (note->shm == shm && note->effect.position == position && note->effect.kind == kind &&
			note->subid == subid && note->xids.n + nxids <= XIDS_MAX)
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

	if (kind == NOTE_REMOVE || kind == NOTE_MOVE || kind == NOTE_PURGE || kind == NOTE_LEASE)
		aq_takers_promise();
	notes = aq_array_room(notes, &notes_size, nnotes + 1, sizeof(Note));
	note = &notes[nnotes];
	memset(note, 0, sizeof(Note));
	note->shm = shm;
	note->effect.position = position;
	note->effect.kind = kind;
	note->subid = subid;
	if (kind == NOTE_REMOVE || kind == NOTE_LEASE)
		note->retry = reserve_retry(caller());
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

/*
 * Reserves memory for the next aq_classic_notes_add() of this kind, because a
 * row that was taken must have a note.
 */
void
aq_classic_notes_reserve(AqQueueShm *shm, int position, NoteKind kind)
{
	SubTransactionId subid = GetCurrentSubTransactionId();

	if (find_note(shm, position, kind, subid, 1) == NULL)
		(void) new_note(shm, position, kind, subid);
}

static Note *
note_more(AqQueueShm *shm, int position, NoteKind kind, const Key *key, uint32 n)
{
	SubTransactionId subid = GetCurrentSubTransactionId();
	Note	   *note = find_note(shm, position, kind, subid, 1);

	if (note == NULL)
		note = new_note(shm, position, kind, subid);
	if (key != NULL)
		widen(note, key, key);
	if (note->retry != 0)
		aq_xids_add(&note->xids, GetCurrentTransactionId(), GetCurrentTransactionId());
	note->effect.n += n;
	return note;
}

/* key: of the row; NULL for enqueued messages. */
void
aq_classic_notes_add(AqQueueShm *shm, int position, NoteKind kind, const Key *key, uint32 n)
{
	(void) note_more(shm, position, kind, key, n);
}

void
aq_classic_notes_add_messages(AqQueueShm *shm, const AqPutOptions *options, uint32 n)
{
	Effect	   *effect = &note_more(shm, 0, NOTE_MESSAGES, NULL, n)->effect;

	if (options->ready_at != 0)
		effect->delayed += n;
	if (options->expires_at != 0)
		effect->expiring += n;
}

/* Adds one row that was taken, by a take that began now. */
void
aq_classic_notes_add_taken(AqQueueShm *shm, int position, NoteKind kind, const Key *key, TimestampTz now, const AqMessage *message)
{
	Note	   *note = note_more(shm, position, kind, key, 1);

	if (kind != NOTE_REMOVE && kind != NOTE_MOVE && kind != NOTE_LEASE)
		return;
	aq_consumed_add(&note->effect.consumed, message->enqueue_time);
	aq_latency_add(&note->latencies, now, message->enqueue_time, message->ready_at);
}

/*
 * The number of messages that the transaction has enqueued and not rolled
 * back.
 */
uint64
aq_classic_notes_enqueued(const AqQueueShm *shm)
{
	uint64		n = 0;

	for (int i = 0; i < nnotes; i++)
		if (notes[i].shm == shm && notes[i].effect.kind == NOTE_MESSAGES)
			n += notes[i].effect.n;
	return n;
}

/* The number of those that its commit finishes for the consumer. */
uint64
aq_classic_notes_finished(const AqQueueShm *shm, int position)
{
	uint64		n = 0;

	for (int i = 0; i < nnotes; i++)
	{
		const Effect *effect = &notes[i].effect;

		if (notes[i].shm == shm && effect->position == position &&
			(effect->kind == NOTE_REMOVE || effect->kind == NOTE_MOVE || effect->kind == NOTE_PURGE ||
			 effect->kind == NOTE_ACKNOWLEDGE || effect->kind == NOTE_REJECT))
			n += effect->n;
	}
	return n;
}

/* --- messages that may fail for good: see "Poison messages" in queue/README.md ----------------- */

/* Has the transaction dequeued messages of the queue? */
bool
aq_classic_notes_have_takes(const AqQueueShm *shm)
{
	for (int i = nnotes - 1; i >= 0; i--)
		if (notes[i].shm == shm && is_attempt(&notes[i]))
			return true;
	return false;
}

/*
 * The next failure of the message just added is its last one: the transaction
 * does not get other messages of the queue.
 */
void
aq_classic_notes_mark_last(AqQueueShm *shm, int position)
{
	Note	   *note = find_note(shm, position, NOTE_REMOVE, GetCurrentSubTransactionId(), 0);

	if (note != NULL)
		note->last_try = true;
}

/* Has the transaction such a message of the queue? */
bool
aq_classic_notes_have_last(const AqQueueShm *shm)
{
	for (int i = 0; i < nnotes; i++)
		if (notes[i].shm == shm && notes[i].last_try)
			return true;
	return false;
}

/* --- the end of a transaction ---------------------------------------------------------------------- */

static bool
is_taken(const Note *note)
{
	return note->effect.kind == NOTE_REMOVE || note->effect.kind == NOTE_MOVE || note->effect.kind == NOTE_PURGE ||
		note->effect.kind == NOTE_LEASE;
}

/* Are the rows leased, and finished, extended or given back? */
static bool
is_of_lease(const Note *note)
{
	return note->effect.kind >= NOTE_ACKNOWLEDGE && note->effect.kind <= NOTE_REJECT;
}

static void
count_done(AqQueueShm *shm, const Effect *effect)
{
	if (effect->n > 0)
		aq_traffic_done(shm, effect->position, effect->n);
}

/*
 * Counts the effects of a committed transaction.  latencies: of the messages that it
 * has dequeued; NULL: a prepared one.  Never raises an error.
 */
static void
count_effect(AqQueueShm *shm, const Effect *effect, const AqHistNote *latencies)
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
		case NOTE_MOVE:
			aq_stat_add(AQ_STAT_DEQUEUE_COMMITTED, effect->n);
			aq_traffic_dequeued(shm, effect->position, &effect->consumed, latencies);
			pg_fallthrough;
		case NOTE_PURGE:
			count_done(shm, effect);
			break;
		case NOTE_ACKNOWLEDGE:
			aq_traffic_lease(AQ_MODE_ACKNOWLEDGE, effect->n);
			count_done(shm, effect);
			break;
		case NOTE_LEASE:
			aq_traffic_lease(AQ_MODE_LEASE, effect->n);
			aq_stat_add(AQ_STAT_DEQUEUE_COMMITTED, effect->n);
			aq_traffic_dequeued(shm, effect->position, &effect->consumed, latencies);
			break;
		case NOTE_RELEASE:
			aq_traffic_lease(AQ_MODE_RELEASE, effect->n);
			pg_fallthrough;
		case NOTE_READY:
			aq_traffic_ready(shm, effect->n, now);
			break;
		case NOTE_RELEASE_LATER:
			aq_traffic_lease(AQ_MODE_RELEASE, effect->n);
			break;
		case NOTE_EXTEND:
			aq_traffic_lease(AQ_MODE_EXTEND, effect->n);
			break;
		case NOTE_REJECT:
			aq_traffic_lease(AQ_MODE_REJECT, effect->n);
			break;
		case NOTE_LOCK:
			break;
	}
}

/* Counts those of a prepared transaction that has committed. */
void
aq_classic_notes_count(AqQueueShm *shm, const Retry *retry)
{
	Effect		effect = retry->effect;

	if (!only_numbers(effect.kind))
		count_effect(shm, &effect, NULL);
	else
		for (effect.position = 0; effect.position < AQ_MAX_CONSUMERS; effect.position++)
			if (retry->consumers[effect.position / 64] >> (effect.position % 64) & 1)
				count_effect(shm, &effect, NULL);
}

static void
wake_for_commit(const Note *note)
{
	if (note->effect.kind == NOTE_PUT)
		aq_trace_publish(note->shm->database, note->shm->queue_id, note->effect.n);
	if (note->effect.kind == NOTE_PUT || note->effect.kind == NOTE_LOCK || note->effect.kind == NOTE_READY ||
		note->effect.kind == NOTE_RELEASE)
		aq_waiters_wake(note->shm, note->effect.position, note->effect.n);
	/* the worker could not do anything about the rows before */
	if ((note->effect.kind == NOTE_REJECT || note->effect.kind == NOTE_RELEASE_LATER) && note->effect.n > 0)
		aq_work_announce_time(note->shm, GetCurrentTimestamp());
}

/*
 * Updates all counters before waking waiters, so that these see the new
 * values.
 */
static void
settle_commits(void)
{
	for (int i = 0; i < nnotes; i++)
	{
		/*
		 * must be before the sharded store's commit: see
		 * queue/memory/store_xact.c
		 */
		if (notes[i].effect.kind == NOTE_MESSAGES)
			pg_atomic_fetch_add_u64(&notes[i].shm->table_puts, notes[i].effect.n);
		count_effect(notes[i].shm, &notes[i].effect, &notes[i].latencies);
	}
	for (int i = 0; i < nnotes; i++)
	{
		wake_for_commit(&notes[i]);
		aq_retry_list_free(notes[i].retry);
	}
	nnotes = 0;
}

static void
settle_abort(Note *note, bool whole)
{
	if (note->effect.n > 0 && is_taken(note))
	{
		/* the end of a session does not count as an attempt, see aq.dequeue */
		if (is_attempt(note) && !proc_exit_inprogress)
		{
			pass_retry(note, InvalidTransactionId, is_alone(note, whole));
			aq_stat_add(AQ_STAT_RETRIES, note->effect.n);
		}
		aq_ranges_announce(note->shm, note->effect.position, &note->lowest, &note->highest);
	}
	if (note->effect.n > 0 && (is_taken(note) || note->effect.kind == NOTE_LOCK))
		aq_waiters_wake(note->shm, note->effect.position, note->effect.n);
	aq_retry_list_free(note->retry);
	note->retry = 0;
}

/* Does the note matter only if the transaction commits?  For those with numbers only, see prepared_counts.c. */
static bool
counts_at_end(const Note *note)
{
	return note->effect.kind == NOTE_MOVE || note->effect.kind == NOTE_MESSAGES;
}

static void
settle_prepare(Note *note, TransactionId xid)
{
	if (note->effect.n > 0)
	{
		if (is_taken(note) || is_of_lease(note))
			aq_ranges_announce(note->shm, note->effect.position, &note->lowest, &note->highest);
		if (is_attempt(note))
			pass_retry(note, xid, is_alone(note, true));
		if (note->retry != 0 && counts_at_end(note))
			pass_count(note, xid);
		/* the worker removes the entry of the transaction, see add_doubts */
		aq_work_post(note->shm, AQ_WORK_DOUBT);
	}
	aq_retry_list_free(note->retry);
	note->retry = 0;
}

/* The transaction is listed as in doubt, and is not prepared yet. */
static bool preparing;

/*
 * Called before the transaction is prepared: from now on, walks do not regard
 * its rows as gone.  A note without rows, of a row that another session got
 * first, needs no entry.
 */
static void
add_doubts(void)
{
	TransactionId xid = GetTopTransactionIdIfAny();
	AqQueueShm *last = NULL;

	preparing = true;
	for (int i = 0; i < nnotes; i++)
	{
		if (notes[i].effect.n == 0)
			continue;

		/* without an entry, the consumer's lag or the queue's count would become wrong */
		if (only_numbers(notes[i].effect.kind))
			aq_prepared_counts_add(notes[i].shm, notes[i].effect.kind, notes[i].effect.position, notes[i].effect.n,
								   caller(), reserve_retry);
		else if (counts_at_end(&notes[i]) && notes[i].retry == 0)
			notes[i].retry = reserve_retry(caller());
		if (notes[i].shm == last)
			continue;
		last = notes[i].shm;
		aq_classic_doubts_add(xid, last->object->index);
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
	aq_takers_end();
	settle_commits();
}

static void
pre_prepare(void)
{
	if (nnotes == 0)
		return;
	aq_commit_order_number();
	add_doubts();
	aq_takers_end();			/* a rollback of the prepared transaction announces nothing */
}

static void
prepare(void)
{
	TransactionId xid = GetTopTransactionIdIfAny();

	aq_commit_order_forget();
	aq_takers_end();
	for (int i = 0; i < nnotes; i++)
		settle_prepare(&notes[i], xid);
	aq_prepared_counts_pass(xid);
	nnotes = 0;
	preparing = false;
}

static void
abort_transaction(void)
{
	aq_commit_order_forget();
	aq_takers_end();
	for (int i = 0; i < nnotes; i++)
	{
		settle_abort(&notes[i], true);
		/* PREPARE has failed: as after ROLLBACK PREPARED */
		if (preparing)
			aq_work_post(notes[i].shm, AQ_WORK_DOUBT);
	}
	aq_prepared_counts_forget();
	nnotes = 0;
	preparing = false;
}

/*
 * Passes the note to the parent, which may already have one for the same
 * consumer and kind.  It gets another one if there is no room for the ids;
 * while few entries are free, ranges of ids grow instead: then the end of a
 * session between them can count as an attempt.
 */
static void
pass_to_parent(int i, SubTransactionId parent)
{
	Note	   *note = &notes[i];
	uint32		nxids = aq_retry_list_has_plenty() ? note->xids.n : 0;
	Note	   *other = find_note(note->shm, note->effect.position, note->effect.kind, parent, nxids);

	if (other == NULL)
	{
		note->subid = parent;
		return;
	}
	if (note->effect.n > 0)
		widen(other, &note->lowest, &note->highest);
	aq_xids_join(&other->xids, &note->xids);
	other->effect.n += note->effect.n;
	other->effect.delayed += note->effect.delayed;
	other->effect.expiring += note->effect.expiring;
	other->last_try |= note->last_try;
	aq_consumed_join(&other->effect.consumed, &note->effect.consumed);
	aq_hist_join(&other->latencies, &note->latencies);
	aq_retry_list_free(note->retry);
	memmove(note, note + 1, (nnotes - i - 1) * sizeof(Note));
	nnotes--;
}

static void
subcommit(SubTransactionId subid, SubTransactionId parent)
{
	for (int i = nnotes - 1; i >= 0; i--)
		if (notes[i].subid == subid)
			pass_to_parent(i, parent);
}

static void
subabort(SubTransactionId subid)
{
	for (int i = 0; i < nnotes; i++)
		if (notes[i].subid == subid)
			settle_abort(&notes[i], false);
	aq_prepared_counts_forget();	/* a load has failed */
	for (int i = nnotes - 1; i >= 0; i--)
		if (notes[i].subid == subid)
		{
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
