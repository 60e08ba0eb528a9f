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
SELECT t.error($$CALL dbms_aqadm.alter_queue_table('no_such_tab')$$);
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
CALL dbms_aq.dequeue('aq$_orders_tab_e', dbms_aq.dequeue_options_t(wait => 30, dequeue_mode => 1), NULL, NULL::order_t, NULL) \gset seen_
SELECT queue, msg_state, original_queue_name, expiration_reason FROM "aq$orders_tab" WHERE expiration_reason IS NOT NULL;
CALL dbms_aq.dequeue('aq$_orders_tab_e', dbms_aq.dequeue_options_t(wait => 30), NULL, NULL::order_t, NULL) \gset failed_
CALL dbms_aq.enqueue('classic', NULL, dbms_aq.message_properties_t(expiration => 0), '(2,late)', NULL) \gset late_
CALL dbms_aq.dequeue('aq$_orders_tab_e', dbms_aq.dequeue_options_t(wait => 30, dequeue_mode => 1, navigation => 1), NULL, NULL::order_t, NULL) \gset seen_
SELECT queue, msg_state, original_queue_name, expiration_reason FROM "aq$orders_tab" WHERE expiration_reason IS NOT NULL;
CALL dbms_aq.dequeue('aq$_orders_tab_e', dbms_aq.dequeue_options_t(wait => 30, navigation => 1), NULL, NULL::order_t, NULL) \gset moved_
-- it has kept its id
SELECT :'moved_msgid' = :'late_msgid', (:'moved_message_properties'::dbms_aq.message_properties_t).original_msgid IS NULL;
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
SELECT t.error($$CALL dbms_aq.enqueue('own_errors', NULL, NULL, '(1,x)', NULL)$$);

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
-- what was delivered and is retained goes by a condition only
CALL dbms_aqadm.create_queue_table('purge_tab', 'JSON', multiple_consumers => true);
CALL dbms_aqadm.create_queue('purged', 'purge_tab', retention_time => 3600);
CALL dbms_aqadm.start_queue('purged');
SELECT count(aq.enqueue('ora.purged', payload => to_jsonb(n), recipients => '{ann,bob}')) FROM generate_series(1, 3) n;
SELECT t.drain('ora.purged', 'ann'), (SELECT count(*) FROM aq.dequeue('ora.purged', 'bob'));
SELECT msg_state, user_data, consumer_name FROM aq$purge_tab ORDER BY user_data, consumer_name;
CALL dbms_aqadm.purge_queue_table('purge_tab', 'qtview.msg_state = ''PROCESSED'' AND (qtview.user_data)::int < 3', ROW(true, NULL)::dbms_aqadm.aq$_purge_options_t);
SELECT msg_state, user_data, consumer_name FROM aq$purge_tab ORDER BY user_data, consumer_name;
SELECT t.look('ora.purged', 'ann') IS NULL, t.look('ora.purged', 'bob');
CALL dbms_aqadm.purge_queue_table('purge_tab', NULL, NULL);
SELECT count(*) FROM aq$purge_tab;
CALL dbms_aqadm.purge_queue_table('purge_tab', 'true', dbms_aqadm.aq$_purge_options_t("block" => true));
SELECT count(*) FROM aq$purge_tab;
SELECT t.error($$CALL dbms_aqadm.purge_queue_table('ora.nothing', NULL, NULL)$$);
SELECT t.error($$CALL dbms_aqadm.purge_queue_table('ora.events_tab', 'nonsense =', NULL)$$);
CALL dbms_aqadm.drop_queue_table('purge_tab', force => true);
-- with the bodies of large messages
CALL dbms_aqadm.create_queue_table('bodies_tab', 'aq.jms_message');
CALL dbms_aqadm.create_queue('bodies', 'bodies_tab', retention_time => 3600);
CALL dbms_aqadm.start_queue('bodies');
BEGIN;
SELECT count(aq_jms.write_chunk('ora.bodies', id, 0, 'x')) FROM (SELECT aq.enqueue('ora.bodies', ROW('bytes', '{"content_length": 1}', NULL, NULL, NULL, NULL)::aq.jms_message) FROM generate_series(1, 2)) m(id);
COMMIT;
SELECT count(*) FROM aq.dequeue('ora.bodies', NULL::aq.jms_message);
CALL dbms_aqadm.purge_queue_table('bodies_tab', 'qtview.msg_state = ''PROCESSED''', NULL);
SELECT count(*), count(aq_jms.read_chunk('ora.bodies', NULL, msgid, 0)) FROM aq.messages WHERE queue_name = 'ora.bodies';
SELECT what FROM aq.check() WHERE what LIKE 'bodies%';
CALL dbms_aqadm.drop_queue_table('bodies_tab', force => true);

-- the views belong to the creator, who may grant them
SET ROLE regress_ora_user;
SELECT t.error('SELECT * FROM ora.orders_tab');
RESET ROLE;
GRANT SELECT ON orders_tab, aq$orders_tab TO regress_ora_user;
SET ROLE regress_ora_user;
SELECT count(*) > 0, count(q_name) FROM ora.orders_tab;
SELECT count(*) FROM aq.queue_tables;
RESET ROLE;

-- who may create queues makes and uses queue tables, without being a superuser
SET ROLE regress_ora_admin;
CALL dbms_aqadm.create_queue_table('own_tab', 'JSON', multiple_consumers => true, sort_list => 'PRIORITY');
CALL dbms_aqadm.create_queue('own', 'own_tab');
CALL dbms_aqadm.start_queue('own');
CALL dbms_aqadm.add_subscriber('own', sys.aq$_agent('ANN', NULL, NULL), rule => 'tab.priority < 3');
SELECT count(aq.enqueue('ora.own', to_jsonb(n), priority => 3 - n)) FROM generate_series(1, 3) n;
SELECT payload FROM aq.dequeue('ora.own', 'ann');
SELECT user_data, consumer_name FROM aq$own_tab ORDER BY 1;
SELECT name, rule FROM aq$own_tab_s JOIN aq$own_tab_r USING (name);
CALL dbms_aqadm.purge_queue_table('own_tab', 'qtview.user_data = ''2''', NULL);
SELECT user_data, consumer_name FROM aq$own_tab ORDER BY 1;
SELECT t.error($$CALL dbms_aqadm.purge_queue_table('own_tab', 'qtview.colour = 1', NULL)$$);
RESET ROLE;
SELECT relname, relowner::regrole FROM pg_class WHERE relnamespace = 'ora'::regnamespace AND relname ~ 'own_tab' ORDER BY relname COLLATE "C";
SET ROLE regress_ora_admin;
RESET ROLE;
-- who may administer all queues drops those of others with their views
CALL dbms_aqadm.create_queue_table('others_tab', 'JSON', multiple_consumers => true);
CALL dbms_aqadm.create_sharded_queue('others', queue_payload_type => 'JSON');
CALL dbms_aqadm.start_queue('others');
CALL dbms_aqadm.create_queue('others_too', 'others_tab');
CALL dbms_aqadm.start_queue('others_too');
SELECT count(aq.enqueue('ora.others', to_jsonb(n))), count(aq.enqueue('ora.others_too', to_jsonb(n), recipients => '{ann}')) FROM generate_series(1, 3) n;
CALL dbms_aqadm.grant_system_privilege('MANAGE_ANY', 'regress_ora_user');
SET ROLE regress_ora_user;
-- but he does not read their messages, so he does not purge by a condition, until he may dequeue
SELECT name FROM sys.all_dequeue_queues WHERE name ~ 'OTHERS' ORDER BY name COLLATE "C";
SELECT t.error(format('CALL dbms_aqadm.purge_queue_table(%L, %L, NULL)', q, 'qtview.msg_priority = 1')) FROM unnest(ARRAY['ora.others', 'ora.others_tab']) q;
RESET ROLE;
CALL dbms_aqadm.grant_queue_privilege('DEQUEUE', 'ora.others', 'regress_ora_user');
CALL dbms_aqadm.grant_system_privilege('DEQUEUE_ANY', 'regress_ora_user');
SET ROLE regress_ora_user;
SELECT name FROM sys.all_dequeue_queues WHERE name ~ 'OTHERS' ORDER BY name COLLATE "C";
CALL dbms_aqadm.purge_queue_table('ora.others', 'qtview.user_data = ''2''', NULL);
CALL dbms_aqadm.purge_queue_table('ora.others_tab', 'qtview.user_data = ''2'' AND qtview.consumer_name = ''ANN''', NULL);
RESET ROLE;
CALL dbms_aqadm.revoke_system_privilege('DEQUEUE_ANY', 'regress_ora_user');
SELECT queue, user_data FROM ora.aq$others_tab UNION ALL SELECT queue, user_data FROM ora.aq$others ORDER BY 1, 2;
CALL dbms_aqadm.stop_queue('others');
SET ROLE regress_ora_user;
CALL dbms_aqadm.drop_queue_table('ora.own_tab', force => true);
CALL dbms_aqadm.drop_queue_table('ora.others_tab', force => true);
CALL dbms_aqadm.drop_queue('ora.others');
RESET ROLE;
CALL dbms_aqadm.revoke_system_privilege('MANAGE_ANY', 'regress_ora_user');
SET ROLE regress_ora_user;
SELECT split_part(t.error($$CALL dbms_aqadm.drop_queue_table('ora.orders_tab')$$), ' | ', 2), split_part(t.error($$SELECT sys._drop_views('ora.orders_tab', true)$$), ' | ', 2);
RESET ROLE;
SELECT relname FROM pg_class WHERE relnamespace = 'ora'::regnamespace AND relname ~ 'own_tab|others' ORDER BY 1;
-- a queue table goes with its queues to whom REASSIGN OWNED gives them
CREATE ROLE regress_ora_leaver;
GRANT aq_administrator_role TO regress_ora_leaver;
GRANT CREATE, USAGE ON SCHEMA ora TO regress_ora_leaver;
SET ROLE regress_ora_leaver;
CALL dbms_aqadm.create_queue_table('ora.left_tab', 'JSON');
RESET ROLE;
REASSIGN OWNED BY regress_ora_leaver TO regress_ora_user;
DROP OWNED BY regress_ora_leaver;
DROP ROLE regress_ora_leaver;
SET ROLE regress_ora_user;
CALL dbms_aqadm.drop_queue_table('ora.left_tab');
RESET ROLE;
-- but not in a schema in which he may not create, by no way
CREATE SCHEMA ora_closed;
GRANT USAGE ON SCHEMA ora_closed TO regress_ora_admin;
SET ROLE regress_ora_admin;
SELECT t.error($$CALL dbms_aqadm.create_queue_table('ora_closed.own_tab', 'JSON')$$);
SELECT split_part(t.error($$SELECT aq.create_queue_table('ora_closed.own_tab')$$), ' | ', 2);
RESET ROLE;
GRANT CREATE ON SCHEMA ora_closed TO regress_ora_admin;
SET ROLE regress_ora_admin;
SELECT aq.create_queue_table('ora_closed.own_tab');
RESET ROLE;
REVOKE CREATE ON SCHEMA ora_closed FROM regress_ora_admin;
SET ROLE regress_ora_admin;
SELECT t.error($$SELECT sys._make_views('ora_closed.own_tab')$$);
SELECT aq.drop_queue_table('ora_closed.own_tab');
RESET ROLE;
DROP SCHEMA ora_closed;

-- dropped with their views
CALL dbms_aqadm.stop_queue('events');
CALL dbms_aqadm.drop_queue('events');
CALL dbms_aqadm.drop_queue_table('events_tab');
CALL dbms_aqadm.drop_queue_table('orders_tab', force => true);
SELECT relname FROM pg_class WHERE relnamespace = 'ora'::regnamespace AND relkind = 'v' AND relname ~ 'tab' ORDER BY 1;
