/*-------------------------------------------------------------------------
 *
 * unknown.c
 *	  A notice for a consumer's name that is not known: it may be misspelt.
 *
 * It is no error, because a recipient is known only while it has messages: a
 * program may well wait for one before the first message names it.  Such a
 * program can use a new name for each request, so a session is not told of
 * more than a maximum number of names.  A name that was granted to a role counts as known.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/calls/calls_private.h"

#include "common/hashfn.h"

/* names that a session is told of */
#define NAMES_MAX 32

/* Hashes of queue and name. */
static uint64 told[NAMES_MAX];
static int	ntold;

static bool
was_told(uint64 name)
{
	for (int i = 0; i < ntold; i++)
		if (told[i] == name)
			return true;
	return ntold == NAMES_MAX;
}

/* The session dequeues, waits or listens for a consumer that is not known. */
void
aq_unknown_consumer(AqQueue *queue, const char *consumer)
{
	uint64		name = hash_bytes_extended((const unsigned char *) consumer, strlen(consumer),
										   queue->persistent != NULL ? queue->persistent->key : queue->key);

	if (was_told(name) || aq_grants_exist(queue, consumer))
		return;
	told[ntold++] = name;
	ereport(NOTICE,
			(errmsg("consumer \"%s\" of queue \"%s\" is not a subscriber and has no messages", aq_error_clip(consumer), queue->name),
			 aq_error_hint("Check the spelling, also upper and lower case: aq.subscribers lists the consumers. "
						   "A subscriber is added with aq.subscribe; a recipient is known while it has messages.",
						   "Check the spelling: sys.all_queue_subscribers lists the subscribers. "
						   "A subscriber is added with dbms_aqadm.add_subscriber; a recipient is known while it has messages.")));
}
