/*-------------------------------------------------------------------------
 *
 * removed_consumer.c
 *	  The worker's job that deletes the rows of a removed consumer.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "classic/classic_private.h"

#include "access/xact.h"
#include "miscadmin.h"

/* Deletes its rows; returns false if a transaction has one of them. */
static bool
delete_rows(AqQueue *queue, int position)
{
	const Key	first = KEY_FIRST,
				last = KEY_LAST;
	RowScan		rows,
				probe,
				messages;
	Key			key;
	bool		busy = false;

	aq_row_scan_open(&rows, queue, queue->table.consumers, RowExclusiveLock);
	aq_row_scan_open(&probe, queue, queue->table.consumers, RowExclusiveLock);
	aq_row_scan_open(&messages, queue, queue->table.messages, RowExclusiveLock);
	aq_row_scan_seek(&rows, queue->id, position, &first, ForwardScanDirection);
	while (aq_row_scan_next(&rows, &last, &key))
	{
		CHECK_FOR_INTERRUPTS();
		aq_classic_notes_reserve(queue->shm, position, NOTE_PURGE);
		if (TransactionIdIsValid(rows.dirty.xmin) || TransactionIdIsValid(rows.dirty.xmax) ||
			aq_table_row_delete(rows.rel, rows.slot) != TM_Ok)
		{
			busy = true;
			continue;
		}
		/* the next consumer at this position begins without messages */
		aq_classic_notes_add(queue->shm, position, NOTE_PURGE, &key, 1);
		if (aq_row_scan_find(&messages, queue->id, 0, &key))
			aq_topic_check(queue, &probe, &messages, &key, position);
	}
	aq_row_scan_close(&rows, false);
	aq_row_scan_close(&probe, false);
	aq_row_scan_close(&messages, false);
	return !busy;
}

/*
 * Do entries wait for the worker?  The entry of a prepared transaction that has ended
 * may still change the count of the consumer's messages.
 */
static bool
has_entries(AqQueueShm *shm)
{
	ClassicQueue *cq = classic_queue(shm);

	return cq->retries != 0 || pg_atomic_read_u32(&cq->nretries) > 0;
}

/* Returns false if it must be tried again. */
bool
aq_removed_consumer_free(AqQueue *queue, AqRemoved *removed)
{
	return !has_entries(queue->shm) && aq_row_scan_try_lock(queue) && delete_rows(queue, removed->position);
}
