/*-------------------------------------------------------------------------
 *
 * notes.c
 *	  What the transaction has in hand, and how that ends.
 *
 * A note says: these slots are pending because of me, or these messages are
 * taken by me for this consumer.  It belongs to a subtransaction; committing
 * one hands its notes to the parent, aborting one settles them.
 *
 *	pre-commit	log rows are written, which may raise
 *	commit		slots become ready, takes become final: cannot raise, so all
 *				memory was reserved before (invariant I6)
 *	abort		slots die, taken messages go back to their place
 *	prepare		the notes go to the transactions in doubt, see doubt.c
 *
 * A session that is killed aborts its transaction on its way out; one that
 * cannot, takes the server with it, and the tables tell the rest.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/shard_private.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "utils/memutils.h"

static MemoryContext context;	/* of the notes; reset at the transaction's end */
static PutNote **put_notes;
static int	nputs,
			puts_size;
static TakeNote **take_notes;
static int	ntakes,
			takes_size;

MemoryContext
aq_notes_context(void)
{
	if (context == NULL)
		context = AllocSetContextCreate(TopMemoryContext, "pgaq notes", ALLOCSET_DEFAULT_SIZES);
	return context;
}

static void *
grow(void *array, int *size, Size element)
{
	*size = Max(16, 2 * *size);
	return array ? repalloc(array, *size * element)
		: MemoryContextAlloc(TopMemoryContext, *size * element);
}

int
aq_notes_puts(PutNote ***notes)
{
	*notes = put_notes;
	return nputs;
}

int
aq_notes_takes(TakeNote ***notes)
{
	*notes = take_notes;
	return ntakes;
}

/* Into which queues the transaction has enqueued. */
typedef struct QueuePuts
{
	AqQueueShm *shm;
	int			notes;
} QueuePuts;

static QueuePuts *queue_puts;
static int	nqueues,
			queues_size;

static QueuePuts *
puts_of(const AqQueueShm *shm)
{
	for (int i = nqueues - 1; i >= 0; i--)
		if (queue_puts[i].shm == shm)
			return &queue_puts[i];
	return NULL;
}

bool
aq_notes_have_puts(const AqQueueShm *shm)
{
	QueuePuts  *puts = puts_of(shm);

	return puts != NULL && puts->notes > 0;
}

/*
 * A new note of an enqueue.  It counts from aq_note_put_done() on, which does
 * not raise: the caller reserves slots in between, under the latch.
 */
PutNote *
aq_note_put(AqQueueShm *shm)
{
	PutNote    *note = MemoryContextAllocZero(aq_notes_context(), sizeof(PutNote));

	if (nputs == puts_size)
		put_notes = grow(put_notes, &puts_size, sizeof(PutNote *));
	if (puts_of(shm) == NULL)
	{
		if (nqueues == queues_size)
			queue_puts = grow(queue_puts, &queues_size, sizeof(QueuePuts));
		queue_puts[nqueues++] = (QueuePuts) {.shm = shm};
	}
	note->shm = shm;
	note->subid = GetCurrentSubTransactionId();
	return note;
}

void
aq_note_put_done(PutNote *note)
{
	Assert(nputs < puts_size);
	put_notes[nputs++] = note;
	puts_of(note->shm)->notes++;
}

/* --- takes ---------------------------------------------------------------------------- */

/* memory made ready by aq_note_take_reserve */
static TakeNote *spare;

static TakeNote *
new_take(uint32 size)
{
	TakeNote   *note = MemoryContextAllocZero(aq_notes_context(), sizeof(TakeNote));

	note->slots = MemoryContextAlloc(aq_notes_context(), size * sizeof(uint16));
	note->size = size;
	return note;
}

/*
 * See to it that the next n aq_note_take() calls, all for one partition,
 * consumer and mode, need no memory.
 */
void
aq_note_take_reserve(AqQueueShm *shm, uint32 n)
{
	if (ntakes == takes_size)
		take_notes = grow(take_notes, &takes_size, sizeof(TakeNote *));
	n = Min(n, PARTITION_SLOTS);
	if (spare == NULL || spare->size < n)
		spare = new_take(Max(n, 16));
}

static void
note_take(Partition *partition, AqQueueShm *shm, int position, AqMode mode, bool own,
		  TakeNote *locked, uint32 slot)
{
	SubTransactionId subid = GetCurrentSubTransactionId();
	TakeNote   *note = ntakes > 0 ? take_notes[ntakes - 1] : NULL;

	if (note == NULL || note->partition != partition || note->position != position ||
		note->mode != mode || note->own != own || note->locked != locked ||
		note->subid != subid || note->count == note->size)
	{
		Assert(spare != NULL && ntakes < takes_size);
		note = spare;
		spare = NULL;
		note->partition = partition;
		note->shm = shm;
		note->subid = subid;
		note->position = position;
		note->mode = mode;
		note->own = own;
		note->locked = locked;
		note->tried = NULL;
		note->count = 0;
		take_notes[ntakes++] = note;
	}
	note->slots[note->count++] = slot;
}

/* Note one message as taken.  Latch held; reserved before. */
void
aq_note_take(Partition *partition, AqQueueShm *shm, int position, AqMode mode,
			 bool own, uint32 slot)
{
	note_take(partition, shm, position, mode, own, NULL, slot);
}

/* The transaction consumes a message that it keeps locked: it moves from one note to another. */
void
aq_note_take_locked(TakeNote *locked, uint32 at, AqMode mode)
{
	uint32		slot = locked->slots[at];

	aq_note_take_reserve(locked->shm, 1);
	if (locked->tried == NULL)
		locked->tried = MemoryContextAllocZero(aq_notes_context(), PARTITION_SLOTS / 8);
	locked->slots[at] = locked->slots[--locked->count];
	note_take(locked->partition, locked->shm, locked->position, mode, locked->own, locked, slot);
}

/*
 * The subtransaction is rolled back.  What the transaction had locked before,
 * it has locked again; the attempt counts when it lets go of that.  That note
 * has room: it cannot have grown, since only the last note does.
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

/*
 * The row of a message that was noted last, or just before the last, says when
 * it was enqueued.  It does not matter which of the take's notes keeps that:
 * they are settled together.
 */
void
aq_note_consumed(AqMode mode, TimestampTz enqueued)
{
	if (mode == AQ_MODE_REMOVE || mode == AQ_MODE_REMOVE_NODATA)
		aq_consumed_add(&take_notes[ntakes - 1]->consumed, enqueued);
}

/* The note by which this transaction keeps the message locked, or NULL. */
TakeNote *
aq_note_find_locked(Partition *partition, int position, uint32 slot, uint32 *at)
{
	for (int i = 0; i < ntakes; i++)
	{
		TakeNote   *note = take_notes[i];

		if (note->mode != AQ_MODE_LOCKED || note->partition != partition ||
			note->position != position)
			continue;
		for (uint32 j = 0; j < note->count; j++)
			if (note->slots[j] == slot)
			{
				*at = j;
				return note;
			}
	}
	return NULL;
}

/*
 * What the worker's transaction does in shared memory when it commits: before
 * its locks go, so that whoever waits for them sees the tables and shared
 * memory agree.  Must not raise; forgotten when the transaction aborts.
 */
static void (*commit_callback) (void *arg);
static void *commit_arg;

void
aq_at_commit(void (*callback) (void *arg), void *arg)
{
	Assert(commit_callback == NULL);
	commit_callback = callback;
	commit_arg = arg;
}

/* --- the end of a transaction ----------------------------------------------------------------- */

static void
forget_everything(void)
{
	nputs = ntakes = nqueues = 0;
	aq_own_forget();
	spare = NULL;
	if (context != NULL)
		MemoryContextReset(context);
}

static bool
is_removal(const TakeNote *note)
{
	return note->mode != AQ_MODE_LOCKED && note->mode != AQ_MODE_BROWSE;
}

/* Write the dequeue log: the truth about what was taken. */
static void
write_log(bool preparing)
{
	for (int i = 0; i < ntakes; i++)
	{
		TakeNote   *note = take_notes[i];

		if (note->count == 0 || aq_xact_dropped(note->shm->queue_id))
			continue;
		if (is_removal(note))
			aq_heap_write_log(note->partition, note->mode == AQ_MODE_PURGE ? LOG_PURGED : LOG_TAKEN,
						 0, note->position, note->slots, note->count);
		else if (preparing)
			aq_heap_write_log(note->partition, LOG_LOCKED, 0, note->position, note->slots, note->count);
	}
}

static void
settle_all(bool commit)
{
	TransactionId xid = GetTopTransactionIdIfAny();

	/* puts first: own messages may have been taken as well */
	for (int i = 0; i < nputs; i++)
		aq_settle_put(put_notes[i], commit, xid);
	if (commit && nputs > 0)
		aq_point_held("messages-published");
	for (int i = 0; i < ntakes; i++)
		aq_settle_take(take_notes[i], commit, !proc_exit_inprogress, xid);
}

static bool
has_notes(void)
{
	return nputs > 0 || ntakes > 0;
}

static void
pre_commit(void)
{
	if (ntakes > 0)
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
	if (commit_callback != NULL)
		commit_callback(commit_arg);
	commit_callback = NULL;
	forget_everything();
	aq_tables_xact_end();
}

static void
pre_prepare(void)
{
	write_log(true);
	if (has_notes())
		aq_doubt_prepare(GetTopTransactionId());
}

static void
prepare(void)
{
	aq_doubt_prepared();
	forget_everything();
}

static void
abort_transaction(void)
{
	commit_callback = NULL;
	settle_all(false);
	aq_doubt_cancel();
	forget_everything();
	aq_tables_subabort(InvalidSubTransactionId);
	aq_tables_xact_end();
}

/*
 * Notes of a subtransaction and of what it contains are the last ones, because
 * ids grow and committed ones have been handed to their parents.
 */
static void
subcommit(SubTransactionId subid, SubTransactionId parent)
{
	for (int i = nputs - 1; i >= 0 && put_notes[i]->subid >= subid; i--)
		put_notes[i]->subid = parent;
	for (int i = ntakes - 1; i >= 0 && take_notes[i]->subid >= subid; i--)
		take_notes[i]->subid = parent;
	aq_tables_subcommit(subid, parent);
}

static void
subabort(SubTransactionId subid)
{
	TransactionId xid = GetTopTransactionIdIfAny();

	while (ntakes > 0 && take_notes[ntakes - 1]->subid >= subid)
		undo_take(take_notes[--ntakes], subid, xid);
	while (nputs > 0 && put_notes[nputs - 1]->subid >= subid)
	{
		PutNote    *note = put_notes[--nputs];

		puts_of(note->shm)->notes--;
		aq_own_remove(note, nputs);
		aq_settle_put(note, false, xid);
	}
	spare = NULL;
	aq_tables_subabort(subid);
}

const AqStoreXact aq_notes_xact = {
	.has_notes = has_notes,
	.pre_commit = pre_commit,
	.commit = commit,
	.pre_prepare = pre_prepare,
	.prepare = prepare,
	.abort = abort_transaction,
	.subcommit = subcommit,
	.subabort = subabort,
};
