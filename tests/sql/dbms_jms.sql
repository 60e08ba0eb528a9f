-- Queues of Oracle's JMS types hold aq.jms_message.
\pset format unaligned
\pset tuples_only on
CREATE SCHEMA java;
SET search_path = java, sys, pg_catalog;
CREATE PROCEDURE t.make(type text) LANGUAGE plpgsql AS $$
BEGIN
	CALL dbms_aqadm.create_queue_table('jms_tab', type);
	RAISE NOTICE '%: %', type, (SELECT payload_type FROM aq.queue_tables);
	CALL dbms_aqadm.drop_queue_table('jms_tab');
END $$;
DO $$
DECLARE
	type text;
BEGIN
	FOREACH type IN ARRAY ARRAY['SYS.AQ$_JMS_MESSAGE', 'sys.aq$_jms_text_message', 'SYS.AQ$_JMS_BYTES_MESSAGE', 'AQ$_JMS_MAP_MESSAGE', 'SYS.AQ$_JMS_STREAM_MESSAGE', 'SYS.AQ$_JMS_OBJECT_MESSAGE', dbms_aqadm.jms_type()] LOOP
		CALL t.make(type);
	END LOOP;
END $$;
-- a sharded queue has JMS messages by default
CALL dbms_aqadm.create_sharded_queue('jms_q');
CALL dbms_aqadm.create_transactional_event_queue('jms_topic', multiple_consumers => true);
CALL dbms_aqadm.start_queue('jms_q');
SELECT queue_name, payload_type, multiple_consumers FROM aq.queues WHERE queue_name LIKE 'java.jms%' ORDER BY 1;
CALL dbms_aqadm.create_queue_table('jms_tab', 'SYS.AQ$_JMS_TEXT_MESSAGE');
CALL dbms_aqadm.enable_jms_types('jms_tab');
SELECT t.error($$CALL dbms_aqadm.enable_jms_types('none')$$);

-- a program in PL/pgSQL exchanges messages with Java
DO $$
DECLARE
	options dbms_aq.enqueue_options_t;
	properties dbms_aq.message_properties_t;
	dequeue_options dbms_aq.dequeue_options_t;
	message aq.jms_message;
	id uuid;
BEGIN
	message := aq_jms.text('one chair');
	message := aq_jms.set_property(message, 'color', 'red'::text);
	message := aq_jms.set_property(message, 'JMSXGroupID', 'g'::text);
	message := aq_jms.set_header(message, 'type', 'order');
	CALL dbms_aq.enqueue('jms_q', options, properties, message, id);
	CALL dbms_aq.enqueue('jms_q', options, properties, aq_jms.text('a table'), id);
	dequeue_options.wait := 0;
	dequeue_options.deq_condition := 'tab.user_data.properties ->> ''color'' = ''red''';
	CALL dbms_aq.dequeue('jms_q', dequeue_options, properties, message, id);
	RAISE NOTICE '% % % %', aq_jms.get_header(message, 'type'), aq_jms.get_property(message, 'color'), aq_jms.get_property(message, 'JMSXGroupID'), message.text;
END $$;
SELECT (payload).text FROM aq.browse('java.jms_q', NULL::aq.jms_message);
CALL dbms_aqadm.drop_sharded_queue('jms_q', force => true);
CALL dbms_aqadm.drop_sharded_queue('jms_topic', force => true);
CALL dbms_aqadm.drop_queue_table('jms_tab', true);
RESET search_path;
DROP PROCEDURE t.make;
DROP SCHEMA java;
