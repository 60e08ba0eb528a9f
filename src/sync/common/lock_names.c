/*-------------------------------------------------------------------------
 *
 * lock_names.c
 *	  Names of the kinds of latch and of the types of mutex.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sync/common/lock_names.h"

const char *const aq_lock_names_latches[AQ_LATCH_COUNT] = {
#define X(id, name, level, event, children, text) name,
#include "sync/common/latch_list.h"
#undef X
};

const char *const aq_lock_names_mutexes[AQ_MUTEX_TYPE_COUNT] = {
#define X(id, name, event_x, event_s, text) name,
#include "sync/common/mutex_list.h"
#undef X
};

int
aq_lock_names_find(const char *const *names, int n, const char *name, int length)
{
	for (int i = 0; i < n; i++)
	{
		if ((int) strlen(names[i]) == length && pg_strncasecmp(names[i], name, length) == 0)
			return i;
	}
	return -1;
}
