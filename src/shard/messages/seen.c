/*-------------------------------------------------------------------------
 *
 * seen.c
 *	  What a dequeue by condition has looked at while it waits.
 *
 * A call that waits is woken by each message, and has to look only at those that
 * it has not seen.  For each stream it keeps an ordinal: no message before it is
 * one that the call wants.  The invariant:
 *
 *	  If a call keeps an ordinal and the stream's number of returns from when that
 *	  search began, and no message of a lower ordinal has become ready since, then
 *	  the stream's number is still the same; and Stream.seen is not lower than the
 *	  ordinal.
 *
 * So a message that becomes ready before Stream.seen, for whatever reason (the
 * commit of a transaction that enqueued earlier, a rollback, the end of a retry
 * delay or of a lease, the load of a partition), raises the number of returns, and
 * all searches start over.  All of these set the message's bit in set_ready
 * (slot.c), the only function that sets one, under the latch.  Stream.seen is raised
 * when a search begins, to where it will end, because what becomes ready behind the
 * search must count, too.
 *
 * What a search has passed over although it might want it later makes the search
 * forget where it was: a message that is held back (held_back.c), or that the call
 * wanted and did not get.  Conditions whose result can change are never remembered.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/messages/take.h"

/* number of the last messages that are checked again while earlier ones are not committed yet */
#define LOOK_BACK 1024

/* NULL: the call remembers nothing of the stream. */
static struct AqSeenStream *
remembered(const Take *take, const Stream *stream)
{
	AqSeen	   *seen = take->options->seen;
	struct AqSeenStream *entry;

	if (seen == NULL || take->options->mode == AQ_MODE_BROWSE || take->own_puts || take->snapshot != NULL ||
		take->queue->distributed)
		return NULL;
	for (int i = 0; i < seen->n; i++)
		if (seen->streams[i].stream == stream->index && seen->streams[i].position == take->options->position)
			return &seen->streams[i];
	if (seen->n == AQ_SEEN_STREAMS)
		return NULL;
	entry = &seen->streams[seen->n++];
	*entry = (struct AqSeenStream) {.stream = stream->index, .position = take->options->position};
	return entry;
}

/* Where a search that begins now will end.  Latch held. */
static int64
end_of(const Stream *stream)
{
	const Partition *tail = partition_at(stream->tail);

	if (tail == NULL)
		return 0;
	return ordinal_of(tail, tail->reserved - (tail->pending > 0 ? Min(tail->reserved, LOOK_BACK) : 0));
}

/* A search begins: returns the first ordinal that it has to look at.  Latch held. */
int64
aq_seen_begin(Take *take, Stream *stream)
{
	struct AqSeenStream *entry = remembered(take, stream);

	take->seen = entry;
	take->passed_over = false;
	if (entry == NULL)
		return 0;
	if (entry->returns != stream->returns)
		entry->before = 0;
	entry->returns = stream->returns;
	take->seen_before = Max(end_of(stream), entry->before);
	stream->seen = Max(stream->seen, take->seen_before);
	return entry->before;
}

/* It has looked at all messages of the stream.  Without the latch. */
void
aq_seen_end(Take *take)
{
	if (take->seen != NULL)
		take->seen->before = take->passed_over ? 0 : take->seen_before;
}
