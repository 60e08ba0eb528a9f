-- The response time report, after OraPub's rtpctx, for an interval between two calls or two snapshots.

CREATE FUNCTION aq_internal.rtpctx(s aq_internal.span, title text) RETURNS jsonb LANGUAGE sql STABLE PARALLEL UNSAFE
RETURN (
	WITH c AS (
		SELECT 1 AS place, 'CPU time: sessions and background' AS component, aq_internal.time(s, 'DB CPU') + coalesce(aq_internal.time(s, 'background cpu time'), 0) AS seconds, 0::numeric AS waits
		WHERE aq_internal.time(s, 'DB CPU') IS NOT NULL
		UNION ALL
		SELECT 2, g ->> 'event', (g ->> 'total_us')::numeric / 1000000, (g ->> 'waits')::numeric
		FROM aq_internal.growths(s, 'waits') g WHERE g ->> 'wait_class' <> 'Idle' AND (g ->> 'waits')::numeric > 0),
	t AS (SELECT c.*, sum(seconds) OVER () AS whole FROM c)
	SELECT jsonb_build_object('kind', 'rtpctx', 'title', title, 'header', aq_internal.header(s), 'advice', aq_internal.advice(s), 'sections', jsonb_build_array(
		aq_internal.section('response_time', 'Response Time', ARRAY['RT Component', 'Time|s|number|3', '% RT|%|percent|2', 'Avg Time Waited|ms|number|3', 'Wait Count|1000 waits|number|0'],
			(SELECT jsonb_agg(jsonb_build_array(component, seconds, aq_internal.ratio(seconds, whole, 100), coalesce(aq_internal.ratio(seconds, waits, 1000), 0), round(waits / 1000)) ORDER BY place, seconds DESC, component) FROM t),
			ARRAY['Waits of all sessions inside pgaq, Idle left out. % RT: of CPU time and these waits.'],
			(SELECT aq_internal.chart_of('bar', 'Time by component', 'component', jsonb_agg(component ORDER BY place, seconds DESC, component), 'time', 's', jsonb_build_array(jsonb_build_object('name', 'time',
				'values', jsonb_agg(round(seconds, 3) ORDER BY place, seconds DESC, component)))) FROM (SELECT * FROM t ORDER BY place, seconds DESC, component LIMIT 12) t)),
		aq_internal.section('work', 'Work', ARRAY['Statistic', 'Unit', 'Interval Work|see unit|number|0', 'Work Per Second|/s|number|2'],
			(SELECT jsonb_agg(jsonb_build_array(key, CASE WHEN key ~ 'bytes|size' THEN 'bytes' WHEN key ~ 'reads' THEN 'blocks' ELSE 'times' END, value, aq_internal.ratio(value, (s).elapsed)) ORDER BY key)
				FROM jsonb_each_text((s).stats) j(key, word), CAST(word AS numeric) value WHERE value > 0)))));
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
  aq.report_text and aq.report_html.
mark: the result of aq.rtpctx_start';

CREATE FUNCTION aq.report_rtpctx(begin_snap integer, end_snap integer, dbid bigint DEFAULT NULL) RETURNS jsonb
LANGUAGE sql STABLE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
RETURN aq_internal.rtpctx(aq_internal.span(coalesce(dbid, aq_internal.dbid()), begin_snap, end_snap), format('Response Time Report, Snapshots %s to %s', begin_snap, end_snap));
COMMENT ON FUNCTION aq.report_rtpctx(integer, integer, bigint) IS
'The response time report between two snapshots.
dbid: the database of the snapshots, if not this one';
