/*-------------------------------------------------------------------------
 *
 * restored.c
 *	  Queues restored from a dump: the worker is notified, but does not load
 *	  them before their messages are restored.
 *
 * A restore copies each table in a separate transaction, in no guaranteed
 * order.  Message tables that are still empty would be regarded as free.  A
 * dump sets sequences after it has copied the tables, so a queue is being
 * restored if its id is above the last value of aq_internal.queue_id_seq.
 * After that, a parallel restore may still be copying a table, on which it
 * holds a lock.
 *
 * Setting the sequence is not announced: the worker checks again, after a
 * pause that grows with the duration of the restore.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/definitions/definitions_private.h"

#include "commands/trigger.h"
#include "fmgr.h"
#include "storage/ipc.h"
#include "utils/timestamp.h"

/* the shortest and the longest pause, in microseconds */
#define FIRST_PAUSE ((int64) 1000000)
#define LONGEST_PAUSE ((int64) 30000000)

#define LAST_NUMBER "(SELECT CASE WHEN s.is_called THEN s.last_value ELSE 0 END FROM aq_internal.queue_id_seq s)"

/*
 * in the worker: since when queues are known to be being restored; 0: none are
 */
static TimestampTz restoring_since;

/* restores that have ended */
static uint32 restored;

/*
 * Trigger after INSERT and COPY into aq_internal.queue, except by
 * aq.create_queue.
 */
PG_FUNCTION_INFO_V1(aq_restored_trigger);
Datum
aq_restored_trigger(PG_FUNCTION_ARGS)
{
	if (!CALLED_AS_TRIGGER(fcinfo))
		elog(ERROR, "aq_internal.queues_restored is a trigger function");
	/* a queue that this transaction has created is loaded at its first use */
	if (!aq_pending_has_ddl())
		aq_utility_note_restored();
	PG_RETURN_POINTER(NULL);
}

/*
 * If the worker ends during a restore, notifies the next one, which would not
 * detect it.
 */
static void
hand_over(int code, Datum unused)
{
	if (restoring_since != 0)
		aq_jobs_post_restored();
}

static void
begin_restoring(void)
{
	static bool registered;

	if (!registered)
		before_shmem_exit(hand_over, (Datum) 0);
	registered = true;
	restoring_since = GetCurrentTimestamp();
	aq_point("queues-restoring");
}

/* The pause before the worker checks queues that are being restored again. */
int64
aq_restored_pause(void)
{
	int64		pause = (GetCurrentTimestamp() - restoring_since) / 10;

	return Max(FIRST_PAUSE, Min(pause, LONGEST_PAUSE));
}

/*
 * Returns those of the database's queues that can be loaded; *all: can all of
 * them?  Called in a transaction of the worker.
 */
List *
aq_restored_complete(List *ids, bool *all)
{
	List	   *complete;

	if (aq_jobs_take_restored())
		begin_restoring();
	*all = true;
	if (restoring_since == 0 && !aq_sql_finds("SELECT FROM aq_internal.queue WHERE queue_id > " LAST_NUMBER))
		return ids;
	if (restoring_since == 0)
		begin_restoring();
	complete = aq_sql_numbers("SELECT q.queue_id FROM aq_internal.queue q WHERE q.queue_id <= " LAST_NUMBER " AND NOT EXISTS ("
							  "SELECT FROM pg_locks l JOIN pg_class c ON c.oid = l.relation "
							  "WHERE l.locktype = 'relation' AND l.mode IN ('RowExclusiveLock', 'AccessExclusiveLock') "
							  "AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
							  "AND c.relnamespace = 'aq_data'::regnamespace "
							  "AND (c.relname ~ ('^[ql]' || q.queue_id || '_') OR c.relname ~ ('^[a-z]' || q.queue_table_id || '$')))");
	*all = list_length(complete) >= list_length(ids);
	if (*all)
	{
		restoring_since = 0;
		restored++;
	}
	return complete;
}

bool
aq_restored_is_running(void)
{
	return restoring_since != 0;
}

/* Grows whenever a restore has ended. */
uint32
aq_restored_count(void)
{
	return restored;
}
