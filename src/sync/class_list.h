/*
 * class_list.h
 *	  Classes of waits: X(id, name, Oracle's number, Oracle's identifier).
 *
 * Waits of class Idle are no part of the time spent in the database.
 * No guard: it is included more than once.
 */
X(OTHER, "Other", 0, 1893977003)
X(CONFIGURATION, "Configuration", 2, 3290255840)
X(CONCURRENCY, "Concurrency", 4, 3875070507)
X(IDLE, "Idle", 6, 2723168908)
X(USER_IO, "User I/O", 8, 1740759767)
