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
 * A session that waits for users knows whose transactions they are by what each
 * session shows of its transaction, which only that session writes: the queues that
 * it uses, as bits, how many messages it has taken, if their number is limited, and
 * whether it keeps memory.  A reader may be late by a moment, which does not matter: it looks for sessions that wait.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/memory/memory_private.h"

/* kinds of messages that are counted; of others a transaction seems to have taken none */
#define TAKEN 8

/* Messages of the queue with this index, buffered or limited by max_depth, taken for a consumer. */
typedef struct Taken
{
	uint32		queue;
	int32		position;
	uint32		n;				/* lower bound of those that are not finished before the transaction ends */
} Taken;

/* What a session shows; on lines of its own. */
typedef struct Shown
{
	uint32		keeps;			/* 1: its transaction keeps memory of the message cache */
	uint32		queue;			/* index of the queue for which it waits */
	int32		position;		/* while it waits for room: the consumer that must make it */
	uint32		room;			/* it needs fewer unfinished messages than this */
	uint32		ntaken;
	Taken		taken[TAKEN];
	uint32		bits[FLEXIBLE_ARRAY_MEMBER];	/* by index of the queue */
} Shown;

#define WORD_BITS 32

static char *area;
static Size shown_size;			/* of each session */
static bool has_taken;			/* the own one shows something in "taken" */

static void
set_shown_size(void)
{
	shown_size = TYPEALIGN(PG_CACHE_LINE_SIZE, add_size(offsetof(Shown, bits),
														mul_size(aq_handle_limit / WORD_BITS + 1, sizeof(uint32))));
}

Size
aq_users_shmem_size(void)
{
	set_shown_size();
	return add_size(PG_CACHE_LINE_SIZE, mul_size(shown_size, aq_session_slots()));
}

void
aq_users_shmem_init(void *place, bool found)
{
	set_shown_size();
	area = (char *) TYPEALIGN(PG_CACHE_LINE_SIZE, place);
	if (!found)
		memset(place, 0, aq_users_shmem_size());
}

static inline volatile Shown *
shown_by(int session)
{
	return (volatile Shown *) (area + session * shown_size);
}

static inline volatile Shown *
own(void)
{
	return shown_by(aq_session_own_number);
}

/* --- waits: what the session shows of them, and who can end them ------------------ */

/* The session is going to wait for the users of the queue. */
void
aq_users_want_end(const AqQueueShm *shm)
{
	own()->queue = shm->object->index;
}

/* The session is going to wait until the consumer has fewer messages of the queue. */
void
aq_users_want_room(const AqQueueShm *shm, int position, uint32 room)
{
	own()->queue = shm->object->index;
	own()->position = position;
	own()->room = room;
}

/*
 * The transaction has taken n messages for the consumer, which it does not finish
 * before it ends.
 */
void
aq_users_note_taken(const AqQueueShm *shm, int position, uint32 n)
{
	uint32		queue = shm->object->index;
	uint32		i = 0;

	while (i < own()->ntaken && (own()->taken[i].queue != queue || own()->taken[i].position != position))
		i++;
	if (i == TAKEN)
		return;
	if (i == own()->ntaken)
	{
		own()->taken[i].queue = queue;
		own()->taken[i].position = position;
		own()->taken[i].n = 0;
		pg_write_barrier();
		own()->ntaken++;
	}
	own()->taken[i].n += n;
	has_taken = true;
}

/* The transaction has ended, or a part of it was rolled back, perhaps with what it has taken. */
void
aq_users_forget_taken(void)
{
	if (has_taken)
		own()->ntaken = 0;
	has_taken = false;
}

static bool
uses_queue(int session, uint32 queue)
{
	return (shown_by(session)->bits[queue / WORD_BITS] >> queue % WORD_BITS & 1) != 0;
}

/* The sessions whose transactions use the queue that the given session stops. */
static Bitmapset *
users_of_queue(int waiting, const AqWaitNow *now)
{
	Bitmapset  *found = NULL;

	for (int i = 0; i < aq_session_slots(); i++)
		if (i != waiting && uses_queue(i, shown_by(waiting)->queue))
			found = bms_add_member(found, i);
	return found;
}

/* The number of messages of the kind for which the given session waits that the session's transaction has taken. */
static uint32
taken_of(int session, const volatile Shown *waiting)
{
	volatile Shown *shown = shown_by(session);

	for (uint32 i = 0; i < Min(shown->ntaken, TAKEN); i++)
		if (shown->taken[i].queue == waiting->queue && shown->taken[i].position == waiting->position)
			return shown->taken[i].n;
	return 0;
}

/* The number of messages for the consumer that the own transaction shows as taken. */
uint32
aq_users_taken(const AqQueueShm *shm, int position)
{
	for (uint32 i = 0; i < own()->ntaken; i++)
		if (own()->taken[i].queue == shm->object->index && own()->taken[i].position == position)
			return own()->taken[i].n;
	return 0;
}

/*
 * The sessions whose transactions have taken enough messages to reach the limit, so
 * that the wait lasts until one of these transactions has ended.  None if the number
 * can fall otherwise: there are messages that no session has taken, or that are leased
 * or taken by prepared transactions.  Messages that the waiting session itself has
 * taken count against it, because it cannot finish them while it waits.
 */
static Bitmapset *
takers_of_queue(int waiting, const AqWaitNow *now)
{
	volatile Shown *shown = shown_by(waiting);
	uint64		total = taken_of(waiting, shown);
	Bitmapset  *found = NULL;

	for (int i = 0; i < aq_session_slots(); i++)
	{
		uint32		n = i == waiting ? 0 : taken_of(i, shown);

		total += n;
		if (n > 0)
			found = bms_add_member(found, i);
	}
	return total >= shown->room ? found : NULL;
}

/* From the first message on of which the transaction keeps the partition in memory, to its end. */
void
aq_users_show_keeping(bool keeps)
{
	own()->keeps = keeps;
}

bool
aq_users_are_keeping(int session)
{
	return shown_by(session)->keeps != 0;
}

/* See deadlock.h. */
void
aq_users_init(void)
{
	aq_deadlock_define(AQ_EVENT_STOP_QUEUE, false, users_of_queue);
	aq_deadlock_define(AQ_EVENT_FLOW_CONTROL, true, takers_of_queue);
	aq_deadlock_define(AQ_EVENT_QUEUE_FULL, true, takers_of_queue);
}

/* --- users ------------------------------------------------------------------------ */

static inline volatile uint32 *
own_word(const AqQueueShm *shm)
{
	return &own()->bits[shm->object->index / WORD_BITS];
}

static inline uint32
bit_of(const AqQueueShm *shm)
{
	return (uint32) 1 << shm->object->index % WORD_BITS;
}

/* Adds a user, and returns the counter that counts it.  Also a barrier. */
int
aq_users_add(AqQueueShm *shm)
{
	int			counter = pg_atomic_read_u32(&shm->generation) % 2;

	pg_atomic_fetch_add_u32(&shm->users[counter], 1);
	*own_word(shm) |= bit_of(shm);
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

	*own_word(shm) &= ~bit_of(shm);
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
