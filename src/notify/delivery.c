/*-------------------------------------------------------------------------
 *
 * delivery.c
 *	  A round of a notifier: finds, for each registration of its role, the
 *	  messages that are new for it, and calls its procedure.
 *
 * What is to be notified is derived from the queue itself: a message that the
 * consumer could dequeue, and that is not among those of notified.c.  So nothing
 * is written when a message is enqueued, and nothing is lost with a process.
 *
 * A scan first has the queue watched (aq_waiters_watch), then looks: a message
 * that becomes ready later wakes the worker, which wakes this notifier.
 *
 * Each call is a transaction, which sees the registration once more, and the
 * message.  A call that fails ends the registration's turn; it is tried again
 * after a pause.  Other registrations go on.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "notify/notify_private.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "utils/typcache.h"

/* most messages of a scan, and postings of a query */
#define BATCH 1000
#define POSTINGS 100

/* most bytes of an error that are kept */
#define ERROR_LENGTH 1000

/* when the extension is being dropped, or its definition changed, in microseconds */
#define LOCKED_AGAIN ((int64) 1000000)

/* Registrations marked as running, with the calls made since. */
typedef struct Work
{
	int64		registration;
	int64		calls;
} Work;

static Work *works;
static int	works_size;
static int	nworks;

/* --- transactions ------------------------------------------------------------------------ */

static MemoryContext turn;		/* of a registration's turn; NULL: between rounds */

static void
commit(void)
{
	aq_job_commit(false);
	aq_callback_over();
	SetUserIdAndSecContext(GetSessionUserId(), 0);
	MemoryContextSwitchTo(turn != NULL ? turn : TopMemoryContext);
}

/* Returns false, without a transaction, if the extension is being dropped. */
static bool
begin(void)
{
	aq_job_begin();
	SetUserIdAndSecContext(GetSessionUserId(), SECURITY_LOCAL_USERID_CHANGE);
	if (aq_job_lock_extension())
		return true;
	commit();
	return false;
}

static uint64
change(const AqRegistration *registration, const char *command)
{
	return aq_sql_change(psprintf("%s WHERE registration_id = " INT64_FORMAT, command, registration->id), 0, NULL, NULL, NULL);
}

/* --- registrations ------------------------------------------------------------------------ */

/* columns of the query */
enum
{
	ID, QUEUE_ID, NAME, CONSUMER, SCHEMA, PROCEDURE, OWNER, CONTEXT, RELIABLE, ONCE, WITH_PAYLOAD, GROUPED, LAST,
	GROUP_END, NEXT_GROUP_END, NEXT_AT, EXPIRES_AT, FAILURES, NCOLUMNS
};

static const char columns[] =
"registration_id, queue_id, name, consumer, procedure_schema, procedure_name, procedure_owner::oid, context, reliable, once, "
"with_payload, group_time IS NOT NULL AND coalesce(groups_left, 1) > 0, coalesce(group_type = 'last', false), group_end, "
"group_start + greatest(ceil(extract(epoch FROM clock_timestamp() - group_start) / extract(epoch FROM group_time)), 1)::float8 * group_time, "
"next_at, expires_at, failures";

static TimestampTz
time_of(const Datum *values, const bool *nulls, int column)
{
	return nulls[column] ? 0 : DatumGetTimestampTz(values[column]);
}

static char *
text_of(const Datum *values, const bool *nulls, int column)
{
	return nulls[column] ? NULL : TextDatumGetCString(values[column]);
}

static AqRegistration *
read_row(HeapTuple tuple, TupleDesc desc)
{
	AqRegistration *r = palloc0(sizeof(AqRegistration));
	Datum		values[NCOLUMNS];
	bool		nulls[NCOLUMNS];

	heap_deform_tuple(tuple, desc, values, nulls);
	r->id = DatumGetInt64(values[ID]);
	r->queue_id = nulls[QUEUE_ID] ? 0 : DatumGetInt32(values[QUEUE_ID]);
	r->name = text_of(values, nulls, NAME);
	r->consumer = text_of(values, nulls, CONSUMER);
	r->schema = text_of(values, nulls, SCHEMA);
	r->procedure = text_of(values, nulls, PROCEDURE);
	r->owner = DatumGetObjectId(values[OWNER]);
	r->context = nulls[CONTEXT] ? NULL : DatumGetByteaPCopy(values[CONTEXT]);
	r->reliable = DatumGetBool(values[RELIABLE]);
	r->once = DatumGetBool(values[ONCE]);
	r->with_payload = DatumGetBool(values[WITH_PAYLOAD]);
	r->grouped = DatumGetBool(values[GROUPED]);
	r->last = DatumGetBool(values[LAST]);
	r->group_end = time_of(values, nulls, GROUP_END);
	r->next_group_end = time_of(values, nulls, NEXT_GROUP_END);
	r->next_at = time_of(values, nulls, NEXT_AT);
	r->expires_at = time_of(values, nulls, EXPIRES_AT);
	r->failures = DatumGetInt32(values[FAILURES]);
	return r;
}

/* The role's registrations, or one of them; in the current memory context. */
static List *
read_registrations(int64 only)
{
	MemoryContext context = CurrentMemoryContext;
	List	   *list = NIL;

	aq_sql_run(psprintf("SELECT %s FROM aq_internal.registration WHERE role::oid = %u AND status <> 'disabled' "
						"AND (expires_at IS NULL OR expires_at > clock_timestamp())%s ORDER BY registration_id",
						columns, GetSessionUserId(), only == 0 ? "" : psprintf(" AND registration_id = " INT64_FORMAT, only)),
			   0, NULL, NULL, NULL, true);
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		MemoryContext spi = MemoryContextSwitchTo(context);

		list = lappend(list, read_row(SPI_tuptable->vals[i], SPI_tuptable->tupdesc));
		MemoryContextSwitchTo(spi);
	}
	SPI_finish();
	return list;
}

static bool
is_registered(const AqRegistration *r)
{
	return read_registrations(r->id) != NIL;
}

/* What a failed call does to its registration. */
static char *
failure_of(const char *condition)
{
	return psprintf("UPDATE aq_internal.registration SET failures = failures + 1, last_error = $1, "
					"last_error_time = clock_timestamp(), "
					"status = CASE WHEN failures + 1 >= %d THEN 'disabled' ELSE 'retrying' END, "
					"next_at = clock_timestamp() + least(%d * 2.0 ^ least(failures, 30), 300000)::float8 * interval '1 millisecond' "
					"WHERE %s", aq_notify_settings_failures, aq_notify_settings_retry_delay_ms, condition);
}

static void
write_failure(const char *error, const char *condition)
{
	Oid			type = TEXTOID;
	Datum		text = PointerGetDatum(cstring_to_text_with_len(error, pg_mbcliplen(error, strlen(error), ERROR_LENGTH)));

	aq_sql_change(failure_of(condition), 1, &type, &text, NULL);
}

static TimestampTz
fail(const AqRegistration *r, const char *error)
{
	List	   *list;
	TimestampTz next;

	if (!begin())
		return GetCurrentTimestamp() + LOCKED_AGAIN;
	write_failure(error, psprintf("registration_id = " INT64_FORMAT, r->id));
	list = read_registrations(r->id);
	next = list != NIL ? ((AqRegistration *) linitial(list))->next_at : 0;
	commit();
	if (list == NIL)
		ereport(LOG,
				(errmsg("registration " INT64_FORMAT " for notification was disabled", r->id),
				 errdetail("Its calls have failed %d times in a row, the last time with: %s", r->failures + 1, error)));
	return next;
}

/* --- work in hand --------------------------------------------------------------------------- */

/*
 * Marks the registration as running: so a notifier that is started after this
 * one has died during a call counts a failure, and does not call again at once.
 */
static bool
mark(const AqRegistration *r)
{
	for (int i = 0; i < nworks; i++)
		if (works[i].registration == r->id)
			return true;
	works = aq_array_room(works, &works_size, nworks + 1, sizeof(Work));
	if (!begin())
		return false;
	(void) change(r, "UPDATE aq_internal.registration SET running = true");
	commit();
	works[nworks].registration = r->id;
	works[nworks++].calls = 0;
	aq_point("notifier-marked");
	return true;
}

static void
count_call(const AqRegistration *r)
{
	for (int i = 0; i < nworks; i++)
		if (works[i].registration == r->id)
			works[i].calls++;
}

bool
aq_delivery_is_settled(void)
{
	return nworks == 0;
}

/*
 * Called when there is nothing to do: no registration is running any more.
 * Returns false if it has to be called again.
 */
bool
aq_delivery_settle(void)
{
	if (nworks == 0)
		return true;
	if (!begin())
		return false;
	for (int i = 0; i < nworks; i++)
		aq_sql_change(psprintf("UPDATE aq_internal.registration SET running = false, notifications = notifications + " INT64_FORMAT
							   "%s WHERE registration_id = " INT64_FORMAT, works[i].calls,
							   works[i].calls > 0 ? ", last_notification = clock_timestamp()" : "", works[i].registration),
					  0, NULL, NULL, NULL);
	commit();
	nworks = 0;
	return true;
}

/* Called once, by a new process: what an earlier one was doing when it died has failed. */
void
aq_delivery_begin(void)
{
	if (!begin())
		return;
	write_failure("the notifier ended during a call", psprintf("role::oid = %u AND running", GetSessionUserId()));
	aq_sql_change(psprintf("UPDATE aq_internal.registration SET running = false WHERE role::oid = %u AND running",
						   GetSessionUserId()), 0, NULL, NULL, NULL);
	commit();
}

/* --- notifications --------------------------------------------------------------------------- */

typedef struct Building
{
	const AqRegistration *registration;
	Oid			payload_type;
	Datum		values[17];
	bool		nulls[17];
	bool		found;
} Building;

enum
{
	N_REGISTRATION, N_NAMESPACE, N_NAME, N_CONSUMER, N_MSGIDS, N_COUNT, N_CONTEXT, N_PAYLOAD, N_PRIORITY, N_CORRELATION,
	N_ATTEMPTS, N_ENQUEUE_TIME, N_READY_AT, N_EXPIRES_AT, N_SENDER, N_EXCEPTION_QUEUE, N_ORIGINAL_MSGID
};

static void
set(Building *b, int field, Datum value)
{
	b->values[field] = value;
	b->nulls[field] = false;
}

static void
set_varlena(Building *b, int field, struct varlena *value)
{
	if (value != NULL)
		set(b, field, PointerGetDatum(PG_DETOAST_DATUM_COPY(PointerGetDatum(value))));
}

static void
set_time(Building *b, int field, TimestampTz time)
{
	if (time != 0)
		set(b, field, TimestampTzGetDatum(time));
}

/* Begins a notification of the registration. */
static void
begin_building(Building *b, const AqRegistration *r, const char *name)
{
	memset(b, 0, sizeof(*b));
	memset(b->nulls, true, sizeof(b->nulls));
	b->registration = r;
	set(b, N_REGISTRATION, Int64GetDatum(r->id));
	set(b, N_NAMESPACE, CStringGetTextDatum(r->queue_id != 0 ? "queue" : "anonymous"));
	set(b, N_NAME, CStringGetTextDatum(name));
	if (r->consumer != NULL)
		set(b, N_CONSUMER, CStringGetTextDatum(r->consumer));
	if (r->context != NULL)
		set(b, N_CONTEXT, PointerGetDatum(r->context));
}

static Datum
build(Building *b)
{
	TupleDesc	desc = lookup_rowtype_tupdesc_copy(aq_callback_notification_type(), -1);

	if (desc->natts != lengthof(b->values))
		elog(ERROR, "type aq.notification has %d fields", desc->natts);
	return HeapTupleGetDatum(heap_form_tuple(desc, b->values, b->nulls));
}

/* The payload as bytes. */
static Datum
bytes_of(Oid type, Datum payload)
{
	Oid			output;
	bool		varlena;

	if (type == BYTEAOID)
		return PointerGetDatum(PG_DETOAST_DATUM_COPY(payload));
	getTypeOutputInfo(type, &output, &varlena);
	return PointerGetDatum(cstring_to_text(OidOutputFunctionCall(output, payload)));
}

/* Callback of a dequeue in mode browse: the message that is notified. */
static void
set_message(void *arg, const AqMessage *m, int delivery)
{
	Building   *b = arg;

	if (m->state != 0)			/* it waits for its retry delay */
		return;
	b->found = true;
	if (b->registration->with_payload && !m->payload_null)
		set(b, N_PAYLOAD, bytes_of(b->payload_type, m->payload));
	set(b, N_PRIORITY, Int32GetDatum(m->priority));
	set(b, N_ATTEMPTS, Int32GetDatum(m->attempts));
	set_time(b, N_ENQUEUE_TIME, m->enqueue_time);
	set_time(b, N_READY_AT, m->ready_at);
	set_time(b, N_EXPIRES_AT, m->expires_at);
	set_varlena(b, N_CORRELATION, m->correlation);
	set_varlena(b, N_SENDER, m->sender);
	set_varlena(b, N_EXCEPTION_QUEUE, m->exception_queue);
	if (m->original_id != NULL)
	{
		pg_uuid_t  *id = palloc(sizeof(pg_uuid_t));

		*id = *m->original_id;
		set(b, N_ORIGINAL_MSGID, UUIDPGetDatum(id));
	}
}

/* The message, if the consumer could dequeue it; raises without the right to. */
static bool
look_at_message(Building *b, AqQueue *queue, const pg_uuid_t *id)
{
	AqDequeue	call = {.queue = pstrdup(queue->name),.payload_type = queue->payload_type,
		.consumer = b->registration->consumer,.max = 1,.mode = AQ_MODE_BROWSE,.id = id,
	.delivery = AQ_PERSISTENT,.emit = set_message,.arg = b};

	b->found = false;
	b->payload_type = queue->payload_type;
	(void) aq_dequeue_now(&call);
	return b->found;
}

static void
set_ids(Building *b, const AqNews *news, int n, bool last)
{
	int			first = last ? n - 1 : 0;
	Datum	   *ids = palloc(n * sizeof(Datum));

	for (int i = first; i < n; i++)
		ids[i - first] = UUIDPGetDatum(&news[i].id);
	set(b, N_MSGIDS, PointerGetDatum(construct_array(ids, n - first, UUIDOID, UUID_LEN, false, TYPALIGN_CHAR)));
	set(b, N_COUNT, Int32GetDatum(n));
}

/* --- calls ------------------------------------------------------------------------------------ */

/* In the transaction of a call that has succeeded. */
static void
finish(const AqRegistration *r)
{
	if (r->once)
		(void) change(r, "DELETE FROM aq_internal.registration");
	else if (r->grouped)
		(void) change(r, "UPDATE aq_internal.registration SET group_end = NULL, groups_left = groups_left - 1, "
					  "status = 'enabled', failures = 0, next_at = NULL");
	else if (r->failures > 0 || r->next_at != 0)
		(void) change(r, "UPDATE aq_internal.registration SET status = 'enabled', failures = 0, next_at = NULL");
}

static void
call_procedure(AqRegistration *r, Building *b)
{
	aq_point("notifier-call");
	aq_callback_call(r, build(b));
	aq_point("notifier-called");
	finish(r);
}

/* The call has been committed. */
static void
called(AqRegistration *r)
{
	aq_point("notifier-committed");
	count_call(r);
	r->failures = 0;
	r->next_at = r->group_end = 0;
}

/* May the registration's turn go on? */
static bool
goes_on(const AqRegistration *r)
{
	return !r->once && !aq_notifier_pool_yields();
}

/* Notifies of messages in one call.  Returns false if the registration's turn is over. */
static bool
notify(AqRegistration *r, const AqNews *news, int n)
{
	Building	b;
	AqQueue    *queue;
	bool		stays = true;
	bool		due;

	if (!begin())
		return false;
	queue = is_registered(r) ? aq_catalog_get_by_id(r->queue_id, true) : NULL;
	if (queue == NULL || !queue->dequeue_enabled)
	{
		commit();
		return false;
	}
	begin_building(&b, r, queue->name);
	due = r->grouped && !r->last;
	if (!due)
		due = look_at_message(&b, queue, &news[n - 1].id) || r->grouped;
	if (due)
	{
		set_ids(&b, news, n, r->grouped && r->last);
		call_procedure(r, &b);
		queue = aq_catalog_get_by_id(r->queue_id, true);
		if (!r->grouped && queue != NULL)
		{
			begin_building(&b, r, queue->name);
			stays = look_at_message(&b, queue, &news[0].id);
		}
		for (int i = 0; i < n && stays && r->reliable && !r->once; i++)
			aq_notified_store(r, &news[i]);
	}
	commit();
	if (!due)
		return true;
	for (int i = 0; i < n && stays; i++)
		aq_notified_add(r, &news[i]);
	called(r);
	return goes_on(r);
}

/* --- queues -------------------------------------------------------------------------------------- */

typedef struct NewsScan
{
	const AqRegistration *registration;
	AqNews	   *news;
	int			n;
} NewsScan;

static bool
is_new(void *arg, const AqMessage *m)
{
	return !aq_notified_has(((NewsScan *) arg)->registration, &m->id, m->attempts);
}

static void
add_news(void *arg, const AqMessage *m, int delivery)
{
	NewsScan	   *scan = arg;

	Assert(scan->n < BATCH);
	scan->news[scan->n].id = m->id;
	scan->news[scan->n++].attempts = m->attempts;
}

/*
 * Watches the queue, and finds messages that are new for the registration.
 * Returns false if the registration's turn is over.
 */
static bool
find_news(NewsScan *scan)
{
	const AqRegistration *r = scan->registration;
	AqQueue    *queue;

	scan->n = 0;
	if (!begin())
		return false;
	queue = aq_catalog_get_by_id(r->queue_id, true);
	if (queue != NULL)
	{
		aq_pins_pin(queue);
		aq_waiters_watch(queue->shm);
		aq_point("notifier-watches");
	}
	/* aq.start_queue, too, is a wake-up */
	if (queue != NULL && queue->dequeue_enabled)
	{
		AqDequeue	call = {.queue = pstrdup(queue->name),.payload_type = queue->payload_type,.consumer = r->consumer,
			.max = BATCH,.mode = AQ_MODE_BROWSE,.filter = is_new,.filter_arg = scan,.delivery = AQ_PERSISTENT,
		.emit = add_news,.arg = scan};

		if (r->reliable)
			aq_notified_load(r);
		aq_notified_scan_begin();
		(void) aq_dequeue_now(&call);
		if (scan->n < BATCH)
			aq_notified_scan_end(r);
	}
	commit();
	return scan->n > 0;
}

/* The first message of a group has come. */
static void
begin_group(AqRegistration *r)
{
	Oid			type = TIMESTAMPTZOID;
	Datum		end = TimestampTzGetDatum(r->next_group_end);

	if (!begin())
		return;
	aq_sql_change(psprintf("UPDATE aq_internal.registration SET group_end = $1, next_at = NULL WHERE registration_id = " INT64_FORMAT, r->id),
				  1, &type, &end, NULL);
	commit();
	r->next_at = 0;
	r->group_end = r->next_group_end;
}

/* There is nothing new: the registration waits for a message. */
static void
rest(AqRegistration *r)
{
	if (r->next_at == 0 && r->group_end == 0)
		return;
	if (!begin())
		return;
	(void) change(r, "UPDATE aq_internal.registration SET next_at = NULL, group_end = NULL, failures = 0, status = 'enabled'");
	commit();
}

/* Returns when the registration has something to do again; 0: when there is a message. */
static TimestampTz
serve_queue(AqRegistration *r)
{
	NewsScan		scan = {.registration = r,.news = palloc(BATCH * sizeof(AqNews))};
	bool		more = true;

	while (more && find_news(&scan))
	{
		if (r->grouped && r->group_end == 0 && r->failures == 0)
		{
			begin_group(r);
			return r->group_end;
		}
		if (!mark(r))
			return GetCurrentTimestamp() + LOCKED_AGAIN;
		if (r->grouped)
			more = notify(r, scan.news, scan.n);
		else
			for (int i = 0; i < scan.n && more; i++)
				more = notify(r, &scan.news[i], 1);
		if (r->grouped)
			return more ? GetCurrentTimestamp() : 0;	/* the rest belongs to the next group */
	}
	if (more)
		rest(r);
	return 0;
}

/* --- postings -------------------------------------------------------------------------------------- */

static bool
notify_posting(AqRegistration *r, int64 id, Datum payload, bool isnull)
{
	Building	b;

	if (!begin())
		return false;
	if (!is_registered(r))
	{
		commit();
		return false;
	}
	begin_building(&b, r, r->name);
	set(&b, N_COUNT, Int32GetDatum(1));
	if (!isnull)
		set(&b, N_PAYLOAD, payload);
	aq_sql_change(psprintf("DELETE FROM aq_internal.posting WHERE posting_id = " INT64_FORMAT, id), 0, NULL, NULL, NULL);
	call_procedure(r, &b);
	commit();
	called(r);
	return goes_on(r);
}

/* The oldest postings; returns their number. */
static int
find_postings(const AqRegistration *r, int64 *ids, Datum *payloads, bool *nulls)
{
	MemoryContext context = CurrentMemoryContext;
	int			n = 0;

	if (!begin())
		return 0;
	aq_sql_run(psprintf("SELECT posting_id, payload FROM aq_internal.posting WHERE registration_id = " INT64_FORMAT
						" ORDER BY posting_id LIMIT %d", r->id, POSTINGS), 0, NULL, NULL, NULL, true);
	for (; n < SPI_processed; n++)
	{
		bool		isnull;
		MemoryContext spi = MemoryContextSwitchTo(context);

		ids[n] = DatumGetInt64(SPI_getbinval(SPI_tuptable->vals[n], SPI_tuptable->tupdesc, 1, &isnull));
		payloads[n] = SPI_getbinval(SPI_tuptable->vals[n], SPI_tuptable->tupdesc, 2, &nulls[n]);
		if (!nulls[n])
			payloads[n] = PointerGetDatum(PG_DETOAST_DATUM_COPY(payloads[n]));
		MemoryContextSwitchTo(spi);
	}
	SPI_finish();
	commit();
	return n;
}

static TimestampTz
serve_postings(AqRegistration *r)
{
	int64		ids[POSTINGS];
	Datum		payloads[POSTINGS];
	bool		nulls[POSTINGS];
	int			n;
	bool		more = true;

	while (more && (n = find_postings(r, ids, payloads, nulls)) > 0)
	{
		if (!mark(r))
			return GetCurrentTimestamp() + LOCKED_AGAIN;
		for (int i = 0; i < n && more; i++)
			more = notify_posting(r, ids[i], payloads[i], nulls[i]);
	}
	if (more)
		rest(r);
	return 0;
}

/* --- a round ---------------------------------------------------------------------------------------- */

static TimestampTz
serve(AqRegistration *r)
{
	TimestampTz now = GetCurrentTimestamp();

	if (r->next_at > now)
		return r->next_at;
	if (r->group_end > now)
		return r->group_end;
	return r->queue_id != 0 ? serve_queue(r) : serve_postings(r);
}

/* The same; an error is recorded, and delays only this registration. */
static TimestampTz
try_to_serve(AqRegistration *r)
{
	MemoryContext context = CurrentMemoryContext;
	volatile TimestampTz next = 0;

	PG_TRY();
	{
		next = serve(r);
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		AbortCurrentTransaction();
		aq_callback_over();
		SetUserIdAndSecContext(GetSessionUserId(), 0);
		MemoryContextSwitchTo(context);
		next = fail(r, error->message);
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	return next;
}

/*
 * Serves all registrations of the role; returns when one of them has something
 * to do again, 0 if none has before a message comes.
 */
TimestampTz
aq_delivery_round(void)
{
	static int	known;
	MemoryContext old = CurrentMemoryContext;
	MemoryContext context = AllocSetContextCreate(TopMemoryContext, "pgaq notifier round", ALLOCSET_DEFAULT_SIZES);
	MemoryContext own = AllocSetContextCreate(context, "pgaq notifier registration", ALLOCSET_DEFAULT_SIZES);
	TimestampTz next = 0;
	List	   *list = NIL;
	ListCell   *lc;

	if (begin())
	{
		MemoryContextSwitchTo(context);
		list = read_registrations(0);
		commit();
	}
	else
		next = GetCurrentTimestamp() + LOCKED_AGAIN;
	if (list_length(list) < known)
		aq_notified_keep_only(list);
	known = list_length(list);
	foreach(lc, list)
	{
		TimestampTz at;

		if (aq_notifier_pool_yields())
			break;
		MemoryContextSwitchTo(turn = own);
		at = try_to_serve(lfirst(lc));
		if (at != 0 && (next == 0 || at < next))
			next = at;
		MemoryContextReset(own);
	}
	turn = NULL;
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return next;
}
