/*-------------------------------------------------------------------------
 *
 * notes.c
 *	  Notes: what the running transaction has enqueued and taken.
 *
 * A note lists slots that are pending because of this transaction, or messages
 * that it has taken for a consumer.  It belongs to a subtransaction: if that
 * commits, its notes pass to the parent; if it aborts, they are settled, by
 * shard_xact.c.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/notes/notes_private.h"

#include "access/xact.h"
#include "utils/memutils.h"

static MemoryContext context;	/* for notes; reset at the end of the transaction */
static PutNote **put_notes;
static int	nputs,
			puts_size;
static TakeNote **take_notes;
static int	ntakes,
			takes_size;

/* partitions in the notes; one to which the transaction has come back counts again */
static uint32 nframes;

uint32
aq_notes_frames(void)
{
	return nframes;
}

static inline void
count_frame(void)
{
	if (nframes++ == 0)
		aq_users_show_keeping(true);
}

MemoryContext
aq_notes_context(void)
{
	if (context == NULL)
		context = AllocSetContextCreate(TopMemoryContext, "pgaq notes", ALLOCSET_DEFAULT_SIZES);
	return context;
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

/* The queues into which the transaction has enqueued. */
typedef struct QueuePuts
{
	AqQueueShm *shm;
	int			notes;
	uint64		messages;
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

uint64
aq_notes_enqueued(const AqQueueShm *shm)
{
	QueuePuts  *puts = puts_of(shm);

	return puts != NULL ? puts->messages : 0;
}

static void
count_puts(const PutNote *note, int sign)
{
	QueuePuts  *puts = puts_of(note->shm);

	puts->notes += sign;
	puts->messages += sign * (int64) note->count;
}

/*
 * Allocates a note of an enqueue.  It becomes effective by aq_notes_add_put(),
 * which does not raise errors: the caller reserves slots in between, under the
 * latch.
 */
PutNote *
aq_notes_new_put(AqQueueShm *shm)
{
	PutNote    *note = MemoryContextAllocZero(aq_notes_context(), sizeof(PutNote));

	put_notes = aq_array_room(put_notes, &puts_size, nputs + 1, sizeof(PutNote *));
	if (puts_of(shm) == NULL)
	{
		queue_puts = aq_array_room(queue_puts, &queues_size, nqueues + 1, sizeof(QueuePuts));
		queue_puts[nqueues++] = (QueuePuts) {.shm = shm};
	}
	note->shm = shm;
	note->subid = GetCurrentSubTransactionId();
	return note;
}

void
aq_notes_add_put(PutNote *note)
{
	Assert(nputs < puts_size);
	if (nputs == 0 || put_notes[nputs - 1]->partition != note->partition)
		count_frame();
	put_notes[nputs++] = note;
	count_puts(note, 1);
}

/* --- takes ---------------------------------------------------------------------------- */

/* memory allocated by aq_notes_reserve_take */
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
 * Allocates memory for the next n calls of aq_notes_add_take(), all for the
 * same partition, consumer and mode.
 */
void
aq_notes_reserve_take(AqQueueShm *shm, uint32 n)
{
	take_notes = aq_array_room(take_notes, &takes_size, ntakes + 1, sizeof(TakeNote *));
	n = Min(n, PARTITION_SLOTS);
	if (spare == NULL || spare->size < n)
		spare = new_take(Max(n, 16));
}

static void
note_take(Partition *partition, AqQueueShm *shm, int position, AqMode mode, bool own,
		  TakeNote *locked, const LeaseTerms *terms, uint32 immediate, uint32 slot)
{
	SubTransactionId subid = GetCurrentSubTransactionId();
	TakeNote   *note = ntakes > 0 ? take_notes[ntakes - 1] : NULL;
	static const LeaseTerms no_terms;

	if (terms == NULL)
		terms = &no_terms;
	if (note == NULL || note->partition != partition || note->position != position ||
		note->mode != mode || note->own != own || note->locked != locked || note->immediate != immediate ||
		note->subid != subid || note->terms.receipt != terms->receipt || note->terms.span != terms->span ||
		note->terms.until != terms->until || note->terms.detail != terms->detail || note->count == note->size)
	{
		Assert(spare != NULL && ntakes < takes_size);
		if (note == NULL || note->partition != partition)
			count_frame();
		note = spare;
		spare = NULL;
		note->partition = partition;
		note->shm = shm;
		note->subid = subid;
		note->position = position;
		note->mode = mode;
		note->own = own;
		note->locked = locked;
		note->last = note->alone = false;
		note->immediate = immediate;
		note->consumed = (AqConsumed) {0};
		note->latencies.total = note->latencies.used = 0;
		note->tried = NULL;
		note->terms = *terms;
		note->count = 0;
		take_notes[ntakes++] = note;
	}
	note->slots[note->count++] = slot;
}

/*
 * Notes one message as taken.  The caller holds the latch and has reserved
 * memory.  immediate: see TakeNote.
 */
void
aq_notes_add_take(Partition *partition, AqQueueShm *shm, int position, AqMode mode,
				  bool own, uint32 immediate, uint32 slot)
{
	note_take(partition, shm, position, mode, own, NULL, NULL, immediate, slot);
}

/*
 * The same of a message that is taken with a lease, or whose lease is to end or to
 * be extended.  What terms point to outlives the transaction's notes.
 */
void
aq_notes_add_lease(Partition *partition, AqQueueShm *shm, int position, AqMode mode,
				   const LeaseTerms *terms, uint32 slot)
{
	note_take(partition, shm, position, mode, false, NULL, terms, 0, slot);
}

/*
 * Called when the transaction consumes a message that it has locked: the
 * message moves from one note to another.
 */
void
aq_notes_take_locked(TakeNote *locked, uint32 at, AqMode mode)
{
	uint32		slot = locked->slots[at];

	aq_notes_reserve_take(locked->shm, 1);
	if (locked->tried == NULL)
		locked->tried = MemoryContextAllocZero(aq_notes_context(), PARTITION_SLOTS / 8);
	locked->slots[at] = locked->slots[--locked->count];
	note_take(locked->partition, locked->shm, locked->position, mode, locked->own, locked, NULL, 0, slot);
}

/*
 * Adds the times of a message that was just noted; now: when the take began.  It
 * does not matter which of the take's notes has them, because they are settled
 * together.
 */
void
aq_notes_consumed(AqMode mode, TimestampTz now, const AqMessage *message)
{
	TakeNote   *note;

	if (mode != AQ_MODE_REMOVE && mode != AQ_MODE_REMOVE_NODATA && mode != AQ_MODE_MOVE)
		return;
	note = take_notes[ntakes - 1];
	aq_consumed_add(&note->consumed, message->enqueue_time);
	aq_latency_add(&note->latencies, now, message->enqueue_time, message->ready_at);
}

/* --- messages that may fail for good: see "Poison messages" in queue/README.md ----------- */

static uint32 nlast;			/* notes with "last" */

/* The number of the note's messages for which a rollback, or a commit, ends an attempt. */
static uint32
failing(const TakeNote *note, bool commit)
{
	uint32		n = 0;

	if (note->own)
		return 0;				/* lost when the transaction is rolled back */
	if (note->mode == AQ_MODE_REMOVE || note->mode == AQ_MODE_REMOVE_NODATA || note->mode == AQ_MODE_LEASE)
		return commit ? 0 : note->count;
	for (uint32 i = 0; i < note->count && note->tried != NULL; i++)
		if (aq_bitmap_test(note->tried, note->slots[i]))
			n++;
	return n;
}

/* Has the transaction dequeued messages of the queue that others have enqueued? */
bool
aq_notes_have_takes(const AqQueueShm *shm)
{
	for (int i = ntakes - 1; i >= 0; i--)
		if (take_notes[i]->shm == shm && failing(take_notes[i], false) > 0)
			return true;
	return false;
}

/* How many of the consumer's messages the transaction has taken. */
uint32
aq_notes_count_takes(const AqQueueShm *shm, int position)
{
	uint32		n = 0;

	for (int i = 0; i < ntakes; i++)
		if (take_notes[i]->shm == shm && take_notes[i]->position == position && !take_notes[i]->own)
			n += take_notes[i]->count;
	return n;
}

/* For how many consumers the transaction has enqueued the message; 0: it has not. */
uint32
aq_notes_enqueued_for(const Partition *partition, uint32 number)
{
	for (int i = 0; i < nputs; i++)
	{
		const PutNote *note = put_notes[i];

		if (note->partition == partition && put_note_has(note, number))
		{
			Bitmapset  *targets = note->targets ? note->targets[number - note->first] : note->shared_targets;

			return targets != NULL ? bms_num_members(targets) : 1;
		}
	}
	return 0;
}

/* For how many consumers the commit of the transaction finishes the message. */
uint32
aq_notes_finishes(const Partition *partition, uint32 number)
{
	uint32		n = 0;

	for (int i = 0; i < ntakes; i++)
	{
		const TakeNote *note = take_notes[i];

		if (note->partition != partition ||
			!(note->mode == AQ_MODE_REMOVE || note->mode == AQ_MODE_REMOVE_NODATA || note->mode == AQ_MODE_MOVE ||
			  note->mode == AQ_MODE_PURGE || note->mode == AQ_MODE_ACKNOWLEDGE || note->mode == AQ_MODE_REJECT))
			continue;
		for (uint32 j = 0; j < note->count; j++)
			n += note->slots[j] == number;
	}
	return n;
}

/*
 * The next failure of the message just noted is its last one: the transaction
 * does not get other messages of the queue.
 */
void
aq_notes_mark_last(void)
{
	TakeNote   *note = take_notes[ntakes - 1];

	if (!note->last)
		nlast++;
	note->last = true;
}

/* Has the transaction such a message of the queue? */
bool
aq_notes_have_last(const AqQueueShm *shm)
{
	for (int i = ntakes - 1; i >= 0 && nlast > 0; i--)
		if (take_notes[i]->shm == shm && take_notes[i]->last)
			return true;
	return false;
}

static bool
is_alone(const TakeNote *note, SubTransactionId subid, bool commit)
{
	if (failing(note, commit) != 1)
		return false;
	for (int i = ntakes - 1; i >= 0 && take_notes[i]->subid >= subid; i--)
		if (take_notes[i] != note && take_notes[i]->shm == note->shm && failing(take_notes[i], commit) > 0)
			return false;
	return true;
}

/*
 * The subtransaction with its children, or with an invalid id the whole
 * transaction, is about to end: is a note's message the only one of its queue
 * that fails?
 */
void
aq_notes_find_alone(SubTransactionId subid, bool commit)
{
	for (int i = ntakes - 1; i >= 0 && take_notes[i]->subid >= subid; i--)
		take_notes[i]->alone = is_alone(take_notes[i], subid, commit);
}

/* The note of this transaction's lock of the message, or NULL. */
TakeNote *
aq_notes_find_locked(Partition *partition, int position, uint32 slot, uint32 *at)
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
 * --- the worker's callback at commit
 * ------------------------------------------------------------
 */

/*
 * The changes of shared memory that the worker's transaction makes when it
 * commits, before its locks are released, so that for sessions that wait for
 * these locks the tables and shared memory agree.  It must not raise an error.
 * An abort cancels it.
 */
static void (*commit_callback) (void *arg);
static void *commit_arg;

void
aq_notes_at_commit(void (*callback) (void *arg), void *arg)
{
	Assert(commit_callback == NULL);
	commit_callback = callback;
	commit_arg = arg;
}

/* Called after the commit. */
void
aq_notes_run_at_commit(void)
{
	if (commit_callback != NULL)
		commit_callback(commit_arg);
	commit_callback = NULL;
}

/* --- the end of a (sub)transaction ---------------------------------------------------- */

/*
 * The notes of a subtransaction and its children are the last ones, because
 * ids grow, and notes of committed children have passed to their parents.
 */
void
aq_notes_subcommit(SubTransactionId subid, SubTransactionId parent)
{
	for (int i = nputs - 1; i >= 0 && put_notes[i]->subid >= subid; i--)
		put_notes[i]->subid = parent;
	for (int i = ntakes - 1; i >= 0 && take_notes[i]->subid >= subid; i--)
		take_notes[i]->subid = parent;
}

/*
 * Removes the last note of a dequeue, if it belongs to the subtransaction, and
 * returns it; NULL: no such note.
 */
TakeNote *
aq_notes_pop_take(SubTransactionId subid)
{
	if (ntakes == 0 || take_notes[ntakes - 1]->subid < subid)
		return NULL;
	nlast -= take_notes[ntakes - 1]->last;
	return take_notes[--ntakes];
}

/* The same for an enqueue; *number: the note's number. */
PutNote *
aq_notes_pop_put(SubTransactionId subid, int *number)
{
	PutNote    *note;

	if (nputs == 0 || put_notes[nputs - 1]->subid < subid)
		return NULL;
	note = put_notes[--nputs];
	*number = nputs;
	count_puts(note, -1);
	return note;
}

/* --- the end of a call with immediate visibility: see frozen.c -------------------------- */

/* A note of the dequeue with this number; NULL: there is none. */
TakeNote *
aq_notes_find_immediate(uint32 number)
{
	for (int i = ntakes - 1; i >= 0; i--)
		if (take_notes[i]->immediate == number)
			return take_notes[i];
	return NULL;
}

static void
forget_frame(void)
{
	if (--nframes == 0)
		aq_users_show_keeping(false);
}

/* It is settled.  Its memory is for the next one. */
void
aq_notes_remove_take(TakeNote *note)
{
	int			i = ntakes - 1;

	while (take_notes[i] != note)
		i--;
	nlast -= note->last;
	/* as it was counted, unless there are others behind it */
	if (i == ntakes - 1 && (i == 0 || take_notes[i - 1]->partition != note->partition))
		forget_frame();
	memmove(&take_notes[i], &take_notes[i + 1], (ntakes - 1 - i) * sizeof(TakeNote *));
	ntakes--;
	if (spare == NULL)
	{
		spare = note;
		return;
	}
	pfree(note->slots);
	pfree(note);
}

/* The same for the last enqueue. */
void
aq_notes_remove_put(PutNote *note)
{
	Assert(nputs > 0 && put_notes[nputs - 1] == note);
	nputs--;
	count_puts(note, -1);
	if (nputs == 0 || put_notes[nputs - 1]->partition != note->partition)
		forget_frame();
	bms_free(note->shared_targets);
	pfree(note);
}

/* Removes all notes, after the transaction has ended and they were settled. */
void
aq_notes_forget(void)
{
	if (nframes > 0)
		aq_users_show_keeping(false);
	nputs = ntakes = nqueues = 0;
	nlast = nframes = 0;
	commit_callback = NULL;
	spare = NULL;
	if (context != NULL)
		MemoryContextReset(context);
}
