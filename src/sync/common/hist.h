/*-------------------------------------------------------------------------
 *
 * hist.h
 *	  Histograms of microseconds by powers of two.
 *
 * Bucket 0 counts durations below 1 us, bucket k those from 2^(k-1) us to
 * below 2^k us; the last bucket also counts all longer ones.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_HIST_H
#define AQ_HIST_H

#include "sync/common/atomics.h"

#define AQ_HIST_BUCKETS 33		/* upper bounds 1 us .. 2^32 us */

static inline int
aq_hist_bucket(int64 us)
{
	int			bucket = 0;

	if (us > 0)
		bucket = 64 - __builtin_clzll((unsigned long long) us);
	return Min(bucket, AQ_HIST_BUCKETS - 1);
}

/* Exclusive upper bound of a bucket, in microseconds. */
static inline int64
aq_hist_bound(int bucket)
{
	return INT64CONST(1) << bucket;
}

#endif							/* AQ_HIST_H */
