/*-------------------------------------------------------------------------
 *
 * propagation_batch.c
 *	  Batches of messages for another database: the process moves messages from
 *	  their queue into a row of aq_internal.propagation_batch, in one transaction.
 *
 * The stream of the schedule (propagation_stream.c) then sends the batch, always
 * with the same content, until it is known to have arrived.  A few batches may be
 * in transit: while one is sent, the next one is taken.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "propagate/propagate_private.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

/* batches of a schedule that may be in transit */
#define DEPTH 4

/* bytes in a batch; one message can be larger */
#define BYTES ((int64) 4000000)

/* while a session has the schedule locked, microseconds */
#define LOCKED_PAUSE ((int64) 200000)

/*
 * Locks the schedule's row, so that no session ends the schedule.  Returns the
 * number of batches in transit; -1: a session is changing it, or has ended it.
 */
static int
lock_schedule(int64 id)
{
	Oid			type = INT8OID;
	Datum		value = Int64GetDatum(id);
	int			n = -1;
	bool		isnull;

	(void) aq_sql_run("SELECT (SELECT count(*) FROM aq_internal.propagation_batch b WHERE b.schedule_id = p.schedule_id)::integer "
					  "FROM aq_internal.propagation p WHERE p.schedule_id = $1 AND p.enabled FOR KEY SHARE OF p SKIP LOCKED",
					  1, &type, &value, NULL, true);
	if (SPI_processed == 1)
		n = DatumGetInt32(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull));
	SPI_finish();
	return n;
}

static void
insert_batch(const AqRoute *route, const AqMoved *moved)
{
	const char *server = aq_propagation_server(route->destination);
	Oid			types[] = {INT8OID, TEXTOID, TEXTOID, TEXTOID, INT4OID, INT8OID,
		TEXTARRAYOID, INT4ARRAYOID, TIMESTAMPTZARRAYOID, TEXTARRAYOID, JSONBARRAYOID, TEXTARRAYOID, TEXTARRAYOID, UUIDARRAYOID,
		TEXTARRAYOID};
	Datum		values[lengthof(types)] = {
		Int64GetDatum(route->schedule->id),
		PointerGetDatum(cstring_to_text_with_len(route->destination, server - 1 - route->destination)),
		route->recipient != NULL ? CStringGetTextDatum(route->recipient) : (Datum) 0,
		CStringGetTextDatum(moved->payload_type),
		Int32GetDatum(moved->n),
		Int64GetDatum(moved->bytes),
	};
	char		nulls[lengthof(types) + 1] = "               ";
	const char *columns = "payloads, priorities, expirations, correlations, properties, senders, exception_queues, originals";
	const char *parameters = "$7, $8, $9, $10, $11, $12, $13, $14";
	const char *keys = moved->keyed ? ", keys" : "";	/* a catalog of 0.1.0 has no such column */
	const char *keys_parameter = moved->keyed ? ", $15" : "";

	nulls[2] = route->recipient != NULL ? ' ' : 'n';
	memcpy(&values[6], moved->columns, aq_move_away_columns(moved) * sizeof(Datum));
	if (aq_sql_change(psprintf("WITH l AS (UPDATE aq_internal.propagation_link SET number = number + 1 WHERE schedule_id = $1 RETURNING number) "
							   "INSERT INTO aq_internal.propagation_batch (schedule_id, number, destination, recipient, payload_type, messages, bytes, "
							   "%s%s) SELECT $1, l.number, $2, $3, $4, $5, $6, %s%s FROM l", columns, keys, parameters, keys_parameter),
					  lengthof(types) - !moved->keyed, types, values, nulls) != 1)
		elog(ERROR, "propagation schedule " INT64_FORMAT " has no row for its link", route->schedule->id);
}

/*
 * The number of messages of the next batch, from the size of earlier ones.  It grows
 * slowly, because larger messages may follow.
 */
static int
most_of(const AqMoved *moved, int before)
{
	int64		fit = BYTES * moved->n / Max(moved->bytes, 1);

	return (int) Max(Min(Min(fit, 4 * (int64) before), AQ_PROPAGATION_BATCH), 1);
}

/*
 * Takes a batch with the privileges of the schedule's role, which become() takes
 * on.  Returns the number of its messages; 0 also if enough are on their way.
 */
uint32
aq_propagation_batch_take(const AqRoute *route, void (*become) (Oid role))
{
	AqPropagation *schedule = route->schedule;
	AqMove		move = {.source = schedule->queue_id, .consumer = route->consumer, .max = schedule->most};
	AqMoved		moved;
	int			sent;

	/* read before the rows: a batch that arrives in between is noticed at the next call */
	schedule->arrivals = aq_propagator_area_arrivals();
	sent = lock_schedule(schedule->id);
	schedule->busy = sent >= DEPTH;
	if (sent < 0)
		schedule->not_before = GetCurrentTimestamp() + LOCKED_PAUSE;
	if (sent < 0 || schedule->busy)
		return 0;
	become(schedule->role);
	(void) aq_link_server(aq_propagation_server(route->destination), schedule->role);
	aq_move_away_take(&move, &moved);
	if (moved.n == 0)
		return 0;
	insert_batch(route, &moved);
	aq_process_commit_safely();
	aq_propagation_calls_note_batch();
	schedule->most = most_of(&moved, schedule->most);
	aq_point("propagation-taking");
	return moved.n;
}
