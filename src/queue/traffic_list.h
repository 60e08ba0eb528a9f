/*-------------------------------------------------------------------------
 *
 * traffic_list.h
 *	  What is counted of each queue beside its messages, since it came into
 *	  use: the columns of aq._queue_traffic, in this order.
 *
 *	  X(id, is it a time)
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
X(SINCE, true)					/* when it came into use */
X(LAST_ENQUEUE, true)			/* committed */
X(LAST_DEQUEUE, true)			/* committed */
X(LAST_FAILURE, true)			/* expired, or over its retries */
X(LAST_READY, true)				/* a delay or rest has ended */
X(ENQUEUE_TRANSACTIONS, false)
X(DEQUEUE_TRANSACTIONS, false)
X(BROWSED, false)
X(FAILED, false)				/* for a consumer */
X(MADE_READY, false)			/* for a consumer */
X(ENQUEUE_ELAPSED, false)		/* nanoseconds, as the next three */
X(ENQUEUE_CPU, false)
X(DEQUEUE_ELAPSED, false)
X(DEQUEUE_CPU, false)
