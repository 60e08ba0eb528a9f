/*-------------------------------------------------------------------------
 *
 * drop_many.c
 *	  aq.drop_queues: dropping queues in several transactions.
 *
 * A drop locks every object of the queue until its transaction ends: tables,
 * their indexes and types, views.  The server's lock table has room for some
 * hundred queues, so the procedure commits before it fills much of it.
 *
 * Each transaction searches for queues again; only the number of dropped ones is kept.
 * So the procedure can fail at any moment, and be called again.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/definitions/definitions_private.h"

#include "access/twophase.h"
#include "miscadmin.h"
#include "storage/lock.h"
#include "utils/acl.h"
#include "utils/builtins.h"

/* the part of the lock table, and of pgaq.max_queues, that a transaction may fill: 1 / SHARE */
#define SHARE 8

/* more locks than these in a transaction make the drop of a queue no faster */
#define MOST_LOCKS 1000

/* the locks of a queue and its default exception queue without tables, and of a pair of tables; see docs/sizing.md */
#define QUEUE_LOCKS 20
#define PAIR_LOCKS 8

/*
 * The queues to drop, as the end of a query.  owner: InvalidOid: any; caller:
 * InvalidOid: may drop every queue.  A default exception queue is dropped with its queue.
 */
static char *
meant_queues(const char *pattern, Oid owner, Oid caller)
{
	return psprintf("FROM aq_internal.queue q LEFT JOIN pg_class c ON c.relnamespace = 'aq_data'::regnamespace AND c.relname = ('q' || q.queue_id)::name "
					"WHERE q.rights_id = q.queue_id AND q.queue_name LIKE %s AND (%u = 0 OR c.relowner = %u) "
					"AND (%u = 0 OR pg_has_role(%u::oid, c.relowner, 'USAGE')) ",
					quote_literal_cstr(pattern), owner, owner, caller, caller);
}

/*
 * The queues that the next transaction drops.  A queue that is the exception
 * queue of another one comes after that.  If each one is, the first is tried, and
 * the error of its drop says why it cannot be dropped.
 */
static List *
next_queues(const char *meant)
{
	int64		locks = (int64) max_locks_per_xact * (MaxBackends + max_prepared_xacts) / SHARE;

	return aq_sql_oids(psprintf("WITH next AS (SELECT q.queue_id AS id, q.queue_id IN "
								"(SELECT exception_queue_id FROM aq_internal.queue WHERE exception_queue_id <> queue_id) AS named "
								"%sORDER BY 2, 1 LIMIT %d) "
								"SELECT id::oid FROM (SELECT id, named, row_number() OVER w AS n, %d * row_number() OVER w + %d * "
								"sum((SELECT count(*) FROM aq_internal.message_table t WHERE t.queue_id = next.id)) OVER w AS locks "
								"FROM next WINDOW w AS (ORDER BY named, id)) s WHERE n = 1 OR NOT named AND locks <= %d ORDER BY n",
								meant, Max(aq_handle_limit / SHARE / 2, 1), QUEUE_LOCKS, PAIR_LOCKS, (int) Min(locks, MOST_LOCKS)));
}

/*
 * Returns false if there is nothing left to drop.  A queue that another session has
 * dropped, renamed or given away meanwhile may no longer be meant.
 */
static bool
drop_some(const char *meant, bool force, int64 *dropped)
{
	AQ_TIMED(AQ_TIME_ADMIN);
	List	   *next = next_queues(meant);
	ListCell   *lc;
	bool		found = next != NIL;

	foreach(lc, next)
	{
		char	   *name;

		CHECK_FOR_INTERRUPTS();
		(void) aq_queue_lock((int32) lfirst_oid(lc), AccessExclusiveLock, true);
		name = aq_sql_text(psprintf("SELECT q.queue_name %sAND q.queue_id = %u", meant, lfirst_oid(lc)));
		if (name == NULL)
			continue;
		aq_admin_drop(name, force);
		(*dropped)++;
	}
	list_free(next);
	return found;
}

PG_FUNCTION_INFO_V1(aq_drop_many);
/* aq.drop_queues(pattern, force, owner) */
Datum
aq_drop_many(PG_FUNCTION_ARGS)
{
	bool		force = !PG_ARGISNULL(1) && PG_GETARG_BOOL(1);
	char	   *meant;
	int64		dropped = 0,
				all;

	aq_session_require_write("aq.drop_queues()");
	if (!aq_sql_may_commit(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
				 errmsg("%s cannot run inside a transaction block", "aq.drop_queues()"),
				 errhint("It commits, so call it outside of functions and transaction blocks: CALL aq.drop_queues(...).")));
	meant = meant_queues(aq_args_name(fcinfo, 0, "pattern"),
						 PG_ARGISNULL(2) ? InvalidOid : get_role_oid(aq_args_name(fcinfo, 2, "owner"), false),
						 aq_privilege_manages_any() ? InvalidOid : GetUserId());
	all = strtoi64(aq_sql_text(psprintf("SELECT count(*) %s", meant)), NULL, 10);
	if (all == 0)
		ereport(NOTICE,
				(errmsg("dropped no queue: none that you can drop has such a name"),
				 errhint("The pattern is that of LIKE; aq.queues shows names and owners.")));
	while (drop_some(meant, force, &dropped))
	{
		aq_sql_commit();
		ereport(NOTICE, (errmsg("dropped " INT64_FORMAT " of " INT64_FORMAT " queues", dropped, Max(all, dropped))));
	}
	PG_RETURN_VOID();
}
