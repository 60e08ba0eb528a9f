/*-------------------------------------------------------------------------
 *
 * cron.c
 *	  Cron expressions: five fields, or a name such as @daily.
 *
 * Fields, names and the rule for days are those of Vixie cron: if the day of the
 * month and the day of the week are both restricted (do not begin with *), a
 * day needs to match only one of them.
 *
 * Changes of the clocks also follow Vixie cron.  An expression for certain hours
 * means times of the clock: one that does not exist is replaced by the moment
 * when the clocks are put forward, and one that exists twice counts once.  An
 * expression for every hour ("*" or all 24) means a regular distance: it follows
 * the real time, so that there is no gap of an hour.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "schedule/schedule_private.h"

#include "utils/datetime.h"

#define SECONDS_PER_DAY ((pg_time_t) 86400)

/* a day that matches is found within this number of days: eight years from one 29 February to the next */
#define DAYS_TO_LOOK (366 * 9)

#define ALL_HOURS ((UINT64CONST(1) << 24) - 1)

typedef struct Field
{
	const char *name;
	int			first;
	int			last;
	const char *const *names;	/* of the values from first on; NULL: none */
} Field;

static const char *const month_names[] =
{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec", NULL};
static const char *const day_names[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat", NULL};

static const Field fields[] = {
	{"minute", 0, 59, NULL},
	{"hour", 0, 23, NULL},
	{"day of the month", 1, 31, NULL},
	{"month", 1, 12, month_names},
	{"day of the week", 0, 7, day_names}
};

static const char *const shorthands[][2] = {
	{"@yearly", "0 0 1 1 *"},
	{"@annually", "0 0 1 1 *"},
	{"@monthly", "0 0 1 * *"},
	{"@weekly", "0 0 * * 0"},
	{"@daily", "0 0 * * *"},
	{"@midnight", "0 0 * * *"},
	{"@hourly", "0 * * * *"}
};

/* --- reading ---------------------------------------------------------------------- */

typedef struct Reading
{
	const char *text;			/* the whole expression */
	const char *at;
	const Field *field;
} Reading;

pg_noreturn static void
refuse(const Reading *r, const char *detail)
{
	ereport(ERROR,
			aq_error(AQ_ERR_SCHEDULE_TIMES, "invalid cron expression: \"%s\"", r->text),
			errdetail_internal("%s", detail),
			errhint("It has five fields, minute, hour, day of the month, month and day of the week, for example \"30 7 * * mon-fri\", "
					"or is @hourly, @daily, @weekly, @monthly or @yearly."));
}

pg_noreturn static void
refuse_value(const Reading *r, const char *value, int length)
{
	refuse(r, psprintf("The field for the %s has no value \"%.*s\": its values are %d to %d%s.", r->field->name, length, value,
					   r->field->first, r->field->last, r->field->names != NULL ? " or names" : ""));
}

/* A number or a name. */
static int
read_value(Reading *r)
{
	const char *begin = r->at;
	int			value = 0;

	if (isdigit((unsigned char) *r->at))
	{
		for (; isdigit((unsigned char) *r->at); r->at++)
			value = Min(value * 10 + (*r->at - '0'), 1000);
		if (value < r->field->first || value > r->field->last)
			refuse_value(r, begin, r->at - begin);
		return value;
	}
	while (isalpha((unsigned char) *r->at))
		r->at++;
	for (int i = 0; r->field->names != NULL && r->field->names[i] != NULL; i++)
		if (r->at - begin == 3 && pg_strncasecmp(begin, r->field->names[i], 3) == 0)
			return r->field->first + i;
	if (r->at == begin)
		refuse(r, psprintf("The field for the %s has a syntax error.", r->field->name));
	refuse_value(r, begin, r->at - begin);
}

static int
read_step(Reading *r)
{
	int			step = 0;

	r->at++;
	for (; isdigit((unsigned char) *r->at); r->at++)
		step = Min(step * 10 + (*r->at - '0'), 1000);
	if (step == 0)
		refuse(r, psprintf("A step in the field for the %s must be a positive number.", r->field->name));
	return step;
}

/* Is it Sunday as the end of a range, as in sat-sun? */
static bool
is_last_sunday(const Reading *r, int value)
{
	return value == 0 && r->field->last == 7;
}

/* One part of a list: *, a value or a range, the first and the last with a step. */
static uint64
read_part(Reading *r)
{
	int			first = r->field->first;
	int			last = r->field->last;
	int			step = 1;
	bool		one = false;
	uint64		set = 0;

	if (*r->at == '*')
		r->at++;
	else
	{
		first = last = read_value(r);
		one = *r->at != '-';
		if (!one)
		{
			r->at++;
			last = read_value(r);
			if (last < first && is_last_sunday(r, last))
				last = 7;
		}
	}
	if (*r->at == '/')
	{
		if (one)
			refuse(r, psprintf("A step in the field for the %s needs a range, for example %d-%d/2.", r->field->name, first,
							   r->field->last));
		step = read_step(r);
	}
	if (last < first)
		refuse(r, psprintf("A range in the field for the %s ends before it begins.", r->field->name));
	for (int value = first; value <= last; value += step)
		set |= UINT64CONST(1) << value;
	return set;
}

static uint64
read_field(Reading *r, const Field *field)
{
	uint64		set;

	r->field = field;
	set = read_part(r);
	while (*r->at == ',')
	{
		r->at++;
		set |= read_part(r);
	}
	if (*r->at != '\0' && !isspace((unsigned char) *r->at))
		refuse(r, psprintf("The field for the %s has a syntax error at \"%s\".", field->name, r->at));
	return set;
}

static const char *
expand(const Reading *r, const char *text)
{
	for (int i = 0; i < lengthof(shorthands); i++)
		if (pg_strcasecmp(text, shorthands[i][0]) == 0)
			return shorthands[i][1];
	if (text[0] == '@')
		refuse(r, psprintf("\"%s\" is not known.", text));
	return text;
}

static void
skip_space(Reading *r)
{
	while (isspace((unsigned char) *r->at))
		r->at++;
}

/* Raises an error if the expression is not valid, or if no day meets it. */
void
aq_cron_parse(const char *text, AqCron *cron)
{
	Reading		r = {.text = text};
	uint64		sets[lengthof(fields)];
	bool		stars[lengthof(fields)];
	pg_time_t	unused;

	r.at = expand(&r, text);
	for (int i = 0; i < lengthof(fields); i++)
	{
		skip_space(&r);
		if (*r.at == '\0')
			refuse(&r, psprintf("The field for the %s is missing.", fields[i].name));
		stars[i] = *r.at == '*';
		sets[i] = read_field(&r, &fields[i]);
	}
	skip_space(&r);
	if (*r.at != '\0')
		refuse(&r, psprintf("\"%s\" follows the five fields.", r.at));
	cron->minutes = sets[0];
	cron->hours = sets[1];
	cron->days = sets[2];
	cron->months = sets[3];
	cron->weekdays = (sets[4] | sets[4] >> 7) & 0x7f;	/* Sunday is 0 and 7 */
	cron->either_day = !stars[2] && !stars[4];
	if (!aq_cron_next(cron, 0, pg_tzset("UTC"), &unused))
		refuse(&r, "There is no such day.");
}

/* --- times ------------------------------------------------------------------------ */

static bool
has(uint64 set, int value)
{
	return (set >> value & 1) != 0;
}

static pg_time_t
day_of(pg_time_t local)
{
	return local >= 0 ? local / SECONDS_PER_DAY : -((SECONDS_PER_DAY - 1 - local) / SECONDS_PER_DAY);
}

static bool
day_matches(const AqCron *cron, pg_time_t day)
{
	int			date = (int) day + UNIX_EPOCH_JDATE;
	int			year,
				month,
				of_month;
	bool		by_month,
				by_week;

	j2date(date, &year, &month, &of_month);
	if (!has(cron->months, month))
		return false;
	by_month = has(cron->days, of_month);
	by_week = has(cron->weekdays, j2day(date));
	return cron->either_day ? by_month || by_week : by_month && by_week;
}

/* The first instant after "after" among those of the local times of a day. */
static bool
next_of_day(const AqCron *cron, pg_time_t day, pg_time_t after, pg_time_t from, pg_tz *zone, pg_time_t *next)
{
	for (int hour = 0; hour < 24; hour++)
		for (int minute = 0; has(cron->hours, hour) && minute < 60; minute++)
		{
			pg_time_t	local = day * SECONDS_PER_DAY + hour * 3600 + minute * 60;

			if (!has(cron->minutes, minute) || local < from)
				continue;
			*next = aq_local_time_find(local, zone).first;
			if (*next > after)
				return true;
		}
	return false;
}

static bool
next_by_clock(const AqCron *cron, pg_time_t after, pg_tz *zone, pg_time_t *next)
{
	pg_time_t	local = aq_local_time_at(after, zone);
	pg_time_t	from = local - (local - day_of(local) * SECONDS_PER_DAY) % 60;
	pg_time_t	day = day_of(local);

	for (int i = 0; i < DAYS_TO_LOOK; i++, day++)
		if (day_matches(cron, day) && next_of_day(cron, day, after, from, zone, next))
			return true;
	return false;
}

/* The first instant after "at" that is on the next day. */
static pg_time_t
next_midnight(pg_time_t at, pg_time_t day, pg_tz *zone)
{
	AqLocalTime midnight = aq_local_time_find((day + 1) * SECONDS_PER_DAY, zone);

	if (midnight.first > at)
		return midnight.first;
	return midnight.second > at ? midnight.second : at + 60;
}

static bool
next_by_real_time(const AqCron *cron, pg_time_t after, pg_tz *zone, pg_time_t *next)
{
	pg_time_t	local = aq_local_time_at(after, zone);
	pg_time_t	at = after + 60 - (local - day_of(local) * SECONDS_PER_DAY) % 60;
	int			days = 0;

	while (days < DAYS_TO_LOOK)
	{
		pg_time_t	day;

		local = aq_local_time_at(at, zone);
		day = day_of(local);
		if (!day_matches(cron, day))
		{
			at = next_midnight(at, day, zone);
			days++;
		}
		else if (has(cron->minutes, (int) ((local - day * SECONDS_PER_DAY) / 60 % 60)))
		{
			*next = at;
			return true;
		}
		else
			at += 60;
	}
	return false;
}

/* The first time after this one; false: there is none. */
bool
aq_cron_next(const AqCron *cron, pg_time_t after, pg_tz *zone, pg_time_t *next)
{
	if (cron->hours == ALL_HOURS)
		return next_by_real_time(cron, after, zone, next);
	return next_by_clock(cron, after, zone, next);
}
