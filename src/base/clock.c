/*-------------------------------------------------------------------------
 *
 * clock.c
 *	  The only place where pgaq reads a clock for measuring.
 *
 * Monotonic: the time of day may be set back, a wait may not become negative.
 * Times that mean a date (enqueue time, expiration) are the server's
 * TimestampTz and have nothing to do with this file.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <time.h>

#include "base/base.h"

int64
aq_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64) now.tv_sec * INT64CONST(1000000000) + now.tv_nsec;
}

int64
aq_clock_us(void)
{
	return aq_clock_ns() / 1000;
}
