/*-------------------------------------------------------------------------
 *
 * unfinished.c
 *	  Is a message done for all its consumers?  For unique keys.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/messages/messages_private.h"

#include "miscadmin.h"

/* The consumers that have not finished the message; 1 if another transaction's enqueue is not committed.  Latch held. */
static uint32
count(const Partition *partition, uint32 number)
{
	const Frame *frame = frame_of(partition);
	const Slot *slot;

	if (frame->segments[number / SEGMENT_SLOTS] == 0)
		return 0;
	slot = slot_at(frame, number);
	switch (slot->state)
	{
		case SLOT_PENDING:
		case SLOT_DOUBT:
			return Max(aq_notes_enqueued_for(partition, number), 1);
		case SLOT_WAITING:
		case SLOT_READY:
			return slot->open;
		default:
			return 0;
	}
}

/*
 * How many consumers have not finished the message, nor will have by the commit of this
 * transaction: a job can enqueue its successor.  0: all have, or there is no such
 * message.  loads: false: 1 if its partition is not in memory.
 */
uint32
aq_unfinished(AqQueue *queue, const pg_uuid_t *id, bool loads)
{
	int			stream_no;
	int64		ordinal;
	Stream	   *stream;

	if (!aq_message_id_parse(id, queue->shard_key, &stream_no, &ordinal) ||
		(stream = aq_stream_find(queue->shm, stream_no)) == NULL)
		return 0;
	for (;;)
	{
		Partition  *partition;
		bool		resident;
		uint32		found = 0;

		CHECK_FOR_INTERRUPTS();
		aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_DEQUEUE_BROWSE);
		partition = partition_at(stream->head);
		while (partition != NULL && partition->number != ordinal / PARTITION_SLOTS)
			partition = partition_at(partition->next);
		resident = partition == NULL || partition->frame != 0;
		if (partition != NULL && resident)
		{
			uint32		finishes = aq_notes_finishes(partition, ordinal % PARTITION_SLOTS);

			found = count(partition, ordinal % PARTITION_SLOTS);
			found -= Min(found, finishes);
		}
		aq_latch_free(&stream->latch);
		if (resident)
			return found;
		if (!loads)
			return 1;
		aq_load_for_take(queue->shm, partition, 1);
		aq_chunks_trim();
	}
}
