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

/*
 * The consumers that will not have finished the message after the commit of this
 * transaction; at least 1 if the enqueue is another's, and not committed.  Latch held.
 */
static uint32
count(const Partition *partition, uint32 number)
{
	const Frame *frame = frame_of(partition);
	const Slot *slot;
	uint32		consumers,
				finishes = aq_notes_finishes(partition, number);

	if (frame->segments[number / SEGMENT_SLOTS] == 0)
		return 0;
	slot = slot_at(frame, number);
	switch (slot->state)
	{
		case SLOT_PENDING:
		case SLOT_DOUBT:
			consumers = Max(aq_notes_enqueued_for(partition, number), 1);
			break;
		case SLOT_WAITING:
		case SLOT_READY:
			consumers = slot->open;
			break;
		default:
			consumers = 0;
			break;
	}
	return consumers - Min(consumers, finishes);
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
		bool		resident = true;
		uint32		found = 0;

		CHECK_FOR_INTERRUPTS();
		aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_DEQUEUE_BROWSE);
		partition = aq_stream_first_from(stream, ordinal / PARTITION_SLOTS);
		if (partition != NULL && partition->number == ordinal / PARTITION_SLOTS)
		{
			resident = partition->frame != 0;
			found = resident ? count(partition, ordinal % PARTITION_SLOTS) : 1;
		}
		aq_latch_free(&stream->latch);
		if (resident || !loads)
			return found;
		aq_load_for_take(queue->shm, partition, 1);
		aq_chunks_trim();
	}
}
