-- Package dbms_aqadm over sharded queues.
\pset format unaligned
\pset tuples_only on
SET search_path = ora, public;

CALL dbms_aqadm.create_transactional_event_queue('topic', multiple_consumers => true, queue_payload_type => 'JSON',
	max_retries => 2, comment => 'first', queue_properties => ROW(dbms_aqadm.normal_queue(), 1, 60, NULL, NULL));
SELECT queue_name, payload_type, multiple_consumers, max_retries, retry_delay, retention, enqueue_enabled, dequeue_enabled, comment FROM aq.queues;

-- start and stop: false leaves the side as it is
CALL dbms_aqadm.start_queue('topic', dequeue => false);
SELECT enqueue_enabled, dequeue_enabled FROM aq.queues;
CALL dbms_aqadm.start_queue('topic', enqueue => false);
SELECT enqueue_enabled, dequeue_enabled FROM aq.queues;
CALL dbms_aqadm.stop_queue('topic', enqueue => false);
SELECT enqueue_enabled, dequeue_enabled FROM aq.queues;
CALL dbms_aqadm.start_queue(queue_name => 'topic');
SELECT t.error($$CALL dbms_aqadm.start_queue('nobody')$$);
SELECT t.error($$CALL dbms_aqadm.stop_queue('a.b.c')$$);

-- alter: null leaves a setting as it is
CALL dbms_aqadm.alter_queue('topic', max_retries => 7::numeric);
CALL dbms_aqadm.alter_queue('topic', retention_time => dbms_aqadm.infinite(), comment => 'second');
CALL dbms_aqadm.alter_sharded_queue('topic', queue_properties => ROW(NULL, 5, NULL, NULL, NULL));
SELECT max_retries, retry_delay, retention, comment FROM aq.queues;
SELECT t.error($$CALL dbms_aqadm.alter_queue('topic', max_retries => -1)$$);
SELECT t.error($$CALL dbms_aqadm.alter_queue('topic', retry_delay => -1)$$);
SELECT t.error($$CALL dbms_aqadm.alter_queue('topic', retention_time => -5)$$);
CALL dbms_aqadm.alter_transactional_event_queue('topic', max_retries => 2, queue_properties => ROW(NULL, 0, 0, NULL, NULL));

-- subscribers
CALL dbms_aqadm.add_subscriber('topic', sys.aq$_agent('ANN', NULL, NULL));
CALL dbms_aqadm.add_subscriber(queue_name => 'topic', subscriber => sys.aq$_agent('bob', NULL, 0), rule => 'tab.priority < 3 AND tab.corrid LIKE ''x%''');
CALL dbms_aqadm.add_subscriber('topic', sys.aq$_agent('"Cid"', 'ora.topic', NULL));
SELECT dbms_aqadm.queue_subscribers('topic');
CALL dbms_aqadm.alter_subscriber('topic', sys.aq$_agent('bob', NULL, NULL), rule => 'priority = 1');
SELECT consumer, rule FROM aq.subscribers ORDER BY consumer COLLATE "C";
CALL dbms_aqadm.remove_subscriber('topic', sys.aq$_agent('"Cid"', NULL, NULL));
SELECT t.error($$CALL dbms_aqadm.add_subscriber('topic', sys.aq$_agent('Ann', NULL, NULL))$$);
SELECT t.error($$CALL dbms_aqadm.remove_subscriber('topic', sys.aq$_agent('nobody', NULL, NULL))$$);
SELECT t.error($$CALL dbms_aqadm.add_subscriber('topic', sys.aq$_agent('sub@#1', NULL, NULL))$$);
SELECT t.error($$CALL dbms_aqadm.add_subscriber('topic', sys.aq$_agent('AQ$_x', NULL, NULL))$$);
SELECT t.error($$CALL dbms_aqadm.add_subscriber('topic', sys.aq$_agent('x', '!', NULL))$$);
SELECT t.error($$CALL dbms_aqadm.add_subscriber('topic', sys.aq$_agent(NULL, NULL, NULL))$$);
SELECT t.error($$CALL dbms_aqadm.add_subscriber('topic', sys.aq$_agent('x', NULL, 9))$$);
SELECT t.error($$CALL dbms_aqadm.add_subscriber('topic', sys.aq$_agent('x', NULL, NULL), rule => 'no_such = 1')$$);
SELECT t.error($$CALL dbms_aqadm.add_subscriber('topic', sys.aq$_agent('x', NULL, NULL), delivery_mode => 5)$$);

-- the view on the messages, with Oracle's columns
CALL dbms_aq.enqueue('topic', NULL, dbms_aq.message_properties_t(correlation => 'x1', expiration => 100), '{"n": 1}', NULL) \g /dev/null
CALL dbms_aq.enqueue('topic', NULL, dbms_aq.message_properties_t(priority => 5, delay => 100), '{"n": 2}', NULL) \g /dev/null
SELECT queue, corr_id, msg_priority, msg_state, expiration, delay IS NOT NULL, retry_count, user_data, consumer_name
	FROM "aq$topic" ORDER BY user_data, consumer_name;

-- purge: with a condition over that view, or all
CALL dbms_aqadm.purge_queue_table('topic', 'qtview.consumer_name = ''ANN'' AND qtview.msg_state = ''READY''', NULL);
SELECT msg_state, user_data, consumer_name FROM "aq$topic" ORDER BY user_data, consumer_name;
DO $$
DECLARE
	po dbms_aqadm.aq$_purge_options_t;
BEGIN
	po.block := true;
	CALL dbms_aqadm.purge_queue_table('topic', NULL, po);
END $$;
SELECT count(*) FROM "aq$topic";
SELECT t.error($$CALL dbms_aqadm.purge_queue_table('topic', 'no_such_column = 1', NULL)$$);

-- exception queue of a sharded queue
CALL dbms_aqadm.create_sharded_queue('single', queue_payload_type => 'JSON');
CALL dbms_aqadm.create_eq_exception_queue('topic');
CALL dbms_aqadm.create_exception_queue('single', 'single_failed');
SELECT queue_name, exception_queue, multiple_consumers, enqueue_enabled FROM aq.queues ORDER BY queue_name COLLATE "C";
DO $$
DECLARE
	rc integer;
BEGIN
	CALL dbms_aqadm.verify_queue_types('topic', 'single', rc);
	RAISE NOTICE 'rc %', rc;
	CALL dbms_aqadm.verify_queue_types(src_queue_name => 'topic', dest_queue_name => 'single', destination => NULL, rc => rc);
	RAISE NOTICE 'rc %', rc;
END $$;
SELECT t.error($$CALL dbms_aqadm.add_subscriber('single', sys.aq$_agent('x', NULL, NULL))$$);
SELECT t.error($$CALL dbms_aqadm.verify_queue_types('topic', 'single', 'link', NULL)$$);

-- stop without waiting is refused while a transaction has messages in hand
CALL dbms_aqadm.start_queue('single');
BEGIN;
SELECT aq.enqueue('ora.single', '1') IS NOT NULL;
SELECT t.error($$CALL dbms_aqadm.stop_queue('single', wait => false)$$);
ROLLBACK;
CALL dbms_aqadm.stop_queue('single', wait => false);

-- rights
CALL dbms_aqadm.start_queue('single');
CALL dbms_aqadm.grant_queue_privilege('ENQUEUE', 'single', 'REGRESS_ORA_USER');
SET ROLE regress_ora_user;
SELECT aq.enqueue('ora.single', '1') IS NOT NULL;
SELECT t.error($$CALL dbms_aq.dequeue('ora.single', dbms_aq.dequeue_options_t(wait => 0), NULL, NULL::jsonb, NULL)$$);
SELECT t.error($$CALL dbms_aqadm.grant_queue_privilege('ALL', 'ora.single', 'PUBLIC')$$);
RESET ROLE;
CALL dbms_aqadm.grant_queue_privilege('dequeue', 'single', 'PUBLIC');
CALL dbms_aqadm.revoke_queue_privilege(privilege => 'ENQUEUE', queue_name => 'single', grantee => 'regress_ora_user');
SET ROLE regress_ora_user;
SELECT may_enqueue, may_dequeue FROM aq.queues;
RESET ROLE;
CALL dbms_aqadm.revoke_queue_privilege('ALL', 'single', 'PUBLIC');
SELECT t.error($$CALL dbms_aqadm.grant_queue_privilege('READ', 'single', 'PUBLIC')$$);
SELECT t.error($$CALL dbms_aqadm.grant_queue_privilege('ALL', 'single', 'regress_no_such_role')$$);
CALL dbms_aqadm.grant_queue_privilege('ALL', 'single', 'regress_ora_user', grant_option => true);
SET ROLE regress_ora_user;
CALL dbms_aqadm.grant_queue_privilege('DEQUEUE', 'ora.single', 'PUBLIC');
RESET ROLE;
CALL dbms_aqadm.revoke_queue_privilege('ALL', 'single', 'regress_ora_user');
SELECT has_table_privilege('regress_ora_user', format('aq_data.q%s', queue_id), 'DELETE') FROM aq.queues WHERE queue_name = 'ora.single';
-- rights on all queues
SET ROLE regress_ora_admin;
CALL dbms_aqadm.grant_system_privilege('ENQUEUE_ANY', 'regress_ora_user');
RESET ROLE;
SET ROLE regress_ora_user;
SELECT queue_name, may_enqueue, may_dequeue FROM aq.queues ORDER BY queue_name COLLATE "C";
SELECT aq.enqueue('ora.single', '2') IS NOT NULL;
SELECT t.error($$SELECT aq.purge_queue('ora.single')$$);
RESET ROLE;
CALL dbms_aqadm.revoke_system_privilege('ENQUEUE_ANY', 'regress_ora_user');
CALL dbms_aqadm.grant_system_privilege('MANAGE_ANY', 'regress_ora_user', admin_option => true);
SET ROLE regress_ora_user;
SELECT aq.purge_queue('ora.single');
SELECT t.error($$SELECT aq.enqueue('ora.single', '3')$$);
RESET ROLE;
CALL dbms_aqadm.revoke_system_privilege('MANAGE_ANY', 'regress_ora_user');
SET ROLE regress_ora_user;
SELECT count(*) FROM aq.queues;
RESET ROLE;
SELECT t.error($$CALL dbms_aqadm.grant_system_privilege('DRINK_ANY', 'regress_ora_user')$$);
SELECT t.error($$CALL dbms_aqadm.grant_system_privilege(NULL, 'regress_ora_user')$$);
SELECT t.error($$CALL dbms_aqadm.grant_system_privilege('ENQUEUE_ANY', 'PUBLIC')$$);
SELECT t.error($$CALL dbms_aqadm.revoke_system_privilege('ENQUEUE_ANY', 'public')$$);

-- parameters
DO $$
DECLARE
	n numeric;
BEGIN
	CALL dbms_aqadm.create_sharded_queue('shards', queue_payload_type => 'JSON');
	CALL dbms_aqadm.set_queue_parameter('shards', 'SHARD_NUM', 7);
	CALL dbms_aqadm.get_queue_parameter('shards', 'shard_num', n);
	RAISE NOTICE '%', n;
	CALL dbms_aqadm.unset_queue_parameter('shards', 'SHARD_NUM');
	CALL dbms_aqadm.get_queue_parameter('shards', 'SHARD_NUM', n);
	RAISE NOTICE '%', n = current_setting('pgaq.default_shards')::integer;
	CALL dbms_aqadm.set_queue_parameter('shards', 'KEY_BASED_ENQUEUE', 0);
	CALL dbms_aqadm.get_queue_parameter('shards', 'STICKY_DEQUEUE', n);
	RAISE NOTICE '%', n;
	CALL dbms_aqadm.get_min_streams_pool(n);
	RAISE NOTICE '%', n > 0;
	CALL dbms_aqadm.get_max_streams_pool(n);
	RAISE NOTICE '%', n > 0;
END $$;
SELECT t.error($$CALL dbms_aqadm.set_queue_parameter('shards', 'SHARD_NUM', 33)$$);
SELECT t.error($$CALL dbms_aqadm.set_queue_parameter('shards', 'KEY_BASED_ENQUEUE', 1)$$);
SELECT t.error($$CALL dbms_aqadm.set_queue_parameter('shards', 'COLOR', 1)$$);
CALL dbms_aqadm.get_watermark(NULL) \gset
SELECT :wmvalue > 0;
SELECT t.error($$CALL dbms_aqadm.set_watermark(100)$$);
SELECT t.error($$CALL dbms_aqadm.set_min_streams_pool(100)$$);
SELECT t.error($$CALL dbms_aqadm.set_max_streams_pool(100)$$);
CALL dbms_aqadm.start_queue('shards');
SELECT t.error($$CALL dbms_aqadm.set_queue_parameter('shards', 'SHARD_NUM', 2)$$);
SELECT aq.enqueue('ora.shards', '1') IS NOT NULL;
CALL dbms_aqadm.stop_queue('shards');
SELECT t.error($$CALL dbms_aqadm.set_queue_parameter('shards', 'SHARD_NUM', 2)$$);
CALL dbms_aqadm.drop_queue('shards');

-- drop: stopped first, unless force; takes the view along
SELECT t.error($$CALL dbms_aqadm.drop_queue('topic')$$);
CALL dbms_aqadm.stop_queue('topic');
SELECT t.error($$CALL dbms_aqadm.drop_queue('aq$_topic_e')$$);
CALL dbms_aqadm.drop_queue('topic');
CALL dbms_aqadm.drop_queue('aq$_topic_e');
CALL dbms_aqadm.drop_transactional_event_queue('single', force => true);
CALL dbms_aqadm.drop_sharded_queue('single_failed');
SELECT count(*) FROM aq.queues;
SELECT to_regclass('"aq$topic"'), to_regclass('"aq$single"');
