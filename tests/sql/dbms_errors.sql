-- The list of errors of Oracle's packages: every row is raised by a statement here, with its SQLSTATE and Oracle's number, or it says why not.
\pset format unaligned
SET search_path = ora, public;
SET client_min_messages = warning;
CALL dbms_aqadm.create_sharded_queue('e_q', queue_payload_type => 'JSON');
CALL dbms_aqadm.create_sharded_queue('e_topic', queue_payload_type => 'JSON', multiple_consumers => true);
CALL dbms_aqadm.create_sharded_queue('e_stopped', queue_payload_type => 'JSON');
CALL dbms_aqadm.create_eq_exception_queue('e_q', 'e_failed');
CALL dbms_aqadm.create_queue_table('e_tab', 'JSON', sort_list => 'priority,enq_time');
CALL dbms_aqadm.create_queue('e_classic', 'e_tab');
CALL dbms_aqadm.create_queue_table('e_groups_tab', 'JSON', message_grouping => 1);
CALL dbms_aqadm.create_queue('e_groups', 'e_groups_tab');
SELECT format('CALL dbms_aqadm.start_queue(%L, enqueue => %L)', q, q <> 'e_failed') FROM unnest(ARRAY['e_q', 'e_topic', 'e_failed', 'e_classic', 'e_groups']) q \gexec
CALL dbms_aqadm.add_subscriber('e_topic', sys.aq$_agent('ann', NULL, NULL));
CALL dbms_aqadm.add_subscriber('e_topic', sys.aq$_agent('bob', NULL, NULL));
CREATE TYPE secret_t AS (x integer);
REVOKE USAGE ON TYPE secret_t FROM PUBLIC;
CREATE FUNCTION to_secret(jsonb) RETURNS secret_t LANGUAGE sql RETURN NULL::secret_t;
CREATE FUNCTION broken(jsonb) RETURNS jsonb LANGUAGE sql VOLATILE AS 'SELECT to_jsonb(1 / 0)';
CALL dbms_transform.create_transformation('ora', 'e_same', NULL, 'JSON', NULL, 'JSON', 'source.user_data');
SELECT aq.enqueue('ora.e_classic', '1', priority => 5, delay => '1 hour') AS waiting \gset
SELECT aq.enqueue('ora.e_classic', '1', priority => 1) AS urgent \gset
SELECT count(aq.enqueue('ora.e_topic', to_jsonb(n), correlation => 'c')) FROM generate_series(1, 3) n;
SELECT count(aq.enqueue('ora.e_groups', to_jsonb(n))) FROM generate_series(1, 1) n;

CREATE TABLE t.raises (sqlstate text, statement text, why_not text);
INSERT INTO t.raises VALUES
('AQ001', $$CALL dbms_aqadm.start_queue('no_such')$$),
('AQ002', $$CALL dbms_aqadm.create_sharded_queue('e_q', queue_payload_type => 'JSON')$$),
('AQ003', $$CALL dbms_aqadm.start_queue('a b')$$),
('AQ004', $$CALL dbms_aqadm.add_subscriber('e_topic', NULL)$$),
('AQ005', $$CALL dbms_aqadm.create_queue_table('e_tab3', 'JSON', message_grouping => 9)$$),
('AQ006', $$CALL dbms_aq.enqueue('e_stopped', NULL, NULL, '1', NULL)$$),
('AQ007', $$CALL dbms_aq.dequeue('e_stopped', NULL, NULL, NULL::jsonb, NULL)$$),
('AQ008', $$CALL dbms_aq.enqueue('e_q', NULL, NULL, 1, NULL)$$),
('AQ009', $$CALL dbms_aq.dequeue('e_topic', NULL, NULL, NULL::jsonb, NULL)$$),
('AQ010', $$CALL dbms_aq.dequeue('e_q', dbms_aq.dequeue_options_t(consumer_name => 'x'), NULL, NULL::jsonb, NULL)$$),
('AQ011', $$SELECT aq.unsubscribe('ora.e_topic', 'ann'), aq.unsubscribe('ora.e_topic', 'bob'); CALL dbms_aq.enqueue('e_topic', NULL, NULL, '1', NULL)$$),
('AQ012', $$CALL dbms_aq.enqueue('e_topic', NULL, dbms_aq.message_properties_t(recipient_list => array_fill(sys.aq$_agent('x', NULL, NULL), ARRAY[2])), '1', NULL)$$),
('AQ013', $$CALL dbms_aqadm.add_subscriber('e_topic', sys.aq$_agent('Ann', NULL, NULL))$$),
('AQ014', $$CALL dbms_aqadm.remove_subscriber('e_topic', sys.aq$_agent('cid', NULL, NULL))$$),
('AQ015', $$SET LOCAL pgaq.oracle_errors = on; SELECT aq.subscribe('ora.e_topic', 's' || n) FROM generate_series(1, 1100) n$$),
('AQ016', $$SET LOCAL pgaq.oracle_errors = on; SELECT aq.drop_queue('ora.e_topic')$$),
('AQ017', $$CALL dbms_aq.dequeue('e_q', dbms_aq.dequeue_options_t(msgid => gen_random_uuid()), NULL, NULL::jsonb, NULL)$$),
('AQ018', $$CALL dbms_aq.dequeue('e_q', dbms_aq.dequeue_options_t(deq_condition => 'no_such = 1'), NULL, NULL::jsonb, NULL)$$),
('AQ019', $$CALL dbms_aq.listen(ARRAY[sys.aq$_agent('x', 'e_q', NULL)], 0, NULL)$$),
('AQ020', $$CALL dbms_aq.enqueue('e_q', NULL, dbms_aq.message_properties_t(priority => -1), '1', NULL)$$),
('AQ021', $$CALL dbms_aq.enqueue('e_q', NULL, dbms_aq.message_properties_t(delay => -1), '1', NULL)$$),
('AQ022', $$CALL dbms_aq.enqueue('e_q', NULL, dbms_aq.message_properties_t(expiration => -2), '1', NULL)$$),
('AQ027', $$CALL dbms_aqadm.grant_queue_privilege('READ', 'e_q', 'PUBLIC')$$),
('AQ028', $$CALL dbms_aq.enqueue('e_q', NULL, dbms_aq.message_properties_t(exception_queue => 'e_topic'), '1', NULL)$$),
('AQ029', $$SET LOCAL pgaq.oracle_errors = on; SELECT aq.drop_queue('ora.e_failed')$$),
('AQ030', $$CALL dbms_aq.enqueue('e_failed', NULL, NULL, '1', NULL)$$),
('AQ031', $$CALL dbms_aqadm.create_queue_table('e_tab', 'JSON')$$),
('AQ032', $$CALL dbms_aqadm.drop_queue_table('no_such')$$),
('AQ033', $$CALL dbms_aqadm.create_queue_table('e_tab2', 'JSON', sort_list => 'color')$$),
('AQ034', $$CALL dbms_aqadm.drop_queue_table('e_tab')$$),
('AQ035', $$CALL dbms_aqadm.start_queue('e_failed')$$),
('AQ036', $$CALL dbms_aq.enqueue('e_q', dbms_aq.enqueue_options_t(sequence_deviation => dbms_aq.top()), NULL, '1', NULL)$$),
('AQ039', $$CALL dbms_aq.enqueue('e_classic', dbms_aq.enqueue_options_t(sequence_deviation => 2, relative_msgid => gen_random_uuid()), NULL, '1', NULL)$$),
('AQ042', $$CALL dbms_aq.dequeue('e_classic', dbms_aq.dequeue_options_t(navigation => dbms_aq.next_transaction()), NULL, NULL::jsonb, NULL)$$),
('AQ044', $$CALL dbms_aq.dequeue('e_groups', dbms_aq.dequeue_options_t(navigation => dbms_aq.next_transaction()), NULL, NULL::jsonb, NULL)$$),
('AQ060', $$CALL dbms_aqadm.create_sharded_queue('e_any', queue_payload_type => 'ANYDATA')$$),
('AQ061', $$CALL dbms_aq.enqueue(NULL, NULL, NULL, '1', NULL)$$),
('AQ062', $$CALL dbms_aq.enqueue('no_such', NULL, NULL, '1', NULL)$$),
('AQ063', $$CALL dbms_aq.dequeue('e_q', dbms_aq.dequeue_options_t(wait => dbms_aq.no_wait()), NULL, NULL::jsonb, NULL)$$),
('AQ064', $$CALL dbms_aq.listen(ARRAY[sys.aq$_agent(NULL, 'e_q', NULL)], 0, NULL)$$),
('AQ065', $$CALL dbms_aq.enqueue('e_q', dbms_aq.enqueue_options_t(visibility => 9), NULL, '1', NULL)$$),
('AQ066', $$CALL dbms_aq.dequeue('e_q', dbms_aq.dequeue_options_t(dequeue_mode => 9), NULL, NULL::jsonb, NULL)$$),
('AQ067', $$CALL dbms_aq.dequeue('e_q', dbms_aq.dequeue_options_t(navigation => 9), NULL, NULL::jsonb, NULL)$$),
('AQ068', $$CALL dbms_aq.dequeue('e_q', dbms_aq.dequeue_options_t(wait => -2), NULL, NULL::jsonb, NULL)$$),
('AQ069', $$CALL dbms_aq.listen(NULL, 0, NULL)$$),
('AQ070', $$CALL dbms_aq.dequeue('e_q', dbms_aq.dequeue_options_t(msgid => gen_random_uuid(), correlation => 'x'), NULL, NULL::jsonb, NULL)$$),
('AQ072', $$CALL dbms_aq.dequeue('e_failed', dbms_aq.dequeue_options_t(consumer_name => 'x'), NULL, NULL::jsonb, NULL)$$),
('AQ073', $$CALL dbms_aq.enqueue('e_topic', NULL, dbms_aq.message_properties_t(recipient_list => ARRAY[sys.aq$_agent(NULL, NULL, NULL)]), '1', NULL)$$),
('AQ074', $$CALL dbms_aq.enqueue('e_topic', NULL, dbms_aq.message_properties_t(recipient_list => array_fill(sys.aq$_agent('x', NULL, NULL), ARRAY[1025])), '1', NULL)$$),
('AQ075', $$CALL dbms_aq.enqueue('e_classic', dbms_aq.enqueue_options_t(sequence_deviation => 9), NULL, '1', NULL)$$),
('AQ076', $$CALL dbms_aq.enqueue('e_classic', dbms_aq.enqueue_options_t(sequence_deviation => dbms_aq.before()), NULL, '1', NULL)$$),
('AQ077', $$CALL dbms_aqadm.alter_queue('e_q', max_retries => -1)$$),
('AQ078', $$CALL dbms_aqadm.alter_queue('e_q', retry_delay => -1)$$),
('AQ079', $$CALL dbms_aqadm.alter_queue('e_q', retention_time => -2)$$),
('AQ080', $$CALL dbms_aqadm.create_queue('e_x', 'e_tab', queue_type => dbms_aqadm.non_persistent_queue())$$),
('AQ081', $$CALL dbms_aqadm.drop_queue('e_q')$$),
('AQ082', $$CALL dbms_aqadm.create_queue_table('e_x', 'no_such_type')$$),
('AQ083', $$SET LOCAL ROLE regress_ora_admin; CALL dbms_aqadm.create_queue_table('ora.e_x', 'ora.secret_t')$$),
('AQ084', $$CALL dbms_aqadm.create_queue_table('e_x', 'integer')$$),
('AQ086', $$SELECT aq.enqueue('ora.e_q', '1'); CALL dbms_aqadm.stop_queue('e_q', wait => false)$$),
('AQ087', $$SELECT format('CALL dbms_aqadm.create_queue_table(%L, %L)', repeat('x', 60), 'JSON')$$),
('AQ088', $$CALL dbms_aqadm.add_subscriber('e_topic', sys.aq$_agent('x', 'a b', NULL))$$),
('AQ089', $$CALL dbms_aqadm.add_subscriber('e_topic', sys.aq$_agent('sub@#1', NULL, NULL))$$),
('AQ090', $$CALL dbms_aqadm.add_subscriber('e_topic', sys.aq$_agent('AQ$_x', NULL, NULL))$$),
('AQ091', $$CALL dbms_aqadm.add_subscriber('e_failed', sys.aq$_agent('x', NULL, NULL))$$),
('AQ092', $$CALL dbms_aqadm.create_queue_table('e_x', 'JSON', secondary_instance => 2)$$),
('AQ093', $$CALL dbms_aqadm.alter_queue('e_failed', retention_time => 1)$$),
('AQ094', $$CALL dbms_aqadm.alter_queue('e_failed', max_retries => 1)$$),
('AQ095', $$CALL dbms_aq.enqueue('e_q', dbms_aq.enqueue_options_t(transformation => 'to_secret'), NULL, '1'::jsonb, NULL)$$),
('AQ096', $$CALL dbms_aq.enqueue('e_q', dbms_aq.enqueue_options_t(transformation => 'broken'), NULL, 1, NULL)$$),
('AQ097', $$CALL dbms_transform.create_transformation('ora', 'e_same', NULL, 'JSON', NULL, 'JSON', 'NULL')$$),
('AQ098', $$CALL dbms_transform.drop_transformation('ora', 'no_such')$$),
('AQ099', $$CALL dbms_aq.enqueue('e_q', dbms_aq.enqueue_options_t(transformation => 'broken'), NULL, '1'::jsonb, NULL)$$),
('AQ100', $$CALL dbms_aq.listen(ARRAY[sys.aq$_agent('x', 'e_q@far', NULL)], 0, NULL)$$),
('AQ101', $$CALL dbms_aq.listen(array_fill(sys.aq$_agent(NULL, 'e_q', NULL), ARRAY[2]), 0, NULL)$$),
('AQ102', $$CALL dbms_aq.listen(ARRAY[sys.aq$_agent(NULL, 'e_stopped', NULL)], 0, NULL)$$),
('AQ103', $$CALL dbms_aq.listen(ARRAY[sys.aq$_agent(NULL, 'e_topic', NULL)], 0, NULL)$$),
('AQ111', $$CALL dbms_aq.seek('e_classic', NULL, ARRAY[dbms_aq.seek_input_t(seek_type => 2)], NULL, NULL)$$),
('AQ110', $$SET LOCAL pgaq.oracle_errors = on; SELECT aq.convert_queue('ora.e_groups')$$),
('AQ105', $$CALL dbms_aqadm.create_queue('public.e_x', 'e_tab')$$),
('AQ106', $$CALL dbms_aqadm.alter_queue_table('e_tab', secondary_instance => 2)$$),
('AQ115', $$CALL dbms_aq.enqueue('e_q', dbms_aq.enqueue_options_t(delivery_mode => 9), NULL, '1', NULL)$$),
('AQ116', $$CALL dbms_aq.enqueue('e_q', dbms_aq.enqueue_options_t(delivery_mode => dbms_aq.buffered()), NULL, '1', NULL)$$),
('AQ117', $$CALL dbms_aq.dequeue('e_topic', dbms_aq.dequeue_options_t(consumer_name => 'ann', delivery_mode => dbms_aq.buffered(), visibility => 1, wait => 0), NULL, NULL::jsonb, NULL)$$),
('AQ053', $$SET LOCAL pgaq.oracle_errors = on; SELECT aq.alter_queue('ora.e_q', max_depth => 1, on_full => 'error'); SELECT aq.enqueue('ora.e_q', '1') FROM generate_series(1, 2)$$),
('AQ118', $$SET LOCAL pgaq.oracle_errors = on; SET LOCAL pgaq.buffered_message_limit = 1; SELECT aq.enqueue('ora.e_q', '1', delivery_mode => 'buffered') FROM generate_series(1, 2)$$);
INSERT INTO t.raises VALUES
('AQ023', NULL, 'PREPARE TRANSACTION ends the transaction: tests/cluster/test_prepare.py'),
('AQ024', NULL, 'needs a small shared memory: tests/cluster/test_scale.py'),
('AQ050', NULL, 'needs a small shared memory: tests/cluster/test_shares.py'),
('AQ051', NULL, 'needs a small shared memory: tests/cluster/test_scale.py'),
('AQ052', NULL, 'needs two sessions: tests/cluster/test_stop.py'),
('AQ025', NULL, 'needs a server without the library'),
('AQ026', NULL, 'needs a server without workers'),
('AQ154', NULL, 'needs as many registrations as a role can have: tests/sql/notification.sql'),
('AQ143', NULL, 'needs as many sessions as can be traced: tests/cluster/test_trace.py');
INSERT INTO t.raises VALUES
('AQ130', $$CALL dbms_aqadm.schedule_propagation('e_topic'); CALL dbms_aqadm.schedule_propagation('e_topic')$$),
('AQ131', $$CALL dbms_aqadm.unschedule_propagation('e_topic')$$),
('AQ132', $$CALL dbms_aqadm.schedule_propagation('e_topic'); CALL dbms_aqadm.enable_propagation_schedule('e_topic')$$),
('AQ133', $$CALL dbms_aqadm.schedule_propagation('e_topic'); CALL dbms_aqadm.disable_propagation_schedule('e_topic'); CALL dbms_aqadm.disable_propagation_schedule('e_topic')$$),
('AQ140', $$SET LOCAL pgaq.oracle_errors = on; SELECT aq.trace_start(-1)$$),
('AQ141', $$SET LOCAL pgaq.oracle_errors = on; SELECT aq.trace_start(), aq.trace_start()$$),
('AQ142', $$SET LOCAL pgaq.oracle_errors = on; SELECT aq.trace_stop(-1)$$),
('AQ144', $$SET LOCAL pgaq.oracle_errors = on; SELECT aq.trace_start(operations => '{lunch}')$$);
INSERT INTO t.raises VALUES
('AQ150', $$CALL dbms_aq.register(ARRAY[sys.aq$_reg_info('e_q:', 1, 'plsql://ora.p')], 1)$$),
('AQ151', $$CALL dbms_aq.register(ARRAY[sys.aq$_reg_info('e_q:ann', 1, 'plsql://ora.p')], 1)$$),
('AQ152', $$CALL dbms_aq.register(ARRAY[sys.aq$_reg_info('e_topic', 1, 'plsql://ora.p')], 1)$$),
('AQ153', $$CALL dbms_aq.register(ARRAY[sys.aq$_reg_info('e_q', 2, 'plsql://ora.p')], 1)$$),
('AQ155', $$CALL dbms_aq.unregister(ARRAY[sys.aq$_reg_info('e_q', 1, 'plsql://ora.p')], 1)$$),
('AQ156', $$CALL dbms_aq.register(ARRAY[sys.aq$_reg_info('e_q', 1, 'mailto://me')], 1)$$);
CALL dbms_aqadm.create_np_queue('e_np');
CALL dbms_aqadm.start_queue('e_np');
INSERT INTO t.raises VALUES
('AQ190', $$CALL dbms_aqadm.alter_queue('e_np', max_retries => 3)$$),
('AQ191', $$CALL dbms_aq.dequeue('e_np', dbms_aq.dequeue_options_t(wait => 0), NULL, NULL::bytea, NULL)$$),
('AQ192', $$CALL dbms_aq.listen(ARRAY[sys.aq$_agent(NULL, 'e_np', NULL)], 0, NULL)$$),
('AQ193', $$CALL dbms_aq.enqueue('e_np', NULL, NULL, 'a'::bytea, NULL)$$),
('AQ194', $$CALL dbms_aq.enqueue('e_np', dbms_aq.enqueue_options_t(visibility => 1), dbms_aq.message_properties_t(delay => 1), 'a'::bytea, NULL)$$),
('AQ195', $$CALL dbms_aq.enqueue('e_np', dbms_aq.enqueue_options_t(visibility => 1, sequence_deviation => dbms_aq.top()), NULL, 'a'::bytea, NULL)$$),
('AQ196', $$CALL dbms_aq.enqueue('e_np', dbms_aq.enqueue_options_t(visibility => 1), NULL, '1'::jsonb, NULL)$$),
('AQ197', $$CALL dbms_aqadm.create_np_queue('e_several', multiple_consumers => true); CALL dbms_aqadm.add_subscriber('e_several', sys.aq$_agent('FAR', 'e_q', NULL))$$),
('AQ200', $$SELECT sys.get_bytes(aq_jms.set_header(aq_jms.construct('bytes'), 'content_length', '5'))$$),
('AQ201', $$CALL sys.set_int_property(aq_jms.set_property(aq_jms.construct(), 'a', 1), 'a', 2)$$),
('AQ202', $$CALL sys.set_int_property(aq_jms.construct(), NULL, 2)$$),
('AQ203', $$CALL sys.set_byte_property(aq_jms.construct(), 'a', 128)$$),
('AQ204', $$SELECT sys.get_int(NULL, sys.prepare(aq_jms.set_item(aq_jms.construct('map'), 'a', aq_jms.item('x'::text)), -1), 'a')$$),
('AQ205', $$SELECT sys.read_int(NULL, sys.clear_body(aq_jms.construct('stream'), -1))$$),
('AQ206', $$SELECT sys.read_int(NULL, -1)$$),
('AQ207', $$SELECT sys.clear_body(aq_jms.construct('map'), -1) FROM generate_series(1, 21)$$);
-- those that need two calls
INSERT INTO t.raises VALUES
('AQ040', format('CALL dbms_aq.enqueue(''e_classic'', dbms_aq.enqueue_options_t(sequence_deviation => 2, relative_msgid => %L), dbms_aq.message_properties_t(delay => 10), ''1'', NULL)', :'urgent')),
('AQ041', format('CALL dbms_aq.enqueue(''e_classic'', dbms_aq.enqueue_options_t(sequence_deviation => 2, relative_msgid => %L), dbms_aq.message_properties_t(priority => 9), ''1'', NULL)', :'urgent')),
('AQ043', $$SET LOCAL pgaq.oracle_errors = on; SELECT * FROM aq.dequeue('ora.e_groups', navigation => 'first_message'); SELECT * FROM aq.dequeue('ora.e_groups', navigation => 'next_message')$$),
('AQ045', $$SET LOCAL pgaq.oracle_errors = on; SELECT * FROM aq.dequeue('ora.e_topic', 'ann', correlation => 'c', navigation => 'first_message'); SELECT * FROM aq.dequeue('ora.e_topic', 'ann', correlation => 'd', navigation => 'next_message')$$),
('AQ046', $$SET LOCAL pgaq.oracle_errors = on; SELECT * FROM aq.dequeue('ora.e_topic', 'ann', navigation => 'first_message'); SELECT * FROM aq.dequeue('ora.e_topic', 'bob', navigation => 'next_message')$$),
('AQ047', $$SELECT aq.create_queue('x_native'); SET LOCAL pgaq.oracle_errors = on; SELECT aq.grant_queue('x_native_exceptions', 'public')$$),
('AQ048', $$SET LOCAL pgaq.max_temporary_queues = 0; SET LOCAL pgaq.oracle_errors = on; SELECT aq.create_temporary_queue()$$);
UPDATE t.raises SET statement = format('CALL dbms_aqadm.create_queue_table(%L, %L)', repeat('x', 60), 'JSON') WHERE sqlstate = 'AQ087';

INSERT INTO t.raises VALUES ('AQ049', NULL, 'of messages of Jakarta Messaging: tests/sql/jms_send.sql');
INSERT INTO t.raises VALUES ('AQ160', NULL, 'of links: tests/sql/links.sql');
INSERT INTO t.raises SELECT 'AQ13' || n, NULL, 'of links: tests/sql/propagate_link.sql' FROM generate_series(4, 5) n;
INSERT INTO t.raises VALUES ('AQ136', NULL, 'of messages that go round: tests/sql/propagate.sql');
INSERT INTO t.raises SELECT 'AQ18' || n, NULL, 'of nodes: tests/sql/nodes.sql' FROM generate_series(0, 8) n;
INSERT INTO t.raises SELECT 'AQ' || n, NULL, 'of schedules: tests/sql/errors.sql' FROM generate_series(170, 173) n;
INSERT INTO t.raises SELECT 'AQ' || n, NULL, 'of snapshots and reports: tests/sql/snapshots.sql' FROM generate_series(120, 126) n;
-- every row of the list has a statement or a reason, and nothing else has
SELECT e.sqlstate, r.sqlstate FROM sys.oracle_errors e FULL JOIN t.raises r USING (sqlstate) WHERE e.sqlstate IS NULL OR r.sqlstate IS NULL;
SELECT e.sqlstate, e.ora, r.why_not FROM sys.oracle_errors e JOIN t.raises r USING (sqlstate) WHERE r.statement IS NULL ORDER BY 1;
-- each statement raises its error, with Oracle's number once, at the end of the message: those that do not
CREATE TABLE t.raised AS SELECT e.sqlstate, e.ora, r.statement, x.error
FROM sys.oracle_errors e JOIN t.raises r USING (sqlstate), LATERAL (SELECT t.error(r.statement) AS error OFFSET 0) x WHERE r.statement IS NOT NULL;
SELECT sqlstate, ora, error FROM t.raised
WHERE split_part(error, ' | ', 1) <> sqlstate
	OR substring(split_part(error, ' | ', 2) FROM ' \(ORA-([0-9]{5})\)$')::integer IS DISTINCT FROM ora OR error ~ 'ORA-.*ORA-'
ORDER BY sqlstate;
-- hints name functions and options of the packages, not those of schema aq: all that do, where the packages have nothing like it
SELECT sqlstate, error FROM t.raised WHERE statement LIKE 'CALL dbms%' AND error ~ '\maq\.[a-z]' ORDER BY sqlstate, error;
SELECT sqlstate, error FROM t.raised WHERE sqlstate IN ('AQ013', 'AQ014', 'AQ045') ORDER BY sqlstate, error;
DROP TABLE t.raised;

SELECT aq.trace_stop();
CALL dbms_transform.drop_transformation('ora', 'e_same');
SELECT format('CALL dbms_aqadm.drop_sharded_queue(%L, force => true)', q) FROM unnest(ARRAY['e_q', 'e_topic', 'e_stopped', 'e_failed']) q \gexec
CALL dbms_aqadm.stop_queue('e_np');
CALL dbms_aqadm.drop_queue('e_np');
CALL dbms_aqadm.drop_queue_table('e_tab', force => true);
CALL dbms_aqadm.drop_queue_table('e_groups_tab', force => true);
-- the CONTEXT of an error names the user's functions, not those of the extension
CALL dbms_aqadm.start_queue('nobody');
CALL dbms_aq.enqueue('nobody', NULL, NULL, '1', NULL);
CREATE PROCEDURE t.reads(queue text) LANGUAGE plpgsql AS $$
DECLARE
	mp dbms_aq.message_properties_t;
	payload jsonb;
	id uuid;
BEGIN
	CALL dbms_aq.dequeue(queue, dbms_aq.dequeue_options_t(wait => 0), mp, payload, id);
END $$;
CALL t.reads('nobody');
DROP PROCEDURE t.reads;
CALL dbms_aqadm.drop_aq_agent('a');
DO $$ BEGIN CALL dbms_aqadm.drop_aq_agent('a'); END $$;
