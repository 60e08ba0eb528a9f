/*-------------------------------------------------------------------------
 *
 * horizon.c
 *	  The horizon of consumed messages: which of them may a snapshot still have
 *	  to see?
 *
 * A consumed partition may be truncated when each snapshot that can read its
 * tables sees all its messages as taken.  PostgreSQL's own horizon is for the
 * rows of any table, including catalogs, that VACUUM must keep.  Much that
 * holds it back cannot read messages:
 *
 *	session of this database	its snapshot counts
 *	other database's session	cannot read the tables
 *	transaction without a snapshot, prepared transaction
 *								reads nothing; its messages keep the partition
 *								in use
 *	VACUUM						does not read consumed rows
 *	slot's catalog_xmin			protects catalogs only
 *	logical slot's xmin			set while a snapshot for reading tables is
 *								made; counts in its own database
 *	standby without a slot		its xmin counts while it is connected
 *	standby with a slot			its xmin counts while it is connected, and for
 *								SLOT_PATIENCE afterwards: it may reconnect
 *
 * An abandoned slot keeps its xmin forever, but a standby that was
 * disconnected has not read newer messages.
 *
 * The result is valid for transactions that had ended before it was computed:
 * snapshots taken later see them as ended, however old their xmin is.  A
 * transaction that ends later may be running for a snapshot that was not
 * considered.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/worker/worker_private.h"

#include "replication/slot.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/*
 * How long the slot of a disconnected standby counts, in microseconds.  The
 * standby tries to reconnect after wal_retrieve_retry_interval, 5 s by
 * default.
 */
#define SLOT_PATIENCE ((int64) 8000000)

/*
 * Polls at most this far apart show that a slot was not used in between, in
 * microseconds.
 */
#define SLOT_POLL ((int64) 1000000)

/* State of a standby's slot at the last poll by this process. */
typedef struct SlotSeen
{
	TransactionId xmin;
	TimestampTz since;			/* it was unused, with this xmin, at each poll since this time */
} SlotSeen;

static SlotSeen *seen;
static TimestampTz last_poll;

static TransactionId
older(TransactionId a, TransactionId b)
{
	return TransactionIdPrecedes(b, a) ? b : a;
}

/* Does the xmin of replication slot i count? */
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

/* The latest transaction that can have ended by now. */
TransactionId
aq_horizon_newest(void)
{
	TransactionId newest = ReadNextTransactionId();

	TransactionIdRetreat(newest);
	return newest;
}

/*
 * Transactions before this one that have ended are seen as ended by every
 * snapshot that can read this database's messages.
 */
TransactionId
aq_horizon_oldest(void)
{
	return oldest_of_slots(aq_compat_oldest_xmin());
}
