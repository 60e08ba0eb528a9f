/*-------------------------------------------------------------------------
 *
 * test_slot.c
 *	  The states of messages: random transitions against a model, which counts
 *	  everything again after each step.
 *
 * The source is part of this file, because it asserts what is allowed.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "server.h"

#include "sim.h"
#include "tests.h"

#pragma GCC diagnostic ignored "-Wsign-compare"

#include "shard/partitions/slot.c"

#include "slot_model.h"

#define STEPS 250

/* --- steps ------------------------------------------------------------------------------------ */

/* The model makes the step, if the table says that it may. */
static void
go(Message *m, SlotStep step, SlotState to)
{
	CHECK(aq_slot_steps[step].from >> m->state & 1);
	CHECK(aq_slot_steps[step].to >> to & 1);
	m->state = to;
}

static void
see(Message *m, int c, ViewStep step, SlotView to)
{
	CHECK(aq_slot_view_steps[step].from >> m->views[c] & 1);
	CHECK(aq_slot_view_steps[step].to >> to & 1);
	m->views[c] = to;
	if (to != VIEW_TAKEN && to != VIEW_DOUBT && to != VIEW_LEASED)
		m->until[c] = 0;
	if (to != VIEW_WAITING)
		m->retry_at[c] = 0;
}

/* A slot of the partition in one of these states, from anywhere on; -1: no such slot. */
static int
find(const Partition *p, int states)
{
	uint32		from = sim_random(SLOTS);

	for (uint32 i = 0; i < SLOTS; i++)
		if (states >> model[p->index].messages[(from + i) % SLOTS].state & 1)
			return (from + i) % SLOTS;
	return -1;
}

static int
find_view(const Partition *p, int c, int views)
{
	uint32		from = sim_random(SLOTS);

	for (uint32 i = 0; i < SLOTS; i++)
		if (views >> model[p->index].messages[(from + i) % SLOTS].views[c] & 1)
			return (from + i) % SLOTS;
	return -1;
}

/* How many slots from this one on are in its state, 4 at most. */
static uint32
run_length(const Partition *p, uint32 first)
{
	const Message *m = model[p->index].messages;
	uint32		n = 1;

	while (n < 4 && first + n < SLOTS && m[first + n].state == m[first].state &&
		   m[first + n].follower == m[first].follower)
		n++;
	return 1 + sim_random(n);
}

static void
do_reserve(Partition *p)
{
	uint32		n = 1 + sim_random(9);
	int64		session = 1 + sim_random(SESSIONS);
	TimestampTz expires_at = sim_random(2) * 1000;
	uint32		first;

	n = Min(n, SLOTS - p->reserved);
	if (n == 0)
		return;
	first = aq_slot_reserve(p, n, next_xid, session, expires_at);
	CHECK_EQ(first, model[p->index].reserved);
	model[p->index].reserved += n;
	model[p->index].sessions[session] = true;
	for (uint32 i = first; i < first + n; i++)
	{
		Message    *m = &model[p->index].messages[i];

		go(m, SLOT_STEP_RESERVE, SLOT_PENDING);
		m->full_xid = next_xid;
		m->session = session;
		m->expires_at = expires_at;
		m->place = 1 + sim_random(1000);
		aq_slot_locate(slot_at(frame_of(p), i), m->place, m->place % 100);
	}
	next_xid++;
}

/* The transaction of some slots is prepared, or commits behind one that is. */
static void
do_prepare_slots(Partition *p, uint32 first, bool follow)
{
	uint32		n = run_length(p, first);
	uint64		full_xid = next_xid - 1 - sim_random(3);

	if (model[p->index].messages[first].state != SLOT_PENDING)
		return;
	if (follow)
		aq_slot_follow(p, first, n, (TransactionId) full_xid);
	else
		aq_slot_prepare_puts(p, first, n, (TransactionId) full_xid);
	for (uint32 i = first; i < first + n; i++)
	{
		Message    *m = &model[p->index].messages[i];

		go(m, follow ? SLOT_STEP_FOLLOW : SLOT_STEP_PREPARE, SLOT_DOUBT);
		m->follower = follow;
		m->full_xid = full_xid;
	}
}

static void
do_publish(Partition *p, uint32 first)
{
	uint32		n = run_length(p, first);
	bool		waits = sim_random(3) == 0;
	int16		targets[CONSUMERS];
	int			ntargets = 0;
	bool		is_target[CONSUMERS];

	for (int c = 0; c < CONSUMERS; c++)
		if ((is_target[c] = sim_random(4) != 0))
			targets[ntargets++] = positions[c];
	aq_slot_publish(stream, p, first, n, targets, ntargets, waits);
	for (uint32 i = first; i < first + n; i++)
	{
		Message    *m = &model[p->index].messages[i];

		go(m, SLOT_STEP_PUBLISH, ntargets == 0 ? SLOT_DONE : waits ? SLOT_WAITING : SLOT_READY);
		m->follower = false;
		for (int c = 0; c < CONSUMERS; c++)
			if (is_target[c])
				see(m, c, VIEW_STEP_APPEAR, waits ? VIEW_WAITING : VIEW_READY);
	}
}

static void
do_lose(Partition *p, uint32 first)
{
	uint32		n = run_length(p, first);

	if (model[p->index].messages[first].follower)
		return;
	aq_slot_lose(p, first, n);
	for (uint32 i = first; i < first + n; i++)
		go(&model[p->index].messages[i], SLOT_STEP_LOSE, SLOT_DONE);
}

/* A delay is over. */
static void
do_undelay(Partition *p, uint32 number)
{
	Message    *m = &model[p->index].messages[number];

	aq_slot_undelay(slot_at(frame_of(p), number));
	go(m, SLOT_STEP_UNDELAY, SLOT_READY);
	for (int c = 0; c < CONSUMERS; c++)
	{
		bool		waited = m->views[c] == VIEW_WAITING;

		CHECK_EQ(aq_slot_wake(stream, p, positions[c], number), waited);
		if (waited)
			see(m, c, VIEW_STEP_WAKE, VIEW_READY);
	}
}

/* A retry delay is over, or never began. */
static void
do_wake(Partition *p, int c)
{
	int			number = find_view(p, c, VIEW_IN(WAITING) | VIEW_IN(TAKEN) | VIEW_IN(DONE));
	Message    *m = &model[p->index].messages[number];

	if (number < 0 || m->state == SLOT_WAITING)
		return;
	if (m->views[c] != VIEW_WAITING)
		CHECK(!aq_slot_wake(stream, p, positions[c], number));
	else
	{
		CHECK(aq_slot_wake(stream, p, positions[c], number));
		see(m, c, VIEW_STEP_WAKE, VIEW_READY);
	}
}

static void
do_take(Partition *p, int c)
{
	uint32		number = sim_random(SLOTS);
	bool		waiting = sim_random(3) == 0;
	Message    *m = &model[p->index].messages[number];
	bool		can = m->views[c] == (waiting ? VIEW_WAITING : VIEW_READY);

	/* a call has got a place, the worker has not */
	aq_places_got = sim_random(2);
	aq_places_count(p, positions[c], aq_places_got);
	CHECK_EQ(waiting ? aq_slot_take_waiting(p, positions[c], number)
			 : aq_slot_take(stream, p, positions[c], number), can);
	aq_places_count(p, positions[c], -(int) aq_places_got);
	aq_places_got = 0;
	if (can)
		see(m, c, VIEW_STEP_TAKE, VIEW_TAKEN);
}

/* Takes what comes next, from where the last dequeue has stopped, and moves on. */
static void
do_dequeue(int c, uint32 max)
{
	StreamSub  *ssub = stream_sub(stream, positions[c]);
	Partition  *p = partition_at(ssub->hint ? ssub->hint : stream->head);
	bool		passed = true;

	for (; p != NULL && max > 0; p = partition_at(p->next))
	{
		FrameSub   *sub = p->frame == 0 ? NULL : frame_sub(frame_of(p), positions[c]);
		int			number;

		while (sub != NULL && max > 0 &&
			   (number = aq_bitmap_next(bitmap_of(sub->ready), PARTITION_SLOTS, sub->first)) >= 0)
		{
			CHECK(aq_slot_take(stream, p, positions[c], number));
			see(&model[p->index].messages[number], c, VIEW_STEP_TAKE, VIEW_TAKEN);
			aq_slot_pass(sub, number + 1);
			max--;
		}
		if (max == 0)
			return;
		if (sub != NULL)
			aq_slot_pass(sub, PARTITION_SLOTS);
		passed &= sub != NULL && sub->nretry == 0;
		if (passed)
			aq_slot_pass_partition(ssub, p);
	}
	if (passed && max > 0 && ssub->ready == 0 && ssub->ndoubt == 0)
		aq_slot_stream_set_empty(stream, positions[c]);
}

/* A dequeue passes by what is held back, and that ends. */
static void
do_hold_back(int c)
{
	for (Partition *p = partition_at(stream->head); p != NULL; p = partition_at(p->next))
	{
		if (p->frame == 0)
			break;
		aq_slot_pass(frame_sub(frame_of(p), positions[c]), PARTITION_SLOTS);
		aq_slot_pass_partition(stream_sub(stream, positions[c]), p);
	}
	aq_slot_search_from(stream, partition_at(stream->head), positions[c]);
}

static void
do_finish(Partition *p, int c, bool fail)
{
	uint16		numbers[4];
	uint32		n = 0;
	bool		move = false;

	for (uint32 i = sim_random(SLOTS); i < SLOTS && n < lengthof(numbers); i++)
		if (model[p->index].messages[i].views[c] == VIEW_TAKEN)
			numbers[n++] = i;
	for (uint32 i = 0; i < n; i++)
	{
		Message    *m = &model[p->index].messages[numbers[i]];
		uint32		open = 0;

		if (fail)
		{
			aq_slot_fail(p, numbers[i]);
			if (!m->failed)
				go(m, SLOT_STEP_FAIL, m->state);
			m->failed = true;
		}
		see(m, c, VIEW_STEP_FINISH, VIEW_DONE);
		for (int other = 0; other < CONSUMERS; other++)
			open += m->views[other] != VIEW_NONE && m->views[other] != VIEW_DONE;
		if (open > 0)
			continue;
		go(m, SLOT_STEP_FINISH, SLOT_DONE);
		move |= m->failed;
	}
	CHECK_EQ(aq_slot_finish(p, positions[c], numbers, n), move);
}

/* Decide about one taken message: anything but done. */
static void
do_decide(Partition *p, int c, uint32 number)
{
	Message    *m = &model[p->index].messages[number];

	if (m->until[c] != 0 && sim_random(3) == 0)
	{
		/* what was to end the lease is rolled back */
		aq_slot_lease(p, positions[c], number);
		see(m, c, VIEW_STEP_LEASE, VIEW_LEASED);
		return;
	}
	switch (sim_random(6))
	{
		case 0:
			aq_slot_give_back(stream, p, positions[c], number);
			see(m, c, VIEW_STEP_GIVE_BACK, m->state == SLOT_WAITING ? VIEW_WAITING : VIEW_READY);
			break;
		case 1:
			if (m->state != SLOT_READY)
				break;
			aq_slot_delay(p, positions[c], number);
			see(m, c, VIEW_STEP_DELAY, VIEW_WAITING);
			break;
		case 2:
			aq_slot_retry(stream, p, positions[c], number);
			see(m, c, VIEW_STEP_RETRY, VIEW_RETRY);
			break;
		case 3:
			aq_slot_prepare(stream, p, positions[c], number);
			see(m, c, VIEW_STEP_PREPARE, VIEW_DOUBT);
			break;
		case 4:
			aq_slot_make_lease(frame_sub(frame_of(p), positions[c]), number);
			CHECK_EQ(aq_slot_lease_needs(frame_sub(frame_of(p), positions[c]), number), 0);
			m->until[c] = 1 + sim_random(1000);
			aq_slot_note_lease(p, positions[c], number, m->until[c], 1000 + m->until[c]);
			aq_slot_lease(p, positions[c], number);
			see(m, c, VIEW_STEP_LEASE, VIEW_LEASED);
			break;
		case 5:
			if (m->state != SLOT_READY || m->until[c] == 0)
				break;
			aq_slot_delay_until(p, positions[c], number, 1 + sim_random(1000));
			see(m, c, VIEW_STEP_DELAY, VIEW_WAITING);
			m->retry_at[c] = lease_at(frame_sub(frame_of(p), positions[c]), number)->until;
			break;
	}
}

/* A lease is to be ended, or there is none; or the ends are looked at. */
static void
do_lease(Partition *p, int c)
{
	int			number = find_view(p, c, VIEW_IN(LEASED) | (sim_random(4) == 0 ? VIEW_IN(READY) : 0));
	TimestampTz before = sim_random(1500);
	TimestampTz first = 0;

	if (number >= 0)
	{
		bool		leased = model[p->index].messages[number].views[c] == VIEW_LEASED;

		CHECK_EQ(aq_slot_hold_lease(p, positions[c], number), leased);
		if (leased)
			see(&model[p->index].messages[number], c, VIEW_STEP_HOLD, VIEW_TAKEN);
	}
	if (sim_random(2) == 0)
		return;
	aq_slot_find_ends(p, before);
	for (uint32 i = 0; i < SLOTS; i++)
		for (c = 0; c < CONSUMERS; c++)
		{
			const Message *m = &model[p->index].messages[i];
			TimestampTz end = m->views[c] == VIEW_LEASED ? m->until[c] : m->views[c] == VIEW_WAITING ? m->retry_at[c] : 0;

			if (end != 0 && (first == 0 || end < first))
				first = end;
		}
	if (frame_of(p)->lease_end < before)
		CHECK_EQ(frame_of(p)->lease_end, first);
}

/* A count is written, a prepared transaction has ended; or neither. */
static void
do_end(Partition *p, int c)
{
	int			number = find_view(p, c, VIEW_IN(RETRY) | VIEW_IN(DOUBT) | (sim_random(4) == 0 ? VIEW_IN(TAKEN) : 0));
	Message    *m = &model[p->index].messages[number];
	SlotView	view;

	if (number < 0)
		return;
	view = m->views[c];
	CHECK_EQ(aq_slot_counted(p, positions[c], number), view == VIEW_RETRY);
	if (view == VIEW_RETRY)
		see(m, c, VIEW_STEP_COUNTED, VIEW_TAKEN);
	else
		CHECK_EQ(aq_slot_resolve(stream, p, positions[c], number), view == VIEW_DOUBT);
	if (view == VIEW_DOUBT)
		see(m, c, VIEW_STEP_RESOLVE, VIEW_TAKEN);
}

static void
do_move(Partition *p)
{
	for (uint32 i = 0; i < SLOTS; i++)
	{
		Message    *m = &model[p->index].messages[i];

		if (m->state != SLOT_DONE || !m->failed)
			continue;
		aq_slot_move(p, i);
		go(m, SLOT_STEP_MOVE, SLOT_DONE);
		m->failed = false;
	}
}

static void
do_hold(Partition *p)
{
	uint32		n = sim_random(4);

	if (sim_random(2) == 0)
	{
		aq_slot_hold(p, n);
		model[p->index].held += n;
		aq_slot_add_doubts(p, n);
		model[p->index].doubts += n;
	}
	else
	{
		aq_slot_let_go(p, model[p->index].held);
		model[p->index].held = 0;
		for (; model[p->index].doubts > 0; model[p->index].doubts--)
			aq_slot_remove_doubt(p);
	}
}

/* Everything in it is done: it is used again, as the last one. */
static void
do_reuse(Partition *p)
{
	if (!aq_slot_all_done(p) || p->reserved == 0 || p->frame == 0)
		return;
	aq_slot_unlink(stream, p);
	if (p->prev)
		partition_at(p->prev)->next = p->next;
	else
		stream->head = p->next;
	if (p->next)
		partition_at(p->next)->prev = p->prev;
	else
		stream->tail = p->prev;
	free_frame(p);
	append(p);
}

/* --- loading --------------------------------------------------------------------------------- */

static void
do_evict(Partition *p)
{
	if (p->frame == 0 || p->pending > 0 || p->inflight > 0 || p->nretry > 0 || p->ndoubt > 0)
		return;
	aq_slot_leave(p, 0, 0);
	for (int c = 0; c < CONSUMERS; c++)
		aq_slot_unload(stream, p, positions[c]);
	free_frame(p);
	aq_slot_stream_not_empty_for_all(stream);
}

/* As the rows say it, with what the log says of consumers that are done. */
static void
read_slot(Slot *slot, const Message *m)
{
	memset(slot, 0, sizeof(Slot));
	if (m->state == SLOT_EMPTY)
		return;
	aq_slot_read_row(slot, m->place, m->place % 100, m->session);
	aq_slot_set_xid(slot, (TransactionId) m->full_xid, next_xid);
	if (m->expires_at != 0)
		aq_slot_set_expiry(slot, m->expires_at);
	if (m->follower)
	{
		aq_slot_read_follower(slot, (TransactionId) m->full_xid, next_xid);
		return;
	}
	if (m->state != SLOT_DONE)
		aq_slot_read(slot, m->state);
	for (int c = 0; c < CONSUMERS; c++)
		if (m->views[c] != VIEW_NONE)
			aq_slot_read_target(slot);
	for (int c = 0; c < CONSUMERS; c++)
		if (m->views[c] == VIEW_DONE)
			aq_slot_read_done(slot);
	aq_slot_read_failed(slot, true);
	aq_slot_read_failed(slot, m->failed);
}

/* A lease runs, or a transaction in doubt is going to end it; or it has been given back and rests. */
static void
load_lease(Partition *p, int c, uint32 number)
{
	const Message *m = &model[p->index].messages[number];

	if (m->until[c] == 0 && m->retry_at[c] == 0)
		return;
	aq_slot_make_lease(frame_sub(frame_of(p), positions[c]), number);
	if (m->until[c] != 0)
		aq_slot_note_lease(p, positions[c], number, m->until[c], 1000 + m->until[c]);
	if (m->views[c] == VIEW_DOUBT)
		return;
	if (!aq_slot_take(stream, p, positions[c], number))
		CHECK(aq_slot_take_waiting(p, positions[c], number));
	if (m->until[c] != 0)
		aq_slot_lease(p, positions[c], number);
	else
		aq_slot_delay_until(p, positions[c], number, m->retry_at[c]);
}

/* known: it was counted before. */
static void
do_load(Partition *p, bool known)
{
	static Slot slots[(SLOTS / SEGMENT_SLOTS + 1) * SEGMENT_SLOTS];
	uint32		pending = 0,
				inflight = 0,
				open = 0,
				nfailed = 0;

	if (p->frame != 0)
		return;
	p->limited = false;			/* it is counted as a whole */
	memset(slots, 0, sizeof(slots));
	for (uint32 i = 0; i < SLOTS; i++)
	{
		const Message *m = &model[p->index].messages[i];

		read_slot(&slots[i], m);
		pending += m->state == SLOT_DOUBT;
		nfailed += m->failed;
		open += slots[i].open;
		for (int c = 0; c < CONSUMERS; c++)
			inflight += m->views[c] == VIEW_DOUBT;
	}
	make_frame(p);
	aq_slot_load_counts(p, model[p->index].reserved, open + pending + nfailed, nfailed);
	aq_slot_load_inflight(p, pending, inflight);
	for (int s = 0; s <= (SLOTS - 1) / SEGMENT_SLOTS; s++)
		aq_slot_load_segment(frame_of(p), s, &slots[s * SEGMENT_SLOTS]);
	for (uint32 i = 0; i < SLOTS; i++)
		for (int c = 0; c < CONSUMERS; c++)
		{
			Message    *m = &model[p->index].messages[i];
			SlotView	view = m->views[c];

			if (view == VIEW_NONE || view == VIEW_DONE)
				continue;
			if (known)
				aq_slot_count_away(stream, positions[c], -1);
			aq_slot_load(stream, p, positions[c], i, view == VIEW_DOUBT);
			load_lease(p, c, i);
			/* its retry delay runs */
			if (view == VIEW_WAITING && m->state == SLOT_READY && m->retry_at[c] == 0)
			{
				CHECK(aq_slot_take(stream, p, positions[c], i));
				aq_slot_delay(p, positions[c], i);
			}
		}
	for (int c = 0; c < CONSUMERS; c++)
		in_work[p->index][c] = count_work(p, c, true);
	p->limited = true;
}

/* The server ends at once, and what was not prepared is rolled back. */
static void
do_restart(void)
{
	for (Partition *p = partition_at(stream->head); p != NULL; p = partition_at(p->next))
	{
		if (p->frame != 0)
			free_frame(p);
		aq_slot_reset(p, 0);
		p->limited = false;
		model[p->index].held = model[p->index].doubts = 0;
		memset(model[p->index].sessions, 0, sizeof(model[0].sessions));
		for (uint32 i = 0; i < SLOTS; i++)
		{
			Message    *m = &model[p->index].messages[i];

			if (m->state == SLOT_PENDING)
				m->state = SLOT_DONE;
			for (int c = 0; c < CONSUMERS; c++)
				if (m->views[c] == VIEW_TAKEN && m->until[c] != 0)
					m->views[c] = VIEW_LEASED;
				else if (m->views[c] == VIEW_TAKEN || m->views[c] == VIEW_RETRY)
					m->views[c] = m->state == SLOT_WAITING ? VIEW_WAITING : VIEW_READY;
			if (m->state == SLOT_EMPTY)
				continue;
			aq_slot_note_session(p, m->session);
			model[p->index].sessions[m->session] = true;
		}
	}
	for (int i = 0; i < SUB_DIRECTORY; i++)
		if (stream->subs[i] != 0)
			memset(aq_chunk_ptr(stream->subs[i]), 0, AQ_CHUNK_SIZE);
	memset(&stream->sub0, 0, sizeof(StreamSub));
	aq_slot_stream_not_empty_for_all(stream);
	memset(last_doubt, 0, sizeof(last_doubt));
	memset(last_change, 0, sizeof(last_change));
	for (Partition *p = partition_at(stream->head); p != NULL; p = partition_at(p->next))
		do_load(p, false);
}

/* --- the tests --------------------------------------------------------------------------------- */

static void
step(void)
{
	Partition  *p = &partitions[1 + sim_random(PARTITIONS)];
	int			c = sim_random(CONSUMERS);
	int			number;

	if (sim_random(60) == 0)
		do_restart();
	do_load(p, true);
	switch (sim_random(16))
	{
		case 0:
			do_reserve(p);
			break;
		case 1:
		case 2:
			number = find(p, SLOT_IN(PENDING) | SLOT_IN(DOUBT));
			if (number >= 0)
				do_publish(p, number);
			break;
		case 3:
			number = find(p, SLOT_IN(PENDING) | SLOT_IN(DOUBT));
			if (number >= 0 && sim_random(2) == 0)
				do_lose(p, number);
			else if (number >= 0)
				do_prepare_slots(p, number, sim_random(2) == 0);
			break;
		case 4:
			number = find(p, SLOT_IN(WAITING));
			if (number >= 0)
				do_undelay(p, number);
			break;
		case 5:
			do_wake(p, c);
			break;
		case 6:
			for (int i = 0; i < 10; i++)
				do_take(p, c);
			break;
		case 7:
			do_dequeue(c, sim_random(12));
			break;
		case 8:
			do_finish(p, c, sim_random(3) == 0);
			break;
		case 9:
		case 10:
			number = find_view(p, c, VIEW_IN(TAKEN));
			if (number >= 0)
				do_decide(p, c, number);
			break;
		case 11:
			do_end(p, c);
			do_hold_back(c);
			break;
		case 12:
			do_move(p);
			do_hold(p);
			break;
		case 14:
		case 15:
			do_lease(p, c);
			break;
		case 13:
			do_reuse(p);
			do_evict(p);
			break;
	}
}

void
test_slot_random(void)
{
	start();
	for (int i = 0; i < STEPS; i++)
	{
		step();
		recount();
	}
}

/* Whatever is in the partition comes to an end. */
static void
end(Partition *p)
{
	int			number;

	do_load(p, true);
	while ((number = find(p, SLOT_IN(PENDING) | SLOT_IN(DOUBT))) >= 0)
		do_publish(p, number);
	while ((number = find(p, SLOT_IN(WAITING))) >= 0)
		do_undelay(p, number);
	for (int c = 0; c < CONSUMERS; c++)
	{
		while (find_view(p, c, VIEW_IN(RETRY) | VIEW_IN(DOUBT)) >= 0)
			do_end(p, c);
		while (find_view(p, c, VIEW_IN(LEASED)) >= 0)
			do_lease(p, c);
		while (find_view(p, c, VIEW_IN(WAITING)) >= 0)
			do_wake(p, c);
		while (find_view(p, c, VIEW_IN(READY) | VIEW_IN(TAKEN)) >= 0)
		{
			do_dequeue(c, PARTITIONS * SLOTS);
			do_finish(p, c, false);
		}
	}
	do_move(p);
	while (model[p->index].held + model[p->index].doubts > 0)
		do_hold(p);
	CHECK(aq_slot_all_done(p));
}

/* Every message is done in the end, every count is 0, and the partitions are used again. */
void
test_slot_end(void)
{
	start();
	for (int round = 0; round < 10; round++)
	{
		Partition  *p = &partitions[1 + sim_random(PARTITIONS)];

		for (int i = 0; i < STEPS / 10; i++)
			step();
		end(p);
		do_reuse(p);
		recount();
	}
}

/* A step that the table does not have fails an assertion. */
void
test_slot_forbidden(void)
{
	for (int step = 0; step < SLOT_STEPS; step++)
		for (SlotState from = SLOT_EMPTY; from <= SLOT_DONE; from++)
			for (SlotState to = SLOT_EMPTY; to <= SLOT_DONE; to++)
			{
				Slot		slot = {.state = from};
				bool		may = (aq_slot_steps[step].from >> from & 1) && (aq_slot_steps[step].to >> to & 1);

				unit_expect_assert = true;
				unit_assert_seen = false;
				set_state(&slot, step, to);
				unit_expect_assert = false;
				CHECK_EQ(unit_assert_seen, !may);
			}

	/* taken twice, given back twice, counts below zero */
	start();
	do_reserve(&partitions[1]);
	aq_slot_publish(stream, &partitions[1], 0, 1, positions, 1, false);
	CHECK(aq_slot_take(stream, &partitions[1], 0, 0));
	CHECK(!aq_slot_take(stream, &partitions[1], 0, 0));
	aq_slot_hold(&partitions[1], 1);
	aq_slot_give_back(stream, &partitions[1], 0, 0);
	unit_expect_assert = true;
	aq_slot_give_back(stream, &partitions[1], 0, 0);
	CHECK(unit_assert_seen);
	unit_assert_seen = false;
	aq_slot_let_go(&partitions[3], 1);
	CHECK(unit_assert_seen);
	unit_assert_seen = false;
	aq_slot_lose(&partitions[2], 0, 1);
	CHECK(unit_assert_seen);
	unit_expect_assert = unit_assert_seen = false;
}
