/*-------------------------------------------------------------------------
 *
 * jms_receive.c
 *	  CALL aq_jms.receive, aq_jms.commit and aq_jms.browse: messages for the
 *	  Jakarta Messaging provider.
 *
 * A session of the provider has several consumers, each with its queue and
 * condition, and one connection.  One call acknowledges what the session has
 * finished, and takes from the first of its sources that has messages; it waits
 * for all of them.  The acknowledgements must not wait with it: outside a
 * transaction block they are committed before.
 *
 * The result is one binary value.  jms/README.md describes it.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "jms/jms_private.h"

#include "access/detoast.h"
#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "libpq/pqformat.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/json.h"
#include "utils/jsonb.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/typcache.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

/* the arguments of aq_jms.receive; the last one is the result */
enum
{
	ARG_QUEUES, ARG_CONSUMERS, ARG_CONDITIONS, ARG_MAX_MESSAGES, ARG_TIMEOUT, ARG_LEASE, ARG_ACKNOWLEDGE,
	ARG_MAX_BYTES = ARG_ACKNOWLEDGE + 4
};

/* the arguments of aq_jms.commit behind those of aq_jms.send */
enum
{
	COMMIT_QUEUE = 2, COMMIT_CONSUMER, COMMIT_CONDITION, COMMIT_MAX_MESSAGES, COMMIT_LEASE, COMMIT_MAX_BYTES,
	COMMIT_AFFINITY
};

/* the arguments of aq_jms.browse */
enum
{
	BROWSE_QUEUE, BROWSE_CONSUMER, BROWSE_CONDITION, BROWSE_AFTER, BROWSE_MAX_MESSAGES, BROWSE_MAX_BYTES
};

/* the columns of aq.jms_message */
enum
{
	FIELD_TYPE, FIELD_HEADERS, FIELD_PROPERTIES, FIELD_PROPERTY_TYPES, FIELD_TEXT, FIELD_BYTES, FIELDS
};

/* the columns of a message in the result */
#define COLUMNS 9

/* --- the result --------------------------------------------------------------------------- */

/* Messages as they are written: behind the room for the head of the result. */
typedef struct Writing
{
	StringInfoData result;		/* a bytea */
	int			head;			/* where the numbers of source and messages will be */
	int			n;
	int64		bytes;			/* of the payloads so far */
	int64		max_bytes;		/* 0: no limit */
	bool		full;			/* the messages from here on are written without payload */
	Oid			payload_type;	/* of the current queue */
	Oid			message_type;	/* aq.jms_message */
	TupleDesc	desc;			/* of message_type */
	MemoryContext context;		/* for one message */
} Writing;

/* room for messages that a result begins with, at most */
#define LARGEST_GUESS (256 * 1024)

/* how large the last result was: the next one is likely to be as large */
static int	last_size = 1024;

/*
 * Lets the C library keep the memory of a result, and of the server's copies of
 * it, for the next call.  By default it returns blocks of this size to the
 * operating system, which clears each page again when it is used.  Then a call
 * that receives 100 messages of 512 bytes has 70 page faults instead of none, and
 * costs the server 4.9 instead of 2.3 microseconds per message.
 */
static void
keep_memory(void)
{
#ifdef __GLIBC__
	static bool kept;

	if (!kept)
	{
		kept = true;
		(void) mallopt(M_MMAP_THRESHOLD, 2 * LARGEST_GUESS);
		(void) mallopt(M_TRIM_THRESHOLD, 8 * LARGEST_GUESS);
	}
#endif
}

static void
begin_writing(Writing *writing)
{
	keep_memory();
	memset(writing, 0, sizeof(Writing));
	writing->message_type = aq_payload_jms_type();
	writing->desc = lookup_rowtype_tupdesc_copy(writing->message_type, -1);
	writing->context = AllocSetContextCreate(CurrentMemoryContext, "pgaq message", ALLOCSET_DEFAULT_SIZES);
}

/* Begins the result with the leases that are not acknowledged. */
static void
write_head(Writing *writing, const int *undone, int nundone)
{
	pq_begintypsend(&writing->result);
	pq_sendint32(&writing->result, nundone);
	for (int i = 0; i < nundone; i++)
		pq_sendint32(&writing->result, undone[i]);
	writing->head = writing->result.len;
	pq_sendint64(&writing->result, 0);
}

/* The queue's payloads must be messages, or be made messages easily. */
static void
set_payload_type(Writing *writing, const AqQueue *queue)
{
	writing->payload_type = queue->payload_type;
	if (queue->payload_type == writing->message_type || queue->payload_type == TEXTOID ||
		queue->payload_type == JSONBOID || queue->payload_type == BYTEAOID)
		return;
	ereport(ERROR,
			aq_error(AQ_ERR_PAYLOAD_TYPE, "queue \"%s\" holds %s, not aq.jms_message", queue->name,
					 format_type_be(queue->payload_type)),
			errhint("Text, jsonb and bytea are also read as messages."));
}

/* The headers of a message that has only those of the server. */
static Datum
make_headers(const AqMessage *m)
{
	StringInfoData headers;

	initStringInfo(&headers);
	appendStringInfoChar(&headers, '{');
	if (m->correlation != NULL)
	{
		appendStringInfoString(&headers, "\"correlation_id\": ");
		escape_json(&headers, text_to_cstring((text *) m->correlation));
	}
	appendStringInfoChar(&headers, '}');
	return DirectFunctionCall1(jsonb_in, CStringGetDatum(headers.data));
}

/* A message of another payload type, or without payload: its properties are those of the server. */
static Datum
make_message(const Writing *writing, const AqMessage *m)
{
	Datum		values[FIELDS] = {0};
	bool		nulls[FIELDS] = {true, true, true, true, true, true};
	bool		bytes = writing->payload_type == BYTEAOID;
	Jsonb	   *properties;

	values[FIELD_TYPE] = CStringGetTextDatum(m->payload_null ? "message" : bytes ? "bytes" : "text");
	nulls[FIELD_TYPE] = false;
	values[FIELD_HEADERS] = make_headers(m);
	nulls[FIELD_HEADERS] = false;
	properties = (Jsonb *) m->properties;
	if (m->key != NULL)
		properties = aq_message_key_into_properties(properties != NULL ? DatumGetJsonbP(PointerGetDatum(properties)) : NULL, m->key);
	values[FIELD_PROPERTIES] = JsonbPGetDatum(properties);
	nulls[FIELD_PROPERTIES] = properties == NULL;
	if (!m->payload_null)
	{
		int			field = bytes ? FIELD_BYTES : FIELD_TEXT;

		values[field] = m->payload;
		if (writing->payload_type == JSONBOID)
			values[field] = DirectFunctionCall1(textin, DirectFunctionCall1(jsonb_out, m->payload));
		nulls[field] = false;
	}
	return HeapTupleGetDatum(heap_form_tuple(writing->desc, values, nulls));
}

static void
put_column(StringInfo row, Oid type, const void *data, int length)
{
	pq_sendint32(row, type);
	pq_sendint32(row, data == NULL ? -1 : length);
	if (data != NULL)
		appendBinaryStringInfo(row, data, length);
}

static void
put_int(StringInfo row, int32 value)
{
	pq_sendint32(row, INT4OID);
	pq_sendint32(row, sizeof(int32));
	pq_sendint32(row, value);
}

static void
put_number(StringInfo row, Oid type, int64 value, bool isnull)
{
	pq_sendint32(row, type);
	pq_sendint32(row, isnull ? -1 : (int32) sizeof(int64));
	if (!isnull)
		pq_sendint64(row, value);
}

static void
put_text(StringInfo row, Oid type, const char *string, int length)
{
	pq_sendint32(row, type);
	aq_send_counted_text(row, string, length);
}

/* Marks where the length of what follows will be. */
static int
begin_length(StringInfo row)
{
	pq_sendint32(row, 0);
	return row->len;
}

static void
end_length(StringInfo row, int begin)
{
	uint32		length = pg_hton32((uint32) (row->len - begin));

	memcpy(row->data + begin - sizeof(length), &length, sizeof(length));
}

/* A jsonb is sent as its version and text. */
static void
put_jsonb(StringInfo row, Datum value)
{
	Jsonb	   *jsonb = DatumGetJsonbP(value);
	char	   *string = JsonbToCString(NULL, &jsonb->root, VARSIZE(jsonb));
	int			begin;

	pq_sendint32(row, JSONBOID);
	begin = begin_length(row);
	pq_sendint8(row, 1);
	pq_sendtext(row, string, strlen(string));
	end_length(row, begin);
}

static void
put_field(StringInfo row, Oid type, Datum value, bool isnull)
{
	struct varlena *bytes;

	if (isnull)
	{
		put_column(row, type, NULL, 0);
		return;
	}
	if (type == JSONBOID)
	{
		put_jsonb(row, value);
		return;
	}
	bytes = PG_DETOAST_DATUM_PACKED(value);
	if (type == TEXTOID)
		put_text(row, type, VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes));
	else
		put_column(row, type, VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes));
}

/* A message, as record_send writes it. */
static void
put_message(const Writing *writing, StringInfo row, Datum message)
{
	HeapTupleHeader header = DatumGetHeapTupleHeader(message);
	HeapTupleData tuple = {.t_len = HeapTupleHeaderGetDatumLength(header), .t_data = header};
	Datum		values[FIELDS];
	bool		nulls[FIELDS];
	int			begin;

	heap_deform_tuple(&tuple, writing->desc, values, nulls);
	pq_sendint32(row, writing->message_type);
	begin = begin_length(row);
	pq_sendint32(row, FIELDS);
	for (int i = 0; i < FIELDS; i++)
		put_field(row, TupleDescAttr(writing->desc, i)->atttypid, values[i], nulls[i]);
	end_length(row, begin);
}

/*
 * Is the payload left out?  How large the messages are is not known before they
 * are taken.  The first one is always written, so that each call gets further;
 * behind the first one that is left out all are, so that the order stays.
 */
static bool
leaves_out(Writing *writing, const AqMessage *m)
{
	if (writing->max_bytes == 0)
		return false;
	if (!m->payload_null)
		writing->bytes += toast_raw_datum_size(m->payload) - VARHDRSZ;
	writing->full |= writing->n > 0 && writing->bytes > writing->max_bytes;
	return writing->full;
}

/* As record_send writes a row. */
static void
put_row(Writing *writing, StringInfo row, const AqMessage *m)
{
	bool		is_message = writing->payload_type == writing->message_type && !m->payload_null;

	pq_sendint32(row, COLUMNS);
	put_column(row, UUIDOID, m->id.data, UUID_LEN);
	put_number(row, INT8OID, m->receipt, false);
	put_int(row, m->attempts);
	put_int(row, m->priority);
	put_number(row, TIMESTAMPTZOID, m->enqueue_time, false);
	put_number(row, TIMESTAMPTZOID, m->ready_at, m->ready_at == 0);
	put_number(row, TIMESTAMPTZOID, m->expires_at, m->expires_at == 0);
	put_field(row, TEXTOID, PointerGetDatum(m->sender), m->sender == NULL);
	if (leaves_out(writing, m))
		put_column(row, writing->message_type, NULL, 0);
	else
		put_message(writing, row, is_message ? m->payload : make_message(writing, m));
}

static void
write_message(void *arg, const AqMessage *m, int delivery)
{
	Writing    *writing = arg;
	MemoryContext old = MemoryContextSwitchTo(writing->context);
	int			begin;

	if (writing->n == 0)
		enlargeStringInfo(&writing->result, last_size);
	begin = begin_length(&writing->result);
	put_row(writing, &writing->result, m);
	end_length(&writing->result, begin);
	writing->n++;
	MemoryContextSwitchTo(old);
	MemoryContextReset(writing->context);
}

/* source: the number of the source that the messages are from; -1: there are none */
static bytea *
end_writing(Writing *writing, int source)
{
	uint32		numbers[] = {pg_hton32((uint32) source), pg_hton32((uint32) writing->n)};

	memcpy(writing->result.data + writing->head, numbers, sizeof(numbers));
	last_size = Min(Max(writing->result.len, 1024), LARGEST_GUESS);
	return pq_endtypsend(&writing->result);
}

/* --- aq_jms.receive ------------------------------------------------------------------------ */

typedef struct Receiving
{
	int			n;				/* number of sources */
	char	  **queues;
	char	  **consumers;		/* elements may be NULL */
	text	  **conditions;		/* elements may be NULL */
	bool	   *selective;
	AqSeen	   *seen;
	int		   *max;
	int64		lease;			/* 0: none */
	int64		timeout;		/* -1: none */
	AqTimeLimits limits;		/* while the call waits */
	AqWaitTaken taken;			/* from which source, and how many messages; -1: nothing yet */
	MemoryContext context;		/* for one try of one source: a wait can try them millions of times */
	Writing		writing;
} Receiving;

static void
refuse_number(const char *name, int found, int expected)
{
	ereport(ERROR,
			aq_error(AQ_ERR_OPTION_INVALID, "\"%s\" has %d elements, but \"%s\" has %d", name, found, "queue_names", expected));
}

/* The elements of an array of n elements, or n nulls if it is null; elements are copied. */
static text **
read_texts(FunctionCallInfo fcinfo, int arg, const char *name, int n)
{
	text	  **texts = palloc0(Max(n, 1) * sizeof(text *));
	Datum	   *values;
	bool	   *nulls;
	int			found;

	if (PG_ARGISNULL(arg))
		return texts;
	aq_args_elements(PG_GETARG_ARRAYTYPE_P(arg), &values, &nulls, &found);
	if (found != n)
		refuse_number(name, found, n);
	for (int i = 0; i < n; i++)
		if (!nulls[i])
			texts[i] = DatumGetTextPCopy(values[i]);
	return texts;
}

static char **
read_names(FunctionCallInfo fcinfo, int arg, const char *name, int n)
{
	text	  **texts = read_texts(fcinfo, arg, name, n);
	char	  **names = palloc0(Max(n, 1) * sizeof(char *));

	for (int i = 0; i < n; i++)
		if (texts[i] != NULL)
			names[i] = text_to_cstring(texts[i]);
	return names;
}

static void
read_limits(FunctionCallInfo fcinfo, Receiving *receiving)
{
	Datum	   *values;
	bool	   *nulls;
	int			found;

	aq_args_require(fcinfo, ARG_MAX_MESSAGES, "max_messages");
	aq_args_elements(PG_GETARG_ARRAYTYPE_P(ARG_MAX_MESSAGES), &values, &nulls, &found);
	if (found != receiving->n)
		refuse_number("max_messages", found, receiving->n);
	receiving->max = palloc(Max(found, 1) * sizeof(int));
	for (int i = 0; i < found; i++)
	{
		if (nulls[i])
			ereport(ERROR, aq_error(AQ_ERR_ARGUMENT_NULL, "\"%s\" must not contain nulls", "max_messages"));
		receiving->max[i] = DatumGetInt32(values[i]);
	}
}

/* The limit of payloads of a call; 0: none. */
static int64
read_max_bytes(FunctionCallInfo fcinfo, int arg)
{
	int			limit = PG_ARGISNULL(arg) ? 0 : PG_GETARG_INT32(arg);

	if (!PG_ARGISNULL(arg) && limit < 1)
		ereport(ERROR, aq_error(AQ_ERR_OPTION_INVALID, "max_bytes must be positive, not %d", limit));
	return limit;
}

/* How long the messages are leased; 0: not at all. */
static int64
read_lease(FunctionCallInfo fcinfo, int arg)
{
	int64		lease;

	if (PG_ARGISNULL(arg))
		return 0;
	lease = aq_interval_option(PG_GETARG_DATUM(arg), AQ_ERR_OPTION_INVALID, "lease");
	if (lease <= 0)
		ereport(ERROR, aq_error(AQ_ERR_OPTION_INVALID, "\"lease\" must be positive"));
	return lease;
}

/* The arguments that the wait needs are copied: there is no snapshot for detoasting then. */
static void
read_sources(FunctionCallInfo fcinfo, Receiving *receiving)
{
	int			n;

	aq_args_require(fcinfo, ARG_QUEUES, "queue_names");
	n = ArrayGetNItems(ARR_NDIM(PG_GETARG_ARRAYTYPE_P(ARG_QUEUES)), ARR_DIMS(PG_GETARG_ARRAYTYPE_P(ARG_QUEUES)));
	receiving->n = n;
	receiving->queues = read_names(fcinfo, ARG_QUEUES, "queue_names", n);
	receiving->consumers = read_names(fcinfo, ARG_CONSUMERS, "consumers", n);
	receiving->conditions = read_texts(fcinfo, ARG_CONDITIONS, "conditions", n);
	receiving->selective = palloc0(Max(n, 1) * sizeof(bool));
	receiving->seen = palloc0(Max(n, 1) * sizeof(AqSeen));
	for (int i = 0; i < n; i++)
	{
		if (receiving->queues[i] == NULL)
			ereport(ERROR, aq_error(AQ_ERR_ARGUMENT_NULL, "\"%s\" must not contain nulls", "queue_names"));
		receiving->selective[i] = receiving->conditions[i] != NULL;
	}
	read_limits(fcinfo, receiving);
	receiving->timeout = PG_ARGISNULL(ARG_TIMEOUT) ? -1 : aq_interval_to_us(PG_GETARG_DATUM(ARG_TIMEOUT));
	receiving->lease = read_lease(fcinfo, ARG_LEASE);
}

/* Tries one source. */
static bool
take_from(Receiving *receiving, int source)
{
	AqDequeue	call = {
		.queue = receiving->queues[source],
		.consumer = receiving->consumers[source],
		.condition = receiving->conditions[source],
		.max = receiving->max[source],
		.lease = receiving->lease,
		.ends = true,
		.mode = AQ_MODE_REMOVE,
		.delivery = AQ_PERSISTENT,
		.patient = receiving->timeout < 0,
		.seen = &receiving->seen[source],
		.emit = write_message,
		.arg = &receiving->writing
	};

	set_payload_type(&receiving->writing, aq_catalog_get_for(call.queue, call.consumer, 0));
	call.payload_type = receiving->writing.payload_type;
	return aq_dequeue_now(&call);
}

/* Tries the sources, with a snapshot of its own. */
static void
take(void *arg)
{
	Receiving  *receiving = arg;

	CommandCounterIncrement();
	PushActiveSnapshot(GetTransactionSnapshot());
	for (int i = 0; i < receiving->n && receiving->taken.pair < 0; i++)
	{
		MemoryContext old = MemoryContextSwitchTo(receiving->context);

		if (take_from(receiving, i))
		{
			receiving->taken.pair = i;
			receiving->taken.messages = receiving->writing.n;
		}
		MemoryContextSwitchTo(old);
		MemoryContextReset(receiving->context);
	}
	PopActiveSnapshot();
}

static bool
attempt(void *arg)
{
	Receiving  *receiving = arg;

	aq_wait_call_ahead(take, receiving);
	return receiving->taken.pair >= 0;
}

static void
begin_receiving(Receiving *receiving, FunctionCallInfo fcinfo, int arg_max_bytes)
{
	begin_writing(&receiving->writing);
	receiving->writing.max_bytes = read_max_bytes(fcinfo, arg_max_bytes);
	receiving->context = AllocSetContextCreate(CurrentMemoryContext, "pgaq source", ALLOCSET_DEFAULT_SIZES);
}

/* Acknowledges, and takes what is there; returns the number of leases that are not acknowledged. */
static int
acknowledge_and_take(Receiving *receiving, const AqJmsLease *leases, int nleases, int *undone)
{
	AQ_TIMED(AQ_TIME_DEQUEUE);
	AqLeaseOptions options = {.mode = AQ_MODE_ACKNOWLEDGE};
	int			nundone = aq_jms_lease_settle("aq_jms.receive()", &options, leases, nleases, undone);

	write_head(&receiving->writing, undone, nundone);
	(void) attempt(receiving);
	/* once, however many sources it has and attempts it makes; without sources it only acknowledges */
	if (receiving->n > 0)
		aq_stat_add(AQ_STAT_DEQUEUE_CALLS, 1);
	return nundone;
}

/* Is a lease in use by another transaction?  Then the call does not wait: the caller acknowledges it again first. */
static bool
are_busy(const int *undone, int nundone)
{
	for (int i = 0; i < nundone; i++)
		if (undone[i] < 0)
			return true;
	return false;
}

/* While the call waits: see wait_and_take. */
static bool
attempt_in_wait(void *arg)
{
	Receiving  *receiving = arg;
	bool		taken;

	aq_compat_resume_limits(&receiving->limits);
	taken = attempt(receiving);
	aq_compat_suspend_limits(&receiving->limits);
	return taken;
}

/*
 * Waits as long as the caller says: the time does not count for statement_timeout
 * and, outside a transaction block, transaction_timeout.  That of attempts does,
 * which may call functions of users.
 */
static void
wait_and_take(Receiving *receiving)
{
	AQ_TIMED(AQ_TIME_DEQUEUE);

	aq_compat_suspend_limits(&receiving->limits);
	PG_TRY();
	{
		(void) aq_wait_released_any(receiving->n, receiving->queues, receiving->consumers, receiving->selective,
									receiving->max, receiving->timeout, attempt_in_wait, receiving, &receiving->taken);
	}
	PG_FINALLY();
	{
		aq_compat_resume_limits(&receiving->limits);
	}
	PG_END_TRY();
}

PG_FUNCTION_INFO_V1(aq_jms_receive);
Datum
aq_jms_receive(PG_FUNCTION_ARGS)
{
	Receiving	receiving = {.taken.pair = -1};
	int			nleases,
				nundone;
	int		   *undone;
	AqJmsLease *leases;
	Datum		result;
	bool		isnull = false;

	aq_session_require_write("aq_jms.receive()");
	read_sources(fcinfo, &receiving);
	leases = aq_jms_lease_read(fcinfo, ARG_ACKNOWLEDGE, &nleases);
	undone = palloc(Max(nleases, 1) * sizeof(int));
	begin_receiving(&receiving, fcinfo, ARG_MAX_BYTES);
	nundone = acknowledge_and_take(&receiving, leases, nleases, undone);
	if (receiving.taken.pair < 0 && receiving.n > 0 && receiving.timeout != 0 && !are_busy(undone, nundone))
	{
		if (nundone < nleases && aq_sql_may_commit(fcinfo))
			aq_sql_commit();
		wait_and_take(&receiving);
	}
	result = PointerGetDatum(end_writing(&receiving.writing, receiving.taken.pair));
	PG_RETURN_DATUM(aq_rows_one(fcinfo, &result, &isnull));
}

/* --- aq_jms.commit -------------------------------------------------------------------------- */

/* Takes what is there from the one source that the arguments name. */
static void
take_ahead(Receiving *receiving, FunctionCallInfo fcinfo)
{
	AQ_TIMED(AQ_TIME_DEQUEUE);
	char	   *queue = aq_args_name(fcinfo, COMMIT_QUEUE, "queue_name");
	char	   *consumer = aq_args_name_or_null(fcinfo, COMMIT_CONSUMER, "consumer");
	text	   *condition = PG_ARGISNULL(COMMIT_CONDITION) ? NULL : PG_GETARG_TEXT_PP(COMMIT_CONDITION);
	int			max;

	aq_args_require(fcinfo, COMMIT_MAX_MESSAGES, "max_messages");
	max = PG_GETARG_INT32(COMMIT_MAX_MESSAGES);
	receiving->n = 1;
	receiving->queues = &queue;
	receiving->consumers = &consumer;
	receiving->conditions = &condition;
	receiving->max = &max;
	receiving->lease = read_lease(fcinfo, COMMIT_LEASE);
	begin_receiving(receiving, fcinfo, COMMIT_MAX_BYTES);
	write_head(&receiving->writing, NULL, 0);
	(void) attempt(receiving);
	aq_stat_add(AQ_STAT_DEQUEUE_CALLS, 1);
}

PG_FUNCTION_INFO_V1(aq_jms_receive_commit);
Datum
aq_jms_receive_commit(PG_FUNCTION_ARGS)
{
	Receiving	receiving = {.taken.pair = -1};

	aq_jms_send_arguments(fcinfo, "aq_jms.commit()", COMMIT_AFFINITY);
	take_ahead(&receiving, fcinfo);
	PG_RETURN_BYTEA_P(end_writing(&receiving.writing, receiving.taken.pair));
}

/* --- aq_jms.browse -------------------------------------------------------------------------- */

PG_FUNCTION_INFO_V1(aq_jms_receive_browse);
Datum
aq_jms_receive_browse(PG_FUNCTION_ARGS)
{
	AQ_TIMED(AQ_TIME_DEQUEUE);
	Writing		writing;
	char	   *queue = aq_args_name(fcinfo, BROWSE_QUEUE, "queue_name");
	char	   *consumer = aq_args_name_or_null(fcinfo, BROWSE_CONSUMER, "consumer");
	AqDequeue	call = {
		.queue = queue,
		.consumer = consumer,
		.mode = AQ_MODE_BROWSE,
		.delivery = AQ_PERSISTENT,
		.emit = write_message,
		.arg = &writing
	};

	aq_args_require(fcinfo, BROWSE_MAX_MESSAGES, "max_messages");
	call.max = PG_GETARG_INT32(BROWSE_MAX_MESSAGES);
	if (!PG_ARGISNULL(BROWSE_CONDITION))
		call.condition = PG_GETARG_TEXT_PP(BROWSE_CONDITION);
	if (!PG_ARGISNULL(BROWSE_AFTER))
		call.after = PG_GETARG_UUID_P(BROWSE_AFTER);
	begin_writing(&writing);
	writing.max_bytes = read_max_bytes(fcinfo, BROWSE_MAX_BYTES);
	write_head(&writing, NULL, 0);
	set_payload_type(&writing, aq_catalog_get_for(queue, consumer, 0));
	call.payload_type = writing.payload_type;
	(void) aq_dequeue_now(&call);
	aq_stat_add(AQ_STAT_DEQUEUE_CALLS, 1);
	PG_RETURN_BYTEA_P(end_writing(&writing, writing.n > 0 ? 0 : -1));
}
