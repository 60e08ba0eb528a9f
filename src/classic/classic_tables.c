/*-------------------------------------------------------------------------
 *
 * classic_tables.c
 *	  Functions to create, lock, empty and drop the tables of a queue table.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "classic/classic_private.h"

#include "storage/lmgr.h"
#include "utils/builtins.h"

/* Columns of both tables, in the order of the COL_ constants. */
#define LINE_COLUMNS \
	"queue_id integer NOT NULL, \"position\" smallint NOT NULL, state smallint NOT NULL, " \
	"attempts integer NOT NULL, key1 bigint NOT NULL, key2 bigint NOT NULL, step bigint NOT NULL, " \
	"next_at timestamptz, dequeue_time timestamptz, dequeue_user oid, dequeue_xid bigint, " \
	"receipt bigint, leased_at timestamptz, holder text, last_error text, " \
	"first_attempt timestamptz, last_attempt timestamptz, died timestamptz, death \"char\""

#define MESSAGE_COLUMNS \
	"odd boolean NOT NULL, msgid uuid NOT NULL, priority integer NOT NULL, " \
	"enqueue_time timestamptz NOT NULL, enqueue_user oid, enqueue_xid bigint, session_id bigint, " \
	"ready_at timestamptz, expires_at timestamptz, correlation text, properties jsonb, sender text, " \
	"exception_queue text, original_msgid uuid, dead_letter jsonb, earlier_attempts integer, " \
	"transaction_group bigint, targets bytea, exception_queue_id integer"

static void
run_ddl(const char *command)
{
	(void) aq_sql_run(command, 0, NULL, NULL, NULL, false);
}

/* The indexes of both tables; table_index.c finds them by their columns. */
static void
make_indexes(const char *table)
{
	run_ddl(psprintf("CREATE INDEX %s_order ON aq_data.%s (queue_id, \"position\", key1, key2, step) "
					 "WHERE state <> %d", table, table, STATE_PROCESSED));
	run_ddl(psprintf("CREATE INDEX %s_time ON aq_data.%s (queue_id, next_at) WHERE next_at IS NOT NULL",
					 table, table));
}

static void
grant_select(const char *table, Oid role)
{
	aq_acl_change(aq_schema_data_relation(table), InvalidOid, role, ACL_SELECT, true, false);
}

/*
 * Tables of buffered messages are unlogged, so they are empty after a crash.
 */
void
aq_classic_tables_make(int32 id, Oid payload_type, bool multi, Oid owner)
{
	const char *kind = id > 0 ? "" : "UNLOGGED";
	const char *messages = aq_schema_message_table(id);
	const char *consumers = aq_schema_consumer_table(id);

	aq_sql_define(psprintf("CREATE %s TABLE aq_data.%s (" LINE_COLUMNS ", " MESSAGE_COLUMNS ", payload payload_type%s) "
						   "WITH (autovacuum_vacuum_scale_factor = 0.05)", kind, messages,
						   aq_version_has_keys() ? ", key text" : ""), payload_type);
	make_indexes(messages);
	run_ddl(psprintf("CREATE UNIQUE INDEX %s_id ON aq_data.%s (msgid) WHERE odd", messages, messages));
	if (id < 0)
		aq_unlogged_mark(messages);
	else if (aq_payload_is_jms(payload_type))
		run_ddl(psprintf("CREATE TABLE aq_data.k%d (msgid uuid, number integer, data bytea NOT NULL, "
						 "PRIMARY KEY (msgid, number)) WITH (autovacuum_vacuum_scale_factor = 0.05)", id));
	if (OidIsValid(owner))
		grant_select(messages, owner);
	if (!multi)
		return;
	run_ddl(psprintf("CREATE %s TABLE aq_data.%s (" LINE_COLUMNS ") "
					 "WITH (autovacuum_vacuum_scale_factor = 0.05)", kind, consumers));
	make_indexes(consumers);
	if (OidIsValid(owner))
		grant_select(consumers, owner);
}

/* --- the column for keys, which tables made by 0.1.0 do not have ------------------------- */

/* pause before the next try if the table is in use, in microseconds */
#define KEY_COLUMN_AGAIN ((int64) 100000)

/*
 * The session's transaction uses the table, so that it cannot wait for the column.
 * only_group: until it is there, messages are put without the key.
 */
void
aq_classic_tables_ask_for_keys(AqQueue *queue, bool only_group)
{
	aq_work_post(queue->shm, AQ_WORK_TABLES);
	if (only_group)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("the queue table of queue \"%s\" has no column for keys yet", queue->name),
			 errdetail("It was created by an older version."),
			 errhint("The column is added as soon as no transaction uses the queue table: try again.")));
}

/* Can the worker put a message with a key?  If not, the column is asked for. */
bool
aq_classic_tables_take_keys(AqQueue *queue)
{
	if (aq_schema_has_column(queue->table.messages, COL_MESSAGE_KEY))
		return true;
	aq_work_post(queue->shm, AQ_WORK_TABLES);
	return false;
}

/* The worker's job: adds the column.  It waits for no user. */
void
aq_classic_tables_keys_job(int32 id, AqQueueShm *shm)
{
	AqQueue    *queue;

	aq_job_begin();
	queue = aq_catalog_get_by_id(id, true);
	if (queue != NULL && aq_version_has_keys() && OidIsValid(queue->table.messages) && !aq_schema_has_column(queue->table.messages, COL_MESSAGE_KEY))
	{
		if (aq_queue_lock(id, AccessShareLock, false) &&
			ConditionalLockRelationOid(queue->table.messages, AccessExclusiveLock))
			run_ddl(psprintf("ALTER TABLE aq_data.%s ADD COLUMN key text", aq_schema_message_table(queue->table.id)));
		else
			aq_work_later(shm, AQ_WORK_TABLES, KEY_COLUMN_AGAIN);
	}
	aq_job_commit(false);
}

/* Is the table there?  Somebody may have dropped it by hand. */
static bool
exists(const char *table)
{
	return OidIsValid(aq_schema_data_relation(table));
}

char *
aq_classic_tables_lost(const AqQueue *queue)
{
	char	   *messages = aq_schema_message_table(queue->table.id);
	char	   *consumers = aq_schema_consumer_table(queue->table.id);

	if (!exists(messages))
		return messages;
	return queue->table.multi && !exists(consumers) ? consumers : NULL;
}

/*
 * CASCADE drops the views over the tables, which are part of the queue table.
 */
void
aq_classic_tables_drop(int32 id)
{
	char	   *tables[] = {aq_schema_message_table(id), aq_schema_consumer_table(id)};

	for (int i = 0; i < lengthof(tables); i++)
		if (exists(tables[i]))
			run_ddl(psprintf("DROP TABLE aq_data.%s CASCADE", tables[i]));
	if (OidIsValid(aq_body_row_table(id)))
		run_ddl(psprintf("DROP TABLE aq_data.k%d CASCADE", id));
}

/*
 * --- the rows of a queue
 * ------------------------------------------------------------
 */

/*
 * Has a consumer a message?  A topic's message with which all have finished
 * may still exist, because the worker has not checked it yet.
 */
static bool
holds_messages(AqQueue *queue)
{
	if (queue->multi)
		return aq_sql_finds(psprintf("SELECT 1 FROM aq_data.%s c JOIN aq_internal.subscriber s "
									 "ON s.queue_id = abs(c.queue_id) AND s.\"position\" = c.\"position\" "
									 "WHERE c.queue_id = %d AND s.kind <> 'removed' AND c.state <> %d LIMIT 1",
									 aq_schema_consumer_table(queue->table.id), queue->id, STATE_PROCESSED));
	return aq_sql_finds(psprintf("SELECT 1 FROM aq_data.%s WHERE queue_id = %d AND state <> %d LIMIT 1",
								 aq_schema_message_table(queue->table.id), queue->id, STATE_PROCESSED));
}

/* Waits for transactions that have taken or enqueued messages of the queue. */
void
aq_classic_tables_lock(AqQueue *queue)
{
	if (OidIsValid(queue->table.messages))
		LockRelationOid(queue->table.messages, ShareRowExclusiveLock);
	if (OidIsValid(queue->table.consumers))
		LockRelationOid(queue->table.consumers, ShareRowExclusiveLock);
}

void
aq_classic_tables_drop_queue(AqQueue *queue, bool force)
{
	AqQueueTable table = queue->table;
	int32		id = queue->id;
	char	   *name = pstrdup(queue->name);

	aq_classic_tables_lock(queue);
	if (!force)
		(void) aq_pins_check_lost_table(queue, ERROR);
	if (!force && holds_messages(queue))
		ereport(ERROR,
				aq_error(AQ_ERR_QUEUE_NOT_EMPTY, "queue \"%s\" holds messages", name),
				errhint("Dequeue or purge them, or drop the queue with force => true."));
	if (OidIsValid(table.messages) && OidIsValid(aq_body_row_table(table.id)))
		run_ddl(psprintf("DELETE FROM aq_data.k%d WHERE msgid IN (SELECT msgid FROM aq_data.%s WHERE queue_id = %d)",
						 table.id, aq_schema_message_table(table.id), id));
	if (OidIsValid(table.messages))
		(void) aq_sql_delete(aq_schema_message_table(table.id), psprintf("WHERE queue_id = %d", id), 0, NULL, NULL);
	if (OidIsValid(table.consumers))
		(void) aq_sql_delete(aq_schema_consumer_table(table.id), psprintf("WHERE queue_id = %d", id), 0, NULL, NULL);
}

/* Has the queue any row, including processed messages? */
bool
aq_classic_tables_hold(AqQueue *queue)
{
	const Key	first = KEY_FIRST,
				last = KEY_LAST;
	RowScan		rows;
	Key			key;
	bool		holds;

	aq_row_scan_open(&rows, queue, queue->table.messages, AccessShareLock);
	aq_row_scan_seek(&rows, queue->id, 0, &first, ForwardScanDirection);
	holds = aq_row_scan_next(&rows, &last, &key) || aq_row_scan_any_time(&rows, queue->id);
	aq_row_scan_close(&rows, true);
	return holds;
}

/* Deletes the rows of removed consumers. */
void
aq_classic_tables_leave(AqQueue *queue)
{
	if (queue->multi)
		(void) aq_sql_delete(aq_schema_consumer_table(queue->table.id), psprintf("WHERE queue_id = %d FOR UPDATE", queue->id), 0, NULL, NULL);
}
