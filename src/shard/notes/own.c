/*-------------------------------------------------------------------------
 *
 * own.c
 *	  A transaction's own uncommitted messages, which it may dequeue.
 *
 * These messages are not ready, so other sessions do not see them.  For each
 * partition and consumer from which the transaction dequeues, there is a view
 * of its own messages with two bitmaps: those that it can still take, and
 * those that it has taken.  A view is made at the first dequeue from the
 * transaction's notes of enqueues; later notes are added.  So each message is
 * processed once for each consumer.
 *
 * The views are in the session's own memory, which is freed at the end of the
 * transaction.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/notes/notes_private.h"

#include "utils/memutils.h"

struct OwnView
{
	Partition  *partition;
	int			position;
	int			seen;			/* number of notes that were added to the bitmaps */
	uint32		ntaken;
	uint64_t   *left;			/* NULL: the partition has none of the transaction's messages */
	uint64_t   *taken;
};

#define BITMAP_SIZE (PARTITION_SLOTS / 8)

static OwnView **views;			/* valid until the end of the transaction */
static int	nviews,
			views_size;

static OwnView *
find_view(const Partition *partition, int position)
{
	for (int i = nviews - 1; i >= 0; i--)
		if (views[i]->partition == partition && views[i]->position == position)
			return views[i];
	return NULL;
}

static OwnView *
new_view(Partition *partition, int position)
{
	OwnView    *view = MemoryContextAllocZero(TopTransactionContext, sizeof(OwnView));

	views = aq_array_room(views, &views_size, nviews + 1, sizeof(OwnView *));
	view->partition = partition;
	view->position = position;
	views[nviews++] = view;
	return view;
}

/* Adds the messages of one note that the consumer may take. */
static void
add_note(OwnView *view, const PutNote *note)
{
	/* delayed messages cannot be dequeued before the commit */
	if (note->partition != view->partition || note->ready_at != 0)
		return;
	if (view->left == NULL)
	{
		view->taken = MemoryContextAllocZero(TopTransactionContext, BITMAP_SIZE);
		view->left = MemoryContextAllocZero(TopTransactionContext, BITMAP_SIZE);
	}
	for (uint32 i = 0; i < note->count; i++)
	{
		Bitmapset  *targets = note->targets ? note->targets[i] : note->shared_targets;

		if (targets == NULL || bms_is_member(view->position, targets))
			(void) aq_bitmap_set(view->left, note->first + i);
	}
}

/*
 * The current view of a partition for a consumer.  Not to be called under a
 * latch.
 */
OwnView *
aq_own_view(Partition *partition, int position, PutNote *const *notes, int n)
{
	OwnView    *view = find_view(partition, position);

	if (view == NULL)
		view = new_view(partition, position);
	for (; view->seen < n && notes[view->seen]->inserted; view->seen++)
		add_note(view, notes[view->seen]);
	return view;
}

/* The first message at or after "from" that can be taken. */
int
aq_own_next(const OwnView *view, uint32 from)
{
	return view->left == NULL ? AQ_BITMAP_NONE : aq_bitmap_next(view->left, PARTITION_SLOTS, from);
}

/* Returns false if the message cannot be taken. */
bool
aq_own_take(OwnView *view, uint32 number)
{
	if (view->left == NULL || !aq_bitmap_clear(view->left, number))
		return false;
	(void) aq_bitmap_set(view->taken, number);
	view->ntaken++;
	return true;
}

/* The subtransaction that has taken the messages was rolled back. */
void
aq_own_give_back(Partition *partition, int position, const uint16 *slots, uint32 n)
{
	OwnView    *view = find_view(partition, position);

	for (uint32 i = 0; i < n && view != NULL && view->taken != NULL; i++)
		if (aq_bitmap_clear(view->taken, slots[i]))
		{
			view->ntaken--;
			(void) aq_bitmap_set(view->left, slots[i]);
		}
}

/*
 * The last note, which had this number, was removed, because its
 * subtransaction was rolled back.
 */
void
aq_own_remove(const PutNote *note, int number)
{
	for (int i = 0; i < nviews; i++)
	{
		OwnView    *view = views[i];

		view->seen = Min(view->seen, number);
		if (view->partition != note->partition || view->left == NULL)
			continue;
		for (uint32 s = 0; s < note->count; s++)
			(void) aq_bitmap_clear(view->left, note->first + s);
	}
}

/*
 * Called at commit if nothing has to be settled for this message and consumer.
 */
void
aq_own_leave(const Partition *partition, int position, uint32 number)
{
	OwnView    *view = find_view(partition, position);

	if (aq_bitmap_clear(view->taken, number))
		view->ntaken--;
}

/* Keeps those slots of a take that must be settled; returns their number. */
uint32
aq_own_keep(const Partition *partition, int position, uint16 *slots, uint32 n)
{
	const OwnView *view = find_view(partition, position);
	uint32		kept = 0;

	for (uint32 i = 0; i < n; i++)
		if (aq_bitmap_test(view->taken, slots[i]))
			slots[kept++] = slots[i];
	return kept;
}

/* Has the transaction taken its own messages from the partition? */
bool
aq_own_has_taken(const Partition *partition)
{
	for (int i = 0; i < nviews; i++)
		if (views[i]->partition == partition && views[i]->ntaken > 0)
			return true;
	return false;
}

/*
 * The next consumer for which the transaction has taken this message of its
 * own; -1: none. *cursor is initially 0.
 */
int
aq_own_taker(const Partition *partition, uint32 number, int *cursor)
{
	while (*cursor < nviews)
	{
		OwnView    *view = views[(*cursor)++];

		if (view->partition == partition && view->taken != NULL && aq_bitmap_test(view->taken, number))
			return view->position;
	}
	return -1;
}

/* Called at the end of the transaction, whose memory is freed elsewhere. */
void
aq_own_forget(void)
{
	nviews = 0;
}
