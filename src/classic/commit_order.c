/*-------------------------------------------------------------------------
 *
 * commit_order.c
 *	  Queue tables sorted by commit_time: numbering messages in the order of
 *	  commits.
 *
 * Until its transaction commits, a message is after all committed ones: its
 * second key is KEY_PENDING.  Before the commit, the transaction takes the
 * queue's commit lock, which it holds until its end, gets a number, and writes
 * it into the keys of its messages.  So transactions that enqueue into such a
 * queue commit one after the other, in the order of their numbers.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "classic/classic_private.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "storage/lock.h"
#include "utils/snapmgr.h"

/* A message that this transaction has enqueued. */
typedef struct Pending
{
	int32		queue;
	Key			key;
} Pending;

/* in TopMemoryContext, grown as needed, emptied at the transaction's end */
static Pending *pending;
static int	npending,
			pending_size;

void
aq_commit_order_note(const AqQueue *queue, const Key *key)
{
	pending = aq_array_room(pending, &pending_size, npending + 1, sizeof(Pending));
	pending[npending].queue = queue->id;
	pending[npending++].key = *key;
}

/* Called at the end of the transaction.  Does not raise an error. */
void
aq_commit_order_forget(void)
{
	npending = 0;
}

static void
lock_commits(AqQueue *queue)
{
	LOCKTAG		tag;

	SET_LOCKTAG_OBJECT(tag, MyDatabaseId, queue->owner_view, 0, 0);
	(void) LockAcquire(&tag, ExclusiveLock, false, false);
}

/*
 * Can the worker enqueue into the queue and commit without waiting?  Takes the
 * locks that this needs, until the end of the transaction.
 */
bool
aq_commit_order_may_put(AqQueue *queue)
{
	LOCKTAG		tag;

	SET_LOCKTAG_OBJECT(tag, MyDatabaseId, queue->owner_view, 0, 0);
	return aq_row_scan_try_lock(queue) &&
		(!sorts_by_commit(queue) || LockAcquire(&tag, ExclusiveLock, false, true) != LOCKACQUIRE_NOT_AVAIL);
}

/*
 * Sets the number of the row with this key; returns false if the row no longer
 * exists.
 */
static bool
set_number(RowScan *rows, AqQueue *queue, int position, const Key *key, int64 number)
{
	const int	column = COL_KEY2;
	Datum		value = Int64GetDatum(number);

	return aq_row_scan_find(rows, queue->id, position, key) &&
		!TransactionIdIsValid(rows->dirty.xmin) && !TransactionIdIsValid(rows->dirty.xmax) &&
		aq_table_row_update(rows->rel, rows->slot, &column, &value, NULL, 1) == TM_Ok;
}

/* The same for the rows of its consumers. */
static Bitmapset *
set_consumers(RowScan *messages, RowScan *consumers, AqQueue *queue, const Key *key, int64 number)
{
	Bitmapset  *targets;
	int			position = -1;

	slot_getsomeattrs(messages->slot, COL_TARGETS + 1);
	targets = aq_table_row_targets(messages->slot->tts_values[COL_TARGETS]);
	while ((position = bms_next_member(targets, position)) >= 0)
		(void) set_number(consumers, queue, position, key, number);
	return targets;
}

/* Numbers all messages of one queue. */
static void
number_queue(AqQueue *queue)
{
	RowScan		messages,
				consumers;
	int64		number;
	Bitmapset  *all_consumers = queue->multi ? NULL : bms_make_singleton(0);
	Key			lowest = KEY_LAST,
				highest = KEY_FIRST;

	aq_pins_pin(queue);
	lock_commits(queue);
	number = aq_step_next(queue->shm);
	aq_row_scan_open(&messages, queue, queue->table.messages, RowExclusiveLock);
	if (queue->multi)
		aq_row_scan_open(&consumers, queue, queue->table.consumers, RowExclusiveLock);
	for (uint32 i = 0; i < npending; i++)
	{
		Key			key = pending[i].key;

		if (pending[i].queue != queue->id || !set_number(&messages, queue, 0, &key, number))
			continue;
		if (queue->multi)
			all_consumers = bms_join(all_consumers, set_consumers(&messages, &consumers, queue, &key, number));
		key.key2 = number;
		if (key_compare(&key, &lowest) < 0)
			lowest = key;
		if (key_compare(&key, &highest) > 0)
			highest = key;
	}
	aq_row_scan_close(&messages, false);
	if (queue->multi)
		aq_row_scan_close(&consumers, false);
	if (key_compare(&lowest, &highest) <= 0)
		aq_ranges_announce_set(queue->shm, all_consumers, &lowest, &highest);
}

/*
 * The next queue in the order of ids, which avoids deadlocks between sessions.
 */
static int32
next_queue(int32 after)
{
	int32		next = 0;

	for (uint32 i = 0; i < npending; i++)
		if (pending[i].queue > after && (next == 0 || pending[i].queue < next))
			next = pending[i].queue;
	return next;
}

/* Called before the transaction commits or is prepared. */
void
aq_commit_order_number(void)
{
	int32		id = 0;

	if (npending == 0)
		return;
	PushActiveSnapshot(GetLatestSnapshot());
	while ((id = next_queue(id)) != 0)
	{
		AqQueue    *queue = aq_catalog_get_by_id(id, true);

		if (queue != NULL && !aq_pending_is_dropped(id))
			number_queue(queue);
	}
	PopActiveSnapshot();
}
