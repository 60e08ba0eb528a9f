-- Samples of active sessions: their sections in the report between two snapshots, and a separate report.

CREATE TYPE aq_internal.sample AS (sample_time timestamptz, foreground boolean, sid integer, pid integer, event text, wait_class text,
	p1text text, p1 bigint, p2text text, p2 bigint, p3text text, p3 bigint, sql_id text, username text, program text, action text, queue_name text,
	operation text, blocker integer, seconds numeric);
COMMENT ON TYPE aq_internal.sample IS 'Internal: a sample of an active session, and the time it stands for';

-- The ring has all samples from this time on; null: it has none, or they belong to another database.
CREATE FUNCTION aq_internal.samples_begin(database_id bigint) RETURNS timestamptz LANGUAGE sql VOLATILE PARALLEL UNSAFE
RETURN (SELECT CASE WHEN i.rows_written <= i.rows_max THEN i.started ELSE (SELECT min(h.sample_time) FROM aq.session_history h) END
	FROM aq.session_sampler i WHERE database_id = aq_internal.dbid());
COMMENT ON FUNCTION aq_internal.samples_begin(bigint) IS 'Internal: time of the oldest sample in memory';

-- Samples from memory; older ones from disk, where one sample in ten is saved and counts for ten.
CREATE FUNCTION aq_internal.samples(database_id bigint, begin_time timestamptz, end_time timestamptz) RETURNS aq_internal.sample[]
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	seconds CONSTANT numeric := (SELECT s.setting::numeric / 1000 FROM pg_settings s WHERE s.name = 'pgaq.ash_interval');
	oldest CONSTANT timestamptz := aq_internal.samples_begin(database_id);
	found aq_internal.sample[];
	older aq_internal.sample[];
BEGIN
	IF oldest < end_time THEN
		SELECT array_agg(ROW(h.sample_time, NOT h.background, h.session, h.pid, coalesce(h.event, 'ON CPU'), coalesce(h.wait_class, 'ON CPU'),
			h.p1_meaning, h.p1, h.p2_meaning, h.p2, h.p3_meaning, h.p3, h.query_id::text, h.role, h.program, h.action, h.queue_name, h.operation, h.blocking_session, seconds)::aq_internal.sample)
		INTO found FROM aq.session_history h WHERE h.sample_time > greatest(begin_time, oldest) AND h.sample_time <= end_time;
	END IF;
	IF (oldest <= begin_time) IS NOT TRUE THEN
		SELECT array_agg(ROW(h.sample_time, NOT h.background, h.session, h.pid, coalesce(h.event, 'ON CPU'), coalesce(h.wait_class, 'ON CPU'),
			h.p1_meaning, h.p1, h.p2_meaning, h.p2, h.p3_meaning, h.p3, h.query_id::text, h.role, h.program, h.action, h.queue_name, h.operation, h.blocking_session, 10 * seconds)::aq_internal.sample)
		INTO older FROM aq.stored_session_history h WHERE h.dbid = database_id AND h.sample_time > begin_time AND h.sample_time <= least(oldest, end_time);
	END IF;
	RETURN coalesce(older, '{}') || coalesce(found, '{}');
END $$;
COMMENT ON FUNCTION aq_internal.samples(bigint, timestamptz, timestamptz) IS 'Internal: samples of active sessions between two times';

-- The most frequent values of an expression, as a section.
CREATE FUNCTION aq_internal.ash_top(samples aq_internal.sample[], elapsed numeric, id text, title text, columns text[], question text, notes text[] DEFAULT '{}') RETURNS jsonb
LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	lines jsonb;
BEGIN
	EXECUTE format($query$
		WITH a AS (SELECT sum(x.seconds) AS seconds FROM unnest($1) x),
		t AS (SELECT key, count(*) AS n, sum(seconds) AS seconds FROM (SELECT %s AS key, x.seconds FROM unnest($1) x WHERE %s) k GROUP BY key ORDER BY seconds DESC, key LIMIT 15)
		SELECT jsonb_agg(t.key || jsonb_build_array(aq_internal.ratio(t.seconds, a.seconds, 100), aq_internal.ratio(t.seconds, $2), t.n) ORDER BY t.seconds DESC, t.key) FROM t, a$query$,
		split_part(question, ' WHERE ', 1), coalesce(nullif(split_part(question, ' WHERE ', 2), ''), 'true')) INTO lines USING samples, elapsed;
	RETURN aq_internal.section(id, title, columns || ARRAY['% Activity|%|percent|2', 'Avg Active|sessions|number|2', 'Samples|samples|number|0'], lines, notes);
END $$;
COMMENT ON FUNCTION aq_internal.ash_top(aq_internal.sample[], numeric, text, text, text[], text, text[]) IS 'Internal: section of a report on samples';

-- % Event: share of the event in the time of all active samples; % Activity: share of this triple.
CREATE FUNCTION aq_internal.ash_parameters(samples aq_internal.sample[]) RETURNS jsonb LANGUAGE sql STABLE PARALLEL UNSAFE
RETURN (
	WITH x AS (SELECT *, concat_ws(', ', '"' || p1 || '"', '"' || p2 || '"', '"' || p3 || '"') AS triple FROM unnest(samples)),
	a AS (SELECT sum(seconds) AS n FROM x),
	e AS (SELECT event, sum(seconds) AS n FROM x WHERE wait_class <> 'ON CPU' GROUP BY event ORDER BY n DESC, event LIMIT 10),
	t AS (SELECT x.event, x.triple, min(x.p1text) AS p1text, min(x.p2text) AS p2text, min(x.p3text) AS p3text, sum(x.seconds) AS n,
			row_number() OVER (PARTITION BY x.event ORDER BY sum(x.seconds) DESC, x.triple) AS place
		FROM x JOIN e USING (event) GROUP BY x.event, x.triple)
	SELECT aq_internal.section('top_parameters', 'Top Event P1/P2/P3 Values', ARRAY['Event', '% Event|%|percent|2', 'P1, P2, P3 Values', '% Activity|%|percent|2', 'Parameter 1', 'Parameter 2', 'Parameter 3'],
		jsonb_agg(jsonb_build_array(e.event, aq_internal.ratio(e.n, a.n, 100), t.triple, aq_internal.ratio(t.n, a.n, 100), t.p1text, t.p2text, t.p3text) ORDER BY e.n DESC, e.event, t.place),
		ARRAY['Samples of users'' sessions. % Event and % Activity are both of all samples: an event with many values has a small % Activity in each.'])
	FROM e JOIN t USING (event), a WHERE t.place <= 3);
COMMENT ON FUNCTION aq_internal.ash_parameters(aq_internal.sample[]) IS 'Internal: section of a report on samples';

CREATE FUNCTION aq_internal.ash_activity(samples aq_internal.sample[], begin_time timestamptz, end_time timestamptz) RETURNS jsonb LANGUAGE sql STABLE PARALLEL UNSAFE
RETURN (
	WITH w AS (SELECT greatest(extract(epoch FROM end_time - begin_time) / 60, coalesce((SELECT max(x.seconds) FROM unnest(samples) x), 1)) AS seconds),
	slot AS (SELECT n, begin_time + make_interval(secs => (n * w.seconds)::double precision) AS at FROM w, generate_series(0, ceil(extract(epoch FROM end_time - begin_time) / w.seconds)::integer - 1) n),
	c AS (SELECT floor(extract(epoch FROM x.sample_time - begin_time) / w.seconds)::integer AS n, x.wait_class, sum(x.seconds) / max(w.seconds) AS active
		FROM unnest(samples) x, w GROUP BY 1, 2),
	k AS (SELECT DISTINCT wait_class FROM c)
	SELECT aq_internal.section('ash_activity', 'Activity Over Time', ARRAY['Slot', 'Samples|samples|number|0', 'Top Class', 'Avg Active|sessions|number|2'],
		(SELECT jsonb_agg(jsonb_build_array(aq_internal.when(s.at), (SELECT count(*) FROM unnest(samples) x WHERE floor(extract(epoch FROM x.sample_time - begin_time) / w.seconds) = s.n),
				(SELECT c.wait_class FROM c WHERE c.n = s.n ORDER BY c.active DESC, c.wait_class LIMIT 1), (SELECT sum(c.active) FROM c WHERE c.n = s.n)) ORDER BY s.n)
			FROM slot s, w WHERE EXISTS (SELECT FROM c WHERE c.n = s.n)),
		ARRAY['Samples of all active sessions, users'' and background; slots without one are left out of the table.'],
		aq_internal.chart_of('area', 'Active sessions by wait class, from samples', 'begin of the slot', (SELECT jsonb_agg(to_char(s.at, 'HH24:MI:SS') ORDER BY s.n) FROM slot s), 'active', 'sessions',
			(SELECT jsonb_agg(jsonb_build_object('name', k.wait_class, 'values', (SELECT jsonb_agg(round(coalesce((SELECT c.active FROM c WHERE c.n = s.n AND c.wait_class = k.wait_class), 0), 3)
				ORDER BY s.n) FROM slot s)) ORDER BY k.wait_class <> 'ON CPU', k.wait_class) FROM k))));
COMMENT ON FUNCTION aq_internal.ash_activity(aq_internal.sample[], timestamptz, timestamptz) IS 'Internal: section of a report on samples';

CREATE FUNCTION aq_internal.ash_sections(samples aq_internal.sample[], begin_time timestamptz, end_time timestamptz) RETURNS jsonb
LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	elapsed numeric := extract(epoch FROM end_time - begin_time);
	users aq_internal.sample[] := (SELECT coalesce(array_agg(x), '{}') FROM unnest(samples) x WHERE x.foreground);
	background aq_internal.sample[] := (SELECT coalesce(array_agg(x), '{}') FROM unnest(samples) x WHERE NOT x.foreground);
BEGIN
	RETURN jsonb_build_array(
		aq_internal.ash_activity(samples, begin_time, end_time),
		aq_internal.ash_top(users, elapsed, 'ash_user_events', 'Top Events of Client Sessions', ARRAY['Event', 'Event Class'], 'jsonb_build_array(x.event, x.wait_class)'),
		aq_internal.ash_top(background, elapsed, 'ash_background_events', 'Top Events of Background Processes', ARRAY['Event', 'Event Class'], 'jsonb_build_array(x.event, x.wait_class)'),
		aq_internal.ash_parameters(users),
		aq_internal.ash_top(users, elapsed, 'ash_queues', 'Top Queues and Operations', ARRAY['Queue', 'Operation', 'Event'], 'jsonb_build_array(x.queue_name, x.operation, x.event) WHERE x.operation IS NOT NULL'),
		aq_internal.ash_top(users, elapsed, 'ash_sql', 'Top Statements and Events', ARRAY['SQL Id', 'Event'], 'jsonb_build_array(x.sql_id, x.event) WHERE x.sql_id IS NOT NULL',
			ARRAY['SQL Id: queryid of pg_stat_statements; there is one when compute_query_id is on.']),
		aq_internal.ash_top(users, elapsed, 'ash_actions', 'Top Programs and Actions', ARRAY['Program', 'Action', 'User'], 'jsonb_build_array(x.program, x.action, x.username)'),
		aq_internal.ash_top(users, elapsed, 'ash_sessions', 'Top Sessions', ARRAY['Session', 'Process', 'User', 'Program', 'Top Event'],
			'jsonb_build_array(x.sid::text, x.pid::text, x.username, x.program, x.event)'),
		aq_internal.ash_top(samples, elapsed, 'ash_blockers', 'Top Blocking Sessions', ARRAY['Blocking Session', 'Event Caused'], 'jsonb_build_array(x.blocker::text, x.event) WHERE x.blocker IS NOT NULL'));
END $$;
COMMENT ON FUNCTION aq_internal.ash_sections(aq_internal.sample[], timestamptz, timestamptz) IS 'Internal: sections of a report on samples';

-- PostgreSQL's own waits between two snapshots.
CREATE FUNCTION aq_internal.report_server_waits(s aq_internal.span) RETURNS jsonb LANGUAGE sql STABLE PARALLEL UNSAFE
RETURN (SELECT CASE WHEN (s).later ? 'sampled_waits' THEN aq_internal.section('server_waits', 'PostgreSQL''s Own Waits (Sampled)',
		ARRAY['Event', 'Session Type', 'Samples|samples|number|0', 'Estimated Time|s|number|1', '% DB time|%|percent|1', 'Wait Class'],
		jsonb_agg(jsonb_build_array(w.event, CASE WHEN w.background THEN 'BACKGROUND' ELSE 'FOREGROUND' END, w.samples, w.time_us / 1000000, CASE WHEN NOT w.background THEN aq_internal.ratio(w.time_us / 1000000, (s).db_time, 100) END, w.wait_class)
			ORDER BY w.background, w.samples DESC, w.event),
		ARRAY['Estimates: PostgreSQL does not time most of its waits; what it times is in the top events. Each sample stands for the interval of the sampler. Of all sessions of the server, so more than DB time is possible.']) END
	FROM aq_internal.growths(s, 'sampled_waits') g, jsonb_to_record(g) w(event text, background boolean, samples numeric, time_us numeric, wait_class text) WHERE w.samples > 0);
COMMENT ON FUNCTION aq_internal.report_server_waits(aq_internal.span) IS 'Internal: section of the report';

-- Notes that explain missing samples.
CREATE FUNCTION aq_internal.samples_note(database_id bigint, begin_time timestamptz, end_time timestamptz) RETURNS jsonb LANGUAGE sql VOLATILE PARALLEL UNSAFE
RETURN (
	WITH h AS (SELECT aq_internal.samples_begin(database_id) AS memory, (SELECT min(d.sample_time) FROM aq.stored_session_history d WHERE d.dbid = database_id) AS disk)
	SELECT coalesce(jsonb_agg(jsonb_build_array('Note', note)), '[]') FROM h, LATERAL (VALUES
		(CASE WHEN coalesce(least(memory, disk), 'infinity') > begin_time THEN 'Samples are kept '
			|| CASE WHEN memory IS NULL AND disk IS NULL THEN 'nowhere: see pgaq.ash_size and pgaq.ash_interval.' ELSE format('since %s only.', aq_internal.when(least(memory, disk))) END END),
		(CASE WHEN end_time > clock_timestamp() THEN 'The report ends in the future.' END)) n(note)
	WHERE note IS NOT NULL);
COMMENT ON FUNCTION aq_internal.samples_note(bigint, timestamptz, timestamptz) IS 'Internal: notes of a report on samples';

CREATE FUNCTION aq.report_ash(begin_time timestamptz, end_time timestamptz DEFAULT clock_timestamp(), dbid bigint DEFAULT NULL) RETURNS jsonb
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	of_db bigint := coalesce(dbid, aq_internal.dbid());
	samples aq_internal.sample[];
	elapsed numeric := extract(epoch FROM end_time - begin_time);
BEGIN
	IF (begin_time < end_time) IS NOT TRUE THEN
		RAISE invalid_parameter_value USING MESSAGE = 'the report must begin before it ends', HINT = 'Specify begin_time and end_time, e.g. now() - interval ''15 minutes''.';
	END IF;
	IF NOT pg_is_in_recovery() THEN
		PERFORM aq_internal.ash_flush();
	END IF;
	samples := aq_internal.samples(of_db, begin_time, end_time);
	RETURN jsonb_build_object('kind', 'ash', 'title', 'Active Sessions Report', 'advice', '[]'::jsonb,
		'header', jsonb_build_array(jsonb_build_array('Database', current_database()), jsonb_build_array('DB Id', of_db::text),
			jsonb_build_array('Begin', aq_internal.when(begin_time)), jsonb_build_array('End', aq_internal.when(end_time)), jsonb_build_array('Elapsed', aq_internal.minutes(elapsed)),
			jsonb_build_array('Samples', cardinality(samples) || ' active sessions'),
			jsonb_build_array('Each Stands For', coalesce((SELECT string_agg(DISTINCT trim_scale(x.seconds)::text, ' or ') || ' s' FROM unnest(samples) x), '-')),
			jsonb_build_array('Average Active Sessions', to_char((SELECT coalesce(sum(x.seconds), 0) FROM unnest(samples) x) / elapsed, 'FM999,990.00') || ' sessions')) || aq_internal.samples_note(of_db, begin_time, end_time),
		'sections', aq_internal.ash_sections(samples, begin_time, end_time));
END $$;
COMMENT ON FUNCTION aq.report_ash(timestamptz, timestamptz, bigint) IS
'The activity of sessions between two times, from samples, as a document for aq.report_text and
  aq.report_html.
dbid: the database, if not this one';
