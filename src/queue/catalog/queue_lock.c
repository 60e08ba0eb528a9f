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

bool
aq_queue_lock(int32 id, LOCKMODE mode, bool wait)
{
	LOCKTAG		tag;

	SET_LOCKTAG_OBJECT(tag, MyDatabaseId, aq_schema_relation("queue"), (uint32) id, 0);
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
	SET_LOCKTAG_OBJECT(tag, MyDatabaseId, aq_schema_relation("queue"), (uint32) id, 0);
	return LockRelease(&tag, mode, false);
}

/*
 * The turn of a producer: its transactions go one after the other.  The lock
 * passes to a prepared transaction, and is released when the transaction has
 * made its messages ready.
 */
bool
aq_queue_lock_producer(int32 id, int64 producer, bool wait)
{
	LOCKTAG		tag;
	uint32		name = hash_combine(hash_bytes_uint32((uint32) id), (uint32) producer);

	SET_LOCKTAG_OBJECT(tag, MyDatabaseId, aq_schema_relation("queue"), name, 2);
	return LockAcquire(&tag, ExclusiveLock, false, !wait) != LOCKACQUIRE_NOT_AVAIL;
}

/*
 * Can its tables be read (AccessShareLock) or written (RowExclusiveLock) without
 * waiting for a user that has locked them all?  In a transaction of the worker,
 * which keeps them accessible.
 */
bool
aq_queue_lock_tables(AqQueue *queue, LOCKMODE mode)
{
	Oid			first[] = {queue->sequence, queue->table.messages, queue->table.consumers};

	for (int i = 0; i < lengthof(first); i++)
		if (OidIsValid(first[i]) && !ConditionalLockRelationOid(first[i], mode))
			return false;
	return true;
}
