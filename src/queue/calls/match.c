/*-------------------------------------------------------------------------
 *
 * match.c
 *	  Finding the subscribers whose rules match a message.
 *
 * An error of a rule affects its subscriber, not the enqueuing transaction:
 * the subscriber does not get the message, as if the rule were null.  Failures
 * are counted, and the first one of a rule is logged.  This is only so for
 * errors of the rule's text or of the data (aq_error_is_of_user); others, while
 * the rule is compiled or evaluated, fail the enqueue.
 *
 * A subtransaction undoes changes that a rule has made before an error.  A
 * rule that cannot raise errors needs none.  Rules that call only built-in
 * functions share one, because they change nothing.  A rule that runs users'
 * code can write, so it has a separate one for each message.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/calls/calls_private.h"

#include "access/xact.h"
#include "common/hashfn.h"
#include "utils/resowner.h"
#include "utils/timestamp.h"

/* n messages with the same properties, and their consumers */
typedef struct Matching
{
	AqQueue    *queue;
	AqMessage	message;		/* its payload is set for each */
	uint32		n;
	const Datum *payloads;
	const bool *nulls;
	Bitmapset **targets;
	MemoryContext context;		/* the caller's, like the resource owner */
	ResourceOwner owner;
	bool		guarded;		/* within a subtransaction */
} Matching;

/* --- the subtransaction ------------------------------------------------------------ */

static void
guard(Matching *m)
{
	if (m->guarded)
		return;
	BeginInternalSubTransaction(NULL);
	m->guarded = true;
	MemoryContextSwitchTo(m->context);
}

static void
unguard(Matching *m, bool failed)
{
	if (!m->guarded)
		return;
	if (failed)
		RollbackAndReleaseCurrentSubTransaction();
	else
		ReleaseCurrentSubTransaction();
	m->guarded = false;
	MemoryContextSwitchTo(m->context);
	CurrentResourceOwner = m->owner;
}

/* --- failures -------------------------------------------------------------------------- */

/*
 * messages: the number for which the rule has failed.  Failures are counted
 * even if the transaction rolls back.
 */
static void
count_failure(Matching *m, const AqConsumer *consumer, uint32 messages, const ErrorData *error)
{
	AqQueue    *queue = m->queue->persistent != NULL ? m->queue->persistent : m->queue;
	uint64		rule = hash_bytes_extended((const unsigned char *) consumer->rule_text,
										   strlen(consumer->rule_text), 0) | 1;

	aq_pins_pin(queue);
	if (!aq_traffic_rule_failed(queue->shm, consumer->position, consumer->number, messages, error->sqlerrcode, rule))
		return;
	/*
	 * only to the server log: the message may contain data that the enqueuing
	 * role must not see
	 */
	ereport(LOG_SERVER_ONLY,
			(errcode(error->sqlerrcode),
			 errmsg("rule of subscriber \"%s\" of queue \"%s\" failed: %s", consumer->name, queue->name,
					aq_error_clip(error->message)),
			 errdetail("The rule is \"%s\".", aq_error_clip(consumer->rule_text)),
			 errhint("The subscriber does not get messages for which its rule fails. aq.subscribers counts them.")));
}

/*
 * Called in PG_CATCH.  The subtransaction ends first, because a handler of the
 * error knows only its own ones.
 */
static ErrorData *
catch_error(Matching *m)
{
	ErrorData  *error;

	MemoryContextSwitchTo(m->context);
	error = CopyErrorData();
	FlushErrorState();
	unguard(m, true);
	return error;
}

/* Called in PG_CATCH, for an error that is not a rule's, for example because memory is short. */
static void
rethrow(Matching *m)
{
	if (!m->guarded)
		PG_RE_THROW();
	ReThrowError(catch_error(m));
}

/* Called in PG_CATCH. */
static void
on_error(Matching *m, const AqConsumer *consumer, uint32 messages)
{
	ErrorData  *error;

	if (!m->guarded)
		PG_RE_THROW();
	error = catch_error(m);
	if (!aq_error_is_of_user(error->sqlerrcode))
		ReThrowError(error);
	count_failure(m, consumer, messages, error);
	FreeErrorData(error);
}

/* --- matching ------------------------------------------------------------------------- */

static void
set_payload(Matching *m, uint32 number)
{
	m->message.payload = m->payloads[number];
	m->message.payload_null = m->nulls[number];
}

static void
match_message(Matching *m, AqConsumer *consumer, uint32 number)
{
	set_payload(m, number);
	if (aq_rule_matches(consumer->rule, &m->message))
		m->targets[number] = bms_add_member(m->targets[number], consumer->position);
}

static void
compile_rule(Matching *m, AqConsumer *consumer)
{
	if (consumer->rule != NULL)
		return;
	guard(m);
	consumer->rule = aq_rule_compile(m->queue, consumer->rule_text, aq_rule_role(consumer->rule_role),
									 m->queue->context);
}

/* Matches all messages from *next on, until the rule fails for one. */
static void
match_guarded(Matching *m, AqConsumer *consumer, volatile uint32 *next)
{
	bool		user_code;

	compile_rule(m, consumer);
	user_code = aq_rule_runs_user_code(consumer->rule);
	for (; *next < m->n; (*next)++)
	{
		if (user_code)
			unguard(m, false);
		guard(m);
		match_message(m, consumer, *next);
	}
	if (user_code)
		unguard(m, false);
}

static void
match_consumer(Matching *m, AqConsumer *consumer)
{
	volatile uint32 next = 0;

	if (consumer->rule != NULL && !aq_rule_may_raise(consumer->rule))
	{
		for (uint32 i = 0; i < m->n; i++)
			match_message(m, consumer, i);
		return;
	}
	while (next < m->n)
	{
		PG_TRY();
		{
			match_guarded(m, consumer, &next);
		}
		PG_CATCH();
		{
			/* if the rule cannot be compiled, it fails for all */
			uint32		failed = consumer->rule != NULL ? 1 : m->n - next;

			on_error(m, consumer, failed);
			next += failed;
		}
		PG_END_TRY();
	}
}

/* The rules that are found by the constant that they compare with; the others are evaluated. */
static void
match_consumers(Matching *m)
{
	AqConsumer *const *others;
	int			n = aq_rule_index_others(m->queue, &others);

	for (uint32 i = 0; i < m->n; i++)
	{
		set_payload(m, i);
		m->targets[i] = aq_rule_index_find(m->queue, &m->message, m->targets[i]);
	}
	for (int i = 0; i < n; i++)
		match_consumer(m, others[i]);
	aq_point("rules-matched");
	unguard(m, false);
}

/* Does any compiled rule run users' code? */
static bool
runs_user_code(AqQueue *queue)
{
	AqConsumer *const *others;
	int			n = aq_rule_index_others(queue, &others);

	for (int i = 0; i < n; i++)
		if (others[i]->rule != NULL && aq_rule_runs_user_code(others[i]->rule))
			return true;
	return false;
}

static void
set_message(AqMessage *message, const AqPutOptions *options)
{
	message->priority = options->priority;
	message->correlation = options->correlation;
	message->key = options->key;
	message->properties = options->properties;
	message->sender = options->sender;
	message->exception_queue = options->exception_queue;
	message->enqueue_time = GetCurrentTimestamp();
	message->ready_at = options->ready_at;
	message->expires_at = options->expires_at;
	message->state = options->ready_at > message->enqueue_time ? 1 : 0;
}

/*
 * Fills in the consumers of n messages: subscribers without a rule, and those
 * whose rule is true.  NULL: none.
 */
void
aq_match_subscribers(AqQueue *queue, const AqPutOptions *options, uint32 n, const Datum *payloads, const bool *nulls,
					 Bitmapset **targets)
{
	int64		began = aq_time_now();
	bool		as_others;
	int			nest;
	Matching   *m = palloc0(sizeof(Matching));	/* not on the stack, because PG_CATCH reads it */

	aq_rule_index_make(queue);
	as_others = runs_user_code(queue);
	nest = as_others ? aq_run_as_begin() : 0;
	*m = (Matching) {.queue = queue, .n = n, .payloads = payloads, .nulls = nulls, .targets = targets,
		.context = CurrentMemoryContext, .owner = CurrentResourceOwner};
	set_message(&m->message, options);
	for (uint32 i = 0; i < n; i++)
		targets[i] = bms_copy(queue->without_rule);
	aq_catalog_retain();
	PG_TRY();
	{
		match_consumers(m);
	}
	PG_CATCH();
	{
		aq_catalog_release();
		rethrow(m);
	}
	PG_END_TRY();
	aq_catalog_release();
	if (as_others)
		aq_run_as_end(nest);
	if (began != 0)
	{
		int64		ended = aq_time_now();

		aq_pins_pin(queue);
		aq_traffic_add(queue->shm, AQ_TRAFFIC_RULES_ELAPSED, Max(ended - began, 0));
	}
}
