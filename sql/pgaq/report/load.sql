-- Sections of the report: load, waits, time.  Growth: end minus begin; DBT: growth of DB time.

CREATE FUNCTION aq_internal.report_load_profile(s aq_internal.span) RETURNS jsonb LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	calls numeric := aq_internal.stat(s, 'queue enqueue calls') + aq_internal.stat(s, 'queue dequeue calls');
	lines jsonb;
BEGIN
	SELECT jsonb_agg(jsonb_build_array(label, aq_internal.ratio(value, s.elapsed), aq_internal.ratio(value, s.transactions), aq_internal.ratio(value, calls)) ORDER BY n) INTO lines
	FROM (VALUES
		(1, 'DB Time (s)', s.db_time),
		(2, 'DB CPU (s)', aq_internal.time(s, 'DB CPU')),
		(3, 'Background CPU (s)', aq_internal.time(s, 'background cpu time')),
		(4, 'WAL (bytes)', aq_internal.stat(s, 'redo size')),
		(5, 'WAL records (records)', aq_internal.stat(s, 'redo entries')),
		(6, 'Logical reads (blocks)', aq_internal.stat(s, 'session logical reads')),
		(7, 'Physical reads (blocks)', aq_internal.stat(s, 'physical reads')),
		(8, 'Physical read requests (requests)', aq_internal.stat(s, 'physical read IO requests')),
		(9, 'Messages enqueued (messages)', aq_internal.stat(s, 'queue messages enqueued')),
		(10, 'Messages dequeued (messages)', aq_internal.stat(s, 'queue messages dequeued')),
		(11, 'Payload in (bytes)', aq_internal.stat(s, 'queue payload bytes in')),
		(12, 'Payload out (bytes)', aq_internal.stat(s, 'queue payload bytes out')),
		(13, 'Enqueue calls (calls)', aq_internal.stat(s, 'queue enqueue calls')),
		(14, 'Dequeue calls (calls)', aq_internal.stat(s, 'queue dequeue calls')),
		(15, 'Listen calls (calls)', aq_internal.stat(s, 'queue listen calls')),
		(16, 'Wake-ups sent (wake-ups)', aq_internal.stat(s, 'queue wake-ups sent')),
		(17, 'User calls (calls)', aq_internal.stat(s, 'user calls')),
		(18, 'Executes (executions)', aq_internal.stat(s, 'execute count')),
		(19, 'Logons (sessions)', aq_internal.stat(s, 'logons cumulative')),
		(20, 'Transactions (transactions)', s.transactions),
		(21, 'of these: with messages (transactions)', aq_internal.stat(s, 'queue commits')),
		(22, 'Rollbacks (transactions)', aq_internal.stat(s, 'user rollbacks'))) v(n, label, value)
	WHERE value IS NOT NULL;
	RETURN aq_internal.section('load_profile', 'Load Profile', ARRAY['', 'Per Second|/s|number|2', 'Per Transaction|/transaction|number|3', 'Per Queue Call|/call|number|4'], lines,
		ARRAY['Transactions: commits and rollbacks of clients'' sessions, in all databases. Queue calls: enqueue and dequeue.',
			'Transactions, WAL and reads are those of statements that have ended, also inside functions. Counters that PostgreSQL gets only from idle sessions (rows, temporary files) are left out: a loop inside the server is missing in them.']);
END $$;
COMMENT ON FUNCTION aq_internal.report_load_profile(aq_internal.span) IS 'Internal: section of the report';

-- Waits of users' sessions, without class Idle, and the time on CPU.
CREATE FUNCTION aq_internal.foreground(s aq_internal.span, OUT event text, OUT wait_class text, OUT waits numeric, OUT seconds numeric) RETURNS SETOF record
LANGUAGE sql STABLE PARALLEL UNSAFE ROWS 30 SET search_path = pg_catalog, pg_temp AS $$
	SELECT g ->> 'event', g ->> 'wait_class', (g ->> 'client_waits')::numeric, (g ->> 'client_us')::numeric / 1000000
	FROM aq_internal.growths(s, 'waits') g
	WHERE g ->> 'wait_class' <> 'Idle' AND (g ->> 'client_waits')::numeric > 0
	UNION ALL
	SELECT 'DB CPU', NULL, NULL, aq_internal.time(s, 'DB CPU') WHERE aq_internal.time(s, 'DB CPU') > 0
$$;
COMMENT ON FUNCTION aq_internal.foreground(aq_internal.span) IS 'Internal: waits of users'' sessions over a span, and their time on CPU';

-- A parameter that was on at both ends.
CREATE FUNCTION aq_internal.was_on(s aq_internal.span, parameter text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN (SELECT count(*) = 2 FROM (SELECT (s).earlier UNION ALL SELECT (s).later) c(capture), jsonb_array_elements(c.capture -> 'parameter') p
	WHERE p ->> 'name' = parameter AND p ->> 'setting' = 'on');
COMMENT ON FUNCTION aq_internal.was_on(aq_internal.span, text) IS 'Internal: was a parameter on at both ends of a span';

-- I/O of users' sessions that PostgreSQL has timed, and the wait event that it is.
CREATE FUNCTION aq_internal.timed_io(s aq_internal.span, OUT event text, OUT wait_class text, OUT seconds numeric) RETURNS SETOF record
LANGUAGE sql STABLE PARALLEL UNSAFE ROWS 4 SET search_path = pg_catalog, pg_temp AS $$
	SELECT v.event, v.wait_class, aq_internal.time(s, v.line)
	FROM (VALUES ('IO: DataFileRead', 'User I/O', 'data file read time', 'track_io_timing'), ('IO: DataFileWrite', 'User I/O', 'data file write time', 'track_io_timing'),
		('IO: WALWrite', 'Commit', 'WAL write time', 'track_wal_io_timing'), ('IO: WALSync', 'Commit', 'WAL sync time', 'track_wal_io_timing')) v(event, wait_class, line, parameter)
	WHERE aq_internal.time(s, v.line) > 0 AND aq_internal.was_on(s, v.parameter)
$$;
COMMENT ON FUNCTION aq_internal.timed_io(aq_internal.span) IS 'Internal: I/O over a span, as PostgreSQL has timed it';

-- PostgreSQL's own waits of users' sessions, estimated: a wait that is met in a share p of the n samples of sessions outside the waits of pgaq has p of
-- their time. All of them have at most what CPU leaves. What PostgreSQL has timed is left out afterwards: its share counts. error: half of the 95 %
-- interval of a share (Wilson's), which is also right for few samples.
CREATE FUNCTION aq_internal.sampled_parts(s aq_internal.span, OUT event text, OUT wait_class text, OUT seconds numeric, OUT error numeric, OUT samples numeric) RETURNS SETOF record
LANGUAGE sql STABLE PARALLEL UNSAFE ROWS 20 SET search_path = pg_catalog, pg_temp AS $$
	WITH t AS (
		SELECT (s).db_time - coalesce(sum(f.seconds) FILTER (WHERE f.wait_class IS NOT NULL), 0) AS outside, (s).db_time - coalesce(sum(f.seconds), 0) AS rest
		FROM aq_internal.foreground(s) f),
	p AS (
		SELECT w.event, w.wait_class, w.db_samples AS samples, w.db_time_us / sum(w.db_time_us) OVER () AS share, sum(w.db_samples) OVER () AS n
		FROM aq_internal.growths(s, 'sampled_waits') g, jsonb_to_record(g) w(event text, wait_class text, db_samples numeric, db_time_us numeric)
		WHERE w.db_samples > 0 AND w.db_time_us > 0),
	e AS (SELECT p.*, 1.96 / (1 + 3.8416 / n) * sqrt(share * (1 - share) / n + 3.8416 / (4 * n * n)) AS half FROM p WHERE p.event <> 'ON CPU'),
	k AS (SELECT t.outside * least(1, t.rest / nullif(t.outside * sum(e.share), 0)) AS seconds FROM t, e GROUP BY t.outside, t.rest)
	SELECT e.event, e.wait_class, k.seconds * e.share, k.seconds * e.half, e.samples FROM e, k
	WHERE k.seconds > 0 AND e.event NOT IN (SELECT i.event FROM aq_internal.timed_io(s) i)
$$;
COMMENT ON FUNCTION aq_internal.sampled_parts(aq_internal.span) IS 'Internal: PostgreSQL''s own waits over a span, estimated from samples';

-- The parts of DB time: what is timed, what is estimated (it has an error), and the rest: waiting for a processor, and waits too short for the samples.
CREATE FUNCTION aq_internal.db_time_parts(s aq_internal.span, OUT event text, OUT wait_class text, OUT waits numeric, OUT seconds numeric, OUT error numeric, OUT timed_by text)
RETURNS SETOF record LANGUAGE sql STABLE PARALLEL UNSAFE ROWS 30 SET search_path = pg_catalog, pg_temp AS $$
	WITH p AS (
		SELECT f.event, f.wait_class, f.waits, f.seconds, NULL::numeric AS error, 'pgaq' AS timed_by FROM aq_internal.foreground(s) f
		UNION ALL
		SELECT i.event, i.wait_class, NULL, i.seconds, NULL, 'PostgreSQL' FROM aq_internal.timed_io(s) i
		UNION ALL
		SELECT e.event, e.wait_class, NULL, e.seconds, e.error, 'samples' FROM aq_internal.sampled_parts(s) e)
	SELECT p.* FROM p
	UNION ALL
	SELECT 'PostgreSQL, not timed', NULL, NULL, (s).db_time - coalesce(sum(p.seconds), 0), NULL, NULL FROM p HAVING (s).db_time > coalesce(sum(p.seconds), 0) * 1.000001
$$;
COMMENT ON FUNCTION aq_internal.db_time_parts(aq_internal.span) IS 'Internal: waits, CPU and the rest of DB time over a span';

-- The first section: the largest parts of DB time, as sentences.
CREATE FUNCTION aq_internal.report_summary(s aq_internal.span) RETURNS jsonb LANGUAGE sql STABLE PARALLEL UNSAFE
RETURN (SELECT aq_internal.section('summary', 'Where the Time Went', ARRAY['% DB time|%|percent|1', 'Time|s|number|3', 'Event', 'What It Was'],
		jsonb_agg(jsonb_build_array(aq_internal.ratio(seconds, (s).db_time, 100), seconds, event, CASE
			WHEN event = 'DB CPU' THEN format('Sessions ran: %s processors were busy on average.', round(aq_internal.ratio(seconds, (s).elapsed), 2))
			WHEN event = 'PostgreSQL, not timed' THEN 'Sessions were ready and had no processor, or waited too briefly for the samples.'
			WHEN timed_by = 'PostgreSQL' THEN format('PostgreSQL did this (%s) and has timed it.', wait_class)
			WHEN error IS NOT NULL THEN format('PostgreSQL waited (%s): estimated from samples, +- %s s.', wait_class, round(error, 1))
			ELSE format('%s waits (%s) of %s ms on average.', aq_internal.report_number(waits, 0), wait_class, aq_internal.report_number(aq_internal.ratio(seconds, waits, 1000), 3)) END)
			ORDER BY seconds DESC, event),
		ARRAY[format('On average %s sessions were active: %s s of DB time in %s s. The sections below have the details.', round(aq_internal.ratio((s).db_time, (s).elapsed), 2),
			aq_internal.report_number((s).db_time, 1), aq_internal.report_number((s).elapsed, 1))])
	FROM (SELECT d.* FROM aq_internal.db_time_parts(s) d WHERE d.seconds > 0 AND d.seconds >= (s).db_time / 100 ORDER BY d.seconds DESC, d.event LIMIT 5) d);
COMMENT ON FUNCTION aq_internal.report_summary(aq_internal.span) IS 'Internal: section of the report';

CREATE FUNCTION aq_internal.report_top_events(s aq_internal.span) RETURNS jsonb LANGUAGE sql STABLE PARALLEL UNSAFE
RETURN aq_internal.section('top_events', 'Top 10 Wait Events of Client Sessions',
	ARRAY['Event', 'Waits|waits|number|0', 'Total Wait Time|s|number|3', 'Avg Wait|ms|number|3', '% DB time|%|percent|1', 'Wait Class', 'Sampled, +-|s|number|3', 'Timed By'],
	(SELECT jsonb_agg(jsonb_build_array(event, waits, seconds, aq_internal.ratio(seconds, waits, 1000), aq_internal.ratio(seconds, (s).db_time, 100), wait_class, error, timed_by)
			ORDER BY seconds DESC, event)
		FROM (SELECT f.* FROM aq_internal.db_time_parts(s) f ORDER BY f.seconds DESC, f.event LIMIT 10) f),
	ARRAY['Timed by pgaq: waits inside pgaq, and DB CPU. By PostgreSQL: I/O, where track_io_timing and track_wal_io_timing are on; it includes the CPU time of the calls, which is in DB CPU too, so the lines can add up to more than DB time. By samples: PostgreSQL does not time its other waits (locks); their true time is within Sampled, +- in 95 of 100 reports. PostgreSQL, not timed: the rest of DB time, waiting for a processor and waits too short for the samples. Samples are taken every pgaq.ash_interval, and ten times as often in the minute after a snapshot or mark.',
		'DB CPU is that of the processes: where statements are short it can be more than DB time.']);
COMMENT ON FUNCTION aq_internal.report_top_events(aq_internal.span) IS 'Internal: section of the report';

CREATE FUNCTION aq_internal.report_wait_classes(s aq_internal.span) RETURNS jsonb LANGUAGE sql STABLE PARALLEL UNSAFE
RETURN (SELECT aq_internal.section('wait_classes', 'Wait Classes by Total Wait Time',
		ARRAY['Wait Class', 'Waits|waits|number|0', 'Total Wait Time|s|number|3', 'Avg Wait|ms|number|3', '% DB time|%|percent|1', 'Avg Active|sessions|number|3'],
		jsonb_agg(jsonb_build_array(name, waits, seconds, aq_internal.ratio(seconds, waits, 1000), aq_internal.ratio(seconds, (s).db_time, 100), aq_internal.ratio(seconds, (s).elapsed))
			ORDER BY seconds DESC, name), '{}',
		aq_internal.chart_of('bar', 'Time by wait class', 'wait class', jsonb_agg(name ORDER BY seconds DESC, name), 'time', 's',
			jsonb_build_array(jsonb_build_object('name', 'time', 'values', jsonb_agg(round(seconds, 3) ORDER BY seconds DESC, name)))))
	FROM (SELECT coalesce(f.wait_class, f.event) AS name, sum(f.waits) AS waits, sum(f.seconds) AS seconds FROM aq_internal.db_time_parts(s) f GROUP BY 1) c);
COMMENT ON FUNCTION aq_internal.report_wait_classes(aq_internal.span) IS 'Internal: section of the report';

CREATE FUNCTION aq_internal.report_time_model(s aq_internal.span) RETURNS jsonb LANGUAGE sql STABLE PARALLEL UNSAFE
RETURN (SELECT aq_internal.section('time_model', 'Time Model',
		ARRAY['Statistic', 'Time|s|number|3', '% of DB Time|%|percent|1', '% of Total CPU Time|%|percent|1'],
		jsonb_agg(jsonb_build_array(key, seconds, CASE WHEN key !~ '^background' THEN aq_internal.ratio(seconds, (s).db_time, 100) END,
			CASE WHEN key ~* 'cpu' THEN aq_internal.ratio(seconds, aq_internal.time(s, 'DB CPU') + aq_internal.time(s, 'background cpu time'), 100) END)
			ORDER BY key !~ '^DB time', key ~ '^background', seconds DESC, key),
		ARRAY['The lines overlap and do not add up. DB time is time of users'' statements; the background has its own lines.',
			'CPU time is that of the processes: with receiving statements, and going to sleep and waking for idle waits, which are no part of DB time. Where statements are short it can be more.'])
	FROM jsonb_each_text((s).times) t(key, value), CAST(value AS numeric) seconds WHERE seconds > 0);
COMMENT ON FUNCTION aq_internal.report_time_model(aq_internal.span) IS 'Internal: section of the report';

CREATE FUNCTION aq_internal.report_background(s aq_internal.span) RETURNS jsonb LANGUAGE sql STABLE PARALLEL UNSAFE
RETURN (SELECT aq_internal.section('background_events', 'Wait Events of Background Processes',
		ARRAY['Event', 'Waits|waits|number|0', '%Timeouts|%|percent|0', 'Total Wait Time|s|number|3', 'Avg Wait|ms|number|3', 'Wait Class'],
		jsonb_agg(jsonb_build_array(event, waits, aq_internal.ratio(timeouts, waits, 100), seconds, aq_internal.ratio(seconds, waits, 1000), wait_class) ORDER BY wait_class = 'Idle', seconds DESC, event))
	FROM (SELECT g ->> 'event' AS event, g ->> 'wait_class' AS wait_class, (g ->> 'waits')::numeric - (g ->> 'client_waits')::numeric AS waits,
			(g ->> 'timeouts')::numeric - (g ->> 'client_timeouts')::numeric AS timeouts,
			((g ->> 'total_us')::numeric - (g ->> 'client_us')::numeric) / 1000000 AS seconds
		FROM aq_internal.growths(s, 'waits') g) e
	WHERE waits > 0);
COMMENT ON FUNCTION aq_internal.report_background(aq_internal.span) IS 'Internal: section of the report';

-- Histogram buckets of the report; the views have one for each power of two.
CREATE FUNCTION aq_internal.bucket(micros numeric) RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN CASE WHEN micros <= 1 THEN 1 WHEN micros <= 16 THEN 2 WHEN micros <= 128 THEN 3 WHEN micros <= 1024 THEN 4 WHEN micros <= 8192 THEN 5
	WHEN micros <= 65536 THEN 6 WHEN micros <= 1048576 THEN 7 ELSE 8 END;
COMMENT ON FUNCTION aq_internal.bucket(numeric) IS 'Internal: column of the wait event histogram';

CREATE FUNCTION aq_internal.report_histogram(s aq_internal.span) RETURNS jsonb LANGUAGE sql STABLE PARALLEL UNSAFE
RETURN (
	WITH h AS (
		SELECT g ->> 'event' AS event, coalesce(g ->> 'wait_class', '') AS wait_class, (g ->> 'less_than_us')::numeric AS micros, (g ->> 'waits')::numeric AS waits
		FROM aq_internal.growths(s, 'wait_histogram') g WHERE (g ->> 'waits')::numeric > 0),
	e AS (
		SELECT event, sum(waits) AS total, wait_class = 'Idle' AS idle,
			(SELECT jsonb_agg(aq_internal.ratio(coalesce(f.part, 0), sum(h.waits), 100) ORDER BY b) FROM generate_series(1, 8) b
				LEFT JOIN (SELECT aq_internal.bucket(i.micros) AS bucket, sum(i.waits) AS part FROM h i WHERE i.event = h.event GROUP BY 1) f ON f.bucket = b) AS parts
		FROM h GROUP BY event, wait_class),
	x AS (SELECT micros FROM h WHERE wait_class <> 'Idle' GROUP BY micros)
	SELECT aq_internal.section('wait_histogram', 'Wait Event Histogram',
		ARRAY['Event', 'Total Waits|waits|number|0', '<1us|%|percent|1', '<16us|%|percent|1', '<128us|%|percent|1', '<1ms|%|percent|1', '<8ms|%|percent|1',
			'<64ms|%|percent|1', '<1s|%|percent|1', '>=1s|%|percent|1'],
		(SELECT jsonb_agg(jsonb_build_array(event, total) || parts ORDER BY idle, total DESC, event) FROM e),
		ARRAY['All sessions. Bounds are powers of two: 1ms stands for 1,024 us, 8ms for 8,192, 64ms for 65,536, 1s for 1,048,576.'],
		aq_internal.chart_of('histogram', 'Waits by duration, Idle left out', 'shorter than',
			(SELECT jsonb_agg('<' || CASE WHEN micros < 1024 THEN micros || 'us' WHEN micros < 1048576 THEN div(micros, 1024) || 'ms' ELSE div(micros, 1048576) || 's' END
				ORDER BY micros) FROM x), 'waits', 'waits',
			(SELECT jsonb_agg(jsonb_build_object('name', t.event, 'values',
					(SELECT jsonb_agg(coalesce((SELECT h.waits FROM h WHERE h.event = t.event AND h.micros = x.micros), 0) ORDER BY x.micros) FROM x)) ORDER BY t.total DESC, t.event)
				FROM (SELECT * FROM e WHERE NOT idle ORDER BY total DESC, event LIMIT 5) t))));
COMMENT ON FUNCTION aq_internal.report_histogram(aq_internal.span) IS 'Internal: section of the report';

CREATE FUNCTION aq_internal.report_statistics(s aq_internal.span) RETURNS jsonb LANGUAGE sql STABLE PARALLEL UNSAFE
RETURN (SELECT aq_internal.section('statistics', 'Statistics', ARRAY['Statistic', 'Unit', 'Total|see unit|number|0', 'Per Second|/s|number|2', 'Per Transaction|/transaction|number|2'],
		jsonb_agg(jsonb_build_array(key, CASE WHEN key ~ 'bytes|size' THEN 'bytes' WHEN key ~ 'reads' THEN 'blocks' ELSE 'times' END, value,
			aq_internal.ratio(value, (s).elapsed), aq_internal.ratio(value, (s).transactions)) ORDER BY key))
	FROM jsonb_each_text((s).stats) t(key, word), CAST(word AS numeric) value);
COMMENT ON FUNCTION aq_internal.report_statistics(aq_internal.span) IS 'Internal: section of the report';

-- From here to the end: the relevant settings, and which of them are not the default.
CREATE FUNCTION aq_internal.report_parameters(s aq_internal.span) RETURNS jsonb LANGUAGE sql STABLE PARALLEL UNSAFE
RETURN (SELECT aq_internal.section('parameters', 'Parameters', ARRAY['Name', 'Begin Value', 'End Value (if different)', 'Unit', 'Set In'],
		jsonb_agg(jsonb_build_array(e ->> 'name', coalesce(b ->> 'setting', e ->> 'setting'), CASE WHEN e ->> 'setting' <> b ->> 'setting' THEN e ->> 'setting' END, e ->> 'unit', e ->> 'source')
			ORDER BY e ->> 'name'), ARRAY['Those of pgaq that are not the default, and some of PostgreSQL.'])
	FROM jsonb_array_elements((s).later -> 'parameter') e LEFT JOIN jsonb_array_elements((s).earlier -> 'parameter') b ON b ->> 'name' = e ->> 'name'
	WHERE e ->> 'name' NOT LIKE 'pgaq.%' OR e ->> 'setting' IS DISTINCT FROM e ->> 'boot_val' OR e ->> 'setting' <> b ->> 'setting');
COMMENT ON FUNCTION aq_internal.report_parameters(aq_internal.span) IS 'Internal: section of the report';
