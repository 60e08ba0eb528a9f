/*-------------------------------------------------------------------------
 *
 * classic_retry.c
 *	  The worker's job that writes the retry counts of messages whose dequeue
 *	  was rolled back.
 *
 * A rollback leaves an entry with the range of keys of its messages and the
 * ids of the transactions that took them.  The worker finds their rows by their aborted
 * xmax, and writes the counts; until this is committed, no session takes the
 * rows (invariant I9).
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "classic/classic_private.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "access/xact.h"
#include "miscadmin.h"

#define TRY_AGAIN ((int64) 100000)

/*
 * Was the row in the slot taken by one of these transactions, and must still
 * be counted?
 */
static bool
was_taken_by(const Retry *retry, const RowScan *rows)
{
	HeapTupleHeader header = aq_table_row_header(rows->slot);
	TransactionId xid = HeapTupleHeaderGetRawXmax(header);

	slot_getsomeattrs(rows->slot, COL_STATE + 1);
	if (DatumGetInt16(rows->slot->tts_values[COL_STATE]) == STATE_LEASED)
		return false;			/* an acknowledgement was rolled back, not a dequeue */
	if (!TransactionIdIsNormal(xid) || (header->t_infomask & HEAP_XMAX_IS_MULTI) || TransactionIdIsCurrentTransactionId(xid) ||
		TransactionIdIsValid(rows->dirty.xmin) || TransactionIdIsValid(rows->dirty.xmax))
		return false;

	/*
	 * A row that was only locked is to be counted only if a failed transaction
	 * of the worker locked it.  If this transaction, or a committed one of the
	 * worker, has locked the row, then its attempt has been counted.
	 */
	if (HEAP_XMAX_IS_LOCKED_ONLY(header->t_infomask))
		return aq_xids_have(&retry->tried, xid) && !TransactionIdDidCommit(xid);
	return aq_retry_list_is_of(retry, xid);
}

/*
 * Counts the attempt of the row in the slot: it becomes ready again, waits for
 * its retry delay, or fails.  A row that cannot be moved now becomes expired.
 * alone: no other message was rolled back with it, or they are a group.
 * Returns false if it must be tried again.
 */
static bool
count_attempt(QueueScans *scans, RowScan *rows, int position, bool alone)
{
	AqQueue    *queue = scans->queue;
	const int	columns[] = {COL_ATTEMPTS, COL_STATE, COL_NEXT_AT, COL_FIRST_ATTEMPT, COL_LAST_ATTEMPT};
	Datum		values[5];
	bool		nulls[5] = {false};
	AqDeath		death = aq_failure_death(rows->slot);
	int			attempts = aq_failure_attempts(queue, rows->slot) + 1;
	bool		expired = false;
	TimestampTz next_at;
	TimestampTz now = GetCurrentTimestamp();
	Key			key = aq_table_row_key(rows->slot);

	death.attempts++;
	death.kind = AQ_DEATH_RETRIES;
	death.first = death.first != 0 ? death.first : now;
	death.last = death.died = now;
	next_at = rows->slot->tts_isnull[COL_NEXT_AT] ? 0
		: DatumGetTimestampTz(rows->slot->tts_values[COL_NEXT_AT]);
	if (queue->exception)
		;						/* messages of an exception queue are not moved */
	else if (alone && aq_failure_over_limit(queue, attempts))
	{
		if (aq_failure_row(scans, rows, &death))
			return true;
		if (queue->multi)
			return false;
		expired = true;
		next_at = now;
	}
	values[0] = Int32GetDatum(death.attempts);
	if (queue->retry_delay > 0 && !queue->exception && !expired)
	{
		values[1] = Int16GetDatum(STATE_WAITING);
		next_at = now + aq_retry_delay_after(queue, attempts, aq_retry_delay_random());
	}
	else
		values[1] = rows->slot->tts_values[COL_STATE];
	values[2] = TimestampTzGetDatum(next_at);
	nulls[2] = next_at == 0;
	values[3] = TimestampTzGetDatum(death.first);
	values[4] = TimestampTzGetDatum(death.last);
	aq_ranges_worker(queue->shm);
	if (aq_table_row_update(rows->rel, rows->slot, columns, values, nulls, lengthof(columns)) != TM_Ok)
		return true;
	aq_ranges_announce(queue->shm, position, &key, &key);
	if (DatumGetInt16(values[1]) == STATE_WAITING || expired)
		aq_due_time_announce(queue->shm, next_at);
	else
		aq_classic_notes_add(queue->shm, position, NOTE_READY, &key, 1);
	return true;
}

/*
 * Returns false if rows are left; rows that were counted have another xmax the
 * next time.
 */
static bool
count_retry(QueueScans *scans, Retry *retry)
{
	RowScan    *rows = scans->queue->multi ? &scans->consumers : &scans->messages;
	Key			key;
	bool		alone = retry->alone || scans->queue->table.grouping;
	bool		all = true;

	aq_retry_list_try(scans->queue->shm, retry);
	aq_row_scan_seek(rows, scans->queue->id, retry->effect.position, &retry->lowest, ForwardScanDirection);
	while (aq_row_scan_next(rows, &retry->highest, &key))
	{
		CHECK_FOR_INTERRUPTS();
		if (was_taken_by(retry, rows) && !count_attempt(scans, rows, retry->effect.position, alone))
			all = false;
	}
	return all;
}

void
aq_classic_retry_job(int32 id, AqQueueShm *shm)
{
	uint32		indexes[RETRIES_MAX];
	bool		done[RETRIES_MAX];
	bool		committed[RETRIES_MAX];
	int			n = aq_retry_list_read(shm, indexes);
	AqQueue    *queue;
	QueueScans	scans;

	if (n == 0)
		return;
	aq_job_begin();
	queue = aq_catalog_get_by_id(id, true);
	if (queue == NULL || !aq_row_scan_try_lock(queue))
	{
		aq_job_commit(false);
		if (queue != NULL)
			aq_retries_later(shm, TRY_AGAIN);
		return;
	}
	aq_pins_pin(queue);
	aq_row_scan_open_all(&scans, queue);
	for (int i = 0; i < n; i++)
	{
		Retry	   *retry = &aq_classic_area_retries[indexes[i]];

		committed[i] = TransactionIdIsValid(retry->doubt) && TransactionIdDidCommit(retry->doubt);
		done[i] = committed[i] || only_numbers(retry->effect.kind) || count_retry(&scans, retry);
		/* so that the next entry sees the new versions of the rows */
		CommandCounterIncrement();
	}
	aq_row_scan_close_all(&scans);
	pg_atomic_fetch_add_u64(&classic_queue(shm)->counts, 1);
	aq_point("retries-written");
	aq_job_commit(true);
	for (int i = 0; i < n; i++)
		if (done[i])
		{
			if (committed[i])
				aq_classic_notes_count(shm, &aq_classic_area_retries[indexes[i]]);
			aq_retry_list_remove(shm, indexes[i]);
		}
		else
			aq_retries_later(shm, TRY_AGAIN);
	aq_retries_counted(shm);
	if (n == RETRIES_MAX)
		aq_work_post(shm, AQ_WORK_RETRY);
}
