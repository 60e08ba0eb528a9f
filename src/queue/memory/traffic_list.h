/*-------------------------------------------------------------------------
 *
 * traffic_list.h
 *	  What is counted of each queue, since it came into use, beside its
 *	  messages: the columns of aq_internal.queue_traffic, in this order.
 *
 * What is counted of each consumer as well comes first, and is in aq_internal.consumers:
 * the first one belongs to who enqueues, the next eight, a line of the
 * processor's cache, to who dequeues.
 *
 *	  X(id, is it a time, of each consumer as well)
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
X(LAST_ENQUEUE, true, true)		/* committed */
X(LAST_DEQUEUE, true, true)		/* committed */
X(CONSUMED, false, true)		/* dequeued and committed, neither purged nor failed */
X(LATENCY, false, true)			/* microseconds from their enqueues to these commits, in all */
X(LAST_LATENCY, false, true)	/* of the latest, microseconds */
X(DEQUEUE_TRANSACTIONS, false, true)
X(EXECUTIONS, false, true)		/* executions of dequeue */
X(DEQUEUE_ELAPSED, false, true) /* nanoseconds, as all that is called elapsed or CPU */
X(DEQUEUE_CPU, false, true)
X(BROWSED, false, true)
X(FAILED, false, true)			/* expired, or over its retries, for a consumer */
X(RULE_FAILURES, false, true)	/* errors that a subscriber's rule has raised, one for each message */
X(LAST_RULE_FAILURE, true, true)
X(RULE_ERROR, false, true)		/* the SQLSTATE of the latest, as a number */
X(SINCE, true, false)			/* when it came into use */
X(LAST_FAILURE, true, false)
X(LAST_READY, true, false)		/* a delay or rest has ended */
X(MADE_READY, false, false)		/* for a consumer */
X(ENQUEUE_TRANSACTIONS, false, false)
X(ENQUEUED_EXPIRY, false, false)	/* messages with an expiration, committed */
X(ENQUEUED_DELAY, false, false)
X(ENQUEUE_ELAPSED, false, false)
X(ENQUEUE_CPU, false, false)
X(RULES_ELAPSED, false, false)	/* of subscribers, at enqueues */
X(TRANSFORMATIONS_ELAPSED, false, false)
