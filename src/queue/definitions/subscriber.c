/*-------------------------------------------------------------------------
 *
 * subscriber.c
 *	  Subscribers of a queue, and the positions of all its consumers.
 *
 * Every consumer has a position: its bit in the messages' sets of consumers.
 * Recipients, which are named only in recipient lists, get and lose theirs in
 * recipient.c; some positions are reserved for subscribers.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/definitions/definitions_private.h"

#include "access/transam.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "storage/procarray.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

/* interval between checks of removed consumers, in microseconds */
#define CHECK_AGAIN ((int64) 5000000)

/* The lowest free position, or -1.  Consumers are sorted by position. */
static int
free_position(const AqQueue *queue)
{
	int			position = 0;

	while (position < queue->nconsumers && queue->consumers[position].position == position)
		position++;
	return position < AQ_POSITIONS ? position : -1;
}

/* rule: written by the current role; NULL: every message. */
static void
insert_consumer(AqQueue *queue, int position, const char *name, const char *kind, const char *rule, int delivery,
				Datum comment, bool comment_null)
{
	Oid			types[9] = {INT4OID, INT2OID, TEXTOID, TEXTOID, TEXTOID, TEXTOID, INT2OID, OIDOID, OIDOID};
	Datum		values[9];
	char		nulls[10] = "         ";

	values[0] = Int32GetDatum(queue->id);
	values[1] = Int16GetDatum(position);
	values[2] = CStringGetTextDatum(name);
	values[3] = CStringGetTextDatum(kind);
	values[4] = rule ? CStringGetTextDatum(rule) : 0;
	nulls[4] = rule ? ' ' : 'n';
	values[5] = comment;
	nulls[5] = comment_null ? 'n' : ' ';
	values[6] = Int16GetDatum(delivery);
	values[7] = ObjectIdGetDatum(GetUserId());
	nulls[7] = nulls[4];
	values[8] = values[7];
	nulls[8] = strcmp(kind, "subscriber") == 0 ? ' ' : 'n';
	aq_sql_change("INSERT INTO aq_internal.subscriber (queue_id, \"position\", consumer, kind, rule, comment, delivery_mode, rule_role, owner) "
				  "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)", 9, types, values, nulls);
}

/*
 * UPDATE ...  SET of one consumer's row; $3 is a text, $4 the current role;
 * both are null if the text is.
 */
static void
update_consumer(AqQueue *queue, int position, const char *set, const char *text)
{
	Oid			types[4] = {INT4OID, INT2OID, TEXTOID, OIDOID};
	Datum		values[4] = {Int32GetDatum(queue->id), Int16GetDatum(position),
		text ? CStringGetTextDatum(text) : 0, ObjectIdGetDatum(GetUserId())};
	char		nulls[5] = {' ', ' ', text ? ' ' : 'n', text ? ' ' : 'n', '\0'};

	if (aq_sql_change(psprintf("UPDATE aq_internal.subscriber SET %s WHERE queue_id = $1 AND \"position\" = $2", set),
					  4, types, values, nulls) != 1)
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("could not serialize access to the consumers of queue \"%s\"", queue->name),
				 errhint("Run the transaction again.")));
}

static int
position_for_subscriber(AqQueue *queue)
{
	int			position = free_position(queue);
	int			subscribers = 0,
				removed = 0;

	for (int i = 0; i < queue->nconsumers; i++)
	{
		if (queue->consumers[i].name == NULL)
			removed++;
		if (queue->consumers[i].name != NULL && queue->consumers[i].subscriber)
			subscribers++;
	}
	if (position < 0)
		ereport(ERROR,
				aq_error(AQ_ERR_SUBSCRIBER_LIMIT, "queue \"%s\" cannot have more than %d consumers",
						 queue->name, AQ_POSITIONS),
				errdetail("It has %d subscribers and %d recipients. Places of removed consumers that are not free yet: %d.",
						  subscribers, queue->nconsumers - subscribers - removed, removed),
				aq_error_hint("Remove subscribers with aq.unsubscribe, or dequeue the messages of recipients.",
							  "Remove subscribers with dbms_aqadm.remove_subscriber, or dequeue the messages of recipients."));
	return position;
}

/*
 * Inserts a recipient, at a position that is not reserved for subscribers.
 * Returns false if none is free.  The caller has the queue's lock.
 */
bool
aq_subscriber_insert_recipient(AqQueue *queue, const char *name)
{
	int			position = free_position(queue);
	int			recipients = 0;

	for (int i = 0; i < queue->nconsumers; i++)
		if (queue->consumers[i].name != NULL && !queue->consumers[i].subscriber)
			recipients++;
	if (position < 0 || recipients >= AQ_RECIPIENT_POSITIONS)
		return false;
	insert_consumer(queue, position, name, "recipient", NULL, AQ_PERSISTENT_OR_BUFFERED, 0, true);
	return true;
}

/* --- a full queue -------------------------------------------------------------------- */

/* The session's request to free positions; 0: it has not asked yet. */
static uint32 request;

static void
ask_for_room(AqQueueShm *shm, const char *unused)
{
	if (request == 0)
		request = pg_atomic_add_fetch_u32(&shm->room_asked, 1);
	aq_work_post(shm, AQ_WORK_RECIPIENTS);
}

static bool
has_room(AqQueue *queue, const char *unused)
{
	aq_pins_pin(queue);
	return free_position(queue) >= 0 ||
		(request != 0 && (int32) (pg_atomic_read_u32(&queue->shm->room_answered) - request) >= 0);
}

/*
 * If no position is free, waits until the worker has freed those that nothing
 * needs: of removed consumers, and of recipients without messages.  This comes
 * before the queue's lock, for which the worker does not wait.
 */
static void
make_room(const char *name)
{
	AqQueue    *queue = aq_catalog_get(name, AQ_RIGHT_SUBSCRIBE);

	if (!queue->multi || free_position(queue) >= 0 || aq_ddl_possible_here(queue))
		return;
	request = 0;
	aq_ddl_by_worker(queue, AQ_RIGHT_SUBSCRIBE, has_room, ask_for_room, NULL);
}

/* --- subscribers --------------------------------------------------------------------- */

static AqQueue *
topic_for_change(FunctionCallInfo fcinfo, const char *command)
{
	AqQueue    *queue;

	aq_session_require_write(command);
	queue = aq_ddl_queue_for(aq_args_name(fcinfo, 0, "queue_name"), AQ_RIGHT_SUBSCRIBE, ShareUpdateExclusiveLock);
	if (!queue->multi)
		ereport(ERROR,
				aq_error(AQ_ERR_CONSUMER_FORBIDDEN, "queue \"%s\" has a single consumer", queue->name),
				errhint("Only a queue created with multiple_consumers => true has subscribers."));
	return queue;
}

static AqQueue *
topic_for_subscriber(FunctionCallInfo fcinfo)
{
	aq_session_require_write("aq.subscribe()");
	make_room(aq_args_name(fcinfo, 0, "queue_name"));
	return topic_for_change(fcinfo, "aq.subscribe()");
}

/* A role with the subscribe privilege has it on subscribers that it has subscribed itself. */
static void
check_owner(AqQueue *queue, const AqConsumer *consumer)
{
	if (aq_privilege_allows(queue, AQ_RIGHT_OWNER) ||
		(OidIsValid(consumer->owner) && has_privs_of_role(GetUserId(), consumer->owner)))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("must be owner of subscriber \"%s\" of queue \"%s\"", consumer->name, queue->name),
			 errdetail("The subscribe privilege applies to subscribers that the role has subscribed itself.")));
}

static AqConsumer *
own_subscriber(AqQueue *queue, const char *name, bool or_recipient)
{
	AqConsumer *consumer = aq_catalog_consumer(queue, name);

	if (consumer == NULL || (!consumer->subscriber && !or_recipient))
		ereport(ERROR,
				aq_error(AQ_ERR_SUBSCRIBER_UNDEFINED, "\"%s\" is not a subscriber of queue \"%s\"",
						 name, queue->name),
				consumer != NULL ? errdetail("It is a recipient: it gets the messages that name it.") : 0,
				consumer != NULL ? aq_error_hint("Subscribe it with aq.subscribe.", "Subscribe it with dbms_aqadm.add_subscriber.") :
				aq_error_hint("Check the spelling, also upper and lower case: the view aq.subscribers lists subscribers, and recipients while they have messages.",
							  "The view sys.all_queue_subscribers lists them."));
	check_owner(queue, consumer);
	return consumer;
}

/* Such a role does not get the messages of another one by subscribing its name; consumer: the recipient of this name, or NULL. */
static void
check_name_is_free(AqQueue *queue, const char *name, const AqConsumer *consumer)
{
	if (aq_privilege_allows(queue, AQ_RIGHT_OWNER) || aq_privilege_consumes(queue, name))
		return;
	if (consumer != NULL || aq_grants_exist(queue, name))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for consumer \"%s\" of queue \"%s\"", name, queue->name),
				 consumer != NULL ? errdetail("The name is in use as a recipient.") :
				 errdetail("The name is granted to another role."),
				 errhint("Subscribe another name.")));
}

/*
 * A temporary subscriber that exists is subscribed again: it stays at least as long
 * as this session, too, or for good.
 */
static void
renew(AqQueue *queue, const AqConsumer *consumer, bool temporary)
{
	int64		number = consumer->number;
	int32		id = queue->id;
	char	   *name = pstrdup(consumer->name);

	if (!aq_temporary_is_consumer(id, consumer->number))
		return;
	queue = aq_catalog_get_by_id(id, true);
	check_owner(queue, aq_catalog_consumer(queue, name));
	if (temporary)
		aq_temporary_enter_consumer(id, name);
	else
		aq_temporary_forget_consumer(id, number);
}

PG_FUNCTION_INFO_V1(aq_subscriber_add);
Datum
aq_subscriber_add(PG_FUNCTION_ARGS)
{
	AQ_TIMED(AQ_TIME_ADMIN);
	AqQueue    *queue = topic_for_subscriber(fcinfo);
	char	   *name = aq_args_name(fcinfo, 1, "consumer");
	char	   *rule = aq_args_name_or_null(fcinfo, 2, "rule");
	AqConsumer *consumer;
	int			delivery = aq_args_delivery(fcinfo, 4);
	bool		owner = aq_privilege_allows(queue, AQ_RIGHT_OWNER);
	bool		temporary = !PG_ARGISNULL(6) && PG_GETARG_BOOL(6);
	int32		id = queue->id;

	aq_args_check_name(name, "consumer");
	aq_non_persistent_refuse_consumer(queue, name);
	if (delivery == AQ_BUFFERED)
		aq_non_persistent_refuse(queue, "subscribe to buffered messages of");
	if (rule != NULL)
		(void) aq_rule_compile(queue, rule, GetUserId(), CurrentMemoryContext);
	consumer = aq_catalog_consumer(queue, name);
	if (consumer != NULL && consumer->subscriber)
	{
		if (aq_args_if_not_exists(fcinfo, 5, "subscriber", name))
		{
			renew(queue, consumer, temporary);
			PG_RETURN_DATUM(PG_GETARG_DATUM(1));
		}
		ereport(ERROR,
				aq_error(AQ_ERR_SUBSCRIBER_EXISTS, "\"%s\" is already a subscriber of queue \"%s\"",
						 name, queue->name),
				aq_error_hint("Change its rule with aq.alter_subscriber.",
							  "Change its rule with dbms_aqadm.alter_subscriber."));
	}
	check_name_is_free(queue, name, consumer);
	if (consumer != NULL)
		update_consumer(queue, consumer->position,
						psprintf("kind = 'subscriber', rule = $3, rule_role = $4, delivery_mode = %d, owner = %u::oid",
								 delivery, GetUserId()), rule);
	else
		insert_consumer(queue, position_for_subscriber(queue), name, "subscriber", rule, delivery,
						PG_ARGISNULL(3) ? 0 : PG_GETARG_DATUM(3), PG_ARGISNULL(3));
	if (temporary)
		aq_temporary_enter_consumer(id, name);
	if (!owner)
		aq_rights_subscribed(queue, name);
	aq_pending_altered(id);
	aq_catalog_changed();
	PG_RETURN_DATUM(PG_GETARG_DATUM(1));
}

PG_FUNCTION_INFO_V1(aq_subscriber_alter);
Datum
aq_subscriber_alter(PG_FUNCTION_ARGS)
{
	AQ_TIMED(AQ_TIME_ADMIN);
	AqQueue    *queue = topic_for_change(fcinfo, "aq.alter_subscriber()");
	char	   *name = aq_args_name(fcinfo, 1, "consumer");
	char	   *rule = aq_args_name_or_null(fcinfo, 2, "rule");
	int32		id = queue->id;

	if (rule != NULL)
		(void) aq_rule_compile(queue, rule, GetUserId(), CurrentMemoryContext);
	update_consumer(queue, own_subscriber(queue, name, false)->position, "rule = $3, rule_role = $4", rule);
	aq_pending_changed(id);
	aq_catalog_changed();
	PG_RETURN_VOID();
}

/*
 * For aq.pause and aq.resume, whose first arguments are the queue and the consumer.
 * by: the role that pauses it; NULL: it is resumed.
 */
void
aq_subscriber_pause(FunctionCallInfo fcinfo, const char *command, const char *by, Datum reason, bool no_reason)
{
	AqQueue    *queue = topic_for_change(fcinfo, command);
	AqConsumer *consumer = own_subscriber(queue, aq_args_name(fcinfo, 1, "consumer"), false);
	int32		id = queue->id;
	Oid			types[4] = {INT4OID, INT2OID, TEXTOID, TEXTOID};
	Datum		values[4] = {Int32GetDatum(id), Int16GetDatum(consumer->position),
		by ? CStringGetTextDatum(by) : 0, reason};
	char		nulls[5] = {' ', ' ', by ? ' ' : 'n', no_reason ? 'n' : ' ', '\0'};

	aq_sql_change("UPDATE aq_internal.subscriber SET paused = CASE WHEN $3 IS NOT NULL THEN now() END, paused_by = $3, pause_reason = $4 "
				  "WHERE queue_id = $1 AND \"position\" = $2", 4, types, values, nulls);
	aq_pending_altered(id);
	aq_catalog_changed();
}

/* aq.limit_subscriber(queue_name, consumer, max_running, rate) */
PG_FUNCTION_INFO_V1(aq_subscriber_limit);
Datum
aq_subscriber_limit(PG_FUNCTION_ARGS)
{
	AQ_TIMED(AQ_TIME_ADMIN);
	AqQueue    *queue = topic_for_change(fcinfo, "aq.limit_subscriber()");
	AqConsumer *consumer = own_subscriber(queue, aq_args_name(fcinfo, 1, "consumer"), false);
	char	   *rate = aq_args_name_or_null(fcinfo, 3, "rate");
	int32		id = queue->id;

	aq_queue_row_check_limit("max_running", queue->store->kind == AQ_STORE_SHARDED, queue->distributed);
	(void) aq_rate_text_read(rate);
	if (!PG_ARGISNULL(2) && PG_GETARG_INT32(2) < 1)
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "\"max_running\" must be positive, not %d", PG_GETARG_INT32(2)),
				errhint("Null means the limit of the queue. To give the subscriber no messages, use aq.pause."));
	update_consumer(queue, consumer->position,
					psprintf("max_running = %s, rate = $3", PG_ARGISNULL(2) ? "NULL" : psprintf("%d", PG_GETARG_INT32(2))), rate);
	aq_pending_altered(id);
	aq_catalog_changed();
	PG_RETURN_VOID();
}

PG_FUNCTION_INFO_V1(aq_subscriber_set_transformation);
Datum
aq_subscriber_set_transformation(PG_FUNCTION_ARGS)
{
	AQ_TIMED(AQ_TIME_ADMIN);
	AqQueue    *queue = topic_for_change(fcinfo, "dbms_aqadm.alter_subscriber()");
	char	   *name = aq_args_name(fcinfo, 1, "consumer");
	int32		id = queue->id;

	if (!PG_ARGISNULL(2))
		aq_non_persistent_refuse(queue, "set a transformation of");
	update_consumer(queue, own_subscriber(queue, name, false)->position, "transformation = $3, transformation_role = $4",
					aq_args_name_or_null(fcinfo, 2, "transformation"));
	aq_pending_changed(id);
	aq_catalog_changed();
	PG_RETURN_VOID();
}

/* Removes a consumer; the caller has the queue's lock. */
void
aq_subscriber_take_away(AqQueue *queue, AqConsumer consumer)
{
	char	   *name = pstrdup(consumer.name);
	int32		id = queue->id;

	aq_pins_pin(queue);			/* so that the commit can record it in shared memory */
	update_consumer(queue, consumer.position, "kind = 'removed', consumer = $3, rule = $3, rule_role = $4, transformation = $3, transformation_role = $4, owner = $4", NULL);
	aq_temporary_forget_consumer(id, consumer.number);
	aq_rights_unsubscribed(queue, name);
	aq_pending_consumer_removed(id, consumer.position, consumer.number);
	aq_catalog_changed();
}

PG_FUNCTION_INFO_V1(aq_subscriber_remove);
Datum
aq_subscriber_remove(PG_FUNCTION_ARGS)
{
	AQ_TIMED(AQ_TIME_ADMIN);
	AqQueue    *queue = topic_for_change(fcinfo, "aq.unsubscribe()");
	char	   *name = aq_args_name(fcinfo, 1, "consumer");

	aq_subscriber_take_away(queue, *own_subscriber(queue, name, true));
	PG_RETURN_VOID();
}

/* --- positions of removed consumers ------------------------------------------------------ */

static List *removed_consumers; /* list of AqRemoved, in TopMemoryContext */

static AqRemoved *
find_or_note(AqQueue *queue, const AqConsumer *consumer)
{
	ListCell   *lc;
	MemoryContext old;
	AqRemoved  *r;

	foreach(lc, removed_consumers)
	{
		r = lfirst(lc);
		if (r->id == queue->id && r->number == consumer->number)
			return r;
	}
	old = MemoryContextSwitchTo(TopMemoryContext);
	r = palloc0(sizeof(AqRemoved));
	r->id = queue->id;
	r->position = consumer->position;
	r->number = consumer->number;
	r->generation = aq_users_generation(queue->shm);
	r->horizon = ReadNextTransactionId();
	removed_consumers = lappend(removed_consumers, r);
	MemoryContextSwitchTo(old);
	return r;
}

/* Forgets consumers whose rows are deleted, and those of queues that are no longer in memory. */
static void
forget_gone(int32 id, const AqQueue *queue)
{
	ListCell   *lc;

	foreach(lc, removed_consumers)
	{
		AqRemoved  *r = lfirst(lc);
		bool		keep = r->id != id && aq_object_find(MyDatabaseId, r->id) != NULL;

		for (int i = 0; r->id == id && queue != NULL && i < queue->nconsumers; i++)
			keep |= queue->consumers[i].name == NULL && queue->consumers[i].number == r->number;
		if (keep)
			continue;
		removed_consumers = foreach_delete_current(removed_consumers, lc);
		pfree(r);
	}
}

/* Is nothing in doubt, which would be counted for the next consumer when it is settled? */
static bool
counts_all(AqQueue *queue)
{
	return queue == NULL || queue->store->counts_all(queue->shm);
}

static bool
is_free(AqQueue *queue, AqRemoved *r)
{
	/* the process that takes messages of other nodes is no user */
	r->settled = r->settled ||
		(aq_users_outlived(queue->shm, r->generation) &&
		 !(queue->distributed && TransactionIdPrecedes(aq_oldest_running_xid(), r->horizon)));
	return r->settled && counts_all(queue) && counts_all(queue->buffered) &&
		(queue->buffered == NULL || queue->buffered->store->free_position(queue->buffered, r)) &&
		queue->store->free_position(queue, r);	/* this one writes to logs, so it comes last */
}

static void
delete_row(int32 id, int position)
{
	aq_sql_change(psprintf("DELETE FROM aq_internal.subscriber WHERE queue_id = %d "
						   "AND \"position\" = %d AND kind = 'removed'", id, position),
				  0, NULL, NULL, NULL);
}

/*
 * Frees positions that no transaction can still use, with the queue's lock.
 * So every transaction that has removed a consumer has announced it: those that
 * begin to use the queue after that do not know the consumer.
 */
static bool
free_here(AqQueue *queue)
{
	int32		id = queue->id;
	bool		left = false,
				freed = false;

	aq_pins_pin(queue);
	if (queue->buffered != NULL)
		aq_pins_pin(queue->buffered);
	for (int i = 0; i < queue->nconsumers; i++)
	{
		AqRemoved  *r;

		if (queue->consumers[i].name != NULL)
			continue;
		r = find_or_note(queue, &queue->consumers[i]);
		if (is_free(queue, r))
		{
			delete_row(id, r->position);
			freed = true;
		}
		else
			left = true;
	}
	if (freed)
	{
		aq_pending_changed(id);
		aq_catalog_changed();
	}
	return left;
}

/* Frees positions of removed consumers; returns false if another session is changing the queue. */
bool
aq_subscriber_positions_free(int32 id, AqQueueShm *shm)
{
	AqQueue    *queue;
	bool		locked = true,
				left = false;

	aq_job_begin();
	queue = aq_catalog_get_by_id(id, true);
	if (queue != NULL && queue->multi)
	{
		locked = aq_queue_lock(id, ShareUpdateExclusiveLock, false);
		if (locked)
		{
			queue = aq_catalog_get_by_id(id, true);
			forget_gone(id, queue);
			left = queue != NULL && free_here(queue);
		}
	}
	aq_job_commit(false);
	aq_point("positions-freed");
	if (left || !locked)
		aq_work_later(shm, AQ_WORK_POSITIONS, CHECK_AGAIN);
	return locked;
}

void
aq_subscriber_positions_job(int32 id, AqQueueShm *shm)
{
	(void) aq_subscriber_positions_free(id, shm);
}
