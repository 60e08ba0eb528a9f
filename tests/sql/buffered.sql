-- Buffered messages by schema aq: kept apart from persistent ones, with the same options, order, consumers and rights.
\pset format unaligned
\pset tuples_only on
SELECT aq.create_queue('buf', max_retries => 1, retry_delay => '0'), aq.create_queue('buf_failed');
SELECT aq.alter_queue('buf', exception_queue => 'buf_failed');
CREATE FUNCTION t.put_buffered(queue_name text, first integer, last integer DEFAULT NULL) RETURNS bigint LANGUAGE sql AS $$
	SELECT count(aq.enqueue($1, to_jsonb(n), delivery_mode => 'buffered')) FROM generate_series($2, coalesce($3, $2)) AS n
$$;
CREATE FUNCTION t.take_buffered(queue_name text, consumer text DEFAULT NULL, delivery_mode text DEFAULT 'buffered') RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(payload #>> '{}', ' ') FROM aq.dequeue($1, consumer => $2, max_messages => 1000, delivery_mode => $3)
$$;
-- before the first buffered message there is nothing, and nothing is made for it
SELECT count(*) FROM aq.dequeue('buf', delivery_mode => 'buffered');
SELECT count(*) FROM aq.dequeue('buf', delivery_mode => 'persistent_or_buffered');
SELECT count(*) FROM aq.buffered_queues WHERE queue_name LIKE 'buf%';
-- each kind is dequeued by its own mode
SELECT t.put('buf', 1, 3), t.put_buffered('buf', 11, 13);
SELECT aq.enqueue_array('buf', '{14,15}'::jsonb[], delivery_mode => 'buffered') IS NOT NULL;
SELECT t.look('buf');
SELECT delivery_mode, state, in_memory, payload FROM aq.messages WHERE queue_name = 'buf' ORDER BY payload::int;
SELECT payload, message_delivery_mode FROM aq.dequeue_full('buf', as_type => NULL::jsonb, delivery_mode => 'buffered');
SELECT payload, message_delivery_mode FROM aq.dequeue_full('buf', as_type => NULL::jsonb);
SELECT t.drain('buf');
SELECT t.take_buffered('buf');
-- both kinds in one call; they take turns to be the first
SELECT t.put('buf', 1, 3), t.put_buffered('buf', 11, 13);
CREATE FUNCTION t.kind_of_next(queue_name text) RETURNS integer LANGUAGE sql AS $$
	SELECT message_delivery_mode FROM aq.dequeue_full($1, as_type => NULL::jsonb, delivery_mode => 'persistent_or_buffered')
$$;
SELECT array_agg(k ORDER BY k) FROM (SELECT t.kind_of_next('buf') AS k FROM generate_series(1, 4)) x;
SELECT string_agg(payload #>> '{}', ' ' ORDER BY payload::int) FROM aq.dequeue('buf', max_messages => 10, delivery_mode => 'persistent_or_buffered');
SELECT count(*) FROM aq.messages WHERE queue_name = 'buf' AND state IN ('READY', 'LOCKED');
-- errors
SELECT t.error($$SELECT aq.enqueue('buf', '1', delivery_mode => 'quick')$$);
SELECT t.error($$SELECT aq.enqueue('buf', '1', delivery_mode => 'persistent_or_buffered')$$);
SELECT t.error($$SELECT * FROM aq.dequeue('buf', delivery_mode => 'quick')$$);
SELECT t.error($$CALL aq.wait('buf', NULL, '0', 'quick', NULL)$$);
-- a part of the transaction, as persistent ones are
BEGIN;
SELECT t.put_buffered('buf', 1, 2);
SAVEPOINT s;
SELECT t.put_buffered('buf', 3);
ROLLBACK TO s;
SELECT t.take_buffered('buf');
ROLLBACK;
SELECT t.take_buffered('buf');
SELECT t.put_buffered('buf', 1, 2);
BEGIN;
SELECT payload FROM aq.dequeue('buf', delivery_mode => 'buffered');
ROLLBACK;
SELECT payload, attempts FROM aq.dequeue('buf', delivery_mode => 'buffered', wait => '10 s');
-- over its retries it goes to the exception queue, where it is a persistent one
BEGIN;
SELECT payload FROM aq.dequeue('buf', delivery_mode => 'buffered');
ROLLBACK;
BEGIN;
SELECT payload, attempts FROM aq.dequeue('buf', delivery_mode => 'buffered', wait => '10 s');
ROLLBACK;
SELECT payload, attempts, original_msgid IS NOT NULL, message_delivery_mode FROM aq.dequeue_full('buf_failed', as_type => NULL::jsonb, wait => '10 s');
-- an expired one too
SELECT aq.enqueue('buf', '"expires"', expiration => '1 microsecond', delivery_mode => 'buffered') IS NOT NULL;
SELECT count(*) FROM aq.dequeue('buf', delivery_mode => 'buffered');
SELECT payload FROM aq.dequeue('buf_failed', wait => '10 s');
SELECT messages, spilled, enqueued > 0, dequeued > 0, failed, bytes > 0, losses, lost_at FROM aq.buffered_queues WHERE queue_name = 'buf';
-- priority, correlation, condition, message id, delay, modes, navigation
SELECT aq.enqueue('buf', to_jsonb(n), priority => 9 - n, correlation => 'c' || n, delivery_mode => 'buffered') IS NOT NULL FROM generate_series(1, 9) n;
SELECT payload FROM aq.dequeue('buf', correlation => 'c_', condition => 'payload <> ''9''', delivery_mode => 'buffered');
SELECT aq.enqueue('buf', '"id"', delay => '1 hour', delivery_mode => 'buffered') AS id \gset
SELECT count(*) FROM aq.dequeue('buf', msgid => :'id');
SELECT payload FROM aq.dequeue('buf', msgid => :'id', delivery_mode => 'persistent_or_buffered', mode => 'browse');
SELECT payload FROM aq.dequeue('buf', msgid => :'id', delivery_mode => 'buffered', mode => 'remove_nodata');
SELECT payload FROM aq.dequeue('buf', mode => 'locked', navigation => 'first_message', delivery_mode => 'buffered');
SELECT payload FROM aq.dequeue('buf', mode => 'browse', navigation => 'first_message', delivery_mode => 'buffered');
SELECT payload FROM aq.dequeue('buf', mode => 'browse', navigation => 'next_message', delivery_mode => 'buffered');
SELECT t.take_buffered('buf');
SELECT aq.enqueue('buf', '"later"', delay => '0.2 s', delivery_mode => 'buffered') IS NOT NULL;
SELECT payload FROM aq.dequeue('buf', wait => '10 s', delivery_mode => 'buffered');
-- wait and listen by delivery mode
SELECT t.put('buf', 1);
CALL aq.wait('buf', NULL, '0', 'buffered', NULL);
CALL aq.wait('buf', NULL, '0', 'persistent_or_buffered', NULL);
CALL aq.listen('{buf_failed,buf}', NULL, '0', 'buffered', NULL, NULL, NULL);
SELECT t.put_buffered('buf', 2);
CALL aq.wait('buf', NULL, '0', 'buffered', NULL);
CALL aq.listen('{buf_failed,buf}', NULL, '0', 'buffered', NULL, NULL, NULL);
CALL aq.listen('{buf_failed,buf}', NULL, '0', 'persistent_or_buffered', NULL, NULL, NULL);
SELECT t.drain('buf');
CALL aq.listen('{buf_failed,buf}', NULL, '0', 'persistent_or_buffered', NULL, NULL, NULL);
CALL aq.listen('{buf_failed,buf}', NULL, '0', NULL, NULL);
-- purge, also by a session that has not used the queue
SELECT aq.purge_queue('buf');
SELECT t.put('buf', 1, 2), t.put_buffered('buf', 3, 5);
\c
SELECT aq.purge_queue('buf', condition => 'payload = ''4''', delivery_mode => 'buffered');
\c
SELECT payload FROM aq.dequeue('buf', delivery_mode => 'buffered');
SELECT aq.purge_queue('buf', delivery_mode => 'persistent_or_buffered');
-- a topic: subscribers choose what they get, recipients get what is sent to them
SELECT aq.create_queue('buft', multiple_consumers => true);
SELECT aq.subscribe('buft', 'p'), aq.subscribe('buft', 'b', delivery_mode => 'buffered');
SELECT aq.subscribe('buft', 'both', rule => 'priority < 5', delivery_mode => 'persistent_or_buffered');
SELECT consumer, delivery_mode FROM aq.subscribers WHERE queue_name = 'buft' ORDER BY 1;
SELECT t.put('buft', 1), t.put_buffered('buft', 2), aq.enqueue('buft', '3', priority => 9, delivery_mode => 'buffered') IS NOT NULL;
SELECT aq.enqueue('buft', '4', recipients => '{guest,b}', delivery_mode => 'buffered') IS NOT NULL;
SELECT t.error($$SELECT aq.enqueue('buft', '5', recipients => '{p}', delivery_mode => 'buffered')$$);
SELECT t.error($$SELECT aq.enqueue('buft', '5', recipients => '{b}')$$);
SELECT t.error($$SELECT * FROM aq.dequeue('buft', 'p', delivery_mode => 'buffered')$$);
SELECT consumer, delivery_mode, payload FROM aq.messages WHERE queue_name = 'buft' AND state = 'READY' ORDER BY 1, 3;
SELECT t.drain('buft', 'p'), t.drain('buft', 'b'), t.drain('buft', 'both');
SELECT t.take_buffered('buft', 'p', 'persistent_or_buffered'), t.take_buffered('buft', 'b'), t.take_buffered('buft', 'both'), t.take_buffered('buft', 'guest');
SELECT messages FROM aq.buffered_queues WHERE queue_name = 'buft';
BEGIN;
SELECT aq.unsubscribe('buft', 'both'), aq.unsubscribe('buft', 'b'), aq.enqueue('buft', '6', delivery_mode => 'buffered') IS NULL;
ROLLBACK;
-- a removed subscriber's messages go; the position can be used again
SELECT t.put_buffered('buft', 7);
SELECT aq.unsubscribe('buft', 'b');
SELECT t.take_buffered('buft', 'both');
-- rights are the queue's; others see nothing of it
CREATE ROLE regress_buf_in;
CREATE ROLE regress_buf_out;
CREATE ROLE regress_buf_none;
SELECT aq.grant_queue('buf', 'regress_buf_in', 'enqueue'), aq.grant_queue('buf', 'regress_buf_out', 'dequeue');
SET ROLE regress_buf_in;
SELECT aq.enqueue('buf', '1', delivery_mode => 'buffered') IS NOT NULL;
SELECT t.error($$SELECT * FROM aq.dequeue('buf', delivery_mode => 'buffered')$$);
SELECT count(*) FROM aq.messages WHERE queue_name = 'buf' AND delivery_mode = 'buffered';
SET ROLE regress_buf_out;
SELECT t.take_buffered('buf');
SELECT t.error($$SELECT aq.enqueue('buf', '1', delivery_mode => 'buffered')$$);
SET ROLE regress_buf_none;
SELECT count(*) FROM aq.buffered_queues;
RESET ROLE;
-- stopped, started, renamed
SELECT aq.stop_queue('buf');
SELECT t.error($$SELECT aq.enqueue('buf', '1', delivery_mode => 'buffered')$$);
SELECT t.error($$SELECT * FROM aq.dequeue('buf', delivery_mode => 'buffered')$$);
SELECT aq.start_queue('buf');
SELECT t.put_buffered('buf', 1), aq.alter_queue('buf', new_name => 'buf2');
SELECT t.take_buffered('buf2');
-- made, and taken back, in the transaction that has the definition in hand
BEGIN;
SELECT aq.create_queue('buf3');
SAVEPOINT s;
SELECT t.put_buffered('buf3', 1, 2);
SELECT t.take_buffered('buf3');
ROLLBACK TO s;
SELECT t.put_buffered('buf3', 3);
COMMIT;
SELECT t.take_buffered('buf3');
BEGIN;
SELECT aq.stop_queue('buf_failed'), aq.start_queue('buf_failed');
SELECT t.put_buffered('buf_failed', 1);
ROLLBACK;
SELECT t.put_buffered('buf_failed', 2);
SELECT t.take_buffered('buf_failed');
-- REPEATABLE READ sees what its snapshot sees
SELECT t.put_buffered('buf3', 1);
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT t.take_buffered('buf3');
COMMIT;
-- dropping: buffered messages are messages
SELECT t.put_buffered('buf3', 1);
SELECT t.error($$SELECT aq.drop_queue('buf3')$$);
SELECT aq.drop_queue('buf3', force => true);
SELECT aq.drop_queue('buft', force => true), aq.drop_queue('buf2'), aq.drop_queue('buf_failed');
SELECT count(*) FROM aq_internal.buffered_queue;
SELECT count(*) FROM pg_class WHERE relnamespace = 'aq_data'::regnamespace AND relname ~ '^[bd][0-9]';
DROP FUNCTION t.put_buffered, t.take_buffered, t.kind_of_next;
DROP ROLE regress_buf_in, regress_buf_out, regress_buf_none;
