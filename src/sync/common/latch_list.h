/*
 * latch_list.h
 *	  Every latch of pgaq:
 *	  X(id, name, level, wait event, has children, what it protects).
 *
 * A session that may wait for a latch must hold only latches of lower levels.
 * The C enum, the levels, v$latchname and the table in the documentation come
 * from this list.  No guard: it is included more than once.
 */
X(ROW_CACHE, "row cache objects", 1, LATCH_ROW_CACHE, true, "a dictionary cache, with pgaq.row_cache_serialization = latch")
X(QUEUE, "queue entry", 3, LATCH_FREE, true, "one queue in shared memory: its shards and its counters")
X(LINES, "queue table lines", 4, LATCH_LINES, true, "the parts of a queue in a queue table that have nothing to dequeue")
X(STREAM, "shard stream", 4, LATCH_STREAM, true, "the messages of one shard")
X(DOUBT, "transactions in doubt", 5, LATCH_FREE, false, "the list of prepared transactions that have used queues")
X(CLASSIC, "queue table transactions", 5, LATCH_FREE, false, "retries and prepared transactions of queue tables")
X(WAITERS, "queue waiters", 6, LATCH_FREE, true, "the sessions that wait for messages")
X(CHANNEL, "channel operations parent latch", 6, LATCH_FREE, true, "a broadcast channel: the sessions of a database that listen on it")
X(PARTITIONS, "partition descriptors", 7, LATCH_FREE, false, "the free descriptors of partitions")
X(CHUNKS, "message cache", 8, LATCH_FREE, false, "the free chunks of the message cache")
X(DATABASES, "database directory", 9, LATCH_FREE, false, "the list of databases that have queues")
X(TRACES, "session traces", 10, LATCH_FREE, false, "the list of traced sessions")
X(HELPERS, "immediate helpers", 10, LATCH_FREE, false, "the list of background workers for immediate visibility, and of the sessions that wait for one")
X(NOTIFIERS, "notifiers", 10, LATCH_FREE, false, "the list of background workers that call registered procedures")
X(LINKS, "links", 10, LATCH_FREE, false, "the links to other servers, and the calls of aq.check_link")
X(PROPAGATION, "propagation", 10, LATCH_FREE, false, "the list of background workers that propagate messages")
X(NODES, "nodes", 10, LATCH_FREE, false, "the state of other nodes, for aq.nodes")
X(LAB, "lab", 11, LATCH_FREE, true, "nothing: for experiments of pgaq_lab")
X(STATISTICS, "wait statistics", 12, LATCH_FREE, false, "the totals of sessions that have ended")
