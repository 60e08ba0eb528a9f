/*
 * class_list.h
 *	  Classes of waits: X(id, name, Oracle's number, Oracle's identifier).
 *
 * Waits of class Idle do not count as time spent in the database.  No guard:
 * it is included more than once.
 */
X(OTHER, "Other", 0, 1893977003)
X(APPLICATION, "Application", 1, 4217450380)
X(CONFIGURATION, "Configuration", 2, 3290255840)
X(CONCURRENCY, "Concurrency", 4, 3875070507)
X(COMMIT, "Commit", 5, 3386400367)
X(IDLE, "Idle", 6, 2723168908)
X(NETWORK, "Network", 7, 2000153315)
X(USER_IO, "User I/O", 8, 1740759767)
X(SYSTEM_IO, "System I/O", 9, 4108307767)
X(QUEUEING, "Queueing", 12, 644977587)
