-- Propagation by dbms_aqadm: subscribers and recipients with addresses, schedules, their views and errors.
\pset format unaligned
\pset tuples_only on
SET search_path = ora, sys, public;
CREATE TYPE paper_t AS (n integer, title varchar(20));
CREATE TYPE sheet_t AS (title varchar(20));
CALL dbms_aqadm.create_queue_table('p_tab', 'PAPER_T', multiple_consumers => true);
CALL dbms_aqadm.create_queue('p_from', 'p_tab');
CALL dbms_aqadm.create_queue('p_topic', 'p_tab');
CALL dbms_aqadm.create_queue_table('p_single_tab', 'PAPER_T');
CALL dbms_aqadm.create_queue('p_single', 'p_single_tab');
CALL dbms_aqadm.create_sharded_queue('p_sheets', queue_payload_type => 'SHEET_T');
SELECT format('CALL dbms_aqadm.start_queue(%L)', q) FROM unnest(ARRAY['p_from', 'p_topic', 'p_single', 'p_sheets']) q \gexec
CALL dbms_aqadm.add_subscriber('p_topic', aq$_agent('everyone', NULL, NULL));
CALL dbms_aqadm.add_subscriber('p_topic', aq$_agent('carol', NULL, NULL), 'false');
CALL dbms_aqadm.add_subscriber('p_topic', aq$_agent('dave', NULL, NULL), 'false');
-- subscribers: at another queue, for its subscribers or one agent there, with a rule; here
CALL dbms_aqadm.add_subscriber('p_from', aq$_agent(NULL, 'ora.p_topic', NULL), 'priority < 5');
CALL dbms_aqadm.add_subscriber('p_from', aq$_agent('carol', 'p_topic', 0), 'priority >= 5', queue_to_queue => true);
CALL dbms_aqadm.add_subscriber('p_from', aq$_agent(NULL, 'p_single', 0));
CALL dbms_aqadm.add_subscriber('p_from', aq$_agent('here', 'p_from', NULL));
SELECT consumer_name, address, protocol, rule FROM dba_queue_subscribers WHERE queue_name = 'P_FROM' ORDER BY 2, 1;
SELECT unnest(dbms_aqadm.queue_subscribers('p_from'));
CALL dbms_aqadm.alter_subscriber('p_from', aq$_agent('carol', 'p_topic', NULL), 'priority > 5');
CALL dbms_aqadm.remove_subscriber('p_from', aq$_agent('here', NULL, NULL));
-- a message waits until there is a schedule
CALL dbms_aq.enqueue('p_from', NULL, dbms_aq.message_properties_t(priority => 1, correlation => 'c', sender_id => aq$_agent('s', NULL, NULL)), '(1,one)', NULL) \gset first
CALL dbms_aqadm.schedule_propagation('p_from', latency => 0);
SELECT qname, destination, propagation_window, next_time, latency, schedule_disabled, failures, last_error_msg, message_delivery_mode FROM user_queue_schedules;
SELECT queue_schema, queue_name, dst_queue_schema, dst_queue_name, dblink, schedule_status FROM sys.v$propagation_sender WHERE queue_name = 'P_FROM';
\set take 'dbms_aq.dequeue_options_t(consumer_name => \'everyone\', navigation => 1, wait => 60)'
CALL dbms_aq.dequeue('p_topic', :take, NULL, NULL::paper_t, NULL) \gset
SELECT :'payload', (:'message_properties'::dbms_aq.message_properties_t).correlation, ((:'message_properties'::dbms_aq.message_properties_t).sender_id).name,
	(:'message_properties'::dbms_aq.message_properties_t).original_msgid = :'firstmsgid', (:'message_properties'::dbms_aq.message_properties_t).state;
CALL dbms_aq.dequeue('p_single', dbms_aq.dequeue_options_t(wait => 60, navigation => 1), NULL, NULL::paper_t, NULL) \gset
SELECT :'payload';
CALL dbms_aq.enqueue('p_from', NULL, dbms_aq.message_properties_t(priority => 9), '(2,two)', NULL) \gset
CALL dbms_aq.dequeue('p_topic', dbms_aq.dequeue_options_t(consumer_name => 'carol', navigation => 1, wait => 60), NULL, NULL::paper_t, NULL) \gset
SELECT :'payload';
CALL dbms_aq.dequeue('p_single', dbms_aq.dequeue_options_t(wait => 60, navigation => 1), NULL, NULL::paper_t, NULL) \gset
-- recipients
CALL dbms_aq.enqueue('p_from', NULL, dbms_aq.message_properties_t(recipient_list => ARRAY[aq$_agent('dave', 'p_topic', NULL), aq$_agent('local', NULL, NULL)]), '(3,three)', NULL) \gset
CALL dbms_aq.dequeue('p_topic', dbms_aq.dequeue_options_t(consumer_name => 'dave', navigation => 1, wait => 60), NULL, NULL::paper_t, NULL) \gset
SELECT :'payload';
CALL dbms_aq.dequeue('p_from', dbms_aq.dequeue_options_t(consumer_name => 'local', navigation => 1, wait => 60), NULL, NULL::paper_t, NULL) \gset
SELECT :'payload';
-- a transformation on the way, as its owner
CALL dbms_transform.create_transformation('ora', 'paper_to_sheet', 'ora', 'paper_t', 'ora', 'sheet_t', $$ROW(upper(source.user_data.title))::ora.sheet_t$$);
CALL dbms_aqadm.add_subscriber('p_from', aq$_agent(NULL, 'p_sheets', NULL), 'priority = 3', transformation => 'ora.paper_to_sheet');
CALL dbms_aqadm.schedule_propagation('p_from', destination_queue => 'p_sheets', latency => 0);
CALL dbms_aq.enqueue('p_from', NULL, dbms_aq.message_properties_t(priority => 3), '(4,four)', NULL) \gset
CALL dbms_aq.dequeue('p_sheets', dbms_aq.dequeue_options_t(wait => 60, navigation => 1), NULL, NULL::sheet_t, NULL) \gset
SELECT :'payload';
-- windows
CALL dbms_aqadm.alter_propagation_schedule('p_from', duration => 600, next_time => 'SYSDATE + 900/86400 - 600/86400', latency => 30, destination_queue => 'p_sheets');
SELECT destination, propagation_window, next_time, latency FROM user_queue_schedules ORDER BY destination;
CALL dbms_aqadm.alter_propagation_schedule('p_from', destination_queue => 'p_sheets');
SELECT destination, propagation_window, next_time, latency FROM user_queue_schedules ORDER BY destination;
-- disabled and enabled
CALL dbms_aqadm.disable_propagation_schedule('p_from', destination_queue => 'p_sheets');
SELECT destination, schedule_disabled, session_id IS NULL FROM dba_queue_schedules ORDER BY destination;
SELECT t.error($$CALL dbms_aqadm.disable_propagation_schedule('p_from', destination_queue => 'p_sheets')$$);
CALL dbms_aqadm.enable_propagation_schedule('p_from', destination_queue => 'p_sheets');
SELECT t.error($$CALL dbms_aqadm.enable_propagation_schedule('p_from', destination_queue => 'p_sheets')$$);
-- errors
SELECT t.error($$CALL dbms_aqadm.schedule_propagation('p_from')$$);
SELECT t.error($$CALL dbms_aqadm.schedule_propagation('p_from', 'elsewhere')$$);
SELECT t.error($$CALL dbms_aqadm.schedule_propagation('p_from', destination_queue => 'p_none')$$);
SELECT t.error($$CALL dbms_aqadm.schedule_propagation('p_from', duration => 60, next_time => 'TRUNC(SYSDATE) + 1', destination_queue => 'p_single')$$);
SELECT t.error($$CALL dbms_aqadm.schedule_propagation('p_from', duration => 60, next_time => 'SYSDATE + 1/0', destination_queue => 'p_single')$$);
SELECT t.error($$CALL dbms_aqadm.schedule_propagation('p_single')$$);
SELECT t.error($$CALL dbms_aqadm.unschedule_propagation('p_from', destination_queue => 'p_single')$$);
SELECT t.error($$CALL dbms_aqadm.enable_propagation_schedule('p_from', destination_queue => 'p_single')$$);
SELECT t.error($$CALL dbms_aqadm.alter_propagation_schedule('p_from', destination_queue => 'p_single')$$);
SELECT t.error($$CALL dbms_aqadm.disable_propagation_schedule('p_single')$$);
SELECT t.error($$CALL dbms_aqadm.add_subscriber('p_from', aq$_agent('x', 'p_none', NULL))$$);
SELECT t.error($$CALL dbms_aqadm.add_subscriber('p_from', aq$_agent('x', 'p_topic@not a name', NULL))$$);
SELECT t.error($$CALL dbms_aqadm.add_subscriber('p_from', aq$_agent('x', 'not an address', NULL))$$);
SELECT t.error($$CALL dbms_aqadm.add_subscriber('p_from', aq$_agent(NULL, 'p_from', NULL))$$);
SELECT t.error($$CALL dbms_aqadm.verify_queue_types('p_from', 'p_single', 'elsewhere', NULL)$$);
CALL dbms_aqadm.verify_queue_types('p_from', 'p_single', NULL, NULL);
CALL dbms_aqadm.verify_queue_types('p_from', 'p_sheets', NULL, NULL);
-- over a link
CREATE SERVER elsewhere FOREIGN DATA WRAPPER pgaq_link OPTIONS (enabled 'false');
SELECT t.error($$CALL dbms_aqadm.schedule_propagation('p_from', 'elsewhere')$$);
CREATE USER MAPPING FOR CURRENT_USER SERVER elsewhere;
CALL dbms_aqadm.add_subscriber('p_from', aq$_agent('x', 'Papers.P_Topic@Elsewhere', NULL));
CALL dbms_aqadm.schedule_propagation('p_from', 'Elsewhere');
CALL dbms_aqadm.schedule_propagation('p_from', 'elsewhere', destination_queue => 'papers.p_topic', latency => 0);
CALL dbms_aqadm.disable_propagation_schedule('p_from', 'elsewhere');
SELECT t.error($$CALL dbms_aqadm.schedule_propagation('p_from', 'elsewhere')$$);
SELECT t.error($$CALL dbms_aqadm.schedule_propagation('p_from', 'not a name')$$);
SELECT destination, schedule_disabled, latency FROM dba_queue_schedules WHERE destination LIKE '%@%' ORDER BY destination;
SELECT consumer_name, address FROM dba_queue_subscribers WHERE queue_name = 'P_FROM' AND address LIKE '%@%';
CALL dbms_aqadm.unschedule_propagation('p_from', 'elsewhere', destination_queue => 'papers.p_topic');
CALL dbms_aqadm.unschedule_propagation('p_from', 'elsewhere');
CALL dbms_aqadm.remove_subscriber('p_from', aq$_agent('x', 'papers.p_topic@elsewhere', NULL));
DROP SERVER elsewhere CASCADE;
-- unscheduled: subscribers stay
CALL dbms_aqadm.unschedule_propagation('p_from', destination_queue => 'p_sheets');
CALL dbms_aqadm.unschedule_propagation('p_from');
SELECT count(*) FROM user_queue_schedules;
SELECT count(*) FROM user_queue_subscribers WHERE queue_name = 'P_FROM';
CALL dbms_aqadm.drop_queue_table('p_tab', force => true);
CALL dbms_aqadm.drop_queue_table('p_single_tab', force => true);
CALL dbms_aqadm.drop_sharded_queue('p_sheets', force => true);
CALL dbms_transform.drop_transformation('ora', 'paper_to_sheet');
DROP TYPE paper_t, sheet_t;
