/*-------------------------------------------------------------------------
 *
 * candidate.c
 *	  Messages that a dequeue has found: reading and returning their rows, and
 *	  waiting for messages whose retry count is being written.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/messages/take.h"

#include "access/table.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

/* Fetches a message's row; the caller releases the buffer afterwards. */
void
aq_candidate_read(Take *take, Relation rel, const Candidate *item, AqMessage *m, Datum *values,
				  bool *nulls, Buffer *buffer)
{
	HeapTupleData tuple;
	int64		ordinal = take->number * PARTITION_SLOTS + item->slot;

	tuple.t_self = item->tid;
	memset(m, 0, sizeof(AqMessage));
	m->attempts = item->attempts;
	m->receipt = take->terms.receipt;
	if (aq_heap_read_row(rel, &tuple, buffer))
		aq_heap_read_message(take->queue, stream_at(take->partition->stream), &tuple, RelationGetDescr(rel),
							 m, values, nulls);
	if (m->ordinal != ordinal)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("message %lld of queue \"%s\" is not in its table", (long long) ordinal,
						take->queue->name),
				 errhint("If table \"%s\" was truncated or changed by hand, restart the server, so that the queue is loaded again, "
						 "or drop the queue with force => true.", RelationGetRelationName(rel))));
	if (take->options->mode == AQ_MODE_REMOVE_NODATA)
	{
		m->payload = (Datum) 0;
		m->payload_null = true;
	}
}

/*
 * Returns the messages taken.  Their table was not locked when they were
 * taken, so it may have been rewritten.
 */
void
aq_candidate_emit(Take *take)
{
	Relation	rel;
	Buffer		buffer = InvalidBuffer;

	take->taken += take->nitems;
	if (take->options->emit == NULL || take->nitems == 0)
		return;
	rel = aq_heap_open_messages(take->partition, AccessShareLock);
	if (take->file != take->partition->file)
		for (uint32 i = 0; i < take->nitems; i++)
			candidate_locate(take->partition, &take->items[i]);
	for (uint32 i = 0; i < take->nitems; i++)
	{
		AqMessage	m;
		Datum		values[MSG_COLUMNS];
		bool		nulls[MSG_COLUMNS];

		aq_candidate_read(take, rel, &take->items[i], &m, values, nulls, &buffer);
		aq_notes_consumed(take->options->mode, take->now, &m);
		take->options->emit(take->options->emit_arg, &m);
	}
	ReleaseBuffer(buffer);
	table_close(rel, NoLock);
}

static bool
retries_pending(void *arg)
{
	Take	   *take = arg;

	return take->partition->nretry > 0 && take->partition->number == take->number;
}

/*
 * Waits until the worker has written the retry counts.  Returns false if it
 * cannot: then no later message is dequeued.
 */
bool
aq_candidate_await_retries(Take *take, bool only_checks)
{
	AqMode		mode = take->options->mode;

	if (take->options->unit != 0)
	{
		aq_work_post(take->shm, AQ_WORK_RETRY); /* the link worker does not wait for it */
		return false;
	}
	if (take->counts_until == 0 && !only_checks)
		take->counts_until = aq_retries_patience();
	if (aq_retries_await(take->shm, only_checks, take->counts_until, retries_pending, take))
		return true;
	take->ignore_retries = mode == AQ_MODE_BROWSE || mode == AQ_MODE_PURGE;
	return take->ignore_retries;
}
