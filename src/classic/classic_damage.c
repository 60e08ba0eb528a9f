/*-------------------------------------------------------------------------
 *
 * classic_damage.c
 *	  For builds with TEST_POINTS=1: damages the shared memory of a queue in a
 *	  queue table, so that aq.check() must find it. by: 1 makes the damage, -1
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
	else
		elog(ERROR, "there is no damage \"%s\"", what);
	PG_RETURN_VOID();
}

#endif
