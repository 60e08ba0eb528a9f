/*
 * location_list.h
 *	  Every place in the code that asks for a latch or a mutex: X(id, name).
 *
 * The number of a location is its place in this list, from 1; it is shown as
 * P3 of a wait.  No guard: it is included more than once.
 */
X(ENQUEUE_RESERVE, "enqueue: reserve")
X(ENQUEUE_PUBLISH, "enqueue: publish")
X(ENQUEUE_ABORT, "enqueue: abort")
X(DEQUEUE_TAKE, "dequeue: take")
X(DEQUEUE_COMMIT, "dequeue: commit")
X(DEQUEUE_ABORT, "dequeue: abort")
X(DEQUEUE_BROWSE, "dequeue: browse")
X(PARTITION_OPEN, "partition: open")
X(PARTITION_LOAD, "partition: load")
X(PARTITION_EVICT, "partition: evict")
X(PARTITION_RECLAIM, "partition: reclaim")
X(CHUNK_ALLOC, "message cache: allocate")
X(CHUNK_FREE, "message cache: free")
X(WAIT_REGISTER, "wait: register")
X(WAIT_POST, "wait: post")
X(WAIT_LEAVE, "wait: leave")
X(RETRY, "retry")
X(TIMER, "timer")
X(DOUBT_ADD, "in doubt: add")
X(DOUBT_SWEEP, "in doubt: sweep")
X(QUEUE_LOAD, "queue: load")
X(QUEUE_DROP, "queue: drop")
X(QUEUE_LIST, "queue: list")
X(VIEW, "view")
X(JOB_POST, "job: post")
X(OBJECT_LOCK, "object: lock")
X(OBJECT_PIN, "object: pin")
X(OBJECT_UNPIN, "object: unpin")
X(OBJECT_UNLOCK, "object: unlock")
X(OBJECT_LOAD, "object: load")
X(BUCKET_FIND, "bucket: find")
X(STATISTICS, "wait statistics")
