-- Order: by priority, then as enqueued; rollback and delay do not change the place.
\pset format unaligned
\pset tuples_only on
SELECT aq.create_queue('o', retry_delay => '0');
SELECT t.put('o', 1, 10);
SELECT t.drain('o');
-- priorities 0 (first) to 9 (last); the default is 1
SELECT count(aq.enqueue('o', to_jsonb(format('p%s-%s', p, n)), priority => p)) FROM generate_series(1, 2) n, generate_series(9, 0, -1) p;
SELECT aq.enqueue('o', '"default"') IS NOT NULL;
SELECT t.look('o');
SELECT t.drain('o');
-- one at a time gives the same order as all at once
SELECT count(aq.enqueue('o', to_jsonb(n), priority => 9 - n % 3)) FROM generate_series(1, 9) n;
SELECT payload FROM aq.dequeue('o');
SELECT payload FROM aq.dequeue('o');
SELECT payload FROM aq.dequeue('o', max_messages => 3);
SELECT payload FROM aq.dequeue('o', max_messages => 100);
-- a more urgent message that comes later goes first
SELECT t.put('o', 1, 2);
SELECT aq.enqueue('o', '"urgent"', priority => 0) IS NOT NULL;
SELECT t.drain('o');
-- within a transaction of its own messages, too
BEGIN;
SELECT aq.enqueue('o', '"later"', priority => 5) IS NOT NULL, aq.enqueue('o', '"sooner"', priority => 2) IS NOT NULL;
SELECT t.drain('o');
ROLLBACK;
-- limits
SELECT t.put('o', 1, 5);
SELECT t.error($$SELECT count(*) FROM aq.dequeue('o', max_messages => 0)$$);
SELECT t.error($$SELECT count(*) FROM aq.dequeue('o', max_messages => -1)$$);
SELECT t.error($$SELECT count(*) FROM aq.dequeue('o', max_messages => NULL)$$);
SELECT t.drain('o');
-- LIMIT in the query does not un-take what the call took
SELECT t.put('o', 1, 3);
BEGIN;
SELECT payload FROM aq.dequeue('o', max_messages => 3) LIMIT 1;
SELECT t.look('o') IS NULL;
ROLLBACK;
SELECT t.drain('o');
-- order across several tables of the queue and several transactions
DO $$ BEGIN FOR i IN 1..40 LOOP PERFORM aq.enqueue_array('o', (SELECT array_agg(((i - 1) * 1000 + n)::text ORDER BY n) FROM generate_series(1, 1000) n)); COMMIT; END LOOP; END $$;
SELECT count(*), bool_and(payload::int = n) FROM (SELECT payload, row_number() OVER () AS n FROM aq.dequeue('o', max_messages => 25000)) s;
SELECT count(*), bool_and(payload::int = 25000 + n) FROM (SELECT payload, row_number() OVER () AS n FROM aq.dequeue('o', max_messages => 25000)) s;
SELECT aq.drop_queue('o');
-- one shard: the order of calls for everybody; several: per session
SELECT aq.create_queue('o', shards => 1, retry_delay => '0');
SELECT t.put('o', 1, 100);
\c
\pset format unaligned
\pset tuples_only on
SELECT t.put('o', 101, 200);
SELECT count(*), bool_and(payload::int = n) FROM (SELECT payload, row_number() OVER () AS n FROM aq.dequeue('o', max_messages => 1000)) s;
SELECT aq.drop_queue('o');
