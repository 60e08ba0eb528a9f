-- Taking and purging snapshots, by a process that the worker starts and by aq.take_snapshot.
-- Security definer, because only pg_monitor can read the counters, and no role has privileges on the tables of the history.

-- Everything is in the caller's transaction, so a crash leaves a complete snapshot or none. The lock serializes snapshots, so the one with the
-- greater number was taken later. It does not block readers.
CREATE FUNCTION aq_internal.take_snapshot(by_worker boolean) RETURNS integer
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	this_db bigint := aq_internal.dbid();
	began timestamptz;
	started timestamptz;
	captured jsonb;
	number integer;
BEGIN
	IF pg_is_in_recovery() THEN
		RAISE read_only_sql_transaction USING MESSAGE = 'snapshots cannot be taken on a standby',
			HINT = 'Use aq.rtpctx_start() and aq.rtpctx_report(), which store nothing.';
	END IF;
	LOCK TABLE aq_internal.snapshot IN SHARE ROW EXCLUSIVE MODE;
	began := clock_timestamp();
	started := aq_internal.startup_time();
	captured := aq_internal.capture();
	INSERT INTO aq_internal.snapshot (dbid, startup_time, begins, taken, elapsed, by_worker, errors)
	VALUES (this_db, started, greatest(started, (SELECT max(s.taken) FROM aq_internal.snapshot s WHERE s.dbid = this_db)), began,
		clock_timestamp() - began, by_worker, coalesce(jsonb_array_length(captured -> 'error'), 0))
	RETURNING snap_id INTO number;
	INSERT INTO aq_internal.snapshot_data (dbid, snap_id, source, data)
	SELECT this_db, number, key, value FROM jsonb_each(captured);
	PERFORM aq_internal.ash_flush_turn();
	PERFORM aq_internal.sample_closely();
	RETURN number;
END $$;
COMMENT ON FUNCTION aq_internal.take_snapshot(boolean) IS 'Internal: take a snapshot; its number';
REVOKE EXECUTE ON FUNCTION aq_internal.take_snapshot(boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aq_internal.take_snapshot(boolean) TO pg_monitor;

CREATE FUNCTION aq.take_snapshot() RETURNS integer LANGUAGE sql VOLATILE PARALLEL UNSAFE
BEGIN ATOMIC
	SELECT aq_internal.take_snapshot(false);
END;
COMMENT ON FUNCTION aq.take_snapshot() IS
'Take a snapshot of all counters in the caller''s transaction; returns its number, for aq.report_awr.
  For members of pg_monitor.';
REVOKE EXECUTE ON FUNCTION aq.take_snapshot() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aq.take_snapshot() TO pg_monitor;

CREATE FUNCTION aq_internal.drop_snapshots(database_id bigint, low integer, high integer) RETURNS void
LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT aq_internal.ash_drop($1, $2, $3);
	DELETE FROM aq_internal.snapshot_data WHERE dbid = $1 AND snap_id BETWEEN $2 AND $3;
	DELETE FROM aq_internal.snapshot WHERE dbid = $1 AND snap_id BETWEEN $2 AND $3;
$$;
COMMENT ON FUNCTION aq_internal.drop_snapshots(bigint, integer, integer) IS 'Internal: drop a range of snapshots';

CREATE FUNCTION aq_internal.purge_snapshots() RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	settings record;
BEGIN
	SELECT * INTO settings FROM aq_internal.snapshot_settings();
	DELETE FROM aq_internal.snapshot_baseline b WHERE b.dbid = settings.dbid AND b.created + make_interval(days => b.expires_after_days) < now();
	IF settings.retention > interval '0' THEN
		PERFORM aq_internal.drop_snapshots(s.dbid, s.snap_id, s.snap_id) FROM aq_internal.snapshot s
		WHERE s.dbid = settings.dbid AND s.taken < now() - settings.retention
			AND NOT EXISTS (SELECT FROM aq_internal.snapshot_baseline b
				WHERE b.dbid = s.dbid AND s.snap_id BETWEEN b.first_snap_id AND b.last_snap_id);
	END IF;
END $$;
COMMENT ON FUNCTION aq_internal.purge_snapshots() IS 'Internal: drop what is older than the retention and in no baseline';

-- The first snapshot is due one interval after the first queue was created. Without a queue, this is the time to check again.
CREATE FUNCTION aq_internal.snapshot_due() RETURNS timestamptz LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
	SELECT coalesce((SELECT max(s.taken) FROM aq_internal.snapshot s WHERE s.dbid = o.dbid), (SELECT min(q.created) FROM aq_internal.queue q), clock_timestamp()) + o.every
	FROM aq_internal.snapshot_settings() o WHERE o.every > interval '0';
END;
COMMENT ON FUNCTION aq_internal.snapshot_due() IS 'Internal: when the worker shall take the next snapshot; null: when settings change';

-- Called by the process that the worker starts when a snapshot is due.
CREATE FUNCTION aq_internal.snapshot_turn() RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF (aq_internal.snapshot_due() > clock_timestamp()) IS NOT FALSE THEN
		RETURN;
	END IF;
	-- a session may be taking one
	BEGIN
		LOCK TABLE aq_internal.snapshot IN SHARE ROW EXCLUSIVE MODE NOWAIT;
	EXCEPTION WHEN lock_not_available THEN
		RETURN;
	END;
	PERFORM aq_internal.take_snapshot(true);
	PERFORM aq_internal.purge_snapshots();
END $$;
COMMENT ON FUNCTION aq_internal.snapshot_turn() IS 'Internal: take and purge snapshots, if one is due';

CREATE FUNCTION aq_internal.snapshot_settings_changed() RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_snapshots_settings_changed';
COMMENT ON FUNCTION aq_internal.snapshot_settings_changed() IS 'Internal: the worker reads the settings of snapshots again once this transaction has committed';

DO $$
DECLARE
	function regprocedure;
BEGIN
	FOREACH function IN ARRAY ARRAY['aq_internal.drop_snapshots(bigint, integer, integer)', 'aq_internal.purge_snapshots()', 'aq_internal.snapshot_due()', 'aq_internal.snapshot_turn()',
			'aq_internal.snapshot_settings_changed()']::regprocedure[] LOOP
		EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', function);
	END LOOP;
END $$;
