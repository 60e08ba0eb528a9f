/*
 * trace_list.h
 *	  What a session trace records: X(id, name, what it is).
 *
 * No guard: it is included more than once.
 */
X(LOCK, "lock", "an object of the object cache is to stay defined")
X(PIN, "pin", "an object of the object cache is to stay in memory")
X(LATCH, "latch", "a latch")
X(MUTEX, "mutex", "a mutex")
X(WAIT, "wait", "a named wait")
X(PUBLISH, "publish", "messages have become ready at commit")
X(WAKEUP, "wake-up", "a waiting session was woken")
