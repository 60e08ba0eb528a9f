/*-------------------------------------------------------------------------
 *
 * shard_xact.c
 *	  The end of a transaction that has used sharded queues.
 *
 *	pre-commit	log rows are written, which may raise
 *	commit		slots become ready, takes become final: cannot raise, so all
 *				memory was reserved before (rule 4 of README.md)
 *	abort		slots die, taken messages go back to their place
 *	prepare		the notes go to the transactions in doubt, see doubt.c
 *
 * A session that is terminated aborts its transaction when it exits.  If a
 * process is killed, the server reinitializes shared memory, and partitions
 * are loaded from the tables.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/commit/commit_private.h"

#include "access/xact.h"
#include "storage/ipc.h"

/* The kind of its log row; 0: none. */
static char
log_kind(const TakeNote *note, bool preparing)
{
	switch (note->mode)
	{
		case AQ_MODE_BROWSE:
			return 0;
		case AQ_MODE_LOCKED:
			return preparing ? LOG_LOCKED : 0;
		case AQ_MODE_PURGE:
			return LOG_PURGED;
		default:
			return aq_settle_kind(note->mode);
	}
}

/* Writes the dequeue log, which is authoritative for what was taken. */
static void
write_log(bool preparing)
{
	TakeNote  **takes;
	int			ntakes = aq_notes_takes(&takes);

	for (int i = 0; i < ntakes; i++)
	{
		TakeNote   *note = takes[i];
		int64		receipt;
		char		kind;

		if (note->count == 0 || aq_pending_is_dropped(note->shm->queue_id))
			continue;
		kind = log_kind(note, preparing);
		if (kind == 0)
			continue;
		receipt = preparing && note->alone && kind == LOG_TAKEN ? AQ_RECEIPT_ALONE : note->terms.receipt;
		if (note->terms.span != 0)
			note->terms.until = GetCurrentTimestamp() + note->terms.span;
		aq_heap_write_lease(note->partition, kind, note->terms.until, note->position, note->slots, note->count,
							receipt, note->terms.detail);
		/* the attempt is on disk before the holder has the message: invariant I12 */
		if (kind == LOG_LEASED)
			ForceSyncCommit();
	}
}

static void
settle_all(bool commit)
{
	TransactionId xid = GetTopTransactionIdIfAny();
	PutNote   **puts;
	TakeNote  **takes;
	int			nputs = aq_notes_puts(&puts);
	int			ntakes = aq_notes_takes(&takes);

	aq_notes_find_alone(InvalidSubTransactionId, commit);
	/* puts first, because own messages may have been taken, too */
	for (int i = 0; i < nputs; i++)
		aq_settle_put(puts[i], commit, xid);
	if (commit && nputs > 0)
	{
		aq_settle_wake(puts, nputs);
		aq_point_held("messages-published");
	}
	for (int i = 0; i < ntakes; i++)
		aq_settle_take(takes[i], commit, !proc_exit_inprogress, xid);
}

static bool
has_notes(void)
{
	PutNote   **puts;
	TakeNote  **takes;

	return aq_notes_puts(&puts) > 0 || aq_notes_takes(&takes) > 0;
}

/* Sessions that wait for the message cache can evict what was let go. */
static void
tell_let_go(void)
{
	if (!aq_slot_frames_let_go)
		return;
	aq_slot_frames_let_go = false;
	aq_chunks_tell();
}

static void
forget_everything(void)
{
	aq_notes_forget();
	aq_own_forget();
}

static void
pre_commit(void)
{
	TakeNote  **takes;

	if (aq_notes_takes(&takes) > 0)
	{
		aq_point("before-log");
		write_log(false);
		aq_point("after-log");
	}
}

static void
commit(void)
{
	aq_point_held("in-commit-callback");
	settle_all(true);
	aq_notes_run_at_commit();
	forget_everything();
	aq_tables_xact_end();
	tell_let_go();
}

static void
pre_prepare(void)
{
	aq_notes_find_alone(InvalidSubTransactionId, false);
	write_log(true);
	if (has_notes())
		aq_doubt_prepare(GetTopTransactionId());
}

static void
prepare(void)
{
	aq_doubt_prepared();
	forget_everything();
	tell_let_go();
}

static void
abort_transaction(void)
{
	settle_all(false);
	aq_doubt_cancel();
	forget_everything();
	aq_tables_subabort(InvalidSubTransactionId);
	aq_tables_xact_end();
	tell_let_go();
}

/*
 * Undoes a dequeue of a subtransaction that was rolled back.  Messages that
 * the transaction had locked before are locked again; the attempt counts when
 * this lock is released.  The note of the lock has room for them: it cannot
 * have grown meanwhile, because only the last note grows.
 */
static void
undo_take(TakeNote *note, SubTransactionId subid, TransactionId xid)
{
	TakeNote   *locked = note->locked;

	if (locked == NULL || locked->subid >= subid)
	{
		aq_settle_take(note, false, !proc_exit_inprogress, xid);
		return;
	}
	Assert(locked->count + note->count <= locked->size);
	memcpy(&locked->slots[locked->count], note->slots, note->count * sizeof(uint16));
	locked->count += note->count;
	for (uint32 i = 0; i < note->count; i++)
		(void) aq_bitmap_set(locked->tried, note->slots[i]);
}

static void
subcommit(SubTransactionId subid, SubTransactionId parent)
{
	aq_notes_subcommit(subid, parent);
	aq_tables_subcommit(subid, parent);
}

static void
subabort(SubTransactionId subid)
{
	TransactionId xid = GetTopTransactionIdIfAny();
	PutNote    *put;
	TakeNote   *take;
	int			number;

	aq_notes_find_alone(subid, false);
	while ((take = aq_notes_pop_take(subid)) != NULL)
		undo_take(take, subid, xid);
	while ((put = aq_notes_pop_put(subid, &number)) != NULL)
	{
		aq_own_remove(put, number);
		aq_settle_put(put, false, xid);
	}
	aq_tables_subabort(subid);
	tell_let_go();
}

const AqStoreXact aq_shard_xact = {
	.has_notes = has_notes,
	.pre_commit = pre_commit,
	.commit = commit,
	.pre_prepare = pre_prepare,
	.prepare = prepare,
	.abort = abort_transaction,
	.subcommit = subcommit,
	.subabort = subabort,
};
