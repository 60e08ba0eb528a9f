/*-------------------------------------------------------------------------
 *
 * hot.c
 *	  Copies of hot objects: additional handles, each with its own hash and
 *	  mutex, which share the master's value.
 *
 * A session locks and pins the copy selected by its number instead of the
 * master, so that fewer sessions contend for a mutex.  Each copy pins the
 * master.  A session that changes a definition locks and invalidates the
 * master and all copies.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "cache/cache_private.h"

#include <unistd.h>

#define COPIES_MAX 255

int			aq_hot_copies = 0;

uint32
aq_hot_copies_wanted(void)
{
	static long processors = 0;
	long		n = aq_hot_copies;

	if (processors == 0)
		processors = sysconf(_SC_NPROCESSORS_ONLN);
	if (n == 0)
		n = processors;
	return (uint32) Max(2, Min(n, COPIES_MAX));
}

/* Returns false if no handle is left for the copy. */
static bool
make_copy(AqObject *master, uint32 number)
{
	AqObject   *copy = aq_handle_take(true);
	AqBucket   *bucket;

	if (copy == NULL)
		return false;
	aq_mutex_get(&master->mutex, AQ_EXCLUSIVE, AQ_LOC_OBJECT_HOT);
	if (master->pins++ == 0)
		aq_handle_now_used(master);
	aq_mutex_free(&master->mutex);

	bucket = aq_handle_bucket(aq_handle_hash(master->database, master->id, number));
	aq_mutex_get(&bucket->mutex, AQ_EXCLUSIVE, AQ_LOC_OBJECT_HOT);
	aq_handle_enter(bucket, copy, master->database, master->id, number);
	copy->master = master->index;
	copy->state = AQ_OBJECT_VALID;
	aq_mutex_free(&bucket->mutex);
	return true;
}

/*
 * Sets the master's number of copies; returns false if the master was dropped
 * meanwhile.
 */
static bool
announce(AqObject *master, uint32 copies)
{
	bool		valid;

	aq_mutex_get(&master->mutex, AQ_EXCLUSIVE, AQ_LOC_OBJECT_HOT);
	valid = master->state == AQ_OBJECT_VALID;
	master->copies = valid ? copies : 0;
	aq_mutex_free(&master->mutex);
	return valid;
}

void
aq_hot_mark(AqObject *object)
{
	AqObject   *master = &aq_handle_objects[object->master];
	uint32		copies = 0;
	uint32		wanted = aq_hot_copies_wanted();

	aq_mutex_get(&aq_handle_area->hot_mutex, AQ_EXCLUSIVE, AQ_LOC_OBJECT_HOT);
	if (master->copies == 0)
	{
		while (copies < wanted && make_copy(master, copies + 1))
			copies++;
		if (!announce(master, copies))
			aq_object_drop_copies(master->database, master->id, copies);
	}
	else
		copies = master->copies;
	aq_mutex_free(&aq_handle_area->hot_mutex);
	if (copies == 0)
		ereport(ERROR,
				aq_error(AQ_ERR_LIMIT_REACHED, "there are too many hot objects"),
				errhint("All objects together have at most %d copies: lower pgaq.hot_object_copies, "
						"or unmark another object.", AQ_COPY_HANDLES));
}

void
aq_hot_unmark(AqObject *object)
{
	AqObject   *master = &aq_handle_objects[object->master];
	uint32		copies;

	aq_mutex_get(&aq_handle_area->hot_mutex, AQ_EXCLUSIVE, AQ_LOC_OBJECT_HOT);
	copies = master->copies;
	(void) announce(master, 0);
	aq_object_drop_copies(master->database, master->id, copies);
	aq_mutex_free(&aq_handle_area->hot_mutex);
}
