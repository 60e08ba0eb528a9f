-- Figures between two snapshots that sections and advice share: DB time, by what it was spent on; parameters; waits by their duration.

CREATE FUNCTION aq_internal.parameters(capture jsonb) RETURNS TABLE (name text, setting text, unit text, source text, boot_val text)
LANGUAGE sql IMMUTABLE PARALLEL UNSAFE ROWS 60 SET search_path = pg_catalog, pg_temp AS $$
	SELECT * FROM jsonb_to_recordset(capture -> 'parameter') p(name text, setting text, unit text, source text, boot_val text)
$$;
COMMENT ON FUNCTION aq_internal.parameters(jsonb) IS 'Internal: the parameters at a capture';

CREATE FUNCTION aq_internal.setting(capture jsonb, name text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN (SELECT p.setting FROM aq_internal.parameters(capture) p WHERE p.name = $2);
COMMENT ON FUNCTION aq_internal.setting(jsonb, text) IS 'Internal: a parameter at a capture';

-- Waits of users' sessions, without class Idle, and the time on CPU.
CREATE FUNCTION aq_internal.foreground(s aq_internal.span, OUT event text, OUT wait_class text, OUT waits numeric, OUT seconds numeric) RETURNS SETOF record
LANGUAGE sql STABLE PARALLEL UNSAFE ROWS 30 SET search_path = pg_catalog, pg_temp AS $$
	SELECT w.event, w.wait_class, w.client_waits, w.client_us / 1e6 FROM aq_internal.growths(s, 'waits', NULL::aq.waits) w WHERE w.wait_class <> 'Idle' AND w.client_waits > 0
	UNION ALL
	SELECT 'DB CPU', NULL, NULL, aq_internal.seconds(s, 'DB CPU') WHERE aq_internal.seconds(s, 'DB CPU') > 0
$$;
COMMENT ON FUNCTION aq_internal.foreground(aq_internal.span) IS 'Internal: waits of users'' sessions over a span, and their time on CPU';

-- I/O of users' sessions that PostgreSQL has timed, and the wait event that it is.
CREATE FUNCTION aq_internal.timed_io(s aq_internal.span, OUT event text, OUT wait_class text, OUT seconds numeric) RETURNS SETOF record
LANGUAGE sql STABLE PARALLEL UNSAFE ROWS 4 SET search_path = pg_catalog, pg_temp AS $$
	SELECT v.event, v.wait_class, aq_internal.seconds(s, v.line)
	FROM (VALUES ('IO: DataFileRead', 'User I/O', 'data file read time', 'track_io_timing'), ('IO: DataFileWrite', 'User I/O', 'data file write time', 'track_io_timing'),
		('IO: WALWrite', 'Commit', 'WAL write time', 'track_wal_io_timing'), ('IO: WALSync', 'Commit', 'WAL sync time', 'track_wal_io_timing')) v(event, wait_class, line, parameter)
	WHERE aq_internal.seconds(s, v.line) > 0 AND aq_internal.setting((s).earlier, v.parameter) = 'on' AND aq_internal.setting((s).later, v.parameter) = 'on'
$$;
COMMENT ON FUNCTION aq_internal.timed_io(aq_internal.span) IS 'Internal: I/O over a span, as PostgreSQL has timed it';

-- PostgreSQL's own waits of users' sessions, estimated: a wait that is met in a share p of the n samples of sessions outside the waits of pgaq has p of
-- their time. All of them have at most what CPU leaves. What PostgreSQL has timed is left out afterwards: its share counts. It has other names from 17
-- on (WalSync), and from 18 on a session waits in AioIoCompletion for its reads. error: half of the 95 % interval of a share (Wilson's), which is also
-- right for few samples.
CREATE FUNCTION aq_internal.sampled_parts(s aq_internal.span, OUT event text, OUT wait_class text, OUT seconds numeric, OUT error numeric, OUT samples numeric) RETURNS SETOF record
LANGUAGE sql STABLE PARALLEL UNSAFE ROWS 20 SET search_path = pg_catalog, pg_temp AS $$
	WITH t AS (
		SELECT (s).db_time - coalesce(sum(f.seconds) FILTER (WHERE f.wait_class IS NOT NULL), 0) AS outside, (s).db_time - coalesce(sum(f.seconds), 0) AS rest
		FROM aq_internal.foreground(s) f),
	p AS (
		SELECT w.event, w.wait_class, w.db_samples AS samples, w.db_time_us / sum(w.db_time_us) OVER () AS share, sum(w.db_samples) OVER () AS n
		FROM aq_internal.growths(s, 'sampled_waits', NULL::aq.sampled_waits) w
		WHERE w.db_samples > 0 AND w.db_time_us > 0),
	e AS (SELECT p.*, 1.96 / (1 + 3.8416 / n) * sqrt(share * (1 - share) / n + 3.8416 / (4 * n * n)) AS half FROM p WHERE p.event <> 'ON CPU'),
	k AS (SELECT t.outside * least(1, t.rest / nullif(t.outside * sum(e.share), 0)) AS seconds FROM t, e GROUP BY t.outside, t.rest)
	SELECT e.event, e.wait_class, k.seconds * e.share, k.seconds * e.half, e.samples FROM e, k
	WHERE k.seconds > 0
		AND lower(CASE e.event WHEN 'IO: AioIoCompletion' THEN 'IO: DataFileRead' ELSE e.event END) NOT IN (SELECT lower(i.event) FROM aq_internal.timed_io(s) i)
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

-- The snapshots of a span after the first, each with the one before. The first step begins with the restart if the span does.
CREATE FUNCTION aq_internal.steps(s aq_internal.span, OUT snap_id integer, OUT before integer, OUT at timestamptz, OUT elapsed numeric) RETURNS SETOF record
LANGUAGE sql STABLE PARALLEL UNSAFE ROWS 100 SET search_path = pg_catalog, pg_temp AS $$
	SELECT p.* FROM (
		SELECT h.snap_id, lag(h.snap_id) OVER w, h.taken, extract(epoch FROM h.taken - coalesce(lag(h.taken) OVER w, CASE WHEN (s).begin_snap IS NULL THEN (s).begin_time END)) AS elapsed
		FROM aq_internal.snapshot h WHERE h.dbid = (s).dbid AND h.snap_id BETWEEN coalesce((s).begin_snap, (s).end_snap) AND (s).end_snap
			AND h.startup_time = (SELECT o.startup_time FROM aq_internal.snapshot o WHERE o.dbid = (s).dbid AND o.snap_id = (s).end_snap)
		WINDOW w AS (ORDER BY h.snap_id)) p
	WHERE p.elapsed > 0
$$;
COMMENT ON FUNCTION aq_internal.steps(aq_internal.span) IS 'Internal: the snapshots of a span after the first';

-- The same for the snapshots in between: for each the time since the one before, by wait class; a row without a class where there was none.
CREATE FUNCTION aq_internal.course(s aq_internal.span, OUT snap_id integer, OUT at text, OUT elapsed numeric, OUT class text, OUT seconds numeric)
RETURNS SETOF record LANGUAGE sql STABLE PARALLEL UNSAFE ROWS 100 SET search_path = pg_catalog, pg_temp AS $$
	SELECT p.snap_id, aq_internal.moment(p.at), p.elapsed, coalesce(d.wait_class, d.event), sum(d.seconds)
	FROM aq_internal.steps(s) p CROSS JOIN LATERAL (
			SELECT coalesce(jsonb_object_agg(d.source, d.data) FILTER (WHERE d.snap_id = p.before), '{}') AS earlier,
				coalesce(jsonb_object_agg(d.source, d.data) FILTER (WHERE d.snap_id = p.snap_id), '{}') AS later
			FROM aq_internal.snapshot_data d
			WHERE d.dbid = (s).dbid AND d.snap_id IN (p.before, p.snap_id) AND d.source IN ('waits', 'time_model', 'sampled_waits', 'parameter')) e
		CROSS JOIN LATERAL (SELECT aq_internal.span(jsonb_populate_record(NULL::aq_internal.span, jsonb_build_object('earlier', e.earlier, 'later', e.later,
			'begin_time', p.at - make_interval(secs => p.elapsed::double precision), 'end_time', p.at))) AS span) x
		LEFT JOIN LATERAL aq_internal.db_time_parts(x.span) d ON d.seconds > 0
	GROUP BY 1, 2, 3, 4
$$;
COMMENT ON FUNCTION aq_internal.course(aq_internal.span) IS 'Internal: DB time by wait class, for each snapshot of a span';

CREATE FUNCTION aq_internal.wait_durations(s aq_internal.span, OUT event text, OUT wait_class text, OUT less_than_us bigint, OUT waits numeric, OUT b integer)
RETURNS SETOF record LANGUAGE sql STABLE PARALLEL UNSAFE ROWS 100 SET search_path = pg_catalog, pg_temp AS $$
	SELECT h.event, coalesce(h.wait_class, ''), h.less_than_us, h.waits, width_bucket(h.less_than_us, '{2,17,129,1025,8193,65537,1048577}')
	FROM aq_internal.growths(s, 'wait_histogram') g, jsonb_to_record(g) h(event text, wait_class text, less_than_us bigint, waits numeric) WHERE h.waits > 0
$$;
COMMENT ON FUNCTION aq_internal.wait_durations(aq_internal.span) IS 'Internal: the histogram of waits over a span; b: its column in the report';
