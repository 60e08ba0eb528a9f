/*-------------------------------------------------------------------------
 *
 * latch_find.c
 *	  Finds a latch by its name and number.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sync/common/lock_names.h"
#include "sync/common/sync_shared.h"
#include "sync/latches/latch.h"

/*
 * Returns NULL if the latch has not been created (yet).  Latches are never
 * destroyed.
 */
AqLatch *
aq_latch_find(const char *name, int child)
{
	int			id = aq_lock_names_find(aq_lock_names_latches, AQ_LATCH_COUNT, name, (int) strlen(name));
	AqLatch    *latch;

	if (id < 0)
		return NULL;
	latch = (AqLatch *) (uintptr_t) pg_atomic_read_u64(&aq_sync_shared->latches[id]);
	while (latch != NULL && latch->child != child)
		latch = latch->next;
	return latch;
}
