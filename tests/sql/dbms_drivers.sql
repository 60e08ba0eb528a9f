-- What Oracle's own drivers assert of AQ in their tests, on queue tables and on sharded queues.
\pset format unaligned
\pset tuples_only on
SET search_path = ora, public;
CALL dbms_aqadm.create_queue_table('d_tab', 'JSON');
CALL dbms_aqadm.create_queue('d_classic', 'd_tab');
CALL dbms_aqadm.create_sharded_queue('d_sharded', queue_payload_type => 'JSON');
CALL dbms_aqadm.create_queue_table('d_topic_tab', 'ORDER_T', multiple_consumers => true);
CALL dbms_aqadm.create_queue('d_topic', 'd_topic_tab');
SELECT format('CALL dbms_aqadm.start_queue(%L)', q) FROM unnest(ARRAY['d_classic', 'd_sharded', 'd_topic']) q \gexec
CREATE TABLE t.both (queue text);
INSERT INTO t.both VALUES ('d_classic'), ('d_sharded');

-- without a sort list priorities are ignored in a queue table; in a sharded queue they count
SELECT count(aq.enqueue('ora.' || queue, to_jsonb(p), priority => p)) FROM t.both, unnest(ARRAY[5, 3, 1]) p;
SELECT queue, t.step(queue, 1, 3), t.step(queue, 1, 3), t.step(queue, 1, 3) FROM t.both;
-- a session dequeues what it has enqueued and not committed
BEGIN;
SELECT count(aq.enqueue('ora.' || queue, '"own"')) FROM t.both;
SELECT queue, t.step(queue, 1, 3) FROM t.both;
COMMIT;
-- the position outlives COMMIT: another correlation raises ORA-25241 in the next transaction, too
SELECT count(aq.enqueue('ora.' || queue, to_jsonb(n), correlation => 'c' || n)) FROM t.both, generate_series(1, 3) n;
SELECT queue, t.step(queue, 1, 3, correlation => 'c1') FROM t.both;
SELECT queue, t.step(queue, 3, 3, correlation => 'c2') FROM t.both;
SELECT queue, t.step(queue, 1, 3, correlation => 'c2') FROM t.both;
-- the end of the messages clears it; an array that merely comes back shorter than asked for does not
SELECT queue, t.step(queue, 3, 3, correlation => 'c2'), t.step(queue, 3, 3, correlation => 'c3') FROM t.both;
SELECT count(aq.enqueue('ora.' || queue, to_jsonb(n), correlation => 'c' || n)) FROM t.both, generate_series(1, 3) n;
DO $$
DECLARE
	q text;
	mp dbms_aq.message_properties_array_t;
	p jsonb[];
	ids dbms_aq.msgid_array_t;
	e dbms_aq.error_array_t;
	n integer;
BEGIN
	FOR q IN SELECT queue FROM t.both LOOP
		CALL dbms_aq.dequeue_array(q, dbms_aq.dequeue_options_t(wait => 0, navigation => 1, correlation => 'c1'), 5, mp, p, ids, e, n);
		RAISE NOTICE '% % then %', q, n, t.step(q, 3, 3, correlation => 'c2');
	END LOOP;
END $$;
SELECT count(aq.purge_queue('ora.' || queue)) FROM t.both;
-- a condition may change, with and without tab.; a name that does not exist is an error of the dequeue
SELECT count(aq.enqueue('ora.' || queue, to_jsonb(n), priority => n)) FROM t.both, generate_series(4, 6) n;
SELECT queue, t.step(queue, 1, 3, condition => 'priority = 5'), t.step(queue, 3, 3, condition => 'tab.priority = 6') FROM t.both;
SELECT t.error($$CALL dbms_aq.dequeue('d_classic', dbms_aq.dequeue_options_t(wait => 0, navigation => 1, deq_condition => 'no_such_column = 1'), NULL, NULL::jsonb, NULL)$$);
SELECT count(aq.purge_queue('ora.' || queue)) FROM t.both;
-- a wait of its own time, a message id that is not there, options that do not exist
SELECT t.error($$CALL dbms_aq.dequeue('d_sharded', dbms_aq.dequeue_options_t(msgid => '00000000-0000-0000-0000-000000000000'), NULL, NULL::jsonb, NULL)$$);
SELECT t.error($$CALL dbms_aq.enqueue('d_classic', NULL, dbms_aq.message_properties_t(expiration => -2), '1', NULL)$$);
-- a queue is dropped by the name that it was made by, whatever its store
CALL dbms_aqadm.stop_queue('d_sharded');
CALL dbms_aqadm.drop_queue('d_sharded');
-- stopped for dequeue: ORA-25226
CALL dbms_aqadm.stop_queue('d_classic', enqueue => false);
SELECT t.step('d_classic', 1);
CALL dbms_aqadm.start_queue('d_classic');
-- recipients need not be subscribers; twice the same is refused; an unknown consumer finds nothing
SELECT t.error($$CALL dbms_aq.enqueue('d_topic', NULL, NULL, '(1,x)', NULL)$$);
CALL dbms_aq.enqueue('d_topic', NULL, dbms_aq.message_properties_t(recipient_list => ARRAY[sys.aq$_agent('sub1', NULL, NULL), sys.aq$_agent('sub3', NULL, NULL)]), '(1,x)', NULL) \g /dev/null
SELECT t.error($$CALL dbms_aq.enqueue('d_topic', NULL, dbms_aq.message_properties_t(recipient_list => ARRAY[sys.aq$_agent('sub1', NULL, NULL), sys.aq$_agent('SUB1', NULL, NULL)]), '(1,x)', NULL)$$);
SELECT t.error($$CALL dbms_aq.dequeue('d_topic', dbms_aq.dequeue_options_t(wait => 0, consumer_name => 'sub2'), NULL, NULL::ora.order_t, NULL)$$);
-- remove_nodata: an object with all attributes null
CALL dbms_aq.dequeue('d_topic', dbms_aq.dequeue_options_t(wait => 0, consumer_name => 'sub1', navigation => 1, dequeue_mode => dbms_aq.remove_nodata()), NULL, NULL::text, NULL) \gset
SELECT :{?payload};
CALL dbms_aq.dequeue('d_topic', dbms_aq.dequeue_options_t(wait => 0, consumer_name => 'sub3', navigation => 1), NULL, NULL::order_t, NULL) \gset
SELECT :'payload';
-- persistent_or_buffered is accepted at enqueue
CALL dbms_aq.enqueue('d_classic', dbms_aq.enqueue_options_t(delivery_mode => dbms_aq.persistent_or_buffered()), NULL, '7', NULL) \g /dev/null
SELECT t.step('d_classic', 1, 3);
CALL dbms_aqadm.drop_queue_table('d_tab', force => true);
CALL dbms_aqadm.drop_queue_table('d_topic_tab', force => true);
