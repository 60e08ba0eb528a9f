-- Snapshots, baselines and their settings.  What they say is tested in reports.sql, the worker in cluster/test_snapshots.py.
\pset format unaligned
SET search_path = dbms_workload_repository, public, sys;
SELECT t.put('snap_q', 1) FROM aq.create_queue('snap_q');
SELECT create_snapshot() AS one \gset
CALL create_snapshot('ALL', NULL) \gset
\set two :snap_id
SELECT t.put('snap_q', 2, 4);
SELECT create_snapshot('typical') AS three \gset
SELECT :two - :one AS next, :three - :two AS next;
SELECT snap_id - :one AS snap, instance_number, dbid = aq_internal.dbid() AS here, startup_time < begin_interval_time OR snap_id = :one AS startup,
	begin_interval_time <= end_interval_time AS "interval", flush_elapsed > '0' AS elapsed, snap_level, error_count, snap_flag
FROM dba_hist_snapshot WHERE snap_id >= :one ORDER BY snap_id;
-- an interval begins where the one before ended
SELECT s.begin_interval_time = p.end_interval_time AS gapless FROM dba_hist_snapshot s JOIN dba_hist_snapshot p ON p.snap_id = s.snap_id - 1 WHERE s.snap_id > :one ORDER BY s.snap_id;
-- what is in them
SELECT snap_id - :one AS snap, queue_type, shards, enqueued_msgs, done_msgs, backlog, ready FROM dba_hist_queue WHERE queue_name = 'snap_q' AND snap_id >= :one ORDER BY snap_id;
SELECT count(*) FROM dba_hist_snap_error WHERE snap_id >= :one;
SELECT snap_id - :one AS snap, sum(gets) > 0 AS gets, min(gets) >= 0 AS counted, count(DISTINCT latch_name) = (SELECT count(*) FROM v$latchname) AS "all" FROM dba_hist_latch WHERE snap_id >= :one GROUP BY snap_id ORDER BY snap_id;
SELECT count(*) > 0 AS parameters, bool_or(parameter_name = 'pgaq.spin_count') AS ours FROM dba_hist_parameter WHERE snap_id = :one;
SELECT count(*) = (SELECT count(*) FROM v$latchname) AS all_names FROM dba_hist_latch_name;

-- titles of the reports: PostgreSQL's words in schema aq, Oracle's in the package
CREATE TEMP TABLE titles AS SELECT r ->> 'kind' AS kind, r ->> 'title' AS native, o ->> 'title' AS oracle, n.place, n.one ->> 'title' AS native_section, s.one ->> 'title' AS oracle_section
FROM unnest(ARRAY[aq.report_awr(:one, :three), aq.report_awr_diff(:one, :two, :two, :three), aq.report_ash(now() - interval '1 hour', now())]) r,
	LATERAL dbms_workload_repository._report_titled(r) o,
	LATERAL jsonb_array_elements(r -> 'sections') WITH ORDINALITY n(one, place) JOIN LATERAL jsonb_array_elements(o -> 'sections') WITH ORDINALITY s(one, place) USING (place);
SELECT DISTINCT kind, regexp_replace(native, '[0-9]+', 'N', 'g') AS native, regexp_replace(oracle, '[0-9]+', 'N', 'g') AS oracle FROM titles ORDER BY kind;
SELECT native_section, min(oracle_section) AS oracle_section FROM titles WHERE native_section <> oracle_section GROUP BY 1 ORDER BY 1 COLLATE "C";
SELECT output FROM awr_report_text(:one, :three) WHERE output IN ('Library Cache Activity', 'Object Cache');
SELECT output FROM aq.report_text(aq.report_awr(:one, :three)) output WHERE output IN ('Library Cache Activity', 'Object Cache');
DROP TABLE titles;

-- a rolled back snapshot is none at all
BEGIN;
SELECT create_snapshot() = :three + 1 AS next;
ROLLBACK;
SELECT count(*) FROM dba_hist_snapshot WHERE snap_id > :three;
SELECT count(*) FROM aq_internal.snapshot_data WHERE snap_id > :three;

-- baselines
SELECT create_baseline(:one, :two, 'before') > 0 AS made;
SELECT create_baseline(:two, :three, 'after', expiration => 30) > 0 AS made;
CALL rename_baseline('after', 'behind');
SELECT baseline_name, baseline_type, start_snap_id - :one AS start, end_snap_id - :one AS "end", start_snap_time < end_snap_time AS times, expiration FROM dba_hist_baseline ORDER BY baseline_name;
SELECT regexp_replace(t.error(format('CALL dbms_workload_repository.drop_snapshot_range(%s, %s)', :two, :three)), '[0-9]+ to [0-9]+', 'N to N') AS error;
SELECT t.error(format($$SELECT dbms_workload_repository.create_baseline(%s, %s, 'before')$$, :two, :three));
SELECT split_part(t.error(format($$SELECT dbms_workload_repository.create_baseline(%s, %s, 'x')$$, :three, :three + 100)), ' | ', 1);
SELECT split_part(t.error(format($$SELECT dbms_workload_repository.create_baseline(%s, %s, 'x')$$, :three, :one)), ' | ', 1);
SELECT t.error($$SELECT dbms_workload_repository.create_baseline(1, 2, '')$$);
SELECT t.error($$CALL dbms_workload_repository.rename_baseline('none', 'x')$$);
SELECT t.error($$CALL dbms_workload_repository.rename_baseline('before', 'behind')$$);
SELECT t.error($$CALL dbms_workload_repository.drop_baseline('none')$$);
SELECT split_part(t.error($$CALL dbms_workload_repository.drop_snapshot_range(5, 4)$$), ' | ', 1);
SELECT t.error($$CALL dbms_workload_repository.drop_snapshot_range(1, 2, 77)$$);
SELECT t.error($$SELECT dbms_workload_repository.create_snapshot('SOME')$$);

-- what is old goes, but for baselines
UPDATE aq_internal.snapshot SET taken = taken - interval '9 days' WHERE snap_id IN (:one, :three);
CALL drop_baseline('behind');
SELECT aq_internal.purge_snapshots();
SELECT snap_id - :one AS snap FROM dba_hist_snapshot WHERE snap_id >= :one ORDER BY snap_id;
SELECT DISTINCT snap_id - :one AS snap FROM aq_internal.snapshot_data WHERE snap_id >= :one ORDER BY 1;
CALL drop_baseline('before', cascade => true);
SELECT count(*) FROM dba_hist_snapshot WHERE snap_id >= :one;
SELECT count(*) FROM aq_internal.snapshot_data WHERE snap_id >= :one;

-- settings
SELECT snap_interval, retention, topnsql FROM dba_hist_wr_control;
CALL modify_snapshot_settings(retention => 1440);
SELECT snap_interval, retention, topnsql FROM dba_hist_wr_control;
CALL modify_snapshot_settings("interval" => 30, topnsql => 'MAXIMUM');
SELECT snap_interval, retention, topnsql FROM dba_hist_wr_control;
CALL modify_snapshot_settings(0, 0, '50');
SELECT snap_interval, retention, topnsql FROM dba_hist_wr_control;
SELECT aq_internal.snapshot_due() IS NULL AS no_more;
SELECT t.error('CALL dbms_workload_repository.modify_snapshot_settings(retention => 1439)');
SELECT t.error('CALL dbms_workload_repository.modify_snapshot_settings("interval" => -1)');
SELECT t.error($$CALL dbms_workload_repository.modify_snapshot_settings(topnsql => '0')$$);
SELECT snap_interval, retention, topnsql FROM dba_hist_wr_control;
CALL modify_snapshot_settings(11520, 60, 'DEFAULT');

-- a source that cannot be read costs its own figures only
ALTER FUNCTION aq_internal.consumers(integer) RENAME TO gone;
SELECT create_snapshot() AS four \gset
ALTER FUNCTION aq_internal.gone(integer) RENAME TO consumers;
SELECT error_count FROM dba_hist_snapshot WHERE snap_id = :four;
SELECT source_name, error_message FROM dba_hist_snap_error WHERE snap_id = :four;
SELECT count(*) > 0 AS latches FROM dba_hist_latch WHERE snap_id = :four;

-- who may
CREATE ROLE regress_snap_nobody;
SET ROLE regress_snap_nobody;
SELECT split_part(t.error('SELECT dbms_workload_repository.create_snapshot()'), ' | ', 2);
SELECT split_part(t.error('SELECT * FROM sys.dba_hist_snapshot'), ' | ', 2);
RESET ROLE;
DROP ROLE regress_snap_nobody;
SET ROLE pg_monitor;
SELECT create_snapshot() = :four + 1 AS taken;
SELECT error_count FROM dba_hist_snapshot WHERE snap_id = :four + 1;
SELECT split_part(t.error('CALL dbms_workload_repository.drop_snapshot_range(1, 100)'), ' | ', 2);
SELECT split_part(t.error('SELECT aq_internal.snapshot_turn()'), ' | ', 2);
RESET ROLE;
CALL drop_snapshot_range(:four, :four + 1);
SELECT count(*) FROM dba_hist_snapshot WHERE snap_id >= :one;
RESET search_path;
SELECT aq.drop_queue('snap_q', force => true);

-- texts of others do not steer the terminal of a reader, wherever they are in a report, and however long
SELECT E'\u001b]0;title\u0007\u0085\u009b31m\u202eorder\u2028\nline' AS evil \gset
SELECT jsonb_build_object('title', :'evil', 'header', jsonb_build_array(jsonb_build_array('Database', :'evil')), 'advice', jsonb_build_array(jsonb_build_object(
	'severity', :'evil', 'title', :'evil', 'why', :'evil', 'do', :'evil', 'figures', jsonb_build_array(jsonb_build_array(:'evil', :'evil', '')))),
	'sections', jsonb_build_array(jsonb_build_object('id', 'x', 'title', :'evil', 'notes', jsonb_build_array(:'evil'), 'columns', jsonb_build_array(jsonb_build_object('name', :'evil', 'type', 'text')),
	'rows', jsonb_build_array(jsonb_build_array(repeat(:'evil', 5)))))) AS report \gset
SELECT * FROM aq.report_text(:'report');
SELECT aq.report_html(:'report') ~ '[\u001b\u0085\u009b\u2028\u202e]' AS html;
