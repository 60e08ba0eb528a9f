-- aq.wait, aq.listen and dequeue's own wait, as far as one session can tell.
\pset format unaligned
\pset tuples_only on
SELECT aq.create_queue('t');
SELECT aq.create_queue('t2');
SELECT aq.create_queue('t_topic', multiple_consumers => true);
SELECT aq.subscribe('t_topic', 'a'), aq.subscribe('t_topic', 'b');
-- empty: the time is over
CALL aq.wait('t', NULL, '0', NULL);
CALL aq.wait('t', NULL, '10 ms', NULL);
CALL aq.wait('t_topic', 'a', '10 ms', NULL);
CALL aq.wait('t_topic', 'nobody', '10 ms', NULL);
-- something there: at once, even with no time or all the time; nothing is consumed
SELECT t.put('t', 1);
CALL aq.wait('t', NULL, '0', NULL);
CALL aq.wait('t', NULL, NULL, NULL);
CALL aq.wait('t', NULL, '-1 s', NULL);
CALL aq.wait(queue_name => 't', consumer => NULL, timeout => '1 s', ready => NULL);
SELECT t.drain('t');
CALL aq.wait('t', NULL, '0', NULL);
-- without nulls, for a single consumer
CALL aq.wait('t', '10 ms');
CALL aq.wait('t', timeout => '0');
CALL aq.wait('t_topic', '0');
SELECT t.put('t', 1);
CALL aq.wait('t');
CALL aq.wait('t', interval '0', NULL);
DO $$DECLARE ready boolean; BEGIN CALL aq.wait('t', '0', ready); RAISE NOTICE '%', ready; END$$;
SELECT t.drain('t');
-- per consumer
SELECT aq.enqueue('t_topic', '1', recipients => ARRAY['b']) IS NOT NULL;
CALL aq.wait('t_topic', 'a', '0', NULL);
CALL aq.wait('t_topic', 'b', '0', NULL);
CALL aq.wait('t_topic', 'b', '0');
CALL aq.wait('t_topic', 'b', interval '0');
CALL aq.wait(timeout => '0', consumer => 'b', queue_name => 't_topic');
CALL aq.wait('t_topic', consumer => 'a', timeout => interval '0');
SELECT t.drain('t_topic', 'b');
-- in a transaction block it is a statement like others
BEGIN;
SELECT t.put('t', 2);
CALL aq.wait('t', NULL, '10 s', NULL);
ROLLBACK;
CALL aq.wait('t', NULL, '0', NULL);
-- a delayed message wakes when it is ready
SELECT aq.enqueue('t', '3', delay => '0.1 s') IS NOT NULL;
CALL aq.wait('t', NULL, '60 s', NULL);
SELECT t.drain('t');
-- cancelled by statement_timeout, and the session goes on
SET statement_timeout = '30 ms';
CALL aq.wait('t', NULL, NULL, NULL);
SELECT payload FROM aq.dequeue('t', wait => '-1 s');
RESET statement_timeout;
SELECT t.put('t', 4);
CALL aq.wait('t', NULL, '60 s', NULL);
-- dequeue's own wait
SELECT payload FROM aq.dequeue('t', wait => '60 s');
SELECT payload FROM aq.dequeue('t', wait => '10 ms');
SELECT payload FROM aq.dequeue('t', wait => '0');
-- a number is in seconds; the session is told once
SELECT t.put('t', 6, 7);
SELECT payload FROM aq.dequeue('t', wait => '1000');
SELECT payload FROM aq.dequeue('t', wait => '1 hour');
SELECT aq.enqueue('t', '5', delay => '0.1 s') IS NOT NULL;
SELECT payload FROM aq.dequeue('t', wait => '60 s');
-- waiting together with other options: allowed or refused, never stuck
SELECT t.error($$SELECT * FROM aq.dequeue('t', mode => 'browse', wait => '1 ms')$$);
SELECT t.error($$SELECT * FROM aq.dequeue('t', max_messages => 0, wait => '1 ms')$$);
SELECT t.error($$SELECT * FROM aq.dequeue('t', msgid => '00000000-0000-0000-0000-000000000000', wait => '1 ms')$$);
-- refused
SELECT t.error($$CALL aq.wait('no such queue', NULL, '0', NULL)$$);
SELECT t.error($$CALL aq.wait(NULL, NULL, '0', NULL)$$);
SELECT t.error($$CALL aq.wait('t', 'consumer', '0', NULL)$$);
SELECT t.error($$CALL aq.wait('t_topic', NULL, '0', NULL)$$);
SELECT t.error($$CALL aq.wait('t', '0', NULL)$$);
-- a timeout has a unit: an interval would read 1000 as seconds
SELECT t.error($$CALL aq.wait('t', '1000')$$);
SELECT t.error($$CALL aq.wait('t', 1000)$$);
SELECT t.error($$CALL aq.wait('t_topic', 'a', '1.5e3')$$);
SELECT t.error($$CALL aq.wait('t_topic', 'a', 1000.5)$$);
SELECT t.error($$CALL aq.wait('t', NULL, '5', 'persistent', NULL)$$);
SELECT t.error($$CALL aq.wait(NULL::bigint[], 1000)$$);
SELECT t.error($$CALL aq.listen('{t}', timeout => '1000')$$);
SELECT t.error($$CALL aq.receive('t', timeout => 1000)$$);
SELECT t.error($$CALL aq.wait('t', 'soon')$$);
SELECT t.error($$CALL aq.wait('t', true)$$);
CALL aq.wait('t', 0);
CALL aq.wait('t', '00:00:00.01');
CALL aq.wait('t', '10 ms'::varchar);
-- listen: the first of the list that has a message
CALL aq.listen(ARRAY['t', 't2', 't_topic'], ARRAY[NULL, NULL, 'a'], '10 ms', NULL, NULL);
SELECT t.put('t2', 1), t.put('t_topic', 1);
CALL aq.listen(ARRAY['t', 't2', 't_topic'], ARRAY[NULL, NULL, 'a'], '10 s', NULL, NULL);
CALL aq.listen(ARRAY['t_topic', 't', 't2'], ARRAY['a', NULL, NULL], '10 s', NULL, NULL);
CALL aq.listen(ARRAY['t', 't_topic', 't_topic'], ARRAY[NULL, 'nobody', 'b'], NULL, NULL, NULL);
SELECT t.drain('t2');
CALL aq.listen(ARRAY['t', 't2'], NULL, '10 ms', NULL, NULL);
CALL aq.listen(ARRAY['t', 't2'], timeout => '10 ms');
SELECT aq.enqueue('t2', '2', delay => '0.1 s') IS NOT NULL;
CALL aq.listen(ARRAY['t', 't2'], ARRAY[NULL, NULL], '60 s', NULL, NULL);
-- an unknown queue is an error, also behind one that has a message
SELECT t.error($$CALL aq.listen(ARRAY['t2', 'no such queue'], timeout => '10 s')$$);
SELECT t.drain('t2');
SELECT t.error($$CALL aq.listen(ARRAY['t', 't2'], ARRAY[NULL], '0', NULL, NULL)$$);
SELECT t.error($$CALL aq.listen('{}', '{}', '0', NULL, NULL)$$);
SELECT t.error($$CALL aq.listen(NULL, NULL, '0', NULL, NULL)$$);
SELECT t.error($$CALL aq.listen(ARRAY['t', NULL], ARRAY[NULL, NULL], '0', NULL, NULL)$$);
SELECT t.error($$CALL aq.listen(ARRAY['t', 't'], ARRAY[NULL, NULL], '0', NULL, NULL)$$);
SELECT t.error($$CALL aq.listen(ARRAY['t', 'no such queue'], ARRAY[NULL, NULL], '0', NULL, NULL)$$);
SELECT t.error($$CALL aq.listen(ARRAY['t_topic'], ARRAY[NULL], '0', NULL, NULL)$$);
SELECT t.error($$CALL aq.listen(ARRAY['t'], ARRAY['x'], '0', NULL, NULL)$$);
SELECT aq.drop_queue('t'), aq.drop_queue('t2'), aq.drop_queue('t_topic', true);
-- a session stands in 256 lists at most
SELECT t.error(format('CALL aq.listen(%L, NULL, ''0'', NULL, NULL)', (SELECT array_agg('none' || n) FROM generate_series(1, 257) n)));
