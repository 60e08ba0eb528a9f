/*-------------------------------------------------------------------------
 *
 * damage.c
 *	  For builds with TEST_POINTS=1: damages shared memory, so that aq.check()
 *	  must find it. by: 1 makes the damage, -1 undoes it.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/checks/checks_private.h"

#ifdef AQ_TEST_POINTS

#include "utils/builtins.h"

/* The number of a session that does not exist. */
#define NO_SESSION (aq_session_slots() - 1)

/* The first partition with a frame, its stream, and its first ready message. */
typedef struct Target
{
	AqQueueShm *shm;
	Stream	   *stream;
	Partition  *partition;
	FrameSub   *sub;
	int			position;
	Slot	   *slot;
	uint32		number;
} Target;

static AqChunk leaked;
static Partition *taken;

static void
find_target(Target *target, AqQueue *queue)
{
	target->shm = queue->shm;
	for (target->stream = stream_at(shard_queue(queue->shm)->streams); target->stream != NULL;
		 target->stream = stream_at(target->stream->next))
		for (uint32 i = target->stream->head; i != 0; i = partition_at(i)->next)
		{
			target->partition = partition_at(i);
			if (target->partition->frame == 0)
				continue;
			target->position = aq_frame_next_sub(frame_of(target->partition), -1);
			target->sub = frame_sub(frame_of(target->partition), target->position);
			target->number = aq_bitmap_next(bitmap_of(target->sub->ready), PARTITION_SLOTS, 0);
			target->slot = slot_at(frame_of(target->partition), target->number);
			return;
		}
	elog(ERROR, "queue \"%s\" has no message in memory", queue->name);
}

/*
 * Changes a number of a partition or its stream; returns false if none has
 * this name.
 */
static bool
damage_number(Target *t, const char *what, int by)
{
	Partition  *p = t->partition;
	ShardQueue *sq = shard_queue(t->shm);
	AqConsumerShm *consumer = aq_shm_consumer(t->shm, t->position);

	const struct
	{
		const char *name;
		uint32	   *number;
	}			numbers[] = {
		{"open", &p->open}, {"pending", &p->pending}, {"inflight", &p->inflight}, {"nretry", &p->nretry},
		{"nfailed", &p->nfailed}, {"ndoubt", &p->ndoubt}, {"nempty", &sq->nempty}, {"nstreams", &sq->nstreams},
		{"numbered", (uint32 *) &sq->numbered[t->stream->number]},
		{"block", &t->slot->block},
		{"timers_reserved", &frame_of(p)->timers_reserved},
	};
	const struct
	{
		const char *name;
		pg_atomic_uint32 *number;
	}			atomics[] = {
		{"wanting", &sq->wanting}, {"users", &t->shm->users[0]}, {"stops_enqueue", &t->shm->stops_enqueue},
		{"stops_dequeue", &t->shm->stops_dequeue}, {"waiting", &t->shm->waiting}, {"ndoubts", &aq_area->ndoubts},
	};

	for (int i = 0; i < lengthof(numbers); i++)
		if (strcmp(what, numbers[i].name) == 0)
		{
			*numbers[i].number += by;
			aq_slot_count_kept(p);
			return true;
		}
	/* by more than the number of sessions */
	for (int i = 0; i < lengthof(atomics); i++)
		if (strcmp(what, atomics[i].name) == 0)
		{
			pg_atomic_fetch_add_u32(atomics[i].number, by * aq_session_slots());
			return true;
		}
	if (strcmp(what, "enqueued") == 0)
		pg_atomic_fetch_add_u64(&consumer->enqueued, by);
	else if (strcmp(what, "nready") == 0)
		t->sub->nready += by;
	else if (strcmp(what, "nwaiting") == 0)
		t->sub->nwaiting += by;
	else if (strcmp(what, "ntaken") == 0)
		t->sub->ntaken += by;
	else if (strcmp(what, "in_work") == 0)
		pg_atomic_fetch_add_u32(&consumer->in_work, by);
	else if (strcmp(what, "stream ready") == 0)
		stream_sub(t->stream, t->position)->ready += by;
	else if (strcmp(what, "nunused") == 0)
		aq_area->nunused_partitions += by;
	else if (strcmp(what, "next_timer") == 0)
		p->next_timer += by;
	else
		return false;
	return true;
}

/* The first lease of the consumer in the partition. */
static uint32
leased_slot(const Target *t)
{
	const SubMore *more = sub_more(t->sub);
	int			slot = more != NULL && more->leased != 0 ? aq_bitmap_next(bitmap_of(more->leased), PARTITION_SLOTS, 0) : -1;

	if (slot < 0)
		elog(ERROR, "no message is leased");
	return slot;
}

/* The lease is forgotten, as if it had been given back without a row in the log. */
static void
lose_lease(Target *t, int by)
{
	static Lease lost;
	static uint32 number;

	if (by > 0)
	{
		number = leased_slot(t);
		lost = *lease_at(t->sub, number);
		(void) aq_slot_hold_lease(t->partition, t->position, number);
		aq_slot_give_back(t->stream, t->partition, t->position, number);
		return;
	}
	(void) aq_slot_take(t->stream, t->partition, t->position, number);
	aq_slot_note_lease(t->partition, t->position, number, lost.until, lost.receipt);
	aq_slot_lease(t->partition, t->position, number);
}

/* False: there is no such damage of a lease. */
static bool
damage_lease(Target *t, const char *what, int by)
{
	SubMore    *more = sub_more(t->sub);

	if (strcmp(what, "lease") == 0)
		lose_lease(t, by);
	else if (strcmp(what, "receipt") == 0)
		lease_at(t->sub, leased_slot(t))->receipt += by;
	else if (strcmp(what, "nameless") == 0)
		lease_at(t->sub, leased_slot(t))->receipt *= -1;
	else if (strcmp(what, "until") == 0)
		lease_at(t->sub, leased_slot(t))->until -= by * USECS_PER_MINUTE;
	else if (strcmp(what, "page_end") == 0)
		more->ends[leased_slot(t) / LEASES_PER_CHUNK] += by * USECS_PER_MINUTE;
	else if (strcmp(what, "lease_end") == 0)
		frame_of(t->partition)->lease_end += by * USECS_PER_MINUTE;
	else if (strcmp(what, "nleased") == 0)
		more->nleased += by;
	else
		return false;
	return true;
}

/* A partition that is not resident. */
static void
damage_away(AqQueue *queue, int by)
{
	for (Stream *stream = stream_at(shard_queue(queue->shm)->streams); stream != NULL; stream = stream_at(stream->next))
		for (uint32 i = stream->head; i != 0; i = partition_at(i)->next)
			if (partition_at(i)->frame == 0)
			{
				partition_at(i)->away_leased += by;
				return;
			}
	elog(ERROR, "queue \"%s\" has no message that is not in memory", queue->name);
}

/* Removes a message and adjusts all counts, but not the tables. */
static void
lose_message(Target *t, int by)
{
	if (by > 0)
	{
		(void) aq_slot_take(t->stream, t->partition, t->position, t->number);
		aq_settle_done(t->shm, t->partition, t->position, t->number, InvalidTransactionId);
		return;
	}
	/* the removed message is before the first ready one */
	t->slot = slot_at(frame_of(t->partition), --t->number);
	t->slot->state = SLOT_READY;
	t->slot->open++;
	t->partition->open++;
	aq_slot_load(t->stream, t->partition, t->position, t->number, false);
	pg_atomic_fetch_sub_u64(&aq_shm_consumer(t->shm, t->position)->dequeued, 1);
}

static void
damage_mark(Target *t, const char *what, int by)
{
	Partition  *p = t->partition;

	if (strcmp(what, "loading") == 0)
	{
		p->loading = by > 0;
		p->claimant = NO_SESSION;
	}
	else if (strcmp(what, "taken") == 0 && by > 0)
	{
		taken = partition_at(shard_queue(t->shm)->empty);
		shard_queue(t->shm)->empty = taken->next;
		shard_queue(t->shm)->nempty--;
		taken->state = PARTITION_TAKEN;
		taken->claimant = NO_SESSION;
	}
	else if (strcmp(what, "taken") == 0)
		aq_tables_give_back(t->shm, taken);
	else if (strcmp(what, "message") == 0)
		lose_message(t, by);
	else if (strcmp(what, "first") == 0)
		t->sub->first += by;
	else if (strcmp(what, "age") == 0)
	{
		uint64		xid = slot_full_xid(t->slot) - by * (((int64) 1 << 31) + 1000);

		aq_slot_set_xid(t->slot, (TransactionId) xid, xid);
	}
	else if (strcmp(what, "attempts") == 0)
	{
		aq_chunks_reserve(2 + PARTITION_SLOTS / ATTEMPTS_PER_CHUNK);
		aq_frame_set_attempts(frame_of(p), t->position, t->number, by > 0 ? 1 : 0);
	}
	else if (strcmp(what, "chunk") == 0 && by > 0)
	{
		aq_chunks_reserve(1);
		leaked = aq_chunks_take();
	}
	else if (strcmp(what, "chunk") == 0)
		aq_chunks_free(&leaked, 1);
	else if (strcmp(what, "pins") == 0)
		t->shm->object->pins += by;
	else if (strcmp(what, "lock_waiters") == 0)
		t->shm->object->lock_waiters += by;
	else if (strcmp(what, "lock_holder") == 0)
		t->shm->object->lock_holder = by > 0 ? NO_SESSION : -1;
	else if (strcmp(what, "object") == 0)
	{
		/* sessions would wait for it */
		t->shm->object->pin_holder = by > 0 ? NO_SESSION : -1;
		t->shm->object->state = by > 0 ? AQ_OBJECT_LOADING : AQ_OBJECT_VALID;
	}
	else if (strcmp(what, "doubt") == 0 && by > 0)
	{
		(void) aq_doubt_table_add(p, FirstNormalTransactionId, 0, false);
		aq_slot_add_doubts(p, 1);
		aq_work_post(t->shm, AQ_WORK_DOUBT);
	}
	else
		elog(ERROR, "there is no damage \"%s\"", what);
}

PG_FUNCTION_INFO_V1(aq_damage);
Datum
aq_damage(PG_FUNCTION_ARGS)
{
	AqQueue    *queue = aq_catalog_get(text_to_cstring(PG_GETARG_TEXT_PP(0)), AQ_RIGHT_OWNER);
	char	   *what = text_to_cstring(PG_GETARG_TEXT_PP(1));
	int			by = PG_GETARG_INT32(2);
	static Target target;		/* static, because an object that is being loaded cannot be found again */

	if (target.shm == NULL || target.shm->object->state == AQ_OBJECT_VALID)
	{
		aq_pins_pin(queue);
		if (strcmp(what, "away_leased") == 0)
		{
			damage_away(queue, by);
			PG_RETURN_VOID();
		}
		find_target(&target, queue);
	}
	if (!damage_number(&target, what, by) && !damage_lease(&target, what, by))
		damage_mark(&target, what, by);
	PG_RETURN_VOID();
}

#endif
