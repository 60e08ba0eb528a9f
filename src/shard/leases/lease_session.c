/*-------------------------------------------------------------------------
 *
 * lease_session.c
 *	  Leases that end with the session that has taken them: AqTakeOptions.ends.
 *
 * The session draws the receipts of such leases from a block of its own: receipts
 * with the same number.  Shared memory says which block is whose.  When the
 * session has ended, the worker ends the leases whose receipts are of its blocks, as if their time were over, and writes the same rows.
 *
 * Nothing depends on it: leases whose block is forgotten, by a crash, for want of
 * an entry, or because their partition is not in memory, end when their time is
 * over.
 *
 * An entry is unused, then of a living session, which is the only one to change
 * it, then of one that has ended, and only the worker of its database changes it.
 * A session that uses more queues than it has entries takes the entry of one that
 * was dropped.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/leases/leases_private.h"

#include "miscadmin.h"
#include "utils/syscache.h"

/* what an entry's value is, beside the block */
#define IS_USED UINT64CONST(1)
#define HAS_ENDED UINT64CONST(2)
#define BLOCK_SHIFT 2

/* A block of this session. */
typedef struct OwnBlock
{
	SessionBlock *entry;
	int64		receipt;		/* the latest one */
} OwnBlock;

static OwnBlock own[SESSION_BLOCKS];
static int	nown;

static int
count_entries(void)
{
	return aq_session_slots() * SESSION_BLOCKS;
}

/* --- the session ---------------------------------------------------------------------------- */

/* An unused entry of this session's number, or NULL: earlier sessions may have left some to the worker. */
static SessionBlock *
find_unused(void)
{
	for (int i = 0; i < SESSION_BLOCKS; i++)
	{
		SessionBlock *entry = &aq_area_session_blocks[aq_session_number() * SESSION_BLOCKS + i];

		if (pg_atomic_read_u64(&entry->value) == 0)
			return entry;
	}
	return NULL;
}

/* Begins a block for the queue, in the entry.  May raise, before it has changed anything. */
static OwnBlock
begin_block(SessionBlock *entry, AqQueue *queue)
{
	int64		receipt = aq_lease_new_block(queue);

	entry->database = MyDatabaseId;
	entry->queue_id = queue->id;
	entry->owner_view = queue->owner_view;
	/* the worker reads the other members when it has read the value */
	pg_write_barrier();
	pg_atomic_write_u64(&entry->value, (uint64) aq_lease_block(receipt) << BLOCK_SHIFT | IS_USED);
	return (OwnBlock) {.entry = entry, .receipt = receipt};
}

/* A queue has its owner view in common with its default exception queue. */
static bool
is_of(const SessionBlock *entry, const AqQueue *queue)
{
	return entry->queue_id == queue->id && entry->owner_view == queue->owner_view;
}

/* A block of this session whose queue was dropped, and its owner view with it; NULL: there is none. */
static OwnBlock *
find_dropped(void)
{
	for (int i = 0; i < nown; i++)
		if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(own[i].entry->owner_view)))
			return &own[i];
	return NULL;
}

/* The session's block of the queue; NULL: it has none, and can have none.  May raise. */
static OwnBlock *
find_block(AqQueue *queue)
{
	SessionBlock *entry;

	for (int i = 0; i < nown; i++)
		if (is_of(own[i].entry, queue))
			return &own[i];
	if (nown == SESSION_BLOCKS)
	{
		OwnBlock   *block = find_dropped();

		if (block != NULL)
			*block = begin_block(block->entry, queue);
		return block;
	}
	aq_session_attach();
	/* which the end of the session is to reach */
	aq_jobs_ensure_worker();
	entry = find_unused();
	if (entry == NULL)
		return NULL;
	own[nown] = begin_block(entry, queue);
	return &own[nown++];
}

/* As aq_lease_receipt, for leases that end with this session.  May raise and wait. */
int64
aq_lease_session_receipt(AqQueue *queue)
{
	OwnBlock   *block = find_block(queue);

	if (block == NULL)
		return aq_lease_receipt(queue);
	/* leases of a block that is full end when their time is over */
	if (aq_lease_block(block->receipt + 2) != aq_lease_block(block->receipt))
		*block = begin_block(block->entry, queue);
	return block->receipt += 2;
}

/* The session exits, after the end of its transaction. */
void
aq_lease_session_exit(void)
{
	for (int i = 0; i < nown; i++)
		pg_atomic_fetch_or_u64(&own[i].entry->value, HAS_ENDED);
	if (nown == 0)
		return;
	nown = 0;
	/* a full barrier: the worker that sees the number finds the entries */
	pg_atomic_fetch_add_u64(&aq_area->ended_sessions, 1);
	aq_jobs_post();
}

/* --- the worker ------------------------------------------------------------------------------ */

/* Is it that of a session of this database that has ended, for this queue (0: any)? */
static bool
has_ended(SessionBlock *entry, int32 id)
{
	if ((pg_atomic_read_u64(&entry->value) & HAS_ENDED) == 0)
		return false;
	pg_read_barrier();
	return entry->database == MyDatabaseId && (id == 0 || entry->queue_id == id);
}

/* Posts the work for the entry's queue; returns false if it is no longer there. */
static bool
post(const SessionBlock *entry)
{
	AqQueue    *queue;
	bool		posted = false;

	aq_job_begin();
	queue = aq_job_extension() == AQ_EXTENSION_THERE ? aq_catalog_get_by_id(entry->queue_id, true) : NULL;
	if (queue != NULL && is_of(entry, queue))
	{
		aq_pins_pin(queue);
		aq_work_post(queue->shm, AQ_WORK_SESSION_LEASES);
		posted = true;
	}
	aq_job_commit(false);
	return posted;
}

static TimestampTz
session_job_run(void)
{
	static uint64 seen;			/* since the worker's start */
	uint64		ended = pg_atomic_read_u64(&aq_area->ended_sessions);

	if (ended == seen)
		return 0;
	pg_memory_barrier();
	for (int i = 0; i < count_entries(); i++)
		if (has_ended(&aq_area_session_blocks[i], 0) && !post(&aq_area_session_blocks[i]))
			pg_atomic_write_u64(&aq_area_session_blocks[i].value, 0);
	seen = ended;
	return 0;
}

static bool
has_leases(const Partition *partition)
{
	return partition->frame != 0 && frame_of(partition)->lease_end != 0;
}

static void
end_block(AqQueueShm *shm, const SessionBlock *entry)
{
	int64		block = (int64) (pg_atomic_read_u64((pg_atomic_uint64 *) &entry->value) >> BLOCK_SHIFT);

	for (Stream *stream = stream_at(shard_queue(shm)->streams); stream != NULL; stream = stream_at(stream->next))
	{
		Partition  *partition;
		int64		from = 0;

		while ((partition = aq_stream_partition_from(stream, from, has_leases)) != NULL)
		{
			from = partition->number + 1;
			aq_lease_end_block(entry->queue_id, entry->owner_view, shm, stream, partition, block);
		}
	}
}

/* Ends the leases of sessions that have ended, in partitions that are in memory. */
void
aq_lease_session_job(int32 id, AqQueueShm *shm)
{
	for (int i = 0; i < count_entries(); i++)
	{
		SessionBlock *entry = &aq_area_session_blocks[i];

		if (!has_ended(entry, id))
			continue;
		end_block(shm, entry);
		pg_atomic_write_u64(&entry->value, 0);
	}
}

/* A dropped database has no worker. */
static void
forget_database(Oid database)
{
	for (int i = 0; i < count_entries(); i++)
	{
		SessionBlock *entry = &aq_area_session_blocks[i];

		if ((pg_atomic_read_u64(&entry->value) & HAS_ENDED) == 0)
			continue;
		pg_read_barrier();
		if (entry->database == database)
			pg_atomic_write_u64(&entry->value, 0);
	}
}

static const AqJob session_job = {.name = "leases of ended sessions", .run = session_job_run};

void
aq_lease_session_register(void)
{
	aq_worker_register(&session_job);
	aq_jobs_on_database_dropped(forget_database);
}
