/*-------------------------------------------------------------------------
 *
 * jms_send.c
 *	  aq_jms.send: the messages of a session of the Jakarta Messaging provider,
 *	  and the acknowledgements of the transaction that sends them.
 *	  aq_jms.enqueue: messages that are not in its binary form.
 *
 * The arguments of aq_jms.send are one binary value each, which docs/aq-jms.md describes: a commit of the
 * provider is one statement, and the server reads it without arrays and rows of
 * the executor.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "jms/jms_private.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "libpq/pqformat.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/typcache.h"

/* the columns of aq.jms_message, in the order of the type */
static const Oid field_types[] = {TEXTOID, JSONBOID, JSONBOID, JSONBOID, TEXTOID, BYTEAOID};

#define FIELDS ((int) lengthof(field_types))
#define FIELD_HEADERS 1

/* the least size of a message, so that a wrong number does not allocate without limit */
#define MESSAGE_LEAST (FIELDS * (int) sizeof(int32))

/* --- reading ------------------------------------------------------------------------------- */

static StringInfoData
read_bytes(FunctionCallInfo fcinfo, int arg)
{
	bytea	   *value = PG_GETARG_BYTEA_PP(arg);
	StringInfoData in = {.data = VARDATA_ANY(value), .len = VARSIZE_ANY_EXHDR(value), .maxlen = -1};

	return in;
}

/* A text, as a string of the server's encoding; NULL: null. */
static char *
read_string(StringInfo in, int *length)
{
	int			n = (int) pq_getmsgint(in, 4);

	*length = 0;
	return n < 0 ? NULL : pq_getmsgtext(in, n, length);
}

static char *
read_name(StringInfo in, const char *what)
{
	int			length;
	char	   *name = read_string(in, &length);

	if (name == NULL)
		ereport(ERROR, aq_error(AQ_ERR_ARGUMENT_NULL, "\"%s\" must not be null", what));
	return name;
}

static text *
read_text(StringInfo in)
{
	int			length;
	char	   *string = read_string(in, &length);

	return string == NULL ? NULL : cstring_to_text_with_len(string, length);
}

static int
read_count(StringInfo in, int least)
{
	int			n = (int) pq_getmsgint(in, 4);

	if (n < 0 || n > (in->len - in->cursor) / least)
		ereport(ERROR,
				(errcode(ERRCODE_PROTOCOL_VIOLATION),
				 errmsg("insufficient data left in message")));
	return n;
}

static Interval *
read_interval(StringInfo in)
{
	int64		milliseconds = pq_getmsgint64(in);
	Interval   *interval;

	if (milliseconds == 0)
		return NULL;
	if (milliseconds > PG_INT64_MAX / 1000 || milliseconds < PG_INT64_MIN / 1000)
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("interval out of range")));
	interval = palloc0(sizeof(Interval));
	interval->time = milliseconds * 1000;
	return interval;
}

static Datum
read_field(StringInfo in, Oid type, bool *isnull)
{
	int			length;
	char	   *string;

	if (type == BYTEAOID)
	{
		length = (int) pq_getmsgint(in, 4);
		*isnull = length < 0;
		return *isnull ? (Datum) 0 : PointerGetDatum(cstring_to_text_with_len(pq_getmsgbytes(in, length), length));
	}
	string = read_string(in, &length);
	*isnull = string == NULL;
	if (*isnull)
		return (Datum) 0;
	return type == TEXTOID ? PointerGetDatum(cstring_to_text_with_len(string, length))
		: DirectFunctionCall1(jsonb_in, CStringGetDatum(string));
}

/* gone: see jms_gone.c */
static Datum
read_message(StringInfo in, const char *queue, TupleDesc desc, bool *gone)
{
	Datum		values[FIELDS];
	bool		nulls[FIELDS];

	for (int i = 0; i < FIELDS; i++)
		values[i] = read_field(in, field_types[i], &nulls[i]);
	*gone = !nulls[FIELD_HEADERS] && aq_jms_gone(queue, DatumGetJsonbP(values[FIELD_HEADERS]));
	return HeapTupleGetDatum(heap_form_tuple(desc, values, nulls));
}

/* --- arguments ----------------------------------------------------------------------------- */

static struct varlena *
varlena_arg(FunctionCallInfo fcinfo, int arg)
{
	return PG_ARGISNULL(arg) ? NULL : (struct varlena *) PG_GETARG_VARLENA_PP(arg);
}

/*
 * The number that chooses the shard.  Without a name it is that of messages without keys:
 * Jakarta Messaging promises the order of a session's messages, whatever their groups,
 * which are their keys.  Empty: the key decides.
 */
static uint64
affinity_of(const text *name, int64 producer)
{
	if (name == NULL)
		return producer != 0 ? (uint64) producer : (uint64) aq_schema_session_number();
	return VARSIZE_ANY_EXHDR(name) == 0 ? 0 : aq_producer_affinity(name);
}

/* --- sending ------------------------------------------------------------------------------- */

/* The properties that all messages of a call share. */
typedef struct Sending
{
	const char *command;
	const text *affinity;
	bool		skip_gone;		/* messages to temporary destinations that have ended are no error */
	Oid			type;
	TupleDesc	desc;
} Sending;

/* The messages of a group that are to be enqueued; returns their number. */
static int
read_messages(const Sending *sending, StringInfo in, const char *queue, int n, Datum *payloads)
{
	int			kept = 0;

	for (int i = 0; i < n; i++)
	{
		bool		gone;

		CHECK_FOR_INTERRUPTS();
		payloads[kept] = read_message(in, queue, sending->desc, &gone);
		if (!gone)
			kept++;
		else if (!sending->skip_gone)
			ereport(ERROR,
					aq_error(AQ_ERR_QUEUE_UNDEFINED, "the temporary destination in queue \"%s\" does not exist", queue),
					errdetail("It was deleted, or the connection that created it has ended."));
	}
	return kept;
}

/* Messages of one queue with the same options. */
static void
send_group(const Sending *sending, StringInfo in)
{
	AqEnqueue	call = {.command = sending->command, .payload_type = sending->type};
	int			length,
				n,
				kept;
	Datum	   *payloads;

	call.queue = read_name(in, "queue_name");
	call.priority = (int) pq_getmsgint(in, 4);
	call.delay = read_interval(in);
	call.expiration = read_interval(in);
	call.correlation = (struct varlena *) read_text(in);
	call.producer = aq_producer_named(read_text(in));
	call.affinity = affinity_of(sending->affinity, call.producer);
	call.delivery_mode = read_string(in, &length);
	n = read_count(in, MESSAGE_LEAST);
	payloads = palloc(n * sizeof(Datum) + 1);
	kept = read_messages(sending, in, call.queue, n, payloads);
	/* with a temporary destination, its queue can be gone */
	if (kept > 0 || n == 0)
		(void) aq_enqueue_messages(&call, kept, payloads, palloc0(kept * sizeof(bool) + 1));
}

static void
send_all(Sending *sending, StringInfo in)
{
	sending->type = aq_payload_jms_type();
	sending->desc = lookup_rowtype_tupdesc_copy(sending->type, -1);
	while (in->cursor < in->len)
	{
		CHECK_FOR_INTERRUPTS();
		send_group(sending, in);
	}
}

/* --- acknowledging ------------------------------------------------------------------------- */

/* All leases; their groups have the queue, the consumer and the receipt in common. */
static AqJmsLease *
read_leases(StringInfo in, int *n)
{
	AqJmsLease *leases = palloc((in->len / UUID_LEN) * sizeof(AqJmsLease) + 1);

	*n = 0;
	while (in->cursor < in->len)
	{
		AqJmsLease	lease = {.queue = read_name(in, "queue_name")};
		int			length,
					members;

		CHECK_FOR_INTERRUPTS();
		lease.consumer = read_string(in, &length);
		lease.receipt = pq_getmsgint64(in);
		members = read_count(in, UUID_LEN);
		for (int i = 0; i < members; i++)
		{
			memcpy(lease.id.data, pq_getmsgbytes(in, UUID_LEN), UUID_LEN);
			leases[(*n)++] = lease;
		}
	}
	return leases;
}

/* A lease that has ended fails the call, and with it what it sends. */
static void
acknowledge_all(const char *command, StringInfo in)
{
	AqLeaseOptions options = {.mode = AQ_MODE_ACKNOWLEDGE};
	int			n,
				nstale;
	AqJmsLease *leases = read_leases(in, &n);

	nstale = aq_jms_lease_settle(command, &options, leases, n, palloc(n * sizeof(int) + 1));
	if (nstale > 0)
	{
		const AqJmsLease *unreachable = aq_jms_lease_find_unreachable(leases, n);

		ereport(ERROR,
				aq_error(AQ_ERR_LEASE_ENDED, "the leases of %d of %d messages have ended", nstale, n),
				errdetail("These messages can be delivered again. Nothing was sent or acknowledged."),
				unreachable ? aq_catalog_hint_dequeue(unreachable->queue) : 0);
	}
}

/*
 * The first two arguments of the command: what to send, and what to acknowledge.
 * more: the number of the first of the others, without which a catalog of the version
 * before calls.
 */
void
aq_jms_send_arguments(FunctionCallInfo fcinfo, const char *command, int more)
{
	Sending		sending = {.command = command};
	StringInfoData in;

	aq_session_require_write(command);
	/* first, because this makes room in a full queue */
	if (!PG_ARGISNULL(1))
	{
		in = read_bytes(fcinfo, 1);
		acknowledge_all(command, &in);
	}
	if (!PG_ARGISNULL(0))
	{
		in = read_bytes(fcinfo, 0);
		if (PG_NARGS() > more)
			sending.affinity = (text *) varlena_arg(fcinfo, more);
		if (PG_NARGS() > more + 1)
			sending.skip_gone = !PG_ARGISNULL(more + 1) && PG_GETARG_BOOL(more + 1);
		send_all(&sending, &in);
	}
}

/* --- messages of any type ------------------------------------------------------------------ */

enum
{
	ARG_QUEUE, ARG_PAYLOADS, ARG_PRIORITY, ARG_DELAY, ARG_EXPIRATION, ARG_CORRELATION, ARG_PRODUCER,
	ARG_AFFINITY, ARG_OPTIONS
};

static const Interval *
interval_arg(FunctionCallInfo fcinfo, int arg)
{
	return PG_ARGISNULL(arg) ? NULL : PG_GETARG_INTERVAL_P(arg);
}

/* aq_jms.enqueue(queue_name, payloads, ...) */
PG_FUNCTION_INFO_V1(aq_jms_send_enqueue);
Datum
aq_jms_send_enqueue(PG_FUNCTION_ARGS)
{
	AqEnqueue	call = {.command = "aq_jms.enqueue()"};
	ArrayType  *array;
	Datum	   *payloads;
	bool	   *nulls;
	int			n;

	aq_args_require(fcinfo, ARG_PAYLOADS, "payloads");
	array = PG_GETARG_ARRAYTYPE_P(ARG_PAYLOADS);
	call.queue = aq_args_name(fcinfo, ARG_QUEUE, "queue_name");
	call.payload_type = ARR_ELEMTYPE(array);
	call.priority = PG_ARGISNULL(ARG_PRIORITY) ? AQ_DEFAULT_PRIORITY : PG_GETARG_INT32(ARG_PRIORITY);
	call.delay = interval_arg(fcinfo, ARG_DELAY);
	call.expiration = interval_arg(fcinfo, ARG_EXPIRATION);
	call.correlation = varlena_arg(fcinfo, ARG_CORRELATION);
	call.producer = aq_producer_named((text *) varlena_arg(fcinfo, ARG_PRODUCER));
	call.affinity = affinity_of((text *) varlena_arg(fcinfo, ARG_AFFINITY), call.producer);
	aq_args_elements(array, &payloads, &nulls, &n);
	if (!PG_ARGISNULL(ARG_OPTIONS))
		call.each = aq_message_options_read(&call, PG_DETOAST_DATUM(PG_GETARG_DATUM(ARG_OPTIONS)), n);
	PG_RETURN_ARRAYTYPE_P(aq_enqueue_ids_to_array(aq_enqueue_messages(&call, n, payloads, nulls), n));
}

/* --- calls --------------------------------------------------------------------------------- */

/* aq_jms.send(messages, acknowledge, affinity, skip_gone) */
PG_FUNCTION_INFO_V1(aq_jms_send);
Datum
aq_jms_send(PG_FUNCTION_ARGS)
{
	aq_jms_send_arguments(fcinfo, "aq_jms.send()", 2);
	PG_RETURN_VOID();
}
