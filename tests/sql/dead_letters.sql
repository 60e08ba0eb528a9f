-- A dead letter says where it comes from, why and when it failed, and keeps its properties.
\pset format unaligned
\pset tuples_only on
SELECT aq.create_queue('dl', 'text', max_retries => 1, retry_delay => '0');
CREATE TEMP TABLE ids (id uuid);
-- t.dead shows the dead letters of a queue; times as whether they are there and in order, the id as whether it is that of an enqueue
CREATE FUNCTION t.dead(exceptions text) RETURNS SETOF text LANGUAGE sql AS $$
	SELECT concat_ws('|', payload, queue_name, coalesce(consumer, '-'), reason, coalesce(last_error, '-'), attempts,
		coalesce((last_attempt <= died AND (first_attempt < last_attempt) = (attempts > 1))::text, '-'), enqueue_time < died, coalesce((expires_at <= died)::text, '-'),
		priority, correlation, properties, sender, coalesce(original_msgid, msgid) IN (SELECT id FROM ids))
	FROM aq.dead_letters WHERE exception_queue = exceptions ORDER BY payload, consumer
$$;
-- retries, expired
INSERT INTO ids SELECT aq.enqueue('dl', 'a retries', priority => 3, correlation => 'c', properties => '{"k": 1}', sender => 's');
BEGIN; SELECT payload FROM aq.dequeue('dl', as_type => NULL::text); ROLLBACK;
BEGIN; SELECT payload FROM aq.dequeue('dl', as_type => NULL::text, wait => '60 s'); ROLLBACK;
INSERT INTO ids SELECT aq.enqueue('dl', 'b expired', expiration => '1 microsecond');
-- rejected, released too often, lease over
INSERT INTO ids SELECT aq.enqueue('dl', 'c rejected');
SELECT msgid, receipt FROM aq.dequeue('dl', as_type => NULL::text, lease => '1 hour') \gset
SELECT result FROM aq.reject('dl', ARRAY[:'msgid'::uuid], :receipt, error => 'no such order');
INSERT INTO ids SELECT aq.enqueue('dl', 'd released');
SELECT msgid, receipt FROM aq.dequeue('dl', as_type => NULL::text, lease => '1 hour') \gset
SELECT result FROM aq.release('dl', ARRAY[:'msgid'::uuid], :receipt, error => 'first error', delay => '0');
SELECT msgid, receipt FROM aq.dequeue('dl', as_type => NULL::text, lease => '1 hour') \gset
SELECT result FROM aq.release('dl', ARRAY[:'msgid'::uuid], :receipt, error => 'second error');
SELECT aq.alter_queue('dl', max_retries => 0);
INSERT INTO ids SELECT aq.enqueue('dl', 'e lease over');
SELECT count(*) FROM aq.dequeue('dl', as_type => NULL::text, lease => '1 ms');
DO $$
BEGIN
	FOR i IN 1..600 LOOP
		EXIT WHEN (SELECT count(*) FROM aq.messages WHERE queue_name = 'dl_exceptions') = 5;
		PERFORM pg_sleep(0.1);
	END LOOP;
END $$;
SELECT t.dead('dl_exceptions');
-- in aq.messages, aq.dequeue_full, and conditions
SELECT DISTINCT jsonb_typeof(dead_letter) FROM aq.messages WHERE queue_name = 'dl_exceptions';
SELECT payload, attempts, dead_letter ->> 'reason', dead_letter ->> 'error'
FROM aq.dequeue_full('dl_exceptions', as_type => NULL::text, condition => $$dead_letter ->> 'reason' = 'rejected'$$);
SELECT payload FROM aq.browse('dl_exceptions', as_type => NULL::text, condition => $$dead_letter ->> 'queue' = 'dl' AND (dead_letter ->> 'attempts')::int > 1$$) ORDER BY 1;
-- the name of the queue that it came from follows a change of name, and stays when the queue is dropped
SELECT aq.create_queue('dl_dead', 'text'), aq.create_queue('dl2', 'text', max_retries => 0, exception_queue => 'dl_dead');
SELECT aq.enqueue('dl2', 'renamed') IS NOT NULL;
BEGIN; SELECT payload FROM aq.dequeue('dl2', as_type => NULL::text); ROLLBACK;
CALL aq.wait('dl_dead', NULL, '60 s', NULL);
SELECT aq.alter_queue('dl2', new_name => 'dl3');
SELECT queue_name, dead_letter ->> 'queue' FROM aq.dead_letters WHERE exception_queue = 'dl_dead';
SELECT aq.drop_queue('dl3');
SELECT queue_name FROM aq.dead_letters WHERE exception_queue = 'dl_dead';
-- a message that fails there, too: both failures
SELECT aq.alter_queue('dl_dead', max_retries => 0);
BEGIN; SELECT payload FROM aq.dequeue('dl_dead', as_type => NULL::text); ROLLBACK;
CALL aq.wait('dl_dead_exceptions', NULL, '60 s', NULL);
SELECT dead_letter ->> 'queue', dead_letter #>> '{before,queue}' FROM aq.dead_letters WHERE exception_queue = 'dl_dead_exceptions';
-- exception queues in a circle: the first failure and the latest ones are kept
SELECT aq.create_queue('dl_ping', 'text'), aq.create_queue('dl_pong', 'text', exception_queue => 'dl_ping'), aq.alter_queue('dl_ping', exception_queue => 'dl_pong');
SELECT aq.enqueue('dl_ping', 'round and round') IS NOT NULL;
CREATE PROCEDURE t.fail_round(rounds integer) LANGUAGE plpgsql AS $$
DECLARE
	queue text := 'dl_ping';
	ready boolean;
	id uuid;
	taken bigint;
BEGIN
	FOR i IN 1..rounds LOOP
		CALL aq.wait(queue, NULL, '60 s', ready);
		SELECT msgid, receipt INTO id, taken FROM aq.dequeue(queue, as_type => NULL::text, lease => '1 hour');
		COMMIT;
		PERFORM aq.reject(queue, ARRAY[id], taken, error => 'round ' || i);
		COMMIT;
		queue := CASE queue WHEN 'dl_ping' THEN 'dl_pong' ELSE 'dl_ping' END;
	END LOOP;
	CALL aq.wait(queue, NULL, '60 s', ready);
END $$;
CREATE FUNCTION t.rounds() RETURNS TABLE (error text, omitted text) LANGUAGE sql AS $$
	WITH RECURSIVE chain (letter, n) AS (
		SELECT dead_letter, 1 FROM aq.messages WHERE queue_name = 'dl_ping' AND dead_letter IS NOT NULL AND state = 'READY'
		UNION ALL SELECT letter -> 'before', n + 1 FROM chain WHERE letter ? 'before')
	SELECT letter ->> 'error', letter ->> 'omitted' FROM chain ORDER BY n
$$;
CALL t.fail_round(10);
SELECT string_agg(concat_ws(' omitted ', error, omitted), ', ') FROM t.rounds();
CALL t.fail_round(12);
SELECT string_agg(concat_ws(' omitted ', error, omitted), ', ') FROM t.rounds();
SELECT aq.alter_queue('dl_ping', exception_queue => 'none'), aq.drop_queue('dl_pong', force => true), aq.drop_queue('dl_ping', force => true);
DROP PROCEDURE t.fail_round; DROP FUNCTION t.rounds;
-- a topic: one for each consumer for which the message failed
SELECT aq.create_queue('dl_topic', 'text', multiple_consumers => true, max_retries => 0);
SELECT aq.subscribe('dl_topic', 'ann'), aq.subscribe('dl_topic', 'bob'), aq.subscribe('dl_topic', 'eve');
INSERT INTO ids SELECT aq.enqueue('dl_topic', 'news');
BEGIN; SELECT payload FROM aq.dequeue('dl_topic', NULL::text, consumer => 'ann'); ROLLBACK;
SELECT msgid, receipt FROM aq.dequeue('dl_topic', NULL::text, consumer => 'bob', lease => '1 hour') \gset
SELECT result FROM aq.release('dl_topic', ARRAY[:'msgid'::uuid], :receipt, 'bob', count => false);
SELECT payload FROM aq.dequeue('dl_topic', NULL::text, consumer => 'bob');
SELECT msgid, receipt FROM aq.dequeue('dl_topic', NULL::text, consumer => 'eve', lease => '1 hour') \gset
SELECT result FROM aq.reject('dl_topic', ARRAY[:'msgid'::uuid], :receipt, 'eve', error => 'not for me');
CALL aq.wait('dl_topic_exceptions', NULL, '60 s', NULL);
SELECT t.dead('dl_topic_exceptions');
SELECT aq.drop_queue(q, force => true) FROM unnest(ARRAY['dl', 'dl_dead', 'dl_topic']) q;
DROP FUNCTION t.dead;
DROP TABLE ids;
