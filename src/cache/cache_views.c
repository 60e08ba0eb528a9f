/*-------------------------------------------------------------------------
 *
 * cache_views.c
 *	  The functions under the views of the object cache.
 *
 * Handles are read without their mutexes, so that reading them neither
 * disturbs sessions nor is counted: each number is exact, but numbers are not
 * read at the same moment. sql/pgaq/views/cache.sql adds names and Oracle's
 * columns.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "cache/cache_private.h"

#include "common/hashfn.h"
#include "utils/timestamp.h"

static const char *const mode_names[] = {"NONE", "NULL", "SHARE", "EXCLUSIVE"};
static const char *const state_names[] = {"FREE", "NEW", "LOADING", "VALID", "AGING", "DROPPED"};

/*
 * A hash of 128 bits of the object's identity; its bucket comes from one of 32
 * bits.
 */
void
aq_cache_views_full_hash(const AqObject *object, char *buffer)
{
	uint32		key[3] = {object->database, object->id, object->copy};

	for (int half = 0; half < 2; half++)
		snprintf(buffer + 16 * half, AQ_FULL_HASH - 16 * half, "%016llx",
				 (unsigned long long) hash_bytes_extended((unsigned char *) key, sizeof(key), half + 1));
}

static int
count_holders(uint32 index, AqHold kind)
{
	int			n = 0;

	for (int session = 0; session < aq_session_slots(); session++)
		n += aq_handle_holds(index, kind, session);
	return n;
}

static AqObjectMode
lock_mode(const AqObject *object, int nulls)
{
	if (object->lock_holder >= 0)
		return AQ_OBJECT_EXCLUSIVE;
	if (object->locks > 0)
		return AQ_OBJECT_SHARE;
	return nulls > 0 ? AQ_OBJECT_NULL : AQ_OBJECT_NONE;
}

static AqObjectMode
pin_mode(const AqObject *object)
{
	if (object->pin_holder >= 0)
		return AQ_OBJECT_EXCLUSIVE;
	return object->pins > 0 ? AQ_OBJECT_SHARE : AQ_OBJECT_NONE;
}

/* Oracle's name for its property: HOT, HOTCOPY1, ... or nothing. */
static char *
property(const AqObject *object)
{
	if (object->copy != 0)
		return psprintf("HOTCOPY%u", object->copy);
	return object->copies > 0 ? "HOT" : NULL;
}

/* Addresses have Oracle's form. */
static void
put_address(AqRow *row, const void *pointer)
{
	aq_rows_raw(row, (uint64) (uintptr_t) pointer);
}

AQ_ROWS(aq_cache_views_objects)
{
	for (uint32 i = 1; i <= aq_handle_count(); i++)
	{
		AqObject	object = aq_handle_objects[i];
		char		full_hash[AQ_FULL_HASH];
		int			null_locks;
		uint64		gets,
					sleeps;

		if (object.state == AQ_OBJECT_FREE)
			continue;
		null_locks = count_holders(i, AQ_HOLD_NULL);
		aq_cache_views_full_hash(&object, full_hash);
		aq_mutex_counters(&object.mutex, &gets, &sleeps);
		put_address(row, &aq_handle_objects[i]);
		aq_rows_put(row, ObjectIdGetDatum(object.database));
		aq_rows_int(row, object.id);
		aq_rows_number(row, (int64) (sizeof(AqObject) + (object.copy == 0 ? aq_handle_value_size : 0)));
		aq_rows_number(row, (int64) object.loads);
		aq_rows_int(row, null_locks);
		aq_rows_int(row, count_holders(i, AQ_HOLD_PIN));
		aq_rows_int(row, object.hash & (aq_handle_area->nbuckets - 1));
		aq_rows_number(row, (int64) object.invalidations);
		aq_rows_number(row, (int64) object.hash);
		aq_rows_text(row, mode_names[lock_mode(&object, null_locks)]);
		aq_rows_text(row, mode_names[pin_mode(&object)]);
		aq_rows_text(row, state_names[object.state]);
		aq_rows_put_if(row, object.loaded_at != 0, TimestampTzGetDatum(object.loaded_at));
		aq_rows_put_if(row, object.loaded_before != 0, TimestampTzGetDatum(object.loaded_before));
		aq_rows_number(row, (int64) object.locked_total);
		aq_rows_number(row, (int64) object.pinned_total);
		aq_rows_text(row, property(&object));
		aq_rows_text(row, full_hash);
		aq_rows_number(row, (int64) (gets - object.mutex_gets));
		aq_rows_number(row, (int64) (sleeps - object.mutex_sleeps));
		aq_rows_end(row);
	}
}

static void
put_hold(AqRow *row, uint32 index, bool pin, int session, AqObjectMode held, AqObjectMode requested)
{
	AqObject   *object = &aq_handle_objects[index];

	aq_rows_text(row, pin ? "PIN" : "LOCK");
	put_address(row, pin ? (void *) &object->pin_holder : (void *) &object->lock_holder);
	aq_rows_session(row, session);
	put_address(row, object);
	aq_rows_int(row, held);
	aq_rows_int(row, requested);
	aq_rows_int(row, aq_session_pid(session));
	aq_rows_end(row);
}

/* Puts one row for the session's lock of an object, and one for its pin. */
static void
put_holds(AqRow *row, uint32 index, int session)
{
	AqObject   *object = &aq_handle_objects[index];
	const AqObjectRequest *request = aq_handle_request(session);
	bool		asks = request->object == index;
	AqObjectMode lock = AQ_OBJECT_NONE;
	AqObjectMode pin = AQ_OBJECT_NONE;

	if (aq_handle_holds(index, AQ_HOLD_LOCK, session))
		lock = object->lock_holder == session ? AQ_OBJECT_EXCLUSIVE : AQ_OBJECT_SHARE;
	else if (aq_handle_holds(index, AQ_HOLD_NULL, session))
		lock = AQ_OBJECT_NULL;
	if (object->pin_holder == session)
		pin = AQ_OBJECT_EXCLUSIVE;
	else if (aq_handle_holds(index, AQ_HOLD_PIN, session))
		pin = AQ_OBJECT_SHARE;
	if (lock != AQ_OBJECT_NONE || (asks && !request->pin))
		put_hold(row, index, false, session, lock, asks && !request->pin ? request->mode : AQ_OBJECT_NONE);
	if (pin != AQ_OBJECT_NONE || (asks && request->pin))
		put_hold(row, index, true, session, pin, asks && request->pin ? request->mode : AQ_OBJECT_NONE);
}

AQ_ROWS(aq_cache_views_locks)
{
	for (uint32 i = 1; i <= aq_handle_count(); i++)
	{
		if (aq_handle_objects[i].state == AQ_OBJECT_FREE)
			continue;
		for (int session = 0; session < aq_session_slots(); session++)
			put_holds(row, i, session);
	}
}

/* Totals of all objects since server start. */
AQ_ROWS(aq_cache_views_library)
{
	uint64		gets = 0,
				hits = 0,
				reloads = 0,
				pins,
				loads,
				invalidations,
				aged_out;

	for (uint32 i = 0; i < aq_handle_area->nbuckets; i++)
	{
		gets += aq_handle_area->buckets[i].gets;
		hits += aq_handle_area->buckets[i].hits;
		reloads += aq_handle_area->buckets[i].reloads;
	}

	/*
	 * a handle that is freed adds its numbers to the totals under this mutex
	 */
	aq_mutex_get(&aq_handle_area->free_mutex, AQ_EXCLUSIVE, AQ_LOC_VIEW);
	pins = aq_handle_area->pinned_total;
	loads = aq_handle_area->loads;
	invalidations = aq_handle_area->invalidations;
	aged_out = aq_handle_area->aged_out;
	for (uint32 i = 1; i <= aq_handle_count(); i++)
	{
		pins += aq_handle_objects[i].pinned_total;
		loads += aq_handle_objects[i].loads;
		invalidations += aq_handle_objects[i].invalidations;
	}
	aq_mutex_free(&aq_handle_area->free_mutex);

	aq_rows_number(row, (int64) gets);
	aq_rows_number(row, (int64) hits);
	aq_rows_number(row, (int64) pins);
	aq_rows_number(row, (int64) (pins - loads));
	aq_rows_number(row, (int64) reloads);
	aq_rows_number(row, (int64) invalidations);
	aq_rows_number(row, (int64) aged_out);
	aq_rows_end(row);
}

AQ_ROWS(aq_cache_views_rows)
{
	for (int i = 0; i < AQ_ROW_CACHES; i++)
	{
		AqRowCounts counts;

		aq_row_count((AqRowCacheId) i, &counts);
		aq_rows_int(row, counts.number);
		aq_rows_text(row, counts.name);
		aq_rows_int(row, counts.usage);
		aq_rows_int(row, counts.clones);
		aq_rows_number(row, (int64) counts.gets);
		aq_rows_number(row, (int64) counts.misses);
		aq_rows_number(row, (int64) counts.modifications);
		aq_rows_number(row, (int64) counts.flushes);
		aq_rows_number(row, (int64) counts.sleeps);
		aq_rows_int(row, i + 1);
		aq_rows_end(row);
	}
}
