/*-------------------------------------------------------------------------
 *
 * link_views.c
 *	  The functions under aq.links and aq.link_hello().
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "link/link_private.h"

#include "access/xlog.h"
#include "catalog/pg_authid.h"
#include "foreign/foreign.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"

/* how long a database waits for its link worker before aq.links says so */
#define PATIENCE ((int64) 3000000)

static const char *const conditions[] = {"idle", "connecting", "connected", "backing off", "failed", "disabled"};

const char *
aq_link_views_security(AqLinkSecurity security)
{
	static const char *const names[] = {
		[AQ_LINK_NO_TLS] = "none",[AQ_LINK_TLS_ANY] = "unverified",[AQ_LINK_TLS_VERIFIED] = "verified",[AQ_LINK_LOCAL] = "local"
	};

	return names[security];
}

/* The latency below which half of the answers are, in microseconds; the upper end of its bucket. */
static int64
median(const AqLinkState *state)
{
	int64		sum = 0;

	for (int i = 0; i < AQ_LINK_BUCKETS; i++)
	{
		sum += state->histogram[i];
		if (sum * 2 >= state->requests)
			return INT64CONST(1) << i;
	}
	return 0;
}

/* Why the link worker does not run although it is needed; NULL: it runs, or comes. */
static const char *
problem_of(const AqLinkDatabase *db)
{
	int64		now = aq_clock_us();

	if (db == NULL || db->pid != 0)
		return NULL;
	if (db->backoff_until > now)
		return _("the link worker has ended with an error, and is started again after a pause");
	if (db->wanted_since != 0 && now - db->wanted_since >= PATIENCE)
		return _("the link worker does not run: no background worker slot is free");
	return NULL;
}

/*
 * Only the server's owner and members of pg_monitor see what the other server
 * has said.
 */
static bool
sees_errors(Oid server)
{
	ForeignServer *found = GetForeignServerExtended(server, FSV_MISSING_OK);

	return has_privs_of_role(GetUserId(), ROLE_PG_MONITOR) || (found != NULL && has_privs_of_role(GetUserId(), found->owner));
}

/*
 * Server, role, state, since, next attempt, failures, connections, SQLSTATE,
 * message, detail, hint and time of the latest error, version and address of the
 * other side, encryption, its system identifier, timeline and database, requests, refused,
 * lost, rows, bytes sent and received, average and median latency.
 */
AQ_ROWS(aq_link_views_links)
{
	for (int i = 0; i < aq_link_area_limit; i++)
	{
		AqLinkState state;
		bool		sees,
					known;

		aq_link_area_get(AQ_SHARED);
		state = aq_link_area->states[i];
		aq_link_area_free();
		if (state.database != MyDatabaseId)
			continue;
		sees = sees_errors(state.server) && state.error.at != 0;
		known = state.remote.version[0] != '\0';
		aq_rows_put(row, ObjectIdGetDatum(state.server));
		aq_rows_put(row, ObjectIdGetDatum(state.role));
		aq_rows_text(row, conditions[state.condition]);
		aq_rows_time(row, state.since);
		aq_rows_time(row, state.next_attempt);
		aq_rows_int(row, state.failures);
		aq_rows_int(row, state.connections);
		aq_rows_text(row, state.error.at != 0 ? unpack_sql_state(state.error.sqlstate) : NULL);
		aq_rows_text(row, sees ? state.error.message : NULL);
		aq_rows_text(row, sees && state.error.detail[0] != '\0' ? state.error.detail : NULL);
		aq_rows_text(row, sees && state.error.hint[0] != '\0' ? state.error.hint : NULL);
		aq_rows_time(row, state.error.at);
		aq_rows_text(row, known ? state.remote.version : NULL);
		aq_rows_text(row, known ? state.host : NULL);
		aq_rows_text(row, known ? aq_link_views_security(state.security) : NULL);
		aq_rows_number_if(row, known, (int64) state.remote.system_identifier);
		aq_rows_number_if(row, known, state.remote.timeline);
		aq_rows_number(row, state.requests);
		aq_rows_number(row, state.refused);
		aq_rows_number(row, state.lost);
		aq_rows_number(row, state.rows);
		aq_rows_number(row, state.bytes_sent);
		aq_rows_number(row, state.bytes_received);
		aq_rows_number_if(row, state.requests > 0, state.requests > 0 ? state.latency_us / state.requests : 0);
		aq_rows_number_if(row, state.requests > 0, median(&state));
		aq_rows_end(row);
	}
}

/*
 * One row: why the link worker of this database does not run, null if nothing is
 * wrong; its process id.
 */
AQ_ROWS(aq_link_views_worker)
{
	AqLinkDatabase db;
	bool		known;

	aq_link_area_get(AQ_SHARED);
	known = aq_link_area_known(MyDatabaseId) != NULL;
	if (known)
		db = *aq_link_area_known(MyDatabaseId);
	aq_link_area_free();
	aq_rows_text(row, known ? problem_of(&db) : NULL);
	aq_rows_int_if(row, known && db.pid != 0, known ? db.pid : 0);
	aq_rows_end(row);
}

/*
 * The handshake, called by the link of another server: oldest and newest version
 * of the protocol that it knows.
 */
PG_FUNCTION_INFO_V1(aq_link_views_hello);
Datum
aq_link_views_hello(PG_FUNCTION_ARGS)
{
	int			oldest,
				newest,
				agreed;
	Datum		values[4];
	bool		nulls[4] = {false};

	aq_session_require_preload();
	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		ereport(ERROR,
				aq_error(AQ_ERR_ARGUMENT_NULL, "%s is null", PG_ARGISNULL(0) ? "oldest" : "newest"));
	oldest = PG_GETARG_INT32(0);
	newest = PG_GETARG_INT32(1);
	agreed = Min(newest, AQ_LINK_PROTOCOL);
	if (agreed < Max(oldest, AQ_LINK_PROTOCOL_OLDEST))
		ereport(ERROR,
				aq_error(AQ_ERR_LINK_REMOTE, "the two databases of the link have versions of pgaq that cannot talk to each other"),
				errdetail("This one knows versions %d to %d of the protocol, the other one %d to %d.",
						  AQ_LINK_PROTOCOL_OLDEST, AQ_LINK_PROTOCOL, oldest, newest),
				errhint("Update the older one: ALTER EXTENSION pgaq UPDATE, after its new version was installed."));
	values[0] = Int32GetDatum(agreed);
	values[1] = Int64GetDatum((int64) GetSystemIdentifier());
	nulls[2] = RecoveryInProgress();
	values[2] = nulls[2] ? (Datum) 0 : Int64GetDatum((int64) GetWALInsertionTimeLine());
	values[3] = ObjectIdGetDatum(MyDatabaseId);
	return aq_rows_one(fcinfo, values, nulls);
}
