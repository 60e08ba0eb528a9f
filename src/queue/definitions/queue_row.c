/*-------------------------------------------------------------------------
 *
 * queue_row.c
 *	  Rows of aq_internal.queue, to be inserted or changed.
 *
 * A row has a value for some of the columns: an INSERT leaves the others at
 * their defaults, an UPDATE leaves them unchanged.  What is a property in
 * queue_column_list.h is read from the arguments of aq.create_queue and
 * aq.alter_queue here.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/definitions/definitions_private.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"

typedef struct Column
{
	const char *name;
	Oid			type;
	bool		property;
	bool		nullable;		/* of a property */
} Column;

static const Column columns[AQ_QUEUE_COLUMNS] = {
#define X(id, name, type) {#name, type##OID},
#define PROPERTY(id, name, type, nullable, check) {#name, type##OID, true, nullable},
#include "queue/catalog/queue_column_list.h"
};

void
aq_queue_row_set(AqQueueRow *row, AqQueueColumn column, Datum value, bool isnull)
{
	row->set[column] = true;
	row->values[column] = value;
	row->nulls[column] = isnull;
}

/* The command is "first (names of the columns) second (their values) third". */
static void
write_row(const AqQueueRow *row, const char *first, const char *second, const char *third)
{
	Oid			types[AQ_QUEUE_COLUMNS];
	Datum		values[AQ_QUEUE_COLUMNS];
	char		nulls[AQ_QUEUE_COLUMNS + 1] = "";
	int			n = 0;
	StringInfoData names,
				parameters;

	initStringInfo(&names);
	initStringInfo(&parameters);
	for (int i = 0; i < AQ_QUEUE_COLUMNS; i++)
	{
		if (!row->set[i])
			continue;
		types[n] = columns[i].type;
		values[n] = row->values[i];
		nulls[n] = row->nulls[i] ? 'n' : ' ';
		appendStringInfo(&names, "%s%s", n == 0 ? "" : ", ", columns[i].name);
		appendStringInfo(&parameters, "%s$%d", n == 0 ? "" : ", ", n + 1);
		n++;
	}
	if (n > 0)
		aq_sql_change(psprintf("%s (%s) %s (%s) %s", first, names.data, second, parameters.data, third),
					  n, types, values, nulls);
}

void
aq_queue_row_insert(const AqQueueRow *row)
{
	write_row(row, "INSERT INTO aq_internal.queue", "VALUES", "");
}

void
aq_queue_row_update(const AqQueueRow *row, int32 id)
{
	write_row(row, "UPDATE aq_internal.queue SET", "= ROW", psprintf("WHERE queue_id = %d", id));
}

/* --- properties ------------------------------------------------------------------------ */

static void
check_not_negative(Datum interval, const char *what)
{
	if (aq_interval_option(interval, AQ_ERR_OPTION_INVALID, what) < 0)
		ereport(ERROR, aq_error(AQ_ERR_OPTION_INVALID, "\"%s\" must not be negative", what));
}

/* A limit above the maximum count would never be reached, so it is refused. */
static void
check_max_retries(int32 max_retries, bool alters, bool sharded)
{
	if (max_retries < 0)
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "\"max_retries\" must not be negative"),
				alters ? errhint("-1 means no limit.") : errhint("Null means no limit."));
	if (sharded && max_retries > AQ_MAX_ATTEMPTS)
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "\"max_retries\" of a sharded queue must be at most %d, not %d",
						 AQ_MAX_ATTEMPTS, max_retries),
				aq_error_hint("Set no limit (null in aq.create_queue, -1 in aq.alter_queue), or put the queue into a queue table.",
							  "Lower it, or put the queue into a queue table."));
}

static void
check_max_running(int32 max_running, bool alters)
{
	if (max_running < 1)
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "\"max_running\" must be positive, not %d", max_running),
				errhint("%s means no limit. To give consumers no messages, use aq.pause.", alters ? "-1" : "Null"));
}

/* Other nodes and queue tables do not count what is in work, or was taken. */
void
aq_queue_row_check_limit(const char *name, bool sharded, bool distributed)
{
	if (distributed || !sharded)
		ereport(ERROR,
				aq_error(AQ_ERR_FEATURE_UNSUPPORTED, "\"%s\" is not supported for %s", name,
						 distributed ? "distributed queues" : "queues of queue tables"),
				errhint("Use a sharded queue that is not distributed."));
}

/* The same for both limits, if the row has them. */
void
aq_queue_row_check_limits(const AqQueueRow *row, bool sharded, bool distributed)
{
	if (aq_queue_row_has(row, AQ_QUEUE_MAX_RUNNING))
		aq_queue_row_check_limit("max_running", sharded, distributed);
	if (aq_queue_row_has(row, AQ_QUEUE_RATE))
		aq_queue_row_check_limit("rate", sharded, distributed);
}

/* Queue tables also have negative priorities, but in aq.alter_queue -1 means no default. */
static void
check_default_priority(int32 priority, bool alters, bool sharded)
{
	if (priority < 0)
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "\"default_priority\" must not be negative"),
				alters ? errhint("-1 means no default.") : errhint("Null means no default."));
	if (sharded && priority >= AQ_PRIORITIES)
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "\"default_priority\" of a sharded queue must be at most %d, not %d",
						 AQ_PRIORITIES - 1, priority));
}

static void
check_default_expiration(Datum expiration, bool alters)
{
	if (aq_interval_option(expiration, AQ_ERR_OPTION_INVALID, "default_expiration") <= 0)
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "\"default_expiration\" must be positive"),
				alters ? errhint("'-1' means no default.") : errhint("Null means no default."));
}

/* With a limit of 0 nothing could be enqueued. */
static void
check_max_depth(int64 max_depth, bool alters)
{
	if (max_depth <= 0)
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "\"max_depth\" must be positive"),
				alters ? errhint("-1 means no limit. aq.stop_queue stops enqueues.")
				: errhint("Null means no limit. aq.stop_queue stops enqueues."));
}

/* Its messages are let in, so that none is lost. */
void
aq_queue_row_refuse_depth(const AqQueueRow *row)
{
	if (aq_queue_row_has(row, AQ_QUEUE_MAX_DEPTH))
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "an exception queue has no \"max_depth\""),
				errhint("It takes every message that other queues could not deliver."));
}

static void
check_on_full(const char *on_full)
{
	if (strcmp(on_full, "wait") != 0 && strcmp(on_full, "error") != 0)
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "\"on_full\" must be wait or error, not \"%s\"", on_full));
}

static void
check_property(AqQueueColumn column, const char *name, Datum value, bool alters, bool sharded)
{
	switch (column)
	{
#define PROPERTY(id, column, type, nullable, check) case AQ_QUEUE_##id: check; break;
#include "queue/catalog/queue_column_list.h"
		default:
			break;
	}
}

/* In aq.alter_queue. */
static bool
means_no_limit(const Column *column, Datum value)
{
	if (!column->nullable)
		return false;
	if (column->type == INT4OID)
		return DatumGetInt32(value) == -1;
	if (column->type == INT8OID)
		return DatumGetInt64(value) == -1;
	if (column->type == TEXTOID)
		return strcmp(TextDatumGetCString(value), "none") == 0;
	return aq_interval_to_us(value) == -USECS_PER_SEC;
}

/*
 * Sets the properties that are arguments of the call: of aq.create_queue all,
 * of aq.alter_queue those that are not null.  Returns false if there are none.
 */
bool
aq_queue_row_read(AqQueueRow *row, FunctionCallInfo fcinfo, bool alters, bool sharded)
{
	bool		found = false;

	for (AqQueueColumn i = 0; i < AQ_QUEUE_COLUMNS; i++)
	{
		const Column *column = &columns[i];
		int			arg = column->property ? aq_args_find(fcinfo, column->name) : -1;
		bool		isnull;

		if (arg < 0 || (alters && PG_ARGISNULL(arg)))
			continue;
		if (!column->nullable)
			aq_args_require(fcinfo, arg, column->name);
		isnull = PG_ARGISNULL(arg) || (alters && means_no_limit(column, PG_GETARG_DATUM(arg)));
		if (!isnull)
			check_property(i, column->name, PG_GETARG_DATUM(arg), alters, sharded);
		aq_queue_row_set(row, i, PG_GETARG_DATUM(arg), isnull);
		found = true;
	}
	return found;
}
