/*-------------------------------------------------------------------------
 *
 * position.c
 *	  A session's position in each queue: FIRST_MESSAGE and NEXT_MESSAGE.
 *
 * With a navigation, a session reads a queue from its head to its end: each
 * dequeue continues after the message of the previous one.  Messages that are
 * enqueued before this position meanwhile are seen in the next round, which
 * begins when the end is reached.  The position belongs to the session and the
 * queue, and is kept over transactions.  Without a navigation every dequeue
 * begins at the head.
 *
 * In a queue table with message grouping, a session is also in a group: it
 * gets the messages of one transaction, then an error at the end of the group,
 * and then requests the next one.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/calls/calls_private.h"

#include "utils/hsearch.h"
#include "utils/memutils.h"

struct AqPosition
{
	int32		queue_id;		/* hash key */
	bool		begun;			/* the session has passed a message */
	pg_uuid_t	id;				/* of the latest message */
	AqPlace		place;
	int64		group;			/* 0: none */
	char	   *consumer;		/* of the latest dequeue; NULL: none */
	char	   *correlation;	/* of the latest dequeue; NULL: any */
};

static HTAB *positions;

static AqPosition *
position_of(int32 queue_id)
{
	AqPosition *position;
	bool		found;

	if (positions == NULL)
	{
		HASHCTL		info = {.keysize = sizeof(int32), .entrysize = sizeof(AqPosition)};

		positions = hash_create("pgaq positions", 16, &info, HASH_ELEM | HASH_BLOBS);
	}
	position = hash_search(positions, &queue_id, HASH_ENTER, &found);
	if (!found)
	{
		position->begun = false;
		position->group = 0;
		position->consumer = position->correlation = NULL;
	}
	return position;
}

static void
clear(AqPosition *position)
{
	position->begun = false;
	position->group = 0;
	if (position->consumer != NULL)
		pfree(position->consumer);
	if (position->correlation != NULL)
		pfree(position->correlation);
	position->consumer = position->correlation = NULL;
}

static bool
differ(const char *a, const char *b)
{
	return a != NULL && b != NULL && strcmp(a, b) != 0;
}

/*
 * Null, in the previous dequeue or in this one, does not count as a change of
 * consumer or correlation.
 */
static void
check_unchanged(AqQueue *queue, AqPosition *position, const char *consumer, const char *correlation)
{
	if (differ(position->consumer, consumer))
		ereport(ERROR,
				aq_error(AQ_ERR_CONSUMER_CHANGED, "cannot change the consumer in the middle of queue \"%s\"",
						 queue->name),
				aq_error_hint("Start again with navigation => 'first_message'.",
							  "Start again with navigation => dbms_aq.first_message()."));
	if (differ(position->correlation, correlation))
		ereport(ERROR,
				aq_error(AQ_ERR_CORRELATION_CHANGED, "cannot change the correlation in the middle of queue \"%s\"",
						 queue->name),
				aq_error_hint("Start again with navigation => 'first_message'.",
							  "Start again with navigation => dbms_aq.first_message()."));
}

static AqNavigation
navigation_of(const char *name)
{
	static const struct
	{
		const char *name;
		AqNavigation navigation;
	}			names[] = {
		{"first_message", {.given = true, .first = true}},
		{"next_message", {.given = true}},
		{"next_transaction", {.given = true, .transaction = true}},
		{"first_message_multi_group", {.given = true, .first = true, .groups = true}},
		{"next_message_multi_group", {.given = true, .groups = true}},
	};

	for (int i = 0; i < lengthof(names); i++)
		if (strcmp(names[i].name, name) == 0)
			return names[i].navigation;
	ereport(ERROR,
			aq_error(AQ_ERR_NAVIGATION_INVALID, "navigation \"%s\" does not exist", name),
			errhint("The navigations are first_message, next_message, next_transaction, "
					"first_message_multi_group and next_message_multi_group."));
}

/*
 * Sets the options of the take according to the session's position. name: name
 * of the navigation, NULL for none.
 */
AqNavigation
aq_position_begin(AqQueue *queue, AqTakeOptions *take, const char *name,
				  const char *consumer, const char *correlation)
{
	AqNavigation navigation = {0};
	AqPosition *position;
	bool		grouped = queue->table.grouping && take->mode != AQ_MODE_BROWSE;

	if (name != NULL)
		navigation = navigation_of(name);
	take->one_group = grouped && !navigation.groups && take->id == NULL;
	if (!navigation.given || take->id != NULL)
	{
		navigation.given = false;
		return navigation;
	}
	if (navigation.transaction && !queue->table.grouping)
		ereport(ERROR,
				aq_error(AQ_ERR_NOT_GROUPED, "queue \"%s\" does not group messages by transactions", queue->name),
				aq_error_hint("The navigation next_transaction needs a queue table with message_grouping => true.",
							  "The navigation next_transaction needs a queue table with message_grouping => dbms_aqadm.transactional()."));
	position = position_of(queue->id);
	if (navigation.first)
		clear(position);
	else if (navigation.transaction && !position->begun)
		ereport(ERROR,
				aq_error(AQ_ERR_NAVIGATION_SEQUENCE, "there is no current transaction in queue \"%s\"",
						 queue->name),
				errhint("Start with first_message or next_message."));
	else if (position->begun)
	{
		check_unchanged(queue, position, consumer, correlation);
		take->after = &position->id;
		take->place = &position->place;
		if (grouped && navigation.transaction)
			take->not_group = position->group;
		else if (grouped && !navigation.groups)
			take->group = position->group;
	}
	navigation.position = position;
	return navigation;
}

static void
keep(char **kept, const char *string)
{
	char	   *old = *kept;

	if (old == NULL ? string == NULL : string != NULL && strcmp(old, string) == 0)
		return;
	*kept = string ? MemoryContextStrdup(TopMemoryContext, string) : NULL;
	if (old != NULL)
		pfree(old);
}

/* A message was returned: the session's position is now after it. */
void
aq_position_moved(const AqNavigation *navigation, const AqMessage *message,
				  const char *consumer, const char *correlation)
{
	AqPosition *position = navigation->position;

	if (position == NULL)
		return;
	keep(&position->consumer, consumer);
	keep(&position->correlation, correlation);
	position->begun = true;
	position->id = message->id;
	position->place = message->place;
	position->group = message->group;
}

/*
 * The take has found no message after the position: continues from the head,
 * if there may be other messages.
 */
bool
aq_position_rewind(AqQueue *queue, const AqNavigation *navigation, AqTakeOptions *take)
{
	if (navigation->position == NULL || take->after == NULL)
		return false;
	if (take->group != 0)
		ereport(ERROR,
				aq_error(AQ_ERR_GROUP_END, "the transaction has no more messages in queue \"%s\"", queue->name),
				aq_error_hint("Continue with navigation => 'next_transaction'.",
							  "Continue with navigation => dbms_aq.next_transaction()."));
	if (take->mode == AQ_MODE_BROWSE)
		return false;
	take->after = NULL;
	take->place = NULL;
	return true;
}

/*
 * No message was found, and the wait has ended: the next dequeue begins at the
 * head.
 */
void
aq_position_none(const AqNavigation *navigation)
{
	if (navigation->position != NULL)
		clear(navigation->position);
}

/* --- to a helper and back: see autonomous.c ------------------------------------------ */

static void
write_all(StringInfo buffer)
{
	HASH_SEQ_STATUS status;
	AqPosition *position;
	int			n = 0;
	int			count_at = buffer->len;

	aq_wire_put_int(buffer, 0);
	if (positions == NULL)
		return;
	hash_seq_init(&status, positions);
	while ((position = hash_seq_search(&status)) != NULL)
	{
		if (!position->begun)
			continue;
		n++;
		aq_wire_put(buffer, position, sizeof(AqPosition));
		aq_wire_put_string(buffer, position->consumer);
		aq_wire_put_string(buffer, position->correlation);
	}
	memcpy(buffer->data + count_at, &n, sizeof(n));
}

static void
forget_all(void)
{
	HASH_SEQ_STATUS status;
	AqPosition *position;

	if (positions == NULL)
		return;
	hash_seq_init(&status, positions);
	while ((position = hash_seq_search(&status)) != NULL)
		clear(position);
}

/* Replaces the positions of this session. */
static void
read_all(const char **cursor)
{
	int			n = aq_wire_get_int(cursor);

	forget_all();
	for (int i = 0; i < n; i++)
	{
		AqPosition	given;
		AqPosition *position;
		const char *consumer,
				   *correlation;

		aq_wire_get(cursor, &given, sizeof(given));
		consumer = aq_wire_get_string(cursor);
		correlation = aq_wire_get_string(cursor);
		position = position_of(given.queue_id);
		position->begun = true;
		position->id = given.id;
		position->place = given.place;
		position->group = given.group;
		keep(&position->consumer, given.consumer != NULL ? consumer : NULL);
		keep(&position->correlation, given.correlation != NULL ? correlation : NULL);
	}
}

void
aq_position_init(void)
{
	static const AqCarried carried = {.write = write_all, .read = read_all, .forget = forget_all};

	aq_autonomous_carried = &carried;
}

static void
move_there(void *arg, const AqMessage *message)
{
	AqPosition *position = arg;

	position->begun = true;
	position->id = message->id;
	position->place = message->place;
	position->group = message->group;
}

/*
 * For dbms_aq.seek: sets the session's position after this message of the
 * consumer, or, if it is null, to the head.
 */
PG_FUNCTION_INFO_V1(aq_position_set);
Datum
aq_position_set(PG_FUNCTION_ARGS)
{
	AQ_TIMED(AQ_TIME_ADMIN);
	char	   *consumer = aq_args_name_or_null(fcinfo, 1, "consumer");
	AqQueue    *queue = aq_catalog_get_for(aq_args_name(fcinfo, 0, "queue_name"), consumer, 0);
	AqTakeOptions options = {.max = 1, .mode = AQ_MODE_BROWSE, .emit = move_there};
	AqPosition *position = position_of(queue->id);

	clear(position);
	if (PG_ARGISNULL(2))
		PG_RETURN_VOID();
	options.position = aq_args_consumer_position(queue, consumer);
	options.id = PG_GETARG_UUID_P(2);
	options.emit_arg = position;
	queue = aq_pins_pin_current(queue, false);
	if (options.position < 0 || queue->store->take(queue, &options) == 0)
		ereport(ERROR,
				aq_error(AQ_ERR_MESSAGE_UNDEFINED, "the last message to skip has just been dequeued"),
				errhint("Try again."));
	keep(&position->consumer, consumer);
	PG_RETURN_VOID();
}
