-- Oracle's dictionary and performance views.
\pset format unaligned
SET search_path = ora, public, sys;
CALL dbms_aqadm.create_queue_table('views_tab', 'ORDER_T', sort_list => 'priority,enq_time', multiple_consumers => true, message_grouping => 0, comment => 'a table');
CALL dbms_aqadm.create_queue('views_q', 'views_tab', max_retries => 3, retry_delay => 2, retention_time => 86400, comment => 'a queue');
CALL dbms_aqadm.start_queue('views_q', dequeue => false);
CALL dbms_aqadm.create_sharded_queue('views_s', multiple_consumers => true, queue_payload_type => 'JSON', queue_properties => ROW(NULL, NULL, dbms_aqadm.infinite(), NULL, NULL));
CALL dbms_aqadm.start_queue('views_s');
CALL dbms_aqadm.add_subscriber('views_q', sys.aq$_agent('ANN', NULL, NULL), rule => 'tab.priority = 1');
CALL dbms_aqadm.add_subscriber('views_s', sys.aq$_agent('"Bob"', NULL, NULL));

-- the dictionary
SELECT owner, name, queue_table, queue_type, max_retries, retry_delay, enqueue_enabled, dequeue_enabled, retention, user_comment, sharded, recipients
	FROM dba_queues WHERE name LIKE '%VIEWS%' ORDER BY name;
SELECT owner, queue_table, type, object_type, sort_order, recipients, message_grouping, compatible, user_comment, secure
	FROM dba_queue_tables WHERE queue_table LIKE 'VIEWS%' ORDER BY queue_table;
SELECT owner, queue_name, queue_table, consumer_name, rule, delivery_mode FROM dba_queue_subscribers WHERE queue_name LIKE 'VIEWS%' ORDER BY queue_name;
SELECT name FROM user_queues WHERE name LIKE 'VIEWS%' ORDER BY name;
SELECT name FROM all_queues WHERE name LIKE 'VIEWS%' ORDER BY name;
SELECT queue_table FROM user_queue_tables WHERE queue_table LIKE 'VIEWS%' ORDER BY queue_table;
SELECT queue_table FROM all_queue_tables WHERE queue_table LIKE 'VIEWS%' ORDER BY queue_table;
SELECT consumer_name FROM user_queue_subscribers WHERE queue_name LIKE 'VIEWS%' ORDER BY consumer_name;
SELECT consumer_name FROM all_queue_subscribers WHERE queue_name LIKE 'VIEWS%' ORDER BY consumer_name;
CALL dbms_transform.create_transformation('ora', 'views_t', NULL, 'order_t', NULL, 'JSON', 'to_jsonb(source.user_data)');
SELECT owner, name, from_type, to_type FROM dba_transformations;
SELECT name, from_type, to_type FROM user_transformations;
SELECT owner, name, attribute, attribute_transformation FROM all_attribute_transformations;

-- a role sees its own: nothing, what it was granted, all
SET ROLE regress_ora_user;
SELECT (SELECT count(*) FROM all_queues) AS queues, (SELECT count(*) FROM all_queue_tables) AS tables, (SELECT count(*) FROM all_queue_subscribers) AS subscribers,
	(SELECT count(*) FROM user_queues) AS own, (SELECT count(*) FROM v$persistent_queues) AS persistent, (SELECT count(*) FROM v$aq) AS aq;
RESET ROLE;
CALL dbms_aqadm.grant_queue_privilege('ENQUEUE', 'views_s', 'regress_ora_user');
CALL dbms_aqadm.grant_queue_privilege('DEQUEUE', 'views_q', 'regress_ora_user');
SET ROLE regress_ora_user;
SELECT name FROM all_queues ORDER BY name;
SELECT name FROM all_dequeue_queues ORDER BY name;
SELECT count(*) FROM user_queues;
SELECT split_part(t.error('SELECT * FROM sys.dba_queues'), ' | ', 2);
RESET ROLE;
SET ROLE regress_ora_admin;
SELECT count(*) FROM dba_queues WHERE name LIKE 'VIEWS%';
RESET ROLE;

-- counters
SELECT aq.enqueue('ora.views_s', to_jsonb(n)) IS NOT NULL FROM generate_series(1, 3) n;
SELECT count(*) FROM aq.dequeue('ora.views_s', 'Bob', 2);
CALL dbms_aq.enqueue('views_s', NULL, dbms_aq.message_properties_t(delay => 1000), '4', NULL) \g /dev/null
CALL dbms_aq.enqueue('views_q', NULL, NULL, '(1,x)', NULL) \g /dev/null
SELECT q.name, v.waiting, v.ready, v.expired, v.total_wait < 100 AS total, v.average_wait < 100 AS wait, v.average_msg_age < 100 AS age
	FROM v$aq v JOIN dba_queues q USING (qid) WHERE q.name LIKE 'VIEWS%' ORDER BY q.name;
SELECT queue_name, enqueued_msgs, dequeued_msgs FROM v$persistent_queues WHERE queue_name LIKE 'VIEWS%' ORDER BY queue_name;
SELECT queue_schema, queue_name, subscriber_name, subscriber_type, enqueued_msgs, dequeued_msgs FROM v$persistent_subscribers WHERE queue_name LIKE 'VIEWS%' ORDER BY queue_name;
SELECT q.name, s.enqueued_msgs, s.dequeued_msgs FROM v$aq_sharded_subscriber_stat s JOIN dba_queues q ON q.qid = s.queue_id WHERE q.name LIKE 'VIEWS%' ORDER BY q.name;
SELECT q.name, c.priority, c.enqueued_msgs, c.max_msgs, c.state FROM v$aq_message_cache c JOIN dba_queues q ON q.qid = c.queue_id
	WHERE q.name = 'VIEWS_S' AND c.enqueued_msgs > 0 ORDER BY c.enqueued_msgs;
SELECT p.partitions_qt >= p.used_partitions_qt, p.used_partitions_qt, p.partitions_dq = p.partitions_qt, p.bytes > 0 FROM v$aq_partition_stats p JOIN dba_queues q ON q.qid = p.queue_id WHERE q.name = 'VIEWS_S';
SELECT count(*) FROM v$buffered_queues;

-- every column of a view that counts nothing is null, not a number that was made up
SELECT count(browsed_msgs), count(oldest_msgid), count(last_enqueue_time) FROM v$persistent_queues;

CALL dbms_transform.drop_transformation('ora', 'views_t');
CALL dbms_aqadm.drop_queue_table('views_tab', force => true);
CALL dbms_aqadm.drop_sharded_queue('views_s', force => true);
