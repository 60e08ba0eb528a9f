/*
 * share_list.h
 *	  The resources of which a role has a share, see share.c.
 *	  X(id, name, parameter, whose they are, what is too much, how to use less)
 *
 * The C enum, the view aq.role_usage and the errors come from this list.  No
 * guard: it is included more than once.
 */
X(QUEUES, "queues", "pgaq.max_queues", "queues", "too many queues", "Use fewer of them at the same time")
X(STREAMS, "streams", "pgaq.max_streams", "queues", "too many streams", "Use fewer shards and priorities")
X(PARTITIONS, "partitions", "pgaq.max_partitions", "queues", "too many partitions", "Dequeue or purge messages")
X(MESSAGE_CACHE, "message_cache", "pgaq.message_cache_size", "queues", "too much of the message cache", "Lock messages of fewer partitions at the same time")
X(DEQUEUES, "dequeues", "max_connections", "transactions", "too many entries for dequeues from queue tables", "Let transactions dequeue from fewer queues, consumers and nested savepoints")
