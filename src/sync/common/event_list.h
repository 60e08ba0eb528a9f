/*
 * event_list.h
 *	  Every wait event: X(id, name, class, P1, P2, P3, what is waited for).
 *
 * If Oracle has the same wait event, its name, class and parameters are used.
 * No guard: it is included more than once.
 */
X(LATCH_FREE, "latch free", OTHER, "address", "number", "why", "a latch without an event of its own")
X(LATCH_STREAM, "latch: shard stream", CONCURRENCY, "address", "number", "why", "the latch of a shard")
X(LATCH_LINES, "latch: queue table lines", CONCURRENCY, "address", "number", "why", "the latch of what is known of the rows of a queue in a queue table")
X(LIBCACHE_MUTEX_X, "library cache: mutex X", CONCURRENCY, "idn", "value", "where", "an object's mutex, exclusively")
X(LIBCACHE_MUTEX_S, "library cache: mutex S", CONCURRENCY, "idn", "value", "where", "an object's mutex, shared")
X(LIBCACHE_BUCKET_MUTEX, "library cache: bucket mutex X", CONCURRENCY, "idn", "value", "where", "the mutex of a hash bucket of the object cache")
X(LIBCACHE_LOCK, "library cache lock", CONCURRENCY, "handle address", "lock address", "100*mode+namespace", "the end of a change of an object's definition")
X(LIBCACHE_PIN, "library cache pin", CONCURRENCY, "handle address", "pin address", "100*mode+namespace", "an object to be loaded or unpinned")
X(LATCH_ROW_CACHE, "latch: row cache objects", CONCURRENCY, "address", "number", "why", "the latch of a dictionary cache, with pgaq.row_cache_serialization = latch")
X(ROW_CACHE_MUTEX, "row cache mutex", CONCURRENCY, "cache id", "where requested", "", "a hash bucket or a row of a dictionary cache")
X(DEQUEUE_WAIT, "Streams AQ: waiting for messages in the queue", IDLE, "queue id", "process#", "wait time", "a message for the consumer")
X(FLOW_CONTROL, "Streams AQ: enqueue blocked due to flow control", QUEUEING, "queue id", "messages", "limit", "consumers to dequeue some of their buffered messages")
X(LISTEN_WAIT, "wait for unread message on broadcast channel", IDLE, "channel context", "channel handle", "", "a message in any of several queues")
X(PARTITION_LOAD, "aq: partition load", USER_IO, "queue id", "shard", "partition", "another session to load a partition into the message cache")
X(PARTITION_PROVIDE, "aq: waiting for a partition", CONFIGURATION, "queue id", "shard", "", "a worker to provide an empty partition")
X(WORKER_MISSING, "aq: waiting for the worker", CONFIGURATION, "queue id", "", "tables", "the background worker of the database to start, see aq.workers")
X(CACHE_FULL, "aq: message cache full", CONFIGURATION, "chunks wanted", "", "", "other transactions to unlock messages, so that a partition can be evicted")
X(OBJECT_CACHE_FULL, "aq: object cache full", CONFIGURATION, "", "", "", "a queue to become unused, so that it can be evicted")
X(RETRY_COUNT, "aq: retry count write", OTHER, "queue id", "process#", "", "the worker (P2) to write the retry count of a rolled back message")
X(JOB_IDLE, "aq: worker idle", IDLE, "job", "", "", "work to do")
X(LAUNCHER_IDLE, "aq: launcher idle", IDLE, "databases to ask", "", "", "a worker to end")
X(SAMPLER_IDLE, "aq: sampler idle", IDLE, "interval", "", "", "the time of the next sample")
X(HELPER_WANTED, "aq: free helper", CONFIGURATION, "helpers", "sessions", "", "a background worker for a call with immediate visibility, for which P2 sessions wait")
X(HELPER_CALL, "aq: helper call", OTHER, "process#", "", "", "the background worker, which is P1, that executes a call with immediate visibility")
X(HELPER_IDLE, "aq: helper idle", IDLE, "", "", "", "a call with immediate visibility")
X(QUEUE_DDL, "aq: queue definition", CONCURRENCY, "queue id", "mode", "", "another session to finish its change of the queue")
X(STOP_QUEUE, "aq: queue in use", CONCURRENCY, "queue id", "transactions", "", "the end of transactions that have enqueued or dequeued, before the queue is stopped")
X(CHECK_AGAIN, "aq: check", OTHER, "differences", "", "", "the pause between two readings of aq.check()")
X(LAB_MUTEX_X, "aq: lab mutex X", CONCURRENCY, "idn", "value", "where", "a mutex of the lab, exclusively")
X(LAB_MUTEX_S, "aq: lab mutex S", CONCURRENCY, "idn", "value", "where", "a mutex of the lab, shared")
X(LAB_IDLE, "aq: lab idle", IDLE, "number", "", "", "an experiment to begin")
X(TEST_POINT, "aq: test point", OTHER, "", "", "", "a test to release the session")
