/*-------------------------------------------------------------------------
 *
 * producer.c
 *	  Identities of producers.
 *
 * Messages of a producer keep their order, and its transactions come one after
 * the other, so a role that may enqueue can keep a producer that it can name
 * waiting.  Producers of pgaq itself, such as schedules, have no names: the two
 * highest bits of their identities are 10, those of named producers are 11, and
 * sessions are positive.
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
 * Of a name; 0: there is none.  If two names have the same identity, their
 * messages have one order, without other effects.
 */
int64
aq_producer_named(const text *name)
{
	if (name == NULL)
		return 0;
	return -1 - (int64) (hash_bytes_extended((const unsigned char *) VARDATA_ANY(name), VARSIZE_ANY_EXHDR(name), 0) >> 2);
}

/* Of pgaq itself; the number distinguishes producers of the kind. */
int64
aq_producer_own(AqProducerKind kind, uint64 number)
{
	return PG_INT64_MIN + (int64) ((uint64) kind << KIND_SHIFT | (number & NUMBER_MASK));
}
