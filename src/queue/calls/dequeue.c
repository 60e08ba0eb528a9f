/*-------------------------------------------------------------------------
 *
 * dequeue.c
 *	  aq.dequeue, aq.dequeue_full and aq.browse: options, waiting, and result
 *	  rows; the store takes the messages.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/calls/calls_private.h"

#include "access/detoast.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

/* the arguments from "consumer" on, counted from it, because as_type may stand before it */
enum
{
	ARG_CONSUMER, ARG_MAX_MESSAGES, ARG_MODE, ARG_CORRELATION, ARG_MSGID, ARG_CONDITION, ARG_WAIT,
	ARG_NAVIGATION, ARG_DELIVERY, ARG_LEASE, ARG_ACKNOWLEDGE, ARG_RECEIPT, ARG_VISIBILITY,
	ARG_KEY,					/* not in a catalog of 0.1.0 */
	/* of aq.browse */
	ARG_BROWSE_CORRELATION = ARG_MAX_MESSAGES + 1, ARG_BROWSE_CONDITION, ARG_BROWSE_AFTER,
	ARG_BROWSE_KEY
};

/* The source of messages: the queue or its buffered queue. */
typedef struct Source
{
	int			delivery;
	AqQueue    *queue;
	AqTakeOptions take;
	AqNavigation navigation;
} Source;

#define SOURCES_MAX 2

/* the options and state of a call */
typedef struct Request
{
	const char *command;		/* the function, for errors */
	AqQueue    *queue;
	AqTakeOptions take;			/* for all sources */
	text	   *correlation;	/* LIKE pattern, or NULL */
	text	   *key;			/* or NULL */
	AqRule	   *condition;		/* or NULL */
	bool		(*filter) (void *arg, const AqMessage *message);	/* or NULL */
	void	   *filter_arg;
	const char *consumer;
	int			consumer_index; /* its last index in the description */
	const char *pattern;		/* correlation as a string */
	int			delivery;
	int			nsources;
	Source		sources[SOURCES_MAX];
	Source	   *source;			/* the current source */
	void		(*emit) (void *arg, const AqMessage *message, int delivery);
	void	   *emit_arg;
	ReturnSetInfo *result;		/* of the functions of schema aq */
	uint32		found;
	int			first;			/* number of the argument "consumer" */
	FunctionCallInfo helped;	/* the call is to be executed by a helper; else NULL */
	AqImmediate immediate;		/* with immediate visibility, and without a helper */
	bool		outdated;		/* the description was, before it was found out what can be dequeued */
	bool		ungated;		/* a paused consumer gets messages, too */
	AqEvent		event;			/* what the call waits for since the latest attempt */
	int64		bytes;			/* of returned payloads */
} Request;

/* columns of a result row, the widest last; COL_RECEIPT not in aq.browse, from COL_SENDER on in aq.dequeue_full only */
enum
{
	COL_PAYLOAD, COL_PRIORITY, COL_ATTEMPTS, COL_CORRELATION, COL_PROPERTIES, COL_ENQUEUE_TIME,
	COL_MSGID, COL_RECEIPT, COL_SENDER, COL_CONSUMER, COL_READY_AT, COL_EXPIRES_AT,
	COL_EXCEPTION_QUEUE, COL_ORIGINAL_MSGID, COL_SHARD, COL_SESSION_ID, COL_STATE, COL_GROUP,
	COL_DELIVERY_MODE, COL_DEAD_LETTER, COL_KEY, COL_COUNT	/* the key not in a catalog of 0.1.0 */
};

/* A row of the result. */
static void
emit_row(void *arg, const AqMessage *m, int delivery)
{
	Request    *request = arg;
	Datum		values[COL_COUNT];
	bool		nulls[COL_COUNT] = {0};

	values[COL_PAYLOAD] = m->payload;
	nulls[COL_PAYLOAD] = m->payload_null;
	values[COL_PRIORITY] = Int32GetDatum(m->priority);
	values[COL_ATTEMPTS] = Int32GetDatum(m->attempts);
	values[COL_CORRELATION] = PointerGetDatum(m->correlation);
	nulls[COL_CORRELATION] = m->correlation == NULL;
	values[COL_PROPERTIES] = PointerGetDatum(m->properties);
	nulls[COL_PROPERTIES] = m->properties == NULL;
	values[COL_ENQUEUE_TIME] = TimestampTzGetDatum(m->enqueue_time);
	values[COL_MSGID] = UUIDPGetDatum(&m->id);
	values[COL_RECEIPT] = Int64GetDatum(m->receipt);
	nulls[COL_RECEIPT] = m->receipt == 0;
	if (request->result->setDesc->natts > COL_SENDER)
	{
		values[COL_SENDER] = PointerGetDatum(m->sender);
		nulls[COL_SENDER] = m->sender == NULL;
		values[COL_CONSUMER] = request->consumer ? CStringGetTextDatum(request->consumer) : 0;
		nulls[COL_CONSUMER] = request->consumer == NULL;
		values[COL_READY_AT] = TimestampTzGetDatum(m->ready_at);
		nulls[COL_READY_AT] = m->ready_at == 0;
		values[COL_EXPIRES_AT] = TimestampTzGetDatum(m->expires_at);
		nulls[COL_EXPIRES_AT] = m->expires_at == 0;
		values[COL_EXCEPTION_QUEUE] = PointerGetDatum(m->exception_queue);
		nulls[COL_EXCEPTION_QUEUE] = m->exception_queue == NULL;
		values[COL_ORIGINAL_MSGID] = UUIDPGetDatum(m->original_id);
		nulls[COL_ORIGINAL_MSGID] = m->original_id == NULL;
		values[COL_SHARD] = Int32GetDatum(m->shard);
		values[COL_SESSION_ID] = Int64GetDatum(m->session_id);
		values[COL_STATE] = Int32GetDatum(m->state);
		values[COL_GROUP] = m->group ? CStringGetTextDatum(psprintf(INT64_FORMAT, m->group)) : 0;
		nulls[COL_GROUP] = m->group == 0;
		values[COL_DELIVERY_MODE] = Int32GetDatum(delivery);
		values[COL_DEAD_LETTER] = PointerGetDatum(m->dead_letter);
		nulls[COL_DEAD_LETTER] = m->dead_letter == NULL;
		values[COL_KEY] = PointerGetDatum(m->key);
		nulls[COL_KEY] = m->key == NULL;
	}
	tuplestore_putvalues(request->result->setResult, request->result->setDesc, values, nulls);
}

/* A message was taken. */
static void
emit_message(void *arg, const AqMessage *m)
{
	Request    *request = arg;

	request->emit(request->emit_arg, m, request->source->queue->delivery);
	if (!m->payload_null)
		request->bytes += toast_raw_datum_size(m->payload) - VARHDRSZ;
	aq_position_moved(&request->source->navigation, m, request->consumer, request->pattern);
}

static bool
filter_message(void *arg, const AqMessage *m)
{
	Request    *request = arg;

	if (request->filter != NULL && !request->filter(request->filter_arg, m))
		return false;
	if (request->correlation != NULL)
	{
		if (m->correlation == NULL ||
			!DatumGetBool(DirectFunctionCall2Coll(textlike, DEFAULT_COLLATION_OID,
												  PointerGetDatum(m->correlation),
												  PointerGetDatum(request->correlation))))
			return false;
	}
	if (request->key != NULL && !aq_message_key_is(m->key, request->key))
		return false;
	return request->condition == NULL || aq_rule_matches(request->condition, m);
}

static AqMode
mode_of(const char *name)
{
	static const struct
	{
		const char *name;
		AqMode		mode;
	}			modes[] = {
		{"browse", AQ_MODE_BROWSE},
		{"locked", AQ_MODE_LOCKED},
		{"remove", AQ_MODE_REMOVE},
		{"remove_nodata", AQ_MODE_REMOVE_NODATA},
	};

	for (int i = 0; i < lengthof(modes); i++)
		if (strcmp(modes[i].name, name) == 0)
			return modes[i].mode;
	ereport(ERROR,
			aq_error(AQ_ERR_OPTION_INVALID, "dequeue mode \"%s\" does not exist", name),
			errhint("The modes are remove, remove_nodata, locked and browse."));
}

/*
 * The hint for a call in which max_messages or as_type was taken for another
 * argument.
 */
static int
type_hint(AqQueue *queue, Oid type)
{
	const char *wanted = format_type_be(queue->payload_type);

	if (type == INT2OID || type == INT4OID || type == INT8OID)
		return errhint("Name the argument: max_messages => 10.");
	if (aq_error_oracle)
		return errhint("Request that type: payload => null::%s.", wanted);
	if (queue->payload_type == TEXTOID)
		return errhint("Name the argument: as_type => null::text. The second argument is the consumer if it is a text.");
	return errhint("Request that type: as_type => null::%s.", wanted);
}

/* The result's payload column must be of the queue's payload type. */
static void
check_result_type(AqQueue *queue, Oid type)
{
	if (type == queue->payload_type)
		return;
	ereport(ERROR,
			aq_error(AQ_ERR_PAYLOAD_TYPE, "queue \"%s\" holds %s, not %s", queue->name,
					 format_type_be(queue->payload_type), format_type_be(type)),
			type_hint(queue, type));
}

/* The queue and its consumer.  payload_type: what the caller wants. */
static void
open_queue(Request *request, const char *queue_name, Oid payload_type, const char *consumer)
{
	PreventCommandIfParallelMode(request->command);
	PreventCommandDuringRecovery(request->command);
	if (queue_name == NULL)
		ereport(ERROR, aq_error(AQ_ERR_ARGUMENT_NULL, "\"queue_name\" must not be null"));
	request->queue = aq_catalog_get_for(queue_name, consumer, 0);
	aq_use_check_started(request->queue, false);
	check_result_type(request->queue, payload_type);
	request->consumer = consumer;
	request->take.position = aq_args_consumer_position(request->queue, consumer);
	request->take.emit = emit_message;
	request->take.emit_arg = request;
	request->take.outdated = &request->outdated;
}

static void
set_max(Request *request, int max)
{
	if (max < 1)
		ereport(ERROR, aq_error(AQ_ERR_OPTION_INVALID, "max_messages must be positive, not %d", max));
	request->take.max = max;
	if (request->take.position < 0)
		aq_notice_unknown_consumer(request->queue, request->consumer);
}

static void
set_mode(Request *request, AqMode mode)
{
	request->take.mode = mode;
	if (mode != AQ_MODE_BROWSE)
		PreventCommandIfReadOnly(request->command);
}

static void
set_filter(Request *request, text *correlation, text *key, text *condition)
{
	if (correlation != NULL)
	{
		request->correlation = correlation;
		request->pattern = text_to_cstring(correlation);
		request->take.key = aq_waiters_pattern_key(correlation);
	}
	if (condition != NULL)
		request->condition = aq_rule_compile(request->queue, text_to_cstring(condition), InvalidOid,
											 CurrentMemoryContext);
	request->key = key;
	if (request->correlation || request->key || request->condition)
	{
		request->take.filter = filter_message;
		request->take.filter_arg = request;
	}
}

/* After the filter and the maximum. */
static void
set_id(Request *request, const pg_uuid_t *id)
{
	request->take.id = id;
	if (id == NULL)
		return;
	if (request->take.filter != NULL)
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "msgid cannot be combined with correlation, key or condition"),
				errhint("A message id names exactly one message: leave the others null."));
	if (request->take.max != 1)
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "msgid cannot be combined with max_messages %u",
						 request->take.max),
				errhint("A message id names exactly one message: leave max_messages at 1."));
}

static text *
text_arg(FunctionCallInfo fcinfo, int arg)
{
	return PG_ARGISNULL(arg) ? NULL : PG_GETARG_TEXT_PP(arg);
}

/* What aq.dequeue and aq.browse have in common; first is the number of the argument "consumer". */
static void
begin_request(Request *request, FunctionCallInfo fcinfo, int first)
{
	request->first = first;
	open_queue(request, aq_args_name_or_null(fcinfo, 0, "queue_name"),
			   first == 1 ? JSONBOID : get_fn_expr_argtype(fcinfo->flinfo, 1),
			   aq_args_name_or_null(fcinfo, first + ARG_CONSUMER, "consumer"));
	if (PG_ARGISNULL(first + ARG_MAX_MESSAGES))
		ereport(ERROR, aq_error(AQ_ERR_ARGUMENT_NULL, "\"max_messages\" must not be null"));
	set_max(request, PG_GETARG_INT32(first + ARG_MAX_MESSAGES));
	/* else this is an attempt of aq.receive or of a caller with immediate visibility, which counts itself */
	if (aq_time_outermost() && !aq_helper_pool_is_helper())
		aq_stat_add(AQ_STAT_DEQUEUE_CALLS, 1);

	request->result = (ReturnSetInfo *) fcinfo->resultinfo;
	/* the executor has already made the row's descriptor, if it is known */
	InitMaterializedSRF(fcinfo, request->result != NULL && request->result->expectedDesc != NULL
						? MAT_SRF_USE_EXPECTED_DESC : 0);
	request->emit = emit_row;
	request->emit_arg = request;
}

/* --- sources ----------------------------------------------------------------------- */

/*
 * must_exist: the call will wait for messages, so a buffered queue is created.
 */
static void
find_sources(Request *request, const char *navigation, bool must_exist)
{
	static const int kinds[SOURCES_MAX] = {AQ_PERSISTENT, AQ_BUFFERED};

	if (request->delivery == AQ_BUFFERED && request->consumer != NULL)
	{
		AqConsumer *consumer = aq_catalog_consumer(request->queue, request->consumer);

		if (consumer != NULL && !(consumer->delivery & AQ_BUFFERED))
			ereport(ERROR,
					aq_error(AQ_ERR_BUFFERED_CONSUMER, "subscriber \"%s\" does not get buffered messages",
							 request->consumer),
					aq_error_hint("Subscribe it with delivery_mode buffered or persistent_or_buffered.",
								  "Add it with delivery_mode => dbms_aqadm.buffered() or dbms_aqadm.persistent_or_buffered()."));
	}
	/* first, because it may look the queue up again */
	if (must_exist && (request->delivery & AQ_BUFFERED) && request->queue->buffered == NULL)
	{
		char	   *name = pstrdup(request->queue->name);
		int32		id = request->queue->id;

		(void) aq_buffered_ensure(request->queue, AQ_BUFFERED);
		request->queue = aq_catalog_get_again(id, name, AQ_RIGHT_CONSUMER);
	}
	for (int i = 0; i < SOURCES_MAX; i++)
	{
		Source	   *source = &request->sources[request->nsources];

		if (!(request->delivery & kinds[i]))
			continue;
		source->queue = aq_catalog_for_delivery(request->queue, kinds[i]);
		if (source->queue == NULL)
			continue;			/* there was never a buffered message */
		source->delivery = kinds[i];
		source->take = request->take;
		source->navigation = aq_position_begin(source->queue, &source->take, navigation,
											   request->consumer, request->pattern);
		aq_pins_pin(source->queue);
		request->nsources++;
	}
}

/*
 * Called when the queue may have been read again, and may be another one with
 * the name.
 */
static void
refresh_sources(Request *request)
{
	for (int i = 0; i < request->nsources; i++)
	{
		Source	   *source = &request->sources[i];

		source->queue = aq_catalog_for_delivery(request->queue, source->delivery);
		if (source->queue == NULL)
			ereport(ERROR,
					aq_error(AQ_ERR_QUEUE_UNDEFINED, "queue \"%s\" does not exist", request->queue->name),
					errdetail("It has just been dropped."));
		aq_pins_pin(source->queue);
	}
}

/* The consumer's current entry in the description; NULL: it is not known. */
static AqConsumer *
find_consumer(Request *request)
{
	AqQueue    *queue = request->queue;
	AqConsumer *consumer = NULL;

	if (request->consumer_index < queue->nconsumers)
		consumer = &queue->consumers[request->consumer_index];
	if (consumer == NULL || consumer->name == NULL || strcmp(consumer->name, request->consumer) != 0)
		consumer = aq_catalog_consumer(queue, request->consumer);
	request->take.position = consumer != NULL ? consumer->position : -1;
	for (int i = 0; i < request->nsources; i++)
		request->sources[i].take.position = request->take.position;
	if (consumer != NULL)
		request->consumer_index = consumer - queue->consumers;
	return consumer;
}

/*
 * Looks the consumer up, and holds a recipient, so that it does not lose its
 * position while the call takes messages; *held: the hold must be dropped
 * afterwards.  Returns false if the queue has to be looked up again.
 */
static bool
hold_consumer(Request *request, bool begins, bool *held)
{
	AqConsumer *consumer;

	*held = false;
	if (!request->queue->multi)
		return true;
	consumer = find_consumer(request);
	if (consumer == NULL || consumer->subscriber || aq_holds_take(request->queue, consumer, held))
		return true;
	if (begins)
		aq_use_undo(request->queue);
	request->queue = aq_recipient_settle(request->queue, request->consumer, AQ_RIGHT_CONSUMER);
	return false;
}

/*
 * Enqueuers may wait for the end of the messages.  A transaction that has enqueued
 * itself may have taken its own messages, which others do not count; leases do not
 * end with it.
 */
static void
note_taken(const Request *request, const Source *source, uint32 found)
{
	if ((source->delivery == AQ_BUFFERED || source->queue->max_depth >= 0) && request->take.lease == 0 &&
		aq_flow_enqueued_here(source->queue->shm) == 0)
		aq_users_note_taken(source->queue->shm, source->take.position, found);
}

static void
take_from(Request *request, Source *source)
{
	uint32		found;

	request->source = source;
	source->take.max = request->take.max - request->found;
	aq_pins_begin_dequeue(source->queue->shm, source->take.position);
	found = source->queue->store->take(source->queue, &source->take);
	if (found == 0 && aq_position_rewind(source->queue, &source->navigation, &source->take))
		found = source->queue->store->take(source->queue, &source->take);
	request->found += found;
	if (request->take.immediate != NULL)
		return;
	if (found > 0 && request->take.mode != AQ_MODE_BROWSE)
		aq_cursor_note();
	if (found > 0 && request->take.mode == AQ_MODE_BROWSE)
		aq_traffic_add_for(source->queue->shm, source->take.position, AQ_TRAFFIC_BROWSED, found);
	else if (found > 0 && request->take.mode != AQ_MODE_LOCKED)
	{
		if (source->delivery == AQ_PERSISTENT)
			aq_pins_note_taken(source->queue->shm, source->take.position);
		note_taken(request, source, found);
	}
}

/* May aq.pause, max_running and the rate keep messages from the call? */
static bool
is_gated(const Request *request)
{
	return !request->ungated && request->take.mode != AQ_MODE_BROWSE;
}

static bool
is_paused(const Request *request)
{
	return is_gated(request) && aq_queue_is_paused(request->queue, request->take.position);
}

static AqEvent
event_of(const Request *request)
{
	if (is_paused(request))
		return AQ_EVENT_PAUSED;
	if (is_gated(request) && request->take.position >= 0)
	{
		if (aq_queue_is_full(request->queue, request->take.position))
			return AQ_EVENT_LIMIT;
		if (aq_queue_is_early(request->queue, request->take.position))
			return AQ_EVENT_RATE;
	}
	return AQ_EVENT_DEQUEUE_WAIT;
}

/* The sources are tried first in turn, so that none starves. */
static bool
attempt_once(Request *request)
{
	static unsigned int turn;
	bool		begins = false,
				held;

	/*
	 * the queue, or the role's rights, may have been changed during a wait; a
	 * change by GRANT, REVOKE or DROP OWNED does not make the description stale
	 */
	AcceptInvalidationMessages();
	do
	{
		if (request->take.mode == AQ_MODE_BROWSE)
			request->queue = aq_pins_pin_current(request->queue, false);
		else
			request->queue = aq_use_begin(request->queue, false, &begins);
		if (!aq_privilege_consumes(request->queue, request->consumer))
			aq_catalog_refuse_consumer(request->queue, request->consumer);
	} while (!hold_consumer(request, begins, &held));
	refresh_sources(request);
	aq_point("recipient-held");
	for (int i = 0; i < request->nsources && request->take.position >= 0 && !is_paused(request) &&
		 request->found < request->take.max; i++)
		take_from(request, &request->sources[(turn + i) % request->nsources]);
	if (held)
		aq_holds_drop(request->queue, request->take.position);
	if (request->found > 0 && request->nsources > 1)
		turn++;
	if (begins && request->found == 0)
		aq_use_undo(request->queue);
	else if (request->take.immediate != NULL && request->found > 0)
		aq_immediate_taken(request->take.immediate, request->queue, request->take.position, begins);
	aq_stat_add(AQ_STAT_DEQUEUE_MESSAGES, request->found);
	aq_stat_add(AQ_STAT_DEQUEUE_BYTES, request->bytes);
	request->bytes = 0;
	if (request->found > 0 && request->take.mode != AQ_MODE_BROWSE)
		aq_stat_touched = true;
	return request->found > 0;
}

/* A row of an attempt in a helper. */
static void
emit_columns(void *arg, Datum *values, bool *nulls)
{
	Request    *request = arg;

	tuplestore_putvalues(request->result->setResult, request->result->setDesc, values, nulls);
	request->found++;
}

/*
 * In a helper, which knows the session's positions.  While the session waits,
 * its sources and the consumer's position must be current.
 */
static void
attempt_in_helper(Request *request)
{
	int			ncolumns = request->result->setDesc->natts;

	/* all arguments before the lease, except "wait", and the key */
	const char *sql = request->first == 1
		? "SELECT * FROM aq.dequeue($1, $2, $3, $4, $5, $6, $7, navigation => $9, delivery_mode => $10%s)"
		: ncolumns > COL_SENDER
		? "SELECT * FROM aq.dequeue_full($1, $2, $3, $4, $5, $6, $7, $8, navigation => $10, delivery_mode => $11%s)"
		: "SELECT * FROM aq.dequeue($1, $2, $3, $4, $5, $6, $7, $8, navigation => $10, delivery_mode => $11%s)";
	int			nargs = request->helped->nargs;

	sql = psprintf(sql, nargs > request->first + ARG_KEY ? psprintf(", key => $%d", nargs) : "");
	aq_immediate_rows(request->helped, sql, nargs, ncolumns, emit_columns, request);
	if (request->found > 0)
		return;
	AcceptInvalidationMessages();
	request->queue = aq_pins_pin_current(request->queue, false);
	if (request->queue->multi)
		(void) find_consumer(request);
	request->event = event_of(request);
	refresh_sources(request);
}

/*
 * One attempt to dequeue.  It is repeated if the queue's definition was changed
 * meanwhile: it may be paused, or another node dequeues one of its shards.
 */
static bool
attempt(void *arg)
{
	Request    *request = arg;
	bool		found;

	if (request->helped != NULL)
	{
		attempt_in_helper(request);
		return request->found > 0;
	}
	do
	{
		CHECK_FOR_INTERRUPTS();
		request->outdated = false;
		found = attempt_once(request);
	} while (!found && request->outdated);
	if (!found)
		request->event = event_of(request);
	return found;
}

static void
wait_for_sources(Request *request, int64 timeout)
{
	AqQueue    *queues[SOURCES_MAX];

	for (int i = 0; i < request->nsources; i++)
		queues[i] = request->sources[i].queue;
	(void) aq_wait_until(queues, request->nsources, &request->take.position, &request->event,
						 request->take.filter != NULL || request->take.id != NULL, request->take.key,
						 request->take.mode == AQ_MODE_BROWSE && request->queue->has_limit, timeout, attempt, request);
}

/* The messages are leased for this time. */
static void
set_lease(Request *request, int64 lease, bool navigates)
{
	if (lease <= 0)
		ereport(ERROR, aq_error(AQ_ERR_OPTION_INVALID, "\"lease\" must be positive"));
	if (request->take.mode != AQ_MODE_REMOVE && request->take.mode != AQ_MODE_REMOVE_NODATA)
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "a lease needs the mode remove or remove_nodata"));
	if (navigates)
		ereport(ERROR, aq_error(AQ_ERR_OPTION_INVALID, "a lease cannot be combined with navigation"));
	if (request->delivery != AQ_PERSISTENT)
		ereport(ERROR, aq_error(AQ_ERR_FEATURE_UNSUPPORTED, "buffered messages cannot be leased"));
	aq_lease_calls_check(request->queue);
	request->take.lease = lease;
}

/* In later attempts, the filter need not look at the same messages again. */
static void
remember(Request *request, AqSeen *seen)
{
	if (request->take.filter != NULL && request->filter == NULL &&
		(request->condition == NULL || !aq_rule_runs_user_code(request->condition)))
		request->take.seen = seen;
}

/*
 * Checks the visibility.  Immediate visibility takes the messages in another
 * transaction, which cannot lock or lease them for this one.
 */
static void
set_immediate(Request *request, FunctionCallInfo fcinfo)
{
	if (request->take.mode == AQ_MODE_BROWSE)
		return;					/* takes nothing */
	if (request->take.mode == AQ_MODE_LOCKED)
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "the mode locked cannot be combined with immediate visibility"),
				errhint("The messages are locked until the end of the transaction that takes them."));
	for (int arg = request->first + ARG_LEASE; arg <= request->first + ARG_RECEIPT; arg++)
		if (!PG_ARGISNULL(arg))
			ereport(ERROR,
					aq_error(AQ_ERR_OPTION_INVALID, "a lease cannot be combined with immediate visibility"),
					errhint("Commit the transaction that takes or acknowledges messages with a lease."));
	if (aq_immediate_take_here(request->queue, request->delivery))
		request->take.immediate = &request->immediate;
	else
		request->helped = fcinfo;
}

/* Take messages, or wait for them, in other transactions. */
static void
run_in_helper(Request *request, int64 timeout)
{
	if (attempt(request) || timeout == 0)
		return;
	find_sources(request, NULL, true);
	wait_for_sources(request, timeout);
}

/* Take messages, or wait for them, when everything is set. */
static bool
run_request(Request *request, const char *navigation, int64 timeout)
{
	request->take.patient |= timeout < 0;
	request->take.limited = is_gated(request);
	request->take.waits = timeout != 0;
	if (timeout != 0)
		remember(request, palloc0(sizeof(AqSeen)));
	find_sources(request, navigation, timeout != 0);
	if (request->delivery == AQ_BUFFERED && request->nsources > 0)
		aq_time_queue_is(request->sources[0].queue->id);
	if (request->take.position >= 0 && attempt(request))
		return true;
	if (timeout != 0)
		wait_for_sources(request, timeout);
	if (request->found == 0)
		for (int i = 0; i < request->nsources; i++)
			aq_position_none(&request->sources[i].navigation);
	return request->found > 0;
}

/* Were there any? */
bool
aq_dequeue_now(const AqDequeue *call)
{
	Request		request = {.command = "aq.dequeue()", .emit = call->emit, .emit_arg = call->arg};

	open_queue(&request, call->queue, call->payload_type, call->consumer);
	set_max(&request, call->max);
	set_mode(&request, call->mode);
	set_filter(&request, call->correlation, call->key, call->condition);
	set_id(&request, call->id);
	if (call->filter != NULL)
	{
		request.filter = call->filter;
		request.filter_arg = call->filter_arg;
		request.take.filter = filter_message;
		request.take.filter_arg = &request;
	}
	request.delivery = call->delivery;
	request.take.patient = call->patient;
	request.ungated = call->ungated || call->unit != 0;
	request.take.after = call->after;
	if (call->lease != 0)
		set_lease(&request, call->lease, call->navigation != NULL);
	request.take.ends = call->ends;
	request.take.unit = call->unit;
	request.take.immediate = call->immediate;
	remember(&request, call->seen);
	return run_request(&request, call->navigation, 0);
}

/*
 * Messages of earlier dequeues are acknowledged first.  Returns true if there were
 * some: then the call does not wait, so that they are committed.
 */
static bool
acknowledge(Request *request, FunctionCallInfo fcinfo, int arg)
{
	bool		acknowledged;

	if (request->take.mode != AQ_MODE_REMOVE && request->take.mode != AQ_MODE_REMOVE_NODATA)
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "\"acknowledge\" needs the mode remove or remove_nodata"));
	request->queue = aq_lease_calls_with_dequeue(fcinfo, arg, request->queue, request->consumer, &acknowledged);
	return acknowledged;
}

static Datum
dequeue(FunctionCallInfo fcinfo, int first)
{
	AQ_TIMED(AQ_TIME_DEQUEUE);
	Request		request = {.command = "aq.dequeue()"};
	int64		timeout = PG_ARGISNULL(first + ARG_WAIT) ? 0 : aq_interval_to_us(PG_GETARG_DATUM(first + ARG_WAIT));

	begin_request(&request, fcinfo, first);
	if (PG_ARGISNULL(first + ARG_MODE))
		ereport(ERROR, aq_error(AQ_ERR_ARGUMENT_NULL, "\"mode\" must not be null"));
	set_mode(&request, mode_of(text_to_cstring(PG_GETARG_TEXT_PP(first + ARG_MODE))));
	set_filter(&request, text_arg(fcinfo, first + ARG_CORRELATION),
			   PG_NARGS() > first + ARG_KEY ? text_arg(fcinfo, first + ARG_KEY) : NULL, text_arg(fcinfo, first + ARG_CONDITION));
	set_id(&request, PG_ARGISNULL(first + ARG_MSGID) ? NULL : PG_GETARG_UUID_P(first + ARG_MSGID));
	request.delivery = aq_args_delivery(fcinfo, first + ARG_DELIVERY);
	if (aq_immediate_argument(fcinfo, first + ARG_VISIBILITY))
		set_immediate(&request, fcinfo);
	if (!PG_ARGISNULL(first + ARG_LEASE))
		set_lease(&request, aq_interval_option(PG_GETARG_DATUM(first + ARG_LEASE), AQ_ERR_OPTION_INVALID, "lease"),
				  !PG_ARGISNULL(first + ARG_NAVIGATION));
	if (!PG_ARGISNULL(first + ARG_ACKNOWLEDGE) || !PG_ARGISNULL(first + ARG_RECEIPT))
		if (acknowledge(&request, fcinfo, first + ARG_ACKNOWLEDGE))
			timeout = 0;
	aq_notice_long_wait(timeout);
	if (request.helped != NULL)
		run_in_helper(&request, timeout);
	else
		(void) run_request(&request, aq_args_name_or_null(fcinfo, first + ARG_NAVIGATION, "navigation"), timeout);
	aq_immediate_settle(&request.immediate);
	return (Datum) 0;
}

PG_FUNCTION_INFO_V1(aq_dequeue_jsonb);
Datum
aq_dequeue_jsonb(PG_FUNCTION_ARGS)
{
	return dequeue(fcinfo, 1);
}

PG_FUNCTION_INFO_V1(aq_dequeue_typed);
Datum
aq_dequeue_typed(PG_FUNCTION_ARGS)
{
	return dequeue(fcinfo, 2);
}

static Datum
browse(FunctionCallInfo fcinfo, int first)
{
	AQ_TIMED(AQ_TIME_DEQUEUE);
	Request		request = {.command = "aq.browse()"};

	begin_request(&request, fcinfo, first);
	set_mode(&request, AQ_MODE_BROWSE);
	set_filter(&request, text_arg(fcinfo, first + ARG_BROWSE_CORRELATION),
			   PG_NARGS() > first + ARG_BROWSE_KEY ? text_arg(fcinfo, first + ARG_BROWSE_KEY) : NULL,
			   text_arg(fcinfo, first + ARG_BROWSE_CONDITION));
	if (!PG_ARGISNULL(first + ARG_BROWSE_AFTER))
		request.take.after = PG_GETARG_UUID_P(first + ARG_BROWSE_AFTER);
	request.delivery = AQ_PERSISTENT;
	find_sources(&request, NULL, false);
	if (request.take.position >= 0)
		(void) attempt(&request);
	return (Datum) 0;
}

PG_FUNCTION_INFO_V1(aq_dequeue_browse_jsonb);
Datum
aq_dequeue_browse_jsonb(PG_FUNCTION_ARGS)
{
	return browse(fcinfo, 1);
}

PG_FUNCTION_INFO_V1(aq_dequeue_browse_typed);
Datum
aq_dequeue_browse_typed(PG_FUNCTION_ARGS)
{
	return browse(fcinfo, 2);
}
