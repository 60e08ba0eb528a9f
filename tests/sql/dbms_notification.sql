-- dbms_aq.register (sys.aq$_reg_info_list), unregister and post (sys.aq$_post_info_list), and the views of registrations.
\pset format unaligned
\pset tuples_only on
SET search_path = ora, public;
CREATE SCHEMA dn;
CALL dbms_aqadm.create_sharded_queue('dn.orders', queue_payload_type => 'RAW');
CALL dbms_aqadm.create_sharded_queue('dn.news', multiple_consumers => true, queue_payload_type => 'RAW');
CALL dbms_aqadm.add_subscriber('dn.news', sys.aq$_agent('READER', NULL, NULL));
CREATE TABLE dn.seen (what text);
CREATE PROCEDURE dn.callback(context bytea, reginfo sys.aq$_reg_info, descr sys.aq$_descriptor, payload bytea, payloadl numeric) LANGUAGE plpgsql AS $$
BEGIN
	PERFORM aq.enqueue('dn_results', jsonb_build_array(convert_from(context, 'UTF8'), reginfo.name, reginfo.namespace, reginfo.qosflags, reginfo.callback,
		descr.queue_name, descr.consumer_name, descr.msg_id IS NOT NULL, (descr.msg_prop).priority, (descr.msg_prop).delay, (descr.msg_prop).expiration,
		(descr.msg_prop).correlation, (descr.msg_prop).attempts, (descr.msg_prop).state, ((descr.msg_prop).sender_id).name,
		(descr.msg_prop).delivery_mode, cardinality(descr.msgid_array::uuid[]), descr.ntfnsrecdingrp, convert_from(payload, 'UTF8'), payloadl));
END $$;
SELECT aq.create_queue('dn_results');
CALL dbms_aqadm.start_queue('dn.orders');
CALL dbms_aqadm.start_queue('dn.news');

-- errors: Oracle's numbers
SELECT t.error($$CALL dbms_aq.register(NULL, 1)$$);
SELECT t.error($$CALL dbms_aq.register(ARRAY[sys.aq$_reg_info('dn.orders', 1, 'plsql://dn.callback')], NULL)$$);
SELECT t.error($$CALL dbms_aq.register(ARRAY[sys.aq$_reg_info(NULL, 1, 'plsql://dn.callback')], 1)$$);
SELECT t.error($$CALL dbms_aq.register(ARRAY[sys.aq$_reg_info('dn.orders:', 1, 'plsql://dn.callback')], 1)$$);
SELECT t.error($$CALL dbms_aq.register(ARRAY[sys.aq$_reg_info('dn.orders:a', 1, 'plsql://dn.callback')], 1)$$);
SELECT t.error($$CALL dbms_aq.register(ARRAY[sys.aq$_reg_info('dn.news', 1, 'plsql://dn.callback')], 1)$$);
SELECT t.error($$CALL dbms_aq.register(ARRAY[sys.aq$_reg_info('dn.missing', 1, 'plsql://dn.callback')], 1)$$);
SELECT t.error($$CALL dbms_aq.register(ARRAY[sys.aq$_reg_info('dn.orders', 2, 'plsql://dn.callback')], 1)$$);
SELECT t.error($$CALL dbms_aq.register(ARRAY[sys.aq$_reg_info('dn.orders', 1, 'mailto://me@example.com?PR=1')], 1)$$);
SELECT t.error($$CALL dbms_aq.register(ARRAY[sys.aq$_reg_info('dn.orders', 1, 'http://example.com/')], 1)$$);
SELECT t.error($$CALL dbms_aq.register(ARRAY[sys.aq$_reg_info('dn.orders', 1, 'plsql://dn.callback', NULL, 64, 0)], 1)$$);
SELECT t.error($$CALL dbms_aq.register(ARRAY[sys.aq$_reg_info('dn.orders', 1, 'plsql://dn.callback', NULL, 0, 0, 2, 10, 1, NULL, NULL)], 1)$$);
SELECT t.error($$CALL dbms_aq.register(ARRAY[sys.aq$_reg_info('dn.orders', 1, 'plsql://dn.callback', NULL, 0, 0, 1, 10, 3, NULL, NULL)], 1)$$);
SELECT t.error($$CALL dbms_aq.register(ARRAY[sys.aq$_reg_info('dn.orders', 1, 'plsql://dn.callback', NULL, 0, -1)], 1)$$);
SELECT t.error($$CALL dbms_aq.unregister(ARRAY[sys.aq$_reg_info('dn.orders', 1, 'plsql://dn.callback')], 1)$$);
SELECT t.error($$CALL dbms_aq.post(ARRAY[sys.aq$_post_info('news', 1, NULL)], 1)$$);
SELECT t.error($$CALL dbms_aq.post(NULL, 1)$$);

-- a procedure may be made later: see cluster/test_notification.py; aq.register needs it
CALL dbms_aq.register(ARRAY[sys.aq$_reg_info('dn.orders', 1, 'plsql://dn.missing')], 1);
SELECT callback, status FROM aq.registrations;
CALL dbms_aq.unregister(ARRAY[sys.aq$_reg_info('dn.orders', 1, 'plsql://dn.missing')], 1);
SELECT t.error($$SELECT aq.register('dn.orders', 'plsql://dn.missing')$$);

-- all options, and the views
DO $$
DECLARE
	registrations sys.aq$_reg_info_list;
BEGIN
	registrations[1] := sys.aq$_reg_info('dn.orders', dbms_aq.namespace_aq(), 'plsql://dn.callback?PR=0', 'first');
	registrations[2] := sys.aq$_reg_info('dn.news:READER', dbms_aq.namespace_aq(), 'plsql://dn.callback', 'second', dbms_aq.ntfn_qos_reliable() + dbms_aq.ntfn_qos_payload(), 0);
	registrations[3] := sys.aq$_reg_info('posts', dbms_aq.namespace_anonymous(), 'plsql://dn.callback', 'third', dbms_aq.ntfn_qos_purge_on_ntfn(), 3600);
	registrations[4] := sys.aq$_reg_info('dn.orders', 1, 'plsql://dn.callback', 'grouped', 0, 0, dbms_aq.ntfn_grouping_class_time(), 3600,
		dbms_aq.ntfn_grouping_type_last(), timestamptz '2020-01-01 00:00+00', 5);
	CALL dbms_aq.register(registrations, 4);
END $$;
SELECT subscription_name, location_name, "user#"::regrole = current_user::regrole, convert_from(user_context, 'UTF8'), context_size, namespace, presentation, status,
	context_type, qosflags, round(extract(epoch FROM timeout - reg_time)) AS timeout, ntfn_grouping_class, ntfn_grouping_value, ntfn_grouping_type, ntfn_grouping_repeat_count
FROM sys.user_subscr_registrations ORDER BY reg_id;
SELECT count(*) FROM sys.dba_subscr_registrations;
SELECT r.subscription_name, s.num_ntfns, s.num_grouping_ntfns, s.last_ntfn_sent_time, s.num_retries, s.last_err, s.last_err_time FROM sys.v$subscr_registration_stats s JOIN sys.user_subscr_registrations r USING (reg_id) ORDER BY reg_id;

-- what a procedure of Oracle's form gets: sys.aq$_descriptor with sys.msg_prop_t, sys.aq$_ntfn_descriptor and sys.aq$_ntfn_msgid_array
CALL dbms_aq.enqueue('dn.orders', NULL, dbms_aq.message_properties_t(priority => 4, expiration => 100, correlation => 'c', sender_id => sys.aq$_agent('me', NULL, NULL)), 'a'::bytea, NULL) \gset
CALL aq.wait('dn_results', '1 minute');
SELECT payload FROM aq.dequeue('dn_results');
CALL dbms_aq.enqueue('dn.news', NULL, NULL, 'b'::bytea, NULL) \gset
CALL aq.wait('dn_results', '1 minute');
SELECT payload FROM aq.dequeue('dn_results');
CALL dbms_aq.post(ARRAY[sys.aq$_post_info('posts', dbms_aq.namespace_anonymous(), 'c')], 1);
CALL aq.wait('dn_results', '1 minute');
SELECT payload FROM aq.dequeue('dn_results');

-- unregister: by name and callback; a null callback is any
CALL dbms_aq.unregister(ARRAY[sys.aq$_reg_info('dn.orders', 1, 'plsql://dn.callback')], 1);
CALL dbms_aq.unregister(ARRAY[sys.aq$_reg_info('DN.ORDERS', 1, NULL), sys.aq$_reg_info('dn.news:reader', 1, 'plsql://dn.callback')], 2);
SELECT subscription_name FROM sys.user_subscr_registrations;
-- the names of registrations are taken as the view and the descriptor spell them
CALL dbms_aqadm.create_sharded_queue('dn."Mixed ""q"""', multiple_consumers => true, queue_payload_type => 'RAW');
CALL dbms_aqadm.add_subscriber('dn."Mixed ""q"""', sys.aq$_agent('"Some one"', NULL, NULL));
CALL dbms_aq.register(ARRAY[sys.aq$_reg_info('"DN"."NEWS":"READER"', 1, 'plsql://dn.callback'), sys.aq$_reg_info('dn.orders', 1, 'plsql://dn.callback'),
	sys.aq$_reg_info('"DN"."Mixed ""q""":"Some one"', 1, 'plsql://dn.callback')], 3);
SELECT subscription_name FROM sys.user_subscr_registrations ORDER BY reg_id;
DO $$
DECLARE
	r record;
BEGIN
	FOR r IN SELECT subscription_name, location_name FROM sys.user_subscr_registrations WHERE namespace = 'AQ' LOOP
		CALL dbms_aq.unregister(ARRAY[sys.aq$_reg_info(r.subscription_name, 1, r.location_name)], 1);
	END LOOP;
END $$;
-- a queue that has the name in upper case is meant first
SELECT aq.create_queue('DN.ORDERS', 'bytea');
CALL dbms_aq.enqueue('"DN"."ORDERS"', NULL, NULL, '\x01'::bytea, NULL) \gset
SELECT count(*) FROM aq.browse('DN.ORDERS', as_type => NULL::bytea);
SELECT aq.drop_queue('DN.ORDERS', force => true);
CALL dbms_aq.enqueue('"DN"."ORDERS"', NULL, NULL, '\x02'::bytea, NULL) \gset
SELECT count(*) FROM aq.browse('dn.orders', as_type => NULL::bytea);
SELECT t.error($$CALL dbms_aq.enqueue('"dn"."ORDErS"', NULL, NULL, '\x02'::bytea, NULL)$$);
SELECT subscription_name FROM sys.user_subscr_registrations;
SELECT aq.drop_queue('dn_results', force => true);
CALL dbms_aqadm.drop_sharded_queue('dn.orders', force => true);
CALL dbms_aqadm.drop_sharded_queue('"DN"."NEWS"', force => true);
CALL dbms_aqadm.drop_sharded_queue('dn."Mixed ""q"""', force => true);
SET client_min_messages = warning;
DROP SCHEMA dn CASCADE;
