/*-------------------------------------------------------------------------
 *
 * frozen.c
 *	  Immediate visibility: a message or a log row that is committed at once,
 *	  whatever happens to the transaction that inserts it.
 *
 * Such a row is inserted frozen, as COPY FREEZE does it: everybody sees it, and
 * no abort or crash removes it.  The WAL is flushed (and confirmed by
 * synchronous standbys) before shared memory shows the change, as in a commit.
 * So a call is one row, and costs one flush, and no other process takes part.
 *
 * - No row is inserted: an error, a termination or a crash before that is the
 *	 end of the call, which has changed nothing.  What the row has in the TOAST
 *	 table comes first; without the row no session finds it, and it goes when the
 *	 partition is truncated.
 * - The row is inserted: interrupts are held from before the insertion until
 *	 shared memory has followed, and nothing in between raises an error.  So
 *	 there is no abort and no termination in between.  After a crash the row is
 *	 there or not, and the partition is loaded from its tables.
 * - There are never two rows: nothing would make them one.  An array of
 *	 messages is enqueued in another transaction (queue/immediate/autonomous.c), and
 *	 a dequeue ends with the first partition in which it has found messages.
 * - Nothing is left for the end of the transaction: the notes of the call are
 *	 removed.  So the transaction can be rolled back or prepared.
 *
 * What the transaction has done itself is not part of the call: a dequeue does
 * not get messages that it has enqueued or locked.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/commit/commit_private.h"

#include "access/table.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/rel.h"

static XLogRecPtr written_before;	/* end of what the transaction had written before the row; 0: nothing */

/*
 * Called before the row is inserted, when only the insertion can still fail.
 * Interrupts are held until shared memory shows the row.
 */
void
aq_frozen_begin(Relation rel)
{
	HOLD_INTERRUPTS();
	pgstat_count_heap_insert(rel, 0);	/* allocates, which must not happen after the insertion */
	written_before = XactLastRecEnd;
}

/*
 * Makes the row durable.  The commit of the transaction then waits for the disk
 * only if it has written something else.
 */
static void
flush(void)
{
	XLogRecPtr	end = XactLastRecEnd;

	aq_point_held("row-frozen");
	if (end == written_before)
		return;					/* the table is not logged */
	aq_xact_make_durable(end);
	XactLastCommitEnd = end;	/* see finish() in settle.c */
	XactLastRecEnd = written_before;
	aq_point_held("row-durable");
}

/* --- enqueue ----------------------------------------------------------------------- */

/* The message of the last note was inserted, frozen. */
void
aq_frozen_publish(PutNote *note)
{
	flush();
	note->frozen = true;
	aq_settle_put(note, true, InvalidTransactionId);
	aq_settle_wake(&note, 1);
	aq_notes_remove_put(note);
	RESUME_INTERRUPTS();
}

/* --- dequeue ----------------------------------------------------------------------- */

/* A number for a dequeue, which tells its notes from others. */
uint32
aq_frozen_number(void)
{
	static uint32 last;

	if (++last == 0)
		last = 1;
	return last;
}

/* What the dequeue has taken, in one partition; returns the number of slots. */
static uint32
collect(uint32 number, uint16 *slots, TakeNote **note)
{
	TakeNote  **takes;
	int			ntakes = aq_notes_takes(&takes);
	uint32		n = 0;

	*note = NULL;
	for (int i = 0; i < ntakes; i++)
	{
		if (takes[i]->immediate != number)
			continue;
		Assert(*note == NULL || takes[i]->partition == (*note)->partition);
		*note = takes[i];
		memcpy(&slots[n], takes[i]->slots, takes[i]->count * sizeof(uint16));
		n += takes[i]->count;
	}
	Assert(n <= AQ_LOG_ORDINALS);
	return n;
}

static void
settle(uint32 number, TransactionId xid)
{
	TakeNote   *note;

	while ((note = aq_notes_find_immediate(number)) != NULL)
	{
		aq_settle_take(note, true, false, xid);
		aq_notes_remove_take(note);
	}
}

void
aq_frozen_settle_taken(AqImmediate *immediate)
{
	uint16		slots[AQ_LOG_ORDINALS];
	TakeNote   *note;
	uint32		n = collect(immediate->number, slots, &note);

	if (n == 0)
		return;
	aq_point("immediate-taken");
	if (note->mode == AQ_MODE_LOCKED)
	{
		/* the lock is over with the call; only memory knew of it */
		HOLD_INTERRUPTS();
		settle(immediate->number, InvalidTransactionId);
	}
	else
	{
		Relation	log = aq_heap_open_log(note->partition);

		aq_frozen_begin(log);
		aq_heap_write_frozen(log, note->partition, LOG_TAKEN, note->position, slots, n);
		flush();
		settle(immediate->number, GetTopTransactionIdIfAny());
		table_close(log, NoLock);
	}
	RESUME_INTERRUPTS();
}
