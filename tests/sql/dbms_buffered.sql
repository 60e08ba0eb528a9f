-- Buffered messages by dbms_aq and dbms_aqadm: immediate visibility, delivery modes, views.
\pset format unaligned
\pset tuples_only on
SET search_path = ora, sys, public;
CALL dbms_aqadm.create_queue_table('b_tab', 'ORDER_T', sort_list => 'priority,enq_time');
CALL dbms_aqadm.create_queue('b_classic', 'b_tab', retention_time => dbms_aqadm.infinite());
CALL dbms_aqadm.create_sharded_queue('b_sharded', queue_payload_type => 'JSON');
CALL dbms_aqadm.create_queue_table('b_topic_tab', 'JSON', multiple_consumers => true);
CALL dbms_aqadm.create_queue('b_topic', 'b_topic_tab');
SELECT format('CALL dbms_aqadm.start_queue(%L)', q) FROM unnest(ARRAY['b_classic', 'b_sharded', 'b_topic']) q \gexec
\set put 'dbms_aq.enqueue_options_t(visibility => dbms_aq.immediate(), delivery_mode => dbms_aq.buffered())'
\set take 'dbms_aq.dequeue_options_t(visibility => dbms_aq.immediate(), delivery_mode => dbms_aq.buffered(), navigation => 1, wait => 0)'
\set either 'dbms_aq.dequeue_options_t(visibility => dbms_aq.immediate(), delivery_mode => dbms_aq.persistent_or_buffered(), navigation => 1, wait => 0)'

-- a transaction of its own: it stays when the caller rolls back
BEGIN;
CALL dbms_aq.enqueue('b_classic', :put, dbms_aq.message_properties_t(priority => 7, correlation => 'c'), '(1,buffered)', NULL) \gset
CALL dbms_aq.enqueue('b_classic', NULL, NULL, '(2,persistent)', NULL) \g /dev/null
ROLLBACK;
SELECT queue, msg_state, msg_priority, corr_id, user_data, msg_id = :'msgid' FROM aq$b_tab;
-- [buffered] invisible to who asks for persistent ones
SELECT t.error($$CALL dbms_aq.dequeue('b_classic', dbms_aq.dequeue_options_t(wait => 0), NULL, NULL::order_t, NULL)$$);
BEGIN;
CALL dbms_aq.dequeue('b_classic', :take, NULL, NULL::order_t, NULL) \gset
ROLLBACK;
SELECT :'payload', (:'message_properties'::dbms_aq.message_properties_t).delivery_mode, (:'message_properties'::dbms_aq.message_properties_t).priority;
-- retention is for persistent ones
SELECT count(*) FROM aq$b_tab;
-- only immediate visibility
SELECT t.error($$CALL dbms_aq.enqueue('b_classic', dbms_aq.enqueue_options_t(delivery_mode => dbms_aq.buffered()), NULL, '(1,a)', NULL)$$);
SELECT t.error($$CALL dbms_aq.enqueue('b_classic', dbms_aq.enqueue_options_t(visibility => dbms_aq.on_commit(), delivery_mode => dbms_aq.buffered()), NULL, '(1,a)', NULL)$$);
SELECT t.error($$CALL dbms_aq.dequeue('b_classic', dbms_aq.dequeue_options_t(delivery_mode => dbms_aq.buffered(), wait => 0), NULL, NULL::order_t, NULL)$$);
SELECT t.error($$CALL dbms_aq.dequeue('b_classic', dbms_aq.dequeue_options_t(delivery_mode => dbms_aq.persistent_or_buffered(), wait => 0), NULL, NULL::order_t, NULL)$$);
SELECT t.error($$CALL dbms_aq.dequeue('b_classic', dbms_aq.dequeue_options_t(delivery_mode => 4, wait => 0), NULL, NULL::order_t, NULL)$$);
-- but a browse takes nothing
CALL dbms_aq.enqueue('b_classic', :put, NULL, '(3,browsed)', NULL) \g /dev/null
CALL dbms_aq.dequeue('b_classic', dbms_aq.dequeue_options_t(delivery_mode => dbms_aq.buffered(), dequeue_mode => dbms_aq.browse(), navigation => 1, wait => 0), NULL, NULL::order_t, NULL) \gset
SELECT :'payload';
-- both kinds
CALL dbms_aq.enqueue('b_classic', NULL, NULL, '(4,persistent)', NULL) \g /dev/null
CREATE TABLE b_got (payload text, delivery_mode integer);
CALL dbms_aq.dequeue('b_classic', :either, NULL, NULL::text, NULL) \gset
INSERT INTO b_got VALUES (:'payload', (:'message_properties'::dbms_aq.message_properties_t).delivery_mode);
CALL dbms_aq.dequeue('b_classic', :either, NULL, NULL::text, NULL) \gset
INSERT INTO b_got VALUES (:'payload', (:'message_properties'::dbms_aq.message_properties_t).delivery_mode);
SELECT * FROM b_got ORDER BY 1;
DROP TABLE b_got;
-- persistent_or_buffered at enqueue means persistent
CALL dbms_aq.enqueue('b_sharded', dbms_aq.enqueue_options_t(visibility => 1, delivery_mode => dbms_aq.persistent_or_buffered()), NULL, '{"n": 0}', NULL) \g /dev/null
SELECT msg_state FROM aq$b_sharded;
CALL dbms_aq.dequeue('b_sharded', dbms_aq.dequeue_options_t(wait => 0), NULL, NULL::jsonb, NULL) \g /dev/null
SELECT t.error($$CALL dbms_aq.enqueue('b_sharded', dbms_aq.enqueue_options_t(visibility => 1, delivery_mode => 2), dbms_aq.message_properties_t(priority => 10), '1', NULL)$$);
-- arrays, also larger than Oracle's 1; a transformation
DO $$
DECLARE
	mp dbms_aq.message_properties_array_t := array_fill(NULL::dbms_aq.message_properties_t, ARRAY[3]);
	p jsonb[] := ARRAY['1', '2', '3']::jsonb[];
	ids dbms_aq.msgid_array_t;
	e dbms_aq.error_array_t;
	n integer;
BEGIN
	CALL dbms_aq.enqueue_array('b_sharded', dbms_aq.enqueue_options_t(visibility => 1, delivery_mode => 2), 3, mp, p, ids, e, n);
	RAISE NOTICE '% enqueued', n;
	p := NULL;
	CALL dbms_aq.dequeue_array('b_sharded', dbms_aq.dequeue_options_t(visibility => 1, delivery_mode => 2, wait => 0), 10, mp, p, ids, e, n);
	RAISE NOTICE '% dequeued: %, mode %', n, p, mp[3].delivery_mode;
END $$;
CALL dbms_transform.create_transformation('ora', 'b_double', NULL, 'JSON', NULL, 'JSON', 'to_jsonb((source.user_data #>> ''{}'')::int * 2)');
CALL dbms_aq.enqueue('b_sharded', dbms_aq.enqueue_options_t(visibility => 1, delivery_mode => 2, transformation => 'b_double'), NULL, '21'::jsonb, NULL) \g /dev/null
SELECT msg_state, user_data FROM aq$b_sharded;
CALL dbms_aq.dequeue('b_sharded', dbms_aq.dequeue_options_t(visibility => 1, delivery_mode => 2, transformation => 'b_double', wait => 5), NULL, NULL::jsonb, NULL) \gset
SELECT :'payload';

-- subscribers by delivery mode
CALL dbms_aqadm.add_subscriber('b_topic', sys.aq$_agent('P', NULL, NULL));
CALL dbms_aqadm.add_subscriber('b_topic', sys.aq$_agent('B', NULL, NULL), delivery_mode => dbms_aqadm.buffered());
CALL dbms_aqadm.add_subscriber('b_topic', sys.aq$_agent('E', NULL, NULL), rule => 'tab.priority = 1', delivery_mode => dbms_aqadm.persistent_or_buffered());
SELECT t.error($$CALL dbms_aqadm.add_subscriber('b_topic', sys.aq$_agent('X', NULL, NULL), delivery_mode => 0)$$);
SELECT consumer_name, delivery_mode FROM dba_queue_subscribers WHERE queue_name = 'B_TOPIC' ORDER BY 1;
SELECT name, delivery_mode FROM aq$b_topic_tab_s ORDER BY 1;
CALL dbms_aq.enqueue('b_topic', :put, NULL, '"b"', NULL) \g /dev/null
CALL dbms_aq.enqueue('b_topic', NULL, NULL, '"p"', NULL) \g /dev/null
CALL dbms_aq.enqueue('b_topic', :put, dbms_aq.message_properties_t(recipient_list => ARRAY[sys.aq$_agent('G', NULL, NULL)]::sys.aq$_agent[]), '"g"', NULL) \g /dev/null
SELECT consumer_name, msg_state, user_data FROM aq$b_topic_tab ORDER BY 1, 2;
SELECT t.error($$CALL dbms_aq.dequeue('b_topic', dbms_aq.dequeue_options_t(consumer_name => 'P', visibility => 1, delivery_mode => 2, wait => 0), NULL, NULL::jsonb, NULL)$$);
-- listen tells which kind it has found
CALL dbms_aq.listen(ARRAY[sys.aq$_agent('P', 'b_topic', NULL), sys.aq$_agent('E', 'b_topic', NULL)], 0, dbms_aq.buffered(), NULL, NULL);
CALL dbms_aq.listen(ARRAY[sys.aq$_agent('P', 'b_topic', NULL), sys.aq$_agent('B', 'b_topic', NULL)], 0, dbms_aq.persistent_or_buffered(), NULL, NULL);
CALL dbms_aq.listen(ARRAY[sys.aq$_agent('B', 'b_topic', NULL), sys.aq$_agent('P', 'b_topic', NULL)], 0, dbms_aq.persistent_or_buffered(), NULL, NULL);
SELECT t.error($$CALL dbms_aq.listen(ARRAY[sys.aq$_agent('P', 'b_topic', NULL)], 0, dbms_aq.buffered(), NULL, NULL)$$);
SELECT t.error($$CALL dbms_aq.listen(ARRAY[sys.aq$_agent('B', 'b_topic', NULL)], 0, NULL)$$);
SELECT t.error($$CALL dbms_aq.listen(ARRAY[sys.aq$_agent('B', 'b_topic', NULL)], 0, 0, NULL, NULL)$$);

-- counters
SELECT queue_schema, queue_name, startup_time IS NOT NULL, num_msgs, spill_msgs, cnum_msgs, expired_msgs, oldest_msgid IS NOT NULL,
	oldest_msg_enqtm IS NOT NULL, avg_msg_age >= 0, queue_size > 0 FROM v$buffered_queues WHERE queue_name LIKE 'B\_%' ORDER BY 2;
SELECT subscriber_name, subscriber_type, num_msgs, cnum_msgs, total_dequeued_msg FROM v$buffered_subscribers WHERE queue_name = 'B_TOPIC' ORDER BY 1;
CALL dbms_aq.dequeue('b_topic', dbms_aq.dequeue_options_t(consumer_name => 'B', visibility => 1, delivery_mode => 2, navigation => 1, wait => 0), NULL, NULL::jsonb, NULL) \gset
CALL dbms_aq.dequeue('b_topic', dbms_aq.dequeue_options_t(consumer_name => 'G', visibility => 1, delivery_mode => 2, navigation => 1, wait => 0), NULL, NULL::jsonb, NULL) \gset
SELECT subscriber_name, num_msgs, cnum_msgs, total_dequeued_msg FROM v$buffered_subscribers WHERE queue_name = 'B_TOPIC' ORDER BY 1;
SELECT num_msgs, cnum_msgs FROM v$buffered_queues WHERE queue_name = 'B_TOPIC';

SELECT subscriber_name, message_lag = num_msgs AS lag, startup_time > pg_postmaster_start_time() AND startup_time < now() AS started FROM v$buffered_subscribers WHERE queue_name = 'B_TOPIC' ORDER BY 1;
-- the time of buffered messages is theirs
CALL dbms_aqadm.create_sharded_queue('b_timed', queue_payload_type => 'JSON');
CALL dbms_aqadm.start_queue('b_timed');
SELECT cardinality(aq.enqueue_array('ora.b_timed', (SELECT array_agg(to_jsonb(n)) FROM generate_series(1, 100) n), delivery_mode => 'buffered'));
SELECT count(*) FROM aq.dequeue('ora.b_timed', max_messages => 100, delivery_mode => 'buffered');
SELECT s.enqueue_elapsed > 0 AS enqueue, s.dequeue_elapsed > 0 AS dequeue, b.elapsed_enqueue_time = s.enqueue_elapsed / 10000000 AS same, p.elapsed_enqueue_time, p.elapsed_dequeue_time
	FROM v$buffered_queues b JOIN v$persistent_queues p USING (queue_id), aq_internal.buffered_queue(queue_id) s WHERE b.queue_name = 'B_TIMED';
CALL dbms_aqadm.stop_queue('b_timed');
CALL dbms_aqadm.drop_queue('b_timed');

-- purge by delivery mode
CALL dbms_aq.enqueue('b_classic', :put, NULL, '(5,buffered)', NULL) \g /dev/null
CALL dbms_aq.enqueue('b_classic', :put, NULL, '(6,buffered)', NULL) \g /dev/null
CALL dbms_aq.enqueue('b_classic', NULL, NULL, '(7,persistent)', NULL) \g /dev/null
CALL dbms_aqadm.purge_queue_table('b_tab', 'qtview.msg_state <> ''PROCESSED'' AND (qtview.user_data).id = 5', ROW(false, dbms_aqadm.buffered())::dbms_aqadm.aq$_purge_options_t);
SELECT msg_state, user_data FROM aq$b_tab WHERE msg_state <> 'PROCESSED' ORDER BY 2;
CALL dbms_aqadm.purge_queue_table('b_tab', NULL, NULL);
SELECT msg_state, user_data FROM aq$b_tab WHERE msg_state <> 'PROCESSED' ORDER BY 2;
CALL dbms_aqadm.purge_queue_table('b_tab', NULL, ROW(false, dbms_aqadm.persistent_or_buffered())::dbms_aqadm.aq$_purge_options_t);
SELECT count(*) FROM aq$b_tab WHERE msg_state <> 'PROCESSED';

-- one position for each kind: the order of one does not move the other
CALL dbms_aq.enqueue('b_sharded', :put, NULL, '"b1"', NULL) \g /dev/null
CALL dbms_aq.enqueue('b_sharded', :put, NULL, '"b2"', NULL) \g /dev/null
CALL dbms_aq.enqueue('b_sharded', NULL, NULL, '"p1"', NULL) \g /dev/null
\set browse 'dbms_aq.dequeue_options_t(delivery_mode => 2, dequeue_mode => 1, wait => 0)'
CALL dbms_aq.dequeue('b_sharded', :browse, NULL, NULL::text, NULL) \gset
SELECT :'payload';
CALL dbms_aq.dequeue('b_sharded', dbms_aq.dequeue_options_t(dequeue_mode => 1, navigation => 1, wait => 0), NULL, NULL::text, NULL) \gset
SELECT :'payload';
CALL dbms_aq.dequeue('b_sharded', :browse, NULL, NULL::text, NULL) \gset
SELECT :'payload';

-- flow control: the transaction of its own has the session's limit and patience
SELECT aq.purge_queue(q, delivery_mode => 'buffered') FROM unnest(ARRAY['ora.b_classic', 'ora.b_sharded']) q;
SET pgaq.buffered_message_limit = 3;
SET pgaq.flow_control_timeout = 0;
\set sensor 'dbms_aq.message_properties_t(sender_id => sys.aq$_agent(''SENSOR'', NULL, NULL))'
CALL dbms_aq.enqueue('b_sharded', :put, :sensor, '1', NULL) \g /dev/null
CALL dbms_aq.enqueue('b_sharded', :put, :sensor, '2', NULL) \g /dev/null
CALL dbms_aq.enqueue('b_sharded', :put, :sensor, '3', NULL) \g /dev/null
CALL dbms_aq.enqueue('b_classic', :put, NULL, '(1,a)', NULL) \g /dev/null
CALL dbms_aq.enqueue('b_classic', :put, NULL, '(2,b)', NULL) \g /dev/null
CALL dbms_aq.enqueue('b_classic', :put, NULL, '(3,c)', NULL) \g /dev/null
SELECT t.error($$CALL dbms_aq.enqueue('b_classic', dbms_aq.enqueue_options_t(visibility => 1, delivery_mode => 2), NULL, '(4,d)', NULL)$$);
SELECT t.error($$CALL dbms_aq.enqueue('b_sharded', dbms_aq.enqueue_options_t(visibility => 1, delivery_mode => 2), NULL, '4', NULL)$$);
SELECT t.error($$CALL dbms_aq.enqueue_array('b_sharded', dbms_aq.enqueue_options_t(visibility => 1, delivery_mode => 2), 1, array_fill(NULL::dbms_aq.message_properties_t, ARRAY[1]), '{7}'::jsonb[], NULL, NULL, NULL)$$);
SELECT queue_name, sender_name, num_msgs, publisher_state FROM v$buffered_publishers WHERE queue_name ~ '^B_' ORDER BY 1;
SET pgaq.buffered_message_limit = 4;
CALL dbms_aq.enqueue('b_classic', :put, :sensor, '(4,e)', NULL) \g /dev/null
SELECT sender_name, num_msgs, publisher_state FROM v$buffered_publishers WHERE queue_name = 'B_CLASSIC' ORDER BY 1;
RESET pgaq.buffered_message_limit;
RESET pgaq.flow_control_timeout;
SELECT aq.purge_queue(q, delivery_mode => 'buffered') FROM unnest(ARRAY['ora.b_classic', 'ora.b_sharded']) q;

-- a converted queue keeps them
CALL dbms_aq.enqueue('b_classic', :put, NULL, '(8,buffered)', NULL) \g /dev/null
CALL dbms_aq.enqueue('b_classic', NULL, NULL, '(9,persistent)', NULL) \g /dev/null
SELECT aq.convert_queue('ora.b_classic');
CALL dbms_aq.enqueue('b_classic', :put, NULL, '(10,buffered)', NULL) \g /dev/null
SELECT string_agg(payload::text, ' ') FROM aq.dequeue('ora.b_classic', as_type => NULL::order_t, max_messages => 10, delivery_mode => 'buffered');
CALL dbms_aq.dequeue('b_classic', dbms_aq.dequeue_options_t(wait => 0, navigation => 1), NULL, NULL::text, NULL) \gset
SELECT :'payload';

SELECT format('CALL dbms_aqadm.stop_queue(%L)', q) FROM unnest(ARRAY['b_classic', 'b_sharded', 'b_topic']) q \gexec
CALL dbms_aqadm.drop_queue('b_sharded');
CALL dbms_aqadm.drop_queue('b_classic');
CALL dbms_aqadm.drop_queue_table('b_tab', force => true);
CALL dbms_aqadm.drop_queue_table('b_topic_tab', force => true);
CALL dbms_transform.drop_transformation('ora', 'b_double');
SELECT count(*) FROM v$buffered_queues WHERE queue_name LIKE 'B\_%';
