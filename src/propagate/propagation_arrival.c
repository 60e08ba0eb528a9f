/*-------------------------------------------------------------------------
 *
 * propagation_arrival.c
 *	  Batches of messages that come from another database: the functions that its
 *	  stream calls (propagation_stream.c).
 *
 * A batch and its number are written in one transaction, and the batches of a
 * schedule come one after the other: each takes the lock of its row.  They have
 * the privileges of the role as which the link has connected.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "propagate/propagate_private.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/uuid.h"

/* the arguments of aq.propagation_begin and aq.propagation_put */
enum
{
	ARG_SOURCE, ARG_EPOCH,
	ARG_FIRST, ARG_LAST, ARG_BEGIN_QUEUE,	/* of aq.propagation_begin */
	ARG_NUMBER = ARG_FIRST, ARG_BATCH, ARG_QUEUE, ARG_RECIPIENT, ARG_PAYLOAD_TYPE	/* of aq.propagation_put */
};

/* The last batch received from a schedule of another database. */
typedef struct Arrival
{
	int64		epoch;
	int64		number;
	bool		any;			/* is there a last batch? */
	pg_uuid_t	batch;
} Arrival;

static void
require(FunctionCallInfo fcinfo, int arg, const char *name)
{
	if (PG_ARGISNULL(arg))
		ereport(ERROR, aq_error(AQ_ERR_ARGUMENT_NULL, "\"%s\" must not be null", name));
}

static char *
text_arg(FunctionCallInfo fcinfo, int arg)
{
	return PG_ARGISNULL(arg) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(arg));
}

/* The privilege is checked first: a role that may not enqueue learns nothing, and leaves no row. */
static char *
begin_call(FunctionCallInfo fcinfo, int queue_arg, const char *command)
{
	char	   *queue;

	aq_session_require_write(command);
	aq_session_attach();
	require(fcinfo, ARG_SOURCE, "source");
	require(fcinfo, ARG_EPOCH, "epoch");
	require(fcinfo, queue_arg, "queue_name");
	queue = text_arg(fcinfo, queue_arg);
	(void) aq_catalog_get(queue, AQ_RIGHT_ENQUEUE);
	/* the answer is the proof on which the other database forgets the messages */
	aq_process_commit_safely();
	return queue;
}

pg_noreturn static void
raise_diverged(const char *detail)
{
	ereport(ERROR,
			aq_error(AQ_ERR_PROPAGATION_DIVERGED, "the other database has got another batch of messages than this one has sent"),
			errdetail_internal("%s", detail),
			errhint("One of the two databases was restored from an older backup, or there is a copy of the source."));
}

/*
 * Locks the row of a source.  Returns false if there is none, or if it is of a role
 * whose privileges the current one does not have: that must not hold the row.
 */
static bool
lock_arrival(Datum source, Arrival *arrival)
{
	Oid			types[] = {UUIDOID, OIDOID};
	Datum		values[] = {source, ObjectIdGetDatum(GetUserId())};
	bool		found;
	bool		isnull;

	(void) aq_sql_run("SELECT epoch, number, batch FROM aq_internal.propagation_arrival "
					  "WHERE source = $1 AND pg_has_role($2, role::oid, 'USAGE') FOR UPDATE",
					  lengthof(types), types, values, NULL, true);
	found = SPI_processed == 1;
	if (found)
	{
		HeapTuple	tuple = SPI_tuptable->vals[0];
		Datum		batch = SPI_getbinval(tuple, SPI_tuptable->tupdesc, 3, &isnull);

		arrival->any = !isnull;
		if (arrival->any)
			arrival->batch = *DatumGetUUIDP(batch);
		arrival->epoch = DatumGetInt64(SPI_getbinval(tuple, SPI_tuptable->tupdesc, 1, &isnull));
		arrival->number = DatumGetInt64(SPI_getbinval(tuple, SPI_tuptable->tupdesc, 2, &isnull));
	}
	SPI_finish();
	return found;
}

/* --- what has arrived? ------------------------------------------------------------------------ */

static Datum
answer(FunctionCallInfo fcinfo, const Arrival *arrival)
{
	TupleDesc	desc;
	Datum		values[2] = {Int64GetDatum(arrival->number), UUIDPGetDatum(&arrival->batch)};
	bool		nulls[2] = {false, !arrival->any};

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "aq.propagation_begin returns a row");
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls));
}

/*
 * Inserts the row of the source if there is none yet.  This database is not told when
 * the source ends, so the row remains, and the number of rows of a role is limited.
 */
static void
enter_source(Datum source)
{
	Oid			types[] = {UUIDOID, OIDOID};
	Datum		values[] = {source, ObjectIdGetDatum(GetUserId())};

	if (aq_sql_change("INSERT INTO aq_internal.propagation_arrival (source, role) VALUES ($1, $2) ON CONFLICT DO NOTHING",
					  lengthof(types), types, values, NULL) > 0)
		aq_role_check_rows(GetUserId(), "propagation_arrival", "role", "sources of propagation",
						   "Ask a superuser to delete those that no longer exist from aq_internal.propagation_arrival");
}

PG_FUNCTION_INFO_V1(aq_propagation_arrival_begin);
Datum
aq_propagation_arrival_begin(PG_FUNCTION_ARGS)
{
	Oid			types[] = {UUIDOID, INT8OID};
	Datum		values[] = {PG_GETARG_DATUM(ARG_SOURCE), PG_GETARG_DATUM(ARG_EPOCH)};
	Arrival		arrival = {0};

	require(fcinfo, ARG_FIRST, "first");
	require(fcinfo, ARG_LAST, "last");
	(void) begin_call(fcinfo, ARG_BEGIN_QUEUE, "aq.propagation_begin()");
	enter_source(PG_GETARG_DATUM(ARG_SOURCE));
	if (!lock_arrival(PG_GETARG_DATUM(ARG_SOURCE), &arrival))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for a source of propagation"),
				 errdetail("Its earlier messages arrived as another role."),
				 errhint("If the user of the link has changed, ask a superuser to change the role in aq_internal.propagation_arrival.")));
	if (PG_GETARG_INT64(ARG_EPOCH) <= arrival.epoch)
		raise_diverged(psprintf("Epoch " INT64_FORMAT " has begun here, after " INT64_FORMAT ".", arrival.epoch, PG_GETARG_INT64(ARG_EPOCH)));
	if (arrival.number < PG_GETARG_INT64(ARG_FIRST) - 1 || arrival.number > PG_GETARG_INT64(ARG_LAST))
		raise_diverged(psprintf("Batch " INT64_FORMAT " has arrived here, but the source has kept " INT64_FORMAT " to " INT64_FORMAT ".",
								arrival.number, PG_GETARG_INT64(ARG_FIRST), PG_GETARG_INT64(ARG_LAST)));
	(void) aq_sql_run("UPDATE aq_internal.propagation_arrival SET epoch = $2 WHERE source = $1", lengthof(types), types, values, NULL, false);
	PG_RETURN_DATUM(answer(fcinfo, &arrival));
}

/* --- a batch ------------------------------------------------------------------------------------- */

/* Has the batch arrived before?  Raises an error if it cannot be the next one. */
static bool
has_arrived(FunctionCallInfo fcinfo)
{
	int64		epoch = PG_GETARG_INT64(ARG_EPOCH);
	int64		number = PG_GETARG_INT64(ARG_NUMBER);
	Arrival		arrival = {0};

	if (!lock_arrival(PG_GETARG_DATUM(ARG_SOURCE), &arrival))
		raise_diverged(_("Nothing is known here of the source."));
	if (epoch != arrival.epoch)
		raise_diverged(psprintf("Epoch " INT64_FORMAT " has begun here, the batch is of " INT64_FORMAT ".", arrival.epoch, epoch));
	if (number == arrival.number && arrival.any && memcmp(&arrival.batch, PG_GETARG_UUID_P(ARG_BATCH), sizeof(pg_uuid_t)) == 0)
		return true;
	if (number != arrival.number + 1)
		raise_diverged(psprintf("Batch " INT64_FORMAT " has arrived here, and " INT64_FORMAT " was sent.", arrival.number, number));
	return false;
}

static void
note_arrival(FunctionCallInfo fcinfo)
{
	Oid			types[] = {UUIDOID, INT8OID, UUIDOID};
	Datum		values[] = {PG_GETARG_DATUM(ARG_SOURCE), PG_GETARG_DATUM(ARG_NUMBER), PG_GETARG_DATUM(ARG_BATCH)};

	(void) aq_sql_run("UPDATE aq_internal.propagation_arrival SET number = $2, batch = $3, arrived = clock_timestamp() WHERE source = $1",
					  lengthof(types), types, values, NULL, false);
}

PG_FUNCTION_INFO_V1(aq_propagation_arrival_put);
Datum
aq_propagation_arrival_put(PG_FUNCTION_ARGS)
{
	AqMove		move = {0};
	AqMoved		moved;

	require(fcinfo, ARG_NUMBER, "number");
	require(fcinfo, ARG_BATCH, "batch");
	moved = aq_move_away_arguments(fcinfo, ARG_PAYLOAD_TYPE);
	move.destination = begin_call(fcinfo, ARG_QUEUE, "aq.propagation_put()");
	if (has_arrived(fcinfo))
		PG_RETURN_DATUM(PG_GETARG_DATUM(ARG_NUMBER));
	move.recipient = text_arg(fcinfo, ARG_RECIPIENT);
	/* all batches of a schedule are one producer, so that they keep their order */
	move.producer = aq_producer_own(AQ_PRODUCER_SOURCE, hash_bytes_extended(PG_GETARG_UUID_P(ARG_SOURCE)->data, UUID_LEN, 0));
	aq_move_away_put(&move, &moved);
	note_arrival(fcinfo);
	aq_point("propagation-put");
	PG_RETURN_DATUM(PG_GETARG_DATUM(ARG_NUMBER));
}
