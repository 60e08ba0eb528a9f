-- Leases: dequeued for a time, and acknowledged, extended, released or rejected by a later transaction.
\pset format unaligned
\pset tuples_only on
SELECT aq.create_queue('le_dead', retry_delay => '0');
SELECT aq.create_queue('le', max_retries => 2, exception_queue => 'le_dead', retry_delay => '0');
CREATE FUNCTION t.leased(queue_name text, lease interval, number integer DEFAULT 100, consumer text DEFAULT NULL,
	OUT payloads text, OUT attempts text, OUT ids uuid[], OUT receipt bigint) LANGUAGE sql AS $$
	SELECT string_agg(payload #>> '{}', ' '), string_agg(attempts::text, ' '), array_agg(msgid), max(receipt)
	FROM aq.dequeue($1, consumer => $4, max_messages => $3, lease => $2)
$$;
CREATE FUNCTION t.states(queue_name text) RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(payload || ' ' || state || ' ' || attempts, ', ' ORDER BY payload, consumer) FROM aq.messages m WHERE m.queue_name = $1 AND state NOT IN ('PROCESSED', 'EXPIRED')
$$;
-- of a queue in a queue table, aq.metrics() shows them only when the worker has counted
CREATE FUNCTION t.numbers(queue_name text) RETURNS text LANGUAGE sql AS $$
	SELECT format('lag %s, ready %s, delayed %s, leased %s', m.lag, m.ready, m.delayed, m.leased)
	FROM aq.queues q, LATERAL (SELECT m.lag, m.ready, m.delayed, m.leased FROM aq.metrics() m WHERE m.queue_name = $1 AND q.queue_table IS NULL
		UNION ALL SELECT count(*), count(*) FILTER (WHERE m.state = 'READY'), count(*) FILTER (WHERE m.state = 'WAITING'),
			count(*) FILTER (WHERE m.state = 'LEASED') FROM aq.messages m WHERE m.queue_name = $1 AND q.queue_table IS NOT NULL AND m.state <> 'EXPIRED') m
	WHERE q.queue_name = $1
$$;
-- without a lease there is no receipt
SELECT t.put('le', 1, 3);
SELECT payload, receipt IS NULL FROM aq.dequeue('le');
-- a lease: taken at the commit, seen by no other dequeue, counted as an attempt
SELECT payloads, attempts, ids, receipt > 0 AS has_receipt, receipt FROM t.leased('le', '1 hour') \gset
SELECT :'payloads', :'attempts', :'has_receipt';
SELECT t.look('le'), t.drain('le'), t.states('le');
CALL aq.wait('le', NULL, '0', NULL);
SELECT t.numbers('le');
-- a wrong receipt, a wrong id, an id of another queue
SELECT result FROM aq.acknowledge('le', :'ids', :receipt + 1);
SELECT result FROM aq.acknowledge('le', ARRAY[gen_random_uuid()], :receipt);
SELECT result FROM aq.acknowledge('le_dead', :'ids', :receipt);
SELECT result FROM aq.acknowledge('le', '{}', :receipt);
-- an acknowledgement that is rolled back, also to a savepoint; a second one meanwhile
BEGIN; SELECT result FROM aq.acknowledge('le', :'ids', :receipt); SELECT result FROM aq.acknowledge('le', :'ids', :receipt); ROLLBACK;
BEGIN; SAVEPOINT a; SELECT result FROM aq.acknowledge('le', :'ids', :receipt); ROLLBACK TO a; SELECT result FROM aq.extend('le', :'ids', :receipt, '2 hours'); COMMIT;
SELECT t.states('le');
-- one of two is acknowledged, and comes no more
SELECT result FROM aq.acknowledge('le', (:'ids'::uuid[])[1:1], :receipt);
SELECT result FROM aq.acknowledge('le', :'ids', :receipt);
SELECT t.states('le'), t.drain('le');
-- given back: ready again, at its place; the attempt counts, or not
SELECT t.put('le', 4, 6);
SELECT payloads, attempts, ids, receipt FROM t.leased('le', '1 hour', 2) \gset
SELECT :'payloads', :'attempts';
SELECT result FROM aq.release('le', :'ids', :receipt);
SELECT result FROM aq.release('le', :'ids', :receipt);
SELECT t.look('le');
SELECT payloads, attempts, ids, receipt FROM t.leased('le', '1 hour', 8) \gset
SELECT :'payloads', :'attempts';
SELECT result FROM aq.release('le', :'ids', :receipt, count => false);
SELECT t.states('le');
-- after a delay
SELECT ids, receipt FROM t.leased('le', '1 hour', 1) \gset
SELECT result FROM aq.release('le', :'ids', :receipt, delay => '1 hour', count => false);
SELECT t.look('le'), t.states('le');
SELECT t.numbers('le');
SELECT payload, attempts FROM aq.dequeue('le', msgid => (:'ids'::uuid[])[1]);
SELECT t.drain('le');
-- the limit of attempts: three leases, and two are allowed
SELECT t.put('le', 7);
SELECT ids, receipt FROM t.leased('le', '1 hour') \gset
SELECT result FROM aq.release('le', :'ids', :receipt, error => 'first');
SELECT ids, receipt FROM t.leased('le', '1 hour') \gset
SELECT result FROM aq.release('le', :'ids', :receipt, error => 'second');
SELECT ids, receipt FROM t.leased('le', '1 hour') \gset
SELECT result FROM aq.release('le', :'ids', :receipt, delay => '1 hour', error => repeat('long', 1000));
CALL aq.wait('le_dead', NULL, '60 s', NULL);
SELECT t.drain('le_dead'), t.drain('le') IS NULL;
-- rejected at once
SELECT t.put('le', 8);
SELECT ids, receipt FROM t.leased('le', '1 hour') \gset
BEGIN; SELECT result FROM aq.reject('le', :'ids', :receipt); ROLLBACK;
SELECT t.states('le');
SELECT result FROM aq.reject('le', :'ids', :receipt, error => 'bad');
CALL aq.wait('le_dead', NULL, '60 s', NULL);
SELECT t.drain('le_dead');
-- the time is over: ready by itself, waiters are woken, the old receipt is stale
SELECT t.put('le', 9, 10);
SELECT ids, receipt FROM t.leased('le', '3 s', 1) \gset
SELECT payload FROM aq.dequeue('le');
CALL aq.wait('le', NULL, '60 s', NULL);
SELECT result FROM aq.acknowledge('le', :'ids', :receipt);
SELECT payload, attempts FROM aq.dequeue('le');
-- over the limit when it is over
SELECT t.put('le', 11);
SELECT aq.alter_queue('le', max_retries => 0);
SELECT payloads FROM t.leased('le', '100 ms', 1);
CALL aq.wait('le_dead', NULL, '60 s', NULL);
SELECT t.drain('le_dead'), t.drain('le') IS NULL;
SELECT aq.alter_queue('le', max_retries => 2);
-- a dequeue with a lease that is rolled back is an attempt, once
SELECT t.put('le', 12);
BEGIN; SELECT payloads FROM t.leased('le', '1 hour'); ROLLBACK;
BEGIN; SAVEPOINT a; SELECT payloads FROM t.leased('le', '1 hour'); ROLLBACK TO a; COMMIT;
SELECT payload, attempts FROM aq.dequeue('le', wait => '60 s');
-- own messages are leased after the commit
BEGIN; SELECT t.put('le', 13); SELECT payloads FROM t.leased('le', '1 hour'); COMMIT;
-- acknowledge and take the next in one statement
SELECT t.put('le', 14);
SELECT payloads, ids, receipt FROM t.leased('le', '1 hour', 1) \gset
SELECT a.result, d.payload, d.receipt <> :receipt FROM aq.acknowledge('le', :'ids', :receipt) a, aq.dequeue('le', lease => '1 hour') d;
SELECT t.states('le');
-- CALL aq.receive leases, too
SELECT t.put('le', 17);
CALL aq.receive('le', timeout => '60 s', lease => '1 hour') \gset
SELECT m->'payload', a.result FROM jsonb_array_elements(:'messages') m, aq.acknowledge('le', ARRAY[(m->>'msgid')::uuid], (m->>'receipt')::bigint) a;
-- expiration is checked when the lease ends
SELECT aq.enqueue('le', '"late"', expiration => '4 s') IS NOT NULL;
SELECT payloads, ids, receipt FROM t.leased('le', '1 hour') \gset
SELECT pg_sleep(4.2);
SELECT result FROM aq.release('le', :'ids', :receipt);
SELECT coalesce(:'payloads', 'none');
CALL aq.wait('le_dead', NULL, '60 s', NULL);
SELECT t.drain('le_dead');
-- purge leaves it, drop asks for force, stop does not refuse its end
SELECT aq.purge_queue('le');
SELECT t.error($$ SELECT aq.drop_queue('le') $$);
SELECT t.put('le', 15);
SELECT ids, receipt FROM t.leased('le', '1 hour') \gset
SELECT aq.stop_queue('le');
SELECT t.error($$ SELECT aq.dequeue('le', lease => '1 s') $$);
SELECT result FROM aq.acknowledge('le', :'ids', :receipt);
SELECT aq.start_queue('le');
-- who holds it, since when, until when; the latest error
SELECT t.put('le', 18, 19);
SET application_name = 'worker 7';
SELECT ids, receipt FROM t.leased('le', '1 hour') \gset
SET application_name = 'another';
CREATE VIEW t.holds AS SELECT payload, state, clock_timestamp() - leased_since BETWEEN '0' AND '1 minute' AS since,
	leased_until - clock_timestamp() BETWEEN '50 minutes' AND '3 hours' AS until, leased_by, attempts, last_error
FROM aq.messages WHERE queue_name = 'le' AND payload IN ('18', '19') ORDER BY payload;
SELECT * FROM t.holds;
SELECT t.numbers('le');
SELECT result FROM aq.extend('le', :'ids', :receipt, '2 hours');
SELECT bool_and(leased_until - leased_since > '110 minutes') FROM aq.messages WHERE queue_name = 'le' AND payload IN ('18', '19');
SELECT result FROM aq.release('le', :'ids', :receipt, error => 'no paper');
SELECT * FROM t.holds;
SELECT ids, receipt FROM t.leased('le', '1 hour', 1) \gset
SELECT * FROM t.holds;
SELECT result FROM aq.reject('le', :'ids', :receipt, error => 'no ink');
SELECT t.numbers('le');
SELECT t.drain('le');
DROP VIEW t.holds;
RESET application_name;
CALL aq.wait('le_dead', NULL, '60 s', NULL);
SELECT t.drain('le_dead');
-- chosen by correlation, condition or id; what is leased is not found by any of them
SELECT t.drain('le');
SELECT aq.enqueue('le', to_jsonb(n), correlation => 'c' || n % 2, priority => n % 3) IS NOT NULL FROM generate_series(20, 25) n;
SELECT payload FROM aq.dequeue('le', correlation => 'c1', max_messages => 2, lease => '1 hour');
SELECT payload FROM aq.dequeue('le', condition => 'priority = 1', max_messages => 9, lease => '1 hour');
SELECT msgid AS ready FROM aq.browse('le') LIMIT 1 \gset
SELECT payload, receipt > 0 FROM aq.dequeue('le', msgid => :'ready', lease => '1 hour');
SELECT count(*) FROM aq.dequeue('le', msgid => :'ready', lease => '1 hour');
SELECT count(*) FROM aq.dequeue('le', msgid => :'ready');
SELECT count(*) FROM aq.dequeue('le', msgid => :'ready', mode => 'browse');
SELECT count(*) FROM aq.dequeue('le', correlation => 'c1', mode => 'locked');
SELECT string_agg(payload || ' ' || state, ', ' ORDER BY payload) FROM aq.messages WHERE queue_name = 'le' AND payload ~ '^2[0-5]$';
-- browse and listen do not see it
SELECT t.look('le'), (SELECT string_agg(payload::text, ' ') FROM aq.dequeue('le', mode => 'browse', max_messages => 9));
SELECT t.drain('le') IS NOT NULL;
CALL aq.listen(ARRAY['le'], NULL, '0', NULL, NULL);
-- delayed: taken by its id before its time, and given back to wait for the rest of it
SELECT aq.enqueue('le', '26', delay => '1 hour') AS delayed \gset
SELECT payload, receipt FROM aq.dequeue('le', msgid => :'delayed', lease => '1 hour') \gset
SELECT :payload, state FROM aq.messages WHERE msgid = :'delayed';
SELECT result FROM aq.release('le', ARRAY[:'delayed'::uuid], :receipt);
SELECT state, attempts FROM aq.messages WHERE msgid = :'delayed';
-- released for a time: its id does not lease it before, which a plain dequeue can take
SELECT t.put('le', 27);
SELECT ids, receipt FROM t.leased('le', '1 hour') \gset
SELECT result FROM aq.release('le', :'ids', :receipt, delay => '1 hour');
SELECT payload FROM aq.dequeue('le', msgid => (:'ids'::uuid[])[1], lease => '1 hour');
SELECT result FROM aq.acknowledge('le', :'ids', :receipt);
SELECT t.look('le');
SELECT payload FROM aq.dequeue('le', msgid => (:'ids'::uuid[])[1]);
-- purge takes what is ready or rests, and leaves what is leased
SELECT t.put('le', 28, 30);
SELECT ids, receipt FROM t.leased('le', '1 hour', 2) \gset
SELECT result FROM aq.release('le', (:'ids'::uuid[])[1:1], :receipt, delay => '1 hour');
SELECT aq.purge_queue('le');
SELECT result FROM aq.acknowledge('le', :'ids', :receipt);
-- messages of an exception queue are leased as others; they have no exception queue to go to
SELECT t.drain('le_dead') IS NOT NULL, t.put('le', 31, 32);
SELECT ids, receipt FROM t.leased('le', '1 hour') \gset
SELECT result FROM aq.reject('le', :'ids', :receipt);
CALL aq.wait('le_dead', NULL, '60 s', NULL);
DO $$ BEGIN WHILE (SELECT count(*) FROM aq.browse('le_dead')) < 2 LOOP PERFORM pg_sleep(0.01); END LOOP; END $$;
SELECT payload, attempts FROM aq.dequeue('le_dead', max_messages => 2, mode => 'browse');
SELECT payloads, ids, receipt FROM t.leased('le_dead', '1 hour', 1) \gset
SELECT result FROM aq.acknowledge('le', :'ids', :receipt);
SELECT :payloads, result FROM aq.acknowledge('le_dead', :'ids', :receipt);
SELECT payloads, ids, receipt FROM t.leased('le_dead', '1 hour', 1) \gset
SELECT :payloads, result FROM aq.reject('le_dead', :'ids', :receipt);
DO $$ BEGIN FOR i IN 1..1000 LOOP EXIT WHEN t.states('le_dead') IS NULL; PERFORM pg_sleep(0.01); END LOOP; END $$;
SELECT t.states('le_dead'), t.look('le_dead') IS NULL;

-- topics: a lease of one consumer is nothing to another
SELECT aq.create_queue('let', multiple_consumers => true, retry_delay => '0');
SELECT aq.subscribe('let', c) FROM unnest(ARRAY['a', 'b', 'c']) c;
SELECT t.put('let', 1, 2);
SELECT payloads, ids, receipt FROM t.leased('let', '1 hour', 1, 'a') \gset
SELECT t.look('let', 'a'), t.look('let', 'b');
SELECT result FROM aq.acknowledge('let', :'ids', :receipt, 'b');
SELECT result FROM aq.acknowledge('let', :'ids', :receipt, 'nobody');
SELECT result FROM aq.acknowledge('let', :'ids', :receipt, 'a');
SELECT payloads, ids, receipt FROM t.leased('let', '1 hour', 1, 'b') \gset
SELECT aq.unsubscribe('let', 'b');
SELECT result FROM aq.acknowledge('let', :'ids', :receipt, 'b');
SELECT t.drain('let', 'a'), t.drain('let', 'c');
-- a role finishes leases of the consumers for which it may dequeue: by the right on the consumer, or the privilege on the queue
CREATE ROLE regress_le_ann;
SELECT aq.grant_consumer('let', 'a', 'regress_le_ann');
SELECT t.put('let', 3, 9);
SELECT ids, receipt FROM t.leased('let', '1 hour', 1, 'c') \gset
SELECT ids AS mine, receipt AS mine_receipt FROM t.leased('let', '1 hour', 5, 'a') \gset
SELECT ids AS kept, receipt AS kept_receipt FROM t.leased('let', '1 hour', 1, 'a') \gset
CREATE FUNCTION t.finish(consumer text, ids uuid[], receipt bigint) RETURNS TABLE (call text, outcome text) LANGUAGE sql AS $$
	SELECT n.call, t.error(format('SELECT aq.%s(%L, %L, %s%s, consumer => %L)', n.call, 'let', ids[1:1], receipt, n.more, $1))
	FROM (VALUES ('acknowledge', ''), ('extend', ', lease => interval ''1 s'''), ('release', ''), ('reject', '')) n (call, more)
$$;
SET ROLE regress_le_ann;
SELECT result FROM aq.acknowledge('let', (:'mine'::uuid[])[1:1], :mine_receipt, 'a');
SELECT result FROM aq.extend('let', (:'mine'::uuid[])[2:2], :mine_receipt, '2 hours', 'a');
SELECT result FROM aq.release('let', (:'mine'::uuid[])[3:3], :mine_receipt, 'a');
SELECT result FROM aq.reject('let', (:'mine'::uuid[])[4:4], :mine_receipt, 'a');
SELECT * FROM t.finish('c', :'ids', :receipt);
SELECT * FROM t.finish('nobody', :'ids', :receipt);
SELECT t.error($$ SELECT aq.acknowledge('let', '{}', 1) $$);
SELECT t.error($$ SELECT aq.acknowledge('le', '{}', 1) $$);
RESET ROLE;
-- revoked: it cannot finish what it has leased
SELECT aq.revoke_consumer('let', 'a', 'regress_le_ann');
SET ROLE regress_le_ann;
SELECT * FROM t.finish('a', :'kept', :kept_receipt);
RESET ROLE;
SELECT aq.grant_queue('let', 'regress_le_ann', 'enqueue');
SET ROLE regress_le_ann;
SELECT * FROM t.finish('a', :'kept', :kept_receipt);
RESET ROLE;
SELECT aq.grant_queue('let', 'regress_le_ann', 'dequeue');
SET ROLE regress_le_ann;
SELECT result FROM aq.acknowledge('let', :'kept', :kept_receipt, 'a');
RESET ROLE;
DROP OWNED BY regress_le_ann;
DROP ROLE regress_le_ann;
DROP FUNCTION t.finish;
-- the highest limit of attempts, where the count ends, is a limit, too
SELECT aq.create_queue('le_255', max_retries => 255, retry_delay => '0');
SELECT aq.enqueue('le_255', '1') IS NOT NULL;
DO $$
DECLARE
	id uuid;
	taken bigint;
	takes integer := 0;
BEGIN
	LOOP
		SELECT msgid, receipt INTO id, taken FROM aq.dequeue('le_255', lease => '1 hour');
		EXIT WHEN id IS NULL OR takes = 260;
		COMMIT;
		takes := takes + 1;
		PERFORM aq.release('le_255', ARRAY[id], taken);
		COMMIT;
	END LOOP;
	RAISE NOTICE '%', CASE WHEN takes BETWEEN 255 AND 256 THEN 'it has failed' ELSE takes::text END;
END $$;
SELECT aq.drop_queue('le_255', force => true);
-- what cannot be
SELECT t.error($$ SELECT aq.dequeue('le', lease => '0') $$);
SELECT t.error($$ SELECT aq.dequeue('le', lease => '-1 s') $$);
SELECT t.error($$ SELECT aq.dequeue('le', lease => '200000 years') $$);
SELECT t.error($$ SELECT aq.dequeue('le', lease => '1 s', mode => 'browse') $$);
SELECT t.error($$ SELECT aq.dequeue('le', lease => '1 s', mode => 'locked') $$);
SELECT t.error($$ SELECT aq.dequeue('le', lease => '1 s', navigation => 'next_message') $$);
SELECT t.error($$ SELECT aq.dequeue('le', lease => '1 s', delivery_mode => 'buffered') $$);
SELECT t.error($$ SELECT aq.extend('le', '{}', 1, '0') $$);
SELECT t.error($$ SELECT aq.extend('le', '{}', 1, NULL) $$);
SELECT t.error($$ SELECT aq.acknowledge('le', NULL, 1) $$);
SELECT t.error($$ SELECT aq.acknowledge('le', ARRAY[NULL]::uuid[], 1) $$);
SELECT t.error($$ SELECT aq.acknowledge('le', '{}', NULL) $$);
SELECT t.error($$ SELECT aq.acknowledge('nowhere', '{}', 1) $$);
SELECT t.error($$ SELECT aq.acknowledge('let', '{}', 1) $$);
-- the argument after the receipt is the consumer
SELECT t.error($$ SELECT aq.release('le', '{}', 1, '10 minutes') $$);
SELECT t.error($$ SELECT aq.reject('le', '{}', 1, 'it''s broken') $$);
SELECT t.error($$ SELECT aq.end_leases('le', '{}', 'worker lost') $$);
SELECT t.error($$ SELECT aq.acknowledge('le', '{}', 1, 'me') $$);
SELECT aq.create_queue_table('le_qt', message_grouping => true);
SELECT aq.create_queue('le_q', queue_table => 'le_qt');
SELECT t.error($$ SELECT aq.dequeue('le_q', lease => '1 s') $$);
SELECT count(*) FROM aq.acknowledge('le_q', '{}', 1);
-- a leased message is not cancelled
SELECT aq.enqueue('le', '"cancel"') AS id \gset
SELECT receipt FROM aq.dequeue('le', msgid => :'id', lease => '1 hour') \gset
SELECT aq.cancel('le', :'id');
SELECT aq.release('le', ARRAY[:'id'::uuid], :receipt) IS NOT NULL;
SELECT aq.cancel('le', :'id');
-- one that has expired meanwhile fails when it is given back unseen; that is no attempt either
SELECT aq.enqueue('le', '"unseen"', expiration => '1 s') AS id \gset
SELECT receipt FROM aq.dequeue('le', msgid => :'id', lease => '1 hour') \gset
SELECT pg_sleep(1.1);
SELECT result FROM aq.release('le', ARRAY[:'id'::uuid], :receipt, count => false);
CALL aq.wait('le_dead', NULL, '60 s', NULL);
SELECT payload, attempts FROM aq.messages WHERE queue_name = 'le_dead' AND payload = '"unseen"';
SELECT attempts FROM aq.messages WHERE queue_name = 'le' AND payload = '"unseen"' AND attempts > 0;
SELECT t.drain('le_dead');
-- the owner ends leases without their receipts: as if the time were over, each of its own receipt, in one call
CREATE FUNCTION t.ended() RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(payload || ' ' || state || ' ' || attempts, ', ' ORDER BY payload) FROM aq.messages WHERE queue_name = 'le' AND payload IN ('301', '302', '303', '304') AND state <> 'EXPIRED'
$$;
SELECT t.drain('le'), t.put('le', 301, 304);
SELECT ids AS first, receipt AS first_receipt FROM t.leased('le', '1 hour', 2) \gset
SELECT ids AS second, receipt AS second_receipt FROM t.leased('le', '90000 years', 1) \gset
SELECT t.error(format('SELECT aq.end_leases(%L, NULL)', 'le'));
BEGIN; SELECT result FROM aq.end_leases('le', :'first'); SELECT result FROM aq.acknowledge('le', :'first', :first_receipt); ROLLBACK;
SELECT t.ended();
SELECT result FROM aq.end_leases('le', :'first'::uuid[] || :'second'::uuid[] || (:'first'::uuid[])[1] || gen_random_uuid());
SELECT result FROM aq.end_leases('le', :'second');
SELECT result FROM aq.acknowledge('le', :'first', :first_receipt);
SELECT result FROM aq.extend('le', :'second', :second_receipt, '1 hour');
SELECT t.ended();
SELECT payload, last_error FROM aq.messages WHERE queue_name = 'le' AND last_error LIKE 'lease ended%' ORDER BY payload;
-- for the owner
SELECT payload FROM aq.dequeue('le', lease => '1 hour', condition => $$ payload = '304' $$);
CREATE ROLE regress_le_eve;
SELECT aq.grant_queue('le', 'regress_le_eve', 'all');
SET ROLE regress_le_eve;
SELECT t.error(format('SELECT aq.end_leases(%L, %L)', 'le', :'first'));
RESET ROLE;
DROP OWNED BY regress_le_eve;
DROP ROLE regress_le_eve;
-- of a topic for one consumer
SELECT t.drain('let', 'a'), t.drain('let', 'c'), t.put('let', 401);
SELECT ids, receipt FROM t.leased('let', '1 hour', 1, 'a') \gset
SELECT receipt AS receipt_c FROM t.leased('let', '1 hour', 1, 'c') \gset
SELECT t.error(format('SELECT aq.end_leases(%L, %L)', 'let', :'ids'));
SELECT result FROM aq.end_leases('let', :'ids', 'nobody');
SELECT result FROM aq.end_leases('let', :'ids', consumer => 'a');
SELECT t.look('let', 'a'), t.look('let', 'c');
SELECT result FROM aq.acknowledge('let', :'ids', :receipt_c, 'c');
-- after the last attempt they fail, if they were leased alone
SELECT ids, receipt FROM t.leased('le', '1 hour', 2) \gset
SELECT result FROM aq.end_leases('le', :'ids');
SELECT ids, receipt FROM t.leased('le', '1 hour', 1) \gset
SELECT ids AS others FROM t.leased('le', '1 hour', 1) \gset
SELECT result FROM aq.end_leases('le', :'ids'::uuid[] || :'others'::uuid[], error => 'worker lost');
CALL aq.wait('le_dead', NULL, '60 s', NULL);
SELECT t.ended();
SELECT t.look('le_dead');
-- an empty error is none
SELECT aq.create_queue('le_empty', retry_delay => '0');
SELECT t.put('le_empty', 501);
SELECT ids, receipt FROM t.leased('le_empty', '1 hour', 1) \gset
SELECT result FROM aq.release('le_empty', :'ids', :receipt, error => '');
SELECT last_error FROM aq.messages WHERE queue_name = 'le_empty';
SELECT ids, receipt FROM t.leased('le_empty', '1 hour', 1) \gset
SELECT result FROM aq.end_leases('le_empty', :'ids', error => '');
SELECT last_error FROM aq.messages WHERE queue_name = 'le_empty';
SELECT aq.drop_queue('le_empty', force => true);
SELECT aq.drop_queue('le_q'), aq.drop_queue_table('le_qt', force => true);
SELECT aq.drop_queue('let', force => true), aq.drop_queue('le', force => true), aq.drop_queue('le_dead', force => true);
DROP FUNCTION t.leased, t.states, t.numbers, t.ended;
SELECT * FROM aq.check();
