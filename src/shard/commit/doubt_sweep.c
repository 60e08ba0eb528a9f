/*-------------------------------------------------------------------------
 *
 * doubt_sweep.c
 *	  When prepared transactions are resolved: by the session that finishes one,
 *	  and by the worker.  doubt.c says how.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/commit/commit_private.h"

#include "access/xact.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"

/*
 * interval at which the worker checks prepared transactions, in microseconds
 */
#define SWEEP_INTERVAL ((int64) 500000)

/* --- after COMMIT PREPARED and ROLLBACK PREPARED --------------------------------------- */

/* The ids of this database's queues with transactions in doubt. */
static List *
queues_in_doubt(void)
{
	int32	   *ids = palloc(aq_area->max_doubts * sizeof(int32));
	List	   *list = NIL;
	uint32		n = 0;

	aq_latch_get(&aq_area->doubt_latch, AQ_SHARED, AQ_LOC_DOUBT_SWEEP);
	for (uint32 i = 0; i < aq_area->max_doubts; i++)
		if (aq_area_doubts[i].partition != 0)
		{
			AqQueueShm *shm = aq_shm_by_index(partition_at(aq_area_doubts[i].partition)->queue);

			if (shm->database == MyDatabaseId)
				ids[n++] = shm->queue_id;
		}
	aq_latch_free(&aq_area->doubt_latch);
	for (uint32 i = 0; i < n; i++)
		list = list_append_unique_int(list, ids[i]);
	return list;
}

static void
resolve_all(void)
{
	List	   *queues = queues_in_doubt();
	ListCell   *lc;

	aq_point("prepared-finished");
	foreach(lc, queues)
	{
		AqQueue    *queue = aq_catalog_get_by_id(lfirst_int(lc), true);

		if (queue == NULL)
			continue;			/* just dropped */
		aq_pins_pin(queue);
		(void) aq_doubt_resolve(queue->shm, true);
	}
}

/*
 * Called after COMMIT PREPARED or ROLLBACK PREPARED: resolves the entries of
 * transactions that have ended.  The command is already effective, so an error
 * here must not make it fail; the worker retries.
 */
void
aq_doubt_sweep_ended(void)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	bool		impatient;

	if (pg_atomic_read_u32(&aq_area->ndoubts) == 0 || !IsTransactionState())
		return;
	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	impatient = aq_chunks_set_impatient(true);
	PG_TRY();
	{
		PushActiveSnapshot(GetTransactionSnapshot());
		resolve_all();
		PopActiveSnapshot();
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	(void) aq_chunks_set_impatient(impatient);
}

/* The worker's job that resolves entries. */
void
aq_doubt_sweep_job(int32 id, AqQueueShm *shm)
{
	bool		all;

	aq_job_begin();
	all = aq_doubt_resolve(shm, false);
	aq_job_commit(false);
	if (!all)
		aq_work_later(shm, AQ_WORK_DOUBT, SWEEP_INTERVAL);
}
