/*-------------------------------------------------------------------------
 *
 * exception.c
 *	  Functions for the worker to put a failed message into an exception queue,
 *	  as a dead letter that says where it comes from and why.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/memory/memory_private.h"

#include "catalog/pg_type.h"
#include "utils/datetime.h"
#include "utils/fmgrprotos.h"
#include "utils/json.h"
#include "utils/jsonb.h"
#include "utils/numeric.h"
#include "utils/timestamp.h"

/* Pins the queue.  Returns false if a user has locked its tables. */
bool
aq_exception_pin(AqQueue *target)
{
	if (!aq_queue_lock_tables(target, AccessShareLock))
		return false;
	aq_pins_pin(target);
	return true;
}

/* The queue is pinned.  Returns false if its store would have to wait.  keyed: the message has a key. */
bool
aq_exception_may_put(AqQueue *target, bool keyed)
{
	return target->store->worker_may_put == NULL || target->store->worker_may_put(target, keyed);
}

/*
 * Puts n dead letters with the same payload, each with its options: copies of the
 * message of the source.  The target is pinned.  Returns false if its store would have
 * to wait.
 */
bool
aq_exception_put(AqQueue *source, const pg_uuid_t *id, AqQueue *target, AqPutOptions *options, uint32 n,
				 Datum payload, bool isnull)
{
	pg_uuid_t  *ids = palloc(n * sizeof(pg_uuid_t));
	Datum	   *payloads = palloc(n * sizeof(Datum));
	bool	   *nulls = palloc(n * sizeof(bool));

	if (!aq_exception_may_put(target, options->each[0].key != NULL))
		return false;
	/* a queue table can have priorities that a sharded queue cannot */
	if (aq_queue_is_sharded(target))
		options->priority = Min(Max(options->priority, 0), AQ_PRIORITIES - 1);
	for (uint32 i = 0; i < n; i++)
	{
		payloads[i] = payload;
		nulls[i] = isnull;
	}
	target->store->put(target, options, n, payloads, nulls, NULL, ids);
	if (aq_message_body_is_apart(target->payload_type, payload, isnull))
		for (uint32 i = 0; i < n; i++)
			aq_message_body_copy(source, id, AQ_ANY_POSITION, target, &ids[i]);
	return true;
}

/* --- what a dead letter says ------------------------------------------------------------ */

static void
push_key(AqJsonbState *state, const char *key)
{
	JsonbValue	value = {.type = jbvString};

	value.val.string.val = unconstify(char *, key);
	value.val.string.len = strlen(key);
	aq_jsonb_push(state, WJB_KEY, &value);
}

/* text NULL: the key is left out. */
static void
push_text(AqJsonbState *state, const char *key, const char *text, int length)
{
	JsonbValue	value = {.type = jbvString};

	if (text == NULL)
		return;
	push_key(state, key);
	value.val.string.val = unconstify(char *, text);
	value.val.string.len = length;
	aq_jsonb_push(state, WJB_VALUE, &value);
}

static void
push_string(AqJsonbState *state, const char *key, const char *text)
{
	push_text(state, key, text, text != NULL ? strlen(text) : 0);
}

static void
push_number(AqJsonbState *state, const char *key, int64 number)
{
	JsonbValue	value = {.type = jbvNumeric, .val.numeric = int64_to_numeric(number)};

	push_key(state, key);
	aq_jsonb_push(state, WJB_VALUE, &value);
}

/* time 0: the key is left out. */
static void
push_time(AqJsonbState *state, const char *key, TimestampTz time)
{
	int			utc = 0;

	if (time != 0)
		push_string(state, key, JsonEncodeDateTime(palloc(MAXDATELEN + 1), TimestampTzGetDatum(time), TIMESTAMPTZOID,
												   &utc));
}

static const char *
consumer_name(AqQueue *queue, int position)
{
	for (int i = 0; i < queue->nconsumers; i++)
		if (queue->consumers[i].position == position)
			return queue->consumers[i].name;
	return NULL;
}

static const char *
reason_of(const AqMessage *m, const AqDeath *death)
{
	if (death->kind == AQ_DEATH_REJECTED)
		return "rejected";
	if (m->expires_at != 0 && m->expires_at <= death->died)
		return "expired";
	return death->kind == AQ_DEATH_LEASE ? "lease" : "retries";
}

/*
 * How many of the dead letters that a message was before are kept: the latest ones
 * and the first one.  Exception queues can form a circle, in which a message moves
 * without end.
 */
#define BEFORE_KEPT 8

static JsonbValue *
value_of(JsonbContainer *letter, const char *key, int type)
{
	JsonbValue *value = getKeyJsonValueFromContainer(letter, key, strlen(key), NULL);

	return value != NULL && (int) value->type == type ? value : NULL;
}

/* The letter and those that it was before, the latest one first. */
static List *
chain_of(JsonbContainer *letter)
{
	List	   *chain = NIL;
	JsonbValue *before;

	for (; letter != NULL; letter = before != NULL ? before->val.binary.data : NULL)
	{
		chain = lappend(chain, letter);
		before = value_of(letter, "before", jbvBinary);
	}
	return chain;
}

/* How many letters are missing between this one and the one that it was before. */
static int64
omitted_of(JsonbContainer *letter)
{
	JsonbValue *omitted = value_of(letter, "omitted", jbvNumeric);

	return omitted == NULL ? 0 : DatumGetInt64(DirectFunctionCall1(numeric_int8, NumericGetDatum(omitted->val.numeric)));
}

static bool
is_key(const JsonbValue *key, const char *name)
{
	return key->val.string.len == (int) strlen(name) && memcmp(key->val.string.val, name, key->val.string.len) == 0;
}

/* The letter's own keys.  All values but that of "before" are scalars. */
static void
push_letter(AqJsonbState *state, JsonbContainer *letter)
{
	JsonbIterator *it = JsonbIteratorInit(letter);
	JsonbIteratorToken token;
	JsonbValue	key,
				value;

	(void) JsonbIteratorNext(&it, &key, true);
	while ((token = JsonbIteratorNext(&it, &key, true)) == WJB_KEY)
	{
		(void) JsonbIteratorNext(&it, &value, true);
		if (is_key(&key, "before") || is_key(&key, "omitted"))
			continue;
		aq_jsonb_push(state, WJB_KEY, &key);
		aq_jsonb_push(state, WJB_VALUE, &value);
	}
}

/* The chain, without the letters before its last one that are too many. */
static JsonbValue *
shortened(const List *chain)
{
	AqJsonbState state = {0};
	int			n = list_length(chain);
	int64		omitted = n - BEFORE_KEPT;

	for (int i = BEFORE_KEPT - 2; i < n - 1; i++)
		omitted += omitted_of(list_nth(chain, i));
	for (int i = 0; i < BEFORE_KEPT; i++)
	{
		bool		last = i == BEFORE_KEPT - 1;

		aq_jsonb_push(&state, WJB_BEGIN_OBJECT, NULL);
		push_letter(&state, list_nth(chain, last ? n - 1 : i));
		if (i == BEFORE_KEPT - 2)
			push_number(&state, "omitted", omitted);
		if (!last)
			push_key(&state, "before");
	}
	for (int i = 0; i < BEFORE_KEPT; i++)
		aq_jsonb_push(&state, WJB_END_OBJECT, NULL);
	return state.result;
}

static void
push_before(AqJsonbState *state, JsonbContainer *letter)
{
	List	   *chain = chain_of(letter);
	JsonbValue	before = {.type = jbvBinary};
	Jsonb	   *jsonb;

	push_key(state, "before");
	if (list_length(chain) > BEFORE_KEPT)
	{
		jsonb = JsonbValueToJsonb(shortened(chain));
		letter = &jsonb->root;
	}
	before.val.binary.data = letter;
	aq_jsonb_push(state, WJB_VALUE, &before);
}

/*
 * Where the message comes from, why it failed, and those of its properties that
 * it does not keep as a message of the exception queue.  A message that was a
 * dead letter before keeps that, too, but not without limit.
 */
static struct varlena *
dead_letter_of(AqQueue *source, const AqMessage *m, const AqDeath *death)
{
	AqJsonbState state = {0};

	aq_jsonb_push(&state, WJB_BEGIN_OBJECT, NULL);
	push_string(&state, "queue", source->name);
	push_number(&state, "queue_id", abs(source->id));
	push_string(&state, "consumer", source->multi ? consumer_name(source, death->position) : NULL);
	push_string(&state, "reason", reason_of(m, death));
	push_string(&state, "error", death->error);
	push_number(&state, "attempts", death->attempts);
	push_time(&state, "first_attempt", death->first);
	push_time(&state, "last_attempt", death->last);
	push_time(&state, "died", death->died);
	push_time(&state, "enqueue_time", m->enqueue_time);
	push_time(&state, "ready_at", m->ready_at);
	push_time(&state, "expires_at", m->expires_at);
	if (m->exception_queue != NULL)
		push_text(&state, "exception_queue", VARDATA_ANY(m->exception_queue), VARSIZE_ANY_EXHDR(m->exception_queue));
	if (m->dead_letter != NULL)
		push_before(&state, &((Jsonb *) PG_DETOAST_DATUM(PointerGetDatum(m->dead_letter)))->root);
	aq_jsonb_push(&state, WJB_END_OBJECT, NULL);
	return (struct varlena *) JsonbValueToJsonb(state.result);
}

/* The options of the dead letter for one consumer for which the message has failed. */
void
aq_exception_letter(AqQueue *source, const AqMessage *m, const AqDeath *death, AqPutOptions *options)
{
	options->correlation = m->correlation;
	options->key = m->key;
	options->properties = m->properties;
	options->attempts = death->attempts;
	options->dead_letter = dead_letter_of(source, m, death);
}
