/*-------------------------------------------------------------------------
 *
 * retry_list.c
 *	  A queue's list of rolled back dequeues that the worker must count.
 *
 * An entry is reserved when a transaction begins to dequeue, because a
 * rollback cannot allocate memory.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "classic/classic_private.h"

#include "access/transam.h"
#include "access/xact.h"
#include "storage/procarray.h"

/*
 * number of prepared transactions that aq_retry_list_pending() checks; if
 * there are more, it returns true
 */
#define RETRY_DOUBTS 32

static int	total;

static void
count_roles(AqShareUse *use)
{
	for (int i = 1; i <= total; i++)
	{
		Oid			role = ((volatile Retry *) aq_classic_area_retries)[i].role;

		if (OidIsValid(role))
			aq_share_add_role(use, role, 1);
	}
}

void
aq_retry_list_init(void)
{
	total = (int) aq_classic_area_max_retries();
	aq_share_register(AQ_SHARE_DEQUEUES, &total, count_roles);
}

/* Raises an error if the role has used up its share. */
void
aq_retry_list_check_share(Oid role)
{
	if (OidIsValid(role) && aq_share_is_scarce(AQ_SHARE_DEQUEUES, total - (int) aq_classic_area->nfree_retries + 1))
		aq_share_check_role(AQ_SHARE_DEQUEUES, role, 1);
}

/* For a transaction of the role; invalid: for a worker.  Returns 0 if none is free. */
uint32
aq_retry_list_reserve(Oid role)
{
	uint32		index;

	aq_latch_get(&aq_classic_area->latch, AQ_EXCLUSIVE, AQ_LOC_CLASSIC_RETRY);
	index = aq_classic_area->free_retry;
	if (index != 0)
	{
		aq_classic_area->free_retry = aq_classic_area_retries[index].next;
		aq_classic_area->nfree_retries--;
		aq_classic_area_retries[index].role = role;
	}
	aq_latch_free(&aq_classic_area->latch);
	return index;
}

/* May a transaction keep more entries than it needs? */
bool
aq_retry_list_has_plenty(void)
{
	return aq_classic_area->nfree_retries > aq_classic_area_max_retries() / 2;
}

void
aq_retry_list_free(uint32 index)
{
	if (index == 0)
		return;
	aq_latch_get(&aq_classic_area->latch, AQ_EXCLUSIVE, AQ_LOC_CLASSIC_RETRY);
	aq_classic_area_retries[index].role = InvalidOid;
	aq_classic_area_retries[index].next = aq_classic_area->free_retry;
	aq_classic_area->free_retry = index;
	aq_classic_area->nfree_retries++;
	aq_latch_free(&aq_classic_area->latch);
}

void
aq_retry_list_add(AqQueueShm *shm, uint32 index)
{
	ClassicQueue *cq = classic_queue(shm);

	aq_latch_get(&cq->latch, AQ_EXCLUSIVE, AQ_LOC_CLASSIC_RETRY);
	aq_classic_area_retries[index].next = cq->retries;
	cq->retries = index;
	pg_atomic_fetch_add_u32(&cq->nretries, 1);
	aq_latch_free(&cq->latch);
}

void
aq_retry_list_remove(AqQueueShm *shm, uint32 index)
{
	ClassicQueue *cq = classic_queue(shm);
	uint32	   *link;

	aq_latch_get(&cq->latch, AQ_EXCLUSIVE, AQ_LOC_CLASSIC_RETRY);
	for (link = &cq->retries; *link != index; link = &aq_classic_area_retries[*link].next)
		;
	*link = aq_classic_area_retries[index].next;
	pg_atomic_fetch_sub_u32(&cq->nretries, 1);
	aq_latch_free(&cq->latch);
	aq_retry_list_free(index);
}

/*
 * For the worker: the entries except those of transactions that are still
 * prepared.  Only the worker removes entries, and it has the queue pinned, so
 * the list is read without the latch.
 */
int
aq_retry_list_read(AqQueueShm *shm, uint32 *indexes)
{
	ClassicQueue *cq = classic_queue(shm);
	uint32		index;
	TransactionId prepared = InvalidTransactionId;	/* the last one, which often has many entries */
	int			n = 0;

	aq_latch_get(&cq->latch, AQ_SHARED, AQ_LOC_CLASSIC_RETRY);
	index = cq->retries;
	aq_latch_free(&cq->latch);
	for (; index != 0 && n < RETRIES_MAX; index = aq_classic_area_retries[index].next)
	{
		TransactionId doubt = aq_classic_area_retries[index].doubt;

		if (TransactionIdIsValid(doubt) && (doubt == prepared || TransactionIdIsInProgress(doubt)))
			prepared = doubt;
		else
			indexes[n++] = index;
	}
	return n;
}

/*
 * --- rows that wait for their count
 * ----------------------------------------------------------
 */

/* The worker's transaction is about to count the entry, and may fail. */
void
aq_retry_list_try(AqQueueShm *shm, Retry *retry)
{
	TransactionId xid = GetCurrentTransactionId();

	aq_latch_get(&classic_queue(shm)->latch, AQ_EXCLUSIVE, AQ_LOC_CLASSIC_RETRY);
	aq_xids_add(&retry->tried, xid, xid);
	aq_latch_free(&classic_queue(shm)->latch);
}

/*
 * Does a row last changed by xid wait for this count? xid may also be a failed
 * transaction of the worker.
 */
bool
aq_retry_list_is_of(const Retry *retry, TransactionId xid)
{
	return aq_xids_have(&retry->taken, xid) || aq_xids_have(&retry->tried, xid);
}

static bool
covers(const Retry *retry, int position, const Key *key, TransactionId xid)
{
	return !only_numbers(retry->effect.kind) && retry->effect.position == position &&
		key_compare(&retry->lowest, key) <= 0 && key_compare(key, &retry->highest) <= 0 &&
		(TransactionIdIsValid(xid) ? aq_retry_list_is_of(retry, xid) : !TransactionIdIsValid(retry->doubt));
}

/*
 * Must a rolled back dequeue of the row by xid (invalid: by any transaction)
 * still be counted?  Entries of transactions that are still prepared do not
 * count, because another transaction took the row.
 */
bool
aq_retry_list_pending(AqQueueShm *shm, int position, const Key *key, TransactionId xid)
{
	ClassicQueue *cq = classic_queue(shm);
	TransactionId doubts[RETRY_DOUBTS];
	int			ndoubts = 0;
	bool		pending = false;

	if (pg_atomic_read_u32(&cq->nretries) == 0)
		return false;
	aq_latch_get(&cq->latch, AQ_SHARED, AQ_LOC_CLASSIC_RETRY);
	for (uint32 i = cq->retries; i != 0 && !pending; i = aq_classic_area_retries[i].next)
	{
		const Retry *retry = &aq_classic_area_retries[i];

		if (!covers(retry, position, key, xid))
			continue;
		if (TransactionIdIsValid(retry->doubt) && ndoubts < RETRY_DOUBTS)
			doubts[ndoubts++] = retry->doubt;
		else
			pending = true;
	}
	aq_latch_free(&cq->latch);
	/* after the latch was freed, because this may read from disk */
	for (int i = 0; i < ndoubts && !pending; i++)
		pending = !TransactionIdIsInProgress(doubts[i]);
	return pending;
}
