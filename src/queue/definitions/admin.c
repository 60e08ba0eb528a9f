/*-------------------------------------------------------------------------
 *
 * admin.c
 *	  Creating, altering, dropping, starting, stopping and purging queues.
 *
 * All of it is ordinary transactional DDL on the catalog tables.  Changes of
 * one queue are serialised by its heavyweight lock, taken before its
 * description is read.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/queue_private.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "commands/sequence.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

void
aq_begin_ddl(const char *command)
{
	aq_session_require_preload();
	PreventCommandIfReadOnly(command);
	PreventCommandIfParallelMode(command);
	PreventCommandDuringRecovery(command);
}

/* The queue, which the caller must own, locked against other changes. */
AqQueue *
aq_queue_for_change(const char *name, LOCKMODE mode)
{
	int32		id = aq_queue_get(name, AQ_RIGHT_OWNER)->id;
	AqQueue    *queue;

	(void) aq_queue_lock(id, mode, true);
	/* it may have been changed, or dropped, while we waited */
	queue = aq_queue_get(name, AQ_RIGHT_OWNER);
	if (queue->id != id)
		return aq_queue_for_change(name, mode);
	return queue;
}

void
aq_run_change(const char *command, int nargs, Oid *types, Datum *values, const char *nulls)
{
	(void) aq_run_sql(command, nargs, types, values, nulls, false);
}

/* --- create ------------------------------------------------------------------------- */

static void
check_not_negative(Datum interval, const char *what)
{
	if (aq_interval_option(interval, AQ_ERR_OPTION_INVALID, what) < 0)
		ereport(ERROR, aq_error(AQ_ERR_OPTION_INVALID, "\"%s\" must not be negative", what));
}

/* The id of the exception queue. */
static int32
exception_queue_id(const char *name, Oid payload_type)
{
	AqQueue    *target = aq_queue_get(name, AQ_RIGHT_ENQUEUE);

	if (target->multi || target->payload_type != payload_type)
		ereport(ERROR,
				aq_error(AQ_ERR_EXCEPTION_QUEUE, "queue \"%s\" cannot be the exception queue", name),
				errhint("An exception queue has a single consumer and the same payload type."));
	return target->id;
}

static int64
random_key(void)
{
	uint64		key;

	if (!pg_strong_random(&key, sizeof(key)))
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("could not generate random values")));
	return (int64) (key & AQ_KEY_MASK);
}

/*
 * A number that no queue has.  A dump of definitions only brings back a queue's
 * tables without the queue, and without the sequence's value.
 */
static int32
new_queue_id(void)
{
	int32		id;

	do
		id = (int32) nextval_internal(aq_catalog_relation("queue_id_seq"), false);
	while (OidIsValid(aq_data_relation(psprintf("q%d", id))) ||
		   OidIsValid(aq_data_relation(psprintf("s%d", id))));
	return id;
}

/* The view that carries owner and rights, and of a sharded queue the sequence of partitions. */
static void
create_anchor(int32 id, Oid payload_type, Oid owner, bool sharded)
{
	char	   *type = format_type_extended(payload_type, -1, FORMAT_TYPE_FORCE_QUALIFY);

	aq_run_change(psprintf("CREATE VIEW aq_data.q%d AS SELECT NULL::%s AS payload WHERE false",
						   id, type), 0, NULL, NULL, NULL);
	aq_run_change(psprintf("ALTER VIEW aq_data.q%d OWNER TO %s", id,
						   quote_identifier(GetUserNameFromId(owner, false))),
				  0, NULL, NULL, NULL);
	if (sharded)
		aq_run_change(psprintf("CREATE SEQUENCE aq_data.s%d", id), 0, NULL, NULL, NULL);
}

void
aq_queue_create(const AqQueueDefinition *d)
{
	int32		id;
	Oid			types[14] = {INT4OID, TEXTOID, REGTYPEOID, BOOLOID, INT2OID, INT4OID,
	INTERVALOID, INTERVALOID, INT4OID, INT8OID, TEXTOID, CHAROID, INT4OID, TEXTOID};
	Datum		values[14];
	char		nulls[15] = "              ";
	Interval	none = {0};

	if (aq_queue_get_by_name(d->name) != NULL)
		ereport(ERROR, aq_error(AQ_ERR_QUEUE_EXISTS, "queue \"%s\" already exists", d->name));

	id = new_queue_id();
	values[0] = Int32GetDatum(id);
	values[1] = CStringGetTextDatum(d->name);
	values[2] = ObjectIdGetDatum(d->payload_type);
	values[3] = BoolGetDatum(d->multi);
	values[4] = Int16GetDatum(d->shards);
	values[5] = Int32GetDatum(d->max_retries);
	nulls[5] = d->max_retries < 0 ? 'n' : ' ';
	values[6] = IntervalPGetDatum(d->retry_delay ? d->retry_delay : &none);
	values[7] = IntervalPGetDatum(d->retention ? d->retention : &none);
	values[8] = Int32GetDatum(d->exception_queue_id);
	nulls[8] = d->exception_queue_id == 0 ? 'n' : ' ';
	values[9] = Int64GetDatum(random_key());
	values[10] = PointerGetDatum(d->comment);
	nulls[10] = d->comment == NULL ? 'n' : ' ';
	values[11] = CharGetDatum(d->queue_table_id ? AQ_STORE_CLASSIC : AQ_STORE_SHARDED);
	values[12] = Int32GetDatum(d->queue_table_id);
	nulls[12] = d->queue_table_id == 0 ? 'n' : ' ';
	values[13] = CStringGetTextDatum(d->exception ? "exception" : "normal");
	aq_run_change("INSERT INTO aq.queue (queue_id, queue_name, payload_type, multiple_consumers, "
				  "shards, max_retries, retry_delay, retention, exception_queue_id, key, comment, "
				  "store, queue_table_id, queue_type, enqueue_enabled, dequeue_enabled) "
				  "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, "
				  "$14 = 'normal', $14 = 'normal')",
				  14, types, values, nulls);
	create_anchor(id, d->payload_type, d->owner, d->queue_table_id == 0);
	aq_queue_created_here(id);
	aq_catalog_changed();
}

/* What the queue table decides for its queues. */
static void
place_in_table(AqQueueDefinition *d, FunctionCallInfo fcinfo)
{
	AqQueueTableRow row = aq_queue_table_get(text_to_cstring(PG_GETARG_TEXT_PP(9)), true);

	if (!PG_ARGISNULL(3))
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

static bool
is_exception_type(const char *type)
{
	if (strcmp(type, "exception") == 0)
		return true;
	if (strcmp(type, "normal") != 0)
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "queue type \"%s\" does not exist", type),
				errhint("The types are normal and exception."));
	return false;
}

/* A limit that is never reached would be none. */
static void
check_max_retries(int32 max_retries, bool sharded)
{
	if (sharded && max_retries > AQ_MAX_ATTEMPTS)
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "\"max_retries\" of a sharded queue must be at most %d, not %d",
						 AQ_MAX_ATTEMPTS, max_retries),
				errhint("Leave out the limit, or put the queue into a queue table."));
}

PG_FUNCTION_INFO_V1(aq_create_queue);
Datum
aq_create_queue(PG_FUNCTION_ARGS)
{
	AQ_TIMED(AQ_TIME_ADMIN);
	AqQueueDefinition d = {.owner = GetUserId(),.max_retries = -1};

	aq_begin_ddl("aq.create_queue()");
	d.name = aq_arg_name(fcinfo, 0, "queue_name");
	aq_check_name(d.name, "queue");
	aq_check_schema_of(d.name);
	for (int i = 1; i <= 6; i++)
		if (PG_ARGISNULL(i) && i != 3 && i != 4)
			ereport(ERROR,
					aq_error(AQ_ERR_ARGUMENT_NULL,
							 "payload_type, multiple_consumers, retry_delay and retention must not be null"));
	d.payload_type = PG_GETARG_OID(1);
	aq_check_payload_type(d.payload_type);
	d.multi = PG_GETARG_BOOL(2);
	d.shards = PG_ARGISNULL(3) ? aq_default_shards : PG_GETARG_INT32(3);
	if (d.shards < 1 || d.shards > AQ_MAX_SHARDS)
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "a queue has 1 to %d shards, not %d",
						 AQ_MAX_SHARDS, d.shards));
	if (!PG_ARGISNULL(4))
		d.max_retries = PG_GETARG_INT32(4);
	if (!PG_ARGISNULL(4) && d.max_retries < 0)
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "\"max_retries\" must not be negative"),
				errhint("Leave it null for no limit."));
	check_max_retries(d.max_retries, PG_ARGISNULL(9));
	check_not_negative(PG_GETARG_DATUM(5), "retry_delay");
	check_not_negative(PG_GETARG_DATUM(6), "retention");
	d.retry_delay = PG_GETARG_INTERVAL_P(5);
	d.retention = PG_GETARG_INTERVAL_P(6);
	if (!PG_ARGISNULL(8))
		d.comment = PG_GETARG_TEXT_PP(8);
	d.exception = is_exception_type(aq_arg_name(fcinfo, 10, "queue_type"));
	if (!PG_ARGISNULL(9))
		place_in_table(&d, fcinfo);
	else if (d.exception && d.multi)
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "an exception queue has a single consumer"),
				errhint("Leave \"multiple_consumers\" false."));
	if (!PG_ARGISNULL(7))
		d.exception_queue_id = exception_queue_id(text_to_cstring(PG_GETARG_TEXT_PP(7)), d.payload_type);
	aq_queue_create(&d);
	PG_RETURN_VOID();
}

/* --- alter -------------------------------------------------------------------------------- */

/* UPDATE aq.queue SET column = value of one queue. */
static void
set_column(int32 id, const char *column, Oid type, Datum value, bool isnull)
{
	Oid			types[2] = {INT4OID, type};
	Datum		values[2] = {Int32GetDatum(id), value};
	char		nulls[3] = {' ', isnull ? 'n' : ' ', '\0'};

	aq_run_change(psprintf("UPDATE aq.queue SET %s = $2 WHERE queue_id = $1", column),
				  2, types, values, nulls);
}

static void
set_owner(int32 id, Oid owner)
{
	if (!is_member_of_role(GetUserId(), owner))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("must be member of role \"%s\"", GetUserNameFromId(owner, false))));
	aq_run_change(psprintf("ALTER VIEW aq_data.q%d OWNER TO %s", id,
						   quote_identifier(GetUserNameFromId(owner, false))),
				  0, NULL, NULL, NULL);
	aq_row_count_modification(AQ_ROW_USERS);
}

PG_FUNCTION_INFO_V1(aq_alter_queue);
Datum
aq_alter_queue(PG_FUNCTION_ARGS)
{
	AQ_TIMED(AQ_TIME_ADMIN);
	AqQueue    *queue;
	int32		id;
	Oid			payload_type;

	aq_begin_ddl("aq.alter_queue()");
	queue = aq_queue_for_change(aq_arg_name(fcinfo, 0, "queue_name"), ShareUpdateExclusiveLock);
	id = queue->id;
	payload_type = queue->payload_type;
	if (!PG_ARGISNULL(1))
	{
		if (PG_GETARG_INT32(1) < -1)
			ereport(ERROR,
					aq_error(AQ_ERR_OPTION_INVALID, "\"max_retries\" must not be negative"),
					errhint("-1 means no limit."));
		check_max_retries(PG_GETARG_INT32(1), queue->store->kind != AQ_STORE_CLASSIC);
		set_column(id, "max_retries", INT4OID, PG_GETARG_DATUM(1), PG_GETARG_INT32(1) == -1);
	}
	if (!PG_ARGISNULL(2))
	{
		check_not_negative(PG_GETARG_DATUM(2), "retry_delay");
		set_column(id, "retry_delay", INTERVALOID, PG_GETARG_DATUM(2), false);
	}
	if (!PG_ARGISNULL(3))
	{
		check_not_negative(PG_GETARG_DATUM(3), "retention");
		set_column(id, "retention", INTERVALOID, PG_GETARG_DATUM(3), false);
	}
	if (!PG_ARGISNULL(4))
	{
		char	   *name = text_to_cstring(PG_GETARG_TEXT_PP(4));
		int32		target = name[0] ? exception_queue_id(name, payload_type) : 0;

		if (target == id)
			ereport(ERROR,
					aq_error(AQ_ERR_EXCEPTION_QUEUE, "a queue cannot be its own exception queue"));
		set_column(id, "exception_queue_id", INT4OID, Int32GetDatum(target), target == 0);
	}
	if (!PG_ARGISNULL(5))
		set_column(id, "comment", TEXTOID, PG_GETARG_DATUM(5),
				   VARSIZE_ANY_EXHDR(PG_GETARG_TEXT_PP(5)) == 0);
	if (!PG_ARGISNULL(7))
	{
		char	   *name = text_to_cstring(PG_GETARG_TEXT_PP(7));

		aq_check_name(name, "queue");
		aq_check_schema_of(name);
		if (aq_queue_get_by_name(name) != NULL)
			ereport(ERROR, aq_error(AQ_ERR_QUEUE_EXISTS, "queue \"%s\" already exists", name));
		set_column(id, "queue_name", TEXTOID, PG_GETARG_DATUM(7), false);
	}
	/* last: the caller may lose his rights by it */
	if (!PG_ARGISNULL(6))
		set_owner(id, PG_GETARG_OID(6));
	aq_queue_altered_here(id);
	aq_catalog_changed();
	PG_RETURN_VOID();
}

/* Has the queue ever had tables for messages? */
static bool
was_used(int32 id)
{
	bool		used;

	aq_run_sql(psprintf("SELECT 1 FROM aq.message_table WHERE queue_id = %d LIMIT 1", id),
			   0, NULL, NULL, NULL, true);
	used = SPI_processed > 0;
	SPI_finish();
	return used;
}

/* Only before the first message: a session's messages stay in one shard. */
PG_FUNCTION_INFO_V1(aq_set_shards);
Datum
aq_set_shards(PG_FUNCTION_ARGS)
{
	AQ_TIMED(AQ_TIME_ADMIN);
	char	   *name;
	AqQueue    *queue;
	int32		id;
	int			shards;

	aq_begin_ddl("dbms_aqadm.set_queue_parameter()");
	name = aq_arg_name(fcinfo, 0, "queue_name");
	if (PG_ARGISNULL(1))
		ereport(ERROR, aq_error(AQ_ERR_ARGUMENT_NULL, "\"shards\" must not be null"));
	shards = PG_GETARG_INT32(1);
	if (shards < 1 || shards > AQ_MAX_SHARDS)
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "a queue has 1 to %d shards, not %d",
						 AQ_MAX_SHARDS, shards));
	queue = aq_queue_for_change(name, ShareUpdateExclusiveLock);
	id = queue->id;
	if (queue->enqueue_enabled || was_used(id))
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "the number of shards of queue \"%s\" cannot be changed any more",
						 name),
				errhint("Set it before the queue is started for the first time."));
	set_column(id, "shards", INT2OID, Int16GetDatum(shards), false);
	aq_queue_altered_here(id);
	aq_catalog_changed();
	PG_RETURN_VOID();
}

static Datum
start_stop(FunctionCallInfo fcinfo, bool start)
{
	AqQueue    *queue = aq_queue_for_change(aq_arg_name(fcinfo, 0, "queue_name"),
											ShareUpdateExclusiveLock);
	int32		id = queue->id;

	if (start && queue->exception && !PG_ARGISNULL(1) && PG_GETARG_BOOL(1))
		ereport(ERROR,
				aq_error(AQ_ERR_EXCEPTION_START, "exception queue \"%s\" cannot be started for enqueue",
						 queue->name),
				errhint("Start it with enqueue => false."));
	if (!PG_ARGISNULL(1) && PG_GETARG_BOOL(1))
		set_column(id, "enqueue_enabled", BOOLOID, BoolGetDatum(start), false);
	if (!PG_ARGISNULL(2) && PG_GETARG_BOOL(2))
		set_column(id, "dequeue_enabled", BOOLOID, BoolGetDatum(start), false);
	aq_queue_altered_here(id);
	aq_catalog_changed();
	PG_RETURN_VOID();
}

PG_FUNCTION_INFO_V1(aq_start_queue);
Datum
aq_start_queue(PG_FUNCTION_ARGS)
{
	AQ_TIMED(AQ_TIME_ADMIN);
	aq_begin_ddl("aq.start_queue()");
	return start_stop(fcinfo, true);
}

PG_FUNCTION_INFO_V1(aq_stop_queue);
Datum
aq_stop_queue(PG_FUNCTION_ARGS)
{
	AQ_TIMED(AQ_TIME_ADMIN);
	aq_begin_ddl("aq.stop_queue()");
	if (!PG_ARGISNULL(3) && PG_GETARG_BOOL(3))
		aq_queue_quiesce(aq_queue_get(aq_arg_name(fcinfo, 0, "queue_name"), AQ_RIGHT_OWNER),
						 !PG_ARGISNULL(1) && PG_GETARG_BOOL(1), !PG_ARGISNULL(2) && PG_GETARG_BOOL(2));
	return start_stop(fcinfo, false);
}

/* --- drop ---------------------------------------------------------------------------------- */

static void
check_not_exception_queue(int32 id, const char *name)
{
	char	   *user = NULL;
	MemoryContext context = CurrentMemoryContext;

	aq_run_sql(psprintf("SELECT queue_name FROM aq.queue WHERE exception_queue_id = %d AND queue_id <> %d LIMIT 1",
						id, id), 0, NULL, NULL, NULL, true);
	if (SPI_processed > 0)
		user = MemoryContextStrdup(context, SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1));
	SPI_finish();
	if (user != NULL)
		ereport(ERROR,
				aq_error(AQ_ERR_EXCEPTION_QUEUE, "queue \"%s\" is the exception queue of \"%s\"", name, user),
				errhint("Give that queue another with aq.alter_queue, or drop it first."));
}

/* The queue is locked for it; its store has dropped the messages. */
static void
drop_definition(int32 id, bool sharded)
{
	if (OidIsValid(aq_data_relation(psprintf("q%d", id))))
		aq_run_change(psprintf("DROP VIEW aq_data.q%d", id), 0, NULL, NULL, NULL);
	if (sharded)
		aq_run_change(psprintf("DROP SEQUENCE aq_data.s%d", id), 0, NULL, NULL, NULL);
	aq_run_change(psprintf("DELETE FROM aq.message_table WHERE queue_id = %d", id), 0, NULL, NULL, NULL);
	aq_run_change(psprintf("DELETE FROM aq.subscriber WHERE queue_id = %d", id), 0, NULL, NULL, NULL);
	aq_run_change(psprintf("DELETE FROM aq.queue WHERE queue_id = %d", id), 0, NULL, NULL, NULL);
	aq_queue_dropped_here(id);
	aq_catalog_changed();
}

/*
 * A queue that has lost tables cannot be loaded, but it can be dropped by force:
 * the catalog forgets the pairs of which one table or both are missing.
 */
static void
forget_lost_tables(int32 id)
{
	static const char pairs[] =
		"FROM aq.message_table p, to_regclass(format('aq_data.q%%s_%%s', queue_id, table_no)) q, "
		"to_regclass(format('aq_data.l%%s_%%s', queue_id, table_no)) l WHERE queue_id = %d";
	char	   *lost = psprintf(pairs, id);
	MemoryContext context = CurrentMemoryContext;
	List	   *commands = NIL;
	ListCell   *lc;

	aq_run_sql(psprintf("SELECT format('DROP TABLE %%s', coalesce(q, l)) %s AND (q IS NULL) <> (l IS NULL)", lost),
			   0, NULL, NULL, NULL, true);
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		MemoryContext spi = MemoryContextSwitchTo(context);

		commands = lappend(commands, SPI_getvalue(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1));
		MemoryContextSwitchTo(spi);
	}
	SPI_finish();
	foreach(lc, commands)
		aq_run_change(lfirst(lc), 0, NULL, NULL, NULL);
	aq_run_change(psprintf("DELETE FROM aq.message_table WHERE (queue_id, table_no) IN "
						   "(SELECT queue_id, table_no %s AND (q IS NULL OR l IS NULL))", lost), 0, NULL, NULL, NULL);
}

void
aq_queue_drop(const char *name, bool force)
{
	AqQueue    *queue = aq_queue_for_change(name, AccessExclusiveLock);
	int32		id = queue->id;
	bool		sharded = OidIsValid(queue->sequence);

	if (force && sharded)
		forget_lost_tables(id);
	aq_queue_pin(queue);
	queue->store->drop(queue, force);
	aq_buffered_drop(name, force);
	drop_definition(id, sharded);
}

PG_FUNCTION_INFO_V1(aq_drop_queue);
Datum
aq_drop_queue(PG_FUNCTION_ARGS)
{
	AQ_TIMED(AQ_TIME_ADMIN);
	char	   *name;

	aq_begin_ddl("aq.drop_queue()");
	name = aq_arg_name(fcinfo, 0, "queue_name");
	check_not_exception_queue(aq_queue_for_change(name, AccessExclusiveLock)->id, name);
	aq_queue_drop(name, !PG_ARGISNULL(1) && PG_GETARG_BOOL(1));
	PG_RETURN_VOID();
}

/* --- purge ----------------------------------------------------------------------------------- */

static bool
matches(void *arg, const AqMessage *message)
{
	return aq_rule_matches(arg, message);
}

/* consumer NULL: of all. */
static uint64
purge(AqQueue *queue, const char *consumer, AqTakeOptions *options)
{
	uint64		purged = 0;

	aq_queue_pin(queue);
	if (!queue->multi || consumer != NULL)
	{
		options->position = aq_dequeue_position(queue, consumer);
		return options->position >= 0 ? queue->store->take(queue, options) : 0;
	}
	for (int i = 0; i < queue->nconsumers; i++)
	{
		options->position = queue->consumers[i].position;
		purged += queue->store->take(queue, options);
	}
	return purged;
}

PG_FUNCTION_INFO_V1(aq_purge_queue);
Datum
aq_purge_queue(PG_FUNCTION_ARGS)
{
	AQ_TIMED(AQ_TIME_ADMIN);
	AqQueue    *queue;
	AqTakeOptions options = {.max = PG_UINT32_MAX,.mode = AQ_MODE_PURGE};
	char	   *consumer;
	int			delivery;
	uint64		purged = 0;

	aq_begin_ddl("aq.purge_queue()");
	queue = aq_queue_get(aq_arg_name(fcinfo, 0, "queue_name"), AQ_RIGHT_OWNER);
	consumer = aq_arg_name_or_null(fcinfo, 1, "consumer");
	delivery = aq_delivery_arg(fcinfo, 3);
	queue = aq_queue_pin_current(queue, false);
	if (!PG_ARGISNULL(4) && PG_GETARG_BOOL(4))
		queue->store->lock(queue);
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

/*
 * Delivered messages that a queue table retains: of one consumer, those with
 * these ids.  How many there were.
 */
PG_FUNCTION_INFO_V1(aq_purge_processed);
Datum
aq_purge_processed(PG_FUNCTION_ARGS)
{
	AQ_TIMED(AQ_TIME_ADMIN);
	AqQueue    *queue = aq_queue_get(aq_arg_name(fcinfo, 0, "queue_name"), AQ_RIGHT_OWNER);
	char	   *consumer = aq_arg_name_or_null(fcinfo, 1, "consumer");
	Oid			types[2] = {INT4OID, UUIDARRAYOID};
	Datum		values[2] = {Int32GetDatum(queue->id), PG_GETARG_DATUM(2)};
	int			table = queue->table.id;
	int64		purged;
	int			position = 0;

	if (PG_ARGISNULL(2))
		ereport(ERROR, aq_error(AQ_ERR_ARGUMENT_NULL, "\"ids\" must not be null"));
	aq_begin_ddl("aq.purge_queue_table()");
	if (table == 0)
		PG_RETURN_INT64(0);		/* sharded: they go with their partition */
	if (queue->multi)
	{
		/* null: those that are in nobody's line any more */
		position = consumer != NULL ? aq_dequeue_position(queue, consumer) : -1;
		aq_run_sql(psprintf("DELETE FROM aq_data.c%d c USING aq_data.t%d m WHERE c.queue_id = $1 AND c.\"position\" = %d "
							"AND c.state = 2 AND m.queue_id = c.queue_id AND m.key1 = c.key1 AND m.key2 = c.key2 "
							"AND m.step = c.step AND m.msgid = ANY ($2)", table, table, position), 2, types, values, NULL, true);
		purged = SPI_processed;
		SPI_finish();
		aq_run_change(psprintf("DELETE FROM aq_data.t%d m WHERE queue_id = $1 AND state = 2 AND msgid = ANY ($2) "
							   "AND NOT EXISTS (SELECT FROM aq_data.c%d c WHERE c.queue_id = m.queue_id AND c.key1 = m.key1 "
							   "AND c.key2 = m.key2 AND c.step = m.step)", table, table), 2, types, values, NULL);
		PG_RETURN_INT64(purged);
	}
	aq_run_sql(psprintf("DELETE FROM aq_data.t%d WHERE queue_id = $1 AND state = 2 AND msgid = ANY ($2)", table),
			   2, types, values, NULL, true);
	purged = SPI_processed;
	SPI_finish();
	PG_RETURN_INT64(purged);
}
