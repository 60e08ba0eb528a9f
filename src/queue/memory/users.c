/*-------------------------------------------------------------------------
 *
 * users.c
 *	  Counts of the transactions that use a queue, and of those that wait to
 *	  stop it.
 *
 * A transaction that enqueues or dequeues counts as a user until it ends.  A
 * session that stops the queue counts itself, then reads the number of users;
 * a session that becomes a user counts itself, then reads whether the queue is
 * being stopped.  Both execute a barrier in between, so at least one of the
 * two sees the other.
 *
 * The worker waits for the end of all transactions that can know a removed
 * consumer, without being kept by later ones.  So there are two counters: of
 * the newest generation of users, and of the one before.  A new generation begins
 * when the counter of the one before is 0, and uses that.  When two have begun since
 * the removal, every transaction that was a user then has ended.  One that counts
 * itself later in a counter that it has read before reads the definition only after
 * that, finds it changed, and begins again: see aq_use_begin().
 *
 * A session that waits for users knows whose transactions they are by the list
 * of each session, which only that session writes: the queues that its
 * transaction uses, and whether it has taken buffered messages.  A reader may be
 * late by a moment, which does not matter: it looks for sessions that wait.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/memory/memory_private.h"

#include "storage/proc.h"

/* queues that are listed for a session; one that uses more may use any */
#define LISTED 14

typedef struct Use
{
	int32		queue_id;
	int32		taker;			/* it has taken buffered messages for this consumer; NONE, SEVERAL */
} Use;

#define NONE	(-1)
#define SEVERAL	(-2)

/* By session. */
typedef struct Uses
{
	uint32		n;
	uint32		unlisted;
	int32		wanted;			/* while it waits for room: the consumer that must make it */
	Use			list[LISTED];
	char		padding[4];
} Uses;

StaticAssertDecl(sizeof(Uses) == 128, "two cache lines");

static Uses *uses;

Size
aq_users_shmem_size(void)
{
	return mul_size(sizeof(Uses), aq_session_slots());
}

void
aq_users_shmem_init(void *area, bool found)
{
	uses = area;
	if (!found)
		memset(area, 0, aq_users_shmem_size());
}

/* The entry of the own session; NULL: it is not listed. */
static Use *
own_use(int32 queue_id)
{
	Uses	   *own = &uses[aq_session_own_number];

	for (uint32 i = 0; i < own->n; i++)
		if (own->list[i].queue_id == queue_id)
			return &own->list[i];
	return NULL;
}

static void
list_use(int32 queue_id)
{
	Uses	   *own = &uses[aq_session_own_number];

	if (own->n == LISTED)
	{
		own->unlisted++;
		return;
	}
	own->list[own->n].queue_id = queue_id;
	own->list[own->n].taker = NONE;
	own->n++;
}

static void
unlist_use(int32 queue_id)
{
	Uses	   *own = &uses[aq_session_own_number];
	Use		   *use = own_use(queue_id);

	if (use != NULL)
		*use = own->list[--own->n];
	else
		own->unlisted--;
}

/* The transaction, a user of the queue, has taken buffered messages for the consumer. */
void
aq_users_note_taken(int32 queue_id, int position)
{
	Use		   *use = own_use(queue_id);

	if (use != NULL && use->taker != position)
		use->taker = use->taker == NONE ? position : SEVERAL;
}

/* The session is going to wait for room. */
void
aq_users_want_room(int position)
{
	uses[aq_session_own_number].wanted = position;
}

static bool
is_use(const Use *use, int32 queue_id, bool taken, int position)
{
	return use->queue_id == queue_id && (!taken || use->taker == position || use->taker == SEVERAL);
}

/*
 * The sessions whose transactions use the queue for which the given session
 * waits, without that one.  taken: only those that have taken buffered messages
 * for the consumer that must make room.
 */
static Bitmapset *
sessions_that_use(int waiting, const AqWaitNow *now, bool taken)
{
	Oid			database = ProcGlobal->allProcs[waiting].databaseId;
	Bitmapset  *found = NULL;

	for (int i = 0; i < aq_session_slots(); i++)
	{
		bool		is_user = uses[i].unlisted > 0;

		if (i == waiting || uses[i].n == 0 || ProcGlobal->allProcs[i].databaseId != database)
			continue;
		for (uint32 k = 0; k < Min(uses[i].n, LISTED); k++)
			is_user |= is_use(&uses[i].list[k], (int32) now->p1, taken, uses[waiting].wanted);
		if (is_user)
			found = bms_add_member(found, i);
	}
	return found;
}

static Bitmapset *
users_of_queue(int session, const AqWaitNow *now)
{
	return sessions_that_use(session, now, false);
}

static Bitmapset *
takers_of_queue(int session, const AqWaitNow *now)
{
	return sessions_that_use(session, now, true);
}

/* Who can end the waits for a queue: see deadlock.h. */
void
aq_users_init(void)
{
	aq_deadlock_define(AQ_EVENT_STOP_QUEUE, false, users_of_queue);
	aq_deadlock_define(AQ_EVENT_FLOW_CONTROL, true, takers_of_queue);
}

/* Adds a user, and returns the counter that counts it.  Also a barrier. */
int
aq_users_add(AqQueueShm *shm)
{
	int			counter = pg_atomic_read_u32(&shm->generation) % 2;

	pg_atomic_fetch_add_u32(&shm->users[counter], 1);
	list_use(shm->queue_id);
	return counter;
}

/* The number of users. */
uint32
aq_users_number(AqQueueShm *shm)
{
	return pg_atomic_read_u32(&shm->users[0]) + pg_atomic_read_u32(&shm->users[1]);
}

/* The generation with which aq_users_outlived() is called later. */
uint32
aq_users_generation(AqQueueShm *shm)
{
	return pg_atomic_read_u32(&shm->generation);
}

/*
 * Have all transactions ended that were users at the time of this generation?
 * If not, AQ_WORK_POSITIONS is posted when there may be an answer.  For the
 * worker only.
 */
bool
aq_users_outlived(AqQueueShm *shm, uint32 generation)
{
	uint32		now = pg_atomic_read_u32(&shm->generation);

	pg_atomic_write_u32(&shm->outlived, 1);
	pg_memory_barrier();
	while ((int32) (now - generation) < 2 && pg_atomic_read_u32(&shm->users[(now + 1) % 2]) == 0)
		pg_atomic_write_u32(&shm->generation, ++now);
	return (int32) (now - generation) >= 2;
}

/* Is the queue being stopped for enqueue, or for dequeue? */
bool
aq_users_are_stopped(AqQueueShm *shm, bool enqueue)
{
	return pg_atomic_read_u32(enqueue ? &shm->stops_enqueue : &shm->stops_dequeue) > 0;
}

/* Removes a user.  Never raises an error. */
void
aq_users_remove(AqQueueShm *shm, int counter)
{
	uint32		before = pg_atomic_fetch_sub_u32(&shm->users[counter], 1);

	unlist_use(shm->queue_id);
	if (pg_atomic_read_u32(&shm->stops_enqueue) > 0 || pg_atomic_read_u32(&shm->stops_dequeue) > 0)
		aq_cond_broadcast(&shm->changed);
	if (before == 1 && pg_atomic_read_u32(&shm->outlived) != 0 && pg_atomic_exchange_u32(&shm->outlived, 0) != 0)
		aq_work_post(shm, AQ_WORK_POSITIONS);
}

/*
 * Adds or removes a session that stops the queue; bits: 1 enqueue, 2 dequeue.
 * Never raises an error.
 */
void
aq_users_count_stops(AqQueueShm *shm, int bits, int32 by)
{
	if (bits & 1)
		pg_atomic_fetch_add_u32(&shm->stops_enqueue, by);
	if (bits & 2)
		pg_atomic_fetch_add_u32(&shm->stops_dequeue, by);
}
