/*-------------------------------------------------------------------------
 *
 * non_persistent.c
 *	  Non-persistent queues: what they cannot do, and where their messages go.
 *
 * The messages of a non-persistent queue are in no store.  At the enqueue they are
 * handed to part "notify", which notifies the registrations of their consumers
 * after the commit.  So nothing can be dequeued, and what serves a dequeue is
 * refused.  The queue has the sharded store, which stays empty and makes no tables:
 * all that handles queues in general needs no other case.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/catalog/catalog_private.h"

static AqNonPersistentPut put_messages;

/* --- errors ------------------------------------------------------------------------------- */

static int
hint_to_register(void)
{
	return aq_error_hint("Its messages are passed to registrations: see aq.register.",
						 "Its messages are passed to registrations: see dbms_aq.register.");
}

/* what: as in "cannot ... a non-persistent queue" */
void
aq_non_persistent_refuse(const AqQueue *queue, const char *what)
{
	if (queue->non_persistent)
		ereport(ERROR,
				aq_error(AQ_ERR_NP_OPERATION, "cannot %s queue \"%s\"", what, queue->name),
				errdetail("It is a non-persistent queue, which keeps no messages."));
}

void
aq_non_persistent_refuse_dequeue(const AqQueue *queue)
{
	if (queue->non_persistent)
		ereport(ERROR,
				aq_error(AQ_ERR_NP_DEQUEUE, "cannot dequeue from queue \"%s\"", queue->name),
				errdetail("It is a non-persistent queue, which keeps no messages."),
				hint_to_register());
}

void
aq_non_persistent_refuse_listen(const AqQueue *queue)
{
	if (queue->non_persistent)
		ereport(ERROR,
				aq_error(AQ_ERR_NP_LISTEN, "cannot wait for messages of queue \"%s\"", queue->name),
				errdetail("It is a non-persistent queue, which keeps no messages."),
				hint_to_register());
}

/* Messages are passed on in this database only. */
void
aq_non_persistent_refuse_consumer(const AqQueue *queue, const char *consumer)
{
	char	   *agent;

	if (queue->non_persistent && aq_address_of(consumer, &agent) != NULL)
		ereport(ERROR,
				aq_error(AQ_ERR_NP_REMOTE, "consumer \"%s\" of queue \"%s\" is at another queue", consumer, queue->name),
				errdetail("It is a non-persistent queue, whose messages are not propagated."),
				errhint("Leave the address out."));
}

/* --- messages ------------------------------------------------------------------------------- */

/* Of Oracle's packages: in schema aq, the messages are part of the transaction. */
void
aq_non_persistent_refuse_on_commit(const AqQueue *queue)
{
	if (queue->non_persistent)
		ereport(ERROR,
				aq_error(AQ_ERR_NP_VISIBILITY, "messages of queue \"%s\" require immediate visibility", queue->name),
				errdetail("It is a non-persistent queue."),
				errhint("Set visibility to dbms_aq.immediate()."));
}

void
aq_non_persistent_refuse_deviation(const AqQueue *queue)
{
	if (queue->non_persistent)
		ereport(ERROR,
				aq_error(AQ_ERR_NP_DEVIATION, "messages of queue \"%s\" cannot be put before others", queue->name),
				errdetail("It is a non-persistent queue, which keeps no messages."));
}

void
aq_non_persistent_check_options(const AqQueue *queue, const AqPutOptions *options)
{
	if (queue->non_persistent && options->ready_at != 0)
		ereport(ERROR,
				aq_error(AQ_ERR_NP_DELAY, "messages of queue \"%s\" cannot be delayed", queue->name),
				errdetail("It is a non-persistent queue, which keeps no messages."));
}

/* Called when parameters are defined. */
void
aq_non_persistent_on_put(AqNonPersistentPut put)
{
	put_messages = put;
}

void
aq_non_persistent_put(AqQueue *queue, const AqPutOptions *options, uint32 n, const Datum *payloads, const bool *nulls,
					  Bitmapset *const *targets, pg_uuid_t *ids)
{
	put_messages(queue, options, n, payloads, nulls, targets, ids);
}
