/*-------------------------------------------------------------------------
 *
 * temporary_owner.c
 *	  The sessions that own temporary queues and subscribers: which of them live.
 *
 * A row of aq_internal.temporary names its session by the identity that is never
 * reused in the database.  The session enters this identity in shared memory
 * before it writes the row, and removes it when it exits, however it exits.  After
 * a crash, on a promoted standby and in a restored database no session has it.  So
 * an identity that no session has is that of a session that is gone.
 *
 * Each entry is written by its session only.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/memory/memory_private.h"

#include "miscadmin.h"

typedef struct Entry
{
	pg_atomic_uint64 identity;	/* 0: none.  Written after the database, cleared before it changes */
	pg_atomic_uint32 database;
} Entry;

typedef struct Owners
{
	pg_atomic_uint64 ended;		/* sessions with an entry that have ended */
	Entry		entries[FLEXIBLE_ARRAY_MEMBER]; /* by session number */
} Owners;

static Owners *owners;

Size
aq_temporary_owner_size(void)
{
	return CACHELINEALIGN(add_size(offsetof(Owners, entries), mul_size(aq_session_slots(), sizeof(Entry))));
}

void
aq_temporary_owner_init(void *area, bool found)
{
	owners = area;
	if (found)
		return;
	pg_atomic_init_u64(&owners->ended, 0);
	for (int i = 0; i < aq_session_slots(); i++)
	{
		pg_atomic_init_u64(&owners->entries[i].identity, 0);
		pg_atomic_init_u32(&owners->entries[i].database, InvalidOid);
	}
}

/* This session is about to own something; returns its identity. */
int64
aq_temporary_owner_enter(void)
{
	Entry	   *own;
	int64		identity = aq_schema_own_identity();

	aq_session_attach();
	/* which the end of the session is to reach */
	aq_jobs_ensure_worker();
	own = &owners->entries[aq_session_number()];
	pg_atomic_write_u32(&own->database, MyDatabaseId);
	pg_write_barrier();
	pg_atomic_write_u64(&own->identity, (uint64) identity);
	pg_memory_barrier();
	return identity;
}

/* Has a session of this database the identity? */
bool
aq_temporary_owner_lives(int64 identity)
{
	for (int i = 0; i < aq_session_slots(); i++)
	{
		Entry	   *entry = &owners->entries[i];

		if (pg_atomic_read_u64(&entry->identity) != (uint64) identity)
			continue;
		pg_read_barrier();
		if (pg_atomic_read_u32(&entry->database) == MyDatabaseId)
			return true;
	}
	return false;
}

/* Grows whenever a session with an entry has ended. */
uint64
aq_temporary_owner_ended(void)
{
	uint64		ended = pg_atomic_read_u64(&owners->ended);

	pg_memory_barrier();
	return ended;
}

/* The session exits, after the end of its transaction. */
void
aq_temporary_owner_session_exit(void)
{
	Entry	   *own = &owners->entries[aq_session_number()];

	if (pg_atomic_read_u64(&own->identity) == 0)
		return;
	pg_atomic_write_u64(&own->identity, 0);
	/* a full barrier: the worker that sees the number finds the identity gone */
	pg_atomic_fetch_add_u64(&owners->ended, 1);
	aq_jobs_post();
}
