/*-------------------------------------------------------------------------
 *
 * check.c
 *	  aq.check(): finds inconsistencies of shared memory, and differences from
 *	  the tables.
 *
 * Each part reads its own data, under its own latches, piece by piece, so the
 * pieces are not read at the same moment: concurrent work causes apparent
 * differences.  So differences are checked again, several times within the
 * given timeout, and only those that are the same each time are reported.  On
 * a server without other work, the first reading is exact.
 *
 * States held by running transactions are not differences: claims are compared
 * with sessions in a transaction, messages in flight with the tables.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/calls/calls_private.h"

#include "access/xlog.h"
#include "miscadmin.h"

/*
 * the pause before the second reading, in microseconds; each further one is
 * twice as long
 */
#define FIRST_PAUSE ((int64) 10000)

/*
 * Each user of the queue, and each session that stops it, must be a
 * transaction.
 */
static void
check_counts(AqQueueShm *shm, AqFindings *findings)
{
	uint32		most = aq_session_count_in_transactions();
	uint32		users = aq_users_number(shm);
	uint32		enqueue = pg_atomic_read_u32(&shm->stops_enqueue);
	uint32		dequeue = pg_atomic_read_u32(&shm->stops_dequeue);

	/* this transaction does not use it, unless it did before */
	if (users > most - (aq_pins_is_used(shm) ? 0 : 1))
		aq_finding_add(findings, "users", "transactions that use the queue", users, most - 1, NULL);
	if (enqueue > most)
		aq_finding_add(findings, "stops", "transactions that stop enqueue", enqueue, most, NULL);
	if (dequeue > most)
		aq_finding_add(findings, "stops", "transactions that stop dequeue", dequeue, most, NULL);
}

static void
check_queue(AqQueue *queue, AqFindings *findings)
{
	char	   *lost = queue->own ? NULL : aq_pins_lost_table(queue);

	if (lost != NULL)
	{
		findings->queue_id = abs(queue->id);
		findings->store = queue->store->kind;
		aq_finding_add(findings, psprintf("table aq_data.%s", lost), "tables that are missing", 1, 0, NULL);
		findings->queue_id = 0;
		findings->store = '\0';
		return;
	}
	/* if the queue is not in memory, there is nothing else to check */
	if (queue->own || aq_object_find(MyDatabaseId, queue->id) == NULL)
		return;
	aq_pins_pin(queue);
	findings->queue_id = abs(queue->id);
	findings->store = queue->store->kind;
	check_counts(queue->shm, findings);
	aq_waiters_check_queue(queue->shm, findings);
	aq_holds_check(queue, findings);
	if (queue->store->checks != NULL && queue->store->checks->queue != NULL)
		queue->store->checks->queue(queue, findings);
	findings->queue_id = 0;
	findings->store = '\0';
}

static void
check_queues(AqFindings *findings)
{
	ListCell   *lc;

	foreach(lc, aq_catalog_queue_ids())
	{
		AqQueue    *queue;

		CHECK_FOR_INTERRUPTS();
		queue = aq_catalog_get_by_id(lfirst_int(lc), true);
		if (queue == NULL)
			continue;
		aq_catalog_retain();
		check_queue(queue, findings);
		if (queue->buffered != NULL)
			check_queue(queue->buffered, findings);
		aq_catalog_release();
	}
}

/*
 * The number of chunks of the message cache used by queues, in all databases.
 */
static uint32
count_chunks(void)
{
	uint32		n = 0;

	for (uint32 i = 1; i <= aq_handle_limit; i++)
	{
		AqQueueShm *shm = aq_shm_by_index(i);
		const AqStore *store;

		for (int j = 0; j < lengthof(shm->more); j++)
			if (shm->more[j] != 0)
				n++;
		store = shm->object != NULL ? aq_store_of(shm->store) : NULL;
		if (store != NULL && store->checks != NULL)
			n += store->checks->chunks(shm);
		CHECK_FOR_INTERRUPTS();
	}
	return n;
}

/* Claims end with the transaction or command that has entered them. */
static void
check_claims(AqFindings *findings)
{
	for (int i = 0; i < aq_session_slots(); i++)
	{
		int			pid = aq_session_pid(i);

		if (aq_session_claims(i) > 0 && !aq_session_in_transaction(i))
			aq_finding_add(findings, psprintf("session %d", i + 1), "claims without a transaction", aq_session_claims(i), 0,
						   pid != 0 ? psprintf("process %d", pid) : "the session has ended");
	}
}

static AqFindings
read_all(void)
{
	static const char kinds[] = {AQ_STORE_CLASSIC, AQ_STORE_SHARDED};
	AqFindings	findings = {0};

	check_queues(&findings);
	for (int i = 0; i < lengthof(kinds); i++)
	{
		findings.store = kinds[i];
		if (aq_store_of(kinds[i])->checks != NULL && aq_store_of(kinds[i])->checks->pool != NULL)
			aq_store_of(kinds[i])->checks->pool(&findings);
	}
	findings.store = '\0';
	aq_waiters_check(&findings);
	aq_cache_check(&findings);
	aq_chunks_check(&findings, count_chunks());
	aq_jobs_check(&findings);
	aq_helper_pool_check(&findings);
	aq_sync_check(&findings);
	check_claims(&findings);
	return findings;
}

static const char *
store_name(char store)
{
	return store == AQ_STORE_SHARDED ? "sharded" : store == AQ_STORE_CLASSIC ? "queue table" :
		store == AQ_STORE_BOTH ? "both" : NULL;
}

static void
put_row(AqRow *row, const AqFinding *finding)
{
	AqQueue    *queue = finding->queue_id != 0 ? aq_catalog_get_by_id(finding->queue_id, true) : NULL;

	aq_rows_text(row, queue != NULL ? queue->name : NULL);
	aq_rows_text(row, store_name(finding->store));
	aq_rows_text(row, finding->place);
	aq_rows_text(row, finding->what);
	aq_rows_number_if(row, finding->in_memory != AQ_NO_NUMBER, finding->in_memory);
	aq_rows_number_if(row, finding->expected != AQ_NO_NUMBER, finding->expected);
	aq_rows_text(row, finding->detail);
	aq_rows_end(row);
}

static void
sleep_until(int64 until, int differences)
{
	int64		now;

	while ((now = aq_clock_us()) < until)
		(void) aq_event_sleep(AQ_EVENT_CHECK_AGAIN, differences, 0, 0, until - now);
}

AQ_ROWS(aq_check)
{
	AqFindings	findings;
	int64		deadline;
	ListCell   *lc;

	if (!superuser())
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for function %s", "check"),
				 errdetail("Only superusers can call aq.check().")));
	if (RecoveryInProgress())
		return;					/* on a standby, shared memory has no queues */
	deadline = aq_clock_us() + aq_interval_to_us(PG_GETARG_DATUM(0));
	findings = read_all();
	for (int64 pause = FIRST_PAUSE; findings.list != NIL && aq_clock_us() < deadline; pause *= 2)
	{
		AqFindings	again;

		sleep_until(Min(aq_clock_us() + pause, deadline), list_length(findings.list));
		again = read_all();
		aq_finding_keep(&findings, &again);
	}
	foreach(lc, findings.list)
		put_row(row, lfirst(lc));
}
