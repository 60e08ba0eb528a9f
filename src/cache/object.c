/*-------------------------------------------------------------------------
 *
 * object.c
 *	  The object cache: lock and pin, load once, changes.  See cache.h for the
 *	  modes, README.md for their relation to heavyweight locks, handle.c for
 *	  the states of a handle.
 *
 * Order: bucket mutex, then object mutex.  No other latch or mutex is taken
 * while one of them is held.
 *
 * A session releases its pins at the end of its transaction or at its exit; if
 * it is killed, shared memory is reinitialized.  All other states that it
 * holds are claims, see base/claim.c.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "cache/cache_private.h"

#include "utils/memutils.h"
#include "utils/timestamp.h"

/*
 * how long a session for which others wait may wait for the load of an object,
 * in microseconds
 */
#define LOAD_PATIENCE ((int64) 200000)

/* This session's pins and locks of a handle. */
typedef struct Mine
{
	uint32		pins;			/* share */
	bool		locked;
} Mine;

/* Result of an attempt to pin. */
typedef enum Met
{
	MET_NOTHING,
	MET_PINNED,
	MET_NEW,					/* ours to load */
	MET_BUSY					/* another session loads or frees it */
} Met;

/* indexed by handle; in TopMemoryContext */
static Mine *mine;

/* objects that this session has pinned */
static int	npinned;

/* the exclusive locks of this transaction; in TopMemoryContext */
static AqObject **locked;
static int	nlocked,
			locked_size;

/*
 * --- holders
 * -----------------------------------------------------------------
 */

/* The object's mutex is held. */
static inline void
set_hold(AqObject *object, AqHold kind)
{
	aq_handle_hold_words(object->index, kind)[aq_session_own_number / 32] |= (uint32) 1 << (aq_session_own_number % 32);
}

static inline void
clear_hold(AqObject *object, AqHold kind)
{
	aq_handle_hold_words(object->index, kind)[aq_session_own_number / 32] &= ~((uint32) 1 << (aq_session_own_number % 32));
}

/* the object's identity in traces */
static AqTraceObjectId
traced(const AqObject *object)
{
	AqTraceObjectId id = {.handle = object->index, .database = object->database, .id = object->id};

	return id;
}

static Mine *
mine_of(const AqObject *object)
{
	Assert(mine != NULL);
	return &mine[object->index];
}

static void
prepare_mine(void)
{
	aq_session_attach();
	if (mine == NULL)
		mine = MemoryContextAllocZero(TopMemoryContext, (aq_handle_count() + 1) * sizeof(Mine));
}

/* --- waiting -------------------------------------------------------------------------------- */

static inline bool
is_busy(const AqObject *object)
{
	return object->state == AQ_OBJECT_LOADING || object->state == AQ_OBJECT_AGING;
}

/* Release of a claim: views no longer show the wait. */
static void
end_request(void *request, int64 unused)
{
	((AqObjectRequest *) request)->object = 0;
}

/*
 * Sleeps until another session's use of the object may have changed, or until
 * the timeout in microseconds (-1: none).
 */
static void
sleep_for(AqObject *object, bool pin, AqObjectMode mode, int64 timeout)
{
	AqObjectRequest *request = aq_handle_request(aq_session_own_number);

	aq_claim_reserve(1);
	request->pin = pin;
	request->mode = mode;
	request->object = object->index;
	aq_claim_enter(end_request, request, 0);
	(void) aq_cond_sleep(&object->changed, pin ? AQ_EVENT_LIBCACHE_PIN : AQ_EVENT_LIBCACHE_LOCK,
						 (uint64) (uintptr_t) object,
						 (uint64) (uintptr_t) (pin ? &object->pin_holder : &object->lock_holder),
						 100 * mode + AQ_NAMESPACE_QUEUE, timeout);
	request->object = 0;
	aq_claim_end(end_request, request);
}

/*
 * Waits while another session loads or frees the object.  That session may in
 * turn wait for a user's transaction.
 */
static void
wait_while_busy(AqObject *object, uint32 serial)
{
	int64		start = aq_clock_us();

	aq_cond_prepare(&object->changed);
	while (object->serial == serial && is_busy(object))
	{
		if (aq_chunks_impatient && aq_clock_us() - start >= LOAD_PATIENCE)
			ereport(ERROR,
					(errcode(ERRCODE_LOCK_NOT_AVAILABLE), errmsg("another session is loading the queue")));
		sleep_for(object, true, AQ_OBJECT_SHARE, aq_chunks_impatient ? LOAD_PATIENCE : -1);
	}
	aq_cond_cancel();
}

/* --- pins -------------------------------------------------------------------------------------- */

/* The object's mutex is held. */
static void
add_pin(AqObject *object)
{
	if (object->pins++ == 0)
		aq_handle_now_used(object);
	object->pinned_total++;
	set_hold(object, AQ_HOLD_PIN);
	if (mine_of(object)->pins++ == 0)
		npinned++;
}

static void fail_load(void *object, int64 unused);

/*
 * The caller holds the object's mutex and, if the object may be new, has
 * reserved room for a claim.
 */
static Met
pin_or_begin_load(AqObject *object)
{
	if (object->state == AQ_OBJECT_NEW)
	{
		object->state = AQ_OBJECT_LOADING;
		object->pin_holder = aq_session_own_number;
		set_hold(object, AQ_HOLD_NULL);
		aq_claim_enter(fail_load, object, 0);
		return MET_NEW;
	}
	if (object->state != AQ_OBJECT_VALID)
		return MET_BUSY;
	add_pin(object);
	set_hold(object, AQ_HOLD_NULL);
	return MET_PINNED;
}

/* Finds the object and pins it; if it does not exist, enters *fresh for it. */
static Met
find_and_pin(Oid database, uint32 id, uint32 copy, AqObject **fresh, AqObject **result, uint32 *serial)
{
	AqBucket   *bucket = aq_handle_bucket(aq_handle_hash(database, id, copy));
	AqObject   *object;
	Met			met = MET_NOTHING;

	aq_mutex_get(&bucket->mutex, AQ_EXCLUSIVE, AQ_LOC_BUCKET_FIND);
	bucket->gets++;
	object = aq_handle_in_bucket(bucket, database, id, copy);
	if (object != NULL)
		bucket->hits++;
	else if (fresh != NULL && *fresh != NULL)
	{
		object = *fresh;
		*fresh = NULL;
		aq_handle_enter(bucket, object, database, id, copy);
	}
	if (object != NULL)
	{
		aq_mutex_get(&object->mutex, AQ_EXCLUSIVE, AQ_LOC_OBJECT_PIN);
		met = pin_or_begin_load(object);
		*serial = object->serial;
		aq_mutex_free(&object->mutex);
	}
	aq_mutex_free(&bucket->mutex);
	*result = object;
	return met;
}

static void unpin(AqObject *object);

/*
 * Pins the session's copy of a hot object instead of the master, which is
 * pinned.
 */
static AqObject *
copy_instead(AqObject *master)
{
	uint32		copies = master->copies;
	AqObject   *copy;
	uint32		serial;

	if (copies == 0 ||
		find_and_pin(master->database, master->id, aq_session_own_number % copies + 1,
					 NULL, &copy, &serial) != MET_PINNED)
		return master;
	unpin(master);
	return copy;
}

/* modest: return NULL instead of using one of the last free handles */
static AqObject *
pin_or_make(Oid database, uint32 id, bool modest, bool *must_load)
{
	AqObject   *object;
	AqObject   *fresh = NULL;
	uint32		serial;
	int64		asked;

	prepare_mine();
	asked = aq_trace_asked();
	*must_load = false;
	aq_claim_reserve(1);
	for (;;)
	{
		Met			met = find_and_pin(database, id, 0, &fresh, &object, &serial);

		if (met == MET_NOTHING)
		{
			if (modest && aq_handle_is_scarce())
				return NULL;
			/* nothing between this and the next search can raise an error */
			fresh = aq_handle_new(npinned);
			continue;
		}
		if (fresh != NULL)
			aq_handle_give(fresh);
		fresh = NULL;
		if (met == MET_BUSY)
		{
			wait_while_busy(object, serial);
			continue;
		}
		*must_load = met == MET_NEW;
		if (met == MET_PINNED)
			object = copy_instead(object);
		aq_trace_object_got(AQ_TRACE_LOCK, traced(object), AQ_TRACE_NULL, AQ_LOC_OBJECT_LOCK, asked);
		aq_trace_object_got(AQ_TRACE_PIN, traced(object), *must_load ? AQ_EXCLUSIVE : AQ_SHARED,
							AQ_LOC_OBJECT_PIN, asked);
		return object;
	}
}

AqObject *
aq_object_pin(Oid database, uint32 id, bool *must_load)
{
	return pin_or_make(database, id, false, must_load);
}

AqObject *
aq_object_pin_modestly(Oid database, uint32 id, bool *must_load)
{
	return pin_or_make(database, id, true, must_load);
}

/*
 * Ends a load.  On success, the session's exclusive pin becomes a share pin.
 * Otherwise the object is removed from the hash, its value is freed, and the
 * session keeps neither pin nor lock.
 */
static void
end_load(AqObject *object, bool success)
{
	AqBucket   *bucket = aq_handle_bucket(object->hash);
	TimestampTz now = GetCurrentTimestamp();

	aq_mutex_get(&bucket->mutex, AQ_EXCLUSIVE, AQ_LOC_OBJECT_LOAD);
	aq_mutex_get(&object->mutex, AQ_EXCLUSIVE, AQ_LOC_OBJECT_LOAD);
	object->pin_holder = -1;
	if (success)
	{
		add_pin(object);
		object->loads++;
		object->loaded_before = object->loaded_at;
		object->loaded_at = now;
	}
	else
		clear_hold(object, AQ_HOLD_NULL);
	if (object->state == AQ_OBJECT_LOADING)
	{
		object->state = success ? AQ_OBJECT_VALID : AQ_OBJECT_DROPPED;
		if (!success)
			aq_handle_leave(bucket, object);
	}
	if (success)
		aq_claim_end(fail_load, object);
	aq_mutex_free(&object->mutex);
	aq_mutex_free(&bucket->mutex);
	aq_cond_broadcast(&object->changed);
	if (success)
		return;
	aq_trace_object_free(AQ_TRACE_PIN, traced(object));
	aq_trace_object_free(AQ_TRACE_LOCK, traced(object));
	aq_handle_free(object);
}

/* Release of a claim: the session's load of the object has failed. */
static void
fail_load(void *object, int64 unused)
{
	end_load(object, false);
}

void
aq_object_loaded(AqObject *object)
{
	end_load(object, true);
}

/* Between the end of the claim and the end of the load, the session must not end. */
void
aq_object_not_loaded(AqObject *object)
{
	HOLD_INTERRUPTS();
	aq_claim_end(fail_load, object);
	end_load(object, false);
	RESUME_INTERRUPTS();
}

static void
unpin(AqObject *object)
{
	bool		last;
	bool		unused;

	aq_mutex_get(&object->mutex, AQ_EXCLUSIVE, AQ_LOC_OBJECT_UNPIN);
	Assert(object->pins > 0 && mine_of(object)->pins > 0);
	if (--mine_of(object)->pins == 0)
	{
		npinned--;
		clear_hold(object, AQ_HOLD_PIN);
	}
	unused = --object->pins == 0;
	if (unused)
	{
		object->used = aq_clock_us();
		aq_handle_now_unused(object);
	}
	last = unused && object->state == AQ_OBJECT_DROPPED && object->pin_holder < 0;
	aq_mutex_free(&object->mutex);
	if (last)
		aq_handle_free(object);
	if (unused)
		aq_handle_tell_unused();
}

/* The number of this session's pins. */
uint32
aq_object_own_pins(uint32 index)
{
	return mine != NULL ? mine[index].pins : 0;
}

bool
aq_object_pin_handle(AqObject *object)
{
	bool		valid;
	int64		asked;

	prepare_mine();
	asked = aq_trace_asked();
	aq_mutex_get(&object->mutex, AQ_EXCLUSIVE, AQ_LOC_OBJECT_PIN);
	valid = object->state == AQ_OBJECT_VALID;
	if (valid)
		(void) pin_or_begin_load(object);
	aq_mutex_free(&object->mutex);
	if (valid)
		aq_trace_object_got(AQ_TRACE_PIN, traced(object), AQ_SHARED, AQ_LOC_OBJECT_PIN, asked);
	return valid;
}

void
aq_object_unpin(AqObject *object)
{
	aq_trace_object_free(AQ_TRACE_PIN, traced(object));
	unpin(object);
}

void
aq_object_forget(AqObject *object, uint32 serial)
{
	aq_trace_object_free(AQ_TRACE_LOCK, traced(object));
	aq_mutex_get(&object->mutex, AQ_EXCLUSIVE, AQ_LOC_OBJECT_UNLOCK);
	if (object->serial == serial)
		clear_hold(object, AQ_HOLD_NULL);
	aq_mutex_free(&object->mutex);
}

/* --- locks --------------------------------------------------------------------------------------- */

/* Does another session hold the exclusive lock, or wait for it? */
static inline bool
is_locked_by_others(const AqObject *object)
{
	return object->lock_holder != aq_session_own_number &&
		(object->lock_holder >= 0 || object->lock_waiters > 0);
}

/*
 * Is it still the object that the session knows, and the handle to use for it?
 */
static inline bool
is_known(const AqObject *object, uint32 serial)
{
	return object->serial == serial && object->state == AQ_OBJECT_VALID && object->copies == 0;
}

/*
 * Takes the share lock; returns false if the handle no longer has this object.
 */
static bool
lock_share(AqObject *object, uint32 serial)
{
	for (;;)
	{
		bool		known;
		bool		free;

		aq_mutex_get(&object->mutex, AQ_EXCLUSIVE, AQ_LOC_OBJECT_LOCK);
		known = is_known(object, serial);
		free = !is_locked_by_others(object);
		if (known && free)
		{
			object->locks++;
			object->locked_total++;
			set_hold(object, AQ_HOLD_LOCK);
		}
		aq_mutex_free(&object->mutex);
		if (!known || free)
			return known;

		aq_cond_prepare(&object->changed);
		while (is_known(object, serial) && is_locked_by_others(object))
			sleep_for(object, false, AQ_OBJECT_SHARE, -1);
		aq_cond_cancel();
	}
}

/*
 * A drop does not wait for share locks, so the handle may now have another
 * object.
 */
static void
unlock_share(AqObject *object, uint32 serial)
{
	bool		wanted = false;

	aq_mutex_get(&object->mutex, AQ_EXCLUSIVE, AQ_LOC_OBJECT_UNLOCK);
	clear_hold(object, AQ_HOLD_LOCK);
	if (object->serial == serial)
		wanted = --object->locks == 0 && object->lock_waiters > 0;
	aq_mutex_free(&object->mutex);
	if (wanted)
		aq_cond_broadcast(&object->changed);
}

bool
aq_object_check(AqObject *object, uint32 serial)
{
	bool		known;
	int64		asked = aq_trace_asked();

	if (!lock_share(object, serial))
		return false;
	aq_trace_object_got(AQ_TRACE_LOCK, traced(object), AQ_SHARED, AQ_LOC_OBJECT_LOCK, asked);
	asked = aq_trace_asked();
	aq_mutex_get(&object->mutex, AQ_EXCLUSIVE, AQ_LOC_OBJECT_PIN);
	known = is_known(object, serial);
	if (known)
		(void) pin_or_begin_load(object);
	aq_mutex_free(&object->mutex);
	if (known)
		aq_trace_object_got(AQ_TRACE_PIN, traced(object), AQ_SHARED, AQ_LOC_OBJECT_PIN, asked);
	aq_trace_object_free(AQ_TRACE_LOCK, traced(object));
	aq_point_held("object-locked");
	unlock_share(object, serial);
	return known;
}

/*
 * Release of a claim: the session is counted as a waiter for the exclusive
 * lock.
 */
static void
stop_waiting(void *ptr, int64 unused)
{
	AqObject   *object = ptr;

	aq_mutex_get(&object->mutex, AQ_EXCLUSIVE, AQ_LOC_OBJECT_LOCK);
	object->lock_waiters--;
	aq_mutex_free(&object->mutex);
	aq_cond_broadcast(&object->changed);
}

/* Tries once. counted: this session is counted as a waiter. */
static bool
try_lock_exclusive(AqObject *object, bool counted)
{
	bool		got;

	aq_claim_reserve(1);
	aq_mutex_get(&object->mutex, AQ_EXCLUSIVE, AQ_LOC_OBJECT_LOCK);
	got = object->locks == 0 && object->lock_holder < 0;
	if (got)
	{
		object->lock_holder = aq_session_own_number;
		object->locked_total++;
		set_hold(object, AQ_HOLD_LOCK);
	}
	if (got && counted)
	{
		object->lock_waiters--;
		aq_claim_end(stop_waiting, object);
	}
	if (!got && !counted)
	{
		object->lock_waiters++;
		aq_claim_enter(stop_waiting, object, 0);
	}
	aq_mutex_free(&object->mutex);
	return got;
}

/* The caller has pinned the object. */
static void
lock_exclusive(AqObject *object)
{
	bool		counted = false;

	aq_cond_prepare(&object->changed);
	while (!try_lock_exclusive(object, counted))
	{
		counted = true;
		sleep_for(object, false, AQ_OBJECT_EXCLUSIVE, -1);
	}
	aq_cond_cancel();
}

/* Release of a claim: the object is pinned, but not locked yet. */
static void
unpin_unlocked(void *object, int64 unused)
{
	unpin(object);
}

/*
 * Pins the object if it is in the cache; the pin is a claim until the object
 * is locked.
 */
static AqObject *
pin_for_lock(Oid database, uint32 id, uint32 copy)
{
	for (;;)
	{
		AqObject   *object;
		uint32		serial;
		Met			met;

		aq_claim_reserve(1);
		met = find_and_pin(database, id, copy, NULL, &object, &serial);
		if (met == MET_PINNED)
		{
			aq_claim_enter(unpin_unlocked, object, 0);
			return object;
		}
		if (met == MET_NOTHING)
			return NULL;
		Assert(met == MET_BUSY);	/* MET_NEW is possible only if we pass a new handle */
		wait_while_busy(object, serial);
	}
}

static void
lock_one(AqObject *object)
{
	int64		asked = aq_trace_asked();

	if (mine_of(object)->locked)
	{
		aq_claim_end(unpin_unlocked, object);
		unpin(object);
		return;
	}
	if (nlocked == locked_size)
	{
		int			size = Max(8, 2 * locked_size);

		locked = locked ? repalloc(locked, size * sizeof(AqObject *))
			: MemoryContextAlloc(TopMemoryContext, size * sizeof(AqObject *));
		locked_size = size;
	}
	lock_exclusive(object);
	aq_claim_end(unpin_unlocked, object);	/* from here on, aq_object_unlock_all() unpins it */
	aq_trace_object_got(AQ_TRACE_LOCK, traced(object), AQ_EXCLUSIVE, AQ_LOC_OBJECT_LOCK, asked);
	mine_of(object)->locked = true;
	locked[nlocked++] = object;
}

void
aq_object_lock(Oid database, uint32 id)
{
	AqObject   *master;
	uint32		copies;

	prepare_mine();
	master = pin_for_lock(database, id, 0);
	if (master == NULL)
		return;
	copies = master->copies;
	lock_one(master);
	for (uint32 copy = 1; copy <= copies; copy++)
	{
		AqObject   *object = pin_for_lock(database, id, copy);

		if (object != NULL)
			lock_one(object);
	}
}

void
aq_object_unlock_all(void)
{
	while (nlocked > 0)
	{
		AqObject   *object = locked[--nlocked];

		mine_of(object)->locked = false;
		aq_trace_object_free(AQ_TRACE_LOCK, traced(object));
		aq_mutex_get(&object->mutex, AQ_EXCLUSIVE, AQ_LOC_OBJECT_UNLOCK);
		object->lock_holder = -1;
		clear_hold(object, AQ_HOLD_LOCK);
		aq_mutex_free(&object->mutex);
		aq_cond_broadcast(&object->changed);
		unpin(object);
	}
}

void
aq_object_session_exit(void)
{
	aq_object_unlock_all();
}

/* --- changes --------------------------------------------------------------------------------------- */

static void
invalidate_one(Oid database, uint32 id, uint32 copy)
{
	AqBucket   *bucket = aq_handle_bucket(aq_handle_hash(database, id, copy));
	AqObject   *object;

	aq_mutex_get(&bucket->mutex, AQ_EXCLUSIVE, AQ_LOC_OBJECT_INVALIDATE);
	object = aq_handle_in_bucket(bucket, database, id, copy);
	if (object != NULL)
	{
		aq_mutex_get(&object->mutex, AQ_EXCLUSIVE, AQ_LOC_OBJECT_INVALIDATE);
		object->version++;
		object->invalidations++;
		aq_mutex_free(&object->mutex);
	}
	aq_mutex_free(&bucket->mutex);
}

void
aq_object_invalidate(Oid database, uint32 id)
{
	AqObject   *master = aq_object_find(database, id);
	uint32		copies = master != NULL ? master->copies : 0;

	for (uint32 copy = 0; copy <= copies; copy++)
		invalidate_one(database, id, copy);
}

/*
 * Removes one handle from the hash; its last unpin frees it.  Returns its
 * number of copies.
 */
static uint32
drop_one(Oid database, uint32 id, uint32 copy)
{
	AqBucket   *bucket = aq_handle_bucket(aq_handle_hash(database, id, copy));
	AqObject   *object;
	uint32		copies = 0;
	bool		last = false;

	aq_mutex_get(&bucket->mutex, AQ_EXCLUSIVE, AQ_LOC_BUCKET_FIND);
	object = aq_handle_in_bucket(bucket, database, id, copy);
	if (object != NULL)
	{
		aq_mutex_get(&object->mutex, AQ_EXCLUSIVE, AQ_LOC_OBJECT_LOCK);
		aq_handle_leave(bucket, object);
		object->state = AQ_OBJECT_DROPPED;
		object->version++;
		object->invalidations++;
		copies = object->copies;
		last = object->pins == 0 && object->pin_holder < 0;
		aq_mutex_free(&object->mutex);
	}
	aq_mutex_free(&bucket->mutex);
	if (object != NULL)
	{
		pg_atomic_fetch_add_u32(&aq_handle_area->drops, 1);
		aq_cond_broadcast(&object->changed);
	}
	if (last)
		aq_handle_free(object);
	return copies;
}

void
aq_object_drop(Oid database, uint32 id)
{
	/* the copies pin the master, so it exists until the last copy is freed */
	aq_object_drop_copies(database, id, drop_one(database, id, 0));
}

void
aq_object_drop_copies(Oid database, uint32 id, uint32 copies)
{
	for (uint32 copy = 1; copy <= copies; copy++)
		(void) drop_one(database, id, copy);
}

AqObject *
aq_object_find(Oid database, uint32 id)
{
	AqBucket   *bucket = aq_handle_bucket(aq_handle_hash(database, id, 0));
	AqObject   *object;
	bool		valid = false;

	aq_mutex_get(&bucket->mutex, AQ_SHARED, AQ_LOC_BUCKET_FIND);
	object = aq_handle_in_bucket(bucket, database, id, 0);
	if (object != NULL)
	{
		aq_mutex_get(&object->mutex, AQ_SHARED, AQ_LOC_OBJECT_FIND);
		valid = object->state == AQ_OBJECT_VALID;
		aq_mutex_free(&object->mutex);
	}
	aq_mutex_free(&bucket->mutex);
	return valid ? object : NULL;
}
