-- aq.enqueue_array with options for each message, and run_at.
\pset format unaligned
\pset tuples_only on
SELECT aq.create_queue('mo');
SELECT aq.create_queue('mo_dead');
SELECT aq.create_queue('mo_text', payload_type => 'text');
SELECT aq.create_queue('mo_bytea', payload_type => 'bytea');
SELECT aq.create_queue('mo_topic', multiple_consumers => true);
SELECT aq.subscribe('mo_topic', 'all'), aq.subscribe('mo_topic', 'urgent', $$properties->>'kind' = 'a' AND priority < 3$$);

-- every key
SELECT array_position(ids, NULL), cardinality(ids)
FROM aq.enqueue_array('mo', ARRAY['0', '1', '2', '3'], options => '[
	{"priority": 3, "correlation": "c0", "properties": {"k": [1, 2]}, "exception_queue": "mo_dead", "expiration": "1 hour"},
	{"delay": "1 day"},
	{"run_at": "2001-01-01", "priority": 0},
	{}]') ids;
SELECT payload, state, priority, correlation, properties, exception_queue, round(extract(epoch FROM expires_at - enqueue_time)) AS life,
	round(extract(epoch FROM ready_at - enqueue_time)) AS delay
FROM aq.messages WHERE queue_name = 'mo' AND dequeue_time IS NULL ORDER BY payload;
SELECT payload, priority, correlation, properties FROM aq.dequeue('mo', max_messages => 10);
SELECT aq.purge_queue('mo');
-- ids in the order of the payloads, in the order of the messages
WITH e AS (SELECT ids FROM aq.enqueue_array('mo', ARRAY['0', '1', '2', '3', '4'], options =>
	'[{"correlation": "a"}, {"priority": 5}, null, {"correlation": "b"}, {"priority": 5}]') ids)
SELECT m.payload, m.correlation, m.priority, m.payload::text = (n - 1)::text
FROM e, unnest(ids) WITH ORDINALITY AS u (id, n), LATERAL aq.dequeue('mo', msgid => id) m ORDER BY n;
SELECT cardinality(aq.enqueue_array('mo', ARRAY['0', '1', '2', '3', '4'], options =>
	'[{"correlation": "a"}, {"priority": 5}, null, {"correlation": "b"}, {"priority": 5}]'));
SELECT string_agg(payload::text || coalesce(correlation, ''), ' ') FROM aq.dequeue('mo', max_messages => 10);
-- what an object does not have, or has as null, is the call's; delay and run_at replace each other
SELECT cardinality(aq.enqueue_array('mo', ARRAY['0', '1', '2', '3', '4'], priority => 4, correlation => 'all', delay => '1 day', properties => '{"of": "call"}',
	options => '[{"priority": 2}, {"correlation": null, "properties": null}, null, {"run_at": "2001-01-01"}, {"delay": "0", "properties": [false]}]'));
SELECT payload, state, priority, correlation, properties FROM aq.messages WHERE queue_name = 'mo' AND dequeue_time IS NULL ORDER BY payload;
SELECT aq.purge_queue('mo');
SELECT cardinality(aq.enqueue_array('mo', ARRAY['0', '1'], run_at => now() + interval '1 day', options => '[{"delay": "-1 s"}, {}]'));
SELECT payload, state FROM aq.messages WHERE queue_name = 'mo' AND dequeue_time IS NULL ORDER BY payload;
SELECT aq.purge_queue('mo');
-- jsonb as it is made of rows
SELECT cardinality(aq.enqueue_array('mo', array_agg(to_jsonb(i)), options => jsonb_agg(jsonb_build_object('priority', i, 'delay', interval '1 h' * i, 'correlation', 'c' || i))))
FROM generate_series(0, 3) i;
SELECT payload, priority, correlation, round(extract(epoch FROM ready_at - enqueue_time) / 3600) FROM aq.messages WHERE queue_name = 'mo' AND dequeue_time IS NULL ORDER BY payload;
SELECT aq.purge_queue('mo');
-- all types of payloads
SELECT cardinality(aq.enqueue_array('mo', '{1,2}', options => '[{}, {"priority": 0}]')),
	cardinality(aq.enqueue_array('mo', ARRAY['3', NULL]::jsonb[], options => '[{}, {"priority": 0}]')),
	cardinality(aq.enqueue_array('mo', ARRAY['5', '6']::json[], options => '[{}, {"priority": 0}]')),
	cardinality(aq.enqueue_array('mo_text', ARRAY['x', 'y'], options => '[{}, {"priority": 0}]')),
	cardinality(aq.enqueue_array('mo_bytea', ARRAY['x', 'y']::bytea[], options => '[{}, {"priority": 0}]')),
	cardinality(aq.enqueue_array('mo', ARRAY[]::text[], options => '[]'));
SELECT string_agg(coalesce(payload::text, 'null'), ' ') FROM aq.dequeue('mo', max_messages => 10);
SELECT string_agg(payload, ' ') FROM aq.dequeue('mo_text', as_type => NULL::text, max_messages => 10);
SELECT string_agg(payload::text, ' ') FROM aq.dequeue('mo_bytea', as_type => NULL::bytea, max_messages => 10);
-- more than a partition, each with its own
SELECT cardinality(aq.enqueue_array('mo', array_agg(i::text ORDER BY i), options => jsonb_agg(jsonb_build_object('correlation', i::text) ORDER BY i)))
FROM generate_series(1, 20000) i;
SELECT count(*), bool_and(payload::text = correlation), bool_and(payload::int = n)
FROM (SELECT payload, correlation, row_number() OVER () AS n FROM aq.dequeue('mo', max_messages => 30000)) s;

-- a topic: rules see the options of each; recipients of each
SELECT array_position(ids, NULL) FROM aq.enqueue_array('mo_topic', ARRAY['0', '1', '2', '3'], options =>
	'[{"priority": 2, "properties": {"kind": "a"}}, {"properties": {"kind": "a"}, "priority": 3}, {"recipients": ["r1", "urgent"]}, {"recipients": []}]') ids;
SELECT consumer, string_agg(payload, ' ' ORDER BY payload) FROM aq.messages WHERE queue_name = 'mo_topic' GROUP BY consumer ORDER BY consumer COLLATE "C";
SELECT aq.unsubscribe('mo_topic', 'all');
-- a message that no subscriber wants has a null id, and the options of the others are theirs
SELECT ids[1] IS NULL, ids[2] IS NULL, ids[3] IS NULL FROM aq.enqueue_array('mo_topic', ARRAY['4', '5', '6'], options =>
	'[{"priority": 9}, {"priority": 1, "properties": {"kind": "a"}, "correlation": "five"}, {"priority": 4}]') ids;
SELECT payload, correlation, priority FROM aq.dequeue('mo_topic', consumer => 'urgent', condition => 'correlation IS NOT NULL', max_messages => 5);

-- refused, and nothing is changed
SELECT t.drain('mo');
SELECT t.error(format($$SELECT aq.enqueue_array('mo', ARRAY['0', '1', '2'], options => '%s')$$, o))
FROM (VALUES (1, '[{}, {}]'), (2, '[{}, {}, {}, {}]'), (3, '{}'), (4, '3'), (5, 'null'),
	(6, '[{}, {}, 7]'), (7, '[{}, [], {}]'), (8, '[{}, {}, {"prio": 1}]'), (9, '[{"sender": "x"}, {}, {}]'), (10, '[{}, {"priority": "1"}, {}]'),
	(11, '[{}, {"priority": 1.5}, {}]'), (12, '[{}, {"priority": 1e20}, {}]'), (14, '[{}, {}, {"delay": 5}]'),
	(15, '[{}, {}, {"delay": "soon"}]'), (16, '[{}, {}, {"run_at": "soon"}]'), (17, '[{}, {"run_at": "infinity"}, {}]'),
	(18, '[{}, {"run_at": "2001-01-01", "delay": "1 s"}, {}]'), (19, '[{}, {"expiration": "0"}, {}]'), (20, '[{}, {"correlation": {}}, {}]'),
	(21, '[{}, {"recipients": "r"}, {}]'), (22, '[{}, {"recipients": {"r": 1}}, {}]'), (23, '[{}, {"recipients": ["r", 1]}, {}]'),
	(24, '[{}, {"recipients": ["r"]}, {}]'), (25, '[{}, {"exception_queue": "mo_none"}, {}]'), (26, '[{}, {"exception_queue": "mo"}, {}]'),
	(27, '[{}, {"exception_queue": true}, {}]')) AS v (n, o) ORDER BY n;
SELECT t.error($$SELECT aq.enqueue_array('mo_topic', ARRAY['0', '1'], options => '[{}, {"recipients": ["r2", null]}]')$$);
SELECT t.error($$SELECT aq.enqueue_array('mo_topic', ARRAY['0', '1'], options => '[{}, {"recipients": ["r2", "r2"]}]')$$);
SELECT t.error($$SELECT aq.enqueue_array('mo', NULL::text[], options => '[]')$$);
SELECT t.error($$SELECT aq.enqueue_array('mo', NULL::text[])$$);
SELECT count(*) FROM aq.messages WHERE queue_name = 'mo' AND dequeue_time IS NULL;
-- where in the array
\set SHOW_CONTEXT always
SELECT aq.enqueue_array('mo', ARRAY['0', '1'], options => '[{}, {"delay": "soon"}]');
SELECT aq.enqueue_array('mo', ARRAY['0', '1'], options => '[{}, {"expiration": "0"}]');

-- run_at
SELECT t.error($$SELECT aq.enqueue('mo', '0', delay => '1 s', run_at => now())$$);
SELECT t.error($$SELECT aq.enqueue('mo', '0', run_at => 'infinity')$$);
SELECT aq.enqueue('mo', '"past"', run_at => '2001-01-01') IS NOT NULL, aq.enqueue('mo', '"long past"', run_at => '-infinity') IS NOT NULL;
SELECT string_agg(payload::text, ' ') FROM aq.dequeue('mo', max_messages => 10);
BEGIN;
SELECT aq.enqueue('mo', '"later"', run_at => now() + interval '1 h', expiration => '1 h') IS NOT NULL;
SELECT aq.enqueue('mo', jsonb => '"later"', run_at => now() + interval '1 h', expiration => '1 h') IS NOT NULL;
SELECT cardinality(aq.enqueue_array('mo', ARRAY['"later"'], run_at => now() + interval '1 h', expiration => '1 h'));
COMMIT;
SELECT payload, state, count(*), bool_and(expires_at = ready_at + interval '1 h'), bool_and(ready_at - enqueue_time BETWEEN '59 min' AND '1 h')
FROM aq.messages WHERE queue_name = 'mo' AND dequeue_time IS NULL GROUP BY 1, 2;
SELECT t.drain('mo');
SELECT aq.drop_queue(q, force => true) FROM unnest(ARRAY['mo', 'mo_dead', 'mo_text', 'mo_bytea', 'mo_topic']) q;
