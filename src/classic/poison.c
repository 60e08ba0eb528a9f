/*-------------------------------------------------------------------------
 *
 * poison.c
 *	  Which messages that have failed a dequeue may take: see "Poison messages" in
 *	  queue/README.md.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "classic/classic_private.h"

/* Message groups are taken, and fail, as a whole. */
static bool
applies(const AqQueue *queue, const AqTakeOptions *options)
{
	return (options->mode == AQ_MODE_REMOVE || options->mode == AQ_MODE_REMOVE_NODATA) && !queue->table.grouping;
}

/* Each lease fails by itself. */
static bool
fails_with_transaction(const AqQueue *queue, const AqTakeOptions *options)
{
	return applies(queue, options) && options->lease == 0;
}

/*
 * May the call, which has taken "taken" messages, also take one with this number
 * of attempts?  Returns the number of messages that it may return with it; if that
 * is not more than "taken", it may not take it.  limit: the number without it.
 */
uint32
aq_poison_limit(const AqQueue *queue, const AqTakeOptions *options, int attempts, uint32 taken, uint32 limit)
{
	if (attempts == 0 || !applies(queue, options) || options->id != NULL)
		return limit;
	if (aq_queue_next_is_last(queue, attempts) && fails_with_transaction(queue, options) && !options->patient &&
		aq_classic_notes_have_takes(queue->shm))
		return taken;
	limit = Min(limit, aq_queue_batch_limit(queue, attempts, options->max));
	return Max(limit, taken);
}

/*
 * The message is about to be taken.  Is it the first one of its queue in the
 * transaction, and is its next failure its last one?
 */
bool
aq_poison_is_last(const AqQueue *queue, const AqTakeOptions *options, int attempts)
{
	return attempts > 0 && fails_with_transaction(queue, options) && aq_queue_next_is_last(queue, attempts) &&
		!aq_classic_notes_have_takes(queue->shm);
}

/*
 * Does the transaction have a message of the queue whose next failure is its
 * last one?  Then the call gets nothing; other sessions may get messages.
 */
bool
aq_poison_withholds(const AqQueue *queue, const AqTakeOptions *options)
{
	if (!fails_with_transaction(queue, options) || options->id != NULL || options->patient ||
		!aq_classic_notes_have_last(queue->shm))
		return false;
	aq_waiters_check_later(queue->shm);
	return true;
}
