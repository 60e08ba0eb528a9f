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

/*
 * What a session notes to be added to a histogram later.  Most buckets stay empty, so
 * only those in the bitmap are initialized.
 */
typedef struct AqHistNote
{
	uint64		total;			/* microseconds */
	uint64		used;			/* bitmap of buckets */
	uint32		counts[AQ_HIST_BUCKETS];
} AqHistNote;

static inline void
aq_hist_note_bucket(AqHistNote *note, int bucket, uint32 n)
{
	uint64		bit = UINT64CONST(1) << bucket;

	note->counts[bucket] = (note->used & bit) ? note->counts[bucket] + n : n;
	note->used |= bit;
}

/* Notes n durations that are us on average, in units of 2^shift microseconds. */
static inline void
aq_hist_note(AqHistNote *note, int64 us, int shift, uint32 n)
{
	note->total += us * n;
	aq_hist_note_bucket(note, aq_hist_bucket(us >> shift), n);
}

/* The buckets of a note: for (used = note->used; used != 0; used &= used - 1). */
static inline int
aq_hist_first(uint64 used)
{
	return __builtin_ctzll((unsigned long long) used);
}

static inline void
aq_hist_join(AqHistNote *note, const AqHistNote *more)
{
	note->total += more->total;
	for (uint64 used = more->used; used != 0; used &= used - 1)
		aq_hist_note_bucket(note, aq_hist_first(used), more->counts[aq_hist_first(used)]);
}

#endif							/* AQ_HIST_H */
