/*-------------------------------------------------------------------------
 *
 * bitmap.h
 *	  Bitmaps with one bit per message of a partition.
 *
 * They are arrays of 64-bit words; the caller holds the stream's latch.  No
 * header of the server is needed, so that unit tests can use them.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_BITMAP_H
#define AQ_BITMAP_H

#include <stdbool.h>
#include <stdint.h>

#define AQ_BITMAP_NONE (-1)

static inline bool
aq_bitmap_test(const uint64_t *words, uint32_t bit)
{
	return (words[bit >> 6] >> (bit & 63)) & 1;
}

/* Returns whether the bit was clear before. */
static inline bool
aq_bitmap_set(uint64_t *words, uint32_t bit)
{
	uint64_t	mask = UINT64_C(1) << (bit & 63);
	bool		clear = (words[bit >> 6] & mask) == 0;

	words[bit >> 6] |= mask;
	return clear;
}

/* Returns whether the bit was set before. */
static inline bool
aq_bitmap_clear(uint64_t *words, uint32_t bit)
{
	uint64_t	mask = UINT64_C(1) << (bit & 63);
	bool		set = (words[bit >> 6] & mask) != 0;

	words[bit >> 6] &= ~mask;
	return set;
}

/* Sets count bits from first on, which must be clear. */
static inline void
aq_bitmap_set_range(uint64_t *words, uint32_t first, uint32_t count)
{
	while (count > 0)
	{
		uint32_t	shift = first & 63;
		uint32_t	n = 64 - shift < count ? 64 - shift : count;
		uint64_t	mask = n == 64 ? ~UINT64_C(0) : ((UINT64_C(1) << n) - 1) << shift;

		words[first >> 6] |= mask;
		first += n;
		count -= n;
	}
}

/*
 * The first set bit at or after "from", of nbits; AQ_BITMAP_NONE if there is
 * none.
 */
static inline int
aq_bitmap_next(const uint64_t *words, uint32_t nbits, uint32_t from)
{
	uint32_t	nwords = (nbits + 63) / 64;
	uint32_t	word = from >> 6;
	uint64_t	w;

	if (from >= nbits)
		return AQ_BITMAP_NONE;
	w = words[word] & (~UINT64_C(0) << (from & 63));
	for (;;)
	{
		if (w != 0)
			return (int) (word * 64 + (uint32_t) __builtin_ctzll(w));
		if (++word >= nwords)
			return AQ_BITMAP_NONE;
		w = words[word];
	}
}

#endif							/* AQ_BITMAP_H */
