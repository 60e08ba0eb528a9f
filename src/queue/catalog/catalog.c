/*-------------------------------------------------------------------------
 *
 * catalog.c
 *	  Descriptions of queues, read from the catalog tables of schema aq.
 *
 * Every session keeps the descriptions it has used.  Whoever changes the
 * catalog has the relcache entry of aq.queue invalidated at his commit;
 * PostgreSQL tells every session, this file counts a generation up, and a
 * description of an older generation is read again at its next use.  So
 * definitions are as transactional as any table's.
 *
 * The catalog is read with the latest snapshot, also in REPEATABLE READ: as
 * for tables, the definition in force counts.
 *
 * Rights stand at the view aq_data.q<id>: its owner owns the queue, INSERT is
 * the right to enqueue, DELETE to dequeue.  (pg_read_all_data gives neither.)
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/queue_private.h"

#include "access/genam.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_extension.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "commands/extension.h"
#include "commands/tablespace.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/lock.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

/* where the rights begin in a row of dc_users, behind the owner */
#define RIGHTS_ACL 8

typedef struct NameEntry
{
	char		name[AQ_MAX_NAME];	/* hash key */
	AqQueue    *queue;			/* NULL: not read */
} NameEntry;

typedef struct IdEntry
{
	int32		id;				/* hash key */
	AqQueue    *queue;			/* the one of this id that was read last */
} IdEntry;

static HTAB *queues_by_name;
static HTAB *queues_by_id;
static uint64 generation = 1;
static Oid	queue_relation;		/* aq.queue; its invalidation counts up */

/* --- finding our relations ----------------------------------------------------- */

static void
on_relcache_invalidation(Datum arg, Oid relation)
{
	aq_code_relation_changed(relation);
	if (OidIsValid(relation))
		aq_row_relation_changed(relation);
	if (relation == InvalidOid || relation == queue_relation)
	{
		generation++;
		if (relation == InvalidOid)
			queue_relation = InvalidOid;
	}
}

void
aq_catalog_init(void)
{
	CacheRegisterRelcacheCallback(on_relcache_invalidation, (Datum) 0);
}

/* Every description is read again at its next use. */
void
aq_catalog_stale(void)
{
	generation++;
}

Oid
aq_catalog_relation(const char *name)
{
	Oid			schema = get_namespace_oid("aq", true);
	Oid			oid = OidIsValid(schema) ? get_relname_relid(name, schema) : InvalidOid;

	if (!OidIsValid(oid))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation \"aq.%s\" does not exist", name),
				 errhint("CREATE EXTENSION pgaq makes it.")));
	return oid;
}

char *
aq_message_table(int32 id)
{
	return id > 0 ? psprintf("t%d", id) : psprintf("b%d", -id);
}

char *
aq_consumer_table(int32 id)
{
	return id > 0 ? psprintf("c%d", id) : psprintf("d%d", -id);
}

static Oid
extension_owner(void)
{
	HeapTuple	tuple;
	Oid			owner;

	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(aq_catalog_relation("queue")));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for relation aq.queue");
	owner = ((Form_pg_class) GETSTRUCT(tuple))->relowner;
	ReleaseSysCache(tuple);
	return owner;
}

void
aq_catalog_changed(void)
{
	CommandCounterIncrement();
	CacheInvalidateRelcacheByRelid(aq_catalog_relation("queue"));
	aq_row_relation_changed(aq_catalog_relation("queue"));
	aq_row_count_modification(AQ_ROW_OBJECTS);
	generation++;				/* this session sees it at once */
	aq_xact_ddl();
}

static bool
may_use_default_tablespace(void)
{
	Oid			tablespace = GetDefaultTablespace(RELPERSISTENCE_PERMANENT, false);

	return !OidIsValid(tablespace) || aq_object_allows(TableSpaceRelationId, tablespace, ACL_CREATE);
}

/*
 * Run one command through SPI as the owner of the extension, names looked up
 * in pg_catalog only.  Returns SPI's result code; SPI is left connected when
 * read_only, so that the caller can read SPI_tuptable, and calls SPI_finish().
 */
int
aq_run_sql(const char *command, int nargs, Oid *types, Datum *values,
		   const char *nulls, bool read_only)
{
	Oid			save_user;
	int			save_context;
	int			nest = NewGUCNestLevel();
	int			result;

	/* what the extension's owner may use is not for everybody */
	if (!may_use_default_tablespace())
		(void) set_config_option("default_tablespace", "", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	GetUserIdAndSecContext(&save_user, &save_context);
	SetUserIdAndSecContext(extension_owner(),
						   save_context | SECURITY_LOCAL_USERID_CHANGE);
	(void) set_config_option("search_path", "pg_catalog, pg_temp",
							 PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	(void) set_config_option("default_table_access_method", "heap",
							 PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);

	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	result = SPI_execute_with_args(command, nargs, types, values, nulls, false, 0);
	if (result < 0)
		elog(ERROR, "could not execute \"%s\": %s", command, SPI_result_code_string(result));
	if (!read_only)
		SPI_finish();

	AtEOXact_GUC(true, nest);
	SetUserIdAndSecContext(save_user, save_context);
	return result;
}

/* --- reading ---------------------------------------------------------------------- */

/* The columns of aq.subscriber. */
enum
{
	SUBSCRIBER_QUEUE, SUBSCRIBER_POSITION, SUBSCRIBER_NAME, SUBSCRIBER_KIND, SUBSCRIBER_RULE,
	SUBSCRIBER_CREATED, SUBSCRIBER_COMMENT, SUBSCRIBER_TRANSFORMATION, SUBSCRIBER_DELIVERY,
	SUBSCRIBER_NUMBER, SUBSCRIBER_RULE_ROLE, SUBSCRIBER_TRANSFORMATION_ROLE, SUBSCRIBER_COLUMNS
};

static void
read_consumers(AqQueue *queue, Snapshot snapshot)
{
	Relation	rel = table_open(aq_catalog_relation("subscriber"), AccessShareLock);
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

		heap_deform_tuple(tuple, RelationGetDescr(rel), values, nulls);
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
		consumer->delivery = DatumGetInt16(values[SUBSCRIBER_DELIVERY]);
		if (!nulls[SUBSCRIBER_RULE])
			consumer->rule_text = TextDatumGetCString(values[SUBSCRIBER_RULE]);
		if (!nulls[SUBSCRIBER_RULE_ROLE])
			consumer->rule_role = DatumGetObjectId(values[SUBSCRIBER_RULE_ROLE]);
		if (!nulls[SUBSCRIBER_TRANSFORMATION])
			consumer->transformation = TextDatumGetCString(values[SUBSCRIBER_TRANSFORMATION]);
		if (!nulls[SUBSCRIBER_TRANSFORMATION_ROLE])
			consumer->transformation_role = DatumGetObjectId(values[SUBSCRIBER_TRANSFORMATION_ROLE]);
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	aq_queue_find_everybody(queue);
}

/* Whom a message without recipients is for: which subscribers need no look at it. */
void
aq_queue_find_everybody(AqQueue *queue)
{
	queue->everybody = NULL;
	queue->has_rules = false;
	for (int i = 0; i < queue->nconsumers; i++)
	{
		AqConsumer *consumer = &queue->consumers[i];

		if (!consumer->subscriber || !(consumer->delivery & queue->delivery))
			continue;
		if (consumer->rule_text == NULL)
			queue->everybody = bms_add_member(queue->everybody, consumer->position);
		else
			queue->has_rules = true;
	}
}

/* The columns of aq.queue and aq.queue_table. */
enum
{
	QUEUE_ID, QUEUE_NAME, QUEUE_PAYLOAD_TYPE, QUEUE_MULTI, QUEUE_SHARDS, QUEUE_MAX_RETRIES,
	QUEUE_RETRY_DELAY, QUEUE_RETENTION, QUEUE_EXCEPTION_QUEUE, QUEUE_ENQUEUE, QUEUE_DEQUEUE,
	QUEUE_KEY, QUEUE_CREATED, QUEUE_COMMENT, QUEUE_STORE, QUEUE_TABLE, QUEUE_TYPE, QUEUE_CONVERTED,
	QUEUE_COLUMNS
};

enum
{
	TABLE_ID, TABLE_SCHEMA, TABLE_NAME, TABLE_PAYLOAD_TYPE, TABLE_SORT, TABLE_MULTI,
	TABLE_GROUPING, TABLE_SECURE, TABLE_COMPATIBLE, TABLE_OWNER, TABLE_COMMENT, TABLE_CREATED,
	TABLE_COLUMNS
};

/* The first letters of what a queue table sorts by: they all differ. */
static void
read_sort_list(AqQueueTable *table, Datum array)
{
	Datum	   *columns;
	int			n;

	deconstruct_array(DatumGetArrayTypeP(array), TEXTOID, -1, false, TYPALIGN_INT, &columns, NULL, &n);
	for (int i = 0; i < Min(n, lengthof(table->sort) - 1); i++)
		table->sort[i] = *VARDATA_ANY(DatumGetTextPP(columns[i]));
}

void
aq_queue_table_relations(AqQueueTable *table)
{
	table->messages = aq_data_relation(aq_message_table(table->id));
	table->consumers = table->multi ? aq_data_relation(aq_consumer_table(table->id)) : InvalidOid;
}

static void
read_queue_table(AqQueueTable *table, int32 id, Snapshot snapshot)
{
	Relation	rel = table_open(aq_catalog_relation("queue_table"), AccessShareLock);
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
	heap_deform_tuple(tuple, RelationGetDescr(rel), values, nulls);
	table->id = id;
	table->multi = DatumGetBool(values[TABLE_MULTI]);
	table->grouping = DatumGetBool(values[TABLE_GROUPING]);
	read_sort_list(table, values[TABLE_SORT]);
	systable_endscan(scan);
	table_close(rel, AccessShareLock);

	aq_queue_table_relations(table);
}

/* Fill a description from a row of aq.queue. */
static void
read_queue(AqQueue *queue, TupleDesc desc, HeapTuple tuple, Snapshot snapshot)
{
	Datum		values[QUEUE_COLUMNS];
	bool		nulls[QUEUE_COLUMNS];
	char		name[NAMEDATALEN];
	Oid			input;

	heap_deform_tuple(tuple, desc, values, nulls);
	queue->id = DatumGetInt32(values[QUEUE_ID]);
	queue->name = TextDatumGetCString(values[QUEUE_NAME]);
	queue->delivery = AQ_PERSISTENT;
	queue->payload_type = DatumGetObjectId(values[QUEUE_PAYLOAD_TYPE]);
	queue->multi = DatumGetBool(values[QUEUE_MULTI]);
	queue->shards = DatumGetInt16(values[QUEUE_SHARDS]);
	queue->max_retries = nulls[QUEUE_MAX_RETRIES] ? -1 : DatumGetInt32(values[QUEUE_MAX_RETRIES]);
	queue->retry_delay = aq_interval_to_us(values[QUEUE_RETRY_DELAY]);
	queue->retention = aq_interval_to_us(values[QUEUE_RETENTION]);
	queue->exception_queue_id = nulls[QUEUE_EXCEPTION_QUEUE] ? 0
		: DatumGetInt32(values[QUEUE_EXCEPTION_QUEUE]);
	queue->enqueue_enabled = DatumGetBool(values[QUEUE_ENQUEUE]);
	queue->dequeue_enabled = DatumGetBool(values[QUEUE_DEQUEUE]);
	queue->key = (uint64) DatumGetInt64(values[QUEUE_KEY]) & AQ_KEY_MASK;
	queue->converted = !nulls[QUEUE_CONVERTED] && !aq_xact_converted(queue->id);
	queue->shard_key = nulls[QUEUE_CONVERTED] ? queue->key : queue->key ^ AQ_SHARD_KEY;
	queue->store = aq_store_of(aq_xact_converted(queue->id) ? AQ_STORE_CLASSIC
							   : DatumGetChar(values[QUEUE_STORE]));
	queue->exception = strcmp(TextDatumGetCString(values[QUEUE_TYPE]), "exception") == 0;
	if (!nulls[QUEUE_TABLE])
		read_queue_table(&queue->table, DatumGetInt32(values[QUEUE_TABLE]), snapshot);
	queue->own = aq_xact_created(queue->id);

	snprintf(name, sizeof(name), "q%d", queue->id);
	queue->anchor = aq_data_relation(name);
	snprintf(name, sizeof(name), "s%d", queue->id);
	queue->sequence = aq_data_relation(name);
	if (OidIsValid(queue->anchor))
	{
		HeapTuple	cls = SearchSysCache1(RELOID, ObjectIdGetDatum(queue->anchor));

		if (HeapTupleIsValid(cls))
		{
			queue->owner = ((Form_pg_class) GETSTRUCT(cls))->relowner;
			ReleaseSysCache(cls);
		}
	}

	queue->input_is_text = queue->payload_type == TEXTOID;
	if (!SearchSysCacheExists1(TYPEOID, ObjectIdGetDatum(queue->payload_type)))
		return;					/* gone with a temporary object: the queue has no anchor either */
	getTypeInputInfo(queue->payload_type, &input, &queue->input_param);
	fmgr_info_cxt(input, &queue->input, queue->context);
}

/*
 * Read a queue by name or, when name is NULL, by id; NULL if there is none.
 */
static AqQueue *
read_catalog(const char *name, int32 id)
{
	Relation	rel = table_open(aq_catalog_relation("queue"), AccessShareLock);
	Oid			index;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	AqQueue    *queue = NULL;
	uint64		definition = aq_queue_clock();
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());

	/*
	 * Who was woken by a commit may be here before the server tells of what
	 * that has changed: its catalogs are to be seen as our tables are.
	 */
	InvalidateCatalogSnapshot();
	queue_relation = RelationGetRelid(rel);
	if (name != NULL)
	{
		index = aq_catalog_relation("queue_queue_name_key");
		ScanKeyInit(&key, 2, BTEqualStrategyNumber, F_TEXTEQ, CStringGetTextDatum(name));
		/* systable scans compare with the C collation unless told otherwise */
		key.sk_collation = DEFAULT_COLLATION_OID;
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
		MemoryContext context = AllocSetContextCreate(TopMemoryContext, "pgaq queue",
													  ALLOCSET_SMALL_SIZES);
		MemoryContext old = MemoryContextSwitchTo(context);

		queue = palloc0(sizeof(AqQueue));
		queue->context = context;
		queue->definition = definition;
		PG_TRY();
		{
			read_queue(queue, RelationGetDescr(rel), tuple, snapshot);
			if (queue->multi)
				read_consumers(queue, snapshot);
			queue->buffered = aq_buffered_describe(queue);
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
	table_close(rel, AccessShareLock);
	return queue;
}

/* --- lookup --------------------------------------------------------------------------- */

/* The one that was looked up last: mostly it is looked up again. */
static NameEntry *latest;

/*
 * Descriptions that were replaced while a caller further out held one, with
 * users' code in between; see queue_private.h.
 */
static AqQueue *retired;
static int	held;

void
aq_queue_hold(void)
{
	held++;
}

void
aq_queue_let_go(void)
{
	held--;
}

static void
discard(AqQueue *queue)
{
	IdEntry    *known = hash_search(queues_by_id, &queue->id, HASH_FIND, NULL);

	if (known != NULL && known->queue == queue)
		hash_search(queues_by_id, &queue->id, HASH_REMOVE, NULL);
	queue->next_retired = retired;
	retired = queue;
	while (held == 0 && (queue = retired) != NULL)
	{
		retired = queue->next_retired;
		MemoryContextDelete(queue->context);
	}
}

static void
make_tables(void)
{
	HASHCTL		names = {.keysize = AQ_MAX_NAME,.entrysize = sizeof(NameEntry)};
	HASHCTL		ids = {.keysize = sizeof(int32),.entrysize = sizeof(IdEntry)};

	if (queues_by_id == NULL)
		queues_by_id = hash_create("pgaq queues by id", 64, &ids, HASH_ELEM | HASH_BLOBS);
	queues_by_name = hash_create("pgaq queues", 64, &names, HASH_ELEM | HASH_STRINGS);
}

static NameEntry *
name_entry(const char *name)
{
	char		key[AQ_MAX_NAME];
	NameEntry  *entry;
	bool		found;

	if (latest != NULL && strcmp(latest->name, name) == 0)
		return latest;
	if (queues_by_name == NULL)
		make_tables();
	strlcpy(key, name, sizeof(key));
	entry = hash_search(queues_by_name, key, HASH_ENTER, &found);
	if (!found)
		entry->queue = NULL;
	latest = entry;
	return entry;
}

static void
forget_entry(NameEntry *entry)
{
	latest = NULL;
	if (entry->queue != NULL)
		discard(entry->queue);
	hash_search(queues_by_name, entry->name, HASH_REMOVE, NULL);
}

/* From now on this is the description of its name and its id. */
static void
know(AqQueue *queue, uint64 as_of)
{
	NameEntry  *entry = name_entry(queue->name);
	IdEntry    *known;

	if (entry->queue != NULL)
		discard(entry->queue);
	entry->queue = NULL;
	known = hash_search(queues_by_id, &queue->id, HASH_ENTER, NULL);
	known->queue = entry->queue = queue;
	queue->generation = as_of;
}

/* dc_objects: the queue's id. */
static int
load_object(const AqRowKey *key, char *value, void *arg)
{
	Relation	rel = table_open(key->relation, AccessShareLock);
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	ScanKeyData scankey;
	SysScanDesc scan;
	HeapTuple	tuple;
	int			length = -1;

	ScanKeyInit(&scankey, 2, BTEqualStrategyNumber, F_TEXTEQ, CStringGetTextDatum(key->name));
	scankey.sk_collation = DEFAULT_COLLATION_OID;
	scan = systable_beginscan(rel, aq_catalog_relation("queue_queue_name_key"), true, snapshot, 1, &scankey);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
	{
		bool		isnull;
		int32		id = DatumGetInt32(heap_getattr(tuple, 1, RelationGetDescr(rel), &isnull));

		memcpy(value, &id, sizeof(id));
		length = sizeof(id);
	}
	systable_endscan(scan);
	UnregisterSnapshot(snapshot);
	table_close(rel, AccessShareLock);
	return length;
}

/* The id of the queue of this name, 0: there is none. */
static int32
id_of_name(const char *name)
{
	AqRowKey	key = {.database = MyDatabaseId,.relation = aq_catalog_relation("queue")};
	char		value[AQ_ROW_VALUE];
	int32		id = 0;

	strlcpy(key.name, name, sizeof(key.name));
	if (aq_row_get(AQ_ROW_OBJECTS, &key, value, load_object, NULL) > 0)
		memcpy(&id, value, sizeof(id));
	return id;
}

/* Is the description that of the catalog, as far as the session has heard? */
bool
aq_queue_in_force(const AqQueue *queue)
{
	return queue->generation == generation && !aq_queue_is_stale(queue);
}

/* The description in force, or NULL. */
static AqQueue *
lookup(const char *name)
{
	NameEntry  *entry;
	AqQueue    *queue;
	uint64		before;

	if (strlen(name) >= AQ_MAX_NAME)
		return NULL;

	AcceptInvalidationMessages();
	entry = name_entry(name);
	if (entry->queue != NULL && aq_queue_in_force(entry->queue) &&
		(aq_session_pins || id_of_name(name) == entry->queue->id))
		return entry->queue;

	/* many names are looked for that are no queue's: schema by schema */
	if (entry->queue == NULL && id_of_name(name) == 0)
	{
		forget_entry(entry);
		return NULL;
	}
	before = generation;		/* a change during the read makes it stale again */
	queue = read_catalog(name, 0);
	if (queue != NULL)
		know(queue, before);
	else
		forget_entry(name_entry(name));
	return queue;
}

/* Has the role a right to all queues, by one of the extension's roles? */
static bool
has_system_privilege(Oid role, const char *privilege)
{
	Oid			group = get_role_oid(privilege, true);

	return OidIsValid(group) && has_privs_of_role(role, group);
}

/* dc_users: the owner of the anchor, and its rights as they are in pg_class. */
static int
load_rights(const AqRowKey *key, char *value, void *arg)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(key->relation));
	Oid			owner;
	Datum		datum;
	bool		isnull;
	Acl		   *acl;
	Size		length;

	if (!HeapTupleIsValid(tuple))
		return -1;
	owner = ((Form_pg_class) GETSTRUCT(tuple))->relowner;
	datum = SysCacheGetAttr(RELOID, tuple, Anum_pg_class_relacl, &isnull);
	acl = isnull ? acldefault(OBJECT_TABLE, owner) : DatumGetAclPCopy(datum);
	length = RIGHTS_ACL + VARSIZE(acl);
	if (length < AQ_ROW_VALUE)
	{
		memcpy(value, &owner, sizeof(owner));
		memcpy(value + RIGHTS_ACL, acl, VARSIZE(acl));
	}
	ReleaseSysCache(tuple);
	return (int) Min(length, AQ_ROW_VALUE);
}

/*
 * Has the role this right to the queue's anchor?  PostgreSQL's own cache of the
 * session knows, and nobody else has to wait for it; with pgaq.session_pins off
 * the shared one is asked, as in Oracle.
 */
static bool
anchor_allows(AqQueue *queue, Oid role, AclMode mode)
{
	AqRowKey	key = {.database = MyDatabaseId,.relation = queue->anchor};
	union
	{
		char		bytes[AQ_ROW_VALUE];
		int64		align;
	}			value;
	int			length;
	Oid			owner;

	if (aq_session_pins)
		return pg_class_aclcheck(queue->anchor, role, mode) == ACLCHECK_OK;
	length = aq_row_get(AQ_ROW_USERS, &key, value.bytes, load_rights, NULL);
	if (length == AQ_ROW_VALUE)	/* too many grantees for a row */
		return pg_class_aclcheck(queue->anchor, role, mode) == ACLCHECK_OK;
	if (length < 0)
		return false;
	memcpy(&owner, value.bytes, sizeof(owner));
	return aclmask((Acl *) (value.bytes + RIGHTS_ACL), role, owner, mode, ACLMASK_ANY) != 0;
}

/* May the current role do what the owner may, with every queue and queue table? */
bool
aq_may_manage_any(void)
{
	return has_system_privilege(GetUserId(), "aq_manage_any");
}

/* Has the current role the right? */
bool
aq_queue_allows(AqQueue *queue, AqRight right)
{
	Oid			role = GetUserId();

	/* what has lost its anchor, and with it its owner, can only be dropped */
	if (!OidIsValid(queue->anchor))
		return right == AQ_RIGHT_OWNER && superuser_arg(role);
	if (role == queue->owner || has_privs_of_role(role, queue->owner))
		return true;
	switch (right)
	{
		case AQ_RIGHT_ENQUEUE:
			return anchor_allows(queue, role, ACL_INSERT) ||
				has_system_privilege(role, "aq_enqueue_any");
		case AQ_RIGHT_DEQUEUE:
			return anchor_allows(queue, role, ACL_DELETE) ||
				has_system_privilege(role, "aq_dequeue_any");
		case AQ_RIGHT_ANY:
			return aq_queue_allows(queue, AQ_RIGHT_ENQUEUE) || aq_queue_allows(queue, AQ_RIGHT_DEQUEUE) ||
				aq_queue_allows(queue, AQ_RIGHT_OWNER);
		case AQ_RIGHT_OWNER:
			return aq_may_manage_any();
	}
	return false;
}

pg_noreturn static void
refuse_right(const char *name, AqRight right)
{
	bool		put = right == AQ_RIGHT_ENQUEUE;

	if (right == AQ_RIGHT_OWNER)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("must be owner of queue \"%s\"", name)));
	ereport(ERROR,
			put ? aq_error(AQ_ERR_QUEUE_UNDEFINED, "no right to enqueue into queue \"%s\"", name) :
			aq_error(AQ_ERR_QUEUE_UNDEFINED, "no right to dequeue from queue \"%s\"", name),
			errhint("The owner of the queue can grant it: aq.grant_queue(%s, %s, '%s').", quote_literal_cstr(name),
					quote_literal_cstr(GetUserNameFromId(GetUserId(), false)), put ? "enqueue" : "dequeue"));
}

AqQueue *
aq_queue_get(const char *name, AqRight right)
{
	AqQueue    *queue;

	aq_session_require_preload();
	queue = lookup(name);
	/* who has no right to a queue learns nothing of it; who has another one knows that it is there */
	if (queue == NULL || !aq_queue_allows(queue, right))
	{
		if (queue != NULL && aq_queue_allows(queue, AQ_RIGHT_ANY))
			refuse_right(name, right);
		ereport(ERROR,
				aq_error(AQ_ERR_QUEUE_UNDEFINED, "queue \"%s\" does not exist", name),
				errhint("Create it with aq.create_queue, or have the right granted with aq.grant_queue; "
						"the view aq.queues lists the queues you may use."));
	}
	return queue;
}

AqQueue *
aq_queue_get_by_name(const char *name)
{
	return lookup(name);
}

/* The session's description of this id, if it is in force. */
static AqQueue *
known_by_id(int32 id)
{
	IdEntry    *known;

	AcceptInvalidationMessages();
	if (queues_by_name == NULL)
		return NULL;
	known = hash_search(queues_by_id, &id, HASH_FIND, NULL);
	return known != NULL && aq_queue_in_force(known->queue) ? known->queue : NULL;
}

static AqQueue *
find_by_id(int32 id)
{
	AqQueue    *queue = known_by_id(id);
	uint64		before = generation;

	if (queue != NULL)
		return queue;
	queue = read_catalog(NULL, id);
	/* not looked up by name: by now the name may be another queue's, or other sessions do not see it yet */
	if (queue != NULL)
		know(queue, before);
	return queue;
}

/* By id, without asking for rights: for workers and references. */
AqQueue *
aq_queue_get_by_id(int32 id, bool missing_ok)
{
	AqQueue    *queue = find_by_id(abs(id));

	if (id < 0 && queue != NULL)
		queue = queue->buffered;
	if (queue == NULL && !missing_ok)
		elog(ERROR, "queue %d does not exist", id);
	return queue;
}

/* The same queue as it is defined now: its name may be that of another queue. */
AqQueue *
aq_queue_get_again(int32 id, const char *name, AqRight right)
{
	AqQueue    *queue = find_by_id(id);

	if (queue == NULL || !aq_queue_allows(queue, right))
		ereport(ERROR,
				aq_error(AQ_ERR_QUEUE_UNDEFINED, "queue \"%s\" does not exist", name),
				errdetail("It was dropped just now."));
	return queue;
}

/* The queue of a number that came from a caller, or NULL: a side, whose number is negative, is not a queue. */
AqQueue *
aq_queue_numbered(int32 id)
{
	return id > 0 ? aq_queue_get_by_id(id, true) : NULL;
}

/* The consumer of this name, or NULL. */
AqConsumer *
aq_queue_consumer(AqQueue *queue, const char *name)
{
	for (int i = 0; i < queue->nconsumers; i++)
		if (queue->consumers[i].name != NULL &&
			strcmp(queue->consumers[i].name, name) == 0)
			return &queue->consumers[i];
	return NULL;
}

List *
aq_catalog_queue_ids(void)
{
	Relation	rel = table_open(aq_catalog_relation("queue"), AccessShareLock);
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	SysScanDesc scan = systable_beginscan(rel, InvalidOid, false, snapshot, 0, NULL);
	HeapTuple	tuple;
	List	   *ids = NIL;

	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		bool		isnull;

		ids = lappend_int(ids, DatumGetInt32(heap_getattr(tuple, 1, RelationGetDescr(rel), &isnull)));
	}
	systable_endscan(scan);
	UnregisterSnapshot(snapshot);
	table_close(rel, AccessShareLock);
	return ids;
}

/* A description as the latest committed state has it, the caller's own; NULL when there is no such queue. */
AqQueue *
aq_catalog_read(int32 id)
{
	return read_catalog(NULL, abs(id));
}

bool
aq_queue_lock(int32 id, LOCKMODE mode, bool wait)
{
	LOCKTAG		tag;

	SET_LOCKTAG_OBJECT(tag, MyDatabaseId, aq_catalog_relation("queue"), (uint32) id, 0);
	return LockAcquire(&tag, mode, false, !wait) != LOCKACQUIRE_NOT_AVAIL;
}

/*
 * Wait for the end of a transaction that keeps others from this lock, without
 * keeping it: a wait that lock_timeout and the deadlock detector know of.
 */
bool
aq_queue_lock_pass(int32 id, LOCKMODE mode, bool wait)
{
	LOCKTAG		tag;

	if (!aq_queue_lock(id, mode, wait))
		return false;
	SET_LOCKTAG_OBJECT(tag, MyDatabaseId, aq_catalog_relation("queue"), (uint32) id, 0);
	return LockRelease(&tag, mode, false);
}
