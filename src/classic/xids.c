/*-------------------------------------------------------------------------
 *
 * xids.c
 *	  Sets of ids of transactions and subtransactions.
 *
 * A set is a few ranges of ids that follow each other: subtransactions of a
 * session get such ids while no other session needs one.  When all ranges are
 * used, the last one grows, over ids that are not in the set.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "classic/classic_private.h"

#include "access/transam.h"

bool
aq_xids_have(const Xids *xids, TransactionId xid)
{
	for (uint32 i = 0; i < xids->n; i++)
		if (TransactionIdFollowsOrEquals(xid, xids->ranges[i].first) &&
			TransactionIdPrecedesOrEquals(xid, xids->ranges[i].last))
			return true;
	return false;
}

/* Adds the ids from first to last.  None of them is in the set, or all are. */
void
aq_xids_add(Xids *xids, TransactionId first, TransactionId last)
{
	uint32		i = xids->n;
	TransactionId next;

	if (aq_xids_have(xids, first))
		return;
	if (i > 0)
	{
		next = xids->ranges[i - 1].last;
		TransactionIdAdvance(next);
		if (next == first || i == XIDS_MAX)
		{
			if (TransactionIdPrecedes(first, xids->ranges[i - 1].first))
				xids->ranges[i - 1].first = first;
			if (TransactionIdFollows(last, xids->ranges[i - 1].last))
				xids->ranges[i - 1].last = last;
			return;
		}
	}
	xids->ranges[i].first = first;
	xids->ranges[i].last = last;
	xids->n++;
}

void
aq_xids_join(Xids *xids, const Xids *more)
{
	for (uint32 i = 0; i < more->n; i++)
		aq_xids_add(xids, more->ranges[i].first, more->ranges[i].last);
}
