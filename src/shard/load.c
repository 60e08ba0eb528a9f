/*-------------------------------------------------------------------------
 *
 * load.c
 *	  From the tables back to shared memory: a queue's partitions at its first
 *	  use after a start, a partition's frame when its turn comes.
 *
 * The committed rows of the tables are the truth (invariant I1).  A partition
 * is only loaded while no transaction of a running session has anything in
 * it, because such a transaction keeps the frame; so every row is committed,
 * aborted, or belongs to a prepared transaction, which is in doubt (I2).
 *
 * Loading marks the partition, reads without a latch, and installs under the
 * stream's latch; others who need it wait for the mark to go.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/shard_private.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/table.h"
#include "access/subtrans.h"
#include "access/tableam.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "access/twophase.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "storage/bufmgr.h"
#include "storage/procarray.h"
#include "utils/array.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

/* --- reading a partition's tables ------------------------------------------------- */

/* What the tables say about a partition, in the reader's own memory. */
typedef struct Picture
{
	Partition  *partition;
	AqQueueShm *shm;
	int			stream;			/* number */
	TimestampTz now;
	uint32		file;			/* of the message table */
	uint32		nslots;			/* highest slot used, plus one */
	Slot	   *slots;
	TimestampTz *ready_at;		/* of WAITING slots */
	uint64_t   *todo[AQ_MAX_CONSUMERS]; /* for him and not done; NULL: none */
	uint8	   *attempts[AQ_MAX_CONSUMERS];
	uint32		inflight;		/* taken by transactions in doubt */
	uint32		pending;		/* slots in doubt */
	uint32		nfailed;
	uint32		ntimers;		/* the rests' included, in the end */
	List	   *rests;			/* of Timers: retry delays that are not over */
	TimestampTz next_timer;		/* of the rests */
	List	   *doubts;			/* of xids; sessions beside them */
	List	   *doubt_sessions;
	TimestampTz last_take;
} Picture;

typedef enum RowStatus
{
	ROW_COMMITTED, ROW_DOUBT, ROW_ABORTED
} RowStatus;

/*
 * By transaction status alone: snapshots play no part.  In-progress first, as
 * always, because a transaction leaves that state last.
 */
static RowStatus
row_status(HeapTupleHeader header, TransactionId *xid)
{
	*xid = HeapTupleHeaderGetRawXmin(header);
	if (HeapTupleHeaderXminFrozen(header) || HeapTupleHeaderXminCommitted(header))
		return ROW_COMMITTED;
	if (HeapTupleHeaderXminInvalid(header))
		return ROW_ABORTED;
	if (TransactionIdIsCurrentTransactionId(*xid) || TransactionIdIsInProgress(*xid))
	{
		*xid = SubTransGetTopmostTransaction(*xid);
		return ROW_DOUBT;
	}
	return TransactionIdDidCommit(*xid) ? ROW_COMMITTED : ROW_ABORTED;
}

static bool
is_removed(AqQueueShm *shm, int position)
{
	AqConsumerShm *consumer = aq_consumer_shm(shm, position);

	return consumer == NULL || consumer->removed;
}

static void
add_todo(Picture *p, int position, uint32 slot)
{
	if (is_removed(p->shm, position))
		return;
	if (p->todo[position] == NULL)
		p->todo[position] = palloc0(AQ_CHUNK_SIZE);
	(void) aq_bitmap_set(p->todo[position], slot);
	p->slots[slot].open++;
}

/* Was it to do, and is not any more? */
static bool
strike(Picture *p, int position, uint32 slot)
{
	if (p->todo[position] == NULL || !aq_bitmap_clear(p->todo[position], slot))
		return false;
	p->slots[slot].open--;
	return true;
}

static void
add_doubt(Picture *p, TransactionId xid, int64 session)
{
	ListCell   *lc;

	foreach(lc, p->doubts)
		if ((TransactionId) lfirst_oid(lc) == xid)
			return;
	p->doubts = lappend_oid(p->doubts, (Oid) xid);
	p->doubt_sessions = lappend(p->doubt_sessions, (void *) (intptr_t) session);
}

static void
read_message(Picture *p, HeapTuple tuple, TupleDesc desc)
{
	Datum		values[MSG_COLUMNS];
	bool		nulls[MSG_COLUMNS];
	int64		ordinal;
	uint32		number;
	Slot	   *slot;
	TransactionId xid;
	RowStatus	status = row_status(tuple->t_data, &xid);

	heap_deform_tuple(tuple, desc, values, nulls);
	ordinal = DatumGetInt64(values[MSG_ORDINAL]);
	if (ordinal / PARTITION_SLOTS != p->partition->number ||
		DatumGetInt16(values[MSG_STREAM]) != p->stream)
		elog(ERROR, "message %lld of stream %d is in the wrong table",
			 (long long) ordinal, DatumGetInt16(values[MSG_STREAM]));
	number = ordinal % PARTITION_SLOTS;
	p->nslots = Max(p->nslots, number + 1);
	slot = &p->slots[number];
	slot->block = ItemPointerGetBlockNumber(&tuple->t_self);
	slot->offset = ItemPointerGetOffsetNumber(&tuple->t_self);
	slot->xid = xid;
	slot->session = DatumGetInt64(values[MSG_SESSION]);
	slot->state = SLOT_DONE;
	if (status == ROW_ABORTED)
		return;
	if (!nulls[MSG_EXPIRES_AT])
	{
		slot->expires_at = DatumGetTimestampTz(values[MSG_EXPIRES_AT]);
		slot->flags |= SLOT_EXPIRES;
	}

	if (status == ROW_DOUBT)
	{
		slot->state = SLOT_DOUBT;
		p->pending++;
		return;
	}

	slot->state = SLOT_READY;
	if (!nulls[MSG_READY_AT] && DatumGetTimestampTz(values[MSG_READY_AT]) > p->now)
	{
		slot->state = SLOT_WAITING;
		p->ready_at[number] = DatumGetTimestampTz(values[MSG_READY_AT]);
		p->ntimers++;
	}
	if (slot->flags & SLOT_EXPIRES)
		p->ntimers++;
	if (p->shm->single)
		add_todo(p, 0, number);
	else if (!nulls[MSG_TARGETS])
	{
		bytea	   *targets = DatumGetByteaPP(values[MSG_TARGETS]);
		int			position = -1;

		while ((position = targets_next(targets, position)) >= 0)
			add_todo(p, position, number);
	}
}

/* A rolled back dequeue: the message rests until then. */
static void
add_rest(Picture *p, int position, uint32 number, TimestampTz until)
{
	Timer	   *rest = palloc(sizeof(Timer));

	*rest = (Timer) {.when = until,.slot = number,.position = position,.kind = TIMER_RETRY};
	p->rests = lappend(p->rests, rest);
}

/* Keep the rests of those that are still to be taken, as far as timers go. */
static void
sift_rests(Picture *p)
{
	List	   *kept = NIL;
	ListCell   *lc;

	foreach(lc, p->rests)
	{
		Timer	   *rest = lfirst(lc);

		if (p->slots[rest->slot].state != SLOT_READY || p->todo[rest->position] == NULL ||
			!aq_bitmap_test(p->todo[rest->position], rest->slot) || p->ntimers == MAX_TIMERS)
			continue;
		kept = lappend(kept, rest);
		p->ntimers++;
		if (p->next_timer == 0 || rest->when < p->next_timer)
			p->next_timer = rest->when;
	}
	p->rests = kept;
}

static void
read_log_ordinal(Picture *p, char kind, RowStatus status, TransactionId xid,
				 int position, uint32 number, TimestampTz at)
{
	Slot	   *slot = &p->slots[number];

	if (status == ROW_DOUBT)
	{
		/* taken, or kept, by a prepared transaction: not done, not ready */
		if (kind != LOG_RETRY && p->todo[position] != NULL &&
			aq_bitmap_clear(p->todo[position], number))
			p->inflight++;
		add_doubt(p, xid, 0);
		return;
	}
	switch (kind)
	{
		case LOG_TAKEN:
		case LOG_PURGED:
			(void) strike(p, position, number);
			break;
		case LOG_FAILED:
			if (strike(p, position, number))
				slot->flags |= SLOT_FAILED;
			break;
		case LOG_MOVED:
			slot->flags &= ~SLOT_FAILED;
			break;
		case LOG_RETRY:
			if (is_removed(p->shm, position))
				break;
			if (p->attempts[position] == NULL)
				p->attempts[position] = palloc0(PARTITION_SLOTS);
			if (p->attempts[position][number] < PG_UINT8_MAX)
				p->attempts[position][number]++;
			if (at > p->now)
				add_rest(p, position, number, at);
			break;
		default:
			break;
	}
}

static void
read_log_row(Picture *p, HeapTuple tuple, TupleDesc desc)
{
	Datum		values[LOG_COLUMNS];
	bool		nulls[LOG_COLUMNS];
	TransactionId xid;
	RowStatus	status = row_status(tuple->t_data, &xid);
	ArrayType  *array;
	int64	   *ordinals;
	TimestampTz at;
	char		kind;
	int			n,
				position;

	if (status == ROW_ABORTED)
		return;
	heap_deform_tuple(tuple, desc, values, nulls);
	position = DatumGetInt16(values[LOG_CONSUMER]);
	if (DatumGetInt16(values[LOG_STREAM]) != p->stream ||
		position < 0 || position >= AQ_MAX_CONSUMERS)
		return;					/* of an earlier use of the tables */
	kind = DatumGetChar(values[LOG_KIND]);
	at = DatumGetTimestampTz(values[LOG_TIME]);
	if (kind != LOG_RETRY)
		p->last_take = Max(p->last_take, at);
	array = DatumGetArrayTypeP(values[LOG_ORDINALS]);
	n = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
	ordinals = (int64 *) ARR_DATA_PTR(array);
	for (int i = 0; i < n; i++)
		if (ordinals[i] / PARTITION_SLOTS == p->partition->number &&
			p->slots[ordinals[i] % PARTITION_SLOTS].state != SLOT_EMPTY)
			read_log_ordinal(p, kind, status, xid, position, ordinals[i] % PARTITION_SLOTS, at);
}

/* Returns the number of the file that was read. */
static uint32
scan_table(Picture *p, Oid relid, void (*row) (Picture *, HeapTuple, TupleDesc))
{
	Relation	rel = try_table_open(relid, AccessShareLock);
	TableScanDesc scan;
	HeapTuple	tuple;
	uint32		file;

	if (rel == NULL)
		ereport(ERROR, aq_error(AQ_ERR_QUEUE_UNDEFINED, "the queue was dropped"));
	scan = table_beginscan(rel, SnapshotAny, 0, NULL);
	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		row(p, tuple, RelationGetDescr(rel));
	}
	table_endscan(scan);
	file = aq_relation_file(rel);
	table_close(rel, AccessShareLock);
	return file;
}

/* The session's newest transaction in doubt before this slot. */
static TransactionId
doubt_before(Picture *p, int64 session)
{
	TransactionId xid = InvalidTransactionId;
	ListCell   *x,
			   *s;

	forboth(x, p->doubts, s, p->doubt_sessions)
		if ((int64) (intptr_t) lfirst(s) == session)
			xid = (TransactionId) lfirst_oid(x);
	if (!TransactionIdIsValid(xid) && pg_atomic_read_u32(&aq_shard->ndoubts) > 0)
		xid = aq_doubt_of_session(p->partition->stream, session, p->partition->number);
	return xid;
}

/*
 * In the order of the slots, which is the order of the calls: note the
 * transactions in doubt, and hold the committed messages of their sessions
 * that come after them.
 */
static void
hold_followers(Picture *p)
{
	if (p->pending == 0 && pg_atomic_read_u32(&aq_shard->ndoubts) == 0)
		return;
	for (uint32 i = 0; i < p->nslots; i++)
	{
		Slot	   *slot = &p->slots[i];
		TransactionId doubt;

		if (slot->state == SLOT_DOUBT)
			add_doubt(p, slot->xid, slot->session);
		if (slot->state != SLOT_READY && slot->state != SLOT_WAITING)
			continue;
		doubt = doubt_before(p, slot->session);
		if (!TransactionIdIsValid(doubt))
			continue;
		for (int position = 0; position < AQ_MAX_CONSUMERS; position++)
			(void) strike(p, position, i);
		if (slot->state == SLOT_WAITING)
			p->ntimers--;
		if (slot->flags & SLOT_EXPIRES)
			p->ntimers--;
		slot->state = SLOT_DOUBT;
		slot->flags |= SLOT_FOLLOWER;
		slot->xid = doubt;
		p->pending++;
		add_doubt(p, doubt, slot->session);
	}
}

static Picture *
read_partition(AqQueueShm *shm, Partition *partition)
{
	Picture    *p = palloc0(sizeof(Picture));

	p->partition = partition;
	p->shm = shm;
	p->stream = stream_at(partition->stream)->number;
	p->now = GetCurrentTimestamp();
	p->slots = palloc0(PARTITION_SLOTS * sizeof(Slot));
	p->ready_at = palloc0(PARTITION_SLOTS * sizeof(TimestampTz));
	p->file = scan_table(p, partition->messages, read_message);
	hold_followers(p);
	(void) scan_table(p, partition->log, read_log_row);
	for (uint32 i = 0; i < p->nslots; i++)
	{
		if (p->slots[i].open > 0 || p->slots[i].state == SLOT_DOUBT)
			continue;
		if (p->slots[i].state == SLOT_READY || p->slots[i].state == SLOT_WAITING)
			p->slots[i].state = SLOT_DONE;
		if (p->slots[i].state == SLOT_DONE && (p->slots[i].flags & SLOT_FAILED))
			p->nfailed++;
	}
	sift_rests(p);
	return p;
}

/* --- installing it ------------------------------------------------------------------ */

static uint32
count_open(Picture *p)
{
	uint32		open = p->pending + p->nfailed;

	for (uint32 i = 0; i < p->nslots; i++)
		open += p->slots[i].open;
	return open;
}

/* The first time after a start, what is to do counts as the consumers' lag. */
static void
count_lag(Picture *p)
{
	for (int position = 0; position < AQ_MAX_CONSUMERS; position++)
		if (p->todo[position] != NULL && !p->partition->counted)
			pg_atomic_fetch_add_u64(&aq_consumer_shm(p->shm, position)->enqueued,
									pg_popcount((const char *) p->todo[position], AQ_CHUNK_SIZE));
}

/* What a frame and a summary have in common. Latch held. */
static void
install_summary(Picture *p)
{
	Partition  *partition = p->partition;

	partition->open = count_open(p);
	partition->counted = true;
	partition->nfailed = p->nfailed;
	partition->reserved = PARTITION_SLOTS;
	if (partition->last_take == 0)
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
		aq_queue_post_work(p->shm, AQ_WORK_FAILED);
}

static uint32
chunks_needed(Picture *p)
{
	uint32		needs = 1 + PARTITION_SEGMENTS;

	for (int position = 0; position < AQ_MAX_CONSUMERS; position++)
	{
		if (p->todo[position] != NULL)
			needs += 4;			/* bitmaps, directory, stream's directory */
		if (p->attempts[position] != NULL)
			needs += 4 + PARTITION_SLOTS / ATTEMPTS_PER_CHUNK;
	}
	if (p->ntimers > 0)
		needs += 2 + p->ntimers / TIMERS_PER_CHUNK;
	return needs;
}

static void
install_consumer(Picture *p, Stream *stream, int position)
{
	Partition  *partition = p->partition;
	Frame	   *frame = frame_of(partition);

	(void) aq_stream_sub_make(stream, position);
	(void) aq_frame_sub_make(frame, position);
	if (p->todo[position] != NULL)
	{
		int			slot = -1;

		while ((slot = aq_bitmap_next(p->todo[position], PARTITION_SLOTS, slot + 1)) >= 0)
		{
			if (p->slots[slot].state == SLOT_READY)
				aq_set_ready(stream, partition, position, slot, 1);
			else if (p->slots[slot].state == SLOT_WAITING)
				aq_set_waiting(partition, position, slot);
		}
	}
	if (p->attempts[position] != NULL)
		for (uint32 slot = 0; slot < p->nslots; slot++)
			if (p->attempts[position][slot] > 0)
				aq_attempts_set(frame, position, slot, p->attempts[position][slot]);
}

/* Those that were ready have to wait. */
static void
install_rests(Picture *p, Stream *stream)
{
	Partition  *partition = p->partition;
	ListCell   *lc;

	foreach(lc, p->rests)
	{
		Timer	   *rest = lfirst(lc);

		aq_timer_push(partition, rest->when, rest->slot, rest->position, TIMER_RETRY);
		if (aq_clear_ready(stream, partition, rest->position, rest->slot))
			aq_set_waiting(partition, rest->position, rest->slot);
	}
}

/* Latch held, chunks reserved. */
static void
install_frame(Picture *p, Stream *stream)
{
	Partition  *partition = p->partition;
	Frame	   *frame;

	partition->frame = aq_chunk_take();
	partition->file = p->file;
	partition->referenced = true;
	partition->pending = p->pending;
	partition->inflight = p->inflight;
	partition->ndoubt += list_length(p->doubts);
	frame = frame_of(partition);
	/* every segment exists, so that slot_at needs no test */
	for (uint32 s = 0; s < (p->nslots + SEGMENT_SLOTS - 1) / SEGMENT_SLOTS; s++)
	{
		frame->segments[s] = aq_chunk_take();
		memcpy(aq_chunk_ptr(frame->segments[s]), &p->slots[s * SEGMENT_SLOTS], AQ_CHUNK_SIZE);
	}
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
				aq_timer_push(partition, p->ready_at[i], i, 0, TIMER_READY);
			if ((slot->state == SLOT_WAITING || slot->state == SLOT_READY) &&
				(slot->flags & SLOT_EXPIRES))
				aq_timer_push(partition, slot->expires_at, i, 0, TIMER_EXPIRE);
		}
		install_rests(p, stream);
		frame->timers_reserved = 0;
	}
}

/*
 * Mark the partition as being loaded; false when somebody else has loaded it
 * or it is not in its stream any more.
 */
static bool
begin_load(AqQueueShm *shm, Stream *stream, Partition *partition, uint32 in_stream,
		   int64 number)
{
	bool		mine = false;

	aq_cond_prepare(&shm->changed);
	for (;;)
	{
		bool		wait;

		aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_PARTITION_LOAD);
		wait = partition->stream == in_stream && partition->number == number &&
			partition->loading;
		if (!wait && partition->stream == in_stream && partition->number == number &&
			partition->state == PARTITION_CLOSED && partition->frame == 0)
			mine = partition->loading = true;
		aq_latch_free(&stream->latch);
		if (!wait)
			break;
		aq_cond_sleep(&shm->changed, AQ_EVENT_PARTITION_LOAD, shm->queue_id,
					  stream->shard, number, -1);
	}
	aq_cond_cancel();
	return mine;
}

static void
load(AqQueueShm *shm, Partition *partition, bool whole)
{
	uint32		in_stream = partition->stream;
	int64		number = partition->number;
	Stream	   *stream = stream_at(in_stream);
	MemoryContext context,
				old;

	if (stream == NULL || !begin_load(shm, stream, partition, in_stream, number))
		return;
	context = AllocSetContextCreate(CurrentMemoryContext, "pgaq load", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	PG_TRY();
	{
		Picture    *p = read_partition(shm, partition);
		bool		in_doubt = p->doubts != NIL;

		whole |= in_doubt;
		if (whole)
			aq_chunks_reserve(chunks_needed(p));
		aq_point("loading");

		aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_PARTITION_LOAD);
		count_lag(p);
		install_summary(p);
		if (whole && partition->open > 0)
			install_frame(p, stream);
		partition->loading = false;
		aq_partition_check_done(stream, partition);
		aq_latch_free(&stream->latch);

		if (partition->next_timer != 0)
			aq_queue_announce_time(shm, partition->next_timer);
		if (in_doubt)
		{
			ListCell   *x,
					   *s;

			forboth(x, p->doubts, s, p->doubt_sessions)
				if (!aq_doubt_add(partition, (TransactionId) lfirst_oid(x),
								  (int64) (intptr_t) lfirst(s)))
					ereport(LOG,
							(errmsg("pgaq cannot keep track of all transactions in doubt"),
							 errhint("Raise max_prepared_transactions, and restart the server after they are finished.")));
			aq_queue_post_work(shm, AQ_WORK_DOUBT);
		}
	}
	PG_CATCH();
	{
		aq_sync_release_all();
		aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_PARTITION_LOAD);
		partition->loading = false;
		aq_latch_free(&stream->latch);
		aq_cond_broadcast(&shm->changed);
		PG_RE_THROW();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	aq_chunks_trim();
	aq_cond_broadcast(&shm->changed);
}

/* Make the partition resident, if it is still worth it. */
void
aq_load_partition(AqQueueShm *shm, Partition *partition)
{
	load(shm, partition, true);
}

/* Only learn what is in it: the worker's look at what a restart has left. */
void
aq_count_partition(AqQueueShm *shm, Partition *partition)
{
	if (!partition->counted)
		load(shm, partition, false);
}

/*
 * The message table was rewritten, as by VACUUM FULL: learn where its rows are
 * now.  The caller holds a lock on it.  Nobody else can have rows in it that
 * this scan may miss and whose slots have TIDs of the old file, because a
 * rewrite waits for all who hold a lock, and slots get TIDs under one.
 */
void
aq_relocate(Partition *partition, Relation rel)
{
	ItemPointerData *places = palloc0(PARTITION_SLOTS * sizeof(ItemPointerData));
	int64		number = partition->number;
	Stream	   *stream = stream_at(partition->stream);
	TableScanDesc scan = table_beginscan(rel, SnapshotAny, 0, NULL);
	HeapTuple	tuple;

	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		bool		isnull;
		int64		ordinal = DatumGetInt64(heap_getattr(tuple, MSG_ORDINAL + 1, RelationGetDescr(rel), &isnull));

		CHECK_FOR_INTERRUPTS();
		if (ordinal / PARTITION_SLOTS == number)
			places[ordinal % PARTITION_SLOTS] = tuple->t_self;
	}
	table_endscan(scan);

	if (stream != NULL)
	{
		aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_PARTITION_LOAD);
		if (partition->stream == stream->index && partition->number == number)
		{
			Frame	   *frame = partition->frame != 0 ? frame_of(partition) : NULL;

			for (uint32 s = 0; frame != NULL && s < PARTITION_SLOTS; s++)
			{
				if (frame->segments[s / SEGMENT_SLOTS] == 0 || !ItemPointerIsValid(&places[s]))
					continue;
				slot_at(frame, s)->block = ItemPointerGetBlockNumber(&places[s]);
				slot_at(frame, s)->offset = ItemPointerGetOffsetNumber(&places[s]);
			}
			partition->file = aq_relation_file(rel);
		}
		aq_latch_free(&stream->latch);
	}
	pfree(places);
}

/* --- a queue's first use ---------------------------------------------------------------- */

/* The first row of the table, also an aborted one; false when there is none. */
static bool
first_row(Relation rel, int64 *ordinal, int *stream)
{
	TableScanDesc scan = table_beginscan(rel, SnapshotAny, 0, NULL);
	HeapTuple	tuple = heap_getnext(scan, ForwardScanDirection);
	bool		found = HeapTupleIsValid(tuple);

	if (found)
	{
		bool		isnull;

		*ordinal = DatumGetInt64(heap_getattr(tuple, MSG_ORDINAL + 1, RelationGetDescr(rel), &isnull));
		*stream = DatumGetInt16(heap_getattr(tuple, MSG_STREAM + 1, RelationGetDescr(rel), &isnull));
	}
	table_endscan(scan);
	return found;
}

static BlockNumber
table_blocks(Oid relid)
{
	Relation	rel = table_open(relid, AccessShareLock);
	BlockNumber blocks = RelationGetNumberOfBlocks(rel);

	table_close(rel, AccessShareLock);
	return blocks;
}

static void
add_table(AqQueueShm *shm, int32 id, int table_no)
{
	ShardQueue *sq = shard_queue(shm);
	Partition  *partition;
	char		name[NAMEDATALEN];
	Oid			messages,
				log;
	Relation	rel;
	int64		ordinal = 0;
	int			number = 0;

	snprintf(name, sizeof(name), "q%d_%d", id, table_no);
	messages = aq_data_relation(name);
	snprintf(name, sizeof(name), "l%d_%d", id, table_no);
	log = aq_data_relation(name);
	sq->last_table_no = Max(sq->last_table_no, table_no);
	rel = OidIsValid(messages) && OidIsValid(log) ? try_table_open(messages, AccessShareLock) : NULL;
	if (rel == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("tables number %d of queue %d are missing", table_no, id),
				 errhint("Restore them from a backup, or drop the queue.")));

	partition = aq_partition_alloc(shm);
	partition->table_no = table_no;
	partition->messages = messages;
	partition->log = log;
	if (first_row(rel, &ordinal, &number))
	{
		Stream	   *stream = aq_stream_make(shm, number);

		partition->number = ordinal / PARTITION_SLOTS;
		partition->state = PARTITION_CLOSED;
		partition->reserved = PARTITION_SLOTS;
		aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_QUEUE_LOAD);
		aq_partition_append(stream, partition);
		aq_latch_free(&stream->latch);
	}
	else if (RelationGetNumberOfBlocks(rel) > 0 || table_blocks(log) > 0)
	{
		/* pages of aborted rows, or a crash between the two truncations */
		partition->state = PARTITION_DONE;
		partition->next = sq->done;
		sq->done = partition->index;
		aq_queue_post_work(shm, AQ_WORK_RECLAIM);
	}
	else
		aq_tables_give_back(shm, partition);
	table_close(rel, AccessShareLock);
}

/*
 * Tables in which a prepared transaction holds a lock are loaded at once, so
 * that every transaction in doubt is known before the first message is handed
 * out: later messages of its session stand behind it.
 */
static void
load_doubtful(AqQueueShm *shm)
{
	List	   *locked = NIL;
	MemoryContext context = CurrentMemoryContext;

	if (max_prepared_xacts == 0)
		return;
	aq_run_sql("SELECT DISTINCT l.relation FROM pg_catalog.pg_locks l "
			   "WHERE l.locktype = 'relation' AND l.pid IS NULL AND l.mode = 'RowExclusiveLock' "
			   "AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())",
			   0, NULL, NULL, NULL, true);
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		bool		isnull;
		MemoryContext spi = MemoryContextSwitchTo(context);

		locked = lappend_oid(locked, DatumGetObjectId(SPI_getbinval(SPI_tuptable->vals[i],
																	SPI_tuptable->tupdesc, 1, &isnull)));
		MemoryContextSwitchTo(spi);
	}
	SPI_finish();
	if (locked == NIL)
		return;

	for (Stream *stream = stream_at(shard_queue(shm)->streams); stream != NULL;
		 stream = stream_at(stream->next))
	{
		uint32		index = stream->head;

		while (index != 0)
		{
			Partition  *partition = partition_at(index);

			index = partition->next;
			if (list_member_oid(locked, partition->messages) ||
				list_member_oid(locked, partition->log))
				aq_load_partition(shm, partition);
		}
	}
}

/* Numbers of the queue's tables, as the catalog's latest state has them. */
List *
aq_queue_table_numbers(int32 id)
{
	Relation	rel = table_open(aq_catalog_relation("message_table"), AccessShareLock);
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	List	   *tables = NIL;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, 1, BTEqualStrategyNumber, F_INT4EQ, Int32GetDatum(id));
	scan = systable_beginscan(rel, aq_primary_key(rel), true, snapshot, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		bool		isnull;

		tables = lappend_int(tables, DatumGetInt32(heap_getattr(tuple, 2, RelationGetDescr(rel), &isnull)));
	}
	systable_endscan(scan);
	UnregisterSnapshot(snapshot);
	table_close(rel, AccessShareLock);
	return tables;
}

void
aq_load_queue(AqQueue *queue, AqQueueShm *shm)
{
	List	   *tables = aq_queue_table_numbers(queue->id);
	ListCell   *lc;

	shard_queue(shm)->single = !queue->multi;
	PG_TRY();
	{
		foreach(lc, tables)
			add_table(shm, queue->id, lfirst_int(lc));
		load_doubtful(shm);
	}
	PG_CATCH();
	{
		queue->store->unload(shm);	/* the next one begins anew */
		PG_RE_THROW();
	}
	PG_END_TRY();
	if (tables != NIL && !shard_queue(shm)->recovered)
		aq_queue_post_work(shm, AQ_WORK_RECOUNT);
}
