/*-------------------------------------------------------------------------
 *
 * catalog.c
 *	  Descriptions of queues, read from the catalog tables of schema aq.
 *
 * Every session keeps the descriptions that it has used.  A session that
 * changes the catalog invalidates the relcache entry of aq_internal.queue at
 * its commit; PostgreSQL sends this to all sessions, where this file
 * increments a generation, and descriptions of older generations are checked at
 * their next use.  So definitions are transactional.
 *
 * There is one generation for all queues, and temporary queues come and go all
 * the time.  So a description of an older generation is not read again if the
 * queue's entry in shared memory shows that only others have changed: a commit
 * writes the definition clock into the entries of the queues that it has changed
 * before it sends its invalidations (announce.c).  A description whose reading
 * began before this time is read again.  Rules that did not change are taken over
 * from the description that it replaces.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/catalog/catalog_private.h"

#include "access/genam.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

typedef struct NameEntry
{
	char		name[AQ_MAX_NAME];	/* hash key */
	AqQueue    *queue;			/* NULL: not read */
} NameEntry;

typedef struct IdEntry
{
	int32		id;				/* hash key */
	AqQueue    *queue;			/* the latest description read for this id */
} IdEntry;

/* a session may keep this many descriptions, also outdated ones */
#define FEW 16

static HTAB *queues_by_name;
static HTAB *queues_by_id;
static uint64 generation = 1;
static Oid	queue_relation;		/* aq_internal.queue, whose invalidation increments the generation */

/*
 * --- relations of the extension
 * -----------------------------------------------------
 */

static void
on_relcache_invalidation(Datum arg, Oid relation)
{
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

/* Makes every description be read again at its next use. */
void
aq_catalog_stale(void)
{
	generation++;
}

void
aq_catalog_changed(void)
{
	CommandCounterIncrement();
	CacheInvalidateRelcacheByRelid(aq_schema_relation("queue"));
	aq_row_relation_changed(aq_schema_relation("queue"));
	aq_row_count_modification(AQ_ROW_OBJECTS);
	generation++;				/* this session sees the change at once */
	aq_pending_set_ddl();
}

/*
 * Part "node" has changed which shards of the queue are dequeued on this node:
 * sessions read the description again, and waiting ones check again.
 */
void
aq_catalog_units_changed(int32 id)
{
	aq_pending_altered(id);
	aq_catalog_changed();
}

/*
 * Reads the current description from the catalog, for the caller's own use;
 * NULL if there is no such queue.
 */
static AqQueue *
read_catalog(const char *name, int32 id)
{
	Relation	rel = aq_schema_open("queue", AccessShareLock);
	AqQueue    *queue;

	queue_relation = RelationGetRelid(rel);
	queue = aq_description_read(rel, name, id);
	table_close(rel, AccessShareLock);
	return queue;
}

/* --- lookup --------------------------------------------------------------------------- */

/* The entry looked up last, which is mostly looked up again. */
static NameEntry *latest;

/*
 * Replaced descriptions that are kept because an outer caller may use them
 * while users' code runs; see aq_catalog_retain in queue.h.
 */
static AqQueue *retired;
static int	held;

void
aq_catalog_retain(void)
{
	held++;
}

void
aq_catalog_release(void)
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
	HASHCTL		names = {.keysize = AQ_MAX_NAME, .entrysize = sizeof(NameEntry)};
	HASHCTL		ids = {.keysize = sizeof(int32), .entrysize = sizeof(IdEntry)};

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

/* Makes this the description of its name and its id. */
static void
know(AqQueue *queue, uint64 as_of)
{
	NameEntry  *entry = name_entry(queue->name);
	IdEntry    *known = hash_search(queues_by_id, &queue->id, HASH_FIND, NULL);

	/* not while an outer caller may be evaluating them */
	if (known != NULL && held == 0)
		aq_description_adopt_rules(queue, known->queue);
	if (entry->queue != NULL)
		discard(entry->queue);
	entry->queue = NULL;
	known = hash_search(queues_by_id, &queue->id, HASH_ENTER, NULL);
	known->queue = entry->queue = queue;
	queue->generation = as_of;
}

/* Loads a row of dc_objects: the queue's id. */
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
	scan = systable_beginscan(rel, aq_schema_relation("queue_queue_name_key"), true, snapshot, 1, &scankey);
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

/* The id of the queue with this name; 0 if it does not exist. */
static int32
id_of_name(const char *name)
{
	AqRowKey	key = {.database = MyDatabaseId, .relation = aq_schema_relation("queue")};
	char		value[AQ_ROW_VALUE];
	int32		id = 0;

	strlcpy(key.name, name, sizeof(key.name));
	if (aq_row_get(AQ_ROW_OBJECTS, &key, value, load_object, NULL) > 0)
		memcpy(&id, value, sizeof(id));
	return id;
}

/* Has a committed change made the description stale since its first use? */
static bool
is_stale(const AqQueue *queue)
{
	return queue->object != NULL && queue->object->serial == queue->serial &&
		queue->object->version != queue->version;
}

/*
 * A queue's owner is that of its view, which can change without a change of the
 * queue, for example by REASSIGN OWNED.
 */
static bool
has_owner(const AqQueue *queue)
{
	HeapTuple	cls = SearchSysCache1(RELOID, ObjectIdGetDatum(queue->owner_view));
	bool		same;

	if (!HeapTupleIsValid(cls))
		return false;
	same = ((Form_pg_class) GETSTRUCT(cls))->relowner == queue->owner;
	ReleaseSysCache(cls);
	return same;
}

/*
 * Were only definitions of other queues changed since the description was read?
 * The transaction's own changes are not in shared memory yet: while it has some,
 * and for what it has read meanwhile, this is not known.  Nor is it if the
 * session has not used the queue, or the queue left shared memory since: then the
 * entry can be another one's.
 */
static bool
is_unchanged(const AqQueue *queue)
{
	uint64		changed;

	if (queue->generation == 0 || queue->uncommitted || aq_pending_has_ddl() ||
		queue->shm == NULL || queue->object == NULL || queue->object->serial != queue->serial)
		return false;
	changed = pg_atomic_read_u64(&queue->shm->last_change);
	pg_read_barrier();
	return changed != 0 && queue->object->serial == queue->serial && queue->definition >= changed &&
		queue->catalog == aq_schema_relation("queue") && has_owner(queue);
}

/*
 * Is the description current, according to the invalidations that the session
 * has received?
 */
bool
aq_catalog_is_current(AqQueue *queue)
{
	uint64		now = generation;	/* the check can receive more */

	if (is_stale(queue))
		return false;
	if (queue->generation != now && is_unchanged(queue))
		queue->generation = now;
	return queue->generation == now;
}

/*
 * Forgets the description of this id.  Called between transactions, when no
 * caller uses it; does not raise an error.
 */
void
aq_catalog_forget(int32 id)
{
	IdEntry    *known = queues_by_id != NULL ? hash_search(queues_by_id, &id, HASH_FIND, NULL) : NULL;
	NameEntry  *entry = known != NULL ? hash_search(queues_by_name, known->queue->name, HASH_FIND, NULL) : NULL;

	if (entry != NULL && entry->queue == known->queue)
		forget_entry(entry);
}

/* Is the description outdated, and its queue no longer in shared memory, or was it never used? */
static bool
is_left_over(const AqQueue *queue)
{
	return queue->generation != generation &&
		(queue->object == NULL || queue->object->serial != queue->serial || queue->object->state == AQ_OBJECT_DROPPED);
}

/*
 * Forgets descriptions that would be read again at their next use: those of
 * dropped queues have none.  Called between transactions; so that its
 * cost does not depend on the number of queues that the session knows, only when
 * that has doubled.
 */
void
aq_catalog_tidy(void)
{
	static long forget_at = FEW;
	HASH_SEQ_STATUS all;
	NameEntry  *entry;

	if (queues_by_name == NULL || held > 0 || hash_get_num_entries(queues_by_name) < forget_at)
		return;
	hash_seq_init(&all, queues_by_name);
	while ((entry = hash_seq_search(&all)) != NULL)
		if (entry->queue == NULL || is_left_over(entry->queue))
			forget_entry(entry);
	forget_at = Max(2 * hash_get_num_entries(queues_by_name), FEW);
}

/* The current description, or NULL. */
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
	if (entry->queue != NULL && aq_catalog_is_current(entry->queue) &&
		(aq_parameters_session_pins || id_of_name(name) == entry->queue->id))
		return entry->queue;

	/*
	 * keep no entries for names without a queue, because names are looked up
	 * in several schemas
	 */
	if (entry->queue == NULL && id_of_name(name) == 0)
	{
		forget_entry(entry);
		return NULL;
	}
	before = generation;		/* so that a change during the read makes it stale */
	queue = read_catalog(name, 0);
	if (queue != NULL)
		know(queue, before);
	else
		forget_entry(name_entry(name));
	return queue;
}

/* The user's name as an argument of aq.grant_queue(). */
static char *
quoted_user(void)
{
	return quote_literal_cstr(GetUserNameFromId(GetUserId(), false));
}

pg_noreturn static void
refuse_right(AqQueue *queue, AqRight right)
{
	const char *name = pstrdup(queue->name);

	/* a default exception queue has the privileges of its queue */
	const char *granted = queue->rights_id == queue->id ? name : aq_catalog_get_by_id(queue->rights_id, false)->name;
	const char *privilege = right == AQ_RIGHT_ENQUEUE ? "enqueue" : right == AQ_RIGHT_SUBSCRIBE ? "subscribe" : "dequeue";

	if (right == AQ_RIGHT_OWNER)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("must be owner of queue \"%s\"", name)));
	ereport(ERROR,
			aq_error(AQ_ERR_QUEUE_UNDEFINED, "permission denied for queue \"%s\"", name),
			aq_error_oracle ? 0 : errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			aq_error_oracle && right != AQ_RIGHT_SUBSCRIBE ?
			errhint("The owner of the queue can grant it with dbms_aqadm.grant_queue_privilege.") :
			errhint("The owner of the queue can grant it: aq.grant_queue(%s, %s, '%s').", quote_literal_cstr(granted),
					quoted_user(), privilege));
}

/* For a role that can no longer dequeue; does not reveal whether the queue exists. */
int
aq_catalog_hint_dequeue(const char *name)
{
	return errhint("Queue \"%s\" does not exist, or the DEQUEUE privilege on it was revoked. "
				   "The owner of the queue can grant it: aq.grant_queue(%s, %s, 'dequeue').",
				   name, quote_literal_cstr(name), quoted_user());
}

void
aq_catalog_refuse_consumer(AqQueue *queue, const char *consumer)
{
	if (consumer == NULL || !queue->multi)
		refuse_right(queue, AQ_RIGHT_DEQUEUE);
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("permission denied for consumer \"%s\" of queue \"%s\"", aq_error_clip(consumer), queue->name),
			 aq_error_hint(psprintf("The owner of the queue can grant it: aq.grant_consumer(%s, %s, %s).", quote_literal_cstr(queue->name),
									quote_literal_cstr(aq_error_clip(consumer)), quoted_user()),
						   "The owner of the queue can grant the DEQUEUE privilege with dbms_aqadm.grant_queue_privilege.")));
}

AqQueue *
aq_catalog_get(const char *name, AqRight right)
{
	AqQueue    *queue;

	aq_session_require_preload();
	queue = lookup(name);
	/*
	 * to a role without privileges, the queue does not exist; a role with
	 * another privilege may know that it exists
	 */
	if (queue == NULL || !aq_privilege_allows(queue, right))
	{
		if (queue != NULL && aq_privilege_allows(queue, AQ_RIGHT_SEE))
			refuse_right(queue, right);
		ereport(ERROR,
				aq_error(AQ_ERR_QUEUE_UNDEFINED, "queue \"%s\" does not exist", name),
				aq_error_hint("Create it with aq.create_queue, or ask its owner for a privilege "
							  "(aq.grant_queue). The view aq.queues lists the queues that you can use.",
							  "Create it with dbms_aqadm.create_queue, or ask its owner for a privilege "
							  "(dbms_aqadm.grant_queue_privilege). The view sys.all_queues lists the queues that you can use."));
	}
	return queue;
}

/*
 * The queue, for a role that may dequeue for the consumer, or, if the queue is
 * non-persistent, be notified for it: by the privilege on the queue, or by a right
 * on the consumer.  known: the id of the queue that the call has found under this
 * name before, or 0.  A role that has lost its right to that queue since then is
 * told so, not that the queue does not exist.
 */
AqQueue *
aq_catalog_get_to_notify(const char *name, const char *consumer, int32 known)
{
	AqQueue    *queue;

	aq_session_require_preload();
	queue = lookup(name);
	if (queue != NULL && aq_privilege_allows(queue, AQ_RIGHT_DEQUEUE))
		return queue;
	if (queue == NULL || queue->id != known)
		queue = aq_catalog_get(name, AQ_RIGHT_CONSUMER);
	/* where a name is missing, its own error says so */
	if ((consumer == NULL && queue->multi) || aq_privilege_consumes(queue, consumer))
		return queue;
	aq_catalog_refuse_consumer(queue, consumer);
}

/* The same for a dequeue. */
AqQueue *
aq_catalog_get_for(const char *name, const char *consumer, int32 known)
{
	AqQueue    *queue = aq_catalog_get_to_notify(name, consumer, known);

	aq_non_persistent_refuse_dequeue(queue);
	return queue;
}

AqQueue *
aq_catalog_get_by_name(const char *name)
{
	return lookup(name);
}

/*
 * The queue's name by the session's description, which may be old; NULL if there
 * is no description.  Reads and allocates nothing.
 */
const char *
aq_catalog_known_name(int32 id)
{
	IdEntry    *known = queues_by_id != NULL ? hash_search(queues_by_id, &id, HASH_FIND, NULL) : NULL;

	return known != NULL ? known->queue->name : NULL;
}

/*
 * A row of a table of messages has a number that no row of ours has, as a superuser
 * can write it.  queue: its name; NULL: the table is a sharded queue's, q<id>_<n> or
 * l<id>_<n>.
 */
void
aq_catalog_refuse_row(const char *queue, Oid table, const char *column, int64 value)
{
	const char *name = get_rel_name(table);
	bool		sharded = queue == NULL;

	if (sharded && name != NULL)
		queue = aq_catalog_known_name(atoi(name + 1));
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("table \"aq_data.%s\" of queue \"%s\" is damaged: a row has %s " INT64_FORMAT,
					name != NULL ? name : "?", queue != NULL ? queue : "?", column, value),
			 sharded ? errhint("Restore it from a backup, or drop the queue with force => true.")
			 : errhint("Delete the row, or restore the table from a backup.")));
}

/* The session's description of this id, if it is current. */
static AqQueue *
known_by_id(int32 id)
{
	IdEntry    *known;

	AcceptInvalidationMessages();
	if (queues_by_name == NULL)
		return NULL;
	known = hash_search(queues_by_id, &id, HASH_FIND, NULL);
	return known != NULL && aq_catalog_is_current(known->queue) ? known->queue : NULL;
}

static AqQueue *
find_by_id(int32 id)
{
	AqQueue    *queue = known_by_id(id);
	uint64		before = generation;

	if (queue != NULL)
		return queue;
	queue = read_catalog(NULL, id);
	/*
	 * do not look it up by name: the name may now belong to another queue, or
	 * not be visible to other sessions yet
	 */
	if (queue != NULL)
		know(queue, before);
	return queue;
}

/* By id, without privilege checks: for workers and references. */
AqQueue *
aq_catalog_get_by_id(int32 id, bool missing_ok)
{
	AqQueue    *queue = find_by_id(abs(id));

	if (id < 0 && queue != NULL)
		queue = queue->buffered;
	if (queue == NULL && !missing_ok)
		elog(ERROR, "queue %d does not exist", id);
	return queue;
}

/*
 * The current description of the same queue, because its name may now belong
 * to another one.
 */
AqQueue *
aq_catalog_get_again(int32 id, const char *name, AqRight right)
{
	AqQueue    *queue = find_by_id(id);

	if (queue == NULL)
		ereport(ERROR,
				aq_error(AQ_ERR_QUEUE_UNDEFINED, "queue \"%s\" does not exist", name),
				errdetail("It has just been dropped."));
	if (!aq_privilege_allows(queue, right))
		refuse_right(queue, right);
	return queue;
}

/*
 * The queue with an id passed by a user, or NULL.  Ids of buffered queues,
 * which are negative, are not accepted.
 */
AqQueue *
aq_catalog_get_numbered(int32 id)
{
	return id > 0 ? aq_catalog_get_by_id(id, true) : NULL;
}

/* The consumer with this name, or NULL. */
AqConsumer *
aq_catalog_consumer(AqQueue *queue, const char *name)
{
	for (int i = 0; i < queue->nconsumers; i++)
		if (queue->consumers[i].name != NULL &&
			strcmp(queue->consumers[i].name, name) == 0)
			return &queue->consumers[i];
	return NULL;
}

/*
 * An integer column of one of our tables, as its latest committed state has it: of
 * the rows whose primary key begins with this integer, or (NULL) of all.
 */
List *
aq_catalog_numbers(const char *table, AttrNumber column, const int32 *first)
{
	Relation	rel = aq_schema_open(table, AccessShareLock);
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	List	   *numbers = NIL;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	if (first != NULL)
		ScanKeyInit(&key, 1, BTEqualStrategyNumber, F_INT4EQ, Int32GetDatum(*first));
	scan = systable_beginscan(rel, first != NULL ? aq_primary_key(rel) : InvalidOid, first != NULL, snapshot,
							  first != NULL ? 1 : 0, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		bool		isnull;

		numbers = lappend_int(numbers, DatumGetInt32(heap_getattr(tuple, column, RelationGetDescr(rel), &isnull)));
	}
	systable_endscan(scan);
	UnregisterSnapshot(snapshot);
	table_close(rel, AccessShareLock);
	return numbers;
}

List *
aq_catalog_queue_ids(void)
{
	return aq_catalog_numbers("queue", 1, NULL);
}

/*
 * The description according to the latest committed state, for the caller's
 * own use; NULL if there is no such queue.
 */
AqQueue *
aq_catalog_read(int32 id)
{
	return read_catalog(NULL, abs(id));
}

/*
 * named: the exception queue named by the message, or 0.  One that was dropped
 * or is not suitable is ignored.
 */
AqQueue *
aq_catalog_exception_queue(AqQueue *queue, int32 named)
{
	AqQueue    *target = NULL;

	if (named != 0)
		target = aq_catalog_get_by_id(named, true);
	if (target == NULL && queue->exception_queue_id != 0)
		target = aq_catalog_get_by_id(queue->exception_queue_id, true);
	if (target != NULL && (target->multi || target->payload_type != queue->payload_type))
		target = NULL;
	return target;
}

/*
 * The queue for messages of this delivery mode: itself, or its buffered queue;
 * NULL if that does not exist.
 */
AqQueue *
aq_catalog_for_delivery(AqQueue *queue, int delivery)
{
	return delivery == AQ_BUFFERED ? queue->buffered : queue;
}
