/*-------------------------------------------------------------------------
 *
 * cache_check.c
 *	  For aq.check(): do all locks, pins, loads and waits of the object cache
 *	  belong to sessions that exist?
 *
 * A session that loads, frees, locks or waits is in a transaction; a session
 * that only has a pin may not be.  Each handle is read under its mutex, but
 * the sessions' own data are not; so the caller checks differences a second
 * time.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "cache/cache_private.h"

/* Locks and pins of a handle, according to the sessions' bits. */
typedef struct Held
{
	uint32		pins;
	uint32		locks;
	uint32		dead;			/* pins of sessions that have ended */
	uint32		lock_requests;	/* for the exclusive lock */
	bool		in_transaction; /* another holder is in a transaction, and may have more than one pin */
} Held;

static void
count_held(uint32 index, Held *held)
{
	memset(held, 0, sizeof(Held));
	for (int session = 0; session < aq_session_slots(); session++)
	{
		const AqObjectRequest *request = aq_handle_request(session);

		if (aq_handle_holds(index, AQ_HOLD_PIN, session))
		{
			held->pins += session == aq_session_own_number ? aq_object_own_pins(index) : 1;
			if (aq_session_pid(session) == 0)
				held->dead++;
			held->in_transaction |= session != aq_session_own_number && aq_session_in_transaction(session);
		}
		held->locks += aq_handle_holds(index, AQ_HOLD_LOCK, session);
		if (request->object == index && !request->pin && request->mode == AQ_OBJECT_EXCLUSIVE)
			held->lock_requests++;
	}
}

/* The object's copies, each of which has it pinned. */
static uint32
count_copies(uint32 index)
{
	uint32		n = 0;

	for (uint32 i = aq_handle_limit + 1; i <= aq_handle_count(); i++)
		if (aq_handle_objects[i].state != AQ_OBJECT_FREE && aq_handle_objects[i].master == index && aq_handle_objects[i].copy > 0)
			n++;
	return n;
}

static void
check_pins(AqFindings *findings, const char *place, const AqObject *object, const Held *held)
{
	uint32		expected = held->pins + count_copies(object->index);

	if (held->dead > 0)
		aq_finding_add(findings, place, "pins of sessions that have ended", held->dead, 0, NULL);
	if (object->pins < expected || (object->pins > expected && !held->in_transaction))
		aq_finding_add(findings, place, "pins", object->pins, expected, NULL);
	if (object->state == AQ_OBJECT_DROPPED && object->pins == 0 && object->pin_holder < 0)
		aq_finding_add(findings, place, "dropped, and never freed", AQ_NO_NUMBER, AQ_NO_NUMBER, NULL);
}

static void
check_locks(AqFindings *findings, const char *place, const AqObject *object, const Held *held)
{
	if (object->lock_holder >= 0 && !aq_session_in_transaction(object->lock_holder))
		aq_finding_add(findings, place, "locked by a session without a transaction", object->lock_holder + 1, AQ_NO_NUMBER, NULL);
	aq_finding_compare(findings, place, "locks", object->locks + (object->lock_holder >= 0 ? 1 : 0), held->locks);
	aq_finding_compare(findings, place, "sessions that wait for the exclusive lock", object->lock_waiters, held->lock_requests);
}

static void
check_load(AqFindings *findings, const char *place, const AqObject *object)
{
	if ((object->state == AQ_OBJECT_LOADING || object->state == AQ_OBJECT_AGING) &&
		(object->pin_holder < 0 || !aq_session_in_transaction(object->pin_holder)))
		aq_finding_add(findings, place, object->state == AQ_OBJECT_LOADING ? "loaded by no session" : "freed by no session",
					   object->pin_holder + 1, AQ_NO_NUMBER, NULL);
}

void
aq_cache_check(AqFindings *findings)
{
	uint32		pinned = 0;
	uint32		waiting = pg_atomic_read_u32(&aq_handle_area->waiting);

	for (uint32 i = 1; i <= aq_handle_count(); i++)
	{
		AqObject   *object = &aq_handle_objects[i];
		AqObject	copy;
		Held		held;
		const char *place;

		CHECK_FOR_INTERRUPTS();
		if (object->state == AQ_OBJECT_FREE && object->pins == 0)
			continue;
		aq_mutex_get(&object->mutex, AQ_SHARED, AQ_LOC_VIEW);
		memcpy(&copy, object, sizeof(AqObject));
		aq_mutex_free(&object->mutex);
		count_held(i, &held);
		if (i <= aq_handle_limit && copy.pins > 0)
			pinned++;
		place = psprintf("object %u: queue %d of database %u, copy %u", i, (int32) copy.id, copy.database, copy.copy);
		check_load(findings, place, &copy);
		check_locks(findings, place, &copy, &held);
		check_pins(findings, place, &copy, &held);
	}
	aq_finding_compare(findings, "object cache", "objects that are pinned", pg_atomic_read_u32(&aq_handle_area->npinned), pinned);
	for (int session = 0; session < aq_session_slots(); session++)
	{
		if (aq_handle_request(session)->object != 0 && !aq_session_in_transaction(session))
			aq_finding_add(findings, psprintf("session %d", session + 1), "waits for an object without a transaction",
						   aq_handle_request(session)->object, AQ_NO_NUMBER, NULL);
	}
	aq_finding_waiting(findings, "object cache", "sessions that wait for a handle", waiting, &aq_handle_area->waiting);
}
