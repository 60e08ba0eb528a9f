/*-------------------------------------------------------------------------
 *
 * xids.h
 *	  Sets of ids of transactions and subtransactions.
 *
 * The only headers of the server that it needs are those of ids, so that unit
 * tests can use it.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_XIDS_H
#define AQ_XIDS_H

#ifndef AQ_UNIT
#include "postgres.h"
#endif

#include "access/transam.h"

#define XIDS_MAX 12

/* Ids as ranges: see xids.c. */
typedef struct Xids
{
	uint32		n;
	struct
	{
		TransactionId first,	/* both included */
					last;
	}			ranges[XIDS_MAX];
} Xids;

extern bool aq_xids_have(const Xids *xids, TransactionId xid);
extern void aq_xids_add(Xids *xids, TransactionId first, TransactionId last);
extern void aq_xids_join(Xids *xids, const Xids *more);

#endif							/* AQ_XIDS_H */
