/*
 * time_list.h
 *	  The kinds of operation to which the time of a session is attributed: X(id, name, what it is).
 *
 * Each makes two lines of the time model: "<name> elapsed time" and
 * "<name> cpu time".  No guard: it is included more than once.
 */
X(ENQUEUE, "queue enqueue", "functions that enqueue")
X(DEQUEUE, "queue dequeue", "functions that dequeue or browse")
X(LISTEN, "queue listen", "functions that wait for messages without taking them")
X(ADMIN, "queue administration", "functions that create, change and drop queues and subscribers")
X(COMMIT, "queue commit", "ends of transactions that enqueued or dequeued: dequeue log, WAL flush, making messages ready")
X(JOB, "queue background job", "jobs of the background workers")
