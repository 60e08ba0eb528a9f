/*-------------------------------------------------------------------------
 *
 * timing.c
 *	  The times of a schedule: by a cron expression or by an interval, in a time
 *	  zone, from a start on, until an end.
 *
 * The times of an interval are the start plus multiples of it.  Its months and
 * days are counted on the calendar of the time zone: every day at the same time
 * of the clock, every month on the day of the start, or on the month's last day
 * if it is shorter.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "schedule/schedule_private.h"

#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/timestamp.h"

#define EPOCH_SECONDS ((pg_time_t) (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * SECS_PER_DAY)

/* the longest interval, by its fields: a hundred years */
#define MAX_MONTHS 1200
#define MAX_DAYS 36600
#define MAX_TIME (MAX_DAYS * USECS_PER_DAY)

/* how long a month and a day can be, with a change of the clocks */
#define LONGEST_MONTH (31 * USECS_PER_DAY + USECS_PER_HOUR)
#define LONGEST_DAY (25 * USECS_PER_HOUR)

#define MAX_PREVIEW 10000

/* --- checking ------------------------------------------------------------------------ */

static void
check_interval(const Interval *every)
{
	if (every->month < 0 || every->day < 0 || every->time < 0 ||
		(every->month == 0 && every->day == 0 && every->time < USECS_PER_SEC))
		ereport(ERROR, aq_error(AQ_ERR_SCHEDULE_TIMES, "\"every\" must be at least one second"));
	if (every->month > MAX_MONTHS || every->day > MAX_DAYS || every->time > MAX_TIME)
		ereport(ERROR, aq_error(AQ_ERR_SCHEDULE_TIMES, "\"every\" must be at most a hundred years"));
}

static pg_tz *
find_zone(const char *name)
{
	pg_tz	   *zone = pg_tzset(name);

	if (zone == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("time zone \"%s\" not recognized", name)));
	if (!pg_tz_acceptable(zone))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("time zone \"%s\" appears to use leap seconds", name),
				 errdetail("PostgreSQL does not support leap seconds.")));
	return zone;
}

/* Checks the timing, and sets the members that are computed from the others. */
void
aq_timing_prepare(AqTiming *timing)
{
	if ((timing->cron == NULL) == (timing->every == NULL))
		ereport(ERROR,
				timing->cron == NULL ? aq_error(AQ_ERR_OPTION_INVALID, "either \"cron\" or \"every\" is required") :
				aq_error(AQ_ERR_OPTION_INVALID, "\"cron\" and \"every\" cannot be combined"),
				errhint("For example: cron => '30 7 * * mon-fri', or every => '10 minutes'."));
	if (TIMESTAMP_NOT_FINITE(timing->start))
		ereport(ERROR, aq_error(AQ_ERR_OPTION_INVALID, "a schedule must have a finite start"));
	timing->zone = find_zone(timing->zone_name);
	if (timing->cron != NULL)
		aq_cron_parse(timing->cron, &timing->parsed);
	else
		check_interval(timing->every);
}

/* --- the next time ---------------------------------------------------------------------- */

static pg_time_t
seconds_of(Timestamp time)
{
	Timestamp	seconds = time >= 0 ? time / USECS_PER_SEC : -((USECS_PER_SEC - 1 - time) / USECS_PER_SEC);

	return seconds + EPOCH_SECONDS;
}

static TimestampTz
time_of(pg_time_t seconds)
{
	return (seconds - EPOCH_SECONDS) * USECS_PER_SEC;
}

static TimestampTz
next_by_cron(const AqTiming *timing, TimestampTz after)
{
	pg_time_t	next;

	/* the start itself may be a time */
	after = Max(after, timing->start - 1);
	if (!aq_cron_next(&timing->parsed, seconds_of(after), timing->zone, &next))
		return DT_NOEND;
	return time_of(next);
}

/* The longest that it can be. */
static int64
longest(const Interval *every)
{
	return every->month * LONGEST_MONTH + every->day * LONGEST_DAY + every->time;
}

/* The start plus n intervals; it ends some years before time does. */
static TimestampTz
multiple(const AqTiming *timing, int64 n)
{
	const Interval *every = timing->every;
	Interval	calendar = {.month = (int32) (every->month * n), .day = (int32) (every->day * n)};
	pg_time_t	start = seconds_of(timing->start);
	Timestamp	local = timing->start + (aq_local_time_at(start, timing->zone) - start) * USECS_PER_SEC;
	pg_time_t	seconds;

	if (timing->start + (double) n * longest(every) >= (double) END_TIMESTAMP)
		return DT_NOEND;
	if (every->month == 0 && every->day == 0)
		return timing->start + n * every->time;
	local = DatumGetTimestamp(DirectFunctionCall2(timestamp_pl_interval, TimestampGetDatum(local), IntervalPGetDatum(&calendar)));
	seconds = seconds_of(local);
	return time_of(aq_local_time_find(seconds, timing->zone).first) + (local - time_of(seconds)) + n * every->time;
}

static TimestampTz
next_by_interval(const AqTiming *timing, TimestampTz after)
{
	int64		low = 0;
	int64		high = 1;

	if (after < timing->start)
		return timing->start;
	while (multiple(timing, high) <= after)
		high *= 2;
	while (high - low > 1)
	{
		int64		middle = low + (high - low) / 2;

		if (multiple(timing, middle) <= after)
			low = middle;
		else
			high = middle;
	}
	return multiple(timing, high);
}

/* The first time after this one. */
TimestampTz
aq_timing_next(const AqTiming *timing, TimestampTz after)
{
	TimestampTz next = timing->cron != NULL ? next_by_cron(timing, after) : next_by_interval(timing, after);

	return next > timing->until || !IS_VALID_TIMESTAMP(next) ? DT_NOEND : next;
}

/* --- the preview -------------------------------------------------------------------------- */

enum
{
	ARG_CRON, ARG_EVERY, ARG_ZONE, ARG_FROM, ARG_COUNT
};

static char *
text_arg(FunctionCallInfo fcinfo, int arg)
{
	return PG_ARGISNULL(arg) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(arg));
}

/* aq.schedule_times(): no privilege is needed, and nothing of the extension is read. */
PG_FUNCTION_INFO_V1(aq_timing_preview);
Datum
aq_timing_preview(PG_FUNCTION_ARGS)
{
	AqTiming	timing = {.cron = text_arg(fcinfo, ARG_CRON),
		.every = PG_ARGISNULL(ARG_EVERY) ? NULL : PG_GETARG_INTERVAL_P(ARG_EVERY),
		.zone_name = PG_ARGISNULL(ARG_ZONE) ? pg_get_timezone_name(session_timezone) : text_arg(fcinfo, ARG_ZONE),
		.start = PG_ARGISNULL(ARG_FROM) ? GetCurrentTimestamp() : PG_GETARG_TIMESTAMPTZ(ARG_FROM),
		.until = DT_NOEND};
	int			count = PG_ARGISNULL(ARG_COUNT) ? -1 : PG_GETARG_INT32(ARG_COUNT);
	TimestampTz time;
	AqRow		row;

	if (count < 0 || count > MAX_PREVIEW)
		ereport(ERROR, aq_error(AQ_ERR_OPTION_INVALID, "\"count\" must be between 0 and %d", MAX_PREVIEW));
	aq_timing_prepare(&timing);
	aq_rows_begin_plain(&row, fcinfo);
	time = PG_ARGISNULL(ARG_FROM) ? timing.start : timing.start - 1;
	for (int i = 0; i < count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		time = aq_timing_next(&timing, time);
		if (time == DT_NOEND)
			break;
		aq_rows_put(&row, TimestampTzGetDatum(time));
		aq_rows_put(&row, DirectFunctionCall2(timestamptz_zone, CStringGetTextDatum(timing.zone_name), TimestampTzGetDatum(time)));
		aq_rows_end(&row);
	}
	return (Datum) 0;
}
