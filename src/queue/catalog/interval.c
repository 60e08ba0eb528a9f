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

/* Months count as 30 days, as in interval comparisons; at most AQ_INTERVAL_LONGEST. */
int64
aq_interval_to_us(Datum datum)
{
	Interval   *i = DatumGetIntervalP(datum);
	double		us = i->time + (i->day + (double) i->month * DAYS_PER_MONTH) * USECS_PER_DAY;

	if (us >= AQ_INTERVAL_LONGEST || us <= -AQ_INTERVAL_LONGEST)
		return us < 0 ? -AQ_INTERVAL_LONGEST : AQ_INTERVAL_LONGEST;
	return i->time + ((int64) i->day + (int64) i->month * DAYS_PER_MONTH) * USECS_PER_DAY;
}

/* The same for an option; raises this error if it is too long. */
int64
aq_interval_option(Datum datum, AqErrorId error, const char *what)
{
	int64		us = aq_interval_to_us(datum);

	if (us == AQ_INTERVAL_LONGEST)
		ereport(ERROR,
				aq_error(error, "\"%s\" is out of range", what),
				errhint("It must be shorter than %d years.", AQ_INTERVAL_LONGEST_YEARS));
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
	if (when - now >= AQ_INTERVAL_LONGEST)
		ereport(ERROR,
				aq_error(error, "\"%s\" is out of range", what),
				errhint("It must be less than %d years away.", AQ_INTERVAL_LONGEST_YEARS));
	return when - now;
}
