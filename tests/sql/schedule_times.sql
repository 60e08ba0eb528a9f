-- The times of cron expressions and intervals: aq.schedule_times.
SET search_path = public;
SET TimeZone = 'UTC';
SET DateStyle = 'ISO, MDY';

CREATE FUNCTION t.times(cron text, "from" text, count int DEFAULT 4, zone text DEFAULT 'UTC') RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(to_char(run_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI') ||
		CASE WHEN zone = 'UTC' THEN '' ELSE to_char(local_time, ' (HH24:MI)') END, ', ' ORDER BY run_at)
	FROM aq.schedule_times(cron, time_zone => zone, "from" => ("from" || ' ' || zone)::timestamptz, count => times.count)
$$;

-- Fields: values, lists, ranges, steps, names.
SELECT e AS expression, t.times(e, '2026-01-01 00:00') AS times FROM unnest(ARRAY['* * * * *', '*/20 * * * *', '5 0 * * *', '5,35 4-6/2 * * *',
	'10-20/5,59 12 * * *', '0 0 1 */4 *', '0 12 * JAN,jul Mon', '15 8 * * 1-5', '15 8 * * sat-sun', '15 8 * * fri-sun/2', '0 0 * * 0', '0 0 * * 7', '0 0 29 2 *', '0 0 31 * *',
	E'  0\t9   * *  *  ', '@hourly', '@daily', '@midnight', '@weekly', '@monthly', '@yearly', '@annually', '@Daily']) WITH ORDINALITY AS u(e, n) ORDER BY n;

-- The start itself is a time; without it, the times after now.
SELECT t.times('0 0 1 1 *', '2026-01-01 00:00', 2), t.times('0 0 1 1 *', '2026-01-01 00:00:00.000001', 2);
SELECT run_at > now() AND run_at <= now() + interval '1 minute' AS within_a_minute FROM aq.schedule_times('* * * * *', count => 1);
SELECT count(*) FROM aq.schedule_times('* * * * *');

-- Days of the month and of the week: either, if both are restricted; both, if one begins with *.
SELECT e AS expression, t.times(e, '2026-02-01 00:00', 6) AS times FROM unnest(ARRAY['0 0 13 * 5', '0 0 13 * *', '0 0 * * 5', '0 0 */10 * 5', '0 0 13 * */2', '0 0 1-7 * *']) WITH ORDINALITY AS u(e, n) ORDER BY n;

-- Every hour of certain days: from their first minute on.
SELECT t.times('30 * 13 * *', '2026-02-01 00:00', 3), t.times('0 * * * mon', '2026-02-01 00:00', 2, 'Europe/Berlin');

-- Clocks are put forward on 2026-03-29 in Berlin, from 02:00 to 03:00: a time between them becomes 03:00, once.
SELECT e AS expression, t.times(e, '2026-03-28 12:00', n, 'Europe/Berlin') AS times FROM (VALUES ('30 2 * * *', 3), ('*/10 2 * * *', 8), ('0,30 2-3 * * *', 8), ('0 3 * * *', 3), ('59 1 29 3 *', 1), ('@daily', 3)) v(e, n);
SELECT t.times('*/30 * * * *', '2026-03-29 00:30', 5, 'Europe/Berlin'), t.times('30 */2 * * *', '2026-03-29 00:00', 3, 'Europe/Berlin');

-- They are put back on 2026-10-25, from 03:00 to 02:00: a time between them counts once, the first time; every hour follows the real time.
SELECT e AS expression, t.times(e, '2026-10-24 12:00', n, 'Europe/Berlin') AS times FROM (VALUES ('30 2 * * *', 3), ('0 2,3 * * *', 4), ('@daily', 3)) v(e, n);
SELECT t.times('*/30 * * * *', '2026-10-25 01:30', 7, 'Europe/Berlin'), t.times('0 * * * *', '2026-10-25 01:00', 4, 'Europe/Berlin');
-- From within the second hour, the first one is over.
SELECT string_agg(run_at::text, ', ') FROM aq.schedule_times('*/15 2 * * *', time_zone => 'Europe/Berlin', "from" => '2026-10-25 01:20 UTC', count => 2);
-- New York, both ways.
SELECT t.times('30 2 * * *', '2026-03-07 12:00', 3, 'America/New_York'), t.times('30 1 * * *', '2026-10-31 12:00', 3, 'America/New_York');
-- A change of half an hour (Lord Howe), one at midnight (Santiago), and a day that did not exist (Apia).
SELECT t.times('*/20 * * * *', '2026-10-04 01:20', 4, 'Australia/Lord_Howe'), t.times('15 2 * * *', '2026-10-03 12:00', 2, 'Australia/Lord_Howe');
SELECT t.times('0 0 * * *', '2026-09-05 12:00', 2, 'America/Santiago'), t.times('30 23 * * *', '2026-04-04 12:00', 2, 'America/Santiago');
SELECT t.times('0 9 * * *', '2011-12-29 00:00', 3, 'Pacific/Apia');
-- A zone by its offset, and one that is not a whole hour away.
SELECT t.times('0 9 * * *', '2026-01-01 00:00', 1, 'Asia/Kathmandu'), t.times('0 9 * * *', '2026-01-01 00:00', 1, 'UTC');

-- Intervals: multiples from the start on; months and days on the zone's calendar.
SELECT string_agg(run_at::text, ', ') FROM aq.schedule_times(every => '90 seconds', "from" => '2026-01-01 00:00:10', count => 3);
SELECT string_agg(run_at::text, ', ') FROM aq.schedule_times(every => '1 month', "from" => '2026-01-31 10:00', count => 4);
SELECT string_agg(local_time::text, ', ') FROM aq.schedule_times(every => '1 day', "from" => '2026-03-28 02:30 Europe/Berlin', time_zone => 'Europe/Berlin', count => 3);
SELECT string_agg(local_time::text, ', ') FROM aq.schedule_times(every => '24 hours', "from" => '2026-03-28 02:30 Europe/Berlin', time_zone => 'Europe/Berlin', count => 3);
SELECT string_agg(run_at::text, ', ') FROM aq.schedule_times(every => '1 year 1 day 1 hour', "from" => '2024-02-29 00:00', count => 3);
SELECT count(*), max(run_at) FROM aq.schedule_times(every => '100 years', "from" => '2000-01-01', count => 10000);

-- Every expression agrees with a search minute by minute.
WITH e(cron, minutes, hours, days, months, weekdays, either) AS (VALUES
	('7-59/13 */5 * * *', '{7,20,33,46,59}'::int[], '{0,5,10,15,20}'::int[], NULL::int[], NULL::int[], NULL::int[], false),
	('0 6 1,15 2-12/3 *', '{0}', '{6}', '{1,15}', '{2,5,8,11}', NULL, false),
	('30 22 10-12 * 2,sun', '{30}', '{22}', '{10,11,12}', NULL, '{2,0}', true)),
found AS (SELECT cron, array_agg(run_at) AS times FROM e, aq.schedule_times(cron, "from" => '2026-01-01', count => 50) GROUP BY cron)
SELECT cron, cardinality(times), times = ARRAY(SELECT m FROM generate_series('2026-01-01'::timestamptz, times[cardinality(times)], '1 minute') m
	WHERE extract(minute FROM m) = ANY (minutes) AND extract(hour FROM m) = ANY (hours) AND (months IS NULL OR extract(month FROM m) = ANY (months))
		AND CASE WHEN either THEN extract(day FROM m) = ANY (days) OR extract(dow FROM m) = ANY (weekdays)
			ELSE (days IS NULL OR extract(day FROM m) = ANY (days)) AND (weekdays IS NULL OR extract(dow FROM m) = ANY (weekdays)) END ORDER BY m) AS right
FROM e JOIN found USING (cron);

-- What is not valid.
SELECT e AS expression, split_part(t.error(format('SELECT * FROM aq.schedule_times(%L)', e)), ' | It has five', 1) AS error
FROM unnest(ARRAY['', '*', '* * * *', '* * * * * *', '60 * * * *', '* 24 * * *', '* * 0 * *', '* * 32 * *', '* * * 13 *', '* * * * 8', '-1 * * * *', '5/2 * * * *', '*/0 * * * *', '*/x * * * *',
	'9-5 * * * *', '1,,2 * * * *', '1, * * * *', '1-2-3 * * * *', '* * * foo *', '* * * * monday', 'mon * * * *', '* * L * *', '0 0 30 2 *', '0 0 31 4,6 *', '@reboot', '@', '999999999999 * * * *',
	'? * * * *', '* * * * *;']) WITH ORDINALITY AS u(e, n) ORDER BY n;
SELECT t.error('SELECT * FROM aq.schedule_times(''bad'')');
SELECT t.error('SELECT * FROM aq.schedule_times()');
SELECT t.error('SELECT * FROM aq.schedule_times(''@daily'', ''1 day'')');
SELECT t.error('SELECT * FROM aq.schedule_times(every => ''0'')');
SELECT t.error('SELECT * FROM aq.schedule_times(every => ''999 milliseconds'')');
SELECT t.error('SELECT * FROM aq.schedule_times(every => ''-1 day'')');
SELECT t.error('SELECT * FROM aq.schedule_times(every => ''1 month -1 day'')');
SELECT t.error('SELECT * FROM aq.schedule_times(every => ''101 years'')');
SELECT t.error('SELECT * FROM aq.schedule_times(''@daily'', time_zone => ''Mars/Olympus'')');
SELECT t.error('SELECT * FROM aq.schedule_times(''@daily'', count => 10001)');
SELECT t.error('SELECT * FROM aq.schedule_times(''@daily'', count => -1)');
SELECT t.error('SELECT * FROM aq.schedule_times(''@daily'', "from" => ''infinity'')');
-- The last time that there is.
SELECT count(*) < 10000 AS ends FROM aq.schedule_times('@yearly', "from" => '294270-01-01', count => 10000);
DROP FUNCTION t.times;
