/*-------------------------------------------------------------------------
 *
 * classic_damage.c
 *	  For builds with TEST_POINTS=1: damages the shared memory or the rows of a
 *	  queue in a queue table, so that aq.check() must find it. by: 1 makes the damage, -1
 *	  undoes it.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "classic/classic_private.h"

#ifdef AQ_TEST_POINTS

#include "access/transam.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

static void
damage_range(AqQueueShm *shm, int by)
{
	const Range all = {KEY_FIRST, KEY_LAST};
	RangeCopy  *copy = palloc(sizeof(RangeCopy));

	aq_ranges_read(shm, 0, copy);
	if (by > 0)
		aq_ranges_add(shm, 0, copy, &all);
	else
		aq_ranges_announce(shm, 0, &all.after, &all.before);
}

/* Changes the rows that can be leased. */
static void
damage_rows(AqQueue *queue, const char *change)
{
	aq_sql_run(psprintf("UPDATE aq_data.%s SET %s AND queue_id = %d",
						queue->multi ? aq_schema_consumer_table(queue->table.id) : aq_schema_message_table(queue->table.id),
						change, queue->id), 0, NULL, NULL, NULL, false);
}

/* Returns false if the damage is another one. */
static bool
damage_lease(AqQueue *queue, const char *what, int by)
{
	if (strcmp(what, "receipt") == 0)
		damage_rows(queue, "receipt = - receipt WHERE state = 5");
	else if (strcmp(what, "until") == 0)
		damage_rows(queue, by > 0 ? "dequeue_time = next_at, next_at = NULL WHERE state = 5"
					: "next_at = dequeue_time, dequeue_time = NULL WHERE state = 5");
	else if (strcmp(what, "holder") == 0)
		damage_rows(queue, by > 0 ? "holder = 'left' WHERE state = 0" : "holder = NULL WHERE state = 0");
	else if (strcmp(what, "failed") == 0)
		damage_rows(queue, by > 0 ? "state = 6 WHERE state = 5" : "state = 5 WHERE state = 6");
	else if (strcmp(what, "lost") == 0)
		aq_sql_run(psprintf("UPDATE aq_data.%s SET \"position\" = %d WHERE queue_id = %d",
							aq_schema_message_table(queue->table.id), by > 0 ? -2 : 0, queue->id), 0, NULL, NULL, NULL, false);
	else if (strcmp(what, "time_from") == 0 && by > 0)
		pg_atomic_write_u64(&classic_queue(queue->shm)->time_from, TIME_NONE);
	else if (strcmp(what, "next_time") == 0 && by > 0)
		pg_atomic_write_u64(&queue->shm->next_time, 0);
	else if (strcmp(what, "time_from") == 0 || strcmp(what, "next_time") == 0)
		aq_due_time_announce(queue->shm, GetCurrentTimestamp());
	else
		return false;
	return true;
}

PG_FUNCTION_INFO_V1(aq_classic_damage);
Datum
aq_classic_damage(PG_FUNCTION_ARGS)
{
	AqQueue    *queue = aq_catalog_get(text_to_cstring(PG_GETARG_TEXT_PP(0)), AQ_RIGHT_OWNER);
	char	   *what = text_to_cstring(PG_GETARG_TEXT_PP(1));
	int			by = PG_GETARG_INT32(2);

	aq_pins_pin(queue);
	if (strcmp(what, "range") == 0)
		damage_range(queue->shm, by);
	else if (strcmp(what, "dequeued") == 0)
		pg_atomic_fetch_add_u64(&aq_shm_consumer(queue->shm, 0)->dequeued, by);
	else if (strcmp(what, "nretries") == 0)
		pg_atomic_fetch_add_u32(&classic_queue(queue->shm)->nretries, by);
	else if (strcmp(what, "doubt") == 0 && by > 0)
		aq_classic_doubts_add(FirstNormalTransactionId, queue->shm->object->index);
	else if (strcmp(what, "doubt") == 0)
		aq_classic_doubts_forget(queue->shm->object->index);
	else if (!damage_lease(queue, what, by))
		elog(ERROR, "there is no damage \"%s\"", what);
	PG_RETURN_VOID();
}

#endif
