-- Many leased messages in one call.
\pset format unaligned
\pset tuples_only on
SELECT aq.create_queue('lc');
CREATE FUNCTION t.gets() RETURNS bigint LANGUAGE sql AS $$ SELECT gets FROM aq.latches WHERE latch = 'shard stream' $$;
-- 17,000 messages of one stream, in two partitions, and 500 each of two others
SELECT count(aq.enqueue_array('lc', ARRAY(SELECT to_jsonb(n) FROM generate_series(first, first + 499) n), priority => 1)) FROM generate_series(1, 17000, 500) first;
SELECT count(aq.enqueue_array('lc', ARRAY(SELECT to_jsonb(n) FROM generate_series(first, first + 499) n), priority => first / 20000)) FROM (VALUES (40000), (60000)) v (first);
SELECT array_agg(msgid ORDER BY hashint4(payload::text::integer)) AS ids, max(receipt) AS receipt FROM aq.dequeue('lc', max_messages => 20000, lease => '1 hour') \gset
SELECT cardinality(:'ids'::uuid[]);
-- results in the order of the ids; of a message that occurs twice the first counts; others are stale
SELECT n, result FROM aq.acknowledge('lc', (:'ids'::uuid[])[1:3] || gen_random_uuid() || (:'ids'::uuid[])[2:4], :receipt) WITH ORDINALITY r (msgid, result, n);
SELECT t.gets() AS before \gset
SELECT result, count(*), bool_and(msgid = (:'ids'::uuid[])[n + 4]) FROM aq.acknowledge('lc', (:'ids'::uuid[])[5:10004], :receipt) WITH ORDINALITY r (msgid, result, n) GROUP BY result;
-- a latch for up to a thousand messages of a partition
SELECT t.gets() - :before < 1000;
-- released together: those that have expired meanwhile fail, the others are ready again
SELECT result, count(*) FROM aq.acknowledge('lc', (:'ids'::uuid[])[10005:], :receipt) GROUP BY result;
SELECT aq.enqueue('lc', to_jsonb(n), expiration => CASE WHEN n % 3 = 0 THEN interval '3 s' END) IS NOT NULL FROM generate_series(1, 6) n;
SELECT array_agg(msgid) AS ids, max(receipt) AS receipt FROM aq.dequeue('lc', max_messages => 6, lease => '1 hour') \gset
SELECT pg_sleep(3.1);
SELECT result FROM aq.release('lc', :'ids', :receipt);
SELECT t.drain('lc');
SELECT aq.drop_queue('lc', force => true);
DROP FUNCTION t.gets;
SELECT * FROM aq.check();
