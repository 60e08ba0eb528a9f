/*-------------------------------------------------------------------------
 *
 * prepared_counts.c
 *	  How many messages of each consumer a transaction that is being prepared has
 *	  enqueued, purged or acknowledged, to be counted when it commits.
 *
 * One call can do this for a thousand consumers, and entries for retries are
 * few.  So an entry is not a consumer with its number of messages, but a power of
 * two with the consumers that have this bit in their numbers.  For each kind and
 * queue, a transaction needs as many entries as its largest number has bits,
 * whatever the consumers.
 *
 * The entries are reserved before the transaction is prepared, and passed to
 * the worker afterwards.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "classic/classic_private.h"

typedef struct CountSet
{
	AqQueueShm *shm;
	uint32		index;
} CountSet;

/* in TopMemoryContext, grown as needed, emptied at the transaction's end */
static CountSet *sets;
static int	nsets,
			sets_size;

static Retry *
find_set(AqQueueShm *shm, NoteKind kind, uint32 n)
{
	for (int i = 0; i < nsets; i++)
	{
		Retry	   *retry = &aq_classic_area_retries[sets[i].index];

		if (sets[i].shm == shm && retry->effect.kind == kind && retry->effect.n == n)
			return retry;
	}
	return NULL;
}

/* NULL if reserve() has none. */
static Retry *
new_set(AqQueueShm *shm, NoteKind kind, uint32 n, Oid role, uint32 (*reserve) (Oid role))
{
	Retry	   *retry;
	uint32		index;

	sets = aq_array_room(sets, &sets_size, nsets + 1, sizeof(CountSet));
	index = reserve(role);
	if (index == 0)
		return NULL;
	sets[nsets++] = (CountSet) {shm, index};
	retry = &aq_classic_area_retries[index];
	retry->effect = (Effect) {.kind = kind, .n = n};
	memset(retry->consumers, 0, sizeof(retry->consumers));
	return retry;
}

/*
 * The transaction has n messages of this kind for the consumer.  reserve: gets an
 * entry for a transaction of the role; returns 0, or raises an error, if it gets
 * none.
 */
void
aq_prepared_counts_add(AqQueueShm *shm, NoteKind kind, int position, uint32 n, Oid role, uint32 (*reserve) (Oid role))
{
	for (uint32 bit = 1; bit != 0; bit <<= 1)
	{
		Retry	   *retry;

		if ((n & bit) == 0)
			continue;
		retry = find_set(shm, kind, bit);
		if (retry == NULL)
			retry = new_set(shm, kind, bit, role, reserve);
		if (retry != NULL)
			retry->consumers[position / 64] |= UINT64CONST(1) << (position % 64);
	}
}

/* The transaction is prepared: what was added goes to the worker. */
void
aq_prepared_counts_pass(TransactionId doubt)
{
	for (int i = 0; i < nsets; i++)
	{
		aq_classic_area_retries[sets[i].index].doubt = doubt;
		aq_retry_list_add(sets[i].shm, sets[i].index);
	}
	nsets = 0;
}

/* It is not prepared. */
void
aq_prepared_counts_forget(void)
{
	while (nsets > 0)
		aq_retry_list_free(sets[--nsets].index);
}
