-- Several consumers: subscribers and recipients, each with its own state per message.
\pset format unaligned
\pset tuples_only on
SELECT aq.create_queue('n', multiple_consumers => true, retry_delay => '0');
-- no subscriber: no id, and nothing is stored; a session is told so once for each topic
SELECT aq.enqueue('n', '1') IS NULL, aq.enqueue_array('n', ARRAY['1', '2']), aq.enqueue('n', '1', recipients => '{}') IS NULL;
SELECT count(*) FROM aq.messages WHERE queue_name = 'n';
SELECT aq.create_queue('n_empty', multiple_consumers => true);
SELECT aq.enqueue_array('n_empty', ARRAY[]::text[]);
SELECT aq.enqueue('n_empty', '1', recipients => '{guest}') IS NULL;
SELECT aq.subscribe('n_empty', 'ann', 'priority = 0');
SELECT aq.enqueue('n_empty', '1') IS NULL;
SELECT aq.unsubscribe('n_empty', 'ann');
SELECT aq.enqueue('n_empty', '1', delivery_mode => 'buffered') IS NULL;
SELECT aq.enqueue('n_empty', '1') IS NULL;
SELECT aq.drop_queue('n_empty', force => true);
SELECT aq.subscribe('n', 'ann');
SELECT aq.subscribe('n', 'bob', comment => 'second');
SELECT consumer, kind, rule, comment FROM aq_internal.subscriber ORDER BY 1;
SELECT t.put('n', 1, 3);
-- later subscribers get nothing old
SELECT aq.subscribe('n', 'cid');
SELECT t.drain('n', 'cid') IS NULL;
SELECT t.drain('n', 'ann');
SELECT t.drain('n', 'ann') IS NULL;
SELECT t.look('n', 'bob');
SELECT t.put('n', 4);
SELECT t.drain('n', 'ann'), t.drain('n', 'bob'), t.drain('n', 'cid');
-- consumer missing, unknown, oddly spelled
SELECT t.error($$SELECT * FROM aq.dequeue('n')$$);
SELECT t.error($$SELECT * FROM aq.browse('n')$$);
SELECT t.error($$CALL aq.wait('n', NULL, '0', NULL)$$);
SELECT count(*) FROM aq.dequeue('n', 'nobody');
SELECT count(*) FROM aq.dequeue('n', '');
SELECT count(*) FROM aq.dequeue('n', 'ANN');
-- recipients: need not be subscribers, replace them
SELECT aq.enqueue('n', '5', recipients => ARRAY['bob', 'guest']) IS NOT NULL;
SELECT t.drain('n', 'ann') IS NULL, t.drain('n', 'bob'), t.drain('n', 'guest');
SELECT aq.enqueue('n', '6') IS NOT NULL;
SELECT t.drain('n', 'guest') IS NULL, t.drain('n', 'ann'), t.drain('n', 'bob'), t.drain('n', 'cid');
SELECT aq.enqueue('n', '7', recipients => '{}') IS NOT NULL;			-- an empty list is no list
SELECT t.drain('n', 'ann'), t.drain('n', 'bob'), t.drain('n', 'cid');
SELECT t.error($$SELECT aq.enqueue('n', '8', recipients => ARRAY['x', 'x'])$$);
SELECT t.error($$SELECT aq.enqueue('n', '8', recipients => ARRAY['x', NULL])$$);
SELECT t.error($$SELECT aq.enqueue('n', '8', recipients => ARRAY['x', ''])$$);
SELECT split_part(t.error($$SELECT aq.enqueue('n', '8', recipients => (SELECT array_agg('r' || i) FROM generate_series(1, 1025) i))$$), ' | ', 1);
SELECT t.error($$SELECT aq.enqueue('n', '8', recipients => ARRAY[repeat('x', 300)])$$);
-- array to recipients
SELECT cardinality(aq.enqueue_array('n', ARRAY['9', '10'], recipients => ARRAY['guest']));
SELECT t.drain('n', 'guest');
-- priority, modes and choice per consumer
SELECT aq.enqueue('n', '"low"', priority => 9) IS NOT NULL, aq.enqueue('n', '"high"', priority => 0, correlation => 'h') IS NOT NULL;
SELECT t.drain('n', 'ann');
SELECT payload FROM aq.dequeue('n', 'bob', correlation => 'h');
BEGIN;
SELECT payload FROM aq.dequeue('n', 'cid', mode => 'locked');
SELECT payload FROM aq.dequeue('n', 'bob');
ROLLBACK;
SELECT payload, attempts FROM aq.dequeue('n', 'bob');		-- attempts are per consumer
SELECT payload, attempts FROM aq.dequeue('n', 'cid', max_messages => 10);
-- consumer_name in the full form
SELECT aq.enqueue('n', '11') IS NOT NULL;
SELECT payload, consumer_name FROM aq.dequeue_full('n', NULL::jsonb, 'ann');
SELECT t.drain('n', 'bob'), t.drain('n', 'cid');
-- subscribers: twice, unknown, unsubscribe with messages waiting
SELECT t.error($$SELECT aq.subscribe('n', 'ann')$$);
SELECT t.error($$SELECT aq.subscribe('n', '')$$);
SELECT t.error($$SELECT aq.subscribe('n', NULL)$$);
SELECT t.error($$SELECT aq.subscribe('no such queue', 'ann')$$);
SELECT t.error($$SELECT aq.unsubscribe('n', 'nobody')$$);
SELECT aq.enqueue('n', '12', recipients => '{guest}') IS NOT NULL;
SELECT t.error($$SELECT aq.alter_subscriber('n', 'guest', 'true')$$);
SELECT t.drain('n', 'guest');
SELECT t.error($$SELECT aq.alter_subscriber('n', 'nobody', 'true')$$);
SELECT aq.create_queue('n1', retry_delay => '0');
SELECT t.error($$SELECT aq.subscribe('n1', 'ann')$$);
SELECT aq.drop_queue('n1');
SELECT t.put('n', 12, 13);
SELECT aq.unsubscribe('n', 'cid');
SELECT count(*) FROM aq.dequeue('n', 'cid');
SELECT t.drain('n', 'ann'), t.drain('n', 'bob');
-- the same name again gets new messages only
SELECT aq.subscribe('n', 'cid');
SELECT count(*) FROM aq.dequeue('n', 'cid');
SELECT t.put('n', 14);
SELECT t.drain('n', 'ann'), t.drain('n', 'bob'), t.drain('n', 'cid');
-- a recipient that subscribes later
SELECT aq.enqueue('n', '15', recipients => ARRAY['guest']) IS NOT NULL;
SELECT aq.subscribe('n', 'guest');
SELECT t.put('n', 16);
SELECT t.drain('n', 'guest');
SELECT t.drain('n', 'ann'), t.drain('n', 'bob'), t.drain('n', 'cid');
-- unsubscribe in a transaction that is rolled back
SELECT t.put('n', 17);
BEGIN;
SELECT aq.unsubscribe('n', 'ann');
SELECT count(*) FROM aq.dequeue('n', 'ann');
ROLLBACK;
SELECT t.drain('n', 'ann');
SELECT t.drain('n', 'bob'), t.drain('n', 'cid'), t.drain('n', 'guest');
-- everything is consumed by everybody: the queue is empty
SELECT aq.drop_queue('n');
-- many subscribers
SELECT aq.create_queue('n', multiple_consumers => true, retry_delay => '0');
SELECT count(aq.subscribe('n', 'c' || i)) FROM generate_series(1, 100) i;
SELECT t.put('n', 1, 3);
SELECT bool_and(t.drain('n', 'c' || i) = '1 2 3') FROM generate_series(1, 100) i;
SELECT aq.drop_queue('n');
-- a new recipient in a transaction that has changed the definition itself
SELECT aq.create_queue('n', multiple_consumers => true, retry_delay => '0');
BEGIN;
SELECT aq.subscribe('n', 'ann');
SELECT aq.enqueue('n', '1', recipients => '{guest}') IS NOT NULL;
COMMIT;
SELECT t.drain('n', 'guest'), t.drain('n', 'ann');
SELECT aq.drop_queue('n');
