/*-------------------------------------------------------------------------
 *
 * held_back.c
 *	  Messages that are held back because a prepared transaction has taken an
 *	  earlier message of the same producer session.
 *
 * A dequeue skips the messages of a session after the first one that a
 * prepared transaction has taken, until COMMIT PREPARED or ROLLBACK PREPARED.
 * This does not apply to messages with a delay, which have no order, nor to a
 * dequeue by message id or a purge.
 *
 * A message that is held back is not marked.  FrameSub.first and
 * StreamSub.hint move past it, so that the next dequeue does not check it
 * again, and are moved back when the prepared transaction ends.
 *
 * Each backend keeps, for a stream and consumer, a map from session to the
 * lowest ordinal of that session that a prepared transaction has taken.  The
 * map is filled under the stream's latch, and again when
 * StreamSub.doubt_change has changed.  The values of doubt_change are unique
 * while shared memory exists, so a map of a dropped queue is never used for
 * another one.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/messages/take.h"

#include "utils/memutils.h"

typedef struct HeldSession
{
	int64		session;		/* 0: free */
	int64		ordinal;		/* the lowest ordinal of the session that is taken */
} HeldSession;

struct HeldMap
{
	uint64		change;			/* value of StreamSub.doubt_change when it was filled; 0: never */
	uint32		size;			/* size of the hash table, a power of two */
	uint32		used;
	HeldSession *places;
};

/* Streams that share a map replace each other's contents. */
#define MAPS 64
#define SMALLEST_MAP 64

static HeldMap maps[MAPS];

/* The entry of the session, or a free one. */
static HeldSession *
find_place(const HeldMap *map, int64 session)
{
	uint32		i = (uint32) (((uint64) session * UINT64CONST(0x9E3779B97F4A7C15)) >> 32) & (map->size - 1);

	while (map->places[i].session != 0 && map->places[i].session != session)
		i = (i + 1) & (map->size - 1);
	return &map->places[i];
}

/* Enlarges a map.  The caller holds no latch. */
static void
enlarge(HeldMap *map)
{
	uint32		size = Max(SMALLEST_MAP, 4 * map->size);

	map->change = 0;
	map->size = 0;
	if (map->places != NULL)
		pfree(map->places);
	map->places = NULL;
	map->places = MemoryContextAllocHuge(TopMemoryContext, size * sizeof(HeldSession));
	map->size = size;
}

/*
 * Enters the messages of a partition that prepared transactions have taken.
 * Returns false if the map is too small.  The caller holds the latch.
 */
static bool
enter_partition(HeldMap *map, const Partition *partition, const FrameSub *sub)
{
	const Frame *frame = frame_of(partition);
	int64		last = 0;
	int			slot = -1;

	while ((slot = aq_bitmap_next(bitmap_of(sub->doubt), PARTITION_SLOTS, slot + 1)) >= 0)
	{
		int64		session = slot_at(frame, slot)->session;
		HeldSession *place;

		if (session == last)
			continue;
		last = session;
		place = find_place(map, session);
		if (place->session != 0)
			continue;			/* entered by an earlier message */
		if (2 * ++map->used > map->size)
			return false;
		place->session = session;
		place->ordinal = ordinal_of(partition, slot);
	}
	return true;
}

/*
 * Fills the map again; returns false if it is too small.  The caller holds the
 * latch.
 */
static bool
fill(HeldMap *map, const Stream *stream, int position, const StreamSub *ssub)
{
	uint32		left = ssub->ndoubt;

	if (map->size == 0)
		return false;
	map->change = 0;
	map->used = 0;
	memset(map->places, 0, map->size * sizeof(HeldSession));
	for (const Partition *p = partition_at(stream->head); p != NULL && left > 0; p = partition_at(p->next))
	{
		const FrameSub *sub = p->frame != 0 ? frame_sub(frame_of(p), position) : NULL;

		if (sub == NULL || sub->ndoubt == 0)
			continue;
		if (!enter_partition(map, p, sub))
			return false;
		left -= sub->ndoubt;
	}
	map->change = ssub->doubt_change;
	return true;
}

/*
 * Takes the stream's latch for a search, with an up-to-date map in take->held.
 */
void
aq_held_back_latch(Take *take, Stream *stream, AqLocation location)
{
	const AqTakeOptions *options = take->options;
	HeldMap    *map = &maps[(stream->index + 31 * (uint32) options->position) % MAPS];

	take->held = NULL;
	aq_latch_get(&stream->latch, AQ_EXCLUSIVE, location);
	if (stream->delayed || options->id != NULL || options->mode == AQ_MODE_PURGE)
		return;
	for (;;)
	{
		const StreamSub *ssub = stream_sub(stream, options->position);

		if (ssub == NULL || ssub->ndoubt == 0)
			return;
		if (map->change == ssub->doubt_change || fill(map, stream, options->position, ssub))
			break;
		aq_latch_free(&stream->latch);
		enlarge(map);
		aq_latch_get(&stream->latch, AQ_EXCLUSIVE, location);
	}
	take->held = map;
}

/* Has a prepared transaction taken an earlier message of the session? */
static bool
is_behind(const HeldMap *map, int64 session, int64 ordinal)
{
	const HeldSession *place = find_place(map, session);

	return place->session != 0 && place->ordinal < ordinal;
}

/*
 * Is the message held back?  Call this function and the next one under the
 * same hold of the latch.
 */
bool
aq_held_back_is(const Take *take, const Partition *partition, uint32 slot)
{
	return take->held != NULL &&
		is_behind(take->held, slot_at(frame_of(partition), slot)->session, ordinal_of(partition, slot));
}

/* Are all messages of a partition that is not resident held back? */
bool
aq_held_back_are(const Take *take, const Partition *partition)
{
	if (take->held == NULL || !partition->counted || partition->more_sessions)
		return false;
	for (int i = 0; i < PARTITION_SESSIONS; i++)
		if (partition->sessions[i] != 0 &&
			!is_behind(take->held, partition->sessions[i], ordinal_of(partition, 0)))
			return false;
	return true;
}
