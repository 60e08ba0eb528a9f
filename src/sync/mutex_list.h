/*
 * mutex_list.h
 *	  Every type of mutex: X(id, name, event when exclusive, event when shared, text).
 *
 * No guard: it is included more than once.
 */
X(OBJECT, "Library Cache", LIBCACHE_MUTEX_X, LIBCACHE_MUTEX_S, "one object of the object cache")
X(BUCKET, "Library Cache Bucket", LIBCACHE_BUCKET_MUTEX, LIBCACHE_BUCKET_MUTEX, "one hash bucket of the object cache")
