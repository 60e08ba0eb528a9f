/*-------------------------------------------------------------------------
 *
 * description.c
 *	  Descriptions of queues, read from the catalog tables of schema aq.
 *
 * The catalog is read with the latest snapshot, even in REPEATABLE READ: as
 * for tables, the current definition applies.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/catalog/catalog_private.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

/* The columns of aq_internal.subscriber. */
enum
{
	SUBSCRIBER_QUEUE, SUBSCRIBER_POSITION, SUBSCRIBER_NAME, SUBSCRIBER_KIND, SUBSCRIBER_RULE,
	SUBSCRIBER_CREATED, SUBSCRIBER_COMMENT, SUBSCRIBER_TRANSFORMATION, SUBSCRIBER_DELIVERY,
	SUBSCRIBER_NUMBER, SUBSCRIBER_RULE_ROLE, SUBSCRIBER_TRANSFORMATION_ROLE, SUBSCRIBER_OWNER, SUBSCRIBER_PAUSED,
	SUBSCRIBER_PAUSED_BY, SUBSCRIBER_PAUSE_REASON, SUBSCRIBER_MAX_RUNNING, SUBSCRIBER_RATE, SUBSCRIBER_COLUMNS
};

/*
 * Finds the subscribers without a rule, which get every message without
 * recipients.
 */
static void
find_without_rule(AqQueue *queue)
{
	queue->without_rule = NULL;
	queue->has_rules = false;
	for (int i = 0; i < queue->nconsumers; i++)
	{
		AqConsumer *consumer = &queue->consumers[i];

		if (!consumer->subscriber || !(consumer->delivery & queue->delivery))
			continue;
		if (consumer->rule_text == NULL)
			queue->without_rule = bms_add_member(queue->without_rule, consumer->position);
		else
			queue->has_rules = true;
	}
}

static void
read_consumers(AqQueue *queue, Snapshot snapshot)
{
	Relation	rel = aq_schema_open("subscriber", AccessShareLock);
	Oid			index = aq_primary_key(rel);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	int			size = 8;

	queue->consumers = palloc(size * sizeof(AqConsumer));
	ScanKeyInit(&key, 1, BTEqualStrategyNumber, F_INT4EQ, Int32GetDatum(queue->id));
	scan = systable_beginscan(rel, index, true, snapshot, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Datum		values[SUBSCRIBER_COLUMNS];
		bool		nulls[SUBSCRIBER_COLUMNS];
		AqConsumer *consumer;
		const char *kind;

		aq_rows_read(tuple, RelationGetDescr(rel), SUBSCRIBER_COLUMNS, values, nulls);
		if (queue->nconsumers == size)
		{
			size *= 2;
			queue->consumers = repalloc(queue->consumers, size * sizeof(AqConsumer));
		}
		consumer = &queue->consumers[queue->nconsumers++];
		memset(consumer, 0, sizeof(AqConsumer));
		consumer->position = DatumGetInt16(values[SUBSCRIBER_POSITION]);
		consumer->number = DatumGetInt64(values[SUBSCRIBER_NUMBER]);
		kind = TextDatumGetCString(values[SUBSCRIBER_KIND]);
		if (strcmp(kind, "removed") == 0)
			continue;
		consumer->name = TextDatumGetCString(values[SUBSCRIBER_NAME]);
		consumer->subscriber = strcmp(kind, "subscriber") == 0;
		consumer->created = DatumGetTimestampTz(values[SUBSCRIBER_CREATED]);
		consumer->delivery = DatumGetInt16(values[SUBSCRIBER_DELIVERY]);
		if (!nulls[SUBSCRIBER_RULE])
			consumer->rule_text = TextDatumGetCString(values[SUBSCRIBER_RULE]);
		if (!nulls[SUBSCRIBER_RULE_ROLE])
			consumer->rule_role = DatumGetObjectId(values[SUBSCRIBER_RULE_ROLE]);
		if (!nulls[SUBSCRIBER_TRANSFORMATION])
			consumer->transformation = TextDatumGetCString(values[SUBSCRIBER_TRANSFORMATION]);
		if (!nulls[SUBSCRIBER_TRANSFORMATION_ROLE])
			consumer->transformation_role = DatumGetObjectId(values[SUBSCRIBER_TRANSFORMATION_ROLE]);
		if (!nulls[SUBSCRIBER_OWNER])
			consumer->owner = DatumGetObjectId(values[SUBSCRIBER_OWNER]);
		consumer->paused = !nulls[SUBSCRIBER_PAUSED];
		queue->has_paused |= consumer->paused;
		consumer->max_running = nulls[SUBSCRIBER_MAX_RUNNING] ? 0 : DatumGetInt32(values[SUBSCRIBER_MAX_RUNNING]);
		consumer->own_rate = aq_rate_text_read(nulls[SUBSCRIBER_RATE] ? NULL : TextDatumGetCString(values[SUBSCRIBER_RATE]));
		queue->has_limit |= consumer->max_running > 0 || consumer->own_rate.period > 0;
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	find_without_rule(queue);
}

/* The columns of aq_internal.queue_table. */
enum
{
	TABLE_ID, TABLE_SCHEMA, TABLE_NAME, TABLE_PAYLOAD_TYPE, TABLE_SORT, TABLE_MULTI,
	TABLE_GROUPING, TABLE_SECURE, TABLE_COMPATIBLE, TABLE_OWNER, TABLE_COMMENT, TABLE_CREATED,
	TABLE_COLUMNS
};

/*
 * The first letters of the columns by which a queue table sorts; all are
 * different.
 */
static void
read_sort_list(AqQueueTable *table, Datum array)
{
	Datum	   *columns;
	int			n;

	deconstruct_array(DatumGetArrayTypeP(array), TEXTOID, -1, false, TYPALIGN_INT, &columns, NULL, &n);
	for (int i = 0; i < Min(n, lengthof(table->sort) - 1); i++)
		table->sort[i] = *VARDATA_ANY(DatumGetTextPP(columns[i]));
}

static void
find_table_relations(AqQueueTable *table)
{
	table->messages = aq_schema_data_table(aq_schema_message_table(table->id));
	table->consumers = table->multi ? aq_schema_data_table(aq_schema_consumer_table(table->id)) : InvalidOid;
}

static void
read_queue_table(AqQueueTable *table, int32 id, Snapshot snapshot)
{
	Relation	rel = aq_schema_open("queue_table", AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	Datum		values[TABLE_COLUMNS];
	bool		nulls[TABLE_COLUMNS];

	ScanKeyInit(&key, 1, BTEqualStrategyNumber, F_INT4EQ, Int32GetDatum(id));
	scan = systable_beginscan(rel, aq_primary_key(rel), true, snapshot, 1, &key);
	tuple = systable_getnext(scan);
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "queue table %d does not exist", id);
	aq_rows_read(tuple, RelationGetDescr(rel), TABLE_COLUMNS, values, nulls);
	table->id = id;
	table->multi = DatumGetBool(values[TABLE_MULTI]);
	table->grouping = DatumGetBool(values[TABLE_GROUPING]);
	read_sort_list(table, values[TABLE_SORT]);
	systable_endscan(scan);
	table_close(rel, AccessShareLock);

	find_table_relations(table);
}

#define READ_BOOL(value, isnull) (!(isnull) && DatumGetBool(value))
#define READ_FLOAT8(value, isnull) ((isnull) ? -1 : DatumGetFloat8(value))
#define READ_INT4(value, isnull) ((isnull) ? -1 : DatumGetInt32(value))
#define READ_INT8(value, isnull) ((isnull) ? -1 : DatumGetInt64(value))
#define READ_INTERVAL(value, isnull) ((isnull) ? -1 : aq_interval_to_us(value))
#define READ_TEXT(value, isnull) ((isnull) ? NULL : TextDatumGetCString(value))

/* Fills in a description from a row of aq_internal.queue. */
static void
read_queue(AqQueue *queue, TupleDesc desc, HeapTuple tuple, Snapshot snapshot)
{
	Datum		values[AQ_QUEUE_COLUMNS];
	bool		nulls[AQ_QUEUE_COLUMNS];
	char		view[NAMEDATALEN];
	Oid			input;

	aq_rows_read(tuple, desc, AQ_QUEUE_COLUMNS, values, nulls);
#define PROPERTY(id, name, type, nullable, check) queue->name = READ_##type(values[AQ_QUEUE_##id], nulls[AQ_QUEUE_##id]);
#include "queue/catalog/queue_column_list.h"
	queue->id = DatumGetInt32(values[AQ_QUEUE_ID]);
	queue->name = TextDatumGetCString(values[AQ_QUEUE_NAME]);
	queue->delivery = AQ_PERSISTENT;
	queue->payload_type = DatumGetObjectId(values[AQ_QUEUE_PAYLOAD_TYPE]);
	queue->multi = DatumGetBool(values[AQ_QUEUE_MULTI]);
	queue->shards = DatumGetInt16(values[AQ_QUEUE_SHARDS]);
	queue->exception_queue_id = nulls[AQ_QUEUE_EXCEPTION_QUEUE] ? 0
		: DatumGetInt32(values[AQ_QUEUE_EXCEPTION_QUEUE]);
	queue->enqueue_enabled = DatumGetBool(values[AQ_QUEUE_ENQUEUE]);
	queue->dequeue_enabled = DatumGetBool(values[AQ_QUEUE_DEQUEUE]);
	queue->paused = queue->has_paused = !nulls[AQ_QUEUE_PAUSED];
	queue->each_rate = aq_rate_text_read(queue->rate);
	queue->has_limit = queue->max_running > 0 || queue->each_rate.period > 0;
	queue->created = DatumGetTimestampTz(values[AQ_QUEUE_CREATED]);
	queue->key = (uint64) DatumGetInt64(values[AQ_QUEUE_KEY]) & AQ_KEY_MASK;
	queue->converted = !nulls[AQ_QUEUE_CONVERTED] && !aq_pending_is_converted(queue->id);
	queue->shard_key = nulls[AQ_QUEUE_CONVERTED] ? queue->key : queue->key ^ AQ_SHARD_KEY;
	queue->store = aq_store_of(aq_pending_is_converted(queue->id) ? AQ_STORE_CLASSIC
							   : DatumGetChar(values[AQ_QUEUE_STORE]));
	queue->exception = strcmp(TextDatumGetCString(values[AQ_QUEUE_TYPE]), "exception") == 0;
	queue->non_persistent = strcmp(TextDatumGetCString(values[AQ_QUEUE_TYPE]), "non_persistent") == 0;
	if (!nulls[AQ_QUEUE_TABLE])
		read_queue_table(&queue->table, DatumGetInt32(values[AQ_QUEUE_TABLE]), snapshot);
	queue->own = aq_pending_is_created(queue->id);
	queue->rights_id = DatumGetInt32(values[AQ_QUEUE_RIGHTS]);

	snprintf(view, sizeof(view), "q%d", queue->rights_id);
	queue->owner_view = aq_schema_data_relation(view);
	if (OidIsValid(queue->owner_view))
	{
		HeapTuple	cls = SearchSysCache1(RELOID, ObjectIdGetDatum(queue->owner_view));

		if (HeapTupleIsValid(cls))
		{
			queue->owner = ((Form_pg_class) GETSTRUCT(cls))->relowner;
			ReleaseSysCache(cls);
		}
	}

	queue->input_is_text = queue->payload_type == TEXTOID;
	queue->jms = aq_payload_is_jms(queue->payload_type);
	if (!SearchSysCacheExists1(TYPEOID, ObjectIdGetDatum(queue->payload_type)))
		return;					/* dropped with a temporary object; then the queue has no owner view either */
	getTypeInputInfo(queue->payload_type, &input, &queue->input_param);
	fmgr_info_cxt(input, &queue->input, queue->context);
}

/* The consumer with this number; NULL: removed meanwhile, or 0 of a queue with a single consumer. */
const AqConsumer *
aq_description_consumer(const AqQueue *queue, int64 number)
{
	for (int i = 0; i < queue->nconsumers; i++)
		if (queue->consumers[i].number == number && queue->consumers[i].name != NULL)
			return &queue->consumers[i];
	return NULL;
}

/* The consumer at the position; NULL: it has no row. */
static const AqConsumer *
consumer_at(const AqQueue *queue, int position)
{
	for (int i = 0; i < queue->nconsumers; i++)
		if (queue->consumers[i].position == position)
			return &queue->consumers[i];
	return NULL;
}

/* See aq_queue_is_paused. */
bool
aq_description_pauses(const AqQueue *queue, int position)
{
	const AqConsumer *consumer = consumer_at(queue, position);

	return queue->paused || (consumer != NULL && consumer->paused);
}

/* See aq_queue_limit. */
uint32
aq_description_limit(const AqQueue *queue, int position)
{
	const AqConsumer *consumer = consumer_at(queue, position);

	return Max(consumer != NULL && consumer->max_running > 0 ? consumer->max_running : queue->max_running, 0);
}

/* See aq_queue_rate. */
const AqRate *
aq_description_rate(const AqQueue *queue, int position)
{
	const AqConsumer *consumer = consumer_at(queue, position);

	return consumer != NULL && consumer->own_rate.period > 0 ? &consumer->own_rate : &queue->each_rate;
}

static void (*read_units) (AqQueue *queue, Snapshot snapshot);

/* Part "node" reads which shards of a distributed queue are dequeued on which node. */
void
aq_description_on_units(void (*read) (AqQueue *queue, Snapshot snapshot))
{
	read_units = read;
}

/*
 * The description of the buffered queue of a queue that was just read, in the
 * same memory context; NULL: it has none.
 */
static AqQueue *
describe_buffered(AqQueue *queue)
{
	AqQueue    *buffered;

	/* one that was dropped by hand is missed when the queue is used */
	if (!OidIsValid(aq_schema_data_relation(aq_schema_message_table(-queue->id))) &&
		!OidIsValid(aq_schema_data_relation(aq_schema_consumer_table(-queue->id))))
		return NULL;
	buffered = palloc(sizeof(AqQueue));
	*buffered = *queue;
	buffered->id = -queue->id;
	buffered->persistent = queue;
	buffered->delivery = AQ_BUFFERED;
	buffered->store = aq_store_of(AQ_STORE_CLASSIC);
	buffered->retention = 0;
	buffered->distributed = buffered->has_limit = false;
	memset(&buffered->each_rate, 0, sizeof(AqRate));
	buffered->nclosed = 0;
	buffered->converted = false;
	buffered->key = queue->key ^ AQ_BUFFERED_KEY;	/* ids of both are made in the same way */
	memset(&buffered->table, 0, sizeof(AqQueueTable));
	buffered->table.id = buffered->id;
	buffered->table.multi = queue->multi;
	find_table_relations(&buffered->table);
	/*
	 * by priority as in a sharded queue, or as in its queue table; commit_time
	 * is replaced by the order of the calls
	 */
	if (aq_queue_is_sharded(queue))
		buffered->table.sort[0] = AQ_SORT_PRIORITY;
	else
		for (int i = 0; queue->table.sort[i] != '\0' && queue->table.sort[i] != AQ_SORT_COMMIT_TIME; i++)
			buffered->table.sort[i] = queue->table.sort[i];
	if (queue->nconsumers > 0)
	{
		buffered->consumers = palloc(queue->nconsumers * sizeof(AqConsumer));
		memcpy(buffered->consumers, queue->consumers, queue->nconsumers * sizeof(AqConsumer));
	}
	find_without_rule(buffered);
	return buffered;
}

/*
 * Reads a queue by name or, if name is NULL, by id; NULL: no such queue. rel
 * is aq_internal.queue.
 */
AqQueue *
aq_description_read(Relation rel, const char *name, int32 id)
{
	Oid			index;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	AqQueue    *queue = NULL;
	uint64		definition = aq_definition_clock_now();
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());

	aq_point("queue-described");

	/*
	 * A session woken by a commit may be here before it gets the commit's
	 * invalidations: see the server's catalogs in the same state as pgaq's
	 * tables.
	 */
	InvalidateCatalogSnapshot();
	if (name != NULL)
	{
		index = aq_schema_relation("queue_queue_name_key");
		ScanKeyInit(&key, 2, BTEqualStrategyNumber, F_TEXTEQ, CStringGetTextDatum(name));
	}
	else
	{
		index = aq_primary_key(rel);
		ScanKeyInit(&key, 1, BTEqualStrategyNumber, F_INT4EQ, Int32GetDatum(id));
	}
	scan = systable_beginscan(rel, index, true, snapshot, 1, &key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
	{
		/* a session may know thousands of queues: most descriptions fit into the first block */
		MemoryContext context = AllocSetContextCreate(TopMemoryContext, "pgaq queue", 0, 2048, ALLOCSET_SMALL_MAXSIZE);
		MemoryContext old = MemoryContextSwitchTo(context);

		queue = palloc0(sizeof(AqQueue));
		queue->context = context;
		queue->definition = definition;
		queue->catalog = RelationGetRelid(rel);
		queue->uncommitted = aq_pending_has_ddl();
		PG_TRY();
		{
			read_queue(queue, RelationGetDescr(rel), tuple, snapshot);
			if (queue->multi)
				read_consumers(queue, snapshot);
			if (queue->distributed)
				read_units(queue, snapshot);
			queue->buffered = describe_buffered(queue);
		}
		PG_CATCH();
		{
			MemoryContextDelete(context);
			PG_RE_THROW();
		}
		PG_END_TRY();
		MemoryContextSwitchTo(old);
	}
	systable_endscan(scan);
	UnregisterSnapshot(snapshot);
	return queue;
}

/* --- rules ------------------------------------------------------------------------- */

/*
 * Takes over the compiled rules of consumers whose rule did not change; both
 * lists are ordered by position.  A rule is in a memory context of its own.
 */
static void
adopt_rules(AqQueue *queue, AqQueue *from)
{
	AqConsumer *old = from->consumers;
	AqConsumer *end = old + from->nconsumers;

	for (AqConsumer *c = queue->consumers; c < queue->consumers + queue->nconsumers; c++)
	{
		while (old < end && old->position < c->position)
			old++;
		if (old == end)
			return;
		if (old->number != c->number || old->rule == NULL || c->rule_text == NULL ||
			c->rule_role != old->rule_role || strcmp(c->rule_text, old->rule_text) != 0)
			continue;
		c->rule = old->rule;
		old->rule = NULL;
		MemoryContextSetParent(GetMemoryChunkContext(c->rule), queue->context);
	}
}

/* The same for a queue and its buffered queue; from: an older description, not in use. */
void
aq_description_adopt_rules(AqQueue *queue, AqQueue *from)
{
	if (queue->payload_type != from->payload_type)
		return;
	adopt_rules(queue, from);
	if (queue->buffered != NULL && from->buffered != NULL)
		adopt_rules(queue->buffered, from->buffered);
}
