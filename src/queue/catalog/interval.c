/*-------------------------------------------------------------------------
 *
 * interval.c
 *	  Intervals in microseconds.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/catalog/catalog_private.h"

#include "utils/timestamp.h"

/* now plus a delay plus an expiration must still be a valid timestamp */
#define LONGEST_YEARS 100000
#define LONGEST (LONGEST_YEARS * (int64) (MONTHS_PER_YEAR * DAYS_PER_MONTH) * USECS_PER_DAY)

/* Months count as 30 days, as in interval comparisons; at most LONGEST. */
int64
aq_interval_to_us(Datum datum)
{
	Interval   *i = DatumGetIntervalP(datum);
	double		us = i->time + (i->day + (double) i->month * DAYS_PER_MONTH) * USECS_PER_DAY;

	if (us >= LONGEST || us <= -LONGEST)
		return us < 0 ? -LONGEST : LONGEST;
	return i->time + ((int64) i->day + (int64) i->month * DAYS_PER_MONTH) * USECS_PER_DAY;
}

/* The same for an option; raises this error if it is too long. */
int64
aq_interval_option(Datum datum, AqErrorId error, const char *what)
{
	int64		us = aq_interval_to_us(datum);

	if (us == LONGEST)
		ereport(ERROR,
				aq_error(error, "\"%s\" is out of range", what),
				errhint("It must be shorter than %d years.", LONGEST_YEARS));
	return us;
}

/*
 * The time from now until a time of an option; raises this error if it is too
 * long.
 */
int64
aq_interval_until(TimestampTz when, TimestampTz now, AqErrorId error, const char *what)
{
	if (when <= now)
		return 0;
	if (when - now >= LONGEST)
		ereport(ERROR,
				aq_error(error, "\"%s\" is out of range", what),
				errhint("It must be less than %d years away.", LONGEST_YEARS));
	return when - now;
}
