/*-------------------------------------------------------------------------
 *
 * doubt_table.c
 *	  The entries of prepared transactions, one for each partition that a
 *	  transaction has used.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/partitions/partitions_private.h"

#include "access/twophase.h"

/*
 * Adds an entry, for which there must be room.  The caller holds the table's
 * latch.
 */
static void
add_entry(const Partition *partition, TransactionId xid, int64 session, bool preparing)
{
	Doubt	   *entry = aq_area_doubts;

	while (entry->partition != 0)
		entry++;
	entry->partition = partition->index;
	entry->xid = xid;
	entry->session = session;
	entry->sequence = ++aq_area->doubt_sequence;
	entry->preparing = preparing;
	entry->takes_settled = false;
	pg_atomic_fetch_add_u32(&aq_area->ndoubts, 1);
}

/* Returns false if the table is full. */
bool
aq_doubt_table_add(Partition *partition, TransactionId xid, int64 session, bool preparing)
{
	bool		room;

	aq_latch_get(&aq_area->doubt_latch, AQ_EXCLUSIVE, AQ_LOC_DOUBT_ADD);
	room = pg_atomic_read_u32(&aq_area->ndoubts) < aq_area->max_doubts;
	if (room)
		add_entry(partition, xid, session, preparing);
	aq_latch_free(&aq_area->doubt_latch);
	return room;
}

/*
 * Adds all entries that loading the partition has found, with their sessions,
 * or none.
 */
bool
aq_doubt_table_add_all(Partition *partition, const List *xids, const List *sessions)
{
	bool		room;
	ListCell   *x,
			   *s;

	aq_latch_get(&aq_area->doubt_latch, AQ_EXCLUSIVE, AQ_LOC_DOUBT_ADD);
	room = pg_atomic_read_u32(&aq_area->ndoubts) + list_length(xids) <= aq_area->max_doubts;
	if (room)
		forboth(x, xids, s, sessions)
			add_entry(partition, (TransactionId) lfirst_oid(x), (int64) (intptr_t) lfirst(s), false);
	aq_latch_free(&aq_area->doubt_latch);
	return room;
}

/* Raises the error for a full table. */
void
aq_doubt_table_refuse(void)
{
	ereport(ERROR,
			aq_error(AQ_ERR_LIMIT_REACHED, "too many partitions are in use by prepared transactions"),
			errhint("Finish some of them, or raise max_prepared_transactions (now %d) and restart the server.",
					max_prepared_xacts));
}

void
aq_doubt_table_remove(uint32 partition, TransactionId xid)
{
	aq_latch_get(&aq_area->doubt_latch, AQ_EXCLUSIVE, AQ_LOC_DOUBT_SWEEP);
	for (uint32 i = 0; i < aq_area->max_doubts; i++)
		if (aq_area_doubts[i].partition == partition && aq_area_doubts[i].xid == xid)
		{
			aq_area_doubts[i].partition = 0;
			pg_atomic_fetch_sub_u32(&aq_area->ndoubts, 1);
		}
	aq_latch_free(&aq_area->doubt_latch);
}

void
aq_doubt_table_takes_settled(uint32 partition, TransactionId xid)
{
	aq_latch_get(&aq_area->doubt_latch, AQ_EXCLUSIVE, AQ_LOC_DOUBT_SWEEP);
	for (uint32 i = 0; i < aq_area->max_doubts; i++)
		if (aq_area_doubts[i].partition == partition && aq_area_doubts[i].xid == xid)
			aq_area_doubts[i].takes_settled = true;
	aq_latch_free(&aq_area->doubt_latch);
}

bool
aq_doubt_table_has(Partition *partition, TransactionId xid)
{
	bool		known = false;

	aq_latch_get(&aq_area->doubt_latch, AQ_SHARED, AQ_LOC_DOUBT_ADD);
	for (uint32 i = 0; i < aq_area->max_doubts && !known; i++)
		known = aq_area_doubts[i].partition == partition->index && aq_area_doubts[i].xid == xid;
	aq_latch_free(&aq_area->doubt_latch);
	return known;
}

/* Copies the transactions in doubt in the partition; returns their number. */
uint32
aq_doubt_table_xids(const Partition *partition, TransactionId *xids)
{
	uint32		n = 0;

	aq_latch_get(&aq_area->doubt_latch, AQ_SHARED, AQ_LOC_DOUBT_SWEEP);
	for (uint32 i = 0; i < aq_area->max_doubts; i++)
		if (aq_area_doubts[i].partition == partition->index)
			xids[n++] = aq_area_doubts[i].xid;
	aq_latch_free(&aq_area->doubt_latch);
	return n;
}

/*
 * The session's latest prepared transaction in the stream, in partitions with
 * numbers lower than "before".  Messages with a delay have no order, so they
 * are not followers.
 */
TransactionId
aq_doubt_table_of_session(uint32 stream, int64 session, int64 before)
{
	TransactionId xid = InvalidTransactionId;
	uint64		newest = 0;

	if (stream_at(stream)->delayed)
		return InvalidTransactionId;
	aq_latch_get(&aq_area->doubt_latch, AQ_SHARED, AQ_LOC_DOUBT_ADD);
	for (uint32 i = 0; i < aq_area->max_doubts; i++)
		if (aq_area_doubts[i].partition != 0 && aq_area_doubts[i].session == session &&
			aq_area_doubts[i].sequence > newest &&
			partition_at(aq_area_doubts[i].partition)->stream == stream &&
			partition_at(aq_area_doubts[i].partition)->number < before)
		{
			xid = aq_area_doubts[i].xid;
			newest = aq_area_doubts[i].sequence;
		}
	aq_latch_free(&aq_area->doubt_latch);
	return xid;
}

/* Removes the partition's entries, because its queue was dropped. */
void
aq_doubt_table_forget(Partition *partition)
{
	if (pg_atomic_read_u32(&aq_area->ndoubts) == 0)
		return;
	aq_latch_get(&aq_area->doubt_latch, AQ_EXCLUSIVE, AQ_LOC_DOUBT_SWEEP);
	for (uint32 i = 0; i < aq_area->max_doubts; i++)
		if (aq_area_doubts[i].partition == partition->index)
		{
			aq_area_doubts[i].partition = 0;
			pg_atomic_fetch_sub_u32(&aq_area->ndoubts, 1);
		}
	aq_latch_free(&aq_area->doubt_latch);
}
