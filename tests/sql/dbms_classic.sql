-- dbms_aqadm and dbms_aq over queue tables, and the views on them.
\pset format unaligned
\pset tuples_only on
SET search_path = ora, public;
SET timezone = 'UTC';

CALL dbms_aqadm.create_queue_table(queue_table => 'Orders_Tab', queue_payload_type => 'ORDER_T', sort_list => 'PRIORITY,ENQ_TIME',
	comment => 'first', compatible => '10.0');
CALL dbms_aqadm.create_queue(queue_name => 'classic', queue_table => 'ora.orders_tab', max_retries => 1, retry_delay => 0, retention_time => 3600);
CALL dbms_aqadm.create_queue_table('events_tab', 'RAW', multiple_consumers => true);
CALL dbms_aqadm.create_queue('events', 'events_tab');
SELECT queue_table, payload_type, sort_list, multiple_consumers, message_grouping, comment FROM aq.queue_tables ORDER BY queue_table COLLATE "C";
SELECT queue_name, queue_table, queue_type, multiple_consumers, max_retries, exception_queue, enqueue_enabled, dequeue_enabled
	FROM aq.queues WHERE queue_table IS NOT NULL ORDER BY queue_name COLLATE "C";
CALL dbms_aqadm.alter_queue_table('orders_tab', comment => 'second');
SELECT comment FROM aq.queue_tables WHERE queue_table = 'ora.orders_tab';
CALL dbms_aqadm.migrate_queue_table('orders_tab', '10.0');
SELECT t.error($$CALL dbms_aqadm.set_queue_parameter('classic', 'SHARD_NUM', 2)$$);
CALL dbms_aqadm.start_queue('classic');
CALL dbms_aqadm.start_queue('events');
CALL dbms_aqadm.add_subscriber('events', sys.aq$_agent('ANN', NULL, NULL));
CALL dbms_aqadm.add_subscriber('events', sys.aq$_agent('BOB', NULL, NULL), rule => 'tab.priority < 0');

-- any integer is a priority; the table is read as in Oracle
DO $$
DECLARE
	mp dbms_aq.message_properties_t;
	o dbms_aq.dequeue_options_t := dbms_aq.dequeue_options_t(wait => 0);
	m order_t;
	id uuid;
BEGIN
	mp.priority := 100;
	mp.correlation := 'late';
	mp.sender_id := sys.aq$_agent('me', NULL, NULL);
	CALL dbms_aq.enqueue('classic', NULL, mp, ROW(1, 'hundred')::order_t, id);
	mp.priority := -100;
	mp.correlation := 'soon';
	CALL dbms_aq.enqueue('classic', NULL, mp, ROW(2, 'minus hundred')::order_t, id);
	mp.delay := 1000;
	mp.expiration := 60;
	CALL dbms_aq.enqueue('classic', NULL, mp, ROW(3, 'waiting')::order_t, id);
	CALL dbms_aq.dequeue('classic', o, mp, m, id);
	RAISE NOTICE '% priority % sender %', m, mp.priority, mp.sender_id;
END $$;
SELECT q_name, corrid, priority, state, expiration, delay > enq_time, enq_uid = upper(current_user), retry_count, sender_name, (user_data).note
	FROM orders_tab ORDER BY (user_data).id;
SELECT queue, corr_id, msg_priority, msg_state, expiration, deq_time IS NOT NULL, deq_user_id = upper(current_user), user_data FROM aq$orders_tab ORDER BY (user_data).id;
CALL dbms_aq.enqueue('events', NULL, dbms_aq.message_properties_t(priority => -1), '\x01', NULL) \g /dev/null
CALL dbms_aq.enqueue('events', NULL, NULL, '\x02', NULL) \g /dev/null
CALL dbms_aq.dequeue('events', dbms_aq.dequeue_options_t(consumer_name => 'ann', wait => 0), NULL, NULL::bytea, NULL) \gset
SELECT :'payload';
SELECT queue, msg_state, user_data, consumer_name FROM aq$events_tab ORDER BY user_data, consumer_name;
SELECT q_name, user_data FROM events_tab ORDER BY user_data;
SELECT queue, name FROM aq$events_tab_s ORDER BY name;
SELECT queue, name, rule FROM aq$events_tab_r;

-- retries, then the exception queue of the queue table
DO $$
BEGIN
	FOR i IN 1 .. 2 LOOP
		BEGIN
			DECLARE
				mp dbms_aq.message_properties_t;
				m order_t;
				id uuid;
			BEGIN
				CALL dbms_aq.dequeue('classic', dbms_aq.dequeue_options_t(wait => 30), mp, m, id);
				RAISE NOTICE '% attempts %', m, mp.attempts;
				RAISE division_by_zero;
			END;
		EXCEPTION WHEN division_by_zero THEN
			NULL;
		END;
		COMMIT;
	END LOOP;
END $$;
CALL dbms_aqadm.start_queue('aq$_orders_tab_e', enqueue => false);
CALL dbms_aq.dequeue('aq$_orders_tab_e', dbms_aq.dequeue_options_t(wait => 30), NULL, NULL::order_t, NULL) \gset failed_
SELECT :'failed_payload', (:'failed_message_properties'::dbms_aq.message_properties_t).state;

-- what exception queues refuse
SELECT t.error($$CALL dbms_aq.enqueue('aq$_orders_tab_e', NULL, NULL, '(1,x)', NULL)$$);
SELECT t.error($$CALL dbms_aqadm.start_queue('aq$_orders_tab_e')$$);
SELECT t.error($$CALL dbms_aq.dequeue('aq$_orders_tab_e', dbms_aq.dequeue_options_t(consumer_name => 'x', wait => 0), NULL, NULL::ora.order_t, NULL)$$);
SELECT t.error($$CALL dbms_aqadm.add_subscriber('aq$_events_tab_e', sys.aq$_agent('x', NULL, NULL))$$);
SELECT t.error($$CALL dbms_aqadm.alter_queue('aq$_orders_tab_e', max_retries => 3)$$);
SELECT t.error($$CALL dbms_aqadm.alter_queue('aq$_orders_tab_e', retention_time => 3)$$);
SELECT t.error($$CALL dbms_aqadm.create_queue('x', 'orders_tab', queue_type => dbms_aqadm.exception_queue(), max_retries => 3)$$);
CALL dbms_aqadm.create_queue('own_errors', 'orders_tab', queue_type => dbms_aqadm.exception_queue());
SELECT queue_type FROM aq.queues WHERE queue_name = 'ora.own_errors';
SELECT t.error($$CALL dbms_aq.enqueue('failed', NULL, NULL, '(1,x)', NULL)$$);

-- what else is refused
SELECT t.error($$CALL dbms_aqadm.create_queue_table('orders_tab', 'raw')$$);
SELECT t.error($$CALL dbms_aqadm.create_queue_table('x', 'raw', sort_list => 'color')$$);
SELECT t.error($$CALL dbms_aqadm.create_queue_table('x', 'raw', secondary_instance => 2)$$);
SELECT t.error($$CALL dbms_aqadm.create_queue_table('x', 'raw', secure => true)$$);
SELECT t.error($$CALL dbms_aqadm.create_queue_table('x', 'raw', message_grouping => 9)$$);
SELECT t.error($$CALL dbms_aqadm.create_queue_table('aq$x', 'raw')$$);
SELECT t.error(format('CALL dbms_aqadm.create_queue_table(%L, %L)', repeat('x', 59), 'raw'));
SELECT t.error($$CALL dbms_aqadm.alter_queue_table('no_such', 'c')$$);
SELECT t.error($$CALL dbms_aqadm.alter_queue_table('orders_tab', primary_instance => 0, secondary_instance => 1)$$);
SELECT t.error($$CALL dbms_aqadm.create_queue('x', 'no_such')$$);
SELECT t.error($$CALL dbms_aqadm.create_queue('x', 'no good')$$);
SELECT t.error($$CALL dbms_aqadm.create_queue('public.x', 'orders_tab')$$);
SELECT t.error($$CALL dbms_aqadm.create_queue('x', 'orders_tab', queue_type => dbms_aqadm.non_persistent_queue())$$);
SELECT t.error($$CALL dbms_aqadm.create_queue('x', 'orders_tab', max_retries => -1)$$);
SELECT t.error($$CALL dbms_aqadm.create_queue('x', 'orders_tab', retry_delay => -1)$$);
SELECT t.error($$CALL dbms_aqadm.create_queue('x', 'orders_tab', retention_time => -2)$$);
SELECT t.error($$CALL dbms_aqadm.create_eq_exception_queue('classic')$$);
SELECT t.error($$CALL dbms_aqadm.drop_sharded_queue('classic', force => true)$$);
SELECT t.error($$CALL dbms_aqadm.drop_queue_table('orders_tab')$$);
SELECT t.error($$CALL dbms_aqadm.drop_queue('classic')$$);

-- purge: by the view's columns, or all
CALL dbms_aqadm.purge_queue_table('events_tab', 'qtview.queue = ''EVENTS'' AND qtview.consumer_name = ''BOB''', NULL);
SELECT msg_state, user_data, consumer_name FROM aq$events_tab ORDER BY user_data, consumer_name;
CALL dbms_aqadm.purge_queue_table('ora.events_tab', '', NULL);
SELECT count(*) FROM aq$events_tab;

-- the views belong to the creator, who may grant them
SET ROLE regress_ora_user;
SELECT t.error('SELECT * FROM ora.orders_tab');
RESET ROLE;
GRANT SELECT ON orders_tab, aq$orders_tab TO regress_ora_user;
SET ROLE regress_ora_user;
SELECT count(*) > 0, count(q_name) FROM ora.orders_tab;
SELECT count(*) FROM aq.queue_tables;
RESET ROLE;

-- dropped with their views
CALL dbms_aqadm.stop_queue('events');
CALL dbms_aqadm.drop_queue('events');
CALL dbms_aqadm.drop_queue_table('events_tab');
CALL dbms_aqadm.drop_queue_table('orders_tab', force => true);
SELECT relname FROM pg_class WHERE relnamespace = 'ora'::regnamespace AND relkind = 'v' AND relname ~ 'tab' ORDER BY 1;
