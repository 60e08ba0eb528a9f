/*-------------------------------------------------------------------------
 *
 * tag.h
 *	  Which correlations the messages of a frame may have, so that a search by
 *	  correlation need not read the rows of others: equal correlations have the
 *	  same tag, nearly all others have another one.
 *
 * The tags of a partition are 32 kB, which a search goes through in a few
 * microseconds.  Frames without correlations have none.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_TAG_H
#define AQ_TAG_H

#include "shard/partitions/layout.h"

#define TAG_NONE 0				/* no correlation */
#define TAG_UNKNOWN 1

/* tags that are compared together */
#define TAG_BLOCK 64

/* key: as in aq_waiters_key. */
static inline uint16
tag_of(uint32 key)
{
	return key == AQ_ANY_KEY ? TAG_UNKNOWN : key == AQ_NO_CORRELATION_KEY ? TAG_NONE : 2 + (key >> 2) % (PG_UINT16_MAX - 1);
}

static inline uint16
tag_at(const Frame *frame, uint32 slot)
{
	AqChunk		page = frame->tags[slot / TAGS_PER_CHUNK];

	return page == 0 ? TAG_NONE : ((uint16 *) aq_chunk_ptr(page))[slot % TAGS_PER_CHUNK];
}

/* Sets the tag of a slot of the session's own transaction; the latch is not needed. */
static inline void
tag_set(Frame *frame, uint32 slot, uint16 tag)
{
	if (tag != TAG_NONE)
		((uint16 *) aq_chunk_ptr(frame->tags[slot / TAGS_PER_CHUNK]))[slot % TAGS_PER_CHUNK] = tag;
}

static inline bool
tag_may_be(uint16 tag, uint16 wanted)
{
	return (tag == wanted) | (tag == TAG_UNKNOWN);
}

/* One loop without a branch, which compilers turn into vector instructions. */
static inline bool
tag_is_in_block(const uint16 *tags, uint16 wanted)
{
	uint16		found = 0;

	for (int i = 0; i < TAG_BLOCK; i++)
		found |= tag_may_be(tags[i], wanted);
	return found != 0;
}

static inline uint32
tag_next_of_page(const uint16 *tags, uint16 wanted, uint32 from)
{
	while (from < TAGS_PER_CHUNK)
		if (from % TAG_BLOCK == 0 && !tag_is_in_block(tags + from, wanted))
			from += TAG_BLOCK;
		else if (tag_may_be(tags[from], wanted))
			break;
		else
			from++;
	return from;
}

/*
 * The first slot from this one on whose message may have the correlation with this
 * tag; PARTITION_SLOTS: none.  Latch held.
 */
static inline uint32
tag_next(const Frame *frame, uint16 wanted, uint32 from)
{
	while (from < PARTITION_SLOTS)
	{
		uint32		page = from / TAGS_PER_CHUNK;
		uint32		next = wanted == TAG_NONE ? from % TAGS_PER_CHUNK : TAGS_PER_CHUNK;

		if (frame->tags[page] != 0)
			next = tag_next_of_page((uint16 *) aq_chunk_ptr(frame->tags[page]), wanted, from % TAGS_PER_CHUNK);
		from = page * TAGS_PER_CHUNK + next;
		if (next < TAGS_PER_CHUNK)
			break;
	}
	return from;
}

#endif							/* AQ_TAG_H */
