/*-------------------------------------------------------------------------
 *
 * frame.c
 *	  Allocating and freeing the frame of a partition; attempts; timers. slot.c
 *	  changes the slots and the consumers' bitmaps.
 *
 * Unless noted otherwise, the caller holds the latch of the partition's
 * stream.  Chunks are reserved before the latch is taken: the ..._needs
 * functions return the maximum number that a change may need.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/partitions/partitions_private.h"

/* (message, consumer)s in one transaction of the worker */
#define MOST_VIEWS 5000

/* --- making a frame ----------------------------------------------------------- */

/*
 * Chunks that aq_frame_sub_make and aq_frame_stream_sub_make need for the
 * consumer. *counted: the directory counted for the previous consumer, -1:
 * none.
 */
static uint32
sub_needs(Frame *frame, Stream *stream, int position, int *counted)
{
	uint32		needs = frame_sub(frame, position) == NULL ? 1 : 0;
	int			directory = position / SUBS_PER_CHUNK;

	if (position > 0 && directory != *counted)
	{
		if (frame->subs[directory] == 0)
			needs++;
		if (stream->subs[directory] == 0)
			needs++;
		*counted = directory;
	}
	return needs;
}

FrameSub *
aq_frame_sub_make(Frame *frame, int position)
{
	FrameSub   *sub = frame_sub(frame, position);

	if (sub != NULL)
		return sub;
	if (position == 0)
		sub = &frame->sub0;
	else
	{
		AqChunk    *chunk = &frame->subs[position / SUBS_PER_CHUNK];

		if (*chunk == 0)
			*chunk = aq_chunks_take();
		sub = (FrameSub *) aq_chunk_ptr(*chunk) + position % SUBS_PER_CHUNK;
	}
	aq_slot_make_bitmap(&sub->ready);
	aq_slot_pass(sub, PARTITION_SLOTS);
	return sub;
}

StreamSub *
aq_frame_stream_sub_make(Stream *stream, int position)
{
	AqChunk    *chunk;

	if (position == 0)
		return &stream->sub0;
	chunk = &stream->subs[position / SUBS_PER_CHUNK];
	if (*chunk == 0)
		*chunk = aq_chunks_take();
	return (StreamSub *) aq_chunk_ptr(*chunk) + position % SUBS_PER_CHUNK;
}

static uint32
timer_pages_needed(const Frame *frame, uint32 timers)
{
	uint32		total = frame->ntimers + frame->timers_reserved + timers;
	uint32		pages = (total + TIMERS_PER_CHUNK - 1) / TIMERS_PER_CHUNK;
	uint32		made = 0;

	if (timers == 0)
		return 0;
	if (frame->timers == 0)
		return 1 + pages;		/* including the directory */
	while (made < pages && ((AqChunk *) aq_chunk_ptr(frame->timers))[made] != 0)
		made++;
	return pages - made;
}

/*
 * The maximum number of chunks needed to use count slots from first on, for
 * the consumers at these positions, with this many timers. waiting: the
 * messages may have to wait for a delay.
 */
uint32
aq_frame_needs(Stream *stream, Frame *frame, uint32 first, uint32 count, Bitmapset *positions,
			   bool waiting, uint32 timers)
{
	uint32		needs = 0;
	int			position = -1;
	int			directory = -1;

	for (uint32 s = first / SEGMENT_SLOTS; s <= (first + count - 1) / SEGMENT_SLOTS; s++)
		if (frame->segments[s] == 0)
			needs++;
	while ((position = bms_next_member(positions, position)) >= 0)
	{
		const FrameSub *sub = frame_sub(frame, position);

		needs += sub_needs(frame, stream, position, &directory) +
			(waiting && (sub == NULL || sub->waiting == 0) ? 1 : 0);
	}
	return needs + timer_pages_needed(frame, timers);
}

/* The number of pages of tags that these slots still need, if their messages have correlations. */
uint32
aq_frame_tags_need(const Frame *frame, uint32 first, uint32 count)
{
	uint32		needs = 0;

	for (uint32 page = first / TAGS_PER_CHUNK; page <= (first + count - 1) / TAGS_PER_CHUNK; page++)
		if (frame->tags[page] == 0)
			needs++;
	return needs;
}

void
aq_frame_make_tags(Frame *frame, uint32 first, uint32 count)
{
	for (uint32 page = first / TAGS_PER_CHUNK; page <= (first + count - 1) / TAGS_PER_CHUNK; page++)
		aq_slot_make_bitmap(&frame->tags[page]);
}

static void
reserve_timers(Frame *frame, uint32 timers)
{
	AqChunk    *pages;
	uint32		total = frame->ntimers + frame->timers_reserved + timers;

	if (timers == 0)
		return;
	if (frame->timers == 0)
		frame->timers = aq_chunks_take();
	pages = aq_chunk_ptr(frame->timers);
	for (uint32 page = 0; page < (total + TIMERS_PER_CHUNK - 1) / TIMERS_PER_CHUNK; page++)
		if (pages[page] == 0)
			pages[page] = aq_chunks_take();
	aq_frame_promise_timers(frame, timers);
}

/* Allocates what aq_frame_needs has counted. */
void
aq_frame_prepare(Stream *stream, Frame *frame, uint32 first, uint32 count,
				 Bitmapset *positions, bool waiting, uint32 timers)
{
	int			position = -1;

	for (uint32 s = first / SEGMENT_SLOTS; s <= (first + count - 1) / SEGMENT_SLOTS; s++)
		if (frame->segments[s] == 0)
			frame->segments[s] = aq_chunks_take();
	while ((position = bms_next_member(positions, position)) >= 0)
	{
		FrameSub   *sub = aq_frame_sub_make(frame, position);

		(void) aq_frame_stream_sub_make(stream, position);
		if (waiting)
			aq_slot_make_bitmap(&sub->waiting);
	}
	reserve_timers(frame, timers);
}

/*
 * The next consumer after position that has a view in the frame; -1 at the
 * end.
 */
int
aq_frame_next_sub(const Frame *frame, int position)
{
	while (++position < AQ_MAX_CONSUMERS)
	{
		if (position > 0 && frame->subs[position / SUBS_PER_CHUNK] == 0)
			position |= SUBS_PER_CHUNK - 1;
		else if (frame_sub((Frame *) frame, position) != NULL)
			return position;
	}
	return -1;
}

/* As many consumers can have a view without another chunk. */
uint32
aq_frame_count_subs(const Frame *frame)
{
	uint32		n = 1;

	for (int i = 0; i < SUB_DIRECTORY; i++)
		n += frame->subs[i] != 0 ? SUBS_PER_CHUNK : 0;
	return n;
}

/* How many messages the worker handles in one transaction, or under one latch, for all their consumers. */
uint32
aq_frame_most_messages(const Frame *frame)
{
	uint32		n = 1;
	int			position = -1;

	while ((position = aq_frame_next_sub(frame, position)) >= 0)
		n++;
	return Max(MOST_VIEWS / n, 1);
}

/* --- attempts ---------------------------------------------------------------------------- */

int
aq_frame_attempts(Frame *frame, int position, uint32 slot)
{
	FrameSub   *sub = frame_sub(frame, position);
	AqChunk    *pages;

	if (sub == NULL || sub->more == 0)
		return 0;
	pages = sub_more(sub)->attempts;
	if (pages[slot / ATTEMPTS_PER_CHUNK] == 0)
		return 0;
	return ((uint8 *) aq_chunk_ptr(pages[slot / ATTEMPTS_PER_CHUNK]))[slot % ATTEMPTS_PER_CHUNK];
}

/* Counts above 255 are stored as 255. */
void
aq_frame_set_attempts(Frame *frame, int position, uint32 slot, int attempts)
{
	FrameSub   *sub = frame_sub(frame, position);
	AqChunk    *pages;

	aq_slot_make_bitmap(&sub->more);
	pages = sub_more(sub)->attempts;
	if (pages[slot / ATTEMPTS_PER_CHUNK] == 0)
		pages[slot / ATTEMPTS_PER_CHUNK] = aq_chunks_take();
	((uint8 *) aq_chunk_ptr(pages[slot / ATTEMPTS_PER_CHUNK]))[slot % ATTEMPTS_PER_CHUNK] =
		Min(attempts, AQ_MAX_ATTEMPTS);
}

/* --- timers: a binary heap over the frame's timer pages -------------------------------------- */

static Timer *
timer_at(const Frame *frame, uint32 i)
{
	AqChunk    *pages = aq_chunk_ptr(frame->timers);

	return (Timer *) aq_chunk_ptr(pages[i / TIMERS_PER_CHUNK]) + i % TIMERS_PER_CHUNK;
}

static void
swap_timers(Timer *a, Timer *b)
{
	Timer		t = *a;

	*a = *b;
	*b = t;
}

/* Messages with the same time become ready in their order. */
static bool
is_before(const Timer *a, const Timer *b)
{
	return a->when < b->when || (a->when == b->when && a->slot < b->slot);
}

/*
 * Places of timers that transactions, or a round of the worker, can use without
 * an allocation.  There is room for those that are promised here: of timers that
 * were taken out, or of promises that were dropped under this hold of the latch.
 */
void
aq_frame_promise_timers(Frame *frame, uint32 n)
{
	frame->timers_reserved += n;
}

/* Promises that are not needed. */
void
aq_frame_drop_timers(Frame *frame, uint32 n)
{
	Assert(frame->timers_reserved >= n);
	frame->timers_reserved -= n;
}

/* When something is due in the partition: a timer, or the end of a lease. */
void
aq_frame_set_next_timer(Partition *partition)
{
	const Frame *frame = frame_of(partition);
	TimestampTz next = frame->ntimers > 0 ? timer_at(frame, 0)->when : 0;

	aq_clock_sooner(&next, frame->lease_end);
	partition->next_timer = next;
}

/* Uses one of the reserved timers. */
void
aq_frame_push_timer(Partition *partition, TimestampTz when, uint32 slot, int position, TimerKind kind)
{
	Frame	   *frame = frame_of(partition);
	uint32		i = frame->ntimers++;
	Timer	   *timer = timer_at(frame, i);

	aq_frame_drop_timers(frame, 1);
	timer->when = when;
	timer->slot = slot;
	timer->position = position;
	timer->kind = kind;
	while (i > 0 && is_before(timer_at(frame, i), timer_at(frame, (i - 1) / 2)))
	{
		swap_timers(timer_at(frame, i), timer_at(frame, (i - 1) / 2));
		i = (i - 1) / 2;
	}
	aq_frame_set_next_timer(partition);
}

/* Removes the earliest timer, if it is due. */
bool
aq_frame_pop_timer(Partition *partition, TimestampTz now, Timer *timer)
{
	Frame	   *frame = frame_of(partition);
	uint32		i = 0;

	if (frame->ntimers == 0 || timer_at(frame, 0)->when > now)
	{
		aq_frame_set_next_timer(partition);
		return false;
	}

	*timer = *timer_at(frame, 0);
	*timer_at(frame, 0) = *timer_at(frame, --frame->ntimers);
	for (;;)
	{
		uint32		child = 2 * i + 1;

		if (child >= frame->ntimers)
			break;
		if (child + 1 < frame->ntimers &&
			is_before(timer_at(frame, child + 1), timer_at(frame, child)))
			child++;
		if (!is_before(timer_at(frame, child), timer_at(frame, i)))
			break;
		swap_timers(timer_at(frame, i), timer_at(frame, child));
		i = child;
	}
	aq_frame_set_next_timer(partition);
	return true;
}

/* --- freeing ------------------------------------------------------------------------------------ */

static void
free_directory(AqChunk directory, uint32 entries)
{
	if (directory == 0)
		return;
	aq_chunks_free(aq_chunk_ptr(directory), entries);
	aq_chunks_free(&directory, 1);
}

static void
free_more(FrameSub *sub)
{
	SubMore    *more = sub_more(sub);

	if (more == NULL)
		return;
	aq_chunks_free(more->attempts, ATTEMPT_PAGES);
	aq_chunks_free(&more->leased, 1);
	aq_chunks_free(&more->alone, 1);
	aq_chunks_free(more->leases, LEASE_PAGES);
	aq_chunks_free(&sub->more, 1);
}

static void
free_sub(FrameSub *sub)
{
	if (sub->ready == 0)
		return;
	free_more(sub);
	aq_chunks_free(&sub->retry, 1);
	aq_chunks_free(&sub->doubt, 1);
	aq_chunks_free(&sub->waiting, 1);
	aq_chunks_free(&sub->ready, 1);
}

/*
 * Frees the frame: the partition is no longer resident.  Does not raise an
 * error.
 */
void
aq_frame_free(Partition *partition)
{
	Frame	   *frame;

	aq_chunks_free(&partition->work_away, 1);
	partition->work_away = 0;
	if (partition->frame == 0)
		return;
	frame = frame_of(partition);
	free_sub(&frame->sub0);
	for (int i = 0; i < SUB_DIRECTORY; i++)
	{
		if (frame->subs[i] == 0)
			continue;
		for (int j = 0; j < SUBS_PER_CHUNK; j++)
			free_sub((FrameSub *) aq_chunk_ptr(frame->subs[i]) + j);
	}
	aq_chunks_free(frame->subs, SUB_DIRECTORY);
	free_directory(frame->timers, TIMER_PAGES);
	aq_chunks_free(frame->tags, TAG_PAGES);
	aq_chunks_free(frame->segments, PARTITION_SEGMENTS);
	aq_chunks_free(&partition->frame, 1);
	partition->frame = 0;
}

static uint32
count_chunks(const AqChunk *chunks, uint32 entries)
{
	uint32		n = 0;

	for (uint32 i = 0; i < entries; i++)
		if (chunks[i] != 0)
			n++;
	return n;
}

static uint32
chunks_of_more(const SubMore *more)
{
	return more == NULL ? 0
		: 1 + count_chunks(more->attempts, ATTEMPT_PAGES) + count_chunks(&more->leased, 1) +
		count_chunks(&more->alone, 1) + count_chunks(more->leases, LEASE_PAGES);
}

/* The number of chunks of the frame, or of what is counted without one. */
uint32
aq_frame_chunks(const Partition *partition)
{
	const Frame *frame;
	uint32		n = 1;
	int			position = -1;

	if (partition->frame == 0)
		return count_chunks(&partition->work_away, 1);
	frame = frame_of(partition);
	while ((position = aq_frame_next_sub(frame, position)) >= 0)
	{
		const FrameSub *sub = frame_sub((Frame *) frame, position);

		n += 1 + count_chunks(&sub->retry, 1) + count_chunks(&sub->waiting, 1) + count_chunks(&sub->doubt, 1) +
			chunks_of_more(sub_more(sub));
	}
	n += count_chunks(frame->subs, SUB_DIRECTORY) + count_chunks(frame->tags, TAG_PAGES) +
		count_chunks(frame->segments, PARTITION_SEGMENTS);
	return n + (frame->timers == 0 ? 0 : 1 + count_chunks(aq_chunk_ptr(frame->timers), TIMER_PAGES));
}
