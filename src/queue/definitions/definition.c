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
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"

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
	while (OidIsValid(aq_schema_data_relation(psprintf("q%d", id))));
	return id;
}

/* Creates the view that has the queue's owner and privileges. */
static void
create_owner_view(int32 id, Oid payload_type, Oid owner)
{
	char	   *view = psprintf("q%d", id);

	aq_sql_define(psprintf("CREATE VIEW aq_data.%s AS SELECT NULL::payload_type AS payload WHERE false", view), payload_type);
	aq_sql_give(aq_schema_data_relation(view), owner);
}

/* --- names ------------------------------------------------------------------------------ */

/*
 * Is the name free?  Then it stays so for other sessions until the transaction
 * ends.  A name that is taken is not locked.
 */
bool
aq_definition_reserve_name(const char *name)
{
	if (aq_catalog_get_by_name(name) != NULL)
		return false;
	aq_queue_lock_name("queue", name);
	return aq_catalog_get_by_name(name) == NULL;
}

void
aq_definition_refuse_name(const char *name)
{
	AqQueue    *queue = aq_catalog_get_by_name(name);
	bool		made = queue != NULL && queue->rights_id != queue->id;

	ereport(ERROR, aq_error(AQ_ERR_QUEUE_EXISTS, "queue \"%s\" already exists", name),
			made ? errdetail("It is a default exception queue, made with the queue whose name it has.") : 0);
}

/* --- default exception queues ----------------------------------------------------------- */

/* A name for the default exception queue of the queue with this name, reserved. */
char *
aq_definition_exceptions_name(const char *name)
{
	char	   *suffix = "_exceptions";

	for (int i = 1;; i++)
	{
		int			room = AQ_MAX_NAME - 1 - (int) strlen(suffix);
		char	   *chosen = psprintf("%.*s%s", aq_clip_length(name, strlen(name), room), name, suffix);

		if (aq_definition_reserve_name(chosen))
			return chosen;
		suffix = psprintf("_exceptions%d", i);
	}
}

/* The name of the queue's default exception queue; NULL: it has none. */
char *
aq_definition_default_exceptions(int32 id)
{
	return aq_sql_text(psprintf("SELECT queue_name FROM aq_internal.queue WHERE rights_id = %d AND queue_id <> %d",
								id, id));
}

/* A default exception queue has no owner and no privileges of its own. */
void
aq_definition_refuse_rights(const AqQueue *queue)
{
	AqQueue    *source;

	if (queue->rights_id == queue->id)
		return;
	source = aq_catalog_get_by_id(queue->rights_id, false);
	ereport(ERROR,
			aq_error(AQ_ERR_EXCEPTION_RIGHTS, "queue \"%s\" has no owner and no privileges of its own", queue->name),
			errdetail("It is the default exception queue of queue \"%s\", and has the same owner and privileges.",
					  source->name));
}

/* --- creating --------------------------------------------------------------------------- */

/* rights_id: the queue whose owner view it uses. */
static void
insert_queue(int32 id, const AqQueueDefinition *d, int32 rights_id)
{
	AqQueueRow	row = d->row;
	const char *type = d->exception ? "exception" : d->non_persistent ? "non_persistent" : "normal";

	aq_queue_row_set(&row, AQ_QUEUE_ID, Int32GetDatum(id), false);
	aq_queue_row_set(&row, AQ_QUEUE_NAME, CStringGetTextDatum(d->name), false);
	aq_queue_row_set(&row, AQ_QUEUE_PAYLOAD_TYPE, ObjectIdGetDatum(d->payload_type), false);
	aq_queue_row_set(&row, AQ_QUEUE_MULTI, BoolGetDatum(d->multi), false);
	aq_queue_row_set(&row, AQ_QUEUE_SHARDS, Int16GetDatum(d->shards), false);
	aq_queue_row_set(&row, AQ_QUEUE_EXCEPTION_QUEUE, Int32GetDatum(d->exception_queue_id), d->exception_queue_id == 0);
	aq_queue_row_set(&row, AQ_QUEUE_ENQUEUE, BoolGetDatum(!d->exception), false);
	aq_queue_row_set(&row, AQ_QUEUE_DEQUEUE, BoolGetDatum(!d->exception || rights_id != id), false);
	aq_queue_row_set(&row, AQ_QUEUE_KEY, Int64GetDatum(random_key()), false);
	aq_queue_row_set(&row, AQ_QUEUE_STORE, CharGetDatum(d->queue_table_id ? AQ_STORE_CLASSIC : AQ_STORE_SHARDED), false);
	aq_queue_row_set(&row, AQ_QUEUE_TABLE, Int32GetDatum(d->queue_table_id), d->queue_table_id == 0);
	aq_queue_row_set(&row, AQ_QUEUE_TYPE, CStringGetTextDatum(type), false);
	aq_queue_row_set(&row, AQ_QUEUE_RIGHTS, Int32GetDatum(rights_id), false);
	aq_pending_set_ddl();		/* before the INSERT: see aq_restored_trigger */
	aq_queue_row_insert(&row);
	aq_pending_created(id);
	aq_catalog_changed();
}

void
aq_definition_create(const AqQueueDefinition *definition)
{
	AqQueueDefinition d = *definition;
	int32		id;

	if (!aq_definition_reserve_name(d.name))
		aq_definition_refuse_name(d.name);

	id = new_queue_id();
	if (d.default_exception)
		d.exception_queue_id = new_queue_id();
	insert_queue(id, &d, id);
	create_owner_view(id, d.payload_type, d.owner);
	if (d.temporary)
	{
		aq_temporary_enter_queue(id);
		aq_acl_change(aq_schema_data_relation(psprintf("q%d", id)), InvalidOid, ACL_ID_PUBLIC, ACL_TRUNCATE, true, false);
	}
	if (d.default_exception)
	{
		AqQueueDefinition exceptions = {.name = aq_definition_exceptions_name(d.name), .owner = d.owner,
			.payload_type = d.payload_type, .shards = 1, .exception = true};

		insert_queue(d.exception_queue_id, &exceptions, id);
	}
}

/* of other parts, in the order in which they have registered */
#define MAX_OTHERS 8
static const AqQueueRows *others[MAX_OTHERS];
static int	nothers;

void
aq_definition_add_rows(const AqQueueRows *rows)
{
	if (nothers == MAX_OTHERS)
		elog(FATAL, "too many parts with rows of queues");
	others[nothers++] = rows;
}

/*
 * The caller has locked the queue, and its store has dropped the messages.
 * own_view: it has its own owner view.
 */
static void
drop_definition(int32 id, bool own_view)
{
	if (own_view && OidIsValid(aq_schema_data_relation(psprintf("q%d", id))))
		aq_sql_change(psprintf("DROP VIEW aq_data.q%d", id), 0, NULL, NULL, NULL);
	aq_sql_change(psprintf("DELETE FROM aq_internal.message_table WHERE queue_id = %d", id), 0, NULL, NULL, NULL);
	aq_sql_change(psprintf("DELETE FROM aq_internal.subscriber WHERE queue_id = %d", id), 0, NULL, NULL, NULL);
	if (aq_version_has_keys())
		aq_sql_change(psprintf("DELETE FROM aq_internal.unique_key WHERE queue_id = %d", id), 0, NULL, NULL, NULL);
	aq_sql_change(psprintf("DELETE FROM aq_internal.consumer_grant WHERE queue_id = %d", id), 0, NULL, NULL, NULL);
	for (int i = 0; i < nothers; i++)
	{
		if (others[i]->table != NULL)
			aq_sql_change(psprintf("DELETE FROM aq_internal.%s WHERE queue_id = %d", others[i]->table, id), 0, NULL, NULL, NULL);
		if (others[i]->drop != NULL)
			others[i]->drop(id);
	}
	aq_temporary_forget_queue(id);
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
	List	   *commands = aq_sql_texts(psprintf("SELECT format('DROP TABLE %%s', coalesce(q, l)) %s AND (q IS NULL) <> (l IS NULL)", lost),
										0, NULL, NULL, NULL);
	ListCell   *lc;

	foreach(lc, commands)
		aq_sql_change(lfirst(lc), 0, NULL, NULL, NULL);
	aq_sql_change(psprintf("DELETE FROM aq_internal.message_table WHERE (queue_id, table_no) IN "
						   "(SELECT queue_id, table_no %s AND (q IS NULL OR l IS NULL))", lost), 0, NULL, NULL, NULL);
}

/* Sessions that wait for messages have locks of the tables for as long as they wait. */
static void
end_waits(AqQueue *queue)
{
	if (queue == NULL || aq_pins_lost_table(queue) != NULL)
		return;
	aq_pins_pin(queue);
	aq_waiters_end(queue->shm);
}

static void
drop(const char *name, bool force)
{
	AqQueue    *queue = aq_ddl_queue(name, AccessExclusiveLock);
	int32		id = queue->id;
	bool		own_view = queue->rights_id == queue->id;

	for (int i = 0; i < nothers && !force; i++)
		if (others[i]->check_drop != NULL)
			others[i]->check_drop(queue);
	aq_pins_pin_to_drop(queue, force);
	queue->store->drop(queue, force);
	aq_buffered_drop(name, force);
	drop_definition(id, own_view);
}

/*
 * Drops the queues.  With force, the waits of all end first: a wait for one may
 * have locks of another, its exception queue or one of the same queue table.
 */
void
aq_definition_drop(List *names, bool force)
{
	ListCell   *lc;

	foreach(lc, force ? names : NIL)
	{
		AqQueue    *queue = aq_ddl_queue(lfirst(lc), AccessExclusiveLock);

		if (queue->store->kind != AQ_STORE_CLASSIC)
			forget_lost_tables(queue->id);
		end_waits(queue->buffered);
		end_waits(queue);
	}
	foreach(lc, names)
		drop(lfirst(lc), force);
}

static void
reassign_column(const char *table, const char *column, Oid from, Oid to)
{
	(void) aq_sql_change(psprintf("UPDATE aq_internal.%1$s SET %2$s = %4$u::oid WHERE %2$s::oid = %3$u", table, column, from, to), 0, NULL, NULL, NULL);
}

/*
 * Rules and transformations run with the privileges of the role that has the
 * functions in them now; not of a superuser, because they may call functions of
 * anybody.
 */
static void
reassign_subscribers(Oid from, Oid to)
{
	List	   *queues = aq_sql_numbers(psprintf("SELECT DISTINCT queue_id FROM aq_internal.subscriber "
												 "WHERE %u IN (rule_role::oid, transformation_role::oid, owner::oid)", from));
	ListCell   *lc;

	reassign_column("subscriber", "owner", from, to);
	if (!superuser_arg(to) || superuser_arg(from))
	{
		reassign_column("subscriber", "rule_role", from, to);
		reassign_column("subscriber", "transformation_role", from, to);
	}
	else if (aq_sql_finds(psprintf("SELECT FROM aq_internal.subscriber WHERE %u IN (rule_role::oid, transformation_role::oid)", from)))
		ereport(WARNING,
				(errmsg("rules and transformations of subscribers still run with the privileges of role \"%s\"", GetUserNameFromId(from, false)),
				 errhint("Set them again with aq.alter_subscriber, as a role with the privileges that they need.")));
	foreach(lc, queues)
		aq_pending_changed(lfirst_int(lc));
	if (queues != NIL)
		aq_catalog_changed();
}

/* REASSIGN OWNED: what works with a role's privileges goes along, as its queues do. */
static void
reassign(Oid from, Oid to)
{
	reassign_subscribers(from, to);
	for (int i = 0; i < nothers; i++)
		if (others[i]->role != NULL)
			reassign_column(others[i]->table, others[i]->role, from, to);
}

void
aq_definition_init(void)
{
	aq_utility_on_reassigned(reassign);
	aq_utility_on_drops_pgaq(aq_waiters_end_all);
}
