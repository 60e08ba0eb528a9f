/*-------------------------------------------------------------------------
 *
 * enqueue.c
 *	  aq.enqueue and aq.enqueue_array: checks, recipients, then the store.
 *
 * A message that matches no subscriber is not an error: it is not stored, and
 * its id is null.  The functions of schema aq and those of dbms_aq (packages.c)
 * read their arguments into an AqEnqueue.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/calls/calls_private.h"

#include "access/transam.h"
#include "access/detoast.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

static AqQueue *
get_queue(const AqEnqueue *call)
{
	AqQueue    *queue;

	aq_session_require_write(call->command);
	if (call->queue == NULL)
		ereport(ERROR, aq_error(AQ_ERR_ARGUMENT_NULL, "\"queue_name\" must not be null"));
	queue = aq_catalog_get(call->queue, AQ_RIGHT_ENQUEUE);
	if (queue->exception)
		ereport(ERROR,
				aq_error(AQ_ERR_EXCEPTION_ENQUEUE, "queue \"%s\" is an exception queue", queue->name),
				aq_error_hint("It accepts only messages that could not be delivered. To move a leased message there, use aq.reject.",
							  "It accepts only messages that could not be delivered."));
	if (call->on_commit)
		aq_non_persistent_refuse_on_commit(queue);
	aq_use_check_started(queue, true);
	return queue;
}

/*
 * Like get_queue(), but waits until no other transaction enqueues for the same
 * producer.
 */
static AqQueue *
get_queue_in_turn(const AqEnqueue *call)
{
	AqQueue    *queue = get_queue(call);
	int32		locked = 0;

	/* during a wait, the queue may be changed, or dropped and created again */
	while (call->producer != 0 && queue->id != locked && !aq_queue_lock_producer(queue->id, call->producer, false))
	{
		locked = queue->id;
		(void) aq_queue_lock_producer(locked, call->producer, true);
		queue = get_queue(call);
	}
	return queue;
}

/*
 * The id of the exception queue that a message names, because the name may
 * belong to another queue when the message fails.
 */
static int32
named_exception_queue(AqQueue *queue, const char *name)
{
	AqQueue    *target;

	if (strcmp(name, queue->name) == 0)
		ereport(ERROR,
				aq_error(AQ_ERR_EXCEPTION_QUEUE, "a queue cannot be its own exception queue"));
	if (strcmp(name, "none") == 0)
		ereport(ERROR,
				aq_error(AQ_ERR_EXCEPTION_QUEUE, "queue \"%s\" cannot be the exception queue of \"%s\"", name, queue->name),
				aq_error_hint("A queue can be without an exception queue, not a message: aq.create_queue or aq.alter_queue with exception_queue => 'none'.",
							  "Leave exception_queue null, or name a queue."));
	target = aq_catalog_get(name, AQ_RIGHT_ENQUEUE);
	if (target->multi || target->payload_type != queue->payload_type || target->non_persistent)
		ereport(ERROR,
				aq_error(AQ_ERR_EXCEPTION_QUEUE,
						 "queue \"%s\" cannot be the exception queue of \"%s\"", name, queue->name),
				errhint("An exception queue has a single consumer and the same payload type."));
	return target->id;
}

static void
refuse_deviation(const AqQueue *queue)
{
	aq_non_persistent_refuse_deviation(queue);
	ereport(ERROR,
			aq_error(AQ_ERR_NOT_SHARDED, "queue \"%s\" is not in a queue table",
					 queue->name),
			errhint("Use priorities, or a queue in a queue table."));
}

static void
check_priority(const AqQueue *queue, int priority)
{
	if (aq_queue_is_sharded(queue) && (priority < 0 || priority >= AQ_PRIORITIES))
		ereport(ERROR,
				aq_error(AQ_ERR_PRIORITY_INVALID, "priority %d is out of range", priority),
				errhint("Priorities go from 0, the most urgent, to %d.", AQ_PRIORITIES - 1));
}

/* Reads the sequence deviation: before all messages, or before one. */
static void
read_deviation(const AqEnqueue *call, AqQueue *queue, AqPutOptions *options)
{
	const char *deviation = call->deviation;

	if (deviation == NULL)
		return;
	options->top = strcmp(deviation, "top") == 0;
	if (!options->top && strcmp(deviation, "before") != 0)
		ereport(ERROR,
				aq_error(AQ_ERR_DEVIATION_INVALID, "deviation \"%s\" does not exist", deviation),
				errhint("The deviations are before, with relative_msgid, and top."));
	if (aq_queue_is_sharded(queue))
		refuse_deviation(queue);
	if (options->top)
		return;
	if (call->relative_msgid == NULL)
		ereport(ERROR,
				aq_error(AQ_ERR_RELATIVE_MSGID_MISSING, "deviation \"before\" requires \"relative_msgid\""),
				errhint("Pass the id of the message that follows it, or use top."));
	options->before = call->relative_msgid;
}

/*
 * When a call is read, all its times are counted from one time, which is asked
 * for when it is needed first.
 */
static TimestampTz
time_of_call(TimestampTz *now)
{
	if (*now == 0)
		*now = GetCurrentTimestamp();
	return *now;
}

/* A time in the past means now. */
static void
read_delay(const AqEnqueue *call, const AqQueue *queue, TimestampTz *now, AqPutOptions *options)
{
	int64		delay = 0;

	if (call->delay != NULL && call->run_at != NULL)
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "\"delay\" and \"run_at\" cannot be combined"),
				errhint("Both say when the message becomes ready: pass one of them."));
	if (call->delay == NULL && call->run_at == NULL && call->default_delay)
		delay = queue->default_delay;
	else if (call->delay != NULL)
		delay = aq_interval_option(IntervalPGetDatum(call->delay), AQ_ERR_DELAY_INVALID, "delay");
	else if (call->run_at != NULL)
		delay = aq_interval_until(*call->run_at, time_of_call(now), AQ_ERR_DELAY_INVALID, "run_at");
	if (delay <= 0)
		return;
	options->ready_at = time_of_call(now) + delay;
	options->delay = delay;
}

/* After read_delay(): it is counted from the time at which the message becomes ready. */
static void
read_expiration(const AqEnqueue *call, const AqQueue *queue, TimestampTz *now, AqPutOptions *options)
{
	int64		expiration = call->default_expiration ? queue->default_expiration : -1;

	if (call->expiration != NULL)
	{
		expiration = aq_interval_option(IntervalPGetDatum(call->expiration), AQ_ERR_EXPIRATION_INVALID, "expiration");
		if (expiration <= 0)
			ereport(ERROR,
					aq_error(AQ_ERR_EXPIRATION_INVALID, "expiration must be positive"),
					errhint("Leave it null for a message that never expires."));
	}
	if (expiration > 0)
		options->expires_at = (options->ready_at ? options->ready_at : time_of_call(now)) + expiration;
}

static void
read_options(const AqEnqueue *call, AqQueue *queue, TimestampTz *now, AqPutOptions *options)
{
	memset(options, 0, sizeof(AqPutOptions));
	options->producer = call->producer;
	options->affinity = call->affinity;
	options->priority = call->default_priority && queue->default_priority >= 0 ? queue->default_priority : call->priority;
	check_priority(queue, options->priority);
	read_delay(call, queue, now, options);
	read_expiration(call, queue, now, options);
	options->correlation = call->correlation;
	options->key = aq_message_key_check(call->key);
	options->key_is_group = call->key_is_group;
	options->sender = call->sender;
	options->exception_queue = call->exception_queue;
	options->properties = call->properties;
	options->dead_letter = call->dead_letter;
	options->original_id = call->original_id;
	options->held = call->held;
	read_deviation(call, queue, options);
	aq_non_persistent_check_options(queue, options);
	if (options->exception_queue)
		options->exception_queue_id = named_exception_queue(queue, text_to_cstring((text *) options->exception_queue));
}

static void
add_context(void *arg)
{
	errcontext("element %d of \"options\"", *(int *) arg);
}

/* The options of n messages with options of their own. */
static AqPutOptions *
read_each(const AqEnqueue *each, int n, AqQueue *queue, TimestampTz *now)
{
	AqPutOptions *options = palloc(n * sizeof(AqPutOptions) + 1);
	int			number = 0;
	ErrorContextCallback context = {.previous = error_context_stack, .callback = add_context, .arg = &number};

	error_context_stack = &context;
	while (number < n)
	{
		number++;
		read_options(&each[number - 1], queue, now, &options[number - 1]);
	}
	error_context_stack = context.previous;
	return options;
}

/* --- payloads --------------------------------------------------------------------- */

/* The input function of a user's type, prepared to be called as a role. */
struct AqInput
{
	MemoryContext context;
	FmgrInfo	function;
	Oid			role;
	uint64		changes;		/* aq_run_as_code_changes() when it was prepared */
};

typedef struct Reading
{
	AqQueue    *queue;
	AqInput    *input;
	char	   *string;
	Datum		value;
} Reading;

static void
read_arg(void *arg)
{
	Reading    *r = arg;

	aq_run_as_check_type(r->queue->payload_type);
	r->value = InputFunctionCall(&r->input->function, r->string, r->queue->input_param, -1);
}

/*
 * The role that reads payloads: the type's owner.  If that is a superuser,
 * whose code any role can run, the queue's owner is used instead.
 */
Oid
aq_enqueue_reading_role(AqQueue *queue)
{
	Oid			owner = aq_payload_type_owner(queue->payload_type);

	return superuser_arg(owner) ? queue->owner : owner;
}

static AqInput *
make_input(AqQueue *queue, Oid role)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "pgaq input", ALLOCSET_SMALL_SIZES);
	AqInput    *input = MemoryContextAllocZero(context, sizeof(AqInput));

	input->context = context;
	input->role = role;
	input->changes = aq_run_as_code_changes();
	fmgr_info_cxt(queue->input.fn_oid, &input->function, context);
	return input;
}

/*
 * Takes the input function out of the description, or makes a new one if it is
 * outdated.  Nested calls must not use the same one: constraints of domains
 * are users' code, which can enqueue into the same queue.
 */
static AqInput *
take_input(AqQueue *queue, Oid role)
{
	AqInput    *input = queue->users_input;

	queue->users_input = NULL;
	if (input != NULL && input->role == role && input->changes == aq_run_as_code_changes())
	{
		MemoryContextSetParent(input->context, CurrentMemoryContext);
		return input;
	}
	if (input != NULL)
		MemoryContextDelete(input->context);
	return make_input(queue, role);
}

static void
keep_input(AqQueue *queue, AqInput *input)
{
	if (queue->users_input != NULL)
		MemoryContextDelete(queue->users_input->context);
	MemoryContextSetParent(input->context, queue->context);
	queue->users_input = input;
}

static Datum
read_as_owner(AqQueue *queue, char *string)
{
	Oid			role = aq_enqueue_reading_role(queue);
	Reading		r = {.queue = queue, .input = take_input(queue, role), .string = string};

	aq_run_as_reading(role, read_arg, &r);
	keep_input(queue, r.input);
	return r.value;
}

static Datum
text_to_payload(AqQueue *queue, Datum value)
{
	char	   *string;

	if (queue->input_is_text)
		return value;
	string = TextDatumGetCString(value);
	if (queue->payload_type >= FirstNormalObjectId)
		return read_as_owner(queue, string);
	return InputFunctionCall(&queue->input, string, queue->input_param, -1);
}

/*
 * _payload(queue, text, NULL of the payload's type): for the views on messages,
 * whose columns have the payload's type.
 */
PG_FUNCTION_INFO_V1(aq_enqueue_payload_of_text);
Datum
aq_enqueue_payload_of_text(PG_FUNCTION_ARGS)
{
	AqQueue    *queue;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		PG_RETURN_NULL();
	aq_session_require_preload();
	queue = aq_catalog_get_numbered(PG_GETARG_INT32(0));
	if (queue == NULL || !aq_privilege_allows(queue, AQ_RIGHT_CONSUMER) ||
		queue->payload_type != get_fn_expr_argtype(fcinfo->flinfo, 2))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("queue %d has another payload type", PG_GETARG_INT32(0))));
	return text_to_payload(queue, PG_GETARG_DATUM(1));
}

/*
 * Must the input function of the queue's payload type read a payload of this
 * type as text?  Otherwise it must have the payload type.
 */
static bool
is_text_to_read(AqQueue *queue, Oid type)
{
	Oid			base;

	if (type == queue->payload_type)
		return false;
	if (type == TEXTOID)
		return true;
	base = getBaseType(type);
	if (base == queue->payload_type)
		return false;
	if (base == TEXTOID || base == VARCHAROID || base == BPCHAROID)
		return true;
	/* drivers send JSON values as json; they are converted as text */
	if (base == JSONOID && queue->payload_type == JSONBOID)
		return true;
	ereport(ERROR,
			aq_error(queue->non_persistent ? AQ_ERR_NP_PAYLOAD : AQ_ERR_PAYLOAD_TYPE, "payload is of type %s, but queue \"%s\" holds %s",
					 format_type_be(type), queue->name, format_type_be(queue->payload_type)),
			errhint("Cast the payload to %s.", format_type_be(queue->payload_type)));
}

/* --- persistent or buffered ------------------------------------------------------------ */

/* The queue for the messages: the queue itself or its buffered queue. */
static AqQueue *
side_to_put(const AqEnqueue *call, AqQueue *queue)
{
	int			delivery = aq_args_delivery_named(call->delivery_mode);

	if (delivery == AQ_PERSISTENT_OR_BUFFERED)
		ereport(ERROR,
				aq_error(AQ_ERR_DELIVERY_INVALID, "a message is either persistent or buffered"),
				errhint("Only dequeue, wait and listen accept persistent_or_buffered."));
	if (delivery == AQ_BUFFERED)
		aq_non_persistent_refuse(queue, "enqueue buffered messages into");
	return aq_buffered_ensure(queue, delivery);
}

/* --- recipients --------------------------------------------------------------------- */

/*
 * The consumer with this name, which keeps its position until the transaction
 * has ended.  An unknown name gets a position, in a separate transaction if
 * possible.
 */
static AqConsumer *
recipient(AqQueue **queue, const char *name)
{
	char	   *queue_name = pstrdup((*queue)->name);
	int32		id = abs((*queue)->id);
	int			delivery = (*queue)->delivery;
	AqConsumer *consumer;

	for (;;)
	{
		consumer = aq_catalog_consumer(*queue, name);
		if (consumer != NULL && (consumer->subscriber || aq_holds_take(*queue, consumer, NULL)))
			break;
		aq_args_check_name(name, "recipient");
		aq_recipient_add(aq_catalog_get_again(id, queue_name, AQ_RIGHT_ENQUEUE), name);
		aq_point("recipient-added");
		*queue = aq_catalog_for_delivery(aq_catalog_get_again(id, queue_name, AQ_RIGHT_ENQUEUE), delivery);
	}
	pfree(queue_name);
	return consumer;
}

/* The positions of the names in a recipient list. */
static Bitmapset *
recipient_list(AqQueue **queue, const List *names)
{
	int			n = list_length(names);
	Bitmapset  *set = NULL;
	int			delivery = (*queue)->delivery;

	if (n > AQ_MAX_CONSUMERS)
		ereport(ERROR,
				aq_error(AQ_ERR_RECIPIENT_INVALID, "a recipient list has at most %d names, not %d",
						 AQ_MAX_CONSUMERS, n),
				aq_error_hint("Leave recipients null to reach the subscribers.",
							  "Leave recipient_list null to reach the subscribers."));
	for (int i = 0; i < n; i++)
	{
		AqConsumer *consumer;
		char	   *name = list_nth(names, i);

		if (name == NULL)
			ereport(ERROR, aq_error(AQ_ERR_RECIPIENT_INVALID, "recipient %d of the list is null", i + 1));
		aq_non_persistent_refuse_consumer(*queue, name);
		consumer = recipient(queue, name);
		if (bms_is_member(consumer->position, set))
			ereport(ERROR,
					aq_error(AQ_ERR_RECIPIENT_INVALID, "recipient \"%s\" is in the list twice", name));
		if (!(consumer->delivery & delivery))
			ereport(ERROR,
					aq_error(delivery == AQ_BUFFERED ? AQ_ERR_BUFFERED_CONSUMER : AQ_ERR_RECIPIENT_INVALID,
							 "subscriber \"%s\" does not get %s messages", name,
							 delivery == AQ_BUFFERED ? "buffered" : "persistent"),
					aq_error_hint("Subscribe it with another delivery mode.",
								  "Add it with another delivery_mode."));
		set = bms_add_member(set, consumer->position);
	}
	return set;
}

static void
refuse_recipients(const AqQueue *queue, const AqEnqueue *call)
{
	if (call->recipients != NIL)
		ereport(ERROR,
				aq_error(AQ_ERR_CONSUMER_FORBIDDEN,
						 "queue \"%s\" has a single consumer and takes no recipients", queue->name),
				errhint("Create the queue with multiple_consumers => true."));
}

/*
 * The sets of consumers of n messages, NULL for a message that matches no
 * subscriber; all pointers are the same if there are no rules.
 */
static Bitmapset **
choose_targets(const AqEnqueue *call, AqQueue **queue, const AqPutOptions *options,
			   uint32 n, const Datum *payloads, const bool *nulls)
{
	Bitmapset **targets;
	Bitmapset  *all;

	if (!(*queue)->multi)
	{
		refuse_recipients(*queue, call);
		return NULL;
	}

	targets = palloc(n * sizeof(Bitmapset *));
	if (call->recipients != NIL)
		all = recipient_list(queue, call->recipients);
	else if ((*queue)->has_rules)
	{
		aq_match_subscribers(*queue, options, n, payloads, nulls, targets);
		return targets;
	}
	else
	{
		if (bms_is_empty((*queue)->without_rule) && n > 0)
			aq_notice_no_subscriber(*queue);

		/*
		 * a copy, because the description may be read again before the
		 * transaction ends
		 */
		all = bms_copy((*queue)->without_rule);
	}
	for (uint32 i = 0; i < n; i++)
		targets[i] = all;
	return targets;
}

/* The same for messages with options of their own. */
static Bitmapset **
choose_for_each(const AqEnqueue *each, AqQueue **queue, const AqPutOptions *options,
				uint32 n, const Datum *payloads, const bool *nulls)
{
	Bitmapset **targets = palloc(n * sizeof(Bitmapset *) + 1);

	for (uint32 i = 0; i < n; i++)
	{
		Bitmapset **target = choose_targets(&each[i], queue, &options[i], 1, &payloads[i], &nulls[i]);

		targets[i] = target != NULL ? *target : NULL;
	}
	return (*queue)->multi ? targets : NULL;
}

/* Has the message no consumers, so that it is not stored? */
static bool
is_unwanted(Bitmapset *const *targets, uint32 number)
{
	return targets != NULL && targets[number] == NULL;
}

/* Keeps only messages that have consumers, in order; returns their number.  each: their own options, or NULL. */
static int
drop_unwanted(int n, Datum *payloads, bool *nulls, Bitmapset **targets, AqPutOptions *each, bool *unwanted)
{
	int			kept = 0;

	for (int i = 0; i < n; i++)
	{
		unwanted[i] = is_unwanted(targets, i);
		if (unwanted[i])
			continue;
		payloads[kept] = payloads[i];
		nulls[kept] = nulls[i];
		if (targets != NULL)
			targets[kept] = targets[i];
		if (each != NULL)
			each[kept] = each[i];
		kept++;
	}
	return kept;
}

/*
 * The queue, or its buffered queue, for the messages.  It may have been
 * converted since the options were read, during users' code or a wait.
 */
static AqQueue *
begin_put(AqQueue *queue, const AqPutOptions *options, int noptions, bool *begins)
{
	queue = aq_use_begin(queue, true, begins);
	for (int i = 0; i < noptions; i++)
		check_priority(queue, options[i].priority);
	if (aq_queue_is_sharded(queue) && (options->top || options->before))
		refuse_deviation(queue);
	return queue;
}

/* --- the functions ---------------------------------------------------------------------- */

static void
count_put(const AqQueue *queue, uint32 n, const Datum *payloads, const bool *nulls)
{
	int64		bytes = 0;

	for (uint32 i = 0; i < n; i++)
		if (!nulls[i])
			bytes += toast_raw_datum_size(payloads[i]) - VARHDRSZ;
	aq_stat_add(AQ_STAT_ENQUEUE_CALLS, 1);
	aq_stat_add(AQ_STAT_ENQUEUE_MESSAGES, n);
	aq_stat_add(AQ_STAT_ENQUEUE_BYTES, bytes);
	aq_stat_touched = true;
}

static void
note_put(const AqQueue *queue)
{
	if (queue->persistent == NULL)
		aq_pins_note_put(queue->shm);
	else
		aq_time_queue_is(queue->id);
}

/* The message is committed: see immediate.c. */
static void
end_immediate(const AqQueue *queue, bool begins)
{
	aq_traffic_add(queue->shm, AQ_TRAFFIC_ENQUEUE_TRANSACTIONS, 1);
	if (begins)
		aq_pins_unuse(queue->shm);
}

static void
put(AqQueue *queue, const AqPutOptions *options, uint32 n, const Datum *payloads, const bool *nulls,
	Bitmapset *const *targets, pg_uuid_t *ids)
{
	if (queue->non_persistent)
		aq_non_persistent_put(queue, options, n, payloads, nulls, targets, ids);
	else
		queue->store->put(queue, options, n, payloads, nulls, targets, ids);
}

/*
 * Stores messages with options of their own: those that follow each other and
 * have the same priority, times and sender together.
 */
static void
put_each(AqQueue *queue, AqPutOptions *each, uint32 n, const Datum *payloads, const bool *nulls,
		 Bitmapset *const *targets, pg_uuid_t *ids)
{
	for (uint32 i = 0, next; i < n; i = next)
	{
		AqPutOptions common = each[i];

		for (next = i + 1; next < n; next++)
			if (each[next].priority != common.priority || each[next].ready_at != common.ready_at ||
				each[next].expires_at != common.expires_at || each[next].sender != common.sender)
				break;
		common.each = &each[i];
		put(queue, &common, next - i, &payloads[i], &nulls[i], targets ? &targets[i] : NULL, &ids[i]);
	}
}

/*
 * May the messages be stored now?  Those of schedules, and those that come from
 * another queue, are also put into a full queue: a process that enqueues for others
 * must not wait.
 */
static bool
has_room(const AqEnqueue *call, AqQueue *queue, Bitmapset *const *targets, uint32 n, AqFlowWait *wait)
{
	if (queue->delivery == AQ_PERSISTENT && (queue->max_depth < 0 || call->unlimited || call->enqueued_before))
		return true;
	return aq_flow_admits(queue, targets, n, call->immediate, wait);
}

/*
 * Called before another attempt, after a wait for room, of which there can be
 * many: frees what the attempt before has allocated.
 */
static void
begin_again(MemoryContext *memory)
{
	if (*memory == NULL)
		*memory = AllocSetContextCreate(CurrentMemoryContext, "pgaq enqueue", ALLOCSET_DEFAULT_SIZES);
	MemoryContextReset(*memory);
	MemoryContextSwitchTo(*memory);
}

/* The id of the message, or NULL when no subscriber wants it. */
pg_uuid_t *
aq_enqueue_message(const AqEnqueue *call, Datum payload, bool isnull)
{
	AQ_TIMED(AQ_TIME_ENQUEUE);
	AqQueue    *queue;
	AqPutOptions options;
	Datum		value = (Datum) 0;
	Bitmapset **targets;
	bool		begins;
	pg_uuid_t  *id = palloc(sizeof(pg_uuid_t));
	AqFlowWait	wait = {0};
	MemoryContext outer = CurrentMemoryContext;
	MemoryContext memory = NULL;

	for (;;)
	{
		const AqEnqueue *agreed;
		bool		from_text;
		TimestampTz now = 0;

		queue = get_queue_in_turn(call);
		from_text = is_text_to_read(queue, call->payload_type);
		read_options(call, queue, &now, &options);
		if (!isnull)
			value = from_text ? text_to_payload(queue, payload) : payload;
		agreed = aq_message_key_agree(queue, call, 1, &value, &isnull);
		if (agreed != NULL)
		{
			options.key = agreed->key;
			options.key_is_group = agreed->key_is_group;
		}
		aq_trace_context_add(call, queue, &options, 1, 1, &value, &isnull);
		queue = side_to_put(call, queue);
		targets = choose_targets(call, &queue, &options, 1, &value, &isnull);
		if (has_room(call, queue, targets, 1, &wait))
			break;
		begin_again(&memory);
	}
	MemoryContextSwitchTo(outer);
	if (is_unwanted(targets, 0))
		return NULL;
	queue = begin_put(queue, &options, 1, &begins);
	options.immediate = call->immediate;
	if (options.immediate)
		aq_immediate_check_put(queue);
	put(queue, &options, 1, &value, &isnull, targets, id);
	count_put(queue, 1, &value, &isnull);
	if (options.immediate)
		end_immediate(queue, begins);
	else
		note_put(queue);
	return id;
}

/*
 * The ids of n messages, in their order; NULL for those that no subscriber
 * wants.  payloads NULL: none were given.
 */
pg_uuid_t **
aq_enqueue_messages(const AqEnqueue *call, int n, const Datum *payloads, const bool *isnull)
{
	AQ_TIMED(AQ_TIME_ENQUEUE);
	AqQueue    *queue;
	AqPutOptions common;
	AqPutOptions *own;
	Datum	   *values = palloc(n * sizeof(Datum) + 1);
	bool	   *nulls = palloc(n * sizeof(bool) + 1);
	bool	   *unwanted = palloc(n * sizeof(bool) + 1);
	pg_uuid_t  *made = palloc(n * sizeof(pg_uuid_t) + 1);
	pg_uuid_t **ids = palloc0(n * sizeof(pg_uuid_t *) + 1);
	Bitmapset **targets;
	int			kept;
	bool		begins;
	AqFlowWait	wait = {0};
	MemoryContext outer = CurrentMemoryContext;
	MemoryContext memory = NULL;

	for (;;)
	{
		const AqEnqueue *each;
		bool		from_text;
		TimestampTz now = 0;

		queue = get_queue_in_turn(call);
		if (payloads == NULL)
			ereport(ERROR, aq_error(AQ_ERR_ARGUMENT_NULL, "\"payloads\" must not be null"));
		from_text = is_text_to_read(queue, call->payload_type);
		read_options(call, queue, &now, &common);
		own = call->each != NULL ? read_each(call->each, n, queue, &now) : NULL;
		if (n == 0)
			return ids;			/* in the first attempt */
		for (int i = 0; i < n; i++)
		{
			nulls[i] = isnull[i];
			values[i] = from_text && !isnull[i] ? text_to_payload(queue, payloads[i]) : payloads[i];
		}
		each = aq_message_key_agree(queue, call, n, values, nulls);
		if (each == NULL && aq_trace_context_differs(call, queue, n, nulls))
			each = aq_properties_each(call, n);
		if (each != call->each)
			own = read_each(each, n, queue, &now);
		aq_trace_context_add(call, queue, own != NULL ? own : &common, own != NULL ? n : 1, n, values, nulls);
		queue = side_to_put(call, queue);
		targets = own != NULL ? choose_for_each(each, &queue, own, n, values, nulls)
			: choose_targets(call, &queue, &common, n, values, nulls);
		if (has_room(call, queue, targets, n, &wait))
			break;
		begin_again(&memory);
	}
	MemoryContextSwitchTo(outer);
	kept = drop_unwanted(n, values, nulls, targets, own, unwanted);
	if (kept > 0)
	{
		queue = begin_put(queue, own != NULL ? own : &common, own != NULL ? kept : 1, &begins);
		if (own != NULL)
			put_each(queue, own, kept, values, nulls, targets, made);
		else
			put(queue, &common, kept, values, nulls, targets, made);
		count_put(queue, kept, values, nulls);
		note_put(queue);
	}
	for (int i = 0; i < n; i++)
		if (!unwanted[i])
			ids[i] = made++;
	return ids;
}

text *
aq_enqueue_check_later(const char *command, const char *queue_name, Oid payload_type, Datum payload, bool isnull,
					   const struct varlena *options)
{
	AqEnqueue	call = {.command = command, .queue = pstrdup(queue_name), .payload_type = payload_type,
		.priority = AQ_DEFAULT_PRIORITY, .default_priority = true, .default_delay = true, .default_expiration = true};
	AqEnqueue  *message;
	AqQueue    *queue = get_queue(&call);
	AqPutOptions unused;
	TimestampTz now = 0;
	ListCell   *lc;
	text	   *result;
	Oid			output;
	bool		is_varlena;
	int			nest;

	message = aq_message_options_read(&call, options, 1);
	read_options(message, queue, &now, &unused);
	if (!queue->multi)
		refuse_recipients(queue, message);
	foreach(lc, message->recipients)
	{
		if (lfirst(lc) == NULL)
			ereport(ERROR, aq_error(AQ_ERR_RECIPIENT_INVALID, "a recipient is null"));
		aq_args_check_name(lfirst(lc), "recipient");
	}
	if (isnull)
		return NULL;
	if (is_text_to_read(queue, payload_type))
		payload = text_to_payload(queue, payload);
	getTypeOutputInfo(queue->payload_type, &output, &is_varlena);
	nest = aq_run_as_begin();
	result = cstring_to_text(OidOutputFunctionCall(output, payload));
	aq_run_as_end(nest);
	return result;
}

/* Enqueues n messages with the same payload, in the current transaction and with the privileges of the current role. */
ArrayType *
aq_enqueue_repeated(const char *command, const char *queue_name, const text *payload, const struct varlena *options, int n,
					int64 producer)
{
	AqEnqueue	call = {.command = command, .queue = pstrdup(queue_name), .payload_type = TEXTOID,
		.priority = AQ_DEFAULT_PRIORITY,
		.default_priority = true, .default_delay = true, .default_expiration = true, .producer = producer, .unlimited = true};
	Datum	   *payloads = palloc(n * sizeof(Datum) + 1);
	bool	   *nulls = palloc(n * sizeof(bool) + 1);

	for (int i = 0; i < n; i++)
	{
		payloads[i] = PointerGetDatum(payload);
		nulls[i] = payload == NULL;
	}
	call.each = aq_message_options_read(&call, options, n);
	return aq_enqueue_ids_to_array(aq_enqueue_messages(&call, n, payloads, nulls), n);
}

/* As uuid[], lower bound 1. */
ArrayType *
aq_enqueue_ids_to_array(pg_uuid_t *const *ids, int n)
{
	Datum	   *elements = palloc(n * sizeof(Datum) + 1);
	bool	   *nulls = palloc(n * sizeof(bool) + 1);
	int			lower = 1;

	for (int i = 0; i < n; i++)
	{
		nulls[i] = ids[i] == NULL;
		elements[i] = UUIDPGetDatum(ids[i]);
	}
	return construct_md_array(elements, nulls, n > 0 ? 1 : 0, &n, &lower, UUIDOID, UUID_LEN, false, TYPALIGN_CHAR);
}
