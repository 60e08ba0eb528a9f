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
#include "classic/xids.h"

/* The number of the range with this id; -1: the set does not have it. */
static int
find_range(const Xids *xids, TransactionId xid)
{
	for (int i = 0; i < (int) xids->n; i++)
		if (TransactionIdFollowsOrEquals(xid, xids->ranges[i].first) &&
			TransactionIdPrecedesOrEquals(xid, xids->ranges[i].last))
			return i;
	return -1;
}

bool
aq_xids_have(const Xids *xids, TransactionId xid)
{
	return find_range(xids, xid) >= 0;
}

/*
 * Adds the ids from first to last.  The set may have only the first of them, in a
 * range that has grown.
 */
void
aq_xids_add(Xids *xids, TransactionId first, TransactionId last)
{
	int			i = find_range(xids, first);
	int			n = xids->n;

	if (i < 0 && n > 0)
	{
		TransactionId next = xids->ranges[n - 1].last;

		TransactionIdAdvance(next);
		if (next == first || n == XIDS_MAX)
			i = n - 1;
	}
	if (i < 0)
	{
		i = xids->n++;
		xids->ranges[i].first = first;
		xids->ranges[i].last = last;
		return;
	}
	if (TransactionIdPrecedes(first, xids->ranges[i].first))
		xids->ranges[i].first = first;
	if (TransactionIdFollows(last, xids->ranges[i].last))
		xids->ranges[i].last = last;
}

void
aq_xids_join(Xids *xids, const Xids *more)
{
	for (uint32 i = 0; i < more->n; i++)
		aq_xids_add(xids, more->ranges[i].first, more->ranges[i].last);
}
