/*-------------------------------------------------------------------------
 *
 * classic_check.c
 *	  For aq.check(): does shared memory agree with the rows of a queue in a
 *	  queue table?
 *
 * The worst difference is a range that covers a row which can be dequeued:
 * walks skip the message until the server restarts.  Rows are read with a new
 * snapshot; a range may cover a row that a transaction, prepared or not, has
 * in flight, or whose retry count must still be written.
 *
 * A lease is a row, so what is checked is that the row says all that a lease
 * needs, and that the worker looks at it when its time is over.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "classic/classic_private.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/transam.h"
#include "access/xact.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/procarray.h"
#include "utils/snapmgr.h"

/* The latch is not held, so lists may change; the caller allows for that. */
static uint32
chunks_of(const ClassicQueue *cq)
{
	uint32		n = cq->announced != 0;

	for (int i = 0; i < LIST_CHUNKS; i++)
	{
		AqChunk		directory = cq->lists[i];

		if (directory == 0)
			continue;
		n++;
		for (uint32 j = 0; j < LISTS_PER_CHUNK; j++)
			if (((AqChunk *) aq_chunk_ptr(directory))[j] != 0)
				n++;
	}
	return n;
}

uint32
aq_classic_check_chunks(AqQueueShm *shm)
{
	ClassicQueue *cq = classic_queue(shm);
	uint32		n;

	aq_latch_get(&cq->latch, AQ_SHARED, AQ_LOC_VIEW);
	n = chunks_of(cq);
	aq_latch_free(&cq->latch);
	return n;
}

/* --- leases and failures -------------------------------------------------------------- */

/* What the rows of a queue say of leases and failures. */
typedef struct LeaseRows
{
	RowScan		messages;		/* of a topic */
	TimestampTz first;			/* end of a lease; 0: there is none */
	uint32		nameless;		/* without receipt, beginning or end */
	uint32		lost;			/* whose message does not exist */
	uint32		left;			/* rows that have something of a lease, but are not leased */
	uint32		silent;			/* that have failed, but do not say when and why */
} LeaseRows;

static void
add_lease(AqQueue *queue, LeaseRows *leases, TupleTableSlot *slot, const Key *key)
{
	TimestampTz end = slot->tts_isnull[COL_NEXT_AT] ? 0 : DatumGetTimestampTz(slot->tts_values[COL_NEXT_AT]);

	if (end == 0 || slot->tts_isnull[COL_LEASED_AT] || aq_leased_row_latest_receipt(slot) <= 0)
		leases->nameless++;
	if (end != 0 && (leases->first == 0 || end < leases->first))
		leases->first = end;
	if (queue->multi && !aq_row_scan_find(&leases->messages, queue->id, 0, key))
		leases->lost++;
}

/* Adds a row, of which the columns of both tables have been read. */
static void
add_row(AqQueue *queue, LeaseRows *leases, TupleTableSlot *slot, const Key *key)
{
	int			state = DatumGetInt16(slot->tts_values[COL_STATE]);
	bool		failed = state == STATE_FAILED || (state == STATE_EXPIRED && queue->multi);

	if (DatumGetInt32(slot->tts_values[COL_QUEUE]) != queue->id)
		return;
	if (state == STATE_LEASED)
		add_lease(queue, leases, slot, key);
	else if (state != STATE_PROCESSED)
		if (!slot->tts_isnull[COL_LEASED_AT] || !slot->tts_isnull[COL_HOLDER])
			leases->left++;
	if (failed && (slot->tts_isnull[COL_DIED] || slot->tts_isnull[COL_DEATH]))
		leases->silent++;
}

/* The time from which on the worker looks at rows. */
static TimestampTz
time_of_worker(AqQueueShm *shm)
{
	uint64		from = pg_atomic_read_u64(&classic_queue(shm)->time_from);
	uint64		next = pg_atomic_read_u64(&shm->next_time);

	return from == TIME_NONE || next == 0 ? PG_INT64_MAX : (TimestampTz) Max(from, next);
}

/* Is the worker of this database in a transaction?  Then it may have taken the times. */
static bool
worker_is_at_work(void)
{
	int			pid = aq_jobs_worker_pid();

	for (int i = 0; i < aq_session_slots(); i++)
		if (pid != 0 && aq_session_pid(i) == pid)
			return aq_session_in_transaction(i);
	return false;
}

/*
 * before: time_of_worker() before the rows were read, because the worker may have
 * looked at one of them since then.
 */
static void
compare_leases(AqQueueShm *shm, const LeaseRows *leases, TimestampTz before, AqFindings *findings)
{
	TimestampTz when = Min(before, time_of_worker(shm));

	aq_finding_compare(findings, "leases", "leases without a receipt, a beginning or an end", leases->nameless, 0);
	aq_finding_compare(findings, "leases", "leases of messages that do not exist", leases->lost, 0);
	aq_finding_compare(findings, "leases", "rows with a holder that are not leased", leases->left, 0);
	aq_finding_compare(findings, "failures", "failed messages that do not say when and why", leases->silent, 0);
	if (leases->first != 0 && when > leases->first && !worker_is_at_work())
		aq_finding_add(findings, "leases", "leases that end before they are looked for", when, leases->first, NULL);
}

/* --- ranges ------------------------------------------------------------------------ */

/* Copies of the consumers' ranges, made when needed. */
typedef struct RangeCopies
{
	AqQueueShm *shm;
	RangeCopy  *copies[AQ_MAX_CONSUMERS];
} RangeCopies;

static bool
is_covered(const RangeCopy *copy, const Key *key)
{
	for (uint32 i = 0; i < copy->n; i++)
		if (key_compare(&copy->ranges[i].after, key) < 0 && key_compare(key, &copy->ranges[i].before) < 0)
			return true;
	return false;
}

static void
read_ranges(RangeCopies *ranges)
{
	for (int position = 0; position < AQ_MAX_CONSUMERS; position++)
	{
		if (aq_shm_consumer(ranges->shm, position) == NULL)
			continue;
		ranges->copies[position] = palloc(sizeof(RangeCopy));
		aq_ranges_read(ranges->shm, position, ranges->copies[position]);
	}
}

/* Can a transaction dequeue the row, which is visible to the snapshot? */
static bool
is_free(AqQueueShm *shm, HeapTupleHeader header, int position, const Key *key)
{
	TransactionId xmax = HeapTupleHeaderGetRawXmax(header);

	if ((header->t_infomask & HEAP_XMAX_INVALID) || !TransactionIdIsValid(xmax))
		return !aq_retry_list_pending(shm, position, key, InvalidTransactionId);
	if ((header->t_infomask & HEAP_XMAX_IS_MULTI) || TransactionIdIsInProgress(xmax))
		return false;
	if (TransactionIdDidCommit(xmax) && !HEAP_XMAX_IS_LOCKED_ONLY(header->t_infomask))
		return false;			/* changed after the snapshot was taken */
	return !aq_retry_list_pending(shm, position, key, xmax);
}

static bool
can_be_dequeued(const AqQueue *queue, TupleTableSlot *slot, int position)
{
	int			state = DatumGetInt16(slot->tts_values[COL_STATE]);

	return DatumGetInt32(slot->tts_values[COL_QUEUE]) == queue->id && position >= 0 && position < AQ_MAX_CONSUMERS &&
		(state == STATE_READY || (state == STATE_EXPIRED && queue->exception));
}

static void
check_row(AqQueue *queue, RangeCopies *ranges, TupleTableSlot *slot, const Key *key, AqFindings *findings)
{
	int			position = DatumGetInt16(slot->tts_values[COL_POSITION]);
	RangeCopy  *now;

	if (!can_be_dequeued(queue, slot, position) || ranges->copies[position] == NULL ||
		!is_covered(ranges->copies[position], key) ||
		!is_free(ranges->shm, aq_table_row_header(slot), position, key))
		return;
	now = palloc(sizeof(RangeCopy));
	aq_ranges_read(ranges->shm, position, now);
	if (is_covered(now, key))
		aq_finding_add(findings, psprintf("consumer %d", position), "a ready message lies in a range that is passed by",
					   AQ_NO_NUMBER, AQ_NO_NUMBER,
					   psprintf("key %lld, %lld, step %lld", (long long) key->key1, (long long) key->key2, (long long) key->step));
	pfree(now);
}

static void
check_rows(AqQueue *queue, AqFindings *findings)
{
	RangeCopies *ranges = palloc0(sizeof(RangeCopies));
	LeaseRows	leases = {.first = 0};
	TimestampTz when = time_of_worker(queue->shm);
	Relation	rel = table_open(queue->multi ? queue->table.consumers : queue->table.messages, AccessShareLock);
	TupleTableSlot *slot = table_slot_create(rel, NULL);
	Snapshot	snapshot;
	TableScanDesc scan;

	ranges->shm = queue->shm;
	read_ranges(ranges);
	if (queue->multi)
		aq_row_scan_open(&leases.messages, queue, queue->table.messages, AccessShareLock);
	snapshot = RegisterSnapshot(GetLatestSnapshot());
	scan = aq_table_beginscan(rel, snapshot);
	while (table_scan_getnextslot(scan, ForwardScanDirection, slot))
	{
		Key			key = aq_table_row_key(slot);

		CHECK_FOR_INTERRUPTS();
		slot_getsomeattrs(slot, COL_CONSUMER_COLUMNS);
		check_row(queue, ranges, slot, &key, findings);
		add_row(queue, &leases, slot, &key);
	}
	table_endscan(scan);
	UnregisterSnapshot(snapshot);
	ExecDropSingleTupleTableSlot(slot);
	table_close(rel, AccessShareLock);
	if (queue->multi)
		aq_row_scan_close(&leases.messages, true);
	compare_leases(queue->shm, &leases, when, findings);
	for (int position = 0; position < AQ_MAX_CONSUMERS; position++)
		if (ranges->copies[position] != NULL)
			pfree(ranges->copies[position]);
	pfree(ranges);
}

/* --- counters -------------------------------------------------------------------------- */

static int64
lag_of(AqQueueShm *shm, int position)
{
	AqConsumerShm *consumer = aq_shm_consumer(shm, position);

	return consumer == NULL ? 0 :
		(int64) (pg_atomic_read_u64(&consumer->enqueued) - pg_atomic_read_u64(&consumer->dequeued));
}

static bool
is_consumer(const AqQueue *queue, int position)
{
	if (!queue->multi)
		return position == 0;
	for (int i = 0; i < queue->nconsumers; i++)
		if (queue->consumers[i].position == position)
			return queue->consumers[i].name != NULL;
	return false;
}

/* Counts as the load of a queue does. */
static void
check_lag(AqQueue *queue, AqFindings *findings)
{
	int64	   *lag = palloc(AQ_MAX_CONSUMERS * sizeof(int64));
	int64	   *rows = palloc0(AQ_MAX_CONSUMERS * sizeof(int64));

	for (int position = 0; position < AQ_MAX_CONSUMERS; position++)
		lag[position] = lag_of(queue->shm, position);
	PushActiveSnapshot(GetLatestSnapshot());
	aq_sql_run(psprintf("SELECT \"position\", count(*) FROM aq_data.%s WHERE queue_id = %d AND state <> %d%s "
						"AND \"position\" >= 0 GROUP BY 1",
						queue->multi ? aq_schema_consumer_table(queue->table.id) : aq_schema_message_table(queue->table.id),
						queue->id, STATE_PROCESSED,
						queue->multi ? psprintf(" AND state <> %d", STATE_EXPIRED) : ""),
			   0, NULL, NULL, NULL, true);
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		bool		isnull;
		int			position = DatumGetInt16(SPI_getbinval(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1, &isnull));

		if (position < AQ_MAX_CONSUMERS)
			rows[position] = DatumGetInt64(SPI_getbinval(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 2, &isnull));
	}
	SPI_finish();
	PopActiveSnapshot();
	for (int position = 0; position < AQ_MAX_CONSUMERS; position++)
		if (is_consumer(queue, position) && lag_of(queue->shm, position) == lag[position])
			aq_finding_compare(findings, psprintf("consumer %d", position), "enqueued - dequeued", lag[position], rows[position]);
	pfree(lag);
	pfree(rows);
}

static uint32
count_retries(ClassicQueue *cq)
{
	uint32		n = 0;

	for (uint32 i = cq->retries; i != 0 && n <= (uint32) aq_classic_area_max_retries(); i = aq_classic_area_retries[i].next)
		n++;
	return n;
}

/*
 * Checks for entries of prepared transactions that have ended; the worker is
 * notified, and checks twice a second.
 */
static void
check_retries(AqQueue *queue, AqFindings *findings)
{
	ClassicQueue *cq = classic_queue(queue->shm);
	uint32		n;

	aq_latch_get(&cq->latch, AQ_SHARED, AQ_LOC_VIEW);
	n = count_retries(cq);
	aq_latch_free(&cq->latch);
	aq_finding_compare(findings, "retries", "rolled back dequeues to be counted", pg_atomic_read_u32(&cq->nretries), n);
}

/* Chunks of bodies are written and deleted by the transactions of their message, so none is without it. */
static void
check_bodies(AqQueue *queue, AqFindings *findings)
{
	char	   *query = psprintf("SELECT DISTINCT k.msgid FROM aq_data.k%d k "
								 "WHERE NOT EXISTS (SELECT FROM aq_data.%s t WHERE t.msgid = k.msgid)",
								 queue->table.id, aq_schema_message_table(queue->table.id));
	uint64		n;

	if (!OidIsValid(aq_body_row_table(queue->table.id)))
		return;
	(void) aq_sql_run(query, 0, NULL, NULL, NULL, true);
	n = SPI_processed;
	SPI_finish();
	aq_finding_compare(findings, "bodies", "bodies without their message", n, 0);
}

void
aq_classic_check(AqQueue *queue, AqFindings *findings)
{
	check_rows(queue, findings);
	check_bodies(queue, findings);
	check_retries(queue, findings);
	/*
	 * the snapshot also shows changes of this transaction, which are not
	 * counted yet
	 */
	if (!queue->shm->converted && !aq_pins_is_used(queue->shm))
		check_lag(queue, findings);
}

/* --- all queues ---------------------------------------------------------------------------- */

static uint32
other_transactions(void)
{
	uint32		n = 0;

	for (int i = 0; i < aq_session_slots(); i++)
		if (i != aq_session_own_number && aq_session_in_transaction(i))
			n++;
	return n;
}

void
aq_classic_check_pool(AqFindings *findings)
{
	uint32		total = aq_classic_area_max_retries();
	uint32		n = 0,
				nfree,
				ndoubts;
	TransactionId doubts[DOUBTS_MAX];

	aq_latch_get(&aq_classic_area->latch, AQ_SHARED, AQ_LOC_VIEW);
	for (uint32 i = aq_classic_area->free_retry; i != 0 && n <= total; i = aq_classic_area_retries[i].next)
		n++;
	nfree = aq_classic_area->nfree_retries;
	ndoubts = aq_classic_area->ndoubts;
	for (uint32 i = 0; i < ndoubts; i++)
		doubts[i] = aq_classic_area->doubts[i].xid;
	aq_latch_free(&aq_classic_area->latch);
	aq_finding_compare(findings, "retries", "free entries", nfree, n);
	for (uint32 i = 0; i < ndoubts; i++)
		if (!TransactionIdIsInProgress(doubts[i]))
			aq_finding_add(findings, "transactions in doubt", "an entry of a transaction that has ended", doubts[i], AQ_NO_NUMBER, NULL);
	for (int i = 1; i <= aq_handle_limit; i++)
	{
		ClassicQueue *cq = &aq_classic_area_queues[i];

		if (cq->retries == 0)
			continue;
		aq_latch_get(&cq->latch, AQ_SHARED, AQ_LOC_VIEW);
		n += count_retries(cq);
		aq_latch_free(&cq->latch);
	}
	/* running transactions have reserved the others */
	if (n > total || (n < total && other_transactions() == 0 && !TransactionIdIsValid(GetTopTransactionIdIfAny())))
		aq_finding_add(findings, "retries", "entries, free or used", n, total, NULL);
}
