/*-------------------------------------------------------------------------
 *
 * array.c
 *	  Arrays of the session that grow as needed and are never made smaller.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "base/base.h"
#include "utils/memutils.h"

/* See aq_array_room().  An error leaves the array and its size as they are. */
void *
aq_array_grow(void *array, int *size, int needed, Size element)
{
	int			larger = Max(2 * *size, Max(needed, 16));

	array = array ? repalloc_huge(array, larger * element)
		: MemoryContextAllocHuge(TopMemoryContext, larger * element);
	*size = larger;
	return array;
}
