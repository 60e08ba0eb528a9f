/*-------------------------------------------------------------------------
 *
 * traffic_list.h
 *	  Counters of each queue since it was loaded, besides those of its
 *	  messages: the columns of aq_internal.queue_traffic, in this order.
 *
 * The counters that each consumer also has come first, and are in
 * aq_internal.consumers: enqueues write the first one, dequeues the next
 * eight, which fill a cache line.
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
X(LATENCY, false, true)			/* total microseconds from their enqueues to these commits */
X(LAST_LATENCY, false, true)		/* of the latest one, in microseconds */
X(DEQUEUE_TRANSACTIONS, false, true)
X(EXECUTIONS, false, true)		/* executions of dequeue */
X(DEQUEUE_ELAPSED, false, true)		/* nanoseconds, like all elapsed and CPU times */
X(DEQUEUE_CPU, false, true)
X(BROWSED, false, true)
X(FAILED, false, true)			/* expired or over the retry limit, for a consumer */
X(RULE_FAILURES, false, true)		/* errors raised by a subscriber's rule, one for each message */
X(LAST_RULE_FAILURE, true, true)
X(RULE_ERROR, false, true)		/* the SQLSTATE of the latest, as a number */
X(SINCE, true, false)			/* when it was loaded */
X(LAST_FAILURE, true, false)
X(LAST_READY, true, false)		/* a delay or retry delay has ended */
X(MADE_READY, false, false)		/* for a consumer */
X(ENQUEUE_TRANSACTIONS, false, false)
X(ENQUEUED_EXPIRY, false, false)		/* messages with an expiration, committed */
X(ENQUEUED_DELAY, false, false)
X(ENQUEUE_ELAPSED, false, false)
X(ENQUEUE_CPU, false, false)
X(RULES_ELAPSED, false, false)		/* rules of subscribers, at enqueues */
X(TRANSFORMATIONS_ELAPSED, false, false)
