-- Immediate visibility in schema aq: a transaction of its own, also inside an open one.
\pset format unaligned
\pset tuples_only on
CREATE TYPE t.ride AS (name text, fare numeric);
SELECT aq.create_queue('im');
SELECT aq.create_queue('im_rides', payload_type => 't.ride');
SELECT aq.create_queue('im_text', payload_type => 'text');
SELECT aq.create_queue('im_topic', multiple_consumers => true);

-- what is enqueued stays when the caller rolls back; what is dequeued is gone
BEGIN;
SELECT aq.enqueue('im', '{"n": 1}', correlation => 'c', properties => '{"p": 1}', visibility => 'immediate') IS NOT NULL;
SELECT aq.enqueue('im', jsonb => '{"n": 2}', visibility => 'immediate') IS NOT NULL;
SELECT aq.enqueue('im', '{"goes": true}', visibility => 'on_commit') IS NOT NULL;
SELECT cardinality(aq.enqueue_array('im', ARRAY['{"n": 3}', '{"n": 4}'], options => '[{"correlation": "d"}, null]', visibility => 'immediate'));
SELECT aq.enqueue('im_rides', ROW('Ada', 12.5)::t.ride, visibility => 'immediate') IS NOT NULL;
SELECT aq.enqueue('im_rides', '(Bob,3)', visibility => 'immediate') IS NOT NULL;
SELECT cardinality(aq.enqueue_array('im_rides', ARRAY[ROW('Eve', 1), NULL]::t.ride[], visibility => 'immediate'));
SELECT aq.enqueue('im_text', repeat('x', 300000), visibility => 'immediate') IS NOT NULL;
ROLLBACK;
BEGIN;
SELECT payload, correlation, properties, attempts FROM aq.dequeue('im', visibility => 'immediate');
SELECT payload FROM aq.dequeue('im', condition => 'payload->>''n'' = ''3''', visibility => 'immediate');
SELECT payload, message_delivery_mode FROM aq.dequeue_full('im_rides', NULL::t.ride, max_messages => 2, visibility => 'immediate');
SELECT (payload).name FROM aq.dequeue('im_rides', NULL::t.ride, max_messages => 10, visibility => 'immediate');
SELECT length(payload) FROM aq.dequeue('im_text', as_type => NULL::text, visibility => 'immediate');
ROLLBACK;
-- the session's position
BEGIN;
SELECT aq.enqueue('im', '{"n": 5}', visibility => 'immediate') IS NOT NULL;
SELECT payload FROM aq.dequeue('im', navigation => 'first_message', visibility => 'immediate');
SELECT payload FROM aq.dequeue('im', navigation => 'next_message', visibility => 'immediate');
SELECT payload FROM aq.dequeue('im', navigation => 'next_message', visibility => 'immediate');
ROLLBACK;
SELECT count(*) FROM aq.browse('im');

-- a topic: null if no subscriber wants it; the NOTICE of a helper is not passed on
SET client_min_messages = warning;
SELECT aq.enqueue('im_topic', '{"n": 1}', visibility => 'immediate') IS NULL;
RESET client_min_messages;
SELECT aq.subscribe('im_topic', 'all');
SELECT aq.enqueue('im_topic', '{"n": 2}', visibility => 'immediate') IS NULL;
SELECT aq.enqueue('im_topic', '{"n": 3}', recipients => ARRAY['one'], visibility => 'immediate') IS NULL;
SELECT payload FROM aq.dequeue('im_topic', 'all', max_messages => 5, visibility => 'immediate');
SELECT payload FROM aq.dequeue('im_topic', 'one', max_messages => 5, visibility => 'immediate');

-- it sees what is committed, not what its session is about to commit; a wait ends
BEGIN;
SELECT aq.enqueue('im', '{"n": 6}') IS NOT NULL;
SELECT count(*) FROM aq.dequeue('im', wait => '10 ms', visibility => 'immediate');
COMMIT;
SELECT payload FROM aq.dequeue('im', wait => '1 min', visibility => 'immediate');

-- a browse takes nothing, so nothing is immediate about it
SELECT aq.enqueue('im', '{"n": 7}') IS NOT NULL;
SELECT payload FROM aq.dequeue('im', mode => 'browse', visibility => 'immediate');
SELECT payload IS NULL FROM aq.dequeue('im', mode => 'remove_nodata', visibility => 'immediate');

-- what is refused
SELECT t.error($$SELECT aq.enqueue('im', '1', visibility => 'soon')$$);
SELECT t.error($$SELECT aq.enqueue('no_such', '1', visibility => 'immediate')$$);
SELECT t.error($$SELECT aq.enqueue('im', 'no json', visibility => 'immediate')$$);
SELECT t.error($$SELECT * FROM aq.dequeue('im', mode => 'locked', visibility => 'immediate')$$);
SELECT t.error($$SELECT * FROM aq.dequeue('im', lease => '1 min', visibility => 'immediate')$$);
SELECT t.error($$SELECT * FROM aq.dequeue('im', acknowledge => '{00000000-0000-0000-0000-000000000000}', receipt => 1, visibility => 'immediate')$$);
SELECT t.error($$SELECT * FROM aq.dequeue('im_rides', visibility => 'immediate')$$);
BEGIN READ ONLY;
SELECT t.error($$SELECT aq.enqueue('im', '1', visibility => 'immediate')$$);
SELECT t.error($$SELECT aq.enqueue_array('im', '{1}', visibility => 'immediate')$$);
SELECT t.error($$SELECT * FROM aq.dequeue('im', visibility => 'immediate')$$);
ROLLBACK;

SELECT aq.drop_queue(q, force => true) FROM unnest(ARRAY['im', 'im_rides', 'im_text', 'im_topic']) q;
DROP TYPE t.ride;
