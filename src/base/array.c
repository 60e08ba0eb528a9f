/*-------------------------------------------------------------------------
 *
 * array.c
 *	  Arrays in session memory.  They grow as needed and never shrink.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "base/base.h"
#include "utils/memutils.h"

/* See aq_array_room(). An error leaves the array and its size unchanged. */
void *
aq_array_grow(void *array, int *size, int needed, Size element)
{
	int			larger = Max(2 * *size, Max(needed, 16));

	array = array ? repalloc_huge(array, larger * element)
		: MemoryContextAllocHuge(TopMemoryContext, larger * element);
	*size = larger;
	return array;
}
