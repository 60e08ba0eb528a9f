/*-------------------------------------------------------------------------
 *
 * propagation_stream.c
 *	  Batches go to another database: a stream of part "link" for each schedule
 *	  whose destination is there.
 *
 * A stream first asks what has arrived, in a new epoch: all that is older is
 * refused there from then on.  Then it sends the batches one after the other.
 * The other database enqueues a batch and records its number in one
 * transaction, and takes no number twice.  So a request whose answer was lost is
 * sent again.
 *
 * The numbers say what has become of the batches.  If they say what cannot be,
 * one of the databases is not what it was, for example restored from an older
 * backup: the schedule is disabled, and nothing is lost or doubled silently.
 *
 * A session that changes a schedule keeps its row locked as long as it likes.
 * The link worker does not wait for it, so an answer can go unnoted: then the
 * request is sent again.
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

/* while a session has the schedule locked, milliseconds */
#define LOCKED_PAUSE 200

#define BEGIN "SELECT number, batch FROM aq.propagation_begin($1, $2, $3, $4, $5)"
#define PUT "SELECT aq.propagation_put($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)"
#define PUT_WITH_KEYS "SELECT aq.propagation_put($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)"

#define DIVERGED _("the other database has got another batch of messages than this one has sent")

typedef struct Sending
{
	bool		asked;			/* what has arrived */
	bool		putting;		/* the request in flight is a batch, not the question */
	int64		first;			/* its number; of the question: the first one that is kept */
	int64		last;			/* of the question: of the last batch taken */
	TimestampTz sent;
	TimestampTz not_before;		/* a session has the schedule locked, or it has failed */
	int			failures;		/* in a row, if it waits because of these; else 0 */
} Sending;

/* A command whose first parameter is the schedule; SPI stays connected.  Returns the number of rows. */
static uint64
run_for_schedule(const char *command, int64 schedule)
{
	Oid			type = INT8OID;
	Datum		value = Int64GetDatum(schedule);

	(void) aq_sql_run(command, 1, &type, &value, NULL, true);
	return SPI_processed;
}

static void
execute(const char *command, int64 schedule)
{
	(void) run_for_schedule(command, schedule);
	SPI_finish();
}

/* --- the streams --------------------------------------------------------------------------------- */

/* Schedules whose servers and roles exist; the process notes what is wrong with the others. */
#define STREAMS \
	"FROM aq_internal.propagation p JOIN pg_foreign_server s ON s.srvname = substring(p.destination, '@(.*)$') " \
	"JOIN pg_foreign_data_wrapper w ON w.oid = s.srvfdw AND w.fdwname = 'pgaq_link' JOIN pg_roles a ON a.oid = p.role WHERE p.enabled"

static bool
exist(void)
{
	return OidIsValid(aq_owner_table("propagation_link")) && aq_sql_finds("SELECT " STREAMS " LIMIT 1");
}

static void
propagation_list(void)
{
	bool		isnull;

	if (!OidIsValid(aq_owner_table("propagation_link")))
		return;
	(void) aq_sql_run("SELECT p.schedule_id, s.oid, p.role::oid " STREAMS, 0, NULL, NULL, NULL, true);
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		HeapTuple	tuple = SPI_tuptable->vals[i];
		TupleDesc	desc = SPI_tuptable->tupdesc;
		AqLinkStream *stream = aq_link_add(DatumGetInt64(SPI_getbinval(tuple, desc, 1, &isnull)),
										   DatumGetObjectId(SPI_getbinval(tuple, desc, 2, &isnull)),
										   DatumGetObjectId(SPI_getbinval(tuple, desc, 3, &isnull)));

		/* one that was enabled has no failures, and is tried at once */
		aq_link_wake_stream(stream);
	}
	SPI_finish();
}

/* --- requests ------------------------------------------------------------------------------------- */

/* The row is locked until the end of the transaction; false: by a session, or it is gone. */
static bool
lock_schedule(int64 id)
{
	bool		locked = run_for_schedule("SELECT FROM aq_internal.propagation WHERE schedule_id = $1 FOR NO KEY UPDATE SKIP LOCKED", id) == 1;

	SPI_finish();
	return locked;
}

/* The same, with what the process changes when it takes a batch. */
static bool
lock_link(int64 id)
{
	bool		locked = run_for_schedule("SELECT FROM aq_internal.propagation p JOIN aq_internal.propagation_link l ON l.schedule_id = p.schedule_id "
										  "WHERE p.schedule_id = $1 FOR NO KEY UPDATE SKIP LOCKED", id) == 1;

	SPI_finish();
	return locked;
}

static void
pause_stream(Sending *sending)
{
	sending->not_before = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), LOCKED_PAUSE);
}

/* The parameters of a request: the columns of the row, as text, in the given memory context. */
static void
add_parameters(AqLinkRequest *request, int n, MemoryContext context)
{
	for (int i = 1; i <= n; i++)
	{
		char	   *value = SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, i);

		aq_link_text(request, InvalidOid, value != NULL ? MemoryContextStrdup(context, value) : NULL);
	}
}

static int64
number_of(int column)
{
	bool		isnull;

	return DatumGetInt64(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, column, &isnull));
}

/*
 * The epoch grows durably before it is used.  It is a time, so that it also grows
 * if the server is replaced by a standby that does not know the last one.
 */
static bool
ask(AqLinkStream *stream, AqLinkRequest *request)
{
	Sending    *sending = stream->data;
	MemoryContext context = CurrentMemoryContext;
	bool		found;

	found = run_for_schedule("UPDATE aq_internal.propagation_link l SET epoch = greatest(l.epoch + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint) "
							 "FROM aq_internal.propagation_batch b "
							 "WHERE l.schedule_id = $1 AND b.schedule_id = $1 AND "
							 "b.number = (SELECT min(o.number) FROM aq_internal.propagation_batch o WHERE o.schedule_id = $1) "
							 "RETURNING l.source, l.epoch, b.number, l.number, b.destination", stream->key) == 1;
	if (found)
	{
		add_parameters(request, 5, context);
		sending->first = number_of(3);
		sending->last = number_of(4);
		request->sql = BEGIN;
		request->shape = (AqLinkShape) {.least_rows = 1, .most_rows = 1, .ncolumns = 2, .columns = {
			{AQ_ANSWER_NUMBER, .least = 0, .most = PG_INT64_MAX},
			{AQ_ANSWER_UUID, .nullable = true}
		}};
		aq_link_flush();
	}
	SPI_finish();
	return found;
}

static bool
put(AqLinkStream *stream, AqLinkRequest *request)
{
	Sending    *sending = stream->data;
	MemoryContext context = CurrentMemoryContext;
	bool		found;
	bool		isnull;

	found = run_for_schedule(psprintf("SELECT l.source, l.epoch, b.number, b.batch, b.destination, b.recipient, b.payload_type, b.payloads, b.priorities, "
									  "ARRAY(SELECT (extract(epoch FROM e - clock_timestamp()) * 1000000)::bigint FROM unnest(b.expirations) WITH ORDINALITY AS u (e, n) ORDER BY n), "
									  "b.correlations, b.properties, b.senders, b.exception_queues, b.originals, %s, b.messages "
									  "FROM aq_internal.propagation_link l JOIN aq_internal.propagation_batch b ON b.schedule_id = l.schedule_id "
									  "WHERE l.schedule_id = $1 ORDER BY b.number LIMIT 1", aq_version_has_keys() ? "b.keys" : "NULL"), stream->key) == 1;
	if (found)
	{
		bool		keyed = SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 16) != NULL &&
			aq_link_sends_keys(stream, psprintf("propagation schedule " INT64_FORMAT, stream->key));

		add_parameters(request, keyed ? 16 : 15, context);
		sending->first = number_of(3);
		request->rows = DatumGetInt32(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 17, &isnull));
		request->sql = keyed ? PUT_WITH_KEYS : PUT;
		request->shape = (AqLinkShape) {.least_rows = 1, .most_rows = 1, .ncolumns = 1, .columns = {{AQ_ANSWER_NUMBER, .least = 0, .most = PG_INT64_MAX}}};
	}
	SPI_finish();
	return found;
}

/* Is there a batch that may be sent? */
static bool
has_batch(int64 schedule)
{
	bool		found = run_for_schedule("SELECT FROM aq_internal.propagation p WHERE p.schedule_id = $1 AND p.enabled AND "
										 "EXISTS (SELECT FROM aq_internal.propagation_batch b WHERE b.schedule_id = p.schedule_id)", schedule) == 1;

	SPI_finish();
	return found;
}

/* Number of errors in a row.  Altering a schedule resets it, and the schedule is tried at once. */
static bool
has_failed(int64 schedule, int failures)
{
	bool		found = run_for_schedule(psprintf("SELECT FROM aq_internal.propagation WHERE schedule_id = $1 AND failures = %d", failures), schedule) == 1;

	SPI_finish();
	return found;
}

static bool
propagation_next(AqLinkStream *stream, AqLinkRequest *request, TimestampTz *again)
{
	Sending    *sending = stream->data;
	bool		found;

	if (GetCurrentTimestamp() < sending->not_before && (sending->failures == 0 || has_failed(stream->key, sending->failures)))
	{
		*again = sending->not_before;
		return false;
	}
	sending->failures = 0;
	if (!has_batch(stream->key))
		return false;
	if (!sending->asked && !lock_link(stream->key))
	{
		pause_stream(sending);
		*again = sending->not_before;
		return false;
	}
	sending->putting = sending->asked;
	found = sending->putting ? put(stream, request) : ask(stream, request);
	sending->sent = GetCurrentTimestamp();
	aq_point("propagation-sending");
	return found;
}

/* --- answers ----------------------------------------------------------------------------------------- */

/* Writes down that batches up to this number have arrived. */
static void
note_arrival(int64 schedule, int64 number, int64 elapsed)
{
	execute(psprintf("UPDATE aq_internal.propagation_link SET arrived = (SELECT b.batch FROM aq_internal.propagation_batch b "
					 "WHERE b.schedule_id = $1 AND b.number = " INT64_FORMAT ") WHERE schedule_id = $1", number), schedule);
	execute(psprintf("WITH gone AS (DELETE FROM aq_internal.propagation_batch WHERE schedule_id = $1 AND number <= " INT64_FORMAT
					 " RETURNING messages, bytes), "
					 "done AS (SELECT count(*) AS batches, sum(messages) AS messages, sum(bytes) AS bytes, "
					 "max(messages) AS most_messages, max(bytes) AS most_bytes FROM gone) "
					 "UPDATE aq_internal.propagation p SET messages = p.messages + done.messages, bytes = p.bytes + done.bytes, "
					 "batches = p.batches + done.batches, elapsed = p.elapsed + " INT64_FORMAT ", "
					 "most_messages = greatest(p.most_messages, done.most_messages), most_bytes = greatest(p.most_bytes, done.most_bytes), "
					 "last_run = clock_timestamp(), failures = 0 FROM done WHERE p.schedule_id = $1", number, elapsed), schedule);
	aq_propagation_calls_note_arrival();
}

/*
 * Returns whether the schedule is disabled now.  An error that is not of the
 * definitions or the messages, such as a lost connection, does not disable it.
 */
static bool
note_failure(int64 schedule, const char *message, int sqlstate, bool diverged, int *failures)
{
	Oid			types[] = {INT8OID, TEXTOID, BOOLOID, BOOLOID};
	Datum		values[] = {
		Int64GetDatum(schedule), CStringGetTextDatum(message), BoolGetDatum(diverged), BoolGetDatum(aq_error_is_of_timed_user(sqlstate))
	};
	bool		disabled = false;
	bool		isnull;

	(void) aq_sql_run(psprintf("UPDATE aq_internal.propagation SET failures = failures + 1, last_error = $2, last_error_time = clock_timestamp(), "
							   "enabled = NOT $3 AND NOT ($4 AND failures + 1 >= %d) WHERE schedule_id = $1 AND enabled RETURNING failures, enabled",
							   AQ_PROPAGATION_FAILURES), lengthof(types), types, values, NULL, true);
	if (SPI_processed == 1)
	{
		*failures = DatumGetInt32(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull));
		disabled = !DatumGetBool(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 2, &isnull));
	}
	SPI_finish();
	if (diverged)
		execute("UPDATE aq_internal.propagation_link SET diverged = true WHERE schedule_id = $1", schedule);
	if (disabled)
	{
		aq_propagation_calls_note_change(true);
		if (aq_trouble_may_log(MyDatabaseId))
			ereport(LOG,
					errmsg("propagation schedule " INT64_FORMAT " is disabled: %s", schedule, aq_error_clip(message)),
					diverged ? errhint("See \"Divergence\" in docs/propagation.md.") : 0);
	}
	return disabled;
}

/* Is this batch, or none (number 0; batch NULL), the last one that can have arrived? */
static bool
is_possible(const Sending *sending, int64 schedule, int64 number, const char *batch)
{
	char	   *expected = NULL;

	if (number < sending->first - 1 || number > sending->last)
		return false;
	if (run_for_schedule(psprintf(number < sending->first ? "SELECT arrived FROM aq_internal.propagation_link WHERE schedule_id = $1" :
								  "SELECT batch FROM aq_internal.propagation_batch WHERE schedule_id = $1 AND number = " INT64_FORMAT, number),
						 schedule) == 1)
		expected = SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1);
	SPI_finish();
	return expected == NULL ? number == 0 : batch != NULL && strcmp(expected, batch) == 0;
}

static void
propagation_done(AqLinkStream *stream, const AqLinkAnswer *answer)
{
	Sending    *sending = stream->data;
	int64		number = aq_link_answer_value(answer, 0, 0)->number;
	int			failures;

	aq_point("propagation-answered");
	if (!lock_schedule(stream->key))
	{
		/* batch or question: it is sent again */
		pause_stream(sending);
		return;
	}
	if (sending->putting ? number != sending->first : !is_possible(sending, stream->key, number, aq_link_answer_value(answer, 0, 1)->text))
	{
		sending->asked = false;
		(void) note_failure(stream->key, DIVERGED, ERRCODE_DATA_EXCEPTION, true, &failures);
		return;
	}
	sending->asked = true;
	if (number >= sending->first)
		note_arrival(stream->key, number, GetCurrentTimestamp() - sending->sent);
	aq_point("propagation-noted");
}

static TimestampTz
propagation_failed(AqLinkStream *stream, const AqLinkFailure *failure)
{
	Sending    *sending = stream->data;
	bool		diverged = failure->phase == AQ_LINK_REFUSED &&
		strcmp(unpack_sql_state(failure->sqlstate), aq_error_sqlstate(AQ_ERR_PROPAGATION_DIVERGED)) == 0;
	const char *message;
	int			failures = 1;

	sending->asked = false;
	if (!lock_schedule(stream->key))
		return TimestampTzPlusMilliseconds(GetCurrentTimestamp(), LOCKED_PAUSE);
	message = failure->detail != NULL ? psprintf("%s: %s", failure->message, failure->detail) : failure->message;
	if (note_failure(stream->key, message, failure->sqlstate, diverged, &failures))
		return 0;
	if (failure->phase != AQ_LINK_REFUSED)
		return 0;				/* the link has its own pause */
	/* the batches of other schedules wake this stream, too */
	sending->failures = failures;
	sending->not_before = GetCurrentTimestamp() + aq_propagation_pause(failures);
	return sending->not_before;
}

static const AqLinkKind batches = {
	.name = "propagation",
	.size = sizeof(Sending),
	.exist = exist,
	.list = propagation_list,
	.next = propagation_next,
	.done = propagation_done,
	.failed = propagation_failed,
};

void
aq_propagation_stream_register(void)
{
	aq_link_register(&batches);
}
