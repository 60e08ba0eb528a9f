/*-------------------------------------------------------------------------
 *
 * jms_content.c
 *	  aq.jms_write_chunk, aq.jms_read_chunk: bodies of large messages of the
 *	  Jakarta Messaging provider, and the worker's job that deletes those of
 *	  finished messages.
 *
 * A body is rows of aq_internal.jms_chunk, written by the transaction that
 * enqueues its message.  It is deleted some time after the message is gone,
 * however that happened: the job compares bodies with messages, in SQL.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/calls/calls_private.h"

#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

/* a body is kept for this long after its message, and the job runs as often, in seconds */
#define PATIENCE 60

/*
 * The body must be one that this transaction has begun for the queue: a chunk
 * without body would never be deleted, and one of another transaction would change
 * a message of others.  key: content and queue.
 */
static void
check_own_body(const AqQueue *queue, Datum *key)
{
	Oid			types[2] = {UUIDOID, INT4OID};
	bool		own = false;
	bool		isnull;

	aq_sql_run("SELECT xmin FROM aq_internal.jms_content WHERE content = $1 AND home_id = $2", 2, types, key, NULL, true);
	if (SPI_processed > 0)
		own = TransactionIdIsCurrentTransactionId(DatumGetTransactionId(SPI_getbinval(SPI_tuptable->vals[0],
																					  SPI_tuptable->tupdesc, 1, &isnull)));
	SPI_finish();
	if (!own)
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "this transaction has not begun body %s for queue \"%s\"",
						 DatumGetCString(DirectFunctionCall1(uuid_out, key[0])), queue->name),
				errhint("Write chunk 0 first."));
}

static const char *const argument_names[] = {"queue_name", "content", "number", "data"};

PG_FUNCTION_INFO_V1(aq_jms_content_write);
Datum
aq_jms_content_write(PG_FUNCTION_ARGS)
{
	AqQueue    *queue;
	Datum		content[2];
	Datum		chunk[3];
	Oid			content_types[2] = {UUIDOID, INT4OID};
	Oid			chunk_types[3] = {UUIDOID, INT4OID, BYTEAOID};

	for (int i = 0; i < lengthof(argument_names); i++)
		if (PG_ARGISNULL(i))
			ereport(ERROR, aq_error(AQ_ERR_ARGUMENT_NULL, "\"%s\" must not be null", argument_names[i]));
	if (PG_GETARG_INT32(2) < 0)
		ereport(ERROR, aq_error(AQ_ERR_OPTION_INVALID, "\"number\" must not be negative"));
	queue = aq_catalog_get(text_to_cstring(PG_GETARG_TEXT_PP(0)), AQ_RIGHT_ENQUEUE);
	content[0] = chunk[0] = PG_GETARG_DATUM(1);
	content[1] = Int32GetDatum(queue->id);
	chunk[1] = PG_GETARG_DATUM(2);
	chunk[2] = PG_GETARG_DATUM(3);
	if (PG_GETARG_INT32(2) == 0)
	{
		aq_jobs_ensure_worker();
		aq_sql_run("INSERT INTO aq_internal.jms_content (content, home_id) VALUES ($1, $2)", 2, content_types, content,
				   NULL, false);
	}
	else
		check_own_body(queue, content);
	aq_sql_run("INSERT INTO aq_internal.jms_chunk VALUES ($1, $2, $3)", 3, chunk_types, chunk, NULL, false);
	/* a transaction that is longer than this has later chunks, or the job finds it at its next turn */
	aq_jobs_post_at(GetCurrentTimestamp() + PATIENCE * USECS_PER_SEC);
	PG_RETURN_VOID();
}

PG_FUNCTION_INFO_V1(aq_jms_content_read);
Datum
aq_jms_content_read(PG_FUNCTION_ARGS)
{
	Datum		key[2] = {PG_GETARG_DATUM(0), PG_GETARG_DATUM(1)};
	Oid			types[2] = {UUIDOID, INT4OID};
	MemoryContext context = CurrentMemoryContext;
	bytea	   *data = NULL;

	aq_sql_run("SELECT data FROM aq_internal.jms_chunk WHERE content = $1 AND number = $2", 2, types, key, NULL, true);
	if (SPI_processed > 0)
	{
		bool		isnull;
		Datum		stored = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull);

		MemoryContextSwitchTo(context);
		data = DatumGetByteaPCopy(stored);
	}
	SPI_finish();
	if (data == NULL)
		PG_RETURN_NULL();
	PG_RETURN_BYTEA_P(data);
}

/* Does the database's version of the extension have large messages? */
static bool
have_contents(void)
{
	Oid			schema = get_namespace_oid("aq_internal", true);

	return OidIsValid(schema) && OidIsValid(get_relname_relid("jms_content", schema));
}

/* Returns when to sweep again, or 0 if there are no bodies. */
static TimestampTz
sweep(void)
{
	bool		isnull;
	Datum		due;

	SPI_connect();
	if (SPI_execute(psprintf("SELECT aq_internal.jms_sweep('%d seconds')", PATIENCE), false, 1) != SPI_OK_SELECT ||
		SPI_processed != 1)
		elog(ERROR, "could not sweep bodies of messages");
	due = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull);
	SPI_finish();
	return isnull ? 0 : DatumGetTimestampTz(due);
}

static TimestampTz
sweep_turn(void)
{
	static TimestampTz not_before;
	static TimestampTz due;		/* 0: there were no bodies; the first one posts its time itself */

	if (GetCurrentTimestamp() < not_before)
		return due;
	not_before = GetCurrentTimestamp() + PATIENCE * USECS_PER_SEC;
	due = not_before;			/* if this turn fails */
	aq_job_begin();
	if (!have_contents())
		due = 0;
	else if (aq_job_lock_extension())
		due = sweep();
	aq_job_commit(false);
	return due;
}

static const AqJob sweep_job = {.name = "contents",.run = sweep_turn};

void
aq_jms_content_init(void)
{
	aq_worker_register(&sweep_job);
}
