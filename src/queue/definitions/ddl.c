/*-------------------------------------------------------------------------
 *
 * ddl.c
 *	  What all changes of definitions begin with.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/definitions/definitions_private.h"

#include "miscadmin.h"

/* how long a session waits for the worker before it asks again, microseconds */
#define ASK_AGAIN ((int64) 1000000)

void
aq_ddl_begin(const char *command)
{
	aq_session_require_preload();
	PreventCommandIfReadOnly(command);
	PreventCommandIfParallelMode(command);
	PreventCommandDuringRecovery(command);
}

/* The queue, which the caller must own, locked against other changes. */
AqQueue *
aq_ddl_queue(const char *name, LOCKMODE mode)
{
	int32		id = aq_catalog_get(name, AQ_RIGHT_OWNER)->id;
	AqQueue    *queue;

	(void) aq_queue_lock(id, mode, true);
	/* it may have been changed, or dropped, while we waited */
	queue = aq_catalog_get(name, AQ_RIGHT_OWNER);
	if (queue->id != id)
		return aq_ddl_queue(name, mode);
	return queue;
}

/*
 * May this transaction change the queue's definition itself, without keeping
 * others from it that it does not keep from it anyway?  When it has created the queue,
 * or has changed a definition and gets the lock at once.
 */
bool
aq_ddl_possible_here(AqQueue *queue)
{
	return queue->own ||
		(aq_pending_has_ddl() && aq_queue_lock(queue->id, ShareUpdateExclusiveLock, false));
}

/*
 * Have the worker change the definition of a queue, and wait for that.  done:
 * is it what was wanted?  ask: tell the worker what that is.  The queue is
 * looked up again.
 */
void
aq_ddl_by_worker(AqQueue *queue, AqRight right,
					  bool (*done) (AqQueue *queue, const char *arg),
					  void (*ask) (AqQueueShm *shm, const char *arg), const char *arg)
{
	char	   *name = pstrdup(queue->name);
	int32		id = queue->id;
	AqQueueShm *shm;

	aq_jobs_ensure_worker();
	aq_pins_pin(queue);
	shm = queue->shm;
	for (;;)
	{
		/* not behind the worker's back: it gives up where it had to wait */
		(void) aq_queue_lock_pass(id, ShareUpdateExclusiveLock, true);
		aq_cond_prepare(&shm->changed); /* only now: a wait for the lock eats the signal */
		queue = aq_catalog_get_again(id, name, right);
		if (done(queue, arg))
			break;
		ask(shm, arg);
		aq_jobs_post();
		aq_cond_sleep(&shm->changed, aq_jobs_wait_event(AQ_EVENT_QUEUE_DDL), id, 0, 0, ASK_AGAIN);
	}
	aq_cond_cancel();
	pfree(name);
}
