/*-------------------------------------------------------------------------
 *
 * buffered.c
 *	  Buffered messages, which are not logged.
 *
 * The buffered messages of a queue are in a second queue, its buffered queue,
 * in the classic store, whose tables are UNLOGGED.  So they are in shared
 * buffers, are written to disk when these are short, and are lost in a crash;
 * and all code for queue tables works on them.  The buffered queue is not in
 * the catalog: name, privileges, consumers and limits are those of its queue;
 * its id is the queue's id negated, and so is the id of its queue table.
 *
 * The worker creates it for the first buffered message, so that the enqueuer's
 * transaction does not hold locks on the catalog; only a transaction that may
 * change the definition anyway creates it itself.
 *
 * After each start the worker checks whether the tables were emptied
 * meanwhile, and reports this in the log and in aq_internal.buffered_queue.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/definitions/definitions_private.h"

/*
 * pause before tables that a user has locked are checked again, in
 * microseconds
 */
#define CHECK_AGAIN ((int64) 1000000)

/*
 * --- creation
 * ------------------------------------------------------------------------
 */

/* Creates the buffered queue.  The caller has locked the queue. */
static void
make(AqQueue *queue)
{
	int32		id = queue->id;

	aq_store_of(AQ_STORE_CLASSIC)->tables->make(-id, queue->payload_type, queue->multi, InvalidOid);
	aq_sql_change(psprintf("INSERT INTO aq_internal.buffered_queue (queue_id) VALUES (%d) ON CONFLICT DO NOTHING", id),
				  0, NULL, NULL, NULL);
	aq_pending_created(-id);
	aq_pending_changed(id);		/* its description includes that of its buffered queue */
	aq_catalog_changed();
	aq_point("buffered-made");
}

static bool
is_made(AqQueue *queue, const char *arg)
{
	return queue->buffered != NULL;
}

static void
ask_worker(AqQueueShm *shm, const char *arg)
{
	aq_work_post(shm, AQ_WORK_BUFFERED);
}

AqQueue *
aq_buffered_ensure(AqQueue *queue, int delivery)
{
	int32		id = queue->id;
	char	   *name;

	if (aq_catalog_for_delivery(queue, delivery) != NULL)
		return aq_catalog_for_delivery(queue, delivery);
	name = pstrdup(queue->name);
	if (aq_ddl_possible_here(queue))
	{
		/*
		 * while this session waited for the lock, another one may have created
		 * it
		 */
		queue = aq_catalog_get_again(id, name, AQ_RIGHT_ANY);
		if (queue->buffered == NULL)
			make(queue);
	}
	else
	{
		(void) aq_payload_type_lock(queue->payload_type, true);
		aq_ddl_by_worker(queue, AQ_RIGHT_ANY, is_made, ask_worker, NULL);
	}
	return aq_catalog_for_delivery(aq_catalog_get_again(id, name, AQ_RIGHT_ANY), delivery);
}

/*
 * Drops the buffered queue's messages and tables.  The caller has locked the
 * queue.
 */
void
aq_buffered_drop(const char *name, bool force)
{
	AqQueue    *buffered = aq_catalog_get_by_name(name)->buffered;
	int32		id;

	if (buffered == NULL)
		return;
	id = buffered->id;
	aq_pins_pin_to_drop(buffered, force);
	buffered->store->drop(buffered, force);
	aq_store_of(AQ_STORE_CLASSIC)->tables->drop(id);
	aq_sql_change(psprintf("DELETE FROM aq_internal.buffered_queue WHERE queue_id = %d", -id), 0, NULL, NULL, NULL);
	aq_pending_dropped(id);
}

/* --- the worker ----------------------------------------------------------------------------- */

static void
make_by_worker(int32 id, AqQueueShm *shm)
{
	AqQueue    *queue;

	aq_job_begin();
	/*
	 * if another session is changing the queue, the session that needs its
	 * buffered queue will post again
	 */
	if (aq_queue_lock(id, ShareUpdateExclusiveLock, false))
	{
		queue = aq_catalog_get_by_id(id, true);
		/*
		 * the worker does not wait for a session that has locked the payload
		 * type
		 */
		if (queue != NULL && queue->buffered == NULL && aq_payload_type_lock(queue->payload_type, false))
			make(queue);
	}
	/*
	 * the messages are not logged, but their loss must be detected after a
	 * crash
	 */
	aq_job_commit(true);
	aq_cond_broadcast(&shm->changed);
}

static void
note_loss(AqQueue *buffered)
{
	aq_sql_change(psprintf("INSERT INTO aq_internal.buffered_queue (queue_id, losses, lost_at) VALUES (%d, 1, clock_timestamp()) "
						   "ON CONFLICT (queue_id) DO UPDATE SET losses = buffered_queue.losses + 1, "
						   "lost_at = excluded.lost_at", -buffered->id), 0, NULL, NULL, NULL);
	ereport(WARNING,
			(errmsg("buffered messages of queue \"%s\" may have been lost", buffered->name),
			 errdetail("The server was not shut down cleanly, or was created from a backup or a standby."),
			 errhint("Persistent messages are not affected. The view aq.buffered_queues shows the time.")));
}

/* Have the tables been emptied since the last check? */
static void
check_for_loss(int32 id, AqQueueShm *shm)
{
	AqQueue    *buffered;

	aq_job_begin();
	buffered = aq_catalog_get_by_id(id, true);
	if (buffered != NULL && !aq_queue_lock_tables(buffered, AccessShareLock))
		aq_work_later(shm, AQ_WORK_BUFFERED, CHECK_AGAIN);
	else if (buffered != NULL)
	{
		switch (buffered->store->tables->were_emptied(buffered))
		{
			case AQ_NO:
				break;
			case AQ_YES:
				note_loss(buffered);
				break;
			case AQ_CANNOT_SAY:
				aq_work_later(shm, AQ_WORK_BUFFERED, CHECK_AGAIN);
				break;
		}
	}
	aq_job_commit(true);
}

/*
 * For a queue: creates its buffered queue.  For a buffered queue: checks
 * whether it has lost its messages.
 */
void
aq_buffered_job(int32 id, AqQueueShm *shm)
{
	if (id > 0)
		make_by_worker(id, shm);
	else
		check_for_loss(id, shm);
}
