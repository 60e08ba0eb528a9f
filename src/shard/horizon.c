/*-------------------------------------------------------------------------
 *
 * horizon.c
 *	  Which consumed messages a snapshot may still have to see.
 *
 * A consumed partition may be truncated when each snapshot that can read its
 * tables sees all its messages as taken.  PostgreSQL's own horizon answers
 * another question: which rows of any table, catalogs included, VACUUM must
 * keep.  Much of what holds that back cannot read messages:
 *
 *	session of this database	its snapshot counts
 *	session of another one		cannot read the tables
 *	transaction without a snapshot, prepared transaction
 *								reads nothing; its messages keep the partition
 *								in use
 *	VACUUM						needs no row that it has not seen
 *	slot's catalog_xmin			protects catalogs only
 *	logical slot's xmin			set while a snapshot for reading tables is
 *								made; counts in its own database
 *	standby without a slot		its xmin counts while it is connected
 *	standby with a slot			its xmin counts while it is connected, and for
 *								SLOT_PATIENCE afterwards: it may come back
 *
 * An abandoned slot keeps its xmin forever, but a standby that has been away
 * has read nothing of what is new.
 *
 * The answer is good for transactions that had ended before the question was
 * asked: a snapshot that is taken later sees them as ended, however old its
 * xmin is.  One that ends later may be running for a snapshot that the answer
 * has not seen.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/shard_private.h"

#include "replication/slot.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/*
 * A standby that loses its connection tries again after
 * wal_retrieve_retry_interval, 5 s by default: how long its slot counts,
 * microseconds.
 */
#define SLOT_PATIENCE ((int64) 8000000)

/* A slot is known to have been unused in between if it is polled this often, microseconds. */
#define SLOT_POLL ((int64) 1000000)

/* A standby's slot, as the process saw it last. */
typedef struct SlotSeen
{
	TransactionId xmin;
	TimestampTz since;			/* unused, with this xmin, at each poll since then */
} SlotSeen;

static SlotSeen *seen;
static TimestampTz last_poll;

static TransactionId
older(TransactionId a, TransactionId b)
{
	return TransactionIdPrecedes(b, a) ? b : a;
}

/* Does the xmin of slot number i count? */
static bool
slot_counts(int i, const AqSlotLook *look, TimestampTz now)
{
	if (look->database != InvalidOid)
		return look->database == MyDatabaseId;
	if (look->active || look->xmin != seen[i].xmin || now - last_poll > SLOT_POLL)
	{
		seen[i].xmin = look->xmin;
		seen[i].since = now;
	}
	return now - seen[i].since < SLOT_PATIENCE;
}

static TransactionId
oldest_of_slots(TransactionId horizon)
{
	TimestampTz now = GetCurrentTimestamp();

	if (seen == NULL && max_replication_slots > 0)
		seen = MemoryContextAllocZero(TopMemoryContext, max_replication_slots * sizeof(SlotSeen));
	for (int i = 0; i < max_replication_slots; i++)
	{
		AqSlotLook	look;

		if (aq_compat_slot_look(i, &look) && slot_counts(i, &look, now))
			horizon = older(look.xmin, horizon);
	}
	last_poll = now;
	return horizon;
}

/* The newest transaction that can have ended by now. */
TransactionId
aq_horizon_newest(void)
{
	TransactionId newest = ReadNextTransactionId();

	TransactionIdRetreat(newest);
	return newest;
}

/*
 * The transactions before this one that have ended, have ended for every
 * snapshot that can read this database's messages.
 */
TransactionId
aq_horizon_oldest(void)
{
	return oldest_of_slots(aq_compat_oldest_xmin());
}
