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
SELECT grantee, owner, name, grantor IS NOT NULL AS granted, enqueue_privilege, dequeue_privilege FROM queue_privileges WHERE name LIKE 'VIEWS%' ORDER BY name;
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
SELECT q.name, s.enqueued_msgs, s.dequeued_msgs, s.event_stream_id, s.msg_sn, s.dequeue_partition_id, s.dequeue_position FROM v$eq_subscriber_stat s JOIN dba_queues q ON q.qid = s.queue_id WHERE q.name LIKE 'VIEWS%' ORDER BY q.name;
SELECT count(*) > 0, bool_and((c.event_stream_id, c.event_stream_partition_id, c.enqueued_msgs) IS NOT DISTINCT FROM (a.shard_id, a.subshard_id, a.enqueued_msgs))
	FROM v$eq_message_cache c JOIN v$aq_message_cache a USING (queue_id, partition_id);
SELECT q.name, c.priority, c.enqueued_msgs, c.max_msgs, c.state FROM v$aq_message_cache c JOIN dba_queues q ON q.qid = c.queue_id
	WHERE q.name = 'VIEWS_S' AND c.enqueued_msgs > 0 ORDER BY c.enqueued_msgs;
SELECT p.partitions_qt >= p.used_partitions_qt, p.used_partitions_qt, p.partitions_dq = p.partitions_qt, p.bytes > 0 FROM v$aq_partition_stats p JOIN dba_queues q ON q.qid = p.queue_id WHERE q.name = 'VIEWS_S';
SELECT count(*) FROM v$buffered_queues;
SELECT count(*) > 0 FROM user_queue_shards WHERE name = 'VIEWS_S';
SELECT sum(enqueued_msgs), bool_and(partitions > 0), count(DISTINCT queue_id) FROM all_queue_shards JOIN dba_queue_shards USING (name, queue_id, shard_id, enqueued_msgs, partitions) WHERE name = 'VIEWS_S';
SELECT aq.enqueue('ora.views_s', '5', sender => 'press') IS NOT NULL, aq.enqueue('ora.views_s', '6', sender => 'press') IS NOT NULL;
SELECT queue_name, publisher_name, enqueued_msgs, last_enqueue_time > now() - interval '1 hour' FROM v$persistent_publishers WHERE queue_name = 'VIEWS_S';
SELECT num_cached > 0, num_tracked >= num_cached, num_uncached = num_tracked - num_cached, mean_subsh_size > 0, avg_miss_ratio BETWEEN 0 AND 1, num_evicted >= 0, num_unevicted >= 0
	FROM v$aq_message_cache_stat;
SELECT estd_size_type, size_for_estimate >= 4, size_factor > 0 FROM v$aq_message_cache_advice;
SELECT q.name, l.latency_state, l.latency, l.dequeue_requests, l.active_shards, l.dequeue_sessions FROM v$aq_subscriber_load l JOIN dba_queues q ON q.qid = l.queue_id WHERE q.name = 'VIEWS_S';
-- the same under the names of 21c
SELECT queue_schema, queue_name, subscriber_name, latency_state, latency, dequeue_requests, active_event_stream_id, active_listener, dequeue_sessions FROM v$eq_subscriber_load WHERE queue_name = 'VIEWS_S';
SELECT p.partitions_qt >= p.used_partitions_qt, p.used_partitions_qt, p.partitions_dq = p.partitions_qt, p.bytes > 0 FROM v$eq_partition_stats p JOIN dba_queues q ON q.qid = p.queue_id WHERE q.name = 'VIEWS_S';
SELECT num_cached > 0, num_tracked >= num_cached, num_uncached = num_tracked - num_cached, mean_subsh_size > 0, avg_miss_ratio BETWEEN 0 AND 1, num_evicted >= 0, num_unevicted >= 0
	FROM v$eq_message_cache_stat;
SELECT estd_size_type, estd_cached_partitions >= 0, avg_partition_size >= 0 FROM v$eq_message_cache_advice;

-- every column of a view that counts nothing is null, not a number that was made up
SELECT count(elapsed_enqueue_time), count(enqueue_cpu_time), count(enqueue_transactions) FROM v$persistent_publishers;
SELECT count(dequeue_memory_locks), count(dequeue_disk_locks), count(dequeue_disk_deletes), count(parent_subscriber_id) FROM v$persistent_subscribers;

-- the same program on both stores counts the same: two transactions that enqueue, one that takes it back, browsing, three that dequeue,
-- a message that fails, one whose delay ends
CALL dbms_aqadm.create_queue_table('traffic_tab', 'JSON', multiple_consumers => true);
CALL dbms_aqadm.create_queue('traffic_c', 'traffic_tab', max_retries => 0);
CALL dbms_aqadm.create_sharded_queue('traffic_s', queue_payload_type => 'JSON', multiple_consumers => true, max_retries => 0);
CREATE TEMP TABLE traffic AS SELECT unnest(ARRAY['traffic_c', 'traffic_s']) AS q;
SELECT format('CALL dbms_aqadm.start_queue(%L)', q) FROM traffic \gexec
SELECT format('CALL dbms_aqadm.add_subscriber(%L, sys.aq$_agent(%L, NULL, NULL))', q, a) FROM traffic, unnest(ARRAY['A', 'B']) a \gexec
BEGIN; SELECT count(aq.enqueue('ora.' || q, to_jsonb(n))) FROM traffic, generate_series(1, 4) n; COMMIT;
BEGIN; SELECT count(aq.enqueue('ora.' || q, '"never"')) FROM traffic; ROLLBACK;
SELECT count(aq.enqueue('ora.' || q, '"late"', delay => '1 millisecond', priority => 9)) FROM traffic;
SELECT q, (SELECT count(*) FROM aq.browse('ora.' || q, 'b', 3)) + (SELECT count(*) FROM aq.dequeue('ora.' || q, 'b', 1, mode => 'browse')) FROM traffic;
BEGIN; SELECT q, (SELECT payload FROM aq.dequeue('ora.' || q, 'b')) FROM traffic; ROLLBACK;
BEGIN; SELECT q, (SELECT payload FROM aq.dequeue('ora.' || q, 'a', mode => 'locked')) FROM traffic; COMMIT;
SELECT q, (SELECT count(*) FROM aq.dequeue('ora.' || q, 'a', 4)) FROM traffic;
SELECT q, (SELECT payload FROM aq.dequeue('ora.' || q, 'a', wait => '10 seconds', condition => $$payload = '"late"'$$)) FROM traffic;
SELECT q, (SELECT count(*) FROM aq.dequeue('ora.' || q, 'b', 2, condition => $$payload::text < '4'$$)) FROM traffic;
SELECT queue_name, enqueued_msgs, browsed_msgs, msgs_made_expired, msgs_made_ready, enqueue_transactions, dequeue_transactions,
	last_enqueue_time > first_activity_time AS enqueued, last_dequeue_time > last_enqueue_time AS dequeued, last_tm_expiry_time > last_enqueue_time AS failed,
	last_tm_ready_time > first_activity_time AS ready
	FROM v$persistent_queues WHERE queue_name LIKE 'TRAFFIC%' ORDER BY queue_name;
SELECT v.queue_name, v.oldest_msgid = m.msgid AS oldest, v.oldest_msg_enqtm = m.enqueue_time AS since, v.avg_msg_age < 100 AS age
	FROM v$persistent_queues v JOIN aq.messages m ON m.queue_name = lower('ora.' || v.queue_name) AND m.state = 'READY' AND m.payload = '4' WHERE v.queue_name LIKE 'TRAFFIC%' ORDER BY 1;
SELECT queue_name, subscriber_name, enqueued_msgs, dequeued_msgs, last_dequeue_time > first_activity_time AS dequeued
	FROM v$persistent_subscribers WHERE queue_name LIKE 'TRAFFIC%' ORDER BY queue_name, subscriber_name;
-- what is counted for each subscriber is part of what is counted for the queue
SELECT v.queue_name, v.enqueued_expiry_msgs, v.enqueued_delay_msgs, sum(s.browsed_msgs) = v.browsed_msgs AS browsed, sum(s.expired_msgs) = v.msgs_made_expired AS expired,
	sum(s.dequeue_transactions) AS transactions, sum(s.execution_count) = v.execution_count AS executions, max(s.last_enqueue_time) > v.first_activity_time AS enqueued,
	bool_or(s.dequeued_msg_latency = v.dequeued_msg_latency) AS latest
	FROM v$persistent_queues v JOIN v$persistent_subscribers s USING (queue_id) WHERE v.queue_name LIKE 'TRAFFIC%'
	GROUP BY v.queue_name, v.enqueued_expiry_msgs, v.enqueued_delay_msgs, v.browsed_msgs, v.msgs_made_expired, v.execution_count, v.first_activity_time, v.last_enqueue_time, v.dequeued_msg_latency ORDER BY 1;
SELECT queue_name, subscriber_name, browsed_msgs, expired_msgs, dequeue_transactions, execution_count >= 3 AS executions,
	dequeued_msg_latency > 0 AS latency, elapsed_dequeue_time >= 0 AS elapsed, dequeue_cpu_time >= 0 AS cpu
	FROM v$persistent_subscribers WHERE queue_name LIKE 'TRAFFIC%' ORDER BY queue_name, subscriber_name;
SELECT queue_name, consumer, consumed, latency_us > 0 AS latency FROM aq.subscribers WHERE queue_name LIKE 'ora.traffic%' ORDER BY 1, 2;
SELECT v.queue_name, v.subscriber_name, (SELECT payload FROM aq.messages m WHERE m.msgid = v.oldest_msgid AND m.consumer = lower(v.subscriber_name)) AS oldest,
	v.oldest_msg_enqtm < clock_timestamp() AS since, v.avg_msg_age < 100 AS age
	FROM v$persistent_subscribers v WHERE v.queue_name LIKE 'TRAFFIC%' ORDER BY 1, 2;
SELECT subscriber_id, dequeue_rate > 0 AS rate, time_since_last_dequeue < 100 AS last, estd_time_to_drain, estd_time_to_drain_no_enq > 0 AS no_enq
	FROM v$aq_sharded_subscriber_stat s JOIN dba_queues q ON q.qid = s.queue_id WHERE q.name = 'TRAFFIC_S' ORDER BY 1;
SELECT subscriber_id, latency_state, latency FROM v$aq_subscriber_load l JOIN dba_queues q ON q.qid = l.queue_id WHERE q.name = 'TRAFFIC_S' ORDER BY 1;
CALL dbms_aqadm.add_subscriber('traffic_s', sys.aq$_agent('C', NULL, NULL));
SELECT count(aq.enqueue('ora.traffic_s', '1'));
SELECT subscriber_id, latency_state, latency IS NULL AS no_latency FROM v$aq_subscriber_load l JOIN dba_queues q ON q.qid = l.queue_id WHERE q.name = 'TRAFFIC_S' ORDER BY 1;
-- what is not committed counts nothing, and a purge is no consumption
SELECT count(aq.enqueue('ora.' || q, '"gone"', expiration => '1 hour', delay => '1 hour')) FROM traffic;
BEGIN; SELECT count(aq.enqueue('ora.' || q, '"never"', expiration => '1 hour', delay => '1 hour')) FROM traffic; ROLLBACK;
SELECT count(aq.purge_queue('ora.' || q, 'b')) FROM traffic;
SELECT queue_name, consumer, enqueued, dequeued, consumed FROM aq.subscribers WHERE queue_name LIKE 'ora.traffic%' ORDER BY 1, 2;
SELECT queue_name, enqueued_msgs, enqueued_expiry_msgs, enqueued_delay_msgs FROM v$persistent_queues WHERE queue_name LIKE 'TRAFFIC%' ORDER BY 1;
-- the messages are read only when a column is asked for that needs them
CREATE FUNCTION t.reads_messages(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN ' || query LOOP
		IF line ~ 'message_rows' THEN RETURN true; END IF;
	END LOOP;
	RETURN false;
END $$;
SELECT t.reads_messages('SELECT enqueued_msgs, last_enqueue_time FROM sys.v$persistent_queues'), t.reads_messages('SELECT oldest_msgid FROM sys.v$persistent_queues');
SELECT t.reads_messages('SELECT enqueued_msgs, last_dequeue_time FROM sys.v$persistent_subscribers'), t.reads_messages('SELECT oldest_msgid FROM sys.v$persistent_subscribers');
DROP FUNCTION t.reads_messages;
CALL dbms_aqadm.drop_queue_table('traffic_tab', force => true);
CALL dbms_aqadm.drop_sharded_queue('traffic_s', force => true);

-- a message is not locked through its view
SELECT t.error(format('SELECT * FROM ora.%s FOR UPDATE', view)) FROM unnest(ARRAY['views_tab', 'aq$views_tab', 'aq$views_tab_s', 'aq$views_tab_r', 'aq$views_s']) view;
SELECT t.error('DO $do$ DECLARE m record; BEGIN FOR m IN SELECT * FROM ora.aq$views_tab FOR UPDATE LOOP END LOOP; END $do$');
-- nor changed
SELECT t.error(format('DELETE FROM %s', view)) FROM unnest(ARRAY['ora.views_tab', 'ora.aq$views_tab', 'ora.aq$views_tab_s', 'ora.aq$views_tab_r', 'ora.aq$views_s', 'sys.dba_queues', 'sys.v$aq']) view;
CREATE FUNCTION ora.instead() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '% of %', lower(tg_op), new.corr_id; RETURN new; END $$;
CREATE TRIGGER instead INSTEAD OF INSERT ON ora.aq$views_s FOR EACH ROW EXECUTE FUNCTION ora.instead();
INSERT INTO ora.aq$views_s (corr_id) VALUES ('by trigger');
SELECT left(t.error('UPDATE ora.aq$views_s SET corr_id = NULL'), 5);
DROP FUNCTION ora.instead CASCADE;
-- a view of one's own can be named aq$..., and call functions of sys; dual has no rows to lock
CREATE VIEW ora.aq$own AS SELECT * FROM sys.sqlcode('00000');
SELECT 1 AS n FROM ora.aq$own, sys.dual FOR UPDATE;
DROP VIEW ora.aq$own;

CALL dbms_transform.drop_transformation('ora', 'views_t');
CALL dbms_aqadm.drop_queue_table('views_tab', force => true);
CALL dbms_aqadm.drop_sharded_queue('views_s', force => true);
