/*-------------------------------------------------------------------------
 *
 * slot.c
 *	  The transitions of slots and of the consumers' views of them: see slot.h.
 *
 * The session has reserved the chunks for bitmaps that are needed here, see
 * aq_frame_needs.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/partitions/slot.h"

#define X(name, from, to) {#name, (uint16) (from), (uint16) (to)},
const SlotTransition aq_slot_steps[] = {AQ_SLOT_STEPS(X)};
const SlotTransition aq_slot_view_steps[] = {AQ_VIEW_STEPS(X)};
#undef X

bool		aq_slot_frames_let_go = false;

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
 * May the consumer's view make this step?  A bit tells the current view;
 * without a bit it may be any of the views without one, but TAKEN and DONE
 * only if the slot is published.
 */
static bool
may_step(const Partition *partition, int position, uint32 number, ViewStep step, SlotView to)
{
	const SlotTransition *row = &aq_slot_view_steps[step];
	const FrameSub *sub = frame_sub(frame_of(partition), position);
	const Slot *slot = slot_at(frame_of(partition), number);
	bool		leased = aq_slot_is_leased(sub, number);
	int			bits = has_bit(sub->ready, number) + has_bit(sub->waiting, number) +
		has_bit(sub->retry, number) + has_bit(sub->doubt, number) + leased;

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
		: leased ? row->from & VIEW_IN(LEASED)
		: row->from & (VIEW_IN(NONE) | VIEW_IN(TAKEN));
}
#endif

/* --- bits and their counts ------------------------------------------------------------ */

/* Makes dequeues check the partition again. */
static inline void
look_at(Stream *stream, int position, const Partition *partition)
{
	StreamSub  *ssub = stream_sub(stream, position);

	aq_slot_stream_not_empty(stream, position);
	if (ssub->hint != 0 && partition->number < partition_at(ssub->hint)->number)
		ssub->hint = partition->index;
}

/* Sets slots first .. first + n - 1 ready for the consumer. */
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
	if (unlikely(ordinal_of(partition, first) < stream->seen))
	{
		stream->seen = 0;		/* see seen.c */
		stream->returns++;
	}
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

/*
 * The new doubt_change makes sessions fill their maps of held back messages
 * again.
 */
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

/* The message is no longer leased. */
static void
forget_lease(const FrameSub *sub, uint32 number)
{
	Lease	   *lease = lease_at(sub, number);

	if (lease != NULL)
		lease->receipt = 0;
}

/* Sets the end of the lease or retry delay. */
static void
expect_end(Partition *partition, SubMore *more, uint32 number, TimestampTz until)
{
	Frame	   *frame = frame_of(partition);
	TimestampTz *end = &more->ends[number / LEASES_PER_CHUNK];

	if (*end == 0 || until < *end)
		*end = until;
	if (frame->lease_end == 0 || until < frame->lease_end)
		frame->lease_end = until;
	if (partition->next_timer == 0 || until < partition->next_timer)
		partition->next_timer = until;
}

static void
add_taken(Partition *partition, int position)
{
	partition->inflight++;
	frame_sub(frame_of(partition), position)->ntaken++;
	aq_slot_count_kept(partition);
}

static void
remove_taken(Partition *partition, int position)
{
	FrameSub   *sub = frame_sub(frame_of(partition), position);

	Assert(partition->inflight > 0 && sub->ntaken > 0);
	partition->inflight--;
	sub->ntaken--;
	aq_slot_count_kept(partition);
}

/* One more message of the consumer is in work, unless the caller has got a place for it. */
static inline void
begin_work(const Partition *partition, int position)
{
	if (likely(!partition->limited))
		return;
	if (aq_places_got > 0)
		aq_places_got--;
	else
		aq_places_count(partition, position, 1);
}

static inline void
end_work(const Partition *partition, int position, uint32 n)
{
	if (unlikely(partition->limited))
		aq_places_count(partition, position, -(int) n);
}

static void
remove_pending(Partition *partition, uint32 n)
{
	Assert(partition->pending >= n && partition->open >= n);
	partition->pending -= n;
	aq_slot_count_kept(partition);
	partition->open -= n;
}

/* --- enqueued messages -------------------------------------------------------------------- */

/* Records that the session has enqueued into the partition. */
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

/*
 * Reserves the next n slots for a running transaction; returns the first one.
 * expires_at: 0: never.
 */
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
	aq_slot_count_kept(partition);
	return first;
}

/* The slots' transaction was prepared; xid is its top-level xid. */
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

/* The slots were committed, and become followers of a prepared transaction. */
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

/*
 * The slots were committed: ready or waiting for these consumers; done if
 * there are none.
 */
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

/* The slots' transaction was rolled back. */
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

/*
 * The slot's delay has ended; the caller then calls aq_slot_wake for each
 * consumer.
 */
void
aq_slot_undelay(Slot *slot)
{
	set_state(slot, SLOT_STEP_UNDELAY, SLOT_READY);
}

/*
 * The message has failed for a consumer, which will then finish with it.
 * Afterwards it must be moved to the exception queue.
 */
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

/* The message was moved to the exception queue, or deleted. */
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

/* Takes a ready message; returns false if it is not ready. */
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
	add_taken(partition, position);
	begin_work(partition, position);
	return true;
}

/*
 * Takes a waiting message, for example by its id; returns false if it does not
 * wait.
 */
bool
aq_slot_take_waiting(Partition *partition, int position, uint32 number)
{
	if (!clear_waiting(partition, position, number))
		return false;
	add_taken(partition, position);
	begin_work(partition, position);
	return true;
}

/* Returns a taken message to its former view. */
void
aq_slot_give_back(Stream *stream, Partition *partition, int position, uint32 number)
{
	bool		waits = slot_at(frame_of(partition), number)->state == SLOT_WAITING;

	Assert(may_step(partition, position, number, VIEW_STEP_GIVE_BACK, waits ? VIEW_WAITING : VIEW_READY));
	remove_taken(partition, position);
	end_work(partition, position, 1);
	forget_lease(frame_sub(frame_of(partition), position), number);
	if (waits)
		set_waiting(partition, position, number);
	else
		set_ready(stream, partition, position, number, 1);
}

/* Makes a taken message wait, until a timer wakes it. */
void
aq_slot_delay(Partition *partition, int position, uint32 number)
{
	Assert(may_step(partition, position, number, VIEW_STEP_DELAY, VIEW_WAITING));
	remove_taken(partition, position);
	end_work(partition, position, 1);
	forget_lease(frame_sub(frame_of(partition), position), number);
	set_waiting(partition, position, number);
}

/*
 * The dequeue of a message was rolled back: the worker must write the count
 * before the message becomes ready again.  The consumer has a bitmap of
 * retries.
 */
void
aq_slot_retry(Stream *stream, Partition *partition, int position, uint32 number)
{
	FrameSub   *sub = frame_sub(frame_of(partition), position);

	Assert(may_step(partition, position, number, VIEW_STEP_RETRY, VIEW_RETRY));
	remove_taken(partition, position);
	end_work(partition, position, 1);
	forget_lease(sub, number);
	if (aq_bitmap_set(bitmap_of(sub->retry), number))
	{
		sub->nretry++;
		partition->nretry++;
	}
	look_at(stream, position, partition);	/* so that dequeues wait for it */
}

/* Chunks that aq_slot_make_alone needs. */
uint32
aq_slot_alone_needs(const FrameSub *sub)
{
	const SubMore *more = sub_more(sub);

	return more == NULL ? 2 : more->alone == 0;
}

/* They are in the session's reserve. */
void
aq_slot_make_alone(FrameSub *sub)
{
	aq_slot_make_bitmap(&sub->more);
	aq_slot_make_bitmap(&sub_more(sub)->alone);
}

/*
 * The message is in view RETRY: was it alone in its transaction?  Without the
 * bitmap it was not taken as a last attempt, and this does not matter.
 */
void
aq_slot_note_alone(Partition *partition, int position, uint32 number, bool alone)
{
	const SubMore *more = sub_more(frame_sub(frame_of(partition), position));

	if (more == NULL || more->alone == 0)
		return;
	if (alone)
		(void) aq_bitmap_set(bitmap_of(more->alone), number);
	else
		(void) aq_bitmap_clear(bitmap_of(more->alone), number);
}

/*
 * The count was written, or is not needed: the caller then decides on the
 * message.  Returns false if no count had to be written.
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
	add_taken(partition, position);
	begin_work(partition, position);
	return true;
}

/*
 * The transaction that has taken the message was prepared.  The consumer has
 * the bitmap, or a chunk is reserved for it.
 */
void
aq_slot_prepare(Stream *stream, Partition *partition, int position, uint32 number)
{
	Assert(may_step(partition, position, number, VIEW_STEP_PREPARE, VIEW_DOUBT));
	set_doubt(stream, partition, position, number);
}

/*
 * That transaction has ended: the caller then decides on the message.  Returns
 * false if it had not taken it.
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

/* Makes a waiting message ready; returns false if it does not wait. */
bool
aq_slot_wake(Stream *stream, Partition *partition, int position, uint32 number)
{
	if (!clear_waiting(partition, position, number))
		return false;
	Assert(slot_at(frame_of(partition), number)->state == SLOT_READY);
	forget_lease(frame_sub(frame_of(partition), position), number); /* a retry delay may have run */
	set_ready(stream, partition, position, number, 1);
	return true;
}

/*
 * The consumer has finished with taken messages, because their dequeue was
 * committed or they failed.  Returns true if one of them must be moved,
 * because all its consumers have finished and one has failed.
 */
bool
aq_slot_finish(Partition *partition, int position, const uint16 *numbers, uint32 n)
{
	FrameSub   *sub = frame_sub(frame_of(partition), position);
	bool		move = false;

	Assert(partition->inflight >= n && partition->open >= n && sub->ntaken >= n);
	for (uint32 i = 0; i < n; i++)
	{
		Slot	   *slot = slot_at(frame_of(partition), numbers[i]);

		Assert(may_step(partition, position, numbers[i], VIEW_STEP_FINISH, VIEW_DONE));
		forget_lease(sub, numbers[i]);
		slot->open--;
		if (slot->open > 0)
			continue;
		set_state(slot, SLOT_STEP_FINISH, SLOT_DONE);
		move |= (slot->flags & SLOT_FAILED) != 0;
	}
	partition->inflight -= n;
	sub->ntaken -= n;
	partition->open -= n;
	aq_slot_count_kept(partition);
	end_work(partition, position, n);
	return move;
}

/* --- leases -------------------------------------------------------------------------------- */

static inline uint32
missing(AqChunk chunk)
{
	return chunk == 0 ? 1 : 0;
}

/* Chunks that a lease of the message takes. */
uint32
aq_slot_lease_needs(const FrameSub *sub, uint32 number)
{
	const SubMore *more = sub_more(sub);

	if (more == NULL)
		return AQ_LEASE_CHUNKS;
	return missing(more->attempts[number / ATTEMPTS_PER_CHUNK]) + missing(more->leased) +
		missing(more->leases[number / LEASES_PER_CHUNK]);
}

/* They are in the session's reserve. */
void
aq_slot_make_lease(FrameSub *sub, uint32 number)
{
	SubMore    *more;

	aq_slot_make_bitmap(&sub->more);
	more = sub_more(sub);
	aq_slot_make_bitmap(&more->attempts[number / ATTEMPTS_PER_CHUNK]);
	aq_slot_make_bitmap(&more->leased);
	aq_slot_make_bitmap(&more->leases[number / LEASES_PER_CHUNK]);
}

/* What aq_slot_lease is to say of the message; its place was made. */
void
aq_slot_note_lease(Partition *partition, int position, uint32 number, TimestampTz until, int64 receipt)
{
	Lease	   *lease = lease_at(frame_sub(frame_of(partition), position), number);

	lease->until = until;
	lease->receipt = receipt;
}

/* A taken message is leased, or leased again, as was noted. */
void
aq_slot_lease(Partition *partition, int position, uint32 number)
{
	FrameSub   *sub = frame_sub(frame_of(partition), position);
	SubMore    *more = sub_more(sub);

	Assert(may_step(partition, position, number, VIEW_STEP_LEASE, VIEW_LEASED));
	Assert(lease_at(sub, number)->receipt > 0);
	remove_taken(partition, position);
	if (aq_bitmap_set(bitmap_of(more->leased), number))
		more->nleased++;
	expect_end(partition, more, number, lease_at(sub, number)->until);
}

/* A transaction begins to acknowledge, release or reject a leased message; false when it is not leased. */
bool
aq_slot_hold_lease(Partition *partition, int position, uint32 number)
{
	FrameSub   *sub = frame_sub(frame_of(partition), position);
	SubMore    *more = sub_more(sub);

	if (more == NULL || more->nleased == 0 || !aq_bitmap_test(bitmap_of(more->leased), number))
		return false;
	Assert(may_step(partition, position, number, VIEW_STEP_HOLD, VIEW_TAKEN));
	(void) aq_bitmap_clear(bitmap_of(more->leased), number);
	more->nleased--;
	add_taken(partition, position);
	return true;
}

/* A taken message waits until then, without a timer: see aq_slot_find_ends. */
void
aq_slot_delay_until(Partition *partition, int position, uint32 number, TimestampTz until)
{
	FrameSub   *sub = frame_sub(frame_of(partition), position);

	aq_slot_delay(partition, position, number);
	aq_slot_note_lease(partition, position, number, until, LEASE_RETRY_DELAY);
	expect_end(partition, sub_more(sub), number, until);
}

/* When the first lease or retry delay of the page ends; 0: it has none. */
static TimestampTz
first_end(const FrameSub *sub, uint32 page)
{
	TimestampTz first = 0;

	for (uint32 number = page * LEASES_PER_CHUNK; number < (page + 1) * LEASES_PER_CHUNK; number++)
	{
		const Lease *lease = lease_at(sub, number);
		bool		runs = lease->receipt == LEASE_RETRY_DELAY ? sub->waiting != 0 && aq_bitmap_test(bitmap_of(sub->waiting), number)
			: lease->receipt != 0 && aq_slot_is_leased(sub, number);

		if (runs && (first == 0 || lease->until < first))
			first = lease->until;
	}
	return first;
}

/*
 * Make those ends exact of which something is said to end before this time, and
 * the frame's.  The caller updates Partition.next_timer.
 */
void
aq_slot_find_ends(Partition *partition, TimestampTz before)
{
	Frame	   *frame = frame_of(partition);

	frame->lease_end = 0;
	for (int position = 0; position < AQ_MAX_CONSUMERS; position++)
	{
		FrameSub   *sub = frame_sub(frame, position);
		SubMore    *more = sub_more(sub);

		if (sub == NULL && position > 0 && frame->subs[position / SUBS_PER_CHUNK] == 0)
			position |= SUBS_PER_CHUNK - 1;
		for (uint32 page = 0; more != NULL && page < LEASE_PAGES; page++)
		{
			if (more->ends[page] == 0)
				continue;
			if (more->ends[page] < before)
				more->ends[page] = first_end(sub, page);
			if (more->ends[page] != 0 && (frame->lease_end == 0 || more->ends[page] < frame->lease_end))
				frame->lease_end = more->ends[page];
		}
	}
}

/* --- where dequeues begin ------------------------------------------------------------------ */

/*
 * Messages from this partition on are no longer held back: makes dequeues
 * check again those that they have skipped.
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

/* The partition is removed from the stream: no dequeue may begin in it. */
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

/* Copies the slots of one segment into a new frame. */
void
aq_slot_load_segment(Frame *frame, uint32 segment, const Slot *slots)
{
	memcpy(aq_chunk_ptr(frame->segments[segment]), slots, AQ_CHUNK_SIZE);
}

/*
 * Sets a consumer's view of a slot that was loaded, according to the slot's
 * state; doubt: taken by a prepared transaction.
 */
void
aq_slot_load(Stream *stream, Partition *partition, int position, uint32 number, bool doubt)
{
	SlotState	state = slot_at(frame_of(partition), number)->state;

	if (doubt)
	{
		set_doubt(stream, partition, position, number);
		frame_sub(frame_of(partition), position)->ntaken++;
	}
	else if (state == SLOT_READY)
		set_ready(stream, partition, position, number, 1);
	else if (state == SLOT_WAITING)
		set_waiting(partition, position, number);
}

/* The partition is not resident, or will not be: this number of its messages wait or are leased, and none is ready so far. */
void
aq_slot_leave(Partition *partition, uint32 waiting, uint32 leased)
{
	partition->away_waiting = waiting;
	partition->away_leased = leased;
	partition->away_head = NO_SLOT;
}

/*
 * The frame was evicted; this many of its messages now wait for a retry delay.
 */
void
aq_slot_leave_waiting(Partition *partition, uint32 waiting)
{
	partition->away_waiting += waiting;
}

/* A slot of the partition is ready for a consumer. */
void
aq_slot_leave_head(Partition *partition, uint32 number, const Slot *slot)
{
	if (number >= partition->away_head)
		return;
	partition->away_head = number;
	partition->away_block = slot->block;
	partition->away_offset = slot->offset;
}

/* Adds n to the consumer's messages in partitions that are not resident. */
void
aq_slot_count_away(Stream *stream, int position, int64 n)
{
	stream_sub(stream, position)->away += n;
	Assert(stream_sub(stream, position)->away >= 0);
}

/* The consumer was removed: clears this number. */
void
aq_slot_forget_away(Stream *stream, int position)
{
	StreamSub  *ssub = stream_sub(stream, position);

	if (ssub != NULL)
		ssub->away = 0;
}

/*
 * The frame is being evicted: from now on the consumer's messages are not
 * resident. aq_slot_leave was called before.
 */
void
aq_slot_unload(Stream *stream, Partition *partition, int position)
{
	StreamSub  *ssub = stream_sub(stream, position);
	const FrameSub *sub = frame_sub(frame_of(partition), position);
	uint32		nleased = sub_leased(sub);
	int			first = sub->nready == 0 ? -1 : aq_bitmap_next(bitmap_of(sub->ready), PARTITION_SLOTS, 0);

	Assert(sub->ntaken == 0 && sub->nretry == 0 && ssub->ready >= sub->nready);
	ssub->ready -= sub->nready;
	ssub->away += sub->nready + sub->nwaiting + nleased;
	partition->away_waiting += sub->nwaiting;
	partition->away_leased += nleased;
	if (first >= 0)
		aq_slot_leave_head(partition, first, slot_at(frame_of(partition), first));
}

/*
 * Initializes a partition that is empty, or of which only is known that its
 * slots may be used.
 */
void
aq_slot_reset(Partition *partition, uint32 reserved)
{
	partition->reserved = reserved;
	partition->pending = partition->inflight = partition->open = 0;
	partition->nretry = partition->ndoubt = partition->nfailed = 0;
	aq_slot_count_kept(partition);
	memset(partition->sessions, 0, sizeof(partition->sessions));
	partition->more_sessions = false;
	aq_slot_leave(partition, 0, 0);
}

/* --- slots that are read from the tables -------------------------------------------------------- */

/* Sets the slot's state according to the rows. */
void
aq_slot_read(Slot *slot, SlotState state)
{
	set_state(slot, SLOT_STEP_LOAD, state);
}

/* The slot is committed, and a follower of a prepared transaction. */
void
aq_slot_read_follower(Slot *slot, TransactionId xid, uint64 near)
{
	aq_slot_read(slot, SLOT_DOUBT);
	slot->flags |= SLOT_FOLLOWER;
	aq_slot_set_xid(slot, xid, near);
}
