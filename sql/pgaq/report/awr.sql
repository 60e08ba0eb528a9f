-- The report between two snapshots.

-- The course over the snapshots in between: time by wait class, and messages.
CREATE FUNCTION aq_internal.report_activity(s aq_internal.span) RETURNS jsonb LANGUAGE sql STABLE PARALLEL UNSAFE
RETURN (
	WITH p AS (
		SELECT h.snap_id, h.taken AS at, lag(h.snap_id) OVER w AS before,
			-- the first interval begins with the restart if the span does
			extract(epoch FROM h.taken - coalesce(lag(h.taken) OVER w, CASE WHEN (s).begin_snap IS NULL THEN (s).begin_time END)) AS seconds
		FROM aq_internal.snapshot h WHERE h.dbid = (s).dbid AND h.snap_id BETWEEN coalesce((s).begin_snap, (s).end_snap) AND (s).end_snap
			AND h.startup_time = (SELECT o.startup_time FROM aq_internal.snapshot o WHERE o.dbid = (s).dbid AND o.snap_id = (s).end_snap)
		WINDOW w AS (ORDER BY h.snap_id)),
	t AS (
		SELECT p.snap_id, p.at, p.seconds, coalesce(d.wait_class, d.event) AS class, sum(d.seconds) AS value
		FROM p, LATERAL (
			SELECT jsonb_object_agg(d.source, d.data) FILTER (WHERE d.snap_id = p.before) AS earlier, jsonb_object_agg(d.source, d.data) FILTER (WHERE d.snap_id = p.snap_id) AS later
			FROM aq_internal.snapshot_data d
			WHERE d.dbid = (s).dbid AND d.snap_id IN (p.before, p.snap_id) AND d.source IN ('waits', 'time_model', 'sampled_waits', 'parameter')) e,
			LATERAL (SELECT aq_internal.span(jsonb_populate_record(NULL::aq_internal.span, jsonb_build_object('earlier', coalesce(e.earlier, '{}'), 'later', coalesce(e.later, '{}'),
				'begin_time', p.at - make_interval(secs => p.seconds::double precision), 'end_time', p.at))) AS span) x,
			LATERAL aq_internal.db_time_parts(x.span) d
		WHERE p.seconds > 0 GROUP BY 1, 2, 3, 4),
	c AS (SELECT class FROM t GROUP BY class HAVING sum(value) > 0)
	SELECT aq_internal.section('activity', 'Activity by Wait Class', ARRAY['Snapshot', 'End', 'Wait Class', 'Time|s|number|3', 'Avg Active|sessions|number|3'],
		(SELECT jsonb_agg(jsonb_build_array(t.snap_id::text, aq_internal.when(t.at), t.class, t.value, aq_internal.ratio(t.value, t.seconds)) ORDER BY t.snap_id, t.value DESC, t.class) FROM t WHERE t.value > 0),
		ARRAY['One step for each snapshot: time of users'' sessions since the one before.'],
		aq_internal.chart_of('area', 'Average active sessions by wait class', 'end of the snapshot', (SELECT jsonb_agg(aq_internal.when(p.at) ORDER BY p.snap_id) FROM p WHERE p.seconds > 0), 'active', 'sessions',
			(SELECT jsonb_agg(jsonb_build_object('name', c.class, 'values', (SELECT jsonb_agg(coalesce((SELECT round(t.value / p.seconds, 3) FROM t WHERE t.snap_id = p.snap_id AND t.class = c.class), 0)
				ORDER BY p.snap_id) FROM p WHERE p.seconds > 0)) ORDER BY c.class <> 'DB CPU', c.class) FROM c))));
COMMENT ON FUNCTION aq_internal.report_activity(aq_internal.span) IS 'Internal: section of the report';

-- Between two snapshots with none in between there is no course to draw; samples have one.
CREATE FUNCTION aq_internal.with_samples(section jsonb, samples aq_internal.sample[]) RETURNS jsonb LANGUAGE sql IMMUTABLE PARALLEL UNSAFE
RETURN CASE WHEN jsonb_array_length(section #> '{chart,x,values}') = 1 AND cardinality(samples) > 0
	THEN section || jsonb_build_object('chart', NULL, 'notes', (section -> 'notes') || jsonb_build_array('There is one interval only: the course within it is in the next section, from samples.'))
	ELSE section END;
COMMENT ON FUNCTION aq_internal.with_samples(jsonb, aq_internal.sample[]) IS 'Internal: a section without its chart, if that has one step and samples show more';

CREATE FUNCTION aq_internal.report_throughput(s aq_internal.span) RETURNS jsonb LANGUAGE sql STABLE PARALLEL UNSAFE
RETURN (
	WITH q AS (
		SELECT h.snap_id, max(h.taken) AS at, sum(d.enqueued) AS enqueued, sum(d.done) AS done, sum(d.backlog) AS backlog
		FROM aq_internal.snapshot h JOIN aq_internal.snapshot_data f ON f.dbid = h.dbid AND f.snap_id = h.snap_id AND f.source = 'queue',
			LATERAL jsonb_to_recordset(f.data) d(enqueued bigint, done bigint, backlog bigint)
		WHERE h.dbid = (s).dbid AND h.snap_id BETWEEN coalesce((s).begin_snap, (s).end_snap) AND (s).end_snap
			AND h.startup_time = (SELECT o.startup_time FROM aq_internal.snapshot o WHERE o.dbid = (s).dbid AND o.snap_id = (s).end_snap)
		GROUP BY h.snap_id),
	r AS (
		SELECT snap_id, at, backlog, greatest(enqueued - lag(enqueued, 1, 0) OVER w, 0) AS enqueued, greatest(done - lag(done, 1, 0) OVER w, 0) AS done,
			extract(epoch FROM at - lag(at, 1, (s).begin_time) OVER w) AS seconds FROM q WINDOW w AS (ORDER BY snap_id)),
	-- one interval has no course: the rates of each queue are drawn instead
	b AS (
		SELECT coalesce(g ->> 'queue_name', '') AS queue, (g ->> 'enqueued')::numeric AS enqueued, (g ->> 'done')::numeric AS done
		FROM aq_internal.growths(s, 'queue') g WHERE (SELECT count(*) FROM r WHERE seconds > 0) = 1 AND coalesce((g ->> 'enqueued')::numeric, 0) + coalesce((g ->> 'done')::numeric, 0) > 0
		ORDER BY coalesce((g ->> 'enqueued')::numeric, 0) + coalesce((g ->> 'done')::numeric, 0) DESC, 1 LIMIT 10),
	c AS (
		SELECT aq_internal.chart_of('bar', 'Messages per second, by queue', 'queue', jsonb_agg(b.queue ORDER BY b.enqueued + b.done DESC, b.queue), 'messages', 'messages/s', jsonb_build_array(
			jsonb_build_object('name', 'enqueued', 'values', jsonb_agg(round(aq_internal.ratio(b.enqueued, (s).elapsed), 1) ORDER BY b.enqueued + b.done DESC, b.queue)),
			jsonb_build_object('name', 'done', 'values', jsonb_agg(round(aq_internal.ratio(b.done, (s).elapsed), 1) ORDER BY b.enqueued + b.done DESC, b.queue)))) AS chart
		FROM b)
	SELECT aq_internal.section('throughput', 'Throughput', ARRAY['Snapshot', 'End', 'Enqueued|messages/s|number|1', 'Done|messages/s|number|1', 'Backlog at End|message x consumer|number|0'],
		jsonb_agg(jsonb_build_array(snap_id::text, aq_internal.when(at), aq_internal.ratio(enqueued, seconds), aq_internal.ratio(done, seconds), backlog) ORDER BY snap_id),
		ARRAY['All queues of the database, one line for each snapshot: rates since the one before. Done: (message, consumer) pairs.',
			CASE WHEN count(*) = 1 THEN 'There is one interval only: the chart has the averages of its busiest queues.' END],
		CASE WHEN count(*) = 1 THEN (SELECT c.chart FROM c) ELSE
		aq_internal.chart_of('line', 'Messages per second', 'end of the snapshot', jsonb_agg(aq_internal.when(at) ORDER BY snap_id), 'messages', 'messages/s', jsonb_build_array(
			jsonb_build_object('name', 'enqueued', 'values', jsonb_agg(round(aq_internal.ratio(enqueued, seconds), 1) ORDER BY snap_id)),
			jsonb_build_object('name', 'done', 'values', jsonb_agg(round(aq_internal.ratio(done, seconds), 1) ORDER BY snap_id)))) END)
	FROM r WHERE seconds > 0);
COMMENT ON FUNCTION aq_internal.report_throughput(aq_internal.span) IS 'Internal: section of the report';

CREATE FUNCTION aq_internal.report_sections(s aq_internal.span) RETURNS jsonb LANGUAGE sql STABLE PARALLEL UNSAFE
RETURN (SELECT jsonb_agg(section ORDER BY n) FROM aq_internal.samples((s).dbid, (s).begin_time, (s).end_time) samples, LATERAL (VALUES
	(0, aq_internal.report_summary(s)), (1, aq_internal.report_load_profile(s)), (2, aq_internal.report_top_events(s)), (3, aq_internal.report_wait_classes(s)),
	(6, aq_internal.report_time_model(s)), (7, aq_internal.report_sql(s)), (8, aq_internal.report_histogram(s)), (9, aq_internal.report_queues(s)), (10, aq_internal.report_subscribers(s)),
	(11, aq_internal.report_shards(s)), (12, aq_internal.report_message_cache(s)), (13, aq_internal.report_wakeups(s)), (14, aq_internal.report_background(s)), (14.5, aq_internal.report_server_waits(s)),
	(15, aq_internal.report_mutex_sleeps(s)), (16, aq_internal.report_objects(s)), (16.2, aq_internal.report_hot_mutexes(s)), (16.5, aq_internal.report_mutex_activity(s)), (17, aq_internal.report_latch_activity(s)), (18, aq_internal.report_latch_sleeps(s)), (19, aq_internal.report_latch_misses(s)),
	(20, aq_internal.report_latch_parent(s)), (21, aq_internal.report_latch_children(s)), (22, aq_internal.report_spin_time(s)), (23, aq_internal.report_dictionary_cache(s)),
	(24, aq_internal.report_library_cache(s)), (26, aq_internal.report_statistics(s)), (27, aq_internal.report_parameters(s)),
	(4, CASE WHEN (s).end_snap IS NOT NULL THEN aq_internal.with_samples(aq_internal.report_activity(s), samples) END), (5, CASE WHEN (s).end_snap IS NOT NULL THEN aq_internal.report_throughput(s) END),
	(4.5, CASE WHEN cardinality(samples) > 0 THEN aq_internal.ash_activity(samples, (s).begin_time, (s).end_time) END),
	(28, CASE WHEN cardinality(samples) > 0 THEN aq_internal.ash_parameters((SELECT coalesce(array_agg(x), '{}') FROM unnest(samples) x WHERE x.foreground)) END)) v(n, section)
	WHERE section IS NOT NULL);
COMMENT ON FUNCTION aq_internal.report_sections(aq_internal.span) IS 'Internal: sections of the report, in their order';

CREATE FUNCTION aq.report_awr(begin_snap integer, end_snap integer, dbid bigint DEFAULT NULL) RETURNS jsonb
LANGUAGE plpgsql STABLE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	s aq_internal.span := aq_internal.span(coalesce(dbid, aq_internal.dbid()), begin_snap, end_snap);
BEGIN
	RETURN jsonb_build_object('kind', 'awr', 'title', format('Activity Report, Snapshots %s to %s', begin_snap, end_snap),
		'header', aq_internal.header(s), 'sections', aq_internal.report_sections(s), 'advice', aq_internal.advice(s));
END $$;
COMMENT ON FUNCTION aq.report_awr(integer, integer, bigint) IS
'The report between two snapshots, as a document for aq.report_text and aq.report_html.
dbid: the database of the snapshots, if not this one';
