-- The reports.

CREATE FUNCTION aq.report_awr(begin_snap integer, end_snap integer, dbid bigint DEFAULT NULL) RETURNS jsonb
LANGUAGE plpgsql STABLE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	s aq_internal.span := aq_internal.span(coalesce(dbid, aq_internal.dbid()), begin_snap, end_snap);
BEGIN
	RETURN jsonb_build_object('kind', 'awr', 'title', format('Activity Report, Snapshots %s to %s', begin_snap, end_snap), 'header', aq_internal.header(s), 'advice', aq_internal.advice(s),
		'sections', aq_internal.sections('awr', s, aq_internal.samples(s.dbid, s.begin_time, s.end_time)));
END $$;
COMMENT ON FUNCTION aq.report_awr(integer, integer, bigint) IS
'The report between two snapshots, as a document for aq.report_text and pgaq report.
dbid: the database of the snapshots, if not this one';

-- The response time report is after OraPub's rtpctx.
CREATE FUNCTION aq_internal.rtpctx(s aq_internal.span, title text) RETURNS jsonb LANGUAGE sql STABLE PARALLEL UNSAFE
RETURN jsonb_build_object('kind', 'rtpctx', 'title', title, 'header', aq_internal.header(s), 'advice', aq_internal.advice(s), 'sections', aq_internal.sections('rtpctx', s));
COMMENT ON FUNCTION aq_internal.rtpctx(aq_internal.span, text) IS 'Internal: the response time report of a span';

CREATE FUNCTION aq.rtpctx_start() RETURNS jsonb
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	PERFORM aq_internal.sample_closely();
	RETURN aq_internal.capture() || jsonb_build_object('time', jsonb_build_array(jsonb_build_object('dbid', aq_internal.dbid(), 'taken', clock_timestamp(), 'startup', aq_internal.startup_time())));
END $$;
COMMENT ON FUNCTION aq.rtpctx_start() IS
'The start of an interval: a mark for aq.rtpctx_report. Nothing is stored, so it also works on a
  standby.';

CREATE FUNCTION aq.rtpctx_report(mark jsonb) RETURNS jsonb
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	s aq_internal.span;
	began jsonb := mark #> '{time,0}';
	ended jsonb;
BEGIN
	IF began ->> 'taken' IS NULL THEN
		RAISE invalid_parameter_value USING MESSAGE = 'this is not a mark', HINT = 'Pass the result of aq.rtpctx_start().';
	END IF;
	s.later := aq.rtpctx_start();
	ended := s.later #> '{time,0}';
	s.dbid := (ended ->> 'dbid')::bigint;
	s.notes := '{}';
	IF began ->> 'dbid' <> ended ->> 'dbid' THEN
		RAISE invalid_parameter_value USING MESSAGE = 'the mark is of another database', HINT = 'Call aq.rtpctx_start() and aq.rtpctx_report() in the same database.';
	ELSIF (began ->> 'startup')::timestamptz <> (ended ->> 'startup')::timestamptz THEN
		s.notes := ARRAY['The server was restarted since the mark; the report begins there.'];
		s.earlier := '{}';
		s.later := s.later - '{database,wal,sql}'::text[];
		s.begin_time := (ended ->> 'startup')::timestamptz;
	ELSE
		s.earlier := mark;
		s.begin_time := (began ->> 'taken')::timestamptz;
	END IF;
	s.end_time := (ended ->> 'taken')::timestamptz;
	RETURN aq_internal.rtpctx(aq_internal.span(s), 'Response Time Report');
END $$;
COMMENT ON FUNCTION aq.rtpctx_report(jsonb) IS
'The response time report from a mark until now: where the time went, as a document for
  aq.report_text and pgaq report.
mark: the result of aq.rtpctx_start';

CREATE FUNCTION aq.report_rtpctx(begin_snap integer, end_snap integer, dbid bigint DEFAULT NULL) RETURNS jsonb
LANGUAGE sql STABLE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
RETURN aq_internal.rtpctx(aq_internal.span(coalesce(dbid, aq_internal.dbid()), begin_snap, end_snap), format('Response Time Report, Snapshots %s to %s', begin_snap, end_snap));
COMMENT ON FUNCTION aq.report_rtpctx(integer, integer, bigint) IS
'The response time report between two snapshots.
dbid: the database of the snapshots, if not this one';

CREATE FUNCTION aq.report_ash(begin_time timestamptz, end_time timestamptz DEFAULT clock_timestamp(), dbid bigint DEFAULT NULL) RETURNS jsonb
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	s aq_internal.span;
	samples aq_internal.sample[];
BEGIN
	IF (begin_time < end_time) IS NOT TRUE THEN
		RAISE invalid_parameter_value USING MESSAGE = 'the report must begin before it ends', HINT = 'Specify begin_time and end_time, e.g. now() - interval ''15 minutes''.';
	END IF;
	IF NOT pg_is_in_recovery() THEN
		PERFORM aq_internal.ash_flush();
	END IF;
	s.dbid := coalesce(dbid, aq_internal.dbid());
	s.begin_time := begin_time;
	s.end_time := end_time;
	s.elapsed := extract(epoch FROM end_time - begin_time);
	samples := aq_internal.samples(s.dbid, begin_time, end_time);
	RETURN jsonb_build_object('kind', 'ash', 'title', 'Active Sessions Report', 'advice', '[]'::jsonb,
		'header', jsonb_build_array(jsonb_build_array('Database', current_database()), jsonb_build_array('DB Id', s.dbid::text),
			jsonb_build_array('Begin', aq_internal.moment(begin_time)), jsonb_build_array('End', aq_internal.moment(end_time)), jsonb_build_array('Elapsed', aq_internal.minutes(s.elapsed)),
			jsonb_build_array('Samples', cardinality(samples) || ' active sessions'),
			jsonb_build_array('Each Stands For', coalesce((SELECT string_agg(DISTINCT trim_scale(x.seconds)::text, ' or ') || ' s' FROM unnest(samples) x), '-')),
			jsonb_build_array('Average Active Sessions', to_char((SELECT coalesce(sum(x.seconds), 0) FROM unnest(samples) x) / s.elapsed, 'FM999,990.00') || ' sessions')) || aq_internal.samples_note(s.dbid, begin_time, end_time),
		'sections', aq_internal.sections('ash', s, samples));
END $$;
COMMENT ON FUNCTION aq.report_ash(timestamptz, timestamptz, bigint) IS
'The activity of sessions between two times, from samples, as a document for aq.report_text and
  pgaq report.
dbid: the database, if not this one';

-- Two intervals compared: the sections of two reports side by side, as rates, because intervals differ in length.

-- Rows with the same keys, and for each figure both values and the difference. A figure with a * is divided by the seconds of its interval. A row that one
-- report does not have counts there as rate 0 and share of time 0, but has no average.
CREATE FUNCTION aq_internal.diff_section(one jsonb, two jsonb, keys text[], figures text[], seconds numeric[]) RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
	WITH f AS (
		SELECT n, c ->> 'name' AS name, spec LIKE '%*' AS rate, (c ->> 'unit') || CASE WHEN spec LIKE '%*' THEN '/s' ELSE '' END AS unit, greatest((c ->> 'digits')::integer, 2) AS digits
		FROM unnest(figures) WITH ORDINALITY u(spec, n) JOIN jsonb_array_elements(coalesce(two, one) -> 'columns') c ON c ->> 'name' = rtrim(spec, '*')),
	l AS (
		SELECT w, n AS place, jsonb_object_agg(c ->> 'name', line -> (i - 1)::integer) AS cells
		FROM unnest(ARRAY[one, two]) WITH ORDINALITY v(section, w), jsonb_array_elements(section -> 'rows') WITH ORDINALITY r(line, n),
			jsonb_array_elements(section -> 'columns') WITH ORDINALITY u(c, i) GROUP BY w, n),
	k AS (SELECT *, (SELECT jsonb_agg(cells -> key ORDER BY i) FROM unnest(keys) WITH ORDINALITY u(key, i)) AS key FROM l),
	p AS (SELECT key, a.cells AS one, b.cells AS two, row_number() OVER (ORDER BY b.place, a.place) AS n FROM (SELECT * FROM k WHERE w = 1) a FULL JOIN (SELECT * FROM k WHERE w = 2) b USING (key)),
	lines AS (
		SELECT coalesce(jsonb_agg(p.key || d.cells ORDER BY p.n), '[]') AS lines
		FROM p, LATERAL (SELECT jsonb_agg(v ORDER BY f.n, m) AS cells
			FROM f, LATERAL (SELECT CASE WHEN f.unit LIKE '_%/s' OR f.name ILIKE ANY ('{Avg Active,\% DB time,\% of DB time}') THEN 0 END AS missing) o,
				LATERAL (SELECT CASE WHEN p.one IS NULL THEN missing ELSE (p.one ->> f.name)::numeric / CASE WHEN f.rate THEN seconds[1] ELSE 1 END END AS x,
					CASE WHEN p.two IS NULL THEN missing ELSE (p.two ->> f.name)::numeric / CASE WHEN f.rate THEN seconds[2] ELSE 1 END END AS y) v,
				unnest(ARRAY[x, y, aq_internal.ratio(y - x, x, 100)]) WITH ORDINALITY u(v, m)) d)
	SELECT coalesce(two, one) || jsonb_build_object('rows', lines, 'notes', jsonb_build_array('Diff: of the second against the first; empty when the first is 0 or one of them is not known.'),
		'columns', aq_internal.columns(keys) || (SELECT jsonb_agg(c || '{"type": "number"}' ORDER BY f.n, m)
			FROM f, jsonb_array_elements(aq_internal.columns(ARRAY[format('%s 1st|%s|%s', name, unit, digits), format('%s 2nd|%s|%s', name, unit, digits), 'Diff|%|1'])) WITH ORDINALITY u(c, m)),
		-- if units begin with a slash, each row has its own unit, so the rows have no common scale
		'chart', (SELECT coalesce(aq_internal.chart(concat_ws('|', 'bar', name, keys[1], name, unit),
				(SELECT jsonb_agg(jsonb_build_array(x, label_of, s, o.name, value)) FROM aq_internal.points(lines, 0, '{1st,2nd}', ARRAY[cardinality(keys), cardinality(keys) + 1]) o)), 'null')
			FROM f WHERE n = 1 AND unit NOT LIKE '/%'))
	FROM lines WHERE coalesce(two, one) IS NOT NULL
$$;
COMMENT ON FUNCTION aq_internal.diff_section(jsonb, jsonb, text[], text[], numeric[]) IS 'Internal: a section of two reports side by side';

-- What is compared: a section, its keys, its figures.
CREATE FUNCTION aq_internal.diff_sections() RETURNS TABLE (id text, keys text[], figures text[]) LANGUAGE sql IMMUTABLE PARALLEL UNSAFE ROWS 12 SET search_path = pg_catalog, pg_temp AS $$
VALUES ('load_profile', '{""}'::text[], '{Per Second,Per Transaction}'::text[]),
	('top_events', '{Event,Wait Class}', '{Total Wait Time*,Waits*,Avg Wait,% DB time}'),
	('wait_classes', '{Wait Class}', '{Avg Active,% DB time}'),
	('time_model', '{Statistic}', '{Time*,% of DB Time}'),
	('sql_elapsed', '{SQL Id,SQL Text}', '{Elapsed Time*,Executions*,Elapsed per Exec}'),
	('queues', '{Queue}', '{Enqueue Rate,Done Rate,Avg Latency,Backlog End}'),
	('subscribers', '{Queue,Consumer}', '{Done Rate,Avg Latency,Lag End}'),
	('wakeups', '{Wake-ups}', '{Per Second,% of Sent,Per Message Dequeued}'),
	('mutex_sleeps', '{Mutex Type,Location}', '{Sleeps*,Wait Time*}'),
	('latch_activity', '{Latch Name}', '{Get Requests*,Pct Get Miss,Wait Time*}'),
	('dictionary_cache', '{Cache}', '{Get Requests*,Pct Miss}'),
	('statistics', '{Statistic}', '{Per Second,Per Transaction}')
$$;
COMMENT ON FUNCTION aq_internal.diff_sections() IS 'Internal: what aq.report_awr_diff compares';

-- Values that are equal are shown once, and those of the section of intervals only there.
CREATE FUNCTION aq_internal.diff_header(one aq_internal.span, two aq_internal.span) RETURNS jsonb LANGUAGE sql STABLE PARALLEL UNSAFE
RETURN (WITH h AS (SELECT name, place, n, h FROM (VALUES ('1st', aq_internal.header(one)), ('2nd', aq_internal.header(two))) v(name, header), jsonb_array_elements(header) WITH ORDINALITY u(h, n),
			LATERAL array_position('{Database,DB Id,Instance,Release,Note}', h ->> 0) place WHERE place IS NOT NULL)
	SELECT jsonb_agg(jsonb_build_array(CASE WHEN names = 1 THEN name || ': ' ELSE '' END || (h ->> 0), h ->> 1) ORDER BY place, name, n)
	FROM (SELECT h, place, min(n) AS n, min(name) AS name, count(DISTINCT name) AS names FROM h GROUP BY h, place) g);
COMMENT ON FUNCTION aq_internal.diff_header(aq_internal.span, aq_internal.span) IS 'Internal: head of the report';

CREATE FUNCTION aq.report_awr_diff(begin_snap_1 integer, end_snap_1 integer, begin_snap_2 integer, end_snap_2 integer, dbid_1 bigint DEFAULT NULL, dbid_2 bigint DEFAULT NULL) RETURNS jsonb
LANGUAGE plpgsql STABLE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	one aq_internal.span := aq_internal.span(coalesce(dbid_1, aq_internal.dbid()), begin_snap_1, end_snap_1);
	two aq_internal.span := aq_internal.span(coalesce(dbid_2, aq_internal.dbid()), begin_snap_2, end_snap_2);
	first jsonb := (SELECT jsonb_object_agg(l ->> 'id', l) FROM jsonb_array_elements(aq_internal.sections('awr', one)) l);
	second jsonb := (SELECT jsonb_object_agg(l ->> 'id', l) FROM jsonb_array_elements(aq_internal.sections('awr', two)) l);
BEGIN
	RETURN jsonb_build_object('kind', 'awr_diff', 'title', format('Activity Comparison, Snapshots %s to %s and %s to %s', begin_snap_1, end_snap_1, begin_snap_2, end_snap_2),
		'header', aq_internal.diff_header(one, two), 'advice', aq_internal.advice(two),
		'sections', aq_internal.sections('intervals', one, '{}', two)
			|| (SELECT jsonb_agg(aq_internal.diff_section(first -> d.id, second -> d.id, d.keys, d.figures, ARRAY[one.elapsed, two.elapsed]) ORDER BY n)
				FROM aq_internal.diff_sections() WITH ORDINALITY d(id, keys, figures, n) WHERE first ? d.id OR second ? d.id)
			|| aq_internal.sections('differences', one, '{}', two));
END $$;
COMMENT ON FUNCTION aq.report_awr_diff(integer, integer, integer, integer, bigint, bigint) IS
'Two intervals compared, as a document for aq.report_text and pgaq report; its advice is on the
  second.
dbid_1 and dbid_2: the databases of the snapshots, if not this one';
