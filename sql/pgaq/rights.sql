-- USAGE on schema aq_internal is only for the database's owner, for pg_dump. Views, and bodies that are parsed at creation, call its functions with the
-- privileges of their callers: functions that views and functions for all roles call are executable by PUBLIC, and check their arguments. All others
-- are called with the privileges of the extension's owner, by the worker, or by members of pg_monitor.
DO $$
DECLARE
	function regprocedure;
	for_all CONSTANT text[] := ARRAY(SELECT pg_catalog.btrim(name, E' \n\t') FROM pg_catalog.string_to_table($list$
		buffered_consumers, buffered_message_rows, buffered_publishers, buffered_queue, cancel, classic_message_parts, classic_message_rows, classic_ready, consumers, dbid, dump_rows, errors, latencies, link_worker, links, listeners, may, may_any, may_stop_schedule,
		message_cache, message_cache_returns, message_cache_use, message_parts, message_rows, node_own, node_state, unit_messages, notifiers, outgoing_address, outgoing_queue, partitions, properties, queue_counters, queue_traffic, role_usage, running, shows_consumer, snapshot_settings, takes_part,
		streams, stuck, table_counters, trace_histogram, trace_objects, trace_rows, traces$list$, ',') name);
BEGIN
	FOR function IN SELECT p.oid FROM pg_catalog.pg_proc p WHERE p.pronamespace = 'aq_internal'::regnamespace AND p.proname::text <> ALL (for_all) LOOP
		EXECUTE pg_catalog.format('REVOKE EXECUTE ON ROUTINE %s FROM PUBLIC', function);
	END LOOP;
END $$;

-- A role that may call these can connect this database to others, or speak for another node.
REVOKE EXECUTE ON FUNCTION aq.add_node(name), aq.remove_node(name, boolean), aq.reset_node(boolean), aq.node_beat(uuid, bigint, timestamptz),
	aq.node_want(uuid, text, text, text), aq.node_resume(uuid, bigint, bigint[], uuid[]),
	aq.node_deliver(uuid, bigint, bigint, text, integer, text, text, text[], integer[], bigint[], text[], jsonb[], text[], text[], uuid[], text[]),
	aq.node_recall(uuid, bigint), aq.node_finish(uuid, bigint[], uuid[]), aq.node_return(uuid, bigint) FROM PUBLIC;

-- Reports read figures that only members of pg_monitor may see.
REVOKE EXECUTE ON FUNCTION aq.report_awr(integer, integer, bigint), aq.report_awr_diff(integer, integer, integer, integer, bigint, bigint),
	aq.report_rtpctx(integer, integer, bigint), aq.rtpctx_start(), aq.rtpctx_report(jsonb), aq.report_ash(timestamptz, timestamptz, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aq.report_awr(integer, integer, bigint), aq.report_awr_diff(integer, integer, integer, integer, bigint, bigint),
	aq.report_rtpctx(integer, integer, bigint), aq.rtpctx_start(), aq.rtpctx_report(jsonb), aq.report_ash(timestamptz, timestamptz, bigint) TO pg_monitor;

-- The database's owner can dump the catalog: names, definitions, rules and privileges, but nothing of tables/dump.sql.
GRANT USAGE ON SCHEMA aq_data, aq_internal TO pg_database_owner;
GRANT SELECT ON aq_internal.property, aq_internal.queue, aq_internal.subscriber, aq_internal.consumer_grant, aq_internal.temporary, aq_internal.buffered_queue, aq_internal.message_table, aq_internal.queue_table, aq_internal.snapshot, aq_internal.snapshot_baseline,
	aq_internal.snapshot_control, aq_internal.propagation_arrival, aq_internal.node, aq_internal.dump_row TO pg_database_owner;
GRANT SELECT ON SEQUENCE aq_internal.queue_id_seq, aq_internal.queue_table_id_seq, aq_internal.session_id_seq, aq_internal.partition_number_seq, aq_internal.consumer_number_seq, aq_internal.registration_id_seq, aq_internal.posting_id_seq, aq_internal.schedule_id_seq, aq_internal.propagation_id_seq, aq_internal.node_number_seq, aq_internal.snapshot_id_seq, aq_internal.baseline_id_seq TO pg_database_owner;
