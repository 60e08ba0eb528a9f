-- The history of active sessions: the ring in memory, and one sample in ten on disk.

CREATE FUNCTION aq_internal.ash_rows(after bigint)
RETURNS TABLE (
	sample_id bigint,
	sample_time timestamptz,
	session integer,
	pid integer,
	background boolean,
	database oid,
	user_id oid,
	query_id bigint,
	event integer,
	event_id bigint,
	event_name text,
	wait_class_id bigint,
	wait_class_number integer,
	wait_class text,
	sequence bigint,
	p1text text,
	p1 bigint,
	p2text text,
	p2 bigint,
	p3text text,
	p3 bigint,
	wait_us bigint,
	time_waited bigint,
	blocker integer,
	blocker_pid integer,
	operation text,
	queue_id integer,
	program text,
	module text,
	action text)
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE ROWS 10000 AS 'MODULE_PATHNAME', 'aq_ring_samples';
COMMENT ON FUNCTION aq_internal.ash_rows(bigint) IS 'Samples of active sessions later than this one';

CALL aq_internal.make_source('ash_profile', 'aq_ring_profile', 'The server''s own waits as the samples have met them',
	'background boolean, event integer, event_id bigint, event_name text, wait_class_id bigint, wait_class_number integer,
	 wait_class text, samples bigint, time_us bigint, db_samples bigint, db_time_us bigint', 50);

CREATE FUNCTION aq_internal.ash_info(
	OUT rows_max bigint,
	OUT rows_written bigint,
	OUT sample_id bigint,
	OUT samples bigint,
	OUT rounds bigint,
	OUT spent_us bigint,
	OUT started timestamptz)
RETURNS SETOF record
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 1 AS 'MODULE_PATHNAME', 'aq_ring_info';
COMMENT ON FUNCTION aq_internal.ash_info() IS 'The ring of samples';

CREATE FUNCTION aq_internal.sample_closely() RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_ring_sample_closely';
COMMENT ON FUNCTION aq_internal.sample_closely() IS 'Internal: an interval of a report begins; for a minute the profile is sampled ten times as often';

REVOKE EXECUTE ON FUNCTION aq_internal.ash_rows(bigint), aq_internal.ash_info(), aq_internal.sample_closely() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aq_internal.ash_rows(bigint), aq_internal.ash_info() TO pg_monitor;

-- Saves one sample in ten. Processes without a database are saved in each database.
-- A sample is saved only once, so any role may call this at any time; the lock serializes calls.
CREATE FUNCTION aq_internal.ash_keep() RETURNS void
LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
	INSERT INTO aq_internal.active_session
	SELECT b.dbid, r.sample_id, r.sample_time, r.session, r.pid, r.background, r.user_id, u.rolname,
		r.query_id, r.event_name, r.event_id, r.sequence, r.p1text, r.p1, r.p2text, r.p2, r.p3text, r.p3, r.wait_class, r.wait_class_id, r.time_waited,
		r.blocker, r.blocker_pid, r.queue_id, q.queue_name, r.program, coalesce(r.module, r.program), r.action, r.operation
	FROM aq_internal.ash_info() i
		CROSS JOIN aq_internal.dbid() b (dbid)
		CROSS JOIN LATERAL aq_internal.ash_rows(coalesce((SELECT max(h.sample_id) FROM aq_internal.active_session h WHERE h.dbid = b.dbid AND h.sample_id <= i.sample_id), 0)) r
		LEFT JOIN pg_roles u ON u.oid = r.user_id
		LEFT JOIN aq_internal.queue q ON q.queue_id = r.queue_id
	WHERE r.sample_id % 10 = 0 AND r.sample_id <= i.sample_id
		AND (r.database IS NULL OR r.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database()))
	ON CONFLICT DO NOTHING
$$;
COMMENT ON FUNCTION aq_internal.ash_keep() IS 'Internal: keep one sample in ten of this database''s sessions; the caller holds the lock';

CREATE FUNCTION aq_internal.ash_flush(snap_id integer DEFAULT NULL) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	LOCK TABLE aq_internal.active_session IN SHARE ROW EXCLUSIVE MODE;
	PERFORM aq_internal.ash_keep();
END $$;
COMMENT ON FUNCTION aq_internal.ash_flush(integer) IS 'Keeps one sample in ten of the active sessions of this database, up to now. snap_id: the snapshot it is for; samples belong to snapshots by their time';

-- The worker must not wait for locks.
CREATE FUNCTION aq_internal.ash_flush_turn() RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	BEGIN
		LOCK TABLE aq_internal.active_session IN SHARE ROW EXCLUSIVE MODE NOWAIT;
	EXCEPTION WHEN lock_not_available THEN
		RETURN;
	END;
	PERFORM aq_internal.ash_keep();
END $$;
COMMENT ON FUNCTION aq_internal.ash_flush_turn() IS 'Internal: what the worker does for the history of active sessions';

-- Also if no snapshots are taken; samples within a baseline are kept as long as the baseline.
CREATE FUNCTION aq_internal.ash_purge() RETURNS void
LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
	DELETE FROM aq_internal.active_session h
	USING aq_internal.snapshot_settings() c
	WHERE c.retention > interval '0' AND h.dbid = c.dbid AND h.sample_time < now() - c.retention
		AND NOT EXISTS (
			SELECT FROM aq_internal.snapshot_baseline b
				JOIN aq_internal.snapshot s ON s.dbid = b.dbid AND s.snap_id = b.first_snap_id
				JOIN aq_internal.snapshot e ON e.dbid = b.dbid AND e.snap_id = b.last_snap_id
			WHERE b.dbid = h.dbid AND h.sample_time > s.begins AND h.sample_time <= e.taken)
$$;
COMMENT ON FUNCTION aq_internal.ash_purge() IS 'Internal: drop samples older than the retention of snapshots and in no baseline';

CREATE FUNCTION aq_internal.ash_drop(database_id bigint, low integer, high integer) RETURNS void
LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
	DELETE FROM aq_internal.active_session h USING aq_internal.snapshot s
	WHERE s.dbid = $1 AND s.snap_id BETWEEN $2 AND $3 AND h.dbid = s.dbid
		AND h.sample_time > s.begins AND h.sample_time <= s.taken
$$;
COMMENT ON FUNCTION aq_internal.ash_drop(bigint, integer, integer) IS 'Internal: drop the samples of a range of snapshots';

REVOKE EXECUTE ON FUNCTION aq_internal.ash_keep(), aq_internal.ash_flush(integer), aq_internal.ash_flush_turn(), aq_internal.ash_purge(), aq_internal.ash_drop(bigint, integer, integer) FROM PUBLIC;
