-- Errors of schema aq: every row of aq.errors is raised by a statement here, with its SQLSTATE and without a word of Oracle's, or it says why not.
\pset format unaligned
\pset tuples_only on
SET client_min_messages = warning;
SELECT aq.create_queue('x_q'), aq.create_queue('x_topic', multiple_consumers => true), aq.create_queue('x_stopped'), aq.create_queue('x_failed', queue_type => 'exception');
SELECT aq.create_queue_table('t.x_tab', sort_list => 'priority, enq_time'), aq.create_queue('x_classic', queue_table => 't.x_tab');
SELECT aq.create_queue_table('t.x_groups_tab', message_grouping => true), aq.create_queue('x_groups', queue_table => 't.x_groups_tab'), aq.create_queue('x_untouched', queue_table => 't.x_groups_tab');
SELECT aq.create_queue('x_np', multiple_consumers => true, queue_type => 'non_persistent');
CREATE ROLE regress_aq_errors;
SELECT aq.stop_queue('x_stopped'), aq.alter_queue('x_q', exception_queue => 'x_failed'), aq.subscribe('x_topic', 'ann'), aq.subscribe('x_topic', 'ANN'), aq.subscribe('x_topic', 'bob');
SELECT aq.enqueue('x_classic', '1', priority => 5, delay => '1 hour') AS waiting, aq.enqueue('x_classic', '1', priority => 1) AS urgent \gset
SELECT count(aq.enqueue('x_topic', to_jsonb(n), correlation => 'c')) FROM generate_series(1, 3) n;
SELECT t.put('x_groups', 1);
SELECT aq.take_snapshot() AS one \gset
SELECT aq.take_snapshot() AS two \gset

CREATE TABLE t.raises (code text, statement text, why_not text);
INSERT INTO t.raises VALUES
('AQ001', $$SELECT aq.start_queue('no such')$$),
('AQ002', $$SELECT aq.create_queue('x_q')$$),
('AQ003', $$SELECT aq.create_queue('aq$x')$$),
('AQ004', $$SELECT aq.create_queue(NULL)$$),
('AQ005', $$SELECT aq.create_queue('x', shards => 99)$$),
('AQ006', $$SELECT aq.enqueue('x_stopped', '1')$$),
('AQ007', $$SELECT * FROM aq.dequeue('x_stopped')$$),
('AQ008', $$SELECT aq.create_queue('x', 'integer')$$),
('AQ009', $$SELECT * FROM aq.dequeue('x_topic')$$),
('AQ010', $$SELECT * FROM aq.dequeue('x_q', 'ann')$$),
('AQ012', $$SELECT aq.enqueue('x_topic', '1', recipients => '{ann, ann}')$$),
('AQ013', $$SELECT aq.subscribe('x_topic', 'ann')$$),
('AQ014', $$SELECT aq.unsubscribe('x_topic', 'nobody')$$),
('AQ015', $$SELECT aq.subscribe('x_topic', 's' || n) FROM generate_series(1, 1100) n$$),
('AQ016', $$SELECT aq.drop_queue('x_topic')$$),
('AQ017', $$SELECT * FROM aq.browse('x_q', after => gen_random_uuid())$$),
('AQ018', $$SELECT aq.subscribe('x_topic', 'x', 'no_such = 1')$$),
('AQ018', $$SELECT * FROM aq.dequeue('x_q', condition => 'no_such = 1')$$),
('AQ019', $$CALL aq.listen(ARRAY['x_q'], ARRAY[NULL, 'ann'], '0', NULL, NULL)$$),
('AQ020', $$SELECT aq.enqueue('x_q', '1', priority => 10)$$),
('AQ021', $$SELECT aq.enqueue('x_q', '1', delay => '200000 years')$$),
('AQ022', $$SELECT aq.enqueue('x_q', '1', expiration => '-1 second')$$),
('AQ027', $$SELECT aq.grant_queue('x_q', NULL, 'read')$$),
('AQ028', $$SELECT aq.alter_queue('x_q', exception_queue => 'x_topic')$$),
('AQ028', $$SELECT aq.enqueue('x_q', '1', exception_queue => 'x_topic')$$),
('AQ029', $$SELECT aq.drop_queue('x_failed')$$),
('AQ030', $$SELECT aq.enqueue('x_failed', '1')$$),
('AQ031', $$SELECT aq.create_queue_table('t.x_tab')$$),
('AQ032', $$SELECT aq.drop_queue_table('t.none')$$),
('AQ033', $$SELECT aq.create_queue_table('t.x', sort_list => 'color')$$),
('AQ034', $$SELECT aq.drop_queue_table('t.x_tab')$$),
('AQ035', $$SELECT aq.start_queue('x_failed')$$),
('AQ036', $$SELECT aq.enqueue('x_q', '1', deviation => 'top')$$),
('AQ039', $$SELECT aq.enqueue('x_classic', '1', deviation => 'before', relative_msgid => gen_random_uuid())$$),
('AQ040', format('SELECT aq.enqueue(''x_classic'', ''1'', deviation => ''before'', relative_msgid => %L, delay => ''10 s'')', :'urgent')),
('AQ041', format('SELECT aq.enqueue(''x_classic'', ''1'', deviation => ''before'', relative_msgid => %L, priority => 9)', :'urgent')),
('AQ042', $$SELECT * FROM aq.dequeue('x_classic', navigation => 'next_transaction')$$),
('AQ043', $$SELECT * FROM aq.dequeue('x_groups', navigation => 'first_message'); SELECT * FROM aq.dequeue('x_groups', navigation => 'next_message')$$),
('AQ044', $$SELECT * FROM aq.dequeue('x_untouched', navigation => 'next_transaction')$$),
('AQ045', $$SELECT * FROM aq.dequeue('x_topic', 'ann', correlation => 'c', navigation => 'first_message'); SELECT * FROM aq.dequeue('x_topic', 'ann', correlation => 'd', navigation => 'next_message')$$),
('AQ046', $$SELECT * FROM aq.dequeue('x_topic', 'ann', navigation => 'first_message'); SELECT * FROM aq.dequeue('x_topic', 'bob', navigation => 'next_message')$$),
('AQ047', $$SELECT aq.grant_queue('x_q_exceptions', 'public')$$),
('AQ048', $$SET LOCAL pgaq.max_temporary_queues = 0; SELECT aq.create_temporary_queue()$$),
('AQ049', $$SELECT aq_jms.send(NULL, int4send(3) || 'x_q'::bytea || int4send(-1) || int8send(1) || int4send(1) || uuid_send(gen_random_uuid()))$$),
('AQ053', $$SELECT aq.alter_queue('x_q', max_depth => 1, on_full => 'error'); SELECT aq.enqueue('x_q', '1') FROM generate_series(1, 2)$$),
('AQ060', $$SELECT * FROM aq.dequeue('x_groups', lease => '1 s')$$),
('AQ067', $$SELECT * FROM aq.dequeue('x_q', navigation => 'backwards')$$),
('AQ075', $$SELECT aq.enqueue('x_classic', '1', deviation => 'behind')$$),
('AQ076', $$SELECT aq.enqueue('x_classic', '1', deviation => 'before')$$),
('AQ110', $$SELECT aq.convert_queue('x_groups')$$),
('AQ115', $$SELECT aq.enqueue('x_q', '1', delivery_mode => 'fast')$$),
('AQ117', $$SELECT * FROM aq.dequeue('x_topic', 'ann', delivery_mode => 'buffered')$$),
('AQ118', $$SET LOCAL pgaq.buffered_message_limit = 1; SELECT aq.enqueue('x_q', '1', delivery_mode => 'buffered') FROM generate_series(1, 2)$$),
('AQ120', $$SELECT aq.drop_snapshots(2, 1)$$),
('AQ121', $$SELECT aq.set_snapshots(retention => '1 minute')$$),
('AQ122', $$SELECT aq.set_snapshots(every => '1 second')$$),
('AQ123', $$SELECT aq.drop_snapshots(1, 2, dbid => 1)$$),
('AQ124', format($$SELECT aq.create_baseline('x', %1$s, %2$s), aq.create_baseline('x', %1$s, %2$s)$$, :one, :two)),
('AQ125', $$SELECT aq.drop_baseline('none')$$),
('AQ126', $$SELECT aq.report_awr(-1, 1)$$),
('AQ130', $$SELECT aq.create_queue('x_from'), aq.create_queue('x_to'), aq.create_propagation('x_from', 'x_to'), aq.create_propagation('x_from', 'x_to')$$),
('AQ131', $$SELECT aq.create_queue('x_from'), aq.drop_propagation('x_from', 'x_to')$$),
('AQ134', $$SELECT aq.create_queue('x_from'), aq.propagation_begin('11111111-1111-1111-1111-111111111111', 1, 5, 5, 'x_from')$$),
('AQ140', $$SELECT aq.trace_start(-1)$$),
('AQ141', $$SELECT aq.trace_start(), aq.trace_start()$$),
('AQ142', $$SELECT aq.trace_stop(-1)$$),
('AQ144', $$SELECT aq.trace_start(operations => '{lunch}')$$),
('AQ150', $$SELECT aq.register('', 'plsql://x.p', namespace => 'anonymous')$$),
('AQ151', $$SELECT aq.register('x_q', 'plsql://x.p', consumer => 'ann')$$),
('AQ152', $$SELECT aq.register('x_topic', 'plsql://x.p')$$),
('AQ153', $$SELECT aq.register('x_q', 'plsql://x.p', namespace => 'aq')$$),
('AQ155', $$SELECT aq.unregister(0)$$),
('AQ156', $$SELECT aq.register('x_q', 'x.p')$$),
('AQ160', $$SELECT * FROM aq.link_hello(1000, 1001)$$),
('AQ170', $$SELECT aq.unschedule('none')$$),
('AQ171', $$SELECT aq.schedule('x_s', 'x_q', '1', '@yearly') IS NULL, aq.schedule('x_s', 'x_q', '1', '@yearly')$$),
('AQ172', $$SELECT * FROM aq.schedule_times('* * * *')$$),
('AQ180', $$SELECT aq.remove_node('none')$$),
('AQ183', $$SELECT aq.reset_node()$$),
('AQ184', $$SELECT aq.reclaim_unit('x_q', 0)$$),
('AQ190', $$SELECT aq.purge_queue('x_np')$$),
('AQ191', $$SELECT * FROM aq.dequeue('x_np')$$),
('AQ192', $$CALL aq.wait('x_np', '0')$$),
('AQ194', $$SELECT aq.enqueue('x_np', '1', delay => '1 second')$$),
('AQ195', $$SELECT aq.enqueue('x_np', '1', deviation => 'top')$$),
('AQ196', $$SELECT aq.enqueue('x_np', 'a'::bytea)$$),
('AQ197', $$SELECT aq.subscribe('x_np', '-> x_q')$$),
('AQ200', $$SELECT sys._jms_whole(aq_jms.set_header(aq_jms.construct('bytes'), 'content_length', '5'))$$),
('AQ201', $$SELECT sys._jms_set_property(aq_jms.set_property(aq_jms.construct(), 'a', 1), 'a', 'int', '2')$$),
('AQ202', $$SELECT sys._jms_set_property(aq_jms.construct(), NULL, 'int', '2')$$),
('AQ203', $$SELECT sys._jms_number('byte', 128)$$),
('AQ204', $$SELECT sys._jms_convert('{"string": "a"}', 'int')$$),
('AQ205', $$SELECT sys._jms_next(sys._jms_begin(NULL, 'stream', NULL, NULL, NULL, true))$$),
('AQ206', $$SELECT sys._jms_kind(-1)$$),
('AQ207', $$SELECT sys._jms_begin(NULL, 'map', NULL, NULL, NULL, true) FROM generate_series(1, 21)$$);
INSERT INTO t.raises VALUES
('AQ023', NULL, 'PREPARE TRANSACTION ends the transaction: tests/cluster/test_prepare.py'),
('AQ024', NULL, 'needs a small shared memory: tests/cluster/test_scale.py'),
('AQ050', NULL, 'needs a small shared memory: tests/cluster/test_shares.py'),
('AQ051', NULL, 'needs a small shared memory: tests/cluster/test_scale.py'),
('AQ052', NULL, 'needs two sessions: tests/cluster/test_stop.py'),
('AQ025', NULL, 'needs a server without the library: tests/cluster/test_limits.py'),
('AQ026', NULL, 'needs a server without workers'),
('AQ154', NULL, 'needs as many registrations as a role can have: tests/sql/notification.sql'),
('AQ143', NULL, 'needs as many sessions as can be traced: tests/cluster/test_trace.py'),
('AQ173', NULL, 'is raised by the scheduler: tests/cluster/test_schedules.py'),
('AQ135', NULL, 'needs messages on their way: tests/sql/propagate_link.sql'),
('AQ136', NULL, 'needs messages that go round: propagate.sql'),
('AQ181', NULL, 'needs a node: tests/sql/nodes.sql'),
('AQ182', NULL, 'needs a copy of a node: tests/cluster/test_nodes.py'),
('AQ185', NULL, 'needs another node, as the next three: tests/cluster/test_distributed.py'),
('AQ186', NULL, 'comes late'),
('AQ187', NULL, 'is for links of other nodes'),
('AQ188', NULL, 'needs units');
-- every row of the list has a statement or a reason, and nothing else has
SELECT e.code, r.code FROM aq.errors e FULL JOIN t.raises r USING (code) WHERE e.code IS NULL OR r.code IS NULL;
-- each statement raises its error: those that do not
CREATE TABLE t.raised AS SELECT e.code, e.sqlstate, x.error FROM aq.errors e JOIN t.raises r USING (code), LATERAL (SELECT t.error(r.statement) AS error OFFSET 0) x
WHERE r.statement IS NOT NULL;
SELECT aq.trace_stop();
SELECT * FROM t.raised WHERE split_part(error, ' | ', 1) <> sqlstate ORDER BY code, error;
-- what names Oracle, or what only pgaq_oracle has
SELECT * FROM t.raised WHERE error ~* 'ora-|oracle|dbms_|sys\.' ORDER BY code, error;
SELECT * FROM aq.errors WHERE meaning ~* 'ora-|oracle|dbms_|sys\.';
-- the SQLSTATEs that are not standard ones are those of errors that a program must tell apart
SELECT string_agg(code, ' ' ORDER BY code) FROM aq.errors WHERE sqlstate = code;
SELECT * FROM aq.errors WHERE sqlstate LIKE 'AQ%' AND sqlstate <> code;
-- a role with another privilege on the queue
SELECT aq.grant_queue('x_q', 'regress_aq_errors', 'enqueue');
SET ROLE regress_aq_errors;
SELECT t.error($$SELECT * FROM aq.dequeue('x_q')$$);
RESET ROLE;
-- the same with Oracle's numbers, for a session that has asked for them; an error of other roles' code has none
SET pgaq.oracle_errors = on;
SELECT t.error($$SELECT * FROM aq.dequeue('no such')$$);
SELECT t.error($$SELECT * FROM aq.dequeue('x_topic')$$);
SET ROLE regress_aq_errors;
SELECT t.error($$SELECT * FROM aq.dequeue('x_q')$$);
RESET ROLE;
CREATE FUNCTION t.calls(jsonb) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RETURN aq.enqueue('no such', $1) IS NULL; END $$;
SELECT aq.subscribe('x_topic', 'calls', 't.calls(payload)');
SELECT aq.enqueue('x_topic', '1') IS NOT NULL;
SELECT t.rule_errors('x_topic');
RESET pgaq.oracle_errors;
-- the form is that of the outermost call: it ends with the package's function, also by an error, and its transaction
SELECT t.error($$CALL dbms_aq.enqueue('no such', NULL, NULL, '1', NULL)$$), t.error($$SELECT aq.enqueue('no such', '1')$$);
SELECT t.error($$CALL dbms_aqadm.stop_queue('no_such')$$), t.error($$SELECT aq.stop_queue('no_such')$$);
SHOW pgaq.oracle_errors;
\o /dev/null
CALL dbms_aq.enqueue('x_q', NULL, NULL, '1', NULL);
CALL dbms_aq.dequeue('x_q', NULL, NULL, NULL::jsonb, NULL);
\o
SHOW pgaq.oracle_errors;
BEGIN;
CALL dbms_aq.dequeue('x_q', dbms_aq.dequeue_options_t(wait => 0), NULL, NULL::jsonb, NULL);
ROLLBACK;
SHOW pgaq.oracle_errors;
DO $$
DECLARE
	properties dbms_aq.message_properties_t;
	payload jsonb;
	id uuid;
BEGIN
	CALL dbms_aq.dequeue('x_q', dbms_aq.dequeue_options_t(wait => 0), properties, payload, id);
EXCEPTION WHEN SQLSTATE 'AQ063' THEN
	RAISE INFO '%, then %', sqlerrm, split_part(t.error($e$SELECT aq.start_queue('no such')$e$), ' | ', 2);
END $$;
-- of a long argument, the error has the beginning and the end, cut between characters
SELECT aq.grant_consumer('x_topic', 'ann', 'regress_aq_errors');
CREATE VIEW t.long_errors AS SELECT statement, length(message) AS characters, left(message, 30) AS beginning, right(message, 40) AS ending, octet_length(error) < 2000 AS short
FROM (VALUES
	($$SELECT aq.start_queue(repeat('ä', 1000000))$$),
	($$SELECT aq.start_queue('x' || repeat('ä', 1000000))$$),
	($$SELECT aq.create_queue(repeat('€', 1000000))$$),
	($$SELECT aq.enqueue(repeat('n', 1000000), '1')$$),
	($$SELECT aq.enqueue('x_topic', '1', recipients => ARRAY[repeat('n', 1000000)])$$),
	($$SELECT aq.enqueue('x_classic', '1', deviation => repeat('n', 1000000))$$),
	($$SELECT * FROM aq.dequeue('x_q', mode => repeat('n', 1000000))$$),
	($$SELECT * FROM aq.dequeue('x_q', condition => 'priority = ' || repeat('1', 1000000) || ' no_such')$$),
	($$SELECT aq.unsubscribe('x_topic', repeat('n', 1000000))$$),
	($$CALL dbms_aq.enqueue(repeat('n', 1000000), NULL, NULL, '1', NULL)$$),
	($$CALL dbms_aqadm.stop_queue(repeat('n', 1000000))$$),
	($$CALL dbms_aqadm.create_queue_table(repeat('n', 1000000) || '.x', 'jsonb')$$)) v (statement),
	LATERAL (SELECT t.error(statement) AS error OFFSET 0) e, LATERAL (SELECT split_part(error, ' | ', 2) AS message) m;
SELECT * FROM t.long_errors;
-- a notice, and what a role without the privilege is told
SET client_min_messages = notice;
SELECT count(*) FROM aq.dequeue('x_topic', repeat('ä', 1000000));
SET client_min_messages = warning;
SET ROLE regress_aq_errors;
SELECT length(error), left(error, 60), right(error, 40) FROM t.error($$SELECT * FROM aq.dequeue('x_topic', repeat('ä', 1000000))$$) error;
RESET ROLE;
DROP VIEW t.long_errors;
-- every function and procedure of the packages asks for it, but constants, constructors and those in C, which do it by themselves
SELECT p.oid::regprocedure FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
	JOIN pg_extension e ON e.oid = d.refobjid
WHERE e.extname = 'pgaq_oracle' AND p.proname NOT LIKE '\_%' AND l.lanname <> 'c' AND NOT (p.prosqlbody IS NOT NULL AND p.provolatile = 'i') AND p.proname <> 'sqlcode'
	AND 'pgaq.oracle_errors=on' <> ALL (coalesce(p.proconfig, '{}'))
ORDER BY 1;

SELECT aq.drop_queue(q, force => true) FROM unnest(ARRAY['x_q', 'x_topic', 'x_stopped', 'x_failed', 'x_np']) q;
SELECT aq.drop_queue_table(q, force => true) FROM unnest(ARRAY['t.x_tab', 't.x_groups_tab']) q;
DROP FUNCTION t.calls;
DROP ROLE regress_aq_errors;
DROP TABLE t.raises, t.raised;
RESET client_min_messages;
