/*-------------------------------------------------------------------------
 *
 * move_away.c
 *	  Messages that go to, and come from, another database: for the parts
 *	  "propagate" and "node".
 *
 * The messages taken from a queue become arrays, which can be stored in a table
 * and sent; the other database puts the same arrays into a queue.  Payloads travel
 * as the text of their types.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "move/move_private.h"

#include "access/detoast.h"
#include "access/transam.h"
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

/* for which messages are lent to another node: until it says what has become of them, microseconds */
#define UNIT_LEASE (INT64CONST(100) * 365 * USECS_PER_DAY)

/* bytes of payloads, as values and as texts, and properties that are taken together */
#define MOST_BYTES (INT64CONST(64) << 20)

/* element types of the arrays, by AqMovedColumn */
static const struct
{
	Oid			type;
	int16		length;
	bool		by_value;
	char		align;
}			columns[AQ_MOVED_COLUMNS] = {
	[AQ_MOVED_PAYLOAD] = {TEXTOID, -1, false, TYPALIGN_INT},
	[AQ_MOVED_PRIORITY] = {INT4OID, sizeof(int32), true, TYPALIGN_INT},
	[AQ_MOVED_TIME] = {INT8OID, sizeof(int64), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE},
	[AQ_MOVED_CORRELATION] = {TEXTOID, -1, false, TYPALIGN_INT},
	[AQ_MOVED_PROPERTIES] = {JSONBOID, -1, false, TYPALIGN_INT},
	[AQ_MOVED_SENDER] = {TEXTOID, -1, false, TYPALIGN_INT},
	[AQ_MOVED_EXCEPTION_QUEUE] = {TEXTOID, -1, false, TYPALIGN_INT},
	[AQ_MOVED_ORIGINAL] = {UUIDOID, UUID_LEN, false, TYPALIGN_CHAR},
	[AQ_MOVED_KEY] = {TEXTOID, -1, false, TYPALIGN_INT},
};

/* --- away ------------------------------------------------------------------------------------ */

typedef struct Leaving
{
	const AqMove *move;
	MemoryContext context;		/* of the batch */
	Oid			payload_type;
	int16		length;			/* of that type */
	bool		by_value;
	int			n;
	int64		bytes;
	bool		keyed;			/* one of them has a key */
	int64		raw_bytes;		/* before payloads are text; also of properties */
	Datum	   *values[AQ_MOVED_COLUMNS];
	bool	   *nulls[AQ_MOVED_COLUMNS];
} Leaving;

static void
set_value(Leaving *leaving, AqMovedColumn column, bool isnull, Datum value)
{
	leaving->values[column][leaving->n] = isnull ? (Datum) 0 : value;
	leaving->nulls[column][leaving->n] = isnull;
}

static void
set_copy(Leaving *leaving, AqMovedColumn column, const struct varlena *value)
{
	set_value(leaving, column, value == NULL, PointerGetDatum(aq_move_copy(value)));
}

/* The sizes are known only when the messages are taken; the caller tries again with fewer. */
static void
check_together(int before, int64 bytes)
{
	if (before > 0 && bytes > MOST_BYTES)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("messages are too large to be sent together"),
				 errhint("They are sent one by one.")));
}

static void
check_size(Leaving *leaving, const AqMessage *m)
{
	if (!m->payload_null && leaving->length == -1)
		leaving->raw_bytes += toast_raw_datum_size(m->payload);
	if (m->properties != NULL)
		leaving->raw_bytes += toast_raw_datum_size(PointerGetDatum(m->properties));
	check_together(leaving->n, leaving->raw_bytes);
}

static void
keep(void *arg, const AqMessage *m, int delivery)
{
	Leaving    *leaving = arg;
	MemoryContext old = MemoryContextSwitchTo(leaving->context);
	pg_uuid_t  *original = palloc(sizeof(pg_uuid_t));
	struct varlena *properties;

	/* a node that holds the message for another one acknowledges it by its id */
	*original = m->original_id != NULL && leaving->move->unit == 0 ? *m->original_id : m->id;
	if (aq_message_body_is_apart(leaving->payload_type, m->payload, m->payload_null))
		ereport(ERROR,
				aq_error(AQ_ERR_FEATURE_UNSUPPORTED, "a message with a large body cannot be propagated to another database"),
				errdetail("Its original id is %s.", DatumGetCString(DirectFunctionCall1(uuid_out, UUIDPGetDatum(original)))));
	check_size(leaving, m);
	/* as text only when no more messages are taken */
	set_value(leaving, AQ_MOVED_PAYLOAD, m->payload_null,
			  m->payload_null ? (Datum) 0 : datumCopy(m->payload, leaving->by_value, leaving->length));
	set_value(leaving, AQ_MOVED_PRIORITY, false, Int32GetDatum(m->priority));
	set_value(leaving, AQ_MOVED_TIME, m->expires_at == 0, TimestampTzGetDatum(m->expires_at));
	set_copy(leaving, AQ_MOVED_CORRELATION, m->correlation);
	/* what another node holds for a while was not propagated */
	properties = leaving->move->unit == 0 ? aq_move_properties(m) : aq_move_copy(m->properties);
	set_value(leaving, AQ_MOVED_PROPERTIES, properties == NULL, PointerGetDatum(properties));
	set_copy(leaving, AQ_MOVED_SENDER, m->sender);
	set_copy(leaving, AQ_MOVED_EXCEPTION_QUEUE, m->exception_queue);
	set_value(leaving, AQ_MOVED_ORIGINAL, false, UUIDPGetDatum(original));
	set_copy(leaving, AQ_MOVED_KEY, m->key);
	leaving->keyed |= m->key != NULL;
	leaving->n++;
	MemoryContextSwitchTo(old);
}

/*
 * With the settings that the other side reads them with.  A text can be ten thousand
 * times larger than the value: numbers of jsonb.
 */
static void
write_payloads(Leaving *leaving)
{
	int			nest = aq_run_as_begin();
	FmgrInfo	output;
	Oid			function;
	bool		is_varlena;

	getTypeOutputInfo(leaving->payload_type, &function, &is_varlena);
	fmgr_info(function, &output);
	for (int i = 0; i < leaving->n; i++)
	{
		Datum	   *payload = &leaving->values[AQ_MOVED_PAYLOAD][i];
		char	   *text;

		CHECK_FOR_INTERRUPTS();
		if (leaving->nulls[AQ_MOVED_PAYLOAD][i])
			continue;
		text = OutputFunctionCall(&output, *payload);
		leaving->bytes += strlen(text);
		check_together(i, leaving->bytes);
		*payload = CStringGetTextDatum(text);
		pfree(text);
	}
	aq_run_as_end(nest);
}

/* The source, which must be one whose messages can leave the database. */
static AqQueue *
source_of(const AqMove *move)
{
	AqQueue    *source = aq_catalog_get_by_id(move->source, true);
	AqConsumer *consumer;

	if (source == NULL)
		ereport(ERROR, aq_error(AQ_ERR_QUEUE_UNDEFINED, "queue number %d does not exist", move->source));
	consumer = move->consumer != NULL ? aq_catalog_consumer(source, move->consumer) : NULL;
	if (consumer != NULL && consumer->transformation != NULL)
		ereport(ERROR,
				aq_error(AQ_ERR_FEATURE_UNSUPPORTED, "messages cannot be transformed on their way to another database"),
				errdetail("Consumer \"%s\" has a transformation.", move->consumer));
	return source;
}

/* The name of a type for another database. */
static const char *
name_of(Oid type)
{
	return format_type_extended(type, -1, FORMAT_TYPE_FORCE_QUALIFY);
}

/* The number of arrays. */
int
aq_move_away_columns(const AqMoved *moved)
{
	return moved->keyed ? AQ_MOVED_COLUMNS : AQ_MOVED_KEY;
}

/*
 * Takes messages, in the current transaction and with the privileges of the
 * current role; at most move->max, of which there are moved->n.
 */
void
aq_move_away_take(const AqMove *move, AqMoved *moved)
{
	AqQueue    *source = source_of(move);
	Leaving		leaving = {.move = move, .context = CurrentMemoryContext, .payload_type = source->payload_type};
	AqDequeue	call = {.queue = pstrdup(source->name), .payload_type = source->payload_type, .consumer = move->consumer,
		.max = move->max, .mode = AQ_MODE_MOVE, .delivery = AQ_PERSISTENT, .emit = keep, .arg = &leaving};

	if (move->unit != 0)
	{
		call.mode = AQ_MODE_REMOVE;
		call.unit = move->unit;
		call.lease = UNIT_LEASE;
	}
	get_typlenbyval(leaving.payload_type, &leaving.length, &leaving.by_value);
	for (int i = 0; i < AQ_MOVED_COLUMNS; i++)
	{
		leaving.values[i] = palloc(move->max * sizeof(Datum));
		leaving.nulls[i] = palloc(move->max * sizeof(bool));
	}
	(void) aq_dequeue_now(&call);
	aq_point("move-taken");
	write_payloads(&leaving);
	*moved = (AqMoved) {.n = leaving.n, .bytes = leaving.bytes, .payload_type = name_of(leaving.payload_type), .keyed = leaving.keyed};
	for (int i = 0; i < aq_move_away_columns(moved) && leaving.n > 0; i++)
	{
		int			lower = 1;

		/* times are kept as the type that they are */
		moved->columns[i] = PointerGetDatum(construct_md_array(leaving.values[i], leaving.nulls[i], 1, &leaving.n, &lower,
															   i == AQ_MOVED_TIME ? TIMESTAMPTZOID : columns[i].type,
															   columns[i].length, columns[i].by_value, columns[i].align));
	}
}

/* --- here --------------------------------------------------------------------------------------- */

typedef struct Coming
{
	const AqMove *move;
	int32		target;
	Oid			payload_type;
	Oid			reader;			/* the role that reads payloads, see aq_enqueue_reading_role(); invalid: the current
								 * one */
	bool		multi;
	int			n;
	bool		sharded;
	bool		keyed;
	Datum	   *values[AQ_MOVED_COLUMNS];
	bool	   *nulls[AQ_MOVED_COLUMNS];
} Coming;

static void
read_arrays(Coming *coming, const AqMoved *moved)
{
	for (int i = 0; i < aq_move_away_columns(moved); i++)
	{
		ArrayType  *array = DatumGetArrayTypeP(moved->columns[i]);
		int			n;

		deconstruct_array(array, columns[i].type, columns[i].length, columns[i].by_value, columns[i].align,
						  &coming->values[i], &coming->nulls[i], &n);
		if (ARR_NDIM(array) > 1 || n != moved->n)
			ereport(ERROR,
					aq_error(AQ_ERR_OPTION_INVALID, "the arrays must have one dimension and the same number of elements"));
	}
}

static void
read_target(Coming *coming, const AqMoved *moved)
{
	AqQueue    *target = aq_catalog_get(coming->move->destination, AQ_RIGHT_ENQUEUE);

	coming->target = target->id;
	coming->payload_type = target->payload_type;
	coming->reader = target->payload_type >= FirstNormalObjectId ? aq_enqueue_reading_role(target) : InvalidOid;
	coming->multi = target->multi;
	coming->sharded = aq_queue_is_sharded(target);
	if (target->exception)
		ereport(ERROR, aq_error(AQ_ERR_EXCEPTION_ENQUEUE, "queue \"%s\" is an exception queue", target->name));
	if (strcmp(name_of(target->payload_type), moved->payload_type) != 0)
		ereport(ERROR,
				aq_error(AQ_ERR_PAYLOAD_TYPE, "the messages hold %s, but queue \"%s\" holds %s", moved->payload_type,
						 target->name, name_of(target->payload_type)),
				errhint("Propagation to another database needs queues whose payload types have the same name."));
}

static struct varlena *
varlena_of(const Coming *coming, AqMovedColumn column, int i)
{
	return coming->nulls[column][i] ? NULL : (struct varlena *) DatumGetPointer(coming->values[column][i]);
}

/* The time that was left when the message was sent.  One that has expired on the way expires here. */
static Interval *
expiration_of(const Coming *coming, int i)
{
	Interval   *left;

	if (coming->nulls[AQ_MOVED_TIME][i])
		return NULL;
	left = palloc0(sizeof(Interval));
	left->time = Max(DatumGetInt64(coming->values[AQ_MOVED_TIME][i]), 1);
	return left;
}

static int
priority_of(const Coming *coming, int i)
{
	int			priority = coming->nulls[AQ_MOVED_PRIORITY][i] ? AQ_DEFAULT_PRIORITY : DatumGetInt32(coming->values[AQ_MOVED_PRIORITY][i]);

	return coming->sharded ? Min(Max(priority, 0), AQ_PRIORITIES - 1) : priority;
}

static void
read_message(const Coming *coming, int i, AqEnqueue *call)
{
	const AqMove *move = coming->move;
	text	   *exception_queue = varlena_of(coming, AQ_MOVED_EXCEPTION_QUEUE, i);

	*call = (AqEnqueue) {
		.priority = priority_of(coming, i),
		.expiration = expiration_of(coming, i),
		.correlation = varlena_of(coming, AQ_MOVED_CORRELATION, i),
		.key = coming->keyed ? varlena_of(coming, AQ_MOVED_KEY, i) : NULL,
		.properties = varlena_of(coming, AQ_MOVED_PROPERTIES, i),
		.sender = aq_move_sender(i > 0 ? call[-1].sender : NULL, varlena_of(coming, AQ_MOVED_SENDER, i)),
		.recipients = coming->multi && move->recipient != NULL ? list_make1((char *) move->recipient) : NIL,
		.producer = move->producer,
		.original_id = coming->nulls[AQ_MOVED_ORIGINAL][i] ? NULL : DatumGetUUIDP(coming->values[AQ_MOVED_ORIGINAL][i]),
		.held = move->unit,
	};
	if (exception_queue != NULL)
		call->exception_queue = aq_move_exception_queue(text_to_cstring(exception_queue), coming->target, coming->payload_type);
}

static void
read_texts(void *arg)
{
	Coming	   *coming = arg;
	FmgrInfo	input;
	Oid			function;
	Oid			parameter;

	if (OidIsValid(coming->reader))
		aq_run_as_check_type(coming->payload_type);
	getTypeInputInfo(coming->payload_type, &function, &parameter);
	fmgr_info(function, &input);
	for (int i = 0; i < coming->n; i++)
	{
		Datum	   *payload = &coming->values[AQ_MOVED_PAYLOAD][i];
		bool		isnull = coming->nulls[AQ_MOVED_PAYLOAD][i];

		/* also a null: a domain may refuse it */
		*payload = InputFunctionCall(&input, isnull ? NULL : TextDatumGetCString(*payload), parameter, -1);
	}
}

/*
 * Reads the payloads with the settings that the other node has used to write them.
 * The code of a type does not get the privileges of the role of the link.
 */
static void
read_payloads(Coming *coming)
{
	int			nest;

	if (OidIsValid(coming->reader))
	{
		aq_run_as(coming->reader, read_texts, coming);
		return;
	}
	nest = aq_run_as_begin();
	read_texts(coming);
	aq_run_as_end(nest);
}

/*
 * Arguments of a function that another database calls: the payload type, and the
 * arrays.  The keys are the last one; null, or not there in a call of 0.1.0: no message
 * has one.
 */
AqMoved
aq_move_away_arguments(FunctionCallInfo fcinfo, int first)
{
	static const char *const names[AQ_MOVED_COLUMNS] = {
		"payloads", "priorities", "lifetimes", "correlations", "properties", "senders", "exception_queues", "originals", "keys"
	};
	AqMoved		moved = {.payload_type = aq_args_name(fcinfo, first, "payload_type")};
	ArrayType  *payloads;

	moved.keyed = PG_NARGS() > first + 1 + AQ_MOVED_KEY && !PG_ARGISNULL(first + 1 + AQ_MOVED_KEY);
	for (int i = 0; i < aq_move_away_columns(&moved); i++)
	{
		aq_args_require(fcinfo, first + 1 + i, names[i]);
		moved.columns[i] = PG_GETARG_DATUM(first + 1 + i);
	}
	payloads = DatumGetArrayTypeP(moved.columns[0]);
	moved.n = ArrayGetNItems(ARR_NDIM(payloads), ARR_DIMS(payloads));
	return moved;
}

/* Enqueues messages, in the current transaction and with the privileges of the current role. */
void
aq_move_away_put(const AqMove *move, const AqMoved *moved)
{
	Coming		coming = {.move = move, .n = moved->n, .keyed = moved->keyed};
	AqEnqueue  *each = palloc(Max(moved->n, 1) * sizeof(AqEnqueue));
	AqEnqueue	call = {.command = "aq.propagation_put()", .queue = pstrdup(move->destination),
		.priority = AQ_DEFAULT_PRIORITY, .each = each, .producer = move->producer, .held = move->unit,
		.enqueued_before = true};

	read_arrays(&coming, moved);
	read_target(&coming, moved);
	read_payloads(&coming);
	for (int i = 0; i < moved->n; i++)
		read_message(&coming, i, &each[i]);
	call.payload_type = coming.payload_type;
	if (moved->n > 0)
		(void) aq_enqueue_messages(&call, moved->n, coming.values[AQ_MOVED_PAYLOAD], coming.nulls[AQ_MOVED_PAYLOAD]);
	aq_point("move-put");
}
