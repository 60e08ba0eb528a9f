/*-------------------------------------------------------------------------
 *
 * load.c
 *	  Loading a partition from its tables into shared memory, when it is
 *	  needed.
 *
 * Loading locks the tables, marks the partition, reads without a latch, and
 * installs under the stream's latch; other sessions wait until the mark is
 * removed.  The mark is a claim.  While a session has it, the session must not
 * wait for locks: a session that waits for the mark may hold the tables, and a
 * third session may wait for that one.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "shard/loading/loading_private.h"
#include "shard/tables/contents.h"
#include "shard/partitions/tag.h"

#include "access/heapam.h"
#include "access/tableam.h"
#include "storage/lmgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"

static uint32
count_open(Contents *p)
{
	uint32		open = p->pending + p->nfailed;

	for (uint32 i = 0; i < p->nslots; i++)
		open += p->slots[i].open;
	return open;
}

/*
 * The first time after a start, adds unfinished messages to the consumers'
 * lag.
 */
static void
count_lag(Contents *p)
{
	for (int position = 0; position < AQ_MAX_CONSUMERS; position++)
		if (p->todo[position] != NULL && !p->partition->in_lag)
			aq_traffic_found(p->shm, position, aq_contents_todo(p, position));
}

/*
 * --- partitions that are not resident, for views
 * -------------------------------------------------
 */

typedef struct Away
{
	uint32		waiting;
	uint32		leased;
	uint16	   *leased_for;		/* by consumer */
	int			head;			/* -1: no message is ready */
} Away;

/*
 * The partition's counts, if it does not become resident.  Allocates memory.
 */
static Away
find_away(const Contents *p)
{
	Away		away = {.head = -1, .leased_for = palloc0(AQ_CHUNK_SIZE)};

	for (int position = 0; position < AQ_MAX_CONSUMERS; position++)
	{
		int			head;
		uint32		leased;

		away.waiting += aq_contents_waiting(p, position, &head, &leased);
		away.leased += leased;
		away.leased_for[position] = leased;
		if (head >= 0 && (away.head < 0 || head < away.head))
			away.head = head;
	}
	return away;
}

/* Chunks for views of the stream, for consumers that have none yet. */
static uint32
stream_subs_needed(const Contents *p, const Stream *stream)
{
	uint32		needs = 0;

	for (int directory = 0; directory < SUB_DIRECTORY; directory++)
	{
		bool		needed = false;

		for (int i = Max(directory * SUBS_PER_CHUNK, 1); i < (directory + 1) * SUBS_PER_CHUNK; i++)
			needed |= p->todo[i] != NULL;
		if (needed && stream->subs[directory] == 0)
			needs++;
	}
	return needs;
}

/*
 * Adds the partition to the counts of partitions that are not resident (sign
 * 1), or removes it when it becomes resident (-1).  The caller holds the
 * latch.
 */
static void
count_away(const Contents *p, Stream *stream, int sign)
{
	for (int position = 0; position < AQ_MAX_CONSUMERS; position++)
	{
		if (p->todo[position] == NULL)
			continue;
		(void) aq_frame_stream_sub_make(stream, position);
		aq_slot_count_away(stream, position, sign * (int64) aq_contents_todo(p, position));
	}
}

/* The caller holds the latch. */
static void
install_away(const Contents *p, Stream *stream, bool known, bool resident, const Away *away)
{
	Partition  *partition = p->partition;

	if (known == resident)
		count_away(p, stream, resident ? -1 : 1);
	aq_slot_leave(partition, resident ? 0 : away->waiting, resident ? 0 : away->leased);
	if (resident || away->head < 0)
		return;
	aq_slot_leave_head(partition, away->head, &p->slots[away->head]);
	partition->file = p->file;
}

/*
 * --- summary and frame
 * -------------------------------------------------------------------
 */

static bool
was_for_removed(const Contents *p)
{
	for (uint32 i = 0; i < p->nslots; i++)
		if (p->removed[i] > 0)
			return true;
	return false;
}

/*
 * Sets the members of the partition that are needed with and without a frame.
 * The caller holds the latch.
 */
static void
install_summary(Contents *p)
{
	Partition  *partition = p->partition;

	for (uint32 i = 0; i < p->nslots && !partition->counted; i++)
		if (p->slots[i].state != SLOT_EMPTY)
			aq_slot_note_session(partition, p->slots[i].session);
	aq_slot_load_counts(partition, partition->counted ? partition->reserved : p->nslots, count_open(p), p->nfailed);
	partition->counted = partition->in_lag = true;
	if (was_for_removed(p))
	{
		/* the time of the consumer's removal is not known */
		partition->last_take = GetCurrentTimestamp();
		partition->last_taker = InvalidTransactionId;
	}
	else if (partition->last_take == 0)
		partition->last_take = p->last_take;
	partition->next_timer = p->next_timer;
	for (uint32 i = 0; i < p->nslots; i++)
	{
		Slot	   *slot = &p->slots[i];
		TimestampTz when = 0;

		if (slot->state == SLOT_WAITING)
			when = p->ready_at[i];
		else if (slot->state == SLOT_READY && (slot->flags & SLOT_EXPIRES))
			when = slot->expires_at;
		if (when != 0 && (partition->next_timer == 0 || when < partition->next_timer))
			partition->next_timer = when;
	}
	if (p->nfailed > 0)
		aq_work_post(p->shm, AQ_WORK_FAILED);
}

/* Has the consumer messages that wait for a delay or a retry delay? */
static bool
has_waiting(Contents *p, int position, const Bitmapset *delayed)
{
	int			slot = -1;

	if (bms_is_member(position, delayed))
		return true;
	for (uint32 i = 0; i < p->nslots && p->leases[position] != NULL; i++)
		if (p->leases[position][i].receipt == LEASE_RETRY_DELAY)
			return true;
	while (p->delayed && p->todo[position] != NULL &&
		   (slot = aq_bitmap_next(p->todo[position], PARTITION_SLOTS, slot + 1)) >= 0)
		if (p->slots[slot].state == SLOT_WAITING)
			return true;
	return false;
}

/* The number of chunks for the directory and for pages with nonzero counts. */
static uint32
attempts_needed(const uint8 *attempts)
{
	uint32		needs = 1;

	for (uint32 page = 0; page < PARTITION_SLOTS / ATTEMPTS_PER_CHUNK; page++)
		for (uint32 i = 0; i < ATTEMPTS_PER_CHUNK; i++)
			if (attempts[page * ATTEMPTS_PER_CHUNK + i] > 0)
			{
				needs++;
				break;
			}
	return needs;
}

/* Its leases: a few chunks more than that, as the pages of attempts may be there. */
static uint32
leases_needed(const Lease *leases)
{
	uint32		needs = 2 + ATTEMPT_PAGES;

	for (uint32 page = 0; page < LEASE_PAGES; page++)
		for (uint32 i = 0; i < LEASES_PER_CHUNK; i++)
			if (leases[page * LEASES_PER_CHUNK + i].receipt != 0)
			{
				needs++;
				break;
			}
	return needs == 2 + ATTEMPT_PAGES ? 0 : needs;
}

/* Is a message of this page of tags one with a correlation? */
static bool
page_has_tags(const Contents *p, uint32 page)
{
	uint32		first = page * TAGS_PER_CHUNK;
	uint16		any = TAG_NONE;

	for (uint32 slot = first; slot < Min(first + TAGS_PER_CHUNK, p->nslots); slot++)
		any |= p->tags[slot];
	return any != TAG_NONE;
}

static uint32
tag_pages(const Contents *p)
{
	uint32		pages = 0;

	for (uint32 page = 0; page < TAG_PAGES; page++)
		pages += page_has_tags(p, page);
	return pages;
}

static void
install_tags(const Contents *p, Frame *frame)
{
	for (uint32 page = 0; page < TAG_PAGES; page++)
		if (page_has_tags(p, page))
		{
			frame->tags[page] = aq_chunks_take();
			memcpy(aq_chunk_ptr(frame->tags[page]), &p->tags[page * TAGS_PER_CHUNK], AQ_CHUNK_SIZE);
		}
}

/*
 * The number of chunks that install_frame takes, and not much more: with
 * hundreds of consumers, a generous estimate might exceed the cache although
 * the partition fits. docs/sizing.md tells how large a cache must be.
 */
static uint32
chunks_needed(Contents *p)
{
	uint32		needs = 1 + (p->nslots + SEGMENT_SLOTS - 1) / SEGMENT_SLOTS + tag_pages(p);
	int			directory = -1;
	Bitmapset  *delayed = NULL;
	ListCell   *lc;

	foreach(lc, p->retry_delays)
		delayed = bms_add_member(delayed, ((Timer *) lfirst(lc))->position);
	for (int position = 0; position < AQ_MAX_CONSUMERS; position++)
	{
		if (p->todo[position] == NULL && p->attempts[position] == NULL)
			continue;
		needs++;
		if (has_waiting(p, position, delayed))
			needs++;
		if (p->doubt[position] != NULL)
			needs++;
		if (p->attempts[position] != NULL)
			needs += attempts_needed(p->attempts[position]);
		if (p->leases[position] != NULL)
			needs += leases_needed(p->leases[position]);
		if (position > 0 && position / SUBS_PER_CHUNK != directory)
		{
			directory = position / SUBS_PER_CHUNK;
			needs += 2;			/* the directories of frame and stream */
		}
	}
	if (p->ntimers > 0)
		needs += 2 + p->ntimers / TIMERS_PER_CHUNK;
	return needs;
}

/* A lease that runs, or that a prepared transaction is about to end; or a message that waits for its retry delay. */
static void
install_lease(Contents *p, Stream *stream, int position, uint32 number)
{
	Partition  *partition = p->partition;
	const Lease *lease = &p->leases[position][number];

	aq_slot_make_lease(frame_sub(frame_of(partition), position), number);
	if (lease->receipt != LEASE_RETRY_DELAY)
		aq_slot_note_lease(partition, position, number, lease->until, lease->receipt);
	if (!aq_slot_take(stream, partition, position, number) && !aq_slot_take_waiting(partition, position, number))
		return;					/* in doubt */
	if (lease->receipt == LEASE_RETRY_DELAY)
		aq_slot_delay_until(partition, position, number, lease->until);
	else
		aq_slot_lease(partition, position, number);
}

static void
install_consumer(Contents *p, Stream *stream, int position)
{
	Partition  *partition = p->partition;
	Frame	   *frame = frame_of(partition);

	(void) aq_frame_stream_sub_make(stream, position);
	(void) aq_frame_sub_make(frame, position);
	if (p->todo[position] != NULL)
	{
		int			slot = -1;

		while ((slot = aq_bitmap_next(p->todo[position], PARTITION_SLOTS, slot + 1)) >= 0)
			aq_slot_load(stream, partition, position, slot, false);
	}
	if (p->doubt[position] != NULL)
	{
		int			slot = -1;

		while ((slot = aq_bitmap_next(p->doubt[position], PARTITION_SLOTS, slot + 1)) >= 0)
			aq_slot_load(stream, partition, position, slot, true);
	}
	if (p->attempts[position] != NULL)
		for (uint32 slot = 0; slot < p->nslots; slot++)
			if (p->attempts[position][slot] > 0)
				aq_frame_set_attempts(frame, position, slot, p->attempts[position][slot]);
	for (uint32 slot = 0; slot < p->nslots && p->leases[position] != NULL; slot++)
		if (p->leases[position][slot].receipt != 0)
			install_lease(p, stream, position, slot);
}

/* Makes ready messages wait for their retry delays. */
static void
install_retry_delays(Contents *p, Stream *stream)
{
	Partition  *partition = p->partition;
	ListCell   *lc;

	foreach(lc, p->retry_delays)
	{
		Timer	   *delay = lfirst(lc);

		aq_frame_push_timer(partition, delay->when, delay->slot, delay->position, TIMER_RETRY);
		if (aq_slot_take(stream, partition, delay->position, delay->slot))
			aq_slot_delay(partition, delay->position, delay->slot);
	}
}

/* The caller holds the latch and has reserved the chunks. */
static void
install_frame(Contents *p, Stream *stream)
{
	Partition  *partition = p->partition;
	Frame	   *frame;

	partition->frame = aq_chunks_take();
	partition->file = p->file;
	partition->referenced = true;
	aq_slot_load_inflight(partition, p->pending, p->inflight);
	aq_slot_add_doubts(partition, list_length(p->doubts));
	frame = frame_of(partition);
	/* make all segments, so that slot_at needs no check */
	for (uint32 s = 0; s < (p->nslots + SEGMENT_SLOTS - 1) / SEGMENT_SLOTS; s++)
	{
		frame->segments[s] = aq_chunks_take();
		aq_slot_load_segment(frame, s, &p->slots[s * SEGMENT_SLOTS]);
	}
	install_tags(p, frame);
	for (int position = 0; position < AQ_MAX_CONSUMERS; position++)
		if (p->todo[position] != NULL || p->attempts[position] != NULL)
			install_consumer(p, stream, position);
	if (p->ntimers > 0)
	{
		aq_frame_prepare(stream, frame, 0, 1, NULL, false, p->ntimers);
		for (uint32 i = 0; i < p->nslots; i++)
		{
			Slot	   *slot = &p->slots[i];

			if (slot->state == SLOT_WAITING)
				aq_frame_push_timer(partition, p->ready_at[i], i, 0, TIMER_READY);
			if ((slot->state == SLOT_WAITING || slot->state == SLOT_READY) &&
				(slot->flags & SLOT_EXPIRES))
				aq_frame_push_timer(partition, slot->expires_at, i, 0, TIMER_EXPIRE);
		}
		install_retry_delays(p, stream);
		aq_frame_drop_timers(frame, frame->timers_reserved);
	}
}

/* The partition that the session is loading, one at a time. */
static struct
{
	AqQueueShm *shm;
	Stream	   *stream;
	Partition  *partition;
	int64		number;
}			loading;

/* Release of a claim: removes the mark; the partition is not loaded. */
static void
stop_loading(void *ptr, int64 unused)
{
	aq_latch_get(&loading.stream->latch, AQ_EXCLUSIVE, AQ_LOC_PARTITION_LOAD);
	if (loading.partition->stream == loading.stream->index && loading.partition->number == loading.number)
		loading.partition->loading = false;
	aq_latch_free(&loading.stream->latch);
	aq_cond_broadcast(&loading.shm->changed);
	aq_chunks_tell();			/* the frame can be evicted now */
}

/*
 * Marks the partition as being loaded; returns false if another session has
 * loaded it, or, if it is not wanted whole, counted it, also for limits, or it has
 * left its stream.
 */
static bool
begin_load(AqQueueShm *shm, Stream *stream, Partition *partition, uint32 in_stream,
		   int64 number, bool whole)
{
	bool		mine = false;

	aq_claim_reserve(1);
	aq_cond_prepare(&shm->changed);
	for (;;)
	{
		bool		wait;

		aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_PARTITION_LOAD);
		wait = partition->stream == in_stream && partition->number == number &&
			partition->loading;
		if (!wait && partition->stream == in_stream && partition->number == number &&
			partition->state == PARTITION_CLOSED && partition->frame == 0 &&
			(whole || !partition->counted || (shard_queue(shm)->limited && !partition->limited)))
		{
			mine = partition->loading = true;
			partition->claimant = aq_session_own_number;
			loading.shm = shm;
			loading.stream = stream;
			loading.partition = partition;
			loading.number = number;
			aq_claim_enter(stop_loading, &loading, 0);
		}
		aq_latch_free(&stream->latch);
		if (!wait)
			break;
		aq_cond_sleep(&shm->changed, AQ_EVENT_PARTITION_LOAD, shm->queue_id,
					  stream->shard, number, -1);
	}
	aq_cond_cancel();
	return mine;
}

/*
 * Can the partition be opened again?  There must be room for two timers for
 * each further message.  The caller holds the latch.
 */
static bool
can_reopen(const Stream *stream, const Partition *partition, uint32 timers)
{
	return stream->open == 0 && stream->tail == partition->index && partition->was_open &&
		partition->state == PARTITION_CLOSED && partition->counted &&
		partition->reserved < PARTITION_SLOTS &&
		timers <= MAX_TIMERS - 2 * (PARTITION_SLOTS - partition->reserved);
}

/*
 * Undoes aq_stream_close.  The caller holds the latch; the partition is
 * resident.
 */
static void
reopen_resident(Stream *stream, Partition *partition)
{
	CacheHistory *history = &aq_area->history;

	partition->state = PARTITION_OPEN;
	partition->was_open = false;
	stream->open = partition->index;
	if (partition->reserved == 0)
		return;
	pg_atomic_fetch_sub_u64(&history->closed, 1);
	pg_atomic_fetch_sub_u64(&history->closed_slots, partition->reserved);
}

/*
 * Was a consumer removed after the tables were read, so that its messages were
 * installed?
 */
static bool
has_removed(const Contents *p)
{
	for (int position = 0; position < AQ_MAX_CONSUMERS; position++)
		if (p->todo[position] != NULL && aq_consumer_removed(aq_shm_consumer(p->shm, position)))
			return true;
	return false;
}

/* Notes which removed consumers have messages that are not done according to the log. */
static void
note_left(const Contents *p)
{
	for (int position = 0; position < AQ_MAX_CONSUMERS; position++)
	{
		AqConsumerShm *consumer = p->left[position] != NULL ? aq_shm_consumer(p->shm, position) : NULL;

		if (consumer != NULL && aq_consumer_removed(consumer) &&
			aq_bitmap_next(p->left[position], PARTITION_SLOTS, 0) >= 0)
			aq_consumer_leaves(consumer);
	}
}

static void
load_marked(AqQueueShm *shm, Stream *stream, Partition *partition, bool whole, bool reopen, uint32 spare)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "pgaq load", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	Contents   *p = aq_contents_read(shm, partition);
	Away		away = find_away(p);
	uint32		needs;
	AqChunk		work;
	bool		resident,
				known;

	whole |= p->doubts != NIL;
	needs = whole ? chunks_needed(p) + spare : stream_subs_needed(p, stream) + (away.leased > 0);
	if (needs > 0)
		aq_chunks_reserve(needs);
	aq_point("loading");

	aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_PARTITION_LOAD);
	reopen = reopen && can_reopen(stream, partition, p->ntimers);
	resident = whole && (count_open(p) > 0 || reopen);
	if (resident && !aq_doubt_table_add_all(partition, p->doubts, p->doubt_sessions))
	{
		/*
		 * without entries, messages in doubt would stay so after the
		 * transactions end
		 */
		aq_latch_free(&stream->latch);
		aq_doubt_table_refuse();
	}
	known = partition->in_lag;
	work = partition->work_away;
	partition->work_away = 0;
	partition->limited = false;
	note_left(p);
	count_lag(p);
	install_summary(p);
	install_away(p, stream, known, resident, &away);
	if (resident)
	{
		install_frame(p, stream);
		aq_evict_returned(partition);
		aq_stat_add(AQ_STAT_PARTITION_LOADS, 1);
		if (reopen)
			reopen_resident(stream, partition);
	}
	if (shard_queue(shm)->limited && resident)
		aq_limit_enter(partition);
	else if (shard_queue(shm)->limited)
		aq_limit_enter_away(partition, away.leased_for);
	aq_limit_forget(partition, work);
	partition->loading = false;
	aq_claim_end(stop_loading, &loading);
	aq_settle_check_done(stream, partition);
	aq_latch_free(&stream->latch);
	aq_cond_broadcast(&shm->changed);
	aq_chunks_tell();			/* the frame can be evicted now */

	if (partition->next_timer != 0)
		aq_work_announce_time(shm, partition->next_timer);
	if (p->doubts != NIL)
		aq_work_post(shm, AQ_WORK_DOUBT);
	if (has_removed(p))
		aq_work_post(shm, AQ_WORK_REMOVED);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}

static void
load(AqQueueShm *shm, Partition *partition, bool whole, bool reopen, uint32 spare)
{
	uint32		in_stream = partition->stream;
	int64		number = partition->number;
	Stream	   *stream = stream_at(in_stream);
	Oid			tables[] = {partition->messages, partition->log};

	if (stream == NULL)
		return;
	for (int i = 0; i < lengthof(tables); i++)
		aq_heap_lock_against_drop(shm->object->index, partition, tables[i], AccessShareLock);
	if (begin_load(shm, stream, partition, in_stream, number, whole))
		load_marked(shm, stream, partition, whole, reopen, spare);
	for (int i = 0; i < lengthof(tables); i++)
		UnlockRelationOid(tables[i], AccessShareLock);
}

/*
 * Makes the partition resident, if it still has open messages.  The session
 * then has "spare" chunks in reserve until it calls aq_chunks_trim(): if it had
 * to get them later, it might evict the partition that it has just loaded, and
 * load it again, endlessly.
 */
void
aq_load_for_take(AqQueueShm *shm, Partition *partition, uint32 spare)
{
	load(shm, partition, true, false, spare);
}

/* The same, with as many as a dequeue without a lease needs. */
void
aq_load_partition(AqQueueShm *shm, Partition *partition)
{
	aq_load_for_take(shm, partition, AQ_TAKE_CHUNKS);
}

/*
 * If eviction has closed the stream's last partition, makes it resident and
 * open again, so that with a full cache not every enqueue needs a new pair of
 * tables.  Returns false if there is no such partition.
 */
bool
aq_load_reopen(AqQueueShm *shm, Stream *stream)
{
	Partition  *partition;
	bool		can,
				open = false;

	aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_PARTITION_OPEN);
	partition = partition_at(stream->tail);
	can = partition != NULL &&
		can_reopen(stream, partition, partition->frame == 0 ? 0
				   : frame_of(partition)->ntimers + frame_of(partition)->timers_reserved);
	if (can && partition->frame != 0)
	{
		reopen_resident(stream, partition);
		open = true;
	}
	aq_latch_free(&stream->latch);
	if (!can || open)
		return can;
	load(shm, partition, true, true, AQ_TAKE_CHUNKS);
	aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_PARTITION_OPEN);
	open = stream->open != 0;
	aq_latch_free(&stream->latch);
	return open;
}

/* Only counts its contents: for the worker's job after a restart, or those in work for limits of consumers. */
void
aq_load_count(AqQueueShm *shm, Partition *partition)
{
	load(shm, partition, false, false, 0);
	aq_chunks_trim();
}
