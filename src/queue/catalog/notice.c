/*-------------------------------------------------------------------------
 *
 * notice.c
 *	  Notices for calls that are allowed and may be mistakes, once in a session
 *	  for each name.
 *
 * A consumer that is not known is no error, because a recipient is known only
 * while it has messages: a program may well wait for one before the first
 * message names it.  A name that was granted to a role counts as known.  Nor is a topic
 * without subscribers an error: they may come later.
 *
 * A program can use a new name for each request, so a session is not told of
 * more than a maximum number of names of each kind.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/catalog/catalog_private.h"

#include "common/hashfn.h"

/* names that a session is told of */
#define NAMES_MAX 32

/* a wait that may be a mistake */
#define LONG_WAIT_S 300

/* Hashes: of topics without subscribers, and of queue and consumer. */
typedef struct Told
{
	uint64		names[NAMES_MAX];
	int			n;
} Told;

static Told topics,
			consumers;

static uint64
hash_of(const AqQueue *queue, const char *consumer)
{
	return hash_bytes_extended((const unsigned char *) consumer, strlen(consumer),
							   queue->persistent != NULL ? queue->persistent->key : queue->key);
}

static bool
was_told(const Told *told, uint64 name)
{
	for (int i = 0; i < told->n; i++)
		if (told->names[i] == name)
			return true;
	return told->n == NAMES_MAX;
}

/* The session uses a consumer that is not known. */
void
aq_notice_unknown_consumer(AqQueue *queue, const char *consumer)
{
	uint64		name = hash_of(queue, consumer);

	if (was_told(&consumers, name) || aq_grants_exist(queue, consumer))
		return;
	consumers.names[consumers.n++] = name;
	ereport(NOTICE,
			(errmsg("consumer \"%s\" of queue \"%s\" is not a subscriber and has no messages", aq_error_clip(consumer), queue->name),
			 aq_error_hint("Check the spelling, also upper and lower case: aq.subscribers lists the consumers. "
						   "A subscriber is added with aq.subscribe; a recipient is known while it has messages.",
						   "Check the spelling: sys.all_queue_subscribers lists the subscribers. "
						   "A subscriber is added with dbms_aqadm.add_subscriber; a recipient is known while it has messages.")));
}

/* The session enqueues without recipients into a topic that has no subscriber; Oracle's packages raise an error for it. */
void
aq_notice_no_subscriber(const AqQueue *queue)
{
	uint64		name = hash_of(queue, queue->delivery == AQ_BUFFERED ? "buffered" : "");

	if (aq_error_oracle || was_told(&topics, name))
		return;
	topics.names[topics.n++] = name;
	ereport(NOTICE,
			(errmsg(queue->delivery == AQ_BUFFERED ? "queue \"%s\" has no subscriber for buffered messages, so the message is not kept" :
					"queue \"%s\" has no subscriber, so the message is not kept", queue->name),
			 errdetail("A subscriber gets only messages that are enqueued after it was added."),
			 errhint("Add subscribers with aq.subscribe first, or name recipients.")));
}

/*
 * A number without a unit, as the text of an interval, is in seconds, which
 * the call cannot see.  Programs that count in milliseconds would wait long.
 */
void
aq_notice_long_wait(int64 wait_us)
{
	static bool told;

	if (told || wait_us < LONG_WAIT_S * USECS_PER_SEC)
		return;
	told = true;
	ereport(NOTICE,
			(errmsg("the call waits for up to " INT64_FORMAT " seconds", wait_us / USECS_PER_SEC),
			 errdetail("A number without a unit is in seconds. While the call waits, it holds its snapshot."),
			 errhint("Specify the unit, for example '500 ms'. CALL aq.receive waits without a snapshot.")));
}
