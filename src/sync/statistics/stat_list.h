/*
 * stat_list.h
 *	  Every statistic: X(id, name, Oracle's class, what is counted).
 *
 * A statistic only grows.  Classes are Oracle's bits; several can be combined:
 * 1 user, 4 enqueue, 8 cache, 128 debug.  The number of a statistic is its
 * place in this list.  No guard: it is included more than once.
 */
X(ENQUEUE_CALLS, "queue enqueue calls", 1, "calls that enqueued")
X(ENQUEUE_MESSAGES, "queue messages stored", 1, "messages that these calls stored, whether committed or not")
X(ENQUEUE_BYTES, "queue payload bytes in", 1, "bytes of their payloads, not compressed")
X(ENQUEUE_COMMITTED, "queue messages enqueued", 1, "messages whose enqueue was committed, including those moved to an exception queue")
X(DEQUEUE_CALLS, "queue dequeue calls", 1, "calls that dequeued or browsed, whether they found a message or not; one that waits counts once")
X(DEQUEUE_MESSAGES, "queue messages returned", 1, "messages that these calls found, whether committed or not")
X(DEQUEUE_BYTES, "queue payload bytes out", 1, "bytes of their payloads, not compressed")
X(DEQUEUE_COMMITTED, "queue messages dequeued", 1, "messages whose dequeue was committed; a message counts once for each consumer that gets it")
X(LISTEN_CALLS, "queue listen calls", 1, "calls that waited for messages without taking them: aq.wait, aq.listen, dbms_aq.listen")
X(COMMITS, "queue commits", 1, "committed transactions that had enqueued or dequeued")
X(ROLLBACKS, "queue rollbacks", 1, "rolled back transactions that had enqueued or dequeued")
X(PREPARES, "queue prepares", 1, "transactions that had enqueued or dequeued and were prepared")
X(IMMEDIATE, "queue immediate transactions", 1, "calls with immediate visibility, each a separate transaction")
X(WAKEUPS_SENT, "queue wake-ups sent", 4, "sessions woken because of a message; a session that waits for several queues can be woken by each")
X(WAKEUPS_USEFUL, "queue wake-ups useful", 4, "wake-ups after which the session found a message")
X(WAKEUPS_FALSE, "queue wake-ups false", 4, "wake-ups after which the session found no message for it, and continued to wait")
X(WAKEUPS_LEFT, "queue wake-ups passed on", 4, "wake-ups of a session that no longer waits: cancelled, timed out, or it has a message already")
X(CACHE_HITS, "message cache hits", 8, "times a dequeue found messages in a partition that was in memory")
X(CACHE_MISSES, "message cache misses", 8, "times a dequeue had to load a partition, or wait for another session to load it")
X(PARTITION_LOADS, "message cache partitions loaded", 8, "partitions read into the message cache")
X(PARTITION_EVICTIONS, "message cache partitions evicted", 8, "partitions evicted from the message cache")
X(EVICTION_LOOKS, "message cache partitions checked", 8, "partitions checked for eviction, whether they were evicted or not")
X(PARTITION_REUSES, "queue partitions reused", 8, "consumed partitions that were truncated and can be used again")
X(RETRIES, "queue messages rolled back", 1, "dequeued messages that a rollback returned, with a retry counted")
X(EXPIRATIONS, "queue messages expired", 1, "messages that expired, once for each consumer that had not taken them")
X(EXCEPTIONS, "queue messages moved to exception queue", 1, "failed or expired messages that were moved")
X(LEASES, "queue leases taken", 1, "messages dequeued with a lease, when that was committed")
X(LEASES_ACKNOWLEDGED, "queue leases acknowledged", 1, "leased messages that aq.acknowledge finished, when that was committed; likewise the next three")
X(LEASES_EXTENDED, "queue leases extended", 1, "messages whose lease aq.extend extended")
X(LEASES_RELEASED, "queue leases released", 1, "leased messages that aq.release gave back")
X(LEASES_FAILED, "queue leases failed", 1, "leased messages that failed: by aq.reject, or when they were given back, or their lease ended, after too many attempts or their expiration")
X(LEASES_ENDED, "queue leases ended", 1, "leases whose time was over: their messages were ready again, or failed")
X(LEASES_STALE, "queue leases stale", 1, "messages for which aq.acknowledge, aq.extend, aq.release or aq.reject had a stale receipt")
