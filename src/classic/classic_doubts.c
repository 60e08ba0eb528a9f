/*-------------------------------------------------------------------------
 *
 * classic_doubts.c
 *	  Prepared transactions that have used queue tables.
 *
 * COMMIT PREPARED and ROLLBACK PREPARED call no callback of the transaction,
 * so the worker checks periodically whether it has ended.  Until then, walks
 * do not regard the rows that it has taken as gone.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "classic/classic_private.h"

#include "access/subtrans.h"
#include "access/transam.h"
#include "storage/procarray.h"
#include "utils/snapmgr.h"

/*
 * interval at which the worker checks prepared transactions, in microseconds
 */
#define DOUBT_AGAIN ((int64) 200000)

/* The top-level transaction of xid, while it is known. */
TransactionId
aq_classic_doubts_top(TransactionId xid)
{
	if (TransactionIdPrecedes(xid, TransactionXmin))
		return xid;
	return SubTransGetTopmostTransaction(xid);
}

/* Does xid, which is in progress, belong to a prepared transaction? */
bool
aq_classic_doubts_has(TransactionId xid)
{
	bool		found = false;
	TransactionId top;

	if (aq_classic_area->ndoubts == 0)
		return false;
	top = aq_classic_doubts_top(xid);
	aq_latch_get(&aq_classic_area->latch, AQ_SHARED, AQ_LOC_CLASSIC_DOUBT);
	found = aq_classic_area->too_many;
	for (uint32 i = 0; i < aq_classic_area->ndoubts && !found; i++)
		found = aq_classic_area->doubts[i].xid == top;
	aq_latch_free(&aq_classic_area->latch);
	return found;
}

void
aq_classic_doubts_add(TransactionId xid, uint32 queue)
{
	aq_latch_get(&aq_classic_area->latch, AQ_EXCLUSIVE, AQ_LOC_CLASSIC_DOUBT);
	if (aq_classic_area->ndoubts < DOUBTS_MAX)
	{
		aq_classic_area->doubts[aq_classic_area->ndoubts].xid = xid;
		aq_classic_area->doubts[aq_classic_area->ndoubts].queue = queue;
		aq_classic_area->ndoubts++;
	}
	else
		aq_classic_area->too_many = true;
	aq_latch_free(&aq_classic_area->latch);
}

/* The queue's prepared transactions. */
static int
read_doubts(uint32 queue, TransactionId *xids)
{
	int			n = 0;

	aq_latch_get(&aq_classic_area->latch, AQ_SHARED, AQ_LOC_CLASSIC_DOUBT);
	for (uint32 i = 0; i < aq_classic_area->ndoubts; i++)
		if (aq_classic_area->doubts[i].queue == queue)
			xids[n++] = aq_classic_area->doubts[i].xid;
	aq_latch_free(&aq_classic_area->latch);
	return n;
}

bool
aq_classic_doubts_any(AqQueueShm *shm)
{
	TransactionId xids[DOUBTS_MAX];
	int			n = read_doubts(shm->object->index, xids);

	for (int i = 0; i < n; i++)
		if (TransactionIdIsInProgress(xids[i]))
			return true;
	return false;
}

/* xid: invalid for all entries of the queue. */
static void
drop_doubt(uint32 queue, TransactionId xid)
{
	uint32		kept = 0;

	aq_latch_get(&aq_classic_area->latch, AQ_EXCLUSIVE, AQ_LOC_CLASSIC_DOUBT);
	for (uint32 i = 0; i < aq_classic_area->ndoubts; i++)
		if (aq_classic_area->doubts[i].queue != queue ||
			(TransactionIdIsValid(xid) && aq_classic_area->doubts[i].xid != xid))
			aq_classic_area->doubts[kept++] = aq_classic_area->doubts[i];
	aq_classic_area->ndoubts = kept;
	aq_latch_free(&aq_classic_area->latch);
}

/* The queue is dropped. */
void
aq_classic_doubts_forget(uint32 queue)
{
	drop_doubt(queue, InvalidTransactionId);
}

/* --- the worker's job -------------------------------------------------------------- */

/*
 * Removes the entries of transactions that have ended; returns true if the
 * queue still has entries.
 */
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

void
aq_classic_doubts_job(int32 id, AqQueueShm *shm)
{
	bool		ended;
	bool		left = sweep_doubts(shm->object->index, &ended);

	if (aq_classic_area->too_many)
	{
		aq_job_begin();
		if (aq_sql_finds("SELECT 1 FROM pg_catalog.pg_prepared_xacts LIMIT 1"))
			left = true;
		else
			aq_classic_area->too_many = false;
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
