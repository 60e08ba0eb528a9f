/*
 * server_stat_list.h
 *	  Statistics of all sessions, whether they use queues or not: X(id, name, Oracle's class, what is counted).
 *
 * Names and classes are Oracle's: 1 user, 2 redo, 8 cache, 64 SQL.  The number
 * of a statistic is AQ_SERVER_STAT_FIRST plus its place in this list.  No
 * guard: it is included more than once.
 */
X(USER_COMMITS, "user commits", 1, "commits of clients' sessions")
X(USER_ROLLBACKS, "user rollbacks", 1, "rollbacks of clients' sessions")
X(BACKGROUND, "background transactions", 1, "commits and rollbacks of background processes, of which one executes calls with immediate visibility")
X(USER_CALLS, "user calls", 1, "statements that clients executed, transaction commands included, and further parts of results that they fetched")
X(EXECUTIONS, "execute count", 64, "executions of statements, by clients and inside functions")
X(LOGICAL_READS, "session logical reads", 1, "blocks read by sessions, in a buffer or not")
X(PHYSICAL_READS, "physical reads", 8, "of these: not in a buffer of the server")
X(READ_REQUESTS, "physical read IO requests", 1, "requests for these blocks: one for each; not counted from PostgreSQL 17 on, where a request can be for several")
X(REDO_SIZE, "redo size", 2, "bytes of WAL written by sessions and by background processes that have transactions")
X(REDO_ENTRIES, "redo entries", 2, "records of this WAL")
