/*-------------------------------------------------------------------------
 *
 * topic.c
 *	  The consumers of a topic's message: finding out when the last one has
 *	  finished with it.
 *
 * A consumer that has taken its own row checks those of the others.  If
 * another consumer still has to dequeue the message, that one will check
 * later.  If all have finished, this transaction deletes the message.  If
 * running transactions have taken rows, the outcome is not known, so a row at
 * POSITION_CHECK requests the worker to check again.
 *
 * If two consumers take their rows at the same time, at least the one that
 * checks later sees that the other has taken its row, so at least one makes
 * the request.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "classic/classic_private.h"

#include "access/htup_details.h"

/* Does the consumer whose row is in the slot still have to dequeue it? */
static bool
is_waiting(RowScan *consumers)
{
	if (TransactionIdIsValid(consumers->dirty.xmax))
		return false;
	slot_getsomeattrs(consumers->slot, COL_STATE + 1);
	return DatumGetInt16(consumers->slot->tts_values[COL_STATE]) != STATE_EXPIRED;
}

/* The state of the other consumers of a message. */
TopicOthers
aq_topic_others(AqQueue *queue, RowScan *consumers, const Bitmapset *targets, const Key *key, int position)
{
	static int	slow = -1;		/* a consumer that had not dequeued at the last check */
	TopicOthers others = OTHERS_DONE;
	int			other = -1;

	/* probably it still has not dequeued: then no other check is necessary */
	if (slow >= 0 && slow != position && bms_is_member(slow, targets) &&
		aq_row_scan_find(consumers, queue->id, slow, key) && is_waiting(consumers))
		return OTHERS_WAIT;
	while ((other = bms_next_member(targets, other)) >= 0)
	{
		if (other == position || !aq_row_scan_find(consumers, queue->id, other, key))
			continue;
		if (TransactionIdIsValid(consumers->dirty.xmax))
		{
			others = OTHERS_UNKNOWN;
			continue;
		}
		if (is_waiting(consumers))
		{
			slow = other;
			return OTHERS_WAIT;
		}
		if (others == OTHERS_DONE)
			others = OTHERS_FAILED;
	}
	return others;
}

/* Requests the worker to check the message's consumers. */
void
aq_topic_ask(AqQueue *queue, Relation rel, const Key *key, TimestampTz when)
{
	Datum		values[COL_CONSUMER_COLUMNS] = {0};
	bool		nulls[COL_CONSUMER_COLUMNS] = {0};
	TupleTableSlot *slot = MakeSingleTupleTableSlot(RelationGetDescr(rel), &TTSOpsHeapTuple);

	values[COL_QUEUE] = Int32GetDatum(queue->id);
	values[COL_POSITION] = Int16GetDatum(POSITION_CHECK);
	values[COL_STATE] = Int16GetDatum(STATE_CHECK);
	values[COL_KEY1] = Int64GetDatum(key->key1);
	values[COL_KEY2] = Int64GetDatum(key->key2);
	values[COL_STEP] = Int64GetDatum(key->step);
	values[COL_NEXT_AT] = TimestampTzGetDatum(when);
	for (int i = COL_DEQUEUE_TIME; i < COL_CONSUMER_COLUMNS; i++)
		nulls[i] = true;
	ExecForceStoreHeapTuple(heap_form_tuple(RelationGetDescr(rel), values, nulls), slot, true);
	aq_table_row_insert(rel, &slot, 1);
	ExecDropSingleTupleTableSlot(slot);
	aq_due_time_announce(queue->shm, when);
}

/*
 * All consumers have finished: deletes the message, now or after its
 * retention.
 */
void
aq_topic_done(AqQueue *queue, RowScan *messages)
{
	if (queue->retention > 0)
	{
		const int	columns[] = {COL_STATE, COL_NEXT_AT, COL_DEQUEUE_TIME};
		TimestampTz now = GetCurrentTimestamp();
		Datum		values[] = {Int16GetDatum(STATE_PROCESSED),
			TimestampTzGetDatum(now + queue->retention), TimestampTzGetDatum(now)};

		(void) aq_table_row_update(messages->rel, messages->slot, columns, values, NULL, lengthof(columns));
		aq_due_time_announce(queue->shm, now + queue->retention);
	}
	else
		(void) aq_table_row_delete(messages->rel, messages->slot);
}

/*
 * The consumer at this position has finished with the message in the slot of
 * messages. consumers: a scan of table c that is not in use.
 */
void
aq_topic_check(AqQueue *queue, RowScan *consumers, RowScan *messages, const Key *key, int position)
{
	Bitmapset  *targets;

	slot_getsomeattrs(messages->slot, COL_TARGETS + 1);
	if (messages->slot->tts_isnull[COL_TARGETS])
		return;
	targets = aq_table_row_targets(messages->slot->tts_values[COL_TARGETS]);
	switch (aq_topic_others(queue, consumers, targets, key, position))
	{
		case OTHERS_WAIT:
			break;
		case OTHERS_DONE:
			aq_topic_done(queue, messages);
			break;
		case OTHERS_FAILED:
		case OTHERS_UNKNOWN:
			aq_topic_ask(queue, consumers->rel, key, GetCurrentTimestamp());
			break;
	}
	bms_free(targets);
}
