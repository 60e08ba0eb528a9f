/*-------------------------------------------------------------------------
 *
 * queue_lock.c
 *	  Heavyweight locks of a queue, and of its tables.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/catalog/catalog_private.h"

#include "common/hashfn.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "storage/lock.h"

#define IN_USE		0
#define DROPPING	5

static LOCKTAG
queue_tag(int32 id, uint16 what)
{
	LOCKTAG		tag;

	SET_LOCKTAG_OBJECT(tag, MyDatabaseId, aq_schema_relation("queue"), (uint32) id, what);
	return tag;
}

bool
aq_queue_lock(int32 id, LOCKMODE mode, bool wait)
{
	LOCKTAG		tag = queue_tag(id, IN_USE);

	return LockAcquire(&tag, mode, false, !wait) != LOCKACQUIRE_NOT_AVAIL;
}

/*
 * Waits until the lock can be acquired, without keeping it, so that
 * lock_timeout and the deadlock detector work.
 */
bool
aq_queue_lock_pass(int32 id, LOCKMODE mode, bool wait)
{
	LOCKTAG		tag = queue_tag(id, IN_USE);

	return aq_queue_lock(id, mode, wait) && LockRelease(&tag, mode, false);
}

/* Until the end of the transaction, sessions must not wait for the queue, 0: for any: see aq_waiters_end. */
void
aq_queue_lock_dropping(int32 id)
{
	LOCKTAG		tag = queue_tag(id, DROPPING);

	(void) LockAcquire(&tag, ExclusiveLock, false, false);
}

/*
 * Does another session drop the queue, or all?  If not, clears the mark, which a
 * drop sets behind its lock.
 */
bool
aq_queue_lock_is_dropping(int32 id, pg_atomic_uint32 *mark)
{
	LOCKTAG		tag = queue_tag(id, DROPPING);
	bool		dropping = LockAcquire(&tag, ShareLock, false, true) == LOCKACQUIRE_NOT_AVAIL;

	if (dropping)
		return true;
	if (id != 0)
		dropping = aq_queue_lock_is_dropping(0, mark);
	else
		pg_atomic_write_u32(mark, 0);
	(void) LockRelease(&tag, ShareLock, false);
	return dropping;
}

/*
 * The lock of a producer, which serializes the transactions that enqueue for
 * it.  A prepared transaction keeps the lock; it is released after the
 * transaction's messages have become ready.  The tag has no hash of the queue,
 * nor of what distinguishes pgaq's own producers from named ones: names with the
 * same hash are easily found.  It is of a type that nothing else uses, because an
 * object's tag has too few bits.  Unique keys have such locks, too, with numbers above 0.
 */
bool
aq_queue_lock_producer(int32 id, int64 producer, bool wait)
{
	LOCKTAG		tag;

	SET_LOCKTAG_OBJECT(tag, MyDatabaseId, (uint32) id, (uint32) producer, (uint16) ((uint64) producer >> 48));
	tag.locktag_type = LOCKTAG_USERLOCK;
	return LockAcquire(&tag, ExclusiveLock, false, !wait) != LOCKACQUIRE_NOT_AVAIL;
}

static LOCKTAG
name_tag(const char *table, const char *name)
{
	LOCKTAG		tag;

	SET_LOCKTAG_OBJECT(tag, MyDatabaseId, aq_schema_relation(table), hash_bytes((const unsigned char *) name, strlen(name)), 3);
	return tag;
}

/*
 * The lock of a name for which the caller is about to insert a row, until the end of
 * the transaction.  table: the table of aq_internal in which the name is unique.
 * Another session that inserts the same name waits, and then finds it taken, or free.
 * Sessions with names of the same hash also wait for each other.
 */
void
aq_queue_lock_name(const char *table, const char *name)
{
	LOCKTAG		tag = name_tag(table, name);

	(void) LockAcquire(&tag, ExclusiveLock, false, false);
}

/*
 * Inserts the row of a name by an INSERT ... ON CONFLICT DO NOTHING; returns false if
 * the name is taken.  The lock of the name comes before the snapshot of the command,
 * which fails if a row that it cannot see is in the way.
 */
bool
aq_queue_lock_insert(const char *table, const char *name, const char *command, int nargs, Oid *types, Datum *values, const char *nulls)
{
	LOCKTAG		tag = name_tag(table, name);

	aq_queue_lock_name(table, name);
	if (aq_sql_change(command, nargs, types, values, nulls) > 0)
		return true;
	(void) LockRelease(&tag, ExclusiveLock, false);
	return false;
}

/* aq_internal.lock_name(table_name, name) */
PG_FUNCTION_INFO_V1(aq_queue_lock_name_sql);
Datum
aq_queue_lock_name_sql(PG_FUNCTION_ARGS)
{
	aq_queue_lock_name(aq_args_name(fcinfo, 0, "table_name"), aq_args_name(fcinfo, 1, "name"));
	PG_RETURN_VOID();
}

/*
 * The lock of the numbers of a sharded queue's partitions and receipts:
 * RowExclusiveLock to use a new one, AccessExclusiveLock to have the queue's
 * tables alone, so that no session opens another partition.  A queue has it in
 * common with its default exception queue, so that a drop takes one for both.
 */
bool
aq_queue_lock_numbers(const AqQueue *queue, LOCKMODE mode, bool wait)
{
	LOCKTAG		tag;

	SET_LOCKTAG_OBJECT(tag, MyDatabaseId, aq_schema_relation("queue"), (uint32) queue->rights_id, 4);
	return LockAcquire(&tag, mode, false, !wait) != LOCKACQUIRE_NOT_AVAIL;
}

/*
 * Can the queue's tables be read (AccessShareLock) or written
 * (RowExclusiveLock) without waiting for a user that has locked them?  Called
 * in a transaction of the worker; the tables stay accessible until its end.
 */
bool
aq_queue_lock_tables(AqQueue *queue, LOCKMODE mode)
{
	Oid			first[] = {queue->table.messages, queue->table.consumers};

	if (queue->store->kind != AQ_STORE_CLASSIC && !aq_queue_lock_numbers(queue, mode, false))
		return false;
	for (int i = 0; i < lengthof(first); i++)
		if (OidIsValid(first[i]) && !ConditionalLockRelationOid(first[i], mode))
			return false;
	return true;
}
