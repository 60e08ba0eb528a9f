/*-------------------------------------------------------------------------
 *
 * temporary.c
 *	  Temporary queues and subscribers: their rows in aq_internal.temporary.
 *
 * They belong to the session that made them, and are otherwise like others: other
 * sessions see and use them.  A subscriber can belong to several sessions.  When all
 * of them have ended, the worker removes it: see temporary_end.c.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/definitions/definitions_private.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"

/* Enters what this transaction has made; consumer: its number, or 0 for the queue itself. */
static void
enter(int32 queue_id, int64 consumer)
{
	Oid			types[3] = {INT4OID, INT8OID, INT8OID};
	Datum		values[3];

	values[0] = Int32GetDatum(queue_id);
	values[1] = Int64GetDatum(consumer);
	values[2] = Int64GetDatum(aq_temporary_owner_enter());
	aq_sql_change("INSERT INTO aq_internal.temporary (queue_id, consumer_number, session_id) VALUES ($1, $2, $3)",
				  3, types, values, NULL);
}

void
aq_temporary_enter_queue(int32 queue_id)
{
	enter(queue_id, 0);
}

void
aq_temporary_enter_consumer(int32 queue_id, const char *consumer)
{
	Oid			types[3] = {INT4OID, TEXTOID, INT8OID};
	Datum		values[3];

	values[0] = Int32GetDatum(queue_id);
	values[1] = CStringGetTextDatum(consumer);
	values[2] = Int64GetDatum(aq_temporary_owner_enter());
	aq_sql_change("INSERT INTO aq_internal.temporary (queue_id, consumer_number, session_id) "
				  "SELECT queue_id, number, $3 FROM aq_internal.subscriber WHERE queue_id = $1 AND consumer = $2 "
				  "ON CONFLICT DO NOTHING",
				  3, types, values, NULL);
}

bool
aq_temporary_is_consumer(int32 queue_id, int64 consumer)
{
	/* with the latest snapshot: the worker may have removed the last session meanwhile */
	return aq_sql_text(psprintf("SELECT 1 FROM aq_internal.temporary WHERE queue_id = %d AND consumer_number = " INT64_FORMAT,
								queue_id, consumer)) != NULL;
}

/* A session has ended; returns false if the consumer no longer belongs to it. */
bool
aq_temporary_forget_session(int32 queue_id, int64 consumer, int64 session)
{
	return aq_sql_change(psprintf("DELETE FROM aq_internal.temporary WHERE queue_id = %d AND consumer_number = " INT64_FORMAT
								  " AND session_id = " INT64_FORMAT, queue_id, consumer, session), 0, NULL, NULL, NULL) > 0;
}

/* The queue is dropped. */
void
aq_temporary_forget_queue(int32 queue_id)
{
	aq_sql_change(psprintf("DELETE FROM aq_internal.temporary WHERE queue_id = %d", queue_id), 0, NULL, NULL, NULL);
}

/* The consumer is removed, or is made lasting. */
void
aq_temporary_forget_consumer(int32 queue_id, int64 consumer)
{
	aq_sql_change(psprintf("DELETE FROM aq_internal.temporary WHERE queue_id = %d AND consumer_number = " INT64_FORMAT,
						   queue_id, consumer), 0, NULL, NULL, NULL);
}

bool
aq_temporary_is_queue(int32 queue_id)
{
	return aq_sql_finds(psprintf("SELECT FROM aq_internal.temporary WHERE queue_id = %d AND consumer_number = 0", queue_id));
}

/* Does the queue belong to this session? */
bool
aq_temporary_is_own(int32 queue_id)
{
	return aq_sql_finds(psprintf("SELECT FROM aq_internal.temporary WHERE queue_id = %d AND consumer_number = 0 "
								 "AND session_id = " INT64_FORMAT, queue_id, aq_schema_own_identity()));
}

/* A session, whose role need not have EXECUTE on aq.create_queue, does not fill the catalog. */
void
aq_temporary_check_limit(void)
{
	char	   *count = aq_sql_text(psprintf("SELECT count(*) FROM aq_internal.temporary WHERE consumer_number = 0 AND "
											 "session_id = " INT64_FORMAT, aq_temporary_owner_enter()));

	if (atoi(count) >= aq_parameters_max_temporary_queues)
		ereport(ERROR,
				aq_error(AQ_ERR_TEMPORARY_LIMIT, "the session cannot have more than %d temporary queues",
						 aq_parameters_max_temporary_queues),
				errhint("Drop one with aq.drop_queue, or increase pgaq.max_temporary_queues."));
}

/* A name that no queue has. */
char *
aq_temporary_new_name(void)
{
	static int	number;
	char	   *name;

	do
		name = psprintf("temporary_" INT64_FORMAT "_%d", aq_temporary_owner_enter(), ++number);
	while (aq_catalog_get_by_name(name) != NULL);
	return name;
}
