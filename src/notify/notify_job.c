/*-------------------------------------------------------------------------
 *
 * notify_job.c
 *	  What the worker does for notification: it finds out which roles have
 *	  something to do, and wants their notifiers.
 *
 * It also wakes the programs that wait for registrations without a procedure.
 * It never runs users' code.  A look at all registrations of the database is made
 * when the worker starts, after an announcement (a new registration, a posted
 * notification, COMMIT PREPARED, a notifier that has ended), and at the time at
 * which a registration has something to do.  A watched queue that has had a wake-up
 * needs only its own registrations.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "notify/notify_private.h"

#include "executor/spi.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/* when a user has locked what the worker needs, in microseconds */
#define LOCKED_AGAIN ((int64) 1000000)

/* roles that wait for a place in the pool, or for their process to start; in TopMemoryContext */
static List *waiting;

static TimestampTz next_look;	/* 0: after an announcement */

static void
wait_for_place(Oid role)
{
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);

	waiting = list_append_unique_oid(waiting, role);
	MemoryContextSwitchTo(old);
}

/* Wants the notifier; one that cannot be started yet is wanted again at *next. */
static void
want(Oid role, TimestampTz *next)
{
	TimestampTz again = aq_notifier_pool_want(role);

	if (again != 0)
		wait_for_place(role);
	aq_clock_sooner(next, again);
}

/* Wakes the programs that wait for the registrations whose numbers the query returns.  In a transaction. */
static void
wake_clients(const char *query)
{
	uint64		bits = 0;

	if (!aq_client_exists())
		return;
	aq_sql_run(query, 0, NULL, NULL, NULL, true);
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		bool		isnull;

		bits |= aq_client_bit(DatumGetInt64(SPI_getbinval(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1, &isnull)));
	}
	SPI_finish();
	aq_client_wake(bits);
}

/* --- a watched queue ------------------------------------------------------------------------ */

static void
queue_woken(int32 id, AqQueueShm *shm)
{
	List	   *roles = NIL;
	ListCell   *lc;
	bool		locked;

	if (id < 0)
		return;					/* buffered messages are not notified */
	aq_point("clients-to-wake");
	aq_job_begin();
	locked = aq_job_lock_extension();
	if (locked)
	{
		wake_clients(psprintf("SELECT registration_id FROM aq_internal.registration WHERE queue_id = %d AND procedure_name IS NULL", id));
		roles = aq_sql_oids(psprintf("SELECT DISTINCT role::oid FROM aq_internal.registration "
									 "WHERE queue_id = %d AND status <> 'disabled' AND procedure_name IS NOT NULL", id));
	}
	foreach(lc, roles)
		want(lfirst_oid(lc), &next_look);
	aq_job_commit(false);
	if (!locked)
		aq_work_later(shm, AQ_WORK_WATCHED, LOCKED_AGAIN);
}

/* --- all registrations -------------------------------------------------------------------------- */

/* Rows that a session has locked are left for later. */
static const char *const clean[] = {
	"DELETE FROM aq_internal.registration WHERE registration_id IN (SELECT registration_id FROM aq_internal.registration "
	"WHERE expires_at <= clock_timestamp() FOR UPDATE SKIP LOCKED)",
	"UPDATE aq_internal.registration SET status = 'disabled', last_error = 'the role can no longer log in', "
	"last_error_time = clock_timestamp() WHERE registration_id IN (SELECT registration_id FROM aq_internal.registration "
	"WHERE status <> 'disabled' AND NOT EXISTS (SELECT FROM pg_roles p WHERE p.oid = role::oid AND (p.rolcanlogin OR procedure_name IS NULL)) "
	"FOR UPDATE SKIP LOCKED)",
};

static const char due[] =
	"SELECT DISTINCT role::oid FROM aq_internal.registration r WHERE status <> 'disabled' AND procedure_name IS NOT NULL "
	"AND (coalesce(next_at, group_end) <= clock_timestamp() OR EXISTS (SELECT FROM aq_internal.posting p WHERE p.registration_id = r.registration_id))";

static const char all[] =
	"SELECT DISTINCT role::oid FROM aq_internal.registration WHERE status <> 'disabled' AND procedure_name IS NOT NULL";

static const char posted[] =
	"SELECT registration_id FROM aq_internal.registration r WHERE procedure_name IS NULL "
	"AND EXISTS (SELECT FROM aq_internal.posting p WHERE p.registration_id = r.registration_id)";

/* what is due in the past is with a notifier now, which must not hide that the registration expires */
static const char next_due[] =
	"SELECT least(min(expires_at) FILTER (WHERE expires_at > clock_timestamp()), "
	"min(coalesce(next_at, group_end)) FILTER (WHERE status <> 'disabled' AND procedure_name IS NOT NULL AND coalesce(next_at, group_end) > clock_timestamp())) "
	"FROM aq_internal.registration";

static TimestampTz
read_next_due(void)
{
	bool		isnull;
	TimestampTz next;

	aq_sql_run(next_due, 0, NULL, NULL, NULL, true);
	next = DatumGetTimestampTz(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull));
	SPI_finish();
	return isnull ? 0 : next;
}

/* The notifier of the role could not even connect: its registrations show it. */
static void
note_not_connected(Oid role)
{
	aq_sql_change(psprintf("UPDATE aq_internal.registration SET last_error = 'the notifier could not connect; the server log says why', "
						   "last_error_time = clock_timestamp() WHERE registration_id IN (SELECT registration_id FROM aq_internal.registration "
						   "WHERE role::oid = %u FOR UPDATE SKIP LOCKED)", role), 0, NULL, NULL, NULL);
}

/* Wants the notifiers that have rested. */
static void
want_rested(TimestampTz *next)
{
	TimestampTz rested;
	bool		connected = true;
	Oid			role;
	Oid			last = InvalidOid;

	while (OidIsValid(role = aq_notifier_pool_rested(&rested, &connected)) && role != last)
	{
		if (!connected)
			note_not_connected(role);
		want(role, next);
		last = role;			/* it is still backing off if there is no place */
	}
	aq_clock_sooner(next, rested);
}

static void
look_at_all(bool first, TimestampTz *next)
{
	List	   *roles;
	ListCell   *lc;

	for (int i = 0; i < lengthof(clean); i++)
		aq_sql_change(clean[i], 0, NULL, NULL, NULL);
	if (first)
		aq_client_wake_all();
	else
		wake_clients(posted);
	roles = aq_sql_oids(first ? all : due);
	foreach(lc, roles)
		want(lfirst_oid(lc), next);
	want_rested(next);
	aq_clock_sooner(next, read_next_due());
}

static void
want_waiting(TimestampTz *next)
{
	List	   *roles = waiting;
	ListCell   *lc;

	waiting = NIL;
	foreach(lc, roles)
		want(lfirst_oid(lc), next);
	list_free(roles);
}

static TimestampTz
look(void)
{
	static bool known;			/* this worker has looked */
	static uint32 seen;
	uint32		announcements = aq_announcement_count();
	TimestampTz now = GetCurrentTimestamp();

	if (known && announcements == seen && (next_look == 0 || next_look > now))
		return next_look;
	aq_job_begin();
	if (!OidIsValid(aq_owner_table("registration")))
		next_look = 0;
	else if (!aq_job_lock_extension())
		next_look = now + LOCKED_AGAIN;
	else
	{
		TimestampTz next = 0;

		next_look = now + LOCKED_AGAIN; /* if an error ends this turn */
		want_waiting(&next);
		look_at_all(!known, &next);
		known = true;
		seen = announcements;
		next_look = next;
	}
	aq_job_commit(false);
	return next_look;
}

/* Has the database a registration? */
static bool
is_needed(void)
{
	bool		needed;

	aq_job_begin();
	needed = OidIsValid(aq_owner_table("registration")) && aq_job_lock_extension() && aq_sql_finds("SELECT FROM aq_internal.registration LIMIT 1");
	aq_job_commit(false);
	return needed;
}

static const AqJob look_job = {.name = "notification", .needed = is_needed, .run = look};

void
aq_notify_job_init(void)
{
	aq_worker_register(&look_job);
	aq_upkeep_on_watched(queue_woken);
}
