/*-------------------------------------------------------------------------
 *
 * announce.c
 *	  The end of a transaction that has changed definitions of queues.
 *
 * The objects of the object cache are locked before the commit, so no session
 * begins to use a definition that is about to change; after the commit, sessions
 * that use such a queue read its definition again, and sessions that wait for it
 * are woken.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/memory/memory_private.h"

#include "miscadmin.h"

/* The session has pinned the queue. */
static void
end_stopping(const AqChange *change)
{
	AqQueueShm *shm = aq_pins_shm_of(change->id);

	if (shm != NULL)
		aq_users_count_stops(shm, change->position, -1);
}

/* Is it a change of what descriptions and users of the queue see? */
static bool
changes_definition(const AqChange *change)
{
	return change->kind != AQ_CHANGE_CREATED && change->kind != AQ_CHANGE_STOPPING && change->kind != AQ_CHANGE_REVOKED;
}

/*
 * Locks the definitions that the transaction has changed, so that until it has
 * ended no session begins to use them.  Called before the commit; may wait and
 * raise errors.  Afterwards the transaction must not wait for other
 * transactions.
 */
void
aq_announce_pre_commit(void)
{
	const AqChange *changes;
	int			nchanges = aq_pending_list(&changes);

	for (int i = 0; i < nchanges; i++)
		if (changes_definition(&changes[i]))
			aq_object_lock(MyDatabaseId, changes[i].id);
	if (nchanges > 0)
		aq_point("definition-locked");
}

/* Undoes a change that was made in a subtransaction. */
static void
undo(const AqChange *change)
{
	if (change->kind == AQ_CHANGE_CREATED)
		aq_object_drop(MyDatabaseId, change->id);
	else if (change->kind == AQ_CHANGE_STOPPING)
		end_stopping(change);
}

/* Called at the end of a subtransaction.  Does not raise an error. */
void
aq_announce_subxact_end(bool commit, SubTransactionId subid, SubTransactionId parent)
{
	aq_pending_subxact_end(commit, subid, parent, undo);
}

static AqQueueShm *
valid_shm(int32 id)
{
	AqObject   *object = aq_object_find(MyDatabaseId, id);

	return object != NULL ? aq_shm_by_index(object->index) : NULL;
}

/*
 * Marks the consumer as removed, so that nothing more is counted for it;
 * the worker cleans up.
 */
static void
end_consumer(int32 id, int position, int64 number)
{
	AqQueueShm *shm = valid_shm(id);
	AqConsumerShm *consumer;

	if (shm != NULL)
	{
		aq_raise_to(&aq_shm_consumer(shm, position)->removed, number);
		aq_work_post(shm, AQ_WORK_REMOVED | AQ_WORK_POSITIONS);
	}
	/* its buffered queue */
	shm = valid_shm(-id);
	consumer = shm != NULL ? aq_shm_consumer(shm, position) : NULL;
	if (consumer != NULL)
		aq_raise_to(&consumer->removed, number);
}

/* Called when the conversion of the queue, or its end, is committed. */
static void
end_conversion(AqQueueShm *shm, const AqChange *change)
{
	if (change->kind == AQ_CHANGE_CONVERTED)
	{
		shm->converted = true;
		pg_memory_barrier();	/* before the worker reads the next transaction id */
		aq_work_post(shm, AQ_WORK_CONVERT);
		aq_point_held("conversion-announced");
	}
	else if (change->kind == AQ_CHANGE_TABLE_LEFT)
		shm->table_done = true;
}

/*
 * Wakes sessions that wait at the position of a former recipient, or for the
 * name of a new one, so that they look the name up again; also those that wait
 * for buffered messages.
 */
static void
announce_recipients(const AqChange *change, AqQueueShm *shm)
{
	AqObject   *object = aq_object_find(MyDatabaseId, -change->id);
	AqQueueShm *buffered = object != NULL ? aq_shm_by_index(object->index) : shm;

	if (change->kind == AQ_CHANGE_RECIPIENT)
	{
		aq_waiters_wake(shm, AQ_NO_CONSUMER, PG_INT32_MAX);
		aq_waiters_wake(buffered, AQ_NO_CONSUMER, PG_INT32_MAX);
		if (!aq_job_in_worker())
			aq_work_post(shm, AQ_WORK_IDLE);
		return;
	}
	for (int position = 0; position < AQ_POSITIONS; position++)
	{
		if (pg_atomic_read_u32(&shm->waiting) == 0 && pg_atomic_read_u32(&buffered->waiting) == 0)
			break;
		if (!aq_holds_are_closing(shm, position))
			continue;
		aq_waiters_wake(shm, position, PG_INT32_MAX);
		aq_waiters_wake(buffered, position, PG_INT32_MAX);
	}
}

/* Needs no pin: an entry that was freed meanwhile has no waiters. */
static void
wake_waiters(int32 id)
{
	AqObject   *object = aq_object_find(MyDatabaseId, id);

	if (object != NULL)
		aq_waiters_wake_all(aq_shm_by_index(object->index));
	/* sessions that wait for its buffered messages */
	object = id > 0 ? aq_object_find(MyDatabaseId, -id) : NULL;
	if (object != NULL)
		aq_waiters_wake_all(aq_shm_by_index(object->index));
}

/* The queue has changed: makes waiting sessions check it again. */
static void
announce_change(const AqChange *change)
{
	AqObject   *object = aq_object_find(MyDatabaseId, change->id);
	AqQueueShm *shm;

	if (object == NULL)
		return;
	shm = aq_shm_by_index(object->index);
	if (change->kind == AQ_CHANGE_RECIPIENT || change->kind == AQ_CHANGE_RELEASED)
	{
		announce_recipients(change, shm);
		return;
	}
	end_conversion(shm, change);
	wake_waiters(change->id);
}

/*
 * The transaction is committed: sessions read the changed definitions again.
 * Called before its messages become ready and their waiters are woken, so that a
 * session that has got one of them does not use another queue as it was before.
 * (The rows of a queue table are visible a moment earlier.)  Does not raise an
 * error.
 */
void
aq_announce_commit(void)
{
	const AqChange *changes;
	int			nchanges = aq_pending_list(&changes);

	for (int i = 0; i < nchanges; i++)
	{
		uint64		now;
		AqObject   *object;

		if (!changes_definition(&changes[i]))
			continue;
		now = aq_definition_clock_tick();	/* even if the queue is not in memory */
		object = aq_object_find(MyDatabaseId, changes[i].id);
		if (object == NULL)
			continue;
		aq_raise_to(&aq_shm_by_index(object->index)->last_change, now);
		if (changes[i].kind != AQ_CHANGE_CHANGED)
			aq_raise_to(&aq_shm_by_index(object->index)->definition, now);
	}
}

/* The definition has changed, or the change was rolled back. */
static void
end_change(const AqChange *change, bool commit)
{
	if (change->kind == AQ_CHANGE_UNSUBSCRIBED && commit)
		end_consumer(change->id, change->position, change->number);
	if (!changes_definition(change))
		return;
	aq_object_invalidate(MyDatabaseId, change->id);
	if (change->kind != AQ_CHANGE_CHANGED && commit)
		announce_change(change);
}

/*
 * Drops the object if the queue's creation was rolled back, or its drop was
 * committed, and wakes the sessions that wait for the worker's work for the
 * queue: the worker no longer does it.
 */
static void
drop_changed(const AqChange *change, bool commit)
{
	AqQueueShm *shm;

	if (change->kind != (commit ? AQ_CHANGE_DROPPED : AQ_CHANGE_CREATED))
		return;
	shm = valid_shm(change->id);
	aq_object_drop(MyDatabaseId, change->id);
	if (shm != NULL)
		aq_cond_broadcast(&shm->changed);	/* needs no pin: a session that waits for another queue checks once more */
	aq_jobs_post();				/* the worker removes it */
}

/*
 * Called at the end of the transaction, after its messages were settled.  Does
 * not raise an error.
 */
void
aq_announce_xact_end(bool commit)
{
	const AqChange *changes;
	int			nchanges = aq_pending_list(&changes);
	bool		had_ddl;

	aq_pins_end_use(commit);
	aq_holds_end();
	for (int i = 0; i < nchanges; i++)
		end_change(&changes[i], commit);
	/*
	 * drop a queue and its buffered queue after waiting sessions were notified
	 * of both
	 */
	for (int i = 0; i < nchanges; i++)
		drop_changed(&changes[i], commit);
	/*
	 * a session that uses the queue again sees that the definition has changed
	 */
	for (int i = 0; i < nchanges; i++)
		if (changes[i].kind == AQ_CHANGE_STOPPING)
			end_stopping(&changes[i]);
	had_ddl = aq_pending_end(commit);
	aq_object_unlock_all();
	if (had_ddl)
		aq_catalog_stale();		/* the transaction's own changes are now visible to all */
	aq_pins_sweep();
}

/*
 * Called when PostgreSQL has sent the invalidations.  A session that was woken
 * before would find the right in its caches, and sleep again.  Does not raise an
 * error.
 */
void
aq_announce_released(void)
{
	const AqChange *revoked;
	int			n = aq_pending_take_revoked(&revoked);

	for (int i = 0; i < n; i++)
		wake_waiters(revoked[i].id);
}
