/*-------------------------------------------------------------------------
 *
 * latch_find.c
 *	  Names of latches and mutexes; a latch by its name and number.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sync/sync_int.h"

const char *const aq_latch_names[AQ_LATCH_COUNT] = {
#define X(id, name, level, event, children, text) name,
#include "sync/common/latch_list.h"
#undef X
};

const char *const aq_mutex_names[AQ_MUTEX_TYPE_COUNT] = {
#define X(id, name, event_x, event_s, text) name,
#include "sync/common/mutex_list.h"
#undef X
};

int
aq_name_find(const char *const *names, int n, const char *name, int length)
{
	for (int i = 0; i < n; i++)
	{
		if ((int) strlen(names[i]) == length && pg_strncasecmp(names[i], name, length) == 0)
			return i;
	}
	return -1;
}

/* NULL: there is none (yet).  A latch once made is there for ever. */
AqLatch *
aq_latch_find(const char *name, int child)
{
	int			id = aq_name_find(aq_latch_names, AQ_LATCH_COUNT, name, (int) strlen(name));
	AqLatch    *latch;

	if (id < 0)
		return NULL;
	latch = (AqLatch *) (uintptr_t) pg_atomic_read_u64(&aq_sync_shared->latches[id]);
	while (latch != NULL && latch->child != child)
		latch = latch->next;
	return latch;
}
