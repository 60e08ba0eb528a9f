/*-------------------------------------------------------------------------
 *
 * ddl.c
 *	  Functions with which all changes of definitions begin.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/definitions/definitions_private.h"

/*
 * interval at which a session that waits for the worker posts it again, in
 * microseconds
 */
#define ASK_AGAIN ((int64) 1000000)

/*
 * Locks the queue, on which the caller must have the privilege, against other
 * changes, and returns it.
 */
AqQueue *
aq_ddl_queue_for(const char *name, AqRight right, LOCKMODE mode)
{
	int32		id = aq_catalog_get(name, right)->id;
	AqQueue    *queue;

	(void) aq_queue_lock(id, mode, true);
	/* it may have been changed, or dropped, while we waited */
	queue = aq_catalog_get(name, right);
	if (queue->id != id)
		return aq_ddl_queue_for(name, right, mode);
	return queue;
}

/* The queue, which the caller must own, locked against other changes. */
AqQueue *
aq_ddl_queue(const char *name, LOCKMODE mode)
{
	return aq_ddl_queue_for(name, AQ_RIGHT_OWNER, mode);
}

/*
 * May this transaction change the queue's definition itself, without blocking
 * other sessions more than it does anyway?  It may if it has created the
 * queue, or has changed a definition and gets the lock at once.
 */
bool
aq_ddl_possible_here(AqQueue *queue)
{
	return queue->own ||
		(aq_pending_has_ddl() && aq_queue_lock(queue->id, ShareUpdateExclusiveLock, false));
}

/*
 * Lets the worker change the definition of a queue, and waits for it. done: is
 * the change made? ask: posts the request to the worker.  The queue is looked
 * up again.
 */
void
aq_ddl_by_worker(AqQueue *queue, AqRight right,
				 bool (*done) (AqQueue *queue, const char *arg),
				 void (*ask) (AqQueueShm *shm, const char *arg), const char *arg)
{
	char	   *name = pstrdup(queue->name);
	int32		id = queue->id;
	AqQueueShm *shm;
	AqWorkerWait wait = {0};

	aq_jobs_ensure_worker();
	aq_pins_pin(queue);
	shm = queue->shm;
	for (;;)
	{
		/*
		 * wait for a session that holds the lock, because the worker gives up
		 * instead of waiting
		 */
		(void) aq_queue_lock_pass(id, ShareUpdateExclusiveLock, true);
		aq_cond_prepare(&shm->changed); /* after the lock, because a wait for that would consume the signal */
		queue = aq_catalog_get_again(id, name, right);
		if (done(queue, arg))
			break;
		ask(shm, arg);
		aq_jobs_post();
		aq_cond_sleep(&shm->changed, aq_await_event(&wait, AQ_EVENT_QUEUE_DDL), id, 0, 0, ASK_AGAIN);
	}
	aq_cond_cancel();
	pfree(name);
}
