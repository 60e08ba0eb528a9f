/*-------------------------------------------------------------------------
 *
 * slot.c
 *	  The transitions of slots and of consumers' views of them: see slot.h.
 *
 * Chunks for bitmaps are in the session's reserve when they are needed here,
 * see aq_frame_needs.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/slot.h"

#define X(name, from, to) {#name, (uint8) (from), (uint8) (to)},
const SlotTransition aq_slot_steps[] = {AQ_SLOT_STEPS(X)};
const SlotTransition aq_slot_view_steps[] = {AQ_VIEW_STEPS(X)};
#undef X

/* --- what the assertions compare ---------------------------------------------------- */

static inline bool
allowed(const SlotTransition *step, int from, int to)
{
	return (step->from >> from & 1) && (step->to >> to & 1);
}

static inline void
set_state(Slot *slot, SlotStep step, SlotState state)
{
	Assert(allowed(&aq_slot_steps[step], slot->state, state));
	slot->state = state;
}

#ifdef USE_ASSERT_CHECKING
static bool
has_bit(AqChunk bitmap, uint32 number)
{
	return bitmap != 0 && aq_bitmap_test(bitmap_of(bitmap), number);
}

/*
 * May the consumer's view make this step?  A bit says what the view is; without
 * one it may be any of those that have none, but TAKEN and DONE only of a slot
 * that is published.
 */
static bool
may_step(const Partition *partition, int position, uint32 number, ViewStep step, SlotView to)
{
	const SlotTransition *row = &aq_slot_view_steps[step];
	const FrameSub *sub = frame_sub(frame_of(partition), position);
	const Slot *slot = slot_at(frame_of(partition), number);
	int			bits = has_bit(sub->ready, number) + has_bit(sub->waiting, number) +
		has_bit(sub->retry, number) + has_bit(sub->doubt, number);

	if (!(row->to & 1 << to) || bits > 1)
		return false;
	if (row->from & VIEW_IN(TAKEN) && (slot->open == 0 || partition->inflight == 0))
		return false;
	if (step != VIEW_STEP_APPEAR && slot->state != SLOT_READY && slot->state != SLOT_WAITING)
		return false;
	return has_bit(sub->ready, number) ? row->from & VIEW_IN(READY)
		: has_bit(sub->waiting, number) ? row->from & VIEW_IN(WAITING)
		: has_bit(sub->retry, number) ? row->from & VIEW_IN(RETRY)
		: has_bit(sub->doubt, number) ? row->from & VIEW_IN(DOUBT)
		: row->from & (VIEW_IN(NONE) | VIEW_IN(TAKEN));
}
#endif

/* --- bits and their counts ------------------------------------------------------------ */

/* A dequeue is to look at the slot, and at the partition. */
static inline void
look_at(Stream *stream, int position, const Partition *partition)
{
	StreamSub  *ssub = stream_sub(stream, position);

	aq_slot_stream_not_empty(stream, position);
	if (ssub->hint != 0 && partition->number < partition_at(ssub->hint)->number)
		ssub->hint = partition->index;
}

/* Slots first .. first + n - 1 are ready for the consumer. */
static void
set_ready(Stream *stream, Partition *partition, int position, uint32 first, uint32 n)
{
	FrameSub   *sub = frame_sub(frame_of(partition), position);
	StreamSub  *ssub = stream_sub(stream, position);

	aq_bitmap_set_range(bitmap_of(sub->ready), first, n);
	sub->nready += n;
	if (first < sub->first)
		sub->first = first;
	ssub->ready += n;
	look_at(stream, position, partition);
}

static void
set_waiting(Partition *partition, int position, uint32 number)
{
	FrameSub   *sub = frame_sub(frame_of(partition), position);

	aq_slot_make_bitmap(&sub->waiting);
	if (aq_bitmap_set(bitmap_of(sub->waiting), number))
		sub->nwaiting++;
}

static bool
clear_waiting(Partition *partition, int position, uint32 number)
{
	FrameSub   *sub = frame_sub(frame_of(partition), position);

	if (sub == NULL || sub->nwaiting == 0 || !aq_bitmap_clear(bitmap_of(sub->waiting), number))
		return false;
	sub->nwaiting--;
	return true;
}

/* Sessions that hold back messages see by doubt_change that they have to look again. */
static void
count_doubt(StreamSub *ssub, int n)
{
	ssub->ndoubt += n;
	ssub->doubt_change = pg_atomic_add_fetch_u64(&aq_area->doubt_changes, 1);
}

static void
set_doubt(Stream *stream, Partition *partition, int position, uint32 number)
{
	FrameSub   *sub = frame_sub(frame_of(partition), position);

	aq_slot_make_bitmap(&sub->doubt);
	if (aq_bitmap_set(bitmap_of(sub->doubt), number))
	{
		sub->ndoubt++;
		count_doubt(stream_sub(stream, position), 1);
		aq_slot_stream_not_empty(stream, position);
	}
}

static void
add_taken(Partition *partition)
{
	partition->inflight++;
}

static void
remove_taken(Partition *partition)
{
	Assert(partition->inflight > 0);
	partition->inflight--;
}

static void
remove_pending(Partition *partition, uint32 n)
{
	Assert(partition->pending >= n && partition->open >= n);
	partition->pending -= n;
	partition->open -= n;
}

/* --- enqueued messages -------------------------------------------------------------------- */

/* The session has enqueued into the partition. */
void
aq_slot_note_session(Partition *partition, int64 session)
{
	for (int i = 0; i < PARTITION_SESSIONS; i++)
	{
		if (partition->sessions[i] == 0)
			partition->sessions[i] = session;
		if (partition->sessions[i] == session)
			return;
	}
	partition->more_sessions = true;
}

/* The next n slots, for a running transaction; the first one.  expires_at: 0, or when. */
uint32
aq_slot_reserve(Partition *partition, uint32 n, uint64 full_xid, int64 session, TimestampTz expires_at)
{
	Frame	   *frame = frame_of(partition);
	uint32		first = partition->reserved;

	Assert(first + n <= PARTITION_SLOTS);
	for (uint32 i = first; i < first + n; i++)
	{
		Slot	   *slot = slot_at(frame, i);

		set_state(slot, SLOT_STEP_RESERVE, SLOT_PENDING);
		aq_slot_set_xid(slot, (TransactionId) full_xid, full_xid);
		slot->session = session;
		if (expires_at != 0)
			aq_slot_set_expiry(slot, expires_at);
	}
	aq_slot_note_session(partition, session);
	partition->reserved += n;
	partition->pending += n;
	partition->open += n;
	return first;
}

/* Their transaction is prepared, under its top-level id. */
void
aq_slot_prepare_puts(Partition *partition, uint32 first, uint32 n, TransactionId xid)
{
	for (uint32 i = first; i < first + n; i++)
	{
		Slot	   *slot = slot_at(frame_of(partition), i);

		set_state(slot, SLOT_STEP_PREPARE, SLOT_DOUBT);
		aq_slot_set_xid(slot, xid, slot_full_xid(slot));
	}
}

/* They are committed, and stand behind those of a prepared transaction. */
void
aq_slot_follow(Partition *partition, uint32 first, uint32 n, TransactionId xid)
{
	for (uint32 i = first; i < first + n; i++)
	{
		Slot	   *slot = slot_at(frame_of(partition), i);

		set_state(slot, SLOT_STEP_FOLLOW, SLOT_DOUBT);
		slot->flags |= SLOT_FOLLOWER;
		aq_slot_set_xid(slot, xid, slot_full_xid(slot));
	}
}

/* They are committed: ready, or waiting, for these consumers; done when there are none. */
void
aq_slot_publish(Stream *stream, Partition *partition, uint32 first, uint32 n,
				 const int16 *positions, int npositions, bool waits)
{
	Frame	   *frame = frame_of(partition);
	SlotState	state = npositions == 0 ? SLOT_DONE : waits ? SLOT_WAITING : SLOT_READY;

	for (int i = 0; i < npositions; i++)
	{
		Assert(may_step(partition, positions[i], first, VIEW_STEP_APPEAR, waits ? VIEW_WAITING : VIEW_READY));
		if (!waits)
			set_ready(stream, partition, positions[i], first, n);
		for (uint32 slot = first; waits && slot < first + n; slot++)
			set_waiting(partition, positions[i], slot);
	}
	for (uint32 i = first; i < first + n; i++)
	{
		Slot	   *slot = slot_at(frame, i);

		set_state(slot, SLOT_STEP_PUBLISH, state);
		slot->flags &= ~SLOT_FOLLOWER;
		slot->open = npositions;
	}
	remove_pending(partition, n);
	partition->open += npositions * n;
}

/* Their transaction is rolled back. */
void
aq_slot_lose(Partition *partition, uint32 first, uint32 n)
{
	for (uint32 i = first; i < first + n; i++)
	{
		Slot	   *slot = slot_at(frame_of(partition), i);

		Assert(!(slot->flags & SLOT_FOLLOWER));
		set_state(slot, SLOT_STEP_LOSE, SLOT_DONE);
		slot->open = 0;
	}
	remove_pending(partition, n);
}

/* Its delay is over; aq_slot_wake follows for each consumer. */
void
aq_slot_undelay(Slot *slot)
{
	set_state(slot, SLOT_STEP_UNDELAY, SLOT_READY);
}

/* It has failed for a consumer, which is going to be done with it: it is to be moved. */
void
aq_slot_fail(Partition *partition, uint32 number)
{
	Slot	   *slot = slot_at(frame_of(partition), number);

	if (slot->flags & SLOT_FAILED)
		return;
	set_state(slot, SLOT_STEP_FAIL, slot->state);
	slot->flags |= SLOT_FAILED;
	partition->nfailed++;
	partition->open++;
}

/* It is in the exception queue, or dropped. */
void
aq_slot_move(Partition *partition, uint32 number)
{
	Slot	   *slot = slot_at(frame_of(partition), number);

	set_state(slot, SLOT_STEP_MOVE, SLOT_DONE);
	Assert(slot->flags & SLOT_FAILED);
	Assert(partition->nfailed > 0 && partition->open > 0);
	slot->flags &= ~SLOT_FAILED;
	partition->nfailed--;
	partition->open--;
}

/* --- a consumer's view ---------------------------------------------------------------------- */

/* A ready message is taken; false when it is not ready. */
bool
aq_slot_take(Stream *stream, Partition *partition, int position, uint32 number)
{
	FrameSub   *sub = frame_sub(frame_of(partition), position);
	StreamSub  *ssub = stream_sub(stream, position);

	if (sub == NULL || !aq_bitmap_test(bitmap_of(sub->ready), number))
		return false;
	Assert(may_step(partition, position, number, VIEW_STEP_TAKE, VIEW_TAKEN));
	Assert(sub->nready > 0 && ssub->ready > 0);
	(void) aq_bitmap_clear(bitmap_of(sub->ready), number);
	sub->nready--;
	ssub->ready--;
	add_taken(partition);
	return true;
}

/* A waiting message is taken, by its id for example; false when it does not wait. */
bool
aq_slot_take_waiting(Partition *partition, int position, uint32 number)
{
	if (!clear_waiting(partition, position, number))
		return false;
	add_taken(partition);
	return true;
}

/* A taken message goes back to where it was. */
void
aq_slot_give_back(Stream *stream, Partition *partition, int position, uint32 number)
{
	bool		waits = slot_at(frame_of(partition), number)->state == SLOT_WAITING;

	Assert(may_step(partition, position, number, VIEW_STEP_GIVE_BACK, waits ? VIEW_WAITING : VIEW_READY));
	remove_taken(partition);
	if (waits)
		set_waiting(partition, position, number);
	else
		set_ready(stream, partition, position, number, 1);
}

/* A taken message waits; a timer ends that. */
void
aq_slot_delay(Partition *partition, int position, uint32 number)
{
	Assert(may_step(partition, position, number, VIEW_STEP_DELAY, VIEW_WAITING));
	remove_taken(partition);
	set_waiting(partition, position, number);
}

/*
 * The taking of a message is rolled back: the worker writes the count before it
 * is ready again.  The consumer has a bitmap of retries.
 */
void
aq_slot_retry(Stream *stream, Partition *partition, int position, uint32 number)
{
	FrameSub   *sub = frame_sub(frame_of(partition), position);

	Assert(may_step(partition, position, number, VIEW_STEP_RETRY, VIEW_RETRY));
	remove_taken(partition);
	if (aq_bitmap_set(bitmap_of(sub->retry), number))
	{
		sub->nretry++;
		partition->nretry++;
	}
	look_at(stream, position, partition);	/* so that dequeue waits for it */
}

/*
 * The count is written, or is not needed: it is decided now what becomes of the
 * message.  False when no count was to be written.
 */
bool
aq_slot_counted(Partition *partition, int position, uint32 number)
{
	FrameSub   *sub = frame_sub(frame_of(partition), position);

	if (!aq_bitmap_test(bitmap_of(sub->retry), number))
		return false;
	Assert(may_step(partition, position, number, VIEW_STEP_COUNTED, VIEW_TAKEN));
	Assert(sub->nretry > 0 && partition->nretry > 0);
	(void) aq_bitmap_clear(bitmap_of(sub->retry), number);
	sub->nretry--;
	partition->nretry--;
	add_taken(partition);
	return true;
}

/* The transaction that has taken it is prepared.  The consumer's bitmap is there, or a chunk reserved. */
void
aq_slot_prepare(Stream *stream, Partition *partition, int position, uint32 number)
{
	Assert(may_step(partition, position, number, VIEW_STEP_PREPARE, VIEW_DOUBT));
	set_doubt(stream, partition, position, number);
}

/*
 * That transaction has ended: it is decided now what becomes of the message.
 * False when it had not taken it.
 */
bool
aq_slot_resolve(Stream *stream, Partition *partition, int position, uint32 number)
{
	FrameSub   *sub = frame_sub(frame_of(partition), position);

	if (sub == NULL || sub->ndoubt == 0 || !aq_bitmap_test(bitmap_of(sub->doubt), number))
		return false;
	Assert(may_step(partition, position, number, VIEW_STEP_RESOLVE, VIEW_TAKEN));
	(void) aq_bitmap_clear(bitmap_of(sub->doubt), number);
	sub->ndoubt--;
	count_doubt(stream_sub(stream, position), -1);
	return true;
}

/* A waiting message is ready; false when it does not wait. */
bool
aq_slot_wake(Stream *stream, Partition *partition, int position, uint32 number)
{
	if (!clear_waiting(partition, position, number))
		return false;
	Assert(slot_at(frame_of(partition), number)->state == SLOT_READY);
	set_ready(stream, partition, position, number, 1);
	return true;
}

/*
 * The consumer is done with taken messages: it has them for good, or they
 * failed.  True when one of them is to be moved, as all its consumers are done.
 */
bool
aq_slot_finish(Partition *partition, int position, const uint16 *numbers, uint32 n)
{
	bool		move = false;

	Assert(partition->inflight >= n && partition->open >= n);
	for (uint32 i = 0; i < n; i++)
	{
		Slot	   *slot = slot_at(frame_of(partition), numbers[i]);

		Assert(may_step(partition, position, numbers[i], VIEW_STEP_FINISH, VIEW_DONE));
		slot->open--;
		if (slot->open > 0)
			continue;
		set_state(slot, SLOT_STEP_FINISH, SLOT_DONE);
		move |= (slot->flags & SLOT_FAILED) != 0;
	}
	partition->inflight -= n;
	partition->open -= n;
	return move;
}

/* --- where dequeues begin ------------------------------------------------------------------ */

/*
 * Messages that were held back may be had now, from this partition on: what
 * dequeues have passed by is looked at again.
 */
void
aq_slot_search_from(Stream *stream, const Partition *partition, int position)
{
	look_at(stream, position, partition);
	for (; partition != NULL; partition = partition_at(partition->next))
	{
		FrameSub   *sub = partition->frame == 0 ? NULL : frame_sub(frame_of(partition), position);

		if (sub != NULL)
			sub->first = 0;
	}
}

/* The partition leaves the stream: no consumer's dequeue begins in it. */
void
aq_slot_unlink(Stream *stream, const Partition *partition)
{
	for (int position = 0; position < AQ_MAX_CONSUMERS; position++)
	{
		StreamSub  *ssub = stream_sub(stream, position);

		if (ssub == NULL)
			position |= SUBS_PER_CHUNK - 1;
		else if (ssub->hint == partition->index)
			ssub->hint = partition->next;
	}
}

/* --- loading and unloading a frame ----------------------------------------------------------- */

/* A segment of a new frame. */
void
aq_slot_load_segment(Frame *frame, uint32 segment, const Slot *slots)
{
	memcpy(aq_chunk_ptr(frame->segments[segment]), slots, AQ_CHUNK_SIZE);
}

/* A consumer's view of a slot that was loaded: by the slot's state, or taken by a prepared transaction. */
void
aq_slot_load(Stream *stream, Partition *partition, int position, uint32 number, bool doubt)
{
	SlotState	state = slot_at(frame_of(partition), number)->state;

	if (doubt)
		set_doubt(stream, partition, position, number);
	else if (state == SLOT_READY)
		set_ready(stream, partition, position, number, 1);
	else if (state == SLOT_WAITING)
		set_waiting(partition, position, number);
}

/* The partition is not resident, or will not be: so many of its messages wait, and none is ready so far. */
void
aq_slot_leave(Partition *partition, uint32 waiting)
{
	partition->away_waiting = waiting;
	partition->away_head = NO_SLOT;
}

/* Its frame is gone, and so many messages that were ready in it rest until a retry delay is over. */
void
aq_slot_leave_resting(Partition *partition, uint32 waiting)
{
	partition->away_waiting += waiting;
}

/* One of them is ready for a consumer. */
void
aq_slot_leave_head(Partition *partition, uint32 number, const Slot *slot)
{
	if (number >= partition->away_head)
		return;
	partition->away_head = number;
	partition->away_block = slot->block;
	partition->away_offset = slot->offset;
}

/* So many more of the consumer's messages are in partitions that are not resident. */
void
aq_slot_count_away(Stream *stream, int position, int64 n)
{
	stream_sub(stream, position)->away += n;
	Assert(stream_sub(stream, position)->away >= 0);
}

/* The consumer was removed: none of them is its own any more. */
void
aq_slot_forget_away(Stream *stream, int position)
{
	StreamSub  *ssub = stream_sub(stream, position);

	if (ssub != NULL)
		ssub->away = 0;
}

/* The frame goes: what the consumer has in it is not resident from now on.  aq_slot_leave was called before. */
void
aq_slot_unload(Stream *stream, Partition *partition, int position)
{
	StreamSub  *ssub = stream_sub(stream, position);
	const FrameSub *sub = frame_sub(frame_of(partition), position);
	int			first = sub->nready == 0 ? -1 : aq_bitmap_next(bitmap_of(sub->ready), PARTITION_SLOTS, 0);

	Assert(sub->ndoubt == 0 && sub->nretry == 0 && ssub->ready >= sub->nready);
	ssub->ready -= sub->nready;
	ssub->away += sub->nready + sub->nwaiting;
	partition->away_waiting += sub->nwaiting;
	if (first >= 0)
		aq_slot_leave_head(partition, first, slot_at(frame_of(partition), first));
}

/* The partition begins: nothing is in it, or nothing is known but that its slots may be used. */
void
aq_slot_reset(Partition *partition, uint32 reserved)
{
	partition->reserved = reserved;
	partition->pending = partition->inflight = partition->open = 0;
	partition->nretry = partition->ndoubt = partition->nfailed = 0;
	memset(partition->sessions, 0, sizeof(partition->sessions));
	partition->more_sessions = false;
	aq_slot_leave(partition, 0);
}

/* --- slots that are read from the tables -------------------------------------------------------- */

/* The slot's state as the rows say it. */
void
aq_slot_read(Slot *slot, SlotState state)
{
	set_state(slot, SLOT_STEP_LOAD, state);
}

/* It is committed, behind a prepared transaction. */
void
aq_slot_read_follower(Slot *slot, TransactionId xid, uint64 near)
{
	aq_slot_read(slot, SLOT_DOUBT);
	slot->flags |= SLOT_FOLLOWER;
	aq_slot_set_xid(slot, xid, near);
}
