-- Internal functions that are called only by SECURITY DEFINER functions or the worker are not executable by PUBLIC. The others are called with the
-- caller's privileges, by functions and views for all roles, so they check their arguments. tests/sql/functions.sql lists them.
DO $$
DECLARE
	function regprocedure;
BEGIN
	FOR function IN SELECT p.oid FROM pg_catalog.pg_proc p WHERE p.pronamespace = 'aq_internal'::regnamespace AND p.proname::text = ANY (ARRAY(SELECT pg_catalog.btrim(name, E' \n\t') FROM pg_catalog.string_to_table($list$
		advice, advice_commits, advice_flow_control, advice_hot_object, advice_listen_herd, advice_message_cache, advice_one_shard,
		advice_slow_subscriber, advice_worker, advice_xmin, advise, ash_activity, ash_parameters, ash_sections, ash_top, bucket, capture, chart_of, columns,
		consumer_growths, db_time_parts, diff_header, diff_intervals, diff_parameters, diff_rows, diff_section, drop_queue_view, drop_table_views,
		foreground, growths, header, is_message_view, latch_family, minutes, object_growths, ratio, report_activity, report_background,
		report_dictionary_cache, report_histogram, report_hot_mutexes, report_latch_activity, report_latch_children, report_latch_misses,
		report_latch_parent, report_latch_sleeps, report_library_cache, report_load_profile, report_message_cache, report_mutex_activity,
		report_mutex_sleeps, report_objects, report_parameters, report_queues, report_sections, report_server_waits, report_shards,
		report_spin_time, report_sql, report_statistics, report_subscribers, report_throughput, report_time_model, report_top_events,
		report_wait_classes, report_wakeups, role_in, role_out, role_recv, role_send, rtpctx, samples, samples_begin, samples_note, section, setting, severity, shard_growths,
		snapshots_there, source_query, sources, span, startup_time, stat, table_view_text, table_views, time, waited, when$list$, ',') name)) LOOP
		EXECUTE pg_catalog.format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', function);
	END LOOP;
END $$;

-- Reports read figures that only members of pg_monitor may see.
REVOKE EXECUTE ON FUNCTION aq.report_awr(integer, integer, bigint), aq.report_awr_diff(integer, integer, integer, integer, bigint, bigint),
	aq.report_rtpctx(integer, integer, bigint), aq.rtpctx_start(), aq.rtpctx_report(jsonb), aq.report_ash(timestamptz, timestamptz, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aq.report_awr(integer, integer, bigint), aq.report_awr_diff(integer, integer, integer, integer, bigint, bigint),
	aq.report_rtpctx(integer, integer, bigint), aq.rtpctx_start(), aq.rtpctx_report(jsonb), aq.report_ash(timestamptz, timestamptz, bigint) TO pg_monitor;

-- The database's owner can dump the catalog, which has no payloads. Members of pg_read_all_data can dump message tables.
GRANT USAGE ON SCHEMA aq_data TO pg_database_owner;
GRANT SELECT ON aq_internal.property, aq_internal.queue, aq_internal.subscriber, aq_internal.buffered_queue, aq_internal.message_table, aq_internal.queue_table, aq_internal.snapshot, aq_internal.snapshot_data, aq_internal.snapshot_baseline,
	aq_internal.snapshot_control, aq_internal.active_session TO pg_database_owner;
GRANT SELECT ON SEQUENCE aq_internal.queue_id_seq, aq_internal.queue_table_id_seq, aq_internal.session_id_seq, aq_internal.consumer_number_seq, aq_internal.snapshot_id_seq, aq_internal.baseline_id_seq TO pg_database_owner;
