-- Queues of the classic store, one consumer: put and take in all modes, order, conditions, transactions.
\pset format unaligned
\pset tuples_only on
SELECT aq.create_queue_table('t.fifo');
SELECT aq.create_queue('c.fifo', queue_table => 't.fifo', retry_delay => '0');
SELECT t.put('c.fifo', 1, 5);
SELECT t.look('c.fifo');
SELECT payload, priority, attempts FROM aq.dequeue('c.fifo');
SELECT t.drain('c.fifo');
SELECT t.drain('c.fifo') IS NULL;
-- without a sort list priorities are ignored
SELECT aq.enqueue('c.fifo', to_jsonb(p), priority => p) IS NOT NULL FROM unnest('{5,3,1}'::int[]) p;
SELECT t.drain('c.fifo');
-- order by priority, any integer; equal ones in the order of the calls
SELECT aq.create_queue_table('t.prio', sort_list => 'priority, enq_time');
SELECT aq.create_queue('c.prio', queue_table => 't.prio', retry_delay => '0');
SELECT aq.enqueue('c.prio', to_jsonb(p), priority => p) IS NOT NULL FROM unnest('{5,-30,1,2000000000,1}'::int[]) p;
SELECT t.drain('c.prio');
-- a rollback gives back at the old place, and counts
SELECT t.put('c.fifo', 1, 3);
BEGIN;
SELECT payload FROM aq.dequeue('c.fifo');
ROLLBACK;
SELECT payload, attempts FROM aq.dequeue('c.fifo', max_messages => 8);
-- savepoints, on both sides
BEGIN;
SELECT t.put('c.fifo', 4);
SAVEPOINT s;
SELECT t.put('c.fifo', 5);
SELECT t.drain('c.fifo');
ROLLBACK TO s;
SELECT t.look('c.fifo');
COMMIT;
SELECT payload, attempts FROM aq.dequeue('c.fifo', max_messages => 100);
-- by id, by correlation, by condition
SELECT aq.enqueue('c.fifo', to_jsonb(n), correlation => 'c' || n % 2) AS id FROM generate_series(1, 6) n OFFSET 5 \gset
SELECT payload FROM aq.dequeue('c.fifo', msgid => :'id');
SELECT payload FROM aq.dequeue('c.fifo', correlation => 'c0');
SELECT payload FROM aq.dequeue('c.fifo', condition => 'payload::int > 3', max_messages => 10);
SELECT t.drain('c.fifo');
SELECT aq.enqueue('c.prio', to_jsonb(n), priority => 10 - n) AS id FROM generate_series(1, 4) n OFFSET 3 \gset
SELECT payload FROM aq.dequeue('c.prio', msgid => :'id');
SELECT count(*) FROM aq.dequeue('c.prio', msgid => :'id');
SELECT t.drain('c.prio');
-- modes
SELECT t.put('c.fifo', 1, 3);
SELECT payload FROM aq.dequeue('c.fifo', mode => 'browse', max_messages => 10);
BEGIN;
SELECT payload FROM aq.dequeue('c.fifo', mode => 'locked');
SELECT payload, msgid AS locked_id FROM aq.dequeue('c.fifo', mode => 'locked') \gset
SELECT :'payload';
SELECT payload IS NULL FROM aq.dequeue('c.fifo', mode => 'remove_nodata', msgid => :'locked_id');
COMMIT;
SELECT payload, attempts FROM aq.dequeue('c.fifo', max_messages => 100);
-- one statement enqueues and dequeues
SELECT payload FROM (SELECT aq.enqueue('c.fifo', '"own"') OFFSET 0) e, LATERAL aq.dequeue('c.fifo', max_messages => CASE WHEN e IS NULL THEN 1 ELSE 1 END);
-- arrays, long payloads, null
SELECT array_length(aq.enqueue_array('c.fifo', ARRAY(SELECT to_jsonb(n) FROM generate_series(1, 2500) n)), 1);
SELECT count(*), sum(payload::int) FROM aq.dequeue('c.fifo', max_messages => 3000);
SELECT aq.enqueue('c.fifo', to_jsonb(string_agg(md5(n::text), ''))) IS NOT NULL FROM generate_series(1, 3000) n;
SELECT length(payload #>> '{}') FROM aq.dequeue('c.fifo');
SELECT aq.enqueue('c.fifo', NULL::jsonb) IS NOT NULL;
SELECT payload IS NULL FROM aq.dequeue('c.fifo');
-- purge, with a condition and all
SELECT t.put('c.fifo', 1, 10);
SELECT aq.purge_queue('c.fifo', condition => 'payload::int % 2 = 0');
SELECT t.look('c.fifo');
SELECT aq.purge_queue('c.fifo');
SELECT t.look('c.fifo') IS NULL;
-- what the views show
SELECT t.put('c.fifo', 1);
SELECT aq.enqueue('c.fifo', '2', delay => '1 day') IS NOT NULL;
BEGIN;
SELECT payload FROM aq.dequeue('c.fifo', mode => 'locked');
SELECT queue_name, consumer, state, priority, payload FROM aq.messages WHERE queue_name = 'c.fifo' ORDER BY msgid;
ROLLBACK;
SELECT state, payload FROM aq.messages WHERE queue_name = 'c.fifo' ORDER BY msgid;
SELECT queue_name, payload_type, multiple_consumers, queue_table, queue_type, enqueue_enabled, dequeue_enabled
	FROM aq.queues WHERE queue_table = 't.fifo' ORDER BY queue_name;
SELECT consumer, enqueued - dequeued, lag FROM aq.subscribers WHERE queue_name = 'c.fifo';
SELECT aq.purge_queue('c.fifo');
-- a composite payload
CREATE TYPE t.point AS (x int, y int);
SELECT aq.create_queue_table('t.points', 't.point');
SELECT aq.create_queue('c.points', queue_table => 't.points', retry_delay => '0');
SELECT aq.enqueue('c.points', row(n, n * n)::t.point) IS NOT NULL FROM generate_series(1, 3) n;
SELECT (payload).y FROM aq.dequeue('c.points', as_type => null::t.point, condition => 'y = 4');
SELECT aq.drop_queue('c.points', force => true);
SELECT aq.drop_queue_table('t.points');
-- definitions and their errors
SELECT t.error($$SELECT aq.create_queue_table('t.fifo')$$);
SELECT t.error($$SELECT aq.create_queue_table('nowhere.x')$$);
SELECT t.error($$SELECT aq.create_queue_table('t.x', sort_list => 'payload')$$);
SELECT t.error($$SELECT aq.create_queue_table('t.x', 'int')$$);
SELECT t.error($$SELECT aq.create_queue_table('t.aq$x')$$);
SELECT t.error($$SELECT aq.create_queue_table(NULL)$$);
SELECT t.error($$SELECT aq.create_queue('c.x', queue_table => 't.x')$$);
SELECT t.error($$SELECT aq.create_queue('c.x', queue_table => 't.fifo', shards => 2)$$);
SELECT t.error($$SELECT aq.create_queue('c.x', 'text', queue_table => 't.fifo')$$);
SELECT t.error($$SELECT aq.create_queue('c.x', queue_table => 't.fifo', multiple_consumers => true)$$);
SELECT t.error($$SELECT aq.create_queue('c.x', multiple_consumers => true, queue_type => 'exception')$$);
SELECT t.error($$SELECT aq.create_queue('c.x', queue_table => 't.fifo', queue_type => 'other')$$);
SELECT t.error($$SELECT aq.enqueue('t.aq$_fifo_e', '1')$$);
SELECT t.error($$SELECT aq.start_queue('t.aq$_fifo_e')$$);
SELECT t.error($$SELECT * FROM aq.dequeue('t.aq$_fifo_e')$$);
SELECT aq.start_queue('t.aq$_fifo_e', enqueue => false);
SELECT count(*) FROM aq.dequeue('t.aq$_fifo_e');
SELECT t.error($$SELECT aq.drop_queue_table('t.nothing')$$);
SELECT t.error($$SELECT aq.drop_queue_table('t.fifo')$$);
SELECT t.put('c.fifo', 1);
SELECT t.error($$SELECT aq.drop_queue('c.fifo')$$);
CREATE ROLE regress_aq_other;
SET ROLE regress_aq_other;
SELECT t.error($$SELECT aq.create_queue_table('t.x')$$);
SELECT t.error($$SELECT aq.drop_queue_table('t.fifo', force => true)$$);
RESET ROLE;
DROP ROLE regress_aq_other;
SELECT aq.drop_queue_table('t.fifo', force => true);
SET search_path = t;
SELECT aq.create_queue_table('here', comment => 'in the current schema');
RESET search_path;
SELECT schema_name, table_name, sort_list, multiple_consumers, message_grouping, owner, comment FROM aq_internal.queue_table ORDER BY 2;
BEGIN;
SELECT aq.create_queue_table('t.undone');
SELECT aq.create_queue('c.undone', queue_table => 't.undone', retry_delay => '0');
SELECT t.put('c.undone', 1, 3);
SELECT t.drain('c.undone');
ROLLBACK;
SELECT aq.drop_queue_table('t.here'), aq.drop_queue_table('t.prio', force => true);
SELECT count(*) FROM aq_internal.queue_table;
SELECT count(*) FROM pg_class WHERE relnamespace = 'aq_data'::regnamespace AND relname ~ '^[tc][0-9]';
-- what could be dequeued now is counted for each consumer
SELECT aq.create_queue_table('t.ready', multiple_consumers => true);
SELECT aq.create_queue('c.ready', queue_table => 't.ready', retry_delay => '0');
SELECT aq.subscribe('c.ready', c) FROM unnest('{a,b}'::text[]) c;
SELECT t.put('c.ready', 1, 5);
SELECT aq.enqueue('c.ready', '6', delay => '1 hour') IS NOT NULL;
SELECT count(*) FROM aq.dequeue('c.ready', 'a', max_messages => 2);
BEGIN;
SELECT count(*) FROM aq.dequeue('c.ready', 'b', max_messages => 4);
SELECT consumer, lag, ready FROM aq.subscribers WHERE queue_name = 'c.ready' ORDER BY 1;
ROLLBACK;
SELECT aq.drop_queue_table('t.ready', force => true);
