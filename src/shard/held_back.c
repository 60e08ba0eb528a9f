/*-------------------------------------------------------------------------
 *
 * held_back.c
 *	  Messages that are held back because a prepared transaction has taken an
 *	  earlier one of the same session.
 *
 * A dequeue goes through a stream's messages in their order.  When it meets one
 * that a prepared transaction has taken, it remembers the session that enqueued
 * it, and skips that session's later messages until COMMIT PREPARED or ROLLBACK
 * PREPARED.  Messages with a delay have no order, and a message that is asked
 * for by its id, or purged, does not overtake another.
 *
 * A message that is held back is not marked.  FrameSub.first and StreamSub.hint
 * move past it, so that the next dequeue does not look at it again, and are set
 * back when the prepared transaction ends.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/take.h"

#include "port/pg_bitutils.h"
#include "utils/memutils.h"

/* a hash table of sessions; 0: free */
static int64 *sessions;
static uint32 size;				/* a power of two */

/* Where the session is, or can be entered, among the first (mask + 1) places. */
static int64 *
find_place(const HeldBack *held, int64 session)
{
	uint32		i = (uint32) (((uint64) session * UINT64CONST(0x9E3779B97F4A7C15)) >> 32) & held->mask;

	while (sessions[i] != 0 && sessions[i] != session)
		i = (i + 1) & held->mask;
	return &sessions[i];
}

/* Make room for the sessions of so many messages.  No latch is held. */
static void
make_room(uint32 messages)
{
	if (sessions != NULL)
		pfree(sessions);
	sessions = NULL;
	size = 0;
	sessions = MemoryContextAllocHuge(TopMemoryContext, pg_nextpower2_32(2 * messages) * sizeof(int64));
	size = pg_nextpower2_32(2 * messages);
}

/* Take the stream's latch, to look for messages in it. */
void
aq_held_back_latch(Take *take, Stream *stream, AqLocation location)
{
	const AqTakeOptions *options = take->options;
	HeldBack   *held = &take->held;
	const StreamSub *ssub;

	memset(held, 0, sizeof(HeldBack));
	aq_latch_get(&stream->latch, AQ_EXCLUSIVE, location);
	while ((ssub = stream_sub(stream, options->position)) != NULL && ssub->ndoubt > size / 2)
	{
		uint32		messages = ssub->ndoubt;

		aq_latch_free(&stream->latch);
		make_room(messages);
		aq_latch_get(&stream->latch, AQ_EXCLUSIVE, location);
	}
	if (ssub == NULL || ssub->ndoubt == 0 || stream->delayed ||
		options->id != NULL || options->mode == AQ_MODE_PURGE)
		return;
	held->active = true;
	held->left = ssub->ndoubt;
	held->mask = pg_nextpower2_32(2 * ssub->ndoubt) - 1;
	held->partition = partition_at(stream->head);
	memset(sessions, 0, (held->mask + 1) * sizeof(int64));
}

/* Enter the sessions of what was taken before this slot.  Latch held. */
static void
look_up_to(Take *take, const Partition *partition, uint32 slot)
{
	HeldBack   *held = &take->held;

	while (held->left > 0 && held->partition != NULL)
	{
		const Partition *p = held->partition;
		const FrameSub *sub = p->frame != 0 ? frame_sub(frame_of(p), take->options->position) : NULL;
		int			next = sub == NULL || sub->ndoubt == 0 ? AQ_BITMAP_NONE
			: aq_bitmap_next(bitmap_of(sub->doubt), PARTITION_SLOTS, held->slot);

		if (p == partition && (next < 0 || next >= (int) slot))
			break;
		if (next < 0)
		{
			held->partition = partition_at(p->next);
			held->slot = 0;
			continue;
		}
		*find_place(held, slot_at(frame_of(p), next)->session) = slot_at(frame_of(p), next)->session;
		held->slot = next + 1;
		held->left--;
	}
}

/*
 * Is the message held back?  Those of one hold of the latch are asked for in
 * their order.
 */
bool
aq_held_back_is(Take *take, const Partition *partition, uint32 slot)
{
	look_up_to(take, partition, slot);
	return *find_place(&take->held, slot_at(frame_of(partition), slot)->session) != 0;
}

/* Are all messages of the partition, which is not resident? */
bool
aq_held_back_are(Take *take, const Partition *partition)
{
	if (!partition->counted || partition->more_sessions)
		return false;
	look_up_to(take, partition, 0);
	for (int i = 0; i < PARTITION_SESSIONS; i++)
		if (partition->sessions[i] != 0 && *find_place(&take->held, partition->sessions[i]) == 0)
			return false;
	return true;
}

/*
 * A prepared transaction that had taken messages of the partition has ended:
 * what was passed by behind them may be had now.  Returns how many messages
 * there may be at most.  Latch held.
 */
uint32
aq_held_back_end(Stream *stream, Partition *partition, int position)
{
	StreamSub  *ssub = stream_sub(stream, position);
	uint32		n = Min(ssub->ready, PG_INT32_MAX);

	if (ssub->hint != 0 && partition->number < partition_at(ssub->hint)->number)
		ssub->hint = partition->index;
	for (; partition != NULL; partition = partition_at(partition->next))
	{
		FrameSub   *sub;

		if (partition->frame == 0)
			n = PG_INT32_MAX;
		else if ((sub = frame_sub(frame_of(partition), position)) != NULL)
			sub->first = 0;
	}
	return n;
}
