-- Many leased messages in one call, and leased messages acknowledged by the next dequeue.
\pset format unaligned
\pset tuples_only on
SELECT aq.create_queue('lc', retry_delay => '0');
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
-- one message by its id; ids of any type whose text is one, or an array
CREATE FUNCTION t.single_lease(OUT id uuid, OUT receipt bigint) LANGUAGE sql AS $$ SELECT msgid, receipt FROM aq.dequeue('lc', lease => '1 hour') $$;
SELECT t.put('lc', 1, 6);
SELECT * FROM t.single_lease() \gset
SELECT result, msgid = :'id' FROM aq.acknowledge('lc', :'id'::uuid, :receipt);
SELECT * FROM t.single_lease() \gset
SELECT result FROM aq.reject('lc', :'id'::varchar, :receipt);
SELECT * FROM t.single_lease() \gset
SELECT result FROM aq.reject('lc', '{' || :'id' || '}', :receipt);
SELECT * FROM t.single_lease() \gset
SELECT result FROM aq.acknowledge('lc', ARRAY[:'id'], :receipt);
SELECT * FROM t.single_lease() \gset
SELECT result FROM aq.extend('lc', :'id', :receipt, '2 hours');
SELECT result FROM aq.release('lc', :'id', :receipt, count => false);
SELECT result FROM aq.acknowledge('lc', :'id', :receipt);
SELECT * FROM t.single_lease() \gset
SELECT result FROM aq.end_leases('lc', :'id');
SELECT t.error($$SELECT * FROM aq.acknowledge('lc', 'x', 1)$$);
SELECT t.error($$SELECT * FROM aq.acknowledge('lc', 5, 1)$$);
SELECT t.error($$SELECT * FROM aq.acknowledge('lc', NULL, 1)$$);
SELECT t.drain('lc');
DROP FUNCTION t.single_lease;
-- with the next messages, in one statement
CREATE FUNCTION t.next(acknowledge uuid[], receipt bigint, lease interval DEFAULT '1 hour', wait interval DEFAULT NULL,
	OUT payloads text, OUT ids uuid[], OUT receipt bigint) LANGUAGE sql AS $$
	SELECT string_agg(payload::text, ' '), array_agg(msgid), max(d.receipt)
	FROM aq.dequeue('lc', max_messages => 2, lease => $3, wait => $4, acknowledge => $1, receipt => $2) d
$$;
CREATE FUNCTION t.states() RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(payload || ' ' || state, ', ' ORDER BY payload) FROM aq.messages WHERE queue_name = 'lc' AND state <> 'PROCESSED' AND length(payload) = 3
$$;
SELECT t.put('lc', 101, 107);
SELECT * FROM t.next(NULL, NULL) \gset
SELECT :'payloads', t.states();
SELECT payloads, ids AS ids2, receipt AS receipt2 FROM t.next(:'ids', :receipt) \gset
SELECT :'payloads', t.states();
-- those that are not leased any more are counted; nothing else is different
SELECT payloads FROM t.next(:'ids'::uuid[] || :'ids2', :receipt2, NULL);
SELECT payloads FROM t.next(:'ids', :receipt, NULL);
SELECT t.states();
-- no message is there: they are acknowledged, and it does not wait, so that this is committed
SELECT t.put('lc', 108);
SELECT * FROM t.next('{}', NULL, wait => '60 s') \gset
BEGIN; SELECT payloads FROM t.next(:'ids', :receipt); SELECT t.states(); ROLLBACK;
SELECT t.states();
SET statement_timeout = '30 s';
SELECT :'payloads', payloads FROM t.next(:'ids', :receipt, wait => '1 hour');
RESET statement_timeout;
SELECT t.states();
SELECT payloads FROM t.next(:'ids', :receipt, wait => '10 ms');
-- any payload type, all properties, a consumer
SELECT aq.create_queue('lct', payload_type => 'text', multiple_consumers => true, retry_delay => '0');
SELECT aq.subscribe('lct', c) FROM unnest(ARRAY['a', 'b']) c;
SELECT count(aq.enqueue('lct', 'm' || n)) FROM generate_series(1, 3) n;
SELECT payload, msgid, receipt FROM aq.dequeue('lct', as_type => null::text, consumer => 'a', lease => '1 hour') \gset
SELECT payload FROM aq.dequeue('lct', as_type => null::text, consumer => 'b', acknowledge => ARRAY[:'msgid'::uuid], receipt => :receipt);
SELECT payload, consumer_name FROM aq.dequeue_full('lct', as_type => null::text, consumer => 'a', acknowledge => ARRAY[:'msgid'::uuid], receipt => :receipt);
SELECT consumer, string_agg(payload || ' ' || state, ', ' ORDER BY payload) FROM aq.messages WHERE queue_name = 'lct' GROUP BY consumer ORDER BY consumer;
-- receipts go on when their counter is full; an empty queue uses them up, too
SELECT t.put('lc', 109);
SELECT receipt FROM aq.dequeue('lc', lease => '1 hour') \gset
DO $$ BEGIN FOR i IN 1 .. 66000 LOOP PERFORM FROM aq.dequeue('lc', lease => '1 hour'); END LOOP; END $$;
SELECT t.put('lc', 110);
SELECT receipt - :receipt > 66000, receipt >> 16 > :receipt >> 16 FROM aq.dequeue('lc', lease => '1 hour');
-- calls of one transaction with the same receipt have their own times and errors
SELECT aq.create_queue('lcd', payload_type => 'text');
SELECT count(aq.enqueue('lcd', 'm' || n)) FROM generate_series(1, 4) n;
SELECT array_agg(msgid ORDER BY payload) AS ids, max(receipt) AS receipt FROM aq.dequeue('lcd', as_type => null::text, lease => '1 hour', max_messages => 4) \gset
BEGIN;
SELECT result FROM aq.extend('lcd', (:'ids'::uuid[])[1:1], :receipt, '2 hours');
SELECT result FROM aq.extend('lcd', (:'ids'::uuid[])[2:2], :receipt, '4 hours');
SELECT result FROM aq.release('lcd', (:'ids'::uuid[])[3:3], :receipt, delay => '0', error => 'one');
SELECT result FROM aq.release('lcd', (:'ids'::uuid[])[4:4], :receipt, delay => '0', error => 'another');
COMMIT;
SELECT payload, state, round(extract(epoch FROM leased_until - now()) / 3600) AS hours, last_error FROM aq.messages WHERE queue_name = 'lcd' ORDER BY payload;
SELECT aq.drop_queue('lcd', force => true);
-- what cannot be
SELECT t.error($$ SELECT aq.dequeue('lc', acknowledge => '{00000000-0000-0000-0000-000000000000}') $$);
SELECT t.error($$ SELECT aq.dequeue('lc', acknowledge => '{null}', receipt => 1) $$);
SELECT t.error($$ SELECT aq.dequeue('lc', receipt => 1) $$);
SELECT t.error($$ SELECT aq.dequeue('lc', acknowledge => '{}', mode => 'browse') $$);
SELECT aq.drop_queue('lct', force => true);
DROP FUNCTION t.next, t.states;
SELECT aq.drop_queue('lc', force => true);
DROP FUNCTION t.gets;
SELECT * FROM aq.check();
