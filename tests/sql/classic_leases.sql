-- Leases of queues in queue tables: what sql/leases, which runs on both stores, does not show.
\pset format unaligned
\pset tuples_only on
CREATE FUNCTION t.lease(queue_name text, number integer, span interval DEFAULT '1 hour', consumer text DEFAULT NULL,
	OUT payloads text, OUT ids uuid[], OUT receipt bigint) LANGUAGE sql AS $$
	SELECT string_agg(payload #>> '{}', ' '), array_agg(msgid), max(receipt) FROM aq.dequeue($1, consumer => $4, max_messages => $2, lease => $3)
$$;
CREATE FUNCTION t.rows(queue_name text) RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(concat_ws(' ', payload, consumer, state, attempts), ', ' ORDER BY payload::integer, consumer) FROM aq.messages m WHERE m.queue_name = $1
$$;
SELECT aq.create_queue_table('t.cl', sort_list => 'priority, enq_time');
SELECT aq.create_queue('cl', queue_table => 't.cl', retry_delay => '0', exception_queue => 't.aq$_cl_e');
-- a transaction that dequeues beside a leased message, and acknowledges that: its rollback is an attempt of what it has dequeued
SELECT t.put('cl', 1, 3);
SELECT ids AS first, receipt AS first_receipt FROM t.lease('cl', 1) \gset
SELECT ids, receipt FROM t.lease('cl', 1) \gset
SELECT result FROM aq.release('cl', :'first', :first_receipt, count => false);
BEGIN;
SELECT t.drain('cl');
SELECT result FROM aq.acknowledge('cl', :'ids', :receipt);
ROLLBACK;
SELECT payload FROM aq.dequeue('cl', wait => '60 s');
SELECT t.rows('cl');
BEGIN; SELECT result FROM aq.release('cl', :'ids', :receipt); SELECT t.look('cl'), t.drain('cl'); ROLLBACK;
SELECT t.drain('cl'), t.rows('cl');
SELECT result FROM aq.acknowledge('cl', :'ids', :receipt);
-- leased messages that a dequeue has passed by, and remembers as a range, come back when they are given back
SELECT t.put('cl', 1, 80);
SELECT ids, receipt FROM t.lease('cl', 60) \gset
SELECT payload FROM aq.dequeue('cl');
SELECT payload FROM aq.dequeue('cl');
SELECT result FROM aq.release('cl', (:'ids'::uuid[])[30:30], :receipt);
SELECT payload FROM aq.dequeue('cl');
SELECT result FROM aq.release('cl', (:'ids'::uuid[])[31:31], :receipt, delay => '0.1 s');
SELECT t.drain('cl') ~ '^63 ';
SELECT payload FROM aq.dequeue('cl', wait => '60 s');
BEGIN; SELECT result FROM aq.release('cl', (:'ids'::uuid[])[32:32], :receipt); ROLLBACK;
SELECT t.look('cl') IS NULL;
BEGIN; SAVEPOINT a; SELECT payloads FROM t.lease('cl', 9); SELECT result FROM aq.acknowledge('cl', (:'ids'::uuid[])[33:33], :receipt); ROLLBACK TO a; COMMIT;
SELECT result, count(*) FROM aq.acknowledge('cl', :'ids', :receipt) GROUP BY 1 ORDER BY 1;
SELECT t.rows('cl') IS NULL;
SELECT * FROM aq.check();
-- the message moves within the queue table, and its old receipt is worth nothing there
SELECT aq.start_queue('t.aq$_cl_e', enqueue => false);
SELECT aq.enqueue('cl', '1', expiration => '0.5 s') IS NOT NULL;
SELECT ids, receipt FROM t.lease('cl', 1) \gset
SELECT result FROM aq.reject('cl', :'ids', :receipt, error => 'bad');
CALL aq.wait('t.aq$_cl_e', NULL, '60 s', NULL);
SELECT result FROM aq.acknowledge('t.aq$_cl_e', :'ids', :receipt);
SELECT payload, state, attempts, last_error FROM aq.messages WHERE queue_name = 't.aq$_cl_e';
-- in the exception queue it does not expire any more, when a lease or a delay ends
SELECT pg_sleep(0.5);
SELECT ids, receipt FROM t.lease('t.aq$_cl_e', 1) \gset
SELECT t.rows('t.aq$_cl_e');
SELECT result FROM aq.release('t.aq$_cl_e', :'ids', :receipt);
SELECT t.rows('t.aq$_cl_e');
SELECT ids, receipt FROM t.lease('t.aq$_cl_e', 1) \gset
SELECT result FROM aq.release('t.aq$_cl_e', :'ids', :receipt, delay => '0.1 s');
CALL aq.wait('t.aq$_cl_e', NULL, '60 s', NULL);
SELECT t.rows('t.aq$_cl_e');
SELECT ids, receipt FROM t.lease('t.aq$_cl_e', 1, '0.1 s') \gset
CALL aq.wait('t.aq$_cl_e', NULL, '60 s', NULL);
SELECT t.rows('t.aq$_cl_e');
SELECT payload FROM aq.dequeue('t.aq$_cl_e');
-- retention begins with the acknowledgement
SELECT aq.alter_queue('cl', retention => '1 hour');
SELECT t.put('cl', 1);
SELECT ids, receipt FROM t.lease('cl', 1) \gset
SELECT state, dequeue_time IS NULL FROM aq.messages WHERE queue_name = 'cl';
BEGIN; SELECT result FROM aq.acknowledge('cl', :'ids', :receipt); SELECT result FROM aq.acknowledge('cl', :'ids', :receipt); COMMIT;
SELECT state, dequeue_time > enqueue_time, leased_since, leased_by FROM aq.messages WHERE queue_name = 'cl';
SELECT result FROM aq.acknowledge('cl', :'ids', :receipt);
SELECT aq.drop_queue('cl', force => true);
SELECT aq.drop_queue_table('t.cl', force => true);
-- a topic: a message is gone when all consumers have finished it, and moves when the others have failed
SELECT aq.create_queue_table('t.clt', multiple_consumers => true);
SELECT aq.create_queue('clt', multiple_consumers => true, queue_table => 't.clt', exception_queue => 't.aq$_clt_e'), aq.subscribe('clt', 'a'), aq.subscribe('clt', 'b');
SELECT aq.start_queue('t.aq$_clt_e', enqueue => false);
SELECT t.put('clt', 1, 2);
SELECT ids, receipt FROM t.lease('clt', 2, consumer => 'a') \gset
SELECT ids AS others, receipt AS other_receipt FROM t.lease('clt', 2, consumer => 'b') \gset
SELECT t.rows('clt');
BEGIN; SELECT result FROM aq.acknowledge('clt', :'ids', :receipt, 'a'); SELECT result FROM aq.extend('clt', :'ids', :receipt, '2 hours', 'a'); COMMIT;
SELECT result FROM aq.acknowledge('clt', (:'others'::uuid[])[1:1], :other_receipt, 'b');
SELECT t.rows('clt');
SELECT result FROM aq.reject('clt', :'others', :other_receipt, 'b');
CALL aq.wait('t.aq$_clt_e', NULL, '60 s', NULL);
SELECT t.rows('clt') IS NULL, t.drain('t.aq$_clt_e');
SELECT aq.drop_queue('clt'), aq.drop_queue_table('t.clt', force => true);
-- Oracle's views show a leased message as ready
CALL dbms_aqadm.create_queue_table('clo_tab', 'jsonb');
CALL dbms_aqadm.create_queue('clo', 'clo_tab');
CALL dbms_aqadm.start_queue('clo');
SELECT t.put('public.clo', 1);
SELECT ids, receipt FROM t.lease('public.clo', 1) \gset
SELECT queue, msg_state, retry_count, deq_time FROM aq$clo_tab;
SELECT state FROM clo_tab;
SELECT result FROM aq.acknowledge('public.clo', :'ids', :receipt);
CALL dbms_aqadm.drop_queue_table('clo_tab', force => true);
SELECT * FROM aq.check();
DROP FUNCTION t.lease, t.rows;
