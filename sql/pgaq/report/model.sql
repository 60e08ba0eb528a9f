-- The report model: one jsonb, which is drawn as text or as a page. Functions that the sections share.

CREATE TYPE aq_internal.span AS (
	dbid bigint,
	begin_snap integer,
	end_snap integer,
	begin_time timestamptz,
	end_time timestamptz,
	elapsed numeric,
	earlier jsonb,
	later jsonb,
	stats jsonb,
	times jsonb,
	db_time numeric,
	transactions numeric,
	notes text[]);
COMMENT ON TYPE aq_internal.span IS 'Internal: what a report is about: two captures, the time between them in seconds, and the figures that most sections need';

-- Percentages and other quotients: null instead of a division by zero.
CREATE FUNCTION aq_internal.ratio(part numeric, whole numeric, factor numeric DEFAULT 1) RETURNS numeric
LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN CASE WHEN whole > 0 THEN part * factor / whole END;
COMMENT ON FUNCTION aq_internal.ratio(numeric, numeric, numeric) IS 'Internal: factor * part / whole; null when there is no whole';

-- Every text of a report, in every form of it: names and texts of others can have characters that steer a terminal (controls, also C1), change the order of
-- what is shown (marks of direction), are not seen, or end a line. In encodings other than these, some of the codes are letters.
CREATE FUNCTION aq_internal.report_text(value text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN regexp_replace(value, CASE WHEN getdatabaseencoding() ~ '^(UTF8|LATIN|ISO)'
	THEN '[\u0001-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]+' ELSE '[\u0001-\u001f\u007f]+' END, ' ', 'g');
COMMENT ON FUNCTION aq_internal.report_text(text) IS 'Internal: a text as reports show it, in one line of visible characters';

CREATE FUNCTION aq_internal.report_number(value numeric, digits integer) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN to_char(value, 'FM999,999,999,999,999,999,990' || CASE WHEN digits > 0 THEN '.' || repeat('0', digits) ELSE '' END);
COMMENT ON FUNCTION aq_internal.report_number(numeric, integer) IS 'Internal: a number as reports show it, with thousands separators';

-- The argument must be a report: null or another document would be drawn as an empty page.
CREATE FUNCTION aq_internal.report_checked(model jsonb) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF (jsonb_typeof(model -> 'title') = 'string' AND jsonb_typeof(model -> 'header') = 'array' AND jsonb_typeof(model -> 'sections') = 'array') IS NOT TRUE THEN
		RAISE invalid_parameter_value USING MESSAGE = 'this is not a report', HINT = 'Pass the result of aq.report_awr, aq.report_awr_diff, aq.report_ash, aq.report_rtpctx or aq.rtpctx_report.';
	END IF;
	RETURN model;
END $$;
COMMENT ON FUNCTION aq_internal.report_checked(jsonb) IS 'Internal: a document that is a report, or an error';

CREATE FUNCTION aq_internal.advice_figure(value jsonb) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN CASE WHEN jsonb_typeof(value) = 'number' THEN aq_internal.report_number(value::numeric, least(scale(value::numeric), 3)) ELSE aq_internal.report_text(value #>> '{}') END;
COMMENT ON FUNCTION aq_internal.advice_figure(jsonb) IS 'Internal: a figure that supports advice, as it is shown';

-- The growth of a source between the ends of a span; with a row of null, as rows of its type, for a source that is read from a view.
CREATE FUNCTION aq_internal.growths(s aq_internal.span, source text) RETURNS SETOF jsonb LANGUAGE sql IMMUTABLE PARALLEL UNSAFE ROWS 100
RETURN aq_internal.growths(source, (s).earlier, (s).later);
COMMENT ON FUNCTION aq_internal.growths(aq_internal.span, text) IS 'Internal: rows of a source, with what its counters have grown by over a span';

CREATE FUNCTION aq_internal.growths(s aq_internal.span, source text, kind anyelement) RETURNS SETOF anyelement LANGUAGE sql STABLE PARALLEL UNSAFE ROWS 100 SET search_path = pg_catalog, pg_temp AS $$
	SELECT jsonb_populate_record(kind, g) FROM aq_internal.growths(source, (s).earlier, (s).later) g
$$;
COMMENT ON FUNCTION aq_internal.growths(aq_internal.span, text, anyelement) IS 'Internal: the same as rows of a view';

CREATE FUNCTION aq_internal.stat(s aq_internal.span, name text) RETURNS numeric LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN ((s).stats ->> name)::numeric;
COMMENT ON FUNCTION aq_internal.stat(aq_internal.span, text) IS 'Internal: what a statistic of aq.statistics has grown by; null where it is not counted';

CREATE FUNCTION aq_internal.seconds(s aq_internal.span, name text) RETURNS numeric LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN ((s).times ->> name)::numeric;
COMMENT ON FUNCTION aq_internal.seconds(aq_internal.span, text) IS 'Internal: seconds that a line of the time model has grown by; null where it is not counted';

-- Completes a span that has its ends.
CREATE FUNCTION aq_internal.span(s aq_internal.span) RETURNS aq_internal.span
LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	s.elapsed := greatest(extract(epoch FROM s.end_time - s.begin_time), 0.000001);
	SELECT coalesce(jsonb_object_agg(g ->> 'name', g -> 'value'), '{}') INTO s.stats FROM aq_internal.growths(s, 'statistics') g;
	SELECT coalesce(jsonb_object_agg(g ->> 'name', (g ->> 'time_us')::numeric / 1000000), '{}') INTO s.times FROM aq_internal.growths(s, 'time_model') g;
	s.db_time := aq_internal.seconds(s, 'DB time');
	s.transactions := aq_internal.stat(s, 'user commits') + aq_internal.stat(s, 'user rollbacks');
	RETURN s;
END $$;
COMMENT ON FUNCTION aq_internal.span(aq_internal.span) IS 'Internal: a span with the figures that most sections need';

-- Numbers have gaps: after a crash, and where snapshots were dropped.
CREATE FUNCTION aq_internal.snapshots_there(database_id bigint, wanted integer) RETURNS text LANGUAGE sql STABLE PARALLEL UNSAFE
RETURN (SELECT CASE
		WHEN count(*) = 0 THEN CASE WHEN database_id = aq_internal.dbid() THEN 'There are none yet: SELECT aq.take_snapshot() takes one.'
			ELSE 'There are none of this database: the view aq.snapshots lists those that have some here.' END
		WHEN min(h.snap_id) < wanted AND max(h.snap_id) > wanted THEN format('The nearest are %s and %s, see the view aq.snapshots.',
			max(h.snap_id) FILTER (WHERE h.snap_id < wanted), min(h.snap_id) FILTER (WHERE h.snap_id > wanted))
		ELSE format('There are snapshots from %s to %s, see the view aq.snapshots.', min(h.snap_id), max(h.snap_id)) END
	FROM aq_internal.snapshot h WHERE h.dbid = database_id);
COMMENT ON FUNCTION aq_internal.snapshots_there(bigint, integer) IS 'Internal: hint on which snapshots there are';

-- The span between two snapshots. If the server was restarted in between, it begins with the first snapshot after the restart; if that is also the
-- last one, with the restart itself, and then without figures that do not begin at zero there.
CREATE FUNCTION aq_internal.span(database_id bigint, begin_snap integer, end_snap integer) RETURNS aq_internal.span
LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	s aq_internal.span;
	b aq_internal.snapshot;
	e aq_internal.snapshot;
	reset text;
BEGIN
	SELECT h.* INTO b FROM aq_internal.snapshot h WHERE h.dbid = database_id AND h.snap_id = begin_snap;
	SELECT h.* INTO e FROM aq_internal.snapshot h WHERE h.dbid = database_id AND h.snap_id = end_snap;
	IF b.snap_id IS NULL OR e.snap_id IS NULL THEN
		PERFORM aq_internal.raise_error('AQ126', format('snapshot %s does not exist', coalesce(CASE WHEN b.snap_id IS NULL THEN begin_snap ELSE end_snap END::text, 'null')),
			aq_internal.snapshots_there(database_id, CASE WHEN b.snap_id IS NULL THEN begin_snap ELSE end_snap END));
	ELSIF b.taken >= e.taken THEN
		PERFORM aq_internal.raise_error('AQ120', format('%s to %s is not a range of snapshots', begin_snap, end_snap), 'The first must be before the last.');
	END IF;
	s.notes := '{}';
	IF b.startup_time <> e.startup_time THEN
		s.notes := ARRAY[format('The server was restarted between snapshots %s and %s; the last time it began with its counters at zero at %s.', begin_snap, end_snap,
			to_char(e.startup_time, 'YYYY-MM-DD HH24:MI:SS'))];
		SELECT h.* INTO b FROM aq_internal.snapshot h WHERE h.dbid = database_id AND h.startup_time = e.startup_time AND h.snap_id < end_snap
		ORDER BY h.snap_id LIMIT 1;
		s.notes := s.notes || CASE WHEN b.snap_id IS NOT NULL THEN format('So the report begins with snapshot %s.', b.snap_id)
			ELSE format('So the report begins there. What PostgreSQL has counted before, too, is left out.') END;
	END IF;
	s.dbid := database_id;
	s.begin_snap := b.snap_id;
	s.end_snap := end_snap;
	s.begin_time := coalesce(b.taken, e.startup_time);
	s.end_time := e.taken;
	SELECT coalesce(jsonb_object_agg(d.source, d.data), '{}') INTO s.earlier FROM aq_internal.snapshot_data d WHERE d.dbid = database_id AND d.snap_id = b.snap_id;
	SELECT coalesce(jsonb_object_agg(d.source, d.data), '{}') INTO s.later FROM aq_internal.snapshot_data d WHERE d.dbid = database_id AND d.snap_id = end_snap;
	IF b.snap_id IS NULL THEN
		s.later := s.later - '{database,wal,sql}'::text[] || jsonb_build_object('statistics',
			(SELECT coalesce(jsonb_agg(l), '[]') FROM jsonb_array_elements(s.later -> 'statistics') l WHERE l ->> 'source' IS DISTINCT FROM 'server'));
	END IF;
	SELECT string_agg(DISTINCT f.source, ', ' ORDER BY f.source) INTO reset
	FROM aq_internal.sources() f, jsonb_array_elements(s.earlier -> f.source) o, jsonb_array_elements(s.later -> f.source) n
	WHERE f.source IN ('statistics', 'time_model', 'waits', 'database', 'wal') AND (f.keys = '{}' OR o -> f.keys[1] = n -> f.keys[1])
		AND EXISTS (SELECT FROM unnest(f.counters) c WHERE (n ->> c)::numeric < (o ->> c)::numeric);
	IF reset IS NOT NULL THEN
		s.notes := s.notes || format('Some counters were set back in between and count from then on: %s.', reset);
	END IF;
	RETURN aq_internal.span(s);
END $$;
COMMENT ON FUNCTION aq_internal.span(bigint, integer, integer) IS 'Internal: the span between two snapshots';

CREATE FUNCTION aq_internal.moment(moment timestamptz) RETURNS text LANGUAGE sql STABLE PARALLEL UNSAFE
RETURN to_char(moment, 'YYYY-MM-DD HH24:MI:SS');
COMMENT ON FUNCTION aq_internal.moment(timestamptz) IS 'Internal: a time as reports show it';

CREATE FUNCTION aq_internal.minutes(seconds numeric) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN to_char(seconds / 60, 'FM999,999,990.00') || ' min' || CASE WHEN seconds < 60 THEN to_char(seconds, ' (FM90.00 "s)"') ELSE '' END;
COMMENT ON FUNCTION aq_internal.minutes(numeric) IS 'Internal: a time as the head of a report has it';

CREATE FUNCTION aq_internal.sessions(capture jsonb) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN (SELECT l ->> 'sessions' FROM jsonb_array_elements(capture -> 'session') l WHERE l ->> 'backend_type' = 'client backend');
COMMENT ON FUNCTION aq_internal.sessions(jsonb) IS 'Internal: sessions of users at a capture';

CREATE FUNCTION aq_internal.header(s aq_internal.span) RETURNS jsonb LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
SELECT jsonb_agg(jsonb_build_array(label, value) ORDER BY n) || coalesce((SELECT jsonb_agg(jsonb_build_array('Note', note)) FROM unnest((s).notes) note), '[]')
FROM (VALUES
	(1, 'Database', current_database()::text),
	(2, 'DB Id', (s).dbid::text),
	(3, 'Instance', '1'),
	(4, 'Release', format('pgaq %s on PostgreSQL %s', (SELECT extversion FROM pg_extension WHERE extname = 'pgaq'), current_setting('server_version'))),
	(5, 'Begin', concat_ws(', ', 'snapshot ' || (s).begin_snap, aq_internal.moment((s).begin_time))),
	(6, 'End', concat_ws(', ', 'snapshot ' || (s).end_snap, aq_internal.moment((s).end_time))),
	(7, 'Elapsed', aq_internal.minutes((s).elapsed)),
	(8, 'DB Time', aq_internal.minutes((s).db_time)),
	(9, 'Average Active Sessions', to_char(aq_internal.ratio((s).db_time, (s).elapsed), 'FM999,990.00') || ' sessions'),
	(10, 'Sessions', concat_ws(' to ', aq_internal.sessions((s).earlier), aq_internal.sessions((s).later)))) h(n, label, value)
WHERE value IS NOT NULL
$$;
COMMENT ON FUNCTION aq_internal.header(aq_internal.span) IS 'Internal: head of a report';
