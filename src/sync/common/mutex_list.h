/*
 * mutex_list.h
 *	  Every type of mutex: X(id, name, event when exclusive, event when shared, text).
 *
 * No guard: it is included more than once.
 */
X(OBJECT, "Library Cache", LIBCACHE_MUTEX_X, LIBCACHE_MUTEX_S, "one object of the object cache")
X(BUCKET, "Library Cache Bucket", LIBCACHE_BUCKET_MUTEX, LIBCACHE_BUCKET_MUTEX, "one hash bucket of the object cache")
X(ROW, "Row Cache", ROW_CACHE_MUTEX, ROW_CACHE_MUTEX, "a hash bucket or a row of the dictionary cache")
X(LAB, "Lab", LAB_MUTEX_X, LAB_MUTEX_S, "nothing: for experiments of pgaq_lab")
