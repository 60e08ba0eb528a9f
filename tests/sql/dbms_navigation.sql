-- Navigation, message groups and sequence deviation through dbms_aq, in queue tables and sharded queues.
\pset format unaligned
\pset tuples_only on
SET search_path = ora, public;
CALL dbms_aqadm.create_queue_table('nav_tab', 'JSON');
CALL dbms_aqadm.create_queue('nav', 'nav_tab');
CALL dbms_aqadm.create_queue_table('group_tab', 'JSON', message_grouping => dbms_aqadm.transactional());
CALL dbms_aqadm.create_queue('groups', 'group_tab');
CALL dbms_aqadm.create_queue_table('topic_tab', 'JSON', multiple_consumers => true);
CALL dbms_aqadm.create_queue('nav_topic', 'topic_tab');
CALL dbms_aqadm.create_sharded_queue('nav_s', queue_payload_type => 'JSON');
SELECT format('CALL dbms_aqadm.start_queue(%L)', q) FROM unnest(ARRAY['nav', 'groups', 'nav_topic', 'nav_s']) q \gexec
CALL dbms_aqadm.add_subscriber('nav_topic', sys.aq$_agent('ann', NULL, NULL));
CALL dbms_aqadm.add_subscriber('nav_topic', sys.aq$_agent('bob', NULL, NULL));

-- a browse goes on where the last one was; FIRST_MESSAGE goes back
SELECT aq.enqueue(q, to_jsonb(n), correlation => 'c' || n) IS NOT NULL FROM unnest(ARRAY['ora.nav', 'ora.nav_s']) q, generate_series(1, 3) n;
SELECT q, t.step(q, 3), t.step(q, 3), t.step(q, 1), t.step(q, 3), t.step(q, 3), t.step(q, 3) FROM unnest(ARRAY['nav', 'nav_s']) q;
-- the end of the messages clears the position
SELECT q, t.step(q, 3), t.step(q, 3) FROM unnest(ARRAY['nav', 'nav_s']) q;
-- another correlation, or consumer, needs FIRST_MESSAGE; a condition may change
SELECT q, t.step(q, 1, correlation => 'c%'), t.step(q, 3, correlation => 'c2'), t.step(q, 1, correlation => 'c2'), t.step(q, 1, condition => 'priority = 1'), t.step(q, 3, condition => 'priority < 5')
	FROM unnest(ARRAY['nav', 'nav_s']) q;
SELECT aq.enqueue('ora.nav_topic', to_jsonb(n)) IS NOT NULL FROM generate_series(1, 2) n;
SELECT t.step('nav_topic', 1, consumer => 'ann'), t.step('nav_topic', 3, consumer => 'bob'), t.step('nav_topic', 1, consumer => 'bob'), t.step('nav_topic', 3, consumer => 'bob');
-- the position is the session's, and outlives the transaction
SELECT t.step('nav', 1);
SELECT t.step('nav', 3, correlation => 'x');
-- NEXT_TRANSACTION is for queue tables with groups
SELECT t.step('nav', 2), t.step('nav_s', 2);
SELECT t.step('nav', 9);
SELECT t.step('nav', 3, mode => 9);

-- groups: all messages of a transaction, then ORA-25235, then the next group
BEGIN;
SELECT aq.enqueue('ora.groups', to_jsonb('a' || n)) IS NOT NULL FROM generate_series(1, 2) n;
COMMIT;
BEGIN;
SELECT aq.enqueue('ora.groups', to_jsonb('b' || n)) IS NOT NULL FROM generate_series(1, 2) n;
COMMIT;
DO $$
DECLARE
	mp dbms_aq.message_properties_t;
	payload jsonb;
	id uuid;
	p jsonb[];
	mps dbms_aq.message_properties_array_t;
	ids dbms_aq.msgid_array_t;
	e dbms_aq.error_array_t;
	n integer;
BEGIN
	RAISE NOTICE 'before a first message: %', t.step('groups', 2, 3);
	CALL dbms_aq.dequeue('groups', dbms_aq.dequeue_options_t(wait => 0, navigation => dbms_aq.first_message()), mp, payload, id);
	RAISE NOTICE '% group is told: %', payload, mp.transaction_group IS NOT NULL;
	RAISE NOTICE '% %', t.step('groups', 3, 3), t.step('groups', 3, 3);
	RAISE NOTICE '% % % %', t.step('groups', 2, 3), t.step('groups', 3, 3), t.step('groups', 3, 3), t.step('groups', 2, 3);
	ROLLBACK;
	/* an array is of one group, or of several by MULTI_GROUP */
	CALL dbms_aq.dequeue_array('groups', dbms_aq.dequeue_options_t(navigation => dbms_aq.first_message()), 10, mps, p, ids, e, n);
	RAISE NOTICE '% % same group %', n, p, mps[1].transaction_group = mps[n].transaction_group;
	ROLLBACK;
	CALL dbms_aq.dequeue_array('groups', dbms_aq.dequeue_options_t(navigation => dbms_aq.first_message_multi_group()), 10, mps, p, ids, e, n);
	RAISE NOTICE '% % same group %', n, p, mps[1].transaction_group = mps[n].transaction_group;
END $$;

-- sequence deviation
SELECT aq.purge_queue('ora.nav');
DO $$
DECLARE
	eo dbms_aq.enqueue_options_t;
	first uuid;
	id uuid;
BEGIN
	CALL dbms_aq.enqueue('nav', NULL, NULL, '"first"', first);
	CALL dbms_aq.enqueue('nav', NULL, NULL, '"second"', id);
	eo.sequence_deviation := dbms_aq.before();
	eo.relative_msgid := id;
	CALL dbms_aq.enqueue('nav', eo, NULL, '"before second"', id);
	eo.sequence_deviation := dbms_aq.top();
	CALL dbms_aq.enqueue('nav', eo, NULL, '"top"', id);
	RAISE NOTICE '% % % %', t.step('nav', 3, 3), t.step('nav', 3, 3), t.step('nav', 3, 3), t.step('nav', 3, 3);
END $$;
SELECT t.error($$CALL dbms_aq.enqueue('nav', dbms_aq.enqueue_options_t(sequence_deviation => 2), NULL, '1', NULL)$$);
SELECT t.error($$CALL dbms_aq.enqueue('nav', dbms_aq.enqueue_options_t(sequence_deviation => 9), NULL, '1', NULL)$$);
SELECT t.error($$CALL dbms_aq.enqueue('nav', dbms_aq.enqueue_options_t(sequence_deviation => 2, relative_msgid => 'a8d6a4b4-6c3c-4e53-a7a4-0f9a2f2d0001'), NULL, '1', NULL)$$);
SELECT t.error($$CALL dbms_aq.enqueue('nav_s', dbms_aq.enqueue_options_t(sequence_deviation => 3), NULL, '1', NULL)$$);
-- before compares delays, not the times when they end: the same delay fits although it ends later, a longer one does not
CALL dbms_aq.enqueue('nav', NULL, dbms_aq.message_properties_t(delay => 3600), '"waits"', NULL) \gset waits_
CALL dbms_aq.enqueue('nav', dbms_aq.enqueue_options_t(sequence_deviation => 2, relative_msgid => :'waits_msgid'),
	dbms_aq.message_properties_t(delay => 3600), '"as long"', NULL) \gset as_long_
CALL dbms_aq.enqueue('nav', dbms_aq.enqueue_options_t(sequence_deviation => 2, relative_msgid => :'waits_msgid'), NULL, '"at once"', NULL) \gset at_once_
SELECT t.error(format($$CALL dbms_aq.enqueue('nav', dbms_aq.enqueue_options_t(sequence_deviation => 2, relative_msgid => %L),
	dbms_aq.message_properties_t(delay => 3601), '1', NULL)$$, :'waits_msgid'));
SELECT user_data, msg_state, round(extract(epoch FROM delay - enq_time)) AS delay FROM "aq$nav_tab" ORDER BY user_data;
CALL dbms_aqadm.drop_queue_table('nav_tab', force => true);
CALL dbms_aqadm.drop_queue_table('group_tab', force => true);
CALL dbms_aqadm.drop_queue_table('topic_tab', force => true);
CALL dbms_aqadm.drop_sharded_queue('nav_s', force => true);
