-- A queue with max_depth: when it is full, what counts, who waits and who gets the error, who is let in anyway.
\pset format unaligned
\pset tuples_only on
CREATE FUNCTION t.put_many(queue text, n integer) RETURNS bigint LANGUAGE sql AS $$SELECT count(aq.enqueue(queue, i::text)) FROM generate_series(1, n) i$$;
CREATE FUNCTION t.take_many(queue text, n integer, consumer text DEFAULT NULL) RETURNS bigint LANGUAGE sql AS
	$$SELECT count(*) FROM aq.dequeue(queue, consumer => consumer, max_messages => n)$$;
CREATE VIEW t.md AS SELECT queue_name, consumer, lag, max_depth, enqueues_waited, enqueues_refused FROM aq.metrics()
WHERE queue_name LIKE 'md%' AND queue_name NOT LIKE '%exceptions' ORDER BY 1, 2;

SELECT t.error($$SELECT aq.create_queue('md', max_depth => 0)$$), t.error($$SELECT aq.create_queue('md', max_depth => 3, on_full => 'drop_oldest')$$);
SELECT t.error($$SELECT aq.create_queue('md', on_full => NULL)$$);
SELECT aq.create_queue('md', max_depth => 3, on_full => 'error'), aq.create_queue('md_none');
SELECT t.error($$SELECT aq.alter_queue('md', max_depth => 0)$$);
SELECT queue_name, max_depth, on_full FROM aq.queues WHERE queue_name LIKE 'md%' ORDER BY 1;

-- full: committed messages, ready or delayed or leased, that are not finished
SELECT t.put_many('md', 1);
SELECT aq.enqueue('md', '2', delay => '1 hour') IS NOT NULL;
SELECT msgid, receipt FROM aq.dequeue('md', lease => '1 hour') \gset
SELECT t.put_many('md', 1);
SELECT t.error($$SELECT t.put_many('md', 1)$$);
SELECT t.error($$SELECT aq.enqueue_array('md', ARRAY['4', '5'])$$);
SELECT t.error($$SELECT aq.enqueue('md', '4', visibility => 'immediate')$$);
SELECT t.error($$SELECT aq.enqueue_array('md', ARRAY['4', '5'], visibility => 'immediate')$$);
SELECT t.error($$SELECT aq_jms.enqueue('md', ARRAY['4'])$$);
-- the number of those that were refused does not go back with a transaction
SELECT * FROM t.md;

-- buffered messages have a limit of their own
SELECT aq.enqueue('md', '0', delivery_mode => 'buffered') IS NOT NULL, aq.purge_queue('md', delivery_mode => 'buffered');

-- a dequeue makes room, a rollback does not; an array is let in as a whole
SELECT t.take_many('md', 1);
SELECT cardinality(aq.enqueue_array('md', ARRAY['6', '7', '8']));
SELECT t.error($$SELECT t.put_many('md', 1)$$);
BEGIN;
SELECT t.take_many('md', 3);
ROLLBACK;
SELECT t.error($$SELECT t.put_many('md', 1)$$);

-- what raises the limit, and takes it away
SELECT aq.alter_queue('md', max_depth => 6);
SELECT t.put_many('md', 1);
SELECT t.error($$SELECT t.put_many('md', 1)$$);
SELECT aq.alter_queue('md', max_depth => -1);
SELECT queue_name, max_depth, on_full FROM aq.queues WHERE queue_name = 'md';
SELECT t.put_many('md', 5);
SELECT aq.alter_queue('md', max_depth => 3, on_full => 'wait');
SELECT aq.purge_queue('md'), lag FROM aq.metrics('md') WHERE delivery_mode = 'persistent';
SELECT result FROM aq.acknowledge('md', :'msgid', :receipt);
SELECT * FROM t.md;

-- on_full => wait: an error when the time is up, here at once
SET pgaq.flow_control_timeout = 0;
SELECT t.put_many('md', 3);
SELECT t.error($$SELECT t.put_many('md', 1)$$);
SELECT t.error($$SELECT aq.enqueue_array('md', ARRAY['4'], visibility => 'immediate')$$);
SET pgaq.flow_control_timeout = '10 ms';
SELECT t.error($$SELECT t.put_many('md', 1)$$);
SELECT t.error($$SELECT aq.enqueue_array('md', ARRAY['4'], visibility => 'immediate')$$);
SELECT enqueues_waited, enqueues_refused FROM aq.metrics('md') WHERE delivery_mode = 'persistent';

-- a transaction's own messages count, and no wait would make room for them
SET pgaq.flow_control_timeout = '20 s';
SELECT aq.purge_queue('md');
SELECT t.error($$SELECT t.put_many('md', 4)$$);
BEGIN;
SELECT t.put_many('md', 2);
SAVEPOINT s;
SELECT t.put_many('md', 1);
ROLLBACK TO s;
SELECT t.put_many('md', 1);
COMMIT;

-- what it dequeues makes room for what it enqueues, also after an error in a block; not for what is committed before
BEGIN;
SELECT t.take_many('md', 2), t.put_many('md', 2);
DO $$ BEGIN PERFORM 1 / 0; EXCEPTION WHEN division_by_zero THEN NULL; END $$;
SELECT t.take_many('md', 1), t.put_many('md', 1);
COMMIT;
SELECT lag FROM aq.metrics('md') WHERE delivery_mode = 'persistent';
SELECT msgid, receipt FROM aq.dequeue('md', lease => '1 hour') \gset
BEGIN;
SELECT result FROM aq.acknowledge('md', :'msgid', :receipt);
SELECT t.put_many('md', 1);
COMMIT;
SELECT lag FROM aq.metrics('md') WHERE delivery_mode = 'persistent';
-- also if these are its own
BEGIN;
SELECT t.take_many('md', 1), t.put_many('md', 1) FROM generate_series(1, 5);
COMMIT;
SELECT lag FROM aq.metrics('md') WHERE delivery_mode = 'persistent';
BEGIN;
SELECT t.take_many('md', 3);
SELECT t.error($$SELECT aq.enqueue('md', '4', visibility => 'immediate')$$);
SELECT t.error($$SELECT aq.enqueue_array('md', ARRAY['4'], visibility => 'immediate')$$);
ROLLBACK;

-- what is put back, what failed, and schedules are let in
SELECT aq.alter_queue('md', max_retries => 0, on_full => 'error');
SELECT aq.schedule('md', 'md', '"s"', every => '1 year') IS NOT NULL, aq.run_schedule('md') IS NOT NULL, aq.unschedule('md');
SELECT lag FROM aq.metrics('md') WHERE delivery_mode = 'persistent';
SELECT msgid FROM aq.dequeue('md', mode => 'browse') \gset
CALL t.fail_attempts('md', ARRAY[:'msgid'::uuid]);
SELECT count(*) FROM aq.dequeue('md_exceptions', mode => 'browse', wait => '60 s');
SELECT t.error($$SELECT t.put_many('md', 1)$$);
SELECT aq.redrive('md');
SELECT lag FROM aq.metrics('md') WHERE delivery_mode = 'persistent';
SELECT t.error($$SELECT t.put_many('md', 1)$$);

-- an exception queue takes all
SELECT t.error($$SELECT aq.alter_queue('md_exceptions', max_depth => 1)$$);
SELECT t.error($$SELECT aq.create_queue('md_dead', queue_type => 'exception', max_depth => 1)$$);
SELECT aq.alter_queue('md_exceptions', max_depth => -1);

-- one message
SELECT aq.purge_queue('md') > 0;
SELECT aq.alter_queue('md', max_depth => 1);
SELECT t.put_many('md', 1);
SELECT t.error($$SELECT t.put_many('md', 1)$$);
SELECT aq.purge_queue('md');
SELECT t.error($$SELECT t.put_many('md', 2)$$);

-- a topic: each consumer has its number, and one that does not get the message does not count
SELECT aq.create_queue('mdt', multiple_consumers => true, max_depth => 2, on_full => 'error');
SELECT aq.subscribe('mdt', 'a'), aq.subscribe('mdt', 'b', rule => 'priority = 0');
SELECT t.put_many('mdt', 2);
SELECT t.error($$SELECT t.put_many('mdt', 1)$$);
SELECT aq.enqueue('mdt', '3', recipients => '{b}') IS NOT NULL, aq.enqueue('mdt', '4', recipients => '{c}') IS NOT NULL;
SELECT t.error($$SELECT aq.enqueue('mdt', '5', recipients => '{c,a}')$$);
SELECT t.take_many('mdt', 2, 'a');
SELECT t.put_many('mdt', 1);
SELECT * FROM t.md;
SELECT aq.unsubscribe('mdt', 'a');
SELECT aq.subscribe('mdt', 'a');
SELECT t.put_many('mdt', 2);

RESET pgaq.flow_control_timeout;
DROP VIEW t.md;
DROP FUNCTION t.put_many, t.take_many;
SELECT aq.drop_queue(queue_name, force => true) FROM aq.queues WHERE queue_name IN ('md', 'md_none', 'mdt');
