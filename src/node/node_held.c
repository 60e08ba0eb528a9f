/*-------------------------------------------------------------------------
 *
 * node_held.c
 *	  Units of other nodes that this one holds: their rows.
 *
 * A row of aq_internal.node_held begins with the first messages of a unit, in the
 * same transaction, and ends when the origin has said that the unit is its own
 * again; then what is left of the messages here is dropped.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "node/node_private.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/lock.h"
#include "utils/builtins.h"

#define HELD "SELECT queue_id, shard, consumer_number, returns, epoch FROM aq_internal.node_held "

static AqNodeHeld
held_in_row(uint64 row)
{
	return (AqNodeHeld) {
		.queue_id = (int32) aq_node_rows_int(row, 1),
		.shard = (int) aq_node_rows_int(row, 2),
		.consumer = aq_node_rows_int(row, 3),
		.returns = aq_node_rows_bool(row, 4),
		.epoch = aq_node_rows_int(row, 5)
	};
}

/* Those of an origin, in the current memory context. */
List *
aq_node_held_list(const char *origin)
{
	static AqStatement list = {.command = HELD "WHERE origin = $1::uuid ORDER BY queue_id, shard", .nargs = 1, .types = {TEXTOID}};
	Datum		values[] = {CStringGetTextDatum(origin)};
	MemoryContext context = CurrentMemoryContext;
	List	   *all = NIL;

	(void) aq_sql_run_kept(&list, values);
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		MemoryContext old = MemoryContextSwitchTo(context);
		AqNodeHeld *held = palloc(sizeof(AqNodeHeld));

		*held = held_in_row(i);
		all = lappend(all, held);
		MemoryContextSwitchTo(old);
	}
	SPI_finish();
	return all;
}

bool
aq_node_held_find(const char *origin, int64 epoch, AqNodeHeld *held)
{
	static AqStatement find = {.command = HELD "WHERE origin = $1::uuid AND epoch = $2", .nargs = 2, .types = {TEXTOID, INT8OID}};
	Datum		values[] = {CStringGetTextDatum(origin), Int64GetDatum(epoch)};
	bool		found = aq_sql_run_kept(&find, values) > 0;

	if (found)
		*held = held_in_row(0);
	SPI_finish();
	return found;
}

/*
 * The unit is to go back: no session begins to take its messages.  False: it is
 * not held.  wait: else nothing happens while another transaction has the lock.
 * The row is visible before sessions read the description again; the lock keeps
 * the unit from going back in between.
 */
bool
aq_node_held_return(const char *origin, int64 epoch, bool wait)
{
	AqNodeHeld	held;

	if (!aq_node_held_find(origin, epoch, &held))
		return false;
	if (held.returns || !aq_node_unit_lock(held.queue_id, wait))
		return true;
	(void) aq_sql_change(psprintf("UPDATE aq_internal.node_held SET returns = true WHERE origin = '%s' AND epoch = " INT64_FORMAT,
								  origin, epoch), 0, NULL, NULL, NULL);
	aq_catalog_units_changed(held.queue_id);
	aq_process_commit_safely(); /* after a crash, it is still to go back */
	return true;
}

/* Locks out other requests of the node with this number.  False: the transaction already had the lock. */
bool
aq_node_held_lock(int32 number)
{
	LOCKTAG		tag;

	SET_LOCKTAG_OBJECT(tag, MyDatabaseId, aq_schema_relation("node_held"), (uint32) number, 0);
	return LockAcquire(&tag, ExclusiveLock, false, false) == LOCKACQUIRE_OK;
}

/* A shard for another node's messages that has none; -1: all have some. */
static int
free_shard(AqQueue *queue)
{
	bool		used[AQ_ALL_SHARDS] = {false};

	aq_sql_run(psprintf("SELECT shard FROM aq_internal.node_held WHERE queue_id = %d", queue->id), 0, NULL, NULL, NULL, true);
	for (uint64 i = 0; i < SPI_processed; i++)
		used[aq_node_rows_int(i, 1)] = true;
	SPI_finish();
	for (int shard = AQ_MAX_SHARDS; shard < AQ_ALL_SHARDS; shard++)
		if (!used[shard] && queue->store->units->is_empty(queue, shard))
			return shard;
	return -1;
}

/*
 * A unit begins, with its first messages.  False: an earlier grant of it has not
 * ended here; it is over, as there is this one, so it goes back now.  The queue is
 * pinned, and the caller has the lock of the origin.
 */
bool
aq_node_held_begin(AqQueue *queue, const char *consumer, const char *origin, int64 epoch, int origin_shard, AqNodeHeld *held)
{
	AqConsumer *found = consumer != NULL ? aq_catalog_consumer(queue, consumer) : NULL;
	int64		number = found != NULL ? found->number : 0;
	char	   *before = aq_sql_text(psprintf("SELECT epoch FROM aq_internal.node_held WHERE queue_id = %d AND origin = '%s' AND "
											  "origin_shard = %d AND consumer_number = " INT64_FORMAT, queue->id, origin, origin_shard, number));
	int			shard;

	if (before != NULL)
	{
		(void) aq_node_held_return(origin, strtoi64(before, NULL, 10), true);
		return false;
	}
	/* two origins may look for one at the same time */
	if (!aq_node_unit_lock(queue->id, true))
		elog(ERROR, "could not lock the units of queue %d", queue->id);
	shard = free_shard(queue);
	if (shard < 0)
		ereport(ERROR,
				aq_error(AQ_ERR_LIMIT_REACHED, "queue \"%s\" holds messages of too many shards of other nodes", queue->name),
				errdetail("The limit is %d, counting each consumer.", AQ_ALL_SHARDS - AQ_MAX_SHARDS),
				errhint("Create the queue with fewer shards."));
	(void) aq_sql_change(psprintf("INSERT INTO aq_internal.node_held (queue_id, shard, consumer_number, origin, epoch, origin_shard) "
								  "VALUES (%d, %d, " INT64_FORMAT ", '%s', " INT64_FORMAT ", %d)",
								  queue->id, shard, number, origin, epoch, origin_shard), 0, NULL, NULL, NULL);
	*held = (AqNodeHeld) {.queue_id = queue->id, .shard = shard, .consumer = number, .epoch = epoch};
	aq_catalog_units_changed(queue->id);	/* sessions dequeue from the shard from now on */
	return true;
}

/*
 * The origin is gone for good: messages of the unit stay here, as this node's,
 * which the row names as the origin until there are none.  Raises an error if a user has locked a table.
 */
void
aq_node_held_adopt(const AqNodeHeld *held, const char *origin)
{
	AqQueue    *queue = aq_catalog_get_by_id(held->queue_id, true);

	if (queue == NULL)
	{
		/* it was dropped */
		(void) aq_sql_change(psprintf("DELETE FROM aq_internal.node_held WHERE origin = '%s' AND epoch = " INT64_FORMAT, origin, held->epoch), 0, NULL, NULL, NULL);
		return;
	}
	aq_pins_pin(queue);
	if (!queue->store->units->adopt(queue, held->shard))
		ereport(ERROR,
				(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
				 errmsg("a table of queue \"%s\" is locked", queue->name),
				 errhint("Try again.")));
	(void) aq_sql_change(psprintf("UPDATE aq_internal.node_held SET origin = i.node_id, epoch = nextval('aq_internal.node_epoch_seq'), "
								  "origin_shard = shard, returns = false FROM aq_internal.node_identity i WHERE origin = '%s' AND epoch = " INT64_FORMAT,
								  origin, held->epoch), 0, NULL, NULL, NULL);
	aq_catalog_units_changed(held->queue_id);
}

/* The unit is the origin's again.  False: a user has locked a table, try again. */
bool
aq_node_held_end(const AqNodeHeld *held, const char *origin)
{
	AqQueue    *queue = aq_catalog_get_by_id(held->queue_id, true);

	if (!aq_node_unit_lock(held->queue_id, false))
		return false;
	if (queue != NULL)
	{
		aq_pins_pin(queue);
		if (!queue->store->units->forget(queue, held->shard))
			return false;
	}
	(void) aq_sql_change(psprintf("DELETE FROM aq_internal.node_held WHERE origin = '%s' AND epoch = " INT64_FORMAT,
								  origin, held->epoch), 0, NULL, NULL, NULL);
	if (queue != NULL)
		aq_catalog_units_changed(held->queue_id);
	return true;
}

/*
 * What is left in shards without a row is not this node's: it was restored from a
 * dump, for example.  And rows of messages that were adopted end with these.
 * False: not complete, a user has locked a table.
 */
bool
aq_node_held_clean(int32 queue_id)
{
	AqQueue    *queue = aq_catalog_get_by_id(queue_id, true);
	bool		used[AQ_ALL_SHARDS] = {false};
	bool		adopted[AQ_ALL_SHARDS] = {false};
	bool		complete = true;

	if (queue == NULL || queue->store->units == NULL)
		return true;
	aq_pins_pin(queue);
	aq_sql_run(psprintf("SELECT shard, EXISTS (SELECT FROM aq_internal.node_identity i WHERE i.node_id = h.origin) "
						"FROM aq_internal.node_held h WHERE queue_id = %d", queue_id), 0, NULL, NULL, NULL, true);
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		used[aq_node_rows_int(i, 1)] = true;
		adopted[aq_node_rows_int(i, 1)] = aq_node_rows_bool(i, 2);
	}
	SPI_finish();
	for (int shard = AQ_MAX_SHARDS; shard < AQ_ALL_SHARDS; shard++)
	{
		if (used[shard] ? !adopted[shard] || !queue->store->units->is_empty(queue, shard) : queue->store->units->is_empty(queue, shard))
			continue;
		if (!used[shard])
			complete &= queue->store->units->forget(queue, shard);
		else
			(void) aq_sql_change(psprintf("DELETE FROM aq_internal.node_held WHERE queue_id = %d AND shard = %d", queue_id, shard), 0, NULL, NULL, NULL);
	}
	return complete;
}
