-- Package dbms_workload_repository: snapshots, baselines and reports with Oracle's interface. No subprogram commits: take snapshots in separate
-- transactions. Members of pg_monitor can take snapshots and read reports; the rest is for the administrator.

CREATE FUNCTION dbms_workload_repository._dbid(dbid bigint) RETURNS bigint
LANGUAGE plpgsql STABLE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	RETURN aq_internal.known_dbid(dbid);
END $$;
COMMENT ON FUNCTION dbms_workload_repository._dbid(bigint) IS 'Internal: a database id, null meaning this database';

CREATE FUNCTION dbms_workload_repository.create_snapshot(flush_level text DEFAULT 'TYPICAL') RETURNS integer
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	IF upper(flush_level) NOT IN ('BESTFIT', 'LITE', 'TYPICAL', 'ALL') THEN
		RAISE invalid_parameter_value USING MESSAGE = format('flush level "%s" is not valid', left(flush_level, 63)),
			HINT = 'Use TYPICAL or ALL; both take everything.';
	END IF;
	RETURN aq.take_snapshot();
END $$;
COMMENT ON FUNCTION dbms_workload_repository.create_snapshot(text) IS 'Take a snapshot of all counters; returns its number';

CREATE PROCEDURE dbms_workload_repository.create_snapshot(flush_level text, INOUT snap_id integer)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	snap_id := dbms_workload_repository.create_snapshot(flush_level);
END $$;
COMMENT ON PROCEDURE dbms_workload_repository.create_snapshot(text, integer) IS
'The same by CALL create_snapshot(''TYPICAL'', NULL), as procedures and functions cannot share a name and arguments';

CREATE PROCEDURE dbms_workload_repository.drop_snapshot_range(low_snap_id integer, high_snap_id integer, dbid bigint DEFAULT NULL)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	PERFORM aq.drop_snapshots(low_snap_id, high_snap_id, dbid);
END $$;
COMMENT ON PROCEDURE dbms_workload_repository.drop_snapshot_range(integer, integer, bigint) IS 'Drop snapshots, both ends included; an error if a baseline keeps one of them';

CREATE PROCEDURE dbms_workload_repository.modify_snapshot_settings(retention bigint DEFAULT NULL, "interval" bigint DEFAULT NULL,
	topnsql text DEFAULT NULL, dbid bigint DEFAULT NULL)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
DECLARE
	century CONSTANT bigint := 52560000;
BEGIN
	IF retention <> 0 AND retention NOT BETWEEN 1440 AND century THEN
		PERFORM sys._raise_error('AQ121', format('retention of %s minutes is not valid', retention),
			'Specify minutes from 1440 (a day) to 52560000 (a hundred years), or 0 to keep snapshots forever.');
	ELSIF "interval" <> 0 AND "interval" NOT BETWEEN 1 AND century THEN
		PERFORM sys._raise_error('AQ122', format('interval of %s minutes is not valid', "interval"),
			'Specify minutes from 1 to 52560000, or 0 to have no snapshots taken by the worker.');
	ELSIF NOT (upper(topnsql) IN ('DEFAULT', 'MAXIMUM') OR topnsql ~ '^[1-9][0-9]{0,6}$') THEN
		RAISE invalid_parameter_value USING MESSAGE = format('topnsql "%s" is not valid', left(topnsql, 63)),
			HINT = 'Specify a number of statements, DEFAULT (200) or MAXIMUM (all).';
	END IF;
	PERFORM aq.set_snapshots(make_interval(mins => "interval"::integer), make_interval(mins => retention::integer),
		CASE upper(topnsql) WHEN 'DEFAULT' THEN 200 WHEN 'MAXIMUM' THEN 0 ELSE topnsql::integer END, dbid);
END $$;
COMMENT ON PROCEDURE dbms_workload_repository.modify_snapshot_settings(bigint, bigint, text, bigint) IS
'Change the interval and the retention of snapshots, in minutes; null leaves a setting unchanged';

CREATE FUNCTION dbms_workload_repository.create_baseline(start_snap_id integer, end_snap_id integer, baseline_name text,
	dbid bigint DEFAULT NULL, expiration integer DEFAULT NULL) RETURNS integer
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	RETURN aq.create_baseline(baseline_name, start_snap_id, end_snap_id, expiration, dbid);
END $$;
COMMENT ON FUNCTION dbms_workload_repository.create_baseline(integer, integer, text, bigint, integer) IS
'Keep the snapshots of a range under a name, regardless of the retention time; expiration in days; returns its number';

CREATE PROCEDURE dbms_workload_repository.drop_baseline(baseline_name text, cascade boolean DEFAULT false, dbid bigint DEFAULT NULL)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
BEGIN
	PERFORM aq.drop_baseline(baseline_name, cascade, dbid);
END $$;
COMMENT ON PROCEDURE dbms_workload_repository.drop_baseline(text, boolean, bigint) IS 'Drop a baseline; cascade: its snapshots, too, unless another baseline keeps them';

CREATE PROCEDURE dbms_workload_repository.rename_baseline(old_baseline_name text, new_baseline_name text, dbid bigint DEFAULT NULL)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$
DECLARE
	b aq_internal.snapshot_baseline := aq_internal.baseline(aq_internal.known_dbid(dbid), old_baseline_name);
BEGIN
	PERFORM aq_internal.check_baseline_name(b.dbid, new_baseline_name);
	UPDATE aq_internal.snapshot_baseline o SET baseline_name = new_baseline_name WHERE o.dbid = b.dbid AND o.baseline_id = b.baseline_id;
END $$;
COMMENT ON PROCEDURE dbms_workload_repository.rename_baseline(text, text, bigint) IS 'Renames a baseline';

-- Reports

CREATE FUNCTION dbms_workload_repository._report_titled(report jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
	SELECT report || jsonb_build_object(
		'title', CASE report ->> 'kind' WHEN 'awr' THEN 'Workload Repository Report' WHEN 'awr_diff' THEN 'Workload Repository Comparison'
			ELSE 'Active Session History Report' END || coalesce(substring(report ->> 'title' FROM ',.*$'), ''),
		'sections', (SELECT jsonb_agg(CASE WHEN t.title IS NULL THEN s.one ELSE jsonb_set(s.one, '{title}', to_jsonb(t.title)) END ORDER BY s.place)
			FROM jsonb_array_elements(report -> 'sections') WITH ORDINALITY s(one, place) LEFT JOIN (VALUES
			('top_events', 'Top 10 Foreground Events by Total Wait Time'),
			('time_model', 'Time Model Statistics'),
			('background_events', 'Background Wait Events'),
			('statistics', 'Instance Activity Statistics'),
			('latch_sleeps', 'Latch Sleep Breakdown'),
			('latch_misses', 'Latch Miss Sources'),
			('latch_parent', 'Parent Latch Statistics'),
			('latch_children', 'Child Latch Statistics'),
			('mutex_sleeps', 'Mutex Sleep Summary'),
			('dictionary_cache', 'Dictionary Cache Stats'),
			('library_cache', 'Library Cache Activity'),
			('sql_elapsed', 'SQL Ordered by Elapsed Time'),
			('ash_user_events', 'Top User Events'),
			('ash_background_events', 'Top Background Events'),
			('ash_sql', 'Top SQL with Top Events')) t(id, title) ON t.id = s.one ->> 'id'));
END;
COMMENT ON FUNCTION dbms_workload_repository._report_titled(jsonb) IS 'Internal: a report of aq.report_awr, aq.report_awr_diff or aq.report_ash with Oracle''s titles';

CREATE FUNCTION dbms_workload_repository.awr_report_text(begin_snap integer, end_snap integer) RETURNS TABLE (output text)
LANGUAGE sql STABLE PARALLEL UNSAFE SET pgaq.oracle_errors = on
RETURN aq.report_text(dbms_workload_repository._report_titled(aq.report_awr(begin_snap, end_snap)));
COMMENT ON FUNCTION dbms_workload_repository.awr_report_text(integer, integer) IS 'The report between two snapshots, as lines of text';

CREATE FUNCTION dbms_workload_repository.awr_report_text(l_dbid bigint, l_inst_num integer, l_bid integer, l_eid integer, l_options integer DEFAULT 0)
RETURNS TABLE (output text)
LANGUAGE sql STABLE PARALLEL UNSAFE SET pgaq.oracle_errors = on
RETURN aq.report_text(dbms_workload_repository._report_titled(aq.report_awr(l_bid, l_eid, dbms_workload_repository._dbid(l_dbid))));
COMMENT ON FUNCTION dbms_workload_repository.awr_report_text(bigint, integer, integer, integer, integer) IS 'The same with Oracle''s arguments; l_inst_num and l_options are not used';

CREATE FUNCTION dbms_workload_repository.awr_diff_report_text(dbid1 bigint, inst_num1 integer, bid1 integer, eid1 integer,
	dbid2 bigint, inst_num2 integer, bid2 integer, eid2 integer) RETURNS TABLE (output text)
LANGUAGE sql STABLE PARALLEL UNSAFE SET pgaq.oracle_errors = on
RETURN aq.report_text(dbms_workload_repository._report_titled(aq.report_awr_diff(bid1, eid1, bid2, eid2, dbms_workload_repository._dbid(dbid1), dbms_workload_repository._dbid(dbid2))));
COMMENT ON FUNCTION dbms_workload_repository.awr_diff_report_text(bigint, integer, integer, integer, bigint, integer, integer, integer) IS
'Two intervals compared, as lines of text; a null dbid is this database, the instance is not used';

CREATE FUNCTION dbms_workload_repository.awr_report_html(begin_snap integer, end_snap integer) RETURNS TABLE (output text)
LANGUAGE sql STABLE PARALLEL UNSAFE SET pgaq.oracle_errors = on
RETURN string_to_table(aq.report_html(dbms_workload_repository._report_titled(aq.report_awr(begin_snap, end_snap))), E'\n');
COMMENT ON FUNCTION dbms_workload_repository.awr_report_html(integer, integer) IS 'The report between two snapshots, as lines of an HTML page';

CREATE FUNCTION dbms_workload_repository.awr_report_html(l_dbid bigint, l_inst_num integer, l_bid integer, l_eid integer, l_options integer DEFAULT 0)
RETURNS TABLE (output text)
LANGUAGE sql STABLE PARALLEL UNSAFE SET pgaq.oracle_errors = on
RETURN string_to_table(aq.report_html(dbms_workload_repository._report_titled(aq.report_awr(l_bid, l_eid, dbms_workload_repository._dbid(l_dbid)))), E'\n');
COMMENT ON FUNCTION dbms_workload_repository.awr_report_html(bigint, integer, integer, integer, integer) IS 'The same with Oracle''s arguments; l_inst_num and l_options are not used';

CREATE FUNCTION dbms_workload_repository.awr_diff_report_html(dbid1 bigint, inst_num1 integer, bid1 integer, eid1 integer,
	dbid2 bigint, inst_num2 integer, bid2 integer, eid2 integer) RETURNS TABLE (output text)
LANGUAGE sql STABLE PARALLEL UNSAFE SET pgaq.oracle_errors = on
RETURN string_to_table(aq.report_html(dbms_workload_repository._report_titled(aq.report_awr_diff(bid1, eid1, bid2, eid2, dbms_workload_repository._dbid(dbid1), dbms_workload_repository._dbid(dbid2)))), E'\n');
COMMENT ON FUNCTION dbms_workload_repository.awr_diff_report_html(bigint, integer, integer, integer, bigint, integer, integer, integer) IS
'Two intervals compared, as lines of an HTML page; a null dbid is this database, the instance is not used';

CREATE FUNCTION dbms_workload_repository.ash_report_text(l_dbid bigint, l_inst_num integer, l_btime timestamptz, l_etime timestamptz) RETURNS TABLE (output text)
LANGUAGE sql VOLATILE PARALLEL UNSAFE SET pgaq.oracle_errors = on
RETURN aq.report_text(dbms_workload_repository._report_titled(aq.report_ash(l_btime, l_etime, dbms_workload_repository._dbid(l_dbid))));
COMMENT ON FUNCTION dbms_workload_repository.ash_report_text(bigint, integer, timestamptz, timestamptz) IS
'What active sessions did between two times, from samples, as lines of text; a null l_dbid is this database, the instance is not used';

CREATE FUNCTION dbms_workload_repository.ash_report_html(l_dbid bigint, l_inst_num integer, l_btime timestamptz, l_etime timestamptz) RETURNS TABLE (output text)
LANGUAGE sql VOLATILE PARALLEL UNSAFE SET pgaq.oracle_errors = on
RETURN string_to_table(aq.report_html(dbms_workload_repository._report_titled(aq.report_ash(l_btime, l_etime, dbms_workload_repository._dbid(l_dbid)))), E'\n');
COMMENT ON FUNCTION dbms_workload_repository.ash_report_html(bigint, integer, timestamptz, timestamptz) IS 'The same as lines of an HTML page';

DO $$
DECLARE
	routine regprocedure;
BEGIN
	FOR routine IN SELECT oid FROM pg_catalog.pg_proc WHERE pronamespace = 'dbms_workload_repository'::regnamespace LOOP
		EXECUTE pg_catalog.format('REVOKE EXECUTE ON ROUTINE %s FROM PUBLIC', routine);
		EXECUTE pg_catalog.format('GRANT EXECUTE ON ROUTINE %s TO aq_administrator_role', routine);
		IF routine::text ~ '(create_snapshot|create_baseline|_dbid|report_\w+)\(' THEN
			EXECUTE pg_catalog.format('GRANT EXECUTE ON ROUTINE %s TO pg_monitor', routine);
		END IF;
	END LOOP;
END $$;
