/*-------------------------------------------------------------------------
 *
 * definition.c
 *	  Creating and dropping a queue's row in the catalog and its dependent
 *	  objects.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/definitions/definitions_private.h"

#include "catalog/pg_type.h"
#include "commands/sequence.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

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
 * An unused queue id.  A restored dump of definitions only has a queue's
 * tables, but neither the queue nor the value of the sequence.
 */
static int32
new_queue_id(void)
{
	int32		id;

	do
		id = (int32) nextval_internal(aq_schema_relation("queue_id_seq"), false);
	while (OidIsValid(aq_schema_data_relation(psprintf("q%d", id))) ||
		   OidIsValid(aq_schema_data_relation(psprintf("s%d", id))));
	return id;
}

/*
 * Creates the view that has the queue's owner and privileges, and for a
 * sharded queue the sequence of partition numbers.
 */
static void
create_owner_view(int32 id, Oid payload_type, Oid owner, bool sharded)
{
	char	   *type = format_type_extended(payload_type, -1, FORMAT_TYPE_FORCE_QUALIFY);

	aq_sql_change(psprintf("CREATE VIEW aq_data.q%d AS SELECT NULL::%s AS payload WHERE false",
						   id, type), 0, NULL, NULL, NULL);
	aq_sql_change(psprintf("ALTER VIEW aq_data.q%d OWNER TO %s", id,
						   quote_identifier(GetUserNameFromId(owner, false))),
				  0, NULL, NULL, NULL);
	if (sharded)
		aq_sql_change(psprintf("CREATE SEQUENCE aq_data.s%d", id), 0, NULL, NULL, NULL);
}

void
aq_definition_create(const AqQueueDefinition *d)
{
	int32		id;
	Oid			types[17] = {INT4OID, TEXTOID, REGTYPEOID, BOOLOID, INT2OID, INT4OID,
		INTERVALOID, INTERVALOID, INT4OID, INT8OID, TEXTOID, CHAROID, INT4OID, TEXTOID,
	FLOAT8OID, INTERVALOID, FLOAT8OID};
	Datum		values[17];
	char		nulls[18] = "                 ";
	Interval	none = {0};

	if (aq_catalog_get_by_name(d->name) != NULL)
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
	values[14] = Float8GetDatum(d->retry_delay ? d->retry_delay_factor : 1);
	values[15] = IntervalPGetDatum(d->retry_delay_max);
	nulls[15] = d->retry_delay_max == NULL ? 'n' : ' ';
	values[16] = Float8GetDatum(d->retry_jitter);
	aq_pending_set_ddl();		/* before the INSERT: see aq_restored_trigger */
	aq_sql_change("INSERT INTO aq_internal.queue (queue_id, queue_name, payload_type, multiple_consumers, "
				  "shards, max_retries, retry_delay, retention, exception_queue_id, key, comment, "
				  "store, queue_table_id, queue_type, retry_delay_factor, retry_delay_max, retry_jitter, "
				  "enqueue_enabled, dequeue_enabled) "
				  "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, "
				  "$14 = 'normal', $14 = 'normal')",
				  17, types, values, nulls);
	create_owner_view(id, d->payload_type, d->owner, d->queue_table_id == 0);
	aq_pending_created(id);
	aq_catalog_changed();
}

/* The caller has locked the queue, and its store has dropped the messages. */
static void
drop_definition(int32 id, bool sharded)
{
	if (OidIsValid(aq_schema_data_relation(psprintf("q%d", id))))
		aq_sql_change(psprintf("DROP VIEW aq_data.q%d", id), 0, NULL, NULL, NULL);
	if (sharded)
		aq_sql_change(psprintf("DROP SEQUENCE aq_data.s%d", id), 0, NULL, NULL, NULL);
	aq_sql_change(psprintf("DELETE FROM aq_internal.message_table WHERE queue_id = %d", id), 0, NULL, NULL, NULL);
	aq_sql_change(psprintf("DELETE FROM aq_internal.subscriber WHERE queue_id = %d", id), 0, NULL, NULL, NULL);
	aq_sql_change(psprintf("DELETE FROM aq_internal.consumer_grant WHERE queue_id = %d", id), 0, NULL, NULL, NULL);
	aq_sql_change(psprintf("DELETE FROM aq_internal.queue WHERE queue_id = %d", id), 0, NULL, NULL, NULL);
	aq_pending_dropped(id);
	aq_catalog_changed();
}

/*
 * A queue with missing tables cannot be loaded, but it can be dropped with
 * force: deletes the catalog rows of pairs of which a table is missing.
 */
static void
forget_lost_tables(int32 id)
{
	static const char pairs[] =
		"FROM aq_internal.message_table p, to_regclass(format('aq_data.q%%s_%%s', queue_id, table_no)) q, "
		"to_regclass(format('aq_data.l%%s_%%s', queue_id, table_no)) l WHERE queue_id = %d";
	char	   *lost = psprintf(pairs, id);
	MemoryContext context = CurrentMemoryContext;
	List	   *commands = NIL;
	ListCell   *lc;

	aq_sql_run(psprintf("SELECT format('DROP TABLE %%s', coalesce(q, l)) %s AND (q IS NULL) <> (l IS NULL)", lost),
			   0, NULL, NULL, NULL, true);
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		MemoryContext spi = MemoryContextSwitchTo(context);

		commands = lappend(commands, SPI_getvalue(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1));
		MemoryContextSwitchTo(spi);
	}
	SPI_finish();
	foreach(lc, commands)
		aq_sql_change(lfirst(lc), 0, NULL, NULL, NULL);
	aq_sql_change(psprintf("DELETE FROM aq_internal.message_table WHERE (queue_id, table_no) IN "
						   "(SELECT queue_id, table_no %s AND (q IS NULL OR l IS NULL))", lost), 0, NULL, NULL, NULL);
}

void
aq_definition_drop(const char *name, bool force)
{
	AqQueue    *queue = aq_ddl_queue(name, AccessExclusiveLock);
	int32		id = queue->id;
	bool		sharded = OidIsValid(queue->sequence);

	if (force && sharded)
		forget_lost_tables(id);
	aq_pins_pin(queue);
	queue->store->drop(queue, force);
	aq_buffered_drop(name, force);
	drop_definition(id, sharded);
}
