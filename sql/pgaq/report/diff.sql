-- Comparison of two intervals: the sections of two reports side by side, as rates, because intervals differ in length.

-- A section of two reports: rows with the same keys, and for each figure both values and the difference. A figure with a * is divided by the seconds
-- of its interval.
CREATE FUNCTION aq_internal.diff_section(first jsonb, second jsonb, id text, keys text[], figures text[], seconds numeric[]) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	one jsonb := (SELECT s FROM jsonb_array_elements(first -> 'sections') s WHERE s ->> 'id' = $3);
	two jsonb := (SELECT s FROM jsonb_array_elements(second -> 'sections') s WHERE s ->> 'id' = $3);
	shape jsonb := coalesce(two, one);
	columns text[] := keys;
	spec text;
	c jsonb;
	lines jsonb;
	unit text;
BEGIN
	IF shape IS NULL THEN
		RETURN NULL;
	END IF;
	FOREACH spec IN ARRAY figures LOOP
		SELECT d INTO STRICT c FROM jsonb_array_elements(shape -> 'columns') d WHERE d ->> 'name' = rtrim(spec, '*');
		unit := CASE WHEN spec LIKE '%*' THEN (c ->> 'unit') || '/s' ELSE c ->> 'unit' END;
		columns := columns || ARRAY[format('%s 1st|%s|number|%s', rtrim(spec, '*'), unit, greatest((c ->> 'digits')::integer, 2)),
			format('%s 2nd|%s|number|%s', rtrim(spec, '*'), unit, greatest((c ->> 'digits')::integer, 2)), 'Diff|%|number|1'];
	END LOOP;
	WITH a AS (SELECT * FROM aq_internal.diff_rows(one, keys, figures, seconds[1])), b AS (SELECT * FROM aq_internal.diff_rows(two, keys, figures, seconds[2]))
	SELECT jsonb_agg(coalesce(b.key, a.key) || f.cells ORDER BY b.place NULLS LAST, a.place) INTO lines
	FROM a FULL JOIN b ON a.key = b.key CROSS JOIN LATERAL (
		SELECT jsonb_agg(v ORDER BY n, m) AS cells FROM generate_series(0, cardinality(figures) - 1) n,
			-- a missing row counts as rate 0 and share of time 0, but has no average; a section with rows of different units has all known rows
			LATERAL (SELECT columns[cardinality(keys) + 3 * n + 1] ~ '^[^|]*\|[^|]+/s\||^(Avg Active|% DB time|% of DB Time) ' AS rate) r,
			LATERAL (SELECT coalesce((a.figures_of ->> n)::numeric, CASE WHEN a.key IS NULL AND r.rate THEN 0 END) AS x,
				coalesce((b.figures_of ->> n)::numeric, CASE WHEN b.key IS NULL AND r.rate THEN 0 END) AS y) p,
			LATERAL unnest(ARRAY[p.x, p.y, aq_internal.ratio(p.y - p.x, p.x, 100)]) WITH ORDINALITY u(v, m)) f;
	RETURN aq_internal.section(id, shape ->> 'title', columns, lines, ARRAY['Diff: of the second against the first; empty when the first is 0 or one of them is not known.'],
		-- if units begin with a slash, each row has its own unit, so the rows have no common scale
		CASE WHEN split_part(columns[cardinality(keys) + 1], '|', 2) NOT LIKE '/%' THEN aq_internal.chart_of('bar', rtrim(figures[1], '*'), keys[1], (SELECT jsonb_agg(l -> 0 ORDER BY n) FROM jsonb_array_elements(lines) WITH ORDINALITY u(l, n) WHERE n <= 10),
			rtrim(figures[1], '*'), split_part(columns[cardinality(keys) + 1], '|', 2), jsonb_build_array(
			jsonb_build_object('name', '1st', 'values', (SELECT jsonb_agg(round((l ->> cardinality(keys))::numeric, 3) ORDER BY n) FROM jsonb_array_elements(lines) WITH ORDINALITY u(l, n) WHERE n <= 10)),
			jsonb_build_object('name', '2nd', 'values', (SELECT jsonb_agg(round((l ->> (cardinality(keys) + 1))::numeric, 3) ORDER BY n) FROM jsonb_array_elements(lines) WITH ORDINALITY u(l, n) WHERE n <= 10)))) END);
END $$;
COMMENT ON FUNCTION aq_internal.diff_section(jsonb, jsonb, text, text[], text[], numeric[]) IS 'Internal: a section of two reports side by side';

CREATE FUNCTION aq_internal.diff_rows(section jsonb, keys text[], figures text[], seconds numeric, OUT place bigint, OUT key jsonb, OUT figures_of jsonb) RETURNS SETOF record
LANGUAGE sql IMMUTABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
	WITH c AS (SELECT d ->> 'name' AS name, (n - 1)::integer AS at FROM jsonb_array_elements(section -> 'columns') WITH ORDINALITY u(d, n))
	SELECT n, (SELECT jsonb_agg(l -> c.at ORDER BY m) FROM unnest(keys) WITH ORDINALITY k(name, m) JOIN c USING (name)),
		(SELECT jsonb_agg(CASE WHEN f.spec LIKE '%*' THEN to_jsonb((l ->> c.at)::numeric / seconds) ELSE l -> c.at END ORDER BY m)
			FROM unnest(figures) WITH ORDINALITY f(spec, m) JOIN c ON c.name = rtrim(f.spec, '*'))
	FROM jsonb_array_elements(section -> 'rows') WITH ORDINALITY u(l, n)
$$;
COMMENT ON FUNCTION aq_internal.diff_rows(jsonb, text[], text[], numeric) IS 'Internal: keys and figures of a section''s rows';

CREATE FUNCTION aq_internal.diff_parameters(one aq_internal.span, two aq_internal.span) RETURNS jsonb LANGUAGE sql STABLE PARALLEL UNSAFE
RETURN (SELECT aq_internal.section('parameters', 'Parameters That Differ', ARRAY['Name', '1st', '2nd', 'Unit'],
		jsonb_agg(jsonb_build_array(b ->> 'name', a ->> 'setting', b ->> 'setting', b ->> 'unit') ORDER BY b ->> 'name'))
	FROM jsonb_array_elements((one).later -> 'parameter') a JOIN jsonb_array_elements((two).later -> 'parameter') b ON a ->> 'name' = b ->> 'name'
	WHERE a ->> 'setting' IS DISTINCT FROM b ->> 'setting');
COMMENT ON FUNCTION aq_internal.diff_parameters(aq_internal.span, aq_internal.span) IS 'Internal: section of the report';

CREATE FUNCTION aq_internal.diff_intervals(one aq_internal.span, two aq_internal.span) RETURNS jsonb LANGUAGE sql STABLE PARALLEL UNSAFE
RETURN (SELECT aq_internal.section('intervals', 'Intervals', ARRAY['Interval', 'Begin', 'End', 'Elapsed|min|number|2', 'DB Time|min|number|2', 'Average Active|sessions|number|2', 'Sessions'],
		jsonb_agg(jsonb_build_array(name, concat_ws(', ', 'snapshot ' || (i).begin_snap, aq_internal.when((i).begin_time)), concat_ws(', ', 'snapshot ' || (i).end_snap, aq_internal.when((i).end_time)),
			(i).elapsed / 60, (i).db_time / 60, aq_internal.ratio((i).db_time, (i).elapsed), concat_ws(' to ', aq_internal.sessions((i).earlier), aq_internal.sessions((i).later))) ORDER BY name))
	FROM (VALUES ('1st', one), ('2nd', two)) v(name, i));
COMMENT ON FUNCTION aq_internal.diff_intervals(aq_internal.span, aq_internal.span) IS 'Internal: section of the report';

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
	first jsonb := jsonb_build_object('sections', aq_internal.report_sections(one));
	second jsonb := jsonb_build_object('sections', aq_internal.report_sections(two));
	seconds numeric[] := ARRAY[one.elapsed, two.elapsed];
BEGIN
	RETURN jsonb_build_object('kind', 'awr_diff', 'title', format('Activity Comparison, Snapshots %s to %s and %s to %s', begin_snap_1, end_snap_1, begin_snap_2, end_snap_2),
		'header', aq_internal.diff_header(one, two),
		'sections', (SELECT jsonb_agg(section ORDER BY n) FROM (VALUES
			(0, aq_internal.diff_intervals(one, two)),
			(1, aq_internal.diff_section(first, second, 'load_profile', '{""}', '{Per Second,Per Transaction}', seconds)),
			(2, aq_internal.diff_section(first, second, 'top_events', '{Event,Wait Class}', '{Total Wait Time*,Waits*,Avg Wait,% DB time}', seconds)),
			(3, aq_internal.diff_section(first, second, 'wait_classes', '{Wait Class}', '{Avg Active,% DB time}', seconds)),
			(4, aq_internal.diff_section(first, second, 'time_model', '{Statistic}', '{Time*,% of DB Time}', seconds)),
			(5, aq_internal.diff_section(first, second, 'sql_elapsed', '{SQL Id,SQL Text}', '{Elapsed Time*,Executions*,Elapsed per Exec}', seconds)),
			(6, aq_internal.diff_section(first, second, 'queues', '{Queue}', '{Enqueue Rate,Done Rate,Avg Latency,Backlog End}', seconds)),
			(7, aq_internal.diff_section(first, second, 'subscribers', '{Queue,Consumer}', '{Done Rate,Avg Latency,Lag End}', seconds)),
			(8, aq_internal.diff_section(first, second, 'wakeups', '{Wake-ups}', '{Per Second,% of Sent,Per Message Dequeued}', seconds)),
			(9, aq_internal.diff_section(first, second, 'mutex_sleeps', '{Mutex Type,Location}', '{Sleeps*,Wait Time*}', seconds)),
			(10, aq_internal.diff_section(first, second, 'latch_activity', '{Latch Name}', '{Get Requests*,Pct Get Miss,Wait Time*}', seconds)),
			(11, aq_internal.diff_section(first, second, 'dictionary_cache', '{Cache}', '{Get Requests*,Pct Miss}', seconds)),
			(12, aq_internal.diff_section(first, second, 'statistics', '{Statistic}', '{Per Second,Per Transaction}', seconds)),
			(13, aq_internal.diff_parameters(one, two))) v(n, section) WHERE section IS NOT NULL),
		'advice', aq_internal.advice(two));
END $$;
COMMENT ON FUNCTION aq.report_awr_diff(integer, integer, integer, integer, bigint, bigint) IS
'Two intervals compared, as a document for aq.report_text and aq.report_html; its advice is on the
  second.
dbid_1 and dbid_2: the databases of the snapshots, if not this one';
