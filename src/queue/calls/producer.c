/*-------------------------------------------------------------------------
 *
 * producer.c
 *	  Identities of producers.
 *
 * Messages of a producer keep their order, so its transactions wait for each other: a
 * role that may enqueue can block a producer that has a name.  Producers of pgaq
 * itself, such as schedules, have no names.  The two highest bits of their identities
 * are 10, those of named producers are 11; identities of sessions are positive.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/calls/calls_private.h"

#include "common/hashfn.h"

#define KIND_SHIFT 60
#define NUMBER_MASK ((UINT64CONST(1) << KIND_SHIFT) - 1)

/*
 * The identity of a named producer; 0 if the name is null.  If two names have the same
 * identity, their messages share one order, with no other effect.
 */
int64
aq_producer_named(const text *name)
{
	if (name == NULL)
		return 0;
	return -1 - (int64) (hash_bytes_extended((const unsigned char *) VARDATA_ANY(name), VARSIZE_ANY_EXHDR(name), 0) >> 2);
}

/*
 * The affinity of this name; 0 if it is null.  A producer of the same name has the same
 * shard.
 */
uint64
aq_producer_affinity(const text *name)
{
	return (uint64) aq_producer_named(name);
}

/* Of pgaq itself; the number distinguishes producers of the kind. */
int64
aq_producer_own(AqProducerKind kind, uint64 number)
{
	return PG_INT64_MIN + (int64) ((uint64) kind << KIND_SHIFT | (number & NUMBER_MASK));
}
