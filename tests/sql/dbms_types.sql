-- Oracle's constants have Oracle's values, and its types can be declared.
\pset format unaligned
\pset tuples_only on
CREATE TABLE t.constant (name text, value integer);
INSERT INTO t.constant VALUES
	('dbms_aq.browse', dbms_aq.browse()),
	('dbms_aq.locked', dbms_aq.locked()),
	('dbms_aq.remove', dbms_aq.remove()),
	('dbms_aq.remove_nodata', dbms_aq.remove_nodata()),
	('dbms_aq.first_message', dbms_aq.first_message()),
	('dbms_aq.next_transaction', dbms_aq.next_transaction()),
	('dbms_aq.next_message', dbms_aq.next_message()),
	('dbms_aq.first_message_multi_group', dbms_aq.first_message_multi_group()),
	('dbms_aq.next_message_multi_group', dbms_aq.next_message_multi_group()),
	('dbms_aq.immediate', dbms_aq.immediate()),
	('dbms_aq.on_commit', dbms_aq.on_commit()),
	('dbms_aq.no_wait', dbms_aq.no_wait()),
	('dbms_aq.forever', dbms_aq.forever()),
	('dbms_aq.persistent', dbms_aq.persistent()),
	('dbms_aq.buffered', dbms_aq.buffered()),
	('dbms_aq.persistent_or_buffered', dbms_aq.persistent_or_buffered()),
	('dbms_aq.ready', dbms_aq.ready()),
	('dbms_aq.waiting', dbms_aq.waiting()),
	('dbms_aq.processed', dbms_aq.processed()),
	('dbms_aq.expired', dbms_aq.expired()),
	('dbms_aq.no_delay', dbms_aq.no_delay()),
	('dbms_aq.never', dbms_aq.never()),
	('dbms_aq.before', dbms_aq.before()),
	('dbms_aq.top', dbms_aq.top()),
	('dbms_aq.namespace_anonymous', dbms_aq.namespace_anonymous()),
	('dbms_aq.namespace_aq', dbms_aq.namespace_aq()),
	('dbms_aq.ntfn_qos_reliable', dbms_aq.ntfn_qos_reliable()),
	('dbms_aq.ntfn_qos_payload', dbms_aq.ntfn_qos_payload()),
	('dbms_aq.ntfn_qos_purge_on_ntfn', dbms_aq.ntfn_qos_purge_on_ntfn()),
	('dbms_aq.ntfn_grouping_class_time', dbms_aq.ntfn_grouping_class_time()),
	('dbms_aq.ntfn_grouping_type_summary', dbms_aq.ntfn_grouping_type_summary()),
	('dbms_aq.ntfn_grouping_type_last', dbms_aq.ntfn_grouping_type_last()),
	('dbms_aq.ntfn_grouping_forever', dbms_aq.ntfn_grouping_forever()),
	('dbms_aqadm.none', dbms_aqadm.none()),
	('dbms_aq.seek_begin', dbms_aq.seek_begin()),
	('dbms_aq.seek_end', dbms_aq.seek_end()),
	('dbms_aq.seek_msgid', dbms_aq.seek_msgid()),
	('dbms_aq.no_discard_skipped', dbms_aq.no_discard_skipped()),
	('dbms_aq.discard_skipped', dbms_aq.discard_skipped()),
	('dbms_aq.jms_text_message', dbms_aq.jms_text_message()),
	('dbms_aq.jms_bytes_message', dbms_aq.jms_bytes_message()),
	('dbms_aq.jms_stream_message', dbms_aq.jms_stream_message()),
	('dbms_aq.jms_map_message', dbms_aq.jms_map_message()),
	('dbms_aq.jms_object_message', dbms_aq.jms_object_message()),
	('dbms_aqjms.jms_text_message', dbms_aqjms.jms_text_message()),
	('dbms_aqjms.jms_bytes_message', dbms_aqjms.jms_bytes_message()),
	('dbms_aqjms.jms_stream_message', dbms_aqjms.jms_stream_message()),
	('dbms_aqjms.jms_map_message', dbms_aqjms.jms_map_message()),
	('dbms_aqjms.jms_object_message', dbms_aqjms.jms_object_message()),
	('dbms_aqjms.message_access_readonly', dbms_aqjms.message_access_readonly()),
	('dbms_aqjms.message_access_writeonly', dbms_aqjms.message_access_writeonly()),
	('dbms_jms_plsql.data_type_boolean', dbms_jms_plsql.data_type_boolean()),
	('dbms_jms_plsql.data_type_byte', dbms_jms_plsql.data_type_byte()),
	('dbms_jms_plsql.data_type_short', dbms_jms_plsql.data_type_short()),
	('dbms_jms_plsql.data_type_integer', dbms_jms_plsql.data_type_integer()),
	('dbms_jms_plsql.data_type_long', dbms_jms_plsql.data_type_long()),
	('dbms_jms_plsql.data_type_float', dbms_jms_plsql.data_type_float()),
	('dbms_jms_plsql.data_type_double', dbms_jms_plsql.data_type_double()),
	('dbms_jms_plsql.data_type_string', dbms_jms_plsql.data_type_string()),
	('dbms_jms_plsql.data_type_character', dbms_jms_plsql.data_type_character()),
	('dbms_jms_plsql.data_type_bytes', dbms_jms_plsql.data_type_bytes()),
	('dbms_aqadm.transactional', dbms_aqadm.transactional()),
	('dbms_aqadm.normal_queue', dbms_aqadm.normal_queue()),
	('dbms_aqadm.exception_queue', dbms_aqadm.exception_queue()),
	('dbms_aqadm.non_persistent_queue', dbms_aqadm.non_persistent_queue()),
	('dbms_aqadm.infinite', dbms_aqadm.infinite()),
	('dbms_aqadm.persistent', dbms_aqadm.persistent()),
	('dbms_aqadm.buffered', dbms_aqadm.buffered()),
	('dbms_aqadm.persistent_or_buffered', dbms_aqadm.persistent_or_buffered()),
	('dbms_aqadm.replication_mode', dbms_aqadm.replication_mode());
SELECT name, value FROM t.constant ORDER BY name COLLATE "C";
-- these are all
SELECT count(*) FROM t.constant
FULL JOIN (SELECT n.nspname || '.' || p.proname AS name FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
	WHERE n.nspname IN ('dbms_aq', 'dbms_aqadm', 'dbms_aqjms', 'dbms_jms_plsql') AND p.pronargs = 0 AND p.prokind = 'f' AND p.provolatile = 'i' AND p.prorettype = 'integer'::regtype) f USING (name)
WHERE constant.name IS NULL OR f.name IS NULL;
SELECT dbms_aqadm.jms_type();

-- lists are arrays, of both packages and of sys
DO $$
DECLARE
	recipients dbms_aq.aq$_recipient_list_t;
	recipients2 sys.aq$_recipient_list_t;
	agents dbms_aq.aq$_agent_list_t;
	agents2 sys.aq$_agent_list_t;
	subscribers dbms_aqadm.aq$_subscriber_list_t;
	subscribers2 sys.aq$_subscriber_list_t;
	p dbms_aq.message_properties_t;
BEGIN
	recipients[1] := sys.aq$_agent('A', NULL, NULL);
	recipients[2].name := 'B';
	recipients2 := recipients;
	agents := recipients2;
	agents2 := agents;
	subscribers := agents2;
	subscribers2 := subscribers;
	p.recipient_list := subscribers2;
	p.recipient_list[3] := sys.aq$_agent('C', 'q', 0);
	RAISE NOTICE '%', p.recipient_list;
END $$;

-- properties of a JMS header are a list, too
DO $$
DECLARE
	properties sys.aq$_jms_userproparray;
	property sys.aq$_jms_userproperty;
	header sys.aq$_jms_header;
BEGIN
	property.name := 'color';
	property.type := 100;
	property.str_value := 'red';
	property.java_type := dbms_jms_plsql.data_type_string();
	properties[1] := property;
	header.properties := properties;
	RAISE NOTICE '% %', header, (sys.aq$_jms_text_message(header, 1, 'x', NULL)).properties;
END $$;

-- a list with a gap
DO $$
DECLARE
	agents dbms_aq.aq$_agent_list_t;
BEGIN
	agents[1] := sys.aq$_agent('A', 'q', NULL);
	agents[3] := sys.aq$_agent('B', 'q', NULL);
	RAISE NOTICE '%', t.error(format('CALL dbms_aq.listen(%L::dbms_aq.aq$_agent_list_t, 0, NULL)', agents));
END $$;

-- functions of dbms_aqadm like its record types; the types are for everybody
SELECT dbms_aqadm.queue_props_t(retention_time => 60, retry_delay => 2.0), dbms_aqadm.aq$_purge_options_t(block => true);
CALL dbms_aqadm.grant_type_access('public');
SELECT t.error($$CALL dbms_aqadm.grant_type_access('regress_nobody')$$);
-- dual, and columns of Oracle's that need quotes
SELECT dbms_aq.no_wait(), dummy FROM sys.dual;
SELECT count(*) > 0 AND bool_and(latch = "latch#") FROM sys.v$latch;
SELECT count(*) > 0 AND bool_and(latch = "latch#") FROM sys.v$latchname;
SELECT bool_and(latch = "latch#" AND child = "child#") FROM sys.v$latch_children;
SELECT count(child) = count("child#") FROM sys.v$latchholder;

-- every field of the records can be set
DO $$
DECLARE
	props dbms_aqadm.queue_props_t;
	purge dbms_aqadm.aq$_purge_options_t;
	e dbms_aq.error_t;
	errors dbms_aq.error_array_t;
BEGIN
	props.queue_type := dbms_aqadm.normal_queue();
	props.retry_delay := 1;
	props.retention_time := dbms_aqadm.infinite();
	props.sort_list := 0;
	props.cache_hint := 0;
	purge.block := false;
	purge.delivery_mode := dbms_aqadm.persistent();
	errors[1] := e;
	RAISE NOTICE '% % %', props, purge, errors;
END $$;

-- the messages that the table in docs/oracle-symptoms.md explains
SELECT t.error(statement) FROM unnest(ARRAY[
	'DO $do$ DECLARE o dbms_aq.enqueue_options_t; BEGIN o.visibility := dbms_aq.immediate; END $do$',
	'DO $do$ DECLARE l_list dbms_aq.aq$_agent_list_t; BEGIN RAISE NOTICE ''%'', l_list.count; END $do$',
	'DO $do$ DECLARE l_list dbms_aq.aq$_agent_list_t; BEGIN l_list(1) := NULL; END $do$',
	'DO $do$ BEGIN NULL; EXCEPTION WHEN no_messages THEN NULL; END $do$',
	'DO $do$ DECLARE r raw(16); BEGIN END $do$',
	'DO $do$ BEGIN IF sqlcode = -25228 THEN NULL; END IF; END $do$',
	'SELECT sys.dbms_aq.no_wait()']) WITH ORDINALITY AS s (statement, n) ORDER BY n;
SET search_path = public;
SELECT split_part(t.error(statement), ' | ', 2) FROM unnest(ARRAY[
	'DO $do$ DECLARE no_messages exception; BEGIN END $do$',
	'DO $do$ DECLARE n pls_integer; BEGIN END $do$',
	'DO $do$ DECLARE c clob; BEGIN END $do$',
	'DO $do$ BEGIN dbms_output.put_line(''x''); END $do$',
	'DO $do$ BEGIN CALL dbms_output.put_line(''x''); END $do$',
	'CALL dbms_lock.sleep(1)',
	'SELECT utl_raw.cast_to_raw(''x'')',
	'GRANT EXECUTE ON dbms_aq TO CURRENT_USER',
	'SELECT * FROM user_queues', 'SELECT * FROM v$aq', 'SELECT 1 FROM dual',
	'SELECT aq$_agent(''GREEN'', NULL, NULL)',
	'CALL dbms_aqadm.add_subscriber(''no_queue'', ''GREEN'')',
	'DO $do$ DECLARE o text[]; ids uuid[]; n integer; BEGIN n := dbms_aq.enqueue_array(''q'', NULL, 2, NULL, o); END $do$',
	'DO $do$ DECLARE o text[]; ids uuid[]; n integer; BEGIN n := dbms_aq.enqueue_array(''q'', NULL, 2, NULL, o, ids); END $do$',
	'SELECT sysdate', 'SELECT nvl(1, 2)']) WITH ORDINALITY AS s (statement, n) ORDER BY n;
RESET search_path;
DO $$ BEGIN BEGIN COMMIT; EXCEPTION WHEN SQLSTATE 'AQ063' THEN NULL; END; END $$;
CALL dbms_aqadm.create_sharded_queue('symptoms', multiple_consumers => true, queue_payload_type => 'JSON');
SELECT split_part(t.error(format('CALL dbms_aqadm.add_subscriber(''symptoms'', sys.aq$_agent(''A'', NULL, NULL), %L)', rule)), ' | ', 2)
FROM unnest(ARRAY['priority < nvl(priority, 1)', 'enq_time < sysdate']) WITH ORDINALITY AS r (rule, n) ORDER BY n;
CALL dbms_aqadm.drop_sharded_queue('symptoms');
-- one grant is enough to enqueue and dequeue, without a right to the schema
CREATE SCHEMA one_grant;
CALL dbms_aqadm.create_sharded_queue('one_grant.granted', queue_payload_type => 'JSON');
SELECT t.error($$CALL dbms_aq.enqueue('one_grant.granted', NULL, dbms_aq.message_properties_t(recipient_list =>
	ARRAY[sys.aq$_agent('A', NULL, NULL), NULL, sys.aq$_agent('B', NULL, NULL)]), '1', NULL)$$);
CALL dbms_aqadm.start_queue('one_grant.granted');
CREATE ROLE regress_one_grant;
CALL dbms_aqadm.grant_queue_privilege('ALL', 'one_grant.granted', 'regress_one_grant');
SET ROLE regress_one_grant;
CALL dbms_aq.enqueue('one_grant.granted', NULL, NULL, '"granted"', NULL) \gset
CALL dbms_aq.dequeue('one_grant.granted', dbms_aq.dequeue_options_t(wait => 0), NULL, NULL::jsonb, NULL) \gset
RESET ROLE;
SELECT :'payload';
CALL dbms_aqadm.drop_sharded_queue('one_grant.granted', force => true);
DROP ROLE regress_one_grant;
DROP SCHEMA one_grant;
