/*-------------------------------------------------------------------------
 *
 * dead_letter.c
 *	  What the log says of messages that have failed: for which consumers, why,
 *	  when they were tried and how often.
 *
 * The worker reads it when it moves the messages, because the log is truncated
 * with their partition.  It reads the log once for a batch of messages.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/worker/worker_private.h"

#include "access/heapam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

/* What the log says of one message and consumer. */
typedef struct Story
{
	AqDeath		death;
	bool		failed;			/* it has failed for this consumer */
	TimestampTz error_at;
	struct Story *next;
} Story;

struct AqStories
{
	uint32		n;
	uint16		numbers[PARTITION_SLOTS];	/* by slot: number in the batch, from 1 on; 0: not in it */
	struct
	{
		Story	   *first;
		Story	  **by_position;	/* NULL: there is one story at most */
	}			of[FLEXIBLE_ARRAY_MEMBER];	/* by number in the batch */
};

static Story *
story_of(AqStories *stories, uint32 i, int position)
{
	Story	   *first = stories->of[i].first;
	Story	   *story;

	if (first != NULL && first->death.position == position)
		return first;
	if (first != NULL && stories->of[i].by_position == NULL)
	{
		stories->of[i].by_position = palloc0(AQ_MAX_CONSUMERS * sizeof(Story *));
		stories->of[i].by_position[first->death.position] = first;
	}
	if (first != NULL && stories->of[i].by_position[position] != NULL)
		return stories->of[i].by_position[position];
	story = palloc0(sizeof(Story));
	story->death.position = position;
	story->death.kind = AQ_DEATH_RETRIES;
	story->next = first;
	stories->of[i].first = story;
	if (first != NULL)
		stories->of[i].by_position[position] = story;
	return story;
}

static void
set_error(Story *story, const LogRow *row, int skip)
{
	int			size = row->detail != NULL ? (int) VARSIZE_ANY_EXHDR(row->detail) - skip : 0;

	if (size <= 0 || row->written < story->error_at)
		return;
	story->error_at = row->written;
	story->death.error = pnstrdup(VARDATA_ANY(row->detail) + skip, size);
}

static void
add_attempt(AqDeath *death, TimestampTz when)
{
	death->attempts++;
	if (when == 0)
		return;
	death->first = death->first == 0 ? when : Min(death->first, when);
	death->last = Max(death->last, when);
}

/* Rows have no order. */
static void
add_row(Story *story, const LogRow *row)
{
	switch (row->kind)
	{
		case LOG_RETRY:
		case LOG_LEASED:
			add_attempt(&story->death, row->written);
			break;
		case LOG_UNSEEN:
			story->death.attempts--;
			pg_fallthrough;
		case LOG_RELEASED:
			set_error(story, row, 0);
			break;
		case LOG_FAILED:
			story->failed = true;
			story->death.died = row->at;
			if (row->receipt != 0)
				story->death.kind = log_death(row);
			if (story->death.kind == DEATH_UNSEEN)
				story->death.attempts--;
			set_error(story, row, 1);
			break;
	}
}

/* Rows of other partitions are left after a crash between truncations: see reclaim.c. */
static void
read_row(AqStories *stories, const Partition *partition, const LogRow *row)
{
	if (row->kind != LOG_RETRY && row->kind != LOG_LEASED && row->kind != LOG_UNSEEN &&
		row->kind != LOG_RELEASED && row->kind != LOG_FAILED)
		return;
	for (int i = 0; i < row->n; i++)
	{
		uint16		number = row->ordinals[i] / PARTITION_SLOTS != partition->number ? 0
			: stories->numbers[row->ordinals[i] % PARTITION_SLOTS];

		if (number != 0)
			add_row(story_of(stories, number - 1, row->position), row);
	}
}

/* What the partition's log says of these slots.  The worker has locked the tables. */
AqStories *
aq_dead_letter_read(Partition *partition, const uint16 *slots, uint32 n)
{
	AqStories  *stories = palloc0(offsetof(AqStories, of) + n * sizeof(stories->of[0]));
	Relation	log = table_open(partition->log, AccessShareLock);
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	TableScanDesc scan = aq_table_beginscan(log, snapshot);
	HeapTuple	tuple;

	stories->n = n;
	for (uint32 i = 0; i < n; i++)
		stories->numbers[slots[i]] = i + 1;
	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		LogRow		row = aq_heap_read_log(tuple, RelationGetDescr(log));

		read_row(stories, partition, &row);
	}
	aq_point("dead-letters-read");
	table_endscan(scan);
	UnregisterSnapshot(snapshot);
	table_close(log, NoLock);
	return stories;
}

/*
 * The options of the dead letters of message i of the batch, one for each
 * consumer for which it has failed; returns their number.
 */
uint32
aq_dead_letter_make(AqStories *stories, uint32 i, AqQueue *queue, const AqMessage *m, AqPutOptions **each)
{
	uint32		n = 0;
	uint32		room = 1;

	for (const Story *story = stories->of[i].first; story != NULL; story = story->next)
		room += story->failed;
	/* a log that is damaged must not keep the message from being moved */
	if (room == 1)
	{
		Story	   *story = story_of(stories, i, 0);

		story->failed = true;
		story->death.died = GetCurrentTimestamp();
	}
	*each = palloc0(room * sizeof(AqPutOptions));
	for (Story *story = stories->of[i].first; story != NULL; story = story->next)
	{
		if (!story->failed)
			continue;
		/* there were leases, but all were given back unseen */
		if (story->death.attempts <= 0)
			story->death.first = story->death.last = 0;
		story->death.attempts = Min(Max(story->death.attempts, 0) + m->attempts, AQ_MAX_ATTEMPTS);
		aq_exception_letter(queue, m, &story->death, &(*each)[n++]);
	}
	return n;
}
