/*-------------------------------------------------------------------------
 *
 * slot_model.h
 *	  For test_slot.c: the shared memory of a stream, a model of its messages that
 *	  keeps their states only, and counting everything again.
 *
 * Included once, behind shard/partitions/slot.c.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_SLOT_MODEL_H
#define AQ_SLOT_MODEL_H

#define PARTITIONS 3			/* in the stream */
#define SLOTS 70				/* of each, more than a segment and than a word */
#define CONSUMERS 3
#define SESSIONS 6				/* more than a partition remembers */

static const int16 positions[CONSUMERS] = {0, 1, SUBS_PER_CHUNK + 3};

typedef struct Message
{
	SlotState	state;
	SlotView	views[CONSUMERS];
	TimestampTz until[CONSUMERS];	/* of a lease that runs, or is held; 0: none */
	TimestampTz retry_at[CONSUMERS];	/* WAITING until then; 0: by a timer */
	bool		follower;
	bool		failed;
	TimestampTz expires_at;
	uint64		full_xid;
	int64		session;
	uint32		place;
} Message;

static struct
{
	Message		messages[SLOTS];
	uint32		reserved;
	uint32		held;
	uint32		doubts;
	bool		sessions[SESSIONS + 1];
	bool		resident;
}			model[PARTITIONS + 1];	/* by the partition's index */

uint32		aq_places_got;

/* messages in work, as slot.c has told, by the partition's index */
static int	in_work[PARTITIONS + 1][CONSUMERS];

static uint64 last_change[CONSUMERS];
static uint32 last_doubt[CONSUMERS];
static uint64 next_xid;
static int64 next_number;

/* --- what is in shared memory ---------------------------------------------------------- */

#define CHUNKS 300

static ShardArea area;
static Partition partitions[PARTITIONS + 1];
static Stream streams[2];
static char chunks[CHUNKS + 1][AQ_CHUNK_SIZE] __attribute__((aligned(64)));
static bool chunk_used[CHUNKS + 1];

ShardArea  *aq_area = &area;
Partition  *aq_area_partitions = partitions;
Stream	   *aq_area_streams = streams;
char	   *aq_chunks_base = chunks[0];

static Stream *stream = &streams[1];

AqChunk
aq_chunks_take(void)
{
	AqChunk		chunk = 1;

	while (chunk <= CHUNKS && chunk_used[chunk])
		chunk++;
	CHECK(chunk <= CHUNKS);
	chunk_used[chunk] = true;
	memset(chunks[chunk], 0, AQ_CHUNK_SIZE);
	return chunk;
}

void
aq_places_count(const Partition *partition, int position, int n)
{
	for (int c = 0; c < CONSUMERS; c++)
		if (positions[c] == position)
			in_work[partition->index][c] += n;
}

static void
free_chunk(AqChunk chunk)
{
	chunk_used[chunk] = false;
}

/* As aq_frame_sub_make and aq_frame_stream_sub_make do. */
static void
make_sub(Frame *frame, int position)
{
	FrameSub   *sub = &frame->sub0;

	if (position > 0)
	{
		AqChunk    *of_frame = &frame->subs[position / SUBS_PER_CHUNK];
		AqChunk    *of_stream = &stream->subs[position / SUBS_PER_CHUNK];

		aq_slot_make_bitmap(of_frame);
		aq_slot_make_bitmap(of_stream);
		sub = (FrameSub *) aq_chunk_ptr(*of_frame) + position % SUBS_PER_CHUNK;
	}
	aq_slot_make_bitmap(&sub->ready);
	aq_slot_make_bitmap(&sub->retry);
	aq_slot_pass(sub, PARTITION_SLOTS);
}

static void
make_frame(Partition *p)
{
	Frame	   *frame;

	p->frame = aq_chunks_take();
	frame = frame_of(p);
	for (int s = 0; s <= (SLOTS - 1) / SEGMENT_SLOTS; s++)
		frame->segments[s] = aq_chunks_take();
	for (int c = 0; c < CONSUMERS; c++)
		make_sub(frame, positions[c]);
	model[p->index].resident = true;
}

static void
free_more(const SubMore *more)
{
	for (int i = 0; i < ATTEMPT_PAGES; i++)
		free_chunk(more->attempts[i]);
	for (int i = 0; i < LEASE_PAGES; i++)
		free_chunk(more->leases[i]);
	free_chunk(more->leased);
	free_chunk(more->alone);
}

static void
free_frame(Partition *p)
{
	Frame	   *frame = frame_of(p);

	for (int c = 0; c < CONSUMERS; c++)
	{
		FrameSub   *sub = frame_sub(frame, positions[c]);

		free_chunk(sub->ready);
		free_chunk(sub->retry);
		free_chunk(sub->waiting);
		free_chunk(sub->doubt);
		if (sub->more != 0)
			free_more(sub_more(sub));
		free_chunk(sub->more);
	}
	for (int i = 0; i < SUB_DIRECTORY; i++)
		free_chunk(frame->subs[i]);
	for (int s = 0; s <= (SLOTS - 1) / SEGMENT_SLOTS; s++)
		free_chunk(frame->segments[s]);
	free_chunk(p->frame);
	p->frame = 0;
	model[p->index].resident = false;
}

/* The partition is the last one of the stream. */
static void
append(Partition *p)
{
	p->number = next_number++;
	p->prev = stream->tail;
	p->next = 0;
	if (p->prev)
		partition_at(p->prev)->next = p->index;
	else
		stream->head = p->index;
	stream->tail = p->index;
	aq_slot_reset(p, 0);
	p->limited = true;
	memset(&model[p->index], 0, sizeof(model[0]));
	make_frame(p);
	aq_slot_stream_not_empty_for_all(stream);
}

static void
start(void)
{
	sim_start(1);
	memset(chunk_used, 0, sizeof(chunk_used));
	memset(partitions, 0, sizeof(partitions));
	memset(streams, 0, sizeof(streams));
	memset(model, 0, sizeof(model));
	memset(in_work, 0, sizeof(in_work));
	memset(last_change, 0, sizeof(last_change));
	memset(last_doubt, 0, sizeof(last_doubt));
	pg_atomic_init_u64(&area.doubt_changes, 0);
	next_xid = (UINT64CONST(5) << 32) - 5;	/* the epoch changes on the way */
	next_number = 1;
	stream->index = 1;
	for (uint32 i = 1; i <= PARTITIONS; i++)
	{
		partitions[i].index = i;
		append(&partitions[i]);
	}
}

/* --- counting again ------------------------------------------------------------------------ */

/* Its lease is known as long as it may go on, and is looked for in time. */
static void
recount_lease(const Partition *p, uint32 number, int c)
{
	const Message *m = &model[p->index].messages[number];
	const FrameSub *sub = frame_sub(frame_of(p), positions[c]);
	const Lease *lease = lease_at(sub, number);
	TimestampTz end = m->views[c] == VIEW_LEASED ? m->until[c] : m->views[c] == VIEW_WAITING ? m->retry_at[c] : 0;

	if (m->until[c] != 0)
	{
		CHECK_EQ(lease->until, m->until[c]);
		CHECK_EQ(lease->receipt, 1000 + m->until[c]);
	}
	else
		CHECK(lease == NULL || lease->receipt <= 0);
	if (end == 0)
		return;
	CHECK_EQ(lease->until, end);
	CHECK(sub_more(sub)->ends[number / LEASES_PER_CHUNK] != 0 && sub_more(sub)->ends[number / LEASES_PER_CHUNK] <= end);
	CHECK(frame_of(p)->lease_end != 0 && frame_of(p)->lease_end <= end);
	CHECK(p->next_timer != 0 && p->next_timer <= end);
}

static void
recount_slot(const Partition *p, uint32 number, uint32 *open)
{
	const Message *m = &model[p->index].messages[number];
	const Slot *slot = slot_at(frame_of(p), number);
	uint32		views = 0;

	for (int c = 0; c < CONSUMERS; c++)
	{
		const FrameSub *sub = frame_sub(frame_of(p), positions[c]);

		views += m->views[c] != VIEW_NONE && m->views[c] != VIEW_DONE;
		CHECK_EQ(has_bit(sub->ready, number), m->views[c] == VIEW_READY);
		CHECK_EQ(has_bit(sub->waiting, number), m->views[c] == VIEW_WAITING);
		CHECK_EQ(has_bit(sub->retry, number), m->views[c] == VIEW_RETRY);
		CHECK_EQ(has_bit(sub->doubt, number), m->views[c] == VIEW_DOUBT);
		CHECK_EQ(aq_slot_is_leased(sub, number), m->views[c] == VIEW_LEASED);
		recount_lease(p, number, c);
	}
	CHECK_EQ(slot->state, m->state);
	CHECK_EQ(slot->open, views);
	*open += views;
	CHECK_EQ((slot->flags & SLOT_FOLLOWER) != 0, m->follower);
	CHECK_EQ((slot->flags & SLOT_FAILED) != 0, m->failed);
	CHECK_EQ((slot->flags & SLOT_EXPIRES) != 0, m->expires_at != 0);
	CHECK_EQ(slot->expires_at, m->expires_at);
	CHECK_EQ(slot->session, m->session);
	CHECK_EQ(slot->block, m->place);
	CHECK_EQ(slot->offset, m->place % 100);
	if (m->state != SLOT_EMPTY)
		CHECK_EQ(slot_full_xid(slot), m->full_xid & UINT64CONST(0xFFFFFFFFFFFF));
}

/* The consumer's messages that are taken or in doubt; leased: also those that are leased. */
static uint32
count_work(const Partition *p, int c, bool leased)
{
	uint32		n = 0;

	for (uint32 i = 0; i < SLOTS; i++)
	{
		SlotView	view = model[p->index].messages[i].views[c];

		n += view == VIEW_TAKEN || view == VIEW_DOUBT || (leased && view == VIEW_LEASED);
	}
	return n;
}

static void
recount_partition(const Partition *p)
{
	uint32		pending = 0,
				nfailed = 0,
				open = 0,
				inflight = model[p->index].held,
				nretry = 0;

	for (uint32 i = 0; i < SLOTS; i++)
	{
		const Message *m = &model[p->index].messages[i];

		pending += m->state == SLOT_PENDING || m->state == SLOT_DOUBT;
		nfailed += m->failed;
		for (int c = 0; c < CONSUMERS; c++)
		{
			inflight += m->views[c] == VIEW_TAKEN || m->views[c] == VIEW_DOUBT;
			nretry += m->views[c] == VIEW_RETRY;
		}
		if (p->frame != 0)
			recount_slot(p, i, &open);
		else
			for (int c = 0; c < CONSUMERS; c++)
				open += m->views[c] != VIEW_NONE && m->views[c] != VIEW_DONE;
	}
	for (int c = 0; c < CONSUMERS; c++)
	{
		CHECK(!p->limited || in_work[p->index][c] == (int) count_work(p, c, true));
		CHECK(p->frame == 0 || frame_sub(frame_of(p), positions[c])->ntaken == count_work(p, c, false));
	}
	CHECK_EQ(aq_places_got, 0);
	CHECK_EQ(p->reserved, model[p->index].reserved);
	CHECK_EQ(p->pending, pending);
	CHECK_EQ(p->nfailed, nfailed);
	CHECK_EQ(p->open, pending + nfailed + open);
	CHECK_EQ(p->inflight, inflight);
	CHECK_EQ(p->nretry, nretry);
	CHECK_EQ(p->ndoubt, model[p->index].doubts);
	CHECK_EQ(p->kept, pending + inflight + model[p->index].doubts > 0 ? FRAME_CHUNKS(p->reserved) : 0);
	CHECK_EQ(aq_slot_all_done(p), pending + nfailed + open + inflight + nretry + model[p->index].doubts == 0);
	for (int s = 1; s <= SESSIONS; s++)
	{
		bool		known = p->more_sessions;

		for (int i = 0; i < PARTITION_SESSIONS; i++)
			known |= p->sessions[i] == s;
		CHECK(known || !model[p->index].sessions[s]);
		for (int i = 0; i < PARTITION_SESSIONS; i++)
			CHECK(p->sessions[i] != s || model[p->index].sessions[s]);
	}
}

/* What is known of a partition that was evicted. */
static void
recount_away(const Partition *p)
{
	uint32		waiting = 0,
				leased = 0,
				head = NO_SLOT;

	for (uint32 i = 0; i < SLOTS; i++)
		for (int c = 0; c < CONSUMERS; c++)
		{
			SlotView	view = model[p->index].messages[i].views[c];

			waiting += view == VIEW_WAITING;
			leased += view == VIEW_LEASED;
			if (view == VIEW_READY)
				head = Min(head, i);
		}
	CHECK_EQ(p->away_waiting, waiting);
	CHECK_EQ(p->away_leased, leased);
	CHECK_EQ(p->away_head, head);
	if (head != NO_SLOT)
	{
		CHECK_EQ(p->away_block, model[p->index].messages[head].place);
		CHECK_EQ(p->away_offset, p->away_block % 100);
	}
}

static void
recount_consumer(int c)
{
	const StreamSub *ssub = stream_sub(stream, positions[c]);
	int64		ready = 0;
	uint32		ndoubt = 0,
				nretry = 0,
				away = 0;		/* not resident */
	int64		messages_away = 0;
	int64		begin = ssub->hint != 0 ? partition_at(ssub->hint)->number : 0;

	for (const Partition *p = partition_at(stream->head); p != NULL; p = partition_at(p->next))
	{
		const FrameSub *sub;
		uint32		n[VIEW_DONE + 1] = {0};

		if (p->frame == 0)
		{
			away += p->number >= begin;
			for (uint32 i = 0; i < SLOTS; i++)
				messages_away += model[p->index].messages[i].views[c] != VIEW_NONE && model[p->index].messages[i].views[c] != VIEW_DONE;
			continue;
		}
		sub = frame_sub(frame_of(p), positions[c]);
		for (uint32 i = 0; i < SLOTS; i++)
		{
			SlotView	view = model[p->index].messages[i].views[c];

			n[view]++;
			CHECK(view != VIEW_READY || sub->first <= i);
			/* a dequeue waits for a count that is to be written */
			CHECK((view != VIEW_READY && view != VIEW_RETRY) || begin <= p->number);
		}
		CHECK_EQ(sub->nready, n[VIEW_READY]);
		CHECK_EQ(sub->nwaiting, n[VIEW_WAITING]);
		CHECK_EQ(sub->nretry, n[VIEW_RETRY]);
		CHECK_EQ(sub->ndoubt, n[VIEW_DOUBT]);
		CHECK_EQ(sub->more != 0 ? sub_more(sub)->nleased : 0, n[VIEW_LEASED]);
		ready += n[VIEW_READY];
		nretry += n[VIEW_RETRY];
		ndoubt += n[VIEW_DOUBT];
	}
	/* a dequeue does not look at all */
	if (aq_slot_stream_is_empty(stream, positions[c]))
		CHECK_EQ(ready + nretry + ndoubt + away, 0);
	CHECK_EQ(ssub->ready, ready);
	CHECK_EQ(ssub->ndoubt, ndoubt);
	CHECK_EQ(ssub->away, messages_away);
	if (ndoubt != last_doubt[c])
		CHECK(ssub->doubt_change > last_change[c]);
	last_doubt[c] = ndoubt;
	last_change[c] = ssub->doubt_change;
}

static void
recount(void)
{
	for (const Partition *p = partition_at(stream->head); p != NULL; p = partition_at(p->next))
	{
		recount_partition(p);
		if (p->frame == 0)
			recount_away(p);
	}
	for (int c = 0; c < CONSUMERS; c++)
		recount_consumer(c);
}

#endif							/* AQ_SLOT_MODEL_H */
