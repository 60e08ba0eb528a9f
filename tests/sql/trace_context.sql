-- The trace context of messages: pgaq.traceparent, pgaq.tracestate.
\pset format unaligned
\pset tuples_only on
\set VERBOSITY terse
\set parent '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
\set other '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00'
-- the format
SELECT left(t.error(format('SET pgaq.traceparent = %L', v)), 150) FROM unnest(ARRAY['x', '00', '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7',
	'00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01', '00-00000000000000000000000000000000-00f067aa0ba902b7-01',
	'00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01', 'ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
	'00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more', '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0g', '00-4bf92f3577b34da6a3ce929d0e0e4736 00f067aa0ba902b7-01',
	'cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01.more', 'cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-mo re', 'cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-' || repeat('x', 300)]) v;
SELECT left(t.error(format('SET pgaq.tracestate = %L', v)), 100) FROM unnest(ARRAY['x', '=x', 'x=', 'X=1', '_x=1', 'a=b=c', 'a=1,b', 'a=' || repeat('x', 257), repeat('k', 257) || '=1', 'a=ä', E'a=\x01',
	array_to_string(ARRAY(SELECT format('k%s=1', i) FROM generate_series(1, 33) i), ',')]) v;
\set VERBOSITY default
SET pgaq.traceparent = 'x';
SET pgaq.tracestate = 'x';
\set VERBOSITY terse
SELECT v FROM unnest(ARRAY['', :'parent', 'cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01', 'cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more']) v WHERE set_config('pgaq.traceparent', v, false) = v;
SELECT left(v, 60) FROM unnest(ARRAY['', 'a=1', 'congo=t61rcWkgMzE,rojo=00f067aa0ba902b7', E' a=1\t,, 0tenant@system=x y , a/b*c-d_e=~,', 'a=' || repeat('x', 256),
	array_to_string(ARRAY(SELECT format('k%s=1', i) FROM generate_series(1, 32) i), ',')]) v WHERE set_config('pgaq.tracestate', v, false) = v;
RESET pgaq.traceparent;
RESET pgaq.tracestate;

SELECT aq.create_queue('tc', 'text', max_retries => 3), aq.create_queue('tc_copy', 'text'), aq.create_queue('tc_topic', 'text', multiple_consumers => true),
	aq.create_queue('tc_java', 'aq.jms_message');
CREATE FUNCTION t.traced(queue text) RETURNS SETOF text BEGIN ATOMIC
	SELECT concat_ws(' ', payload, state, properties) FROM aq.messages WHERE queue_name = queue AND state <> 'PROCESSED' ORDER BY payload;
END;
-- of a transaction; the message's own, and properties that are no object, are left alone
BEGIN;
SET LOCAL pgaq.traceparent = :'parent';
SELECT aq.enqueue('tc', 'a') IS NOT NULL, aq.enqueue('tc', 'b', properties => '{"k": 1}') IS NOT NULL;
SET LOCAL pgaq.tracestate = 'a=1,b="2"';
SELECT aq.enqueue('tc', 'c') IS NOT NULL, aq.enqueue('tc', 'd', properties => jsonb_build_object('traceparent', :'other')) IS NOT NULL,
	aq.enqueue('tc', 'e', properties => '[1]') IS NOT NULL, aq.enqueue('tc', 'f', properties => '"x"') IS NOT NULL, aq.enqueue('tc', 'g', properties => '{"tracestate": "z=1"}') IS NOT NULL;
SELECT cardinality(aq.enqueue_array('tc', ARRAY['h', 'i', NULL], properties => '{"k": 2}')),
	cardinality(aq.enqueue_array('tc', ARRAY['j', 'k', 'l'], options => jsonb_build_array(jsonb_build_object('properties', jsonb_build_object('traceparent', :'other')), '{"properties": {"k": 3}}'::jsonb, NULL)));
COMMIT;
SELECT aq.enqueue('tc', 'none') IS NOT NULL;
SELECT * FROM t.traced('tc');
SELECT count(*) FROM aq.dequeue('tc', as_type => NULL::text, max_messages => 100) WHERE properties ? 'traceparent';
-- of a session; a state without a parent is nothing
SET pgaq.tracestate = 'a=1';
SELECT aq.enqueue('tc', 'no parent') IS NOT NULL;
SET pgaq.traceparent = :'parent';
-- in a transaction of its own, which another process executes
BEGIN;
SELECT aq.enqueue('tc', 'immediate', visibility => 'immediate') IS NOT NULL, cardinality(aq.enqueue_array('tc', ARRAY['immediate array'], visibility => 'immediate'));
ROLLBACK;
SELECT aq.enqueue('tc', 'immediate, alone', visibility => 'immediate') IS NOT NULL, aq.enqueue('tc', 'buffered', delivery_mode => 'buffered') IS NOT NULL;
SELECT aq.subscribe('tc_topic', 'x', rule => $$properties ->> 'traceparent' LIKE '00-%'$$);
SELECT aq.enqueue('tc_topic', 'by rule') IS NOT NULL;
SELECT t.traced(queue) FROM unnest(ARRAY['tc', 'tc_topic']) queue;
SELECT count(*) FROM aq.dequeue('tc', as_type => NULL::text, max_messages => 100, delivery_mode => 'persistent_or_buffered');
-- in messages of Jakarta Messaging it is one of their properties, so that clients see it
SELECT aq.enqueue('tc_java', payload => aq_jms.text('a')) IS NOT NULL, aq.enqueue('tc_java', payload => NULL::aq.jms_message) IS NOT NULL,
	cardinality(aq_jms.enqueue('tc_java', ARRAY[aq_jms.text('b'), NULL])), cardinality(aq.enqueue_array('tc_java', ARRAY[ROW('text', NULL, '{"n": 1}', NULL, 'c', NULL)::aq.jms_message,
	ROW('text', NULL, jsonb_build_object('traceparent', :'other'), '{"x": "short"}', 'd', NULL)::aq.jms_message, ROW('bytes', NULL, NULL, NULL, NULL, repeat('x', 100000)::bytea)::aq.jms_message]));

SELECT (payload).type, (payload).properties, (payload).property_types, (payload).text, length((payload).bytes), properties FROM aq.dequeue('tc_java', NULL::aq.jms_message, max_messages => 100);
RESET pgaq.traceparent;
RESET pgaq.tracestate;

-- a message keeps it to the exception queue and back, whatever the session has that redrives it
BEGIN;
SET LOCAL pgaq.traceparent = :'parent';
SELECT aq.enqueue('tc', 'dies') IS NOT NULL;
COMMIT;
SELECT aq.enqueue('tc', 'dies without') IS NOT NULL;
DO $$
DECLARE
	ids uuid[];
	receipt bigint;
BEGIN
	SELECT array_agg(d.msgid), max(d.receipt) INTO ids, receipt FROM aq.dequeue('tc', as_type => NULL::text, max_messages => 2, lease => '1 hour') d;
	COMMIT;
	PERFORM aq.reject('tc', ids, receipt);
	COMMIT;
	FOR i IN 1..3000 LOOP
		EXIT WHEN (SELECT count(*) FROM aq.browse('tc_exceptions', as_type => NULL::text, max_messages => 10)) = 2;
		PERFORM pg_sleep(0.02);
		COMMIT;
	END LOOP;
END $$;
SELECT payload, properties FROM aq.dead_letters WHERE exception_queue = 'tc_exceptions' ORDER BY payload;
SET pgaq.traceparent = :'other';
SELECT aq.redrive('tc');
SELECT * FROM t.traced('tc');
-- propagation
SELECT aq.create_propagation('tc', 'tc_copy') > 0;
RESET pgaq.traceparent;
SELECT payload, properties FROM aq.dequeue('tc_copy', as_type => NULL::text, max_messages => 1, condition => $$payload = 'dies'$$, wait => '1 minute');
SELECT payload, properties FROM aq.dequeue('tc_copy', as_type => NULL::text, max_messages => 1, condition => $$payload = 'dies without'$$, wait => '1 minute');
-- queue tables, and their conversion
SELECT aq.create_queue_table('t.tc_table', 'text');
SELECT aq.create_queue('tc_old', queue_table => 't.tc_table');
BEGIN;
SET LOCAL pgaq.traceparent = :'parent';
SELECT aq.enqueue('tc_old', 'old') IS NOT NULL;
COMMIT;
SELECT aq.convert_queue('tc_old');
BEGIN;
SET LOCAL pgaq.traceparent = :'parent';
SELECT aq.enqueue('tc_old', 'new') IS NOT NULL;
COMMIT;
SELECT * FROM t.traced('tc_old');
SELECT payload, properties FROM aq.dequeue('tc_old', as_type => NULL::text, max_messages => 10);
SELECT aq.drop_propagation('tc', 'tc_copy');
DROP FUNCTION t.traced;
SELECT aq.drop_queue(q, force => true) FROM unnest(ARRAY['tc', 'tc_copy', 'tc_topic', 'tc_java', 'tc_old']) q;
SELECT aq.drop_queue_table('t.tc_table', force => true);
