/*-------------------------------------------------------------------------
 *
 * posting.c
 *	  Posted notifications: aq.post, and the messages of non-persistent queues.
 *
 * A posting is a row of aq_internal.posting for each registration that gets it,
 * written by the transaction that posts and deleted by the one that delivers.
 * Those of a message of a non-persistent queue have its properties as well.  While
 * the queue is stopped for dequeue they wait.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "notify/notify_private.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/fmgrprotos.h"
#include "utils/timestamp.h"

/* --- aq.post ------------------------------------------------------------------------------ */

/* the registrations that get what is posted now */
#define WHO "FROM aq_internal.registration WHERE status <> 'disabled' AND (expires_at IS NULL OR expires_at > clock_timestamp()) "

PG_FUNCTION_INFO_V1(aq_posting_post);
Datum
aq_posting_post(PG_FUNCTION_ARGS)
{
	Oid			argtypes[] = {TEXTOID, BYTEAOID};
	Datum		values[] = {PG_GETARG_DATUM(0), PG_GETARG_DATUM(1)};
	char		nulls[] = {' ', PG_ARGISNULL(1) ? 'n' : ' '};
	uint64		n;

	aq_registration_begin("aq.post()");
	aq_args_require(fcinfo, 0, "name");
	aq_jobs_ensure_worker();
	n = aq_sql_change("INSERT INTO aq_internal.posting (registration_id, payload) SELECT registration_id, $2 " WHO
					  "AND name = $1 ORDER BY registration_id", 2, argtypes, values, nulls);
	PG_RETURN_INT32((int32) n);
}

/* --- messages of non-persistent queues -------------------------------------------------------- */

/* columns of the INSERT */
enum
{
	M_QUEUE, M_CONSUMERS, M_PAYLOAD, M_MSGID, M_PRIORITY, M_CORRELATION, M_SENDER, M_EXPIRES_AT, M_ORIGINAL_MSGID, M_COLUMNS
};

static const char insert[] =
	"INSERT INTO aq_internal.posting (registration_id, payload, msgid, priority, correlation, sender, expires_at, original_msgid) "
	"SELECT registration_id, $3, $4, $5, $6, $7, $8, $9 " WHO "AND queue_id = $1 AND ($2 IS NULL OR consumer = ANY ($2)) "
	"ORDER BY registration_id";

static void
set_value(Datum *values, char *nulls, int column, Datum value, bool isnull)
{
	values[column] = value;
	nulls[column] = isnull ? 'n' : ' ';
}

/* The names of the consumers, as text[]. */
static Datum
consumers_of(AqQueue *queue, const Bitmapset *targets)
{
	Datum	   *names = palloc(queue->nconsumers * sizeof(Datum) + 1);
	int			n = 0;

	for (int i = 0; i < queue->nconsumers; i++)
		if (queue->consumers[i].name != NULL && bms_is_member(queue->consumers[i].position, targets))
			names[n++] = CStringGetTextDatum(queue->consumers[i].name);
	return PointerGetDatum(construct_array(names, n, TEXTOID, -1, false, TYPALIGN_INT));
}

/* The payload as notifications have it, whatever the settings of the session. */
static Datum
payload_bytes(const AqQueue *queue, Datum payload)
{
	int			nest = aq_run_as_begin();
	Datum		bytes = aq_notification_bytes(queue->payload_type, payload);

	aq_run_as_end(nest);
	return bytes;
}

/* An AqNonPersistentPut. */
static void
put_messages(AqQueue *queue, const AqPutOptions *options, uint32 n, const Datum *payloads, const bool *nulls,
			 Bitmapset *const *targets, pg_uuid_t *ids)
{
	static Oid	types[M_COLUMNS] = {
		INT4OID, TEXTARRAYOID, BYTEAOID, UUIDOID, INT4OID, TEXTOID, TEXTOID, TIMESTAMPTZOID, UUIDOID
	};

	aq_jobs_ensure_worker();
	for (uint32 i = 0; i < n; i++)
	{
		const AqPutOptions *own = options->each != NULL ? &options->each[i] : options;
		Datum		v[M_COLUMNS];
		char		isnull[M_COLUMNS];

		ids[i] = *DatumGetUUIDP(DirectFunctionCall1(gen_random_uuid, (Datum) 0));
		set_value(v, isnull, M_QUEUE, Int32GetDatum(queue->id), false);
		set_value(v, isnull, M_CONSUMERS, targets != NULL ? consumers_of(queue, targets[i]) : (Datum) 0, targets == NULL);
		set_value(v, isnull, M_PAYLOAD, nulls[i] ? (Datum) 0 : payload_bytes(queue, payloads[i]), nulls[i]);
		set_value(v, isnull, M_MSGID, UUIDPGetDatum(&ids[i]), false);
		set_value(v, isnull, M_PRIORITY, Int32GetDatum(options->priority), false);
		set_value(v, isnull, M_CORRELATION, PointerGetDatum(own->correlation), own->correlation == NULL);
		set_value(v, isnull, M_SENDER, PointerGetDatum(options->sender), options->sender == NULL);
		set_value(v, isnull, M_EXPIRES_AT, TimestampTzGetDatum(options->expires_at), options->expires_at == 0);
		set_value(v, isnull, M_ORIGINAL_MSGID, UUIDPGetDatum(own->original_id), own->original_id == NULL);
		aq_sql_change(insert, M_COLUMNS, types, v, isnull);
	}
}

void
aq_posting_init(void)
{
	aq_non_persistent_on_put(put_messages);
}

/* --- delivery ------------------------------------------------------------------------------------ */

/*
 * The name that notifications of the registration have.  NULL: its queue is being
 * dropped, or stopped for dequeue; its start wakes the registration.  Raises an
 * error if the current role may no longer be notified.
 */
char *
aq_posting_name(const AqRegistration *r)
{
	AqQueue    *queue;

	if (r->queue_id == 0)
		return r->name;
	queue = aq_catalog_get_by_id(r->queue_id, true);
	if (queue == NULL)
		return NULL;
	queue = aq_catalog_get_to_notify(pstrdup(queue->name), r->consumer, r->queue_id);
	aq_pins_pin(queue);
	aq_waiters_watch(queue->shm);
	queue = aq_pins_pin_current(queue, false);
	return queue->dequeue_enabled ? pstrdup(queue->name) : NULL;
}

/* columns of a posting */
enum
{
	ID, PAYLOAD, POSTED, MSGID, PRIORITY, CORRELATION, SENDER, EXPIRES_AT, ORIGINAL_MSGID, NCOLUMNS
};

#define COLUMNS "posting_id, payload, posted, msgid, priority, correlation, sender, expires_at, original_msgid"
#define DUE "registration_id = " INT64_FORMAT " AND (expires_at IS NULL OR expires_at > clock_timestamp()) "

/* A copy of a value that is not NULL, else NULL. */
static void *
copy(Datum value, bool isnull, int length)
{
	return isnull ? NULL : DatumGetPointer(datumCopy(value, false, length));
}

static AqPosting *
read_row(HeapTuple tuple, TupleDesc desc)
{
	AqPosting  *posting = palloc0(sizeof(AqPosting));
	Datum		v[NCOLUMNS];
	bool		isnull[NCOLUMNS];

	heap_deform_tuple(tuple, desc, v, isnull);
	posting->id = DatumGetInt64(v[ID]);
	posting->no_payload = isnull[PAYLOAD];
	if (!isnull[PAYLOAD])
		posting->payload = PointerGetDatum(PG_DETOAST_DATUM_COPY(v[PAYLOAD]));
	posting->posted = DatumGetTimestampTz(v[POSTED]);
	posting->msgid = copy(v[MSGID], isnull[MSGID], UUID_LEN);
	posting->priority = isnull[PRIORITY] ? 0 : DatumGetInt32(v[PRIORITY]);
	posting->correlation = isnull[CORRELATION] ? NULL : DatumGetTextPCopy(v[CORRELATION]);
	posting->sender = isnull[SENDER] ? NULL : DatumGetTextPCopy(v[SENDER]);
	posting->expires_at = isnull[EXPIRES_AT] ? 0 : DatumGetTimestampTz(v[EXPIRES_AT]);
	posting->original_id = copy(v[ORIGINAL_MSGID], isnull[ORIGINAL_MSGID], UUID_LEN);
	return posting;
}

/* The rows of a query, in the current memory context. */
static List *
read_rows(const char *query)
{
	MemoryContext context = CurrentMemoryContext;
	List	   *list = NIL;

	aq_sql_run(query, 0, NULL, NULL, NULL, true);
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		MemoryContext spi = MemoryContextSwitchTo(context);

		list = lappend(list, read_row(SPI_tuptable->vals[i], SPI_tuptable->tupdesc));
		MemoryContextSwitchTo(spi);
	}
	SPI_finish();
	return list;
}

static void
remove_expired(const AqRegistration *r)
{
	if (r->queue_id != 0)
		aq_sql_change(psprintf("DELETE FROM aq_internal.posting WHERE registration_id = " INT64_FORMAT " AND expires_at <= clock_timestamp()",
							   r->id), 0, NULL, NULL, NULL);
}

bool
aq_posting_exists(const AqRegistration *r)
{
	return aq_sql_finds(psprintf("SELECT FROM aq_internal.posting WHERE " DUE "LIMIT 1", r->id));
}

/* The oldest postings for the registration; without those that have expired, which are removed. */
List *
aq_posting_read(const AqRegistration *r, int max)
{
	remove_expired(r);
	return read_rows(psprintf("SELECT " COLUMNS " FROM aq_internal.posting WHERE " DUE "ORDER BY posting_id LIMIT %d", r->id, max));
}

/* The same, and removes them. */
List *
aq_posting_take(const AqRegistration *r, int max)
{
	remove_expired(r);
	return read_rows(psprintf("WITH taken AS (DELETE FROM aq_internal.posting WHERE posting_id IN (SELECT posting_id FROM aq_internal.posting "
							  "WHERE " DUE "ORDER BY posting_id LIMIT %d) RETURNING " COLUMNS ") SELECT * FROM taken ORDER BY posting_id",
							  r->id, max));
}

/* Returns false if it is gone. */
bool
aq_posting_remove(const AqPosting *posting)
{
	return aq_sql_change(psprintf("DELETE FROM aq_internal.posting WHERE posting_id = " INT64_FORMAT, posting->id),
						 0, NULL, NULL, NULL) > 0;
}
