/*-------------------------------------------------------------------------
 *
 * step.c
 *	  Steps, and the message ids that contain them.
 *
 * Steps come from an atomic counter in shared memory that follows the clock,
 * so they grow with the enqueue calls, even over restarts, and are unique
 * within a microsecond.
 *
 * A message id is a UUID of version 8: the queue's key (60 bits), version,
 * variant, and the step (62 bits).
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "classic/classic_private.h"

#include "utils/uuid.h"

#define STEP_MASK ((UINT64CONST(1) << 62) - 1)

int64
aq_step_next(AqQueueShm *shm)
{
	pg_atomic_uint64 *latest = &classic_queue(shm)->step;
	uint64		now = (uint64) GetCurrentTimestamp() << STEP_SHIFT;
	uint64		last = pg_atomic_read_u64(latest);
	uint64		step;

	do
		step = Max(last + STEP_GAP, now);
	while (!pg_atomic_compare_exchange_u64(latest, &last, step));
	return (int64) step;
}

pg_uuid_t
aq_step_message_id(uint64 key, int64 step)
{
	pg_uuid_t	id;
	uint64		high = (key >> 12 << 16) | UINT64CONST(0x8000) | (key & 0xFFF);
	uint64		low = UINT64CONST(0x8000000000000000) | ((uint64) step & STEP_MASK);

	for (int i = 0; i < 8; i++)
	{
		id.data[i] = high >> (56 - 8 * i);
		id.data[8 + i] = low >> (56 - 8 * i);
	}
	return id;
}

/* Returns false if the id is not from this queue. */
bool
aq_step_of_id(const pg_uuid_t *id, uint64 key, int64 *step)
{
	uint64		high = 0,
				low = 0;

	for (int i = 0; i < 8; i++)
	{
		high = high << 8 | id->data[i];
		low = low << 8 | id->data[8 + i];
	}
	*step = low & STEP_MASK;
	return (high >> 16 << 12 | (high & 0xFFF)) == key && (high & 0xF000) == 0x8000 && low >> 62 == 2;
}
