/*-------------------------------------------------------------------------
 *
 * local_time.c
 *	  Instants and the times that clocks in a time zone show.
 *
 * Both are seconds since 1970; a local time is counted as if it were UTC.  When
 * clocks are put forward, some local times do not exist; when they are put
 * back, some exist twice.  Only one change of the clocks within a day before
 * and after the local time is considered, as in PostgreSQL's own
 * DetermineTimeZoneOffset().
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "schedule/schedule_private.h"

#define SECONDS_PER_DAY ((pg_time_t) 86400)

pg_time_t
aq_local_time_at(pg_time_t instant, pg_tz *zone)
{
	struct pg_tm *tm = pg_localtime(&instant, zone);

	if (tm == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("timestamp out of range")));
	return instant + tm->tm_gmtoff;
}

AqLocalTime
aq_local_time_find(pg_time_t local, pg_tz *zone)
{
	pg_time_t	day_before = local - SECONDS_PER_DAY;
	pg_time_t	change;
	long		before,
				after;
	int			before_dst,
				after_dst;
	pg_time_t	old_instant,
				new_instant;
	int			result = pg_next_dst_boundary(&day_before, &before, &before_dst, &change, &after, &after_dst, zone);

	if (result < 0)
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("timestamp out of range")));
	/* the instant by the clocks before the change, and by those after it */
	old_instant = local - before;
	new_instant = result == 0 ? old_instant : local - after;
	if (result == 0 || (old_instant < change && new_instant < change))
		return (AqLocalTime) {true, old_instant, old_instant};
	if (old_instant >= change && new_instant >= change)
		return (AqLocalTime) {true, new_instant, new_instant};
	if (old_instant < change)
		return (AqLocalTime) {true, old_instant, new_instant};
	return (AqLocalTime) {false, change, change};
}
