-- Internal functions that only functions with the rights of the extension's owner call, or the worker, are not executable by PUBLIC. The others
-- are called with a caller's rights, by functions and views that are for all roles: they check what they are given. tests/sql/functions.sql lists them.
DO $$
DECLARE
	function regprocedure;
BEGIN
	FOR function IN SELECT p.oid FROM pg_catalog.pg_proc p WHERE p.pronamespace = 'aq'::regnamespace AND p.proname::text = ANY (ARRAY(SELECT pg_catalog.btrim(name, E' \n\t') FROM pg_catalog.string_to_table($list$
		_advice, _advice_commits, _advice_flow_control, _advice_hot_object, _advice_listen_herd, _advice_message_cache, _advice_one_shard,
		_advice_slow_subscriber, _advice_xmin, _advise, _ash_activity, _ash_parameters, _ash_sections, _ash_top, _bucket, _capture, _chart_of, _columns,
		_consumer_growths, _db_time_parts, _diff_header, _diff_intervals, _diff_parameters, _diff_rows, _diff_section, _drop_queue_view, _drop_table_views,
		_foreground, _growths, _header, _is_message_view, _latch_family, _minutes, _object_growths, _ratio, _report_activity, _report_background,
		_report_dictionary_cache, _report_histogram, _report_hot_mutexes, _report_latch_activity, _report_latch_children, _report_latch_misses,
		_report_latch_parent, _report_latch_sleeps, _report_library_cache, _report_load_profile, _report_message_cache, _report_mutex_activity,
		_report_mutex_sleeps, _report_objects, _report_parameters, _report_queues, _report_sections, _report_server_waits, _report_shards,
		_report_spin_time, _report_sql, _report_statistics, _report_subscribers, _report_throughput, _report_time_model, _report_top_events,
		_report_wait_classes, _report_wakeups, _role_in, _role_out, _role_recv, _role_send, _rtpctx, _samples, _samples_begin, _samples_note, _section, _setting, _severity, _shard_growths,
		_snapshots_there, _source_query, _sources, _span, _startup_time, _stat, _table_view_text, _table_views, _time, _waited, _when$list$, ',') name)) LOOP
		EXECUTE pg_catalog.format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', function);
	END LOOP;
END $$;

-- The database's owner dumps the catalog, in which no payload is. Message tables are dumped by members of pg_read_all_data.
GRANT USAGE ON SCHEMA aq_data TO pg_database_owner;
GRANT SELECT ON aq.property, aq.queue, aq.subscriber, aq.buffered_queue, aq.message_table, aq.queue_table, aq.snapshot, aq.snapshot_data, aq.snapshot_baseline,
	aq.snapshot_control, aq.active_session TO pg_database_owner;
GRANT SELECT ON SEQUENCE aq.queue_id_seq, aq.queue_table_id_seq, aq.session_id_seq, aq.consumer_number_seq, aq.snapshot_id_seq, aq.baseline_id_seq TO pg_database_owner;
