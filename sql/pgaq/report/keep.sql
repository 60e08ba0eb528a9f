-- Retention of snapshots, and baselines.
-- Security definer, because no role has privileges on the tables of the history. Superusers grant EXECUTE.

CREATE FUNCTION aq_internal.known_dbid(dbid bigint) RETURNS bigint
LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF dbid <> aq_internal.dbid() AND NOT EXISTS (SELECT FROM aq_internal.snapshot s WHERE s.dbid = $1) THEN
		PERFORM aq_internal.raise_error('AQ123', format('database id %s is not known', dbid), 'The view aq.snapshots lists the databases that have snapshots here.');
	END IF;
	RETURN coalesce(dbid, aq_internal.dbid());
END $$;
COMMENT ON FUNCTION aq_internal.known_dbid(bigint) IS 'Internal: a database that has snapshots here; null: this one';

CREATE FUNCTION aq.set_snapshots(every interval DEFAULT NULL, retention interval DEFAULT NULL, top_statements integer DEFAULT NULL, dbid bigint DEFAULT NULL)
RETURNS void LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	this_db bigint := aq_internal.known_dbid(dbid);
	century CONSTANT interval := '100 years';
BEGIN
	IF retention <> '0' AND retention NOT BETWEEN '1 day' AND century THEN
		PERFORM aq_internal.raise_error('AQ121', format('retention of %s is not valid', retention),
			'Specify a day to a hundred years, or 0 to keep snapshots forever.');
	ELSIF every <> '0' AND every NOT BETWEEN '1 minute' AND century THEN
		PERFORM aq_internal.raise_error('AQ122', format('interval of %s is not valid', every),
			'Specify a minute to a hundred years, or 0 to have no snapshots taken by the worker.');
	ELSIF top_statements NOT BETWEEN 0 AND 9999999 THEN
		RAISE invalid_parameter_value USING MESSAGE = format('top_statements %s is not valid', top_statements), HINT = 'Specify a number of statements, or 0 for all.';
	END IF;
	INSERT INTO aq_internal.snapshot_control AS c (dbid, every, retention, top_statements)
	SELECT this_db, coalesce(set_snapshots.every, s.every), coalesce(set_snapshots.retention, s.retention),
		CASE WHEN set_snapshots.top_statements IS NULL THEN s.top_statements ELSE nullif(set_snapshots.top_statements, 0) END
	FROM (SELECT coalesce(o.every, d.every) AS every, coalesce(o.retention, d.retention) AS retention,
			CASE WHEN o.dbid IS NULL THEN d.top_statements ELSE o.top_statements END AS top_statements
		FROM aq_internal.snapshot_settings() d LEFT JOIN aq_internal.snapshot_control o ON o.dbid = this_db) s
	ON CONFLICT ON CONSTRAINT snapshot_control_pkey DO UPDATE
	SET every = EXCLUDED.every, retention = EXCLUDED.retention, top_statements = EXCLUDED.top_statements;
	PERFORM aq_internal.snapshot_settings_changed();
END $$;
COMMENT ON FUNCTION aq.set_snapshots(interval, interval, integer, bigint) IS
'Set when snapshots are taken, and how long they are kept; null leaves a setting unchanged.
every: time between snapshots, 0: the worker takes none
retention: time for which they are kept, 0: forever
top_statements: number of statements of pg_stat_statements in a snapshot, 0: all
dbid: the database, if not this one
Errors 22023, 42704';

CREATE FUNCTION aq.drop_snapshots(first_snap_id integer, last_snap_id integer, dbid bigint DEFAULT NULL) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	this_db bigint := aq_internal.known_dbid(dbid);
	kept text;
BEGIN
	IF first_snap_id > last_snap_id OR first_snap_id IS NULL OR last_snap_id IS NULL THEN
		PERFORM aq_internal.raise_error('AQ120', format('%s to %s is not a range of snapshots', coalesce(first_snap_id::text, 'null'), coalesce(last_snap_id::text, 'null')),
			'Specify the lower number first; the view aq.snapshots lists them.');
	END IF;
	SELECT string_agg(quote_literal(b.baseline_name), ', ' ORDER BY b.baseline_name) INTO kept FROM aq_internal.snapshot_baseline b
	WHERE b.dbid = this_db AND b.first_snap_id <= drop_snapshots.last_snap_id AND b.last_snap_id >= drop_snapshots.first_snap_id;
	IF kept IS NOT NULL THEN
		PERFORM aq_internal.raise_error('AQ120', format('snapshots from %s to %s belong to baseline %s', first_snap_id, last_snap_id, kept),
			'Drop the baseline first, with aq.drop_baseline.');
	END IF;
	PERFORM aq_internal.drop_snapshots(this_db, first_snap_id, last_snap_id);
END $$;
COMMENT ON FUNCTION aq.drop_snapshots(integer, integer, bigint) IS
'Drop the snapshots of a range, and the samples of active sessions between them.
dbid: the database, if not this one
Errors 22023, 42704';

CREATE FUNCTION aq_internal.check_baseline_name(dbid bigint, baseline_name text) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF coalesce(baseline_name, '') = '' OR length(baseline_name) > 128 THEN
		RAISE invalid_parameter_value USING MESSAGE = 'a baseline requires a name', HINT = 'Specify a text of 1 to 128 characters.';
	END IF;
	PERFORM aq_internal.lock_name('snapshot_baseline', format('%s %s', dbid, baseline_name));
	IF EXISTS (SELECT FROM aq_internal.snapshot_baseline b WHERE b.dbid = $1 AND b.baseline_name = $2) THEN
		PERFORM aq_internal.raise_error('AQ124', format('baseline "%s" already exists', baseline_name), 'Choose another name, or drop that one.');
	END IF;
END $$;
COMMENT ON FUNCTION aq_internal.check_baseline_name(bigint, text) IS 'Internal: a baseline has a name of its own, also among those of transactions that run';

CREATE FUNCTION aq_internal.baseline(dbid bigint, name text, OUT it aq_internal.snapshot_baseline)
LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	SELECT b.* INTO it FROM aq_internal.snapshot_baseline b WHERE b.dbid = $1 AND b.baseline_name = name;
	IF it.baseline_id IS NULL THEN
		PERFORM aq_internal.raise_error('AQ125', format('baseline "%s" does not exist', coalesce(name, 'null')), 'The view aq.baselines lists them.');
	END IF;
END $$;
COMMENT ON FUNCTION aq_internal.baseline(bigint, text) IS 'Internal: a baseline by its name, or an error';

CREATE FUNCTION aq.create_baseline(baseline_name text, first_snap_id integer, last_snap_id integer, expires_after_days integer DEFAULT NULL,
	dbid bigint DEFAULT NULL) RETURNS integer
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	this_db bigint := aq_internal.known_dbid(dbid);
	number integer;
BEGIN
	PERFORM aq_internal.check_baseline_name(this_db, baseline_name);
	IF (first_snap_id < last_snap_id AND (SELECT count(*) = 2 FROM aq_internal.snapshot s
			WHERE s.dbid = this_db AND s.snap_id IN (first_snap_id, last_snap_id))) IS NOT TRUE THEN
		PERFORM aq_internal.raise_error('AQ120', format('%s to %s is not a range of snapshots', coalesce(first_snap_id::text, 'null'), coalesce(last_snap_id::text, 'null')),
			'Both must exist, the first before the last; the view aq.snapshots lists them.');
	ELSIF expires_after_days < 1 THEN
		RAISE invalid_parameter_value USING MESSAGE = format('expiration of %s days is not valid', expires_after_days), HINT = 'Specify 1 or more, or null to keep it.';
	END IF;
	INSERT INTO aq_internal.snapshot_baseline (dbid, baseline_name, first_snap_id, last_snap_id, expires_after_days)
	VALUES (this_db, $1, $2, $3, $4) RETURNING baseline_id INTO number;
	RETURN number;
END $$;
COMMENT ON FUNCTION aq.create_baseline(text, integer, integer, integer, bigint) IS
'Keep two snapshots and those between them under a name, however long the retention is; returns the
  number of the baseline.
expires_after_days: when it is dropped, null: never
dbid: the database, if not this one
For members of pg_monitor.
Errors 22023, 42704, 42710';

CREATE FUNCTION aq.drop_baseline(baseline_name text, with_snapshots boolean DEFAULT false, dbid bigint DEFAULT NULL) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	b aq_internal.snapshot_baseline := aq_internal.baseline(aq_internal.known_dbid(dbid), baseline_name);
BEGIN
	DELETE FROM aq_internal.snapshot_baseline o WHERE o.dbid = b.dbid AND o.baseline_id = b.baseline_id;
	IF with_snapshots THEN
		PERFORM aq_internal.drop_snapshots(s.dbid, s.snap_id, s.snap_id) FROM aq_internal.snapshot s
		WHERE s.dbid = b.dbid AND s.snap_id BETWEEN b.first_snap_id AND b.last_snap_id
			AND NOT EXISTS (SELECT FROM aq_internal.snapshot_baseline o WHERE o.dbid = s.dbid AND s.snap_id BETWEEN o.first_snap_id AND o.last_snap_id);
	END IF;
END $$;
COMMENT ON FUNCTION aq.drop_baseline(text, boolean, bigint) IS
'Drop a baseline.
with_snapshots: also those of its snapshots that are in no other one
dbid: the database, if not this one
Errors 42704';

REVOKE EXECUTE ON FUNCTION aq.set_snapshots, aq.drop_snapshots, aq.create_baseline, aq.drop_baseline, aq_internal.known_dbid, aq_internal.check_baseline_name,
	aq_internal.baseline FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aq.create_baseline TO pg_monitor;
