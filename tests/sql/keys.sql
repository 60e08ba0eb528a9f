-- Keys of messages. tests/cluster/test_keys.py has what needs several sessions, a restart or many messages.
\pset format unaligned
\pset tuples_only on
SELECT aq.create_queue('k', shards => 8);
SELECT aq.create_queue('k_topic', multiple_consumers => true);
-- the shard of a key is the same on all versions of the server
SELECT count(aq.enqueue('k', '0', key => key)) FROM unnest(ARRAY['', 'a', 'b', 'customer 17', 'ä€', repeat('x', 512)]) key;
SELECT left(key, 12), shard FROM aq.messages WHERE queue_name = 'k' ORDER BY key COLLATE "C";
SELECT aq.purge_queue('k');
-- what a key can be
SELECT t.error($$SELECT aq.enqueue('k', '1', key => repeat('x', 513))$$);
SELECT t.error($$SELECT aq.enqueue('k', '1', key => repeat('€', 171))$$);
SELECT t.error($$SELECT aq.enqueue_array('k', ARRAY['1', '2'], options => jsonb_build_array(NULL, jsonb_build_object('key', repeat('x', 513))))$$);
SELECT t.error($$SELECT aq.enqueue_array('k', ARRAY['1'], options => '[{"key": ["x"]}]')$$);
SELECT aq.enqueue('k', '"none"', key => NULL) IS NOT NULL, aq.enqueue('k', '"empty"', key => '') IS NOT NULL;
SELECT cardinality(aq.enqueue_array('k', ARRAY['1', '2', '3', '4'], key => 'all', options => '[{"key": "own"}, null, {"key": null}, {"key": ""}]'));
SELECT payload, key, key IS NULL FROM aq.messages WHERE queue_name = 'k' AND state = 'READY' ORDER BY payload;
-- the keys of a queue
SELECT aq.enqueue('k', '6', key => 'late', delay => '1 hour') IS NOT NULL;
BEGIN;
SELECT payload FROM aq.dequeue('k', key => 'all', mode => 'locked');
SELECT key, ready, delayed, in_flight, oldest <= clock_timestamp() FROM aq.keys('k') ORDER BY key COLLATE "C";
COMMIT;
SELECT key, ready, delayed, in_flight FROM aq.keys('k') ORDER BY key COLLATE "C";
SELECT count(*) FROM aq.keys('unknown');
SELECT aq.purge_queue('k', condition => $$key = 'late'$$);
-- by position it is the last argument
SELECT aq.enqueue('k', '5'::text, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'last') IS NOT NULL;
-- dequeue and browse by key, alone and with other options
SELECT payload FROM aq.browse('k', key => '');
SELECT payload FROM aq.dequeue('k', key => 'a%', max_messages => 10);
SELECT payload FROM aq.dequeue('k', key => 'all', max_messages => 10, condition => 'payload::int > 2');
SELECT payload, key FROM aq.dequeue_full('k', NULL::jsonb, key => 'all', max_messages => 10);
SELECT t.error($$SELECT payload FROM aq.dequeue('k', key => 'own', msgid => gen_random_uuid())$$);
SELECT payload FROM aq.dequeue('k', condition => $$tab.key = 'own'$$);
CALL aq.receive('k', condition => $$key = 'last'$$, timeout => '1 minute', messages => NULL) \gset
SELECT :'messages'::jsonb -> 0 -> 'payload';
SELECT count(aq.purge_queue('k', condition => $$key = ''$$));
SELECT payload FROM aq.dequeue('k', max_messages => 10);
-- rules: by the literal, and evaluated
SELECT aq.subscribe('k_topic', 'a', $$key = 'a'$$), aq.subscribe('k_topic', 'vowel', $$key IN ('a', 'e')$$), aq.subscribe('k_topic', 'none', 'key IS NULL');
SELECT count(i) FROM unnest(aq.enqueue_array('k_topic', ARRAY['1', '2', '3', '4'], options => '[{"key": "a"}, {"key": "e"}, {"key": "x"}, {}]')) i;
SELECT consumer, payload, key FROM aq.messages WHERE queue_name = 'k_topic' ORDER BY consumer, payload;
SELECT consumer, key, ready FROM aq.keys('k_topic') ORDER BY consumer COLLATE "C", key;
-- a field of the payload has its name
CREATE TYPE t.keyed AS (key text, n int);
SELECT aq.create_queue('k_typed', 't.keyed');
SELECT aq.enqueue('k_typed', ROW('field', 1)::t.keyed, key => 'property') IS NOT NULL;
SELECT payload FROM aq.browse('k_typed', NULL::t.keyed, condition => $$key = 'field'$$);
SELECT payload FROM aq.browse('k_typed', NULL::t.keyed, key => 'property');
-- queue tables, conversion, buffered messages
SELECT aq.create_queue_table('public.k_tab'), aq.create_queue('k_old', queue_table => 'public.k_tab');
SELECT count(i) FROM unnest(aq.enqueue_array('k_old', ARRAY['1', '2', '3'], options => '[{"key": "a"}, {"key": "b"}, {}]')) i;
SELECT payload, key FROM aq.dequeue_full('k_old', NULL::jsonb, key => 'b');
SELECT aq.convert_queue('k_old');
SELECT payload, key FROM aq.messages WHERE queue_name = 'k_old' AND state = 'READY' ORDER BY payload;
SELECT payload FROM aq.dequeue('k_old', key => 'a');
SELECT aq.enqueue('k', '"in memory"', key => 'a', delivery_mode => 'buffered') IS NOT NULL;
SELECT payload, key FROM aq.messages WHERE queue_name = 'k' AND delivery_mode = 'buffered';
SELECT payload, key FROM aq.dequeue_full('k', NULL::jsonb, delivery_mode => 'buffered', key => 'a');
-- Jakarta Messaging: the property JMSXGroupID of the payload is the key
SELECT aq.create_queue('k_java', 'aq.jms_message');
SELECT aq.enqueue('k_java', aq_jms.set_property(aq_jms.text('1'), 'JMSXGroupID', 'north'::text)) IS NOT NULL,
	aq.enqueue('k_java', aq_jms.text('2'), key => 'south') IS NOT NULL,
	aq.enqueue('k_java', aq_jms.set_property(aq_jms.text('3'), 'JMSXGroupID', 'north'::text), key => 'west') IS NOT NULL,
	aq.enqueue('k_java', aq_jms.set_property(aq_jms.text('4'), 'color', 'red'::text), key => 'east') IS NOT NULL,
	aq.enqueue('k_java', aq_jms.text('5')) IS NOT NULL;
SELECT count(i) FROM unnest(aq.enqueue_array('k_java', ARRAY[aq_jms.text('6'), aq_jms.set_property(aq_jms.text('7'), 'JMSXGroupID', 'north'::text), NULL])) i;
SELECT (payload).text, key, (payload).properties FROM aq.dequeue_full('k_java', NULL::aq.jms_message, max_messages => 10) ORDER BY 1;
-- the provider: with an affinity, or null, the key does not decide the shard; empty: it does
SELECT count(i) FROM unnest(ARRAY['client', NULL, '']) affinity, unnest(aq_jms.enqueue('k', ARRAY(SELECT n::text FROM generate_series(1, 40) n),
	correlation => coalesce(affinity, 'null'), affinity => affinity, options => (SELECT jsonb_agg(jsonb_build_object('key', n::text)) FROM generate_series(1, 40) n))) i;
SELECT correlation, count(DISTINCT shard) FROM aq.messages WHERE queue_name = 'k' AND correlation IS NOT NULL GROUP BY correlation ORDER BY correlation;
SELECT t.error($$SELECT aq.enqueue('k_java', aq_jms.set_property(aq_jms.text('1'), 'JMSXGroupID', repeat('x', 513)))$$);
SELECT aq.drop_queue(name, force => true) FROM unnest(ARRAY['k', 'k_topic', 'k_typed', 'k_old', 'k_java']) name;
SELECT aq.drop_queue_table('public.k_tab');
DROP TYPE t.keyed;
