-- dbms_aqadm.create_np_queue, and Oracle's errors for non-persistent queues.
\pset format unaligned
\pset tuples_only on
SET search_path = ora, public;
CREATE SCHEMA dnp;
CALL dbms_aqadm.create_np_queue('dnp.single', comment => 'alarms');
CALL dbms_aqadm.create_np_queue('dnp.several', multiple_consumers => true);
CALL dbms_aqadm.create_sharded_queue('dnp.results', queue_payload_type => 'RAW');
SELECT owner, name, queue_table, queue_type, max_retries, enqueue_enabled, dequeue_enabled, user_comment, sharded, queue_category, recipients
FROM sys.dba_queues WHERE owner = 'DNP' ORDER BY name;
SELECT t.error($$CALL dbms_aqadm.create_np_queue('dnp.a123456789012345678901234')$$);
CALL dbms_aqadm.create_np_queue('dnp.a12345678901234567890123');
CALL dbms_aqadm.drop_queue('dnp.a12345678901234567890123');
SELECT t.error($$CALL dbms_aqadm.create_np_queue('dnp.single')$$);
SELECT t.error($$CALL dbms_aqadm.create_np_queue('missing.x')$$);
SELECT t.error($$CALL dbms_aqadm.create_np_queue(NULL)$$);

-- it is created stopped
SELECT t.error($$CALL dbms_aq.enqueue('dnp.single', dbms_aq.enqueue_options_t(visibility => dbms_aq.immediate()), NULL, 'a'::bytea, NULL)$$);
CALL dbms_aqadm.start_queue('dnp.single');
CALL dbms_aqadm.start_queue('dnp.several');

-- ORA-25217 visibility, 25218 delay, 25219 deviation, 25223 payload, 24083 remote subscribers and recipients
SELECT t.error($$CALL dbms_aq.enqueue('dnp.single', NULL, NULL, 'a'::bytea, NULL)$$);
SELECT t.error($$CALL dbms_aq.enqueue('dnp.single', dbms_aq.enqueue_options_t(visibility => dbms_aq.on_commit()), NULL, 'a'::bytea, NULL)$$);
SELECT t.error($$CALL dbms_aq.enqueue('dnp.single', dbms_aq.enqueue_options_t(visibility => dbms_aq.immediate()), dbms_aq.message_properties_t(delay => 1), 'a'::bytea, NULL)$$);
SELECT t.error($$CALL dbms_aq.enqueue('dnp.single', dbms_aq.enqueue_options_t(visibility => dbms_aq.immediate(), sequence_deviation => dbms_aq.top()), NULL, 'a'::bytea, NULL)$$);
SELECT t.error($$CALL dbms_aq.enqueue('dnp.single', dbms_aq.enqueue_options_t(visibility => dbms_aq.immediate()), NULL, '1'::jsonb, NULL)$$);
SELECT t.error($$CALL dbms_aqadm.add_subscriber('dnp.several', sys.aq$_agent('FAR', 'dnp.results', NULL))$$);
SELECT t.error($$CALL dbms_aq.enqueue('dnp.several', dbms_aq.enqueue_options_t(visibility => dbms_aq.immediate()), dbms_aq.message_properties_t(recipient_list => ARRAY[sys.aq$_agent('FAR', 'dnp.results', NULL)]), 'a'::bytea, NULL)$$);
-- 24033: as in other queues
SELECT t.error($$CALL dbms_aq.enqueue('dnp.several', dbms_aq.enqueue_options_t(visibility => dbms_aq.immediate()), NULL, 'a'::bytea, NULL)$$);
-- 25249 dequeue, 25252 listen, 24076 the rest
SELECT t.error($$CALL dbms_aq.dequeue('dnp.single', dbms_aq.dequeue_options_t(wait => 0), NULL, NULL::bytea, NULL)$$);
SELECT t.error($$CALL dbms_aq.listen(ARRAY[sys.aq$_agent(NULL, 'dnp.single', NULL)], 0, NULL)$$);
SELECT t.error($$CALL dbms_aqadm.alter_queue('dnp.single', max_retries => 3)$$);
SELECT t.error($$CALL dbms_aqadm.alter_queue('dnp.single', comment => 'x')$$);
SELECT t.error($$CALL dbms_aqadm.schedule_propagation('dnp.several')$$);

-- the registration of a program, and a procedure of Oracle's form
CREATE PROCEDURE dnp.callback(context bytea, reginfo sys.aq$_reg_info, descr sys.aq$_descriptor, payload bytea, payloadl numeric) LANGUAGE plpgsql AS $$
BEGIN
	PERFORM aq.enqueue('dnp_results', jsonb_build_array(reginfo.name, descr.queue_name, descr.consumer_name, descr.msg_id IS NOT NULL, (descr.msg_prop).priority,
		(descr.msg_prop).delay, (descr.msg_prop).expiration, (descr.msg_prop).correlation, ((descr.msg_prop).sender_id).name, convert_from(payload, 'UTF8'), payloadl));
END $$;
SELECT aq.create_queue('dnp_results');
CALL dbms_aqadm.add_subscriber('dnp.several', sys.aq$_agent('READER', NULL, NULL), 'priority < 3');
CALL dbms_aq.register(ARRAY[sys.aq$_reg_info('dnp.single', dbms_aq.namespace_aq(), 'plsql://dnp.callback'),
	sys.aq$_reg_info('dnp.several:READER', dbms_aq.namespace_aq(), 'plsql://dnp.callback'), sys.aq$_reg_info('dnp.single', 1, NULL)], 3);
-- immediate: also after a rollback
BEGIN;
CALL dbms_aq.enqueue('dnp.single', dbms_aq.enqueue_options_t(visibility => dbms_aq.immediate()),
	dbms_aq.message_properties_t(priority => 4, expiration => 100, correlation => 'c', sender_id => sys.aq$_agent('me', NULL, NULL)), 'a'::bytea, NULL) \gset
ROLLBACK;
CALL aq.wait('dnp_results', '1 minute');
SELECT payload FROM aq.dequeue('dnp_results');
SELECT convert_from(payload, 'UTF8') FROM aq.notifications();
CALL dbms_aq.enqueue('dnp.several', dbms_aq.enqueue_options_t(visibility => dbms_aq.immediate()), dbms_aq.message_properties_t(priority => 2), 'b'::bytea, NULL) \gset
CALL aq.wait('dnp_results', '1 minute');
SELECT payload FROM aq.dequeue('dnp_results');
SELECT t.error($$CALL dbms_aqadm.drop_queue('dnp.single')$$);
CALL dbms_aqadm.stop_queue('dnp.single');
CALL dbms_aqadm.stop_queue('dnp.several');
CALL dbms_aqadm.drop_queue('dnp.single');
CALL dbms_aqadm.drop_queue('dnp.several');
CALL dbms_aqadm.drop_sharded_queue('dnp.results', force => true);
SELECT aq.drop_queue('dnp_results', force => true);
SELECT count(*) FROM aq.registrations;
SET client_min_messages = warning;
DROP SCHEMA dnp CASCADE;
