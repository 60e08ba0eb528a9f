/*-------------------------------------------------------------------------
 *
 * link_area.c
 *	  Shared memory of links: the databases with their link workers, the links
 *	  as aq.links shows them, and the calls of aq.check_link().
 *
 * Everything is protected by one latch, except the bits by which a link worker
 * is told what to do: posting neither raises nor takes the latch.  A post sets
 * the bits, then the process latch of the link worker; if there is none, it posts
 * the worker of the database, which starts one.  A link worker that ends clears
 * proc, then posts that worker, which looks again: no post is lost.
 *
 * Only the worker of the database registers link workers.  A link worker makes
 * itself known before it connects, and then asks whether a command wants the
 * database without it; the command does both in the other order.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "link/link_private.h"

#include <signal.h>

#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "storage/proc.h"
#include "utils/guc.h"
#include "utils/timestamp.h"

/* how long a registered worker may take to start */
#define START_PATIENCE ((int64) 10000000)

/* pause before another worker after one has failed: first and longest */
#define FIRST_BACKOFF ((int64) 1000000)
#define LONGEST_BACKOFF ((int64) 64000000)

/* pause before the next try when no worker slot is free */
#define SLOT_PAUSE ((int64) 1000000)

AqLinkArea *aq_link_area;
int			aq_link_area_limit = 64;
static int	ndatabases;
static AqLinkDatabase *my_database;

void
aq_link_area_define(void)
{
	DefineCustomIntVariable("pgaq.max_links",
							"Number of links of the server that aq.links can show.",
							"A link is a foreign server of the wrapper pgaq_link together with a role. More links work, but are not shown.",
							&aq_link_area_limit,
							64, 1, 10000,
							PGC_POSTMASTER, 0,
							NULL, NULL, NULL);
}

static AqLinkArea *
carve(void *place, Size *size)
{
	AqLinkArea *area = aq_part_carve(place, size, sizeof(AqLinkArea));
	AqLinkDatabase *databases;
	AqLinkState *states;

	ndatabases = aq_jobs_max_databases;
	databases = aq_part_carve(place, size, mul_size(ndatabases, sizeof(AqLinkDatabase)));
	states = aq_part_carve(place, size, mul_size(aq_link_area_limit, sizeof(AqLinkState)));
	if (area != NULL && area->databases == NULL)
	{
		area->databases = databases;
		area->states = states;
	}
	return area;
}

Size
aq_link_area_size(void)
{
	Size		size = 0;

	(void) carve(NULL, &size);
	return size;
}

void
aq_link_area_init(void *place, bool found)
{
	Size		size = 0;

	if (!found)
		memset(place, 0, aq_link_area_size());
	aq_link_area = carve(place, &size);
	if (found)
		return;
	aq_latch_init(&aq_link_area->latch, AQ_LATCH_LINKS, 0);
	for (int i = 0; i < ndatabases; i++)
	{
		pg_atomic_init_u32(&aq_link_area->databases[i].work, 0);
		pg_atomic_init_u32(&aq_link_area->databases[i].changes, 0);
	}
}

void
aq_link_area_get(AqLatchMode mode)
{
	aq_latch_get(&aq_link_area->latch, mode, AQ_LOC_LINK);
}

void
aq_link_area_free(void)
{
	aq_latch_free(&aq_link_area->latch);
}

/* --- databases ---------------------------------------------------------------------- */

/* The caller holds the latch. */
static AqLinkDatabase *
find_database(Oid oid)
{
	for (int i = 0; i < ndatabases; i++)
		if (aq_link_area->databases[i].oid == oid)
			return &aq_link_area->databases[i];
	return NULL;
}

/* The entry of this session's database.  May raise an error. */
AqLinkDatabase *
aq_link_area_own(void)
{
	AqLinkDatabase *db;

	aq_session_attach();
	if (my_database != NULL && my_database->oid == MyDatabaseId)
		return my_database;
	aq_link_area_get(AQ_EXCLUSIVE);
	db = find_database(MyDatabaseId);
	if (db == NULL && (db = find_database(InvalidOid)) != NULL)
	{
		db->oid = MyDatabaseId;
		db->pid = 0;
		db->asked_at = db->wanted_since = db->backoff_until = 0;
		db->failures = 0;
		db->proc = NULL;
		pg_atomic_write_u32(&db->work, 0);
		pg_atomic_fetch_add_u32(&db->changes, 1);
	}
	aq_link_area_free();
	if (db == NULL)
		ereport(ERROR,
				aq_error_limit("too many databases use links", "pgaq.max_databases"));
	my_database = db;
	return db;
}

/* The entry of a database; NULL: it has none.  The caller holds the latch. */
AqLinkDatabase *
aq_link_area_known(Oid database)
{
	return OidIsValid(database) ? find_database(database) : NULL;
}

/*
 * Tells the link worker what to do.  Never raises an error.  If there is no
 * worker, the session has called aq_jobs_ensure_worker() before.
 */
void
aq_link_area_post(AqLinkDatabase *db, uint32 bits)
{
	uint32		before = pg_atomic_fetch_or_u32(&db->work, bits);
	PGPROC	   *proc;

	if ((before & bits) == bits && bits == AQ_LINK_WAKE)
		return;
	/* the worker clears proc, then posts: see worker_exit */
	proc = db->proc;
	if (proc != NULL)
		SetLatch(&proc->procLatch);
	else
		aq_jobs_post();
}

/*
 * For a link worker that starts: returns its database's entry, or NULL if it is
 * no longer needed.
 */
AqLinkDatabase *
aq_link_area_claim(Oid database)
{
	AqLinkDatabase *db;

	aq_link_area_get(AQ_EXCLUSIVE);
	db = find_database(database);
	if (db != NULL && (db->pid != 0 || db->asked_at == 0))
		db = NULL;
	if (db != NULL)
	{
		db->pid = MyProcPid;
		db->asked_at = 0;
		db->wanted_since = 0;
	}
	aq_link_area_free();
	my_database = db;
	return db;
}

/*
 * The worker of an entry has ended.  Calls of aq.check_link() that it was running
 * are asked again of the next one.  worked: it had got an answer, so this is not
 * yet a series of failures.
 */
void
aq_link_area_ended(AqLinkDatabase *db, bool failed, bool worked)
{
	db->proc = NULL;
	aq_link_area_get(AQ_EXCLUSIVE);
	if (db->pid == MyProcPid)
	{
		db->pid = 0;
		db->failures = !failed ? 0 : worked ? 1 : db->failures + 1;
		db->backoff_until = failed ? aq_clock_us() + Min(FIRST_BACKOFF << Min(db->failures - 1, 10), LONGEST_BACKOFF) : 0;
		for (int i = 0; i < AQ_LINK_CHECKS; i++)
		{
			AqLinkCheck *check = &aq_link_area->checks[i];

			if (check->database != db->oid)
				continue;
			if (check->state == AQ_CHECK_RUNNING)
				check->state = AQ_CHECK_ASKED;
			else if (check->state == AQ_CHECK_ABANDONED)
				check->state = AQ_CHECK_FREE;
		}
	}
	aq_link_area_free();
}

static bool
register_worker(Oid database)
{
	BackgroundWorker worker;

	aq_process_init(&worker, "aq_link_worker_main", "pgaq link");
	snprintf(worker.bgw_name, BGW_MAXLEN, "pgaq link of database %u", database);
	worker.bgw_main_arg = ObjectIdGetDatum(database);
	worker.bgw_notify_pid = MyProcPid;
	return RegisterDynamicBackgroundWorker(&worker, NULL);
}

/*
 * For the database's worker: starts the link worker unless it runs or comes.
 * Returns when to call it again; 0: when the link worker posts.
 */
TimestampTz
aq_link_area_start_worker(AqLinkDatabase *db)
{
	int64		now = aq_clock_us();
	int64		again = 0;
	bool		start = false;

	aq_link_area_get(AQ_EXCLUSIVE);
	if (db->pid != 0)
		again = 0;
	else if (db->asked_at != 0 && now - db->asked_at < START_PATIENCE)
		again = db->asked_at + START_PATIENCE;
	else if (now < db->backoff_until)
		again = db->backoff_until;
	else
	{
		db->asked_at = now;
		again = now + START_PATIENCE;
		start = true;
	}
	aq_link_area_free();
	if (start && !register_worker(db->oid))
	{
		aq_link_area_get(AQ_EXCLUSIVE);
		db->asked_at = 0;
		if (db->wanted_since == 0)
			db->wanted_since = now;
		aq_link_area_free();
		aq_room_ask();
		again = now + SLOT_PAUSE;
	}
	else if (start)
		aq_room_got();
	return again == 0 ? 0 : GetCurrentTimestamp() + (again - now);
}

/*
 * A command wants the database without processes, or the extension was dropped:
 * the link worker ends, and one that is starting is no longer needed.
 */
void
aq_link_area_stop(Oid database)
{
	AqLinkDatabase *db;

	aq_session_attach();
	aq_link_area_get(AQ_EXCLUSIVE);
	db = aq_link_area_known(database);
	if (db != NULL)
	{
		db->asked_at = 0;
		if (db->pid != 0)
			kill(db->pid, SIGTERM);
	}
	aq_link_area_free();
}

/* The database, or its extension, is gone. */
void
aq_link_area_forget(Oid database)
{
	AqLinkDatabase *db;

	aq_session_attach();
	aq_link_area_get(AQ_EXCLUSIVE);
	db = aq_link_area_known(database);
	if (db != NULL && db->pid == 0)
		db->oid = InvalidOid;
	for (int i = 0; i < aq_link_area_limit; i++)
		if (aq_link_area->states[i].database == database && !aq_link_area->states[i].used)
			aq_link_area->states[i].database = InvalidOid;
	aq_link_area_free();
}

/* --- links ---------------------------------------------------------------------------- */

/*
 * For the link worker: the entry of a link, with its figures from before, if it
 * had any; NULL: there is no room.
 */
AqLinkState *
aq_link_area_take_state(Oid server, Oid role)
{
	AqLinkState *found = NULL;
	AqLinkState *known = NULL;
	int			own = 0;

	aq_link_area_get(AQ_EXCLUSIVE);
	for (int i = 0; i < aq_link_area_limit; i++)
	{
		AqLinkState *state = &aq_link_area->states[i];

		if (state->used && state->role == role)
			own++;
		if (state->database == MyDatabaseId && state->server == server && state->role == role)
			known = state;
		/* a free entry is better than one of an unused link */
		if (!state->used && (found == NULL || (OidIsValid(found->database) && !OidIsValid(state->database))))
			found = state;
	}
	if (known != NULL)
		found = known;
	/* a quarter is for the links of other roles */
	if (own > aq_link_area_limit * 3 / 4 && (known == NULL || !known->used))
		found = NULL;
	if (found != NULL && (found->database != MyDatabaseId || found->server != server || found->role != role))
	{
		memset(found, 0, sizeof(*found));
		found->database = MyDatabaseId;
		found->server = server;
		found->role = role;
	}
	if (found != NULL)
		found->used = true;
	aq_link_area_free();
	return found;
}

void
aq_link_area_release_state(AqLinkState *state)
{
	aq_link_area_get(AQ_EXCLUSIVE);
	state->used = false;
	state->connections = 0;
	state->condition = AQ_LINK_IDLE;
	state->next_attempt = 0;
	aq_link_area_free();
}

/* --- checks ---------------------------------------------------------------------------- */

bool
aq_link_area_has_checks(Oid database)
{
	bool		has = false;

	aq_link_area_get(AQ_SHARED);
	for (int i = 0; i < AQ_LINK_CHECKS; i++)
		has |= aq_link_area->checks[i].state == AQ_CHECK_ASKED && aq_link_area->checks[i].database == database;
	aq_link_area_free();
	return has;
}

/* The session no longer waits for the check.  Also a release of a claim. */
void
aq_link_area_release_check(AqLinkCheck *check)
{
	aq_link_area_get(AQ_EXCLUSIVE);
	check->state = check->state == AQ_CHECK_RUNNING ? AQ_CHECK_ABANDONED : AQ_CHECK_FREE;
	aq_link_area_free();
}
