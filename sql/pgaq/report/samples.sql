-- Samples of active sessions, for reports.

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
LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
	WITH o AS MATERIALIZED (SELECT coalesce(aq_internal.samples_begin(database_id), 'infinity') AS oldest),
	h AS (
		SELECT sample_time, background, session, pid, event, wait_class, p1_meaning, p1, p2_meaning, p2, p3_meaning, p3, query_id, role, program, action, queue_name, operation, blocking_session, 1 AS weight
		FROM aq.session_history WHERE sample_time > (SELECT greatest(begin_time, oldest) FROM o) AND sample_time <= end_time
		UNION ALL
		SELECT sample_time, background, session, pid, event, wait_class, p1_meaning, p1, p2_meaning, p2, p3_meaning, p3, query_id, role, program, action, queue_name, operation, blocking_session, 10
		FROM aq.stored_session_history WHERE dbid = database_id AND sample_time > begin_time AND sample_time <= (SELECT least(oldest, end_time) FROM o))
	SELECT coalesce(array_agg(ROW(sample_time, NOT background, session, pid, coalesce(event, 'ON CPU'), coalesce(wait_class, 'ON CPU'), p1_meaning, p1, p2_meaning, p2, p3_meaning, p3,
		query_id::text, role, program, action, queue_name, operation, blocking_session, weight * s.setting::numeric / 1000)::aq_internal.sample), '{}')
	FROM h, pg_settings s WHERE s.name = 'pgaq.ash_interval'
$$;
COMMENT ON FUNCTION aq_internal.samples(bigint, timestamptz, timestamptz) IS 'Internal: samples of active sessions between two times';

-- Notes that explain missing samples.
CREATE FUNCTION aq_internal.samples_note(database_id bigint, begin_time timestamptz, end_time timestamptz) RETURNS jsonb LANGUAGE sql VOLATILE PARALLEL UNSAFE
RETURN (
	WITH h AS (SELECT aq_internal.samples_begin(database_id) AS memory, (SELECT min(d.sample_time) FROM aq.stored_session_history d WHERE d.dbid = database_id) AS disk)
	SELECT coalesce(jsonb_agg(jsonb_build_array('Note', note)), '[]') FROM h, LATERAL (VALUES
		(CASE WHEN coalesce(least(memory, disk), 'infinity') > begin_time THEN 'Samples are kept '
			|| CASE WHEN memory IS NULL AND disk IS NULL THEN 'nowhere: see pgaq.ash_size and pgaq.ash_interval.' ELSE format('since %s only.', aq_internal.moment(least(memory, disk))) END END),
		(CASE WHEN end_time > clock_timestamp() THEN 'The report ends in the future.' END)) n(note)
	WHERE note IS NOT NULL);
COMMENT ON FUNCTION aq_internal.samples_note(bigint, timestamptz, timestamptz) IS 'Internal: notes of a report on samples';

-- Slots of equal length for a report on samples: at most 60, none shorter than what a sample stands for.
CREATE FUNCTION aq_internal.slots(s aq_internal.span, samples aq_internal.sample[], OUT n integer, OUT at timestamptz, OUT wait_class text, OUT samples bigint, OUT active numeric)
RETURNS SETOF record LANGUAGE sql STABLE PARALLEL UNSAFE ROWS 100 SET search_path = pg_catalog, pg_temp AS $$
	SELECT n, (s).begin_time + make_interval(secs => (n * w.seconds)::double precision), x.wait_class, count(x.seconds), coalesce(sum(x.seconds), 0) / w.seconds
	FROM (SELECT greatest((s).elapsed / 60, coalesce((SELECT max(x.seconds) FROM unnest($2) x), 1)) AS seconds) w CROSS JOIN LATERAL generate_series(0, ceil((s).elapsed / w.seconds)::integer - 1) n
		LEFT JOIN unnest($2) x ON floor(extract(epoch FROM x.sample_time - (s).begin_time) / w.seconds) = n
	GROUP BY n, w.seconds, x.wait_class
$$;
COMMENT ON FUNCTION aq_internal.slots(aq_internal.span, aq_internal.sample[]) IS 'Internal: samples by time and wait class';
