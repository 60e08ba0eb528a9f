/*-------------------------------------------------------------------------
 *
 * lab.c
 *	  The lab's own latches and mutexes, and lookup by name of other ones.
 *
 * Holding a real latch blocks all sessions that need it: the lab is for
 * superusers, on servers used for experiments.  The lab's own latches and
 * mutexes protect nothing.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "lab/lab_private.h"

#include "cache/cache.h"
#include "miscadmin.h"

#define LAB_LOCKS 8				/* number of latches, and of mutexes, numbered from 1 */

typedef struct Lab
{
	AqLatch		latches[LAB_LOCKS];
	AqMutex		mutexes[LAB_LOCKS];
} Lab;

static Lab *lab;

static Size
lab_shmem_size(void)
{
	return CACHELINEALIGN(sizeof(Lab));
}

static void
lab_shmem_init(void *area, bool found)
{
	lab = area;
	if (found)
		return;
	memset(area, 0, sizeof(Lab));
	for (int i = 0; i < LAB_LOCKS; i++)
	{
		aq_latch_init(&lab->latches[i], AQ_LATCH_LAB, i + 1);
		aq_mutex_init(&lab->mutexes[i], AQ_MUTEX_TYPE_LAB, i + 1);
	}
}

const AqPart aq_lab_part = {
	.name = "lab",
	.shmem_size = lab_shmem_size,
	.shmem_init = lab_shmem_init,
};

static AqLatchMode
parse_mode(const char *mode, bool mutex)
{
	if (pg_strcasecmp(mode, "exclusive") == 0)
		return AQ_EXCLUSIVE;
	if (pg_strcasecmp(mode, "shared") == 0)
		return AQ_SHARED;
	if (mutex && pg_strcasecmp(mode, "examine") == 0)
		return AQ_EXAMINE;
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("mode \"%s\" is not valid for a %s", mode, mutex ? "mutex" : "latch"),
			 mutex ? errhint("Use exclusive, shared or examine.") : errhint("Use exclusive or shared.")));
}

static void
require_superuser(void)
{
	aq_session_require_preload();
	if (!superuser())
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("must be superuser to use the lab")));
}

AqLabTarget
aq_lab_latch(const char *name, int child, const char *mode)
{
	AqLabTarget target = {.mode = parse_mode(mode, false)};

	require_superuser();
	target.latch = aq_latch_find(name, child);
	if (target.latch == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("there is no latch \"%s\" with child number %d", name, child),
				 errhint("sys.\"v$latch_children\" lists those with children, sys.\"v$latchname\" all kinds; a latch without children has the child number 0.")));
	return target;
}

/*
 * "lab 1" to "lab 8" are the lab's mutexes; a number is the hash value of an
 * object in the object cache.
 */
AqLabTarget
aq_lab_mutex(const char *name, const char *mode)
{
	AqLabTarget target = {.mode = parse_mode(mode, true)};
	unsigned	number;
	int			length = 0;

	require_superuser();
	if (sscanf(name, "lab %u%n", &number, &length) == 1 && name[length] == '\0' &&
		number >= 1 && number <= LAB_LOCKS)
		target.mutex = &lab->mutexes[number - 1];
	else if (sscanf(name, "%u%n", &number, &length) == 1 && name[length] == '\0')
	{
		for (uint32 i = 1; i <= (uint32) aq_handle_limit && target.mutex == NULL; i++)
		{
			AqObject   *object = aq_handle_by_index(i);

			if (object->state != AQ_OBJECT_FREE && object->hash == number)
				target.mutex = &object->mutex;
		}
	}
	if (target.mutex == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("there is no mutex \"%s\"", name),
				 errhint("Name one of the lab's own, lab 1 to lab %d, or an object of the object cache by its hash value.", LAB_LOCKS)));
	return target;
}
