/*-------------------------------------------------------------------------
 *
 * admin.c
 *	  Creating, altering, dropping, starting, stopping and purging queues.
 *
 * All of these are ordinary transactional DDL on the catalog tables.  Changes
 * of a queue are serialized by its heavyweight lock, which is taken before its
 * description is read.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/definitions/definitions_private.h"

#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

/* the arguments of aq.create_queue and aq.alter_queue; aq_queue_row_read finds the others, the properties, by their names */
enum
{
	CREATE_NAME, CREATE_PAYLOAD_TYPE, CREATE_MULTI, CREATE_SHARDS,
	CREATE_EXCEPTION_QUEUE = 7, CREATE_COMMENT, CREATE_QUEUE_TABLE, CREATE_TYPE, CREATE_IF_NOT_EXISTS
};

enum
{
	ALTER_NAME, ALTER_EXCEPTION_QUEUE = 4, ALTER_COMMENT, ALTER_OWNER, ALTER_NEW_NAME
};

/* --- create ------------------------------------------------------------------------- */

static void
check_new_name(const char *name)
{
	aq_args_check_name(name, "queue");
	if (strcmp(name, "none") == 0)
		ereport(ERROR,
				aq_error(AQ_ERR_NAME_INVALID, "queue name \"%s\" is reserved", name),
				errhint("It means no exception queue: exception_queue => 'none'."));
}

/* The id of the exception queue; 0: none. */
static int32
exception_queue_id(const char *name, Oid payload_type)
{
	AqQueue    *target;

	if (strcmp(name, "none") == 0)
		return 0;
	target = aq_catalog_get(name, AQ_RIGHT_ENQUEUE);
	/* which could then no longer be dropped with its queue */
	if (target->rights_id != target->id)
		target = aq_catalog_get(name, AQ_RIGHT_OWNER);
	if (aq_temporary_is_queue(target->id))
		ereport(ERROR,
				aq_error(AQ_ERR_EXCEPTION_QUEUE, "queue \"%s\" cannot be the exception queue", name),
				errdetail("It is temporary."));
	if (target->multi || target->payload_type != payload_type || target->non_persistent)
		ereport(ERROR,
				aq_error(AQ_ERR_EXCEPTION_QUEUE, "queue \"%s\" cannot be the exception queue", name),
				errhint("An exception queue has a single consumer and the same payload type."));
	return target->id;
}

/*
 * Sets the properties that a queue table determines for its queues.  Others
 * than the defaults must agree with it.
 */
static void
place_in_table(AqQueueDefinition *d, FunctionCallInfo fcinfo)
{
	char	   *table = text_to_cstring(PG_GETARG_TEXT_PP(CREATE_QUEUE_TABLE));
	AqQueueTableRow row = aq_queue_table_get(table, true);

	if (d->payload_type != JSONBOID && d->payload_type != row.payload_type)
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "queue table \"%s\" holds %s, not %s", table,
						 format_type_be(row.payload_type), format_type_be(d->payload_type)),
				errhint("Leave out \"payload_type\": the queue table determines it."));
	if (d->multi && !row.multi)
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "the queues of queue table \"%s\" have a single consumer", table),
				errhint("Leave \"multiple_consumers\" false, or create the queue table with it."));
	if (!PG_ARGISNULL(CREATE_SHARDS))
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "a queue in a queue table has no shards"),
				errhint("Leave \"shards\" null, or leave \"queue_table\" null for a sharded queue."));
	d->queue_table_id = row.id;
	d->payload_type = row.payload_type;
	d->multi = row.multi && !d->exception;
	d->shards = 1;
	if (d->exception_queue_id == 0 && !d->exception)
		d->exception_queue_id = row.exception_queue_id;
}

static void
read_type(AqQueueDefinition *d, const char *type)
{
	d->exception = strcmp(type, "exception") == 0;
	d->non_persistent = strcmp(type, "non_persistent") == 0;
	if (!d->exception && !d->non_persistent && strcmp(type, "normal") != 0)
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "queue type \"%s\" does not exist", type),
				errhint("The types are normal, exception and non_persistent."));
}

/* A non-persistent queue has no messages to which these properties would apply. */
static void
clear_properties(AqQueueDefinition *d, FunctionCallInfo fcinfo)
{
	if (!PG_ARGISNULL(CREATE_QUEUE_TABLE) || !PG_ARGISNULL(CREATE_EXCEPTION_QUEUE) || !PG_ARGISNULL(CREATE_SHARDS))
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "a non-persistent queue has neither a queue table nor an exception queue nor shards"),
				errhint("Leave \"queue_table\", \"exception_queue\" and \"shards\" null."));
	d->shards = 1;
	d->row = (AqQueueRow) {0};
}

/* In schema aq, a name qualified with a schema is one name: only dbms_aq looks it up in a schema. */
static void
note_qualified_name(const char *name)
{
	const char *dot = strchr(name, '.');
	char	   *schema = dot != NULL ? pnstrdup(name, dot - name) : NULL;

	if (schema != NULL && !aq_error_oracle && OidIsValid(get_namespace_oid(schema, true)))
		ereport(NOTICE,
				(errmsg("queue \"%s\" is not in schema \"%s\": this is its whole name", name, schema),
				 errhint("Queues are not found by search_path: use the whole name in every call, or create the queue as '%s'.", dot + 1)));
}

PG_FUNCTION_INFO_V1(aq_admin_create_queue);
Datum
aq_admin_create_queue(PG_FUNCTION_ARGS)
{
	AQ_TIMED(AQ_TIME_ADMIN);
	AqQueueDefinition d = {.owner = GetUserId()};
	bool		distributed;

	aq_session_require_write("aq.create_queue()");
	d.name = aq_args_name(fcinfo, CREATE_NAME, "queue_name");
	check_new_name(d.name);
	aq_queue_table_check_schema(d.name);
	aq_args_require(fcinfo, CREATE_PAYLOAD_TYPE, "payload_type");
	aq_args_require(fcinfo, CREATE_MULTI, "multiple_consumers");
	d.payload_type = PG_GETARG_OID(CREATE_PAYLOAD_TYPE);
	aq_payload_check_type(d.payload_type);
	d.multi = PG_GETARG_BOOL(CREATE_MULTI);
	d.shards = PG_ARGISNULL(CREATE_SHARDS) ? aq_parameters_default_shards : PG_GETARG_INT32(CREATE_SHARDS);
	if (d.shards < 1 || d.shards > AQ_MAX_SHARDS)
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "a queue has 1 to %d shards, not %d",
						 AQ_MAX_SHARDS, d.shards));
	(void) aq_queue_row_read(&d.row, fcinfo, false, PG_ARGISNULL(CREATE_QUEUE_TABLE));
	distributed = DatumGetBool(d.row.values[AQ_QUEUE_DISTRIBUTED]);
	read_type(&d, aq_args_name(fcinfo, CREATE_TYPE, "queue_type"));
	if (d.non_persistent)
		clear_properties(&d, fcinfo);
	if (d.exception)
		aq_queue_row_refuse_depth(&d.row);
	if (!PG_ARGISNULL(CREATE_COMMENT))
		aq_queue_row_set(&d.row, AQ_QUEUE_COMMENT, PG_GETARG_DATUM(CREATE_COMMENT), false);
	if (!PG_ARGISNULL(CREATE_QUEUE_TABLE))
		place_in_table(&d, fcinfo);
	else if (d.exception && d.multi)
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "an exception queue has a single consumer"),
				errhint("Leave \"multiple_consumers\" false."));
	if (distributed && (d.queue_table_id != 0 || d.exception || d.non_persistent))
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "only a sharded queue of type normal can be distributed"),
				errhint("Leave \"queue_table\" null and \"queue_type\" normal."));
	aq_queue_row_check_limits(&d.row, d.queue_table_id == 0, distributed);
	if (!PG_ARGISNULL(CREATE_EXCEPTION_QUEUE))
		d.exception_queue_id = exception_queue_id(text_to_cstring(PG_GETARG_TEXT_PP(CREATE_EXCEPTION_QUEUE)), d.payload_type);
	else
		d.default_exception = d.queue_table_id == 0 && !d.exception && !d.non_persistent;
	if (aq_definition_reserve_name(d.name) || !aq_args_if_not_exists(fcinfo, CREATE_IF_NOT_EXISTS, "queue", d.name))
	{
		if (d.queue_table_id == 0)
			note_qualified_name(d.name);
		aq_definition_create(&d);
	}
	PG_RETURN_DATUM(PG_GETARG_DATUM(CREATE_NAME));
}

/*
 * aq.create_temporary_queue(payload_type, multiple_consumers): for all roles that
 * take part.  The name is chosen here, so that none of them can take a name that programs of
 * others use.
 */
PG_FUNCTION_INFO_V1(aq_admin_create_temporary_queue);
Datum
aq_admin_create_temporary_queue(PG_FUNCTION_ARGS)
{
	AQ_TIMED(AQ_TIME_ADMIN);
	Interval	delay = {.time = USECS_PER_SEC};
	Interval	longest = {.time = 10 * USECS_PER_MINUTE};
	AqQueueDefinition d = {.owner = GetUserId(), .shards = 1, .temporary = true};

	aq_session_require_write("aq.create_temporary_queue()");
	aq_args_require(fcinfo, 0, "payload_type");
	aq_args_require(fcinfo, 1, "multiple_consumers");
	d.payload_type = PG_GETARG_OID(0);
	aq_payload_check_type(d.payload_type);
	d.multi = PG_GETARG_BOOL(1);
	if (!aq_privilege_takes_part())
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied to create a temporary queue"),
				 errdetail("The role has no privilege on any queue that lasts."),
				 errhint("Grant it one (aq.grant_queue), or EXECUTE on aq.create_temporary_queue.")));
	aq_temporary_check_limit();
	d.name = aq_temporary_new_name();
	aq_queue_row_set(&d.row, AQ_QUEUE_MAX_RETRIES, Int32GetDatum(5), false);
	aq_queue_row_set(&d.row, AQ_QUEUE_RETRY_DELAY, IntervalPGetDatum(&delay), false);
	aq_queue_row_set(&d.row, AQ_QUEUE_RETRY_FACTOR, Float8GetDatum(5), false);
	aq_queue_row_set(&d.row, AQ_QUEUE_RETRY_MAX, IntervalPGetDatum(&longest), false);
	aq_queue_row_set(&d.row, AQ_QUEUE_RETRY_JITTER, Float8GetDatum(0.1), false);
	aq_definition_create(&d);
	PG_RETURN_TEXT_P(cstring_to_text(d.name));
}

/* Its name and its one shard are the server's choice, because any role can create one. */
static void
refuse_temporary(const AqQueue *queue, const char *what)
{
	if (aq_temporary_is_queue(queue->id))
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "the %s of queue \"%s\" cannot be changed", what, queue->name),
				errdetail("It is temporary."));
}

/* --- alter -------------------------------------------------------------------------------- */

/* Sets one column of the queue. */
static void
set_column(int32 id, AqQueueColumn column, Datum value)
{
	AqQueueRow	row = {0};

	aq_queue_row_set(&row, column, value, false);
	aq_queue_row_update(&row, id);
}

static void
set_owner(int32 id, Oid owner)
{
	if (!is_member_of_role(GetUserId(), owner))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("must be member of role \"%s\"", GetUserNameFromId(owner, false))));
	aq_sql_give(aq_schema_data_relation(psprintf("q%d", id)), owner);
	aq_row_count_modification(AQ_ROW_USERS);
}

/* A default exception queue is renamed with its queue, as long as it is named after it. */
static void
rename_default_exceptions(int32 id, const char *old_name, const char *name)
{
	char	   *exceptions = aq_definition_default_exceptions(id);
	AqQueue    *queue;

	if (exceptions == NULL || strcmp(exceptions, psprintf("%s_exceptions", old_name)) != 0)
		return;
	queue = aq_ddl_queue(exceptions, ShareUpdateExclusiveLock);
	id = queue->id;
	set_column(id, AQ_QUEUE_NAME, CStringGetTextDatum(aq_definition_exceptions_name(name)));
	aq_pending_altered(id);
}

PG_FUNCTION_INFO_V1(aq_admin_alter_queue);
Datum
aq_admin_alter_queue(PG_FUNCTION_ARGS)
{
	AQ_TIMED(AQ_TIME_ADMIN);
	char	   *old_name;
	char	   *name = aq_args_name_or_null(fcinfo, ALTER_NEW_NAME, "new_name");
	AqQueue    *queue;
	AqQueueRow	row = {0};
	int32		id;

	aq_session_require_write("aq.alter_queue()");
	old_name = aq_args_name(fcinfo, ALTER_NAME, "queue_name");
	queue = aq_ddl_queue(old_name, ShareUpdateExclusiveLock);
	if (!PG_ARGISNULL(ALTER_OWNER))
		aq_definition_refuse_rights(queue);
	if (name != NULL)
		refuse_temporary(queue, "name");
	id = queue->id;
	if (aq_queue_row_read(&row, fcinfo, true, queue->store->kind != AQ_STORE_CLASSIC) || !PG_ARGISNULL(ALTER_EXCEPTION_QUEUE))
		aq_non_persistent_refuse(queue, "set properties of");
	if (queue->exception)
		aq_queue_row_refuse_depth(&row);
	aq_queue_row_check_limits(&row, queue->store->kind == AQ_STORE_SHARDED, queue->distributed);
	if (!PG_ARGISNULL(ALTER_EXCEPTION_QUEUE))
	{
		int32		target = exception_queue_id(text_to_cstring(PG_GETARG_TEXT_PP(ALTER_EXCEPTION_QUEUE)), queue->payload_type);

		if (target == id)
			ereport(ERROR,
					aq_error(AQ_ERR_EXCEPTION_QUEUE, "a queue cannot be its own exception queue"));
		aq_queue_row_set(&row, AQ_QUEUE_EXCEPTION_QUEUE, Int32GetDatum(target), target == 0);
	}
	if (!PG_ARGISNULL(ALTER_COMMENT))
		aq_queue_row_set(&row, AQ_QUEUE_COMMENT, PG_GETARG_DATUM(ALTER_COMMENT),
						 VARSIZE_ANY_EXHDR(PG_GETARG_TEXT_PP(ALTER_COMMENT)) == 0);
	if (name != NULL)
	{
		check_new_name(name);
		aq_queue_table_check_schema(name);
		if (!aq_definition_reserve_name(name))
			aq_definition_refuse_name(name);
		aq_queue_row_set(&row, AQ_QUEUE_NAME, CStringGetTextDatum(name), false);
	}
	aq_queue_row_update(&row, id);
	if (name != NULL)
		rename_default_exceptions(id, old_name, name);
	/* last, because the caller may lose its privileges */
	if (!PG_ARGISNULL(ALTER_OWNER))
	{
		char	   *exceptions = aq_definition_default_exceptions(id);

		if (exceptions != NULL)
			aq_pending_altered(aq_ddl_queue(exceptions, ShareUpdateExclusiveLock)->id);
		set_owner(id, PG_GETARG_OID(ALTER_OWNER));
	}
	aq_pending_altered(id);
	aq_catalog_changed();
	PG_RETURN_VOID();
}

/* Has the queue ever had message tables? */
static bool
was_used(int32 id)
{
	return aq_sql_finds(psprintf("SELECT FROM aq_internal.message_table WHERE queue_id = %d LIMIT 1", id));
}

/*
 * Possible only before the first message, because a session's messages must
 * stay in one shard.
 */
PG_FUNCTION_INFO_V1(aq_admin_set_shards);
Datum
aq_admin_set_shards(PG_FUNCTION_ARGS)
{
	AQ_TIMED(AQ_TIME_ADMIN);
	char	   *name;
	AqQueue    *queue;
	int32		id;
	int			shards;

	aq_session_require_write("aq.set_shards()");
	name = aq_args_name(fcinfo, 0, "queue_name");
	if (PG_ARGISNULL(1))
		ereport(ERROR, aq_error(AQ_ERR_ARGUMENT_NULL, "\"shards\" must not be null"));
	shards = PG_GETARG_INT32(1);
	if (shards < 1 || shards > AQ_MAX_SHARDS)
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "a queue has 1 to %d shards, not %d",
						 AQ_MAX_SHARDS, shards));
	queue = aq_ddl_queue(name, ShareUpdateExclusiveLock);
	refuse_temporary(queue, "number of shards");
	aq_non_persistent_refuse(queue, "set the number of shards of");
	id = queue->id;
	if (queue->enqueue_enabled || was_used(id))
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "the number of shards of queue \"%s\" can no longer be changed",
						 name),
				errhint("Change it while the queue is stopped, before its first use."));
	set_column(id, AQ_QUEUE_SHARDS, Int16GetDatum(shards));
	aq_pending_altered(id);
	aq_catalog_changed();
	PG_RETURN_VOID();
}

/* Schedules that have failed while the queue was stopped do not wait for their next try. */
static void
wake_schedules(int32 id)
{
	aq_sql_change(psprintf("UPDATE aq_internal.schedule SET failures = 0, retry_at = NULL WHERE queue_id = %d AND failures > 0 "
						   "AND last_error LIKE '55000:%%'", id), 0, NULL, NULL, NULL);
}

static Datum
start_stop(FunctionCallInfo fcinfo, bool start)
{
	AqQueue    *queue = aq_ddl_queue(aq_args_name(fcinfo, 0, "queue_name"),
									 ShareUpdateExclusiveLock);
	int32		id = queue->id;

	if (start && queue->exception && !PG_ARGISNULL(1) && PG_GETARG_BOOL(1))
		ereport(ERROR,
				aq_error(AQ_ERR_EXCEPTION_START, "exception queue \"%s\" cannot be started for enqueue",
						 queue->name),
				errhint("Start it with enqueue => false."));
	if (!PG_ARGISNULL(1) && PG_GETARG_BOOL(1))
	{
		set_column(id, AQ_QUEUE_ENQUEUE, BoolGetDatum(start));
		if (start)
			wake_schedules(id);
	}
	if (!PG_ARGISNULL(2) && PG_GETARG_BOOL(2))
		set_column(id, AQ_QUEUE_DEQUEUE, BoolGetDatum(start));
	aq_pending_altered(id);
	aq_catalog_changed();
	PG_RETURN_VOID();
}

PG_FUNCTION_INFO_V1(aq_admin_start_queue);
Datum
aq_admin_start_queue(PG_FUNCTION_ARGS)
{
	AQ_TIMED(AQ_TIME_ADMIN);
	aq_session_require_write("aq.start_queue()");
	return start_stop(fcinfo, true);
}

PG_FUNCTION_INFO_V1(aq_admin_stop_queue);
Datum
aq_admin_stop_queue(PG_FUNCTION_ARGS)
{
	AQ_TIMED(AQ_TIME_ADMIN);
	aq_session_require_write("aq.stop_queue()");
	if (!PG_ARGISNULL(3) && PG_GETARG_BOOL(3))
		aq_stop_wait_for_users(aq_catalog_get(aq_args_name(fcinfo, 0, "queue_name"), AQ_RIGHT_OWNER),
							   !PG_ARGISNULL(1) && PG_GETARG_BOOL(1), !PG_ARGISNULL(2) && PG_GETARG_BOOL(2));
	return start_stop(fcinfo, false);
}

/* --- drop ---------------------------------------------------------------------------------- */

/* dropped: the queue that is dropped, too. */
static void
check_not_exception_queue(int32 id, const char *name, int32 dropped)
{
	char	   *user = aq_sql_text(psprintf(
											"SELECT queue_name FROM aq_internal.queue WHERE exception_queue_id = %d AND queue_id <> %d LIMIT 1", id, dropped));

	if (user != NULL)
		ereport(ERROR,
				aq_error(AQ_ERR_EXCEPTION_QUEUE_NAMED, "queue \"%s\" is the exception queue of \"%s\"", name, user),
				aq_error_hint(psprintf("Give queue \"%s\" another exception queue, or none, with aq.alter_queue, or drop that queue first.",
									   user),
							  psprintf("Drop queue \"%s\" first, with dbms_aqadm.drop_queue.", user)));
}

/* Drops the queue, which the caller must own, and its default exception queue. */
void
aq_admin_drop(const char *name, bool force)
{
	int32		id = aq_ddl_queue(name, AccessExclusiveLock)->id;
	List	   *names = list_make1(unconstify(char *, name));
	char	   *exceptions;

	check_not_exception_queue(id, name, id);
	exceptions = aq_definition_default_exceptions(id);
	if (exceptions != NULL)
	{
		check_not_exception_queue(aq_ddl_queue(exceptions, AccessExclusiveLock)->id, exceptions, id);
		names = lcons(exceptions, names);
	}
	aq_definition_drop(names, force);
}

PG_FUNCTION_INFO_V1(aq_admin_drop_queue);
Datum
aq_admin_drop_queue(PG_FUNCTION_ARGS)
{
	AQ_TIMED(AQ_TIME_ADMIN);

	aq_session_require_write("aq.drop_queue()");
	aq_admin_drop(aq_args_name(fcinfo, 0, "queue_name"), !PG_ARGISNULL(1) && PG_GETARG_BOOL(1));
	PG_RETURN_VOID();
}

/* --- purge ----------------------------------------------------------------------------------- */

static bool
matches(void *arg, const AqMessage *message)
{
	return aq_rule_matches(arg, message);
}

/*
 * Looks up the current description of the queue, and holds the consumer's
 * position, if it is a recipient, until the end of the transaction.
 */
static AqQueue *
hold_consumer(AqQueue *queue, const char *name)
{
	AqConsumer *consumer;

	for (;;)
	{
		queue = aq_pins_pin_current(queue, false);
		consumer = queue->multi && name != NULL ? aq_catalog_consumer(queue, name) : NULL;
		if (consumer == NULL || consumer->subscriber || aq_holds_take(queue, consumer, NULL))
			return queue;
		queue = aq_recipient_settle(queue, name, AQ_RIGHT_OWNER);
	}
}

/* consumer NULL: purges the messages of all consumers. */
static uint64
purge(AqQueue *queue, const char *consumer, AqTakeOptions *options)
{
	uint64		purged = 0;

	aq_pins_pin(queue);
	if (!queue->multi || consumer != NULL)
	{
		options->position = aq_args_consumer_position(queue, consumer);
		return options->position >= 0 ? queue->store->take(queue, options) : 0;
	}
	for (int i = 0; i < queue->nconsumers; i++)
	{
		options->position = queue->consumers[i].position;
		purged += queue->store->take(queue, options);
	}
	return purged;
}

PG_FUNCTION_INFO_V1(aq_admin_purge_queue);
Datum
aq_admin_purge_queue(PG_FUNCTION_ARGS)
{
	AQ_TIMED(AQ_TIME_ADMIN);
	AqQueue    *queue;
	AqTakeOptions options = {.max = PG_UINT32_MAX, .mode = AQ_MODE_PURGE};
	char	   *consumer;
	int			delivery;
	uint64		purged = 0;

	aq_session_require_write("aq.purge_queue()");
	queue = aq_catalog_get(aq_args_name(fcinfo, 0, "queue_name"), AQ_RIGHT_OWNER);
	aq_non_persistent_refuse(queue, "purge");
	consumer = aq_args_name_or_null(fcinfo, 1, "consumer");
	delivery = aq_args_delivery(fcinfo, 3);
	queue = aq_pins_pin_current(queue, false);
	if (!PG_ARGISNULL(4) && PG_GETARG_BOOL(4))
		queue->store->lock(queue);
	queue = hold_consumer(queue, consumer);
	if (queue->multi && consumer != NULL && aq_catalog_consumer(queue, consumer) == NULL)
		aq_notice_unknown_consumer(queue, consumer);
	if (!PG_ARGISNULL(2))
	{
		options.filter = matches;
		options.filter_arg = aq_rule_compile(queue, text_to_cstring(PG_GETARG_TEXT_PP(2)),
											 InvalidOid, CurrentMemoryContext);
	}
	if (delivery & AQ_PERSISTENT)
		purged += purge(queue, consumer, &options);
	if ((delivery & AQ_BUFFERED) && queue->buffered != NULL)
		purged += purge(queue->buffered, consumer, &options);
	PG_RETURN_INT64(purged);
}

/* Which of the retained messages are purged. */
typedef struct Retained
{
	AqQueue    *queue;
	int			position;		/* of the consumer; -1: of none */
	bool		all;			/* messages of all consumers; the rest is not set */
	Oid			types[2];
	Datum		values[2];		/* the queue, the messages' ids */
} Retained;

static uint64
delete_retained(Retained *r, char letter, const char *which)
{
	return aq_sql_delete(psprintf("%c%d", letter, r->queue->table.id),
						 psprintf("WHERE r.queue_id = $1 AND r.state = 2 %s FOR UPDATE", which), r->all ? 1 : 2, r->types, r->values);
}

/* Deletes the bodies of large messages that have just been deleted. */
static void
delete_bodies(Retained *r)
{
	int			table = r->queue->table.id;

	if (OidIsValid(aq_schema_data_relation(psprintf("k%d", table))))
		aq_sql_change(psprintf("DELETE FROM aq_data.k%d k WHERE %s NOT EXISTS (SELECT FROM aq_data.t%d m WHERE m.msgid = k.msgid)",
							   table, r->all ? "" : "msgid = ANY ($2) AND", table),
					  r->all ? 0 : 2, r->types, r->values, NULL);
}

/* From a queue table.  A message of a topic goes with its last row of a consumer. */
static uint64
purge_rows(Retained *r)
{
	const char *of_ids = r->all ? "" : "AND r.msgid = ANY ($2)";
	int			table = r->queue->table.id;
	uint64		purged;

	if (!r->queue->multi)
		purged = delete_retained(r, 't', of_ids);
	else
	{
		const char *of_consumer = psprintf("AND r.\"position\" = %d AND EXISTS (SELECT FROM aq_data.t%d m WHERE m.queue_id = r.queue_id "
										   "AND m.key1 = r.key1 AND m.key2 = r.key2 AND m.step = r.step AND m.msgid = ANY ($2))",
										   r->position, table);

		purged = delete_retained(r, 'c', r->all ? "" : of_consumer);
		(void) delete_retained(r, 't', psprintf("%s AND NOT EXISTS (SELECT FROM aq_data.c%d c WHERE c.queue_id = r.queue_id "
												"AND c.key1 = r.key1 AND c.key2 = r.key2 AND c.step = r.step)", of_ids, table));
	}
	delete_bodies(r);
	return purged;
}

/*
 * Purges processed messages that are retained, or not removed yet: those with
 * these ids for one consumer, or, without ids, those of all.  Returns their
 * number.
 */
PG_FUNCTION_INFO_V1(aq_admin_purge_processed);
Datum
aq_admin_purge_processed(PG_FUNCTION_ARGS)
{
	AQ_TIMED(AQ_TIME_ADMIN);
	AqQueue    *queue = aq_catalog_get(aq_args_name(fcinfo, 0, "queue_name"), AQ_RIGHT_OWNER);
	char	   *consumer = aq_args_name_or_null(fcinfo, 1, "consumer");
	Retained	retained = {.queue = queue, .all = PG_ARGISNULL(2), .types = {INT4OID, UUIDARRAYOID},
		.values = {Int32GetDatum(queue->id), PG_ARGISNULL(2) ? (Datum) 0 : PG_GETARG_DATUM(2)}};
	bool		of_none = queue->multi && consumer == NULL;
	uint64		purged = 0;

	aq_session_require_write("dbms_aqadm.purge_queue_table()");
	/* of none: those in an exception queue */
	retained.position = of_none ? -1 : aq_args_consumer_position(queue, consumer);
	if (queue->table.id != 0)
		purged = purge_rows(&retained);
	if (queue->store->purge_retained != NULL && retained.all)
		purged += queue->store->purge_retained(queue, -1, NULL, 0);
	else if (queue->store->purge_retained != NULL && retained.position >= 0)
	{
		ArrayType  *array = PG_GETARG_ARRAYTYPE_P(2);
		uint32		n = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));

		if (array_contains_nulls(array))
			ereport(ERROR, aq_error(AQ_ERR_ARGUMENT_NULL, "\"ids\" must not contain nulls"));
		/* uuids have no alignment */
		purged += queue->store->purge_retained(queue, retained.position, (const pg_uuid_t *) ARR_DATA_PTR(array), n);
	}
	PG_RETURN_INT64(purged);
}
