/*-------------------------------------------------------------------------
 *
 * classic_upkeep.c
 *	  What the worker does for prepared transactions and removed consumers.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "classic/classic_private.h"

#include "access/xact.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/procarray.h"
#include "utils/memutils.h"

/* how long between looks at prepared transactions, microseconds */
#define DOUBT_AGAIN ((int64) 200000)

/* --- prepared transactions ------------------------------------------------------ */

/* The queue's prepared transactions. */
static int
read_doubts(uint32 queue, TransactionId *xids)
{
	int			n = 0;

	aq_latch_get(&aq_classic->latch, AQ_SHARED, AQ_LOC_CLASSIC_DOUBT);
	for (uint32 i = 0; i < aq_classic->ndoubts; i++)
		if (aq_classic->doubts[i].queue == queue)
			xids[n++] = aq_classic->doubts[i].xid;
	aq_latch_free(&aq_classic->latch);
	return n;
}

bool
aq_classic_in_doubt(AqQueueShm *shm)
{
	TransactionId xids[DOUBTS_MAX];
	int			n = read_doubts(shm->object->index, xids);

	for (int i = 0; i < n; i++)
		if (TransactionIdIsInProgress(xids[i]))
			return true;
	return false;
}

/* xid: invalid for all of the queue's. */
static void
drop_doubt(uint32 queue, TransactionId xid)
{
	uint32		kept = 0;

	aq_latch_get(&aq_classic->latch, AQ_EXCLUSIVE, AQ_LOC_CLASSIC_DOUBT);
	for (uint32 i = 0; i < aq_classic->ndoubts; i++)
		if (aq_classic->doubts[i].queue != queue ||
			(TransactionIdIsValid(xid) && aq_classic->doubts[i].xid != xid))
			aq_classic->doubts[kept++] = aq_classic->doubts[i];
	aq_classic->ndoubts = kept;
	aq_latch_free(&aq_classic->latch);
}

/* The queue is no more. */
void
aq_classic_doubts_forget(uint32 queue)
{
	drop_doubt(queue, InvalidTransactionId);
}

/* Drop the entries of those that have ended; true when some are left for the queue. */
static bool
sweep_doubts(uint32 queue, bool *ended)
{
	TransactionId xids[DOUBTS_MAX];
	int			n = read_doubts(queue, xids);
	bool		left = false;

	*ended = false;
	for (int i = 0; i < n; i++)
	{
		if (TransactionIdIsInProgress(xids[i]))
			left = true;
		else
		{
			drop_doubt(queue, xids[i]);
			*ended = true;
		}
	}
	return left;
}

static bool
any_prepared(void)
{
	bool		any;

	aq_sql_run("SELECT 1 FROM pg_catalog.pg_prepared_xacts LIMIT 1", 0, NULL, NULL, NULL, true);
	any = SPI_processed > 0;
	SPI_finish();
	return any;
}

void
aq_classic_doubt_job(int32 id, AqQueueShm *shm)
{
	bool		ended;
	bool		left = sweep_doubts(shm->object->index, &ended);

	if (aq_classic->too_many)
	{
		aq_job_begin();
		if (any_prepared())
			left = true;
		else
			aq_classic->too_many = false;
		aq_job_commit(false);
		ended = true;
	}
	if (ended)
	{
		aq_work_post(shm, AQ_WORK_RETRY);
		aq_waiters_wake_all(shm);
	}
	if (left)
		aq_work_later(shm, AQ_WORK_DOUBT, DOUBT_AGAIN);
}

/* --- removed consumers ---------------------------------------------------------------- */

/* Empty the line; false when somebody has a row of it in hand. */
static bool
empty_line(AqQueue *queue, int position)
{
	const Key	first = KEY_FIRST,
				last = KEY_LAST;
	Line		line,
				probe,
				messages;
	Key			key;
	bool		busy = false;

	aq_line_open(&line, queue, queue->table.consumers, RowExclusiveLock);
	aq_line_open(&probe, queue, queue->table.consumers, RowExclusiveLock);
	aq_line_open(&messages, queue, queue->table.messages, RowExclusiveLock);
	aq_line_seek(&line, queue->id, position, &first, ForwardScanDirection);
	while (aq_line_next_row(&line, &last, &key))
	{
		CHECK_FOR_INTERRUPTS();
		aq_classic_note_reserve(queue->shm, position, NOTE_PURGE);
		if (TransactionIdIsValid(line.dirty.xmin) || TransactionIdIsValid(line.dirty.xmax) ||
			aq_row_delete(line.rel, line.slot) != TM_Ok)
		{
			busy = true;
			continue;
		}
		/* the next consumer at this position begins with nothing before it */
		aq_classic_note(queue->shm, position, NOTE_PURGE, &key, 1);
		if (aq_line_find(&messages, queue->id, 0, &key))
			aq_message_check(queue, &probe, &messages, &key, position);
	}
	aq_line_close(&line, false);
	aq_line_close(&probe, false);
	aq_line_close(&messages, false);
	return !busy;
}

/* Delete what is in the removed consumer's line. */
bool
aq_line_free(AqQueue *queue, AqRemoved *removed)
{
	return aq_classic_lock(queue) && empty_line(queue, removed->position);
}
