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
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "storage/lock.h"
#include "utils/acl.h"
#include "utils/builtins.h"

/* the part of the lock table, and of pgaq.max_queues, that a transaction may fill: 1 / SHARE */
#define SHARE 8

/* more locks than these in a transaction make the drop of a queue no faster */
#define MOST_LOCKS 1000

/* the locks of a queue and its default exception queue without tables, and of a pair of tables; see docs/operations.md */
#define QUEUE_LOCKS 20
#define PAIR_LOCKS 8

/*
 * The queues to drop.  $1: pattern, $2: owner or null, $3: the caller, or null if it may drop every queue.
 * A default exception queue is dropped with its queue.
 */
#define MEANT \
	"FROM aq_internal.queue q LEFT JOIN pg_class c ON c.relnamespace = 'aq_data'::regnamespace AND c.relname = ('q' || q.queue_id)::name " \
	"WHERE q.rights_id = q.queue_id AND q.queue_name LIKE $1 AND ($2 IS NULL OR c.relowner = $2) " \
	"AND ($3 IS NULL OR pg_has_role($3, c.relowner, 'USAGE')) "

typedef struct Meant
{
	Oid			types[3];
	Datum		values[3];
	char		nulls[4];
} Meant;

/* The number of queues to drop. */
static int64
count(Meant *meant)
{
	return strtoi64(linitial(aq_sql_texts("SELECT count(*) " MEANT, lengthof(meant->types), meant->types, meant->values, meant->nulls)),
					NULL, 10);
}

/*
 * The names of the queues that the next transaction drops.  A queue that is the
 * exception queue of another one comes after that.  If each one is, the first
 * is tried, and the error of its drop says why it cannot be dropped.
 */
static List *
next_names(Meant *meant)
{
	int64		locks = (int64) max_locks_per_xact * (MaxBackends + max_prepared_xacts) / SHARE;

	return aq_sql_texts(psprintf("WITH next AS (SELECT q.queue_id AS id, q.queue_name, q.queue_id IN "
								"(SELECT exception_queue_id FROM aq_internal.queue WHERE exception_queue_id <> queue_id) AS named "
								MEANT "ORDER BY 3, 1 LIMIT %d) "
								"SELECT queue_name FROM (SELECT queue_name, named, row_number() OVER w AS n, %d * row_number() OVER w + %d * "
								"sum((SELECT count(*) FROM aq_internal.message_table t WHERE t.queue_id = next.id)) OVER w AS locks "
								"FROM next WINDOW w AS (ORDER BY named, id)) s WHERE n = 1 OR NOT named AND locks <= %d ORDER BY n",
								Max(aq_handle_limit / SHARE / 2, 1), QUEUE_LOCKS, PAIR_LOCKS, (int) Min(locks, MOST_LOCKS)),
						lengthof(meant->types), meant->types, meant->values, meant->nulls);
}

static int
drop_some(Meant *meant, bool force)
{
	AQ_TIMED(AQ_TIME_ADMIN);
	List	   *names = next_names(meant);
	ListCell   *lc;
	int			dropped = list_length(names);

	foreach(lc, names)
	{
		CHECK_FOR_INTERRUPTS();
		aq_admin_drop(lfirst(lc), force);
	}
	list_free_deep(names);
	return dropped;
}

PG_FUNCTION_INFO_V1(aq_drop_many);
/* aq.drop_queues(pattern, force, owner) */
Datum
aq_drop_many(PG_FUNCTION_ARGS)
{
	Meant		meant = {.types = {TEXTOID, OIDOID, OIDOID},.nulls = " nn"};
	bool		force = !PG_ARGISNULL(1) && PG_GETARG_BOOL(1);
	int64		dropped = 0,
				all;
	int			n;

	aq_session_require_write("aq.drop_queues()");
	if (!aq_sql_may_commit(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
				 errmsg("%s cannot run inside a transaction block", "aq.drop_queues()"),
				 errhint("It commits, so call it outside of functions and transaction blocks: CALL aq.drop_queues(...).")));
	meant.values[0] = CStringGetTextDatum(aq_args_name(fcinfo, 0, "pattern"));
	if (!PG_ARGISNULL(2))
	{
		meant.values[1] = ObjectIdGetDatum(get_role_oid(aq_args_name(fcinfo, 2, "owner"), false));
		meant.nulls[1] = ' ';
	}
	if (!aq_privilege_manages_any())
	{
		meant.values[2] = ObjectIdGetDatum(GetUserId());
		meant.nulls[2] = ' ';
	}
	all = count(&meant);
	if (all == 0)
		ereport(NOTICE,
				(errmsg("dropped no queue: none that you can drop has such a name"),
				 errhint("The pattern is that of LIKE; aq.queues shows names and owners.")));
	while ((n = drop_some(&meant, force)) > 0)
	{
		aq_sql_commit();
		dropped += n;
		ereport(NOTICE, (errmsg("dropped " INT64_FORMAT " of " INT64_FORMAT " queues", dropped, Max(all, dropped))));
	}
	PG_RETURN_VOID();
}
