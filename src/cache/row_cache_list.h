/*
 * row_cache_list.h
 *	  Every dictionary cache: X(id, name, Oracle's number, what its rows are).
 *
 * No guard: it is included more than once.
 */
X(OBJECTS, "dc_objects", 8, "names of queues: which queue it is, or that there is none")
X(USERS, "dc_users", 10, "owner and rights of a queue")
X(PROPS, "dc_props", 15, "properties of the database")
